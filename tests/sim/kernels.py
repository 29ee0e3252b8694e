"""Small PTX kernels for the simulator's tests, written around the instruction under test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layoutgen.sim import GlobalMemory, Kernel, Options, Report, launch, parse

DATA = Path(__file__).parent / "data"
HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"
OUT = ".param .u64 out"


def kernel(body: str, params: str = OUT, name: str = "k", declarations: str = "") -> Kernel:
    """A kernel with registers %p, %h, %r, %f, %d (b16, b32, f32, b64) and %x (f64), its thread id in %r0.

    With the parameters as they are, %d0 holds the address of the thread's u32 of ``out``.
    """
    prologue = "mov.u32 %r0, %tid.x;\n"
    if params == OUT:
        prologue += "ld.param.u64 %d0, [out];\nmul.wide.u32 %d1, %r0, 4;\nadd.s64 %d0, %d0, %d1;\n"
    text = (
        f"{HEADER}{declarations}.visible .entry {name}({params})\n{{\n.reg .pred %p<20>;\n.reg .b16 %h<20>;\n"
        f".reg .b32 %r<40>;\n.reg .f32 %f<40>;\n.reg .b64 %d<40>;\n.reg .f64 %x<8>;\n{prologue}{body}\n}}\n"
    )
    return parse(text).kernels[name]


def run(
    k: Kernel,
    threads: int = 32,
    grid: tuple[int, int, int] = (1, 1, 1),
    dynamic: int = 0,
    out: NDArray[np.uint32] | None = None,
    options: Options | None = None,
) -> tuple[NDArray[np.uint32], Report]:
    """Launches a kernel whose one parameter is ``out``: one u32 per thread, all ones before."""
    result = np.full(threads, 0xFFFFFFFF, np.uint32) if out is None else out
    memory = GlobalMemory()
    address = memory.add(result, writable=True, name="out")
    report = launch(k, memory, grid, (threads, 1, 1), [address], dynamic, options)
    return result, report


def compute(op: str, out_kind: str, inputs: Sequence[tuple[str, NDArray]], constants: str = "") -> NDArray:
    """``op out, inputs...`` once per element: the instruction alone, between loads and a store.

    A kind is a register type; ``constants`` are operands appended as text. Predicates travel as 0 and 1.
    """
    n = len(inputs[0][1])
    memory = GlobalMemory()
    lines, addresses, operands = [], [], []
    for i, (kind, array) in enumerate(inputs):
        held = np.ascontiguousarray(array.astype(np.uint32) if kind == "pred" else array)
        addresses.append(memory.add(held, name=f"in{i}"))
        size = held.dtype.itemsize
        lines += [
            f"ld.param.u64 %d{i}, [in{i}];",
            f"mul.wide.u32 %d20, %r0, {size};",
            f"add.s64 %d{i}, %d{i}, %d20;",
        ]
        if kind == "pred":
            lines += [f"ld.global.u32 %r20, [%d{i}];", f"setp.ne.u32 %p{i + 1}, %r20, 0;"]
            operands.append(f"%p{i + 1}")
        elif size == 1:
            lines.append(f"ld.global.{kind} %h{i}, [%d{i}];")
            operands.append(f"%h{i}")
        else:
            lines.append(f".reg .{kind} %in{i};\nld.global.b{8 * size} %in{i}, [%d{i}];")
            operands.append(f"%in{i}")
    sizes = {"pred": 4, "f16": 2, "bf16": 2}
    size = sizes.get(out_kind) or int(out_kind[1:]) // 8
    result = np.zeros(n, f"u{size}")
    addresses.append(memory.add(result, writable=True, name="out"))
    target = "%p0" if out_kind == "pred" else "%h19" if size == 1 else "%result"
    if out_kind != "pred" and size > 1:
        lines.append(f".reg .{'b16' if out_kind in ('f16', 'bf16') else out_kind} %result;")
    lines += ["ld.param.u64 %d10, [out];", f"mul.wide.u32 %d20, %r0, {size};", "add.s64 %d10, %d10, %d20;"]
    lines.append(f"{op} {', '.join([target, *operands])}{constants};")
    if out_kind == "pred":
        lines += ["selp.u32 %r21, 1, 0, %p0;", "st.global.u32 [%d10], %r21;"]
    else:
        lines.append(f"st.global.b{8 * size} [%d10], {target};")
    params = ", ".join(f".param .u64 {name}" for name in [*(f"in{i}" for i in range(len(inputs))), "out"])
    k = kernel("\n".join([*lines, "ret;"]), params)
    launch(k, memory, (1, 1, 1), (n, 1, 1), addresses)
    return result
