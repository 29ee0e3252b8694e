"""`layoutgen build`: refusal before anything is built, the first build and the second, the report and its figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from layoutgen import build, fused, ops, paths, report, run, smoke, spec
from layoutgen.check import IllegalSpecError, check
from layoutgen.emitted import emitted_specs
from layoutgen.errors import BuildError
from layoutgen.hw.devices import DEVICES
from layoutgen.plan import Plan, plan
from tests.cli.conftest import Outcome

Cli = Callable[..., Outcome]


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without a GPU: the simulator runs what is built."""
    monkeypatch.setattr(build, "current_arch", lambda: None)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAYOUTGEN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def kept(artifact: build.Artifact) -> Iterator[str]:
    """The places whose first run was kept with an artifact."""
    yield from artifact.load_json("smoke") or ()


def test_an_illegal_spec_is_refused_with_checks_findings_and_nothing_is_built(
    cli: Cli, illegal: Path, empty_cache: Path
) -> None:
    done = cli("build", illegal, "--device", "h200")
    assert (done.code, done.stdout) == (1, "")
    findings = check(spec.load(illegal), DEVICES["h200"]).findings
    assert done.stderr == "illegal is not legal on h200:\n" + "\n".join(map(str, findings)) + "\n"
    assert not empty_cache.exists()
    with pytest.raises(IllegalSpecError) as caught:
        report.build_spec(illegal, device=DEVICES["h200"])
    assert caught.value.report.findings == findings
    (entry,) = json.loads(cli("build", illegal, "--json").stdout)
    assert (entry["legal"], entry["findings"][0]["rule"]) == (False, findings[0].rule)


def test_first_build_then_second(no_gpu: None, empty_cache: Path, spec_file: Callable[..., Path]) -> None:
    """One test, since a kernel takes seconds to compile: what is built, that it ran, and that nothing is done twice."""
    path, told = spec_file(), []
    first = report.build_spec(path, progress=told.append)
    assert [words.split()[1] for words in told] == ["compiling", "running"]
    (built,) = first.variants
    primary = plan(spec.load(path))[0]
    artifact = run.artifact(primary, run.DEFAULT_ARCH)
    assert (built.variant, first.arch) == (primary.variant, run.DEFAULT_ARCH)
    assert (built.cached, built.seconds) == (False, artifact.seconds)
    assert built.folder == artifact.folder and empty_cache in built.folder.parents
    assert first.check.registers is not None
    assert primary.tile.value_mode[0].size * primary.tile.value_mode[1].size < built.registers
    assert built.registers <= first.check.registers.cap
    assert built.shared_bytes == primary.shared_bytes
    assert built.ptx_bytes == (artifact.folder / "kernel.ptx").stat().st_size
    assert built.cubin_bytes == (artifact.folder / "kernel.cubin").stat().st_size
    assert first.smoke is not None
    assert (first.smoke.where, first.smoke.tflops) == ("CPU simulator", None)
    assert 0 < first.smoke.max_error < 1e-6

    told.clear()
    second = report.build_spec(path, progress=told.append)
    assert [words.split()[1] for words in told] == ["compiling"]
    assert second.variants == (replace(built, cached=True),)
    assert second.smoke == first.smoke

    # Elsewhere, or after the note was damaged, the kernel runs again.
    for note in (None, ["x"], {key: {"where": 1} for key in kept(artifact)}):
        artifact.store_json("smoke", note)
        told.clear()
        assert report.build_spec(path, progress=told.append).smoke == first.smoke
        assert [words.split()[1] for words in told] == ["compiling", "running"]

    # A kernel for another architecture than the one that would run here is built and not run.
    here = run.target_arch
    with pytest.MonkeyPatch.context() as elsewhere:
        elsewhere.setattr(run, "target_arch", lambda plan: "sm_80" if here(plan) == run.DEFAULT_ARCH else here(plan))
        assert report.build_spec(path, device=DEVICES["h200"]).smoke is None


