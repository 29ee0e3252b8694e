"""What an operator can't take is refused before anything is launched, by a message that names the operand."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

import layoutgen
from layoutgen.errors import OperandError
from layoutgen.operands import _overlap
from layoutgen.ops import Operator

A, B, C = torch.ones(4, 3), torch.ones(3, 5), torch.ones(4, 5)


@pytest.fixture(scope="module")
def op() -> Operator:
    return layoutgen.load("warptile_128x128")


@pytest.fixture(autouse=True)
def no_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layoutgen.run.on_cpu", lambda *_: pytest.fail("launched before it was refused"))


def refused(pattern: str, call: Callable[[], object]) -> OperandError:
    """The OperandError that the call raises; it names the operator and says how to go on."""
    with pytest.raises(OperandError, match=pattern) as caught:
        call()
    assert caught.value.rule.startswith("warptile_128x128: ")
    assert caught.value.fix and caught.value.got
    return caught.value


OTHERS = (torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.bool, torch.complex64)


@pytest.mark.parametrize("dtype", OTHERS, ids=str)
def test_dtypes(op: Operator, dtype: torch.dtype) -> None:
    refused(f"a must be float32\n  got: {dtype}", lambda: op(A.to(dtype), B))
    refused(f"b must be float32\n  got: {dtype}", lambda: op(A, B.to(dtype)))
    refused(f"c must be float32\n  got: {dtype}", lambda: op(A, B, C.to(dtype), 1.0, 1.0))
    refused(f"out must be float32\n  got: {dtype}", lambda: op(A, B, out=C.to(dtype)))


def test_ranks(op: Operator) -> None:
    refused("a must be a matrix\n  got: 1 dim", lambda: op(torch.ones(3), B))
    refused("b must be a matrix\n  got: 1 dim", lambda: op(A, torch.ones(3)))
    refused("a must be a matrix\n  got: 3 dim", lambda: op(torch.ones(2, 4, 3), B))
    refused("b must be a matrix\n  got: 3 dim", lambda: op(A, torch.ones(2, 3, 5)))
    refused("a must be a matrix\n  got: 0 dim", lambda: op(torch.tensor(1.0), B))


def test_shapes(op: Operator) -> None:
    refused(r"columns of a must match the rows of b\n  got: a \(4, 3\), b \(5, 3\)", lambda: op(A, B.t()))
    refused("columns of a", lambda: op(A, torch.ones(0, 5)))
    for shape in ((5, 4), (4,), (2, 5), (4, 5, 1), (1, 4, 5), (4, 2), (0, 5), (4, 0)):
        refused("c must broadcast to the result", lambda shape=shape: op(A, B, torch.ones(shape), 1.0, 1.0))
        refused("c must broadcast to the result", lambda shape=shape: op(A, B, torch.ones(shape)))
    for shape in ((5, 4), (4, 6), (3, 5), (5,), (1, 4, 5), (20,)):
        refused("out must have the result's shape", lambda shape=shape: op(A, B, out=torch.ones(shape)))


def test_beta_without_c(op: Operator) -> None:
    assert "beta = 0.5" in str(refused("beta needs c", lambda: op(A, B, beta=0.5)))


def test_scale_factors_beyond_float32(op: Operator) -> None:
    refused("alpha must fit float32\n  got: 1e\\+300", lambda: op(A, B, alpha=1e300))
    refused("beta must fit float32\n  got: -1e\\+39", lambda: op(A, B, C, beta=-1e39))


def test_layouts(op: Operator) -> None:
    refused("a must be dense", lambda: op(A.to_sparse(), B))
    refused("b must be dense", lambda: op(A, B.to_sparse_csr()))
    refused("c must be dense", lambda: op(A, B, C.to_sparse(), 1.0, 1.0))
    refused("a must be dense", lambda: op(A.to_mkldnn(), B))


def test_strides_of_out(op: Operator) -> None:
    flat = torch.ones(40)
    for strides in ((1, 4), (10, 2), (0, 1), (4, 1)):
        out = flat.as_strided((4, 5), strides)
        message = refused("out must have rows of neighbouring elements", lambda out=out: op(A, B, out=out))
        assert str(tuple(out.stride())) in str(message)


# --- devices ---------------------------------------------------------------------------------------------------------


def test_a_mix_of_devices_names_the_operand_and_both(op: Operator) -> None:
    meta = torch.device("meta")
    for call in (lambda: op(A, B.to(meta)), lambda: op(A.to(meta), B)):
        assert re.search("a on (cpu|meta), b on (meta|cpu)", str(refused("b must be on the device of a", call)))
    refused("c must be on the device of a", lambda: op(A, B, C.to(meta), 1.0, 1.0))
    refused("out must be on the device of a", lambda: op(A, B, out=C.to(meta)))
    refused("out must be on the device of a", lambda: op(A.to(meta), B.to(meta), out=C))


def test_a_mix_with_a_gpu_that_is_not_here(op: Operator) -> None:
    with FakeTensorMode(allow_non_fake_inputs=True):
        a, b = torch.empty(4, 3, device="cuda:0"), torch.empty(3, 5, device="cuda:0")
        refused("b must be on the device of a\n  got: a on cuda:0, b on cpu", lambda: op(a, torch.empty(3, 5)))
        refused("got: a on cuda:0, c on cuda:1", lambda: op(a, b, torch.empty(5, device="cuda:1"), 1.0, 1.0))
        assert op(a, b).device == torch.device("cuda:0")


# --- derivatives -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["a", "b", "c", "out"])
def test_no_operand_may_require_grad(op: Operator, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operands = {"a": A, "b": B, "c": C, "out": torch.empty(4, 5)}
    operands[which] = operands[which].clone().requires_grad_()
    refused(f"{which} must not require grad", lambda: op(**operands))
    launches = []
    monkeypatch.setattr("layoutgen.run.on_cpu", lambda *_: launches.append(1))
    with torch.no_grad():
        op(**operands)
    with torch.inference_mode():
        op(**operands)
    assert launches == [1, 1]


def test_no_transform_may_differentiate(op: Operator) -> None:
    """These hide requires_grad from the kernels below, and would answer with zeros."""
    refused("a must not require grad", lambda: torch.func.grad(lambda a: op(a, B).sum())(A))
    refused("b must not require grad", lambda: torch.func.jvp(lambda b: op(A, b), (B,), (B,)))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(C, C)
        refused("c must not require grad", lambda: op(A, B, dual, 1.0, 1.0))


# --- memory that out shares with an operand --------------------------------------------------------------------------


def test_out_may_not_share_an_element_with_what_is_read(op: Operator) -> None:
    square, more = torch.ones(8, 8), torch.ones(80)
    refused("out must not overlap a", lambda: op(square, square.clone(), out=square))
    refused("out must not overlap b", lambda: op(square.clone(), square, out=square))
    refused("out must not overlap a", lambda: op(square.t(), square.clone(), out=square))
    refused("out must not overlap a", lambda: op(more[:64].view(8, 8), square, out=more[16:].view(8, 8)))
    low, high = more[:64].view(8, 8), more[8:72].view(8, 8)
    refused("out must not overlap c", lambda: op(square, square, high, 1.0, 1.0, out=low))
    refused("out must not overlap c", lambda: op(square, square, more[:8], 1.0, 1.0, out=low))
    refused("out must not overlap c", lambda: op(*2 * (square.clone(),), square.t(), 1.0, 1.0, out=square))
    wide = torch.ones(8, 17)
    refused("out must not overlap a", lambda: op(wide[:, :9], torch.ones(9, 8), out=wide[:, 8:16]))


def elements(view: Tensor) -> set[int]:
    """Where a view's elements lie in its storage."""
    (rows, columns), (pitch, step) = view.shape, view.stride()
    return {view.storage_offset() + i * pitch + j * step for i, j in itertools.product(range(rows), range(columns))}


