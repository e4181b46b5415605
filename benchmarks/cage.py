"""Collision-free solutions among 50 obstacles: python benchmarks/cage.py [--quick] [--seed N] [--peers PYTHON]

A Panda, whose collision shapes are capsules fitted to the meshes of its manufacturer, among 50 boxes, spheres and
capsules that leave few of its configurations free. Targets are poses of its hand at free configurations drawn within
limits, so each is reachable. They are solved on one core in a batch and one by one, timed by processor time, since a
busy machine disturbs wall time. coal checks every success on the same shapes, and forward kinematics checks its hand:
one solution in collision or off its target fails the run.
With --peers, a Python that has pin-pink and placo: the same arm, shapes, pairs and targets (as many as fit into the
seconds) for both, as `benchmarks/cage_peers.py` calls them. pyroki is not on the package index, and is not compared.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from time import process_time

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from coal_collider import CoalCollider

import mechanik as mk
from mechanik.collision import Collider, Obstacle
from mechanik.model.shapes import Box, Capsule, Sphere
from mechanik.spatial import rotation

HAND = "panda_link8"
OBSTACLES, TARGETS, SINGLES = 50, 10_000, 2_000
TOLERANCE = 1e-6
RATE, SHARE = 5_000.0, 0.99
"""Goals: free solutions per second on one core, and the share of targets that have one."""
SECONDS = 60.0
"""s, for each peer."""


def cage(seed: int = 0) -> list[Obstacle]:
    """Obstacles around the arm, 0.28 to 0.5 m from its axis, up to 1.15 m high."""
    rng, obstacles = np.random.default_rng(seed), list[Obstacle]()
    for k in range(OBSTACLES):
        angle, far, height = rng.uniform(-np.pi, np.pi), rng.uniform(0.28, 0.5), rng.uniform(-0.05, 1.15)
        shape = (
            Box(tuple(rng.uniform(0.06, 0.24, 3).tolist())),
            Sphere(rng.uniform(0.04, 0.1)),
            Capsule(rng.uniform(0.02, 0.05), rng.uniform(0.2, 0.6)),
        )[k % 3]
        wxyz = rng.normal(size=4)
        position = far * np.cos(angle), far * np.sin(angle), height
        name = f"{type(shape).__name__.lower()} {k}"
        obstacles.append(Obstacle(shape, position, wxyz / np.linalg.norm(wxyz), name=name))
    return obstacles


def free_configurations(collider: Collider, count: int, seed: int = 1) -> tuple[np.ndarray, float]:
    """(count, nq), and the share of all configurations that is free."""
    rng, blocks, drawn = np.random.default_rng(seed), list[np.ndarray](), 0
    while sum(map(len, blocks)) < count:
        q = collider.mechanism.random(rng, 4096)
        drawn += len(q)
        blocks.append(q[collider.is_free(q)])
    q = np.concatenate(blocks)
    return q[:count], len(q) / drawn


def count_faults(arm: mk.Mechanism, exact: CoalCollider, q: np.ndarray, X: np.ndarray) -> tuple[int, int, float]:
    """Of solutions q (N, nq) for X (N, 4, 4): number in collision by coal, number off target, smallest distance (m)."""
    gaps = np.array([exact.distance(q_row) for q_row in q])
    reached = arm.pose(HAND, q)
    position_errors = np.linalg.norm(reached[:, :3, 3] - X[:, :3, 3], axis=1)
    rotation_errors = np.linalg.norm(rotation.log(np.swapaxes(X[:, :3, :3], 1, 2) @ reached[:, :3, :3]), axis=1)
    missed = (position_errors > 1.01 * TOLERANCE) | (rotation_errors > 1.01 * TOLERANCE)
    return int((gaps < -1e-8).sum()), int(missed.sum()), float(gaps.min(initial=np.inf))


def run(arm: mk.Mechanism, collider: Collider, X: np.ndarray, singles: int) -> tuple[bool, float]:
    """Return whether all goals are met, and the free solutions per second of the batch."""
    exact, fine, rates = CoalCollider(collider), True, list[float]()
    first = mk.Solver(arm, mk.PoseGoal(HAND, X[0])).solve_batch(X, threads=1)
    print(f"without avoidance, {collider.is_free(first.q[first.success]).mean():.0%} of the solutions are free")
    solver = mk.Solver(arm, mk.PoseGoal(HAND, X[0]), avoid=collider)
    for _ in range(2):  # kernels are loaded, and the table of free starts is made, before the clock runs
        start = process_time()
        solver.solve_batch(X[:200], threads=1)
        prepared = process_time() - start
    start = process_time()
    result = solver.solve_batch(X, threads=1)
    seconds = process_time() - start
    rows = [("batch", len(X), result.success, result.q, seconds)]
    for target in X[:50]:
        solver.solve(target)
    start = process_time()
    solutions = [solver.solve(target) for target in X[:singles]]
    seconds = process_time() - start
    successes = np.array([solution.success for solution in solutions])
    rows.append(("one by one", singles, successes, np.array([solution.q for solution in solutions]), seconds))
    for name, count, success, q, seconds in rows:
        collisions, misses, gap = count_faults(arm, exact, q[success], X[:count][success])
        rate = success.sum() / seconds
        rates.append(rate)
        print(
            f"{name:<11} {success.sum():>6} of {count} solved ({100 * success.mean():.2f} %), {rate:>7,.0f} a second; "
            f"by coal {collisions} in collision (smallest distance {1e3 * gap:.3g} mm), {misses} off target"
        )
        fine &= collisions == 0 and misses == 0 and success.mean() > SHARE
    print(f"(200 rows took {1e3 * prepared:.0f} ms the second time)")
    print("statuses:", {status.name: number for status, number in result.counts.items()})
    return fine and rates[0] >= RATE, rates[0]


# ---- peers --------------------------------------------------------------------------------------


def export(arm: mk.Mechanism, collider: Collider, X: np.ndarray, q: np.ndarray, folder: Path) -> None:
    """The arm with its capsules and all obstacles as one URDF, the pairs by names, targets and random starts."""
    mk.save(arm, folder / "arm.urdf")
    tree = ET.parse(folder / "arm.urdf")
    robot = tree.getroot()
    base = next(iter(arm.links))
    for obstacle in collider.obstacles:
        name = obstacle.name.replace(" ", "_")
        link = ET.SubElement(robot, "link", name=name)
        collision = ET.SubElement(link, "collision")
        geometry = ET.SubElement(collision, "geometry")
        match obstacle.shape:
            case Box(size):
                ET.SubElement(geometry, "box", size=" ".join(map(repr, map(float, size))))
            case Sphere(radius):
                ET.SubElement(geometry, "sphere", radius=repr(float(radius)))
            case Capsule(radius, length):
                ET.SubElement(geometry, "capsule", radius=repr(float(radius)), length=repr(float(length)))
            case _:
                raise TypeError(obstacle.shape)
        joint = ET.SubElement(robot, "joint", name=f"holds_{name}", type="fixed")
        ET.SubElement(joint, "parent", link=base)
        ET.SubElement(joint, "child", link=name)
        r, p, y = mk.spatial.euler.euler_from_quaternion(obstacle.pose.wxyz, order="xyz", axes="fixed")
        ET.SubElement(joint, "origin", xyz=" ".join(map(repr, map(float, obstacle.pose.position))),
                      rpy=f"{float(r)!r} {float(p)!r} {float(y)!r}")  # fmt: skip
    for link in robot.findall("link"):
        for visual in link.findall("visual"):
            link.remove(visual)
        for k, collision in enumerate(link.findall("collision")):
            name = collision.get("name", "")
            if name.endswith((".lower", ".upper")):  # the ends of a capsule, which peers get as one shape
                link.remove(collision)
            shape = collision.find("geometry/cylinder" if name.endswith(".side") else "geometry/capsule")
            if shape is not None:  # Pinocchio reads a capsule as a cylinder that collision_checking marks as capsule
                shape.tag = "cylinder"
                collision.set("name", f"{link.get('name')}_{k}")
                checking = link.find("collision_checking")
                checking = ET.SubElement(link, "collision_checking") if checking is None else checking
                ET.SubElement(checking, "capsule", name=f"{link.get('name')}_{k}")
    tree.write(folder / "arm.urdf")
    pairs = [[a.replace(" ", "_"), b.replace(" ", "_")] for a, b in collider.pairs]
    (folder / "pairs.json").write_text(json.dumps(pairs), encoding="utf-8")
    starts = arm.random(np.random.default_rng(7), len(X))
    np.savez(folder / "targets.npz", X=X, starts=starts, free=q, lower=arm.space.lower, upper=arm.space.upper)


def race(python: str, arm: mk.Mechanism, collider: Collider, X: np.ndarray, q: np.ndarray, rate: float) -> None:
    exact = CoalCollider(collider)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        export(arm, collider, X, q, folder)
        for peer in ("pink", "placo"):
            script = Path(__file__).with_name("cage_peers.py")
            command = [python, str(script), peer, temporary, str(SECONDS), HAND]
            completed = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
            if completed.returncode:
                print(f"{peer}: failed: {completed.stderr.strip().splitlines()[-1:]}")
                continue
            peer_result = np.load(folder / f"{peer}.npz")
            solved, count, seconds = peer_result["solved"], len(peer_result["solved"]), float(peer_result["seconds"])
            collisions, misses, gap = count_faults(arm, exact, peer_result["q"][solved], X[:count][solved])
            fair = (solved.sum() - collisions - misses) / seconds
            ratio = f"{rate / fair:,.0f} times as many by Mechanik" if fair > 0 else "none"
            print(
                f"{peer_result['version']!s:<16} {solved.sum():>4} of {count} solved, "
                f"{fair:,.1f} free solutions per second "
                f"({ratio}); by coal {collisions} in collision (smallest distance {1e3 * gap:.3g} mm), "
                f"{misses} off target"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer targets, to test that it runs")
    parser.add_argument("--peers", metavar="PYTHON", help="a Python with pin-pink and placo")
    parser.add_argument("--seed", type=int, default=0, help="seed of obstacles and targets; 0 was used for tuning")
    arguments = parser.parse_args()
    arm = mk.gallery.panda(hand=False)
    collider = Collider(arm, ["self", *cage(arguments.seed)])
    q, share = free_configurations(collider, 500 if arguments.quick else TARGETS, arguments.seed + 1)
    print(f"{collider}; {share:.1%} of its configurations are free")
    X = arm.pose(HAND, q)
    fine, rate = run(arm, collider, X, 100 if arguments.quick else SINGLES)
    if arguments.peers:
        race(arguments.peers, arm, collider, X, q, rate)
    return 0 if fine or arguments.quick else 1


if __name__ == "__main__":
    sys.exit(main())
