"""gelu: x times the normal distribution's part below x, or the approximation of it by tanh.

Hendrycks and Gimpel, "Gaussian Error Linear Units (GELUs)", 2016. In f32 both are max(x, 0) - h(|x|), where
h(z) = z 2^p(z) is what is lost of x at -z: p is smooth, and a polynomial is as near to it as f32 shows, far into the
tail too, where 1 + erf(x / sqrt 2) has cancelled (benchmarks/gelu_fit.py made it). -Inf gives 0, the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from layoutgen.epilogue.base import EXP2, MIN_NAN, Step, Value

if TYPE_CHECKING:
    import torch

# form -> (beyond what |x| h is zero to f32, the coefficients of p up to there, constant first)
_FITTED = {
    "exact": (13.5, (
        -0.9999997019767761, -1.1511167287826538, -0.459132581949234, -0.052679430693387985, 0.007268011569976807,
        -0.0002446271537337452, -0.00016793509712442756, 4.528567296802066e-05, -5.767871698481031e-06,
        3.827139494205767e-07, -1.0423437224460486e-08,
    )),
    "tanh": (7.5, (
        -1.0000001192092896, -1.1511071920394897, -0.4591318368911743, -0.05206992104649544, 0.009424570016562939,
        -0.0029064344707876444, 0.002413454931229353, -0.001770909526385367, 0.0006011571967974305,
        -0.00010642242705216631, 9.752076948643662e-06, -3.6880399534311437e-07,
    )),
}  # fmt: skip
_F64 = {
    "exact": "  return x < -40 ? 0 : 0.5 * x * erfc(-x * 0.70710678118654752440);",
    "tanh": "  return x < -100 ? 0 : x / (1 + exp(-1.5957691216057307117 * (x + 0.044715 * x * x * x)));",
}


def _f32(form: str) -> str:
    most, (*_, last) = _FITTED[form]
    *others, _ = _FITTED[form][1]
    steps = "\n".join(f"  p = fmaf(p, z, {each!r}f);" for each in reversed(others))
    return (
        f"CUTE_DEVICE float gelu_{form}(float x) {{   // max(x, 0) - z 2^p(z)\n"
        f"  float const z = min_nan(fabsf(x), {most}f);\n"
        f"  float p = {last!r}f;\n{steps}\n"
        "  return fmaf(-z, exp2_approx(p), fmaxf(x, 0.f));\n}"
    )


class Gelu(Step):
    """x Phi(x), or x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2."""

    word = "gelu"
    form: Literal["exact", "tanh"] = "exact"
    """Whether by the normal distribution, or by its approximation."""

    def about(self) -> str:
        return f"gelu, {self.form}"

    def code(self, value: Value) -> str:
        return f"{{x}} = gelu_{self.form}({{x}});"

    def functions(self, value: Value) -> tuple[str, ...]:
        if value == "f64":
            return (f"CUTE_DEVICE double gelu_{self.form}(double x) {{\n{_F64[self.form]}\n}}",)
        return MIN_NAN, EXP2, _f32(self.form)

    def in_torch(self, x: torch.Tensor, t: torch.Tensor | None) -> torch.Tensor:
        import torch

        return torch.nn.functional.gelu(x, approximate="none" if self.form == "exact" else "tanh")
