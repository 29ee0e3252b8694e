"""One element of C, or one thread: which registers, shared words, copies and global elements are its own."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from layoutgen.algebra import make_layout, named
from layoutgen.errors import RequestError
from layoutgen.explain.model import Entry, Rows, Section, Text
from layoutgen.explain.words import runs
from layoutgen.facts import (
    BANKS,
    NOBODY,
    SECTOR_BYTES,
    c_owners,
    copy_owners,
    copy_piece,
    first_word,
    fragment_piece,
    shared_banks,
    shared_words,
)
from layoutgen.plan.model import Operand, Plan
from layoutgen.plan.storage import ITEMSIZE
from layoutgen.plan.tile import WARP_SIZE

DEFAULT_COORDINATE = (5, 77)


@dataclass(frozen=True, slots=True)
class Source:
    """Where the factors of one element of C come from, A(m, k) or B(n, k) for each k of a k-tile.

    x: m or n in the block tile. register: the thread's value of x, as of tCrA and tCrB. load, position: which shared
    load of each k brings it, and its place in that. loaded: the x that come with it.
    word, bank: [stage][k], in words of the operand's shared memory, and banks of the block's.
    copier, element: [k], the thread that copies it and which of its elements (i, j); NOBODY where a copy that check
    refuses leaves it out. read, write: [k], the coordinates (x, k) that one access of its copy loads from global, and
    stores to shared, memory along with it.
    sector: [k], what shares its 32-byte sector of global memory, where sectors start with the tile; empty where strides
    are free.
    """

    operand: str
    x: int
    register: int
    load: int
    position: int
    loaded: tuple[int, ...]
    word: tuple[tuple[int, ...], ...]
    bank: tuple[tuple[int, ...], ...]
    copier: tuple[int, ...]
    element: tuple[tuple[int, int], ...]
    read: tuple[tuple[tuple[int, int], ...], ...]
    write: tuple[tuple[tuple[int, int], ...], ...]
    sector: tuple[tuple[tuple[int, int], ...], ...]


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
    return Element(
        m, n, thread, thread // WARP_SIZE, thread % WARP_SIZE, (i, j), _source(plan, plan.a, m, i),
        _source(plan, plan.b, n, j),
    )  # fmt: skip


def _source(plan: Plan, operand: Operand, x: int, value: int) -> Source:
    copy, (block_x, block_k) = operand.copy, (operand.shared.layout[0].size, operand.shared.layout[1].size)
    ks, stages = range(block_k), range(plan.stages)
    owners = copy_owners(copy, (block_x, block_k))
    elements = tuple((int(owners.element_x[x, k]), int(owners.element_k[x, k])) for k in ks)
    copiers = tuple(int(owners.thread[x, k]) for k in ks)
    piece = fragment_piece(operand.fragment, value)
    values = plan.tile.value_mode["mn".index(operand.x)]
    base = x - values(value)
    return Source(
        operand=operand.name,
        x=x,
        register=value,
        load=piece.i,
        position=piece.position,
        loaded=tuple(base + values(piece.first[0] + v) for v in range(piece.width)),
        word=tuple(tuple(shared_words(operand.shared, stage)[x].tolist()) for stage in stages),
        bank=tuple(tuple(shared_banks(plan, operand, stage)[x].tolist()) for stage in stages),
        copier=copiers,
        element=elements,
        read=tuple(_access(operand, t, e, "read") for t, e in zip(copiers, elements, strict=True)),
        write=tuple(_access(operand, t, e, "write") for t, e in zip(copiers, elements, strict=True)),
        sector=tuple(_sector(operand, x, k, (block_x, block_k)) for k in ks),
    )


def _access(operand: Operand, thread: int, at: tuple[int, int], side: str) -> tuple[tuple[int, int], ...]:
    """The (x, k) of the access that moves a thread's element (i, j)."""
    if thread == NOBODY:
        return ()
    copy = operand.copy
    piece = copy_piece(copy, at, "read" if side == "read" else "write")
    along_x = copy.vector_mode == "x"
    found = []
    for v in range(piece.width):
        i, j = piece.first[0] + v * along_x, piece.first[1] + v * (not along_x)
        found.append((copy.thread_x(thread) + copy.element_x(i), copy.thread_k(thread) + copy.element_k(j)))
    return tuple(found)


