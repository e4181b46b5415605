"""A Panda at a table with things on it: its hand slides along whatever is in the way."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.collision import Obstacle
from mechanik.mechanism import Box, Capsule, ConvexMesh, Cylinder, Sphere
from mechanik.spatial import make
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.messages.requests import CollisionMode
from mechanik.studio.scenes.controls import slider, switch
from mechanik.studio.scenes.moving import Moving

TOP = 0.2
"""Height of the table, m."""
HAND, PLACE = "panda_hand_tcp", (0.5, 0.0, 0.45)
"""What is dragged, and where it is at first."""
DOWN = np.diag([1.0, -1.0, -1.0])
"""The hand points down."""
ROUND = 0.28
"""Radius of the circle that the goal goes round, m: through the posts."""
MILLIMETRES = 1e-3


ROCK = ConvexMesh([(x, y, z) for x in (-0.07, 0.07) for y in (-0.05, 0.05) for z in (0.0, 0.06)] + [(0.0, 0.01, 0.13)])


def things(post: float) -> list[Obstacle]:
    """On the table and around it; post: y of the one that a slider moves, m."""
    return [
        Obstacle(Box((0.7, 1.4, 0.04)), (0.6, 0.0, TOP - 0.02), name="table"),
        Obstacle(Cylinder(0.03, 0.5), (0.45, post, TOP + 0.25), name="post"),
        Obstacle(Capsule(0.03, 0.4), (0.55, -0.35, TOP + 0.23), name="rod"),
        Obstacle(Sphere(0.08), (0.75, 0.05, TOP + 0.08), name="ball"),
        Obstacle(ROCK, (0.4, -0.1, TOP), name="rock"),
    ]


class AroundATable(Moving):
    name = "table"
    title = "Around a table"
    about = (
        "Drag the hand into the table, a post or the ball: it slides along what is in the way and touches nothing. "
        "Switch that off, and what is hit turns red. Click one of these things and drag it by its handle, or move the "
        "post with the slider: the arm gives way."
    )
    starter, still = "circle", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            switch("avoids", "Avoids what is in the way", True, "Arm"),
            slider("clearance", "Clearance, mm", 10.0, 0.0, 100.0, 1.0, "Arm", "How far links keep off."),
            slider("post", "Post at y, m", 0.35, -0.6, 0.6, 0.01, "Things"),
            switch("circle", "Goal circles", False, "Goal"),
            slider("speed", "Speed, rounds/s", 0.1, 0.0, 1.0, 0.01, "Goal"),
        ]

    def build(self) -> None:
        arm = gallery.panda()
        arm.q = arm.configurations["home"]
        self.table(arm)
        self.centre = np.array(PLACE)
        self.goal = self.want("pose", HAND, make(DOWN, self.centre), name="hand")
        clearance = MILLIMETRES * self.number("clearance")
        self.session.keep_off(["self", *things(self.number("post"))], mode=self._mode(), clearance=clearance)

    def changed(self, name: str) -> None:
        match name:
            case "avoids":
                self.session.keep_off(mode=self._mode())
            case "clearance":
                self.session.keep_off(clearance=MILLIMETRES * self.number("clearance"))
            case "post":
                self._move_post()
            case "circle":
                self.phase, self.centre = 0.0, self.pose_of(self.goal)[:3, 3]
            case _:
                pass

    def go(self) -> None:
        turn = self.pose_of(self.goal)[:3, :3]
        self.move({self.goal: make(turn, self.centre + self._around())})

    def follow(self) -> None:
        now = self.session.on_stage.setup.collisions
        self.put("avoids", now.mode == "avoid")
        self.put_within("clearance", now.clearance / MILLIMETRES)
        for one in now.obstacles:
            if one.name == "post":
                self.put_within("post", float(one.pose.position[1]))

    def lines(self) -> list[str]:
        bumping = self.session.lookout.words
        return [f"Hit: {bumping}" if bumping else "Nothing is hit"]

    def _mode(self) -> CollisionMode:
        return "avoid" if self.is_on("avoids") else "show"

    def _move_post(self) -> None:
        """Along y, from wherever people have put it; one that they have removed comes back."""
        standing = {one.name: one for one in self.session.on_stage.setup.collisions.obstacles}
        if "post" not in standing:
            self.session.add_obstacle(*(one for one in things(self.number("post")) if one.name == "post"))
            return
        x, _, z = standing["post"].pose.position.tolist()
        self.session.move_obstacle("post", (x, self.number("post"), z))

    def _around(self) -> Array:
        """How far the goal is on its circle from where that begins, (3,), m."""
        return ROUND * np.array([0.0, math.sin(self.phase), 0.5 * (math.cos(self.phase) - 1)])
