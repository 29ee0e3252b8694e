"""PTX text to kernels: statements, scopes, labels, declarations, and where each instruction stands."""

from __future__ import annotations

import pytest

from layoutgen.errors import SimError
from layoutgen.sim import Options, parse, static_counts
from layoutgen.sim.parser import split_operands
from tests.sim.kernels import HEADER, kernel, run


def test_a_module_has_its_kernels() -> None:
    ptx = HEADER + "".join(f".visible .entry {n}()\n{{\nret;\n}}\n" for n in ("one", "_Z3twoPf"))
    module = parse(ptx)
    assert module.target == "sm_90a" and list(module.kernels) == ["one", "_Z3twoPf"]
    assert [len(k.instructions) for k in module.kernels.values()] == [1, 1]


def test_parameters_are_laid_out_with_their_alignment() -> None:
    k = kernel(
        "ret;",
        ".param .u32 a, .param .u64 b, .param .f32 c, .param .align 16 .b8 d[20], .param .u8 e, .param .u64 .ptr"
        " .global .align 16 f",
    )
    assert [(p.name, p.type, p.offset, p.size) for p in k.params] == [
        ("a", "u32", 0, 4),
        ("b", "u64", 8, 8),
        ("c", "f32", 16, 4),
        ("d", "b8", 32, 20),
        ("e", "u8", 52, 1),
        ("f", "u64", 56, 8),
    ]
    assert k.param_bytes == 64


def test_operands_keep_vectors_and_addresses_whole() -> None:
    assert split_operands("{%f1, %f2}, [%r1+16]") == ("{%f1, %f2}", "[%r1+16]")
    assert split_operands("[%d1, {%r1, %r2}], [%r3], 16") == ("[%d1, {%r1, %r2}]", "[%r3]", "16")
    assert split_operands("%p1|%p2, %r1, -3") == ("%p1|%p2", "%r1", "-3")
    assert split_operands("") == ()


def test_lines_are_those_of_the_text() -> None:
    ptx = (
        HEADER
        + "/* a\ncomment */ .visible .entry k()\n{\n  .reg .b32 %r<3>; // one\n\n  mov.u32 %r1, 1; mov.u32\n  %r2,"
        " 2;\n/* ; } */ L: ret;\n}\n"
    )
    lines = ptx.splitlines()
    ins = parse(ptx).kernels["k"].instructions
    assert [i.opcode for i in ins] == ["mov.u32", "mov.u32", "ret"]
    for i, word in zip(ins, ("mov.u32 %r1", "mov.u32", "ret"), strict=True):
        assert word in lines[i.line - 1]
    assert ins[1].text == "mov.u32 %r2, 2" and ins[1].operands == ("%r2", "2")


def test_loc_directives_give_source_lines() -> None:
    body = (
        ".loc 1 7 3\nmov.u32 %r1, 1;\n.loc 1 9 3, function_name $L__info, inlined_at 1 3 4\nmov.u32 %r2,"
        " 2;\nmov.u32 %r3, 2;"
    )
    ptx = HEADER + f'.visible .entry k()\n{{\n.reg .b32 %r<4>;\n{body}\nret;\n}}\n.file 1 "a dir/x.cu"\n'
    assert [i.source for i in parse(ptx).kernels["k"].instructions] == [("a dir/x.cu", 7), *[("a dir/x.cu", 9)] * 3]
    callers = [i.caller for i in parse(ptx).kernels["k"].instructions]
    assert callers == [None, *[("a dir/x.cu", 3)] * 3]
    assert kernel("ret;").instructions[-1].source is None


def test_inline_asm_scopes_have_names_of_their_own() -> None:
    """The same names in two scopes and outside, and a label that is used before it stands."""
    scope = (
        "{{\n.reg .pred p;\n.reg .b32 t<3>;\nsetp.lt.u32 p, %r0, {n};\nmov.u32 t1, {n};\nmov.u32 t2, 1;\n@!p bra"
        " DONE;\nadd.u32 t1, t1, t2;\nDONE:\nadd.u32 %r1, %r1, t1;\n}}\n"
    )
    body = (
        ".reg .pred p;\n.reg .b32 t1;\nsetp.eq.u32 p, %r0, 3;\nmov.u32 t1, 1000;\nmov.u32 %r1, 0;\n"
        + scope.format(n=4)
        + scope.format(n=20)
        + "@p add.u32 %r1, %r1, t1;\nst.global.u32 [%d0], %r1;"
    )
    got, _ = run(kernel(body))
    assert got.tolist() == [24 + (t < 4) + (t < 20) + 1000 * (t == 3) for t in range(32)]


