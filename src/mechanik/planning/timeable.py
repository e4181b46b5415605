"""Knots so close that the smooth curve which `retime` lays through them is free as well, not only the straight ways."""

from __future__ import annotations

import numpy as np

from mechanik.paths import Path
from mechanik.planning.certificate import FINE
from mechanik.planning.ground import Ground
from mechanik.spatial.array import Array
from mechanik.timing.curve import curve_through
from mechanik.timing.retime import DEVIATION

CLOSER = (0.4, 0.2, 0.1, 0.05, 0.02)
"""Units: how far knots are apart, one after the other, until it is."""


def timeable(ground: Ground, q: Array, clearance: float) -> Array:
    """The same knots (N, nq), with others between them where the curve would come too near; these lie on the way."""
    if ground.collider is None or len(q) < 3:
        return q
    for step in (None, *CLOSER):
        closer = q if step is None else ground.sampled(q, step)
        if closer is None:
            break
        curve = curve_through(Path(ground.mechanism, closer), DEVIATION)
        s = np.linspace(0.0, curve.length, 2 + int(curve.length / FINE))
        if np.all(ground.collider.is_free(curve.at(s)[0], clearance)):
            return closer
    return q
