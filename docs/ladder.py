"""Write docs/ladder.md from docs/ladder.md.j2, the specs, their facts, and what was measured of them.

    python docs/pictures.py && python -m docs.ladder

The template has the words; every figure in them, every line of YAML and every table comes from here. A test holds the
page to what this writes. Without a measurement (benchmarks/results/ladder-h200.json, made by `layoutgen bench`) the
page says so in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, cached_property
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from docs.ladder_sources import ORIGINALS, Original, originals, searched
from docs.pictures import DOCS, MEASURED, MODES, RUNGS, SHAPE
from layoutgen import paths, spec
from layoutgen.bench import Result, Row, read
from layoutgen.facts import AccessFacts, Facts, facts, occupancy
from layoutgen.hw.devices import DEVICES
from layoutgen.plan import Plan, plan
from layoutgen.plan.model import Barrier, SharedOperand
from layoutgen.problem import dense
from layoutgen.run import choose

PAGE = DOCS / "ladder.md"
DEVICE = DEVICES["h200"]
NAMES = tuple(RUNGS)  # lowest first
NOT_YET = "not measured yet"


@dataclass(frozen=True)
class Cost:
    """An access as a reader counts it: each request of a warp."""

    of: AccessFacts

    @property
    def wavefronts(self) -> float:
        return self.of.wavefronts / self.of.requests

    @property
    def free(self) -> float:
        """Wavefronts without bank conflicts."""
        return self.of.conflict_free / self.of.requests

    @property
    def sectors(self) -> float:
        return self.of.sectors / self.of.requests

    @property
    def least(self) -> float:
        """The fewest sectors that hold what is asked for."""
        return self.of.ideal_sectors / self.of.requests


@dataclass(frozen=True)
class Rung:
    """A spec, the plan that takes the problem, its facts before it is built; and what was measured, if it was."""

    name: str
    text: str
    facts: Facts
    before: str | None
    row: Row | None = None
    original: Original | None = None

    @property
    def plan(self) -> Plan:
        return self.facts.plan

    @property
    def label(self) -> str:
        """How tables and sentences name it: rung 3, or the spec."""
        number = re.match(r"ladder_(\d+)", self.name)
        return f"rung {int(number[1])}" if number else f"`{self.name}`"

    @cached_property
    def costs(self) -> dict[str, Cost]:
        return {each.name: Cost(each) for each in self.facts.accesses}

    def cost(self, access: str) -> Cost:
        return self.costs[access]

    @property
    def clocks(self) -> dict[str, float]:
        return self.facts.bound.clocks

    @property
    def sectors(self) -> float:
        """32-byte sectors of global memory that a block moves for each k."""
        return sum(each.sectors for each in self.facts.accesses if each.per == "k-tile") / self.plan.tile.block[2]

    @property
    def barriers(self) -> float:
        """Barriers for each k."""
        return sum(isinstance(step, Barrier) for step in self.plan.program.steady) / self.plan.tile.block[2]

    def loads(self) -> float:
        """Loads of shared memory of a thread for each of its FFMAs."""
        requests = sum(each.requests for each in self.facts.accesses if each.opcode == "ld.shared")
        return requests * 32 / (self.facts.bound.flop / 2)

    @property
    def order(self) -> str:
        """The order of its FFMAs, as its spec writes it."""
        return str(spec.loads(self.text).tiling.order)

    @property
    def registers(self) -> int | None:
        """Of a thread, as it was compiled for the measurement; None without one."""
        return self.row.kernel.registers if self.row and self.row.kernel else None

    @property
    def blocks(self) -> int:
        """Blocks that a multiprocessor has room for: as compiled, if it was measured, else with as few registers as can
        be."""
        return occupancy(self.plan, self.registers or self.facts.registers.minimum, DEVICE).blocks

    @property
    def warps(self) -> int:
        """Warps that a multiprocessor has room for."""
        return self.blocks * self.facts.threads // 32

    @property
    def tflops(self) -> float | None:
        return self.row.tflops if self.row else None

    @property
    def ratio(self) -> float | None:
        """Measured speed over its original's."""
        return self.tflops / self.original.tflops if self.tflops and self.original else None

    @property
    def change(self) -> str:
        """The lines of the spec that differ from those of the rung before, under the keys that they belong to."""
        if self.before is None:
            return f"```yaml\n{_body(self.text)}\n```"
        return f"```diff\n{_difference(_body(self.before), _body(self.text))}\n```"

    @property
    def table(self) -> str:
        """What check counts: one line for each access."""
        lines = [
            "| access | instruction | requests | wavefronts each | without conflicts | sectors each | at best |",
            "|---|---|--:|--:|--:|--:|--:|",
        ]
        for name, each in self.costs.items():
            shared, moved = each.of.wavefronts > 0, each.of.sectors > 0
            cells = (
                name, f"{each.of.opcode}, {each.of.bytes} B", f"{each.of.requests} a {each.of.per}",
                _marked(each.wavefronts, each.free) if shared else "", figure(each.free) if shared else "",
                _marked(each.sectors, each.least) if moved else "", figure(each.least) if moved else "",
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)

    @property
    def verdict(self) -> str:
        """Ceiling and speed in a line."""
        low, high = self.facts.registers.minimum, self.facts.registers.cap
        room = f"{self.blocks} block{'s' * (self.blocks > 1)} of {self.facts.threads}"
        said = (
            f"{room} threads on a multiprocessor, {self.registers or f'{low} to {high}'} registers each. Ceiling "
            f"**{figure(self.facts.ceiling)} TFLOP/s**, set by {self.facts.bound.limiter}; "
        )
        if self.row is not None and self.row.failure is not None:
            return f"{said}when measured it failed: {self.row.failure}."
        if self.tflops is None:
            return f"{said}{NOT_YET}."
        said += f"measured **{figure(self.tflops)}**"
        if self.original is None or self.ratio is None:
            return f"{said}."
        return f"{said}, {figure(self.ratio)} of {self.original.kernel} ({figure(self.original.tflops)})."


