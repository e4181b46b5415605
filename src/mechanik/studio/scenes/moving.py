"""Scenes that go round and round by themselves."""

from __future__ import annotations

import math
from typing import ClassVar

from mechanik.studio.messages.checks import Value
from mechanik.studio.scenes.scene import Scene


class Moving(Scene):
    """Says what it does at a phase, in `go`. Needs a slider "speed" and the control that starts it.

    Attributes:
        starter: the name of that control.
        still: its value while nothing moves by itself.
        phase: rad; a round is 2 pi.
    """

    starter: ClassVar[str] = "motion"
    still: ClassVar[Value] = "drag"

    def __init__(self) -> None:
        super().__init__()
        self.phase = 0.0

    def go(self) -> None:
        """Ask for what is wanted at this phase."""
        raise NotImplementedError

    @property
    def rate(self) -> float:
        """Of the phase, rad/s: so many rounds a second as the slider says."""
        return 2 * math.pi * self.number("speed")

    @property
    def is_moving(self) -> bool:
        return self.value(self.starter) != self.still

    def tick(self, seconds: float) -> None:
        if self.is_moving:
            self.phase += self.rate * seconds
            self.go()
