"""Forward kinematics of closed loops: given values of the driven joints, solve for all other joints on the same branch.

`assemble` closes the loops near the start, and then moves the driven joints along a straight path to their values, by
certified Newton steps if possible, otherwise by continuation along the branch. `assembly_path` repeats this for a
sequence of values. If the driven joints leave dofs free, the solution is a configuration locally nearest to the start.
If the driven joints depend on each other, the independent joints are moved, and the values of the dependent joints are
checked. The modules `newton_step` and `continuation` have the two methods; `loop_system` defines scaled units.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import compress
from numbers import Integral

import numpy as np
import numpy.typing as npt

from mechanik.closure.assembly import (
    MAX_CLOSURE_ERROR,
    MAX_INPUT_ERROR,
    Assembly,
    immobile_assembly,
    is_immobile,
    make_assembly,
    nearest_assembly,
    summary_text,
    unclosed_assembly,
)
from mechanik.closure.bifurcation import solve_at_change_point, start_continuation
from mechanik.closure.continuation import (
    MAX_STEP,
    MAX_STEPS,
    NEAR_SINGULAR_RATIO,
    RESIDUAL_TOLERANCE,
    Continuation,
    ContinuationPoint,
    ContinuationProblem,
)
from mechanik.closure.driven_joints import (
    DrivenJoints,
    InputValues,
    as_inputs,
    as_weights,
    shortest_closing_angles,
    values_by_name,
)
from mechanik.closure.loop_system import LoopSystem, cached_loop_system
from mechanik.closure.newton_step import newton_step_for
from mechanik.errors import LimitsError, NotFinite, ShapeError
from mechanik.model import Mechanism
from mechanik.objectives import RestPose
from mechanik.solver import Solver
from mechanik.solver.solution import Status
from mechanik.spatial.array import Array, ArrayLike

RESTARTS = 30
"""Number of restarts of the solver that closes loops if Newton's method fails or is not tried."""
MAX_NEWTON_RESIDUAL = 0.3
"""Residual (scaled units) above which Newton's method is not tried from the start, since it could converge to a distant
branch."""


def close_loops(problem: ContinuationProblem, q: Array) -> tuple[Array, bool]:
    """Close the loops near `q` (nq,), from `q` clamped to the limits; the driven joints keep their values if possible.

    Returns:
        The configuration (nq,), and whether its loops are closed; if not, it has the smallest violation that was found.
    """
    loops = problem.loops
    q = loops.mechanism.clamp(q)
    if not loops.relations or _is_closed(loops, q):
        return q, True
    driven_dofs, no_dofs = problem.inputs.driven_dofs(), list[int]()
    locked_sets = (driven_dofs, no_dofs) if driven_dofs else (no_dofs,)
    if float(np.abs(loops.residual(q)[0]).max()) < MAX_NEWTON_RESIDUAL:
        for locked_dofs in locked_sets:
            closed_q = close_loops_by_newton(loops, q, np.eye(loops.n)[locked_dofs])
            if closed_q is not None:
                return closed_q, True
    best_q = q
    for locked_dofs in locked_sets:
        names = [loops.mechanism.space.v_names[v] for v in locked_dofs] or None
        solution = Solver(loops.mechanism, RestPose(q), lock=names, restarts=RESTARTS).solve(q0=q)
        closed_q = close_loops_by_newton(loops, solution.q, np.eye(loops.n)[locked_dofs])
        if closed_q is not None:
            return closed_q, True
        best_q = min((best_q, solution.q), key=lambda candidate: _violation(loops, candidate))
    return best_q, False


def _violation(loops: LoopSystem, q: Array) -> float:
    """Return the norm of the residual of all loops and joint constraints plus the limit violation, in scaled units."""
    return float(np.linalg.norm(loops.residual(q)[0])) + loops.limit_violation(q)[0]


def _is_closed(loops: LoopSystem, q: Array) -> bool:
    return float(np.abs(loops.residual(q)[0]).max(initial=0.0)) < RESIDUAL_TOLERANCE


