"""Each file in tests/bad/check loads, and check finds exactly what the .expected beside it says, and how to mend it.

A file named poor_* is legal, with warnings. A line that ends in `# mend: ...` is the one that is wrong and what should
stand there.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from layoutgen.check import Finding, check
from layoutgen.hw.devices import DEVICES
from layoutgen.spec import Spec, load, loads

ROOT = Path(__file__).resolve().parents[2]
BAD = sorted(path.relative_to(ROOT) for path in (ROOT / "tests/bad/check").glob("*.yaml"))
MEND = re.compile(r"^( *)[^#\n]*?# mend: (.*)$", re.MULTILINE)


def findings(spec: Spec) -> tuple[Finding, ...]:
    return check(spec, DEVICES["h200"]).findings


def test_there_are_bad_specs_and_each_expectation_has_one() -> None:
    assert len([path for path in BAD if not path.stem.startswith("poor_")]) >= 25
    assert {path.stem for path in BAD} == {path.stem for path in (ROOT / "tests/bad/check").glob("*.expected")}


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_spec(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # so that findings show the path from the repository's root
    report = check(load(path), DEVICES["h200"])
    assert "\n".join(map(str, report.findings)) == (ROOT / path).with_suffix(".expected").read_text().rstrip("\n")
    assert report.legal is path.stem.startswith("poor_")


@pytest.mark.parametrize("path", [path for path in BAD if path.stem != "several_at_once"], ids=lambda path: path.stem)
def test_the_finding_stands_at_the_line_that_mends_it(path: Path) -> None:
    text = (ROOT / path).read_text()
    assert len(MEND.findall(text)) == 1
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "# mend:" in each)
    found = findings(loads(text))
    assert line in [finding.where.line for finding in found]
    rules = {finding.rule for finding in found}
    after = findings(loads(MEND.sub(r"\1\2", text)))
    assert not [finding for finding in after if finding.severity == "error" or finding.rule in rules]


def applied(text: str, finding: Finding) -> str | None:
    """The text with a finding's own edit made, where the fix reads `write key: value`."""
    edit = re.fullmatch(r"write ([\w.]+): (\[.*?\]|\S*?)(, or .*)?", finding.fix)
    if edit is None or finding.where.line is None:
        return None
    lines = text.splitlines()
    value = rf"\b({edit[1].rpartition('.')[2]}: )(\[[^]]*\]|<[^>]*>|\([^ ]*\)|\w[\w:]*)"
    lines[finding.where.line - 1], count = re.subn(value, rf"\g<1>{edit[2]}", lines[finding.where.line - 1], count=1)
    assert count == 1
    return "\n".join(lines) + "\n"


def test_a_fix_that_is_an_edit_mends_what_was_found() -> None:
    mended = 0
    for path in BAD:
        text = (ROOT / path).read_text()
        for finding in findings(loads(text)):
            after = applied(text, finding)
            if after is None:
                continue
            mended += 1
            left = [(each.rule, each.where.line) for each in findings(loads(after))]
            assert (finding.rule, finding.where.line) not in left, f"{path.stem}: {finding.fix}\n{after}"
    assert mended >= 20
