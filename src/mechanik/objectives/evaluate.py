"""Relations in plain NumPy: the rows as `relation.py` defines them, and how each number of v changes them.

Slow and easy to believe: the compiled kernel is tested against it, and what people read one by one comes from it.
Bands and weights are left to the caller, who finds the first in `outside`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.errors import DoFError, ShapeError, StructureError, UnknownName
from mechanik.kernels.layout import BALL, FIRST_V, KIND, ROW, SLIDE
from mechanik.mechanism import Mechanism
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial import quaternion, rotation
from mechanik.spatial.array import Array, ArrayLike

NO_DIRECTION = 1e-12
"""m; a shorter vector has a direction by rounding only, and one is chosen instead."""
NO_SIDE = 1e-9
"""The sine of the angle to z below which nobody can tell to which side an axis leans."""

X_AXIS = np.array([1.0, 0.0, 0.0])


def evaluate(mechanism: Mechanism, relation: Relation, q: ArrayLike) -> tuple[Array, Array]:
    """The rows of a relation (rows,), and their derivative by v (rows, nv), at q (nq,); m and rad."""
    configuration = mechanism.space.check_q(q)
    if configuration.ndim != 1:
        raise ShapeError(f"one configuration is needed here, not an array of shape {configuration.shape}")
    rows, J = _KINDS[relation.kind](mechanism, relation, configuration)
    wanted = list(relation.rows)
    if any(not 0 <= row < len(rows) for row in wanted):
        raise ShapeError(
            f"a relation of kind {relation.kind.name} has {len(rows)} rows; {relation.rows} were asked for"
        )
    return rows[wanted], J[wanted]


def outside(relation: Relation, rows: Array) -> Array:
    """How far rows (..., rows) lie outside their bands, with sign; the rows themselves where there is no band."""
    lower, upper = _band(relation)
    return rows - np.clip(rows, lower, upper)


def counts(relation: Relation, rows: Array) -> npt.NDArray[np.bool_]:
    """(..., rows), whether `outside` follows the row there, so that it has the row's derivative and not zero."""
    lower, upper = _band(relation)
    return (rows < lower) | (rows > upper) | (lower == upper)


def _band(relation: Relation) -> tuple[Array, Array]:
    size = len(relation.rows)
    if relation.lower is None and relation.upper is None:
        return np.zeros(size), np.zeros(size)
    lower = np.full(size, -np.inf) if relation.lower is None else relation.lower
    upper = np.full(size, np.inf) if relation.upper is None else relation.upper
    return lower, upper


# ---- two frames ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """A frame at q in the world: rotation (3, 3), origin (3,), and their velocities for each number of v, (3, nv)."""

    R: Array
    p: Array
    v: Array
    w: Array


def _frame(mechanism: Mechanism, link: str | None, X_link_frame: Array, q: Array) -> _Frame:
    if link is None:
        still = np.zeros((3, mechanism.nv))
        return _Frame(X_link_frame[:3, :3], X_link_frame[:3, 3], still, still)
    X = mechanism.pose(link, q) @ X_link_frame
    J = mechanism.jacobian(link, q, X_link_frame[:3, 3])
    return _Frame(X[:3, :3], X[:3, 3], J[:3], J[3:])


