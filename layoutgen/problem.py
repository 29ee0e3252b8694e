"""One problem for a kernel: which matrices, where, with which strides; and whether a plan may be used for it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

from layoutgen.epilogue import Tensor
from layoutgen.plan.model import OperandRequirement, Plan
from layoutgen.plan.storage import ITEMSIZE

Extents = tuple[int, int, int]  # m, n and k


@dataclass(frozen=True, slots=True)
class View:
    """A matrix in memory: its base address in bytes, extents and strides in elements, by (x, k) or (m, n)."""

    address: int
    extents: tuple[int, int]
    strides: tuple[int, int]

    def meets(self, need: OperandRequirement, modes: tuple[str, str], itemsize: int) -> bool:
        """Whether a variant that needs `need` may access this matrix."""
        if need.contiguous is None:
            return True
        run = modes.index(need.contiguous)
        pitch = 1 - run
        if self.extents[run] > 1 and self.strides[run] != 1:
            return False
        lengths = (self.address, self.extents[run] * itemsize, self.strides[pitch] * itemsize)
        return need.align <= itemsize or not any(length % need.align for length in lengths)


@dataclass(frozen=True, slots=True)
class Problem:
    """One call: D = alpha * A * B + beta * C, with the views a (m, k), b (n, k), c (m, n) and d (m, n).

    epilogue: the tensors of the epilogue's steps, by (m, n); a mode that one hasn't is of stride 0.
    """

    m: int
    n: int
    k: int
    a: View
    b: View
    c: View
    d: View
    alpha: float
    beta: float
    epilogue: tuple[View, ...] = ()

    @property
    def depth(self) -> int:
        """The k that is summed over: 0 for alpha = 0, which reads neither A nor B, as in BLAS."""
        return 0 if self.alpha == 0.0 else self.k

    def params(self, tensors: tuple[Tensor, ...] = ()) -> tuple[Any, ...]:
        """The kernel's parameters, in the order of emit.PARAMS and of the epilogue's tensors."""
        fused = (
            (view.address, *([view.strides[0]] if tensor.modes == "mn" else []))
            for tensor, view in zip(tensors, self.epilogue, strict=True)
        )
        return (
            self.m, self.n, self.depth,
            self.a.address, *self.a.strides, self.b.address, *self.b.strides,
            self.c.address, self.c.strides[0], self.d.address, self.d.strides[0],
            self.alpha, self.beta, *chain.from_iterable(fused),
        )  # fmt: skip


def fits(plan: Plan, problem: Problem) -> bool:
    """Whether the plan's requirements hold for the problem; C counts only where it is read."""
    need, of_c = plan.requirements, ITEMSIZE[plan.dtype]
    return (
        problem.a.meets(need.a, ("m", "k"), ITEMSIZE[plan.a.dtype])
        and problem.b.meets(need.b, ("n", "k"), ITEMSIZE[plan.b.dtype])
        and problem.d.meets(need.c, ("m", "n"), of_c)
        and (problem.beta == 0.0 or problem.c.meets(need.c, ("m", "n"), of_c))
        and all(
            "n" not in tensor.modes or view.meets(each, ("m", "n"), ITEMSIZE[tensor.dtype])
            for tensor, each, view in zip(plan.epilogue.tensors, need.epilogue, problem.epilogue, strict=True)
        )
    )


def dense(
    m: int, n: int, k: int, modes: str, *, alpha: float = 1.0, beta: float = 0.0, tensors: tuple[Tensor, ...] = ()
) -> Problem:
    """A problem of these extents whose matrices are dense, on 256-byte addresses; C and D are n-contiguous.

    modes: the contiguous modes of a (m or k) and of b (n or k), such as kn. tensors: those of the plan's epilogue. Each
    has 2**40 bytes to itself; nothing lies there.
    """

    def view(index: int, extents: tuple[int, int], last: bool) -> View:
        strides = (extents[1], 1) if last else (1, extents[0])
        return View((index + 1) << 40, extents, (max(strides[0], 1), max(strides[1], 1)))

    return Problem(
        m, n, k,
        view(0, (m, k), modes[0] == "k"), view(1, (n, k), modes[1] == "k"),
        view(2, (m, n), True), view(3, (m, n), True), alpha, beta,
        tuple(of_modes(each, (4 + index) << 40, m, n, n) for index, each in enumerate(tensors)),
    )  # fmt: skip


def of_modes(tensor: Tensor, address: int, m: int, n: int, pitch: int) -> View:
    """The view of a tensor of the epilogue, whose columns are neighbours and whose rows lie a pitch apart."""
    rows, columns = "m" in tensor.modes, "n" in tensor.modes
    return View(
        address, (m if rows else 1, n if columns else 1), ((pitch if columns else 1) if rows else 0, int(columns))
    )


def packed(plan: Plan, m: int, n: int, k: int, *, alpha: float = 1.0, beta: float = 0.0) -> Problem:
    """A dense problem of these extents in the plan's contiguous modes; row-major where it names none."""
    need = plan.requirements
    modes = ("m" if need.a.contiguous == "m" else "k") + ("k" if need.b.contiguous == "k" else "n")
    return dense(m, n, k, modes, alpha=alpha, beta=beta, tensors=plan.epilogue.tensors)
