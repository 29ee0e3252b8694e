"""What explain shows is so: every call gives the layout beside it, which is the plan's, and every owner owns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from layoutgen import paths
from layoutgen.algebra import ComposedLayout, Layout, evaluate
from layoutgen.algebra.explain import EXPLAINED
from layoutgen.emitted import emitted_specs
from layoutgen.errors import PlanError, RequestError
from layoutgen.explain import Explanation, SharedSource, Source, Step, explain
from layoutgen.facts import cover_copy
from layoutgen.plan import Plan, plan
from layoutgen.plan.model import SharedOperand
from layoutgen.spec import Spec, load
from tests.draw.conftest import ALIKE
from tests.explain.stages import DEEP, NONE, ONE
from tests.plan.drafts import Draft, draft, drafts
from tests.plan.naive import owned, words

SHIPPED = [load(path) for name, path in emitted_specs().items() if name not in ALIKE]
TILE = {f"tile.{name}_mode.{i}" for name in ("warp", "lane", "value") for i in (0, 1)} | {"threads.m", "threads.n"}
OPERAND = {
    "shared.layout", "copy.thread_x", "copy.thread_k", "copy.element_x", "copy.element_k", "copy.write.base",
    "copy.write.steps", "fragment.load.base", "fragment.load.steps",
}  # fmt: skip
OWN = {"copy.thread_x", "copy.thread_k", "copy.element_x", "copy.element_k"}  # of an operand that is not shared


def carried(each: Plan) -> set[str]:
    """Paths of the layouts that a kernel carries."""
    if not each.shared_operands:
        return TILE | {f"{name}.{path}" for name in "ab" for path in OWN}
    found = TILE | {f"{operand.name}.{path}" for operand in each.shared_operands for path in OPERAND}
    for operand in each.shared_operands:
        for path, access in (("copy.write", operand.copy.write), ("fragment.load", operand.fragment.load)):
            if isinstance(access.base, ComposedLayout):  # what the swizzle that is told beside it permutes
                found ^= {f"{operand.name}.{path}.base", f"{operand.name}.{path}.base.layout_b"}
            if access.flips is not None and any(access.flips.flat_stride):
                found.add(f"{operand.name}.{path}.flips")
    return found


def at(plan: Plan, path: str) -> Any:
    found: Any = plan
    for name in path.split("."):
        found = found[int(name)] if name.isdigit() else getattr(found, name)
    return found


def prove_calls(told: Explanation, each: Plan) -> None:
    """Every call shown gives the layout shown; those of the plan are all there, and are the plan's."""
    for step in told.steps:
        assert evaluate(step.call or str(step.result)) == step.result, step
        if step.of is not None:
            assert step.result == at(each, step.of), step
            if step.of.endswith((".layout_b", "shared.layout")):
                swizzle = at(each, f"{step.of[0]}.shared.swizzle")
                assert step.says == (f"then {swizzle}" if swizzle.bits else "")
            assert not step.of.endswith(".layout_b") or at(each, step.of[: -len("layout_b")] + "layout_a") == swizzle
    assert {step.of for step in told.steps} - {None} == carried(each)


@pytest.mark.parametrize("spec", SHIPPED, ids=lambda spec: spec.name)
def test_every_call_of_every_variant_gives_the_layout_of_the_plan(spec: Spec) -> None:
    plans = plan(spec)
    for each in plans:
        prove_calls(explain(spec, plans, variant=each.variant), each)


def random_plans(seeds: range) -> Iterator[tuple[Draft, Spec, tuple[Plan, ...]]]:
    for seed in seeds:
        text = draft(Random(seed).choice)
        try:
            plans = plan(text.spec())
        except PlanError:
            continue
        if all(cover_copy(o.copy, o.tile).ok for o in plans[0].shared_operands):
            yield text, text.spec(), plans


