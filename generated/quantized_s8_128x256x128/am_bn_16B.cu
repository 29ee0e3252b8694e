// quantized_s8_128x256x128, variant am_bn_16B: D = alpha * A * B + beta * C in s8, D in s8, summed in s32 by SM80_16x8x32_S32S8S8S32_TN.
// Then: bias: one for each column, then relu, then row_scale: one for each row, then column_scale: one for each column.
// s8 by mma.sync, with an exact bias, scales of rows and columns, and s8 again, saturated
//
// Block: tile 128x256x128, 256 threads, 3 stages, 147456 bytes of shared memory.
// Takes:
//   A (m,k) contiguous in m, rows on 16-byte boundaries
//   B (n,k) contiguous in n, rows on 16-byte boundaries
//   C and D (m,n) contiguous in n, rows on 8-byte boundaries
//
// Emitted by layoutgen from the spec quantized_s8_128x256x128.yaml: edit the spec, not this file. Layouts map from left to right
// (thread -> m: the thread's first row in the block tile of C) and were proved to cover every tile exactly once.
#include <cute/tensor_impl.hpp>   // cute/tensor.hpp without its algorithms: less than half the time to compile
#include <cute/algorithm/clear.hpp>
#include <cute/swizzle.hpp>
#include <cute/swizzle_layout.hpp>
#include <cute/arch/mma_sm80.hpp>
#include <cute/arch/util.hpp>

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

CUTE_DEVICE uint4 load_global_a(bool valid, uint4 const& from) {
  uint4 to = {};   // zero where it is not valid
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4]; }"
               : "+r"(to.x), "+r"(to.y), "+r"(to.z), "+r"(to.w) : "l"(&from), "r"(int(valid)));   // load_a
  return to;
}

CUTE_DEVICE uint4 load_global_b(bool valid, uint4 const& from) {
  uint4 to = {};   // zero where it is not valid
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4]; }"
               : "+r"(to.x), "+r"(to.y), "+r"(to.z), "+r"(to.w) : "l"(&from), "r"(int(valid)));   // load_b
  return to;
}

CUTE_DEVICE uint2 load_global_c(uint2 const& from) {
  uint2 to;
  asm volatile("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(to.x), "=r"(to.y) : "l"(&from) : "memory");   // read_c
  return to;
}

CUTE_DEVICE void store_shared_a(uint32_t to, uint32_t const& from) {
  asm volatile("st.shared.b32 [%1], %0;" :: "r"(from), "r"(to) : "memory");   // store_a
}

CUTE_DEVICE void store_shared_b(uint32_t to, uint2 const& from) {
  asm volatile("st.shared.v2.b32 [%2], {%0, %1};" :: "r"(from.x), "r"(from.y), "r"(to) : "memory");   // store_b
}

CUTE_DEVICE uint4 read_bias(uint4 const& from) {
  uint4 to;
  asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w) : "l"(&from) : "memory");   // read_bias
  return to;
}

CUTE_DEVICE float read_row_scale(float const& from) {
  float to;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(to) : "l"(&from) : "memory");   // read_row_scale
  return to;
}

CUTE_DEVICE float4 read_column_scale(float4 const& from) {
  float4 to;
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(to.x), "=f"(to.y), "=f"(to.z), "=f"(to.w) : "l"(&from) : "memory");   // read_column_scale
  return to;
}

// ---- What the epilogue computes -----------------------------------------------------------------------------------
CUTE_DEVICE int8_t saturated(float x) {
  int least;
  asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(least) : "f"(x));
  return int8_t(least);
}

