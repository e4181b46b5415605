"""Required objectives, loop closures and joint constraints as one residual, for many configurations at once.

A step u has one value per moving dof in scaled units: rad, or lengths divided by the mechanism's size. Lengths in the
residual are scaled too, so one tolerance fits all, and distances between configurations are comparable.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechanik.kernels.nodes import FIRST_Q, NODE_KIND, NODE_RATIO, REVOLUTE
from mechanik.model import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.constraint_relations import (
    closure_limit_relations,
    closure_relations,
    cone_relations,
    joint_constraint_relations,
)
from mechanik.objectives.joint_goals import JointObjective
from mechanik.objectives.objective import length_row_mask
from mechanik.objectives.relation import Relation, RelationKind, band_violation, evaluate_relation, is_band_active
from mechanik.spatial import inverse, rotation
from mechanik.spatial.array import Array

TWO_PI = 2 * np.pi
LIMIT_ROUNDING = 1e-10
"""rad and m; values outside a limit by no more than this are moved onto it."""


def unwrap_angles(angles: Array, near: Array, lower: Array, upper: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Shift angles (k, n) by full rotations as near to `near` (n,) as the limits (n,) allow; all in rad.

    Returns:
        The angles (k, n), and whether all are inside the limits (k,). An angle that has no value inside is shifted to
        the nearest regardless of limits.
    """
    turns = np.round((near - angles) / TWO_PI)
    fewest, most = (
        np.ceil((lower - LIMIT_ROUNDING - angles) / TWO_PI),
        np.floor((upper + LIMIT_ROUNDING - angles) / TWO_PI),
    )
    inside = fewest <= most
    turns = np.where(inside, np.minimum(np.maximum(turns, fewest), most), turns)
    found = angles + TWO_PI * turns
    return np.where(inside, np.clip(found, lower, upper), found), np.asarray(inside.all(axis=-1))


Mask = npt.NDArray[np.bool_]
ROUNDING_RESIDUAL = 1e-13
"""Scaled units; smaller residuals are rounding errors."""
RESIDUAL_TOLERANCE = 1e-9
"""Scaled units; constraints with smaller residuals hold. It is far below the tolerance of any objective."""
DAMPING = 1e-12
"""Damping of Newton's method, so small that it acts only in nearly singular directions."""
NEWTON_STEPS = 14
"""Maximum Newton steps; convergence is quadratic, but only a factor of four per step where two solutions coincide."""
SMALL_ROTATION_RAD = 0.05
"""rad; below about this a rotation is linearised, which does not change where Newton's method ends."""
EYE, AFTER, BEFORE = np.eye(3), [2, 0, 1], [1, 2, 0]
"""Identity, and the row and column indices of the vector part of a skew matrix."""


