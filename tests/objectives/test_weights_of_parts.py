"""Weights of the position and of the rotation of a goal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import least_squares

import mechanik as mk

weights = st.floats(0.05, 20.0)


def far_pose():
    arm = mk.gallery.ur5()
    X = arm.pose("tool0", [0.3, -1.0, 1.2, 0.4, 0.5, 0.6]).copy()
    X[:3, 3] *= 3.0
    return arm, X


@given(weights, weights)
def test_closest_pose_is_a_minimum_of_the_weighted_squares(position_weight, rotation_weight):
    arm, X = far_pose()
    goal = mk.PoseGoal("tool0", X, position_weight=position_weight, rotation_weight=rotation_weight)
    factors = np.repeat([position_weight, rotation_weight], 3)
    solution = mk.Solver(arm, goal, restarts=0).solve(q0=np.full(6, 0.4))
    residual = factors * goal.residual(arm, solution.q)
    nearby = least_squares(lambda q: factors * goal.residual(arm, q), solution.q, xtol=1e-15, ftol=1e-15, gtol=1e-15)
    if solution.status is mk.Status.CLOSEST:
        assert residual @ residual <= 2.0 * nearby.cost * (1.0 + 1e-6)


def test_a_heavier_position_is_nearer_and_a_heavier_rotation_less_turned():
    arm, X = far_pose()
    errors = [
        mk.Solver(arm, mk.PoseGoal("tool0", X, **options)).solve(q0=np.full(6, 0.4)).errors["PoseGoal 0"]
        for options in ({"position_weight": 10.0}, {}, {"rotation_weight": 10.0})
    ]
    assert errors[0].position < errors[1].position < errors[2].position
    assert errors[0].rotation > errors[1].rotation > errors[2].rotation


@pytest.mark.parametrize("make", [mk.PoseGoal, mk.HingeGoal, mk.SurfaceGoal])
def test_weights_of_both_parts_are_the_weight_of_the_goal(make):
    arm, X = far_pose()
    target = (X,) if make is mk.PoseGoal else (X[:3, 3], X[:3, 2])
    q0 = np.full(6, 0.4)
    point = mk.PositionGoal("forearm_link", (0.2, 0.3, 0.4))
    both = make("tool0", *target, position_weight=3.0, rotation_weight=3.0)
    np.testing.assert_allclose(
        mk.Solver(arm, [both, point], restarts=0).solve(q0=q0).q,
        mk.Solver(arm, [make("tool0", *target, weight=3.0), point], restarts=0).solve(q0=q0).q,
        atol=1e-9,
    )


def test_a_new_target_and_a_saved_file_keep_the_weights(tmp_path):
    _, X = far_pose()
    goal = mk.PoseGoal("tool0", np.eye(4), position_weight=2.0, rotation_weight=0.5, dof=("X", "Y", "EZ"))
    path = tmp_path / "goals.json"
    mk.objectives.save_objectives(goal.with_target(X), path)
    (restored,) = mk.objectives.load_objectives(path)
    assert (restored.position_weight, restored.rotation_weight) == (2.0, 0.5)
    assert restored == goal.with_target(X)
    assert restored != mk.PoseGoal("tool0", X, dof=("X", "Y", "EZ"))


@pytest.mark.parametrize("name", ["position_weight", "rotation_weight"])
@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_weight_that_is_not_above_zero_is_rejected(name, value):
    with pytest.raises(mk.errors.ObjectiveError, match=name):
        mk.PoseGoal("tool0", np.eye(4), **{name: value})
