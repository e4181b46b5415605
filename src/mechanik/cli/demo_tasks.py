"""What `mechanik demo` asks of mechanisms of the gallery: arms, loops and a body, within reach and out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanik import gallery
from mechanik.ik import Solver
from mechanik.mechanism import Mechanism
from mechanik.objectives import CentreOfMass, JointValues, LookAt, Objective, Point, PoseGoal
from mechanik.solvers import Solution
from mechanik.spatial import make, rotation
from mechanik.spatial.array import Array
from mechanik.stopwatch import seconds_per_call


@dataclass(frozen=True, slots=True)
class Task:
    """
    Attributes:
        mechanism: its name in the gallery.
        asked: for people.
        target: of the only goal, given to each solve as a loop would; None: as the goals have it.
    """

    mechanism: str
    asked: str
    robot: Mechanism
    goals: Sequence[Objective]
    target: Array | float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    Attributes:
        position, angle: of the objective that is farthest off; m and rad.
        gap: of the loop that stands open farthest, m or rad; None where there are no loops.
        seconds: of one solve from home, with everything compiled: the mean of some, in processor time.
    """

    task: Task
    solution: Solution
    position: float
    angle: float
    gap: float | None
    seconds: float


def tasks() -> list[Task]:
    """Each from the configuration "home"."""
    return [*_arm(), *_loops(), *_body()]


def carry_out(task: Task) -> Outcome:
    solver, q0 = Solver(task.robot, task.goals), task.robot.q
    solution = solver.solve(task.target, q0)
    seconds = seconds_per_call(lambda: solver.solve(task.target, q0))
    errors = solution.errors.values()
    gaps = [max(error.position, error.rotation) for error in solution.closure_errors.values()]
    return Outcome(
        task,
        solution,
        position=max(error.position for error in errors),
        angle=max(error.rotation for error in errors),
        gap=max(gaps) if gaps else None,
        seconds=seconds,
    )


def _arm() -> list[Task]:
    arm = gallery.panda()
    pointing_down = make(rotation.turn_x(np.pi), (0.45, 0.25, 0.30))
    ahead = np.array([2.0, 0.0, 0.5])
    return [
        Task("panda", "hand to a pose", arm, [PoseGoal("panda_hand_tcp", pointing_down)], pointing_down),
        Task("panda", "hand 2 m ahead: out of reach", arm, [Point("panda_hand_tcp", ahead)], ahead),
    ]


def _loops() -> list[Task]:
    tilted = make(rotation.turn_y(0.12) @ rotation.turn_z(0.2), (0.03, -0.02, 0.32))
    linkage, hexapod, up = gallery.four_bar(), gallery.stewart_platform(), np.array([0.0, 0.0, 1.0])
    return [
        Task("four_bar", "crank to 2.5 rad", linkage, [JointValues({"crank_joint": 2.5})], 2.5),
        Task("stewart_platform", "platform to a pose", hexapod, [PoseGoal("platform", tilted)], tilted),
        Task("stewart_platform", "platform 1 m up: out of reach", hexapod, [Point("platform", up)], up),
    ]


def _body() -> list[Task]:
    body = gallery.humanoid()
    near, far = (0.35, 0.30, 0.15), (1.5, 0.6, 1.2)
    feet = [PoseGoal(foot, body.pose(foot), level=0, name=foot) for foot in ("left_foot", "right_foot")]
    balance = CentreOfMass((0.02, 0.0, 0.0), dof=["X", "Y"], level=0, name="balance")

    def reach(target: tuple[float, float, float]) -> list[Objective]:
        hand = Point("left_hand", target, at=(0, 0, -0.15), level=1, name="hand")
        return [*feet, balance, hand, LookAt("eyes", target, axis=(1, 0, 0), level=2, name="gaze")]

    return [
        Task("humanoid", "feet, balance, hand to the ground, look at it", body, reach(near)),
        Task("humanoid", "the same with the hand out of reach", body, reach(far)),
    ]
