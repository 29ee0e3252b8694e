"""Every rule by its id, with an example whose finding is made when it is asked for."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from layoutgen import device_file, paths
from layoutgen.check.findings import Finding
from layoutgen.check.judge import check
from layoutgen.check.rule_table import BASE, EVERY, Example, Rule
from layoutgen.errors import LayoutgenError, RequestError, SpecError, meant
from layoutgen.spec import loads

__all__ = ["BASE", "RULES", "Example", "Rule", "edited", "find", "findings", "said", "to_json"]

RULES: dict[str, Rule] = {rule.id: rule for rule in EVERY}


def find(names: list[str]) -> list[Rule]:
    """The rules of these ids, all of them for none. Raises RequestError."""
    for name in names:
        if name not in RULES:
            raise RequestError("a rule is named by its id", got=name, allowed=", ".join(RULES), fix=meant(name, RULES))
    return [RULES[name] for name in dict.fromkeys(names or RULES)]


def edited(example: Example) -> str:
    """The text of the example's spec."""
    data: Any = yaml.load(_base(), yaml.BaseLoader)
    for key, value in example.edits.items():
        *path, last = key.split(".")
        inner = data
        for name in path:
            inner = inner.setdefault(name, {})
        if value is None:
            del inner[last]
        else:
            inner[last] = value if value.startswith("<") else yaml.load(value, yaml.BaseLoader)
    return str(yaml.safe_dump(data, sort_keys=False, width=10**6))


@cache
def _base() -> str:
    return paths.shipped_specs()[BASE].read_text(encoding="utf-8")


def findings(example: Example) -> tuple[Finding, ...]:
    """What check says. Raises SpecError where the spec is not read, LayoutgenError where the device is unknown."""
    return check(loads(edited(example), BASE), device_file.find(example.device), example.shape).findings


def said(rule: Rule) -> str | None:
    """What a rule's example gives, without its place; None for what only a build can tell."""
    if rule.stage == "build":
        return None
    try:
        finding = next(each for each in findings(rule.example) if each.rule == rule.id)
    except SpecError as error:
        return _text(error.errors[0].rule, error.errors[0])
    except LayoutgenError as error:
        return _text(error.rule, error)
    return _text(finding.message, finding)


def _text(first: str, rest: Finding | LayoutgenError) -> str:
    parts = {"got": rest.got, "allowed": rest.allowed, "fix": rest.fix}
    return "\n".join([first, *(f"  {name}: {text}" for name, text in parts.items() if text is not None)])


def to_json(rule: Rule) -> dict[str, Any]:
    """Plain data, for --json."""
    example = rule.example
    return {
        "id": rule.id,
        "severity": rule.severity,
        "stage": rule.stage,
        "says": rule.says,
        "why": rule.why,
        "example": {
            "spec": BASE,
            "edits": example.edits,
            "device": example.device,
            "shape": list(example.shape) if example.shape else None,
            "said": said(rule),
        },
    }
