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
    MOST_STEPS,
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
FAR = 0.3
"""Residual (scaled units) above which Newton's method is not tried, because it could converge to a distant branch."""


def close_loops(course: ContinuationProblem, q: Array) -> tuple[Array, bool]:
    """Return a configuration (nq,) near `q`, inside the limits, with closed loops; else the one with the smallest gap.

    The driven joints keep their values if that is possible.

    Returns:
        The configuration, and whether its loops are closed.
    """
    loops = course.loops
    q = loops.mechanism.clamp(q)
    if not loops.relations or _is_shut(loops, q):
        return q, True
    driven, nothing = course.drives.columns(), list[int]()
    ways = (driven, nothing) if driven else (nothing,)
    if float(np.abs(loops.residual(q)[0]).max()) < FAR:
        for stay in ways:
            there = close_loops_by_newton(loops, q, np.eye(loops.n)[stay])
            if there is not None:
                return there, True
    least = q
    for stay in ways:
        lock = [loops.mechanism.space.v_names[v] for v in stay] or None
        found = Solver(loops.mechanism, RestPose(q), lock=lock, restarts=RESTARTS).solve(q0=q)
        there = close_loops_by_newton(loops, found.q, np.eye(loops.n)[stay])
        if there is not None:
            return there, True
        least = min((least, found.q), key=lambda one: _gap(loops, one))
    return least, False


def _gap(loops: LoopSystem, q: Array) -> float:
    """Return the norm of the residual of all loops and joint constraints plus the limit violation, in scaled units."""
    return float(np.linalg.norm(loops.residual(q)[0])) + loops.limit_violation(q)[0]


def _is_shut(loops: LoopSystem, q: Array) -> bool:
    return float(np.abs(loops.residual(q)[0]).max(initial=0.0)) < RESIDUAL_TOLERANCE


def close_loops_by_newton(loops: LoopSystem, q: Array, stay: Array | None = None) -> Array | None:
    """Close the loops by Newton's method with steps of least norm; None if it fails.

    It fails if the residual stays above `RESIDUAL_TOLERANCE`, if the result is outside the limits, or if it is farther
    than 1 (scaled units) from the start.

    Args:
        q: (nq,) start.
        stay: (k, nv) directions along which the step is zero.
    """
    stay = np.zeros((0, loops.n)) if stay is None else stay
    start = q
    e, J = loops.residual(q)
    error = float(np.abs(e).max(initial=0.0))
    for _ in range(20):
        if error < 1e-15:
            break
        M, wanted = np.concatenate([J, stay]), np.append(-e, np.zeros(len(stay)))
        u = np.asarray(np.linalg.lstsq(M, wanted, rcond=1e-11)[0], dtype=np.float64)
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


MOST = 60
"""Maximum number of steps."""
FLAT = 1e-10
"""Scaled units; a shorter step ends the iteration."""


def minimize_displacement(course: ContinuationProblem, place: ContinuationPoint, q0: Array) -> ContinuationPoint:
    """Return a point with the same s that is locally nearest to `q0` (nq,), inside the limits.

    Gauss-Newton on the displacement from `q0`, projected onto the null space of the residual Jacobian. A step that does
    not shorten the displacement is halved.
    """
    loops = course.loops
    way = loops.scaled_difference(q0, place.q)
    stride = 1.0
    for _ in range(MOST):
        A = place.A.copy()
        A[:, -1] = 0.0
        held = _at_limits(course, place.q)
        back = np.zeros_like(way)
        for _ in range(4):
            back = _within(np.where(held, 0.0, A[:, :-1]), np.where(held, 0.0, -way))
            out = _leads_out(course, place.q, back) & ~held
            if not out.any():
                break
            held = held | out
        if float(np.linalg.norm(back)) < FLAT or stride < 1e-3:
            break
        q = np.clip(loops.step(place.q, stride * back), loops.lower, loops.upper)
        before, course.frozen = course.frozen, held
        trial = course.project_at(q, place.s)
        course.frozen = before
        way_there = loops.scaled_difference(q0, trial.q)
        shorter = float(way_there @ way_there) < float(way @ way)
        if trial.error < RESIDUAL_TOLERANCE and shorter and loops.limit_violation(trial.q)[0] <= 1e-9:
            place, way, stride = course.point_at(trial.q, place.s), way_there, min(1.0, 2 * stride)
        else:
            stride *= 0.5
    return place


