"""Memory: every access that a GPU would fault on, or that leaves the array, is an error that says who."""

from __future__ import annotations

import numpy as np
import pytest

from layoutgen.errors import SimError
from layoutgen.sim import GlobalMemory, Options, launch
from tests.sim.kernels import kernel, run

COPY = """ld.param.u64 %d1, [src];
ld.param.u64 %d2, [dst];
ld.param.s32 %r1, [offset];
mad.lo.s32 %r2, %r0, {size}, %r1;
cvt.s64.s32 %d3, %r2;
add.s64 %d1, %d1, %d3;
mul.wide.u32 %d4, %r0, {size};
add.s64 %d2, %d2, %d4;
ld.global{form} {regs}, [%d1];
st.global{form} [%d2], {regs};
"""
PARAMS = ".param .u64 src, .param .u64 dst, .param .u32 offset"
FORMS = {
    1: (".u8", "%h1"),
    2: (".b16", "%h1"),
    4: (".f32", "%f1"),
    8: (".v2.f32", "{%f1, %f2}"),
    16: (".v4.b32", "{%r5, %r6, %r7, %r8}"),
}


def copy(src: np.ndarray, size: int, offset: int = 0, threads: int = 32, writable: bool = True) -> np.ndarray:
    """Thread i copies ``size`` bytes at ``src`` + offset + i * size."""
    form, regs = FORMS[size]
    memory = GlobalMemory()
    out = np.zeros(threads * size, np.uint8)
    a, b = memory.add(src, name="src"), memory.add(out, writable=writable, name="dst")
    k = kernel(COPY.format(size=size, form=form, regs=regs), PARAMS)
    launch(k, memory, (1, 1, 1), (threads, 1, 1), [a, b, offset])
    return out


@pytest.mark.parametrize("size", FORMS)
def test_copies_of_every_width(size: int) -> None:
    src = np.random.default_rng(0).integers(0, 256, 64 * size).astype(np.uint8)
    assert (copy(src, size, 16 * size) == src[16 * size : 48 * size]).all()


