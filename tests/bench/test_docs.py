"""docs/bench.md tells of every key, rival, pair of modes and number that there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from layoutgen.bench import FEWEST, MODES, REPEATS, RIVALS, interval
from layoutgen.bench.gpu import CHECKED_ROWS
from layoutgen.bench.smi import EVERY_MS
from layoutgen.plot import KINDS
from layoutgen.plot.sizes import MOST_SPACED
from tests.plot.results import measured

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "bench.md").read_text()


def keys(data: Any, within: str = "") -> Iterator[str]:
    """Every key of a result, but for the names of rivals and what `method` explains."""
    if isinstance(data, dict):
        for key, value in data.items():
            if within != "ratios":
                yield key
            if key != "method":
                yield from keys(value, key)
    elif isinstance(data, list | tuple):
        for each in data:
            yield from keys(each)


def test_every_key_of_the_json_is_told() -> None:
    _, table = PAGE.split("## The JSON")
    told = set(re.findall(r"`(\w+)`", table))
    assert set(keys(measured().to_json())) - told == set()


def test_every_choice_and_number_is_told() -> None:
    for word in (*MODES, *RIVALS):
        assert f"`{word}`" in PAGE
    for kind in KINDS:
        assert f"**{kind}**" in PAGE
    assert f"{REPEATS} rounds by default" in PAGE and f"below {FEWEST} rounds" in PAGE
    assert f"first and last {CHECKED_ROWS} rows and {CHECKED_ROWS} spread" in PAGE
    assert f"Up to {MOST_SPACED} sizes" in PAGE and EVERY_MS == 100 and "ten times a second" in PAGE
    low, high = interval(list(range(1, REPEATS + 1))) or (0, 0)
    assert f"of {REPEATS} sorted ratios, the {low}th and the {high}st" in PAGE
