"""Source -> Artifact, kept in a content-addressed cache.

An entry is a folder that appears in one step (a rename), so a reader sees all of it or nothing. It carries the SHA-256
of its files and of its own manifest, so one that a crash has cut short is built again instead of trusted. A lock lets
one process compile while the others wait; it is the operating system's (flock), so it goes when its holder is killed.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.metadata
import json
import os
import re
import resource
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from layoutgen import paths
from layoutgen.build import nvrtc, ptxas
from layoutgen.build.ptxas import Resources
from layoutgen.build.tools import toolchain
from layoutgen.errors import BuildError

_FORMAT = 1  # of an entry; part of the key, so entries of another format are never read
_STALE_SECONDS = 24 * 3600.0  # after which a temporary folder's writer is surely gone
_COMPILING = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvcc", "nvidia-cutlass", "nvidia-cuda-cccl", "nvidia-cuda-runtime",
              "nvidia-cuda-crt")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Artifact:
    """A compiled kernel.

    Attributes:
        key: SHA-256 of all that the result depends on. kernel_name, arch: as asked for.
        ptx: PTX text. cubin: machine code for `arch`. resources: what ptxas reports.
        seconds: CPU seconds that compiling and assembling took, also when the artifact came from the cache.
        from_cache: False where this call compiled it.
        folder: where the files lie.
    """

    key: str
    kernel_name: str
    arch: str
    ptx: str = field(repr=False)
    cubin: bytes = field(repr=False)
    resources: Resources
    seconds: float
    from_cache: bool
    folder: Path

    def store_json(self, name: str, value: Any) -> None:
        """Keeps `value` (of JSON types) with the artifact under `name`, replacing an earlier one.

        It is a convenience for later calls: where the folder can't be written, nothing is kept and nothing is raised.
        """
        file = self._note(name)
        temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
        text = json.dumps(value)
        try:
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, file)
        except OSError:
            temporary.unlink(missing_ok=True)

    def load_json(self, name: str) -> Any:
        """What `store_json` kept under `name`, or None where there is nothing or the file is damaged."""
        try:
            return json.loads(self._note(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def _note(self, name: str) -> Path:
        if not re.fullmatch(r"\w[\w.-]*", name) or name == "manifest":
            raise BuildError("a note's name is one file name", got=name, allowed="letters, digits, '_', '-' and '.'")
        return self.folder / f"{name}.json"


def build(
    source_text: str,
    kernel_name: str,
    arch: str = "sm_90a",
    *,
    extra_key: str = "",
    cache: Path | None = None,
    lock_seconds: float = 120.0,
) -> Artifact:
    """Compiles a kernel, or takes it from the cache.

    Args:
        source_text: CUDA C++ with ``extern "C" __global__ void kernel_name(...)``.
        arch: the GPU, e.g. ``sm_90a``.
        extra_key: anything else that should tell two artifacts apart (a plan's digest).
        cache: the cache folder; default `layoutgen.paths.cache`.
        lock_seconds: how long to wait for another process that builds the same artifact before building it here too.

    Raises:
        BuildError: the toolchain is incomplete, or the compiler or the assembler refuses the kernel. A cache that can't
            be written is no error: the artifact then lives in a temporary folder until the process ends.
    """
    key = artifact_key(source_text, kernel_name, arch, extra_key=extra_key)
    folder = (paths.cache() if cache is None else cache) / key[:2] / key
    if (kept := _read(folder, key)) is not None:
        return kept
    with _lock(folder, lock_seconds):
        if (kept := _read(folder, key)) is not None:  # built while this process waited
            return kept
        return _publish(_compile(key, source_text, kernel_name, arch, folder), source_text)


def cached(source_text: str, kernel_name: str, arch: str = "sm_90a") -> Artifact | None:
    """What `build` has in its default cache for these arguments, or None: nothing is compiled."""
    key = artifact_key(source_text, kernel_name, arch)
    return _read(paths.cache() / key[:2] / key, key)


def artifact_key(source_text: str, kernel_name: str, arch: str, *, extra_key: str = "") -> str:
    """SHA-256 in hexadecimal of all that `build`'s result depends on: its arguments, the options, the versions."""
    versions = toolchain().versions
    parts = {
        "format": _FORMAT,
        "layoutgen": _own_version(),
        "source": source_text,
        "kernel": kernel_name,
        "arch": arch,
        "nvrtc options": nvrtc.compile_options(arch),
        "ptxas options": ptxas.OPTIONS,
        "versions": {wheel: versions[wheel] for wheel in _COMPILING},
        "extra": extra_key,
    }
    return _digest(json.dumps(parts, sort_keys=True).encode())


def _own_version() -> str:
    try:
        return importlib.metadata.version("layoutgen")
    except importlib.metadata.PackageNotFoundError:  # run from a source tree that is not installed
        return "source"


def _compile(key: str, source_text: str, kernel_name: str, arch: str, folder: Path) -> Artifact:
    ptx = nvrtc.compile_ptx(source_text, f"{kernel_name}.cu", arch)
    if kernel_name not in ptx.kernels:
        raise BuildError(
            "the source defines the kernel that is asked for",
            got=f"kernels {', '.join(ptx.kernels)}" if ptx.kernels else "no kernel",
            allowed=kernel_name,
            fix=f'declare it extern "C" __global__ void {kernel_name}(...)',
        )
    before = _children_seconds()
    cubin, resources = ptxas.assemble(ptx, arch, kernel_name)
    seconds = ptx.seconds + _children_seconds() - before
    return Artifact(key, kernel_name, arch, ptx.text, cubin, resources, seconds, False, folder)


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


# --- entries ---------------------------------------------------------------------------------------------------------


def _read(folder: Path, key: str) -> Artifact | None:
    """The entry in `folder`, or None where there is none or it is damaged in any way."""
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        body = manifest["body"]
        if manifest["sha256"] != _digest(json.dumps(body, sort_keys=True).encode()) or body["key"] != key:
            return None
        files = {name: (folder / name).read_bytes() for name in body["files"]}
        if any(_digest(files[name]) != digest for name, digest in body["files"].items()):
            return None
        return Artifact(
            key=key,
            kernel_name=body["kernel"],
            arch=body["arch"],
            ptx=files["kernel.ptx"].decode(),
            cubin=files["kernel.cubin"],
            resources=Resources(**body["resources"]),
            seconds=body["seconds"],
            from_cache=True,
            folder=folder,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # missing, unreadable or not what _write wrote
        return None


def _write(artifact: Artifact, source_text: str, folder: Path) -> None:
    files = {
        "kernel.cu": source_text.encode(),
        "kernel.ptx": artifact.ptx.encode(),
        "kernel.cubin": artifact.cubin,
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    body = {
        "key": artifact.key,
        "kernel": artifact.kernel_name,
        "arch": artifact.arch,
        "resources": asdict(artifact.resources),
        "seconds": artifact.seconds,
        "files": {name: _digest(data) for name, data in files.items()},
    }
    manifest = {"body": body, "sha256": _digest(json.dumps(body, sort_keys=True).encode())}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _publish(artifact: Artifact, source_text: str) -> Artifact:
    """Moves the artifact into its folder; the winner's where another process was first."""
    folder = artifact.folder
    temporary = folder.parent / f".{folder.name}.{uuid.uuid4().hex}"
    try:
        temporary.mkdir(parents=True)
        _sweep(folder.parent)
        _write(artifact, source_text, temporary)
        for _ in range(3):
            try:
                os.rename(temporary, folder)
                return artifact
            except OSError:
                if (winner := _read(folder, artifact.key)) is not None:
                    shutil.rmtree(temporary, ignore_errors=True)
                    return winner
                _discard(folder)  # damaged, or the rename would have found it readable
    except OSError:
        pass  # a cache that can't be written: keep the artifact privately
    shutil.rmtree(temporary, ignore_errors=True)
    return _keep_privately(artifact, source_text)


def _keep_privately(artifact: Artifact, source_text: str) -> Artifact:
    try:
        private = Path(tempfile.mkdtemp(prefix="layoutgen-"))
        atexit.register(shutil.rmtree, private, ignore_errors=True)
        _write(artifact, source_text, private)
    except OSError as error:
        raise BuildError(
            "a built kernel can be written somewhere",
            got=f"neither the cache nor the temporary folder: {error}",
            fix="make room, or set LAYOUTGEN_CACHE to a folder that you may write to",
        ) from error
    return replace(artifact, folder=private)


def _discard(folder: Path) -> None:
    """Takes a damaged entry out of the way in one step, then deletes it at leisure."""
    away = folder.parent / f".{folder.name}.{uuid.uuid4().hex}"
    try:
        os.rename(folder, away)
    except FileNotFoundError:
        return
    if away.is_dir():
        shutil.rmtree(away, ignore_errors=True)
    else:
        away.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Deletes what writers that were killed left behind."""
    for leftover in folder.glob(".*.*"):
        try:
            if time.time() - leftover.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(leftover)
        except OSError:
            continue  # someone else is sweeping


@contextmanager
def _lock(folder: Path, seconds: float) -> Iterator[None]:
    """Holds the entry's lock, or goes on without it: the lock saves work, the rename alone keeps the cache right."""
    from filelock import FileLock  # costs more to import than a cached build

    lock = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.with_name(f"{folder.name}.lock"))
        lock.acquire(timeout=seconds)
    except (OSError, NotImplementedError):  # a timeout (an OSError), a read-only cache, a file system without locks
        lock = None
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
