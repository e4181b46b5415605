"""Scenes with one slider that also goes to and fro by itself."""

from __future__ import annotations

import math
from typing import ClassVar

from mechanik.studio.scenes.scene import Scene


class ToAndFro(Scene):
    """Needs a switch "moves" and a slider "speed", in times a second, besides the slider that goes to and fro.

    Attributes:
        slider: its name.
        middle, swing: of its value while it goes by itself: middle - swing * cos(phase).
    """

    slider: ClassVar[str]
    middle: ClassVar[float]
    swing: ClassVar[float]
    phase: float

    def drive(self) -> None:
        """Ask for what the slider says."""
        raise NotImplementedError

    def begin(self) -> None:
        """Go on from where the slider stands, or from nearly there if it is beyond an end of the swing."""
        self.phase = math.acos(max(-1.0, min(1.0, (self.middle - self.number(self.slider)) / self.swing)))

    def changed(self, name: str) -> None:
        if name == self.slider:
            self.put("moves", False)
        elif name == "moves":
            self.begin()
        self.drive()

    @property
    def is_moving(self) -> bool:
        return self.is_on("moves")

    def tick(self, seconds: float) -> None:
        if self.is_moving:
            self.phase += 2 * math.pi * self.number("speed") * seconds
            self.put_within(self.slider, self.middle - self.swing * math.cos(self.phase))
            self.drive()
