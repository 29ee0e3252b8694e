"""Spec -> torch.ops.layoutgen.<name>: operands checked, a variant chosen, the kernel launched or simulated."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from string import ascii_lowercase
from typing import Any, TypeAlias

import torch
from torch.autograd.forward_ad import unpack_dual

from layoutgen import paths, run
from layoutgen import spec as spec_module
from layoutgen.check import require_legal
from layoutgen.emitted import require_emitted
from layoutgen.errors import LayoutgenError, OperandError
from layoutgen.operands import Types, check_names, check_scalars, refuse, refuse_overlap, validate
from layoutgen.plan import Plan
from layoutgen.problem import Problem, View, of_modes
from layoutgen.spec import Spec

_SIGNATURE = "Tensor a, Tensor b, Tensor? c=None, float alpha=1.0, float beta=0.0"
_library = torch.library.Library("layoutgen", "FRAGMENT")
_operators: dict[str, Operator] = {}
_lock = threading.RLock()
Result: TypeAlias = "torch.Tensor | tuple[torch.Tensor, ...]"


class Operator:
    """A spec as a PyTorch operator: ``op(a, b, c=None, alpha=1.0, beta=0.0, out=None)`` = alpha * a @ b + beta * c.

    Where the spec has an epilogue, its steps come after that, and its tensors are keywords of their names: bias (N) or
    (M), residual (M, N), scale of one element, (M) or (N). One that it writes, amax (M), is returned beside the result,
    (d, amax), and is a keyword where out is given.

    a is (M, K), b is (K, N), c broadcasts to (M, N), each of its type in the spec, on one GPU or on the CPU, with any
    strides. out is (M, N), of c's type, with rows of neighbouring elements at any pitch; it may be c itself, and its
    rows may lie between those of another operand, but share no element with one.

    beta = 0 does not read c and alpha = 0 does not read a or b (as in BLAS), so that NaN and Inf in what isn't read
    don't reach the result. Each sum is one chain in the order of k, of fused multiply-adds or of an MMA atom's sums;
    then it is scaled by alpha, beta * c is added in one more, and it is rounded to out's type: a row of the result has
    the same bits whatever M and N are, whichever variant runs, and in the simulator as on a GPU. Under schedule.kind
    stream_k some sums are of two chains or more, by the extents and the GPU: there the same call has the same bits.
    Where a spec splits f32, an Inf or a NaN changes the last bits of what shares its tile of C.
    gelu and silu of f32 use a GPU's approximate powers of 2, which the simulator rounds in another way in the last bit.

    Variants are built when first needed. Raises OperandError, before anything is launched, for what it can't take.
    """

    def __init__(self, spec: Spec, plans: tuple[Plan, ...]) -> None:
        self.spec = spec
        self.plans = plans
        self._types = Types.of_plan(plans[0])
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
        **fused: torch.Tensor,
    ) -> Result:
        packet = getattr(torch.ops.layoutgen, self.name)
        self._known(fused, out)
        if out is None:
            result: Result = packet(a, b, c, alpha, beta, **fused)
            return result
        packet(a, b, c, alpha, beta, out=out, **fused)
        written = tuple(fused[each.name] for each in self._types.written)
        return (out, *written) if written else out

    def __repr__(self) -> str:
        return f"<layoutgen operator {self.name}: {', '.join(plan.variant for plan in self.plans)}>"

    def variant_for(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor | None = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        out: torch.Tensor | None = None,
        **fused: torch.Tensor,
    ) -> Plan:
        """The plan that a call with these operands would run. Raises OperandError as the call would."""
        self._admit(a, b, c, alpha, beta, out, fused)
        d = a.new_empty((a.shape[0], b.shape[1]), dtype=self._types.c, device="meta") if out is None else out
        if out is None:
            fused = fused | self._results(a.shape[0], torch.device("meta"))
        return run.choose(self.plans, self._problem(a, b, _read_c(c, d, beta), d, alpha, beta, self._read(fused)))

    def warm_up(self, device: int | None = None) -> None:
        """Build and load every variant on a GPU (default: the current one) now, as a CUDA graph capture needs."""
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
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor | None = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        **fused: torch.Tensor,
    ) -> Result:
        """What a call does, without torch's dispatcher: a spec needs no registered name for it."""
        self._admit(a, b, c, alpha, beta, None, fused)
        d = torch.empty((a.shape[0], b.shape[1]), dtype=self._types.c, device=a.device)
        written = self._results(a.shape[0], a.device)
        self._launch(a, b, c, alpha, beta, d, fused | written)
        return (d, *written.values()) if written else d

    def eager_out(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor | None = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        *,
        out: torch.Tensor,
        **fused: torch.Tensor,
    ) -> None:
        """What a call with `out` does, without torch's dispatcher."""
        self._admit(a, b, c, alpha, beta, out, fused)
        self._launch(a, b, c, alpha, beta, out, fused)
        for result in (out, *(fused[each.name] for each in self._types.written)):
            if not result.is_inference():
                torch.autograd.graph.increment_version(result)  # so that autograd notices an overwritten tensor

    def _admit(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor | None,
        alpha: float,
        beta: float,
        out: torch.Tensor | None,
        fused: Mapping[str, torch.Tensor],
    ) -> None:
        """Raise OperandError, naming the operand, for whatever the kernels can't take; nothing is allocated before."""
        validate(self.name, self._types, a, b, c, beta, out, fused)
        if out is not None:
            written = {"out": out, **{each.name: fused[each.name] for each in self._types.written}}
            read = {each.name: fused[each.name] for each in self._types.read}
            refuse_overlap(self.name, a, b, c if beta != 0.0 else None, written, read)
        check_scalars(self.name, self._types.scalar, alpha, beta)
        k = a.shape[1] if alpha != 0.0 else 0
        run.admit(self.plans[0], a.shape[0], b.shape[1], k, simulated=a.device.type == "cpu")

    def _known(self, fused: Mapping[str, torch.Tensor], out: torch.Tensor | None) -> None:
        """Raise OperandError for keywords that aren't the operator's, which torch's dispatcher would say less of."""
        if fused or self._types.epilogue:
            check_names(self.name, self._types, fused, out)

    def _results(self, m: int, device: torch.device) -> dict[str, torch.Tensor]:
        """What the epilogue writes, for M rows."""
        return {
            each.name: torch.empty(m, dtype=self._types.of(each.name), device=device) for each in self._types.written
        }

    def _read(self, fused: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The epilogue's tensors as the kernel reads them, in its order: those of columns contiguous in them."""
        return {each.name: _as_read(fused[each.name]) for each in self._types.epilogue}

    def _launch(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor | None,
        alpha: float,
        beta: float,
        d: torch.Tensor,
        fused: Mapping[str, torch.Tensor],
    ) -> None:
        for each in self._types.written:
            fused[each.name].zero_()
        if d.numel() == 0:
            return
        a, b, c = a.resolve_neg(), b.resolve_neg(), _read_c(c, d, beta)
        read = self._read(fused)
        problem = self._problem(a, b, c, d, alpha, beta, read)
        plan = run.choose(self.plans, problem)
        if d.device.type == "cpu":
            run.on_cpu(plan, problem, {"a": a, "b": b, "c": c, "d": d, **read})
            return
        ordinal = d.device.index
        if ordinal == torch.cuda.current_device():
            self._enqueue(plan, problem, ordinal)
        else:
            with torch.cuda.device(ordinal):
                self._enqueue(plan, problem, ordinal)

    def _problem(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor,
        d: torch.Tensor,
        alpha: float,
        beta: float,
        fused: Mapping[str, torch.Tensor],
    ) -> Problem:
        (m, k), n = a.shape, b.shape[1]
        return Problem(
            m, n, k,
            a=_view(a, m, k, *a.stride()),
            b=_view(b, n, k, b.stride(1), b.stride(0)),
            c=_view(c, m, n, *c.stride()),
            d=_view(d, m, n, *d.stride()),
            alpha=alpha, beta=beta,
            epilogue=tuple(
                of_modes(each, _address(fused[each.name]), m, n, fused[each.name].stride()[0] if m > 1 else 0)
                for each in self._types.epilogue
            ),
        )  # fmt: skip

    def _enqueue(self, plan: Plan, problem: Problem, ordinal: int) -> None:
        """Launch on the current stream, with a workspace where blocks share tiles."""
        compiled, stream = self._compiled(plan, ordinal), torch.cuda.current_stream(ordinal).cuda_stream
        shared = compiled.shared_tiles(problem)
        if not shared.blocks:
            compiled(problem, stream)
            return
        workspace = torch.empty(run.workspace_bytes(plan, shared), dtype=torch.uint8, device=ordinal)
        workspace[: run.flag_bytes(shared)].zero_()
        compiled(problem, stream, shared, workspace.data_ptr())


def load(source: str | Path | Spec) -> Operator:
    """Register a spec as ``torch.ops.layoutgen.<name>`` and return it as an Operator.

    source: a path, the name of a spec that comes with layoutgen, or a Spec.
    Loading the same spec again returns the same operator.
    Raises SpecError, BuildError for a spec of an AMD architecture, PlanError with check's findings where the spec is
    illegal for the device here, or LayoutgenError where another spec of that name is registered.
    """
    spec = source if isinstance(source, Spec) else spec_module.load(paths.find_spec(source))
    require_emitted(spec)
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
        if hasattr(torch.ops.layoutgen, spec.name):
            raise LayoutgenError(
                "an operator's name is free in torch.ops.layoutgen",
                got=f"torch has given {spec.name} a meaning of its own",
                fix="give the spec another name",
                where=spec.where("name"),
            )
        operator = Operator(spec, require_legal(spec, run.default_device()).plans)
        _register(operator)
        _operators[spec.name] = operator
        return operator


def _register(operator: Operator) -> None:
    """Define the operator, and its ``.out`` overload, which returns nothing, as torch.compile wants of a mutation."""
    name, types = operator.name, Types.of_plan(operator.plans[0])

    def fake(a: Any, b: Any, c: Any = None, alpha: float = 1.0, beta: float = 0.0, **fused: Any) -> Result:
        validate(name, types, a, b, c, beta, fused=fused, devices=("cpu", "cuda", "meta"))
        result: torch.Tensor = a.new_empty((a.shape[0], b.shape[1]), dtype=types.c)
        written = tuple(a.new_empty((a.shape[0],), dtype=types.of(each.name)) for each in types.written)
        return (result, *written) if written else result

    def fake_out(
        a: Any, b: Any, c: Any = None, alpha: float = 1.0, beta: float = 0.0, *, out: Any, **fused: Any
    ) -> None:
        validate(name, types, a, b, c, beta, out, fused, devices=("cpu", "cuda", "meta"))

    read = [f"Tensor {each.name}" for each in types.read]
    written = [
        f"Tensor({letter}!) {each.name}" for letter, each in zip(ascii_lowercase[1:], types.written, strict=False)
    ]
    returned = ", ".join(["Tensor"] * (1 + len(written)))
    _library.define(f"{name}({', '.join([_SIGNATURE, *['*'][: len(read)], *read])}) -> ({returned})")
    _library.define(f"{name}.out({', '.join([_SIGNATURE, '*', 'Tensor(a!) out', *read, *written])}) -> ()")
    packet = getattr(torch.ops.layoutgen, name)
    kernels = ((name, packet.default, operator.eager, fake), (f"{name}.out", packet.out, operator.eager_out, fake_out))
    for qualified, overload, eager, meta in kernels:
        # One implementation for every backend: an operand on a device we lack gets our message, not the dispatcher's.
        _library.impl(qualified, _opaque(eager), "CompositeExplicitAutograd")
        _library.impl(qualified, _opaque(_without_derivative(name, overload)), "Autograd")
        torch.library.register_fake(f"layoutgen::{qualified}", meta, lib=_library)


def _without_derivative(op: str, overload: Callable[..., Any]) -> Callable[..., Any]:
    """The Autograd kernel: refuse a call that someone could differentiate, pass on any other.

    Below autograd nothing shows that torch.func.grad or torch.func.jvp will ask, and torch would answer with zeros.
    """

    def kernel(*args: Any, **kwargs: Any) -> Any:
        recorded = torch.is_grad_enabled()
        for label, tensor in (*zip("abc", args, strict=False), *kwargs.items()):
            if tensor is not None and (recorded and tensor.requires_grad or unpack_dual(tensor).tangent is not None):
                raise refuse(
                    op, f"{label} must not require grad: the operator has no derivative yet", "a tensor that does",
                    "requires_grad=False, or torch.no_grad()", f"use {label}.detach(), or call it in torch.no_grad()",
                )  # fmt: skip
        with torch._C._AutoDispatchBelowAutograd():
            return overload(*args, **kwargs)

    return kernel


def _opaque(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, hidden from Dynamo, which would trace into it from a call that broke its graph.

    Dynamo takes a second to import: where nothing else has, there is nothing to hide from.
    """
    hidden: list[Callable[..., Any]] = []

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return function(*args, **kwargs)
        if not hidden:
            hidden.append(torch.compiler.disable(function))
        return hidden[0](*args, **kwargs)

    return kernel


def _read_c(c: torch.Tensor | None, d: torch.Tensor, beta: float) -> torch.Tensor:
    """C as the kernel reads it: expanded to D's shape, n-contiguous. D stands in where C isn't read."""
    if c is None or beta == 0.0:
        return d
    c = c.resolve_neg().expand(d.shape)
    return c if c.shape[1] <= 1 or c.stride(1) == 1 else c.contiguous()


def _as_read(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the epilogue with neighbouring elements, in its rows where it has two modes."""
    tensor = tensor.resolve_neg()
    if tensor.dim() < 2:
        return tensor.reshape(-1).contiguous()
    return tensor if tensor.shape[1] <= 1 or tensor.stride(1) == 1 else tensor.contiguous()


def _address(tensor: torch.Tensor) -> int:
    """Its first byte: in its storage for the simulator, which places storages itself."""
    cpu = tensor.device.type == "cpu"
    return int(tensor.storage_offset() * tensor.element_size() if cpu else tensor.data_ptr())


def _view(tensor: torch.Tensor, rows: int, columns: int, row_stride: int, column_stride: int) -> View:
    """A tensor's address and geometry.

    torch gives any stride to a mode of one element. The kernel gets 0: it forms addresses there, though it reads none.
    """
    return View(_address(tensor), (rows, columns), (row_stride if rows > 1 else 0, column_stride if columns > 1 else 0))
