"""What the solver is asked for: the goals of a setup, and what a hand holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mechanik.collision import Collider
from mechanik.errors import Refused
from mechanik.objectives import JointValues, Objective
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array
from mechanik.studio.messages.frames import PULL
from mechanik.studio.session.ball_at import BallAt
from mechanik.studio.session.collisions import USUAL, Collisions
from mechanik.studio.session.freedoms import Freedom
from mechanik.studio.session.goal_kinds import objective_of
from mechanik.studio.session.setup import Setup

HAND = "the hand"
"""Name of the objective that holds a joint where the hand has it."""
FINE = 1e-10
"""m and rad: a number that somebody types is kept to the last digit that is shown."""
ASKED = ("goals", "locked", "solver", "options", "demands", "terrain", "collisions")
"""What of a setup a solver is told."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """What a hand has taken.

    Attributes:
        number: of the goal (PULL for a pulled link), or of the freedom; of an obstacle its place when it was taken.
        riding: of the goals that come along, where their links were, (4, 4), by number.
        numbers: where the hand has the freedom: m or rad; of a ball the three of a rotation vector, rad.
        name: of the obstacle.
    """

    kind: Literal["goal", "freedom", "obstacle"]
    number: int
    riding: Mapping[int, Array] = field(default_factory=dict[int, Array])
    numbers: tuple[float, ...] = (0.0,)
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What a solver is asked for; the fields as `Live` and `Solver` take them.

    Attributes:
        said: what the method takes otherwise than it is meant, in words; empty if nothing.
        collisions, collider: what is kept off, and who knows how near it is; None: nothing is.
    """

    goals: tuple[Objective, ...]
    solver: str
    lock: tuple[str, ...]
    rest: bool
    options: Mapping[str, Any]
    said: str = ""
    collisions: Collisions = USUAL
    collider: Collider | None = None

    @property
    def avoiding(self) -> dict[str, Any]:
        """As `Live` and `Solver` take it."""
        kept_off: dict[str, Any] = {"avoid": self.collider}
        return kept_off if self.collider is None else {**kept_off, "clearance": self.collisions.clearance}

    def targets(self, by_name: Mapping[str, Any]) -> Any:
        """New targets as a solver takes them: one that has a single objective takes its target bare, since one of joint
        values has names of its own. A rest is an objective too."""
        return next(iter(by_name.values())) if len(self.goals) == 1 and not self.rest else by_name


def plan(setup: Setup, freedoms: tuple[Freedom, ...], held: Held | None, collider: Collider | None = None) -> Plan:
    """While a joint or link is held by hand, the method is Levenberg and Marquardt's, which takes all that may be held;
    goals that ride along are not asked for."""
    riding: Mapping[int, Array] = {} if held is None else held.riding
    wanted = [objective_of(goal, setup.terrain) for goal in setup.goals if goal.enabled and goal.number not in riding]
    wanted += setup.demands.values()
    if held is not None and held.kind == "freedom":
        wanted.append(hand_objective(freedoms, held.number, held.numbers))
    by_hand = held is not None and (held.kind == "freedom" or held.number == PULL)
    lock = tuple(freedoms[k].name for k in sorted(setup.locked))
    options = {} if by_hand else {name: value for name, value in setup.options.items() if value is not None}
    rest = any(one is not None for one in setup.rests)
    solver = "lm" if by_hand else setup.solver
    return Plan(tuple(wanted), solver, lock, rest, options, collisions=setup.collisions, collider=collider)


def hand_objective(freedoms: tuple[Freedom, ...], number: int, numbers: tuple[float, ...]) -> JointValues | BallAt:
    """A freedom where a hand has it: above usual goals, below pins. What follows another asks it of that one.

    Args:
        numbers: see `Held`; what comes behind them is not read.
    """
    if freedoms[number].is_ball:
        wxyz = quaternion.exp(numbers[:3])
        return BallAt(freedoms[number].joint, wxyz, level=1, tolerance=FINE, angle_tolerance=FINE, name=HAND)
    freedom, number_there = driven(freedoms, number, numbers[0])
    return JointValues(
        {freedom.name: number_there}, turns="exact", level=1, tolerance=FINE, angle_tolerance=FINE, name=HAND
    )


def held_at(asked: Plan, freedoms: tuple[Freedom, ...], held: Held) -> tuple[Plan, dict[str, Any]]:
    """The same with the freedom where the hand has it now, and the target by name that makes a solver follow."""
    wanted = hand_objective(freedoms, held.number, held.numbers)
    return replace(asked, goals=(*asked.goals[:-1], wanted)), {HAND: hand_target(wanted)}


def hand_target(wanted: JointValues | BallAt) -> Any:
    """What `at` takes to make it of another that asks for the same freedom."""
    return wanted.wxyz if isinstance(wanted, BallAt) else dict(wanted.values)


def driven(freedoms: tuple[Freedom, ...], number: int, value: float) -> tuple[Freedom, float]:
    """The freedom that has to move for freedom `number` to have a value, and the value that it needs."""
    freedom = freedoms[number]
    if freedom.leader < 0:
        return freedom, value
    if freedom.ratio == 0.0:
        raise Refused(f"{freedom.name} follows another joint by a ratio of 0 and cannot be moved")
    return freedoms[freedom.leader], (value - freedom.offset) / freedom.ratio


def aimed(asked: Plan, targets: Mapping[str, Any]) -> Plan:
    """The same with other targets, by name."""
    return replace(asked, goals=tuple(one.at(targets[one.name]) if one.name in targets else one for one in asked.goals))


def asks_the_same(one: Setup, other: Setup) -> bool:
    """Whether a solver would not know the difference."""
    return all(getattr(one, name) is getattr(other, name) for name in ASKED)


def changes_the_plan(held: Held | None, before: Held | None) -> bool:
    """Whether a solver would notice; a goal in the hand is a goal like any other."""
    return held is not before and any(
        one is not None and (one.kind == "freedom" or one.riding) for one in (held, before)
    )
