"""Layouts as CuTe C++ types, the form in which a kernel carries them."""

from __future__ import annotations

from layoutgen.algebra.basis import ScaledBasis, single_axis
from layoutgen.algebra.int_tuple import IntTuple
from layoutgen.algebra.layout import Layout
from layoutgen.algebra.runtime import RuntimeInt
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle
from layoutgen.errors import LayoutError

# The static integers that cute/numeric/integral_constant.hpp names _n and _m<n>; the others are spelled Int<n>.
NAMED_INTS = frozenset(
    [-32, -24, -16, -12, *range(-10, 11), 12, 16, 24, *range(32, 257, 8), 384, 512, 768]
    + [1 << power for power in range(10, 20)]
)


def cute_type(layout: Layout | ComposedLayout | Swizzle) -> str:
    """The C++ type whose default-constructed value is ``layout``, spelled without its namespace ``cute::``.

    >>> cute_type(Layout.parse("(8,(2,2)):(4,(1,16))"))
    'Layout<Shape<_8,Shape<_2,_2>>,Stride<_4,Stride<_1,_16>>>'
    >>> cute_type(Layout.parse("(128,3):(1,132)")), cute_type(Layout.parse("4:-1"))
    ('Layout<Shape<_128,_3>,Stride<_1,Int<132>>>', 'Layout<_4,_m1>')
    >>> cute_type(Layout.parse("(4,(2,3)):(1@0,(2@0@1,1@1@1))"))
    'Layout<Shape<_4,Shape<_2,_3>>,Stride<ScaledBasis<_1,0>,Stride<ScaledBasis<_2,1,0>,ScaledBasis<_1,1,1>>>>'
    >>> cute_type(ComposedLayout.parse("Sw<3,4,3> o 0 o (8,64):(64,1)"))
    'ComposedLayout<Swizzle<3,4,3>,_0,Layout<Shape<_8,_64>,Stride<_64,_1>>>'
    """
    if isinstance(layout, Swizzle):
        return f"Swizzle<{layout.bits},{layout.base},{layout.shift}>"
    if isinstance(layout, ComposedLayout):
        return f"ComposedLayout<{cute_type(layout.layout_a)},{_int(layout.offset)},{cute_type(layout.layout_b)}>"
    if RuntimeInt in map(type, layout.flat_shape + layout.flat_stride):
        raise LayoutError(
            "a C++ type holds what is known when the kernel compiles",
            got=str(layout),
            fix="pass run-time extents to the kernel, or give them their values",
        )
    return f"Layout<{_tuple(layout.shape, 'Shape')},{_tuple(layout.stride, 'Stride')}>"


def _tuple(t: IntTuple, name: str) -> str:
    if isinstance(t, tuple):
        return f"{name}<{','.join(_tuple(mode, name) for mode in t)}>"
    return _int(t)


def _int(n: int) -> str:
    if isinstance(n, ScaledBasis):
        path, value = single_axis(n)
        return f"ScaledBasis<{_int(value)},{','.join(map(str, path))}>"
    if n not in NAMED_INTS:
        return f"Int<{n}>"
    return f"_{n}" if n >= 0 else f"_m{-n}"
