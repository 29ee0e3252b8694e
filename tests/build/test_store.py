"""The cache: what tells artifacts apart, and that races, crashes and damage never hand out a wrong or half kernel."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import layoutgen
from layoutgen.build import Artifact, build, store
from layoutgen.build import nvrtc as nvrtc_module
from layoutgen.errors import BuildError

PACKAGE_ROOT = Path(layoutgen.__file__).parents[1]


def spawn(code: str) -> subprocess.Popen[str]:
    inherited = os.environ.get("PYTHONPATH", "")
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGE_ROOT}{os.pathsep}{inherited}"}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.fixture
def make(tmp_path: Path, scale: str) -> Callable[..., Artifact]:
    """Builds `scale` in this test's own cache."""

    def call(source: str = scale, name: str = "scale", arch: str = "sm_90a", **options: Any) -> Artifact:
        return build(source, name, arch, cache=tmp_path / "cache", **options)

    return call


def test_the_second_build_comes_from_the_cache(make: Callable[..., Artifact]) -> None:
    first, second = make(), make()
    assert (first.from_cache, second.from_cache) == (False, True)
    for name in ("key", "kernel_name", "arch", "ptx", "cubin", "resources", "seconds", "folder"):
        assert getattr(first, name) == getattr(second, name), name
    assert first.seconds > 0
    assert (first.folder / "kernel.cubin").read_bytes() == first.cubin
    assert (first.folder / "kernel.cu").read_text().count("scale") == 1


def test_a_cached_build_is_cheap_and_loads_no_compiler(make: Callable[..., Artifact], scale: str) -> None:
    cache = make().folder.parents[1]
    code = f"""
import sys, time
from pathlib import Path
from layoutgen.build import build
start = time.process_time()
artifact = build({scale!r}, "scale", cache=Path({str(cache)!r}))
seconds = time.process_time() - start
loaded = [name for name in ("cuda.bindings.nvrtc", "filelock") if name in sys.modules]
print(artifact.from_cache, seconds < 0.1, loaded, "libnvrtc" in Path("/proc/self/maps").read_text())
"""
    process = spawn(code)
    assert process.communicate()[0].strip() == "True True [] False"


def test_every_input_changes_the_key(
    make: Callable[..., Artifact], scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(source: str = scale, name: str = "scale", arch: str = "sm_90a", **options: Any) -> str:
        return store.artifact_key(source, name, arch, **options)

    keys = [
        key(),
        key(source=scale + "\n"),
        key(name="other"),
        key(arch="sm_90"),
        key(extra_key="plan"),
    ]
    tools = store.toolchain()
    for wheel in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvcc", "nvidia-cutlass", "nvidia-cuda-cccl"):
        newer = type(tools)(*(getattr(tools, name) for name in tools.__slots__[:-1]), {**tools.versions, wheel: "99.9"})
        monkeypatch.setattr(store, "toolchain", lambda newer=newer: newer)
        keys.append(key())
    monkeypatch.setattr(store, "toolchain", lambda: tools)
    monkeypatch.setattr(store, "_own_version", lambda: "99.9")
    keys.append(key())
    monkeypatch.undo()
    monkeypatch.setattr(store.ptxas, "OPTIONS", ("-v", "-O1"))
    keys.append(key())
    monkeypatch.undo()
    monkeypatch.setattr(nvrtc_module, "OPTIONS", ("-std=c++20",))
    keys.append(key())
    monkeypatch.undo()
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]  # and nothing else does
    assert make().key == keys[0]