def close_loops_by_newton(loops: LoopSystem, q: Array, fixed_directions: Array | None = None) -> Array | None:
    """Close the loops by Newton's method with steps of least norm; return the configuration, or None if this fails.

    The method fails if the residual stays above `RESIDUAL_TOLERANCE`, or if the result is outside the limits or farther
    than 1 (scaled units) from the start.

    Args:
        q: (nq,) start.
        fixed_directions: (k, nv) directions along which the step is zero, if such a step can close the loops to first
            order; otherwise the step is a least-squares compromise.
    """
    fixed_rows = np.zeros((0, loops.n)) if fixed_directions is None else fixed_directions
    start_q = q
    e, J = loops.residual(q)
    error = float(np.abs(e).max(initial=0.0))
    for _ in range(20):
        if error < 1e-15:
            break
        M, right_side = np.concatenate([J, fixed_rows]), np.append(-e, np.zeros(len(fixed_rows)))
        u = np.asarray(np.linalg.lstsq(M, right_side, rcond=1e-11)[0], dtype=np.float64)
        length = float(np.linalg.norm(u))
        trial_q = loops.step(q, u * min(1.0, 0.5 / max(length, 1e-300)))
        e_new, J_new = loops.residual(trial_q)
        error_new = float(np.abs(e_new).max(initial=0.0))
        if not error_new < error:
            break
        q, e, J, error = trial_q, e_new, J_new, error_new
    if (
        error > RESIDUAL_TOLERANCE
        or loops.limit_violation(q)[0] > 1e-9
        or float(np.linalg.norm(loops.scaled_difference(start_q, q))) > 1.0
    ):
        return None
    return q


MAX_DISPLACEMENT_STEPS = 60
"""Maximum number of steps of `minimize_displacement`."""
MIN_STEP = 1e-10
"""Step length, scaled units; a shorter step ends the iteration."""


def minimize_displacement(problem: ContinuationProblem, point: ContinuationPoint, q0: Array) -> ContinuationPoint:
    """Return a point with the same path parameter s that is locally nearest to `q0` (nq,), inside the limits.

    The method is Gauss-Newton on the displacement from `q0`, projected onto the null space of the Jacobian of the
    residual. A step that leaves the loops open, exceeds a limit or does not decrease the displacement is halved.
    """
    loops = problem.loops
    displacement = loops.scaled_difference(q0, point.q)
    step_ratio = 1.0
    for _ in range(MAX_DISPLACEMENT_STEPS):
        A = point.A.copy()
        A[:, -1] = 0.0
        is_frozen = _has_equal_limits(problem)
        u = np.zeros_like(displacement)
        for _ in range(4):
            u = _null_space_part(np.where(is_frozen, 0.0, A[:, :-1]), np.where(is_frozen, 0.0, -displacement))
            exceeds_limit = _exceeds_limits(problem, point.q, u) & ~is_frozen
            if not exceeds_limit.any():
                break
            is_frozen = is_frozen | exceeds_limit
        if float(np.linalg.norm(u)) < MIN_STEP or step_ratio < 1e-3:
            break
        q = np.clip(loops.step(point.q, step_ratio * u), loops.lower, loops.upper)
        previous_frozen_dofs, problem.frozen_dofs = problem.frozen_dofs, is_frozen
        trial_point = problem.project_at(q, point.s)
        problem.frozen_dofs = previous_frozen_dofs
        new_displacement = loops.scaled_difference(q0, trial_point.q)
        is_shorter = float(new_displacement @ new_displacement) < float(displacement @ displacement)
        if trial_point.error < RESIDUAL_TOLERANCE and is_shorter and loops.limit_violation(trial_point.q)[0] <= 1e-9:
            point, displacement = problem.point_at(trial_point.q, point.s), new_displacement
            step_ratio = min(1.0, 2 * step_ratio)
        else:
            step_ratio *= 0.5
    return point


