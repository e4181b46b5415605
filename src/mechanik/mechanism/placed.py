"""Links and their velocities at any q, in plain NumPy: for what is asked rarely; no joint moves, nothing compiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.errors import UnknownName
from mechanik.kernels.layout import BALL, FIRST_Q, FIRST_V, KIND, OFFSET, PARENT, PRISMATIC, RATIO, SLIDE
from mechanik.mechanism.kinematics import Kinematics
from mechanik.spatial import apply, make, quaternion, rotation
from mechanik.spatial.array import Array

ORIGIN = np.zeros(3)


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """A link at q, as a body that the freedoms carry along.

    Attributes:
        X: X_world_link, (4, 4).
        twist: (6, nv), for each number of v the world velocity of the link's point that is at the world's origin
            (linear), and the angular velocity.
        nodes: the elementary motions above it, by number.
    """

    X: Array
    twist: Array
    nodes: frozenset[int]

    def at(self, point: Array) -> Array:
        """World twists (linear, angular) of the link's point that is now at `point` (3,) in the world: (6, nv)."""
        J = self.twist.copy()
        J[:3] += np.cross(J[3:], point[:, None], axis=0)
        return J


class Placed:
    """All moving frames of a mechanism at q (nq,)."""

    def __init__(self, kinematics: Kinematics, q: Array) -> None:
        self.kinematics = kinematics
        self.X: list[Array] = []
        self.columns: list[list[tuple[int, Array]]] = []
        for node in kinematics.nodes:
            above = int(node[PARENT])
            X = make(node[:9].reshape(3, 3), node[9:12])
            X, columns = _moved(X if above < 0 else self.X[above] @ X, node, q)
            self.X.append(X)
            self.columns.append(columns)

    def carried(self, link: str | None) -> Carried:
        """A link by its name; None is the world."""
        twist = np.zeros((6, self.kinematics.space.nv))
        if link is None:
            return Carried(np.eye(4), twist, frozenset())
        if link not in self.kinematics.links:
            raise UnknownName("link", link, self.kinematics.links)
        end = self.kinematics.ends[self.kinematics.links.index(link)]
        node, X = int(end[PARENT]), make(end[:9].reshape(3, 3), end[9:12])
        if node >= 0:
            X = self.X[node] @ X
        nodes: list[int] = []
        while node >= 0:
            nodes.append(node)
            for column, screw in self.columns[node]:
                twist[:, column] += screw
            node = int(self.kinematics.nodes[node][PARENT])
        return Carried(X, twist, frozenset(nodes))

    def between(self, one: Carried, other: Carried) -> frozenset[int]:
        """The numbers of v that move two links against each other; what stands above both does not."""
        return frozenset(column for node in one.nodes ^ other.nodes for column, _ in self.columns[node])


def _moved(X: Array, node: Array, q: Array) -> tuple[Array, list[tuple[int, Array]]]:
    """Where a node comes to from X (4, 4), and for each of its numbers of v the twist (6,) at the world's origin."""
    kind, k, v = int(node[KIND]), int(node[FIRST_Q]), int(node[FIRST_V])
    if kind == SLIDE:
        moved = make(X[:3, :3], apply(X, q[k : k + 3]))
        return moved, [(v + axis, np.r_[X[:3, axis], ORIGIN]) for axis in range(3)]
    if kind == BALL:
        moved = X @ make(quaternion.to_matrix(quaternion.normalize(q[k : k + 4])), ORIGIN)
        return moved, [(v + axis, _turn(moved[:3, axis], moved[:3, 3])) for axis in range(3)]
    value, ratio = float(node[RATIO] * q[k] + node[OFFSET]), float(node[RATIO])
    if kind == PRISMATIC:
        return make(X[:3, :3], X[:3, 3] + value * X[:3, 2]), [(v, ratio * np.r_[X[:3, 2], ORIGIN])]
    moved = X @ make(rotation.turn_z(value), ORIGIN)
    return moved, [(v, ratio * _turn(X[:3, 2], X[:3, 3]))]


def _turn(axis: Array, on: Array) -> Array:
    return np.r_[np.cross(on, axis), axis]
