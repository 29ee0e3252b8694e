"""Layout: a shape and a congruent stride, read as a function from coordinates to offsets.

Domain: the coordinates of ``shape``, or equally the indices 0 <= i < size in colexicographic order.
Codomain: offsets, the inner product of coordinate and stride. Source: CUTLASS ``media/docs/cpp/cute/01_layout.md``;
Cecka, "CuTe Layout Representation and Algebra", arXiv 2603.02298.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NoReturn, Protocol, TypeAlias, overload

import numpy as np

from layoutgen.algebra import int_tuple
from layoutgen.algebra.admit import admitted, compact_of, pairs_of
from layoutgen.algebra.basis import ScaledBasis
from layoutgen.algebra.int_tuple import IntTuple, evaluate, to_text
from layoutgen.algebra.scanner import Scanner
from layoutgen.errors import LayoutError


class LayoutLike(Protocol):
    """What Layout and ComposedLayout have in common."""

    @property
    def size(self) -> int: ...

    @property
    def cosize(self) -> int: ...

    @property
    def rank(self) -> int: ...

    @property
    def depth(self) -> int: ...

    def offsets(self) -> Offsets: ...


Offsets: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.int64]]"

MOST_OFFSETS = 1 << 26
_NOTATION = "a layout reads shape:stride, such as (8,(2,2)):(4,(1,16))"


class _Draft:
    """The slots of a Layout while they are open. A Layout forbids assignment; a change of class closes them fastest."""

    __slots__ = ("flat_shape", "flat_stride", "shape", "stride")

    shape: IntTuple
    stride: IntTuple
    flat_shape: tuple[int, ...]
    flat_stride: tuple[int, ...]


class Layout(_Draft):
    """A frozen, hashable layout. Without a stride it is compact, leftmost mode fastest.

    Where the types here say int, a shape may hold run-time extents (RuntimeInt), and a stride those or scaled basis
    vectors (ScaledBasis), whose offsets are coordinates.

    Raises:
        LayoutError: shape or stride is no IntTuple, an extent is below 1, or they don't nest alike.

    >>> layout = Layout((8, (2, 2)), (4, (1, 16)))
    >>> print(layout)
    (8,(2,2)):(4,(1,16))
    >>> layout(9), layout(1, 1), layout((1, (1, 0)))
    (5, 5, 5)
    >>> print(Layout((4, 8)), layout[1], layout.size, layout.cosize)
    (4,8):(1,4) (2,2):(1,16) 32 46
    >>> print(Layout((4, 8), (ScaledBasis(1, 0), ScaledBasis(1, 1)))(3, 5))
    (3, 5)
    """

    __slots__ = ()

    def __new__(cls, shape: Any, stride: Any = None) -> Layout:
        extents: list[int] = []
        steps: list[int] = []
        if stride is None:
            if compact_of(shape, extents, steps):
                flat_shape = tuple(extents)
                return trusted(flat_shape if shape == flat_shape else shape, flat_shape, tuple(steps))
            shape = admitted(shape, "shape")
            flat_shape = int_tuple.flatten(shape)
            return trusted(shape, flat_shape, int_tuple.compact_steps(flat_shape))
        if pairs_of(shape, stride, extents, steps):
            layout = trusted(shape, tuple(extents), tuple(steps))
            _set_stride(layout, stride)
            return layout
        shape, stride = admitted(shape, "shape"), admitted(stride, "stride")
        if not int_tuple.congruent(shape, stride):
            raise LayoutError(
                "shape and stride nest alike",
                got=f"shape {to_text(shape)} and stride {to_text(stride)}",
                fix="give every extent of the shape one stride, with the same parentheses",
            )
        return trusted(shape, int_tuple.flatten(shape), int_tuple.flatten(stride))

    def __getattr__(self, name: str) -> Any:
        # Reached for an open slot: a stride nested like the shape, which most intermediate results are never asked for.
        if name != "stride":
            raise AttributeError(f"a Layout has no {name!r}")
        stride = int_tuple.unflatten(iter(self.flat_stride), self.shape)
        _set_stride(self, stride)
        return stride

    @staticmethod
    def parse(text: str) -> Layout:
        """Read ``shape:stride``, or a shape alone for the compact layout; the modes may be named, as in (m=4,k=8).

        Raises:
            LayoutError: the text is something else; the message names the column.

        >>> Layout.parse("(8,(2,2)):(4,(1,16))")
        Layout((8, (2, 2)), (4, (1, 16)))
        >>> print(Layout.parse("(4,8)"), Layout.parse("8:1"))
        (4,8):(1,4) 8:1
        """
        scanner = Scanner(text, _NOTATION)
        layout = Layout.scan(scanner)
        scanner.end()
        return layout

    @staticmethod
    def scan(scanner: Scanner) -> Layout:
        """Read a layout at the scanner's cursor; LayoutError as for ``parse``."""
        shape, names = scanner.named_int_tuple()
        layout = Layout(shape, scanner.int_tuple() if scanner.take(":") else None)
        if not names:
            return layout
        # Here, for named layouts are built on this module.
        from layoutgen.algebra.named import named

        return named(layout, *names)

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return prod(self.flat_shape)

    @property
    def rank(self) -> int:
        """The number of modes."""
        return int_tuple.rank(self.shape)

    @property
    def depth(self) -> int:
        """How deep the shape nests; 0 for an int."""
        return int_tuple.depth(self.shape)

    @property
    def cosize(self) -> int:
        """Elements spanned from the smallest to the largest offset: 1 + sum of (extent - 1) * abs(stride)."""
        return 1 + sum((n - 1) * abs(d) for n, d in zip(self.flat_shape, self.flat_stride, strict=True))

    def __call__(self, *coordinate: IntTuple) -> int:
        """Coordinate or index -> offset; past the end the last mode goes on, as in CuTe C++.

        The offset is an int, or a nested tuple of ints if the strides are scaled basis vectors.
        """
        point = coordinate[0] if len(coordinate) == 1 else coordinate
        if isinstance(point, tuple):
            offset = int_tuple.crd2idx(point, self.shape, self.stride)
        else:
            offset = evaluate(point, self.flat_shape, self.flat_stride)
        return offset.coordinate() if isinstance(offset, ScaledBasis) else offset

    def at(self, indices: Offsets) -> Offsets:
        """Integer indices -> offsets, elementwise and vectorised; equals ``layout(i)`` for each, also past the end.

        >>> Layout((4, 8), (8, 1)).at(np.array([1, 4, 33, -1])).tolist()
        [8, 1, 16, -8]
        """
        self.require_ints("evaluating many indices at once")
        sign, rest = np.sign(indices), np.abs(indices)
        result = np.zeros_like(rest)
        last = len(self.flat_shape) - 1
        for k, (extent, step) in enumerate(zip(self.flat_shape, self.flat_stride, strict=True)):
            if k < last:
                rest, inner = np.divmod(rest, extent)
                result += inner * step
            else:
                result += rest * step
        return sign * result

    def offsets(self) -> Offsets:
        """The offsets of indices 0 .. size - 1, as int64 of shape (size,).

        Raises:
            LayoutError: there are more than MOST_OFFSETS of them.

        >>> Layout((2, 3), (3, 1)).offsets().tolist()
        [0, 3, 1, 4, 2, 5]
        """
        self.require_ints("evaluating every index")
        if self.size > MOST_OFFSETS:
            raise LayoutError(
                "a layout that is evaluated element by element has a bounded size",
                got=f"{self.size} elements in {self}",
                allowed=f"at most {MOST_OFFSETS}",
            )
        result = np.zeros(1, dtype=np.int64)
        for extent, step in zip(self.flat_shape, self.flat_stride, strict=True):
            if extent > 1:
                result = (np.arange(extent, dtype=np.int64)[:, None] * step + result).reshape(-1)
        return result

    @property
    def is_static(self) -> bool:
        """Whether every extent and stride is an int: no run-time extents, no scaled basis vectors."""
        return {int}.issuperset(map(type, self.flat_shape + self.flat_stride))

    def require_ints(self, what: str) -> None:
        """Raise LayoutError unless the layout is static."""
        if not self.is_static:
            raise LayoutError(
                f"{what} needs extents and strides that are ints",
                got=str(self),
                fix="give run-time extents their values; compose a coordinate layout with a tensor's layout",
            )

    def __len__(self) -> int:
        return self.rank

    @overload
    def __getitem__(self, mode: int) -> Layout: ...

    @overload
    def __getitem__(self, mode: slice) -> Layout: ...

    def __getitem__(self, mode: int | slice) -> Layout:
        """One mode, or a range of modes grouped as a layout; a layout of int shape is its own only mode."""
        if isinstance(mode, slice):
            return make_layout(*list(self)[mode])
        shape, stride = self.shape, self.stride
        if not (isinstance(shape, tuple) and isinstance(stride, tuple)):
            shape, stride = (shape,), (stride,)
        if not -len(shape) <= mode < len(shape):
            raise IndexError(f"mode {mode} of {self}, which has {self.rank} mode(s)")
        return _mode(shape[mode], stride[mode])

    def __iter__(self) -> Iterator[Layout]:
        if isinstance(self.shape, tuple) and isinstance(self.stride, tuple):
            return map(_mode, self.shape, self.stride)
        return iter((self,))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return self.shape == other.shape and self.flat_stride == other.flat_stride

    def __hash__(self) -> int:
        return hash((self.shape, self.flat_stride))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Layout is frozen: cannot set {name!r}; build another Layout")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Layout is frozen: cannot delete {name!r}")

    def __reduce__(self) -> tuple[Callable[..., Layout], tuple[Any, ...]]:
        return Layout, (self.shape, self.stride)

    def __str__(self) -> str:
        return f"{to_text(self.shape)}:{to_text(self.stride)}"

    def __repr__(self) -> str:
        return f"Layout({self.shape!r}, {self.stride!r})"


