"""Words of shared memory, element by element, from the offsets of the facts."""

from __future__ import annotations

import numpy as np

from layoutgen.facts import shared_offsets
from layoutgen.plan.model import SharedOperand
from layoutgen.plan.storage import ITEMSIZE


def first_elements(operand: SharedOperand) -> dict[int, tuple[int, int]]:
    """Word of the first stage -> the (x, k) at whose byte it begins, or in whose bytes it lies."""
    size = ITEMSIZE[operand.dtype]
    found: dict[int, tuple[int, int]] = {}
    for byte, at in sorted((int(offset) * size, at) for at, offset in np.ndenumerate(shared_offsets(operand.shared))):
        for word in range(byte // 4, (byte + size + 3) // 4):
            found.setdefault(word, at)
    return found


def stage_words(operand: SharedOperand) -> int:
    """Of one stage, with its padding."""
    return operand.shared.stage_elements * ITEMSIZE[operand.dtype] // 4
