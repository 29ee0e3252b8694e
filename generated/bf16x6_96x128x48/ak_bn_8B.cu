// bf16x6_96x128x48, variant ak_bn_8B: D = alpha * A * B + beta * C in f32, D in f32, summed in f32 by SM80_16x8x16_F32BF16BF16F32_TN.
// f32 by six products of bf16, promoted every 48 k
//
// Block: tile 96x128x48, 256 threads, 2 stages, 98304 bytes of shared memory.
// Takes:
//   A (m,k) contiguous in k, rows on 8-byte boundaries
//   B (n,k) contiguous in n, rows on 8-byte boundaries
//   C and D (m,n) contiguous in n, rows on 8-byte boundaries
//
// Emitted by layoutgen from the spec bf16x6_96x128x48.yaml: edit the spec, not this file. Layouts map from left to right
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

CUTE_DEVICE void load_fragment_b(uint32_t from, uint32_t& r0) {
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(r0) : "r"(from) : "memory");   // fragment_b
}

CUTE_DEVICE void copy_async_a(uint32_t to, float2 const& from) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8;" :: "r"(to), "l"(&from) : "memory");   // copy_a
}

CUTE_DEVICE void copy_async_or_zero_a(bool valid, uint32_t to, float2 const& from) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2;" :: "r"(to), "l"(&from), "r"(valid ? 8 : 0) : "memory");   // copy_a
}

CUTE_DEVICE void copy_async_b(uint32_t to, float2 const& from) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8;" :: "r"(to), "l"(&from) : "memory");   // copy_b
}

CUTE_DEVICE void copy_async_or_zero_b(bool valid, uint32_t to, float2 const& from) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2;" :: "r"(to), "l"(&from), "r"(valid ? 8 : 0) : "memory");   // copy_b
}

// ---- A number as a sum of three of bf16, of which a register has those of two numbers --------------------------------
using PackedA = Layout<Shape<_2,Shape<_2,_2,_3>>,Stride<_2,Stride<_1,_4,_8>>>;   // (number, register) -> register of the fragment: (2,(2,2,3)):(2,(1,4,8))
using PackedB = Layout<Shape<_2,Shape<_1,_2,_4>>,Stride<_1,Stride<_1,_2,_4>>>;   // (number, register) -> register of the fragment: (2,(1,2,4)):(1,(1,2,4))
constexpr float kLargest = 0x1.fep127f;   // of bf16
CUTE_DEVICE uint32_t rounded(float x, float y) {   // to the nearest; beyond the largest, Inf
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
  return both;
}
CUTE_DEVICE float lower_half(uint32_t both) { return __uint_as_float(both << 16); }
CUTE_DEVICE float upper_half(uint32_t both) { return __uint_as_float(both & 0xffff0000); }
CUTE_DEVICE float cut(float x) { return fminf(fmaxf(x, -kLargest), kLargest); }
CUTE_DEVICE bool is_finite(uint32_t x) { return (x & 0x7f800000) != 0x7f800000; }
CUTE_DEVICE uint32_t sign(uint32_t x) {   // 1 or -1; 0, Inf and NaN stay, though of some NaN low bits alone tell it from Inf
  if (!is_finite(x)) return x << 9 ? 0x7fffffff : x;
  return x << 1 ? (x & 0x80000000) | 0x3f800000 : x;
}

// ---- The block tile of C: who owns what ---------------------------------------------------------------------------
using BlockM = _96;
using BlockN = _128;
using BlockK = _48;
constexpr int kStages = 2;
constexpr int kGroup = 8;
using ThreadM = Layout<Shape<Shape<_4,_8>,Shape<_2,_4>>,Stride<Stride<_0,_1>,Stride<_48,_0>>>;   // thread -> m: ((4,8),(2,4)):((0,1),(48,0))
using ThreadN = Layout<Shape<Shape<_4,_8>,Shape<_2,_4>>,Stride<Stride<_2,_0>,Stride<_0,_32>>>;   // thread -> n: ((4,8),(2,4)):((2,0),(0,32))
using ValueM = Layout<_6,_8>;   // value -> m: 6:8
using ValueN = Layout<Shape<_2,_4>,Stride<_1,_8>>;   // value -> n: (2,4):(1,8)
using Order = Layout<Shape<_4,_3>,Stride<_3,_1>>;   // step -> atom of a warp's tile, (atom_m, atom_n): (4,3):(3,1)

