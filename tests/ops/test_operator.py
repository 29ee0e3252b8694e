"""The registered operator on operands as users have them: the variant it picks, and what it returns."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

import layoutgen
from layoutgen.ops import Operator
from tests.ops.operands import CANARY, SPECS, assert_near, assert_untouched, reference, uniform

NAN = float("nan")


@pytest.fixture(scope="module")
def op() -> Operator:
    return layoutgen.load("warptile_128x128")


@pytest.fixture
def random() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def check(
    op: Operator, variant: str, a: Tensor, b: Tensor, c: Tensor | None = None, alpha: float = 1.0, beta: float = 0.0,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Call, compare with float64, and see that this variant is what a call picks."""
    exact, scale = reference(a, b, c, alpha, beta)
    assert op.variant_for(a, b, c, alpha, beta, out).variant == variant
    d = op(a, b, c, alpha, beta, out=out)
    assert_near(d, exact, scale, a.shape[1])
    return d


# --- the variant follows the strides ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a_row_major", "b_row_major", "variant"),
    [(True, True, "ak_bn"), (True, False, "ak_bk"), (False, True, "am_bn"), (False, False, "am_bk")],
)
@pytest.mark.parametrize(("m", "n", "k", "width"), [(132, 36, 20, "16B"), (130, 33, 17, "4B")])
def test_operands_in_either_order(
    op: Operator, random: torch.Generator, a_row_major: bool, b_row_major: bool, variant: str, m: int, n: int, k: int,
    width: str,
) -> None:  # fmt: skip
    a = uniform(random, m, k) if a_row_major else uniform(random, k, m).t()
    b = uniform(random, k, n) if b_row_major else uniform(random, n, k).t()
    check(op, f"{variant}_{width}", a, b)


def test_one_misaligned_operand_is_enough_for_narrow_accesses(op: Operator, random: torch.Generator) -> None:
    a, b, c = uniform(random, 20, 36), uniform(random, 36, 24), uniform(random, 20, 24)
    shifted = torch.full((36 * 24 + 1,), NAN)[1:].view(36, 24).copy_(b)
    pitched = torch.full((36, 25), NAN)[:, :24].copy_(b)
    check(op, "ak_bn_16B", a, b, c, 1.0, 1.0)
    check(op, "ak_bn_4B", a, shifted)
    check(op, "ak_bn_4B", a, pitched)
    check(op, "am_bn_4B", torch.full((36, 21), NAN)[:, 1:].copy_(a.t()).t(), b)
    check(op, "am_bn_4B", torch.full((36, 19), NAN)[:, :19].copy_(a[:19].t()).t(), b)
    check(op, "ak_bn_16B", torch.full((20, 37), NAN)[:, 1:].copy_(a), b)  # a k-contiguous a is read by words anyway
    check(op, "ak_bn_4B", a, b, torch.full((20, 25), NAN)[:, :24].copy_(c), 1.0, 1.0)
    check(op, "ak_bn_16B", a, b, torch.full((20, 25), NAN)[:, :24], 1.0, 0.0)  # c is not read
    check(op, "ak_bn_4B", a, b, out=torch.full((20, 25), NAN)[:, :24])
    check(op, "ak_bn_16B", a, b, out=torch.full((20, 28), NAN)[:, 4:])


def test_a_mode_of_one_element_has_no_stride(op: Operator, random: torch.Generator) -> None:
    row, b, tall = uniform(random, 1, 36), uniform(random, 36, 8), uniform(random, 36, 99)
    check(op, "ak_bn_16B", row.as_strided((1, 36), (1, 1)), b)
    check(op, "ak_bn_16B", uniform(random, 33, 1), tall[:1, :36])  # K = 1: neither a nor b has a stride in k
    check(op, "ak_bn_4B", uniform(random, 33, 2), tall[:2, :36])
    check(op, "am_bn_4B", uniform(random, 2, 33).t(), tall[:2, :1])  # N = 1: d has no pitch, but too short a row


