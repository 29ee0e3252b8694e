"""Reads expressions of the algebra, such as ``composition((8,4):(4,1), 4:2)``, and evaluates them as it reads.

    expression := term ("o" term)*             A o B is a composition; A o 8 o B reads B, adds 8, then A
    term       := primary ("(" coordinate,.. ")" | "[" int "]")*
    primary    := name "(" expression,.. ")" | layout | int or shape | swizzle | "<" expression,.. ">" | "_"

The names are the public functions of the algebra; nothing else can be reached. Layouts and swizzles are in CuTe's
notation, and an argument that must be a layout may be a shape, which means the compact layout.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

from layoutgen.algebra.int_tuple import to_text
from layoutgen.algebra.layout import Layout
from layoutgen.algebra.scanner import MOST_NESTED, Scanner
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle
from layoutgen.errors import LayoutError

RULE = "an expression is a layout (8,4):(4,1), a shape, swizzle or tiler <4:1,_>, or a call such as coalesce((4,8))"
MOST_TEXT = 4096
_SHOWN = 72  # columns of the text that an error repeats
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


@dataclass(frozen=True, slots=True)
class Call:
    """A function that an expression called, with its arguments and result, or the error by which it refused them."""

    name: str
    arguments: tuple[Any, ...]
    result: Any
    error: LayoutError | None = None

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(show, self.arguments))})"


def show(x: Any) -> str:
    """As CuTe prints it, and as an expression reads it where it can."""
    if x is None:
        return "_"
    if isinstance(x, bool):
        return str(x).lower()
    if type(x) is tuple and _is_tiler(x):
        return f"<{','.join(map(show, x))}>"
    if type(x) is tuple:
        return f"({','.join(map(show, x))})"
    return to_text(x) if isinstance(x, int) else str(x)


def _is_tiler(x: Any) -> bool:
    """Whether some leaf of a nested tuple is no number, so that parentheses wouldn't read as a tuple."""
    return any(map(_is_tiler, x)) if type(x) is tuple else x is None or isinstance(x, (Layout, ComposedLayout))


# What an argument may be, by the words of the functions' annotations.


def _is_tree(x: Any, *leaves: type) -> bool:
    """Whether ``x`` is one of ``leaves`` or a nested tuple of them."""
    if type(x) is tuple:
        return all(_is_tree(leaf, *leaves) for leaf in x)
    return isinstance(x, leaves) and not isinstance(x, bool)


_LAYOUT = ("a layout", lambda x: isinstance(x, (Layout, ComposedLayout)))
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Layout": ("a layout", lambda x: isinstance(x, Layout)),
    "ComposedLayout": ("a swizzled layout", lambda x: isinstance(x, ComposedLayout)),
    "Swizzle": ("a swizzle", lambda x: isinstance(x, Swizzle)),
    "AnyLayout": _LAYOUT,
    "LayoutLike": _LAYOUT,
    "Recastable": ("a layout or swizzle", lambda x: isinstance(x, (Layout, ComposedLayout, Swizzle))),
    "int": ("an int", lambda x: type(x) is int),
    "IntTuple": ("an int or a tuple of ints", lambda x: _is_tree(x, int)),
    "Tiler": ("a tiler", lambda x: _is_tree(x, int, Layout, type(None))),
    "Coordinate": ("a coordinate", lambda x: _is_tree(x, int, type(None))),
    "tuple[Coordinate, ...]": ("a tuple", lambda x: type(x) is tuple and _is_tree(x, int, type(None))),
}
_OPTIONAL = "None"  # left out, never written


@dataclass(frozen=True, slots=True)
class _Function:
    """A public function whose arguments can all be written."""

    name: str
    call: Callable[..., Any]
    parameters: tuple[tuple[str, tuple[str, ...], bool], ...]  # (name, kinds, may be left out)
    repeats: bool  # the last one may be given any number of times

    def signature(self) -> str:
        words = [name if needed else f"[{name}]" for name, _, left_out in self.parameters for needed in (not left_out,)]
        return f"{self.name}({', '.join(words)}{'..' if self.repeats else ''})"

    def accept(self, position: int, argument: Any) -> tuple[bool, Any, str]:
        """Whether the argument fits, what to pass on for it, and what fits."""
        _, kinds, _ = self.parameters[min(position, len(self.parameters) - 1)]
        if any(_KINDS[kind][1](argument) for kind in kinds):
            return True, argument, ""
        described = dict.fromkeys(_KINDS[kind][0] for kind in kinds)
        if {"Layout", "AnyLayout", "LayoutLike", "Recastable"} & set(kinds) and _is_tree(argument, int):
            return True, Layout(argument), ""
        return False, argument, " or ".join(described)


