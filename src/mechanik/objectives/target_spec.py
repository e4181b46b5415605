"""Declaration of an objective's target: the shapes and forms that it takes, and its numbers.

What the target moves is declared where relations are made, as `Relation.target_writes`. Batches, new targets of a
solver and prepared calls read both declarations; they never try a target to see what it does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.spatial.array import Array

Shape = tuple[int, ...]

POSE, POSITION_WXYZ, ROTATION, WXYZ, POINT, NUMBER = (4, 4), (7,), (3, 3), (4,), (3,), ()
"""Shapes of a single target: a pose, a position and a quaternion, a rotation, a quaternion, a point or a direction, and
a number."""

NEUTRAL_TARGETS = {POSE: np.eye(4), ROTATION: np.eye(3), POINT: np.array([0.0, 0.0, 1.0]), NUMBER: 1.0}
"""A target of each shape of `TargetSpec.value`, for data that must not depend on the present target."""


def _unchanged(numbers: Array) -> Any:
    return numbers


@dataclass(frozen=True, slots=True, eq=False)
class TargetSpec:
    """Declaration of the target of an objective.

    Attributes:
        value: the present target as an array; None if targets have no fixed shape, such as polygons.
        parse: converts a target in any form that `with_target` takes to an array with the shape of `value`, and raises
            the exceptions of `with_target`.
        shapes: shapes of arrays that `with_target` takes; empty if there is no fixed shape.
        restore: converts an array with the shape of `value` to a target for `with_target`.
        takes_names: whether a mapping is a target: values by the names of joints.

    Example:
        >>> spec = mk.PoseGoal("tool", np.eye(4)).target_spec
        >>> spec.shapes, spec.parse((0.1, 0.2, 0.3))[:3, 3].tolist()
        (((4, 4), (7,), (3,)), [0.1, 0.2, 0.3])
    """

    value: Array | None
    parse: Callable[[Any], Array]
    shapes: tuple[Shape, ...] = ()
    restore: Callable[[Array], Any] = _unchanged
    takes_names: bool = False

    @property
    def size(self) -> int:
        """Number of numbers of a target; 0 without a fixed shape."""
        return 0 if self.value is None else int(np.size(self.value))
