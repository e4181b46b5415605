"""Base classes of scenes: `StudioScene`, and `AnimatedScene` and `OscillatingScene` with a periodic motion."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from msgspec import structs

from mechanik.errors import InvalidArgument, UnknownName
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.messages.requests import Value
from mechanik.studio.scenes.scene_controls import check_control_value

if TYPE_CHECKING:
    from mechanik.model import Mechanism
    from mechanik.motion.live import LiveState
    from mechanik.objectives import Objective
    from mechanik.objectives.objective import ErrorNorms
    from mechanik.spatial.array import Array
    from mechanik.studio.messages.requests import DofName, GoalKind
    from mechanik.studio.session.loaded_model import ModelSource
    from mechanik.studio.session.session import Session


class StudioScene:
    """A demonstration that runs in a session.

    A subclass sets the class attributes, defines `build`, and overrides further methods as needed.

    Attributes:
        name: identifier, the key in `SCENES`.
        title: title for the user.
        about: description in two to four sentences: what the user can do, and what the scene shows.
        shows_collisions: whether collision shapes are drawn when the scene opens.
        session: the session; set by `open`.

    Example:
        >>> from mechanik.studio.scenes import SCENES
        >>> scene = SCENES["gripper"]()
        >>> scene.title, [control.name for control in scene.controls()]
        ('Gripper', ['closing', 'moves', 'speed'])
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    shows_collisions: ClassVar[bool] = False

    session: Session

    def __init__(self) -> None:
        self._controls = {control.name: control for control in self.make_controls()}
        self._objectives: dict[str, Objective] = {}
        self._goal_poses: dict[int, Array] = {}
        self._has_loaded_mechanism = self._is_built = False
        self._readout_state: LiveState | None = None

    # ---- defined by subclasses --------------------------------------------------------------

    def make_controls(self) -> list[ControlInfo]:
        """Return the controls with their initial values."""
        return []

    def build(self) -> None:
        """Load the mechanism and its goals into the session, according to the controls."""
        raise NotImplementedError

    def on_control_changed(self, name: str) -> None:
        """Handle a new value of a control or a pressed button; after an exception the old value is restored."""

    def tick(self, seconds: float) -> None:
        """Advance the animation by `seconds`."""

    @property
    def is_moving(self) -> bool:
        """Whether `tick` moves anything at present."""
        return False

    def sync_controls(self) -> None:
        """Set controls to the present state of the session, such as the position of a goal that a user has dragged."""

    def make_readouts(self) -> list[str]:
        """Return lines of text for the display, computed from the state of the mechanism."""
        return []

    # ---- interface for the session ----------------------------------------------------------

    def open(self, session: Session) -> None:
        """Build the scene in a session."""
        self.session = session
        self.build()
        self._is_built = True

    def controls(self) -> list[ControlInfo]:
        """Return all controls with their present values."""
        if self._is_built:
            self.sync_controls()
        return list(self._controls.values())

    def set(self, name: str, value: Value) -> None:
        """Set a control; if the value is not valid or cannot be applied, the control keeps its old value.

        Raises:
            UnknownName: there is no such control.
            InvalidOperation: the control cannot have this value.
            MechanikError: the scene cannot apply the value.
        """
        if name not in self._controls:
            raise UnknownName("control", name, self._controls)
        previous_state = self.snapshot()
        self.set_value(name, check_control_value(self._controls[name], value))
        try:
            self.on_control_changed(name)
        except Exception:
            self.restore(previous_state)
            raise

    def snapshot(self) -> dict[str, Any]:
        """Return all attributes for `restore`; only dictionaries are copied, as no other value is changed in place."""
        return copy_dicts(vars(self))

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state from `snapshot`."""
        vars(self).clear()
        vars(self).update(copy_dicts(state))

    def readouts(self) -> list[str]:
        """Return lines of text for the display, all from the same state.

        The list is empty if the lines need a link or joint that is missing because a user has replaced the mechanism.
        """
        active = self.session.active
        self._readout_state = active.latest_state if active.follows_solver else None
        try:
            return self.make_readouts()
        except KeyError:
            return []
        finally:
            self._readout_state = None

    # ---- helpers for subclasses -------------------------------------------------------------

    def set_value(self, name: str, value: Value) -> None:
        """Set the value of a control without further effects."""
        self._controls[name] = structs.replace(self._controls[name], value=value)

    def set_value_clamped(self, name: str, value: float) -> None:
        """Set the value of a slider, clamped to its range."""
        control = self._controls[name]
        self.set_value(name, max(control.low, min(control.high, value)))

    def value(self, name: str) -> Value:
        """Return the value of a control."""
        return self._controls[name].value

    def number(self, name: str) -> float:
        """Return the value of a slider, number or switch as a float.

        Raises:
            InvalidArgument: the value of the control is a text.
        """
        value = self.value(name)
        if isinstance(value, str):
            raise InvalidArgument(f"the value of the control {name!r} is the text {value!r}, not a number")
        return float(value)

    def is_on(self, name: str) -> bool:
        """Return whether a switch is on."""
        return self.value(name) is True

    def text(self, name: str) -> str:
        """Return the value of a control as text."""
        return str(self.value(name))

    @property
    def q(self) -> Array:
        """Configuration, (nq,), read-only.

        Inside `make_readouts` this is the configuration of the state that the status text describes, the same for all
        lines.
        """
        return self.session.q if self._readout_state is None else self._readout_state.q

    def link_pose(self, link: str) -> Array:
        """Return the pose of a link in the world at `q`, (4, 4)."""
        return self.session.mechanism.pose(link, self.q)

    def joint_value(self, joint: str) -> float:
        """Return the first value of a joint at `q`, m or rad."""
        return float(np.asarray(self.session.mechanism.values(self.q)[joint]).flat[0])

    def objective_error(self, name: str) -> ErrorNorms | None:
        """Return the error of an objective, for `make_readouts`; None if there is no objective with this name.

        The error is computed from the newest solution and its target, or from the present configuration and target if
        there is no solution.
        """
        active = self.session.active
        solution = None if self._readout_state is None else self._readout_state.solution
        objectives, q = (active.solve_spec.goals, active.q) if solution is None else (solution.objectives, solution.q)
        for objective in objectives:
            if objective.name == name:
                return objective.error(self.session.mechanism, q)
        return None

    def load_mechanism(self, mechanism: Mechanism, source: ModelSource = ("", "")) -> None:
        """Open a mechanism without goals, at its present `q`; only the first call resets the camera."""
        self._objectives, self._goal_poses = {}, {}
        resets_view = not self._has_loaded_mechanism
        self.session.open(mechanism, title=self.title, source=source, goals=(), resets_view=resets_view)
        self._has_loaded_mechanism = True

    def add_goal(
        self,
        kind: GoalKind,
        link: str,
        pose: Array,
        *,
        name: str,
        pinned: bool = False,
        free: Iterable[DofName] = (),
    ) -> int:
        """Add a goal that is visible and that users can drag; return its number.

        Args:
            kind: kind of the goal.
            link: name of the link.
            pose: pose of the goal in the world, (4, 4).
            name: label of the goal.
            pinned: whether the goal has the highest priority level, 0, and keeps its pose when joints are dragged.
            free: dofs, in the frame of the goal, that are not constrained.
        """
        number = self.session.add_goal(kind, link, pose=pose, name=name, pinned=pinned, free=tuple(free))
        self._goal_poses[number] = pose
        return number

    def has_goal(self, number: int) -> bool:
        """Return whether the goal exists; users may remove it."""
        return any(goal.number == number for goal in self.session.goals)

    def goal_pose(self, number: int) -> Array:
        """Return the pose of a goal in the world, (4, 4); for a removed goal, the last pose that the scene has set."""
        for goal in self.session.goals:
            if goal.number == number:
                return goal.X
        return self._goal_poses[number]

    def move_goals(self, poses: Mapping[int, Array]) -> None:
        """Move goals to poses (4, 4) in the world, by number; goals that users have removed are ignored."""
        self._goal_poses.update(poses)
        present_numbers = {goal.number for goal in self.session.goals}
        present_poses = {number: pose for number, pose in poses.items() if number in present_numbers}
        if present_poses:
            self.session.move_goals(present_poses)

    def change_goal(
        self,
        number: int,
        *,
        kind: GoalKind | None = None,
        free: tuple[DofName, ...] | None = None,
        enabled: bool | None = None,
    ) -> None:
        """Change the kind of a goal, its free dofs, or whether it is enabled; None: unchanged.

        A goal that a user has removed is ignored.
        """
        edit_state = self.session.edit_state
        arguments: dict[str, Any] = {"kind": kind, "free": free, "enabled": enabled}
        changes = {name: value for name, value in arguments.items() if value is not None}
        for goal in edit_state.goals:
            if goal.number == number:
                self.session.apply_edit(edit_state.with_goal(replace(goal, **changes)))

    def remove_goal(self, number: int) -> None:
        """Remove a goal, if it exists."""
        if self.has_goal(number):
            self.session.remove_goal(number)

    def add_objective(self, *objectives: Objective) -> None:
        """Add objectives that are not shown as goals; an objective of the same name is replaced."""
        self.session.add_objective(*objectives)
        self._objectives.update({objective.name: objective for objective in objectives})

    def remove_objective(self, name: str) -> None:
        """Remove the objective with this name, if it exists."""
        self._objectives.pop(name, None)
        if name in self.session.edit_state.objectives:
            self.session.remove_objective(name)

    def set_targets(self, targets: Mapping[str, Any]) -> None:
        """Set new targets of objectives, by name; objectives that an undo has removed are added again."""
        self._objectives.update({name: self._objectives[name].with_target(target) for name, target in targets.items()})
        session_objectives = self.session.edit_state.objectives
        if all(name in session_objectives for name in targets):
            self.session.set_targets(targets)
        else:
            self.session.add_objective(*(self._objectives[name] for name in targets))


def copy_dicts(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes, with copies of the dictionaries among them."""
    copies: dict[str, Any] = {}
    for name, value in attributes.items():
        copies[name] = dict(cast("dict[Any, Any]", value)) if isinstance(value, dict) else value
    return copies