// ---- The block tile of C: who owns what ---------------------------------------------------------------------------
using BlockM = _128;
using BlockN = _256;
using BlockK = _128;
constexpr int kStages = 3;
constexpr int kGroup = 8;
using ThreadM = Layout<Shape<Shape<_4,_8>,Shape<_2,_4>>,Stride<Stride<_0,_1>,Stride<_64,_0>>>;   // thread -> m: ((4,8),(2,4)):((0,1),(64,0))
using ThreadN = Layout<Shape<Shape<_4,_8>,Shape<_2,_4>>,Stride<Stride<_2,_0>,Stride<_0,_64>>>;   // thread -> n: ((4,8),(2,4)):((2,0),(0,64))
using ValueM = Layout<_8,_8>;   // value -> m: 8:8
using ValueN = Layout<Shape<_2,_8>,Stride<_1,_8>>;   // value -> n: (2,8):(1,8)
using StoreThreadN = Layout<Shape<Shape<_4,_1,_8>,Shape<_2,_4>>,Stride<Stride<_8,_8,_0>,Stride<_0,_64>>>;   // thread -> n that it stores: ((4,1,8),(2,4)):((8,8,0),(0,64))
using StoreValueN = Layout<Shape<_8,_2>,Stride<_1,_32>>;   // stored value -> n: (8,2):(1,32)
using Order = Layout<Shape<_8,_4>,Stride<_4,_1>>;   // step -> atom of a warp's tile, (atom_m, atom_n): (8,4):(4,1)

// ---- A and B: shared memory (x, k, stage), a thread's fragment of it, and the copy from global memory ----
using SmemA = ComposedLayout<Swizzle<3,4,3>,_0,Layout<Shape<_128,_128,_3>,Stride<_128,_1,_16384>>>;   // (m, k, stage) -> int8_t: Sw<3,4,3> o 0 o (128,128,3):(128,1,16384)
constexpr int kSmemA = 49152;   // int8_ts, all stages
using FragmentAThread = ComposedLayout<Swizzle<3,4,3>,_0,Layout<Shape<Shape<_8,Shape<_2,_2>,_1>,Shape<_2,_4>>,Stride<Stride<_128,Stride<_1024,_16>,_0>,Stride<_8192,_0>>>>;   // thread -> int8_t: Sw<3,4,3> o 0 o ((8,(2,2),1),(2,4)):((128,(1024,16),0),(8192,0))
using FragmentA = Layout<Shape<_4,_4,_3>,Stride<_128,_0,_1024>>;   // (vector, k, stage) -> uint128_t: (4,4,3):(128,0,1024)
using FragmentAFlips = Layout<Shape<_4,_4,_3>,Stride<_0,_2,_0>>;   // (vector, k, stage) -> uint128_t, by exclusive or: (4,4,3):(0,2,0)
using CopyAThreadX = Layout<Shape<_8,_32>,Stride<_16,_0>>;   // thread -> m: (8,32):(16,0)
using CopyAThreadK = Layout<Shape<_8,_32>,Stride<_0,_4>>;   // thread -> k: (8,32):(0,4)
using CopyAElementX = Layout<_16,_1>;   // i -> m: 16:1
using CopyAElementK = Layout<_4,_1>;   // j -> k: 4:1
using CopyAThread = ComposedLayout<Swizzle<3,4,3>,_0,Layout<Shape<_8,_32>,Stride<_2048,_4>>>;   // thread -> int8_t: Sw<3,4,3> o 0 o (8,32):(2048,4)
using CopyA = Layout<Shape<_16,_1,_3>,Stride<_32,_0,_4096>>;   // (i, j, stage) -> uint32_t: (16,1,3):(32,0,4096)
using CopyAFlips = Layout<Shape<Shape<_8,_2>,_1,_3>,Stride<Stride<_4,_0>,_0,_0>>;   // (i, j, stage) -> uint32_t, by exclusive or: ((8,2),1,3):((4,0),0,0)

