"""What a closed form proposes, held against forward kinematics: polished, checked, and each branch kept once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechanik.mechanism.screw_axes import ScrewAxes
from mechanik.spatial.array import Array
from mechanik.spatial.vector import cross, length

CORRECT = 1e-9
"""How far (m, and rad) the pose of a branch may be from the target."""
EXACT = 1e-12
"""Errors above this share of the reach are polished."""
SAME = 1e-7
"""Branches that differ by less (rad) are one: at a singular pose two of them fall together, to half of the digits."""
CLOSE, ROUNDING = 1e-3, 1e-11
"""Nearer than this (rad) to another branch, one with an error above rounding (share of the reach, rad) is none."""
HOPE = 1e-7
"""Errors above this (share of the reach, rad) are of angles that do not exist: to polish these would lead anywhere."""
STEPS = 4
"""Of Newton's method, at most: one where the axes lie exactly as their family says, more where a file has rounded."""

Mask = npt.NDArray[np.bool_]


def checked(axes: ScrewAxes, q: Array, target: Array, counts_rotation: bool, deviation: float) -> tuple[Array, Mask]:
    """Of candidates q (m, B, n), those that reach their target (m, 4, 4), angles in (-pi, pi]; the others NaN.

    Args:
        counts_rotation: whether the target's rotation has to be met as well as its position.
        deviation: how far the axes are from lying as the formulas take them to, rad or share of the reach.
    """
    hopeful = HOPE + 100 * deviation  # the formulas are wrong by a multiple of the deviation
    m, B, n = q.shape
    flat = q.reshape(-1, n)
    owner: npt.NDArray[np.int64] = np.repeat(np.arange(m, dtype=np.int64), B)
    alive = np.flatnonzero(np.isfinite(flat).all(axis=-1))
    angles, owner = flat[alive], owner[alive]
    tolerance = CORRECT * max(1.0, axes.size / 1000)  # so that millimetres will do
    position, turn = _errors(axes.poses(angles), target[owner], counts_rotation)
    for _ in range(STEPS):
        worst = np.maximum(position / axes.size, turn)
        rough = np.flatnonzero((worst > EXACT) & (worst < hopeful))
        if not len(rough):
            break
        better = _newton(axes, angles[rough], target[owner[rough]], counts_rotation)
        new_position, new_turn = _errors(axes.poses(better), target[owner[rough]], counts_rotation)
        improved = np.maximum(new_position / axes.size, new_turn) < worst[rough]
        taken = rough[improved]
        angles[taken], position[taken], turn[taken] = better[improved], new_position[improved], new_turn[improved]
    fine = (position <= tolerance) & (turn <= CORRECT)
    alive = alive[fine]
    found, error = np.full((m * B, n), np.nan), np.full(m * B, np.inf)
    found[alive], error[alive] = wrapped(angles[fine]), np.maximum(position / axes.size, turn)[fine]
    found = found.reshape(m, B, n)
    valid = _each_once(found, error.reshape(m, B))
    found[~valid] = np.nan
    return found, valid


def wrapped(angles: Array) -> Array:
    """The same angles in (-pi, pi]."""
    turned = np.remainder(angles + np.pi, 2 * np.pi) - np.pi
    return np.where(turned <= -np.pi, np.pi, turned)


def _errors(X: Array, target: Array, counts_rotation: bool) -> tuple[Array, Array]:
    """Distance (m) and angle (rad) from poses to targets, (k,) each."""
    position = length(X[:, :3, 3] - target[:, :3, 3])
    if not counts_rotation:
        return position, np.zeros_like(position)
    apart = X[:, :3, :3] - target[:, :3, :3]
    chord = np.sqrt(np.einsum("kij,kij->k", apart, apart) / 8)
    return position, 2 * np.arcsin(np.minimum(chord, 1.0))


def _newton(axes: ScrewAxes, q: Array, target: Array, counts_rotation: bool) -> Array:
    """One step, damped so little that only directions in which the arm can hardly move notice."""
    X, J = axes.poses(q), axes.jacobians(q)
    rows = 6 if counts_rotation else 3
    e = np.empty((len(q), 6))
    e[:, :3] = (target[:, :3, 3] - X[:, :3, 3]) / axes.size
    e[:, 3:] = sum(cross(X[:, :3, k], target[:, :3, k]) for k in range(3)) / 2
    J[:, :3] /= axes.size
    J, e = J[:, :rows], e[:, :rows]
    Jt = np.swapaxes(J, -1, -2)
    return q + (Jt @ np.linalg.solve(J @ Jt + 1e-12 * np.eye(rows), e[..., None]))[..., 0]


def _each_once(q: Array, error: Array) -> Mask:
    """Which branches stay: those that reach their target (error finite), and that no other of their pose repeats.

    Of two within `SAME` the first stays. Next to a singular pose an angle that does not exist can come within the
    tolerance: it lies near a true branch, and its error, unlike a branch's, is more than rounding.
    """
    valid, rough = np.isfinite(error), error > ROUNDING
    first, second = np.triu_indices(q.shape[1], 1)
    step = np.abs(q[:, first] - q[:, second])
    apart = np.minimum(step, 2 * np.pi - step).max(axis=-1)  # (m, pairs), NaN where one does not exist
    for k in np.flatnonzero((apart < CLOSE).any(axis=0)).tolist():
        i, j = int(first[k]), int(second[k])
        pose = np.flatnonzero((apart[:, k] < CLOSE) & valid[:, i] & valid[:, j])
        same = apart[pose, k] < SAME
        first_goes = ~same & rough[pose, i] & (error[pose, i] > error[pose, j])
        second_goes = same | (rough[pose, j] & ~first_goes)
        valid[pose[first_goes], i] = False
        valid[pose[second_goes], j] = False
    return valid
