"""Immutable edit state of a session, the interface of scenes, and the undo history.

The edit state is everything that undo restores besides the mechanism and its configuration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mechanik.errors import InvalidOperation, UnknownName
from mechanik.model import Mechanism
from mechanik.motion.live import LiveState
from mechanik.objectives import Objective, Terrain
from mechanik.spatial.array import Array
from mechanik.studio.messages import events
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.messages.requests import Value
from mechanik.studio.session.collision_monitor import DEFAULT_COLLISION_SETTINGS, CollisionSettings
from mechanik.studio.session.interactive_goals import InteractiveGoal
from mechanik.studio.session.loaded_model import LoadedModel
from mechanik.studio.session.model_index import IndexedDof

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class EditState:
    """Goals, limits and settings of a session, immutable.

    Attributes:
        goals: the goals.
        locked: indices of locked dofs.
        bounds: limits of each dof, m or rad; infinite where there is none, and for spherical joints.
        rest_values: rest value of each dof, m or rad; None: none.
        solver, options: method and options, see `SetSolver`.
        objectives: further objectives of a program or scene, by name.
        terrain: ground of the scene.
        hidden: names of links that are not drawn.
        collisions: collision settings and obstacles.
    """

    goals: tuple[InteractiveGoal, ...] = ()
    locked: frozenset[int] = frozenset()
    bounds: tuple[Bounds, ...] = ()
    rest_values: tuple[float | None, ...] = ()
    solver: str = "lm"
    options: Mapping[str, Value | None] = field(default_factory=dict[str, Value | None])
    objectives: Mapping[str, Objective] = field(default_factory=dict[str, Objective])
    terrain: Terrain | None = None
    hidden: frozenset[str] = frozenset()
    collisions: CollisionSettings = DEFAULT_COLLISION_SETTINGS

    def goal(self, number: int) -> InteractiveGoal:
        for goal in self.goals:
            if goal.number == number:
                return goal
        raise UnknownName("goal", number, [str(goal.number) for goal in self.goals])

    def with_goal(self, changed: InteractiveGoal) -> EditState:
        """Return the state with the goal of the same number replaced."""
        return replace(self, goals=tuple(changed if goal.number == changed.number else goal for goal in self.goals))


def read_bounds(mechanism: Mechanism, dofs: tuple[IndexedDof, ...]) -> tuple[Bounds, ...]:
    """Return the limits of all dofs from the joints of a mechanism."""
    free = float("-inf"), float("inf")
    return tuple(free if one.dof is None else mechanism.joints[one.joint].limits(one.dof) for one in dofs)


def read_rest_values(mechanism: Mechanism, dofs: tuple[IndexedDof, ...]) -> tuple[float | None, ...]:
    return tuple(None if one.dof is None else mechanism.joints[one.joint].rest_value(one.dof) for one in dofs)


def write_limits(mechanism: Mechanism, dofs: tuple[IndexedDof, ...], edit_state: EditState) -> None:
    """Write limits and rest values of an edit state to the joints of a mechanism.

    If a value is not valid, this raises, and the joints before it have changed already.
    """
    for one, bounds, rest in zip(dofs, edit_state.bounds, edit_state.rest_values, strict=True):
        joint = mechanism.joints[one.joint]
        if one.dof is None:
            continue
        if joint.limits(one.dof) != bounds:
            joint.set_limit(one.dof, *bounds)
        if joint.rest_value(one.dof) == rest:
            continue
        if rest is None:  # a joint can only clear all its rest values together
            kept = {dof: joint.rest_value(dof) for dof in joint.dof if dof is not one.dof}
            joint.clear_rest_pose()
            for dof, value in kept.items():
                if value is not None:
                    joint.set_rest_value(dof, value)
        else:
            joint.set_rest_value(one.dof, rest)


def same_limits(one: EditState, other: EditState) -> bool:
    """Return whether limits and rest values are equal."""
    return one.bounds == other.bounds and one.rest_values == other.rest_values


def same_goal_settings(goals: tuple[InteractiveGoal, ...], others: tuple[InteractiveGoal, ...]) -> bool:
    """Return whether two lists of goals differ at most in the frames."""
    return len(goals) == len(others) and all(
        one is other or one.has_same_settings(other) for one, other in zip(goals, others, strict=True)
    )


def goal_terrains(edit_state: EditState) -> dict[int, Terrain]:
    """Return the terrain of each `on_terrain` goal by goal number, offset by the radius of its sphere."""
    if edit_state.terrain is None:
        return {}
    return {
        goal.number: edit_state.terrain.offset_by(goal.sizes[0]) if goal.sizes[0] > 0.0 else edit_state.terrain
        for goal in edit_state.goals
        if goal.kind == "on_terrain"
    }


class SceneProtocol(Protocol):
    """What the parts of a session need of a scene; the scenes themselves are in a higher layer.

    Attributes:
        name: identifier.
        title: title.
        about: description, two to four sentences.
        shows_collisions: whether collision shapes are drawn from the start.
    """

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def shows_collisions(self) -> bool: ...
    @property
    def is_moving(self) -> bool:
        """Whether `tick` moves anything at present."""
        ...

    def controls(self) -> list[ControlInfo]: ...
    def set(self, name: str, value: Value) -> None:
        """Set a control; a value that is not valid raises and changes nothing."""
        ...

    def snapshot(self) -> object:
        """Return the state of the scene for `restore`; later changes do not affect it."""
        ...

    def restore(self, state: Any) -> None:
        """Restore a state from `snapshot`; the session itself restores mechanism, goals and curves."""
        ...

    def tick(self, seconds: float) -> None:
        """Advance the scene by `seconds`."""
        ...

    def readouts(self) -> list[str]:
        """Return lines for the display."""
        ...


MAX_STEPS = 200
MAX_STORED_LINKS = 5_000
"""Maximum number of links of all mechanisms in the history besides the last one; edited mechanisms are stored whole."""
MAX_STORED_BYTES = 64_000_000
"""Maximum size of the files of mechanisms in the history, bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class SessionSnapshot:
    """State of a session for undo.

    Attributes:
        model: the mechanism, by reference, since its structure never changes.
        edit_state: goals, limits and settings.
        q: configuration, (nq,).
        is_at_rest: whether it stays at q; if not, the solver continues from there.
        state: solver state at q; None if q was set otherwise.
        open_id: identifies what was opened; the camera resets if it differs.
        scene, scene_state: the scene and its state (`SceneProtocol.snapshot`).
        curves: polylines in the world.
    """

    model: LoadedModel
    edit_state: EditState
    q: Array
    is_at_rest: bool
    state: LiveState | None
    open_id: int
    scene: SceneProtocol | None
    scene_state: object
    curves: Sequence[events.CurveInfo]

    def has_moved(self, now: SessionSnapshot) -> bool:
        """Return whether q, a goal or an obstacle differs from `now`."""
        if self.q.shape != now.q.shape or (self.q != now.q).any():
            return True
        if obstacle_poses(self.edit_state) != obstacle_poses(now.edit_state):
            return True
        one, other = self.edit_state.goals, now.edit_state.goals
        return len(one) != len(other) or any(a.pose != b.pose for a, b in zip(one, other, strict=True))