def _within(J: Array, u: Array) -> Array:
    """Return the part of `u` in the null space of `J`."""
    return u - np.linalg.lstsq(J, J @ u, rcond=1e-10)[0] if len(J) else u


def _at_limits(course: ContinuationProblem, q: Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the mask (nv,) of the dofs whose lower and upper limits are equal."""
    k = np.maximum(course.loops.columns, 0)
    return (course.loops.columns >= 0) & (course.loops.lower[k] == course.loops.upper[k])


def _leads_out(course: ContinuationProblem, q: Array, u: Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the mask (nv,) of the dofs at a limit that the step `u` (nv,) would take beyond it."""
    loops = course.loops
    k = np.maximum(loops.columns, 0)
    over = ((u > 0) & (q[k] >= loops.upper[k] - 1e-12)) | ((u < 0) & (q[k] <= loops.lower[k] + 1e-12))
    return (loops.columns >= 0) & over


NUDGE = 0.05
"""Scaled units; length of the random step to a generic configuration, where ranks are not those of a dead point."""
RANK = 1e-6
"""Singular values below this count as zero; relative to the largest for loops, absolute for inputs."""


def independent_inputs(loops: LoopSystem, drives: DrivenJoints, q: Array) -> tuple[list[str], dict[str, list[str]]]:
    """Split driven joints into independent ones, in the order given, and dependent ones.

    Returns:
        The names of the independent joints, and for each dependent joint the independent joints that determine it.
    """
    rng = np.random.default_rng(0)
    null = _null(loops.residual(q)[1])
    for _ in range(4):
        moved = loops.step(
            q, NUDGE * null.T @ _unit(rng.standard_normal(len(null))) if len(null) else np.zeros(loops.n)
        )
        there = close_loops_by_newton(loops, moved)
        if there is not None:
            q = there
            break
    null = _null(loops.residual(q)[1])
    lead: list[str] = []
    rows = np.zeros((0, len(null)))
    follow: dict[str, list[str]] = {}
    for name, relation in zip(drives.names, drives.relations, strict=True):
        mine = loops.evaluate([relation], q)[1] @ null.T
        both = np.concatenate([rows, mine])
        if _rank(both) == len(both):
            rows = both
            lead += [name] * len(mine)
        else:
            shares = np.linalg.lstsq(rows.T, mine.T, rcond=None)[0] if len(rows) else np.zeros((0, 1))
            on = np.abs(shares).max(axis=1, initial=0.0) > 1e-6
            follow[name] = list(dict.fromkeys(one for one, is_on in zip(lead, on, strict=True) if is_on))
    return [name for name in dict.fromkeys(lead) if name not in follow], follow


def _null(J: Array) -> Array:
    """Return an orthonormal basis (k, nv) of the steps that keep the loops closed to first order."""
    if not len(J):
        return np.eye(J.shape[1])
    _, sizes, V = np.linalg.svd(J)
    return np.asarray(V)[int((sizes > RANK * max(float(sizes[0]), 1e-12)).sum()) :]


def _rank(M: Array) -> int:
    if not M.size:
        return 0
    sizes = np.linalg.svd(M, compute_uv=False)
    return int((sizes > RANK).sum())


def _unit(x: Array) -> Array:
    return x / max(float(np.linalg.norm(x)), 1e-12)


OPEN = 0.01
"""Residual (scaled units) above which the start counts as open, so that there is no branch to keep."""
BLURRED = 1e-3
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
                f"q0 is an assembly with {len(q0.q)} numbers, of another mechanism; here q has {mechanism.nq}"
            )
        return StartState(q0.q, q0.heading, q0.closing_angles)
    q = np.array(mechanism.q if q0 is None else mechanism._single_q(q0))
    for k in mechanism.space.quaternions_q:
        q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
    return StartState(q, np.zeros(mechanism.nv))


