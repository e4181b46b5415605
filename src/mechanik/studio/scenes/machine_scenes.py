"""Scenes with machines: a rover on terrain, an excavator, a gripper and a scissor lift."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.gallery.mobile_robots import WHEELS
from mechanik.model import Mechanism
from mechanik.objectives import JointValues, OnTerrain, Terrain
from mechanik.spatial import make_pose, rotation, translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.scene_base import AnimatedScene, OscillatingScene
from mechanik.studio.scenes.scene_controls import FAINT_COLOUR, button, choice, make_curve, slider, switch

TERRAIN_HALF_SIDE, TERRAIN_CELL = 6.0, 0.25
"""Half the side of the terrain, and the side of a cell, m."""
WHEEL_RADIUS = 0.25
"""Wheel radius, m."""
BODY_HEIGHT, DROP_HEIGHT = 0.6, 1.2
"""Height of the body above the surface on which the wheel axles move, m: at the start, and before a drop."""
DRIVE_RADIUS = 3.2
"""Radius of the circle that the rover drives, and half the length of the figure eight, m."""
MIN_ITERATIONS = 3
"""Minimum of the slider for iterations; with this number the rover settles on every terrain that can be chosen.

With fewer iterations, the loop of the differential may be violated after the last step. The result is then rejected,
and the rover remains above the ground.
"""
AXLES = tuple(f"{wheel}_axle" for wheel in WHEELS)


def make_terrain(height: float, roughness: float, seed: int) -> Terrain:
    """Return a terrain of random sine waves; more roughness adds short waves.

    Args:
        height: difference between the highest and the lowest point, m.
        roughness: share of short waves, 0 to 1.
        seed: seed of the random generator.
    """
    rng = np.random.default_rng(seed)
    coordinates = np.arange(-TERRAIN_HALF_SIDE, TERRAIN_HALF_SIDE + TERRAIN_CELL / 2, TERRAIN_CELL)
    x, y = np.meshgrid(coordinates, coordinates)
    field = np.zeros_like(x)
    for wave_number in (0.5, 0.8, 1.2, 1.8, 2.7):  # rad/m: wavelengths from 12.6 m to 2.3 m
        share = 1.0 if wave_number < 1.0 else roughness
        for _ in range(3):
            heading, phase = rng.uniform(0.0, 2 * math.pi, 2)
            field += share / wave_number * np.sin(wave_number * (x * math.cos(heading) + y * math.sin(heading)) + phase)
    field -= field.min()
    return Terrain(height * field / field.max(), TERRAIN_CELL, (-TERRAIN_HALF_SIDE, -TERRAIN_HALF_SIDE))


class RoverScene(AnimatedScene):
    """Rover that settles on rough terrain and drives over it."""

    name = "rover"
    title = "Rover on rough ground"
    about = (
        "Drag the rover over rough ground: all six wheels stay in contact. Position and heading are given; height, "
        "tilt, rockers and bogies are solved. Change the terrain, drop the rover from above, or let it drive around."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("motion", "Motion", ("drag", "circle", "eight"), "Drive", "What moves the rover."),
            slider("speed", "Speed, m/s", 0.8, 0.0, 3.0, 0.05, "Drive", "On the figure eight the speed varies."),
            slider(
                "height",
                "Terrain height, m",
                0.6,
                0.0,
                1.5,
                0.05,
                "Ground",
                "Height from the lowest point to the highest.",
            ),
            slider("roughness", "Roughness", 0.4, 0.0, 1.0, 0.05, "Ground", "Share of short waves in the terrain."),
            slider("seed", "Terrain seed", 1.0, 0.0, 99.0, 1.0, "Ground", "Seed of the random terrain."),
            slider(
                "iterations",
                "Settle iterations",
                30.0,
                MIN_ITERATIONS,
                100.0,
                1.0,
                "Settle",
                "Maximum number of iterations in one solve.",
            ),
            button("settle", "Drop the rover", "Settle", "Lift the rover, level it, and let it settle on the ground."),
        ]

    def build(self) -> None:
        rover = gallery.rover()
        terrain = self._make_terrain()
        rover.q = self._level_configuration(rover, self._drive_pose(), height=BODY_HEIGHT)
        self.load_mechanism(rover)
        self._set_terrain(terrain)
        self.body_goal = self.add_goal(
            "pose", "body", self._drive_pose(), name="position and heading", free=("Z", "EX", "EY"), pinned=True
        )
        self.add_objective(JointValues(dict.fromkeys(AXLES, 0.0), angle_mode="exact", level=3, name="rolling wheels"))
        self.on_control_changed("iterations")

    def on_control_changed(self, name: str) -> None:
        match name:
            case "height" | "roughness" | "seed":
                self._set_terrain(self._make_terrain())
            case "iterations":
                self.session.set_solver("lm", max_iterations=int(self.number("iterations")))
            case "settle":
                self._lift_rover()
            case "motion" if self.is_moving:
                self._lift_rover()
            case _:
                pass

    @property
    def phase_rate(self) -> float:
        return self.number("speed") / DRIVE_RADIUS

    def apply_phase(self) -> None:
        self.move_goals({self.body_goal: self._drive_pose()})
        self.set_targets({"rolling wheels": dict.fromkeys(AXLES, DRIVE_RADIUS * self.phase / WHEEL_RADIUS)})

    def make_readouts(self) -> list[str]:
        q, mechanism = self.q, self.session.mechanism
        centres = mechanism.poses(q, WHEELS)[:, :3, 3]
        distances = np.abs(centres[:, 2] - self.axle_terrain.height(centres[:, 0], centres[:, 1]))
        tilt = math.degrees(math.acos(min(1.0, float(self.link_pose("body")[2, 2]))))
        return [f"wheels on the ground: {int((distances < 1e-4).sum())} of 6", f"tilt of the body: {tilt:.1f} degrees"]

    def _make_terrain(self) -> Terrain:
        """Return the terrain for the controls; set `axle_terrain`, the surface on which the wheel axles move."""
        terrain = make_terrain(self.number("height"), self.number("roughness"), int(self.number("seed")))
        self.axle_terrain = terrain.offset_by(WHEEL_RADIUS, subdivisions=2)
        return terrain

    def _set_terrain(self, terrain: Terrain) -> None:
        self.session.set_terrain(terrain)
        self.add_objective(*(OnTerrain(wheel, self.axle_terrain, name=f"{wheel} on the ground") for wheel in WHEELS))

    def _lift_rover(self) -> None:
        """Lift the rover above the terrain at its position, and level it."""
        X_world_body = self._drive_pose() if self.is_moving else self.goal_pose(self.body_goal)
        q = self._level_configuration(self.session.mechanism, X_world_body, height=DROP_HEIGHT)
        self.session.set_configuration(q)

    def _level_configuration(self, rover: Mechanism, X_world_body: Array, height: float) -> Array:
        """Return q (nq,) of a level rover at the position and heading of a pose.

        Args:
            rover: the rover.
            X_world_body: (4, 4); its height and tilt are unused.
            height: height of the body above `axle_terrain`, m.
        """
        x, y = X_world_body[:2, 3]
        heading = math.atan2(X_world_body[1, 0], X_world_body[0, 0])
        z = float(self.axle_terrain.height(x, y)) + height
        return rover.configuration({"base": (x, y, z, 0.0, 0.0, heading)}, rover.configurations["home"])

    def _drive_pose(self) -> Array:
        """Return a pose (4, 4) on the circle or the figure eight, with x along the path; height and tilt are unused."""
        t = self.phase
        if self.text("motion") == "eight":
            position = DRIVE_RADIUS * np.array([math.sin(t), math.sin(t) * math.cos(t)])
            heading = math.atan2(math.cos(2 * t), math.cos(t))
        else:
            position = DRIVE_RADIUS * np.array([math.cos(t), math.sin(t)])
            heading = t + math.pi / 2
        return make_pose(rotation.about_z(heading), (position[0], position[1], 1.0))


class ExcavatorScene(AnimatedScene):
    """Excavator that digs by itself; its bucket can be dragged."""

    name = "excavator"
    title = "Excavator"
    about = (
        "Drag the teeth of the bucket: three cylinders and the swing of the house follow. At the limit of a cylinder, "
        "the bucket comes as near as possible. Or let it dig."
    )
    motion_control, stopped_value = "digs", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            switch("digs", "Dig", True, "Work"),
            slider("speed", "Speed, cycles/s", 0.12, 0.0, 0.6, 0.02, "Work"),
            slider("depth", "Depth, m", 1.0, 0.0, 2.5, 0.1, "Work", "Depth below the ground."),
        ]

    def build(self) -> None:
        machine = gallery.excavator()
        self.curl_angle = float(machine.joint("bucket_joint").values[0])
        self.load_mechanism(machine)
        self.teeth_goal = self.add_goal("point", "teeth", machine.pose("teeth"), name="teeth")
        self.add_objective(JointValues({"bucket_joint": self.curl_angle}, level=2, name="bucket curl"))
        self._draw_path()

    def on_control_changed(self, name: str) -> None:
        if name != "speed":
            self._draw_path()

    def apply_phase(self) -> None:
        self.move_goals({self.teeth_goal: translation(self._path_positions(self.phase))})
        self.set_targets({"bucket curl": {"bucket_joint": self.curl_angle - 0.5 * math.sin(self.phase)}})

    def make_readouts(self) -> list[str]:
        names = ("boom", "stick", "bucket")
        lengths = (self.joint_value(f"{name}_cylinder_slide") for name in names)
        return [
            "cylinders, m: " + "  ".join(f"{name} {length:.2f}" for name, length in zip(names, lengths, strict=True))
        ]

    def _draw_path(self) -> None:
        points = self._path_positions(np.linspace(0.0, 2 * math.pi, 121)[:-1])
        self.session.set_curves([make_curve("dig", points, closed=True)] if self.is_moving else [])

    def _path_positions(self, t: float | Array) -> Array:
        """Return positions of the teeth in the world, (..., 3), m, at phases t (...), rad, of a digging cycle.

        The cycle is: down and in, up, sideways to empty the bucket, back.
        """
        x = 6.0 + 1.2 * np.cos(t)
        z = 0.8 - (0.8 + self.number("depth")) * np.clip(np.sin(t), 0.0, None) - 0.9 * np.clip(np.sin(t), None, 0.0)
        swing_angle = 0.9 * np.clip(-np.sin(t), 0.0, None)
        return np.stack([x * np.cos(swing_angle), x * np.sin(swing_angle), z], axis=-1)


SPRING_TARGETS = {"left_coupler_joint": 0.0, "right_coupler_joint": 0.0}
"""Rest angles of the finger springs, rad."""
CLOSED_ANGLE = 0.8
"""Angle of the driver in the closed gripper, rad."""


class GripperScene(OscillatingScene):
    """Gripper with two fingers on one motor."""

    name = "gripper"
    title = "Gripper"
    about = (
        "One motor closes both fingers; each finger is a loop of five bars, and a spring keeps its pad from "
        "rotating. Move the slider, let it open and close by itself, or drag a pad against its spring."
    )
    slider_name, midpoint, amplitude = "closing", 0.5, 0.5

    def make_controls(self) -> list[ControlInfo]:
        return [
            slider("closing", "Closing", 0.5, 0.0, 1.0, 0.01, "Fingers", "0 open, 1 closed."),
            switch("moves", "Open and close", True, "Fingers"),
            slider("speed", "Speed, cycles/s", 0.3, 0.0, 2.0, 0.05, "Fingers"),
        ]

    def build(self) -> None:
        self.set_phase_from_slider()
        self.load_mechanism(gallery.gripper())
        self.add_objective(
            JointValues({"left_driver_joint": self._driver_angle()}, name="motor drive"),
            JointValues(SPRING_TARGETS, level=2, name="finger springs"),
        )

    def apply_slider(self) -> None:
        self.set_targets({"motor drive": {"left_driver_joint": self._driver_angle()}})

    def make_readouts(self) -> list[str]:
        p_left, p_right = (self.link_pose(f"{side}_pad")[:3, 3] for side in ("left", "right"))
        return [f"distance between the pads: {1000 * float(np.linalg.norm(p_left - p_right)):.1f} mm"]

    def _driver_angle(self) -> float:
        return CLOSED_ANGLE * self.number("closing")


BAR_LENGTH, STAGE_COUNT = 1.0, 3
"""Bar length (m) and number of stages of the gallery lift."""
MIN_HEIGHT, MAX_HEIGHT = 0.4, 2.8
"""Lowest and highest position of the platform that can be set, m."""


class ScissorLiftScene(OscillatingScene):
    """Scissor lift whose platform moves straight up."""

    name = "scissor_lift"
    title = "Scissor lift"
    about = (
        "Four loops and one degree of freedom: the sliding foot moves inwards, and the platform moves straight up. "
        "Set the height, let it move up and down, or drag any bar."
    )
    slider_name, midpoint, amplitude = "height", 1.6, 1.1

    def make_controls(self) -> list[ControlInfo]:
        return [
            slider("height", "Height, m", 1.4, MIN_HEIGHT, MAX_HEIGHT, 0.02, "Platform"),
            switch("moves", "Move up and down", True, "Platform"),
            slider("speed", "Speed, cycles/s", 0.15, 0.0, 1.0, 0.05, "Platform"),
        ]

    def build(self) -> None:
        self.set_phase_from_slider()
        self.load_mechanism(gallery.scissor_lift())
        self.add_objective(JointValues({"slider_joint": self._foot_position()}, name="slider drive"))
        x, y, _ = self.link_pose("platform")[:3, 3]
        self.session.set_curves(
            [make_curve("platform path", np.array([[x, y, MIN_HEIGHT], [x, y, MAX_HEIGHT]]), rgba=FAINT_COLOUR)]
        )

    def apply_slider(self) -> None:
        self.set_targets({"slider drive": {"slider_joint": self._foot_position()}})

    def make_readouts(self) -> list[str]:
        return [f"height of the platform: {float(self.link_pose('platform')[2, 3]):.3f} m"]

    def _foot_position(self) -> float:
        """Return the position of the sliding foot for the height of the platform, m."""
        return math.sqrt(BAR_LENGTH**2 - (self.number("height") / STAGE_COUNT) ** 2)
