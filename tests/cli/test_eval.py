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
    assert len(steps) > 2 and steps[-1] == "  = 4:8" and "4:8" not in steps
    grid = cli("eval", "(2,3):(3,1)", "--table").stdout
    assert all(row in " ".join(grid.split()) for row in ("0 1 2", "3 4 5"))


def test_a_wrong_expression_gets_a_caret(cli: Cli) -> None:
    done = cli("eval", "composition((8,4):(4,1), 4:)")
    assert done.code == 1 and done.stdout == ""
    assert "^" in done.stderr


def test_explain_shows_the_steps_up_to_a_refusal_and_then_the_same_error(cli: Cli) -> None:
    expression = "composition((8,4):(1,16), (2,4):(1,5))"
    plain, explained = cli("eval", expression), cli("eval", expression, "--explain")
    assert plain.code == explained.code == 1
    assert plain.stdout == "" and plain.stderr == explained.stderr and "^" in plain.stderr
    head, first, value, second, refused, *_ = explained.stdout.splitlines()
    assert head == expression and value.strip() == "2:1"
    assert first.startswith("  1. mode 2:1") and second.startswith("  2. mode 4:5")
    assert refused.strip().startswith("refused: composition: a mode of B")
