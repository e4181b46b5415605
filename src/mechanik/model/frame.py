"""Frames of the kinematic graph: `Frame`, the rigid body `Link` and the pose target `Goal`.

A frame has a pose in its parent frame; frames form a tree. World poses are computed on demand and cached.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from mechanik.errors import (
    DoFError,
    InvalidArgument,
    NotARotation,
    StructureError,
)
from mechanik.model.dof import ALL_DOFS, DoF, DoFLike, as_dofs
from mechanik.model.shapes import Inertial, ShapeInstance, check_shape_instances
from mechanik.spatial import Pose, as_pose_matrix, from_position_wxyz, inverse, quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_vector, read_only

if TYPE_CHECKING:
    from mechanik.model.loop_closure import Closure


_serials = itertools.count()


class Frame:
    """A coordinate frame: a pose in its parent frame, with children.

    World poses are computed on demand. The arrays of a frame are read-only; assign a new array to move the frame.

    Args:
        name: name of the frame; may be empty.
        position: (3,), in the parent frame, m.
        wxyz: quaternion (4,), in the parent frame; of any norm except zero.

    Raises:
        InvalidArgument: the name is not a string.
        ShapeError, NotFinite: an array has the wrong shape or is not finite.
        NotARotation: `wxyz` is zero.

    Example:
        >>> link = mk.Link("base", position=(0, 0, 1))
        >>> joint = mk.Joint("shoulder", dof="EZ", position=(0.5, 0, 0))
        >>> link.add_child(joint)
        >>> joint.world_position
        array([0.5, 0. , 1. ])
    """

    kind = "frame"
    settable_attributes: tuple[str, ...] = ()
    """Names of plain attributes that may be assigned."""
    edit_count = 0
    """Counter that increases with each edit of any graph; while it is unchanged, all compiled data is up to date."""

    def __init__(self, name: str = "", *, position: ArrayLike = (0, 0, 0), wxyz: ArrayLike = (1, 0, 0, 0)) -> None:
        self._name = self._check_name(name)
        self._serial = next(_serials)
        self._parent: Frame | None = None
        self._children: list[Frame] = []
        self._revision = 0
        self._X_world_frame: Array | None = None
        self._position = self._wxyz = self._X_parent_frame = np.zeros(0)
        self._set_local_pose(as_vector(position, 3, f"position of {self}"), self._unit_quaternion(wxyz))

    def __str__(self) -> str:
        """Return kind and name, for messages."""
        return f"<{self.kind} {self.name!r}>" if self.name else f"<unnamed {self.kind}>"

    def __repr__(self) -> str:
        position = np.array2string(self._position, precision=4, suppress_small=True)
        parent = f" on {self._parent.name!r}" if self._parent is not None else ""
        return f"<{self.kind} {self.name!r}{parent}, at {position}>"

    def __setattr__(self, name: str, value: object) -> None:
        """Raise for attributes that cannot be set: `joint.value = 1` would replace a method and move nothing."""
        class_attribute = getattr(type(self), name, None)
        if (
            not name.startswith("_")
            and name not in self.settable_attributes
            and not isinstance(class_attribute, property)
        ):
            hint = f"; call set_{name}(...)" if hasattr(self, f"set_{name}") else ""
            raise AttributeError(f"the attribute {name!r} of {self} cannot be set{hint}")
        super().__setattr__(name, value)

    @property
    def name(self) -> str:
        """Name of the frame; may be empty. It can be assigned."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = self._check_name(name)
        self._record_edit()

    # ---- pose -------------------------------------------------------------------------------

    @property
    def position(self) -> Array:
        """Position in the parent frame, (3,), m."""
        return self._position

    @position.setter
    def position(self, position: ArrayLike) -> None:
        self._move(as_vector(position, 3, f"position of {self}"), self._wxyz)

    @property
    def wxyz(self) -> Array:
        """Orientation in the parent frame, unit quaternion (4,)."""
        return self._wxyz

    @wxyz.setter
    def wxyz(self, wxyz: ArrayLike) -> None:
        self._move(self._position, self._unit_quaternion(wxyz))

    @property
    def matrix(self) -> Array:
        """Pose in the parent frame, X_parent_frame, (4, 4)."""
        return self._X_parent_frame

    @matrix.setter
    def matrix(self, X_parent_frame: ArrayLike | Pose) -> None:
        pose = Pose.from_matrix(as_pose_matrix(X_parent_frame, f"matrix of {self}"))
        self._move(pose.position, pose.wxyz)

    @property
    def world_matrix(self) -> Array:
        """Pose in the world, X_world_frame, (4, 4); for a joint, its pose without the joint motion."""
        if self._X_world_frame is None:
            # without recursion, which would overflow Python's stack for an arm of a thousand frames
            stale_frames: list[Frame] = [self]
            while (parent_frame := stale_frames[-1]._parent) is not None and parent_frame._X_world_frame is None:
                stale_frames.append(parent_frame)
            for frame in reversed(stale_frames):
                parent = frame._parent
                X_world = (
                    frame._X_parent_frame if parent is None else parent._X_world_children() @ frame._X_parent_frame
                )
                frame._X_world_frame = read_only(X_world)
        return self._X_world_frame  # type: ignore[return-value]

    @world_matrix.setter
    def world_matrix(self, X_world_frame: ArrayLike | Pose) -> None:
        X_world = as_pose_matrix(X_world_frame, f"world matrix of {self}")
        self.matrix = X_world if self._parent is None else inverse(self._parent._updated_X_world_children()) @ X_world

    @property
    def world_position(self) -> Array:
        """Position in the world, (3,), m."""
        return self.world_matrix[:3, 3]

    @world_position.setter
    def world_position(self, position: ArrayLike) -> None:
        p_world_frame = as_vector(position, 3, f"world position of {self}")
        if self._parent is None:
            self.position = p_world_frame
        else:
            X_parent_world = inverse(self._parent._updated_X_world_children())
            self.position = X_parent_world[:3, :3] @ p_world_frame + X_parent_world[:3, 3]

    @property
    def world_wxyz(self) -> Array:
        """Orientation in the world, unit quaternion (4,)."""
        return quaternion.from_matrix(self.world_matrix[:3, :3])

    @world_wxyz.setter
    def world_wxyz(self, wxyz: ArrayLike) -> None:
        local_wxyz = self._unit_quaternion(wxyz)
        if self._parent is not None:
            parent_wxyz = quaternion.from_matrix(self._parent._updated_X_world_children()[:3, :3])
            local_wxyz = quaternion.multiply(quaternion.conjugate(parent_wxyz), local_wxyz)
        self.wxyz = local_wxyz

    # ---- tree -------------------------------------------------------------------------------

    @property
    def parent(self) -> Frame | None:
        """The parent frame, in which `position`, `wxyz` and `matrix` are given; None for a root frame."""
        return self._parent

    @property
    def children(self) -> tuple[Frame, ...]:
        """The child frames, in the order in which they were added."""
        return tuple(self._children)

    @property
    def root(self) -> Frame:
        """The root frame of the tree, which may be this frame."""
        frame = self
        while frame._parent is not None:
            frame = frame._parent
        return frame

    def add_child(self, child: Frame) -> None:
        """Add a child; it keeps its local pose, so its world pose changes.

        Raises:
            InvalidArgument: `child` is not a frame, or this frame cannot have it as a child.
            StructureError: the child has a parent, or is this frame or an ancestor of this frame.
        """
        self._check_child(child)
        self._children.append(child)
        child._parent = self
        child._invalidate()
        child._revision += 1  # the child is no longer a root; mechanisms with this root must be updated
        child._record_edit()

    def remove_child(self, child: Frame) -> None:
        """Remove a child; it keeps its local pose, so its world pose changes.

        Raises:
            StructureError: the frame is not a child of this frame.
        """
        self._check_is_child(child)
        child._record_edit()
        self._children.remove(child)
        child._parent = None
        child._invalidate()
        child._record_edit()

    def attach_child(self, child: Frame) -> None:
        """Add a child and keep its world pose; the child is removed from its present parent.

        Raises:
            InvalidArgument: `child` is not a frame, or this frame cannot have it as a child.
            StructureError: the child is this frame or an ancestor of this frame.
        """
        self._check_child(child, may_have_parent=True)
        X_world_child = child.world_matrix
        if child._parent is not None:
            child._parent.remove_child(child)
        self.add_child(child)
        child.world_matrix = X_world_child

    def detach_child(self, child: Frame) -> None:
        """Remove a child and keep its world pose.

        Raises:
            StructureError: the frame is not a child of this frame.
        """
        self._check_is_child(child)
        X_world_child = child.world_matrix
        self.remove_child(child)
        child.world_matrix = X_world_child

    def traverse(self) -> Iterator[Frame]:
        """Iterate over this frame and all frames below it, breadth first."""
        queue: deque[Frame] = deque([self])
        while queue:
            frame = queue.popleft()
            yield frame
            queue.extend(frame._children)

    def traverse_parents(self) -> Iterator[Frame]:
        """Iterate over the ancestors of this frame, from the parent to the root."""
        frame = self._parent
        while frame is not None:
            yield frame
            frame = frame._parent

    def find(self, name_or_predicate: str | Callable[[Frame], bool]) -> Frame | None:
        """Find the first frame, breadth first, that has this name or satisfies the predicate; None if there is none.

        Args:
            name_or_predicate: name, or a function that takes a frame and returns whether it is a match. The search
                starts with this frame itself.
        """
        for frame in self.traverse():
            if frame.name == name_or_predicate if isinstance(name_or_predicate, str) else name_or_predicate(frame):
                return frame
        return None

    # ---- private helpers --------------------------------------------------------------------

    def _child_rejection_reason(self, child: Frame) -> str:
        """Return the reason why `child` cannot be a child of this frame; empty if it can."""
        return ""

    def _check_child(self, child: object, may_have_parent: bool = False) -> None:
        if not isinstance(child, Frame):
            raise InvalidArgument(f"a child of {self} must be a frame, not a {type(child).__name__}")
        if child is self:
            raise StructureError(f"{self} cannot be its own child", code="cycle")
        if reason := self._child_rejection_reason(child):
            raise InvalidArgument(f"{child} cannot be a child of {self}: {reason}")
        if child._parent is not None and not may_have_parent:
            raise StructureError(
                f"{child} already has the parent {child._parent}; first remove it from that parent",
                code="second-parent",
            )
        if any(ancestor is child for ancestor in self.traverse_parents()):
            raise StructureError(f"{child} is an ancestor of {self}, so it cannot become its child", code="cycle")

    def _check_name(self, name: object) -> str:
        if not isinstance(name, str):
            raise InvalidArgument(f"the name of a {self.kind} must be a string, not {name!r}")
        return name

    def _check_is_child(self, child: object) -> None:
        if not isinstance(child, Frame):
            raise StructureError(f"{child!r} is not a frame, so it is not a child of {self}")
        if child._parent is not self:
            parent = "it has no parent" if child._parent is None else f"its parent is {child._parent}"
            raise StructureError(f"{child} is not a child of {self}; {parent}")

    def _unit_quaternion(self, wxyz: ArrayLike) -> Array:
        values = as_vector(wxyz, 4, f"wxyz of {self}")
        if float(np.abs(values).max()) <= 1e-12:
            raise NotARotation(f"wxyz of {self} is {values.tolist()}; a quaternion cannot be zero")
        return quaternion.normalize(values)

    def _set_local_pose(self, position: Array, wxyz: Array) -> None:
        self._position, self._wxyz = read_only(position), read_only(wxyz)
        self._X_parent_frame = read_only(from_position_wxyz(position, wxyz))

    def _move(self, position: Array, wxyz: Array) -> None:
        self._set_local_pose(position, wxyz)
        self._invalidate()
        self._mark_changed()

    def _X_world_children(self) -> Array:
        """Return the world pose that the local poses of children refer to; the cached world pose must be valid."""
        assert self._X_world_frame is not None
        return self._X_world_frame

    def _updated_X_world_children(self) -> Array:
        _ = self.world_matrix
        return self._X_world_children()

    def _invalidate(self) -> None:
        """Drop the cached world poses of this frame and all frames below it."""
        stale_frames: list[Frame] = [self]
        while stale_frames:
            frame = stale_frames.pop()
            frame._X_world_frame = None
            stale_frames.extend(child for child in frame._children if child._X_world_frame is not None)

    def _mark_changed(self) -> None:
        """Record that the pose or the dofs of this frame changed; for a goal, this is no edit."""
        self._record_edit()

    def _record_edit(self) -> None:
        """Record an edit of any kind: mechanisms compile their derived data again on the next use."""
        self.root._revision += 1
        Frame.edit_count += 1


