"""Validation of the start and the goals of a plan, and the search for goal configurations that meet objectives."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np

from mechanik.errors import InvalidArgument, LimitsError, PlanningError, ShapeError
from mechanik.motion.plan.planning_space import PlanningSpace
from mechanik.objectives import Objective
from mechanik.objectives.joint_goals import JointObjective
from mechanik.objectives.relation import evaluate_relation
from mechanik.solver import Solver
from mechanik.solver.search.constraint_system import unwrap_angles
from mechanik.solver.search.solution_set import SolutionSet
from mechanik.solver.solution import Solution
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import format_count

PlanningGoal = ArrayLike | Solution | SolutionSet | Objective | Iterable[ArrayLike | Solution | Objective]
"""The argument `goal` of `mk.plan`: configurations, solutions, or objectives."""

MAX_CLOSURE_ERROR = 1e-6
"""rad, or ratio to the mechanism's size: largest loop closure error at the start and at a goal."""
MAX_GOALS = 24
"""Largest number of goals; if there are more, the goals nearest to the start are used."""
GOAL_SEARCH_SHARE = 0.25
"""Longest time of the search for goal configurations, as a share of the remaining planning time."""
GOAL_SEEDS = 12
"""Largest number of random seeds of the search for goal configurations, in addition to the start of the path."""


def as_start(space: PlanningSpace, start: ArrayLike | Solution | None) -> Array:
    """Validate the start and return it as (nq,); None: the current configuration of the mechanism.

    Raises:
        PlanningError: the start is outside the limits, violates the clearance, has open loops, or is a solution that
            failed.
        ShapeError: the start is not one configuration.
    """
    mechanism = space.mechanism
    q = np.array(mechanism.q if start is None else _as_configuration(space, start, "start"))
    violation = find_violation(space, q)
    if violation:
        raise PlanningError(f"the start is not valid: {violation}")
    return q


def as_goals(
    space: PlanningSpace,
    goal: PlanningGoal,
    start: Array,
    solver_options: Mapping[str, Any],
    rng: np.random.Generator,
    deadline: float,
) -> Array:
    """Validate the goals and return them as (K, nq), the nearest to the start first.

    Args:
        start: (nq,).
        solver_options: arguments `lock` and `limits` of `mk.plan`, for goals that are objectives.
        deadline: time of `time.perf_counter` at which planning ends. The search for goal configurations may use a
            quarter of the remaining time.

    Raises:
        PlanningError: no goal is valid, or a goal is a solution that failed.
        LimitsError: every configuration found that meets the objectives moves a locked dof.
        InvalidArgument: a goal has a wrong type, or configurations are mixed with objectives.
        ShapeError: a goal has a wrong shape, or there are no goals.
    """
    goals = _goal_list(goal)
    objectives = [item for item in goals if isinstance(item, Objective)]
    if objectives:
        if len(objectives) < len(goals):
            raise InvalidArgument("goals must be either configurations or objectives, not both")
        configurations = _solve_goals(space, objectives, start, solver_options, rng, deadline)
    else:
        configurations = [_as_configuration(space, cast("ArrayLike | Solution", item), "goal") for item in goals]
    if not configurations:
        raise ShapeError("the list of goals is empty; give at least one")
    violations = [find_violation(space, goal_q) or _locked_violation(space, start, goal_q) for goal_q in configurations]
    valid_goals = np.array(
        [goal_q for goal_q, violation in zip(configurations, violations, strict=True) if not violation]
    )
    if not len(valid_goals):
        count = len(configurations)
        subject = "the goal is not valid" if count == 1 else f"none of {count} goals is valid; the first"
        raise PlanningError(f"{subject}: {violations[0]}")
    order = np.argsort(np.linalg.norm(space.scaled_difference(start, valid_goals), axis=1), kind="stable")
    return valid_goals[order][:MAX_GOALS]


