"""Errors do not change the state of a tracker, and collisions are resolved."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import (
    InvalidArgument,
    LimitsError,
    MechanikError,
    NotFinite,
    ObjectiveError,
    ShapeError,
    StructureError,
)
from mechanik.model import Mechanism

FLANGE = "panda_link8"


@pytest.fixture(name="arm")
def _arm() -> Mechanism:
    return mk.gallery.panda()


def test_collider_of_another_mechanism_raises_in_tracker(arm: Mechanism) -> None:
    with pytest.raises(StructureError, match="another mechanism"):
        mk.Tracker(arm, mk.RestPose(), avoid=mk.Collider(mk.gallery.panda()))


def test_joints_without_a_given_limit_take_that_of_the_file(arm: Mechanism) -> None:
    """A velocity for one joint once removed the file limits of all others."""
    each = np.linspace(0.5, 1.2, 8)
    np.testing.assert_array_equal(mk.Tracker(arm, mk.RestPose(), velocity=each).velocity, each)
    for invalid, error in ((-each, LimitsError), (each * math.nan, NotFinite), (each[:3], ShapeError)):
        with pytest.raises(error, match="velocity"):
            mk.Tracker(arm, mk.RestPose(), velocity=invalid)
    arm.extras["limits"] = {"panda_joint1": {"velocity": 2.0}, "panda_joint2": {"velocity": 3.0}}
    velocity = mk.Tracker(arm, mk.RestPose(), velocity={"panda_joint1": 5.0}).velocity
    assert velocity.tolist() == [5.0, 3.0, *[math.inf] * 6]


def test_failed_reset_changes_nothing() -> None:
    """The tracker once stayed at the invalid start and could not be reset."""
    robot = mk.gallery.four_bar()
    last = list(robot.links)[-1]
    tracker = mk.Tracker(robot, mk.PositionGoal(last, robot.pose(last)[:3, 3]))
    q, v = tracker.q, tracker.v
    with pytest.raises(StructureError, match="is not closed"):
        tracker.reset(q + 0.1)
    np.testing.assert_array_equal(tracker.q, q)
    np.testing.assert_array_equal(tracker.v, v)
    tracker.reset()
    assert tracker.step().status is mk.TrackerStatus.MOVED


@pytest.mark.parametrize("invalid", [math.nan, [0.0, 0.0], "far"])
def test_failing_task_moves_nothing_and_tracking_continues_afterwards(arm: Mechanism, invalid: Any) -> None:
    override: dict[str, Any] = {}
    task = mk.Custom(lambda _, q: override.get("wrong", q[0] - 0.1), residual_size=1)
    tracker = mk.Tracker(arm, task, velocity=1.0, acceleration=5.0)
    for _ in range(20):
        tracker.step()
    q, v, new_distance = tracker.q, tracker.v, tracker.time
    override["wrong"] = invalid
    with pytest.raises(ObjectiveError, match="returned"):
        tracker.step()
    assert np.array_equal(tracker.q, q)
    assert np.array_equal(tracker.v, v)
    assert tracker.time == new_distance
    override.clear()
    for _ in range(1000):
        tracker.step()
    assert tracker.q[0] == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize(
    ("hand", "joint", "error"),
    [
        (math.nan, 0.8, NotFinite),
        (1.0, math.nan, NotFinite),
        (2.0, 0.8, MechanikError),
        (1.0, "up", MechanikError),
    ],
)
def test_no_target_is_taken_if_one_is_invalid(arm: Mechanism, hand: float, joint: Any, error: type[Exception]) -> None:
    X = arm.pose(FLANGE)
    tasks = [mk.PoseGoal(FLANGE, X, name="hand"), mk.JointValues({"panda_joint7": arm.q[6]}, level=2, name="wrist")]
    tracker = mk.Tracker(arm, tasks, velocity=1.0)
    X[0, 3] += 0.1
    with pytest.raises(error):
        tracker.step({"hand": X * hand, "wrist": {"panda_joint7": joint}})
    assert np.abs(tracker.step().v).max() < 1e-9


@pytest.mark.parametrize("offset", [(0.1, 0.05, -0.05), (0.0, -0.12, 0.05), (0.11, 0.0, 0.02)])
def test_collision_at_the_start_is_reported_and_resolved_within_limits(
    arm: Mechanism, offset: tuple[float, float, float]
) -> None:
    """The tracker once stayed in collision and reported MOVED."""
    X = arm.pose(FLANGE)
    around = mk.Collider(arm, ["self", mk.Obstacle(mk.Sphere(0.08), X[:3, 3] + offset, name="ball")])
    tracker = mk.Tracker(arm, mk.PoseGoal(FLANGE, X), velocity=1.0, acceleration=5.0, avoid=around, clearance=0.005)
    state, distance = tracker.step(), float(around.distance(arm.q))
    v = state.v
    assert distance < 0.0
    assert state.status is mk.TrackerStatus.TOO_NEAR
    assert state.contacts[0].b == "ball"
    for k in range(3000):
        state = tracker.step()
        assert np.abs(state.v - v).max() <= 5e-3 * (1 + 1e-9)
        assert np.abs(state.v).max() <= 1.0
        v = state.v
        if k % 100 == 0:
            new_distance = float(around.distance(state.q))
            assert new_distance >= distance - 1e-6
            distance = new_distance
    assert state.status is mk.TrackerStatus.MOVED
    assert state.contacts == () or state.contacts[0].distance > 0.0049
    assert distance == pytest.approx(0.005, abs=1e-4)


@pytest.mark.parametrize("seed", [2, 3, 7, 34])
def test_several_collisions_are_resolved_within_limits(arm: Mechanism, seed: int) -> None:
    """The tracker once stayed in collision with several obstacles and exceeded accelerations up to 150 times."""
    rng = np.random.default_rng(seed)
    q, v, links = arm.random(rng), np.zeros(8), [f"panda_link{k}" for k in (4, 6, 8)]
    shapes = (mk.Sphere(0.12), mk.Box((0.2, 0.15, 0.25)), mk.Capsule(0.06, 0.3))
    obstacles = [
        mk.Obstacle(shape, arm.pose(link, q)[:3, 3] + rng.normal(0.0, 0.05, 3), name=f"on {link}")
        for shape, link in zip(shapes, links, strict=True)
    ]
    around = mk.Collider(arm, obstacles)
    assert around.distance(q) < -0.03
    goal = mk.PoseGoal(FLANGE, arm.pose(FLANGE, q))
    tracker = mk.Tracker(arm, goal, 2e-3, q0=q, velocity=1.5, acceleration=10.0, avoid=around, clearance=0.005)
    codes: set[int] = set()
    for _ in range(2500):
        codes.add(tracker.advance())
        assert np.abs(tracker.v - v).max() <= 0.02 * (1 + 1e-9)
        assert np.abs(tracker.v).max() <= 1.5
        v = tracker.v
    assert codes == {0, 3}
    assert around.distance(tracker.q) == pytest.approx(0.005, abs=1e-4)


def test_unresolvable_collision_does_not_get_deeper_and_comes_to_rest(arm: Mechanism) -> None:
    """The first link rotates about its own axis, so no motion separates it from an obstacle at the base."""
    around = mk.Collider(arm, [mk.Obstacle(mk.Sphere(0.15), (0.0, 0.0, 0.3), name="ball")])
    goal = mk.PoseGoal(FLANGE, arm.pose(FLANGE))
    tracker = mk.Tracker(arm, goal, 2e-3, velocity=1.5, acceleration=10.0, avoid=around)
    depth = float(around.distance(arm.q))
    assert depth < -0.05
    for _ in range(1000):
        tracker.advance()
    state = tracker.step()
    assert state.status is mk.TrackerStatus.TOO_NEAR
    assert state.contacts[0].a == "panda_link1"
    assert around.distance(state.q) >= depth - 1e-6
    assert np.abs(state.v).max() < 1e-3


def test_allow_and_forbid_change_the_checked_pairs(arm: Mechanism) -> None:
    X = arm.pose(FLANGE)
    ball = mk.Obstacle(mk.Sphere(0.08), X[:3, 3], name="ball")
    touching = [(link, "ball") for link in arm.links]
    tracker = mk.Tracker(arm, mk.PoseGoal(FLANGE, X), velocity=1.0, avoid=[ball], allow=touching)
    assert tracker.step().status is mk.TrackerStatus.MOVED
    neighbours = [("panda_link6", "panda_link7")]
    tracker = mk.Tracker(arm, mk.PoseGoal(FLANGE, X), velocity=1.0, avoid=["self"], forbid=neighbours)
    assert {tracker.step().contacts[0].a, tracker.step().contacts[0].b} == set(neighbours[0])
    with pytest.raises(InvalidArgument, match="no effect on a collider"):
        mk.Tracker(arm, mk.PoseGoal(FLANGE, X), avoid=mk.Collider(arm), allow=neighbours)
    with pytest.raises(InvalidArgument, match="need avoid"):
        mk.Tracker(arm, mk.PoseGoal(FLANGE, X), forbid=neighbours)


@pytest.mark.parametrize("offset", [(0.0, 0.17, 0.0), (0.0, -0.16, 0.02)])
def test_two_arms_with_a_box_resolve_a_collision_with_closed_loops(offset: tuple[float, float, float]) -> None:
    arms = mk.gallery.two_arms()
    X = arms.pose("box")
    around = mk.Collider(arms, ["self", mk.Obstacle(mk.Sphere(0.1), X[:3, 3] + offset, name="ball")])
    assert not around.is_free(arms.q, -0.03)
    goal = mk.PoseGoal("box", X)
    tracker = mk.Tracker(arms, goal, 0.002, velocity=1.0, acceleration=5.0, avoid=around, clearance=0.005)
    for _ in range(1500):
        tracker.advance()
        assert mk.Path(arms, [tracker.q]).closure_error() < 1e-9
    assert around.distance(tracker.q) == pytest.approx(0.005, abs=1e-4)


def test_collision_with_a_moved_obstacle_is_resolved(arm: Mechanism) -> None:
    X = arm.pose(FLANGE)
    around = mk.Collider(arm, [mk.Obstacle(mk.Sphere(0.08), (3.0, 0.0, 0.0), name="ball")])
    tracker = mk.Tracker(arm, mk.PoseGoal(FLANGE, X), velocity=1.0, acceleration=5.0, avoid=around)
    tracker.step()
    around.move("ball", mk.Pose(X[:3, 3] + [0.1, 0.05, -0.05]))
    assert not around.is_free(tracker.q)
    assert tracker.step().status is mk.TrackerStatus.TOO_NEAR
    for _ in range(2000):
        tracker.advance()
    assert around.is_free(tracker.q, -1e-4)
