"""Random pairs of shapes, regular and degenerate, and proofs of the distances between them.

A distance can be proven without another library. The normal n gives a lower bound: how far the shapes are apart along
n, by their support functions. The two points give an upper bound if they lie on the shapes. If both agree, that is the
gap of shapes that are apart; for overlapping shapes it is a separating translation, the shortest one if no other
direction is better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.kernels.distance.collision_layout import (
    BOX,
    CAPSULE,
    CYLINDER,
    HALF_SPACE,
    HEIGHT_FIELD,
    HULL,
    SPHERE,
    Shape,
)
from mechanik.kernels.tables import RecordArray
from mechanik.tiers import kernel_module

Array = np.ndarray
Shapes = RecordArray[Shape]
NAMES = {
    SPHERE: "sphere", CAPSULE: "capsule", BOX: "box", HALF_SPACE: "half-space",
    CYLINDER: "cylinder", HULL: "hull", HEIGHT_FIELD: "field",
}  # fmt: skip
TURNS = ("free", "near", "grid")
PLACES = ("free", "grid", "tiny", "same", "far")


@dataclass(frozen=True)
class Pairs:
    """Shape k against shape n + k, for k < n."""

    S: Shapes
    """2 n shapes, of which only kinds, sizes and bounding spheres are set"""
    P: Array
    X: Array
    """(2 n, 12), R row by row and p"""

    @property
    def count(self) -> int:
        return len(self.S) // 2

    @property
    def size(self) -> Array:
        """(n,) metres, about how large a pair is with the distance between: the scale of rounding errors."""
        radius = self.S.column(Shape.radius)
        n, finite = self.count, np.where(np.isfinite(radius), radius, 0.0)
        return finite[:n] + finite[n:] + np.linalg.norm(self.X[:n, 9:], axis=1) + np.linalg.norm(self.X[n:, 9:], axis=1)

    def gaps(self, swapped: bool = False) -> Array:
        """(n, 10): d, n, a, b."""
        first = np.arange(self.count)
        pairs = np.stack([first, first + self.count], axis=1)
        out = np.full((self.count, 10), np.nan)
        kernel_module("distance.shape_distance").pair_distances(
            self.S.rows, self.P, self.X, pairs[:, ::-1].copy() if swapped else pairs, out
        )
        return out

    def moved(self, rows: slice, R: Array, p: Array) -> Pairs:
        """With some of the shapes turned by R about the world's origin and shifted by p, both (n, ...) or alone."""
        X = self.X.copy()
        X[rows, :9] = (R @ X[rows, :9].reshape(-1, 3, 3)).reshape(-1, 9)
        X[rows, 9:] = np.einsum("...ij,...j->...i", R, X[rows, 9:]) + p
        return Pairs(self.S, self.P, X)


def as_shapes(rows: Array) -> Shapes:
    """The rows (n, Shape.size) as shapes."""
    return RecordArray(Shape, rows.reshape(-1))


def random_pairs(
    rng: np.random.Generator, kind: int, other_kind: int, count: int, turns: str = "free", places: str = "free",
    zeros: bool = False,
) -> Pairs:  # fmt: skip
    """Pairs about as large as a metre.

    Args:
        turns: "free"; "near" parallel to each other, by 1e-17 to 1 rad; "grid": by quarter and third turns.
        places: "free"; "grid": by multiples of 0.25 m, so that some touch; "tiny": 1e-18 to 1e-3 m apart; "same": the
            same centre; "far": some 100 m apart.
        zeros: half of all sizes are 0.
    """
    n = 2 * count
    S = Shape.allocate_rows(n)
    S.column(Shape.kind)[:count], S.column(Shape.kind)[count:] = kind, other_kind
    sizes = rng.integers(1, 4, (n, 3)) * 0.25 if turns == "grid" else rng.uniform(0.05, 0.6, (n, 3))
    S.column(Shape.sizes)[:] = sizes * (rng.random((n, 3)) < 0.5) if zeros else sizes
    R = {"free": free_turns, "near": near_turns, "grid": grid_turns}[turns](rng, n)
    p = np.zeros((n, 3)) if turns == "grid" else rng.uniform(-1.0, 1.0, (n, 3))
    shift = {
        "free": lambda: rng.uniform(-1.0, 1.0, (count, 3)),
        "grid": lambda: rng.integers(-4, 5, (count, 3)) * 0.25,
        "tiny": lambda: rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-18.0, -3.0, (count, 1)),
        "same": lambda: np.zeros((count, 3)),
        "far": lambda: rng.normal(size=(count, 3)) * 100.0,
    }[places]()
    if turns == "near":
        base = free_turns(rng, count)
        R[:count], R[count:] = base, base @ R[count:]
        shift = np.einsum("nij,nj->ni", base, shift)
    p[count:] = p[:count] + shift
    P = add_points(rng, S)
    add_balls(S, P)
    return Pairs(S, P, np.concatenate([R.reshape(n, 9), p], axis=1))


