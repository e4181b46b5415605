"""Two arms that hold one box."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.spatial import make, rotation, translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import choice, slider
from mechanik.studio.scenes.moving import Moving


class TwoArms(Moving):
    name = "two_arms"
    title = "Two arms, one box"
    about = (
        "Both hands hold the box, so both arms and the box are one loop. Drag the box, and both arms follow without "
        "ever letting go. Hold shift and pull an elbow: it swings while the box stays where it is wanted."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("motion", "Motion", ("drag", "circle", "tilt", "both"), "Box", "Who moves the box."),
            slider("amplitude", "Amplitude", 0.6, 0.0, 2.0, 0.05, "Box", "Above 1 the arms cannot follow everywhere."),
            slider("speed", "Speed, rounds/s", 0.3, 0.0, 2.0, 0.05, "Box"),
            choice("joints", "Joints of an arm", ("7", "6"), "Arms", "With 6 the elbows have no choice."),
            slider("box", "Length of the box, m", 0.3, 0.1, 0.6, 0.02, "Arms"),
        ]

    def build(self) -> None:
        self._put()

    def changed(self, name: str) -> None:
        if name in ("joints", "box"):
            self._put()
        elif name == "motion":
            self.move({self.goal: self.home})

    def go(self) -> None:
        self.move({self.goal: self._place()})

    def lines(self) -> list[str]:
        ends = [self.pose(link)[:3, 3] for link in ("left_hand", "right_hand")]
        return [f"hand to hand: {1000 * float(np.linalg.norm(ends[0] - ends[1])):.6f} mm"]

    def _put(self) -> None:
        arms = gallery.two_arms(7 if self.word("joints") == "7" else 6, self.number("box"))
        self.home = arms.pose("box")
        self.table(arms)
        self.goal = self.want("pose", "box", self.home, name="box")

    def _place(self) -> Array:
        a, c, s = self.number("amplitude"), math.cos(self.phase), math.sin(self.phase)
        kind = self.word("motion")
        shift = np.zeros(3) if kind == "tilt" else a * np.array([0.0, 0.2 * s, 0.12 * (1 - c)])
        turn = np.zeros(3) if kind == "circle" else a * np.array([0.35 * s, 0.25 * math.sin(2 * self.phase), 0.0])
        return translation(shift) @ self.home @ make(rotation.exp(turn), np.zeros(3))
