"""What holds a mechanism together at q, as rows: how far each is from being kept, and how v changes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mechanik.mechanism.closure import Closure
from mechanik.mechanism.dof import ROTATIONS, TRANSLATIONS, DoF
from mechanik.mechanism.law import Law
from mechanik.mechanism.law_rows import law_row
from mechanik.mechanism.link import Link
from mechanik.mechanism.measure import measure
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.placed import Placed
from mechanik.spatial import euler, inverse, make, quaternion, rotation
from mechanik.spatial.array import Array

ANYWHERE = np.full(6, -np.inf), np.full(6, np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """The rows of one closure, or of one law.

    Attributes:
        kind: what it is.
        name: of the closure or law.
        directions: for each row the freedom that it takes away, in the axes of the closing joint: `X`, `EY`; or `law`.
        in_metres: (rows,) whether a row is a length; else it is an angle.
        gap: (rows,), how far it stands open; m and rad.
        J: (rows, nv), how fast it opens; exact where it is shut.
        moves: the numbers of v that can open it, here or elsewhere.
        points: (k, 3), where it acts, in the world; for the size of things.
    """

    kind: Literal["closure", "law"]
    name: str
    directions: tuple[str, ...]
    in_metres: np.ndarray[tuple[int], np.dtype[np.bool_]]
    gap: Array
    J: Array
    moves: frozenset[int]
    points: Array


def constraints(mechanism: Mechanism, q: Array) -> list[Constraint]:
    """Of all closures and laws at q (nq,)."""
    placed = Placed(mechanism.kinematics, q)
    return [
        *(closure_rows(mechanism, closure, placed) for closure in mechanism.closures.values()),
        *(law_rows(mechanism, name, law, q) for name, law in mechanism.laws.items()),
    ]


def law_rows(mechanism: Mechanism, name: str, law: Law, q: Array) -> Constraint:
    """The one row of a law, in shares of its scale; all zero where a coupling says the same."""
    slots = mechanism.kinematics.slots
    bound = [(slots[joint].v[dof], dof) for joint, dof in law.resolved()[0]]
    off, rates = law_row(mechanism, law, q)
    return Constraint(
        kind="law",
        name=name,
        directions=("law",),
        in_metres=np.array([all(not dof.is_rotation for _, dof in bound)], dtype=np.bool_),
        gap=np.array([off]),
        J=rates[None],
        moves=frozenset(k for k, _ in bound),
        points=np.zeros((0, 3)),
    )


def closure_rows(mechanism: Mechanism, closure: Closure, placed: Placed) -> Constraint:
    """The rows of one closure: shifts along, and turns about, the axes of its joint; limits are not among them."""
    joint, free = closure.joint, closure.free
    ends = _Ends(mechanism, closure, placed)
    X_world_axes, X_world_end = ends.X_world_axes, ends.X_world_end
    E = inverse(X_world_axes) @ X_world_end
    values = measure(E, free, joint._range()[0], *ANYWHERE)
    turned = euler.matrix_from_euler(values[[5, 4, 3]], order="zyx", axes="moving")
    R = X_world_axes[:3, :3]
    off, turned_off = E[:3, 3] - values[:3], R @ rotation.log(E[:3, :3] @ turned.T)

    apart, moves = ends.apart, ends.moves
    shifts = [dof for dof in TRANSLATIONS if dof not in free]
    turns = _taken_turns(free, values, R)
    return Constraint(
        kind="closure",
        name=mechanism.name_of(joint),
        directions=(*(dof.name for dof in shifts), *(dof.name for dof, _ in turns)),
        in_metres=np.array([True] * len(shifts) + [False] * len(turns), dtype=np.bool_),
        gap=np.array([*(off[dof.direction] for dof in shifts), *(normal @ turned_off for _, normal in turns)]),
        J=np.array(
            [*(R[:, dof.direction] @ apart[:3] for dof in shifts), *(normal @ apart[3:] for _, normal in turns)]
        ).reshape(len(shifts) + len(turns), mechanism.nv),
        moves=moves,
        points=np.array([X_world_axes[:3, 3], X_world_end[:3, 3]]),
    )


def closure_axes(mechanism: Mechanism, closure: Closure, placed: Placed) -> tuple[Array, Array]:
    """The axes of the joint that closes a loop, in the world (3, 3), and the twist of its end against it (6, nv)."""
    ends = _Ends(mechanism, closure, placed)
    return ends.X_world_axes[:3, :3], ends.apart


class _Ends:
    """Where a closing joint hangs and where it ends, with its axes of motion, and how v moves them apart."""

    def __init__(self, mechanism: Mechanism, closure: Closure, placed: Placed) -> None:
        joint = closure.joint
        X_joint, above = joint.matrix, joint.parent
        while above is not None and not isinstance(above, Link):
            X_joint, above = above.matrix @ X_joint, above.parent
        start = placed.carried(None if above is None else mechanism.name_of(above))
        end = placed.carried(mechanism.name_of(closure.link))
        axes = make(quaternion.to_matrix(joint.axes_wxyz), np.zeros(3))
        self.X_world_axes = start.X @ X_joint @ axes
        self.X_world_end = end.X @ closure.at.matrix @ axes
        point = self.X_world_end[:3, 3]
        self.moves = placed.between(start, end)
        self.apart = end.at(point) - start.at(point)
        others = [k for k in range(self.apart.shape[1]) if k not in self.moves]
        self.apart[:, others] = 0.0  # else what stands above both would move them by rounding


def _taken_turns(free: tuple[DoF, ...], values: Array, R_world_axes: Array) -> list[tuple[DoF, Array]]:
    """World directions about which a closure lets nothing turn, each with the angle that is not free."""
    axes: list[Array] = []
    R = R_world_axes
    for dof in reversed(ROTATIONS):
        if dof in free:
            axes.append(R[:, dof.direction])
            R = R @ rotation.exp(np.eye(3)[dof.direction] * values[dof])
    taken = [dof for dof in ROTATIONS if dof not in free]
    if len(axes) == 2:  # always at right angles, since the third angle is zero
        return [(taken[0], np.cross(axes[0], axes[1]))]
    return [(dof, R_world_axes[:, dof.direction]) for dof in taken]
