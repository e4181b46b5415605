"""solver="auto": the default solver first, the closed form where there is one, and always a reason."""

from __future__ import annotations

import numpy as np

import mechanik as mk


def test_an_arm_with_a_closed_form_never_fails_within_reach():
    arm = mk.gallery.ur5()
    default, auto = (
        mk.Solver(arm, mk.PoseGoal("tool0", np.eye(4)), solver=name, restarts=0) for name in ("lm", "auto")
    )
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(100):
        X, q0 = arm.pose("tool0", arm.space.random(rng)), arm.space.random(rng)
        by_auto = auto.solve(X, q0)
        assert by_auto.success
        assert np.all(arm.space.within_limits(by_auto.q))
        np.testing.assert_allclose(arm.pose("tool0", by_auto.q), X, atol=1e-5)
        by_default = default.solve(X, q0)
        missed += not by_default.success
        if by_default.success:
            np.testing.assert_array_equal(by_auto.q, by_default.q)
    assert missed > 10, "one attempt of the default solver alone does fail"
    assert "three parallel axes" in auto.method_reason


def test_out_of_reach_auto_ends_where_the_default_method_ends():
    arm = mk.gallery.ur5()
    far = np.eye(4)
    far[:3, 3] = 2.0, 1.0, 0.5
    usual, auto = (mk.solve(arm, mk.PoseGoal("tool0", far), solver=name, restarts=0) for name in ("lm", "auto"))
    assert auto.status is usual.status is mk.Status.CLOSEST
    np.testing.assert_array_equal(auto.q, usual.q)


def test_the_reason_against_the_closed_form_is_reported():
    panda, platform = mk.gallery.panda(), mk.gallery.stewart_platform()
    assert (
        "no known closed form"
        in mk.Solver(panda, mk.PoseGoal("panda_hand_tcp", np.eye(4)), solver="auto").method_reason
    )
    assert "do not intersect" in mk.Solver(panda, mk.PoseGoal("panda_hand_tcp", np.eye(4)), solver="auto").method_reason
    assert "loops" in mk.Solver(platform, mk.PoseGoal("platform", np.eye(4)), solver="auto").method_reason
    assert (
        "selected by the argument `solver`"
        in mk.Solver(panda, mk.PositionGoal("panda_hand_tcp", (0, 0, 0)), solver="dls").method_reason
    )


def test_the_reason_neither_denies_an_existing_closed_form_nor_advises_the_solver_in_use():
    """A locked joint gave "There is no closed form: the closed form needs ..."; a rest pose gave "use solver='lm'"."""
    arm, goal = mk.gallery.ur5(), mk.PoseGoal("tool0", np.eye(4))
    locked = mk.Solver(arm, goal, solver="auto", lock=["elbow_joint"]).method_reason
    assert locked.endswith("restarts follow, since the closed form needs every joint of the arm, but a joint is locked")
    resting = mk.Solver(arm, [goal, mk.RestPose(np.zeros(6))], solver="auto").method_reason
    assert resting.endswith("the closed form does not support soft objectives, such as a rest pose")


def test_options_of_a_call_are_respected():
    arm = mk.gallery.ur5()
    auto = mk.Solver(arm, mk.PoseGoal("tool0", np.eye(4)), solver="auto")
    rng = np.random.default_rng(1)
    for _ in range(20):
        X, q0 = arm.pose("tool0", arm.space.random(rng)), arm.space.random(rng)
        near = auto.solve(X, q0, limits={"elbow_joint": (-0.5, 0.5)})
        assert -0.5 <= near["elbow_joint"] <= 0.5
        locked = auto.solve(X, q0, lock=["elbow_joint"])
        assert locked["elbow_joint"] == q0[arm.space.q_names.index("elbow_joint")]
        turned = auto.solve(X, q0, feasible=lambda q: q[0] > 0, restarts=30)
        assert turned.success
        assert turned.q[0] > 0
