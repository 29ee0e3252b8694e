"""`layoutgen bench` as functions: specs timed beside cuBLAS and Triton, correctness first, ratios only where they hold.

    from layoutgen.bench import bench, read

    result = bench(["warptile_128x128"], shapes=[(4092, 4092, 4092)], against=["cublas"], out="results.json")
    result.rows[1].tflops, result.rows[1].ratios["cublas"].ratio

Nothing here imports torch before a GPU is there to measure on.
"""

from layoutgen.bench.lab import Lab, Operation
from layoutgen.bench.result import MODES, Conditions, Kernel, Machine, Reading, Result, Roofs, Row, read, write
from layoutgen.bench.rounds import Timer, rounds, warm_up
from layoutgen.bench.runner import REPEATS, RIVALS, Watch, allowed_error, bench
from layoutgen.bench.statistic import CONFIDENCE, FEWEST, Ratio, compare, interval, median, quantile

__all__ = [
    "CONFIDENCE", "FEWEST", "MODES", "REPEATS", "RIVALS", "Conditions", "Kernel", "Lab", "Machine", "Operation",
    "Ratio", "Reading", "Result", "Roofs", "Row", "Timer", "Watch", "allowed_error", "bench", "compare", "interval",
    "median", "quantile", "read", "rounds", "warm_up", "write",
]  # fmt: skip
