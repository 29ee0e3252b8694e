"""Runs a plan's kernel in the simulator, under every schedule, over memory that punishes a stray read or write.

Operands are placed twice. "fenced": each buffer is the view alone, so that touching anything else is an error.
"poisoned": the views lie in larger buffers of NaN, and D in a canary, so that a stray read shows in the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import lcm
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from layoutgen import build, run, sim
from layoutgen.emit import emit
from layoutgen.errors import SimError
from layoutgen.plan import Plan
from layoutgen.plan.storage import ITEMSIZE
from layoutgen.problem import Problem, View, of_modes
from tests.chain import applied, stored
from tests.elements import as_bytes, from_bytes, of_sums, representable

Matrix = NDArray[Any]  # elements as they lie in memory, unsigned integers of their width
ARCH = "sm_90a"
CANARY = 0x3B  # of every byte


@dataclass(frozen=True, slots=True)
class Case:
    """One problem: extents, scale factors, how its operands are placed, and for how many blocks there is room."""

    m: int
    n: int
    k: int
    alpha: float = 1.0
    beta: float = 0.0
    placed: Literal["fenced", "poisoned"] = "fenced"
    slots: int = 1


@dataclass(frozen=True, slots=True)
class Schedule:
    """One way in which a GPU might run a kernel."""

    landing: Literal["early", "late"]
    order: Literal["lockstep"] | int
    races: bool = False

    def options(self) -> sim.Options:
        return sim.Options(
            async_landing=self.landing, warp_order=self.order, races=self.races, count=False, limit=ENDLESS
        )


ENDLESS = 10_000  # turns of a loop, of which no case has more than a hundred

SCHEDULES = tuple(Schedule(landing, order) for landing in ("early", "late") for order in ("lockstep", 1)) + (
    Schedule("late", "lockstep", races=True),
)


def schedules(plan: Plan) -> tuple[Schedule, ...]:
    """Those that differ for a plan: copies that no cp.async makes land at once, and threads that share no memory never
    meet."""
    landings = {"late"} if all(each.copy.atom.through_registers for each in plan.operands) else {"early", "late"}
    orders = {"lockstep", 1} if plan.stages else {"lockstep"}
    return tuple(each for each in SCHEDULES if each.landing in landings and each.order in orders)


@cache
def kernel(plan: Plan) -> sim.Kernel:
    """The plan's kernel from the cache of built artifacts."""
    source = emit(plan)
    artifact = build.build(source.text, source.launch.kernel, ARCH)
    return sim.parse(artifact.ptx).kernels[source.launch.kernel]


def compile_together(plans: list[Plan]) -> list[sim.Kernel]:
    """Mutants' kernels: to PTX and no further, and not kept. Each has a namespace in one source, since most of the time
    goes into CuTe's headers."""
    includes: dict[str, None] = {}
    spaces = []
    for number, plan in enumerate(plans):
        source = emit(plan)
        lines = source.text.splitlines()
        includes |= dict.fromkeys(line for line in lines if line.startswith("#include"))
        own = "\n".join(line for line in lines if not line.startswith("#include"))
        named, count = re.subn(rf"^void {source.launch.kernel}\(", f"void kernel_{number}(", own, flags=re.MULTILINE)
        assert count == 1
        spaces.append(f"namespace of_{number} {{\n{named}\n}}")
    ptx = build.compile_ptx("\n".join([*includes, *spaces]), "mutants", ARCH)
    kernels = sim.parse(ptx.text).kernels
    return [kernels[f"kernel_{number}"] for number in range(len(plans))]


