"""One element of C: its thread and accumulator, and the registers, words, copies and global elements of its factors."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from layoutgen.algebra import Layout, make_layout, named
from layoutgen.errors import RequestError
from layoutgen.explain.model import Entry, Rows, Section, Text
from layoutgen.explain.words import plural, runs
from layoutgen.facts import (
    BANK_BYTES,
    NOBODY,
    SECTOR_BYTES,
    Side,
    atom_owners,
    c_owners,
    copy_owners,
    fetch_piece,
    fragment_piece,
    shared_banks,
    shared_offsets,
)
from layoutgen.plan.model import AtomFragment, Fetch, Operand, Plan, SharedOperand
from layoutgen.plan.storage import ITEMSIZE

DEFAULT_COORDINATE = (5, 77)


@dataclass(frozen=True, slots=True)
class Source:
    """Where the factors of one element of C come from, A(m, k) or B(n, k) for each k of a k-tile.

    x: m or n in the block tile. register: the thread's value of x, as of tCrA and tCrB.
    copier, element: [k], the thread that fetches it, which is the element's own where nothing is shared, and which of
    its elements (i, j); NOBODY where a copy that check refuses leaves it out.
    read: [k], the coordinates (x, k) that one access loads from global memory along with it.
    sector: [k], what shares its 32-byte sector of global memory, where sectors start with the tile; empty where strides
    are free.
    """

    operand: str
    x: int
    register: int
    copier: tuple[int, ...]
    element: tuple[tuple[int, int], ...]
    read: tuple[tuple[tuple[int, int], ...], ...]
    sector: tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, slots=True)
class SharedSource(Source):
    """A Source by way of shared memory.

    load, position: which shared load of each k brings it, and its place in that; of every `depth` k where loads bring
    several, in whose k-th place it lies then. loaded: the x that come with it.
    word, bank: [stage][k], in words of the operand's shared memory, and banks of the block's.
    write: [k], the coordinates (x, k) that one access of its copy stores to shared memory along with it.
    """

    load: int
    position: int
    depth: int
    loaded: tuple[int, ...]
    word: tuple[tuple[int, ...], ...]
    bank: tuple[tuple[int, ...], ...]
    write: tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, slots=True)
class AtomSource(Source):
    """A Source of MMA atoms, by way of shared memory.

    lane, load, held: [k], which lane of the element's warp holds it, by which of its loads, in which of its registers.
    word, bank, write: as for SharedSource.
    """

    lane: tuple[int, ...]
    load: tuple[int, ...]
    held: tuple[int, ...]
    word: tuple[tuple[int, ...], ...]
    bank: tuple[tuple[int, ...], ...]
    write: tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, slots=True)
class Element:
    """C(m, n) of a block tile: its thread, the accumulator (i, j) that it is, and where its factors come from."""

    m: int
    n: int
    thread: int
    warp: int
    lane: int
    value: tuple[int, int]
    a: Source
    b: Source

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def element(plan: Plan, coordinate: tuple[int, int] | None = None) -> Element:
    """(m, n) in the block tile -> its owner and sources; by default C(5,77) of the matrix, in whichever tile it lies.

    Raises RequestError where the tile has no such coordinate.
    """
    block_m, block_n, _ = plan.tile.block
    m, n = coordinate or (DEFAULT_COORDINATE[0] % block_m, DEFAULT_COORDINATE[1] % block_n)
    if not (0 <= m < block_m and 0 <= n < block_n):
        raise RequestError(
            "a coordinate lies in the block tile of C",
            got=f"({m},{n}) of {block_m} x {block_n}",
            allowed=f"0 <= m < {block_m} and 0 <= n < {block_n}",
            fix=f"ask for --coord {m % block_m},{n % block_n}, which is where it lies in its own block's tile",
        )
    owners = c_owners(plan.tile, plan.threads)
    thread, i, j = (int(each[m, n]) for each in (owners.thread, owners.value_m, owners.value_n))
    warp, lane = divmod(thread, plan.warp_size)
    a, b = _source(plan, plan.a, thread, m, i), _source(plan, plan.b, thread, n, j)
    return Element(m, n, thread, warp, lane, (i, j), a, b)


def _source(plan: Plan, operand: Operand, thread: int, x: int, value: int) -> Source:
    ks = range(operand.tile[1])
    if not isinstance(operand, SharedOperand):
        elements = [(value, k) for k in ks]
        return Source(
            operand=operand.name,
            x=x,
            register=value,
            copier=(thread,) * len(ks),
            element=tuple(elements),
            read=tuple(access(operand.copy, thread, each, "read") for each in elements),
            sector=tuple(_sector(operand, x, k) for k in ks),
        )
    copy, stages = operand.copy, range(plan.stages)
    owners = copy_owners(copy, operand.tile)
    elements = [(int(owners.element_x[x, k]), int(owners.element_k[x, k])) for k in ks]
    copiers = tuple(int(owners.thread[x, k]) for k in ks)
    itemsize = ITEMSIZE[operand.dtype]
    common: dict[str, Any] = {
        "operand": operand.name,
        "x": x,
        "register": value,
        "copier": copiers,
        "element": tuple(elements),
        "read": tuple(access(copy, t, e, "read") for t, e in zip(copiers, elements, strict=True)),
        "sector": tuple(_sector(operand, x, k) for k in ks),
        "word": tuple(
            tuple((shared_offsets(operand.shared, stage)[x] * itemsize // BANK_BYTES).tolist()) for stage in stages
        ),
        "bank": tuple(tuple(shared_banks(plan, operand, stage)[x].tolist()) for stage in stages),
        "write": tuple(access(copy, t, e, "write") for t, e in zip(copiers, elements, strict=True)),
    }
    if isinstance(operand.fragment, AtomFragment):
        held = atom_owners(plan, operand)
        registers = held.register[x]
        return AtomSource(
            **common,
            lane=tuple(held.lane[x].tolist()),
            load=tuple((registers // operand.fragment.registers).tolist()),
            held=tuple(registers.tolist()),
        )
    piece = fragment_piece(operand.fragment, value)
    values = plan.tile.value_mode["mn".index(operand.x)]
    base = x - values(value)
    return SharedSource(
        **common,
        load=piece.i,
        position=piece.position,
        depth=operand.fragment.depth,
        loaded=tuple(base + values(piece.first[0] + v) for v in range(piece.width)),
    )


def access(fetch: Fetch, thread: int, at: tuple[int, int], side: Side) -> tuple[tuple[int, int], ...]:
    """The (x, k) of the access that reads, or writes, a thread's element (i, j)."""
    if thread == NOBODY:
        return ()
    return tuple(
        (fetch.thread_x(thread) + fetch.element_x(i), fetch.thread_k(thread) + fetch.element_k(j))
        for i, j in fetch_piece(fetch, at, side).elements
    )


