// sgemm_mn_128x256x16, variant ak_bn_16B: D = alpha * A * B + beta * C in f32.
// Large matrices, where neither A nor B is transposed
//
// Block: tile 128x256x16, 256 threads, 3 stages, 76608 bytes of shared memory.
// Takes:
//   A (m,k) contiguous in k, rows on 4-byte boundaries
//   B (n,k) contiguous in n, rows on 16-byte boundaries
//   C and D (m,n) contiguous in n, rows on 16-byte boundaries
//
// Emitted by layoutgen from the spec sgemm_mn_128x256x16.yaml: edit the spec, not this file. Layouts map from left to right
// (thread -> m: the thread's first row in the block tile of C) and were proved to cover every tile exactly once.
#include <cute/tensor_impl.hpp>   // cute/tensor.hpp without its algorithms: less than half the time to compile
#include <cute/algorithm/clear.hpp>
#include <cute/arch/copy_sm80.hpp>

using namespace cute;

// ---- Accesses that stay where the program puts them, at its width: the compiler moves, sinks and splits plain ones ---
// One function for each, named after it, so that line information tells which access an instruction is. Where shared
// memory is asked for, it is by an address that the compiler takes for a whole, plus a constant: one instruction.
CUTE_DEVICE void load_fragment_a(uint32_t from, float4& to) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(to.x), "=f"(to.y), "=f"(to.z), "=f"(to.w) : "r"(from) : "memory");   // fragment_a
}

CUTE_DEVICE void load_fragment_b(uint32_t from, float4& to) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(to.x), "=f"(to.y), "=f"(to.z), "=f"(to.w) : "r"(from) : "memory");   // fragment_b
}

CUTE_DEVICE void copy_async_a(uint32_t to, float const& from) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4;" :: "r"(to), "l"(&from) : "memory");   // copy_a
}

CUTE_DEVICE void copy_async_or_zero_a(bool valid, uint32_t to, float const& from) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4, %2;" :: "r"(to), "l"(&from), "r"(valid ? 4 : 0) : "memory");   // copy_a
}

CUTE_DEVICE void copy_async_b(uint32_t to, float4 const& from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" :: "r"(to), "l"(&from) : "memory");   // copy_b
}

CUTE_DEVICE void copy_async_or_zero_b(bool valid, uint32_t to, float4 const& from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(&from), "r"(valid ? 16 : 0) : "memory");   // copy_b
}

CUTE_DEVICE void write_flag(uint32_t* to) {
  asm volatile("st.release.gpu.global.u32 [%0], 1;" :: "l"(to) : "memory");   // write_flag
}

CUTE_DEVICE uint32_t read_flag(uint32_t const* from) {
  uint32_t flag;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(from) : "memory");   // read_flag
  return flag;
}

// ---- The block tile of C: who owns what ---------------------------------------------------------------------------
using BlockM = _128;
using BlockN = _256;
using BlockK = _16;
constexpr int kStages = 3;
constexpr int kGroup = 8;
using ThreadM = Layout<Shape<Shape<_4,_8>,_8>,Stride<Stride<_0,_4>,_0>>;   // thread -> m: ((4,8),8):((0,4),0)
using ThreadN = Layout<Shape<Shape<_4,_8>,_8>,Stride<Stride<_4,_0>,_32>>;   // thread -> n: ((4,8),8):((4,0),32)
using ValueM = Layout<Shape<_4,_4>,Stride<_1,_32>>;   // value -> m: (4,4):(1,32)
using ValueN = Layout<Shape<_4,_2>,Stride<_1,_16>>;   // value -> n: (4,2):(1,16)
using Order = Layout<Shape<_8,_16>,Stride<_16,_1>>;   // step -> value of a thread's tile, (value_m, value_n): (8,16):(16,1)

