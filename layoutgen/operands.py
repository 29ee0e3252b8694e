"""What an operator can take: devices, dtypes, shapes and strides of its operands, and how they may lie in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch

from layoutgen.epilogue import Tensor
from layoutgen.errors import OperandError
from layoutgen.plan.model import Plan

# An element type of a spec -> torch's. Tensor cores take f32 for tf32, and leave its low 13 bits out.
TORCH = {
    "f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64,
    "s32": torch.int32, "s8": torch.int8, "u8": torch.uint8, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2,
}  # fmt: skip
_FLOAT_MAX = torch.finfo(torch.float32).max


@dataclass(frozen=True, slots=True)
class Types:
    """The dtypes of an operator's tensors; c's are out's too. scalar: of alpha and beta: f32, f64 or i32.

    reads_c: whether there can be a c. epilogue: the tensors of the epilogue's steps, all of which a call must give.
    """

    a: torch.dtype
    b: torch.dtype
    c: torch.dtype
    scalar: str
    reads_c: bool = True
    epilogue: tuple[Tensor, ...] = ()

    @staticmethod
    def of_plan(plan: Plan) -> Types:
        return Types(
            TORCH[plan.a.dtype], TORCH[plan.b.dtype], TORCH[plan.dtype], plan.scalar, plan.epilogue.reads_c,
            plan.epilogue.tensors,
        )  # fmt: skip

    def of(self, label: str) -> torch.dtype:
        """The dtype of a, b, c, out or a tensor of the epilogue."""
        fused = {each.name: TORCH[each.dtype] for each in self.epilogue}
        return {"a": self.a, "b": self.b, **fused}.get(label, self.c)

    @property
    def read(self) -> tuple[Tensor, ...]:
        """The tensors of the epilogue that it reads."""
        return tuple(each for each in self.epilogue if not each.written)

    @property
    def written(self) -> tuple[Tensor, ...]:
        """Those that it leaves beside the result."""
        return tuple(each for each in self.epilogue if each.written)


def shape_of(tensor: Tensor, m: int, n: int) -> tuple[int, ...]:
    """The shape of a tensor of the epilogue of an M x N result."""
    return {"": (1,), "m": (m,), "n": (n,), "mn": (m, n)}[tensor.modes]


def check_scalars(op: str, scalar: str, alpha: float, beta: float) -> None:
    """Raise OperandError where alpha or beta does not fit the type in which the kernel scales."""
    for label, factor in (("alpha", alpha), ("beta", beta)):
        if scalar == "i32" and not (float(factor).is_integer() and -(2**31) <= factor < 2**31):
            raise refuse(
                op, f"{label} must be an int32, as the sums are", factor, "-2147483648 to 2147483647",
                f"round {label}, or scale by a step of an epilogue, or with a c of floats",
            )  # fmt: skip
        if scalar == "f32" and _FLOAT_MAX < abs(factor) < math.inf:
            raise refuse(op, f"{label} must fit float32", factor, f"up to {_FLOAT_MAX}", f"reduce {label}")


def check_names(
    op: str, types: Types, fused: Mapping[str, torch.Tensor], out: torch.Tensor | None
) -> tuple[Tensor, ...]:
    """The tensors of the epilogue that a call must give. Raises OperandError where it doesn't, or gives others."""
    wanted = types.epilogue if out is not None else types.read
    for each in wanted:
        given = fused.get(each.name)
        if given is None:
            others = [name for name in fused if name not in {each.name for each in wanted}]
            raise refuse(
                op, f"{each.name} must be given" + (", as out is" if each.written else ""),
                f"no {each.name}" + (f", but {', '.join(others)}" if others else ""), _shape_words(each),
                f"pass {each.name}=... by its name, as the spec's epilogue asks for it",
            )  # fmt: skip
        if not isinstance(given, torch.Tensor):
            raise refuse(
                op, f"{each.name} must be a tensor", f"{type(given).__name__}", f"a tensor {_shape_words(each)}",
                f"use torch.as_tensor({each.name})",
            )  # fmt: skip
    if strange := [name for name in fused if name not in {each.name for each in wanted}]:
        known = ", ".join(each.name for each in wanted) or "none"
        late = strange[0] in {each.name for each in types.written}
        fix = f"pass out too, or take {strange[0]} from what the call returns" if late else f"leave {strange[0]} out"
        raise refuse(op, "the epilogue's tensors are those of the spec", strange[0], known, fix)
    return wanted