def test_operands_of_which_no_stride_is_one(op: Operator, random: torch.Generator) -> None:
    a, b = uniform(random, 66, 99)[::2, ::3], uniform(random, 66, 51)[::2, ::3]
    check(op, "any", a, b)
    check(op, "any", a, uniform(random, 33, 17))
    check(op, "any", uniform(random, 17, 33), b)


def test_expanded_operands(op: Operator, random: torch.Generator) -> None:
    row, column, full = uniform(random, 1, 33), uniform(random, 33, 1), uniform(random, 33, 17)
    check(op, "ak_bn_4B", row.expand(130, 33), full)
    check(op, "am_bn_4B", column.expand(33, 33), full)
    check(op, "am_bk_4B", full.t(), column.expand(33, 5))
    check(op, "any", torch.tensor(0.5).expand(3, 33), torch.tensor(2.0).expand(33, 3))


def test_operands_that_are_one_tensor(op: Operator, random: torch.Generator) -> None:
    a = uniform(random, 36, 36)
    check(op, "ak_bn_16B", a, a, a, 1.0, 1.0)
    check(op, "ak_bk_16B", a, a.t())


@pytest.mark.parametrize("call", ["registered", "eager"])
def test_lazily_negated_operands(op: Operator, random: torch.Generator, call: str) -> None:
    """A negative bit is undone by torch's dispatcher, and by `eager`, which goes without it."""
    a, b, c = uniform(random, 5, 7), uniform(random, 7, 6), uniform(random, 5, 6)
    function = op if call == "registered" else op.eager
    expected = op(a, b, c, 1.5, 0.5)
    for negated in (
        [torch.complex(torch.zeros_like(x), x).conj().imag for x in (a, b, c)],  # every other word of a complex tensor
        [torch._neg_view(x) for x in (a, b, c)],
    ):
        assert all(x.is_neg() for x in negated)
        assert torch.equal(function(negated[0], b, c, 1.5, 0.5), op(-a, b, c, 1.5, 0.5))
        assert torch.equal(function(negated[0], negated[1], c, 1.5, 0.5), expected)
        assert torch.equal(function(a, b, negated[2], 1.5, 0.5), op(a, b, -c, 1.5, 0.5))


# --- c and out -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(130, 36), (36,), (1, 36), (130, 1), (1,), (1, 1), ()])
@pytest.mark.parametrize("strided", [False, True])
def test_c_broadcasts_as_torch_does(
    op: Operator, random: torch.Generator, shape: tuple[int, ...], strided: bool
) -> None:
    a, b = uniform(random, 130, 20), uniform(random, 20, 36)
    c = uniform(random, *(2 * extent for extent in shape))[tuple(slice(None, None, 2) for _ in shape)]
    c = c if strided else c.contiguous()
    assert c.shape == shape
    d = op(a, b, c, 0.5, 2.0)
    assert_near(d, *reference(a, b, c, 0.5, 2.0), 20)
    assert torch.equal(d, op(a, b, c.expand(130, 36).clone(), 0.5, 2.0))


def test_c_in_column_order(op: Operator, random: torch.Generator) -> None:
    check(op, "ak_bn_16B", uniform(random, 36, 20), uniform(random, 20, 12), uniform(random, 12, 36).t(), 1.0, -1.0)


def test_beta_zero_reads_neither_c_nor_out(op: Operator, random: torch.Generator) -> None:
    a, b, out = uniform(random, 33, 17), uniform(random, 17, 20), torch.full((33, 20), NAN)
    expected = op(a, b)
    assert torch.isfinite(expected).all()
    for c in (torch.full((33, 20), NAN), torch.full((20,), math.inf), out):
        assert torch.equal(op(a, b, c, 1.0, 0.0, out=out), expected)
        out.fill_(NAN)


def test_nan_and_inf_reach_the_result_where_they_belong(op: Operator) -> None:
    a, b, c = torch.ones(130, 36), torch.ones(36, 130), torch.ones(130, 130)
    a[3, 35], b[0, 5], c[7, 9] = math.inf, NAN, -math.inf
    d = op(a, b, c, 1.0, 2.0)
    expected = a @ b + 2 * c
    assert torch.equal(d.isnan(), expected.isnan())
    assert torch.equal(d[~d.isnan()], expected[~d.isnan()])


