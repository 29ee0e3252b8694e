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
from layoutgen.yamltext import describe

__all__ = ["CPP", "STEPS", "AnyStep", "Modes", "Step", "Tensor", "TensorType", "Value", "read_step"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

STEPS: dict[str, type[Step]] = {step.word: step for step in sorted(Step.__subclasses__(), key=lambda step: step.word)}
"""Every step by its word."""


def read_step(value: object) -> Step:
    """`gelu`, or `{gelu: {form: tanh}}` -> the step. Raises PydanticCustomError, the end of a sentence."""
    if isinstance(value, Step):
        return value
    example = "a step such as relu, or {bias: {per: row}}"
    word: str
    options: object = {}
    if isinstance(value, str):
        word = value
    elif isinstance(value, dict) and len(value) == 1:
        ((word, options),) = value.items()
    else:
        found = f"{len(value)} keys: {', '.join(map(str, value))}" if isinstance(value, dict) else describe(value)
        raise _refused("is one step of an epilogue", found, example, "give each step a line of its own, after a -")
    if word not in STEPS:
        raise _refused("is a step of an epilogue", repr(word), ", ".join(STEPS), meant(word, STEPS))
    kind = STEPS[word]
    if not isinstance(options, dict):
        allowed = ", ".join(kind.model_fields) or "none"
        raise _refused(f"gives {word} options by name", describe(options), allowed, f"write {_example(kind)}")
    try:
        return kind(**options)
    except ValidationError as error:
        raise _said(kind, error.errors()[0]) from None


def _example(kind: type[Step]) -> str:
    name, field = next(iter(kind.model_fields.items()), ("", None))
    if field is None:
        return kind.word
    return f"{{{kind.word}: {{{name}: {(field.examples or [field.default])[0]}}}}}"


def _said(kind: type[Step], detail: ErrorDetails) -> PydanticCustomError:
    """One of pydantic's findings in layoutgen's terms."""
    option, found = str(detail["loc"][0]) if detail["loc"] else "", detail["input"]
    if detail["type"] == "extra_forbidden":
        known = list(kind.model_fields)
        fix = meant(option, known) or f"leave {option} out"
        return _refused(f"gives {kind.word} an option that it has", option, ", ".join(known) or "none", fix)
    if detail["type"] == "literal_error":
        words = [word.strip("'") for word in detail["ctx"]["expected"].replace(" or ", ", ").split(", ")]
        fix = meant(str(found), words) or f"leave {option} out for the default"
        return _refused(f"gives {kind.word} a {option} that there is", describe(found), ", ".join(words), fix)
    said = detail["ctx"]
    return _refused(f"is {kind.word}, which {said['rule']}", said["got"], said["allowed"], said["fix"])


def _refused(rule: str, got: object, allowed: str, fix: str | None) -> PydanticCustomError:
    return PydanticCustomError("layoutgen", "{rule}", {"rule": rule, "got": got, "allowed": allowed, "fix": fix})


def _schema() -> dict[str, Any]:
    objects = []
    for word, kind in STEPS.items():
        options = kind.model_json_schema()
        options = {key: part for key, part in options.items() if key != "title"}
        one = {"type": "object", "properties": {word: options}, "required": [word], "additionalProperties": False}
        objects.append(one)
    return {"anyOf": [{"enum": [word for word in STEPS if word != "clamp"]}, *objects]}


AnyStep = Annotated[
    Step, PlainValidator(read_step), PlainSerializer(lambda step: step.in_yaml()), WithJsonSchema(_schema())
]
