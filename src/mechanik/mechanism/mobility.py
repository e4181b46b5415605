"""How freely a mechanism moves: counted by formula, and found from its Jacobian."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.errors import WrongKind
from mechanik.mechanism import reference
from mechanik.mechanism.closure import Closure
from mechanik.mechanism.dof import ROTATIONS, DoF
from mechanik.mechanism.mechanism import Mechanism
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array

RANK_TOLERANCE = 1e-8
"""Singular values below this share of the largest count as zero; rows are of the size of the mechanism."""


@dataclass(frozen=True, slots=True)
class Mobility:
    """
    Attributes:
        freedoms: nv, of the tree without its closures.
        constraints: rows that the closures take away, were they independent.
        gruebler: freedoms - constraints, the count of Grübler and Kutzbach; wrong for special geometry.
        dof: the true number of freedoms at the present configuration; None while a loop stands open.
        redundant: constraint rows that say nothing new there.
    """

    freedoms: int
    constraints: int
    gruebler: int
    dof: int | None
    redundant: int | None


def mobility(mechanism: Mechanism, tolerance: float = 1e-6) -> Mobility:
    """The freedoms of the mechanism where its joints are now.

    Args:
        tolerance: how far (m and rad) a closure may stand open and still count as shut.
    """
    if not isinstance(mechanism, Mechanism):
        raise WrongKind(f"only a mechanism has mobility, not {mechanism!r}")
    closures = list(mechanism.closures.values())
    constraints = sum(len(closure.constrained) for closure in closures)
    gruebler = mechanism.nv - constraints
    if any(not closure.gap().is_shut(tolerance) for closure in closures):
        return Mobility(mechanism.nv, constraints, gruebler, None, None)
    rows = [np.zeros((0, mechanism.nv)), *(closure_jacobian(mechanism, closure) for closure in closures)]
    rank = _rank(np.concatenate(rows))
    return Mobility(mechanism.nv, constraints, gruebler, mechanism.nv - rank, constraints - rank)


def closure_jacobian(mechanism: Mechanism, closure: Closure) -> Array:
    """How fast each direction that a shut closure takes away would open: (constrained, nv), m and rad."""
    joint, link = closure.joint, closure.link
    X_world_end = link.world_matrix @ closure.at.matrix
    point = X_world_end[:3, 3]
    apart = reference.jacobian(mechanism, link, point)
    if joint.parent is not None:
        apart = apart - reference.jacobian(mechanism, joint.parent, point)
    R_world_axes = joint.world_matrix[:3, :3] @ quaternion.to_matrix(joint.axes_wxyz)
    rows = [R_world_axes[:, dof.direction] @ apart[:3] for dof in closure.constrained if not dof.is_rotation]
    rows += [normal @ apart[3:] for normal in _taken_turns(closure, R_world_axes)]
    return np.array(rows).reshape(len(rows), mechanism.nv)


def _taken_turns(closure: Closure, R_world_axes: Array) -> Array:
    """World directions about which the closure lets nothing turn: what is normal to its free axes."""
    values = np.zeros(6)
    values[list(closure.free)] = closure.measure()
    axes: list[Array] = []
    R = R_world_axes
    for dof in reversed(ROTATIONS):
        if dof in closure.free:
            axes.append(R[:, dof.direction])
            R = R @ _elementary(dof, values[dof])
    if not axes or len(axes) == 3:
        return np.eye(3)[len(axes) :]
    _, sizes, normals = np.linalg.svd(np.array(axes))
    return normals[int((sizes > 1e-9).sum()) :]


def _elementary(dof: DoF, angle: float) -> Array:
    return quaternion.to_matrix(quaternion.from_axis_angle(np.eye(3)[dof.direction], angle))


def _rank(J: Array) -> int:
    if not J.size:
        return 0
    sizes = np.linalg.svd(J, compute_uv=False)
    return int((sizes > RANK_TOLERANCE * max(float(sizes[0]), 1e-12)).sum())