// ---- A and B: shared memory (x, k, stage), a thread's fragment of it, and the copy from global memory ----
using SmemA = ComposedLayout<Swizzle<3,2,4>,_0,Layout<Shape<_96,_48,_2>,Stride<_64,_1,Int<6144>>>>;   // (m, k, stage) -> float: Sw<3,2,4> o 0 o (96,48,2):(64,1,6144)
constexpr int kSmemA = 12288;   // floats, all stages
using FragmentAThread = ComposedLayout<Swizzle<3,2,4>,_0,Layout<Shape<Shape<_8,Shape<_2,_2>,_1>,Shape<_2,_4>>,Stride<Stride<_64,Stride<_512,_4>,_0>,Stride<Int<3072>,_0>>>>;   // thread -> float: Sw<3,2,4> o 0 o ((8,(2,2),1),(2,4)):((64,(512,4),0),(3072,0))
using FragmentA = Layout<Shape<Shape<_2,_3>,_3,_2>,Stride<Stride<_0,_256>,_0,Int<1536>>>;   // (vector, k, stage) -> uint128_t: ((2,3),3,2):((0,256),0,1536)
using FragmentAFlips = Layout<Shape<Shape<_2,_3>,_3,_2>,Stride<Stride<_2,_0>,_4,_0>>;   // (vector, k, stage) -> uint128_t, by exclusive or: ((2,3),3,2):((2,0),4,0)
using CopyAThreadX = Layout<Shape<_8,_32>,Stride<_0,_1>>;   // thread -> m: (8,32):(0,1)
using CopyAThreadK = Layout<Shape<_8,_32>,Stride<_2,_0>>;   // thread -> k: (8,32):(2,0)
using CopyAElementX = Layout<_3,_32>;   // i -> m: 3:32
using CopyAElementK = Layout<Shape<_2,_3>,Stride<_1,_16>>;   // j -> k: (2,3):(1,16)
using CopyAThread = ComposedLayout<Swizzle<3,2,4>,_0,Layout<Shape<_8,_32>,Stride<_2,_64>>>;   // thread -> float: Sw<3,2,4> o 0 o (8,32):(2,64)
using CopyA = Layout<Shape<_3,_3,_2>,Stride<_1024,_0,Int<3072>>>;   // (i, j, stage) -> float2: (3,3,2):(1024,0,3072)
using CopyAFlips = Layout<Shape<_3,_3,_2>,Stride<_0,_8,_0>>;   // (i, j, stage) -> float2, by exclusive or: (3,3,2):(0,8,0)

using SmemB = ComposedLayout<Swizzle<2,3,4>,_0,Layout<Shape<_128,_48,_2>,Stride<_1,_128,Int<6144>>>>;   // (n, k, stage) -> float: Sw<2,3,4> o 0 o (128,48,2):(1,128,6144)
constexpr int kSmemB = 12288;   // floats, all stages
using FragmentBThread = ComposedLayout<Swizzle<2,3,4>,_0,Layout<Shape<Shape<_4,_8>,Shape<_2,_4>>,Stride<Stride<_128,_1>,Stride<_0,_32>>>>;   // thread -> float: Sw<2,3,4> o 0 o ((4,8),(2,4)):((128,1),(0,32))
using FragmentB = Layout<Shape<Shape<_4,_4>,_3,_2>,Stride<Stride<_512,_0>,_2048,Int<6144>>>;   // (vector, k, stage) -> float: ((4,4),3,2):((512,0),2048,6144)
using FragmentBFlips = Layout<Shape<Shape<_4,_4>,_3,_2>,Stride<Stride<_0,_8>,_0,_0>>;   // (vector, k, stage) -> float, by exclusive or: ((4,4),3,2):((0,8),0,0)
using CopyBThreadX = Layout<Shape<_64,_4>,Stride<_2,_0>>;   // thread -> n: (64,4):(2,0)
using CopyBThreadK = Layout<Shape<_64,_4>,Stride<_0,_1>>;   // thread -> k: (64,4):(0,1)
using CopyBElementX = Layout<_2,_1>;   // i -> n: 2:1
using CopyBElementK = Layout<_12,_4>;   // j -> k: 12:4
using CopyBThread = ComposedLayout<Swizzle<2,3,4>,_0,Layout<_256,_2>>;   // thread -> float: Sw<2,3,4> o 0 o 256:2
using CopyB = Layout<Shape<_1,_12,_2>,Stride<_0,_256,Int<3072>>>;   // (i, j, stage) -> float2: (1,12,2):(0,256,3072)

