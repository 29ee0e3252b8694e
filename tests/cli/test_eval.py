"""`layoutgen eval`: a value, its derivation, its grid, and a caret under what is wrong."""

from __future__ import annotations

from collections.abc import Callable

from tests.cli.conftest import Outcome

Cli = Callable[..., Outcome]


def test_an_expression_prints_its_value(cli: Cli) -> None:
    done = cli("eval", "composition((8,4):(4,1), 4:2)")
    assert (done.code, done.stdout, done.stderr) == (0, "4:8\n", "")


def test_explain_ends_with_the_value_and_table_shows_offsets(cli: Cli) -> None:
    steps = cli("eval", "composition((8,4):(4,1), 4:2)", "--explain").stdout.splitlines()
    assert len(steps) > 2 and steps[-1] == "4:8"
    grid = cli("eval", "(2,3):(3,1)", "--table").stdout
    assert all(row in " ".join(grid.split()) for row in ("0 1 2", "3 4 5"))


def test_a_wrong_expression_gets_a_caret(cli: Cli) -> None:
    done = cli("eval", "composition((8,4):(4,1), 4:)")
    assert done.code == 1 and done.stdout == ""
    assert "^" in done.stderr
