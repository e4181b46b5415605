"""Scenes with serial arms: planar arms, an arm from a list, an arm from a DH table, and cyclic coordinate descent."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np

from mechanik import gallery
from mechanik.formats import arm_2d, arm_3d, read_json
from mechanik.formats.arm_tables import read_joint_kinds
from mechanik.gallery.construction import BLUE, DARK, GREY, ORANGE, RED, add_default_shapes, add_shapes, block, hub
from mechanik.gallery.robot_arms import ZALO_BOXES, ZALO_JOINTS
from mechanik.model import Builder, Mechanism, ShapeInstance
from mechanik.objectives import InCone
from mechanik.spatial import make_pose, rotation, translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.scene_base import AnimatedScene
from mechanik.studio.scenes.scene_controls import FAINT_COLOUR, choice, compact_json, make_curve, slider, switch

PLANAR_REACH = 1.6
"""Length of every planar arm, m."""


def planar_arm(joint_count: int) -> tuple[Mechanism, str]:
    """Return a bent planar arm with links of equal length, and the JSON text that describes it."""
    lengths = [round(PLANAR_REACH / joint_count, 6)] * joint_count
    arm = add_default_shapes(arm_2d(lengths), 0.04, 0.02, BLUE, DARK)
    arm.q = [0.4 if k == 0 else 1.6 / joint_count for k in range(joint_count)]
    arm.configurations["home"] = arm.q
    return arm, compact_json({"mechanik": 1, "arm": {"lengths": lengths}})


class PlanarArmScene(AnimatedScene):
    """Planar arm with a variable number of links."""

    name = "arm_2d"
    title = "Arms in the plane"
    about = (
        "A planar arm: links in a row, all joints about parallel axes. With two links, a point has two solutions; "
        "with three links one degree of freedom is redundant, and with more the arm moves like a snake. Edit the list "
        "of lengths in the Model panel."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            slider("joints", "Links", 3.0, 1.0, 40.0, 1.0, "Arm"),
            choice("motion", "Motion", ("drag", "circle", "line"), "Target", "What moves the target."),
            slider(
                "size",
                "Size, m",
                0.4,
                0.0,
                1.0,
                0.02,
                "Target",
                "Radius of the circle, or half the length of the line.",
            ),
            slider("speed", "Speed, cycles/s", 0.25, 0.0, 2.0, 0.05, "Target"),
        ]

    def build(self) -> None:
        self._load_arm()

    def on_control_changed(self, name: str) -> None:
        if name == "joints":
            self._load_arm()
        elif name in ("motion", "size"):
            self._draw_path()

    def apply_phase(self) -> None:
        self.move_goals({self.goal: translation(self._path_positions(self.phase))})

    def make_readouts(self) -> list[str]:
        mechanism, q = self.session.mechanism, self.q
        position = mechanism.pose(list(mechanism.links)[-1], q)[:3, 3]
        angles = "  ".join(f"{math.degrees(angle):.0f}" for angle in q[:8])
        return [
            f"tip at {position[0]:+.3f} {position[1]:+.3f} m",
            f"angles, degrees: {angles}{' ...' if len(q) > 8 else ''}",
        ]

    def _load_arm(self) -> None:
        arm, text = planar_arm(int(self.number("joints")))
        self.load_mechanism(arm, source=("arm_2d", text))
        self.goal = self.add_goal("point", "tool", arm.pose("tool"), name="target")
        self._draw_path()

    def _draw_path(self) -> None:
        points = self._path_positions(np.linspace(0.0, 2 * math.pi, 97)[:-1])
        self.session.set_curves([make_curve("path", points, closed=True)] if self.is_moving else [])

    def _path_positions(self, t: float | Array) -> Array:
        """Return positions of the target in the world, (..., 3), m, at phases t (...), rad."""
        size = self.number("size")
        y = size * np.sin(t) if self.text("motion") == "circle" else np.zeros_like(t)
        return np.stack([0.7 + size * np.cos(t), y, np.zeros_like(t)], axis=-1)


GRIPPY_LIST = ([0.1, 0.1, 0.4, 0.4, 0.1, 0.4, 0.4, 0.1, 0.2, 0.2], "zyyzyyzyyz")
"""Lengths (m) and axes of the gallery arm `grippy10`."""
VARIABLE_ARM_REACH = 2.2
"""Length of the arm with a variable number of joints, m."""
VARIABLE_ARM = "variable"
"""Choice of the arm with a variable number of joints."""
POSITION_SLIDERS = ("x", "y", "z")
"""Names of the sliders for the position of the target."""
INITIAL_TARGET = np.array([1.2, 0.3, 0.6])
"""Initial target of all arms but `zalo5`, m; for `zalo5` it is scaled by `ZALO_SCALE`."""
ZALO_SCALE = 0.35
"""Scale of the target of `zalo5`, which is smaller than the other arms."""
CIRCLE_RADIUS = 0.25
"""Radius of the circle of the target, m; for `zalo5` it is scaled by `ZALO_SCALE`."""


def variable_arm(joint_count: int) -> tuple[list[float], str]:
    """Return lengths (m) and axes of an arm with links of equal length; the axes repeat z, y, x."""
    return [VARIABLE_ARM_REACH / joint_count] * joint_count, ("zyx" * joint_count)[:joint_count]


def arm_with_boxes(lengths: list[float], axes: str) -> Mechanism:
    """Return an arm from lengths (m) and axes, with a box on each link; it is bent, as a straight arm is singular."""
    arm = arm_3d(lengths, axes)
    width = max(0.03, min(0.12, 0.8 * max(lengths)))
    for k, length in enumerate(lengths):
        if length > 0.0:
            add_shapes(arm.link(f"link{k}"), block((0.0, 0.0, length / 2), (width, width, length), (BLUE, GREY)[k % 2]))
    q_bent = [0.0 if axis == "z" else 2.0 / len(axes) for axis in axes]
    arm.q = q_bent
    arm.configurations["home"] = arm.q
    return arm


def blue_if_red(instance: ShapeInstance) -> ShapeInstance:
    """Return the shape in blue if it is red, since red marks collisions."""
    return replace(instance, material=BLUE) if instance.material == RED else instance


class ListArmScene(AnimatedScene):
    """Spatial arm from a list of lengths and axes, with collision shapes."""

    name = "list_arm"
    title = "Arm from a list"
    about = (
        "This arm is made from a list of lengths and axes: edit it in the Model panel. Move the target with the "
        "sliders or drag it; boxes in collision are red. Choose the arm with a variable number of joints and try up "
        "to a hundred."
    )
    shows_collisions = True
    motion_control, stopped_value = "circle", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("arm", "Arm", ("grippy10", "zalo5", VARIABLE_ARM), "Arm"),
            slider("joints", "Joints", 30.0, 2.0, 100.0, 1.0, "Arm", "Selects a variable arm with this many joints."),
            slider("x", "Target x, m", INITIAL_TARGET[0], -2.0, 2.0, 0.01, "Target"),
            slider("y", "Target y, m", INITIAL_TARGET[1], -2.0, 2.0, 0.01, "Target"),
            slider("z", "Target z, m", INITIAL_TARGET[2], 0.0, 2.0, 0.01, "Target"),
            switch("circle", "Move the target on a circle", False, "Target"),
            slider("speed", "Speed, cycles/s", 0.2, 0.0, 2.0, 0.05, "Target"),
        ]

    def build(self) -> None:
        self.circle_start = INITIAL_TARGET
        self._load_arm(INITIAL_TARGET)

    def on_control_changed(self, name: str) -> None:
        if name == "joints" and self.text("arm") != VARIABLE_ARM:
            self.set_value("arm", VARIABLE_ARM)
            name = "arm"
        if name == "arm":
            self.phase, self.circle_start = 0.0, self.scale * INITIAL_TARGET
            self._load_arm(self.circle_start)
        elif name == "joints":
            self._load_arm(self._slider_position())
        elif name in POSITION_SLIDERS:
            self.circle_start = self._slider_position() - self._circle_offset()
            self.move_goals({self.goal: translation(self._slider_position())})
        elif name == "circle":
            self.phase, self.circle_start = 0.0, self._slider_position()

    def apply_phase(self) -> None:
        self.move_goals({self.goal: translation(self.circle_start + self._circle_offset())})

    def sync_controls(self) -> None:
        for name, coordinate in zip(POSITION_SLIDERS, self.goal_pose(self.goal)[:3, 3].tolist(), strict=True):
            self.set_value_clamped(name, coordinate)

    def make_readouts(self) -> list[str]:
        mechanism = self.session.mechanism
        x, y, z = mechanism.pose(list(mechanism.links)[-1], self.q)[:3, 3]
        return [f"{mechanism.nq} joints, tip at {x:+.3f} {y:+.3f} {z:+.3f} m"]

    @property
    def scale(self) -> float:
        """Scale of the target and of its circle for the selected arm."""
        return ZALO_SCALE if self.text("arm") == "zalo5" else 1.0

    def _load_arm(self, target: Array) -> None:
        match self.text("arm"):
            case "grippy10":
                arm, (lengths, axes), tip_link = gallery.grippy10(), GRIPPY_LIST, "tool"
            case "zalo5":
                arm, (lengths, axes), tip_link = gallery.zalo5(), ([], ""), "effector"
            case _:
                lengths, axes = variable_arm(int(self.number("joints")))
                arm, tip_link = arm_with_boxes(lengths, axes), "tool"
        for link in arm.links.values():
            link.collisions = link.visuals = tuple(blue_if_red(instance) for instance in link.visuals)
        text = compact_json({"mechanik": 1, "arm": {"lengths": [round(length, 6) for length in lengths], "axes": axes}})
        self.load_mechanism(arm, source=("arm_3d", text) if lengths else ("", ""))
        self.goal = self.add_goal("point", tip_link, translation(target), name="target")

    def _slider_position(self) -> Array:
        """Return the position of the target according to the sliders, (3,), m."""
        return np.array([self.number(name) for name in POSITION_SLIDERS])

    def _circle_offset(self) -> Array:
        """Return the offset of the target on its circle from the start of the circle, (3,), m."""
        return self.scale * CIRCLE_RADIUS * np.array([0.0, math.sin(self.phase), 1 - math.cos(self.phase)])


SQRT_HALF = math.sqrt(0.5)
"""cos and sin of pi/4, for the quaternion of a rotation by pi/2."""
DH_TABLE = {
    "convention": "modified",
    "columns": "d a alpha theta",
    "degrees": True,
    "theta": "start",
    "rows": [
        [0.5, 0.0, -90, 0],
        [0.0, 0.2, 90, 125],
        [0.0, 1.5, 0, -35],
        [1.5, 0.2, 90, 0],
        [0.0, 0.0, -90, 90],
        [0.2, 0.0, -90, 0],
    ],
    "joints": [f"j{i}" for i in range(6)],
    "limits": [[-360, 360]] * 6,
    "base": {"position": [0, 0, 0], "wxyz": [SQRT_HALF, SQRT_HALF, 0, 0]},
}
"""DH table of the gallery arm `dh6`, rotated so that z is up instead of y; lengths in m, angles in degrees."""
DH_METHODS = {"damped least squares": "lm", "Jacobian transpose": "jacobian_transpose"}
FIXED_STEP = 0.05
"""Fixed step of the Jacobian transpose method, instead of an optimal step in each iteration."""


def dh_table_json() -> str:
    """Return the DH table as JSON text, with one table row per line."""
    return compact_json({"mechanik": 1, "dh": DH_TABLE})


def dh_row_texts(text: str, values: list[float]) -> list[str]:
    """Return the rows of a DH table with the present joint values; empty if the text cannot be parsed.

    Args:
        text: the table as JSON.
        values: joint values, rad or m.
    """
    try:
        table = json.loads(text)["dh"]
        columns = table.get("columns", "d a alpha theta").split()
        # theta may be the initial joint value instead of an offset, see `from_dh`
        has_degrees, is_theta_start = table.get("degrees", True), table.get("theta") == "start"
        revolute_flags = read_joint_kinds(table.get("kinds", "revolute"), len(table["rows"]))
        lines: list[str] = []
        for k, (row, is_revolute, value) in enumerate(zip(table["rows"], revolute_flags, values, strict=False)):
            cells = dict(zip(columns, (float(cell) for cell in row), strict=True))
            joint_value = math.degrees(value) if is_revolute and has_degrees else value
            moving_column = "theta" if is_revolute else "d"
            cells[moving_column] = joint_value if is_theta_start else cells[moving_column] + joint_value
            cell_texts = "  ".join(f"{name} {cells[name]:8.3f}" for name in ("d", "a", "alpha", "theta"))
            lines.append(f"{k + 1}  {cell_texts}")
        return lines
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


class DhArmScene(AnimatedScene):
    """Arm from a DH table; the display shows the rows of the table."""

    name = "dh_arm"
    title = "Arm from a DH table"
    about = (
        "This arm is made from six DH rows: d, a, alpha and theta. Drag the goal and watch the joint angles, or "
        "change a row in the Model panel. Compare the Jacobian transpose, which converges slowly, with damped least "
        "squares."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("method", "Method", tuple(DH_METHODS), "Method"),
            switch(
                "fixed_step",
                "Fixed step",
                False,
                "Method",
                "Use a fixed step of 0.05 in the Jacobian transpose method.",
            ),
            choice("motion", "Motion", ("drag", "circle", "rotate"), "Goal", "What moves the goal."),
            slider("speed", "Speed, cycles/s", 0.2, 0.0, 2.0, 0.05, "Goal"),
        ]

    def build(self) -> None:
        text = dh_table_json()
        arm = add_default_shapes(read_json(text), 0.12, 0.06, BLUE, DARK)
        arm.configurations["home"] = arm.q
        self.home_pose = arm.pose("tool")
        self.load_mechanism(arm, source=("dh", text))
        self.goal = self.add_goal("pose", "tool", self.home_pose, name="tool")
        self._set_solver()

    def on_control_changed(self, name: str) -> None:
        if name in ("method", "fixed_step"):
            self._set_solver()
        elif name == "motion":
            self.move_goals({self.goal: self.home_pose})

    def apply_phase(self) -> None:
        c, s = math.cos(self.phase), math.sin(self.phase)
        if self.text("motion") == "circle":
            self.move_goals({self.goal: translation((0.3 * s, 0.3 * (c - 1), 0.4 * s)) @ self.home_pose})
        else:
            R = rotation.exp(np.array([0.5 * s, 0.0, 0.5 * (1 - c)]))
            self.move_goals({self.goal: self.home_pose @ make_pose(R, np.zeros(3))})

    def make_readouts(self) -> list[str]:
        values = [float(value) for value in np.concatenate([
            np.atleast_1d(value) for value in self.session.mechanism.values(self.q).values()
        ])]  # fmt: skip
        kind, text = self.session.model_source
        return dh_row_texts(text, values) if kind == "dh" else []

    def _set_solver(self) -> None:
        method = DH_METHODS[self.text("method")]
        if method == "jacobian_transpose" and self.is_on("fixed_step"):
            self.session.set_solver(method, step=FIXED_STEP)
        else:
            self.session.set_solver(method)


GOAL_NAME = "goal"
CCD_HOME = (0.5, 0.4, 0.8, 0.5, 0.0)
"""Initial joint values, rad."""
ORBIT_CENTRE = np.array([0.35, 0.0, 0.4])
"""Centre of the closed curve on which the goal moves, m."""
SPHERICAL_CONE_ANGLE = math.radians(60.0)
"""Largest tilt of a spherical joint with limits (half angle of its cone), rad."""
EFFECTOR_POSE = make_pose(rotation.about_y(math.pi / 2), (0.083, 0.01, 0.0))
"""Pose of the effector in the frame of the last link; the z axis of the effector points forward from the tip."""


def make_ccd_arm(is_revolute: bool, has_limits: bool) -> Mechanism:
    """Return an arm like the gallery arm `zalo5`, at `CCD_HOME`, with revolute joints or with spherical joints.

    Args:
        is_revolute: whether the joints are revolute; else they are spherical.
        has_limits: whether revolute joints have limits; spherical joints never have limits here.
    """
    robot = Builder("ccd_arm")
    robot.fixed("base_joint", "world", "base", at=make_pose(rotation.about_x(math.pi / 2), (0.0, 0.0, 0.0)))
    parent = "base"
    for (joint, link, at, axis, degrees), value in zip(ZALO_JOINTS, CCD_HOME, strict=True):
        if is_revolute:
            limit = math.radians(degrees)
            robot.revolute(
                joint, parent, link, at=at, axis=axis, limits=(-limit, limit) if has_limits else None, value=value
            )
        else:
            rotation_vector = (value, 0.0, 0.0) if axis == "x" else (0.0, value, 0.0)
            robot.spherical(joint, parent, link, at=at, value=rotation_vector)
        parent = link
    robot.fixed("effector_fix", "fifth", "effector", at=EFFECTOR_POSE)
    for k, (link, at, size) in enumerate(ZALO_BOXES):
        robot.link(link, visuals=[block(at, size, (GREY, ORANGE)[k % 2])])
    robot.link("effector", visuals=[hub((0.0, 0.0, -0.01), (0.0, 0.0, 1.0), 0.008, 0.02, DARK)])
    arm = robot.build()
    arm.configurations["home"] = arm.q
    return arm


class CcdArmScene(AnimatedScene):
    """Five-joint arm solved by cyclic coordinate descent."""

    name = "ccd_arm"
    title = "Arm by cyclic coordinate descent"
    about = (
        "Cyclic coordinate descent: one joint after the other, from tip to base, rotates the tip towards the goal. "
        "Spherical joints rotate in all directions, revolute joints about one axis and within limits. With direction "
        "on, the tip also points along the blue axis of the goal. Let the goal move by itself, or drag it."
    )
    motion_control, stopped_value = "orbit", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            switch("spherical", "Spherical", False, "Joints", "All joints are spherical."),
            switch("revolute", "Revolute", True, "Joints", "All joints are revolute."),
            switch("limits", "Limits", True, "Joints", "Limits for revolute joints, a cone for spherical joints."),
            switch("orbit", "Orbit", True, "Goal", "The goal moves on a closed curve."),
            switch("direction", "Direction", False, "Goal", "The tip also points along the axis of the goal."),
            slider("speed", "Speed, orbits/s", 0.2, 0.0, 2.0, 0.05, "Goal"),
            slider(
                "sweeps",
                "Sweeps",
                20.0,
                1.0,
                200.0,
                1.0,
                "Method",
                "Maximum number of sweeps over all joints in one solve.",
            ),
        ]

    def build(self) -> None:
        self._load_arm(self._orbit_pose(self.phase))
        self._draw_path()

    def on_control_changed(self, name: str) -> None:
        match name:
            case "spherical" | "revolute":
                opposite_name = "revolute" if name == "spherical" else "spherical"
                self.set_value(opposite_name, not self.is_on(name))
                self._load_arm(self.goal_pose(self.goal))
            case "limits" | "direction":
                self._load_arm(self.goal_pose(self.goal))
            case "sweeps":
                self._set_solver()
            case "orbit":
                self._draw_path()
            case _:
                pass

    def apply_phase(self) -> None:
        self.move_goals({self.goal: self._orbit_pose(self.phase)})

    def make_readouts(self) -> list[str]:
        error = self.objective_error(GOAL_NAME)
        if error is None:
            return []
        lines = [f"distance from tip to goal: {1000 * error.position:.2f} mm"]
        if self.is_on("direction"):
            lines.append(f"direction error: {math.degrees(error.rotation):.2f} degrees")
        return lines

    def _load_arm(self, goal: Array) -> None:
        is_revolute, has_limits = self.is_on("revolute"), self.is_on("limits")
        self.load_mechanism(make_ccd_arm(is_revolute, has_limits))
        # the shapes of these links overlap in the original model
        self.session.set_collision_avoidance(allow=[("third", "fifth")])
        self.goal = self.add_goal("hinge" if self.is_on("direction") else "point", "effector", goal, name=GOAL_NAME)
        if has_limits and not is_revolute:
            links = ["base", *(link for _, link, *_ in ZALO_JOINTS)]
            link_axis = (0.0, 1.0, 0.0)
            cones = [
                InCone(child, link_axis, link_axis, SPHERICAL_CONE_ANGLE, relative_to=parent, name=f"{child} cone")
                for parent, child in pairwise(links)
            ]
            self.add_objective(*cones)
        self._set_solver()

    def _set_solver(self) -> None:
        # the two joints next to the goal align the direction, and the others reach the position
        options = {"direction_joints": 2} if self.is_on("direction") and self.is_on("revolute") else {}
        self.session.set_solver("ccd", max_iterations=int(self.number("sweeps")), **options)

    def _draw_path(self) -> None:
        points = np.array([self._orbit_pose(t)[:3, 3] for t in np.linspace(0.0, 2 * math.pi, 97)[:-1].tolist()])
        self.session.set_curves([make_curve("orbit", points, closed=True, rgba=FAINT_COLOUR)] if self.is_moving else [])

    def _orbit_pose(self, t: float) -> Array:
        """Return the goal pose (4, 4) at phase t (rad), on a closed curve; z points away from the base and down."""
        position = ORBIT_CENTRE + np.array([0.12 * math.cos(t), 0.3 * math.sin(t), 0.15 * math.sin(2 * t)])
        z_axis = np.array([position[0], position[1], -0.3])
        return make_pose(rotation.between((0.0, 0.0, 1.0), z_axis), position)
