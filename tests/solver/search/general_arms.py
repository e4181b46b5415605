"""Arms without a closed form, and one call to all solutions, to the nearest, and to what checks them."""

from __future__ import annotations

import numpy as np
from random_arms import apart, arm_of, direction, place

from mechanik import Builder, Mechanism, Solver
from mechanik.solver.search.solution_set import SolutionSet


def general_arm(seed: int, joints: int = 6) -> Mechanism:
    """Revolute joints without limits about random axes."""
    rng = np.random.default_rng(seed)
    directions, points = [direction(rng)], [place(rng)]
    while len(directions) < joints:
        directions.append(apart(rng, directions[-1]))
        points.append(place(rng))
    return arm_of(rng, (np.array(directions), np.array(points)))


def sliding_arm() -> Mechanism:
    """Two revolute joints, a prismatic joint, and three revolute joints about skew axes."""
    arm = Builder("sliding")
    arm.revolute("turn", "base", "column", at=(0.0, 0.0, 0.3), axis="z", limits=(-3.0, 3.0))
    arm.revolute("lift", "column", "boom", at=(0.1, 0.05, 0.2), axis="y", limits=(-1.8, 1.8))
    arm.prismatic("slide", "boom", "rod", at=(0.0, 0.1, 0.0), axis="x", limits=(0.1, 0.7))
    arm.revolute("roll", "rod", "fork", at=(0.1, 0.0, 0.02), axis="x", limits=(-3.0, 3.0))
    arm.revolute("pitch", "fork", "palm", at=(0.05, 0.03, 0.0), axis="y", limits=(-2.0, 2.0))
    arm.revolute("spin", "palm", "flange", at=(0.06, 0.0, 0.04), axis="z", limits=(-6.0, 6.0))
    arm.fixed("mount", "flange", "tool", at=(0.05, 0.0, 0.08))
    return arm.build()


def solve_all(solver: Solver, target=None, q0=None, **options) -> SolutionSet:
    return solver.solve_all(target, q0=q0, **options)


def solve_nearest(solver: Solver, target=None, q0=None, **options):
    """q, or None if there is none."""
    solution = solver.solve(target, q0, nearest=True, **options)
    return solution.q if solution.success else None


def angle_difference(a, b):
    """The largest difference (...) between configurations (..., nq) of revolute joints, modulo full turns."""
    return np.abs((a - b + np.pi) % (2 * np.pi) - np.pi).max(axis=-1)


def from_graph(mechanism: Mechanism, link: str, q) -> np.ndarray:
    """The pose of a link at q, frame by frame from the graph, without any kernel."""
    before = mechanism.q
    try:
        mechanism.q = q
        return mechanism.link(link).world_matrix.copy()
    finally:
        mechanism.q = before
