"""The rules' table: ids, what each says and why, and edits of a spec that ships which provoke it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from layoutgen.check.findings import Severity
from layoutgen.problem import Extents

BASE = "warptile_128x128"
Stage = Literal["read", "check", "build"]
Edits = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class Example:
    """Edits of the spec `BASE`, key -> value, or None to remove it; and what it is checked for."""

    edits: Edits = field(default_factory=dict)
    device: str = "h200"
    shape: Extents | None = None

    def __str__(self) -> str:
        parts = [f"{key}: {value}" if value is not None else f"no {key}" for key, value in self.edits.items()]
        parts += [f"--device {self.device}"] if self.device != "h200" else []
        parts += [f"--shape {','.join(map(str, self.shape))}"] if self.shape else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    stage: who says it: the reading of a spec or of the command line, check, or the build.
    """

    id: str
    severity: Severity
    stage: Stage
    says: str
    why: str
    example: Example


def _of(severity: Severity, stage: Stage) -> Callable[..., Rule]:
    def rule(name: str, says: str, why: str, edits: Edits, device: str = "h200", shape: Extents | None = None) -> Rule:
        return Rule(name, severity, stage, says, why, Example(edits, device, shape))

    return rule


_read, _error = _of("error", "read"), _of("error", "check")
_warning, _hint = _of("warning", "check"), _of("hint", "check")
_DEFAULTS: Edits = {"shared.a": None, "shared.b": None, "copies.a": None, "copies.b": None}
_SMALL = {"tiling.block": "[64, 64, 16]", "tiling.warp": None, "tiling.values": "[4, 4]", **_DEFAULTS}
_WAVEFRONTS: Edits = {"arch": "gfx942", "tiling.lanes": "(8,8):(8,1)", "schedule.min_blocks": "1"}
_ONE_WARP = {"tiling.warp": None, "tiling.warps": "1:0", "schedule.min_blocks": "1", **_DEFAULTS}

