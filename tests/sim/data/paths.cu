// The paths that tile.cu doesn't take: through registers and transposed into shared memory, division in the tile order,
// threads that leave early, narrow types, a local array with a runtime index, dynamic shared memory, warp shuffles.
// PTX: nvcc -O3 -arch=sm_90a -lineinfo -ptx paths.cu
#include <cstdint>

// y[x][y] = x[y][x] by 16x16 tiles, 256 threads, tiles in groups of `group` rows; out = y as fp16 bits as well.
extern "C" __global__ void transpose(float const* x, float* y, unsigned short* half, int rows, int columns, int group) {
  extern __shared__ float tile[];
  int tiles_m = (rows + 15) / 16, tiles_n = (columns + 15) / 16;
  int per_group = group * tiles_n, first = blockIdx.x / per_group * group;
  int high = min(tiles_m - first, group), inside = blockIdx.x % per_group;
  int bm = first + inside % high, bn = inside / high;
  int i = threadIdx.x / 16, j = threadIdx.x % 16;
  if (bm * 16 + i < rows && bn * 16 + j < columns) tile[j * 17 + i] = x[(bm * 16 + i) * columns + bn * 16 + j];
  __syncthreads();
  if (bn * 16 + i >= columns || bm * 16 + j >= rows) return;
  float v = tile[i * 17 + j];
  int at = (bn * 16 + i) * rows + bm * 16 + j;
  y[at] = v;
  unsigned short bits;
  asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; mov.b16 %0, h; }" : "=h"(bits) : "f"(v));
  half[at] = bits;
}

// out[t] = sum over the warp of histogram[(byte of t)] where the histogram is a local array.
extern "C" __global__ void local(uint8_t const* in, int64_t* out, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  int counts[8];
  for (int i = 0; i < 8; ++i) counts[i] = i * i;
  for (int i = 0; i < 5; ++i) counts[in[(t + i) % n] % 8] += i;
  int64_t sum = counts[in[t % n] % 8];
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (t < n) out[t] = sum / 3 + static_cast<int64_t>(in[t]) * 0x100000001ll;
}