_set_stride = _Draft.__dict__["stride"].__set__


def trusted(shape: Any, flat_shape: tuple[Any, ...], flat_stride: tuple[Any, ...]) -> Layout:
    """A Layout from parts already known to fit together; the operations' way around validation.

    A flat layout has one tuple for ``shape`` and ``flat_shape``. The stride of another is left open.
    """
    draft = _Draft()
    draft.shape = shape
    draft.flat_shape = flat_shape
    draft.flat_stride = flat_stride
    if shape is flat_shape:
        draft.stride = flat_stride
    draft.__class__ = Layout
    return draft  # type: ignore[return-value]


def flat_layout(shape: list[int], stride: list[int]) -> Layout:
    """A trusted Layout of depth at most 1: no modes give 1:0, a single one is unwrapped to ints."""
    if len(shape) > 1:
        modes = tuple(shape)
        return trusted(modes, modes, tuple(stride))
    return _mode(shape[0], stride[0]) if shape else _mode(1, 0)


def _mode(shape: IntTuple, stride: IntTuple) -> Layout:
    draft = _Draft()
    draft.shape = shape
    draft.stride = stride
    if isinstance(shape, tuple):
        draft.flat_shape = int_tuple.flatten(shape)
        draft.flat_stride = int_tuple.flatten(stride)
    else:
        draft.flat_shape = (shape,)
        draft.flat_stride = (stride,)  # type: ignore[assignment]
    draft.__class__ = Layout
    return draft  # type: ignore[return-value]


