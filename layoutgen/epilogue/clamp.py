"""clamp: x within bounds; a NaN stays one."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, NoReturn, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from layoutgen.epilogue.base import MAX_NAN, MIN_NAN, Step, Value
from layoutgen.yamltext import describe

if TYPE_CHECKING:
    import torch

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MOST, _LEAST = 2.0**127, 2.0**-149  # what f32 holds, to a factor of two; below, 0


def _number(value: object) -> float:
    if not isinstance(value, str) or not _NUMBER.fullmatch(value.strip()) or abs(float(value)) > _MOST:
        allowed = f"a decimal number, up to {_MOST:.1e} in size"
        _refuse("must have numbers as its bounds", describe(value), allowed, "leave a bound out where there is none")
    return float(value)


def _refuse(rule: str, got: str, allowed: str, fix: str) -> NoReturn:
    raise PydanticCustomError("layoutgen", "{rule}", {"rule": rule, "got": got, "allowed": allowed, "fix": fix})


def _exact(bound: float) -> str:
    """A bound as short as it can be without another number."""
    return f"{bound:g}" if float(f"{bound:g}") == bound else repr(bound)


_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": f"^ *{_NUMBER.pattern} *$"}]}
Bound = Annotated[float, PlainValidator(_number), WithJsonSchema(_SCHEMA)]


class Clamp(Step):
    """min(max(x, least), most); with one bound alone, half of it."""

    word = "clamp"
    instructions = 2
    min: Bound | None = Field(default=None, examples=["0"])
    """The least that x may be."""
    max: Bound | None = Field(default=None, examples=["6"])
    """The most that x may be."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.min is None and self.max is None:
            _refuse("must have a bound", "none", "min, max or both", "write {clamp: {min: 0, max: 6}}")
        if self.min is not None and self.max is not None and self.min > self.max:
            fix = f"write {{clamp: {{min: {_exact(self.max)}, max: {_exact(self.min)}}}}}"
            found = f"min {_exact(self.min)}, max {_exact(self.max)}"
            _refuse("must have bounds in order", found, "min <= max", fix)
        return self

    @property
    def _bounds(self) -> list[float]:
        return [bound for bound in (self.min, self.max) if bound is not None]

    def computes_in(self, value: Value, stored: str) -> Value:
        """Integers stay so where the bounds are some, of 32 bits."""
        whole = all(bound.is_integer() and -(2**31) <= bound < 2**31 for bound in self._bounds)
        return value if whole else super().computes_in(value, stored)

    def about(self) -> str:
        low, high = (math.inf if bound is None else bound for bound in (self.min, self.max))
        return f"clamp to {'' if low == math.inf else _exact(low)} .. {'' if high == math.inf else _exact(high)}"

    def code(self, value: Value) -> str:
        text = "{x}"
        for word, compare, bound in (("max", "<", self.min), ("min", ">", self.max)):
            if bound is None:
                continue
            if value == "f32":
                text = f"{word}_nan({text}, {bound if abs(bound) >= _LEAST else 0.0!r}f)"
            else:
                limit = f"{int(bound)}" if value == "s32" else repr(bound)
                limit = "(-2147483647 - 1)" if limit == "-2147483648" else limit
                text = f"{{x}} {compare} {limit} ? {limit} : {text}"
        return f"{{x}} = {text};"

    def functions(self, value: Value) -> tuple[str, ...]:
        used = ((MAX_NAN, self.min), (MIN_NAN, self.max))
        return tuple(text for text, bound in used if bound is not None) if value == "f32" else ()

    def in_torch(self, x: torch.Tensor, t: torch.Tensor | None) -> torch.Tensor:
        return x.clamp(self.min, self.max)
