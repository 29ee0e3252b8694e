"""The bench on a clock of the test's own: order, failures, interruption, and what reaches the JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from layoutgen import build
from layoutgen.bench import MODES, Conditions, Ratio, Result, Row, Watch, bench, read, rounds, warm_up, write
from layoutgen.bench.runner import allowed_error
from layoutgen.errors import BuildError, LayoutgenError, RequestError
from tests.bench.lab import MACHINE, FakeLab

SPEC = "warptile_128x128"
CUBE = (512, 512, 512)


class Seen(Watch):
    """Keeps what it is told; raises what it is told to at the n-th step that begins so."""

    def __init__(self, stop: str = "", after: int = 0) -> None:
        self.cases: list[tuple[Sequence[Row], Conditions]] = []
        self.begun: dict[str, list[float]] = {}
        self.amounts: dict[str, float] = {}
        self._stop, self._after, self._phase = stop, after, ""

    def begin(self, what: str, amount: float) -> None:
        self._phase, self.amounts[what], self.begun[what] = what, amount, []

    def step(self, what: str, amount: float = 1.0) -> None:
        self.begun[self._phase].append(amount)
        if self._stop and self._stop in what:
            self._after -= 1
            if self._after == 0:
                raise KeyboardInterrupt

    def measured(self, rows: Sequence[Row], conditions: Conditions) -> None:
        self.cases.append((rows, conditions))


def lab(**times: float) -> FakeLab:
    """Sides that take so many milliseconds, give or take a hundredth; cublas takes 1."""
    steady = {"cublas": 1.0, "triton": 2.0, SPEC: 0.9} | times
    return FakeLab({name: lambda n, ms=ms: ms * (1 + 0.01 * (n % 3 - 1)) for name, ms in steady.items()})


def run(fake: FakeLab, **options: object) -> Result:
    return bench([SPEC], **{"shapes": [CUBE], "repeats": 9, "lab": fake, **options})  # type: ignore[arg-type]


# --- what is measured ------------------------------------------------------------------------------------------------


def test_a_spec_beside_a_rival() -> None:
    fake, seen = lab(), Seen()
    result = run(fake, watch=seen)
    theirs, mine = result.rows
    assert (theirs.name, theirs.kind, theirs.kernel, theirs.ratios) == ("cublas", "rival", None, {})
    assert (mine.name, mine.kind, mine.shape, mine.modes) == (SPEC, "spec", CUBE, "kn")
    assert len(mine.samples_ms) == len(theirs.samples_ms) == 9
    assert mine.median_ms == pytest.approx(0.9) and mine.tflops == pytest.approx(2 * 512**3 / 0.9e-3 / 1e12)
    ratio = mine.ratios["cublas"]
    assert ratio.ratio is not None and ratio.low <= ratio.ratio <= ratio.high and ratio.low > 1
    kernel = mine.kernel
    assert kernel is not None and kernel.variant == "ak_bn_16B" and kernel.block == (128, 128, 16)
    assert kernel.registers > 32 and kernel.loop is not None and kernel.loop.ffma > 0
    assert kernel.intensity == 32.0 and kernel.roof_tflops == 66.9 and 0 < (kernel.ceiling_tflops or 0) < 66.9
    assert result.complete and result.machine == MACHINE and result.device.name == "h200"
    assert result.script == f"layoutgen bench {SPEC} --shape 512 --modes kn --against cublas --repeats 9"
    assert [tuple(rows) for rows, _ in seen.cases] == [result.rows]
    assert [each for _, each in seen.cases] == list(result.conditions)
    assert not fake.entered


def test_checked_then_warmed_up_then_timed_in_rounds() -> None:
    fake = lab()
    run(fake, repeats=40)
    kinds = [kind for kind, _ in fake.log]
    assert kinds[:3] == ["operands", "error", "error"]
    assert set(kinds[3:]) == {"timed"}
    names = [name for kind, name in fake.log if kind == "timed"]
    timed, before = names[-80:], names[:-80]
    assert len(before) >= 6 and 0.1 * len(before) >= 0.5  # three rounds at least, and half a second
    pairs = list(zip(timed[::2], timed[1::2], strict=True))
    assert all(set(pair) == {"cublas", SPEC} for pair in pairs)
    assert len(set(pairs)) == 2  # neither always goes first


def test_warming_up_takes_its_time_and_its_rounds() -> None:
    quick, slow = lab(), lab()
    calls = {"cublas": lambda: "cublas"}
    warm_up(calls, quick, seconds=2.0)
    assert len(quick.log) == 20
    warm_up(calls, slow, seconds=0.0)
    assert len(slow.log) == 3


def test_every_shape_meets_every_pair_of_modes_and_each_has_its_kernel() -> None:
    fake = lab()
    result = run(fake, shapes=[CUBE, (510, 510, 510), CUBE], modes=list(MODES), against=["triton", "cublas"])
    assert len(result.cases) == 8  # a shape that is named twice is measured once
    assert len(result.rows) == 24 and len(result.conditions) == 8
    assert [row.name for row in result.at(CUBE, "mk")] == ["triton", "cublas", SPEC]
    variants = {(row.shape[0], row.modes): row.kernel.variant for row in result.rows if row.kernel}
    assert (
        variants[512, "kn"] == "ak_bn_16B" and variants[510, "kn"] != "ak_bn_16B"
    )  # rows of 510 aren't 16 bytes apart
    assert (
        variants[512, "kk"] == "ak_bk_16B" and variants[512, "mn"] == "am_bn_16B" and variants[512, "mk"] == "am_bk_16B"
    )
    assert set(result.at(CUBE, "kn")[-1].ratios) == {"cublas", "triton"}


def test_progress_adds_up() -> None:
    seen = Seen()
    run(lab(), shapes=[CUBE, (64, 128, 32)], modes=["kn", "mk"], watch=seen)
    assert list(seen.amounts) == ["compiling", "measuring"]
    for phase, amount in seen.amounts.items():
        assert sum(seen.begun[phase]) == pytest.approx(amount)


def test_no_rival_is_fine() -> None:
    (row,) = run(lab(), against=[]).rows
    assert row.tflops and row.ratios == {}


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [1e-3, float("nan"), float("inf")])
def test_a_wrong_kernel_is_reported_with_its_error_and_gets_no_time(error: float, tmp_path: Path) -> None:
    fake, out = lab(), tmp_path / "x.json"
    fake.errors[SPEC] = error
    theirs, mine = run(fake, out=out).rows
    assert theirs.failure is None and theirs.tflops
    assert mine.failure is not None and mine.failure.startswith("wrong: ")
    assert (mine.samples_ms, mine.tflops, mine.ratios) == ((), None, {})
    assert mine.max_error == (1e-3 if error == 1e-3 else None)
    assert ("timed", SPEC) not in fake.log and ("timed", "cublas") in fake.log
    assert list(read(out).failures) == [mine]


def test_a_wrong_rival_has_no_ratio_to_it() -> None:
    fake = lab()
    fake.errors["cublas"] = 1.0
    theirs, mine = run(fake).rows
    assert theirs.failure and not theirs.samples_ms
    assert mine.failure is None and mine.tflops and mine.ratios == {}


def test_a_refused_launch_is_reported_and_a_fault_ends_it(tmp_path: Path) -> None:
    fake, out = lab(), tmp_path / "x.json"
    fake.errors[SPEC] = BuildError("the CUDA driver performs cuLaunchKernel", got="CUDA_ERROR_INVALID_VALUE")
    theirs, mine = run(fake, out=out).rows
    assert theirs.tflops and mine.failure is not None and "cuLaunchKernel" in mine.failure
    out.unlink()
    fake.errors[SPEC] = LayoutgenError("no fault", got="an illegal memory access")
    with pytest.raises(LayoutgenError, match="illegal memory access"):
        run(fake, out=out)
    assert not fake.entered and not out.exists()


def test_the_allowed_error_is_that_of_rounding() -> None:
    assert allowed_error(1) == 2 * 2.0**-24
    assert allowed_error(8192) == allowed_error(100_000) < 1 / 100_000  # less than a k that is missing


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"against": ["cubals"]}, "did you mean cublas?"),
        ({"modes": ["nk"]}, "allowed: kn, kk, mn, mk"),
        ({"repeats": 5}, "at least 6"),
        ({"shapes": []}, "name a shape"),
        ({"shapes": [(0, 1, 1)]}, "at least 1"),
        ({"against": ["cublas", "cublas"]}, "cublas twice"),
    ],
)
def test_requests_that_make_no_sense(options: dict[str, object], said: str, tmp_path: Path) -> None:
    fake, out = lab(), tmp_path / "x.json"
    with pytest.raises(RequestError) as caught:
        run(fake, out=out, **options)
    assert said in str(caught.value)
    assert fake.log == [] and not out.exists()


def test_without_a_gpu_it_says_so_and_writes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build, "current_arch", lambda: None)
    with pytest.raises(RequestError, match="a bench measures on an NVIDIA GPU"):
        bench([SPEC], out=tmp_path / "x.json")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    for out in (tmp_path / "none" / "x.json", tmp_path):
        fake = lab()
        with pytest.raises(LayoutgenError, match="the result can be written"):
            run(fake, out=out)
        assert fake.log == []


# --- interruption ----------------------------------------------------------------------------------------------------


def test_ctrl_c_between_rounds_keeps_those_before(tmp_path: Path) -> None:
    out, seen = tmp_path / "x.json", Seen("round 7 of 9", after=2)  # in the second of three cases
    with pytest.raises(KeyboardInterrupt):
        run(lab(), shapes=[CUBE, (256, 256, 256), (128, 128, 128)], out=out, watch=seen)
    kept = read(out)
    assert not kept.complete
    assert [len(row.samples_ms) for row in kept.rows] == [9, 9, 7, 7]
    assert all(row.ratios for row in kept.rows if row.kind == "spec")
    assert [rows for rows, _ in seen.cases] == [kept.rows[:2], kept.rows[2:]]
    assert [each.name for each in tmp_path.iterdir()] == ["x.json"]


def test_ctrl_c_while_a_call_is_timed_keeps_whole_rounds(tmp_path: Path) -> None:
    out, fake = tmp_path / "x.json", lab()

    def interrupted(n: int) -> float:
        if n == 20:
            raise KeyboardInterrupt
        return 1.0

    fake.times["cublas"] = interrupted
    with pytest.raises(KeyboardInterrupt):
        run(fake, repeats=30, out=out)
    first, second = (row.samples_ms for row in read(out).rows)
    assert 0 < len(first) == len(second) < 30


def test_ctrl_c_in_a_first_check_leaves_no_file_and_a_few_rounds_give_no_ratio(tmp_path: Path) -> None:
    out = tmp_path / "x.json"
    with pytest.raises(KeyboardInterrupt):
        run(lab(), out=out, watch=Seen("checking", after=1))
    assert not out.exists()
    with pytest.raises(KeyboardInterrupt):
        run(lab(), out=out, watch=Seen("round 2", after=1))
    assert [(len(row.samples_ms), row.ratios) for row in read(out).rows] == [(2, {}), (2, {})]


def test_a_kill_after_a_case_leaves_it(tmp_path: Path) -> None:
    out, left = tmp_path / "x.json", []

    class Reading(Watch):
        def measured(self, rows: Sequence[Row], conditions: Conditions) -> None:
            left.append(read(out))

    result = run(lab(), shapes=[CUBE, (256, 256, 256)], out=out, watch=Reading())
    assert [len(each.rows) for each in left] == [2, 4]
    assert [each.complete for each in left] == [False, True]
    assert left[-1] == result


def test_a_write_that_breaks_off_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "x.json"
    result = run(lab(), out=out)
    whole, before = Path.write_text, out.read_bytes()

    def broken(path: Path, text: str | Path, **options: object) -> int:
        if isinstance(text, str):
            whole(path, text[: len(text) // 2])
        raise OSError(28, "No space left on device")

    for owner, name in ((Path, "write_text"), (os, "replace")):
        with monkeypatch.context() as patch, pytest.raises(LayoutgenError, match="no space left on device"):
            patch.setattr(owner, name, broken)
            write(replace(result, complete=False), out)
        assert out.read_bytes() == before and list(tmp_path.iterdir()) == [out]


# --- JSON ------------------------------------------------------------------------------------------------------------


def test_json_round_trip_and_its_derived_figures(tmp_path: Path) -> None:
    out = tmp_path / "x.json"
    result = run(lab(**{SPEC: 1.0}), against=["cublas", "triton"], out=out)
    assert read(out) == result
    write(read(out), tmp_path / "y.json")
    assert (tmp_path / "y.json").read_bytes() == out.read_bytes()
    data = json.loads(out.read_text())
    assert (data["format"], data["schema"], data["complete"]) == ("layoutgen bench", 1, True)
    mine = data["rows"][-1]
    assert mine["ratios"]["cublas"]["ratio"] is None  # the same speed: refused
    assert mine["ratios"]["cublas"]["low"] <= 1 <= mine["ratios"]["cublas"]["high"]
    assert mine["ratios"]["triton"]["ratio"] == pytest.approx(2, rel=0.02)
    assert mine["median_ms"] == pytest.approx(1.0) and mine["min_ms"] == min(mine["samples_ms"])
    assert mine["tflops"] == pytest.approx(2 * 512**3 / mine["median_ms"] / 1e9)
    assert data["conditions"][0]["watts"] == {"median": 650.0, "low": 600.0, "high": 700.0}
    assert mine["kernel"]["loop"]["ffma"] > 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{\n nonsense", "x.json:2: the file is a result"),
        ("[1, 2]", "got: JSON, but something else"),
        ('{"script": "benchmarks/other.py", "rows": []}', "got: JSON, but an object with script, rows"),
        ('{"format": "layoutgen bench", "schema": 99}', "got: schema 99"),
        ('{"format": "layoutgen bench", "schema": 1}', "got: script: field required"),
    ],
)
def test_a_file_that_is_no_result(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(RequestError) as caught:
        read(file)
    assert said in str(caught.value) and "fix: " in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_damaged_result_names_the_place(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    run(lab(), out=file)
    for key, value in (("samples_ms", [-1.0]), ("shape", [1, 2]), ("kernel", {}), ("modes", 3)):
        data = json.loads(file.read_text())
        data["rows"][1][key] = value
        (tmp_path / "y.json").write_text(json.dumps(data))
        with pytest.raises(RequestError, match=rf"rows\.1\.{key}"):
            read(tmp_path / "y.json")
    with pytest.raises(RequestError, match="no such file"):
        read(tmp_path / "z.json")


def test_frozen_rounds_are_a_stream() -> None:
    fake = lab()
    stream = rounds({"cublas": lambda: "cublas"}, fake, 5)
    next(stream)
    assert fake.log == [("timed", "cublas")]


def test_a_ratio_reads_as_what_it_is() -> None:
    assert str(Ratio(1.25, 1.2, 1.3)) == "1.250 (1.200 .. 1.300)"
    assert replace(Ratio(1.25, 1.2, 1.3), ratio=None).ratio is None
