"""docs/algebra.md: every example runs, in order and as printed, and each operation that it should teach is taught."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from layoutgen import algebra
from layoutgen.algebra.evaluate import eval_command

GUIDE = Path(__file__).parents[2] / "docs" / "algebra.md"
TEXT = GUIDE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, flags=re.M | re.S)
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def run(source: str) -> doctest.TestResults:
    test = doctest.DocTestParser().get_doctest(source, {}, GUIDE.name, str(GUIDE), 0)
    return doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test)


def test_every_example_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    result = run("\n".join(block for _, block in BLOCKS))
    assert result.failed == 0, capsys.readouterr().out
    assert result.attempted == TEXT.count(">>> ") > 50


def test_every_block_is_an_example() -> None:
    assert len(BLOCKS) * 2 == TEXT.count("```")
    assert all(language == "python" and block.startswith(">>> ") for language, block in BLOCKS)


def test_a_wrong_example_would_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(">>> 1 + 1\n3\n").failed == 1
    assert "Expected" in capsys.readouterr().out


def test_commands_run() -> None:
    commands = re.findall(r'^    layoutgen eval "(.*?)"(.*)$', TEXT, flags=re.M)
    assert commands
    for expression, options in commands:
        assert list(eval_command(expression, explain="--explain" in options, table="--table" in options))


def test_names_in_the_text_exist() -> None:
    code = re.sub(r"^```.*?^```$", "", TEXT, flags=re.M | re.S)
    named = set(re.findall(r"`([a-z]\w+_\w+)[`(]", code))
    assert len(named) >= 8
    assert named <= set(algebra.__all__)


def test_teaches_in_the_order_a_gemm_needs() -> None:
    words = "coalesce(L composition(A complement(t zipped_divide(C raked_product right_inverse(A) tv(5 Swizzle("
    places = [TEXT.index(word) for word in words.split()]
    assert places == sorted(places)
