"""The MFMA family: wavefronts of AMD's multiply by matrix-core atoms, whose fragments come by plain loads of LDS.

As in `mma` an atom is one more level of the C tile. Of A and B a lane holds one row, and of its K one run, whose lanes'
groups lie one behind the other (AMD Instinct MI300 ISA, "Matrix Arithmetic Instructions"): 4 of f16's 16 k are 8 bytes,
one ds_read_b64. CDNA3 has no load that turns what it brings, so that k-tiles are contiguous in k in LDS, whatever they
are in global memory; copies go through registers all the same, and turn them there.
"""

from __future__ import annotations

from layoutgen.algebra import Layout, composition, make_layout
from layoutgen.errors import PlanError
from layoutgen.hw.types import MmaAtom
from layoutgen.plan.mma import atoms_of
from layoutgen.plan.model import AtomFragment, OperandName, Shared, ThreadMap
from layoutgen.plan.storage import ITEMSIZE, plan_access, run_limit, vector_width, write_default
from layoutgen.plan.tile import composing, warp_tile
from layoutgen.spec import Spec


def plan_runs(spec: Spec, name: OperandName, shared: Shared, threads: ThreadMap, atom: MmaAtom) -> AtomFragment:
    """(lane, warp) -> where its run of k begins; (atom of the warp along x, K of the k-tile, stage) -> step from there.

    Raises PlanError where the shared layout carries between its modes, or doesn't hold a lane's run together.
    """
    mode = 0 if name == "a" else 1
    extent, atom_k = atom.layouts.shape_mnk[mode], atom.layouts.shape_mnk[2]
    groups = atom.layouts.threads.size // extent
    run, atoms = atom_k // groups, atoms_of(spec, atom, mode)
    itemsize = ITEMSIZE[getattr(spec.operands, name).dtype]
    storage_x, storage_k, stage = shared.layout
    rule = f"an address in shared.{name} must be the thread's base plus a step of its registers"
    got = f"{shared.layout[:2]}, between whose modes an atom's fragments carry"
    with composing(rule, spec.where(f"shared.{name}"), got, write_default(spec, name, storage_x.size)):
        at_x = composition(storage_x, warp_tile(spec, mode))
        lane = make_layout(composition(at_x, Layout(extent, 1)), composition(storage_k, Layout(groups, run)))
        thread = make_layout(lane, composition(storage_x, (threads.m, threads.n)[mode][1]))
        steps = composition(at_x, Layout(atoms, extent))
        along_k = composition(storage_k, Layout(spec.tiling.block[2] // atom_k, atom_k))
    wide = vector_width(storage_k, (thread, steps, along_k, stage), min(run, run_limit(shared, itemsize)))
    if wide < run:
        raise PlanError(
            f"a lane's run of k must lie together in shared.{name}",
            got=f"runs of {wide * itemsize} bytes in {shared.swizzle} o {shared.layout[:2]}",
            allowed=f"{run * itemsize} bytes on boundaries of as many",
            fix=write_default(spec, name, storage_x.size),
            where=spec.where(f"shared.{name}"),
        )
    load = plan_access(
        f"fragment_{name}", "ld.shared", (run, run * itemsize), shared, thread, (steps, along_k, stage),
        (spec, f"shared.{name}"),
    )  # fmt: skip
    registers = run // max(4 // itemsize, 1)
    return AtomFragment(load, run, atoms, "k", 1, registers, registers, atoms, Layout(atom_k), Layout(run))
