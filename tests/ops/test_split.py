"""f32 as sums of narrower terms: as near to float64 as f32 is, and Inf and NaN just where they belong."""

from __future__ import annotations

import math
from typing import get_args

import pytest
import torch

from layoutgen.errors import PlanError
from layoutgen.ops import Operator
from layoutgen.plan import plan
from layoutgen.plan.mma import SPLIT
from layoutgen.plan.model import Promote
from layoutgen.spec_fields import Split
from tests.kernels.small import SMALL
from tests.plan.drafts import Draft

INF, NAN = math.inf, math.nan
FIELDS = {word: SMALL[word][0] | {"name": word, "warps": "(1,2):(0,1)"} for word in ("tf32x3", "bf16x6")}
LEAST = {"tf32x3": 2.0**-136, "bf16x6": 2.0**-133}  # above zero, in the type of the terms


@pytest.fixture(scope="module", params=list(FIELDS))
def op(request: pytest.FixtureRequest) -> Operator:
    spec = Draft(**FIELDS[request.param]).spec()
    return Operator(spec, plan(spec))


def product(op: Operator, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    d = op.eager(a, b)
    assert isinstance(d, torch.Tensor)
    return d


@pytest.mark.parametrize("kind", ["uniform", "positive", "wide"])
@pytest.mark.parametrize("k", [64, 1024])
def test_errors_are_those_of_f32(op: Operator, kind: str, k: int) -> None:
    """At most 2^-20 of |a| |b|, where one of tf32 would be off by 2^-11, and two products by 2^-12 and more."""
    random = torch.Generator().manual_seed(k)
    a, b = (torch.rand(*shape, generator=random) for shape in ((32, k), (k, 64)))
    if kind != "positive":
        a, b = a * 2 - 1, b * 2 - 1
    if kind == "wide":
        a, b = ((torch.randn(x.shape, generator=random) * 3).exp() * x.sign() for x in (a, b))
    size = a.double().abs() @ b.double().abs()
    assert ((product(op, a, b).double() - a.double() @ b.double()).abs() / size).max() < 2.0**-20


def test_what_promotion_rounds_is_not_lost(op: Operator) -> None:
    """Quarters beside 2^24, whose sums in plain f32 they would all leave as it is: but for those of the first k-tile,
    which atoms add to it, what a promotion leaves out goes into the next."""
    k = 32 * 16
    a, b = torch.full((1, k), 0.25), torch.ones(k, 64)
    a[0, 0] = 2.0**24
    exact = (a.double() @ b.double())[0, 0].item()
    assert exact - 9 < product(op, a, b)[0, 0].item() <= exact + 1 and exact > 2.0**24 + 100


def test_inf_and_nan_stay_in_their_rows_and_columns(op: Operator) -> None:
    random = torch.Generator().manual_seed(3)
    a, b = torch.rand(70, 48, generator=random) + 0.5, torch.rand(48, 136, generator=random) - 0.5
    b[:, ::3] = 1.0  # no low part: beside it, Inf times zero
    a[0, 0], a[3, 5], a[7, 7], b[9, 11], b[4, 130] = INF, -INF, NAN, INF, NAN
    a[9, :2] = torch.tensor([INF, -INF])
    d, plain = product(op, a, b), a @ b
    for what in (torch.isnan, torch.isposinf, torch.isneginf):
        assert torch.equal(what(d), what(plain))
    fine = plain.isfinite()
    clean = (a.double().nan_to_num(0, 0, 0) @ b.double().nan_to_num(0, 0, 0))[fine]
    assert (d.double()[fine] - clean).abs().max() < 1e-4


def test_every_nan_is_seen(op: Operator) -> None:
    """Whatever its bits: rounding must not turn one into a number."""
    for bits in (0x7F800001, 0x7FFFFFFF, 0x7FC00000, 0xFFFFFFFF - 2**32, 0xFF800001 - 2**32):
        a = torch.ones(2, 32)
        a[1, 3] = torch.tensor(bits, dtype=torch.int32).view(torch.float32)
        d = product(op, a, torch.ones(32, 64))
        assert d[1].isnan().all() and (d[0] == 32).all()


def test_the_largest_numbers_do_not_overflow(op: Operator) -> None:
    """Those that rounding to the terms' type would take to Inf are cut instead."""
    largest = torch.finfo(torch.float32).max
    a, b = torch.zeros(2, 32), torch.zeros(32, 64)
    a[0, 0], b[0, 0], b[0, 1] = largest, 1.0, 0.5
    a[1, 1], b[1, 2] = largest, 2.0
    d = product(op, a, b)
    assert abs(d[0, 0].item() / largest - 1) < 2.0**-20 and abs(d[0, 1].item() / largest - 0.5) < 2.0**-20
    assert d[1, 2] == INF and d[0, 2] == 0


def test_denormal_numbers_lose_their_low_parts_alone(op: Operator) -> None:
    """Their low parts are denormal numbers of the terms' type: errors stay below the least of these."""
    random = torch.Generator().manual_seed(5)
    a, b = (torch.rand(32, 32, generator=random) + 0.5) * 2.0**-124, torch.ones(32, 64)
    error = (product(op, a, b).double() - a.double() @ b.double()).abs().max()
    least = LEAST[op.spec.name]
    assert error < 32 * least
    a = torch.full((32, 32), 2.0**-140)
    assert (product(op, a, b).double() - 2.0**-135).abs().max() <= 32 * least


def test_atoms_promote_at_the_end_of_a_tile() -> None:
    program = plan(Draft(**FIELDS["tf32x3"]).spec())[0].program
    assert [type(step) for step in program.steady].count(Promote) == 1 and isinstance(program.steady[-1], Promote)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"atom": "SM80_16x8x16_F32BF16BF16F32_TN"}, "the terms into which numbers are split are of the type"),
        ({"atom": None, "values": ("4", "4")}, "numbers are split for an atom that multiplies their terms"),
        ({"dtypes": ("tf32", "f32", "f32")}, "operands must be of the types that the atom multiplies"),
    ],
)
def test_refusals(change: dict[str, object], rule: str) -> None:
    with pytest.raises(PlanError, match=rule):
        plan(Draft(**(FIELDS["tf32x3"] | change)).spec())  # type: ignore[arg-type]