class ConstraintSystem:
    """Required objectives, closures, joint constraints and limits of a mechanism, as functions of configurations.

    Attributes:
        mechanism: the mechanism.
        size: unit of length, m.
        objectives: the required objectives.
        moving: (n,) indices into v of the dofs that may move.
        columns: (n,) their indices into q; -1 for dofs of spherical joints.
        unit: (n,) joint step per unit of u, rad or m.
        is_angle: (n,) whether full rotations are equivalent.
        lower, upper: (nq,) limits, rad or m.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        objectives: tuple[Objective, ...],
        moving: Mask,
        bounds: tuple[Array, Array],
        size: float,
    ) -> None:
        """Collect the relations.

        Args:
            objectives: all objectives; those that are not required are ignored.
            moving: (nv,) mask of the dofs that may move.
            bounds: lower and upper limits, (nq,) each, rad or m.
            size: unit of length, m.
        """
        self.mechanism, self.size = mechanism, size
        self.objectives = tuple(one for one in objectives if one.required)
        self.lower, self.upper = bounds
        self.moving = np.flatnonzero(moving)
        space = mechanism.space
        column_of = np.full(space.nv, -1)
        column_of[space.scalars_v] = space.scalars_q
        self.columns = column_of[self.moving]
        self.unit = np.where(space.rotates[self.moving], 1.0, size)
        self._relations = [one.relations(mechanism) for one in self.objectives]
        self.is_angle = self._find_angles()
        self._shut = [
            relation
            for closure in mechanism.closures.values()
            for relation in (*closure_relations(mechanism, closure), *closure_limit_relations(mechanism, closure))
        ]
        self._shut += joint_constraint_relations(mechanism).values()
        self._shut += [relation for some in cone_relations(mechanism).values() for relation in some]
        self._pose = self._only_pose()
        self._X_a_world = np.eye(4) if self._pose is None else inverse(self._pose.X_a)
        self._has_balls = bool((self.columns < 0).any())
        self._scalars = self.columns[self.columns >= 0]
        self._turning = self.columns[self.is_angle]
        self._sliding = self.columns[~self.is_angle & (self.columns >= 0)]

    @property
    def n(self) -> int:
        """Number of moving dofs."""
        return len(self.moving)

    # ---- configurations ---------------------------------------------------------------------

    def step(self, q: Array, u: Array) -> Array:
        """Return the configurations (K, nq) at steps `u` (K, n) from `q` (K, nq)."""
        if self._has_balls:
            v = np.zeros((len(q), self.mechanism.nv))
            v[:, self.moving] = u * self.unit
            return self.mechanism.integrate(q, v)
        end = q.copy()
        end[:, self.columns] += u * self.unit
        return end

    def wrapped_difference(self, a: Array, b: Array) -> Array:
        """Return the shortest step u (..., n) from `a` (..., nq) to `b` (..., nq), modulo full rotations of angles."""
        if self._has_balls:
            u = self.mechanism.space.difference(a, b)[..., self.moving] / self.unit
        else:
            u = (b - a)[..., self.columns] / self.unit
        return np.where(self.is_angle, u - TWO_PI * np.round(u / TWO_PI), u)

    def distance(self, a: Array, b: Array) -> Array:
        """Return the distance (...) from `a` to `b` over the moving dofs, rad and m, full rotations included."""
        return np.linalg.norm(self.mechanism.space.difference(a, b)[..., self.moving], axis=-1)

    def unwrap(self, q: Array, near: Array) -> tuple[Array, Mask]:
        """Shift the angles of `q` (K, nq) by full rotations as near to those of `near` (nq,) as the limits allow.

        Returns:
            The configurations (K, nq), and whether they are inside the limits (K,).
        """
        turned, inside = q.copy(), np.ones(len(q), dtype=np.bool_)
        k = self._turning
        if len(k):
            turned[:, k], inside = unwrap_angles(q[:, k], near[k], self.lower[k], self.upper[k])
        k = self._sliding
        if len(k):
            inside = inside & self.are_prismatic_within_limits(q)
            clipped = np.clip(q[:, k], self.lower[k], self.upper[k])
            turned[:, k] = np.where(inside[:, None], clipped, q[:, k])
        return turned, inside

    def are_prismatic_within_limits(self, q: Array) -> Mask:
        """Return whether the values that are not angles are inside their limits, as a mask (K,)."""
        k = self._sliding
        outside = (q[:, k] < self.lower[k] - LIMIT_ROUNDING) | (q[:, k] > self.upper[k] + LIMIT_ROUNDING)
        return np.asarray(~outside.any(axis=1))

    # ---- residual ---------------------------------------------------------------------------

    def residual_and_jacobian(self, q: Array) -> tuple[Array, Array]:
        """Return the residual (K, m) at `q` (K, nq), and its derivatives by u (K, m, n)."""
        return self._rows_one_by_one(q) if self._pose is None else self._rows_of_pose(q, self._pose)

    def project(self, q: Array, fixed: Mask | None = None, steps: int = NEWTON_STEPS) -> tuple[Array, Array]:
        """Project each `q` (K, nq) onto the constraints by Newton's method with least-norm steps, regardless of limits.

        Args:
            fixed: (K, n) mask of dofs that stay.
            steps: maximum number of steps.

        Returns:
            The configurations (K, nq), and the largest remaining residual (K,). A step that increases it is not taken.
        """
        q = q.copy()
        e, J = self.residual_and_jacobian(q)
        error = np.abs(e).max(axis=1, initial=0.0)
        going = error > ROUNDING_RESIDUAL
        for _ in range(steps):
            k = np.flatnonzero(going)
            if not len(k):
                break
            trial = self.step(
                q[k], -least_norm_step(J[k] if fixed is None else np.where(fixed[k, None], 0.0, J[k]), e[k])
            )
            e_trial, J_trial = self.residual_and_jacobian(trial)
            after = np.abs(e_trial).max(axis=1)
            better = after < error[k]
            going[k[~better]] = False
            k, trial = k[better], trial[better]
            q[k], e[k], J[k], error[k] = trial, e_trial[better], J_trial[better], after[better]
            going[k] = error[k] > ROUNDING_RESIDUAL
        return q, error

    def polish(self, q: Array, near: Array) -> tuple[Array, Mask]:
        """Refine `q` (K, nq) to the last digits and unwrap it; return it, and whether constraints and limits hold (K,).

        A joint that the refinement takes beyond a limit is fixed at the limit, and the others are refined again.
        """
        found, error = self.project(q)
        found, inside = self.unwrap(found, near)
        beyond = np.flatnonzero((error < RESIDUAL_TOLERANCE) & ~inside)
        if len(beyond):
            back, _ = self.unwrap(q[beyond], near)
            clipped = np.clip(found[beyond], self.lower, self.upper)
            at = np.zeros((len(beyond), self.n), dtype=np.bool_)
            scalar = self.columns >= 0
            at[:, scalar] = (clipped != found[beyond])[:, self._scalars]
            # a large shift would lead to another solution
            k = np.flatnonzero(np.abs(self.wrapped_difference(back, clipped)).max(axis=1) < 1e-3)
            moved, rest = self.project(clipped[k], at[k])
            moved, within = self.unwrap(moved, near)
            k = k[within]
            found[beyond[k]], error[beyond[k]], inside[beyond[k]] = moved[within], rest[within], True
        return found, inside & (error < RESIDUAL_TOLERANCE)

    def errors(self, q: Array) -> Array:
        """Return the largest position error (m) and rotation error (rad) of the objectives at each `q`, (K, 2)."""
        found = [[one.error(self.mechanism, at) for one in self.objectives] for at in q]
        largest = [[max((e.position for e in row), default=0.0), max((e.rotation for e in row), default=0.0)]
                   for row in found]  # fmt: skip
        return np.array(largest).reshape(len(q), 2)

    def redundancy(self, q: Array, rank_tolerance: float = 1e-6) -> npt.NDArray[np.int64]:
        """Return the number of free dofs at each `q` (K, nq) to first order: n minus the rank of the Jacobian, (K,).

        Args:
            rank_tolerance: singular values below this share of the largest count as zero.
        """
        if not len(q):
            return np.zeros(0, dtype=np.int64)
        J = self.residual_and_jacobian(q)[1]
        if not J.shape[1]:
            return np.full(len(q), self.n)
        sizes = np.linalg.svd(J, compute_uv=False)
        return self.n - (sizes > rank_tolerance * np.maximum(sizes[:, :1], 1e-12)).sum(axis=1)

    # ---- private ----------------------------------------------------------------------------

    def _find_angles(self) -> Mask:
        """Return the mask (n,) of the angles whose full rotations are equivalent.

        They are not if a joint target counts them, or if a mimic joint follows with a ratio that is not an integer.
        """
        nodes = self.mechanism.kinematics.nodes
        counted = {
            relation.dof_name
            for one, rows in zip(self.objectives, self._relations, strict=True)
            for relation in rows
            if relation.kind is RelationKind.JOINT_VALUE
            and not (isinstance(one, JointObjective) and one.angle_mode == "nearest")
        }
        names = self.mechanism.space.q_names
        found = np.zeros(len(self.moving), dtype=np.bool_)
        for k, column in enumerate(self.columns.tolist()):
            mine = nodes[(nodes[:, FIRST_Q] == column) & (nodes[:, NODE_KIND] <= REVOLUTE + 1)]
            turns = bool(
                (mine[:, NODE_KIND] == REVOLUTE).all() and (mine[:, NODE_RATIO] == np.round(mine[:, NODE_RATIO])).all()
            )
            found[k] = column >= 0 and turns and self.unit[k] == 1.0 and names[column] not in counted
            found[k] &= bool(self.mechanism.space.rotates[self.moving[k]])
        return found

    def _only_pose(self) -> Relation | None:
        """Return the relation if the only constraint is a pose of one link in the world frame, or components of it."""
        rows = [relation for one in self._relations for relation in one]
        if len(rows) != 1 or self._shut:
            return None
        one = rows[0]
        plain = one.kind is RelationKind.POSE and one.a is None and one.b is not None and one.world_axes is None
        return one if plain and one.lower is None and one.upper is None else None

    def _rows_of_pose(self, q: Array, relation: Relation) -> tuple[Array, Array]:
        link, X_b = relation.b or "", relation.X_b
        X = self._X_a_world @ self.mechanism.pose(link, q) @ X_b
        J = self.mechanism.jacobian(link, q, X_b[:3, 3])[..., self.moving] * self.unit
        R_a = self._X_a_world[:3, :3]
        e = np.empty((len(q), 6))
        e[:, :3] = X[:, :3, 3] / self.size
        wanted = list(relation.rows)
        if wanted[-3:] == [3, 4, 5] and len(q) and np.abs(X[:, :3, :3] - EYE).max() < SMALL_ROTATION_RAD:
            e[:, 3:], W = 0.5 * (X[:, AFTER, BEFORE] - X[:, BEFORE, AFTER]), R_a  # first-order logarithm and Jacobian
        else:
            e[:, 3:] = rotation.log(X[:, :3, :3])
            W = rotation.left_jacobian_inverse(e[:, 3:]) @ R_a
        J = np.concatenate([R_a @ J[:, :3] / self.size, W @ J[:, 3:]], axis=1)
        return (e, J) if len(wanted) == 6 else (e[:, wanted], J[:, wanted])

    def _rows_one_by_one(self, q: Array) -> tuple[Array, Array]:
        parts = [self._rows_at(one) for one in q]
        if not parts:
            return np.zeros((0, 0)), np.zeros((0, 0, self.n))
        return np.array([e for e, _ in parts]), np.array([J for _, J in parts])

    def _rows_at(self, q: Array) -> tuple[Array, Array]:
        values, slopes = [np.zeros(0)], [np.zeros((0, self.n))]
        rows = [
            one.nearest_relations(self.mechanism, q, self.lower, self.upper)
            if isinstance(one, JointObjective)
            else relations
            for one, relations in zip(self.objectives, self._relations, strict=True)
        ]
        for relation in (*self._shut, *(relation for one in rows for relation in one)):
            value, J = evaluate_relation(self.mechanism, relation, q)
            scale = np.where(length_row_mask(self.mechanism, relation, len(value)), 1.0 / self.size, 1.0)
            values.append(band_violation(relation, value) * scale)
            J = J[:, self.moving] * self.unit * scale[:, None]
            slopes.append(np.where(is_band_active(relation, value)[:, None], J, 0.0))
        return np.concatenate(values), np.concatenate(slopes)


def least_norm_step(J: Array, e: Array) -> Array:
    """Return the shortest u (K, n) with J u = e, or the least-squares solution, for J (K, m, n) and e (K, m)."""
    m, n = J.shape[1:]
    Jt = np.swapaxes(J, -1, -2)
    if m <= n:
        return (Jt @ np.linalg.solve(J @ Jt + DAMPING * np.eye(m), e[..., None]))[..., 0]
    return np.asarray(np.linalg.solve(Jt @ J + DAMPING * np.eye(n), Jt @ e[..., None])[..., 0], dtype=np.float64)


def step_length(u: Array) -> Array:
    """Return the Euclidean lengths (...) of steps u (..., n)."""
    return np.sqrt((u * u).sum(axis=-1))
