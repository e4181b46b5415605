"""How fast gaps have to open, or may close: what is near may be neared slowly, and what is too near is left again."""

from __future__ import annotations

import numpy as np

from mechanik.spatial.array import Array

SHARE = 0.1
"""Of what a step could do at most to open a gap if all freedoms were by themselves: what is asked of it. Where loops
bind them it can do much less: two arms with a box did a tenth and not a fifth."""
TOGETHER = 2e-3
"""m: gaps that are that near to the smallest have to open with it. One after the other, a Panda in a ball came off it
in 4 of 7 places, together in 6."""


def least_rates(gaps: Array, slopes: Array, v: Array, most: Array, clearance: float, nearing: float) -> Array:
    """(m,) m/s, below which the rates of the gaps may not be.

    Of gaps below the clearance the smallest have to open, as far as a step can do it; others may become as small.

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
    first = gaps.min()
    together = gaps < first + TOGETHER
    steep = np.abs(slopes)
    gained = np.multiply(steep, most, out=np.zeros_like(steep), where=steep > 0.0).sum(axis=1)
    pull = slopes @ v + SHARE * gained
    others = np.minimum(least, -nearing * (gaps - first))
    return np.where(together, np.minimum(least, np.maximum(pull, 0.0)), others)
