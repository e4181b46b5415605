"""Joint-space paths: waypoints of a mechanism with straight segments between them, and their loop closure errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mechanik.errors import InvalidArgument, NotFinite, ShapeError
from mechanik.model import Mechanism
from mechanik.objectives.constraint_relations import closure_relations
from mechanik.objectives.relation import MIN_AXIS_SINE, Relation, RelationKind
from mechanik.solver import Solver
from mechanik.spatial import quaternion, rotation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number, format_count, read_only

if TYPE_CHECKING:
    from mechanik.collision import Collider


def max_closure_errors(mechanism: Mechanism, q: Array) -> Array:
    """Largest absolute residual (N,) of the closures at each configuration of q (N, nq), m or rad; 0 without loops."""
    errors = np.zeros(len(q))
    if not mechanism.closures:
        return errors
    X_world = dict(zip(mechanism.links, np.moveaxis(mechanism.poses(q), 1, 0), strict=True))
    for closure in mechanism.closures.values():
        for relation in closure_relations(mechanism, closure):
            errors = np.maximum(errors, np.abs(_closure_residual(relation, X_world)).max(axis=1, initial=0.0))
    return errors


def _closure_residual(relation: Relation, X_world: Mapping[str, Array]) -> Array:
    """Residual (N, rows) of a closure relation at N configurations, as `relation.py` defines it.

    Args:
        X_world: poses (N, 4, 4) of the links in the world, by link name.
    """
    X_world_a, X_world_b = (
        X_link if link is None else X_world[link] @ X_link
        for link, X_link in ((relation.a, relation.X_a), (relation.b, relation.X_b))
    )
    R_world_a, R_world_b, offset = (
        X_world_a[..., :3, :3],
        X_world_b[..., :3, :3],
        X_world_b[..., :3, 3] - X_world_a[..., :3, 3],
    )
    R_a_world = np.swapaxes(R_world_a, -1, -2)
    R_world_axes = relation.world_axes
    R_axes_world, R_relative = (
        (R_a_world, R_a_world @ R_world_b)
        if R_world_axes is None
        else (R_world_axes.T, R_world_axes.T @ R_world_b @ R_a_world @ R_world_axes)
    )
    position = (R_axes_world @ offset[..., None])[..., 0]
    if relation.kind is RelationKind.COSINE:
        return R_relative[..., 2, 2, None]
    angles = rotation.log(R_relative) if relation.kind is RelationKind.POSE else _tilt_xy(R_relative[..., :, 2])
    return np.concatenate([position, angles], axis=-1)[..., list(relation.rows)]


def _tilt_xy(u: Array) -> Array:
    """x and y (N, 2) of unit vectors u (N, 3), scaled so that their norm is the angle between u and the z axis, rad."""
    sine = np.hypot(u[..., 0], u[..., 1])[..., None]
    angle = np.arctan2(sine, u[..., 2:])
    near_axis_tilt = np.where(u[..., 2:] > 0.0, u[..., :2], angle * np.array([1.0, 0.0]))
    return np.where(sine < MIN_AXIS_SINE, near_axis_tilt, angle * u[..., :2] / np.maximum(sine, MIN_AXIS_SINE))


COLLISION_CHECK_STEP = 0.02
"""rad or m: largest change of a dof between two consecutive collision checks along a path."""


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Path:
    """A joint-space path: waypoints with straight segments between them.

    Configurations between two waypoints are projected so that loops are closed and joint constraints are met.

    Attributes:
        mechanism: the mechanism of the waypoints; the path does not move it.
        q: (N, nq) waypoints, N of 1 or more; read-only.
        s: (N,) parameter of each waypoint: seconds or another quantity, strictly increasing; read-only.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.4])
        >>> path = mk.Path(arm, [[0.0, 0.0], [1.0, 0.5], [1.0, 1.0]])
        >>> path.at(0.25).tolist()
        [0.5, 0.25]
        >>> path.largest_step
        1.0
    """

    mechanism: Mechanism
    q: Array
    s: Array
    _solver_cache: dict[str, Solver] = field(default_factory=dict[str, Solver])

    def __init__(self, mechanism: Mechanism, q: ArrayLike, s: ArrayLike | None = None) -> None:
        """Validate and copy the waypoints; quaternions are normalized.

        Args:
            mechanism: the mechanism of the configurations.
            q: (N, nq) waypoints.
            s: (N,), strictly increasing; by default evenly spaced from 0 to 1.

        Raises:
            InvalidArgument: `mechanism` is not a `Mechanism`.
            ShapeError: `q` or `s` has a wrong shape, or `s` does not increase strictly.
            NotFinite: `q` or `s` is not finite.
            NotARotation: a quaternion in `q` is zero.
        """
        if not isinstance(mechanism, Mechanism):
            raise InvalidArgument(f"a path needs a mechanism, not {mechanism!r}")
        values = np.array(mechanism.space.check_q(q))
        if values.ndim != 2 or not len(values):
            raise ShapeError(
                f"q of a path must be (N, {mechanism.nq}) with N of 1 or more, not of shape {values.shape}"
            )
        for k in mechanism.space.quaternions_q:
            values[:, k : k + 4] = quaternion.normalize(values[:, k : k + 4])
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "q", read_only(values))
        object.__setattr__(self, "s", read_only(as_parameters(s, len(values))))
        object.__setattr__(self, "_solver_cache", {})

    def __len__(self) -> int:
        return len(self.q)

    def __repr__(self) -> str:
        parameter_range = f"s from {self.s[0]:g} to {self.s[-1]:g}"
        extent = f"{self.length:.3g} rad and m long, largest step {self.largest_step:.3g} rad or m"
        name, count = self.mechanism.name or "a mechanism", format_count(len(self), "waypoint")
        return f"<path of {name}: {count}, {parameter_range}, {extent}>"

    # ---- configurations ---------------------------------------------------------------------

    def at(self, s: ArrayLike) -> Array:
        """Configurations (..., nq) at s (...): straight between waypoints, with loops closed; constant beyond the ends.

        Raises:
            NotFinite: `s` is not finite.
            NotSolved: loops cannot be closed between two waypoints; closer waypoints may help.
        """
        parameters = np.asarray(s, dtype=np.float64)
        if not np.isfinite(parameters).all():
            raise NotFinite(f"s has an entry that is not finite: {s!r}")
        last_index = len(self.s) - 1
        k = np.clip(np.searchsorted(self.s, parameters, side="right") - 1, 0, max(last_index - 1, 0))
        k_next = np.minimum(k + 1, last_index)
        span = np.where(k_next > k, self.s[k_next] - self.s[k], 1.0)
        share = np.clip((parameters - self.s[k]) / span, 0.0, 1.0)
        space = self.mechanism.space
        q = space.integrate(self.q[k], share[..., None] * space.difference(self.q[k], self.q[k_next]))
        # waypoints are returned exactly; integrating the full difference could round
        q = np.where((share == 0.0)[..., None], self.q[k], np.where((share == 1.0)[..., None], self.q[k_next], q))
        return self._close_loops(q, (share > 0.0) & (share < 1.0))

    def densify(self, step: float = COLLISION_CHECK_STEP) -> Path:
        """Insert waypoints on the straight segments, so that no dof changes by more than `step` between two waypoints.

        Closing the loops and meeting the joint constraints may make a change larger than `step`.

        Args:
            step: rad or m, above 0.

        Raises:
            ShapeError: `step` is not above 0.
            NotSolved: loops cannot be closed between two waypoints.
        """
        max_change = as_number(step, "step")
        if not max_change > 0.0:
            raise ShapeError(f"step must be above 0, not {max_change:g}")
        counts = np.maximum(np.ceil(self.steps / max_change), 1.0).astype(np.int64)
        k = np.repeat(np.arange(len(counts)), counts)
        index_in_segment = np.arange(len(k)) - np.repeat(np.cumsum(counts) - counts, counts)
        s = np.append(self.s[k] + index_in_segment / counts[k] * np.diff(self.s)[k], self.s[-1])
        return Path(self.mechanism, self.at(s), s)

    # ---- measures ---------------------------------------------------------------------------

    @property
    def steps(self) -> Array:
        """Largest change of a dof (N - 1,) from each waypoint to the next, rad or m."""
        return np.abs(self._differences()).max(axis=1, initial=0.0)

    @property
    def largest_step(self) -> float:
        """Largest change of a dof between two consecutive waypoints, rad or m."""
        return float(self.steps.max(initial=0.0))

    @property
    def median_step(self) -> float:
        """Median over all segments of the largest change of a dof, rad or m; 0 for a single waypoint."""
        return float(np.median(self.steps)) if len(self) > 1 else 0.0

    @property
    def length(self) -> float:
        """Sum over all segments of the Euclidean norm of the change of all dofs, rad and m."""
        return float(np.linalg.norm(self._differences(), axis=1).sum())

    def closure_error(self) -> float:
        """Largest absolute residual of the closures at any waypoint, m or rad; 0 without loops."""
        return float(max_closure_errors(self.mechanism, self.q).max())

    def is_free(self, collider: Collider, clearance: float = 0.0, step: float = COLLISION_CHECK_STEP) -> bool:
        """Whether the clearance is kept at all waypoints and at configurations between them, at most `step` apart.

        Args:
            collider: a collider of the same mechanism.
            clearance: m.
            step: rad or m; largest change of a dof between two checks.
        """
        return bool(np.all(collider.is_free(self.densify(step).q, clearance)))

    # ---- internals --------------------------------------------------------------------------

    def _differences(self) -> Array:
        """Changes of all dofs (N - 1, nv) from each waypoint to the next."""
        return self.mechanism.space.difference(self.q[:-1], self.q[1:])

    def _close_loops(self, q: Array, is_between: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Array:
        """Close the loops at the configurations of q (..., nq) that are between two waypoints, in place; return q.

        Args:
            is_between: (...) mask of these configurations.
        """
        if not (self.mechanism.closures or self.mechanism.joint_constraints) or not is_between.any():
            return q
        if "loops" not in self._solver_cache:
            self._solver_cache["loops"] = Solver(self.mechanism)
        solver = self._solver_cache["loops"]
        q[is_between] = [solver.solve(q0=q_start).require().q for q_start in q[is_between]]
        return q


def as_parameters(s: ArrayLike | None, count: int) -> Array:
    """Validate path parameters: (count,), finite, strictly increasing; evenly spaced from 0 to 1 if `s` is None."""
    if s is None:
        return np.linspace(0.0, 1.0, count) if count > 1 else np.zeros(1)
    try:
        values = np.array(s, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"s of a path must be numbers, not {s!r}") from None
    if values.shape != (count,):
        raise ShapeError(f"s of a path must be ({count},), one for each waypoint, not of shape {values.shape}")
    if not np.isfinite(values).all():
        raise NotFinite("s of a path must be finite")
    if not (np.diff(values) > 0.0).all():
        k = int(np.flatnonzero(np.diff(values) <= 0.0)[0])
        raise ShapeError(
            f"s must increase strictly, but s[{k + 1}] = {values[k + 1]:g} is not above s[{k}] = {values[k]:g}"
        )
    return values
