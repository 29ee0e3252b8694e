"""cubin -> SASS, the instructions that the GPU executes, through nvdisasm.

Source: CUDA Binary Utilities, section "nvdisasm" and its instruction set reference.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from layoutgen.build.tools import toolchain
from layoutgen.errors import BuildError

# Address, predicate, mnemonic. PT is the predicate that is always true: what stands under @!PT never executes (ptxas
# puts three `@!PT LDS RZ, [RZ]` before the LDGSTS of sm_90), so it is no instruction of the kernel.
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+\{?\s*(?!@!U?PT\s)(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", re.M)
_LOADS = frozenset({"ld", "ldg", "lds", "ldl", "ldc", "ldcu", "uldc", "ldgsts", "ldsm"})
_STORES = frozenset({"st", "stg", "sts", "stl", "stsm"})
_ATOMICS = frozenset({"atom", "atomg", "atoms", "red", "redg", "reds"})
_MEMORY = _LOADS | _STORES | _ATOMICS
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "F64": 8, "128": 16, "256": 32}


def sass(cubin: bytes) -> str:
    """The cubin's code as SASS text.

    Raises:
        BuildError: nvdisasm is not installed, or it does not read the cubin.
    """
    tool = toolchain().nvdisasm
    if tool is None:
        raise BuildError("nvdisasm is installed", got="no nvidia-cuda-nvdisasm", fix="pip install nvidia-cuda-nvdisasm")
    with tempfile.TemporaryDirectory(prefix="layoutgen-") as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        try:
            done = subprocess.run([str(tool), "-c", str(file)], capture_output=True, text=True, check=False)
        except OSError as error:
            raise BuildError(
                "nvdisasm can be run", got=error, fix="pip install --force-reinstall nvidia-cuda-nvdisasm"
            ) from error
    if done.returncode != 0:
        raise BuildError("nvdisasm reads the cubin", got=done.stderr.strip().replace(str(file), "kernel.cubin"))
    return done.stdout


def sass_counts(cubin: bytes) -> Counter[tuple[str, int]]:
    """How often each instruction stands in the code: one in a loop counts once, one that never executes not at all.

    Returns:
        (opcode in lower case, bytes that one thread moves) -> count: ``("lds", 16)`` for LDS.128, ``("ldgsts", 4)`` for
        a 4-byte cp.async, ``("ldsm", 16)`` for ldmatrix.x4. The bytes are 0 where no memory moves: ``("ffma", 0)``.

    Raises:
        BuildError: as `sass`.
    """
    return Counter(_classify(match[1]) for match in _INSTRUCTION.finditer(sass(cubin)))


def _classify(mnemonic: str) -> tuple[str, int]:
    head, *modifiers = mnemonic.split(".")
    opcode = head.lower()
    if opcode not in _MEMORY:
        return opcode, 0
    if opcode in ("ldsm", "stsm"):  # LDSM.16.M88.4: 16-bit elements of 4 matrices, a register of each per thread
        return opcode, 4 * next((int(modifier) for modifier in modifiers if modifier in ("2", "4")), 1)
    return opcode, next((_WIDTHS[modifier] for modifier in modifiers if modifier in _WIDTHS), 4)
