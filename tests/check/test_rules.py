"""The registry of rules: whatever check can say is in it, and every example provokes its rule and no other."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from layoutgen import check as package
from layoutgen.check.rules import BASE, RULES, Rule, edited, find, findings, said
from layoutgen.cli import app
from layoutgen.device_file import find as find_device
from layoutgen.errors import LayoutgenError, RequestError, SpecError
from layoutgen.spec import loads

ROOT = Path(__file__).resolve().parents[2]
RASTER = ROOT / "benchmarks/results/raster-h200.json"
# What always comes with an AMD device: layoutgen has no code for it, and its own specs have BLK_K = 16 and 32 lanes.
ON_AMD = {"arch", "wavefront", "k-depth"}
READ = [rule for rule in RULES.values() if rule.stage == "read"]
CHECKED = [rule for rule in RULES.values() if rule.stage == "check"]


def emitted() -> set[str]:
    """The ids that the source of layoutgen.check makes findings with."""
    ids = set()
    for path in Path(package.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            first = {"error": 1, "warning": 1, "hint": 1, "Finding": 0}.get(node.func.id)
            if first is None or path.name == "findings.py":
                continue
            match node.args[first]:
                case ast.Constant(str(name)):
                    ids.add(name)
                case ast.JoinedStr([ast.Constant("coverage-"), _]):
                    ids |= {"coverage-a", "coverage-b"}
                case ast.Name("level"):
                    ids |= {"lanes", "warps"}
                case other:
                    raise AssertionError(f"{path.name}:{node.lineno}: what ids is {ast.unparse(other)}?")
    return ids


def test_every_rule_that_check_and_build_can_emit_is_in_the_registry() -> None:
    assert emitted() == {rule.id for rule in RULES.values() if rule.stage != "read"}
    assert all(rule.id == name for name, rule in RULES.items())


@pytest.mark.parametrize("rule", CHECKED, ids=lambda rule: rule.id)
def test_an_example_provokes_exactly_its_rule(rule: Rule) -> None:
    found = findings(rule.example)
    device = find_device(rule.example.device)
    others = ON_AMD if device.cc is None else set()
    assert {each.rule for each in found} - others == {rule.id} - others and rule.id in {each.rule for each in found}
    assert all(each.severity == rule.severity for each in found if each.rule == rule.id)
    text = said(rule)
    assert text is not None and text.splitlines()[0] in {each.message for each in found if each.rule == rule.id}


def test_the_spec_without_edits_breaks_no_rule() -> None:
    from layoutgen.check.rules import Example

    assert findings(Example()) == () and BASE in edited(Example())


@pytest.mark.parametrize("rule", READ, ids=lambda rule: rule.id)
def test_an_example_of_what_is_not_read_has_one_error_at_its_key(rule: Rule) -> None:
    assert rule.severity == "error"
    with pytest.raises(LayoutgenError) as caught:
        findings(rule.example)
    if rule.example.edits:
        (key,) = rule.example.edits
        assert isinstance(caught.value, SpecError) and len(caught.value.errors) == 1
        assert caught.value.rule.startswith((f"{key} ", f"step 1 of the {key} "))
    else:
        assert caught.value.got == rule.example.device
    assert said(rule) is not None and caught.value.rule in str(said(rule))


def test_what_a_build_tells_has_no_finding() -> None:
    (spilled,) = (rule for rule in RULES.values() if rule.stage == "build")
    assert said(spilled) is None
    spec = loads(edited(spilled.example))  # legal, and crowded: tests/cli/test_build.py builds the like of it
    assert spec.schedule.min_blocks == 8 and "spills" in {each.rule for each in findings(spilled.example)}


def test_rules_that_pages_on_gemms_warn_of_are_there() -> None:
    assert RULES["raster"].severity == "hint" and "GROUP_M of 1" in RULES["raster"].why
    assert RULES["k-depth"].severity == "warning" and "MFMA" in RULES["k-depth"].says
    assert RULES["stages"].severity == RULES["accumulate"].severity == "error"
    assert "f16" in RULES["accumulate"].why
    assert RULES["no-overlap"].severity == RULES["l1-bound"].severity == "warning"


def test_sentences_are_sentences() -> None:
    for rule in RULES.values():
        assert rule.says.endswith(".") and rule.why.endswith(".") and rule.says[0].isupper()


def test_the_raster_s_figures_are_those_that_were_measured() -> None:
    """What its text says of a spec, and of all others, is what the benchmark's result says, rounded as it is said."""
    rows = {(each["spec"], each["size"]): each["groups"] for each in json.loads(RASTER.read_text())["rows"]}
    speeds = {case: (groups["1"]["tflops"], groups["8"]["tflops"]) for case, groups in rows.items()}
    said = re.search(
        r"at 4096, 8192 and 16384 on an H200, .* made one faster: (\w+) at (\d+), from ([\d.]+) to ([\d.]+) TFLOP/s. "
        r"Of the other eight none changed by more than ([\d.]+)%",
        RULES["raster"].why,
    )
    assert (
        said is not None and len({spec for spec, _ in rows}) == 3 and {size for _, size in rows} == {4096, 8192, 16384}
    )
    spec, size, before, after, most = said.groups()
    one = speeds.pop((spec, int(size)))
    assert (before, after) == tuple(f"{each:.1f}" for each in one)
    spread = sum(rows[spec, int(size)][group]["iqr_ms"] / rows[spec, int(size)][group]["ms"] for group in "18")
    assert one[1] / one[0] - 1 > spread  # more than the two measurements spread
    changes = [abs(after / before - 1) for before, after in speeds.values()]
    assert len(changes) == 8 and float(most) / 100 - 0.001 < max(changes) <= float(most) / 100


def test_rules_on_the_command_line() -> None:
    def run(*arguments: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, ["rules", *arguments])
        return done.exit_code, done.stdout, done.stderr

    code, out, _ = run()
    assert code == 0 and [line for line in out.splitlines() if line and line[0] != " "] == list(RULES)
    code, out, _ = run("raster", "stages")
    assert code == 0 and out.startswith("raster\n") and "\nstages\n" in out and "write shared.stages: 6" in out
    code, out, _ = run("raster", "--json")
    (entry,) = json.loads(out)
    assert entry["id"] == "raster" and entry["example"]["edits"] == {"schedule.group": "1"}
    assert entry["example"]["shape"] == [8192, 8192, 8192] and "write schedule.group: 8" in entry["example"]["said"]
    code, out, err = run("rastre")
    assert code == 2 and out == "" and "rastre" in err and "raster" in err
    with pytest.raises(RequestError):
        find(["raster", "nothing"])


def test_a_rule_is_named_once_and_a_near_miss_is_told() -> None:
    assert [rule.id for rule in find(["raster", "waves", "raster"])] == ["raster", "waves"]
    with pytest.raises(RequestError) as caught:
        find(["bank-conflict"])
    assert caught.value.fix == "did you mean bank-conflicts?"
