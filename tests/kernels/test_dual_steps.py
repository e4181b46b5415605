"""Steps of long arms in dual form (a matrix over the rows), against the primal form and against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from solver_internals import discard_copies_of_tables, packed_problem, solve_in_workspace

import mechanik as mk
from mechanik.kernels.problem_layout import ChainJoint, Stage
from mechanik.kernels.tables import matrix_at
from mechanik.spatial import make_pose, rotation

TOOL = "tool"


def snake(joints, limits=(-2.0, 2.0)):
    """An arm of 1 m with joints about z, y, y, z, y, y and so on, and a bent configuration."""
    arm = mk.arm_3d([1.0 / joints] * joints, ("zyy" * joints)[:joints], limits=limits)
    i = np.arange(joints)
    q = np.where(i % 3 == 0, 0.6 * np.sin(7.0 * i), 3.5 * (1 + 0.3 * np.sin(i))) / joints
    return arm, q


def gantry(slides):
    """A chain of prismatic joints in random directions: its residuals are linear in q."""
    builder, rng = mk.Builder("gantry"), np.random.default_rng(1)
    for k in range(slides):
        builder.prismatic(f"slide{k}", f"link{k}", f"link{k + 1}", axis=rng.normal(size=3), limits=(-1.0, 1.0))
    return builder.build()


def moved(arm, q, translation=(0.05, -0.04, 0.03), angle=0.2):
    X = arm.pose(TOOL, q)
    return make_pose(X[:3, :3] @ rotation.about_x(angle), X[:3, 3] + translation)


def tables(solver):
    return packed_problem(solver).subproblems[0].packed.tables


def uses_dual_form(solver):
    return tables(solver).stages.column(Stage.uses_dual_form).tolist()


def with_primal_form(solver):
    """Switch the solver to the primal form."""
    for stage in tables(solver).stages:
        stage.uses_dual_form, stage.chain_block = False, -1
    discard_copies_of_tables(solver)
    return solver


def first_step(solver, q, **options):
    """The first damped step from q over the columns, (c,)."""
    _, (packed,) = solve_in_workspace(solver, q0=q, max_iterations=1, perturbation=0.0, restarts=0, **options)
    return packed.step.copy()


def residual_and_jacobian(solver, q):
    """The kernel's weighted residual and its Jacobian over the columns at q."""
    _, (packed,) = solve_in_workspace(solver, q0=q, max_iterations=0, perturbation=0.0, restarts=0)
    all_tables = packed.tables
    buffer = all_tables.state.current_buffer
    E = all_tables.residual[buffer].copy()
    J = np.zeros((all_tables.row_count, all_tables.column_count))
    for block in all_tables.blocks:
        rows = slice(block.first_row, block.first_row + block.row_count)
        columns = all_tables.block_columns[block.first_column : block.first_column + block.column_count]
        J[rows, columns] = matrix_at(
            all_tables.jacobian[buffer], block.first_jacobian, block.row_count, block.column_count
        )
    return E, J


def least_squares(E, J, damping, fixed=()):
    """Minimise |E + J s|^2 + damping |s|^2 by plain NumPy; `fixed` gives entries of s as (column, value)."""
    s, free = np.zeros(J.shape[1]), np.ones(J.shape[1], dtype=bool)
    for column, value in fixed:
        s[column], free[column] = value, False
    A = np.vstack([J[:, free], np.sqrt(damping) * np.eye(free.sum())])
    s[free] = np.linalg.lstsq(A, -np.concatenate([E + J @ s, np.zeros(free.sum())]), rcond=None)[0]
    return s


def goal_of(kind, arm, q):
    X = moved(arm, q)
    return mk.PositionGoal(TOOL, X[:3, 3]) if kind == "point" else mk.PoseGoal(TOOL, X)


# ---- without active limits ------------------------------------------------------------------


