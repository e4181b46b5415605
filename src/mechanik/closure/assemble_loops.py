"""Forward kinematics of closed loops: given values of the driven joints, solve for all other joints on the same branch.

`assemble` closes the loops near the start, then takes the driven joints along a straight path to their values. A
certified Newton step does this if it can; else the continuation follows the branch. The motion that the driven joints
leave free stays as near as possible to the start. If the driven joints depend on each other, the independent ones lead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
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
    NEAR_SINGULAR,
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
    by_joint_name,
    shortest_closing_angles,
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
"""Restarts of the solver that closes loops if Newton's method fails."""
MAX_NEWTON_RESIDUAL = 0.3
"""Residual (scaled units) above which Newton's method is not tried, because it could converge to a distant branch."""


def close_loops(problem: ContinuationProblem, q: Array) -> tuple[Array, bool]:
    """Return a configuration (nq,) near `q`, inside the limits, with closed loops; else the one with the smallest gap.

    The driven joints keep their values if that is possible.

    Returns:
        The configuration, and whether its loops are closed.
    """
    loops = problem.loops
    q = loops.mechanism.clamp(q)
    if not loops.relations or _is_closed(loops, q):
        return q, True
    driven, nothing = problem.inputs.columns(), list[int]()
    locked_sets = (driven, nothing) if driven else (nothing,)
    if float(np.abs(loops.residual(q)[0]).max()) < MAX_NEWTON_RESIDUAL:
        for locked in locked_sets:
            closed_q = close_loops_by_newton(loops, q, np.eye(loops.n)[locked])
            if closed_q is not None:
                return closed_q, True
    best_q = q
    for locked in locked_sets:
        names = [loops.mechanism.space.v_names[v] for v in locked] or None
        solution = Solver(loops.mechanism, RestPose(q), lock=names, restarts=RESTARTS).solve(q0=q)
        closed_q = close_loops_by_newton(loops, solution.q, np.eye(loops.n)[locked])
        if closed_q is not None:
            return closed_q, True
        best_q = min((best_q, solution.q), key=lambda candidate: _gap(loops, candidate))
    return best_q, False


def _gap(loops: LoopSystem, q: Array) -> float:
    """Return the norm of the residual of all loops and joint constraints plus the limit violation, in scaled units."""
    return float(np.linalg.norm(loops.residual(q)[0])) + loops.limit_violation(q)[0]


def _is_closed(loops: LoopSystem, q: Array) -> bool:
    return float(np.abs(loops.residual(q)[0]).max(initial=0.0)) < RESIDUAL_TOLERANCE


def close_loops_by_newton(loops: LoopSystem, q: Array, fixed_directions: Array | None = None) -> Array | None:
    """Close the loops by Newton's method with steps of least norm; None if it fails.

    It fails if the residual stays above `RESIDUAL_TOLERANCE`, if the result is outside the limits, or if it is farther
    than 1 (scaled units) from the start.

    Args:
        q: (nq,) start.
        fixed_directions: (k, nv) directions along which the step is zero.
    """
    fixed = np.zeros((0, loops.n)) if fixed_directions is None else fixed_directions
    start = q
    e, J = loops.residual(q)
    error = float(np.abs(e).max(initial=0.0))
    for _ in range(20):
        if error < 1e-15:
            break
        M, right_side = np.concatenate([J, fixed]), np.append(-e, np.zeros(len(fixed)))
        u = np.asarray(np.linalg.lstsq(M, right_side, rcond=1e-11)[0], dtype=np.float64)
        size = float(np.linalg.norm(u))
        trial = loops.step(q, u * min(1.0, 0.5 / max(size, 1e-300)))
        e_new, J_new = loops.residual(trial)
        error_new = float(np.abs(e_new).max(initial=0.0))
        if not error_new < error:
            break
        q, e, J, error = trial, e_new, J_new, error_new
    if (
        error > RESIDUAL_TOLERANCE
        or loops.limit_violation(q)[0] > 1e-9
        or float(np.linalg.norm(loops.scaled_difference(start, q))) > 1.0
    ):
        return None
    return q


MAX_DISPLACEMENT_STEPS = 60
"""Maximum number of steps."""
MIN_STEP = 1e-10
"""Scaled units; a shorter step ends the iteration."""


