"""How each value of a spec is read: from the text that the user wrote to what the field holds, or refused.

A field refuses with the end of a sentence that starts with its key; its JSON schema says as much as YAML's types can.
"""

from __future__ import annotations

import keyword
import re
from typing import Annotated, Any, Final, Literal, NamedTuple, NoReturn, get_args

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from layoutgen.algebra import ComposedLayout, Layout, Swizzle
from layoutgen.errors import LayoutError, meant
from layoutgen.hw.warp_atoms import WARP_ATOMS
from layoutgen.yamltext import describe

MAX_INT: Final = 1 << 20  # no extent, stride or count of one thread block comes near it

Arch = Literal[
    "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103", "sm_103a", "sm_120",
    "sm_120a", "gfx942",
]  # fmt: skip
DType = Literal["f32", "tf32", "f16", "bf16", "f64", "s8", "u8", "e4m3", "e5m2"]
CType = Literal["f32", "f16", "bf16", "f64", "s32", "s8", "u8", "e4m3", "e5m2"]
Sums = Literal["f32", "f64", "s32"]
Split = Literal["tf32x3", "bf16x6"]
ATOMS: Final = tuple(WARP_ATOMS)
"""The MMA atoms that a spec may name."""
OrderWord = Literal["m", "n", "serpentine_m", "serpentine_n"]
Tiler = tuple[Layout, ...]
"""One layout per mode, as in CuTe; an int n stands for the contiguous run n:1."""


class Order(NamedTuple):
    """How a thread walks its values: with m or n as the outer mode, or by a layout step -> value.

    Its text is what a spec writes: `serpentine_m`, or `serpentine (8,16):(16,1)`.
    """

    walk: Literal["m", "n"] | Layout
    serpentine: bool

    def __str__(self) -> str:
        between = " " if isinstance(self.walk, Layout) else "_"
        return f"serpentine{between}{self.walk}" if self.serpentine else str(self.walk)


def _refuse(rule: str, got: object, *, allowed: str | None = None, fix: str | None = None) -> NoReturn:
    raise PydanticCustomError("layoutgen", "{rule}", {"rule": rule, "got": got, "allowed": allowed, "fix": fix})


def _text(value: object, rule: str, allowed: str) -> str:
    if not isinstance(value, str):
        _refuse(rule, describe(value), allowed=allowed)
    return value


def _name(value: object) -> str:
    allowed = "a lower-case letter, then lower-case letters, digits and _; at most 64; no keyword of Python"
    text = _text(value, "must be a name", allowed)
    if not is_name(text):
        _refuse("must be a name", repr(text), allowed=allowed)
    return text


def is_name(text: str) -> bool:
    return re.fullmatch(r"[a-z][a-z0-9_]{0,63}", text) is not None and not keyword.iskeyword(text)


def _about(value: object) -> str:
    # It becomes a `//` comment of the emitted file, where a backslash at the end would swallow the next line.
    allowed = "1 to 200 printable characters, the last of them no backslash"
    text = _text(value, "must be one line of text", allowed)
    if not text.strip() or len(text) > 200 or not text.isprintable() or text.endswith("\\"):
        _refuse("must be one line of text", repr(text), allowed=allowed)
    return text


def _integer(value: object, rule: str = "must be a positive integer", *, least: int = 1) -> int:
    allowed = f"{least} to {MAX_INT}, in decimal digits"
    text = _text(value, rule, allowed)
    if not re.fullmatch(r"0|[1-9][0-9]{0,6}", text) or not least <= int(text) <= MAX_INT:
        _refuse(rule, repr(text), allowed=allowed)
    return int(text)


def _stages(value: object) -> int:
    return _integer(value, "must be a number of stages", least=0)


def _spread(value: object) -> tuple[int, int]:
    allowed = "two integers [first, last], the last larger than the first, such as [1, 15]"
    modes = _modes(value)
    if modes is None or len(modes) != 2:
        _refuse("must be a range of k", describe(value), allowed=allowed)
    first, last = (_integer(mode, "must hold integers", least=0) for mode in modes)
    if first >= last:
        _refuse("must be a range of k", f"[{first}, {last}]", allowed=allowed)
    return first, last


