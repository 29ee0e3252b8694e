"""Lookups of layoutgen.facts that explain reads, against figures worked out by hand."""

from __future__ import annotations

from layoutgen import paths
from layoutgen.facts import (
    Piece,
    access_facts,
    copy_piece,
    first_word,
    fragment_piece,
    shared_banks,
    shared_words,
    static_accesses,
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
    assert shared_words(each.b.shared, 1)[77, 3] == 77 + 3 * 136 + 15 * 136 + 128
    assert shared_banks(each, each.a)[5, :3].tolist() == [5, 9, 13]
    assert shared_banks(each, each.b)[77, :3].tolist() == [(77 + 136 * k) % 32 for k in range(3)]
    assert shared_banks(each, each.b, 1)[0, 0] == (15 * 136 + 128) % 32


def test_an_element_lies_in_one_access_of_each_side() -> None:
    """salykov_128x128x8: A's 4 m are loaded one by one and stored at once; warptile's B moves 4 n at a time."""
    staged = primary("salykov_128x128x8").a.copy
    assert copy_piece(staged, (3, 0), "read") == Piece(3, 0, 0, (3, 0), 1)
    assert copy_piece(staged, (3, 0), "write") == Piece(0, 0, 3, (0, 0), 4)
    straight = primary("warptile_128x128").b.copy
    assert copy_piece(straight, (2, 3), "read") == copy_piece(straight, (2, 3), "write") == Piece(0, 3, 2, (0, 3), 4)
    along_k = next(p for p in plan(load(paths.shipped_specs()["salykov_128x128x8"])) if p.variant == "ak_bk_16B").b.copy
    assert copy_piece(along_k, (1, 0), "write").width == along_k.write_vector
    fragment = primary("warptile_128x128").b.fragment
    assert fragment_piece(fragment, 6) == Piece(1, 0, 2, (4, 0), 4)


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
