"""Relations: the few kinds of residuals into which objectives, loop closures and joint constraints are translated.

Most kinds describe frame B relative to frame A; each frame is fixed to a link or to the world. Each residual row of a
relation should be zero, or lie in a band. The kernels implement these kinds, except FUNCTION, and do not depend on the
objectives.

| kind | residual rows |
|---|---|
| POSE | 0-2: position of B in A (m); 3-5: rotation vector of B relative to A (rad) |
| AXIS | 0-2: as in POSE; 3-4: x and y of the z axis of B in A, scaled to the angle between both z axes (rad) |
| COSINE | 0: cosine of the angle between the z axes of A and B |
| LOOK_AT | 0-1: as AXIS 3-4, with the direction from the origin of A to the origin of B instead of z of B (rad) |
| DISTANCE | 0: distance between the origins of A and B (m) |
| CENTRE_OF_MASS | 0-2: common centre of mass of links, in A (m) |
| JOINT_VALUE | 0: value of one scalar dof minus its target (m or rad) |
| SPHERICAL_JOINT | 0-2: rotation vector of a spherical joint relative to its target (rad) |
| FUNCTION | the rows that a Python function returns |
| JOINT_CONSTRAINT | 0: sum of polynomials of scalar dofs minus a constant (unit of the constraint) |
| HEIGHT | 0: height of the origin of B above a terrain that is fixed to A, along z of A (m) |

`evaluate_relation` is the reference implementation in plain NumPy. It is slow and easy to verify: the kernels are
tested against it, and the methods of `Objective` use it. The caller applies weights and bands (`band_violation`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from mechanik.errors import DoFError, ShapeError, StructureError, UnknownName
from mechanik.kernels.nodes import SPHERICAL, TRANSLATION, Node
from mechanik.model import Mechanism
from mechanik.objectives.terrain import Terrain
from mechanik.spatial import quaternion, rotation, translation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.value_object import ValueObject


class RelationKind(IntEnum):
    """Kind of a relation; the module docstring defines the residual rows of each kind.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> mk.PositionGoal("tool", (0.8, 0.1, 0.0)).relations(arm)[0].kind.name
        'POSE'
    """

    POSE = 0
    AXIS = 1
    COSINE = 2
    LOOK_AT = 3
    DISTANCE = 4
    CENTRE_OF_MASS = 5
    JOINT_VALUE = 6
    SPHERICAL_JOINT = 7
    FUNCTION = 8
    JOINT_CONSTRAINT = 9
    HEIGHT = 10


class TargetPart(IntEnum):
    """Numbers of a relation that the target of its objective determines; see `TargetWrite`.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> mk.PositionGoal("tool", (0.8, 0.1, 0.0)).relations(arm)[0].target_writes[0].part.name
        'A_POSITION'
    """

    A_POSITION = 0
    A_ROTATION = 1
    A_DIRECTION = 2
    B_POSITION = 3
    B_INVERSE_ROTATION = 4
    VALUE = 5
    QUATERNION = 6
    LOWER = 7
    UPPER = 8


@dataclass(frozen=True, slots=True, eq=False)
class TargetWrite:
    """How the target of an objective determines a part of a relation.

    | part | number of the relation |
    |---|---|
    | A_POSITION, B_POSITION | position of X_a or X_b: the target point, or the position of the target pose |
    | A_ROTATION | rotation of X_a: R @ right, with the target rotation R |
    | A_DIRECTION | rotation of X_a: the smallest rotation that maps z to the target direction |
    | B_INVERSE_ROTATION | rotation of X_b: left @ R' @ right, with the transposed target rotation R' |
    | VALUE | `target`: (number - offset) / ratio |
    | QUATERNION | `target`: four numbers, normalized |
    | LOWER, UPPER | bound of the only row: the number, above 0 |

    Attributes:
        part: the part.
        index: index of the number, or of the first number, in the target of the objective; for VALUE and QUATERNION.
        left, right: rotations (3, 3); None: the identity.
        ratio, offset: those of VALUE.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> mk.JointValues({"joint1": 0.1, "joint2": 0.2}).relations(arm)[1].target_writes[0].index
        1
    """

    part: TargetPart
    index: int = 0
    left: Array | None = None
    right: Array | None = None
    ratio: float = 1.0
    offset: float = 0.0


ResidualFunction = Callable[["Mechanism", Array], tuple[Array, Array]]
"""(mechanism, q) -> values (m,) and their Jacobian (m, nv)."""


@dataclass(frozen=True, slots=True, eq=False)
class Relation(ValueObject):
    """Residual of one kind: of frame B relative to frame A, of dofs, of a centre of mass, or of a function.

    Attributes:
        kind: meaning of the residual rows.
        rows: indices of those rows of the kind that are used, ascending.
        a, b: links to which frame A and frame B are fixed; None is the world.
        X_a, X_b: (4, 4), the frames in these links. CENTRE_OF_MASS does not use `b` and `X_b`.
        world_axes: axes of the rows for POSE, AXIS and COSINE. None: the axes of A. Otherwise C, (3, 3), whose columns
            are axes fixed in the world, independent of A: then positions are C' (p_B - p_A), and the rotation of B
            relative to A is C' R_B R_A' C (C' is C transposed).
        masses: for CENTRE_OF_MASS, link, mass (kg) and centre of mass in the link (3,), m.
        dof_name: for JOINT_VALUE the name in `q_names`; for SPHERICAL_JOINT the name of the joint.
        target: for JOINT_VALUE (1,), for SPHERICAL_JOINT a quaternion wxyz (4,), for JOINT_CONSTRAINT the constant
            (1,).
        polynomials: for JOINT_CONSTRAINT, names in `q_names`, each with the coefficients (n,) of the powers 1 to n of
            its value.
        terrain: for HEIGHT, the terrain in frame A.
        function: for FUNCTION, returns the values of the rows and their Jacobian.
        lower, upper: (rows,), the band in which each row may lie; one None: no such bound; both None: the row should be
            zero.
        weight: factor of the rows inside the solver; it does not change `Objective.residual`.
        position_weight, rotation_weight: further factors of the rows that are lengths, and of the other rows.
        target_writes: the parts that the target of the objective determines; empty if it determines none. None: not
            declared, so a new target needs a new relation.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> relation = mk.PositionGoal("tool", (0.8, 0.1, 0.0)).relations(arm)[0]
        >>> relation.rows, relation.a, relation.b
        ((0, 1, 2), None, 'tool')
    """

    kind: RelationKind
    rows: tuple[int, ...]
    a: str | None = None
    b: str | None = None
    X_a: Array = field(default_factory=lambda: np.eye(4))
    X_b: Array = field(default_factory=lambda: np.eye(4))
    world_axes: Array | None = None
    masses: tuple[tuple[str, float, Array], ...] = ()
    dof_name: str = ""
    target: Array = field(default_factory=lambda: np.zeros(1))
    polynomials: tuple[tuple[str, Array], ...] = ()
    terrain: Terrain | None = None
    function: ResidualFunction | None = None
    lower: Array | None = None
    upper: Array | None = None
    weight: float = 1.0
    position_weight: float = 1.0
    rotation_weight: float = 1.0
    target_writes: tuple[TargetWrite, ...] | None = None

    @property
    def is_length(self) -> tuple[bool, ...]:
        """Whether each row is a length; JOINT_VALUE rows need the mechanism, see `length_row_mask`."""
        length_count = {
            RelationKind.POSE: 3,
            RelationKind.AXIS: 3,
            RelationKind.DISTANCE: 1,
            RelationKind.CENTRE_OF_MASS: 3,
            RelationKind.HEIGHT: 1,
        }.get(self.kind, 0)
        return tuple(row < length_count for row in self.rows)


MIN_DIRECTION_LENGTH = 1e-12
"""m; the direction of a shorter vector is rounding noise and is not used."""
MIN_AXIS_SINE = 1e-9
"""Sine of the angle to z below which the direction of tilt is rounding noise."""

FALLBACK_DIRECTION = np.array([1.0, 0.0, 0.0])
"""Direction that is used where a direction is undefined."""


def evaluate_relation(mechanism: Mechanism, relation: Relation, q: ArrayLike) -> tuple[Array, Array]:
    """Evaluate a relation at q (nq,): values (rows,) in the units of its kind, and Jacobian (rows, nv).

    Raises:
        ShapeError: q is not one configuration, or a row does not exist in this kind.
    """
    configuration = mechanism.space.check_q(q)
    if configuration.ndim != 1:
        raise ShapeError(f"q must be one configuration (nq,), not an array of shape {configuration.shape}")
    residual, J = _EVALUATOR_BY_KIND[relation.kind](mechanism, relation, configuration)
    rows = list(relation.rows)
    if any(not 0 <= row < len(residual) for row in rows):
        raise ShapeError(
            f"a relation of kind {relation.kind.name} has {len(residual)} rows; rows {relation.rows} do not all exist"
        )
    return residual[rows], J[rows]


def is_evaluated_together(relation: Relation) -> bool:
    """Return whether `evaluate_relations` computes a relation for all configurations together."""
    if relation.kind is RelationKind.CENTRE_OF_MASS:
        return True
    is_fixed = relation.a is None and relation.b is None
    return relation.kind in (RelationKind.POSE, RelationKind.COSINE) and relation.world_axes is None and not is_fixed


def evaluate_relations(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    """Evaluate a relation at many configurations q (K, nq): values (K, rows), and Jacobians (K, rows, nv).

    Poses and cosines in the axes of frame A, and centres of mass, are computed for all configurations together, other
    relations one by one.
    """
    if not is_evaluated_together(relation) or not len(q):
        results = [evaluate_relation(mechanism, relation, configuration) for configuration in q]
        rows = len(relation.rows)
        return (
            np.array([values for values, _ in results]).reshape(len(q), rows),
            np.array([J for _, J in results]).reshape(len(q), rows, mechanism.nv),
        )
    rows = list(relation.rows)
    if relation.kind is RelationKind.CENTRE_OF_MASS:
        values, J = _evaluate_centre_of_mass(mechanism, relation, q)
        return values[:, rows], J[:, rows]
    A, B, J_linear, J_angular = _relative_motion(mechanism, relation, q)
    R_A_world = np.swapaxes(A.R, -1, -2)
    if relation.kind is RelationKind.COSINE:
        u = (R_A_world @ B.R[..., 2:])[..., 0]
        return u[..., 2:], _rotated_axis_jacobian(J_angular, u)[..., 2:, :]
    p = _relative_position(A, B)
    if max(rows) < 3:
        return p[:, rows], J_linear[:, rows]
    rotation_vector = rotation.log(R_A_world @ B.R)
    J_rotation_vector = rotation.left_jacobian_inverse(rotation_vector) @ J_angular
    values, J = np.concatenate([p, rotation_vector], axis=1), np.concatenate([J_linear, J_rotation_vector], axis=1)
    return values[:, rows], J[:, rows]


def band_violation(relation: Relation, values: Array) -> Array:
    """Return the signed distance of values (..., rows) to their bands; without a band, the values themselves."""
    lower, upper = _band(relation)
    return values - np.clip(values, lower, upper)


def is_band_active(relation: Relation, values: Array) -> npt.NDArray[np.bool_]:
    """Return the mask (..., rows) of values at which `band_violation` varies; elsewhere its derivative is zero."""
    lower, upper = _band(relation)
    return (values < lower) | (values > upper) | (lower == upper)


def _band(relation: Relation) -> tuple[Array, Array]:
    size = len(relation.rows)
    if relation.lower is None and relation.upper is None:
        return np.zeros(size), np.zeros(size)
    lower = np.full(size, -np.inf) if relation.lower is None else relation.lower
    upper = np.full(size, np.inf) if relation.upper is None else relation.upper
    return lower, upper


# ---- relations between two frames ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """Frame at q in the world: rotation R (..., 3, 3), origin p (..., 3), linear and angular Jacobian (..., 3, nv)."""

    R: Array
    p: Array
    J_linear: Array
    J_angular: Array


def _frame_in_world(mechanism: Mechanism, link: str | None, X_link_frame: Array, q: Array) -> _Frame:
    if link is None:
        no_motion = np.zeros((3, mechanism.nv))
        return _Frame(X_link_frame[:3, :3], X_link_frame[:3, 3], no_motion, no_motion)
    X = mechanism.pose(link, q) @ X_link_frame
    J = mechanism.jacobian(link, q, X_link_frame[:3, 3])
    return _Frame(X[..., :3, :3], X[..., :3, 3], J[..., :3, :], J[..., 3:, :])


def _relative_motion(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[_Frame, _Frame, Array, Array]:
    """Return A, B, and the linear and angular Jacobian (..., 3, nv) of B relative to A, in the axes of A."""
    A, B = (_frame_in_world(mechanism, *end, q) for end in ((relation.a, relation.X_a), (relation.b, relation.X_b)))
    J_linear, J_angular = _relative_jacobians(A, B)
    mask = _relative_dof_mask(mechanism, relation.a, relation.b)
    return A, B, np.where(mask, J_linear, 0.0), np.where(mask, J_angular, 0.0)


def _relative_position(A: _Frame, B: _Frame) -> Array:
    """Return the origin of B (..., 3) in the axes of A."""
    return np.asarray((np.swapaxes(A.R, -1, -2) @ (B.p - A.p)[..., None])[..., 0])


def _relative_jacobians(A: _Frame, B: _Frame) -> tuple[Array, Array]:
    """Return the linear and angular Jacobian (..., 3, nv) of B relative to A, in the axes of A."""
    # Jacobian of the origin of B if B were fixed to A
    J_fixed_to_a = A.J_linear - rotation.hat(B.p - A.p) @ A.J_angular
    R_A_world = np.swapaxes(A.R, -1, -2)
    return R_A_world @ (B.J_linear - J_fixed_to_a), R_A_world @ (B.J_angular - A.J_angular)


def _relative_dof_mask(mechanism: Mechanism, a: str | None, b: str | None) -> npt.NDArray[np.bool_]:
    """Return the mask (nv,) of dofs that move two links relative to each other.

    The Jacobian columns of the other dofs are zero; computed, they would contain rounding errors.
    """
    paths = [np.zeros((0, Node.size)) if link is None else mechanism.kinematics.path(link)[:-1] for link in (a, b)]
    shared_count = 0
    while shared_count < min(map(len, paths)) and np.array_equal(paths[0][shared_count], paths[1][shared_count]):
        shared_count += 1
    mask = np.zeros(mechanism.nv, dtype=np.bool_)
    for node in [*paths[0][shared_count:], *paths[1][shared_count:]]:
        first_v, size = Node(node).first_v, 3 if Node(node).kind in (TRANSLATION, SPHERICAL) else 1
        mask[first_v : first_v + size] = True
    return mask


def _relative_pose(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array, Array, Array]:
    """Return B relative to A: position (3,), rotation (3, 3), linear and angular Jacobian (3, nv)."""
    A, B, J_linear, J_angular = _relative_motion(mechanism, relation, q)
    if relation.world_axes is None:
        return A.R.T @ (B.p - A.p), A.R.T @ B.R, J_linear, J_angular
    # world axes do not rotate with A, so dofs that move both frames change the result too: no mask is applied
    C = relation.world_axes
    R_relative = C.T @ B.R @ A.R.T @ C
    J_linear = C.T @ (B.J_linear - A.J_linear)
    return C.T @ (B.p - A.p), R_relative, J_linear, C.T @ B.J_angular - R_relative @ (C.T @ A.J_angular)


def _evaluate_pose(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    p, R, J_linear, J_angular = _relative_pose(mechanism, relation, q)
    rotation_vector = rotation.log(R)
    J_rotation_vector = rotation.left_jacobian_inverse(rotation_vector) @ J_angular
    return np.concatenate([p, rotation_vector]), np.vstack([J_linear, J_rotation_vector])


def _evaluate_axis(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    p, R, J_linear, J_angular = _relative_pose(mechanism, relation, q)
    tilt, derivative = _tilt(R[:, 2])
    return np.concatenate([p, tilt]), np.vstack([J_linear, derivative @ _rotated_axis_jacobian(J_angular, R[:, 2])])


def _evaluate_cosine(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    _, R, _, J_angular = _relative_pose(mechanism, relation, q)
    return R[2:, 2], _rotated_axis_jacobian(J_angular, R[:, 2])[2:]


def _evaluate_look_at(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    A, B, J_linear, _ = _relative_motion(mechanism, relation, q)
    line_of_sight = A.R.T @ (B.p - A.p)
    distance = float(np.linalg.norm(line_of_sight))
    if distance < MIN_DIRECTION_LENGTH:  # the direction between coincident points is undefined
        return np.zeros(2), np.zeros((2, mechanism.nv))
    u = line_of_sight / distance
    tilt, derivative = _tilt(u)
    return tilt, derivative @ (J_linear - np.outer(u, u @ J_linear)) / distance


def _evaluate_distance(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    A, B, J_linear, _ = _relative_motion(mechanism, relation, q)
    difference = A.R.T @ (B.p - A.p)
    distance = float(np.linalg.norm(difference))
    # coincident points have no gradient; a fixed direction lets a solver separate them
    u = difference / distance if distance >= MIN_DIRECTION_LENGTH else FALLBACK_DIRECTION
    return np.array([distance]), (u @ J_linear)[None]


def _tilt(u: Array) -> tuple[Array, Array]:
    """Return the tilt (2,) of a unit vector u (3,), rad, and the derivative of the tilt by u, (2, 3).

    The tilt is (x, y) of u, scaled so that its length is the angle between u and z. For u opposite to z the direction
    of the tilt is undefined: then the tilt is along x, with zero derivative along y.
    """
    sine = math.hypot(u[0], u[1])
    angle = math.atan2(sine, u[2])
    if sine < MIN_AXIS_SINE:
        direction, scale = FALLBACK_DIRECTION[:2], 1.0 if u[2] > 0.0 else 0.0
        tilt = u[:2] if u[2] > 0.0 else angle * direction
    else:
        direction, scale = u[:2] / sine, angle / sine
        tilt = angle * direction
    projector = np.outer(direction, direction)
    derivative = np.empty((2, 3))
    derivative[:, :2] = u[2] * projector + scale * (np.eye(2) - projector)
    derivative[:, 2] = -sine * direction
    return tilt, derivative


def _rotated_axis_jacobian(J_angular: Array, u: Array) -> Array:
    """Return the Jacobian (..., 3, nv) of a vector u (..., 3) that rotates with the angular Jacobian (..., 3, nv)."""
    return -rotation.hat(u) @ J_angular


# ---- other relations ----------------------------------------------------------------------------


def _evaluate_centre_of_mass(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    """Return the centre of mass (..., 3) in frame A, and its Jacobian (..., 3, nv), at q (..., nq)."""
    A = _frame_in_world(mechanism, relation.a, relation.X_a, q)
    total_mass = sum(mass for _, mass, _ in relation.masses)
    if not total_mass > 0.0:
        raise StructureError("a centre of mass needs links with a mass above zero")
    centre, J = np.zeros((*q.shape[:-1], 3)), np.zeros((*q.shape[:-1], 3, mechanism.nv))
    for link, mass, p_link in relation.masses:
        B = _frame_in_world(mechanism, link, translation(p_link), q)
        share = mass / total_mass
        centre += share * _relative_position(A, B)
        J += share * np.where(_relative_dof_mask(mechanism, relation.a, link), _relative_jacobians(A, B)[0], 0.0)
    return centre, J


def _evaluate_joint_value(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    space = mechanism.space
    if relation.dof_name not in space.q_names:
        raise UnknownName("dof", relation.dof_name, space.q_names)
    k = space.q_names.index(relation.dof_name)
    if k not in space.scalars_q:
        raise DoFError(f"{relation.dof_name!r} is part of a quaternion; set a target for the whole spherical joint")
    J = np.zeros((1, space.nv))
    J[0, space.scalars_v[np.flatnonzero(space.scalars_q == k)[0]]] = 1.0
    return q[k : k + 1] - relation.target, J


def _evaluate_joint_constraint(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    total, J, space = -float(relation.target[0]), np.zeros((1, mechanism.nv)), mechanism.space
    for dof_name, coefficients in relation.polynomials:
        q_index, v_index = space.q_names.index(dof_name), space.v_names.index(dof_name)
        for power, coefficient in enumerate(coefficients, start=1):
            total += coefficient * q[q_index] ** power
            J[0, v_index] += coefficient * power * q[q_index] ** (power - 1)
    return np.array([total]), J


def _evaluate_height(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    if relation.terrain is None:
        raise StructureError("a relation of kind HEIGHT has no terrain")
    p, _, J_linear, _ = _relative_pose(mechanism, relation, q)
    height, dh_dx, dh_dy = relation.terrain.height_and_gradient(p[0], p[1])
    return np.array([p[2] - height]), (J_linear[2] - dh_dx * J_linear[0] - dh_dy * J_linear[1])[None]


def _evaluate_spherical_joint(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    indices = mechanism.kinematics.joint_indices.get(mechanism.joint(relation.dof_name))
    if indices is None or indices.quaternion_q is None or indices.quaternion_v is None:
        raise DoFError(f"joint {relation.dof_name!r} is not spherical; set a target for each dof")
    wxyz = quaternion.normalize(q[indices.quaternion_q : indices.quaternion_q + 4])
    rotation_vector = quaternion.log(quaternion.multiply(quaternion.conjugate(relation.target), wxyz))
    J = np.zeros((3, mechanism.nv))
    # v of a spherical joint is an angular velocity in the body frame, so the right Jacobian applies
    J[:, indices.quaternion_v : indices.quaternion_v + 3] = rotation.right_jacobian_inverse(rotation_vector)
    return rotation_vector, J


def _evaluate_function(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    if relation.function is None:
        raise StructureError("a relation of kind FUNCTION has no function")
    return relation.function(mechanism, q)


_Evaluator = Callable[[Mechanism, Relation, Array], tuple[Array, Array]]
_EVALUATORS: Sequence[_Evaluator] = (
    _evaluate_pose,
    _evaluate_axis,
    _evaluate_cosine,
    _evaluate_look_at,
    _evaluate_distance,
    _evaluate_centre_of_mass,
    _evaluate_joint_value,
    _evaluate_spherical_joint,
    _evaluate_function,
    _evaluate_joint_constraint,
    _evaluate_height,
)
_EVALUATOR_BY_KIND = dict(zip(RelationKind, _EVALUATORS, strict=True))
