"""Find a continuous path for goals that change along a parameter s, or report where and why the path breaks.

`follow` searches the path in a roadmap of solution branches (`roadmap.py`), whose nodes are configurations at a few
waypoints, the stations. For a redundant mechanism, the path is then smoothed: each waypoint moves towards the weighted
mean of its neighbours and is projected back onto the goals.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mechanik.errors import InvalidArgument, NotSolved, ShapeError
from mechanik.model import Mechanism
from mechanik.motion.follow.branch_tracing import TracedBranch, branches_at, refine_branch_end
from mechanik.motion.follow.follow_problem import (
    FEASIBLE,
    FULL_ROTATION,
    IN_COLLISION,
    FollowProblem,
    GoalsAlongPath,
    PathTargets,
    are_segments_free,
    first_collision,
)
from mechanik.motion.follow.joint_path import Path
from mechanik.motion.follow.roadmap import Roadmap, RouteTable, best_routes, build_roadmap, waypoints_to
from mechanik.solver.options import as_collider
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number

if TYPE_CHECKING:
    from mechanik.collision import Collider, Obstacle


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FollowResult:
    """Result of `mk.follow`: the path, or the s where it breaks and the reason.

    Attributes:
        mechanism: the mechanism; it is not moved.
        path: all waypoints; only the waypoints before the break if the path breaks; None if no valid configuration
            meets the goals at the first waypoint, or if the start `q0` is in collision.
        success: whether the path does not break.
        broken_at: the s where the path breaks; None if it does not. One branch can be followed up to this s.
        reason: cause of the break; starts with "out of reach", "at a limit of joint", "in collision", "singular", "no
            single branch", "too fast" or "loops cannot be closed". Empty if the path does not break.
        segments: (start, end) in s of the intervals in which the goals can be followed, each on one branch. Between two
            intervals there is a gap. If they overlap, there is a jump to another branch instead, anywhere in the
            overlap. The whole range of s if the path does not break, or if the goals are met at all waypoints but a
            segment between two waypoints is not valid. Empty if there is no such interval, or if the start `q0` is in
            collision.
        last_q: (nq,) configuration at the break; None if the path does not break, or if it has no waypoints.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.4])
        >>> result = mk.follow(arm, mk.PositionGoal("tool", (0.6, 0, 0)), lambda s: (0.6 + s, 0, 0), 11)
        >>> result.success, round(result.broken_at, 2)
        (False, 0.3)
    """

    mechanism: Mechanism
    path: Path | None
    success: bool
    broken_at: float | None = None
    reason: str = ""
    segments: tuple[tuple[float, float], ...] = ()
    last_q: Array | None = None

    @property
    def message(self) -> str:
        """Summary of the result in one sentence."""
        if self.success and self.path is not None:
            return (
                f"followed through all {len(self.path)} waypoints; largest step {self.path.largest_step:.3g} rad or m, "
                f"median step {self.path.median_step:.3g} rad or m"
            )
        return f"cannot be followed beyond s = {self.broken_at:.6g}: {self.reason}"

    def __repr__(self) -> str:
        return f"<{'followed' if self.success else 'not followed'}: {self.message}>"

    def require(self) -> Path:
        """Return the path, or raise an error whose message states where and why the path breaks.

        Raises:
            NotSolved: the goals cannot be followed to the end.
        """
        if not self.success or self.path is None:
            raise NotSolved(self.message, self)
        return self.path


CAUSE_OFFSET = 1e-4
"""Distance beyond a break at which its cause is examined, as a ratio of the range of s."""
MIN_INTERVAL = 1e-3
"""Length of the shortest interval that is reported, as a ratio of the range of s."""


@dataclass(frozen=True, slots=True, eq=False)
class PathBreak:
    """The end of the longest path that can be followed from the first waypoint.

    Attributes:
        s: parameter of the break.
        q: (nq,) configuration at the break.
        waypoints: (m, nq) waypoints before the break.
        branch: the branch that ends at the break; None if a multi-turn joint (with a range of a full rotation or
            more) leaves its limits there, or if the break is at the first waypoint.
        reason: cause of the break; empty if it is not determined yet.
    """

    s: float
    q: Array
    waypoints: Array
    branch: TracedBranch | None
    reason: str = ""


def explain_failure(roadmap: Roadmap, q_near: Array) -> FollowResult:
    """Result for a path that cannot be followed to its end, with the parameter and the cause of the break.

    Args:
        q_near: (nq,) preferred configuration.
    """
    problem = roadmap.problem
    s = problem.s
    if not roadmap.nodes[0]:
        reason = _infeasibility_reason(problem, float(s[0]), q_near)
        return FollowResult(problem.mechanism, None, False, float(s[0]), reason, _later_intervals(roadmap, float(s[0])))
    path_break = _farthest_break(roadmap, best_routes(roadmap, q_near))
    path = Path(problem.mechanism, path_break.waypoints, s[: len(path_break.waypoints)])
    intervals = ((float(s[0]), path_break.s), *_later_intervals(roadmap, path_break.s))
    reason = path_break.reason or _break_reason(problem, path_break)
    covers_path = (
        len(intervals) > 1 and intervals[-1][1] >= s[-1] and all(b[0] <= a[1] for a, b in itertools.pairwise(intervals))
    )
    if covers_path:
        ranges = ", ".join(f"from s = {a:.6g} to {b:.6g}" for a, b in intervals)
        branch_ranges = ranges.replace(", ", ", another ")
        reason = f"no single branch: one exists {branch_ranges}; cause of the end of the first branch: {reason}"
    elif len(intervals) > 1:
        ranges = ", ".join(f"from s = {a:.6g} to {b:.6g}" for a, b in intervals[1:])
        reason += f"; the goals can be followed again {ranges}"
    return FollowResult(problem.mechanism, path, False, path_break.s, reason, intervals, path_break.q)


def _farthest_break(roadmap: Roadmap, routes: RouteTable) -> PathBreak:
    """Find the break with the largest s over all routes from the first waypoint."""
    problem = roadmap.problem
    multi_turn_indices = np.flatnonzero(problem.is_multi_turn)
    farthest_break: PathBreak | None = None
    for i in range(len(roadmap.stations) - 1, -1, -1):
        ended_branches = [
            (branch, state) for state in routes[i] if (branch := roadmap.forward_branches[i].get(state[0])) is not None
        ]
        ended_branches.sort(key=lambda item: item[0].s_end, reverse=True)
        for branch, state in ended_branches[:1]:
            if farthest_break is None or branch.s_end > farthest_break.s:
                waypoints_before = waypoints_to(roadmap, routes, i, state)
                branch = refine_branch_end(
                    problem, branch, float(problem.s[min(roadmap.stations[i] + len(branch.q), len(problem.s) - 1)])
                )
                shift = np.zeros(problem.space.nq)
                shift[multi_turn_indices] = FULL_ROTATION * np.round(
                    (waypoints_before[-1] - branch.q[0])[multi_turn_indices] / FULL_ROTATION
                )
                farthest_break = PathBreak(
                    branch.s_end, branch.q_end + shift, np.concatenate([waypoints_before, branch.q[1:] + shift]), branch
                )
        for state in routes[i]:
            farthest_break = _farther_winding_break(roadmap, routes, i, state, farthest_break)
        if farthest_break is not None:
            break
    if farthest_break is None:
        state = next(iter(routes[0]))
        q = waypoints_to(roadmap, routes, 0, state)
        farthest_break = PathBreak(float(problem.s[0]), q[0], q, None)
    return farthest_break


def _farther_winding_break(
    roadmap: Roadmap, routes: RouteTable, i: int, state: tuple[int, tuple[int, ...]], farthest_break: PathBreak | None
) -> PathBreak | None:
    """Find a break beyond `farthest_break` where a multi-turn joint leaves its limits on an edge from a node.

    Args:
        i: index of the station.
        state: index of the node, and its windings (numbers of full rotations of the multi-turn joints).
        farthest_break: the farthest break so far.

    Returns:
        The farthest such break; `farthest_break` if there is none.
    """
    problem = roadmap.problem
    multi_turn_indices = np.flatnonzero(problem.is_multi_turn)
    if i >= len(roadmap.edges):
        return farthest_break
    for edge in roadmap.edges[i]:
        if edge.start_node != state[0]:
            continue
        q = edge.q.copy()
        start_angles = roadmap.nodes[i][edge.start_node][multi_turn_indices] + FULL_ROTATION * np.array(state[1])
        q[:, multi_turn_indices] += FULL_ROTATION * np.round((start_angles - q[0, multi_turn_indices]) / FULL_ROTATION)
        is_outside = (q[:, multi_turn_indices] < problem.lower[multi_turn_indices] - 1e-9) | (
            q[:, multi_turn_indices] > problem.upper[multi_turn_indices] + 1e-9
        )
        if not is_outside.any():
            continue
        outside_index = int(np.argmax(is_outside.any(axis=1)))
        s = float(roadmap.edge_parameters(i)[max(outside_index - 1, 0)])
        if farthest_break is None or s > farthest_break.s:
            name = problem.space.q_names[int(multi_turn_indices[int(np.argmax(is_outside[outside_index]))])]
            waypoints_before = waypoints_to(roadmap, routes, i, state)
            waypoints = np.concatenate([waypoints_before, q[1:outside_index]])
            farthest_break = PathBreak(s, waypoints[-1], waypoints, None, f"at a limit of joint {name}")
    return farthest_break


def _later_intervals(roadmap: Roadmap, s: float) -> tuple[tuple[float, float], ...]:
    """Smallest set of intervals (start, end) beyond `s` in which the goals can be followed."""
    problem, count = roadmap.problem, len(roadmap.stations)
    s_first, s_last = float(problem.s[0]), float(problem.s[-1])
    interval_starts: list[list[float]] = []
    for i in range(count):
        s_station = float(problem.s[roadmap.stations[i]])
        starts = [
            roadmap.backward_branches[i][k].s_end if k in roadmap.backward_branches[i] else s_station
            for k in range(len(roadmap.nodes[i]))
        ]
        if i:
            for edge in roadmap.edges[i - 1]:
                starts[edge.end_node] = min(starts[edge.end_node], interval_starts[i - 1][edge.start_node])
        interval_starts.append(starts)
    interval_ends: list[list[float]] = [[] for _ in range(count)]
    for i in range(count - 1, -1, -1):
        s_station = float(problem.s[roadmap.stations[i]])
        ends = [
            roadmap.forward_branches[i][k].s_end if k in roadmap.forward_branches[i] else s_station
            for k in range(len(roadmap.nodes[i]))
        ]
        if i < count - 1:
            for edge in roadmap.edges[i]:
                ends[edge.start_node] = max(ends[edge.start_node], interval_ends[i + 1][edge.end_node])
        interval_ends[i] = ends
    all_intervals = [
        (max(a, s_first), b) for i in range(count) for a, b in zip(interval_starts[i], interval_ends[i], strict=True)
    ]
    intervals: list[tuple[float, float]] = []
    while s < s_last:
        candidates = [span for span in all_intervals if span[1] > max(s, span[0]) + MIN_INTERVAL * (s_last - s_first)]
        if not candidates:
            break
        overlapping_intervals = [span for span in candidates if span[0] <= s]
        interval = (
            max(overlapping_intervals, key=lambda span: span[1])
            if overlapping_intervals
            else min(candidates, key=lambda span: (span[0], -span[1]))
        )
        intervals.append(interval)
        s = interval[1]
    return tuple(intervals)


def _break_reason(problem: FollowProblem, path_break: PathBreak) -> str:
    """Cause of a break, examined slightly beyond it."""
    if path_break.branch is not None and path_break.branch.code == IN_COLLISION:
        return _collision_reason(problem, path_break)
    s = min(path_break.s + CAUSE_OFFSET * float(problem.s[-1] - problem.s[0]), float(problem.s[-1]))
    if names := problem.dofs_at_limits(path_break.q):
        unlimited_problem = problem.without_limits()
        q, codes = unlimited_problem.project(np.array([s]), path_break.q[None])
        if codes[0] == FEASIBLE:
            is_outside = (q[0] < problem.lower) | (q[0] > problem.upper)
            names_beyond_limit = [
                name for name, is_beyond in zip(problem.space.q_names, is_outside, strict=True) if is_beyond
            ]
            names = [name for name in names if name in names_beyond_limit] or names
            return f"at a limit of joint {', '.join(names)}"
    if len(branches_at(problem, s, path_break.q, 2)):
        return "singular: two branches meet there and end"
    return _infeasibility_reason(problem, s, path_break.q)


def _infeasibility_reason(problem: FollowProblem, s: float, q_near: Array) -> str:
    """Reason why no valid configuration meets the goals at s."""
    contacts_by_branch = (
        [problem.contacts(q) for q in branches_at(problem, s, q_near, 4, ignore_collisions=True)]
        if problem.has_collider
        else []
    )
    if deepest_contacts := [contacts[0] for contacts in contacts_by_branch if contacts]:
        shallowest_contact = max(deepest_contacts, key=lambda contact: contact.distance)
        return f"in collision in every configuration found that meets the goals; at best {shallowest_contact}"
    unlimited_problem = problem.without_limits()
    branches = branches_at(unlimited_problem, s, q_near, 2, ignore_collisions=True)
    if not len(branches):
        return "out of reach"
    distances = np.linalg.norm(unlimited_problem.wrapped_difference(q_near, branches), axis=1)
    names = problem.dofs_beyond_limits(branches[int(np.argmin(distances))])
    return f"at a limit of joint {', '.join(names)}" if names else "out of reach"


def _collision_reason(problem: FollowProblem, path_break: PathBreak) -> str:
    """Cause of a break by a collision, with the pair in contact."""
    s = path_break.s + CAUSE_OFFSET * float(problem.s[-1] - problem.s[0])
    q = problem.project_ignoring_collisions(np.array([min(s, float(problem.s[-1]))]), path_break.q[None])[0]
    contacts = problem.contacts(q) or problem.contacts(path_break.q)
    return f"in collision: {contacts[0]}" if contacts else "in collision"


WINDOW_HALF_WIDTHS = (0.25, 0.12, 0.06, 0.03, 0.015, 0.25, 0.12, 0.06, 0.03, 0.015)
"""Half widths of the averaging windows as shares of the number of waypoints, in order of use: wide windows move the
waypoints most."""
SMOOTHING_ROUNDS = 4
"""Largest number of rounds with each window. Problems that are not batched (see `FollowProblem.is_batched`) use
one round and only the first half of WINDOW_HALF_WIDTHS."""


def smooth_path(problem: FollowProblem, q: Array, is_start_fixed: bool) -> Array:
    """Reduce the steps between the waypoints q (N, nq) where possible; all waypoints still meet the goals.

    Args:
        is_start_fixed: whether the first waypoint must not change.
    """
    best_q, best_cost = q, _path_cost(problem, q)
    count = len(q)
    half_width_shares, round_count = (
        (WINDOW_HALF_WIDTHS, SMOOTHING_ROUNDS)
        if problem.is_batched
        else (WINDOW_HALF_WIDTHS[: len(WINDOW_HALF_WIDTHS) // 2], 1)
    )
    for share in half_width_shares:
        half_width = round(share * count)
        if half_width < 1:
            continue
        for _ in range(round_count):
            q_candidate = _smoothing_round(problem, best_q, half_width, is_start_fixed)
            if q_candidate is None:
                break
            candidate_cost = _path_cost(problem, q_candidate)
            if not candidate_cost < best_cost * (1.0 - 1e-4):
                break
            best_q, best_cost = q_candidate, candidate_cost
    return best_q


def _smoothing_round(problem: FollowProblem, q: Array, half_width: int, is_start_fixed: bool) -> Array | None:
    """Average the waypoints q (N, nq) once and project them; None if a waypoint or a segment is then not valid."""
    space = problem.space
    steps = _averaging_steps(problem, q, half_width, is_start_fixed)
    for share in (1.0, 0.3):
        q_candidate, codes = problem.project(problem.s, space.integrate(q, share * steps))
        if is_start_fixed:
            q_candidate[0] = q[0]
        if (codes == FEASIBLE).all() and are_segments_free(problem, q_candidate[:-1], q_candidate[1:]).all():
            return q_candidate
    return None


def _averaging_steps(problem: FollowProblem, q: Array, half_width: int, is_start_fixed: bool) -> Array:
    """Steps (N, nv) from each waypoint to the weighted mean of its neighbours.

    Beyond its ends the path is extended by mirroring in s, but beyond a fixed start by point reflection.

    Args:
        half_width: number of neighbours on each side.
    """
    count, space = len(q), problem.space
    # displacements from the first waypoint; valid for quaternions if they rotate by less than pi
    displacements = np.concatenate([np.zeros((1, space.nv)), np.cumsum(space.difference(q[:-1], q[1:]), axis=0)])
    half_width = min(half_width, count - 1)
    padding_before, padding_after = displacements[half_width:0:-1], displacements[-2 : -half_width - 2 : -1]
    if is_start_fixed:
        padding_before = 2.0 * displacements[0] - padding_before
    padded_displacements = np.concatenate([padding_before, displacements, padding_after])
    weights = np.hanning(2 * half_width + 3)[1:-1]
    weights /= weights.sum()
    fft_size = 1 << int(np.ceil(np.log2(len(padded_displacements) + len(weights))))
    means = np.fft.irfft(
        np.fft.rfft(padded_displacements, fft_size, axis=0) * np.fft.rfft(weights, fft_size)[:, None], fft_size, axis=0
    )
    steps = means[2 * half_width : 2 * half_width + count] - displacements
    steps[:, ~problem.affecting_dofs] = 0.0
    return steps


def _path_cost(problem: FollowProblem, q: Array) -> float:
    """Cost of a path, to be minimized: the largest step of a dof, plus 0.3 times the root mean square step."""
    steps = np.abs(problem.space.difference(q[:-1], q[1:]))
    return float(steps.max(initial=0.0)) + 0.3 * float(np.sqrt((steps**2).sum(axis=1).mean()))


STATION_COUNT = 17
"""Number of waypoints at which all branches are searched, if the branches from the first waypoint do not give a good
path; 5 for problems that are not batched."""
FIRST_SAMPLES, STATION_SAMPLES = 32, 16
"""Largest number of sampled configurations at the first waypoint and at the other stations, if the mechanism is
redundant."""
START_TOLERANCE = 1e-3
"""rad or m: a start closer than this to its projection onto the first goals meets these goals."""
MAX_UNEVENNESS = 3.0
"""Ratio of the largest to the median step up to which a path is accepted without a search over more stations."""


def follow(
    mechanism: Mechanism,
    goals: GoalsAlongPath,
    targets: Any = None,
    s: int | ArrayLike | None = None,
    *,
    q0: ArrayLike | None = None,
    avoid: Iterable[str | Obstacle] | Collider | None = None,
    clearance: float = 0.0,
    allow: Iterable[tuple[str, str]] = (),
    forbid: Iterable[tuple[str, str]] = (),
    max_step: float | None = None,
    limits: Mapping[str, ArrayLike] | None = None,
    **settings: Any,
) -> FollowResult:
    """Find continuous configurations for goals that change along a parameter s.

    The branch, and for a redundant mechanism also the self-motion, is chosen for the whole path: first by the largest
    step, then by length and distance to joint limits.

    Args:
        mechanism: the mechanism; it is not moved.
        goals: objectives; a link name, whose pose is the goal; or a function of s that returns objectives.
        targets: the targets of the goals along s: a `CartesianPath` (`Line`, `Arc`, `Spline`, joined with `+`), any
            function of s that returns targets as for `Solver.solve`, or a list with a target for each waypoint. None if
            `goals` is a function.
        s: the number of waypoints, evenly spaced from 0 to 1, or their parameters (N,), strictly increasing. Default:
            200, or the number of targets in the list.
        q0: (nq,) start; the path begins with the configuration that the solver reaches from `q0`, or else with the
            nearest one that is found. By default the path begins with the best configuration that meets the first
            goals. If `q0` meets the first goals but violates the clearance, there is no path.
        avoid: obstacles and "self", or a `Collider`. Collisions are checked at the waypoints and every 0.02 rad or m
            between them.
        clearance: m, smallest allowed distance.
        allow, forbid: pairs of names that are excluded from the collision check, or included although excluded by
            default.
        max_step: rad or m; the path breaks where a dof changes by more than this between two waypoints.
        limits: (lower, upper) by joint or dof name, which replace the limits of the mechanism; rad or m.
        settings: further arguments of `Solver`: active, lock, weights, and options of the method.

    Returns:
        The path, or where and why it breaks.

    Raises:
        ShapeError: `q0`, `s` or a target has a wrong shape.
        ObjectiveError: there are no goals, or no targets.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.4])
        >>> result = mk.follow(arm, mk.PositionGoal("tool", (0.6, 0, 0)), lambda s: (0.6, 0.3 * s, 0), 11)
        >>> result.success, result.path.q.shape
        (True, (11, 2))
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"the first argument must be a mechanism, not {mechanism!r}")
    max_change = np.inf if max_step is None else as_number(max_step, "max_step")
    if not max_change > 0.0:
        raise ShapeError(f"max_step must be above 0, not {max_change:g}")
    collider = as_collider(mechanism, avoid, allow, forbid)
    problem = FollowProblem(
        mechanism, PathTargets(goals, targets, s), limits=limits, collider=collider,
        clearance=as_number(clearance, "clearance"), settings=settings,
    )  # fmt: skip
    q_near = np.array(mechanism.q if q0 is None else mechanism.space.check_q(q0))
    if q_near.shape != (mechanism.nq,):
        raise ShapeError(f"q0 must be one configuration ({mechanism.nq},), not of shape {q_near.shape}")
    if q0 is not None and (contact := _contact_at_start(problem, q_near)):
        return FollowResult(mechanism, None, False, float(problem.s[0]), f"in collision at the start: {contact}")
    starts = _start_configurations(problem, q_near, q0 is not None)
    last_index = len(problem.s) - 1
    roadmap = build_roadmap(problem, [0, last_index], starts, is_start_fixed=q0 is not None)
    waypoints = _best_path(roadmap, q_near, q0 is not None)
    # without redundancy only one branch continues from a given start, so no other path can be better
    is_unique = q0 is not None and not problem.redundancy
    if waypoints is None or (_unevenness(problem, waypoints) > MAX_UNEVENNESS and not is_unique):
        roadmap = _full_roadmap(problem, starts, q_near, q0 is not None)
        better_waypoints = _best_path(roadmap, q_near, q0 is not None)
        if better_waypoints is not None and (
            waypoints is None or _unevenness(problem, better_waypoints) < _unevenness(problem, waypoints)
        ):
            waypoints = better_waypoints
    if waypoints is None:
        return explain_failure(roadmap, q_near)
    waypoints = problem.polish(waypoints)
    path = Path(mechanism, waypoints, problem.s)
    if path.largest_step > max_change:
        k = int(np.argmax(path.steps > max_change))
        reason = (
            f"too fast: the step to the next waypoint is {path.steps[k]:.3g} rad or m, above max_step {max_change:g}"
        )
        return _broken_path(path, float(problem.s[k]), waypoints[k], reason)
    if (collision := first_collision(problem, path)) is not None:
        return _broken_path(path, *collision)
    return FollowResult(mechanism, path, True, segments=_parameter_interval(path))


