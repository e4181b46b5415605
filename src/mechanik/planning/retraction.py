"""Back to where loops are shut, by steps that are as short as can be.

Newton's method; its derivatives serve for several steps, as long as errors fall fast.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechanik.assembly.loops import Loops, Part
from mechanik.spatial.array import Array

Flags = npt.NDArray[np.bool_]

SHUT = 1e-10
"""Rows (rad, sizes): loops that stand open by less are shut."""
STEPS = 25
LONGEST = 0.5
"""Rad, sizes: of one step."""
FAST = 0.2
"""While an error falls to less than this share with each step, the derivatives are good enough."""
ROUNDING = 1e-12


class Retraction:
    """
    Args:
        free: (nv,) which freedoms may move.
    """

    def __init__(self, loops: Loops, free: Flags) -> None:
        self._loops, self._free = loops, free
        self._numbers = [_numbers(loops, part) for part in loops.parts or ()]

    def __call__(self, q: Array) -> Array | None:
        """A configuration (nq,) near q at which all loops are shut, wherever limits are; None if there is none near."""
        if self._loops.parts is None:
            return self._by_rows(q)
        q = q.copy()
        for part, numbers in zip(self._loops.parts, self._numbers, strict=True):
            if len(part.rows):
                if not self._by_part(part, q):
                    return None
                q[numbers] = part.problem.x[numbers]
        return q if np.isfinite(q).all() else None

    def _by_part(self, part: Part, q: Array) -> bool:
        problem, free = part.problem, self._free[part.v]
        problem.place(q)
        every = len(part.rows) == len(problem.rows)
        last, B = np.inf, None
        for _ in range(STEPS):
            e = problem.rows if every else problem.rows[part.rows]
            error = float(np.abs(e).max())
            if error < SHUT:
                return True
            if B is None or not error < FAST * last:
                B = _inverse((problem.jacobian if every else problem.jacobian[part.rows]) * free)
                if B is None:
                    return False
            u, last = B @ e, error
            size = float(np.sqrt(u @ u))
            problem.step[:] = u * (-1.0 if size < LONGEST else -LONGEST / size)
            problem.advance()
        return False

    def _by_rows(self, q: Array) -> Array | None:
        for _ in range(STEPS):
            e, J = self._loops.rows(q)
            if float(np.abs(e).max()) < SHUT:
                return q
            B = _inverse(J * self._free)
            if B is None:
                return None
            u = B @ e
            q = self._loops.step(q, -u * min(1.0, LONGEST / max(float(np.sqrt(u @ u)), 1e-300)))
        return None


def _inverse(J: Array) -> Array | None:
    """(n, m) that takes rows to the shortest steps, of J (m, n)."""
    squares = J @ J.T
    squares.flat[:: len(J) + 1] += ROUNDING  # rows may say the same twice
    try:
        return J.T @ np.linalg.inv(squares)
    except np.linalg.LinAlgError:
        return None


def _numbers(loops: Loops, part: Part) -> npt.NDArray[np.int64]:
    """Where in q the freedoms of a part are."""
    space, mine = loops.mechanism.space, set(part.v.tolist())
    found = [c for v, c in enumerate(loops.columns.tolist()) if c >= 0 and v in mine]
    for first, v in zip(space.balls_q.tolist(), space.balls_v.tolist(), strict=True):
        found += range(first, first + 4) if v in mine else ()
    return np.array(found, dtype=np.int64)
