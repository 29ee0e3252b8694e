"""residual: x + another matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutgen.epilogue.base import Keyword, Step, Tensor, TensorType, Value, default_type

if TYPE_CHECKING:
    import torch


class Residual(Step):
    """x + residual, which is (M, N)."""

    word = "residual"
    instructions = 3
    dtype: TensorType | None = None
    """Its type; by default that of C if it is one of these."""
    name: Keyword = "residual"
    """The operator's keyword for it."""

    def computes_in(self, value: Value, stored: str) -> Value:
        return value if (self.dtype or stored) == "s32" else super().computes_in(value, stored)

    def tensor(self, value: Value, stored: str) -> Tensor:
        return Tensor(self.name, "mn", self.dtype or default_type(value, stored))

    def about(self) -> str:
        return f"{self.name}: another matrix"

    def code(self, value: Value) -> str:
        return "{x} = {x} + {t};"

    def in_torch(self, x: torch.Tensor, t: torch.Tensor | None) -> torch.Tensor:
        assert t is not None
        return x + t.to(x.dtype)

    def magnitude(self, size: torch.Tensor, t: torch.Tensor | None) -> torch.Tensor:
        assert t is not None
        return size + t.to(size.dtype).abs()
