"""Plan a collision-free path from a start to a goal: the function `plan` and its result `PlannedPath`.

By default the straight segment is tried first, then a tree planner. The path of a tree planner is shortened, and its
corners are rounded or, with closed loops, it is smoothed. Each path is checked before it is returned
(`path_certificate.py`).
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
    refine_for_spline,
    remove_duplicates,
    round_corners,
    round_corners_in_kernel,
    shortcut_in_kernel,
    shortcut_path,
    smooth_with_closed_loops,
)
from mechanik.motion.plan.planning_goals import PlanningGoal, as_goals, as_start
from mechanik.motion.plan.planning_space import SEARCH_CHECK_STEP, PlanningSpace
from mechanik.motion.plan.tree_planners import (
    RRT_CONNECT,
    check_planner,
    plan_constrained_rrt,
    plan_rrt_connect,
)
from mechanik.processor_clock import seconds_since
from mechanik.solver.options import DofNames, as_bounds, as_collider, as_dof_mask, check_avoid_arguments
from mechanik.solver.solution import Solution
from mechanik.spatial.array import Array, ArrayLike
from mechanik.tiers import wait_for_kernels
from mechanik.validation import as_number, as_rng, format_count


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class PlannedPath(Path):
    """A path found by `mk.plan`, with the planner, the time and the result of the clearance check.

    Attributes:
        mechanism: the mechanism of the waypoints; the path does not move it.
        q: (N, nq) waypoints from the start to the goal; read-only.
        s: (N,) share of the path's length up to each waypoint, from 0 to 1, where 0.5 m counts as 1 rad; read-only.
        planner: "straight" if no search was needed: the path is the straight segment or a single waypoint. Else the
            name of the planner.
        goal: index of the goal where the path ends, among the valid goals sorted by distance from the start.
        seconds: wall time of the call without waiting for the compilation of kernels, s.
        min_distance: smallest distance measured along the path, m; infinite if nothing is avoided.
        is_certain: whether it is proven that the clearance is kept everywhere on the path: between two checks, no point
            of a link moves far enough to violate it. If false, the path is only checked every 0.01 rad or 5 mm.

    Example:
        >>> path = mk.plan(mk.arm_2d([0.5, 0.4]), [0.0, 0.0], [1.0, 1.0], avoid=None)
        >>> path.planner, path.is_certain
        ('straight', True)
    """

    planner: str
    goal: int
    seconds: float
    min_distance: float
    is_certain: bool

    def __init__(
        self, mechanism: Mechanism, q: Array, s: Array, planner: str, goal: int, seconds: float, min_distance: float,
        is_certain: bool,
    ) -> None:  # fmt: skip
        Path.__init__(self, mechanism, q, s)
        for name, value in (
            ("planner", planner), ("goal", goal), ("seconds", seconds), ("min_distance", min_distance),
            ("is_certain", is_certain),
        ):  # fmt: skip
            object.__setattr__(self, name, value)


KERNELS = (
    "distance.collision_query", "planning.tree_growth", "planning.path_shortening",
    "planning.corner_rounding", "planning.motion_certificate",
    "planning.spline_clearance",
)  # fmt: skip
"""Kernels that must be compiled before planning; in plain Python they are too slow for the default time."""
SEARCH_MARGIN = 1e-3
"""m: largest extra clearance during the search; it is smaller if the start or a goal exceeds the clearance by less than
twice this length."""
STRAIGHT_GOALS = 6
"""Number of nearest goals to which a straight segment is tried first."""
MAX_SEARCHES = 3
"""Largest number of searches, and of improved versions of the path that a search finds. If a path is not
acceptable (`_is_acceptable`), the next search or version uses half the check step."""
CheckedPath = tuple[Array, str, tuple[float, bool]]
"""A free path: waypoints (N, nq), name of the planner, and (smallest distance in m, whether it is proven free)."""


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

    By default the straight segment is used if it is free. Otherwise the path of the planner is shortened and its
    corners are rounded. If possible, it is proven that the path keeps the clearance everywhere
    (`PlannedPath.is_certain`). Where no proof is possible, as with closed loops, the path is checked every 0.01 rad or
    5 mm. If possible, waypoints are inserted until the spline that `mk.retime` fits through them is collision-free,
    too.

    Args:
        mechanism: the mechanism; it is not moved.
        start: (nq,) or a solution; None: the current configuration of the mechanism.
        goal: a configuration (nq,) or a solution, or several of these: the path ends at one of them. Or objectives that
            are all met at the end: collision-free configurations that meet them are searched, and their angles are
            shifted by full rotations as close to the start as possible.
        avoid: "self" and obstacles, or a `Collider`; None: nothing.
        clearance: m, smallest allowed distance.
        allow, forbid: pairs of names that are excluded from the collision check, or included although excluded by
            default.
        planner: "auto" tries the straight segment first and then RRT-Connect; "rrt_connect" uses only RRT-Connect.
        max_seconds: s, wall time until the search ends; waiting for the compilation of kernels does not count, and the
            final checks may take longer.
        lock: joints or dofs that must not move.
        limits: (lower, upper) by joint or dof name, which replace the limits of the mechanism; rad or m.
        rng: random generator. With the default, every call in every thread returns the same path, unless the time limit
            ends the search. To get a shorter path, plan with several generators and take the shortest path.

    Returns:
        The path; its s is the relative length from 0 to 1.

    Raises:
        PlanningError: the start or all goals are invalid, or no path was found.
        UnknownName: there is no such planner.
        StructureError: no link has a collision shape, but `avoid` is not empty.
        LimitsError: `max_seconds` is not above 0, or every configuration found that meets the objectives moves a locked
            dof.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.4])
        >>> path = mk.plan(arm, [0.0, 0.0], mk.PositionGoal("tool", (0.3, 0.6, 0.0)), avoid=None)
        >>> np.round(arm.poses(path.q[-1])[-1, :2, 3], 3).tolist()
        [0.3, 0.6]
    """
    if avoid is not None:
        wait_for_kernels(*KERNELS, what="planning")
    start_time = time.perf_counter()
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"the first argument must be a mechanism, not {mechanism!r}")
    seconds = as_number(max_seconds, "max_seconds", allow_infinite=True)
    if not seconds > 0.0:
        raise LimitsError(f"max_seconds must be above 0, not {seconds:g}")
    deadline = start_time + seconds
    min_clearance = as_number(clearance, "clearance")
    pair_rules = tuple(allow or ()), tuple(forbid or ())
    check_avoid_arguments(mechanism, avoid, min_clearance, *pair_rules)
    collider = _collider_with_shapes(mechanism, avoid, *pair_rules)
    lower, upper = as_bounds(mechanism, limits)
    can_move = np.ones(mechanism.nv, dtype=np.bool_) if lock is None else ~as_dof_mask(mechanism, lock, False)
    generator = np.random.default_rng(0) if rng is None else as_rng(rng)
    with cached_loop_system(mechanism, {}) as loops:
        space = PlanningSpace(mechanism, loops, collider, min_clearance, lower, upper, can_move)
        check_planner(planner)
        q_start = as_start(space, start)
        goals = as_goals(space, goal, q_start, {"lock": lock, "limits": limits}, generator, deadline)
        space.clearance = min_clearance + _clearance_margin(space, [q_start, *goals])
        q, planner, distance_and_proof = _search(space, q_start, goals, planner, min_clearance, deadline, generator)
        q = refine_for_spline(space, q, min_clearance)
    goal_index = int(np.argmin(np.abs(goals - q[-1]).max(axis=1)))
    arc_length = np.append(0.0, np.cumsum(np.linalg.norm(space.scaled_difference(q[:-1], q[1:]), axis=1)))
    s = arc_length / arc_length[-1] if arc_length[-1] > 0.0 else np.linspace(0.0, 1.0, len(q))
    return PlannedPath(mechanism, q, s, planner, goal_index, seconds_since(start_time), *distance_and_proof)


