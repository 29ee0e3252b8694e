"""The errors layoutgen raises. Each says which rule was broken, what was found, what is allowed and how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file, printed the way editors and compilers do: ``path:line``."""

    path: str
    line: int | None = None

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


def counted(number: int, what: str) -> str:
    """How many there are, in words.

    >>> counted(1, "block"), counted(0, "block")
    ('1 block', '0 blocks')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def closest(word: str, names: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """The names that the word begins, else the one that is spelled most like it, if any is."""
    known = list(names)
    begun = [name for name in known if word and name.lower().startswith(word.lower())]
    return begun or difflib.get_close_matches(word, known, n=1, cutoff=cutoff)


def meant(word: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """A fix for a word that is none of the names, or None if it is like none of them.

    >>> meant("h100", ["h200", "h100-sxm", "h100-pcie"]), meant("valeu", ["lane", "value"]), meant("nope", ["lane"])
    ('did you mean h100-sxm or h100-pcie?', 'did you mean value?', None)
    """
    close = closest(word, names, cutoff)
    return f"did you mean {' or '.join(close)}?" if close else None


class LayoutgenError(Exception):
    """Base of every error that layoutgen raises on purpose.

    Attributes:
        rule: what must hold, as a sentence without a full stop.
        got: what was found instead.
        allowed: the values or range that would satisfy the rule.
        fix: one edit that would mend it.
        where: the place in the user's file, if there is one.
    """

    def __init__(
        self,
        rule: str,
        *,
        got: object = None,
        allowed: object = None,
        fix: str | None = None,
        where: Where | None = None,
    ) -> None:
        self.rule = rule
        self.got = None if got is None else str(got)
        self.allowed = None if allowed is None else str(allowed)
        self.fix = fix
        self.where = where
        super().__init__(str(self))

    def __str__(self) -> str:
        head = self.rule if self.where is None else f"{self.where}: {self.rule}"
        parts = [head]
        if self.got is not None:
            parts.append(f"got: {self.got}")
        if self.allowed is not None:
            parts.append(f"allowed: {self.allowed}")
        if self.fix is not None:
            parts.append(f"fix: {self.fix}")
        return "\n  ".join(parts)


class SpecError(LayoutgenError):
    """The YAML description is not a spec (syntax, unknown key, wrong type, unparsable layout).

    A file is read to its end before anything is raised: ``errors`` holds every finding in the order of its lines, the
    other attributes describe the first, and ``str`` prints them all.
    """

    @classmethod
    def of(cls, errors: Sequence[SpecError]) -> SpecError:
        """One error that carries all of `errors` (at least one), sorted by line, each message once."""
        once = {str(error): error for error in errors}.values()
        ordered = sorted(once, key=lambda error: (error.where is not None and error.where.line) or 0)
        first = ordered[0]
        whole = cls(first.rule, got=first.got, allowed=first.allowed, fix=first.fix, where=first.where)
        whole._errors = tuple(ordered)
        whole.args = (str(whole),)
        return whole

    _errors: tuple[SpecError, ...] = ()

    @property
    def errors(self) -> tuple[SpecError, ...]:
        return self._errors or (self,)

    def __str__(self) -> str:
        return "\n".join(map(str, self._errors)) if self._errors else super().__str__()


class RequestError(LayoutgenError):
    """What was asked for is not there: a variant, a thread or a coordinate that the spec does not have."""

    @classmethod
    def of_variant(cls, name: str, variants: Iterable[str]) -> RequestError:
        """A spec has no variant of that name."""
        known = list(variants)
        fix = meant(name, known) or f"leave variant out for the first, {known[0]}"
        return cls("a variant is one of the spec's", got=name, allowed=", ".join(known), fix=fix)

    @classmethod
    def of_thread(cls, thread: int, threads: int) -> RequestError:
        """A block of so many threads has no such thread."""
        return cls(
            "a thread is one of the block's",
            got=f"thread {thread}",
            allowed=f"0 .. {threads - 1}",
            fix=f"ask for --thread {min(max(thread, 0), threads - 1)}",
        )


class LayoutError(LayoutgenError):
    """A layout operation has no result that keeps its post-conditions."""


class PlanError(LayoutgenError):
    """The levels of a spec do not compose to a plan."""


class EpilogueError(PlanError):
    """The steps of a spec's epilogue don't go together."""


class BuildError(LayoutgenError):
    """The compiler, the assembler or the loader refused a kernel."""


class SimError(LayoutgenError):
    """The simulated kernel did something a GPU would fault on, or used an instruction form the simulator lacks."""


class OperandError(LayoutgenError, ValueError):
    """An operator was called with operands its spec cannot take; raised before anything is launched."""


class DrawError(LayoutgenError):
    """There is no picture of what was asked for: an unknown level, a layout of three modes, a file of unknown kind."""
