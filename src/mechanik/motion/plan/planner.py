"""`plan`: a collision-free path from a start to a goal, and its result type `PlannedPath`.

The straight segment is tried first, then a tree planner. The path is shortened, its corners are rounded, and the result
is certified.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mechanik.closure.loop_system import cached_loop_system
from mechanik.collision import Collider
from mechanik.collision.collision_pairs import Avoid
from mechanik.errors import InvalidArgument, LimitsError, PlanningError, StructureError
from mechanik.model import Mechanism
from mechanik.motion.follow import Path
from mechanik.motion.plan.path_certificate import PathCertificate, certify_path
from mechanik.motion.plan.path_postprocessing import (
    blend_corners,
    blend_corners_in_kernel,
    refine_for_spline,
    remove_duplicates,
    shortcut_in_kernel,
    shortcut_path,
    smooth_along_loops,
)
from mechanik.motion.plan.planning_goals import PlanningGoal, as_goals, as_start
from mechanik.motion.plan.planning_space import SEARCH_CHECK_STEP, PlanningSpace
from mechanik.motion.plan.tree_planners import (
    RRT_CONNECT,
    check_planner,
    plan_constrained_rrt,
    plan_rrt_connect,
    plan_with_ompl,
)
from mechanik.objectives.target_validation import as_rng
from mechanik.processor_clock import seconds_since
from mechanik.solver.collision_constraint import check_avoid_arguments
from mechanik.solver.dof_selection import DofNames, as_bounds, as_dof_mask
from mechanik.solver.solution import Solution
from mechanik.spatial.array import Array, ArrayLike
from mechanik.tiers import wait_for_kernels
from mechanik.validation import as_number, format_count


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class PlannedPath(Path):
    """A path found by `mk.plan`, with the planner, the time and the certified clearance.

    Attributes:
        planner: "straight" if the straight segment is free, else the name of the planner.
        goal: index of the goal where the path ends, in order of distance from the start.
        seconds: wall time of the call, s.
        gap: smallest distance measured along the path, m; infinite if nothing is avoided.
        is_certain: whether it is proven that the clearance is kept everywhere on the path: between two checks no point
            can move as far as the distances measured there. If false, the path is checked every 0.01 rad or 5 mm.

    Example:
        >>> path = mk.plan(mk.arm_2d([0.5, 0.4]), [0.0, 0.0], [1.0, 1.0], avoid=None)
        >>> path.planner, path.is_certain
        ('straight', True)
    """

    planner: str
    goal: int
    seconds: float
    gap: float
    is_certain: bool

    def __init__(
        self, mechanism: Mechanism, q: Array, s: Array, planner: str, goal: int, seconds: float, gap: float,
        certain: bool,
    ) -> None:  # fmt: skip
        Path.__init__(self, mechanism, q, s)
        for name, value in (
            ("planner", planner), ("goal", goal), ("seconds", seconds), ("gap", gap), ("is_certain", certain),
        ):  # fmt: skip
            object.__setattr__(self, name, value)


KERNELS = (
    "distance.collision_query", "planning.tree_growth", "planning.path_shortening",
    "planning.corner_rounding", "planning.motion_certificate",
    "planning.spline_clearance",
)  # fmt: skip
"""Kernels in which planning spends its time; without compilation no path would be found in the default time."""
MARGIN = 1e-3
"""m: extra clearance during the search, as far as the start and the goals allow it."""
DIRECT = 6
"""Number of goals to which the straight segment is tried first."""
LAST = 0.2
"""Share of the time that planners which never stop by themselves leave for post-processing."""
FINER = 3
"""Number of searches, each with half the check step, where the certificate finds a collision."""
Found = tuple[Array, str, tuple[float, bool]]
"""Waypoints (N, nq), the planner, and the smallest distance (m) with whether the path is proven free."""


def plan(
    mechanism: Mechanism,
    start: ArrayLike | Solution | None,
    goal: PlanningGoal,
    *,
    avoid: Avoid | Collider | None = ("self",),
    clearance: float = 0.0,
    allow: Iterable[tuple[str, str]] = (),
    forbid: Iterable[tuple[str, str]] = (),
    planner: str = "auto",
    max_seconds: float = 5.0,
    lock: DofNames | str | None = None,
    limits: Mapping[str, ArrayLike] | None = None,
    rng: np.random.Generator | None = None,
) -> PlannedPath:
    """Find a collision-free path from the start to a goal; loops stay closed along the path.

    The straight segment is used if it is free. Otherwise the path of the planner is shortened and its corners are
    rounded. At the end the path is checked every 0.01 rad or 5 mm, and for mechanisms without loops also between these
    configurations (`PlannedPath.is_certain`). Waypoints are inserted until the spline that `mk.retime` fits through
    them is free, too, as far as possible.

    Args:
        mechanism: the mechanism; it is not moved.
        start: (nq,) or a solution; None: the current configuration of the mechanism.
        goal: (nq,), a solution, several of them, or objectives to meet at the end. For objectives, collision-free
            configurations are searched, with angles as close to the start as possible. The path ends at one of the
            goals.
        avoid: "self" and obstacles, or a `Collider`; None: nothing.
        clearance: m, smallest allowed distance.
        allow, forbid: pairs of names that are excluded from the collision check, or included although excluded by
            default.
        planner: "auto" is the built-in RRT-Connect; or the name of a planner of OMPL (extra `plan`). Those whose name
            ends with "star" use all of the time.
        max_seconds: s, wall time until the result or a `PlanningError`.
        lock: joints or dofs that may not move.
        limits: (lower, upper) by joint or dof name, which replace the limits of the mechanism; rad or m.
        rng: source of all randomness. By default the same path results each time, as far as the time limit allows, in
            every thread. The generators of OMPL are global: threads that plan with OMPL at the same time share them.

    Returns:
        The path; its s is the relative length from 0 to 1.

    Raises:
        PlanningError: the start or all goals are invalid, or no path was found in time.
        UnknownName: there is no such planner for this mechanism.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.4])
        >>> path = mk.plan(arm, [0.0, 0.0], mk.PositionGoal("tool", (0.3, 0.6, 0.0)), avoid=None)
        >>> np.round(arm.poses(path.q[-1])[-1, :2, 3], 3).tolist()
        [0.3, 0.6]
    """
    if avoid is not None:
        wait_for_kernels(*KERNELS, what="planning")
    begun = time.perf_counter()
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"plan takes a mechanism, not {mechanism!r}")
    seconds = as_number(max_seconds, "max_seconds", allow_infinite=True)
    if not seconds > 0.0:
        raise LimitsError(f"max_seconds must be above 0, not {seconds:g}")
    until = begun + seconds
    wide = as_number(clearance, "clearance")
    rules = tuple(allow or ()), tuple(forbid or ())
    check_avoid_arguments(mechanism, avoid, wide, *rules)
    collider = _collider(mechanism, avoid, *rules)
    lower, upper = as_bounds(mechanism, limits)
    free = np.ones(mechanism.nv, dtype=np.bool_) if lock is None else ~as_dof_mask(mechanism, lock, False)
    generator = np.random.default_rng(0) if rng is None else as_rng(rng)
    with cached_loop_system(mechanism, {}) as loops:
        ground = PlanningSpace(mechanism, loops, collider, wide, lower, upper, free)
        check_planner(ground, planner)
        first = as_start(ground, start)
        goals = as_goals(ground, goal, first, {"lock": lock, "limits": limits}, generator, until)
        ground.clearance = wide + _margin(ground, [first, *goals])
        q, planner, verdict = _search(ground, first, goals, planner, wide, until, generator)
        q = refine_for_spline(ground, q, wide)
    last = int(np.argmin(np.abs(goals - q[-1]).max(axis=1)))
    along = np.append(0.0, np.cumsum(np.linalg.norm(ground.scaled_difference(q[:-1], q[1:]), axis=1)))
    s = along / along[-1] if along[-1] > 0.0 else np.linspace(0.0, 1.0, len(q))
    return PlannedPath(mechanism, q, s, planner, last, seconds_since(begun), *verdict)


def _search(
    ground: PlanningSpace,
    start: Array,
    goals: Array,
    planner: str,
    clearance: float,
    until: float,
    rng: np.random.Generator,
) -> Found:
    """A path that is proven free, if possible; else the widest path on which no collision was found."""
    by = RRT_CONNECT if planner == "auto" else planner
    if ground.max_difference(start, goals[0]) < 1e-12:
        verdict = certify_path(ground, np.array([start, goals[0]]), clearance, until)
        return goals[:1], "straight", (verdict.gap, verdict.is_certain)
    tried, unproven = list[str](), list[Found]()
    for goal in goals[:DIRECT] if planner == "auto" else ():
        way = ground.free_segment(start, goal)
        if way is None:
            continue
        q = way if ground.has_loops else way[[0, -1]]
        verdict = certify_path(ground, q, clearance, until)
        if verdict.is_free:
            unproven.append((q, "straight", (verdict.gap, verdict.is_certain)))
        if _is_enough(ground, verdict, clearance):
            return unproven[-1]
    for _ in range(FINER):
        # optimizing planners use all of their time: keep a share for post-processing
        trees_until = until - LAST * (until - time.perf_counter()) if "star" in by else until
        if by == RRT_CONNECT:
            ours = plan_rrt_connect if ground.is_euclidean else plan_constrained_rrt
            q = ours(ground, start, goals, trees_until, rng)
        else:
            q = plan_with_ompl(ground, start, goals, by, trees_until, rng)
        if q is None:
            break
        q, searched = remove_duplicates(ground, q), ground.step
        ways = (one for better in _better(ground, q, rng, until) for one in (*_stilled(ground, better), better))
        for candidate in ways:
            verdict = certify_path(ground, candidate, clearance, until)
            if verdict.is_free:
                unproven.append((candidate, by, (verdict.gap, verdict.is_certain)))
            if _is_enough(ground, verdict, clearance):
                return unproven[-1]
        tried.append(f"a path was found with looks {searched:g} rad apart, and bumps between them")
        ground.step = 0.5 * searched
    if unproven:
        return max(unproven, key=lambda one: one[2][0])
    looks = format_count(ground.check_count, "configuration")
    more = f"; {'; '.join(tried)}" if tried else ""
    raise PlanningError(
        f"no path to {format_count(len(goals), 'goal')} was found by {by} in the time there was, with {looks} looked at"
        f"{more}. There may be none: give it more max_seconds, less clearance, or other goals"
    )


def _is_enough(ground: PlanningSpace, verdict: PathCertificate, clearance: float) -> bool:
    """Whether a path is proven free, or free where no proof is possible: along loops, or where an end has no margin."""
    return verdict.is_certain or (verdict.is_free and (ground.has_loops or ground.clearance <= clearance))


def _better(ground: PlanningSpace, q: Array, rng: np.random.Generator, until: float) -> Iterator[Array]:
    """Yield the path shortened and with rounded corners, with finer and finer check steps, and at last unchanged."""
    for _ in range(FINER):
        if ground.is_euclidean:
            yield blend_corners_in_kernel(ground, shortcut_in_kernel(ground, q, rng, until))
        else:
            short = shortcut_path(ground, q, rng, until)
            better = (
                smooth_along_loops(ground, short, until) if ground.has_loops else blend_corners(ground, short, until)
            )
            yield remove_duplicates(ground, better)
        ground.step *= 0.5
    yield q


def _stilled(ground: PlanningSpace, q: Array) -> list[Array]:
    """The path without small motions of dofs that end where they start, if there are any.

    Tree planners move all dofs.
    """
    if not ground.is_euclidean:
        return []
    leaves = np.abs(ground.scaled_difference(q[0], q)).max(axis=0)
    idle = (q[0] == q[-1]) & (leaves > 0.0) & (leaves < SEARCH_CHECK_STEP)
    return [np.where(idle, q[0], q)] if idle.any() else []


def _margin(ground: PlanningSpace, ends: list[Array]) -> float:
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
            raise InvalidArgument("allow and forbid belong to the collider that is given as avoid; give them to it")
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
            "Link(collisions=[ShapeInstance(Capsule(0.05, 0.3))]), or plan with avoid=None"
        )
    return Collider(mechanism, given, allow=allow, forbid=forbid)