def _sector(operand: Operand, x: int, k: int, tile: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """The (x, k) of the tile in the same sector of global memory, whose rows and tiles are taken to start on one."""
    width = SECTOR_BYTES // ITEMSIZE[operand.dtype]
    if operand.contiguous is None:
        return ()
    if operand.contiguous == "k":
        first = k // width * width
        return tuple((x, each) for each in range(first, min(first + width, tile[1])))
    first = x // width * width
    return tuple((each, k) for each in range(first, min(first + width, tile[0])))


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
    steps = named(make_layout(*operand.shared.layout[1:]), "k", "stage")
    load, word = operand.fragment.load, operand.shared.layout[0](x)
    rows = [("k", tuple(map(str, range(len(source.copier)))))]
    rows += [(f"bank, stage {s}", tuple(map(str, banks))) for s, banks in enumerate(source.bank)]
    rows.append(("copied by thread", tuple("-" if t == NOBODY else str(t) for t in source.copier)))
    return [
        Text(
            f"{upper}({x},k): word {word} + {steps} -> register {source.register}, by load {source.load + 1} of "
            f"{operand.fragment.vectors} ({load.bytes} bytes, {operand.x} {runs(source.loaded)})."
        ),
        Rows(tuple(rows)),
        Text(f"{upper}[{operand.x}0+{x},k0+k] {_how(operand, source)}; {_sectors(operand, source)}."),
    ]


def _how(operand: Operand, source: Source) -> str:
    """The copy's accesses in words: what travels together, and which of the thread's elements it is."""
    copy, itemsize = operand.copy, ITEMSIZE[operand.dtype]
    place, along = (0, operand.x) if copy.vector_mode == "x" else (1, "k")

    def together(access: tuple[tuple[int, int], ...]) -> str:
        return f" ({along} {runs([at[place] for at in access])})" if len(access) > 1 else ""

    copied = [k for k, thread in enumerate(source.copier) if thread != NOBODY]
    if not copied:
        return "is copied by nobody"
    i, js = source.element[copied[0]][0], runs([source.element[k][1] for k in copied])
    which = f"element ({i},{js})" if js.isdigit() else f"element ({i},j), j {js}"
    if copy.atom.through_registers:
        read, write = together(source.read[copied[0]]), together(source.write[copied[0]])
        read = f"ld.global of {copy.read_vector * itemsize} bytes{read}"
        return f"by {read}, st.shared of {copy.write.bytes}{write}, {which}"
    return f"by cp.async of {copy.write.bytes} bytes{together(source.write[copied[0]])}, {which}"


def _sectors(operand: Operand, source: Source) -> str:
    if operand.contiguous is None:
        return "sector by its strides"
    if operand.contiguous == "k":
        spans = list(dict.fromkeys(runs([k for _, k in each]) for each in source.sector))
        shown = ", ".join(spans if len(spans) <= 4 else [*spans[:2], "..", spans[-1]])
        return f"sector{'s' * (len(spans) > 1)} of k {shown}"
    return f"sector of {operand.x} {runs([x for x, _ in source.sector[0]])}"


def thread_section(plan: Plan, thread: int) -> tuple[Section, dict[str, Any]]:
    """What one thread owns, loads and copies, told and as plain data.

    Raises RequestError where the block has no such thread.
    """
    threads = plan.threads.threads
    if not 0 <= thread < threads:
        raise RequestError.of_thread(thread, threads)
    warp, lane = divmod(thread, WARP_SIZE)
    m = (plan.threads.m(thread) + plan.tile.value_mode[0].offsets()).tolist()
    n = (plan.threads.n(thread) + plan.tile.value_mode[1].offsets()).tolist()
    entries: list[Entry] = [Text(f"C: rows m {runs(m)}, columns n {runs(n)}: {len(m)} x {len(n)} accumulators.")]
    data: dict[str, Any] = {"thread": thread, "warp": warp, "lane": lane, "m": m, "n": n}
    for operand, xs in zip(plan.operands, (m, n), strict=True):
        loads, copies = _loads(plan, operand, thread, xs), _copies(plan, operand, thread)
        entries += [*_loads_told(operand, loads), *_copies_told(operand, copies)]
        data[operand.name] = {"loads": loads, "copies": copies}
    return Section(f"Thread {thread}: warp {warp}, lane {lane}", tuple(entries)), {"thread": data}


def _loads(plan: Plan, operand: Operand, thread: int, xs: list[int]) -> list[dict[str, Any]]:
    """Each shared load of one k: the x it brings, and its word and bank, [stage][k]."""
    fragment, width = operand.fragment, operand.fragment.vector
    found = []
    for load in range(fragment.vectors):
        first = xs[load * width]
        words = [shared_words(operand.shared, stage)[first].tolist() for stage in range(plan.stages)]
        banks = [shared_banks(plan, operand, stage)[first].tolist() for stage in range(plan.stages)]
        found.append({"x": xs[load * width : (load + 1) * width], "word": words, "bank": banks})
    return found


def _copies(plan: Plan, operand: Operand, thread: int) -> list[dict[str, Any]]:
    """Each access to shared memory of a thread's copy: (i, j), its (x, k), and its word and bank, [stage]."""
    copy = operand.copy
    if thread >= copy.participants:
        return []
    found = []
    count_i, count_j, _ = (mode.size for mode in copy.write.steps)
    step = copy.write_vector
    for j in range(count_j):
        for i in range(count_i):
            at = (i * step, j) if copy.vector_mode == "x" else (i, j * step)
            moved = _access(operand, thread, at, "write")
            words = [copy.write.base(thread) + step * copy.write.steps(i, j, stage) for stage in range(plan.stages)]
            banks = [(first_word(plan, operand) + word) % BANKS for word in words]
            found.append({"access": [i, j], "elements": [list(each) for each in moved], "word": words, "bank": banks})
    return found


def _loads_told(operand: Operand, loads: list[dict[str, Any]]) -> list[Entry]:
    upper, steps = operand.name.upper(), named(make_layout(*operand.shared.layout[1:]), "k", "stage")
    return [
        Text(f"Fragment of {upper}, each k: {len(loads)} ld.shared of {operand.fragment.load.bytes} bytes; + {steps}:"),
        Rows(
            (
                (operand.x, tuple(runs(load["x"]) for load in loads)),
                ("word at k 0, stage 0", tuple(str(load["word"][0][0]) for load in loads)),
                ("bank", tuple(str(load["bank"][0][0]) for load in loads)),
            )
        ),
    ]


def _copies_told(operand: Operand, copies: list[dict[str, Any]]) -> list[Entry]:
    copy, upper = operand.copy, operand.name.upper()
    itemsize = ITEMSIZE[operand.dtype]
    if not copies:
        return [Text(f"It copies nothing of {upper}: the first {copy.participants} threads do.")]
    reads = copy.element_x.size * copy.element_k.size // copy.read_vector
    kind = f"{len(copies)} cp.async of {copy.write.bytes} bytes"
    if copy.atom.through_registers:
        read = f"{reads} ld.global of {copy.read_vector * itemsize} bytes"
        kind = f"{read}, {len(copies)} st.shared of {copy.write.bytes} bytes"
    return [
        Text(f"Copies of each k-tile of {upper}: {kind}."),
        Rows(
            (
                (operand.x, tuple(runs([x for x, _ in each["elements"]]) for each in copies)),
                ("k", tuple(runs([k for _, k in each["elements"]]) for each in copies)),
                ("word, stage 0", tuple(str(each["word"][0]) for each in copies)),
                ("bank", tuple(str(each["bank"][0]) for each in copies)),
            )
        ),
    ]
