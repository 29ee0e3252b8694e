"""Each file in tests/bad/check loads, and check finds exactly what the .expected beside it says, and how to mend it.

Files named poor_* or hint_* are legal, with warnings or hints. A line that ends in `# mend: ...` is the one that is
wrong and what should stand there. A first line `# shape: M,N,K` or `# device: NAME` says what is checked for.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from layoutgen.check import Report, check
from layoutgen.hw.devices import DEVICES
from layoutgen.spec import Spec, load, loads
from tests.check.edits import applied

ROOT = Path(__file__).resolve().parents[2]
BAD = sorted(path.relative_to(ROOT) for path in (ROOT / "tests/bad/check").glob("*.yaml"))
LOAD = list((ROOT / "tests/bad/load").glob("*.yaml"))
MEND = re.compile(r"^( *)[^#\n]*?# mend: (.*)$", re.MULTILINE)
NO_EDIT = {"hint_alignment", "hint_memory_bound", "hint_overhang"}  # faults of the problem, not of a line
POOR = {"bank-conflicts", "uncoalesced", "shared-bound", "idle-schedulers", "narrow-loads", "narrow-copy", "odd-k",
        "k-depth", "spills", "no-overlap", "l1-bound"}  # fmt: skip
HINTS = {"waves", "overhang", "alignment", "raster", "memory-bound"}


def report(text: str, spec: Spec | None = None) -> Report:
    device, shape = (re.search(rf"^# {key}: (\S+)$", text, re.MULTILINE) for key in ("device", "shape"))
    extents = tuple(map(int, shape[1].split(","))) if shape else None
    return check(spec or loads(text), DEVICES[device[1] if device else "h200"], extents)  # type: ignore[arg-type]


def test_there_are_bad_specs_and_each_expectation_has_one() -> None:
    assert len(BAD) >= 60 and len(BAD) + len(LOAD) >= 100
    assert {path.stem for path in BAD} == {path.stem for path in (ROOT / "tests/bad/check").glob("*.expected")}


def test_every_warning_and_hint_has_a_file_of_its_own() -> None:
    found = {each.rule for path in BAD for each in report((ROOT / path).read_text()).of("warning", "hint")}
    assert found == POOR | HINTS


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_spec(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # so that findings show the path from the repository's root
    found = report(path.read_text(), load(path))
    assert "\n".join(map(str, found.findings)) == (ROOT / path).with_suffix(".expected").read_text().rstrip("\n")
    assert found.legal is path.stem.startswith(("poor_", "hint_"))


@pytest.mark.parametrize(
    "path", [path for path in BAD if path.stem not in {"several_at_once", *NO_EDIT}], ids=lambda path: path.stem
)
def test_the_finding_stands_at_or_names_the_line_that_mends_it(path: Path) -> None:
    text = (ROOT / path).read_text()
    assert len(MEND.findall(text)) == 1
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "# mend:" in each)
    before, after = report(text), report(MEND.sub(r"\1\2", text))
    key = text.splitlines()[line - 1].split(":")[0].strip()
    here = {
        finding.rule for finding in before.findings
        if finding.where.line == line or re.match(rf"write [a-z]+\.{key}: ", finding.fix)
    }  # fmt: skip
    assert here and not here & {finding.rule for finding in after.findings}
    code = {"arch", "wavefront"} if "# device:" in text else set()  # an AMD device has no code, whatever is mended
    assert {finding.rule for finding in after.of("error")} <= code


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_fix_that_is_an_edit_mends_what_was_found(path: Path) -> None:
    """And of a legal spec it leaves a legal one, of which nothing new is to be said."""
    text = (ROOT / path).read_text()
    before = report(text)
    said = [(each.rule, each.message) for each in before.findings]
    heading = "\n".join(line for line in text.splitlines() if line.startswith("# "))
    for finding in before.findings:
        mended = applied(text, finding.fix)
        if mended is not None:
            left = [(each.rule, each.message) for each in report(f"{heading}\n{mended}").findings]
            assert (finding.rule, finding.message) not in left, f"{finding.fix}\n{mended}"
            if finding.severity != "error":
                assert set(left) < set(said), f"{finding.fix}\n{mended}"


def test_most_fixes_are_edits() -> None:
    every = [(each.rule, applied((ROOT / path).read_text(), each.fix) is not None)
             for path in BAD for each in report((ROOT / path).read_text()).findings]  # fmt: skip
    edits = Counter(rule for rule, edit in every if edit)
    assert edits.total() >= 50
    assert set(edits) >= POOR | {"waves", "raster", "coverage-c", "lanes", "warps", "shared-memory", "shared-overlap"}
