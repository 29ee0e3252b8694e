"""A Lab without a GPU: a clock of its own, and sides that take and err as the test says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from layoutgen.bench import Conditions, Machine, Operation, Reading
from layoutgen.errors import LayoutgenError
from layoutgen.hw.devices import DEVICES, Device
from layoutgen.plan import Plan
from layoutgen.problem import Extents
from layoutgen.rounding import F32, Types
from layoutgen.spec import Spec

MACHINE = Machine("NVIDIA H200", "580.1", "2.11.0+cu130", "13.0", "3.12.3", "0.1.0")


@dataclass
class FakeLab:
    """times: name -> milliseconds of its n-th timed call. errors: name -> what it is off by, or what it raises.

    Its wall clock runs with what is timed. log: every call that was made, in order; entered: whether it is in use.
    """

    times: dict[str, Callable[[int], float]]
    errors: dict[str, float | LayoutgenError] = field(default_factory=dict)
    device: Device = DEVICES["h200"]
    arch: str = "sm_90a"
    log: list[tuple[str, str]] = field(default_factory=list)
    entered: bool = False
    now: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)

    def __enter__(self) -> FakeLab:
        self.entered = True
        return self

    def __exit__(self, *raised: object) -> None:
        self.entered = False

    def machine(self) -> Machine:
        return MACHINE

    def rival(self, name: str, plan: Plan | None) -> Operation:
        return self._named(name)

    def operator(self, spec: Spec, plans: tuple[Plan, ...]) -> Operation:
        return self._named(spec.name)

    def _named(self, name: str) -> Operation:
        def operation(a: Any, b: Any, out: Any) -> str:
            assert (a, b, out) == ("a", "b", "out")
            return name

        return operation

    def operands(self, shape: Extents, modes: str, types: Types = F32) -> tuple[Any, Any, Any]:
        self.log.append(("operands", f"{shape} {modes}"))
        self.counts.clear()
        return "a", "b", "out"

    def error(self, name: str, operation: Operation, operands: tuple[Any, Any, Any]) -> float:
        assert operation(*operands) == name
        self.log.append(("error", name))
        found = self.errors.get(name, 1e-7)
        if isinstance(found, LayoutgenError):
            raise found
        return found

    def conditions(self, shape: Extents, modes: str, since: float) -> Conditions:
        return Conditions(shape, modes, 2, sm_mhz=Reading(1980.0, 1965.0, 1980.0), watts=Reading(650.0, 600.0, 700.0))

    def seconds(self) -> float:
        return self.now

    def milliseconds(self, call: Callable[[], object]) -> float:
        name = str(call())
        self.log.append(("timed", name))
        self.counts[name] = self.counts.get(name, -1) + 1
        took = self.times[name](self.counts[name])
        self.now += 0.1
        return took