def _broken_path(path: Path, s: float, q: Array, reason: str) -> FollowResult:
    """Result for a path that meets the goals at all waypoints but is not valid beyond s.

    Args:
        q: (nq,) configuration at s.
    """
    count = int(np.searchsorted(path.s, s, side="right"))
    prefix = Path(path.mechanism, path.q[:count], path.s[:count])
    return FollowResult(path.mechanism, prefix, False, s, reason, _parameter_interval(path), q)


def _parameter_interval(path: Path) -> tuple[tuple[float, float], ...]:
    """The range of s of a path as a single interval (start, end)."""
    return ((float(path.s[0]), float(path.s[-1])),)


def _contact_at_start(problem: FollowProblem, q: Array) -> str:
    """Description of the contact if q (nq,) meets the first goals and violates the clearance; else ""."""
    q_start, codes = problem.project(problem.s[:1], q[None])
    is_met = float(np.abs(problem.wrapped_difference(q, q_start)).max(initial=0.0)) < START_TOLERANCE
    return str(problem.contacts(q_start[0])[0]) if codes[0] == IN_COLLISION and is_met else ""


def _start_configurations(problem: FollowProblem, q_near: Array, has_q0: bool) -> Array:
    """Start configurations (n, nq) that meet the goals at the first waypoint.

    Args:
        q_near: (nq,) preferred configuration.
        has_q0: whether to return a single start: the one that is reached from `q_near`, or else the nearest to it.
    """
    s = float(problem.s[0])
    if has_q0:
        q_start, codes = problem.project(np.array([s]), q_near[None])
        if codes[0] == FEASIBLE:
            return q_start
    branches = branches_at(problem, s, q_near, FIRST_SAMPLES)
    if has_q0 and len(branches):
        return branches[[int(np.argmin(np.linalg.norm(problem.wrapped_difference(q_near, branches), axis=1)))]]
    return branches