def solve_for_inputs(loops: LoopSystem, values: Mapping[str, Array], start: StartState, steps: int = 1) -> Assembly:
    """Move the driven joints to their values: by certified Newton steps if possible, else by continuation."""
    small = newton_step_for(loops, values) if steps == 1 else None
    there = None if small is None else small.solve(values, start.q, start.heading)
    return follow_branch_to(loops, values, start, steps) if there is None else there


def follow_branch_to(loops: LoopSystem, values: Mapping[str, Array], start: StartState, steps: int = 1) -> Assembly:
    """Move the driven joints from the start to their values by continuation along the branch."""
    course = ContinuationProblem(loops, DrivenJoints(loops, values, start.q, closing_angles=start.closing_angles))
    q, is_shut = close_loops(course, start.q)
    found = _follow(course, q, start, steps) if is_shut else unclosed_assembly(course, q)
    if not found.success and values and float(np.abs(loops.residual(start.q)[0]).max(initial=0.0)) > OPEN:
        return _afresh(loops, values, start.q) or found  # an open start is on no branch
    return found


def _afresh(loops: LoopSystem, values: Mapping[str, Array], q0: Array) -> Assembly | None:
    """Set the driven joints to their values at once, and close the loops near `q0` (nq,); None if that fails."""
    drives = DrivenJoints(loops, values, q0, closing_angles=shortest_closing_angles(loops.mechanism, values))
    goal = drives.set_values(q0, drives.path_length)
    course = ContinuationProblem(loops, drives)
    q, is_shut = close_loops(course, goal)
    if not is_shut or float(np.abs(q - drives.set_values(q, drives.path_length)).max(initial=0.0)) > MAX_CLOSURE_ERROR:
        return None
    found = _follow(course, q, StartState(goal, np.zeros(loops.n)), 1)
    return found if found.success else None


def _follow(course: ContinuationProblem, q: Array, start: StartState, steps: int) -> Assembly:
    """Follow the branch from `q` (nq,), which is near the start and has closed loops."""
    loops, drives = course.loops, course.drives
    drives.set_start(q)
    if drives.path_length < RESIDUAL_TOLERANCE:
        place = course.point_at(q, 0.0)
        if place.rank < course.n and not np.array_equal(q, start.q):
            place = minimize_displacement(course, place, start.q)
        return make_assembly(course, Continuation(course, [place], [course.end], place.rank), place, start.heading)
    walk = start_continuation(course, q, _as_direction(course, q, start.heading))
    walk.advance_to(
        drives.path_length, longest=min(MAX_STEP, drives.path_length / steps), most=max(MOST_STEPS, 2 * steps)
    )
    if walk.stop_reason == "stuck" and is_immobile(walk):
        return immobile_assembly(course, q)
    if walk.stop_reason and walk.stop_reason not in ("limit", "steps"):
        lead, follow = independent_inputs(loops, drives, q)
        if follow:
            return _overdriven(loops, drives.values, start, lead, follow)
    if walk.stop_reason:
        return nearest_assembly(course, walk)
    place, t = walk.at(drives.path_length), walk.heading
    if not walk.redundancy and place.relative_singular_value(walk.rank) < BLURRED:
        landed = solve_at_change_point(walk, drives.path_length)
        place, t = (place, t) if landed is None else landed
    elif walk.redundancy and not course.frozen.any():
        place = minimize_displacement(course, place, start.q)
    return make_assembly(course, walk, place, t[:-1] * loops.unit / max(float(t[-1]), NEAR_SINGULAR))


def _as_direction(course: ContinuationProblem, q: Array, heading: Array) -> Array | None:
    """Return a heading (nv,) as unit direction (n + 1,) towards the goal; None if it does not fit the path."""
    u = heading / course.loops.unit
    if not np.any(u):
        return None
    _, J, by_s = course.drives.residual(q, 0.0)
    ds = -float(by_s @ (J @ u))
    z = np.append(u, ds) * np.sign(ds)
    is_this = float(np.linalg.norm(J @ u + by_s * ds)) < 1e-6 * float(np.linalg.norm(J @ u)) and ds != 0.0
    return z / float(np.linalg.norm(z)) if is_this else None


