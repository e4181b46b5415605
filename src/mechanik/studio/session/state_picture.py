"""Everything that a state frame is packed from besides q: immutable, so that the solver's thread may use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mechanik.live import LiveState
from mechanik.objectives import Terrain
from mechanik.solvers.status import Status
from mechanik.spatial.array import Array
from mechanik.studio.messages.frames import MAIN_LAYER, STATE, STATUSES, StateHeader, write_state
from mechanik.studio.session.anatomy import Anatomy
from mechanik.studio.session.goal import Goal
from mechanik.studio.session.goal_errors import missing
from mechanik.studio.session.poses import rows_of
from mechanik.studio.session.riding import ridden
from mechanik.studio.session.setup import Setup, grounds


@dataclass(frozen=True, slots=True)
class Moment:
    """What the solver says of a state, for the header of its frame; see `StateHeader`."""

    status: str = "IDLE"
    tag: int = 0
    layer: int = MAIN_LAYER
    is_at_rest: bool = True
    iterations: int = 0
    seconds: float = 0.0
    solves_per_second: float = 0.0

    @staticmethod
    def of(state: LiveState, tag: int, layer: int = MAIN_LAYER, status: str | None = None) -> Moment:
        """As a background solver has it; `status` if it is to be called otherwise."""
        return Moment(
            status_of(state) if status is None else status,
            tag,
            layer,
            state.is_at_rest,
            state.iterations,
            state.seconds,
            state.ticks_per_second,
        )

    @staticmethod
    def still(state: LiveState | None, tag: int, running: bool) -> Moment:
        """Where nothing moves; `state`: the newest of its solver, if there is one."""
        status = "PAUSED" if not running else "IDLE" if state is None else status_of(state)
        if state is None:
            return Moment(status, tag)
        return Moment(status, tag, iterations=state.iterations, seconds=state.seconds)


@dataclass(frozen=True, slots=True, eq=False)
class StatePicture:
    """
    Attributes:
        revision, order: of the `Model` and the `Goals` that it belongs to.
        riding: of the goals that come along with their links, where those were when it began, (4, 4), by number.
        terrain: the ground that goals stand on, by the number of the goal, raised by its radius.
    """

    revision: int
    order: int
    anatomy: Anatomy
    goals: tuple[Goal, ...] = ()
    riding: Mapping[int, Array] = field(default_factory=dict[int, Array])
    terrain: Mapping[int, Terrain] = field(default_factory=dict[int, Terrain])

    def of_setup(
        self, setup: Setup, riding: Mapping[int, Array], anatomy: Anatomy, order: int | None = None
    ) -> StatePicture:
        """The same of another setup; of another order if one is given."""
        terrain = self.terrain
        if any((goal.kind == "on_terrain") != (goal.number in terrain) for goal in setup.goals):
            terrain = grounds(setup)
        order = self.order if order is None else order
        return StatePicture(self.revision, order, anatomy, setup.goals, riding, terrain)

    def pack(self, q: Array, sequence: int, moment: Moment) -> bytes:
        """A state frame of the mechanism at q (nq,)."""
        anatomy = self.anatomy
        X = anatomy.poses(q)
        measured = anatomy.measure(X)
        goals = self.goal_rows(X)
        wanted = [row[7:].max() for row, goal in zip(goals, self.goals, strict=True) if goal.enabled]
        header = StateHeader(
            kind=STATE,
            revision=self.revision,
            order=self.order,
            sequence=sequence,
            tag=moment.tag,
            layer=moment.layer,
            status=STATUSES.index(moment.status),
            is_at_rest=moment.is_at_rest,
            iterations=moment.iterations,
            seconds=moment.seconds,
            solves_per_second=moment.solves_per_second,
            residual=max(wanted, default=0.0),
            links=len(X),
            values=anatomy.value_count,
            goals=len(goals),
            closures=len(measured.gaps),
        )
        return write_state(header, rows_of(X), anatomy.values(q, measured), goals, measured.gaps)

    def goal_rows(self, X: Array) -> Array:
        """(G, 9) of goals' frames and what is missing, with links at X (L, 4, 4)."""
        rows = np.empty((len(self.goals), 9))
        centre = self._centre(X)
        for row, goal in zip(rows, self.goals, strict=True):
            X_link = X[self.anatomy.links[goal.link]]
            here = self._along(goal, X_link, centre)
            row[:7] = here.pose
            row[7:] = missing(here, X_link, centre, self.terrain.get(goal.number))
        return rows

    def arrived(self, q: Array) -> tuple[Goal, ...]:
        """The goals as they are with the mechanism at q: those that ride, where they have come to."""
        if not self.riding:
            return self.goals
        X = self.anatomy.poses(q)
        centre = self._centre(X)
        return tuple(self._along(goal, X[self.anatomy.links[goal.link]], centre) for goal in self.goals)

    def _along(self, goal: Goal, X_link: Array, centre: Array | None) -> Goal:
        before = self.riding.get(goal.number)
        if before is None:
            return goal
        return goal.moved(ridden(goal, before, X_link, centre, self.terrain.get(goal.number)))

    def _centre(self, X: Array) -> Array | None:
        wants = any(goal.kind == "centre_of_mass" for goal in self.goals)
        return self.anatomy.centre(X) if wants else None


def status_of(state: LiveState) -> str:
    """As frames name it."""
    if state.problem:
        return "PROBLEM"
    if state.status is Status.PENDING:
        return "IDLE"
    return state.status.name if state.status.name in STATUSES else "PROBLEM"
