"""A head whose eyes meet at a point, and whose neck helps."""

from __future__ import annotations

import math

import numpy as np

from mechanik.gallery.bones import BLUE, DARK, GREY, WHITE, ball, bone, hub
from mechanik.mechanism import Builder, Mechanism
from mechanik.objectives import LookAt
from mechanik.spatial import translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import choice, slider, switch
from mechanik.studio.scenes.curves import FAINT, as_curve
from mechanik.studio.scenes.moving import Moving

AHEAD = (1.0, 0.0, 0.0)
BETWEEN = (0.09, 0.0, 0.12)
"""Of the eyes, in the head, m."""
LEFT, RIGHT = "target", "right eye looks"
"""Names of what the eyes are asked for."""


def make_head() -> Mechanism:
    """Neck: turn and nod; eyes: turn and nod each. x of the head and of the eyes is where they look."""
    robot = Builder("head")
    robot.revolute("neck_turn", "stand", "neck", at=(0.0, 0.0, 0.25), axis="z", limits=(-1.2, 1.2))
    robot.revolute("neck_nod", "neck", "head", at=(0.0, 0.0, 0.06), axis="y", limits=(-0.6, 0.6))
    for eye, side in (("left", 1.0), ("right", -1.0)):
        robot.revolute(
            f"{eye}_turn", "head", f"{eye}_socket", at=(0.09, 0.045 * side, 0.12), axis="z", limits=(-0.7, 0.7)
        )
        robot.revolute(f"{eye}_nod", f"{eye}_socket", f"{eye}_eye", axis="y", limits=(-0.6, 0.6))
        robot.link(f"{eye}_eye", visuals=[
            ball((0.0, 0.0, 0.0), 0.032, WHITE), hub((0.027, 0.0, 0.0), (1.0, 0.0, 0.0), 0.016, 0.012, DARK)
        ])  # fmt: skip
    robot.link("stand", visuals=[
        bone((0.0, 0.0, 0.02), (0.0, 0.0, 0.24), 0.03, GREY), hub((0.0, 0.0, 0.01), (0, 0, 1), 0.12, 0.02, DARK)
    ])  # fmt: skip
    robot.link("neck", visuals=[hub((0.0, 0.0, 0.03), (0, 0, 1), 0.045, 0.06, DARK)])
    robot.link("head", visuals=[ball((0.0, 0.0, 0.1), 0.1, BLUE)])
    head = robot.build()
    head.configurations["home"] = head.q
    return head


class LookingHead(Moving):
    name = "look_at"
    title = "A head that looks"
    about = (
        "Drag the target: both eyes meet on it, however near it comes, and the neck turns along. Eyes come first; the "
        "head only looks about the same way, as a wish of lower rank. Switch that off, and the neck rests until it "
        "must."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("motion", "Motion", ("fly", "drag"), "Target", "Who moves the target."),
            slider("speed", "Speed, rounds/s", 0.25, 0.0, 2.0, 0.05, "Target"),
            slider("distance", "Distance, m", 0.7, 0.15, 2.0, 0.05, "Target", "Of its flight from the head."),
            switch("head", "The head looks too", True, "Head"),
        ]

    def build(self) -> None:
        self.seen = self._path(0.0)
        self.table(make_head())
        self.target = self.want("look_at", "left_eye", translation(self.seen), name=LEFT)
        self.demand(LookAt("right_eye", self.seen, AHEAD, name=RIGHT))
        self.changed("head")
        self._draw()

    def changed(self, name: str) -> None:
        if name == "head":
            self.forget("head looks")
            if self.is_on("head"):
                self.demand(LookAt("head", self.seen, AHEAD, at=BETWEEN, level=2, name="head looks"))
        elif name in ("motion", "distance"):
            self._draw()

    @property
    def is_moving(self) -> bool:
        return True  # also while it is dragged: what the left eye is shown, the others have to be told

    def go(self) -> None:
        self.move({self.target: translation(self._path(self.phase))})

    def tick(self, seconds: float) -> None:
        if self.word("motion") == "fly":
            super().tick(seconds)
        if self.has(self.target):
            seen = self.pose_of(self.target)[:3, 3]
            if not np.array_equal(seen, self.seen):
                self.seen = seen
                self.aim({RIGHT: seen} | ({"head looks": seen} if self.is_on("head") else {}))

    def lines(self) -> list[str]:
        off = [one for one in (self.off(LEFT), self.off(RIGHT)) if one is not None]
        return ["eyes off the target, degrees: " + "  ".join(f"{math.degrees(one.rotation):.2f}" for one in off)]

    def _draw(self) -> None:
        points = self._path(np.linspace(0.0, 2 * math.pi, 97)[:-1])
        is_flying = self.word("motion") == "fly"
        self.session.set_curves([as_curve("flight", points, closed=True, rgba=FAINT)] if is_flying else [])

    def _path(self, t: float | Array) -> Array:
        """(..., 3), m, at phases t (...)."""
        far = self.number("distance")
        return np.stack([
            far * (0.8 + 0.2 * np.cos(2 * t)), far * np.sin(t), 0.4 + 0.3 * far * np.sin(2 * t)
        ], axis=-1)  # fmt: skip
