"""One reader for everything the algebra prints: layouts, swizzled layouts, swizzles, and tilers in angle brackets."""

from __future__ import annotations

from typing import TypeAlias

from layoutgen.algebra.compose import Tiler
from layoutgen.algebra.int_tuple import IntTuple
from layoutgen.algebra.layout import Layout
from layoutgen.algebra.scanner import Scanner
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle

Parsed: TypeAlias = "Layout | ComposedLayout | Swizzle | Tiler"

_NOTATION = (
    "an operand is a layout (8,4):(4,1), an int or shape, a swizzle Sw<3,4,3>, a swizzled layout, or a tiler <4:1,_,8>"
)


def parse(text: str) -> Parsed:
    """Read an operand of the algebra. A number or shape alone stays an IntTuple, for it may be a tiler or a shape.

    Raises:
        LayoutError: the text is something else; the message names the column.

    >>> parse("<3:3,(2,4):(1,8)>")
    (Layout(3, 3), Layout((2, 4), (1, 8)))
    >>> parse("<32,_,(2,4)>"), parse("(8,2)"), parse("4:2")
    ((32, None, (2, 4)), (8, 2), Layout(4, 2))
    >>> print(parse("Sw<3,4,3>"), parse("Sw<3,4,3> o 0 o (8,64):(64,1)"))
    Sw<3,4,3> Sw<3,4,3> o 0 o (8,64):(64,1)
    """
    scanner = Scanner(text, _NOTATION)
    operand: Parsed
    if scanner.at("Sw"):
        swizzle = Swizzle.scan(scanner)
        operand = ComposedLayout.scan_after(swizzle, scanner) if scanner.at("o") else swizzle
    else:
        operand = _tiler(scanner)
    scanner.end()
    return operand


def _tiler(scanner: Scanner) -> Tiler:
    if scanner.take("<"):
        entries = [_tiler(scanner)]
        while scanner.take(","):
            entries.append(_tiler(scanner))
        scanner.expect(">")
        return tuple(entries)
    if scanner.take("_"):
        return None
    start = scanner.position
    shape: IntTuple
    shape, names = scanner.named_int_tuple()
    if not names and not scanner.at(":"):
        return shape
    scanner.position = start
    return Layout.scan(scanner)
