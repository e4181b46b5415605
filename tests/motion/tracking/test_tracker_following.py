"""What a tracker makes of its tasks: levels, gains, targets that move, singularities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import seeds

import mechanik as mk
from mechanik.motion.tracking import Task, Tracker
from mechanik.spatial import make_pose, rotation

DT = 1e-3
HAND = "panda_link8"


def wave(X0, t: float):
    X = X0.copy()
    X[:3, 3] += [0.08 * np.sin(2 * t), 0.08 * (np.cos(2 * t) - 1.0), 0.04 * np.sin(3 * t)]
    return X


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_standing_at_its_target_it_stays(seed):
    arm = mk.gallery.panda()
    q0 = arm.space.random(np.random.default_rng(seed))
    tracker = Tracker(arm, mk.PoseGoal(HAND, arm.pose(HAND, q0)), q0=q0, velocity=2.0, acceleration=10.0)
    for _ in range(50):
        state = tracker.step()
    assert np.abs(state.q - q0).max() < 1e-13
    assert np.abs(state.v).max() < 1e-11


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_a_lower_level_does_not_disturb_a_higher_one(seed):
    arm, rng = mk.gallery.panda(), np.random.default_rng(seed)
    q0 = arm.space.random(rng)
    X = arm.pose(HAND, q0)
    X[:3, 3] += 0.05 * rng.standard_normal(3)
    first = mk.PoseGoal(HAND, X)
    free = dict.fromkeys(arm.space.q_names, (-100.0, 100.0))
    alone = Tracker(arm, Task(first, 5.0), q0=q0, limits=free)
    both = Tracker(arm, [Task(first, 5.0), Task(mk.RestPose(q0 + 0.3, level=2), 5.0)], q0=q0, limits=free)
    one, two = alone.step(), both.step()
    J = first.jacobian(arm, q0)
    moved = np.abs(two.v - one.v).max()
    assert np.abs(J @ (two.v - one.v)).max() < 1e-9 * (1.0 + moved)
    assert moved > 1e-3  # it has done something with what is left free


def test_the_second_level_uses_what_is_free():
    arm = mk.gallery.panda()
    rest = np.array(arm.q)
    rest[0] += 0.4
    X0 = arm.pose(HAND)
    rest_pose = mk.RestPose({"panda_joint1": rest[0]}, level=2)
    tracker = Tracker(arm, [mk.PoseGoal(HAND, X0), rest_pose], velocity=1.0, acceleration=5.0, gain=20.0)
    for _ in range(2000):
        state = tracker.step()
    assert np.abs(arm.pose(HAND, state.q) - X0).max() < 1e-9
    assert state.q[0] == pytest.approx(rest[0], abs=1e-6)


def test_a_moving_target_is_followed_without_lag():
    arm = mk.gallery.panda()
    X0 = arm.pose(HAND)
    tracker = Tracker(arm, mk.PoseGoal(HAND, X0), velocity=2.0, acceleration=10.0)
    for k in range(2000):
        state = tracker.step(wave(X0, k * DT))
        if k > 500:
            assert np.linalg.norm(arm.pose(HAND, state.q)[:3, 3] - wave(X0, k * DT)[:3, 3]) < 1e-6


def test_half_the_step_of_time_leads_nearly_to_the_same_place():
    """The difference halves with the step: the method is consistent."""
    ends = []
    for dt in (4e-3, 2e-3, 1e-3):
        arm = mk.gallery.panda()
        X0 = arm.pose(HAND)
        X = X0.copy()
        X[:3, 3] += [0.1, 0.1, -0.1]
        tracker = Tracker(arm, mk.PoseGoal(HAND, X), dt, gain=5.0)
        for _ in range(round(0.2 / dt)):
            state = tracker.step()
        ends.append(state.q)
    coarse, fine = np.abs(ends[0] - ends[1]).max(), np.abs(ends[1] - ends[2]).max()
    assert 1.5 < coarse / fine < 2.5


@given(st.floats(1.0, 50.0))
@settings(max_examples=10, deadline=None)
def test_an_error_shrinks_by_its_gain(gain):
    arm = mk.gallery.panda()
    way = 1e-3
    X = arm.pose(HAND)
    X[:3, 3] += [0.0, way, 0.0]
    tracker = Tracker(arm, Task(mk.PoseGoal(HAND, X), gain))
    for _ in range(100):
        tracker.step()
    (error,) = tracker.errors()
    assert error.position == pytest.approx(way * (1.0 - gain * DT) ** 100, rel=2e-2)


def test_out_of_reach_it_comes_near_and_to_rest():
    """Stretched out is a singularity: it neither chatters nor creeps on."""
    arm = mk.gallery.panda()
    X = arm.pose(HAND)
    X[:3, 3] = [2.0, 0.3, 0.6]
    tracker = Tracker(arm, mk.PositionGoal(HAND, X[:3, 3]), velocity=2.0, acceleration=10.0)
    for _ in range(6000):
        state = tracker.step()
    assert np.abs(state.v).max() < 1e-2
    found = mk.solve(arm, mk.PositionGoal(HAND, X[:3, 3]), q0=state.q)
    best = np.linalg.norm(arm.pose(HAND, found.q)[:3, 3] - X[:3, 3])
    assert np.linalg.norm(arm.pose(HAND, state.q)[:3, 3] - X[:3, 3]) < best + 1e-2


def test_v_is_the_step_over_its_time_balls_included():
    robot = mk.gallery.stewart_platform()
    X0 = robot.pose("platform")
    X = make_pose(rotation.exp(np.array([0.05, 0.0, 0.1])) @ X0[:3, :3], X0[:3, 3] + [0.01, 0.0, 0.02])
    tracker = Tracker(robot, mk.PoseGoal("platform", X), velocity=1.0, acceleration=10.0)
    before = tracker.q
    for _ in range(100):
        state = tracker.step()
        assert robot.space.difference(before, state.q) == pytest.approx(state.v * DT, abs=1e-12)
        before = state.q


def test_a_reset_begins_again_and_a_step_does_not_move_the_mechanism():
    arm = mk.gallery.panda()
    q0, X = np.array(arm.q), arm.pose(HAND)
    X[:3, 3] += 0.1
    tracker = Tracker(arm, mk.PoseGoal(HAND, X), velocity=1.0, acceleration=5.0)
    first = [tracker.step().q for _ in range(20)]
    assert np.array_equal(arm.q, q0)
    tracker.reset()
    assert tracker.time == 0.0
    assert np.array_equal([tracker.step().q for _ in range(20)], first)
    tracker.reset(first[-1], tracker.v)
    assert tracker.v[0] != 0.0


def test_something_to_avoid_is_not_touched():
    from mechanik.collision import Collider, Obstacle

    arm = mk.gallery.panda()
    X = arm.pose(HAND)
    wall = Obstacle(mk.Box((0.1, 2.0, 2.0)), position=(X[0, 3] + 0.25, 0.0, 0.5), name="wall")
    collider = Collider(arm, [wall])
    X[0, 3] += 0.4
    tracker = Tracker(arm, mk.PoseGoal(HAND, X), velocity=1.0, acceleration=5.0, avoid=collider, clearance=0.01)
    for _ in range(2500):
        state = tracker.step()
        assert collider.distance(state.q) > 0.0099
    assert collider.distance(state.q) < 0.011
    assert np.abs(state.v).max() < 0.02


def test_a_band_is_kept_by_lower_levels():
    arm = mk.gallery.panda()
    X = arm.pose(HAND)
    height = X[2, 3]
    box = mk.InBox(HAND, (-10, -10, height - 0.05), (10, 10, height + 0.05))
    X[2, 3] -= 0.2
    tracker = Tracker(arm, [box, mk.PositionGoal(HAND, X[:3, 3], level=2)], velocity=1.0, acceleration=5.0)
    for _ in range(3000):
        state = tracker.step()
        assert arm.pose(HAND, state.q)[2, 3] > height - 0.0501
    assert arm.pose(HAND, state.q)[2, 3] == pytest.approx(height - 0.05, abs=1e-3)


def test_targets_come_by_name_in_order_and_in_any_form_and_those_not_given_stay():
    arm = mk.gallery.panda()
    X = arm.pose(HAND)
    X[:3, 3] += [0.05, 0.02, 0.0]
    ends = []
    for wanted in (
        {"hand": X, "turn": {"panda_joint1": 0.2}},
        [{"panda_joint1": 0.2}, X],
        [{"panda_joint1": 0.2}, mk.Pose.from_matrix(X)],
        [{"panda_joint1": np.array([0.2])}, X.tolist()],
    ):
        turn = mk.JointValues({"panda_joint1": 0.0}, level=2, name="turn")
        tracker = Tracker(arm, [turn, mk.PoseGoal(HAND, arm.pose(HAND), name="hand")], velocity=1.0, acceleration=5.0)
        tracker.step(wanted)
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


def test_an_angle_means_the_nearest_that_looks_the_same_unless_turns_count():
    robot = mk.Builder("one")
    robot.revolute("turn", "base", "arm", axis="z")
    arm = robot.build()
    for turns, end in (("nearest", -0.2), ("exact", 2 * np.pi - 0.2)):
        tracker = Tracker(arm, mk.JointValues({"turn": 0.0}, angle_mode=turns), velocity=20.0)
        for _ in range(1000):
            tracker.step({"turn": 2 * np.pi - 0.2})
        assert tracker.q[0] == pytest.approx(end, abs=1e-9)


def test_rows_written_in_python_are_followed_beside_others():
    arm = mk.gallery.panda()
    X = arm.pose(HAND)
    height = X[2, 3] = X[2, 3] + 0.05

    def off(mechanism, q):
        return np.array([mechanism.pose(HAND, q)[2, 3] - height])

    tasks = [mk.Custom(off, name="height"), mk.PoseGoal(HAND, X, level=2, name="hand")]
    tracker = Tracker(arm, tasks, velocity=1.0, acceleration=5.0)
    for k in range(1200):
        X[1, 3] = 0.05 * np.sin(2e-3 * k)
        state = tracker.step({"hand": X})
    here = arm.pose(HAND, state.q)
    assert here[2, 3] == pytest.approx(height, abs=1e-6)
    assert here[1, 3] == pytest.approx(X[1, 3], abs=1e-6)