def _order(value: object) -> Order:
    words = get_args(OrderWord)
    allowed = f"{', '.join(words)}, or a layout of steps such as (8,16):(16,1), with or without serpentine before it"
    text = _text(value, "must be an order of multiply-adds", allowed).strip()
    if text in words:
        return Order("m" if text.endswith("m") else "n", text.startswith("serpentine"))
    serpentine, layout = re.fullmatch(r"(serpentine\s+)?(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    if re.match(r"[(0-9]", layout) is None:
        _refuse("must be an order of multiply-adds", repr(text), allowed=allowed, fix=meant(text, words))
    return Order(_layout(layout), serpentine is not None)


def _layout(value: object) -> Layout:
    example = "a layout in CuTe's notation, such as (8,4):(4,1)"
    text = _text(value, "must be a layout", example)
    if len(text) > 400 or any(len(n) > 7 or int(n) > MAX_INT for n in re.findall(r"[0-9]+", text)):
        rule, allowed = "must be a layout of modest size", f"numbers up to {MAX_INT}, at most 400 characters"
        _refuse(rule, repr(text[:60] + "..." if len(text) > 60 else text), allowed=allowed)
    try:
        layout = Layout.parse(text)
    except LayoutError as error:
        got = error.got if error.got and text in error.got else f"{text!r}: {error.got}"
        _refuse(f"is a layout, and {error.rule}", got, allowed=error.allowed or example, fix=error.fix)
    if min(layout.flat_stride, default=0) < 0:
        _refuse("must be a layout of positions", str(layout), allowed="strides of at least 0")
    return layout


def _matrix(value: object) -> Layout:
    """A layout of two modes; 32:1 is one column, (32,1):(1,0)."""
    layout = _layout(value)
    if not isinstance(layout.shape, tuple):
        return Layout((layout.shape, 1), (layout.stride, 0))
    if layout.rank != 2:
        _refuse("must be a layout of two modes", str(layout), allowed="(m,n):(stride,stride), each nested at will")
    return layout


def _shared(value: object) -> Layout | ComposedLayout:
    """A layout of two modes, or a swizzle of one."""
    text = value.strip() if isinstance(value, str) else ""
    if not text.startswith("Sw"):
        return _matrix(value)
    example = "a swizzle of a layout, such as Sw<3,3,3> o 0 o (128,64):(64,1)"
    if (match := re.fullmatch(r"(Sw<\d{1,2},\d{1,2},\d{1,2}>)\s*o\s*(?:0\s*o\s*)?([^oS]*)", text)) is None:
        _refuse("must be a swizzle of a layout", repr(text), allowed=example)
    try:
        swizzle = Swizzle.parse(match[1])
    except LayoutError as error:
        _refuse(f"is a swizzle, and {error.rule}", repr(text), allowed=error.allowed or example, fix=error.fix)
    return ComposedLayout(swizzle, 0, _matrix(match[2]))


def _atom(value: object) -> str:
    rule, allowed = (
        "must be an MMA atom of one warp, by CuTe's name or AMD's mnemonic",
        f"one of {len(ATOMS)}, such as {ATOMS[4]}",
    )
    text = _text(value, rule, allowed)
    if text not in ATOMS:
        _refuse(rule, repr(text), allowed=allowed, fix=meant(text, ATOMS))
    return text


def _modes(value: object) -> list[object] | None:
    """The modes of [x, y] or <x, y> as they are written, or None for anything else."""
    if isinstance(value, list):
        return value
    match = re.fullmatch(r"\s*<(.*)>\s*", value, re.DOTALL) if isinstance(value, str) else None
    if match is None:
        return None
    modes, depth = [""], 0
    for char in match[1]:
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            modes.append("")
        else:
            modes[-1] += char
    return [mode.strip() for mode in modes]


def _tiler(value: object) -> Tiler:
    allowed = "a tile [8, 4] or one layout per mode <(4,2):(1,16), 8>"
    modes = _modes(value)
    if modes is None or len(modes) != 2:
        _refuse("must be a tile of two modes", describe(value), allowed=allowed)
    return tuple(_mode(mode) for mode in modes)


def _mode(value: object) -> Layout:
    if isinstance(value, str) and ":" not in value and "(" not in value:
        return Layout(_integer(value, "must hold positive integers or layouts"), 1)
    return _layout(value)


def _block(value: object) -> tuple[int, int, int]:
    modes = _modes(value)
    if modes is None or len(modes) != 3:
        _refuse("must be a block tile", describe(value), allowed="three integers [M, N, K]")
    m, n, k = (_integer(mode, "must hold positive integers") for mode in modes)
    return m, n, k


def _show_tiler(tiler: Tiler) -> list[int] | str:
    runs = [mode.size for mode in tiler if not isinstance(mode.shape, tuple) and mode.stride == 1]
    return runs if len(runs) == len(tiler) else f"<{', '.join(map(str, tiler))}>"


# What JSON's types say of a text: YAML 1.1 takes `2` and even `32:1` for numbers, and `yes` for a truth value.
_DIGITS: Final[dict[str, Any]] = {"type": "string", "pattern": "^[1-9][0-9]{0,6}$"}
_COUNT: Final[dict[str, Any]] = {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_INT}, _DIGITS]}
_COUNT_OR_0: Final[dict[str, Any]] = {"anyOf": [*_COUNT["anyOf"], {"enum": [0, "0"]}]}
_LAYOUT: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "string", "pattern": "^[ ]*[(1-9][(), 0-9]*(:[(), 0-9]+)?$", "maxLength": 400},
        {"type": "integer", "minimum": 1},
    ]
}
_ORDER: Final[dict[str, Any]] = {
    "anyOf": [
        {"enum": list(get_args(OrderWord))},
        {"type": "string", "pattern": "^[ ]*serpentine[ ]+[(1-9][(), 0-9]*(:[(), 0-9]+)?$", "maxLength": 420},
        *_LAYOUT["anyOf"],
    ]
}
_TILER: Final[dict[str, Any]] = {"type": "string", "pattern": "^[ ]*<[(),: 0-9]*>[ ]*$"}


