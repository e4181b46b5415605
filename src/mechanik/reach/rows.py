"""Many targets of one solver, each from its own start."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechanik.ik import Solver
from mechanik.solvers.status import BY_CODE, Status
from mechanik.spatial.array import Array

Mask = npt.NDArray[np.bool_]
SHUT = {Status.CONVERGED, Status.CLOSEST, Status.STALLED, Status.TIMEOUT}
"""Where loops are shut, whether or not the target was reached."""


def solve_rows(solver: Solver, targets: Array, q0: Array | None, threads: int | None) -> tuple[Array, Mask, Mask]:
    """Solve for each of the targets.

    Args:
        targets: (n, ...), as the solver's only goal takes them.
        q0: (n, nq), where to start; None: wherever the solver likes.
    Returns:
        q (n, nq), (n,) whether the target was reached, and (n,) whether q is one where the loops are shut.
    """
    result = solver.solve_batch(targets, q0, threads=threads)
    shut = np.array([one in SHUT for one in BY_CODE])[result.status]
    return np.array(result.q), np.array(result.success), shut  # copies: callers write into them
