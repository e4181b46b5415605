"""Motions of the humanoid scene are within the limits of a person."""

import numpy as np
import pytest
from scene_player import ScenePlayer

from mechanik.spatial import translation
from mechanik.studio.messages.message_codec import LINK_DRAG_GOAL
from mechanik.studio.messages.requests import StartLinkDrag


def goal_of(player, side):
    return next(goal for goal in player.session.goals if goal.name == f"{side} hand")


@pytest.mark.parametrize("motion", ["wave", "reach", "squat"])
def test_each_motion_is_within_reach_during_a_full_cycle(motion):
    """The squat once went straight down, where the ankles stop it."""
    with ScenePlayer("humanoid") as player:
        player.set("motion", motion)
        player.set("speed", 1.0)
        for _ in range(31):
            player.tick(follows=True)
            solution = player.session.active.latest_state.solution
            assert solution.success, solution.message


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_hand_reaches_above_the_head(side):
    """It once had to keep its turn up there, and stopped 127 mm below."""
    with ScenePlayer("humanoid") as player:
        head = player.mechanism.pose("head", player.q)[:3, 3]
        goal = goal_of(player, side)
        above = np.array([head[0], goal.X[1, 3], head[2] + 0.25])
        player.session.move_goal(goal.number, translation(above))
        player.rest()
        np.testing.assert_allclose(player.mechanism.pose(f"{side}_hand", player.q)[:3, 3], above, atol=1e-5)


def test_hands_that_keep_their_turn_keep_the_one_that_they_have():
    with ScenePlayer("humanoid") as player:
        goal = goal_of(player, "right")
        player.session.move_goal(goal.number, translation((0.1, 0.0, 0.4)) @ goal.X)
        player.rest()
        q, before = player.q, player.mechanism.pose("right_hand", player.q)[:3, :3]
        player.set("keep_orientation", True)
        player.rest()
        np.testing.assert_allclose(player.q, q, atol=1e-6)  # nothing leaps
        player.session.move_goal(goal.number, translation((0.05, 0.0, 0.05)) @ goal_of(player, "right").X)
        player.rest()
        np.testing.assert_allclose(player.mechanism.pose("right_hand", player.q)[:3, :3], before, atol=1e-5)
        player.set("keep_orientation", False)
        assert {goal_of(player, side).kind for side in ("left", "right")} == {"point"}


@pytest.mark.parametrize(("control", "values"), [("motion", ("wave",)), ("gaze", (False, True))])
def test_a_control_does_not_end_the_drag_of_a_link(control, values):
    """Once the scene removed the goal of the drag, whose number it used for a goal that does not exist."""
    with ScenePlayer("humanoid") as player:
        player.session.handle_request(StartLinkDrag(link="left_hand", at=(0.0, 0.0, 0.0)))
        for value in values:
            player.set(control, value)
        assert LINK_DRAG_GOAL in [goal.number for goal in player.session.goals]
