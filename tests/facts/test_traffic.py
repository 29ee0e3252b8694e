"""The traffic that the plan's layouts predict is what the simulated kernel's PTX makes, access by access."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from layoutgen import run, sim
from layoutgen.epilogue import Tensor
from layoutgen.facts import launch_traffic
from layoutgen.plan import Plan
from layoutgen.plan.storage import ITEMSIZE
from layoutgen.problem import Problem, View, of_modes
from tests.kernels.test_schedules import simulated as plans_to_simulate

# One whole tile of every spec in m and n and three k-tiles; ragged in m, n and k; nothing to sum; a single row.
SHAPES = ((256, 256, 48, 0.0), (131, 70, 37, -0.5), (64, 33, 0, 0.0), (1, 129, 17, 2.0))


def simulated(plan: Plan, m: int, n: int, k: int, beta: float) -> tuple[Problem, dict[str, sim.Traffic]]:
    """A problem on rows of odd pitch where the plan allows that, else of whole vectors, and what its launch counts."""
    memory = sim.GlobalMemory()
    need = plan.requirements

    def view(name: str, extents: tuple[int, int], contiguous: str | None, modes: str) -> View:
        run_length, rows = extents if contiguous == modes[0] else extents[::-1]
        itemsize = ITEMSIZE[{"a": plan.a.dtype, "b": plan.b.dtype}.get(name, plan.dtype)]
        run = max(getattr(need, name if name != "d" else "c").align // itemsize, 1)
        pitch = -(-max(run_length, 1) // max(run, 4)) * max(run, 4) + (run if run > 1 else 3)
        cells = np.zeros((max(rows, 1), pitch), f"u{itemsize}")
        address = memory.add(cells, writable=name == "d", name=name)
        return View(address, extents, (1, pitch) if contiguous == modes[0] else (pitch, 1))

    def fused(tensor: Tensor) -> View:
        pitch = n // 16 * 16 + 32
        extents = (m if tensor.modes == "mn" else 1, pitch if "n" in tensor.modes else max(m, 1))
        cells = np.zeros(extents, f"u{ITEMSIZE[tensor.dtype]}")
        address = memory.add(cells, writable=tensor.written, name=tensor.name)
        return of_modes(tensor, address, m, n, pitch)

    beta = 0 if not plan.epilogue.reads_c else round(beta) if plan.scalar == "i32" else beta
    problem = Problem(
        m, n, k, view("a", (m, k), need.a.contiguous, "mk"), view("b", (n, k), need.b.contiguous, "nk"),
        view("c", (m, n), "n", "mn"), view("d", (m, n), "n", "mn"), 1.0,
        beta, tuple(map(fused, plan.epilogue.tensors)),
    )  # fmt: skip
    return problem, run.traffic_by_access(plan, run.simulate(plan, problem, memory, sim.Options(count=True)))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape[:3])))
@pytest.mark.parametrize("plan", plans_to_simulate(), ids=lambda plan: f"{plan.name}-{plan.variant}")
def test_predicted_traffic_is_what_the_simulator_counts(plan: Plan, shape: tuple[int, int, int, float]) -> None:
    m, n, k, beta = shape
    if plan.tile.block[:2] == (32, 64):  # a small spec, for which as many tiles are a smaller problem
        m, n = -(-m // 4), -(-n // 2)
    need = plan.requirements
    of_a, of_b, of_c = (ITEMSIZE[each] for each in (plan.a.dtype, plan.b.dtype, plan.dtype))
    for extent, operand, mode, itemsize in (
        (k, need.a, "k", of_a),
        (m, need.a, "m", of_a),
        (n, need.b, "n", of_b),
        (k, need.b, "k", of_b),
        (n, need.c, "n", of_c),
    ):
        if operand.contiguous == mode and extent % max(operand.align // itemsize, 1):
            unit = 16 // min(of_a, of_c)
            m, n, k = (-(-e // unit) * unit for e in (m, n, k))  # what this variant may be called with
            break
    problem, counted = simulated(plan, m, n, k, beta)
    predicted = launch_traffic(plan, problem)
    # Into swizzled memory the facts count the fewest wavefronts that cp.async can take, the simulator an estimate.
    swizzled = {f"copy_{each.name}" for each in plan.shared_operands if each.shared.swizzle.bits}

    def figures(found: Mapping[str, Any]) -> dict[str, dict[str, int]]:
        shown = {name: asdict(traffic) for name, traffic in found.items() if traffic.requests}
        return {name: {**each, "wavefronts": 0} if name in swizzled else each for name, each in shown.items()}

    assert figures(predicted) == figures(counted)
