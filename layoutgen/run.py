"""Artifact -> one launch: on the GPU that holds the operands, or in the simulator for operands on the CPU.

A problem is described once, as the kernel's parameters; both ways read the same Launch description.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from layoutgen import build, sim
from layoutgen.emit import Source, emit
from layoutgen.errors import OperandError, SimError
from layoutgen.hw.devices import DEVICES, Device, by_arch
from layoutgen.plan.model import CopyTile, LoadFragment, LoadTile, Mma, Plan, StoreTile
from layoutgen.plan.schedule import WHOLE, Streams, streams, tiles
from layoutgen.problem import Problem, View, fits

if TYPE_CHECKING:
    import torch

DEFAULT_ARCH = "sm_90a"  # what the simulator's PTX is compiled for where there is no GPU
MAX_EXTENT = 2**31 - 1024  # m, n and k are 32-bit in the kernel, and a block tile may overhang them
_ALIGN = 256  # bytes
MAX_BLOCKS = 2**31 - 1  # CUDA programming guide, maximum x-dimension of a grid
SIMULATION_LIMIT_SECONDS = 60.0
# What the simulator needs on one core for a launch, for an instruction of a batch of blocks, and for each lane of that
# batch; fitted by benchmarks/simulator.py.
LAUNCH_SECONDS, STEP_SECONDS, LANE_SECONDS = 7e-3, 1.5e-6, 3.4e-9
# Instructions of a thread, about: once, for each of its values of C, in each turn of the loop, and for each access of a
# copy in one.
BLOCK_STEPS, VALUE_STEPS, TURN_STEPS, PIECE_STEPS = 150, 5, 15, 4


def choose(plans: tuple[Plan, ...], problem: Problem) -> Plan:
    """The cheapest variant whose requirements hold; the last one takes any strides."""
    return next(plan for plan in plans if fits(plan, problem))


def grid(plan: Plan, m: int, n: int, shared: Streams = WHOLE) -> int:
    """Blocks of a launch, by what of its tiles they share."""
    tiles_m, tiles_n = tiles(plan.tile, m, n)
    return shared.grid(tiles_m * tiles_n)


def shared_tiles(plan: Plan, problem: Problem, slots: int) -> Streams:
    """What blocks share of a problem where there is room for `slots` of them at once."""
    return streams(plan.schedule, plan.tile, problem.m, problem.n, problem.depth, slots)


def flag_bytes(shared: Streams) -> int:
    """Bytes of a workspace's flags, which come first; what follows is aligned for any access."""
    return -(-4 * shared.blocks // _ALIGN) * _ALIGN


def workspace_bytes(plan: Plan, shared: Streams) -> int:
    """Bytes that a launch needs beside its operands: flags, which must be zero, and partial sums."""
    return flag_bytes(shared) + shared.blocks * source(plan).launch.workspace_bytes


def params(plan: Plan, problem: Problem, shared: Streams, workspace: int) -> tuple[Any, ...]:
    """The parameters of a launch. workspace: its address, where blocks share tiles."""
    if plan.scalar == "i32":
        problem = replace(problem, alpha=int(problem.alpha), beta=int(problem.beta))
    if plan.schedule.kind == "data_parallel":
        return problem.params(plan.epilogue.tensors)
    return (
        *problem.params(plan.epilogue.tensors),
        shared.blocks,
        shared.tiles,
        workspace + flag_bytes(shared),
        workspace,
    )


def admit(plan: Plan, m: int, n: int, k: int, *, simulated: bool) -> None:
    """Raise OperandError for a problem that is too large: for 32-bit indices, for a grid, or for the simulator."""
    for label, extent in (("M", m), ("N", n), ("K", k)):
        if extent > MAX_EXTENT:
            raise OperandError(
                f"{plan.name}: {label} must fit a 32-bit index",
                got=extent,
                allowed=f"at most {MAX_EXTENT}",
                fix="split the product into several calls",
            )
    if (blocks := grid(plan, m, n)) > MAX_BLOCKS:
        raise OperandError(
            f"{plan.name}: the result must have no more tiles than a grid has blocks",
            got=f"{blocks} tiles of {plan.tile.block[0]} x {plan.tile.block[1]}",
            allowed=f"at most {MAX_BLOCKS}",
            fix="split the product into several calls",
        )
    if simulated and (seconds := estimate_seconds(plan, m, n, k)) > SIMULATION_LIMIT_SECONDS:
        raise OperandError(
            f"{plan.name}: operands on the CPU run in the simulator, which takes problems of about a minute",
            got=f"M, N, K = {m}, {n}, {k}: an estimated {seconds:.0f} s",
            allowed=f"{SIMULATION_LIMIT_SECONDS:.0f} s",
            fix="use smaller matrices, or move them to a GPU",
        )


def default_device() -> Device:
    """The GPU here, as the table of devices knows it; the H200 where there is none.

    Raises LayoutgenError where the table has no device of the GPU's architecture.
    """
    arch = build.current_arch()
    if arch is None:
        return DEVICES["h200"]
    product = build.Device().name.lower().replace(" ", "")  # e.g. nvidiah200, nvidiaa100-sxm4-80gb
    known = by_arch(arch)
    named = [each for each in known if all(part in product for part in each.name.split("-"))]
    return max(named, key=lambda each: len(each.name), default=known[0])  # an L40S is no L4


def target_arch(plan: Plan) -> str:
    """The architecture of the GPU here, else a default that is no older than the spec's minimum."""
    return build.current_arch() or max(DEFAULT_ARCH, plan.arch, key=lambda arch: int(arch[3:].rstrip("a")))


@cache
def source(plan: Plan) -> Source:
    """The plan's kernel text, emitted once per process."""
    return emit(plan)


def artifact(plan: Plan, arch: str) -> build.Artifact:
    """The plan's kernel built for an architecture, from the cache where it was built before."""
    kernel = source(plan)
    return build.build(kernel.text, kernel.launch.kernel, arch)


class CompiledForGpu:
    """One plan loaded on one GPU. Calling it enqueues the kernel on a stream.

    slots: how many of its blocks the GPU has room for at once, where they share tiles; else 1.
    """

    def __init__(self, plan: Plan, device: int) -> None:
        self._plan = plan
        self._launch = source(plan).launch
        self._function = build.load(artifact(plan, build.Device(device).arch), device=device)
        self._params = build.ParamBlock([p.type for p in self._launch.params], [p.name for p in self._launch.params])
        self.slots = 1
        if plan.schedule.kind == "stream_k":
            self.slots = self._function.resident_blocks(self._launch.threads, self._launch.shared_bytes)

    def shared_tiles(self, problem: Problem) -> Streams:
        """What blocks share of a problem: for it `workspace_bytes` are needed, the first `flag_bytes` of them zero."""
        return shared_tiles(self._plan, problem, self.slots)

    def __call__(self, problem: Problem, stream: int, shared: Streams = WHOLE, workspace: int = 0) -> None:
        """Enqueue the kernel. workspace: the address of what `shared` needs; without, no tiles are shared."""
        launch = self._launch
        blocks = (grid(self._plan, problem.m, problem.n, shared), 1, 1)
        packed = self._params.pack(*params(self._plan, problem, shared, workspace))
        self._function.launch(blocks, (launch.threads, 1, 1), launch.shared_bytes, stream, packed)


def estimate_steps(plan: Plan, k: int) -> int:
    """About how many instructions a thread executes: the main loop's arithmetic, shared loads and pieces of copies, and
    what comes before and after it."""
    values = plan.tile.value_mode[0].size * plan.tile.value_mode[1].size
    turn = TURN_STEPS
    for step in plan.program.steady:
        if isinstance(step, Mma):
            turn += values
        elif isinstance(step, LoadFragment):
            turn += sum(each.fragment.vectors * step.count // each.fragment.depth for each in plan.shared_operands)
        elif isinstance(step, CopyTile | LoadTile | StoreTile):
            turn += PIECE_STEPS * (step.last - step.first)
    return -(-k // plan.tile.block[2]) * turn + BLOCK_STEPS + VALUE_STEPS * values


# Of a product of an atom's K, in one processor: by the type that is multiplied.
PRODUCT_SECONDS = {
    "bf16": 3.2e-8, "f16": 3.2e-8, "tf32": 5e-8, "f64": 5.5e-8, "s8": 0.8e-8, "u8": 0.8e-8, "e4m3": 2e-8, "e5m2": 2e-8,
}  # fmt: skip


def estimate_seconds(plan: Plan, m: int, n: int, k: int) -> float:
    """How long the simulator needs, which runs a batch of blocks together; to about a factor of two."""
    blocks, threads = grid(plan, m, n), plan.threads.threads
    together = max(1, min(blocks, sim.Options().batch_lanes // threads))
    step = STEP_SECONDS + together * threads * LANE_SECONDS
    block_m, block_n, block_k = plan.tile.block
    products = blocks * block_m * block_n * -(-k // block_k) * block_k * plan.products if plan.uses_atoms else 0
    multiplying = products * PRODUCT_SECONDS.get(plan.multiplied, 0.0)
    return LAUNCH_SECONDS + blocks / together * estimate_steps(plan, k) * step + multiplying


@cache
def _simulated_kernel(plan: Plan, arch: str) -> sim.Kernel:
    return sim.parse(artifact(plan, arch).ptx).kernels[source(plan).launch.kernel]


def simulate(
    plan: Plan,
    problem: Problem,
    memory: sim.GlobalMemory,
    options: sim.Options | None = None,
    kernel: sim.Kernel | None = None,
    slots: int = 1,
) -> sim.Report:
    """Run one launch in the simulator; the problem's addresses are those of `memory`.

    slots: how many blocks there is room for at once, as far as the sharing of tiles goes. They run one after the other.
    """
    launch, shared, workspace = source(plan).launch, shared_tiles(plan, problem, slots), 0
    options = options or sim.Options(count=False)
    if shared.blocks:
        flags = np.zeros(flag_bytes(shared), np.uint8)
        partial = np.full(workspace_bytes(plan, shared) - flags.size, 0xFF, np.uint8)  # NaN
        workspace = memory.add(np.concatenate((flags, partial)), writable=True, name="workspace")
        options = replace(options, batch_lanes=1)  # blocks that wait for one another
    return sim.launch(
        _simulated_kernel(plan, target_arch(plan)) if kernel is None else kernel,
        memory,
        grid=(grid(plan, problem.m, problem.n, shared), 1, 1),
        block=(launch.threads, 1, 1),
        params=list(params(plan, problem, shared, workspace)),
        dynamic_shared_bytes=launch.shared_bytes,
        options=options,
    )


def access_of(plan: Plan, lines: Iterable[int]) -> str | None:
    """The plan's access that an instruction belongs to, by its lines of the kernel's text, innermost first."""
    known = source(plan).access_lines
    return next((known[line] for line in lines if line in known), None)


def traffic_by_access(plan: Plan, report: sim.Report) -> dict[str, sim.Traffic]:
    """A simulated launch's memory traffic, by the plan's access: fragment_a, copy_b, write_d and so on."""
    found: dict[str, sim.Traffic] = {}
    for instruction, _, traffic in report.per_instruction():
        if traffic is not None:
            places = (place for place in (instruction.source, instruction.caller) if place)
            name = access_of(plan, [line for file, line in places if file.endswith(f"{report.kernel.name}.cu")])
            if name is None:
                raise SimError("every access of an emitted kernel is one of its plan's", got=str(instruction))
            found.setdefault(name, sim.Traffic())
            found[name] += traffic
    return found


def on_cpu(plan: Plan, problem: Problem, tensors: dict[str, torch.Tensor]) -> None:
    """Run the problem in the simulator over the storages of CPU tensors.

    tensors: "a", "b", "c", "d" and the epilogue's, whose addresses in the problem are offsets in their storages, in
    bytes.
    """
    memory, written = sim.GlobalMemory(), {"d", *(each.name for each in plan.epilogue.tensors if each.written)}

    def place(name: str, view: View) -> View:
        """The operand's own elements as a buffer; the gaps of a view and what lies around it are out of bounds."""
        return replace(view, address=memory.add(_as_numpy(tensors[name]), writable=name in written, name=name))

    a, b, c, d = place("a", problem.a), place("b", problem.b), place("c", problem.c), place("d", problem.d)
    fused = tuple(
        place(tensor.name, view) for tensor, view in zip(plan.epilogue.tensors, problem.epilogue, strict=True)
    )
    simulate(plan, replace(problem, a=a, b=b, c=c, d=d, epilogue=fused), memory)


def _as_numpy(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """A CPU tensor's elements, as unsigned integers of their width, in a numpy view that knows its whole storage, so
    that its alignment there is known too."""
    import torch

    whole = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).numpy()
    itemsize = tensor.element_size()
    return np.ndarray(
        tuple(tensor.shape),
        np.dtype(f"u{itemsize}"),
        buffer=whole,
        offset=tensor.storage_offset() * itemsize,
        strides=tuple(stride * itemsize for stride in tensor.stride()),
    )
