"""Linearization of closures and joint constraints at q, and sampling of nearby configurations with closed loops.

Lengths are divided by a characteristic length, so that singular values have no unit. Ranks are computed from the scaled
matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mechanik.model.dof import ROTATIONS, TRANSLATIONS, DoF, joint_values_from_pose
from mechanik.model.frame import Link
from mechanik.model.joint_constraint import JointConstraint
from mechanik.model.loop_closure import Closure
from mechanik.model.mechanism import Mechanism
from mechanik.model.numpy_kinematics import NumpyKinematics
from mechanik.spatial import euler, inverse, make_pose, quaternion, rotation
from mechanik.spatial.array import Array


def joint_constraint_residual(mechanism: Mechanism, constraint: JointConstraint, q: Array) -> tuple[float, Array]:
    """Return the residual of a joint constraint at q (nq,) and its gradient (nv,), both divided by its scale."""
    coefficients_by_dof, constant = constraint.resolve_couplings()
    joint_indices, scale = mechanism.kinematics.joint_indices, constraint.scale
    total, gradient = -constant, np.zeros(mechanism.nv)
    for (joint, dof), coefficients in coefficients_by_dof.items():
        value, v = float(q[joint_indices[joint].q[dof]]), joint_indices[joint].v[dof]
        for power, coefficient in enumerate(coefficients.tolist(), start=1):
            total += coefficient * value**power
            gradient[v] += coefficient * power * value ** (power - 1)
    return total / scale, gradient / scale


def joint_constraint_jacobian(mechanism: Mechanism, q: Array) -> Array:
    """Return the gradients of all joint constraints at q (nq,), (constraints, nv), divided by their scales."""
    rows = [
        joint_constraint_residual(mechanism, constraint, q)[1] for constraint in mechanism.joint_constraints.values()
    ]
    return np.array(rows, dtype=np.float64).reshape(len(rows), mechanism.nv)


NO_LIMITS = np.full(6, -np.inf), np.full(6, np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class LinearizedConstraint:
    """The scalar constraints of a closure or of a joint constraint, linearized at q.

    Attributes:
        kind: "closure" or "joint_constraint".
        name: name of the closure or joint constraint.
        row_names: for each row the constrained dof in the axes of the closing joint, such as `X` or `EY`; `value` for
            a joint constraint.
        is_length: (rows,), whether the residual of a row is a length; otherwise it is an angle.
        residual: (rows,), the violation, m and rad; for a joint constraint divided by its scale (rad, or m if all its
            dofs are translations).
        J: (rows, nv), derivative of the residual; for a closure exact only where the residual is zero.
        dof_indices: indices in v of the dofs that change the residual at some q.
        points: (k, 3), world positions where the constraint acts, m; used for the characteristic length.
    """

    kind: Literal["closure", "joint_constraint"]
    name: str
    row_names: tuple[str, ...]
    is_length: np.ndarray[tuple[int], np.dtype[np.bool_]]
    residual: Array
    J: Array
    dof_indices: frozenset[int]
    points: Array


def linearize_constraints(mechanism: Mechanism, q: Array) -> list[LinearizedConstraint]:
    """Linearize all closures and joint constraints at q (nq,)."""
    kinematics = NumpyKinematics(mechanism.kinematics, q)
    return [
        *(linearize_closure(mechanism, closure, kinematics) for closure in mechanism.closures.values()),
        *(
            linearize_joint_constraint(mechanism, name, constraint, q)
            for name, constraint in mechanism.joint_constraints.items()
        ),
    ]


def linearize_joint_constraint(
    mechanism: Mechanism, name: str, constraint: JointConstraint, q: Array
) -> LinearizedConstraint:
    """Linearize a joint constraint, divided by its scale; J is zero if couplings cancel all coefficients."""
    joint_indices = mechanism.kinematics.joint_indices
    dofs = [(joint_indices[joint].v[dof], dof) for joint, dof in constraint.resolve_couplings()[0]]
    residual, gradient = joint_constraint_residual(mechanism, constraint, q)
    return LinearizedConstraint(
        kind="joint_constraint",
        name=name,
        row_names=("value",),
        is_length=np.array([all(not dof.is_rotation for _, dof in dofs)], dtype=np.bool_),
        residual=np.array([residual]),
        J=gradient[None],
        dof_indices=frozenset(k for k, _ in dofs),
        points=np.zeros((0, 3)),
    )


def linearize_closure(mechanism: Mechanism, closure: Closure, kinematics: NumpyKinematics) -> LinearizedConstraint:
    """Linearize a closure: its constrained translations and rotations in the axes of its joint, without its limits."""
    joint, free_dof = closure.joint, closure.free_dof
    ends = _ClosureEnds(mechanism, closure, kinematics)
    X_world_axes, X_world_end = ends.X_world_axes, ends.X_world_end
    X_axes_end = inverse(X_world_axes) @ X_world_end
    values = joint_values_from_pose(X_axes_end, free_dof, joint._values_and_limits()[0], *NO_LIMITS)
    R_values = euler.matrix_from_euler(values[[5, 4, 3]], order="zyx", axes="moving")
    R = X_world_axes[:3, :3]
    position_error_axes = X_axes_end[:3, 3] - values[:3]
    rotation_error_world = R @ rotation.log(X_axes_end[:3, :3] @ R_values.T)

    J_relative, dof_indices = ends.J_relative, ends.dof_indices
    translations = [dof for dof in TRANSLATIONS if dof not in free_dof]
    rotations = _constrained_rotations(free_dof, values, R)
    return LinearizedConstraint(
        kind="closure",
        name=mechanism.name_of(joint),
        row_names=(*(dof.name for dof in translations), *(dof.name for dof, _ in rotations)),
        is_length=np.array([True] * len(translations) + [False] * len(rotations), dtype=np.bool_),
        residual=np.array(
            [
                *(position_error_axes[dof.axis_index] for dof in translations),
                *(direction @ rotation_error_world for _, direction in rotations),
            ]
        ),
        J=np.array(
            [
                *(R[:, dof.axis_index] @ J_relative[:3] for dof in translations),
                *(direction @ J_relative[3:] for _, direction in rotations),
            ]
        ).reshape(len(translations) + len(rotations), mechanism.nv),
        dof_indices=dof_indices,
        points=np.array([X_world_axes[:3, 3], X_world_end[:3, 3]]),
    )


def closure_axes_and_jacobian(
    mechanism: Mechanism, closure: Closure, kinematics: NumpyKinematics
) -> tuple[Array, Array]:
    """Return the world axes (3, 3) of a closing joint, and the Jacobian (6, nv) of its end relative to its start.

    The Jacobian is at the end, in world axes: (linear, angular) per entry of v.
    """
    ends = _ClosureEnds(mechanism, closure, kinematics)
    return ends.X_world_axes[:3, :3], ends.J_relative


class _ClosureEnds:
    """The two ends of a closure: their world poses, rotated to the axes of motion, and their relative Jacobian."""

    def __init__(self, mechanism: Mechanism, closure: Closure, kinematics: NumpyKinematics) -> None:
        joint = closure.joint
        X_link_joint, parent = joint.matrix, joint.parent
        while parent is not None and not isinstance(parent, Link):
            X_link_joint, parent = parent.matrix @ X_link_joint, parent.parent
        start = kinematics.link_kinematics(None if parent is None else mechanism.name_of(parent))
        end = kinematics.link_kinematics(mechanism.name_of(closure.link))
        X_joint_axes = make_pose(quaternion.to_matrix(joint.axes_wxyz), np.zeros(3))
        self.X_world_axes = start.X_world_link @ X_link_joint @ X_joint_axes
        self.X_world_end = end.X_world_link @ closure.at.matrix @ X_joint_axes
        point = self.X_world_end[:3, 3]
        self.dof_indices = kinematics.relative_dofs(start, end)
        self.J_relative = end.jacobian_at(point) - start.jacobian_at(point)
        unrelated_columns = [k for k in range(self.J_relative.shape[1]) if k not in self.dof_indices]
        # the difference for joints above both ends is only a rounding error
        self.J_relative[:, unrelated_columns] = 0.0


def _constrained_rotations(free_dof: tuple[DoF, ...], values: Array, R_world_axes: Array) -> list[tuple[DoF, Array]]:
    """Return the world directions about which a closure allows no rotation, each with its constrained dof."""
    axes: list[Array] = []
    R = R_world_axes
    for dof in reversed(ROTATIONS):
        if dof in free_dof:
            axes.append(R[:, dof.axis_index])
            R = R @ rotation.exp(np.eye(3)[dof.axis_index] * values[dof])
    constrained_dofs = [dof for dof in ROTATIONS if dof not in free_dof]
    if len(axes) == 2:  # the axes are orthogonal, since the third angle is zero
        return [(constrained_dofs[0], np.cross(axes[0], axes[1]))]
    return [(dof, R_world_axes[:, dof.axis_index]) for dof in constrained_dofs]


Mask = npt.NDArray[np.bool_]

RANK_TOLERANCE = 1e-8
"""Ratio to the largest singular value up to which a singular value counts as zero."""
MIN_PARTICIPATION = 1e-6
"""Smallest entry of a unit motion at which a dof counts as moving and can be an input of this motion."""
CLOSURE_ROUNDING = 1e-12
"""Scaled residual (rad, or lengths divided by the characteristic length) that is only a rounding error; smaller
residuals are not reduced further."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearizedSystem:
    """All constraints linearized at a configuration and scaled, so that rows and columns have no unit.

    Attributes:
        q: (nq,).
        constraints: the linearized closures and joint constraints.
        characteristic_length: m, the unit of length.
        unit: (nv,), the unit of each dof: 1 rad, or `characteristic_length`.
        can_move: (nv,), False for dofs whose limits are equal or that the caller excludes.
        A: (rows, nv), without units: derivative of the scaled residual with respect to v / unit; columns of dofs that
            cannot move are zero.
        residual: (rows,), without units.
    """

    q: Array
    constraints: tuple[LinearizedConstraint, ...]
    characteristic_length: float
    unit: Array
    can_move: Mask
    A: Array
    residual: Array

    @property
    def max_residual(self) -> float:
        """The largest absolute residual, without units."""
        return float(np.abs(self.residual).max(initial=0.0))

    @property
    def tolerance(self) -> float:
        """Ratio to the largest singular value up to which a singular value counts as zero.

        It allows for rounding errors and for the effect of the residual.
        """
        return max(RANK_TOLERANCE, 10.0 * self.max_residual)

    @property
    def rank(self) -> int:
        """The rank of `A`."""
        return numerical_rank(self.A, self.tolerance)

    @property
    def dof(self) -> int:
        """The mobility to first order."""
        return int(self.can_move.sum()) - self.rank

    def basis(self, rank: int | None = None) -> Array:
        """Return an orthonormal basis of the motions v / unit, (nv, k), that keep all constraints to first order.

        Args:
            rank: rank of A; computed if None.
        """
        A = self.A[:, self.can_move]
        basis = np.zeros((len(self.can_move), A.shape[1] - (self.rank if rank is None else rank)))
        basis[self.can_move] = null_space(A, self.rank if rank is None else rank)
        return basis


