"""Source -> PTX -> cubin -> SASS: results, reports and what a kernel's author reads when something is refused."""

from __future__ import annotations

import dataclasses
import tempfile

import pytest

from layoutgen.build import assemble, build, compile_ptx, sass, sass_counts, toolchain
from layoutgen.build import nvdisasm as nvdisasm_module
from layoutgen.build.nvrtc import compile_options
from layoutgen.errors import BuildError

CUTE = """
#include <cute/tensor.hpp>
using namespace cute;
using SmemLayout = Layout<Shape<_32, _4>, Stride<_1, Int<36>>>;
static_assert(cosize_v<SmemLayout> == 140);

extern "C" __global__ void transpose(float const* in, float* out) {
  alignas(16) __shared__ float smem[cosize_v<SmemLayout>];
  Tensor s = make_tensor(make_smem_ptr(smem), SmemLayout{});
  Tensor g = make_tensor(make_gmem_ptr(in), make_shape(_32{}, _4{}));
  s(threadIdx.x % 32, threadIdx.x / 32) = g(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = s(threadIdx.x / 4, threadIdx.x % 4);
}
"""

# One access of each kind and width, so that every count is known from the text.
ACCESSES = r"""
extern "C" __global__ void accesses(float4* x, float2* y, float* z, unsigned long long w) {
  __shared__ float4 s[256];
  unsigned at = (unsigned)__cvta_generic_to_shared(s) + threadIdx.x * 16;
  float4 v = x[threadIdx.x];
  float2 u = y[threadIdx.x];
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at), "l"(w) : "memory");
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(at + 8), "l"(w + 8) : "memory");
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at + 4096), "l"(w + 16) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"
               :: "r"(at), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" :: "r"(at + 64), "f"(u.x), "f"(u.y) : "memory");
  __syncthreads();
  float a, b, c, d;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "r"(at ^ 32) : "memory");
  z[threadIdx.x] = fmaf(a, b, c) + d;
}
"""

SPILLS = """
extern "C" __global__ __launch_bounds__(1024, 2) void spills(float* x, int k) {
  float a[48];
  #pragma unroll
  for (int i = 0; i < 48; ++i) a[i] = x[i * k];
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < 48; ++i) x[i * k + 1] = a[i] * a[(i * 7) % 48];
}
"""


def test_cute_compiles_and_its_layout_is_what_the_kernel_takes() -> None:
    ptx = compile_ptx(CUTE, "transpose.cu", "sm_80")
    assert ptx.kernels == ("transpose",)
    assert ".target sm_80" in ptx.text
    assert ptx.seconds > 0.2  # CuTe's headers alone take longer
    cubin, resources = assemble(ptx, "sm_80")
    assert cubin.startswith(b"\x7fELF")
    assert resources.static_shared == 140 * 4
    assert 0 < resources.registers <= 255
    assert resources.constant >= 16  # the two pointers


def test_a_compile_error_names_file_line_and_cause() -> None:
    source = 'extern "C" __global__ void k(int* x) {\n  *x = 1;\n  *x = undeclared;\n  *x = another;\n}\n'
    with pytest.raises(BuildError) as caught:
        compile_ptx(source, "mine.cu")
    assert str(caught.value.where) == "mine.cu:3"
    assert caught.value.got is not None
    assert caught.value.got.splitlines()[0] == 'identifier "undeclared" is undefined'
    assert "mine.cu(4)" in caught.value.got  # the log follows, later errors too


def test_an_error_that_stops_the_compiler_has_its_place_too() -> None:
    with pytest.raises(BuildError) as caught:
        compile_ptx("\n#include <nowhere.h>\n", "mine.cu")
    assert str(caught.value.where) == "mine.cu:2"
    assert "nowhere.h" in str(caught.value)


def test_a_long_log_is_cut_and_says_so() -> None:
    source = "".join(f"int a{i} = missing{i};\n" for i in range(60))
    with pytest.raises(BuildError) as caught:
        compile_ptx(source, "mine.cu")
    assert caught.value.got is not None
    assert len(caught.value.got.splitlines()) < 40
    assert "more lines)" in caught.value.got


def test_warnings_are_kept(scale: str) -> None:
    assert compile_ptx(scale, "scale.cu").log == ""
    assert "unused" in compile_ptx(scale.replace("long long i", "int unused; long long i"), "scale.cu").log


@pytest.mark.parametrize("arch", ["90a", "sm_9", "sm_90x", "compute_90", "", "sm_90a\n"])
def test_an_arch_is_written_one_way(arch: str) -> None:
    with pytest.raises(BuildError, match="written like sm_90a"):
        compile_ptx("", "mine.cu", arch)


def test_an_arch_that_nvrtc_lacks_lists_those_it_has() -> None:
    with pytest.raises(BuildError) as caught:
        compile_ptx("", "mine.cu", "sm_50")
    assert caught.value.allowed is not None and "sm_90" in caught.value.allowed.split(", ")


