"""A small step of the drives in one go, where it is certain that a walk would end at the same place.

The followers are taken along the tangent, and Newton's method brings them back to where the loops are shut. With B the
inverse of the rows' derivatives J by the followers, one way leads from the start to the end, and no other comes near,
if B (J' - J) is smaller than 1 at all places between and around them: then u - B rows(u) draws all that is there to one
place, for each value of the drives (Banach; L. V. Kantorovich 1948). J' is looked at where the tangent leads. What it
may do between and around is bounded by how rows of joints can curve: no lever is longer than a column of J.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik.assembly.assembly import Assembly
from mechanik.assembly.loops import Loops, Part
from mechanik.assembly.place import EXACT, SHUT
from mechanik.kernels.problem import BLOCK_INTS, COLUMNS
from mechanik.mechanism.door import counted
from mechanik.objectives.aims import aims_by_name
from mechanik.objectives.relation import Kind
from mechanik.program.program import SIZE_OF_REACH
from mechanik.solvers.status import Status
from mechanik.spatial.array import Array

Indices = npt.NDArray[np.int64]

FARTHEST = 0.25
"""Rad, sizes: as long as a step of a walk may be."""
SURE = 0.5
"""How large B (J' - J) may be, at most, by all bounds."""
SOUND = 1e3
"""The size of J times that of B, at most: beyond it a change point or a dead point is near."""
FITS = 1e-6
"""The share of the drives' way that the followers cannot make good, at most; else drives hold each other."""
MOST = 6
"""Newton's steps; two or three do."""
MOST_PIECES = 16
"""What takes more than this is no small step."""


class _TooLongError(Exception):
    """What is not certain for a step may be for a shorter one: about so many times."""

    def __init__(self, times: float) -> None:
        self.times = times


class OneStep:
    """For some drives of a mechanism, all of them single numbers of q.

    Attributes:
        k: (m,) where in q the drives are.
    """

    def __init__(self, loops: Loops, names: tuple[str, ...], k: Indices, parts: list[Part]) -> None:
        self.loops, self.names, self.k = loops, names, k
        space, lower, upper = loops.mechanism.space, loops.lower, loops.upper
        self._v = np.array([int(np.flatnonzero(loops.columns == one)[0]) for one in k])
        self._unit = np.where(space.rotates[self._v], 1.0, loops.size)
        self._parts = [_PartStep(loops, part, k) for part in parts]
        has_limit = np.isfinite(lower) | np.isfinite(upper)
        self._limited = np.array([i for i in space.scalars_q.tolist() if has_limit[i]], dtype=np.int64)
        self._lower, self._upper = lower[self._limited], upper[self._limited]
        self._follows = np.array([i not in k for i in self._limited.tolist()], dtype=np.float64)
        shut = f"{counted(len(loops.mechanism.closures), 'loop')} shut"
        self._text = f"{len(names)} of {counted(len(names), 'drive')} met, {shut}"

    def go(self, values: Mapping[str, Array], q: Array, heading: Array) -> Assembly | None:
        """From q (nq,) to where the drives have their values, in pieces if need be; None where only a walk can tell."""
        wanted = np.concatenate([*values.values()])
        if len(wanted) != len(self.k) or not self._is_inside(q, 0.0):
            return None
        start, along = q[self.k], heading
        way = (wanted - start) / self._unit
        far, pieces, done = _size(way), 1, 0
        if far > FARTHEST * MOST_PIECES / 4:
            return None
        while done < pieces:
            there = wanted if done + 1 == pieces else start + (done + 1) / pieces * (wanted - start)
            try:
                made = self._piece(q, there, way / pieces)
            except _TooLongError as why:
                if not pieces * why.times <= MOST_PIECES:
                    return None
                finer = 1 << max(1, math.ceil(math.log2(why.times)))
                pieces, done = finer * pieces, finer * done
                continue
            if made is None:
                return None
            (q, along), done = made, done + 1
        if far > SHUT:
            heading = along * (pieces / far)
        errors = dict.fromkeys(self.names, 0.0)
        return Assembly(self.loops.mechanism, values, q, True, Status.CONVERGED, self._text, errors, (), heading)

    def _piece(self, q: Array, wanted: Array, way: Array) -> tuple[Array, Array] | None:
        """From q to where the drives are (m,) as wanted, which is a way (m,) (rad, sizes) from there; None: walk.

        Returns:
            q (nq,) and how all moves (nv,) where it ends, m and rad for the way.
        """
        end, along, aside = q.copy(), np.zeros(self.loops.n), 0.0
        end[self.k] = wanted
        along[self._v] = way * self._unit
        for part in self._parts:
            bulge = part.go(q, end, way, along)
            if bulge is None:
                return None
            aside = max(aside, bulge)
        is_inside = self._is_inside(end, aside) and not (self.loops.bands and self.loops.beyond(end)[0] > 0.0)
        return (end, along) if is_inside else None

    def _is_inside(self, q: Array, margin: float) -> bool:
        """Whether drives are inside their limits, and all else by a margin, m and rad."""
        if not len(self._limited):
            return True
        here, spare = q[self._limited], margin * self._follows
        return bool((here - spare >= self._lower).all() and (here + spare <= self._upper).all())


class _PartStep:
    """The same for loops that share freedoms.

    All columns are in rad and sizes. What was worked out where the last step ended serves the next one.
    """

    def __init__(self, loops: Loops, part: Part, k: Indices) -> None:
        problem, space, mine = part.problem, loops.mechanism.space, part.v.tolist()
        driven = {int(np.flatnonzero(loops.columns == one)[0]): i for i, one in enumerate(k.tolist())}
        self._problem, self._x = problem, problem.x[: space.nq]
        self._rows = None if len(part.rows) == len(problem.rows) else part.rows
        self._d = np.array([c for c, v in enumerate(mine) if v in driven], dtype=np.int64)
        self._f = np.array([c for c, v in enumerate(mine) if v not in driven], dtype=np.int64)
        self._drives = np.array([driven[v] for v in mine if v in driven], dtype=np.int64)
        self._unit, self._v = problem.scale[self._f], part.v[self._f]
        self._longest = float(self._unit.max(initial=0.0))
        numbers = [c for v, c in enumerate(loops.columns.tolist()) if c >= 0 and v in mine]
        for first, v in zip(space.balls_q.tolist(), space.balls_v.tolist(), strict=True):
            numbers += range(first, first + 4) if v in mine else ()
        self._numbers = np.array(numbers, dtype=np.int64)
        self._curves, self._levers = _curving(loops, part)
        self._at: bytes | None = None
        self._by_drives, self._by_followers = np.zeros((0, 0)), np.zeros((0, 0))
        self._inverse: Array | None = None

    def go(self, q: Array, end: Array, way: Array, along: Array) -> float | None:
        """Shut the loops with the drives of this part where they should be; None if only a walk can tell how.

        Args:
            q: (nq,) the start.
            end: (nq,) with the drives as they should be; the numbers of this part are put there.
            way: (m,) of all drives, rad and sizes.
            along: (nv,) into which goes how the followers move where it ends, m and rad.
        Returns:
            how far (m, rad) from the straight way the followers may have come at most.
        """
        problem, f = self._problem, self._f
        if self._at != q[self._numbers].tobytes():
            self._x[:] = q
            problem.look()
            if not _size(self._errors()) < SHUT:
                return None
            self._learn(q)
        way = way[self._drives]
        if not (gone := _size(way)) > 0.0:
            return 0.0
        if self._inverse is None:
            self._inverse = _inverse(self._by_followers)
        if self._inverse is None or not _size(self._inverse) * _size(self._by_followers) < SOUND:
            return None
        push = self._by_drives.dot(way)
        ahead = -self._inverse.dot(push)
        left = push + self._by_followers.dot(ahead)
        far = math.hypot(_size(ahead), gone)
        if not _size(left) <= FITS * _size(push):
            return None
        if not far < FARTHEST:
            raise _TooLongError(far / FARTHEST)
        self._x[:] = end
        problem.step.fill(0.0)
        problem.step[f] = ahead
        problem.advance()
        by_drives, by_followers = self._derivatives()
        B = _inverse(by_followers)
        if B is None:
            raise _TooLongError(2.0)
        size, inverse = math.hypot(_size(by_followers), _size(by_drives)), _size(B)
        bend, aside, error = _size(B.dot(by_followers - self._by_followers)), 0.0, math.inf
        if not (bend < SURE and size * inverse < SOUND):
            raise _TooLongError(max(2.0, bend / SURE))
        for _ in range(MOST):
            e = self._errors()
            last, error = error, _size(e)
            if error < EXACT or not error < 0.5 * last:
                break
            u = B.dot(e)
            aside += _size(u)
            problem.step[f] = -u
            problem.advance()
        # between, J' may bend away from the straight line; around, the loops may be shut where it was not looked at
        around = inverse * self._curves * (size + self._levers) * (2.0 * aside + far * far / 8.0)
        if not (error < SHUT and bend + around < SURE):
            times = (bend + math.sqrt(bend * bend + 4.0 * SURE * around)) / (2.0 * SURE)  # around falls as a square
            raise _TooLongError(max(1.0, times))
        end[self._numbers] = self._x[self._numbers]
        self._learn(end)
        self._inverse = B = _inverse(self._by_followers)
        if B is None:
            raise _TooLongError(2.0)
        along[self._v] = -B.dot(self._by_drives.dot(way)) * self._unit
        return aside * self._longest

    def _learn(self, q: Array) -> None:
        """Keep the derivatives where it stands, which is at q."""
        self._at, self._inverse = q[self._numbers].tobytes(), None
        self._by_drives, self._by_followers = self._derivatives()

    def _derivatives(self) -> tuple[Array, Array]:
        """Of the rows, by drives and by followers: copies."""
        J = self._problem.jacobian if self._rows is None else self._problem.jacobian[self._rows]
        return J.take(self._d, 1), J.take(self._f, 1)

    def _errors(self) -> Array:
        return self._problem.rows if self._rows is None else self._problem.rows[self._rows]


def _curving(loops: Loops, part: Part) -> tuple[float, float]:
    """How much J can change for a step of 1: a factor, of J and of levers that it does not show.

    A second derivative is the turn of a column, as long as that column at most, and a step of 1 turns it by the root of
    how many freedoms its loop has. Rows leave some directions out, and columns of coupled joints may cancel, so the
    levers of all joints (sizes) are added; gears make them longer.
    """
    blocks = part.problem.part.packed.at["blocks"].reshape(-1, BLOCK_INTS)
    ratios = [abs(one.ratio) for joint in loops.mechanism.joints.values() for one in joint.couplings]
    gear = max(1.0, *ratios) if ratios else 1.0
    return 2.0 * gear * math.sqrt(blocks[:, COLUMNS].max(initial=1)), gear * math.sqrt(len(part.v)) / SIZE_OF_REACH


def one_step(loops: Loops, values: Mapping[str, Array]) -> OneStep | None:
    """That for the drives that have values; None where a walk is all there is."""
    names = tuple(values)
    if names not in loops.kept:
        if len(loops.kept) > 16:
            loops.kept.clear()
        loops.kept[names] = _make(loops, values)
    found = loops.kept[names]
    return found if isinstance(found, OneStep) else None


def _make(loops: Loops, values: Mapping[str, Array]) -> OneStep | None:
    mechanism = loops.mechanism
    curved = any(len(factors) > 1 for one in loops.relations for _, factors in one.polynomials)
    if not values or loops.parts is None or curved:  # what a cam does has no bound that is known
        return None
    k: list[int] = []
    for name, numbers in values.items():
        for probe in (numbers, numbers + 1.0):  # a follower stands elsewhere in q, and has other numbers there
            relations = [aim.relation for aim in aims_by_name(mechanism, {name: probe})]
            if any(one.kind is not Kind.VALUE for one in relations):
                return None
            if [float(one.target[0]) for one in relations] != probe.tolist():
                return None
        k += [mechanism.space.q_names.index(one.freedom) for one in relations]
    if len(set(k)) < len(k):
        return None
    return OneStep(loops, tuple(values), np.array(k, dtype=np.int64), loops.parts)


def _inverse(J: Array) -> Array | None:
    """(n, m) that takes rows to steps, of J (m, n); None where some steps change no row.

    By normal equations, as in a walk, if there are more rows than columns.
    """
    m, n = J.shape
    if not 0 < n <= m:
        return None
    try:
        squares: Any = np.linalg.inv(J.T.dot(J) if m > n else J)
    except np.linalg.LinAlgError:
        return None
    return squares.dot(J.T) if m > n else squares


def _size(M: Array) -> float:
    flat = M.ravel()
    return math.sqrt(flat.dot(flat))
