"""Lookups of layoutgen.facts that explain reads, against figures worked out by hand."""

from __future__ import annotations

import pytest

from layoutgen import paths
from layoutgen.facts import (
    Piece,
    access_facts,
    fetch_piece,
    fetch_pieces,
    first_word,
    fragment_piece,
    shared_banks,
    shared_offsets,
    static_accesses,
    turned,
)
from layoutgen.plan import Plan, plan
from layoutgen.spec import load


def primary(name: str) -> Plan:
    return plan(load(paths.shipped_specs()[name]))[0]


def test_banks_count_through_the_blocks_shared_memory() -> None:
    """A: 2 stages of 16 rows of 132 words less the last row's padding, 2108, each ending on 32 bytes: 2112; so B starts
    at word 4224, in bank 0.
    """
    each = primary("warptile_128x128")
    assert (first_word(each, each.a), first_word(each, each.b)) == (0, 2 * 2112)
    assert shared_offsets(each.b.shared, 1)[77, 3] == 77 + 3 * 136 + 15 * 136 + 128
    assert shared_banks(each, each.a)[5, :3].tolist() == [5, 9, 13]
    assert shared_banks(each, each.b)[77, :3].tolist() == [(77 + 136 * k) % 32 for k in range(3)]
    assert shared_banks(each, each.b, 1)[0, 0] == (15 * 136 + 128) % 32


def test_an_element_lies_in_one_access_of_each_side() -> None:
    """salykov_128x128x8: A's 4 k are loaded at once and stored one by one; warptile's B moves 4 n at a time."""
    staged = primary("salykov_128x128x8").a.copy
    assert fetch_piece(staged, (0, 3), "read") == Piece(0, 0, 3, (0, 0), 4, "k")
    assert fetch_piece(staged, (0, 3), "write").elements == ((0, 3),)
    straight = primary("warptile_128x128").b.copy
    both = [fetch_piece(straight, (2, 3), side) for side in ("read", "write")]
    assert both == 2 * [Piece(0, 3, 2, (0, 3), 4, "x")]
    assert not turned(staged) and not turned(straight)
    fragment = primary("warptile_128x128").b.fragment
    assert fragment_piece(fragment, 6) == Piece(1, 0, 2, (4, 0), 4, "x")


def test_a_patch_is_read_along_k_and_written_along_x() -> None:
    """sgemm_128x256x16: 2 m x 4 k of A a thread, in two loads of four k and four stores of two m, i fastest."""
    copy = primary("sgemm_128x256x16").a.copy
    assert turned(copy)
    assert fetch_piece(copy, (1, 2), "read") == Piece(1, 0, 2, (1, 0), 4, "k")
    assert fetch_piece(copy, (1, 2), "read").elements == ((1, 0), (1, 1), (1, 2), (1, 3))
    assert fetch_piece(copy, (1, 2), "write") == Piece(0, 2, 1, (0, 2), 2, "x")
    assert [piece.first for piece in fetch_pieces(copy, "read")] == [(0, 0), (1, 0)]
    assert [piece.first for piece in fetch_pieces(copy, "write")] == [(0, 0), (0, 1), (0, 2), (0, 3)]


def test_what_ends_in_registers_is_written_nowhere() -> None:
    alone = primary("ladder_01_naive").a.copy
    assert not turned(alone) and fetch_piece(alone, (0, 3), "read").position == 3 % alone.read_vector
    with pytest.raises(TypeError, match="ends in registers"):
        fetch_piece(alone, (0, 3), "write")


def test_a_k_tile_executes_what_stands_in_the_loop() -> None:
    """warptile_128x128: 16 words of A, 4 x 16 bytes of B, and 16 fragments of 2 and 4 loads; one prologue beside it."""
    each = primary("warptile_128x128")
    turn = {(a.opcode, a.bytes, a.name): a.instructions for a in access_facts(each) if a.per == "k-tile"}
    assert turn == {
        ("ld.shared", 16, "fragment_a"): 16 * 2, ("ld.shared", 16, "fragment_b"): 16 * 4,
        ("cp.async", 4, "copy_a"): 16, ("cp.async", 16, "copy_b"): 4,
    }  # fmt: skip
    text = static_accesses(each)
    assert text["cp.async", 4] == 2 * 16 and text["ld.shared", 16] == 16 * 6 + 6
