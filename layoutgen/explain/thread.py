"""One thread: the accumulators that it owns, what it reads for them, and what it copies for its block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from layoutgen.errors import RequestError
from layoutgen.explain.atoms import atom_loads, loads_told
from layoutgen.explain.follow import access, of_stage, steps
from layoutgen.explain.model import Entry, Rows, Section, Text
from layoutgen.explain.operands import each_k
from layoutgen.explain.words import runs
from layoutgen.facts import (
    BANK_BYTES,
    BANKS,
    Side,
    access_offsets,
    fetch_pieces,
    first_word,
    fragment_piece,
    shared_banks,
    shared_offsets,
    turned,
)
from layoutgen.plan.model import Fetch, Operand, Plan, SharedOperand
from layoutgen.plan.storage import ITEMSIZE


def thread_section(plan: Plan, thread: int) -> tuple[Section, dict[str, Any]]:
    """What one thread owns, loads and copies, told and as plain data.

    Raises RequestError where the block has no such thread.
    """
    threads = plan.threads.threads
    if not 0 <= thread < threads:
        raise RequestError.of_thread(thread, threads)
    warp, lane = divmod(thread, plan.warp_size)
    m = (plan.threads.m(thread) + plan.tile.value_mode[0].offsets()).tolist()
    n = (plan.threads.n(thread) + plan.tile.value_mode[1].offsets()).tolist()
    entries: list[Entry] = [Text(f"C: rows m {runs(m)}, columns n {runs(n)}: {len(m)} x {len(n)} accumulators.")]
    data: dict[str, Any] = {"thread": thread, "warp": warp, "lane": lane, "m": m, "n": n}
    for operand, xs in zip(plan.operands, (m, n), strict=True):
        if isinstance(operand, SharedOperand):
            copies = _copies(plan, operand, thread)
            if plan.uses_atoms:
                loads = atom_loads(plan, operand, thread)
                entries += loads_told(plan, operand, loads)
            else:
                loads = _loads(plan, operand, xs)
                entries += _loads_told(plan, operand, loads)
            entries += _copies_told(plan, operand, copies)
            data[operand.name] = {"loads": loads, "copies": copies}
            if copies and operand.copy.atom.through_registers:
                fetches = _fetches(operand, thread)
                data[operand.name]["fetches"] = fetches
                if turned(operand.copy):
                    entries += [Text(f"The loads of {operand.name.upper()}:"), Rows(_places(operand, fetches))]
        else:
            fetches = _fetches(operand, thread)
            entries += _fetches_told(operand, fetches)
            data[operand.name] = {"fetches": fetches}
    return Section(f"Thread {thread}: warp {warp}, lane {lane}", tuple(entries)), {"thread": data}


def _fetches(operand: Operand, thread: int) -> list[dict[str, Any]]:
    """Each access to global memory of a thread: (i, j), and its (x, k) in the tile."""
    return [
        {"access": [i, j], "elements": [list(at) for at in moved]}
        for (i, j), moved in _accesses(operand.copy, thread, "read")
    ]


def _accesses(fetch: Fetch, thread: int, side: Side) -> Iterator[tuple[tuple[int, int], tuple[tuple[int, int], ...]]]:
    """The number (i, j) of each access of a thread, and what it moves; i runs fastest."""
    for piece in fetch_pieces(fetch, side):
        yield (piece.i, piece.j), access(fetch, thread, piece.first, side)


def _fetches_told(operand: Operand, fetches: list[dict[str, Any]]) -> list[Entry]:
    wide = operand.copy.read_vector * ITEMSIZE[operand.dtype]
    return [
        Text(f"Loads of each k-tile of {operand.name.upper()}: {len(fetches)} ld.global of {wide} bytes."),
        Rows(_places(operand, fetches)),
    ]


def _places(operand: Operand, accesses: list[dict[str, Any]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Rows: the x and the k that each access moves."""
    return (
        (operand.x, tuple(runs([x for x, _ in each["elements"]]) for each in accesses)),
        ("k", tuple(runs([k for _, k in each["elements"]]) for each in accesses)),
    )


def _loads(plan: Plan, operand: SharedOperand, xs: list[int]) -> list[dict[str, Any]]:
    """Each shared load of one k, or of as many as it brings: its x, and its word and bank for each k, [stage][k]."""
    fragment = operand.fragment
    width = fragment_piece(fragment, 0).width
    found = []
    for load in range(fragment.vectors):
        first = xs[load * width]
        words = [shared_offsets(operand.shared, stage)[first].tolist() for stage in range(plan.stages)]
        banks = [shared_banks(plan, operand, stage)[first].tolist() for stage in range(plan.stages)]
        found.append({"x": xs[load * width : (load + 1) * width], "word": words, "bank": banks})
    return found


def _copies(plan: Plan, operand: SharedOperand, thread: int) -> list[dict[str, Any]]:
    """Each access to shared memory of a thread's copy: (i, j), its (x, k), and its word and bank, [stage]."""
    copy, width = operand.copy, operand.copy.write_vector
    if thread >= copy.participants:
        return []
    found = []
    for (i, j), moved in _accesses(copy, thread, "write"):
        (at,) = (n for n, piece in enumerate(fetch_pieces(copy, "write")) if (piece.i, piece.j) == (i, j))
        pieces = at + copy.writes * np.arange(plan.stages)
        offsets = access_offsets(copy.write, width, pieces)[:, thread] * ITEMSIZE[operand.dtype]
        words = (offsets // BANK_BYTES).tolist()
        banks = [(first_word(plan, operand) + word) % BANKS for word in words]
        found.append({"access": [i, j], "elements": [list(each) for each in moved], "word": words, "bank": banks})
    return found


def _loads_told(plan: Plan, operand: SharedOperand, loads: list[dict[str, Any]]) -> list[Entry]:
    upper, fragment = operand.name.upper(), operand.fragment
    return [
        Text(
            f"Fragment of {upper}, {each_k(fragment)}: {len(loads)} ld.shared of {fragment.load.bytes} bytes; "
            f"+ {steps(operand)}:"
        ),
        Rows(
            (
                (operand.x, tuple(runs(load["x"]) for load in loads)),
                (f"word at k 0{of_stage(plan, 0)}", tuple(str(load["word"][0][0]) for load in loads)),
                ("bank", tuple(str(load["bank"][0][0]) for load in loads)),
            )
        ),
    ]


def _copies_told(plan: Plan, operand: SharedOperand, copies: list[dict[str, Any]]) -> list[Entry]:
    copy, upper = operand.copy, operand.name.upper()
    if not copies:
        return [Text(f"It copies nothing of {upper}: the first {copy.participants} threads do.")]
    kind = f"{copy.writes} cp.async of {copy.write.bytes} bytes"
    if copy.atom.through_registers:
        read = f"{copy.reads} ld.global of {copy.read_vector * ITEMSIZE[operand.dtype]} bytes"
        kind = f"{read}, {copy.writes} st.shared of {copy.write.bytes} bytes"
    return [
        Text(f"Copies of each k-tile of {upper}: {kind}."),
        Rows(
            (
                *_places(operand, copies),
                (f"word{of_stage(plan, 0)}", tuple(str(each["word"][0]) for each in copies)),
                ("bank", tuple(str(each["bank"][0]) for each in copies)),
            )
        ),
    ]
