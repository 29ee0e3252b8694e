"""Settings for every test."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import settings

# No deadline: the workers share two slow cores. Derandomised: a failure in CI is the failure at home.
settings.register_profile("layoutgen", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("layoutgen")

# A kernel takes seconds to compile and is kept by what it was made from, so workers and later runs share them.
os.environ.setdefault("LAYOUTGEN_CACHE", str(Path(__file__).resolve().parents[1] / ".cache"))