def test_nested_scopes_see_the_names_around_them() -> None:
    body = (
        "{ .reg .b32 x; mov.u32 x, 5; { .reg .b32 y; mov.u32 y, x; { .reg .b32 x; mov.u32 x, 7; add.u32 y, y, x; }"
        " add.u32 y, y, x; mov.u32 %r1, y; } }\nst.global.u32 [%d0], %r1;"
    )
    assert run(kernel(body))[0][0] == 17


def test_the_shape_that_cute_s_inline_asm_has() -> None:
    body = (
        "// begin inline asm\n{\n  .reg .pred p;\n  setp.ne.b32 p, %r0, 0;\n  @p st.global.u32 [%d0], 9;\n}\n\n//"
        " end inline asm\n// begin inline asm\n{.reg .b16 low;\n  cvt.u16.u32 low, %r0;\n mov.b32 %r5, {low,"
        " 0};}\n\n// end inline asm\n"
    )
    assert run(kernel(body))[0].tolist() == [0xFFFFFFFF] + [9] * 31


def test_shared_variables_are_placed_with_their_alignment() -> None:
    k = kernel(".shared .align 4 .b8 a[6];\n.shared .align 16 .b8 b[8];\n.shared .f32 c[2][3];\nret;")
    assert [(v.name, v.offset, v.size) for v in k.variables.values()] == [("a", 0, 6), ("b", 16, 8), ("c", 24, 24)]
    assert k.static_shared_bytes == 48


def test_variables_of_the_module_count_where_they_are_used() -> None:
    outside = ".shared .align 4 .b8 used[16];\n.shared .align 4 .b8 other[4096];\n.global .align 1 .b8 _ZN4cuteE[1];\n"
    k = kernel("mov.u32 %r1, used;\nret;", declarations=outside)
    assert k.static_shared_bytes == 16 and list(k.variables) == ["used"]


def test_static_counts_are_by_class_and_width() -> None:
    k = kernel(
        "ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r1];\nld.shared.f32 %f1, [%r1];\nst.shared.v2.b32 [%r1], {%r1,"
        " %r2};\nld.global.nc.L1::no_allocate.v4.f32 {%f1, %f2, %f3, %f4}, [%d1];\nld.global.f32 %f1,"
        " [%d1];\nst.global.b16 [%d1], %h1;\ncp.async.ca.shared.global [%r1], [%d1],"
        " 4;\ncp.async.cg.shared.global.L2::128B [%r1], [%d1], 16, %r2;\nld.u64 %d2,"
        " [%d1];\ncp.async.wait_all;\nld.shared.f32 %f2, [%r1];"
    )
    assert static_counts(k) == {
        ("ld.shared", 16): 1,
        ("ld.shared", 4): 2,
        ("st.shared", 8): 1,
        ("ld.global", 16): 1,
        ("ld.global", 4): 1,
        ("st.global", 2): 1,
        ("cp.async", 4): 1,
        ("cp.async", 16): 1,
        ("ld.generic", 8): 1,
    }


def test_a_refusal_names_the_instruction_and_its_line() -> None:
    k = kernel("mov.u32 %r1, 1;\nfrobnicate.u32 %r1, %r2;\nret;")
    with pytest.raises(SimError) as e:
        run(k, options=Options())
    line = next(i.line for i in k.instructions if i.opcode.startswith("frob"))
    assert f"`frobnicate.u32 %r1, %r2` (PTX line {line})" in str(e.value) and str(e.value).startswith(f"k.ptx:{line}:")


@pytest.mark.parametrize(
    "ptx, rule",
    [
        ("", "names its .target"),
        (HEADER + ".visible .entry k(\n)\n{\nret;\n", "closing brace"),
        (HEADER + ".entry k(.param .v4 x)\n{\nret;\n}", ".param declaration"),
        (HEADER + ".entry k()\n{\n.branchtargets a, b;\n}", "knows this directive"),
        (HEADER + ".entry k()\n{\n%r1 = 5;\n}", "label, a directive or an instruction"),
        (HEADER + "// \u00e9\n", "ASCII"),
    ],
)
def test_text_that_is_no_ptx(ptx: str, rule: str) -> None:
    with pytest.raises(SimError, match=rule):
        parse(ptx)
