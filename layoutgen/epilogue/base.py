"""What a step of an epilogue is: a value of C after another, between the sum of products and the store.

Each step is one file of this package: how YAML spells it, the tensor that it needs, its C++ and the same in torch. The
package finds them by itself; nothing else knows their names.
"""

from __future__ import annotations

import keyword
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from layoutgen.spec_fields import is_name
from layoutgen.yamltext import describe

if TYPE_CHECKING:
    import torch

Value = Literal["f32", "f64", "s32"]
"""A type in which a chain computes: that of the sums, until the first step of floats after integers."""
TensorType = Literal["f32", "f16", "bf16", "f64", "s32"]
Modes = Literal["", "m", "n", "mn"]
CPP: dict[Value, str] = {"f32": "float", "f64": "double", "s32": "int32_t"}

# What a call or a kernel names otherwise (read_stage, tile_m, e_bias ..), and what the schemas of torch's operators
# read as something else.
TAKEN = frozenset((
    "a", "b", "c", "d", "alpha", "beta", "out", "self", "int", "float", "bool", "str", "number", "flag", "partial",
    "stage", "tile", "tiles", "e", "g", "read",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor that a step reads or, where it is written, whose rows' maxima it leaves.

    name: the operator's keyword. modes: those of C that it has: one element for all, one for each row (M) or column
    (N), or one for each (M, N).
    """

    name: str
    modes: Modes
    dtype: TensorType
    written: bool = False


def _keyword(value: object) -> str:
    if not isinstance(value, str) or not is_name(value) or value in TAKEN:
        raise PydanticCustomError("layoutgen", "{rule}", {
            "rule": "must have a name that is free for a keyword", "got": describe(value),
            "fix": "give it another name",
            "allowed": "a lower-case letter, then lower-case letters, digits and _, up to 64; "
            f"not a keyword of Python, nor {', '.join(sorted(TAKEN))}",
        })  # fmt: skip
    return value


Keyword = Annotated[
    str,
    PlainValidator(_keyword),
    WithJsonSchema(
        {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$", "not": {"enum": sorted([*TAKEN, *keyword.kwlist])}}
    ),
]


class Step(BaseModel, ABC):
    """One step: x -> x, for each value of C. A subclass's fields are its options in YAML; all have defaults but those
    that it can't do without."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
    word: ClassVar[str]
    """What YAML calls it."""
    instructions: ClassVar[int]
    """About how many it takes for a value in f32."""

    def computes_in(self, value: Value, stored: str) -> Value:
        """The type in which it computes, after one that left `value`, where C is `stored` in such a type: f32 for s32,
        unless it is exact in integers."""
        return "f32" if value == "s32" else value

    def tensor(self, value: Value, stored: str) -> Tensor | None:
        """What it needs beside x, where it computes in `value` and C is `stored` in such a type."""
        return None

    def about(self) -> str:
        """A few words for a comment."""
        return self.word

    @abstractmethod
    def code(self, value: Value) -> str:
        """A C++ statement on {x}, of type `value` (what computes_in said), and on {t}, the tensor's element as `value`;
        where the tensor is written, as `bits` of what it holds so far."""

    def functions(self, value: Value) -> tuple[str, ...]:
        """The device functions that `code` calls, each whole; alike ones of several steps are emitted once."""
        return ()

    @abstractmethod
    def in_torch(self, x: torch.Tensor, t: torch.Tensor | None) -> torch.Tensor:
        """The same by torch, of any dtype: float64 for a reference, C's for what a user would write without us."""

    def magnitude(self, size: torch.Tensor, t: torch.Tensor | None) -> torch.Tensor:
        """How large what is rounded may be after it, where it was `size` before: what a bound on errors scales with."""
        return size

    def in_yaml(self) -> Any:
        """As a spec writes it: the word alone, or {word: options that aren't defaults}."""
        options = self.model_dump(exclude_defaults=True)
        return {self.word: options} if options else self.word


def default_type(value: Value, stored: str) -> TensorType:
    """The type of a tensor that is added to x, unless a spec says another: s32 to integers, so that they stay exact;
    else that of C, where it is a float of 16 bits or more, or that in which the chain computes."""
    if value == "s32" or stored not in ("f32", "f16", "bf16", "f64"):
        return value
    return stored  # type: ignore[return-value]


def expanded(t: torch.Tensor, modes: Modes) -> torch.Tensor:
    """A tensor of some modes of C, to broadcast to (M, N)."""
    return t.reshape(-1, 1) if modes == "m" else t


# fmin and fmax drop a NaN; these keep it, in as many instructions (PTX ISA 9.7.3, min and max with .NaN).
MAX_NAN = """\
CUTE_DEVICE float max_nan(float x, float y) {
  float most;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(x), "f"(y));
  return most;
}"""
MIN_NAN = MAX_NAN.replace("max", "min").replace("most", "least")
# 2^x and 1 / x to within 2^-22 of them and one unit in the last place (PTX ISA 9.7.3, ex2 and rcp).
EXP2 = """\
CUTE_DEVICE float exp2_approx(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}"""
