"""How far split f32 is from float64, beside cuBLAS: python -m benchmarks.split_errors SPEC FILE.json, on a GPU."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import torch

from layoutgen.ops import Operator, load

DEPTHS = (512, 4096, 65536)
EXTENT = 512
Draw = Callable[[int, int, torch.Generator], torch.Tensor]


def uniform(rows: int, columns: int, random: torch.Generator) -> torch.Tensor:
    return torch.rand(rows, columns, generator=random, device="cuda").mul_(2).sub_(1)


def positive(rows: int, columns: int, random: torch.Generator) -> torch.Tensor:
    return torch.rand(rows, columns, generator=random, device="cuda")


def wide(rows: int, columns: int, random: torch.Generator) -> torch.Tensor:
    """Log-normal, of either sign, over some 20 binary orders."""
    size = torch.randn(rows, columns, generator=random, device="cuda").mul_(3).exp_()
    return size * torch.randn(rows, columns, generator=random, device="cuda").sign()


KINDS: dict[str, Draw] = {"uniform": uniform, "positive": positive, "wide": wide}


def error(d: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest |d - a b| / (|a| |b|)."""
    a, b = a.double(), b.double()
    return float(((d.double() - a @ b).abs() / (a.abs() @ b.abs())).max())


def measured(operator: Operator) -> list[dict[str, object]]:
    """One row for each depth and kind of numbers, of as many draws as take M N K to about 2^36."""
    torch.set_float32_matmul_precision("highest")
    random, rows = torch.Generator("cuda").manual_seed(0), []
    for k in DEPTHS:
        for kind, draw in KINDS.items():
            own = theirs = 0.0
            for _ in range(max(1, 16384 // k)):
                a, b = draw(EXTENT, k, random), draw(k, EXTENT, random)
                result = operator.eager(a, b)
                assert isinstance(result, torch.Tensor)
                own, theirs = max(own, error(result, a, b)), max(theirs, error(a @ b, a, b))
            rows.append({"k": k, "numbers": kind, "error": own, "cublas": theirs, "ratio": own / theirs})
    return rows


if __name__ == "__main__":
    name, file = sys.argv[1:]
    found = {
        "script": f"python -m benchmarks.split_errors {name}", "spec": name, "gpu": torch.cuda.get_device_name(),
        "torch": str(torch.__version__), "extents": f"{EXTENT} x {EXTENT} x k", "rows": measured(load(name)),
    }  # fmt: skip
    with open(file, "w", encoding="utf-8") as out:
        json.dump(found, out, indent=1)
        out.write("\n")
    for row in found["rows"]:
        print(row)
