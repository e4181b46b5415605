"""A gripper with two fingers on one motor."""

from __future__ import annotations

import numpy as np

from mechanik import gallery
from mechanik.objectives import JointValues
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import slider, switch
from mechanik.studio.scenes.to_and_fro import ToAndFro

SPRINGS = {"left_coupler_joint": 0.0, "right_coupler_joint": 0.0}
CLOSED = 0.8
"""Of the driver, rad."""


class Gripper(ToAndFro):
    name = "gripper"
    title = "Gripper"
    about = (
        "One motor closes both fingers; each is a loop of five bars that a spring keeps in shape, so that its pad "
        "does not turn. Move the slider, let it open and close by itself, or pull a pad by hand and feel the spring "
        "give way."
    )
    slider, middle, swing = "closing", 0.5, 0.5

    def make_controls(self) -> list[ControlInfo]:
        return [
            slider("closing", "Closing", 0.5, 0.0, 1.0, 0.01, "Fingers", "0 open, 1 closed."),
            switch("moves", "Opens and closes", True, "Fingers"),
            slider("speed", "Speed, times/s", 0.3, 0.0, 2.0, 0.05, "Fingers"),
        ]

    def build(self) -> None:
        self.begin()
        self.table(gallery.gripper())
        self.demand(
            JointValues({"left_driver_joint": self._angle()}, name="motor drive"),
            JointValues(SPRINGS, level=2, name="finger springs"),
        )

    def drive(self) -> None:
        self.aim({"motor drive": {"left_driver_joint": self._angle()}})

    def lines(self) -> list[str]:
        left, right = (self.pose(f"{side}_pad")[:3, 3] for side in ("left", "right"))
        return [f"between the pads: {1000 * float(np.linalg.norm(left - right)):.1f} mm"]

    def _angle(self) -> float:
        return CLOSED * self.number("closing")
