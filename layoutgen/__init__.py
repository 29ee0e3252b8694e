"""layoutgen: YAML tilings of a matrix multiply -> a proven, readable, fast CuTe kernel and a PyTorch operator.

    import layoutgen

    op = layoutgen.load("warptile_128x128")      # registers torch.ops.layoutgen.warptile_128x128
    d = op(a, b, c, alpha=1.0, beta=0.5)         # alpha * a @ b + beta * c

`load` imports torch when it is first asked for. The stages are functions of the same name in modules of their own:
`layoutgen.spec.load`, `layoutgen.plan.plan`, `layoutgen.check.check`, `layoutgen.emit.emit`, `layoutgen.build.build`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from layoutgen.ops import load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    if name == "load":
        from layoutgen.ops import load

        return load
    raise AttributeError(f"module 'layoutgen' has no attribute {name!r}")
