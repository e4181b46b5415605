"""Limits of position, velocity and acceleration hold at every step for any targets."""

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


def single_joint(lower: float = -math.inf, upper: float = math.inf) -> mk.Mechanism:
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
def test_step_target_gives_a_trapezoidal_velocity_profile(distance, speed, acceleration):
    arm = single_joint()
    tracker = Tracker(
        arm, mk.JointValues({"turn": distance}, angle_mode="exact"), DT, velocity=speed, acceleration=acceleration
    )
    peak = min(speed, math.sqrt(acceleration * distance))
    duration = distance / peak + peak / acceleration
    values, rates = [0.0], [0.0]
    for _ in range(math.ceil(duration / DT) + 3):
        state = tracker.step()
        values.append(float(state.q[0]))
        rates.append(float(state.v[0]))
    assert values[-1] == pytest.approx(distance, abs=1e-12)
    assert max(values) <= distance + 1e-12
    assert (np.diff(values) >= -1e-12).all()
    assert max(rates) == pytest.approx(peak, abs=2 * acceleration * DT)
    # and it takes no longer than the trapezoid, up to the time step
    last_step = math.ceil(duration / DT) + 2
    assert values[last_step] == pytest.approx(distance, abs=1e-9)
    ramp_time = 0.5 * peak / acceleration
    assert values[round(ramp_time / DT)] == pytest.approx(0.5 * acceleration * ramp_time * ramp_time, abs=2 * peak * DT)


@given(st.floats(0.01, 3.0), st.floats(0.2, 5.0), st.floats(0.5, 50.0))
@settings(max_examples=30, deadline=None)
def test_joint_stops_at_its_position_limit(limit, speed, acceleration):
    arm = single_joint(-1.0, limit)
    goal = mk.JointValues({"turn": 10.0}, angle_mode="exact")
    tracker = Tracker(arm, goal, DT, velocity=speed, acceleration=acceleration)
    before = tracker.v
    for _ in range(math.ceil((limit / speed + 2 * speed / acceleration + math.sqrt(limit / acceleration)) / DT) + 10):
        state = tracker.step()
        assert_within(arm, tracker, before, state)
        before = state.v
    assert state.q[0] == pytest.approx(limit, abs=1e-9)
    assert state.limits == {"turn": "position"}


@given(seeds, st.integers(2, 12), st.floats(0.3, 5.0), st.floats(1.0, 100.0))
@settings(max_examples=12, deadline=None)
def test_limits_hold_in_random_trees_with_jumping_targets(seed, joints, speed, acceleration):
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
def test_limits_hold_with_loops_and_jumping_targets(name):
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


def test_hexapod_maintains_strut_limits_and_closed_loops():
    hexapod, rng = mk.gallery.hexapod(), np.random.default_rng(0)
    struts = [f"strut{k}_slide.Z" for k in range(1, 7)]
    X0 = hexapod.pose("platform")
    tracker = Tracker(
        hexapod, mk.PoseGoal("platform", X0), velocity=dict.fromkeys(struts, 0.05),
        acceleration=dict.fromkeys(struts, 1.0),
    )  # fmt: skip
    before, active_limits = tracker.v, set()
    for k in range(1500):
        if k % 250 == 0:
            X = make_pose(rotation.exp(0.2 * rng.standard_normal(3)), X0[:3, 3] + 0.02 * rng.standard_normal(3))
        state = tracker.step(X)
        assert state.status is TrackerStatus.MOVED
        assert_within(hexapod, tracker, before, state)
        before = state.v
        active_limits |= set(state.limits.values())
        if k % 30 == 0:
            hexapod.q = state.q
            assert all(closure.gap().is_closed(1e-9) for closure in hexapod.closures.values())
    assert active_limits == {"acceleration", "velocity", "position"}


def test_velocity_limit_of_a_mimic_joint_bounds_its_leader():
    robot = mk.Builder("geared")
    robot.revolute("slow", "base", "a", axis="z")
    robot.revolute("fast", "a", "b", axis="z")
    arm = robot.build()
    arm.joint("fast").mimic(arm.joint("slow"), ratio=-4.0)
    assert Tracker(arm, mk.JointValues({"slow": 1.0}), velocity=2.0).velocity == pytest.approx([0.5])
    assert Tracker(arm, mk.JointValues({"slow": 1.0}), velocity={"slow": 2.0}).velocity == pytest.approx([2.0])


def test_file_velocities_are_limits_and_zero_means_unknown():
    arm = single_joint()
    arm.extras["limits"] = {"turn": {"effort": 3.0, "velocity": 1.5}}
    assert Tracker(arm, mk.JointValues({"turn": 1.0})).velocity == pytest.approx([1.5])
    arm.extras["limits"] = {"turn": {"effort": 3.0, "velocity": 0.0}}
    assert np.isinf(Tracker(arm, mk.JointValues({"turn": 1.0})).velocity).all()
