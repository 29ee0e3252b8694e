"""Small specs that have what those that come with layoutgen lack: each a kernel that compiles and runs fast."""

from __future__ import annotations

from typing import Any

from layoutgen.plan import Plan, plan
from tests.plan.drafts import Draft

CP_ASYNC, LDG_STS = "{atom: cp.async}", "{atom: ldg.sts}"
STAGED = {"copy_a": LDG_STS, "copy_b": LDG_STS}
BY_K_A, BY_K_B = {"shared_a": "(32,8):(8,1)"}, {"shared_b": "(64,8):(8,1)"}
MIXED = {"stages": 3, "copy_a": LDG_STS, "copy_b": CP_ASYNC}

MMA: dict[str, Any] = {
    "atom": "SM80_16x8x16_F32BF16BF16F32_TN", "dtypes": ("bf16", "bf16", "f32"), "block": (32, 64, 32),
}  # fmt: skip

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
    "bf16": (
        MMA | {"stages": 3},
        ("ak_bn_16B", "am_bk_16B", "ak_bn_8B", "am_bk_4B", "ak_bk_2B", "am_bn_2B", "any"),
    ),
    "bf16_padded": (
        MMA | {"shared_a": "(32,32):(40,1)", "shared_b": "(64,32):(1,72)", "stages": 2},
        ("ak_bn_16B", "ak_bn_8B"),
    ),
    "bf16_odd_rows": (MMA | {"shared_a": "(32,32):(48,1)", "stages": 3}, ("ak_bn_8B",)),
    "bf16_one_stage": (MMA | {"stages": 1}, ("ak_bn_16B", "any")),
    "bf16_one_k": (MMA | {"block": (32, 64, 16), "stages": 3}, ("am_bn_16B",)),
    "bf16_to_f32": (MMA | {"dtypes": ("bf16", "f32", "f32"), "stages": 4}, ("ak_bn_16B", "am_bn_4B")),
    "bf16_staged": (MMA | {"stages": 2, **STAGED}, ("ak_bk_16B", "am_bn_16B")),
    "bf16_spread": (MMA | {"block": (32, 64, 64), "spread": (0, 3), "order": "serpentine_n"}, ("ak_bn_16B",)),
    "bf16_shared_tiles": (MMA | {"stages": 3, "kind": "stream_k"}, ("ak_bn_16B",)),
    "bf16_low": (MMA | {"block": (16, 24, 32), "warps": "(1,3):(0,1)", "stages": 2}, ("ak_bn_16B", "am_bk_16B")),
    "f16_short": (
        {"atom": "SM80_16x8x8_F32F16F16F32_TN", "dtypes": ("f16", "f16", "f32"), "block": (32, 32, 16), "stages": 2},
        ("ak_bn_16B", "am_bk_8B"),
    ),
    "tf32": (
        {"atom": "SM80_16x8x8_F32TF32TF32F32_TN", "dtypes": ("tf32", "f32", "f32"), "block": (32, 64, 16), "stages": 3},
        ("ak_bn_16B", "am_bk_16B", "am_bn_4B", "any"),
    ),
    "tf32x3": (
        {
            "atom": "SM80_16x8x8_F32TF32TF32F32_TN", "split": "tf32x3", "dtypes": ("f32", "f32", "f32"),
            "block": (32, 64, 16), "stages": 2,
        },
        ("ak_bn_16B",),
    ),
    "bf16x6": (
        {
            "atom": "SM80_16x8x16_F32BF16BF16F32_TN", "split": "bf16x6", "dtypes": ("f32", "f32", "f32"),
            "block": (32, 64, 16), "stages": 2,
        },
        ("ak_bn_16B", "am_bk_16B"),
    ),
    "s8": (
        {"atom": "SM80_16x8x32_S32S8S8S32_TN", "dtypes": ("s8", "s32", "s32"), "block": (32, 64, 64), "stages": 3},
        ("ak_bk_16B", "am_bn_16B", "ak_bn_4B", "am_bk_1B", "any"),
    ),
    "u8_to_f32": (
        {"atom": "SM80_16x8x32_S32U8U8S32_TN", "dtypes": ("u8", "f32", "s32"), "block": (32, 32, 32), "stages": 2},
        ("ak_bk_16B",),
    ),
    "e4m3": (
        {
            "atom": "SM89_16x8x32_F32E4M3E4M3F32_TN", "dtypes": ("e4m3", "bf16", "f32"), "block": (32, 64, 64),
            "stages": 3, "arch": "sm_89",
        },
        ("ak_bk_16B", "am_bn_16B", "any"),
    ),
    "fused": (
        MMA
        | {
            "dtypes": ("bf16", "bf16", "f32"),
            "stages": 2,
            "epilogue": (
                "bias: {dtype: f32}", "scale: {per: row, name: rows}", "gelu", "residual",
                "clamp: {min: -0.1, max: 0.7}", "amax", "bias: {per: row, name: last}",
            ),
        },
        ("ak_bn_16B", "am_bk_2B"),
    ),
    "fused_shared_tiles": (
        MMA | {"stages": 3, "kind": "stream_k", "epilogue": ("scale", "silu", "amax: {name: most}", "relu")},
        ("ak_bn_16B",),
    ),
    "fused_f32": (
        {
            "block": (32, 64, 16),
            "stages": 2,
            "epilogue": ("bias", "gelu: {form: tanh}", "scale: {per: column}", "residual: {dtype: bf16}", "amax"),
        },
        ("ak_bn_16B", "any"),
    ),
    "fused_quantized": (
        {
            "atom": "SM80_16x8x32_S32S8S8S32_TN", "dtypes": ("s8", "s8", "s32"), "block": (32, 64, 64), "stages": 2,
            "epilogue": (
                "bias", "relu", "clamp: {max: 90000}", "scale: {per: row, name: rows}",
                "scale: {per: column, name: columns}",
            ),
        },
        ("ak_bk_16B",),
    ),
    "fused_integers": (
        {
            "atom": "SM80_16x8x32_S32S8S8S32_TN", "dtypes": ("s8", "u8", "s32"), "block": (32, 64, 64), "stages": 2,
            "epilogue": ("residual: {dtype: s32}", "clamp: {min: -2147483648, max: 2147483647}"),
        },
        ("ak_bk_16B",),
    ),
    "fused_from_integers": (
        {
            "atom": "SM80_16x8x32_S32S8S8S32_TN", "dtypes": ("s8", "f16", "s32"), "block": (32, 64, 64), "stages": 2,
            "epilogue": ("bias", "scale"),
        },
        ("ak_bk_16B",),
    ),
    "f32_to_s8": (
        MMA | {"dtypes": ("bf16", "s8", "f32"), "stages": 2, "epilogue": ("scale: {name: q}",)},
        ("ak_bn_16B",),
    ),
    "bf16_to_s32": (MMA | {"dtypes": ("bf16", "s32", "f32"), "stages": 2}, ("ak_bn_16B",)),
    "fused_f64": (
        {
            "atom": "SM80_8x8x4_F64F64F64F64_TN", "dtypes": ("f64", "f64", "f64"), "block": (16, 32, 8), "stages": 2,
            "epilogue": ("bias", "gelu", "clamp: {min: -0.5}", "amax"),
        },
        ("ak_bn_16B",),
    ),
    "f64_to_f32": (
        {
            "atom": "SM80_8x8x4_F64F64F64F64_TN", "dtypes": ("f64", "f32", "f64"), "block": (16, 32, 8), "stages": 2,
            "epilogue": ("silu", "relu"),
        },
        ("ak_bn_16B",),
    ),
    "f64": (
        {"atom": "SM80_8x8x4_F64F64F64F64_TN", "dtypes": ("f64", "f64", "f64"), "block": (16, 32, 8), "stages": 2},
        ("ak_bn_16B", "am_bk_8B", "any"),
    ),
    "f64_wide": (
        {
            "atom": "SM90_16x8x8_F64F64F64F64_TN", "dtypes": ("f64", "f64", "f64"), "block": (32, 32, 16), "stages": 2,
            "arch": "sm_90",
        },
        ("am_bn_16B",),
    ),
}  # fmt: skip


def small(name: str) -> list[Plan]:
    """The plans of one of them."""
    fields, variants = SMALL[name]
    shape = {"name": name, "block": (32, 64, 8), "warps": "(1,2):(0,1)", "values": ("4", "4")}
    plans = {each.variant: each for each in plan(Draft(**(shape | fields)).spec())}
    return [plans[variant] for variant in variants]
