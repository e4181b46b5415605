"""How sure one can be of a share that was counted."""

from __future__ import annotations

import math

LEVEL_95 = 1.959963984540054
"""Standard deviations of the normal distribution that hold 95 %."""


def wilson(successes: int, trials: int, deviations: float = LEVEL_95) -> tuple[float, float]:
    """The interval in which the true share lies with 95 % confidence, 0 to 1.

    E. B. Wilson, Probable inference, the law of succession, and statistical inference, J. Am. Stat. Assoc. 22 (1927).
    It stays inside 0 to 1, and has a width where all or none succeeded. Nothing is known of no trials: (0, 1).
    """
    if trials == 0:
        return 0.0, 1.0
    share, z2 = successes / trials, deviations**2
    middle = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = deviations / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    # the ends are exact where all or none succeeded; rounding must not cut the share off
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    return low, 1.0 if successes == trials else min(1.0, middle + half)
