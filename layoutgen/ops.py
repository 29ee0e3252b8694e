"""Spec -> torch.ops.layoutgen.<name>: operands checked, a variant chosen, the kernel launched or simulated."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import torch

from layoutgen import paths, run
from layoutgen import spec as spec_module
from layoutgen.check import require_legal
from layoutgen.errors import LayoutgenError, OperandError
from layoutgen.plan import Plan
from layoutgen.run import Problem, View
from layoutgen.spec import Spec

_SIGNATURE = "Tensor a, Tensor b, Tensor? c=None, float alpha=1.0, float beta=0.0"
_library = torch.library.Library("layoutgen", "FRAGMENT")
_operators: dict[str, "Operator"] = {}
_lock = threading.RLock()


class Operator:
    """A spec as a PyTorch operator: ``op(a, b, c=None, alpha=1.0, beta=0.0, out=None)`` = alpha * a @ b + beta * c.

    a is (M, K), b is (K, N), c broadcasts to (M, N), all float32, on one GPU or on the CPU, with any strides. beta = 0
    does not read c and alpha = 0 does not read a or b, so that NaN and Inf in what isn't read don't reach the result.
    Variants are built when first needed. Raises OperandError, before anything is launched, for what it can't take.
    """

    def __init__(self, spec: Spec, plans: tuple[Plan, ...]) -> None:
        self.spec = spec
        self.plans = plans
        self._loaded: dict[tuple[str, int], run.CompiledForGpu] = {}
        self._loading = threading.Lock()

    @property
    def name(self) -> str:
        return self.spec.name

    def __call__(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor | None = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        packet = getattr(torch.ops.layoutgen, self.name)
        result: torch.Tensor = packet(a, b, c, alpha, beta) if out is None else packet(a, b, c, alpha, beta, out=out)
        return result

    def __repr__(self) -> str:
        return f"<layoutgen operator {self.name}: {', '.join(plan.variant for plan in self.plans)}>"

    def variant_for(
        self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None, beta: float = 0.0
    ) -> Plan:
        """The plan that a call with these operands would run."""
        _validate(self.name, a, b, c, 1.0, beta)
        d = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype, device=a.device)
        return run.choose(self.plans, _problem(a, b, _read_c(c, d, beta), d, 1.0, beta))

    def warm_up(self, device: int | None = None) -> None:
        """Build and load every variant on a GPU now, as a CUDA graph capture needs."""
        ordinal = torch.cuda.current_device() if device is None else device
        for plan in self.plans:
            self._compiled(plan, ordinal)

    def _compiled(self, plan: Plan, ordinal: int) -> run.CompiledForGpu:
        key = (plan.variant, ordinal)
        compiled = self._loaded.get(key)
        if compiled is None:
            if torch.cuda.is_current_stream_capturing():
                raise OperandError(
                    "a kernel must be loaded before a CUDA graph is captured",
                    got=f"the first call of {self.name} ({plan.variant}) inside a capture",
                    fix=f"call the operator once, or layoutgen.load(...).warm_up(), before the capture of {self.name}",
                )
            with self._loading:
                compiled = self._loaded.get(key) or run.CompiledForGpu(plan, ordinal)
                self._loaded[key] = compiled
        return compiled

    def eager(
        self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None, alpha: float = 1.0, beta: float = 0.0
    ) -> torch.Tensor:
        """What a call does, without torch's dispatcher: a spec needs no registered name for it."""
        _validate(self.name, a, b, c, alpha, beta)
        d = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype, device=a.device)
        self._launch(a, b, c, alpha, beta, d)
        return d

    def _eager_out(
        self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None, alpha: float, beta: float, out: torch.Tensor
    ) -> torch.Tensor:
        _validate(self.name, a, b, c, alpha, beta)
        _validate_out(self.name, a, b, c if beta != 0.0 else None, out)
        self._launch(a, b, c, alpha, beta, out)
        return out

    def _launch(
        self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None, alpha: float, beta: float, d: torch.Tensor
    ) -> None:
        if d.numel() == 0:
            return
        if a.is_neg() or b.is_neg():  # lazily negated views, e.g. the imaginary part of a conjugate
            a, b = a.resolve_neg(), b.resolve_neg()
        c = _read_c(c, d, beta)
        problem = _problem(a, b, c, d, alpha, beta)
        plan = run.choose(self.plans, problem)
        if d.device.type == "cpu":
            run.on_cpu(plan, problem, {"a": a, "b": b, "c": c, "d": d})
            return
        ordinal = d.device.index
        if ordinal == torch.cuda.current_device():
            self._compiled(plan, ordinal)(problem, torch.cuda.current_stream(ordinal).cuda_stream)
        else:
            with torch.cuda.device(ordinal):
                self._compiled(plan, ordinal)(problem, torch.cuda.current_stream(ordinal).cuda_stream)


