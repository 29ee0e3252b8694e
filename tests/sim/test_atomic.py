"""atom and red: maxima in global memory, of which every lane has its say and sees what was there before."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest

from layoutgen.errors import SimError
from layoutgen.sim import GlobalMemory, launch
from tests.sim.kernels import kernel

PARAMS = ".param .u64 values, .param .u64 most, .param .u64 before"
SIZES = {"u32": ("%r", 4), "u64": ("%d", 8)}


def body(op: str, kind: str, groups: int, guard: str = "", offset: int = 0) -> str:
    """Thread i takes values[i] to most[i % groups]; of atom, what was there goes to before[i]."""
    register, size = SIZES[kind]
    value, old = f"{register}10", f"{register}11"
    returns = f"{old}, " if op.startswith("atom") else ""
    return f"""ld.param.u64 %d0, [values];
ld.param.u64 %d1, [most];
ld.param.u64 %d2, [before];
mul.wide.u32 %d3, %r0, {size};
add.s64 %d0, %d0, %d3;
add.s64 %d2, %d2, %d3;
and.b32 %r1, %r0, {groups - 1};
mul.wide.u32 %d3, %r1, {size};
add.s64 %d1, %d1, %d3;
setp.lt.u32 %p1, %r0, 20;
mov.b{8 * size} {old}, 7;
ld.global.b{8 * size} {value}, [%d0];
{guard}{op} {returns}[%d1+{offset}], {value};
st.global.b{8 * size} [%d2], {old};
ret;"""


def taken(
    op: str, kind: str, values: np.ndarray, groups: int, guard: str = "", writable: bool = True, offset: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """(the maxima, which begin as 5; what was there before each lane)."""
    most, before = np.full(groups, 5, values.dtype), np.zeros_like(values)
    memory = GlobalMemory()
    addresses = [
        memory.add(values, name="values"), memory.add(most, writable=writable, name="most"),
        memory.add(before, writable=True, name="before"),
    ]  # fmt: skip
    launch(kernel(body(op, kind, groups, guard, offset), PARAMS), memory, (1, 1, 1), (len(values), 1, 1), addresses)
    return most, before


def numbers(kind: str) -> np.ndarray:
    """Of every size that the type has: as signed integers, or as halves of their bits, they are in another order."""
    random = np.random.default_rng(0)
    bits = 8 * SIZES[kind][1]
    return (
        random.integers(0, 1 << 63, 64, np.uint64) * 2 >> random.integers(64 - bits, 64, 64).astype(np.uint64)
    ).astype(f"u{bits // 8}")


FORMS = ("atom.global.max.{}", "red.global.max.{}", "atom.relaxed.gpu.global.max.{}", "red.relaxed.gpu.global.max.{}")


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("groups", [1, 4, 64])
def test_lanes_that_meet_leave_their_maximum(form: str, kind: str, groups: int) -> None:
    values = numbers(kind)
    most, before = taken(form.format(kind), kind, values, groups)
    assert most.tolist() == [max(5, *map(int, values[group::groups])) for group in range(groups)]
    if form.startswith("red"):
        assert (before == 7).all()  # its register
        return
    for group in range(groups):  # one after the other, in whatever order
        held = list(accumulate([5, *map(int, values[group::groups])], max))
        assert sorted(map(int, before[group::groups])) == held[:-1]


@pytest.mark.parametrize("kind", SIZES)
def test_lanes_that_are_off_take_no_part(kind: str) -> None:
    values = np.arange(100, 164).astype(f"u{SIZES[kind][1]}")
    most, before = taken(f"atom.global.max.{kind}", kind, values, 1, guard="@%p1 ")
    assert most.tolist() == [119]
    assert before[:20].tolist() == [5, *range(100, 119)] and (before[20:] == 7).all()


@pytest.mark.parametrize(
    ("offset", "writable", "message"),
    [
        (0, False, "writ"),
        (8, True, "stays inside its buffer"),
        (2, True, "4-byte access is aligned"),
    ],
)
def test_accesses_that_a_gpu_would_fault_on(offset: int, writable: bool, message: str) -> None:
    with pytest.raises(SimError, match=message):
        taken("red.global.max.u32", "u32", np.ones(32, np.uint32), 1, writable=writable, offset=offset)


@pytest.mark.parametrize(
    "op",
    [
        "atom.global.add.u32", "red.global.add.f32", "atom.global.max.s32", "red.global.min.u32", "atom.shared.max.u32",
        "atom.max.u32", "red.acquire.gpu.global.max.u32", "atom.relaxed.sys.global.max.u32", "red.global.max.f32",
    ],
)  # fmt: skip
def test_other_forms_are_refused(op: str) -> None:
    with pytest.raises(SimError, match=rf"knows this form[\s\S]*{op}"):
        taken(op, "u32", np.ones(32, np.uint32), 1)
