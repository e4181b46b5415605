"""A closure: a joint or goal that has to end on a link which it does not hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mechanik.errors import StructureError, WrongKind
from mechanik.mechanism.dof import ALL, ROTATIONS, TRANSLATIONS, DoF
from mechanik.mechanism.frame import Frame
from mechanik.spatial import Pose, as_pose_matrix, euler, inverse, make, quaternion, rotation
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from mechanik.mechanism.goal import Goal
    from mechanik.mechanism.joint import Joint
    from mechanik.mechanism.link import Link


@dataclass(frozen=True, slots=True)
class Gap:
    """How far a closure stands open, in the axes of the joint that closes it.

    Attributes:
        position: (3,), m.
        rotation: rotation vector (3,), rad.
    """

    position: Array
    rotation: Array

    @property
    def distance(self) -> float:
        return float(np.linalg.norm(self.position))

    @property
    def angle(self) -> float:
        return float(np.linalg.norm(self.rotation))

    def is_shut(self, tolerance: float = 1e-9) -> bool:
        """Within `tolerance` both in m and in rad."""
        return self.distance <= tolerance and self.angle <= tolerance


class Closure:
    """`joint` (or a goal) shall end on `link`. Made by `make_closure`, taken back by `undo`.

    The freedoms of the joint are the freedoms that the closure leaves. They are no part of q: they
    are read off the poses of the two links that the closure joins (`measure`).
    """

    def __init__(self, joint: Joint | Goal, link: Link, at: ArrayLike | Pose | None = None) -> None:
        if not isinstance(link, Frame) or link.kind != "link":
            raise WrongKind(f"{joint} can be closed onto a link, not onto {link!r}")
        joint._check_can_close()
        if link is joint.parent:
            raise StructureError(f"{joint} hangs on {link} and cannot be closed onto it")
        self.joint, self.link = joint, link
        if at is None:
            self._at = Pose.identity()
        elif isinstance(at, Pose):
            self._at = at
        else:
            self._at = Pose.from_matrix(as_pose_matrix(at, f"end of {joint} on {link}"))
        joint._closure = self
        link._closures.append(self)
        self._changed()

    def __repr__(self) -> str:
        return f"<closure of {self.joint} onto {self.link}>"

    @property
    def name(self) -> str:
        return self.joint.name

    @property
    def is_goal(self) -> bool:
        return self.joint.kind == "goal"

    @property
    def at(self) -> Pose:
        """X_link_end: where on the link the joint ends."""
        return self._at

    @property
    def free(self) -> tuple[DoF, ...]:
        """The freedoms that stay."""
        return self.joint.free_dof if self.joint.kind == "goal" else self.joint.dof  # type: ignore[union-attr]

    @property
    def constrained(self) -> tuple[DoF, ...]:
        """The freedoms that are taken away."""
        return tuple(dof for dof in ALL if dof not in self.free)

    def undo(self) -> None:
        """Open the loop for good; both sides may be closed again elsewhere."""
        if self.joint._closure is not self:
            raise StructureError(f"{self} was undone before")
        self._changed()
        self.joint._closure = None
        self.link._closures.remove(self)

    def gap(self) -> Gap:
        """What is left open once the free directions have been used as well as they can."""
        E = self._relative()
        values = _measure(E, self.free, self._limits())
        E = inverse(_motion(values)) @ E
        return Gap(E[:3, 3], rotation.log(E[:3, :3]))

    def measure(self) -> Array:
        """The values that the closing joint's freedoms have, read off the two links; one for each freedom."""
        return _measure(self._relative(), self.free, self._limits())[list(self.free)]

    def settle(self) -> None:
        """Let the closing joint hold the values that are read off the links."""
        if self.joint.kind == "joint":
            self.joint._assign(dict(zip(self.free, self.measure().tolist(), strict=True)))  # type: ignore[union-attr]

    def _relative(self) -> Array:
        """The end on the link, seen from the joint's axes of motion, (4, 4)."""
        joint = self.joint
        X_world_joint = joint.world_matrix
        R_axes = X_world_joint[:3, :3] @ quaternion.to_matrix(joint.axes_wxyz)
        if joint.kind == "goal" and joint.axes == "world":  # type: ignore[union-attr]
            # rows along the world's axes; the turn is still measured from the goal's orientation
            E = inverse(X_world_joint) @ self.link.world_matrix @ self._at.matrix
            R = X_world_joint[:3, :3]
            return make(R @ E[:3, :3] @ R.T, R @ E[:3, 3])
        # the same turn A on both sides, so that a shut joint at zero is the identity
        A = quaternion.to_matrix(joint.axes_wxyz)
        X_world_end = self.link.world_matrix @ self._at.matrix
        return inverse(make(R_axes, X_world_joint[:3, 3])) @ X_world_end @ make(A, np.zeros(3))

    def _limits(self) -> tuple[Array, Array]:
        lower, upper = np.full(6, -math.inf), np.full(6, math.inf)
        if self.joint.kind == "joint":
            dof = list(self.free)
            lower[dof], upper[dof] = self.joint.lower, self.joint.upper  # type: ignore[union-attr]
        return lower, upper

    def _changed(self) -> None:
        self.joint._touch_structure()
        self.link._touch()


def _motion(values: Array) -> Array:
    R = euler.matrix_from_euler(values[[5, 4, 3]], order="zyx", axes="moving")
    return make(R, values[:3])


def _measure(E: Array, free: tuple[DoF, ...], limits: tuple[Array, Array]) -> Array:
    """The six values, zero where not free, whose motion comes closest to the pose E."""
    values = np.zeros(6)
    for dof in TRANSLATIONS:
        if dof in free:
            values[dof] = E[dof.direction, 3]
    turns = tuple(dof for dof in ROTATIONS if dof in free)
    if len(turns) == 1:
        i, j = (turns[0].direction + 1) % 3, (turns[0].direction + 2) % 3
        values[turns[0]] = math.atan2(E[j, i] - E[i, j], E[i, i] + E[j, j])
    elif turns:
        # both Euler branches describe E; the one that needs least of what is not free is meant
        zyx = euler.euler_from_matrix(E[:3, :3], order="zyx", axes="moving")
        branches = [zyx, np.array([zyx[0] + math.pi, math.pi - zyx[1], zyx[2] + math.pi])]
        angles = [np.remainder(branch[[2, 1, 0]] + math.pi, 2 * math.pi) - math.pi for branch in branches]
        fixed = [dof.direction for dof in ROTATIONS if dof not in turns]
        best = min(angles, key=lambda angle: float(np.abs(angle[fixed]).sum()))
        for dof in turns:
            values[dof] = best[dof.direction]
    return np.clip(values, *limits)