def minimize_dispointment(problem: ContinuationProblem, point: ContinuationPoint, q0: Array) -> ContinuationPoint:
    """Return a point with the same s that is locally nearest to `q0` (nq,), inside the limits.

    Gauss-Newton on the dispointment from `q0`, projected onto the null space of the residual Jacobian. A step that does
    not shorten the dispointment is halved.
    """
    loops = problem.loops
    displacement = loops.scaled_difference(q0, point.q)
    step_ratio = 1.0
    for _ in range(MAX_DISPLACEMENT_STEPS):
        A = point.A.copy()
        A[:, -1] = 0.0
        frozen = _has_equal_limits(problem)
        u = np.zeros_like(displacement)
        for _ in range(4):
            u = _null_space_part(np.where(frozen, 0.0, A[:, :-1]), np.where(frozen, 0.0, -displacement))
            leaving = _leaves_limits(problem, point.q, u) & ~frozen
            if not leaving.any():
                break
            frozen = frozen | leaving
        if float(np.linalg.norm(u)) < MIN_STEP or step_ratio < 1e-3:
            break
        q = np.clip(loops.step(point.q, step_ratio * u), loops.lower, loops.upper)
        previous_frozen, problem.frozen = problem.frozen, frozen
        trial = problem.project_at(q, point.s)
        problem.frozen = previous_frozen
        new_displacement = loops.scaled_difference(q0, trial.q)
        is_shorter = float(new_displacement @ new_displacement) < float(displacement @ displacement)
        if trial.error < RESIDUAL_TOLERANCE and is_shorter and loops.limit_violation(trial.q)[0] <= 1e-9:
            point, displacement = problem.point_at(trial.q, point.s), new_displacement
            step_ratio = min(1.0, 2 * step_ratio)
        else:
            step_ratio *= 0.5
    return point


def _null_space_part(J: Array, u: Array) -> Array:
    """Return the part of `u` in the null space of `J`."""
    return u - np.linalg.lstsq(J, J @ u, rcond=1e-10)[0] if len(J) else u


def _has_equal_limits(problem: ContinuationProblem) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the mask (nv,) of the dofs whose lower and upper limits are equal."""
    k = np.maximum(problem.loops.columns, 0)
    return (problem.loops.columns >= 0) & (problem.loops.lower[k] == problem.loops.upper[k])


def _leaves_limits(problem: ContinuationProblem, q: Array, u: Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the mask (nv,) of the dofs at a limit that the step `u` (nv,) would take beyond it."""
    loops = problem.loops
    k = np.maximum(loops.columns, 0)
    is_leaving = ((u > 0) & (q[k] >= loops.upper[k] - 1e-12)) | ((u < 0) & (q[k] <= loops.lower[k] + 1e-12))
    return (loops.columns >= 0) & is_leaving


PERTURBATION = 0.05
"""Scaled units; length of the random step to a generic configuration, where ranks are not those of a dead point."""
RANK_THRESHOLD = 1e-6
"""Singular values below this count as zero; relative to the largest for loops, absolute for inputs."""


def independent_inputs(loops: LoopSystem, inputs: DrivenJoints, q: Array) -> tuple[list[str], dict[str, list[str]]]:
    """Split driven joints into independent ones, in the order given, and dependent ones.

    Returns:
        The names of the independent joints, and for each dependent joint the independent joints that determine it.
    """
    rng = np.random.default_rng(0)
    null = _null_space(loops.residual(q)[1])
    for _ in range(4):
        perturbed = loops.step(
            q, PERTURBATION * null.T @ _unit(rng.standard_normal(len(null))) if len(null) else np.zeros(loops.n)
        )
        closed_q = close_loops_by_newton(loops, perturbed)
        if closed_q is not None:
            q = closed_q
            break
    null = _null_space(loops.residual(q)[1])
    independent: list[str] = []
    jacobian = np.zeros((0, len(null)))
    dependent: dict[str, list[str]] = {}
    for name, relation in zip(inputs.names, inputs.relations, strict=True):
        own_rows = loops.evaluate([relation], q)[1] @ null.T
        extended = np.concatenate([jacobian, own_rows])
        if _rank(extended) == len(extended):
            jacobian = extended
            independent += [name] * len(own_rows)
        else:
            weights = np.linalg.lstsq(jacobian.T, own_rows.T, rcond=None)[0] if len(jacobian) else np.zeros((0, 1))
            is_used = np.abs(weights).max(axis=1, initial=0.0) > 1e-6
            leaders = (leader for leader, used in zip(independent, is_used, strict=True) if used)
            dependent[name] = list(dict.fromkeys(leaders))
    return [name for name in dict.fromkeys(independent) if name not in dependent], dependent