def add_points(rng: np.random.Generator, S: Shapes, pool: int = 32, corners: int = 12, cells: int = 5) -> Array:
    """Give each hull and field one of a few sets of points, drawn by chance; all points (m, 3)."""
    P: list[Array] = [np.zeros((1, 3))]
    for kind in (HULL, HEIGHT_FIELD):
        rows = np.flatnonzero(S.column(Shape.kind) == kind)
        if not len(rows):
            continue
        starts = []
        for _ in range(pool):
            starts.append(sum(map(len, P)))
            if kind == HULL:
                points = rng.normal(size=(corners, 3))
                P.append(points / np.linalg.norm(points, axis=1)[:, None] * rng.uniform(0.1, 0.5, 3))
            else:
                x, y = np.meshgrid(np.linspace(-0.5, 0.5, cells + 1), np.linspace(-0.4, 0.4, cells + 1))
                P.append(np.stack([x, y, rng.uniform(0.0, 0.3, x.shape)], axis=2).reshape(-1, 3))
                P.append(np.array([[-0.2, 0.0, 0.0]]))
        sizes = S.column(Shape.sizes)
        sizes[rows, 0] = rng.choice(starts, len(rows))
        sizes[rows, 1:] = (corners, 0.0) if kind == HULL else (cells, cells)
    return np.concatenate(P)


def add_balls(S: Shapes, P: Array) -> None:
    """The ball about each shape."""
    x, y, z = S.column(Shape.sizes).T
    radius = np.select(
        [S.column(Shape.kind) == kind for kind in (SPHERE, CAPSULE, BOX, HALF_SPACE, CYLINDER)],
        [x, x + y, np.sqrt(x * x + y * y + z * z), np.full(len(S), np.inf), np.sqrt(x * x + y * y)],
        np.linalg.norm(P, axis=1).max(),
    )
    S.column(Shape.centre)[:], S.column(Shape.radius)[:] = 0.0, radius


def as_prisms(pairs: Pairs) -> tuple[Pairs, int]:
    """Each pair whose second shape is a height field as pairs with its prisms, hulls below each triangle.

    Returns:
        the pairs, those that belong together one after the other, and how many belong together.
    """
    n, cells, first_points = pairs.count, int(pairs.S[-1].sizes[1]), pairs.S.column(Shape.sizes)[pairs.count :, 0]
    starts, P = np.unique(first_points), []
    for start in starts.astype(int):
        bottom = pairs.P[start + (cells + 1) ** 2, 0]
        for row, column in np.ndindex(cells, cells):
            a = start + row * (cells + 1) + column
            b, c, d = a + 1, a + cells + 2, a + cells + 1
            for triangle in ((a, b, c), (a, c, d)):
                top = pairs.P[list(triangle)]
                P.append(np.concatenate([top, np.column_stack([top[:, :2], np.full(3, bottom)])]))
    count = 2 * cells * cells
    field = np.searchsorted(starts, first_points)
    second = as_shapes(np.repeat(pairs.S.rows[n:], count, axis=0))
    second.column(Shape.kind)[:] = HULL
    sizes = second.column(Shape.sizes)
    sizes[:, 0] = 6 * (count * np.repeat(field, count) + np.tile(np.arange(count), n))
    sizes[:, 1:] = 6, 0
    first, X = np.repeat(pairs.S.rows[:n], count, axis=0), np.repeat(pairs.X.reshape(2, n, 12), count, axis=1)
    if pairs.S[0].kind == HULL:  # the first shape's points come after those of the prisms
        as_shapes(first).column(Shape.sizes)[:, 0] += 6 * len(P)
    return Pairs(
        as_shapes(np.concatenate([first, second.rows])), np.concatenate([*P, pairs.P]), X.reshape(-1, 12)
    ), count


def free_turns(rng: np.random.Generator, n: int) -> Array:
    return of_quaternions(rng.normal(size=(n, 4)))