def figure(value: float | None) -> str:
    """Three digits, or all of a whole number.

    >>> figure(0.5), figure(66.94), figure(1204.0), figure(None)
    ('0.5', '66.9', '1,204', '')
    """
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


def percent(part: float) -> str:
    """
    >>> percent(0.0303)
    '3%'
    """
    return f"{part:.0%}"


def _marked(value: float, best: float) -> str:
    """Bold where it is more than need be."""
    return f"**{figure(value)}**" if value > best else figure(value)


def beside(rung: Rung, other: Rung) -> str:
    """How the speeds of two rungs compare, and those of their originals: sentences, or nothing where none is known."""
    said = ""
    if rung.tflops and other.tflops:
        said = f"As measured, {rung.label} has {figure(rung.tflops / other.tflops)} times the speed of {other.label}."
    if rung.original and other.original:
        ratio = rung.original.tflops / other.original.tflops
        said += f" {rung.original.kernel} has {figure(ratio)} times the speed of {other.original.kernel}."
    return said.strip()


def _body(text: str) -> str:
    """A spec without the comment before it, its name and what it is about."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("arch:"))
    return "\n".join(lines[first:])


def _bare(line: str) -> str:
    return line.split(" #")[0].rstrip()


def _difference(before: str, after: str) -> str:
    """The lines that differ but for their comments, under the top keys that they belong to."""
    old, new = _sections(before), _sections(after)
    shown: list[str] = []
    for key in dict.fromkeys([*new, *old]):
        a, b = old.get(key, []), new.get(key, [])
        matcher = SequenceMatcher(None, [_bare(line) for line in a], [_bare(line) for line in b], autojunk=False)
        lines = [
            *(each for tag, a0, a1, b0, b1 in matcher.get_opcodes() if tag != "equal"
              for each in (*(f"-{_bare(line)}" for line in a[a0:a1]), *(f"+{line}" for line in b[b0:b1]))),
        ]  # fmt: skip
        if lines and not any(line[1:].startswith(key) for line in lines):
            shown.append(f" {key}")
        shown += lines
    return "\n".join(shown)


def _sections(text: str) -> dict[str, list[str]]:
    """Top key -> its lines, in order."""
    found: dict[str, list[str]] = {}
    for line in filter(_bare, text.splitlines()):
        if not line.startswith(" "):
            key = line.split(":")[0] + ":"
        found.setdefault(key, []).append(line)
    return found


@cache
def _rung(name: str) -> tuple[str, Facts]:
    """A spec's text, and the facts of the plan that takes the problem."""
    problem = dense(*SHAPE, MODES)
    text = paths.find_spec(name).read_text()
    return text, facts(choose(plan(spec.loads(text)), problem), DEVICE, problem)


def rungs(result: Result | None, originals: dict[str, Original]) -> list[Rung]:
    """Every rung, lowest first."""
    measured = {row.name: row for row in result.at(SHAPE, MODES)} if result else {}
    found: list[Rung] = []
    for name in NAMES:
        text, about = _rung(name)
        before = found[-1].text if found else None
        found.append(Rung(name, text, about, before, measured.get(name), originals.get(name)))
    return found


