"""What the rows of a relation come to at many configurations at once, squared: to compare, not to converge by."""

from __future__ import annotations

import numpy as np

from mechanik.objectives.evaluate import NO_DIRECTION, outside
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial import inverse, make, rotation
from mechanik.spatial.array import Array

KNOWN = (Kind.POSE, Kind.AXIS, Kind.COSINE, Kind.LOOK, Kind.DISTANCE)
"""Kinds whose rows follow from where B stands as seen from A."""
ALL_TURNS = (3, 4, 5)


def seen_squares(relation: Relation, weights: Array, X_a_b: Array) -> Array:
    """Weighted sum of squares (n,) of how far the rows lie outside their bands.

    A whole rotation counts by its chord, 4 sin^2(angle / 2), and not by the angle: the same order, ten times as fast.

    Args:
        weights: (rows,).
        X_a_b: (n, 4, 4), link B as seen from link A.
    """
    X_a, X_b = relation.X_a, relation.X_b
    if relation.world_axes is not None:  # A stands still: let it stand along these axes, and turn B likewise
        C = relation.world_axes
        X_b = X_b @ make(X_a[:3, :3].T @ C, np.zeros(3))
        X_a = make(C, X_a[:3, 3])
    X = inverse(X_a) @ X_a_b @ X_b
    if relation.kind is Kind.POSE and relation.rows[-3:] == ALL_TURNS and relation.lower is relation.upper is None:
        shifts = weights[:-3] * X[:, relation.rows[:-3], 3]
        chord = 3.0 - np.trace(X[:, :3, :3], axis1=1, axis2=2)
        return (shifts * shifts).sum(axis=1) + weights[-1] ** 2 * chord
    short = weights * outside(relation, _rows(relation, X))
    return (short * short).sum(axis=1)


def value_squares(relation: Relation, weights: Array, values: Array) -> Array:
    """The same of a relation of kind VALUE, for the freedom's values (n,)."""
    short = weights * outside(relation, values[:, None] - relation.target)
    return (short * short).sum(axis=1)


def _rows(relation: Relation, X: Array) -> Array:
    """(n, rows) as `relation.py` defines them, for B as seen from A, (n, 4, 4)."""
    p, z, wanted = X[:, :3, 3], X[:, :3, 2], list(relation.rows)
    match relation.kind:
        case Kind.POSE if wanted[-1] < 3:
            return p[:, wanted]
        case Kind.POSE:
            return np.concatenate([p, rotation.log(X[:, :3, :3])], axis=1)[:, wanted]
        case Kind.AXIS:
            return np.concatenate([p, _lean(z)], axis=1)[:, wanted]
        case Kind.COSINE:
            return z[:, 2:]
        case Kind.LOOK:
            return _lean(p)[:, wanted]
        case _:
            return np.linalg.norm(p, axis=1, keepdims=True)


def _lean(u: Array) -> Array:
    """(n, 2): (x, y) of directions (n, 3), stretched so that its length is the angle to z; opposite to z it is x."""
    s = np.hypot(u[:, 0], u[:, 1])
    angle = np.arctan2(s, u[:, 2])
    known = s > NO_DIRECTION
    along = np.where(known[:, None], u[:, :2] / np.where(known, s, 1.0)[:, None], (1.0, 0.0))
    return angle[:, None] * along
