"""How the command line prints: tables, findings with places that can be clicked, and JSON. Reads reports alone."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import typer
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from layoutgen.check import IllegalSpecError, Report
from layoutgen.check.rules import BASE, Rule, said
from layoutgen.diff import Change, Difference
from layoutgen.errors import LayoutgenError, SpecError
from layoutgen.explain import Explanation
from layoutgen.hw.devices import Device
from layoutgen.report import BuildReport, Shipped

T = TypeVar("T")
Outcome = tuple[str, T | None, LayoutgenError | None]  # the spec as it was named, what came of it, what went wrong


def console(*, stderr: bool = False) -> Console:
    """Plain where NO_COLOR is set or nobody looks; in a file as wide as it takes, so that nothing is cut or folded."""
    plain: dict[str, Any] = {"color_system": None} if os.environ.get("NO_COLOR") else {}
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False, **plain)
    if not made.is_terminal:
        made.width = 1000
    return made


def print_table(table: Table, *, whole: bool = False) -> None:
    """Prints a table as wide as the terminal, or as its numbers need; `whole`: as all of its cells do, unfolded."""
    out = console()
    needs = Measurement.get(out, out.options.update(width=1000), table)
    out.width = max(out.width, needs.maximum if whole else needs.minimum)
    with out.capture() as captured:
        out.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    typer.echo("\n".join(lines).strip("\n") + "\n")


def print_findings(texts: Sequence[str], *, stderr: bool = False) -> None:
    """Prints each text once, its places and labels picked out, and never wraps: an editor must find file:line."""
    out = console(stderr=stderr)
    for text in dict.fromkeys(texts):
        shown = Text(text)
        shown.highlight_regex(r"(?m)^\S+?:\d+(?=:)", "bold")
        shown.highlight_regex(r"(?m)\berror(?= \[)", "bold red")
        shown.highlight_regex(r"(?m)\bwarning(?= \[)", "bold yellow")
        shown.highlight_regex(r"(?m)\bhint(?= \[)", "bold cyan")
        shown.highlight_regex(r"(?m)^  (got|allowed|fix):", "dim")
        out.print(shown, soft_wrap=True)


def print_errors(errors: Sequence[LayoutgenError | None]) -> None:
    print_findings([str(error) for error in errors if error], stderr=True)


def print_rules(rules: Sequence[Rule]) -> None:
    """A paragraph a rule: who says it, what and why, and what its example gives."""
    out = console()
    stages = {"read": "when it is read", "check": "by check", "build": "by build"}
    for number, rule in enumerate(rules):
        lines = [
            f"{rule.severity}, found {stages[rule.stage]}",
            *textwrap.wrap(rule.says, 110),
            *textwrap.wrap(rule.why, 110),
        ]
        lines.append(f"example: {BASE} with {rule.example}")
        lines += [f"  {line}" for line in (said(rule) or "").splitlines()]
        out.print(Text(f"\n{rule.id}" if number else rule.id, "bold"), soft_wrap=True)
        out.print(Text("\n".join(f"  {line}" for line in lines)), soft_wrap=True)


def print_explanation(told: Explanation, *, derive: bool = False) -> None:
    """Titles stand out; nothing is wrapped further, for its lines are."""
    out = console()
    before = "first"
    for line in told.lines(derive=derive):
        out.print(Text(line, "" if before else "bold"), soft_wrap=True)
        before = line


def print_difference(found: Difference, a: str, b: str) -> None:
    """What differs: the lines of the specs as diff shows them, then layouts and facts side by side."""
    out = console()
    verdict = "the same tiling" if found.same else "different tilings"
    out.print(f"- {a}\n+ {b}\n{verdict}", soft_wrap=True)
    if found.spec:
        out.print(Text("\nspec", "bold"))
        for line, style in _spec_lines(found.spec):
            out.print(Text(line, style), soft_wrap=True)
    for side, composes in zip((a, b), found.composes, strict=True):
        if not composes:
            out.print(f"\nThe levels of {side} do not compose, so that no layouts are compared.", soft_wrap=True)
    if found.plan:
        out.print()
        print_table(_change_table("layouts and program", found.plan))
    if found.variants:
        out.print(f"  variants that differ: {', '.join(found.variants)}", soft_wrap=True)
    if found.facts:
        out.print()
        print_table(_change_table("facts", found.facts))


def _spec_lines(changes: Sequence[Change]) -> Iterator[tuple[str, str]]:
    """Each key's lines, - of A and + of B, with their style; the places flush, so that they can be read down."""
    lines = []
    for each in changes:
        for sign, value, where, style in (("-", each.a, each.where_a, "red"), ("+", each.b, each.where_b, "green")):
            if value is not None:
                lines.append((f"{sign} {each.what}: {value}", where, style))
    width = max(len(text) for text, *_ in lines) + 2
    yield from ((f"  {text:<{width}}{where}", style) for text, where, style in lines)


def _change_table(title: str, changes: Sequence[Change]) -> Table:
    table = plain_table(title, "-", "+")
    level = ""
    for each in changes:
        if each.level != level:
            level = each.level
            table.add_row(Text(level, "bold"))
        indent = "  " if level else ""
        table.add_row(f"{indent}{each.what}", *(value if value is not None else "" for value in (each.a, each.b)))
    return table


def check_tables(outcomes: Sequence[Outcome[Report]]) -> Iterator[Table]:
    """A table for each device that specs were judged for, with those that are none in the first."""
    devices = list(dict.fromkeys(report.device for _, report, _ in outcomes if report)) or [""]
    for device in devices:
        yield _check_table(device, [each for each in outcomes if (each[1].device if each[1] else devices[0]) == device])


