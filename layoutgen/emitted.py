"""What code is emitted for: specs of NVIDIA's architectures. Those of AMD's are checked, explained and drawn alone."""

from __future__ import annotations

from pathlib import Path

from layoutgen import paths, spec
from layoutgen.errors import BuildError
from layoutgen.plan import Plan
from layoutgen.spec import Spec


def require_emitted(asked: Spec | Plan) -> None:
    """Raises BuildError for a spec, or a plan, of an AMD architecture."""
    if asked.amd:
        raise BuildError(
            "layoutgen emits no AMD code yet",
            got=f"{asked.name}, of arch: {asked.arch}",
            allowed="specs of NVIDIA's architectures, such as sm_80",
            fix="check, explain and draw take it; to build one, write it for sm_80: warps of 32 lanes",
            where=asked.where("arch") if isinstance(asked, Spec) else None,
        )


def emitted_specs() -> dict[str, Path]:
    """name -> file of every spec that comes with layoutgen and has code, by name."""
    return {name: path for name, path in paths.shipped_specs().items() if not spec.load(path).amd}
