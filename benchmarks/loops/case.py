"""A mechanism and its ticks as plain data, from which every library builds its model; stored as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

DOFS = ("X", "Y", "Z", "EX", "EY", "EZ")
IDENTITY = np.eye(4)


@dataclass(frozen=True)
class Joint:
    """Connects `link` to `parent`; its motion, at `pose` (4, 4) in the parent, is T(x, y, z) Rz Ry Rx.

    `dof` names which of the six move, in the order of DOFS; limits and start have one number for each.
    """

    name: str
    parent: str
    link: str
    dof: tuple[str, ...]
    pose: np.ndarray = field(default_factory=IDENTITY.copy)
    start: tuple[float, ...] = ()
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.dof)
        for name, default in (("start", 0.0), ("lower", -math.inf), ("upper", math.inf)):
            if not getattr(self, name):
                object.__setattr__(self, name, (default,) * count)


@dataclass(frozen=True)
class Closure:
    """The frame `pose_a` of link a coincides with the frame `pose_b` of link b: in position, or rigidly."""

    name: str
    a: str
    b: str
    kind: Literal["point", "weld"]
    pose_a: np.ndarray = field(default_factory=IDENTITY.copy)
    pose_b: np.ndarray = field(default_factory=IDENTITY.copy)


@dataclass(frozen=True)
class TargetKind:
    """What the target of a tick is: a pose of a link (4, 4), a position (3,) of its point `at`, or a joint value."""

    kind: Literal["pose", "point", "joint"]
    name: str
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Case:
    """A mechanism and the targets of its ticks, each to be reached from the previous solution.

    Attributes:
        root: the link that is fixed in the world.
        skip: number of ticks at the beginning that are verified, but not timed.
    """

    name: str
    title: str
    joints: tuple[Joint, ...]
    closures: tuple[Closure, ...]
    goal: TargetKind
    targets: np.ndarray
    root: str = "base"
    skip: int = 0

    @property
    def start(self) -> np.ndarray:
        """(n,) values, joint after joint, each in the order of DOFS; so are all solutions."""
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
    joints = tuple(_joint(joint) for joint in data.pop("joints"))
    closures = tuple(_closure(closure) for closure in data.pop("closures"))
    goal, targets = TargetKind(**data.pop("goal")), np.array(data.pop("targets"))
    return Case(joints=joints, closures=closures, goal=goal, targets=targets, **data)


def _joint(data: dict[str, Any]) -> Joint:
    arrays = {"dof": tuple(data["dof"]), "start": tuple(data["start"]), "pose": np.array(data["pose"])}
    limits = {"lower": _limits(data["lower"], -math.inf), "upper": _limits(data["upper"], math.inf)}
    fields: dict[str, Any] = {**data, **arrays, **limits}
    return Joint(**fields)


def _limits(values: list[float | None], infinite: float) -> tuple[float, ...]:
    return tuple(infinite if value is None else value for value in values)


def _closure(data: dict[str, Any]) -> Closure:
    fields: dict[str, Any] = {**data, "pose_a": np.array(data["pose_a"]), "pose_b": np.array(data["pose_b"])}
    return Closure(**fields)


def _plain(value: np.ndarray) -> Any:
    return value.tolist()
