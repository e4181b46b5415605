"""Methods with soft objectives continue for them once the goals are met, and never worsen the goals."""

from __future__ import annotations

import numpy as np
import pytest

import mechanik as mk
from mechanik.solver.methods.method_registry import find_method

METHODS = ("lm", "dls", "pseudo_inverse")


@pytest.mark.parametrize("name", METHODS)
def test_a_rest_pose_is_followed_in_the_null_space_of_the_goal(name):
    """Seven joints for a point: four redundant dofs, and a rest pose is followed as by the default method."""
    arm = mk.gallery.panda()
    rng = np.random.default_rng(2)
    for _ in range(5):
        q = arm.random(rng)
        goal = mk.PositionGoal("panda_hand_tcp", arm.pose("panda_hand_tcp", q)[:3, 3])
        rest = mk.RestPose(arm.q)
        without = mk.Solver(arm, goal, solver=name).solve(q0=q + 0.05)
        with_rest = mk.Solver(arm, [goal, rest], solver=name).solve(q0=q + 0.05, max_iterations=500)
        best = mk.Solver(arm, [goal, rest]).solve(q0=q + 0.05)
        assert with_rest.success
        assert goal.error(arm, with_rest.q).position <= 1e-6
        away, free, least = (np.linalg.norm(rest.residual(arm, solution.q)) for solution in (with_rest, without, best))
        assert away < free
        assert away < 1.5 * least + 0.05


@pytest.mark.parametrize("name", METHODS)
def test_these_methods_declare_support_for_soft_objectives(name):
    assert find_method(name).supports_soft_objectives