@pytest.mark.parametrize("pitch", [1, 3, 4])
def test_overlap_is_exact_for_rows_of_one_pitch(pitch: int) -> None:
    flat, extents = torch.zeros(40), list(itertools.product((1, 2, 3), range(1, pitch + 1)))
    for mine, its, distance in itertools.product(extents, extents, range(-9, 10)):
        out, other = flat.as_strided(mine, (pitch, 1), 9), flat.as_strided(its, (pitch, 1), 9 + distance)
        shared = bool(elements(out) & elements(other))
        assert _overlap(out, other) == _overlap(out, other.t()) == shared, (mine, its, distance)


@given(st.data())
def test_overlap_is_never_missed(data: st.DataObject) -> None:
    flat = torch.zeros(80)

    def view(pitches: st.SearchStrategy[int], steps: st.SearchStrategy[int]) -> Tensor:
        pitch, step, offset = data.draw(pitches), data.draw(steps), data.draw(st.integers(0, 20))
        rows, columns = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 5))
        return flat.as_strided((rows, columns), (pitch, step), offset)

    out, other = view(st.integers(5, 9), st.just(1)), view(st.integers(0, 9), st.integers(0, 3))
    if elements(out) & elements(other):
        assert _overlap(out, other) and _overlap(out, other.t())


def test_a_saved_tensor_that_out_overwrites_is_noticed(op: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layoutgen.run.on_cpu", lambda *_: None)
    x = torch.ones(4, 5, requires_grad=True)
    y = x.exp()  # keeps y for its backward
    op(A, B, out=y.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_lazily_negated_out_is_not_written_with_the_wrong_sign(op: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's dispatcher resolves it into a copy, and finds that it can't go back."""
    monkeypatch.setattr("layoutgen.run.on_cpu", lambda plan, problem, tensors: tensors["d"].fill_(1.0))
    out = torch.zeros(4, 5)
    with pytest.raises(RuntimeError):
        op(A, B, out=torch._neg_view(out))
    assert not out.any()


# --- size ------------------------------------------------------------------------------------------------------------


def test_a_problem_too_slow_for_the_simulator_names_the_estimate(op: Operator) -> None:
    big = torch.ones(1, 1).expand(8192, 8192)
    error = refused("operands on the CPU run in the simulator", lambda: op(big, big))
    seconds = re.search(r"M, N, K = 8192, 8192, 8192: an estimated (\d+) s", error.got or "")
    assert seconds and int(seconds[1]) > 60 and error.allowed == "60 s"
    small = torch.ones(1, 1).expand(8192, 64)  # of the same result: the time is that of the whole product
    with pytest.raises(pytest.fail.Exception, match="launched"):
        op(small, small.t())
    with pytest.raises(pytest.fail.Exception, match="launched"):
        op(big, big, alpha=0.0)


def test_extents_beyond_32_bits(op: Operator) -> None:
    one = torch.ones(1, 1)
    refused("M must fit a 32-bit index", lambda: op(one.expand(2**31, 1), one))
    refused("N must fit a 32-bit index", lambda: op(one, one.expand(1, 2**31)))
    refused("K must fit a 32-bit index", lambda: op(one.expand(1, 2**31), one.expand(2**31, 1)))


def test_more_tiles_than_a_grid_has_blocks(op: Operator) -> None:
    one, long = torch.ones(1, 1), 2**31 - 2048
    refused("no more tiles than a grid has blocks", lambda: op(one.expand(long, 1), one.expand(1, long)))
