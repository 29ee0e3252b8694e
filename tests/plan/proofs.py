"""Brute-force proofs that a plan is what its spec's text means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from layoutgen.plan.model import Fetch, Operand, Plan, SharedOperand
from layoutgen.plan.storage import ITEMSIZE
from tests.plan.drafts import Draft
from tests.plan.naive import Ints, Owned, words


def prove_tile(plan: Plan, owner: Owned) -> None:
    """Every (m, n) of the block tile belongs to one value of one thread, namely to the one that the text says."""
    m = plan.threads.m.offsets()[:, None] + plan.tile.value_mode[0].offsets()[None, :]
    n = plan.threads.n.offsets()[:, None] + plan.tile.value_mode[1].offsets()[None, :]
    assert np.array_equal(m, owner.m) and np.array_equal(n, owner.n)
    block_m, block_n, _ = plan.tile.block
    assert ((m >= 0) & (m < block_m)).all() and ((n >= 0) & (n < block_n)).all()
    positions = (m[:, :, None] + block_m * n[:, None, :]).reshape(-1)
    assert np.array_equal(np.sort(positions), np.arange(block_m * block_n))


def prove_fragment(operand: SharedOperand, x: Ints, word: Ints) -> None:
    """Each shared load of each thread is aligned and brings, in order, the words of the x that the thread owns: a run
    of its values for one k, or a run of k for one value."""
    fragment, load = operand.fragment, operand.fragment.load
    width, (_, block_k, stages) = fragment.vector, word.shape
    assert load.bytes == 4 * width and width in (1, 2, 4)
    assert fragment.mode in ("x", "k") and fragment.depth == (width if fragment.mode == "k" else 1)
    width_x = width // fragment.depth
    assert fragment.vectors * width_x == x.shape[1] and block_k % fragment.depth == 0
    steps = load.steps.offsets().reshape(stages, block_k // fragment.depth, fragment.vectors)
    address = load.base.offsets()[:, None, None, None] + width * steps[None]  # (thread, stage, turn of k, vector)
    assert not (address % width).any()
    read = address[..., None] + np.arange(width)
    # (thread, vector, run in x, turn of k, run in k, stage), turned; one of the runs is 1
    expected = word[x].reshape(x.shape[0], fragment.vectors, width_x, -1, fragment.depth, stages)
    assert np.array_equal(read, expected.transpose(0, 5, 3, 1, 2, 4).reshape(read.shape))
    assert read.max() < operand.shared.bytes // 4


def _elements(copy: Fetch, width: int, mode: str) -> tuple[Ints, Ints]:
    """The element indices (i, j) of each access, accesses along x fastest: arrays (piece_j, piece_i, element)."""
    count_i, count_j = copy.element_x.size, copy.element_k.size
    assert (count_i if mode == "x" else count_j) % width == 0
    if mode == "x":
        i = np.arange(count_i).reshape(-1, width)
        return np.broadcast_arrays(i[None], np.arange(count_j)[:, None, None])  # type: ignore[return-value]
    j = np.arange(count_j).reshape(-1, width)
    return np.broadcast_arrays(np.arange(count_i)[None, :, None], j[:, None])  # type: ignore[return-value]


def _coordinates(copy: Fetch, i: Ints, j: Ints) -> tuple[Ints, Ints]:
    """Element indices -> (x, k) of each thread's elements: arrays (thread, piece_j, piece_i, element)."""
    thread_x, thread_k = (layout.offsets()[:, None, None, None] for layout in (copy.thread_x, copy.thread_k))
    x, k = np.broadcast_arrays(thread_x + copy.element_x.offsets()[i], thread_k + copy.element_k.offsets()[j])
    return x, k


def prove_reads(operand: Operand, align: int) -> tuple[Ints, Ints]:
    """Each global access lies in the tile, is contiguous and is aligned, whatever the pitch -> (x, k) of all."""
    copy, width = operand.copy, operand.copy.read_vector
    assert copy.participants == copy.thread_x.size == copy.thread_k.size
    x, k = _coordinates(copy, *_elements(copy, width, copy.read_mode))
    assert (x >= 0).all() and (k >= 0).all() and (x < operand.tile[0]).all() and (k < operand.tile[1]).all()
    assert copy.reads == x[0, :, :, 0].size
    size = ITEMSIZE[operand.dtype] * width
    assert size in (1, 2, 4, 8, 16) and size <= max(align, ITEMSIZE[operand.dtype])
    if operand.contiguous is not None:
        assert (copy.read_mode == "k") == (operand.contiguous == "k")
    if width > 1:
        run, still = (k, x) if operand.contiguous == "k" else (x, k)
        assert operand.contiguous is not None
        assert not (run[..., 0] % width).any() and (np.diff(run) == 1).all() and (np.diff(still) == 0).all()
    return x, k


