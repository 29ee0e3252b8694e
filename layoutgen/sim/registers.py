"""Registers as rows of arrays: every operand of every instruction is one row of a (rows, lanes) array.

There is one array per register width; immediates and special registers are rows too, so an instruction never asks
what kind of operand it has. Rows of registers are numbered in order of first definition, which makes the destinations
of consecutive instructions neighbours; rows of constants are numbered from the end (-1, -2, ...).
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

import numpy as np

from layoutgen.errors import SimError
from layoutgen.sim.parser import SIZES, Instruction, Kernel

PRED = 0  # the width class of predicates, whose rows hold booleans

DTYPES: dict[str, np.dtype] = {
    name: np.dtype(code)
    for name, code in {
        "b8": "u1", "u8": "u1", "s8": "i1", "b16": "u2", "u16": "u2", "s16": "i2", "f16": "f2", "bf16": "u2", "b32":
        "u4", "u32": "u4", "s32": "i4", "f32": "f4", "f16x2": "u4", "bf16x2": "u4", "b64": "u8", "u64": "u8", "s64":
        "i8", "f64": "f8", "pred": "?",
    }.items()
}  # fmt: skip
UNSIGNED = {PRED: np.dtype("?"), 1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8")}

# Generic addresses: a global address stands for itself, shared and local ones lie in windows far above every buffer.
SHARED_WINDOW = 1 << 61
LOCAL_WINDOW = 1 << 62

_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?")
_HEX_FLOAT = re.compile(r"(-?)0([fFdD])([0-9a-fA-F]{8}|[0-9a-fA-F]{16})")
_DECIMAL_FLOAT = re.compile(r"-?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?")
_SPECIAL = re.compile(
    r"%(?:tid|ntid|ctaid|nctaid)\.[xyz]|"
    r"%(?:laneid|warpid|nwarpid|lanemask_(?:eq|lt|le|gt|ge)|dynamic_smem_size|total_smem_size)"
)
_ADDRESS = re.compile(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?(?:0[xX][0-9a-fA-F]+|\d+)))?\s*\]")


class Ref(NamedTuple):
    """A row seen as ``dtype``: ``width`` picks the array (bytes per register, 0 for predicates)."""

    width: int
    row: int
    dtype: np.dtype


# From sm_80 on a block's shared memory begins behind 1 KB of the system's (Ampere tuning guide), so that addresses of
# dynamic shared memory are not those of its elements: what a kernel flips in one by exclusive or may be set already.
RESERVED_SHARED = 1024


class RegisterMap:
    """Names of one kernel -> rows. ``constants[width]`` lists what row -1, -2, ... holds: bits, or a special's name."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.rows: dict[str, tuple[int, int]] = {}
        self.count = dict.fromkeys(UNSIGNED, 0)
        self.constants: dict[int, list[int | str]] = {width: [] for width in UNSIGNED}
        self._constant_rows: dict[tuple[int, int | str], int] = {}
        self._sources: dict[tuple[str, str, bool], Ref] = {}
        self._dynamic_base = self._extern_shared_base()

    def _extern_shared_base(self) -> int:
        aligns = [v.align for v in self.kernel.variables.values() if v.size is None and v.space == "shared"]
        align = max([16, *aligns])
        return -(-max(self.kernel.static_shared_bytes, self.reserved_shared) // align) * align

    @property
    def reserved_shared(self) -> int:
        """Bytes before dynamic shared memory that are the system's; none where a kernel names no such memory, and so
        counts from 0 itself, or has static shared memory."""
        extern = any(v.size is None and v.space == "shared" for v in self.kernel.variables.values())
        return RESERVED_SHARED if extern and not self.kernel.static_shared_bytes else 0

    @property
    def dynamic_shared_base(self) -> int:
        """Address in the block's shared memory at which dynamic shared memory begins."""
        return self._dynamic_base

    def define(self, ins: Instruction) -> None:
        """Gives rows to the registers an instruction writes; called for all, in order, before decoding any."""
        if ins.operands and ins.operands[0][0] != "[":
            for name in re.split(r"[{},|\s]+", ins.operands[0]):
                if name and name != "_" and self.declared(name) is not None:
                    self._row(name)

    def declared(self, name: str) -> str | None:
        """The declared type of a register, or None where the name is no register."""
        found = self.kernel.registers.get(name)
        return found if found is not None else self.kernel.registers.get(name.rstrip("0123456789"))

    def _row(self, name: str) -> tuple[int, int]:
        known = self.rows.get(name)
        if known is None:
            kind = self.declared(name)
            width = PRED if kind == "pred" else SIZES.get(kind or "", -1)
            if width not in UNSIGNED:
                raise KeyError(name)
            known = self.rows[name] = (width, self.count[width])
            self.count[width] += 1
        return known

    def register(self, ins: Instruction, name: str, kind: str, *, widen: bool = False) -> Ref:
        """A register as ``kind``. With ``widen`` it may be wider: the ISA relaxes its type checks for ld, st, cvt."""
        try:
            width, row = self._row(name)
        except KeyError:
            raise self.refuse(ins, f"operand {name} is a declared register") from None
        dtype = DTYPES[kind]
        if kind == "pred" or width == PRED:
            if kind != "pred" or width != PRED:
                raise self.refuse(ins, f"operand {name} has the type .{kind}")
        elif dtype.itemsize != width and not (widen and dtype.itemsize < width):
            raise self.refuse(ins, f"operand {name} is as wide as .{kind}")
        return Ref(width, row, dtype)

    def target(self, ins: Instruction, name: str, kind: str) -> Ref:
        """A destination register as ``kind``; a wider one as an integer of its width and kind's sign."""
        ref = self.register(ins, name, kind, widen=True)
        if ref.width in (PRED, ref.dtype.itemsize):
            return ref
        return Ref(ref.width, ref.row, np.dtype(f"{'i' if ref.dtype.kind == 'i' else 'u'}{ref.width}"))

    def source(self, ins: Instruction, text: str, kind: str, *, widen: bool = False) -> Ref:
        """Any source operand (register, immediate, special register, address of a variable) as ``kind``."""
        key = (text, kind, widen)
        known = self._sources.get(key)
        if known is None:
            if self.declared(text) is not None:
                known = self.register(ins, text, kind, widen=widen)
            else:
                dtype = DTYPES[kind]
                width = PRED if kind == "pred" else dtype.itemsize
                known = Ref(width, self.constant(width, self._value(ins, text, kind)), dtype)
            self._sources[key] = known
        return known

    def constant(self, width: int, value: int | str) -> int:
        """The row that holds ``value`` (bits, or the name of a special register) in every lane."""
        if isinstance(value, int) and width:
            value &= (1 << 8 * width) - 1
        row = self._constant_rows.get((width, value))
        if row is None:
            self.constants[width].append(value)
            row = self._constant_rows[width, value] = -len(self.constants[width])
        return row

    def integer(self, ins: Instruction, text: str) -> int:
        """An operand that must be an integer immediate."""
        if not _INTEGER.fullmatch(text):
            raise self.refuse(ins, f"operand {text} is an integer immediate")
        digits = text.rstrip("U")
        octal = re.fullmatch(r"(-?)0(\d+)", digits)
        return int(octal[1] + octal[2], 8) if octal else int(digits, 0)

    def _value(self, ins: Instruction, text: str, kind: str) -> int | str:
        if kind == "pred":
            if text in ("0", "1", "-1"):
                return int(text) & 1
            raise self.refuse(ins, f"operand {text} is a predicate")
        size = DTYPES[kind].itemsize
        if _INTEGER.fullmatch(text) and not kind.startswith(("f", "bf")):
            value = self.integer(ins, text)
            if not -(1 << 63) <= value < 1 << 64:
                raise self.refuse(ins, f"operand {text} fits in 64 bits")
            return value
        if m := _HEX_FLOAT.fullmatch(text):
            if (len(m[3]) == 8) != (m[2] in "fF") or len(m[3]) != 2 * size:
                raise self.refuse(ins, f"operand {text} is a .{kind} constant")
            return int(m[3], 16) ^ (1 << 8 * size - 1 if m[1] else 0)
        if kind in ("f32", "f64") and _DECIMAL_FLOAT.fullmatch(text):
            code = "<f" if kind == "f32" else "<d"
            return int.from_bytes(struct.pack(code, float(text)), "little")
        if text == "WARP_SZ":
            return 32
        if _SPECIAL.fullmatch(text):
            return text
        symbol, _, offset = text.partition("+")
        variable = self.kernel.variables.get(symbol.strip())
        extra = self.integer(ins, offset.strip()) if offset else 0
        if variable is not None and variable.space in ("shared", "local"):
            return (self._dynamic_base if variable.size is None else variable.offset) + extra
        for param in self.kernel.params:
            if param.name == symbol.strip():
                return param.offset + extra
        raise self.refuse(ins, f"operand {text} is something the simulator can read as .{kind}")

    def address(self, ins: Instruction, text: str) -> tuple[Ref, int]:
        """``[base + offset]`` -> (row of the base as u32 or u64, offset in bytes)."""
        m = _ADDRESS.fullmatch(text)
        if m is None:
            raise self.refuse(ins, f"operand {text} is an address [base + offset]")
        kind = self.declared(m[1])
        wide = kind is not None and SIZES.get(kind) == 8
        return self.source(ins, m[1], "u64" if wide else "u32"), int(m[2], 0) if m[2] else 0

    def refuse(self, ins: Instruction, rule: str = "the simulator knows this form of the instruction") -> SimError:
        """The error for an instruction, or an operand of it, that the simulator does not model."""
        return SimError(rule, got=str(ins), where=self.kernel.where(ins))