def test_the_arch_and_its_features_reach_the_compiler(scale: str) -> None:
    assert "--gpu-architecture=compute_90a" in compile_options("sm_90a")
    assert ".target sm_90a" in compile_ptx(scale, "scale.cu", "sm_90a").text


def test_instructions_keep_their_source_lines(scale: str) -> None:
    assert "\t.loc\t" in compile_ptx(scale, "scale.cu").text


def test_an_assembler_error_names_the_line_of_ptx(scale: str) -> None:
    ptx = compile_ptx(scale, "scale.cu")
    broken = ptx.text.replace("mul.f32", "mulx.f32")
    line = next(number for number, text in enumerate(broken.splitlines(), 1) if "mulx" in text)
    with pytest.raises(BuildError) as caught:
        assemble(dataclasses.replace(ptx, text=broken), "sm_90a")
    assert str(caught.value.where) == f"scale.ptx:{line}"
    assert "mulx" in str(caught.value) and tempfile.gettempdir() not in str(caught.value)


def test_resources_are_those_of_the_kernel_asked_for() -> None:
    two = """extern "C" __global__ void small(int* x) { x[0] = 1; }
    extern "C" __global__ void shared(int* x) { __shared__ int s[300]; s[threadIdx.x] = x[0]; __syncthreads();
      x[threadIdx.x] = s[299 - threadIdx.x]; }"""
    ptx = compile_ptx(two, "two.cu")
    assert set(ptx.kernels) == {"small", "shared"}
    assert assemble(ptx, "sm_90a", "small")[1].static_shared == 0
    assert assemble(ptx, "sm_90a", "shared")[1].static_shared == 1200
    for name in (None, "neither"):
        with pytest.raises(BuildError) as caught:
            assemble(ptx, "sm_90a", name)
        assert caught.value.allowed is not None and set(caught.value.allowed.split(", ")) == {"small", "shared"}


def test_a_kernel_by_another_name_is_refused(scale: str, tmp_path: object) -> None:
    with pytest.raises(BuildError) as caught:
        build(scale, "scales", cache=tmp_path / "cache")  # type: ignore[operator]
    assert caught.value.got == "kernels scale"
    with pytest.raises(BuildError) as caught:
        build(scale.replace('extern "C"', ""), "scale", cache=tmp_path / "cache")  # type: ignore[operator]
    assert caught.value.fix is not None and 'extern "C"' in caught.value.fix


def test_sass_counts_tell_every_width() -> None:
    cubin, _ = assemble(compile_ptx(ACCESSES, "accesses.cu"), "sm_90a")
    counts = sass_counts(cubin)
    memory = {key: count for key, count in counts.items() if key[0] in ("ldg", "stg", "ldgsts", "lds", "sts")}
    assert memory == {
        ("ldg", 16): 1,
        ("ldg", 8): 1,
        ("ldgsts", 4): 1,
        ("ldgsts", 8): 1,
        ("ldgsts", 16): 1,
        ("sts", 16): 1,
        ("sts", 8): 1,
        ("lds", 16): 1,
        ("stg", 4): 1,
    }
    assert counts["ffma", 0] == 1
    assert counts["bar", 0] == 1
    assert "LDGSTS" in sass(cubin)


def test_spills_agree_between_the_report_and_the_code() -> None:
    """ptxas counts spilled bytes; the disassembled STL and LDL are a second witness."""
    cubin, resources = assemble(compile_ptx(SPILLS, "spills.cu"), "sm_90a")
    counts = sass_counts(cubin)
    moved = {name: sum(width * n for (opcode, width), n in counts.items() if opcode == name) for name in ("stl", "ldl")}
    assert resources.spill_stores == moved["stl"] > 0
    assert resources.spill_loads == moved["ldl"] > 0
    assert resources.stack > 0
    assert resources.registers == 32  # 65536 registers for two blocks of 1024 threads


def test_matrix_loads_count_their_registers() -> None:
    source = r"""extern "C" __global__ void k(unsigned* x) {
      __shared__ unsigned s[1024]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads();
      unsigned at = (unsigned)__cvta_generic_to_shared(s) + threadIdx.x * 16, a, b, c, d, e;
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory");
      asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(e) : "r"(at) : "memory");
      x[threadIdx.x] = a + b + c + d + e; }"""
    counts = sass_counts(assemble(compile_ptx(source, "k.cu"), "sm_90a")[0])
    assert {key: n for key, n in counts.items() if key[0] == "ldsm"} == {("ldsm", 16): 1, ("ldsm", 4): 1}


def test_without_the_disassembler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    without = dataclasses.replace(toolchain(), nvdisasm=None)
    monkeypatch.setattr(nvdisasm_module, "toolchain", lambda: without)
    with pytest.raises(BuildError, match="pip install nvidia-cuda-nvdisasm"):
        sass(b"")


def test_a_cubin_that_is_none_is_refused() -> None:
    with pytest.raises(BuildError, match="nvdisasm reads the cubin"):
        sass(b"not an ELF file")
