"""The bank model against what an H200 counted, pattern by pattern, and so the simulator's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.wavefronts import KINDS, patterns, predicted
from layoutgen.facts.banks import wavefronts
from layoutgen.sim import banks

RESULT = json.loads((Path(__file__).parents[2] / "benchmarks/results/wavefronts-h200.json").read_text())
MODELLED = [kind for kind in KINDS if not kind.startswith("cp.async")]


def test_the_measurement_is_of_the_patterns_that_the_script_draws() -> None:
    assert RESULT["patterns"] == patterns()
    assert set(RESULT["wavefronts"]) == set(KINDS)


@pytest.mark.parametrize("kind", MODELLED)
def test_the_model_counts_what_the_hardware_counted(kind: str) -> None:
    counted = RESULT["wavefronts"][kind]
    assert {name: predicted(kind, pattern) for name, pattern in patterns().items()} == counted
    assert len(set(counted.values())) > 3, "the patterns tell nothing apart"


@pytest.mark.parametrize("kind", [kind for kind in MODELLED if "matrix" not in kind])
def test_the_simulator_counts_what_the_hardware_counted(kind: str) -> None:
    size, _, outputs = KINDS[kind]
    addresses = np.array(list(patterns().values())) * size
    counted = banks.wavefronts(addresses, np.ones(addresses.shape, bool), size, load=bool(outputs))
    assert dict(zip(patterns(), counted.tolist(), strict=True)) == RESULT["wavefronts"][kind]


def test_a_narrow_access_is_of_whole_words() -> None:
    assert wavefronts([2 * lane for lane in range(32)], 2, "load") == 1
    assert wavefronts(list(range(32)), 1, "store") == 1