def _null_space_part(J: Array, u: Array) -> Array:
    """Return the component of `u` in the null space of `J`."""
    return u - np.linalg.lstsq(J, J @ u, rcond=1e-10)[0] if len(J) else u


def _has_equal_limits(problem: ContinuationProblem) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the mask (nv,) of the dofs whose lower and upper limits are equal."""
    k = np.maximum(problem.loops.q_index_by_dof, 0)
    return (problem.loops.q_index_by_dof >= 0) & (problem.loops.lower[k] == problem.loops.upper[k])


def _exceeds_limits(problem: ContinuationProblem, q: Array, u: Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the mask (nv,) of the dofs at a limit that the step `u` (nv,) would move beyond the limit."""
    loops = problem.loops
    k = np.maximum(loops.q_index_by_dof, 0)
    exceeds_limit = ((u > 0) & (q[k] >= loops.upper[k] - 1e-12)) | ((u < 0) & (q[k] <= loops.lower[k] + 1e-12))
    return (loops.q_index_by_dof >= 0) & exceeds_limit


PERTURBATION = 0.05
"""Length of a random step, scaled units; it leaves a singular configuration, where the ranks would be too low."""
RANK_THRESHOLD = 1e-6
"""Singular values below this count as zero; relative to the largest for loops, absolute for inputs."""


def independent_inputs(loops: LoopSystem, inputs: DrivenJoints, q: Array) -> tuple[list[str], dict[str, list[str]]]:
    """Split driven joints into independent joints, in the order given, and dependent joints.

    Returns:
        The names of the independent joints, and for each dependent joint the names of the independent joints that
        determine it; no names if it cannot move.
    """
    rng = np.random.default_rng(0)
    null_vectors = _null_space(loops.residual(q)[1])
    for _ in range(4):
        perturbed_q = loops.step(
            q,
            PERTURBATION * null_vectors.T @ _unit_vector(rng.standard_normal(len(null_vectors)))
            if len(null_vectors)
            else np.zeros(loops.n),
        )
        closed_q = close_loops_by_newton(loops, perturbed_q)
        if closed_q is not None:
            q = closed_q
            break
    null_vectors = _null_space(loops.residual(q)[1])
    independent_names: list[str] = []
    jacobian = np.zeros((0, len(null_vectors)))
    dependencies: dict[str, list[str]] = {}
    for name, relation in zip(inputs.names, inputs.relations, strict=True):
        input_rows = loops.evaluate([relation], q)[1] @ null_vectors.T
        extended_jacobian = np.concatenate([jacobian, input_rows])
        if _rank(extended_jacobian) == len(extended_jacobian):
            jacobian = extended_jacobian
            independent_names += [name] * len(input_rows)
        else:
            factors = np.linalg.lstsq(jacobian.T, input_rows.T, rcond=None)[0] if len(jacobian) else np.zeros((0, 1))
            is_used = np.abs(factors).max(axis=1, initial=0.0) > 1e-6
            dependencies[name] = list(dict.fromkeys(compress(independent_names, is_used)))
    return [name for name in dict.fromkeys(independent_names) if name not in dependencies], dependencies


def _null_space(J: Array) -> Array:
    """Return an orthonormal basis (k, nv) of the steps that keep the loops closed to first order."""
    if not len(J):
        return np.eye(J.shape[1])
    _, singular_values, V = np.linalg.svd(J)
    return np.asarray(V)[int((singular_values > RANK_THRESHOLD * max(float(singular_values[0]), 1e-12)).sum()) :]


def _rank(M: Array) -> int:
    if not M.size:
        return 0
    singular_values = np.linalg.svd(M, compute_uv=False)
    return int((singular_values > RANK_THRESHOLD).sum())


def _unit_vector(x: Array) -> Array:
    return x / max(float(np.linalg.norm(x)), 1e-12)