def _null_space(J: Array) -> Array:
    """Return an orthonormal basis (k, nv) of the steps that keep the loops closed to first order."""
    if not len(J):
        return np.eye(J.shape[1])
    _, sizes, V = np.linalg.svd(J)
    return np.asarray(V)[int((sizes > RANK_THRESHOLD * max(float(sizes[0]), 1e-12)).sum()) :]


def _rank(M: Array) -> int:
    if not M.size:
        return 0
    sizes = np.linalg.svd(M, compute_uv=False)
    return int((sizes > RANK_THRESHOLD).sum())


def _unit(x: Array) -> Array:
    return x / max(float(np.linalg.norm(x)), 1e-12)


MAX_START_RESIDUAL = 0.01
"""Residual (scaled units) above which the start counts as open, so that there is no branch to keep."""
NEAR_CHANGE_POINT = 1e-3
"""Relative singular value below which the goal is near a change point, and is interpolated from both sides."""


@dataclass(frozen=True, slots=True, eq=False)
class StartState:
    """Start of a continuation.

    Attributes:
        q: (nq,) configuration.
        heading: (nv,) direction of the motion so far, m and rad; zero if it is unknown.
        closing_angles: known angles of the driven joints that close a loop, by joint name, rad, full rotations
            included.
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
        raise LimitsError(f"steps must be a whole number of 1 or more, not {steps!r}")
    start = as_start_state(mechanism, q0)
    with cached_loop_system(mechanism, as_weights(weights)) as loops:
        return solve_for_inputs(loops, values, start, steps or 1)


def as_start_state(mechanism: Mechanism, q0: ArrayLike | Assembly | None) -> StartState:
    """Return the start for `q0`: an assembly, a configuration (nq,), or None for the mechanism's own configuration."""
    if isinstance(q0, Assembly):
        if len(q0.q) != mechanism.nq:
            raise ShapeError(
                f"q0 is an assembly of another mechanism: its q has {len(q0.q)} numbers, here q has {mechanism.nq}"
            )
        return StartState(q0.q, q0.heading, q0.closing_angles)
    q = np.array(mechanism.q if q0 is None else mechanism._single_q(q0))
    for k in mechanism.space.quaternions_q:
        q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
    return StartState(q, np.zeros(mechanism.nv))


def solve_for_inputs(loops: LoopSystem, values: Mapping[str, Array], start: StartState, steps: int = 1) -> Assembly:
    """Move the driven joints to their values: by certified Newton steps if possible, else by continuation."""
    newton_step = newton_step_for(loops, values) if steps == 1 else None
    assembly = None if newton_step is None else newton_step.solve(values, start.q, start.heading)
    return follow_branch_to(loops, values, start, steps) if assembly is None else assembly


def follow_branch_to(loops: LoopSystem, values: Mapping[str, Array], start: StartState, steps: int = 1) -> Assembly:
    """Move the driven joints from the start to their values by continuation along the branch."""
    problem = ContinuationProblem(loops, DrivenJoints(loops, values, start.q, closing_angles=start.closing_angles))
    q, is_closed = close_loops(problem, start.q)
    assembly = _follow(problem, q, start, steps) if is_closed else unclosed_assembly(problem, q)
    if (
        not assembly.success
        and values
        and float(np.abs(loops.residual(start.q)[0]).max(initial=0.0)) > MAX_START_RESIDUAL
    ):
        return _assemble_at_inputs(loops, values, start.q) or assembly  # a start with open loops is on no branch
    return assembly


def _assemble_at_inputs(loops: LoopSystem, values: Mapping[str, Array], q0: Array) -> Assembly | None:
    """Set the driven joints to their values at once, and close the loops near `q0` (nq,); None if that fails."""
    inputs = DrivenJoints(loops, values, q0, closing_angles=shortest_closing_angles(loops.mechanism, values))
    goal = inputs.set_values(q0, inputs.path_length)
    problem = ContinuationProblem(loops, inputs)
    q, is_closed = close_loops(problem, goal)
    input_error = float(np.abs(q - inputs.set_values(q, inputs.path_length)).max(initial=0.0))
    if not is_closed or input_error > MAX_CLOSURE_ERROR:
        return None
    assembly = _follow(problem, q, StartState(goal, np.zeros(loops.n)), 1)
    return assembly if assembly.success else None