def _sector(operand: Operand, x: int, k: int) -> tuple[tuple[int, int], ...]:
    """The (x, k) of the tile in the same sector of global memory, whose rows and tiles are taken to start on one."""
    width = SECTOR_BYTES // ITEMSIZE[operand.dtype]
    if operand.contiguous is None:
        return ()
    if operand.contiguous == "k":
        first = k // width * width
        return tuple((x, each) for each in range(first, min(first + width, operand.tile[1])))
    first = x // width * width
    return tuple((each, k) for each in range(first, min(first + width, operand.tile[0])))


def element_section(plan: Plan, found: Element) -> Section:
    """Who owns C(m, n), and where A(m, k) and B(n, k) come from."""
    i, j = found.value
    thread_m, thread_n = plan.threads.m(found.thread), plan.threads.n(found.thread)
    entries: list[Entry] = [
        Text(
            f"m = {found.m} is {thread_m} (thread -> m) + {found.m - thread_m} (value {i} -> m); n = {found.n} is "
            f"{thread_n} (thread -> n) + {found.n - thread_n} (value {j} -> n)."
        )
    ]
    for operand, source in zip(plan.operands, (found.a, found.b), strict=True):
        entries += _told(plan, operand, source)
    title = (
        f"C({found.m},{found.n}) of a block: thread {found.thread} (warp {found.warp}, lane {found.lane}) sums it in "
        f"accumulator ({i},{j})"
    )
    return Section(title, tuple(entries))


def _told(plan: Plan, operand: Operand, source: Source) -> list[Entry]:
    upper, x = operand.name.upper(), source.x
    origin = f"{upper}[{operand.x}0+{x},k0+k]"
    if isinstance(operand, SharedOperand) and isinstance(source, AtomSource):
        return _told_of_atoms(plan, operand, source, origin)
    if not (isinstance(operand, SharedOperand) and isinstance(source, SharedSource)):
        owners = c_owners(plan.tile, plan.threads).thread
        others = np.unique(owners[x] if operand.x == "m" else owners[:, x]).size - 1
        wide = operand.copy.read_vector * ITEMSIZE[operand.dtype]
        return [
            Text(
                f"{upper}({x},k) -> register {source.register} of slot k: {origin} by its own ld.global of {wide} bytes"
                f"{_together(operand, source.read[0])}, as {plural(others, 'other thread')} do{'es' * (others == 1)}, "
                f"{_elements(source)}; {_sectors(operand, source)}."
            )
        ]
    load, word = operand.fragment.load, operand.shared.layout[0](x)
    with_it = f"{operand.x} {runs(source.loaded)}" + f", {source.depth} k at once" * (source.depth > 1)
    rows = [("k", tuple(map(str, range(len(source.copier)))))]
    rows += [(f"bank{of_stage(plan, s)}", tuple(map(str, banks))) for s, banks in enumerate(source.bank)]
    rows.append(("copied by thread", tuple("-" if t == NOBODY else str(t) for t in source.copier)))
    return [
        Text(
            f"{upper}({x},k): word {word} + {steps(operand)} -> register {source.register}, by load {source.load + 1} "
            f"of {operand.fragment.vectors} ({load.bytes} bytes, {with_it})."
        ),
        Rows(tuple(rows)),
        Text(f"{origin} {_how(operand, source)}; {_sectors(operand, source)}."),
    ]


