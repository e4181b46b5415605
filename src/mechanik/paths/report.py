"""Where a path breaks, why, and in which parts it could be followed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from mechanik.paths.branches import branches_at
from mechanik.paths.course import CLASH, TURN, Course
from mechanik.paths.following import Following
from mechanik.paths.path import Path
from mechanik.paths.roadmap import Roadmap
from mechanik.paths.route import Reached, routes, way_to
from mechanik.paths.tracks import Track, end_of
from mechanik.spatial.array import Array

BEYOND = 1e-4
"""Of the whole path: so far behind a break is looked what there is."""
FARTHER = 1e-3
"""Of the whole path: a part that leads on by less is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Break:
    """
    Attributes:
        s: where it breaks.
        q: (nq,) there.
        way: (m, nq) the knots before.
        track: what ended there; None where windings ran out.
        why: if that is known already.
    """

    s: float
    q: Array
    way: Array
    track: Track | None
    why: str = ""


def broken(made: Roadmap, near: Array) -> Following:
    """The report on a path that cannot be followed to its end."""
    course = made.course
    s = course.s
    if not made.nodes[0]:
        why = _nowhere(course, float(s[0]), near)
        return Following(course.mechanism, None, False, float(s[0]), why, _later_parts(made, float(s[0])))
    end = _farthest(made, routes(made, near))
    path = Path(course.mechanism, end.way, s[: len(end.way)])
    parts = ((float(s[0]), end.s), *_later_parts(made, end.s))
    why = end.why or _why(course, end)
    reaches = len(parts) > 1 and parts[-1][1] >= s[-1] and all(b[0] <= a[1] for a, b in itertools.pairwise(parts))
    if reaches:
        ways = ", ".join(f"from s = {a:.6g} to {b:.6g}" for a, b in parts)
        why = f"no single branch: one is there {ways.replace(', ', ', another ')}; the first ends {why}"
    elif len(parts) > 1:
        ways = ", ".join(f"from s = {a:.6g} to {b:.6g}" for a, b in parts[1:])
        why += f"; it could be followed again {ways}"
    return Following(course.mechanism, path, False, end.s, why, parts, end.q)


def _farthest(made: Roadmap, reached: Reached) -> Break:
    """The break that comes last, of all ways from the first knot on."""
    course = made.course
    wide = np.flatnonzero(course.wide)
    best: Break | None = None
    for i in range(len(made.stations) - 1, -1, -1):
        ends = [(track, state) for state in reached[i] if (track := made.forward[i].get(state[0])) is not None]
        ends.sort(key=lambda one: one[0].end, reverse=True)
        for track, state in ends[:1]:
            if best is None or track.end > best.s:
                before = way_to(made, reached, i, state)
                track = end_of(course, track, float(course.s[min(made.stations[i] + len(track.q), len(course.s) - 1)]))
                shift = np.zeros(course.space.nq)
                shift[wide] = TURN * np.round((before[-1] - track.q[0])[wide] / TURN)
                best = Break(track.end, track.last + shift, np.concatenate([before, track.q[1:] + shift]), track)
        for state in reached[i]:
            best = _unwound(made, reached, i, state, best)
        if best is not None:
            break
    if best is None:
        state = next(iter(reached[0]))
        q = way_to(made, reached, 0, state)
        best = Break(float(course.s[0]), q[0], q, None)
    return best


def _unwound(
    made: Roadmap, reached: Reached, i: int, state: tuple[int, tuple[int, ...]], best: Break | None
) -> Break | None:
    """Where curves from a configuration leave the limits of joints that may turn fully."""
    course = made.course
    wide = np.flatnonzero(course.wide)
    if i >= len(made.curves):
        return best
    for curve in made.curves[i]:
        if curve.a != state[0]:
            continue
        q = curve.q.copy()
        start = made.nodes[i][curve.a][wide] + TURN * np.array(state[1])
        q[:, wide] += TURN * np.round((start - q[0, wide]) / TURN)
        out = (q[:, wide] < course.lower[wide] - 1e-9) | (q[:, wide] > course.upper[wide] + 1e-9)
        if not out.any():
            continue
        m = int(np.argmax(out.any(axis=1)))
        at = float(made.piece(i)[max(m - 1, 0)])
        if best is None or at > best.s:
            name = course.space.q_names[int(wide[int(np.argmax(out[m]))])]
            before = way_to(made, reached, i, state)
            way = np.concatenate([before, q[1:m]])
            best = Break(at, way[-1], way, None, f"at a limit of joint {name}")
    return best


def _later_parts(made: Roadmap, s: float) -> tuple[tuple[float, float], ...]:
    """From which s to which it could be followed beyond s: as few parts as there can be."""
    course, count = made.course, len(made.stations)
    first, last = float(course.s[0]), float(course.s[-1])
    back: list[list[float]] = []
    for i in range(count):
        at = float(course.s[made.stations[i]])
        froms = [made.backward[i][k].end if k in made.backward[i] else at for k in range(len(made.nodes[i]))]
        if i:
            for curve in made.curves[i - 1]:
                froms[curve.b] = min(froms[curve.b], back[i - 1][curve.a])
        back.append(froms)
    ahead: list[list[float]] = [[] for _ in range(count)]
    for i in range(count - 1, -1, -1):
        at = float(course.s[made.stations[i]])
        tos = [made.forward[i][k].end if k in made.forward[i] else at for k in range(len(made.nodes[i]))]
        if i < count - 1:
            for curve in made.curves[i]:
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


def _why(course: Course, end: Break) -> str:
    if end.track is not None and end.track.code == CLASH:
        return _in_collision(course, end)
    beyond = min(end.s + BEYOND * float(course.s[-1] - course.s[0]), float(course.s[-1]))
    if names := course.at_limits(end.q):
        free = course.free_of_limits()
        found, codes = free.settle(np.array([beyond]), end.q[None])
        if codes[0] == 0:
            out = (found[0] < course.lower) | (found[0] > course.upper)
            beyond_limit = [name for name, is_out in zip(course.space.q_names, out, strict=True) if is_out]
            names = [name for name in names if name in beyond_limit] or names
            return f"at a limit of joint {', '.join(names)}"
    if len(branches_at(course, beyond, end.q, 2)):
        return "singular: the branch ends there, as two branches meet and turn back"
    return _nowhere(course, beyond, end.q)


def _nowhere(course: Course, s: float, near: Array) -> str:
    """Why there is no configuration at all at s."""
    clashes = [course.clashes(q) for q in branches_at(course, s, near, 4, whatever=True)] if course.has_collider else []
    if worst := [found[0] for found in clashes if found]:
        least = max(worst, key=lambda one: one.gap)
        return f"in collision: of all configurations that meet the goals there, at best {least}"
    free = course.free_of_limits()
    found = branches_at(free, s, near, 2, whatever=True)
    if not len(found):
        return "out of reach"
    inside = found[int(np.argmin(np.linalg.norm(free.apart(near, found), axis=1)))]
    out = course.beyond_limits(inside)
    return f"at a limit of joint {', '.join(out)}" if out else "out of reach"


def _in_collision(course: Course, end: Break) -> str:
    beyond = end.s + BEYOND * float(course.s[-1] - course.s[0])
    found = course.ignoring(np.array([min(beyond, float(course.s[-1]))]), end.q[None])[0]
    clashes = course.clashes(found) or course.clashes(end.q)
    return f"in collision: {clashes[0]}" if clashes else "in collision"
