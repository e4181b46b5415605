"""One descent from each of many starts, by the general kernel, for any mechanism and any goals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mechanik.kernels.problem import LOCKED
from mechanik.kernels.solver_state import SUCCESS
from mechanik.search.conditions import Mask
from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
from mechanik.solvers.options import Options
from mechanik.solvers.prepared import Prepared
from mechanik.solvers.running import run, set_options
from mechanik.spatial.array import Array

Attempts = Callable[[Array], tuple[Array, Mask]]
"""From starts (K, nq) to where each leads (K, nq), and (K,) whether all that is required holds there."""
ITERATIONS = 60
"""Of a descent: those that succeed need 10, and another start is cheaper than patience."""


def descents(solver: Prepared, bounds: tuple[Array, Array], locked: Mask) -> Attempts:
    """Descents of what the tables of a solver ask for now, within bounds (nq,); locked freedoms (nv,) stay."""
    method, options, parts = LevenbergMarquardt(), Options(), solver._program.parts
    no_starts = np.zeros((0, solver.mechanism.nq))

    def attempts(starts: Array) -> tuple[Array, Mask]:
        for part in parts:
            solver._bound(part, *bounds)
            part.packed.at["ban"][:] = np.where(part.moves(locked), LOCKED, 0)
            set_options(part, options, method, solver._program.size, ITERATIONS)
        found, success = np.array(starts), np.ones(len(starts), dtype=np.bool_)
        for k in range(len(found)):
            for part, relations in zip(parts, solver._blocks, strict=True):
                found[k] = run(solver.mechanism, part, relations, found[k], no_starts)
                if part.packed.at["out"][SUCCESS] != 1.0:
                    success[k] = False
                    break
        return found, success

    return attempts
