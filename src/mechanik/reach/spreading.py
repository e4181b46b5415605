"""What was found in one voxel helps the next: targets that failed are asked again from where a neighbour stands."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechanik.ik import Solver
from mechanik.reach.cells import Cells, Table
from mechanik.reach.rows import Mask, solve_rows
from mechanik.spatial.array import Array

SIDES = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])


def sides(table: Table, cells: Cells) -> npt.NDArray[np.int32]:
    """(k, 6) the numbers of the voxels on the six sides of each, below 0 where there is none."""
    return table[cells[:, None] + SIDES]


def spread(
    solver: Solver, targets: Array, q: Array, success: Mask, beside: npt.NDArray[np.int32], threads: int | None
) -> None:
    """Ask every target that failed from each side on which one did not, until nothing is gained.

    Args:
        targets: (k, ...), one for each voxel.
        q, success: (k, nq) and (k,), so far; what is gained is written into them.
        beside: (k, 6), see `sides`.
    """
    asked = np.zeros(beside.shape, dtype=np.bool_)
    gained = bool(success.any())
    while gained:
        gained = False
        for side, rows in enumerate(beside.T):
            left = np.flatnonzero(~success & ~asked[:, side] & (rows >= 0) & success[rows])
            if len(left):
                q[left], success[left], _ = solve_rows(solver, targets[left], q[rows[left]], threads)
                asked[left, side] = True
                gained |= bool(success[left].any())
