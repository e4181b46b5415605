"""Collision queries for a mechanism and obstacles: `Collider` and `Contact`.

`always_close_pairs` finds the pairs that are closer than a clearance in every sampled configuration, such as links of a
wrist, and `warn_of_always_close_pairs` warns of them.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mechanik.collision.collision_body import MESH_MODES, MeshMode, Obstacle, link_bodies, obstacle_bodies
from mechanik.collision.collision_pairs import (
    Avoid,
    CollisionPairs,
    Pair,
    build_collision_pairs,
    parse_avoid,
    parse_pairs,
    sample_configurations,
)
from mechanik.collision.collision_tables import CollisionTables, Ints, kernel
from mechanik.errors import InvalidArgument, NotFinite, ShapeError, StructureError, UnknownName
from mechanik.kernels.distance.collision_layout import (
    QUERY_ALL_PAIRS,
    QUERY_IS_FREE,
    QUERY_SMALLEST,
    DistanceResult,
)
from mechanik.model.frame import Frame, Link
from mechanik.model.mechanism import KERNEL_ARGUMENT_ERRORS, Mechanism
from mechanik.spatial import Pose
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number, read_only

TOUCH_DISTANCE = 1e-9
"""m; messages say "touches" for a smaller distance or penetration depth."""


@dataclass(frozen=True, slots=True, eq=False)
class Contact:
    """Two bodies with their signed distance, a point on each surface, and the normal.

    If a body has several shapes, all values are those of the two shapes with the smallest distance.

    Attributes:
        a, b: names of links or obstacles; `a` is a link that moves.
        distance: m; negative if the bodies penetrate each other.
        point_a, point_b: (3,), m, points on the surfaces, in the world; point_b - point_a = distance * normal.
        normal: (3,), unit vector from `a` to `b`, in the world; the shape of `b`, moved by -distance along it, touches
            the shape of `a`.

    Example:
        >>> arm = mk.gallery.panda()
        >>> contact = mk.Collider(arm).nearest_pairs(arm.q)[0]
        >>> print(contact)
        'panda_link5' is 12.2 mm from 'panda_link7'
        >>> contact.depth
        0.0
    """

    a: str
    b: str
    distance: float
    point_a: Array
    point_b: Array
    normal: Array

    @property
    def depth(self) -> float:
        """Penetration depth: the shortest translation that separates the two shapes, m; zero if they are apart."""
        return max(0.0, -self.distance)

    def __str__(self) -> str:
        if abs(self.distance) < TOUCH_DISTANCE:
            return f"{self.a!r} touches {self.b!r}"
        return (
            f"{self.a!r} is {_length_text(abs(self.distance))} {'inside' if self.distance < 0 else 'from'} {self.b!r}"
        )


def _length_text(metres: float) -> str:
    return f"{metres:.3g} m" if metres >= 1 else f"{metres * 1e3:.3g} mm"


NO_JACOBIAN = np.empty((0, 0, 0))


class Collider:
    """Collision checker of a mechanism with itself and with obstacles; thread-safe.

    Distances are signed, in m; a negative distance is a penetration depth. Two bodies that do not move are not checked
    against each other. The collider is updated if joints or links of the mechanism change. A change of
    `Link.collisions` or `Mechanism.allowed_collisions` alone is not noticed; it takes effect with the next such update.

    Args:
        mechanism: a mechanism whose links have shapes (`Link.collisions`); its configuration is not changed.
        avoid: "self" (links against each other) and obstacles, which are checked against every link.
        allow: pairs of names, of links or obstacles, that may touch.
        forbid: pairs that are checked even if they would be skipped otherwise, such as adjacent links.
        meshes: shapes that replace the meshes of links and obstacles: "exact": convex hulls (not the mesh itself);
            "fitted": capsules that cover the meshes; "auto": hulls if the extra `collision` is installed, else
            capsules.

    Raises:
        InvalidArgument, UnknownName: an argument has the wrong type, or a name is unknown.
        StructureError: no link has a shape, two bodies have the same name, or a pair is both allowed and forbidden, or
            forbidden and cannot be checked.
        ShapeError: a shape has no volume, or a link that moves has a half-space.
        FormatError: a mesh cannot be read.
        MissingExtra: the extra `collision` is not installed, and `meshes` is "exact" or a mesh file has a type that
            only this extra can read.

    Example:
        >>> arm = mk.gallery.panda()
        >>> cup = mk.Obstacle(mk.Cylinder(0.04, 0.1), (0.5, 0.0, 0.05), name="cup")
        >>> collider = mk.Collider(arm, avoid=["self", cup])
        >>> collider.is_free(arm.q), round(collider.distance(arm.q), 3)
        (True, 0.012)
    """

    def __init__(
        self,
        mechanism: Mechanism,
        avoid: Avoid = ("self",),
        *,
        allow: Iterable[tuple[str, str]] = (),
        forbid: Iterable[tuple[str, str]] = (),
        meshes: MeshMode = "auto",
    ) -> None:
        if not isinstance(mechanism, Mechanism):
            raise InvalidArgument(f"a Collider needs a Mechanism, not {mechanism!r}")
        if meshes not in MESH_MODES:
            raise UnknownName("mesh mode", meshes, MESH_MODES)
        self.mechanism = mechanism
        avoided_objects = parse_avoid(avoid, mechanism.links)
        self._self_collisions = avoided_objects.self_collisions
        self._meshes: MeshMode = meshes
        self._obstacles = {obstacle.name: obstacle for obstacle in avoided_objects.obstacles}
        self._obstacle_bodies = {body.name: body for body in obstacle_bodies(avoided_objects.obstacles, meshes)}
        known_names = [*mechanism.links, *self._obstacles]
        self._allow = self._replace_names_by_links(parse_pairs(allow, known_names, "allow"))
        self._forbid = self._replace_names_by_links(parse_pairs(forbid, known_names, "forbid"))
        self._lock = threading.RLock()
        self.obstacle_version = 0
        """Number of calls of `move` so far."""
        self._prepare()

    def __repr__(self) -> str:
        body_count, pair_count, distance_count = len(self.bodies), len(self.pairs), len(self.distance_names)
        name = self.mechanism.name
        return f"<collider of {name!r}: {body_count} bodies, {pair_count} pairs, {distance_count} distances>"

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()
        self._prepare()

    # ---- bodies and pairs -------------------------------------------------------------------

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the links with shapes, then of the obstacles."""
        return self._current_pairs().bodies

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """All obstacles at their current poses, each with a name."""
        return tuple(self._obstacles.values())

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """All checked pairs of bodies, by name."""
        return self._current_pairs().pairs

    @property
    def distance_names(self) -> tuple[str, ...]:
        """Label of each row of `distances_and_jacobian`.

        For example, `hand - world 1` is the distance between the hand and the nearest body that does not move, and
        `hand - links 2` the second smallest distance to links that move.
        """
        return self._current_pairs().distance_names

    @property
    def allowed_collisions(self) -> dict[tuple[str, str], str]:
        """Pairs of links that are skipped by default, each with the reason; empty without "self" in `avoid`."""
        return dict(self._current_pairs().allowed_collisions)

    @property
    def revision(self) -> tuple[int, ...]:
        """Revision of the mechanism for which the collider is prepared."""
        self._current_pairs()
        return self._revision

    def fingerprint_data(self) -> tuple[object, ...]:
        """Return all data on which the results depend: arrays, and names of bodies and pairs."""
        pairs = self._current_pairs()
        return (*pairs.tables.arrays, pairs.bodies, pairs.pairs)

    # ---- queries ----------------------------------------------------------------------------

    def is_free(self, q: ArrayLike, clearance: float = 0.0) -> bool | npt.NDArray[np.bool_]:
        """Return whether every pair keeps `clearance`; the check stops at the first pair that does not.

        Args:
            q: (..., nq).
            clearance: m; with 0, bodies that touch without penetration are free.

        Returns:
            A bool for one q, else (...).
        """
        try:  # fast path; the kernel accepts only a finite float64 array (nq,)
            if q.ndim == 1 and Frame.edit_count == self._edit_count:  # type: ignore[union-attr]
                row, results = q.reshape(1, -1), np.empty((1, 1))  # type: ignore[union-attr]
                if (
                    kernel.query(
                        *self._collision_pairs.arrays,
                        row,
                        QUERY_IS_FREE,
                        clearance,
                        results,
                        NO_JACOBIAN,
                        np.zeros(1, int),
                    )
                    == 1
                ):
                    return bool(results[0, 0])
        except KERNEL_ARGUMENT_ERRORS:
            pass
        rows, batch_shape = self._configuration_rows(q)
        results = self._query(rows, QUERY_IS_FREE, as_number(clearance, "clearance"))[:, 0] == 1.0
        return results.reshape(batch_shape) if batch_shape else bool(results[0])

    def distance(self, q: ArrayLike) -> float | Array:
        """Return the smallest signed distance of all pairs, m; infinite if there are no pairs.

        Args:
            q: (..., nq).

        Returns:
            A number for one q, else (...).
        """
        rows, batch_shape = self._configuration_rows(q)
        distances = self._query(rows, QUERY_SMALLEST, math.inf)[:, 0]
        return distances.reshape(batch_shape) if batch_shape else float(distances[0])

    def contacts(self, q: ArrayLike, clearance: float = 0.0) -> tuple[Contact, ...]:
        """Return every pair of bodies closer than `clearance` (m) at q (nq,), the deepest first."""
        return self._contacts_within(self._single_row(q), as_number(clearance, "clearance"))

    def nearest_pairs(self, q: ArrayLike, count: int = 1) -> tuple[Contact, ...]:
        """Return the `count` pairs of bodies with the smallest distances at q (nq,), sorted; all pairs if fewer exist.

        Raises:
            ShapeError: `count` is not an integer of 1 or more.
        """
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ShapeError(f"count must be an integer of 1 or more, not {count!r}")
        rows = self._single_row(q)
        smallest = float(self._query(rows, QUERY_SMALLEST, math.inf)[0, 0])
        count = min(int(count), self._current_pairs().pair_count)
        if not count:
            return ()
        # the search distance grows step by step: most bodies are far away, and each measured pair costs time
        max_distance, step = smallest + 1e-9, max(abs(smallest), 0.01)
        while len(contacts := self._contacts_within(rows, max_distance)) < count:
            max_distance, step = (max_distance + step, 4 * step) if step < 1e12 else (math.inf, step)
        return contacts[:count]

    def distances_and_jacobian(self, q: ArrayLike, max_distance: float = math.inf) -> tuple[Array, Array]:
        """Return distances of pairs and their Jacobian, for constraints in a solver.

        Each moving link with shapes has rows for the nearest three bodies that do not move. Each pair of moving links
        has one row; if there are more than 64 such pairs, those with the same first link share rows for the nearest
        three. The number of rows does not depend on q.

        Args:
            q: (..., nq).
            max_distance: m; larger distances are returned as this value, with zero derivatives. A smaller value saves
                time.

        Returns:
            Distances (..., m), in metres, and their derivatives with respect to v (..., m, nv).
        """
        max_distance = as_number(max_distance, "max_distance", allow_infinite=True)
        rows, batch_shape = self._configuration_rows(q)
        arrays, m, nv = self._current_pairs().arrays, len(self._collision_pairs.distance_names), self.mechanism.nv
        distances, jacobians = np.empty((len(rows), m)), np.empty((len(rows), m, nv))
        self._run_query(arrays, rows, QUERY_ALL_PAIRS, max_distance, distances, jacobians)
        return distances.reshape(*batch_shape, m), jacobians.reshape(*batch_shape, m, nv)

    def count_measured_pairs(self, q: ArrayLike) -> int:
        """Return the number of pairs of shapes that `distance` measures at q (nq,); bounds exclude the other pairs."""
        measured_count = np.zeros(1, np.int64)
        self._run_query(
            self._current_pairs().arrays,
            self._single_row(q),
            QUERY_SMALLEST,
            math.inf,
            np.empty((1, 1)),
            NO_JACOBIAN,
            measured_count,
        )
        return int(measured_count[0])

    # ---- obstacles --------------------------------------------------------------------------

    def move(self, name: str, pose: Pose | ArrayLike) -> None:
        """Move an obstacle.

        Args:
            name: name of the obstacle.
            pose: X_world_obstacle, (4, 4), or a `Pose`.

        Raises:
            UnknownName: there is no such obstacle.
            ShapeError, NotFinite, NotARotation: `pose` is not a pose.
        """
        new_pose = pose if isinstance(pose, Pose) else Pose.from_matrix(pose)
        with self._lock:
            if name not in self._obstacles:
                raise UnknownName("obstacle", name, self._obstacles)
            self._current_pairs()
            body = replace(self._obstacle_bodies[name], X_node_body=new_pose.matrix)
            self._obstacle_bodies = {**self._obstacle_bodies, name: body}
            self._obstacles = {**self._obstacles, name: self._obstacles[name].moved_to(new_pose)}
            # replaced in one assignment, since other threads may read the pairs
            self._collision_pairs = self._collision_pairs.with_body(body)
            self.obstacle_version += 1

    # ---- private ----------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Build bodies, pairs and tables for the current mechanism."""
        edit_count, revision = Frame.edit_count, self.mechanism.revision
        for name in self._obstacles:
            if name in self.mechanism.links:  # possible after a link is renamed; names must be unique
                raise StructureError(f"an obstacle and a link are both called {name!r}; rename the link")
        links = link_bodies(self.mechanism, self._meshes)
        allow, forbid = self._replace_links_by_names(self._allow), self._replace_links_by_names(self._forbid)
        self._collision_pairs: CollisionPairs = build_collision_pairs(
            self.mechanism, links, tuple(self._obstacle_bodies.values()), self._self_collisions, allow, forbid
        )
        # assigned last, so that the next query repeats a preparation that failed
        self._edit_count, self._revision = edit_count, revision

    def _replace_names_by_links(self, pairs: set[Pair]) -> list[tuple[Link | str, Link | str]]:
        """Replace link names by links, so that pairs stay valid if a link is renamed; obstacles remain names."""
        links = self.mechanism.links
        return [(links.get(a, a), links.get(b, b)) for a, b in pairs]

    def _replace_links_by_names(self, pairs: list[tuple[Link | str, Link | str]]) -> set[Pair]:
        """Replace links by their current names; pairs with a removed link are dropped."""
        names: dict[Link | str, str] = {link: name for name, link in self.mechanism.links.items()}
        names |= {name: name for name in self._obstacles}
        return {(names[a], names[b]) for a, b in pairs if a in names and b in names}

    def _current_pairs(self) -> CollisionPairs:
        """Return the pairs to check, prepared again if the mechanism was edited."""
        if Frame.edit_count != self._edit_count:
            with self._lock:
                edit_count = Frame.edit_count  # read first: an edit during the comparison is noticed in the next call
                if self._revision != self.mechanism.revision:
                    self._prepare()
                self._edit_count = edit_count
        return self._collision_pairs

    def _configuration_rows(self, q: ArrayLike) -> tuple[Array, tuple[int, ...]]:
        return self.mechanism.kinematics._as_batch(q)

    def _single_row(self, q: ArrayLike) -> Array:
        return np.array(self.mechanism._single_q(q)[None])

    def _query(self, rows: Array, mode: int, max_distance: float) -> Array:
        results = np.empty((len(rows), 1))
        self._run_query(self._current_pairs().arrays, rows, mode, max_distance, results, NO_JACOBIAN)
        return results

    def _run_query(
        self,
        arrays: tuple[npt.NDArray[Any], ...],
        rows: Array,
        mode: int,
        max_distance: float,
        results: Array,
        jacobians: Array,
        measured_count: Ints | None = None,
    ) -> None:
        measured_count = np.zeros(1, np.int64) if measured_count is None else measured_count
        if kernel.query(*arrays, rows, mode, max_distance, results, jacobians, measured_count) < 0:
            self.mechanism.space.check_q(rows)
            raise NotFinite(
                "the pose of a link is not finite, although q is finite; a length of the mechanism is too large"
            )

    def _contacts_within(self, rows: Array, max_distance: float) -> tuple[Contact, ...]:
        tables: CollisionTables = self._current_pairs().tables
        results = sorted(tables.near_pairs(rows, max_distance), key=lambda result: result.distance)
        return tuple(self._contact(tables, result) for result in results)

    def _contact(self, tables: CollisionTables, result: DistanceResult) -> Contact:
        a, b = tables.collision_bodies[result.body], tables.collision_bodies[result.partner]
        normal, point_a, point_b = (
            read_only(vector.copy()) for vector in (result.normal, result.point_a, result.point_b)
        )
        return Contact(a.name, b.name, float(result.distance), point_a, point_b, normal)