def make_layout(*layouts: Layout) -> Layout:
    """Concatenate: the result's mode k is the k-th argument.

    Domain: tuples of the arguments' coordinates. Codomain: the sum of their offsets.

    >>> print(make_layout(Layout(4, 2), Layout((2, 2), (1, 16))))
    (4,(2,2)):(2,(1,16))
    """
    flat_shape: tuple[int, ...] = ()
    flat_stride: tuple[int, ...] = ()
    for layout in layouts:
        flat_shape += layout.flat_shape
        flat_stride += layout.flat_stride
    return trusted(tuple([layout.shape for layout in layouts]), flat_shape, flat_stride)


def size(x: IntTuple | LayoutLike) -> int:
    """The number of coordinates of a shape or layout.

    >>> size((4, 8)), size(Layout((4, 8)))
    (32, 32)
    """
    return int_tuple.product(x) if isinstance(x, (int, tuple)) else x.size


def rank(x: IntTuple | LayoutLike) -> int:
    """The number of modes of an IntTuple or layout.

    >>> rank((4, (2, 8))), rank(Layout((4, (2, 8))))
    (2, 2)
    """
    return int_tuple.rank(x) if isinstance(x, (int, tuple)) else x.rank


def depth(x: IntTuple | LayoutLike) -> int:
    """How deep an IntTuple or layout nests.

    >>> depth(4), depth(Layout((4, (2, 8))))
    (0, 2)
    """
    return int_tuple.depth(x) if isinstance(x, (int, tuple)) else x.depth


def cosize(layout: LayoutLike) -> int:
    """Elements spanned by the offsets of a layout.

    >>> cosize(Layout.parse("(4,3):(1,-4)"))
    12
    """
    return layout.cosize


def offsets(layout: LayoutLike) -> Offsets:
    """The offsets of all indices in colexicographic order, as int64 of shape (size,).

    >>> offsets(Layout.parse("(2,2):(4,1)")).tolist()
    [0, 4, 1, 5]
    """
    return layout.offsets()


def get(layout: Layout, *path: int) -> Layout:
    """The mode at a path: ``get(l, 1, 0)`` is mode 0 of mode 1.

    >>> print(get(Layout.parse("(8,(2,4)):(4,(1,32))"), 1, 1))
    4:32
    """
    for mode in path:
        layout = layout[mode]
    return layout


def flatten(layout: Layout) -> Layout:
    """The same function with every leaf a mode of its own; an int shape stays an int.

    >>> print(flatten(Layout.parse("(8,(2,4)):(4,(1,32))")))
    (8,2,4):(4,1,32)
    """
    if not isinstance(layout.shape, tuple):
        return layout
    return trusted(layout.flat_shape, layout.flat_shape, layout.flat_stride)
