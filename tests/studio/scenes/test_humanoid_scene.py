"""What is asked of the humanoid is what a person can do."""

import numpy as np
import pytest
from playing import Played

from mechanik.spatial import translation


def goal_of(played, side):
    return next(goal for goal in played.session.goals if goal.name == f"{side} hand")


@pytest.mark.parametrize("motion", ["wave", "reach", "squat"])
def test_each_motion_is_within_reach_during_a_full_cycle(motion):
    """The squat once went straight down, where the ankles stop it."""
    with Played("humanoid") as played:
        played.set("motion", motion)
        played.set("speed", 1.0)
        for _ in range(31):
            played.tick(follows=True)
            solution = played.session.active.latest_state.solution
            assert solution.success, solution.message


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_hand_reaches_above_the_head(side):
    """It once had to keep its turn up there, and stopped 127 mm below."""
    with Played("humanoid") as played:
        head = played.mechanism.pose("head", played.q)[:3, 3]
        goal = goal_of(played, side)
        above = np.array([head[0], goal.X[1, 3], head[2] + 0.25])
        played.session.move_goal(goal.number, translation(above))
        played.rest()
        np.testing.assert_allclose(played.mechanism.pose(f"{side}_hand", played.q)[:3, 3], above, atol=1e-5)


def test_hands_that_keep_their_turn_keep_the_one_that_they_have():
    with Played("humanoid") as played:
        goal = goal_of(played, "right")
        played.session.move_goal(goal.number, translation((0.1, 0.0, 0.4)) @ goal.X)
        played.rest()
        q, before = played.q, played.mechanism.pose("right_hand", played.q)[:3, :3]
        played.set("turned", True)
        played.rest()
        np.testing.assert_allclose(played.q, q, atol=1e-6)  # nothing leaps
        played.session.move_goal(goal.number, translation((0.05, 0.0, 0.05)) @ goal_of(played, "right").X)
        played.rest()
        np.testing.assert_allclose(played.mechanism.pose("right_hand", played.q)[:3, :3], before, atol=1e-5)
        played.set("turned", False)
        assert {goal_of(played, side).kind for side in ("left", "right")} == {"point"}
