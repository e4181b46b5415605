"""Cyclic coordinate descent on an arm of five joints, with the switches that show what it can do."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from mechanik.gallery.bones import DARK, GREY, ORANGE, block, hub
from mechanik.gallery.seeds import ZALO_BOXES, ZALO_JOINTS
from mechanik.mechanism import Builder, Mechanism
from mechanik.objectives import InCone
from mechanik.spatial import make, rotation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import slider, switch
from mechanik.studio.scenes.curves import FAINT, as_curve
from mechanik.studio.scenes.moving import Moving

GOAL = "goal"
HOME = (0.5, 0.4, 0.8, 0.5, 0.0)
CENTRE = np.array([0.35, 0.0, 0.4])
"""About which the goal orbits, m."""
CONE = math.radians(60.0)
"""How far a ball leans out at most, with limits on."""
OUTWARD = make(rotation.turn_y(math.pi / 2), (0.083, 0.01, 0.0))
"""Of the effector on the last link: its z points out of the tip."""


def make_arm(hinges: bool, limits: bool) -> Mechanism:
    """The arm of the gallery, its joints hinges or balls."""
    robot = Builder("ccd_arm")
    robot.fixed("base_joint", "world", "base", at=make(rotation.turn_x(math.pi / 2), (0.0, 0.0, 0.0)))
    parent = "base"
    for (joint, link, at, axis, degrees), value in zip(ZALO_JOINTS, HOME, strict=True):
        if hinges:
            bound = math.radians(degrees)
            robot.revolute(
                joint, parent, link, at=at, axis=axis, limits=(-bound, bound) if limits else None, value=value
            )
        else:
            turn = (value, 0.0, 0.0) if axis == "x" else (0.0, value, 0.0)
            robot.ball(joint, parent, link, at=at, value=turn)
        parent = link
    robot.fixed("effector_fix", "fifth", "effector", at=OUTWARD)
    for k, (link, at, size) in enumerate(ZALO_BOXES):
        robot.link(link, visuals=[block(at, size, (GREY, ORANGE)[k % 2])])
    robot.link("effector", visuals=[hub((0.0, 0.0, -0.01), (0.0, 0.0, 1.0), 0.008, 0.02, DARK)])
    arm = robot.build()
    arm.configurations["home"] = arm.q
    return arm


class CcdArm(Moving):
    name = "ccd_arm"
    title = "Arm by cyclic coordinate descent"
    about = (
        "Each joint in turn points the tip at the goal, from the tip to the base: that is all. Free joints turn any "
        "way, hinges about one axis, limits stop them, and with direction on the tip also points where the goal's "
        "blue axis does. Let the goal orbit, or drag it."
    )
    starter, still = "orbit", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            switch("free", "Free", False, "Joints", "Every joint is a ball; the opposite of hinges."),
            switch("hinges", "Hinges", True, "Joints", "Every joint turns about one axis."),
            switch("limits", "Limits", True, "Joints", "Hinges stop at their limits, balls at a cone."),
            switch("orbit", "Orbit", True, "Goal", "The goal goes around by itself."),
            switch("direction", "Direction", False, "Goal", "The tip matches the direction of the goal too."),
            slider("speed", "Speed, orbits/s", 0.2, 0.0, 2.0, 0.05, "Goal"),
            slider("sweeps", "Sweeps", 20.0, 1.0, 200.0, 1.0, "Method", "Over all joints in one solve, at most."),
        ]

    def build(self) -> None:
        self._put(self._orbit(self.phase))
        self._draw()

    def changed(self, name: str) -> None:
        match name:
            case "free" | "hinges":
                other = "hinges" if name == "free" else "free"
                self.put(other, not self.is_on(name))
                self._put(self.pose_of(self.goal))
            case "limits" | "direction":
                self._put(self.pose_of(self.goal))
            case "sweeps":
                self._solve()
            case "orbit":
                self._draw()
            case _:
                pass

    def go(self) -> None:
        self.move({self.goal: self._orbit(self.phase)})

    def lines(self) -> list[str]:
        off = self.off(GOAL)
        if off is None:
            return []
        lines = [f"tip to goal: {1000 * off.position:.2f} mm"]
        if self.is_on("direction"):
            lines.append(f"off its direction: {math.degrees(off.rotation):.2f} degrees")
        return lines

    def _put(self, goal: Array) -> None:
        hinges, limits = self.is_on("hinges"), self.is_on("limits")
        self.table(make_arm(hinges, limits))
        self.session.keep_off(allow=[("third", "fifth")])  # which overlap as they were drawn
        self.goal = self.want("hinge" if self.is_on("direction") else "point", "effector", goal, name=GOAL)
        if limits and not hinges:
            links = ["base", *(link for _, link, *_ in ZALO_JOINTS)]
            up = (0.0, 1.0, 0.0)
            cones = [
                InCone(child, up, up, CONE, relative_to=parent, name=f"{child} cone")
                for parent, child in pairwise(links)
            ]
            self.demand(*cones)
        self._solve()

    def _solve(self) -> None:
        wrist = {"direction_joints": 2} if self.is_on("direction") and self.is_on("hinges") else {}
        self.session.set_solver("ccd", max_iterations=int(self.number("sweeps")), **wrist)

    def _draw(self) -> None:
        points = np.array([self._orbit(t)[:3, 3] for t in np.linspace(0.0, 2 * math.pi, 97)[:-1].tolist()])
        self.session.set_curves([as_curve("orbit", points, closed=True, rgba=FAINT)] if self.is_moving else [])

    def _orbit(self, t: float) -> Array:
        """(4, 4) at phase t: on a tilted circle; the direction of the goal leads away from the arm and down."""
        p = CENTRE + np.array([0.12 * math.cos(t), 0.3 * math.sin(t), 0.15 * math.sin(2 * t)])
        out = np.array([p[0], p[1], -0.3])
        return make(rotation.between((0.0, 0.0, 1.0), out), p)