class Link(Frame):
    """A rigid body; its children are joints and goals.

    Args:
        name: name of the link; may be empty.
        position: (3,), in the parent frame, m.
        wxyz: quaternion (4,), in the parent frame.
        visuals: shapes for display.
        collisions: shapes for collision checks.
        inertial: mass and inertia; None if unknown.

    Raises:
        InvalidArgument: the name is not a string, or a shape is not a `ShapeInstance`.
        ShapeError, NotFinite, NotARotation: as in `Frame`.

    Example:
        >>> link = mk.Link("hand", collisions=[mk.ShapeInstance(mk.Box((0.1, 0.1, 0.2)))])
        >>> link.collisions[0].shape.size
        (0.1, 0.1, 0.2)
    """

    kind = "link"

    def __init__(
        self,
        name: str = "",
        *,
        position: ArrayLike = (0, 0, 0),
        wxyz: ArrayLike = (1, 0, 0, 0),
        visuals: Sequence[ShapeInstance] = (),
        collisions: Sequence[ShapeInstance] = (),
        inertial: Inertial | None = None,
    ) -> None:
        super().__init__(name, position=position, wxyz=wxyz)
        self.visuals = visuals
        self.collisions = collisions
        self._inertial = inertial
        self._closures: list[Closure] = []

    @property
    def visuals(self) -> tuple[ShapeInstance, ...]:
        """The shapes for display."""
        return self._visuals

    @visuals.setter
    def visuals(self, shapes: Iterable[ShapeInstance]) -> None:
        self._visuals = check_shape_instances(shapes, f"link {self.name!r}: visuals")

    @property
    def collisions(self) -> tuple[ShapeInstance, ...]:
        """The shapes for collision checks."""
        return self._collisions

    @collisions.setter
    def collisions(self, shapes: Iterable[ShapeInstance]) -> None:
        self._collisions = check_shape_instances(shapes, f"link {self.name!r}: collisions")

    @property
    def inertial(self) -> Inertial | None:
        """Mass and inertia; None if unknown. It can be assigned."""
        return self._inertial

    @inertial.setter
    def inertial(self, inertial: Inertial | None) -> None:
        self._inertial = inertial
        self._record_edit()

    @property
    def closures(self) -> tuple[Closure, ...]:
        """The closures of joints and goals that end on this link."""
        return tuple(self._closures)

    def _child_rejection_reason(self, child: Frame) -> str:
        if child.kind not in ("joint", "goal"):
            return "children of a link are joints and goals"
        closure = getattr(child, "closure", None)
        is_end = closure is not None and closure.link is self
        return "its closure already ends on this link; call closure.undo() first" if is_end else ""


