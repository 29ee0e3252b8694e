"""Loading a spec registers it with torch.library: schema, fake kernels, torch.compile, and names."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

import layoutgen
from layoutgen import paths
from layoutgen import spec as spec_module
from layoutgen.check import IllegalSpecError
from layoutgen.errors import LayoutgenError, SpecError
from layoutgen.ops import Operator
from tests.ops.operands import uniform

TEXT = paths.find_spec("warptile_128x128").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def op() -> Operator:
    return layoutgen.load("warptile_128x128")


def write(folder: Path, name: str, *edits: tuple[str, str]) -> Path:
    """A spec of this name: the warp tiling, edited."""
    text = TEXT.replace("name: warptile_128x128", f"name: {name}")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


# --- torch.library ---------------------------------------------------------------------------------------------------


def test_the_schemas(op: Operator) -> None:
    common = "Tensor a, Tensor b, Tensor? c=None, float alpha=1., float beta=0."
    packet = torch.ops.layoutgen.warptile_128x128
    assert str(packet.default._schema) == f"layoutgen::warptile_128x128({common}) -> Tensor"
    assert str(packet.out._schema) == f"layoutgen::warptile_128x128.out({common}, *, Tensor(a!) out) -> ()"


@pytest.mark.parametrize("overload", ["default", "out"])
def test_opcheck(op: Operator, overload: str) -> None:
    """torch's own checks: the schema tells what is mutated, fake agrees with real, autograd, and compiled dispatch."""
    random = torch.Generator().manual_seed(0)
    a, b, c = uniform(random, 9, 5), uniform(random, 7, 5).t(), uniform(random, 7)
    out = {"out": torch.zeros(9, 10)[:, :7]} if overload == "out" else {}
    target = getattr(torch.ops.layoutgen.warptile_128x128, overload)
    for arguments in ((a, b), (a, b, c, 0.5, 2.0)):
        results = torch.library.opcheck(target, arguments, out)
        assert set(results.values()) == {"SUCCESS"} and len(results) >= 4


def test_meta_tensors_give_the_shape(op: Operator) -> None:
    a, b = torch.empty(5, 7, device="meta"), torch.empty(7, 9, device="meta")
    d = op(a, b, torch.empty(9, device="meta"), 1.0, 1.0)
    assert (d.shape, d.dtype, d.device.type, d.stride()) == ((5, 9), torch.float32, "meta", (9, 1))
    out = torch.empty(5, 9, device="meta")
    assert op(a.t().contiguous().t(), b, out=out) is out
    assert op(a[:0], b).shape == (0, 9)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_equals_eager(op: Operator, dynamic: bool) -> None:
    def function(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return op(a + 1, b, c.relu(), alpha=0.5, beta=2.0) * 2 + op(b.t(), a.t()).t()

    torch.compiler.reset()
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    random = torch.Generator().manual_seed(0)
    for m, n, k in ((9, 7, 5), (12, 8, 4)):
        a, b, c = uniform(random, m, k), uniform(random, k, n), uniform(random, n)
        assert torch.equal(compiled(a, b, c), function(a, b, c))


@pytest.mark.parametrize("pitched", [False, True])
def test_compiled_writes_out(op: Operator, pitched: bool) -> None:
    """In one graph; around a pitched out Dynamo, of itself, breaks the graph."""

    def function(a: torch.Tensor, b: torch.Tensor, pool: torch.Tensor) -> torch.Tensor:
        out = pool[:, 1:8] if pitched else pool
        return op(a, b, out, 1.0, 0.5, out=out) + 1

    torch.compiler.reset()
    random = torch.Generator().manual_seed(0)
    a, b, pool = uniform(random, 9, 5), uniform(random, 5, 7), uniform(random, 9, 10 if pitched else 7)
    eager, compiled = pool.clone(), pool.clone()
    expected = function(a, b, eager)
    assert torch.equal(torch.compile(function, fullgraph=not pitched, backend="aot_eager")(a, b, compiled), expected)
    assert torch.equal(compiled, eager) and not torch.equal(eager, pool)


def test_compiled_refuses_while_it_traces(op: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layoutgen.run.on_cpu", lambda *_: pytest.fail("launched"))
    a, b = torch.ones(4, 3), torch.ones(3, 5)
    for operands, message in (
        ((a.clone().requires_grad_(), b), "a must not require grad"),
        ((a, b.double()), "b must be float32"),
        ((a, b.t()), "the columns of a must match"),
    ):
        torch.compiler.reset()
        with pytest.raises(Exception, match=message):
            torch.compile(lambda a, b: op(a, b), fullgraph=True, backend="aot_eager")(*operands)


def test_vmap_loops_over_the_batch(op: Operator) -> None:
    random = torch.Generator().manual_seed(0)
    a, b = uniform(random, 3, 9, 5), uniform(random, 5, 7)
    assert torch.equal(torch.vmap(lambda a: op(a, b))(a), torch.stack([op(each, b) for each in a]))


# --- names -----------------------------------------------------------------------------------------------------------


def test_a_spec_is_loaded_once_however_it_is_named(op: Operator) -> None:
    path = paths.find_spec("warptile_128x128")
    for source in ("warptile_128x128", path, str(path), spec_module.load(path)):
        assert layoutgen.load(source) is op
    assert repr(op).startswith("<layoutgen operator warptile_128x128: ak_bn_16B")


def test_another_spec_of_a_registered_name_is_refused(op: Operator, tmp_path: Path) -> None:
    other = write(tmp_path, "warptile_128x128", ("group: 8", "group: 4"))
    with pytest.raises(LayoutgenError, match="an operator's name belongs to one spec") as caught:
        layoutgen.load(other)
    assert str(caught.value).startswith(f"{other}:")
    assert layoutgen.load("warptile_128x128") is op


def test_an_illegal_spec_registers_nothing(tmp_path: Path) -> None:
    name = "test_ops_legal_at_last"
    with pytest.raises(IllegalSpecError, match=name):
        layoutgen.load(write(tmp_path, name, ("stages: 2", "stages: 8"), ("[128, 128, 16]", "[128, 128, 64]")))
    with pytest.raises(SpecError):
        layoutgen.load(write(tmp_path, name, ("arch: sm_80", "arch: 80")))
    assert not hasattr(torch.ops.layoutgen, name)
    operator = layoutgen.load(write(tmp_path, name))
    assert operator.name == name and getattr(torch.ops.layoutgen, name).default is not None
    assert operator(torch.empty(5, 7, device="meta"), torch.empty(7, 9, device="meta")).shape == (5, 9)


def test_a_name_that_torch_uses_itself_is_refused(tmp_path: Path) -> None:
    """torch.ops.layoutgen.name is the namespace's name, and would hide the operator."""
    with pytest.raises(LayoutgenError, match="name is free in torch.ops.layoutgen"):
        layoutgen.load(write(tmp_path, "name"))


def test_a_missing_spec_names_the_path() -> None:
    with pytest.raises(SpecError, match="no_such_spec"):
        layoutgen.load("no_such_spec")


def test_an_operator_needs_no_registration(op: Operator) -> None:
    own = Operator(op.spec, op.plans[-1:])
    a, b = torch.full((3, 4), 0.5), torch.ones(4, 5)
    assert own.variant_for(a, b).variant == "any"
    assert own.eager(a, b).tolist() == [[2.0] * 5] * 3
    assert math.isclose(own.eager(a, b, alpha=0.25).sum().item(), 7.5)