using SmemB = ComposedLayout<Swizzle<3,4,3>,_0,Layout<Shape<_256,_128,_3>,Stride<_128,_1,_32768>>>;   // (n, k, stage) -> int8_t: Sw<3,4,3> o 0 o (256,128,3):(128,1,32768)
constexpr int kSmemB = 98304;   // int8_ts, all stages
using FragmentBThread = ComposedLayout<Swizzle<3,4,3>,_0,Layout<Shape<Shape<_8,Shape<_2,_2>,_1>,Shape<_2,_4>>,Stride<Stride<_128,Stride<_16,_1024>,_0>,Stride<_0,_8192>>>>;   // thread -> int8_t: Sw<3,4,3> o 0 o ((8,(2,2),1),(2,4)):((128,(16,1024),0),(0,8192))
using FragmentB = Layout<Shape<_4,_4,_3>,Stride<_128,_0,_2048>>;   // (vector, k, stage) -> uint128_t: (4,4,3):(128,0,2048)
using FragmentBFlips = Layout<Shape<_4,_4,_3>,Stride<_0,_2,_0>>;   // (vector, k, stage) -> uint128_t, by exclusive or: (4,4,3):(0,2,0)
using CopyBThreadX = Layout<Shape<_16,_16>,Stride<_16,_0>>;   // thread -> n: (16,16):(16,0)
using CopyBThreadK = Layout<Shape<_16,_16>,Stride<_0,_8>>;   // thread -> k: (16,16):(0,8)
using CopyBElementX = Layout<_16,_1>;   // i -> n: 16:1
using CopyBElementK = Layout<_8,_1>;   // j -> k: 8:1
using CopyBThread = ComposedLayout<Swizzle<3,4,3>,_0,Layout<Shape<_16,_16>,Stride<_2048,_8>>>;   // thread -> int8_t: Sw<3,4,3> o 0 o (16,16):(2048,8)
using CopyB = Layout<Shape<_16,_1,_3>,Stride<_16,_0,_4096>>;   // (i, j, stage) -> uint2: (16,1,3):(16,0,4096)
using CopyBFlips = Layout<Shape<Shape<_8,_2>,_1,_3>,Stride<Stride<_2,_0>,_0,_0>>;   // (i, j, stage) -> uint2, by exclusive or: ((8,2),1,3):((2,0),0,0)

// ---- What the plan promises, restated ------------------------------------------------------------------------------
static_assert(size(ThreadM{}) == 256 && size(ThreadN{}) == 256);
static_assert(256 * size(ValueM{}) * size(ValueN{}) == BlockM{} * BlockN{});
static_assert(cosize_v<SmemA> <= kSmemA);
static_assert(256 * size(CopyAElementX{}) * size(CopyAElementK{}) == BlockM{} * BlockK{});
static_assert(cosize_v<SmemB> <= kSmemB);
static_assert(256 * size(CopyBElementX{}) * size(CopyBElementK{}) == BlockN{} * BlockK{});

