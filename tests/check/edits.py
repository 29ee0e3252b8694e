"""A finding's own edit, made in a spec's text: what `write key: value` asks the user to do."""

from __future__ import annotations

import re
from typing import Any

import yaml

from layoutgen.yamltext import Document

EDIT = re.compile(r"write ([a-z_.]+): (.*)")


def edited(text: str, key: str, value: str) -> str:
    """The text with a dotted key set to what `value` reads as; keys around it that are missing are added."""
    data: Any = Document(text, "<text>").root  # as layoutgen reads it, layouts in braces without quotes and all
    *path, last = key.split(".")
    inner = data
    for name in path:
        inner = inner.setdefault(name, {"atom": "cp.async"} if name in "ab" else {})
    inner[last] = value if value.startswith("<") else yaml.load(value, yaml.BaseLoader)
    return yaml.safe_dump(data, sort_keys=False, width=10**6)


def applied(text: str, fix: str) -> str | None:
    """The text after a fix that is an edit; None for one in words. Of `write x: 1, or ...` the first way."""
    found = EDIT.fullmatch(fix)
    return None if found is None else edited(text, found[1], re.split(r", or ", found[2])[0])
