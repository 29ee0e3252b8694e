"""Launching: arguments packed as the kernel declares them, the grid cut into batches, the counts gathered."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from layoutgen.errors import SimError, Where
from layoutgen.sim.batch import Batch, Options, Shape
from layoutgen.sim.frame import Array
from layoutgen.sim.memory import GlobalMemory
from layoutgen.sim.parser import Kernel, Param
from layoutgen.sim.program import program
from layoutgen.sim.registers import DTYPES
from layoutgen.sim.report import Meter, Report

_BATCH_BYTES = 1 << 28  # registers and shared memory of a batch


def launch(
    kernel: Kernel,
    memory: GlobalMemory,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    params: Sequence[object],
    dynamic_shared_bytes: int = 0,
    options: Options | None = None,
) -> Report:
    """Runs every block of ``grid`` on the buffers of ``memory``; returns what was executed and what it cost.

    ``params`` are numbers of the kernel's declared types (addresses from ``GlobalMemory.add`` for pointers), or
    ``bytes`` for a struct passed by value. Raises SimError where a GPU would fault, hang or leave the result
    undefined, and for any instruction the simulator doesn't know.
    """
    options = options or Options()
    _check_shape(kernel, grid, block, dynamic_shared_bytes)
    shape = Shape(grid, block, dynamic_shared_bytes, pack(kernel, params))
    decoded = program(kernel)
    total = grid[0] * grid[1] * grid[2]
    lanes = -(-shape.threads // 32) * 32
    register_bytes = sum(max(width, 1) * n for width, n in decoded.names.count.items())
    bytes_per_block = lanes * (register_bytes + kernel.local_bytes) + kernel.static_shared_bytes + dynamic_shared_bytes
    size = max(1, min(total, options.batch_lanes // lanes, _BATCH_BYTES // max(bytes_per_block, 1)))
    meter = Meter() if options.count else None
    executions = np.zeros(len(kernel.instructions), np.int64)
    batch: Batch | None = None
    with np.errstate(all="ignore"):
        for first in range(0, total, size):
            here = min(size, total - first)
            if batch is None or batch.size != here:
                _collect(batch, executions)
                batch = Batch(decoded, memory, options, shape, here, meter)
            batch.run(first)
            if options.progress is not None:
                options.progress(first + here, total)
    _collect(batch, executions)
    return Report(kernel, total, tuple(executions.tolist()), {} if meter is None else dict(meter.traffic))


def _collect(batch: Batch | None, executions: Array) -> None:
    """Adds a batch's counts per run to the counts per instruction."""
    if batch is not None:
        for run, n in zip(batch.program.runs, batch.counts, strict=True):
            executions[run.first : run.first + run.instructions] += n


def _check_shape(kernel: Kernel, grid: tuple[int, int, int], block: tuple[int, int, int], dynamic: int) -> None:
    def refuse(rule: str, got: object, allowed: object) -> SimError:
        return SimError(rule, got=got, allowed=allowed, where=Where(f"{kernel.name}.ptx"))

    if not all(1 <= n <= m for n, m in zip(grid, ((1 << 31) - 1, 65535, 65535), strict=True)):
        raise refuse("a grid is within CUDA's limits", grid, "1..2147483647, 1..65535, 1..65535")
    threads = block[0] * block[1] * block[2]
    if not all(1 <= n <= m for n, m in zip(block, (1024, 1024, 64), strict=True)) or threads > 1024:
        raise refuse("a block is within CUDA's limits", block, "1..1024, 1..1024, 1..64; 1024 threads in all")
    for name, dims in kernel.limits.items():
        most = dims[0] * dims[1] * dims[2]
        if threads > most or (name == "reqntid" and block != dims):
            raise refuse(f"a block keeps to the kernel's .{name}", block, dims)
    if dynamic < 0:
        raise refuse("dynamic shared memory is not negative", dynamic, ">= 0")


def pack(kernel: Kernel, params: Sequence[object]) -> bytes:
    """Arguments -> the bytes of the parameter space. Raises SimError for a wrong number, type or range."""
    if len(params) != len(kernel.params):
        names = ", ".join(p.name for p in kernel.params)
        raise SimError(
            "a launch has one argument per parameter", got=len(params), allowed=f"{len(kernel.params)} ({names})"
        )
    packed = bytearray(kernel.param_bytes)
    for p, value in zip(kernel.params, params, strict=True):
        packed[p.offset : p.offset + p.size] = _encode(p, value)
    return bytes(packed)


def _encode(p: Param, value: object) -> bytes:
    if p.is_array:
        if isinstance(value, bytes) and len(value) == p.size:
            return value
        raise SimError(f"parameter {p.name} takes {p.size} bytes", got=repr(value)[:80])
    kind = DTYPES[p.type].kind
    if kind == "f" and isinstance(value, (int, float, np.integer, np.floating)):
        return struct.pack({2: "<e", 4: "<f", 8: "<d"}[p.size], float(value))
    if kind in "iu" and isinstance(value, (int, np.integer)):
        number = int(value)
        if -(1 << 8 * p.size - 1) <= number < 1 << 8 * p.size:
            return (number & (1 << 8 * p.size) - 1).to_bytes(p.size, "little")
    raise SimError(f"parameter {p.name} is a number that fits .{p.type}", got=repr(value)[:80])
