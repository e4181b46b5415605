"""The path-following problem: targets along a path, projection onto the goals, and collisions along segments.

`PathTargets` converts targets of any form to a function of the path parameter s. `FollowProblem` projects a
configuration onto the goals at s: to a nearby configuration that meets them. Between two waypoints a path is straight
in joint space and does not meet the goals exactly, so segments are checked for collisions separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt

from mechanik.errors import (
    InvalidArgument,
    MechanikError,
    NotARotation,
    NotFinite,
    NotSolved,
    ObjectiveError,
    ShapeError,
)
from mechanik.model import Mechanism
from mechanik.motion.follow.cartesian_path import CartesianPath
from mechanik.motion.follow.joint_path import COLLISION_CHECK_STEP, Path, as_parameters
from mechanik.objectives import Objective, PoseGoal
from mechanik.objectives.objective import as_objectives
from mechanik.objectives.pose_goals import LinkGoal
from mechanik.solver import Solver
from mechanik.solver.batch import supports_lanes
from mechanik.solver.batch.batch_backends import goal_poses
from mechanik.solver.options import as_bounds
from mechanik.solver.request import SolveRequest
from mechanik.solver.solution import Solution
from mechanik.solver.target_writer import with_targets
from mechanik.spatial import Pose, interpolation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.pose import as_pose_matrix

if TYPE_CHECKING:
    from mechanik.collision import Collider


DEFAULT_WAYPOINTS = 200
"""Default number of waypoints if the targets are a function of s."""

GoalsAlongPath = str | Objective | Iterable[Objective] | Callable[[float], Objective | Iterable[Objective]]
"""A link name, whose pose is the goal; objectives whose targets change; or a function of s that returns objectives."""


class PathTargets:
    """The targets along a path as a function of s, given as a function, a list or a `CartesianPath`.

    Attributes:
        s: (N,) parameters of the waypoints.
        objectives: the objectives at the first waypoint.
        has_fixed_objectives: whether only the targets of the objectives change along s, not the objectives themselves.
    """

    def __init__(self, goals: GoalsAlongPath, targets: Any, s: int | ArrayLike | None) -> None:
        self._function: Callable[[float], Any] | None = None
        self._waypoint_targets: Sequence[Any] | Array = ()
        self._target_cache: Array | None = None
        self.has_fixed_objectives = not callable(goals)
        source: Any = goals if callable(goals) else targets
        if source is None:
            raise ObjectiveError("the goals do not change along the path; give targets, or goals as a function of s")
        if callable(goals) and targets is not None:
            raise ObjectiveError("goals that are a function of s contain their targets; omit targets")
        if callable(source):
            self._function = source
            self.s = _waypoint_parameters(s)
        else:
            self._waypoint_targets = _as_target_list(source)
            if is_waypoint_count(s) and s != len(self._waypoint_targets):
                raise ShapeError(
                    f"there are {len(self._waypoint_targets)} targets, one for each waypoint, so s cannot be {s}; "
                    "omit s"
                )
            self.s = as_parameters(None if is_waypoint_count(s) else s, len(self._waypoint_targets))
        first_target = self.target(float(self.s[0]))
        if callable(goals):
            self.objectives = as_objectives(first_target)
        elif isinstance(goals, str):
            self.objectives = (PoseGoal(goals, first_target),)
        else:
            self.objectives = as_objectives(goals)
        if not self.objectives:
            raise ObjectiveError("the list of goals is empty; give at least one")
        if self.has_fixed_objectives:
            for k, target in enumerate(self._waypoint_targets):
                self._check_target(k, target)

    def _check_target(self, k: int, target: Any) -> None:
        """Reject a target of the list that does not fit the objectives; the message contains its index."""
        if target is None:
            raise ShapeError(f"targets[{k}] is None; every waypoint needs a target")
        try:
            with_targets(self.objectives, target)
        except MechanikError as error:
            raise with_location(error, f"targets[{k}]") from error

    def target(self, s: float) -> Any:
        """Targets of the objectives at s; if the objectives themselves change, the objectives at s."""
        if self._function is not None:
            try:
                return self._function(s)
            except Exception as error:
                error.add_note(f"The function was called for the target at s = {s:g}.")
                raise
        k = min(max(int(np.searchsorted(self.s, s, side="right")) - 1, 0), len(self.s) - 1)
        if s <= self.s[k] or k == len(self.s) - 1:
            return self._waypoint_targets[k]
        share = float((s - self.s[k]) / (self.s[k + 1] - self.s[k]))
        return interpolate_target(self._waypoint_targets[k], self._waypoint_targets[k + 1], share)

    def targets(self, s: Array) -> Array:
        """Targets (K, ...) at s (K,), if all targets are arrays of one shape; targets at the waypoints are cached."""
        k = np.minimum(np.searchsorted(self.s, s), len(self.s) - 1)
        if (self.s[k] == s).all():
            if self._target_cache is None:
                self._target_cache = self._targets(self.s)
            return self._target_cache[k]
        return self._targets(s)

    def _targets(self, s: Array) -> Array:
        """Targets (K, ...) at s (K,), without the cache."""
        if isinstance(self._function, CartesianPath):
            return self._function(s)
        arrays = [np.asarray(self.target(s_value), dtype=np.float64) for s_value in s.tolist()]
        for s_value, array in zip(s.tolist(), arrays, strict=True):
            if array.shape != arrays[0].shape:
                raise ShapeError(
                    f"the target at s = {s_value:g} has shape {array.shape}, but others have shape {arrays[0].shape}"
                )
        X = np.array(arrays)
        if X.shape[1:] != (4, 4):
            return X
        try:
            return as_pose_matrix(X)
        except MechanikError:
            for s_value, array in zip(s.tolist(), X, strict=True):
                as_pose_matrix(array, f"the target at s = {s_value:g}")
            raise


def with_location(error: MechanikError, location: str) -> MechanikError:
    """Error about a target whose message starts with the location of the target.

    NotFinite and NotARotation keep their class; other errors become ShapeError.
    """
    error_type = type(error) if type(error) in (NotFinite, NotARotation) else ShapeError
    return error_type(f"{location}: {error}")


def interpolate_target(a: Any, b: Any, share: float) -> Any:
    """Interpolate between two targets: poses as on a `Line`, rotations and quaternions by slerp, numbers linearly.

    Every array of 4 numbers counts as a quaternion. If one of the targets is None, the result is `a`.

    Args:
        share: from 0 (a) to 1 (b).
    """
    if a is None or b is None:
        return a
    if isinstance(a, Mapping):
        return {name: interpolate_target(value, b[name], share) for name, value in a.items()}  # type: ignore[misc]
    if isinstance(a, Pose):
        return interpolation.poses(a.matrix, np.asarray(b), np.float64(share))
    try:
        x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    except (TypeError, ValueError):
        return tuple(interpolate_target(value, other_value, share) for value, other_value in zip(a, b, strict=True))
    if x.shape == (4, 4):
        return interpolation.poses(x, y, np.float64(share))
    if x.shape == (3, 3):
        return interpolation.rotations(x, y, np.float64(share))
    if x.shape == (4,):
        return interpolation.slerp(x, y, np.float64(share))
    return (1.0 - share) * x + share * y


def is_waypoint_count(s: int | ArrayLike | None) -> TypeGuard[int]:
    """Whether s is a number of waypoints, and not their parameters."""
    return isinstance(s, int | np.integer) and not isinstance(s, bool)


def _waypoint_parameters(s: int | ArrayLike | None) -> Array:
    """Validate the argument `s` of `follow` and return the parameters (N,) of the waypoints."""
    if s is None:
        return np.linspace(0.0, 1.0, DEFAULT_WAYPOINTS)
    if is_waypoint_count(s):
        if s < 2:
            raise ShapeError(f"a path needs 2 or more waypoints, not {s}")
        return np.linspace(0.0, 1.0, s)
    try:
        values = np.asarray(s, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"s must be a number of waypoints, or their parameters (N,), not {s!r}") from None
    if values.ndim != 1 or len(values) < 2:
        raise ShapeError(
            "s must be a number of waypoints, or their parameters (N,) with N of 2 or more, "
            f"not of shape {values.shape}"
        )
    return as_parameters(values, len(values))


def _as_target_list(targets: Any) -> Sequence[Any] | Array:
    """Check that `targets` is a sequence with 2 or more entries, and return it."""
    if isinstance(targets, Mapping | str) or not hasattr(targets, "__len__"):
        raise InvalidArgument(
            "targets must be a Cartesian path, a function of s, or a list with a target for each waypoint, "
            f"not {targets!r}"
        )
    if len(targets) < 2:
        raise ShapeError(f"a path needs 2 or more waypoints, but there are {len(targets)} targets")
    return targets


Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int64]
FEASIBLE, UNMET, IN_COLLISION = 0, 1, 2
"""Result codes of a projection: all goals are met and the clearance is kept; a goal is not met; the clearance is
violated."""
FULL_ROTATION = 2.0 * np.pi
"""rad."""
LIMIT_TOLERANCE = 1e-9
"""rad or m: a dof is at its limit if its distance to the limit is smaller."""
POLISH_RATIO = 1e-3
"""Tolerance for the final polishing of a path, as a ratio of the tolerance of each objective."""
MAX_POLISH_CHANGE = 1e-3
"""rad or m: largest change of a dof that polishing may make."""
AVOIDANCE_MARGIN = 1e-3
"""m: extra clearance of a projection around obstacles, because the segments between waypoints are straight."""
SOLVER_CACHE_SIZE = 64
"""Largest number of cached solvers, one for each s, if the objectives themselves change along s."""


class FollowProblem:
    """A mechanism with goals along s, joint limits and obstacles, and the projection onto the goals.

    The solver ignores the limits of joints with a range of a full rotation or more, because several values of such a
    joint give the same pose. The roadmap search selects the number of rotations that fits the limits.

    Attributes:
        mechanism: the mechanism; it is not moved.
        path_targets: the goals along s.
        space: the configuration space of the mechanism.
        lower, upper: (nq,) joint limits of the final path.
        is_multi_turn: (nq,) mask of the rotational joints with finite limits and a range of a full rotation or more.
        can_rotate_fully: (nq,) mask of the multi-turn joints and of the rotational joints without limits.
        moving_dofs: indices into v of the dofs that may move and affect the goals.
        affecting_dofs: the same as a mask, (nv,).
        length_unit: characteristic length of the problem, m.
        redundancy: number of dofs that the goals leave undetermined, by the rank of the Jacobian at random
            configurations.
        can_find_all_branches: whether the solver can find all branches at one s quickly, for example by a closed form.
        solver: the solver for the goals, without collision avoidance.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        path_targets: PathTargets,
        *,
        limits: Mapping[str, ArrayLike] | None,
        collider: Collider | None,
        clearance: float,
        settings: dict[str, Any],
    ) -> None:
        self.mechanism, self.path_targets, self.space = mechanism, path_targets, mechanism.space
        self.lower, self.upper = as_bounds(mechanism, limits)
        self._collider, self._clearance = collider, clearance
        self._settings = settings
        self._limits = dict(limits or {})
        self._solvers_by_s: dict[float, Solver] = {}
        self._polish_solver: Solver | None = None
        self._avoiding_solver: Solver | None = None
        solver = Solver(mechanism, path_targets.objectives, limits=self._limits or None, **settings)
        self.is_multi_turn, self.affecting_dofs, self.length_unit = self._analyse(solver)
        names = [self.space.q_names[k] for k in np.flatnonzero(self.is_multi_turn).tolist()]
        self._limits |= dict.fromkeys(names, (-np.inf, np.inf))
        self.solver = Solver(mechanism, path_targets.objectives, limits=self._limits, **settings) if names else solver
        goal = path_targets.objectives[0]
        is_chain_goal = (
            self.solver.chain is not None and path_targets.has_fixed_objectives and isinstance(goal, LinkGoal)
        )
        self._goal = goal if is_chain_goal and isinstance(goal, LinkGoal) and supports_lanes(mechanism, goal) else None

    @property
    def is_batched(self) -> bool:
        """Whether many configurations are projected in one kernel call, which is fast."""
        return self._goal is not None

    @property
    def s(self) -> Array:
        """Parameters (N,) of the waypoints."""
        return self.path_targets.s

    def _analyse(self, solver: Solver) -> tuple[Mask, Mask, float]:
        """Compute `is_multi_turn`, `affecting_dofs` and `length_unit`, and set the other attributes of the dofs."""
        target = self.path_targets.target(float(self.s[0])) if self.path_targets.has_fixed_objectives else None
        request = SolveRequest(targets=target, q0=self.mechanism.q)
        with solver.pipeline.search_context(request) as context:
            constraints = context.constraints
            angle_columns = constraints.columns[constraints.is_shiftable]
            q = self.space.random(np.random.default_rng(0), 4)
            J = constraints.residual_and_jacobian(q)[1]
            rank = (
                max((int(np.linalg.matrix_rank(J_sample, tol=1e-6)) for J_sample in J), default=0) if J.shape[1] else 0
            )
            self.redundancy = constraints.n - rank
            self.moving_dofs = constraints.moving_dofs
            length_unit = constraints.length_unit
            self.can_find_all_branches = context.closed_form is not None or constraints._pose is not None
        self._is_angle = np.zeros(self.space.nq, dtype=np.bool_)
        self._is_angle[angle_columns] = True
        is_multi_turn = np.zeros(self.space.nq, dtype=np.bool_)
        joint_range = self.upper - self.lower
        is_multi_turn[angle_columns] = np.isfinite(joint_range[angle_columns]) & (
            joint_range[angle_columns] >= FULL_ROTATION
        )
        self.can_rotate_fully = np.zeros(self.space.nq, dtype=np.bool_)
        self.can_rotate_fully[angle_columns] = ~np.isfinite(joint_range[angle_columns]) | (
            joint_range[angle_columns] >= FULL_ROTATION
        )
        is_affecting = np.zeros(self.space.nv, dtype=np.bool_)
        is_affecting[self.moving_dofs] = True
        return is_multi_turn, is_affecting, length_unit

    # ---- projection onto the goals ----------------------------------------------------------

    def project(self, s: Array, q: Array) -> tuple[Array, Codes]:
        """Project each configuration q (K, nq) onto the goals at its s (K,), by one descent that starts at q.

        Returns:
            Configurations (K, nq), and codes (K,): FEASIBLE, UNMET or IN_COLLISION.
        """
        q_projected, is_met = self._descend(s, q)
        codes = np.where(is_met, FEASIBLE, UNMET)
        if is_met.any():
            codes[np.flatnonzero(is_met)[~self.are_free(q_projected[is_met])]] = IN_COLLISION
        return q_projected, codes

    def are_free(self, q: Array) -> Mask:
        """Return for each configuration of q (K, nq) whether it keeps the clearance, (K,)."""
        if self._collider is None:
            return np.ones(len(q), dtype=np.bool_)
        return np.asarray(self._collider.is_free(self.wrap_into_limits(q), self._clearance))

    def _descend(self, s: Array, q: Array, solver: Solver | None = None) -> tuple[Array, Mask]:
        """Descend from each configuration q (K, nq) to the goals at its s (K,), without collision checks.

        Returns:
            Configurations (K, nq), and whether the goals are met there (K,).
        """
        chain = (self.solver if solver is None else solver).chain
        if self._goal is not None and chain is not None:
            targets = self.path_targets.targets(s)
            if not np.isfinite(targets).all():
                s_value = s[~np.isfinite(targets).reshape(len(s), -1).all(axis=1)][0]
                raise NotFinite(f"the target at s = {s_value:g} has an entry that is not finite")
            X = goal_poses(self._goal, targets, len(s))
            q_projected, is_met, _ = chain.search_at(q[0]).solve_from_starts(X, q)
            return q_projected, np.asarray(is_met, dtype=np.bool_)
        q_projected, is_met = np.empty_like(q), np.zeros(len(q), dtype=np.bool_)
        solvers: dict[float, tuple[Solver, Any]] = {}
        for k, (s_value, start) in enumerate(zip(s.tolist(), q, strict=True)):
            if s_value not in solvers:
                solvers[s_value] = self._solver_and_target(s_value, solver)
            solution = self._solution(s_value, start, *solvers[s_value])
            q_projected[k], is_met[k] = solution.q, solution.success
        return q_projected, is_met

    def _solver_and_target(self, s: float, solver: Solver | None) -> tuple[Solver, Any]:
        """`solver` and the targets at s; `solver_at(s)` if there is no solver or if the objectives change along s."""
        if solver is None or not self.path_targets.has_fixed_objectives:
            return self.solver_at(s)
        return solver, self.path_targets.target(s)

    def _solution(self, s: float, q: Array, solver: Solver, target: Any) -> Solution:
        """Solve from q (nq,); an error about the target contains s.

        There are no restarts, unless the settings contain `restarts` and the solver has no chain search.
        """
        try:
            if solver.chain is None and solver.options.restarts is not None:
                return solver.solve(target, q0=q)
            return solver.solve(target, q0=q, restarts=0)
        except (NotFinite, NotARotation, ShapeError) as error:
            raise with_location(error, f"the target at s = {s:g}") from error

    def solver_at(self, s: float) -> tuple[Solver, Any]:
        """A solver for the goals at s, and the targets for its `solve` (None if its objectives contain them)."""
        if self.path_targets.has_fixed_objectives:
            return self.solver, self.path_targets.target(s)
        if s not in self._solvers_by_s:
            if len(self._solvers_by_s) >= SOLVER_CACHE_SIZE:
                self._solvers_by_s.clear()
            goals = self.path_targets.target(s)
            try:
                self._solvers_by_s[s] = Solver(self.mechanism, goals, limits=self._limits or None, **self._settings)
            except MechanikError as error:
                error.add_note(f"The error is in the goals at s = {s:g}.")
                raise
        return self._solvers_by_s[s], None

    def project_around_obstacles(self, s: Array, q: Array) -> tuple[Array, Mask]:
        """Project onto the goals at s and use the redundancy of the mechanism to keep the clearance.

        Args:
            s: (K,).
            q: (K, nq), collision-free.

        Returns:
            Configurations (K, nq), and (K,) whether the goals are met there and the clearance is kept.
        """
        q_projected, is_met = q.copy(), np.zeros(len(q), dtype=np.bool_)
        if not self.can_avoid_obstacles:
            return q_projected, is_met
        if self._avoiding_solver is None:
            self._avoiding_solver = Solver(
                self.mechanism, self.path_targets.objectives, limits=self._limits or None, avoid=self._collider,
                clearance=self._clearance + AVOIDANCE_MARGIN, **self._settings,
            )  # fmt: skip
        for k, (s_value, start) in enumerate(zip(s.tolist(), q, strict=True)):
            solution = self._avoiding_solver.solve(self.path_targets.target(s_value), q0=start, restarts=0)
            q_projected[k], is_met[k] = solution.q, solution.success
        is_met[is_met] = self.are_free(q_projected[is_met])
        return q_projected, is_met

    @property
    def can_avoid_obstacles(self) -> bool:
        """Whether `project_around_obstacles` can be used.

        Batched problems do not use it: for them it is faster to search for another branch from the first waypoint.
        """
        return (
            self._collider is not None
            and bool(self.redundancy)
            and not self.is_batched
            and self.path_targets.has_fixed_objectives
        )

    def project_ignoring_collisions(self, s: Array, q: Array) -> Array:
        """Project as in `project`, without the collision check: configurations (K, nq)."""
        return self._descend(s, q)[0]

    def polish(self, q: Array) -> Array:
        """Refine the waypoints q (N, nq) to POLISH_RATIO times the tolerances, for smooth steps between them.

        A waypoint is not changed if the refined waypoint differs by more than MAX_POLISH_CHANGE or violates the
        clearance. If the objectives themselves change along s, the tolerances are not reduced.
        """
        if self._polish_solver is None:
            goals = [_with_polish_tolerance(objective) for objective in self.path_targets.objectives]
            self._polish_solver = Solver(self.mechanism, goals, limits=self._limits or None, **self._settings)
        q_polished, is_met = self._descend(self.s, q, self._polish_solver)
        is_accepted = (
            is_met
            & (np.abs(self.space.difference(q, q_polished)).max(axis=1, initial=0.0) < MAX_POLISH_CHANGE)
            & self.are_free(q_polished)
        )
        return np.where(is_accepted[:, None], q_polished, q)

    # ---- limits and collisions --------------------------------------------------------------

    def wrapped_difference(self, a: Array, b: Array) -> Array:
        """Difference v (..., nv) from a to b, modulo full rotations of joints that can rotate fully.

        Entries of dofs that do not affect the goals are 0.
        """
        v = self.space.difference(a, b)
        v[..., ~self.affecting_dofs] = 0.0
        columns = self.space.scalars_v[self.can_rotate_fully[self.space.scalars_q]]
        v[..., columns] -= FULL_ROTATION * np.round(v[..., columns] / FULL_ROTATION)
        return v

    def wrap_into_limits(self, q: Array) -> Array:
        """Copy of q (K, nq) with the multi-turn joints shifted into their limits by full rotations."""
        k = np.flatnonzero(self.is_multi_turn)
        q_wrapped = q.copy()
        q_wrapped[:, k] = q[:, k] - FULL_ROTATION * np.ceil((q[:, k] - self.upper[k]) / FULL_ROTATION - 1e-12)
        return q_wrapped

    @property
    def has_collider(self) -> bool:
        """Whether collisions are checked."""
        return self._collider is not None

    def contacts(self, q: Array) -> tuple[Any, ...]:
        """Contacts at q (nq,) that violate the clearance, the deepest first."""
        if self._collider is None:
            return ()
        return tuple(self._collider.contacts(self.wrap_into_limits(q[None])[0], self._clearance))

    def dofs_at_limits(self, q: Array) -> list[str]:
        """Names of the dofs that are at a limit at q (nq,); multi-turn joints are left out."""
        is_at_limit = (q <= self.lower + LIMIT_TOLERANCE) | (q >= self.upper - LIMIT_TOLERANCE)
        is_at_limit &= ~self.is_multi_turn & (self.lower < self.upper) & self._affecting_entries()
        return [self.space.q_names[k] for k in np.flatnonzero(is_at_limit).tolist()]

    def dofs_beyond_limits(self, q: Array) -> list[str]:
        """Names of the dofs that are beyond a limit at q (nq,) for every number of full rotations."""
        q_wrapped, k = q.copy(), np.flatnonzero(self._is_angle & np.isfinite(self.lower) & np.isfinite(self.upper))
        q_wrapped[k] -= FULL_ROTATION * np.round((q[k] - 0.5 * (self.lower[k] + self.upper[k])) / FULL_ROTATION)
        is_outside = (q_wrapped < self.lower - LIMIT_TOLERANCE) | (q_wrapped > self.upper + LIMIT_TOLERANCE)
        is_outside &= self._affecting_entries()
        return [self.space.q_names[k] for k in np.flatnonzero(is_outside & ~self.is_multi_turn).tolist()]

    def without_limits(self) -> FollowProblem:
        """The same problem without joint limits and without collision checks."""
        names = [self.space.q_names[k] for k in self.space.scalars_q.tolist()]
        limits = dict.fromkeys(names, (-np.inf, np.inf))
        return FollowProblem(
            self.mechanism, self.path_targets, limits=limits, collider=None, clearance=0.0, settings=self._settings
        )

    def _affecting_entries(self) -> Mask:
        """Mask (nq,) of the entries of q that affect a goal, without quaternions."""
        is_affecting = np.zeros(self.space.nq, dtype=np.bool_)
        is_affecting[self.space.scalars_q] = self.affecting_dofs[self.space.scalars_v]
        return is_affecting


