"""``layoutgen eval``: an expression of the algebra, its value, its derivation and its table of offsets."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

from layoutgen.algebra.explain import EXPLAINED, explain
from layoutgen.algebra.expression import Call, Reader, show
from layoutgen.algebra.layout import Layout
from layoutgen.algebra.slicing import View
from layoutgen.algebra.swizzle import ComposedLayout
from layoutgen.errors import LayoutError

MOST_ROWS, MOST_COLUMNS = 256, 64


def evaluate(text: str) -> Any:
    """The value of an expression: a layout, swizzle, int, shape, or whatever its outermost function returns.

    Raises:
        LayoutError: the text is no expression, or a function that it calls refuses its arguments; ``got`` repeats the
            text with a caret under the place.

    >>> print(evaluate("composition((8,4):(4,1), 4:2)"), evaluate("(8,4):(4,1) o 4:2"), evaluate("(8,4):(4,1)(3,2)"))
    4:8 4:8 14
    >>> evaluate("coalesce(composition((8,4):(4,1), 4:2)")
    Traceback (most recent call last):
    layoutgen.errors.LayoutError: an expression is a layout (8,4):(4,1), a shape, swizzle or tiler <4:1,_>, or a \
call such as coalesce((4,8))
      got: the end
        coalesce(composition((8,4):(4,1), 4:2)
                                              ^
      allowed: ')' there
    """
    return Reader(text).read()


def eval_command(text: str, explain: bool = False, table: bool = False) -> Iterator[str]:
    """The paragraphs that ``layoutgen eval`` prints: the value, or the steps of each call up to it; then the grid.

    Where a call is refused, its steps end with the one that can't be done, and then the error that says why is raised.

    Raises:
        LayoutError: as for evaluate, or the value has no table; after the steps.

    >>> print(*eval_command("(2,4):(4,1)", table=True), sep="\\n\\n")
    (2,4):(4,1)
    <BLANKLINE>
          0   1   2   3
     ───────────────────
      0   0   1   2   3
      1   4   5   6   7
    """
    reader = Reader(text)
    refused = None
    ending: list[str] = []
    try:
        value = reader.read()
        told = explain and reader.calls and reader.calls[-1].result is value  # its steps end with the value
        ending = [*([] if told else [show(value)]), *([grid(value)] if table else [])]
    except LayoutError as error:
        refused = error
    if explain:
        yield from map(_derivation, reader.calls)
    yield from ending
    if refused is not None:
        raise refused


def _derivation(call: Call) -> str:
    """How a call reaches its result; of a refused one as far as it gets, and the rule that ends it."""
    if call.name in EXPLAINED:
        text = str(explain(call.name, *call.arguments))
    else:
        text = f"{call}\n  " + (f"refused: {call.error}" if call.error else f"= {show(call.result)}")
    steps, refused, why = text.partition("refused: ")
    return steps + refused + why.partition("\n")[0]


def grid(value: Any) -> str:
    """The offsets of a layout of at most two modes: mode 0 runs down, mode 1 to the right.

    Raises:
        LayoutError: ``value`` is no layout, has more modes or too many elements.
    """
    view = value if isinstance(value, View) else View(value, 0)
    layout = view.layout
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise LayoutError("a table shows the offsets of a layout", got=show(value))
    if layout.rank > 2:
        raise LayoutError(
            "a table has rows and columns, so it shows a layout of one or two modes",
            got=f"{layout.rank} modes in {layout}",
            fix="group modes with make_layout, or show one with get(layout, k)",
        )
    rows, columns = (layout[0].size, layout[1].size) if layout.rank == 2 else (1, layout.size)
    if not (type(rows) is int and type(columns) is int and rows <= MOST_ROWS and columns <= MOST_COLUMNS):
        raise LayoutError(
            "a table fits on a screen",
            got=f"{rows} rows and {columns} columns",
            allowed=f"at most {MOST_ROWS} rows and {MOST_COLUMNS} columns",
            fix="show a part of it, such as composition(layout, <8,8>)",
        )
    if layout.rank == 2:
        return _table([[show(view(row, column)) for column in range(columns)] for row in range(rows)])
    return _table([[show(view(column)) for column in range(columns)]])


def _table(cells: list[list[str]]) -> str:
    # Here, for a library that computes layouts needs no terminal.
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="dim")
    table.add_column("", justify="right", style="dim")
    for column in range(len(cells[0])):
        table.add_column(str(column), justify="right")
    for row, offsets in enumerate(cells):
        table.add_row(str(row), *offsets)
    out = StringIO()
    Console(file=out, width=4096, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines() if line.strip())
