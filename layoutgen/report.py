"""What the command line's verbs do, as functions: build a spec and say how it went, emit its kernels, list what ships.

Nothing here imports torch, but for the first run of a kernel that was just built; its figures stay with the artifact.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from layoutgen import build, paths, run
from layoutgen import spec as spec_module
from layoutgen.check import Extents, Finding, IllegalSpecError, Report, check, require_legal, spilled
from layoutgen.diff import Difference, Side, diff
from layoutgen.emit import Source, emit
from layoutgen.emitted import require_emitted
from layoutgen.errors import BuildError, LayoutgenError, RequestError
from layoutgen.explain import Explanation, explain
from layoutgen.facts import Loop, facts
from layoutgen.hw.devices import DEVICES, Device, of_amd
from layoutgen.plan import Plan
from layoutgen.smoke import Smoke, smoke
from layoutgen.spec import Spec

Progress = Callable[[str], None]
MARK = "// Emitted by layoutgen"  # every kernel's text has it; a file without it is somebody's own


@dataclass(frozen=True, slots=True)
class Built:
    """One compiled variant: registers a thread, bytes of shared memory a block, bytes that a thread's spills move.

    loop: what a warp executes for each k-tile, if nvdisasm is installed to tell. seconds: CPU seconds that compiling
    took, now or when it was `cached`. folder: where its files lie.
    """

    variant: str
    registers: int
    shared_bytes: int
    spill_bytes: int
    loop: Loop | None
    ptx_bytes: int
    cubin_bytes: int
    seconds: float
    cached: bool
    folder: Path


@dataclass(frozen=True, slots=True)
class BuildReport:
    """A legal spec, built.

    Attributes:
        check: its report, the facts now with what ptxas used and what the main loop holds.
        findings: warnings of variants that spill, which only ptxas can tell.
        smoke: its first run, or None where what was built is not what would run here.
    """

    check: Report
    arch: str
    variants: tuple[Built, ...]
    findings: tuple[Finding, ...]
    smoke: Smoke | None

    @property
    def name(self) -> str:
        return self.check.name

    def to_json(self) -> dict[str, Any]:
        """check's report as plain data, with what was built and how it ran."""
        return {
            **replace(self.check, findings=self.check.findings + self.findings).to_json(),
            "arch": self.arch,
            "built": [{**asdict(each), "folder": str(each.folder)} for each in self.variants],
            "smoke": None if self.smoke is None else self.smoke.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Shipped:
    """A spec that comes with layoutgen, and whether it is legal on `device`."""

    name: str
    about: str
    path: Path
    device: str
    legal: bool


def read_spec(source: str | Path | Spec) -> Spec:
    """A path, the name of a spec that comes with layoutgen, or a Spec -> Spec. Raises SpecError."""
    return source if isinstance(source, Spec) else spec_module.load(paths.find_spec(source))


def default_device(spec: Spec) -> Device:
    """What a spec is judged for unless another is named: the GPU here, else the H200; one of its own for AMD's."""
    return of_amd(spec.arch) or run.default_device()


def check_spec(source: str | Path | Spec, *, device: Device | None = None, shape: Extents | None = None) -> Report:
    """Is the spec legal on the device (default: see `default_device`), and how well does it suit?

    Args:
        source: a path, the name of a spec that comes with layoutgen, or a Spec.
        shape: M, N and K of a dense problem in the spec's contiguous modes, for facts and hints about it.

    Raises:
        SpecError: the source is no spec.
    """
    spec = read_spec(source)
    return check(spec, device or default_device(spec), shape)


def explain_spec(
    source: str | Path | Spec,
    *,
    variant: str | None = None,
    coordinate: tuple[int, int] | None = None,
    thread: int | None = None,
    device: Device | None = None,
) -> Explanation:
    """How a spec's tiling is composed and who owns what; of an illegal one as much as composes, then what is wrong.

    Args:
        source: a path, the name of a spec that comes with layoutgen, or a Spec.
        variant: which of its kernels; default the primary one.
        coordinate: the (m, n) of the block tile of C to follow; default C(5,77) of the matrix, modulo the tile.
        thread: the thread of the block to follow as well.
        device: what its findings are for; default as for `check_spec`.

    Raises:
        SpecError: the source is no spec.
        RequestError: it has no such variant, coordinate or thread.
    """
    spec = read_spec(source)
    report = check_spec(spec, device=device)
    return explain(
        spec, report.plans, variant=variant, coordinate=coordinate, thread=thread,
        findings=tuple(map(str, report.findings)), legal=report.legal,
    )  # fmt: skip


def parse_coordinate(text: str) -> tuple[int, int]:
    """'5,77' or '(5, 77)' -> (5, 77). Raises RequestError."""
    match = re.fullmatch(r"\s*\(?\s*(-?\d{1,9})\s*,\s*(-?\d{1,9})\s*\)?\s*", text)
    if match is None:
        raise RequestError("a coordinate is m,n", got=repr(text), allowed="two integers", fix="write it as 5,77")
    return int(match[1]), int(match[2])


def diff_specs(a: str | Path | Spec, b: str | Path | Spec, *, device: Device | None = None) -> Difference:
    """What differs between two tilings: spec keys, layouts by level, and facts on a device. Raises SpecError."""
    return diff(_side(a, device), _side(b, device))


def _side(source: str | Path | Spec, device: Device | None) -> Side:
    spec = read_spec(source)
    report = check_spec(spec, device=device)
    known = report.to_json()
    of_rule: dict[str, list[str]] = {}
    for each in report.findings:
        of_rule.setdefault(each.rule, []).append(f"{each.severity}: {each.got}")
    # Of one rule in an order that does not depend on the places of keys in the file.
    known["findings"] = {rule: "; ".join(sorted(said)) for rule, said in of_rule.items()}
    return Side(spec, report.plans, known)


def build_spec(
    source: str | Path | Spec,
    *,
    device: Device | None = None,
    every: bool = False,
    progress: Progress | None = None,
) -> BuildReport:
    """Compile a spec's kernels, or take them from the cache, and run the primary one once.

    Args:
        source: a path, the name of a spec that comes with layoutgen, or a Spec.
        device: what to build for; default the GPU here, else what the simulator runs.
        every: build all variants; else the primary one alone.
        progress: told what is being done, in a few words.

    Raises:
        SpecError: the source is no spec.
        IllegalSpecError: it is not legal on the device; nothing is built. Carries check's report.
        BuildError: the spec's architecture or the device is AMD's, the compiler refuses a kernel, or the result of its
            first run is wrong.
    """
    tell = progress or (lambda text: None)
    spec = read_spec(source)
    require_emitted(spec)
    if device is not None and device.cc is None:
        raise BuildError(
            "layoutgen emits CUDA, and no code for AMD",
            got=f"{device.name}, which is {device.arch}",
            allowed="an NVIDIA device",
            fix=f"build for one, such as h200; check --device {device.name} judges the layouts",
        )
    report = require_legal(spec, device or run.default_device())
    primary = report.plans[0]
    here = run.target_arch(primary)
    arch = here if device is None else device.arch
    chosen = report.plans if every else (primary,)
    artifacts = []
    for index, plan in enumerate(chosen, start=1):
        tell(f"{spec.name}: compiling {plan.variant} for {arch} ({index} of {len(chosen)})")
        artifacts.append(run.artifact(plan, arch))
    first_run = _smoke(spec, report.plans, artifacts[0], tell) if arch == here else None
    built = tuple(map(_built, chosen, artifacts))
    on = device or run.default_device()
    spills = (
        spilled(spec, plan, each.registers, each.spill_bytes, on) for plan, each in zip(chosen, built, strict=True)
    )
    known = facts(primary, on, built=built[0].registers, loop=built[0].loop)
    report = replace(report, facts=known)
    return BuildReport(report, arch, built, tuple(finding for found in spills for finding in found), first_run)


def _built(plan: Plan, artifact: build.Artifact) -> Built:
    resources = artifact.resources
    return Built(
        variant=plan.variant,
        registers=resources.registers,
        shared_bytes=plan.shared_bytes + resources.static_shared,
        spill_bytes=resources.spill_stores + resources.spill_loads,
        loop=main_loop(plan, artifact),
        ptx_bytes=len(artifact.ptx.encode()),
        cubin_bytes=len(artifact.cubin),
        seconds=artifact.seconds,
        cached=artifact.from_cache,
        folder=artifact.folder,
    )


def main_loop(plan: Plan, artifact: build.Artifact) -> Loop | None:
    """The main loop of an artifact, as it was kept with it or as nvdisasm tells now."""
    kept = artifact.load_json("loop")
    try:
        return Loop(**kept)
    except TypeError:  # not read yet, or not what was kept
        if build.toolchain().nvdisasm is None:
            return None
    loop = Loop.of(build.loop_counts(artifact.cubin, plan.name))
    artifact.store_json("loop", asdict(loop))
    return loop


def _smoke(spec: Spec, plans: tuple[Plan, ...], artifact: build.Artifact, tell: Progress) -> Smoke:
    """The first run of an artifact on this machine: as it was kept with the artifact, or now."""
    note = artifact.load_json("smoke")
    kept: dict[str, Any] = note if isinstance(note, dict) else {}
    # Not by asking torch, whose import costs more than the rest of a second build. Its version tells a CPU build apart.
    place = build.Device().name if build.current_arch() else "the CPU"
    key = f"{place}, torch {importlib.metadata.version('torch')}"
    try:
        figures = Smoke.from_json(kept[key])
    except (KeyError, TypeError, ValueError):  # not run here yet, or not what was kept
        tell(f"{spec.name}: running {plans[0].variant} on {place}")
        figures = smoke(spec, plans)
        artifact.store_json("smoke", {**kept, key: figures.to_json()})
    return figures


def sources(source: str | Path | Spec) -> tuple[Source, ...]:
    """The kernels of all variants as text, the primary one first. They depend on the spec alone.

    Raises:
        SpecError: the source is no spec.
        BuildError: its architecture is AMD's.
        IllegalSpecError: it is legal on no device that layoutgen knows.
    """
    spec = read_spec(source)
    require_emitted(spec)
    report = check(spec, DEVICES["h200"], mend=False)
    if not report.legal:
        report = next((r for each in DEVICES.values() if (r := check(spec, each, mend=False)).legal), report)
    if not report.legal:
        raise IllegalSpecError(report)
    return tuple(map(emit, report.plans))


def emit_spec(source: str | Path | Spec, out: str | Path | None = None) -> list[Path]:
    """Write the kernels of all variants to ``<out>/<name>/<variant>.cu``; returns the files in the variants' order.

    Each file appears in one step, one that says the same already is left alone, and emitted kernels that the spec no
    longer has are deleted.

    Args:
        out: default the folder ``generated`` in the current one.

    Raises:
        SpecError, BuildError, IllegalSpecError: as `sources`.
        LayoutgenError: the files can't be written.
    """
    kernels = sources(source)
    folder = Path("generated" if out is None else out) / kernels[0].name
    files = [folder / f"{kernel.variant}.cu" for kernel in kernels]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, kernel in zip(files, kernels, strict=True):
            _write(file, kernel.text.encode())
        for stale in set(folder.glob("*.cu")) - set(files):
            if MARK.encode() in stale.read_bytes():
                stale.unlink()
    except OSError as error:
        raise LayoutgenError(
            "kernels can be written",
            got=paths.unwritable(files[0], error),
            fix="name a folder that you may write to with -o",
        ) from error
    return files


def _write(file: Path, data: bytes) -> None:
    if file.is_file() and file.read_bytes() == data:
        return
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)


def list_specs(device: Device | None = None) -> list[Shipped]:
    """The specs that come with layoutgen, by name, each checked on a device (default as for `check_spec`)."""
    found = []
    for path in paths.shipped_specs().values():
        spec = spec_module.load(path)
        on = device or default_device(spec)
        found.append(Shipped(spec.name, spec.about, path, on.name, check(spec, on, mend=False).legal))
    return found
