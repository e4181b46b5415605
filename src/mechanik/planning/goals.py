"""Where a path begins and where it may end: configurations that can be, checked at the door."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np

from mechanik.errors import LimitsError, PlanningError, ShapeError, WrongKind
from mechanik.ik import Solver
from mechanik.mechanism.door import counted
from mechanik.objectives import Objective
from mechanik.objectives.aimed import Aimed
from mechanik.objectives.evaluate import evaluate
from mechanik.planning.ground import Ground
from mechanik.search.solution_set import SolutionSet
from mechanik.search.unwinding import unwound
from mechanik.solvers.solution import Solution
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike

Goal = ArrayLike | Solution | SolutionSet | Objective | Iterable[ArrayLike | Solution | Objective]

OPEN = 1e-6
"""Rows (rad, sizes) of loops that stand open at an end."""
MOST = 24
"""Goals that are kept, the nearest."""
SHARE = 0.25
STARTS = 12
"""Random places from which goals are searched for, besides the start."""


def as_start(ground: Ground, start: ArrayLike | Solution | None) -> Array:
    """The door for the start: (nq,), at which nothing is wrong; None: where the mechanism stands."""
    mechanism = ground.mechanism
    q = np.array(mechanism.q if start is None else _one(ground, start, "start"))
    why = whats_wrong(ground, q)
    if why:
        raise PlanningError(f"a path cannot begin at the start: {why}")
    return q


def as_goals(
    ground: Ground, goal: Goal, start: Array, given: Mapping[str, Any], rng: np.random.Generator, until: float
) -> Array:
    """(K, nq), K of 1 or more, the nearest to the start first.

    Args:
        given: lock and limits, for goals that are objectives.
        until: by `time.perf_counter`; a quarter of the time till then may be spent on finding goals.
    """
    several = _several(goal)
    objectives = [one for one in several if isinstance(one, Objective)]
    if objectives:
        if len(objectives) < len(several):
            raise WrongKind("goals are either configurations or objectives, not both at once")
        found = _by_solver(ground, objectives, start, given, rng, until)
    else:
        found = [_one(ground, cast("ArrayLike | Solution", one), "goal") for one in several]
    if not found:
        raise ShapeError("there is no goal: the list is empty")
    wrong = [whats_wrong(ground, one) or _held(ground, start, one) for one in found]
    fine = np.array([one for one, why in zip(found, wrong, strict=True) if not why])
    if not len(fine):
        which = "the goal" if len(found) == 1 else f"any of {len(found)} goals; the first"
        raise PlanningError(f"a path cannot end at {which}: {wrong[0]}")
    order = np.argsort(np.linalg.norm(ground.apart(start, fine), axis=1), kind="stable")
    return fine[order][:MOST]


def whats_wrong(ground: Ground, q: Array) -> str:
    """What keeps q (nq,) from being where a path begins or ends; nothing, if it can be."""
    names = ground.mechanism.space.q_names
    over = np.maximum(ground.lower - q, q - ground.upper)
    k = int(over.argmax()) if len(over) else 0
    if len(over) and over[k] > 1e-9:
        limits = f"{ground.lower[k]:.6g} to {ground.upper[k]:.6g}"
        return f"{names[k]!r} is {q[k]:.6g}, outside its limits, {limits}"
    if ground.has_loops:
        off = np.abs(ground.loops.rows(q)[0])
        if float(off.max()) > OPEN:
            return (
                f"loops stand open there by {float(off.max()):.3g} (rad, or shares of the mechanism's size); "
                "mechanism.assemble shuts them"
            )
    if ground.loops.bands:
        far, of = ground.loops.beyond(q)
        if far > 1e-6:
            return f"{of!r} is outside its limits there by {far:.3g} (rad, or shares of the mechanism's size)"
    if ground.collider is not None:
        clashes = ground.collider.clashes(q, ground.clearance)
        if clashes:
            others = len(clashes) - 1
            more = f", and {counted(others, 'other pair')} {'is' if others == 1 else 'are'} too near" if others else ""
            asked = f"; the clearance is {ground.clearance:g} m" if clashes[0].gap >= 0.0 else ""
            return f"{clashes[0]}{more}{asked}"
    return ""


def _held(ground: Ground, start: Array, q: Array) -> str:
    """Which locked freedom would have to move."""
    moved = np.abs(ground.apart(start, q)) * ~ground.free
    k = int(moved.argmax()) if len(moved) else 0
    if len(moved) and moved[k] > 1e-9:
        return f"{ground.mechanism.space.v_names[k]!r} is locked, and not there where it is at the start"
    return ""


def _near(ground: Ground, start: Array, rng: np.random.Generator) -> Array:
    """Anywhere inside the limits; locked freedoms as they are."""
    space = ground.mechanism.space
    q = np.clip(space.random(rng), ground.lower, ground.upper)
    for k, v in zip(space.scalars_q, space.scalars_v, strict=True):
        q[k] = q[k] if ground.free[v] else start[k]
    for k, v in zip(space.balls_q, space.balls_v, strict=True):
        q[k : k + 4] = q[k : k + 4] if ground.free[v] else start[k : k + 4]
    return q


def _several(goal: Goal) -> list[object]:
    if isinstance(goal, Objective | Solution):
        return [goal]
    if isinstance(goal, SolutionSet):
        return list(goal.q)
    if isinstance(goal, np.ndarray):
        return [goal] if goal.ndim < 2 else [*goal]
    if isinstance(goal, str | Mapping) or not isinstance(goal, Iterable):
        raise WrongKind(
            f"a goal is a configuration, several, a solution, or objectives, not {goal!r}; values by joint become a "
            "configuration by mechanism.configuration({...}), a named one is mechanism.configurations[name], and a "
            "pose of a link is PoseGoal(link, pose)"
        )
    given: list[object] = list(goal)
    if given and all(np.ndim(cast("Any", one)) == 0 and not isinstance(one, Objective | Solution) for one in given):
        return [given]
    return given


def _one(ground: Ground, given: ArrayLike | Solution, what: str) -> Array:
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
    for k in ground.mechanism.space.balls_q:
        q[k : k + 4] = quaternion.normalize(q[k : k + 4])
    return q


def _by_solver(
    ground: Ground,
    objectives: list[Objective],
    start: Array,
    given: Mapping[str, Any],
    rng: np.random.Generator,
    until: float,
) -> list[Array]:
    """Free configurations that meet all objectives, as many as are easily found."""
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


def _without_idling(ground: Ground, objectives: list[Objective], start: Array, q: Array) -> Array:
    """q (nq,) with the freedoms that no objective asks for, as of a gripper, where they are at the start, if that can
    be."""
    space = ground.mechanism.space
    if ground.has_loops or any(isinstance(one, Aimed) for one in objectives):
        return q
    asked = np.zeros(space.nv, dtype=np.bool_)
    for one in objectives:
        for relation in one.relations(ground.mechanism):
            asked |= evaluate(ground.mechanism, relation, q)[1].any(axis=0)
    idle = ~asked[space.scalars_v]
    still = q.copy()
    still[space.scalars_q[idle]] = start[space.scalars_q[idle]]
    return still if _is_as_good(ground, objectives, q, still) else q


def _unwound(ground: Ground, objectives: list[Objective], start: Array, q: Array) -> Array:
    """q (nq,) with whole turns taken out of the way from the start, if that can be: joints go the short way round."""
    space = ground.mechanism.space
    if not ground.is_flat or any(isinstance(one, Aimed) for one in objectives):
        return q
    turning = space.scalars_q[space.rotates[space.scalars_v] & ground.free[space.scalars_v]]
    nearer = q.copy()
    nearer[turning] = unwound(q[None, turning], start[turning], ground.lower[turning], ground.upper[turning])[0][0]
    return nearer if _is_as_good(ground, objectives, q, nearer) else q


def _is_as_good(ground: Ground, objectives: list[Objective], q: Array, other: Array) -> bool:
    """Whether another configuration (nq,) meets the objectives as q does, and can be as well."""
    if np.array_equal(q, other):
        return False
    for one in objectives:
        for relation in one.relations(ground.mechanism):
            before, after = (evaluate(ground.mechanism, relation, place)[0] for place in (q, other))
            if np.abs(after - before).max(initial=0.0) > 1e-12:
                return False
    return not whats_wrong(ground, other)
