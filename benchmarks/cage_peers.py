"""Another library among the obstacles of `cage.py`, which runs this: cage_peers.py PEER FOLDER SECONDS HAND

Each is called as in its documentation: one step of a quadratic program at a time, with limits and distances as
constraints, until the hand reaches the target. Neither documents restarts, so a start that fails after STEPS steps is
replaced by a random one, RESTARTS times at most; starts in collision are skipped, since both require free starts.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import logging
import sys
from importlib.metadata import version
from pathlib import Path
from time import process_time

import numpy as np

STEPS, RESTARTS, TOLERANCE = 60, 30, 1e-6
NEAREST_PAIRS, DT, GAIN, MARGIN = 60, 0.05, 10.0, 1e-3
"""Of pink's barrier: number of pairs it checks (about as fast as with 20), time step (s), and the share of a
distance that may be used per second; and the clearance (m) for both."""


def model_of(folder: Path):
    """Pinocchio's model of the arm, its shapes, and only the pairs that `cage.py` checks."""
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(folder / "arm.urdf"))
    shapes = pin.buildGeomFromUrdf(model, str(folder / "arm.urdf"), pin.GeometryType.COLLISION)
    shape_indices: dict[str, list[int]] = {}
    for k, geometry in enumerate(shapes.geometryObjects):
        shape_indices.setdefault(model.frames[geometry.parentFrame].name, []).append(k)
    for a, b in json.loads((folder / "pairs.json").read_text(encoding="utf-8")):
        for i in shape_indices[a]:
            for j in shape_indices[b]:
                shapes.addCollisionPair(pin.CollisionPair(i, j))
    return pin, model, shapes


def pink_driver(folder: Path, hand: str):
    import pink
    from pink.barriers import SelfCollisionBarrier
    from pink.limits import ConfigurationLimit
    from pink.tasks import FrameTask

    logging.disable(logging.WARNING)  # it warns of starts that are outside their limits by rounding
    pin, model, shapes = model_of(folder)
    data, geometry_data = model.createData(), shapes.createData()
    for request in geometry_data.distanceRequests:
        request.enable_signed_distance = True
    task = FrameTask(hand, position_cost=1.0, orientation_cost=1.0, lm_damping=1e-6)
    # with its default safe_displacement_gain of 1 none of 40 targets was reached, so it is off
    barrier = SelfCollisionBarrier(NEAREST_PAIRS, gain=GAIN, safe_displacement_gain=0.0, d_min=MARGIN)
    limits = [ConfigurationLimit(model)]

    def is_free(q):
        return not pin.computeCollisions(model, data, shapes, geometry_data, q, True)

    def attempt(X, q):
        task.set_target(pin.SE3(X))
        configuration = pink.Configuration(model, data, q, collision_model=shapes, collision_data=geometry_data)
        for _ in range(STEPS):
            try:
                v = pink.solve_ik(
                    configuration, [task], DT, solver="daqp", damping=1e-10, limits=limits, barriers=[barrier],
                    safety_break=False,
                )  # fmt: skip
            except Exception:  # no solution of its quadratic program: another start
                return None
            configuration.integrate_inplace(v, DT)
            error = task.compute_error(configuration)
            if np.linalg.norm(error[:3]) < TOLERANCE and np.linalg.norm(error[3:]) < TOLERANCE:
                return configuration.q if is_free(configuration.q) else None
        return None

    return is_free, attempt, f"pink {version('pin-pink')}"


def placo_driver(folder: Path, hand: str):
    import placo

    robot = placo.RobotWrapper(str(folder / "arm.urdf"))
    robot.load_collision_pairs(str(folder / "pairs.json"))
    solver = placo.KinematicsSolver(robot)
    solver.mask_fbase(True)
    solver.enable_joint_limits(True)
    solver.enable_velocity_limits(False)
    task = solver.add_frame_task(hand, np.eye(4))
    task.configure("hand", "soft", 1.0, 1.0)
    avoid = solver.add_avoid_self_collisions_constraint()
    avoid.configure("avoid", "hard")
    avoid.self_collisions_margin, avoid.self_collisions_trigger = MARGIN, 0.05
    solver.add_regularization_task(1e-9)
    position_task, orientation_task, free = task.position(), task.orientation(), robot.state.q[:7].copy()

    def set_configuration(q):
        robot.state.q = np.concatenate([free, q])
        robot.update_kinematics()

    def is_free(q):
        set_configuration(q)
        return len(robot.self_collisions(True)) == 0

    def attempt(X, q):
        task.T_world_frame = X
        set_configuration(q)
        for _ in range(STEPS):
            try:
                solver.solve(True)
            except Exception:
                return None
            robot.update_kinematics()
            if position_task.error_norm() < TOLERANCE and orientation_task.error_norm() < TOLERANCE:
                q_solution = robot.state.q[7:].copy()
                return q_solution if len(robot.self_collisions(True)) == 0 else None
        return None

    return is_free, attempt, f"placo {version('placo')}"


def main() -> None:
    peer, folder, seconds, hand = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    is_free, attempt, name = {"pink": pink_driver, "placo": placo_driver}[peer](folder, hand)
    data = np.load(folder / "targets.npz")
    rng, lower, upper = np.random.default_rng(0), data["lower"], data["upper"]

    def free_start():
        while True:
            q = rng.uniform(lower, upper)
            if is_free(q):
                return q

    assert all(is_free(q) for q in data["free"][:100]), "its shapes are not those of the cage"
    solved, solutions, start = [], [], process_time()
    for X in data["X"]:
        if process_time() - start > seconds:
            break
        q_solution = None
        for _ in range(1 + RESTARTS):
            q_solution = attempt(X, free_start())
            if q_solution is not None:
                break
        solved.append(q_solution is not None)
        solutions.append(np.zeros(len(lower)) if q_solution is None else q_solution)
    spent = process_time() - start
    np.savez(folder / f"{peer}.npz", solved=np.array(solved), q=np.array(solutions), seconds=spent, version=name)


if __name__ == "__main__":
    main()
