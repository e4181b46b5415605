"""Targets and starts of a batch: any shape of a single solve with one more axis, and bad rows."""

from __future__ import annotations

import numpy as np
import pytest
from batch_backends import solve_batch

import mechanik as mk
from mechanik.errors import InvalidArgument, NotFinite, ShapeError, UnknownName
from mechanik.solver.solution import Status
from mechanik.spatial import to_position_wxyz

RNG = np.random.default_rng(5)
ARM = mk.gallery.ur5()
START = np.array([0.3, -1.2, 1.4, -0.8, 0.9, 0.2])
Q = START + RNG.uniform(-0.3, 0.3, (9, 6))
X = ARM.pose("tool0", Q)
POSE = mk.Solver(ARM, mk.PoseGoal("tool0", X[0]))
POINT = mk.Solver(ARM, mk.PositionGoal("tool0", X[0, :3, 3]))


def same(result, other_result) -> bool:
    return all(np.array_equal(getattr(result, name), getattr(other_result, name), equal_nan=True) for name in NAMES)


NAMES = ("q", "status", "errors", "iterations")


def test_poses_and_positions_with_quaternions_are_the_same_targets():
    p, wxyz = to_position_wxyz(X)
    result = solve_batch(POSE, np.concatenate([p, wxyz], axis=1), START)
    assert result.success.all()
    assert np.abs(ARM.pose("tool0", result.q) - X).max() < 1e-5
    assert np.abs(result.q - solve_batch(POSE, X, START).q).max() < 1e-9


def test_a_pose_goal_given_points_keeps_its_rotation():
    result = solve_batch(POSE, X[:, :3, 3], START).require()
    ends = ARM.pose("tool0", result.q)
    assert np.abs(ends[:, :3, 3] - X[:, :3, 3]).max() < 2e-6
    assert np.abs(ends[:, :3, :3] - X[0, :3, :3]).max() < 2e-6


def test_points_are_targets_of_a_position_goal():
    assert (
        np.abs(ARM.pose("tool0", solve_batch(POINT, X[:, :3, 3], START).require().q)[:, :3, 3] - X[:, :3, 3]).max()
        < 2e-6
    )


@pytest.mark.parametrize("kind", ["list", "poses", "float32", "read-only", "gaps", "Fortran", "backwards", "file"])
def test_any_array_or_list_of_poses_is_accepted(kind, tmp_path):
    wide = np.repeat(X, 2, axis=0)
    if kind == "file":
        np.save(tmp_path / "X.npy", X)
    given = {
        "list": lambda: X.tolist(),
        "poses": lambda: [mk.Pose.from_matrix(matrix) for matrix in X],
        "float32": lambda: X.astype(np.float32),
        "read-only": lambda: np.broadcast_to(X, X.shape),
        "gaps": lambda: wide[::2],
        "Fortran": lambda: np.asfortranarray(X),
        "backwards": lambda: X[::-1].copy()[::-1],
        "file": lambda: np.load(tmp_path / "X.npy", mmap_mode="r"),
    }[kind]()
    result = solve_batch(POSE, given, START, chunk=4)
    if kind in ("float32", "poses"):
        assert result.success.all()
        assert np.abs(ARM.pose("tool0", result.q) - X).max() < 2e-6
    else:
        assert same(result, solve_batch(POSE, X, START))


@pytest.mark.parametrize(
    ("objective", "targets"),
    [
        (mk.AxisGoal("tool0", (0, 0, 1), (1, 0, 0)), RNG.standard_normal((4, 3))),
        (mk.OrientationGoal("tool0", np.eye(3)), X[:4, :3, :3]),
        (mk.OrientationGoal("tool0", np.eye(3)), to_position_wxyz(X)[1][:4]),
        (mk.Distance("tool0", "base_link", equal=0.5), np.array([0.4, 0.5, 0.6, 0.7])),
        (mk.JointValues({"elbow_joint": 0.1}), np.array([0.1, 0.2, 0.3, -0.4])),
        (mk.JointValues({"elbow_joint": 0.1, "wrist_1_joint": 0.2}), RNG.uniform(-1, 1, (4, 2))),
        (mk.JointValues({"elbow_joint": 0.1, "wrist_1_joint": 0.2}), {"wrist_1_joint": np.linspace(0, 1, 4)}),
        (mk.JointValues({"elbow_joint": 0.1}), [{"elbow_joint": value} for value in (0.1, 0.2, 0.3, 0.4)]),
        (mk.RestPose(np.zeros(6)), RNG.uniform(-1, 1, (4, 6))),
        (mk.LookAt("tool0", (1, 1, 1)), RNG.uniform(1, 2, (4, 3))),
    ],
    ids=lambda objective: type(objective).__name__,
)
def test_every_objective_takes_a_batch_of_its_targets(objective, targets):
    solver = mk.Solver(ARM, objective)
    result = solve_batch(solver, targets, START)
    assert result.success.all()
    for i in range(4):
        row = {name: values[i] for name, values in targets.items()} if isinstance(targets, dict) else targets[i]
        if isinstance(objective, mk.JointValues) and len(objective.values) > 1 and not isinstance(row, dict):
            row = dict(zip(objective.values, row, strict=True))
        solution = solver.solve(row, START)
        assert np.array_equal(solution.q, result.q[i])
        error = next(iter(solution.errors.values()))
        assert result.errors[i, 0].tolist() == [error.position, error.rotation]


