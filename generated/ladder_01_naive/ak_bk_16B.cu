// ladder_01_naive, variant ak_bk_16B: D = alpha * A * B + beta * C in f32.
// Rung 1 of the SGEMM ladder, one thread an element, the fast thread index on rows
//
// Block: tile 32x4x8, 128 threads, no shared memory.
// Takes:
//   A (m,k) contiguous in k, rows on 16-byte boundaries
//   B (n,k) contiguous in k, rows on 16-byte boundaries
//   C and D (m,n) contiguous in n, rows on 4-byte boundaries
//
// Emitted by layoutgen from the spec ladder_01_naive.yaml: edit the spec, not this file. Layouts map from left to right
// (thread -> m: the thread's first row in the block tile of C) and were proved to cover every tile exactly once.
#include <cute/tensor_impl.hpp>   // cute/tensor.hpp without its algorithms: less than half the time to compile
#include <cute/algorithm/clear.hpp>

using namespace cute;

// ---- Accesses that stay where the program puts them, at its width: the compiler moves, sinks and splits plain ones ---
// One function for each, named after it, so that line information tells which access an instruction is. Where shared
// memory is asked for, it is by an address that the compiler takes for a whole, plus a constant: one instruction.
CUTE_DEVICE void load_global_a(bool valid, float4 const& from, float& x, float& y, float& z, float& w) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4]; }"
               : "+f"(x), "+f"(y), "+f"(z), "+f"(w) : "l"(&from), "r"(int(valid)));   // load_a
}

CUTE_DEVICE void load_global_b(bool valid, float4 const& from, float& x, float& y, float& z, float& w) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4]; }"
               : "+f"(x), "+f"(y), "+f"(z), "+f"(w) : "l"(&from), "r"(int(valid)));   // load_b
}

// ---- The block tile of C: who owns what ---------------------------------------------------------------------------
using BlockM = _32;
using BlockN = _4;
using BlockK = _8;
constexpr int kGroup = 8;
using ThreadM = Layout<Shape<_32,_4>,Stride<_1,_0>>;   // thread -> m: (32,4):(1,0)
using ThreadN = Layout<Shape<_32,_4>,Stride<_0,_1>>;   // thread -> n: (32,4):(0,1)
using ValueM = Layout<_1,_0>;   // value -> m: 1:0
using ValueN = Layout<_1,_0>;   // value -> n: 1:0
using Order = Layout<Shape<_1,_1>,Stride<_1,_1>>;   // step -> value of a thread's tile, (value_m, value_n): (1,1):(1,1)

// ---- A and B: what each thread loads from global memory ----
using CopyAThreadX = Layout<Shape<_32,_4>,Stride<_1,_0>>;   // thread -> m: (32,4):(1,0)
using CopyAThreadK = Layout<_128,_0>;   // thread -> k: 128:0
using CopyAElementX = Layout<_1,_0>;   // i -> m: 1:0
using CopyAElementK = Layout<_8,_1>;   // j -> k: 8:1

using CopyBThreadX = Layout<Shape<_32,_4>,Stride<_0,_1>>;   // thread -> n: (32,4):(0,1)
using CopyBThreadK = Layout<_128,_0>;   // thread -> k: 128:0
using CopyBElementX = Layout<_1,_0>;   // i -> n: 1:0
using CopyBElementK = Layout<_8,_1>;   // j -> k: 8:1

// ---- What the plan promises, restated ------------------------------------------------------------------------------
static_assert(size(ThreadM{}) == 128 && size(ThreadN{}) == 128);
static_assert(128 * size(ValueM{}) * size(ValueN{}) == BlockM{} * BlockN{});

