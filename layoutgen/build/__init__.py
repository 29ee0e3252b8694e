"""Kernel text -> PTX -> cubin -> Artifact, and its launch. Knows no Plan. Compiling needs no toolkit and no GPU."""

from layoutgen.build.driver import Device, Function, ParamBlock, current_arch, load
from layoutgen.build.many import Job, build_many
from layoutgen.build.nvdisasm import (
    SassInstruction,
    loop_counts,
    loop_instructions,
    sass,
    sass_counts,
    sass_instructions,
)
from layoutgen.build.nvrtc import Ptx, compile_ptx
from layoutgen.build.ptxas import Resources, assemble
from layoutgen.build.store import Artifact, artifact_key, build, cached
from layoutgen.build.tools import Toolchain, toolchain

__all__ = [
    "Artifact",
    "Device",
    "Function",
    "Job",
    "ParamBlock",
    "Ptx",
    "Resources",
    "SassInstruction",
    "Toolchain",
    "artifact_key",
    "assemble",
    "build",
    "build_many",
    "cached",
    "compile_ptx",
    "current_arch",
    "load",
    "loop_counts",
    "loop_instructions",
    "sass",
    "sass_counts",
    "sass_instructions",
    "toolchain",
]
