"""Many kernels at once, each compiled in a process of its own: NVRTC lets one thread of a process compile at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from layoutgen.build.store import Artifact, build, cached

_POLL_SECONDS = 0.02
_WORK = "from layoutgen.build.many import work; work()"


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel to build; as the arguments of `build`."""

    source_text: str
    kernel_name: str
    arch: str


def build_many(
    jobs: Sequence[Job], *, workers: int | None = None, done: Callable[[Job], None] = lambda job: None
) -> list[Artifact]:
    """Build kernels, or take them from the cache.

    Args:
        workers: processes at a time; default one a core.
        done: told of each job when its kernel is there; in any order, equal jobs once.

    Raises:
        BuildError: as `build`, for the first job in order that fails; the others are in the cache all the same.
    """
    most = workers or len(os.sched_getaffinity(0))
    waiting, failed = list(dict.fromkeys(jobs)), set[Job]()
    running: dict[Job, subprocess.Popen[bytes]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < most:
                job = waiting.pop(0)
                if cached(**asdict(job)) is None:
                    running[job] = _start(job)
                else:
                    done(job)
            for job, process in list(running.items()):
                if process.poll() is not None:
                    del running[job]
                    if process.returncode == 0:
                        done(job)
                    else:
                        failed.add(job)
            if running:
                time.sleep(_POLL_SECONDS)
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    built = []
    for job in jobs:
        built.append(build(**asdict(job)))  # from the cache; a job that failed does so here again, and says why
        if job in failed:
            failed.remove(job)
            done(job)
    return built


def _start(job: Job) -> subprocess.Popen[bytes]:
    with tempfile.TemporaryFile() as text:
        text.write(json.dumps(asdict(job)).encode())
        text.seek(0)
        return subprocess.Popen(
            [sys.executable, "-c", _WORK],
            stdin=text,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},  # our toolchain is its
        )


def work() -> None:
    """What a worker does: the job that it reads leaves an artifact in the cache."""
    build(**json.load(sys.stdin))