def _search(
    space: PlanningSpace,
    start: Array,
    goals: Array,
    planner: str,
    clearance: float,
    deadline: float,
    rng: np.random.Generator,
) -> CheckedPath:
    """Find an acceptable path (`_is_acceptable`), else return the free path with the largest `min_distance`.

    Raises:
        PlanningError: no free path was found.
    """
    if space.max_difference(start, goals[0]) < 1e-12:
        certificate = certify_path(space, np.array([start, goals[0]]), clearance, deadline)
        return goals[:1], "straight", (certificate.min_distance, certificate.is_certain)
    notes, free_paths = list[str](), list[CheckedPath]()
    for goal in goals[:STRAIGHT_GOALS] if planner == "auto" else ():
        segment = space.free_segment(start, goal)
        if segment is None:
            continue
        q = segment if space.has_loops else segment[[0, -1]]
        certificate = certify_path(space, q, clearance, deadline)
        if certificate.is_free:
            free_paths.append((q, "straight", (certificate.min_distance, certificate.is_certain)))
        if _is_acceptable(space, certificate, clearance):
            return free_paths[-1]
    for _ in range(MAX_SEARCHES):
        search = plan_rrt_connect if space.is_euclidean else plan_constrained_rrt
        q = search(space, start, goals, deadline, rng)
        if q is None:
            break
        q, search_step = remove_duplicates(space, q), space.step
        candidates = (
            variant
            for q_improved in _improved_paths(space, q, rng, deadline)
            for variant in (*_without_needless_motion(space, q_improved), q_improved)
        )
        for candidate in candidates:
            certificate = certify_path(space, candidate, clearance, deadline)
            if certificate.is_free:
                free_paths.append((candidate, RRT_CONNECT, (certificate.min_distance, certificate.is_certain)))
            if _is_acceptable(space, certificate, clearance):
                return free_paths[-1]
        notes.append(
            f"a path found with checks {search_step:g} rad or {0.5 * search_step:g} m apart is in collision between "
            "the checks"
        )
        space.step = 0.5 * search_step
    if free_paths:
        return max(free_paths, key=lambda free_path: free_path[2][0])
    checks = format_count(space.check_count, "configuration")
    note_text = f"; {'; '.join(notes)}" if notes else ""
    raise PlanningError(
        f"RRT-Connect found no path to {format_count(len(goals), 'goal')} within max_seconds ({checks} checked)"
        f"{note_text}. There may be no path; try more max_seconds, less clearance, or other goals"
    )


