"""Specs and rivals at shapes -> Result: everything compiled first, then each case checked, warmed up and timed."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from layoutgen import build, run
from layoutgen.bench.lab import Lab, Operation
from layoutgen.bench.result import MODES, WRONG, Conditions, Kernel, Result, Roofs, Row, admit, write
from layoutgen.bench.rounds import Call, rounds, warm_up
from layoutgen.bench.statistic import FEWEST, compare
from layoutgen.check import require_legal
from layoutgen.emitted import require_emitted
from layoutgen.errors import BuildError, OperandError, RequestError, meant
from layoutgen.facts import facts
from layoutgen.plan import Plan, plan
from layoutgen.problem import Extents, Problem, dense
from layoutgen.report import main_loop, read_spec
from layoutgen.rounding import EACH_STEP, F32, ROUNDOFF, Types
from layoutgen.spec import Spec

RIVALS = ("cublas", "triton", "torch")
# What torch.mm (for int8 torch._int_mm) and our Triton kernel multiply.
_FLOATS = (
    F32, Types("f16", "f16", "f16"), Types("bf16", "bf16", "bf16"), Types("tf32", "tf32", "f32"),
    Types("f64", "f64", "f64", "f64"),
)  # fmt: skip
RIVAL_TYPES = {"cublas": (*_FLOATS, Types("s8", "s8", "s32", "s32")), "triton": (F32,), "torch": _FLOATS}
REPEATS = 30
Case = tuple[Extents, str]


class Watch:
    """Told how a bench goes on; does nothing. A subclass shows it."""

    def begin(self, what: str, amount: float) -> None:
        """A phase of so much work begins; the one before is done."""

    def step(self, what: str, amount: float = 1.0) -> None:
        """So much more of the phase is done; `what` is being worked on."""

    def measured(self, rows: Sequence[Row], conditions: Conditions) -> None:
        """A case is measured, or as much of it as there was time for."""


@dataclass(frozen=True, slots=True)
class Side:
    """A side: what it is called, what it does, and for a spec the kernel of each case. slack: what its epilogue's
    rounding may add to its error."""

    name: str
    operation: Operation
    slack: float = 0.0
    kernels: Mapping[Case, Kernel] = field(default_factory=dict)


def allowed_error(k: int, types: Types = F32) -> float:
    """The largest |d - a b| / (|a| |b|) that a right result may have, for operands of mean zero.

    k + 1 roundings at most (Higham, "Accuracy and Stability of Numerical Algorithms", section 3.5), and for random data
    of mean zero a number that grows next to nothing with k (Higham and Mary, "Sharper probabilistic backward error
    analysis for basic linear algebra kernels with random data", SIAM J. Sci. Comput. 42, 2020): up to k = 8192 cuBLAS
    and our specs were off by 6 units of 2^-24 at most. TF32 or a missing k is off by hundreds.
    """
    return types.allowed(min(k + 1, 64))


def bench(
    specs: Sequence[str | Path | Spec],
    *,
    shapes: Sequence[Extents] = ((4096, 4096, 4096),),
    modes: Sequence[str] = ("kn",),
    against: Sequence[str] = ("cublas",),
    repeats: int = REPEATS,
    out: str | Path | None = None,
    watch: Watch | None = None,
    lab: Lab | None = None,
) -> Result:
    """Measure specs on the GPU here, beside rivals in the same rounds.

    A kernel whose result is wrong is reported with its error and gets no time; the others are measured.

    Args:
        specs: paths, names of specs that come with layoutgen, or Specs; their names differ.
        shapes: (M, N, K) each. modes: pairs of contiguous modes of a and b, of MODES. Every shape meets every pair.
        against: of RIVALS; may be empty.
        repeats: rounds, at least FEWEST.
        out: the JSON file, written anew after each case, so that whatever ends the run leaves the cases before.
        watch: told how it goes on. lab: what measures; default the GPU that CUDA counts first.

    Raises:
        RequestError: a rival, pair of modes or number that there isn't, or no GPU. Nothing is written.
        SpecError, IllegalSpecError, BuildError: as for `layoutgen.report.build_spec`. Nothing is written.
        LayoutgenError: the operands of a case don't fit, or `out` can't be written.
        KeyboardInterrupt: `watch` was told of the case at hand, as far as it went, and `out` holds it.
    """
    _admit(specs, shapes, modes, against, repeats)
    file = None if out is None else Path(out)
    if file is not None:
        admit(file)
    chosen = [read_spec(spec) for spec in specs]
    for each in chosen:
        require_emitted(each)
    names = [*against, *(spec.name for spec in chosen)]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise RequestError("every side of a bench has a name of its own", got=f"{twice[0]} twice", fix="leave one out")
    watch = watch or Watch()
    with lab or _gpu() as here:
        cases = list(dict.fromkeys((shape, pair) for shape in shapes for pair in modes))
        types = _types(chosen, against)
        fused = next((spec for spec in chosen if spec.epilogue), None)
        rounded = 2 * len(fused.epilogue) * ROUNDOFF[types.c] if fused else 0.0
        sides = [
            Side(name, here.rival(name, plan(fused)[0] if fused else None), rounded if name == "torch" else 0.0)
            for name in against
        ]
        sides += _built(chosen, cases, here, watch)
        device = here.device
        rate = None if types.a == "f32" else device.mma_rate(types.a)
        peak = None if rate is None else rate * device.boost_mhz * device.sms / 1e6
        result = Result(
            script(specs, shapes, modes, against, repeats), here.machine(),
            Roofs(device.name, float(device.fp32_tflops), float(device.memory_gbs), types.a, peak), repeats,
        )  # fmt: skip
        watch.begin("measuring", sum((1 + repeats) * _seconds(case[0], sides) for case in cases))
        for number, case in enumerate(cases, start=1):
            rows, conditions, interrupt = _measured(case, types, sides, here, repeats, watch)
            result = replace(
                result, rows=result.rows + rows, conditions=(*result.conditions, conditions),
                complete=number == len(cases) and interrupt is None,
            )  # fmt: skip
            if file is not None:
                write(result, file)
            watch.measured(rows, conditions)
            if interrupt is not None:
                raise interrupt
    return result


def script(
    specs: Sequence[str | Path | Spec],
    shapes: Sequence[Extents],
    modes: Sequence[str],
    against: Sequence[str],
    repeats: int,
) -> str:
    """The command that measures this."""
    words = ["layoutgen", "bench", *(spec.name if isinstance(spec, Spec) else str(spec) for spec in specs)]
    for m, n, k in shapes:
        words += ["--shape", str(m) if m == n == k else f"{m},{n},{k}"]
    for pair in modes:
        words += ["--modes", pair]
    words += ["--against", ",".join(against) or "none", "--repeats", str(repeats)]
    return shlex.join(words)


def _admit(
    specs: Sequence[object], shapes: Sequence[Extents], modes: Sequence[str], against: Sequence[str], repeats: int
) -> None:
    for what, one, asked, known in (
        ("a rival", "the rivals", against, RIVALS), ("a pair of contiguous modes", "those of a and b", modes, MODES)
    ):  # fmt: skip
        for name in asked:
            if name not in known:
                fix = meant(name, known) or f"take {known[0]}"
                raise RequestError(f"{what} is one of {one}", got=repr(name), allowed=", ".join(known), fix=fix)
    for shape in shapes:
        if min(shape) < 1:
            raise RequestError("M, N and K are at least 1", got=shape, fix="leave an empty problem out")
    for what, some in (("a spec", specs), ("a shape", shapes), ("a pair of contiguous modes", modes)):
        if not some:
            raise RequestError(f"a bench has {what}", got="none", fix=f"name {what}")
    if repeats < FEWEST:
        raise RequestError(
            "there are rounds enough for a confidence interval of a median",
            got=repeats, allowed=f"at least {FEWEST}", fix=f"ask for {FEWEST} or more; {REPEATS} by default",
        )  # fmt: skip


def _gpu() -> Lab:
    if build.current_arch() is None:
        raise RequestError(
            "a bench measures on an NVIDIA GPU",
            got="no GPU, or no driver for it",
            allowed="a GPU whose driver runs CUDA 13",
            fix="run it where there is one; `layoutgen check` gives a spec's ceiling without",
        )
    from layoutgen.bench.gpu import Gpu

    return Gpu()


def _seconds(shape: Extents, sides: Sequence[Side]) -> float:
    """About how long a round takes; only its proportions matter, for the time left."""
    m, n, k = shape
    return len(sides) * (5e-4 + 2 * m * n * k / 3e13)


def _built(specs: Sequence[Spec], cases: Sequence[Case], lab: Lab, watch: Watch) -> Iterator[Side]:
    """Every kernel that a case needs is compiled, many at once, before anything is timed."""
    plans = [require_legal(spec, lab.device).plans for spec in specs]
    needed = {
        (index, case): run.choose(variants, _problem(variants[0], case))
        for index, variants in enumerate(plans)
        for case in cases
    }
    jobs = {plan: _job(plan, lab.arch) for plan in needed.values()}
    watch.begin("compiling", len(jobs))
    label = {job: f"{plan.name} {plan.variant}" for plan, job in jobs.items()}
    artifacts = build.build_many(list(jobs.values()), done=lambda job: watch.step(f"compiled {label[job]}"))
    built = dict(zip(jobs, artifacts, strict=True))
    for index, (spec, variants) in enumerate(zip(specs, plans, strict=True)):
        kernels = {}
        for case in cases:
            plan = needed[index, case]
            kernels[case] = _kernel(plan, built[plan], case, lab)
        yield Side(spec.name, lab.operator(spec, variants), len(spec.epilogue) * EACH_STEP, kernels)


def _problem(plan: Plan, case: Case) -> Problem:
    return dense(*case[0], case[1], tensors=plan.epilogue.tensors)


def _job(plan: Plan, arch: str) -> build.Job:
    source = run.source(plan)
    return build.Job(source.text, source.launch.kernel, arch)


def _kernel(plan: Plan, artifact: build.Artifact, case: Case, lab: Lab) -> Kernel:
    used, loop = artifact.resources, main_loop(plan, artifact)
    found = facts(plan, lab.device, _problem(plan, case), built=used.registers, loop=loop)
    assert found.problem is not None  # since it was given one
    return Kernel(
        variant=plan.variant,
        block=plan.tile.block,
        threads=found.threads,
        registers=used.registers,
        spill_bytes=used.spill_stores + used.spill_loads,
        shared_bytes=plan.shared_bytes + used.static_shared,
        loop=loop,
        intensity=found.intensity.block,
        roof_tflops=found.roof,
        ceiling_tflops=found.ceiling,
        limiter=None if found.ceiling is None else found.bound.limiter,
        waves=found.problem.waves.waves,
        efficiency=found.problem.waves.efficiency,
    )


def _types(specs: Sequence[Spec], against: Sequence[str]) -> Types:
    """The types that all specs have. Raises RequestError where they differ, or a rival doesn't multiply them."""
    found = {
        each.name: Types(each.operands.a.dtype, each.operands.b.dtype, each.operands.c.dtype, each.operands.accumulate)
        for each in specs
    }
    (first, types), *others = found.items()
    for name, other in others:
        if other != types:
            raise RequestError(
                "the specs of a bench multiply the same types, since every side has the same operands",
                got=f"{first}: {types}; {name}: {other}", fix=f"measure {name} by itself",
            )  # fmt: skip
    for rival in against:
        if types not in RIVAL_TYPES[rival]:
            raise RequestError(
                f"{rival} multiplies the types of the specs",
                got=str(types), allowed="; ".join(map(str, RIVAL_TYPES[rival])), fix="pass --against none",
            )  # fmt: skip
    if "torch" in against and not any(spec.epilogue for spec in specs):
        raise RequestError(
            "the rival torch does a spec's epilogue after its product",
            got="specs without one", allowed="cublas, triton", fix="take cublas, which is torch.mm",
        )  # fmt: skip
    return types


def _measured(
    case: Case, types: Types, sides: Sequence[Side], lab: Lab, repeats: int, watch: Watch
) -> tuple[tuple[Row, ...], Conditions, KeyboardInterrupt | None]:
    """Check every side, then time those that are right. An interruption keeps the whole rounds before it."""
    shape, modes = case
    share, what = _seconds(shape, sides), f"{'x'.join(map(str, shape))} {modes}"
    operands = lab.operands(shape, modes, types)
    checked = {}
    for side in sides:
        watch.step(f"{what}: checking {side.name}", share / len(sides))
        checked[side.name] = _checked(side, operands, lab, allowed_error(shape[2], types) + side.slack)
    calls: dict[str, Call] = {
        side.name: partial(side.operation, *operands) for side in sides if checked[side.name].failure is None
    }
    watch.step(f"{what}: warming up", 0)
    warm_up(calls, lab)
    taken: list[dict[str, float]] = []
    interrupt, began = None, lab.seconds()
    try:
        for each in rounds(calls, lab, repeats):
            taken.append(each)
            watch.step(f"{what}: round {len(taken)} of {repeats}", share)
    except KeyboardInterrupt as error:
        if not taken:
            raise
        interrupt = error
    conditions = lab.conditions(shape, modes, began)
    times = {name: tuple(each[name] for each in taken) for name in calls}
    return tuple(_row(side, checked[side.name], case, times) for side in sides), conditions, interrupt


@dataclass(frozen=True, slots=True)
class Checked:
    """How far a side is from float64 (None: not finite, or it did not run), how far it may be, and why it failed."""

    error: float | None
    allowed: float
    failure: str | None


def _checked(side: Side, operands: tuple[object, object, object], lab: Lab, allowed: float) -> Checked:
    try:
        error = lab.error(side.name, side.operation, operands)
    except (BuildError, OperandError) as refused:
        return Checked(None, allowed, f"it does not run: {refused}")
    if error <= allowed:
        return Checked(error, allowed, None)
    finite = math.isfinite(error)
    said = f"off by {error:.1e} of |a| |b|" if finite else "not finite"
    return Checked(error if finite else None, allowed, f"{WRONG}{said}; at most {allowed:.1e} is rounding")


def _row(side: Side, checked: Checked, case: Case, times: Mapping[str, tuple[float, ...]]) -> Row:
    mine = times.get(side.name, ())
    ratios = {}
    for rival in RIVALS:
        if side.kernels and mine and rival in times and (ratio := compare(mine, times[rival])):
            ratios[rival] = ratio
    return Row(
        side.name, "spec" if side.kernels else "rival", *case, mine, checked.error, checked.allowed, checked.failure,
        side.kernels.get(case), ratios,
    )  # fmt: skip
