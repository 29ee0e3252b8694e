"""The shared case file: right values for inputs where CuTe C++, pycute, tensor-layouts or the CuTe DSL often differ.

``LAYOUTGEN_CASES`` names another file of the same form: one JSON object a line, with id, op, args and expected, where
expected "error" means a LayoutError. Every operation that occurs runs, or the test of its row fails.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from layoutgen import algebra
from layoutgen.algebra import ComposedLayout, Layout, View
from layoutgen.algebra.int_tuple import to_text
from layoutgen.algebra.inverse import run_time_complement
from layoutgen.errors import LayoutError
from tests.algebra.case_text import TEXT_OPERATIONS, text_operation

DEFAULT = Path(__file__).parents[1] / "data" / "algebra.jsonl"


def rows(path: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


CASES = rows(os.environ.get("LAYOUTGEN_CASES", DEFAULT))


def call(layout: Any, index: int) -> int:
    return layout(index)


def offsets(layout: Any) -> str:
    return ",".join(map(str, algebra.offsets(layout)))


def composition_offsets(outer: Any, offset: int, inner: Any) -> str:
    return offsets(ComposedLayout(outer, offset, inner))


def recast(old_bits: int, new_bits: int, layout: Any) -> Any:
    return algebra.recast_layout(layout, old_bits, new_bits)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "blocked_product": algebra.blocked_product,
    "call": call,
    "coalesce": algebra.coalesce,
    "coalesce_profile": algebra.coalesce,
    "compatible": algebra.compatible,
    "complement": algebra.complement,
    "complement1": algebra.complement,
    "composition": algebra.composition,
    "composition3_offsets": composition_offsets,
    "congruent": algebra.congruent,
    "cosize": algebra.cosize,
    "domain_distribute": algebra.domain_distribute,
    "downcast": algebra.downcast,
    "filter": algebra.filter,
    "flat_divide": algebra.flat_divide,
    "flat_product": algebra.flat_product,
    "identity": algebra.make_identity_layout,
    "idx2crd": algebra.idx2crd,
    "left_inverse": algebra.left_inverse,
    "logical_divide": algebra.logical_divide,
    "logical_product": algebra.logical_product,
    "make_layout_like": algebra.make_layout_like,
    "make_ordered_layout": algebra.make_ordered_layout,
    "max_common_layout": algebra.max_common_layout,
    "max_common_vector": algebra.max_common_vector,
    "nullspace": algebra.nullspace,
    "offsets": offsets,
    "raked_product": algebra.raked_product,
    "recast_layout": recast,
    "right_inverse": algebra.right_inverse,
    "shape_div": algebra.shape_div,
    "tile_to_shape": algebra.tile_to_shape,
    "tile_to_shape_order": algebra.tile_to_shape,
    "tiled_divide": algebra.tiled_divide,
    "tiled_product": algebra.tiled_product,
    "upcast": algebra.upcast,
    "weakly_congruent": algebra.weakly_congruent,
    "with_shape": algebra.with_shape,
    "zipped_divide": algebra.zipped_divide,
    "zipped_product": algebra.zipped_product,
}
# The form that C++ gives for run-time arguments: what it can't see to be 1 stays a mode.
RUN_TIME_OPERATIONS: dict[str, Callable[..., Any]] = {"complement": run_time_complement}


def show(result: Any) -> str:
    """As the case file spells it: booleans are 0 and 1, IntTuples as CuTe prints them."""
    if isinstance(result, bool):
        return str(int(result))
    return to_text(result) if isinstance(result, (int, tuple)) and not isinstance(result, View) else str(result)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['op']}")
def test_case(case: dict[str, Any]) -> None:
    operation, arguments = text_operation(case["op"]), case["args"]
    if operation is None:
        operations = OPERATIONS | RUN_TIME_OPERATIONS if any(case.get("dynamic", [])) else OPERATIONS
        operation, arguments = operations[case["op"]], [algebra.parse(argument) for argument in case["args"]]
    if case["expected"] == "error":
        with pytest.raises(LayoutError) as raised:
            operation(*arguments)
        assert raised.value.rule and raised.value.got
    else:
        assert show(operation(*arguments)) == case["expected"], case["note"]


@pytest.mark.parametrize("name", [*OPERATIONS, *TEXT_OPERATIONS])
def test_every_operation_has_a_case(name: str) -> None:
    """So that a name in the table can't be misspelt."""
    assert any(row["op"] == name for row in rows(DEFAULT))


def test_the_committed_cases_are_all_there() -> None:
    assert len({row["id"] for row in rows(DEFAULT)}) == 249


def test_layouts_print_as_they_read() -> None:
    texts = {text for row in rows(DEFAULT) if row["op"] in OPERATIONS for text in row["args"]}
    texts = {text for text in texts if ":" in text and "<" not in text}
    assert texts
    for text in texts:
        assert str(Layout.parse(text)) == text
