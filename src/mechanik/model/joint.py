"""Joints: frames with dofs, values and limits that move a child link or close a loop.

A joint may also have a cone limit, targets, a rest pose, couplings and joint constraints. It moves its child by
A T(x, y, z) Rz Ry Rx A', where A is the rotation from the joint frame to the axes of motion and A' its inverse.
`find_roots` finds all trees that closures, couplings and joint constraints connect with given frames.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mechanik.errors import CouplingError, DoFError, InvalidArgument, LimitsError, NotARotation, StructureError
from mechanik.model.dof import ROTATIONS, DoF, DoFLike, as_dof, as_dofs
from mechanik.model.frame import Frame, Goal, Link
from mechanik.spatial import Pose, euler, make_pose, quaternion, rotation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number, as_numbers, as_vector, format_count, read_only

if TYPE_CHECKING:
    from mechanik.model.joint_constraint import Coupling, JointConstraint
    from mechanik.model.loop_closure import Closure


class MovableFrame(Frame):
    """A frame that moves its child by A T(x, y, z) Rz Ry Rx A'; its dofs are any of X Y Z EX EY EZ, in this order.

    A is the rotation from the frame to the axes of motion; it is the identity unless `axis` or `axes_wxyz` is set. A
    frame with three rotations without limits stores a quaternion; its Euler angles then change continuously.
    """

    def __init__(
        self,
        name: str,
        dof: Iterable[DoFLike] | DoFLike,
        position: ArrayLike,
        wxyz: ArrayLike,
        axes_wxyz: ArrayLike,
    ) -> None:
        super().__init__(name, position=position, wxyz=wxyz)
        self._axes = read_only(self._unit_quaternion(axes_wxyz))
        self.set_dof(dof)

    # ---- dofs -------------------------------------------------------------------------------

    @property
    def dof(self) -> tuple[DoF, ...]:
        """The dofs, in the order X Y Z EX EY EZ."""
        return self._dof

    @property
    def dof_flags(self) -> tuple[bool, ...]:
        """Six flags in the order X Y Z EX EY EZ, True for each dof of the frame."""
        return tuple(dof in self._dof for dof in DoF)

    def set_dof(self, dof: Iterable[DoFLike] | DoFLike) -> None:
        """Replace the dofs; resets values and limits."""
        self._dof = as_dofs(dof)
        self._values = np.zeros(6)
        self._rotation_wxyz = read_only(quaternion.identity())
        self._lower, self._upper = np.full(6, -np.inf), np.full(6, np.inf)
        self._invalidate()
        self._mark_changed()

    def clear_dof(self) -> None:
        """Remove all dofs: the joint becomes fixed."""
        self.set_dof(())

    @property
    def has_quaternion(self) -> bool:
        """Whether the frame has three rotations without limits, which are stored as a quaternion."""
        return (
            all(dof in self._dof for dof in ROTATIONS)
            and not np.isfinite(self._lower[3:]).any()
            and not np.isfinite(self._upper[3:]).any()
        )

    @property
    def axes_wxyz(self) -> Array:
        """The rotation A from the frame to its axes of motion, unit quaternion (4,)."""
        return self._axes

    @axes_wxyz.setter
    def axes_wxyz(self, wxyz: ArrayLike) -> None:
        self._axes = read_only(self._unit_quaternion(wxyz))
        self._invalidate()
        self._mark_changed()

    @property
    def axis(self) -> Array:
        """The axis of a single dof in the joint frame, (3,), unit; raises `DoFError` if the number of dofs is not 1."""
        return quaternion.rotate(self._axes, np.eye(3)[self._only_dof("axis", "use axes_wxyz").axis_index])

    @axis.setter
    def axis(self, axis: ArrayLike) -> None:
        dof = self._only_dof("axis", "use axes_wxyz")
        direction = as_vector(axis, 3, f"axis of {self}")
        if np.linalg.norm(direction) < 1e-12:
            raise NotARotation(f"axis of {self} is zero; it must be a vector of any length except zero")
        self.axes_wxyz = quaternion.from_matrix(rotation.between(np.eye(3)[dof.axis_index], direction))

    # ---- values -----------------------------------------------------------------------------

    @property
    def values(self) -> Array:
        """The values of all dofs, m or rad, in the order of `dof`; assigned values are clamped to the limits."""
        self._update_from_closure()
        return read_only(self._values[list(self._dof)])

    @values.setter
    def values(self, values: ArrayLike) -> None:
        self.set_values(values)

    def value(self, dof: DoFLike) -> float:
        """Return the value of a dof, m or rad."""
        self._update_from_closure()
        return float(self._values[self._check_dof(dof)])

    def set_values(self, *values: ArrayLike) -> bool:
        """Set the values of all dofs, m or rad, clamped to the limits; returns whether a value was outside them."""
        requested_values = self._values_by_dof(values, "values")
        self._check_not_mimic(self._dof)
        return self._assign(requested_values)

    def set_value(self, dof: DoFLike, value: float) -> bool:
        """Set the value of a dof, m or rad, clamped to its limits; returns whether the value was outside them."""
        valid_dof = self._check_dof(dof)
        requested_value = as_number(value, f"value of {self}")
        self._check_not_mimic((valid_dof,))
        return self._assign({valid_dof: requested_value})

    @property
    def rotation_wxyz(self) -> Array:
        """The rotation Rz Ry Rx of the motion, unit quaternion (4,)."""
        self._update_from_closure()
        if self.has_quaternion:
            return self._rotation_wxyz
        return read_only(quaternion.from_euler(self._values[[5, 4, 3]], order="zyx", axes="moving"))

    @rotation_wxyz.setter
    def rotation_wxyz(self, wxyz: ArrayLike) -> None:
        """Set the quaternion if the frame stores one; the Euler angles follow continuously."""
        if not self.has_quaternion:
            raise DoFError(f"{self} has no quaternion; set its angles with set_values")
        self._rotation_wxyz = read_only(self._unit_quaternion(wxyz))
        zyx = euler.euler_from_quaternion(self._rotation_wxyz, order="zyx", axes="moving", near=self._values[[5, 4, 3]])
        self._values[[5, 4, 3]] = zyx
        self._invalidate()

    @property
    def motion(self) -> Array:
        """The motion at the present values as a pose in this frame, (4, 4), before the child's own local pose."""
        A = quaternion.to_matrix(self._axes)
        return make_pose(A @ quaternion.to_matrix(self.rotation_wxyz) @ A.T, A @ self._values[:3])

    @property
    def child_world_matrix(self) -> Array:
        """The world pose of this frame times its motion, (4, 4): the frame to which the child's local pose refers."""
        return self._updated_X_world_children()

    # ---- limits -----------------------------------------------------------------------------

    @property
    def lower(self) -> Array:
        """Lower limits of all dofs, m or rad; -inf where there is none."""
        return read_only(self._lower[list(self._dof)])

    @property
    def upper(self) -> Array:
        """Upper limits of all dofs, m or rad; inf where there is none."""
        return read_only(self._upper[list(self._dof)])

    def limits(self, dof: DoFLike) -> tuple[float, float]:
        """Return the lower and upper limit of a dof, m or rad."""
        valid_dof = self._check_dof(dof)
        return float(self._lower[valid_dof]), float(self._upper[valid_dof])

    def set_limits(self, lower: ArrayLike, upper: ArrayLike) -> bool:
        """Set all limits, m or rad, and clamp the values; returns whether a value changed."""
        low, high = (self._values_by_dof((bounds,), "limits", allow_infinite=True) for bounds in (lower, upper))
        return self._set_bounds(low, high)

    def set_lower(self, *lower: ArrayLike) -> bool:
        """Set all lower limits, m or rad, and clamp the values; returns whether a value changed."""
        return self._set_bounds(self._values_by_dof(lower, "lower limits", allow_infinite=True), {})

    def set_upper(self, *upper: ArrayLike) -> bool:
        """Set all upper limits, m or rad, and clamp the values; returns whether a value changed."""
        return self._set_bounds({}, self._values_by_dof(upper, "upper limits", allow_infinite=True))

    def set_limit(self, dof: DoFLike, lower: float | None = None, upper: float | None = None) -> bool:
        """Set the limits of a dof, m or rad; None keeps a limit. Returns whether the value changed."""
        valid_dof = self._check_dof(dof)
        return self._set_bounds(
            {} if lower is None else {valid_dof: as_number(lower, f"lower limit of {self}", allow_infinite=True)},
            {} if upper is None else {valid_dof: as_number(upper, f"upper limit of {self}", allow_infinite=True)},
        )

    def effective_limits(self, dof: DoFLike) -> tuple[float, float]:
        """Return the limits, m or rad, to which values of a dof are clamped; overridden in `Joint`."""
        return self.limits(dof)

    # ---- private helpers --------------------------------------------------------------------

    def _X_world_children(self) -> Array:
        return super()._X_world_children() @ self.motion

    def _check_dof(self, dof: DoFLike) -> DoF:
        valid_dof = as_dof(dof)
        if valid_dof not in self._dof:
            dof_names = " ".join(joint_dof.name for joint_dof in self._dof) or "none"
            raise DoFError(f"{self} has no dof {valid_dof.name}; its dofs: {dof_names}")
        return valid_dof

    def _only_dof(self, label: str, advice: str = "name the dof") -> DoF:
        if len(self._dof) != 1:
            raise DoFError(f"{label}: {self} has {format_count(len(self._dof), 'dof')}, not 1; {advice}")
        return self._dof[0]

    def _values_by_dof(
        self, values: tuple[ArrayLike, ...], label: str, allow_infinite: bool = False
    ) -> dict[DoF, float]:
        numbers = as_numbers(values, len(self._dof), f"{label} of {self}", allow_infinite)
        return dict(zip(self._dof, numbers, strict=True))

    def _update_from_closure(self) -> None:
        """Update the values if a loop closure determines them; overridden in `Joint`."""

    def _check_not_mimic(self, dofs: Iterable[DoF]) -> None:
        """Raise for dofs that are coupled to a leader; overridden in `Joint`."""

    def _clamp(self, dof: DoF, value: float) -> float:
        lower, upper = self.effective_limits(dof)
        return min(max(value, lower), upper)

    def _assign(self, requested_values: dict[DoF, float]) -> bool:
        clamped_values = {dof: self._clamp(dof, value) for dof, value in requested_values.items()}
        for dof, value in clamped_values.items():
            self._values[dof] = value
        if any(dof.is_rotation for dof in clamped_values):
            self._rotation_wxyz = read_only(quaternion.from_euler(self._values[[5, 4, 3]], order="zyx", axes="moving"))
        self._invalidate()
        return clamped_values != requested_values

    def _set_bounds(self, lower: dict[DoF, float], upper: dict[DoF, float]) -> bool:
        for dof in {*lower, *upper}:
            low, high = lower.get(dof, float(self._lower[dof])), upper.get(dof, float(self._upper[dof]))
            if low == np.inf or high == -np.inf:
                raise LimitsError(f"limits of {dof.name} of {self}, {low} and {high}, exclude every value")
            if low > high:
                unit = dof.unit
                raise LimitsError(
                    f"limits of {dof.name} of {self}: the lower limit, {low} {unit}, is above the upper, {high} {unit}"
                )
        for dof, value in lower.items():
            self._lower[dof] = value
        for dof, value in upper.items():
            self._upper[dof] = value
        self._mark_changed()
        return self._assign({dof: float(self._values[dof]) for dof in self._dof})


