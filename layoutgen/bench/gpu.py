"""The GPU as a Lab: operands, rivals, and one timed call with a cold L2 and a full queue."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import time
from collections.abc import Callable

import torch

from layoutgen import build, run
from layoutgen.bench.lab import Operation
from layoutgen.bench.result import Conditions, Machine
from layoutgen.bench.rounds import Call
from layoutgen.bench.smi import Sampler, conditions
from layoutgen.errors import LayoutgenError, RequestError, counted
from layoutgen.fused import applied, off, random_tensors, unfused
from layoutgen.operands import TORCH
from layoutgen.ops import Operator
from layoutgen.plan import Plan
from layoutgen.problem import Extents
from layoutgen.rounding import F32, Types
from layoutgen.spec import Spec

CHECKED_ROWS = 256
_FLUSHES, _MOST_FLUSHES = 8, 1024

Operands = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def cublas(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """torch.mm, which is cuBLAS; of int8 to int32 torch._int_mm. Its f32 is plain where the precision is "highest"."""
    if a.dtype == torch.int8:
        torch._int_mm(a, b, out=out)
    else:
        torch.mm(a, b, out=out)


def matrix(
    rows: int, k: int, contiguous_k: bool, random: torch.Generator, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """(rows, k), uniform on (-1, 1), or integers from -127 to 127, contiguous in k or in its rows."""
    extents = (rows, k) if contiguous_k else (k, rows)
    if dtype == torch.int8:
        values = torch.randint(-127, 128, extents, generator=random, device=random.device, dtype=dtype)
    else:
        values = torch.rand(extents, generator=random, device=random.device).mul_(2).sub_(1).to(dtype)
    return values if contiguous_k else values.t()


class Reference:
    """a @ b in float64, and |a| @ |b|, in the first and last CHECKED_ROWS rows and as many spread between them."""

    def __init__(self, a: torch.Tensor, b: torch.Tensor) -> None:
        m, some = a.shape[0], CHECKED_ROWS
        spread = torch.linspace(0, m - 1, min(m, some), device=a.device).round().long()
        ends = torch.arange(m, device=a.device)
        self._rows = torch.cat((ends[:some], ends[-some:], spread)).unique()
        rows, columns = a[self._rows].double(), b.double()
        self._exact = rows @ columns
        self._scale = rows.abs() @ columns.abs()

    def error(self, d: torch.Tensor, operation: object) -> float:
        """The largest |d - a b| / (|a| |b|), or of what the operation's epilogue makes of them; NaN or infinity where d
        has one."""
        exact, scale = self._exact, self._scale
        if isinstance(operation, Fused):
            exact, scale = applied(operation.plan, exact, scale, operation.tensors, self._rows)
        return off(d[self._rows], exact, scale)


class Fused:
    """A product and an epilogue as one Operation. tensors: the epilogue's, made at random for each shape."""

    def __init__(self, plan: Plan, work: Callable[..., object]) -> None:
        self.plan, self._work = plan, work
        self._shape: Extents | None = None
        self.tensors: dict[str, torch.Tensor] = {}

    def __call__(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        shape = (*a.shape, b.shape[1])
        if self._shape != shape:
            random = torch.Generator(a.device).manual_seed(1)
            self.tensors = random_tensors(self.plan, (a.shape[0], b.shape[1], a.shape[1]), random)
            self._shape = shape
        self._work(a, b, out=out, **self.tensors)


class Gpu:
    """A Lab on the GPU that CUDA counts first.

    Between the events of a timed call stands the call alone. Before them the L2 is flushed, by writing a buffer of
    twice its size, several times: that keeps the GPU busy for longer than the CPU needs to enqueue the call (30 to 50
    us of Python), so that the kernel follows the first event at once and no Python is in its time. That this was so is
    checked each time: a call whose first event had passed before all was enqueued is timed again behind more flushes.

    torch.mm runs in plain fp32 ("highest") inside the context, or in TF32 ("high") for specs of tf32; the precision
    before is restored.
    """

    def __init__(self) -> None:
        if not torch.cuda.is_available():
            raise RequestError(
                "a bench measures on an NVIDIA GPU, through torch",
                got=f"a GPU, but torch {torch.__version__} that sees none",
                fix="install a torch built for CUDA 13",
            )
        self._torch_device = torch.device("cuda", 0)
        self._gpu = build.Device(0)
        self.device = run.default_device()
        self.arch = self._gpu.arch
        self._uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}"
        self._sampler = Sampler(self._uuid)
        self._flushes = _FLUSHES
        self._reference: Reference | None = None
        self._triton: str | None = None

    def __enter__(self) -> Gpu:
        self._precision = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        torch.cuda.set_device(self._torch_device)
        self._flush = torch.empty(2 * self._gpu.l2_bytes, dtype=torch.uint8, device=self._torch_device)
        self._sampler.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._sampler.stop()
        torch.set_float32_matmul_precision(self._precision)
        self._reference = None
        del self._flush
        torch.cuda.empty_cache()

    def machine(self) -> Machine:
        query = ["nvidia-smi", "-i", self._uuid, "--query-gpu=driver_version", "--format=csv,noheader"]
        try:
            driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            driver = "unknown"
        try:
            own = importlib.metadata.version("layoutgen")
        except importlib.metadata.PackageNotFoundError:  # run from a source tree that is not installed
            own = "source"
        return Machine(
            self._gpu.name, driver, str(torch.__version__), str(torch.version.cuda), platform.python_version(), own,
            self._triton,
        )  # fmt: skip

    def rival(self, name: str, plan: Plan | None) -> Operation:
        if name == "cublas":
            return cublas
        if name == "torch":
            assert plan is not None  # RIVALS says when it is one

            def by_torch(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, **tensors: torch.Tensor) -> None:
                # Into memory of its own, as a user's would be; that it is out is for the check alone.
                out.set_(unfused(plan, a, b, tensors))

            return Fused(plan, by_torch)
        try:
            import triton

            from layoutgen.bench.triton_sgemm import sgemm
        except ImportError as error:
            raise RequestError(
                "the rival triton is installed", got=error, fix="pip install triton, or leave it out of --against"
            ) from error
        self._triton = triton.__version__
        return sgemm

    def operator(self, spec: Spec, plans: tuple[Plan, ...]) -> Operation:
        operator = Operator(spec, plans)  # not a registered one: two specs being tuned may have one name
        if plans[0].epilogue.chain:
            return Fused(plans[0], operator.eager_out)
        return lambda a, b, out: operator.eager_out(a, b, out=out)

    def operands(self, shape: Extents, modes: str, types: Types = F32) -> Operands:
        m, n, k = shape
        torch.set_float32_matmul_precision("high" if types.a == "tf32" else "highest")
        self._reference = None
        random = torch.Generator(self._torch_device).manual_seed(0)
        try:
            torch.cuda.empty_cache()
            a = matrix(m, k, modes[0] == "k", random, TORCH[types.a])
            b = matrix(n, k, modes[1] == "k", random, TORCH[types.b]).t()
            out = torch.empty((m, n), device=self._torch_device, dtype=TORCH[types.c])
            self._reference = Reference(a, b)
        except torch.OutOfMemoryError as error:
            free, total = torch.cuda.mem_get_info()
            raise LayoutgenError(
                "the operands of a case fit in the GPU's memory, and b twice more in float64",
                got=f"M, N, K = {m}, {n}, {k}; {free >> 20} of {total >> 20} MiB are free",
                fix="leave this shape out, or end what else uses the GPU",
            ) from error
        return a, b, out

    def error(self, name: str, operation: Operation, operands: Operands) -> float:
        a, b, out = operands
        assert self._reference is not None  # made with the operands
        out.fill_(float("nan") if out.is_floating_point() else -1)
        try:
            operation(a, b, out)
            return self._reference.error(out, operation)
        except torch.AcceleratorError as error:
            raise LayoutgenError(
                f"{name} runs without a fault of the GPU, which ends all that this process may do there",
                got=str(error).splitlines()[0],
                fix=f"leave {name} out; compute-sanitizer tells which access it is",
            ) from error

    def conditions(self, shape: Extents, modes: str, since: float) -> Conditions:
        return conditions(shape, modes, self._sampler.since(since))

    def seconds(self) -> float:
        return time.monotonic()

    def milliseconds(self, call: Call) -> float:
        while True:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            for _ in range(self._flushes):
                self._flush.zero_()
            start.record()
            call()
            end.record()
            late = start.query()
            end.synchronize()
            if not late:
                return float(start.elapsed_time(end))
            self._more_flushes()

    def _more_flushes(self) -> None:
        """The CPU was slower than the GPU: the call's Python may be in what was measured."""
        if self._flushes >= _MOST_FLUSHES:
            raise LayoutgenError(
                "a call is enqueued while the L2 is being flushed, so that no Python is in its time",
                got=f"a call that was not behind {counted(self._flushes, 'flush')}",
                fix="free the CPU of other work, and time no call that waits for the GPU",
            )
        self._flushes *= 2