MAX_START_RESIDUAL = 0.01
"""Residual (scaled units) above which the loops of the start count as open; such a start is on no branch."""
NEAR_CHANGE_POINT_RATIO = 1e-3
"""Ratio of the smallest to the largest singular value. If the ratio at the goal is smaller, the goal is near a change
point, and its configuration is interpolated from points on both sides."""


@dataclass(frozen=True, slots=True, eq=False)
class StartState:
    """Start of a continuation.

    Attributes:
        q: (nq,) configuration.
        heading: (nv,) direction of the motion so far, m and rad; zero if the direction is unknown.
        closing_angles: known angles (rad, full rotations counted) of the driven joints that close a loop, by joint
            name.
    """

    q: Array
    heading: Array
    closing_angles: Mapping[str, float] = field(default_factory=dict[str, float])


def assemble(
    mechanism: Mechanism,
    inputs: InputValues | None = None,
    q0: ArrayLike | Assembly | None = None,
    *,
    steps: int | None = None,
    weights: Mapping[str, float] | None = None,
) -> Assembly:
    """Assemble a mechanism with its driven joints at given values; see `Mechanism.assemble`."""
    values = as_inputs(mechanism, inputs)
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, Integral) or steps < 1):
        raise LimitsError(f"steps must be an integer of 1 or more, not {steps!r}")
    start = as_start_state(mechanism, q0)
    with cached_loop_system(mechanism, as_weights(weights)) as loops:
        return solve_for_inputs(loops, values, start, steps or 1)


def as_start_state(mechanism: Mechanism, q0: ArrayLike | Assembly | None) -> StartState:
    """Return the start for `q0`: an assembly, a configuration (nq,), or None for the present configuration."""
    if isinstance(q0, Assembly):
        if len(q0.q) != mechanism.nq:
            raise ShapeError(
                f"q0 is an assembly of another mechanism: its q has {len(q0.q)} numbers, not {mechanism.nq}"
            )
        return StartState(q0.q, q0.heading, q0.closing_angles)
    q = np.array(mechanism.q if q0 is None else mechanism._single_q(q0))
    for k in mechanism.space.quaternions_q:
        q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
    return StartState(q, np.zeros(mechanism.nv))


def solve_for_inputs(loops: LoopSystem, values: Mapping[str, Array], start: StartState, steps: int = 1) -> Assembly:
    """Move the driven joints to their values: by certified Newton steps if possible, otherwise by continuation."""
    newton_step = newton_step_for(loops, values) if steps == 1 else None
    assembly = None if newton_step is None else newton_step.solve(values, start.q, start.heading)
    return follow_branch_to(loops, values, start, steps) if assembly is None else assembly


def follow_branch_to(loops: LoopSystem, values: Mapping[str, Array], start: StartState, steps: int = 1) -> Assembly:
    """Move the driven joints from the start to their values by continuation along the branch.

    If this fails and the loops of the start are open, the driven joints are set to their values in one step.
    """
    problem = ContinuationProblem(loops, DrivenJoints(loops, values, start.q, closing_angles=start.closing_angles))
    q, is_closed = close_loops(problem, start.q)
    assembly = _follow_branch(problem, q, start, steps) if is_closed else unclosed_assembly(problem, q)
    if (
        not assembly.success
        and values
        and float(np.abs(loops.residual(start.q)[0]).max(initial=0.0)) > MAX_START_RESIDUAL
    ):
        return _assemble_at_inputs(loops, values, start.q) or assembly  # the start is on no branch
    return assembly


def _assemble_at_inputs(loops: LoopSystem, values: Mapping[str, Array], q0: Array) -> Assembly | None:
    """Set the driven joints to their values in one step, and close the loops near `q0` (nq,); None if this fails."""
    inputs = DrivenJoints(loops, values, q0, closing_angles=shortest_closing_angles(loops.mechanism, values))
    goal = inputs.with_values(q0, inputs.path_length)
    problem = ContinuationProblem(loops, inputs)
    q, is_closed = close_loops(problem, goal)
    input_error = float(np.abs(q - inputs.with_values(q, inputs.path_length)).max(initial=0.0))
    if not is_closed or input_error > MAX_CLOSURE_ERROR:
        return None
    assembly = _follow_branch(problem, q, StartState(goal, np.zeros(loops.n)), 1)
    return assembly if assembly.success else None


