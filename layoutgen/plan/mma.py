"""The MMA family: warps multiply by mma.sync atoms, whose fragments come from shared memory by ldmatrix.

An atom is one more level of the C tile: its lanes and values are those of its accumulators (the PTX ISA's fragment of
C), and repeat over the warp tile as any thread's values do. Its A and B are fragments of other shapes: 8 rows of x by
4 lanes along k, each lane with one register of neighbours in k.
"""

from __future__ import annotations

from typing import Literal

from layoutgen.algebra import Layout, composition, make_layout
from layoutgen.errors import PlanError
from layoutgen.hw.devices import capability
from layoutgen.hw.mma_atoms import MMA_ATOMS
from layoutgen.hw.types import MmaAtom
from layoutgen.hw.warp_atoms import WARP, WARP_ATOMS, accumulator_of, is_mfma
from layoutgen.plan.model import AtomFragment, OperandName, Shared, ThreadMap
from layoutgen.plan.storage import (
    INTEGERS,
    ITEMSIZE,
    VECTOR_BYTES,
    by_matrices,
    contiguous_mode,
    plan_access,
    run_limit,
    vector_width,
    write_default,
)
from layoutgen.plan.tile import composing, warp_tile
from layoutgen.spec import Spec

ROWS, LANES = 8, 4  # of a matrix: x by registers along k
# The types of C and D, by that of the sums: doubles stay so or are rounded once; integers are saturated.
_FLOATS = ("f32", "f16", "bf16", "e4m3", "e5m2")
_STORED = {"f32": (*_FLOATS, *INTEGERS), "s32": (*INTEGERS, *_FLOATS), "f64": ("f64", "f32")}
SCALAR = MMA_ATOMS["UniversalFMA"]
# How numbers are split: the type of their terms, and how many there are.
SPLIT = {"tf32x3": ("tf32", 2), "bf16x6": ("bf16", 3)}


def atom_of(spec: Spec) -> MmaAtom:
    """What multiplies. Raises PlanError where the operands are not of its types, or its K doesn't divide the tile's."""
    given = spec.tiling.atom
    operands = spec.operands
    terms, _ = SPLIT.get(spec.tiling.split or "", ("", 1))
    of_terms = (terms, terms, "f32")
    if terms and spec.amd:
        raise PlanError(
            "numbers are split for the tensor cores of NVIDIA's GPUs",
            got=f"tiling.split: {spec.tiling.split} with arch: {spec.arch}",
            allowed="sm_80 or later",
            fix="leave tiling.split out",
            where=spec.where("tiling.split"),
        )
    if terms and not given:
        raise PlanError(
            "numbers are split for an atom that multiplies their terms",
            got=f"tiling.split: {spec.tiling.split} without tiling.atom",
            fix=f"write tiling.atom: {_suggested(spec, of_terms)}, or leave tiling.split out",
            where=spec.where("tiling.split"),
        )
    found = tuple(each.dtype for each in (operands.a, operands.b)) + (operands.accumulate,)
    if given is None:
        if any(dtype != "f32" for dtype in (*found, operands.c.dtype)):
            raise PlanError(
                "without an MMA atom, threads multiply and add in f32",
                got=f"a {found[0]}, b {found[1]}, accumulate {found[2]}, c {operands.c.dtype}",
                allowed="f32",
                fix=f"write tiling.atom: {_suggested(spec, found)}" if _suggested(spec, found) else "write f32",
                where=spec.where("operands"),
            )
        return SCALAR
    atom = WARP_ATOMS[given]
    takes = tuple(each.lower() for each in (atom.a, atom.b, atom.c))
    if terms:
        if takes != of_terms:
            raise PlanError(
                "the terms into which numbers are split are of the type that the atom multiplies",
                got=f"tiling.split: {spec.tiling.split} with {given}",
                allowed=f"an atom of {terms} that adds in f32",
                fix=f"write tiling.atom: {_suggested(spec, of_terms)}, or leave tiling.split out",
                where=spec.where("tiling.split"),
            )
        takes = ("f32", "f32", "f32")
    if found != takes:
        raise PlanError(
            "operands must be of the types that the atom multiplies, and sums be of the type that it adds in",
            got=f"a {found[0]}, b {found[1]}, accumulate {found[2]} with {given}",
            allowed=f"a {takes[0]}, b {takes[1]}, accumulate {takes[2]}",
            fix=_mended(spec, found, takes),
            where=spec.where("operands"),
        )
    stored = _STORED[takes[2]]
    if operands.c.dtype not in stored:
        raise PlanError(
            "sums are stored in a type that holds what they are scaled to",
            got=f"c {operands.c.dtype}, accumulate {takes[2]}",
            allowed=", ".join(stored),
            fix=f"write operands.c: {{dtype: {stored[0]}}}",
            where=spec.where("operands.c.dtype"),
        )
    k = atom.layouts.shape_mnk[2]
    if spec.tiling.block[2] % k:
        raise PlanError(
            "the atom's K must divide the k of the block tile",
            got=f"{k} into {spec.tiling.block[2]}",
            allowed=f"a multiple of {k}",
            fix=f"let the block's k be {max(1, spec.tiling.block[2] // k) * k}",
            where=spec.where("tiling.block"),
        )
    return atom


