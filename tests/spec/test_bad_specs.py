"""Each file in tests/bad/load is refused when it is read, with exactly the message in the .expected beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from layoutgen.errors import SpecError
from layoutgen.spec import load

ROOT = Path(__file__).resolve().parents[2]
BAD = sorted(path.relative_to(ROOT) for path in (ROOT / "tests/bad/load").glob("*.yaml"))


def test_there_are_bad_specs_and_each_expectation_has_one() -> None:
    assert len(BAD) >= 25
    assert {path.stem for path in BAD} == {path.stem for path in (ROOT / "tests/bad/load").glob("*.expected")}


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_spec(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # so that messages show the path from the repository's root
    with pytest.raises(SpecError) as caught:
        load(path)
    assert str(caught.value) == (ROOT / path).with_suffix(".expected").read_text().rstrip("\n")
    for error in caught.value.errors:
        assert error.where is not None and error.where.line is not None
        assert error.got is not None or error.fix is not None