def test_a_disassembler_of_another_version_makes_no_other_artifact(scale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, tools = store.artifact_key(scale, "scale", "sm_90a"), store.toolchain()
    versions = {**tools.versions, "nvidia-cuda-nvdisasm": "99.9"}
    newer = type(tools)(*(getattr(tools, name) for name in tools.__slots__[:-1]), versions)
    monkeypatch.setattr(store, "toolchain", lambda: newer)
    assert store.artifact_key(scale, "scale", "sm_90a") == before


def test_eight_processes_on_a_cold_cache_compile_once(tmp_path: Path, scale: str) -> None:
    code = f"""
import sys
from pathlib import Path
from layoutgen.build import build, nvrtc
import filelock, cuda.bindings.nvrtc
compile_ptx, compiled = nvrtc.compile_ptx, []
def count(*arguments, **options):
    compiled.append(1)
    return compile_ptx(*arguments, **options)
nvrtc.compile_ptx = count
print("ready", flush=True)
sys.stdin.readline()
a = build({scale!r}, "scale", cache=Path({str(tmp_path)!r}))
kept = (a.folder / "kernel.cubin").read_bytes()
print(len(compiled), a.from_cache, a.key, a.cubin == kept, a.resources.registers, a.folder)
"""
    processes = [spawn(code) for _ in range(8)]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:  # all at once, when the slowest has started
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate()[0].split(maxsplit=2) for process in processes]
    assert sorted(answer[:2] for answer in answers) == [["0", "True"]] * 7 + [["1", "False"]]
    assert len({answer[2] for answer in answers}) == 1
    assert " True " in answers[0][2]
    assert not any(path.name.startswith(".") for path in (tmp_path / answers[0][2][:2]).iterdir())  # no leftovers


HOLDER = """
import time
from pathlib import Path
from layoutgen.build import build, nvrtc
def hold(*arguments, **options):
    print("holding", flush=True)
    time.sleep(600)
nvrtc.compile_ptx = hold
build({source!r}, "scale", cache=Path({cache!r}))
"""


def test_a_killed_builder_holds_nobody_up(make: Callable[..., Artifact], tmp_path: Path, scale: str) -> None:
    holder = spawn(HOLDER.format(source=scale, cache=str(tmp_path / "cache")))
    assert holder.stdout is not None and holder.stdout.readline() == "holding\n"
    answers: list[Artifact] = []
    waiter = threading.Thread(target=lambda: answers.append(make()))
    waiter.start()
    time.sleep(0.3)
    assert not answers  # waits: building takes 0.1 s, so the lock is what holds it
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    waiter.join(20)
    assert [answer.from_cache for answer in answers] == [False]
    assert make().from_cache


def test_who_waits_too_long_builds_anyway(make: Callable[..., Artifact], tmp_path: Path, scale: str) -> None:
    holder = spawn(HOLDER.format(source=scale, cache=str(tmp_path / "cache")))
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "holding\n"
        assert not make(lock_seconds=0.1).from_cache
        assert make().from_cache  # and what it built serves others, though the lock is still held
    finally:
        holder.kill()
        holder.wait()