def test_the_calls_of_random_specs_do_too() -> None:
    count = 0
    for _, spec, plans in random_plans(range(60)):
        prove_calls(explain(spec, plans), plans[0])
        count += 1
    assert count > 20


@settings(max_examples=25)
@given(drafts())
def test_no_random_spec_is_beyond_words(text: Draft) -> None:
    spec = text.spec()
    try:
        plans = plan(spec)
    except PlanError:
        plans = ()
    told = explain(spec, plans)
    if plans:
        prove_calls(told, plans[0])
    assert max(map(len, str(told).splitlines())) <= 120


# ---- who owns what, by definition ----


def test_the_owner_of_a_coordinate_is_who_has_it() -> None:
    """The naive tile says which (thread, i, j) is at (m, n)."""
    choose, count = Random(1), 0
    for text, spec, plans in random_plans(range(100, 130)):
        m, n = choose.randrange(text.block[0]), choose.randrange(text.block[1])
        found = explain(spec, plans, coordinate=(m, n)).followed["coordinate"]
        owner = owned(text)
        i, j = found["value"]
        assert (owner.m[found["thread"], i], owner.n[found["thread"], j]) == (m, n)
        assert (found["m"], found["n"], 32 * found["warp"] + found["lane"]) == (m, n, found["thread"])
        count += 1
    assert count > 10


@pytest.mark.parametrize("spec", SHIPPED, ids=lambda spec: spec.name)
def test_the_owner_is_the_one_value_of_one_thread_there(spec: Spec) -> None:
    """Brute force over threads and values, as CuTe would: thread -> m + value -> m."""
    plans, choose = plan(spec), Random(2)
    tile, threads = plans[0].tile, plans[0].threads
    for _ in range(4):
        m, n = choose.randrange(tile.block[0]), choose.randrange(tile.block[1])
        owners = [
            (t, (i, j))
            for t in range(threads.threads)
            for i in range(tile.value_mode[0].size)
            if threads.m(t) + tile.value_mode[0](i) == m
            for j in range(tile.value_mode[1].size)
            if threads.n(t) + tile.value_mode[1](j) == n
        ]
        found = explain(spec, plans, coordinate=(m, n)).followed["coordinate"]
        assert owners == [(found["thread"], found["value"])]


