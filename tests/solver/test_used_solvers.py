"""Calls of one solver in an order that once changed their answers, each compared with a fresh solver."""

from __future__ import annotations

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import (
    BatchMismatch,
    InvalidArgument,
    LimitsError,
    MechanikError,
    NotARotation,
    ObjectiveError,
    ShapeError,
)
from mechanik.model import ShapeInstance
from mechanik.spatial import quaternion


def same(solution, expected):
    np.testing.assert_array_equal(solution.q, expected.q)
    for name in ("status", "iterations", "attempts"):
        assert getattr(solution, name) == getattr(expected, name)


def test_an_accepted_solution_of_a_restart_replaces_a_rejected_one():
    """The first solution, which `feasible` had rejected, was kept as if it were the answer."""
    arm, rng = mk.gallery.ur5(), np.random.default_rng(0)
    q = arm.random(rng)
    X = arm.pose("tool0", q)
    for method in ("lm", "dls"):
        solver = mk.Solver(arm, mk.PoseGoal("tool0", X), solver=method)
        for rejected_count in range(1, 5):
            seen: list[np.ndarray] = []

            def feasible(q, seen=seen, rejected_count=rejected_count):
                seen.append(q)
                return len(seen) > rejected_count

            solution = solver.solve(X, q + 0.01, feasible=feasible)
            assert solution.success is (len(seen) > rejected_count)


def table_on_two_slides():
    builder = mk.Builder("table")
    builder.joint("base", "ground", "table", dof=("X", "Y"))
    builder.fixed("tip", "table", "tool", at=(0.1, 0, 0))
    return builder.build()


@pytest.mark.parametrize("tier", ["plain", "auto"])
def test_an_empty_mapping_keeps_the_values_of_a_goal(tier, monkeypatch):
    """It was read as a target of no numbers, and the kernel took the numbers that follow in memory."""
    table = table_on_two_slides()
    goal = mk.JointValues({"base": (0.1, 0.2)})
    mk.use_kernels(tier)
    try:
        solver = mk.Solver(table, goal)
        np.testing.assert_allclose(solver.solve({}, np.zeros(2)).q, [0.1, 0.2], atol=1e-6)
        two = mk.Solver(table, [mk.PositionGoal("tool", (0, 0, 0)), mk.PositionGoal("table", (0, 0, 0))])
        with pytest.raises(MechanikError):
            two.solve([{}, np.array([0.3, 0.4, 0.0])], np.zeros(2))
    finally:
        mk.use_kernels("auto")


@pytest.mark.parametrize("nearest", [False, True])
def test_dofs_that_the_first_targets_do_not_need_move_for_later_targets(nearest):
    """Which dofs have an influence was found for the targets of the first call, and kept."""
    arm = mk.gallery.panda()
    q0 = arm.q
    goal = mk.InCone("panda_hand_tcp", (0, 0, 1), (0, 0, 1), 1.0)

    def answer(solver, direction):
        if nearest:
            return solver.solve(direction, q0, nearest=True).q
        return solver.solve_all(direction, q0=q0, max_attempts=20, limit=4).q

    used = mk.Solver(arm, goal)
    answer(used, (0.0, 0.0, 1.0))
    np.testing.assert_array_equal(answer(used, (1.0, 0.0, 0.0)), answer(mk.Solver(arm, goal), (1.0, 0.0, 0.0)))


def arms_with_spheres():
    builder = mk.Builder("two arms")
    builder.link("base")
    for side, y in (("left", 0.3), ("right", -0.3)):
        parent, at = "base", (0.0, y, 0.0)
        for k in range(4):
            link = f"{side}{k}"
            shape = ShapeInstance(mk.Capsule(0.05, 0.2), mk.Pose((0.15, 0, 0), rpy=(0, np.pi / 2, 0)))
            builder.link(link, collisions=[shape])
            builder.revolute(f"{link}_joint", parent, link, at=at, axis="zyzy"[k], limits=(-2.5, 2.5))
            parent, at = link, (0.3, 0.0, 0.0)
        builder.fixed(f"{side}_tip", parent, f"{side}_hand", at=at)
    return builder.build()


