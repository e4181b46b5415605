"""FABRIK against a plain NumPy version from the papers, reached targets, and rejected problems."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy_fabrik import Bone, End, NumpyFabrik, mechanism, values_of
from solver_internals import row_length_units

import mechanik as mk
from mechanik.errors import InvalidOperation, LimitsError
from mechanik.spatial import make_pose, quaternion, rotation

FREE = (-math.inf, math.inf)
EXACT = {"tolerance": 1e-15, "angle_tolerance": 1e-15}


def random_pose(rng, length=1.0):
    return make_pose(quaternion.to_matrix(quaternion.normalize(rng.standard_normal(4))), length * unit(rng))


def unit(rng):
    v = rng.standard_normal(3)
    return v / np.linalg.norm(v)


def ball_chain(rng, count):
    return [Bone(i - 1, random_pose(rng, rng.uniform(0.1, 0.5)), "ball") for i in range(count)], [count - 1]


def hinge_chain(rng, count, limited=True):
    bones = []
    for i in range(count):
        limits = FREE
        if limited and i % 2:
            low = rng.uniform(-4, 2)  # some ranges lie beyond half a turn
            limits = (low, low + rng.uniform(0.5, 5))
        bones.append(Bone(i - 1, random_pose(rng, rng.uniform(0.1, 0.5)), "hinge", unit(rng), limits))
    return bones, [count - 1]


def planar_chain(rng, count):
    bones = [Bone(i - 1, make_pose(np.eye(3), (0.0 if i == 0 else rng.uniform(0.2, 0.5), 0, 0))) for i in range(count)]
    return bones, [count - 1]


def wrist_chain(rng, count):
    """Roll joints along their links, and a wrist of three intersecting revolute joints."""
    _, y, z = np.eye(3)
    axes = [z, y, z, y, z, y, z]
    steps = [0.0, 0.3, 0.0, 0.4, 0.3, 0.0, 0.0]
    bones = [
        Bone(i - 1, make_pose(np.eye(3), s * z), "hinge", a) for i, (a, s) in enumerate(zip(axes, steps, strict=True))
    ]
    bones[3].limits = (-2.0, 2.5)
    return bones, [6]


def mixed_chain(rng, count):
    bones = []
    for i in range(count):
        kind = ("ball", "hinge", "slide")[rng.integers(3)] if i else "hinge"
        limits = (-0.3, 0.4) if kind == "slide" else FREE
        length = 0.0 if i and rng.random() < 0.2 else rng.uniform(0.2, 0.5)
        bones.append(Bone(i - 1, random_pose(rng, length), kind, unit(rng), limits))
    return bones, [count - 1]


def tree(rng, count, kinds=("ball", "hinge")):
    """A spine of two, and two arms on its end."""
    parents = [-1, 0, *([1] * 2), *range(2, count - 2)]
    bones = [
        Bone(parent, random_pose(rng, rng.uniform(0.2, 0.4)), kinds[rng.integers(len(kinds))], unit(rng))
        for parent in parents
    ]
    return bones, [count - 2, count - 1]


PROBLEMS = [
    *((ball_chain, n, False) for n in (1, 2, 3, 5, 8)),
    *((ball_chain, n, True) for n in (2, 3, 6)),
    *((hinge_chain, n, False) for n in (1, 2, 3, 5, 7)),
    *((hinge_chain, n, True) for n in (3, 6)),
    *((planar_chain, n, False) for n in (2, 3, 6)),
    *((wrist_chain, 7, pose) for pose in (False, True)),
    *((mixed_chain, n, pose) for n in (3, 4, 6, 8) for pose in (False, True)),
    *((tree, n, pose) for n in (6, 8, 10) for pose in (False, True)),
]


@pytest.mark.parametrize("look_ahead", [None, 0, 1, 100])
@pytest.mark.parametrize(("kind", "count", "pose"), PROBLEMS)
def test_each_iterate_equals_that_of_the_papers(kind, count, pose, look_ahead):
    rng = np.random.default_rng([count, pose, len(kind.__name__)])
    bones, tips = kind(rng, count)
    robot = mechanism(bones)
    q_goal, q = robot.random(rng, 2)
    ends, goals = [], []
    for k in tips:
        tool = random_pose(rng, 0.3)
        X = robot.pose(f"l{k}", q_goal) @ tool
        if pose:
            ends.append(End(k, tool[:3, 3], X[:3, 3], (tool[:3, :3], X[:3, :3])))
            goals.append(mk.PoseGoal(f"l{k}", X, at=tool, **EXACT))
        else:
            ends.append(End(k, tool[:3, 3], X[:3, 3]))
            goals.append(mk.PositionGoal(f"l{k}", X[:3, 3], tool[:3, 3], **EXACT))
    solver = mk.Solver(robot, goals, solver="fabrik", max_iterations=10, look_ahead=look_ahead)
    plain = NumpyFabrik(bones, ends, row_length_units(solver)[0], look_ahead)
    seen = []
    solver.solve(q0=q, callback=lambda now: seen.append(now.q))
    values = values_of(bones, q)
    assert seen
    for q_solver in seen:
        values = plain.iterate(values)
        for i, X in enumerate(plain.poses(values)):
            np.testing.assert_allclose(robot.pose(f"l{i}", q_solver), X, atol=1e-9, rtol=0)
        for mine, theirs in zip(values_of(bones, q_solver), values, strict=True):
            if isinstance(theirs, float):
                assert abs(mine - theirs) < 1e-9


@pytest.mark.parametrize("count", [2, 3, 10])
def test_a_chain_of_spherical_joints_moves_as_the_points_of_the_first_paper(count):
    """Algorithm 1 of Aristidou and Lasenby 2011: nothing but points and lengths."""
    rng = np.random.default_rng(count)
    bones, _ = ball_chain(rng, count)
    robot, end = mechanism(bones), np.array([0.1, 0.2, 0.3])
    q_goal, q = robot.random(rng, 2)
    last = f"l{count - 1}"

    def places(q):
        origins = [robot.pose(f"l{i}", q)[:3, 3] for i in range(count)]
        return np.array([*origins, mk.spatial.apply(robot.pose(last, q), end)])

    target, p = places(q_goal)[-1], places(q)
    d = np.linalg.norm(np.diff(p, axis=0), axis=1)
    seen = []
    mk.solve(
        robot, mk.PositionGoal(last, target, end, **EXACT), q0=q, solver="fabrik", max_iterations=8, restarts=0,
        callback=lambda now: seen.append(now.q),
    )  # fmt: skip
    for q_solver in seen:
        base, p[-1] = p[0].copy(), target
        for i in reversed(range(count)):
            share = d[i] / np.linalg.norm(p[i + 1] - p[i])
            p[i] = (1 - share) * p[i + 1] + share * p[i]
        p[0] = base
        for i in range(count):
            share = d[i] / np.linalg.norm(p[i + 1] - p[i])
            p[i + 1] = (1 - share) * p[i] + share * p[i + 1]
        np.testing.assert_allclose(places(q_solver), p, atol=1e-9, rtol=0)


@pytest.mark.parametrize("count", [3, 4, 6, 10, 18, 30])
def test_chains_of_spherical_joints_reach_every_point_in_reach(count):
    robot = mk.Builder("chain")
    for i in range(count):
        robot.spherical(
            f"j{i}", "world" if i == 0 else f"l{i - 1}", f"l{i}", at=(0.0, 0.0, 0.0 if i == 0 else 1 / count)
        )
    chain, tip = robot.build(), (0.0, 0.0, 1 / count)
    rng = np.random.default_rng(count)
    solver = mk.Solver(chain, mk.PositionGoal(f"l{count - 1}", tip, tip, tolerance=1e-4), solver="fabrik")
    for _ in range(200):
        q_goal, q = chain.random(rng, 2)
        solution = solver.solve(mk.spatial.apply(chain.pose(f"l{count - 1}", q_goal), np.array(tip)), q)
        assert solution.success


@pytest.mark.parametrize(
    ("name", "link", "share"),
    # of 100 points in reach, from random starts, to 1e-4 m, in one attempt
    [("zalo5", "effector", 0.95), ("panda", "panda_hand_tcp", 0.85), ("ur5", "tool0", 0.9), ("grippy10", "seg10", 1.0)],
)
def test_arms_of_revolute_joints_reach_most_points_within_their_limits(name, link, share):
    arm = mk.gallery.make(name)
    rng = np.random.default_rng(7)
    solver = mk.Solver(arm, mk.PositionGoal(link, (0, 0, 0), tolerance=1e-4), solver="fabrik")
    solved = 0
    for _ in range(100):
        q_goal, q = arm.random(rng, 2)
        solution = solver.solve(arm.pose(link, q_goal)[:3, 3], q, callback=lambda now: assert_within_limits(arm, now.q))
        solved += solution.success
    assert solved >= share * 100


def assert_within_limits(arm, q):
    assert arm.space.within_limits(q).all()


def test_two_arms_of_spherical_joints_on_one_spine_reach_two_points():
    rng = np.random.default_rng(3)
    bones, tips = tree(rng, 10, kinds=("ball",))
    robot = mechanism(bones)
    for _ in range(30):
        q_goal, q = robot.random(rng, 2)
        goals = [mk.PositionGoal(f"l{k}", robot.pose(f"l{k}", q_goal)[:3, 3], tolerance=1e-4) for k in tips]
        assert mk.solve(robot, goals, q0=q, solver="fabrik", restarts=0).success


def test_two_collinear_points_leave_the_twist_of_a_spherical_joint_unchanged():
    robot = mk.Builder("one ball")
    robot.spherical("joint", "world", "bone")
    arm = robot.build()
    R = rotation.about_x(0.7)
    goals = [mk.PositionGoal("bone", R @ (0, 0, z), (0, 0, z), tolerance=1e-9) for z in (1.0, 2.0)]
    solution = mk.solve(arm, goals, solver="fabrik", restarts=0)
    assert solution.success
    np.testing.assert_allclose(arm.pose("bone", solution.q)[:3, :3], R, atol=1e-4)


def test_a_link_in_the_opposite_direction_is_rotated_by_half_a_turn():
    robot = mk.Builder("one ball")
    robot.spherical("joint", "world", "bone")
    arm = robot.build()
    for end in (*np.eye(3), np.array([0.3, -0.2, 0.9])):
        assert mk.solve(arm, mk.PositionGoal("bone", -end, end, tolerance=1e-9), solver="fabrik").iterations == 1


def test_out_of_reach_a_chain_of_spherical_joints_points_at_the_target():
    robot = mk.Builder("chain")
    for i in range(4):
        robot.spherical(f"j{i}", "world" if i == 0 else f"l{i - 1}", f"l{i}", at=(0.0, 0.0, 0.0 if i == 0 else 0.5))
    chain, target = robot.build(), np.array([3.0, 1.0, 2.0])
    solution = mk.solve(
        chain, mk.PositionGoal("l3", target, (0, 0, 0.5)), q0=chain.random(np.random.default_rng(0)), solver="fabrik",
        max_iterations=2000, restarts=0,
    )  # fmt: skip
    assert not solution.success
    reached = mk.spatial.apply(chain.pose("l3", solution.q), np.array([0, 0, 0.5]))
    np.testing.assert_allclose(reached, 2.0 * target / np.linalg.norm(target), atol=1e-5)


def test_locked_joints_stay_and_goals_of_larger_weight_dominate():
    arm = mk.gallery.planar_3r()
    q0 = arm.q
    goal = mk.PositionGoal("tool", (1.2, 0.9, 0.0))
    always, now = mk.Solver(arm, goal, solver="fabrik", lock="joint2"), mk.Solver(arm, goal, solver="fabrik")
    for solution in (always.solve(), now.solve(lock="joint2")):
        assert solution.success
        assert solution.q[1] == q0[1]
    assert now.solve().q[1] != q0[1]
    errors = []
    for weight in (0.1, 1.0, 10.0):
        goals = [
            mk.PositionGoal("tool", (1.5, 1.0, 0), weight=weight),
            mk.PositionGoal("tool", (1.0, 1.5, 0), name="other"),
        ]
        errors.append(goals[0].error(arm, mk.solve(arm, goals, solver="fabrik", restarts=0).q).position)
    assert errors[0] > errors[1] > errors[2]


def test_unsupported_problems_are_rejected_with_a_method_that_supports_them():
    panda, hand = mk.gallery.panda(), "panda_hand_tcp"
    point = mk.PositionGoal(hand, (0.4, 0.1, 0.5))
    refused = {
        "positions and full poses": [mk.AxisGoal(hand, (0, 0, -1))],
        "supports only positions": [mk.OnPlane(hand, (0, 0, 0.4), (0, 0, 1))],
        "moves with a joint": [mk.PositionGoal("panda_link3", (0.1, 0, 0), relative_to=hand)],
        "does not support priority levels": [point, mk.PositionGoal("panda_link4", (0, 0.2, 0.5), level=2)],
        "does not support soft objectives": [point, mk.RestPose(panda.q)],
    }
    for words, goals in refused.items():
        with pytest.raises(InvalidOperation, match=f"(?s)FABRIK.*{words}.*solver='lm"):
            mk.Solver(panda, goals, solver="fabrik")
    with pytest.raises(InvalidOperation, match="does not support closed loops"):
        mk.Solver(mk.gallery.four_bar(), mk.PositionGoal("coupler", (0.5, 0.5, 0)), solver="fabrik")
    with pytest.raises(LimitsError, match="look_ahead"):
        mk.Solver(panda, point, solver="fabrik", look_ahead=-1)


def test_coupled_joints_are_rejected():
    robot = mk.Builder("coupled")
    robot.revolute("one", "world", "a", axis="z")
    robot.revolute("two", "a", "b", at=(1, 0, 0), axis="z")
    robot.couple("two", "one", ratio=0.5)
    with pytest.raises(InvalidOperation, match="coupled"):
        mk.Solver(robot.build(), mk.PositionGoal("b", (1, 1, 0), (1, 0, 0)), solver="fabrik")


def test_a_target_on_the_parent_of_the_whole_chain_is_fixed_for_it():
    panda, hand = mk.gallery.panda(), "panda_hand_tcp"
    X_third_hand = np.linalg.inv(panda.pose("panda_link3")) @ panda.pose(hand)
    q0 = panda.q + 0.1
    solution = mk.Solver(
        panda, mk.PositionGoal(hand, X_third_hand[:3, 3], relative_to="panda_link3"), solver="fabrik"
    ).solve(q0=q0)
    assert solution.success
    apart = (np.linalg.inv(panda.pose("panda_link3", solution.q)) @ panda.pose(hand, solution.q))[:3, 3] - X_third_hand[
        :3, 3
    ]
    assert np.abs(apart).max() < 1e-5
    assert (solution.q[:3] == q0[:3]).all()
