"""A delta robot that is dragged, or goes around a path."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.spatial import translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import choice, slider
from mechanik.studio.scenes.curves import as_curve
from mechanik.studio.scenes.moving import Moving

LIFT = 0.08
"""How high pick and place goes above its ends, m."""


class Delta(Moving):
    name = "delta"
    title = "Delta robot"
    about = (
        "Three arms carry a platform through parallelograms, so that it moves every way and never turns. Drag it, or "
        "let it go around a circle or pick and place. Six loops are kept shut at every moment."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("motion", "Motion", ("circle", "pick and place", "drag"), "Path", "Who moves the platform."),
            slider("size", "Size, m", 0.15, 0.0, 0.4, 0.01, "Path", "Radius or half the way; large ones are cut off."),
            slider("height", "Height, m", 0.0, -0.12, 0.12, 0.01, "Path", "Above the middle of its space."),
            slider("speed", "Speed, rounds/s", 0.5, 0.0, 3.0, 0.05, "Path"),
        ]

    def build(self) -> None:
        robot = gallery.delta_robot()
        self.home = robot.pose("platform")[:3, 3]
        self.table(robot)
        self.goal = self.want("point", "platform", translation(self._path(0.0)), name="platform")
        self._draw()

    def changed(self, name: str) -> None:
        if name != "speed":
            self.go()
            self._draw()

    def go(self) -> None:
        self.move({self.goal: translation(self._path(self.phase))})

    def lines(self) -> list[str]:
        arms = (math.degrees(self.reading(f"arm{k}_joint")) for k in (1, 2, 3))
        return ["arms, degrees: " + "  ".join(f"{angle:.1f}" for angle in arms)]

    def _draw(self) -> None:
        points = self._path(np.linspace(0.0, 2 * math.pi, 121)[:-1])
        self.session.set_curves([as_curve("path", points, closed=True)] if self.is_moving else [])

    def _path(self, t: float | Array) -> Array:
        """(..., 3), m, at phases t (...)."""
        size, c, s = self.number("size"), np.cos(t), np.sin(t)
        match self.word("motion"):
            case "circle":
                x, y, z = size * c, size * s, np.zeros_like(c)
            case "pick and place":  # up and over, and the same way back
                x, y, z = size * c, np.zeros_like(c), LIFT * s**2
            case _:
                x, y, z = np.zeros_like(c), np.zeros_like(c), np.zeros_like(c)
        return self.home + np.stack([x, y, z + self.number("height")], axis=-1)
