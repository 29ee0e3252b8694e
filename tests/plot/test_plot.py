"""Plots from results: what they show, where it stands, that the same data gives the same bytes, and what is refused."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from layoutgen.bench import Result, write
from layoutgen.draw.palette import LIGHT
from layoutgen.errors import DrawError, RequestError
from layoutgen.plot import KINDS, bars, plot, roofline, sizes, style
from tests.draw.test_palette import contrast
from tests.plot.results import LADDER, ROOT, ladder, measured

CUBE = (4096, 4096, 4096)
SPECS = tuple(dict.fromkeys(row.name for row in measured().rows if row.kind == "spec"))


def axes_of(figure: Figure) -> Axes:
    (axes,) = figure.axes
    return axes


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in axes_of(figure).texts]


def drawn(figure: Figure, name: str) -> list[tuple[float, float]]:
    """The points of the one line that is called so."""
    (line,) = (line for line in axes_of(figure).lines if line.get_gid() == name)
    return list(zip(map(float, line.get_xdata()), map(float, line.get_ydata()), strict=True))


def every() -> list[Figure]:
    real, twelve = measured(), ladder(wrong="08_banks_padded")
    return [
        sizes(real, "kn"), sizes(real, "mk"), roofline(real, CUBE, "kn"), bars(real, CUBE, "kk"),
        roofline(twelve, CUBE, "kn"), bars(twelve, CUBE, "kn"),
    ]  # fmt: skip


# --- what is shown ---------------------------------------------------------------------------------------------------


def test_size_curves_are_the_medians_in_order_of_size() -> None:
    result = measured()
    figure = sizes(result, "kn")
    assert [tick.get_text() for tick in axes_of(figure).get_xticklabels()] == ["1024", "2048", "4092", "4096", "8192"]
    for name in ("cublas", *SPECS):
        rows = sorted((row for row in result.rows if (row.name, row.modes) == (name, "kn")), key=lambda row: row.shape)
        assert drawn(figure, name) == [(float(i), pytest.approx(row.tflops)) for i, row in enumerate(rows)]
        assert f"{name}  {rows[-1].tflops:.1f}" in texts(figure)
    assert len(axes_of(figure).collections) == 1 + len(SPECS)  # a band each
    low, high = (rows[0].tflops_at(part) for part in (0.25, 0.75))
    band = axes_of(figure).collections[-1].get_paths()[0].vertices
    at_0 = sorted({round(float(y), 6) for x, y in band if x == 0.0})
    assert at_0 == pytest.approx([low, high], abs=1e-5)


def test_a_failed_row_leaves_a_gap_and_lone_shapes_are_not_joined() -> None:
    result = measured()
    rows = [
        replace(row, samples_ms=()) if row.name == SPECS[0] and row.shape[0] == 4092 else row for row in result.rows
    ]
    assert [x for x, _ in drawn(sizes(replace(result, rows=tuple(rows)), "kn"), SPECS[0])] == [0.0, 1.0, 3.0, 4.0]
    odd = tuple(replace(row, shape=(16, *row.shape[1:])) for row in result.rows)
    (line,) = (line for line in axes_of(sizes(replace(result, rows=odd), "kn")).lines if line.get_gid() == SPECS[0])
    assert line.get_linestyle() == "None"


def test_many_sizes_stand_to_scale() -> None:
    result = measured()
    rows = tuple(replace(row, shape=(64 * n, 64 * n, 64 * n)) for n in range(1, 21) for row in result.at(CUBE, "kn"))
    assert [x for x, _ in drawn(sizes(replace(result, rows=rows), "kn"), "cublas")] == pytest.approx(
        [64 * n for n in range(1, 21)]
    )


def test_roofline_points_stand_at_their_intensity_under_their_ceiling() -> None:
    result = measured()
    figure = roofline(result, CUBE, "kn")
    for row in result.at(CUBE, "kn"):
        if row.kernel is None:
            continue
        ((x, y),) = drawn(figure, row.name)
        assert x == pytest.approx(row.kernel.intensity, rel=0.07) and y == pytest.approx(row.tflops)
        above = [line.get_ydata() for line in axes_of(figure).lines if list(line.get_xdata()) == [x]]
        assert [pytest.approx(row.kernel.ceiling_tflops)] in [list(each) for each in above]
        assert f"{row.name}  {row.tflops:.1f} of {row.kernel.ceiling_tflops:.1f}" in texts(figure)
    roof = next(line for line in axes_of(figure).lines if len(line.get_xdata()) == 3)
    assert list(roof.get_ydata())[1:] == [66.9, 66.9] and roof.get_xdata()[1] == pytest.approx(66.9 / 4.8)
    assert "h200: FP32 peak 66.9 TFLOP/s" in texts(figure) and "memory 4800 GB/s" in texts(figure)
    alike = ("sgemm_128x256x16", "sgemm_mn_128x256x16", "sgemm_stream_128x256x16")  # of one tile, so of one intensity
    apart = sorted(drawn(figure, name)[0][0] for name in alike)
    assert apart[0] < apart[1] < apart[2] and apart[1] == pytest.approx(128 / 3)


def test_bars_stand_in_the_given_order_in_the_outline_of_their_ceiling() -> None:
    figure = bars(ladder(wrong="08_banks_padded"), CUBE, "kn")
    names = [tick.get_text() for tick in axes_of(figure).get_xticklabels()]
    assert names == [name for name, *_ in LADDER]
    named = {patch.get_gid(): patch.get_height() for patch in axes_of(figure).patches if patch.get_gid()}
    hollow = [patch.get_height() for patch in axes_of(figure).patches if not patch.get_fill()]
    assert hollow == [ceiling for _, _, ceiling, _ in LADDER]
    assert named == {name: pytest.approx(speed) for name, speed, *_ in LADDER if name != "08_banks_padded"}
    places = {patch.get_gid(): patch.get_x() + patch.get_width() / 2 for patch in axes_of(figure).patches}
    assert all(places[name] == pytest.approx(names.index(name)) for name in named)
    assert texts(figure).count("wrong") == 1
    assert {"cublas  50.9", "triton  41.2", "0.52", "60.8"} <= set(texts(figure))
    lines = [list(line.get_ydata()) for line in axes_of(figure).lines]
    assert [pytest.approx(50.9)] * 2 in lines and [pytest.approx(41.2)] * 2 in lines


def test_where_and_how_it_was_measured_is_said() -> None:
    at = next(each for each in measured().conditions if (each.shape, each.modes) == (CUBE, "kn"))
    assert at.sm_mhz is not None and at.watts is not None
    said = f"NVIDIA H200, fp32, a:k b:n, {at.sm_mhz.median:.0f} MHz, {at.watts.median:.0f} W, cold L2, median"
    assert said in texts(bars(measured(), CUBE, "kn"))
    cut = replace(measured(), complete=False, conditions=())
    assert "NVIDIA H200, fp32, a:k b:n, cold L2, median, interrupted" in texts(sizes(cut, "kn"))


# --- legible ---------------------------------------------------------------------------------------------------------


def test_nothing_is_cut_and_labels_do_not_overlap() -> None:
    for figure in every():
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # places everything
        renderer, (width, height) = canvas.get_renderer(), figure.dpi * figure.get_size_inches()
        axes = axes_of(figure)
        ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
        seen = [label for at, label in ticks if axes.get_xlim()[0] <= at <= axes.get_xlim()[1]]
        shown: list[Text] = [each for each in (*axes.texts, *seen) if each.get_text()]
        boxes = [each.get_window_extent(renderer) for each in shown]
        for each, box in zip(shown, boxes, strict=True):
            assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, each.get_text()
        right = sorted((box.y0, box.y1) for box in boxes if box.x0 > axes.get_window_extent().x1)
        assert all(below[1] <= above[0] + 1.0 for below, above in zip(right, right[1:], strict=False))


def test_lines_and_names_stand_out_from_the_paper() -> None:
    for index in range(8):
        assert contrast(style.colour(index), LIGHT.paper) > 4.5  # WCAG 2.2, text
    looks = {(style.colour(index), style.marker(index)) for index in range(32)}
    assert len(looks) == 32 and len({to_rgb(style.colour(index)) for index in range(8)}) == 8


def test_the_examples() -> None:
    from layoutgen.plot import bars as module  # the function, whose module has examples too

    assert doctest.testmod(style).attempted == 3 and doctest.testmod(style).failed == 0
    assert doctest.testmod(sys.modules[module.__module__]).failed == 0


# --- files -----------------------------------------------------------------------------------------------------------


def test_the_same_json_gives_the_same_bytes_whatever_else_is_set(tmp_path: Path) -> None:
    write(measured(), tmp_path / "x.json")
    script = (
        f"import matplotlib; matplotlib.rcParams['font.size'] = 30; from layoutgen.plot import plot;"
        f"plot({str(tmp_path / 'x.json')!r}, {str(tmp_path / 'other')!r}, modes=['kn'])"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": "7"})
    size = matplotlib.rcParams["font.size"]
    files = plot(tmp_path / "x.json", tmp_path / "own", modes=["kn"])
    assert matplotlib.rcParams["font.size"] == size
    assert [file.name for file in files] == ["x-roofline.svg", "x-sizes.svg", "x-bars.svg"]
    for file in files:
        assert file.read_bytes() == (tmp_path / "other" / file.name).read_bytes()
        text = file.read_text()
        assert not re.search(r"\b20\d\d-\d\d-\d\d|dc:date|matplotlib v|matplotlib\.org", text)
        assert len(text) < 150_000


def test_names_of_files(tmp_path: Path) -> None:
    write(measured(), tmp_path / "x.json")
    every_pair = plot(tmp_path / "x.json", kinds=["bars"], format="png")
    assert [file.name for file in every_pair] == [f"x-bars-{pair}.png" for pair in ("kn", "kk", "mn", "mk")]
    assert all(file.read_bytes().startswith(b"\x89PNG") and file.parent == tmp_path for file in every_pair)
    (one,) = plot(measured(), tmp_path / "one.SVG", kinds=["sizes"], modes=["kk"])
    assert one == tmp_path / "one.SVG" and b"<svg" in one.read_bytes()
    # One size has no curve, and a result alone no name.
    assert [file.name for file in plot(ladder(), tmp_path / "a" / "b")] == ["bench-roofline.svg", "bench-bars.svg"]


def test_the_largest_shape_is_shown_unless_another_is_asked_for(tmp_path: Path) -> None:
    shown = {"kinds": ["bars"], "modes": ["kn"]}
    largest, asked, same = (
        plot(measured(), tmp_path / f"{name}.svg", shape=shape, **shown)[0].read_bytes()  # type: ignore[arg-type]
        for name, shape in (("a", None), ("b", CUBE), ("c", (8192,) * 3))
    )
    assert largest == same != asked


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kinds": ["roof"]}, "did you mean roofline?"),
        ({"modes": ["nk"]}, "allowed: kn, kk, mn, mk"),
        ({"format": "pdf"}, "allowed: svg, png"),
        ({"out": "x.pdf"}, "allowed: .svg, .png"),
        ({"out": "x.svg"}, "choose one with --kind and --modes"),
        ({"shape": (7, 7, 7), "kinds": ["bars"]}, "got: 7³"),
    ],
)
def test_requests_that_make_no_sense(options: dict[str, object], said: str, tmp_path: Path) -> None:
    options = {"out": str(tmp_path), **options}
    if options["out"] != str(tmp_path):
        options["out"] = str(tmp_path / str(options["out"]))
    with pytest.raises(RequestError) as caught:
        plot(measured(), **options)  # type: ignore[arg-type]
    assert said in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_draw(tmp_path: Path) -> None:
    rivals = replace(ladder(), rows=ladder().rows[:2])
    for result, kinds in (
        (ladder(), ["sizes"]),
        (rivals, None),
        (Result("", ladder().machine, ladder().device, 30), None),
    ):
        with pytest.raises(RequestError, match="what is to be drawn"):
            plot(result, tmp_path, kinds=kinds)
    assert list(tmp_path.iterdir()) == [] and len(KINDS) == 3


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DrawError, match="is a file, not a folder"):
        plot(ladder(), tmp_path / "file" / "there")