EVERY: tuple[Rule, ...] = (
    _read(
        "key",
        "Each key is one of the language, at its place, given once.",
        "A misspelled key that was ignored would leave its default in force without a word.",
        {"tiling.lane": "(8,4):(4,1)"},
    ),
    _read(
        "missing",
        "What has no default is given.",
        "A tiling without one of its levels is many tilings.",
        {"tiling.lanes": None},
    ),
    _read(
        "name",
        "The spec's name is a name in Python and in C, and the stem of its file.",
        "It becomes the operator torch.ops.layoutgen.NAME and the folder of the emitted kernels.",
        {"name": "128x128"},
    ),
    _read(
        "positive",
        "Extents and counts are positive integers in decimal digits; stages, and k of copies.spread, may be 0.",
        "A tile of no extent has no owner, and groups of no tiles walk nowhere.",
        {"schedule.group": "0"},
    ),
    _read(
        "layout",
        "A level is a layout in CuTe's notation, shape:stride, with strides of at least 0.",
        "Everything else is worked out from it, so that nothing about it is guessed.",
        {"tiling.lanes": "8x4"},
    ),
    _read(
        "tile",
        "The block tile has three extents; a warp tile and values have one per mode.",
        "Modes are m, n and k by their place.",
        {"tiling.block": "[128, 128]"},
    ),
    _read(
        "word",
        "Architectures, atoms and orders are words of a list.",
        "Before sm_80 there is no cp.async, and no kernel of ours.",
        {"arch": "sm_75"},
    ),
    _read(
        "dtype",
        "Operands are of a type that FFMAs (f32) or an MMA atom multiplies.",
        "A spec for another type would be planned as what it is not.",
        {"operands.a.dtype": "f8"},
    ),
    _read(
        "accumulate",
        "Sums are kept in f32, f64 of doubles, s32 of integers.",
        "An f16 accumulator has 11 bits and ends at 65504: sums of a few thousand products lose most of their digits "
        "or overflow.",
        {"operands.accumulate": "f16"},
    ),
    _read(
        "step",
        "Each step of an epilogue is one that there is, with its options by name.",
        "A misspelled one that was ignored would change every result without a word.",
        {"epilogue": "[gleu]"},
    ),
    _read(
        "device",
        "The device is one that layoutgen knows, or a YAML file that describes one.",
        "Limits that are made up prove nothing.",
        {}, device="h300",
    ),
    _error(
        "arch",
        "The device runs code for the spec's architecture.",
        "Code for a newer architecture, or for another sm_90a, does not load; and layoutgen emits no code for AMD.",
        {"arch": "sm_100"},
    ),
    _error(
        "wavefront",
        "The lanes of a spec are those of the device's warp.",
        "A CDNA device runs 64 lanes in step: half of them would have no part in a tiling for 32.",
        {"schedule.min_blocks": "1"}, device="mi300x",
    ),
    _error(
        "lanes",
        "The lanes of a warp, 32 or an AMD architecture's 64, number their positions 0, 1, .., each once.",
        "Two lanes in one place write the same element of C, and another element is nobody's.",
        {"tiling.lanes": "(8,4):(4,2)"},
    ),
    _error(
        "warps",
        "The warps of a block number their positions 0, 1, .., each once.",
        "As for lanes, a whole warp tile at a time.",
        {"tiling.warps": "(2,2):(1,1)"},
    ),
    _error(
        "threads",
        "A block has no more threads than the device allows.",
        "A launch of more than 1024 threads fails.",
        {"tiling.warps": "(8,8):(8,1)"},
    ),
    _error(
        "stages",
        "The main loop has at most 8 stages of shared memory.",
        "Two or three hide the way from memory; what more hold is missing elsewhere.",
        {"shared.stages": "9"},
    ),
    _error(
        "shared-memory",
        "All stages of A and B fit the shared memory of one block.",
        "A launch with more fails; the limit is the device's opt-in one, 227 KB on an H200.",
        {"tiling.block": "[128, 128, 128]", **_DEFAULTS},
    ),
    _error(
        "registers",
        "A thread's accumulators, fragments, staged elements and addresses fit its registers.",
        "What does not fit lives in local memory, in the innermost loop.",
        {"tiling.block": "[256, 256, 16]", "tiling.warp": "[128, 128]", **_DEFAULTS},
    ),
    _error(
        "compose",
        "Each level's extents divide those of the level around it, and copies go where stages, and a turn's k, allow.",
        "Where they do not, elements would be owned twice or left out.",
        {"tiling.values": "[8, 3]"},
    ),
    _error(
        "epilogue",
        "Each tensor of an epilogue has a name of its own and is no wider than the type in which its step computes.",
        "The name is a keyword of the operator; and what is wider would be rounded where it is read.",
        {"epilogue": "[bias, {bias: {per: row}}]"},
    ),
    _error(
        "coverage-c",
        "Each (m,n) of the block tile belongs to one value of one thread.",
        "Proved by enumeration. An element owned twice is written twice, one owned by nobody never.",
        {"tiling.values": "<(2,3):(1,1), 4>"},
    ),
    _error(
        "coverage-a",
        "Each (m,k) of A's k-tile is copied once, in every variant.",
        "An element that is not copied is multiplied as what the last k-tile left there.",
        {"copies.a": '{atom: cp.async, threads: "(32,3):(1,32)", values: [1, 3]}'},
    ),
    _error(
        "coverage-b",
        "Each (n,k) of B's k-tile is copied once, in every variant.",
        "As for A.",
        {"copies.b": '{atom: cp.async, threads: "(32,3):(1,32)", values: [1, 3]}'},
    ),
    _error(
        "shared-overlap",
        "Each element of a k-tile has its own word of a stage.",
        "Two elements in one word: the one that is copied last is multiplied twice.",
        {"shared.a": "(128,16):(1,64)"},
    ),
    _error(
        "atom",
        "The spec's architecture has the copy's instruction.",
        "The compiler would refuse it. CDNA 3 has no cp.async: there copies go through registers.",
        {**_DEFAULTS, **_WAVEFRONTS, "copies.a": "{atom: cp.async}"}, device="mi300x",
    ),
    _error(
        "min-blocks",
        "As many blocks as min_blocks asks for fit on one multiprocessor.",
        "ptxas would cap the registers for blocks that shared memory or threads keep out, and spill for nothing.",
        {"schedule.min_blocks": "4"},
    ),
    _error(
        "waves-per-eu",
        "As many wavefronts as waves_per_eu asks for fit on each SIMD of an AMD device.",
        "The compiler would keep registers back for wavefronts that LDS or threads keep out, and spill for nothing.",
        {**_DEFAULTS, **_WAVEFRONTS, "schedule.waves_per_eu": "4"}, device="mi300x",
    ),
    _warning(
        "spills",
        "Beside a thread's live values, 18 registers are left for cursors and predicates.",
        "Kernels of this family with fewer spill (ptxas 13.0, sm_90a); whether they do is known once they are built.",
        {**_ONE_WARP, "tiling.block": "[128, 48, 16]", "tiling.values": "[8, 2]"},
    ),
    _of("warning", "build")(
        "spilled",
        "No value of a thread is spilled by ptxas.",
        "Spilled values go through local memory: accesses in the innermost loop that no tiling asks for.",
        {**_SMALL, "schedule.min_blocks": "8"},
    ),
    _warning(
        "odd-k",
        "BLK_K is even, so that fragments are double-buffered.",
        "With an odd BLK_K there is one slot of fragments, and each load from shared memory is waited for.",
        {"tiling.block": "[128, 128, 15]", "operands.a.contiguous": "m", **_DEFAULTS},
    ),
    _warning(
        "k-depth",
        "On AMD devices with MFMA, BLK_K is at least 32.",
        "An MFMA multiplies several k at once: a shorter k-tile has too few to cover the next one's arrival.",
        {"schedule.min_blocks": "1"}, device="mi300x",
    ),
    _warning(
        "narrow-loads",
        "A thread's runs of values are loaded from shared memory in one access.",
        "One 16-byte load brings what four 4-byte loads bring, in a quarter of the issue slots.",
        {"shared.b": "(128,16):(1,130)", "copies.b": "{atom: cp.async, values: [1, 1]}"},
    ),
    _warning(
        "narrow-copy",
        "A copy moves the run of elements that its values name in one access.",
        "cp.async of 4 bytes takes four times the instructions of 16, and bypasses L1 only at 16.",
        {"copies.a": "{atom: cp.async, values: [1, 4]}"},
    ),
    _warning(
        "bank-conflicts",
        "The lanes of a warp access shared memory in different banks.",
        "Shared memory serves 32 words a clock, one of each bank; lanes that meet in a bank wait for one another. "
        "Told where conflicts add a thirty-second to a k-tile's clocks, or more.",
        {"shared.a": "(128,16):(1,128)"},
    ),
    _warning(
        "uncoalesced",
        "A warp's accesses to global memory use the 32-byte sectors that they move.",
        "Memory moves whole sectors: half used, they give half of the bandwidth. A 16-byte cp.async moves a sector "
        "once for each 32-byte piece of shared memory that it goes to: rows padded by 16 bytes read half as much "
        "again. Told where over a quarter is unused.",
        {"tiling.block": "[128, 128, 4]", **_DEFAULTS},
    ),
    _warning(
        "idle-schedulers",
        "Every warp scheduler of a multiprocessor has a warp.",
        "A scheduler without a warp leaves its quarter of the FP32 lanes idle.",
        {**_ONE_WARP, "tiling.block": "[64, 32, 128]", "operands.a.contiguous": "m"},
    ),
    _warning(
        "no-overlap",
        "A k-tile is fetched while another one is multiplied.",
        "With one stage of shared memory a block fetches, waits, and only then multiplies: other blocks of the "
        "multiprocessor alone can use the time. With two or more, the next tile arrives meanwhile.",
        {"shared.stages": "1"},
    ),
    _warning(
        "l1-bound",
        "Loads from global memory take no longer over a k-tile than its FFMAs do.",
        "L1 serves one 128-byte line a clock. Where each thread loads what it multiplies for itself, the same elements "
        "pass through it once for every warp that needs them: shared memory, read in larger pieces, takes them once.",
        {**_DEFAULTS, "shared.stages": "0", "operands.a.contiguous": "m", "tiling.block": "[16, 32, 8]",
         "tiling.warp": None, "tiling.values": "[1, 4]"},
    ),
    _warning(
        "shared-bound",
        "Shared memory takes no longer over a k-tile than its FFMAs do.",
        "A thread of p x q values reads p + q words for p q FFMAs, in twice the wavefronts where no pairs of lanes (i "
        "and i^1, or i and i^2) read alike. Without such pairs 4 x 8 values keep an H200's FP32 lanes waiting, and "
        "8 x 8 do not. Told where it takes a tenth longer: how many wavefronts a cp.async takes is an estimate.",
        {**_SMALL, "schedule.min_blocks": "1"},
    ),
    _hint(
        "waves",
        "The last wave of blocks nearly fills the device.",
        "All tiles take equally long: one tile more than there are places doubles the time.",
        {}, shape=(128 * 265, 128, 4096),
    ),
    _hint(
        "overhang",
        "Block tiles overhang little of the problem.",
        "What lies outside is computed all the same: of 300 x 300 in tiles of 128, 61% is real.",
        {}, shape=(128 * 264, 80, 4096),
    ),
    _hint(
        "alignment",
        "Rows of the problem start on the 16-byte boundaries that the spec's copies need.",
        "Else the variant with 4-byte accesses runs, which takes four times the instructions to copy.",
        {}, shape=(8192, 8191, 8192),
    ),
    _hint(
        "raster",
        "On a large grid, blocks that run together share rows and columns of tiles in L2.",
        "A GROUP_M of 1 walks whole rows of tiles: a wave's blocks touch more rows and columns of tiles than in "
        "groups of 8, and memory has to feed the difference. Of three specs at 4096, 8192 and "
        "16384 on an H200, groups of 8 made one faster: salykov_128x128x8 at 16384, from 48.3 to 49.4 TFLOP/s. Of the "
        "other eight none changed by more than 0.4%, up or down.",
        {"schedule.group": "1"}, shape=(8192, 8192, 8192),
    ),
    _hint(
        "memory-bound",
        "Reading a k-tile from global memory takes no longer than multiplying it.",
        "Below the ridge, FP32 peak over memory bandwidth, a faster inner loop gains nothing.",
        {}, shape=(128, 1 << 20, 1024), device="rtx4090",
    ),
)  # fmt: skip
