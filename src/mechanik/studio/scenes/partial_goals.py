"""A goal of which only some directions are asked for."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.spatial import make, rotation, translation
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.messages.requests import Direction
from mechanik.studio.scenes.controls import choice, slider, switch
from mechanik.studio.scenes.moving import Moving

DIRECTIONS: dict[Direction, str] = {
    "X": "Along x", "Y": "Along y", "Z": "Along z", "EX": "About x", "EY": "About y", "EZ": "About z",
}  # fmt: skip
TOOL = "iiwa_link_ee"


class PartialGoals(Moving):
    name = "partial_goals"
    title = "Goals in some directions"
    about = (
        "Choose which of the six directions of the goal count, along and about its own axes. What is not asked for is "
        "free: the arm uses it to move less. Drag the goal, or let it wander and turn by itself, with any choice."
    )

    def make_controls(self) -> list[ControlInfo]:
        asked = [switch(name, title, True, "Asked for") for name, title in DIRECTIONS.items()]
        return [
            choice("motion", "Motion", ("drag", "wander", "turn", "both"), "Goal", "Who moves the goal."),
            slider("speed", "Speed, rounds/s", 0.25, 0.0, 2.0, 0.05, "Goal"),
            slider("amplitude", "Amplitude", 0.5, 0.0, 1.5, 0.05, "Goal", "Above 1 it goes out of reach."),
            *asked,
        ]

    def build(self) -> None:
        arm = gallery.iiwa14()
        self.home = arm.pose(TOOL)
        self.table(arm)
        self.goal = self.want("pose", TOOL, self.home, name="tool")

    def changed(self, name: str) -> None:
        if name in DIRECTIONS:
            free: tuple[Direction, ...] = tuple(direction for direction in DIRECTIONS if not self.is_on(direction))
            if len(free) < len(DIRECTIONS):
                self.alter(self.goal, free=free, enabled=True)
            else:
                self.alter(self.goal, free=(), enabled=False)
        elif name == "motion":
            self.move({self.goal: self.home})

    def go(self) -> None:
        t, a, kind = self.phase, self.number("amplitude"), self.word("motion")
        shift, turn = np.zeros(3), np.zeros(3)
        if kind != "turn":
            shift = a * np.array([0.15 * math.sin(t), 0.3 * math.sin(t / 2), 0.15 * (1 - math.cos(t))])
        if kind != "wander":
            turn = a * np.array([0.8 * math.sin(t), 0.8 * math.sin(0.7 * t), 1.5 * math.sin(0.4 * t)])
        self.move({self.goal: translation(shift) @ self.home @ make(rotation.exp(turn), np.zeros(3))})

    def lines(self) -> list[str]:
        asked = [title.lower() for name, title in DIRECTIONS.items() if self.is_on(name)]
        return [f"asked for: {', '.join(asked) or 'nothing'}", f"freedoms left over: {7 - len(asked)}"]
