"""Residual and Jacobian of a placement as Klampt defines them, found by comparing with Klampt 0.10.

| rule | rows |
|---|---|
| Fixed | point of the link less target, along the axes of the world (m) |
| Linear | the same along y and z, as the smallest turn that brings x onto the direction leaves them (m) |
| Planar | the same along the direction (m) |
| FixedRotation | rotation vector that leads from the target to the link, along the axes of the world (rad) |
| Aligned | 1 - cosine of the angle + abs(y or z) of the link's axis, y and z as in Linear |

The rows of `Aligned` have a kink where the axes agree; the derivative there is the one for positive numbers. Between
two links Klampt knows the rules `Fixed` and `FixedRotation` only; the others are here taken along with the link that
carries the target.
"""

from __future__ import annotations

import numpy as np

from mechanik.errors import ObjectiveError
from mechanik.mechanism.mechanism import Mechanism
from mechanik.objectives.position_rules import Fixed, Planar, PositionRule
from mechanik.objectives.rotation_rules import Aligned, FixedRotation, RotationRule
from mechanik.spatial import rotation
from mechanik.spatial.array import Array, ArrayLike

X_AXIS = np.array([1.0, 0.0, 0.0])
ORIGIN = np.zeros(3)


def klampt_rows(
    mechanism: Mechanism,
    q: ArrayLike,
    a: str | None,
    b: str,
    position: PositionRule | None,
    turn: RotationRule | None,
) -> tuple[Array, Array]:
    """Residual (m,) and Jacobian (m, nv); targets are given in link `a` (None: in the world), the rest in link `b`."""
    at = mechanism._one(q)
    rows = [(np.zeros(0), np.zeros((0, mechanism.nv)))]
    if position is not None:
        rows.append(_position(mechanism, at, a, b, position))
    if turn is not None:
        rows.append(_rotation(mechanism, at, a, b, turn))
    return np.concatenate([one for one, _ in rows]), np.concatenate([J for _, J in rows])


def _position(m: Mechanism, q: Array, a: str | None, b: str, rule: PositionRule) -> tuple[Array, Array]:
    R_a, target, carried, w_a = _carried(m, q, a, rule.target)
    _, p, v, _ = _carried(m, q, b, rule.local)
    apart = p - target
    if isinstance(rule, Fixed):
        return apart, v - carried
    axes = rule.direction[None] if isinstance(rule, Planar) else _sideways(rule.direction)
    along = axes @ R_a.T
    return along @ apart, along @ (v - carried) + np.cross(along, apart) @ w_a


def _rotation(m: Mechanism, q: Array, a: str | None, b: str, rule: RotationRule) -> tuple[Array, Array]:
    R_a, _, _, w_a = _carried(m, q, a, ORIGIN)
    R_b, _, _, w_b = _carried(m, q, b, ORIGIN)
    if isinstance(rule, FixedRotation):
        Q = R_b @ rule.wanted.T @ R_a.T
        turn = rotation.log(Q)
        return turn, rotation.left_jacobian_inverse(turn) @ (w_b - Q @ w_a)
    if isinstance(rule, Aligned):
        axis_world = R_b @ rule.local
        axis = R_a.T @ axis_world
        swept = R_a.T @ np.cross(w_b - w_a, axis_world[:, None], axis=0)
        sideways = _sideways(rule.target)
        amounts = sideways @ axis
        sign = np.where(amounts < 0.0, -1.0, 1.0)
        return 1.0 - rule.target @ axis + np.abs(amounts), (sign[:, None] * sideways - rule.target) @ swept
    raise ObjectiveError("one turn of three is not among Klampt's rules, so it has no rows of Klampt's")


def _carried(m: Mechanism, q: Array, link: str | None, point: Array) -> tuple[Array, Array, Array, Array]:
    """A link's rotation, where its point is, and how v moves both in the world: (3, nv) linear, (3, nv) angular."""
    if link is None:
        still = np.zeros((3, m.nv))
        return np.eye(3), point, still, still
    X, J = m.pose(link, q), m.jacobian(link, q, point)
    return X[:3, :3], X[:3, :3] @ point + X[:3, 3], J[:3], J[3:]


def _sideways(direction: Array) -> Array:
    """y and z as rows (2, 3), turned as little as brings x onto the direction."""
    return rotation.between(X_AXIS, direction)[:, 1:].T
