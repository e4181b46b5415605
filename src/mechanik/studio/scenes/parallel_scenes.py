"""Scenes with parallel mechanisms: a hexapod with a tilting base, a delta robot, and two arms that hold a box."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.model import Joint, Link, Mechanism
from mechanik.spatial import make_pose, rotation, translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.scene_base import AnimatedScene
from mechanik.studio.scenes.scene_controls import choice, make_curve, slider, switch

TRANSLATION_AMPLITUDE, TILT_AMPLITUDE, ROTATION_AMPLITUDE = 0.012, math.radians(7.0), math.radians(14.0)
"""Amplitudes at 1 on the slider, m and rad; all poses can be reached, also with a small tilt of the base."""
PLATFORM_HOME = make_pose(np.eye(3), (0.0, 0.0, 0.09))
"""Home pose of the platform in the frame of the base; also in the world if the base is level."""


def hexapod_on_table() -> Mechanism:
    """Return the hexapod of the gallery on a table; its base tilts about x and y."""
    base = gallery.hexapod().link("base")
    table, tilt = Link("table"), Joint("tilt", dof=("EX", "EY"))
    tilt.set_limits((-0.6, -0.6), (0.6, 0.6))
    tilt.add_child(base)
    table.add_child(tilt)
    mechanism = Mechanism(table, name="hexapod")
    mechanism.configurations["home"] = mechanism.q
    return mechanism


class HexapodScene(AnimatedScene):
    """Hexapod on a table, with a base that tilts."""

    name = "hexapod"
    title = "Hexapod"
    about = (
        "Drag the platform: six struts adjust their lengths, and all loops stay closed. Let it gyrate, rotate or "
        "circle by itself, and tilt the base. Beyond its limits, it moves as far as the struts allow."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("motion", "Motion", ("drag", "gyrate", "rotate", "circle"), "Platform", "What moves the platform."),
            slider("speed", "Speed, cycles/s", 0.4, 0.0, 2.0, 0.05, "Platform"),
            slider("amplitude", "Amplitude", 0.8, 0.0, 2.0, 0.05, "Platform", "Large motions exceed the limits."),
            slider("tilt_x", "Base tilt about x, °", 0.0, -20.0, 20.0, 0.5, "Base"),
            slider("tilt_y", "Base tilt about y, °", 0.0, -20.0, 20.0, 0.5, "Base"),
            switch(
                "tilts_with_base",
                "Platform tilts with the base",
                False,
                "Base",
                "Off: the platform remains level if possible.",
            ),
        ]

    def build(self) -> None:
        self.load_mechanism(hexapod_on_table())
        self.base_goal = self.add_goal("orientation", "base", np.eye(4), name="base", pinned=True)
        self.platform_goal = self.add_goal("pose", "platform", PLATFORM_HOME, name="platform")

    def on_control_changed(self, name: str) -> None:
        if name.startswith("tilt"):
            self.move_goals({self.base_goal: self._base_pose()})
        if name in ("tilt_x", "tilt_y", "tilts_with_base") or (name == "motion" and not self.is_moving):
            self.apply_phase()

    def apply_phase(self) -> None:
        self.move_goals({self.platform_goal: self._platform_pose()})

    def make_readouts(self) -> list[str]:
        lengths = [self.joint_value(f"strut{k}_slide") for k in range(1, 7)]
        return ["struts, mm: " + "  ".join(f"{1000 * length:.1f}" for length in lengths)]

    def _base_pose(self) -> Array:
        """Return the pose of the tilted base in the world, (4, 4)."""
        tilt_x, tilt_y = (math.radians(self.number(name)) for name in ("tilt_x", "tilt_y"))
        return make_pose(rotation.about_y(tilt_y) @ rotation.about_x(tilt_x), np.zeros(3))

    def _platform_pose(self) -> Array:
        """Return the target pose of the platform in the world at the present phase, (4, 4)."""
        amplitude, c, s = self.number("amplitude"), math.cos(self.phase), math.sin(self.phase)
        match self.text("motion"):
            case "gyrate":
                motion_pose = make_pose(rotation.exp(amplitude * TILT_AMPLITUDE * np.array([c, s, 0.0])), np.zeros(3))
            case "rotate":
                motion_pose = make_pose(rotation.about_z(amplitude * ROTATION_AMPLITUDE * s), np.zeros(3))
            case "circle":
                motion_pose = make_pose(
                    np.eye(3), amplitude * TRANSLATION_AMPLITUDE * np.array([c, s, 0.3 * math.sin(2 * self.phase)])
                )
            case _:
                motion_pose = np.eye(4)
        return (self._base_pose() if self.is_on("tilts_with_base") else np.eye(4)) @ PLATFORM_HOME @ motion_pose


PICK_HEIGHT = 0.08
"""Height of the middle of the pick-and-place path above its ends, m."""


class DeltaScene(AnimatedScene):
    """Delta robot whose platform follows a path or is dragged."""

    name = "delta"
    title = "Delta robot"
    about = (
        "Three arms move a platform with parallelograms: the platform translates and never rotates. Drag it, or let "
        "it follow a circle or pick and place. Six loops stay closed at all times."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("motion", "Motion", ("circle", "pick and place", "drag"), "Path", "What moves the platform."),
            slider(
                "size",
                "Size, m",
                0.15,
                0.0,
                0.4,
                0.01,
                "Path",
                "Half the width of the path. Where the path is out of reach, the platform comes as near as possible.",
            ),
            slider("height", "Height, m", 0.0, -0.12, 0.12, 0.01, "Path", "Height above the home position."),
            slider("speed", "Speed, cycles/s", 0.5, 0.0, 3.0, 0.05, "Path"),
        ]

    def build(self) -> None:
        robot = gallery.delta_robot()
        self.home_position = robot.pose("platform")[:3, 3]
        self.load_mechanism(robot)
        self.goal = self.add_goal("point", "platform", translation(self._path_positions(0.0)), name="platform")
        self._draw_path()

    def on_control_changed(self, name: str) -> None:
        if name != "speed":
            self.apply_phase()
            self._draw_path()

    def apply_phase(self) -> None:
        self.move_goals({self.goal: translation(self._path_positions(self.phase))})

    def make_readouts(self) -> list[str]:
        angles = (math.degrees(self.joint_value(f"arm{k}_joint")) for k in (1, 2, 3))
        return ["arms, degrees: " + "  ".join(f"{angle:.1f}" for angle in angles)]

    def _draw_path(self) -> None:
        points = self._path_positions(np.linspace(0.0, 2 * math.pi, 121)[:-1])
        self.session.set_curves([make_curve("path", points, closed=True)] if self.is_moving else [])

    def _path_positions(self, t: float | Array) -> Array:
        """Return positions of the platform in the world, (..., 3), m, at phases t (...), rad."""
        size, c, s = self.number("size"), np.cos(t), np.sin(t)
        match self.text("motion"):
            case "circle":
                x, y, z = size * c, size * s, np.zeros_like(c)
            case "pick and place":  # forward on an arc, and back on the same arc
                x, y, z = size * c, np.zeros_like(c), PICK_HEIGHT * s**2
            case _:
                x, y, z = np.zeros_like(c), np.zeros_like(c), np.zeros_like(c)
        return self.home_position + np.stack([x, y, z + self.number("height")], axis=-1)


class TwoArmScene(AnimatedScene):
    """Two arms that hold a box, which closes a loop."""

    name = "two_arms"
    title = "Two arms, one box"
    about = (
        "Both arms and the box that they hold form one loop. Drag the box, and both arms follow. Pin the box and drag "
        "a forearm: it moves while the box stays in place."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("motion", "Motion", ("drag", "circle", "tilt", "both"), "Box", "What moves the box."),
            slider("amplitude", "Amplitude", 0.6, 0.0, 2.0, 0.05, "Box", "Parts of a large motion are out of reach."),
            slider("speed", "Speed, cycles/s", 0.3, 0.0, 2.0, 0.05, "Box"),
            choice("joints", "Joints per arm", ("7", "6"), "Arms", "With 6 joints per arm there is no redundancy."),
            slider("box", "Length of the box, m", 0.3, 0.1, 0.6, 0.02, "Arms"),
        ]

    def build(self) -> None:
        self._load_arms()

    def on_control_changed(self, name: str) -> None:
        if name in ("joints", "box"):
            self._load_arms()
        elif name == "motion":
            self.move_goals({self.goal: self.home_pose})

    def apply_phase(self) -> None:
        self.move_goals({self.goal: self._box_pose()})

    def make_readouts(self) -> list[str]:
        hand_positions = [self.link_pose(link)[:3, 3] for link in ("left_hand", "right_hand")]
        return [
            f"distance between the hands: {1000 * float(np.linalg.norm(hand_positions[0] - hand_positions[1])):.6f} mm"
        ]

    def _load_arms(self) -> None:
        arms = gallery.two_arms(7 if self.text("joints") == "7" else 6, self.number("box"))
        self.home_pose = arms.pose("box")
        self.load_mechanism(arms)
        self.goal = self.add_goal("pose", "box", self.home_pose, name="box")

    def _box_pose(self) -> Array:
        """Return the target pose of the box in the world at the present phase, (4, 4)."""
        amplitude, c, s = self.number("amplitude"), math.cos(self.phase), math.sin(self.phase)
        motion = self.text("motion")
        shift = np.zeros(3) if motion == "tilt" else amplitude * np.array([0.0, 0.2 * s, 0.12 * (1 - c)])
        rotation_vector = (
            np.zeros(3)
            if motion == "circle"
            else amplitude * np.array([0.35 * s, 0.25 * math.sin(2 * self.phase), 0.0])
        )
        return translation(shift) @ self.home_pose @ make_pose(rotation.exp(rotation_vector), np.zeros(3))
