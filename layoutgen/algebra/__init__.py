"""CuTe's layout algebra in Python: layouts as functions, and operations that give a right layout or raise LayoutError.

Stands alone: it imports nothing else of layoutgen but the errors.

>>> print(composition(Layout.parse("20:2"), Layout.parse("(5,4):(4,1)")))
(5,4):(8,2)
"""

from layoutgen.algebra.int_tuple import (
    IntTuple,
    compact_col_major,
    compact_row_major,
    compatible,
    congruent,
    crd2idx,
    depth,
    idx2crd,
    product,
    rank,
    shape_div,
    weakly_congruent,
)
from layoutgen.algebra.layout import Layout, flatten, get, make_layout
from layoutgen.algebra.operations import (
    Tiler,
    coalesce,
    complement,
    composition,
    filter,
    filter_zeros,
    left_inverse,
    right_inverse,
    with_shape,
)
from layoutgen.algebra.recast import upcast
from layoutgen.algebra.tiling import logical_divide, zipped_divide

__all__ = [
    "IntTuple",
    "Layout",
    "Tiler",
    "coalesce",
    "compact_col_major",
    "compact_row_major",
    "compatible",
    "complement",
    "composition",
    "congruent",
    "crd2idx",
    "depth",
    "filter",
    "filter_zeros",
    "flatten",
    "get",
    "idx2crd",
    "left_inverse",
    "logical_divide",
    "make_layout",
    "product",
    "rank",
    "right_inverse",
    "shape_div",
    "upcast",
    "weakly_congruent",
    "with_shape",
    "zipped_divide",
]
