"""relu: the larger of x and 0; a NaN stays one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutgen.epilogue.base import MAX_NAN, Step, Value

if TYPE_CHECKING:
    import torch


class Relu(Step):
    """max(x, 0)."""

    word = "relu"
    instructions = 1

    def computes_in(self, value: Value, stored: str) -> Value:
        return value

    def code(self, value: Value) -> str:
        return "{x} = max_nan({x}, 0.f);" if value == "f32" else "{x} = {x} < 0 ? 0 : {x};"

    def functions(self, value: Value) -> tuple[str, ...]:
        return (MAX_NAN,) if value == "f32" else ()

    def in_torch(self, x: torch.Tensor, t: torch.Tensor | None) -> torch.Tensor:
        return x.relu()