def near_turns(rng: np.random.Generator, n: int) -> Array:
    """By 1e-17 to 1 rad, some about an axis alone."""
    q = rng.normal(size=(n, 4)) * 10.0 ** rng.uniform(-17.0, 0.0, (n, 1))
    q[:, 0] = 1.0
    q[rng.random(n) < 0.3, 1:3] = 0.0
    q[rng.random(n) < 0.3, 3] = 0.0
    return of_quaternions(q)


def grid_turns(rng: np.random.Generator, n: int) -> Array:
    q = rng.integers(-1, 2, (n, 4)).astype(float)
    q[(q == 0.0).all(axis=1)] = (1.0, 0.0, 0.0, 0.0)
    return of_quaternions(q)


def of_quaternions(q: Array) -> Array:
    """(n, 3, 3)."""
    w, x, y, z = (q / np.linalg.norm(q, axis=1)[:, None]).T
    return np.stack([
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ], axis=1).reshape(-1, 3, 3)  # fmt: skip


def separation(pairs: Pairs, n: Array) -> Array:
    """(k,) how far the shapes are apart along the unit vectors n (k, 3): a lower bound of the gap; not for fields."""
    k = pairs.count
    return -reach(pairs, slice(0, k), n) - reach(pairs, slice(k, 2 * k), -n)


def differing(pairs: Pairs, ours: Array, theirs: Array, by: float = 1e-9) -> tuple[Array, Array, Array]:
    """Which distances of two results (k, 4+), d and n, differ `by` metres, and which of ours and of theirs are refuted.

    A gap is refuted if the shapes are nearer along its own normal, or farther apart along the other one.
    """
    d, e = ours[:, 0], theirs[:, 0]
    along, along_theirs = (np.where(is_unit(n), separation(pairs, n), -np.inf) for n in (ours[:, 1:4], theirs[:, 1:4]))
    wrong = (along < d - by) | (along_theirs > d + by) | ~np.isfinite(d)
    theirs_wrong = (along_theirs < e - by) | (along > e + by) | ~np.isfinite(e)
    return ~(np.abs(d - e) <= by), wrong, theirs_wrong


def is_unit(n: Array) -> Array:
    return np.abs(np.linalg.norm(n, axis=1) - 1.0) < 1e-9


def reach(pairs: Pairs, rows: slice, n: Array) -> Array:
    """(k,) the largest n . x over the points x of each shape."""
    size, X = pairs.S.column(Shape.sizes)[rows], pairs.X[rows]
    m = np.einsum("nji,nj->ni", X[:, :9].reshape(-1, 3, 3), n)
    kind = pairs.S[rows.start or 0].kind
    if kind == SPHERE:
        top = size[:, 0]
    elif kind == CAPSULE:
        top = size[:, 0] + size[:, 1] * np.abs(m[:, 2])
    elif kind == BOX:
        top = (size * np.abs(m)).sum(axis=1)
    elif kind == HALF_SPACE:
        top = np.where(np.linalg.norm(m[:, :2], axis=1) < 1e-12, 0.0, np.inf)  # a bound along its own normal alone
    elif kind == CYLINDER:
        top = size[:, 0] * np.linalg.norm(m[:, :2], axis=1) + size[:, 1] * np.abs(m[:, 2])
    else:
        count = int(size[0, 1])
        points = pairs.P[size[:, :1].astype(int) + np.arange(count)]
        top = np.einsum("nij,nj->ni", points, m).max(axis=1)
    return top + np.einsum("ni,ni->n", X[:, 9:], n)


def off_surface(pairs: Pairs, rows: slice, x: Array) -> Array:
    """(k,) the signed distance of the points x (k, 3) from each shape; for the kinds up to HALF_SPACE."""
    size, X = pairs.S.column(Shape.sizes)[rows], pairs.X[rows]
    y = np.einsum("nji,nj->ni", X[:, :9].reshape(-1, 3, 3), x - X[:, 9:])
    kind = pairs.S[rows.start or 0].kind
    if kind == SPHERE:
        return np.linalg.norm(y, axis=1) - size[:, 0]
    if kind == CAPSULE:
        y[:, 2] -= np.clip(y[:, 2], -size[:, 1], size[:, 1])
        return np.linalg.norm(y, axis=1) - size[:, 0]
    if kind == BOX:
        e = np.abs(y) - size
        return np.where((e > 0.0).any(axis=1), np.linalg.norm(np.maximum(e, 0.0), axis=1), e.max(axis=1))
    return y[:, 2]