def _follow_branch(problem: ContinuationProblem, q: Array, start: StartState, steps: int) -> Assembly:
    """Move the driven joints to their values along the branch through `q` (nq,), the start with closed loops."""
    loops, inputs = problem.loops, problem.inputs
    inputs.set_start(q)
    if inputs.path_length < RESIDUAL_TOLERANCE:
        point = problem.point_at(q, 0.0)
        if point.rank < problem.n and not np.array_equal(q, start.q):
            point = minimize_displacement(problem, point, start.q)
        return make_assembly(
            problem, Continuation(problem, [point], [problem.s_axis], point.rank), point, start.heading
        )
    continuation = start_continuation(problem, q, _as_direction(problem, q, start.heading))
    continuation.advance_to(
        inputs.path_length,
        max_step_length=min(MAX_STEP, inputs.path_length / steps),
        max_steps=max(MAX_STEPS, 2 * steps),
    )
    if continuation.stop_reason == "stuck" and is_immobile(continuation):
        return immobile_assembly(problem, q)
    if continuation.stop_reason and continuation.stop_reason not in ("limit", "steps"):
        independent_names, dependencies = independent_inputs(loops, inputs, q)
        if dependencies:
            return _assemble_overdriven(loops, inputs.values, start, independent_names, dependencies)
    if continuation.stop_reason:
        return nearest_assembly(problem, continuation)
    point, tangent = continuation.curve_point(inputs.path_length), continuation.tangent
    if not continuation.redundancy and point.relative_singular_value(continuation.rank) < NEAR_CHANGE_POINT_RATIO:
        exact_result = solve_at_change_point(continuation, inputs.path_length)
        point, tangent = (point, tangent) if exact_result is None else exact_result
    elif continuation.redundancy and not problem.frozen_dofs.any():
        point = minimize_displacement(problem, point, start.q)
    return make_assembly(
        problem, continuation, point, tangent[:-1] * loops.unit / max(float(tangent[-1]), NEAR_SINGULAR_RATIO)
    )


def _as_direction(problem: ContinuationProblem, q: Array, heading: Array) -> Array | None:
    """Convert a heading (nv,) to a unit direction (nv + 1,) of the step u and s, along which s increases.

    The result is None if the heading is zero, or if it would move the driven joints away from their path.
    """
    u = heading / problem.loops.unit
    if not np.any(u):
        return None
    _, J, s_derivatives = problem.inputs.residual(q, 0.0)
    ds = -float(s_derivatives @ (J @ u))
    z = np.append(u, ds) * np.sign(ds)
    fits_path = float(np.linalg.norm(J @ u + s_derivatives * ds)) < 1e-6 * float(np.linalg.norm(J @ u)) and ds != 0.0
    return z / float(np.linalg.norm(z)) if fits_path else None


