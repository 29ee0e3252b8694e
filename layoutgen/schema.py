"""Spec -> its JSON schema, for editors that check and complete YAML as one types.

An editor reads YAML's own types, layoutgen reads every scalar as text: the schema takes a number where the text is one.
What a text says is for the loader: brackets that close, extents that multiply to 32, a name that is the file's.
"""

from __future__ import annotations

from typing import Any

import yaml

from layoutgen import paths
from layoutgen.spec import Spec

DIALECT = "https://json-schema.org/draft/2020-12/schema"
EXAMPLE = "warptile_128x128"


def json_schema() -> dict[str, Any]:
    """The schema of a spec's file, as JSON data."""
    made: dict[str, Any] = _cleaned(Spec.model_json_schema())
    example = yaml.safe_load(paths.shipped_specs()[EXAMPLE].read_text(encoding="utf-8"))
    head = {"$schema": DIALECT, "$id": "urn:layoutgen:spec", "title": "layoutgen spec"}
    return {**head, **{key: part for key, part in made.items() if key not in head}, "examples": [example]}


def _cleaned(part: Any) -> Any:
    """Without null, which the loader refuses; a key that may be missing has no value then. Examples become data."""
    if isinstance(part, list):
        return [_cleaned(each) for each in part]
    if not isinstance(part, dict):
        return part
    cleaned = {key: _cleaned(each) for key, each in part.items() if not (key == "default" and each is None)}
    if isinstance(examples := part.get("examples"), list):
        cleaned["examples"] = [yaml.safe_load(each) for each in examples if "..." not in each]
    if isinstance(choices := cleaned.pop("anyOf", None), list):
        choices = [each for each in choices if each != {"type": "null"}]
        cleaned |= choices[0] if len(choices) == 1 else {"anyOf": choices}
    return cleaned
