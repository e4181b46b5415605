"""How far loops stand open, at many configurations at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mechanik.mechanism import Mechanism
from mechanik.objectives.closures import closure_relations
from mechanik.objectives.evaluate import NO_SIDE
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial import rotation
from mechanik.spatial.array import Array


def loop_gaps(mechanism: Mechanism, q: Array) -> Array:
    """(N,) the farthest that a loop stands open at each of q (N, nq), m or rad; 0 where there are no loops."""
    gaps = np.zeros(len(q))
    if not mechanism.closures:
        return gaps
    X_world = dict(zip(mechanism.links, np.moveaxis(mechanism.poses(q), 1, 0), strict=True))
    for closure in mechanism.closures.values():
        for relation in closure_relations(mechanism, closure):
            gaps = np.maximum(gaps, np.abs(_rows(relation, X_world)).max(axis=1, initial=0.0))
    return gaps


def _rows(relation: Relation, X_world: Mapping[str, Array]) -> Array:
    """(N, rows) of a relation of one of the kinds that closures have, as `relation.py` defines them."""
    A, B = (
        X_link if link is None else X_world[link] @ X_link
        for link, X_link in ((relation.a, relation.X_a), (relation.b, relation.X_b))
    )
    R_a, R_b, apart = A[..., :3, :3], B[..., :3, :3], B[..., :3, 3] - A[..., :3, 3]
    back = np.swapaxes(R_a, -1, -2)
    C = relation.world_axes
    p, R = (back, back @ R_b) if C is None else (C.T, C.T @ R_b @ back @ C)
    p = (p @ apart[..., None])[..., 0]
    if relation.kind is Kind.COSINE:
        return R[..., 2, 2, None]
    turn = rotation.log(R) if relation.kind is Kind.POSE else _lean(R[..., :, 2])
    return np.concatenate([p, turn], axis=-1)[..., list(relation.rows)]


def _lean(u: Array) -> Array:
    """(N, 2), x and y of unit vectors (N, 3), stretched so that their length is the angle to z."""
    side = np.hypot(u[..., 0], u[..., 1])[..., None]
    angle = np.arctan2(side, u[..., 2:])
    over_x = np.where(u[..., 2:] > 0.0, u[..., :2], angle * np.array([1.0, 0.0]))
    return np.where(side < NO_SIDE, over_x, angle * u[..., :2] / np.maximum(side, NO_SIDE))