def _matrix(
    rng: np.random.Generator, rows: int, columns: int, contiguous: Literal["rows", "columns"], dtype: str
) -> tuple[Matrix, NDArray[np.float64]]:
    """(rows, columns) of uniform(-1, 1), the named mode contiguous, with a wider pitch, in a sea of NaN (of bytes all
    ones); and their values."""
    outer, inner = (rows, columns) if contiguous == "columns" else (columns, rows)
    values = representable(rng.uniform(-1, 1, (outer, inner)), dtype)
    unit = max(1, 16 // values.element_size())
    sea = np.full((outer + 8, -(-inner // unit) * unit + 2 * unit), -1, f"i{values.element_size()}")
    sea = sea.view(f"u{values.element_size()}")
    view = sea[4 : 4 + outer, unit : unit + inner]
    view[...] = as_bytes(values)
    exact = values.double().numpy()
    return (view, exact) if contiguous == "columns" else (view.T, exact.T)


def failure(plan: Plan, code: sim.Kernel, case: Case, schedule: Schedule, seed: int = 0) -> str | None:
    """Run one case under one schedule -> what went wrong, or None."""
    rng = np.random.default_rng(seed)
    need = plan.requirements
    a, of_a = _matrix(rng, case.m, case.k, "rows" if need.a.contiguous == "m" else "columns", plan.a.dtype)
    b, of_b = _matrix(rng, case.n, case.k, "rows" if need.b.contiguous == "n" else "columns", plan.b.dtype)
    c, of_c = _matrix(rng, case.m, case.n, "columns", plan.dtype)
    alpha, beta = (round(each) if plan.scalar == "i32" else each for each in (case.alpha, case.beta))
    beta = beta if plan.epilogue.reads_c else 0
    if beta == 0.0:
        c[...] = np.iinfo(c.dtype).max
    d, _ = _matrix(rng, case.m, case.n, "columns", plan.dtype)
    sea = d.base
    while isinstance(sea, np.ndarray) and isinstance(sea.base, np.ndarray):
        sea = sea.base
    assert isinstance(sea, np.ndarray)
    sea.view("u1")[...] = CANARY
    memory = sim.GlobalMemory()

    def place(name: str, view: Matrix, writable: bool = False) -> View:
        whole = view
        while case.placed == "poisoned" and isinstance(whole.base, np.ndarray):
            whole = whole.base
        address = memory.add(whole, writable=writable, name=name) + view.ctypes.data - whole.ctypes.data
        return View(address, view.shape, (view.strides[0] // view.itemsize, view.strides[1] // view.itemsize))

    views = [place("A", a), place("B", b), place("C", c), place("D", d, writable=True)]
    fused: dict[str, tuple[Matrix, NDArray[np.float64]]] = {}
    placed = []
    for tensor in plan.epilogue.tensors:
        rows, columns = (case.m if "m" in tensor.modes else 1, case.n if "n" in tensor.modes else 1)
        extents = (1, rows) if tensor.modes == "m" else (rows, columns)
        view, values = fused[tensor.name] = _matrix(rng, *extents, "columns", tensor.dtype)
        if tensor.written:
            view[...] = 0
        place_of = place(tensor.name, view, tensor.written)
        placed.append(of_modes(tensor, place_of.address, case.m, case.n, place_of.strides[0]))
    problem = Problem(case.m, case.n, case.k, *views, alpha, beta, tuple(placed))
    if not run.fits(plan, problem):
        raise ValueError(f"{plan.variant} does not take {case}: choose extents that its requirements allow")
    exact = alpha * (of_a @ of_b.T)
    scale = abs(alpha) * (abs(of_a) @ abs(of_b).T)
    if beta != 0.0:
        exact = exact + beta * of_c
        scale = scale + abs(beta * of_c)
    try:
        run.simulate(plan, problem, memory, schedule.options(), code, case.slots)
    except SimError as error:
        return str(error)
    found = from_bytes(d, plan.dtype).double().numpy()
    bad, exact = _outside(plan, found, exact, of_sums(plan, case.k, scale), fused)
    if isinstance(bad, str):
        return bad
    if bad.any():
        i, j = map(int, np.argwhere(bad)[0])
        return f"D({i},{j}) = {found[i, j]}, not {exact[i, j]:.6f}; {int(bad.sum())} of {bad.size} are wrong"
    d[...] = int.from_bytes([CANARY] * d.itemsize, "little")
    if not (sea.view("u1") == CANARY).all():
        return f"{int((sea.view('u1') != CANARY).sum())} bytes outside D were written"
    return None


def _outside(
    plan: Plan,
    found: NDArray[np.float64],
    exact: NDArray[np.float64],
    error: NDArray[np.float64],
    fused: Mapping[str, tuple[Matrix, NDArray[np.float64]]],
) -> tuple[str | NDArray[np.bool_], NDArray[np.float64]]:
    """Where D is not what the epilogue makes of sums that may be off by `error`, or what is wrong of what else it
    wrote; and what D should be."""
    modes = {tensor.name: tensor.modes for tensor in plan.epilogue.tensors}
    tensors = {name: values if modes[name] == "mn" else values.reshape(-1) for name, (_, values) in fused.items()}
    exact, error, left = applied(plan, exact, error, tensors)
    for name, (wanted, slack) in left.items():
        (dtype,) = (tensor.dtype for tensor in plan.epilogue.tensors if tensor.name == name)
        maxima = from_bytes(fused[name][0], dtype).double().numpy().reshape(-1)
        if not (abs(maxima - wanted) <= slack).all():
            return f"{name} is {maxima}, not {wanted}", exact
    low, high = stored(plan, exact, error)
    return ~((low <= found) & (found <= high)), exact


def cases(plan: Plan) -> Iterator[Case]:
    """Few problems that meet every edge: ragged m, n and k, fewer k-tiles than stages, none, several blocks, scales;
    and one of whole tiles, whose first k is not zero as that of a ragged one is.

    A variant that needs aligned rows gets extents that are multiples of what they hold; ragged all the same, but for a
    BLK_K that divides that.
    """
    block_m, block_n, block_k = plan.tile.block
    of = plan.requirements
    needs = ((of.a, plan.a.dtype), (of.b, plan.b.dtype), (of.c, plan.dtype))
    unit = max(max(need.align // ITEMSIZE[dtype], 1) for need, dtype in needs)
    many_k, ragged_k = (plan.stages + 2) * block_k + unit, 2 * block_k + (unit if unit > 1 else 3)
    many_k, ragged_k = (-(-k // unit) * unit for k in (many_k, ragged_k))
    yield Case(block_m + 4 * unit, max(block_n - max(4, unit), block_n // 2), many_k, alpha=1.5, beta=-0.5)
    yield Case(max(block_m - max(8, unit), unit), 12 * unit, ragged_k, placed="poisoned")
    yield Case(4 * unit, block_n + unit * 8, unit, beta=2.0)
    yield Case(unit, unit, 0, beta=1.0)
    yield Case(block_m, block_n, lcm(unit, block_k * (1 + plan.stages % 2)))
