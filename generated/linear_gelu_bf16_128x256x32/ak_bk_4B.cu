// linear_gelu_bf16_128x256x32, variant ak_bk_4B: D = alpha * A * B + beta * C in bf16, D in bf16, summed in f32 by SM80_16x8x16_F32BF16BF16F32_TN.
// Then: bias: one for each column, then gelu, exact.
// bf16 by mma.sync, with a bias for each column and gelu before the store
//
// Block: tile 128x256x32, 256 threads, 4 stages, 98304 bytes of shared memory.
// Takes:
//   A (m,k) contiguous in k, rows on 4-byte boundaries
//   B (n,k) contiguous in k, rows on 4-byte boundaries
//   C and D (m,n) contiguous in n, rows on 4-byte boundaries
//
// Emitted by layoutgen from the spec linear_gelu_bf16_128x256x32.yaml: edit the spec, not this file. Layouts map from left to right
// (thread -> m: the thread's first row in the block tile of C) and were proved to cover every tile exactly once.
#include <cute/tensor_impl.hpp>   // cute/tensor.hpp without its algorithms: less than half the time to compile
#include <cute/algorithm/clear.hpp>
#include <cute/swizzle.hpp>
#include <cute/swizzle_layout.hpp>
#include <cute/arch/mma_sm80.hpp>
#include <cute/arch/copy_sm80.hpp>

using namespace cute;

// ---- Accesses that stay where the program puts them, at its width: the compiler moves, sinks and splits plain ones ---
// One function for each, named after it, so that line information tells which access an instruction is. Where shared
// memory is asked for, it is by an address that the compiler takes for a whole, plus a constant: one instruction.
CUTE_DEVICE void load_fragment_a(uint32_t from, uint32_t& r0, uint32_t& r1, uint32_t& r2, uint32_t& r3) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(from) : "memory");   // fragment_a
}

CUTE_DEVICE void load_fragment_b(uint32_t from, uint32_t& r0, uint32_t& r1, uint32_t& r2, uint32_t& r3) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(from) : "memory");   // fragment_b
}

CUTE_DEVICE uint32_t load_global_c(uint32_t const& from) {
  uint32_t to;
  asm volatile("ld.global.b32 %0, [%1];" : "=r"(to) : "l"(&from) : "memory");   // read_c
  return to;
}

CUTE_DEVICE void copy_async_a(uint32_t to, uint32_t const& from) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4;" :: "r"(to), "l"(&from) : "memory");   // copy_a
}

CUTE_DEVICE void copy_async_or_zero_a(bool valid, uint32_t to, uint32_t const& from) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4, %2;" :: "r"(to), "l"(&from), "r"(valid ? 4 : 0) : "memory");   // copy_a
}

CUTE_DEVICE void copy_async_b(uint32_t to, uint32_t const& from) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4;" :: "r"(to), "l"(&from) : "memory");   // copy_b
}

CUTE_DEVICE void copy_async_or_zero_b(bool valid, uint32_t to, uint32_t const& from) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4, %2;" :: "r"(to), "l"(&from), "r"(valid ? 4 : 0) : "memory");   // copy_b
}

CUTE_DEVICE uint32_t read_bias(uint32_t const& from) {
  uint32_t to;
  asm volatile("ld.global.b32 %0, [%1];" : "=r"(to) : "l"(&from) : "memory");   // read_bias
  return to;
}

// ---- What the epilogue computes -----------------------------------------------------------------------------------
CUTE_DEVICE float min_nan(float x, float y) {
  float least;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(x), "f"(y));
  return least;
}

