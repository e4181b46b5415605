"""Along the branch: a step in the direction in which no row changes, and back to where all rows are zero across it.

s grows as long as the drives come nearer to their goal. Where the curve turns back it stands at a dead point. Where two
branches cross, at a change point, A loses a rank and the rows grow to the other side beyond it, which the sign of a
determinant tells; the walk goes straight on there, in one step from well before it to well beyond. Where two branches
only come near each other the sign tells as much, but between them the curve turns: there the steps become shorter
until it is followed around the turn. (E. L. Allgower, K. Georg, "Numerical Continuation Methods", Springer 1990.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mechanik.assembly.place import SHUT, Course, Place, between, same_side, shortest
from mechanik.spatial.array import Array

LONGEST, SHORTEST = 0.25, 1e-5
"""Steps (rad, sizes). Branches that come nearer to each other than the shortest are taken to cross: they do so in
linkages whose lengths are off by 1e-10."""
SMOOTH = 0.97
"""Cosine of the angle between the directions at both ends of a step, at least."""
ASIDE = 0.3
"""How far, as a share of a step, the curve may lie aside of where the step leads."""
AWAY = 0.02
"""The first step (rad, sizes) away from a change point, at least."""
TOO_NEAR = 1e-4
"""Singular values, as shares: no step ends so near to a change point that directions are blurred there."""
DEAD = 1e-9
"""Shares of a direction that lead the drives on below this are none."""
ON_LIMIT = 1e-11
"""How far (rad, sizes) a walk may lead over a limit."""
MOST_STEPS = 20_000
"""About 400 turns of a four-bar's crank, which take some seconds; a longer way is gone in several."""
KEPT = 200
"""Places of a trail that are kept: the last ones, besides the first."""
HOLDS = 1e-10