AXIS_LETTERS = "xyz"


@dataclass(frozen=True, slots=True)
class Cone:
    """A cone limit: the chosen axes of motion stay within `angle` of their direction at zero rotation.

    With z alone, rotation about z is not limited. With all three axes the total rotation is limited too: to `angle`
    about each axis, and to at most about 25 % more about any other axis (for angles up to 0.9 rad).

    Attributes:
        angle: half of the opening angle, rad, above 0 and below pi.
        axes: letters of the limited axes, among x, y and z.
    """

    angle: float
    axes: str = "z"

    def __post_init__(self) -> None:
        angle = as_number(self.angle, "angle of a cone")
        if not 0.0 < angle < math.pi:
            raise LimitsError(f"angle of a cone must be between 0 and pi, not {angle:g} rad")
        axes = self.axes
        if not isinstance(axes, str) or not axes or any(letter not in AXIS_LETTERS for letter in axes):
            raise InvalidArgument(f"axes of a cone must be letters among x, y and z, not {axes!r}")
        object.__setattr__(self, "angle", angle)
        object.__setattr__(self, "axes", "".join(letter for letter in AXIS_LETTERS if letter in axes))

    @property
    def axis_indices(self) -> tuple[int, ...]:
        """The indices of the axes: 0, 1, 2."""
        return tuple(AXIS_LETTERS.index(letter) for letter in self.axes)


