"""Which one edit mends what is poor: edits are tried on the spec until one leaves nothing to be said in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pydantic import BaseModel

from layoutgen.algebra import Layout
from layoutgen.check.findings import Finding
from layoutgen.check.problem import GROUP
from layoutgen.plan import Plan
from layoutgen.plan.copies import default_atom
from layoutgen.plan.model import SharedOperand
from layoutgen.plan.storage import ITEMSIZE, SECTOR_BYTES, VECTOR_BYTES, default_shared
from layoutgen.plan.tile import largest_divisor
from layoutgen.plan.variants import MAX_STAGES
from layoutgen.spec import Copy, Spec
from layoutgen.spec_fields import Tiler

MOST_TRIES = 24  # edits for one finding; each takes some milliseconds
PADS = (4, 8, 12, 16, 20, 24, 28, 0)  # words after a row, in the order in which they are tried
LANES = ("(8,4):(4,1)", "(4,8):(8,1)", "(4,(2,4)):(2,(1,8))", "(8,4):(1,8)", "(4,8):(1,4)", "(2,16):(16,1)")
PAIRED = ("(4,(2,4)):(2,(1,8))", "((2,4),4):((1,8),2)")  # pairs of lanes read alike, of A as of B
Said = frozenset[tuple[str, str]]  # rule and message of each finding


@dataclass(frozen=True, slots=True)
class Edit:
    """One key of a spec and the value to give it."""

    key: str
    value: Layout | Tiler | tuple[int, ...] | Copy | int

    def apply(self, spec: Spec) -> Spec:
        """The spec with the value in place; its places stay those of the file."""
        made: Spec = _replaced(spec, self.key.split("."), self.value)
        return made

    def __str__(self) -> str:
        return f"write {self.key}: {_text(self.value)}"


def _replaced(model: Any, path: list[str], value: object) -> Any:
    head, *rest = path
    if rest:
        inner: BaseModel | None = getattr(model, head)
        value = _replaced(Copy(atom="cp.async") if inner is None else inner, rest, value)
    return model.model_copy(update={head: value})


def _text(value: object) -> str:
    """A value as YAML that editors read as layoutgen does."""
    if isinstance(value, Copy):
        parts = [f"atom: {value.atom}"]
        parts += [f'threads: "{value.threads}"'] if value.threads is not None else []
        parts += [f"values: {_text(value.values)}"] if value.values is not None else []
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, tuple):
        modes = [
            str(each.size) if isinstance(each, Layout) and each == Layout(each.size, 1) else each for each in value
        ]
        return f"<{', '.join(map(str, modes))}>" if any(":" in str(mode) for mode in modes) else _list(modes)
    return str(value)


def _list(modes: list[Any]) -> str:
    return f"[{', '.join(map(str, modes))}]"


def mended(spec: Spec, primary: Plan, finding: Finding, before: Said, judge: Callable[[Edit], Said]) -> Edit | None:
    """The first edit after which a finding is gone and nothing new is to be said; None where no tried one does it.

    before: what is said about the spec. judge: an edit -> what is said about the spec with it.
    """
    this = (finding.rule, finding.message)
    for edit in islice(dict.fromkeys(_edits(spec, primary, finding)), MOST_TRIES):
        after = judge(edit)
        if after <= before and this not in after:
            return edit
    return None


def corrected(spec: Spec, finding: Finding, before: Said, judge: Callable[[Edit], Said]) -> str:
    """The fix of an error: an edit of the stages only if it was tried, others as they stand.

    before: the errors of the spec. judge: an edit -> the errors of the spec with it.
    """
    if not finding.fix.startswith("write shared.stages:"):
        return finding.fix
    most = max(2, min(spec.shared.stages, MAX_STAGES))
    edits = [Edit("shared.stages", each) for each in range(most, 1, -1) if each != spec.shared.stages]
    left = {edit: judge(edit) - before for edit in edits if (finding.rule, finding.message) not in judge(edit)}
    # What has nothing to do with stages may come to light all the same.
    fits = [edit for edit, new in left.items() if "shared-memory" not in {rule for rule, _ in new}]
    if fits:
        return str(next((edit for edit in fits if not left[edit]), fits[0]))
    return "use a smaller block tile" + ("" if finding.rule == "shared-memory" else f", and 2 to {MAX_STAGES} stages")


def _edits(spec: Spec, primary: Plan, finding: Finding) -> Iterator[Edit]:
    """What may mend a finding, the likeliest first."""
    shared = primary.shared_operands
    operand = next((each for each in shared if f"{each.name.upper()}'s" in finding.message), None)
    operand = operand or next((each for each in shared if f" {each.name.upper()} " in finding.message), None)
    match finding.rule:
        case "bank-conflicts" if operand and " read " in finding.message:
            yield from _values(primary, operand)
            yield from _storages(operand)
            yield from (Edit("tiling.lanes", Layout.parse(lanes)) for lanes in LANES)
        case "bank-conflicts" if operand:
            yield from _storages(operand)
            yield from _copies_or_depths(spec, primary, operand)
        case "uncoalesced" if operand:
            yield from islice(_storages(operand), 1)
            yield from _copies_or_depths(spec, primary, operand)
        case "uncoalesced":
            yield from (Edit("tiling.lanes", Layout.parse(lanes)) for lanes in LANES)
            yield Edit("tiling.values", (spec.tiling.values[0], Layout(4, 1)))
        case "narrow-loads" if operand:
            yield from _storages(operand)
        case "narrow-copy" if operand:
            yield from islice(_storages(operand), 1)
            yield from _copies(spec, primary, operand)
        case "no-overlap" | "l1-bound":
            yield from (Edit("shared.stages", each) for each in (2, 3) if each > spec.shared.stages)
        case "odd-k" | "k-depth":
            yield from _depths(spec)
        case "spills" | "idle-schedulers":
            yield from (Edit("schedule.min_blocks", each) for each in _below(spec.schedule.min_blocks, 1))
            yield from (Edit("shared.stages", each) for each in _below(spec.shared.stages, 2))
            yield from (edit for each in shared for edit in islice(_storages(each), 1))
            yield from _blocks(spec, lambda extent: extent // 2)
            m, n, k = spec.tiling.block
            yield from (Edit("tiling.block", (m, n, k // part)) for part in (2, 4) if k >= part)
        case "shared-bound":
            yield from (Edit("tiling.lanes", Layout.parse(lanes)) for lanes in PAIRED)
            yield from (edit for each in shared for edit in islice(_storages(each), 1))
            given = [each for each in shared if getattr(spec.copies, each.name) is not None]
            yield from (edit for each in given for edit in islice(_copies(spec, primary, each), 2))
            if spec.tiling.block[2] * ITEMSIZE[primary.dtype] % SECTOR_BYTES:
                yield from _depths(spec)  # copies along k take as many wavefronts for parts of sectors
            yield from _blocks(spec, lambda extent: extent * 2)
            yield from _fewer_warps(spec)
        case "waves" | "overhang":
            yield from _blocks(spec, lambda extent: extent // 2)
            yield from _blocks(spec, lambda extent: extent * 2)
        case "memory-bound":
            yield from (Edit("schedule.group", group) for group in (GROUP, GROUP // 2, 2 * GROUP))
            yield from _blocks(spec, lambda extent: extent * 2)


def _below(number: int, least: int) -> range:
    return range(min(number, 64) - 1, least - 1, -1)


def _storages(operand: SharedOperand) -> Iterator[Edit]:
    """The planner's own layout, then others that are contiguous in x."""
    x, k = operand.tile
    yield Edit(f"shared.{operand.name}", default_shared(x, k, operand.contiguous))
    dense = -(-x // PADS[0]) * PADS[0]
    for pad in PADS:
        yield Edit(f"shared.{operand.name}", Layout((x, k), (1, dense + pad)))


def _copies(spec: Spec, primary: Plan, operand: SharedOperand) -> Iterator[Edit]:
    """The spec's own copy word by word, if it is one of words; the planner's own; then others of all threads.

    None of those last reads less at once than the spec's: that may mend what is said of its accesses, but costs more.
    """
    key, given = f"copies.{operand.name}", getattr(spec.copies, operand.name)
    atom: Any = default_atom(spec) if given is None else given.atom
    run = operand.copy.read_vector
    if given is not None and given.values is not None and run == 1:
        yield Edit(f"{key}.values", (Layout(1, 1), Layout(1, 1)))
    if given is not None:
        yield Edit(key, Copy(atom=atom))
    (extent, block_k), threads = operand.tile, primary.threads.threads
    for run_x, run_k in ((4, 1), (1, 1), (1, 4), (2, 1)):
        if extent % run_x or block_k % run_k or (run_k if operand.contiguous == "k" else run_x) < run:
            continue
        left_x, left_k = extent // run_x, block_k // run_k
        for along_k in (each for each in (8, 4, 2, 16, 1) if left_k % each == 0):
            along_x = largest_divisor(left_x, max(1, threads // along_k))
            for strides in ((along_k, 1), (1, along_x)):
                layout, values = Layout((along_x, along_k), strides), (Layout(run_x, 1), Layout(run_k, 1))
                yield Edit(key, Copy.model_construct(atom=atom, threads=layout, values=values))


def _values(primary: Plan, operand: SharedOperand) -> Iterator[Edit]:
    """A thread's values cut into runs of one access, with those of its neighbours in between."""
    index = 0 if operand.name == "a" else 1
    own = [_run(layout) for layout in primary.tile.value_mode]
    run = VECTOR_BYTES // ITEMSIZE[operand.dtype]
    size, lanes = own[index].size, primary.tile.lanes[index].size
    if size > run and size % run == 0:
        own[index] = Layout((run, size // run), (1, run * lanes))
        yield Edit("tiling.values", tuple(own))


def _run(layout: Layout) -> Layout:
    """A mode of values as one run of as many, where it isn't in pieces already."""
    return layout if isinstance(layout.shape, tuple) else Layout(layout.size, 1)


def _copies_or_depths(spec: Spec, primary: Plan, operand: SharedOperand) -> Iterator[Edit]:
    """The spec's own copy is at fault, where it has one; else a BLK_K that suits no copy."""
    if getattr(spec.copies, operand.name) is None:
        yield from _depths(spec)
        yield from _copies(spec, primary, operand)
    else:
        yield from _copies(spec, primary, operand)
        yield from _depths(spec)


def _depths(spec: Spec) -> Iterator[Edit]:
    """The next BLK_K that are multiples of 2, 4, 8, 16 and 32."""
    m, n, k = spec.tiling.block
    for depth in sorted({-(-k // unit) * unit for unit in (2, 4, 8, 16, 32)}):
        yield Edit("tiling.block", (m, n, depth))


def _blocks(spec: Spec, other: Callable[[int], int]) -> Iterator[Edit]:
    """Block tiles of another extent in n, in m, and in both."""
    m, n, k = spec.tiling.block
    for block in ((m, other(n), k), (other(m), n, k), (other(m), other(n), k)):
        if all(block):
            yield Edit("tiling.block", block)


def _fewer_warps(spec: Spec) -> Iterator[Edit]:
    """Half the warps in a mode, each with twice the tile where the spec leaves that to the planner."""
    m, n = (spec.tiling.warps[mode].size for mode in (0, 1))
    for warps_m, warps_n in ((m, n // 2), (m // 2, n)):
        if warps_m and warps_n and warps_m * warps_n * spec.warp_size >= 64:
            yield Edit("tiling.warps", Layout((warps_m, warps_n), (warps_n, 1)))
