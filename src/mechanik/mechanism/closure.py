"""A closure: a joint or goal that has to end on a link which it does not hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mechanik.errors import StructureError, WrongKind
from mechanik.mechanism.dof import ALL, DoF
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.measure import measure
from mechanik.spatial import Pose, as_pose_matrix, euler, inverse, make, quaternion, rotation
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from mechanik.mechanism.goal import Goal
    from mechanik.mechanism.joint import Joint
    from mechanik.mechanism.link import Link


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        return f"<gap of {self.distance:.3g} m and {self.angle:.3g} rad>"

    def is_shut(self, tolerance: float = 1e-9) -> bool:
        """Within `tolerance` both in m and in rad."""
        return self.distance <= tolerance and self.angle <= tolerance


class Closure:
    """`joint` (or a goal) shall end on `link`. Made by `make_closure`, taken back by `undo`.

    The freedoms of the joint are the freedoms that the closure leaves. They are no part of q: whenever the joint
    is asked for its values, they are read off the poses of the two links that the closure joins (`measure`).
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

    def __str__(self) -> str:
        return f"<closure of {self.joint} onto {self.link}>"

    def __repr__(self) -> str:
        start = self.joint.parent.name if self.joint.parent is not None else None
        free = " ".join(dof.name for dof in self.free) or "none"
        return f"<closure {self.name!r}: {start!r} onto {self.link.name!r}, free: {free}, open by {self.gap()!r}>"

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
        return self.joint._left_free()

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
        E, values = self._relative(), self._measured()
        turned = euler.matrix_from_euler(values[[5, 4, 3]], order="zyx", axes="moving")
        return Gap(E[:3, 3] - values[:3], rotation.log(E[:3, :3] @ turned.T))

    def measure(self) -> Array:
        """The values that the closing joint's freedoms have, read off the two links; one for each freedom.

        Of angles that mean the same, those nearest to the values that the joint holds.
        """
        return self._measured()[list(self.free)]

    def settle(self) -> None:
        """Let the closing joint hold the values that are read off the links."""
        self.joint._take(dict(zip(self.free, self.measure().tolist(), strict=True)))

    def _measured(self) -> Array:
        """All six values, zero where not free."""
        return measure(self._relative(), self.free, *self.joint._range())

    def _relative(self) -> Array:
        """The end on the link, seen from the joint's axes of motion, (4, 4)."""
        X_world_joint = self.joint.world_matrix
        E = inverse(X_world_joint) @ self.link.world_matrix @ self._at.matrix
        in_world = self.joint._is_in_world_axes()
        A = X_world_joint[:3, :3].T if in_world else quaternion.to_matrix(self.joint.axes_wxyz)
        # seen in other axes, the same motion is turned from both sides: none stays none
        return make(A.T @ E[:3, :3] @ A, A.T @ E[:3, 3])

    def _changed(self) -> None:
        self.joint._touch_structure()
        self.link._touch()