def load(source: str | Path | Spec) -> Operator:
    """Register a spec as ``torch.ops.layoutgen.<name>`` and return it as an Operator.

    source: a path, the name of a spec that comes with layoutgen, or a Spec.
    Loading the same spec again returns the same operator.
    Raises SpecError, PlanError with check's findings where the spec is illegal for the device here, or LayoutgenError
    where another spec of that name is registered.
    """
    spec = source if isinstance(source, Spec) else spec_module.load(paths.find_spec(source))
    with _lock:
        known = _operators.get(spec.name)
        if known is not None:
            if known.spec.to_yaml() != spec.to_yaml():
                raise LayoutgenError(
                    "an operator's name belongs to one spec in a process",
                    got=f"another spec named {spec.name} is registered",
                    fix="give one of them another name",
                    where=spec.where("name"),
                )
            return known
        operator = Operator(spec, require_legal(spec, run.default_device()).plans)
        _register(operator)
        _operators[spec.name] = operator
        return operator


def _register(operator: Operator) -> None:
    name = operator.name
    _library.define(f"{name}({_SIGNATURE}) -> Tensor")
    _library.define(f"{name}.out({_SIGNATURE}, *, Tensor(a!) out) -> Tensor(a!)")

    def call(a: Any, b: Any, c: Any = None, alpha: float = 1.0, beta: float = 0.0) -> torch.Tensor:
        return operator.eager(a, b, c, alpha, beta)

    def call_out(a: Any, b: Any, c: Any = None, alpha: float = 1.0, beta: float = 0.0, *, out: Any) -> torch.Tensor:
        return operator._eager_out(a, b, c, alpha, beta, out)

    def fake(a: Any, b: Any, c: Any = None, alpha: float = 1.0, beta: float = 0.0) -> torch.Tensor:
        _validate_shapes(name, a, b, c, beta)
        result: torch.Tensor = a.new_empty((a.shape[0], b.shape[1]))
        return result

    def fake_out(a: Any, b: Any, c: Any = None, alpha: float = 1.0, beta: float = 0.0, *, out: Any) -> torch.Tensor:
        _validate_shapes(name, a, b, c, beta)
        result: torch.Tensor = out
        return result

    # One implementation for every backend, so that an operand on a device we lack gets our message, not the dispatcher's.
    _library.impl(name, call, "CompositeExplicitAutograd")
    _library.impl(f"{name}.out", call_out, "CompositeExplicitAutograd")
    torch.library.register_fake(f"layoutgen::{name}", fake, lib=_library)
    torch.library.register_fake(f"layoutgen::{name}.out", fake_out, lib=_library)


def _refuse(op: str, rule: str, got: object, allowed: object, fix: str) -> OperandError:
    return OperandError(f"{op}: {rule}", got=got, allowed=allowed, fix=fix)


def _validate_shapes(op: str, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None, beta: float) -> None:
    for label, tensor in (("a", a), ("b", b)):
        if tensor.dim() != 2:
            raise _refuse(op, f"{label} must be a matrix", f"{tensor.dim()} dimensions", "2", "reshape it, or loop over batches")
    if a.shape[1] != b.shape[0]:
        raise _refuse(
            op, "the columns of a must match the rows of b", f"a {tuple(a.shape)}, b {tuple(b.shape)}",
            "a (M, K) and b (K, N)", "transpose one of them",
        )  # fmt: skip
    if beta != 0.0 and c is None:
        raise _refuse(op, "beta needs c", f"beta = {beta} and no c", "c of shape (M, N)", "pass c, or beta = 0")
    if c is not None:
        shape = (a.shape[0], b.shape[1])
        if c.dim() > 2 or any(s not in (1, t) for s, t in zip(c.shape[::-1], shape[::-1], strict=False)):
            raise _refuse(op, "c must broadcast to the result", tuple(c.shape), tuple(shape), "pass c of the result's shape")


