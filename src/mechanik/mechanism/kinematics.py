"""From the graph to flat arrays: elementary motions in topological order, fixed joints folded, couplings applied."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mechanik.errors import DuplicateName, NotFinite, ShapeError, UnknownName
from mechanik.kernels.layout import BALL, FIXED, IS_PLAIN, KIND, PARENT, PRISMATIC, REVOLUTE, ROW, SLIDE
from mechanik.mechanism.configuration import ConfigurationSpace
from mechanik.mechanism.dof import ROTATIONS, TRANSLATIONS, DoF
from mechanik.mechanism.door import read_only
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.goal import Goal
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.link import Link
from mechanik.spatial import make, quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.tiers import kernel_module

forward = kernel_module("forward")

# turn z onto x, y, z: permutations, so that they cost no accuracy
ONTO = tuple(
    make(np.array(R, dtype=np.float64), np.zeros(3))
    for R in ([[0, 0, 1], [1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]], np.eye(3))
)


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a joint's independent freedoms stand: dof by dof in q and v, its ball (if any) as a block."""

    q: Mapping[DoF, int]
    v: Mapping[DoF, int]
    ball_q: int | None
    ball_v: int | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Kinematics:
    """A mechanism as arrays. Made by `compile_kinematics`; never changed.

    Attributes:
        space: the shape of q and v.
        slots: where each joint stands in q and v.
        links: their names, in the order of `ends`.
        nodes: (n, 18), in the layout of `kernels/forward.py`.
        ends: (L, 18), for each link a fixed node at its end.
        paths: for each link the nodes from the world to it, its end included.
    """

    space: ConfigurationSpace
    slots: Mapping[Joint, Slot]
    links: tuple[str, ...]
    nodes: Array
    ends: Array
    paths: Mapping[str, Array]

    def __repr__(self) -> str:
        return f"<kinematics of {len(self.links)} links, {len(self.nodes)} nodes, nq {self.space.nq}>"

    def pose(self, link: str, q: ArrayLike, out: Array | None = None) -> Array:
        """X_world_link (..., 4, 4) at q (..., nq)."""
        path = self.path(link)
        rows, leading = self._rows(q)
        X = np.empty((len(rows), 4, 4))
        if not forward.chain_poses(path, rows, X):
            self._refuse(rows)
        X = X.reshape(*leading, 4, 4)
        if out is None:
            return X
        if not (isinstance(out, np.ndarray) and out.shape == X.shape and out.dtype == X.dtype and out.flags.writeable):
            raise ShapeError(f"out must be an array of float64 of the shape {X.shape} that can be written into")
        out[...] = X
        return out

    def poses(self, q: ArrayLike, links: Sequence[str] | None = None) -> Array:
        """X_world_link (..., L, 4, 4) of all links, or of those named, at q (..., nq)."""
        ends = self.ends if links is None else self.ends[[self._index(link) for link in links]]
        rows, leading = self._rows(q)
        X = np.empty((len(rows), len(ends), 4, 4))
        if not forward.tree_poses(self.nodes, ends, rows, X):
            self._refuse(rows)
        return X.reshape(*leading, len(ends), 4, 4)

    def jacobian(self, link: str, q: ArrayLike, p_link: Array) -> Array:
        """World twist (linear, angular) of a point fixed in the link, for each number of v: (..., 6, nv)."""
        path = self.path(link)
        rows, leading = self._rows(q)
        J = np.empty((len(rows), 6, self.space.nv))
        if not forward.chain_jacobians(path, p_link, rows, J):
            self._refuse(rows)
        return J.reshape(*leading, 6, self.space.nv)

    def path(self, link: str) -> Array:
        try:
            return self.paths[link]
        except (KeyError, TypeError):
            raise UnknownName("link", link, self.links) from None

    def _index(self, link: str) -> int:
        self.path(link)
        return self.links.index(link)

    def _rows(self, q: ArrayLike) -> tuple[Array, tuple[int, ...]]:
        """q as (N, nq), and the leading axes that it had."""
        try:
            if np.iscomplexobj(q):
                raise TypeError
            values = np.ascontiguousarray(q, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"q must be an array of real numbers, not {q!r}") from None
        if not values.flags.writeable:  # Numba's kernels take no others, although they do not write here
            values = values.copy()
        if np.ndim(q) < 1 or values.shape[-1] != self.space.nq:
            raise ShapeError(f"q must have {self.space.nq} numbers along its last axis, but its shape is {np.shape(q)}")
        leading = values.shape[:-1]
        return values.reshape(math.prod(leading), self.space.nq), leading

    def _refuse(self, values: Array) -> None:
        """A pose came out that is not finite: say which number of q is to blame."""
        self.space.check_q(values)
        raise NotFinite("a pose is not finite, although q is: a length or offset of the mechanism is too large")


