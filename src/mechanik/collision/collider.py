"""A mechanism and what it must not bump into, prepared for many configurations."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik.collision.avoiding import Avoid, read_avoid, read_pairs
from mechanik.collision.body import Meshes, link_bodies, obstacle_bodies
from mechanik.collision.clash import Clash
from mechanik.collision.keeping import Keeping, keep_apart
from mechanik.collision.obstacle import Obstacle
from mechanik.collision.pairs import Pair
from mechanik.collision.tables import Ints, Tables, kernel
from mechanik.errors import DuplicateName, NotFinite, ShapeError, UnknownName, WrongKind
from mechanik.kernels.distance import watch_layout as at
from mechanik.mechanism.door import as_number, read_only
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import REFUSALS, Mechanism
from mechanik.spatial import Pose
from mechanik.spatial.array import Array, ArrayLike

NO_MORE = np.empty((0, 0, 0))


class Collider:
    """Tells for any configuration what is how near to what. Calls from several threads at once are fine.

    Gaps are in metres, below zero how deep two bodies are in each other. Nothing that stands still is checked against
    anything else that does. Edits of the mechanism's joints and links are noticed; shapes that links get after the
    collider was made are not.

    Args:
        mechanism: whose links have shapes (`Link.collisions`); it is not moved.
        avoid: "self" (links against each other) and obstacles, which every link is kept off.
        allow: pairs of names, of links or obstacles, that may touch.
        forbid: pairs that are checked although they would be left out, as neighbours are.
        meshes: what stands for the meshes of links: "exact" their convex hulls, "fitted" capsules about them, "auto"
            hulls where they can be had.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        avoid: Avoid = ("self",),
        *,
        allow: Iterable[tuple[str, str]] = (),
        forbid: Iterable[tuple[str, str]] = (),
        meshes: Meshes = "auto",
    ) -> None:
        if not isinstance(mechanism, Mechanism):
            raise WrongKind(f"a collider looks after a mechanism, not {mechanism!r}")
        if meshes not in ("auto", "exact", "fitted"):
            raise UnknownName("way to take meshes", meshes, ("auto", "exact", "fitted"))
        self.mechanism = mechanism
        avoided = read_avoid(avoid, mechanism.links)
        self._itself = avoided.itself
        self._meshes: Meshes = meshes
        self._obstacles = {one.name: one for one in avoided.obstacles}
        self._standing = {one.name: one for one in obstacle_bodies(avoided.obstacles, meshes)}
        known = [*mechanism.links, *self._obstacles]
        self._allow = self._by_link(read_pairs(allow, known, "allow"))
        self._forbid = self._by_link(read_pairs(forbid, known, "forbid"))
        self._lock = threading.RLock()
        self.version = 0
        """How often an obstacle was moved."""
        self._prepare()

    def __repr__(self) -> str:
        bodies, pairs = len(self.bodies), len(self.pairs)
        return f"<collider of {self.mechanism.name!r}: {bodies} bodies, {pairs} pairs, {len(self.row_names)} rows>"

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()
        self._prepare()

    # ---- what is looked at ------------------------------------------------------------------

    @property
    def bodies(self) -> tuple[str, ...]:
        """Links that have shapes, then obstacles."""
        return self._fresh().bodies

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """All obstacles, where they stand now, each with a name."""
        return tuple(self._obstacles.values())

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Every pair of bodies that is checked."""
        return self._fresh().pairs

    @property
    def row_names(self) -> tuple[str, ...]:
        """What each of the `rows` is about: `hand - world 1` is about the nearest of what stands still."""
        return self._fresh().row_names

    @property
    def left_out(self) -> dict[tuple[str, str], str]:
        """Pairs of links that are not checked, each with the reason."""
        return dict(self._fresh().left_out)

    @property
    def revision(self) -> tuple[int, ...]:
        """That of the mechanism when it was last prepared."""
        self._fresh()
        return self._revision

    def asked(self) -> tuple[object, ...]:
        """All that answers depend on: arrays, and names of bodies and pairs."""
        keeping = self._fresh()
        return (*keeping.tables.arrays, keeping.bodies, keeping.pairs)

    # ---- questions --------------------------------------------------------------------------

    def is_free(self, q: ArrayLike, clearance: float = 0.0) -> bool | npt.NDArray[np.bool_]:
        """Whether no pair is nearer than `clearance`; stops at the first that is.

        Args:
            q: (..., nq).
            clearance: m; what just touches is free at 0.
        Returns:
            one bool for one q, else (...).
        """
        try:  # the shortest way; the kernel refuses what is not a finite float64 (nq,)
            if q.ndim == 1 and Frame.edits == self._edits:  # type: ignore[union-attr]
                one, out = q.reshape(1, -1), np.empty((1, 1))  # type: ignore[union-attr]
                if kernel.watch(*self._keeping.arrays, one, at.IS_FREE, clearance, out, NO_MORE, np.zeros(1, int)) == 1:
                    return bool(out[0, 0])
        except REFUSALS:
            pass
        rows, leading = self._door(q)
        out = self._ask(rows, at.IS_FREE, as_number(clearance, "clearance"))[:, 0] == 1.0
        return out.reshape(leading) if leading else bool(out[0])

    def distance(self, q: ArrayLike) -> float | Array:
        """The smallest gap of all pairs, m; infinite if there are no pairs.

        Args:
            q: (..., nq).
        Returns:
            one number for one q, else (...).
        """
        rows, leading = self._door(q)
        out = self._ask(rows, at.SMALLEST, math.inf)[:, 0]
        return out.reshape(leading) if leading else float(out[0])

    def clashes(self, q: ArrayLike, clearance: float = 0.0) -> tuple[Clash, ...]:
        """Every pair of bodies that is nearer than `clearance` at q (nq,), the deepest first."""
        return self._near(self._one(q), as_number(clearance, "clearance"))

    def nearest(self, q: ArrayLike, count: int = 1) -> tuple[Clash, ...]:
        """The `count` pairs of bodies with the smallest gaps at q (nq,), the smallest first; all if there are fewer."""
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ShapeError(f"count is how many pairs are wanted, 1 or more, not {count!r}")
        rows = self._one(q)
        smallest = float(self._ask(rows, at.SMALLEST, math.inf)[0, 0])
        count = min(int(count), self._fresh().count)
        if not count:
            return ()
        # look a little farther each time: most bodies are far away, and each pair that is measured takes its time
        limit, step = smallest + 1e-9, max(abs(smallest), 0.01)
        while len(found := self._near(rows, limit)) < count:
            limit, step = (limit + step, 4 * step) if step < 1e12 else (math.inf, step)
        return found[:count]

    def rows(self, q: ArrayLike, reach: float = math.inf) -> tuple[Array, Array]:
        """The gaps of all guards, and how they change with each freedom: what a solver keeps above a clearance.

        A guard is a moving link and all that stands still, with rows for the nearest three bodies; or two links. (If
        there are very many pairs of links: a link and all others, with rows for the nearest three.) The number of
        rows never changes.

        Args:
            q: (..., nq).
            reach: m; gaps larger than that are given as `reach`, with derivatives of zero, and take no time.
        Returns:
            (..., m) gaps and (..., m, nv) their derivatives by v.
        """
        limit = as_number(reach, "reach", infinite=True)
        rows, leading = self._door(q)
        arrays, m, nv = self._fresh().arrays, len(self._keeping.row_names), self.mechanism.nv
        out, slopes = np.empty((len(rows), m)), np.empty((len(rows), m, nv))
        self._watch(arrays, rows, at.ALL_ROWS, limit, out, slopes)
        return out.reshape(*leading, m), slopes.reshape(*leading, m, nv)

    def measured(self, q: ArrayLike) -> int:
        """How many pairs of shapes are measured to find `distance` at q (nq,); bounds rule out the rest."""
        tally = np.zeros(1, np.int64)
        self._watch(self._fresh().arrays, self._one(q), at.SMALLEST, math.inf, np.empty((1, 1)), NO_MORE, tally)
        return int(tally[0])

    # ---- obstacles --------------------------------------------------------------------------

    def move(self, name: str, pose: Pose | ArrayLike) -> None:
        """Put an obstacle elsewhere.

        Args:
            pose: X_world_obstacle, (4, 4), or a `Pose`.
        """
        where = pose if isinstance(pose, Pose) else Pose.from_matrix(pose)
        with self._lock:
            if name not in self._obstacles:
                raise UnknownName("obstacle", name, self._obstacles)
            self._fresh()
            body = replace(self._standing[name], frame=where.matrix)
            self._standing = {**self._standing, name: body}
            self._obstacles = {**self._obstacles, name: self._obstacles[name].moved_to(where)}
            self._keeping = self._keeping.with_body(body)  # as a whole: other threads see either the old or the new
            self.version += 1

    # ---- inside -----------------------------------------------------------------------------

    def _prepare(self) -> None:
        edits, revision = Frame.edits, self.mechanism.revision
        for name in self._obstacles:
            if name in self.mechanism.links:  # a link that was renamed; `move` could not tell them apart
                raise DuplicateName(f"an obstacle and a link are both called {name!r}; rename the link")
        links = link_bodies(self.mechanism, self._meshes)
        allow, forbid = self._by_name(self._allow), self._by_name(self._forbid)
        self._keeping: Keeping = keep_apart(
            self.mechanism, links, tuple(self._standing.values()), self._itself, allow, forbid
        )
        self._edits, self._revision = edits, revision  # last: what cannot be prepared is refused again at each question

    def _by_link(self, pairs: set[Pair]) -> list[tuple[Link | str, Link | str]]:
        """Pairs that follow when a link is renamed; obstacles stay names."""
        links = self.mechanism.links
        return [(links.get(a, a), links.get(b, b)) for a, b in pairs]

    def _by_name(self, pairs: list[tuple[Link | str, Link | str]]) -> set[Pair]:
        """The other way round; pairs with a link that is gone are gone."""
        names: dict[Link | str, str] = {link: name for name, link in self.mechanism.links.items()}
        names |= {name: name for name in self._obstacles}
        return {(names[a], names[b]) for a, b in pairs if a in names and b in names}

    def _fresh(self) -> Keeping:
        """What is looked at, prepared anew if the mechanism was edited."""
        if Frame.edits != self._edits:
            with self._lock:
                if self._revision != self.mechanism.revision:
                    self._prepare()
                self._edits = Frame.edits
        return self._keeping

    def _door(self, q: ArrayLike) -> tuple[Array, tuple[int, ...]]:
        return self.mechanism.kinematics._rows(q)

    def _one(self, q: ArrayLike) -> Array:
        return np.array(self.mechanism._one(q)[None])

    def _ask(self, rows: Array, mode: int, limit: float) -> Array:
        out = np.empty((len(rows), 1))
        self._watch(self._fresh().arrays, rows, mode, limit, out, NO_MORE)
        return out

    def _watch(
        self, arrays: tuple[npt.NDArray[Any], ...], rows: Array, mode: int, limit: float, out: Array, more: Array,
        tally: Ints | None = None,
    ) -> None:  # fmt: skip
        tally = np.zeros(1, np.int64) if tally is None else tally
        if kernel.watch(*arrays, rows, mode, limit, out, more, tally) < 0:
            self.mechanism.space.check_q(rows)
            raise NotFinite("a link is nowhere, although q is finite: a length of the mechanism is too large")

    def _near(self, rows: Array, limit: float) -> tuple[Clash, ...]:
        tables: Tables = self._fresh().tables
        found = tables.near_pairs(rows, limit)
        return tuple(self._clash(tables, row) for row in found[np.argsort(found[:, 1 + at.GAP], kind="stable")])

    def _clash(self, tables: Tables, row: Array) -> Clash:
        a, b = tables.members[int(row[0])], tables.members[int(row[1 + at.PARTNER])]
        normal, point_a, point_b = (read_only(row[1 + k : 4 + k].copy()) for k in (at.NORMAL, at.POINT_A, at.POINT_B))
        return Clash(a.name, b.name, float(row[1 + at.GAP]), point_a, point_b, normal)
