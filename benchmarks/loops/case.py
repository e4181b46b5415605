"""A mechanism and its ticks as plain data, that every contestant builds its own model from; kept as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

DOFS = ("X", "Y", "Z", "EX", "EY", "EZ")
HERE = np.eye(4)


@dataclass(frozen=True)
class Joint:
    """Carries `link` from `parent`; its motion, at `place` (4, 4) in the parent, is T(x, y, z) Rz Ry Rx.

    `dof` names which of the six move, in the order of DOFS; limits and start have one number for each.
    """

    name: str
    parent: str
    link: str
    dof: tuple[str, ...]
    place: np.ndarray = field(default_factory=HERE.copy)
    start: tuple[float, ...] = ()
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.dof)
        for name, usual in (("start", 0.0), ("lower", -math.inf), ("upper", math.inf)):
            if not getattr(self, name):
                object.__setattr__(self, name, (usual,) * count)


@dataclass(frozen=True)
class Closure:
    """The frame `place_a` of link a is held on the frame `place_b` of link b: in place only, or as one body."""

    name: str
    a: str
    b: str
    rows: Literal["point", "weld"]
    place_a: np.ndarray = field(default_factory=HERE.copy)
    place_b: np.ndarray = field(default_factory=HERE.copy)


@dataclass(frozen=True)
class Want:
    """A link's pose (4, 4), the place (3,) of the point `at` of a link, or a joint's value: what a tick's target is."""

    kind: Literal["pose", "point", "joint"]
    name: str
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Case:
    """A mechanism and the targets of its ticks, each to be reached from the answer before.

    Attributes:
        root: the link that stands in the world.
        skip: so many ticks at the beginning are judged, but not timed.
    """

    name: str
    title: str
    joints: tuple[Joint, ...]
    closures: tuple[Closure, ...]
    want: Want
    targets: np.ndarray
    root: str = "base"
    skip: int = 0

    @property
    def start(self) -> np.ndarray:
        """(n,) values, joint after joint, each in the order of DOFS; so are all answers."""
        return np.array([value for joint in self.joints for value in joint.start])

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """(n,) each."""
        lower = [value for joint in self.joints for value in joint.lower]
        upper = [value for joint in self.joints for value in joint.upper]
        return np.array(lower), np.array(upper)

    def save(self, path: Path) -> None:
        """As JSON, where an infinite limit is null."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), default=_plain).replace("Infinity", "null").replace("-null", "null"))


def load(path: Path) -> Case:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    joints = tuple(_joint(one) for one in data.pop("joints"))
    closures = tuple(_closure(one) for one in data.pop("closures"))
    want, targets = Want(**data.pop("want")), np.array(data.pop("targets"))
    return Case(joints=joints, closures=closures, want=want, targets=targets, **data)


def _joint(data: dict[str, Any]) -> Joint:
    own = {"dof": tuple(data["dof"]), "start": tuple(data["start"]), "place": np.array(data["place"])}
    limits = {"lower": _limits(data["lower"], -math.inf), "upper": _limits(data["upper"], math.inf)}
    whole: dict[str, Any] = {**data, **own, **limits}
    return Joint(**whole)


def _limits(values: list[float | None], far: float) -> tuple[float, ...]:
    return tuple(far if one is None else one for one in values)


def _closure(data: dict[str, Any]) -> Closure:
    whole: dict[str, Any] = {**data, "place_a": np.array(data["place_a"]), "place_b": np.array(data["place_b"])}
    return Closure(**whole)


def _plain(value: np.ndarray) -> Any:
    return value.tolist()
