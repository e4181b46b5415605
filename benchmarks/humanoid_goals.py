"""27 weighted pose goals on a humanoid with 29 joints and a floating base: frames per second and cost, against mink.

    python benchmarks/humanoid_goals.py [--frames 300] [--tolerance 1e-6]

The tree has the joints, limits and about the dimensions of a Unitree G1. The targets are those of a smooth motion of
the tree, stretched by 8 % and with a constant offset for each body, so no configuration meets them all. Both solvers
start each frame at their last solution. mink runs its usual loop: `solve_ik` with frame tasks, limits of the
configuration and DAQP, one to ten times a frame. Costs are in the metric of mink, the sum of squares of the weighted
errors of its tasks, mean over the frames. Times are processor times. mink is optional: `pip install mink`.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
from collections.abc import Iterator
from time import process_time

import numpy as np

import mechanik as mk
from mechanik.spatial import make_pose, rotation

# joint, parent, child, position of the joint in the parent (m), axis, limits (rad); of the left side
LEG = (
    ("hip_pitch", "pelvis", "hip_pitch_link", (0, 0.064, -0.103), "y", -2.53, 2.88),
    ("hip_roll", "hip_pitch_link", "hip_roll_link", (0, 0.052, -0.03), "x", -0.52, 2.96),
    ("hip_yaw", "hip_roll_link", "hip_yaw_link", (0.025, 0, -0.124), "z", -2.75, 2.75),
    ("knee", "hip_yaw_link", "knee_link", (-0.078, 0.002, -0.177), "y", -0.087, 2.88),
    ("ankle_pitch", "knee_link", "ankle_pitch_link", (0, 0, -0.3), "y", -0.873, 0.523),
    ("ankle_roll", "ankle_pitch_link", "ankle_roll_link", (0, 0, -0.0176), "x", -0.2618, 0.2618),
)
WAIST = (
    ("waist_yaw", "pelvis", "waist_yaw_link", (0, 0, 0), "z", -2.618, 2.618),
    ("waist_roll", "waist_yaw_link", "waist_roll_link", (-0.004, 0, 0.044), "x", -0.52, 0.52),
    ("waist_pitch", "waist_roll_link", "torso_link", (0, 0, 0), "y", -0.52, 0.52),
)
ARM = (
    ("shoulder_pitch", "torso_link", "shoulder_pitch_link", (0.004, 0.1, 0.238), "y", -3.09, 2.67),
    ("shoulder_roll", "shoulder_pitch_link", "shoulder_roll_link", (0, 0.038, -0.0138), "x", -1.588, 2.2515),
    ("shoulder_yaw", "shoulder_roll_link", "shoulder_yaw_link", (0, 0.00624, -0.1032), "z", -2.618, 2.618),
    ("elbow", "shoulder_yaw_link", "elbow_link", (0.0158, 0, -0.0805), "y", -1.047, 2.094),
    ("wrist_roll", "elbow_link", "wrist_roll_link", (0.1, 0.0019, -0.01), "x", -1.97, 1.97),
    ("wrist_pitch", "wrist_roll_link", "wrist_pitch_link", (0.038, 0, 0), "y", -1.614, 1.614),
    ("wrist_yaw", "wrist_pitch_link", "wrist_yaw_link", (0.046, 0, 0), "z", -1.614, 1.614),
)
WITHOUT_GOAL = ("waist_yaw_link", "left_ankle_pitch_link", "right_ankle_pitch_link")
AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}
FRAME_SECONDS, STRETCH = 1 / 30, 1.08


def joint_rows() -> Iterator[tuple]:
    """Yield all 29 joints, each after its parent, in the order of q."""
    for rows, sides in ((LEG, (1, -1)), (WAIST, (0,)), (ARM, (1, -1))):
        for side in sides:
            prefix = {1: "left_", -1: "right_", 0: ""}[side]
            for name, parent, child, (x, y, z), axis, low, high in rows:
                parent_prefix = "" if parent in ("pelvis", "torso_link") else prefix
                child_prefix = "" if child == "torso_link" else prefix
                if side == -1 and axis != "y":
                    low, high = -high, -low
                position = (x, -y if side == -1 else y, z)
                yield prefix + name, parent_prefix + parent, child_prefix + child, position, axis, low, high


def make_robot() -> mk.Mechanism:
    """Build the tree."""
    builder = mk.Builder("humanoid with 29 joints")
    builder.free("base", "world", "pelvis")
    for name, parent, child, position, axis, low, high in joint_rows():
        builder.revolute(name, parent, child, at=position, axis=axis, limits=(low, high))
    return builder.build()


def make_mjcf() -> str:
    """Return the same tree as MJCF."""
    children: dict[str, list[tuple]] = {}
    for row in joint_rows():
        children.setdefault(row[1], []).append(row)

    def body(name: str, position: tuple, joint: str) -> str:
        inner = "".join(
            body(
                child, at,
                f'<joint name="{joint_name}" type="hinge" axis="{AXES[axis]}" limited="true" range="{low} {high}"/>',
            )
            for joint_name, _, child, at, axis, low, high in children.get(name, ())
        )  # fmt: skip
        inertial = '<inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>'
        return f'<body name="{name}" pos="{" ".join(map(str, position))}">{joint}{inertial}{inner}</body>'

    root = body("pelvis", (0, 0, 0), '<freejoint name="base"/>')
    return f'<mujoco><compiler angle="radian"/><worldbody>{root}</worldbody></mujoco>'


def motion(robot: mk.Mechanism, t: float) -> np.ndarray:
    """Return the configuration of a smooth motion at the time t, s."""
    rng = np.random.default_rng(3)
    lower, upper = robot.space.lower[7:], robot.space.upper[7:]
    middle = 0.5 * np.clip(0.0, lower, upper) + 0.25 * (lower + upper)
    amplitude = 0.35 * np.minimum(upper - middle, middle - lower) * rng.uniform(0.3, 1.0, len(lower))
    phase, frequency = rng.uniform(0.0, 2.0 * np.pi, len(lower)), rng.choice([1.0, 1.0, 2.0], len(lower))
    yaw = 0.3 * np.sin(0.5 * t)
    wxyz = np.array([np.cos(0.5 * yaw), 0.02 * np.sin(t), 0.02 * np.cos(t), np.sin(0.5 * yaw)])
    position = 0.5 * np.sin(0.4 * t), 0.3 * np.cos(0.3 * t), 0.75 + 0.03 * np.sin(2.0 * t)
    return np.concatenate([position, wxyz / np.linalg.norm(wxyz), middle + amplitude * np.sin(frequency * t + phase)])


def make_targets(robot: mk.Mechanism, bodies: list[str], frames: int) -> list[dict[str, np.ndarray]]:
    """Return the target poses of each frame."""
    rng, targets = np.random.default_rng(1), []
    offsets = {b: make_pose(rotation.exp(rng.normal(0, 0.1, 3)), rng.normal(0, 0.02, 3)) for b in bodies}
    for k in range(frames):
        q, frame = motion(robot, k * FRAME_SECONDS), {}
        for b in bodies:
            X = robot.pose(b, q) @ offsets[b]
            frame[b] = make_pose(X[:3, :3], STRETCH * X[:3, 3])
        targets.append(frame)
    return targets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--tolerance", type=float, default=1e-6, help="progress_tolerance of Mechanik")
    arguments = parser.parse_args()
    robot = make_robot()
    bodies = [name for name in robot.links if name not in ("world", *WITHOUT_GOAL)]
    rng = np.random.default_rng(2)
    costs = {b: (float(rng.choice([1.0, 3.0, 10.0])), float(rng.choice([0.3, 1.0, 3.0]))) for b in bodies}
    targets = make_targets(robot, bodies, arguments.frames)
    print(f"{len(bodies)} goals, {robot.nv} dofs, {arguments.frames} frames")

    runs: list[tuple[str, float, list[np.ndarray]]] = []
    for name, tolerance in (("default", None), (f"progress_tolerance={arguments.tolerance:g}", arguments.tolerance)):
        goals = [
            mk.PoseGoal(b, targets[0][b], name=b, position_weight=costs[b][0], rotation_weight=costs[b][1])
            for b in bodies
        ]
        solver = mk.Solver(robot, goals, progress_tolerance=tolerance, restarts=0)
        solver.solve(targets[0], motion(robot, 0.0))
        q, solutions, iterations = motion(robot, 0.0), [], 0
        start = process_time()
        for frame in targets:
            solution = solver.solve(frame, q)
            q = solution.q
            iterations += solution.iterations
            solutions.append(q)
        seconds = (process_time() - start) / len(targets)
        runs.append((f"mechanik, {name}, {iterations / len(targets):.1f} iterations", seconds, solutions))
    try:
        import mink
        import mujoco
    except ImportError:
        for name, seconds, _ in runs:
            print(f"{name:60s} {1 / seconds:8.0f} frames/s")
        print("mink is not installed")
        return

    model = mujoco.MjModel.from_xml_string(make_mjcf())
    tasks = [mink.FrameTask(b, "body", position_cost=costs[b][0], orientation_cost=costs[b][1]) for b in bodies]
    limits = [mink.ConfigurationLimit(model)]
    poses = [[mink.SE3.from_matrix(frame[b]) for b in bodies] for frame in targets]
    for count in (1, 2, 3, 5, 10):
        configuration, solutions = mink.Configuration(model, motion(robot, 0.0)), []
        start = process_time()
        for frame_poses in poses:
            for task, pose in zip(tasks, frame_poses, strict=True):
                task.set_target(pose)
            for _ in range(count):
                velocity = mink.solve_ik(configuration, tasks, FRAME_SECONDS, "daqp", damping=1e-12, limits=limits)
                configuration.integrate_inplace(velocity, FRAME_SECONDS)
            solutions.append(configuration.q.copy())
        runs.append((f"mink, {count} iterations", (process_time() - start) / len(targets), solutions))

    configuration = mink.Configuration(model)
    for name, seconds, solutions in runs:
        total = 0.0
        for frame_poses, q in zip(poses, solutions, strict=True):
            configuration.update(q)
            for task, pose in zip(tasks, frame_poses, strict=True):
                task.set_target(pose)
                total += float(np.sum((task.cost * task.compute_error(configuration)) ** 2))
        print(f"{name:60s} {1 / seconds:8.0f} frames/s, cost {total / len(solutions):.6f}")


if __name__ == "__main__":
    main()