def _mended(spec: Spec, found: tuple[str, ...], takes: tuple[str, ...]) -> str:
    """What makes an atom and operands of other types agree."""
    if set(found) == {"f32"}:
        split = next((word for word, (terms, _) in SPLIT.items() if {terms} == set(takes[:2])), None)
        return f"write tiling.split: {split}, or dtype: {takes[0]}" if split else f"write dtype: {takes[0]}"
    atom = _suggested(spec, found)
    return f"write tiling.atom: {atom}" if atom else "change the operands' types"


def _suggested(spec: Spec, types: tuple[str, ...]) -> str | None:
    """The atom with the largest K for these types of A, B and the accumulator."""
    family = "v_mfma" if spec.amd else "SM8"
    fitting = [
        atom
        for atom in WARP_ATOMS.values()
        if atom.name.startswith(family) and tuple(each.lower() for each in (atom.a, atom.b, atom.c)) == types
    ]
    return (
        max(fitting, key=lambda atom: atom.layouts.shape_mnk[2] * atom.layouts.shape_mnk[0]).name if fitting else None
    )


def require_arch(spec: Spec) -> None:
    """Raise PlanError where the spec's atom is an instruction of the other vendor's, or of a later architecture."""
    given = spec.tiling.atom
    if given is None:
        return
    major, minor = capability(spec.arch) or (0, 0)
    oldest = WARP_ATOMS[given].arch
    if is_mfma(given) == spec.amd and (spec.amd or 10 * major + minor >= oldest):
        return
    allowed, arch = (
        ("an AMD architecture, gfx942", "gfx942")
        if is_mfma(given)
        else (f"one of NVIDIA's, sm_{oldest} or later", f"sm_{oldest}")
    )
    raise PlanError(
        "the spec's architecture has the atom's instruction",
        got=f"{given} with arch: {spec.arch}",
        allowed=f"with this atom, {allowed}",
        fix=f"write arch: {arch}, or an atom of {spec.arch}'s",
        where=spec.where("tiling.atom"),
    )


def require_atom(spec: Spec) -> None:
    """Raise PlanError where a spec's levels don't suit its atom: an architecture without it, no shared memory to take
    fragments from, another owner of C's values than its accumulators, warp tiles that it doesn't fill."""
    require_arch(spec)
    if spec.tiling.atom is None:
        return
    if spec.shared.stages == 0:
        raise PlanError(
            "the fragments of MMA atoms come from shared memory",
            got="shared.stages: 0",
            allowed="1 stage or more",
            fix="write shared.stages: 3",
            where=spec.where("shared.stages"),
        )
    atom = WARP_ATOMS[spec.tiling.atom]
    lanes, values = accumulator_of(atom)
    own = {"lanes": str(spec.tiling.lanes), "values": f"<{', '.join(map(str, spec.tiling.values))}>"}
    for key, of_atom in (("lanes", lanes), ("values", values)):
        if own[key] != of_atom:
            raise PlanError(
                "an MMA atom says who holds what of C",
                got=f"tiling.{key}: {own[key]} with {spec.tiling.atom}",
                allowed=of_atom,
                fix=f"leave tiling.{key} out",
                where=spec.where(f"tiling.{key}"),
            )
    for mode in (0, 1):
        atoms_of(spec, atom, mode)


def atoms_of(spec: Spec, atom: MmaAtom, mode: int) -> int:
    """How many atoms a warp has along m or n. Raises PlanError where they don't fill its tile."""
    extent, own = warp_tile(spec, mode).size, atom.layouts.shape_mnk[mode]
    if extent % own:
        raise PlanError(
            f"atoms must fill the warp tile in {'mn'[mode]}",
            got=f"{own} of {atom.name} into {extent}",
            allowed=f"a multiple of {own}",
            fix="use fewer warps in that mode, or a larger block tile",
            where=spec.where("tiling.warps"),
        )
    return extent // own