def _follow(problem: ContinuationProblem, q: Array, start: StartState, steps: int) -> Assembly:
    """Follow the branch from `q` (nq,), which is near the start and has closed loops."""
    loops, inputs = problem.loops, problem.inputs
    inputs.set_start(q)
    if inputs.path_length < RESIDUAL_TOLERANCE:
        point = problem.point_at(q, 0.0)
        if point.rank < problem.n and not np.array_equal(q, start.q):
            point = minimize_dispointment(problem, point, start.q)
        return make_assembly(problem, Continuation(problem, [point], [problem.end], point.rank), point, start.heading)
    continuation = start_continuation(problem, q, _as_direction(problem, q, start.heading))
    continuation.advance_to(
        inputs.path_length,
        max_step_length=min(MAX_STEP, inputs.path_length / steps),
        max_steps=max(MAX_STEPS, 2 * steps),
    )
    if continuation.stop_reason == "stuck" and is_immobile(continuation):
        return immobile_assembly(problem, q)
    if continuation.stop_reason and continuation.stop_reason not in ("limit", "steps"):
        independent, dependent = independent_inputs(loops, inputs, q)
        if dependent:
            return _overdriven(loops, inputs.values, start, independent, dependent)
    if continuation.stop_reason:
        return nearest_assembly(problem, continuation)
    point, t = continuation.at(inputs.path_length), continuation.heading
    if not continuation.redundancy and point.relative_singular_value(continuation.rank) < NEAR_CHANGE_POINT:
        exact = solve_at_change_point(continuation, inputs.path_length)
        point, t = (point, t) if exact is None else exact
    elif continuation.redundancy and not problem.frozen.any():
        point = minimize_dispointment(problem, point, start.q)
    return make_assembly(problem, continuation, point, t[:-1] * loops.unit / max(float(t[-1]), NEAR_SINGULAR))


def _as_direction(problem: ContinuationProblem, q: Array, heading: Array) -> Array | None:
    """Return a heading (nv,) as unit direction (n + 1,) towards the goal; None if it does not fit the path."""
    u = heading / problem.loops.unit
    if not np.any(u):
        return None
    _, J, by_s = problem.inputs.residual(q, 0.0)
    ds = -float(by_s @ (J @ u))
    z = np.append(u, ds) * np.sign(ds)
    fits_path = float(np.linalg.norm(J @ u + by_s * ds)) < 1e-6 * float(np.linalg.norm(J @ u)) and ds != 0.0
    return z / float(np.linalg.norm(z)) if fits_path else None


def _overdriven(
    loops: LoopSystem,
    values: Mapping[str, Array],
    start: StartState,
    independent: list[str],
    dependent: dict[str, list[str]],
) -> Assembly:
    """Make the assembly for dependent driven joints: the independent ones lead, the others are checked."""
    assembly = solve_for_inputs(loops, {name: values[name] for name in independent}, start)
    closing_angles = shortest_closing_angles(loops.mechanism, values)
    inputs = DrivenJoints(loops, values, assembly.q, closing_angles=closing_angles)
    errors = {**inputs.errors(assembly.q, 0.0), **assembly.input_errors}
    if assembly.success and all(error < MAX_INPUT_ERROR for error in errors.values()):
        text = summary_text(loops, errors, assembly.singularities)
        return replace(assembly, inputs=values, message=text, input_errors=errors)
    conflicts = "; ".join(
        f"{name} depends on {', '.join(leaders)} (error {errors[name]:.4g})" if leaders
        else f"{name} cannot move (error {errors[name]:.4g})"
        for name, leaders in dependent.items()
    )  # fmt: skip
    status = assembly.status if not assembly.success else Status.CLOSEST
    text = f"too many inputs: {conflicts}" if assembly.success else f"too many inputs: {conflicts}; {assembly.message}"
    return replace(assembly, inputs=values, success=False, status=status, message=text, input_errors=errors)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AssemblyPath:
    """The result of `Mechanism.assembly_path`: one assembly for each row of input values.

    Attributes:
        assemblies: the assemblies in order, T of them.

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
    for name, sequence in by_joint_name(mechanism, inputs).items():
        try:
            numbers = np.asarray(sequence, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"input {name!r} must be an array of numbers, (T,) or (T, n), not {sequence!r}") from None
        if numbers.ndim not in (1, 2) or not len(numbers):
            raise ShapeError(f"input {name!r} must have the shape (T,), or (T, n) for n dofs, not {numbers.shape}")
        if not np.isfinite(numbers).all():
            raise NotFinite(f"input {name!r} is not finite in row {int(np.argwhere(~np.isfinite(numbers))[0][0])}")
        values[name] = numbers[:, None] if numbers.ndim == 1 else numbers
    sizes = {name: len(rows) for name, rows in values.items()}
    if len(set(sizes.values())) > 1:
        raise ShapeError(f"inputs have different numbers of rows: {', '.join(f'{k!r} {v}' for k, v in sizes.items())}")
    return values
