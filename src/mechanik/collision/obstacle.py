"""Things in the world that a mechanism must not bump into."""

from __future__ import annotations

from dataclasses import dataclass

from mechanik.collision.solid import refuse_flat
from mechanik.errors import MechanikError, WrongKind
from mechanik.mechanism.shapes import Shape
from mechanik.spatial import Pose
from mechanik.spatial.array import ArrayLike


@dataclass(frozen=True, slots=True, init=False)
class Obstacle:
    """A shape that stands in the world; `Collider.move` puts it elsewhere.

    Args:
        shape: with a volume.
        position, wxyz: of its frame in the world.
        name: for people, and for `allow` and `forbid`; numbered if there is none.
    """

    shape: Shape
    pose: Pose
    name: str

    def __init__(
        self, shape: Shape, position: ArrayLike = (0, 0, 0), wxyz: ArrayLike = (1, 0, 0, 0), *, name: str = ""
    ) -> None:
        if not isinstance(name, str):
            raise WrongKind(f"the name of an obstacle is a text, not {name!r}")
        what = f"obstacle {name!r}" if name else "an obstacle"
        if not isinstance(shape, Shape):
            raise WrongKind(f"{what} is made of a shape such as Box((1, 1, 1)), not of {shape!r}")
        refuse_flat(shape, what)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "pose", _pose(what, position, wxyz))
        object.__setattr__(self, "name", name)

    def moved_to(self, pose: Pose) -> Obstacle:
        """The same thing elsewhere."""
        return Obstacle(self.shape, pose.position, pose.wxyz, name=self.name)


def _pose(what: str, position: ArrayLike, wxyz: ArrayLike) -> Pose:
    if isinstance(position, str):
        raise WrongKind(f"{what}: the position is three numbers; a name is given by name={position!r}")
    if isinstance(position, Pose) or getattr(position, "shape", ()) == (4, 4):
        raise WrongKind(f"{what}: the position is three numbers; a pose is given by pose.position, pose.wxyz")
    try:
        return Pose(position, wxyz)
    except MechanikError as error:
        raise type(error)(f"{what}: {error}") from None
