"""Configurations to draw targets and starts from: inside the limits, with every loop shut."""

from __future__ import annotations

import math

import numpy as np

from mechanik.comparison.robots import Robot
from mechanik.errors import NotSolved
from mechanik.ik import Solver
from mechanik.mechanism import Joint
from mechanik.spatial.array import Array

SPREAD = 0.3
"""rad, or shares of the reach: how far from where it stands a mechanism with loops is shaken before they are shut."""
TRIES = 40
"""How many shakes a wanted configuration may cost before a mechanism is given up."""


def draw(robot: Robot, rng: np.random.Generator, count: int, spread: float = SPREAD) -> Array:
    """Configurations (count, nq): uniform inside the limits; where there are loops, shaken from home and shut again.

    Args:
        spread: of the shaking; only where there are loops.
    """
    mechanism = robot.mechanism
    if not mechanism.closures:
        return mechanism.random(rng, count)
    shut = Shutter(robot)
    home, space = shut.home, mechanism.space
    unit = spread * np.where(space.rotates, 1.0, reach_of(robot) / 3)
    found: list[Array] = []
    for _ in range(TRIES * count):
        q = shut(space.clamp(space.integrate(home, unit * rng.uniform(-1.0, 1.0, space.nv))))
        if q is not None:
            found.append(q)
            if len(found) == count:
                return np.array(found)
    raise NotSolved(f"{robot.title}: of {TRIES * count} shakes only {len(found)} left loops that could be shut")


class Shutter:
    """Brings a mechanism's loops together; without loops it leaves q as it is."""

    def __init__(self, robot: Robot) -> None:
        self._solver = Solver(robot.mechanism, None) if robot.mechanism.closures else None
        self.home = robot.mechanism.q
        if self._solver is not None:
            self.home = self._solver.solve(q0=self.home).require().q

    def __call__(self, q: Array) -> Array | None:
        """The shut configuration near q, or None if there is none inside the limits."""
        if self._solver is None:
            return q
        solution = self._solver.solve(q0=q)
        return solution.q if solution.success else None


def reach_of(robot: Robot) -> float:
    """m; a bound of how far the ends can be from the base: all lengths and strokes on the way, or where they stand."""
    return max(_length(robot, end) for end in robot.ends)


def _length(robot: Robot, end: str) -> float:
    link = robot.mechanism.link(end)
    stands = float(np.linalg.norm(link.world_position))
    total, frame = 0.0, link
    while frame is not None:
        total += float(np.linalg.norm(frame.position))
        if isinstance(frame, Joint):
            strokes = [max(map(abs, frame.limits(dof))) for dof in frame.dof if not dof.is_rotation]
            total += sum(stroke for stroke in strokes if math.isfinite(stroke))
        frame = frame.parent
    longest = max(total, stands)
    return longest if longest > 1e-9 else 1.0