def _told_of_atoms(plan: Plan, operand: SharedOperand, source: AtomSource, origin: str) -> list[Entry]:
    """Which lanes hold the first atom's factors, register by register, and the banks that they came from."""
    ks: dict[tuple[int, int], list[int]] = {}
    for k in range(plan.atom.layouts.shape_mnk[2]):
        ks.setdefault((source.lane[k], source.held[k]), []).append(k)

    def row(name: str, each: tuple[int, ...]) -> tuple[str, tuple[str, ...]]:
        told = (dict.fromkeys("-" if each[k] == NOBODY else str(each[k]) for k in group) for group in ks.values())
        return name, tuple(",".join(cell) for cell in told)

    load = f"load {runs([each + 1 for each in source.load])} of {operand.fragment.vectors}"
    return [
        Text(
            f"{operand.name.upper()}({source.x},k): lanes {runs(source.lane)} get the first "
            f"{plan.atom.layouts.shape_mnk[2]} k by {load}; {_sectors(operand, source)}:"
        ),
        Rows(
            (
                ("k", tuple(runs(group) for group in ks.values())),
                ("lane, register", tuple(f"{lane} r{register}" for lane, register in ks)),
                row(f"bank{of_stage(plan, 0)}", source.bank[0]),
                row("copied by thread", source.copier),
            )
        ),
        Text(f"{origin} {_how(operand, source)}."),
    ]


def of_stage(plan: Plan, stage: int) -> str:
    """Which stage, where there are several."""
    return f", stage {stage}" if plan.stages > 1 else ""


def steps(operand: SharedOperand) -> Layout:
    """(k, stage) -> words, of k alone where there is one stage."""
    _, k, stage = operand.shared.layout
    return named(k, "k") if stage.size == 1 and k.rank == 1 else named(make_layout(k, stage), "k", "stage")


def _together(operand: Operand, access: tuple[tuple[int, int], ...]) -> str:
    """What one access moves, where that is more than an element."""
    told = [(x, sorted({at[place] for at in access})) for place, x in enumerate((operand.x, "k"))]
    return "".join(f" ({x} {runs(along)})" for x, along in told if len(along) > 1)


def _elements(source: Source) -> str:
    """Which of their thread's elements (i, j) a source's are, of those that anybody fetches."""
    copied = [at for at, thread in zip(source.element, source.copier, strict=True) if thread != NOBODY]
    i, js = copied[0][0], runs([j for _, j in copied])
    if isinstance(source, AtomSource):
        return f"element{'s' * (not js.isdigit())} ({i},{js})"
    return f"element ({i},{js})" if js.isdigit() else f"element ({i},j), j {js}"


def _how(operand: SharedOperand, source: SharedSource | AtomSource) -> str:
    """The copy's accesses in words: what travels together, and which of the thread's elements it is."""
    copy, itemsize = operand.copy, ITEMSIZE[operand.dtype]
    copied = [k for k, thread in enumerate(source.copier) if thread != NOBODY]
    if not copied:
        return "is copied by nobody"
    which, write = _elements(source), _together(operand, source.write[copied[0]])
    if copy.atom.through_registers:
        read = f"ld.global of {copy.read_vector * itemsize} bytes{_together(operand, source.read[copied[0]])}"
        return f"by {read}, st.shared of {copy.write.bytes}{write}, {which}"
    return f"by cp.async of {copy.write.bytes} bytes{write}, {which}"


def _sectors(operand: Operand, source: Source) -> str:
    if operand.contiguous is None:
        return "sector by its strides"
    if operand.contiguous == "k":
        spans = list(dict.fromkeys(runs([k for _, k in each]) for each in source.sector))
        widths = {len(each) for each in source.sector}
        if len(spans) > 2 and len(widths) == 1:
            return f"{len(spans)} sectors of {widths.pop()} k"
        shown = ", ".join(spans if len(spans) <= 4 else [*spans[:2], "..", spans[-1]])
        return f"sector{'s' * (len(spans) > 1)} of k {shown}"
    return f"sector of {operand.x} {runs([x for x, _ in source.sector[0]])}"
