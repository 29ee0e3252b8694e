"""Every example in a docstring of the algebra runs, and every public function has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest

import layoutgen.algebra

MODULES = [
    "layoutgen.algebra",
    *(m.name for m in pkgutil.walk_packages(layoutgen.algebra.__path__, "layoutgen.algebra.")),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted == inspect.getsource(module).count(">>> "), "an example that doctest doesn't find"


@pytest.mark.parametrize("name", layoutgen.algebra.__all__)
def test_every_public_function_and_class_shows_an_example(name: str) -> None:
    thing = getattr(layoutgen.algebra, name)
    if inspect.isfunction(thing) or (inspect.isclass(thing) and name not in {"LayoutLike", "Cover"}):
        assert ">>>" in (thing.__doc__ or "")
