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
"""What `mk.plan` accepts as goal: configurations, solutions, or objectives."""

OPEN = 1e-6
"""rad, or share of the mechanism's size: largest loop closure error at the start and at a goal."""
MOST = 24
"""Largest number of goals; the nearest are kept."""
SHARE = 0.25
"""Share of the planning time that may be spent on the search for goals."""
STARTS = 12
"""Number of random starts, besides the start of the plan, of the search for goals."""


def as_start(ground: PlanningSpace, start: ArrayLike | Solution | None) -> Array:
    """Validate the start and return it as (nq,); None: the current configuration of the mechanism.

    Raises:
        PlanningError: the start is outside limits, in collision, or with open loops.
    """
    mechanism = ground.mechanism
    q = np.array(mechanism.q if start is None else _one(ground, start, "start"))
    why = find_violation(ground, q)
    if why:
        raise PlanningError(f"a path cannot begin at the start: {why}")
    return q


def as_goals(
    ground: PlanningSpace,
    goal: PlanningGoal,
    start: Array,
    given: Mapping[str, Any],
    rng: np.random.Generator,
    until: float,
) -> Array:
    """Validate the goals and return them as (K, nq), the nearest to the start first.

    Args:
        start: (nq,).
        given: `lock` and `limits` of the plan, for goals that are objectives.
        until: deadline by `time.perf_counter`; a quarter of the time left may be spent on the search for goals.

    Raises:
        PlanningError: no goal is valid.
    """
    several = _several(goal)
    objectives = [one for one in several if isinstance(one, Objective)]
    if objectives:
        if len(objectives) < len(several):
            raise InvalidArgument("goals are either configurations or objectives, not both at once")
        found = _by_solver(ground, objectives, start, given, rng, until)
    else:
        found = [_one(ground, cast("ArrayLike | Solution", one), "goal") for one in several]
    if not found:
        raise ShapeError("there is no goal: the list is empty")
    wrong = [find_violation(ground, one) or _held(ground, start, one) for one in found]
    fine = np.array([one for one, why in zip(found, wrong, strict=True) if not why])
    if not len(fine):
        which = "the goal" if len(found) == 1 else f"any of {len(found)} goals; the first"
        raise PlanningError(f"a path cannot end at {which}: {wrong[0]}")
    order = np.argsort(np.linalg.norm(ground.scaled_difference(start, fine), axis=1), kind="stable")
    return fine[order][:MOST]


def find_violation(ground: PlanningSpace, q: Array) -> str:
    """Reason why a path cannot start or end at q (nq,); empty if it can."""
    names = ground.mechanism.space.q_names
    over = np.maximum(ground.lower - q, q - ground.upper)
    k = int(over.argmax()) if len(over) else 0
    if len(over) and over[k] > 1e-9:
        limits = f"{ground.lower[k]:.6g} to {ground.upper[k]:.6g}"
        return f"{names[k]!r} is {q[k]:.6g}, outside its limits, {limits}"
    if ground.has_loops:
        off = np.abs(ground.loops.residual(q)[0])
        if float(off.max()) > OPEN:
            return (
                f"loops stand open there by {float(off.max()):.3g} (rad, or shares of the mechanism's size); "
                "mechanism.assemble shuts them"
            )
    if ground.loops.limit_relations:
        far, of = ground.loops.limit_violation(q)
        if far > 1e-6:
            return f"{of!r} is outside its limits there by {far:.3g} (rad, or shares of the mechanism's size)"
    if ground.collider is not None:
        clashes = ground.collider.contacts(q, ground.clearance)
        if clashes:
            others = len(clashes) - 1
            more = (
                f", and {format_count(others, 'other pair')} {'is' if others == 1 else 'are'} too near"
                if others
                else ""
            )
            asked = f"; the clearance is {ground.clearance:g} m" if clashes[0].distance >= 0.0 else ""
            return f"{clashes[0]}{more}{asked}"
    return ""


def _held(ground: PlanningSpace, start: Array, q: Array) -> str:
    """Reason why q is not reachable with the locked dofs; empty if it is."""
    moved = np.abs(ground.scaled_difference(start, q)) * ~ground.free
    k = int(moved.argmax()) if len(moved) else 0
    if len(moved) and moved[k] > 1e-9:
        return f"{ground.mechanism.space.v_names[k]!r} is locked, and not there where it is at the start"
    return ""


def _near(ground: PlanningSpace, start: Array, rng: np.random.Generator) -> Array:
    """A random configuration (nq,) within the limits; locked dofs as at the start."""
    space = ground.mechanism.space
    q = np.clip(space.random(rng), ground.lower, ground.upper)
    for k, v in zip(space.scalars_q, space.scalars_v, strict=True):
        q[k] = q[k] if ground.free[v] else start[k]
    for k, v in zip(space.quaternions_q, space.quaternions_v, strict=True):
        q[k : k + 4] = q[k : k + 4] if ground.free[v] else start[k : k + 4]
    return q


