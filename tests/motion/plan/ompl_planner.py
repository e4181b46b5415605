"""Plans by OMPL in our planning space: an oracle for the built-in planners.

Without loops OMPL checks a whole motion in one compiled call. With loops, or spherical joints (unit quaternions), it
uses its projected state space with the projection of `PlanningSpace` (Z. Kingston, M. Moll and L. E. Kavraki,
"Exploring implicit spaces for constrained sampling-based planning", IJRR 38(10-11), 2019).
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from mechanik.motion.plan.planning_space import Indices, PlanningSpace
from mechanik.spatial.array import Array

MIN_PROJECTED_RATIO = 0.3
"""Ratio to the step of OMPL's state space: shorter projected steps make no progress."""
RANGE_MARGIN = 1e-12
"""rad or m: width that is added to the range of each dof, because OMPL needs a range above 0."""


def plan_with_ompl(
    space: PlanningSpace, start: Array, goals: Array, planner: str, deadline: float, rng: np.random.Generator
) -> Array | None:
    """Plan with a planner of OMPL.

    Args:
        start: (nq,).
        goals: (K, nq).
        planner: name of a class in `ompl.geometric`.
        deadline: deadline by `time.perf_counter`.
        rng: seeds the generators of OMPL, which are global: threads that plan at the same time share them.

    Returns:
        Configurations (N, nq) from the start to a goal with free segments between them; None if there was not enough
        time.
    """
    base, geometric, util = _ompl()
    moving = space.moving_indices
    with _without_log(util):
        util.RNG.setSeed(int(rng.integers(1, 2**31)))
        lower, upper = space.bounds(np.vstack([start, goals]))
        ambient = base.RealVectorStateSpace(len(moving))
        bounds = base.RealVectorBounds(len(moving))
        for k, (low, high) in enumerate(zip(lower[moving].tolist(), upper[moving].tolist(), strict=True)):
            bounds.setLow(k, low)
            bounds.setHigh(k, high + RANGE_MARGIN)
        ambient.setBounds(bounds)
        make_space = _euclidean_space if space.is_euclidean else _projected_space
        ompl_space, info = make_space(base, space, ambient, start, moving)
        problem = base.ProblemDefinition(info)
        problem.addStartState(_ompl_state(ompl_space, start[moving], space.is_euclidean))
        goal_states = base.GoalStates(info)
        for goal in goals:
            goal_states.addState(_ompl_state(ompl_space, goal[moving], space.is_euclidean))
        problem.setGoal(goal_states)
        ompl_planner = getattr(geometric, planner)(info)
        ompl_planner.setProblemDefinition(problem)
        ompl_planner.setup()
        ompl_planner.solve(base.PlannerTerminationCondition(lambda: time.perf_counter() > deadline))
        if not problem.hasExactSolution():
            return None
        path = problem.getSolutionPath()
        if not space.is_euclidean:
            path.interpolate()
        indices = range(len(moving))
        waypoints = np.tile(start, (path.getStateCount(), 1))
        for k in range(len(waypoints)):
            state = path.getState(k)
            waypoints[k, moving] = [state[i] for i in indices]
    return _with_exact_ends(space, waypoints, start, goals)


def _euclidean_space(base: Any, space: PlanningSpace, ambient: Any, start: Array, moving: Indices) -> tuple[Any, Any]:
    """OMPL state space and space information for a Euclidean planning space."""
    indices = range(len(moving))

    all_move = len(moving) == len(start)

    def full_q(state: Any) -> Array:
        x = [state[i] for i in indices]
        if all_move:
            return np.array(x)
        q = start.copy()
        q[moving] = x
        return q

    def is_free(state: Any) -> bool:
        return bool(space.are_free(full_q(state)[None])[0])

    class SegmentCheck(base.MotionValidator):
        def checkMotion(self, a: Any, b: Any) -> bool:
            return space.is_segment_free(full_q(a), full_q(b))

    info = base.SpaceInformation(ambient)
    info.setStateValidityChecker(is_free)
    info.setMotionValidator(SegmentCheck(info))
    info.setup()
    return ambient, info


def _projected_space(base: Any, space: PlanningSpace, ambient: Any, start: Array, moving: Indices) -> tuple[Any, Any]:
    """OMPL state space and space information with closed loops and unit quaternions."""
    indices, constraint_count = range(len(moving)), max(1, _constraint_rank(space, start))
    quaternion_starts, delta = space.mechanism.space.quaternions_q, 2.0 * space.step

    def full_q(x: Any) -> Array:
        q = start.copy()
        q[moving] = x
        return q

    class ClosedLoops(base.Constraint):
        last = start

        def __init__(self) -> None:
            base.Constraint.__init__(self, len(moving), min(constraint_count, len(moving) - 1), 1e-6)

        def function(self, x: Array, out: Array) -> None:
            q = full_q(x)
            errors = [float(np.abs(space.loops.residual(q)[0]).max())] if space.has_loops else []
            errors += [abs(float(np.linalg.norm(q[k : k + 4])) - 1.0) for k in quaternion_starts]
            out[:] = 0.0
            out[0] = max(errors, default=0.0)

        def project(self, x: Array) -> bool:
            q = space.project(full_q(x))
            if q is None:
                return False
            # where the loops run across the direction of the walk, it would continue in ever smaller steps
            distance, self.last = float(np.linalg.norm((q - self.last)[moving])), q
            if 0.0 < distance < MIN_PROJECTED_RATIO * delta:
                return False
            x[:] = q[moving]
            return True

    def is_free(state: Any) -> bool:
        q = full_q([state[i] for i in indices])
        return space.is_inside(q) and bool(space.are_free(q[None])[0])

    ompl_space = base.ProjectedStateSpace(ambient, ClosedLoops())
    info = base.ConstrainedSpaceInformation(ompl_space)
    info.setStateValidityChecker(is_free)
    ompl_space.setDelta(delta)
    info.setup()
    return ompl_space, info


def _ompl_state(ompl_space: Any, x: Array, is_flat: bool) -> Any:
    state = ompl_space.allocState()
    if is_flat:
        for k, value in enumerate(x.tolist()):
            state[k] = value
    else:
        state.copy(x.tolist())
    return state


def _constraint_rank(space: PlanningSpace, q: Array) -> int:
    """Number of entries of q that depend on the others."""
    J = space.loops.residual(q)[1] * space.can_move if space.has_loops else np.zeros((0, 0))
    return (int(np.linalg.matrix_rank(J, tol=1e-6)) if J.size else 0) + len(space.mechanism.space.quaternions_q)


def _with_exact_ends(space: PlanningSpace, waypoints: Array, start: Array, goals: Array) -> Array:
    """The found path with exact start and goal, and normalized quaternions."""
    for k in space.mechanism.space.quaternions_q:
        waypoints[:, k : k + 4] /= np.linalg.norm(waypoints[:, k : k + 4], axis=1, keepdims=True)
    waypoints[0], waypoints[-1] = start, goals[np.abs(goals - waypoints[-1]).max(axis=1).argmin()]
    return waypoints


@contextmanager
def _without_log(util: Any) -> Generator[None]:
    level = util.getLogLevel()
    util.setLogLevel(util.LOG_NONE)
    try:
        yield
    finally:
        util.setLogLevel(level)


def _ompl() -> tuple[Any, Any, Any]:
    base, geometric, util = (import_module(f"ompl.{name}") for name in ("base", "geometric", "util"))
    return base, geometric, util