def _validate(op: str, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None, alpha: float, beta: float) -> None:
    """Raise OperandError, naming the operand, for whatever the kernels can't take."""
    tensors = [("a", a), ("b", b), *([("c", c)] if c is not None else [])]
    for label, tensor in tensors:
        if tensor.layout != torch.strided:
            raise _refuse(op, f"{label} must be a dense tensor", tensor.layout, torch.strided, f"use {label}.to_dense()")
        if tensor.device.type not in ("cpu", "cuda"):
            raise _refuse(op, f"{label} must be on the CPU or on a CUDA device", tensor.device, "cpu or cuda", f"move {label}")
        if tensor.device != a.device:
            raise _refuse(
                op, f"{label} must be on the device of a", f"a on {a.device}, {label} on {tensor.device}", a.device,
                f"use {label}.to({str(a.device)!r})",
            )  # fmt: skip
        if tensor.dtype != torch.float32:
            raise _refuse(op, f"{label} must be float32", tensor.dtype, torch.float32, f"use {label}.float()")
        if tensor.requires_grad and torch.is_grad_enabled():
            raise _refuse(
                op, f"{label} must not require grad: the operator has no derivative yet", "requires_grad=True",
                "requires_grad=False, or torch.no_grad()", f"use {label}.detach(), or wrap the call in torch.no_grad()",
            )  # fmt: skip
    _validate_shapes(op, a, b, c, beta)
    for label, extent in (("M", a.shape[0]), ("N", b.shape[1]), ("K", a.shape[1])):
        if extent > run.MAX_EXTENT:
            raise _refuse(op, f"{label} must fit a 32-bit index", extent, f"at most {run.MAX_EXTENT}", "split the product")


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """[first, last) byte of a tensor's elements; strides may be negative only where torch allows none, so they are not."""
    if tensor.numel() == 0:
        return (0, 0)
    last = sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


def _validate_out(op: str, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None, out: torch.Tensor) -> None:
    shape = (a.shape[0], b.shape[1])
    if tuple(out.shape) != shape:
        raise _refuse(op, "out must have the result's shape", tuple(out.shape), shape, "allocate it as (M, N)")
    if out.dtype != torch.float32 or out.device != a.device or out.layout != torch.strided:
        raise _refuse(
            op, "out must be like a", f"{out.dtype} on {out.device}", f"{torch.float32} on {a.device}", "allocate it like a"
        )
    if out.requires_grad and torch.is_grad_enabled():
        raise _refuse(op, "out must not require grad", "requires_grad=True", "requires_grad=False", "use out.detach()")
    rows, columns = shape
    unit = columns <= 1 or out.stride(1) == 1
    apart = rows <= 1 or out.stride(0) >= columns
    if not (unit and apart):
        raise _refuse(
            op, "out must have rows of neighbouring elements that don't overlap", f"strides {tuple(out.stride())}",
            "strides (pitch, 1) with pitch >= N", "pass a row-major out, or copy the result",
        )  # fmt: skip
    low, high = _span(out)
    for label, tensor in (("a", a), ("b", b), ("c", c)):
        if tensor is None or tensor.numel() == 0 or out.numel() == 0:
            continue
        first, last = _span(tensor)
        same = label == "c" and tensor.data_ptr() == out.data_ptr() and tensor.stride() == out.stride()
        if first < high and low < last and not (same and tuple(tensor.shape) == shape):
            raise _refuse(
                op, f"out must not overlap {label}", f"bytes {low:#x}..{high:#x} and {first:#x}..{last:#x}",
                "memory of its own" + (", or c itself" if label == "c" else ""), f"clone {label} or allocate out",
            )  # fmt: skip


def _read_c(c: torch.Tensor | None, d: torch.Tensor, beta: float) -> torch.Tensor:
    """C as the kernel reads it: expanded to D's shape, n-contiguous. D stands in where C isn't read."""
    if c is None or beta == 0.0:
        return d
    c = c.resolve_neg().expand(d.shape)
    return c if c.shape[1] <= 1 or c.stride(1) == 1 else c.contiguous()


def _problem(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, alpha: float, beta: float) -> Problem:
    (m, k), n = a.shape, b.shape[1]
    return Problem(
        m, n, k,
        a=_view(a, m, k, *a.stride()),
        b=_view(b, n, k, b.stride(1), b.stride(0)),
        c=_view(c, m, n, *c.stride()),
        d=_view(d, m, n, *d.stride()),
        alpha=alpha, beta=beta,
    )  # fmt: skip


def _view(tensor: torch.Tensor, rows: int, columns: int, row_stride: int, column_stride: int) -> View:
    """A tensor's address (its offset in the storage for the simulator, which places storages itself) and geometry."""
    cpu = tensor.device.type == "cpu"
    address = tensor.storage_offset() * tensor.element_size() if cpu else tensor.data_ptr()
    return View(address, (rows, columns), (row_stride, column_stride))