def _several(goal: PlanningGoal) -> list[object]:
    if isinstance(goal, Objective | Solution):
        return [goal]
    if isinstance(goal, SolutionSet):
        return list(goal.q)
    if isinstance(goal, np.ndarray):
        return [goal] if goal.ndim < 2 else [*goal]
    if isinstance(goal, str | Mapping) or not isinstance(goal, Iterable):
        raise InvalidArgument(
            f"a goal is a configuration, several, a solution, or objectives, not {goal!r}; values by joint become a "
            "configuration by mechanism.configuration({...}), a named one is mechanism.configurations[name], and a "
            "pose of a link is PoseGoal(link, pose)"
        )
    given: list[object] = list(goal)
    if given and all(np.ndim(cast("Any", one)) == 0 and not isinstance(one, Objective | Solution) for one in given):
        return [given]
    return given


def _one(ground: PlanningSpace, given: ArrayLike | Solution, what: str) -> Array:
    if isinstance(given, Solution):
        if not given.success:
            raise PlanningError(f"the {what} is a solution that does not hold: {given.message}")
        given = given.q
    try:
        q = np.array(ground.mechanism.space.check_q(given))
    except ShapeError as error:
        raise ShapeError(f"the {what}: {error}") from None
    if q.ndim != 1:
        raise ShapeError(f"the {what} is one configuration, ({ground.mechanism.nq},), not of shape {q.shape}")
    for k in ground.mechanism.space.quaternions_q:
        q[k : k + 4] = quaternion.normalize(q[k : k + 4])
    return q


def _by_solver(
    ground: PlanningSpace,
    objectives: list[Objective],
    start: Array,
    given: Mapping[str, Any],
    rng: np.random.Generator,
    until: float,
) -> list[Array]:
    """Collision-free configurations that meet all objectives, from several starts."""
    begun = time.perf_counter()
    avoiding: dict[str, Any] = {}
    if ground.collider is not None:
        avoiding = {"avoid": ground.collider, "clearance": ground.clearance}
    solver = Solver(ground.mechanism, objectives, **given, **avoiding)
    here = solver.solve(q0=start)
    found = [here.q] if here.success else []
    for _ in range(STARTS):
        if time.perf_counter() > begun + SHARE * (until - begun):
            break
        other = solver.solve(q0=_near(ground, start, rng))
        found += [other.q] if other.success else []
    if not found:
        raise PlanningError(f"nothing that meets the goal can be found: {here.message}")
    held = [one for one in found if not _held(ground, start, one)]
    if not held:
        raise LimitsError(f"what meets the goal moves what is locked: {_held(ground, start, found[0])}")
    return [_unwound(ground, objectives, start, _without_idling(ground, objectives, start, one)) for one in held]


def _without_idling(ground: PlanningSpace, objectives: list[Objective], start: Array, q: Array) -> Array:
    """q (nq,) with the dofs that no objective depends on, such as those of a gripper, as at the start, if valid."""
    space = ground.mechanism.space
    if ground.has_loops or any(isinstance(one, JointObjective) for one in objectives):
        return q
    asked = np.zeros(space.nv, dtype=np.bool_)
    for one in objectives:
        for relation in one.relations(ground.mechanism):
            asked |= evaluate_relation(ground.mechanism, relation, q)[1].any(axis=0)
    idle = ~asked[space.scalars_v]
    still = q.copy()
    still[space.scalars_q[idle]] = start[space.scalars_q[idle]]
    return still if _is_as_good(ground, objectives, q, still) else q


def _unwound(ground: PlanningSpace, objectives: list[Objective], start: Array, q: Array) -> Array:
    """q (nq,) with rotational dofs moved by full rotations as close to the start as possible, if valid."""
    space = ground.mechanism.space
    if not ground.is_euclidean or any(isinstance(one, JointObjective) for one in objectives):
        return q
    turning = space.scalars_q[space.rotates[space.scalars_v] & ground.free[space.scalars_v]]
    nearer = q.copy()
    nearer[turning] = unwrap_angles(q[None, turning], start[turning], ground.lower[turning], ground.upper[turning])[0][
        0
    ]
    return nearer if _is_as_good(ground, objectives, q, nearer) else q


def _is_as_good(ground: PlanningSpace, objectives: list[Objective], q: Array, other: Array) -> bool:
    """Whether `other` (nq,) has the same residuals of the objectives as q (nq,) and violates nothing."""
    if np.array_equal(q, other):
        return False
    for one in objectives:
        for relation in one.relations(ground.mechanism):
            before, after = (evaluate_relation(ground.mechanism, relation, place)[0] for place in (q, other))
            if np.abs(after - before).max(initial=0.0) > 1e-12:
                return False
    return not find_violation(ground, other)