def compile_kinematics(roots: Iterable[Frame], names: Mapping[Frame, str]) -> Kinematics:
    """Lay out the trees below `roots`. Closing joints take no numbers in q; followers share their leader's."""
    frames = [frame for root in roots for frame in root.traverse()]
    # a joint that holds nothing moves nothing
    joints = sorted((f for f in frames if isinstance(f, Joint) and f.children), key=lambda f: f._serial)
    links = sorted((f for f in frames if isinstance(f, Link)), key=lambda f: f._serial)
    space, slots = _lay_out(joints, names)

    nodes = _Nodes(slots)
    ends: dict[Frame, tuple[int, Array]] = {}  # node and fixed pose below it, for what hangs on the frame
    places: dict[Frame, tuple[int, Array]] = {}
    for frame in frames:
        if isinstance(frame, Goal):
            continue
        node, X = ends[frame.parent] if frame.parent is not None else (-1, np.eye(4))
        places[frame] = node, X @ frame.matrix
        ends[frame] = nodes.move(frame, *places[frame]) if isinstance(frame, Joint) else places[frame]

    rows = np.array(nodes.rows, dtype=np.float64).reshape(-1, ROW)
    end_rows = [_row(X, FIXED, space.nq, 0, node) for node, X in (places[link] for link in links)]
    link_ends = np.array(end_rows, dtype=np.float64).reshape(-1, ROW)
    return Kinematics(
        space=space,
        slots=slots,
        links=tuple(names[link] for link in links),
        nodes=rows,
        ends=link_ends,
        paths={names[link]: _path(rows, end) for link, end in zip(links, link_ends, strict=True)},
    )


class _Nodes:
    """The rows of nodes as they are collected."""

    def __init__(self, slots: Mapping[Joint, Slot]) -> None:
        self.slots = slots
        self.rows: list[list[float]] = []

    def move(self, joint: Joint, node: int, X: Array) -> tuple[int, Array]:
        """Add the motion of `joint`, which sits at X below `node`; returns where its child hangs."""
        if joint not in self.slots or not joint.dof:
            return node, X
        A = make(quaternion.to_matrix(joint.axes_wxyz), np.zeros(3))
        X = X @ A
        slot = self.slots[joint]
        if all(dof in slot.q for dof in TRANSLATIONS):
            node, X = self.add(node, X, SLIDE, slot.q[DoF.X], slot.v[DoF.X])
        else:
            for dof in TRANSLATIONS:
                node, X = self.move_one(joint, dof, node, X)
        if slot.ball_q is not None and slot.ball_v is not None:
            node, X = self.add(node, X, BALL, slot.ball_q, slot.ball_v)
        else:
            for dof in reversed(ROTATIONS):
                node, X = self.move_one(joint, dof, node, X)
        return node, X @ A.T

    def move_one(self, joint: Joint, dof: DoF, node: int, X: Array) -> tuple[int, Array]:
        if dof not in joint.dof:
            return node, X
        leader, leader_dof, ratio, offset = joint, dof, 1.0, 0.0
        if dof in joint._couplings:
            leader, leader_dof, ratio, offset = joint._couplings[dof].resolve()
        turn = ONTO[dof.direction]
        slot = self.slots[leader]
        kind = REVOLUTE if dof.is_rotation else PRISMATIC
        node, X = self.add(node, X @ turn, kind, slot.q[leader_dof], slot.v[leader_dof], ratio, offset)
        return node, X @ turn.T

    def add(
        self, node: int, X: Array, kind: int, q: int, v: int, ratio: float = 1.0, offset: float = 0.0
    ) -> tuple[int, Array]:
        self.rows.append(_row(X, kind, q, v, node, ratio, offset))
        return len(self.rows) - 1, np.eye(4)


