"""What programs and scenes do with a session, without requests and without steps of undo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mechanik.errors import Refused, UnknownName
from mechanik.live import LiveState
from mechanik.objectives import Objective, Terrain
from mechanik.spatial.array import Array, ArrayLike
from mechanik.studio.messages.checks import Value, Vector
from mechanik.studio.messages.events import CurveInfo, Notice
from mechanik.studio.messages.requests import Direction, GoalKind
from mechanik.studio.session.goal import Goal
from mechanik.studio.session.goal_kinds import objective_of, usual_sizes
from mechanik.studio.session.poses import Place, as_matrix
from mechanik.studio.session.riding import frame_for
from mechanik.studio.session.setup import Setup
from mechanik.studio.session.table import Table

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session

MOST_GOALS = 64


class Programs:
    """A part of `Session`."""

    # ---- goals ------------------------------------------------------------------------------

    def add_goal(
        self,
        kind: GoalKind,
        link: str,
        *,
        at: Vector = (0.0, 0.0, 0.0),
        pose: Place | None = None,
        pinned: bool = False,
        name: str = "",
        weight: float = 1.0,
        level: int = 1,
        sizes: Vector | None = None,
        free: Sequence[Direction] = (),
    ) -> int:
        """Want something of a link; returns the number of the goal.

        Args:
            at: the point of the link, in its frame; for an axis or a cone the direction in the link, z if zero.
            pose: of the goal in the world, (4, 4), a `Pose`, seven numbers or a point; None: as the link is now.
            pinned: above all other goals, and not moved along when joints are moved by hand.
            name: for people; that of the link if not given.
            sizes: what the kind measures besides; None: what is usual.
            free: directions of a pose, in the goal's frame, that are not asked for.
        """
        session = cast("Session", self)
        with session.lock:
            stage = session.on_stage
            X = stage.table.anatomy.poses(stage.q)
            goal = self.new_goal(
                stage.setup, stage.table, X, kind, link,
                at=at, pose=pose, pinned=pinned, name=name, weight=weight, level=level, sizes=sizes, free=free,
            )  # fmt: skip
            session.change(replace(stage.setup, goals=(*stage.setup.goals, goal)))
            return goal.number

    def new_goal(
        self,
        setup: Setup,
        table: Table,
        X: Array,
        kind: GoalKind,
        link: str,
        *,
        at: Vector = (0.0, 0.0, 0.0),
        pose: Place | None = None,
        pinned: bool = False,
        name: str = "",
        weight: float = 1.0,
        level: int = 1,
        sizes: Vector | None = None,
        free: Sequence[Direction] = (),
    ) -> Goal:
        """A goal that is not yet among the others. X: poses of all links, (L, 4, 4)."""
        session = cast("Session", self)
        if link not in table.anatomy.links:
            raise UnknownName("link", link, table.anatomy.names)
        if len(setup.goals) >= MOST_GOALS:
            raise Refused(f"there are {MOST_GOALS} goals already, and no more are followed; remove some first")
        X_link = X[table.anatomy.links[link]]
        measured = usual_sizes(kind, X_link, session.radius) if sizes is None else sizes
        centre = table.anatomy.centre(X) if kind == "centre_of_mass" else None
        frame = frame_for(kind, X_link, at, measured, session.radius, centre)
        if pose is not None:
            frame = as_matrix(pose, frame[:3, :3])
        taken = {goal.name for goal in setup.goals} | set(setup.demands)
        session.next_number += 1
        goal = Goal(
            number=session.next_number - 1,
            name=_unused(name or link, taken),
            kind=kind,
            link=link,
            X=frame,
            at=at,
            weight=weight,
            level=level,
            pinned=pinned,
            sizes=measured,
            free=tuple(free),
        )
        objective_of(goal, setup.terrain).relations(table.mechanism)  # raises if it makes no sense here
        return goal

    def move_goal(self, number: int, pose: Place) -> None:
        """Move a goal; a bare point (3,) keeps its turn."""
        self.move_goals({number: pose})

    def move_goals(self, poses: Mapping[int, Place]) -> None:
        """Move several at once, by their numbers."""
        session = cast("Session", self)
        with session.lock:
            setup = session.on_stage.setup
            moved = {number: setup.goal(number) for number in poses}
            session.shift_goals({n: goal.moved(as_matrix(poses[n], goal.X[:3, :3])) for n, goal in moved.items()})

    def remove_goal(self, number: int) -> None:
        session = cast("Session", self)
        with session.lock:
            setup = session.on_stage.setup
            gone = setup.goal(number)
            session.change(replace(setup, goals=tuple(goal for goal in setup.goals if goal is not gone)))

    def on_goal_moved(self, watcher: Callable[[int, Array], None]) -> Callable[[], None]:
        """Call `watcher` with number and frame (4, 4) of each goal that a person moves; what is returned ends that."""
        session = cast("Session", self)
        session.goal_watchers.append(watcher)
        return lambda: session.goal_watchers.remove(watcher) if watcher in session.goal_watchers else None

    # ---- objectives of a program ------------------------------------------------------------

    def add_objective(self, *objectives: Objective) -> None:
        """Ask for something besides the goals; each has a name, and one of the same name is replaced."""
        session = cast("Session", self)
        with session.lock:
            setup = session.on_stage.setup
            demands = dict(setup.demands)
            for one in objectives:
                if not one.name:
                    raise Refused(f"{one!r} needs a name here, such as name='balance'")
                if one.name in {goal.name for goal in setup.goals}:
                    raise Refused(f"a goal is called {one.name!r} already; give the objective another name")
                demands[one.name] = one
            session.change(replace(setup, demands=demands))

    def remove_objective(self, *names: str) -> None:
        session = cast("Session", self)
        with session.lock:
            setup = session.on_stage.setup
            for name in names:
                if name not in setup.demands:
                    raise UnknownName("objective", name, setup.demands)
            left = {name: one for name, one in setup.demands.items() if name not in names}
            session.change(replace(setup, demands=left))

    def aim(self, targets: Mapping[str, Any]) -> None:
        """New targets of objectives that were added, by name: whatever their `at` takes."""
        session = cast("Session", self)
        with session.lock:
            stage = session.on_stage
            demands = dict(stage.setup.demands)
            for name, target in targets.items():
                if name not in demands:
                    raise UnknownName("objective", name, demands)
                demands[name] = demands[name].at(target)
            stage.retarget(replace(stage.setup, demands=demands), targets)
            session.comparing.aim(stage, targets)
            session.ghosts.drop()

    # ---- the rest ---------------------------------------------------------------------------

    def set_solver(self, solver: str, **options: Value | None) -> None:
        """Another method, or other options; those that are not named are as usual."""
        from mechanik.studio.session.on_solving import checked_options

        session = cast("Session", self)
        with session.lock:
            given = checked_options(solver, options)
            session.change(replace(session.on_stage.setup, solver=solver, options=given))

    def set_running(self, running: bool) -> None:
        """Run or pause."""
        session = cast("Session", self)
        with session.lock:
            session.on_stage.set_running(running)
            session.tell_solving()

    def place(self, q: ArrayLike) -> None:
        """Stand at q (nq,), brought inside the limits; goals pull it on from there."""
        session = cast("Session", self)
        with session.lock:
            stage = session.on_stage
            stage.place(stage.table.mechanism.clamp(stage.table.mechanism._one(q)))

    def come_along(self, q: ArrayLike) -> None:
        """Stand at q (nq,), brought inside the limits; goals that are not pinned come along."""
        session = cast("Session", self)
        with session.lock:
            stage = session.on_stage
            inside = stage.table.mechanism.clamp(stage.table.mechanism._one(q))
            goals = replace(stage.picture, riding=self.riders()).arrived(inside)
            with stage.still():
                session.change(replace(stage.setup, goals=goals))
                stage.place(inside)

    def riders(self) -> dict[int, Array]:
        """Where the links of all goals are that come along with a motion by hand, (4, 4), by the goals' numbers."""
        session = cast("Session", self)
        stage = session.on_stage
        X = stage.table.anatomy.poses(stage.q)
        links = stage.table.anatomy.links
        coming = [goal for goal in stage.setup.goals if goal.enabled and not goal.pinned and not goal.is_pull]
        return {goal.number: X[links[goal.link]] for goal in coming}

    def subscribe(self, watcher: Callable[[LiveState], object]) -> Callable[[], None]:
        """Call `watcher` with each state, in a thread that may ask for anything; what is returned ends that.

        One that raises is not called again; one that is slow misses states.
        """
        return cast("Session", self).watchers.add(watcher)

    def note(self, text: str) -> None:
        """A word for the person."""
        cast("Session", self).tell(Notice("info", text))

    def set_curves(self, curves: Sequence[CurveInfo]) -> None:
        """Lines in the world, in place of those before."""
        session = cast("Session", self)
        with session.lock:
            session.curves = list(curves)
            session.tell_scene()

    def set_terrain(self, terrain: Terrain | None) -> None:
        """The ground that is drawn, and that goals of the kind `on_terrain` stand on."""
        session = cast("Session", self)
        with session.lock:
            session.change(replace(session.on_stage.setup, terrain=terrain))


def _unused(name: str, taken: set[str]) -> str:
    """The name, with a number behind it if another has it."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} {number}"
    return found