class ConeLimitedFrame(MovableFrame):
    """A movable frame with an optional cone limit on its rotation."""

    _cone: Cone | None

    def set_dof(self, dof: Iterable[DoFLike] | DoFLike) -> None:
        """Replace the dofs; resets values, limits and cone."""
        super().set_dof(dof)
        self._cone = None

    @property
    def cone(self) -> Cone | None:
        """The cone limit; None if there is none."""
        return self._cone

    def set_cone(self, angle: float | None, axes: str = "z") -> None:
        """Limit the tilt of a joint with two or three rotations, in the tree or in a closure; None removes the limit.

        Solvers satisfy the limit like a loop closure. Values that are set directly may violate the limit, just as they
        may violate a closure.

        Args:
            angle: rad, above 0 and below pi.
            axes: the limited axes of motion, which stay within `angle` of their direction at zero rotation. "z":
                rotation about z is not limited. "xyz": rotation is limited to `angle` about each axis,
                and about other axes as in `Cone`.

        Raises:
            DoFError: the joint has fewer than two rotations.
            LimitsError: the angle is out of range.
            InvalidArgument: `axes` is invalid.
        """
        if angle is None:
            self._cone = None
        else:
            rotation_count = sum(dof.is_rotation for dof in self._dof)
            if rotation_count < 2:
                raise DoFError(
                    f"{self} has {format_count(rotation_count, 'rotation')}, but a cone limit needs two or three; "
                    "use set_limits"
                )
            self._cone = Cone(angle, axes)
        self._mark_changed()


