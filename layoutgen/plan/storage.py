"""Shared memory and fragments: where an operand's k-tile lies, and how a thread reads its values of it."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import Literal

import numpy as np

from layoutgen.algebra import (
    ComposedLayout,
    Layout,
    Swizzle,
    coalesce,
    composition,
    make_layout,
    max_vector,
    upcast,
)
from layoutgen.algebra.int_tuple import prime_factors, unflatten
from layoutgen.errors import PlanError
from layoutgen.hw.warp_atoms import WARP_ATOMS
from layoutgen.plan.model import PLAIN, Access, Fragment, Mode, Opcode, OperandName, Shared
from layoutgen.plan.tile import composing
from layoutgen.spec import Spec

ITEMSIZE = {"f32": 4, "tf32": 4, "s32": 4, "f64": 8, "f16": 2, "bf16": 2, "s8": 1, "u8": 1, "e4m3": 1, "e5m2": 1}
INTEGERS = ("s32", "s8", "u8")  # that C may be
VECTOR_BYTES = 16  # the widest shared or global access of one thread (PTX ISA: ld/st .v4.b32, cp.async 16)
ROW_BYTES = 128  # of shared memory: a word from each of its 32 banks
SWIZZLE_BYTES = 1024  # a block's shared memory begins on a multiple, and so does each stage that atoms read
SharedLayout = Layout | ComposedLayout
SECTOR_BYTES = 32  # of global memory; copies that bypass L1 keep them whole (CUDA best practices guide)
# Words between the rows of a default layout. Where a copy transposes, it writes eight k of four x without conflict.
# Where it doesn't, each row starts on a sector, and the variants that do transpose meet only two to a bank.
PAD = {"transposed": 4, "straight": 8}


def default_shared(extent: int, block_k: int, contiguous: Mode | None) -> Layout:
    """(x, k) -> word: x-contiguous, for an operand whose global mode is `contiguous`; PAD words between rows."""
    pad = PAD["transposed" if contiguous == "k" else "straight"]
    return Layout((extent, block_k), (1, -(-extent // pad) * pad + pad))


def swizzled_shared(extent: int, block_k: int, walk: Literal["x", "k"], itemsize: int, granule: int) -> SharedLayout:
    """(x, k) -> offset, contiguous in `walk`, for reads of `granule` bytes from each of 128 / granule rows together.

    A row's granules are permuted by the bits of its number, so that those reads meet every bank once; rows whose
    granules are no power of two are padded instead, to an odd number of them.
    """
    row = block_k if walk == "k" else extent
    unit, ways = granule // itemsize, ROW_BYTES // granule
    granules = -(-row // unit)
    tidy = row % unit == 0 and granules.bit_count() == 1
    pitch = row if tidy else (granules | 1) * unit
    layout = Layout((extent, block_k), (pitch, 1) if walk == "k" else (1, pitch))
    bits, base, shift = (number.bit_length() - 1 for number in (min(ways, granules), unit, max(ways, granules)))
    return ComposedLayout(Swizzle(bits, base, shift), 0, layout) if tidy and bits else layout


def default_of(spec: Spec, operand: OperandName, extent: int, contiguous: Mode) -> SharedLayout:
    """The planner's choice for an operand whose global memory is contiguous in that mode."""
    block_k, dtype = spec.tiling.block[2], getattr(spec.operands, operand).dtype
    if spec.tiling.atom is None:
        return default_shared(extent, block_k, contiguous)
    if spec.amd:  # a lane reads a run of k at once
        run = WARP_ATOMS[spec.tiling.atom].layouts.a[1].size
        return swizzled_shared(extent, block_k, "k", ITEMSIZE[dtype], run * ITEMSIZE[dtype])
    walk: Literal["x", "k"] = "k" if contiguous == "k" or ITEMSIZE[dtype] == 1 else "x"
    matrices = by_matrices(dtype, walk)
    return swizzled_shared(extent, block_k, walk, ITEMSIZE[dtype], VECTOR_BYTES if matrices else SECTOR_BYTES)


def by_matrices(dtype: str, walk: Literal["x", "k"]) -> bool:
    """Whether ldmatrix brings fragments of a tile that is contiguous in `walk`: rows of 16 bytes along k, whatever they
    hold up to 4 bytes an element, and transposed elements of 16 bits."""
    return ITEMSIZE[dtype] <= 4 if walk == "k" else ITEMSIZE[dtype] == 2


def write_default(spec: Spec, operand: OperandName, extent: int) -> str:
    """The edit that mends any shared layout."""
    contiguous = getattr(spec.operands, operand).contiguous
    return f"write shared.{operand}: {default_of(spec, operand, extent, contiguous)}"


