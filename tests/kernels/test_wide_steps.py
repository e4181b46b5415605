"""Steps of long arms, from a matrix as small as the rows are few, against the large matrix and against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import mechanik as mk
from mechanik.kernels import problem_layout as problem
from mechanik.kernels.problem_layout import BLOCK_INTS, CHAIN_BLOCK, STAGE_INTS, USES_DUAL_FORM
from mechanik.kernels.state_layout import CURRENT_BUFFER
from mechanik.spatial import make_pose, rotation

TOOL = "tool"


def snake(joints, limits=(-2.0, 2.0)):
    """An arm of 1 m with joints about z, y, y, z, y, y and so on, and a configuration in which it is bent."""
    arm = mk.arm_3d([1.0 / joints] * joints, ("zyy" * joints)[:joints], limits=limits)
    i = np.arange(joints)
    q = np.where(i % 3 == 0, 0.6 * np.sin(7.0 * i), 3.5 * (1 + 0.3 * np.sin(i))) / joints
    return arm, q


def gantry(slides):
    """Sliding joints in all directions, one on the other: its rows are linear in q."""
    builder, rng = mk.Builder("gantry"), np.random.default_rng(1)
    for k in range(slides):
        builder.prismatic(f"slide{k}", f"link{k}", f"link{k + 1}", axis=rng.normal(size=3), limits=(-1.0, 1.0))
    return builder.build()


def moved(arm, q, shift=(0.05, -0.04, 0.03), turn=0.2):
    X = arm.pose(TOOL, q)
    return make_pose(X[:3, :3] @ rotation.about_x(turn), X[:3, 3] + shift)


def table(solver):
    return solver._problem.subproblems[0].packed.tables


def is_wide(solver):
    return table(solver)["stages"].reshape(-1, STAGE_INTS)[:, USES_DUAL_FORM].tolist()


def make_narrow(solver):
    """The same solver by the large matrix."""
    stages = table(solver)["stages"].reshape(-1, STAGE_INTS)
    stages[:, USES_DUAL_FORM], stages[:, CHAIN_BLOCK] = 0, -1
    return solver


def first_step(solver, q, **options):
    """The first damped step from q over the columns, (c,)."""
    solver.solve(q0=q, max_iterations=1, kick=0.0, **options)
    return table(solver)["step"].copy()


def rows_at(solver, q):
    """Weighted rows and their Jacobian over the columns, as the kernel has them at q; columns in their own order."""
    solver.solve(q0=q, max_iterations=0, kick=0.0)
    at, sizes = table(solver), solver._problem.subproblems[0].packed.sizes
    buffer = int(at["state"][CURRENT_BUFFER])
    E = at["residual"][buffer * sizes["rows"] :][: sizes["rows"]].copy()
    J = np.zeros((sizes["rows"], sizes["columns"]))
    for block in at["blocks"].reshape(-1, BLOCK_INTS):
        height, width, row, first, j = (
            int(block[k])
            for k in (
                problem.ROW_COUNT,
                problem.COLUMN_COUNT,
                problem.FIRST_ROW,
                problem.FIRST_COLUMN,
                problem.FIRST_JACOBIAN,
            )
        )
        inside = at["jacobian"][buffer * sizes["jacobian"] + j :][: height * width].reshape(height, width)
        J[row : row + height, at["block_columns"][first : first + width]] = inside
    return E, J


def least_squares(E, J, damping, fixed=()):
    """|E + J s|^2 + damping |s|^2 at its smallest, by plain NumPy; some of s are given, as (column, value)."""
    s, free = np.zeros(J.shape[1]), np.ones(J.shape[1], dtype=bool)
    for column, value in fixed:
        s[column], free[column] = value, False
    A = np.vstack([J[:, free], np.sqrt(damping) * np.eye(free.sum())])
    s[free] = np.linalg.lstsq(A, -np.concatenate([E + J @ s, np.zeros(free.sum())]), rcond=None)[0]
    return s


def goal_of(kind, arm, q):
    X = moved(arm, q)
    return mk.PositionGoal(TOOL, X[:3, 3]) if kind == "point" else mk.PoseGoal(TOOL, X)


# ---- without limits in the way --------------------------------------------------------------


@pytest.mark.parametrize("svd", [False, True], ids=["Cholesky", "svd"])
@pytest.mark.parametrize("damping", [1e-5, 1e-2, 1.0])
@pytest.mark.parametrize("kind", ["point", "pose"])
@pytest.mark.parametrize("joints", [12, 40, 100])
def test_the_wide_step_is_that_of_plain_numpy_and_of_the_large_matrix(joints, kind, damping, svd):
    arm, q = snake(joints)
    rng = np.random.default_rng(joints)
    weights = {f"joint{k + 1}": float(rng.uniform(0.3, 3)) for k in range(joints)}
    solver = mk.Solver(arm, goal_of(kind, arm, q), weights=weights, damping=damping, svd=svd)
    assert is_wide(solver) == [0, 1]
    wide = first_step(solver, q)
    np.testing.assert_allclose(wide, least_squares(*rows_at(solver, q), damping), rtol=0, atol=1e-9)
    narrow = first_step(make_narrow(solver), q)
    np.testing.assert_allclose(wide, narrow, rtol=0, atol=1e-9)
    assert np.abs(wide).max() > 1e-4


@pytest.mark.parametrize("joints", [40, 100])
def test_rows_that_know_one_joint_only_are_on_the_diagonal(joints):
    """A goal and a rest pose that pull at the same level."""
    arm, q = snake(joints, None)
    some = {f"joint{k + 1}": 0.1 * k for k in range(0, joints, 3)}
    wishes = [goal_of("pose", arm, q), mk.JointValues(some, angle_mode="exact", weight=0.3)]
    solver = mk.Solver(arm, wishes, damping=1e-3)
    assert is_wide(solver) == [0, 1]
    wide = first_step(solver, q)
    np.testing.assert_allclose(wide, least_squares(*rows_at(solver, q), 1e-3), rtol=0, atol=1e-9)


# ---- on the limits --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["point", "pose"])
@pytest.mark.parametrize("joints", [12, 40, 100])
def test_on_limits_too(joints, kind, seed):
    rng = np.random.default_rng(seed)
    arm, q = snake(joints)
    target = goal_of(kind, arm, q)
    near = rng.integers(0, 2, (2, joints))
    room = np.where(near, rng.uniform(0.0, 0.02, (2, joints)) * 12 / joints, 0.5)
    limits = {f"joint{k + 1}": (q[k] - room[0, k], q[k] + room[1, k]) for k in range(joints)}
    solver = mk.Solver(arm, target, limits=limits, damping=1e-3)
    wide = first_step(solver, q)
    assert (wide >= -room[0] - 1e-12).all()
    assert (wide <= room[1] + 1e-12).all()
    on_lower, on_upper = wide < -room[0] + 1e-12, wide > room[1] - 1e-12
    assert joints / 8 < (on_lower | on_upper).sum() < joints
    fixed = [(k, wide[k]) for k in np.flatnonzero(on_lower | on_upper)]
    E, J = rows_at(solver, q)
    np.testing.assert_allclose(wide, least_squares(E, J, 1e-3, fixed), rtol=0, atol=1e-9)
    narrow = first_step(make_narrow(solver), q)
    np.testing.assert_allclose(wide, narrow, rtol=0, atol=1e-9)


def test_locked_joints_stay():
    arm, q = snake(40)
    solver = mk.Solver(arm, goal_of("pose", arm, q), damping=1e-3)
    locked = [f"joint{k}" for k in range(3, 30, 2)]
    wide = first_step(solver, q, lock=locked)
    fixed = [(k - 1, 0.0) for k in range(3, 30, 2)]
    np.testing.assert_allclose(wide, least_squares(*rows_at(solver, q), 1e-3, fixed), rtol=0, atol=1e-9)


# ---- below what is hard ---------------------------------------------------------------------


@pytest.mark.parametrize("slides", [12, 60])
def test_a_rest_pose_below_a_goal_is_that_of_plain_numpy(slides):
    """Rows that are linear: one step, with the goal held, ends where the linear model says."""
    arm = gantry(slides)
    rng = np.random.default_rng(slides)
    q, rest = rng.uniform(-0.3, 0.3, (2, slides))
    tool = f"link{slides}"
    solver = mk.Solver(arm, mk.PositionGoal(tool, arm.pose(tool, q)[:3, 3]), rest=rest, damping=1e-2)
    assert is_wide(solver) == [0, 1, 1]
    E, J = rows_at(solver, q)
    hard, soft = J[:3], J[3:]
    null = np.linalg.svd(hard)[2][3:].T
    s = null @ least_squares(E[3:], soft @ null, 1e-2)
    scale = table(solver)["scale"]
    found = solver.solve(q0=q, max_iterations=1, kick=0.0).q
    np.testing.assert_allclose(found, q + scale * s, rtol=0, atol=1e-9)


@pytest.mark.parametrize("limits", [(-2.0, 2.0), (-0.3, 0.3)])
@pytest.mark.parametrize("joints", [40, 100])
def test_a_rest_pose_below_a_goal_is_that_of_the_large_matrix(joints, limits):
    arm, q = snake(joints, limits)
    rest = np.clip(q + 0.3 * np.sin(5.0 * np.arange(joints)), *limits)
    solver = mk.Solver(arm, mk.PoseGoal(TOOL, arm.pose(TOOL, q)), rest=rest)
    wide = solver.solve(q0=q, max_iterations=1, kick=0.0)
    assert wide.success
    assert np.linalg.norm(wide.q - rest) < np.linalg.norm(q - rest)
    narrow = make_narrow(solver).solve(q0=q, max_iterations=1, kick=0.0)
    np.testing.assert_allclose(wide.q, narrow.q, rtol=0, atol=1e-9)


# ---- second derivatives ---------------------------------------------------------------------


def chain_matrix(solver):
    """The second derivatives that the kernel keeps of a chain, as a matrix over the columns."""
    at = table(solver)
    u, v = at["chain"].reshape(-1, 12)[:, :6], at["chain"].reshape(-1, 12)[:, 6:]
    upper = np.triu(u @ v.T)
    return upper + np.triu(upper, 1).T


@pytest.mark.parametrize("kind", ["point", "pose"])
@pytest.mark.parametrize("joints", [12, 100])
def test_the_second_derivatives_of_a_chain_are_those_of_differences(joints, kind):
    arm, q = snake(joints, None)
    X = make_pose(rotation.about_x(2.0) @ rotation.about_z(1.0), np.array([0.7, 0.8, 0.9]))
    solver = mk.Solver(arm, mk.PositionGoal(TOOL, X[:3, 3]) if kind == "point" else mk.PoseGoal(TOOL, X), kick=0.0)
    solution = solver.solve(q0=q)
    assert solution.status is mk.Status.CLOSEST
    mine, h = chain_matrix(solver), 1e-5
    for k in range(0, joints, 5):
        step = h * np.eye(joints)[k]
        gradients = [J.T @ E for E, J in (rows_at(solver, solution.q + step), rows_at(solver, solution.q - step))]
        np.testing.assert_allclose(mine[k], (gradients[0] - gradients[1]) / (2 * h), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["point", "pose"])
@pytest.mark.parametrize("stiff", [0, 3, 15], ids=["free", "some on their limits", "many on their limits"])
def test_a_chain_is_solved_as_its_matrix_is(kind, stiff):
    arm, q = snake(60, None)
    near = np.linspace(3, 55, stiff).astype(int)
    limits = {f"joint{k + 1}": (q[k] - 0.01, q[k] + 0.01) for k in near}
    X = make_pose(rotation.about_x(0.5), np.array([0.7, 0.8, 0.9]))
    goal = mk.PositionGoal(TOOL, X[:3, 3]) if kind == "point" else mk.PoseGoal(TOOL, X)
    solver, solved = mk.Solver(arm, goal, kick=0.0, limits=limits), 0
    for iterations in range(6, 24):
        solver.solve(q0=q, max_iterations=iterations)
        at = table(solver)
        H, s, g, x = chain_matrix(solver) + np.diag(at["diagonal"]), at["step"], at["gradient"], at["trial"]
        free = np.ones(60, dtype=bool)
        free[near] = abs(abs(x[near] - q[near]) - 0.01) > 1e-9
        if at["chain"].any() and np.linalg.eigvalsh(H[np.ix_(free, free)])[0] > 0.0:
            expected = s.copy()
            expected[free] = np.linalg.solve(H[np.ix_(free, free)], g[free] - H[np.ix_(free, ~free)] @ s[~free])
            np.testing.assert_allclose(s, expected, rtol=1e-7, atol=1e-9)
            solved += 1
    assert solved > 2
