"""What `certificate.py` has to know of bodies and pairs, and what it tells.

It knows nothing of the layout of `distance.watch`, which measures, so that the one can change without the other.
"""

from __future__ import annotations

# a row of `balls` (b, 5): the node that carries a body, and the middle and radius of a ball about it, seen from there
NODE, MIDDLE, RADIUS, BALL_FLOATS = 0, 1, 4, 5

# a row of `couples` (c, 4): the gap that two bodies belong to; the bodies (-1: what stands still); the lowest node that
# carries both (-1: the world). Of all couples of a gap, the nearest is measured.
ROW, A, B, ABOVE, COUPLE_INTS = 0, 1, 2, 3, 4

PIECE, SHARE, GAP, LOOKS, IS_CERTAIN, STRIDE, STATE_FLOATS = 0, 1, 2, 3, 4, 5, 6
"""What is kept between two calls: the piece of the way and the share of it up to which nothing is left to say; the
smallest gap that was measured, m; how many looks there were; whether nothing can have been overlooked; how far the last
look led (rad, or half as many m)."""

UNSOUND, TOUCHED, FREE, PAUSED, LONG = -1, 0, 1, 2, 3
"""Answers, LONG that of `curve.py`."""
