"""Epilogues through the operator: keywords and what is refused of them, results beside D, special values, accuracy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import layoutgen
from layoutgen.epilogue.base import TAKEN
from layoutgen.errors import OperandError, SpecError
from layoutgen.ops import Operator, load
from layoutgen.plan import plan
from layoutgen.run import source
from layoutgen.spec import loads
from tests.kernels.small import MMA, SMALL, small
from tests.ops.fused import CHAINS, assert_fused, drafted, small_operator
from tests.ops.operands import FUSED
from tests.plan.drafts import Draft

INF, NAN = math.inf, math.nan
BIAS, OUT = torch.zeros(24, dtype=torch.bfloat16), torch.zeros(9, 24, dtype=torch.bfloat16)


def through(epilogue: tuple[str, ...], x: torch.Tensor, c: str = "f32", **fused: torch.Tensor) -> torch.Tensor:
    """What an epilogue makes of these values (M, N), which come as beta * C: nothing is multiplied."""
    operator = drafted(epilogue, c)
    none = torch.empty(x.shape[0], 0, dtype=torch.bfloat16), torch.empty(0, x.shape[1], dtype=torch.bfloat16)
    result = operator.eager(*none, x, 1.0, 1.0, **fused)
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("name", CHAINS)
def test_small_specs_with_an_epilogue(name: str) -> None:
    modes = "kn" if small_operator(name).plans[0].b.contiguous == "n" else "kk"
    for shape in ((33, 80, 64), (1, 16, 0)):  # all by the primary variant
        assert_fused(small_operator(name), shape, modes=modes)


@pytest.mark.parametrize("name", FUSED)
def test_shipped_specs_with_an_epilogue(name: str) -> None:
    operator = layoutgen.load(name)
    assert_fused(operator, (130, 272, 64), modes="kn" if operator.plans[0].b.contiguous == "n" else "kk")


def values() -> torch.Tensor:
    """Numbers of every size that an activation cares about, and a dense run around 0."""
    sizes = torch.logspace(-30, 2, 2048, base=2)
    line = torch.linspace(-14, 14, 4096)
    return torch.cat((sizes, -sizes, line)).reshape(64, -1)


@pytest.mark.parametrize(
    ("step", "by_torch"),
    [
        ("gelu", lambda x: x * torch.special.ndtr(x)),
        ("gelu: {form: tanh}", lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
        ("silu", torch.nn.functional.silu),
    ],
)
def test_activations_are_near_float64_into_the_tail(
    step: str, by_torch: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """Where torch's own f32 is off by 2^-24 of x, since its sum with erf or tanh cancels."""
    x = values()
    wanted = by_torch(x.double())
    error = (through((step,), x).double() - wanted).abs()
    assert (error <= 2.0**-19 * wanted.abs() + 2.0**-31).all()
    own = (by_torch(x).double() - wanted).abs()
    assert error.max() < 2 * own.max()


@pytest.mark.parametrize("step", ["gelu", "gelu: {form: tanh}", "silu"])
def test_activations_of_special_values(step: str) -> None:
    x = torch.tensor([[INF, -INF, NAN, 0.0, -0.0, 3e38, -3e38, 1e-40]])
    found = through((step,), x)[0]
    assert found[0] == INF and found[1] == 0 and found[2].isnan() and (found[3:5] == 0).all()
    assert found[5] == x[0, 5] and found[6] == 0 and abs(found[7]) <= 1e-40


def test_nan_stays_in_relu_clamp_and_amax() -> None:
    x = torch.tensor([[NAN, -1.0, 2.0, INF], [3.0, -7.0, 0.5, 1.0]])
    positive = torch.tensor([[-5.0, 0, 2, INF], [3, 0, 0.5, 1]])
    assert torch.equal(through(("relu",), x).nan_to_num(-5.0, INF), positive)
    bounded = through(("clamp: {min: -0.5, max: 1.5}",), x)
    assert torch.equal(bounded.nan_to_num(-5.0), torch.tensor([[-5.0, -0.5, 1.5, 1.5], [1.5, -0.5, 0.5, 1.0]]))
    operator = drafted(("amax",))
    none = torch.empty(2, 0, dtype=torch.bfloat16), torch.empty(0, 4, dtype=torch.bfloat16)
    _, most = operator.eager(*none, x, 1.0, 1.0)
    assert most[0].isnan() and most[1] == 7