def _overdriven(
    loops: LoopSystem, values: Mapping[str, Array], start: StartState, lead: list[str], follow: dict[str, list[str]]
) -> Assembly:
    """Make the assembly for dependent driven joints: the independent ones lead, the others are checked."""
    led = solve_for_inputs(loops, {name: values[name] for name in lead}, start)
    drives = DrivenJoints(loops, values, led.q, closing_angles=shortest_closing_angles(loops.mechanism, values))
    errors = {**drives.errors(led.q, 0.0), **led.input_errors}
    if led.success and all(error < MAX_INPUT_ERROR for error in errors.values()):
        text = summary_text(loops, errors, led.singularities)
        return replace(led, inputs=values, message=text, input_errors=errors)
    ties = "; ".join(
        f"{name} cannot be given besides {', '.join(others)} (off by {errors[name]:.4g})" if others
        else f"{name} cannot move (off by {errors[name]:.4g})"
        for name, others in follow.items()
    )  # fmt: skip
    status = led.status if not led.success else Status.CLOSEST
    text = f"too many drives: {ties}" if led.success else f"too many drives: {ties}; and {led.message}"
    return replace(led, inputs=values, success=False, status=status, message=text, input_errors=errors)


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
        met = int(self.success.sum())
        return f"<path of {len(self)} assemblies, of which {met} meet their drives>"

    @property
    def q(self) -> Array:
        """Configurations, (T, nq)."""
        return np.array([one.q for one in self.assemblies])

    @property
    def success(self) -> npt.NDArray[np.bool_]:
        """Whether each assembly succeeded, (T,)."""
        return np.array([one.success for one in self.assemblies], dtype=np.bool_)


def assembly_path(
    mechanism: Mechanism,
    inputs: InputValues,
    q0: ArrayLike | Assembly | None = None,
    *,
    weights: Mapping[str, float] | None = None,
) -> AssemblyPath:
    """Assemble a mechanism for a sequence of input values; see `Mechanism.assembly_path`."""
    values = _as_paths(mechanism, inputs)
    start = as_start_state(mechanism, q0)
    found: list[Assembly] = []
    with cached_loop_system(mechanism, as_weights(weights)) as loops:
        for k in range(len(next(iter(values.values())))):
            found.append(solve_for_inputs(loops, {name: row[k] for name, row in values.items()}, start))
            start = StartState(found[-1].q, found[-1].heading, found[-1].closing_angles)
    return AssemblyPath(tuple(found))


def _as_paths(mechanism: Mechanism, drive: InputValues) -> dict[str, Array]:
    """Validate sequences of input values and return them by joint name, (T, n) each, all with the same T and finite."""
    if not isinstance(drive, Mapping) or not drive:
        raise ShapeError(
            f"drive is given by name, as in {{'crank_joint': angles}} with angles of shape (T,), not {drive!r}"
        )
    values: dict[str, Array] = {}
    for name, given in by_joint_name(mechanism, drive).items():
        try:
            numbers = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"drive {name!r} is an array of numbers, (T,) or (T, n), not {given!r}") from None
        if numbers.ndim not in (1, 2) or not len(numbers):
            raise ShapeError(f"drive {name!r} is of shape (T,), or (T, n) for n freedoms, not {numbers.shape}")
        if not np.isfinite(numbers).all():
            raise NotFinite(f"drive {name!r} is not finite in row {int(np.argwhere(~np.isfinite(numbers))[0][0])}")
        values[name] = numbers[:, None] if numbers.ndim == 1 else numbers
    sizes = {name: len(rows) for name, rows in values.items()}
    if len(set(sizes.values())) > 1:
        raise ShapeError(f"drives have different numbers of rows: {', '.join(f'{k!r} {v}' for k, v in sizes.items())}")
    return values
