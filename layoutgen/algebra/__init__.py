"""CuTe's layout algebra in Python: layouts as functions, and operations that give a right layout or raise LayoutError.

Stands alone: it imports nothing else of layoutgen but the errors.

>>> print(composition(Layout.parse("20:2"), Layout.parse("(5,4):(4,1)")))
(5,4):(8,2)
"""

from layoutgen.algebra.compose import Tiler, composition, with_shape
from layoutgen.algebra.cute import cute_type
from layoutgen.algebra.int_tuple import (
    IntTuple,
    compact_col_major,
    compact_row_major,
    compatible,
    congruent,
    crd2idx,
    idx2crd,
    product,
    shape_div,
    weakly_congruent,
)
from layoutgen.algebra.inverse import complement, left_inverse, right_inverse
from layoutgen.algebra.layout import (
    Layout,
    LayoutLike,
    Offsets,
    cosize,
    depth,
    flatten,
    get,
    make_layout,
    offsets,
    rank,
    size,
)
from layoutgen.algebra.notation import parse
from layoutgen.algebra.properties import Cover, covers_exactly_once, first_collision, is_injective, max_vector
from layoutgen.algebra.recast import downcast, recast_layout, upcast
from layoutgen.algebra.simplify import coalesce, filter, filter_zeros
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle
from layoutgen.algebra.tiling import (
    blocked_product,
    flat_divide,
    flat_product,
    logical_divide,
    logical_product,
    raked_product,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)

__all__ = [
    "ComposedLayout",
    "Cover",
    "IntTuple",
    "Layout",
    "LayoutLike",
    "Offsets",
    "Swizzle",
    "Tiler",
    "blocked_product",
    "coalesce",
    "compact_col_major",
    "compact_row_major",
    "compatible",
    "complement",
    "composition",
    "congruent",
    "cosize",
    "covers_exactly_once",
    "crd2idx",
    "cute_type",
    "depth",
    "downcast",
    "filter",
    "filter_zeros",
    "first_collision",
    "flat_divide",
    "flat_product",
    "flatten",
    "get",
    "idx2crd",
    "is_injective",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "make_layout",
    "max_vector",
    "offsets",
    "parse",
    "product",
    "raked_product",
    "rank",
    "recast_layout",
    "right_inverse",
    "shape_div",
    "size",
    "tiled_divide",
    "tiled_product",
    "upcast",
    "weakly_congruent",
    "with_shape",
    "zipped_divide",
    "zipped_product",
]
