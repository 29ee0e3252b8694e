"""The variants of a spec: one plan for each pair of contiguous modes and alignment that has a kernel.

Families of main loops differ in what multiplies, and so in fragments and in their order: scalar FFMAs on outer products
of a thread's values (storage.plan_fragment), and MMA atoms of whole warps (mma) or wavefronts (mfma).
"""

from __future__ import annotations

from collections.abc import Iterator

from layoutgen.errors import PlanError, counted
from layoutgen.plan.copies import GlobalMode, plan_copy, plan_fetch
from layoutgen.plan.epilogue import plan_epilogue
from layoutgen.plan.mfma import plan_runs
from layoutgen.plan.mma import SPLIT, atom_of, atoms_of, plan_matrices, require_atom
from layoutgen.plan.model import (
    Copy,
    CTile,
    Fragment,
    Mode,
    Operand,
    OperandName,
    OperandRequirement,
    Plan,
    Requirements,
    Shared,
    SharedOperand,
    ThreadMap,
)
from layoutgen.plan.order import plan_order
from layoutgen.plan.pipeline import plan_program
from layoutgen.plan.schedule import plan_schedule
from layoutgen.plan.storage import ITEMSIZE, VECTOR_BYTES, place_shared, plan_fragment
from layoutgen.plan.tile import compose_tile, map_threads
from layoutgen.spec import Spec

MAX_STAGES = 8


def plan_variants(spec: Spec) -> Iterator[Plan]:
    """Spec -> its plans, cheapest first: by alignment, per pair of contiguous modes; then any strides.

    Rows are aligned to 16 bytes or to an element; those of smaller elements than a word also to 8 and to 4, the widths
    of cp.async.

    The first plan is the primary variant: the spec's own contiguous modes with its own copies. A plan that requires
    what one before it does would never be chosen, and is left out: accesses that are no narrower than those before.
    Raises PlanError where levels, storage or copies do not compose.
    """
    if spec.shared.stages > MAX_STAGES:
        raise PlanError(
            f"a main loop has at most {MAX_STAGES} stages of shared memory",
            got=spec.shared.stages,
            allowed=f"0 .. {MAX_STAGES}",
            fix=f"write shared.stages: {MAX_STAGES}",
            where=spec.where("shared.stages"),
        )
    unused = next((name for name in ("a", "b") if getattr(spec.shared, name) and not spec.shared.stages), None)
    if unused:
        raise PlanError(
            "without stages, there is no shared memory to lay out",
            got=f"shared.{unused}: {getattr(spec.shared, unused)} with shared.stages: 0",
            allowed="stages, or no layout",
            fix=f"leave shared.{unused} out, or write shared.stages: 2",
            where=spec.where(f"shared.{unused}"),
        )
    require_atom(spec)
    tile = compose_tile(spec)
    threads = map_threads(spec, tile)
    operands = _Operands(spec, tile, threads)
    pairs: list[tuple[Mode, Mode] | None] = [(a, b) for a in ("k", "m") for b in ("n", "k")]
    pairs.sort(key=lambda pair: pair != operands.own)
    least = min(ITEMSIZE[each.dtype] for each in (spec.operands.a, spec.operands.b, spec.operands.c))
    aligns = (VECTOR_BYTES, 8, 4, *((least,) if least < 4 else ())) if spec.tiling.atom else (VECTOR_BYTES, least)
    wanted = [(pair, align) for align in aligns for pair in pairs] + [(None, least)]
    required = set()
    for cost, (modes, align) in enumerate(wanted):
        each = _plan(spec, tile, threads, operands, modes, align, cost)
        if each.requirements not in required:
            required.add(each.requirements)
            yield each


