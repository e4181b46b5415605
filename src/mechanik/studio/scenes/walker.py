"""A walker on six legs: feet that stand, feet that are let go, a body above them."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.spatial import translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import choice, slider, switch
from mechanik.studio.scenes.moving import Moving

FEET = tuple(f"foot{k}" for k in range(1, 7))
SWING = 0.5
"""The share of a stride in which a foot is in the air: two sets of three take turns."""


class Walker(Moving):
    name = "walker"
    title = "Six-legged walker"
    about = (
        "Feet are held where they stand, and the body goes where it is dragged as far as they let it. Switch a foot "
        "off to let go of it, or right click any link to give it a goal. Let it walk on the spot, and drag the body "
        "meanwhile."
    )
    still = "stand"

    def make_controls(self) -> list[ControlInfo]:
        feet = [switch(foot, f"Foot {foot[-1]} is held", True, "Feet") for foot in FEET]
        return [
            choice("motion", "Motion", ("stand", "walk", "sway"), "Motion", "It walks on the spot, as on a treadmill."),
            slider("speed", "Speed, strides/s", 0.5, 0.0, 2.0, 0.05, "Motion"),
            slider("stride", "Stride, m", 0.4, 0.0, 0.8, 0.02, "Motion", "How far a foot goes ahead."),
            slider("lift", "Lift, m", 0.25, 0.0, 0.6, 0.02, "Motion", "How high a foot is lifted."),
            *feet,
        ]

    def build(self) -> None:
        walker = gallery.walker()
        self.stands = {foot: walker.pose(foot) for foot in FEET}
        self.height = walker.pose("body")
        self.table(walker)
        self.feet = {foot: self._hold(foot) for foot in FEET}
        self.body = self.want("pose", "body", self.height, name="body")

    def changed(self, name: str) -> None:
        if name in FEET:
            if name in self.feet:
                self.drop(self.feet.pop(name))
            if self.is_on(name):
                self.feet[name] = self._hold(name)
        elif name == "motion":
            self.phase = 0.0
            self.move({number: self.stands[foot] for foot, number in self.feet.items()})
            self.move({self.body: self.height})

    def go(self) -> None:
        if self.word("motion") == "walk":
            self.move({number: self._step(foot) for foot, number in self.feet.items()})
        else:
            sway = (0.2 * math.cos(self.phase), 0.2 * math.sin(self.phase), 0.1 * math.sin(2 * self.phase))
            self.move({self.body: translation(sway) @ self.height})

    def lines(self) -> list[str]:
        on_ground = [foot[-1] for foot in FEET if self.pose(foot)[2, 3] < 1e-3]
        return [f"feet on the ground: {' '.join(on_ground) or 'none'}"]

    def _hold(self, foot: str) -> int:
        return self.want("pose", foot, self.stands[foot], name=foot, pinned=True)

    def _step(self, foot: str) -> Array:
        """Back with the treadmill while it stands, ahead through the air while it swings."""
        t = (self.phase / (2 * math.pi) + 0.5 * (FEET.index(foot) % 2)) % 1.0
        stride, lift = self.number("stride"), self.number("lift")
        if t < SWING:
            u = t / SWING
            ahead, up = -0.5 + u - math.sin(2 * math.pi * u) / (2 * math.pi), math.sin(math.pi * u) ** 2
        else:
            ahead, up = 0.5 - (t - SWING) / (1 - SWING), 0.0
        return translation(np.array([stride * ahead, 0.0, lift * up])) @ self.stands[foot]
