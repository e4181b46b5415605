"""How fast gaps shall open, or may close: what is near may be neared slowly, and what is too near is left again."""

from __future__ import annotations

import numpy as np

from mechanik.spatial.array import Array

LEAVING = 0.01
"""m/s at which what is too near is left at least: by a share of what is missing alone it would take for ever."""
OF_A_STEP = 0.2
"""The largest share of what is left of a gap, or missing, that may be taken in one step."""
TOO_NEAR = 1e-4
"""m below the clearance, which bends of the way may cost; what is nearer is said, and left."""
STEPS = 2
"""So many steps longer than full braking takes is reckoned with: what comes to be in this step is known after it."""


def time_to_stop(v: Array, acceleration: Array, dt: float) -> float:
    """s, in which all freedoms (n,) can come to rest together, each slowing down by the same share of its velocity."""
    return float(np.max(np.abs(v) / acceleration, initial=0.0)) + STEPS * dt


def gap_rates(gaps: Array, clearance: float, stopping: float, leaving: float, dt: float) -> tuple[Array, Array]:
    """Rates of gaps (m,) that are wanted, and what none shall be below even where these cannot be had, both m/s.

    A gap that closes at a rate r while all slows down together for a time T shrinks by r T / 2. Four times as much is
    kept, since rates change as things turn. Gaps below the clearance shall open. None may become too small by more than
    the smallest is.

    Args:
        gaps: (m,) m.
        clearance: m.
        stopping: s, T.
        leaving: 1/s, the share of what is missing that is wanted.
        dt: s.
    """
    most, missing = OF_A_STEP / dt, clearance - gaps
    nearing = min(0.5 / stopping, most) * missing
    wanted = np.maximum(min(leaving, most) * missing, np.minimum(LEAVING, most * missing))
    wanted = np.where(missing > 0.0, wanted, nearing)
    smallest = min(clearance - TOO_NEAR, float(gaps.min(initial=np.inf)))
    return wanted, most * (smallest - gaps)
