"""The failures of test_public_failures that an operator on tensor cores could have, and one with an epilogue.

Operands are small integers, whose sums are exact in f32 and rounded once. The kernels are those of other tests: none is
compiled for these alone.
"""

from __future__ import annotations

import math
import mmap
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch

from layoutgen import run, sim
from layoutgen.operands import TORCH
from layoutgen.ops import Operator
from layoutgen.problem import Problem, View, of_modes
from tests.ops.fused import drafted, small_operator
from tests.ops.operands import CANARY, assert_untouched

NAN = math.nan


@dataclass(frozen=True)
class Layer:
    """An operator, called with a bias and a residual of its own making if it has an epilogue.

    odd: the mode in which b is contiguous where rows are on 2-byte boundaries.
    """

    operator: Operator
    odd: str = "n"

    @property
    def dtype(self) -> torch.dtype:
        return TORCH[self.operator.plans[0].a.dtype]

    def draw(self, *shape: int, seed: int = 0) -> torch.Tensor:
        random = torch.Generator().manual_seed(seed + sum(shape))
        return torch.randint(-3, 4, shape, generator=random).to(self.dtype)

    def draw_odd(self, k: int, n: int) -> torch.Tensor:
        """b, for the variant of rows on 2-byte boundaries."""
        return self.draw(k, n) if self.odd == "n" else self.draw(n, k).t()

    def tensors(self, m: int, n: int) -> dict[str, torch.Tensor]:
        if not self.operator.spec.epilogue:
            return {}
        down, across = torch.arange(m)[:, None], torch.arange(n)
        bias, residual = across % 7 - 3, (down * 3 + across * 5) % 11 - 5
        return {"bias": bias.to(self.dtype), "residual": residual.to(self.dtype)}

    def c(self, m: int, n: int, fill: float) -> torch.Tensor:
        return torch.full((m, n), fill, dtype=TORCH[self.operator.plans[0].dtype])

    def __call__(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor | None = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        fused = self.tensors(a.shape[0], b.shape[1])
        if out is not None:
            self.operator.eager_out(a, b, c, alpha, beta, out=out, **fused)
            return out
        found = self.operator.eager(a, b, c, alpha, beta, **fused)
        assert isinstance(found, torch.Tensor)
        return found

    def wanted(self, product: torch.Tensor) -> torch.Tensor:
        """What the epilogue makes of alpha a b + beta c."""
        x = product.double()
        if fused := self.tensors(*x.shape):
            x = x + fused["bias"].double() + fused["residual"].double()
        return x.to(TORCH[self.operator.plans[0].dtype])

    def variant_for(self, a: torch.Tensor, b: torch.Tensor) -> str:
        return self.operator.variant_for(a, b, **self.tensors(a.shape[0], b.shape[1])).variant

    def assert_exact(self, a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> None:
        assert torch.equal(d, self.wanted(a.double() @ b.double()))


LAYERS = {
    "bf16": lambda: Layer(small_operator("bf16"), "k"),
    "f16": lambda: Layer(small_operator("f16_short")),
    "epilogue": lambda: Layer(drafted(("bias", "residual"), "bf16")),
}


@pytest.fixture(params=LAYERS)
def op(request: pytest.FixtureRequest) -> Layer:
    """For operands whose rows are on 16-byte boundaries."""
    return LAYERS[request.param]()


@pytest.fixture(params=[name for name in LAYERS if name != "f16"])
def any_op(request: pytest.FixtureRequest) -> Layer:
    """For any rows."""
    return LAYERS[request.param]()


# --- empty problems --------------------------------------------------------------------------------------------------


def test_k0_multistage_oob(op: Layer) -> None:
    a, b = op.draw(33, 64)[:, :0], op.draw(0, 72)
    assert torch.equal(op(a, b, out=op.c(33, 72, NAN)), op.wanted(torch.zeros(33, 72)))
    assert torch.equal(op(a, b, op.c(33, 72, 2.0), 1.0, 0.5), op.wanted(torch.ones(33, 72)))


def test_m0_n0_divzero(op: Layer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layoutgen.run.simulate", lambda *_: pytest.fail("a launch"))
    for m, n in ((0, 9), (5, 0), (0, 0)):
        assert op(op.draw(m, 7), op.draw(7, n)).shape == (m, n)


# --- what must not be read -------------------------------------------------------------------------------------------


def test_beta0_nan(op: Layer) -> None:
    a, b = op.draw(33, 40), op.draw(40, 72)
    for value in (NAN, math.inf):
        c = op.c(33, 72, value)
        op.assert_exact(a, b, op(a, b, c, 1.0, 0.0, out=c))


def test_alpha0_nan(op: Layer) -> None:
    a, b, c = op.draw(33, 40), op.draw(40, 72), op.c(33, 72, 3.0)
    a[0, 0], b[1, 1] = NAN, math.inf
    assert torch.equal(op(a, b, c, 0.0, 1.0), op.wanted(c))
    assert torch.equal(op(a, b, c, 0.0, 0.0), op.wanted(torch.zeros(33, 72)))


def test_nan_in_k_tail(any_op: Layer) -> None:
    """By cp.async, either way round where there is a kernel for it; and through registers, for rows of 33."""
    op = any_op
    for k in (40, 33):
        a, b = op.draw(33, 64), op.draw_odd(64, 72) if k == 33 else op.draw(64, 72)
        a[:, k:], b[k:] = NAN, NAN
        op.assert_exact(a[:, :k], b[:k], op(a[:, :k], b[:k]))
        if k == 40 and op.odd == "k":
            left, right = (each.t().contiguous().t() for each in (a, b))
            op.assert_exact(a[:, :k], b[:k], op(left[:, :k], right[:k]))


def test_inf_emulation(op: Layer) -> None:
    a, b = op.draw(33, 40), op.draw(40, 72).abs() + 1
    clean = op(a, b)
    a[0, 0], a[2, 3] = math.inf, NAN
    d = op(a, b)
    assert (d[0] == math.inf).all() and d[2].isnan().all()
    rest = [i for i in range(33) if i not in (0, 2)]
    assert torch.equal(d[rest], clean[rest])


# --- alignment -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "k", "n"), [(2, 3, 4), (33, 17, 20), (3, 5, 7)])
def test_align_odd_mk(any_op: Layer, m: int, k: int, n: int) -> None:
    a, b = any_op.draw(m, k), any_op.draw_odd(k, n)
    any_op.assert_exact(a, b, any_op(a, b))


def test_tma_stride_16B(any_op: Layer) -> None:
    """A pitch of 511 elements, 1022 bytes."""
    op, a = any_op, any_op.draw(20, 40)
    b = op.draw(40, 511)[:, :72] if op.odd == "n" else op.draw(72, 511)[:, :40].t()
    assert op.variant_for(a, b) == f"ak_b{op.odd}_2B" and op.variant_for(a, b.contiguous()) == "ak_bn_16B"
    op.assert_exact(a, b, op(a, b))


def test_tma_base_offset(any_op: Layer) -> None:
    op, a = any_op, any_op.draw(20, 40)
    rows, columns = (40, 72) if op.odd == "n" else (72, 40)
    x = op.draw(rows, 80)
    flat = torch.cat((torch.full((1,), NAN, dtype=op.dtype), x[:, :columns].reshape(-1)))
    for each in (x[:, 1 : columns + 1], flat[1:].view(rows, columns)):
        b = each if op.odd == "n" else each.t()
        assert op.variant_for(a, b) == f"ak_b{op.odd}_2B"
        op.assert_exact(a, b, op(a, b))


def test_tma_store_overrun(any_op: Layer) -> None:
    """Columns from 65 on of a pitch of 128, in the middle of what a block stores."""
    op, a, b = any_op, any_op.draw(17, 40), any_op.draw_odd(40, 65)
    out = op.c(17, 128, CANARY)[:, :65]
    op.assert_exact(a, b, op(a, b, out=out))
    assert_untouched(out)


# --- more than the code allows for -----------------------------------------------------------------------------------


def test_stale_tma_cache(op: Layer) -> None:
    kept = []
    for n, k in ((72, 40), (72, 40), (40, 72), (72, 8)):
        a, b = op.draw(33, k, seed=len(kept)), op.draw(k, n, seed=len(kept))
        kept.append((a, b, op(a, b)))
    for each in kept:
        op.assert_exact(*each)


@pytest.mark.parametrize("k", [32, 96, 128])
def test_k_pairs_only(op: Layer, k: int) -> None:
    """Odd and even counts of k-tiles of 32."""
    a, b = op.draw(20, k), op.draw(k, 72)
    op.assert_exact(a, b, op(a, b))


def test_batch_invariance(op: Layer) -> None:
    """Of numbers whose sums are rounded."""
    random = torch.Generator().manual_seed(0)
    a, b = (torch.rand(shape, generator=random).to(op.dtype) for shape in ((65, 96), (96, 72)))
    whole = op(a, b)
    for m in (1, 2, 17, 33):
        assert torch.equal(op(a[:m], b), whole[:m])


FAR = 2**30 + 12345


def test_int32_offset_mm() -> None:
    """Rows that lie more than 2^31 bytes apart, the residual's too, in memory of which few pages are ever touched."""
    m, n, k = 4, 5, 3
    op = LAYERS["epilogue"]()
    (plan,) = (each for each in op.operator.plans if each.variant == "ak_bn_2B")
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)  # named from Python 3.12 on
    memory, values, flat, address = sim.GlobalMemory(), {}, {}, {}
    for name, (rows, columns) in {"a": (m, k), "b": (k, n), "residual": (m, n), "d": (m, n), "bias": (1, n)}.items():
        flat[name] = np.frombuffer(mmap.mmap(-1, 2 * (5 * FAR), flags), np.uint16)
        values[name] = op.tensors(m, n).get(name, op.draw(rows, columns)).reshape(rows, columns)
        for i in range(rows):
            flat[name][i * FAR : i * FAR + columns] = values[name][i].view(torch.int16).numpy()
        address[name] = memory.add(flat[name], writable=name == "d", name=name)
    far = partial(of_modes, m=m, n=n, pitch=FAR)
    tensors = {each.name: each for each in op.operator.plans[0].epilogue.tensors}
    views = [View(address["a"], (m, k), (FAR, 1)), View(address["b"], (n, k), (1, FAR))]
    views += [View(address["d"], (m, n), (FAR, 1))] * 2
    problem = Problem(
        m, n, k, *views, 1.0, 0.0, epilogue=tuple(far(tensors[name], address[name]) for name in ("bias", "residual"))
    )
    run.simulate(plan, problem, memory)
    d = np.stack([flat["d"][i * FAR : i * FAR + n] for i in range(m)]).view(np.int16)
    op.assert_exact(values["a"], values["b"], torch.from_numpy(d).view(op.dtype))


def test_sums_of_integers_are_exact_where_floats_are_not() -> None:
    """127 * 127 * 1101 is odd and above 2^24."""
    a, b = torch.full((16, 1104), 127, dtype=torch.int8), torch.full((16, 1104), 127, dtype=torch.int8).t()
    a[:, 1101:] = 0
    d = small_operator("s8").eager(a, b)
    assert isinstance(d, torch.Tensor) and (d == 127 * 127 * 1101).all()
