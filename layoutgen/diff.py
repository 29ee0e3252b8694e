"""What differs between two tilings: the keys of their specs, the layouts of their primary plans by level, their facts.

Facts are compared as the plain data that a report gives, whatever is in it; but for none of what the other lacks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import Any

from layoutgen.algebra import Layout
from layoutgen.hw.atoms import CopyAtom
from layoutgen.plan.chain import Link
from layoutgen.plan.model import Plan, Program
from layoutgen.spec import Spec

NAMES = frozenset({"name", "about"})  # what a tiling is called makes no difference
LEVELS = (
    ("tile.block", "block"),
    ("tile.warp", "warps"),
    ("tile.lane", "lanes"),
    ("tile.value", "values"),
    ("threads", "threads"),
    ("a.shared", "A in shared memory"),
    ("a.copy", "A's copy"),
    ("a.fragment", "A's fragment"),
    ("b.shared", "B in shared memory"),
    ("b.copy", "B's copy"),
    ("b.fragment", "B's fragment"),
    ("a.", "A"),
    ("b.", "B"),
    ("epilogue", "epilogue"),
    ("", "kernel"),
)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: its spec, its plans (none where its levels do not compose) and its facts as plain data."""

    spec: Spec
    plans: tuple[Plan, ...]
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs. a, b: as text, or None where that side has none.

    level: of the plan, what it belongs to. where_a, where_b: of a spec's key, file:line, or "default" where the file
    leaves it out; empty where that side has none.
    """

    what: str
    a: str | None
    b: str | None
    level: str = ""
    where_a: str = ""
    where_b: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs, A's side first.

    composes: whether the levels of each side do; a plan is compared where both do.
    variants: those that both have and that differ, the primary one among them.
    same: both compose to the same plans and have the same facts, whatever they are called and however they are written.
    """

    a: str
    b: str
    spec: tuple[Change, ...]
    plan: tuple[Change, ...]
    facts: tuple[Change, ...]
    composes: tuple[bool, bool]
    variants: tuple[str, ...]
    same: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def diff(a: Side, b: Side) -> Difference:
    """Two sides -> what differs between them."""
    spec = tuple(_spec_changes(a.spec, b.spec))
    facts = tuple(each for each in _changes(_flat(a.facts), _flat(b.facts)) if {each.a, each.b} != {None, "0"})
    plans_a, plans_b = ({plan.variant: _nameless(plan) for plan in side.plans} for side in (a, b))
    variants = tuple(v for v in plans_a if v in plans_b and plans_a[v] != plans_b[v])
    composes = (bool(a.plans), bool(b.plans))
    plan = tuple(_plan_changes(a.plans[0], b.plans[0])) if all(composes) else ()
    same = plans_a == plans_b and not facts and (all(composes) or not spec)
    return Difference(a.spec.name, b.spec.name, spec, plan, facts, composes, variants, same)


def _nameless(plan: Plan) -> Plan:
    return replace(plan, name="", about="")


def _changes(a: Mapping[str, str], b: Mapping[str, str]) -> Iterator[Change]:
    """The keys of either side whose values differ: A's order, then B's own, and what is nested stays together."""
    keys = dict.fromkeys([*a, *b])
    tops = list(dict.fromkeys(key.partition(".")[0] for key in keys))
    for key in sorted(keys, key=lambda key: tops.index(key.partition(".")[0])):
        if a.get(key) != b.get(key):
            yield Change(key, a.get(key), b.get(key))


def _flat(data: Any, under: str = "", left_out: frozenset[str] = NAMES | {"where"}) -> dict[str, str]:
    """Plain data -> dotted key -> value as text; what a side is called and where it stands is left out."""
    if isinstance(data, Mapping):
        kept = {str(key): value for key, value in data.items() if key not in left_out}
        inner = [_flat(value, f"{under}.{key}".strip("."), left_out) for key, value in kept.items()]
        return {key: value for each in inner for key, value in each.items()}
    if isinstance(data, (list, tuple)) and any(isinstance(each, (Mapping, list)) for each in data):
        return _flat({str(index): each for index, each in enumerate(data)}, under, left_out)
    if isinstance(data, (list, tuple)):
        return {under: f"[{', '.join(map(_text, data))}]"}
    return {} if data is None else {under: _text(data)}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)


def _spec_changes(a: Spec, b: Spec) -> Iterator[Change]:
    # A tensor's name, unlike the spec's, is what a call says.
    data = (spec.model_dump(exclude_none=True, exclude=set(NAMES)) for spec in (a, b))
    flat_a, flat_b = (_flat(each, left_out=frozenset()) for each in data)
    for change in _changes(flat_a, flat_b):
        yield replace(change, where_a=_place(a, change.what, change.a), where_b=_place(b, change.what, change.b))


def _place(spec: Spec, key: str, value: str | None) -> str:
    """Where the key stands that has this value."""
    return "" if value is None else str(spec.where(key)) if spec.spells(key) else "default"


# ---- plans ----


