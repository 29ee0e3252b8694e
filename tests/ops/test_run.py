"""Requirements, the grid, the parameters, and the estimate of what a simulation takes."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from layoutgen import build, run, sim
from layoutgen.errors import OperandError
from layoutgen.plan import Plan
from layoutgen.plan.model import OperandRequirement
from layoutgen.problem import Problem, View
from tests.ops.operands import SPECS, plans

ROOT = Path(__file__).resolve().parents[2]


def contiguous(rows: int, columns: int, address: int = 0) -> View:
    return View(address, (rows, columns), (columns, 1))


def problem(m: int, n: int, k: int, alpha: float = 1.0, beta: float = 0.0) -> Problem:
    """Everything k- or n-contiguous as far as strides tell, at addresses of 256 bytes each."""
    b = View(256, (n, k), (1, n))
    return Problem(m, n, k, contiguous(m, k), b, contiguous(m, n, 512), contiguous(m, n, 768), alpha, beta)


@pytest.mark.parametrize("change", ["address", "length", "pitch", "stride"])
def test_every_part_of_a_requirement_counts(change: str) -> None:
    view = {
        "address": View(4, (8, 8), (8, 1)), "length": View(0, (8, 7), (8, 1)), "pitch": View(0, (8, 8), (9, 1)),
        "stride": View(0, (8, 8), (8, 2)),
    }[change]  # fmt: skip
    wide, narrow = OperandRequirement("k", 16), OperandRequirement("k", 4)
    assert View(0, (8, 8), (8, 1)).meets(wide, ("m", "k"), 4)
    assert not view.meets(wide, ("m", "k"), 4)
    assert view.meets(narrow, ("m", "k"), 4) == (change != "stride")
    assert view.meets(OperandRequirement(None, 4), ("m", "k"), 4)
    assert not View(0, (8, 8), (8, 1)).meets(OperandRequirement("m", 4), ("m", "k"), 4)
    assert View(0, (8, 8), (1, 8)).meets(OperandRequirement("m", 16), ("m", "k"), 4)


def test_c_counts_only_where_it_is_read() -> None:
    plan = plans("warptile_128x128")[0]
    odd = View(4, (8, 8), (9, 1))
    for beta, expected in ((0.0, True), (1.0, False)):
        base = problem(8, 8, 8, beta=beta)
        assert run.fits(plan, base)
        assert run.fits(plan, Problem(8, 8, 8, base.a, base.b, odd, base.d, 1.0, beta)) == expected
    assert not run.fits(plan, Problem(8, 8, 8, base.a, base.b, base.c, odd, 1.0, 0.0))


def test_the_first_variant_that_fits_is_chosen_and_the_last_takes_any_strides() -> None:
    for name in SPECS:
        every = plans(name)
        for index in range(len(every)):
            fitting = [p for p in every[: index + 1] if run.fits(p, problem(8, 8, 8))]
            assert not fitting or run.choose(every[: index + 1], problem(8, 8, 8)) == fitting[0]
        assert fitting
        strided = View(4, (8, 8), (17, 2))
        assert run.choose(every, Problem(8, 8, 8, strided, strided, strided, contiguous(8, 8), 1.0, 0.0)) == every[-1]


@pytest.mark.parametrize("name", SPECS)
def test_every_variant_takes_contiguous_outputs_and_can_be_reached(name: str) -> None:
    """A variant that no operands choose would be dead weight."""
    chosen = set()
    strides = ((64, 1), (1, 64), (64, 2))
    for a_strides, b_strides, *at in itertools.product(strides, strides, (0, 4), (0, 4), (0, 4)):
        a, b, d = (
            View(address, (32, 32), stride) for address, stride in zip(at, (a_strides, b_strides, (32, 1)), strict=True)
        )
        chosen.add(run.choose(plans(name), Problem(32, 32, 32, a, b, d, d, 1.0, 0.0)).variant)
    assert chosen == {plan.variant for plan in plans(name)}
    assert len(chosen) == 9 or name.startswith("ladder_0")  # where single words move, there is no narrower access


def test_the_kernels_parameters() -> None:
    call = Problem(
        5, 6, 7, View(16, (5, 7), (2**33, 1)), View(32, (6, 7), (1, 2**34)), View(48, (5, 6), (2**35, 1)),
        View(64, (5, 6), (2**36, 1)), 0.5, -2.0,
    )  # fmt: skip
    assert call.params() == (5, 6, 7, 16, 2**33, 1, 32, 1, 2**34, 48, 2**35, 64, 2**36, 0.5, -2.0)
    assert problem(5, 6, 7, alpha=0.0).params()[2] == 0  # neither A nor B is read
    assert len(call.params()) == len(run.source(plans("warptile_128x128")[0]).launch.params)


def simulated(plan: Plan, m: int, n: int, k: int) -> tuple[sim.Report, np.ndarray]:
    """Of ones, in the modes that the plan asks for."""
    memory, need = sim.GlobalMemory(), plan.requirements
    a, b, d = np.ones((m, k), np.float32), np.ones((k, n), np.float32), np.zeros((m, n), np.float32)
    a_at, b_at, d_at = memory.add(a), memory.add(b), memory.add(d, writable=True)
    at_d = contiguous(m, n, d_at)
    at_a = View(a_at, (m, k), (1, m) if need.a.contiguous == "m" else (k, 1))
    at_b = View(b_at, (n, k), (1, n) if need.b.contiguous == "n" else (k, 1))
    call = Problem(m, n, k, at_a, at_b, at_d, at_d, 1.0, 0.0)
    return run.simulate(plan, call, memory), d


@pytest.mark.parametrize("name", SPECS)
def test_the_estimate_counts_the_instructions_that_run(name: str) -> None:
    """To a factor of two."""
    plan = plans(name)[0]
    for m, n, k in ((128, 256, 64), (128, 128, 256), (256, 256, 0)):
        report, d = simulated(plan, m, n, k)
        assert (d == k).all()
        executed = sum(report.executions) / (run.grid(plan, m, n) * plan.threads.threads / 32)
        assert 0.5 < executed / run.estimate_steps(plan, k) < 2


def test_the_estimate_is_within_a_factor_of_two_of_what_was_measured() -> None:
    rows = json.loads((ROOT / "benchmarks/results/simulator.json").read_text(encoding="utf-8"))["rows"]
    assert rows
    for row in rows:
        each = next(each for each in plans(row["spec"]) if each.variant == row["variant"])
        assert 0.5 < run.estimate_seconds(each, *row["shape"]) / row["measured"] < 2, row


def test_the_estimate_grows_with_the_work() -> None:
    plan = plans("warptile_128x128")[0]
    base = run.estimate_seconds(plan, 4096, 4096, 4096)
    assert run.estimate_seconds(plan, 8192, 4096, 4096) == pytest.approx(2 * base, rel=0.01)
    assert run.estimate_seconds(plan, 4096, 4096, 8192) == pytest.approx(2 * base, rel=0.02)
    assert run.estimate_seconds(plan, 0, 4096, 4096) < 0.1
    # Blocks that fill a batch share its instructions' cost: sixteen take far less than sixteen times as long as one.
    assert run.estimate_seconds(plan, 512, 512, 4096) < 8 * run.estimate_seconds(plan, 128, 128, 4096)


def test_only_the_simulator_refuses_what_takes_it_long() -> None:
    plan = plans("warptile_128x128")[0]
    run.admit(plan, 8192, 8192, 8192, simulated=False)
    with pytest.raises(OperandError, match="simulator"):
        run.admit(plan, 8192, 8192, 8192, simulated=True)


def test_tiles_lie_on_the_grids_first_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    grids = []
    monkeypatch.setattr("layoutgen.sim.launch", lambda *_, grid, **__: grids.append(grid))
    plan = plans("warptile_128x128")[0]
    for m, n in ((70000 * 128, 1), (1, 70000 * 128 - 5)):
        run.simulate(plan, problem(m, n, 1), sim.GlobalMemory())
    assert grids == [(70000, 1, 1)] * 2


def test_the_simulators_code_is_that_of_this_machine_or_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plans("warptile_128x128")[0]
    for here, expected in ((None, "sm_90a"), ("sm_86", "sm_86")):
        monkeypatch.setattr(build, "current_arch", lambda here=here: here)
        assert run.target_arch(plan) == expected


@pytest.mark.parametrize("name", ["mma_bf16_128x256x32", "tf32x3_128x128x56"])
def test_the_estimate_counts_what_atoms_multiply(name: str) -> None:
    """A product by a tensor core takes the simulator tens of nanoseconds, six of split numbers six times as long."""
    plan = plans(name)[0]
    more = run.estimate_seconds(plan, 1024, 1024, 1024) - run.estimate_seconds(plan, 1024, 1024, 0)
    assert 1e-8 < more / 1024**3 / plan.products < 1e-7
    with pytest.raises(OperandError, match="simulator"):
        run.admit(plan, 4096, 4096, 4096, simulated=True)
