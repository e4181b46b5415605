"""What can move in a problem: the mechanism's nodes, and those of closing joints that have limits or targets.

A closing joint's freedoms are no part of q. As long as nothing is asked of them, its closure simply has fewer
rows. A closing joint that has limits or a target gets nodes of its own and numbers behind q, and its end is welded
to the link.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from mechanik.kernels.layout import BALL, FIRST_Q, FIRST_V, KIND, PARENT, RATIO, ROW, SLIDE
from mechanik.mechanism.closure import Closure
from mechanik.mechanism.dof import ROTATIONS, TRANSLATIONS
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.kinematics import ONTO, Kinematics
from mechanik.mechanism.mechanism import Mechanism
from mechanik.spatial import make, quaternion
from mechanik.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False)
class Skeleton:
    """
    Attributes:
        nodes: (n, 18).
        frames: for each link (and each closing joint with nodes, as "closing NAME") its node and its pose there.
        lower, upper: (numbers of x,) limits; x is q and then the closing joints' values.
        v_of_x: for each number of x the number of v that moves it; -1 in balls.
        balls: where a ball begins in x and in v.
        rotates: (numbers of v,).
        x_of: where a freedom (as in `q_names`), a ball (by its joint), or a closing joint's freedom stands in x.
        nq, nv: of the mechanism alone.
    """

    nodes: Array
    frames: Mapping[str | None, tuple[int, Array]]
    lower: Array
    upper: Array
    v_of_x: np.ndarray[tuple[int], np.dtype[np.int64]]
    balls: tuple[tuple[int, int], ...]
    rotates: np.ndarray[tuple[int], np.dtype[np.bool_]]
    x_of: Mapping[str, int]
    nq: int
    nv: int

    @property
    def nx(self) -> int:
        return len(self.lower)

    @property
    def reach(self) -> float:
        """The longest way from the world along the links, sliding joints stretched as far as their limits allow."""
        longest = np.zeros(len(self.nodes))
        for i, node in enumerate(self.nodes):
            longest[i] = np.linalg.norm(node[9:12]) + self._slide(node)
            if node[PARENT] >= 0:
                longest[i] += longest[int(node[PARENT])]
        ends = [np.linalg.norm(X[:3, 3]) + (longest[node] if node >= 0 else 0.0) for node, X in self.frames.values()]
        return float(max([0.0, *ends]))

    def _slide(self, node: Array) -> float:
        if node[KIND] != 1:
            return 0.0
        k = int(node[FIRST_Q])
        ends = abs(np.array([self.lower[k], self.upper[k]]) * node[RATIO])
        return float(np.max(ends, where=np.isfinite(ends), initial=0.0))

    def turns(self, freedom: str) -> bool:
        """Whether a single freedom turns; else it slides."""
        return bool(self.rotates[self.v_of_x[self.x_of[freedom]]])

    def limits(self, freedom: str) -> tuple[float, float]:
        """Of a single freedom."""
        k = self.x_of[freedom]
        return float(self.lower[k]), float(self.upper[k])

    def columns_of(self, node: Array) -> list[tuple[int, int, bool]]:
        """(number of v, axis of the node, whether it turns) for each column of a node."""
        kind, v = int(node[KIND]), int(node[FIRST_V])
        if kind in (SLIDE, BALL):
            return [(v + axis, axis, kind == BALL) for axis in range(3)]
        return [(v, 2, kind == 0)]

    def path(self, frame: str | None) -> list[int]:
        """The nodes from the world to a frame."""
        node = self.frames[frame][0]
        way: list[int] = []
        while node >= 0:
            way.append(node)
            node = int(self.nodes[node, PARENT])
        return way[::-1]


def build_skeleton(mechanism: Mechanism, with_nodes: Iterable[Closure] = ()) -> Skeleton:
    """The mechanism's nodes, and nodes for the freedoms of the given closures' joints."""
    kinematics: Kinematics = mechanism.kinematics
    space = kinematics.space
    rows = [row.copy() for row in kinematics.nodes]
    frames: dict[str | None, tuple[int, Array]] = {None: (-1, np.eye(4))}
    for name, end in zip(kinematics.links, kinematics.ends, strict=True):
        frames[name] = int(end[PARENT]), make(end[:9].reshape(3, 3), end[9:12])
    lower, upper = space.lower.tolist(), space.upper.tolist()
    v_of_x = [-1] * space.nq
    for k, v in zip(space.scalars_q.tolist(), space.scalars_v.tolist(), strict=True):
        v_of_x[k] = v
    rotates = space.rotates.tolist()
    x_of = {name: k for k, name in enumerate(space.q_names)}
    x_of |= {
        mechanism.name_of(joint): slot.ball_q for joint, slot in kinematics.slots.items() if slot.ball_q is not None
    }
    for closure in with_nodes:
        joint = closure.joint
        assert isinstance(joint, Joint)
        name = mechanism.name_of(joint)
        base = None if joint.parent is None else mechanism.name_of(joint.parent)
        node, X = frames[base]
        A = make(quaternion.to_matrix(joint.axes_wxyz), np.zeros(3))
        X = X @ joint.matrix @ A
        for dof in (*TRANSLATIONS, *reversed(ROTATIONS)):
            if dof not in joint.dof:
                continue
            turn = ONTO[dof.direction]
            row = np.zeros(ROW)
            row[:9], row[9:12] = (X @ turn)[:3, :3].ravel(), (X @ turn)[:3, 3]
            row[RATIO], row[PARENT], row[KIND] = 1.0, node, 0 if dof.is_rotation else 1
            row[FIRST_Q], row[FIRST_V] = len(lower), len(rotates)
            rows.append(row)
            node, X = len(rows) - 1, turn.T
            x_of[name if len(joint.dof) == 1 else f"{name}.{dof.name}"] = len(lower)
            v_of_x.append(len(rotates))
            rotates.append(dof.is_rotation)
            low, high = joint.effective_limits(dof)
            lower.append(low)
            upper.append(high)
        frames[f"closing {name}"] = node, X @ A.T
    return Skeleton(
        nodes=np.array(rows, dtype=np.float64).reshape(-1, ROW),
        frames=frames,
        lower=np.array(lower, dtype=np.float64),
        upper=np.array(upper, dtype=np.float64),
        v_of_x=np.array(v_of_x, dtype=np.int64),
        balls=tuple(zip(space.balls_q.tolist(), space.balls_v.tolist(), strict=True)),
        rotates=np.array(rotates, dtype=np.bool_),
        x_of=x_of,
        nq=space.nq,
        nv=space.nv,
    )
