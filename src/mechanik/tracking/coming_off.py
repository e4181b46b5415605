"""How fast gaps have to open, or may close: what is near may be neared slowly, and what is too near is left again."""

from __future__ import annotations

import numpy as np

from mechanik.spatial.array import Array

SHARE = 0.2
"""Of what a step could do at most to open a gap: what is asked of it, so that other limits can be kept as well."""


def least_rates(gaps: Array, slopes: Array, v: Array, most: Array, clearance: float, nearing: float) -> Array:
    """(m,) m/s, below which the rates of the gaps may not be.

    Of gaps below the clearance the smallest has to open, as far as a step can do it; others may become as small meanwhile.

    Args:
        gaps: (m,) m.
        slopes: (m, n) how fast each opens with the freedoms that can move.
        v, most: (n,) how fast these move, and by how much that can change in a step.
        clearance: m.
        nearing: 1/s, the share of what is left of a gap that may be closed.
    """
    least = -nearing * (gaps - clearance)
    if not (least > 0.0).any():
        return least
    k = int(np.argmin(gaps))
    moving = slopes[k] != 0.0
    pull = float(slopes[k] @ v) + SHARE * float(np.abs(slopes[k][moving]) @ most[moving])
    opening = min(float(least[k]), max(pull, 0.0))
    least = np.minimum(least, -nearing * (gaps - gaps[k]))
    least[k] = opening
    return least