def _check_table(device: str, outcomes: Sequence[Outcome[Report]]) -> Table:
    """One row per spec; registers are the least a thread needs and the most it may have."""
    table = plain_table(
        "spec",
        f"on {device}",
        ">threads",
        ">regis-\nters",
        ">shared\nbytes",
        ">con-\nflicts",
        ">ceiling\nTFLOP/s",
    )
    for source, report, _ in outcomes:
        if report is None:
            table.add_row(source, Text("no spec", "bold red"), *"-----")
        elif report.facts is None:
            table.add_row(report.name, _verdict(report.legal), *"-----")
        else:
            found = report.facts
            table.add_row(
                report.name, _verdict(report.legal), str(found.threads),
                f"{found.registers.minimum}..{found.registers.cap}", f"{found.shared.bytes:,}",
                "-" if found.conflicts is None else str(found.conflicts),
                "-" if found.ceiling is None else f"{found.ceiling:.1f}",
            )  # fmt: skip
    return table


def compiled_table(reports: Sequence[BuildReport]) -> Table:
    """One row per variant: what a thread and a block take, and the size of the code."""
    table = plain_table(
        "spec",
        "variant",
        ">regis-\nters",
        ">shared\nbytes",
        ">spilled\nbytes",
        ">FFMA\nshare",
        ">cubin\nKiB",
        ">built",
    )
    for report in reports:
        for each in report.variants:
            table.add_row(
                report.name if each is report.variants[0] else "", each.variant,
                str(each.registers), f"{each.shared_bytes:,}", f"{each.spill_bytes:,}",
                f"{each.loop.ffma / each.loop.instructions:.0%}" if each.loop else "-",
                f"{each.cubin_bytes / 1024:.0f}",
                "cached" if each.cached else f"{each.seconds:.1f} s",
            )  # fmt: skip
    return table


def ran_table(reports: Sequence[BuildReport]) -> Table:
    """One row per spec: for what it was built, where it ran and how; speeds in TFLOP/s only where a GPU was timed."""
    timed = any(report.smoke and report.smoke.tflops for report in reports)
    table = plain_table(
        "spec", f"on {reports[0].check.device}", "built for", "runs on", ">largest\nerror",
        *((">TFLOP/s", ">torch.mm\nTFLOP/s") if timed else ()),
    )  # fmt: skip
    for report in reports:
        ran = report.smoke
        row: list[str | Text] = [report.name, _verdict(report.check.legal), report.arch, "not here", "-"]
        if ran is not None:
            row[3:] = [ran.where, f"{ran.max_error:.1e}"]
            row += [f"{speed:.1f}" for speed in (ran.tflops, ran.torch_tflops) if speed]
        table.add_row(*row)
    return table


def list_table(specs: Sequence[Shipped]) -> Table:
    """One row per spec; where they are judged for several devices, a verdict tells its own."""
    devices = Counter(each.device for each in specs)
    (usual, _), *_ = devices.most_common(1)
    table = plain_table("spec", f"on {usual}", "about")
    for each in specs:
        elsewhere = f" on {each.device}" if each.device != usual else ""
        table.add_row(each.name, _verdict(each.legal) + elsewhere, each.about)
    return table


def devices_table(devices: Sequence[Device]) -> Table:
    """One row per device: its peaks, and what one SM, block and thread may have."""
    table = plain_table(
        "device", "arch", ">SMs", ">MHz", ">FP32\nTFLOP/s", ">memory\nGB/s", ">ridge\nFLOP/B", ">L2\nMB", ">warp",
        ">threads\nper SM", ">blocks\nper SM", ">shared KB\nper block", ">registers\nper SM", ">per\nthread",
    )  # fmt: skip
    for each in devices:
        table.add_row(
            each.name, each.arch, str(each.sms), str(each.boost_mhz), f"{each.fp32_tflops:g}", f"{each.memory_gbs:g}",
            f"{each.ridge:.1f}", f"{each.l2_mb:g}", str(each.warp_size), str(each.max_threads_per_sm),
            str(each.max_blocks_per_sm), f"{each.shared_per_block / 1024:g}", str(each.registers_per_sm),
            str(each.registers_per_thread),
        )  # fmt: skip
    return table


def entry(outcome: Outcome[Report] | Outcome[BuildReport] | Outcome[Explanation]) -> dict[str, Any]:
    """One element of --json: the spec as it was named, its report, and the errors that kept it from having one."""
    source, report, error = outcome
    if report is None and isinstance(error, IllegalSpecError):
        report, error = error.report, None
    if report is not None:
        return {"spec": source, **report.to_json(), "errors": []}
    errors = error.errors if isinstance(error, SpecError) else (error,)
    return {"spec": source, "legal": None, "errors": [_error(each) for each in errors if each]}


def _error(error: LayoutgenError) -> dict[str, Any]:
    where = None if error.where is None else str(error.where)
    said = {"rule": error.rule, "got": error.got, "allowed": error.allowed, "fix": error.fix}
    return {"kind": type(error).__name__, **said, "where": where}


def plain_table(*columns: str) -> Table:
    """A table of these columns; those marked > are numbers, flush right and never folded."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", collapse_padding=True)
    lines = max(column.count("\n") for column in columns)
    for column in columns:
        header = "\n" * (lines - column.count("\n")) + column.removeprefix(">")
        number = column.startswith(">")
        table.add_column(Text(header), justify="right" if number else "left", overflow="fold", no_wrap=number)
    return table


def _verdict(legal: bool) -> Text:
    return Text("legal", "green") if legal else Text("illegal", "bold red")
