"""The bank model against what an H200 counted, pattern by pattern, and so the simulator's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.wavefronts import KINDS, copies, patterns, predicted, units
from layoutgen.facts.banks import wavefronts
from layoutgen.sim import banks

RESULT = json.loads((Path(__file__).parents[2] / "benchmarks/results/wavefronts-h200.json").read_text())
MODELLED = [kind for kind in KINDS if not kind.startswith("cp.async")]
COPIES = [kind for kind in KINDS if kind.startswith("cp.async")]
# Where lanes' ends are drawn at random the order of arrival decides, and the model is off by one or two.
ROUGH = ("random", "from anywhere", "a permutation of lanes")


def test_the_measurement_is_of_the_patterns_that_the_script_draws() -> None:
    assert RESULT["patterns"] == patterns()
    assert RESULT["copies"] == {name: [list(pair) for pair in own] for name, own in copies().items()}
    assert set(RESULT["wavefronts"]) == set(KINDS)


@pytest.mark.parametrize("kind", MODELLED)
def test_the_model_counts_what_the_hardware_counted(kind: str) -> None:
    counted = RESULT["wavefronts"][kind]
    assert {name: predicted(kind, pattern) for name, pattern in units(kind).items()} == counted
    assert len(set(counted.values())) > 3, "the patterns tell nothing apart"


@pytest.mark.parametrize("kind", [kind for kind in MODELLED if "matrix" not in kind])
def test_the_simulator_counts_what_the_hardware_counted(kind: str) -> None:
    size, _, outputs = KINDS[kind]
    addresses = np.array(list(patterns().values())) * size
    counted = banks.wavefronts(addresses, np.ones(addresses.shape, bool), size, load=bool(outputs))
    assert dict(zip(patterns(), counted.tolist(), strict=True)) == RESULT["wavefronts"][kind]


@pytest.mark.parametrize("kind", ["cp.async.4", "cp.async.16"])
def test_both_models_count_a_copy_of_runs_as_the_hardware_did(kind: str) -> None:
    size = KINDS[kind][0]
    for name, pattern in copies().items():
        source, shared = (np.array(end) * size for end in zip(*pattern, strict=True))
        model, counted = predicted(kind, pattern), RESULT["wavefronts"][kind][name]
        assert banks.copy_wavefronts(source, shared, size) == model
        if name.startswith(ROUGH):
            assert abs(model - counted) <= 2, name
        else:
            assert model == counted, name


@pytest.mark.parametrize("kind", COPIES)
def test_the_simulator_counts_the_sectors_of_a_copy_as_the_hardware_did(kind: str) -> None:
    size, everyone = KINDS[kind][0], np.ones((1, 32), bool)
    for name, pattern in copies().items():
        source, shared = (np.array([end]) * size for end in zip(*pattern, strict=True))
        found = banks.bypassing_sectors(source, shared, everyone) if size == 16 else banks.sectors(source, everyone)
        if not (size == 16 and name in ("all from one", "pairs from one")):  # no plan's copies read one place twice
            assert found.tolist() == [RESULT["sectors"][kind][name]], name


def test_a_narrow_access_is_of_whole_words() -> None:
    assert wavefronts([2 * lane for lane in range(32)], 2, "load") == 1
    assert wavefronts(list(range(32)), 1, "store") == 1
