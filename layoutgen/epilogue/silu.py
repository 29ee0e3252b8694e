"""silu: x times its logistic function, also called swish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutgen.epilogue.base import EXP2, MIN_NAN, Step, Value

if TYPE_CHECKING:
    import torch

# By powers of 2 below 1 alone, so that none overflows; beyond 100, what is lost of x is zero to f32.
_F32 = """\
CUTE_DEVICE float silu(float x) {   // max(x, 0) - z / (1 + e^z)
  float const z = min_nan(fabsf(x), 100.f);
  float const s = exp2_approx(-1.442695040888963f * z);
  return fmaf(-z, __fdividef(s, 1.f + s), fmaxf(x, 0.f));
}"""
_F64 = """\
CUTE_DEVICE double silu(double x) {
  return x < -750 ? 0 : x / (1 + exp(-x));
}"""


class Silu(Step):
    """x / (1 + e^-x); 0, the limit, for -Inf."""

    word = "silu"
    instructions = 9

    def code(self, value: Value) -> str:
        return "{x} = silu({x});"

    def functions(self, value: Value) -> tuple[str, ...]:
        return (_F64,) if value == "f64" else (MIN_NAN, EXP2, _F32)

    def in_torch(self, x: torch.Tensor, t: torch.Tensor | None) -> torch.Tensor:
        import torch

        return torch.nn.functional.silu(x)