def _plan_changes(a: Plan, b: Plan) -> Iterator[Change]:
    names = [name for _, name in LEVELS]
    changes = []
    for change in _changes(dict(_leaves(a)), dict(_leaves(b))):
        level = next((name for prefix, name in LEVELS if change.what.startswith(prefix)), names[-1])
        changes.append(replace(change, what=_label(change.what, a), level=level))
    yield from sorted(changes, key=lambda change: names.index(change.level))
    slots = [{"register slots": str(plan.program.slots)} for plan in (a, b)]
    yield from (replace(change, level="program") for change in _changes(*slots))
    for part in ("prologue", "steady"):
        yield from _step_changes(part, getattr(a.program, part), getattr(b.program, part))


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Every value that a plan holds but for its program, as text, by its path such as tile.value_mode.0."""
    if isinstance(value, Program):
        return
    if isinstance(value, (Layout, CopyAtom)):
        yield path, str(value) if isinstance(value, Layout) else value.name
    elif isinstance(value, Link):
        yield path, str(value)
        if (tensor := value.tensor) is not None:
            yield f"{path}.tensor", f"{tensor.name} in {tensor.dtype}, {value.bytes} bytes at once"
    elif is_dataclass(value):
        for field in fields(value):
            if path or field.name not in NAMES:
                yield from _leaves(getattr(value, field.name), f"{path}.{field.name}".strip("."))
    elif isinstance(value, tuple) and any(isinstance(each, Layout) or is_dataclass(each) for each in value):
        for index, each in enumerate(value):
            yield from _leaves(each, f"{path}.{index}")
    elif isinstance(value, tuple):
        yield path, " x ".join(map(str, value))
    elif isinstance(value, frozenset):
        yield path, ", ".join(sorted(map(str, value)))
    else:
        yield path, _text(value)


def _label(path: str, plan: Plan) -> str:
    """A path of a plan in the words of the spec and of the emitted kernel."""
    head, _, rest = path.partition(".")
    if head in ("a", "b"):
        x = (plan.a if head == "a" else plan.b).x
        return _OPERAND.get(rest, path).replace("X", x)
    if (step := re.fullmatch(r"epilogue\.chain\.(\d+)(\.tensor)?", path)) is not None:
        return f"step {int(step[1]) + 1}" + ("'s tensor" if step[2] else "")
    return _TILE.get(path, path)


_TILE = {
    "tile.block": "(m,n,k)",
    "tile.lanes": "(lane_m,lane_n) -> lane",
    "tile.warps": "(warp_m,warp_n) -> warp",
    **{f"tile.{name}_mode.{i}": f"{name}_{x} -> {x}" for name in ("lane", "warp") for i, x in enumerate("mn")},
    **{f"tile.value_mode.{i}": f"value -> {x}" for i, x in enumerate("mn")},
    **{f"threads.{x}": f"thread -> {x}" for x in "mn"},
    "threads.threads": "threads",
    "order.layout": "FFMA order, step -> value",
    "order.serpentine": "FFMA order, serpentine",
    "stages": "stages",
    "epilogue.thread_n": "thread -> n that it stores",
    "epilogue.value_n": "stored value -> n",
    "epilogue.turns": "turns of a thread's rows",
    "epilogue.early": "columns before the main loop",
}
_OPERAND = {
    "shared.layout": "(X,k,stage) -> word",
    "shared.stage_elements": "words a stage",
    "shared.bytes": "bytes",
    "shared.swizzle.bits": "swizzle, bits",
    "shared.swizzle.base": "swizzle, lowest bit",
    "shared.swizzle.shift": "swizzle, shift",
    "copy.participants": "threads that copy",
    "copy.read_mode": "reads run along",
    "copy.write_mode": "writes run along",
    "copy.read_vector": "words a read",
    "copy.write_vector": "words a write",
    "copy.threads": "(X,k) -> thread",
    "copy.values.0": "values in X",
    "copy.values.1": "values in k",
    "copy.thread_x": "thread -> X",
    "copy.thread_k": "thread -> k",
    "copy.element_x": "i -> X",
    "copy.element_k": "j -> k",
    "copy.write.name": "access",
    "copy.write.base": "thread -> word",
    "copy.write.steps": "(i,j,stage) -> access",
    "copy.write.flips": "(i,j,stage) -> access, flipped",
    "copy.write.bytes": "bytes an access",
    "copy.write.opcode": "instruction",
    "copy.atom": "atom",
    "fragment.load.name": "access",
    "fragment.load.opcode": "instruction",
    "fragment.load.base": "thread -> word",
    "fragment.load.steps": "(load,k,stage) -> access",
    "fragment.load.flips": "(load,k,stage) -> access, flipped",
    "fragment.load.bytes": "bytes a load",
    "fragment.vector": "words a load",
    "fragment.vectors": "loads, for as many k as one brings",
    "fragment.mode": "a load runs along",
    "fragment.depth": "k a load",
    "tile": "(X,k) of a k-tile",
}


def _step_changes(part: str, a: Sequence[object], b: Sequence[object]) -> Iterator[Change]:
    """How often each kind of step stands in a part of the program; where that is the same, the first that differs."""
    if a == b:
        return
    counts = [Counter(type(step).__name__ for step in steps) for steps in (a, b)]
    if counts[0] != counts[1]:
        for change in _changes(*({kind: str(count) for kind, count in each.items()} for each in counts)):
            yield replace(change, what=f"{part}: {change.what}", level="program")
        return
    at = next(index for index, (one, two) in enumerate(zip(a, b, strict=True)) if one != two)
    yield Change(f"{part}: step {at}", _step(a[at]), _step(b[at]), "program")


def _step(step: object) -> str:
    values = [f"{field.name}={_value(getattr(step, field.name))}" for field in fields(step)]  # type: ignore[arg-type]
    return f"{type(step).__name__}({', '.join(values)})"


def _value(value: object) -> str:
    return "+".join(sorted(map(str, value))) if isinstance(value, frozenset) else str(value)