@pytest.mark.parametrize("size", FORMS)
@pytest.mark.parametrize("offset, lane, at", [(33, 31, 64), (-1, 0, -1)])
def test_accesses_outside_a_buffer(size: int, offset: int, lane: int, at: int) -> None:
    with pytest.raises(SimError, match="stays inside its buffer") as e:
        copy(np.zeros(64 * size, np.uint8), size, offset * size)
    text = str(e.value)
    assert f"thread ({lane},0,0) of block (0,0,0)" in text and "buffer 'src'" in text and f"offset {at * size}" in text
    assert "ld.global" in text and "PTX line" in text


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_misaligned_accesses(size: int) -> None:
    with pytest.raises(SimError, match=rf"aligned to {size} bytes[\s\S]*offset {size // 2}"):
        copy(np.zeros(64 * size, np.uint8), size, size // 2)


def test_one_lane_outside_among_others() -> None:
    body = "setp.eq.u32 %p1, %r0, 9;\n@%p1 add.s64 %d0, %d0, 4096;\nst.global.u32 [%d0], %r0;"
    with pytest.raises(SimError, match=r"thread \(9,0,0\)"):
        run(kernel(body))


def test_far_from_every_buffer() -> None:
    with pytest.raises(SimError, match="far from every buffer"):
        run(kernel("mov.u64 %d0, 16;\nst.global.u32 [%d0], %r0;"))


def test_a_product_that_overflows_32_bits_does_not_reach_another_buffer() -> None:
    with pytest.raises(SimError, match="offset 8589934592"):
        run(kernel("mul.wide.u32 %d1, 0x80000000, 4;\nadd.s64 %d0, %d0, %d1;\nst.global.u32 [%d0], %r0;"))


def test_stores_need_a_writable_buffer() -> None:
    with pytest.raises(SimError, match=r"goes to a writable buffer[\s\S]*'dst'"):
        copy(np.zeros(256, np.uint8), 4, writable=False)


def test_lanes_may_use_different_buffers() -> None:
    body = (
        "ld.param.u64 %d1, [a];\nld.param.u64 %d2, [b];\nld.param.u64 %d3, [out2];\nsetp.lt.u32 %p1, %r0, 20;\n"
        "selp.b64 %d4, %d1, %d2, %p1;\nmul.wide.u32 %d5, %r0, 4;\nadd.s64 %d4, %d4, %d5;\nadd.s64 %d3, %d3, %d5;\n"
        "ld.global.u32 %r1, [%d4];\nst.global.u32 [%d3], %r1;"
    )
    a, b, out = np.arange(32, dtype=np.uint32), np.arange(100, 132, dtype=np.uint32), np.zeros(32, np.uint32)
    memory = GlobalMemory()
    params = [memory.add(a), memory.add(b), memory.add(out, writable=True)]
    launch(kernel(body, ".param .u64 a, .param .u64 b, .param .u64 out2"), memory, (1, 1, 1), (32, 1, 1), params)
    assert out.tolist() == [i if i < 20 else 100 + i for i in range(32)]


def test_a_view_has_no_elements_but_its_own() -> None:
    """A view of rows 8 floats apart: its 6 columns may be read, the 2 between rows may not."""
    storage = np.arange(8 * 8, dtype=np.float32).reshape(8, 8)
    view = storage[:, 1:7]
    assert (copy(view, 4, 0, 6).view(np.float32) == storage[0, 1:7]).all()
    with pytest.raises(
        SimError, match=r"stays inside its buffer[\s\S]*thread \(6,0,0\)[\s\S]*a view with gaps\), offset 24"
    ):
        copy(view, 4, 0, 7)
    with pytest.raises(SimError, match="stays inside its buffer"):
        copy(view, 4, -4, 1)
    with pytest.raises(SimError, match=r"8-byte access is aligned"):
        copy(view, 8, 0, 1)  # the view begins 4 bytes into its storage
    assert (copy(view, 8, 4, 2).view(np.float32) == storage[0, 2:6]).all()
    with pytest.raises(SimError, match="stays inside its buffer"):
        copy(view, 8, 4, 3)  # the third pair is one element of the view and one of the gap


def test_what_stands_before_a_view_is_out_of_bounds() -> None:
    storage = np.arange(64, dtype=np.float32)
    assert (copy(storage[8:], 4, 0, 4).view(np.float32) == storage[8:12]).all()
    with pytest.raises(SimError, match=r"thread \(0,0,0\)[\s\S]*offset -4$"):
        copy(storage[8:], 4, -4, 4)


def test_a_wide_access_to_narrow_elements_counts_every_one_of_them() -> None:
    storage = np.zeros((4, 16), np.uint16)
    assert copy(storage[:, :8], 16, 0, 1).tolist() == [0] * 16
    with pytest.raises(SimError, match="stays inside its buffer"):
        copy(storage[:, :7], 16, 0, 1)


def test_memory_that_numpy_does_not_own_is_as_aligned_as_it_is() -> None:
    foreign = np.frombuffer(memoryview(bytearray(256)), np.float32)
    assert foreign.ctypes.data % 16 == 0 and copy(foreign, 16, 0, 4).tolist() == [0] * 64
    assert copy(foreign[1:], 4, 0, 4).tolist() == [0] * 16
    with pytest.raises(SimError, match="8-byte access is aligned"):
        copy(foreign[1:], 8, 0, 1)


def test_broadcast_views_and_empty_ones() -> None:
    ones = np.broadcast_to(np.float32(3), (64,))
    assert (copy(ones, 4, 0, 1).view(np.float32) == 3).all()
    with pytest.raises(SimError, match="stays inside its buffer"):
        copy(np.zeros((0, 4), np.float32), 4, 0, 1)


@pytest.mark.parametrize(
    "array, writable, rule",
    [
        (np.zeros(4)[::-1], False, "strides >= 0"),
        (np.array([None]), False, "array of numbers"),
        (np.broadcast_to(np.float32(1), (4,)), True, "writable in numpy"),
    ],
)
def test_arrays_that_cannot_be_buffers(array: np.ndarray, writable: bool, rule: str) -> None:
    with pytest.raises(SimError, match=rule):
        GlobalMemory().add(array, writable=writable)


SHARED = ".shared .align 16 .b8 s[256];\n"


@pytest.mark.parametrize(
    "access, rule",
    [
        (
            "st.shared.u32 [%r1+132], %r0;",
            r"inside the block's shared memory[\s\S]*thread \(31,0,0\)[\s\S]*offset 256 of 256",
        ),
        ("st.shared.u32 [%r1+-4], %r0;", r"inside the block's shared memory[\s\S]*thread \(0,0,0\)"),
        ("ld.shared.v2.u32 {%r2, %r3}, [%r1];", r"8-byte access is aligned[\s\S]*thread \(1,0,0\)"),
        ("ld.shared.u32 %r2, [%r1+2];", r"4-byte access is aligned[\s\S]*thread \(0,0,0\)"),
    ],
)
def test_shared_bounds_and_alignment(access: str, rule: str) -> None:
    with pytest.raises(SimError, match=rule):
        run(kernel(f"{SHARED}mov.u32 %r1, s;\nmad.lo.u32 %r1, %r0, 4, %r1;\n{access}"))


def test_shared_memory_is_the_block_s_own_and_starts_as_nan() -> None:
    body = (
        f"{SHARED}mov.u32 %r1, s;\nmad.lo.u32 %r1, %r0, 4, %r1;\nmov.u32 %r2, %ctaid.x;\nmul.wide.u32 %d2, %r2,"
        " 128;\nadd.s64 %d0, %d0, %d2;\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 st.shared.u32 [%r1], %r0;\nld.shared.u32"
        " %r3, [%r1];\nst.global.u32 [%d0], %r3;"
    )
    out = np.zeros(64, np.uint32)
    run(kernel(body), 32, (2, 1, 1), out=out)
    assert out[:32].tolist() == list(range(32)) and (out[32:] == 0xFFFFFFFF).all()
    assert np.isnan(out[32:].view(np.float32)).all()
    run(kernel(body), 32, (2, 1, 1), out=out, options=Options(poison=False))
    assert (out[32:] == 0).all()


def test_unwritten_registers_are_poison() -> None:
    assert (run(kernel("st.global.u32 [%d0], %r9;"))[0] == 0xFFFFFFFF).all()
    assert (run(kernel("st.global.u32 [%d0], %r9;"), options=Options(poison=False))[0] == 0).all()


def test_dynamic_shared_memory_follows_the_static() -> None:
    body = (
        f"{SHARED}mov.u32 %r1, dyn;\nmov.u32 %r2, s;\nsub.u32 %r3, %r1, %r2;\nmad.lo.u32 %r1, %r0, 4, %r1;\n"
        "st.shared.u32 [%r1], %r3;\nld.shared.u32 %r4, [%r1];\nst.global.u32 [%d0], %r4;"
    )
    k = kernel(body, declarations=".extern .shared .align 1024 .b8 dyn[];\n")
    assert k.static_shared_bytes == 256
    assert (run(k, dynamic=128)[0] == 1024).all()
    with pytest.raises(SimError, match="inside the block's shared memory"):
        run(k, dynamic=124)
    with pytest.raises(SimError, match="inside the block's shared memory"):
        run(k)


def test_local_memory_is_the_thread_s_own_and_bounded() -> None:
    body = (
        ".local .align 4 .b8 l[8];\nmov.u64 %d2, l;\nst.local.u32 [%d2+4], %r0;\nld.local.u32 %r1,"
        " [%d2+4];\nst.global.u32 [%d0], %r1;"
    )
    assert run(kernel(body), 64)[0].tolist() == list(range(64))
    with pytest.raises(SimError, match="inside the thread's local memory"):
        run(kernel(body.replace("[%d2+4], %r0", "[%d2+8], %r0")))


def test_narrow_loads_extend_and_narrow_stores_cut() -> None:
    body = (
        f"{SHARED}mov.u32 %r1, s;\nmad.lo.u32 %r1, %r0, 4, %r1;\nmov.u32 %r2, 0x1234ff85;\nst.shared.u8 [%r1],"
        " %r2;\nst.shared.u8 [%r1+1], 7;\nst.shared.u16 [%r1+2], %r2;\nld.shared.s8 %r3, [%r1];\nld.shared.u8 %r4,"
        " [%r1];\nld.shared.s16 %r5, [%r1+2];\nld.shared.u16 %h1, [%r1];\ncvt.u32.u16 %r6, %h1;\nadd.u32 %r3, %r3,"
        " %r4;\nadd.u32 %r3, %r3, %r5;\nadd.u32 %r3, %r3, %r6;\nst.global.u32 [%d0], %r3;"
    )
    assert run(kernel(body))[0][0] == (0xFFFFFF85 + 0x85 + 0xFFFFFF85 + 0x0785) % (1 << 32)


def test_a_vector_load_may_overwrite_its_own_address() -> None:
    body = (
        f"{SHARED}mov.u32 %r1, s;\nmov.u32 %r2, 40;\nmov.u32 %r3, 41;\nst.shared.v2.u32 [%r1], {{%r2, %r3}};\n"
        "ld.shared.v2.u32 {%r1, %r2}, [%r1];\nadd.u32 %r1, %r1, %r2;\nst.global.u32 [%d0], %r1;"
    )
    assert run(kernel(body))[0][0] == 81


def test_of_lanes_that_store_to_one_word_one_wins() -> None:
    body = f"{SHARED}mov.u32 %r1, s;\nst.shared.u32 [%r1], %r0;\nld.shared.u32 %r2, [%r1];\nst.global.u32 [%d0], %r2;"
    assert len(set(run(kernel(body))[0].tolist())) == 1


@pytest.mark.parametrize(
    "text",
    [
        "ld.global.b128 %d1, [%d0];",
        "ld.const.u32 %r1, [%d0];",
        "st.param.u32 [%d0], %r1;",
        "ld.global.v4.f64 {%x1, %x2, %x3, %x4}, [%d0];",
        "ld.global.L3::hint.u32 %r1, [%d0];",
        "ld.global.u32 %r1, [%r0];",
        "ld.global.v2.u32 {%r1}, [%d0];",
        "red.global.add.u32 [%d0], 1;",
        "atom.global.add.u32 %r1, [%d0], 1;",
        "ld.global.u32 %r1, %d0;",
        "ld.global.u32 %h1, [%d0];",
    ],
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(SimError) as e:
        run(kernel(text))
    assert text.rstrip(";") in str(e.value)