@pytest.mark.parametrize("name", ["kernel.cubin", "kernel.ptx", "kernel.cu", "manifest.json"])
@pytest.mark.parametrize("damage", ["truncate", "delete", "flip"])
def test_a_damaged_entry_is_built_again(make: Callable[..., Artifact], name: str, damage: str) -> None:
    good = make()
    file = good.folder / name
    data = file.read_bytes()
    if damage == "truncate":
        file.write_bytes(data[: len(data) // 2])
    elif damage == "delete":
        file.unlink()
    else:  # one digit or byte: a manifest stays valid JSON, and says another number
        at = data.index(b'"registers": ') + 13 if name == "manifest.json" else len(data) // 2
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    again = make()
    assert not again.from_cache
    assert (again.cubin, again.ptx, again.resources) == (good.cubin, good.ptx, good.resources)
    assert make().from_cache
    assert [path.name for path in good.folder.parent.iterdir() if path.name.startswith(".")] == []


def test_an_entry_under_another_key_is_not_taken(make: Callable[..., Artifact]) -> None:
    first = make()
    other = store.artifact_key((first.folder / "kernel.cu").read_text(), "scale", "sm_90a", extra_key="other")
    target = first.folder.parents[1] / other[:2] / other
    target.parent.mkdir(exist_ok=True)
    first.folder.rename(target)
    assert not make(extra_key="other").from_cache


def test_a_file_in_the_entrys_place_is_replaced(make: Callable[..., Artifact]) -> None:
    folder = make().folder
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    folder.write_text("in the way")
    assert not make().from_cache
    assert make().from_cache


def test_the_loser_of_a_rename_takes_the_winners(
    make: Callable[..., Artifact], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process publishes between this one's compilation and its rename."""
    rename = os.rename

    def lose(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "rename", rename)
        os.mkdir(target)
        for file in source.iterdir():
            (target / file.name).write_bytes(file.read_bytes())
        rename(source, target)

    monkeypatch.setattr(os, "rename", lose)
    artifact = make()
    assert artifact.from_cache
    assert make().folder == artifact.folder
    assert [path.name for path in artifact.folder.parent.iterdir() if path.name.startswith(".")] == []


def test_a_rename_that_always_fails_leaves_a_private_artifact(
    make: Callable[..., Artifact], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError("no renaming here")

    monkeypatch.setattr(os, "rename", fail)
    artifact = make()
    assert not artifact.from_cache
    assert not artifact.folder.is_relative_to(tmp_path)
    assert (artifact.folder / "kernel.cubin").read_bytes() == artifact.cubin
    assert [path.suffix for path in (tmp_path / "cache").glob("*/*")] == [".lock"]


def test_a_cache_that_cannot_be_made_is_no_error(make: Callable[..., Artifact], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    artifact = make()
    assert not artifact.from_cache
    assert (artifact.folder / "kernel.ptx").read_text() == artifact.ptx


def test_nowhere_to_write_is_an_error_with_a_way_out(
    make: Callable[..., Artifact], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "_write", full)
    with pytest.raises(BuildError, match="No space left") as caught:
        make()
    assert caught.value.fix is not None and "LAYOUTGEN_CACHE" in caught.value.fix


def test_a_private_artifact_is_gone_when_the_process_ends(tmp_path: Path, scale: str) -> None:
    (tmp_path / "cache").write_text("")
    code = f"""
from pathlib import Path
from layoutgen.build import build
print(build({scale!r}, "scale", cache=Path({str(tmp_path / "cache")!r})).folder)
"""
    folder = Path(spawn(code).communicate()[0].strip())
    assert folder.name.startswith("layoutgen-") and not folder.exists()


def test_a_kernel_that_does_not_compile_leaves_nothing(make: Callable[..., Artifact], tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(BuildError, match="scale.cu:1"):
            make(source="this is no C++")
    assert [path.suffix for path in (tmp_path / "cache").glob("*/*")] == [".lock"]


def test_what_killed_writers_left_is_swept(make: Callable[..., Artifact]) -> None:
    folder = make().folder
    old, young = folder.parent / ".old.1", folder.parent / ".young.1"
    for leftover in (old, young):
        leftover.mkdir()
        (leftover / "kernel.ptx").write_text("half")
    os.utime(old, (0, 0))
    (folder / "manifest.json").unlink()
    make()
    assert young.exists() and not old.exists()


def test_notes_stay_with_the_artifact(make: Callable[..., Artifact]) -> None:
    artifact = make()
    assert artifact.load_json("smoke") is None
    artifact.store_json("smoke", {"largest error": 1.5e-6, "shape": [128, 130, 33]})
    artifact.store_json("other", 1)
    assert make().load_json("smoke") == {"largest error": 1.5e-6, "shape": [128, 130, 33]}
    artifact.store_json("smoke", None)
    assert make().load_json("smoke") is None
    assert make().load_json("other") == 1
    assert make().from_cache  # notes are no damage


def test_a_damaged_note_reads_as_none(make: Callable[..., Artifact]) -> None:
    artifact = make()
    artifact.store_json("smoke", {"a": 1})
    file = artifact.folder / "smoke.json"
    file.write_text(file.read_text()[:-1])
    assert artifact.load_json("smoke") is None


def test_a_note_that_cannot_be_written_is_dropped(make: Callable[..., Artifact]) -> None:
    artifact = make()
    (artifact.folder / "smoke.json").mkdir()
    artifact.store_json("smoke", 1)
    assert artifact.load_json("smoke") is None
    assert [path.name for path in artifact.folder.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("name", ["manifest", "../up", "a/b", "", ".hidden"])
def test_a_note_cannot_leave_its_folder_or_replace_the_manifest(make: Callable[..., Artifact], name: str) -> None:
    artifact = make()
    with pytest.raises(BuildError, match="note's name"):
        artifact.store_json(name, 1)
    assert json.loads((artifact.folder / "manifest.json").read_text())["body"]["key"] == artifact.key
