// C = A B by 64x64 tiles with 32 in k, on tensor cores: cp.async of 16 bytes into three stages of swizzled shared memory,
// ldmatrix (of B transposed), mma.sync of f16 into f32. a[m * lda + k], b[k * ldb + n], c[m * ldc + n]; n and k are
// multiples of 8. Four warps, each 32x32 of C.
// PTX: nvcc -O3 -arch=sm_80 -ptx matrices.cu
#include <cuda_fp16.h>

constexpr int kM = 64, kN = 64, kK = 32, kStages = 3;

// Pieces of 16 bytes: a row of A has 4, two rows to 128 bytes; a row of B has 8.
__device__ int piece_a(int row, int piece) { return row * 4 + (piece ^ (row / 2 % 4)); }
__device__ int piece_b(int row, int piece) { return row * 8 + (piece ^ (row % 8)); }

extern "C" __global__ void __launch_bounds__(128)
matrices(int m, int n, int k, __half const* a, int lda, __half const* b, int ldb, float* c, int ldc) {
  __shared__ __align__(128) uint4 sa[kStages][kM * kK / 8];
  __shared__ __align__(128) uint4 sb[kStages][kK * kN / 8];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int m0 = blockIdx.y * kM, n0 = blockIdx.x * kN, tiles = (k + kK - 1) / kK;

  auto copy = [](void* to, __half const* from, bool inside) {
    unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(inside ? 16 : 0) : "memory");
  };
  auto load = [&](int tile) {
    int stage = tile % kStages, k0 = tile * kK;
    if (tile < tiles)
#pragma unroll
      for (int i = t; i < 256; i += 128) {
        int row = i / 4, piece = i % 4, x = m0 + row, y = k0 + piece * 8;
        bool in_a = x < m && y < k;
        copy(&sa[stage][piece_a(row, piece)], in_a ? a + (long long)x * lda + y : a, in_a);
        row = i / 8, piece = i % 8, x = n0 + piece * 8, y = k0 + row;
        bool in_b = x < n && y < k;
        copy(&sb[stage][piece_b(row, piece)], in_b ? b + (long long)y * ldb + x : b, in_b);
      }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  float acc[2][4][4] = {};
  for (int s = 0; s < kStages - 1; ++s) load(s);
  for (int tile = 0; tile < tiles; ++tile) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    load(tile + kStages - 1);
    int stage = tile % kStages;
#pragma unroll
    for (int kk = 0; kk < kK; kk += 16) {
      unsigned fa[2][4], fb[4][2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {  // 16 rows by 16 k: matrices (0,0), (8,0), (0,8), (8,8)
        int row = warp / 2 * 32 + i * 16 + lane % 16, piece = kk / 8 + lane / 16;
        unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&sa[stage][piece_a(row, piece)]));
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3]) : "r"(at));
      }
#pragma unroll
      for (int j = 0; j < 4; j += 2) {  // 16 k by 16 columns, transposed
        int row = kk + lane % 16, piece = warp % 2 * 4 + j + lane / 16;
        unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&sb[stage][piece_b(row, piece)]));
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(fb[j][0]), "=r"(fb[j][1]), "=r"(fb[j + 1][0]), "=r"(fb[j + 1][1]) : "r"(at));
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                       : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
                       : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[j][0]), "r"(fb[j][1]));
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int row = m0 + warp / 2 * 32 + i * 16 + half * 8 + lane / 4;
        int column = n0 + warp % 2 * 32 + j * 8 + lane % 4 * 2;
        if (row < m && column < n)
          *reinterpret_cast<float2*>(c + (long long)row * ldc + column) =
              make_float2(acc[i][j][half * 2], acc[i][j][half * 2 + 1]);
      }
}
