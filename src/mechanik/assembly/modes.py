"""All ways to put a mechanism together, and how sure it is that these are all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from mechanik.assembly.assemble import start_of
from mechanik.assembly.door import Given, as_drive
from mechanik.assembly.drives import Drives
from mechanik.assembly.loops import Loops
from mechanik.assembly.mode_search import ModeSearch
from mechanik.errors import LimitsError, StructureError
from mechanik.ik import Solver
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import as_number, counted
from mechanik.objectives import JointValues, RestPose
from mechanik.objectives.door import as_generator
from mechanik.search.all_solutions import _given
from mechanik.search.question import asked
from mechanik.search.solution_set import Indices
from mechanik.spatial.array import Array, ArrayLike

TRIES, SAMPLES = 4000, 8
"""Starts at most, and samples along each self-motion, where the drives leave freedoms."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AssemblyModes:
    """Distinct configurations, loops shut and drives at their values, inside the limits; full turns aside.

    Attributes:
        q: (k, nq), nearest to q0 first.
        distance: (k,) from q0: the root of the summed squares of the ways of all that moves, rad and m.
        found: (k,) how often each was come to, from starts and along curves that lead from one mode to another.
        redundant: how many freedoms the drives leave; 0: all modes are single points. Else some samples of each
            self-motion are given.
        complete: whether a formula says that there are no others.
        why: how they were found, or why there are none, in words.
        tries: how many starts it took.
        chance_of_more: about how likely it is that one more start that leads to a mode leads to a new one: the share of
            what was found only once (I. J. Good 1953), and no less than 3 in all starts that led to a mode.
    """

    q: Array
    distance: Array
    found: Indices
    redundant: int
    complete: bool
    why: str
    tries: int
    chance_of_more: float

    def __len__(self) -> int:
        return len(self.q)

    def __iter__(self) -> Iterator[Array]:
        return iter(self.q)

    def __getitem__(self, k: int) -> Array:
        return self.q[k]

    def __repr__(self) -> str:
        if not len(self):
            return f"<no assembly mode: {self.why}>"
        freely = f", samples of motions with {counted(self.redundant, 'freedom')}" if self.redundant else ""
        return f"<{counted(len(self), 'assembly mode')}{freely}: {self.why}>"


def assembly_modes(
    mechanism: Mechanism,
    drive: Given | None = None,
    q0: ArrayLike | None = None,
    *,
    limit: int | None = None,
    tries: int | None = None,
    max_seconds: float | None = None,
    rng: np.random.Generator | None = None,
) -> AssemblyModes:
    """See `Mechanism.assembly_modes`."""
    for name, value in (("limit", limit), ("tries", tries)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or value < 1):
            raise LimitsError(f"{name} must be a whole number of 1 or more, not {value!r}")
    deadline = np.inf
    if max_seconds is not None:
        seconds = as_number(max_seconds, "max_seconds")
        if seconds <= 0:
            raise LimitsError(f"max_seconds must be above 0, not {seconds:g}")
        deadline = time.perf_counter() + seconds
    if not mechanism.closures and not mechanism.laws:
        raise StructureError("there is no loop to put together; give the joints their values")
    values = as_drive(mechanism, drive)
    generator = np.random.default_rng(0) if rng is None else as_generator(rng)
    start = start_of(mechanism, q0).q
    loops = Loops(mechanism)
    drives = Drives(loops, values, start)
    if drives.clamped:
        why = f"outside its limits: {', '.join(drives.clamped)}"
        return _as_modes(mechanism, np.zeros((0, mechanism.nq)), start, np.zeros(0, dtype=np.int64), 0, why, 0, 0.0)
    start = drives.put(start, drives.far)
    locked = [mechanism.space.v_names[v] for v in drives.columns()]
    wanted = JointValues(values, turns="exact") if values else RestPose(start)
    solver = Solver(mechanism, wanted, lock=locked or None)
    with solver._alone(), asked(solver, None, start) as question:
        search = ModeSearch(question, loops, values, deadline)
        search.from_starts(tries or TRIES, generator)
        if values and not search.findings.redundant and (limit is None or len(search.hits) < limit):
            search.go_on()
        q, component, _ = _given(search.findings, start, SAMPLES)
        hits = np.array([_hits(search, one) for one in q], dtype=np.int64)
        order = np.argsort(question.conditions.far(start, q), kind="stable")[:limit]
    chance = max(search.rarely, 3) / max(search.descents, 3)
    why = _why(search, len(q), len(set(component.tolist())))
    return _as_modes(mechanism, q[order], start, hits[order], search.findings.redundant, why, search.tries, chance)


def _hits(search: ModeSearch, q: Array) -> int:
    known = search.findings.points
    for hits, one in zip(search.hits, known.q, strict=True):
        if bool(known.same(q[None], one)[0]):
            return hits
    return 1


def _why(search: ModeSearch, count: int, pieces: int) -> str:
    if not count:
        return f"as far as {search.tries} starts can tell the loops cannot be shut with these drives inside the limits"
    text = f"from {search.tries} starts, of which {search.descents} led to a mode"
    if search.curves:
        text += f", and along {counted(search.curves, 'curve')} on from those"
    if search.findings.redundant:
        return f"{text}; {counted(pieces, 'motion')} that hang together"
    return f"{text}; {search.rarely} of them found only once" if search.rarely else text


def _as_modes(
    mechanism: Mechanism, q: Array, q0: Array, hits: Indices, redundant: int, why: str, tries: int, chance: float
) -> AssemblyModes:
    far = np.linalg.norm(mechanism.difference(q0, q), axis=-1) if len(q) else np.zeros(0)
    return AssemblyModes(q, far, hits, redundant, False, why, tries, chance)
