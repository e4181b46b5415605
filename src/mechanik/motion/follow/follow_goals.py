"""`follow`: a continuous path for goals that change along s, or a report of where and why it breaks.

The path is searched in a roadmap of branches. Where the mechanism is redundant, the path is then smoothed: each
waypoint moves towards the weighted mean of its neighbours and is projected back onto the goals.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mechanik.errors import InvalidArgument, PathNotFollowed, ShapeError, StructureError
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
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number

if TYPE_CHECKING:
    from mechanik.collision import Collider, Obstacle


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FollowResult:
    """Result of `mk.follow`: the path, or the s where it breaks and the reason.

    Attributes:
        mechanism: the mechanism; it is not moved.
        path: all waypoints; those before the break if the path breaks; None if not even the first goals can be met.
        success: whether all waypoints are reached without a jump.
        broken_at: the s where the path breaks; None if it does not. The same branch can be followed up to there.
        why: reason for the break; starts with "out of reach", "at a limit of joint", "in collision", "singular", "no
            single branch" or "too fast". Empty if the path does not break.
        segments: (start, end) in s of the intervals in which the goals can be followed, with a jump from each to the
            next. One interval if the path does not break. Where intervals overlap, the jump can be anywhere in the
            overlap.
        last_q: (nq,) configuration at the break; None if the path does not break or never starts.

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
    why: str = ""
    segments: tuple[tuple[float, float], ...] = ()
    last_q: Array | None = None

    @property
    def message(self) -> str:
        """Summary of the result for people."""
        if self.success and self.path is not None:
            return (
                f"followed through all {len(self.path)} knots; largest step {self.path.largest_step:.3g} rad or m, "
                f"median {self.path.median_step:.3g}"
            )
        return f"cannot be followed beyond s = {self.broken_at:.6g}: {self.why}"

    def __repr__(self) -> str:
        return f"<{'followed' if self.success else 'not followed'}: {self.message}>"

    def require(self) -> Path:
        """Return the path, or raise an error that contains where and why it breaks.

        Raises:
            PathNotFollowed: the goals cannot be followed to the end.
        """
        if not self.success or self.path is None:
            raise PathNotFollowed(self.message, self)
        return self.path


BEYOND = 1e-4
"""Ratio to the whole range of s: distance behind a break at which its cause is examined."""
FARTHER = 1e-3
"""Ratio to the whole range of s: shorter intervals are not reported."""


@dataclass(frozen=True, slots=True, eq=False)
class PathBreak:
    """The end of the longest path that can be followed from the first waypoint.

    Attributes:
        s: parameter of the break.
        q: (nq,) configuration at the break.
        waypoints: (m, nq) waypoints before the break.
        branch: the branch that ends there; None where a joint leaves its limits after full rotations.
        why: reason, if it is already known.
    """

    s: float
    q: Array
    waypoints: Array
    branch: TracedBranch | None
    why: str = ""


def explain_failure(roadmap: Roadmap, near: Array) -> FollowResult:
    """Result for a path that cannot be followed to its end, with the place and the cause of the break.

    Args:
        near: (nq,) preferred configuration.
    """
    course = roadmap.problem
    s = course.s
    if not roadmap.nodes[0]:
        why = _nowhere(course, float(s[0]), near)
        return FollowResult(course.mechanism, None, False, float(s[0]), why, _later_parts(roadmap, float(s[0])))
    end = _farthest(roadmap, best_routes(roadmap, near))
    path = Path(course.mechanism, end.waypoints, s[: len(end.waypoints)])
    parts = ((float(s[0]), end.s), *_later_parts(roadmap, end.s))
    why = end.why or _why(course, end)
    reaches = len(parts) > 1 and parts[-1][1] >= s[-1] and all(b[0] <= a[1] for a, b in itertools.pairwise(parts))
    if reaches:
        ways = ", ".join(f"from s = {a:.6g} to {b:.6g}" for a, b in parts)
        why = f"no single branch: one is there {ways.replace(', ', ', another ')}; the first ends {why}"
    elif len(parts) > 1:
        ways = ", ".join(f"from s = {a:.6g} to {b:.6g}" for a, b in parts[1:])
        why += f"; it could be followed again {ways}"
    return FollowResult(course.mechanism, path, False, end.s, why, parts, end.q)