def _apart(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[_Frame, _Frame, Array, Array]:
    """A and B, and how B moves as seen by one who sits on A: velocity of its origin, and angular, (3, nv), in A."""
    A, B = (_frame(mechanism, *end, q) for end in ((relation.a, relation.X_a), (relation.b, relation.X_b)))
    carried = A.v + np.cross(A.w, (B.p - A.p)[:, None], axis=0)  # B's origin, were it fixed to A
    moves = _moves(mechanism, relation.a, relation.b)
    return A, B, np.where(moves, A.R.T @ (B.v - carried), 0.0), np.where(moves, A.R.T @ (B.w - A.w), 0.0)


def _moves(mechanism: Mechanism, a: str | None, b: str | None) -> npt.NDArray[np.bool_]:
    """(nv,), what moves two links against each other: what stands above both does so by rounding only."""
    paths = [np.zeros((0, ROW)) if link is None else mechanism.kinematics.path(link)[:-1] for link in (a, b)]
    shared = 0
    while shared < min(map(len, paths)) and np.array_equal(paths[0][shared], paths[1][shared]):
        shared += 1
    moves = np.zeros(mechanism.nv, dtype=np.bool_)
    for node in [*paths[0][shared:], *paths[1][shared:]]:
        first, size = int(node[FIRST_V]), 3 if node[KIND] in (SLIDE, BALL) else 1
        moves[first : first + size] = True
    return moves


def _seen(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array, Array, Array]:
    """Where B stands as seen from A: position (3,), rotation (3, 3), and how v moves it, linear and angular (3, nv)."""
    A, B, v, w = _apart(mechanism, relation, q)
    if relation.world_axes is None:
        return A.R.T @ (B.p - A.p), A.R.T @ B.R, v, w
    # axes that stay in the world do not turn with A, so what carries both ends along is seen
    C = relation.world_axes
    Q = C.T @ B.R @ A.R.T @ C
    return C.T @ (B.p - A.p), Q, C.T @ (B.v - A.v), C.T @ B.w - Q @ (C.T @ A.w)


def _pose(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    p, R, v, w = _seen(mechanism, relation, q)
    turn = rotation.log(R)
    return np.concatenate([p, turn]), np.vstack([v, rotation.left_jacobian_inverse(turn) @ w])


def _axis(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    p, R, v, w = _seen(mechanism, relation, q)
    lean, by_direction = _lean(R[:, 2])
    return np.concatenate([p, lean]), np.vstack([v, by_direction @ _swept(w, R[:, 2])])


def _cosine(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    _, R, _, w = _seen(mechanism, relation, q)
    return R[2:, 2], _swept(w, R[:, 2])[2:]


def _look(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    A, B, v, _ = _apart(mechanism, relation, q)
    gaze = A.R.T @ (B.p - A.p)
    distance = float(np.linalg.norm(gaze))
    if distance < NO_DIRECTION:  # what is in the eye is seen wherever it looks
        return np.zeros(2), np.zeros((2, mechanism.nv))
    u = gaze / distance
    lean, by_direction = _lean(u)
    return lean, by_direction @ (v - np.outer(u, u @ v)) / distance


def _distance(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    A, B, v, _ = _apart(mechanism, relation, q)
    between = A.R.T @ (B.p - A.p)
    distance = float(np.linalg.norm(between))
    # where they meet every way leads apart; one is chosen, so that a solver that wants them apart can go
    u = between / distance if distance >= NO_DIRECTION else X_AXIS
    return np.array([distance]), (u @ v)[None]


def _lean(u: Array) -> tuple[Array, Array]:
    """(x, y) of a unit vector, stretched so that its length is the angle to z (2,), and its derivative by u (2, 3).

    Opposite to z no way is shortest: the one over x is chosen, and turning aside from it counts for nothing.
    """
    s = math.hypot(u[0], u[1])
    angle = math.atan2(s, u[2])
    if s < NO_SIDE:
        t, stretch = X_AXIS[:2], 1.0 if u[2] > 0.0 else 0.0
        lean = u[:2] if u[2] > 0.0 else angle * t
    else:
        t, stretch = u[:2] / s, angle / s
        lean = angle * t
    along = np.outer(t, t)
    derivative = np.empty((2, 3))
    derivative[:, :2] = u[2] * along + stretch * (np.eye(2) - along)
    derivative[:, 2] = -s * t
    return lean, derivative


def _swept(w: Array, u: Array) -> Array:
    """(3, nv), how a vector that turns with angular velocities w (3, nv) changes."""
    return np.cross(w, u[:, None], axis=0)


# ---- the rest -----------------------------------------------------------------------------------


def _mass(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    A = _frame(mechanism, relation.a, relation.X_a, q)
    total = sum(mass for _, mass, _ in relation.masses)
    if not total > 0.0:
        raise StructureError("a centre of mass needs links that weigh something")
    centre, J = np.zeros(3), np.zeros((3, mechanism.nv))
    for link, mass, p_link in relation.masses:
        X = mechanism.pose(link, q)
        p_A = A.R.T @ (X[:3, :3] @ p_link + X[:3, 3] - A.p)
        carried = A.v + np.cross(A.w, (A.R @ p_A)[:, None], axis=0)
        v = A.R.T @ (mechanism.jacobian(link, q, p_link)[:3] - carried)
        centre += mass / total * p_A
        J += mass / total * np.where(_moves(mechanism, relation.a, link), v, 0.0)
    return centre, J


def _value(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    space = mechanism.space
    if relation.freedom not in space.q_names:
        raise UnknownName("freedom", relation.freedom, space.q_names)
    k = space.q_names.index(relation.freedom)
    if k not in space.scalars_q:
        raise DoFError(f"{relation.freedom!r} is a part of a quaternion; a ball is wanted as a whole")
    J = np.zeros((1, space.nv))
    J[0, space.scalars_v[np.flatnonzero(space.scalars_q == k)[0]]] = 1.0
    return q[k : k + 1] - relation.target, J


def _law(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    total, J, space = -float(relation.target[0]), np.zeros((1, mechanism.nv)), mechanism.space
    for freedom, factors in relation.polynomials:
        k, v = space.q_names.index(freedom), space.v_names.index(freedom)
        for power, factor in enumerate(factors, start=1):
            total += factor * q[k] ** power
            J[0, v] += factor * power * q[k] ** (power - 1)
    return np.array([total]), J


def _height(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    if relation.terrain is None:
        raise StructureError("a relation of kind HEIGHT has no terrain")
    p, _, v, _ = _seen(mechanism, relation, q)
    height, by_x, by_y = relation.terrain.height_and_slope(p[0], p[1])
    return np.array([p[2] - height]), (v[2] - by_x * v[0] - by_y * v[1])[None]


def _turn(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    slot = mechanism.kinematics.slots.get(mechanism.joint(relation.freedom))
    if slot is None or slot.ball_q is None or slot.ball_v is None:
        raise DoFError(f"joint {relation.freedom!r} is no ball; its freedoms are wanted one by one")
    turned = quaternion.normalize(q[slot.ball_q : slot.ball_q + 4])
    turn = quaternion.log(quaternion.multiply(quaternion.conjugate(relation.target), turned))
    J = np.zeros((3, mechanism.nv))
    J[:, slot.ball_v : slot.ball_v + 3] = rotation.right_jacobian_inverse(turn)  # v turns it about its own axes
    return turn, J


def _function(mechanism: Mechanism, relation: Relation, q: Array) -> tuple[Array, Array]:
    if relation.function is None:
        raise StructureError("a relation of kind FUNCTION has no function")
    return relation.function(mechanism, q)


_Evaluation = Callable[[Mechanism, Relation, Array], tuple[Array, Array]]
_IN_ORDER: Sequence[_Evaluation] = (
    _pose,
    _axis,
    _cosine,
    _look,
    _distance,
    _mass,
    _value,
    _turn,
    _function,
    _law,
    _height,
)
_KINDS = dict(zip(Kind, _IN_ORDER, strict=True))
