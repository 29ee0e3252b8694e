"""scale: x times a number for all, for each row or for each column, which the kernel reads from memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from layoutgen.epilogue.base import Keyword, Modes, Step, Tensor, Value, expanded

if TYPE_CHECKING:
    import torch

_MODES: dict[str, Modes] = {"tensor": "", "row": "m", "column": "n"}


class Scale(Step):
    """x * scale, which has one element, or is (M) per row or (N) per column; as alpha is, but on the device."""

    word = "scale"
    instructions = 1
    per: Literal["tensor", "row", "column"] = "tensor"
    """Whether there is one for all, for each row, or for each column."""
    name: Keyword = "scale"
    """The operator's keyword for it."""

    def tensor(self, value: Value, stored: str) -> Tensor:
        return Tensor(self.name, _MODES[self.per], value)

    def about(self) -> str:
        return f"{self.name}: one for {'all' if self.per == 'tensor' else f'each {self.per}'}"

    def code(self, value: Value) -> str:
        return "{x} = {x} * {t};"

    def in_torch(self, x: torch.Tensor, t: torch.Tensor | None) -> torch.Tensor:
        assert t is not None
        return x * expanded(t, _MODES[self.per]).to(x.dtype)

    def magnitude(self, size: torch.Tensor, t: torch.Tensor | None) -> torch.Tensor:
        assert t is not None
        return self.in_torch(size, t.abs())
