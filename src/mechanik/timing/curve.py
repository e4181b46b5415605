"""A path as a smooth curve: a cubic spline through its knots, twice differentiable, near to the straight ways."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from mechanik.errors import MissingExtra, ShapeError
from mechanik.mechanism import Mechanism
from mechanik.objectives.evaluate import evaluate
from mechanik.objectives.laws import law_relations
from mechanik.paths import Path
from mechanik.paths.loop_gaps import loop_gaps
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array

SAME = 1e-9
"""Rad and m: knots that are nearer than this are one."""
OPEN = 1e-7
"""M and rad: how far loops may stand open on the spline, before they are shut again."""
ROUNDS = 24
MOST_KNOTS = 20_000
INSIDE = np.array([0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875])
"""Where between two knots the spline is compared with the straight way."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """
    Attributes:
        mechanism: whose configurations these are.
        s: (N,) where the knots are, from 0; rad and m along the straight ways between them.
        pieces: (4, N - 1, nq) of each cubic, highest power first, by what s is beyond the knot before.
        deviation: how far it leaves the straight ways at most, rad or m.
    """

    mechanism: Mechanism
    s: Array
    pieces: Array
    deviation: float

    @property
    def length(self) -> float:
        return float(self.s[-1])

    def at(self, s: Array) -> tuple[Array, Array, Array, Array]:
        """q (M, nq) at s (M,), and its first three derivatives by s, (M, nv) each: velocities of freedoms and on."""
        space = self.mechanism.space
        k = np.clip(np.searchsorted(self.s, s, side="right") - 1, 0, len(self.s) - 2)
        x = (np.clip(s, 0.0, self.s[-1]) - self.s[k])[:, None]
        c3, c2, c1, c0 = self.pieces[:, k]
        q = ((c3 * x + c2) * x + c1) * x + c0
        by_q = (3 * c3 * x + 2 * c2) * x + c1, 6 * c3 * x + 2 * c2, 6 * c3
        first, second, third = (np.empty((len(s), space.nv)) for _ in range(3))
        for rate, of_q in zip((first, second, third), by_q, strict=True):
            rate[:, space.scalars_v] = of_q[:, space.scalars_q]
        for at_q, at_v in zip(space.balls_q, space.balls_v, strict=True):
            four, three = slice(at_q, at_q + 4), slice(at_v, at_v + 3)
            first[:, three], second[:, three], third[:, three] = _turning(q[:, four], *(one[:, four] for one in by_q))
            q[:, four] = quaternion.normalize(q[:, four])
        return q, first, second, third

    def places(self, s: Array) -> Array:
        """q (M, nq) alone."""
        k = np.clip(np.searchsorted(self.s, s, side="right") - 1, 0, len(self.s) - 2)
        x = (np.clip(s, 0.0, self.s[-1]) - self.s[k])[:, None]
        q = ((self.pieces[0, k] * x + self.pieces[1, k]) * x + self.pieces[2, k]) * x + self.pieces[3, k]
        for at_q in self.mechanism.space.balls_q:
            q[:, at_q : at_q + 4] = quaternion.normalize(q[:, at_q : at_q + 4])
        return q


def curve_through(path: Path, deviation: float) -> Curve:
    """A spline that leaves the straight ways of a path by `deviation` (rad, m) at most, and does not open loops.

    Where it would, knots are put between, so that corners become as tight as is asked.
    """
    try:
        interpolate: Any = import_module("scipy.interpolate")
    except ImportError:
        raise MissingExtra("a smooth curve through a path", "plan") from None
    mechanism, path = path.mechanism, _distinct(path)
    q, s = _turned_alike(mechanism, path.q), path.s
    left = ROUNDS
    while True:
        far = np.append(0.0, np.cumsum(np.linalg.norm(mechanism.difference(q[:-1], q[1:]), axis=1)))
        pieces = _line(far, q) if len(q) == 2 else np.array(interpolate.CubicSpline(far, q, bc_type="natural").c)
        away, gap = _away(far, q, pieces), _gaps(mechanism, far, pieces)
        split = np.flatnonzero((away > deviation) | (gap > OPEN))
        left -= 1
        if not len(split) or not left or len(q) + len(split) > MOST_KNOTS:
            return Curve(mechanism, far, pieces, float(away.max()))
        middle = 0.5 * (s[split] + s[split + 1])
        s = np.insert(s, split + 1, middle)
        q = _turned_alike(mechanism, np.insert(q, split + 1, path.at(middle), axis=0))


def _distinct(path: Path) -> Path:
    """The same without knots at which nothing has moved, two or more."""
    if len(path) < 2:
        raise ShapeError("the path has one knot: there is no way to go, and nothing to time")
    moved = np.linalg.norm(path.mechanism.difference(path.q[:-1], path.q[1:]), axis=1) > SAME
    if not moved.any():
        raise ShapeError(f"all {len(path)} knots of the path are the same configuration: there is nothing to time")
    return path if moved.all() else Path(path.mechanism, path.q[np.append(True, moved)])


def _turned_alike(mechanism: Mechanism, q: Array) -> Array:
    """The same configurations, with the quaternions of each ball on one side: q and -q are the same turn."""
    q = q.copy()
    for k in mechanism.space.balls_q:
        four = q[:, k : k + 4]
        signs = np.where((four[1:] * four[:-1]).sum(axis=1) < 0.0, -1.0, 1.0)
        four[1:] *= np.cumprod(signs)[:, None]
    return q


def _line(far: Array, q: Array) -> Array:
    pieces = np.zeros((4, 1, q.shape[1]))
    pieces[2, 0], pieces[3, 0] = (q[1] - q[0]) / far[1], q[0]
    return pieces


def _between(far: Array, pieces: Array) -> Array:
    """(N - 1, 7, nq) inside each piece."""
    x = (np.diff(far)[:, None] * INSIDE)[..., None]
    c3, c2, c1, c0 = pieces[:, :, None]
    return ((c3 * x + c2) * x + c1) * x + c0


def _away(far: Array, q: Array, pieces: Array) -> Array:
    """(N - 1,) how far each piece leaves the straight way between its knots, rad or m."""
    way = (q[1:] - q[:-1])[:, None]
    gone = _between(far, pieces) - q[:-1, None]
    share = np.clip((gone * way).sum(axis=2) / np.maximum((way * way).sum(axis=2), 1e-300), 0.0, 1.0)
    return np.abs(gone - share[..., None] * way).max(axis=(1, 2))


def _gaps(mechanism: Mechanism, far: Array, pieces: Array) -> Array:
    """(N - 1,) how far loops and laws are off in the middle of each piece, m or rad."""
    middles = _between(far, pieces)[:, len(INSIDE) // 2]
    gaps = loop_gaps(mechanism, middles)
    for law in law_relations(mechanism).values():
        off = [float(np.abs(evaluate(mechanism, law, q)[0]).max(initial=0.0)) for q in middles]
        gaps = np.maximum(gaps, off)
    return gaps


def _turning(Q: Array, Q1: Array, Q2: Array, Q3: Array) -> tuple[Array, Array, Array]:
    """How a ball turns about its own axes, and its first two derivatives (M, 3), from any multiple Q (M, 4) of its turn
    and the derivatives of Q."""
    back = quaternion.conjugate(Q)
    W = 2 * quaternion.multiply(back, Q1)[:, 1:]
    W1 = 2 * quaternion.multiply(back, Q2)[:, 1:]
    W2 = 2 * (quaternion.multiply(quaternion.conjugate(Q1), Q2) + quaternion.multiply(back, Q3))[:, 1:]
    n, n1, n2 = ((one).sum(axis=1, keepdims=True) for one in (Q * Q, 2 * Q * Q1, 2 * (Q1 * Q1 + Q * Q2)))
    w = W / n
    w1 = (W1 - w * n1) / n
    return w, w1, (W2 - 2 * w1 * n1 - w * n2) / n