def place_shared(spec: Spec, operand: OperandName, extent: int, contiguous: Mode) -> Shared:
    """(x, k) of the spec -> (x, k, stage), each stage on a 32-byte boundary; for atoms on one of 1024 bytes, where a
    swizzle starts anew too.

    contiguous: the mode of the variant's global memory. Scalar fragments are read from the same layout whatever that
    is; where atoms multiply, a spec's layout is for its own mode and the default for the other.
    Raises PlanError where the spec's layout is not one of the operand's (BLK_X, BLK_K) tile.
    """
    block_k, atoms = spec.tiling.block[2], spec.tiling.atom is not None
    own, dtype = (getattr(getattr(spec.operands, operand), each) for each in ("contiguous", "dtype"))
    one = getattr(spec.shared, operand)
    if one is None or (atoms and contiguous != own):
        one = default_of(spec, operand, extent, contiguous if atoms else own)
    swizzle, plain = apart(one)
    if (plain[0].size, plain[1].size) != (extent, block_k):
        raise PlanError(
            f"shared.{operand} must be a layout of the ({'m' if operand == 'a' else 'n'}, k) tile",
            got=f"{one}, of ({plain[0].size}, {plain[1].size}) elements",
            allowed=f"({extent}, {block_k}) elements",
            fix=write_default(spec, operand, extent),
            where=spec.where(f"shared.{operand}"),
        )
    itemsize = ITEMSIZE[dtype]
    if swizzle.bits and (not atoms or swizzle.target_mask * itemsize >= SWIZZLE_BYTES):
        raise PlanError(
            f"a swizzle is for the fragments of MMA atoms, and permutes within {SWIZZLE_BYTES} bytes",
            got=str(one) if atoms else f"{one} without tiling.atom",
            allowed="a layout" if not atoms else f"bits below {SWIZZLE_BYTES // itemsize} elements",
            fix=write_default(spec, operand, extent),
            where=spec.where(f"shared.{operand}"),
        )
    # Where addresses flip bits, these must be clear where an operand's stages begin, whatever the other's take.
    unit = max((SWIZZLE_BYTES if atoms else SECTOR_BYTES) // itemsize, span(swizzle))
    stage = -(-plain.cosize // unit) * unit
    layout = make_layout(plain[0], plain[1], Layout(spec.shared.stages, stage))
    return Shared(layout, stage, stage * spec.shared.stages * itemsize, swizzle)


def apart(layout: SharedLayout) -> tuple[Swizzle, Layout]:
    """A layout of shared memory as its swizzle and what that permutes. Its parts are a spec's or this module's."""
    if isinstance(layout, Layout):
        return PLAIN, layout
    assert isinstance(layout.layout_a, Swizzle) and isinstance(layout.layout_b, Layout)
    return layout.layout_a, layout.layout_b


def span(swizzle: Swizzle) -> int:
    """Offsets after which a swizzle starts anew; 1 for none."""
    return 1 << (swizzle.base + abs(swizzle.shift) + swizzle.bits) if swizzle.bits else 1


def contiguous_mode(shared: Shared) -> Literal["x", "k"]:
    """The mode of the shared tile along which neighbouring elements are neighbours in memory; x where neither is."""
    k = coalesce(shared.layout[1])
    return "k" if k.size > 1 and k.flat_stride[0] == 1 else "x"


def vector_width(pieces: Layout, others: Iterable[Layout], limit: int) -> int:
    """The widest access to `pieces`, in elements: the largest power of two up to `limit`, itself one, that is legal.

    pieces: element -> offset, to be cut into runs of the width. others: the other terms of an address, such as the
    thread's base. A width is legal where each run is contiguous and every address is a multiple of it.
    """
    strides = (d for layout in others for n, d in zip(layout.flat_shape, layout.flat_stride, strict=True) if n > 1)
    return gcd(limit, max_vector(pieces), *strides)


def run_limit(shared: Shared, itemsize: int) -> int:
    """Elements of the widest access to shared memory: 16 bytes, or a run that the swizzle leaves in place."""
    widest = VECTOR_BYTES // itemsize
    return min(widest, 1 << shared.swizzle.base) if shared.swizzle.bits else widest


def in_vectors(layout: Layout, width: int) -> Layout:
    """Element steps -> steps of whole vectors, in units of vectors (CuTe's upcast, then coalesced)."""
    return coalesce(upcast(coalesce(layout), width))


def plan_access(
    name: str,
    opcode: Opcode,
    size: tuple[int, int],
    shared: Shared,
    thread: Layout,
    pieces: tuple[Layout, ...],
    where: tuple[Spec, str],
) -> Access:
    """thread and modes of pieces, the last of them the stage, -> offset before the swizzle: the access to them all.

    size: elements and bytes of a vector. where: the spec, and the key that a refusal names.
    Raises PlanError where a piece neither adds to every thread's address nor flips the same bits of it.
    """
    width, in_bytes = size
    vectors = make_layout(*(in_vectors(each, width) for each in pieces))
    if not shared.swizzle.bits:
        return Access(name, opcode, in_bytes, thread, vectors, None)
    modes, stage = tuple(vectors)[:-1], vectors[-1]
    lanes = Layout(thread.shape, unflatten((stride // width for stride in thread.flat_stride), thread.shape))
    found = _flips_and_steps(upcast(shared.swizzle, width), lanes, modes)
    if found is None or any(int(each.offsets().max()) * in_bytes >= SWIZZLE_BYTES for each in found[0]):
        spec, key = where
        raise PlanError(
            f"every thread steps through {key} alike: by flipping bits of its address, or by adding to it",
            got=f"{shared.swizzle} o 0 o {shared.layout[:2]} in pieces of {in_bytes} bytes",
            allowed="a swizzle whose bits the strides of pieces do not carry into",
            fix=f"leave {key} out, for the swizzle of the planner's choice",
            where=spec.where(key),
        )
    flips, steps = found
    base = ComposedLayout(shared.swizzle, 0, thread)
    return Access(name, opcode, in_bytes, base, make_layout(*steps, stage), make_layout(*flips, Layout(stage.size, 0)))


def _flips_and_steps(
    swizzle: Swizzle, lanes: Layout, modes: tuple[Layout, ...]
) -> tuple[list[Layout], list[Layout]] | None:
    """Modes of pieces -> the same twice: what a piece flips of a lane's swizzled address, then what it adds; or None
    where no such pair gives swizzle(lane + piece) for all of them, by evaluating each.

    Only bits that the swizzle changes flip. Others that a piece moves along are clear before, so that adding them does,
    wherever a block's shared memory begins; but where an extent is no power of 2, its later steps may flip higher ones.
    """
    base, piece = lanes.offsets(), make_layout(*modes).offsets()
    wanted = swizzle.at(base[:, None] + piece[None, :])
    flips, steps, first = [], [], 1
    for mode in modes:
        factors = [factor for extent in mode.flat_shape for factor in prime_factors(extent)] or [1]
        flipped, added = [], []
        for factor in factors:
            # By this factor's first step, from lane 0 and piece 0 on.
            bits = int(wanted[0, first] ^ wanted[0, 0]) & swizzle.target_mask if factor > 1 else 0
            flipped.append(bits)
            added.append(int(wanted[0, first] - (wanted[0, 0] ^ bits)) if factor > 1 else 0)
            first *= factor
        flips.append(coalesce(Layout(tuple(factors), tuple(flipped))))
        steps.append(coalesce(Layout(tuple(factors), tuple(added))))
    flip, index = np.zeros_like(piece), np.arange(piece.size)
    for mode in flips:
        flip ^= mode.at(index % mode.size)
        index //= mode.size
    reached = (swizzle.at(base)[:, None] ^ flip[None, :]) + make_layout(*steps).offsets()[None, :]
    return (flips, steps) if bool((reached == wanted).all()) else None


def plan_fragment(spec: Spec, operand: OperandName, shared: Shared, thread: Layout, value: Layout) -> Fragment:
    """thread -> x and value -> x, through the shared layout: the loads of one thread's values, by runs of them or of k.

    Raises PlanError where the shared layout carries between its modes, so that base + step is no address.
    """
    storage_x, storage_k, stage = shared.layout
    rule = f"an address in shared.{operand} must be the thread's base plus a step of its values"
    got = f"{shared.layout[:2]}, between whose modes a thread's values carry"
    fix = write_default(spec, operand, storage_x.size)
    with composing(rule, spec.where(f"shared.{operand}"), got, fix):
        base, pieces = composition(storage_x, make_layout(thread, value))
    itemsize = ITEMSIZE[getattr(spec.operands, operand).dtype]
    limit = run_limit(shared, itemsize)
    along_x = vector_width(pieces, (base, storage_k, stage), limit)
    along_k = vector_width(storage_k, (base, pieces, stage), limit)
    mode: Literal["x", "k"] = "x" if along_x >= along_k else "k"
    width = max(along_x, along_k)
    load = plan_access(
        f"fragment_{operand}", "ld.shared", (width, width * itemsize), shared, base,
        (pieces, storage_k, stage), (spec, f"shared.{operand}"),
    )  # fmt: skip
    depth = width if mode == "k" else 1
    return Fragment(load, width, value.size // (width if mode == "x" else 1), mode, depth)
