"""benchmarks/order.py: which orders it tries, and how it reads an FFMA's registers."""

from __future__ import annotations

import doctest
from math import prod

import pytest

import benchmarks.order
from benchmarks.order import Counts, candidates, count
from layoutgen import build, paths, spec
from layoutgen.emit import emit
from layoutgen.plan import plan
from tests.kernels.small import small


def test_its_examples() -> None:
    assert doctest.testmod(benchmarks.order).failed == 0


@pytest.mark.parametrize("name", ["sgemm_128x256x16", "ladder_04_thread_tile_1d", "ladder_01_naive"])
def test_each_order_is_tried_once_and_the_specs_own_first(name: str) -> None:
    base = spec.load(paths.find_spec(name))
    found = candidates(base)
    assert next(iter(found)) == str(base.tiling.order)
    orders = [plan(each)[0].order.values() for each in found.values()]
    assert len(set(orders)) == len(orders)
    for text, each in found.items():
        assert spec.loads(each.to_yaml()).tiling.order == each.tiling.order and str(each.tiling.order) == text
    assert name != "sgemm_128x256x16" or {"m", "n", "serpentine_n", "(2,16,4):(16,1,32)"} <= set(found)


def ffma(*operands: str) -> tuple[str, str]:
    return "FFMA", ", ".join(operands)


@pytest.mark.parametrize(
    ("loop", "reused", "conflicts"),
    [
        ([ffma("R1", "R2", "R4", "R6")], 0, 1),
        ([ffma("R1", "R2", "R4", "R7")], 0, 1),
        ([ffma("R1", "R2", "R2", "R7")], 0, 0),  # one register twice
        ([ffma("R1", "R2", "R5", "UR6")], 0, 0),
        ([ffma("R9", "R2.reuse", "R2", "R9"), ffma("R7", "R2", "R4", "R7")], 1, 0),
        ([ffma("R9", "R2", "R2.reuse", "R9"), ffma("R7", "R2", "R4", "R7")], 0, 1),  # kept in another place
        ([ffma("R9", "R2.reuse", "R2", "R9"), ("IADD3", "R1, R3, R4, RZ"), ffma("R7", "R2", "R4", "R7")], 0, 1),
        ([ffma("R9", "R2", "R2", "R9"), ffma("R7", "R2", "R4", "R7")], 0, 1),  # not kept
    ],
)
def test_an_ffma_that_reads_two_registers_of_one_bank(loop: list[tuple[str, str]], reused: int, conflicts: int) -> None:
    ffmas = sum(mnemonic == "FFMA" for mnemonic, _ in loop)
    assert count(tuple(loop)) == Counts(len(loop), ffmas, reused, conflicts)


def test_the_ffmas_of_a_compiled_loop() -> None:
    (each, *_) = small("order_serpentine")
    source = emit(each)
    (artifact,) = build.build_many([build.Job(source.text, each.name, "sm_90a")])
    found = count(build.loop_instructions(artifact.cubin, each.name))
    assert (
        found.ffma == prod(layout.size for layout in each.tile.value_mode) * each.tile.block[2]
        and found.reused > found.ffma / 2
    )
    assert found.instructions == build.loop_counts(artifact.cubin, each.name).total()
