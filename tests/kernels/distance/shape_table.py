"""Tables of shapes for the distance kernels, with support functions that do not use these kernels."""

from __future__ import annotations

import numpy as np

from mechanik.kernels.distance.collision_layout import (  # fmt: skip
    BOX,
    CAPSULE,
    CYLINDER,
    HALF_SPACE,
    HEIGHT_FIELD,
    HULL,
    SPHERE,
    Shape,
)
from mechanik.spatial import rotation
from mechanik.tiers import kernel_module

WIDE, NARROW = 1.0, 0.25
"""Largest coordinate of random shapes, m: with WIDE most are separated, with NARROW most overlap."""


def units(N):
    return N / np.linalg.norm(N, axis=-1, keepdims=True)


def random_rotation(rng):
    return rotation.nearest(rng.normal(size=(3, 3)))


class Table:
    def __init__(self):
        self.S, self.X, self.P, self.rows = [], [], [np.zeros((1, 3))], 1

    def add(self, kind, *size, points=None, R=None, p=(0.0, 0.0, 0.0)):
        if points is not None:
            size = (self.rows, len(points)) if kind == HULL else (self.rows, *size)
            self.P.append(np.asarray(points, float).reshape(-1, 3))
            self.rows += len(self.P[-1])
        shape = Shape.allocate()
        shape.kind, shape.sizes[: len(size)] = kind, size
        self.S.append(shape)
        self.X.append(np.concatenate([np.ravel(np.eye(3) if R is None else R), p]))
        return len(self.S) - 1

    def add_height_field(self, heights, size, bottom, R=None, p=(0.0, 0.0, 0.0)):
        """Add a field, as `HeightField`: heights (rows along y, columns along x)."""
        rows, columns = np.shape(heights)
        x, y = np.meshgrid(np.linspace(-0.5, 0.5, columns) * size[0], np.linspace(-0.5, 0.5, rows) * size[1])
        points = np.stack([x, y, heights], axis=-1).reshape(-1, 3)
        return self.add(HEIGHT_FIELD, columns - 1, rows - 1, points=[*points, (bottom, 0, 0)], R=R, p=p)

    def add_random(self, kind, rng, spread=WIDE):
        R, p = random_rotation(rng), rng.uniform(-spread, spread, 3)
        if kind == HULL:
            return self.add(HULL, points=rng.uniform(-0.5, 0.5, (rng.integers(4, 30), 3)), R=R, p=p)
        return self.add(kind, *rng.uniform(0.1, 0.6, 3), R=R, p=p)

    def distances(self, pairs, X=None):
        S, P = np.array([shape.numbers for shape in self.S]), np.concatenate(self.P)
        X = np.array(self.X if X is None else X, float)
        pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        results = np.full((len(pairs), 10), np.nan)
        kernel_module("distance.shape_distance").pair_distances(S, P, X, pairs, results)
        return results

    def points(self, i):
        first, count, _ = self.S[i].sizes.astype(int)
        return np.concatenate(self.P)[first : first + count]

    def reach(self, i, N):
        """The support function of shape i along unit vectors N (..., 3) of the world, from the origin."""
        R, p = self.X[i][:9].reshape(3, 3), self.X[i][9:]
        D, kind, (a, b, c) = N @ R, self.S[i].kind, self.S[i].sizes
        if kind == SPHERE:
            support = np.full(np.shape(N)[:-1], a)
        elif kind == CAPSULE:
            support = a + b * np.abs(D[..., 2])
        elif kind == BOX:
            support = np.abs(D) @ np.array([a, b, c])
        elif kind == CYLINDER:
            support = a * np.hypot(D[..., 0], D[..., 1]) + b * np.abs(D[..., 2])
        else:
            support = (D @ self.points(i).T).max(axis=-1)
        return support + N @ p

    def separating_translation(self, i, j, N):
        """The translation of shape j along unit vectors N that separates it from shape i."""
        return self.reach(i, N) + self.reach(j, -N)


def random_pairs(kinds, rng, count, spread=WIDE):
    table = Table()
    return table, [tuple(table.add_random(kind, rng, spread) for kind in kinds) for _ in range(count)]


def check_form(results):
    """Check that results are finite, with unit normals and b - a = d n."""
    assert np.isfinite(results).all()
    d, n, a, b = results[:, 0], results[:, 1:4], results[:, 4:7], results[:, 7:]
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(b - a, d[:, None] * n, atol=1e-12)


__all__ = ["BOX", "CAPSULE", "CYLINDER", "HALF_SPACE", "HEIGHT_FIELD", "HULL", "NARROW", "SPHERE", "WIDE", "Table"]
__all__ += ["check_form", "random_pairs", "random_rotation", "units"]
