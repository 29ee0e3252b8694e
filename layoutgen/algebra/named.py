"""Layouts whose modes have names, such as lane and value: printed, told by errors, and otherwise no different."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from keyword import iskeyword
from typing import Any

from layoutgen.algebra.int_tuple import IntTuple, to_text
from layoutgen.algebra.layout import Layout
from layoutgen.errors import LayoutError


class NamedLayout(Layout):
    """A Layout with a name for each of its modes; equal to the layout without them. Built by ``named``.

    A mode can be had by its name, and a coordinate be given by names. Operations that keep the modes of a layout keep
    their names: composition those of B, and anything done mode by mode those of the layout.

    >>> tv = named(Layout.parse("((4,8),(2,2)):((32,1),(16,8))"), "lane", "value")
    >>> print(tv, tv["value"], tv(lane=5, value=3))
    (lane=(4,8),value=(2,2)):((32,1),(16,8)) (2,2):(16,8) 57
    >>> tv == Layout.parse(str(tv)) == Layout(tv.shape, tv.stride)
    True
    """

    __slots__ = ("names",)

    names: tuple[str, ...]

    def __call__(self, *coordinate: IntTuple, **by_name: IntTuple) -> int:
        """Coordinate, index, or one coordinate for each name -> offset."""
        if not by_name:
            return super().__call__(*coordinate)
        if coordinate or set(by_name) != set(self.names):
            given = [to_text(mode) for mode in coordinate] + [f"{name}={to_text(c)}" for name, c in by_name.items()]
            raise LayoutError(
                "a coordinate by names has one entry for each mode",
                got=", ".join(given),
                allowed=", ".join(self.names),
            )
        return super().__call__(tuple([by_name[name] for name in self.names]))

    def __getitem__(self, mode: Any) -> Layout:
        """One mode, by its name or number, or a range of modes, which keep their names."""
        if isinstance(mode, slice):
            modes = super().__getitem__(mode)
            return named(modes, *self.names[mode]) if modes.rank else modes
        if not isinstance(mode, str):
            return super().__getitem__(mode)
        if mode not in self.names:
            raise LayoutError(
                "a mode is named as its layout names it", got=f"{mode!r} of {self}", allowed=", ".join(self.names)
            )
        return super().__getitem__(self.names.index(mode))

    def __reduce__(self) -> tuple[Callable[..., Layout], tuple[Any, ...]]:
        return named, (Layout(self.shape, self.stride), *self.names)

    def __str__(self) -> str:
        modes = self.shape if isinstance(self.shape, tuple) else (self.shape,)
        shape = ",".join(f"{name}={to_text(mode)}" for name, mode in zip(self.names, modes, strict=True))
        return f"({shape}):{to_text(self.stride)}"

    def __repr__(self) -> str:
        return f"named({super().__repr__()}, {', '.join(map(repr, self.names))})"


_set_slot: dict[str, Callable[[Layout, Any], None]] = {
    slot: getattr(NamedLayout, slot).__set__ for slot in ("shape", "stride", "flat_shape", "flat_stride", "names")
}


def named(layout: Layout, *names: str) -> NamedLayout:
    """``layout`` with a name for each of its modes: a letter, then letters, digits and ``_``; no keyword of Python.

    Domain -> codomain: those of ``layout``. Post: R == layout.

    Raises:
        LayoutError: too few or many names, one twice, or one that is no name.

    >>> print(named(Layout((128, 8)), "m", "k"), named(Layout((128, 8)), "m", "k")["k"])
    (m=128,k=8):(1,128) 8:128
    """
    if len(names) != layout.rank or len(set(names)) < len(names) or not all(map(_is_name, names)):
        raise LayoutError(
            "each mode of a layout has a name of its own: a letter, then letters, digits and _; no keyword of Python",
            got=f"{', '.join(map(repr, names)) or 'none'} for the {layout.rank} mode(s) of {layout}",
        )
    if not isinstance(layout.shape, tuple):
        layout = Layout((layout.shape,), (layout.stride,))
    result: NamedLayout = object.__new__(NamedLayout)
    for slot in ("shape", "stride", "flat_shape", "flat_stride"):
        _set_slot[slot](result, getattr(layout, slot))
    _set_slot["names"](result, names)
    return result


def _is_name(name: object) -> bool:
    return isinstance(name, str) and re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) is not None and not iskeyword(name)


def with_names_of(model: Layout, result: Layout) -> Layout:
    """``result``, its modes named as those of ``model``, of which it may have fewer; unnamed if ``model`` is."""
    return named(result, *model.names[: result.rank]) if isinstance(model, NamedLayout) else result


def named_error(error: LayoutError, compose: Callable[[Layout], object], b: Layout) -> LayoutError:
    """``error`` of a composition with ``b``, saying which of its named modes are to blame, alone or together."""
    if not isinstance(b, NamedLayout):
        return error

    def fails(mode: Layout) -> bool:
        try:
            compose(mode)
        except LayoutError:
            return True
        return False

    alone: Sequence[str] = [name for name, mode in zip(b.names, b, strict=True) if fails(mode)]
    which = f"in {' and '.join(alone)}" if alone else f"in {' and '.join(b.names)} together"
    return LayoutError(error.rule, got=f"{error.got}, {which} of {b}", allowed=error.allowed, fix=error.fix)
