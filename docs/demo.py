"""Call the operator of specs/warptile_128x128.yaml on random matrices and compare it with float64: `make demo`."""

from __future__ import annotations

import time

import torch
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import layoutgen

SHAPES = [(128, 128, 64), (130, 70, 33), (1, 257, 100), (200, 96, 0), (255, 129, 127)]


def main() -> None:
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layoutgen.load("specs/warptile_128x128.yaml")
    op = torch.ops.layoutgen.warptile_128x128  # what load registered
    shapes = SHAPES + ([(4096, 4096, 4096), (4092, 4095, 4093)] if device == "cuda" else [])
    where = torch.cuda.get_device_name() if device == "cuda" else "CPU, in the simulator"
    title = f"warptile_128x128 on {where}"
    table = Table("M", "N", "K", "call", "error", "of |a||b|", "seconds", title=title, box=SIMPLE)
    table.columns[3].no_wrap = True
    worst = 0.0
    for m, n, k in shapes:
        # Row-major, column-major, and a window of a larger matrix: any strides will do.
        for label, a, b in (
            ("op(a, b)", torch.randn(m, k, device=device), torch.randn(k, n, device=device)),
            ("op(a.T, b.T)", torch.randn(k, m, device=device).T, torch.randn(n, k, device=device).T),
            (
                "op(a[:, 1:], b, c, 1.5, 0.5)",
                torch.randn(m, k + 1, device=device)[:, 1:],
                torch.randn(k, n, device=device),
            ),
        ):
            scaled = label.endswith("0.5)")
            c = torch.randn(m, n, device=device) if scaled else None
            alpha, beta = (1.5, 0.5) if scaled else (1.0, 0.0)
            start = time.perf_counter()
            d = op(a, b, c, alpha, beta)
            if device == "cuda":
                torch.cuda.synchronize()
            seconds = time.perf_counter() - start
            exact = alpha * (a.double() @ b.double()) + (beta * c.double() if c is not None else 0.0)
            scale = abs(alpha) * (a.double().abs() @ b.double().abs()) + (
                beta * c.double().abs() if c is not None else 0.0
            )
            error = (d.double() - exact).abs()
            relative = (error / scale.clamp_min(1e-300)).max().item()
            worst = max(worst, relative)
            table.add_row(
                str(m), str(n), str(k), label, f"{error.max().item():.1e}", f"{relative:.1e}", f"{seconds:.2f}"
            )
    Console().print(table)
    print(
        f"Largest error against float64: {worst:.1e} of |a||b|; float32 resolves {torch.finfo(torch.float32).eps:.1e}."
    )
    print("The first call of each variant includes its build; a built variant is kept in the cache.")


if __name__ == "__main__":
    main()
