"""Scenes with one slider that also goes to and fro by itself."""

from __future__ import annotations

import math
from typing import ClassVar

from mechanik.studio.scenes.moving import Moving


class ToAndFro(Moving):
    """Needs a switch "moves" besides the slider that goes to and fro, so many times a second as "speed" says.

    Attributes:
        slider: its name.
        middle, swing: of its value while it goes by itself: middle - swing * cos(phase).
    """

    starter, still = "moves", False
    slider: ClassVar[str]
    middle: ClassVar[float]
    swing: ClassVar[float]

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

    def go(self) -> None:
        self.put_within(self.slider, self.middle - self.swing * math.cos(self.phase))
        self.drive()
