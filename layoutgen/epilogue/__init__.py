"""The steps between a sum of products and its store, as a spec chains them: one small file for each.

A new step is a new file of this package with a subclass of `Step`.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails, PydanticCustomError

from layoutgen.epilogue.base import CPP, Modes, Step, Tensor, TensorType, Value
from layoutgen.errors import meant
from layoutgen.yamltext import INVALID, describe

__all__ = ["CPP", "STEPS", "AnyStep", "Modes", "Step", "Tensor", "TensorType", "Value", "read_step"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

STEPS: dict[str, type[Step]] = {step.word: step for step in sorted(Step.__subclasses__(), key=lambda step: step.word)}
"""Every step by its word."""


def read_step(value: object) -> Step:
    """`gelu`, or `{gelu: {form: tanh}}` -> the step. Raises PydanticCustomError, the end of a sentence that begins with
    the step's number; of the type "reported" where the YAML reader has said what is wrong."""
    if isinstance(value, Step):
        return value
    word: str
    options: object = {}
    if isinstance(value, str):
        word = value
    elif isinstance(value, dict) and len(value) == 1:
        ((word, options),) = value.items()
    elif isinstance(value, dict) and value:
        found = f"{len(value)} keys: {', '.join(map(str, value))}"
        raise _refused("must be one step", found, _EXAMPLES, _apart(list(value)))
    else:
        raise _refused("must be one step", describe(value), _EXAMPLES, "give each step a line of its own, after a -")
    if word not in STEPS:
        raise _refused("must be a step that there is", repr(word), ", ".join(STEPS), meant(word, STEPS))
    kind = STEPS[word]
    if options is INVALID:
        raise _reported()
    if not isinstance(options, dict):
        allowed = ", ".join(kind.model_fields) or "none"
        raise _refused(f"must give {word} its options by name", describe(options), allowed, _by_name(kind, options))
    try:
        return kind(**options)
    except ValidationError as error:
        raise _said(kind, error.errors()[0]) from None


_EXAMPLES = "a step such as relu, or {bias: {per: row}}"


def _apart(keys: list[str]) -> str:
    """What to do about several keys in one step: options that aren't indented enough, or steps of one line."""
    first = STEPS.get(keys[0])
    if first is not None and all(key in first.model_fields for key in keys[1:]):
        return f"indent {' and '.join(keys[1:])} by two spaces more, below {keys[0]}"
    return "give each step a line of its own, after a -"


def _by_name(kind: type[Step], given: object) -> str:
    """The step with what was given as the first option that takes it."""
    for option in kind.model_fields:
        try:
            kind(**{option: given})
        except ValidationError:
            continue
        return f"write {{{kind.word}: {{{option}: {given}}}}}"
    try:
        kind()
    except ValidationError as error:  # what it can't do without
        return str(error.errors()[0]["ctx"]["fix"])
    return f"write {kind.word} alone"


def _said(kind: type[Step], detail: ErrorDetails) -> PydanticCustomError:
    """One of pydantic's findings in layoutgen's terms."""
    option, found = str(detail["loc"][0]) if detail["loc"] else "", detail["input"]
    at = f".{kind.word}.{option}" if option else ""
    if detail["type"] == "extra_forbidden":
        known = list(kind.model_fields)
        fix = meant(option, known) or f"leave {option} out"
        return _refused(f"must give {kind.word} options that it has", option, ", ".join(known) or "none", fix, at)
    if found is INVALID:
        return _reported()
    if detail["type"] == "literal_error":
        words = [word.strip("'") for word in detail["ctx"]["expected"].replace(" or ", ", ").split(", ")]
        fix = meant(str(found), words) or f"leave {option} out for the default"
        return _refused(f"must give {kind.word} a {option} that there is", describe(found), ", ".join(words), fix, at)
    said = detail["ctx"]
    return _refused(f"is {kind.word}, which {said['rule']}", said["got"], said["allowed"], said["fix"], at)


def _refused(rule: str, got: object, allowed: str, fix: str | None, at: str = "") -> PydanticCustomError:
    """at: the key of the option, below the step's."""
    about = {"rule": rule, "got": got, "allowed": allowed, "fix": fix, "at": at}
    return PydanticCustomError("layoutgen", "{rule}", about)


def _reported() -> PydanticCustomError:
    return PydanticCustomError("reported", "the YAML reader has told of it")


def _schema() -> dict[str, Any]:
    objects = []
    for word, kind in STEPS.items():
        options = kind.model_json_schema()
        options = {key: part for key, part in options.items() if key != "title"}
        one = {"type": "object", "properties": {word: options}, "required": [word], "additionalProperties": False}
        objects.append(one)
    return {"anyOf": [{"enum": [word for word, kind in STEPS.items() if _stands_alone(kind)]}, *objects]}


def _stands_alone(kind: type[Step]) -> bool:
    """Whether it needs no options."""
    try:
        kind()
    except ValidationError:
        return False
    return True


AnyStep = Annotated[
    Step, PlainValidator(read_step), PlainSerializer(lambda step: step.in_yaml()), WithJsonSchema(_schema())
]
