"""A hexapod on a table that tilts: dragged, or moving by itself."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.mechanism import Joint, Link, Mechanism
from mechanik.spatial import make, rotation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import choice, slider, switch
from mechanik.studio.scenes.moving import Moving

WIDE, LEAN, TURN = 0.012, math.radians(7.0), math.radians(14.0)
"""How far it goes at amplitude 1, m and rad: inside its reach, with room for a small tilt of the table."""
HOME = make(np.eye(3), (0.0, 0.0, 0.09))
"""Of the platform, seen from the base."""


def on_a_table() -> Mechanism:
    """The hexapod of the gallery on a table that leans about x and y."""
    base = gallery.hexapod().link("base")
    table, tilt = Link("table"), Joint("tilt", dof=("EX", "EY"))
    tilt.set_limits((-0.6, -0.6), (0.6, 0.6))
    tilt.add_child(base)
    table.add_child(tilt)
    mechanism = Mechanism(table, name="hexapod")
    mechanism.configurations["home"] = mechanism.q
    return mechanism


class Hexapod(Moving):
    name = "hexapod"
    title = "Hexapod"
    about = (
        "Drag the platform: six struts find their lengths, and no loop ever opens. Let it gyrate, turn or circle by "
        "itself, and tilt the base under it. Ask for more than it can do, and it goes as far as the struts allow."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("motion", "Motion", ("drag", "gyrate", "rotate", "circle"), "Platform", "Who moves the platform."),
            slider("speed", "Speed, rounds/s", 0.4, 0.0, 2.0, 0.05, "Platform"),
            slider("amplitude", "Amplitude", 0.8, 0.0, 2.0, 0.05, "Platform", "Above 1 it asks for too much."),
            slider("tilt_x", "Base tilt about x, °", 0.0, -20.0, 20.0, 0.5, "Base"),
            slider("tilt_y", "Base tilt about y, °", 0.0, -20.0, 20.0, 0.5, "Base"),
            switch("rides", "Platform tilts with the base", False, "Base", "Off: it stays level as far as it can."),
        ]

    def build(self) -> None:
        self.table(on_a_table())
        self.base = self.want("orientation", "base", np.eye(4), name="base", pinned=True)
        self.platform = self.want("pose", "platform", HOME, name="platform")

    def changed(self, name: str) -> None:
        if name.startswith("tilt"):
            self.move({self.base: self._tilt()})
        if name in ("tilt_x", "tilt_y", "rides") or (name == "motion" and not self.is_moving):
            self.go()

    def go(self) -> None:
        self.move({self.platform: self._place()})

    def lines(self) -> list[str]:
        lengths = [self.reading(f"strut{k}_slide") for k in range(1, 7)]
        return ["struts, mm: " + "  ".join(f"{1000 * length:.1f}" for length in lengths)]

    def _tilt(self) -> Array:
        x, y = (math.radians(self.number(name)) for name in ("tilt_x", "tilt_y"))
        return make(rotation.turn_y(y) @ rotation.turn_x(x), np.zeros(3))

    def _place(self) -> Array:
        """Where the platform shall be at this phase."""
        a, c, s = self.number("amplitude"), math.cos(self.phase), math.sin(self.phase)
        match self.word("motion"):
            case "gyrate":
                own = make(rotation.exp(a * LEAN * np.array([c, s, 0.0])), np.zeros(3))
            case "rotate":
                own = make(rotation.turn_z(a * TURN * s), np.zeros(3))
            case "circle":
                own = make(np.eye(3), a * WIDE * np.array([c, s, 0.3 * math.sin(2 * self.phase)]))
            case _:
                own = np.eye(4)
        return (self._tilt() if self.is_on("rides") else np.eye(4)) @ HOME @ own
