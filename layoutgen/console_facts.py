"""How the command line shows a plan's facts: budgets as bars, accesses as a table, and what bounds its speed."""

from __future__ import annotations

import typer
from rich.table import Table

from layoutgen.console import plain_table, print_table
from layoutgen.errors import counted
from layoutgen.facts import Facts

BAR = 16  # characters


def budget_table(found: Facts) -> Table:
    """What a thread or a block takes, and how much of what there is that is."""
    device, bounds, resident = found.device, found.registers, found.occupancy
    used = f"{bounds.minimum} to {bounds.cap}" if found.built is None else str(found.built)
    registers = bounds.minimum if found.built is None else found.built
    warps = resident.blocks * resident.warps
    table = plain_table("budget", ">used", "part", ">of")
    for name, shown, part, whole in (
        ("registers a thread", used, registers, device.registers_per_thread),
        ("threads a block", f"{found.threads:,}", found.threads, device.max_threads_per_block),
        ("shared bytes a block", f"{found.shared.bytes:,}", found.shared.bytes, device.shared_per_block),
        ("resident warps", str(warps), warps, resident.max_warps),
    ):
        table.add_row(name, shown, _bar(part, whole), f"{whole:,}")
    return table


def _bar(part: float, whole: float) -> str:
    filled = round(BAR * min(1.0, part / whole))
    return "#" * filled + "." * (BAR - filled) + f" {part / whole:4.0%}"


def access_table(found: Facts) -> Table:
    """One row per access, with what each of its executions by a warp costs and would cost at best."""
    table = plain_table(
        "access",
        "instruction",
        ">a k-tile\nor block",
        ">wave-\nfronts",
        ">conflict\nfree",
        ">sectors\neach",
        ">at\nbest",
    )
    for each in found.accesses:
        shared = [_ratio(each.wavefronts, each.requests), _ratio(each.conflict_free, each.requests)]
        memory = [_ratio(each.sectors, each.requests), _ratio(each.ideal_sectors, each.requests)]
        table.add_row(
            each.name, f"{each.opcode} {each.bytes} B", f"{each.requests} a {each.per}",
            *(shared if each.wavefronts else ["", ""]), *(memory if each.sectors else ["", ""]),
        )  # fmt: skip
    return table


def _ratio(total: int, requests: int) -> str:
    return f"{total / requests:.3g}" if requests else "-"


def bound_lines(found: Facts) -> list[str]:
    """What limits the speed, in sentences."""
    clocks = ", ".join(f"{name} {value:.0f}" for name, value in found.bound.clocks.items())
    intensity, device = found.intensity, found.device
    resident = found.occupancy
    each = resident.blocks * resident.warps // device.partitions
    on_simds = f": {counted(each, 'wavefront')} on each SIMD" if found.plan.amd else ""
    of_peak = "" if found.peak is None else f"of {found.peak:.1f} "
    lines = [
        f"an SM has room for {counted(resident.blocks, 'block')} of {resident.warps} warps, limited by "
        f"{' and '.join(resident.limited_by)}{on_simds}; {found.shared.padding:,} of the shared bytes are padding",
        *(
            [f"no accesses, clocks or ceiling: banks, sectors and issue slots are NVIDIA's, {device.name} is AMD's"]
            if found.ceiling is None
            else [
                f"clocks of a k-tile on one SM: {clocks}",
                f"ceiling {found.ceiling:.1f} {of_peak}TFLOP/s, set by {found.bound.limiter}",
            ]
        ),
        f"FLOP a byte: block {intensity.block:.4g}, warp {intensity.warp:.4g}, thread {intensity.thread:.4g}; "
        f"without L2 hits, memory feeds {found.roof:.1f} TFLOP/s",
    ]
    if found.problem is not None:
        about, waves = found.problem, found.problem.waves
        lines += [
            f"{' x '.join(map(str, about.extents))}: {counted(waves.tiles, 'tile')} in "
            f"{waves.waves:.2f} waves of {waves.slots}; "
            + (
                f"{counted(waves.shared.blocks, 'block')} share {waves.shared.tiles} of them; "
                if waves.shared.blocks
                else ""
            )
            + f"{waves.efficiency:.0%} of the places have a tile, {waves.useful:.0%} of what is computed is real",
            f"variant {found.plan.variant}; {about.raster.l2_hits:.0%} of the reads of A and B hit L2; "
            f"the problem's own {about.work.intensity:.4g} FLOP a byte feed {about.roof:.1f} TFLOP/s",
        ]
    return lines


def print_facts(found: Facts) -> None:
    """A spec's facts, from its budgets to its ceiling."""
    typer.echo(f"{found.plan.name}, variant {found.plan.variant}, on {found.device.name}")
    print_table(budget_table(found))
    if found.accesses:
        print_table(access_table(found))
    typer.echo("\n".join(bound_lines(found)) + "\n")
