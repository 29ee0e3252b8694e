"""Runs PTX on the CPU: exact, checked, and loud about anything it doesn't know.

module = parse(ptx)
memory = GlobalMemory()
a = memory.add(array, name="a")
report = launch(module.kernels["name"], memory, grid, block, [a, ...])
"""

from __future__ import annotations

from layoutgen.sim.batch import Options
from layoutgen.sim.launch import launch
from layoutgen.sim.memory import GlobalMemory
from layoutgen.sim.parser import Instruction, Kernel, Module, Param, parse
from layoutgen.sim.report import Report, Traffic, static_counts

__all__ = [
    "GlobalMemory", "Instruction", "Kernel", "Module", "Options", "Param", "Report", "Traffic", "launch", "parse",
    "static_counts",
]  # fmt: skip