def _assemble_overdriven(
    loops: LoopSystem,
    values: Mapping[str, Array],
    start: StartState,
    independent_names: list[str],
    dependencies: dict[str, list[str]],
) -> Assembly:
    """Assemble with dependent driven joints: move the independent joints, and check the values of the others."""
    assembly = solve_for_inputs(loops, {name: values[name] for name in independent_names}, start)
    closing_angles = shortest_closing_angles(loops.mechanism, values)
    inputs = DrivenJoints(loops, values, assembly.q, closing_angles=closing_angles)
    errors = {**inputs.errors(assembly.q, 0.0), **assembly.input_errors}
    if assembly.success and all(error < MAX_INPUT_ERROR for error in errors.values()):
        text = summary_text(loops, errors, assembly.singularities)
        return replace(assembly, inputs=values, message=text, input_errors=errors)
    conflicts = "; ".join(
        f"{name} depends on {', '.join(determining_names)} (error {errors[name]:.4g})" if determining_names
        else f"{name} cannot move (error {errors[name]:.4g})"
        for name, determining_names in dependencies.items()
    )  # fmt: skip
    status = assembly.status if not assembly.success else Status.CLOSEST
    text = f"too many inputs: {conflicts}" if assembly.success else f"too many inputs: {conflicts}; {assembly.message}"
    return replace(assembly, inputs=values, success=False, status=status, message=text, input_errors=errors)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AssemblyPath:
    """Result of `Mechanism.assembly_path`: one assembly for each row of input values.

    Attributes:
        assemblies: the T assemblies, in order.

    Example:
        >>> path = mk.gallery.four_bar().assembly_path({"crank_joint": np.linspace(0.0, 2 * np.pi, 5)})
        >>> path.q.shape, bool(path.success.all())
        ((5, 3), True)
        >>> path.q[:, 2].round(2).tolist()
        [1.7, 1.84, 2.41, 2.33, 1.7]
    """

    assemblies: tuple[Assembly, ...]

    def __len__(self) -> int:
        return len(self.assemblies)

    def __iter__(self) -> Iterator[Assembly]:
        return iter(self.assemblies)

    def __getitem__(self, k: int) -> Assembly:
        return self.assemblies[k]

    def __repr__(self) -> str:
        return f"<path of {len(self)} assemblies, {int(self.success.sum())} with all inputs at their values>"

    @property
    def q(self) -> Array:
        """Configurations, (T, nq)."""
        return np.array([assembly.q for assembly in self.assemblies])

    @property
    def success(self) -> npt.NDArray[np.bool_]:
        """Whether each assembly succeeded, (T,)."""
        return np.array([assembly.success for assembly in self.assemblies], dtype=np.bool_)


def assembly_path(
    mechanism: Mechanism,
    inputs: InputValues,
    q0: ArrayLike | Assembly | None = None,
    *,
    weights: Mapping[str, float] | None = None,
) -> AssemblyPath:
    """Assemble a mechanism for a sequence of input values; see `Mechanism.assembly_path`."""
    values = _as_input_sequences(mechanism, inputs)
    start = as_start_state(mechanism, q0)
    assemblies: list[Assembly] = []
    with cached_loop_system(mechanism, as_weights(weights)) as loops:
        for k in range(len(next(iter(values.values())))):
            assembly = solve_for_inputs(loops, {name: sequence[k] for name, sequence in values.items()}, start)
            start = StartState(assembly.q, assembly.heading, assembly.closing_angles)
            assemblies.append(assembly)
    return AssemblyPath(tuple(assemblies))


def _as_input_sequences(mechanism: Mechanism, inputs: InputValues) -> dict[str, Array]:
    """Validate sequences of input values and return them by joint name, (T, n) each, all with the same T and finite."""
    if not isinstance(inputs, Mapping) or not inputs:
        raise ShapeError(
            f"inputs must be given by name, such as {{'crank_joint': angles}} with angles of shape (T,), not {inputs!r}"
        )
    values: dict[str, Array] = {}
    for name, sequence in values_by_name(mechanism, inputs).items():
        try:
            numbers = np.asarray(sequence, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"input {name!r} must be an array of numbers, (T,) or (T, n), not {sequence!r}") from None
        if numbers.ndim not in (1, 2) or not len(numbers):
            raise ShapeError(f"input {name!r} must have the shape (T,), or (T, n) for n dofs, not {numbers.shape}")
        if not np.isfinite(numbers).all():
            raise NotFinite(f"input {name!r} is not finite in row {int(np.argwhere(~np.isfinite(numbers))[0][0])}")
        values[name] = numbers[:, None] if numbers.ndim == 1 else numbers
    row_counts = {name: len(rows) for name, rows in values.items()}
    if len(set(row_counts.values())) > 1:
        raise ShapeError(
            f"inputs have different numbers of rows: {', '.join(f'{k!r} {v}' for k, v in row_counts.items())}"
        )
    return values
