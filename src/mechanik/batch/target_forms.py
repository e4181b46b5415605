"""The shapes in which targets may come, and which of them an objective takes.

An objective is asked: what its own `at` takes for one target is what a batch takes for many. So a new kind of objective
needs no word here.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from mechanik.errors import MechanikError
from mechanik.objectives import JointValues, Objective, RestPose
from mechanik.objectives.door import UNIT
from mechanik.spatial import from_position_wxyz
from mechanik.spatial.array import Array
from mechanik.spatial.rotation import is_rotation

Shape = tuple[int, ...]
Mask = npt.NDArray[np.bool_]

NOT_A_ROTATION = 1e-6
"""As at every other door for poses: what was once float32 passes."""

POSE, POSITION_WXYZ, TURN, WXYZ, POINT, NUMBER = (4, 4), (7,), (3, 3), (4,), (3,), ()
PROBES: Mapping[Shape, object] = {
    POSE: np.eye(4),
    TURN: np.eye(3),
    WXYZ: np.array([1.0, 0.0, 0.0, 0.0]),
    POINT: np.array([0.0, 0.0, 1.0]),
    NUMBER: 1.0,
}
"""A sound target of each shape; position and wxyz are taken wherever a pose is."""
WORDS: Mapping[Shape, str] = {POSE: "(N, 4, 4)", POSITION_WXYZ: "(N, 7) as position and wxyz", TURN: "(N, 3, 3)",
                              WXYZ: "(N, 4) as wxyz", POINT: "(N, 3)", NUMBER: "(N,)"}  # fmt: skip


def takes(objective: Objective, target: object) -> bool:
    """Whether an objective can be had for this target."""
    try:
        objective.at(target)  # type: ignore[arg-type]
    except MechanikError:
        return False
    return True


def shapes_of(objective: Objective) -> tuple[Shape, ...]:
    """The shapes that one target of an objective may have; none if it takes other things than arrays of these."""
    if isinstance(objective, JointValues | RestPose):
        return ()
    found = [shape for shape, probe in PROBES.items() if takes(objective, probe)]
    if POSE in found:
        found.insert(1, POSITION_WXYZ)
    return tuple(found)


def settle(rows: Array, poses_are_checked: bool = False) -> tuple[Array, Mask]:
    """Targets in the shape that `at` takes, and which of them can be targets.

    Args:
        rows: (M, ...) float64.
        poses_are_checked: by whoever gets them, so that it need not be done here.
    Returns:
        (M, ...), position and wxyz turned into poses (M, 4, 4); and (M,).
    """
    shape = rows.shape[1:]
    with np.errstate(all="ignore"):
        if shape == POSE:
            if poses_are_checked:
                return rows, np.ones(len(rows), dtype=np.bool_)
            is_flat = (np.abs(rows[:, 3] - (0.0, 0.0, 0.0, 1.0)) <= NOT_A_ROTATION).all(axis=1)
            return rows, is_flat & is_rotation(rows[:, :3, :3], NOT_A_ROTATION) & _finite(rows)
        if shape == POSITION_WXYZ:
            good = _finite(rows) & _is_unit(rows[:, 3:])
            return from_position_wxyz(rows[:, :3], rows[:, 3:]), good
        if shape == TURN:
            return rows, is_rotation(rows, NOT_A_ROTATION) & _finite(rows)
        if shape == WXYZ:
            return rows, _finite(rows) & _is_unit(rows)
    return rows, _finite(rows)


def _finite(rows: Array) -> Mask:
    return np.asarray(np.isfinite(rows).all(axis=tuple(range(1, rows.ndim))))


def _is_unit(wxyz: Array) -> Mask:
    return np.abs(np.sqrt((wxyz * wxyz).sum(axis=1)) - 1.0) <= UNIT
