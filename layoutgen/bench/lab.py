"""What a bench needs of the world, as a protocol: a GPU is one, tests have another with a clock of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from layoutgen.bench.result import Conditions, Machine
from layoutgen.bench.rounds import Timer
from layoutgen.hw.devices import Device
from layoutgen.plan import Plan
from layoutgen.problem import Extents
from layoutgen.rounding import F32, Types
from layoutgen.spec import Spec

Operation = Callable[[Any, Any, Any], object]  # (a, b, out): out = a @ b


class Lab(Timer, Protocol):
    """Operands, operations on them, and how they are timed. Used as a context: what it changes is restored."""

    device: Device
    arch: str

    def __enter__(self) -> Lab: ...

    def __exit__(self, *raised: object) -> None: ...

    def machine(self) -> Machine: ...

    def rival(self, name: str, plan: Plan | None) -> Operation:
        """One of `layoutgen.bench.RIVALS`. plan: whose epilogue "torch" does after the product.

        Raises RequestError where what it needs is not installed."""
        ...

    def operator(self, spec: Spec, plans: tuple[Plan, ...]) -> Operation: ...

    def operands(self, shape: Extents, modes: str, types: Types = F32) -> tuple[Any, Any, Any]:
        """a (M, K), b (K, N) and out (M, N). Raises LayoutgenError where they don't fit."""
        ...

    def error(self, name: str, operation: Operation, operands: tuple[Any, Any, Any]) -> float:
        """Run it once -> how far out is from float64, as `METHOD` says; NaN or infinity where something is not finite.

        Raises BuildError or OperandError for a launch that is refused, which leaves the GPU as it was; LayoutgenError
        for a fault after which nothing more can run there. name: for messages.
        """
        ...

    def conditions(self, shape: Extents, modes: str, since: float) -> Conditions:
        """What the GPU did from `since` (of `seconds()`) until now."""
        ...
