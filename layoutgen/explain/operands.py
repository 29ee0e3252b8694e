"""A and B: global memory -> shared memory -> registers, as layoutgen.plan.storage and .copies make their layouts."""

from __future__ import annotations

from layoutgen.algebra import Layout, named
from layoutgen.explain.atoms import access_steps, fragment_entries
from layoutgen.explain.model import Entry, Section, Step, Text
from layoutgen.explain.words import as_vectors, call, coalesced, is_identity, layout_at, plural
from layoutgen.facts import BANK_BYTES, Side, first_word, turned
from layoutgen.plan.model import Fragment, Operand, Plan, SharedOperand
from layoutgen.plan.storage import ITEMSIZE


def operand_section(plan: Plan, operand: Operand) -> Section:
    """Where an operand's k-tile lies, who copies it, and how a thread reads its fragment."""
    where = "any strides" if operand.contiguous is None else f"{operand.contiguous}-contiguous"
    about, entries = _in_shared(plan, operand) if isinstance(operand, SharedOperand) else _in_registers(plan, operand)
    return Section(f"{operand.name.upper()}({operand.x},k), {where}; {about}", tuple(entries))


def _in_shared(plan: Plan, operand: SharedOperand) -> tuple[str, list[Entry]]:
    """Title and entries of an operand in shared memory."""
    fragment, (x, block_k) = operand.fragment, operand.tile
    title = (
        f"shared: {plural(plan.stages, 'stage')} of {x} x {block_k}, "
        f"{operand.shared.bytes:,} bytes at word {first_word(plan, operand)}, {_padding(operand)}"
    )
    copied = [_shared(operand), Text(f"Copy: {_how_copied(operand)}."), *_copy(operand)]
    if plan.uses_atoms:
        return title, [*copied, *fragment_entries(plan, operand)]
    values = layout_at(plan, f"tile.value_mode.{'mn'.index(operand.x)}").size
    several = f" of {fragment.depth} k each" if fragment.depth > 1 else ""
    entries: list[Entry] = [
        *copied,
        Text(
            f"Fragment: for {each_k(fragment)}, a thread's {values} {operand.x} in {fragment.vectors} ld.shared of "
            f"{fragment.load.bytes} bytes{several}; {plural(plan.program.slots, 'register slot')}."
        ),
        *_fragment(plan, operand),
    ]
    return title, entries


def _in_registers(plan: Plan, operand: Operand) -> tuple[str, list[Entry]]:
    """Title and entries of an operand that each thread loads for itself."""
    fetch, name, x, (extent, block_k) = operand.copy, operand.name, operand.x, operand.tile
    values = fetch.element_x.size
    times = fetch.participants * values * block_k // (extent * block_k)
    wide = fetch.read_vector * ITEMSIZE[operand.dtype]
    entries: list[Entry] = [
        Text(
            f"Fetch: for each k-tile, a thread's {plural(values, x)} x {block_k} k (i,j) in {fetch.reads} ld.global of "
            f"{wide} bytes; {plural(plan.program.slots, 'register slot')}, one for each k. "
            f"Each element of the tile is loaded by {times} threads."
        ),
        Step(f"thread -> {x}", None, named(fetch.thread_x, "lane", "warp"), "as that of C", f"{name}.copy.thread_x"),
        Step("thread -> k", None, fetch.thread_k, "all from k = 0 on", f"{name}.copy.thread_k"),
        Step(f"i -> {x}", None, fetch.element_x, f"as value -> {x}", f"{name}.copy.element_x"),
        Step("j -> k", None, fetch.element_k, "every k of the tile", f"{name}.copy.element_k"),
    ]
    return f"{extent} x {block_k} a k-tile; no shared memory: threads load what they multiply", entries


def each_k(fragment: Fragment) -> str:
    """How often a thread loads a fragment."""
    return "each k" if fragment.depth == 1 else f"every {fragment.depth} k"


def _how_copied(operand: SharedOperand) -> str:
    """The accesses of one k-tile, in words."""
    copy, itemsize = operand.copy, ITEMSIZE[operand.dtype]
    elements = copy.element_x.size * copy.element_k.size
    who = f"{copy.participants} threads x {plural(elements, 'element')} (i,j)"
    if copy.atom.through_registers:
        read = f"{copy.reads} ld.global of {copy.read_vector * itemsize} bytes{_along(operand, 'read')}"
        if turned(copy):
            who = f"{copy.participants} threads x {elements} (i,j)"
            return f"{who}: {read}, {copy.writes} st.shared of {copy.write.bytes}{_along(operand, 'write')}"
        return f"{who}: {read}, then {copy.writes} st.shared of {copy.write.bytes} bytes"
    return f"{who} by {copy.writes} cp.async of {copy.write.bytes} bytes"


def _along(operand: SharedOperand, side: Side) -> str:
    """The mode of each side's accesses, where a thread turns what it reads along the one and writes along the other."""
    copy = operand.copy
    if not turned(copy):
        return ""
    along = {"x": operand.x, "k": "k"}[copy.read_mode if side == "read" else copy.write_mode]
    return f" along {along}"


def _unit(operand: SharedOperand, width: int = 1) -> str:
    """What an offset counts: words, where an element is one."""
    noun = "word" if ITEMSIZE[operand.dtype] == BANK_BYTES else "element"
    return noun if width == 1 else f"{width} {noun}s"


def _padding(operand: SharedOperand) -> str:
    x, k, _ = operand.shared.layout
    spare = operand.shared.stage_elements - x.size * k.size
    return f"{spare} of {operand.shared.stage_elements} padding" if spare else "no padding"


