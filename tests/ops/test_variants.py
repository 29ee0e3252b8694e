"""Each variant alone against float64, over memory that punishes a stray access: on the CPU any is an error."""

from __future__ import annotations

import pytest
import torch

from tests.ops.operands import (
    SPECS,
    TENSOR,
    Case,
    assert_right,
    every_variant,
    like,
    on_device,
    only,
    operands,
    plans,
    uniform,
)

# Every extent of {0, 1, 3, 17, 33, 130, 257}, every form of c, alpha and beta with and without either.
CASES = (
    Case(0, 17, 3),
    Case(17, 0, 3, out=True),
    Case(3, 33, 0, beta=-0.5, c="pitched", out=True),
    Case(33, 3, 0),
    Case(1, 1, 1),
    Case(1, 130, 17, alpha=0.5, beta=1.0, c="row"),
    Case(17, 33, 130, alpha=-1.5, beta=0.25, c="out"),
    Case(257, 1, 33, beta=2.0, c="scalar", out=True),
    Case(130, 257, 17, beta=1.0, c="column"),
    Case(3, 17, 257, alpha=0.0, beta=0.75, c="transposed", out=True),
    Case(33, 130, 1, alpha=2.0, beta=-1.0, c="1xN"),
    Case(257, 130, 33, c="full", out=True),
    Case(130, 3, 257, alpha=-0.5, beta=0.0, c="out"),
)
PRIMARIES = [(name, plans(name)[0].variant) for name in SPECS if name != "warptile_128x128"]
VARIANTS = [*every_variant("warptile_128x128"), *PRIMARIES]
OF_ATOMS = [(name, plans(name)[0].variant) for name in TENSOR]


@pytest.mark.parametrize(("name", "variant"), [*VARIANTS, *OF_ATOMS])
def test_every_variant_is_right(name: str, variant: str) -> None:
    operator = only(name, variant)
    for case in CASES:
        try:
            assert_right(operator, case, operator.plans[0])
        except Exception as error:
            error.add_note(f"{case}, of {operator}")
            raise


def test_the_cases_meet_every_extent() -> None:
    extents = {extent for case in CASES for extent in (case.m, case.n, case.k)}
    assert extents == {0, 1, 3, 17, 33, 130, 257}
    assert {case.c for case in CASES} >= {"none", "pitched", "row", "column", "scalar", "transposed", "out"}


def test_the_operands_are_no_better_aligned_than_the_variant_asks() -> None:
    """Else a variant that asks for too little would pass."""
    for plan in plans("warptile_128x128"):
        a, b, c, out = operands(Case(17, 33, 18, beta=1.0, c="pitched", out=True), plan)
        assert c is not None and out is not None
        of = plan.requirements
        for tensor, need in ((a, of.a), (b, of.b), (c, of.c), (out, of.c)):
            pitch = max(tensor.stride())
            assert (need.contiguous is None) == (1 not in tensor.stride())
            if need.contiguous is not None:
                assert pitch % (need.align // 4) == tensor.storage_offset() % (need.align // 4) == 0
                assert (pitch % 4 == 0 and tensor.storage_offset() % 4 == 0) == (need.align == 16)


def test_a_view_moves_with_its_surroundings() -> None:
    """As the tests on a GPU move them: same values, offset and pitch, other memory."""
    view = operands(Case(17, 33, 18), plans("warptile_128x128")[0])[0]
    moved = on_device(view, "cpu")
    assert (moved.stride(), moved.storage_offset()) == (view.stride(), view.storage_offset())
    assert torch.equal(moved, view) and moved.data_ptr() != view.data_ptr()


def test_all_variants_of_all_specs_give_the_same_bits() -> None:
    """Each sum is one chain of multiply-adds in the order of k, so neither tiling, width nor layout can show."""
    generator = torch.Generator().manual_seed(1)
    m, n, k = 36, 36, 132  # what every variant takes
    a, b, c = uniform(generator, m, k), uniform(generator, k, n), uniform(generator, m, n)
    results = []
    for name, variant in VARIANTS:
        operator = only(name, variant)
        need = operator.plans[0].requirements
        results.append(operator.eager(like(a, need.a, "m", "k"), like(b, need.b, "k", "n"), c, 1.5, -0.75))
    assert all(torch.equal(results[0], result) for result in results[1:])