def linearize_system(mechanism: Mechanism, q: Array, movable_dofs: Mask | None = None) -> LinearizedSystem:
    """Linearize all constraints of a mechanism at q (nq,) and scale them.

    Args:
        mechanism: the mechanism.
        q: (nq,).
        movable_dofs: (nv,), mask of the dofs that may move; default: all. Dofs whose limits are equal never move.
    """
    return stack_constraints(mechanism, q, linearize_constraints(mechanism, q), movable_dofs)


def stack_constraints(
    mechanism: Mechanism, q: Array, constraints: Sequence[LinearizedConstraint], movable_dofs: Mask | None = None
) -> LinearizedSystem:
    """Combine linearized constraints into a scaled system; `movable_dofs` as in `linearize_system`."""
    space = mechanism.space
    length = characteristic_length(mechanism, constraints)
    unit = np.where(space.rotates, 1.0, length)
    can_move = np.ones(space.nv, dtype=np.bool_)
    can_move[space.scalars_v] = space.lower[space.scalars_q] < space.upper[space.scalars_q]
    if movable_dofs is not None:
        can_move &= movable_dofs
    scale = np.concatenate(
        [np.ones(0), *(np.where(constraint.is_length, 1.0 / length, 1.0) for constraint in constraints)]
    )
    A = (
        np.concatenate([np.zeros((0, space.nv)), *(constraint.J for constraint in constraints)])
        * scale[:, None]
        * unit
        * can_move
    )
    residual = np.concatenate([np.zeros(0), *(constraint.residual for constraint in constraints)]) * scale
    return LinearizedSystem(q, tuple(constraints), length, unit, can_move, A, residual)


