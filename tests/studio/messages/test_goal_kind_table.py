"""The table of goal kinds describes every kind of the protocol once, with data that pages can show."""

from typing import get_args

import numpy as np
import pytest

from mechanik.studio.messages.goal_kinds import GOAL_KINDS, GOAL_KINDS_BY_NAME, GoalKindInfo, GoalSymbol
from mechanik.studio.messages.requests import GoalKind
from mechanik.studio.session.frame_packer import default_sizes


def test_table_lists_each_kind_of_the_protocol_once_and_in_its_order():
    assert tuple(info.kind for info in GOAL_KINDS) == get_args(GoalKind)
    assert list(GOAL_KINDS_BY_NAME.values()) == list(GOAL_KINDS)


def test_titles_labels_and_symbols_are_unique():
    for name in ("title", "label", "symbol"):
        values = [getattr(info, name) for info in GOAL_KINDS]
        assert len(set(values)) == len(values), name
    assert {info.symbol for info in GOAL_KINDS} == set(get_args(GoalSymbol))


@pytest.mark.parametrize("info", GOAL_KINDS, ids=lambda info: info.kind)
def test_new_goal_has_the_default_sizes_of_the_table(info: GoalKindInfo):
    if info.kind == "look_at":
        return  # its sizes are the viewing axis of the link
    radius = 2.5
    scaled = [size.default * (radius if size.quantity == "length" else 1.0) for size in info.sizes]
    np.testing.assert_array_equal(default_sizes(info.kind, np.eye(4), radius), (*scaled, 0.0, 0.0, 0.0)[:3])
