"""layoutgen: a YAML description of a matrix multiply's tilings -> a proven, readable, fast CuTe kernel and a PyTorch operator.

>>> import layoutgen
>>> op = layoutgen.load("warptile_128x128")      # registers torch.ops.layoutgen.warptile_128x128
>>> d = op(a, b, c, alpha=1.0, beta=0.5)         # alpha * a @ b + beta * c

`load` needs torch and imports it; nothing else here does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from layoutgen.check import check
    from layoutgen.emit import emit
    from layoutgen.ops import load
    from layoutgen.plan import plan

__all__ = ["check", "emit", "load", "plan"]

_HOMES = {"check": "layoutgen.check", "emit": "layoutgen.emit", "load": "layoutgen.ops", "plan": "layoutgen.plan"}


def __getattr__(name: str) -> Any:
    """Import the verbs when first used, so that `import layoutgen` stays quick."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'layoutgen' has no attribute {name!r}")