def find_violation(space: PlanningSpace, q: Array) -> str:
    """Reason why a path cannot start or end at q (nq,); empty if it can."""
    names = space.mechanism.space.q_names
    excess = np.maximum(space.lower - q, q - space.upper)
    k = int(excess.argmax()) if len(excess) else 0
    if len(excess) and excess[k] > 1e-9:
        limits = f"{space.lower[k]:.6g} to {space.upper[k]:.6g}"
        return f"{names[k]!r} is {q[k]:.6g}, outside its limits {limits} (rad or m)"
    if space.has_loops:
        errors = np.abs(space.loops.residual(q)[0])
        if float(errors.max()) > MAX_CLOSURE_ERROR:
            return (
                f"loops are not closed: error {float(errors.max()):.3g} (rad, or relative to the mechanism's size); "
                "close them with mechanism.assemble"
            )
    if space.loops.limit_relations:
        violation, joint = space.loops.limit_violation(q)
        if violation > 1e-6:
            return f"{joint!r} is outside its limits by {violation:.3g} (rad, or relative to the mechanism's size)"
    if space.collider is not None:
        contacts = space.collider.contacts(q, space.clearance)
        if contacts:
            other_count = len(contacts) - 1
            other_pairs_note = (
                f", and {format_count(other_count, 'other pair')} {'is' if other_count == 1 else 'are'} too close"
                if other_count
                else ""
            )
            clearance_note = f"; the clearance is {space.clearance:g} m" if contacts[0].distance >= 0.0 else ""
            return f"{contacts[0]}{other_pairs_note}{clearance_note}"
    return ""


def _locked_violation(space: PlanningSpace, start: Array, q: Array) -> str:
    """Reason why q (nq,) cannot be reached from the start (nq,) without moving a locked dof; empty if it can."""
    motion = np.abs(space.scaled_difference(start, q)) * ~space.can_move
    k = int(motion.argmax()) if len(motion) else 0
    if len(motion) and motion[k] > 1e-9:
        return f"{space.mechanism.space.v_names[k]!r} is locked but differs from the start"
    return ""


def _random_configuration(space: PlanningSpace, start: Array, rng: np.random.Generator) -> Array:
    """A random configuration (nq,) within the limits; locked dofs as at the start."""
    config_space = space.mechanism.space
    q = np.clip(config_space.random(rng), space.lower, space.upper)
    for k, v in zip(config_space.scalars_q, config_space.scalars_v, strict=True):
        q[k] = q[k] if space.can_move[v] else start[k]
    for k, v in zip(config_space.quaternions_q, config_space.quaternions_v, strict=True):
        q[k : k + 4] = q[k : k + 4] if space.can_move[v] else start[k : k + 4]
    return q


def _goal_list(goal: PlanningGoal) -> list[object]:
    """Convert the argument `goal` of `mk.plan` to a list of goals."""
    if isinstance(goal, Objective | Solution):
        return [goal]
    if isinstance(goal, SolutionSet):
        return list(goal.q)
    if isinstance(goal, np.ndarray):
        return [goal] if goal.ndim < 2 else [*goal]
    if isinstance(goal, str | Mapping) or not isinstance(goal, Iterable):
        raise InvalidArgument(
            f"a goal must be one or more configurations, a solution, or objectives, not {goal!r}; use "
            "mechanism.configuration({...}) for joint values, mechanism.configurations[name] for a named "
            "configuration, and PoseGoal(link, pose) for the pose of a link"
        )
    items: list[object] = list(goal)
    if items and all(np.ndim(cast("Any", item)) == 0 and not isinstance(item, Objective | Solution) for item in items):
        return [items]
    return items


def _as_configuration(space: PlanningSpace, configuration: ArrayLike | Solution, label: str) -> Array:
    """Validate a configuration or a successful solution and return it as (nq,); `label` names it in messages."""
    if isinstance(configuration, Solution):
        if not configuration.success:
            raise PlanningError(f"the {label} is a solution that failed: {configuration.message}")
        configuration = configuration.q
    try:
        q = np.array(space.mechanism.space.check_q(configuration))
    except ShapeError as error:
        raise ShapeError(f"the {label}: {error}") from None
    if q.ndim != 1:
        raise ShapeError(f"the {label} must be one configuration, ({space.mechanism.nq},), not of shape {q.shape}")
    for k in space.mechanism.space.quaternions_q:
        q[k : k + 4] = quaternion.normalize(q[k : k + 4])
    return q


