"""The operations of the case file whose arguments are more than layouts: coordinates, atoms, tilings in words.

Each function takes the arguments as text and gives what the library computes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from layoutgen import algebra
from layoutgen.algebra import (
    Layout,
    SmemLayout,
    TiledCopy,
    TiledMma,
    as_position_independent,
    local_partition,
    local_tile,
    make_tiled_copy,
    make_tiled_copy_for,
    make_tiled_mma,
    parse,
    parse_coordinate,
    tile_to_shape,
)
from layoutgen.hw.copy_layouts import copy_instruction
from layoutgen.hw.gmma_atoms import gmma_smem_atom
from layoutgen.hw.mma_atoms import MMA_ATOMS, mma_atom
from layoutgen.hw.types import bits_of

# What "SM80_16x8x16" alone means, by the element that the copy beside it moves.
DEFAULT_TYPES = {"f16": "F32F16F16F32", "bf16": "F32BF16BF16F32", "tf32": "F32TF32TF32F32", "s8": "S32S8S8S32"}


def split(text: str) -> list[str]:
    """Arguments separated by commas outside all brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def layout(text: str) -> Any:
    """A layout; a bare shape is the compact one."""
    value = parse(text)
    return Layout(value) if isinstance(value, (int, tuple)) else value


def width(element: str) -> int:
    """Bits of f16, s8, or u128."""
    if element in ("u16", "u32", "u64", "u128"):
        return int(element[1:])
    return bits_of(element.upper())


def tiled_mma(text: str, element: str = "f16") -> TiledMma:
    """NAME,atom layout,<permutation>, with a remark in parentheses after it."""
    name, *rest = split(re.sub(r" \([^()]*\)$", "", text))
    if f"{name}_{DEFAULT_TYPES[element]}_TN" in MMA_ATOMS:
        name = f"{name}_{DEFAULT_TYPES[element]}_TN"
    atoms = layout(rest[0]) if rest else None
    permutation: Any = parse(rest[1]) if len(rest) > 1 else ()
    return make_tiled_mma(mma_atom(name).layouts, atoms, permutation)


def copy_atom(text: str) -> Any:
    """INSTRUCTION/element, or UniversalCopy<element>."""
    name, _, element = text.partition("/")
    if not element:
        element = name.split("<")[1].rstrip(">")
    name = re.sub(r"<(\w+)>", lambda match: f"<u{width(match[1])}>", name)
    return copy_instruction(name).layouts.recast(1, width(element))


def tiled_copy(text: str) -> TiledCopy:
    """INSTRUCTION/element,thr LAYOUT,val LAYOUT."""
    atom, *rest = split(text)
    words = dict(part.split(" ", 1) for part in rest)
    return make_tiled_copy(copy_atom(atom), layout(words["thr"]), layout(words.get("val", "1")))


def copy_for(operand: Any, side: str) -> Callable[[str], Any]:
    def run(text: str) -> Any:
        atom, mma = text.split(" on ")
        copy = make_tiled_copy_for(copy_atom(atom), tiled_mma(mma, atom.split("/")[1]), operand)
        return getattr(copy, f"layout_{side}_TV")()

    return run


def smem_atom(text: str) -> SmemLayout:
    match = re.fullmatch(r"GMMA::Layout_(K|MN)_(INTER|SW(\d+))_Atom<(\w+)>", text)
    assert match, text
    return gmma_smem_atom(match[1], int(match[3] or 16), width(match[4]))


def smem_tile(text: str) -> SmemLayout:
    atom, shape = split(text)
    extents: Any = parse(shape)
    return smem_atom(atom).tile_to_shape(extents)


def smem_expression(text: str) -> tuple[SmemLayout, Any]:
    """tile_to_shape(ATOM,shape), and the coordinate that follows, if any."""
    match = re.fullmatch(r"tile_to_shape\((.*?>,\([^()]*\))\)(\(.*\))?", text)
    assert match, text
    return smem_tile(match[1]), parse(match[2]) if match[2] else None


def smem_call(text: str) -> int:
    tile, coordinate = smem_expression(text)
    return tile(coordinate)


def position_independent(text: str) -> Any:
    tile, coordinate = smem_expression(text)
    function = as_position_independent(tile)
    return function if coordinate is None else function(coordinate)


