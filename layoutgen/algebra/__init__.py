"""CuTe's layout algebra in Python: layouts as functions, and operations that give a right layout or raise LayoutError.

Stands alone: it imports nothing else of layoutgen but the errors.

>>> print(composition(Layout.parse("20:2"), Layout.parse("(5,4):(4,1)")))
(5,4):(8,2)
"""

from layoutgen.algebra.address import AddressSplit, split_address
from layoutgen.algebra.basis import ScaledBasis
from layoutgen.algebra.common import max_common_layout, max_common_vector, nullspace
from layoutgen.algebra.compose import Tiler, composition, with_shape
from layoutgen.algebra.coordinate import index_layout, is_coordinate_layout, make_identity_layout
from layoutgen.algebra.cute import cute_type
from layoutgen.algebra.evaluate import evaluate
from layoutgen.algebra.explain import explain
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
from layoutgen.algebra.named import NamedLayout, named
from layoutgen.algebra.notation import parse
from layoutgen.algebra.properties import (
    Cover,
    covers_exactly_once,
    first_collision,
    first_gap,
    is_bijective,
    is_injective,
    is_surjective,
    max_vector,
)
from layoutgen.algebra.recast import downcast, recast_layout, upcast
from layoutgen.algebra.runtime import RuntimeInt
from layoutgen.algebra.shaping import (
    domain_distribute,
    make_fragment_like,
    make_layout_like,
    make_ordered_layout,
    product_each,
    tile_to_shape,
)
from layoutgen.algebra.simplify import coalesce, filter, filter_zeros
from layoutgen.algebra.slicing import (
    Coordinate,
    View,
    coordinate_of,
    dice,
    local_partition,
    local_tile,
    parse_coordinate,
    slice,
    slice_and_offset,
)
from layoutgen.algebra.smem import SmemLayout, as_position_independent
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle
from layoutgen.algebra.tiled_copy import (
    CopyLayouts,
    TiledCopy,
    make_cotiled_copy,
    make_tiled_copy,
    make_tiled_copy_for,
    make_tiled_copy_for_atom,
    make_tiled_copy_like,
)
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
from layoutgen.algebra.tv import SCALAR_FMA, MmaLayouts, TiledMma, make_tiled_mma

__all__ = [
    "SCALAR_FMA",
    "AddressSplit",
    "ComposedLayout",
    "Coordinate",
    "CopyLayouts",
    "Cover",
    "IntTuple",
    "Layout",
    "LayoutLike",
    "MmaLayouts",
    "NamedLayout",
    "Offsets",
    "RuntimeInt",
    "ScaledBasis",
    "SmemLayout",
    "Swizzle",
    "TiledCopy",
    "TiledMma",
    "Tiler",
    "View",
    "as_position_independent",
    "blocked_product",
    "coalesce",
    "compact_col_major",
    "compact_row_major",
    "compatible",
    "complement",
    "composition",
    "congruent",
    "coordinate_of",
    "cosize",
    "covers_exactly_once",
    "crd2idx",
    "cute_type",
    "depth",
    "dice",
    "domain_distribute",
    "downcast",
    "evaluate",
    "explain",
    "filter",
    "filter_zeros",
    "first_collision",
    "first_gap",
    "flat_divide",
    "flat_product",
    "flatten",
    "get",
    "idx2crd",
    "index_layout",
    "is_bijective",
    "is_coordinate_layout",
    "is_injective",
    "is_surjective",
    "left_inverse",
    "local_partition",
    "local_tile",
    "logical_divide",
    "logical_product",
    "make_cotiled_copy",
    "make_fragment_like",
    "make_identity_layout",
    "make_layout",
    "make_layout_like",
    "make_ordered_layout",
    "make_tiled_copy",
    "make_tiled_copy_for",
    "make_tiled_copy_for_atom",
    "make_tiled_copy_like",
    "make_tiled_mma",
    "max_common_layout",
    "max_common_vector",
    "max_vector",
    "named",
    "nullspace",
    "offsets",
    "parse",
    "parse_coordinate",
    "product",
    "product_each",
    "raked_product",
    "rank",
    "recast_layout",
    "right_inverse",
    "shape_div",
    "size",
    "slice",
    "slice_and_offset",
    "split_address",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "upcast",
    "weakly_congruent",
    "with_shape",
    "zipped_divide",
    "zipped_product",
]
