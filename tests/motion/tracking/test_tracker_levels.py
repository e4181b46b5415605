"""Upper levels of a tracker keep their residuals at every step, whatever the lower levels do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import seeds

import mechanik as mk
from mechanik.motion.tracking import Tracker, TrackerStatus

TOLERANCE = 1e-6
"""m and rad: default tolerance of objectives."""


NEAR_SINGULARITY = 0.1
"""Smallest singular value of the Jacobian of a held point, m, below which small errors grow fast."""


def two_tip_tree(seed: int, trunk: int, arm: int, limited_share: float = 0.0) -> mk.Mechanism:
    """A trunk that carries two arms; the tips are the links `left{arm - 1}` and `right{arm - 1}`."""
    rng, robot = np.random.default_rng(seed), mk.Builder("two tips")

    def add(name: str, parent: str, pivot: np.ndarray) -> np.ndarray:
        axis = rng.standard_normal(3)
        limits = (-rng.uniform(0.3, 2.5), rng.uniform(0.3, 2.5)) if rng.random() < limited_share else None
        robot.revolute(f"{name}_joint", parent, name, at=pivot, axis=tuple(axis / np.linalg.norm(axis)), limits=limits)
        return pivot + rng.uniform(-0.4, 0.4, 3)

    parent, pivot = "base", rng.uniform(-0.4, 0.4, 3)
    for i in range(trunk):
        pivot = add(f"trunk{i}", parent, pivot)
        parent = f"trunk{i}"
    for side in ("left", "right"):
        end, end_pivot = parent, pivot
        for i in range(arm):
            end_pivot = add(f"{side}{i}", end, end_pivot)
            end = f"{side}{i}"
    return robot.build()


def largest_error(mechanism: mk.Mechanism, objective: mk.Objective, q: np.ndarray) -> float:
    error = objective.error(mechanism, q)
    return max(error.position, error.rotation)


def largest_drift(
    tracker: Tracker,
    held: mk.Objective,
    targets,
    steps: int,
    steps_between_jumps: int,
    stops_near_singularity: bool = False,
) -> float:
    """Largest error of the held objective while the target of the task "low" jumps."""
    drift = 0.0
    for k in range(steps):
        state = tracker.step({"low": next(targets)} if k % steps_between_jumps == 0 else None)
        assert state.status is TrackerStatus.MOVED
        J = held.jacobian(tracker.mechanism, state.q)
        if stops_near_singularity and np.linalg.svd(J, compute_uv=False)[-1] < NEAR_SINGULARITY:
            break
        drift = max(drift, largest_error(tracker.mechanism, held, state.q))
    return drift


def jumping_points(rng: np.random.Generator, centre: np.ndarray, distance: float):
    while True:
        yield centre + rng.uniform(-distance, distance, 3)


@pytest.mark.parametrize("seed", [1, 2, 4, 5])
def test_held_pose_does_not_drift_while_the_point_on_another_tip_jumps(seed):
    """Once it drifted by up to 6 mm, since the lower level used up the acceleration."""
    tree, rng = two_tip_tree(seed, 3, 4), np.random.default_rng(seed)
    q0 = tree.space.random(rng)
    held, p = mk.PoseGoal("left3", tree.pose("left3", q0), level=0), tree.pose("right3", q0)[:3, 3]
    low = mk.PositionGoal("right3", p, level=1, name="low")
    tracker = Tracker(tree, [held, low], 0.002, q0=q0, velocity=1.5, acceleration=10.0)
    assert largest_drift(tracker, held, jumping_points(rng, p, 1.0), 2000, 500) < TOLERANCE


@given(seeds, st.integers(0, 3), st.sampled_from([1e-3, 2e-3, 4e-3]), st.floats(0.5, 3.0), st.floats(2.0, 100.0))
@settings(max_examples=10, deadline=None)
def test_held_point_does_not_drift_in_random_trees_far_from_singularities(seed, trunk, dt, speed, acceleration):
    tree, rng = two_tip_tree(seed, trunk, 4, limited_share=0.5), np.random.default_rng(seed)
    share = rng.uniform(0.05, 0.95, tree.nq)
    q0 = (1.0 - share) * np.maximum(tree.space.lower, -2.5) + share * np.minimum(tree.space.upper, 2.5)
    held, p = mk.PositionGoal("left3", tree.pose("left3", q0)[:3, 3], level=0), tree.pose("right3", q0)[:3, 3]
    low = mk.PositionGoal("right3", p, level=1, name="low")
    tracker = Tracker(tree, [held, low], dt, q0=q0, velocity=speed, acceleration=acceleration)
    drift = largest_drift(tracker, held, jumping_points(rng, p, 1.0), round(1.0 / dt), round(0.25 / dt), True)
    assert drift < TOLERANCE


@pytest.mark.parametrize(
    ("name", "link", "speed", "acceleration"),
    [("stewart_platform", "platform", 2.0, 20.0), ("hexapod", "platform", 1.0, 5.0)],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_held_orientation_does_not_drift_in_closed_chains(name, link, speed, acceleration, seed):
    """Once it drifted by up to 0.8 mrad where the loops needed the acceleration, and the mechanism stopped at once."""
    mechanism, rng = getattr(mk.gallery, name)(), np.random.default_rng(seed)
    X = mechanism.pose(link)
    held = mk.OrientationGoal(link, X[:3, :3], level=0)
    low = mk.PositionGoal(link, X[:3, 3], level=1, name="low")
    tracker = Tracker(mechanism, [held, low], 0.004, velocity=speed, acceleration=acceleration)
    assert largest_drift(tracker, held, jumping_points(rng, X[:3, 3], 0.4), 500, 75) < TOLERANCE


def test_held_point_does_not_drift_while_a_platform_turns():
    """Once it drifted by 48 um, the curvature of a step."""
    mechanism, rng = mk.gallery.planar_3rrr(), np.random.default_rng(0)
    X = mechanism.pose("platform")
    held = mk.PositionGoal("platform", X[:3, 3], level=0)
    low = mk.OrientationGoal("platform", X[:3, :3], level=1, name="low")
    turns = (mk.spatial.rotation.exp([0.0, 0.0, rng.uniform(-0.6, 0.6)]) @ X[:3, :3] for _ in range(100))
    tracker = Tracker(mechanism, [held, low], 0.004, velocity=2.0, acceleration=20.0)
    assert largest_drift(tracker, held, turns, 500, 75) < TOLERANCE


@pytest.mark.parametrize("seed", range(4))
def test_lower_level_still_reaches_its_target(seed):
    tree, rng = two_tip_tree(seed, 2, 6), np.random.default_rng(seed)
    q0 = tree.space.random(rng)
    held = mk.PositionGoal("left5", tree.pose("left5", q0)[:3, 3], level=0)
    goal = mk.solve(tree, held, q0=q0 + 0.3 * rng.standard_normal(tree.nq))
    assert goal.success
    low = mk.PositionGoal("right5", tree.pose("right5", goal.q)[:3, 3], level=1)
    tracker = Tracker(tree, [held, low], 0.002, q0=q0, velocity=1.5, acceleration=10.0)
    for _ in range(1500):
        state = tracker.step()
    assert max(largest_error(tree, item, state.q) for item in (held, low)) < TOLERANCE
