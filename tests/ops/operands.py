"""Operands for the operator's tests, on any device: views in a sea of NaN, with the float64 reference and its bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import lcm
from typing import Literal

import torch
from torch import Tensor

from layoutgen import paths, run
from layoutgen import spec as spec_module
from layoutgen.check import require_legal
from layoutgen.emitted import emitted_specs
from layoutgen.operands import TORCH
from layoutgen.ops import Operator
from layoutgen.plan import Plan
from layoutgen.plan.model import OperandRequirement
from layoutgen.plan.storage import ITEMSIZE
from tests.elements import allowed

U = 2.0**-24  # unit roundoff of float32
CANARY = -12345.0
INTEGERS = {True: 99, False: 77}  # in place of a canary, and of NaN
EVERY = tuple(emitted_specs())
_MMA = sorted(paths.specs().glob("mma/*.yaml"))
FUSED = tuple(path.stem for path in _MMA if spec_module.load(path).epilogue)
TENSOR = tuple(path.stem for path in _MMA if path.stem not in FUSED)
SPECS = tuple(name for name in EVERY if name not in TENSOR + FUSED)  # all in f32

Contiguous = Literal["rows", "columns"] | None  # the mode whose stride is 1
CForm = Literal["none", "full", "pitched", "row", "column", "scalar", "1xN", "transposed", "out"]


@dataclass(frozen=True, slots=True)
class Case:
    """One call. K and N are rounded up to what the variant takes; `out` asks for a pitched out in a sea of canaries."""

    m: int
    n: int
    k: int
    alpha: float = 1.0
    beta: float = 0.0
    c: CForm = "none"
    out: bool = False

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}-a{self.alpha}-b{self.beta}-c:{self.c}{'-out' if self.out else ''}"


@cache
def plans(name: str) -> tuple[Plan, ...]:
    """The plans of a spec that comes with layoutgen; nothing is registered."""
    return require_legal(spec_module.load(paths.find_spec(name)), run.default_device()).plans


@cache
def only(name: str, variant: str) -> Operator:
    """A spec's operator with one variant and no other, not registered."""
    plan = next(plan for plan in plans(name) if plan.variant == variant)
    return Operator(spec_module.load(paths.find_spec(name)), (plan,))


