"""Arms in the plane: two links, three, or as many as you like."""

from __future__ import annotations

import math

import numpy as np

from mechanik.formats import arm_2d
from mechanik.gallery.bones import BLUE, DARK, dress
from mechanik.mechanism import Mechanism
from mechanik.spatial import translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import choice, slider
from mechanik.studio.scenes.curves import as_curve
from mechanik.studio.scenes.moving import Moving
from mechanik.studio.scenes.texts import tidy

REACH = 1.6
"""Of every one of them, m."""


def planar(joints: int) -> tuple[Mechanism, str]:
    """An arm of equal links, bent a little, and its list as text."""
    lengths = [round(REACH / joints, 6)] * joints
    arm = dress(arm_2d(lengths), 0.04, 0.02, BLUE, DARK)
    arm.q = [0.4 if k == 0 else 1.6 / joints for k in range(joints)]
    arm.configurations["home"] = arm.q
    return arm, tidy({"mechanik": 1, "arm": {"lengths": lengths}})


class PlanarArms(Moving):
    name = "arm_2d"
    title = "Arms in the plane"
    about = (
        "Links in a row, all joints about one axis. With two links a point leaves two ways to bend and no freedom; "
        "with three there is one to spare, and with more a whole snake. Edit the list of lengths in the Model panel."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            slider("joints", "Links", 3.0, 1.0, 40.0, 1.0, "Arm"),
            choice("motion", "Motion", ("drag", "circle", "line"), "Target", "Who moves the target."),
            slider("size", "Size, m", 0.4, 0.0, 1.0, 0.02, "Target", "Radius of the circle, half the line."),
            slider("speed", "Speed, rounds/s", 0.25, 0.0, 2.0, 0.05, "Target"),
        ]

    def build(self) -> None:
        self._put()

    def changed(self, name: str) -> None:
        if name == "joints":
            self._put()
        elif name in ("motion", "size"):
            self._draw()

    def go(self) -> None:
        self.move({self.goal: translation(self._path(self.phase))})

    def lines(self) -> list[str]:
        mechanism, q = self.session.mechanism, self.q
        tip = mechanism.pose(list(mechanism.links)[-1], q)[:3, 3]
        angles = "  ".join(f"{math.degrees(angle):.0f}" for angle in q[:8])
        return [f"tip at {tip[0]:+.3f} {tip[1]:+.3f} m", f"angles, degrees: {angles}{' ...' if len(q) > 8 else ''}"]

    def _put(self) -> None:
        arm, text = planar(int(self.number("joints")))
        self.table(arm, source=("arm_2d", text))
        self.goal = self.want("point", "tool", arm.pose("tool"), name="target")
        self._draw()

    def _draw(self) -> None:
        points = self._path(np.linspace(0.0, 2 * math.pi, 97)[:-1])
        self.session.set_curves([as_curve("path", points, closed=True)] if self.is_moving else [])

    def _path(self, t: float | Array) -> Array:
        """(..., 3), m, at phases t (...)."""
        size = self.number("size")
        across = size * np.sin(t) if self.word("motion") == "circle" else np.zeros_like(t)
        return np.stack([0.7 + size * np.cos(t), across, np.zeros_like(t)], axis=-1)