class _Operands:
    """The operands of a spec's variants, which share storage and fragments, and copies where those are alike."""

    def __init__(self, spec: Spec, tile: CTile, threads: ThreadMap) -> None:
        self.spec, self.tile, self.threads = spec, tile, threads
        self.own: tuple[Mode, Mode] = (spec.operands.a.contiguous, spec.operands.b.contiguous)
        self.atom = atom_of(spec)
        self._stored: dict[tuple[OperandName, Mode], tuple[Shared, Fragment]] = {}
        self._copies: dict[tuple[OperandName, str, int, bool], Copy] = {}

    def of(self, name: OperandName, modes: tuple[Mode, Mode] | None, align: int) -> Operand:
        """A or B of the variant for these contiguous modes, None for any strides."""
        index = 0 if name == "a" else 1
        contiguous = (modes or self.own)[index]
        walk: GlobalMode = "k" if contiguous == "k" else "x"
        key = (name, contiguous, align, modes == self.own and align == VECTOR_BYTES)
        common = {
            "name": name,
            "dtype": getattr(self.spec.operands, name).dtype,
            "x": "m" if name == "a" else "n",
            "contiguous": contiguous if modes else None,
            "tile": (self.spec.tiling.block[index], self.spec.tiling.block[2]),
        }
        thread, value = (self.threads.m, self.threads.n)[index], self.tile.value_mode[index]
        if self.spec.shared.stages == 0:
            return Operand(**common, copy=plan_fetch(self.spec, name, thread, value, walk, align, as_given=key[3]))
        if (name, contiguous) not in self._stored:
            shared = place_shared(self.spec, name, self.spec.tiling.block[index], contiguous)
            if self.spec.tiling.atom:
                by_atom = plan_runs if self.spec.amd else plan_matrices
                fragment: Fragment = by_atom(self.spec, name, shared, self.threads, self.atom)
            else:
                fragment = plan_fragment(self.spec, name, shared, thread, value)
            self._stored[name, contiguous] = shared, fragment
        shared, fragment = self._stored[name, contiguous]
        if key not in self._copies:
            self._copies[key] = plan_copy(self.spec, name, shared, thread.size, walk, align, as_given=key[3])
        return SharedOperand(**common, copy=self._copies[key], shared=shared, fragment=fragment)


def _plan(
    spec: Spec,
    tile: CTile,
    threads: ThreadMap,
    operands: _Operands,
    modes: tuple[Mode, Mode] | None,
    align: int,
    cost: int,
) -> Plan:
    """One variant; modes None takes operands of any two strides, an element at a time."""
    a, b = operands.of("a", modes, align), operands.of("b", modes, align)
    dtype, atom = spec.operands.c.dtype, operands.atom
    epilogue = plan_epilogue(spec, tile, threads, align)
    counts = tuple(atoms_of(spec, atom, mode) if spec.tiling.atom else tile.value_mode[mode].size for mode in (0, 1))
    k_blocks = spec.tiling.block[2] // atom.layouts.shape_mnk[2]
    depth = max((each.fragment.depth for each in (a, b) if isinstance(each, SharedOperand)), default=1)
    variant = "any" if modes is None else f"a{modes[0]}_b{modes[1]}_{align}B"
    return Plan(
        name=spec.name,
        about=spec.about,
        variant=variant,
        cost=cost,
        arch=spec.arch,
        atom=atom,
        dtype=dtype,
        requirements=Requirements(
            a=_requirement(a),
            b=_requirement(b),
            c=OperandRequirement("n", epilogue.vector * ITEMSIZE[dtype]),
            epilogue=tuple(OperandRequirement("n", link.bytes) for link in epilogue.linked),
        ),
        tile=tile,
        threads=threads,
        a=a,
        b=b,
        stages=spec.shared.stages,
        program=plan_program(
            {"a": a.copy, "b": b.copy},
            spec.shared.stages,
            k_blocks,
            depth,
            _spread(spec, depth, k_blocks),
            promote=spec.tiling.split is not None,
            held=spec.amd and all(each.copy.atom.through_registers for each in (a, b)),
        ),
        order=plan_order(spec, *counts),
        schedule=plan_schedule(spec),
        epilogue=epilogue,
        terms=SPLIT[spec.tiling.split][1] if spec.tiling.split else 1,
    )


def _spread(spec: Spec, depth: int, block_k: int) -> tuple[int, int]:
    """copies.spread, for a turn of `block_k` k (or of so many atoms' K) whose fragments are loaded `depth` together.

    Raises PlanError where it ends too late.
    """
    (first, last), stages = spec.copies.spread, spec.shared.stages
    most = max(1, block_k - depth) if stages > 1 else 1
    if last > most:
        few = ": with fewer than 2 stages, copies are not dealt out" if stages < 2 else ""
        raise PlanError(
            "copies are dealt out over k of a turn before its last fragments, which are the next tile's",
            got=f"copies.spread: [{first}, {last}] of {block_k} k, {counted(stages, 'stage')}",
            allowed=f"[0, 1] .. [{most - 1}, {most}]" if most > 1 else f"[0, 1]{few}",
            fix=f"write copies.spread: [{min(first, most - 1)}, {most}]" if most > 1 else "leave copies.spread out",
            where=spec.where("copies.spread"),
        )
    return first, last


def _requirement(operand: Operand) -> OperandRequirement:
    return OperandRequirement(operand.contiguous, operand.copy.read_vector * ITEMSIZE[operand.dtype])
