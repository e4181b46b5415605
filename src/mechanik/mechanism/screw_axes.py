"""A serial chain as lines in space: the axes of its turning joints where every angle is zero.

The pose of the last link is then a product of turns about these lines, each at its place in the chain:

    X_base_link(q) = turn(axis 1, q1) ... turn(axis n, qn) @ home
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.errors import NoClosedForm, StructureError
from mechanik.kernels.layout import FIRST_Q, FIRST_V, FIXED, IS_PLAIN, KIND, LENGTH_OF_Q, OFFSET, RATIO, REVOLUTE, ROW
from mechanik.mechanism.configuration import Indices
from mechanik.mechanism.door import read_only
from mechanik.mechanism.kinematics import Kinematics, forward
from mechanik.spatial import inverse, make, rotation
from mechanik.spatial.array import Array
from mechanik.spatial.vector import cross, length


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScrewAxes:
    """
    Attributes:
        names: of the n turning joints, base first.
        columns: (n,) where each stands in q.
        directions: (n, 3) unit vectors in the base frame, every angle zero.
        points: (n, 3) a point on each axis, in the base frame.
        home: (4, 4) X_base_link, every angle zero.
        lower, upper: (n,) limits, rad.
        nodes: the chain for the kernels of `forward.py`, which here take q of n numbers.
    """

    names: tuple[str, ...]
    columns: Indices
    directions: Array
    points: Array
    home: Array
    lower: Array
    upper: Array
    nodes: Array

    @property
    def n(self) -> int:
        return len(self.names)

    @property
    def size(self) -> float:
        """The arm's reach, roughly, m: what lengths are compared with."""
        tip = self.home[:3, 3] - self.points
        apart = float(length(cross(self.directions, tip)).max(initial=0.0))
        for k in range(self.n - 1):
            apart = max(apart, float(length(cross(self.directions[k], self.points[k + 1] - self.points[k]))))
        return apart or 1.0

    def poses(self, q: Array) -> Array:
        """X_base_link (m, 4, 4) at q (m, n)."""
        X = np.empty((len(q), 4, 4))
        forward.chain_poses(self.nodes, np.ascontiguousarray(q), X)
        return X

    def jacobians(self, q: Array) -> Array:
        """Twists (linear, angular) of the link's origin in the base frame, for each angle: (m, 6, n) at q (m, n)."""
        J = np.empty((len(q), 6, self.n))
        forward.chain_jacobians(self.nodes, np.zeros(3), np.ascontiguousarray(q), J)
        return J


def screw_axes(kinematics: Kinematics, link: str, base: str | None = None) -> ScrewAxes:
    """The axes between `base` (the world if it is not given) and `link`; joints whose limits leave no room are fixed.

    Raises:
        StructureError: `base` does not stand above `link`.
        NoClosedForm: something in the chain slides, is a ball, or follows another joint.
    """
    space = kinematics.space
    rows: list[Array] = []
    names: list[str] = []
    columns: list[int] = []
    X_world, before = np.eye(4), np.eye(4)  # the pose of the node before; what is fixed since the last kept row
    directions: list[Array] = []
    points: list[Array] = []
    for row in _between(kinematics, link, base):
        X_world = X_world @ _fixed(row)
        before = before @ _fixed(row)
        if row[KIND] == FIXED:
            break
        column = int(row[FIRST_Q])
        name = space.q_names[column]
        if row[KIND] != REVOLUTE:
            what = "is a ball" if name.endswith((".qw", ".qx", ".qy", ".qz")) else "slides"
            raise NoClosedForm(f"joint {name!r} {what}: closed forms are known here for turning joints alone")
        if row[RATIO] != 1.0 or row[OFFSET] != 0.0 or column in columns:
            raise NoClosedForm(
                f"joint {name!r} is coupled to another joint: closed forms are for joints that move freely"
            )
        if space.lower[column] == space.upper[column]:
            turn = make(rotation.turn_z(space.lower[column]), np.zeros(3))
            X_world, before = X_world @ turn, before @ turn
            continue
        directions.append(X_world[:3, 2])
        points.append(X_world[:3, 3])
        rows.append(_row(before, REVOLUTE, len(names), len(names)))
        names.append(name)
        columns.append(column)
        before = np.eye(4)
    end = _row(before, FIXED, 0, 0)
    end[LENGTH_OF_Q], end[IS_PLAIN] = len(names), 1
    return ScrewAxes(
        names=tuple(names),
        columns=np.array(columns, dtype=np.int64),
        directions=read_only(np.array(directions).reshape(-1, 3)),
        points=read_only(np.array(points).reshape(-1, 3)),
        home=read_only(X_world),
        lower=read_only(space.lower[columns]),
        upper=read_only(space.upper[columns]),
        nodes=np.array([*rows, end]),
    )


def _between(kinematics: Kinematics, link: str, base: str | None) -> Array:
    """The nodes from the base's frame down to the link, the first one's fixed part seen from the base."""
    path = kinematics.path(link).copy()
    if base is None:
        return path
    above = kinematics.path(base)
    shared = len(above) - 1
    if len(path) <= shared or not np.array_equal(above[:-1], path[:shared]):
        raise StructureError(f"link {base!r} does not stand above {link!r}; the base of a chain has to")
    path = path[shared:]
    X = inverse(_fixed(above[-1])) @ _fixed(path[0])
    path[0, :9], path[0, 9:12] = X[:3, :3].ravel(), X[:3, 3]
    return path


def _fixed(row: Array) -> Array:
    return make(row[:9].reshape(3, 3), row[9:12])


def _row(X: Array, kind: int, q: int, v: int) -> Array:
    row = np.zeros(ROW)
    row[:9], row[9:12] = X[:3, :3].ravel(), X[:3, 3]
    row[RATIO], row[KIND], row[FIRST_Q], row[FIRST_V] = 1.0, kind, q, v
    return row
