"""Scenes that demonstrate goal kinds: a pose with free dofs, and look-at goals of a head with two eyes."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.gallery.construction import BLUE, DARK, GREY, WHITE, capsule, hub, sphere
from mechanik.model import Builder, Mechanism
from mechanik.objectives import LookAt
from mechanik.spatial import make_pose, rotation, translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.messages.requests import DofName
from mechanik.studio.scenes.scene_base import AnimatedScene
from mechanik.studio.scenes.scene_controls import FAINT_COLOUR, choice, make_curve, slider, switch

DOF_TITLES: dict[DofName, str] = {
    "X": "Along x", "Y": "Along y", "Z": "Along z", "EX": "About x", "EY": "About y", "EZ": "About z",
}  # fmt: skip
"""Titles of the switches by dof of the goal."""
TOOL_LINK = "iiwa_link_ee"


class PartialGoalScene(AnimatedScene):
    """KUKA iiwa with a pose goal whose constrained dofs can be selected."""

    name = "partial_goals"
    title = "Partial pose goals"
    about = (
        "Choose which of the six degrees of freedom of the goal are constrained, along and about its own axes. The "
        "others are free, and the arm moves less. Drag the goal, or let it move by itself."
    )

    def make_controls(self) -> list[ControlInfo]:
        dof_switches = [switch(name, title, True, "Constrained") for name, title in DOF_TITLES.items()]
        return [
            choice("motion", "Motion", ("drag", "translate", "rotate", "both"), "Goal", "What moves the goal."),
            slider("speed", "Speed, cycles/s", 0.25, 0.0, 2.0, 0.05, "Goal"),
            slider("amplitude", "Amplitude", 0.5, 0.0, 1.5, 0.05, "Goal", "Parts of a large motion are out of reach."),
            *dof_switches,
        ]

    def build(self) -> None:
        arm = gallery.iiwa14()
        self.home_pose = arm.pose(TOOL_LINK)
        self.load_mechanism(arm)
        self.goal = self.add_goal("pose", TOOL_LINK, self.home_pose, name="tool")

    def on_control_changed(self, name: str) -> None:
        if name in DOF_TITLES:
            free_dofs: tuple[DofName, ...] = tuple(dof for dof in DOF_TITLES if not self.is_on(dof))
            if len(free_dofs) < len(DOF_TITLES):
                self.change_goal(self.goal, free=free_dofs, enabled=True)
            else:
                self.change_goal(self.goal, free=(), enabled=False)
        elif name == "motion":
            self.move_goals({self.goal: self.home_pose})

    def apply_phase(self) -> None:
        t, amplitude, motion = self.phase, self.number("amplitude"), self.text("motion")
        shift, rotation_vector = np.zeros(3), np.zeros(3)
        if motion != "rotate":
            shift = amplitude * np.array([0.15 * math.sin(t), 0.3 * math.sin(t / 2), 0.15 * (1 - math.cos(t))])
        if motion != "translate":
            rotation_vector = amplitude * np.array(
                [0.8 * math.sin(t), 0.8 * math.sin(0.7 * t), 1.5 * math.sin(0.4 * t)]
            )
        self.move_goals(
            {self.goal: translation(shift) @ self.home_pose @ make_pose(rotation.exp(rotation_vector), np.zeros(3))}
        )

    def make_readouts(self) -> list[str]:
        constrained_titles = [title.lower() for name, title in DOF_TITLES.items() if self.is_on(name)]
        return [
            f"constrained: {', '.join(constrained_titles) or 'nothing'}",
            f"remaining degrees of freedom: {7 - len(constrained_titles)}",
        ]


GAZE_AXIS = (1.0, 0.0, 0.0)
"""Axis along which the head and the eyes look, in their own frames."""
EYES_MIDPOINT = (0.09, 0.0, 0.12)
"""Point between the eyes, in the frame of the head, m."""
LEFT_EYE_GOAL, RIGHT_EYE_OBJECTIVE = "target", "right eye gaze"
"""Names of the objectives of the eyes."""


def make_head() -> Mechanism:
    """Return a head with a neck and two eyes, two rotations each (about z and y); head and eyes look along x."""
    robot = Builder("head")
    robot.revolute("neck_turn", "stand", "neck", at=(0.0, 0.0, 0.25), axis="z", limits=(-1.2, 1.2))
    robot.revolute("neck_nod", "neck", "head", at=(0.0, 0.0, 0.06), axis="y", limits=(-0.6, 0.6))
    for eye, side in (("left", 1.0), ("right", -1.0)):
        robot.revolute(
            f"{eye}_turn", "head", f"{eye}_socket", at=(0.09, 0.045 * side, 0.12), axis="z", limits=(-0.7, 0.7)
        )
        robot.revolute(f"{eye}_nod", f"{eye}_socket", f"{eye}_eye", axis="y", limits=(-0.6, 0.6))
        robot.link(f"{eye}_eye", visuals=[
            sphere((0.0, 0.0, 0.0), 0.032, WHITE), hub((0.027, 0.0, 0.0), (1.0, 0.0, 0.0), 0.016, 0.012, DARK)
        ])  # fmt: skip
    robot.link("stand", visuals=[
        capsule((0.0, 0.0, 0.02), (0.0, 0.0, 0.24), 0.03, GREY), hub((0.0, 0.0, 0.01), (0, 0, 1), 0.12, 0.02, DARK)
    ])  # fmt: skip
    robot.link("neck", visuals=[hub((0.0, 0.0, 0.03), (0, 0, 1), 0.045, 0.06, DARK)])
    robot.link("head", visuals=[sphere((0.0, 0.0, 0.1), 0.1, BLUE)])
    head = robot.build()
    head.configurations["home"] = head.q
    return head


class LookAtScene(AnimatedScene):
    """Head whose eyes look at a target; the head follows with lower priority."""

    name = "look_at"
    title = "Head and eyes"
    about = (
        "Drag the target: both eyes look at it at any distance, and the neck follows. The eyes have priority; the "
        "head follows with a goal of lower priority. Switch this goal off, and the neck moves only to help the eyes."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("motion", "Motion", ("fly", "drag"), "Target", "What moves the target."),
            slider("speed", "Speed, cycles/s", 0.25, 0.0, 2.0, 0.05, "Target"),
            slider(
                "distance",
                "Distance, m",
                0.7,
                0.15,
                2.0,
                0.05,
                "Target",
                "Approximate distance of the moving target from the head.",
            ),
            switch("head", "Rotate the head too", True, "Head"),
        ]

    def build(self) -> None:
        self.target_position = self._path_positions(0.0)
        self.load_mechanism(make_head())
        self.target = self.add_goal("look_at", "left_eye", translation(self.target_position), name=LEFT_EYE_GOAL)
        self.add_objective(LookAt("right_eye", self.target_position, GAZE_AXIS, name=RIGHT_EYE_OBJECTIVE))
        self.on_control_changed("head")
        self._draw_path()

    def on_control_changed(self, name: str) -> None:
        if name == "head":
            self.remove_objective("head gaze")
            if self.is_on("head"):
                self.add_objective(
                    LookAt("head", self.target_position, GAZE_AXIS, at=EYES_MIDPOINT, level=2, name="head gaze")
                )
        elif name in ("motion", "distance"):
            self._draw_path()

    @property
    def is_moving(self) -> bool:
        return True  # also during a drag: the right eye and the head must follow the target of the left eye

    def apply_phase(self) -> None:
        self.move_goals({self.target: translation(self._path_positions(self.phase))})

    def tick(self, seconds: float) -> None:
        if self.text("motion") == "fly":
            super().tick(seconds)
        if self.has_goal(self.target):
            position = self.goal_pose(self.target)[:3, 3]
            if not np.array_equal(position, self.target_position):
                self.target_position = position
                self.set_targets(
                    {RIGHT_EYE_OBJECTIVE: position} | ({"head gaze": position} if self.is_on("head") else {})
                )

    def make_readouts(self) -> list[str]:
        errors = [
            error
            for error in (self.objective_error(LEFT_EYE_GOAL), self.objective_error(RIGHT_EYE_OBJECTIVE))
            if error is not None
        ]
        return [
            "gaze error of the eyes, degrees: " + "  ".join(f"{math.degrees(error.rotation):.2f}" for error in errors)
        ]

    def _draw_path(self) -> None:
        points = self._path_positions(np.linspace(0.0, 2 * math.pi, 97)[:-1])
        is_flying = self.text("motion") == "fly"
        self.session.set_curves(
            [make_curve("target path", points, closed=True, rgba=FAINT_COLOUR)] if is_flying else []
        )

    def _path_positions(self, t: float | Array) -> Array:
        """Return positions of the target in the world, (..., 3), m, at phases t (...), rad."""
        distance = self.number("distance")
        return np.stack([
            distance * (0.8 + 0.2 * np.cos(2 * t)), distance * np.sin(t), 0.4 + 0.3 * distance * np.sin(2 * t)
        ], axis=-1)  # fmt: skip