def prove_source(each: Plan, operand: SharedOperand, found: dict[str, Any], word: Any) -> None:
    """The thread's load and the copier's store are at the element's word, by the addresses that the kernel computes."""
    source = SharedSource(**found[operand.name])
    x, thread, load = source.x, found["thread"], operand.fragment.load
    # Of a load along k, its place is that of k; of another, that of x, and it brings one k.
    along_k = operand.fragment.mode == "k"
    assert source.depth == (operand.fragment.vector if along_k else 1)
    start = {"a": 0, "b": each.a.shared.bytes // 4}[operand.name]
    for stage in range(each.stages):
        for k in range(each.tile.block[2]):
            assert source.word[stage][k] == word[x, k, stage]
            assert source.bank[stage][k] == (start + word[x, k, stage]) % 32
            step = load.steps(source.load, k // source.depth, stage)
            address = load.base(thread) + operand.fragment.vector * step
            assert address + source.position + k % source.depth == word[x, k, stage]
    assert source.loaded[source.position] == x
    assert source.register == source.load * (1 if along_k else operand.fragment.vector) + source.position
    copy, block_k = operand.copy, each.tile.block[2]
    for k in range(block_k):
        t, (i, j) = source.copier[k], source.element[k]
        assert (copy.thread_x(t) + copy.element_x(i), copy.thread_k(t) + copy.element_k(j)) == (x, k)
        assert 0 <= t < copy.participants
        assert len(source.read[k]) == copy.read_vector and len(source.write[k]) == copy.write_vector
        assert (x, k) in source.read[k] and (x, k) in source.write[k]
        piece = (i // copy.write_vector, j) if copy.write_mode == "x" else (i, j // copy.write_vector)
        first = copy.write.base(t) + copy.write_vector * copy.write.steps(*piece, 0)
        assert [word[at_x, at_k, 0] for at_x, at_k in source.write[k]] == list(range(first, first + copy.write_vector))
        assert all(copier_of(copy, t, place) for place in (*source.read[k], *source.write[k]))
        if operand.contiguous is None:
            assert source.sector[k] == ()
        else:
            place = (k, x) if operand.contiguous == "k" else (x, k)
            mine = [(at_k, at_x) if operand.contiguous == "k" else (at_x, at_k) for at_x, at_k in source.sector[k]]
            assert place in mine and {p // 8 for p, _ in mine} == {place[0] // 8} and {q for _, q in mine} == {place[1]}


def copier_of(copy: Any, thread: int, place: tuple[int, int]) -> bool:
    xs = {copy.thread_x(thread) + copy.element_x(i) for i in range(copy.element_x.size)}
    ks = {copy.thread_k(thread) + copy.element_k(j) for j in range(copy.element_k.size)}
    return place[0] in xs and place[1] in ks


def test_operands_come_from_where_the_kernel_puts_them() -> None:
    choose, widths, depths = Random(3), set(), set()
    for text, spec, plans in random_plans(range(200, 260)):
        each = choose.choice(plans)
        if not all(cover_copy(o.copy, o.tile).ok for o in each.shared_operands):
            continue
        coordinate = (choose.randrange(text.block[0]), choose.randrange(text.block[1]))
        found = explain(spec, plans, variant=each.variant, coordinate=coordinate).followed["coordinate"]
        for operand in each.shared_operands:
            prove_source(each, operand, found, words(text, operand.name))
            widths.add((operand.copy.read_mode, operand.copy.read_vector, operand.copy.write_vector))
            depths.add(operand.fragment.depth)
    assert len({mode for mode, *_ in widths}) == 2 and len(widths) > 5
    assert len(depths) > 1


# ---- one stage, and none ----


@pytest.mark.parametrize("deep", [False, True])
def test_of_one_stage_operands_come_from_where_the_kernel_puts_them(deep: bool) -> None:
    text = replace(ONE, shared_a=DEEP) if deep else ONE
    (plans, spec) = (plan(text.spec()), text.spec())
    for each in plans:
        found = explain(spec, plans, variant=each.variant, coordinate=(38, 51)).followed["coordinate"]
        for operand in each.shared_operands:
            prove_source(each, operand, found, words(text, operand.name))
    depths = [operand.fragment.depth for operand in plans[0].shared_operands]
    assert depths == ([4, 1] if deep else [1, 1])


@pytest.mark.parametrize("contiguous", [("k", "n"), ("m", "k")])
def test_without_stages_a_thread_loads_what_it_multiplies(contiguous: tuple[str, str]) -> None:
    text = replace(NONE, contiguous=contiguous)
    spec, owner = text.spec(), owned(text)
    plans = plan(spec)
    wide = set()
    for each in plans:
        told = explain(spec, plans, variant=each.variant, coordinate=(38, 51), thread=45)
        found, thread = told.followed["coordinate"], told.followed["thread"]
        page = " ".join(str(told).split())
        for name, xs, value in (("a", owner.m, found["value"][0]), ("b", owner.n, found["value"][1])):
            operand, source = each.operand(name), Source(**found[name])  # type: ignore[arg-type]
            assert xs[found["thread"], value] == source.x == (38 if name == "a" else 51)
            assert source.register == value and set(source.copier) == {found["thread"]}
            assert source.element == tuple((value, k) for k in range(8))
            vector = operand.copy.read_vector
            wide.add(vector)
            for k, access in enumerate(source.read):
                assert (source.x, k) in access and len(access) == vector
                # What one access loads are neighbours in memory, from a multiple of its width on, and all the thread's.
                along = [at_k if operand.copy.read_mode == "k" else at_x for at_x, at_k in access]
                assert along == list(range(along[0], along[0] + vector)) and along[0] % vector == 0
                assert {at_x for at_x, _ in access} <= set(xs[found["thread"]].tolist())
            others = (owned_by(text, name) == source.x).any(axis=1).sum() - 1
            assert f"as {others} other threads do" in page
            moved = [tuple(place) for access in thread[name]["fetches"] for place in access["elements"]]
            assert sorted(moved) == sorted((x, k) for x in xs[45].tolist() for k in range(8))
            assert len(thread[name]["fetches"]) == operand.copy.reads
        assert "ld.shared" not in page and "bank" not in page and "no shared memory" in page
        prove_calls(told, each)
    assert wide == {1, 4}


def owned_by(text: Draft, name: str) -> Any:
    """x[thread, value] of an operand."""
    return owned(text).m if name == "a" else owned(text).n


def test_a_thread_is_followed_through_its_loads_and_copies() -> None:
    choose, idle, depths = Random(4), 0, set()
    for text, spec, plans in random_plans(range(300, 330)):
        each, owner = plans[0], owned(text)
        if not each.shared_operands:  # nothing is copied for others: tests/explain/test_program.py has those
            continue
        thread = choose.randrange(each.threads.threads)
        data = explain(spec, plans, thread=thread).followed["thread"]
        assert (data["thread"], data["warp"], data["lane"]) == (thread, thread // 32, thread % 32)
        assert (data["m"], data["n"]) == (owner.m[thread].tolist(), owner.n[thread].tolist())
        for operand, xs in zip(each.shared_operands, (data["m"], data["n"]), strict=True):
            depth = operand.fragment.depth
            depths.add(depth)
            word, told = words(text, operand.name), data[operand.name]
            start = {"a": 0, "b": each.a.shared.bytes // 4}[operand.name]
            assert [x for each_load in told["loads"] for x in each_load["x"]] == xs
            for v, one in enumerate(told["loads"]):
                base = operand.fragment.load.base(thread)
                for stage in range(each.stages):
                    steps = [operand.fragment.load.steps(v, k // depth, stage) for k in range(text.block[2])]
                    at_words = [base + operand.fragment.vector * step + k % depth for k, step in enumerate(steps)]
                    assert one["word"][stage] == at_words
                    assert one["bank"][stage] == [(start + at_word) % 32 for at_word in one["word"][stage]]
            copy = operand.copy
            if thread >= copy.participants:
                assert told["copies"] == []
                idle += 1
                continue
            moved = [tuple(place) for access in told["copies"] for place in access["elements"]]
            assert len(moved) == len(set(moved)) == copy.element_x.size * copy.element_k.size
            assert all(copier_of(copy, thread, place) for place in moved)
            for access in told["copies"]:
                for stage in range(each.stages):
                    step = copy.write.steps(*access["access"], stage)
                    assert access["word"][stage] == copy.write.base(thread) + copy.write_vector * step
                    x, k = access["elements"][0]
                    assert access["word"][stage] == word[x, k, stage]
                    assert access["bank"][stage] == (start + access["word"][stage]) % 32
    assert idle > 0 and len(depths) > 1


# ---- the page ----


@pytest.mark.parametrize("spec", SHIPPED, ids=lambda spec: spec.name)
def test_a_page_is_a_page(spec: Spec) -> None:
    plans = plan(spec)
    for each in plans:
        page = str(explain(spec, plans, variant=each.variant)).splitlines()
        assert len(page) <= 90 and max(map(len, page)) <= 100
    first = explain(spec, plans)
    assert first.variant == plans[0].variant and len(first.variants) == len(plans)
    follow = explain(spec, plans, thread=1)
    assert follow.sections[:-1] == first.sections
    assert max(map(len, str(follow).splitlines())) <= 120


def test_by_default_it_follows_c_5_77_of_the_matrix() -> None:
    text = Draft()
    spec = text.spec()
    found = explain(spec, plan(spec)).followed["coordinate"]
    assert (found["m"], found["n"]) == (5, 13)  # of a 64 x 64 tile: 77 is column 13 of the second
    shipped = explain(SHIPPED[-1], plan(SHIPPED[-1])).followed["coordinate"]
    assert (shipped["m"], shipped["n"]) == (5, 77)


def test_steps_show_their_derivations() -> None:
    spec = SHIPPED[-1]
    told = explain(spec, plan(spec))
    derived = list(told.lines(derive=True))
    shown = 0
    for step in told.steps:
        lines = step.derivation()
        shown += len(lines)
        assert all(any(line in each for each in derived) for line in lines)
        if step.call and step.call.split("(")[0] in EXPLAINED:
            assert lines[-1].strip() == f"= {evaluate(step.call)}"
    assert shown > 100 and len(derived) >= shown + len(told.steps)
    assert Step("", None, Layout(4, 1)).derivation() == []


def test_json_is_the_page_as_data() -> None:
    spec = SHIPPED[0]
    told = explain(spec, plan(spec), thread=7)
    data = json.loads(json.dumps(told.to_json()))
    assert data["name"] == spec.name and data["coordinate"]["a"]["x"] == 5 and data["thread"]["thread"] == 7
    assert [section["title"] for section in data["sections"]] == [section.title for section in told.sections]
    calls = [e["call"] for section in data["sections"] for e in section["entries"] if e.get("call")]
    assert calls == [step.call for step in told.steps if step.call]
    results = [e["result"] for section in data["sections"] for e in section["entries"] if "result" in e]
    assert [evaluate(each) for each in results] == [step.result for step in told.steps]


@pytest.mark.parametrize(
    ("asked", "got", "allowed"),
    [
        ({"coordinate": (128, 0)}, "(128,0) of 128 x 128", "m < 128"),
        ({"coordinate": (0, 128)}, "(0,128)", "n < 128"),
        ({"coordinate": (-1, 5)}, "(-1,5)", "0 <= m"),
        ({"thread": 128}, "thread 128", "0 .. 127"),
        ({"thread": -1}, "thread -1", "0 .. 127"),
        ({"variant": "ax_bx"}, "ax_bx", "ak_bn_16B"),
    ],
)
def test_what_is_not_there_is_refused(asked: dict[str, Any], got: str, allowed: str) -> None:
    spec = SHIPPED[-1]
    assert spec.name == "warptile_128x128"
    with pytest.raises(RequestError) as caught:
        explain(spec, plan(spec), **asked)
    assert got in str(caught.value.got) and allowed in str(caught.value.allowed) and caught.value.fix


def test_a_patch_is_followed_along_both_modes() -> None:
    """sgemm_128x256x16: A is loaded four k at a time and stored two m at a time, by the thread that turns it."""
    spec = load(paths.shipped_specs()["sgemm_128x256x16"])
    told = explain(spec, plan(spec), coordinate=(5, 77), thread=5)
    page, found = " ".join(str(told).split()), told.followed
    assert "2 ld.global of 16 bytes along k, 4 st.shared of 8 along m" in page
    assert "by ld.global of 16 bytes (k 0..3), st.shared of 8 (m 4..5), element (1,j)" in page
    assert found["coordinate"]["a"]["read"][6] == ((5, 4), (5, 5), (5, 6), (5, 7))
    assert found["coordinate"]["a"]["write"][6] == ((4, 6), (5, 6))
    assert found["thread"]["a"]["fetches"] == [
        {"access": [i, 0], "elements": [[2 + i, k] for k in range(4, 8)]} for i in (0, 1)
    ]
    assert [each["elements"] for each in found["thread"]["a"]["copies"]] == [[[2, k], [3, k]] for k in range(4, 8)]
    assert "The loads of A:" in page and "The loads of B:" not in page  # B's are its stores
