"""Rules on the levels of a spec, before and while they compose: sizes bound the work of all that follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from layoutgen.algebra import Layout, covers_exactly_once
from layoutgen.algebra.int_tuple import to_text
from layoutgen.check.findings import Finding, error
from layoutgen.errors import PlanError
from layoutgen.facts import cover_c
from layoutgen.hw.devices import Device, of_amd
from layoutgen.plan.mma import require_arch, require_atom
from layoutgen.plan.storage import ITEMSIZE
from layoutgen.plan.tile import compose_tile, map_threads, mend_cover, numbers, renumbered
from layoutgen.plan.variants import MAX_STAGES
from layoutgen.spec import Spec
from layoutgen.spec_fields import Arch


def architecture(spec: Spec, device: Device) -> Iterator[Finding]:
    """The device runs what the spec asks for; what ends in `a` runs on that architecture alone (PTX ISA, .target)."""
    runs = "the device must be able to run the spec's architecture"
    if spec.amd:
        if spec.arch != device.arch:
            home = of_amd(spec.arch)
            yield error(
                spec, "arch", "arch", runs, f"{spec.arch} on {device.name}, which is {device.arch}",
                f"a device of {spec.arch}" + (f", such as {home.name}" if home else ""),
                f"check against {home.name if home else 'such a device'}, or write arch: sm_80 and 32 lanes",
            )  # fmt: skip
    elif device.cc is None:
        yield error(
            spec, "arch", "arch", f"{runs}: layoutgen emits CUDA, and no code for AMD",
            f"{spec.arch} on {device.name}, which is {device.arch}",
            "an NVIDIA device; on this one the layouts are judged alone",
            "check and build for an NVIDIA device, such as h200",
        )  # fmt: skip
    else:
        has = 10 * device.cc[0] + device.cc[1]
        if capability(spec.arch) > has or (spec.arch.endswith("a") and spec.arch != device.arch):
            known = [each for each in get_args(Arch) if each.startswith("sm_") and not each.endswith("a")]
            older = [each for each in known if capability(each) <= has]
            itself = "" if device.arch == f"sm_{has}" else f", or {device.arch} itself"
            yield error(
                spec, "arch", "arch", runs, f"{spec.arch} on {device.name}, which is {device.arch}",
                f"sm_{has} or older{itself}" if older else "nothing that a spec can name, as it is older than sm_80",
                f"write arch: {max(older, key=capability)}, or check against another device" if older
                else "check against another device",
            )  # fmt: skip
    own = spec.warp_size
    if device.warp_size != own and spec.tiling.lanes.size == own:
        unit = "warps" if device.cc else "wavefronts"
        yield error(
            spec, "wavefront", "tiling.lanes", "the lanes of a spec are those of the device's wavefront",
            f"{own} lanes in {spec.tiling.lanes}; {device.name} has {unit} of {device.warp_size}",
            f"{device.warp_size} lanes" + ("" if spec.amd else f", with arch: {device.arch}"),
            f"check against a device with {'wavefronts' if spec.amd else 'warps'} of {own}, such as "
            f"{'mi300x' if spec.amd else 'h200'}",
        )  # fmt: skip


def capability(arch: str) -> int:
    """sm_90a -> 90."""
    return int(arch.removeprefix("sm_").removesuffix("a"))


def sizes(spec: Spec, device: Device) -> Iterator[Finding]:
    """Lanes, warps and the least shared memory: what bounds every other size. Raises PlanError where the spec's atom is
    not of its architecture, which says how many lanes there are."""
    require_arch(spec)
    lanes, warps, size = spec.tiling.lanes, spec.tiling.warps, spec.warp_size
    if lanes.size != size:
        yield error(
            spec, "lanes", "tiling.lanes",
            f"a warp has {size} lanes"
            + (f" with arch: {spec.arch}, though one of {device.name} has {device.warp_size}"
               if device.warp_size != size else ""),
            f"{lanes.size} lanes in {lanes}",
            f"{size} lanes", f"give it {size} positions, such as {'(8,8):(8,1)' if spec.amd else '(8,4):(4,1)'}",
        )  # fmt: skip
    elif not numbers(lanes, size):
        yield _misnumbered(spec, "lanes", lanes)
    if warps.size * size > device.max_threads_per_block:
        most = device.max_threads_per_block // size
        yield error(
            spec, "threads", "tiling.warps", "a block has no more threads than the device allows",
            f"{warps.size} warps, {warps.size * size} threads", f"{device.max_threads_per_block} threads",
            f"use at most {most} warps, each with a larger tile",
        )  # fmt: skip
    elif not numbers(warps, warps.size):
        yield _misnumbered(spec, "warps", warps)
    if spec.shared.stages > MAX_STAGES:
        yield error(
            spec, "stages", "shared.stages", f"a main loop has at most {MAX_STAGES} stages of shared memory",
            spec.shared.stages, f"0 .. {MAX_STAGES}", f"write shared.stages: {MAX_STAGES}",
        )  # fmt: skip
        return
    block_m, block_n, block_k = spec.tiling.block
    a, b = (ITEMSIZE[each.dtype] for each in (spec.operands.a, spec.operands.b))
    dense = (block_m * a + block_n * b) * block_k
    yield from fits_block(spec, device, dense, "tiling.block", "use a smaller block tile")


def _misnumbered(spec: Spec, level: Literal["lanes", "warps"], ids: Layout) -> Finding:
    noun, cover = level[:-1], covers_exactly_once(ids, ids.size)
    number = cover.outside if cover.coordinate is None else cover.coordinate
    owners = " and ".join(map(to_text, cover.owner_coordinates))
    return error(
        spec, level, f"tiling.{level}", f"the {level} number their positions 0 .. {ids.size - 1}, each once",
        f"{ids}: {noun} {number} is at {owners or 'no position'}{_in_c(spec, level, ids)}", "one position each",
        f"write tiling.{level}: {renumbered(ids)}",
    )  # fmt: skip


def _in_c(spec: Spec, level: Literal["lanes", "warps"], ids: Layout) -> str:
    """What wrong numbers do to C: its first coordinate that two positions claim as one value, or that nobody owns."""
    try:
        tile = compose_tile(spec)
    except PlanError:
        return ""  # another finding says why C has no coordinates yet
    mode_m, mode_n = tile.lane_mode if level == "lanes" else tile.warp_mode
    first: dict[int, str] = {}
    for index, number in enumerate(ids.offsets().tolist()):
        here = f"C({mode_m(index % mode_m.size)},{mode_n(index // mode_m.size)})"
        if not 0 <= number < ids.size:
            return f"; {here} is owned by nobody: there is no {level[:-1]} {number}"
        if number in first:
            return f"; {first[number]} and {here} are owned by one value of {level[:-1]} {number}"
        first[number] = here
    return ""


def fits_block(spec: Spec, device: Device, stage_bytes: int, key: str, fix: str) -> Iterator[Finding]:
    """key, fix: what to change where fewer stages do not help."""
    stages, limit = spec.shared.stages, device.shared_per_block
    if stages * stage_bytes <= limit:
        return
    fewer = min(limit // stage_bytes, MAX_STAGES)
    if fewer >= 2:
        key, fix = "shared.stages", f"write shared.stages: {fewer}"
    yield error(
        spec, "shared-memory", key, "all stages of A and B fit the shared memory of one block",
        f"{stages * stage_bytes} bytes: {stages} stages of {stage_bytes}", f"{limit} bytes on {device.name}", fix,
    )  # fmt: skip


def levels(spec: Spec, device: Device) -> Iterator[Finding]:
    """Raises PlanError where the levels of C do not compose."""
    require_atom(spec)
    tile = compose_tile(spec)
    each_m, each_n = (layout.size for layout in tile.value_mode)
    of_tile = 0 if spec.shared.stages else (each_m + each_n) * tile.block[2]  # in registers, where nothing is shared
    if each_m * each_n + of_tile > device.registers_per_thread:
        yield error(
            spec, "registers", "tiling.block",
            "one thread's accumulators fit its registers" if spec.shared.stages else
            "one thread's accumulators fit its registers, with its values of a k-tile",
            f"{each_m} x {each_n} values of C in each of {tile.lanes.size * tile.warps.size} threads"
            + (f", {of_tile} of A and B" if of_tile else ""),
            f"fewer than {device.registers_per_thread} in all", "use a smaller block tile, or more warps",
        )  # fmt: skip
        return
    coverage = cover_c(tile, map_threads(spec, tile))
    if not coverage.ok:
        key, runs = mend_cover(spec)
        yield error(
            spec, "coverage-c", key, "each (m,n) of the block tile belongs to one value of one thread", f"C{coverage}",
            f"every (m,n) of {tile.block[0]} x {tile.block[1]} once",
            f"write {key}: {runs}, or strides that step over what smaller strides fill, as in (4,2):(1,16)",
        )  # fmt: skip