// ---- A and B: shared memory (x, k, stage), a thread's fragment of it, and the copy from global memory ----
using SmemA = Layout<Shape<_128,_16,_3>,Stride<_1,_136,Int<2168>>>;   // (m, k, stage) -> float: (128,16,3):(1,136,2168)
constexpr int kSmemA = 6504;   // floats, all stages
using FragmentAThread = Layout<Shape<Shape<_4,_8>,_8>,Stride<Stride<_0,_4>,_0>>;   // thread -> float: ((4,8),8):((0,4),0)
using FragmentA = Layout<Shape<_4,_16,_3>,Stride<_8,Int<34>,Int<542>>>;   // (vector, k, stage) -> float4: (4,16,3):(8,34,542)
using CopyAThreadX = Layout<Shape<_8,_32>,Stride<_0,_1>>;   // thread -> m: (8,32):(0,1)
using CopyAThreadK = Layout<Shape<_8,_32>,Stride<_1,_0>>;   // thread -> k: (8,32):(1,0)
using CopyAElementX = Layout<_4,_32>;   // i -> m: 4:32
using CopyAElementK = Layout<_2,_8>;   // j -> k: 2:8
using CopyAThread = Layout<Shape<_8,_32>,Stride<_136,_1>>;   // thread -> float: (8,32):(136,1)
using CopyA = Layout<Shape<_4,_2,_3>,Stride<_32,Int<1088>,Int<2168>>>;   // (i, j, stage) -> float: (4,2,3):(32,1088,2168)

using SmemB = Layout<Shape<_256,_16,_3>,Stride<_1,Int<264>,Int<4216>>>;   // (n, k, stage) -> float: (256,16,3):(1,264,4216)
constexpr int kSmemB = 12648;   // floats, all stages
using FragmentBThread = Layout<Shape<Shape<_4,_8>,_8>,Stride<Stride<_4,_0>,_32>>;   // thread -> float: ((4,8),8):((4,0),32)
using FragmentB = Layout<Shape<_2,_16,_3>,Stride<_4,Int<66>,Int<1054>>>;   // (vector, k, stage) -> float4: (2,16,3):(4,66,1054)
using CopyBThreadX = Layout<Shape<_64,_4>,Stride<_4,_0>>;   // thread -> n: (64,4):(4,0)
using CopyBThreadK = Layout<Shape<_64,_4>,Stride<_0,_1>>;   // thread -> k: (64,4):(0,1)
using CopyBElementX = Layout<_4,_1>;   // i -> n: 4:1
using CopyBElementK = Layout<_4,_4>;   // j -> k: 4:4
using CopyBThread = Layout<Shape<_64,_4>,Stride<_4,Int<264>>>;   // thread -> float: (64,4):(4,264)
using CopyB = Layout<Shape<_1,_4,_3>,Stride<_0,Int<264>,Int<1054>>>;   // (i, j, stage) -> float4: (1,4,3):(0,264,1054)

// ---- What the plan promises, restated ------------------------------------------------------------------------------
static_assert(size(ThreadM{}) == 256 && size(ThreadN{}) == 256);
static_assert(256 * size(ValueM{}) * size(ValueN{}) == BlockM{} * BlockN{});
static_assert(cosize_v<SmemA> <= kSmemA);
static_assert(256 * size(CopyAElementX{}) * size(CopyAElementK{}) == BlockM{} * BlockK{});
static_assert(cosize_v<SmemB> <= kSmemB);
static_assert(256 * size(CopyBElementX{}) * size(CopyBElementK{}) == BlockN{} * BlockK{});

