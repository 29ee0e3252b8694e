"""The rival triton: a plain fp32 GEMM as Triton's users write one, tl.dot in IEEE precision, tuned over a short list.

It is imported only when it is asked for: triton comes with CUDA builds of torch, but not everywhere.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.errors import TritonError

from layoutgen.errors import BuildError

CONFIGS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8}, num_warps=warps, num_stages=stages)
    for m, n, k, warps, stages in (
        (64, 64, 16, 4, 3),
        (64, 64, 32, 4, 2),
        (64, 128, 16, 4, 3),
        (128, 64, 16, 4, 3),
        (128, 128, 16, 4, 3),
        (128, 128, 16, 8, 2),
        (128, 128, 16, 8, 3),
        (128, 128, 32, 8, 2),
        (128, 256, 16, 8, 2),
    )
]


@triton.autotune(configs=CONFIGS, key=["m", "n", "k", "a_m", "a_k", "b_k", "b_n"])
@triton.jit
def _kernel(
    a, b, d, m, n, k, a_m, a_k, b_k, b_n, d_m,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """One tile of d (m, n) = a (m, k) @ b (k, n). GROUP rows of tiles are walked before the column moves on."""
    tiles_m = tl.cdiv(m, BLOCK_M)
    per_group = GROUP * tl.cdiv(n, BLOCK_N)
    first = tl.program_id(0) // per_group * GROUP
    rows = min(tiles_m - first, GROUP)
    within = tl.program_id(0) % per_group
    tile_m = (first + within % rows) * BLOCK_M
    tile_n = within // rows * BLOCK_N
    at_m = tl.arange(0, BLOCK_M)
    at_n = tl.arange(0, BLOCK_N)
    at_k = tl.arange(0, BLOCK_K)
    # The tile's corner in 64 bits, what lies within a tile in 32.
    from_a = a + tile_m.to(tl.int64) * a_m + (at_m[:, None] * a_m + at_k[None, :] * a_k)
    from_b = b + tile_n.to(tl.int64) * b_n + (at_k[:, None] * b_k + at_n[None, :] * b_n)
    inside_m = (tile_m + at_m < m)[:, None]
    inside_n = (tile_n + at_n < n)[None, :]
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for begin in range(0, k, BLOCK_K):
        inside_k = begin + at_k < k
        x = tl.load(from_a, mask=inside_m & inside_k[None, :], other=0.0)
        y = tl.load(from_b, mask=inside_k[:, None] & inside_n, other=0.0)
        sums = tl.dot(x, y, sums, input_precision="ieee")
        from_a += BLOCK_K * a_k
        from_b += BLOCK_K * b_k
    to_d = d + tile_m.to(tl.int64) * d_m + tile_n + (at_m[:, None] * d_m + at_n[None, :])
    tl.store(to_d, sums, mask=inside_m & inside_n)


def sgemm(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """out (M, N) = a (M, K) @ b (K, N), all f32 and on one GPU; out's rows are of neighbouring elements.

    Raises BuildError where Triton can't compile or launch it.
    """
    (m, k), n = a.shape, b.shape[1]

    def grid(chosen: dict[str, int]) -> tuple[int]:
        return (triton.cdiv(m, chosen["BLOCK_M"]) * triton.cdiv(n, chosen["BLOCK_N"]),)

    try:
        _kernel[grid](a, b, out, m, n, k, *a.stride(), *b.stride(), out.stride(0))
    except TritonError as error:
        raise BuildError("Triton compiles and launches its kernel", got=error) from error
