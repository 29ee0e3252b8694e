"""`layoutgen schema`: what editors accept is what the loader accepts, as far as YAML's types can tell."""

from __future__ import annotations

import json
import keyword
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from layoutgen.cli import app
from layoutgen.schema import json_schema
from layoutgen.spec import Spec, loads
from tests.check.edits import edited

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted((ROOT / "specs").rglob("*.yaml"))
GOOD = SHIPPED + sorted((ROOT / "tests/bad/check").glob("*.yaml"))
BAD = sorted((ROOT / "tests/bad/load").glob("*.yaml"))
VALIDATOR = Draft202012Validator(json_schema())
# What a schema of values can't tell, and why.
UNTOLD = {
    "clamp_out_of_order": "a schema does not compare numbers",
    "duplicate_key": "a YAML reader keeps the last one",
    "huge_stride": "a pattern does not compare numbers",
    "incongruent_layout": "a pattern does not match brackets",
    "name_of_another_file": "the schema doesn't know the file's name",
    "spread_backwards": "a schema does not compare numbers",
    "spread_of_nothing": "a schema does not compare numbers",
    "three_modes": "a pattern does not count modes within brackets",
    "unclosed_layout": "a pattern does not match brackets",
    "zero_extent": "a pattern that told extents from strides would refuse nested layouts",
}


def as_editors_read(path: Path) -> Any:
    return yaml.safe_load(path.read_bytes())


def test_it_is_a_schema_and_the_command_prints_it() -> None:
    Draft202012Validator.check_schema(json_schema())
    printed = json.loads(CliRunner().invoke(app, ["schema"]).stdout)
    assert printed == json_schema()
    assert printed["title"] and printed["$id"] and printed["$schema"].endswith("2020-12/schema")


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_what_loads_validates(path: Path) -> None:
    assert [str(error) for error in VALIDATOR.iter_errors(as_editors_read(path))] == []


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_most_of_what_is_refused_does_not(path: Path) -> None:
    try:
        data = as_editors_read(path)
    except (yaml.YAMLError, UnicodeDecodeError):
        assert path.stem not in UNTOLD  # no YAML at all: an editor tells without a schema
        return
    assert VALIDATOR.is_valid(data) is (path.stem in UNTOLD), [str(e) for e in VALIDATOR.iter_errors(data)]


def test_few_are_untold() -> None:
    assert set(UNTOLD) <= {path.stem for path in BAD} and len(UNTOLD) <= len(BAD) / 4


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tiling.block", "<128, 128, 16>"), ("tiling.block", '["128", 128, "16"]'), ("tiling.lanes", "32:1"),
        ("tiling.lanes", "( 8, 4 ):( 4, 1 )"), ("tiling.values", "<(4,2):(1,16), 4>"), ("tiling.values", "[8, 4:1]"),
        ("tiling.values", '["(4,2)", 4]'), ("shared.stages", '"2"'), ("about", "12"), ("about", "yes"),
        ("shared.stages", "0"), ("shared.stages", "1"), ("copies.spread", "[0, 4]"), ("copies.spread", '["1", 7]'),
        ("copies.spread", "<1, 7>"),
    ],
)  # fmt: skip
def test_other_ways_to_write_a_value_validate(key: str, value: str) -> None:
    text = edited(SHIPPED[0].read_text(), key, value)
    loads(text)
    assert VALIDATOR.is_valid(yaml.safe_load(text.replace("'", "")))  # as numbers where they are not quoted
    assert VALIDATOR.is_valid(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tiling.block", [128, 128]), ("tiling.block", "128"), ("tiling.lanes", "8x4"),
        ("tiling.lanes", "(8,4):(-4,1)"), ("tiling.values", [8]), ("tiling.values", "8"), ("shared.stages", -1),
        ("shared.stages", 1.5), ("shared.a", None), ("copies.spread", [1]), ("copies.spread", [-1, 2]),
        ("copies.spread", 4), ("copies.spread", "0 .. 4"),
        ("operands.accumulate", "f16"), ("copies.a", {}), ("schedule.groups", 8), ("name", "for"), ("about", "a\\"),
    ],
)  # fmt: skip
def test_what_the_loader_refuses_does_not(key: str, value: object) -> None:
    data = as_editors_read(ROOT / "specs/warptile_128x128.yaml")
    inner = data
    *path, last = key.split(".")
    for name in path:
        inner = inner[name]
    inner[last] = value
    assert not VALIDATOR.is_valid(data)


def keys(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        own = set(schema["properties"]) if isinstance(schema.get("properties"), dict) else set()
        return own.union(*map(keys, schema.values()))
    return set().union(*map(keys, schema)) if isinstance(schema, list) else set()


def test_every_key_is_described_with_an_example_that_validates() -> None:
    """Hovering over a key shows its description; the block's is what an engineer looks up first."""
    schema = json_schema()
    assert keys(schema) >= {*Spec.model_fields, "block", "warp", "lanes", "stages", "atom", "min_blocks", "accumulate"}
    models = [schema, *schema["$defs"].values()]
    assert all(model.get("description") for model in models)
    assert "(M, N, K)" in schema["$defs"]["Tiling"]["properties"]["block"]["description"]
    for model in models:
        for name, part in model["properties"].items():
            for example in part.get("examples", ()):
                check = Draft202012Validator({**part, "$defs": schema["$defs"]})
                assert check.is_valid(example), (name, example)


def words(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        own = {each for each in schema.get("enum", ()) if isinstance(each, str)}
        return own.union(*map(words, schema.values()))
    return set().union(*map(words, schema)) if isinstance(schema, list) else set()


def test_the_page_on_specs_names_every_key_and_word() -> None:
    page = (ROOT / "docs/spec.md").read_text()
    named = {part for span in re.findall(r"`([^`\n]+)`", page) for part in (span, *re.findall(r"\w+", span))}
    assert keys(json_schema()) - named == set()
    known = (
        words(json_schema()) - set(keyword.kwlist) - {"0", "f32"}
    )  # no name is a keyword; 0 stages; of dtypes there is one
    assert {each for each in known if not each.startswith("sm_")} - named == set()
    assert {"ldg.sts", "ldg", "serpentine_m"} <= known