def test_alpha_zero_reads_neither_a_nor_b(op: Operator, random: torch.Generator) -> None:
    """As in BLAS: beta * c exactly, and exactly zero where beta is 0 too."""
    a, b = uniform(random, 33, 17), uniform(random, 17, 20)
    a[0, 0], a[1, 1], b[2, 2] = NAN, math.inf, -math.inf
    c = uniform(random, 33, 20)
    assert torch.equal(op(a, b, c, 0.0, 0.7), c * torch.tensor(0.7))
    assert torch.equal(op(a, b, c, -0.0, 1.0), c)
    assert torch.equal(op(a, b, c, 0.0, 0.0), torch.zeros(33, 20))
    assert torch.equal(op(a, b, alpha=0.0, out=torch.full((33, 20), NAN)), torch.zeros(33, 20))


def test_scale_factors_of_every_size(op: Operator) -> None:
    one = torch.ones(1, 1)
    assert op(one, one, alpha=math.inf).item() == math.inf
    assert math.isnan(op(one, one, alpha=NAN).item())
    assert op(one, one, one, 1.0, -math.inf).item() == -math.inf
    assert op(one, one, alpha=3.4028234663852886e38).item() == 3.4028234663852886e38
    assert op(one, one, alpha=2.0**-149).item() == 2.0**-149  # the smallest number: nothing is flushed to zero
    assert op(one, one, alpha=2).item() == 2.0


@pytest.mark.parametrize(("rows", "columns", "pitch"), [(17, 33, 40), (130, 257, 258), (257, 1, 3), (1, 130, 131)])
def test_out_leaves_its_surroundings_alone(
    op: Operator, random: torch.Generator, rows: int, columns: int, pitch: int
) -> None:
    a, b = uniform(random, rows, 17), uniform(random, 17, columns)
    out = torch.full((rows + 2, pitch), CANARY)[1:-1, 1 : 1 + columns]
    out.fill_(NAN)
    assert op(a, b, out=out) is out
    assert torch.equal(out, op(a, b))
    assert_untouched(out)


def test_c_may_be_out(op: Operator, random: torch.Generator) -> None:
    a, b, c = uniform(random, 130, 17), uniform(random, 17, 33), uniform(random, 130, 40)
    expected = op(a, b, c[:, :33].clone(), 0.5, -2.0)
    assert torch.equal(op(a, b, c[:, :33], 0.5, -2.0, out=c[:, :33]), expected)
    row = uniform(random, 1, 33)
    expected = op(a[:1], b, row.clone(), 1.0, 1.0)
    assert torch.equal(op(a[:1], b, row[0], 1.0, 1.0, out=row), expected)  # a vector that is out's only row


def test_c_that_is_not_read_may_lie_anywhere(op: Operator, random: torch.Generator) -> None:
    a, b, memory = uniform(random, 8, 17), uniform(random, 17, 8), uniform(random, 80)
    assert torch.equal(op(a, b, memory[8:72].view(8, 8), 1.0, 0.0, out=memory[:64].view(8, 8)), op(a, b))


def test_tensors_made_in_inference_mode(op: Operator, random: torch.Generator) -> None:
    with torch.inference_mode():
        a, b, out = uniform(random, 8, 17), uniform(random, 17, 8), torch.empty(8, 8)
        expected = op(a, b)
        assert op(a, b, out=out) is out and torch.equal(out, expected)
    assert torch.equal(op(a, b), expected)


def test_out_may_lie_between_the_rows_of_an_operand(op: Operator, random: torch.Generator) -> None:
    wide = uniform(random, 33, 17 + 20)
    b, c = uniform(random, 17, 20), uniform(random, 33, 20)
    expected = op(wide[:, :17].clone(), b, c, 1.0, 1.0)
    assert torch.equal(op(wide[:, :17], b, c, 1.0, 1.0, out=wide[:, 17:]), expected)


