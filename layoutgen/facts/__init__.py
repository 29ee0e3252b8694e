"""Plan (+ device, + problem) -> facts: what check, explain, draw, build reports and tests read.

Everything here is evaluated from the layouts that the emitted kernel carries, once; no reader computes any of it again.
"""

from layoutgen.facts.accesses import AccessFacts, access_facts, static_accesses
from layoutgen.facts.banks import BANK_BYTES, BANKS
from layoutgen.facts.coverage import Coverage, cover_c, cover_copy, shared_collision
from layoutgen.facts.executions import Execution, fragment_executions, write_executions
from layoutgen.facts.fragments import AtomOwners, atom_owners
from layoutgen.facts.ownership import (
    NOBODY,
    CopyOwners,
    COwners,
    Piece,
    Side,
    access_offsets,
    c_owners,
    copy_owners,
    fetch_piece,
    fetch_pieces,
    first_word,
    fragment_piece,
    shared_banks,
    shared_offsets,
    turned,
)
from layoutgen.facts.performance import (
    Bound,
    Loop,
    RasterTraffic,
    Waves,
    Work,
    launch_waves,
    peak,
    problem_work,
    raster_traffic,
    roof,
    tile_intensity,
)
from layoutgen.facts.resources import (
    Occupancy,
    Registers,
    occupancy,
    register_cap,
    registers,
    resident_blocks,
    wanted_blocks,
)
from layoutgen.facts.summary import Facts, ProblemFacts, facts
from layoutgen.facts.traffic import Traffic, launch_traffic
from layoutgen.plan.storage import SECTOR_BYTES

__all__ = [
    "BANKS", "BANK_BYTES", "NOBODY", "SECTOR_BYTES", "AccessFacts", "AtomOwners", "Bound", "COwners", "CopyOwners",
    "Coverage", "Execution", "Facts", "Loop", "Occupancy", "Piece", "ProblemFacts", "RasterTraffic", "Registers",
    "Side", "Traffic", "Waves", "Work", "access_facts", "access_offsets", "atom_owners", "c_owners", "copy_owners",
    "cover_c", "cover_copy", "facts", "fetch_piece", "fetch_pieces", "first_word", "fragment_executions",
    "fragment_piece", "launch_traffic", "launch_waves", "occupancy", "peak", "problem_work", "raster_traffic",
    "register_cap", "registers", "resident_blocks", "roof", "shared_banks", "shared_collision", "shared_offsets",
    "static_accesses", "tile_intensity", "turned", "wanted_blocks", "write_executions",
]  # fmt: skip
