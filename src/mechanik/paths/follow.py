"""Goals along a way, followed without a jump, or the place where they cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mechanik.errors import ShapeError, StructureError, WrongKind
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import as_number
from mechanik.paths.between import first_bump
from mechanik.paths.branches import branches_at
from mechanik.paths.course import CLASH, FINE, Course
from mechanik.paths.even import even_out
from mechanik.paths.following import Following
from mechanik.paths.path import Path
from mechanik.paths.report import broken
from mechanik.paths.roadmap import Roadmap, build
from mechanik.paths.route import routes, way_to
from mechanik.paths.targets import Goals, Wanted
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from mechanik.collision import Collider, Obstacle

STATIONS = 17
"""Knots at which all branches are looked for, if those from the first knot do not do; fewer on short paths."""
SAMPLES, FEWER = 32, 16
"""Of the configurations at the first knot and at the other stations, where there are many."""
THERE = 1e-3
"""rad or m: a mechanism that is no farther from where the goals at the first knot are met stands there."""
EVEN = 3.0
"""A path whose largest step is at most this many times the median is not searched for a better one."""


def follow(
    mechanism: Mechanism,
    goals: Goals,
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
) -> Following:
    """Configurations for goals that change along s, one behind the other without a jump.

    Which branch is taken, and where the goals leave a freedom which of many configurations, is chosen for the path as a
    whole: the largest step first, then its length and how near it comes to limits.

    Args:
        goals: objectives; or a link, whose pose is meant; or a function of s that gives objectives.
        targets: what changes: a path of poses (`Line`, `Arc`, `Spline`, joined with `+`), any function of s that gives
            what `Solver.solve` takes as targets, or a list with one for each knot. None if goals are a function.
        s: the knots: how many, evenly from 0 to 1, or their values (N,), ascending. If not given: 200, or as many as
            there are targets in the list.
        q0: (nq,) where it stands: the path begins with what is reached from there. If not given, the best of all.
            If the first goals are met there and something touches, there is no path.
        avoid, clearance, allow, forbid: what it keeps off, at every knot and at every 0.02 rad or m between, as for a
            `Collider`, which may be given too.
        max_step: rad or m; a path with a longer step between two knots is none.
        limits: by joint or freedom, (lower, upper) in place of the mechanism's.
        settings: what else a `Solver` takes: active, lock, weights, options.
    """
    if not isinstance(mechanism, Mechanism):
        raise WrongKind(f"a mechanism follows goals, not {mechanism!r}")
    largest = np.inf if max_step is None else as_number(max_step, "max_step")
    if not largest > 0.0:
        raise ShapeError(f"max_step must be above 0, not {largest:g}")
    collider = _collider(mechanism, avoid, allow, forbid)
    course = Course(
        mechanism, Wanted(goals, targets, s), limits=limits, collider=collider,
        clearance=as_number(clearance, "clearance"), settings=settings,
    )  # fmt: skip
    near = np.array(mechanism.q if q0 is None else mechanism.space.check_q(q0))
    if near.shape != (mechanism.nq,):
        raise ShapeError(f"q0 is one configuration ({mechanism.nq},), not of shape {near.shape}")
    if q0 is not None and (touches := _touching_at_once(course, near)):
        return Following(mechanism, None, False, float(course.s[0]), f"in collision where it stands: {touches}")
    first = _first(course, near, q0 is not None)
    last = len(course.s) - 1
    made = build(course, [0, last], first, is_fixed=q0 is not None)
    found = _best(made, near, q0 is not None)
    # from one place one branch leads on: no other is better
    is_only = q0 is not None and not course.spare
    if found is None or (_unevenness(course, found) > EVEN and not is_only):
        made = _whole(course, first, near, q0 is not None)
        better = _best(made, near, q0 is not None)
        if better is not None and (found is None or _unevenness(course, better) < _unevenness(course, found)):
            found = better
    if found is None:
        return broken(made, near)
    found = course.polish(found)
    path = Path(mechanism, found, course.s)
    if path.largest_step > largest:
        k = int(np.argmax(path.steps > largest))
        why = f"too fast: the step from there to the next knot is {path.steps[k]:.3g} rad or m, above {largest:g}"
        return _cut(path, float(course.s[k]), found[k], why)
    if (bump := first_bump(course, path)) is not None:
        return _cut(path, *bump)
    return Following(mechanism, path, True, parts=_whole_of(path))


def _cut(path: Path, s: float, q: Array, why: str) -> Following:
    """The report on a path that meets all goals at all knots and is yet none beyond s, where it stands at q (nq,)."""
    count = int(np.searchsorted(path.s, s, side="right"))
    part = Path(path.mechanism, path.q[:count], path.s[:count])
    return Following(path.mechanism, part, False, s, why, _whole_of(path), q)


def _whole_of(path: Path) -> tuple[tuple[float, float], ...]:
    return ((float(path.s[0]), float(path.s[-1])),)


def _touching_at_once(course: Course, q: Array) -> str:
    """What is too near at q (nq,), if the goals are met there already; empty if nothing is, or if it has yet to go."""
    found, codes = course.settle(course.s[:1], q[None])
    is_there = float(np.abs(course.apart(q, found)).max(initial=0.0)) < THERE
    return str(course.clashes(found[0])[0]) if codes[0] == CLASH and is_there else ""


def _first(course: Course, near: Array, is_given: bool) -> Array:
    """Configurations (n, nq) to begin with."""
    s = float(course.s[0])
    if is_given:
        found, codes = course.settle(np.array([s]), near[None])
        if codes[0] == FINE:
            return found
    every = branches_at(course, s, near, SAMPLES)
    if is_given and len(every):
        return every[[int(np.argmin(np.linalg.norm(course.apart(near, every), axis=1)))]]
    return every


def _whole(course: Course, first: Array, near: Array, is_fixed: bool) -> Roadmap:
    """A roadmap with stations all along the path."""
    last = len(course.s) - 1
    count = min(max(STATIONS if course.is_quick else 5, 3), last + 1)
    stations = np.unique(np.round(np.linspace(0, last, count)).astype(int)).tolist()
    return build(course, stations, first, lambda s: branches_at(course, s, near, FEWER), is_fixed=is_fixed)


def _best(made: Roadmap, near: Array, is_fixed: bool) -> Array | None:
    """The best way (N, nq) from the first knot to the last, made even where that can be; None if there is none."""
    reached = routes(made, near)
    ends = sorted(reached[-1].items(), key=lambda item: item[1].cost)
    if not ends:
        return None
    found = way_to(made, reached, len(reached) - 1, ends[0][0])
    return even_out(made.course, found, is_fixed) if made.course.spare else found


def _unevenness(course: Course, q: Array) -> float:
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
            raise WrongKind("allow and forbid belong to the collider that is given as avoid; give them to it")
        return avoid
    return Collider(mechanism, avoid, allow=allow, forbid=forbid)
