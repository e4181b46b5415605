"""What is asked of a robot: for each task the goals, their targets, and where to start; the same for every solver."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from mechanik.comparison.configurations import SPREAD, Shutter, draw, reach_of
from mechanik.comparison.robots import Robot
from mechanik.comparison.singular import near_singular
from mechanik.errors import UnknownName
from mechanik.ik import Solver
from mechanik.objectives import Axis, Objective, Point, PoseGoal
from mechanik.spatial.array import Array

OUTER = 64
"""How many starts beyond the first are drawn; a search that needs more goes through them again."""
TIGHT = 0.3
"""The share of its range that tight limits leave to each joint."""
POINTS = 25
"""On a path, at most; two paths at least."""
STEP = 0.01
"""Between the points of a path, as a share of the way to another random configuration."""
TOO_FAR = (1.1, 1.6)
"""How far away a target out of reach is, in reaches."""
FARTHER = 12
"""How often a target that can be reached after all is moved away by half as much again."""


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """How much is asked.

    Attributes:
        targets: of each task; on paths, points in all.
        branch_targets, branch_starts: how many targets are looked at from how many starts for branches.
        tolerance, angle_tolerance: m and rad; what counts as there.
    """

    targets: int
    branch_targets: int
    branch_starts: int
    tolerance: float
    angle_tolerance: float


@dataclass(frozen=True, slots=True, eq=False)
class Exercise:
    """One task on one robot.

    Attributes:
        goals: what a solver is made with.
        targets: for each, what `Solver.solve` takes as `targets`.
        made_from: (n, nq), configurations in which the ends are at the targets; where they can be.
        wanted: (n, ends, 4, 4), where the ends should be; of some tasks only a part counts.
        direction: (3,), in the end's frame, what should point along the wanted one; None where it does not matter.
        turns: whether the whole rotation counts.
        starts: (n, nq), for each target.
        further: (OUTER, nq), where to start again, for all targets alike.
        lower, upper: (nq,), limits.
        limits: the same by name, as a solver takes them, where they are not the robot's own.
        path: for each target, the number of its path, whose first configuration is its start; empty where nothing is
            followed.
        usual_step: of each path, the largest step of any joint in the configurations that the path was made from;
            rad, or reaches.
        is_reachable: whether there is an answer.
    """

    robot: Robot
    task: str
    goals: tuple[Objective, ...]
    targets: list[Any]
    made_from: Array
    wanted: Array
    direction: Array | None
    turns: bool
    starts: Array
    further: Array
    lower: Array
    upper: Array
    limits: Mapping[str, tuple[float, float]] | None = None
    path: tuple[int, ...] = ()
    usual_step: tuple[float, ...] = ()
    is_reachable: bool = True


def point(robot: Robot, rng: np.random.Generator, sizes: Sizes) -> Exercise:
    """The ends at points, anyhow turned."""
    return _placed(robot, "point", rng, sizes, draw(robot, rng, sizes.targets), turns=False)


def direction(robot: Robot, rng: np.random.Generator, sizes: Sizes) -> Exercise:
    """The ends at points, with an axis of each along a direction."""
    configurations = draw(robot, rng, sizes.targets)
    along = _telling_axis(robot, configurations)
    return _placed(robot, "direction", rng, sizes, configurations, turns=False, along=along)


def pose(robot: Robot, rng: np.random.Generator, sizes: Sizes) -> Exercise:
    """The ends at poses."""
    return _placed(robot, "pose", rng, sizes, draw(robot, rng, sizes.targets))


def tight_limits(robot: Robot, rng: np.random.Generator, sizes: Sizes) -> Exercise:
    """Poses that can be reached although every joint has kept less than a third of its range."""
    space, count = robot.mechanism.space, sizes.targets
    lower, upper = space.lower.copy(), space.upper.copy()
    if robot.mechanism.closures:
        inside = draw(robot, rng, 2 * count + OUTER, spread=TIGHT * SPREAD)
        bounded = np.isfinite(lower) & np.isfinite(upper)
        lower[bounded], upper[bounded] = inside.min(axis=0)[bounded], inside.max(axis=0)[bounded]
    else:
        full = np.where(space.rotates[space.scalars_v], math.pi, 1.0)
        k = space.scalars_q
        low = np.where(np.isfinite(lower[k]), lower[k], -full)
        high = np.where(np.isfinite(upper[k]), upper[k], full)
        width = TIGHT * (high - low)
        lower[k] = low + rng.random(len(k)) * (high - low - width)
        upper[k] = lower[k] + width
        inside = replace(space, lower=lower, upper=upper).random(rng, 2 * count + OUTER)
    names = [space.q_names[k] for k in space.scalars_q if np.isfinite(lower[k]) and np.isfinite(upper[k])]
    limits = {name: (lower[space.q_names.index(name)], upper[space.q_names.index(name)]) for name in names}
    made = _placed(robot, "tight_limits", rng, sizes, inside[:count])
    return replace(
        made,
        starts=inside[count : 2 * count],
        further=inside[2 * count :],
        lower=lower,
        upper=upper,
        limits={name: (float(low), float(high)) for name, (low, high) in limits.items()},
    )


def singular(robot: Robot, rng: np.random.Generator, sizes: Sizes) -> Exercise:
    """Poses that are reached where the robot is all but singular."""
    return _placed(robot, "near_singular", rng, sizes, near_singular(robot, rng, sizes.targets))


def out_of_reach(robot: Robot, rng: np.random.Generator, sizes: Sizes) -> Exercise:
    """Points that nothing reaches: how near does a solver come?"""
    made = _placed(robot, "out_of_reach", rng, sizes, draw(robot, rng, sizes.targets), turns=False)
    base = np.array([robot.mechanism.link(end).root.world_position for end in robot.ends])
    away = made.wanted[:, :, :3, 3] - base
    away /= np.maximum(np.linalg.norm(away, axis=-1, keepdims=True), 1e-9)
    far = reach_of(robot) * rng.uniform(*TOO_FAR, (len(away), 1, 1))
    solver, wanted = make_solver(made, "lm"), made.wanted.copy()
    for number, start in enumerate(made.starts):
        for _ in range(FARTHER):
            wanted[number, :, :3, 3] = base + far[number] * away[number]
            target = _targets(wanted[number : number + 1], None, False)[0]
            # what bounds a loop is hard to tell, so it is tried
            starts = (start, *made.further[:3]) if robot.mechanism.closures else ()
            if not any(solver.solve(target, np.array(q)).success for q in starts):
                break
            far[number] *= 1.5
    return replace(made, wanted=wanted, targets=_targets(wanted, None, False), is_reachable=False)


def path(robot: Robot, rng: np.random.Generator, sizes: Sizes) -> Exercise:
    """Poses along paths, each to be reached from the answer before."""
    mechanism, shut = robot.mechanism, Shutter(robot)
    points = min(POINTS, max(1, sizes.targets // 2))
    ends = draw(robot, rng, 2 * max(1, sizes.targets // points))
    configurations: list[Array] = []
    starts: list[Array] = []
    numbers: list[int] = []
    usual: list[float] = []
    for start, end in zip(ends[::2], ends[1::2], strict=True):
        q, way = [start], mechanism.difference(start, end) * STEP
        for _ in range(points):
            follows = shut(mechanism.clamp(mechanism.integrate(q[-1], way)))
            if follows is None:
                break
            q.append(follows)
        if len(q) > 1:
            followed = q[1:]
            configurations += followed
            starts += [start] * len(followed)
            numbers += [len(usual)] * len(followed)
            usual.append(max(float(step_size(robot, a, b)) for a, b in pairwise(q)))
    made = _placed(robot, "path", rng, sizes, np.array(configurations))
    return replace(made, starts=np.array(starts), path=tuple(numbers), usual_step=tuple(usual))


TASKS: dict[str, Callable[[Robot, np.random.Generator, Sizes], Exercise]] = {
    "point": point,
    "direction": direction,
    "pose": pose,
    "tight_limits": tight_limits,
    "near_singular": singular,
    "out_of_reach": out_of_reach,
    "path": path,
}
"""By the names that `compare` takes."""


def set_task(robot: Robot, task: str, seed: int, sizes: Sizes) -> Exercise:
    """A task on a robot. It depends on nothing but the arguments, so that every solver gets the same."""
    if task not in TASKS:
        raise UnknownName("task", task, TASKS)
    rng = np.random.default_rng([seed, *f"{robot.name}/{task}".encode()])
    return TASKS[task](robot, rng, sizes)


def step_size(robot: Robot, q0: Array, q1: Array) -> Array:
    """(...), the largest step of any joint: rad, or reaches."""
    unit = np.where(robot.mechanism.space.rotates, 1.0, reach_of(robot))
    return np.abs(robot.mechanism.difference(q0, q1) / unit).max(axis=-1)


def nothing_to_do(exercise: Exercise) -> Any:
    """Targets where the ends are already at the first start."""
    robot = exercise.robot
    wanted = robot.mechanism.poses(exercise.starts[:1], robot.ends)
    return _targets(wanted, exercise.direction, exercise.turns)[0]


def make_solver(exercise: Exercise, solver: str) -> Solver:
    """A solver by name, as anybody would make it for the exercise."""
    # one attempt at a time, by the method itself: the next start is part of what is measured
    return Solver(exercise.robot.mechanism, exercise.goals, solver=solver, limits=exercise.limits, restarts=0)


def _placed(
    robot: Robot,
    task: str,
    rng: np.random.Generator,
    sizes: Sizes,
    configurations: Array,
    turns: bool = True,
    along: Array | None = None,
) -> Exercise:
    """Targets where the ends are in some configurations; starts drawn anew."""
    wanted = robot.mechanism.poses(configurations, robot.ends)
    count = len(configurations)
    starts = draw(robot, rng, count + OUTER)
    tolerances: Any = {"tolerance": sizes.tolerance, "angle_tolerance": sizes.angle_tolerance}
    goals: list[Objective] = []
    for end, X in zip(robot.ends, wanted[0], strict=True):
        if turns:
            goals.append(PoseGoal(end, X, **tolerances))
            continue
        goals.append(Point(end, X[:3, 3], **tolerances))
        if along is not None:
            goals.append(Axis(end, X[:3, :3] @ along, along, **tolerances))
    space = robot.mechanism.space
    return Exercise(
        robot, task, tuple(goals), _targets(wanted, along, turns), configurations, wanted, along, turns,
        starts[:count], starts[count:], space.lower, space.upper,
    )  # fmt: skip


def _targets(wanted: Array, along: Array | None, turns: bool) -> list[Any]:
    """As `Solver.solve` takes them: the only one itself, several as a list."""
    found: list[Any] = []
    for poses in wanted:
        each: list[Array] = []
        for X in poses:
            each.append(np.array(X) if turns else np.array(X[:3, 3]))
            if along is not None:
                each.append(X[:3, :3] @ along)
        found.append(each[0] if len(each) == 1 else each)
    return found


def _telling_axis(robot: Robot, configurations: Array) -> Array:
    """The z axis of the end; x where z always points the same way, as in a plane."""
    directions = robot.mechanism.poses(configurations, robot.ends)[..., :3, 2]
    return np.eye(3)[2] if np.ptp(directions, axis=0).max() > 1e-6 else np.eye(3)[0]