def refuse(op: str, rule: str, got: object, allowed: object, fix: str) -> OperandError:
    return OperandError(f"{op}: {rule}", got=got, allowed=allowed, fix=fix)


def validate(
    op: str,
    types: Types,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None,
    beta: float,
    out: torch.Tensor | None = None,
    fused: Mapping[str, torch.Tensor] = MappingProxyType({}),
    devices: tuple[str, ...] = ("cpu", "cuda"),
) -> None:
    """What can be told without looking at memory: devices, dtypes, shapes, and the strides of out.

    fused: the epilogue's tensors by name; those that are written come with out.
    """
    wanted = check_names(op, types, fused, out)
    for label, tensor in (("a", a), ("b", b), ("c", c), *fused.items(), ("out", out)):
        if tensor is None:
            continue
        if tensor.layout != torch.strided:
            raise refuse(op, f"{label} must be dense", tensor.layout, torch.strided, f"use {label}.to_dense()")
        if tensor.device.type not in devices:
            raise refuse(op, f"{label} must be on the CPU or on a GPU", tensor.device, "cpu or cuda", f"move {label}")
        if tensor.device != a.device:
            raise refuse(
                op, f"{label} must be on the device of a", f"a on {a.device}, {label} on {tensor.device}", a.device,
                f"use {label}.to({str(a.device)!r})",
            )  # fmt: skip
        if tensor.dtype != (dtype := types.of(label)):
            name = str(dtype).removeprefix("torch.")
            how = "float()" if dtype == torch.float32 else f"to({dtype})"
            written = label == "out" or label in {each.name for each in types.written}
            fix = f"pass one of {dtype}" if written else f"use {label}.{how}"
            raise refuse(op, f"{label} must be {name}", tensor.dtype, dtype, fix)
    for label, tensor in (("a", a), ("b", b)):
        if tensor.dim() != 2:
            raise refuse(op, f"{label} must be a matrix", f"{tensor.dim()} dimensions", 2, "reshape or loop over it")
    if a.shape[1] != b.shape[0]:
        raise refuse(
            op, "the columns of a must match the rows of b", f"a {tuple(a.shape)}, b {tuple(b.shape)}",
            "a (M, K) and b (K, N)", "transpose one of them",
        )  # fmt: skip
    shape = (a.shape[0], b.shape[1])
    if beta != 0.0 and not types.reads_c:
        raise refuse(
            op, "sums that stay integers take no c of floats", f"beta = {beta}", "beta = 0",
            "add it in the epilogue, by a residual step",
        )  # fmt: skip
    for each in wanted:
        if (tuple(fused[each.name].shape) or (1,)) != shape_of(each, *shape):
            raise refuse(
                op, f"{each.name} must have the shape {_shape_words(each)}", tuple(fused[each.name].shape),
                f"{shape_of(each, *shape)}, for a result of {shape}", _reshaped(each, fused[each.name], shape),
            )  # fmt: skip
        if each.written and fused[each.name].stride() not in ((1,), ()) and shape[0] > 1:
            raise refuse(
                op, f"{each.name} must have neighbouring elements", f"strides {fused[each.name].stride()}", "(1,)",
                f"allocate {each.name} as torch.empty(M)",
            )  # fmt: skip
    if beta != 0.0 and c is None:
        raise refuse(op, "beta needs c", f"beta = {beta} and no c", "c of shape (M, N)", "pass c, or beta = 0")
    extents = () if c is None else zip(c.shape[::-1], shape[::-1], strict=False)  # torch broadcasts from the last mode
    if c is not None and (c.dim() > 2 or any(extent not in (1, full) for extent, full in extents)):
        raise refuse(op, "c must broadcast to the result", tuple(c.shape), shape, "pass c of the result's shape")
    if out is None:
        return
    if tuple(out.shape) != shape:
        raise refuse(op, "out must have the result's shape", tuple(out.shape), shape, "allocate it as (M, N)")
    rows, columns = shape
    if not ((columns <= 1 or out.stride(1) == 1) and (rows <= 1 or out.stride(0) >= columns)):
        raise refuse(
            op, "out must have rows of neighbouring elements that don't overlap", f"strides {tuple(out.stride())}",
            "strides (pitch, 1) with pitch >= N", "pass a row-major out, or copy the result",
        )  # fmt: skip