extern "C" __global__ __launch_bounds__(128, 12)
void ladder_01_naive(
    int m, int n, int k,
    float const* __restrict__ A, int64_t a_m, int64_t a_k,   // A(m,k) at A[m * a_m + k * a_k]
    float const* __restrict__ B, int64_t b_n, int64_t b_k,   // B(n,k) at B[n * b_n + k * b_k]
    float const* C, int64_t c_m,                             // C(m,n) at C[m * c_m + n], not read where beta is 0
    float* D, int64_t d_m,                                   // D(m,n) at D[m * d_m + n]
    float alpha, float beta)
{
  // ---- Preconditions: the host checks strides, alignment and devices; extents may be anything from 0 ---------------
  int const thread = threadIdx.x;

  // ---- This block's work: neighbouring blocks walk n within groups of 8 tiles, and share rows of A and columns of B in L2 ----
  int const tiles_m = ceil_div(m, BlockM{});
  int const tiles_n = ceil_div(n, BlockN{});
  int const group_size = min(kGroup, tiles_n);   // so that a group has no more tiles than the grid
  int const group = int(blockIdx.x) / (group_size * tiles_m);
  int const in_group = int(blockIdx.x) % (group_size * tiles_m);
  int const group_width = min(tiles_n - group * group_size, group_size);
  int const tile_n = group * group_size + in_group % group_width;
  int const tile_m = in_group / group_width;
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

  // ---- This thread's elements of a k-tile of A and B ----
  // A: straight to the registers of the thread that multiplies, by 16-byte loads
  int const x_a = m0 + CopyAThreadX{}(thread);
  int const k_a = CopyAThreadK{}(thread) - ragged;   // of the first tile: negative before k = 0
  Tensor tAgA = make_tensor(make_gmem_ptr(A + mA.layout()(x_a, k_a)), make_layout(make_shape(BlockM{}, BlockK{}), mA.stride()));   // (m, k) from the thread's first element
  auto const a_tile = BlockK{} * stride<1>(mA);   // one k-tile on
  Tensor tCrA = make_tensor<float>(Layout<Shape<_1,_8>,Stride<_8,_1>>{});   // (value, k), the fragments of a k-tile
  clear(tCrA);

  // B: straight to the registers of the thread that multiplies, by 16-byte loads
  int const x_b = n0 + CopyBThreadX{}(thread);
  int const k_b = CopyBThreadK{}(thread) - ragged;   // of the first tile: negative before k = 0
  Tensor tBgB = make_tensor(make_gmem_ptr(B + mB.layout()(x_b, k_b)), make_layout(make_shape(BlockN{}, BlockK{}), mB.stride()));   // (n, k) from the thread's first element
  auto const b_tile = BlockK{} * stride<1>(mB);   // one k-tile on
  Tensor tCrB = make_tensor<float>(Layout<Shape<_1,_8>,Stride<_8,_1>>{});   // (value, k), the fragments of a k-tile
  clear(tCrB);

  auto load_first_a = [&]() {   // load A's next k-tile into registers; what lies before k = 0 is zero
    CUTE_UNROLL
    for (int j = 0; j < 2; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < 1; ++i) {
        auto const& from = reinterpret_cast<float4 const&>(tAgA(CopyAElementX{}(i), CopyAElementK{}(j * 4)));
        load_global_a(x_a + CopyAElementX{}(i) < rows_a && k_a + CopyAElementK{}(j * 4) >= 0, from, tCrA(i, j * 4), tCrA(i, j * 4 + 1), tCrA(i, j * 4 + 2), tCrA(i, j * 4 + 3));
      }
    }
  };

  auto load_first_b = [&]() {   // load B's next k-tile into registers; what lies before k = 0 is zero
    CUTE_UNROLL
    for (int j = 0; j < 2; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < 1; ++i) {
        auto const& from = reinterpret_cast<float4 const&>(tBgB(CopyBElementX{}(i), CopyBElementK{}(j * 4)));
        load_global_b(x_b + CopyBElementX{}(i) < rows_b && k_b + CopyBElementK{}(j * 4) >= 0, from, tCrB(i, j * 4), tCrB(i, j * 4 + 1), tCrB(i, j * 4 + 2), tCrB(i, j * 4 + 3));
      }
    }
  };

  auto load_a = [&]() {   // load A's next k-tile into registers
    CUTE_UNROLL
    for (int j = 0; j < 2; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < 1; ++i) {
        auto const& from = reinterpret_cast<float4 const&>(tAgA(CopyAElementX{}(i), CopyAElementK{}(j * 4)));
        load_global_a(x_a + CopyAElementX{}(i) < rows_a, from, tCrA(i, j * 4), tCrA(i, j * 4 + 1), tCrA(i, j * 4 + 2), tCrA(i, j * 4 + 3));
      }
    }
  };

  auto load_b = [&]() {   // load B's next k-tile into registers
    CUTE_UNROLL
    for (int j = 0; j < 2; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < 1; ++i) {
        auto const& from = reinterpret_cast<float4 const&>(tBgB(CopyBElementX{}(i), CopyBElementK{}(j * 4)));
        load_global_b(x_b + CopyBElementX{}(i) < rows_b, from, tCrB(i, j * 4), tCrB(i, j * 4 + 1), tCrB(i, j * 4 + 2), tCrB(i, j * 4 + 3));
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

  // ---- Accumulators, and the multiply-adds of one k ----
  Tensor tCrC = make_tensor<float>(Shape<_1,_1>{});   // (value_m, value_n)
  clear(tCrC);
  auto mma = [&](int slot) {   // m outer, n inner
    CUTE_UNROLL
    for (int step = 0; step < 1; ++step) {
      int const value = Order{}(step);
      int const i = value % size<0>(tCrC), j = value / size<0>(tCrC);
      tCrC(i, j) += tCrA(i, slot) * tCrB(j, slot);
    }
  };

  // ---- Prologue ----------------------------------------------------------------------------------------------------
  load_first_a();
  load_first_b();
  next_tile();

  // ---- Main loop: multiply the fragments of one k-tile a turn, then load those of the next ----
  CUTE_NO_UNROLL
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    mma(0);
    mma(1);
    mma(2);
    mma(3);
    mma(4);
    mma(5);
    mma(6);
    mma(7);
    load_a();
    load_b();
    next_tile();

  }

  // ---- Epilogue: D = alpha * accumulator + beta * C, 4 bytes at a time ----
  auto store_d = [&](auto reads_c) {
    CUTE_UNROLL
    for (int i = 0; i < size(ValueM{}); ++i) {
      int const row = m0 + ThreadM{}(thread) + ValueM{}(i);
      CUTE_UNROLL
      for (int j = 0; j < size(ValueN{}); j += 1) {
        int const col = n0 + ThreadN{}(thread) + ValueN{}(j);
        if (row < m && col < n) {
          Tensor rD = make_tensor<float>(Shape<_1>{});
          CUTE_UNROLL
          for (int v = 0; v < size(rD); ++v) rD(v) = alpha * tCrC(i, j + v);
          if constexpr (reads_c) {
            Tensor rC = make_tensor<float>(Shape<_1>{});
            recast<float>(rC)(0) = reinterpret_cast<float const&>(mC(row, col));   // read_c
            CUTE_UNROLL
            for (int v = 0; v < size(rD); ++v) rD(v) += beta * rC(v);
          }
          reinterpret_cast<float&>(mD(row, col)) = recast<float>(rD)(0);   // write_d
        }
      }
    }
  };
  if (beta == 0.f) store_d(false_type{});   // C is not read, so that NaN in it doesn't reach D
  else store_d(true_type{});
}