def characteristic_length(mechanism: Mechanism, constraints: Iterable[LinearizedConstraint]) -> float:
    """Return the characteristic length of a mechanism, m.

    This is the longest fixed translation from the world or a joint to the next joint or link, or the largest extent of
    the closure points along a world axis if this extent is larger; 1 if both are zero.
    """
    fixed_translations = np.concatenate([mechanism.kinematics.nodes[:, 9:12], mechanism.kinematics.link_nodes[:, 9:12]])
    length = float(np.linalg.norm(fixed_translations, axis=1).max(initial=0.0))
    points = np.concatenate([np.zeros((0, 3)), *(constraint.points for constraint in constraints)])
    if len(points):
        length = max(length, float(np.ptp(points, axis=0).max()))
    return length if length > 1e-9 else 1.0


def numerical_rank(A: Array, tolerance: float = RANK_TOLERANCE) -> int:
    """Return the number of singular values above `tolerance` times the largest."""
    if not A.size:
        return 0
    singular_values = np.linalg.svd(A, compute_uv=False)
    return int((singular_values > tolerance * max(float(singular_values[0]), 1e-12)).sum())


def null_space(A: Array, rank: int) -> Array:
    """Return an orthonormal basis (n, n - rank) of the null space of A (m, n); `rank` is the rank of A."""
    if not A.size:
        return np.eye(A.shape[1])[:, rank:]
    return np.linalg.svd(A)[2][rank:].T


