"""The handles that a mechanism gets by itself."""

from __future__ import annotations

import pytest

import mechanik as mk
from mechanik.studio.session.first_goals import Handle, first_goals


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ur5", [Handle("tool0", "pose")]),
        ("planar_2r", [Handle("tool", "point")]),
        ("panda", [Handle("panda_hand_tcp", "pose")]),
        ("four_bar", [Handle("coupler", "point")]),
        ("hexapod", [Handle("platform", "pose")]),
        ("delta_robot", [Handle("platform", "point")]),
        ("jansen_leg", [Handle("foot", "point")]),
        ("two_arms", [Handle("box", "pose")]),
        ("rover", [Handle("body", "pose")]),
        ("walker", [Handle("body", "pose"), *(Handle(f"foot{k}", "pose", pinned=True) for k in range(1, 7))]),
    ],
)
def test_a_mechanism_of_the_gallery_gets_the_handles_that_one_would_take(name: str, wanted: list[Handle]) -> None:
    assert list(first_goals(mk.gallery.make(name))) == wanted


def test_a_humanoid_is_dragged_by_its_hands_and_stands_on_its_feet() -> None:
    handles = first_goals(mk.gallery.humanoid())
    assert [handle.link for handle in handles if handle.pinned] == ["left_foot", "right_foot"]
    assert [handle.link for handle in handles[:2]] == ["left_hand", "right_hand"]


def test_what_cannot_move_gets_none() -> None:
    assert first_goals(mk.Mechanism(mk.Link("stone"))) == ()
