"""Something that is wanted of a link, as people set it up: a kind, a frame in the world, and how much it counts."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from mechanik.spatial.array import Array
from mechanik.studio.messages.checks import PoseNumbers, Vector
from mechanik.studio.messages.events import GoalInfo
from mechanik.studio.messages.requests import Direction, GoalKind
from mechanik.studio.session.poses import matrix_of, numbers_of


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """See `AddGoal`, `ChangeGoal` and `GoalInfo` for what the fields mean.

    Attributes:
        link: by name.
        X: the frame in the world, (4, 4), read-only.
        level: as it was set; a pinned goal stands on level 0 whatever this says.
    """

    number: int
    name: str
    kind: GoalKind
    link: str
    X: Array
    at: Vector = (0.0, 0.0, 0.0)
    weight: float = 1.0
    level: int = 1
    enabled: bool = True
    pinned: bool = False
    sizes: Vector = (0.0, 0.0, 0.0)
    free: tuple[Direction, ...] = ()
    is_pull: bool = False
    pose: PoseNumbers = field(init=False)
    """The same frame as position and wxyz."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pose", numbers_of(self.X))

    def moved(self, X: Array) -> Goal:
        """The same with its frame at X (4, 4), read-only."""
        return replace(self, X=X)

    def moved_by_hand(self, numbers: tuple[float, ...]) -> Goal:
        return replace(self, X=matrix_of(numbers))

    @property
    def counted_level(self) -> int:
        return 0 if self.pinned else self.level

    def is_like(self, other: Goal) -> bool:
        """Whether nothing differs but where it is."""
        return all(getattr(self, name) == getattr(other, name) for name in LASTING)

    def info(self, link: int) -> GoalInfo:
        """
        Args:
            link: its number.
        """
        return GoalInfo(
            number=self.number,
            name=self.name,
            kind=self.kind,
            link=link,
            at=self.at,
            pose=self.pose,
            weight=self.weight,
            level=self.counted_level,
            enabled=self.enabled,
            pinned=self.pinned,
            sizes=self.sizes,
            free=list(self.free),
            is_pull=self.is_pull,
        )


LASTING = tuple(one.name for one in fields(Goal) if one.name not in ("X", "pose"))