def _solve_goals(
    space: PlanningSpace,
    objectives: list[Objective],
    start: Array,
    solver_options: Mapping[str, Any],
    rng: np.random.Generator,
    deadline: float,
) -> list[Array]:
    """Find collision-free configurations (nq,) that meet all objectives, from the start and from random seeds.

    Raises:
        PlanningError: no configuration was found.
        LimitsError: every configuration found moves a locked dof.
    """
    search_start_time = time.perf_counter()
    avoid_options: dict[str, Any] = {}
    if space.collider is not None:
        avoid_options = {"avoid": space.collider, "clearance": space.clearance}
    solver = Solver(space.mechanism, objectives, **solver_options, **avoid_options)
    first_solution = solver.solve(q0=start)
    configurations = [first_solution.q] if first_solution.success else []
    for _ in range(GOAL_SEEDS):
        if time.perf_counter() > search_start_time + GOAL_SEARCH_SHARE * (deadline - search_start_time):
            break
        solution = solver.solve(q0=_random_configuration(space, start, rng))
        configurations += [solution.q] if solution.success else []
    if not configurations:
        raise PlanningError(f"no configuration that meets the goal was found: {first_solution.message}")
    reachable_goals = [q for q in configurations if not _locked_violation(space, start, q)]
    if not reachable_goals:
        violation = _locked_violation(space, start, configurations[0])
        raise LimitsError(f"every configuration found that meets the goal moves a locked dof: {violation}")
    reachable_goals = [_with_idle_dofs_at_start(space, objectives, start, q) for q in reachable_goals]
    return [_with_angles_near_start(space, objectives, start, q) for q in reachable_goals]


def _with_idle_dofs_at_start(space: PlanningSpace, objectives: list[Objective], start: Array, q: Array) -> Array:
    """Copy of q (nq,) with the scalar dofs that affect no objective, such as those of a gripper, as at the start.

    Returns q if the copy is not valid, if there are loops, or if an objective is about joint values.
    """
    config_space = space.mechanism.space
    if space.has_loops or any(isinstance(objective, JointObjective) for objective in objectives):
        return q
    is_relevant = np.zeros(config_space.nv, dtype=np.bool_)
    for objective in objectives:
        for relation in objective.relations(space.mechanism):
            is_relevant |= evaluate_relation(space.mechanism, relation, q)[1].any(axis=0)
    is_idle = ~is_relevant[config_space.scalars_v]
    candidate = q.copy()
    candidate[config_space.scalars_q[is_idle]] = start[config_space.scalars_q[is_idle]]
    return candidate if _can_replace(space, objectives, q, candidate) else q


def _with_angles_near_start(space: PlanningSpace, objectives: list[Objective], start: Array, q: Array) -> Array:
    """Copy of q (nq,) with rotational dofs shifted by full rotations as close to the start as the limits allow.

    Returns q if the copy is not valid, if the space is not Euclidean, or if an objective is about joint values.
    """
    config_space = space.mechanism.space
    if not space.is_euclidean or any(isinstance(objective, JointObjective) for objective in objectives):
        return q
    angle_indices = config_space.scalars_q[
        config_space.rotates[config_space.scalars_v] & space.can_move[config_space.scalars_v]
    ]
    candidate = q.copy()
    candidate[angle_indices] = unwrap_angles(
        q[None, angle_indices], start[angle_indices], space.lower[angle_indices], space.upper[angle_indices]
    )[0][0]
    return candidate if _can_replace(space, objectives, q, candidate) else q


def _can_replace(space: PlanningSpace, objectives: list[Objective], q: Array, candidate: Array) -> bool:
    """Whether `candidate` (nq,) differs from q (nq,), has the same residuals, and can be the end of a path."""
    if np.array_equal(q, candidate):
        return False
    for objective in objectives:
        for relation in objective.relations(space.mechanism):
            residual = evaluate_relation(space.mechanism, relation, q)[0]
            candidate_residual = evaluate_relation(space.mechanism, relation, candidate)[0]
            if np.abs(candidate_residual - residual).max(initial=0.0) > 1e-12:
                return False
    return not find_violation(space, candidate)
