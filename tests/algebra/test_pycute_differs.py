"""Where pycute is known to answer otherwise than we do: what it says, and why that is wrong or another convention."""

from __future__ import annotations

from typing import Any, NamedTuple

import pycute
import pytest

from layoutgen import algebra
from layoutgen.algebra import Layout, parse
from layoutgen.errors import LayoutError
from tests.algebra.test_pycute import theirs

FAILS = "fails"


class Row(NamedTuple):
    op: str
    arguments: tuple[str, ...]
    pycute: str
    ours: str
    reason: str

    def __str__(self) -> str:
        return f"{self.op}({', '.join(self.arguments)})"


ROWS = [
    Row("composition", ("(4,2,8):(3,12,97)", "3:3"), FAILS, "3:9", "steps of 3 stay inside the coalesced mode 8:3"),
    Row("composition", ("(8,4):(1,16)", "(2,2):(5,4)"), FAILS, "error", "5 + 4 carries out of mode 8:1"),
    Row("composition", ("(3,4):(1,5)", "(2,2):(1,2)"), FAILS, "error", "1 + 2 carries out of mode 3:1"),
    Row("complement", ("2:1", "(3,4)"), FAILS, "8:2", "takes the size of the codomain as an int only"),
    Row("complement", ("(4,2):(1,2)", "16"), "(0,4):(4,4)", "error", "modes that overlap have no complement"),
    Row("right_inverse", ("(4,2):(1,0)",), "1:0", "4:1", "stops at a mode of stride 0"),
    Row("left_inverse", ("(4,2):(1,16)",), "(4,4,2):(1,8,4)", "(16,2):(1,4)", "inverts layout and complement together"),
    Row("left_inverse", ("(4,2):(1,2)",), "4:1", "(2,2):(1,4)", "gives up where modes overlap"),
    Row("logical_divide", ("2:5", "1"), "(1,2):(5,5)", "(1,2):(0,5)", "keeps the stride of a mode of one element"),
    Row("logical_product", ("(2,5):(5,1)", "4"), "((2,2),3):((5,1),2)", "((2,5),4):((5,1),10)", "divides by an int"),
    Row("logical_product", ("4:2", "3:1"), "(4,2):(2,1)", "error", "two of three repetitions fit into the gap"),
]


def printed(layout: Any) -> str:
    return str(layout).replace(" ", "")


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_pycute_still_differs(row: Row) -> None:
    operands = [parse(argument) for argument in row.arguments]
    others = [theirs(operand) if isinstance(operand, Layout) else operand for operand in operands]
    try:
        other = printed(getattr(pycute, row.op)(*others))
    except (AssertionError, TypeError, IndexError):
        other = FAILS
    try:
        mine = printed(getattr(algebra, row.op)(*operands))
    except LayoutError:
        mine = "error"
    assert (other, mine) == (row.pycute, row.ours)
    assert other != mine
