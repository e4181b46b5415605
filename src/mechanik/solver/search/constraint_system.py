"""All constraints of a search for solutions as one residual, for many configurations at once.

The constraints are the required objectives, loop closures, joint constraints and swing limits.

A step u has one value per moving dof in scaled units: rad, or lengths divided by `length_unit`. Lengths in the
residual are scaled too, so one tolerance applies to all rows, and distances between configurations are comparable.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mechanik.kernels.nodes import PRISMATIC, REVOLUTE, Node, open_nodes
from mechanik.model import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.constraint_relations import (
    closure_limit_relations,
    closure_relations,
    cone_relations,
    joint_constraint_relations,
    joint_constraint_residuals,
)
from mechanik.objectives.function_objectives import Custom
from mechanik.objectives.joint_goals import JointObjective
from mechanik.objectives.objective import length_row_mask
from mechanik.objectives.relation import (
    Relation,
    RelationKind,
    band_violation,
    evaluate_relations,
    is_band_active,
    is_evaluated_together,
)
from mechanik.spatial import inverse, rotation
from mechanik.spatial.array import Array

TWO_PI = 2 * np.pi
LIMIT_ROUNDING = 1e-10
"""rad and m; values outside a limit by at most this are moved onto the limit."""


def unwrap_angles(angles: Array, near: Array, lower: Array, upper: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Shift angles (k, n) by full rotations as near to `near` (n,) as the limits (n,) allow; all angles in rad.

    Returns:
        The angles (k, n), and whether all angles of a row are inside the limits (k,). An angle without an equivalent
        value inside its limits is shifted to the value nearest to `near`.
    """
    revolutions = np.round((near - angles) / TWO_PI)
    min_revolutions, max_revolutions = (
        np.ceil((lower - LIMIT_ROUNDING - angles) / TWO_PI),
        np.floor((upper + LIMIT_ROUNDING - angles) / TWO_PI),
    )
    is_inside = min_revolutions <= max_revolutions
    revolutions = np.where(
        is_inside, np.minimum(np.maximum(revolutions, min_revolutions), max_revolutions), revolutions
    )
    unwrapped = angles + TWO_PI * revolutions
    return np.where(is_inside, np.clip(unwrapped, lower, upper), unwrapped), np.asarray(is_inside.all(axis=-1))


Mask = npt.NDArray[np.bool_]
ROUNDING_RESIDUAL = 1e-13
"""Scaled units; smaller residuals are rounding errors."""
RESIDUAL_TOLERANCE = 1e-9
"""Scaled units; constraints with smaller residuals are satisfied. It is far below the default tolerances of
objectives, 1e-6 m and 1e-6 rad."""
SHIFT_TOLERANCE = 1e-6
"""Change of a custom residual, or of a joint constraint divided by the sum of its absolute coefficients, above which
configurations that differ by full rotations are not equivalent. It is above rounding errors, and far below the effect
of a full rotation."""
ONE_BY_ONE_WORK, FUNCTION_WORK = 8.0, 20.0
"""Work of evaluating a relation for a single configuration, and a function in Python, relative to that of a pose for
one of many configurations that are evaluated together (about 10 us)."""
CALL_WORK = 15.0
"""Work of evaluating a relation besides that for each configuration, in the same unit."""
DESCENT_WORK, FUNCTION_DESCENT_WORK = 20.0, 800.0
"""Work of a descent, without and with functions in Python, in the same unit."""
DAMPING = 1e-12
"""Damping of Newton's method, so small that it acts only in nearly singular directions."""
NEWTON_STEPS = 14
"""Maximum number of Newton steps. Convergence is quadratic, but where two solutions coincide the residual decreases by
a factor of four per step only."""
SMALL_ROTATION_RAD = 0.05
"""rad; below about this angle a rotation is linearised, which does not change the limit of Newton's method."""
IDENTITY, SKEW_ROWS, SKEW_COLUMNS = np.eye(3), [2, 0, 1], [1, 2, 0]
"""Identity, and the row and column indices of the vector part of a skew-symmetric matrix."""


