"""NVIDIA's occupancy calculator: cuda_occupancy.h of the CUDA runtime, built by g++. It knows none of our figures."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from layoutgen.build.tools import toolchain

INCLUDE = next(folder for folder in toolchain().includes if (folder / "cuda_occupancy.h").is_file())

SOURCE = r"""
#include <cstdio>
#include <cuda_occupancy.h>

int main() {
  int major, minor, threads_per_sm, threads, registers;
  size_t shared_per_sm, shared;
  while (std::scanf("%d %d %d %zu %d %d %zu", &major, &minor, &threads_per_sm, &shared_per_sm, &threads, &registers,
                    &shared) == 7) {
    cudaOccDeviceProp device;
    device.computeMajor = major, device.computeMinor = minor, device.numSms = 1, device.warpSize = 32;
    device.maxThreadsPerBlock = 1024, device.maxThreadsPerMultiprocessor = threads_per_sm;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.sharedMemPerBlock = 49152, device.sharedMemPerMultiprocessor = shared_per_sm;
    device.reservedSharedMemPerBlock = 1024, device.sharedMemPerBlockOptin = shared_per_sm - 1024;
    int shared_unit = 0, register_unit = 0, partitions = 0, blocks = 0;
    cudaOccSMemAllocationGranularity(&shared_unit, &device);
    cudaOccRegAllocationGranularity(&register_unit, &device);
    cudaOccSubPartitionsPerMultiprocessor(&partitions, &device);
    cudaOccMaxBlocksPerMultiprocessor(&blocks, &device);
    size_t largest = 0;  // the largest share of an SM's memory that can be configured as shared
    for (size_t kib = 1; kib <= 512; ++kib) {
      size_t size = kib * 1024;
      if (cudaOccAlignUpShmemSizeVoltaPlus(&size, &device) == CUDA_OCC_SUCCESS) largest = size;
    }
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024, kernel.numRegs = registers, kernel.sharedSizeBytes = 0;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN, kernel.maxDynamicSharedSizeBytes = shared_per_sm - 1024;
    cudaOccDeviceState state;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    cudaOccResult result;
    result.activeBlocksPerMultiprocessor = -1;
    cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, shared);
    std::printf("%d %d %d %d %zu %d\n", shared_unit, register_unit, partitions, blocks, largest,
                result.activeBlocksPerMultiprocessor);
  }
}
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A device, in terms of CUDA's, and a kernel's threads, registers a thread and bytes of shared memory."""

    cc: tuple[int, int]
    threads_per_sm: int
    shared_per_sm: int
    threads: int = 128
    registers: int = 32
    shared: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What follows from the compute capability alone, and the blocks of the kernel that one SM can hold."""

    shared_unit: int
    register_unit: int
    partitions: int
    max_blocks: int
    shared_per_sm: int
    resident: int


def ask(questions: Sequence[Question], folder: Path) -> list[Answer]:
    source, program = folder / "occupancy.cpp", folder / "occupancy"
    source.write_text(SOURCE)
    subprocess.run(["g++", "-std=c++17", "-w", f"-I{INCLUDE}", str(source), "-o", str(program)], check=True)
    lines = "".join(
        f"{q.cc[0]} {q.cc[1]} {q.threads_per_sm} {q.shared_per_sm} {q.threads} {q.registers} {q.shared}\n"
        for q in questions
    )
    done = subprocess.run([str(program)], input=lines, capture_output=True, text=True, check=True)
    return [Answer(*map(int, line.split())) for line in done.stdout.splitlines()]