def test_avoidance_sees_where_joints_outside_the_chain_are():
    """The table of collision-free starts of the first call was used although the other arm had moved."""
    robot, rng = arms_with_spheres(), np.random.default_rng(2)
    goal = mk.PositionGoal("left_hand", (0, 0, 0))
    used = mk.Solver(robot, goal, avoid="self")
    left = np.array([name.startswith("left") for name in robot.space.q_names])
    for _ in range(25):
        target = robot.pose("left_hand", robot.random(rng))[:3, 3]
        start = robot.random(rng)
        for _ in range(2):
            q0 = np.where(left, start, robot.random(rng))
            same(used.solve(target, q0), mk.Solver(robot, goal, avoid="self").solve(target, q0))


def test_tables_for_a_lock_are_not_used_without_it():
    """Targets of another structure and a locked spherical joint left tables that calls without the lock got."""
    platform = mk.gallery.stewart_platform(ends="joint")
    q = platform.q
    distance = mk.Distance("platform", equal=0.3)
    used = mk.Solver(platform, distance)
    used.solve(0.0, q, lock="leg1_ball")
    same(used.solve(0.0, q), mk.Solver(platform, distance).solve(0.0, q))


def test_equal_numbers_of_other_types_are_other_options():
    """50 and 50.0 are equal, so the second call took the prepared call of the first instead of the check."""
    four_bar = mk.gallery.four_bar()
    used = mk.Solver(four_bar, mk.JointValues({four_bar.space.q_names[0]: 1.0}))
    used.solve(1.0, four_bar.q, max_iterations=50)
    with pytest.raises(LimitsError):
        used.solve(1.0, four_bar.q, max_iterations=50.0)


def floating_torso():
    builder = mk.Builder("torso")
    builder.free("float", "world", "torso")
    builder.revolute("shoulder", "torso", "upper", at=(0, 0.2, 0), axis="z", limits=(-3, 3))
    builder.revolute("elbow", "upper", "fore", at=(0.5, 0, 0), axis="y", limits=(-3, 3))
    builder.revolute("wrist", "fore", "palm", at=(0.4, 0, 0), axis="z", limits=(-3, 3))
    builder.fixed("tip", "palm", "hand", at=(0.1, 0, 0))
    return builder.build()


def test_quaternions_outside_a_chain_are_checked_and_normalized():
    """A start with a quaternion of length 2 came back as it was, and one of length 0 was a success."""
    robot = floating_torso()
    q = robot.q
    q[-3:] = 0.4, -0.8, 0.3
    goal = mk.PositionGoal("hand", robot.pose("hand", q)[:3, 3], relative_to="torso")
    solver, q0 = mk.Solver(robot, goal), robot.q
    assert solver.chain is not None
    assert solver.solve(q0=q0).success
    k = int(robot.space.quaternions_q[0])
    wxyz = quaternion.normalize(np.array([1.0, 2.0, -0.5, 0.3]))
    q0[k : k + 4] = 2.0 * wxyz
    np.testing.assert_allclose(solver.solve(q0=q0).q[k : k + 4], wxyz, atol=1e-15)
    q0[k : k + 4] = 0.0
    with pytest.raises(NotARotation):
        solver.solve(q0=q0)


@pytest.mark.parametrize("q0", [["a", "b", "c"], [1j, 0.0, 0.0]], ids=["text", "complex"])
def test_a_start_that_is_not_real_is_rejected(q0):
    """An array of text or of complex numbers ended in a TypeError."""
    four_bar = mk.gallery.four_bar()
    start = np.resize(np.array(q0), four_bar.nq)
    solver = mk.Solver(four_bar, mk.JointValues({four_bar.space.q_names[0]: 1.0}))
    with pytest.raises(ShapeError):
        solver.solve(1.0, start)


