"""cubin -> SASS, the instructions that the GPU executes, through nvdisasm.

Source: CUDA Binary Utilities, section "nvdisasm" and its instruction set reference.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from layoutgen.build.tools import toolchain
from layoutgen.errors import BuildError

# Address, predicate, mnemonic. PT is the predicate that is always true: what stands under @!PT never executes (ptxas
# puts three `@!PT LDS RZ, [RZ]` before the LDGSTS of sm_90), so it is no instruction of the kernel.
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+\{?\s*(?!@!U?PT\s)(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", re.M)
_OFFSET = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s")
_LABEL = re.compile(r"^(\.L\w+):")
_MMA = re.compile(r"[HIDQ]G?MMA\b")
_BRANCH = re.compile(r"\bBRA\b.*?`\((\.L\w+)\)")
_PLACE = re.compile(r'"([^"]*)", line (\d+)')
_LOADS = frozenset({"ld", "ldg", "lds", "ldl", "ldc", "ldcu", "uldc", "ldgsts", "ldsm"})
_STORES = frozenset({"st", "stg", "sts", "stl", "stsm"})
_ATOMICS = frozenset({"atom", "atomg", "atoms", "red", "redg", "reds"})
_MEMORY = _LOADS | _STORES | _ATOMICS
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "F64": 8, "128": 16, "256": 32}


def sass(cubin: bytes, *, lines: bool = False) -> str:
    """The cubin's code as SASS text; with `lines`, each instruction follows the source lines that it came from.

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
            done = subprocess.run(
                [str(tool), "-gi" if lines else "-c", str(file)], capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise BuildError(
                "nvdisasm can be run", got=error, fix="pip install --force-reinstall nvidia-cuda-nvdisasm"
            ) from error
    if done.returncode != 0:
        raise BuildError("nvdisasm reads the cubin", got=done.stderr.strip().replace(str(file), "kernel.cubin"))
    return done.stdout


@dataclass(frozen=True, slots=True)
class SassInstruction:
    """One instruction of a kernel.

    Attributes:
        offset: bytes from the kernel's start. opcode, bytes: as `sass_counts` names them.
        lines: of the source file named after the kernel, the innermost function's first, then where that was inlined.
    """

    offset: int
    opcode: str
    bytes: int
    lines: tuple[int, ...]


def sass_instructions(cubin: bytes, kernel_name: str) -> tuple[SassInstruction, ...]:
    """A kernel's instructions in the order of their code, those that never execute left out.

    nvdisasm names a place only where it is another than the instruction's before, and of the functions that one line is
    inlined into it compares none: give two accesses that may stand together a line each.

    Raises:
        BuildError: as `sass`.
    """
    found: list[SassInstruction] = []
    places: list[int] = []
    named = inside = False
    for line in sass(cubin, lines=True).splitlines():
        if line.lstrip().startswith(".section"):
            inside = re.search(rf"\.text\.{re.escape(kernel_name)}\b", line) is not None
        elif line.lstrip().startswith("//## File"):
            places, named = places if named else [], True
            places += [int(number) for file, number in _PLACE.findall(line) if file.endswith(f"{kernel_name}.cu")]
        elif inside and (match := _OFFSET.match(line)):
            named = False
            if instruction := _INSTRUCTION.match(line):
                opcode, size = _classify(instruction[1])
                found.append(SassInstruction(int(match[1], 16), opcode, size, tuple(dict.fromkeys(places))))
    return tuple(found)


def loop_counts(cubin: bytes, kernel_name: str) -> Counter[tuple[str, int]]:
    """What one turn of a kernel's main loop executes, as `sass_counts` names it; nothing if it has no loop.

    Raises:
        BuildError: as `sass`.
    """
    return Counter(_classify(mnemonic) for mnemonic, _ in loop_instructions(cubin, kernel_name))


def loop_instructions(cubin: bytes, kernel_name: str) -> tuple[tuple[str, str], ...]:
    """One turn of a kernel's main loop as (mnemonic, operands), such as ("FFMA", "R7, R2.reuse, R4, R7").

    A loop is the code from a label to the last branch back to it; the main loop is the longest that has no other in it,
    since a block with several tiles loops over them, too. Where some have tensor cores' instructions, it is the
    shortest of those with most of them, since an epilogue may loop as well, and what is summed again with guards.
    Instructions that never execute are left out.

    Raises:
        BuildError: as `sass`.
    """
    labels: dict[str, int] = {}
    executed: list[tuple[str, str]] = []
    loops: dict[int, int] = {}  # where it starts -> where it ends
    inside = False
    for line in sass(cubin).splitlines():
        if line.lstrip().startswith(".section"):
            inside = re.search(rf"\.text\.{re.escape(kernel_name)}\b", line) is not None
        elif inside and (label := _LABEL.match(line)):
            labels[label[1]] = len(executed)
        elif inside and (instruction := _INSTRUCTION.match(line)):
            executed.append((instruction[1], line[instruction.end() :].partition(";")[0].strip()))
            target = _BRANCH.search(line)
            if target and (start := labels.get(target[1])) is not None:
                loops[start] = len(executed)
    innermost = [(a, b) for a, b in loops.items() if not any(a < c and d <= b for c, d in loops.items())]
    bodies = [tuple(executed[first:end]) for first, end in innermost]
    multiplying = [sum(_MMA.match(mnemonic) is not None for mnemonic, _ in body) for body in bodies]
    if not any(multiplying):
        return max(bodies, key=len, default=())
    return min((body for body, count in zip(bodies, multiplying, strict=True) if count == max(multiplying)), key=len)


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
