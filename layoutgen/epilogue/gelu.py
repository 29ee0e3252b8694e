"""gelu: x times the normal distribution's part below x, or the approximation of it by tanh.

Hendrycks and Gimpel, "Gaussian Error Linear Units (GELUs)", 2016. In f32 both are max(x, 0) - h(|x|), where
h(z) = z 2^p(z) is what is lost of x at -z: p is smooth, and a polynomial as near to it as takes gelu within 2^-19 of
its size and 2^-31 more, where 1 + erf(x / sqrt 2) has cancelled (benchmarks/gelu_fit.py made it). -Inf gives 0, the
limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from layoutgen.epilogue.base import EXP2, MIN_NAN, Step, Value

if TYPE_CHECKING:
    import torch

# form -> (the |x| at which 2^p is zero to f32, the coefficients of p, constant first)
_FITTED = {
    "exact": (14.0, (
        -0.9999993443489075, -1.1511305570602417, -0.45904073119163513, -0.05291495472192764, 0.0075726755894720554,
        -0.0004685221938416362, -6.9380272179842e-05, 1.9061517377849668e-05, -1.6958775859166053e-06,
        5.1291081604176725e-08,
    )),
    "tanh": (9.0, (
        -1.000000238418579, -1.1511046886444092, -0.45915260910987854, -0.052000340074300766, 0.009301808662712574,
        -0.0027778695803135633, 0.00232856092043221, -0.0017346376553177834, 0.0005911518819630146,
        -0.00010470306733623147, 9.58476448431611e-06, -3.6176530215925595e-07,
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
    instructions = 14
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