@pytest.mark.parametrize("svd", [False, True], ids=["Cholesky", "svd"])
@pytest.mark.parametrize("damping", [1e-5, 1e-2, 1.0])
@pytest.mark.parametrize("kind", ["point", "pose"])
@pytest.mark.parametrize("joints", [12, 40, 100])
def test_dual_step_equals_numpy_least_squares_and_the_primal_step(joints, kind, damping, svd):
    arm, q = snake(joints)
    rng = np.random.default_rng(joints)
    weights = {f"joint{k + 1}": float(rng.uniform(0.3, 3)) for k in range(joints)}
    solver = mk.Solver(arm, goal_of(kind, arm, q), weights=weights, damping=damping, svd=svd)
    assert uses_dual_form(solver) == [0, 1]
    dual = first_step(solver, q)
    np.testing.assert_allclose(dual, least_squares(*residual_and_jacobian(solver, q), damping), rtol=0, atol=1e-9)
    primal = first_step(with_primal_form(solver), q)
    np.testing.assert_allclose(dual, primal, rtol=0, atol=1e-9)
    assert np.abs(dual).max() > 1e-4


@pytest.mark.parametrize("joints", [40, 100])
def test_single_joint_rows_give_the_step_of_numpy_least_squares(joints):
    """A pose goal and joint values at the same level."""
    arm, q = snake(joints, None)
    values = {f"joint{k + 1}": 0.1 * k for k in range(0, joints, 3)}
    objectives = [goal_of("pose", arm, q), mk.JointValues(values, angle_mode="exact", weight=0.3)]
    solver = mk.Solver(arm, objectives, damping=1e-3)
    assert uses_dual_form(solver) == [0, 1]
    dual = first_step(solver, q)
    np.testing.assert_allclose(dual, least_squares(*residual_and_jacobian(solver, q), 1e-3), rtol=0, atol=1e-9)


# ---- with active limits ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["point", "pose"])
@pytest.mark.parametrize("joints", [12, 40, 100])
def test_dual_step_with_active_limits_equals_numpy_and_the_primal_step(joints, kind, seed):
    rng = np.random.default_rng(seed)
    arm, q = snake(joints)
    target = goal_of(kind, arm, q)
    is_near = rng.integers(0, 2, (2, joints))
    margin = np.where(is_near, rng.uniform(0.0, 0.02, (2, joints)) * 12 / joints, 0.5)
    limits = {f"joint{k + 1}": (q[k] - margin[0, k], q[k] + margin[1, k]) for k in range(joints)}
    solver = mk.Solver(arm, target, limits=limits, damping=1e-3)
    dual = first_step(solver, q)
    assert (dual >= -margin[0] - 1e-12).all()
    assert (dual <= margin[1] + 1e-12).all()
    on_lower, on_upper = dual < -margin[0] + 1e-12, dual > margin[1] - 1e-12
    assert joints / 8 < (on_lower | on_upper).sum() < joints
    fixed = [(k, dual[k]) for k in np.flatnonzero(on_lower | on_upper)]
    E, J = residual_and_jacobian(solver, q)
    np.testing.assert_allclose(dual, least_squares(E, J, 1e-3, fixed), rtol=0, atol=1e-9)
    primal = first_step(with_primal_form(solver), q)
    np.testing.assert_allclose(dual, primal, rtol=0, atol=1e-9)


def test_locked_joints_do_not_move():
    arm, q = snake(40)
    solver = mk.Solver(arm, goal_of("pose", arm, q), damping=1e-3)
    locked = [f"joint{k}" for k in range(3, 30, 2)]
    dual = first_step(solver, q, lock=locked)
    fixed = [(k - 1, 0.0) for k in range(3, 30, 2)]
    np.testing.assert_allclose(dual, least_squares(*residual_and_jacobian(solver, q), 1e-3, fixed), rtol=0, atol=1e-9)


# ---- with hard constraints ------------------------------------------------------------------


@pytest.mark.parametrize("slides", [12, 60])
def test_rest_pose_below_a_goal_equals_numpy_least_squares(slides):
    """The residuals are linear: one step with the goal held ends at the solution of the linear model."""
    arm = gantry(slides)
    rng = np.random.default_rng(slides)
    q, rest = rng.uniform(-0.3, 0.3, (2, slides))
    tool = f"link{slides}"
    solver = mk.Solver(arm, mk.PositionGoal(tool, arm.pose(tool, q)[:3, 3]), rest=rest, damping=1e-2)
    assert uses_dual_form(solver) == [0, 1, 1]
    E, J = residual_and_jacobian(solver, q)
    hard, soft = J[:3], J[3:]
    null = np.linalg.svd(hard)[2][3:].T
    s = null @ least_squares(E[3:], soft @ null, 1e-2)
    scale = tables(solver).scale
    q_solution = solver.solve(q0=q, max_iterations=1, perturbation=0.0).q
    np.testing.assert_allclose(q_solution, q + scale * s, rtol=0, atol=1e-9)