ALWAYS_CLOSE_SAMPLES = 200
"""Number of sampled configurations; a pair that is closer than the clearance in all of them is called always close."""

log = logging.getLogger("mechanik")
_checked_clearances = WeakKeyDictionary[Collider, set[float]]()


def always_close_pairs(collider: Collider, clearance: float) -> dict[Pair, float]:
    """Return the pairs closer than `clearance` (m) at every sample, each with its largest distance, m.

    The result is empty without a positive clearance, and for mechanisms with loops or joint constraints: closing their
    loops at many samples takes too long.
    """
    mechanism = collider.mechanism
    if clearance <= 0.0 or mechanism.closures or mechanism.joint_constraints:
        return {}
    largest_distances: dict[Pair, float] | None = None
    for q in sample_configurations(mechanism, ALWAYS_CLOSE_SAMPLES):
        distances = {(contact.a, contact.b): contact.distance for contact in collider.contacts(q, clearance)}
        largest_distances = (
            distances
            if largest_distances is None
            else {
                pair: max(distance, distances[pair])
                for pair, distance in largest_distances.items()
                if pair in distances
            }
        )
        if not largest_distances:
            return {}
    return largest_distances or {}


def warn_of_always_close_pairs(collider: Collider, clearance: float) -> None:
    """Log a warning if a pair is closer than `clearance` (m) at every sample.

    Each clearance of a collider is checked once.
    """
    checked_clearances = _checked_clearances.setdefault(collider, set())
    if clearance in checked_clearances:
        return
    checked_clearances.add(clearance)
    pairs = always_close_pairs(collider, clearance)
    if not pairs:
        return
    max_clearance_mm = math.floor(1e4 * max(min(pairs.values()), 0.0)) / 10
    advice = f"Use a clearance of at most {max_clearance_mm:g} mm, or allow" if max_clearance_mm > 0 else "Allow"
    pair_list = ", ".join(
        f"{a!r} and {b!r} (at most {1e3 * distance:.1f} mm apart)" for (a, b), distance in pairs.items()
    )
    log.warning(
        "a clearance of %.4g mm may be impossible: in each of %d sampled configurations these pairs are closer: %s. "
        "%s the pairs: allow=%r",
        1e3 * clearance, ALWAYS_CLOSE_SAMPLES, pair_list, advice, list(pairs),
    )  # fmt: skip