def _farthest(made: Roadmap, reached: RouteTable) -> PathBreak:
    """The break with the largest s over all routes from the first waypoint."""
    course = made.problem
    wide = np.flatnonzero(course.multi_turn)
    best: PathBreak | None = None
    for i in range(len(made.stations) - 1, -1, -1):
        ends = [(track, state) for state in reached[i] if (track := made.forward[i].get(state[0])) is not None]
        ends.sort(key=lambda one: one[0].end, reverse=True)
        for track, state in ends[:1]:
            if best is None or track.end > best.s:
                before = waypoints_to(made, reached, i, state)
                track = refine_branch_end(
                    course, track, float(course.s[min(made.stations[i] + len(track.q), len(course.s) - 1)])
                )
                shift = np.zeros(course.space.nq)
                shift[wide] = FULL_ROTATION * np.round((before[-1] - track.q[0])[wide] / FULL_ROTATION)
                best = PathBreak(track.end, track.last + shift, np.concatenate([before, track.q[1:] + shift]), track)
        for state in reached[i]:
            best = _unwound(made, reached, i, state, best)
        if best is not None:
            break
    if best is None:
        state = next(iter(reached[0]))
        q = waypoints_to(made, reached, 0, state)
        best = PathBreak(float(course.s[0]), q[0], q, None)
    return best


def _unwound(
    made: Roadmap, reached: RouteTable, i: int, state: tuple[int, tuple[int, ...]], best: PathBreak | None
) -> PathBreak | None:
    """Update the farthest break with the edges from a node along which a multi-turn joint leaves its limits."""
    course = made.problem
    wide = np.flatnonzero(course.multi_turn)
    if i >= len(made.edges):
        return best
    for curve in made.edges[i]:
        if curve.a != state[0]:
            continue
        q = curve.q.copy()
        start = made.nodes[i][curve.a][wide] + FULL_ROTATION * np.array(state[1])
        q[:, wide] += FULL_ROTATION * np.round((start - q[0, wide]) / FULL_ROTATION)
        out = (q[:, wide] < course.lower[wide] - 1e-9) | (q[:, wide] > course.upper[wide] + 1e-9)
        if not out.any():
            continue
        m = int(np.argmax(out.any(axis=1)))
        at = float(made.edge_parameters(i)[max(m - 1, 0)])
        if best is None or at > best.s:
            name = course.space.q_names[int(wide[int(np.argmax(out[m]))])]
            before = waypoints_to(made, reached, i, state)
            way = np.concatenate([before, q[1:m]])
            best = PathBreak(at, way[-1], way, None, f"at a limit of joint {name}")
    return best


def _later_parts(made: Roadmap, s: float) -> tuple[tuple[float, float], ...]:
    """Intervals of s beyond `s` in which the goals can be followed; as few as possible."""
    course, count = made.problem, len(made.stations)
    first, last = float(course.s[0]), float(course.s[-1])
    back: list[list[float]] = []
    for i in range(count):
        at = float(course.s[made.stations[i]])
        froms = [made.backward[i][k].end if k in made.backward[i] else at for k in range(len(made.nodes[i]))]
        if i:
            for curve in made.edges[i - 1]:
                froms[curve.b] = min(froms[curve.b], back[i - 1][curve.a])
        back.append(froms)
    ahead: list[list[float]] = [[] for _ in range(count)]
    for i in range(count - 1, -1, -1):
        at = float(course.s[made.stations[i]])
        tos = [made.forward[i][k].end if k in made.forward[i] else at for k in range(len(made.nodes[i]))]
        if i < count - 1:
            for curve in made.edges[i]:
                tos[curve.a] = max(tos[curve.a], ahead[i + 1][curve.b])
        ahead[i] = tos
    spans = [(max(a, first), b) for i in range(count) for a, b in zip(back[i], ahead[i], strict=True)]
    found: list[tuple[float, float]] = []
    while s < last:
        beyond = [span for span in spans if span[1] > max(s, span[0]) + FARTHER * (last - first)]
        if not beyond:
            break
        meeting = [span for span in beyond if span[0] <= s]
        start = max(meeting, key=lambda span: span[1]) if meeting else min(beyond, key=lambda span: (span[0], -span[1]))
        found.append(start)
        s = start[1]
    return tuple(found)


