"""The SIMT family: scalar multiply-adds on outer products of register fragments."""

from __future__ import annotations

from typing import Literal

from layoutgen.errors import PlanError
from layoutgen.plan.copies import plan_copy
from layoutgen.plan.epilogue import plan_epilogue
from layoutgen.plan.model import (
    CTile,
    IssueOrder,
    Mode,
    Operand,
    OperandName,
    OperandRequirement,
    Plan,
    Requirements,
    ThreadMap,
)
from layoutgen.plan.pipeline import fragment_slots, plan_program
from layoutgen.plan.schedule import plan_schedule
from layoutgen.plan.storage import ITEMSIZE, VECTOR_BYTES, place_shared, plan_fragment
from layoutgen.plan.tile import compose_tile, map_threads
from layoutgen.spec import Spec

MAX_STAGES = 8


def plan_variants(spec: Spec) -> tuple[Plan, ...]:
    """Spec -> its plans, cheapest first: 16-byte accesses, then 4-byte ones, per pair of contiguous modes; any strides.

    The first plan is the primary variant: the spec's own contiguous modes with its own copies.
    Raises PlanError where levels, storage or copies do not compose.
    """
    if not 2 <= spec.shared.stages <= MAX_STAGES:
        raise PlanError(
            f"a pipelined mainloop has 2 to {MAX_STAGES} stages of shared memory",
            got=spec.shared.stages,
            allowed=f"2 .. {MAX_STAGES}",
            fix=f"write shared.stages: {min(max(spec.shared.stages, 2), MAX_STAGES)}",
            where=spec.where("shared.stages"),
        )
    tile = compose_tile(spec)
    threads = map_threads(spec, tile)
    own: tuple[Mode, Mode] = (spec.operands.a.contiguous, spec.operands.b.contiguous)
    pairs: list[tuple[Mode, Mode]] = [(a, b) for a in ("k", "m") for b in ("n", "k")]
    pairs.sort(key=lambda pair: pair != own)
    plans: list[Plan] = []
    for align in (VECTOR_BYTES, ITEMSIZE[spec.operands.c.dtype]):
        for modes in pairs:
            plans.append(_plan(spec, tile, threads, modes, align, own, len(plans)))
    plans.append(_plan(spec, tile, threads, None, ITEMSIZE[spec.operands.c.dtype], own, len(plans)))
    return tuple(plans)


def _plan(
    spec: Spec,
    tile: CTile,
    threads: ThreadMap,
    modes: tuple[Mode, Mode] | None,
    align: int,
    own: tuple[Mode, Mode],
    cost: int,
) -> Plan:
    """One variant; modes None takes operands of any two strides, an element at a time."""
    walk = own if modes is None else modes
    primary = modes == own and align == VECTOR_BYTES
    slots = fragment_slots(spec.tiling.block[2])

    def operand(name: OperandName, mode: int) -> Operand:
        x: Mode = "m" if mode == 0 else "n"
        shared = place_shared(spec, name, spec.tiling.block[mode])
        global_mode: Literal["x", "k"] = "k" if walk[mode] == "k" else "x"
        copy = plan_copy(spec, name, shared, threads.threads, global_mode, align, as_given=primary)
        thread = threads.m if mode == 0 else threads.n
        fragment = plan_fragment(spec, name, shared, thread, tile.value_mode[mode], slots)
        dtype = getattr(spec.operands, name).dtype
        return Operand(name, dtype, x, None if modes is None else walk[mode], shared, copy, fragment)

    a, b = operand("a", 0), operand("b", 1)
    dtype = spec.operands.c.dtype
    epilogue = plan_epilogue(tile, threads, align, dtype)
    outer, serpentine = spec.tiling.order.removeprefix("serpentine_"), spec.tiling.order.startswith("serpentine_")
    variant = "any" if modes is None else f"a{modes[0]}_b{modes[1]}_{align}B"
    return Plan(
        name=spec.name,
        about=spec.about,
        variant=variant,
        cost=cost,
        arch=spec.arch,
        dtype=dtype,
        requirements=Requirements(
            a=_requirement(a), b=_requirement(b), c=OperandRequirement("n", epilogue.vector * ITEMSIZE[dtype])
        ),
        tile=tile,
        threads=threads,
        a=a,
        b=b,
        stages=spec.shared.stages,
        program=plan_program({"a": a.copy, "b": b.copy}, spec.shared.stages, spec.tiling.block[2]),
        order=IssueOrder(outer, serpentine),  # type: ignore[arg-type]
        schedule=plan_schedule(spec),
        epilogue=epilogue,
    )


def _requirement(operand: Operand) -> OperandRequirement:
    return OperandRequirement(operand.contiguous, operand.copy.read_vector * ITEMSIZE[operand.dtype])
