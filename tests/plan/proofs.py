"""Brute-force proofs that a plan is what its spec's text means."""

from __future__ import annotations

import numpy as np

from layoutgen.plan.model import Copy, Operand, Plan
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


def prove_fragment(operand: Operand, x: Ints, word: Ints) -> None:
    """Each shared load of each thread is aligned and brings, in order, the words of the x that the thread owns."""
    fragment, load = operand.fragment, operand.fragment.load
    assert load.bytes == 4 * fragment.vector and fragment.vector in (1, 2, 4)
    assert fragment.vectors * fragment.vector == x.shape[1]
    _, block_k, stages = word.shape
    steps = load.steps.offsets().reshape(stages, block_k, fragment.vectors)
    address = load.base.offsets()[:, None, None, None] + fragment.vector * steps[None]  # (thread, stage, k, vector)
    assert not (address % fragment.vector).any()
    read = address[..., None] + np.arange(fragment.vector)
    expected = word[x].transpose(0, 3, 2, 1).reshape(read.shape)  # (thread, value, k, stage) turned
    assert np.array_equal(read, expected)
    assert read.max() < operand.shared.bytes // 4


def _pieces(copy: Copy, width: int) -> tuple[Ints, Ints]:
    """The element indices (i, j) of each access: arrays (piece_j, piece_i, element of the access)."""
    count_i, count_j = copy.element_x.size, copy.element_k.size
    if copy.vector_mode == "x":
        assert count_i % width == 0
        i = np.arange(count_i).reshape(-1, width)
        return np.broadcast_arrays(i[None], np.arange(count_j)[:, None, None])  # type: ignore[return-value]
    assert count_j % width == 0
    j = np.arange(count_j).reshape(-1, width)
    return np.broadcast_arrays(np.arange(count_i)[None, :, None], j[:, None])  # type: ignore[return-value]


def prove_copy(operand: Operand, align: int, word: Ints) -> None:
    """Each (x, k) lands once, in its word; each access is contiguous and aligned on its side, whatever the pitch."""
    copy = operand.copy
    extent, block_k, stages = word.shape
    of_x, of_k = copy.element_x.offsets(), copy.element_k.offsets()
    thread_x, thread_k = (layout.offsets()[:, None, None, None] for layout in (copy.thread_x, copy.thread_k))
    assert copy.participants == copy.thread_x.size == copy.thread_k.size == copy.write.base.size

    i, j = _pieces(copy, copy.read_vector)
    x, k = np.broadcast_arrays(thread_x + of_x[i], thread_k + of_k[j])  # (thread, piece_j, piece_i, element)
    assert (x < extent).all() and (k < block_k).all()
    assert np.array_equal(np.sort((x + extent * k).reshape(-1)), np.arange(extent * block_k))
    assert 4 * copy.read_vector in (4, 8, 16) and 4 * copy.read_vector <= align
    if copy.read_vector > 1:
        run, still = (k, x) if operand.contiguous == "k" else (x, k)
        assert operand.contiguous is not None
        assert not (run[..., 0] % copy.read_vector).any() and (np.diff(run) == 1).all() and (np.diff(still) == 0).all()

    width = copy.write_vector
    assert copy.write.bytes == 4 * width and copy.write.bytes in copy.atom.widths
    assert copy.atom.through_registers or copy.read_vector == width
    i, j = _pieces(copy, width)
    x, k = np.broadcast_arrays(thread_x + of_x[i], thread_k + of_k[j])
    steps = copy.write.steps.offsets().reshape(stages, *i.shape[:2])
    address = copy.write.base.offsets()[None, :, None, None] + width * steps[:, None]  # (stage, thread, j, i)
    assert not (address % width).any()
    written = address[..., None] + np.arange(width)
    assert np.array_equal(written, word.transpose(2, 0, 1)[:, x, k])
    assert written.max() < operand.shared.bytes // 4


def prove_epilogue(plan: Plan) -> None:
    """Each access of C and D is a run of n that starts on a multiple of its width, within one thread's values."""
    width = plan.epilogue.vector
    n = plan.threads.n.offsets()[:, None] + plan.tile.value_mode[1].offsets()[None, :]
    assert plan.epilogue.bytes == 4 * width == plan.requirements.c.align and n.shape[1] % width == 0
    runs = n.reshape(n.shape[0], -1, width)
    assert not (runs[..., 0] % width).any() and (np.diff(runs) == 1).all()


def prove(plan: Plan, draft: Draft, owner: Owned) -> None:
    """All of the above, and that the variant's requirements are those of its widest accesses."""
    prove_tile(plan, owner)
    prove_epilogue(plan)
    align = 4 if plan.variant == "any" else int(plan.variant.split("_")[2].removesuffix("B"))
    needs = (plan.requirements.a, plan.requirements.b)
    for operand, x, need in zip(plan.operands, (owner.m, owner.n), needs, strict=True):
        word = words(draft, operand.name)
        prove_fragment(operand, x, word)
        prove_copy(operand, align, word)
        assert need.align == 4 * operand.copy.read_vector <= align and need.contiguous == operand.contiguous
    assert plan.requirements.c.contiguous == "n" and plan.requirements.c.align <= align
    assert plan.shared_bytes == plan.a.shared.bytes + plan.b.shared.bytes
    assert plan.threads.threads == owner.m.shape[0] == owner.n.shape[0]