def _why(course: FollowProblem, end: PathBreak) -> str:
    if end.branch is not None and end.branch.code == IN_COLLISION:
        return _in_collision(course, end)
    beyond = min(end.s + BEYOND * float(course.s[-1] - course.s[0]), float(course.s[-1]))
    if names := course.at_limits(end.q):
        free = course.without_limits()
        found, codes = free.project(np.array([beyond]), end.q[None])
        if codes[0] == 0:
            out = (found[0] < course.lower) | (found[0] > course.upper)
            beyond_limit = [name for name, is_out in zip(course.space.q_names, out, strict=True) if is_out]
            names = [name for name in names if name in beyond_limit] or names
            return f"at a limit of joint {', '.join(names)}"
    if len(branches_at(course, beyond, end.q, 2)):
        return "singular: the branch ends there, as two branches meet and turn back"
    return _nowhere(course, beyond, end.q)


def _nowhere(course: FollowProblem, s: float, near: Array) -> str:
    """Reason why no configuration meets the goals at s."""
    clashes = (
        [course.contacts(q) for q in branches_at(course, s, near, 4, ignore_collisions=True)]
        if course.has_collider
        else []
    )
    if worst := [found[0] for found in clashes if found]:
        least = max(worst, key=lambda one: one.distance)
        return f"in collision: of all configurations that meet the goals there, at best {least}"
    free = course.without_limits()
    found = branches_at(free, s, near, 2, ignore_collisions=True)
    if not len(found):
        return "out of reach"
    inside = found[int(np.argmin(np.linalg.norm(free.wrapped_difference(near, found), axis=1)))]
    out = course.beyond_limits(inside)
    return f"at a limit of joint {', '.join(out)}" if out else "out of reach"


def _in_collision(course: FollowProblem, end: PathBreak) -> str:
    beyond = end.s + BEYOND * float(course.s[-1] - course.s[0])
    found = course.project_ignoring_collisions(np.array([min(beyond, float(course.s[-1]))]), end.q[None])[0]
    clashes = course.contacts(found) or course.contacts(end.q)
    return f"in collision: {clashes[0]}" if clashes else "in collision"


WIDTHS = (0.25, 0.12, 0.06, 0.03, 0.015, 0.25, 0.12, 0.06, 0.03, 0.015)
"""Widths of the averaging windows as shares of the path, in order of use: wide windows move the waypoints most."""
ROUNDS = 4
"""Largest number of rounds with each window. Problems that are not batched use one round and only the first half of
WIDTHS."""