def _is_acceptable(space: PlanningSpace, certificate: PathCertificate, clearance: float) -> bool:
    """Whether a path is proven free, or is free where no proof is possible.

    No proof is possible with closed loops, or if the start or a goal is exactly at the clearance.
    """
    return certificate.is_certain or (certificate.is_free and (space.has_loops or space.clearance <= clearance))


def _improved_paths(space: PlanningSpace, q: Array, rng: np.random.Generator, deadline: float) -> Iterator[Array]:
    """Yield improved paths, each with half the check step of the previous one; then q (N, nq) itself.

    An improved path is shortened, and its corners are rounded. Along loops, it is shortened and smoothed.
    """
    for _ in range(MAX_SEARCHES):
        if space.is_euclidean:
            yield round_corners_in_kernel(space, shortcut_in_kernel(space, q, rng, deadline))
        else:
            q_shortened = shortcut_path(space, q, rng, deadline)
            q_smooth = (
                smooth_with_closed_loops(space, q_shortened, deadline)
                if space.has_loops
                else round_corners(space, q_shortened, deadline)
            )
            yield remove_duplicates(space, q_smooth)
        space.step *= 0.5
    yield q


def _without_needless_motion(space: PlanningSpace, q: Array) -> list[Array]:
    """List of the path without small motions of dofs that end where they start; empty if it has no such motions.

    Tree planners cause such motions, because they move all dofs.
    """
    if not space.is_euclidean:
        return []
    excursions = np.abs(space.scaled_difference(q[0], q)).max(axis=0)
    is_needless = (q[0] == q[-1]) & (excursions > 0.0) & (excursions < SEARCH_CHECK_STEP)
    return [np.where(is_needless, q[0], q)] if is_needless.any() else []


def _clearance_margin(space: PlanningSpace, ends: list[Array]) -> float:
    """Extra clearance (m) of the search: at most half of the distance by which all ends exceed the clearance.

    Args:
        ends: the start and the goals, (nq,) each.
    """
    if space.collider is None:
        return 0.0
    excess = float(np.min(space.collider.distance(np.array(ends)))) - space.clearance
    return min(SEARCH_MARGIN, 0.5 * max(excess, 0.0))


def _collider_with_shapes(
    mechanism: Mechanism, avoid: Avoid | Collider | None, allow: tuple[tuple[str, str], ...],
    forbid: tuple[tuple[str, str], ...],
) -> Collider | None:  # fmt: skip
    """Collider with the shapes of the mechanism and the obstacles; None if `avoid` is None or empty."""
    if avoid is None or isinstance(avoid, Collider):
        return as_collider(mechanism, avoid, allow, forbid)
    obstacles = avoid if isinstance(avoid, str) else tuple(avoid) if isinstance(avoid, Iterable) else avoid
    if obstacles == ():
        return None
    if not any(link.collisions for link in mechanism.links.values()):
        name = repr(mechanism.name) if mechanism.name else "the mechanism"
        raise StructureError(
            f"no link of {name} has a collision shape, so nothing can be avoided; give links collisions, such as "
            "Link(collisions=[ShapeInstance(Capsule(0.05, 0.3))]), or plan with avoid=None"
        )
    return as_collider(mechanism, obstacles, allow, forbid)
