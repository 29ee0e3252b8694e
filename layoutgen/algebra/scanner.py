"""Reads CuTe's notation left to right; every error names the column where reading stopped."""

from __future__ import annotations

import re
from typing import Any

from layoutgen.algebra.basis import ScaledBasis
from layoutgen.algebra.int_tuple import IntTuple
from layoutgen.algebra.runtime import RuntimeInt
from layoutgen.errors import LayoutError

_NAME = re.compile(r"([A-Za-z][A-Za-z_0-9]*)\s*=")
_INT = re.compile(r"-?[0-9]+")
MOST_DIGITS = 18  # any such number is an int64
MOST_NESTED = 32
MOST_SHOWN = 80


class Scanner:
    """A cursor over one line of notation such as ``(8,(2,2)):(4,(1,16))``; blanks between tokens don't count."""

    def __init__(self, text: str, rule: str) -> None:
        """Start at the first column; ``rule`` is what a failure says must hold, with an example."""
        self.text = text
        self.rule = rule
        self.position = 0

    def fail(self, expected: str) -> LayoutError:
        """The error for finding something other than ``expected`` at the cursor."""
        self._skip_blanks()
        found = repr(self.text[self.position]) if self.position < len(self.text) else "the end"
        shown = self.text if len(self.text) <= MOST_SHOWN else self.text[:MOST_SHOWN] + "..."
        return LayoutError(
            self.rule,
            got=f"{shown!r}: {found} at column {self.position + 1}",
            allowed=f"{expected} there",
        )

    def _skip_blanks(self) -> None:
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def at(self, token: str) -> bool:
        """Whether ``token`` comes next."""
        self._skip_blanks()
        return self.text.startswith(token, self.position)

    def take(self, token: str) -> bool:
        """Step over ``token`` if it comes next."""
        if not self.at(token):
            return False
        self.position += len(token)
        return True

    def expect(self, token: str) -> None:
        """Step over ``token`` or raise LayoutError."""
        if not self.take(token):
            raise self.fail(repr(token))

    def integer(self) -> int:
        """Read an optionally signed decimal int or raise LayoutError."""
        self._skip_blanks()
        match = _INT.match(self.text, self.position)
        if match is None:
            raise self.fail("an integer")
        if len(match[0]) > MOST_DIGITS:
            raise self.fail(f"an integer of at most {MOST_DIGITS} digits")
        self.position = match.end()
        return int(match[0])

    def int_tuple(self, nested: int = 0) -> Any:
        """Read a leaf or a parenthesised list of IntTuples, or raise LayoutError.

        A leaf is an int, a run-time extent ``?`` or ``?{div=16}``, or either along an axis, as in ``2@1`` or ``1@0@1``.
        """
        if nested == MOST_NESTED and self.at("("):
            raise self.fail(f"at most {MOST_NESTED} parentheses inside each other")
        if not self.take("("):
            return self._leaf()
        modes: list[IntTuple] = []
        if self.take(")"):
            return ()
        while True:
            modes.append(self.int_tuple(nested + 1))
            if self.take(")"):
                return tuple(modes)
            if not self.take(","):
                raise self.fail("',' or ')'")

    def named_int_tuple(self) -> tuple[Any, tuple[str, ...]]:
        """Read an IntTuple whose modes may have names, as in ``(lane=(4,8),value=2)``: all of them or none."""
        start = self.position
        names: list[str] = []
        modes: list[IntTuple] = []
        if not self.take("(") or not self._mode_name(names):
            self.position = start
            return self.int_tuple(), ()
        modes.append(self.int_tuple(1))
        while self.take(","):
            if not self._mode_name(names):
                raise self.fail("a name and '=', as the first mode has,")
            modes.append(self.int_tuple(1))
        if not self.take(")"):
            raise self.fail("',' or ')'")
        return tuple(modes), tuple(names)

    def _mode_name(self, names: list[str]) -> bool:
        """Step over ``name =`` if that comes next, and append the name."""
        self._skip_blanks()
        match = _NAME.match(self.text, self.position)
        if match is None:
            return False
        self.position = match.end()
        names.append(match[1])
        return True

    def _leaf(self) -> Any:
        if self.take("?"):
            value: Any = self._run_time_extent()
        elif self.at("-") or (self.position < len(self.text) and self.text[self.position].isdigit()):
            value = self.integer()
        else:
            raise self.fail("an integer or '('")
        path: list[int] = []
        while self.take("@"):
            if len(path) == MOST_NESTED:
                raise self.fail(f"at most {MOST_NESTED} axes inside each other")
            if self.at("-"):
                raise self.fail("an axis from 0 on")
            path.append(self.integer())
        return ScaledBasis(value, *reversed(path)) if path else value

    def _run_time_extent(self) -> RuntimeInt:
        if not self.take("{"):
            return RuntimeInt()
        self.expect("div")
        self.expect("=")
        if not self.at("0") and not self.at("-"):
            divisor = self.integer()
            self.expect("}")
            return RuntimeInt(divisor)
        raise self.fail("a positive divisor")

    def end(self) -> None:
        """Raise LayoutError unless all text is read."""
        self._skip_blanks()
        if self.position < len(self.text):
            raise self.fail("the end of the text")