// ---- What the plan promises, restated ------------------------------------------------------------------------------
static_assert(size(ThreadM{}) == 256 && size(ThreadN{}) == 256);
static_assert(256 * size(ValueM{}) * size(ValueN{}) == BlockM{} * BlockN{});
static_assert(cosize_v<SmemA> <= kSmemA);
static_assert(256 * size(CopyAElementX{}) * size(CopyAElementK{}) == BlockM{} * BlockK{});
static_assert(cosize_v<SmemB> <= kSmemB);
static_assert(256 * size(CopyBElementX{}) * size(CopyBElementK{}) == BlockN{} * BlockK{});

extern "C" __global__ __launch_bounds__(256, 1)
void bf16x6_96x128x48(
    int m, int n, int k,
    float const* __restrict__ A, int64_t a_m, int64_t a_k,   // A(m,k) at A[m * a_m + k * a_k]
    float const* __restrict__ B, int64_t b_n, int64_t b_k,   // B(n,k) at B[n * b_n + k * b_k]
    float const* C, int64_t c_m,                             // C(m,n) at C[m * c_m + n], not read where beta is 0
    float* D, int64_t d_m,                                   // D(m,n) at D[m * d_m + n]
    float alpha, float beta)
{
  // ---- Preconditions: the host checks strides, alignment and devices; extents may be anything from 0 ---------------
  int const thread = threadIdx.x;
  extern __shared__ __align__(1024) float smem[];
  float* const smem_a = smem;
  float* const smem_b = smem + kSmemA;

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

  Tensor mC = make_tensor(make_gmem_ptr(C), make_layout(make_shape(m, n), make_stride(c_m, _1{})));   // (m, n)
  Tensor mD = make_tensor(make_gmem_ptr(D), make_layout(make_shape(m, n), make_stride(d_m, _1{})));   // (m, n)

  // ---- Accumulators, and one atom's K of each of the warp's atoms ----
  Tensor tCrC = make_tensor<float>(Shape<_6,_8>{});   // (value_m, value_n)
  clear(tCrC);

  // ---- Sums of k-tiles. Where they hold a NaN, once more with guards: Inf and NaN count as 0, then all numbers by their
  // signs, whose sums are Inf and NaN just where these belong.
  auto sum_up = [&](auto guards, bool signs) {
    constexpr bool kGuards = decltype(guards)::value;
    int thread = threadIdx.x;
    asm volatile("" : "+r"(thread));   // opaque, else sums keep addresses in registers for the next ones
    if (!signs) clear(tCrC);
    // ---- Cursors: k-tiles left to fetch, rows of A and B that may be fetched (none once no tile is left) ----
    int tiles_left = k_tiles;
    int rows_a = tiles_left > 0 ? m : 0;
    int rows_b = tiles_left > 0 ? n : 0;

    // ---- Full tensors ------------------------------------------------------------------------------------------------
    Tensor mA = make_tensor(make_gmem_ptr(A), make_layout(make_shape(m, k), make_stride(a_m, _1{})));   // (m, k)
    Tensor mB = make_tensor(make_gmem_ptr(B), make_layout(make_shape(n, k), make_stride(_1{}, b_k)));   // (n, k)

    // ---- This thread's elements of a k-tile of A and B, from global to shared memory ----
    // A: cp.async, 8 bytes a piece
    int const x_a = m0 + CopyAThreadX{}(thread);
    int const k_a = CopyAThreadK{}(thread) - ragged;   // of the first tile: negative before k = 0
    Tensor tAgA = make_tensor(make_gmem_ptr(A + mA.layout()(x_a, k_a)), make_layout(make_shape(BlockM{}, BlockK{}), mA.stride()));   // (m, k) from the thread's first element
    auto const a_tile = BlockK{} * stride<1>(mA);   // one k-tile on
    Tensor tAsA = make_tensor(make_smem_ptr(reinterpret_cast<float2*>(smem_a + CopyAThread{}(thread))), CopyA{});   // (i, j, stage) in float2

    // B: cp.async, 8 bytes a piece
    int const x_b = n0 + CopyBThreadX{}(thread);
    int const k_b = CopyBThreadK{}(thread) - ragged;   // of the first tile: negative before k = 0
    Tensor tBgB = make_tensor(make_gmem_ptr(B + mB.layout()(x_b, k_b)), make_layout(make_shape(BlockN{}, BlockK{}), mB.stride()));   // (n, k) from the thread's first element
    auto const b_tile = BlockK{} * stride<1>(mB);   // one k-tile on
    Tensor tBsB = make_tensor(make_smem_ptr(reinterpret_cast<float2*>(smem_b + CopyBThread{}(thread))), CopyB{});   // (i, j, stage) in float2

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
      for (int j = 0; j < 3; ++j) {
        CUTE_UNROLL
        for (int i = 0; i < 3; ++i) {
          auto const& from = reinterpret_cast<float2 const&>(tAgA(CopyAElementX{}(i), CopyAElementK{}(j * 2)));
          copy_async_or_zero_a(x_a + CopyAElementX{}(i) < rows_a && k_a + CopyAElementK{}(j * 2) >= 0, (write_a ^ CopyAFlips{}(0, j, 0) * sizeof(float2)) + CopyA{}(i, j, 0) * sizeof(float2), from);
        }
      }
    };

    auto copy_first_b = [&]() {   // start copying B's next k-tile into the write stage; what lies before k = 0 is zero
      CUTE_UNROLL
      for (int j = 0; j < 12; ++j) {
        CUTE_UNROLL
        for (int i = 0; i < 1; ++i) {
          auto const& from = reinterpret_cast<float2 const&>(tBgB(CopyBElementX{}(i * 2), CopyBElementK{}(j)));
          copy_async_or_zero_b(x_b + CopyBElementX{}(i * 2) < rows_b && k_b + CopyBElementK{}(j) >= 0, write_b + CopyB{}(i, j, 0) * sizeof(float2), from);
        }
      }
    };

    auto copy_a = [&]() {   // start copying A's next k-tile into the write stage
      CUTE_UNROLL
      for (int j = 0; j < 3; ++j) {
        CUTE_UNROLL
        for (int i = 0; i < 3; ++i) {
          auto const& from = reinterpret_cast<float2 const&>(tAgA(CopyAElementX{}(i), CopyAElementK{}(j * 2)));
          if (x_a + CopyAElementX{}(i) < rows_a) copy_async_a((write_a ^ CopyAFlips{}(0, j, 0) * sizeof(float2)) + CopyA{}(i, j, 0) * sizeof(float2), from);
        }
      }
    };

    auto copy_b = [&]() {   // start copying B's next k-tile into the write stage
      CUTE_UNROLL
      for (int j = 0; j < 12; ++j) {
        CUTE_UNROLL
        for (int i = 0; i < 1; ++i) {
          auto const& from = reinterpret_cast<float2 const&>(tBgB(CopyBElementX{}(i * 2), CopyBElementK{}(j)));
          if (x_b + CopyBElementX{}(i * 2) < rows_b) copy_async_b(write_b + CopyB{}(i, j, 0) * sizeof(float2), from);
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

    // ---- Fragments: from shared memory to registers, 1 slot ----
    Tensor tCsA = make_tensor(make_smem_ptr(reinterpret_cast<uint128_t const*>(smem_a + FragmentAThread{}(thread))), FragmentA{});   // (load, k, stage)
    Tensor tCrA = make_tensor<uint32_t>(Shape<Shape<_8,_3>,_1>{});   // ((register,atom_m), slot)
    Tensor tCsB = make_tensor(make_smem_ptr(reinterpret_cast<float const*>(smem_b + FragmentBThread{}(thread))), FragmentB{});   // (load, k, stage)
    Tensor tCrB = make_tensor<uint32_t>(Shape<Shape<_4,_4>,_1>{});   // ((register,atom_n), slot)
    // Their addresses in the stage that is read.
    uint32_t read_a, read_b;
    auto read_stage = [&](int stage) {
      read_a = cast_smem_ptr_to_uint(&tCsA(0, 0, stage));
      read_b = cast_smem_ptr_to_uint(&tCsB(0, 0, stage));
      asm volatile("" : "+r"(read_a), "+r"(read_b));
      return stage;
    };
    int read = read_stage(0);
    auto load_fragment = [&](int k_index, int slot) {   // of the read stage: 6 ldmatrix of A, 16 ld.shared of B
      CUTE_UNROLL
      for (int v = 0; v < 6; ++v) load_fragment_a((read_a ^ FragmentAFlips{}(v, 0, 0) * sizeof(uint128_t) ^ FragmentAFlips{}(0, k_index, 0) * sizeof(uint128_t)) + FragmentA{}(v, k_index, 0) * sizeof(uint128_t), tCrA(v * 4, slot), tCrA(v * 4 + 1, slot), tCrA(v * 4 + 2, slot), tCrA(v * 4 + 3, slot));
      CUTE_UNROLL
      for (int v = 0; v < 16; ++v) load_fragment_b((read_b ^ FragmentBFlips{}(v, 0, 0) * sizeof(float)) + FragmentB{}(v, k_index, 0) * sizeof(float), tCrB(v, slot));
    };
    // ---- What the atoms have summed, until it is promoted to the accumulators, and one atom's K of each of the warp's atoms ----
    Tensor tCrP = make_tensor<float>(tCrC.layout());
    clear(tCrP);
    auto promote = [&]() {
      CUTE_UNROLL
      for (int v = 0; v < size(tCrC); ++v) {
        if (signs) {
          if (!is_finite(__float_as_uint(tCrP(v)))) tCrC(v) = tCrP(v);
        } else {
          float const sum = tCrC(v) + tCrP(v);
          tCrP(v) = kGuards ? 0.f : (tCrC(v) - sum) + tCrP(v);   // what the rounded sum leaves out, for the next
          tCrC(v) = sum;
        }
      }
    };
    // x = high + middle + low, each rounded to the atom's type; nothing is left.
    auto split = [&](auto const& from, auto packed, int slot, auto& high, auto& middle, auto& low) {
      CUTE_UNROLL
      for (int v = 0; v < size(high); ++v) {
        uint32_t const x = from(packed(0, v), slot), y = from(packed(1, v), slot);
        float left_x = __uint_as_float(kGuards && !is_finite(x) ? 0 : x), left_y = __uint_as_float(kGuards && !is_finite(y) ? 0 : y);
        high(v) = kGuards ? rounded(cut(left_x), cut(left_y)) : rounded(left_x, left_y);   // cut: what would be rounded to Inf
        left_x -= lower_half(high(v));
        left_y -= upper_half(high(v));
        middle(v) = rounded(left_x, left_y);
        low(v) = rounded(left_x - lower_half(middle(v)), left_y - upper_half(middle(v)));
        if (signs) high(v) = __byte_perm(sign(x), sign(y), 0x7632);   // the high halves
      }
    };
    auto mma = [&](int slot) {   // m outer, n inner; the smaller products first
      Tensor tCrA_high = make_tensor<uint32_t>(Shape<_4,_3>{});
      Tensor tCrA_middle = make_tensor_like(tCrA_high), tCrA_low = make_tensor_like(tCrA_high);
      split(tCrA, PackedA{}, slot, tCrA_high, tCrA_middle, tCrA_low);
      Tensor tCrB_high = make_tensor<uint32_t>(Shape<_2,_4>{});
      Tensor tCrB_middle = make_tensor_like(tCrB_high), tCrB_low = make_tensor_like(tCrB_high);
      split(tCrB, PackedB{}, slot, tCrB_high, tCrB_middle, tCrB_low);
      if (!signs) {
        CUTE_UNROLL
        for (int step = 0; step < 12; ++step) {
          int const atom = Order{}(step);
          int const i = atom % 3, j = atom / 3;
          SM80_16x8x16_F32BF16BF16F32_TN::fma(tCrP(i * 2, j * 2), tCrP(i * 2, j * 2 + 1), tCrP(i * 2 + 1, j * 2), tCrP(i * 2 + 1, j * 2 + 1),
            tCrA_low(0, i), tCrA_low(1, i), tCrA_low(2, i), tCrA_low(3, i),
            tCrB_high(0, j), tCrB_high(1, j),
            tCrP(i * 2, j * 2), tCrP(i * 2, j * 2 + 1), tCrP(i * 2 + 1, j * 2), tCrP(i * 2 + 1, j * 2 + 1));
        }
        CUTE_UNROLL
        for (int step = 0; step < 12; ++step) {
          int const atom = Order{}(step);
          int const i = atom % 3, j = atom / 3;
          SM80_16x8x16_F32BF16BF16F32_TN::fma(tCrP(i * 2, j * 2), tCrP(i * 2, j * 2 + 1), tCrP(i * 2 + 1, j * 2), tCrP(i * 2 + 1, j * 2 + 1),
            tCrA_middle(0, i), tCrA_middle(1, i), tCrA_middle(2, i), tCrA_middle(3, i),
            tCrB_middle(0, j), tCrB_middle(1, j),
            tCrP(i * 2, j * 2), tCrP(i * 2, j * 2 + 1), tCrP(i * 2 + 1, j * 2), tCrP(i * 2 + 1, j * 2 + 1));
        }
        CUTE_UNROLL
        for (int step = 0; step < 12; ++step) {
          int const atom = Order{}(step);
          int const i = atom % 3, j = atom / 3;
          SM80_16x8x16_F32BF16BF16F32_TN::fma(tCrP(i * 2, j * 2), tCrP(i * 2, j * 2 + 1), tCrP(i * 2 + 1, j * 2), tCrP(i * 2 + 1, j * 2 + 1),
            tCrA_high(0, i), tCrA_high(1, i), tCrA_high(2, i), tCrA_high(3, i),
            tCrB_low(0, j), tCrB_low(1, j),
            tCrP(i * 2, j * 2), tCrP(i * 2, j * 2 + 1), tCrP(i * 2 + 1, j * 2), tCrP(i * 2 + 1, j * 2 + 1));
        }
        CUTE_UNROLL
        for (int step = 0; step < 12; ++step) {
          int const atom = Order{}(step);
          int const i = atom % 3, j = atom / 3;
          SM80_16x8x16_F32BF16BF16F32_TN::fma(tCrP(i * 2, j * 2), tCrP(i * 2, j * 2 + 1), tCrP(i * 2 + 1, j * 2), tCrP(i * 2 + 1, j * 2 + 1),
            tCrA_middle(0, i), tCrA_middle(1, i), tCrA_middle(2, i), tCrA_middle(3, i),
            tCrB_high(0, j), tCrB_high(1, j),
            tCrP(i * 2, j * 2), tCrP(i * 2, j * 2 + 1), tCrP(i * 2 + 1, j * 2), tCrP(i * 2 + 1, j * 2 + 1));
        }
        CUTE_UNROLL
        for (int step = 0; step < 12; ++step) {
          int const atom = Order{}(step);
          int const i = atom % 3, j = atom / 3;
          SM80_16x8x16_F32BF16BF16F32_TN::fma(tCrP(i * 2, j * 2), tCrP(i * 2, j * 2 + 1), tCrP(i * 2 + 1, j * 2), tCrP(i * 2 + 1, j * 2 + 1),
            tCrA_high(0, i), tCrA_high(1, i), tCrA_high(2, i), tCrA_high(3, i),
            tCrB_middle(0, j), tCrB_middle(1, j),
            tCrP(i * 2, j * 2), tCrP(i * 2, j * 2 + 1), tCrP(i * 2 + 1, j * 2), tCrP(i * 2 + 1, j * 2 + 1));
        }
      }
      CUTE_UNROLL
      for (int step = 0; step < 12; ++step) {
        int const atom = Order{}(step);
        int const i = atom % 3, j = atom / 3;
        SM80_16x8x16_F32BF16BF16F32_TN::fma(tCrP(i * 2, j * 2), tCrP(i * 2, j * 2 + 1), tCrP(i * 2 + 1, j * 2), tCrP(i * 2 + 1, j * 2 + 1),
          tCrA_high(0, i), tCrA_high(1, i), tCrA_high(2, i), tCrA_high(3, i),
          tCrB_high(0, j), tCrB_high(1, j),
          tCrP(i * 2, j * 2), tCrP(i * 2, j * 2 + 1), tCrP(i * 2 + 1, j * 2), tCrP(i * 2 + 1, j * 2 + 1));
      }
    };

    // ---- Prologue ----------------------------------------------------------------------------------------------------
    copy_first_a();
    copy_first_b();
    next_tile();
    write = write_stage(next_stage(write));
    cp_async_wait<0>();
    __syncthreads();
    load_fragment(0, 0);

    // ---- Main loop: multiply one k-tile a turn while the one kStages - 1 ahead is copied ----
    CUTE_NO_UNROLL
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      copy_a();
      copy_b();
      write = write_stage(next_stage(write));
      next_tile();
      mma(0);
      load_fragment(1, 0);
      mma(0);
      load_fragment(2, 0);
      mma(0);
      cp_async_wait<0>();
      __syncthreads();
      read = read_stage(next_stage(read));
      load_fragment(0, 0);
      promote();

    }
  };
  auto is_nan = [&]() {   // of what belongs to C: beyond its edges, shared memory holds whatever was there
    bool found = false;
    CUTE_UNROLL
    for (int v = 0; v < size(tCrC); ++v) {
      int const i = v % size<0>(tCrC), j = v / size<0>(tCrC);
      bool const inside = m0 + ThreadM{}(thread) + ValueM{}(i) < m && n0 + ThreadN{}(thread) + ValueN{}(j) < n;
      found |= inside && tCrC(v) != tCrC(v);
    }
    return found;
  };
  sum_up(false_type{}, false);
  if (__syncthreads_or(is_nan())) {   // Inf less its high part is NaN: none is missed
    CUTE_NO_UNROLL
    for (int signs = 0; signs < 2; ++signs) sum_up(true_type{}, signs);
  }

  // ---- Epilogue: D = alpha * accumulator + beta * C, 8 bytes at a time ----
  auto store_d = [&](auto reads_c) {
    CUTE_UNROLL
    for (int i = 0; i < size(ValueM{}); ++i) {
      int const row = m0 + ThreadM{}(thread) + ValueM{}(i);
      CUTE_UNROLL
      for (int j = 0; j < size(ValueN{}); j += 2) {
        int const col = n0 + ThreadN{}(thread) + ValueN{}(j);
        if (row < m && col < n) {
          Tensor rD = make_tensor<float>(Shape<_2>{});
          CUTE_UNROLL
          for (int v = 0; v < size(rD); ++v) rD(v) = alpha * tCrC(i, j + v);
          if constexpr (reads_c) {
            Tensor rC = make_tensor<float>(Shape<_2>{});
            recast<float2>(rC)(0) = reinterpret_cast<float2 const&>(mC(row, col));   // read_c
            CUTE_UNROLL
            for (int v = 0; v < size(rD); ++v) rD(v) += beta * rC(v);
          }
          reinterpret_cast<float2&>(mD(row, col)) = recast<float2>(rD)(0);   // write_d
        }
      }
    }
  };
  if (beta == 0.f) store_d(false_type{});   // C is not read, so that NaN in it doesn't reach D
  else store_d(true_type{});
}
