"""The page in a real browser: a hover, keys, both themes, and no request to anywhere."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from layoutgen.draw import draw, find_plan
from layoutgen.draw.memory import copy_passes
from layoutgen.draw.palette import DARK, LIGHT
from layoutgen.draw.timeline import stage_names, timeline
from layoutgen.facts import c_owners, copy_owners, fragment_executions, shared_banks, shared_offsets
from layoutgen.plan import Plan
from layoutgen.plan.schedule import work
from tests.draw.conftest import plans_of
from tests.plan.drafts import Draft

NAMES = ("warptile_128x128", "salykov_128x256x8")
CONFLICTING = Draft(shared_a="(64,8):(32,1)", values=("1", "4"))
QUIET = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        missing = "no Chromium on the PATH: apt-get install chromium, or your system's package of it"
        # Continuous integration installs one, and must never pass without having looked.
        (pytest.fail if os.environ.get("LAYOUTGEN_REQUIRE_BROWSER") else pytest.skip)(missing)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, chromium_sandbox=False, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {name: draw(name, folder / f"{name}.html") for name in NAMES}


@contextmanager
def opened(
    browser: Browser, file: Path, *, scheme: str = "light", width: int = 1440, height: int = 900
) -> Iterator[Page]:
    """The page; fails if it logs an error or asks for anything but itself."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    yield page
    assert (asked, errors) == ([file.as_uri()], [])
    page.close()


def hover(page: Page, plan: Plan, m: int, n: int) -> None:
    """Move the mouse to the middle of element (m, n) of the map, as the browser has laid it out."""
    x, y = page.evaluate(
        """([m, n, rows, columns]) => {
            const box = document.querySelector(".view.shown path.strong").getBBox();  // without its stroke
            const at = new DOMPoint((n + 0.5) / columns * box.width, (m + 0.5) / rows * box.height);
            const { x, y } = at.matrixTransform(document.querySelector(".view.shown").getScreenCTM());
            return [x, y];
        }""",
        [m, n, *plan.tile.block[:2]],
    )
    page.mouse.move(x, y)


