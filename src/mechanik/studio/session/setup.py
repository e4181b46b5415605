"""How a session is set up: everything that undo brings back besides the mechanism and where it stands. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mechanik.errors import UnknownName
from mechanik.mechanism import Mechanism
from mechanik.objectives import Objective, Terrain
from mechanik.studio.messages.checks import Value
from mechanik.studio.session.collisions import USUAL, Collisions
from mechanik.studio.session.freedoms import Freedom
from mechanik.studio.session.goal import Goal

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """
    Attributes:
        locked: numbers of freedoms that may not move.
        bounds: limits of each freedom, as its joint has them; infinite where there is none, and for balls.
        rests: where each freedom rests; None: anywhere.
        solver, options: see `SetSolver`.
        demands: objectives that a program or scene asks for besides, by name.
        terrain: the ground.
        hidden: names of links that are not drawn.
        collisions: what must not bump into what, and what is done about it.
    """

    goals: tuple[Goal, ...] = ()
    locked: frozenset[int] = frozenset()
    bounds: tuple[Bounds, ...] = ()
    rests: tuple[float | None, ...] = ()
    solver: str = "lm"
    options: Mapping[str, Value | None] = field(default_factory=dict[str, Value | None])
    demands: Mapping[str, Objective] = field(default_factory=dict[str, Objective])
    terrain: Terrain | None = None
    hidden: frozenset[str] = frozenset()
    collisions: Collisions = USUAL

    def goal(self, number: int) -> Goal:
        for goal in self.goals:
            if goal.number == number:
                return goal
        raise UnknownName("goal", number, [str(goal.number) for goal in self.goals])

    def with_goal(self, changed: Goal) -> Setup:
        """The same with the goal of that number replaced."""
        return replace(self, goals=tuple(changed if goal.number == changed.number else goal for goal in self.goals))


def read_bounds(mechanism: Mechanism, freedoms: tuple[Freedom, ...]) -> tuple[Bounds, ...]:
    """Limits as the joints have them."""
    free = float("-inf"), float("inf")
    return tuple(free if one.dof is None else mechanism.joints[one.joint].limits(one.dof) for one in freedoms)


def read_rests(mechanism: Mechanism, freedoms: tuple[Freedom, ...]) -> tuple[float | None, ...]:
    return tuple(None if one.dof is None else mechanism.joints[one.joint].rest_value(one.dof) for one in freedoms)


def write_bounds_and_rests(mechanism: Mechanism, freedoms: tuple[Freedom, ...], setup: Setup) -> None:
    """Give the joints the limits and rests of a setup; raises before anything is changed if one makes no sense."""
    for one, bounds, rest in zip(freedoms, setup.bounds, setup.rests, strict=True):
        joint = mechanism.joints[one.joint]
        if one.dof is None:
            continue
        if joint.limits(one.dof) != bounds:
            joint.set_limit(one.dof, *bounds)
        if joint.rest_value(one.dof) == rest:
            continue
        if rest is None:  # a joint forgets all its rests at once
            kept = {dof: joint.rest_value(dof) for dof in joint.dof if dof is not one.dof}
            joint.clear_rest_pose()
            for dof, value in kept.items():
                if value is not None:
                    joint.set_rest_value(dof, value)
        else:
            joint.set_rest_value(one.dof, rest)


def has_same_bounds(one: Setup, other: Setup) -> bool:
    """Whether no limit and no rest differs."""
    return one.bounds == other.bounds and one.rests == other.rests


def are_alike(goals: tuple[Goal, ...], others: tuple[Goal, ...]) -> bool:
    """Whether nothing differs but where they are."""
    return len(goals) == len(others) and all(
        one is other or one.is_like(other) for one, other in zip(goals, others, strict=True)
    )


def grounds(setup: Setup) -> dict[int, Terrain]:
    """For each goal that stands on the ground, the ground as its ball feels it."""
    if setup.terrain is None:
        return {}
    return {
        goal.number: setup.terrain.raised_by(goal.sizes[0]) if goal.sizes[0] > 0.0 else setup.terrain
        for goal in setup.goals
        if goal.kind == "on_terrain"
    }
