"""Differential inverse kinematics at a fixed time step, within limits on position, velocity and acceleration.

Each step of a `Tracker` solves a quadratic program for the velocity at each priority level, and integrates the velocity
with closed loops. The distance of a collision pair bounds its rate of approach. The module also contains the tasks, the
state after a step, and the checks of the start: within limits, with closed loops, and able to stop before the limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from mechanik.collision import Collider
from mechanik.collision.collider import Contact, warn_of_always_close_pairs
from mechanik.collision.collision_body import Obstacle
from mechanik.errors import InvalidArgument, LimitsError, ObjectiveError, StructureError
from mechanik.kernels.tracking.tracking_layout import (
    LIMITED_BY_ACCELERATION,
    LIMITED_BY_POSITION,
    LIMITED_BY_VELOCITY,
)
from mechanik.model import Frame, Mechanism
from mechanik.motion.rate_limits import RateLimits, as_rate_limits
from mechanik.motion.tracking.tracking_problem import (
    TaskTargets,
    build_tracking_problem,
    freeze_angles,
)
from mechanik.objectives import Objective
from mechanik.objectives.constraint_relations import closure_relations, joint_constraint_relations
from mechanik.objectives.objective import ErrorNorms
from mechanik.objectives.relation import evaluate_relation
from mechanik.problem import closing_values
from mechanik.solver.kernel_driver import evaluate_python_residuals
from mechanik.solver.options import DofNames, as_bounds, as_collider, as_dof_mask, check_avoid_arguments
from mechanik.solver.target_writer import Targets
from mechanik.spatial.array import Array, ArrayLike
from mechanik.tiers import kernel_module
from mechanik.validation import as_number, read_only


@dataclass(frozen=True, slots=True)
class Task:
    """An objective with the rate at which its error is reduced.

    Attributes:
        objective: the objective with its level, weight and target.
        gain: 1/s; rate at which the error decays, unless limits, a singularity or other tasks prevent it. The tracker
            uses at most 1 / dt. None: the gain of the tracker.

    Example:
        >>> task = mk.Task(mk.PositionGoal("tool", (0.6, 0.2, 0.0)), gain=5.0)
        >>> task.gain
        5.0
    """

    objective: Objective
    gain: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.objective, Objective):
            raise InvalidArgument(f"a task needs an objective, such as a PoseGoal, not {self.objective!r}")
        if self.gain is not None:
            object.__setattr__(self, "gain", as_gain(self.gain, f"gain of {self.objective._label}"))


def as_gain(gain: float, label: str) -> float:
    """Validate a gain: finite and above 0, 1/s."""
    value = as_number(gain, label)
    if value <= 0.0:
        raise ObjectiveError(f"{label} must be above 0 (1/s), not {value:g}")
    return value


def as_tasks(tasks: Objective | Task | Iterable[Objective | Task]) -> tuple[Task, ...]:
    """Convert an objective, a task or several of them to tasks.

    Raises:
        InvalidArgument: an item is neither a task nor an objective.
        ObjectiveError: the list is empty.
    """
    items = (tasks,) if isinstance(tasks, Objective | Task) else tasks
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise InvalidArgument(f"tasks must be tasks or objectives, such as a PoseGoal, not {tasks!r}")
    result = tuple(item if isinstance(item, Task) else Task(item) for item in items)
    if not result:
        raise ObjectiveError("the list of tasks is empty; give at least one")
    return result


LIMIT_NAMES = {
    LIMITED_BY_ACCELERATION: "acceleration",
    LIMITED_BY_VELOCITY: "velocity",
    LIMITED_BY_POSITION: "position",
}
"""Name of each limit by the absolute value of its code in the kernel."""


class TrackerStatus(Enum):
    """Outcome of a tracker step; the value is a description.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.4])
        >>> tracker = mk.Tracker(arm, mk.PositionGoal("tool", (0.6, 0.2, 0)), dt=0.01, q0=[-0.5, 1.0], velocity=1.0)
        >>> status = tracker.step().status
        >>> status is mk.TrackerStatus.MOVED, status.value
        (True, 'within all limits')
    """

    MOVED = "within all limits"
    BRAKED = (
        "no velocity was found that keeps all limits, closed loops and the clearance; acceleration limits were exceeded"
    )
    STOPPED = "no velocity was found that keeps closed loops and the clearance; stopped at once"
    TOO_NEAR = (
        "within all limits, but a pair was closer than the clearance at the start of the step; pairs are separated as "
        "far as the limits permit"
    )

    def __repr__(self) -> str:
        return self.name


STATUS_BY_CODE = (TrackerStatus.MOVED, TrackerStatus.BRAKED, TrackerStatus.STOPPED, TrackerStatus.TOO_NEAR)
"""Status of each return code of `Tracker.advance`."""
TOO_NEAR_CODE = STATUS_BY_CODE.index(TrackerStatus.TOO_NEAR)


@dataclass(frozen=True, slots=True, eq=False)
class TrackerState:
    """State of a tracker after a step.

    Attributes:
        q: (nq,), read-only.
        v: (nv,) velocity of the last step, rad/s or m/s; read-only.
        time: s, since the start or the last reset.
        status: outcome of the step.
        contacts: pairs that are closer than the clearance at `q`, the closest first. Always empty if no pair violated
            the clearance by more than `CLEARANCE_SLACK` (0.1 mm) at the start of the step.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.4])
        >>> tracker = mk.Tracker(arm, mk.PositionGoal("tool", (0.6, 0.2, 0)), dt=0.01, q0=[-0.5, 1.0], velocity=1.0)
        >>> state = tracker.step()
        >>> state.status, state.limits
        (MOVED, {'joint2': 'velocity'})
    """

    q: Array
    v: Array
    time: float
    status: TrackerStatus
    contacts: tuple[Contact, ...]
    _names: tuple[str, ...] = field(repr=False)
    _limit_codes: np.ndarray[tuple[int], np.dtype[np.int64]] = field(repr=False)

    @property
    def limits(self) -> Mapping[str, str]:
        """Kind of the active limit by dof name: "acceleration", "velocity" or "position"; only dofs at a limit."""
        return {
            name: LIMIT_NAMES[abs(code)]
            for name, code in zip(self._names, self._limit_codes.tolist(), strict=True)
            if code
        }


LIMIT_TOLERANCE = 1e-9
"""rad or m: largest accepted violation of a position limit at the start, because solver results may violate limits by
rounding; the value is clipped."""


def stopping_distance(v: float, acceleration: float, dt: float) -> float:
    """Distance (rad or m) that a dof at speed v >= 0 moves until it stops, with full deceleration in steps of dt."""
    if not math.isfinite(acceleration):
        return 0.0
    step_count = math.ceil(v / (acceleration * dt)) - 1
    return dt * (step_count * v - acceleration * dt * step_count * (step_count + 1) / 2) if step_count > 0 else 0.0


def check_start(
    mechanism: Mechanism, q: Array, v: Array, bounds: tuple[Array, Array], rates: tuple[Array, Array], dt: float
) -> None:
    """Reject a start from which limits cannot be kept; clip values that exceed position limits by rounding.

    Args:
        q: (nq,) start configuration; it is clipped in place.
        v: (nv,) start velocity, rad/s or m/s.
        bounds: lower and upper limits, (nq,) each.
        rates: largest velocities and accelerations, (nv,) each.
        dt: time step, s.

    Raises:
        LimitsError: a value or a velocity is outside its limits, or a dof cannot stop before its limit.
    """
    space = mechanism.space
    for k, name in enumerate(space.q_names):
        lower, upper = float(bounds[0][k]), float(bounds[1][k])
        if not lower - LIMIT_TOLERANCE <= q[k] <= upper + LIMIT_TOLERANCE:
            raise LimitsError(
                f"{name!r} starts at {q[k]:.6g}, outside its limits {lower:.6g} to {upper:.6g} (rad or m); start "
                "within the limits, or change them with limits="
            )
    q[:] = np.clip(q, bounds[0], bounds[1])
    for k, name in enumerate(space.v_names):
        if abs(v[k]) > rates[0][k]:
            raise LimitsError(
                f"{name!r} starts at {v[k]:.6g}, faster than its velocity limit {rates[0][k]:.6g} (rad/s or m/s); "
                "start slower, or change the limit with velocity="
            )
    for k, i in zip(space.scalars_q.tolist(), space.scalars_v.tolist(), strict=True):
        distance_to_stop = stopping_distance(abs(float(v[i])), float(rates[1][i]), dt)
        distance_to_limit = float(bounds[1][k] - q[k] if v[i] > 0 else q[k] - bounds[0][k])
        if v[i] != 0.0 and distance_to_stop > distance_to_limit:
            raise LimitsError(
                f"{space.q_names[k]!r} starts at a velocity of {v[i]:.6g} (rad/s or m/s) and needs "
                f"{distance_to_stop:.4g} (rad or m) to stop, but its limit is {distance_to_limit:.4g} (rad or m) away; "
                "start slower or farther from the limit"
            )


def check_loops_closed(mechanism: Mechanism, q: Array, tolerance: float) -> None:
    """Reject a start at which a loop is not closed or a joint constraint is violated.

    Args:
        q: (nq,).
        tolerance: m and rad; the residual of joint constraints is compared with the same number.

    Raises:
        StructureError: a loop is not closed or a joint constraint is violated; the message contains its name.
    """
    for name, closure in mechanism.closures.items():
        for relation in closure_relations(mechanism, closure):
            error = float(np.abs(evaluate_relation(mechanism, relation, q)[0]).max(initial=0.0))
            if error > tolerance:
                raise StructureError(
                    f"the loop of {name!r} is not closed at the start: error {error:.3g} (m or rad); close it first, "
                    "for example with mk.Solver(mechanism).solve(q0=q)"
                )
    for name, relation in joint_constraint_relations(mechanism).items():
        error = float(np.abs(evaluate_relation(mechanism, relation, q)[0]).max(initial=0.0))
        if error > tolerance:
            raise StructureError(
                f"the joint constraint {name!r} is violated at the start: error {error:.3g}; solve for it first, for "
                "example with mk.Solver(mechanism).solve(q0=q)"
            )


MIN_SEPARATION_RATE = 0.01
"""m/s: smallest desired rate of separation of a pair that is too close, unless MAX_STEP_SHARE requires a smaller rate.
A rate proportional to the violation alone would make the end of the separation slow."""
MAX_STEP_SHARE = 0.2
"""Largest desired change of a distance in a step, as a ratio to the difference between distance and clearance."""
CLEARANCE_SLACK = 1e-4
"""m: tolerated violation of the clearance, because the motion within a step is curved. A larger violation is reported,
and the pair is separated."""
STOP_MARGIN_STEPS = 2
"""Number of time steps added to the stopping time, because the velocity after this step is not determined yet."""


def stopping_time(v: Array, acceleration: Array, dt: float) -> float:
    """Time (s) until all dofs (n,) are at rest, if all of them decelerate in proportion to their velocities.

    A margin of STOP_MARGIN_STEPS time steps is included.
    """
    return float(np.max(np.abs(v) / acceleration, initial=0.0)) + STOP_MARGIN_STEPS * dt


def separation_rates(
    distances: Array, clearance: float, stop_time: float, recovery_rate: float, dt: float
) -> tuple[Array, Array]:
    """Desired and smallest allowed rates of change of the distances, (n,) each, m/s.

    A distance that decreases at rate r decreases by r T / 2 while all dofs decelerate together for a time T. The rate
    is so small that the distance above the clearance is at least four times this decrease, because the rate changes
    while links rotate. Distances below the clearance must increase. The smallest allowed rate applies if the desired
    rate is impossible: then no distance may become smaller than the clearance minus CLEARANCE_SLACK, or than the
    current smallest distance if this is smaller.

    Args:
        distances: (n,) distances of the pairs, m.
        clearance: m.
        stop_time: T, s.
        recovery_rate: 1/s; desired rate of separation as a ratio to the missing distance.
        dt: time step, s.
    """
    max_rate, shortfall = MAX_STEP_SHARE / dt, clearance - distances
    approach_rates = min(0.5 / stop_time, max_rate) * shortfall
    rates = np.maximum(min(recovery_rate, max_rate) * shortfall, np.minimum(MIN_SEPARATION_RATE, max_rate * shortfall))
    rates = np.where(shortfall > 0.0, rates, approach_rates)
    min_distance = min(clearance - CLEARANCE_SLACK, float(distances.min(initial=np.inf)))
    return rates, max_rate * (min_distance - distances)


def as_slice(indices: np.ndarray[tuple[int], np.dtype[np.int64]]) -> slice | np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return consecutive indices as a slice, with which NumPy reads and writes faster; other indices unchanged."""
    count = len(indices)
    is_consecutive = count > 0 and bool((np.diff(indices) == 1).all())
    return slice(int(indices[0]), int(indices[0]) + count) if is_consecutive else indices


