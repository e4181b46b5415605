"""Planned paths: collision-free from the start to a goal with closed loops; errors for invalid input."""

from __future__ import annotations

import _thread
import functools
import signal
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.closure.loop_system import cached_loop_system
from mechanik.collision import Collider, Obstacle
from mechanik.errors import InvalidArgument, LimitsError, NotFinite, PlanningError, ShapeError, UnknownName
from mechanik.model.shapes import Box, Sphere
from mechanik.motion.follow import Path
from mechanik.motion.plan import plan
from mechanik.motion.plan.path_certificate import certify_path
from mechanik.motion.plan.path_postprocessing import round_corners, shortcut_path
from mechanik.motion.plan.planning_space import PlanningSpace
from mechanik.motion.retime import retime
from mechanik.spatial.array import Array

SEEDS = st.integers(0, 2**32 - 1)
TABLE = Obstacle(Box((1.2, 1.2, 0.05)), (0.6, 0.0, -0.1), name="table")
WALL = Obstacle(Box((0.5, 0.02, 0.5)), (0.6, 0.0, 0.25), name="wall")
ROOF = Obstacle(Box((0.5, 0.6, 0.02)), (0.6, 0.0, 0.6), name="roof")


@functools.cache
def panda() -> mk.Mechanism:
    return mk.gallery.panda()


@functools.cache
def scene() -> Collider:
    return Collider(panda(), ["self", TABLE, WALL, ROOF])


@functools.cache
def two_arms() -> mk.Mechanism:
    return mk.gallery.two_arms()


def free_pair(seed: int) -> tuple[Array, Array]:
    q = panda().space.random(np.random.default_rng(seed), 40)
    q = q[np.asarray(scene().is_free(q))]
    assume(len(q) > 1)
    return q[0], q[1]


def solution_beside_wall(side: float) -> mk.Solution:
    """The tool over the table, on one side of the wall."""
    X = panda().pose("panda_hand", panda().configurations["home"])
    X[:3, 3] = 0.5, 0.3 * side, 0.3
    return mk.solve(panda(), mk.PoseGoal("panda_hand", X), avoid=scene())


def make_planning_space(mechanism: mk.Mechanism, loops: object, collider: Collider | None) -> PlanningSpace:
    space = mechanism.space
    free = np.ones(mechanism.nv, dtype=np.bool_)
    return PlanningSpace(mechanism, loops, collider, 0.0, space.lower, space.upper, free)  # type: ignore[arg-type]


# ---- invariants --------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(SEEDS)
def test_path_is_free_and_leads_from_start_to_goal(seed: int) -> None:
    a, b = free_pair(seed)
    path = plan(panda(), a, b, avoid=scene(), max_seconds=20.0)
    assert np.array_equal(path.q[0], a)
    assert np.array_equal(path.q[-1], b)
    dense = path.densify(0.004).q
    assert np.min(scene().distance(dense)) >= 0.0
    assert (dense >= panda().space.lower - 1e-12).all()
    assert (dense <= panda().space.upper + 1e-12).all()


@settings(max_examples=6)
@given(SEEDS, st.floats(0.0, 0.004))
def test_path_keeps_the_clearance(seed: int, clearance: float) -> None:
    a, b = free_pair(seed)
    assume(np.min(scene().distance(np.array([a, b]))) > clearance)
    try:
        path = plan(panda(), a, b, avoid=scene(), clearance=clearance, max_seconds=20.0)
    except PlanningError:
        assume(False)
        return
    assert path.min_distance >= clearance
    assert np.min(scene().distance(path.densify(0.004).q)) >= clearance


@settings(max_examples=15)
@given(SEEDS, st.floats(0.0, 0.6))
def test_certified_path_is_free_between_checks(seed: int, angle: float) -> None:
    """An arm beside a ball: the certificate is compared with 20,001 samples."""
    rng = np.random.default_rng(seed)
    arm = mk.gallery.planar_3r()
    q = arm.space.random(rng, 2) * angle
    position = rng.uniform(-0.5, 0.5, 3) * (1.0, 1.0, 0.0)
    collider = Collider(arm, [Obstacle(Sphere(0.05), position)])
    with cached_loop_system(arm, {}) as loops:
        certificate = certify_path(make_planning_space(arm, loops, collider), q, 0.0, np.inf)
    dense = q[0] + np.linspace(0.0, 1.0, 20_001)[:, None] * (q[1] - q[0])
    smallest = float(np.min(collider.distance(dense)))
    if certificate.is_certain:
        assert certificate.is_free
        assert smallest >= 0.0
    if not certificate.is_free:
        assert smallest < 1e-9
    if smallest > 1e-4:
        assert certificate.is_certain
        assert certificate.min_distance == pytest.approx(smallest, abs=0.05)