@pytest.mark.parametrize(("c", "least", "most"), [("s8", -128, 127), ("u8", 0, 255), ("s32", -(2**31), 2**31 - 1)])
def test_floats_are_rounded_to_the_nearest_even_integer_and_saturated(c: str, least: int, most: int) -> None:
    scale = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, 254.5, 1e9, 3e9, -3e9, INF, -INF, NAN, -128.5])
    one = torch.ones(15, 1, dtype=torch.bfloat16), torch.ones(1, 1, dtype=torch.bfloat16)
    d = drafted(("scale: {per: row}",), c).eager(*one, scale=scale)
    assert isinstance(d, torch.Tensor)
    wanted = torch.where(scale.isnan(), 0.0, scale.double()).round().clamp(least, most)
    assert d[:, 0].double().tolist() == wanted.tolist()


def test_integers_are_exact_up_to_the_first_step_of_floats() -> None:
    """2^24 + 1 has no float: a bias and a clamp of integers see it."""
    operator = small_operator("fused_from_integers")
    a, b = torch.ones(1, 16, dtype=torch.int8), torch.ones(16, 16, dtype=torch.int8)
    bias, scale = torch.full((16,), 2**24 + 1 - 16 - 2**24 + 1, dtype=torch.int32), torch.tensor([1.0])
    bias[0], scale[0] = 2**24 + 1 - 16, 2.0**-10  # the sum is 2^24 + 1, which rounds to 2^24
    first = operator.eager(a, b, bias=bias, scale=scale)
    assert isinstance(first, torch.Tensor) and first[0, 0] == 2**14
    exact = small_operator("fused_integers")
    residual = torch.full((1, 16), 2**24 + 1, dtype=torch.int32)
    residual[0, 1] = -(2**24) - 1 + 100
    huge = exact.eager(a * 64, b * 64, residual=residual - 16 * 64 * 64 + 100 - 2**24 - 1)
    assert isinstance(huge, torch.Tensor) and huge[0, 0] == 100


def test_where_a_tensor_lies_does_not_matter() -> None:
    """Views of any stride; a residual that is the result itself; a bias that is not aligned."""
    operator = drafted(("bias", "residual"), "bf16")
    random = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=random).to(torch.bfloat16)

    a, b, residual = draw(40, 64), draw(64, 72), draw(72, 40).t()
    wide = draw(300)
    bias = wide[1:73]
    wanted = operator.eager(a, b, bias=bias.clone(), residual=residual.contiguous())
    assert isinstance(wanted, torch.Tensor)
    assert operator.variant_for(a, b, bias=bias, residual=residual).variant == "ak_bn_2B"
    for one, other in ((bias, residual), (wide[1:217:3][:72], residual)):
        assert torch.equal(
            operator.eager(a, b, bias=one, residual=other),  # type: ignore[arg-type]
            operator.eager(a, b, bias=one.clone(), residual=other.contiguous()),  # type: ignore[arg-type]
        )
    out = residual.contiguous()
    operator.eager_out(a, b, bias=bias, residual=out, out=out)
    assert torch.equal(out, wanted)


def registered(name: str, *epilogue: str) -> Operator:
    fields: dict[str, Any] = MMA | {"warps": "(1,2):(0,1)", "dtypes": ("bf16", "bf16", "f32"), "epilogue": epilogue}
    return load(Draft(name, **fields).spec())