def smooth_path(course: FollowProblem, q: Array, is_fixed: bool) -> Array:
    """Reduce the largest step of the waypoints q (N, nq), where possible; the goals still hold.

    Args:
        is_fixed: whether the first waypoint must stay.
    """
    best, worth = q, _worth(course, q)
    count = len(q)
    widths, rounds = (WIDTHS, ROUNDS) if course.is_batched else (WIDTHS[: len(WIDTHS) // 2], 1)
    for width in widths:
        half = round(width * count)
        if half < 1:
            continue
        for _ in range(rounds):
            there = _round(course, best, half, is_fixed)
            if there is None:
                break
            value = _worth(course, there)
            if not value < worth * (1.0 - 1e-4):
                break
            best, worth = there, value
    return best


def _round(course: FollowProblem, q: Array, half: int, is_fixed: bool) -> Array | None:
    space = course.space
    ways = _averaged(course, q, half, is_fixed)
    for share in (1.0, 0.3):
        found, codes = course.project(course.s, space.integrate(q, share * ways))
        if is_fixed:
            found[0] = q[0]
        if (codes == FEASIBLE).all() and are_segments_free(course, found[:-1], found[1:]).all():
            return found
    return None


def _averaged(course: FollowProblem, q: Array, half: int, is_fixed: bool) -> Array:
    """Steps (N, nv) from each waypoint to the weighted mean of its neighbours, up to `half` waypoints on each side.

    Beyond its ends the path is extended: by point reflection at a fixed end, by mirroring in s at a free end.
    """
    count, space = len(q), course.space
    # as displacements from the first waypoint; valid for quaternions as long as they rotate by less than pi
    flat = np.concatenate([np.zeros((1, space.nv)), np.cumsum(space.difference(q[:-1], q[1:]), axis=0)])
    half = min(half, count - 1)
    before, after = flat[half:0:-1], flat[-2 : -half - 2 : -1]
    if is_fixed:
        before = 2.0 * flat[0] - before
    padded = np.concatenate([before, flat, after])
    weights = np.hanning(2 * half + 3)[1:-1]
    weights /= weights.sum()
    size = 1 << int(np.ceil(np.log2(len(padded) + len(weights))))
    mean = np.fft.irfft(np.fft.rfft(padded, size, axis=0) * np.fft.rfft(weights, size)[:, None], size, axis=0)
    ways = mean[2 * half : 2 * half + count] - flat
    ways[:, ~course.affecting_dofs] = 0.0
    return ways


def _worth(course: FollowProblem, q: Array) -> float:
    """Cost of a path, the smaller the better: the largest step, plus 0.3 times the root mean square step."""
    steps = np.abs(course.space.difference(q[:-1], q[1:]))
    return float(steps.max(initial=0.0)) + 0.3 * float(np.sqrt((steps**2).sum(axis=1).mean()))


STATIONS = 17
"""Number of waypoints at which all branches are searched, if those from the first waypoint do not suffice."""
SAMPLES, FEWER = 32, 16
"""Number of sampled configurations at the first waypoint and at the other stations, where the mechanism is
redundant."""
THERE = 1e-3
"""rad or m: a start closer than this to its projection onto the first goals counts as meeting them."""
EVEN = 3.0
"""Ratio of the largest to the median step, up to which a path is accepted without a search over more stations."""


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

    The branch, and the configuration where the mechanism is redundant, are chosen for the whole path: first by the
    largest step, then by length and distance to joint limits.

    Args:
        mechanism: the mechanism; it is not moved.
        goals: objectives; a link name, whose pose is the goal; or a function of s that returns objectives.
        targets: what changes along s: a `CartesianPath` (`Line`, `Arc`, `Spline`, joined with `+`), any function of s
            that returns targets as for `Solver.solve`, or a list with a target for each waypoint. None if `goals` is a
            function.
        s: the number of waypoints, evenly spaced from 0 to 1, or their parameters (N,), strictly increasing. Default:
            200, or the number of targets in the list.
        q0: (nq,) start; the path begins with the configuration reached from there. Default: the best start of all. If
            the first goals are met at `q0` and the clearance is violated there, there is no path.
        avoid: obstacles and "self", or a `Collider`. Collisions are checked at the waypoints and every 0.02 rad or m
            between them.
        clearance: m, smallest allowed distance.
        allow, forbid: pairs of names that are excluded from the collision check, or included although excluded by
            default.
        max_step: rad or m; the path breaks where a dof changes by more between two waypoints.
        limits: (lower, upper) by joint or dof name, which replace the limits of the mechanism; rad or m.
        settings: further arguments of `Solver`: active, lock, weights, options.

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
        raise InvalidArgument(f"a mechanism follows goals, not {mechanism!r}")
    largest = np.inf if max_step is None else as_number(max_step, "max_step")
    if not largest > 0.0:
        raise ShapeError(f"max_step must be above 0, not {largest:g}")
    collider = _collider(mechanism, avoid, allow, forbid)
    course = FollowProblem(
        mechanism, PathTargets(goals, targets, s), limits=limits, collider=collider,
        clearance=as_number(clearance, "clearance"), settings=settings,
    )  # fmt: skip
    near = np.array(mechanism.q if q0 is None else mechanism.space.check_q(q0))
    if near.shape != (mechanism.nq,):
        raise ShapeError(f"q0 is one configuration ({mechanism.nq},), not of shape {near.shape}")
    if q0 is not None and (touches := _touching_at_once(course, near)):
        return FollowResult(mechanism, None, False, float(course.s[0]), f"in collision where it stands: {touches}")
    first = _first(course, near, q0 is not None)
    last = len(course.s) - 1
    made = build_roadmap(course, [0, last], first, is_fixed=q0 is not None)
    found = _best(made, near, q0 is not None)
    # without redundancy only one branch continues from a given start, so no other path can be better
    is_only = q0 is not None and not course.redundancy
    if found is None or (_unevenness(course, found) > EVEN and not is_only):
        made = _whole(course, first, near, q0 is not None)
        better = _best(made, near, q0 is not None)
        if better is not None and (found is None or _unevenness(course, better) < _unevenness(course, found)):
            found = better
    if found is None:
        return explain_failure(made, near)
    found = course.polish(found)
    path = Path(mechanism, found, course.s)
    if path.largest_step > largest:
        k = int(np.argmax(path.steps > largest))
        why = f"too fast: the step from there to the next knot is {path.steps[k]:.3g} rad or m, above {largest:g}"
        return _cut(path, float(course.s[k]), found[k], why)
    if (bump := first_collision(course, path)) is not None:
        return _cut(path, *bump)
    return FollowResult(mechanism, path, True, segments=_whole_of(path))


def _cut(path: Path, s: float, q: Array, why: str) -> FollowResult:
    """Result for a path that meets all goals at all waypoints but is not valid beyond s, at configuration q (nq,)."""
    count = int(np.searchsorted(path.s, s, side="right"))
    part = Path(path.mechanism, path.q[:count], path.s[:count])
    return FollowResult(path.mechanism, part, False, s, why, _whole_of(path), q)


def _whole_of(path: Path) -> tuple[tuple[float, float], ...]:
    return ((float(path.s[0]), float(path.s[-1])),)


def _touching_at_once(course: FollowProblem, q: Array) -> str:
    """The contact at q (nq,) if the first goals are already met there and the clearance is violated; else ""."""
    found, codes = course.project(course.s[:1], q[None])
    is_there = float(np.abs(course.wrapped_difference(q, found)).max(initial=0.0)) < THERE
    return str(course.contacts(found[0])[0]) if codes[0] == IN_COLLISION and is_there else ""


def _first(course: FollowProblem, near: Array, is_given: bool) -> Array:
    """Start configurations (n, nq) that meet the goals at the first waypoint."""
    s = float(course.s[0])
    if is_given:
        found, codes = course.project(np.array([s]), near[None])
        if codes[0] == FEASIBLE:
            return found
    every = branches_at(course, s, near, SAMPLES)
    if is_given and len(every):
        return every[[int(np.argmin(np.linalg.norm(course.wrapped_difference(near, every), axis=1)))]]
    return every


def _whole(course: FollowProblem, first: Array, near: Array, is_fixed: bool) -> Roadmap:
    """Build a roadmap with stations along the whole path."""
    last = len(course.s) - 1
    count = min(max(STATIONS if course.is_batched else 5, 3), last + 1)
    stations = np.unique(np.round(np.linspace(0, last, count)).astype(int)).tolist()
    return build_roadmap(course, stations, first, lambda s: branches_at(course, s, near, FEWER), is_fixed=is_fixed)


def _best(made: Roadmap, near: Array, is_fixed: bool) -> Array | None:
    """Best path (N, nq) from the first to the last waypoint; None if there is none.

    It is smoothed if the mechanism is redundant.
    """
    reached = best_routes(made, near)
    ends = sorted(reached[-1].items(), key=lambda item: item[1].cost)
    if not ends:
        return None
    found = waypoints_to(made, reached, len(reached) - 1, ends[0][0])
    return smooth_path(made.problem, found, is_fixed) if made.problem.redundancy else found


def _unevenness(course: FollowProblem, q: Array) -> float:
    steps = np.abs(course.space.difference(q[:-1], q[1:])).max(axis=1, initial=0.0)
    return float(steps.max() / max(float(np.median(steps)), 1e-9))


def _collider(mechanism: Mechanism, avoid: Any, allow: Any, forbid: Any) -> Collider | None:
    if avoid is None:
        return None
    from mechanik.collision import Collider

    if isinstance(avoid, Collider):
        if avoid.mechanism is not mechanism:
            raise StructureError("avoid is a collider of another mechanism")
        if tuple(allow) or tuple(forbid):
            raise InvalidArgument("allow and forbid belong to the collider that is given as avoid; give them to it")
        return avoid
    return Collider(mechanism, avoid, allow=allow, forbid=forbid)
