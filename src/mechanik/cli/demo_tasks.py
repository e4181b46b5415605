"""Tasks of `mechanik demo`: an arm, mechanisms with loops and a humanoid, with targets within and out of reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanik import gallery
from mechanik.model import Mechanism
from mechanik.objectives import CentreOfMass, JointValues, LookAt, Objective, PoseGoal, PositionGoal
from mechanik.processor_clock import seconds_per_call
from mechanik.solver import Solution, Solver
from mechanik.spatial import make_pose, rotation
from mechanik.spatial.array import Array


@dataclass(frozen=True, slots=True)
class DemoTask:
    """A solve task of the demo.

    Attributes:
        gallery_name: name of the mechanism in the gallery.
        description: short text for the table.
        mechanism: the mechanism, in the configuration from which solves start.
        objectives: objectives to solve for.
        target: target of the only objective, passed to each `Solver.solve`; None: the objectives' own targets.
    """

    gallery_name: str
    description: str
    mechanism: Mechanism
    objectives: Sequence[Objective]
    target: Array | float | None = None


@dataclass(frozen=True, slots=True)
class DemoResult:
    """Solution and time of a demo task.

    Attributes:
        task: the task.
        solution: its solution.
        position_error, rotation_error: largest errors of all objectives, m and rad.
        closure_error: largest closure error of all loops, m or rad; None without loops.
        seconds: processor time of one solve, measured after a first solve that loads the kernels.
    """

    task: DemoTask
    solution: Solution
    position_error: float
    rotation_error: float
    closure_error: float | None
    seconds: float


def make_demo_tasks() -> list[DemoTask]:
    """Return the demo tasks; each starts from the home configuration of its mechanism."""
    return [*_arm_tasks(), *_loop_tasks(), *_humanoid_tasks()]


def run_demo_task(task: DemoTask) -> DemoResult:
    """Solve a demo task and time the solve."""
    solver, q0 = Solver(task.mechanism, task.objectives), task.mechanism.q
    solution = solver.solve(task.target, q0)
    seconds = seconds_per_call(lambda: solver.solve(task.target, q0))
    errors = solution.errors.values()
    closure_errors = [max(error.position, error.rotation) for error in solution.closure_errors.values()]
    return DemoResult(
        task,
        solution,
        position_error=max(error.position for error in errors),
        rotation_error=max(error.rotation for error in errors),
        closure_error=max(closure_errors) if closure_errors else None,
        seconds=seconds,
    )


def _arm_tasks() -> list[DemoTask]:
    arm = gallery.panda()
    X_pointing_down = make_pose(rotation.about_x(np.pi), (0.45, 0.25, 0.30))
    unreachable_point = np.array([2.0, 0.0, 0.5])
    return [
        DemoTask("panda", "hand to a pose", arm, [PoseGoal("panda_hand_tcp", X_pointing_down)], X_pointing_down),
        DemoTask(
            "panda",
            "hand 2 m ahead: out of reach",
            arm,
            [PositionGoal("panda_hand_tcp", unreachable_point)],
            unreachable_point,
        ),
    ]


def _loop_tasks() -> list[DemoTask]:
    X_tilted = make_pose(rotation.about_y(0.12) @ rotation.about_z(0.2), (0.03, -0.02, 0.32))
    linkage, hexapod, unreachable_point = gallery.four_bar(), gallery.stewart_platform(), np.array([0.0, 0.0, 1.0])
    return [
        DemoTask("four_bar", "crank to 2.5 rad", linkage, [JointValues({"crank_joint": 2.5})], 2.5),
        DemoTask("stewart_platform", "platform to a pose", hexapod, [PoseGoal("platform", X_tilted)], X_tilted),
        DemoTask(
            "stewart_platform",
            "platform 1 m up: out of reach",
            hexapod,
            [PositionGoal("platform", unreachable_point)],
            unreachable_point,
        ),
    ]


def _humanoid_tasks() -> list[DemoTask]:
    humanoid = gallery.humanoid()
    reachable_point, unreachable_point = (0.35, 0.30, 0.15), (1.5, 0.6, 1.2)
    feet = [PoseGoal(foot, humanoid.pose(foot), level=0, name=foot) for foot in ("left_foot", "right_foot")]
    balance = CentreOfMass((0.02, 0.0, 0.0), dof=["X", "Y"], level=0, name="balance")

    def reach(target: tuple[float, float, float]) -> list[Objective]:
        hand = PositionGoal("left_hand", target, at=(0, 0, -0.15), level=1, name="hand")
        return [*feet, balance, hand, LookAt("eyes", target, axis=(1, 0, 0), level=2, name="gaze")]

    return [
        DemoTask("humanoid", "feet, balance, hand near the ground, look at it", humanoid, reach(reachable_point)),
        DemoTask("humanoid", "the same with the hand out of reach", humanoid, reach(unreachable_point)),
    ]
