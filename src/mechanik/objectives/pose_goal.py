"""A frame of a link at a pose, in some or all of its six directions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self, Unpack

import numpy as np

from mechanik.errors import DoFError, ObjectiveError
from mechanik.mechanism.dof import ALL, ROTATIONS, TRANSLATIONS, DoF, DoFLike, as_dofs
from mechanik.mechanism.link import Link
from mechanik.objectives.door import as_point, as_pose, as_wxyz
from mechanik.objectives.objective import Wish
from mechanik.objectives.partial import CROSSED, partial_relations
from mechanik.objectives.placement import Placement
from mechanik.objectives.position_rules import Fixed, Linear, Planar, PositionRule
from mechanik.objectives.relation import Relation
from mechanik.objectives.rotation_rules import Aligned, FixedRotation, RotationRule, Square
from mechanik.spatial import Pose, make, quaternion
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from mechanik.mechanism.mechanism import Mechanism


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PoseGoal(Placement):
    """The frame `at` of a link shall be at the pose `target`; up to 6 rows.

    Args:
        target: a `Pose` or (4, 4), in the world, or in the link `relative_to`.
        position, wxyz: the target in two parts, of which one may be left out: the origin, and no turn.
        at: X_link_tool: a `Pose`, (4, 4), or a point (3,); the link's own frame if not given.
        dof: the directions that count, in the order X Y Z EX EY EZ. The others are free, as those of a joint that
            stands at the target: T(x, y, z) Rz Ry Rx.
        axes: whether these directions are the target's own or the world's.
    """

    dof: tuple[DoF, ...]
    axes: Literal["goal", "world"]

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike | Pose | None = None,
        *,
        position: ArrayLike | None = None,
        wxyz: ArrayLike | None = None,
        at: ArrayLike | Pose | None = None,
        dof: Iterable[DoFLike] | DoFLike = ALL,
        axes: Literal["goal", "world"] = "goal",
        relative_to: str | Link | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        X_target, X_tool = _target(target, position, wxyz), _tool(at)
        place = Fixed(X_target[:3, 3], X_tool[:3, 3])
        turn = FixedRotation(X_target[:3, :3], X_tool[:3, :3])
        Placement.__init__(self, link, place, turn, relative_to=relative_to, **wish)
        wanted = as_dofs(dof)
        if not wanted:
            raise DoFError(f"{self._called} has no direction that counts; name some of X Y Z EX EY EZ")
        if axes not in ("goal", "world"):
            raise DoFError(f"axes of {self._called} can be 'goal' or 'world', not {axes!r}")
        object.__setattr__(self, "dof", wanted)
        object.__setattr__(self, "axes", axes)

    @property
    def target(self) -> Array:
        """(4, 4), in the world, or in the link that it is relative to."""
        place, turn = self._full()
        return make(turn.target, place.target)

    @property
    def tool(self) -> Array:
        """X_link_tool, (4, 4)."""
        place, turn = self._full()
        return make(turn.local, place.local)

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        if self.dof == ALL:
            return Placement.relations(self, mechanism)
        a, b = self._ends(mechanism)
        ends = {"X_a": self.target, "X_b": self.tool}
        return partial_relations(self.dof, a=a, b=b, **ends, axes=self.axes, weight=self.weight)

    def transform(self, X: ArrayLike | Pose) -> Self:
        """As for every placement. Directions along the world's axes cannot be turned, so there X may only shift."""
        M = as_pose(X, "transform")
        if self._in_world_axes() and np.abs(M[:3, :3] - np.eye(3)).max() > 1e-12:
            raise ObjectiveError(
                f"{self._called} counts directions along the axes of the world, which do not turn with it; "
                "use axes='goal', or a transform that only shifts"
            )
        return super(PoseGoal, self).transform(M)

    def _asks(self) -> str:
        return " ".join(dof.name for dof in self.dof) + (" of the world" if self.axes == "world" else "")

    def _full(self) -> tuple[Fixed, FixedRotation]:
        """The target and the tool, whatever of them counts."""
        place, turn = self.position, self.rotation
        assert isinstance(place, Fixed)
        assert isinstance(turn, FixedRotation)
        return place, turn

    def _in_world_axes(self) -> bool:
        """Whether the world's axes make a difference; all of something, or nothing of it, is the same in any."""
        shifts, turns = ([dof for dof in some if dof in self.dof] for some in (TRANSLATIONS, ROTATIONS))
        return self.axes == "world" and (len(shifts) in (1, 2) or len(turns) in (1, 2))

    def _rules(self) -> tuple[PositionRule | None, RotationRule | None]:
        place, turn = self._full()
        in_world = self._in_world_axes()
        if in_world and self.relative_to is not None:
            raise ObjectiveError(
                f"{self._called} counts directions along the axes of the world, seen from link {self.relative_to!r}, "
                "which turns: no pose can be told from that link alone"
            )
        # columns: the axes that X Y Z EX EY EZ are meant along, at the target and in the link
        A = np.eye(3) if in_world else turn.target
        B = turn.wanted.T @ A
        shifts = [dof.direction for dof in TRANSLATIONS if dof in self.dof]
        rest = [k for k in range(3) if k not in shifts]
        position: PositionRule | None = None
        match len(shifts):
            case 3:
                position = place
            case 2:
                position = Linear(place.target, A[:, rest[0]], place.local)
            case 1:
                position = Planar(place.target, A[:, shifts[0]], place.local)
            case _:
                pass
        turns = [dof for dof in ROTATIONS if dof in self.dof]
        match len(turns):
            case 3:
                return position, turn
            case 2:
                free = next(dof.direction for dof in ROTATIONS if dof not in turns)
                return position, Aligned(A[:, free], B[:, free])
            case 1:
                of_b, of_a = CROSSED[turns[0]]
                return position, Square(A[:, of_a], B[:, of_b])
            case _:
                return position, None


def _target(target: ArrayLike | Pose | None, position: ArrayLike | None, wxyz: ArrayLike | None) -> Array:
    if target is not None:
        if position is not None or wxyz is not None:
            raise ObjectiveError("a PoseGoal takes a target, or position and wxyz, not both")
        return as_pose(target, "target of a PoseGoal")
    if position is None and wxyz is None:
        raise ObjectiveError("a PoseGoal needs a target: a pose (4, 4), or position=... and wxyz=...")
    R = np.eye(3) if wxyz is None else quaternion.to_matrix(as_wxyz(wxyz, "wxyz of a PoseGoal"))
    return make(R, np.zeros(3) if position is None else as_point(position, "position of a PoseGoal"))


def _tool(at: ArrayLike | Pose | None) -> Array:
    if at is None:
        return np.eye(4)
    if not isinstance(at, Pose) and np.shape(at) == (3,):
        return make(np.eye(3), as_point(at, "tool of a PoseGoal"))
    return as_pose(at, "tool of a PoseGoal")