def overview(every: Sequence[Rung], rivals: Iterable[Row]) -> str:
    """The ladder in a table, as far as it was measured."""
    measured, known = any(each.row for each in every), any(each.original for each in every)
    head = ["rung", "ceiling, TFLOP/s", "set by", *(["measured"] if measured else [])]
    head += ["original"] if known else []
    head += ["ratio"] if measured and known else []
    body = []
    for each in every:
        cells = {
            "rung": f"[{each.name}](#{each.name})", "ceiling, TFLOP/s": figure(each.facts.ceiling),
            "set by": each.facts.bound.limiter,
            "measured": figure(each.tflops) if each.tflops else "failed" if each.row else NOT_YET,
            "original": f"{each.original.kernel}: {figure(each.original.tflops)}" if each.original else "",
            "ratio": figure(each.ratio),
        }  # fmt: skip
        body.append([cells[name] for name in head])
    body += [[row.name if name == "rung" else figure(row.tflops) if name == "measured" else "" for name in head]
             for row in rivals if row.tflops]  # fmt: skip
    return _table(head, ["---" if name in ("rung", "set by") else "--:" for name in head], body)


def _table(head: Sequence[str], rule: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *body))


def clock_table(every: Iterable[Rung]) -> str:
    """The busy clocks of each resource for every 100 clocks of FFMAs, the slowest in bold."""
    names = ("issue slots", "shared memory", "L1", "global memory")
    lines = [
        f"| rung | {' | '.join(names)} | FLOP a byte: block | warp | thread | warps |",
        f"|---|{'--:|' * (len(names) + 4)}",
    ]
    for each in every:
        compute, top = each.clocks["compute"], max(each.clocks.values())
        cells = [
            f"**{100 * each.clocks[name] / compute:.0f}**" if each.clocks[name] == top else
            f"{100 * each.clocks[name] / compute:.0f}"
            for name in names
        ]  # fmt: skip
        of = each.facts.intensity
        cells += [figure(of.block), figure(of.warp), figure(of.thread), str(each.warps)]
        lines.append(f"| {each.label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def by_cp_async(rung: Rung) -> dict[str, Cost]:
    """What the copies of a spec would cost through cp.async."""
    told = re.sub(r"atom: ldg\.sts", "atom: cp.async", rung.text)
    told = re.sub(r"\n *spread: [^\n]*", "", told)
    assert told.count("cp.async") == 2
    (first, *_) = plan(spec.loads(told))
    return {each.name: Cost(each) for each in facts(first, DEVICE).accesses}


def patch(operand: SharedOperand) -> tuple[int, int]:
    """The (x, k) elements of a thread that it turns in registers."""
    copy = operand.copy
    return copy.element_x.size, copy.element_k.size


def rows(rung: Rung, lanes: int) -> int:
    """Rows of A in global memory that the first so many lanes read at once."""
    return len({rung.plan.a.copy.thread_x(lane) for lane in range(lanes)})


def others(rung: Rung) -> float:
    """The part of a turn's instructions that are no FFMAs: as compiled, if it was measured, else by the plan."""
    loop = rung.row.kernel.loop if rung.row and rung.row.kernel else None
    if loop is not None:
        return 1 - loop.ffma / loop.instructions
    return 1 - rung.clocks["compute"] / rung.clocks["issue slots"]


def page(measured: Path = MEASURED, peers: Path = ORIGINALS) -> str:
    """The chapter."""
    result = read(measured) if measured.is_file() else None
    known, method = originals(peers)
    every = rungs(result, known)
    rivals = [row for row in result.at(SHAPE, MODES) if row.kind == "rival"] if result else []
    conditions = [each for each in result.conditions if (each.shape, each.modes) == (SHAPE, MODES)] if result else []
    environment = Environment(
        loader=FileSystemLoader(DOCS), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    environment.filters.update(figure=figure, percent=percent)
    whole, last = every[-2:]
    text = environment.get_template("ladder.md.j2").render(
        rungs={each.name: each for each in every},
        every=every,
        result=result,
        # Specs of one folder, as they are typed.
        script=re.sub(r"(specs/(?:ladder/)?)\w+\.yaml (?:\1\w+\.yaml )+", r"\1*.yaml ", result.script)
        if result
        else None,
        conditions=conditions,
        cublas=next((row for row in rivals if row.name == "cublas"), None),
        originals=method,
        overview=overview(every, rivals),
        clock_table=clock_table(every),
        beside=beside,
        by_cp_async=by_cp_async(whole),
        patch=patch(whole.plan.in_shared("a")),
        rows=rows,
        others=others(last),
        order=searched(whole.name, whole.order),
        device=DEVICE,
        shape=SHAPE,
    )
    text = re.sub(r" +$", "", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"  # sentences that have nothing to say leave gaps


if __name__ == "__main__":
    PAGE.write_text(page())
