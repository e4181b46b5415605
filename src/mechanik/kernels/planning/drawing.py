"""Random numbers of a search of its own: nothing else draws from them, in whatever thread."""

from __future__ import annotations

import numpy as np

from ..compiler import helper
from ..seed_table import mixed
from .state import DRAWN


@helper
def draw(seed, state):
    """From 0 to below 1, the next of a row that the seed alone decides."""
    state[DRAWN] += 1
    x = mixed(mixed(np.uint64(seed) + np.uint64(state[DRAWN]) * np.uint64(0x9E3779B97F4A7C15)))
    return np.float64(x >> np.uint64(11)) * (1.0 / 9007199254740992.0)
