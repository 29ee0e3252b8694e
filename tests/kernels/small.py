"""Small specs that have what those that come with layoutgen lack: each a kernel that compiles and runs fast."""

from __future__ import annotations

from typing import Any

from layoutgen.plan import Plan, plan
from tests.plan.drafts import Draft

CP_ASYNC, LDG_STS = "{atom: cp.async}", "{atom: ldg.sts}"
STAGED = {"copy_a": LDG_STS, "copy_b": LDG_STS}
BY_K_A, BY_K_B = {"shared_a": "(32,8):(8,1)"}, {"shared_b": "(64,8):(8,1)"}
MIXED = {"stages": 3, "copy_a": LDG_STS, "copy_b": CP_ASYNC}

# Blocks of 32 x 64 by two warps, which differ in n, where nothing else is said. What a spec has beside that, and which
# of its variants.
SMALL: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "direct": ({"stages": 0}, ("ak_bn_16B", "am_bk_16B", "am_bk_4B", "any")),
    "direct_odd_k": ({"stages": 0, "block": (32, 64, 3), "copy_a": "{atom: ldg, values: [1, 1]}"}, ("ak_bn_16B",)),
    "one_stage": ({"stages": 1}, ("ak_bn_16B", "any")),
    "one_stage_mixed": ({"stages": 1, "copy_a": LDG_STS, **BY_K_A}, ("ak_bn_16B", "am_bk_16B")),
    "one_k": ({"block": (64, 64, 1)}, ("ak_bn_16B", "am_bn_4B")),
    "one_k_staged": ({"block": (32, 64, 1), "stages": 3, **STAGED}, ("ak_bn_16B",)),
    "odd_k": ({"block": (32, 64, 3), "stages": 3, "copy_b": LDG_STS}, ("ak_bn_16B", "any")),
    "odd_k_spread": ({"block": (32, 64, 5), "spread": (1, 4), **STAGED}, ("am_bn_16B",)),
    "by_k": ({"stages": 3, "contiguous": ("k", "k"), **BY_K_A, **BY_K_B}, ("ak_bk_16B", "am_bn_16B", "any")),
    "by_k_of_a_alone": ({"stages": 3, "spread": (0, 4), **MIXED, **BY_K_A}, ("ak_bn_16B",)),
    "by_k_once_a_turn": ({"stages": 2, "block": (32, 64, 4), "shared_a": "(32,4):(4,1)"}, ("ak_bn_16B",)),
    "eight_stages": ({"stages": 8, "block": (32, 64, 2)}, ("am_bn_16B",)),
    "at_once": ({"block": (32, 64, 16), "spread": (0, 1), **STAGED}, ("ak_bn_16B",)),
    "spread": ({"block": (32, 64, 16), "spread": (1, 15), **STAGED}, ("ak_bn_16B", "ak_bn_4B", "any")),
    "beside_one_k": ({"block": (32, 64, 16), "spread": (7, 8), "copy_b": LDG_STS}, ("ak_bn_16B",)),
    "order_by_layout": ({"order": "((2,2),(4,2)):((4,1),(8,2))", "block": (32, 64, 4)}, ("ak_bn_16B",)),
    "order_serpentine": ({"order": "serpentine ((2,2),(4,2)):((4,1),(8,2))", "block": (32, 64, 4)}, ("ak_bn_16B",)),
    "mixed": ({"spread": (1, 7), **MIXED}, ("ak_bn_16B", "am_bk_16B", "ak_bk_4B")),
    "patches": (
        {"block": (32, 64, 32), "shared_b": "(64,32):(36,1)", **STAGED},
        ("ak_bn_16B", "ak_bn_4B", "am_bk_16B"),
    ),
    "patches_as_given": (
        {
            "contiguous": ("k", "k"),
            "copy_a": "{atom: ldg.sts, values: [4, 4]}",
            "copy_b": "{atom: ldg.sts, values: [2, 4]}",
        },
        ("ak_bk_16B",),
    ),
}  # fmt: skip


def small(name: str) -> list[Plan]:
    """The plans of one of them."""
    fields, variants = SMALL[name]
    shape = {"name": name, "block": (32, 64, 8), "warps": "(1,2):(0,1)", "values": ("4", "4")}
    plans = {each.variant: each for each in plan(Draft(**(shape | fields)).spec())}
    return [plans[variant] for variant in variants]