def _list(items: dict[str, Any], count: int) -> dict[str, Any]:
    return {"anyOf": [_TILER, {"type": "array", "items": items, "minItems": count, "maxItems": count}]}


_NAME: Final[dict[str, Any]] = {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$", "not": {"enum": keyword.kwlist}}
_ABOUT: Final[dict[str, Any]] = {
    "type": ["string", "number", "boolean"],
    "maxLength": 200,
    "pattern": r"^[^\n]*[^\\\n]$",
}

Name = Annotated[str, PlainValidator(_name), WithJsonSchema(_NAME)]
About = Annotated[str, PlainValidator(_about), WithJsonSchema(_ABOUT)]
Count = Annotated[int, PlainValidator(_integer), WithJsonSchema(_COUNT)]
Stages = Annotated[int, PlainValidator(_stages), WithJsonSchema(_COUNT_OR_0)]
Matrix = Annotated[Layout, PlainValidator(_matrix), PlainSerializer(str), WithJsonSchema(_LAYOUT)]
SharedMatrix = Annotated[
    Layout | ComposedLayout,
    PlainValidator(_shared),
    PlainSerializer(str),
    WithJsonSchema({"anyOf": [*_LAYOUT["anyOf"], {"type": "string", "pattern": "^[ ]*Sw<.*$", "maxLength": 420}]}),
]
Atom = Annotated[str, PlainValidator(_atom), WithJsonSchema({"enum": list(ATOMS)})]
Tile = Annotated[Tiler, PlainValidator(_tiler), PlainSerializer(_show_tiler), WithJsonSchema(_list(_LAYOUT, 2))]
Spread = Annotated[
    tuple[int, int], PlainValidator(_spread), PlainSerializer(list), WithJsonSchema(_list(_COUNT_OR_0, 2))
]
FfmaOrder = Annotated[Order, PlainValidator(_order), PlainSerializer(str), WithJsonSchema(_ORDER)]
Block = Annotated[tuple[int, int, int], PlainValidator(_block), WithJsonSchema(_list(_COUNT, 3))]
