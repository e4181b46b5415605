"""All solutions that were found, nearest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.errors import StructureError
from mechanik.mechanism.door import counted
from mechanik.search.arcs import way_along, within
from mechanik.search.conditions import HOLDS, Conditions, length
from mechanik.search.self_motion import SPACING, Curve
from mechanik.solvers.keeping_off import KeepingOff
from mechanik.spatial.array import Array

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SolutionSet:
    """Distinct solutions of one target, inside the limits.

    Attributes:
        q: (k, nq), nearest to q0 first; what does not move is as in q0.
        distance: (k,) from q0: the root of the summed squares of the ways of all that moves, rad and m.
        component: (k,) which of those that hang together: the same number, the same self-motion.
        redundant: the largest number of freedoms that a solution leaves; 0: all are single points. 1: they lie on
            curves, of which each is given by some samples. 2 and more: samples as far apart as can be; whether they
            hang together is not known, and all have the same component.
        complete: whether a closed form says that there are no others (no other self-motions, if redundant).
        why: how they were found, or why there are none, in words.
        tries: how many starts it took; 0 by formula.
    """

    q: Array
    distance: Array
    component: Indices
    redundant: int
    complete: bool
    why: str
    tries: int
    _arcs: tuple[Curve | None, ...]
    _conditions: Conditions
    _revision: tuple[int, ...]
    _keeping: KeepingOff | None = None

    def __len__(self) -> int:
        return len(self.q)

    def __iter__(self) -> Iterator[Array]:
        return iter(self.q)

    def __getitem__(self, k: int) -> Array:
        return self.q[k]

    def __repr__(self) -> str:
        if not len(self):
            return f"<no solution: {self.why}>"
        pieces = ""
        if self.redundant == 1:
            pieces = f" of {counted(len(set(self.component.tolist())), 'self-motion')}"
        elif self.redundant:
            pieces = f" of many, with {self.redundant} freedoms left"
        return f"<{counted(len(self), 'solution')}{pieces}: {self.why}>"

    @property
    def errors(self) -> Array:
        """(k, 2) how far off each is: the largest distance (m) and angle (rad) of an objective."""
        self._check_fresh()
        return self._conditions.errors(self.q)

    def path(self, i: int, j: int) -> Array | None:
        """A way (m, nq) from solution i to solution j on which all that is asked holds, inside the limits.

        Its rows are 0.03 rad (or sizes of the mechanism) apart at most, and all holds to 1e-9 at each. Angles do not
        jump, so the last row may differ from solution j by full turns. None if there is no such way: i and j are
        apart; or, where two and more freedoms are left, the straight way, brought back to where all holds, does not
        get there; or something that is to be avoided is in the way.
        """
        self._check_fresh()
        way = self._way(i, j)
        return way if way is None or self._keeping is None or self._keeping.are_free(way).all() else None

    def _way(self, i: int, j: int) -> Array | None:
        a, b = self.q[i], self.q[j]
        if i == j:
            return a[None].copy()
        if self.component[i] != self.component[j]:
            return None
        arc = self._arcs[int(self.component[i])]
        if arc is not None:
            return way_along(self._conditions, arc, a, b)
        return straight_way(self._conditions, a, b) if self.redundant > 1 else None

    def _check_fresh(self) -> None:
        if self._conditions.mechanism.revision != self._revision:
            raise StructureError("the mechanism has changed since these solutions were found; find them again")


def straight_way(conditions: Conditions, a: Array, b: Array) -> Array | None:
    """From a to b in short straight steps, each brought back to where all holds; None if that does not get there.

    Full turns count, so what is straight is inside the limits; what is brought back over one stands on it.
    """
    c, q, way = conditions, a, [a]
    left = _step(c, a, b)
    for _ in range(4 * int(length(left) / SPACING) + 20):
        far = float(length(left))
        if far <= 1.5 * SPACING:
            return np.array([*way, b])
        there, error = c.settle(c.step(q[None], (SPACING / far) * left[None]))
        if not within(c, there)[0]:
            on_limit = np.clip(there, c.lower, c.upper)
            held = np.where(c.columns >= 0, (on_limit != there)[:, c.columns], False)
            there, error = c.settle(on_limit, held)
        is_step = length(_step(c, q, there[0])) < 2 * SPACING
        left = _step(c, there[0], b)
        # no nearer: something is in the way
        if not (error[0] < HOLDS and within(c, there)[0] and is_step and length(left) < far - 0.02 * SPACING):
            return None
        q = there[0]
        way.append(q)
    return None


def _step(conditions: Conditions, a: Array, b: Array) -> Array:
    """From a to b, full turns counted."""
    return conditions.mechanism.space.difference(a, b)[conditions.moving] / conditions.unit
