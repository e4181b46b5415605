"""An arm of ten boxes between two walls, as inverse kinematics was shown in the browser: what is hit is red."""

from __future__ import annotations

import math

import numpy as np

from mechanik.collision import Obstacle
from mechanik.formats import arm_3d
from mechanik.gallery.bones import BLUE, GREY, block, put_on
from mechanik.mechanism import Box, Mechanism
from mechanik.spatial import translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.messages.requests import CollisionMode
from mechanik.studio.scenes.controls import choice, slider, switch
from mechanik.studio.scenes.moving import Moving

LENGTHS, AXES = [1.0, 4.0, 4.0, 4.0, 2.0, 4.0, 4.0, 1.0, 2.0, 2.0], "zyyzyyzyyz"
WIDTH = 1.2
"""Of the boxes, m."""
WALL, PLACES = (10.0, 1.0, 4.0), ((0.0, 5.0, 2.0), (0.0, 5.0, 10.0))
"""Edges of the walls and where their middles are, m: one stands on the ground, one hangs above it."""
WALLS = ("wall 1", "wall 2")
POSES = {
    "free": (0.785, -0.411, 1.069, 0.007, 1.756, 0.649, 0.009, -1.27, -1.803, -0.774),
    "hits itself": (0.2887, -0.7049, 1.0032, -0.2547, 2.1797, 0.9333, -0.2795, -1.4061, -2.0061, -0.3146),
    "hits the walls": (1.6166, -0.4614, 0.809, -0.0195, 1.7569, 0.9759, 0.1085, -1.3191, -1.7609, -1.49),
}
SLIDERS = ("x", "y", "z")
ROUND = 3.0
"""Radius of the circle of the target, m."""


def boxed_arm() -> Mechanism:
    """A box on each link, from its joint to the next."""
    arm = arm_3d(LENGTHS, AXES, name="boxes")
    for k, length in enumerate(LENGTHS):
        put_on(arm.link(f"link{k}"), block((0.0, 0.0, length / 2), (WIDTH, WIDTH, length), (BLUE, GREY)[k % 2]))
    arm.q = POSES["free"]
    arm.configurations["home"] = arm.q
    return arm


def walls() -> list[Obstacle]:
    return [Obstacle(Box(WALL), place, name=name) for name, place in zip(WALLS, PLACES, strict=True)]


class Boxes(Moving):
    name = "boxes"
    title = "Boxes and walls"
    about = (
        "Each link of this arm is a box, and what it hits turns red: another box, or one of the two walls. Drag the "
        "target, turn joints by hand, click a wall and drag it by its handle, or choose a pose that hits something. "
        "Switch on that it avoids them, and it comes as close as it can without touching."
    )
    starter, still = "circle", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("pose", "Pose", tuple(POSES), "Arm"),
            switch("avoids", "Avoids what it hits", False, "Arm", "Walls and itself."),
            switch("walls", "Walls", True, "Arm"),
            slider("x", "Target x, m", 0.0, -25.0, 25.0, 0.05, "Target"),
            slider("y", "Target y, m", 0.0, -25.0, 25.0, 0.05, "Target"),
            slider("z", "Target z, m", 0.0, -10.0, 25.0, 0.05, "Target"),
            switch("circle", "Target circles", False, "Target"),
            slider("speed", "Speed, rounds/s", 0.1, 0.0, 1.0, 0.01, "Target"),
        ]

    def build(self) -> None:
        arm = boxed_arm()
        self.table(arm)
        self.centre = arm.pose("tool")[:3, 3]
        self.goal = self.want("point", "tool", translation(self.centre), name="target")
        self.session.keep_off(["self", *walls()], mode=self._mode())

    def changed(self, name: str) -> None:
        match name:
            case "pose":
                self.session.come_along(np.array(POSES[self.word("pose")]))
                self.phase, self.centre = 0.0, self.pose_of(self.goal)[:3, 3]
            case "avoids":
                self.session.keep_off(mode=self._mode())
            case "walls":
                self._build_walls()
            case "circle":
                self.phase, self.centre = 0.0, self._sliders()
            case "x" | "y" | "z":
                self.centre = self._sliders() - self._around()
                self.move({self.goal: translation(self._sliders())})
            case _:
                pass

    def go(self) -> None:
        self.move({self.goal: translation(self.centre + self._around())})

    def follow(self) -> None:
        for name, place in zip(SLIDERS, self.pose_of(self.goal)[:3, 3].tolist(), strict=True):
            self.put_within(name, place)
        now = self.session.on_stage.setup.collisions
        self.put("avoids", now.mode == "avoid")
        self.put("walls", any(one.name in WALLS for one in now.obstacles))

    def lines(self) -> list[str]:
        bumping = self.session.lookout.words
        return [f"Hit: {bumping}" if bumping else "Nothing is hit"]

    def _mode(self) -> CollisionMode:
        return "avoid" if self.is_on("avoids") else "show"

    def _build_walls(self) -> None:
        """Both where they were at first, or none; what people have put there besides stays."""
        standing = [one.name for one in self.session.on_stage.setup.collisions.obstacles if one.name in WALLS]
        if self.is_on("walls"):
            self.session.add_obstacle(*(one for one in walls() if one.name not in standing))
        else:
            self.session.remove_obstacle(*standing)

    def _sliders(self) -> Array:
        """(3,), m."""
        return np.array([self.number(name) for name in SLIDERS])

    def _around(self) -> Array:
        """How far the target is on its circle from where that begins, (3,), m."""
        return ROUND * np.array([0.0, math.sin(self.phase), 1 - math.cos(self.phase)])