def test_the_table_shows_what_the_report_says(no_gpu: None, cli: Cli) -> None:
    report.build_spec("warptile_128x128")
    made = report.build_spec("warptile_128x128")  # from the cache, as the commands below
    done = cli("build", "warptile_128x128")
    assert (done.code, done.stderr) == (0, "")
    compiled, ran = (line.split() for line in done.stdout.splitlines() if "warptile_128x128" in line)
    (each,) = made.variants
    assert each.loop is not None and each.loop.ffma == 8 * 16 * 16
    known = made.check.facts
    assert known is not None and (known.built, known.loop) == (each.registers, each.loop)
    assert known.bound.issue == each.loop.instructions * 128 / 32 / 4
    assert compiled == [
        made.name, each.variant, str(each.registers), f"{each.shared_bytes:,}", f"{each.spill_bytes:,}",
        f"{each.loop.ffma / each.loop.instructions:.0%}",
        f"{each.cubin_bytes / 1024:.0f}", "cached",
    ]  # fmt: skip
    assert made.smoke is not None
    assert ran == [made.name, "legal", made.arch, "CPU", "simulator", f"{made.smoke.max_error:.1e}"]
    (entry,) = json.loads(cli("build", "warptile_128x128", "--json").stdout)
    assert entry == {"spec": "warptile_128x128", **json.loads(json.dumps(made.to_json())), "errors": []}


def test_all_variants_are_built_when_asked_for(cli: Cli, monkeypatch: pytest.MonkeyPatch, no_gpu: None) -> None:
    made, asked = report.build_spec("warptile_128x128"), []
    artifact = run.artifact(made.check.plans[0], made.arch)

    def fake(each: Plan, arch: str) -> build.Artifact:  # compiling all of them takes half a minute
        asked.append(each.variant)
        return artifact

    monkeypatch.setattr(run, "artifact", fake)
    done = cli("build", "warptile_128x128", "--all-variants")
    assert asked == [each.variant for each in made.check.plans]
    assert len(asked) > 1
    assert all(variant in done.stdout for variant in asked)
    asked.clear()
    cli("build", "warptile_128x128")
    assert asked == [made.check.plans[0].variant]


def test_on_a_gpu_the_table_shows_both_speeds(cli: Cli, monkeypatch: pytest.MonkeyPatch, no_gpu: None) -> None:
    fast = smoke.Smoke("NVIDIA H200", ((1, 2, 3),), 1e-7, 48.25, 51.5)
    made = replace(report.build_spec("warptile_128x128"), smoke=fast)
    monkeypatch.setattr(report, "build_spec", lambda *a, **k: made)
    lines = cli("build", "warptile_128x128").stdout.splitlines()
    assert lines[-2].split() == ["warptile_128x128", "legal", "sm_90a", "NVIDIA", "H200", "1.0e-07", "48.2", "51.5"]
    assert any("torch.mm" in line for line in lines)
    assert smoke.Smoke.from_json(json.loads(json.dumps(fast.to_json()))) == fast


