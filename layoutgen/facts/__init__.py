"""Plan (+ device, + problem shape) -> facts: what check, explain, draw, build reports and tests read.

Everything here is evaluated from the layouts that the emitted kernel carries, once; no reader computes any of it again.
"""

from layoutgen.facts.accesses import static_accesses
from layoutgen.facts.coverage import Coverage, cover_c, cover_copy, shared_collision
from layoutgen.facts.ownership import NOBODY, CopyOwners, COwners, c_owners, copy_owners, shared_words
from layoutgen.facts.resources import Registers, register_cap, registers, resident_blocks
from layoutgen.facts.traffic import Traffic, launch_traffic

__all__ = [
    "NOBODY",
    "COwners",
    "CopyOwners",
    "Coverage",
    "Registers",
    "Traffic",
    "c_owners",
    "copy_owners",
    "cover_c",
    "cover_copy",
    "launch_traffic",
    "register_cap",
    "registers",
    "resident_blocks",
    "shared_collision",
    "shared_words",
    "static_accesses",
]
