"""Integer arithmetic and logic (PTX ISA 9.0, sections 9.7.1 and 9.7.8): exact in every width, wrapping unless .sat."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from layoutgen.sim.frame import Array, Op
from layoutgen.sim.instructions.forms import Decoder, Form, alu
from layoutgen.sim.parser import Instruction
from layoutgen.sim.registers import DTYPES, RegisterMap

_INTS = ("u16", "s16", "u32", "s32", "u64", "s64")
_BITS = ("b16", "b32", "b64")
_TWICE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def _bits(kind: str) -> int:
    return DTYPES[kind].itemsize * 8


def _unsigned(kind: str) -> np.dtype:
    return np.dtype(f"u{DTYPES[kind].itemsize}")


# --- add, sub, mul, mad ---------------------------------------------------------------------------


def _saturate(ufunc: np.ufunc, a: Array, b: Array, out: Array) -> None:
    np.clip(ufunc(a, b, dtype=np.int64), -(1 << 31), (1 << 31) - 1, out=out, casting="unsafe")


def _add_or_sub(ufunc: np.ufunc) -> Callable[[tuple[str, ...]], Form | None]:
    def build(mods: tuple[str, ...]) -> Form | None:
        if len(mods) == 1 and mods[0] in _INTS:
            return Form(ufunc, mods[0], (mods[0],) * 2)
        if mods == ("sat", "s32"):
            return Form(partial(_saturate, ufunc), "s32", ("s32", "s32"))
        return None

    return build


def _mul_wide(a: Array, b: Array, out: Array) -> None:
    np.multiply(a, b, dtype=out.dtype, out=out)


def _mul_high(a: Array, b: Array, out: Array) -> None:
    """High half of a product, for operands of up to 32 bits."""
    wide = np.multiply(a, b, dtype=np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}"))
    np.right_shift(wide, wide.dtype.type(8 * a.dtype.itemsize), out=wide)
    out[...] = wide


def _mul_high_64(a: Array, b: Array, out: Array) -> None:
    """High half of a 64-bit product from four 32-bit ones (a signed product differs by a multiple of 2^64)."""
    x, y = a.view(np.uint64), b.view(np.uint64)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + (x0 * y0 >> half)  # at most (2^32-1)^2 + 2^32-1: no carry is lost
    high = x1 * y1 + (middle >> half) + ((middle & low) + x0 * y1 >> half)
    if a.dtype.kind == "i":
        high -= np.where(a < 0, y, np.uint64(0)) + np.where(b < 0, x, np.uint64(0))
    out[...] = high.view(out.dtype)


def _multiply(mods: tuple[str, ...]) -> Form | None:
    if len(mods) != 2 or mods[1] not in _INTS:
        return None
    part, kind = mods
    if part == "lo":
        return Form(np.multiply, kind, (kind, kind))
    if part == "wide" and kind in _TWICE:
        return Form(_mul_wide, _TWICE[kind], (kind, kind))
    if part == "hi":
        return Form(_mul_high_64 if _bits(kind) == 64 else _mul_high, kind, (kind, kind))
    return None


def _then_add(fn: Callable[..., object], a: Array, b: Array, c: Array, out: Array) -> None:
    product = np.empty(np.broadcast(a, b).shape, out.dtype)
    fn(a, b, product)
    np.add(product, c, out=out)


def _multiply_add(mods: tuple[str, ...]) -> Form | None:
    form = _multiply(mods)
    return None if form is None else Form(partial(_then_add, form.fn), form.target, (*form.sources, form.target))


# --- division: truncating; by zero is undefined in PTX, so it is refused --------------------------


def _remainder(a: Array, b: Array, out: Array) -> None:
    np.fmod(a, b, out=out)


def _quotient(a: Array, b: Array, out: Array) -> None:
    if a.dtype.kind == "u":
        np.floor_divide(a, b, out=out)
        return
    floor = np.floor_divide(a, b)
    floor += (np.fmod(a, b) != 0) & ((a < 0) != (b < 0))
    out[...] = floor


def _divide(fn: Callable[..., object]) -> Callable[[tuple[str, ...]], Form | None]:
    def build(mods: tuple[str, ...]) -> Form | None:
        if len(mods) != 1 or mods[0] not in _INTS:
            return None
        return Form(fn, mods[0], (mods[0],) * 2, ("an integer division is not by zero", lambda a, b: b == 0))

    return build


# --- shifts and bit fields ------------------------------------------------------------------------


def shift_left(a: Array, n: Array, out: Array | None = None) -> Array:
    """a << n for any n >= 0: shifts by the width or more give 0."""
    bits = 8 * a.dtype.itemsize
    kept: Array = np.left_shift(a, np.minimum(n, bits - 1).astype(a.dtype))
    np.multiply(kept, n < bits, out=kept)
    return _into(kept, out)


def shift_right(a: Array, n: Array, out: Array | None = None) -> Array:
    """a >> n for any n >= 0: shifts by the width or more give 0, or the sign."""
    bits = 8 * a.dtype.itemsize
    kept: Array = np.right_shift(a, np.minimum(n, bits - 1).astype(a.dtype))
    if a.dtype.kind == "u":
        np.multiply(kept, n < bits, out=kept)
    return _into(kept, out)


def _into(result: Array, out: Array | None) -> Array:
    if out is not None:
        out[...] = result
    return result


def _shift(fn: Callable[..., object], kinds: tuple[str, ...]) -> Callable[[tuple[str, ...]], Form | None]:
    return lambda mods: Form(fn, mods[0], (mods[0], "u32")) if len(mods) == 1 and mods[0] in kinds else None


def _low_mask(length: Array, dtype: np.dtype) -> Array:
    """Ones in the lowest ``length`` bits."""
    mask: Array = shift_left(np.ones(length.shape, dtype), length) - dtype.type(1)
    return mask


def _extract(kind: str, a: Array, position: Array, length: Array, out: Array) -> None:
    bits, unsigned = _bits(kind), _unsigned(kind)
    x = a.view(unsigned)
    position, length = position & np.uint32(0xFF), length & np.uint32(0xFF)
    mask = _low_mask(np.minimum(length, bits - np.minimum(position, bits).astype(np.int64)), unsigned)
    field = shift_right(x, position) & mask
    if kind[0] == "s":
        top = np.minimum(position.astype(np.int64) + length - 1, bits - 1)
        sign = shift_right(x, np.maximum(top, 0)) & unsigned.type(1)
        field |= np.where((sign == 1) & (length > 0), ~mask, unsigned.type(0))
    out[...] = field.view(out.dtype)


def _insert(a: Array, b: Array, position: Array, length: Array, out: Array) -> None:
    position, length = position & np.uint32(0xFF), length & np.uint32(0xFF)
    mask = shift_left(_low_mask(length, a.dtype), position)
    out[...] = (b & ~mask) | (shift_left(a, position) & mask)


def _funnel(left: bool, wrap: bool, a: Array, b: Array, c: Array, out: Array) -> None:
    n = (c & np.uint32(31) if wrap else np.minimum(c, 32)).astype(np.uint64)
    both = (b.astype(np.uint64) << np.uint64(32)) | a
    out[...] = (both << n) >> np.uint64(32) if left else both >> n


def _funnel_form(mods: tuple[str, ...]) -> Form | None:
    if len(mods) == 3 and mods[0] in ("l", "r") and mods[1] in ("wrap", "clamp") and mods[2] == "b32":
        return Form(partial(_funnel, mods[0] == "l", mods[1] == "wrap"), "b32", ("b32",) * 3)
    return None


def _field(fn: Callable[..., object], kinds: tuple[str, ...], values: int) -> Callable[[tuple[str, ...]], Form | None]:
    def build(mods: tuple[str, ...]) -> Form | None:
        if len(mods) != 1 or mods[0] not in kinds:
            return None
        return Form(partial(fn, mods[0]) if fn is _extract else fn, mods[0], (mods[0],) * values + ("u32", "u32"))

    return build


def _permute(a: Array, b: Array, selector: Array, out: Array) -> None:
    both = (b.astype(np.uint64) << np.uint64(32)) | a
    result = np.zeros(np.broadcast(both, selector).shape, np.uint64)
    for i in range(4):
        nibble = (selector >> np.uint32(4 * i)).astype(np.uint64)
        byte = (both >> ((nibble & np.uint64(7)) * np.uint64(8))) & np.uint64(0xFF)
        sign = np.where(byte >= 0x80, np.uint64(0xFF), np.uint64(0))
        result |= np.where(nibble & np.uint64(8), sign, byte) << np.uint64(8 * i)
    out[...] = result


# --- bitwise --------------------------------------------------------------------------------------


def _bitwise(ufunc: np.ufunc, sources: int) -> Callable[[tuple[str, ...]], Form | None]:
    return lambda mods: Form(ufunc, mods[0], mods * sources) if len(mods) == 1 and mods[0] in (*_BITS, "pred") else None


def _conditional_not(a: Array, out: Array) -> None:
    np.equal(a, 0, out=out, casting="unsafe")


def _lut(table: int, a: Array, b: Array, c: Array, out: Array) -> None:
    """Any function of three bits: bit (4a + 2b + c) of ``table``."""
    result = np.zeros(np.broadcast(a, b, c).shape, out.dtype)
    for minterm in range(8):
        if table >> minterm & 1:
            result |= (a if minterm & 4 else ~a) & (b if minterm & 2 else ~b) & (c if minterm & 1 else ~c)
    out[...] = result


def _lop3(ins: Instruction, names: RegisterMap) -> Op:
    if ins.opcode != "lop3.b32" or len(ins.operands) != 5:
        raise names.refuse(ins)
    table = names.integer(ins, ins.operands[4]) & 0xFF
    return alu(ins, names, Form(partial(_lut, table), "b32", ("b32",) * 3), ins.operands[0], ins.operands[1:4], table)


def _count_leading_zeros(a: Array, out: Array) -> None:
    length = np.zeros(a.shape, np.uint32)  # of the number in bits, by halving
    x = a.copy()
    step = 4 * a.dtype.itemsize
    while step:
        big = x >> a.dtype.type(step) != 0
        length += big * np.uint32(step)
        x = np.where(big, x >> a.dtype.type(step), x)
        step //= 2
    out[...] = 8 * a.dtype.itemsize - (length + (x != 0))


def _find(shift: bool, a: Array, out: Array) -> None:
    """bfind: the number of the highest bit that differs from the sign, or ones if there is none; with ``shift`` counted
    from the top."""
    unsigned = np.where(a < 0, ~a, a).astype(np.dtype(f"u{a.dtype.itemsize}"))
    leading = np.empty(a.shape, np.uint32)
    _count_leading_zeros(unsigned, leading)
    bits = np.uint32(8 * a.dtype.itemsize)
    out[...] = np.where(unsigned == 0, np.uint32(0xFFFFFFFF), leading if shift else bits - 1 - leading)


def _find_form(mods: tuple[str, ...]) -> Form | None:
    if mods[-1] not in ("u32", "s32", "u64", "s64") or mods[:-1] not in ((), ("shiftamt",)):
        return None
    return Form(partial(_find, len(mods) == 2), "u32", mods[-1:])


def _reverse_bits(a: Array, out: Array) -> None:
    size = a.dtype.itemsize
    table = np.array([int(f"{i:08b}"[::-1], 2) for i in range(256)], np.uint8)
    flipped = table[np.ascontiguousarray(a).view(np.uint8).reshape(*a.shape, size)[..., ::-1]]
    out[...] = np.ascontiguousarray(flipped).view(a.dtype).reshape(a.shape)


def _population(a: Array, out: Array) -> None:
    out[...] = np.bitwise_count(a)


def _counting(fn: Callable[..., object]) -> Callable[[tuple[str, ...]], Form | None]:
    return lambda mods: Form(fn, "u32", mods) if mods in (("b32",), ("b64",)) else None


def _unary(ufunc: np.ufunc, kinds: tuple[str, ...]) -> Callable[[tuple[str, ...]], Form | None]:
    return lambda mods: Form(ufunc, mods[0], mods) if len(mods) == 1 and mods[0] in kinds else None


def _least(a: Array, b: Array, out: Array) -> None:
    np.minimum(a, b, out=out)


def _greatest(a: Array, b: Array, out: Array) -> None:
    np.maximum(a, b, out=out)


def _binary(fn: Callable[..., object]) -> Callable[[tuple[str, ...]], Form | None]:
    return lambda mods: Form(fn, mods[0], mods * 2) if len(mods) == 1 and mods[0] in _INTS else None


BUILDERS = {
    "add": _add_or_sub(np.add),
    "sub": _add_or_sub(np.subtract),
    "mul": _multiply,
    "mad": _multiply_add,
    "div": _divide(_quotient),
    "rem": _divide(_remainder),
    "min": _binary(_least),
    "max": _binary(_greatest),
    "abs": _unary(np.absolute, ("s16", "s32", "s64")),
    "neg": _unary(np.negative, ("s16", "s32", "s64")),
    "shl": _shift(shift_left, _BITS),
    "shr": _shift(shift_right, (*_BITS, *_INTS)),
    "shf": _funnel_form,
    "bfe": _field(_extract, ("u32", "s32", "u64", "s64"), 1),
    "bfi": _field(_insert, ("b32", "b64"), 2),
    "prmt": lambda mods: Form(_permute, "b32", ("b32",) * 3) if mods == ("b32",) else None,
    "and": _bitwise(np.bitwise_and, 2),
    "or": _bitwise(np.bitwise_or, 2),
    "xor": _bitwise(np.bitwise_xor, 2),
    "not": _bitwise(np.invert, 1),
    "cnot": lambda mods: Form(_conditional_not, mods[0], mods) if len(mods) == 1 and mods[0] in _BITS else None,
    "clz": _counting(_count_leading_zeros),
    "bfind": _find_form,
    "popc": _counting(_population),
    "brev": lambda mods: Form(_reverse_bits, mods[0], mods) if mods in (("b32",), ("b64",)) else None,
}
DECODERS: dict[str, Decoder] = {"lop3": _lop3}