def plan_matrices(spec: Spec, name: OperandName, shared: Shared, threads: ThreadMap, atom: MmaAtom) -> AtomFragment:
    """The loads of an atom's A or B, for each atom that a warp has along x and each K of an atom in the k-tile.

    A load by ldmatrix brings as many matrices as it can, up to four, in the order of the atoms' registers; where none
    can, each register is loaded for itself. Where a register of the atom has terms of several numbers, these come from
    as many matrices: A and B change the order of k alike, and so no sum. Raises PlanError where the shared layout
    carries between its modes, or its runs are too short for a register.
    """
    mode = 0 if name == "a" else 1
    extent, dtype = atom.layouts.shape_mnk[mode], getattr(spec.operands, name).dtype
    itemsize = ITEMSIZE[dtype]
    per_register = max(4 // itemsize, 1)
    atoms, block_k, atom_k = atoms_of(spec, atom, mode), spec.tiling.block[2], atom.layouts.shape_mnk[2]
    rows, columns = extent // ROWS, atom_k // (LANES * per_register)
    of_atom = rows * columns
    k_order, elements = Layout(atom_k), Layout(of_atom * per_register)
    terms = max(4 // ITEMSIZE[atom.a.lower()], 1)  # of a register of the atom
    if terms > per_register:
        k_order = Layout((terms, LANES, columns // terms), (LANES, 1, LANES * terms))
        elements = Layout((terms, rows, columns // terms), (rows, 1, rows * terms))
    tile, warp = warp_tile(spec, mode), (threads.m, threads.n)[mode][1]
    storage_x, storage_k, stage = shared.layout
    walk = contiguous_mode(shared)
    matrices = by_matrices(dtype, walk)
    together = 1
    while matrices and together < 4 and of_atom * atoms % (2 * together) == 0:
        together *= 2
    rule = f"an address in shared.{name} must be the thread's base plus a step of its registers"
    got = f"{shared.layout[:2]}, between whose modes an atom's fragments carry"
    with composing(rule, spec.where(f"shared.{name}"), got, write_default(spec, name, storage_x.size)):
        at_x = composition(storage_x, tile)
        registers = make_layout(  # in the atom's order, atom by atom
            composition(at_x, Layout(rows, ROWS)),
            composition(storage_k, Layout(columns, LANES * per_register)),
            composition(at_x, Layout(atoms, extent)),
        )
        first = composition(registers, Layout(together, 1))
        steps = composition(registers, Layout(of_atom * atoms // together, together))
        row = composition(at_x, Layout(ROWS, 1))
        if matrices:  # lane -> row of matrix 0, 1, ..; the others repeat them
            pointer = row if walk == "k" else composition(storage_k, Layout(ROWS, 1))
            lane = make_layout(pointer, first, Layout(WARP // (ROWS * together), 0))
        else:
            lane = make_layout(composition(storage_k, Layout(LANES, per_register)), row)
        thread = make_layout(lane, composition(storage_x, warp))
        along_k = composition(storage_k, Layout(block_k // atom_k, atom_k))
    unit = VECTOR_BYTES // itemsize if matrices else per_register
    run = storage_k if walk == "k" else storage_x
    others = (thread, steps, along_k, stage)
    if unit > 1:
        wide = vector_width(run, others, min(unit, run_limit(shared, itemsize)))
        if wide < unit:
            raise PlanError(
                f"{'a row of a matrix' if matrices else 'a register'} must lie together in shared.{name}",
                got=f"runs of {wide * itemsize} bytes in {shared.swizzle} o {shared.layout[:2]}",
                allowed=f"{unit * itemsize} bytes on boundaries of as many",
                fix=write_default(spec, name, storage_x.size),
                where=spec.where(f"shared.{name}"),
            )
    opcode: Literal["ldmatrix", "ldmatrix.trans", "ld.shared"] = (
        "ld.shared" if not matrices else "ldmatrix" if walk == "k" else "ldmatrix.trans"
    )
    load = plan_access(
        f"fragment_{name}", opcode, (unit, unit * itemsize), shared, thread, (steps, along_k, stage),
        (spec, f"shared.{name}"),
    )  # fmt: skip
    return AtomFragment(
        load, per_register * together, of_atom * atoms // together, walk, 1, together, of_atom, atoms, k_order, elements
    )