@pytest.mark.parametrize("goal", [mk.PoseGoal("tool0", X[0], at=X[3]), mk.PositionGoal("tool0", X[0, :3, 3], (0.1,
    0.2, 0.3)),
                                  mk.PoseGoal("tool0", np.eye(4), relative_to="forearm_link")])  # fmt: skip
def test_the_errors_of_rows_equal_those_of_the_objective(goal):
    targets = X if isinstance(goal, mk.PoseGoal) else X[:, :3, 3]
    result = solve_batch(mk.Solver(ARM, goal, max_iterations=2), targets, START)
    for i in range(len(X)):
        error = goal.with_target(targets[i]).error(ARM, result.q[i])
        assert result.errors[i, 0] == pytest.approx([error.position, error.rotation], rel=1e-12, abs=1e-14)


def test_targets_of_several_goals_by_name_or_in_order_with_fixed_targets():
    goals = [
        mk.PositionGoal("tool0", X[0, :3, 3], name="hand"),
        mk.JointValues({"shoulder_pan_joint": 0.3}, name="base"),
    ]
    solver = mk.Solver(ARM, goals)
    ordered = solve_batch(solver, [X[:, :3, 3], None], START)
    assert same(ordered, solve_batch(solver, {"hand": X[:, :3, 3]}, START))
    assert same(ordered, solve_batch(solver, (X[:, :3, 3], np.full(9, 0.3)), START))
    assert ordered.objectives == ("hand", "base")
    assert ordered.errors.shape == (9, 2, 2)
    solution = solver.solve({"hand": X[4, :3, 3]}, START)
    assert np.array_equal(solution.q, ordered.q[4])


def test_without_targets_each_start_is_a_row():
    result = solve_batch(POSE, None, Q)
    assert len(result) == 9
    assert np.abs(ARM.pose("tool0", result.q[result.success]) - X[0]).max() < 1e-5
    assert all(np.array_equal(POSE.solve(q0=q).q, row) for q, row in zip(Q, result.q, strict=True))


def bad_poses() -> dict[str, np.ndarray]:
    bad = {name: X[1].copy() for name in ("nan", "inf", "stretched", "mirrored", "no rotation", "last row")}
    bad["nan"][0, 3] = np.nan
    bad["inf"][1, 1] = np.inf
    bad["stretched"][:3, 0] *= 1 + 2e-6
    bad["mirrored"][:3, 0] *= -1
    bad["no rotation"][:3, :3] = 0.0
    bad["last row"][3, 0] = 0.1
    return bad


@pytest.mark.parametrize("name", bad_poses())
def test_an_invalid_pose_is_a_bad_row_and_changes_no_other_row(name):
    targets = X.copy()
    targets[4] = bad_poses()[name]
    result, clean = solve_batch(POSE, targets, START), solve_batch(POSE, X, START)
    assert result.status_of(4) is Status.BAD_TARGET
    assert np.array_equal(result.q[4], START)
    assert np.isnan(result.errors[4]).all()
    others = np.arange(9) != 4
    assert all(np.array_equal(getattr(result, name)[others], getattr(clean, name)[others]) for name in NAMES)


@pytest.mark.parametrize("wxyz", [(0, 0, 0, 0), (np.nan, 0, 0, 1), (2, 0, 0, 0), (1e-200, 0, 0, 0)])
def test_an_invalid_quaternion_is_a_bad_row(wxyz):
    rows = np.concatenate(to_position_wxyz(X), axis=1)
    rows[2, 3:] = wxyz
    assert np.flatnonzero(~solve_batch(POSE, rows, START).success).tolist() == [2]
    assert solve_batch(POSE, rows, START).status_of(2) is Status.BAD_TARGET


def test_a_target_that_the_objective_rejects_is_a_bad_row():
    result = solve_batch(mk.Solver(ARM, mk.Distance("tool0", "base_link", equal=0.5)), [0.4, -1.0, 0.5], START)
    assert [result.status_of(i) for i in range(3)] == [Status.CONVERGED, Status.BAD_TARGET, Status.CONVERGED]
    result = solve_batch(mk.Solver(ARM, mk.AxisGoal("tool0", (0, 0, 1), (1, 0, 0))), [(0, 0, 0), (0, 1, 0)], START)
    assert [result.status_of(i) for i in range(2)] == [Status.BAD_TARGET, Status.CONVERGED]


