"""Scenes with collisions: an arm of boxes near two walls, and a Panda that avoids obstacles on a table."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.collision import Obstacle
from mechanik.formats import arm_3d
from mechanik.gallery.construction import BLUE, GREY, add_shapes, block
from mechanik.model import Box, Capsule, ConvexMesh, Cylinder, Mechanism, Sphere
from mechanik.spatial import make_pose, translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.messages.requests import CollisionMode
from mechanik.studio.scenes.scene_base import AnimatedScene
from mechanik.studio.scenes.scene_controls import choice, slider, switch

LENGTHS, AXES = [1.0, 4.0, 4.0, 4.0, 2.0, 4.0, 4.0, 1.0, 2.0, 2.0], "zyyzyyzyyz"
"""Lengths (m) and axes of the arm of boxes."""
BOX_WIDTH = 1.2
"""Width of the boxes, m."""
WALL_SIZE, WALL_POSITIONS = (10.0, 1.0, 4.0), ((0.0, 5.0, 2.0), (0.0, 5.0, 10.0))
"""Edges and centres of the walls, m; the first is on the ground, and the second above it, with a gap of 4 m."""
WALL_NAMES = ("wall 1", "wall 2")
CONFIGURATIONS = {
    "free": (0.785, -0.411, 1.069, 0.007, 1.756, 0.649, 0.009, -1.27, -1.803, -0.774),
    "hits itself": (0.2887, -0.7049, 1.0032, -0.2547, 2.1797, 0.9333, -0.2795, -1.4061, -2.0061, -0.3146),
    "hits the walls": (1.6166, -0.4614, 0.809, -0.0195, 1.7569, 0.9759, 0.1085, -1.3191, -1.7609, -1.49),
}
"""Joint values of the arm of boxes (rad), by the choices of the control "pose"."""
POSITION_SLIDERS = ("x", "y", "z")
"""Names of the sliders for the position of the target."""
TARGET_CIRCLE_RADIUS = 3.0
"""Radius of the circle of the target, m."""


def boxed_arm() -> Mechanism:
    """Return the arm with a box on each link, from the joint of the link to the next joint."""
    arm = arm_3d(LENGTHS, AXES, name="boxes")
    for k, length in enumerate(LENGTHS):
        add_shapes(
            arm.link(f"link{k}"), block((0.0, 0.0, length / 2), (BOX_WIDTH, BOX_WIDTH, length), (BLUE, GREY)[k % 2])
        )
    arm.q = CONFIGURATIONS["free"]
    arm.configurations["home"] = arm.q
    return arm


def make_walls() -> list[Obstacle]:
    return [
        Obstacle(Box(WALL_SIZE), position, name=name) for name, position in zip(WALL_NAMES, WALL_POSITIONS, strict=True)
    ]


class BoxArmScene(AnimatedScene):
    """Arm of ten boxes near two walls; boxes and walls in collision are red."""

    name = "boxes"
    title = "Boxes and walls"
    about = (
        "Each link of this arm is a box. Boxes and walls in collision are red. Drag the target or the joints, click a "
        "wall and drag its handle, or choose a pose in collision. With avoidance on, the arm comes as close as "
        "possible without contact."
    )
    motion_control, stopped_value = "circle", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("pose", "Pose", tuple(CONFIGURATIONS), "Arm"),
            switch("avoids", "Avoid collisions", False, "Arm", "Collisions with the walls and between links."),
            switch("walls", "Walls", True, "Arm"),
            slider("x", "Target x, m", 0.0, -25.0, 25.0, 0.05, "Target"),
            slider("y", "Target y, m", 0.0, -25.0, 25.0, 0.05, "Target"),
            slider("z", "Target z, m", 0.0, -10.0, 25.0, 0.05, "Target"),
            switch("circle", "Move the target on a circle", False, "Target"),
            slider("speed", "Speed, cycles/s", 0.1, 0.0, 1.0, 0.01, "Target"),
        ]

    def build(self) -> None:
        arm = boxed_arm()
        self.load_mechanism(arm)
        self.circle_start = arm.pose("tool")[:3, 3]
        self.goal = self.add_goal("point", "tool", translation(self.circle_start), name="target")
        self.session.set_collision_avoidance(["self", *make_walls()], mode=self._collision_mode())

    def on_control_changed(self, name: str) -> None:
        match name:
            case "pose":
                self.session.move_with_goals(np.array(CONFIGURATIONS[self.text("pose")]))
                self.phase, self.circle_start = 0.0, self.goal_pose(self.goal)[:3, 3]
            case "avoids":
                self.session.set_collision_avoidance(mode=self._collision_mode())
            case "walls":
                self._update_walls()
            case "circle":
                self.phase, self.circle_start = 0.0, self._slider_position()
            case "x" | "y" | "z":
                self.circle_start = self._slider_position() - self._circle_offset()
                self.move_goals({self.goal: translation(self._slider_position())})
            case _:
                pass

    def apply_phase(self) -> None:
        self.move_goals({self.goal: translation(self.circle_start + self._circle_offset())})

    def sync_controls(self) -> None:
        for name, coordinate in zip(POSITION_SLIDERS, self.goal_pose(self.goal)[:3, 3].tolist(), strict=True):
            self.set_value_clamped(name, coordinate)
        collision_settings = self.session.edit_state.collision_settings
        self.set_value("avoids", collision_settings.mode == "avoid")
        self.set_value("walls", any(obstacle.name in WALL_NAMES for obstacle in collision_settings.obstacles))

    def make_readouts(self) -> list[str]:
        collision_text = self.session.collision_text
        return [f"Collision: {collision_text}" if collision_text else "No collision"]

    def _collision_mode(self) -> CollisionMode:
        return "avoid" if self.is_on("avoids") else "show"

    def _update_walls(self) -> None:
        """Add both walls at their initial positions or remove them; other obstacles are not changed."""
        present_names = [
            obstacle.name
            for obstacle in self.session.edit_state.collision_settings.obstacles
            if obstacle.name in WALL_NAMES
        ]
        if self.is_on("walls"):
            self.session.add_obstacle(*(obstacle for obstacle in make_walls() if obstacle.name not in present_names))
        else:
            self.session.remove_obstacle(*present_names)

    def _slider_position(self) -> Array:
        """Return the position of the target according to the sliders, (3,), m."""
        return np.array([self.number(name) for name in POSITION_SLIDERS])

    def _circle_offset(self) -> Array:
        """Return the offset of the target on its circle from the start of the circle, (3,), m."""
        return TARGET_CIRCLE_RADIUS * np.array([0.0, math.sin(self.phase), 1 - math.cos(self.phase)])


TABLE_HEIGHT = 0.2
"""Height of the table top, m."""
TCP_LINK, START_POSITION = "panda_hand_tcp", (0.5, 0.0, 0.45)
"""Link of the goal, and initial position of the goal, m."""
DOWNWARD_ORIENTATION = np.diag([1.0, -1.0, -1.0])
"""Orientation of the hand in the world, (3, 3), with its z axis down."""
GOAL_ELLIPSE_HALF_WIDTH = 0.28
"""Half width of the ellipse of the goal, m; the ellipse is half as high as wide, and passes through obstacles."""
MILLIMETRE = 1e-3
"""One millimetre, m."""


ROCK_SHAPE = ConvexMesh(
    [(x, y, z) for x in (-0.07, 0.07) for y in (-0.05, 0.05) for z in (0.0, 0.06)] + [(0.0, 0.01, 0.13)]
)


def table_obstacles(post_y: float) -> list[Obstacle]:
    """Return the table and the obstacles on it.

    Args:
        post_y: y of the post, m.
    """
    return [
        Obstacle(Box((0.7, 1.4, 0.04)), (0.6, 0.0, TABLE_HEIGHT - 0.02), name="table"),
        Obstacle(Cylinder(0.03, 0.5), (0.45, post_y, TABLE_HEIGHT + 0.25), name="post"),
        Obstacle(Capsule(0.03, 0.4), (0.55, -0.35, TABLE_HEIGHT + 0.23), name="rod"),
        Obstacle(Sphere(0.08), (0.75, 0.05, TABLE_HEIGHT + 0.08), name="ball"),
        Obstacle(ROCK_SHAPE, (0.4, -0.1, TABLE_HEIGHT), name="rock"),
    ]


class TableScene(AnimatedScene):
    """Panda at a table with obstacles; the hand slides along obstacles in its path."""

    name = "table"
    title = "Around a table"
    about = (
        "Drag the hand towards the table, the post or the ball: the arm avoids all collisions. Switch avoidance off, "
        "and links and obstacles in collision are red. Click an obstacle and drag its handle, or move the post with "
        "the slider: the arm moves aside."
    )
    motion_control, stopped_value = "circle", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            switch("avoids", "Avoid collisions", True, "Arm"),
            slider(
                "clearance",
                "Clearance, mm",
                10.0,
                0.0,
                100.0,
                1.0,
                "Arm",
                "Minimum distance between links and to obstacles.",
            ),
            slider("post", "Post at y, m", 0.35, -0.6, 0.6, 0.01, "Obstacles"),
            switch("circle", "Move the goal on an ellipse", False, "Goal"),
            slider("speed", "Speed, cycles/s", 0.1, 0.0, 1.0, 0.01, "Goal"),
        ]

    def build(self) -> None:
        arm = gallery.panda()
        arm.q = arm.configurations["home"]
        self.load_mechanism(arm)
        self.ellipse_start = np.array(START_POSITION)
        self.goal = self.add_goal("pose", TCP_LINK, make_pose(DOWNWARD_ORIENTATION, self.ellipse_start), name="hand")
        clearance = MILLIMETRE * self.number("clearance")
        self.session.set_collision_avoidance(
            ["self", *table_obstacles(self.number("post"))], mode=self._collision_mode(), clearance=clearance
        )

    def on_control_changed(self, name: str) -> None:
        match name:
            case "avoids":
                self.session.set_collision_avoidance(mode=self._collision_mode())
            case "clearance":
                self.session.set_collision_avoidance(clearance=MILLIMETRE * self.number("clearance"))
            case "post":
                self._move_post()
            case "circle":
                self.phase, self.ellipse_start = 0.0, self.goal_pose(self.goal)[:3, 3]
            case _:
                pass

    def apply_phase(self) -> None:
        R = self.goal_pose(self.goal)[:3, :3]
        self.move_goals({self.goal: make_pose(R, self.ellipse_start + self._ellipse_offset())})

    def sync_controls(self) -> None:
        collision_settings = self.session.edit_state.collision_settings
        self.set_value("avoids", collision_settings.mode == "avoid")
        self.set_value_clamped("clearance", collision_settings.clearance / MILLIMETRE)
        for obstacle in collision_settings.obstacles:
            if obstacle.name == "post":
                self.set_value_clamped("post", float(obstacle.pose.position[1]))

    def make_readouts(self) -> list[str]:
        collision_text = self.session.collision_text
        return [f"Collision: {collision_text}" if collision_text else "No collision"]

    def _collision_mode(self) -> CollisionMode:
        return "avoid" if self.is_on("avoids") else "show"

    def _move_post(self) -> None:
        """Set y of the post and keep x and z, which users may have changed; add a removed post again."""
        obstacles = {obstacle.name: obstacle for obstacle in self.session.edit_state.collision_settings.obstacles}
        if "post" not in obstacles:
            self.session.add_obstacle(
                *(obstacle for obstacle in table_obstacles(self.number("post")) if obstacle.name == "post")
            )
            return
        x, _, z = obstacles["post"].pose.position.tolist()
        self.session.move_obstacle("post", (x, self.number("post"), z))

    def _ellipse_offset(self) -> Array:
        """Return the offset of the goal on its ellipse from the start of the ellipse, (3,), m."""
        return GOAL_ELLIPSE_HALF_WIDTH * np.array([0.0, math.sin(self.phase), 0.5 * (math.cos(self.phase) - 1)])
