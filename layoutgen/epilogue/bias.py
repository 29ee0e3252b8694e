"""bias: x + a bias for each column, or for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from layoutgen.epilogue.base import Keyword, Step, Tensor, TensorType, Value, default_type, expanded

if TYPE_CHECKING:
    import torch


class Bias(Step):
    """x + bias, which is (N), or (M) per row."""

    word = "bias"
    instructions = 1
    per: Literal["column", "row"] = "column"
    """Whether each column or each row has one."""
    dtype: TensorType | None = None
    """Its type; by default that of C if it is a float, and s32 where x is still an integer."""
    name: Keyword = "bias"
    """The operator's keyword for it."""

    def computes_in(self, value: Value, stored: str) -> Value:
        return value if self.dtype in (None, "s32") else super().computes_in(value, stored)

    def tensor(self, value: Value, stored: str) -> Tensor:
        return Tensor(self.name, "n" if self.per == "column" else "m", self.dtype or default_type(value, stored))

    def about(self) -> str:
        return f"{self.name}: one for each {self.per}"

    def code(self, value: Value) -> str:
        return "{x} = {x} + {t};"

    def in_torch(self, x: torch.Tensor, t: torch.Tensor | None) -> torch.Tensor:
        assert t is not None
        return x + expanded(t, "n" if self.per == "column" else "m").to(x.dtype)

    def magnitude(self, size: torch.Tensor, t: torch.Tensor | None) -> torch.Tensor:
        assert t is not None
        return self.in_torch(size, t.abs())
