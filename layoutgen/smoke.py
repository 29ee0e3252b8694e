"""A built operator's first run: random matrices against float64 and, on a GPU, its speed beside torch's."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import lcm
from typing import TYPE_CHECKING, Any

from layoutgen import build
from layoutgen.errors import BuildError
from layoutgen.plan import Plan
from layoutgen.plan.storage import ITEMSIZE
from layoutgen.rounding import EACH_STEP, Types
from layoutgen.spec import Spec

if TYPE_CHECKING:
    import torch

SIMULATOR = "CPU simulator"
TIMED_CALLS = 15

Shape = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Smoke:
    """What the first run showed.

    Attributes:
        where: the GPU's name, or SIMULATOR.
        shapes: the (M, N, K) that ran, all by the primary variant.
        max_error: the largest |d - a b| / (|a| |b|) of any element, a b and |a| |b| in float64; with an epilogue, of
            what it makes of them.
        tflops, torch_tflops: 10^12 operations a second at the last shape, of the operator and of torch.mm, f32 in full
            ("highest"), and its own operations for the epilogue: medians of calls that alternate, each with a cold L2
            cache. None in the simulator, and of types that torch.mm doesn't multiply.
    """

    where: str
    shapes: tuple[Shape, ...]
    max_error: float
    tflops: float | None = None
    torch_tflops: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {**asdict(self), "shapes": [list(shape) for shape in self.shapes]}

    @classmethod
    def from_json(cls, data: Any) -> Smoke:
        """What `to_json` made. Raises KeyError, TypeError or ValueError for anything else."""
        speeds = (None if data[key] is None else float(data[key]) for key in ("tflops", "torch_tflops"))
        shapes = tuple((int(m), int(n), int(k)) for m, n, k in data["shapes"])
        return cls(str(data["where"]), shapes, float(data["max_error"]), *speeds)


def shapes(plan: Plan, *, on_gpu: bool) -> tuple[Shape, ...]:
    """Problems that the variant takes: one with ragged tiles in every mode, one of whole tiles, on a GPU two large."""
    block_m, block_n, block_k = plan.tile.block
    unit = {"m": 1, "n": 1, "k": 1}
    needs = plan.requirements
    for need, dtype in ((needs.a, plan.a.dtype), (needs.b, plan.b.dtype), (needs.c, plan.dtype)):
        if need.contiguous is not None:
            unit[need.contiguous] = lcm(unit[need.contiguous], max(need.align // ITEMSIZE[dtype], 1))

    def up(mode: str, extent: int) -> int:
        return -(-extent // unit[mode]) * unit[mode]

    ragged = (up("m", block_m + 2), up("n", block_n // 2 + 5), up("k", 2 * block_k + 1))
    whole = (block_m, block_n, 4 * block_k)
    return (ragged, whole, *(((1024,) * 3, (4096,) * 3) if on_gpu else ()))


def smoke(spec: Spec, plans: tuple[Plan, ...]) -> Smoke:
    """Run the spec's operator, the primary variant, on the GPU here or in the simulator.

    Raises BuildError where a result is further from float64 than rounding explains.
    """
    import torch

    from layoutgen.fused import applied, off, random_tensors, unfused
    from layoutgen.ops import Operator

    on_gpu = build.current_arch() is not None and torch.cuda.is_available()
    device = torch.device("cuda" if on_gpu else "cpu")
    where = torch.cuda.get_device_name() if on_gpu else SIMULATOR
    operator, todo = Operator(spec, plans), shapes(plans[0], on_gpu=on_gpu)
    random = torch.Generator(device).manual_seed(0)
    worst = 0.0
    for shape in todo:
        a, b = operands(plans[0], shape, random)
        fused = random_tensors(plans[0], shape, random)
        read = {each.name: fused[each.name] for each in plans[0].epilogue.tensors if not each.written}
        result = operator.eager(a, b, **read)
        d = result[0] if isinstance(result, tuple) else result
        exact_a, exact_b = a.double(), b.double()
        error = off(d, *applied(plans[0], exact_a @ exact_b, exact_a.abs() @ exact_b.abs(), read))
        allowed = Types.of(plans[0]).allowed(shape[2] + 1) + len(plans[0].epilogue.chain) * EACH_STEP
        if not error <= allowed:  # also where it is NaN
            raise BuildError(
                "the operator's result is as near to float64 as its rounding allows",
                got=f"{spec.name} ({plans[0].variant}) is off by {error:.1e} of |a| |b| at {_by(shape)} on {where}",
                allowed=f"{allowed:.1e}: what rounding explains of a sum of {shape[2]} products",
                fix="report it with the spec: layoutgen is at fault, or the machine",
            )
        worst = max(worst, error)
    if not on_gpu:
        return Smoke(where, todo, worst)
    m, n, k = todo[-1]
    operations = 2e-12 * m * n * k
    if a.is_floating_point() and a.element_size() > 1:
        mine, theirs = _seconds(lambda: operator.eager(a, b, **read), lambda: unfused(plans[0], a, b, read))
        return Smoke(where, todo, worst, operations / mine, operations / theirs)
    (mine,) = _seconds(lambda: operator.eager(a, b, **read))  # torch.mm has no such types
    return Smoke(where, todo, worst, operations / mine)


def operands(plan: Plan, shape: Shape, random: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """a (M, K) and b (K, N), uniform on (-1, 1) or integers up to 100, contiguous in the variant's modes.

    Of tf32, the low 13 bits are zero.
    """
    import torch

    from layoutgen.operands import TORCH

    m, n, k = shape

    def matrix(rows: int, columns: int, dtype: str) -> torch.Tensor:
        values = torch.rand(rows, columns, generator=random, device=random.device).mul_(2).sub_(1)
        if dtype == "tf32":
            return (values.view(torch.int32) & -(1 << 13)).view(torch.float32)
        kind = TORCH[dtype]
        return values.to(kind) if kind.is_floating_point else values.abs_().mul_(100).to(kind)

    of_a, of_b = plan.a.dtype, plan.b.dtype
    a = matrix(k, m, of_a).t() if plan.requirements.a.contiguous == "m" else matrix(m, k, of_a)
    b = matrix(n, k, of_b).t() if plan.requirements.b.contiguous == "k" else matrix(k, n, of_b)
    return a, b


def _seconds(*calls: Callable[[], object]) -> list[float]:
    """The median seconds of each call on the GPU; the calls alternate, so that all meet the same clocks."""
    import torch

    flush = torch.empty(2 * build.Device().l2_bytes, dtype=torch.uint8, device="cuda")
    times: list[list[float]] = [[] for _ in calls]
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        for _ in range(TIMED_CALLS + 2):
            for call, own in zip(calls, times, strict=True):
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                flush.zero_()
                start.record()
                call()
                end.record()
                end.synchronize()
                own.append(start.elapsed_time(end) / 1e3)
    finally:
        torch.set_float32_matmul_precision(precision)
    return [statistics.median(own[2:]) for own in times]  # the first two warm up


def _by(shape: Shape) -> str:
    return "x".join(map(str, shape))