def test_results_beside_the_product() -> None:
    op = registered("with_amax", "bias", "amax")
    a, b, bias = (torch.rand(*shape).to(torch.bfloat16) for shape in ((9, 16), (16, 24), (24,)))
    d, most = op(a, b, bias=bias)
    out, amax = torch.empty_like(d), torch.full((9,), NAN)
    assert op(a, b, bias=bias, out=out, amax=amax) == (out, amax)  # the same tensors
    assert torch.equal(out, d) and torch.equal(amax, most)
    empty = op(a, b[:, :0], bias=bias[:0])
    assert torch.equal(empty[1], torch.zeros(9)) and empty[0].shape == (9, 0)
    overloads, given = torch.ops.layoutgen.with_amax, {"bias": bias}
    torch.library.opcheck(overloads.default, (a, b), given, test_utils="test_faketensor")
    torch.library.opcheck(overloads.out, (a, b), {**given, "out": out, "amax": amax}, test_utils="test_schema")


@pytest.mark.parametrize(
    ("fused", "message"),
    [
        ({}, "bias must be given"),
        ({"bias": BIAS, "bais": BIAS}, "the epilogue's tensors are those of the spec"),
        ({"bias": torch.zeros(24)}, "bias must be bfloat16"),
        ({"bias": BIAS[1:]}, r"bias must have the shape \(N,\)[^+]*pass one element for each N"),
        ({"bias": BIAS[None]}, r"bias must have the shape \(N,\)[^+]*use bias.reshape\(24,\)"),
        ({"bias": BIAS[:1]}, r"bias must have the shape \(N,\)[^+]*use bias.expand\(24,\)"),
        ({"bais": BIAS}, "bias must be given\n  got: no bias, but bais"),
        ({"bias": 0.5}, "bias must be a tensor"),
        ({"bias": BIAS, "most": torch.zeros(9)}, "the epilogue's tensors are those of the spec"),
        ({"bias": BIAS, "out": OUT}, "most must be given, as out is"),
        ({"bias": BIAS, "out": OUT, "most": torch.zeros(18)[::2]}, "most must have neighbouring elements"),
    ],
)
def test_refusals(fused: dict[str, torch.Tensor], message: str) -> None:
    op = registered("refusing", "bias", "amax: {name: most}")
    a, b = torch.zeros(9, 16, dtype=torch.bfloat16), torch.zeros(16, 24, dtype=torch.bfloat16)
    with pytest.raises(OperandError, match=message):
        op(a, b, **fused)


def test_results_must_not_overlap() -> None:
    op = registered("overlapping", "bias: {dtype: f32}", "amax")
    a, b = torch.zeros(9, 16, dtype=torch.bfloat16), torch.zeros(16, 24, dtype=torch.bfloat16)
    memory = torch.zeros(24)
    with pytest.raises(OperandError, match="amax must not overlap bias"):
        op(a, b, bias=memory, out=torch.zeros(9, 24, dtype=torch.bfloat16), amax=memory[:9])


def test_sums_that_stay_integers_take_no_c_of_floats() -> None:
    operator = small_operator("fused_from_integers")
    a, b = torch.ones(4, 16, dtype=torch.int8), torch.ones(16, 16, dtype=torch.int8)
    fused = {"bias": torch.zeros(16, dtype=torch.int32), "scale": torch.ones(1)}
    with pytest.raises(OperandError, match="sums that stay integers take no c of floats"):
        operator.eager(a, b, torch.zeros(4, 16, dtype=torch.float16), 1.0, 1.0, **fused)
    with pytest.raises(OperandError, match="alpha must be an int32"):
        operator.eager(a, b, alpha=0.5, **fused)


def test_a_scale_may_have_no_mode() -> None:
    operator = drafted(("scale",))
    a, b = torch.ones(4, 16, dtype=torch.bfloat16), torch.ones(16, 16, dtype=torch.bfloat16)
    assert torch.equal(operator.eager(a, b, scale=torch.tensor(0.5)), torch.full((4, 16), 8.0))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["direct", "mixed", "bf16", "bf16_staged", "bf16_shared_tiles", "s8"])
