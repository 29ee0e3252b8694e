"""Drafts of one stage of shared memory and of none, and a tile that is read along k."""

from __future__ import annotations

from layoutgen.spec import Spec
from tests.plan.drafts import Draft

ONE = Draft(stages=1, copy_a="{atom: ldg.sts}", copy_b="{atom: ldg.sts}")
NONE = Draft(stages=0, copy_a="{atom: ldg}", copy_b="{atom: ldg}")
DEEP = "(64,8):(8,1)"  # a shared tile along whose k fragments are read four at a time


def spread(draft: Draft, first: int, last: int) -> Spec:
    """The spec of a draft that deals its copies out over these k of a turn."""
    spec = draft.spec()
    return spec.model_copy(update={"copies": spec.copies.model_copy(update={"spread": (first, last)})})