def _with_polish_tolerance(objective: Objective) -> Objective:
    """Copy of an objective with tolerances multiplied by POLISH_RATIO."""
    polish_objective = copy(objective)
    object.__setattr__(polish_objective, "tolerance", POLISH_RATIO * objective.tolerance)
    object.__setattr__(polish_objective, "angle_tolerance", POLISH_RATIO * objective.angle_tolerance)
    return polish_objective


MORE_WAYPOINTS_HINT = "use more waypoints there to follow the goals more closely"


def are_segments_free(problem: FollowProblem, a: Array, b: Array) -> Mask:
    """Whether the straight segment from each row of a (K, nq) to that of b (K, nq) keeps the clearance: (K,).

    The ends of the segments are not checked. Loops are not closed along the segments, because that is slow;
    `first_collision` makes the final check with closed loops.
    """
    is_free = np.ones(len(a), dtype=np.bool_)
    if not problem.has_collider:
        return is_free
    differences = problem.space.difference(a, b)
    counts = np.maximum(np.ceil(np.abs(differences).max(axis=1, initial=0.0) / COLLISION_CHECK_STEP), 1.0).astype(
        np.int64
    )
    k = np.repeat(np.arange(len(a)), counts - 1)
    if len(k):
        index = np.arange(1, len(k) + 1) - np.repeat(np.cumsum(counts - 1) - (counts - 1), counts - 1)
        q_between = problem.space.integrate(a[k], (index / counts[k])[:, None] * differences[k])
        is_free[k[~problem.are_free(q_between)]] = False
    return is_free


def first_collision(problem: FollowProblem, path: Path) -> tuple[float, Array, str] | None:
    """Find the first violation of the clearance along a path with closed loops; None if there is none.

    Returns:
        s and q (nq,) just before the collision, and a message that names the pair. If loops cannot be closed between
        two waypoints: s and q of the first waypoint of the path, and a message.
    """
    if not problem.has_collider:
        return None
    try:
        dense_path = path.densify(COLLISION_CHECK_STEP)
    except NotSolved:
        return (
            float(path.s[0]),
            path.q[0],
            "loops cannot be closed between two waypoints of the path; use more waypoints",
        )
    is_free = problem.are_free(dense_path.q)
    if is_free.all():
        return None
    k = int(np.argmin(is_free))
    k_before = max(k - 1, 0)
    reason = f"in collision between two waypoints: {problem.contacts(dense_path.q[k])[0]}; {MORE_WAYPOINTS_HINT}"
    return float(dense_path.s[k_before]), dense_path.q[k_before], reason