class AnimatedScene(StudioScene):
    """A scene with a periodic motion that depends on a phase.

    A subclass defines `apply_phase`. Its controls include a slider "speed" and a control that starts the motion.

    Attributes:
        motion_control: name of the control that starts the motion.
        stopped_value: value of this control while nothing moves.
        phase: phase of the motion, rad; most motions have the period 2 pi.
    """

    motion_control: ClassVar[str] = "motion"
    stopped_value: ClassVar[Value] = "drag"

    def __init__(self) -> None:
        super().__init__()
        self.phase = 0.0

    def apply_phase(self) -> None:
        """Set the targets for the present phase."""
        raise NotImplementedError

    @property
    def phase_rate(self) -> float:
        """Rate of the phase, rad/s; the slider "speed" sets periods per second."""
        return 2 * math.pi * self.number("speed")

    @property
    def is_moving(self) -> bool:
        return self.value(self.motion_control) != self.stopped_value

    def tick(self, seconds: float) -> None:
        if self.is_moving:
            self.phase += self.phase_rate * seconds
            self.apply_phase()


class OscillatingScene(AnimatedScene):
    """A scene in which the value of a slider can oscillate.

    The switch "moves" starts the oscillation, and the slider "speed" sets its frequency in Hz.

    Attributes:
        slider_name: name of the slider.
        midpoint, amplitude: the value during the oscillation is midpoint - amplitude * cos(phase).
    """

    motion_control, stopped_value = "moves", False
    slider_name: ClassVar[str]
    midpoint: ClassVar[float]
    amplitude: ClassVar[float]

    def apply_slider(self) -> None:
        """Set the targets for the value of the slider."""
        raise NotImplementedError

    def set_phase_from_slider(self) -> None:
        """Set the phase such that the oscillation continues at the value of the slider, or as near as possible."""
        self.phase = math.acos(max(-1.0, min(1.0, (self.midpoint - self.number(self.slider_name)) / self.amplitude)))

    def on_control_changed(self, name: str) -> None:
        if name == self.slider_name:
            self.set_value("moves", False)
        elif name == "moves":
            self.set_phase_from_slider()
        self.apply_slider()

    def apply_phase(self) -> None:
        self.set_value_clamped(self.slider_name, self.midpoint - self.amplitude * math.cos(self.phase))
        self.apply_slider()
