"""What every demonstration is: a mechanism with goals, things that people can set, and perhaps a motion of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from mechanik.errors import UnknownName, WrongKind
from mechanik.studio.messages.checks import Value
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import checked

if TYPE_CHECKING:
    from mechanik.live import LiveState
    from mechanik.mechanism import Mechanism
    from mechanik.objectives import Objective
    from mechanik.objectives.objective import Error
    from mechanik.spatial.array import Array
    from mechanik.studio.messages.requests import Direction, GoalKind
    from mechanik.studio.session.session import Session
    from mechanik.studio.session.table import Source


class Scene:
    """One demonstration on one session. A subclass says `make_controls`, `build`, and what of the rest it needs.

    Attributes:
        about: two to four sentences: what to do, what to see.
        shows_collisions: whether colliders are drawn from the start.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    shows_collisions: ClassVar[bool] = False

    session: Session

    def __init__(self) -> None:
        self._controls = {control.name: control for control in self.make_controls()}
        self._demands: dict[str, Objective] = {}
        self._poses: dict[int, Array] = {}
        self._is_open = self._is_built = False
        self._seen: LiveState | None = None

    # ---- what a scene says ------------------------------------------------------------------

    def make_controls(self) -> list[ControlInfo]:
        """What people can set, as it stands at the start."""
        return []

    def build(self) -> None:
        """Put the mechanism and its goals on the session's table, as the controls say."""
        raise NotImplementedError

    def changed(self, name: str) -> None:
        """A control has another value, or a button was pressed; what it raises undoes that."""

    def tick(self, seconds: float) -> None:
        """Go on by so many seconds."""

    @property
    def is_moving(self) -> bool:
        """Whether `tick` moves anything now."""
        return False

    def follow(self) -> None:
        """Put controls where the things that they set have gone by themselves or by hand; see `put_within`."""

    def lines(self) -> list[str]:
        """What is read off the mechanism, for the screen."""
        return []

    # ---- what a session asks of it ----------------------------------------------------------

    def open(self, session: Session) -> None:
        self.session = session
        self.build()
        self._is_built = True

    def controls(self) -> list[ControlInfo]:
        if self._is_built:
            self.follow()
        return list(self._controls.values())

    def set(self, name: str, value: Value) -> None:
        """Set a control; one that cannot be set, or cannot be followed, stays as it was."""
        if name not in self._controls:
            raise UnknownName("control", name, self._controls)
        before = self.keep()
        self.put(name, checked(self._controls[name], value))
        try:
            self.changed(name)
        except Exception:
            self.bring_back(before)
            raise

    def keep(self) -> dict[str, Any]:
        """All attributes; of what they hold, only dictionaries are ever changed in place."""
        return with_copies(vars(self))

    def bring_back(self, kept: dict[str, Any]) -> None:
        vars(self).clear()
        vars(self).update(with_copies(kept))

    def read_out(self) -> list[str]:
        """Lines for the screen, all of one moment; none if people have made another mechanism of this one, which they
        do not fit."""
        stage = self.session.on_stage
        self._seen = stage.latest if stage.is_followed else None
        try:
            return self.lines()
        except KeyError:
            return []
        finally:
            self._seen = None

    # ---- for subclasses ---------------------------------------------------------------------

    def put(self, name: str, value: Value) -> None:
        """Give a control another value without a word to anyone."""
        self._controls[name] = replace(self._controls[name], value=value)

    def put_within(self, name: str, value: float) -> None:
        """Move a slider to a value, or to its nearest end."""
        control = self._controls[name]
        self.put(name, max(control.low, min(control.high, value)))

    def value(self, name: str) -> Value:
        return self._controls[name].value

    def number(self, name: str) -> float:
        value = self.value(name)
        if isinstance(value, str):
            raise WrongKind(f"control {name!r} holds the text {value!r}, not a number")
        return float(value)

    def is_on(self, name: str) -> bool:
        return self.value(name) is True

    def word(self, name: str) -> str:
        return str(self.value(name))

    @property
    def q(self) -> Array:
        """(nq,), read-only: as it is now. In `lines` the same from the first to the last: of the newest state, which
        the words beside them are about, and not of one that arrives in between."""
        return self.session.q if self._seen is None else self._seen.q

    def pose(self, link: str) -> Array:
        """(4, 4) of a link at `q`."""
        return self.session.mechanism.pose(link, self.q)

    def reading(self, joint: str) -> float:
        """The first value of a joint at `q`; m or rad."""
        return float(np.asarray(self.session.mechanism.values(self.q)[joint]).flat[0])

    def off(self, name: str) -> Error | None:
        """For `lines`: how far the newest state is from the objective of that name as it was asked for then. While
        nothing is solved, from what is asked for now. None: it is not asked for."""
        stage = self.session.on_stage
        solution = None if self._seen is None else self._seen.solution
        asked, q = (stage.asked.goals, stage.q) if solution is None else (solution.objectives, solution.q)
        for one in asked:
            if one.name == name:
                return one.error(self.session.mechanism, q)
        return None

    def table(self, mechanism: Mechanism, source: Source = ("", "")) -> None:
        """Put a mechanism on the table, without goals; it stands as it was made. The view stays as it is after the
        first one."""
        self._demands, self._poses = {}, {}
        self.session.open(mechanism, title=self.title, source=source, goals=(), resets_view=not self._is_open)
        self._is_open = True

    def want(
        self,
        kind: GoalKind,
        link: str,
        pose: Array,
        *,
        name: str,
        pinned: bool = False,
        free: Iterable[Direction] = (),
    ) -> int:
        """A goal that people see and drag; returns its number."""
        number = self.session.add_goal(kind, link, pose=pose, name=name, pinned=pinned, free=tuple(free))
        self._poses[number] = pose
        return number

    def has(self, number: int) -> bool:
        """Whether there is such a goal; people may have removed it."""
        return any(goal.number == number for goal in self.session.goals)

    def pose_of(self, number: int) -> Array:
        """(4, 4) of a goal; where this scene last had it, if people have removed it."""
        for goal in self.session.goals:
            if goal.number == number:
                return goal.X
        return self._poses[number]

    def move(self, poses: Mapping[int, Array]) -> None:
        """Move goals to poses (4, 4), by their numbers; those that people have removed are left out."""
        self._poses.update(poses)
        there = {goal.number for goal in self.session.goals}
        moved = {number: pose for number, pose in poses.items() if number in there}
        if moved:
            self.session.move_goals(moved)

    def alter(
        self,
        number: int,
        *,
        kind: GoalKind | None = None,
        free: tuple[Direction, ...] | None = None,
        enabled: bool | None = None,
    ) -> None:
        """What a goal asks for, which directions of a pose it does not, and whether it counts at all; what is None
        stays. Does nothing if people have removed it."""
        setup = self.session.on_stage.setup
        given: dict[str, Any] = {"kind": kind, "free": free, "enabled": enabled}
        changes = {name: value for name, value in given.items() if value is not None}
        for goal in setup.goals:
            if goal.number == number:
                self.session.change(setup.with_goal(replace(goal, **changes)))

    def drop(self, number: int) -> None:
        """Remove a goal, if it is still there."""
        if self.has(number):
            self.session.remove_goal(number)

    def demand(self, *objectives: Objective) -> None:
        """Objectives that are not seen as goals; one of the same name is replaced."""
        self.session.add_objective(*objectives)
        self._demands.update({one.name: one for one in objectives})

    def forget(self, name: str) -> None:
        """Take an objective of that name away, if there is one."""
        self._demands.pop(name, None)
        if name in self.session.on_stage.setup.demands:
            self.session.remove_objective(name)

    def aim(self, targets: Mapping[str, Any]) -> None:
        """New targets of objectives, by name; those that an undo has taken away are asked for again."""
        self._demands.update({name: self._demands[name].at(target) for name, target in targets.items()})
        there = self.session.on_stage.setup.demands
        if all(name in there for name in targets):
            self.session.aim(targets)
        else:
            self.session.add_objective(*(self._demands[name] for name in targets))


def with_copies(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The same, with copies of the dictionaries among them."""
    found: dict[str, Any] = {}
    for name, value in attributes.items():
        found[name] = dict(cast("dict[Any, Any]", value)) if isinstance(value, dict) else value
    return found