class ConstraintSystem:
    """Constraints and joint limits of a mechanism, as functions of configurations.

    Attributes:
        mechanism: the mechanism.
        length_unit: unit of length in scaled units, m.
        objectives: the required objectives.
        moving_dofs: (n,) indices into v of the dofs that may move.
        columns: (n,) indices of these dofs into q; -1 for dofs of spherical joints.
        unit: (n,) joint step per unit of u, rad or m.
        is_periodic: (n,) whether poses and objectives are the same after a full rotation of the dof.
        is_shiftable: (n,) whether, in addition, no joint constraint and no custom objective can distinguish the values,
            so that the dof can be shifted alone by full rotations.
        lower, upper: (nq,) limits, rad or m.
        work: work so far, in evaluations of a pose (see ONE_BY_ONE_WORK).
        work_per_descent: work of a descent from a start.
        max_work: a search ends when `work` exceeds this value; infinite by default. Work does not depend on the speed
            of the machine, so results are repeatable.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        objectives: tuple[Objective, ...],
        is_moving: Mask,
        bounds: tuple[Array, Array],
        length_unit: float,
    ) -> None:
        """Collect the relations.

        Args:
            objectives: all objectives; objectives that are not required are ignored.
            is_moving: (nv,) mask of the dofs that may move.
            bounds: lower and upper limits, (nq,) each, rad or m.
            length_unit: unit of length in scaled units, m.
        """
        self.mechanism, self.length_unit = mechanism, length_unit
        self.work, self.max_work = 0.0, np.inf
        self.objectives = tuple(objective for objective in objectives if objective.required)
        self.lower, self.upper = bounds
        self.moving_dofs = np.flatnonzero(is_moving)
        space = mechanism.space
        column_of = np.full(space.nv, -1)
        column_of[space.scalars_v] = space.scalars_q
        self.columns = column_of[self.moving_dofs]
        self.unit = np.where(space.rotates[self.moving_dofs], 1.0, length_unit)
        self._relations = [objective.relations(mechanism) for objective in self.objectives]
        self._joint_constraint_relations = tuple(joint_constraint_relations(mechanism).values())
        self.is_periodic = self._find_periodic_dofs()
        constrained_names = {name for relation in self._joint_constraint_relations for name, _ in relation.polynomials}
        self._custom_objectives = [objective for objective in self.objectives if isinstance(objective, Custom)]
        self.is_shiftable = self.is_periodic & np.array(
            [
                column < 0 or (space.q_names[column] not in constrained_names and not self._custom_objectives)
                for column in self.columns.tolist()
            ],
            dtype=np.bool_,
        )
        self._constraint_relations = [
            relation
            for closure in mechanism.closures.values()
            for relation in (*closure_relations(mechanism, closure), *closure_limit_relations(mechanism, closure))
        ]
        self._constraint_relations += self._joint_constraint_relations
        self._constraint_relations += [
            relation for relations in cone_relations(mechanism).values() for relation in relations
        ]
        self._relations_by_objective = [
            (None, self._constraint_relations),
            *zip(self.objectives, self._relations, strict=True),
        ]
        self._pose = self._only_pose()
        relations = [relation for _, relations in self._relations_by_objective for relation in relations]
        self._work_per_call = CALL_WORK * len(relations)
        self._work_per_configuration = sum(_work_of(relation) for relation in relations)
        has_functions = any(relation.kind is RelationKind.FUNCTION for relation in relations)
        self.work_per_descent = FUNCTION_DESCENT_WORK if has_functions else DESCENT_WORK
        self._X_a_world = np.eye(4) if self._pose is None else inverse(self._pose.X_a)
        self._has_spherical_joints = bool((self.columns < 0).any())
        self._scalar_columns = self.columns[self.columns >= 0]
        self._shiftable_columns = self.columns[self.is_shiftable]
        self._constrained_angle_columns = self.columns[self.is_periodic & ~self.is_shiftable]
        self._unshiftable_columns = self.columns[~self.is_shiftable & (self.columns >= 0)]

    @property
    def n(self) -> int:
        """Number of moving dofs."""
        return len(self.moving_dofs)

    @property
    def is_exhausted(self) -> bool:
        """Whether the search has done the work that it may do."""
        return self.work >= self.max_work

    # ---- configurations ---------------------------------------------------------------------

    def step(self, q: Array, u: Array) -> Array:
        """Return the configurations (K, nq) at steps `u` (K, n) from `q` (K, nq)."""
        if self._has_spherical_joints:
            v = np.zeros((len(q), self.mechanism.nv))
            v[:, self.moving_dofs] = u * self.unit
            return self.mechanism.integrate(q, v)
        q_end = q.copy()
        q_end[:, self.columns] += u * self.unit
        return q_end

    def wrapped_difference(self, a: Array, b: Array) -> Array:
        """Return the shortest step u (..., n) from `a` to `b` (..., nq), modulo full rotations of periodic dofs."""
        if self._has_spherical_joints:
            u = self.mechanism.space.difference(a, b)[..., self.moving_dofs] / self.unit
        else:
            u = (b - a)[..., self.columns] / self.unit
        return np.where(self.is_periodic, u - TWO_PI * np.round(u / TWO_PI), u)

    def distance(self, a: Array, b: Array) -> Array:
        """Return the distance (...) from `a` to `b` over the moving dofs, rad and m, not reduced by full rotations."""
        return np.linalg.norm(self.mechanism.space.difference(a, b)[..., self.moving_dofs], axis=-1)

    def unwrap(self, q: Array, near: Array) -> tuple[Array, Mask]:
        """Shift the angles of `q` (K, nq) by full rotations as near to `near` (nq,) as the limits allow.

        Angles that are not shiftable alone are shifted together, and only if that changes no joint constraint and no
        custom objective.

        Returns:
            The configurations (K, nq), and whether they are inside the limits (K,).
        """
        unwrapped_q, is_inside = q.copy(), np.ones(len(q), dtype=np.bool_)
        k = self._shiftable_columns
        if len(k):
            unwrapped_q[:, k], is_inside = unwrap_angles(q[:, k], near[k], self.lower[k], self.upper[k])
        k = self._constrained_angle_columns
        if len(k):
            shifted_q = unwrapped_q.copy()
            shifted_q[:, k], is_valid = unwrap_angles(q[:, k], near[k], self.lower[k], self.upper[k])
            is_valid &= self.are_equivalent(unwrapped_q, shifted_q)
            unwrapped_q = np.where(is_valid[:, None], shifted_q, unwrapped_q)
        k = self._unshiftable_columns
        if len(k):
            is_inside = is_inside & self.unshiftable_values_are_inside(unwrapped_q)
            clipped_values = np.clip(unwrapped_q[:, k], self.lower[k], self.upper[k])
            unwrapped_q[:, k] = np.where(is_inside[:, None], clipped_values, unwrapped_q[:, k])
        return unwrapped_q, is_inside

    def clip(self, q: Array) -> Array:
        """Return the configurations `q` (K, nq) with the moving scalar values inside the limits."""
        k, clipped_q = self._scalar_columns, q.copy()
        clipped_q[:, k] = np.clip(q[:, k], self.lower[k], self.upper[k])
        return clipped_q

    def are_equivalent(self, q: Array, shifted_q: Array) -> Mask:
        """Return whether joint constraints and custom objectives are the same after shifts by full rotations.

        Args:
            q, shifted_q: configurations before and after the shift, (K, nq).

        Returns:
            A mask (K,).
        """
        is_equal = np.ones(len(q), dtype=np.bool_)
        for relation in self._joint_constraint_relations:
            scale = sum(float(np.abs(coefficients).sum()) for _, coefficients in relation.polynomials)
            before, after = (joint_constraint_residuals(self.mechanism, relation, end) for end in (q, shifted_q))
            is_equal &= np.abs(after - before) <= SHIFT_TOLERANCE * scale
        for objective in self._custom_objectives:
            for k in np.flatnonzero(is_equal & (q != shifted_q).any(axis=1)).tolist():
                before, after = (objective.residual(self.mechanism, end[k]) for end in (q, shifted_q))
                is_equal[k] = np.abs(after - before).max(initial=0.0) <= SHIFT_TOLERANCE
        return is_equal

    def unshiftable_values_are_inside(self, q: Array) -> Mask:
        """Return whether the values that cannot be shifted alone are inside their limits, as a mask (K,)."""
        k = self._unshiftable_columns
        is_outside = (q[:, k] < self.lower[k] - LIMIT_ROUNDING) | (q[:, k] > self.upper[k] + LIMIT_ROUNDING)
        return np.asarray(~is_outside.any(axis=1))

    # ---- residual ---------------------------------------------------------------------------

    def residual_and_jacobian(self, q: Array) -> tuple[Array, Array]:
        """Return the residual (K, m) at `q` (K, nq), and its derivatives by u (K, m, n)."""
        self.work += self._work_per_call + len(q) * self._work_per_configuration
        return self._stacked_residuals(q) if self._pose is None else self._pose_residual(q, self._pose)

    def project(self, q: Array, is_fixed: Mask | None = None, steps: int = NEWTON_STEPS) -> tuple[Array, Array]:
        """Project each `q` (K, nq) onto the constraints by Newton's method with least-norm steps, regardless of limits.

        Args:
            is_fixed: (K, n) mask of dofs that do not move.
            steps: maximum number of steps.

        Returns:
            The configurations (K, nq), and the largest remaining residual (K,). A step that does not decrease the
            residual is rejected and ends the iteration for its configuration.
        """
        q = q.copy()
        e, J = self.residual_and_jacobian(q)
        error = np.abs(e).max(axis=1, initial=0.0)
        is_active = error > ROUNDING_RESIDUAL
        for _ in range(steps):
            k = np.flatnonzero(is_active)
            if not len(k):
                break
            trial_q = self.step(
                q[k], -least_norm_step(J[k] if is_fixed is None else np.where(is_fixed[k, None], 0.0, J[k]), e[k])
            )
            e_trial, J_trial = self.residual_and_jacobian(trial_q)
            new_error = np.abs(e_trial).max(axis=1)
            is_better = new_error < error[k]
            is_active[k[~is_better]] = False
            k, trial_q = k[is_better], trial_q[is_better]
            q[k], e[k], J[k], error[k] = trial_q, e_trial[is_better], J_trial[is_better], new_error[is_better]
            is_active[k] = error[k] > ROUNDING_RESIDUAL
        return q, error

    def polish(self, q: Array, near: Array) -> tuple[Array, Mask]:
        """Refine `q` (K, nq) by Newton's method to rounding errors, and unwrap its angles.

        A joint that is slightly beyond a limit after the refinement is fixed at the limit, and the others are refined
        again.

        Returns:
            The configurations (K, nq), and whether they satisfy constraints and limits (K,).
        """
        polished_q, error = self.project(q)
        polished_q, is_inside = self.unwrap(polished_q, near)
        outside_indices = np.flatnonzero((error < RESIDUAL_TOLERANCE) & ~is_inside)
        if len(outside_indices):
            unwrapped_q, _ = self.unwrap(q[outside_indices], near)
            clipped_q = self.clip(polished_q[outside_indices])
            is_fixed = np.zeros((len(outside_indices), self.n), dtype=np.bool_)
            is_scalar = self.columns >= 0
            is_fixed[:, is_scalar] = (clipped_q != polished_q[outside_indices])[:, self._scalar_columns]
            # a large shift would lead to another solution
            k = np.flatnonzero(np.abs(self.wrapped_difference(unwrapped_q, clipped_q)).max(axis=1) < 1e-3)
            refined_q, remaining_error = self.project(clipped_q[k], is_fixed[k])
            refined_q, is_refined_inside = self.unwrap(refined_q, near)
            k = k[is_refined_inside]
            polished_q[outside_indices[k]], error[outside_indices[k]], is_inside[outside_indices[k]] = (
                refined_q[is_refined_inside],
                remaining_error[is_refined_inside],
                True,
            )
        return polished_q, is_inside & (error < RESIDUAL_TOLERANCE)

    def errors(self, q: Array) -> Array:
        """Return the largest position error (m) and rotation error (rad) of the objectives at each `q`, (K, 2)."""
        error_rows = [
            [objective.error(self.mechanism, configuration) for objective in self.objectives] for configuration in q
        ]
        largest_errors = [
            [max((error.position for error in row), default=0.0), max((error.rotation for error in row), default=0.0)]
            for row in error_rows
        ]
        return np.array(largest_errors).reshape(len(q), 2)

    def redundancy(self, q: Array, rank_tolerance: float = 1e-6) -> npt.NDArray[np.int64]:
        """Return the number of free dofs at each `q` (K, nq) to first order: n minus the rank of the Jacobian, (K,).

        Args:
            rank_tolerance: singular values below this ratio to the largest count as zero.
        """
        if not len(q):
            return np.zeros(0, dtype=np.int64)
        J = self.residual_and_jacobian(q)[1]
        if not J.shape[1]:
            return np.full(len(q), self.n)
        singular_values = np.linalg.svd(J, compute_uv=False)
        return self.n - (singular_values > rank_tolerance * np.maximum(singular_values[:, :1], 1e-12)).sum(axis=1)

    # ---- private ----------------------------------------------------------------------------

    def _find_periodic_dofs(self) -> Mask:
        """Return the mask (n,) of the dofs for which poses and objectives are the same after a full rotation.

        They are not the same if a joint target counts full revolutions, or if a mimic joint is prismatic or has
        a ratio that is not an integer. Joint constraints and custom objectives are not considered.
        """
        nodes = open_nodes(self.mechanism.kinematics.nodes)
        first_q, kinds, ratios = (nodes.column(field) for field in (Node.first_q, Node.kind, Node.ratio))
        is_scalar = np.isin(kinds, (REVOLUTE, PRISMATIC))
        exact_names = {
            relation.dof_name
            for objective, relations in zip(self.objectives, self._relations, strict=True)
            for relation in relations
            if relation.kind is RelationKind.JOINT_VALUE
            and not (isinstance(objective, JointObjective) and objective.angle_mode == "nearest")
        }
        names = self.mechanism.space.q_names
        mask = np.zeros(len(self.moving_dofs), dtype=np.bool_)
        for k, column in enumerate(self.columns.tolist()):
            is_of_joint = (first_q == column) & is_scalar
            joint_ratios = ratios[is_of_joint]
            is_periodic = bool(
                (kinds[is_of_joint] == REVOLUTE).all() and (joint_ratios == np.round(joint_ratios)).all()
            )
            mask[k] = column >= 0 and is_periodic and self.unit[k] == 1.0 and names[column] not in exact_names
            mask[k] &= bool(self.mechanism.space.rotates[self.moving_dofs[k]])
        return mask

    def _only_pose(self) -> Relation | None:
        """Return the relation if the only constraint is a pose of one link in the world frame, or components of it."""
        relations = [relation for objective_relations in self._relations for relation in objective_relations]
        if len(relations) != 1 or self._constraint_relations:
            return None
        relation = relations[0]
        is_link_pose = relation.kind is RelationKind.POSE and relation.a is None and relation.b is not None
        has_bands = relation.lower is not None or relation.upper is not None
        return relation if is_link_pose and relation.world_axes is None and not has_bands else None

    def _pose_residual(self, q: Array, relation: Relation) -> tuple[Array, Array]:
        link, X_b = relation.b or "", relation.X_b
        X = self._X_a_world @ self.mechanism.pose(link, q) @ X_b
        J = self.mechanism.jacobian(link, q, X_b[:3, 3])[..., self.moving_dofs] * self.unit
        R_a = self._X_a_world[:3, :3]
        e = np.empty((len(q), 6))
        e[:, :3] = X[:, :3, 3] / self.length_unit
        rows = list(relation.rows)
        if rows[-3:] == [3, 4, 5] and len(q) and np.abs(X[:, :3, :3] - IDENTITY).max() < SMALL_ROTATION_RAD:
            e[:, 3:], rotation_factor = (
                0.5 * (X[:, SKEW_ROWS, SKEW_COLUMNS] - X[:, SKEW_COLUMNS, SKEW_ROWS]),
                R_a,
            )  # first-order logarithm and Jacobian
        else:
            e[:, 3:] = rotation.log(X[:, :3, :3])
            rotation_factor = rotation.left_jacobian_inverse(e[:, 3:]) @ R_a
        J = np.concatenate([R_a @ J[:, :3] / self.length_unit, rotation_factor @ J[:, 3:]], axis=1)
        return (e, J) if len(rows) == 6 else (e[:, rows], J[:, rows])

    def _stacked_residuals(self, q: Array) -> tuple[Array, Array]:
        if not len(q):
            return np.zeros((0, 0)), np.zeros((0, 0, self.n))
        residuals, jacobians = [np.zeros((len(q), 0))], [np.zeros((len(q), 0, self.n))]
        for objective, relations in self._relations_by_objective:
            if isinstance(objective, JointObjective):  # the nearest angle depends on q
                values = [self._relation_rows(self._joint_relations(objective, x), x) for x in q]
                residuals.append(np.array([e for e, _ in values]))
                jacobians.append(np.array([J for _, J in values]))
                continue
            for relation in relations:
                e, J = self._relation_residuals(relation, q)
                residuals.append(e)
                jacobians.append(J)
        return np.concatenate(residuals, axis=1), np.concatenate(jacobians, axis=1)

    def _joint_relations(self, objective: JointObjective, q: Array) -> tuple[Relation, ...]:
        return objective.nearest_relations(self.mechanism, q, self.lower, self.upper)

    def _relation_rows(self, relations: Sequence[Relation], q: Array) -> tuple[Array, Array]:
        """Return the rows of relations (m,) at q (nq,), and their derivatives by u (m, n)."""
        rows = [self._relation_residuals(relation, q[None]) for relation in relations]
        return np.concatenate([e[0] for e, _ in rows]), np.concatenate([J[0] for _, J in rows])

    def _relation_residuals(self, relation: Relation, q: Array) -> tuple[Array, Array]:
        """Return the rows of a relation (K, m) at q (K, nq), and their derivatives by u (K, m, n)."""
        values, J = evaluate_relations(self.mechanism, relation, q)
        scale = np.where(length_row_mask(self.mechanism, relation, len(relation.rows)), 1.0 / self.length_unit, 1.0)
        J = J[..., self.moving_dofs] * self.unit * scale[:, None]
        J = np.where(is_band_active(relation, values)[..., None], J, 0.0)
        return band_violation(relation, values) * scale, J


def _work_of(relation: Relation) -> float:
    """Return the work of evaluating a relation for a configuration."""
    if relation.kind is RelationKind.FUNCTION:
        return FUNCTION_WORK
    if relation.kind is RelationKind.CENTRE_OF_MASS:
        return float(len(relation.masses))
    return 1.0 if is_evaluated_together(relation) else ONE_BY_ONE_WORK


def least_norm_step(J: Array, e: Array) -> Array:
    """Return the shortest u (K, n) that solves J u = e in the least-squares sense, for J (K, m, n) and e (K, m)."""
    m, n = J.shape[1:]
    Jt = np.swapaxes(J, -1, -2)
    if m <= n:
        return (Jt @ np.linalg.solve(J @ Jt + DAMPING * np.eye(m), e[..., None]))[..., 0]
    return np.asarray(np.linalg.solve(Jt @ J + DAMPING * np.eye(n), Jt @ e[..., None])[..., 0], dtype=np.float64)


def step_length(u: Array) -> Array:
    """Return the Euclidean lengths (...) of steps u (..., n)."""
    return np.sqrt((u * u).sum(axis=-1))