extern "C" __global__ __launch_bounds__(256, 1)
void sgemm_mn_128x256x16(
    int m, int n, int k,
    float const* __restrict__ A, int64_t a_m, int64_t a_k,   // A(m,k) at A[m * a_m + k * a_k]
    float const* __restrict__ B, int64_t b_n, int64_t b_k,   // B(n,k) at B[n * b_n + k * b_k]
    float const* C, int64_t c_m,                             // C(m,n) at C[m * c_m + n], not read where beta is 0
    float* D, int64_t d_m,                                   // D(m,n) at D[m * d_m + n]
    float alpha, float beta,
    int streams, int streamed,                               // blocks that share tiles, and those tiles
    float* partial, uint32_t* flags)                         // a tile of values for each of them, and whether it is there: zeros
{
  // ---- Preconditions: the host checks strides, alignment and devices; extents may be anything from 0 ---------------
  int const thread = threadIdx.x;
  extern __shared__ __align__(16) float smem[];
  float* const smem_a = smem;
  float* const smem_b = smem + kSmemA;

  // ---- This block's work: neighbouring blocks walk m within groups of 8 tiles, and share rows of A and columns of B in L2 ----
  int const tiles_m = ceil_div(m, BlockM{});
  int const tiles_n = ceil_div(n, BlockN{});
  int const group_size = min(kGroup, tiles_m);   // so that a group has no more tiles than the grid
  // Blocks share the first `streamed` tiles, all k-tiles of which are dealt out in even runs. The first block has the last
  // run, so that what a block waits for was begun before it. The other blocks have a tile each.
  int const depth = ceil_div(k, BlockK{});   // k-tiles of a tile
  auto share_begin = [&](int share) { return share * (streamed * depth / streams) + min(share, streamed * depth % streams); };
  int const share = streams - 1 - int(blockIdx.x);
  int const begin = share < 0 ? 0 : share_begin(share);
  int tile = share < 0 ? streamed - 1 - share : begin / depth;
  int first = share < 0 ? 0 : begin % depth;   // k-tile of it
  int left = share < 0 ? depth : share_begin(share + 1) - begin;   // k-tiles of this block
  CUTE_NO_UNROLL
  do {
    int const group = tile / (group_size * tiles_n);
    int const in_group = tile % (group_size * tiles_n);
    int const group_width = min(tiles_m - group * group_size, group_size);
    int const tile_m = group * group_size + in_group % group_width;
    int const tile_n = in_group / group_width;
    int const m0 = tile_m * BlockM{};
    int const n0 = tile_n * BlockN{};
    int const k_tiles = min(left, depth - first);
    // A tile's ragged k-tile comes first: its leading columns lie before k = 0 and land as zeros, so that no later one needs
    // a bound on k. Here the first k-tile begins `ragged` columns before k = 0, or after it if that is negative.
    int const ragged = (depth - first) * BlockK{} - k;
    __syncthreads();   // shared memory of the tile before is read

    // ---- Cursors: k-tiles left to fetch, rows of A and B that may be fetched (none once no tile is left) ----
    int tiles_left = k_tiles;
    int rows_a = tiles_left > 0 ? m : 0;
    int rows_b = tiles_left > 0 ? n : 0;

    // ---- Full tensors ------------------------------------------------------------------------------------------------
    Tensor mA = make_tensor(make_gmem_ptr(A), make_layout(make_shape(m, k), make_stride(a_m, _1{})));   // (m, k)
    Tensor mB = make_tensor(make_gmem_ptr(B), make_layout(make_shape(n, k), make_stride(_1{}, b_k)));   // (n, k)
    Tensor mC = make_tensor(make_gmem_ptr(C), make_layout(make_shape(m, n), make_stride(c_m, _1{})));   // (m, n)
    Tensor mD = make_tensor(make_gmem_ptr(D), make_layout(make_shape(m, n), make_stride(d_m, _1{})));   // (m, n)

    // ---- This thread's elements of a k-tile of A and B, from global to shared memory ----
    // A: cp.async, 4 bytes a piece
    int const x_a = m0 + CopyAThreadX{}(thread);
    int const k_a = CopyAThreadK{}(thread) - ragged;   // of the first tile: negative before k = 0
    Tensor tAgA = make_tensor(make_gmem_ptr(A + mA.layout()(x_a, k_a)), make_layout(make_shape(BlockM{}, BlockK{}), mA.stride()));   // (m, k) from the thread's first element
    auto const a_tile = BlockK{} * stride<1>(mA);   // one k-tile on
    Tensor tAsA = make_tensor(make_smem_ptr(reinterpret_cast<float*>(smem_a + CopyAThread{}(thread))), CopyA{});   // (i, j, stage) in float

    // B: cp.async, 16 bytes a piece
    int const x_b = n0 + CopyBThreadX{}(thread);
    int const k_b = CopyBThreadK{}(thread) - ragged;   // of the first tile: negative before k = 0
    Tensor tBgB = make_tensor(make_gmem_ptr(B + mB.layout()(x_b, k_b)), make_layout(make_shape(BlockN{}, BlockK{}), mB.stride()));   // (n, k) from the thread's first element
    auto const b_tile = BlockK{} * stride<1>(mB);   // one k-tile on
    Tensor tBsB = make_tensor(make_smem_ptr(reinterpret_cast<float4*>(smem_b + CopyBThread{}(thread))), CopyB{});   // (i, j, stage) in float4

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
      for (int j = 0; j < 2; ++j) {
        CUTE_UNROLL
        for (int i = 0; i < 4; ++i) {
          auto const& from = reinterpret_cast<float const&>(tAgA(CopyAElementX{}(i), CopyAElementK{}(j)));
          copy_async_or_zero_a(x_a + CopyAElementX{}(i) < rows_a && k_a + CopyAElementK{}(j) >= 0, write_a + CopyA{}(i, j, 0) * sizeof(float), from);
        }
      }
    };

    auto copy_first_b = [&]() {   // start copying B's next k-tile into the write stage; what lies before k = 0 is zero
      CUTE_UNROLL
      for (int j = 0; j < 4; ++j) {
        CUTE_UNROLL
        for (int i = 0; i < 1; ++i) {
          auto const& from = reinterpret_cast<float4 const&>(tBgB(CopyBElementX{}(i * 4), CopyBElementK{}(j)));
          copy_async_or_zero_b(x_b + CopyBElementX{}(i * 4) < rows_b && k_b + CopyBElementK{}(j) >= 0, write_b + CopyB{}(i, j, 0) * sizeof(float4), from);
        }
      }
    };

    auto copy_a = [&](int first, int last) {   // start copying A's next k-tile into the write stage
      CUTE_UNROLL
      for (int piece = first; piece < last; ++piece) {
        int const i = piece % 4, j = piece / 4;
        auto const& from = reinterpret_cast<float const&>(tAgA(CopyAElementX{}(i), CopyAElementK{}(j)));
        if (x_a + CopyAElementX{}(i) < rows_a) copy_async_a(write_a + CopyA{}(i, j, 0) * sizeof(float), from);
      }
    };

    auto copy_b = [&](int first, int last) {   // start copying B's next k-tile into the write stage
      CUTE_UNROLL
      for (int piece = first; piece < last; ++piece) {
        int const i = piece % 1, j = piece / 1;
        auto const& from = reinterpret_cast<float4 const&>(tBgB(CopyBElementX{}(i * 4), CopyBElementK{}(j)));
        if (x_b + CopyBElementX{}(i * 4) < rows_b) copy_async_b(write_b + CopyB{}(i, j, 0) * sizeof(float4), from);
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
    Tensor tCsA = make_tensor(make_smem_ptr(reinterpret_cast<float4 const*>(smem_a + FragmentAThread{}(thread))), FragmentA{});   // (vector, k, stage)
    Tensor tCrA = make_tensor<float>(Layout<Shape<_16,_2>>{});   // (value, slot)
    Tensor tCsB = make_tensor(make_smem_ptr(reinterpret_cast<float4 const*>(smem_b + FragmentBThread{}(thread))), FragmentB{});   // (vector, k, stage)
    Tensor tCrB = make_tensor<float>(Layout<Shape<_8,_2>>{});   // (value, slot)
    // Their addresses in the stage that is read.
    uint32_t read_a, read_b;
    auto read_stage = [&](int stage) {
      read_a = cast_smem_ptr_to_uint(&tCsA(0, 0, stage));
      read_b = cast_smem_ptr_to_uint(&tCsB(0, 0, stage));
      asm volatile("" : "+r"(read_a), "+r"(read_b));
      return stage;
    };
    int read = read_stage(0);
    auto load_fragment = [&](int k_index, int slot) {   // of the read stage
      CUTE_UNROLL
      for (int v = 0; v < 4; ++v) load_fragment_a(read_a + FragmentA{}(v, k_index, 0) * sizeof(float4), recast<float4>(tCrA)(v, slot));
      CUTE_UNROLL
      for (int v = 0; v < 2; ++v) load_fragment_b(read_b + FragmentB{}(v, k_index, 0) * sizeof(float4), recast<float4>(tCrB)(v, slot));
    };
    // ---- Accumulators, and the multiply-adds of one k ----
    Tensor tCrC = make_tensor<float>(Shape<_16,_8>{});   // (value_m, value_n)
    clear(tCrC);
    auto mma = [&](int slot) {   // m outer, n inner, to and fro
      CUTE_UNROLL
      for (int i1 = 0; i1 < 16; ++i1) {
        CUTE_UNROLL
        for (int i0 = 0; i0 < 8; ++i0) {
          int const value = Order{}(i1 % 2 ? 7 - i0 : i0, i1);
          int const i = value % size<0>(tCrC), j = value / size<0>(tCrC);
          tCrC(i, j) += tCrA(i, slot) * tCrB(j, slot);
        }
      }
    };

    // ---- Prologue ----------------------------------------------------------------------------------------------------
    copy_first_a();
    copy_first_b();
    next_tile();
    cp_async_fence();
    write = write_stage(next_stage(write));
    copy_a(0, 8);
    copy_b(0, 4);
    next_tile();
    cp_async_fence();
    write = write_stage(next_stage(write));
    cp_async_wait<1>();
    __syncthreads();
    load_fragment(0, 0);

    // ---- Main loop: multiply one k-tile a turn while the one kStages - 1 ahead is copied ----
    CUTE_NO_UNROLL
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      load_fragment(1, 1);
      mma(0);
      load_fragment(2, 0);
      copy_a(0, 1);
      mma(1);
      load_fragment(3, 1);
      copy_a(1, 2);
      mma(0);
      load_fragment(4, 0);
      copy_a(2, 3);
      mma(1);
      load_fragment(5, 1);
      copy_a(3, 4);
      mma(0);
      load_fragment(6, 0);
      mma(1);
      load_fragment(7, 1);
      copy_a(4, 5);
      mma(0);
      load_fragment(8, 0);
      copy_a(5, 6);
      mma(1);
      load_fragment(9, 1);
      copy_a(6, 7);
      mma(0);
      load_fragment(10, 0);
      copy_a(7, 8);
      mma(1);
      load_fragment(11, 1);
      mma(0);
      load_fragment(12, 0);
      copy_b(0, 1);
      mma(1);
      load_fragment(13, 1);
      copy_b(1, 2);
      mma(0);
      load_fragment(14, 0);
      copy_b(2, 3);
      mma(1);
      load_fragment(15, 1);
      copy_b(3, 4);
      cp_async_fence();
      write = write_stage(next_stage(write));
      next_tile();
      mma(0);
      cp_async_wait<1>();
      __syncthreads();
      read = read_stage(next_stage(read));
      load_fragment(0, 0);
      mma(1);

    }

    // ---- Epilogue: D = alpha * accumulator + beta * C, 16 bytes at a time ----
    auto store_d = [&](auto reads_c) {
      CUTE_UNROLL
      for (int i = 0; i < size(ValueM{}); ++i) {
        int const row = m0 + ThreadM{}(thread) + ValueM{}(i);
        CUTE_UNROLL
        for (int j = 0; j < size(ValueN{}); j += 4) {
          int const col = n0 + ThreadN{}(thread) + ValueN{}(j);
          if (row < m && col < n) {
            Tensor rD = make_tensor<float>(Shape<_4>{});
            CUTE_UNROLL
            for (int v = 0; v < size(rD); ++v) rD(v) = alpha * tCrC(i, j + v);
            if constexpr (reads_c) {
              Tensor rC = make_tensor<float>(Shape<_4>{});
              recast<float4>(rC)(0) = reinterpret_cast<float4 const&>(mC(row, col));   // read_c
              CUTE_UNROLL
              for (int v = 0; v < size(rD); ++v) rD(v) += beta * rC(v);
            }
            reinterpret_cast<float4&>(mD(row, col)) = recast<float4>(rD)(0);   // write_d
          }
        }
      }
    };
    // ---- Where blocks share a tile: the one that begins it adds up what the others leave in the order of k ----
    auto of_share = [&](int index) { return partial + int64_t(index) * BlockM{} * BlockN{} + thread; };   // (value) 256 apart
    auto leave_partial = [&]() {
      CUTE_UNROLL
      for (int v = 0; v < size(tCrC); ++v) of_share(share)[v * 256] = tCrC(v);   // write_partial
      __threadfence();
      __syncthreads();
      if (thread == 0) write_flag(flags + share);
    };
    auto add_partials = [&]() {
      CUTE_NO_UNROLL
      for (int other = share + 1, done = k_tiles; done < depth; ++other) {
        if (thread == 0) while (read_flag(flags + other) == 0);
        __syncthreads();
        CUTE_UNROLL
        for (int v = 0; v < size(tCrC); ++v) tCrC(v) += __ldcg(of_share(other) + v * 256);   // read_partial
        done += min(share_begin(other + 1) - share_begin(other), depth - done);
      }
    };
    if (first > 0) {
      leave_partial();
    } else {
      add_partials();
      if (beta == 0.f) store_d(false_type{});   // C is not read, so that NaN in it doesn't reach D
      else store_d(true_type{});
    }
    left -= k_tiles;
    first = 0;
    ++tile;
  } while (left > 0);
}
