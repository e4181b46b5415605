"""Tasks of a tracker: levels, gains, moving targets, singularities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import seeds

import mechanik as mk
from mechanik.motion.tracking import Task, Tracker
from mechanik.spatial import make_pose, rotation

DT = 1e-3
FLANGE = "panda_link8"


def moving_pose(X0, t: float):
    X = X0.copy()
    X[:3, 3] += [0.08 * np.sin(2 * t), 0.08 * (np.cos(2 * t) - 1.0), 0.04 * np.sin(3 * t)]
    return X


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_tracker_stays_at_its_target(seed):
    arm = mk.gallery.panda()
    q0 = arm.space.random(np.random.default_rng(seed))
    tracker = Tracker(arm, mk.PoseGoal(FLANGE, arm.pose(FLANGE, q0)), q0=q0, velocity=2.0, acceleration=10.0)
    for _ in range(50):
        state = tracker.step()
    assert np.abs(state.q - q0).max() < 1e-13
    assert np.abs(state.v).max() < 1e-11


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_lower_level_does_not_disturb_a_higher_one(seed):
    arm, rng = mk.gallery.panda(), np.random.default_rng(seed)
    q0 = arm.space.random(rng)
    X = arm.pose(FLANGE, q0)
    X[:3, 3] += 0.05 * rng.standard_normal(3)
    first = mk.PoseGoal(FLANGE, X)
    free = dict.fromkeys(arm.space.q_names, (-100.0, 100.0))
    alone = Tracker(arm, Task(first, 5.0), q0=q0, limits=free)
    both = Tracker(arm, [Task(first, 5.0), Task(mk.RestPose(q0 + 0.3, level=2), 5.0)], q0=q0, limits=free)
    state_alone, state_both = alone.step(), both.step()
    planned = first.residual(arm, q0) + DT * first.jacobian(arm, q0) @ state_alone.v
    assert np.abs(first.residual(arm, state_both.q) - planned).max() < 1e-6  # without the curvature of the step
    assert np.abs(state_both.v - state_alone.v).max() > 1e-3  # the second level uses the redundancy


def test_second_level_uses_the_redundancy():
    arm = mk.gallery.panda()
    rest = np.array(arm.q)
    rest[0] += 0.4
    X0 = arm.pose(FLANGE)
    rest_pose = mk.RestPose({"panda_joint1": rest[0]}, level=2)
    tracker = Tracker(arm, [mk.PoseGoal(FLANGE, X0), rest_pose], velocity=1.0, acceleration=5.0, gain=20.0)
    for _ in range(2000):
        state = tracker.step()
    assert np.abs(arm.pose(FLANGE, state.q) - X0).max() < 1e-9
    assert state.q[0] == pytest.approx(rest[0], abs=1e-6)


def test_moving_target_is_tracked_without_lag():
    arm = mk.gallery.panda()
    X0 = arm.pose(FLANGE)
    tracker = Tracker(arm, mk.PoseGoal(FLANGE, X0), velocity=2.0, acceleration=10.0)
    for k in range(2000):
        state = tracker.step(moving_pose(X0, k * DT))
        if k > 500:
            assert np.linalg.norm(arm.pose(FLANGE, state.q)[:3, 3] - moving_pose(X0, k * DT)[:3, 3]) < 1e-6


def test_result_converges_as_the_time_step_shrinks():
    """The difference halves with the time step: the method is consistent."""
    ends = []
    for dt in (4e-3, 2e-3, 1e-3):
        arm = mk.gallery.panda()
        X0 = arm.pose(FLANGE)
        X = X0.copy()
        X[:3, 3] += [0.1, 0.1, -0.1]
        tracker = Tracker(arm, mk.PoseGoal(FLANGE, X), dt, gain=5.0)
        for _ in range(round(0.2 / dt)):
            state = tracker.step()
        ends.append(state.q)
    coarse, fine = np.abs(ends[0] - ends[1]).max(), np.abs(ends[1] - ends[2]).max()
    assert 1.5 < coarse / fine < 2.5


@given(st.floats(1.0, 50.0))
@settings(max_examples=10, deadline=None)
def test_error_decays_with_the_gain(gain):
    arm = mk.gallery.panda()
    offset = 1e-3
    X = arm.pose(FLANGE)
    X[:3, 3] += [0.0, offset, 0.0]
    tracker = Tracker(arm, Task(mk.PoseGoal(FLANGE, X), gain))
    for _ in range(100):
        tracker.step()
    (error,) = tracker.errors()
    assert error.position == pytest.approx(offset * (1.0 - gain * DT) ** 100, rel=2e-2)


def test_tracker_comes_to_rest_near_a_target_out_of_reach():
    """The stretched arm is singular: it neither oscillates nor drifts."""
    arm = mk.gallery.panda()
    X = arm.pose(FLANGE)
    X[:3, 3] = [2.0, 0.3, 0.6]
    tracker = Tracker(arm, mk.PositionGoal(FLANGE, X[:3, 3]), velocity=2.0, acceleration=10.0)
    for _ in range(6000):
        state = tracker.step()
    assert np.abs(state.v).max() < 1e-2
    solution = mk.solve(arm, mk.PositionGoal(FLANGE, X[:3, 3]), q0=state.q)
    best = np.linalg.norm(arm.pose(FLANGE, solution.q)[:3, 3] - X[:3, 3])
    assert np.linalg.norm(arm.pose(FLANGE, state.q)[:3, 3] - X[:3, 3]) < best + 1e-2


def test_velocity_is_the_step_divided_by_dt_with_spherical_joints():
    robot = mk.gallery.stewart_platform()
    X0 = robot.pose("platform")
    X = make_pose(rotation.exp(np.array([0.05, 0.0, 0.1])) @ X0[:3, :3], X0[:3, 3] + [0.01, 0.0, 0.02])
    tracker = Tracker(robot, mk.PoseGoal("platform", X), velocity=1.0, acceleration=10.0)
    before = tracker.q
    for _ in range(100):
        state = tracker.step()
        assert robot.space.difference(before, state.q) == pytest.approx(state.v * DT, abs=1e-12)
        before = state.q


def test_reset_restarts_and_steps_do_not_move_the_mechanism():
    arm = mk.gallery.panda()
    q0, X = np.array(arm.q), arm.pose(FLANGE)
    X[:3, 3] += 0.1
    tracker = Tracker(arm, mk.PoseGoal(FLANGE, X), velocity=1.0, acceleration=5.0)
    first = [tracker.step().q for _ in range(20)]
    assert np.array_equal(arm.q, q0)
    tracker.reset()
    assert tracker.time == 0.0
    assert np.array_equal([tracker.step().q for _ in range(20)], first)
    tracker.reset(first[-1], tracker.v)
    assert tracker.v[0] != 0.0


def test_clearance_to_a_wall_is_maintained():
    from mechanik.collision import Collider, Obstacle

    arm = mk.gallery.panda()
    X = arm.pose(FLANGE)
    wall = Obstacle(mk.Box((0.1, 2.0, 2.0)), position=(X[0, 3] + 0.25, 0.0, 0.5), name="wall")
    collider = Collider(arm, [wall])
    X[0, 3] += 0.4
    tracker = Tracker(arm, mk.PoseGoal(FLANGE, X), velocity=1.0, acceleration=5.0, avoid=collider, clearance=0.01)
    for _ in range(2500):
        state = tracker.step()
        assert collider.distance(state.q) > 0.0099
    assert collider.distance(state.q) < 0.011
    assert np.abs(state.v).max() < 0.02


def test_lower_levels_stay_within_a_box():
    arm = mk.gallery.panda()
    X = arm.pose(FLANGE)
    height = X[2, 3]
    box = mk.InBox(FLANGE, (-10, -10, height - 0.05), (10, 10, height + 0.05))
    X[2, 3] -= 0.2
    tracker = Tracker(arm, [box, mk.PositionGoal(FLANGE, X[:3, 3], level=2)], velocity=1.0, acceleration=5.0)
    for _ in range(3000):
        state = tracker.step()
        assert arm.pose(FLANGE, state.q)[2, 3] > height - 0.0501
    assert arm.pose(FLANGE, state.q)[2, 3] == pytest.approx(height - 0.05, abs=1e-3)


def test_targets_by_name_order_and_form_are_equivalent_and_omitted_ones_stay():
    arm = mk.gallery.panda()
    X = arm.pose(FLANGE)
    X[:3, 3] += [0.05, 0.02, 0.0]
    ends = []
    for targets in (
        {"hand": X, "turn": {"panda_joint1": 0.2}},
        [{"panda_joint1": 0.2}, X],
        [{"panda_joint1": 0.2}, mk.Pose.from_matrix(X)],
        [{"panda_joint1": np.array([0.2])}, X.tolist()],
    ):
        turn = mk.JointValues({"panda_joint1": 0.0}, level=2, name="turn")
        tracker = Tracker(
            arm, [turn, mk.PoseGoal(FLANGE, arm.pose(FLANGE), name="hand")], velocity=1.0, acceleration=5.0
        )
        tracker.step(targets)
        for _ in range(1500):
            tracker.step()
        joints, hand = tracker.objectives
        assert joints.values["panda_joint1"] == pytest.approx(0.2)
        assert hand.target == pytest.approx(X, abs=1e-12)
        assert tracker.errors()[1].position < 1e-9
        tracker.step({"turn": {"panda_joint1": 0.1}})
        assert tracker.objectives[1].target == pytest.approx(X, abs=1e-12)
        ends.append(tracker.q)
    assert np.abs(np.array(ends) - ends[0]).max() < 1e-9


def test_angle_target_is_the_nearest_equivalent_unless_exact():
    robot = mk.Builder("one")
    robot.revolute("turn", "base", "arm", axis="z")
    arm = robot.build()
    for angle_mode, end in (("nearest", -0.2), ("exact", 2 * np.pi - 0.2)):
        tracker = Tracker(arm, mk.JointValues({"turn": 0.0}, angle_mode=angle_mode), velocity=20.0)
        for _ in range(1000):
            tracker.step({"turn": 2 * np.pi - 0.2})
        assert tracker.q[0] == pytest.approx(end, abs=1e-9)


def test_python_residuals_are_tracked_with_others():
    arm = mk.gallery.panda()
    X = arm.pose(FLANGE)
    height = X[2, 3] = X[2, 3] + 0.05

    def height_error(mechanism, q):
        return np.array([mechanism.pose(FLANGE, q)[2, 3] - height])

    tasks = [mk.Custom(height_error, name="height"), mk.PoseGoal(FLANGE, X, level=2, name="hand")]
    tracker = Tracker(arm, tasks, velocity=1.0, acceleration=5.0)
    for k in range(1200):
        X[1, 3] = 0.05 * np.sin(2e-3 * k)
        state = tracker.step({"hand": X})
    X_end = arm.pose(FLANGE, state.q)
    assert X_end[2, 3] == pytest.approx(height, abs=1e-6)
    assert X_end[1, 3] == pytest.approx(X[1, 3], abs=1e-6)


def test_the_caller_may_change_its_mapping_of_joint_values_after_a_step():
    """Once the tracker kept the mapping itself, so its errors were those of the changed values."""
    values = {"joint1": 1.0, "joint2": 0.5}
    tracker = mk.Tracker(mk.arm_2d([1.0, 1.0]), [mk.Task(mk.JointValues({"joint1": 0.0, "joint2": 0.0}))], dt=0.01)
    tracker.step(values)
    values["joint1"] = 9.0
    assert dict(tracker.objectives[0].values) == {"joint1": 1.0, "joint2": 0.5}
