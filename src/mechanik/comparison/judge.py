"""Whether an answer is one, without asking the solver: poses from forward kinematics, the rest in NumPy.

Nothing here knows the solvers' rows, weights or tolerances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.comparison.tasks import Exercise, Sizes
from mechanik.objectives.closures import closure_relations, tilts
from mechanik.objectives.evaluate import evaluate
from mechanik.objectives.laws import law_relations, law_sums
from mechanik.spatial import rotation
from mechanik.spatial.array import Array

ROUNDING = 1e-9
"""How much a tolerance or a limit may be missed by for rounding; relative for the first, rad and m for the second."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    Attributes:
        position, rotation: of the end that is farthest off; m and rad. Not a number where
            the task does not care for the second.
        distance: root of the sum of squares over the ends; m.
        gap: of the loop that stands open farthest, or of the law that is broken most; m or rad, or a share of the
            law's scale.
        violation: how far outside its limits, or its cone, the worst joint is; m or rad.
        holds: whether limits and laws are kept and loops shut.
        success: whether the ends are there, too.
    """

    position: float
    rotation: float
    distance: float
    gap: float
    violation: float
    holds: bool
    success: bool


LOST = Verdict(np.inf, np.inf, np.inf, np.inf, np.inf, False, False)
"""What is not finite."""


def judge(exercise: Exercise, sizes: Sizes, number: int, q: Array) -> Verdict:
    """An answer q (nq,) to the target of that number."""
    if not np.isfinite(q).all():
        return LOST
    robot, wanted = exercise.robot, exercise.wanted[number]
    X = robot.mechanism.poses(q, robot.ends)
    off = np.linalg.norm(X[:, :3, 3] - wanted[:, :3, 3], axis=-1)
    angle = np.full(len(X), np.nan)
    if exercise.turns:
        angle = np.linalg.norm(rotation.log(np.swapaxes(X[:, :3, :3], -1, -2) @ wanted[:, :3, :3]), axis=-1)
    elif exercise.direction is not None:
        is_, should = X[:, :3, :3] @ exercise.direction, wanted[:, :3, :3] @ exercise.direction
        angle = np.arctan2(np.linalg.norm(np.cross(is_, should), axis=-1), np.sum(is_ * should, axis=-1))
    violation = float(max(0.0, np.max(exercise.lower - q, initial=0.0), np.max(q - exercise.upper, initial=0.0)))
    for name, tilt in tilts(robot.mechanism, q).items():
        cone = robot.mechanism.joint(name).cone
        violation = max(violation, 0.0 if cone is None else tilt - cone.angle)
    gap, shut = _loops(exercise, sizes, q)
    slack = 1 + ROUNDING
    there = off.max() <= sizes.tolerance * slack and not angle.max() > sizes.angle_tolerance * slack
    holds = shut and violation <= ROUNDING
    return Verdict(
        float(off.max()), float(angle.max()), float(np.linalg.norm(off)), gap, violation, holds, bool(there and holds)
    )


def _loops(exercise: Exercise, sizes: Sizes, q: Array) -> tuple[float, bool]:
    """How far the worst loop stands open or law is broken, and whether all hold to the tolerances of the goals."""
    mechanism, worst, shut = exercise.robot.mechanism, 0.0, True
    for closure in mechanism.closures.values():
        for relation in closure_relations(mechanism, closure):
            rows, metres = evaluate(mechanism, relation, q)[0], np.array(relation.in_metres, dtype=np.bool_)
            apart, turned = float(np.linalg.norm(rows[metres])), float(np.linalg.norm(rows[~metres]))
            worst = max(worst, apart, turned)
            shut &= apart <= sizes.tolerance and turned <= sizes.angle_tolerance
    for name, relation in law_relations(mechanism).items():
        off = abs(float(law_sums(mechanism, relation, q))) / mechanism.law(name).scale
        worst = max(worst, off)
        shut &= off <= min(sizes.tolerance, sizes.angle_tolerance)
    return worst, shut