def test_what_lies_beyond_the_edges_does_not_show(op: Operator) -> None:
    """The simulator fills shared memory with NaN, a GPU leaves in it what was there: neither may ask for guards, whose
    sums have other bits."""
    random = torch.Generator().manual_seed(9)
    a, b = torch.rand(32, 160, generator=random), torch.rand(160, 64, generator=random) - 0.5
    whole, part = product(op, a, b), product(op, a[:17], b[:, :24].contiguous())
    assert torch.equal(whole[:17, :24], part)


@pytest.mark.parametrize("word", list(FIELDS))
@pytest.mark.parametrize("also", [{"epilogue": ("bias", "residual")}, {"kind": "stream_k"}], ids=str)
def test_what_else_a_spec_may_have(word: str, also: dict[str, object]) -> None:
    """Steps that read what belongs to columns, and shared tiles: the text has one scope for each pass."""
    spec = Draft(**(FIELDS[word] | also)).spec()  # type: ignore[arg-type]
    operator = Operator(spec, plan(spec))
    random = torch.Generator().manual_seed(11)
    a, b = torch.rand(40, 48, generator=random), torch.rand(48, 72, generator=random)
    fused = {"bias": torch.rand(72), "residual": torch.rand(40, 72)} if "epilogue" in also else {}
    d = operator.eager(a, b, **fused)
    assert isinstance(d, torch.Tensor)
    assert (d - sum(fused.values(), a @ b)).abs().max() < 1e-4


def test_every_word_says_what_the_terms_are() -> None:
    assert set(get_args(Split)) == set(SPLIT)


def test_an_amd_gpu_splits_nothing() -> None:
    change = {"arch": "gfx942", "atom": "v_mfma_f32_16x16x4_f32"}
    with pytest.raises(PlanError, match="numbers are split for the tensor cores of NVIDIA's GPUs"):
        plan(Draft(**(FIELDS["tf32x3"] | change)).spec())  # type: ignore[arg-type]