@pytest.mark.parametrize("m", [0, 1, 5])
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("k", [0, 1, 5])
def test_empty_extents(op: Operator, m: int, n: int, k: int) -> None:
    a, b, c = torch.ones(m, k), torch.ones(k, n), torch.full((m, n), 3.0)
    assert torch.equal(op(a, b), torch.full((m, n), float(k)))
    assert torch.equal(op(a, b, c, 1.0, 2.0), torch.full((m, n), k + 6.0))
    assert torch.equal(op(a, b, out=torch.full((m, n), NAN)), torch.full((m, n), float(k)))
    assert torch.equal(op(a, b, torch.ones(n), 1.0, 1.0), torch.full((m, n), k + 1.0))


def test_an_empty_result_launches_nothing(op: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layoutgen.run.on_cpu", lambda *_: pytest.fail("a launch"))
    assert op(torch.empty(0, 7), torch.ones(7, 9)).shape == (0, 9)
    assert op(torch.ones(5, 7), torch.empty(7, 0)).shape == (5, 0)


def test_the_simulated_kernel_may_write_to_the_result_alone(op: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, bool] = {}
    monkeypatch.setattr(
        "layoutgen.sim.launch", lambda _, memory, **__: seen.update({x.name: x.writable for x in memory.buffers})
    )
    op(torch.ones(3, 4), torch.ones(4, 5), torch.ones(3, 5), 1.0, 1.0)
    assert seen == {"a": False, "b": False, "c": False, "d": True}


def test_a_buffer_that_torch_did_not_allocate(op: Operator, random: torch.Generator) -> None:
    """Whatever alignment a storage itself has: numpy's and a file's bytes may begin anywhere."""
    values = uniform(random, 20, 36)
    raw = bytearray(4 + values.numel() * 4)
    a = torch.frombuffer(raw, dtype=torch.float32, offset=4).view(20, 36).copy_(values)
    assert torch.equal(op(a, values.t()), op(values, values.t()))


# --- the same bits, always -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECS)
def test_two_calls_give_the_same_bits(name: str, random: torch.Generator) -> None:
    a, b, c = uniform(random, 132, 36), uniform(random, 36, 260), uniform(random, 260)
    first, second = (layoutgen.load(name)(a, b, c, 1.1, 0.3) for _ in range(2))
    assert torch.equal(first, second)


def test_a_row_has_the_same_bits_in_any_batch(op: Operator, random: torch.Generator) -> None:
    """Whatever M is, and also where N or the alignment calls for another variant."""
    a, b = uniform(random, 257, 132), uniform(random, 132, 36)
    whole = op(a, b)
    for m in (1, 2, 17, 128, 129):
        assert torch.equal(op(a[:m], b), whole[:m])
        assert torch.equal(op(a[257 - m :], b), whole[257 - m :])
    assert torch.equal(op(a[100:101], b[:, :33]), whole[100:101, :33])
    variants = {op.variant_for(a[:m], b[:, :n]).variant for m, n in itertools.product((1, 257), (33, 36))}
    assert variants == {"ak_bn_16B", "ak_bn_4B"}


def test_keywords_in_any_order(op: Operator, random: torch.Generator) -> None:
    a, b, c = uniform(random, 17, 33), uniform(random, 33, 17), uniform(random, 17, 17)
    expected = op(a, b, c, 0.5, 2.0)
    assert torch.equal(op(beta=2.0, c=c, b=b, alpha=0.5, a=a), expected)
    assert torch.equal(torch.ops.layoutgen.warptile_128x128(b=b, a=a, beta=2.0, alpha=0.5, c=c), expected)
    out = torch.empty(17, 17)
    torch.ops.layoutgen.warptile_128x128(out=out, beta=2.0, b=b, c=c, a=a, alpha=0.5)
    assert torch.equal(out, expected)


def test_the_ladder_of_errors_is_that_of_float32(op: Operator, random: torch.Generator) -> None:
    """Not that of TF32, whatever torch's setting says: its error would be about 2^-11 of |a| |b|."""
    a, b = uniform(random, 64, 512), uniform(random, 512, 64)
    exact, scale = reference(a, b, None, 1.0, 0.0)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        error = ((op(a, b).double() - exact).abs() / scale).max().item()
    finally:
        torch.set_float32_matmul_precision(before)
    assert error < 2.0**-21