def fit(case: Case, plan: Plan) -> tuple[int, int, int]:
    """The case's M, N and K, rounded up to the lengths that the variant's alignment asks for."""
    unit = {"m": 1, "n": 1, "k": 1}
    of = plan.requirements
    for need, dtype in ((of.a, plan.a.dtype), (of.b, plan.b.dtype), (of.c, plan.dtype)):
        if need.contiguous is not None:
            unit[need.contiguous] = lcm(unit[need.contiguous], run_of(need, dtype))

    def up(mode: str, extent: int) -> int:
        return -(-extent // unit[mode]) * unit[mode]

    return up("m", case.m), up("n", case.n), up("k", case.k)


def run_of(need: OperandRequirement, dtype: str) -> int:
    """Elements that the alignment holds."""
    return max(1, need.align // ITEMSIZE[dtype])


def uniform(generator: torch.Generator, *shape: int) -> Tensor:
    """Uniform on (-1, 1), on the generator's device."""
    return torch.rand(shape, generator=generator, device=generator.device).mul_(2).sub_(1)


def matrix(
    generator: torch.Generator, rows: int, columns: int, contiguous: Contiguous, align: int = 1,
    fill: float = float("nan"), dtype: str = "f32",
) -> Tensor:  # fmt: skip
    """(rows, columns), uniform on (-1, 1) as far as the type has such values, in a sea of `fill`.

    The named mode is contiguous; None: neither. Offset and pitch are multiples of `align` elements; where that is 1, of
    no more.
    """
    outer, inner = (columns, rows) if contiguous == "rows" else (rows, columns)
    if contiguous is None:
        sea = filled(fill, dtype, generator.device, 2 * outer + 3, 3 * inner + 3)
        view = sea[1 : 1 + 2 * outer : 2, 1 : 1 + 3 * inner : 3]
    else:
        pitch = -(-(inner + align) // align) * align
        pitch += align if align == 1 and pitch % 2 == 0 else 0
        sea = filled(fill, dtype, generator.device, outer * pitch + pitch + align)
        view = sea.as_strided((outer, inner), (pitch, 1), align)
    view.copy_(elements(generator, dtype, outer, inner))
    return view.t() if contiguous == "rows" else view


def elements(generator: torch.Generator, dtype: str, *shape: int) -> Tensor:
    """`uniform` as elements of a type, of which tensor cores leave nothing out."""
    values = uniform(generator, *shape)
    if dtype == "tf32":
        return (values.view(torch.int32) & -(1 << 13)).view(torch.float32)
    if not TORCH[dtype].is_floating_point:
        return (values.abs_() if dtype == "u8" else values).mul_(100).round_().to(TORCH[dtype])
    return values.to(TORCH[dtype])


def filled(fill: float, dtype: str, device: torch.device, *shape: int) -> Tensor:
    """A tensor of `fill`, or of a number that stands for it where the type has none like it."""
    if not TORCH[dtype].is_floating_point:
        fill = INTEGERS[fill == CANARY]
    elif fill == CANARY:
        fill = canary(TORCH[dtype])
    return torch.full(shape, fill, device=device).to(TORCH[dtype])


def canary(dtype: torch.dtype) -> float:
    """CANARY, or what stands for it in a type that has no such number."""
    return float(INTEGERS[True]) if not dtype.is_floating_point or dtype.itemsize == 1 else CANARY


def operands(
    case: Case, plan: Plan, device: str = "cpu", seed: int = 0
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """a, b, c and out for a call that the variant takes. Where beta is 0, c and out hold NaN."""
    m, n, k = fit(case, plan)
    generator = torch.Generator(device).manual_seed(seed)
    need = plan.requirements
    a = matrix(generator, m, k, *_shape_of(need.a, "m", "k", plan.a.dtype), dtype=plan.a.dtype)
    b = matrix(generator, k, n, *_shape_of(need.b, "k", "n", plan.b.dtype), dtype=plan.b.dtype)
    run = run_of(need.c, plan.dtype)
    out = matrix(generator, m, n, "columns", run, CANARY, plan.dtype) if case.out or case.c == "out" else None
    c = _c(case.c, generator, m, n, run, out, plan.dtype)
    if case.beta == 0.0:
        for tensor in (c, out):
            if tensor is not None:
                tensor.fill_(float("nan") if tensor.is_floating_point() else INTEGERS[False])
    return a, b, c, out


def _shape_of(need: OperandRequirement, rows: str, columns: str, dtype: str = "f32") -> tuple[Contiguous, int]:
    """`contiguous` and `align` of a matrix with these modes, no better than required."""
    named: dict[str | None, Contiguous] = {rows: "rows", columns: "columns", None: None}
    return named[need.contiguous], run_of(need, dtype)


def like(view: Tensor, need: OperandRequirement, rows: str, columns: str) -> Tensor:
    """The matrix's values, laid out no better than the requirement asks."""
    generator = torch.Generator(view.device).manual_seed(0)
    return matrix(generator, *view.shape, *_shape_of(need, rows, columns)).copy_(view)


def _c(
    form: CForm, generator: torch.Generator, m: int, n: int, align: int, out: Tensor | None, dtype: str
) -> Tensor | None:
    if form in ("none", "out"):
        return out if form == "out" else None
    if form == "transposed":
        return elements(generator, dtype, n, m).t()
    if form == "pitched":
        return matrix(generator, m, n, "columns", align, dtype=dtype)
    return elements(
        generator, dtype, *{"full": (m, n), "row": (n,), "column": (m, 1), "scalar": (), "1xN": (1, n)}[form]
    )


def reference(a: Tensor, b: Tensor, c: Tensor | None, alpha: float, beta: float) -> tuple[Tensor, Tensor]:
    """alpha a b + beta c in float64, and the sum of the magnitudes that it is made of; what isn't read adds nothing."""
    exact = torch.zeros(a.shape[0], b.shape[1], dtype=torch.float64, device=a.device)
    scale = exact.clone()
    if alpha != 0.0:
        exact += alpha * (a.double() @ b.double())
        scale += abs(alpha) * (a.double().abs() @ b.double().abs())
    if beta != 0.0:
        assert c is not None
        exact += beta * c.double()
        scale += (beta * c.double()).abs()
    return exact, scale


def assert_near(d: Tensor, exact: Tensor, scale: Tensor, k: int, plan: Plan | None = None) -> None:
    """Each element of d is within the rounding of a chain of K multiply-adds and the two operations after it; of a
    plan, within what its types and atoms allow.

    |d - exact| <= (K + 3) 2^-24 scale to first order (Higham, Accuracy and Stability of Numerical Algorithms, 3.1).
    """
    assert d.shape == exact.shape and d.dtype == TORCH["f32" if plan is None else plan.dtype]
    bound = (k + 4) * U * scale + 1e-40
    if plan is not None and plan.uses_atoms:
        bound = torch.from_numpy(allowed(plan, k, exact.cpu().numpy(), scale.cpu().numpy())).to(d.device)
    bad = ~((d.double() - exact).abs() <= bound)
    if bad.any():
        i, j = bad.nonzero()[0].tolist()
        raise AssertionError(f"d[{i}, {j}] = {d[i, j]}, not {exact[i, j]}; {int(bad.sum())} of {bad.numel()} are wrong")


def assert_right(operator: Operator, case: Case, plan: Plan, device: str = "cpu") -> None:
    """Run a case through one variant: the result, and the canaries around out."""
    a, b, c, out = operands(case, plan, device)
    alpha, beta = scalars(case, plan)
    exact, scale = reference(a, b, c, alpha, beta)
    if out is None:
        assert_near(operator.eager(a, b, c, alpha, beta), exact, scale, a.shape[1], plan)
        return
    operator.eager_out(a, b, c, alpha, beta, out=out)
    assert_near(out, exact, scale, a.shape[1], plan)
    assert_untouched(out)


def scalars(case: Case, plan: Plan) -> tuple[float, float]:
    """Alpha and beta, whole numbers where the plan scales integers, and 0 where they are."""
    if plan.scalar != "i32":
        return case.alpha, case.beta
    alpha, beta = (math.copysign(math.ceil(abs(each)), each) if each else 0.0 for each in (case.alpha, case.beta))
    return alpha, beta


def assert_untouched(out: Tensor) -> None:
    """Every element of out's storage outside out is a canary. Overwrites out."""
    out.fill_(canary(out.dtype))
    assert bool((storage(out) == torch.tensor(canary(out.dtype)).to(out.dtype).to(out.device)).all())


def storage(view: Tensor) -> Tensor:
    """All of a view's memory as a vector."""
    return view.new_empty(0).set_(view.untyped_storage())


def on_device(view: Tensor, device: str) -> Tensor:
    """The same view of a copy of its storage on another device."""
    return storage(view).to(device, copy=True).as_strided(view.shape, view.stride(), view.storage_offset())


def every_variant(*names: str) -> Iterator[tuple[str, str]]:
    """(spec, variant) of all variants of the named specs."""
    return ((name, plan.variant) for name in names for plan in plans(name))
