"""A scissor lift whose platform goes straight up."""

from __future__ import annotations

import math

from mechanik import gallery
from mechanik.objectives import JointValues
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import slider, switch
from mechanik.studio.scenes.scene import Scene

BAR, STAGES = 1.0, 3
"""Of the lift of the gallery."""


class ScissorLift(Scene):
    name = "scissor_lift"
    title = "Scissor lift"
    about = (
        "Four loops and one freedom: the slider at the foot goes in, and the platform goes straight up. Set its "
        "height, let it go up and down, or take any bar by hand."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            slider("height", "Height", 1.4, 0.4, 2.8, 0.02, "Platform", "Metres."),
            switch("moves", "Goes up and down", True, "Platform"),
            slider("speed", "Speed", 0.15, 0.0, 1.0, 0.05, "Platform", "Times a second."),
        ]

    def build(self) -> None:
        self.phase = 0.0
        self.table(gallery.scissor_lift())
        self.demand(JointValues({"slider_joint": self._slide()}, name="slider drive"))

    def changed(self, name: str) -> None:
        if name == "height":
            self.put("moves", False)
        self.aim({"slider drive": {"slider_joint": self._slide()}})

    @property
    def is_moving(self) -> bool:
        return self.is_on("moves")

    def tick(self, seconds: float) -> None:
        if self.is_moving:
            self.phase += 2 * math.pi * self.number("speed") * seconds
            self.aim({"slider drive": {"slider_joint": self._slide()}})

    def lines(self) -> list[str]:
        return [f"the platform is {float(self.pose('platform')[2, 3]):.3f} m above the base"]

    def _slide(self) -> float:
        """Where the slider must be for the height."""
        height = 1.6 - 1.1 * math.cos(self.phase) if self.is_moving else self.number("height")
        return math.sqrt(BAR**2 - (height / STAGES) ** 2)