def remove_directions(basis: Array, removed_directions: Array) -> Array:
    """Return an orthonormal basis of the part of span(basis) that is orthogonal to the removed directions.

    Args:
        basis: (nv, k), orthonormal.
        removed_directions: (nv, j).
    """
    if not removed_directions.shape[1]:
        return basis
    removed_components = basis.T @ removed_directions
    return basis @ null_space(removed_components.T, numerical_rank(removed_components, MIN_PARTICIPATION))


def independent_rows(
    vectors: Array, order: Iterable[int], tolerance: float, reference_norm: float | None = None
) -> list[int]:
    """Select vectors in a given order that are not linear combinations of the vectors selected before.

    Args:
        vectors: (n, m).
        order: indices of vectors.
        tolerance: a vector is selected if its part that is orthogonal to the vectors selected before is longer than
            tolerance * reference_norm.
        reference_norm: default: the norm of the longest vector.

    Returns:
        The selected indices.
    """
    selected: list[int] = []
    basis = np.zeros((0, vectors.shape[1]))
    if reference_norm is None:
        reference_norm = float(np.linalg.norm(vectors, axis=1).max(initial=0.0))
    for k in order:
        if len(basis) == vectors.shape[1]:
            break
        remainder = vectors[k].copy()
        for _ in range(2):  # the second pass removes rounding errors
            remainder -= basis.T @ (basis @ remainder)
        remainder_norm = float(np.linalg.norm(remainder))
        if remainder_norm > tolerance * max(reference_norm, 1e-12):
            selected.append(k)
            basis = np.vstack([basis, remainder / remainder_norm])
    return selected


