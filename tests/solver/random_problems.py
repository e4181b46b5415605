"""Random problems of inverse kinematics: mechanisms of all kinds with goals of all kinds, in and out of reach."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from random_mechanisms import random_mechanism, random_turn

import mechanik as mk
from mechanik.spatial import from_position_wxyz, quaternion

FAMILIES = ("arm", "tree", "levels", "planar loop", "platform", "spatial loop", "two loops", "bands", "function")
ARMS = ("panda", "ur5", "puma560", "planar_3r", "zalo5", "dh6", "scara", "iiwa14", "grippy10")


@dataclass(frozen=True, slots=True)
class GoalCase:
    """An objective, and how to find it a target that configuration q fulfils."""

    objective: mk.Objective
    target: Callable[[np.ndarray], object]


@dataclass(frozen=True, slots=True)
class Family:
    """A solver with a generator of its targets and starts.

    Attributes:
        is_closed: whether there are loops, so that a random start is an open one.
    """

    name: str
    solver: mk.Solver
    goals: tuple[GoalCase, ...]
    is_closed: bool = False

    def draw(self, rng, near):
        """Targets and a start. One in three is out of reach by much, one by little, one in reach.

        Args:
            near: (nq,), a configuration with its loops closed.
        """
        mechanism = self.solver.mechanism
        start, goal = near, near
        if not self.is_closed:
            start, goal = mechanism.random(rng, 2)
        elif rng.random() < 0.3:  # open
            step = rng.standard_normal(mechanism.nv) * 10.0 ** rng.uniform(-3, -0.5)
            start = mechanism.clamp(mechanism.integrate(near, step))
        if self.is_closed:
            goal = mechanism.clamp(mechanism.integrate(near, rng.standard_normal(mechanism.nv) * 0.2))
        targets = [case.target(goal) for case in self.goals]
        away = (0.0, 0.3, 3.0)[rng.integers(3)]
        if away:
            targets = [_moved(rng, target, away) for target in targets]
        if rng.random() < 0.1:  # exactly where it is
            targets = [case.target(start) for case in self.goals]
        return targets[0] if len(targets) == 1 else targets, start


def _moved(rng, target, away):
    if isinstance(target, np.ndarray) and target.shape == (4, 4):
        X = from_position_wxyz(rng.standard_normal(3) * away, quaternion.exp(rng.standard_normal(3) * min(away, 1)))
        return target @ X
    if isinstance(target, np.ndarray) and target.shape == (3,):
        return target + rng.standard_normal(3) * away
    if isinstance(target, float):
        return abs(target + rng.standard_normal() * away)
    if isinstance(target, dict):
        return {name: value + rng.standard_normal() * away for name, value in target.items()}
    return target


def problems(kind: str, seed: int, count: int):
    """A family, and one after the other a start with the solution that it led to."""
    family, rng = make_family(kind, seed), np.random.default_rng([seed, 1])
    mechanism = family.solver.mechanism
    near = mechanism.q
    for _ in range(count):
        targets, q0 = family.draw(rng, near)
        solution = family.solver.solve(targets, q0)
        yield family, targets, q0, solution
        if family.is_closed and all(error.position < 1e-9 for error in solution.closure_errors.values()):
            near = solution.q


def make_family(kind: str, seed: int) -> Family:
    rng = np.random.default_rng([seed, FAMILIES.index(kind)])
    match kind:
        case "arm":
            mechanism = mk.gallery.make(ARMS[rng.integers(len(ARMS))])
            links = [list(mechanism.links)[-1]]
            goals = _random_goals(rng, mechanism, links, 1 + (rng.random() < 0.3))
        case "tree":
            mechanism = _tree(rng)
            goals = _random_goals(rng, mechanism, list(mechanism.links)[1:], int(rng.integers(1, 4)))
        case "levels":
            mechanism = _tree(rng)
            goals = _random_goals(rng, mechanism, list(mechanism.links)[1:], int(rng.integers(2, 5)), levels=3)
        case "bands":
            mechanism = _tree(rng)
            goals = _random_goals(
                rng, mechanism, list(mechanism.links)[1:], int(rng.integers(1, 4)), levels=2, kinds=BANDS
            )
        case "planar loop":
            mechanism = _planar_loop(rng)
            goals = _random_goals(rng, mechanism, list(mechanism.links)[1:], 1, kinds=("point", "values", "distance"))
        case "platform":
            ends = ("closure", "joint")[rng.integers(2)]
            mechanism = mk.gallery.stewart_platform(ends=ends) if rng.random() < 0.7 else mk.gallery.delta_robot()
            kinds = ("pose", "point", "orientation", "look")
            goals = _random_goals(rng, mechanism, ["platform"], 1 + (rng.random() < 0.3), kinds=kinds, levels=2)
        case "spatial loop":
            mechanism = random_loop(rng, 1)
            goals = _random_goals(rng, mechanism, list(mechanism.links)[1:], int(rng.integers(1, 3)), levels=2)
        case "two loops":
            mechanism = random_loop(rng, 2)
            goals = _random_goals(rng, mechanism, list(mechanism.links)[1:], int(rng.integers(1, 3)))
        case "function":
            mechanism = _tree(rng, 3)
            goals = [_function(rng, mechanism), *_random_goals(rng, mechanism, list(mechanism.links)[1:], 1, levels=2)]
    options = {}
    if rng.random() < 0.3:
        options["rest"] = mechanism.random(rng)
    if rng.random() < 0.2:
        names = [name for name, joint in mechanism.joints.items() if not joint.is_closure]
        options["lock"] = names[rng.integers(len(names))]
    solver = mk.Solver(mechanism, [goal.objective for goal in goals], **options)
    if "rest" in options:
        rest = solver.objectives[-1]
        goals = [*goals, GoalCase(rest, lambda q: None)]
    return Family(kind, solver, tuple(goals), bool(mechanism.closures))


# ---- mechanisms ---------------------------------------------------------------------------------


def _tree(rng, most=9):
    while True:
        mechanism = random_mechanism(int(rng.integers(2**32)), int(rng.integers(2, most + 1)))
        if mechanism.nv:
            return mechanism


def _planar_loop(rng):
    match rng.integers(3):
        case 0:
            mechanism = mk.gallery.four_bar()
            if rng.random() < 0.5:
                mechanism.joint("crank_joint").set_limits([-1.0], [2.0])
        case 1:
            mechanism = mk.gallery.five_bar()
            if rng.random() < 0.5:
                mechanism.joint("left_crank_joint").set_limits([1.0], [2.5])
        case _:
            mechanism = mk.gallery.slider_crank(offset=0.1)
            if rng.random() < 0.5:
                mechanism.joint("slider_joint").set_limits([0.9], [1.25])
    return mechanism


def random_loop(rng, loops: int) -> mk.Mechanism:
    """A trunk with `loops` pairs of branches; the ends of each pair are joined at their initial poses."""
    builder = mk.Builder("loops")
    limited = rng.random() < 0.5

    def hang(name, parent, child):
        at = from_position_wxyz(rng.uniform(-0.5, 0.5, 3), random_turn(rng))
        value = float(rng.uniform(-0.5, 0.5))
        limits = {"limits": (value - rng.uniform(0.1, 1), value + rng.uniform(0.1, 1))} if limited else {}
        make = builder.prismatic if rng.random() < 0.2 else builder.revolute
        make(name, parent, child, at=at, value=value, **limits)

    hang("trunk_joint", "base", "trunk")
    for loop in range(loops):
        ends = []
        for side in "ab":
            above = "trunk"
            for k in range(int(rng.integers(3, 5))):
                name = f"{side}{loop}{k}"
                hang(f"joint_{name}", above, name)
                above = name
            ends.append(above)
        kind = ("ball", "pin", "universal", "cylindrical", "weld")[rng.integers(5)]
        # with six joints a weld leaves no mobility, which is a case too
        X = from_position_wxyz(rng.uniform(-0.3, 0.3, 3), random_turn(rng))
        builder.close(f"closing{loop}", ends[0], ends[1], kind, at=X)
    hang("tail_joint", ends[1], "tail")
    return builder.build()


# ---- goals -------------------------------------------------------------------------------------

BANDS = ("at least", "at most", "between", "box", "cone", "band")
KINDS = (
    "point",
    "pose",
    "partial",
    "world",
    "hinge",
    "line",
    "plane",
    "axis",
    "orientation",
    "look",
    "distance",
    "values",
    *BANDS,
)


def _random_goals(rng, mechanism, links, count, kinds=KINDS, levels=1):
    goals = []
    for number in range(count):
        link = links[rng.integers(len(links))]
        kind = kinds[rng.integers(len(kinds))]
        options = {
            "level": 1 if levels == 1 else int(rng.integers(levels)),
            "weight": float(rng.choice([1.0, 0.3, 4.0])),
        }
        options["name"] = f"goal {number}"
        goals.append(_random_goal(rng, mechanism, link, kind, options))
    return goals


def _random_goal(rng, mechanism, link, kind, options):
    p_link, axis, direction = rng.uniform(-0.3, 0.3, 3), random_turn(rng)[1:], random_turn(rng)[1:]
    X_tool = from_position_wxyz(p_link, random_turn(rng))
    zero = np.zeros(3)

    def position(q):
        return (mechanism.pose(link, q) @ [*p_link, 1.0])[:3]

    def away(q):
        return float(np.linalg.norm(position(q)))

    match kind:
        case "point":
            return GoalCase(mk.PositionGoal(link, zero, p_link, **options), position)
        case "pose":
            return GoalCase(
                mk.PoseGoal(link, np.eye(4), at=X_tool, **options), lambda q: mechanism.pose(link, q) @ X_tool
            )
        case "partial" | "world":
            dof = [name for name in ("X", "Y", "Z", "EX", "EY", "EZ") if rng.random() < 0.6] or ["Z"]
            axes = "goal" if kind == "partial" else "world"
            goal = mk.PoseGoal(link, np.eye(4), at=X_tool, dof=dof, axes=axes, **options)
            return GoalCase(goal, lambda q: mechanism.pose(link, q) @ X_tool)
        case "hinge":
            return GoalCase(mk.HingeGoal(link, zero, direction, p_link, axis, **options), position)
        case "line":
            return GoalCase(mk.OnLine(link, zero, direction, p_link, **options), position)
        case "plane":
            return GoalCase(mk.OnPlane(link, zero, direction, p_link, **options), position)
        case "axis":
            return GoalCase(
                mk.AxisGoal(link, direction, axis, **options), lambda q: mechanism.pose(link, q)[:3, :3] @ axis
            )
        case "orientation":
            goal = mk.OrientationGoal(link, np.eye(3), **options)
            return GoalCase(goal, lambda q: mechanism.pose(link, q)[:3, :3])
        case "look":
            ahead = p_link + 2.0 * axis
            return GoalCase(
                mk.LookAt(link, (1, 2, 3), axis, p_link, **options),
                lambda q: (mechanism.pose(link, q) @ [*ahead, 1])[:3],
            )
        case "distance":
            return GoalCase(mk.Distance(link, at=p_link, equal=0.5, **options), away)
        case "at least":
            return GoalCase(mk.Distance(link, at=p_link, at_least=0.5, **options), away)
        case "at most":
            return GoalCase(mk.Distance(link, at=p_link, at_most=0.5, **options), away)
        case "between":
            return GoalCase(mk.Distance(link, at=p_link, at_least=0.5, at_most=0.7, **options), lambda q: None)
        case "box":
            size = rng.uniform(0.02, 0.5, 3)
            return GoalCase(mk.InBox(link, -size, size, at=p_link, **options), position)
        case "cone":
            goal = mk.InCone(link, axis, direction, float(rng.uniform(0.1, 1.5)), **options)
            return GoalCase(goal, lambda q: mechanism.pose(link, q)[:3, :3] @ axis)
        case "band":
            coordinate = ("x", "y", "z")[rng.integers(3)]
            return GoalCase(mk.InBand(link, coordinate, -0.1, 0.2, **options), position)
        case "values":
            space = mechanism.space
            names = [space.q_names[k] for k in space.scalars_q]
            if not names:
                return _random_goal(rng, mechanism, link, "point", options)
            chosen = [names[k] for k in rng.choice(len(names), size=min(len(names), 2), replace=False)]
            where = [space.q_names.index(name) for name in chosen]
            goal = mk.JointValues(dict.fromkeys(chosen, 0.0), **options)
            return GoalCase(goal, lambda q: {name: float(q[k]) for name, k in zip(chosen, where, strict=True)})
    raise AssertionError(kind)


def _function(rng, mechanism):
    """Numbers that depend on q smoothly, and can often not all be zero."""
    A, b = rng.uniform(-1, 1, (2, mechanism.nq)), rng.uniform(-1, 1, 2) * math.sqrt(mechanism.nq)

    def function(mechanism, q):
        return A @ np.sin(q) - b

    return GoalCase(mk.Custom(function, residual_size=2, level=1, name="function"), lambda q: None)
