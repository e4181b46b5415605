"""Loop closures: a joint or goal is constrained to end on a link that is not its child."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mechanik.errors import InvalidArgument, StructureError
from mechanik.model.dof import ALL_DOFS, DoF, joint_values_from_pose
from mechanik.model.frame import Frame
from mechanik.spatial import Pose, as_pose_matrix, euler, inverse, make_pose, quaternion, rotation
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from mechanik.model.frame import Goal, Link
    from mechanik.model.joint import Joint


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClosureGap:
    """The violation of a closure: the frame on the link relative to the end of the joint, in the axes of motion.

    The axes of motion of a goal are its own axes or those of the world (`Goal.axes`).

    Attributes:
        position: (3,), m.
        rotation: rotation vector (3,), rad.

    Example:
        >>> gap = mk.gallery.four_bar().closure("closing_joint").gap()
        >>> gap.is_closed()
        True
    """

    position: Array
    rotation: Array

    @property
    def distance(self) -> float:
        """The norm of `position`, m."""
        return float(np.linalg.norm(self.position))

    @property
    def angle(self) -> float:
        """The norm of `rotation`, rad."""
        return float(np.linalg.norm(self.rotation))

    def __repr__(self) -> str:
        return f"<gap of {self.distance:.3g} m and {self.angle:.3g} rad>"

    def is_closed(self, tolerance: float = 1e-9) -> bool:
        """Return whether distance (m) and angle (rad) are at most `tolerance`."""
        return self.distance <= tolerance and self.angle <= tolerance


class Closure:
    """A loop closure: the end of `joint` (a joint or a goal) coincides with a frame on `link`, up to `free_dof`.

    `make_closure` creates a closure and `undo` removes it. The closure of a joint leaves the dofs of the joint
    free; the closure of a goal constrains the dofs of the goal. The values of free dofs are not part of q: they are
    computed from the poses of the two links when they are read (`joint_values_from_pose`).

    Args:
        joint: the joint or goal.
        link: the link on which the joint or goal ends.
        at: X_link_end, the end of the joint on the link; default: the link frame.

    Attributes:
        joint: the joint or goal.
        link: the link on which the joint or goal ends.

    Raises:
        InvalidArgument: `link` is not a link.
        StructureError: the joint cannot close a loop, or is a child of `link`.
        ShapeError, NotFinite, NotARotation: `at` is not a pose.

    Example:
        >>> closure = mk.gallery.four_bar().closure("closing_joint")
        >>> closure.link.name, [dof.name for dof in closure.free_dof]
        ('rocker', ['EZ'])
    """

    def __init__(self, joint: Joint | Goal, link: Link, at: ArrayLike | Pose | None = None) -> None:
        if not isinstance(link, Frame) or link.kind != "link":
            raise InvalidArgument(f"{joint} must end on a link, not on {link!r}")
        joint._check_can_close()
        if link is joint.parent:
            raise StructureError(
                f"{joint} is a child of {link}, so it cannot close a loop onto it; choose another link"
            )
        self.joint, self.link = joint, link
        if at is None:
            self._at = Pose.identity()
        elif isinstance(at, Pose):
            self._at = at
        else:
            self._at = Pose.from_matrix(as_pose_matrix(at, f"end of {joint} on {link}"))
        joint._closure = self
        link._closures.append(self)
        self._mark_ends_changed()

    def __str__(self) -> str:
        return f"<closure of {self.joint} onto {self.link}>"

    def __repr__(self) -> str:
        start = self.joint.parent.name if self.joint.parent is not None else None
        free_names = " ".join(dof.name for dof in self.free_dof) or "none"
        return f"<closure {self.name!r}: {start!r} onto {self.link.name!r}, free dofs: {free_names}, {self.gap()!r}>"

    @property
    def name(self) -> str:
        """The name of the joint or goal."""
        return self.joint.name

    @property
    def is_goal(self) -> bool:
        """Whether this is the closure of a goal."""
        return self.joint.kind == "goal"

    @property
    def at(self) -> Pose:
        """X_link_end, the end of the joint on the link."""
        return self._at

    @property
    def free_dof(self) -> tuple[DoF, ...]:
        """The dofs that the closure leaves free."""
        return self.joint._free_dofs()

    @property
    def constrained_dof(self) -> tuple[DoF, ...]:
        """The dofs that the closure constrains."""
        return tuple(dof for dof in ALL_DOFS if dof not in self.free_dof)

    def undo(self) -> None:
        """Remove the closure; the joint can then have a child or another closure, and the goal another link.

        Raises:
            StructureError: the closure is already removed.
        """
        if self.joint._closure is not self:
            raise StructureError(f"{self} is already undone")
        self._mark_ends_changed()
        self.joint._closure = None
        self.link._closures.remove(self)

    def gap(self) -> ClosureGap:
        """Return the violation that remains if the free dofs have the values of `joint_values`."""
        return self._gap(self._relative_pose())

    def gap_at(self, X_world_parent: Array, X_world_link: Array) -> ClosureGap:
        """Return the violation for given poses of the two links; no frame moves.

        Args:
            X_world_parent, X_world_link: poses of the parent of the joint and of the link, (4, 4).
        """
        return self._gap(self._pose_in_axes(X_world_parent @ self.joint.matrix, X_world_link))

    def _gap(self, X_axes_end: Array) -> ClosureGap:
        values = joint_values_from_pose(X_axes_end, self.free_dof, *self.joint._values_and_limits())
        R_values = euler.matrix_from_euler(values[[5, 4, 3]], order="zyx", axes="moving")
        return ClosureGap(X_axes_end[:3, 3] - values[:3], rotation.log(X_axes_end[:3, :3] @ R_values.T))

    def joint_values(self) -> Array:
        """Compute the values of the closing joint from the poses of the two links.

        Returns:
            A value for each free dof, inside its limits, m or rad; of several equivalent angles, the nearest to the
            stored value of the joint, or to zero for a goal.
        """
        values = joint_values_from_pose(self._relative_pose(), self.free_dof, *self.joint._values_and_limits())
        return values[list(self.free_dof)]

    def joint_values_at(
        self, X_world_parent: Array, X_world_link: Array, preferred_values: Array | None = None
    ) -> Array:
        """Compute the values of the closing joint for given poses of the two links; no frame moves.

        Args:
            X_world_parent: pose (4, 4) of the parent link of the joint.
            X_world_link: pose (4, 4) of the link onto which the joint closes.
            preferred_values: (6,), m and rad; of several equivalent angles, the nearest to these is returned. None:
                the stored values of the joint.

        Returns:
            A value for each free dof, inside its limits, m or rad.
        """
        stored_values, lower, upper = self.joint._values_and_limits()
        values = joint_values_from_pose(
            self._pose_in_axes(X_world_parent @ self.joint.matrix, X_world_link),
            self.free_dof,
            stored_values if preferred_values is None else preferred_values,
            lower,
            upper,
        )
        return values[list(self.free_dof)]

    def update_joint(self) -> None:
        """Store the computed values in the closing joint; does nothing for a goal."""
        self.joint._store_values(dict(zip(self.free_dof, self.joint_values().tolist(), strict=True)))

    def _relative_pose(self) -> Array:
        """Return X_axes_end, the pose of the end on the link in the joint's axes of motion, (4, 4)."""
        return self._pose_in_axes(self.joint.world_matrix, self.link.world_matrix)

    def _pose_in_axes(self, X_world_joint: Array, X_world_link: Array) -> Array:
        """Return X_axes_end (4, 4) for given poses (4, 4) of the joint and of the link."""
        X_joint_end = inverse(X_world_joint) @ X_world_link @ self._at.matrix
        uses_world_axes = self.joint._is_in_world_axes()
        R_joint_axes = X_world_joint[:3, :3].T if uses_world_axes else quaternion.to_matrix(self.joint.axes_wxyz)
        # the motion of a joint is X_joint_end = A T R A' with A = R_joint_axes; the result is T R = A' X_joint_end A
        return make_pose(R_joint_axes.T @ X_joint_end[:3, :3] @ R_joint_axes, R_joint_axes.T @ X_joint_end[:3, 3])

    def _mark_ends_changed(self) -> None:
        self.joint._record_edit()
        self.link._mark_changed()