@cache
def functions() -> Mapping[str, _Function]:
    """The public functions of the algebra that an expression can call."""
    from layoutgen import algebra

    found = {}
    for name in algebra.__all__:
        function = getattr(algebra, name)
        if not inspect.isfunction(function):
            continue
        signature = inspect.signature(function).parameters.values()
        parameters = tuple((p.name, _kinds(p), p.default is not p.empty) for p in signature)
        if all(kinds for _, kinds, _ in parameters):
            repeats = any(p.kind is p.VAR_POSITIONAL for p in signature)
            found[name] = _Function(name, function, parameters, repeats)
    return found


def _kinds(parameter: inspect.Parameter) -> tuple[str, ...]:
    """The kinds that a parameter takes; none if some of them can't be written."""
    words = [word for word in str(parameter.annotation).split(" | ") if word != _OPTIONAL]
    return tuple(words) if all(word in _KINDS for word in words) else ()


class Reader(Scanner):
    """A cursor over one expression. Errors show the text with a caret under the place."""

    def __init__(self, text: str) -> None:
        """Start at the first column; blanks and line breaks are alike."""
        super().__init__("".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text), RULE)
        self.calls: list[Call] = []
        self._placed: LayoutError | None = None
        self._nested = 0
        if len(text) > MOST_TEXT:
            raise LayoutError(RULE, got=f"{len(text)} characters", allowed=f"at most {MOST_TEXT}")

    def read(self) -> Any:
        """The value of the whole text.

        Raises:
            LayoutError: the text is no expression, or a function that it calls refuses its arguments.
        """
        value = self._expression()
        self.end()
        return value

    def fail(self, expected: str) -> LayoutError:
        """The error for finding something other than ``expected`` at the cursor."""
        self._skip_blanks()
        found = repr(self.text[self.position]) if self.position < len(self.text) else "the end"
        return self._at(self.position, LayoutError(self.rule, got=found, allowed=f"{expected} there"))

    def _at(self, position: int, error: LayoutError) -> LayoutError:
        """The error with the place shown, unless it shows a place already."""
        if error is self._placed:
            return error
        first = max(0, position - _SHOWN // 2) if len(self.text) > _SHOWN else 0
        shown = self.text[first : first + _SHOWN]
        before = "..." if first else ""
        after = "..." if first + _SHOWN < len(self.text) else ""
        caret = " " * (len(before) + position - first) + "^"
        got = f"{'' if error.got is None else error.got}\n    {before}{shown}{after}\n    {caret}"
        self._placed = LayoutError(error.rule, got=got, allowed=error.allowed, fix=error.fix)
        return self._placed

    def _start(self) -> int:
        self._skip_blanks()
        return self.position

    def _name(self) -> str | None:
        """The name at the cursor, which stays."""
        match = _NAME.match(self.text, self._start())
        return match[0] if match else None

    def _expression(self) -> Any:
        start = self._start()
        if self._nested == MOST_NESTED:
            raise self.fail(f"at most {MOST_NESTED} expressions inside each other")
        self._nested += 1
        terms, places = [self._term()], [start]
        while self._name() == "o":
            self.take("o")
            places.append(self._start())
            terms.append(self._term())
        self._nested -= 1
        try:
            return self._composed(terms, places)
        except LayoutError as error:
            raise self._at(start, error) from None

    def _composed(self, terms: list[Any], places: list[int]) -> Any:
        """The terms of a chain of compositions as one value; it associates to the right."""
        if len(terms) == 1:
            return terms[0]
        outer = terms[0]
        if len(terms) == 2 or type(terms[1]) is not int:
            return self._call(functions()["composition"], [outer, self._composed(terms[1:], places[1:])], places)
        inner = self._composed(terms[2:], places[2:])
        inner = Layout(inner) if _is_tree(inner, int) else inner
        if isinstance(outer, (Layout, ComposedLayout, Swizzle)) and isinstance(inner, (Layout, ComposedLayout)):
            return ComposedLayout(outer, terms[1], inner)
        raise LayoutError("A o offset o B composes a function with a layout", got=" o ".join(map(show, terms)))

    def _term(self) -> Any:
        value = self._primary()
        while self.at("(") or self.at("["):
            place = self.position
            try:
                value = self._applied(value) if self.take("(") else self._mode(value)
            except LayoutError as error:
                raise self._at(place, error) from None
        return value

    def _applied(self, function: Any) -> Any:
        """The offset at a coordinate: the opening parenthesis is read."""
        coordinate = [self._expression()]
        while self.take(","):
            coordinate.append(self._expression())
        self.expect(")")
        if isinstance(function, Swizzle) and len(coordinate) == 1 and type(coordinate[0]) is int:
            return function(coordinate[0])
        if not isinstance(function, (Layout, ComposedLayout)) or not _is_tree(tuple(coordinate), int):
            raise LayoutError(
                "a layout is applied to a coordinate of ints, a swizzle to an int",
                got=f"{show(function)} at {show(tuple(coordinate))}",
                fix="write a shape with its strides, and slice(layout, (1,_)) to keep modes open",
            )
        return function(*coordinate)

    def _mode(self, layout: Any) -> Any:
        self.expect("[")
        mode = self.integer()
        self.expect("]")
        if not isinstance(layout, (Layout, ComposedLayout)) or not -layout.rank <= mode < layout.rank:
            raise LayoutError("[k] takes mode k of a layout that has it", got=f"{show(layout)}[{mode}]")
        return layout[mode]

    def _primary(self) -> Any:
        start = self._start()
        name = self._name()
        if self.at("Sw<"):
            return self._scan(Swizzle.scan, start)
        if self.take("<"):
            entries = [self._expression()]
            while self.take(","):
                entries.append(self._expression())
            self.expect(">")
            return tuple(entries)
        if name == "_":
            self.take("_")
            return None
        if name is not None:
            self.take(name)
            return self._function(name, start)
        if self._is_coordinate():
            return self._coordinate()
        if not self.at("(") and not re.compile("[-0-9?]").match(self.text, self.position):
            raise self.fail("a layout, an int, a swizzle, a tiler or a function's name")
        shape, names = self._scan(Scanner.named_int_tuple, start)
        if not names and not self.at(":"):
            return shape
        self.position = start
        return self._scan(Layout.scan, start)

    def _scan(self, scan: Callable[[Any], Any], start: int) -> Any:
        """What ``scan`` reads at the cursor; what it refuses after reading it all is shown at ``start``."""
        try:
            return scan(self)
        except LayoutError as error:
            raise self._at(start, error) from None

    def _is_coordinate(self) -> bool:
        """Whether the parentheses at the cursor hold an underscore."""
        match = re.compile(r"[(][()0-9,_ -]*").match(self.text, self.position)
        depth, group = 0, ""
        for c in match[0] if match else "":
            depth += (c == "(") - (c == ")")
            group += c
            if depth == 0:
                break
        return "_" in group

    def _coordinate(self) -> Any:
        if self.take("_"):
            return None
        if not self.take("("):
            return self.integer()
        modes = [self._coordinate()]
        while self.take(","):
            modes.append(self._coordinate())
        self.expect(")")
        return tuple(modes)

    def _function(self, name: str, start: int) -> Any:
        function = functions().get(name)
        if function is None:
            close = get_close_matches(name, functions())
            unknown = LayoutError(
                "an expression calls the algebra's functions by name",
                got=name,
                allowed=", ".join(functions()) if not close else None,
                fix=f"did you mean {' or '.join(close)}?" if close else None,
            )
            raise self._at(start, unknown)
        self.expect("(")
        arguments, places = [], []
        if not self.at(")"):
            places.append(self._start())
            arguments.append(self._expression())
            while self.take(","):
                places.append(self._start())
                arguments.append(self._expression())
        closing = self._start()
        self.expect(")")
        try:
            return self._call(function, arguments, [*places, closing])
        except LayoutError as error:
            raise self._at(start, error) from None

    def _call(self, function: _Function, arguments: list[Any], places: list[int]) -> Any:
        most = len(arguments) if function.repeats else len(function.parameters)
        least = sum(not left_out for *_, left_out in function.parameters) - function.repeats
        if not least <= len(arguments) <= most:
            wrong = LayoutError(
                "a function gets the arguments that it takes",
                got=f"{len(arguments)} of them",
                allowed=function.signature(),
            )
            raise self._at(places[min(len(arguments), most)], wrong)
        passed = []
        for position, argument in enumerate(arguments):
            try:
                fits, value, allowed = function.accept(position, argument)
            except LayoutError as error:
                raise self._at(places[position], error) from None
            if not fits:
                wrong = LayoutError(
                    f"each argument of {function.signature()} is of a kind that it takes",
                    got=show(argument),
                    allowed=allowed,
                )
                raise self._at(places[position], wrong)
            passed.append(value)
        try:
            result = function.call(*passed)
        except LayoutError as error:
            self.calls.append(Call(function.name, tuple(passed), None, error))
            raise
        except (ArithmeticError, IndexError, ValueError) as error:
            # What a Python caller gets for a mode that isn't there or an extent of 0.
            raise LayoutError(f"{function.signature()} has a value at its arguments", got=error) from None
        self.calls.append(Call(function.name, tuple(passed), result))
        return result
