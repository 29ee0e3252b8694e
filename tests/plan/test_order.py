"""The issue order: each multiply-add of a thread once, and the emitted loops take them in that order."""

from __future__ import annotations

import re
from itertools import pairwise, product

import pytest
from hypothesis import given

from layoutgen.algebra import Layout
from layoutgen.build.nvrtc import compile_ptx
from layoutgen.emit import emit
from layoutgen.errors import PlanError
from layoutgen.plan import Plan, plan
from layoutgen.plan.order import order_words
from layoutgen.spec import Spec
from tests.kernels.small import small
from tests.plan.drafts import Draft, drafts

ROWS, COLUMNS = 4, 8  # of a thread's tile


def written(order: str) -> Spec:
    return Draft(block=(32, 64, 8), warps="(1,2):(0,1)", values=("4", "4"), order=order).spec()


def places(order: str) -> list[tuple[int, int]]:
    """(i, j) of the values of a thread in their order."""
    each = plan(written(order))[0]
    assert [layout.size for layout in each.tile.value_mode] == [ROWS, COLUMNS]
    return [(value % ROWS, value // ROWS) for value in each.order.values()]


def turned(text: str) -> str:
    """C's conditional expression as Python's."""
    return re.sub(r"([^,?]+)\? ([^,:]+): ([^,]+)", r"(\2) if (\1) else (\3)", text)


def emitted(each: Plan) -> list[int]:
    """The values in the order of the loops of the emitted text."""
    text = emit(each).text
    shape, stride = re.findall(r"using Order = Layout<(.*?),(Stride<.*>|Int<\d+>|_\d+)>;", text)[0]
    digits = [re.sub(r"Int<(\d+)>|_(\d+)|Shape|Stride", r"\1\2", each) for each in (shape, stride)]
    order = Layout.parse(":".join(digits).translate(str.maketrans("<>", "()")))
    body = text[text.index("auto mma = ") :]
    body = body[: body.index("int const value")]
    loops = re.findall(r"for \(int (\w+) = 0; \1 < (\d+); \+\+\1\)", body)
    index = re.search(r"int const value = Order\{\}\((.*)\);", text)
    assert index is not None
    names, coordinate = [name for name, _ in loops], [turned(part) for part in index[1].split(", ")]
    found = []
    for turns in product(*(range(int(extent)) for _, extent in loops)):
        at = dict(zip(names, turns, strict=True))
        found.append(int(order(*(eval(part, {}, at) for part in coordinate))))
    return found


def test_words_are_loops_over_the_modes() -> None:
    rows, columns = range(ROWS), range(COLUMNS)
    assert places("m") == [(i, j) for i in rows for j in columns]
    assert places("n") == [(i, j) for j in columns for i in rows]
    assert places("serpentine_m") == [(i, j) for i in rows for j in columns[:: -1 if i % 2 else 1]]
    assert places("serpentine_n") == [(i, j) for j in columns for i in rows[:: -1 if j % 2 else 1]]


def test_a_layout_sends_steps_to_values() -> None:
    strips = [(i, 2 * strip + j) for strip in range(4) for i in range(ROWS) for j in range(2)]
    assert places("((2,4),4):((4,1),8)") == places("(2,4,4):(4,1,8)") == strips
    back_and_forth = [
        (i, 2 * strip + j)
        for strip in range(4)
        for i in range(ROWS)[:: -1 if strip % 2 else 1]
        for j in range(2)[:: -1 if (i if strip % 2 == 0 else ROWS - 1 - i) % 2 else 1]
    ]
    assert places("serpentine ((2,4),4):((4,1),8)") == back_and_forth
    assert places("32:1") == places("(4,8)") == places("n")


@given(drafts())
def test_every_value_is_multiplied_once_and_a_serpentine_moves_one_mode_by_one(draft: Draft) -> None:
    try:
        each = plan(draft.spec())[0]
    except PlanError:
        return
    values = each.order.values()
    rows, columns = (layout.size for layout in each.tile.value_mode)
    assert sorted(values) == list(range(rows * columns))
    if each.order.serpentine:
        assert {abs(b - a) for a, b in pairwise(values)} <= set(each.order.layout.flat_stride)


@given(drafts())
def test_the_emitted_loops_walk_the_order(draft: Draft) -> None:
    try:
        each = plan(draft.spec())[0]
    except PlanError:
        return
    assert emitted(each) == list(each.order.values())


@pytest.mark.parametrize("name", ["order_by_layout", "order_serpentine", "direct"])
def test_the_compiler_keeps_the_order(name: str) -> None:
    """In the PTX of one k, FFMAs share a register of A, or of B, where their values share a row, or a column."""
    (each, *_) = small(name)
    text = compile_ptx(emit(each).text, f"{name}.cu").text
    factors = re.findall(r"fma\.rn\.f32 \t?%f\d+, (%f\d+), (%f\d+), %f\d+;", text)
    steps = [(value % ROWS, value // ROWS) for value in each.order.values()]
    (first, *_) = [
        at
        for at in range(len(factors) - len(steps) + 1)
        if len({a for a, _ in factors[at : at + len(steps)]}) == ROWS
        and len({b for _, b in factors[at : at + len(steps)]}) == COLUMNS
    ]
    names = {}
    for (i, j), (a, b) in zip(steps, factors[first:], strict=False):
        assert names.setdefault(("a", i), a) == a and names.setdefault(("b", j), b) == b
    assert len(set(names.values())) == ROWS + COLUMNS


@pytest.mark.parametrize(
    "order", ["(4,8):(1,5)", "(4,4):(1,4)", "(4,8):(0,4)", "((2,2),8):((1,1),4)", "(1048576,8):(1,4)"]
)
def test_an_order_that_misses_a_value_is_refused(order: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan(written(order))
    error = caught.value
    assert error.where is not None and error.where.line == written(order).where("tiling.order").line
    assert error.allowed == "32 steps to values 0 .. 31: value (i,j) of 4 x 8 is i + 4j"
    assert error.fix is not None and places(error.fix.split(": ")[1].split(", or ")[0]) == places("m")


def test_an_order_in_words() -> None:
    said = {
        order: order_words(each.order)
        for order in ("m", "serpentine_n", "(2,16):(16,1)")
        for each in plan(written(order))[:1]
    }
    assert said == {
        "m": "m outer, n inner",
        "serpentine_n": "n outer, m inner, to and fro",
        "(2,16):(16,1)": "by (2,16):(16,1)",
    }
