"""The short way from a new target to the kernel, for solvers that are called in fast loops.

A solver with one goal of a common kind has a shortcut: a function that is given the target and q0 and puts the
target into the problem, or says that it is not for it (None), and then the long way with all its checks is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from mechanik.kernels import problem
from mechanik.mechanism import Mechanism
from mechanik.objectives import JointValues, Objective, Point, PoseGoal
from mechanik.objectives.relation import Kind, Relation
from mechanik.program import Program
from mechanik.solvers.running import NO_TARGET
from mechanik.spatial.array import Array

EYE, LAST_ROW, NOT_A_ROTATION = np.eye(3), np.array([0.0, 0.0, 0.0, 1.0]), 1e-6

Shortcut = Callable[[object, Array], Array | None]


def find_shortcut(
    program: Program, objectives: Sequence[Objective], rows: Sequence[Sequence[Relation]], lower: Array, upper: Array
) -> Shortcut | None:
    """The shortcut for what is asked, if there is one."""
    if len(program.parts) != 1 or len(objectives) != 1 or len(rows[0]) != 1:
        return None
    objective, row, part = objectives[0], rows[0][0], program.parts[0]
    if part.packed.sizes["functions"]:
        return None
    block = part.owners.index(0)
    data = part.packed.at["data"][block * problem.BLOCK_FLOATS : (block + 1) * problem.BLOCK_FLOATS]
    still = row.kind is Kind.POSE and row.a is None and row.world_axes is None
    if (
        type(objective) is PoseGoal
        and still
        and row.rows == (0, 1, 2, 3, 4, 5)
        and np.array_equal(row.X_a, objective.target)
    ):
        part.packed.ints[problem.TARGET] = block
        return put_pose
    if type(objective) is Point and still:
        return _point(data[problem.FRAME_A + 9 : problem.FRAME_B])
    if type(objective) is JointValues and row.kind is Kind.VALUE and row.freedom in objective.values:
        k = program.skeleton.x_of[row.freedom]
        if objective.turns == "exact":
            return _value(row.freedom, data, k, 0.0)
        if program.skeleton.rotates[program.skeleton.v_of_x[k]] and lower[k] == -np.inf and upper[k] == np.inf:
            return _value(row.freedom, data, k, 2 * math.pi)
    return None


def with_ends(mechanism: Mechanism, starts: Array, row: Relation) -> Array:
    """Starts (K, nq), each with the pose of the goal's frame behind it, (K, nq + 12): so the nearest can come first."""
    X = mechanism.pose(row.b or "", starts) @ row.X_b
    ends = [X[:, :3, :3].reshape(len(starts), 9), X[:, :3, 3]]
    return np.ascontiguousarray(np.concatenate([starts, *ends], axis=1))


def put_pose(target: object, q0: Array) -> Array | None:
    """A pose is checked and put in by the kernel itself."""
    return target if type(target) is np.ndarray and target.shape == (4, 4) else None


def is_pose(X: Array) -> bool:
    """Whether an array (4, 4) is a pose, as the kernel would see it."""
    R = X[:3, :3]
    if not (np.abs(R.T @ R - EYE).max() < NOT_A_ROTATION and (X[3] == LAST_ROW).all()):
        return False
    (a, b, x), (c, d, y), (e, f, z) = R.tolist()
    is_mirrored = (c * f - e * d) * x + (e * b - a * f) * y + (a * d - c * b) * z < 0.0
    return not is_mirrored and math.isfinite(float(X[:3, 3].sum()))


def _point(place: Array) -> Shortcut:
    isfinite = math.isfinite

    def put(target: object, q0: Array) -> Array | None:
        if type(target) is not np.ndarray or target.shape != (3,) or target.dtype != np.float64:
            return None
        x, y, z = target.tolist()
        if not isfinite(x + y + z):
            return None
        place[:] = target
        return NO_TARGET

    return put


def _value(name: str, place: Array, k: int, period: float) -> Shortcut:
    isfinite = math.isfinite

    def put(target: object, q0: Array) -> Array | None:
        if type(target) is dict and len(target) == 1:  # type: ignore[arg-type]
            target = target.get(name)  # type: ignore[union-attr]
        if not isinstance(target, float) or not isfinite(target):
            return None
        place[0] = target + period * round((q0[k] - target) / period) if period else target
        return NO_TARGET

    return put
