"""What a spec's text becomes: values as they were written, lines remembered, YAML's own ideas of types ignored."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pydantic
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from layoutgen.algebra import Layout
from layoutgen.errors import SpecError, Where
from layoutgen.spec import Spec, load, loads
from layoutgen.spec_fields import Order

GOOD = """\
name: small            # line 1
about: a spec for tests
arch: sm_80
operands:
  a: {dtype: f32, contiguous: k}
  b: {dtype: f32, contiguous: n}
  c: {dtype: f32}
  accumulate: f32
tiling:                # line 9
  block: [64, 64, 16]
  warps: (2,2):(2,1)
  lanes: (8,4):(4,1)   # line 12
  values: [8, 4]
shared: {stages: 2}
"""

# The same as one flow mapping.
FLOW = (
    "{name: small, about: a spec for tests, arch: sm_80,\n operands: {a: {dtype: f32, contiguous: k},\n"
    " b: {dtype: f32, contiguous: n}, c: {dtype: f32}, accumulate: f32},\n tiling: {block: [64, 64, 16],"
    " warps: (2,2):(2,1), # here\n  lanes: (8,4):(4,1),\n values: [8, 4]}, shared: {stages: 2}}"
)


def with_lanes(text: str) -> Layout:
    return loads(GOOD.replace("(8,4):(4,1)", text)).tiling.lanes


def with_values(text: str) -> tuple[Layout, ...]:
    return loads(GOOD.replace("[8, 4]", text)).tiling.values


def errors_of(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        loads(text)
    return [error.rule for error in caught.value.errors]


def test_every_field_is_read() -> None:
    spec = loads(GOOD)
    assert (spec.name, spec.about, spec.arch) == ("small", "a spec for tests", "sm_80")
    assert (spec.operands.a.dtype, spec.operands.a.contiguous) == ("f32", "k")
    assert (spec.operands.b.contiguous, spec.operands.c.dtype, spec.operands.accumulate) == ("n", "f32", "f32")
    assert spec.tiling.block == (64, 64, 16)
    assert spec.tiling.warps == Layout((2, 2), (2, 1))
    assert spec.tiling.lanes == Layout((8, 4), (4, 1))
    assert spec.tiling.values == (Layout(8, 1), Layout(4, 1))
    assert spec.shared.stages == 2


def test_what_is_left_out_is_left_to_the_planner_or_has_its_default() -> None:
    spec = loads(GOOD)
    assert spec.tiling.warp is spec.shared.a is spec.shared.b is spec.copies.a is spec.copies.b is None
    assert spec.tiling.order == Order("m", serpentine=False)
    assert (spec.schedule.raster, spec.schedule.group, spec.schedule.min_blocks) == ("along_m", 1, 1)
    copy = loads(GOOD + "copies: {b: {atom: ldg.sts}}").copies.b
    assert copy is not None and (copy.atom, copy.threads, copy.values) == ("ldg.sts", None, None)


def test_the_optional_parts_are_read() -> None:
    spec = loads(
        GOOD.replace("shared: {stages: 2}", "shared:\n  b: (64,16):(1,68)\n  stages: 3").replace(
            "  warps", "  order: serpentine_n\n  warp: <32:1, 32>\n  warps"
        )
        + "copies:\n  a:\n    atom: cp.async\n    threads: (16,8):(8,1)\n    values: [1, 4]\n"
        + "schedule: {raster: along_n, group: 4, min_blocks: 2}\n"
    )
    assert (spec.shared.a, spec.shared.b, spec.shared.stages) == (None, Layout((64, 16), (1, 68)), 3)
    assert spec.tiling.order == Order("n", serpentine=True)
    assert spec.tiling.warp == (Layout(32, 1), Layout(32, 1))
    assert spec.copies.a is not None and spec.copies.b is None
    assert spec.copies.a.threads == Layout((16, 8), (8, 1))
    assert spec.copies.a.values == (Layout(1, 1), Layout(4, 1))
    assert (spec.schedule.raster, spec.schedule.group, spec.schedule.min_blocks) == ("along_n", 4, 2)


@pytest.mark.parametrize(("text", "sexagesimal"), [("4:1", 241), ("32:1", 1921), ("2:30", 150)])
def test_an_unquoted_rank_1_layout_is_no_number_in_base_60(text: str, sexagesimal: int) -> None:
    assert yaml.safe_load(f"lanes: {text}") == {"lanes": sexagesimal}  # what YAML 1.1 makes of it
    extent, stride = map(int, text.split(":"))
    assert with_lanes(text) == Layout((extent, 1), (stride, 0))


def test_words_that_yaml_gives_types_stay_text() -> None:
    for name in ("no", "on", "off", "y"):
        assert loads(GOOD.replace("name: small ", f"name: {name} ")).name == name
    assert loads(GOOD.replace("a spec for tests", "2001-12-14")).about == "2001-12-14"
    assert loads(GOOD.replace("a spec for tests", "'null'")).about == "null"  # quoted, it is a word


def test_a_layout_may_nest_and_may_be_quoted_or_not() -> None:
    nested = Layout((4, (2, 4)), (2, (1, 8)))
    for text in ("(4,(2,4)):(2,(1,8))", "'(4,(2,4)):(2,(1,8))'", '"( 4, (2, 4) ) : (2, (1, 8))"'):
        assert with_lanes(text) == nested


def test_brackets_protect_commas_inside_braces_and_lists() -> None:
    tail = "copies: {a: {atom: ldg.sts, threads: (16,8):(8,1), values: <(2,2):(1, 8), 1>}, b: {atom: cp.async}}"
    copies = loads(GOOD + tail).copies
    assert copies.a is not None and copies.b is not None
    assert copies.a.threads == Layout((16, 8), (8, 1))
    assert copies.a.values == (Layout((2, 2), (1, 8)), Layout(1, 1))
    assert copies.b.atom == "cp.async"
    commented = tail.replace(" values", "\n values").replace(
        "threads: (16,8):(8,1),", "threads: (16,8):(8,1) # why\n ,"
    )
    assert loads(GOOD + commented).copies == copies
    for about in ("f(x, y) = z", "a -> (b, c)", "(a, b) > c"):
        assert loads(GOOD.replace("a spec for tests", f'"{about}"')).about == about
        assert loads(FLOW.replace("a spec for tests", f"{about}  ")).about == about
    assert with_values("[(4,2):(1,16), 4]") == (Layout((4, 2), (1, 16)), Layout(4, 1))


def test_the_file_may_be_one_flow_mapping_over_several_lines() -> None:
    assert loads(FLOW) == loads(GOOD)


@pytest.mark.parametrize(
    "text", ["<(4,2):(1,16),(4,2):(1,32)>", "<(4,2):(1,16), (4,2):(1,32)>", "'<(4,2):(1,16),(4,2):(1,32)>'"]
)
def test_a_tiler_has_a_layout_per_mode(text: str) -> None:
    assert with_values(text) == (Layout((4, 2), (1, 16)), Layout((4, 2), (1, 32)))


def test_a_tile_is_shorthand_for_runs() -> None:
    assert (
        with_values("[8, 4]") == with_values("<8, 4>") == with_values("<8:1, 4:1>") == with_values("\n    - 8\n    - 4")
    )


@pytest.mark.parametrize("text", ["<8>", "<8, 4, 2>", "8", "<8, 4", "[8, 4, 2]", "{m: 8, n: 4}", "<>", "<8,, 4>", "[]"])
def test_a_tile_has_two_modes(text: str) -> None:
    (rule,) = errors_of(GOOD.replace("[8, 4]", text))
    assert rule.startswith("tiling.values must")


def test_each_mode_of_a_tile_must_be_right() -> None:
    assert errors_of(GOOD.replace("[8, 4]", "[8, [4]]")) == ["tiling.values must be a layout"]
    assert errors_of(GOOD.replace("[8, 4]", "<8, x>")) == ["tiling.values must hold positive integers or layouts"]
    assert errors_of(GOOD.replace("[8, 4]", "<8, (4,2):(1>"))[0].startswith("tiling.values is a layout, and")


@pytest.mark.parametrize(
    "text",
    ["0", "-1", "+2", "1e3", "0x10", "0b1", "010", "1_000", "2.0", ".nan", ".inf", "two", "1048577", "9" * 5000, "1２"],
)
def test_a_count_is_a_positive_integer_in_plain_digits(text: str) -> None:
    grouped = GOOD + f"schedule: {{group: {text}}}\n"
    assert errors_of(grouped) == ["schedule.group must be a positive integer"]
    if text != "0":
        assert errors_of(GOOD.replace("stages: 2", f"stages: {text}")) == ["shared.stages must be a number of stages"]


def test_there_may_be_no_stages() -> None:
    assert loads(GOOD.replace("stages: 2", "stages: 0")).shared.stages == 0
    assert loads(GOOD.replace("stages: 2", "stages: '0'")).shared.stages == 0


@pytest.mark.parametrize(("text", "spread"), [("[0, 1]", (0, 1)), ("[1, 15]", (1, 15)), ("<1, 15>", (1, 15))])
def test_a_spread_is_a_range_of_k(text: str, spread: tuple[int, int]) -> None:
    spec = loads(GOOD + f"copies: {{spread: {text}}}\n")
    assert spec.copies.spread == spread and loads(spec.to_yaml()) == spec
    assert loads(GOOD).copies.spread == (0, 1)


@pytest.mark.parametrize("text", ["[1]", "4", "[1, 2, 3]", "[2, 2]", "[3, 1]", "[-1, 2]", "[a, b]", "{first: 1}", "[]"])
def test_what_is_no_range_of_k_is_refused(text: str) -> None:
    (rule,) = errors_of(GOOD + f"copies: {{spread: {text}}}\n")
    assert rule.startswith("copies.spread must ")


def test_the_largest_count_is_read() -> None:
    assert loads(GOOD.replace("stages: 2", "stages: 1048576")).shared.stages == 1048576
    assert loads(GOOD.replace("stages: 2", "stages: '2'")).shared.stages == 2


@pytest.mark.parametrize(
    "text", ["", "'   '", "x" * 201, '"a\\tb"', '"ends in a backslash \\\\"', '"a\\u2028b"', "[a]", '"\\e[31m"']
)
def test_about_is_one_printable_line_that_a_comment_can_hold(text: str) -> None:
    (rule,) = errors_of(GOOD.replace("a spec for tests", text))
    assert rule.startswith("about ")


@pytest.mark.parametrize(
    "text", ["Small", "2small", "sm-all", "sm all", "_small", "smäll", "class", "s" * 65, "../small"]
)
def test_a_name_is_an_identifier(text: str) -> None:
    assert errors_of(GOOD.replace("name: small", f"name: {text}")) == ["name must be a name"]


def test_a_tower_of_parentheses_is_refused_not_recursed_into() -> None:
    tower = "(" * 20_000 + "1" + ")" * 20_000
    assert errors_of(GOOD.replace("(8,4):(4,1)", tower)) == ["tiling.lanes must be a layout of modest size"]


def test_where_points_at_the_line_of_a_key() -> None:
    spec = loads(GOOD, "x.yaml")
    assert spec.where("tiling.lanes") == Where("x.yaml", 12)
    assert spec.where("operands.b.contiguous") == Where("x.yaml", 6)
    assert spec.where("tiling.block.2") == Where("x.yaml", 10)
    assert spec.where("tiling") == Where("x.yaml", 9)


def test_where_falls_back_to_the_nearest_key_around() -> None:
    spec = loads(GOOD, "x.yaml")
    assert spec.where("tiling.order") == Where("x.yaml", 9)
    assert spec.where("copies.a.values") == Where("x.yaml", 1)
    assert spec.where("shared.a.b.c") == Where("x.yaml", 14)


def test_equality_and_hash_ignore_places() -> None:
    moved = loads("# a comment\n\n" + GOOD, "elsewhere.yaml")
    assert moved == loads(GOOD) and hash(moved) == hash(loads(GOOD))
    assert moved.where("name") != loads(GOOD).where("name")
    assert moved != loads(GOOD.replace("stages: 2", "stages: 3"))
    assert loads(GOOD) != GOOD


def test_a_spec_is_frozen() -> None:
    spec = loads(GOOD)
    for model, field in ((spec, "name"), (spec.tiling, "order"), (spec.schedule, "group")):
        with pytest.raises(pydantic.ValidationError):
            setattr(model, field, "n")


def test_a_spec_survives_pickling_with_its_places() -> None:
    spec = loads(GOOD, "x.yaml")
    again = pickle.loads(pickle.dumps(spec))
    assert again == spec and again.where("tiling.lanes") == Where("x.yaml", 12)


def test_the_json_schema_names_every_key() -> None:
    schema = json.dumps(Spec.model_json_schema())
    for key in ("contiguous", "accumulate", "lanes", "stages", "threads", "raster", "min_blocks", "sm_90a", "cp.async"):
        assert f'"{key}"' in schema


def layouts(rank: int | None = None) -> st.SearchStrategy[str]:
    extents, strides = st.integers(1, 64), st.integers(0, 4096)
    leaf = st.tuples(extents, strides).map(lambda t: (str(t[0]), str(t[1])))

    def group(modes: list[tuple[str, str]]) -> tuple[str, str]:
        return f"({','.join(m[0] for m in modes)})", f"({','.join(m[1] for m in modes)})"

    mode = leaf | st.lists(leaf, min_size=2, max_size=3).map(group)
    return (st.lists(mode, min_size=2, max_size=2).map(group) if rank == 2 else mode).map(":".join)


tilers = st.lists(layouts() | st.integers(1, 64).map(str), min_size=2, max_size=2).map(lambda m: f"'<{','.join(m)}>'")


@given(
    layouts(rank=2),
    tilers,
    tilers,
    st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=60),
    st.integers(1, 1 << 20),
)
def test_to_yaml_round_trips(lanes: str, values: str, warp: str, about: str, group: int) -> None:
    quoted = "'" + about.replace("'", "''") + "'"
    text = GOOD.replace("(8,4):(4,1)", lanes).replace("[8, 4]", f"{values}\n  warp: {warp}")
    text = (
        text.replace("a spec for tests", quoted) + f"schedule: {{group: {group}}}\ncopies: {{a: {{atom: cp.async}}}}\n"
    )
    if not about.strip() or not about.isprintable() or about.endswith("\\"):
        assert errors_of(text)[0].startswith("about")
        return
    spec = loads(text)
    assert spec.about == about and str(spec.tiling.lanes) == lanes
    assert loads(spec.to_yaml()) == spec
    assert yaml.safe_load(spec.to_yaml())["tiling"]["lanes"] == lanes  # any YAML reader gets the text, not a number


def test_to_yaml_keeps_text_readable() -> None:
    about = "Größe " * 30 + "end"
    assert f"about: {about}\n" in loads(GOOD.replace("a spec for tests", about)).to_yaml()


def test_load_names_the_path_in_every_place(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(GOOD)
    spec = load(tmp_path / "small.yaml")
    assert spec == loads(GOOD) and spec == load(str(tmp_path / "small.yaml"))
    assert spec.where("tiling.lanes") == Where(str(tmp_path / "small.yaml"), 12)
