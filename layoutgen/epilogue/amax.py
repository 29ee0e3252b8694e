"""amax: the largest |x| of each row, beside the result: what a quantization of the rows scales by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutgen.epilogue.base import Keyword, Step, Tensor, Value

if TYPE_CHECKING:
    import torch

# Numbers that are not negative are in the order of their bits, and a NaN comes after all: maxima of bits, in any order.
_FUNCTIONS = {
    "f32": "CUTE_DEVICE uint32_t magnitude(float x) { return __float_as_uint(fabsf(x)); }",
    "f64": "CUTE_DEVICE unsigned long long magnitude(double x) { return __double_as_longlong(fabs(x)); }",
}


class Amax(Step):
    """x, and in `amax` (M) the largest |x| of its row; NaN where there is one."""

    word = "amax"
    instructions = 2
    name: Keyword = "amax"
    """What the operator calls it."""

    def tensor(self, value: Value, stored: str) -> Tensor:
        return Tensor(self.name, "m", value, written=True)

    def about(self) -> str:
        return f"{self.name}: the largest of each row"

    def code(self, value: Value) -> str:
        return "{t} = max({t}, magnitude({x}));"

    def functions(self, value: Value) -> tuple[str, ...]:
        return (_FUNCTIONS[value],)

    def in_torch(self, x: torch.Tensor, t: torch.Tensor | None) -> torch.Tensor:
        return x
