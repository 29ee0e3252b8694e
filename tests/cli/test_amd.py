"""Specs of an AMD architecture on the command line: checked, explained and drawn; never built, emitted or run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import layoutgen
from layoutgen import draw, paths
from layoutgen.bench import bench
from layoutgen.emit import emit
from layoutgen.emitted import emitted_specs, require_emitted
from layoutgen.errors import BuildError, DrawError
from layoutgen.facts import facts
from layoutgen.hw.devices import DEVICES
from layoutgen.plan import plan, plan_primary
from layoutgen.spec import load
from tests.cli.conftest import Outcome

Cli = Callable[..., Outcome]
NAME = "triton_f16_mi300x_64x64x32"
PATH = paths.shipped_specs()[NAME]
REFUSED = f"{PATH}:5: layoutgen emits no AMD code yet\n  got: {NAME}, of arch: gfx942\n  allowed: specs of NVIDIA's"


def test_each_spec_is_judged_for_its_own_device(cli: Cli) -> None:
    done = cli("check", "warptile_128x128", NAME)
    assert (done.code, done.stderr) == (0, "")
    first, second = done.stdout.index("on h200"), done.stdout.index("on mi300x")
    assert first < done.stdout.index("warptile_128x128") < second < done.stdout.index(NAME)
    assert done.row(NAME)[:5] == [NAME, "legal", "256", "38..64", "8,192"]
    assert "8 blocks of 4 warps, limited by shared memory and threads: 8 wavefronts on each SIMD" in done.stdout
    found = json.loads(cli("check", "warptile_128x128", NAME, "--json").stdout)
    assert [each["device"] for each in found] == ["h200", "mi300x"]


def test_a_device_that_is_named_is_meant(cli: Cli) -> None:
    done = cli("check", NAME, "--device", "h200")
    assert done.code == 1 and "error [arch]" in done.stdout and "gfx942 on h200" in done.stdout
    assert cli("check", NAME, "--device", "mi300x").code == 0


def test_list_says_for_which_device_each_is_legal(cli: Cli) -> None:
    done = cli("list")
    assert done.row("warptile_128x128")[1] == "legal"
    assert done.row(NAME)[1:4] == ["legal", "on", "mi300x"]


@pytest.mark.parametrize("device", [(), ("--device", "mi300x"), ("--device", "h200")])
def test_build_says_plainly_that_there_is_no_code(cli: Cli, device: tuple[str, ...]) -> None:
    done = cli("build", NAME, *device)
    assert (done.code, done.stdout) == (1, "") and done.stderr.startswith(REFUSED)


def test_emit_writes_nothing(cli: Cli, tmp_path: Path) -> None:
    done = cli("emit", PATH, "-o", tmp_path / "out")
    assert (done.code, done.stdout) == (1, "") and done.stderr.startswith(REFUSED)
    assert cli("emit", NAME, "--stdout").stderr.startswith(REFUSED)
    assert list(tmp_path.iterdir()) == []


def test_nothing_else_makes_a_kernel_of_one() -> None:
    spec = load(PATH)
    for attempt in (
        lambda: layoutgen.load(NAME), lambda: bench([NAME]), lambda: emit(plan_primary(spec)),
        lambda: require_emitted(spec),
    ):  # fmt: skip
        with pytest.raises(BuildError, match="layoutgen emits no AMD code yet") as raised:
            attempt()
        assert NAME in (raised.value.got or "") and raised.value.fix
    with pytest.raises(AttributeError):
        _ = getattr(layoutgen.ops.torch.ops.layoutgen, NAME)


def test_the_specs_that_have_code_are_all_others() -> None:
    left = set(paths.shipped_specs()) - set(emitted_specs())
    assert left == {path.stem for path in (paths.specs() / "mi300x").glob("*.yaml")} and len(left) == 4


@pytest.mark.parametrize("name", sorted(set(paths.shipped_specs()) - set(emitted_specs())))
def test_explain_tells_it_in_a_page(cli: Cli, name: str) -> None:
    done = cli("explain", name)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.count("\n") <= 90
    waves = load(paths.find_spec(name)).schedule.waves_per_eu
    for said in (
        "v_mfma_f32_16x16x16_f16, a matrix-core instruction of a wavefront, 64 lanes: 16 x 16 x 16", "ds_read_b64",
        "thread = lane + 64 warp", "load A, B of k-tile + 2 from global", f"At least {waves} wavefronts",
    ):  # fmt: skip
        assert said in " ".join(done.stdout.split())
    for wrong in ("cp.async", "ldmatrix", "mma.sync", "x 32 lanes"):
        assert wrong not in done.stdout


def test_explain_follows_an_element_and_a_thread(cli: Cli) -> None:
    """C(9,13): row 9 is of the third group of 16 lanes, 4 rows each; A(9,6) is the second group's ninth lane's."""
    told = json.loads(cli("explain", NAME, "--coord", "9,13", "--thread", "93", "--json").stdout)
    at = told["coordinate"]
    assert (at["thread"], at["warp"], at["lane"], at["value"]) == (32 + 13, 0, 45, [1, 0])
    assert at["a"]["lane"][:17] == [9 + 16 * (k // 4) for k in range(16)] + [9]
    assert at["b"]["held"][:8] == [0, 0, 1, 1, 0, 0, 1, 1]
    assert (told["thread"]["warp"], told["thread"]["lane"]) == (1, 29)
    assert told["thread"]["m"] == [36, 37, 38, 39, 52, 53, 54, 55]
    loads = told["thread"]["a"]["loads"]
    assert [each["elements"] for each in loads] == [[[32 + x, k] for k in range(4, 8)] for x in (13, 29)]


def test_it_is_drawn_at_every_level_but_the_banks(cli: Cli, tmp_path: Path) -> None:
    each = plan(load(PATH))[0]
    for level in draw.LEVELS:
        if level == "banks":
            with pytest.raises(DrawError, match="known of NVIDIA's warps"):
                draw.level_drawing(each, level)
        else:
            assert draw.to_svg(draw.level_drawing(each, level)).startswith("<svg")
    lanes = draw.level_drawing(each, "lane")
    atom = next(panel for panel in lanes.panels if panel.id == "atom")
    own = {(box.row, box.column, box.rows, box.columns): box.label for box in atom.boxes}
    assert own == {(4 * g, c, 4, 1): str(16 * g + c) for g in range(4) for c in range(16)}
    tile = next(panel for panel in lanes.panels if panel.id == "lane")
    assert {box.label for box in tile.boxes} == {*map(str, range(64)), "warp 1", "warp 2", "warp 3"}
    page = draw.to_html(each, draw.aside(facts(each, DEVICES["mi300x"])))
    assert '"warpSize": 64' in page and '"wavefronts": null' in page
    assert draw.draw(NAME, tmp_path / "x.html").read_text() == page and "Budgets on mi300x" in page
    assert cli("draw", NAME, "-o", tmp_path / "y.html").code == 0 and (tmp_path / "y.html").read_text() == page


def test_what_differs_from_another_of_its_kind(cli: Cli, tmp_path: Path) -> None:
    done = cli("diff", NAME, "triton_f16_mi300x_128x128x32", "-o", tmp_path / "diff.svg")
    assert done.code == 1 and "schedule.waves_per_eu: 8" in done.stdout
    assert cli("diff", NAME, "triton_f16_64x64x32").code == 1
