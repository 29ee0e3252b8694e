"""The picture of a copy whose threads read along one mode and write along the other."""

from __future__ import annotations

from layoutgen.draw import level_drawing
from tests.draw.conftest import plans_of


def test_a_line_goes_round_each_patch_that_a_thread_turns() -> None:
    """sgemm_128x256x16: 2 m x 4 k of A a thread, read by rows and written by columns; B has none of its own mode."""
    plan = plans_of("sgemm_128x256x16")[0]
    copied = plan.a.copy
    outlined = set()
    for number, panel in enumerate(level_drawing(plan, "copy_a").panels):
        outlined |= {(32 * number + box.row, box.column, box.rows, box.columns) for box in panel.outlines}
    assert outlined == {(copied.thread_x(t), copied.thread_k(t), 2, 4) for t in range(256)}
    told = "Within a line is a patch that a thread turns in its registers: read along k, written along m"
    assert told in level_drawing(plan, "copy_a").about
    assert "turns" not in level_drawing(plan, "copy_b").about
    turning = next(each for each in plans_of("sgemm_128x256x16") if each.variant == "ak_bk_16B")
    assert "read along k, written along n" in level_drawing(turning, "copy_b").about
    boxes = [box for panel in level_drawing(turning, "copy_b").panels for box in panel.outlines]
    assert {(box.rows, box.columns) for box in boxes} == {(4, 4)} and len(boxes) == 256
    assert level_drawing(plans_of("fine")[0], "copy_a").panels[0].outlines == ()
