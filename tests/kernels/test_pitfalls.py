"""Mistakes that a page on matrix multiplies warns of: made in the emitted source, each is a wrong result here.

Triton's tutorial: mask the last block of k, accumulate in fp32, cast before the store.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from layoutgen import build, sim
from layoutgen.emit import emit
from layoutgen.plan import Plan
from tests.kernels.harness import ARCH, Case, failure, kernel, schedules
from tests.kernels.small import small

LONG = Case(32, 64, 32 * 40)  # enough products for what narrow sums lose
RAGGED = Case(40, 56, 72, placed="poisoned")


def with_text(plan: Plan, change: Callable[[str], str]) -> sim.Kernel:
    """The kernel of the plan's source, changed; a change that changes nothing is a mistake here."""
    source = emit(plan)
    text = change(source.text)
    return sim.parse(build.compile_ptx(text, "mutant", ARCH).text).kernels[source.launch.kernel]


def replaced(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return change


MISTAKES: dict[str, tuple[Case, Callable[[str], str]]] = {
    "k of A is not masked": (RAGGED, replaced(" && k_a + CopyAElementK{}(j * 8) >= 0", "")),
    "k of B is not masked": (RAGGED, replaced(" && k_b + CopyBElementK{}(j) >= 0", "")),
    "sums are kept in f16": (
        LONG,
        replaced(
            "  // ---- Prologue",
            "  auto exact = mma;\n  auto narrow = [&](int slot) {\n    exact(slot);\n"
            "    CUTE_UNROLL\n    for (int v = 0; v < size(tCrC); ++v) tCrC(v) = float(half_t(tCrC(v)));\n  };\n"
            "#define mma narrow\n  // ---- Prologue",
        ),
    ),
    "bits are stored without a cast": (LONG, replaced("bfloat16_t(rD(v))", "bfloat16_t::bitcast(uint16_t(rD(v)))")),
    "neighbouring lanes do not exchange": (LONG, replaced("\n  exchange();", "\n")),
    "a swizzled address is not flipped": (LONG, replaced("read_a ^ ", "read_a + ")),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_shows(name: str) -> None:
    (plan,) = (each for each in small("bf16") if each.variant == "ak_bn_16B")
    case, change = MISTAKES[name]
    schedule = schedules(plan)[0]
    assert failure(plan, kernel(plan), case, schedule) is None
    assert failure(plan, with_text(plan, change), case, schedule) is not None
