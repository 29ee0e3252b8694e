"""Plan (+ device, + problem shape) -> facts: what check, explain, draw, build reports and tests read.

Everything here is evaluated from the layouts that the emitted kernel carries, once; no reader computes any of it again.
"""

from layoutgen.facts.accesses import static_accesses, turn_accesses
from layoutgen.facts.coverage import Coverage, cover_c, cover_copy, shared_collision
from layoutgen.facts.ownership import (
    BANKS,
    NOBODY,
    SECTOR_BYTES,
    CopyOwners,
    COwners,
    Piece,
    c_owners,
    copy_owners,
    copy_piece,
    first_word,
    fragment_piece,
    shared_banks,
    shared_words,
)
from layoutgen.facts.resources import Registers, register_cap, registers, resident_blocks

__all__ = [
    "BANKS",
    "NOBODY",
    "SECTOR_BYTES",
    "COwners",
    "CopyOwners",
    "Coverage",
    "Piece",
    "Registers",
    "c_owners",
    "copy_owners",
    "copy_piece",
    "cover_c",
    "cover_copy",
    "first_word",
    "fragment_piece",
    "register_cap",
    "registers",
    "resident_blocks",
    "shared_banks",
    "shared_collision",
    "shared_words",
    "static_accesses",
    "turn_accesses",
]
