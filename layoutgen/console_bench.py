"""How the command line prints measurements: a table for each case, its conditions, and what failed."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.table import Table
from rich.text import Text

from layoutgen.bench import Conditions, Ratio, Row
from layoutgen.console import plain_table, print_findings, print_table


def print_case(rows: Sequence[Row], conditions: Conditions) -> None:
    """The table of one shape and pair of modes, the GPU's clocks below it, and why sides failed."""
    m, n, k = conditions.shape
    rounds = max((len(row.samples_ms) for row in rows), default=0)
    typer.echo(f"{m} x {n} x {k}, a:{conditions.modes[0]} b:{conditions.modes[1]}, {rounds} rounds")
    print_table(case_table(rows), whole=True)
    typer.echo(f"  {conditions}")
    print_findings([f"{row.name}: {row.failure}" for row in rows if row.failure])
    typer.echo()


def case_table(rows: Sequence[Row]) -> Table:
    """One row a side; a ratio is its speed over a rival's, with the 95% interval; "no difference" where that holds 1.

    The spread is the interquartile range of the times, in per cent of their median.
    """
    rivals = list(dict.fromkeys(rival for row in rows for rival in row.ratios))
    table = plain_table(
        "", "variant", ">regis-\nters", ">largest\nerror", ">ms", ">spread", ">TFLOP/s", ">ceiling",
        *(f">beside {rival}" for rival in rivals),
    )  # fmt: skip
    for row in rows:
        made = row.kernel
        spilled = f" +{made.spill_bytes} B" if made and made.spill_bytes else ""
        table.add_row(
            row.name,
            made.variant if made else "",
            f"{made.registers}{spilled}" if made else "",
            "-" if row.max_error is None else f"{row.max_error:.1e}",
            *_times(row),
            f"{made.ceiling_tflops:.1f}" if made and made.ceiling_tflops else "",
            *(ratio_text(row.ratios.get(rival)) for rival in rivals),
        )
    return table


def _times(row: Row) -> tuple[str | Text, ...]:
    if row.median_ms is None or row.iqr_ms is None or row.tflops is None:
        return "-", "-", Text("wrong" if row.wrong else "failed", "bold red")
    return f"{row.median_ms:.4g}", f"{row.iqr_ms / row.median_ms:.1%}", f"{row.tflops:.1f}"


def ratio_text(ratio: Ratio | None) -> str:
    """
    >>> ratio_text(Ratio(1.0312, 1.0283, 1.0338)), ratio_text(Ratio(None, 0.9911, 1.0042)), ratio_text(None)
    ('1.031 (1.028..1.034)', 'no difference (0.991..1.004)', '')
    """
    if ratio is None:
        return ""
    between = f"({ratio.low:.3f}..{ratio.high:.3f})"
    return f"{ratio.ratio:.3f} {between}" if ratio.ratio is not None else f"no difference {between}"