def test_the_time_limit_holds_for_fast_functions_in_python():
    """With functions of less than 0.1 ms the search was not interrupted until it had ended."""
    goal = mk.Custom(
        lambda mechanism, q: np.sin(q) - 2.0, jacobian=lambda mechanism, q: np.diag(np.cos(q)), residual_size=2
    )
    solver = mk.Solver(mk.arm_2d([1.0, 1.0]), goal, restarts=127)
    all_iterations = solver.solve(q0=[0.1, 0.2]).iterations
    assert solver.solve(q0=[0.1, 0.2], max_seconds=1e-3).iterations < all_iterations / 4


# ---- arguments that the caller changes ----------------------------------------------------------


def test_names_of_locks_may_be_given_by_a_generator():
    """A generator was empty after the first compilation, so that locked joints moved after an edit."""
    arm = mk.arm_2d([1.0, 1.0, 1.0])
    q0 = np.array([0.3, 0.4, 0.5])
    solver = mk.Solver(arm, mk.PositionGoal("tool", (1.0, 1.0, 0.0)), lock=(name for name in ["joint1"]))
    assert solver.solve(q0=q0).q[0] == 0.3
    arm.joint("joint2").set_limits(-2.8, 2.8)
    assert solver.solve(q0=q0).q[0] == 0.3


def test_limits_and_rest_pose_are_copied():
    """They were read again at calls with limits, and after edits."""
    arm, q0 = mk.arm_2d([1.0, 1.0, 1.0]), np.array([0.3, 0.4, 0.5])
    goal, limits, rest = mk.PositionGoal("tool", (-1.0, -1.2, 0.0)), {"joint1": [0.0, 0.5]}, np.array([0.1, 0.2, 0.3])
    solver = mk.Solver(arm, goal, limits=limits, rest=rest)
    first = solver.solve(q0=q0, limits={"joint2": (-1, 1)})
    limits["joint1"][:] = -3.0, 3.0
    rest[:] = 2.0, -1.0, -1.0
    same(solver.solve(q0=q0, limits={"joint2": (-1, 1)}), first)


# ---- batches ------------------------------------------------------------------------------------


def test_a_stored_batch_is_not_resumed_for_permuted_targets(tmp_path):
    """The fingerprint was made of sums over rows and over columns, which are the same for permuted coordinates."""
    solver = mk.Solver(mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (1.0, 1.0, 0.0)))
    targets = np.array([[0.5, 1.25, 0.0], [1.25, 0.5, 0.0]])
    solver.solve_batch(targets, out=tmp_path / "batch")
    with pytest.raises(BatchMismatch):
        solver.solve_batch(targets[::-1].copy(), out=tmp_path / "batch")


def test_rows_of_a_graph_solver_do_not_depend_on_one_another():
    """Each row wrote its result to the graph, and the next row started there."""
    solver = mk.Solver(mk.arm_2d([1.0, 1.0, 1.0]).roots, mk.PositionGoal("tool", (1.0, 1.0, 0.0)))
    targets = np.array([[1.0, 1.5, 0.0], [0.5, -1.0, 0.0], [1.0, 1.5, 0.0]])
    solver.mechanism.q = q = np.array([0.3, 0.4, 0.5])
    result = solver.solve_batch(targets, threads=1)
    np.testing.assert_array_equal(result.q[0], result.q[2])
    np.testing.assert_array_equal(solver.mechanism.q, q)
    np.testing.assert_array_equal(solver.solve_batch(targets, threads=2, chunk=1).q, result.q)


def arm_with_a_sliding_plate():
    builder = mk.Builder("arm")
    for k in range(8):
        builder.link(f"link{k}", collisions=[ShapeInstance(mk.Sphere(0.05))])
    builder.link("plate", collisions=[ShapeInstance(mk.Sphere(0.08))])
    for k in range(7):
        at = (0, 0, 0.25) if k else (0, 0, 0)
        builder.revolute(f"joint{k}", f"link{k}", f"link{k + 1}", axis="zy"[k % 2], at=at, limits=(-2.8, 2.8))
    builder.fixed("tip", "link7", "tool", at=(0, 0, 0.2))
    builder.prismatic("slide", "link7", "plate", axis="x", limits=(-0.6, 0.6))
    return builder.build()


