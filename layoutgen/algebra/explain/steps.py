"""Steps, explanations, and ``explain``, which runs the derivations of the modules beside this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from layoutgen.algebra.explain.claims import Claim, Function, Same, SideBySide
from layoutgen.algebra.expression import show
from layoutgen.algebra.layout import Layout
from layoutgen.algebra.swizzle import ComposedLayout
from layoutgen.errors import LayoutError

Derivation: TypeAlias = "Callable[..., Iterator[Step]]"
"""(the operation's result, its arguments) -> steps, the last of which has that result.

Of a refused call the result is None, and so is that of the step that can't be done: the first such step ends the
derivation, and gets the operation's error.
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a derivation.

    Attributes:
        text: what is done and why, with its arithmetic spelled out as equations such as ``2 * 3 == 6``.
        result: the layout it gives: the whole so far, or the part that the text speaks of. None if it is refused.
        claim: what holds of the result; None where ``inner``, which ends in the same result, says it all.
        inner: the derivation of the result, where the step is an operation of its own.
        error: why the step is refused; None if it isn't.
    """

    text: str
    result: Function | None
    claim: Claim | None = None
    inner: Explanation | None = None
    error: LayoutError | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A call, the steps of its derivation, and its result; ``str`` lays them out as numbered lines.

    Attributes:
        call: the operation and its arguments, as text.
        steps: what leads to the result; of a refused call, the steps that can be done and the one that can't.
        result: what the operation returns; None if it refuses.
        error: what the operation raises; None if it returns.
    """

    call: str
    steps: tuple[Step, ...]
    result: Function | None
    error: LayoutError | None = None

    def walk(self) -> Iterator[Step]:
        """Every step, those of inner derivations before the step that they derive."""
        for step in self.steps:
            if step.inner is not None:
                yield from step.inner.walk()
            yield step

    def lines(self, indent: str = "") -> Iterator[str]:
        """The text, line by line. A refusal is told once, at the innermost step that can't be done."""
        yield f"{indent}{self.call}"
        for number, step in enumerate(self.steps, 1):
            yield f"{indent}  {number}. {step.text}"
            if step.inner is not None:
                yield from step.inner.lines(f"{indent}     ")
            elif step.error is not None:
                yield from (f"{indent}     {line}" for line in f"refused: {step.error}".splitlines())
            else:
                yield f"{indent}     {step.result}"
        if self.error is None:
            yield f"{indent}  = {self.result}"

    def __str__(self) -> str:
        return "\n".join(self.lines())


_DERIVATIONS: dict[str, tuple[Callable[..., Any], Derivation]] = {}


def derives(*operations: Callable[..., Any]) -> Callable[[Derivation], Derivation]:
    """Make a function the derivation of ``operations``."""

    def register(derivation: Derivation) -> Derivation:
        for operation in operations:
            _DERIVATIONS[operation.__name__] = operation, derivation
        return derivation

    return register


def explained() -> tuple[str, ...]:
    """The names of the operations that have a derivation, in alphabetical order."""
    return tuple(sorted(_DERIVATIONS))


def explain(operation: str | Callable[..., Any], *arguments: Any) -> Explanation:
    """The derivation of ``operation(*arguments)``, an operation of EXPLAINED given by name or as the function.

    A call that the operation refuses is explained too, up to the step that can't be done: its ``error`` is what the
    operation raises, and its ``result`` None.

    Raises:
        LayoutError: no derivation is written for the operation.

    >>> from layoutgen.algebra import composition
    >>> print(explain(composition, Layout.parse("(6,2):(8,2)"), Layout.parse("(4,3):(3,1)")))
    composition((6,2):(8,2), (4,3):(3,1))
      1. mode 4:3 of B takes 2 steps of 3 along 6:8 of A (3 * 8 == 24), then 2 of 6 along 2:2 (1 * 2 == 2)
         (2,2):(24,2)
      2. mode 3:1 of B takes 3 steps of 1 along 6:8 of A (1 * 8 == 8)
         3:8
      3. nested like B, where no sum of these steps may leave the mode of A that they go along
         ((2,2),3):((24,2),8)
      = ((2,2),3):((24,2),8)
    >>> print(explain(composition, Layout.parse("(4,3):(1,100)"), Layout.parse("(2,4):(1,3)")))
    composition((4,3):(1,100), (2,4):(1,3))
      1. mode 2:1 of B takes 2 steps of 1 along 4:1 of A (1 * 1 == 1)
         2:1
      2. mode 4:3 of B on its way through A
         refused: composition: a mode of B walks through A one mode at a time
           got: (4,3):(1,100) o (2,4):(1,3): mode 4:3 of B steps over the end of a mode of A at step 2 of 3
           allowed: strides and extents that divide the modes of A or are multiples of them: 4:1, 3:100
           fix: choose a tile that divides this mode of A, or compose mode by mode with a tuple
    """
    name = operation if isinstance(operation, str) else getattr(operation, "__name__", repr(operation))
    if name not in _DERIVATIONS:
        raise LayoutError(
            "explain derives the operations that it has a derivation for", got=name, allowed=", ".join(explained())
        )
    call = f"{name}({', '.join(map(show, arguments))})"
    operate, derivation = _DERIVATIONS[name]
    try:
        result = operate(*arguments)
    except LayoutError as error:
        return Explanation(call, tuple(_until_refused(derivation(None, *arguments), error)), None, error)
    return Explanation(call, tuple(derivation(result, *arguments)), result)


def _until_refused(steps: Iterator[Step], error: LayoutError) -> Iterator[Step]:
    try:
        for step in steps:
            if step.result is None:
                yield replace(step, claim=None, error=error)
                return
            yield step
    except LayoutError:
        pass  # what the derivation does on the way is refused as the operation is
    yield Step("what comes next", None, error=error)


# What several derivations begin with.


def inside(name: str, result: Any, layout: ComposedLayout, *rest: Any) -> Iterator[Step]:
    """An operation that leaves the outer function of a composed layout as it is."""
    inner = explain(name, layout.layout_b, *rest)
    text = f"{layout.layout_a} o {layout.offset} acts on the offsets afterwards, so the layout inside changes alone"
    changed = inner.result
    claim = None
    if isinstance(changed, (Layout, ComposedLayout)):
        claim = Same((ComposedLayout(layout.layout_a, layout.offset, changed),))
    yield Step(text, result, claim, inner)


def by_mode(name: str, result: Any, layout: Layout, entries: tuple[Any, ...], keeps: bool = True) -> Iterator[Step]:
    """An operation that takes a tuple, one entry per mode; ``keeps``: modes without an entry stay as they are."""
    if len(entries) > layout.rank:
        yield Step(f"entry k is for mode k: {len(entries)} entries for {layout.rank} mode(s)", result)
        return
    parts = []
    for mode, entry in enumerate(entries):
        inner = explain(name, layout[mode], entry)
        yield Step(f"mode {mode}", inner.result, None, inner)
        assert isinstance(inner.result, Layout)
        parts.append(inner.result)
    untouched = list(layout)[len(parts) :] if keeps else []
    yield Step("the modes side by side", result, SideBySide((*parts, *untouched)))