def _full_roadmap(problem: FollowProblem, starts: Array, q_near: Array, is_start_fixed: bool) -> Roadmap:
    """Build a roadmap with stations along the whole path."""
    last_index = len(problem.s) - 1
    count = min(max(STATION_COUNT if problem.is_batched else 5, 3), last_index + 1)
    stations = np.unique(np.round(np.linspace(0, last_index, count)).astype(int)).tolist()
    return build_roadmap(
        problem,
        stations,
        starts,
        lambda s: branches_at(problem, s, q_near, STATION_SAMPLES),
        is_start_fixed=is_start_fixed,
    )


def _best_path(roadmap: Roadmap, q_near: Array, is_start_fixed: bool) -> Array | None:
    """Find the best path (N, nq) from the first to the last waypoint; None if there is no path.

    The path of a redundant mechanism is smoothed.
    """
    routes = best_routes(roadmap, q_near)
    ends = sorted(routes[-1].items(), key=lambda item: item[1].cost)
    if not ends:
        return None
    waypoints = waypoints_to(roadmap, routes, len(routes) - 1, ends[0][0])
    return smooth_path(roadmap.problem, waypoints, is_start_fixed) if roadmap.problem.redundancy else waypoints


def _unevenness(problem: FollowProblem, q: Array) -> float:
    """Ratio of the largest to the median step of the waypoints q (N, nq)."""
    steps = np.abs(problem.space.difference(q[:-1], q[1:])).max(axis=1, initial=0.0)
    return float(steps.max() / max(float(np.median(steps)), 1e-9))