CUTE_DEVICE float exp2_approx(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

CUTE_DEVICE float gelu_exact(float x) {   // max(x, 0) - z 2^p(z)
  float const z = min_nan(fabsf(x), 14.0f);
  float p = 5.1291081604176725e-08f;
  p = fmaf(p, z, -1.6958775859166053e-06f);
  p = fmaf(p, z, 1.9061517377849668e-05f);
  p = fmaf(p, z, -6.9380272179842e-05f);
  p = fmaf(p, z, -0.0004685221938416362f);
  p = fmaf(p, z, 0.0075726755894720554f);
  p = fmaf(p, z, -0.05291495472192764f);
  p = fmaf(p, z, -0.45904073119163513f);
  p = fmaf(p, z, -1.1511305570602417f);
  p = fmaf(p, z, -0.9999993443489075f);
  return fmaf(-z, exp2_approx(p), fmaxf(x, 0.f));
}

// ---- The block tile of C: who owns what ---------------------------------------------------------------------------
using BlockM = _128;
using BlockN = _256;
using BlockK = _32;
constexpr int kStages = 4;
constexpr int kGroup = 8;
using ThreadM = Layout<Shape<Shape<_4,_8>,Shape<_2,_4>>,Stride<Stride<_0,_1>,Stride<_64,_0>>>;   // thread -> m: ((4,8),(2,4)):((0,1),(64,0))
using ThreadN = Layout<Shape<Shape<_4,_8>,Shape<_2,_4>>,Stride<Stride<_2,_0>,Stride<_0,_64>>>;   // thread -> n: ((4,8),(2,4)):((2,0),(0,64))
using ValueM = Layout<_8,_8>;   // value -> m: 8:8
using ValueN = Layout<Shape<_2,_8>,Stride<_1,_8>>;   // value -> n: (2,8):(1,8)
using Order = Layout<Shape<_8,_4>,Stride<_4,_1>>;   // step -> atom of a warp's tile, (atom_m, atom_n): (8,4):(4,1)

// ---- A and B: shared memory (x, k, stage), a thread's fragment of it, and the copy from global memory ----
using SmemA = ComposedLayout<Swizzle<2,3,3>,_0,Layout<Shape<_128,_32,_4>,Stride<_32,_1,_4096>>>;   // (m, k, stage) -> bfloat16_t: Sw<2,3,3> o 0 o (128,32,4):(32,1,4096)
constexpr int kSmemA = 16384;   // bfloat16_ts, all stages
using FragmentAThread = ComposedLayout<Swizzle<2,3,3>,_0,Layout<Shape<Shape<_8,Shape<_2,_2>,_1>,Shape<_2,_4>>,Stride<Stride<_32,Stride<_256,_8>,_0>,Stride<_2048,_0>>>>;   // thread -> bfloat16_t: Sw<2,3,3> o 0 o ((8,(2,2),1),(2,4)):((32,(256,8),0),(2048,0))
using FragmentA = Layout<Shape<_4,_2,_4>,Stride<_64,_0,_512>>;   // (vector, k, stage) -> uint128_t: (4,2,4):(64,0,512)
using FragmentAFlips = Layout<Shape<_4,_2,_4>,Stride<_0,_2,_0>>;   // (vector, k, stage) -> uint128_t, by exclusive or: (4,2,4):(0,2,0)
using CopyAThreadX = Layout<Shape<_16,_16>,Stride<_0,_1>>;   // thread -> m: (16,16):(0,1)
using CopyAThreadK = Layout<Shape<_16,_16>,Stride<_2,_0>>;   // thread -> k: (16,16):(2,0)
using CopyAElementX = Layout<_8,_16>;   // i -> m: 8:16
using CopyAElementK = Layout<_2,_1>;   // j -> k: 2:1
using CopyAThread = ComposedLayout<Swizzle<2,3,3>,_0,Layout<Shape<_16,_16>,Stride<_2,_32>>>;   // thread -> bfloat16_t: Sw<2,3,3> o 0 o (16,16):(2,32)
using CopyA = Layout<Shape<_8,_1,_4>,Stride<_256,_0,_2048>>;   // (i, j, stage) -> uint32_t: (8,1,4):(256,0,2048)

using SmemB = ComposedLayout<Swizzle<2,3,3>,_0,Layout<Shape<_256,_32,_4>,Stride<_32,_1,_8192>>>;   // (n, k, stage) -> bfloat16_t: Sw<2,3,3> o 0 o (256,32,4):(32,1,8192)
constexpr int kSmemB = 32768;   // bfloat16_ts, all stages
using FragmentBThread = ComposedLayout<Swizzle<2,3,3>,_0,Layout<Shape<Shape<_8,Shape<_2,_2>,_1>,Shape<_2,_4>>,Stride<Stride<_32,Stride<_8,_256>,_0>,Stride<_0,_2048>>>>;   // thread -> bfloat16_t: Sw<2,3,3> o 0 o ((8,(2,2),1),(2,4)):((32,(8,256),0),(0,2048))
using FragmentB = Layout<Shape<_4,_2,_4>,Stride<_64,_0,_1024>>;   // (vector, k, stage) -> uint128_t: (4,2,4):(64,0,1024)
using FragmentBFlips = Layout<Shape<_4,_2,_4>,Stride<_0,_2,_0>>;   // (vector, k, stage) -> uint128_t, by exclusive or: (4,2,4):(0,2,0)
using CopyBThreadX = Layout<Shape<_16,_16>,Stride<_0,_1>>;   // thread -> n: (16,16):(0,1)
using CopyBThreadK = Layout<Shape<_16,_16>,Stride<_2,_0>>;   // thread -> k: (16,16):(2,0)
using CopyBElementX = Layout<_16,_16>;   // i -> n: 16:16
using CopyBElementK = Layout<_2,_1>;   // j -> k: 2:1
using CopyBThread = ComposedLayout<Swizzle<2,3,3>,_0,Layout<Shape<_16,_16>,Stride<_2,_32>>>;   // thread -> bfloat16_t: Sw<2,3,3> o 0 o (16,16):(2,32)
using CopyB = Layout<Shape<_16,_1,_4>,Stride<_256,_0,_4096>>;   // (i, j, stage) -> uint32_t: (16,1,4):(256,0,4096)

// ---- What the plan promises, restated ------------------------------------------------------------------------------
static_assert(size(ThreadM{}) == 256 && size(ThreadN{}) == 256);
static_assert(256 * size(ValueM{}) * size(ValueN{}) == BlockM{} * BlockN{});
static_assert(cosize_v<SmemA> <= kSmemA);
static_assert(256 * size(CopyAElementX{}) * size(CopyAElementK{}) == BlockM{} * BlockK{});
static_assert(cosize_v<SmemB> <= kSmemB);
static_assert(256 * size(CopyBElementX{}) * size(CopyBElementK{}) == BlockN{} * BlockK{});

extern "C" __global__ __launch_bounds__(256, 1)
void linear_gelu_bf16_128x256x32(
    int m, int n, int k,
    bfloat16_t const* __restrict__ A, int64_t a_m, int64_t a_k,   // A(m,k) at A[m * a_m + k * a_k]
    bfloat16_t const* __restrict__ B, int64_t b_n, int64_t b_k,   // B(n,k) at B[n * b_n + k * b_k]
    bfloat16_t const* C, int64_t c_m,                             // C(m,n) at C[m * c_m + n], not read where beta is 0
    bfloat16_t* D, int64_t d_m,                                   // D(m,n) at D[m * d_m + n]
    float alpha, float beta,
    bfloat16_t const* __restrict__ bias_data)   // (n)
{
  // ---- Preconditions: the host checks strides, alignment and devices; extents may be anything from 0 ---------------
  int const thread = threadIdx.x;
  extern __shared__ __align__(1024) bfloat16_t smem[];
  bfloat16_t* const smem_a = smem;
  bfloat16_t* const smem_b = smem + kSmemA;

  // ---- This block's work: neighbouring blocks walk m within groups of 8 tiles, and share rows of A and columns of B in L2 ----
  int const tiles_m = ceil_div(m, BlockM{});
  int const tiles_n = ceil_div(n, BlockN{});
  int const group_size = min(kGroup, tiles_m);   // so that a group has no more tiles than the grid
  int const group = int(blockIdx.x) / (group_size * tiles_n);
  int const in_group = int(blockIdx.x) % (group_size * tiles_n);
  int const group_width = min(tiles_m - group * group_size, group_size);
  int const tile_m = group * group_size + in_group % group_width;
  int const tile_n = in_group / group_width;
  int const m0 = tile_m * BlockM{};
  int const n0 = tile_n * BlockN{};
  int const k_tiles = ceil_div(k, BlockK{});
  // The ragged k-tile comes first: its leading `ragged` columns lie before k = 0 and land as zeros, so that no later
  // tile needs a bound on k.
  int const ragged = k_tiles * BlockK{} - k;

  // ---- Cursors: k-tiles left to fetch, rows of A and B that may be fetched (none once no tile is left) ----
  int tiles_left = k_tiles;
  int rows_a = tiles_left > 0 ? m : 0;
  int rows_b = tiles_left > 0 ? n : 0;

  // ---- Full tensors ------------------------------------------------------------------------------------------------
  Tensor mA = make_tensor(make_gmem_ptr(A), make_layout(make_shape(m, k), make_stride(a_m, _1{})));   // (m, k)
  Tensor mB = make_tensor(make_gmem_ptr(B), make_layout(make_shape(n, k), make_stride(b_n, _1{})));   // (n, k)
  Tensor mC = make_tensor(make_gmem_ptr(C), make_layout(make_shape(m, n), make_stride(c_m, _1{})));   // (m, n)
  Tensor mD = make_tensor(make_gmem_ptr(D), make_layout(make_shape(m, n), make_stride(d_m, _1{})));   // (m, n)

  // ---- This thread's elements of a k-tile of A and B, from global to shared memory ----
  // A: cp.async, 4 bytes a piece
  int const x_a = m0 + CopyAThreadX{}(thread);
  int const k_a = CopyAThreadK{}(thread) - ragged;   // of the first tile: negative before k = 0
  Tensor tAgA = make_tensor(make_gmem_ptr(A + mA.layout()(x_a, k_a)), make_layout(make_shape(BlockM{}, BlockK{}), mA.stride()));   // (m, k) from the thread's first element
  auto const a_tile = BlockK{} * stride<1>(mA);   // one k-tile on
  Tensor tAsA = make_tensor(make_smem_ptr(reinterpret_cast<uint32_t*>(smem_a + CopyAThread{}(thread))), CopyA{});   // (i, j, stage) in uint32_t

  // B: cp.async, 4 bytes a piece
  int const x_b = n0 + CopyBThreadX{}(thread);
  int const k_b = CopyBThreadK{}(thread) - ragged;   // of the first tile: negative before k = 0
  Tensor tBgB = make_tensor(make_gmem_ptr(B + mB.layout()(x_b, k_b)), make_layout(make_shape(BlockN{}, BlockK{}), mB.stride()));   // (n, k) from the thread's first element
  auto const b_tile = BlockK{} * stride<1>(mB);   // one k-tile on
  Tensor tBsB = make_tensor(make_smem_ptr(reinterpret_cast<uint32_t*>(smem_b + CopyBThread{}(thread))), CopyB{});   // (i, j, stage) in uint32_t

  // Shared memory's addresses in the stage that is written. Opaque to the compiler, so that each access is one of them
  // plus a constant.
  uint32_t write_a, write_b;
  auto write_stage = [&](int stage) {
    write_a = cast_smem_ptr_to_uint(&tAsA(0, 0, stage));
    write_b = cast_smem_ptr_to_uint(&tBsB(0, 0, stage));
    asm volatile("" : "+r"(write_a), "+r"(write_b));
    return stage;
  };
  auto next_stage = [](int stage) { return stage + 1 == kStages ? 0 : stage + 1; };
  int write = write_stage(0);

  auto copy_first_a = [&]() {   // start copying A's next k-tile into the write stage; what lies before k = 0 is zero
    CUTE_UNROLL
    for (int j = 0; j < 1; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < 8; ++i) {
        auto const& from = reinterpret_cast<uint32_t const&>(tAgA(CopyAElementX{}(i), CopyAElementK{}(j * 2)));
        copy_async_or_zero_a(x_a + CopyAElementX{}(i) < rows_a && k_a + CopyAElementK{}(j * 2) >= 0, write_a + CopyA{}(i, j, 0) * sizeof(uint32_t), from);
      }
    }
  };

  auto copy_first_b = [&]() {   // start copying B's next k-tile into the write stage; what lies before k = 0 is zero
    CUTE_UNROLL
    for (int j = 0; j < 1; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < 16; ++i) {
        auto const& from = reinterpret_cast<uint32_t const&>(tBgB(CopyBElementX{}(i), CopyBElementK{}(j * 2)));
        copy_async_or_zero_b(x_b + CopyBElementX{}(i) < rows_b && k_b + CopyBElementK{}(j * 2) >= 0, write_b + CopyB{}(i, j, 0) * sizeof(uint32_t), from);
      }
    }
  };

  auto copy_a = [&]() {   // start copying A's next k-tile into the write stage
    CUTE_UNROLL
    for (int j = 0; j < 1; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < 8; ++i) {
        auto const& from = reinterpret_cast<uint32_t const&>(tAgA(CopyAElementX{}(i), CopyAElementK{}(j * 2)));
        if (x_a + CopyAElementX{}(i) < rows_a) copy_async_a(write_a + CopyA{}(i, j, 0) * sizeof(uint32_t), from);
      }
    }
  };

  auto copy_b = [&]() {   // start copying B's next k-tile into the write stage
    CUTE_UNROLL
    for (int j = 0; j < 1; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < 16; ++i) {
        auto const& from = reinterpret_cast<uint32_t const&>(tBgB(CopyBElementX{}(i), CopyBElementK{}(j * 2)));
        if (x_b + CopyBElementX{}(i) < rows_b) copy_async_b(write_b + CopyB{}(i, j, 0) * sizeof(uint32_t), from);
      }
    }
  };

  auto next_tile = [&]() {
    tAgA.data() = tAgA.data() + a_tile;
    tBgB.data() = tBgB.data() + b_tile;
    --tiles_left;
    rows_a = tiles_left > 0 ? m : 0;
    rows_b = tiles_left > 0 ? n : 0;
  };

  // ---- Fragments: from shared memory to registers, 2 slots ----
  Tensor tCsA = make_tensor(make_smem_ptr(reinterpret_cast<uint128_t const*>(smem_a + FragmentAThread{}(thread))), FragmentA{});   // (load, k, stage)
  Tensor tCrA = make_tensor<uint32_t>(Shape<Shape<_4,_4>,_2>{});   // ((register,atom_m), slot)
  Tensor tCsB = make_tensor(make_smem_ptr(reinterpret_cast<uint128_t const*>(smem_b + FragmentBThread{}(thread))), FragmentB{});   // (load, k, stage)
  Tensor tCrB = make_tensor<uint32_t>(Shape<Shape<_2,_8>,_2>{});   // ((register,atom_n), slot)
  // Their addresses in the stage that is read.
  uint32_t read_a, read_b;
  auto read_stage = [&](int stage) {
    read_a = cast_smem_ptr_to_uint(&tCsA(0, 0, stage));
    read_b = cast_smem_ptr_to_uint(&tCsB(0, 0, stage));
    asm volatile("" : "+r"(read_a), "+r"(read_b));
    return stage;
  };
  int read = read_stage(0);
  auto load_fragment = [&](int k_index, int slot) {   // of the read stage: 4 ldmatrix of A, 4 ldmatrix of B
    CUTE_UNROLL
    for (int v = 0; v < 4; ++v) load_fragment_a((read_a ^ FragmentAFlips{}(0, k_index, 0) * sizeof(uint128_t)) + FragmentA{}(v, k_index, 0) * sizeof(uint128_t), tCrA(v * 4, slot), tCrA(v * 4 + 1, slot), tCrA(v * 4 + 2, slot), tCrA(v * 4 + 3, slot));
    CUTE_UNROLL
    for (int v = 0; v < 4; ++v) load_fragment_b((read_b ^ FragmentBFlips{}(0, k_index, 0) * sizeof(uint128_t)) + FragmentB{}(v, k_index, 0) * sizeof(uint128_t), tCrB(v * 4, slot), tCrB(v * 4 + 1, slot), tCrB(v * 4 + 2, slot), tCrB(v * 4 + 3, slot));
  };
  // ---- Accumulators, and one atom's K of each of the warp's atoms ----
  Tensor tCrC = make_tensor<float>(Shape<_8,_16>{});   // (value_m, value_n)
  clear(tCrC);
  auto mma = [&](int slot) {   // m outer, n inner
    CUTE_UNROLL
    for (int step = 0; step < 32; ++step) {
      int const atom = Order{}(step);
      int const i = atom % 4, j = atom / 4;
      SM80_16x8x16_F32BF16BF16F32_TN::fma(tCrC(i * 2, j * 2), tCrC(i * 2, j * 2 + 1), tCrC(i * 2 + 1, j * 2), tCrC(i * 2 + 1, j * 2 + 1),
        tCrA(make_coord(0, i), slot), tCrA(make_coord(1, i), slot), tCrA(make_coord(2, i), slot), tCrA(make_coord(3, i), slot),
        tCrB(make_coord(0, j), slot), tCrB(make_coord(1, j), slot),
        tCrC(i * 2, j * 2), tCrC(i * 2, j * 2 + 1), tCrC(i * 2 + 1, j * 2), tCrC(i * 2 + 1, j * 2 + 1));
    }
  };

  // ---- What the epilogue's steps need of a thread's columns, on its way during the main loop ----
  Tensor g_bias = make_tensor<bfloat16_t>(Shape<Int<16>>{});   // (stored value)
  CUTE_UNROLL
  for (int j = 0; j < size(ValueN{}); j += _2{}) {
    int const col = n0 + ThreadN{}(thread) + ValueN{}(j);
    if (col < n) {
      recast<uint32_t>(g_bias)(j / 2) = read_bias(reinterpret_cast<uint32_t const&>(bias_data[col]));
    }
  }

  // ---- Prologue ----------------------------------------------------------------------------------------------------
  copy_first_a();
  copy_first_b();
  next_tile();
  cp_async_fence();
  write = write_stage(next_stage(write));
  copy_a();
  copy_b();
  next_tile();
  cp_async_fence();
  write = write_stage(next_stage(write));
  copy_a();
  copy_b();
  next_tile();
  cp_async_fence();
  write = write_stage(next_stage(write));
  cp_async_wait<2>();
  __syncthreads();
  load_fragment(0, 0);

  // ---- Main loop: multiply one k-tile a turn while the one kStages - 1 ahead is copied ----
  CUTE_NO_UNROLL
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    load_fragment(1, 1);
    copy_a();
    copy_b();
    cp_async_fence();
    write = write_stage(next_stage(write));
    next_tile();
    mma(0);
    cp_async_wait<2>();
    __syncthreads();
    read = read_stage(next_stage(read));
    load_fragment(0, 0);
    mma(1);

  }

  // ---- Epilogue: D = alpha * accumulator + beta * C, 4 bytes at a time ----
  auto store_d = [&](auto reads_c) {
    Tensor e_bias = make_tensor<float>(g_bias.layout());
    CUTE_UNROLL
    for (int v = 0; v < size(e_bias); ++v) e_bias(v) = float(g_bias(v));
    CUTE_NO_UNROLL
    for (int first = 0; first < size(ValueM{}); first += 4) {   // a turn's text stays in the instruction cache
      CUTE_UNROLL
      for (int i = 0; i < 4; ++i) {
        int const row = m0 + ThreadM{}(thread) + ValueM{}(first + i);
        CUTE_UNROLL
        for (int j = 0; j < size(ValueN{}); j += 2) {
          int const col = n0 + ThreadN{}(thread) + ValueN{}(j);
          bool const inside = row < m && col < n;   // guards memory alone: the compiler may interleave the steps of runs
          {
            Tensor rD = make_tensor<float>(Shape<_2>{});
            CUTE_UNROLL
            for (int v = 0; v < size(rD); ++v) rD(v) = alpha * tCrC(i, j + v);
            if constexpr (reads_c) if (inside) {
              Tensor rC = make_tensor<bfloat16_t>(Shape<_2>{});
              recast<uint32_t>(rC)(0) = load_global_c(reinterpret_cast<uint32_t const&>(mC(row, col)));
              CUTE_UNROLL
              for (int v = 0; v < size(rD); ++v) rD(v) += beta * float(rC(v));
            }
            // bias: one for each column
            CUTE_UNROLL
            for (int v = 0; v < size(rD); ++v) rD(v) = rD(v) + e_bias(j + v);
            // gelu, exact
            CUTE_UNROLL
            for (int v = 0; v < size(rD); ++v) rD(v) = gelu_exact(rD(v));
            Tensor rOut = make_tensor<bfloat16_t>(Shape<_2>{});
            CUTE_UNROLL
            for (int v = 0; v < size(rD); ++v) rOut(v) = bfloat16_t(rD(v));
            if (inside) reinterpret_cast<uint32_t&>(mD(row, col)) = recast<uint32_t>(rOut)(0);   // write_d
          }
        }
      }
      CUTE_UNROLL
      for (int v = 0; v < size(tCrC); ++v) {   // the next rows' sums, to where this text has them
        if (v % size<0>(tCrC) < size<0>(tCrC) - 4) tCrC(v) = tCrC(v + 4);
      }
    }
  };
  if (beta == 0.f) store_d(false_type{});   // C is not read, so that NaN in it doesn't reach D
  else store_d(true_type{});
}