def _reshaped(tensor: Tensor, given: torch.Tensor, shape: tuple[int, int]) -> str:
    """What gives a tensor of the epilogue the shape that it should have."""
    wanted = shape_of(tensor, *shape)
    if given.numel() == math.prod(wanted):
        return f"use {tensor.name}.reshape{wanted}"
    try:
        torch.broadcast_to(given, wanted)
    except RuntimeError:
        return f"pass one element for each {' and '.join(tensor.modes.upper()) or 'call'}"
    return f"use {tensor.name}.expand{wanted}"


def _shape_words(tensor: Tensor) -> str:
    return {"": "(1,)", "m": "(M,)", "n": "(N,)", "mn": "(M, N)"}[tensor.modes]


def refuse_overlap(
    op: str,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None,
    written: Mapping[str, torch.Tensor],
    fused: Mapping[str, torch.Tensor] = MappingProxyType({}),
) -> None:
    """Raise OperandError where a store would change an operand that may yet be read, or another result.

    written: out, and what the epilogue writes. fused: what it reads. A matrix that is read just where out is written, c
    or a residual, may be out itself.
    """
    out = written["out"]
    read = {"a": a, "b": b, "c": c, **fused}
    own = [
        label
        for label in ("c", *fused)
        if (each := read[label]) is not None and (label == "c" or each.dim() == 2) and _is_out(each, out)
    ]
    matrices = ["c", *(label for label, each in fused.items() if each.dim() == 2 and each.dtype == out.dtype)]
    others = {label: each for label, each in read.items() if each is not None}
    for name, result in written.items():
        for label, tensor in others.items():
            if name == "out" and label in own:
                continue
            if label != name and _overlap(result, tensor):
                raise refuse(
                    op, f"{name} must not overlap {label}",
                    f"strides {result.stride()} and {tensor.stride()} in the same memory",
                    "memory of its own" + (f", or {label} itself" if name == "out" and label in matrices else ""),
                    f"clone {label} or allocate {name}",
                )  # fmt: skip
        others[name] = result


def _is_out(tensor: torch.Tensor, out: torch.Tensor) -> bool:
    """Whether a tensor's elements, once for each of out's, are out's."""
    return tensor.dim() <= 2 and tensor.dtype == out.dtype and _elements(tensor.expand(out.shape)) == _elements(out)


def _elements(tensor: torch.Tensor) -> tuple[int, list[tuple[int, int]]]:
    """Address and (extent, stride) per mode; equal for two tensors of a shape whose elements are the same in memory."""
    strides = [stride if extent > 1 else 0 for extent, stride in zip(tensor.shape, tensor.stride(), strict=True)]
    return tensor.data_ptr(), list(zip(tensor.shape, strides, strict=True))


def _rows(tensor: torch.Tensor) -> tuple[int, int, int] | None:
    """A tensor as (rows, pitch, width) in bytes: runs of `width`, their starts a pitch apart; None for any other."""
    itemsize = tensor.element_size()
    modes = sorted((stride, extent) for extent, stride in _elements(tensor)[1] if stride)  # a repeated address is one
    width = modes.pop(0)[1] if modes and modes[0][0] == 1 else 1
    if not modes:
        return 1, 0, width * itemsize
    pitch, rows = modes.pop(0)
    return None if modes else (rows, pitch * itemsize, width * itemsize)


def _overlap(out: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors share a byte; where their rows are not of one pitch, whether their spans meet."""
    if out.numel() == 0 or other.numel() == 0:
        return False

    def size(tensor: torch.Tensor) -> int:
        elements = 1 + sum((extent - 1) * stride for extent, stride in _elements(tensor)[1])
        return int(elements * tensor.element_size())

    distance = other.data_ptr() - out.data_ptr()
    if distance >= size(out) or distance <= -size(other):
        return False
    mine, its = _rows(out), _rows(other)
    if mine is None or its is None:
        return True
    pitches = {pitch for rows, pitch, _ in (mine, its) if rows > 1}
    if len(pitches) != 1 or max(mine[2], its[2]) > (pitch := pitches.pop()):
        return True
    # Byte x of row i of out is byte y of row j of other where (i - j) * pitch + x - y == distance, and |x - y| < pitch.
    down, right = divmod(distance, pitch)
    apart = ((down, right), (down + 1, right - pitch))
    return any(-its[0] < rows < mine[0] and -its[2] < columns < mine[2] for rows, columns in apart)
