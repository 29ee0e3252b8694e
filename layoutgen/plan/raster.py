"""What a spec asks of the order of blocks and of how many are resident: part of the Plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which block computes which (m, n, k0, k1). Data-parallel: one full k range a tile, no partial results to meet.
    stream_k: blocks share tiles where whole ones would leave some idle; the one that begins a tile adds up its parts.

    raster: the mode that neighbouring blocks walk within a group; group: tiles in that mode before the other advances.
    min_blocks, waves_per_eu: blocks on an SM of NVIDIA's, or wavefronts on a SIMD of AMD's, that must be resident.
    """

    kind: Literal["data_parallel", "stream_k"]
    raster: Literal["along_m", "along_n"]
    group: int
    min_blocks: int
    waves_per_eu: int | None