PERTURBATION_STEPS = (0.05, 0.005)
"""Largest motion of a dof in a perturbation, rad or characteristic lengths; the second value is used if the first
yields no neighbour."""
CLOSABLE_RESIDUAL, MAX_CLOSING_STEPS = 1e-4, 6
"""Below this scaled residual `linearize_closed_system` first closes the loops, in at most this number of steps."""
MAX_NEWTON_STEPS = 40
"""Maximum number of steps that close the loops after a perturbation. Newton's method needs 3 to 5 steps; where the
constraints lose rank, it converges only linearly and needs more."""
MIN_STEP_SHARE = 0.2
"""Share of a perturbation that must remain after the loops are closed; otherwise the motion is only infinitesimal."""


def linearize_closed_system(mechanism: Mechanism, q: Array, movable_dofs: Mask | None = None) -> LinearizedSystem:
    """Linearize at q (nq,), or at a nearby configuration with closed loops if the loops have a small gap at q."""
    system = linearize_system(mechanism, q, movable_dofs)
    for _ in range(MAX_CLOSING_STEPS):
        if not CLOSURE_ROUNDING < system.max_residual < CLOSABLE_RESIDUAL:
            break
        # rcond excludes directions with little effect on the residual, since they would cause long steps
        step = np.linalg.pinv(system.A, rcond=1e-6) @ -system.residual
        next_system = linearize_system(mechanism, mechanism.integrate(system.q, step * system.unit), system.can_move)
        if not next_system.max_residual < 0.5 * system.max_residual:
            break
        system = next_system
    return system


def sample_closed_neighbours(mechanism: Mechanism, system: LinearizedSystem, count: int = 3) -> list[LinearizedSystem]:
    """Sample up to `count` configurations with closed loops near `system.q`, by random small motions with a fixed seed.

    The list is empty if the mechanism cannot move, or if all sampled first-order motions are only infinitesimal.
    """
    basis = system.basis()
    if not basis.shape[1]:
        return []
    rng = np.random.default_rng(0)
    neighbours: list[LinearizedSystem] = []
    for step in PERTURBATION_STEPS:
        for _ in range(count):
            direction = np.asarray(basis @ rng.standard_normal(basis.shape[1]), dtype=np.float64)
            perturbation = direction * (step / float(np.abs(direction).max()))
            neighbour = _close_loops(
                mechanism,
                linearize_system(mechanism, mechanism.integrate(system.q, perturbation * system.unit), system.can_move),
            )
            if neighbour is None:
                continue
            displacement = mechanism.difference(system.q, neighbour.q) / system.unit
            if np.linalg.norm(displacement) > MIN_STEP_SHARE * np.linalg.norm(perturbation):
                neighbours.append(neighbour)
        if neighbours:
            break
    return neighbours


def _close_loops(mechanism: Mechanism, system: LinearizedSystem) -> LinearizedSystem | None:
    """Close the loops by Newton's method with damping, which limits the step near singular configurations.

    Returns:
        The linearized constraints at the closed configuration; None if no such configuration is found.
    """
    damping = 1e-3  # ratio to the squared norm of the residual
    for _ in range(MAX_NEWTON_STEPS):
        if system.max_residual < CLOSURE_ROUNDING:
            return system
        u, singular_values, vt = np.linalg.svd(system.A, full_matrices=False)
        is_significant = singular_values > 1e-9 * singular_values[0]
        damped_inverse = singular_values[is_significant] / (
            singular_values[is_significant] ** 2 + damping * float(system.residual @ system.residual)
        )
        step = -vt[is_significant].T @ (damped_inverse * (u[:, is_significant].T @ system.residual))
        next_system = linearize_system(mechanism, mechanism.integrate(system.q, step * system.unit), system.can_move)
        if next_system.max_residual < system.max_residual:
            system, damping = next_system, 0.1 * damping
        else:
            damping *= 100.0
    return system if system.max_residual < 1e3 * CLOSURE_ROUNDING else None