@dataclass(slots=True, eq=False)
class Walk:
    """
    Attributes:
        course: what is followed.
        trail: the places that it has come by; the last is where it stands.
        headings: the direction (n + 1,) of the curve at each.
        rank: of A, but for change points.
        crossed: places next to change points that were passed.
        stopped: why it could not go on: "dead point", "limit", "stuck", "conflict" or "steps", of which it has
            taken all that it may; empty if it could.
        limit: the freedom that stands at its limit then.
        is_blurred: whether it stands on a change point, so that only its heading says where it goes.
        stride: how long the next step may be.
        sign: -1 for a walk on which s falls.
        is_free: whether limits do not matter.
        taken: how many steps it has taken.
    """

    course: Course
    trail: list[Place]
    headings: list[Array]
    rank: int
    is_blurred: bool = False
    crossed: list[Place] = field(default_factory=list[Place])
    stopped: str = ""
    limit: str = ""
    stride: float = LONGEST
    sign: float = 1.0
    is_free: bool = False
    taken: int = 0

    @property
    def here(self) -> Place:
        return self.trail[-1]

    @property
    def heading(self) -> Array:
        return self.headings[-1]

    @property
    def spare(self) -> int:
        """How many freedoms the drives leave."""
        return self.course.n + 1 - int(self.course.held.sum()) - self.rank - 1

    def go(self, goal: float, longest: float = LONGEST, most: int = MOST_STEPS) -> None:
        """Walk until s is `goal` or beyond, or something stops it; `at` tells what is exactly there."""
        self.stride = min(self.stride, longest)
        for _ in range(most):
            if self.stopped or self.sign * (self.here.s - goal) >= -SHUT:
                return
            self._advance(goal, longest)
            self.taken += 1
            if len(self.trail) > 2 * KEPT:
                del self.trail[1:-KEPT], self.headings[1:-KEPT]
        if self.sign * (self.here.s - goal) < -SHUT:
            self.stopped = self.stopped or "steps"

    def at(self, s: float) -> Place:
        """The place on the trail at which s has a value that the trail has passed; its error tells if there is none."""
        if len(self.trail) == 1:
            return self.course.settle_at(self.here.q, s)
        last = len(self.trail) - 1
        k = next((k for k in range(1, last) if self.sign * (self.trail[k].s - s) >= 0.0), last)
        before, after, t = self.trail[k - 1], self.trail[k], self.headings[k - 1]
        far = float(np.linalg.norm(self.course.apart(before, after)))
        guess = between(self.course, before, t, after, self.headings[k], s)
        there = self.course.settle_at(guess, s)
        if there.error < HOLDS and float(np.linalg.norm(self.course.loops.apart(guess, there.q))) < 0.1 * far + 1e-9:
            return there
        # the curve is steep in s: along it, then
        found = self._seek(before, t, far, lambda place, _: self.sign * (place.s - s))
        there = self.course.settle_at(found.q, s)
        return there if there.error < HOLDS else found

    # ---- one step ---------------------------------------------------------------------------

    def _advance(self, goal: float, longest: float) -> None:
        here, t = self.here, self.heading
        ahead = self.sign * (goal - here.s) / max(self.sign * float(t[-1]), 1e-3)
        least = AWAY if self.is_blurred else 0.0  # past the goal if need be, so that directions are clear
        made = self._step(max(min(self.stride, longest, 1.02 * ahead + 1e-6), least), longest)
        if made is None:
            return
        there, turned, h = made
        limit = None if self.is_free else self._first_limit(here, t, there, h, goal)
        if limit is not None:
            there, turned = limit
        elif not self.spare and self.sign * float(turned[-1]) < 0.0:
            top = self._seek(here, t, h, lambda _, way: -self.sign * float(way[-1]))
            if self.sign * (goal - top.s) > SHUT:
                self.stopped = "dead point"
            there, turned = top, self._direction(top, t)
        elif self.spare and self.sign * float(turned[-1]) < 1e-4:
            self.stopped = "dead point"
        self.trail.append(there)
        self.headings.append(turned)
        if limit is None:
            self._release()

    def go_round(self, most: int, longest: float = LONGEST, period: float = math.inf) -> list[Place]:
        """Along the curve even where s turns back, until it comes back to its start; the places where s is zero again.

        Args:
            most: steps.
            period: values of s that differ by it mean the same.
        """
        start, found = self.here, list[Place]()
        for _ in range(most):
            made = self._step(min(self.stride, longest), longest)
            if made is None:
                break
            before, (there, turned, _) = self.here, made
            self.trail, self.headings = [before, there], [self.heading, turned]
            low, high = sorted((before.s, there.s))
            zero = period * math.floor(high / period) if math.isfinite(period) else 0.0
            if before is not start and low < zero <= high:
                self.sign = 1.0 if there.s > before.s else -1.0
                place = self.at(zero)
                if place.error < HOLDS:
                    if any(self.course.is_same(place.q, one.q) for one in (start, *found)):
                        break
                    found.append(place)
        return found

    def _step(self, h: float, longest: float) -> tuple[Place, Array, float] | None:
        """One step along the branch, at most h long: where it leads, the direction there, and its length."""
        here, t = self.here, self.heading
        while True:
            there, turned, fine = self._try(here, t, h)
            if fine and there.size(self.rank) < TOO_NEAR and not self.spare and h > 10 * SHORTEST:
                beyond = self._try(here, t, 1.37 * h)
                if beyond[2] and beyond[0].size(self.rank) >= TOO_NEAR:
                    h, (there, turned, fine) = 1.37 * h, beyond
            crossing: Place | None = None
            if fine and not self.is_blurred and not self.spare and not same_side(here, t, there, turned):
                crossing = self._crossing(here, t, h)
                fine = crossing is not None
            if fine:
                break
            h *= 0.5
            if h < SHORTEST:
                self.stopped = "stuck"
                return None
        if crossing is not None:
            self.crossed.append(crossing)
        self.is_blurred = False
        self.stride = min(1.7 * h, longest) if h >= 0.99 * self.stride else max(self.stride, h)
        return there, turned, h

    def _try(self, here: Place, t: Array, h: float) -> tuple[Place, Array, bool]:
        """A step h along t and back to the curve; the direction there, and whether it is fine."""
        q, s = self.course.step(here.q, here.s, h * t)
        there = self.course.settle(q, s, t[None], enough=SHUT)
        if not there.error < HOLDS:
            return there, t, False
        turned = self._direction(there, t)
        aside = float(np.linalg.norm(self.course.apart(here, there) - h * t))
        return there, turned, aside < ASIDE * h and float(turned @ t) > SMOOTH

    def _direction(self, place: Place, before: Array) -> Array:
        """The unit direction (n + 1,) in which the curve goes on; the shortest for the drives if there are many."""
        if self.spare > 0:
            t = place.within(self.sign * self.course.end, self.rank)
        else:
            M = np.concatenate([place.A, before[None]])
            t = shortest(M, np.append(np.zeros(len(place.A)), 1.0))
            t[:-1][self.course.held] = 0.0
        size = float(np.linalg.norm(t))
        return t / size if size > 1e-12 else before

    def _crossing(self, here: Place, t: Array, h: float) -> Place | None:
        """Next to the change point within a step; None if there is none, and the curve only turns there."""
        low, high = 0.0, h
        middle = here
        while high - low > SHORTEST:
            middle, turned, fine = self._try(here, t, 0.5 * (low + high))
            if not fine:
                return None
            if same_side(here, t, middle, turned):
                low = 0.5 * (low + high)
            else:
                high = 0.5 * (low + high)
        return middle

    def _seek(self, here: Place, t: Array, h: float, g: Callable[[Place, Array], float], halves: bool = False) -> Place:
        """The place within a step at which g(place, direction) is zero; it is below zero here and above at the end.

        Args:
            halves: whether g is not smooth, so that only its sign tells.
        """
        low, high = 0.0, h
        g_low, g_high = g(here, t), np.inf
        place = here
        for k in range(60):
            if np.isfinite(g_high) and k % 3 and not halves:
                x = low - g_low * (high - low) / (g_high - g_low) if g_high > g_low else 0.5 * (low + high)
            else:
                x = 0.5 * (low + high)
            place, turned, _ = self._try(here, t, x)
            value = g(place, turned)
            if abs(value) < 1e-14 or high - low < 1e-14 * max(1.0, h):
                break
            if value < 0.0:
                low, g_low = x, value
            else:
                high, g_high = x, value
        return place

    # ---- limits -----------------------------------------------------------------------------

    def _first_limit(self, here: Place, t: Array, there: Place, h: float, goal: float) -> tuple[Place, Array] | None:
        """Where the step first comes to a limit, if it leaves one; what stands there is held, or the walk ends."""
        course, loops = self.course, self.course.loops
        worst, name = course.beyond(there.q)
        if worst <= ON_LIMIT or course.beyond(here.q)[0] >= worst:
            return None
        at = self._seek(here, t, h, lambda place, _: course.beyond(place.q)[0] - 0.5 * ON_LIMIT, halves=True)
        if self.sign * (at.s - goal) >= 0.0:
            return None
        name = course.beyond(at.q)[1] or name
        space = loops.mechanism.space
        k = space.q_names.index(name) if name in space.q_names else -1
        if self.spare and k >= 0:
            course.held |= loops.columns == k
            at = course.settle_at(np.clip(at.q, loops.lower, loops.upper), at.s)
            self.rank = at.rank
            if float(np.linalg.norm(at.within(course.end, at.rank))) > TOO_NEAR:
                return at, self._direction(at, course.end)
            course.held &= loops.columns != k
        self.stopped, self.limit = "limit", name
        return at, self._direction(at, t)

    def _release(self) -> None:
        """Let go what is held at a limit and would go inside."""
        course = self.course
        if not course.held.any():
            return
        q, before = self.here.q, course.held.copy()
        course.held[:] = False
        free = course.place(q, self.here.s)
        way = free.within(course.end, free.rank)
        k = np.maximum(course.loops.columns, 0)
        out = ((way[:-1] > 0) & (q[k] >= course.loops.upper[k] - 1e-9)) | (
            (way[:-1] < 0) & (q[k] <= course.loops.lower[k] + 1e-9)
        )
        course.held[:] = before & out
        if (course.held != before).any():
            here = course.place(q, self.here.s)
            self.trail[-1], self.rank = here, here.rank
            self.headings[-1] = self._direction(here, course.end)
