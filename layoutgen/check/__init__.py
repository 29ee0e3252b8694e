"""Spec -> Report: is this tiling legal on a device, is it poor, and which edit mends it."""

from layoutgen.check.findings import Finding, IllegalSpecError, Report
from layoutgen.check.judge import Extents, check, require_legal
from layoutgen.check.plans import spilled

__all__ = ["Extents", "Finding", "IllegalSpecError", "Report", "check", "require_legal", "spilled"]
