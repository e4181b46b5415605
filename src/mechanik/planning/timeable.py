"""Knots so close that the smooth curve which `retime` lays through them is free as well, not only the straight ways."""

from __future__ import annotations

import numpy as np

from mechanik.errors import MissingExtra
from mechanik.kernels.planning.certificate_layout import LONG, TOUCHED
from mechanik.paths import Path
from mechanik.planning.ground import Ground
from mechanik.planning.halving import FINE
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module
from mechanik.timing.curve import MOST_KNOTS, ROUNDS, SAME, Curve, curve_through
from mechanik.timing.retime import DEVIATION

kernel = kernel_module("planning.curve")
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
        if is_free_curve(ground, closer, clearance):
            return closer
    return q


def is_free_curve(ground: Ground, q: Array, clearance: float) -> bool:
    """Whether the curve through knots q (N, nq) is free, looked at every 0.01 rad or 5 mm, about.

    Along loops and for balls, without what it takes to lay a curve there, nothing can be timed either: it counts as
    free.
    """
    scene, collider = ground.scene(), ground.collider
    if scene is None or collider is None:
        return True
    moved = np.linalg.norm(ground.difference(q[:-1], q[1:]), axis=1) > SAME
    knots = q[np.append(True, moved)]
    if len(knots) < 3:
        return True
    if ground.is_flat:
        looks = np.zeros(1, np.int64)
        answer = kernel.curve_is_free(
            *scene[:-1], clearance, knots, ground.unit, DEVIATION, FINE, ROUNDS, MOST_KNOTS, looks
        )
        ground.looks += int(looks[0])
        if answer != LONG:
            return bool(answer != TOUCHED)
    try:
        curve = curve_through(Path(ground.mechanism, knots), DEVIATION)
    except MissingExtra:
        return True
    return bool(np.all(collider.is_free(curve.places(_close(ground, curve)), clearance)))


def _close(ground: Ground, curve: Curve) -> Array:
    """(M,) numbers s, so close along a curve that no freedom goes farther than 0.01 rad or 5 mm, about."""
    knots = curve.pieces[3]
    ends = np.vstack([knots, curve.places(curve.s[-1:])])
    far = np.abs(ground.apart(ends[:-1], ends[1:])).max(axis=1)
    parts = np.maximum(np.ceil(far / FINE), 1.0).astype(np.int64)
    k = np.repeat(np.arange(len(parts)), parts)
    number = np.arange(len(k)) - np.repeat(np.cumsum(parts) - parts, parts)
    return np.append(curve.s[k] + number / parts[k] * np.diff(curve.s)[k], curve.s[-1])
