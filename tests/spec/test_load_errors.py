"""What loading refuses beyond tests/bad/load: missing files, bombs, several errors at once, and any noise at all."""

from __future__ import annotations

import os
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutgen.errors import SpecError, Where
from layoutgen.spec import load, loads
from layoutgen.yamltext import MAX_BYTES
from tests.spec.test_spec import GOOD


def refused(text: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        loads(text)
    return caught.value


def rules(text: str) -> list[str]:
    return [error.rule for error in refused(text).errors]


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path / "none.yaml")
    assert caught.value.where == Where(str(tmp_path / "none.yaml"))
    assert (caught.value.rule, caught.value.got) == ("the spec must exist", "no such file")


def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path)
    assert (caught.value.rule, caught.value.got) == ("a spec is a file", "a directory")


def test_a_path_through_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpecError, match="must be readable"):
        load(tmp_path / "file" / "x.yaml")


def test_the_stem_is_the_name(tmp_path: Path) -> None:
    (tmp_path / "2small.yaml").write_text(GOOD)
    with pytest.raises(SpecError) as caught:
        load(tmp_path / "2small.yaml")
    assert caught.value.fix == "rename the file to small.yaml"  # 2small itself can't be a name
    assert loads(GOOD, "other.yaml").name == "small"  # text has no stem


def test_a_large_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(GOOD)
    os.truncate(path, 1 << 40)  # sparse: a terabyte that takes no room
    tracemalloc.start()
    with pytest.raises(SpecError, match="a spec is small"):
        load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * MAX_BYTES
    path.write_bytes(b"#" + "é".encode() * MAX_BYTES)  # the limit may cut a character in two
    with pytest.raises(SpecError, match="a spec is small"):
        load(path)
    path.write_bytes("é".encode() * MAX_BYTES)
    with pytest.raises(SpecError, match="a spec is small"):
        load(path)


def test_the_size_limit_is_exact() -> None:
    padded = GOOD + "#" * (MAX_BYTES - len(GOOD))
    assert loads(padded) == loads(GOOD)
    assert refused(padded + "#").rule == "a spec is small"
    assert refused(GOOD + "#" + "é" * (MAX_BYTES // 2)).rule == "a spec is small"  # bytes, not characters


def test_a_file_with_a_byte_order_mark_or_other_line_ends_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert load(path) == loads(GOOD)
    assert load(path).where("tiling.lanes").line == 12


def test_nothing_grows_or_runs(tmp_path: Path) -> None:
    """The classical bombs: the worst that the size limit lets in is refused in little time and runs nothing."""
    ran = tmp_path / "ran"
    for tag in (
        f"!!python/object/apply:os.mkdir ['{ran}']",
        f"!!python/object/apply:os.mkdir\n  - {ran}",
        "!!python/none x",
    ):
        assert refused(GOOD.replace("a spec for tests", tag)).rule.startswith("a spec has no tags")
    levels = "".join(f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 9) if i else 'lol'}]\n" for i in range(40))
    start = time.process_time()
    assert "a spec has no anchors or aliases" in str(refused(GOOD + levels))
    assert refused("[" * (MAX_BYTES // 2)).rule == "a spec is shallow"
    assert refused("a: " + "{a: " * 1000).rule == "a spec is shallow"
    assert time.process_time() - start < 5
    assert not ran.exists()


def test_an_anchor_or_a_tag_on_a_key_or_a_merge_key() -> None:
    for text in ("&x stages: 2", "!!str stages: 2", "? *x\n: 2"):
        assert refused(f"{text}\n{GOOD}").rule.startswith("a spec has no ")
    assert any(error.rule == "<< is not a key of a spec" for error in refused(f"<<: {{a: b}}\n{GOOD}").errors)


def test_every_error_is_reported_in_the_order_of_its_line() -> None:
    text = (
        GOOD.replace("sm_80", "sm_8")
        .replace("contiguous: k", "contiguous: x")
        .replace("[64, 64, 16]", "[64, 64]")
        .replace("(2,2):(2,1)", "~")
        .replace("(8,4):(4,1)", "(8,4:(4,1)")
        .replace("stages: 2", "stagse: 2")
    )
    error = refused(text)
    assert [found.where.line for found in error.errors if found.where] == [3, 5, 10, 11, 12, 14, 14]
    assert {found.rule.split()[0] for found in error.errors} == {
        "arch",
        "operands.a.contiguous",
        "tiling.block",
        "tiling.warps",
        "tiling.lanes",
        "shared.stages",
        "shared.stagse",
    }
    assert str(error) == "\n".join(map(str, error.errors))
    assert (error.rule, error.where) == (error.errors[0].rule, error.errors[0].where)


def test_a_single_error_is_its_own_list() -> None:
    error = SpecError("one rule", got=1)
    assert error.errors == (error,)
    assert str(error) == "one rule\n  got: 1"


def test_a_value_that_yaml_refused_is_not_reported_twice() -> None:
    assert rules(GOOD.replace("(8,4):(4,1)", "~")) == ["tiling.lanes needs a value"]
    assert rules(GOOD.replace("[8, 4]", "[8, ~]")) == ["tiling.values.1 needs a value"]
    assert rules(GOOD + "lanes: ~") == ["lanes needs a value", "lanes is not a key of a spec"]  # two things to mend


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ("lanes:", "LANES:", "did you mean `lanes`?"),
        ("tiling:", "tilings:", "did you mean `tiling`?"),
        ("shared: {stages: 2}", "shared: {stages: 2, group: 3}", "move it under `schedule`"),
        ("shared: {stages: 2}", "shared: {stages: 2}\ncontiguous: k", "move it under `operands.a`"),
        ("shared: {stages: 2}", "shared: {stages: 2}\nxyzzy: k", "remove it"),
        ("(8,4):(4,1)", "(8,4) : (4,1)", "write a layout without spaces around its colon, or put it in quotes"),
    ],
)
def test_the_fix_names_the_edit(old: str, new: str, fix: str) -> None:
    assert fix in [error.fix for error in refused(GOOD.replace(old, new)).errors]


def test_a_layout_error_names_the_column() -> None:
    (error,) = refused(GOOD.replace("(8,4):(4,1)", "(8,4):(4;1)")).errors
    assert error.got == "'(8,4):(4;1)': ';' at column 9"
    assert error.where is not None and error.where.line == 12


@given(st.text(max_size=80))
def test_any_text_is_refused_with_a_spec_error(text: str) -> None:
    assert refused(text).rule


@given(
    st.integers(0, len(GOOD) - 1),
    st.integers(0, 8),
    st.text("()<>[]{}:,-?!&*#|>@%`'\"~\\ \t\n\r019ax.\0\u2028\ufeff\ud800é", max_size=6),
)
def test_a_damaged_spec_loads_or_is_refused_with_a_spec_error(start: int, length: int, noise: str) -> None:
    try:
        spec = loads(GOOD[:start] + noise + GOOD[start + length :])
    except SpecError as error:
        assert all(found.rule and found.where is not None for found in error.errors)
    else:
        assert loads(spec.to_yaml()) == spec
