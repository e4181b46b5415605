"""Limits of position, velocity and acceleration hold at every step, whatever is asked."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import random_mechanism, random_turn, seeds

import mechanik as mk
from mechanik.motion.tracking import Tracker, TrackerStatus
from mechanik.spatial import make_pose, quaternion, rotation

DT = 1e-3


def one_joint(lower: float = -math.inf, upper: float = math.inf) -> mk.Mechanism:
    robot = mk.Builder("one")
    robot.revolute("turn", "base", "arm", axis="z", limits=(lower, upper))
    return robot.build()


def assert_within(mechanism: mk.Mechanism, tracker: Tracker, before, state) -> None:
    space = mechanism.space
    assert (state.q <= space.upper).all()
    assert (state.q >= space.lower).all()
    assert (np.abs(state.v) <= tracker.velocity).all()
    assert (np.abs(state.v - before) <= tracker.acceleration * tracker.dt).all()


@given(st.floats(0.01, 3.0), st.floats(0.2, 5.0), st.floats(0.5, 50.0))
@settings(max_examples=40, deadline=None)
def test_a_joint_goes_to_a_leaping_target_as_a_trapezoid(way, speed, acceleration):
    arm = one_joint()
    tracker = Tracker(
        arm, mk.JointValues({"turn": way}, angle_mode="exact"), DT, velocity=speed, acceleration=acceleration
    )
    peak = min(speed, math.sqrt(acceleration * way))
    duration = way / peak + peak / acceleration
    values, rates = [0.0], [0.0]
    for _ in range(math.ceil(duration / DT) + 3):
        state = tracker.step()
        values.append(float(state.q[0]))
        rates.append(float(state.v[0]))
    assert values[-1] == pytest.approx(way, abs=1e-12)
    assert max(values) <= way + 1e-12
    assert (np.diff(values) >= -1e-12).all()
    assert max(rates) == pytest.approx(peak, abs=2 * acceleration * DT)
    # and it takes no longer than the trapezoid but for the steps that time comes in
    late = math.ceil(duration / DT) + 2
    assert values[late] == pytest.approx(way, abs=1e-9)
    at = 0.5 * peak / acceleration
    assert values[round(at / DT)] == pytest.approx(0.5 * acceleration * at * at, abs=2 * peak * DT)


@given(st.floats(0.01, 3.0), st.floats(0.2, 5.0), st.floats(0.5, 50.0))
@settings(max_examples=30, deadline=None)
def test_a_joint_that_is_sent_beyond_its_limit_stops_on_it(room, speed, acceleration):
    arm = one_joint(-1.0, room)
    goal = mk.JointValues({"turn": 10.0}, angle_mode="exact")
    tracker = Tracker(arm, goal, DT, velocity=speed, acceleration=acceleration)
    before = tracker.v
    for _ in range(math.ceil((room / speed + 2 * speed / acceleration + math.sqrt(room / acceleration)) / DT) + 10):
        state = tracker.step()
        assert_within(arm, tracker, before, state)
        before = state.v
    assert state.q[0] == pytest.approx(room, abs=1e-9)
    assert state.limits == {"turn": "position"}


@given(seeds, st.integers(2, 12), st.floats(0.3, 5.0), st.floats(1.0, 100.0))
@settings(max_examples=12, deadline=None)
def test_limits_hold_in_any_tree_while_goals_leap(seed, joints, speed, acceleration):
    mechanism = random_mechanism(seed, joints)
    if mechanism.nv == 0:
        return
    rng = np.random.default_rng(seed)
    link = list(mechanism.links)[-1]
    tasks = [
        mk.PoseGoal(link, np.eye(4), name="end"),
        mk.PositionGoal(list(mechanism.links)[1], (0, 0, 0), level=2, name="first"),
    ]
    tracker = Tracker(mechanism, tasks, DT, velocity=speed, acceleration=acceleration)
    assert np.isfinite(tracker.velocity).all()
    before = tracker.v
    for k in range(300):
        if k % 60 == 0:
            X = make_pose(quaternion.to_matrix(random_turn(rng)), rng.uniform(-2, 2, 3))
            state = tracker.step({"end": X, "first": rng.uniform(-2, 2, 3)})
        else:
            state = tracker.step()
        assert state.status is TrackerStatus.MOVED
        assert_within(mechanism, tracker, before, state)
        before = state.v


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "planar_3rrr", "delta_robot", "stewart_platform"])
def test_limits_of_all_joints_of_loops_hold_while_goals_leap(name):
    mechanism = getattr(mk.gallery, name)()
    link, rng = list(mechanism.links)[-1], np.random.default_rng(0)
    X0 = mechanism.pose(link)
    tracker = Tracker(mechanism, mk.PoseGoal(link, X0), DT, velocity=2.0, acceleration=20.0)
    before = tracker.v
    for k in range(900):
        if k % 150 == 0:
            X = make_pose(rotation.exp(0.3 * rng.standard_normal(3)), X0[:3, 3] + 0.05 * rng.standard_normal(3))
        state = tracker.step(X)
        assert state.status is TrackerStatus.MOVED
        assert_within(mechanism, tracker, before, state)
        before = state.v
        if k % 30 == 0:
            mechanism.q = state.q
            assert all(closure.gap().is_closed(1e-9) for closure in mechanism.closures.values())


def test_a_hexapod_keeps_the_limits_of_its_struts_and_its_loops():
    hexapod, rng = mk.gallery.hexapod(), np.random.default_rng(0)
    struts = [f"strut{k}_slide.Z" for k in range(1, 7)]
    X0 = hexapod.pose("platform")
    tracker = Tracker(
        hexapod, mk.PoseGoal("platform", X0), velocity=dict.fromkeys(struts, 0.05),
        acceleration=dict.fromkeys(struts, 1.0),
    )  # fmt: skip
    before, held = tracker.v, set()
    for k in range(1500):
        if k % 250 == 0:
            X = make_pose(rotation.exp(0.2 * rng.standard_normal(3)), X0[:3, 3] + 0.02 * rng.standard_normal(3))
        state = tracker.step(X)
        assert state.status is TrackerStatus.MOVED
        assert_within(hexapod, tracker, before, state)
        before = state.v
        held |= set(state.limits.values())
        if k % 30 == 0:
            hexapod.q = state.q
            assert all(closure.gap().is_closed(1e-9) for closure in hexapod.closures.values())
    assert held == {"acceleration", "velocity", "position"}


def test_a_follower_binds_its_leader():
    robot = mk.Builder("geared")
    robot.revolute("slow", "base", "a", axis="z")
    robot.revolute("fast", "a", "b", axis="z")
    arm = robot.build()
    arm.joint("fast").mimic(arm.joint("slow"), ratio=-4.0)
    assert Tracker(arm, mk.JointValues({"slow": 1.0}), velocity=2.0).velocity == pytest.approx([0.5])
    assert Tracker(arm, mk.JointValues({"slow": 1.0}), velocity={"slow": 2.0}).velocity == pytest.approx([2.0])


def test_velocities_of_the_file_are_limits_and_zero_means_not_known():
    arm = one_joint()
    arm.extras["limits"] = {"turn": {"effort": 3.0, "velocity": 1.5}}
    assert Tracker(arm, mk.JointValues({"turn": 1.0})).velocity == pytest.approx([1.5])
    arm.extras["limits"] = {"turn": {"effort": 3.0, "velocity": 0.0}}
    assert np.isinf(Tracker(arm, mk.JointValues({"turn": 1.0})).velocity).all()