def obstacle_poses(edit_state: EditState) -> dict[str, bytes]:
    """Return the exact poses of the obstacles as bytes, by name."""
    return {one.name: one.pose.matrix.tobytes() for one in edit_state.collisions.obstacles}


class UndoHistory:
    """Undo and redo steps, each with a label such as "move goal"."""

    def __init__(self) -> None:
        self._back: deque[tuple[str, SessionSnapshot]] = deque(maxlen=MAX_STEPS)
        self._forth: list[tuple[str, SessionSnapshot]] = []

    def __len__(self) -> int:
        return len(self._back)

    def push(self, label: str, before: SessionSnapshot, now: LoadedModel) -> None:
        """Add an undo step and clear the redo steps.

        Args:
            label: text of the step.
            before: state before the step.
            now: the present model.
        """
        self._back.append((label, before))
        self._forth.clear()
        self._forget_the_oldest(now)

    def _forget_the_oldest(self, now: LoadedModel) -> None:
        """Remove the oldest steps while their mechanisms have too many links or too large files."""
        links: dict[LoadedModel, int] = {}
        files = {id(now.files): 0}
        for at in reversed(range(len(self._back))):
            table = self._back[at][1].model
            if table in links:
                continue
            links[table] = len(table.index.link_names) if links else 0
            files.setdefault(id(table.files), table.file_bytes)
            if sum(links.values()) > MAX_STORED_LINKS or sum(files.values()) > MAX_STORED_BYTES:
                for _ in range(at + 1):
                    self._back.popleft()
                return

    def is_last(self, before: SessionSnapshot) -> bool:
        """Return whether the last step started from this snapshot."""
        return bool(self._back) and self._back[-1][1] is before

    def file_bytes(self, now: LoadedModel) -> int:
        """Return the size of the files of all mechanisms in the history and of the present one, bytes."""
        tables = [now, *(step[1].model for step in (*self._back, *self._forth))]
        return sum({id(table.files): table.file_bytes for table in tables}.values())

    def undo(self, now: SessionSnapshot) -> SessionSnapshot:
        if not self._back:
            raise InvalidOperation("there is nothing to undo")
        words, before = self._back.pop()
        self._forth.append((words, now))
        return before

    def redo(self, now: SessionSnapshot) -> SessionSnapshot:
        if not self._forth:
            raise InvalidOperation("there is nothing to redo")
        words, after = self._forth.pop()
        self._back.append((words, now))
        return after

    def info(self) -> events.History:
        return events.History(self._back[-1][0] if self._back else "", self._forth[-1][0] if self._forth else "")