extern "C" __global__ __launch_bounds__(256, 1)
void quantized_s8_128x256x128(
    int m, int n, int k,
    int8_t const* __restrict__ A, int64_t a_m, int64_t a_k,   // A(m,k) at A[m * a_m + k * a_k]
    int8_t const* __restrict__ B, int64_t b_n, int64_t b_k,   // B(n,k) at B[n * b_n + k * b_k]
    int8_t const* C, int64_t c_m,                             // C(m,n) at C[m * c_m + n], not read where beta is 0
    int8_t* D, int64_t d_m,                                   // D(m,n) at D[m * d_m + n]
    int32_t alpha, int32_t beta,
    int32_t const* __restrict__ bias_data,   // (n)
    float const* __restrict__ row_scale_data,   // (m)
    float const* __restrict__ column_scale_data)   // (n)
{
  // ---- Preconditions: the host checks strides, alignment and devices; extents may be anything from 0 ---------------
  int const thread = threadIdx.x;
  extern __shared__ __align__(1024) int8_t smem[];
  int8_t* const smem_a = smem;
  int8_t* const smem_b = smem + kSmemA;

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
  Tensor mA = make_tensor(make_gmem_ptr(A), make_layout(make_shape(m, k), make_stride(_1{}, a_k)));   // (m, k)
  Tensor mB = make_tensor(make_gmem_ptr(B), make_layout(make_shape(n, k), make_stride(_1{}, b_k)));   // (n, k)
  Tensor mC = make_tensor(make_gmem_ptr(C), make_layout(make_shape(m, n), make_stride(c_m, _1{})));   // (m, n)
  Tensor mD = make_tensor(make_gmem_ptr(D), make_layout(make_shape(m, n), make_stride(d_m, _1{})));   // (m, n)

  // ---- This thread's elements of a k-tile of A and B, from global to shared memory ----
  // A: through registers, 16-byte loads and 4-byte stores
  int const x_a = m0 + CopyAThreadX{}(thread);
  int const k_a = CopyAThreadK{}(thread) - ragged;   // of the first tile: negative before k = 0
  Tensor tAgA = make_tensor(make_gmem_ptr(A + mA.layout()(x_a, k_a)), make_layout(make_shape(BlockM{}, BlockK{}), mA.stride()));   // (m, k) from the thread's first element
  auto const a_tile = BlockK{} * stride<1>(mA);   // one k-tile on
  Tensor tAsA = make_tensor(make_smem_ptr(reinterpret_cast<uint32_t*>(smem_a + CopyAThread{}(thread))), CopyA{});   // (i, j, stage) in uint32_t
  Tensor tArA = make_tensor<uint8_t>(Layout<Shape<_16,_4>,Stride<_4,_1>>{});   // (x, k) on the way through registers
  clear(tArA);

  // B: through registers, 16-byte loads and 8-byte stores
  int const x_b = n0 + CopyBThreadX{}(thread);
  int const k_b = CopyBThreadK{}(thread) - ragged;   // of the first tile: negative before k = 0
  Tensor tBgB = make_tensor(make_gmem_ptr(B + mB.layout()(x_b, k_b)), make_layout(make_shape(BlockN{}, BlockK{}), mB.stride()));   // (n, k) from the thread's first element
  auto const b_tile = BlockK{} * stride<1>(mB);   // one k-tile on
  Tensor tBsB = make_tensor(make_smem_ptr(reinterpret_cast<uint2*>(smem_b + CopyBThread{}(thread))), CopyB{});   // (i, j, stage) in uint2
  Tensor tBrB = make_tensor<uint8_t>(Layout<Shape<_16,_8>,Stride<_8,_1>>{});   // (x, k) on the way through registers
  clear(tBrB);

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

  auto load_first_a = [&]() {   // load A's next k-tile into registers; what lies before k = 0 is zero
    CUTE_UNROLL
    for (int j = 0; j < 4; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < 1; ++i) {
        Tensor piece = make_tensor<uint8_t>(Shape<_16>{});
        recast<uint4>(piece)(0) = load_global_a(x_a + CopyAElementX{}(i * 16) < rows_a && k_a + CopyAElementK{}(j) >= 0, reinterpret_cast<uint4 const&>(tAgA(CopyAElementX{}(i * 16), CopyAElementK{}(j))));
        CUTE_UNROLL
        for (int v = 0; v < size(piece); ++v) tArA(i * 16 + v, j) = piece(v);
      }
    }
  };

  auto load_first_b = [&]() {   // load B's next k-tile into registers; what lies before k = 0 is zero
    CUTE_UNROLL
    for (int j = 0; j < 8; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < 1; ++i) {
        Tensor piece = make_tensor<uint8_t>(Shape<_16>{});
        recast<uint4>(piece)(0) = load_global_b(x_b + CopyBElementX{}(i * 16) < rows_b && k_b + CopyBElementK{}(j) >= 0, reinterpret_cast<uint4 const&>(tBgB(CopyBElementX{}(i * 16), CopyBElementK{}(j))));
        CUTE_UNROLL
        for (int v = 0; v < size(piece); ++v) tBrB(i * 16 + v, j) = piece(v);
      }
    }
  };

  auto store_a = [&]() {   // store A's k-tile from registers into the write stage
    CUTE_UNROLL
    for (int j = 0; j < 1; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < 16; ++i) {
        store_shared_a((write_a ^ CopyAFlips{}(i, 0, 0) * sizeof(uint32_t)) + CopyA{}(i, j, 0) * sizeof(uint32_t), recast<uint32_t>(tArA)(i, j));
      }
    }
  };

  auto store_b = [&]() {   // store B's k-tile from registers into the write stage
    CUTE_UNROLL
    for (int j = 0; j < 1; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < 16; ++i) {
        store_shared_b((write_b ^ CopyBFlips{}(i, 0, 0) * sizeof(uint2)) + CopyB{}(i, j, 0) * sizeof(uint2), recast<uint2>(tBrB)(i, j));
      }
    }
  };

  auto load_a = [&]() {   // load A's next k-tile into registers
    CUTE_UNROLL
    for (int j = 0; j < 4; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < 1; ++i) {
        Tensor piece = make_tensor<uint8_t>(Shape<_16>{});
        recast<uint4>(piece)(0) = load_global_a(x_a + CopyAElementX{}(i * 16) < rows_a, reinterpret_cast<uint4 const&>(tAgA(CopyAElementX{}(i * 16), CopyAElementK{}(j))));
        CUTE_UNROLL
        for (int v = 0; v < size(piece); ++v) tArA(i * 16 + v, j) = piece(v);
      }
    }
  };

  auto load_b = [&]() {   // load B's next k-tile into registers
    CUTE_UNROLL
    for (int j = 0; j < 8; ++j) {
      CUTE_UNROLL
      for (int i = 0; i < 1; ++i) {
        Tensor piece = make_tensor<uint8_t>(Shape<_16>{});
        recast<uint4>(piece)(0) = load_global_b(x_b + CopyBElementX{}(i * 16) < rows_b, reinterpret_cast<uint4 const&>(tBgB(CopyBElementX{}(i * 16), CopyBElementK{}(j))));
        CUTE_UNROLL
        for (int v = 0; v < size(piece); ++v) tBrB(i * 16 + v, j) = piece(v);
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
  Tensor tCrC = make_tensor<int32_t>(Shape<_8,_16>{});   // (value_m, value_n)
  clear(tCrC);
  Tensor tCrC_bits = recast<uint32_t>(tCrC);   // as the atom takes them
  auto mma = [&](int slot) {   // m outer, n inner
    CUTE_UNROLL
    for (int step = 0; step < 32; ++step) {
      int const atom = Order{}(step);
      int const i = atom % 4, j = atom / 4;
      SM80_16x8x32_S32S8S8S32_TN::fma(tCrC_bits(i * 2, j * 2), tCrC_bits(i * 2, j * 2 + 1), tCrC_bits(i * 2 + 1, j * 2), tCrC_bits(i * 2 + 1, j * 2 + 1),
        tCrA(make_coord(0, i), slot), tCrA(make_coord(1, i), slot), tCrA(make_coord(2, i), slot), tCrA(make_coord(3, i), slot),
        tCrB(make_coord(0, j), slot), tCrB(make_coord(1, j), slot),
        tCrC_bits(i * 2, j * 2), tCrC_bits(i * 2, j * 2 + 1), tCrC_bits(i * 2 + 1, j * 2), tCrC_bits(i * 2 + 1, j * 2 + 1));
    }
  };

  // ---- Before the epilogue: lanes that share a row pass each other values, so that each has runs of 8 columns ----
  // A transpose of 4 lanes by 4 atoms, by halves: lanes whose numbers differ in a bit swap what lies across.
  auto exchange = [&]() {
    CUTE_UNROLL
    for (int value = 0; value < size(tCrC); ++value) {
      int const i = value % size<0>(tCrC), j = value / size<0>(tCrC);
      if (j & 2) continue;
      bool const upper = thread & 1;
      int32_t const passed = __shfl_xor_sync(0xffffffff, upper ? tCrC(i, j) : tCrC(i, j + 2), 1);
      if (upper) tCrC(i, j) = passed;
      else tCrC(i, j + 2) = passed;
    }
    CUTE_UNROLL
    for (int value = 0; value < size(tCrC); ++value) {
      int const i = value % size<0>(tCrC), j = value / size<0>(tCrC);
      if (j & 4) continue;
      bool const upper = thread & 2;
      int32_t const passed = __shfl_xor_sync(0xffffffff, upper ? tCrC(i, j) : tCrC(i, j + 4), 2);
      if (upper) tCrC(i, j) = passed;
      else tCrC(i, j + 4) = passed;
    }
  };

  // ---- Prologue ----------------------------------------------------------------------------------------------------
  load_first_a();
  load_first_b();
  next_tile();
  store_a();
  store_b();
  write = write_stage(next_stage(write));
  load_a();
  load_b();
  next_tile();
  store_a();
  store_b();
  write = write_stage(next_stage(write));
  load_a();
  load_b();
  next_tile();
  __syncthreads();
  load_fragment(0, 0);

  // ---- Main loop: multiply one k-tile a turn while the one kStages - 1 ahead is stored and the next one loaded ----
  CUTE_NO_UNROLL
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    load_fragment(1, 1);
    store_a();
    store_b();
    load_a();
    load_b();
    write = write_stage(next_stage(write));
    next_tile();
    mma(0);
    load_fragment(2, 0);
    mma(1);
    load_fragment(3, 1);
    mma(0);
    __syncthreads();
    read = read_stage(next_stage(read));
    load_fragment(0, 0);
    mma(1);

  }

  // ---- Epilogue: D = alpha * accumulator + beta * C, 8 bytes at a time ----
  // ---- What the epilogue's steps need of a thread's columns ----
  Tensor g_bias = make_tensor<int32_t>(Shape<Int<16>>{});   // (stored value)
  Tensor g_column_scale = make_tensor<float>(Shape<Int<16>>{});   // (stored value)
  CUTE_UNROLL
  for (int j = 0; j < size(StoreValueN{}); j += _8{}) {
    int const col = n0 + StoreThreadN{}(thread) + StoreValueN{}(j);
    if (col < n) {
      CUTE_UNROLL
      for (int p = 0; p < 2; ++p) recast<uint4>(g_bias)(j / 4 + p) = read_bias(reinterpret_cast<uint4 const*>(&bias_data[col])[p]);
      CUTE_UNROLL
      for (int p = 0; p < 2; ++p) recast<float4>(g_column_scale)(j / 4 + p) = read_column_scale(reinterpret_cast<float4 const*>(&column_scale_data[col])[p]);
    }
  }
  auto store_d = [&](auto reads_c) {
    Tensor e_bias = make_tensor<int32_t>(g_bias.layout());
    CUTE_UNROLL
    for (int v = 0; v < size(e_bias); ++v) e_bias(v) = int32_t(g_bias(v));
    Tensor e_column_scale = make_tensor<float>(g_column_scale.layout());
    CUTE_UNROLL
    for (int v = 0; v < size(e_column_scale); ++v) e_column_scale(v) = float(g_column_scale(v));
    CUTE_UNROLL
    for (int i = 0; i < size(ValueM{}); ++i) {
      int const row = m0 + ThreadM{}(thread) + ValueM{}(i);
      Tensor e_row_scale = make_tensor<float>(Shape<_1>{});
      if (row < m) {
        recast<float>(e_row_scale)(0) = read_row_scale(reinterpret_cast<float const&>(row_scale_data[row]));
      }
      CUTE_UNROLL
      for (int j = 0; j < size(ValueN{}); j += 8) {
        int const col = n0 + StoreThreadN{}(thread) + StoreValueN{}(j);
        if (row < m && col < n) {
          Tensor rD = make_tensor<int32_t>(Shape<_8>{});
          CUTE_UNROLL
          for (int v = 0; v < size(rD); ++v) rD(v) = alpha * tCrC(i, j + v);
          if constexpr (reads_c) {
            Tensor rC = make_tensor<int8_t>(Shape<_8>{});
            recast<uint2>(rC)(0) = load_global_c(reinterpret_cast<uint2 const&>(mC(row, col)));
            CUTE_UNROLL
            for (int v = 0; v < size(rD); ++v) rD(v) += beta * int32_t(rC(v));
          }
          // bias: one for each column
          CUTE_UNROLL
          for (int v = 0; v < size(rD); ++v) rD(v) = rD(v) + e_bias(j + v);
          // relu
          CUTE_UNROLL
          for (int v = 0; v < size(rD); ++v) rD(v) = rD(v) < 0 ? 0 : rD(v);
          // row_scale: one for each row
          Tensor rF = make_tensor<float>(Shape<_8>{});
          CUTE_UNROLL
          for (int v = 0; v < size(rF); ++v) rF(v) = float(rD(v));
          CUTE_UNROLL
          for (int v = 0; v < size(rD); ++v) rF(v) = rF(v) * e_row_scale(0);
          // column_scale: one for each column
          CUTE_UNROLL
          for (int v = 0; v < size(rD); ++v) rF(v) = rF(v) * e_column_scale(j + v);
          Tensor rOut = make_tensor<int8_t>(Shape<_8>{});
          CUTE_UNROLL
          for (int v = 0; v < size(rD); ++v) rOut(v) = saturated(rF(v));
          reinterpret_cast<uint2&>(mD(row, col)) = recast<uint2>(rOut)(0);   // write_d
        }
      }
    }
  };
  exchange();
  if (beta == 0) store_d(false_type{});   // C is not read, so that NaN in it doesn't reach D
  else store_d(true_type{});
}
