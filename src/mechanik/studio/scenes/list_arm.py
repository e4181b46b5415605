"""An arm in space that is a list of lengths and axes, with sliders for its target and its colliders shown."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mechanik import gallery
from mechanik.formats import arm_3d
from mechanik.gallery.bones import BLUE, GREY, RED, block, put_on
from mechanik.mechanism import Mechanism, PlacedShape
from mechanik.spatial import translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import choice, slider, switch
from mechanik.studio.scenes.moving import Moving
from mechanik.studio.scenes.texts import tidy

GRIPPY = ([0.1, 0.1, 0.4, 0.4, 0.1, 0.4, 0.4, 0.1, 0.2, 0.2], "zyyzyyzyyz")
"""Lengths and axes of the gallery's `grippy10`."""
REACH = 2.2
"""Of the arm whose joints are counted by the slider, m."""
COUNTED = "counted"
SLIDERS = ("x", "y", "z")
FIRST = np.array([1.2, 0.3, 0.6])
"""Where the target of a large arm is at first, m."""
SMALL = 0.35
"""`zalo5` is as large as this against the others."""
ROUND = 0.25
"""Radius of the circle of a large arm's target, m."""


def long_arm(joints: int) -> tuple[list[float], str]:
    """An arm of so many equal links, its axes z, y, x and so on."""
    return [REACH / joints] * joints, ("zyx" * joints)[:joints]


def boxed(lengths: list[float], axes: str) -> Mechanism:
    """The arm of a list, with a box on each link, slightly bent so that it is not singular."""
    arm = arm_3d(lengths, axes)
    width = max(0.03, min(0.12, 0.8 * max(lengths)))
    for k, length in enumerate(lengths):
        if length > 0.0:
            put_on(arm.link(f"link{k}"), block((0.0, 0.0, length / 2), (width, width, length), (BLUE, GREY)[k % 2]))
    bend = [0.0 if axis == "z" else 2.0 / len(axes) for axis in axes]
    arm.q = bend
    arm.configurations["home"] = arm.q
    return arm


def calm(placed: PlacedShape) -> PlacedShape:
    """Not in red, which is for what is hit."""
    return replace(placed, material=BLUE) if placed.material == RED else placed


class ListArm(Moving):
    name = "list_arm"
    title = "Arm from a list"
    about = (
        "Lengths and axes in a list are this arm: edit them in the Model panel. Move the target with the sliders or "
        "by hand; boxes that hit each other are red. Choose the arm whose joints are counted, and go up to a hundred: "
        "it still follows."
    )
    shows_collisions = True
    starter, still = "circle", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("arm", "Arm", ("grippy10", "zalo5", COUNTED), "Arm"),
            slider("joints", "Joints", 30.0, 2.0, 100.0, 1.0, "Arm", "Of the counted arm, which this chooses."),
            slider("x", "Target x, m", FIRST[0], -2.0, 2.0, 0.01, "Target"),
            slider("y", "Target y, m", FIRST[1], -2.0, 2.0, 0.01, "Target"),
            slider("z", "Target z, m", FIRST[2], 0.0, 2.0, 0.01, "Target"),
            switch("circle", "Target circles", False, "Target"),
            slider("speed", "Speed, rounds/s", 0.2, 0.0, 2.0, 0.05, "Target"),
        ]

    def build(self) -> None:
        self.centre = FIRST
        self._put(FIRST)

    def changed(self, name: str) -> None:
        if name == "joints" and self.word("arm") != COUNTED:
            self.put("arm", COUNTED)
            name = "arm"
        if name == "arm":
            self.phase, self.centre = 0.0, self.scale * FIRST
            self._put(self.centre)
        elif name == "joints":
            self._put(self._sliders())
        elif name in SLIDERS:
            self.centre = self._sliders() - self._around()
            self.move({self.goal: translation(self._sliders())})
        elif name == "circle":
            self.phase, self.centre = 0.0, self._sliders()

    def go(self) -> None:
        self.move({self.goal: translation(self.centre + self._around())})

    def follow(self) -> None:
        for name, place in zip(SLIDERS, self.pose_of(self.goal)[:3, 3].tolist(), strict=True):
            self.put_within(name, place)

    def lines(self) -> list[str]:
        mechanism = self.session.mechanism
        tip = mechanism.pose(list(mechanism.links)[-1], self.q)[:3, 3]
        return [f"{mechanism.nq} joints, tip at {tip[0]:+.3f} {tip[1]:+.3f} {tip[2]:+.3f} m"]

    @property
    def scale(self) -> float:
        return SMALL if self.word("arm") == "zalo5" else 1.0

    def _put(self, target: Array) -> None:
        match self.word("arm"):
            case "grippy10":
                arm, (lengths, axes), tip = gallery.grippy10(), GRIPPY, "tool"
            case "zalo5":
                arm, (lengths, axes), tip = gallery.zalo5(), ([], ""), "effector"
            case _:
                lengths, axes = long_arm(int(self.number("joints")))
                arm, tip = boxed(lengths, axes), "tool"
        for link in arm.links.values():
            link.collisions = link.visuals = tuple(calm(placed) for placed in link.visuals)
        text = tidy({"mechanik": 1, "arm": {"lengths": [round(length, 6) for length in lengths], "axes": axes}})
        self.table(arm, source=("arm_3d", text) if lengths else ("", ""))
        self.goal = self.want("point", tip, translation(target), name="target")

    def _sliders(self) -> Array:
        """(3,), m."""
        return np.array([self.number(name) for name in SLIDERS])

    def _around(self) -> Array:
        """How far the target is on its circle from where that begins, (3,), m."""
        return self.scale * ROUND * np.array([0.0, math.sin(self.phase), 1 - math.cos(self.phase)])
