"""What of the GPU's Lab runs without one: operands, the reference, and a timed call on events of the test's own."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch

from layoutgen.bench import MODES, allowed_error, gpu
from layoutgen.bench.gpu import Gpu, Reference, cublas, matrix
from layoutgen.errors import LayoutgenError, RequestError


def operands(m: int, n: int, k: int, modes: str) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return matrix(m, k, modes[0] == "k", random), matrix(n, k, modes[1] == "k", random).t()


@pytest.mark.parametrize("modes", MODES)
def test_operands_are_contiguous_in_the_named_modes(modes: str) -> None:
    a, b = operands(5, 7, 3, modes)
    assert (a.shape, b.shape) == ((5, 3), (3, 7))
    assert a.stride() == ((3, 1) if modes[0] == "k" else (1, 5))
    assert b.stride() == ((1, 3) if modes[1] == "k" else (7, 1))
    assert float(a.min()) < 0 < float(a.max()) and float(a.abs().max()) <= 1


@pytest.mark.parametrize("m", [1, 130, 300, 1000])
def test_the_reference_finds_what_is_wrong(m: int) -> None:
    a, b = operands(m, 33, 65, "kn")
    reference, out = Reference(a, b), torch.empty(m, 33)
    cublas(a, b, out)
    assert reference.error(out, None) <= allowed_error(65)
    assert reference.error(a[:, 1:] @ b[1:], None) > allowed_error(65)  # a k that is missing
    for row in {0, m - 1, m // 2 // 128 * 128}:
        wrong = out.clone()
        wrong[row : row + 32] *= 1.001  # a tile of 32 rows, wherever it is
        assert reference.error(wrong, None) > allowed_error(65)
        wrong[row : row + 32] = float("nan")
        assert not reference.error(wrong, None) <= allowed_error(65)


@dataclass
class Events:
    """torch.cuda.Event for `late` timed calls whose first event has passed, and the rest as they should be.

    log: what was enqueued, in order.
    """

    late: int
    log: list[str] = field(default_factory=list)
    made: int = 0

    def __call__(self, *, enable_timing: bool) -> Event:
        assert enable_timing
        self.made += 1
        return Event(self, "start" if self.made % 2 else "end")


@dataclass
class Event:
    of: Events
    name: str

    def record(self) -> None:
        self.of.log.append(self.name)

    def query(self) -> bool:
        return self.of.made // 2 <= self.of.late

    def synchronize(self) -> None:
        self.of.log.append("wait")

    def elapsed_time(self, end: Event) -> float:
        assert (self.name, end.name) == ("start", "end")
        return float(self.of.made)


class Flush:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def zero_(self) -> None:
        self.log.append("flush")


def on(events: Events, monkeypatch: pytest.MonkeyPatch) -> Gpu:
    monkeypatch.setattr(torch.cuda, "Event", events)
    made = object.__new__(Gpu)
    made._flushes, made._flush = gpu._FLUSHES, Flush(events.log)  # type: ignore[assignment]
    return made


def test_the_events_hold_the_call_alone_and_flushes_go_before(monkeypatch: pytest.MonkeyPatch) -> None:
    events = Events(late=0)
    assert on(events, monkeypatch).milliseconds(lambda: events.log.append("call")) == 2.0
    assert events.log == ["flush"] * gpu._FLUSHES + ["start", "call", "end", "wait"]


def test_a_call_whose_python_may_be_in_its_time_is_timed_again_behind_more_flushes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = Events(late=2)
    timer = on(events, monkeypatch)
    assert timer.milliseconds(lambda: events.log.append("call")) == 6.0
    assert events.log.count("call") == 3 and events.log.count("flush") == (1 + 2 + 4) * gpu._FLUSHES
    events.log.clear()
    timer.milliseconds(lambda: events.log.append("call"))
    assert events.log.count("flush") == 4 * gpu._FLUSHES  # what was learnt is kept
    with pytest.raises(LayoutgenError, match="no Python is in its time"):
        on(Events(late=99), monkeypatch).milliseconds(lambda: None)


def test_a_torch_without_cuda_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RequestError, match="install a torch built for CUDA"):
        Gpu()


def test_triton_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(RequestError, match="pip install triton"):
        object.__new__(Gpu).rival("triton", None)
