"""cvt (PTX ISA 9.0, section 9.7.9.21): between integers, between floats, and across, with rounding and saturation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from layoutgen.sim.elements import ELEMENTS, to_narrow
from layoutgen.sim.flow import Terminator
from layoutgen.sim.frame import Array, Op
from layoutgen.sim.instructions.forms import Decoder, Form, alu, decoder
from layoutgen.sim.parser import Instruction
from layoutgen.sim.registers import DTYPES, RegisterMap

_INTS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
_FLOATS = ("f16", "f32", "f64")
_ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _int_to_int(kind: str, saturate: bool, a: Array, out: Array) -> None:
    limits = np.iinfo(DTYPES[kind])
    if saturate:
        source = np.iinfo(a.dtype)
        a = np.clip(a, max(limits.min, source.min), min(limits.max, source.max))
    out[...] = a.astype(DTYPES[kind], casting="unsafe")


def _float_to_int(kind: str, rounding: Callable[[Array], Array], a: Array, out: Array) -> None:
    """Rounds, clamps to the type's range (always, as the ISA says for these conversions), and turns a NaN into 0."""
    limits = np.iinfo(DTYPES[kind])
    x = rounding(a.astype(np.float64))
    above, below = x >= float(limits.max) + 1 if limits.bits < 64 else x >= float(limits.max), x < float(limits.min)
    result = np.where(above | below | np.isnan(x), 0, x).astype(DTYPES[kind])
    result[above] = limits.max
    result[below] = limits.min
    out[...] = result


def _int_to_float(a: Array, out: Array) -> None:
    np.copyto(out, a, casting="unsafe")  # numpy rounds to nearest even


def _float_to_float(saturate: bool, a: Array, out: Array) -> None:
    result = a.astype(out.dtype)
    if saturate:
        result = np.where(result > 0, np.minimum(result, out.dtype.type(1)), out.dtype.type(0))
    out[...] = result


def _to_integral(rounding: Callable[[Array], Array], a: Array, out: Array) -> None:
    out[...] = rounding(a)


def round_bf16(a: Array) -> Array:
    """float32 -> bfloat16 bits, to nearest even; a NaN becomes 0x7fff, as cvt.rn.bf16.f32 gives it."""
    bits = np.ascontiguousarray(a).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(a), np.uint32(0x7FFF), rounded).astype(np.uint16)


def _from_bf16(a: Array, out: Array) -> None:
    out[...] = (a.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _to_bf16(a: Array, out: Array) -> None:
    out[...] = round_bf16(a)


def _convert(mods: tuple[str, ...]) -> Form | None:
    if len(mods) < 2:
        return None
    target, source = mods[-2:]
    options = list(mods[:-2])
    saturate = "sat" in options
    if saturate:
        options.remove("sat")
    ints = (target in _INTS, source in _INTS)
    fn: Callable[..., object] | None = None
    if ints == (True, True) and not options:
        fn = partial(_int_to_int, target, saturate)
    elif ints == (True, False) and source in _FLOATS and len(options) == 1 and options[0] in _ROUND:
        fn = partial(_float_to_int, target, _ROUND[options[0]])
    elif ints == (False, True) and target in _FLOATS and options == ["rn"] and not saturate:
        fn = _int_to_float
    elif target in _FLOATS and source in _FLOATS:
        if target == source and len(options) == 1 and options[0] in _ROUND and not saturate:
            fn = partial(_to_integral, _ROUND[options[0]])
        elif options == (["rn"] if DTYPES[target].itemsize < DTYPES[source].itemsize else []) and (
            target != source or saturate
        ):
            fn = partial(_float_to_float, saturate)
    elif (target, source) == ("f32", "bf16") and not options and not saturate:
        fn = _from_bf16
    elif (target, source) == ("bf16", "f32") and options == ["rn"] and not saturate:
        fn = _to_bf16
    return None if fn is None else Form(fn, target, (source,), widen=True)


_convert_one = decoder(_convert)


def _pack_f16x2(high: Array, low: Array, out: Array) -> None:
    halves = [x.astype(np.float16).view(np.uint16).astype(np.uint32) for x in (high, low)]
    out[...] = halves[0] << np.uint32(16) | halves[1]


def _pack_bf16x2(high: Array, low: Array, out: Array) -> None:
    out[...] = round_bf16(high).astype(np.uint32) << np.uint32(16) | round_bf16(low)


def _pack_narrow(kind: str, high: Array, low: Array, out: Array) -> None:
    out[...] = to_narrow(high, kind).astype(np.uint16) << np.uint16(8) | to_narrow(low, kind)


def _unpack_narrow(kind: str, a: Array, out: Array) -> None:
    """Both as float16, which has every number of either type."""
    with np.errstate(invalid="ignore"):
        halves = [ELEMENTS[kind].decode((a >> np.uint16(8 * i)).astype(np.uint8)).astype(np.float16) for i in (0, 1)]
    low, high = (np.where(np.isnan(x), np.uint16(0x7FFF), x.view(np.uint16)).astype(np.uint32) for x in halves)
    out[...] = high << np.uint32(16) | low


def _to_tf32(a: Array, out: Array) -> None:
    """To nearest, ties away from zero, at bit 13; a NaN becomes 0x7fffffff."""
    rounded = (a.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    out[...] = np.where(np.isnan(a), np.uint32(0x7FFFFFFF), np.where(np.isinf(a), a.view(np.uint32), rounded))


_NARROW = ("e4m3", "e5m2")
_PACKED: dict[str, Form] = {
    "cvt.rn.f16x2.f32": Form(_pack_f16x2, "b32", ("f32", "f32")),
    "cvt.rn.bf16x2.f32": Form(_pack_bf16x2, "b32", ("f32", "f32")),
    "cvt.rna.tf32.f32": Form(_to_tf32, "b32", ("f32",)),
    **{f"cvt.rn.satfinite.{kind}x2.f32": Form(partial(_pack_narrow, kind), "b16", ("f32", "f32")) for kind in _NARROW},
    **{f"cvt.rn.f16x2.{kind}x2": Form(partial(_unpack_narrow, kind), "b32", ("b16",)) for kind in _NARROW},
}


def _cvt(ins: Instruction, names: RegisterMap) -> Op | Terminator:
    """``cvt.rn.f16x2.f32 d, a, b`` packs two values, a into the high half; most others convert one."""
    form = _PACKED.get(ins.opcode)
    if form is None:
        return _convert_one(ins, names)
    if len(ins.operands) != 1 + len(form.sources):
        raise names.refuse(ins)
    return alu(ins, names, form, ins.operands[0], ins.operands[1:])


DECODERS: dict[str, Decoder] = {"cvt": _cvt}
