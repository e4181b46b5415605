"""Paths past singular configurations and near limits: python benchmarks/follow.py [--poses 1000]

A Panda, a UR5 and a Stewart platform follow poses that are evenly spaced along their paths. Printed: the largest step
of a dof from pose to pose (rad or m), the median, their ratio and where the largest is; how far a pose is missed;
how near the path comes to a limit and to a singular configuration; and the seconds of processor time,
choosing branches included. Then paths that no single branch can follow, with the position of the break; and the time to
solve all poses again from their solutions.
Fails if a ratio is above 3, a pose is missed by more than 1e-6, or a broken path is not reported.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path as File
from time import process_time as clock

import numpy as np

import mechanik as mk
from mechanik.motion.follow import CartesianPath, Line, Path, follow
from mechanik.spatial import rotation

sys.path.insert(0, str(File(__file__).parents[1] / "tests" / "motion" / "follow"))
from near_singular_paths import (
    panda_stretched,
    panda_two_branches,
    stewart_near_singularity,
    ur5_near_wrist_singularity,
)

EVEN, EXACT = 3.0, 1e-6
Limits = dict[str, tuple[float, float]]


def pose_error(path: Path, link: str, poses: np.ndarray) -> float:
    """The farthest that a link is from its pose, m or rad."""
    X = path.mechanism.pose(link, path.q)
    turns = rotation.log(np.swapaxes(X[:, :3, :3], 1, 2) @ poses[:, :3, :3])
    return max(float(np.abs(X[:, :3, 3] - poses[:, :3, 3]).max()), float(np.linalg.norm(turns, axis=1).max()))


def limit_distance(path: Path, limits: Limits) -> float:
    """How near the path comes to a limit of a dof that moves, m or rad."""
    space = path.mechanism.space
    lower, upper = space.lower.copy(), space.upper.copy()
    for name, pair in limits.items():
        lower[space.q_names.index(name)], upper[space.q_names.index(name)] = pair
    moves = np.ptp(path.q, axis=0) > 1e-9
    return float(np.minimum(path.q - lower, upper - path.q)[:, moves].min())


def leg_singularity(q: np.ndarray, stewart: mk.Mechanism) -> float:
    """The smallest singular value of the six legs' lines, lengths in 0.2 m: 0 where the platform is singular."""
    X = dict(zip(stewart.links, stewart.poses(q), strict=True))
    lines = []
    for k in range(1, 7):
        piston, centre = X[f"piston{k}"], X["platform"][:3, 3]
        along = X[f"piston{k}"][:3, 3] - X[f"leg{k}"][:3, 3]
        along = along / np.linalg.norm(along)
        lines.append(np.append(along, np.cross(piston[:3, 3] - centre, along) / 0.2))
    return float(np.linalg.svd(np.array(lines), compute_uv=False)[-1])


def singular(path: Path, link: str) -> float:
    """The smallest singular value along the path, of the Jacobian of a link or of the platform's legs."""
    m = path.mechanism
    if m.closures:
        return min(leg_singularity(q, m) for q in path.q[:: max(len(path) // 100, 1)])
    return float(np.linalg.svd(m.jacobian(link, path.q), compute_uv=False)[:, -1].min())


def run(
    title: str,
    mechanism: mk.Mechanism,
    link: str,
    cartesian_path: CartesianPath,
    count: int,
    limits: Limits | None = None,
) -> bool:
    start = clock()
    result = follow(mechanism, link, cartesian_path, count, limits=limits)
    seconds = clock() - start
    if not result.success or result.path is None:
        print(f"{title}: {result.message}")
        return False
    path, error = result.path, pose_error(result.path, link, cartesian_path.sample(count))
    ratio, worst = path.largest_step / path.median_step, path.s[int(np.argmax(path.steps))]
    print(
        f"{title}: largest {path.largest_step:.3g} (at s = {worst:.3f}), median {path.median_step:.3g}, ratio "
        f"{ratio:.2f}; pose error {error:.1e}; loops {path.closure_error():.0e}; "
        f"distance to limits {limit_distance(path, limits or {}):.3g}; "
        f"smallest singular value {singular(path, link):.2g}; {seconds:.2f} s"
    )
    return ratio <= EVEN and error <= EXACT


def breaks(title: str, mechanism: mk.Mechanism, link: str, cartesian_path: CartesianPath, count: int) -> bool:
    start = clock()
    result = follow(mechanism, link, cartesian_path, count)
    print(f"{title}: {result.message}; {clock() - start:.2f} s")
    return not result.success


def again(mechanism: mk.Mechanism, link: str, cartesian_path: CartesianPath, count: int) -> None:
    """All poses at once, each from the solution one step before."""
    path = follow(mechanism, link, cartesian_path, count).require()
    X = cartesian_path.sample(count)
    solver = mk.Solver(mechanism, mk.PoseGoal(link, X[0]))
    times = []
    for _ in range(20):
        start = clock()
        solver.solve_batch(X[1:], path.q[:-1], threads=1)
        times.append(clock() - start)
    print(f"from pose to pose, branches known: {1e6 * min(times) / (count - 1):.2f} us a pose (best of {len(times)})")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--poses", type=int, default=1000)
    count = arguments.parse_args().poses
    panda, ur5, stewart = mk.gallery.panda(), mk.gallery.ur5(), mk.gallery.stewart_platform()
    mk.warm_up()
    hand, tool = "panda_hand_tcp", "tool0"
    fine = run("Panda, stretched, at limits", panda, hand, panda_stretched(), count)
    for tilt in (0.0, 0.3):
        how = "through" if tilt == 0.0 else f"{tilt:g} rad past"
        fine &= run(f"UR5, {how} the wrist singularity", ur5, tool, ur5_near_wrist_singularity(tilt), count)
    pan = follow(ur5, tool, ur5_near_wrist_singularity(0.0), count).require().q[:, 0]
    tight = {"shoulder_pan_joint": (float(pan.min()) - 1e-3, float(pan.max()) + 1e-3)}
    fine &= run("UR5, the same, 1 mrad from limits", ur5, tool, ur5_near_wrist_singularity(0.0), count, limits=tight)
    fine &= run(
        "Stewart, singular at 90 degrees",
        stewart,
        "platform",
        stewart_near_singularity(stewart.pose("platform")),
        count,
    )
    print("nearer to the wrist singularity the steps must grow:")
    for tilt in (0.27, 0.25, 0.2, 0.1, 0.05):
        run(f"UR5, {tilt:g} rad past it", ur5, tool, ur5_near_wrist_singularity(tilt), count)
    fine &= breaks("Panda across", panda, hand, panda_two_branches(), count)
    low = ur5.pose(tool)
    far = low.copy()
    far[:3, 3] += -1.1, 0.8, -0.4
    fine &= breaks("UR5 too far", ur5, tool, Line(low, far), count)
    again(panda, hand, panda_stretched(), count)
    print("fine" if fine else "NOT FINE")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