def test_path_through_a_needle_between_two_checks_is_not_certain() -> None:
    """The obstacle is smaller than the motion between two checks."""
    arm = mk.gallery.planar_2r()
    q = np.array([[0.0, 0.0], [0.01, 0.0]])
    tip = arm.poses(q.mean(axis=0))[-1][:3, 3]
    collider = Collider(arm, [Obstacle(Sphere(1e-5), tip, name="needle")])
    assert not collider.is_free(q.mean(axis=0))
    with cached_loop_system(arm, {}) as loops:
        assert not certify_path(make_planning_space(arm, loops, collider), q, 0.0, np.inf).is_certain


@settings(max_examples=8)
@given(SEEDS)
def test_shortcuts_and_rounded_corners_do_not_lengthen_a_path_and_retain_its_ends(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = panda().space.random(rng, 6)
    with cached_loop_system(panda(), {}) as loops:
        space = make_planning_space(panda(), loops, None)
        shortened = shortcut_path(space, q, rng, np.inf)
        rounded = round_corners(space, q, np.inf)
    assert len(shortened) == 2  # no obstacles
    for path in (shortened, rounded):
        assert np.array_equal(path[[0, -1]], q[[0, -1]])
        assert Path(panda(), path).length <= Path(panda(), q).length + 1e-9
    # in planning units, in which corners are rounded
    rounded, q = rounded / space.unit, q / space.unit
    assert (np.array(_corner_angles(rounded)) < max(_corner_angles(q))).all()
    assert (
        sum(_corner_angles(rounded)) <= sum(_corner_angles(q)) + 1e-9
    )  # an arc changes direction as much as its corner, and no more


def _corner_angles(q: Array) -> list[float]:
    """Change of direction at each inner waypoint, rad."""
    directions = np.diff(q, axis=0)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return [2.0 * float(np.arcsin(0.5 * np.linalg.norm(b - a))) for a, b in pairwise(directions)]


# ---- around obstacles -----------------------------------------------------------------------------


def test_path_around_a_wall_stays_free_when_retimed() -> None:
    start, goal = solution_beside_wall(-1.0), solution_beside_wall(1.0)
    straight = Path(panda(), [start.q, goal.q])
    assert not straight.is_free(scene())
    path = plan(panda(), start, goal, avoid=scene(), max_seconds=20.0)
    assert path.planner == "rrt_connect"
    assert path.is_certain
    timed = retime(path, 1.5, 4.0)
    assert np.min(scene().distance(timed.resample(0.002).q)) >= 0.0


def test_pose_goal_is_met_at_the_end_and_the_mechanism_does_not_move() -> None:
    before = np.array(panda().q)
    goal = mk.PoseGoal("panda_hand", panda().pose("panda_hand", solution_beside_wall(1.0).q))
    path = plan(panda(), solution_beside_wall(-1.0), goal, avoid=scene(), max_seconds=20.0)
    assert np.abs(goal.residual(panda(), path.q[-1])).max() < 1e-5
    assert np.array_equal(panda().q, before)


def test_invalid_goals_are_skipped_if_another_is_valid() -> None:
    start, goal = solution_beside_wall(-1.0), solution_beside_wall(1.0)
    outside = panda().space.upper + 1.0
    path = plan(panda(), start, [outside, goal.q], avoid=scene(), max_seconds=20.0)
    assert np.array_equal(path.q[-1], goal.q)


def test_locked_joint_does_not_move() -> None:
    start, goal = solution_beside_wall(-1.0).q, solution_beside_wall(1.0).q.copy()
    finger = panda().space.q_names.index("panda_finger_joint1")
    goal[finger] = start[finger]
    path = plan(panda(), start, goal, avoid=scene(), lock="panda_finger_joint1", max_seconds=20.0)
    assert np.array_equal(path.q[:, finger], np.full(len(path), start[finger]))


def test_same_seed_gives_the_same_path() -> None:
    start, goal = solution_beside_wall(-1.0), solution_beside_wall(1.0)
    first, second = (
        plan(panda(), start, goal, avoid=scene(), rng=np.random.default_rng(4), max_seconds=20.0) for _ in range(2)
    )
    assert np.array_equal(first.q, second.q)


@pytest.mark.parametrize("planner", ["RRT", "KPIECE1", "LBKPIECE1", "BITstar"])
def test_path_around_the_wall_is_no_longer_than_those_of_ompl(planner: str) -> None:
    pytest.importorskip("ompl")
    from ompl_planner import plan_with_ompl

    start, goal = solution_beside_wall(-1.0), solution_beside_wall(1.0)
    ours = [
        plan(panda(), start, goal, avoid=scene(), rng=np.random.default_rng(seed), max_seconds=20.0)
        for seed in range(4)
    ]
    assert all(path.is_free(scene(), step=0.01) for path in ours)
    with cached_loop_system(panda(), {}) as loops:
        space = make_planning_space(panda(), loops, scene())
        deadline = time.perf_counter() + (2.0 if planner == "BITstar" else 20.0)
        theirs = plan_with_ompl(space, start.q, goal.q[None], planner, deadline, np.random.default_rng(0))
    assert theirs is not None
    assert min(joint_length(path.q) for path in ours) <= 1.1 * joint_length(theirs)


def joint_length(q: Array) -> float:
    return float(np.linalg.norm(np.diff(q, axis=0), axis=1).sum())


# ---- loops and spherical joints ---------------------------------------------------------------------------


def test_two_arms_carry_a_box_around_a_pillar_with_closed_loops() -> None:
    arms = two_arms()
    X = arms.pose("box", arms.configurations["home"])
    ends: list[Array] = []
    for side in (-0.25, 0.25):
        X_goal = X.copy()
        X_goal[1, 3] += side
        ends.append(mk.solve(arms, mk.PoseGoal("box", X_goal)).require().q)
    collider = Collider(arms, ["self", Obstacle(Box((0.06, 0.06, 1.2)), name="pillar")])
    assert not Path(arms, ends).is_free(collider)
    path = plan(arms, ends[0], ends[1], avoid=collider, max_seconds=60.0)
    assert path.closure_error() < 1e-6
    between = Path(arms, path.at(np.linspace(0.0, 1.0, 301)))
    assert between.closure_error() < 1e-6
    assert np.min(collider.distance(between.q)) >= 0.0
    assert not path.is_certain  # nothing bounds the motion with closed loops between two checks


def test_straight_path_of_a_linkage_has_closed_loops() -> None:
    linkage = mk.gallery.five_bar()
    goal = linkage.assemble({"left_crank_joint": linkage.q[0] + 0.5}).q
    path = plan(linkage, None, goal, avoid=None)
    assert path.planner == "straight"
    assert Path(linkage, path.at(np.linspace(0.0, 1.0, 100))).closure_error() < 1e-9


def test_spherical_joint_rotates_around_an_obstacle() -> None:
    robot = mk.Builder("stick")
    robot.link("base")
    robot.spherical("shoulder", "base", "stick")
    robot.link("stick", collisions=[mk.ShapeInstance(Box((0.04, 0.04, 1.0)), mk.Pose((0.0, 0.0, 0.5)))])
    stick = robot.build()
    half = np.sqrt(0.5)
    start, goal = np.array([half, half, 0.0, 0.0]), np.array([half, -half, 0.0, 0.0])  # along -y, and along +y
    # two bars block the straight segments over the top and below
    bars = [Obstacle(Box((0.5, 0.05, 0.05)), (0.0, 0.0, z), name=name) for z, name in ((0.8, "above"), (-0.8, "below"))]
    collider = Collider(stick, bars)
    path = plan(stick, start, goal, avoid=collider, max_seconds=20.0)
    assert np.abs(np.linalg.norm(path.q, axis=1) - 1.0).max() < 1e-9
    assert np.min(collider.distance(path.densify(0.004).q)) >= 0.0


# ---- invalid input -------------------------------------------------------------------------------


def test_start_or_goal_in_collision_is_reported_with_pair_and_depth() -> None:
    inside = mk.solve(panda(), mk.PositionGoal("panda_hand", (0.5, 0.0, 0.25))).q
    for start, goal, what in ((inside, None, "the start"), (None, inside, "the goal")):
        fine = panda().configurations["home"]
        with pytest.raises(PlanningError, match=rf"{what} is not valid: 'panda_\w+' is [\d.]+ mm inside 'wall'"):
            plan(panda(), fine if start is None else start, fine if goal is None else goal, avoid=[TABLE, WALL])


def test_invalid_arguments_raise_with_a_clear_message() -> None:
    arm, home = panda(), panda().configurations["home"]
    with pytest.raises(PlanningError, match=r"'panda_joint4' is .*, outside its limits -3.07.* to -0.069"):
        plan(arm, np.zeros(8), home)
    with pytest.raises(PlanningError, match="outside its limits"):
        plan(arm, home, home, limits={"panda_joint1": (0.1, 0.2)})
    with pytest.raises(PlanningError, match="'panda_joint1' is locked"):
        plan(arm, home, home + np.eye(8)[0] * 0.1, lock=["panda_joint1"])
    with pytest.raises(PlanningError, match=r"the clearance is 0.3 m"):
        plan(arm, home, home, clearance=0.3)
    with pytest.raises(
        PlanningError,
        match=r"no configuration that meets the goal was found: out of reach: PositionGoal 0 \(2.01 m too far",
    ):
        plan(arm, home, mk.PositionGoal("panda_hand", (3.0, 0.0, 0.3)))
    with pytest.raises(NotFinite):
        plan(arm, home * np.nan, home)
    with pytest.raises(NotFinite):
        plan(arm, home, [home, home * np.nan])
    with pytest.raises(NotFinite):
        plan(arm, home, home, max_seconds=float("nan"))
    with pytest.raises(ShapeError, match="empty"):
        plan(arm, home, [])
    with pytest.raises(ShapeError, match="the goal"):
        plan(arm, home, [1.0, 2.0])
    with pytest.raises(InvalidArgument, match="a goal must be"):
        plan(arm, home, "home")  # type: ignore[arg-type]
    with pytest.raises(LimitsError, match="max_seconds"):
        plan(arm, home, home, max_seconds=0.0)
    with pytest.raises(UnknownName, match="Did you mean 'rrt_connect'"):
        plan(arm, solution_beside_wall(-1.0), solution_beside_wall(1.0), avoid=scene(), planner="rrt_conect")
    with pytest.raises(UnknownName, match="shelf"):
        plan(arm, home, home, avoid=["self", "shelf"])


def test_start_with_open_loops_raises() -> None:
    linkage = mk.gallery.five_bar()
    with pytest.raises(PlanningError, match=r"loops are not closed: .*assemble"):
        plan(linkage, linkage.q + 0.1, linkage.q, avoid=None)


def fenced_problem() -> tuple[Array, Array, dict[str, tuple[float, float]], Obstacle]:
    """Start and goal of a planar arm, limits, and a fence that no path within the limits leads around."""
    arm = mk.gallery.planar_2r()
    tip = arm.poses(np.zeros(2))[-1][:3, 3]
    fence = Obstacle(Box((0.5 * float(np.linalg.norm(tip)), 0.02, 0.5)), 0.6 * tip, name="fence")
    return np.array([-1.0, 0.0]), np.array([1.0, 0.0]), {arm.space.q_names[0]: (-1.2, 1.2)}, fence


def test_unreachable_goal_raises_after_max_seconds() -> None:
    low, high, limits, fence = fenced_problem()
    with pytest.raises(PlanningError, match=r"RRT-Connect found no path to 1 goal .*configurations checked"):
        plan(mk.gallery.planar_2r(), low, high, avoid=[fence], limits=limits, max_seconds=0.5)


def test_keyboard_interrupt_stops_planning() -> None:
    low, high, limits, fence = fenced_problem()
    # the parent process may ignore the signal
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.3, _thread.interrupt_main).start()
        with pytest.raises(KeyboardInterrupt):
            plan(mk.gallery.planar_2r(), low, high, avoid=[fence], limits=limits, max_seconds=60.0)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_locked_spherical_joint_does_not_move():
    """Once the random configurations of the search rotated it."""
    builder = mk.Builder("arm")
    builder.spherical("ball", "base", "body")
    builder.revolute("swing", "body", "boom", axis="z", limits=(-3, 3))
    builder.prismatic("slide", "boom", "hand", axis="x", limits=(-0.6, 0.6))
    arm = builder.build()
    arm.links["hand"].collisions = [mk.ShapeInstance(Sphere(0.05), mk.Pose((0.7, 0, 0)))]
    start, goal = arm.q.copy(), arm.q.copy()
    start[-2], goal[-2] = -1.0, 1.0
    path = plan(
        arm, start, goal, avoid=[Obstacle(Sphere(0.15), (0.7, 0, 0))], lock=["ball"], rng=np.random.default_rng(0)
    )
    assert len(path.q) > 2
    np.testing.assert_allclose(path.q[:, :4] - start[:4], 0.0, atol=1e-12)