def test_what_a_kernel_names_is_not_free_for_a_tensor(name: str) -> None:
    """A tensor x has x_data, x_m, e_x, g_x and read_x in the kernel."""
    text = "\n".join(source(each).text for each in small(name))
    used = re.findall(r"\b(?:(?:read|e|g)_([a-z]\w*)|([a-z]\w*?)_(?:m|data))\b", re.sub(r"//.*", "", text))
    assert {one or other for one, other in used} - TAKEN == set()
    assert "stage" in TAKEN and "d" in TAKEN


def test_every_step_is_said_in_the_kernel_and_read_back() -> None:
    steps = ("bias", "scale: {per: row, name: s}", "gelu", "silu", "relu", "clamp: {max: 1}", "residual", "amax")
    spec = drafted(steps).spec
    assert loads(spec.to_yaml()) == spec
    assert [str(link) for link in plan(spec)[0].epilogue.chain][2] == "gelu, exact (f32)"


def test_integers_are_rounded_to_bf16_once() -> None:
    """To the nearest of numbers 2^17 apart beyond 2^24, where a float has lost what tells them from a tie."""
    fields = SMALL["s8"][0] | {"name": "s8", "dtypes": ("s8", "bf16", "s32"), "epilogue": ("bias",)}
    spec = Draft(**fields).spec()
    given = [
        259,
        515,
        65535,
        -259,
        3,
        257,
        2**24 + 2**16,
        2**24 + 2**16 + 1,
        -(2**30 + 2**22 + 1),
        2**31 - 1,
        -(2**31),
        1,
    ]
    wanted = [260, 516, 65536, -260, 3, 256, 2**24, 2**24 + 2**17, -(2**30 + 2**23), 2**31, -(2**31), 1]
    a, b = torch.zeros(1, 64, dtype=torch.int8), torch.zeros(64, 12, dtype=torch.int8)
    d = Operator(spec, plan(spec)).eager(a, b, bias=torch.tensor(given, dtype=torch.int32))
    assert isinstance(d, torch.Tensor) and d[0].tolist() == wanted


@pytest.mark.parametrize(("bound", "value"), [("1e-60", 0.0), ("1e-42", 1.0005271035279194e-42)])
def test_bounds_below_what_f32_holds(bound: str, value: float) -> None:
    fields = SMALL["fused_f32"][0] | {"name": "small", "epilogue": (f"clamp: {{max: {bound}}}",)}
    spec = Draft(**({"warps": "(1,2):(0,1)", "block": (32, 64, 8), "values": ("4", "4")} | fields)).spec()
    d = Operator(spec, plan(spec)).eager(torch.ones(2, 2), torch.ones(2, 2))
    assert isinstance(d, torch.Tensor) and d.tolist() == [[value] * 2] * 2


@pytest.mark.parametrize("name", ["e", "g", "read", "class", "a" * 65])
def test_names_that_the_kernel_needs(name: str) -> None:
    with pytest.raises(SpecError, match="must have a name that is free for a keyword") as raised:
        loads(Draft(**(SMALL["fused_f32"][0] | {"epilogue": (f"bias: {{name: {name}}}",)})).text())
    assert "not a keyword of Python" in str(raised.value) and "up to 64" in str(raised.value)


def test_clamp_says_how_it_is_written() -> None:
    for given, fix in (
        ("[0, 6]", "write {clamp: {min: 0, max: 6}}"),
        ("{min: 1234567, max: 1234566}", "write {clamp: {min: 1234566.0, max: 1234567.0}}"),
    ):
        with pytest.raises(SpecError) as raised:
            loads(Draft(**(SMALL["fused_f32"][0] | {"epilogue": (f"clamp: {given}",)})).text())
        assert f"fix: {fix}" in str(raised.value)
