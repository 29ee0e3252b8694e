"""Many kernels at once: each in a process of its own, into the cache that all share."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from layoutgen.build import Job, build_many, cached, many
from layoutgen.errors import BuildError

KERNEL = 'extern "C" __global__ void {0}(float* x) {{ x[0] = {1}; }}'


def job(name: str, value: str = "1.0f") -> Job:
    return Job(KERNEL.format(name, value), name, "sm_90a")


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYOUTGEN_CACHE", str(tmp_path))


def test_each_is_built_once_and_comes_back_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Job] = []
    jobs = [job("one"), job("two"), job("one")]
    built = build_many(jobs, done=told.append)
    assert [each.kernel_name for each in built] == ["one", "two", "one"]
    assert all(each.from_cache for each in built)  # a process of its own compiled it
    assert sorted(each.kernel_name for each in told) == ["one", "two"]
    monkeypatch.setattr(many, "_start", lambda job: pytest.fail("it was built before"))
    assert build_many(jobs, workers=1, done=told.append) == built and len(told) == 4


def test_one_that_fails_says_why_and_the_others_are_kept() -> None:
    bad, good = job("bad", "nonsense"), job("good")
    with pytest.raises(BuildError, match="nonsense"):
        build_many([bad, good])
    assert cached(good.source_text, "good", "sm_90a") is not None
    assert cached(bad.source_text, "bad", "sm_90a") is None


def test_an_interruption_ends_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def slow(job: Job) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["sleep", "60"]))
        if len(started) == 2:
            threading.Thread(target=lambda: (time.sleep(0.1), os.kill(os.getpid(), signal.SIGINT))).start()
        return started[-1]

    monkeypatch.setattr(many, "_start", slow)
    with pytest.raises(KeyboardInterrupt):
        build_many([job(f"k{n}") for n in range(4)], workers=2)
    assert len(started) == 2
    assert [process.returncode for process in started] == [-signal.SIGKILL] * 2