class Joint(ConeLimitedFrame):
    """A joint between a parent link and a child link, or a joint that closes a loop and ends on another link.

    Args:
        name: name of the joint; may be empty.
        dof: dofs in the order X Y Z EX EY EZ.
        position: (3,), in the parent link, m.
        wxyz: quaternion (4,), in the parent link.
        axis: (3,), in the joint frame; the axis of a joint of one dof. It replaces `axes_wxyz`.
        axes_wxyz: quaternion (4,), the rotation from the joint frame to the axes of motion.
        lower, upper: limits of all dofs; m or rad.
        values: values of all dofs, m or rad; clamped to the limits.

    Attributes:
        track_turns: whether targets and rest poses count full rotations; False: they mean the nearest equivalent angle.

    Raises:
        DoFError: `dof` is invalid, or `axis` is given and the number of dofs is not 1.
        LimitsError: a lower limit is above the upper limit.
        ShapeError, NotFinite: an array has the wrong shape or is not finite.
        NotARotation: an axis or a quaternion is zero.
        InvalidArgument: the name is not a string.

    Example:
        >>> joint = mk.Joint("elbow", dof="EZ", lower=-2.0, upper=2.0)
        >>> joint.set_values(3.0)
        True
        >>> joint.value("EZ")
        2.0
    """

    kind = "joint"
    settable_attributes = ("track_turns",)

    def __init__(
        self,
        name: str = "",
        *,
        dof: Iterable[DoFLike] | DoFLike = (),
        position: ArrayLike = (0, 0, 0),
        wxyz: ArrayLike = (1, 0, 0, 0),
        axis: ArrayLike | None = None,
        axes_wxyz: ArrayLike = (1, 0, 0, 0),
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        values: ArrayLike | None = None,
    ) -> None:
        self.track_turns = False
        """Whether targets and rest poses count full rotations; False: they mean the nearest equivalent angle."""
        self._targets: dict[DoF, float] = {}
        self._rest_pose: dict[DoF, float] = {}
        self._closure: Closure | None = None
        self._couplings: dict[DoF, Coupling] = {}
        self._mimic_couplings: list[Coupling] = []
        self._joint_constraints: list[JointConstraint] = []
        super().__init__(name, dof, position, wxyz, axes_wxyz)
        if axis is not None:
            self.axis = axis
        if lower is not None or upper is not None:
            infinite_limits = np.full(len(self._dof), np.inf)
            self.set_limits(-infinite_limits if lower is None else lower, infinite_limits if upper is None else upper)
        if values is not None:
            self.set_values(values)

    def __repr__(self) -> str:
        if self._closure is not None:  # without values, since computing them may fail
            names = " ".join(dof.name for dof in self._dof) or "fixed"
            return f"<joint {self.name!r} {names}: closes a loop onto {self._closure.link}>"
        values = " ".join(f"{dof.name}={self._values[dof]:.4g}" for dof in self._dof) or "fixed"
        child = self._children[0].name if self._children else None
        return f"<joint {self.name!r} {values}: {self._parent.name if self._parent else None!r} -> {child!r}>"

    def set_dof(self, dof: Iterable[DoFLike] | DoFLike) -> None:
        """Replace the dofs; resets values, limits, cone, targets, rest pose, couplings and joint constraints.

        Args:
            dof: any of X Y Z EX EY EZ, in this order; empty: the joint becomes fixed.

        Raises:
            DoFError: `dof` is invalid.
        """
        super().set_dof(dof)
        # a set, since a coupling of the joint with itself is in both lists
        for coupling in {*self._couplings.values(), *self._mimic_couplings}:
            coupling.undo()
        for constraint in tuple(self._joint_constraints):
            constraint.undo()
        self._targets.clear()
        self._rest_pose.clear()

    # ---- targets and rest pose --------------------------------------------------------------

    @property
    def targets(self) -> tuple[float | None, ...]:
        """The target values of all dofs, m or rad; None where there is no target."""
        return tuple(self._targets.get(dof) for dof in self._dof)

    def target(self, dof: DoFLike) -> float | None:
        """Return the target value of a dof, m or rad; None if it has no target.

        Args:
            dof: a dof of the joint.

        Raises:
            DoFError: the joint has no such dof.
        """
        return self._targets.get(self._check_dof(dof))

    def set_targets(self, *targets: ArrayLike) -> bool:
        """Set the targets of all dofs, m or rad, clamped to the limits; returns whether a target was outside them."""
        return self._store_clamped_targets(self._targets, self._values_by_dof(targets, "targets"))

    def set_target(self, dof: DoFLike, target: float) -> bool:
        """Set the target of a dof, m or rad, clamped to its limits; returns whether the target was outside them."""
        return self._store_clamped_targets(
            self._targets, {self._check_dof(dof): as_number(target, f"target of {self}")}
        )

    def clear_targets(self) -> None:
        """Remove the targets of all dofs."""
        self._targets.clear()

    @property
    def rest_pose(self) -> tuple[float | None, ...]:
        """The rest values of all dofs, m or rad, which the solver prefers; None where there is no preference."""
        return tuple(self._rest_pose.get(dof) for dof in self._dof)

    def rest_value(self, dof: DoFLike) -> float | None:
        """Return the rest value of a dof, m or rad; None if it has no rest value.

        Args:
            dof: a dof of the joint.

        Raises:
            DoFError: the joint has no such dof.
        """
        return self._rest_pose.get(self._check_dof(dof))

    def set_rest_pose(self, *values: ArrayLike) -> bool:
        """Set the rest values of all dofs, clamped to the limits; the solver prefers these values.

        Args:
            *values: a number for each dof, or one array of them, in the order of `dof`; m or rad.

        Returns:
            Whether a value was outside the limits.

        Raises:
            ShapeError: the number of values is not the number of dofs.
            CouplingError: a dof is coupled to a leader.
        """
        return self._store_clamped_targets(self._rest_pose, self._values_by_dof(values, "rest pose"))

    def set_rest_value(self, dof: DoFLike, value: float) -> bool:
        """Set the rest value of a dof, clamped to its limits; the solver prefers this value.

        Args:
            dof: a dof of the joint.
            value: m or rad.

        Returns:
            Whether the value was outside the limits.

        Raises:
            DoFError: the joint has no such dof.
            CouplingError: the dof is coupled to a leader.
        """
        return self._store_clamped_targets(
            self._rest_pose, {self._check_dof(dof): as_number(value, f"rest value of {self}")}
        )

    def save_rest_pose(self) -> None:
        """Store the present values as the rest pose, except those of mimic dofs."""
        self._update_from_closure()
        self._rest_pose = {dof: float(self._values[dof]) for dof in self._dof if dof not in self._couplings}

    def clear_rest_pose(self) -> None:
        """Remove the rest values of all dofs."""
        self._rest_pose.clear()

    def nearest_target(self, dof: DoFLike) -> float | None:
        """Return the target, or with `track_turns` False the equivalent angle nearest to the present value.

        Only angles inside the limits are considered.

        Args:
            dof: a dof of the joint; for a translation the target itself is returned.

        Returns:
            rad or m; None if the dof has no target.

        Raises:
            DoFError: the joint has no such dof.
        """
        return self._nearest_equivalent(self._check_dof(dof), self._targets)

    def nearest_rest_value(self, dof: DoFLike) -> float | None:
        """Return the rest value, or with `track_turns` False the equivalent angle nearest to the present value.

        Only angles inside the limits are considered.

        Args:
            dof: a dof of the joint; for a translation the rest value itself is returned.

        Returns:
            rad or m; None if the dof has no rest value.

        Raises:
            DoFError: the joint has no such dof.
        """
        return self._nearest_equivalent(self._check_dof(dof), self._rest_pose)

    # ---- child and closure ------------------------------------------------------------------

    @property
    def child(self) -> Link | None:
        """The child link, or the link on which this joint ends if it closes a loop; None if there is none."""
        if self._closure is not None:
            return self._closure.link
        return self._children[0] if self._children else None  # type: ignore[return-value]

    @property
    def closure(self) -> Closure | None:
        """The closure that connects the joint to a link that is not its child; None if the joint closes no loop."""
        return self._closure

    @property
    def is_closure(self) -> bool:
        """Whether the joint closes a loop: it ends on a link that is not its child."""
        return self._closure is not None

    def make_closure(self, link: Link, at: ArrayLike | Pose | None = None) -> Closure:
        """Close a loop: constrain this joint to end on a link that is not its child.

        Args:
            link: the link.
            at: X_link_end, the end of the joint on the link; default: the link frame.

        Returns:
            The closure; `Closure.undo` removes it.

        Raises:
            InvalidArgument: `link` is not a link.
            StructureError: the joint has a child, a closure, a coupling or a joint constraint, or is a child of `link`.
        """
        from mechanik.model.loop_closure import Closure

        return Closure(self, link, at)

    # ---- couplings and joint constraints ----------------------------------------------------

    @property
    def couplings(self) -> tuple[Coupling, ...]:
        """The couplings in which this joint is the mimic joint."""
        return tuple(self._couplings[dof] for dof in self._dof if dof in self._couplings)

    @property
    def joint_constraints(self) -> tuple[JointConstraint, ...]:
        """The joint constraints that contain a dof of this joint."""
        return tuple(self._joint_constraints)

    def mimic(
        self,
        leader: Joint,
        ratio: float = 1.0,
        offset: float = 0.0,
        *,
        dof: DoFLike | None = None,
        leader_dof: DoFLike | None = None,
    ) -> Coupling:
        """Couple a dof to a leader: value = ratio * leader's value + offset.

        Args:
            leader: the joint that this joint follows.
            ratio: coefficient of the leader's value.
            offset: m or rad.
            dof, leader_dof: the coupled dofs; required only for a joint of several dofs.

        Returns:
            The coupling; `Coupling.undo` removes it.

        Raises:
            InvalidArgument: `leader` is not a joint.
            DoFError: a joint does not have the dof, or the dof of a joint of several dofs is not specified.
            CouplingError: the dof already has a leader or would be its own leader, a joint closes a loop, or a dof
                is an angle of a joint with three rotations.
            ShapeError, NotFinite: `ratio` or `offset` is not a finite number.

        Example:
            >>> left, right = mk.Joint("left", dof="Z"), mk.Joint("right", dof="Z")
            >>> coupling = right.mimic(left, ratio=-1.0)
            >>> _ = left.set_values(0.02)
            >>> right.value("Z")
            -0.02
        """
        from mechanik.model.joint_constraint import Coupling

        if not isinstance(leader, Joint):
            raise InvalidArgument(f"the leader of {self} must be a joint, not {leader!r}")
        return Coupling(
            self,
            self._only_dof("dof") if dof is None else self._check_dof(dof),
            leader,
            leader._only_dof("leader_dof") if leader_dof is None else leader._check_dof(leader_dof),
            as_number(ratio, f"ratio of {self}"),
            as_number(offset, f"offset of {self}"),
        )

    def effective_limits(
        self, dof: DoFLike, replaced: Mapping[tuple[Joint, DoF], tuple[float, float]] | None = None
    ) -> tuple[float, float]:
        """Return the limits of a dof, m or rad, narrowed by the limits of its mimic dofs as long as a range remains.

        Args:
            dof: the dof.
            replaced: limits by joint and dof that replace those of the joints. Limits of mimic dofs given here always
                hold.

        Raises:
            LimitsError: limits in `replaced` leave no value.
        """
        valid_dof = self._check_dof(dof)
        replaced = {} if replaced is None else replaced
        lower, upper = replaced.get((self, valid_dof)) or self.limits(valid_dof)
        for coupling in self._mimic_couplings:
            if coupling.leader_dof is not valid_dof:
                continue
            low, high = coupling.limits_for_leader(replaced)
            if (coupling.mimic, coupling.dof) in replaced:
                if max(lower, low) > min(upper, high):
                    mimic_lower, mimic_upper = replaced[coupling.mimic, coupling.dof]
                    raise LimitsError(
                        f"the limits {mimic_lower:g} and {mimic_upper:g} of {coupling.mimic} leave no value for its "
                        f"leader {self}, which would have to be between {low:g} and {high:g}, but its limits are "
                        f"{lower:g} and {upper:g}"
                    )
                lower, upper = max(lower, low), min(upper, high)
            # in some files the limits of a mimic joint leave no range for the leader
            elif max(lower, low) < min(upper, high):
                lower, upper = max(lower, low), min(upper, high)
        return lower, upper

    # ---- private helpers --------------------------------------------------------------------

    def _update_from_closure(self) -> None:
        if self._closure is not None:
            self._closure.update_joint()

    def _free_dofs(self) -> tuple[DoF, ...]:
        """Return the dofs that remain free if this frame is closed onto a link."""
        return self._dof

    def _values_and_limits(self) -> tuple[Array, Array, Array]:
        """Return the stored values, near which a closure selects equivalent angles, and their limits, (6,) each."""
        return self._values, self._lower, self._upper

    def _store_values(self, values: dict[DoF, float]) -> None:
        self._assign(values)

    def _is_in_world_axes(self) -> bool:
        """Return whether the dofs are along the world axes, which is possible only for a `Goal`."""
        return False

    def _child_rejection_reason(self, child: Frame) -> str:
        if child.kind != "link":
            return "the child of a joint is a link"
        if self._closure is not None:
            return f"the joint closes a loop onto {self._closure.link}"
        return f"the joint already has the child {self._children[0]}" if self._children else ""

    def _check_can_close(self) -> None:
        """Raise `StructureError` if this joint cannot close a loop."""
        if self._children:
            raise StructureError(
                f"{self} has the child {self._children[0]}, so it cannot close a loop; remove the child"
            )
        if self._closure is not None:
            raise StructureError(f"{self} already closes a loop onto {self._closure.link}; call closure.undo() first")
        if self._couplings or self._mimic_couplings:
            raise StructureError(
                f"{self} is coupled to another joint, so it cannot close a loop; undo the coupling first"
            )
        if self._joint_constraints:
            raise StructureError(
                f"{self} is part of {self._joint_constraints[0]}, so it cannot close a loop; undo the constraint first"
            )

    def _check_not_mimic(self, dofs: Iterable[DoF]) -> None:
        for dof in dofs:
            if dof in self._couplings:
                raise CouplingError(
                    f"{dof.name} of {self} is coupled to {self._couplings[dof].leader}; set the value of the leader"
                )

    def _assign(self, requested_values: dict[DoF, float]) -> bool:
        was_outside = super()._assign(requested_values)
        for coupling in self._mimic_couplings:
            coupling.update_mimic()
        return was_outside

    def _set_bounds(self, lower: dict[DoF, float], upper: dict[DoF, float]) -> bool:
        has_moved = super()._set_bounds(lower, upper)
        self._clamp_targets()
        for coupling in self.couplings:  # the leader must stay inside the limits of its mimic joints
            leader, dof, _, _ = coupling.resolve()
            leader._clamp_targets()
            leader._assign({dof: float(leader._values[dof])})
        return has_moved

    def _clamp_targets(self) -> None:
        for targets in (self._targets, self._rest_pose):
            targets.update({dof: self._clamp(dof, value) for dof, value in targets.items()})

    def _store_clamped_targets(self, targets: dict[DoF, float], requested_values: dict[DoF, float]) -> bool:
        self._check_not_mimic(requested_values)
        clamped_targets = {dof: self._clamp(dof, value) for dof, value in requested_values.items()}
        targets.update(clamped_targets)
        return clamped_targets != requested_values

    def _nearest_equivalent(self, dof: DoF, targets: dict[DoF, float]) -> float | None:
        target = targets.get(dof)
        if target is None or self.track_turns or not dof.is_rotation:
            return target
        self._update_from_closure()
        lower, upper = self.effective_limits(dof)
        turns = round((self._values[dof] - target) / (2 * math.pi))
        # if the nearest equivalent angle is outside the limits, the nearest one inside is used, at worst `target`
        while turns > 0 and target + 2 * math.pi * turns > upper:
            turns -= 1
        while turns < 0 and target + 2 * math.pi * turns < lower:
            turns += 1
        return target + 2 * math.pi * turns


