"""A link placed against the world or against another link: the general form of Klampt's family of objectives."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self, Unpack

import numpy as np

from mechanik.errors import ObjectiveError, WrongKind
from mechanik.mechanism.door import as_number
from mechanik.mechanism.link import Link
from mechanik.objectives.door import as_generator, as_pose, known_link, link_name
from mechanik.objectives.objective import Definition, Objective, Wish
from mechanik.objectives.placement_rows import placement_relations
from mechanik.objectives.position_rules import Fixed, Linear, Planar, PositionRule, somewhere
from mechanik.objectives.relation import Relation
from mechanik.objectives.rotation_rules import Aligned, FixedRotation, RotationRule, Square, any_rotation
from mechanik.spatial import Pose, make
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from mechanik.mechanism.mechanism import Mechanism


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Placement(Objective):
    """A rule for a point of a link, a rule for its rotation, or both.

    `Point`, `PoseGoal`, `Hinge`, `Surface`, `OnLine`, `OnPlane`, `Axis` and `Orientation` are the usual ones, by name.

    Args:
        link: by name, or as a `Link`, of which the name is kept.
        position: `Fixed` (3 rows), `Linear` (2), `Planar` (1), or None: the link may be anywhere.
        rotation: `FixedRotation` (3 rows), `Aligned` (2), `Square` (1), or None: it may be turned in any way.
        relative_to: the link in whose frame targets are given; None: they are given in the world.
    """

    link: str
    position: PositionRule | None
    rotation: RotationRule | None
    relative_to: str | None

    def __init__(
        self,
        link: str | Link,
        position: PositionRule | None = None,
        rotation: RotationRule | None = None,
        *,
        relative_to: str | Link | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        Objective.__init__(self, **wish)
        name = link_name(link)
        other = None if relative_to is None else link_name(relative_to, "relative_to")
        if position is not None and not isinstance(position, Fixed | Linear | Planar):
            raise WrongKind(f"position of {self._called} is a Fixed, Linear or Planar rule, not {position!r}")
        if rotation is not None and not isinstance(rotation, FixedRotation | Aligned | Square):
            raise WrongKind(f"rotation of {self._called} is a FixedRotation, Aligned or Square rule, not {rotation!r}")
        if position is None and rotation is None:
            raise ObjectiveError(f"{self._called} wants nothing of link {name!r}: give it a position or a rotation")
        if name == other:
            raise ObjectiveError(f"{self._called} places link {name!r} against itself, where nothing can move")
        for field, value in (("link", name), ("position", position), ("rotation", rotation), ("relative_to", other)):
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        named = f" {self.name!r}" if self.name else ""
        against = f" against {self.relative_to!r}" if self.relative_to is not None else ""
        return f"<{type(self).__name__}{named} of link {self.link!r}{against}: {self._asks()}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        a, b = self._ends(mechanism)
        position, rotation = self._rules()
        return placement_relations(position, rotation, a=a, b=b, weight=self.weight)

    def at(self, target: ArrayLike | Pose) -> Self:
        """The same wish for another target.

        Args:
            target: a point (3,) where a position is wanted: it moves there, and directions stay. A pose where a full
                rotation is wanted: point and rotation are its own. A rotation (3, 3) or wxyz (4,), or a direction
                (3,), where nothing but that is wanted.
        """
        shape = (4, 4) if isinstance(target, Pose) else np.shape(target)
        position, rotation = self.position, self.rotation
        if position is not None and shape == (3,):
            return self._with(position=position.to(target))
        if shape == (4, 4) and isinstance(rotation, FixedRotation):
            X = as_pose(target, f"target of {self._called}")
            turned = FixedRotation(X[:3, :3], rotation.local)
            return self._with(position=None if position is None else position.to(X[:3, 3]), rotation=turned)
        if position is None and isinstance(rotation, FixedRotation):
            return self._with(rotation=FixedRotation(target, rotation.local))
        if position is None and rotation is not None and shape == (3,):
            return self._with(rotation=type(rotation)(target, rotation.local))
        wanted = "a pose, or a point" if isinstance(rotation, FixedRotation) else "a point"
        if position is None:
            wanted = "a direction"
        raise ObjectiveError(f"target of {self._called} is {wanted}, not something of shape {shape}")

    # ---- algebra ----------------------------------------------------------------------------

    def transform(self, X: ArrayLike | Pose) -> Self:
        """The objective for targets that were moved by X (4, 4).

        A link at X_world_link is as far from the objective as one at X @ X_world_link is from the new one.
        """
        M = as_pose(X, "transform")
        position, rotation = self.position, self.rotation
        return self._with(
            position=None if position is None else position.transform(M),
            rotation=None if rotation is None else rotation.transform(M),
        )

    def transform_local(self, X: ArrayLike | Pose) -> Self:
        """The objective for a link whose points, axes and turns were moved by X (4, 4) in its own frame.

        A link at X_world_link is as far from the objective as one at X_world_link @ inverse(X) is from the new one.
        """
        M = as_pose(X, "local transform")
        position, rotation = self.position, self.rotation
        return self._with(
            position=None if position is None else position.transform_local(M),
            rotation=None if rotation is None else rotation.transform_local(M),
        )

    def match_destination(self, X: ArrayLike | Pose) -> Self:
        """The objective that is fulfilled where the link stands at X (4, 4), seen as targets are.

        Target points, axes and rotations are taken from there; the directions of lines and planes stay.
        """
        M = as_pose(X, "pose to match")
        position, rotation = self.position, self.rotation
        return self._with(
            position=None if position is None else position.to(M[:3, :3] @ position.local + M[:3, 3]),
            rotation=None if rotation is None else rotation.match(M[:3, :3]),
        )

    def closest_match(self, X: ArrayLike | Pose) -> Array:
        """The pose (4, 4) of the link nearest to X that fulfils it: turned as little as can be, then shifted so.

        Both are seen as targets are: from the world, or from the link that it is relative to.
        """
        M = as_pose(X, "pose to start from")
        position, rotation = self._rules()
        R, p = M[:3, :3], M[:3, 3]
        if rotation is not None:
            R = rotation.nearest(R)
        if position is not None:
            p = position.nearest(R @ position.local + p) - R @ position.local
        return make(R, p)

    def sample(self, rng: np.random.Generator, reach: float = 1.0) -> Array:
        """A random pose (4, 4) of the link that fulfils it, seen as targets are.

        Args:
            reach: m, how far from its target the link's point may be where that is free; where no point is wanted,
                how far the link may be from the origin.
        """
        rng, reach = as_generator(rng), as_number(reach, "reach")
        if reach < 0.0:
            raise ObjectiveError(f"reach is {reach:g} m, and a distance is not negative")
        position, rotation = self._rules()
        R = any_rotation(rng) if rotation is None else rotation.sample(rng)
        if position is None:
            return make(R, somewhere(rng, reach))
        return make(R, position.sample(rng, reach) - R @ position.local)

    # ---- inside -----------------------------------------------------------------------------

    def _asks(self) -> str:
        """For people: what counts."""
        return ", ".join(type(rule).__name__ for rule in (self.position, self.rotation) if rule is not None)

    def _rules(self) -> tuple[PositionRule | None, RotationRule | None]:
        """What it asks of position and rotation."""
        return self.position, self.rotation

    def _ends(self, mechanism: Mechanism) -> tuple[str | None, str]:
        """The links of the target and of what should come there, known to the mechanism."""
        link = known_link(mechanism, self.link)
        return None if self.relative_to is None else known_link(mechanism, self.relative_to), link

    def _rows(self, mechanism: Mechanism, q: ArrayLike, definition: Definition) -> tuple[Array, Array]:
        if definition == "klampt":
            from mechanik.objectives.klampt_rows import klampt_rows

            return klampt_rows(mechanism, q, *self._ends(mechanism), *self._rules())
        return Objective._rows(self, mechanism, q, definition)

    def _with(self, **changes: object) -> Self:
        """A copy with some fields changed; the named kinds take other arguments than their fields."""
        copy = object.__new__(type(self))
        for field in fields(self):
            object.__setattr__(copy, field.name, changes.get(field.name, getattr(self, field.name)))
        return copy
