"""Specs that are wrong, or nearly: one field of a draft changed at random, and still text that may load."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.plan.drafts import Choose, Draft

LAYOUTS = (
    "1:0", "32:1", "64:1", "(8,4):(4,1)", "(4,8):(1,4)", "(8,4):(0,1)", "(8,4):(5,1)", "(16,4):(4,1)", "(8,4):(1,8)",
    "((2,4),4):((1,8),2)", "((2,2),8):((16,1),2)", "(2,2):(1,1)", "(3,2):(2,1)", "(64,8):(1,64)", "(64,8):(1,60)",
    "(64,8):(8,1)", "(64,8):(9,1)", "(8,64):(1,8)", "((4,16),8):((1,32),4)", "(1048576,1048576):(1,1048576)",
    "(1048576,1048576):(0,0)", "((4,2),(2,2)):((1,4),(8,16))", "(64,8):(1048576,1)", "(6,1):(1,0)", "(128,8):(1,132)",
)  # fmt: skip
MODES = (
    "1", "2", "3", "4", "8", "64", "1048576", "(4,2):(1,2)", "(4,2):(1,16)", "(2,2):(8,1)", "4:0", "4:2", "3:5",
    "(2,2,2):(1,1,1)", "(1048576,1048576):(0,0)", "2:1048576", "(2,2):(1,3)",
)  # fmt: skip
NUMBERS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 64, 96, 128, 1000, 65536, 1048576)


def _number(choose: Choose, text: str) -> str:
    """The text with one of its numbers changed."""
    found = list(re.finditer(r"\d+", text))
    if not found:
        return text
    where = choose(found)
    number = int(where[0])
    other = choose((number + 1, max(number - 1, 0), number * 2, number // 2, *NUMBERS))
    return text[: where.start()] + str(other) + text[where.end() :]


def _copy(choose: Choose) -> str:
    fields = ["atom: " + choose(("cp.async", "cp.async", "ldg.sts", "ldg.sts", "ldg"))]
    if choose((True, False)):
        fields.append("threads: " + choose(LAYOUTS))
    if choose((True, False)):
        fields.append(f"values: <{choose(MODES)}, {choose(MODES)}>")
    return "{" + ", ".join(fields) + "}"


def mutate(choose: Choose, draft: Draft) -> Draft:
    """The draft with one to three fields changed."""
    for _ in range(choose((1, 1, 2, 3))):
        field = choose(
            ("block", "warps", "lanes", "values", "warp", "shared_a", "shared_b", "copy_a", "copy_b", "stages",
             "spread", "min_blocks", "contiguous", "arch")
        )  # fmt: skip
        old = getattr(draft, field)
        new: object
        if field == "block":
            mode = choose((0, 1, 2))
            other = choose((old[mode] + 1, old[mode] * 2, max(1, old[mode] // 2), *NUMBERS))
            new = (*old[:mode], other, *old[mode + 1 :])
        elif field in ("warps", "lanes"):
            new = choose((choose(LAYOUTS), _number(choose, old)))
        elif field in ("shared_a", "shared_b"):
            new = choose((choose(LAYOUTS), old and _number(choose, old), None))
        elif field in ("values", "warp"):
            pair = old or ("32", "32")
            new = choose((pair[0], choose(MODES), _number(choose, pair[0]))), choose((pair[1], choose(MODES)))
        elif field in ("copy_a", "copy_b"):
            new = choose((_copy(choose), old and _number(choose, old), None))
        elif field == "contiguous":
            new = (choose(("m", "k")), choose(("n", "k")))
        elif field == "spread":
            new = choose((None, (0, 1), (0, 2), (1, 3), (1, 7), (2, 3), (3, 3), (0, 1048576)))
        elif field == "stages":
            new = choose((0, 1, 2, 3, 8, 9, 32, 1048576))
        elif field == "arch":
            new = choose(("sm_80", "sm_86", "sm_90", "sm_90a", "sm_120a"))
        else:
            new = choose((1, 2, 3, 8, 32, 1048576))
        draft = replace(draft, **{field: new})
    order = choose(("", "serpentine ")) + choose((choose(LAYOUTS), _number(choose, "(4,8):(8,1)")))
    return choose((*19 * [draft], replace(draft, order=order)))