def _shared(operand: SharedOperand) -> Step:
    x, k, stage = operand.shared.layout
    made = None if operand.shared.swizzle.bits else f"make_layout({x}, {k}, {stage})"
    return Step(
        f"({operand.x},k,stage) -> {_unit(operand)}", made,
        named(operand.shared.layout, operand.x, "k", "stage"), _then(operand), f"{operand.name}.shared.layout",
    )  # fmt: skip


def _then(operand: SharedOperand) -> str:
    """What happens to an offset after its layout."""
    return f"then {operand.shared.swizzle}" if operand.shared.swizzle.bits else ""


def _first(extent: int, values: Layout, threads: int) -> str:
    """The call for where the threads' first elements stand in one mode; as the planner's divide."""
    repeat = call(coalesced(f"complement({values}, {extent})"))
    return str(call(f"composition({repeat}, {threads}:1)"))


def _elements(extent: int, values: Layout, threads: int) -> str:
    """The call for a thread's elements in one mode: its values, and what they and the threads leave over."""
    inner = coalesced(f"complement({values}, {extent})")
    repeat = call(inner)
    parts = [str(values)] if values.size > 1 else []
    if repeat.size > threads:
        parts.append(f"composition({repeat if values.size == 1 else inner}, {repeat.size // threads}:{threads})")
    return coalesced(f"make_layout({', '.join(parts)})" if len(parts) > 1 else (parts or ["1:0"])[0])


def _copy(operand: SharedOperand) -> list[Entry]:
    copy, name, x = operand.copy, operand.name, operand.x
    storage_x, storage_k, _ = operand.shared.layout
    count_x, count_k = copy.threads[0].size, copy.threads[1].size
    at_x = _first(storage_x.size, copy.values[0], count_x)
    at_k = _first(storage_k.size, copy.values[1], count_k)
    inverse = f"right_inverse({copy.threads})"
    place = str(call(inverse))

    def step(label: str, expression: str, of: str) -> Step:
        result = getattr(copy, of)
        return Step(label, None if expression == str(result) else expression, result, "", f"{name}.copy.{of}")

    if operand.shared.swizzle.bits:
        written: list[Entry] = access_steps(copy.write, name, f"{name}.copy.write", ("i", "j", "stage"))
    else:
        written = _written(operand, at_x, at_k, place)
    return [
        *([] if is_identity(call(inverse)) else [Step("thread -> place", inverse, call(inverse))]),
        step(f"thread -> {x}", f"composition(make_layout({at_x}, {count_k}:0), {place})", "thread_x"),
        step("thread -> k", f"composition(make_layout({count_x}:0, {at_k}), {place})", "thread_k"),
        step(f"i -> {x}", _elements(storage_x.size, copy.values[0], count_x), "element_x"),
        step("j -> k", _elements(storage_k.size, copy.values[1], count_k), "element_k"),
        *written,
    ]  # fmt: skip


def _written(operand: SharedOperand, at_x: str, at_k: str, place: str) -> list[Entry]:
    """A thread's base in plain shared memory, and the steps of its pieces."""
    copy, name = operand.copy, operand.name
    storage_x, storage_k, _ = operand.shared.layout

    def step(label: str, expression: str, result: Layout, of: str) -> Step:
        return Step(label, None if expression == str(result) else expression, result, "", f"{name}.copy.write.{of}")

    base_x, base_k = (call(f"composition({s}, {at})") for s, at in ((storage_x, at_x), (storage_k, at_k)))
    steps = ", ".join(_piece_steps(operand))
    assert isinstance(copy.write.base, Layout)  # nothing is swizzled
    return [
        step(
            f"thread -> {_unit(operand)}", f"composition(make_layout({base_x}, {base_k}), {place})", copy.write.base,
            "base",
        ),
        step(
            f"+ step -> {_unit(operand, copy.write_vector)}", f"make_layout({steps})",
            named(copy.write.steps, "i", "j", "stage"), "steps",
        ),
    ]  # fmt: skip


def _piece_steps(operand: SharedOperand) -> list[str]:
    """The modes (i, j, stage) of a copy's shared side, each as text: element steps through the shared layout."""
    copy = operand.copy
    storage_x, storage_k, stage = operand.shared.layout
    elements = (f"composition({storage_x}, {copy.element_x})", f"composition({storage_k}, {copy.element_k})")
    width = copy.write_vector
    return [as_vectors(str(call(each)), width) for each in elements] + [as_vectors(str(stage), width)]


def _fragment(plan: Plan, operand: SharedOperand) -> list[Step]:
    """A thread's base and the steps of its loads."""
    name, width, mode = operand.name, operand.fragment.vector, "mn".index(operand.x)
    storage_x, storage_k, stage = operand.shared.layout
    thread, value = layout_at(plan, f"threads.{operand.x}"), plan.tile.value_mode[mode]
    pieces = call(f"composition({storage_x}, {value})")
    modes = ", ".join(as_vectors(str(each), width) for each in (pieces, storage_k, stage))
    load = operand.fragment.load
    assert isinstance(load.base, Layout)  # scalar fragments come from plain shared memory
    same = str(load.base) == str(thread)
    return [
        Step(
            "thread -> word", None if same else f"composition({storage_x}, {thread})",
            named(load.base, "lane", "warp"), f"as thread -> {operand.x}" if same else "", f"{name}.fragment.load.base",
        ),
        Step(
            f"+ step -> {_unit(operand, width)}", f"make_layout({modes})",
            named(load.steps, "load", "k" if operand.fragment.depth == 1 else f"k{operand.fragment.depth}", "stage"),
            "" if operand.fragment.depth == 1 else f"k{operand.fragment.depth}: {operand.fragment.depth} k each",
            f"{name}.fragment.load.steps",
        ),
    ]  # fmt: skip
