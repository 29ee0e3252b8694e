"""Spec -> Report: is this tiling legal on a device, is it poor, and which edit mends it."""

from layoutgen.check.findings import Finding, IllegalSpecError, Report
from layoutgen.check.judge import check, require_legal
from layoutgen.check.plans import spilled
from layoutgen.problem import Extents

__all__ = ["Extents", "Finding", "IllegalSpecError", "Report", "check", "require_legal", "spilled"]