def _lay_out(joints: Sequence[Joint], names: Mapping[Frame, str]) -> tuple[ConfigurationSpace, dict[Joint, Slot]]:
    """Give each independent freedom its place in q and v, joint by joint, X Y Z EX EY EZ."""
    q_names: list[str] = []
    v_names: list[str] = []
    scalars: list[tuple[int, int]] = []
    balls: list[tuple[int, int]] = []
    rotates: list[bool] = []
    limits: list[tuple[float, float]] = []
    slots: dict[Joint, Slot] = {}
    for joint in joints:
        name, ball = names[joint], joint.is_ball
        q_of: dict[DoF, int] = {}
        v_of: dict[DoF, int] = {}
        for dof in joint.dof:
            if dof in joint._couplings or (ball and dof.is_rotation):
                continue
            q_of[dof], v_of[dof] = len(q_names), len(v_names)
            scalars.append((q_of[dof], v_of[dof]))
            label = name if len(joint.dof) == 1 else f"{name}.{dof.name}"
            q_names.append(label)
            v_names.append(label)
            rotates.append(dof.is_rotation)
            limits.append(joint.effective_limits(dof))
        slots[joint] = Slot(q_of, v_of, len(q_names) if ball else None, len(v_names) if ball else None)
        if ball:
            balls.append((len(q_names), len(v_names)))
            q_names += [f"{name}.q{part}" for part in "wxyz"]
            v_names += [f"{name}.{dof.name}" for dof in ROTATIONS]
            rotates += [True] * 3
            limits += [(-np.inf, np.inf)] * 4
    if len(set(q_names)) < len(q_names):
        doubled = next(name for name in q_names if q_names.count(name) > 1)
        raise DuplicateName(f"two freedoms would be called {doubled!r}; rename one of the joints")
    bounds = np.array(limits, dtype=np.float64).reshape(-1, 2)
    space = ConfigurationSpace(
        q_names=tuple(q_names),
        v_names=tuple(v_names),
        scalars_q=np.array([q for q, _ in scalars], dtype=np.int64),
        scalars_v=np.array([v for _, v in scalars], dtype=np.int64),
        balls_q=np.array([q for q, _ in balls], dtype=np.int64),
        balls_v=np.array([v for _, v in balls], dtype=np.int64),
        rotates=np.array(rotates, dtype=np.bool_),
        lower=read_only(np.ascontiguousarray(bounds[:, 0])),
        upper=read_only(np.ascontiguousarray(bounds[:, 1])),
    )
    return space, slots


def _path(nodes: Array, end: Array) -> Array:
    """The nodes from the world down to `end`, and `end` itself."""
    way = [end]
    while (node := int(way[-1][PARENT])) >= 0:
        way.append(nodes[node])
    path = np.array(way[::-1])
    path[-1, IS_PLAIN] = not np.isin(path[:, KIND], (SLIDE, BALL)).any()
    return path


def _row(X: Array, kind: int, q: int, v: int, parent: int, ratio: float = 1.0, offset: float = 0.0) -> list[float]:
    return [*X[:3, :3].ravel().tolist(), *X[:3, 3].tolist(), ratio, offset, parent, kind, q, v]
