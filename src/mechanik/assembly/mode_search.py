"""Looking for all ways to put a mechanism together: from many starts, and on from those that are found.

A mode that hardly a start leads to is reached from others: one drive is let go, the mechanism moves along the curve
that it is free to follow then, through dead points and all, and wherever that drive has its value again is a mode.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from mechanik.assembly.drives import Drives, without_turns
from mechanik.assembly.loops import Loops
from mechanik.assembly.place import Course
from mechanik.assembly.setting_out import begin
from mechanik.search.findings import SEEN, Findings
from mechanik.search.question import Question
from mechanik.spatial.array import Array

BLOCK = 64
"""Starts at a time, at first; up to four times as many later."""
ENOUGH = 120
"""Starts in a row that lead to a mode, and to none that is new: then they are over; also after as many as the last new
one took. Of the 40 modes of Dietmaier's platform, one start in 4 leads to one, and the rarest takes 1 in 3000."""
TWICE = 2
"""A mode that was come to less often than this is gone on from, and so are as many others in vain."""
FEW = 2
STEPS = 2000
"""Along a curve, at most."""


class ModeSearch:
    """
    Attributes:
        findings: what is found, each once.
        hits: for each single mode, how often it was come to, from starts and along curves.
        tries, descents, curves: starts; how many of them led to a mode; and curves that were followed.
    """

    def __init__(self, question: Question, loops: Loops, values: Mapping[str, Array], deadline: float) -> None:
        self.question, self.loops, self.values, self.deadline = question, loops, values, deadline
        self.findings = Findings(question.conditions)
        self._turned = without_turns(loops.mechanism, values)
        self.hits: list[int] = []
        self.tries = self.descents = self.curves = 0

    @property
    def rarely(self) -> int:
        """How many modes were come to only once."""
        return sum(one < TWICE for one in self.hits)

    def from_starts(self, tries: int, rng: np.random.Generator) -> None:
        last_new = 0
        while self.tries < tries and self._has_time():
            count = min(max(BLOCK, min(self.tries, 4 * BLOCK)), tries - self.tries)
            starts = self.question.starts(self.tries, count, rng)
            if self.tries == 0:
                starts[0] = self.question.q0
            found = self.question.descend(starts)
            self.tries += count
            self.descents += len(found)
            if self.add(found):
                last_new = self.descents
            if self.descents - last_new >= max(ENOUGH, last_new) or len(self.findings.wide) > 64:
                break

    def go_on(self) -> None:
        """On from modes that were hardly found, until each has been come to twice and that brings nothing new.

        Where there are no more than two modes, and both are often found, there is no need to.
        """
        names, used = list(self.values), set[tuple[int, str]]()
        in_vain = 0
        while self._has_time() and (self.rarely or (len(self.hits) > FEW and in_vain < TWICE)):
            free = [(hits, k) for k, hits in enumerate(self.hits) if any((k, name) not in used for name in names)]
            if not free:
                break
            k = min(free)[1]
            name = next(name for name in (*names[k % len(names) :], *names) if (k, name) not in used)
            used.add((k, name))
            self.curves += 1
            in_vain = 0 if self.add(self._around(self.findings.points.q[k], name)) else in_vain + 1

    def add(self, found: Array) -> int:
        """Sort configurations (K, nq) in, as descents leave them; returns how many are new."""
        c, findings = self.question.conditions, self.findings
        known = findings.points.q
        if len(known) and len(found):
            apart = np.abs(c.apart(found[:, None], known[None])).max(axis=2)
            nearest = apart.argmin(axis=1)
            seen = apart[np.arange(len(found)), nearest] < SEEN
            for k in nearest[seen].tolist():
                self.hits[k] += 1
            found = found[~seen]
        if not len(found):
            return 0
        polished, holds = c.polish(found, self.question.q0)
        new = findings.add(polished[holds])
        self.hits += [0] * (len(findings.points.q) - len(self.hits))
        for one in polished[holds]:
            for k in np.flatnonzero([bool(findings.points.same(one[None], other)[0]) for other in findings.points.q]):
                self.hits[k] += 1
        return new

    def _around(self, q: Array, name: str) -> Array:
        """(K, nq) modes along the curve through q on which the drive `name` is free."""
        values = {**self.values, name: self.values[name] + 1.0}
        course = Course(self.loops, Drives(self.loops, values, q, is_free=True, turned=self._turned))
        found: list[Array] = []
        for sign in (1.0, -1.0):
            walk = begin(course, q)
            if walk.stopped == "conflict" or walk.spare:
                break
            walk.headings[0], walk.is_free, walk.stopped = sign * walk.heading, True, ""
            found += [place.q for place in walk.go_round(STEPS, period=course.drives.period)]
            if not walk.stopped:
                break
        return np.where(self.question.stays, self.question.q0, np.array(found).reshape(-1, len(q)))

    def _has_time(self) -> bool:
        return time.perf_counter() < self.deadline
