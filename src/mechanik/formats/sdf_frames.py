"""The frames of an SDF and what each is placed in: models, links, joints and named frames, by scope.

A scope is the chain of models around a name, such as "arm::gripper::"; that of the outermost one is empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.formats.sdf_values import pose_frame, pose_in
from mechanik.formats.urdf_tree import nearest_name
from mechanik.formats.xml_text import Node
from mechanik.spatial import inverse
from mechanik.spatial.array import Array

WORLD = "world"


@dataclass(frozen=True, slots=True)
class Key:
    """A frame by what it is ("model", "link", "frame", "joint", "world") and by its full name."""

    kind: str
    name: str


THE_WORLD = Key("world", WORLD)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a frame is said to be: X in the frame `relative_to`, or in `default` if that is None."""

    node: Node
    scope: str
    relative_to: str | None
    default: tuple[str, str]
    X: Array
    attached: tuple[str, str]
    """Scope and name of the frame with which it moves."""
    placement: tuple[str, str] | None = None
    """For a model: scope and name of the frame inside it which the pose is meant for."""


class Frames:
    """All frames of a file. Poses are those in which everything is drawn: all joints at zero."""

    def __init__(self) -> None:
        self._places: dict[Key, Place] = {}
        self.canonical: dict[str, str] = {}
        """Full name of a model to that of its main link."""

    def add(
        self,
        kind: str,
        scope: str,
        name: str,
        node: Node,
        default: tuple[str, str],
        attached: tuple[str, str],
        placement: tuple[str, str] | None = None,
    ) -> None:
        """Take in what an element and its <pose> say."""
        said = pose_frame(node)
        self._places[Key(kind, scope + name)] = Place(node, scope, said, default, pose_in(node), attached, placement)

    def key(self, scope: str, name: str, node: Node) -> Key:
        """The frame that is meant by `name` in a scope; `node` is who asks, for the message if there is none."""
        if name in (WORLD, "__root__"):
            return THE_WORLD
        if name == "__model__" or name.endswith("::__model__"):
            key = Key("model", (scope + name).removesuffix("__model__").removesuffix("::"))
            return key if key in self._places else THE_WORLD
        for kind in ("link", "frame", "joint", "model"):
            if (key := Key(kind, scope + name)) in self._places:
                return key
        known = [one.name.removeprefix(scope) for one in self._places if one.name.startswith(scope)]
        raise node.fault(f"names {name!r}, and there is no such link or frame{nearest_name(name, known)}")

    def pose(self, key: Key) -> Array:
        """X_world_frame, (4, 4)."""
        return self._climb(key, THE_WORLD)

    def body(self, key: Key) -> str:
        """The full name of the link with which a frame moves, or "world"."""
        way: list[Key] = []
        while key.kind not in ("link", "world"):
            self._refuse_circle(key, way)
            if key.kind == "model" and key.name in self.canonical:
                return self.canonical[key.name]
            place = self._places[key]
            key = self.key(*place.attached, place.node)
        return key.name

    def _climb(self, key: Key, top: Key) -> Array:
        X, way = np.eye(4), list[Key]()
        while key not in (top, THE_WORLD):
            self._refuse_circle(key, way)
            place = self._places[key]
            here = place.X
            if place.placement is not None:
                here = here @ inverse(self._climb(self.key(*place.placement, place.node), key))
            X = here @ X
            if place.relative_to is not None:
                key = self.key(place.scope, place.relative_to, place.node)
            else:
                key = self.key(*place.default, place.node)
        return X

    def _refuse_circle(self, key: Key, way: list[Key]) -> None:
        if key in way:
            names = " -> ".join(one.name for one in [*way[way.index(key) :], key])
            raise self._places[key].node.fault(f"is placed relative to itself: {names}")
        way.append(key)
