"""Telling answers apart: the branches of a target that has finitely many of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mechanik.comparison.configurations import reach_of
from mechanik.comparison.robots import Robot
from mechanik.comparison.singular import closure_jacobian
from mechanik.comparison.tasks import Exercise
from mechanik.objectives import Objective, jacobian
from mechanik.solvers.new_targets import aimed
from mechanik.spatial.array import Array

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
APART = 0.05
"""rad, or reaches: answers nearer than this are one. Those of one branch differ by their tolerances only."""
BRANCHING = ("point", "direction", "pose")
"""Tasks that are looked at for branches; the others would tell the same again."""


def movers(robot: Robot, goals: Sequence[Objective], q: Array) -> tuple[Mask, bool]:
    """(nv,) which freedoms move the goals' links or open a loop, and whether none of them is free to move at q."""
    unit = np.where(robot.mechanism.space.rotates, 1.0, reach_of(robot))
    J = np.vstack([jacobian(goals, robot.mechanism, q), closure_jacobian(robot, q)]) * unit
    moving = np.abs(J).max(axis=0, initial=0.0) > 1e-9
    values = np.linalg.svd(J[:, moving], compute_uv=False)
    return moving, bool(moving.any()) and int(np.sum(values > 1e-6 * values[0])) == int(moving.sum())


class Branches:
    """The answers that are known to some targets, whoever found them: those that a target was made from come first.

    Attributes:
        targets: numbers of those that have finitely many answers.
    """

    def __init__(self, exercise: Exercise, count: int) -> None:
        """
        Args:
            count: how many targets are looked at.
        """
        self._robot = exercise.robot
        self._known: dict[int, list[Array]] = {}
        self._moving: dict[int, Mask] = {}
        if exercise.task not in BRANCHING:
            return
        for number, q in enumerate(exercise.made_from[:count]):
            moving, isolated = movers(exercise.robot, aimed(exercise.goals, exercise.targets[number]), q)
            if isolated:
                self._known[number], self._moving[number] = [q], moving

    @property
    def targets(self) -> tuple[int, ...]:
        return tuple(self._known)

    def number(self, target: int, q: Array) -> int:
        """Which one q is; a new number if none is like it. Turns by 2 pi mean the same, and idle joints nothing."""
        known = self._known[target]
        for k, other in enumerate(known):
            if self._apart(target, other, q) < APART:
                return k
        known.append(q)
        return len(known) - 1

    def _apart(self, target: int, a: Array, b: Array) -> float:
        space = self._robot.mechanism.space
        step = space.difference(a, b)
        turned = step - 2 * math.pi * np.round(step / (2 * math.pi))
        apart = np.abs(np.where(space.rotates, turned, step / reach_of(self._robot)))
        return float(apart[self._moving[target]].max())
