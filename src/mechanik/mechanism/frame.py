"""A frame in space: a pose in its parent, a place in a tree."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from mechanik.errors import CyclicStructure, NotAChild, NotARotation, SecondParent, WrongKind
from mechanik.mechanism.door import as_vector, read_only
from mechanik.spatial import Pose, as_pose_matrix, from_position_wxyz, inverse, quaternion
from mechanik.spatial.array import Array, ArrayLike

_serials = itertools.count()


class Frame:
    """A pose relative to a parent, with children. World poses are computed when asked for.

    Arrays that are read from a frame are read-only; assign to move it.
    """

    kind = "frame"
    plain: tuple[str, ...] = ()
    """Attributes that are set without further ado."""
    edits = 0
    """Counts the edits of all graphs: while it stands still, nothing that was compiled can be out of date."""

    def __init__(self, name: str = "", *, position: ArrayLike = (0, 0, 0), wxyz: ArrayLike = (1, 0, 0, 0)) -> None:
        self._name = self._checked_name(name)
        self._serial = next(_serials)
        self._parent: Frame | None = None
        self._children: list[Frame] = []
        self._revision = 0
        self._X_world: Array | None = None
        self._position = self._wxyz = self._X_parent = np.zeros(0)
        self._place(as_vector(position, 3, f"position of {self}"), self._unit(wxyz))

    def __str__(self) -> str:
        """For messages: kind and name."""
        return f"<{self.kind} {self.name!r}>" if self.name else f"<unnamed {self.kind}>"

    def __repr__(self) -> str:
        place = np.array2string(self._position, precision=4, suppress_small=True)
        on = f" on {self._parent.name!r}" if self._parent is not None else ""
        return f"<{self.kind} {self.name!r}{on}, at {place}>"

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse what would be lost, such as `joint.value = 1`, which would only hide a method."""
        known = getattr(type(self), name, None)
        if not name.startswith("_") and name not in self.plain and not isinstance(known, property):
            hint = f"; call set_{name}(...)" if hasattr(self, f"set_{name}") else ""
            raise AttributeError(f"{self} has no attribute {name!r} that can be set{hint}")
        super().__setattr__(name, value)

    @property
    def name(self) -> str:
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = self._checked_name(name)
        self._touch_structure()

    # ---- pose -------------------------------------------------------------------------------

    @property
    def position(self) -> Array:
        """(3,), in the parent."""
        return self._position

    @position.setter
    def position(self, position: ArrayLike) -> None:
        self._move(as_vector(position, 3, f"position of {self}"), self._wxyz)

    @property
    def wxyz(self) -> Array:
        """Unit quaternion (4,), in the parent."""
        return self._wxyz

    @wxyz.setter
    def wxyz(self, wxyz: ArrayLike) -> None:
        self._move(self._position, self._unit(wxyz))

    @property
    def matrix(self) -> Array:
        """X_parent_frame, (4, 4)."""
        return self._X_parent

    @matrix.setter
    def matrix(self, X_parent_frame: ArrayLike | Pose) -> None:
        pose = Pose.from_matrix(as_pose_matrix(X_parent_frame, f"matrix of {self}"))
        self._move(pose.position, pose.wxyz)

    @property
    def world_matrix(self) -> Array:
        """X_world_frame, (4, 4). For a joint: where it sits, before its own motion."""
        if self._X_world is None:
            stale: list[Frame] = [self]  # a loop: arms of a thousand frames are deeper than Python's stack
            while (above := stale[-1]._parent) is not None and above._X_world is None:
                stale.append(above)
            for frame in reversed(stale):
                parent = frame._parent
                X_world = frame._X_parent if parent is None else parent._X_world_children() @ frame._X_parent
                frame._X_world = read_only(X_world)
        return self._X_world  # type: ignore[return-value]

    @world_matrix.setter
    def world_matrix(self, X_world_frame: ArrayLike | Pose) -> None:
        X_world = as_pose_matrix(X_world_frame, f"world matrix of {self}")
        self.matrix = X_world if self._parent is None else inverse(self._parent._X_world_children_fresh()) @ X_world

    @property
    def world_position(self) -> Array:
        """(3,), in the world."""
        return self.world_matrix[:3, 3]

    @world_position.setter
    def world_position(self, position: ArrayLike) -> None:
        p_world = as_vector(position, 3, f"world position of {self}")
        if self._parent is None:
            self.position = p_world
        else:
            X_parent_world = inverse(self._parent._X_world_children_fresh())
            self.position = X_parent_world[:3, :3] @ p_world + X_parent_world[:3, 3]

    @property
    def world_wxyz(self) -> Array:
        """Unit quaternion (4,), in the world."""
        return quaternion.from_matrix(self.world_matrix[:3, :3])

    @world_wxyz.setter
    def world_wxyz(self, wxyz: ArrayLike) -> None:
        turn = self._unit(wxyz)
        if self._parent is not None:
            above = quaternion.from_matrix(self._parent._X_world_children_fresh()[:3, :3])
            turn = quaternion.multiply(quaternion.conjugate(above), turn)
        self.wxyz = turn

    # ---- tree -------------------------------------------------------------------------------

    @property
    def parent(self) -> Frame | None:
        return self._parent

    @property
    def children(self) -> tuple[Frame, ...]:
        return tuple(self._children)

    @property
    def root(self) -> Frame:
        """The frame at the top of the tree, which may be this one."""
        frame = self
        while frame._parent is not None:
            frame = frame._parent
        return frame

    def add_child(self, child: Frame) -> None:
        """Take `child` in; its pose in its parent stays, so it moves in the world."""
        self._check_child(child)
        self._children.append(child)
        child._parent = self
        child._invalidate()
        child._revision += 1  # it is no root any more: whoever took it for one must look again
        child._touch_structure()

    def remove_child(self, child: Frame) -> None:
        """Let `child` go; its pose in its parent stays, so it moves in the world."""
        if not isinstance(child, Frame) or child._parent is not self:
            if not isinstance(child, Frame):
                raise NotAChild(f"{child!r} is no frame, so {self} cannot hold it")
            raise NotAChild(
                f"{child} is not a child of {self}" + (f", but of {child._parent}" if child._parent else "")
            )
        child._touch_structure()
        self._children.remove(child)
        child._parent = None
        child._invalidate()
        child._touch_structure()

    def attach_child(self, child: Frame) -> None:
        """Take `child` in where it is: its world pose stays. A parent that it has lets it go."""
        self._check_child(child, may_have_parent=True)
        X_world = child.world_matrix
        if child._parent is not None:
            child._parent.remove_child(child)
        self.add_child(child)
        child.world_matrix = X_world

    def detach_child(self, child: Frame) -> None:
        """Let `child` go where it is: its world pose stays."""
        self._check_holds(child)
        X_world = child.world_matrix
        self.remove_child(child)
        child.world_matrix = X_world

    def traverse(self) -> Iterator[Frame]:
        """This frame and all below it, breadth first; leave the loop to stop early."""
        waiting: deque[Frame] = deque([self])
        while waiting:
            frame = waiting.popleft()
            yield frame
            waiting.extend(frame._children)

    def traverse_parents(self) -> Iterator[Frame]:
        """The frames above this one, the closest first; leave the loop to stop early."""
        frame = self._parent
        while frame is not None:
            yield frame
            frame = frame._parent

    def find(self, wanted: str | Callable[[Frame], bool]) -> Frame | None:
        """The first frame, breadth first, of that name, or for which the function says yes; None without."""
        for frame in self.traverse():
            if frame.name == wanted if isinstance(wanted, str) else wanted(frame):
                return frame
        return None

    # ---- inside -----------------------------------------------------------------------------

    def _accepts(self, child: Frame) -> str:
        """Empty, or why a frame of that kind may not hang here."""
        return ""

    def _check_child(self, child: object, may_have_parent: bool = False) -> None:
        if not isinstance(child, Frame):
            raise WrongKind(f"{self} was given a {type(child).__name__} as a child; it takes frames")
        if child is self:
            raise CyclicStructure(f"{self} cannot be its own child")
        if reason := self._accepts(child):
            raise WrongKind(f"{self} cannot hold {child}: {reason}")
        if child._parent is not None and not may_have_parent:
            raise SecondParent(f"{child} already has the parent {child._parent}; remove it there first")
        if any(above is child for above in self.traverse_parents()):
            raise CyclicStructure(f"{child} stands above {self} and cannot become its child")

    def _checked_name(self, name: object) -> str:
        if not isinstance(name, str):
            raise WrongKind(f"the name of a {self.kind} is a string, not {name!r}")
        return name

    def _check_holds(self, child: object) -> None:
        if not isinstance(child, Frame):
            raise NotAChild(f"{child!r} is no frame, so {self} cannot hold it")
        if child._parent is not self:
            raise NotAChild(f"{child} is not a child of {self}; its parent is {child._parent}")

    def _unit(self, wxyz: ArrayLike) -> Array:
        turn = as_vector(wxyz, 4, f"wxyz of {self}")
        largest = float(np.abs(turn).max())
        norm = float(np.linalg.norm(turn / largest)) * largest if largest > 1e-12 else 0.0
        if norm == 0.0:
            raise NotARotation(f"wxyz of {self} is {turn.tolist()}; a quaternion cannot be zero")
        # left alone when it is a unit already, so that what was written is read back to the last bit
        return turn if abs(norm - 1.0) < 4e-16 else turn / norm

    def _place(self, position: Array, wxyz: Array) -> None:
        self._position, self._wxyz = read_only(position), read_only(wxyz)
        self._X_parent = read_only(from_position_wxyz(position, wxyz))

    def _move(self, position: Array, wxyz: Array) -> None:
        self._place(position, wxyz)
        self._invalidate()
        self._touch()

    def _X_world_children(self) -> Array:
        """The world pose that children stand in; this frame's own world pose must be fresh."""
        assert self._X_world is not None
        return self._X_world

    def _X_world_children_fresh(self) -> Array:
        _ = self.world_matrix
        return self._X_world_children()

    def _invalidate(self) -> None:
        """Forget the world poses from here down."""
        stale: list[Frame] = [self]
        while stale:
            frame = stale.pop()
            frame._X_world = None
            stale.extend(child for child in frame._children if child._X_world is not None)

    def _touch(self) -> None:
        """Say that this frame's pose or freedoms changed."""
        self._touch_structure()

    def _touch_structure(self) -> None:
        """Tell the tree that it changed, so that what was compiled from it is compiled again."""
        self.root._revision += 1
        Frame.edits += 1