class Goal(Frame):
    """A target pose for a link, in up to six dofs; the goal is fixed in the world or attached to another link.

    Args:
        name: name of the goal; may be empty.
        dof: the constrained dofs; they must be in the order X Y Z EX EY EZ. Default: all six.
        axes: "goal": the dofs are along and about the axes of the goal; "world": the axes of the world.
        position: (3,), in the parent frame, m.
        wxyz: quaternion (4,), in the parent frame.

    Raises:
        DoFError: `dof` or `axes` is invalid.
        InvalidArgument, ShapeError, NotFinite, NotARotation: as in `Frame`.

    Example:
        >>> goal = mk.Goal("target", dof="X Y Z".split(), position=(0.4, 0, 0.5))
        >>> [dof.name for dof in goal.free_dof]
        ['EX', 'EY', 'EZ']
    """

    kind = "goal"

    def __init__(
        self,
        name: str = "",
        *,
        dof: Iterable[DoFLike] | DoFLike = ALL_DOFS,
        axes: Literal["goal", "world"] = "goal",
        position: ArrayLike = (0, 0, 0),
        wxyz: ArrayLike = (1, 0, 0, 0),
    ) -> None:
        super().__init__(name, position=position, wxyz=wxyz)
        self._closure: Closure | None = None
        self._dof = as_dofs(dof)
        self.axes = axes

    @property
    def goal_dof(self) -> tuple[DoF, ...]:
        """The constrained dofs."""
        return self._dof

    def set_goal_dof(self, dof: Iterable[DoFLike] | DoFLike) -> None:
        """Replace the constrained dofs; all other dofs become free.

        Args:
            dof: any of X Y Z EX EY EZ, in this order, along and about the axes that `axes` selects.

        Raises:
            DoFError: `dof` is invalid.
        """
        self._dof = as_dofs(dof)
        self._record_edit()

    @property
    def free_dof(self) -> tuple[DoF, ...]:
        """The unconstrained dofs."""
        return tuple(dof for dof in ALL_DOFS if dof not in self._dof)

    def set_free_dof(self, dof: Iterable[DoFLike] | DoFLike) -> None:
        """Replace the unconstrained dofs; all other dofs become constrained.

        Args:
            dof: any of X Y Z EX EY EZ, in this order, along and about the axes that `axes` selects.

        Raises:
            DoFError: `dof` is invalid.
        """
        free_dofs = as_dofs(dof)
        self.set_goal_dof([dof for dof in ALL_DOFS if dof not in free_dofs])

    @property
    def axes(self) -> Literal["goal", "world"]:
        """The frame whose axes define the dofs: "goal" or "world"."""
        return self._axes_frame

    @axes.setter
    def axes(self, axes: Literal["goal", "world"]) -> None:
        if axes not in ("goal", "world"):
            raise DoFError(f"axes of {self} must be 'goal' or 'world', not {axes!r}")
        self._axes_frame: Literal["goal", "world"] = axes
        self._record_edit()

    @property
    def axes_wxyz(self) -> Array:
        """Rotation from the goal to its axes of motion, quaternion (4,): the identity; not used with axes="world"."""
        return quaternion.identity()

    @property
    def child(self) -> Link | None:
        """The link to bring to this goal, connected by a closure and not in `children`; None if there is none."""
        return self._closure.link if self._closure is not None else None

    @property
    def closure(self) -> Closure | None:
        """The closure that connects the goal to its link; None if the goal has no link."""
        return self._closure

    def make_closure(self, link: Link, at: ArrayLike | Pose | None = None) -> Closure:
        """Make this goal the target of a link.

        Args:
            link: the link to bring to the goal.
            at: X_link_end, the frame on the link to bring to the goal; default: the link frame.

        Returns:
            The closure; `Closure.undo` removes it.

        Raises:
            InvalidArgument: `link` is not a link.
            StructureError: the goal already has a link, or is a child of `link`.
        """
        from mechanik.model.loop_closure import Closure

        return Closure(self, link, at)

    def _check_can_close(self) -> None:
        if self._closure is not None:
            raise StructureError(f"{self} already is the goal of {self._closure.link}; call closure.undo() first")

    def _free_dofs(self) -> tuple[DoF, ...]:
        return self.free_dof

    def _values_and_limits(self) -> tuple[Array, Array, Array]:
        return np.zeros(6), np.full(6, -np.inf), np.full(6, np.inf)

    def _store_values(self, values: dict[DoF, float]) -> None:
        """Do nothing: a goal has no joint values."""

    def _is_in_world_axes(self) -> bool:
        return self._axes_frame == "world"

    def _child_rejection_reason(self, child: Frame) -> str:
        return "a goal has no children"

    def _mark_changed(self) -> None:
        """Do nothing: the pose of a goal is a target and not part of the compiled data of a mechanism."""