def tile_at(block: str, shape: str, coordinate: str) -> Any:
    extents: Any = parse(shape)
    point: Any = parse(coordinate)
    return tile_to_shape(layout(block), extents)(point)


def words_of(text: str, *names: str) -> list[str]:
    """The argument before the first name, and those after each, of "A tile B coord C"."""
    match = re.fullmatch("(.*?)" + "".join(rf"(?: {name} (.*?))?" for name in names), text)
    assert match, text
    return list(match.groups())


def projection(text: str | None) -> Any:
    return None if text is None else parse(text.replace("X", "_"))


def tiled(text: str) -> Any:
    source, tiler, coordinate, step = words_of(text, "tile", "coord", "step")
    cut: Any = parse(tiler)
    return local_tile(layout(source), cut, parse_coordinate(coordinate), projection(step))


def partitioned(text: str) -> Any:
    source, threads, index, step = words_of(text, "thr", "idx", "step")
    return local_partition(layout(source), layout(threads), int(index), projection(step))


def sliced(operation: Callable[[Any, Any], Any]) -> Callable[[str, str], Any]:
    return lambda source, coordinate: operation(layout(source), parse_coordinate(coordinate))


def shaped(method: str, operand: Any, shape: str) -> Callable[[str], Any]:
    """partition_shape_A(128,64) and its like, whose operation's name carries a shape."""
    extents: Any = parse(shape)

    def run(text: str) -> Any:
        mma = tiled_mma(text)
        if method == "partition_shape":
            return mma.partition_shape(operand, extents)
        if operand == "C":
            return mma.partition_fragment_C(extents)
        return getattr(mma, f"partition_fragment_{operand}")(Layout(extents), 0)

    return run


def tv(operand: Any) -> Callable[[str], Any]:
    return lambda text: tiled_mma(text).tv_layout(operand)


TEXT_OPERATIONS: dict[str, Callable[..., Any]] = {
    "as_position_independent": position_independent,
    "copy_atom_dst": lambda text: copy_atom(text).dst,
    "copy_atom_src": lambda text: copy_atom(text).src,
    "dice": sliced(algebra.dice),
    "local_partition": lambda text: partitioned(text).layout,
    "local_partition_offset": lambda text: partitioned(text).offset,
    "local_partition_step": lambda text: partitioned(text).layout,
    "local_tile": lambda text: tiled(text).layout,
    "mma_atom_A": lambda text: mma_atom(text).layouts.a,
    "mma_atom_B": lambda text: mma_atom(text).layouts.b,
    "mma_atom_C": lambda text: mma_atom(text).layouts.c,
    "mma_atom_thr": lambda text: mma_atom(text).layouts.threads,
    "slice": sliced(algebra.slice),
    "slice_and_offset": sliced(algebra.slice_and_offset),
    "smem_atom": smem_atom,
    "smem_call": smem_call,
    "smem_ptr_flag": lambda text: smem_expression(text)[0],
    "smem_tile_to_shape": smem_tile,
    "tile_to_shape_at": tile_at,
    "tiled_copy_A_D_TV": copy_for("A", "D"),
    "tiled_copy_A_S_TV": copy_for("A", "S"),
    "tiled_copy_B_D_TV": copy_for("B", "D"),
    "tiled_copy_B_S_TV": copy_for("B", "S"),
    "tiled_copy_D_TV": lambda text: tiled_copy(text).layout_D_TV(),
    "tiled_copy_S_TV": lambda text: tiled_copy(text).layout_S_TV(),
    "tiled_copy_tiler": lambda text: tiled_copy(text).tile,
    "tiled_mma_A_TV": tv("A"),
    "tiled_mma_B_TV": tv("B"),
    "tiled_mma_C_TV": tv("C"),
    "tiled_mma_thr": lambda text: tiled_mma(text).threads_vmnk,
    "tiled_mma_tile_mnk": lambda text: tiled_mma(text).tile_mnk,
}


def text_operation(name: str) -> Callable[..., Any] | None:
    """The function for an operation whose arguments it reads itself."""
    with_shape = re.fullmatch(r"(partition_shape|partition_fragment)_([ABC])(\(.*\))", name)
    return shaped(*with_shape.groups()) if with_shape else TEXT_OPERATIONS.get(name)