def test_a_bad_start_is_a_bad_row_at_the_current_configuration():
    starts = Q.copy()
    starts[3, 2] = np.nan
    result, clean = solve_batch(POSE, X, starts), solve_batch(POSE, X, Q)
    assert result.status_of(3) is Status.BAD_START
    assert np.array_equal(result.q[3], ARM.q)
    others = np.arange(9) != 3
    assert all(np.array_equal(getattr(result, name)[others], getattr(clean, name)[others]) for name in NAMES)


def test_a_zero_quaternion_is_a_bad_start():
    robot = mk.Builder("ball")
    robot.spherical("shoulder", "base", "arm")
    robot.fixed("mount", "arm", "tip", at=(1.0, 0.0, 0.0))
    mechanism = robot.build()
    starts = np.tile(mechanism.neutral(), (3, 1))
    starts[1] = 0.0
    result = solve_batch(
        mk.Solver(mechanism, mk.PositionGoal("tip", (0, 1, 0))), np.tile([0.0, 0.6, 0.8], (3, 1)), starts
    )
    assert [result.status_of(i) for i in range(3)] == [Status.CONVERGED, Status.BAD_START, Status.CONVERGED]


@pytest.mark.parametrize("targets", [[], np.zeros((0, 4, 4)), np.zeros((0, 7)), np.zeros((0, 3))])
def test_an_empty_list_of_targets_gives_an_empty_result(targets, tmp_path):
    for out in (None, tmp_path / "out"):
        result = solve_batch(POSE, targets, out=out)
        assert len(result) == result.done == 0
        assert result.q.shape == (0, 6)
        assert result.errors.shape == (0, 1, 2)
        assert result.is_finished
        assert "0 of 0 rows" in result.summary()


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (X[0], r"\(N, 4, 4\), \(N, 7\) as position and wxyz or \(N, 3\), not an array of shape \(4, 4\).*single"),
        (np.zeros((5, 6)), r"not an array of shape \(5, 6\)"),
        (np.zeros(3), r"shape \(3,\)"),
        (1.0, "single number"),
        (X.astype(complex), "complex"),
        (np.array(["a"]), "real numbers"),
        (None, "needs targets, or a start for each row"),
    ],
)
def test_a_wrong_shape_is_rejected_with_the_valid_shapes(targets, words):
    with pytest.raises(ShapeError, match=words):
        solve_batch(POSE, targets)


def test_mismatched_arguments_are_rejected():
    with pytest.raises(ShapeError, match="9 targets and 8 starts"):
        solve_batch(POSE, X, Q[:8])
    with pytest.raises(ShapeError, match=r"q0 must be \(6,\), or \(N, 6\)"):
        solve_batch(POSE, X, Q[:, :5])
    with pytest.raises(NotFinite, match="q is not finite at 'shoulder_pan_joint'"):
        solve_batch(POSE, X, np.array([np.nan, 0, 0, 0, 0, 0]))
    with pytest.raises(InvalidArgument, match="not text"):
        solve_batch(POSE, "targets.npy")
    with pytest.raises(UnknownName, match="no objective is called 'hnd'"):
        solve_batch(mk.Solver(ARM, mk.PositionGoal("tool0", (0, 0, 1), name="hand")), {"hnd": X[:, :3, 3]})
    two = mk.Solver(ARM, [mk.PositionGoal("tool0", (0, 0, 1)), mk.JointValues({"elbow_joint": 0.0})])
    with pytest.raises(ShapeError, match="2 objectives: give as many"):
        solve_batch(two, X)
    with pytest.raises(ShapeError, match="same number of targets, but they have 9, 4"):
        solve_batch(two, [X[:, :3, 3], np.zeros(4)])
    with pytest.raises(ShapeError, match=r"\(N, 6\)"):
        solve_batch(mk.Solver(ARM, mk.RestPose(np.zeros(6))), np.zeros((3, 5)))
    with pytest.raises(ShapeError, match=r"\(N, 1\), in the order elbow_joint"):
        solve_batch(mk.Solver(ARM, mk.JointValues({"elbow_joint": 0.0})), np.zeros((3, 2)))
    with pytest.raises(UnknownName, match="no value of JointValues is called 'elbow'"):
        solve_batch(mk.Solver(ARM, mk.JointValues({"elbow_joint": 0.0})), {"elbow": np.zeros(3)})


def test_targets_are_not_modified():
    given, before = X.copy(), X.copy()
    solve_batch(POSE, given, Q)
    assert np.array_equal(given, before)


@pytest.mark.parametrize("count", [3, 4, 7])
def test_joint_values_are_not_taken_for_quaternions_or_poses(count):
    """Four joint values were read as a quaternion and seven as a pose, so no row of such an arm was solved."""
    arm = mk.arm_2d([1.0] * count)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (5, count))
    by_name = mk.Solver(arm, mk.JointValues(dict.fromkeys(arm.space.q_names, 0.0))).solve_batch(q)
    assert by_name.success.all()
    np.testing.assert_allclose(by_name.q, q, atol=1e-6)
    assert mk.Solver(arm, mk.RestPose(np.zeros(count))).solve_batch(q).success.all()
