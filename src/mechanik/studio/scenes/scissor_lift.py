"""A scissor lift whose platform goes straight up."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.objectives import JointValues
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import slider, switch
from mechanik.studio.scenes.curves import FAINT, as_curve
from mechanik.studio.scenes.to_and_fro import ToAndFro

BAR, STAGES = 1.0, 3
"""Of the lift of the gallery."""
LOWEST, HIGHEST = 0.4, 2.8
"""That the platform can be, m."""


class ScissorLift(ToAndFro):
    name = "scissor_lift"
    title = "Scissor lift"
    about = (
        "Four loops and one freedom: the slider at the foot goes in, and the platform goes straight up. Set its "
        "height, let it go up and down, or take any bar by hand."
    )
    slider, middle, swing = "height", 1.6, 1.1

    def make_controls(self) -> list[ControlInfo]:
        return [
            slider("height", "Height, m", 1.4, LOWEST, HIGHEST, 0.02, "Platform"),
            switch("moves", "Goes up and down", True, "Platform"),
            slider("speed", "Speed, times/s", 0.15, 0.0, 1.0, 0.05, "Platform"),
        ]

    def build(self) -> None:
        self.begin()
        self.table(gallery.scissor_lift())
        self.demand(JointValues({"slider_joint": self._slide()}, name="slider drive"))
        x, y, _ = self.pose("platform")[:3, 3]
        self.session.set_curves([as_curve("way", np.array([[x, y, LOWEST], [x, y, HIGHEST]]), rgba=FAINT)])

    def drive(self) -> None:
        self.aim({"slider drive": {"slider_joint": self._slide()}})

    def lines(self) -> list[str]:
        return [f"the platform is {float(self.pose('platform')[2, 3]):.3f} m above the base"]

    def _slide(self) -> float:
        """Where the slider must be for the height."""
        return math.sqrt(BAR**2 - (self.number("height") / STAGES) ** 2)