step_kernel = kernel_module("tracking.tracking_step")

MAX_CLOSURE_ERROR = 1e-8
"""m and rad: largest error of loop closures and joint constraints at the start."""
EVALUATE_ONLY = -1
"""Value of the kernel argument `pair_row_count` for which only residuals are evaluated, without a step."""
ALWAYS_NEAR_DISTANCE = 0.1
"""m: pairs closer than the clearance plus this distance are always considered."""
STOP_DISTANCE_RATIO = 4.0
"""Ratio of a distance to the product of the stopping time and the speed of the fastest link origin. Pairs closer than
the clearance plus this distance are considered. A ratio above 1 is needed because two links may approach each other."""


class Tracker:
    """Track moving targets at a fixed time step: each step is the best velocity for the tasks within all limits.

        tracker = mk.Tracker(arm, mk.PoseGoal("tool", X_world_tool), dt=1e-3, velocity=2.0, acceleration=10.0)
        while running:
            state = tracker.step(X_world_target)
            send(state.q, state.v)

    After every step positions, velocities and accelerations are within their limits, and every dof can still stop
    before its position limit. If loops or obstacles make this impossible, acceleration limits are exceeded, and the
    status of the step is BRAKED or STOPPED. Tasks of a lower priority level move only in the null space of the levels
    above. Loops stay closed. The tracker does not move the mechanism. Create a new tracker after an edit of the
    mechanism.

    Args:
        mechanism: the mechanism.
        tasks: objectives, or tasks, which may have a gain.
        dt: s, time step.
        q0: (nq,) start configuration, at rest; default: the current configuration of the mechanism.
        velocity: largest velocity: a number for all dofs, nv numbers, or numbers by joint or dof name; m/s and rad/s.
            Joints without a value use the limit of the model file, if there is any.
        acceleration: largest acceleration in the same form, m/s^2 and rad/s^2. None: unlimited.
        gain: 1/s, rate at which the errors of tasks without a gain decay. None: 1 / dt, which removes the whole error
            in one step if limits allow it.
        damping: damping of velocities at a singularity; it falls smoothly to 0 away from singularities.
        lock: joints or dofs that must not move.
        limits: (lower, upper) by joint or dof name, which replace the limits of the mechanism; rad or m.
        avoid: a `Collider`, or obstacles and "self". Pairs that are too close, at the start or because an obstacle was
            moved, are separated as far as the limits permit.
        clearance: m, smallest allowed distance.
        allow, forbid: pairs of names that are excluded from the collision check, or included although excluded by
            default.
        follow: whether the velocity of moving targets is used as feed-forward, which avoids lag. If a target jumps or
            moves faster than the mechanism can, no feed-forward is used, and the mechanism decelerates in time to stop
            at the target.

    Raises:
        LimitsError: the start violates limits, or `dt` or a rate limit is not above 0.
        StructureError: loops are not closed or joint constraints are violated at the start.
        ObjectiveError: there are no tasks, a gain is not above 0, or `damping` is negative.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.4])
        >>> tracker = mk.Tracker(arm, mk.PositionGoal("tool", (0.6, 0.2, 0)), dt=0.01, q0=[-0.5, 1.0], velocity=1.0)
        >>> for _ in range(100):
        ...     state = tracker.step()
        >>> state.status, round(tracker.errors()[0].position, 6)
        (MOVED, 0.0)
    """

    def __init__(
        self,
        mechanism: Mechanism,
        tasks: Objective | Task | Iterable[Objective | Task],
        dt: float = 1e-3,
        *,
        q0: ArrayLike | None = None,
        velocity: RateLimits | None = None,
        acceleration: RateLimits | None = None,
        gain: float | None = None,
        damping: float = 0.05,
        lock: DofNames | str | None = None,
        limits: Mapping[str, ArrayLike] | None = None,
        avoid: Collider | Iterable[str | Obstacle] | None = None,
        clearance: float = 0.0,
        allow: Iterable[tuple[str, str]] = (),
        forbid: Iterable[tuple[str, str]] = (),
        follow: bool = True,
    ) -> None:
        if not isinstance(mechanism, Mechanism):
            raise InvalidArgument(f"the first argument must be a mechanism, not {mechanism!r}")
        self.mechanism = mechanism
        self.dt = as_number(dt, "dt")
        if not self.dt > 0.0:
            raise LimitsError(f"dt must be above 0 seconds, not {self.dt:g}")
        self.tasks = as_tasks(tasks)
        default_gain = 1.0 / self.dt if gain is None else as_gain(gain, "gain")
        # a larger gain would overshoot in a single step
        self._gains = [min(default_gain if item.gain is None else item.gain, 1.0 / self.dt) for item in self.tasks]
        task_objectives = [task.objective for task in self.tasks]
        self._bounds = as_bounds(mechanism, limits)
        velocities = as_rate_limits(mechanism, velocity, "velocity", from_file=True)
        self._rates = velocities, as_rate_limits(mechanism, acceleration, "acceleration")
        damping_value = as_number(damping, "damping")
        if damping_value < 0.0:
            raise ObjectiveError(f"damping must be 0 or more, not {damping_value:g}")
        can_move = np.ones(mechanism.nv, dtype=np.bool_)
        if lock is not None:
            can_move &= ~as_dof_mask(mechanism, lock, False)
        self._clearance = as_number(clearance, "clearance")
        pair_rules = tuple(allow), tuple(forbid)
        check_avoid_arguments(mechanism, avoid, self._clearance, *pair_rules)
        self._collider = as_collider(mechanism, avoid, *pair_rules)
        if self._collider is not None:
            warn_of_always_close_pairs(self._collider, self._clearance)
        q_start = mechanism.q if q0 is None else mechanism._single_q(q0)
        self._q_start = np.array(q_start)
        objectives = [freeze_angles(mechanism, item, q_start, self._bounds) for item in task_objectives]
        pair_count = 0 if self._collider is None else len(self._collider.distance_names)
        self._problem = problem = build_tracking_problem(
            mechanism, objectives, can_move.tolist(), self._bounds, self._rates, self._gains, pair_count, self.dt,
            damping_value, follow,
        )  # fmt: skip
        relations = [item.relations(mechanism) for item in objectives]
        self._targets = TaskTargets(mechanism, problem, task_objectives, relations, self._bounds)
        self._edit_count, self._revision = Frame.edit_count, mechanism.revision
        packed = problem.subproblem.packed
        # the trial configuration is q, then the values of the joints that close loops
        self._trial, self._q = packed.trial, packed.trial_q
        # `columns` has the index in v of each column; nv and above are joints that close loops
        self._dof_columns = np.flatnonzero(problem.columns < mechanism.nv)
        self._dof_indices, self._scale = problem.columns[self._dof_columns], packed.column_scales[self._dof_columns]
        self._rate_index, self._v_index = as_slice(self._dof_columns), as_slice(self._dof_indices)
        names = mechanism.space.v_names
        self._names: tuple[str, ...] = tuple(names[int(k)] for k in self._dof_indices)
        self._kernel_arguments, self._column_rates = problem.kernel_arguments, problem.column_rates
        self._v = np.zeros(mechanism.nv)
        self._is_too_near = False
        self.reset(q_start)

    def __repr__(self) -> str:
        objectives = ", ".join(repr(objective) for objective in self.objectives)
        return f"<tracker of {self.mechanism!r} every {self.dt:g} s: {objectives}>"

    # ---- state ------------------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """Current configuration (nq,); a copy."""
        return self._q.copy()

    @property
    def v(self) -> Array:
        """Current velocity (nv,), rad/s or m/s; a copy."""
        return self._v.copy()

    @property
    def time(self) -> float:
        """Time since the start or the last reset, s."""
        return self._step_count * self.dt

    @property
    def velocity(self) -> Array:
        """Largest velocities (nv,), rad/s or m/s; infinite without a limit."""
        return self._rates[0].copy()

    @property
    def acceleration(self) -> Array:
        """Largest accelerations (nv,), rad/s^2 or m/s^2; infinite without a limit."""
        return self._rates[1].copy()

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Objectives of the tasks with their current targets."""
        return self._targets.objectives

    def errors(self) -> tuple[ErrorNorms, ...]:
        """Errors of all tasks, m and rad; the call is too slow for every step of a fast control loop."""
        return tuple(objective.error(self.mechanism, self._q) for objective in self.objectives)

    def reset(self, q: ArrayLike | None = None, v: ArrayLike | None = None) -> None:
        """Restart at q with velocity v; if q or v is invalid, the state does not change.

        Args:
            q: (nq,) with closed loops; default: q of the previous start.
            v: (nv,) rad/s or m/s; all dofs must be able to stop before their limits. It is not checked whether v keeps
                loops closed. Default: at rest.

        Raises:
            LimitsError: q or v violates limits, a dof cannot stop before its limit, or v moves a locked dof.
            StructureError: loops are not closed or joint constraints are violated at q, or the mechanism was edited.
        """
        self._check_current()
        mechanism, problem = self.mechanism, self._problem
        q_start = self._q_start.copy() if q is None else np.array(mechanism._single_q(q))
        v_start = np.zeros(mechanism.nv) if v is None else mechanism.space.check_v(v).copy()
        for k in mechanism.space.quaternions_q:
            q_start[k : k + 4] /= np.linalg.norm(q_start[k : k + 4])
        check_start(mechanism, q_start, v_start, self._bounds, self._rates, self.dt)
        is_fixed = np.ones(mechanism.nv, dtype=np.bool_)
        is_fixed[self._dof_indices] = False
        if v_start[is_fixed].any():
            raise LimitsError(
                f"{mechanism.space.v_names[int(np.flatnonzero(v_start * is_fixed)[0])]!r} is locked; its velocity must "
                "be 0"
            )
        check_loops_closed(mechanism, q_start, MAX_CLOSURE_ERROR)
        closure_values = closing_values(mechanism, problem.problem, q_start)
        self._trial[:] = 0.0
        self._q[:] = q_start
        self._trial[mechanism.nq : mechanism.nq + len(closure_values)] = closure_values
        self._v[:] = v_start
        column_rates = np.zeros(len(problem.columns))
        column_rates[self._dof_columns] = v_start[self._dof_indices] / self._scale
        problem.reset_state(column_rates)
        self._last_positions: Array | None = None
        self._step_count, self._targets_changed, self._is_first_step = 0, True, True
        self._q_start = q_start.copy()

    # ---- steps ------------------------------------------------------------------------------

    def step(self, targets: Targets | None = None) -> TrackerState:
        """Advance by a time step.

        Args:
            targets: targets at the end of the step, as for `Solver.solve`: the target of the only task, a target for
                each task, or targets by task name. Tasks without a new target keep their target.

        Returns:
            The new state.
        """
        code = self.advance(targets)
        contacts: tuple[Contact, ...] = ()
        if self._is_too_near and self._collider is not None:
            contacts = self._collider.contacts(self._q, self._clearance)
        return TrackerState(
            read_only(self._q.copy()), read_only(self._v.copy()), self._step_count * self.dt, STATUS_BY_CODE[code],
            contacts, self._names, self._problem.limit_codes[self._dof_columns],
        )  # fmt: skip

    def advance(self, targets: Targets | None = None) -> int:
        """Advance by a time step as in `step`, without building a state; read `q` and `v` afterwards.

        Args:
            targets: targets at the end of the step, as in `step`. None: all tasks keep their targets.

        Returns:
            Code of the status: 0 (MOVED), 1 (BRAKED), 2 (STOPPED) or 3 (TOO_NEAR); see `TrackerStatus`.
        """
        if Frame.edit_count != self._edit_count:
            self._check_current()
        problem = self._problem
        if targets is not None:
            self._targets.set_targets(targets, self._q)
            self._targets_changed = True
        pair_row_count = 0
        if problem.has_functions or self._collider is not None or self._is_first_step:
            pair_row_count = self._evaluate()
        code = int(step_kernel.tracking_step(*self._kernel_arguments, pair_row_count, self._targets_changed))
        self._targets_changed = False
        self._step_count += 1
        self._v[self._v_index] = self._column_rates[self._rate_index] * self._scale
        return TOO_NEAR_CODE if self._is_too_near and code == 0 else code

    # ---- internals --------------------------------------------------------------------------

    def _evaluate(self) -> int:
        """Evaluate Python residuals and the distances of collision pairs; return the number of distance rows."""
        problem, mechanism = self._problem, self.mechanism
        if problem.has_functions:
            evaluate_python_residuals(mechanism, problem.subproblem.packed, problem.relations)
        if self._is_first_step:  # sets the previous residuals: before the first step, targets have no velocity
            step_kernel.tracking_step(*self._kernel_arguments, EVALUATE_ONLY, True)
            self._is_first_step = False
        if self._collider is None:
            return 0
        positions = mechanism.poses(self._q)[:, :3, 3]
        largest_motion = (
            0.0
            if self._last_positions is None
            else float(np.linalg.norm(positions - self._last_positions, axis=1).max())
        )
        self._last_positions = positions
        stop_time = stopping_time(self._v, self._rates[1], self.dt)
        max_distance = self._clearance + max(
            ALWAYS_NEAR_DISTANCE, STOP_DISTANCE_RATIO * stop_time * largest_motion / self.dt
        )
        distances, distance_jacobian = self._collider.distances_and_jacobian(self._q, max_distance=max_distance)
        rates, min_rates = separation_rates(distances, self._clearance, stop_time, problem.limit_approach_rate, self.dt)
        self._is_too_near = len(distances) > 0 and float(distances.min()) < self._clearance - CLEARANCE_SLACK
        jacobian = distance_jacobian[:, self._v_index] * self._scale
        problem.write_pairs(jacobian, self._rate_index, rates, min_rates, self._is_too_near)
        return len(distances)

    def _check_current(self) -> None:
        """Reject a mechanism that was edited after the tracker was created."""
        edit_count = Frame.edit_count  # read first: an edit during the comparison is noticed in the next call
        if self.mechanism.revision != self._revision:
            raise StructureError("the mechanism was edited after the tracker was created; create a new tracker")
        self._edit_count = edit_count
