"""Relations: the few kinds of rows into which every objective and every closure is translated.

A relation looks at frame B from frame A. Each frame is fixed to a link, or to the world, and each of the relation's
rows is a number that should be zero, or should lie in a band. Kernels know these kinds and nothing of objectives.

| kind | rows |
|---|---|
| POSE | 0-2: origin of B along the axes of A (m); 3-5: rotation vector of B seen from A (rad) |
| AXIS | 0-2: as in POSE; 3-4: (x, y) of z of B seen from A, stretched so that its length is the angle to z of A (rad) |
| COSINE | 0: cosine of the angle between z of A and z of B |
| LOOK | 0-1: as AXIS 3-4, with the direction from the origin of A to the origin of B in place of z of B (rad) |
| DISTANCE | 0: from the origin of A to the origin of B (m) |
| MASS | 0-2: centre of mass of some links along the axes of A, seen from the origin of A (m) |
| VALUE | 0: a single freedom of q less its target (m or rad) |
| TURN | 0-2: rotation vector of a ball joint, seen from its target (rad) |
| FUNCTION | as many rows as a function written in Python returns |
| LAW | 0: polynomials of single freedoms of q, added up, less a constant (in units of its own) |
| HEIGHT | 0: how far the origin of B stands above a terrain that is fixed to A, along z of A (m) |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from mechanik.objectives.terrain import Terrain
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.mechanism import Mechanism


class Kind(IntEnum):
    POSE = 0
    AXIS = 1
    COSINE = 2
    LOOK = 3
    DISTANCE = 4
    MASS = 5
    VALUE = 6
    TURN = 7
    FUNCTION = 8
    LAW = 9
    HEIGHT = 10


RowFunction = Callable[["Mechanism", Array], tuple[Array, Array]]
"""(mechanism, q) -> residual (m,) and Jacobian (m, nv)."""


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """
    Attributes:
        kind: what the rows mean.
        rows: which of the kind's rows are wanted, ascending.
        a, b: links to which the frames are fixed; None is the world.
        X_a, X_b: (4, 4), the frames in those links. For MASS, X_b has no meaning.
        world_axes: for POSE, AXIS and COSINE, where the rows are taken. None: along the axes of A. Else (3, 3) C,
            whose columns are axes fixed in the world, whatever A does: then positions are C' (p_B - p_A), and the
            rotation of B seen from A is C' R_B R_A' C.
        masses: for MASS, links with their mass (kg) and its place in the link (3,).
        freedom: for VALUE the name in `q_names`; for TURN the joint's name.
        target: for VALUE (1,), for TURN a quaternion wxyz (4,), for LAW the constant (1,).
        polynomials: for LAW, names in `q_names` with the factors (n,) of that value's powers 1 to n.
        terrain: for HEIGHT.
        function: for FUNCTION.
        lower, upper: (rows,) band in which each row may lie; None means zero.
        weight: multiplies the rows in the solver, not in what a user reads.
    """

    kind: Kind
    rows: tuple[int, ...]
    a: str | None = None
    b: str | None = None
    X_a: Array = field(default_factory=lambda: np.eye(4))
    X_b: Array = field(default_factory=lambda: np.eye(4))
    world_axes: Array | None = None
    masses: tuple[tuple[str, float, Array], ...] = ()
    freedom: str = ""
    target: Array = field(default_factory=lambda: np.zeros(1))
    polynomials: tuple[tuple[str, Array], ...] = ()
    terrain: Terrain | None = None
    function: RowFunction | None = None
    lower: Array | None = None
    upper: Array | None = None
    weight: float = 1.0

    @property
    def in_metres(self) -> tuple[bool, ...]:
        """For each row, whether it is a length. VALUE rows of sliding joints are told apart by the program."""
        lengths = {Kind.POSE: 3, Kind.AXIS: 3, Kind.DISTANCE: 1, Kind.MASS: 3, Kind.HEIGHT: 1}.get(self.kind, 0)
        return tuple(row < lengths for row in self.rows)