@pytest.mark.parametrize("limits", [(-2.0, 2.0), (-0.3, 0.3)])
@pytest.mark.parametrize("joints", [40, 100])
def test_rest_pose_below_a_goal_equals_the_primal_form(joints, limits):
    arm, q = snake(joints, limits)
    rest = np.clip(q + 0.3 * np.sin(5.0 * np.arange(joints)), *limits)
    solver = mk.Solver(arm, mk.PoseGoal(TOOL, arm.pose(TOOL, q)), rest=rest)
    dual = solver.solve(q0=q, max_iterations=1, perturbation=0.0)
    assert dual.success
    assert np.linalg.norm(dual.q - rest) < np.linalg.norm(q - rest)
    primal = with_primal_form(solver).solve(q0=q, max_iterations=1, perturbation=0.0)
    np.testing.assert_allclose(dual.q, primal.q, rtol=0, atol=1e-9)


# ---- second derivatives ---------------------------------------------------------------------


def chain_matrix(all_tables):
    """The kernel's second derivatives of a chain as a matrix over the columns."""
    u, v = all_tables.chain.column(ChainJoint.u), all_tables.chain.column(ChainJoint.v)
    upper = np.triu(u @ v.T)
    return upper + np.triu(upper, 1).T


@pytest.mark.parametrize("kind", ["point", "pose"])
@pytest.mark.parametrize("joints", [12, 100])
def test_second_derivatives_of_a_chain_equal_finite_differences(joints, kind):
    arm, q = snake(joints, None)
    X = make_pose(rotation.about_x(2.0) @ rotation.about_z(1.0), np.array([0.7, 0.8, 0.9]))
    solver = mk.Solver(
        arm, mk.PositionGoal(TOOL, X[:3, 3]) if kind == "point" else mk.PoseGoal(TOOL, X), perturbation=0.0
    )
    solution, (packed,) = solve_in_workspace(solver, q0=q, restarts=0, max_iterations=200)
    assert solution.status is mk.Status.CLOSEST
    hessian, h = chain_matrix(packed.tables), 1e-5
    for k in range(0, joints, 5):
        step = h * np.eye(joints)[k]
        gradients = [
            J.T @ E
            for E, J in (
                residual_and_jacobian(solver, solution.q + step),
                residual_and_jacobian(solver, solution.q - step),
            )
        ]
        np.testing.assert_allclose(hessian[k], (gradients[0] - gradients[1]) / (2 * h), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["point", "pose"])
@pytest.mark.parametrize("limited_joints", [0, 3, 15], ids=["free", "few at limits", "many at limits"])
def test_chain_step_solves_the_dense_system(kind, limited_joints):
    arm, q = snake(60, None)
    limited = np.linspace(3, 55, limited_joints).astype(int)
    limits = {f"joint{k + 1}": (q[k] - 0.01, q[k] + 0.01) for k in limited}
    X = make_pose(rotation.about_x(0.5), np.array([0.7, 0.8, 0.9]))
    goal = mk.PositionGoal(TOOL, X[:3, 3]) if kind == "point" else mk.PoseGoal(TOOL, X)
    solver, compared = mk.Solver(arm, goal, perturbation=0.0, limits=limits), 0
    for iterations in range(6, 24):
        _, (packed,) = solve_in_workspace(solver, q0=q, max_iterations=iterations, restarts=0)
        all_tables = packed.tables
        H, s, g, x = (
            chain_matrix(all_tables) + np.diag(all_tables.diagonal),
            all_tables.step,
            all_tables.negative_gradient,
            all_tables.trial,
        )
        free = np.ones(60, dtype=bool)
        free[limited] = abs(abs(x[limited] - q[limited]) - 0.01) > 1e-9
        if all_tables.chain.rows.any() and np.linalg.eigvalsh(H[np.ix_(free, free)])[0] > 0.0:
            expected = s.copy()
            expected[free] = np.linalg.solve(H[np.ix_(free, free)], g[free] - H[np.ix_(free, ~free)] @ s[~free])
            np.testing.assert_allclose(s, expected, rtol=1e-7, atol=1e-9)
            compared += 1
    assert compared > 2