def test_a_failed_build_is_told_and_the_others_are_built(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, no_gpu: None
) -> None:
    real = report.build_spec

    def fails(source: str, **options: object) -> report.BuildReport:
        if source == "tiny":
            raise BuildError("the compiler is in the mood", got="no", fix="wait")
        return real(source, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(report, "build_spec", fails)
    done = cli("build", "tiny", "warptile_128x128")
    assert (done.code, done.stderr) == (1, "the compiler is in the mood\n  got: no\n  fix: wait\n")
    assert "warptile_128x128" in done.stdout
    (entry,) = json.loads(cli("build", "tiny", "--json").stdout)
    assert (entry["legal"], entry["errors"][0]["kind"], entry["errors"][0]["fix"]) == (None, "BuildError", "wait")


@pytest.mark.parametrize("factor", [1 + 1e-4, float("nan")])
def test_a_wrong_result_is_no_build(factor: float, monkeypatch: pytest.MonkeyPatch, no_gpu: None) -> None:
    one = spec.load(paths.shipped_specs()["warptile_128x128"])
    monkeypatch.setattr(ops.Operator, "eager", lambda self, a, b: a @ b)
    assert smoke.smoke(one, plan(one)).max_error > 0
    monkeypatch.setattr(ops.Operator, "eager", lambda self, a, b: (a @ b) * factor)
    with pytest.raises(BuildError, match="warptile_128x128"):
        smoke.smoke(one, plan(one))


@pytest.mark.parametrize("name", emitted_specs())
def test_every_variant_takes_its_own_shapes_and_the_first_is_ragged(name: str) -> None:
    one = spec.load(paths.shipped_specs()[name])
    random = torch.Generator().manual_seed(0)
    for each in plan(one):
        operator = ops.Operator(one, (each,))  # an operator of this variant alone: it runs this one or none
        ragged, whole, *_ = smoke.shapes(each, on_gpu=True)
        for shape in (ragged, whole):
            tensors = fused.random_tensors(each, shape, random)
            read = {tensor.name: tensors[tensor.name] for tensor in each.epilogue.tensors if not tensor.written}
            assert operator.variant_for(*smoke.operands(each, shape, random), **read) is each
        assert all(extent % tile for extent, tile in zip(ragged, each.tile.block, strict=True))
        assert not any(extent % tile for extent, tile in zip(whole, each.tile.block, strict=True))


def test_the_error_is_relative_to_the_magnitudes() -> None:
    exact, size = torch.tensor([[0.0]]).double(), torch.tensor([[6.0]]).double()
    assert fused.off(torch.tensor([[0.6]]), exact, size) == pytest.approx(0.1)
    assert fused.off(torch.zeros(1, 1), exact, size) == 0
    assert fused.off(torch.tensor([[127, 3]], dtype=torch.int8), exact + torch.tensor([300, 2.5]), size) == 0
    assert fused.off(torch.tensor([[4]], dtype=torch.int8), exact + 2.5, size) == pytest.approx(1 / 6)


@pytest.mark.gpu
def test_on_a_gpu_it_runs_there_and_is_timed(empty_cache: Path, spec_file: Callable[..., Path]) -> None:
    first = report.build_spec(spec_file())
    assert first.arch == build.current_arch()
    assert first.smoke is not None
    assert first.smoke.where == build.Device().name
    assert first.smoke.shapes[-1] == (4096, 4096, 4096)
    assert first.smoke.tflops is not None and first.smoke.torch_tflops is not None
    assert 0.05 < first.smoke.tflops / first.smoke.torch_tflops < 20
    assert report.build_spec(spec_file()).smoke == first.smoke


def test_what_spills_is_told_with_an_edit_that_mends_it(
    cli: Cli, no_gpu: None, empty_cache: Path, spec_file: Callable[..., Path]
) -> None:
    """62 live values of a thread in 64 registers, which only ptxas can say are too few."""
    edit = ("shared: {stages: 2}", "shared: {stages: 2}\nschedule: {min_blocks: %d}")
    path = spec_file("crowded", (edit[0], edit[1] % 8))
    (entry,) = json.loads(cli("build", path, "--device", "h200", "--json").stdout)
    assert entry["built"][0]["spill_bytes"] > 0 and entry["legal"]
    (told,) = (each for each in entry["findings"] if each["rule"] == "spilled")
    assert told["severity"] == "warning" and told["where"] == f"{path}:{len(path.read_text().splitlines())}"
    assert str(entry["built"][0]["spill_bytes"]) in told["got"] and "64 registers for 8 blocks of" in told["allowed"]
    done = cli("build", path, "--device", "h200")
    assert done.code == 0 and "warning [spilled]" in done.stdout and told["fix"] in done.stdout
    blocks = int(told["fix"].removeprefix("write schedule.min_blocks: "))
    mended = report.build_spec(spec_file("mended", (edit[0], edit[1] % blocks)), device=DEVICES["h200"])
    assert mended.findings == () and mended.variants[0].spill_bytes == 0
