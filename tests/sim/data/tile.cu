// C = alpha A B + beta C by 32x32 tiles with 8 in k: cp.async of 16 bytes into two stages of padded shared memory, zeros
// beyond the edges. a[k * lda + m], b[k * ldb + n], c[m * ldc + n]. 64 threads, each 4x4 of C.
// PTX: nvcc -O3 -arch=sm_80 -ptx tile.cu
constexpr int kTile = 32, kDepth = 8, kPitch = kTile + 4;

__device__ void copy16(float* shared, float const* global, int bytes) {
  unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes) : "memory");
}

extern "C" __global__ void __launch_bounds__(64)
tile(int m, int n, int k, float const* a, int lda, float const* b, int ldb, float* c, int ldc, float alpha, float beta) {
  __shared__ __align__(16) float sa[2][kDepth][kPitch];
  __shared__ __align__(16) float sb[2][kDepth][kPitch];
  int t = threadIdx.x, row = t / 8, column = t % 8 * 4;
  int m0 = blockIdx.y * kTile, n0 = blockIdx.x * kTile;
  auto load = [&](int k0, int stage) {
    bool in_k = k0 + row < k;
    int a_left = in_k ? min(max(m - m0 - column, 0), 4) : 0, b_left = in_k ? min(max(n - n0 - column, 0), 4) : 0;
    copy16(&sa[stage][row][column], a_left ? a + (long long)(k0 + row) * lda + m0 + column : a, 4 * a_left);
    copy16(&sb[stage][row][column], b_left ? b + (long long)(k0 + row) * ldb + n0 + column : b, 4 * b_left);
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  float acc[4][4] = {};
  load(0, 0);
  int stage = 0;
  for (int k0 = 0; k0 < k; k0 += kDepth, stage ^= 1) {
    load(k0 + kDepth, stage ^ 1);
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < kDepth; ++kk) {
      float4 ra = *reinterpret_cast<float4*>(&sa[stage][kk][t / 8 * 4]);
      float4 rb = *reinterpret_cast<float4*>(&sb[stage][kk][t % 8 * 4]);
      float x[4] = {ra.x, ra.y, ra.z, ra.w}, y[4] = {rb.x, rb.y, rb.z, rb.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) acc[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      int mm = m0 + t / 8 * 4 + i, nn = n0 + t % 8 * 4 + j;
      if (mm < m && nn < n) {
        float& to = c[(long long)mm * ldc + nn];
        to = beta == 0.f ? alpha * acc[i][j] : alpha * acc[i][j] + beta * to;
      }
    }
}