def prove_copy(operand: SharedOperand, align: int, word: Ints) -> None:
    """Each (x, k) is read once and written once, by the thread that has it, to its word; each access is contiguous and
    aligned on its side."""
    copy = operand.copy
    extent, block_k, stages = word.shape
    x, k = prove_reads(operand, align)
    assert np.array_equal(np.sort((x + extent * k).reshape(-1)), np.arange(extent * block_k))
    assert copy.atom.name in ("cp.async", "ldg.sts") and copy.write.base.size == copy.participants

    width = copy.write_vector
    assert copy.write.bytes == 4 * width and copy.write.bytes in copy.atom.widths
    # What does not pass through registers is one access on both sides.
    assert copy.atom.through_registers or (
        copy.read_vector == width and (width == 1 or copy.read_mode == copy.write_mode)
    )
    i, j = _elements(copy, width, copy.write_mode)
    x, k = _coordinates(copy, i, j)
    assert np.array_equal(np.sort((x + extent * k).reshape(-1)), np.arange(extent * block_k))
    assert copy.writes == i[..., 0].size
    steps = copy.write.steps.offsets().reshape(stages, *i.shape[:2])
    address = copy.write.base.offsets()[None, :, None, None] + width * steps[:, None]  # (stage, thread, j, i)
    assert not (address % width).any()
    written = address[..., None] + np.arange(width)
    assert np.array_equal(written, word.transpose(2, 0, 1)[:, x, k])
    assert written.max() < operand.shared.bytes // 4


def prove_fetch(operand: Operand, align: int, owned: Ints) -> None:
    """Without shared memory: every thread loads the values it multiplies, element (i, j) being value i of k = j."""
    copy = operand.copy
    assert copy.atom.name == "ldg" and copy.participants == owned.shape[0]
    every_k = np.arange(operand.tile[1])
    i, j = np.meshgrid(np.arange(copy.element_x.size), np.arange(copy.element_k.size), indexing="ij")
    x, k = _coordinates(copy, i[None], j[None])
    assert np.array_equal(x[:, 0], np.broadcast_to(owned[:, :, None], (*owned.shape, every_k.size)))
    assert np.array_equal(k[:, 0], np.broadcast_to(every_k, (*owned.shape, every_k.size)))
    x, k = prove_reads(operand, align)
    numbers = np.sort((x + operand.tile[0] * k).reshape(copy.participants, -1), axis=1)
    mine = owned[:, :, None] + operand.tile[0] * every_k
    assert np.array_equal(numbers, np.sort(mine.reshape(copy.participants, -1), axis=1))


def prove_epilogue(plan: Plan) -> None:
    """Each access of C and D is a run of n that starts on a multiple of its width, within one thread's values."""
    width = plan.epilogue.vector
    n = plan.epilogue.thread_n.offsets()[:, None] + plan.epilogue.value_n.offsets()[None, :]
    size = ITEMSIZE[plan.dtype] * width
    assert plan.epilogue.bytes == size == plan.requirements.c.align and n.shape[1] % width == 0
    if plan.epilogue.exchange > 1:  # every lane of a quad has others' columns, and all of them the quad's
        mine = plan.threads.n.offsets()[:, None] + plan.tile.value_mode[1].offsets()[None, :]
        quads = (each.reshape(-1, 4 * each.shape[1]) for each in (n, mine))
        assert np.array_equal(*(np.sort(each, axis=1) for each in quads))
    runs = n.reshape(n.shape[0], -1, width)
    assert not (runs[..., 0] % width).any() and (np.diff(runs) == 1).all()


def prove_of_atoms(plan: Plan, owner: Owned) -> None:
    """Of a plan of MMA atoms: its tile, its epilogue, and that each (x, k) is read once, by whole accesses. What lies
    where in shared memory and in fragments is for test_mma."""
    prove_tile(plan, owner)
    prove_epilogue(plan)
    align = 1 if plan.variant == "any" else int(plan.variant.split("_")[2].removesuffix("B"))
    for operand, need in zip(plan.operands, (plan.requirements.a, plan.requirements.b), strict=True):
        x, k = prove_reads(operand, align)
        extent, block_k = operand.tile
        assert np.array_equal(np.sort((x + extent * k).reshape(-1)), np.arange(extent * block_k))
        assert need.align == ITEMSIZE[operand.dtype] * operand.copy.read_vector
        assert need.contiguous == operand.contiguous


def prove(plan: Plan, draft: Draft, owner: Owned) -> None:
    """All of the above, and that the variant's requirements are those of its widest accesses."""
    prove_tile(plan, owner)
    prove_epilogue(plan)
    align = 4 if plan.variant == "any" else int(plan.variant.split("_")[2].removesuffix("B"))
    needs = (plan.requirements.a, plan.requirements.b)
    assert plan.stages == draft.stages
    assert plan.shared_operands == (plan.operands if plan.stages else ())
    for operand, x, need in zip(plan.operands, (owner.m, owner.n), needs, strict=True):
        assert operand.tile == (draft.block["ab".index(operand.name)], draft.block[2])
        if isinstance(operand, SharedOperand):
            word = words(draft, operand.name)
            prove_fragment(operand, x, word)
            prove_copy(operand, align, word)
        else:
            prove_fetch(operand, align, x)
        assert need.align == 4 * operand.copy.read_vector <= align and need.contiguous == operand.contiguous
    assert plan.requirements.c.contiguous == "n" and plan.requirements.c.align <= align
    assert plan.shared_bytes == sum(4 * draft.stages * _stage_words(draft, each.name) for each in plan.shared_operands)
    assert plan.threads.threads == owner.m.shape[0] == owner.n.shape[0]


def _stage_words(draft: Draft, name: str) -> int:
    """The words of one stage of A or B."""
    last = int(words(replace(draft, stages=1), name).max()) + 1
    return -(-last // 8) * 8
