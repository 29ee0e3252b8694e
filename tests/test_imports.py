"""The house: a module imports only from the layers above it, torch only when an operator is needed, and stays small."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "layoutgen"
MAX_LINES = 420

# Top to bottom. Names on one line may not import each other; "" is layoutgen/__init__.py itself.
LAYERS = [
    {"errors"},
    {"paths"},
    {"algebra"},
    {"hw"},
    {"yamltext"},
    {"spec_fields", "device_file"},
    {"epilogue"},
    {"spec"},
    {"schema"},
    {"plan"},
    {"problem", "rounding"},
    {"operands"},
    {"fused"},
    {"facts"},
    {"check", "explain", "draw", "diff"},
    {"emitted"},
    {"emit_accesses"},
    {"emit_epilogue", "emit_moves"},
    {"emit_split"},
    {"emit"},
    {"build"},
    {"sim"},
    {"run"},  # an Artifact, launched or simulated
    {"ops"},
    {"smoke"},
    {"report"},
    {"bench"},
    {"plot", "tune"},
    {""},
    {"console"},
    {"console_facts", "console_bench"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
# The two foundations stand alone, so that the simulator can't agree with a wrong algebra.
ONLY = {"algebra": {"errors"}, "sim": {"errors"}}
MODULES = sorted(PACKAGE.rglob("*.py"))


def layer(module: str) -> str:
    """layoutgen.plan.tile -> plan; layoutgen -> ""."""
    return (module.split(".") + [""])[1]


def imported(source: str, module: str, *, is_package: bool) -> Iterator[tuple[int, str]]:
    """(line, layer) of every import of layoutgen in `module`, also in functions and under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "layoutgen":
                    yield node.lineno, layer(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                anchor = module.split(".")[: len(module.split(".")) - node.level + is_package]
                base = ".".join([*anchor, *filter(None, [node.module])])
            if base == "layoutgen":
                yield from ((node.lineno, alias.name if alias.name in LEVEL else "") for alias in node.names)
            elif base.startswith("layoutgen."):
                yield node.lineno, layer(base)


def violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    own = layer(module)
    found = []
    for line, other in imported(source, module, is_package=is_package):
        if other == own:
            continue
        if LEVEL.get(other, len(LAYERS)) >= LEVEL[own] or other not in ONLY.get(own, LEVEL):
            found.append(f"line {line}: {module} may not import {('layoutgen.' + other).rstrip('.')}")
    return found


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_from_the_layers_above(path: Path) -> None:
    assert layer(name_of(path)) in LEVEL, "give this module a layer in LAYERS"
    assert violations(path.read_text(), name_of(path), is_package=path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("module", "source", "bad"),
    [
        ("layoutgen.spec", "from layoutgen.algebra import Layout", False),
        ("layoutgen.spec", "import layoutgen.plan", True),
        ("layoutgen.spec", "def f():\n    from layoutgen.ops import load", True),
        ("layoutgen.spec", "from .plan import x", True),
        ("layoutgen.spec", "from layoutgen import plan", True),
        ("layoutgen.spec", "from layoutgen import errors", False),
        ("layoutgen.spec", "from layoutgen import load", True),
        ("layoutgen.plan.tile", "from . import model", False),
        ("layoutgen.plan.tile", "from ..spec import Spec", False),
        ("layoutgen.plan.tile", "from ..facts import facts", True),
        ("layoutgen.check", "from layoutgen.explain import explain", True),
        ("layoutgen.sim.memory", "from layoutgen.algebra import Layout", True),
        ("layoutgen.sim.memory", "from layoutgen.errors import SimError", False),
        ("layoutgen.ops", "import torch, layoutgen_extra", False),
        ("layoutgen.ops", "import layoutgen.unheard_of", True),
    ],
)
def test_the_layer_test_sees_what_it_should(module: str, source: str, bad: bool) -> None:
    assert bool(violations(source, module)) is bad


def test_relative_imports_of_a_package_count_from_the_package() -> None:
    assert violations("from ..spec import Spec", "layoutgen.algebra", is_package=True)
    assert not violations("from .spec import Spec", "layoutgen.algebra", is_package=True)


def test_torch_waits_for_an_operator() -> None:
    """Every module but the operators' own, the benchmarks' and the tuner's is imported without torch."""
    early = [
        name
        for path in MODULES
        if layer(name := name_of(path)) not in {"ops", "operands", "fused", "bench", "tune", "__main__"}
    ]
    script = f"import importlib, sys\nfor name in {early}:\n    importlib.import_module(name)\n"
    script += "    if 'torch' in sys.modules: sys.exit(name + ' imports torch')"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_file_is_long() -> None:
    folders = ("layoutgen", "templates", "tests", "docs", "benchmarks")
    files = [path for name in folders for end in ("py", "j2") for path in (ROOT / name).rglob(f"*.{end}")]
    lines = {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in files}
    assert len(lines) > 20
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}
