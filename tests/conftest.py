"""Settings for every test."""

from __future__ import annotations

from hypothesis import settings

# No deadline: the workers share two slow cores. Derandomised: a failure in CI is the failure at home.
settings.register_profile("layoutgen", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("layoutgen")
