"""Answers that bump into nothing: python benchmarks/cage.py [--quick] [--seed N] [--peers PYTHON]

A Panda, bumping with capsules that are fitted to its maker's meshes, among 50 boxes, balls and capsules that stand so
close that few of its configurations are free. Targets are poses of its hand at free configurations, drawn inside the
limits, so each can be reached. Solved on one core in a batch and one by one, timed by the processor's time, since a
busy machine cuts both to pieces. Every success is looked at once more by coal, on the same shapes, and its hand by
forward kinematics: one that bumps or misses fails the run.
With --peers, a Python that has pin-pink and placo: the same arm, shapes, pairs and targets (as many as fit into the
seconds) for both, as `benchmarks/cage_peers.py` calls them. pyroki is not on the index, and is not among them.
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
"""Goals: free answers a second on one core, and the share of targets that have one."""
SECONDS = 60.0
"""For each of the peers."""


def cage(seed: int = 0) -> list[Obstacle]:
    """Things all about the arm, 0.28 to 0.5 m from its axis, up to 1.15 m high."""
    rng, found = np.random.default_rng(seed), list[Obstacle]()
    for k in range(OBSTACLES):
        angle, far, height = rng.uniform(-np.pi, np.pi), rng.uniform(0.28, 0.5), rng.uniform(-0.05, 1.15)
        shape = (
            Box(tuple(rng.uniform(0.06, 0.24, 3).tolist())),
            Sphere(rng.uniform(0.04, 0.1)),
            Capsule(rng.uniform(0.02, 0.05), rng.uniform(0.2, 0.6)),
        )[k % 3]
        turn = rng.normal(size=4)
        place = far * np.cos(angle), far * np.sin(angle), height
        name = f"{type(shape).__name__.lower()} {k}"
        found.append(Obstacle(shape, place, turn / np.linalg.norm(turn), name=name))
    return found


def free_configurations(collider: Collider, count: int, seed: int = 1) -> tuple[np.ndarray, float]:
    """(count, nq), and the share of all configurations that is free."""
    rng, found, drawn = np.random.default_rng(seed), list[np.ndarray](), 0
    while sum(map(len, found)) < count:
        q = collider.mechanism.random(rng, 4096)
        drawn += len(q)
        found.append(q[collider.is_free(q)])
    q = np.concatenate(found)
    return q[:count], len(q) / drawn


def faults(arm: mk.Mechanism, exact: CoalCollider, q: np.ndarray, X: np.ndarray) -> tuple[int, int, float]:
    """Of answers q (N, nq) to X (N, 4, 4): how many bump by coal, how many miss, and the smallest gap (m)."""
    gaps = np.array([exact.distance(one) for one in q])
    reached = arm.pose(HAND, q)
    places = np.linalg.norm(reached[:, :3, 3] - X[:, :3, 3], axis=1)
    turns = np.linalg.norm(rotation.log(np.swapaxes(X[:, :3, :3], 1, 2) @ reached[:, :3, :3]), axis=1)
    missed = (places > 1.01 * TOLERANCE) | (turns > 1.01 * TOLERANCE)
    return int((gaps < -1e-8).sum()), int(missed.sum()), float(gaps.min(initial=np.inf))


def run(arm: mk.Mechanism, collider: Collider, X: np.ndarray, singles: int) -> tuple[bool, float]:
    """Returns whether all goals are met, and the free answers a second of the batch."""
    exact, fine, rates = CoalCollider(collider), True, list[float]()
    first = mk.Solver(arm, mk.PoseGoal(HAND, X[0])).solve_batch(X, threads=1)
    print(f"as if nothing were there, {collider.is_free(first.q[first.success]).mean():.0%} of the answers are free")
    solver = mk.Solver(arm, mk.PoseGoal(HAND, X[0]), avoid=collider)
    for _ in range(2):  # kernels are loaded, and the table of free starts is made, before the clock runs
        begun = process_time()
        solver.solve_batch(X[:200], threads=1)
        prepared = process_time() - begun
    begun = process_time()
    result = solver.solve_batch(X, threads=1)
    seconds = process_time() - begun
    rows = [("batch", len(X), result.success, result.q, seconds)]
    for one in X[:50]:
        solver.solve(one)
    begun = process_time()
    found = [solver.solve(one) for one in X[:singles]]
    seconds = process_time() - begun
    rows.append(("one by one", singles, np.array([one.success for one in found]), np.array([one.q for one in found]),
                 seconds))  # fmt: skip
    for name, count, success, q, seconds in rows:
        bump, miss, gap = faults(arm, exact, q[success], X[:count][success])
        rate = success.sum() / seconds
        rates.append(rate)
        print(
            f"{name:<11} {success.sum():>6} of {count} solved ({100 * success.mean():.2f} %), {rate:>7,.0f} a second; "
            f"by coal {bump} bump (smallest gap {1e3 * gap:.3g} mm), {miss} miss"
        )
        fine &= bump == 0 and miss == 0 and success.mean() > SHARE
    print(f"(200 rows took {1e3 * prepared:.0f} ms the second time)")
    print("left over:", {status.name: number for status, number in result.counts.items()})
    return fine and rates[0] >= RATE, rates[0]


# ---- the peers ----------------------------------------------------------------------------------


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
            if shape is not None:  # Pinocchio reads capsules as cylinders that are said to be some
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
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        export(arm, collider, X, q, folder)
        for peer in ("pink", "placo"):
            script = Path(__file__).with_name("cage_peers.py")
            command = [python, str(script), peer, place, str(SECONDS), HAND]
            said = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
            if said.returncode:
                print(f"{peer}: failed: {said.stderr.strip().splitlines()[-1:]}")
                continue
            found = np.load(folder / f"{peer}.npz")
            solved, count, seconds = found["solved"], len(found["solved"]), float(found["seconds"])
            bump, miss, gap = faults(arm, exact, found["q"][solved], X[:count][solved])
            fair = (solved.sum() - bump - miss) / seconds
            ratio = f"{rate / fair:,.0f} times as many here" if fair > 0 else "none"
            print(
                f"{found['version']!s:<16} {solved.sum():>4} of {count} solved, {fair:,.1f} free answers a second "
                f"({ratio}); by coal {bump} bump (smallest gap {1e3 * gap:.3g} mm), {miss} miss"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer targets, for a test that it runs")
    parser.add_argument("--peers", metavar="PYTHON", help="a Python with pin-pink and placo")
    parser.add_argument("--seed", type=int, default=0, help="of another cage and its targets; 0 is the one tuned on")
    given = parser.parse_args()
    arm = mk.gallery.panda(hand=False)
    collider = Collider(arm, ["self", *cage(given.seed)])
    q, share = free_configurations(collider, 500 if given.quick else TARGETS, given.seed + 1)
    print(f"{collider}; {share:.1%} of its configurations are free")
    X = arm.pose(HAND, q)
    fine, rate = run(arm, collider, X, 100 if given.quick else SINGLES)
    if given.peers:
        race(given.peers, arm, collider, X, q, rate)
    return 0 if fine or given.quick else 1


if __name__ == "__main__":
    sys.exit(main())