def find_roots(frames: Frame | Iterable[Frame]) -> tuple[Frame, ...]:
    """Find the root frames of all trees that are reachable from `frames` by closures, couplings and joint constraints.

    Args:
        frames: a frame, or several.

    Returns:
        Each root, in the order of discovery; the roots of `frames` first.

    Raises:
        InvalidArgument: an entry is not a frame.

    Example:
        >>> linkage = mk.gallery.four_bar()
        >>> [root.name for root in mk.find_roots(linkage.link("rocker"))]
        ['ground']
    """
    try:
        pending_frames = [frames] if isinstance(frames, Frame) else list(frames)
    except TypeError:
        raise InvalidArgument(f"{frames!r} is not a link, joint or goal") from None
    for frame in pending_frames:
        if not isinstance(frame, Frame):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(f"{frame!r} is not a link, joint or goal")
    roots: dict[Frame, None] = {}
    while pending_frames:
        root = pending_frames.pop(0).root
        if root in roots:
            continue
        roots[root] = None
        for frame in root.traverse():
            if isinstance(frame, Joint | Goal) and frame.closure is not None:
                pending_frames.append(frame.closure.link)
            if isinstance(frame, Joint):
                pending_frames.extend(coupling.leader for coupling in frame.couplings)
                pending_frames.extend(coupling.mimic for coupling in frame._mimic_couplings)
                pending_frames.extend(joint for constraint in frame._joint_constraints for joint in constraint.joints)
            elif isinstance(frame, Link):
                pending_frames.extend(closure.joint for closure in frame.closures)
    return tuple(roots)