def test_batches_around_obstacles_do_not_depend_on_the_mechanism_where_q0_is_given():
    """Free configurations were computed with the joints outside the chain at the values of the mechanism."""
    arm, rng = arm_with_a_sliding_plate(), np.random.default_rng(0)
    points = [p for p in rng.uniform(-0.9, 0.9, (30, 3)) if np.linalg.norm(p) > 0.3]
    obstacles = [mk.Obstacle(mk.Sphere(0.12), tuple(p)) for p in points]
    q = arm.random(rng, 120)
    targets, q0, results = arm.pose("tool", q), q[0].copy(), []
    q0[-1] = 0.0
    for slide in (0.0, 0.5):
        present_q = arm.q
        present_q[-1] = slide
        arm.q = present_q
        solver = mk.Solver(arm, mk.PoseGoal("tool", targets[0]), avoid=obstacles)
        results.append(solver.solve_batch(targets, q0=q0, threads=1).q)
    np.testing.assert_array_equal(*results)


def test_batches_normalize_quaternions_that_the_chain_does_not_move():
    """They came back as they were."""
    robot = floating_torso()
    target = robot.pose("hand", robot.q)[:3, 3]
    solver = mk.Solver(robot, mk.PositionGoal("hand", target, relative_to="torso"))
    k = int(robot.space.quaternions_q[0])
    q0 = robot.q
    q0[k : k + 4] = 2.0, 0.0, 0.0, 0.0
    for start in (q0, np.tile(q0, (3, 1))):
        before = start.copy()
        result = solver.solve_batch(np.tile(target, (3, 1)), q0=start)
        np.testing.assert_array_equal(result.q[:, k : k + 4], np.tile([1.0, 0.0, 0.0, 0.0], (3, 1)))
        np.testing.assert_array_equal(start, before)


def test_an_empty_mapping_is_a_bad_target_of_its_row_alone():
    """The row was solved for the old target, and then the whole batch ended with an error."""
    solver = mk.Solver(mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (1.0, 1.0, 0.0)))
    result = solver.solve_batch([[1.0, 1.0, 0.0], {}])
    assert [result.status_of(row) for row in range(2)] == [mk.Status.CONVERGED, mk.Status.BAD_TARGET]


# ---- nearest solutions and arguments of other kinds ------------------------------------------------


def test_soft_objectives_do_not_move_the_nearest_solution():
    """The last descent followed the soft objective along the self-motion."""
    arm, goal = mk.arm_2d([1.0, 1.0, 1.0]), mk.PositionGoal("tool", (1.0, 1.5, 0.0))
    q0, rest = np.array([0.3, 0.4, 0.5]), mk.RestPose([2.0, -1.0, -1.0], required=False)
    nearest = mk.Solver(arm, goal).solve(q0=q0, nearest=True)
    with_rest = mk.Solver(arm, [goal, rest]).solve(q0=q0, nearest=True)
    assert with_rest.success
    np.testing.assert_allclose(with_rest.q, nearest.q, atol=1e-6)


@pytest.mark.parametrize("q0", ["abc", {"a": 1}, [[1], [1, 2]]], ids=["text", "mapping", "ragged"])
def test_a_step_checks_its_start_as_a_solve_does(q0):
    solver = mk.Solver(mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (1.0, 1.0, 0.0)))
    with pytest.raises(ShapeError):
        solver.step(q0=q0)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"limits": {"joint1": ([1, 2], 3)}}, ShapeError),
        ({"lock": np.array("a")}, InvalidArgument),
        ({"active": 5}, InvalidArgument),
        ({"avoid": "self", "allow": None}, InvalidArgument),
        ({"avoid": "self", "forbid": 5}, InvalidArgument),
        ({"clearance": np.zeros((2, 2))}, MechanikError),
        ({"avoid": "self", "avoid_as": np.zeros((2, 2))}, ObjectiveError),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_wrong_arguments_of_solvers_are_named(options, error):
    """They ended in a TypeError or ValueError of Python or NumPy."""
    with pytest.raises(error):
        mk.Solver(mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (1.0, 1.0, 0.0)), **options)