def owner(plan: Plan, m: int, n: int) -> str:
    owners = c_owners(plan.tile, plan.threads)
    i, j = owners.value_m[m, n], owners.value_n[m, n]
    register = i + plan.tile.value_mode[0].size * j
    return (
        f"C({m}, {n}): thread {owners.thread[m, n]}, warp {owners.warp[m, n]}, lane {owners.lane[m, n]}, "
        f"accumulator {register}, its value ({i}, {j})."
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("view", ["warp", "lane"])
def test_a_hover_tells_the_owner(browser: Browser, files: dict[str, Path], name: str, view: str) -> None:
    plan = plans_of(name)[0]
    block_m, block_n, _ = plan.tile.block
    with opened(browser, files[name]) as page:
        page.click(f"button[data-view={view}]")
        for m, n in ((5, 77), (0, 0), (block_m - 1, block_n - 1), (38, 51), (block_m // 2, block_n // 2)):
            hover(page, plan, m, n)
            assert page.inner_text("#summary") == owner(plan, m, n)
            marked = page.eval_on_selector_all(
                "#marks-c rect", "all => all.map(r => r.width.baseVal.value * r.height.baseVal.value)"
            )
            values = plan.tile.value_mode[0].size * plan.tile.value_mode[1].size
            unit = page.evaluate("JSON.parse(document.getElementById('data').textContent).unit")
            assert sum(marked) == pytest.approx(values * unit * unit)


@pytest.mark.parametrize("name", NAMES)
def test_what_an_element_reads(browser: Browser, files: dict[str, Path], name: str) -> None:
    plan = plans_of(name)[0]
    m, n, k = 38, 51, 3
    with opened(browser, files[name]) as page:
        hover(page, plan, m, n)
        for _ in range(k):
            page.keyboard.press("]")
        assert page.inner_text("#k-value") == str(k)
        for operand, x, caption in ((plan.a, m, "A"), (plan.b, n, "B")):
            table = page.locator("#reads table", has_text=f"{caption} at k = {k}")
            rows = [row.split("\t") for row in table.locator("tr").all_inner_texts()][1:]
            words = shared_offsets(operand.shared)
            copiers = copy_owners(operand.copy, words.shape).thread
            vector = operand.fragment.vector
            warp = c_owners(plan.tile, plan.threads).warp[m, n]
            each = next(e for e in fragment_executions(plan, operand) if (e.k, e.warp) == (k, warp))
            assert f"one {4 * vector}-byte load, {each.wavefronts} wavefronts" in table.locator("caption").inner_text()
            assert len(rows) == vector
            first = x - x % vector  # the specs' values are neighbours from a multiple of the vector
            for at, row in zip(range(first, first + vector), rows, strict=True):
                assert row[:3] == [f"({at}, {k})", str(words[at, k]), str(shared_banks(plan, operand)[at, k])]
                along, across = (k, f"{operand.x} {at}") if operand.contiguous == "k" else (at, f"k {k}")
                assert row[3] == f"{along * 4 // 32} of {across}"
                assert re.match(rf"thread {copiers[at, k]}\b", row[4])
            assert [row[0] for row in rows].index(f"({x}, {k})") == table.locator("tr").evaluate_all(
                "rows => rows.findIndex(row => row.className === 'this')"
            ) - 1


def rows_of(page: Page, operand: str) -> tuple[str, list[list[str]], int]:
    """The caption of an operand's table, its rows below the head, and which of them is marked."""
    table = page.locator("#reads table", has_text=f"{operand} at k =")
    rows = [row.split("\t") for row in table.locator("tr").all_inner_texts()]
    this = table.locator("tr").evaluate_all("rows => rows.findIndex(row => row.className === 'this')")
    return table.locator("caption").inner_text(), rows[1:], this - 1


def test_a_load_along_k_is_told_with_all_its_k(browser: Browser, tmp_path: Path) -> None:
    plan = plans_of("ladder_05_thread_tile_2d")[0]
    operand = plan.in_shared("a")
    words, banks = shared_offsets(operand.shared), shared_banks(plan, operand)
    copiers = copy_owners(operand.copy, operand.tile).thread
    with opened(browser, draw("ladder_05_thread_tile_2d", tmp_path / "x.html")) as page:
        m, k = 43, 6
        hover(page, plan, m, 51)
        for _ in range(k):
            page.keyboard.press("]")
        caption, rows, this = rows_of(page, "A")
        owner = c_owners(plan.tile, plan.threads)
        at = (4, owner.value_m[m, 51], owner.warp[m, 51])
        each = next(e for e in fragment_executions(plan, operand) if (e.k, e.instruction, e.warp) == at)
        assert caption == f"A at k = 4 to 7: one 16-byte load, {each.wavefronts} wavefronts"
        assert this == k - 4
        for row, at_k in zip(rows, range(4, 8), strict=True):
            assert row[:4] == [f"({m}, {at_k})", str(words[m, at_k]), str(banks[m, at_k]), f"0 of m {m}"]
            assert row[4].startswith(f"thread {copiers[m, at_k]},")
        assert rows_of(page, "B")[0].startswith("B at k = 6: one 16-byte load, 8 wavefronts, 4 without conflicts")
        assert "the operand's only stage" in page.inner_text("#reads p")


@pytest.mark.parametrize("wide", [True, False])
def test_without_shared_memory_a_thread_loads_for_itself(browser: Browser, tmp_path: Path, wide: bool) -> None:
    """wide: of A, which is contiguous in k, four k at once."""
    values = "" if wide else ", values: [1, 1]"
    draft = Draft(stages=0, copy_a=f"{{atom: ldg{values}}}", copy_b=f"{{atom: ldg{values}}}")
    file = tmp_path / "draft.yaml"
    file.write_text(draft.text())
    plan = find_plan(file)
    m, n, k = 38, 51, 5
    owners = c_owners(plan.tile, plan.threads)
    with opened(browser, draw(file, tmp_path / "x.html")) as page:
        hover(page, plan, m, n)
        for _ in range(k):
            page.keyboard.press("]")
        caption, rows, this = rows_of(page, "A")
        assert caption == f"A at k = {'4 to 7: one 16' if wide else '5: one 4'}-byte load from global memory"
        passes = [copy_passes(plan.a)[0][owners.value_m[m, n], at] for at in (range(4, 8) if wide else (5,))]
        assert rows == [
            [f"({m}, {at})", f"0 of m {m}", f"thread {owners.thread[m, n]}, pass {number}"]
            for at, number in zip(range(4, 8) if wide else (5,), passes, strict=True)
        ]
        assert this == (k - 4 if wide else 0)
        caption, rows, this = rows_of(page, "B")
        assert [row[0] for row in rows] == [f"({at}, {k})" for at in (range(48, 52) if wide else (51,))]
        assert {row[1] for row in rows} == {f"6 of k {k}"}
        assert "no words and banks" in page.inner_text("#reads p") and page.locator(".bankrow").count() == 0


def test_arrow_keys_move_and_stop_at_the_edge(browser: Browser, files: dict[str, Path]) -> None:
    plan = plans_of(NAMES[0])[0]
    with opened(browser, files[NAMES[0]]) as page:
        page.focus("#map")
        at = np.array([0, 0])
        for key, move in (
            ("ArrowDown", (1, 0)),
            ("Shift+ArrowRight", (0, 8)),
            ("ArrowLeft", (0, -1)),
            ("Shift+ArrowDown", (8, 0)),
            ("ArrowUp", (-1, 0)),
            ("Shift+ArrowUp", (-8, 0)),
            ("ArrowUp", (0, 0)),
        ):
            page.keyboard.press(key)
            at += move
            assert page.inner_text("#summary") == owner(plan, *at)
        page.keyboard.press("Enter")
        assert page.inner_text("#summary").endswith("Kept.")
        hover(page, plan, 100, 100)
        assert page.inner_text("#summary").startswith(f"C({at[0]}, {at[1]})")


def test_a_conflict_is_told_for_the_load_that_has_it(browser: Browser, tmp_path: Path) -> None:
    """A tile whose rows of A are 128 words apart, read one row a lane."""
    spec = tmp_path / "draft.yaml"
    spec.write_text(CONFLICTING.text())
    plan = find_plan(spec)
    told = set()
    with opened(browser, draw(spec, tmp_path / "x.html")) as page:
        for m in range(0, plan.tile.block[0], 8):
            hover(page, plan, m, 0)
            owners = c_owners(plan.tile, plan.threads)
            at = (0, owners.value_m[m, 0] // plan.a.fragment.vector, owners.warp[m, 0])
            each = next(e for e in fragment_executions(plan, plan.a) if (e.k, e.instruction, e.warp) == at)
            caption = page.locator("#reads caption").first.inner_text()
            conflict = f", {each.conflict_free} without conflicts" if each.wavefronts > each.conflict_free else ""
            plural = "" if each.wavefronts == 1 else "s"
            assert caption.endswith(f"load, {each.wavefronts} wavefront{plural}{conflict}")
            told.add(bool(conflict))
    assert True in told


def test_each_load_has_wavefronts_of_its_own(browser: Browser, files: dict[str, Path], tmp_path: Path) -> None:
    plan = plans_of(NAMES[0])[0]
    owners = c_owners(plan.tile, plan.threads)
    html = files[NAMES[0]].read_text()
    numbered = tmp_path / "x.html"

    def number(found: re.Match[str]) -> str:
        pairs = [[index, index] for index in range(len(json.loads(found[1])))]
        return f'"wavefronts": {json.dumps(pairs)}'

    numbered.write_text(re.sub(r'"wavefronts": (\[\[.*?\]\])', number, html))
    with opened(browser, numbered) as page:
        for m, n in ((5, 77), (127, 0), (38, 51)):
            hover(page, plan, m, n)
            page.keyboard.press("]")
            k = int(page.inner_text("#k-value"))
            captions = page.locator("#reads caption").all_inner_texts()
            values = (owners.value_m[m, n], owners.value_n[m, n])
            for operand, value, caption in zip(plan.operands, values, captions, strict=True):
                load = value // operand.fragment.vector
                index = (k * operand.fragment.vectors + load) * plan.tile.warps.size + owners.warp[m, n]
                assert f"load, {index} wavefronts" in caption


def test_the_page_is_walked_with_tab_and_shows_its_focus(browser: Browser, files: dict[str, Path]) -> None:
    with opened(browser, files[NAMES[0]]) as page:
        order = []
        for _ in range(11):
            page.keyboard.press("Tab")
            order.append(
                page.evaluate("(e => e.id || e.dataset.view || e.dataset.step || e.className)(document.activeElement)")
            )
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        assert order == ["theme", "block", "warp", "lane", "k", "map", "part-back", "back", "on", "part-on", "scroll"]


def test_a_block_is_looked_into(browser: Browser, files: dict[str, Path]) -> None:
    plan = plans_of(NAMES[1])[0]
    m, n, k = plan.tile.block
    order = [(w.m, w.n) for w in work(plan.schedule, plan.tile, 8 * m, 8 * n, 8 * k)]
    with opened(browser, files[NAMES[1]]) as page:
        page.click("button[data-view=block]")
        page.focus("#map")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        block = order.index((m, n))
        assert page.inner_text("#summary").startswith(f"Block {block}: rows {m} to {2 * m - 1} and columns {n} to")
        page.keyboard.press("Enter")
        assert page.inner_text("#map-title") == f"C, the tile of block {block}"
        assert page.inner_text("#info-title") == f"Element C({m}, {n})"


@pytest.mark.parametrize("name", ["warptile_128x128", "ladder_06_vectorised", "ladder_01_naive"])
def test_the_pipeline_is_stepped_through(browser: Browser, tmp_path: Path, name: str) -> None:
    plan = plans_of(name)[0]
    moments = timeline(plan)
    with opened(browser, draw(name, tmp_path / "x.html")) as page:
        for index, moment in enumerate(moments[:12]):
            assert page.inner_text("#moment") == f"{moment.part} step {index + 1} of {len(moments)}: {moment.text}"
            shown = page.locator("#stages div").all()
            for stage, held in enumerate(moment.stages):
                assert page.locator("#stages small").nth(stage).inner_text().split(":")[0] == stage_names(plan)[stage]
                assert page.locator("#stages strong").nth(stage).inner_text() == (
                    "empty" if held.tile is None else f"tile {held.tile} {held.state}"
                )
                assert ("writes" in (shown[stage].get_attribute("class") or "")) == (stage in moment.writes)
                assert ("reads" in (shown[stage].get_attribute("class") or "")) == (stage in moment.reads)
            page.click("button[data-step=on]")
        page.click("button[data-step=part-on]")
        turn = [moment.part for moment in moments].index("turn 1")
        assert page.inner_text("#moment").startswith(f"turn 1 step {turn + 1} of")
        page.click("button[data-step=part-back]")
        page.click("button[data-step=back]")
        assert page.inner_text("#moment").startswith("prologue")


def colour(page: Page, selector: str, property: str) -> str:
    red, green, blue = re.findall(r"\d+", page.eval_on_selector(selector, f"e => getComputedStyle(e).{property}"))[:3]
    return f"#{int(red):02x}{int(green):02x}{int(blue):02x}"


@pytest.mark.parametrize(("scheme", "mine", "other"), [("light", LIGHT, DARK), ("dark", DARK, LIGHT)])
def test_light_and_dark(browser: Browser, files: dict[str, Path], scheme: str, mine: object, other: object) -> None:
    with opened(browser, files[NAMES[0]], scheme=scheme) as page:
        for palette in (mine, other):
            assert colour(page, "body", "backgroundColor") == palette.panel  # type: ignore[attr-defined]
            assert colour(page, "body", "color") == palette.ink  # type: ignore[attr-defined]
            assert colour(page, "#view-warp .t1 rect", "fill") == palette.tones[1]  # type: ignore[attr-defined]
            page.click("#theme")


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (900, 1200), (420, 800)])
def test_nothing_is_wider_than_the_window(browser: Browser, files: dict[str, Path], width: int, height: int) -> None:
    for name in NAMES:
        with opened(browser, files[name], width=width, height=height) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            box = page.locator("#map").bounding_box()
            assert box is not None and box["height"] < height
