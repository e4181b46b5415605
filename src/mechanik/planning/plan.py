"""The door: from a start to a goal, around everything."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from mechanik.assembly.kept import loops_of
from mechanik.collision import Collider
from mechanik.collision.avoiding import Avoid
from mechanik.errors import LimitsError, PlanningError, StructureError, WrongKind
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import as_number, counted
from mechanik.objectives.door import as_generator
from mechanik.planning.certificate import look_closely
from mechanik.planning.goals import Goal, as_goals, as_start
from mechanik.planning.ground import COARSE, Ground
from mechanik.planning.halving import Verdict
from mechanik.planning.loop_trees import find_along_loops
from mechanik.planning.planned_path import PlannedPath
from mechanik.planning.quick_shortcuts import shortened, with_round_corners
from mechanik.planning.shortcuts import relaxed, rounded, shortcut, without_repeats
from mechanik.planning.timeable import timeable
from mechanik.planning.tree_search import OURS, check_planner, find_by_trees
from mechanik.planning.two_trees import find_by_two_trees
from mechanik.solvers.freedoms import Names, as_bounds, as_mask
from mechanik.solvers.keeping_off import check_alone
from mechanik.solvers.solution import Solution
from mechanik.spatial.array import Array, ArrayLike
from mechanik.stopwatch import seconds_since
from mechanik.tiers import wait_for

KERNELS = (
    "distance.watch", "planning.trees", "planning.shortening", "planning.corners", "planning.certificate",
    "planning.curve",
)  # fmt: skip
"""In which planning spends its time; in plain Python nothing would be found in the default time."""
MARGIN = 1e-3
"""m: by how much more than the clearance a path keeps off while it is searched for, as far as its ends allow."""
DIRECT = 6
"""Goals to which the straight way is tried first."""
LAST = 0.2
"""Of the time: what planners that go on for as long as they may leave for what comes after them."""
FINER = 3
"""How often it is begun anew, with looks half as far apart, where the close look finds something."""
Found = tuple[Array, str, tuple[float, bool]]
"""Knots (N, nq), by what they were found, the smallest gap (m) and whether all of it is certain."""


def plan(
    mechanism: Mechanism,
    start: ArrayLike | Solution | None,
    goal: Goal,
    *,
    avoid: Avoid | Collider | None = ("self",),
    clearance: float = 0.0,
    allow: Iterable[tuple[str, str]] = (),
    forbid: Iterable[tuple[str, str]] = (),
    planner: str = "auto",
    max_seconds: float = 5.0,
    lock: Names | str | None = None,
    limits: Mapping[str, ArrayLike] | None = None,
    rng: np.random.Generator | None = None,
) -> PlannedPath:
    """A path from the start to a goal that bumps into nothing; loops stay shut all along.

    The straight way is taken where it is free. What is found is made shorter, its corners round, and looked at closely
    at last: every 0.01 rad or 5 mm, and for mechanisms without loops between these places as well (`is_certain`). Knots
    are so close that the curve which `mk.retime` lays through them is free, too, as far as that can be had.

    Args:
        start: (nq,), or a solution; None: where the mechanism stands. It is not moved.
        goal: (nq,), a solution, several of them, or objectives that are to be met at the end, for which configurations
            are searched that bump into nothing, the short way round. The path ends at one of them.
        avoid: "self" and obstacles, or a `Collider`; None: nothing.
        clearance: m; nothing comes nearer than that.
        allow, forbid: pairs of names that may touch, or that are checked although they would not be.
        planner: "auto" is "trees", which are our own; or one of OMPL by name (extra `plan`). Those with a star go on
            for as long as they may.
        max_seconds: until an answer, or a `PlanningError`.
        lock: joints or freedoms that may not move.
        limits: by joint or freedom, (lower, upper) in place of the mechanism's.
        rng: for all that is random; without it the same path comes each time, as far as time allows, in any thread.
            OMPL's generators are global: those of a program that plans by them in several threads at once mix.
    Raises:
        PlanningError: the start or all goals are impossible, or nothing was found in the time.
    """
    if avoid is not None:
        wait_for(*KERNELS, what="planning")
    begun = time.perf_counter()
    if not isinstance(mechanism, Mechanism):
        raise WrongKind(f"plan takes a mechanism, not {mechanism!r}")
    seconds = as_number(max_seconds, "max_seconds", infinite=True)
    if not seconds > 0.0:
        raise LimitsError(f"max_seconds must be above 0, not {seconds:g}")
    until = begun + seconds
    wide = as_number(clearance, "clearance")
    rules = tuple(allow or ()), tuple(forbid or ())
    check_alone(mechanism, avoid, wide, *rules)
    collider = _collider(mechanism, avoid, *rules)
    lower, upper = as_bounds(mechanism, limits)
    free = np.ones(mechanism.nv, dtype=np.bool_) if lock is None else ~as_mask(mechanism, lock, False)
    generator = np.random.default_rng(0) if rng is None else as_generator(rng)
    with loops_of(mechanism, {}) as loops:
        ground = Ground(mechanism, loops, collider, wide, lower, upper, free)
        check_planner(ground, planner)
        first = as_start(ground, start)
        goals = as_goals(ground, goal, first, {"lock": lock, "limits": limits}, generator, until)
        ground.clearance = wide + _margin(ground, [first, *goals])
        q, planner, verdict = _search(ground, first, goals, planner, wide, until, generator)
        q = timeable(ground, q, wide)
    last = int(np.argmin(np.abs(goals - q[-1]).max(axis=1)))
    along = np.append(0.0, np.cumsum(np.linalg.norm(ground.apart(q[:-1], q[1:]), axis=1)))
    s = along / along[-1] if along[-1] > 0.0 else np.linspace(0.0, 1.0, len(q))
    return PlannedPath(mechanism, q, s, planner, last, seconds_since(begun), *verdict)


def _search(
    ground: Ground, start: Array, goals: Array, planner: str, clearance: float, until: float, rng: np.random.Generator
) -> Found:
    """A way that is proven free, if one can be had; else, when all is tried or time is over, the widest of those where
    nothing was found in the way."""
    by = OURS if planner == "auto" else planner
    if ground.far(start, goals[0]) < 1e-12:
        verdict = look_closely(ground, np.array([start, goals[0]]), clearance, until)
        return goals[:1], "straight", (verdict.gap, verdict.is_certain)
    tried, unproven = list[str](), list[Found]()
    for goal in goals[:DIRECT] if planner == "auto" else ():
        way = ground.free_way(start, goal)
        if way is None:
            continue
        q = way if ground.has_loops else way[[0, -1]]
        verdict = look_closely(ground, q, clearance, until)
        if verdict.is_free:
            unproven.append((q, "straight", (verdict.gap, verdict.is_certain)))
        if _is_enough(ground, verdict, clearance):
            return unproven[-1]
    for _ in range(FINER):
        # what goes on for as long as it may leaves some time for the rest
        trees_until = until - LAST * (until - time.perf_counter()) if "star" in by else until
        if by == OURS:
            ours = find_by_two_trees if ground.is_flat else find_along_loops
            q = ours(ground, start, goals, trees_until, rng)
        else:
            q = find_by_trees(ground, start, goals, by, trees_until, rng)
        if q is None:
            break
        q, searched = without_repeats(ground, q), ground.step
        ways = (one for better in _better(ground, q, rng, until) for one in (*_stilled(ground, better), better))
        for candidate in ways:
            verdict = look_closely(ground, candidate, clearance, until)
            if verdict.is_free:
                unproven.append((candidate, by, (verdict.gap, verdict.is_certain)))
            if _is_enough(ground, verdict, clearance):
                return unproven[-1]
        tried.append(f"a path was found with looks {searched:g} rad apart, and bumps between them")
        ground.step = 0.5 * searched
    if unproven:
        return max(unproven, key=lambda one: one[2][0])
    looks = counted(ground.looks, "configuration")
    more = f"; {'; '.join(tried)}" if tried else ""
    raise PlanningError(
        f"no path to {counted(len(goals), 'goal')} was found by {by} in the time there was, with {looks} looked at"
        f"{more}. There may be none: give it more max_seconds, less clearance, or other goals"
    )


def _is_enough(ground: Ground, verdict: Verdict, clearance: float) -> bool:
    """Whether a way is free, and certainly so, if that can be had: not along loops, nor where an end just touches."""
    return verdict.is_certain or (verdict.is_free and (ground.has_loops or ground.clearance <= clearance))


def _better(ground: Ground, q: Array, rng: np.random.Generator, until: float) -> Iterator[Array]:
    """The same way, shorter and with round corners, with looks closer and closer; and as it was found."""
    for _ in range(FINER):
        if ground.is_flat:
            yield with_round_corners(ground, shortened(ground, q, rng, until))
        else:
            short = shortcut(ground, q, rng, until)
            better = relaxed(ground, short, until) if ground.has_loops else rounded(ground, short, until)
            yield without_repeats(ground, better)
        ground.step *= 0.5
    yield q


def _stilled(ground: Ground, q: Array) -> list[Array]:
    """The same way without the small moves of freedoms that end where they began, if there are such; trees stir all."""
    if not ground.is_flat:
        return []
    leaves = np.abs(ground.apart(q[0], q)).max(axis=0)
    idle = (q[0] == q[-1]) & (leaves > 0.0) & (leaves < COARSE)
    return [np.where(idle, q[0], q)] if idle.any() else []


def _margin(ground: Ground, ends: list[Array]) -> float:
    if ground.collider is None:
        return 0.0
    spare = float(np.min(ground.collider.distance(np.array(ends)))) - ground.clearance
    return min(MARGIN, 0.5 * max(spare, 0.0))


def _collider(
    mechanism: Mechanism, avoid: Avoid | Collider | None, allow: tuple[tuple[str, str], ...],
    forbid: tuple[tuple[str, str], ...],
) -> Collider | None:  # fmt: skip
    if isinstance(avoid, Collider):
        if avoid.mechanism is not mechanism:
            raise StructureError("avoid is a collider of another mechanism")
        if allow or forbid:
            raise WrongKind("allow and forbid belong to the collider that is given as avoid; give them to it")
        return avoid
    if avoid is None:
        return None
    given = avoid if isinstance(avoid, str) else tuple(avoid) if isinstance(avoid, Iterable) else avoid
    if given == ():
        return None
    if not any(link.collisions for link in mechanism.links.values()):
        name = mechanism.name or "the mechanism"
        raise StructureError(
            f"no link of {name!r} has a shape to bump with, so nothing can be avoided; give links collisions, such as "
            "Link(collisions=[PlacedShape(Capsule(0.05, 0.3))]), or plan with avoid=None"
        )
    return Collider(mechanism, given, allow=allow, forbid=forbid)
