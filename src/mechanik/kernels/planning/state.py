"""What is kept between two calls of the kernels that search for a way or make it shorter, and what they return."""

from __future__ import annotations

# a row of whole numbers. For trees: nodes of either tree, and how many of them have grown; the nodes at which they meet
NODES, GROWN, MEETING = 0, 2, 4
# for shortcuts: knots; shortcuts that were tried, and how many of them in vain since the last that was not; the stage
KNOTS, TRIED, VAIN, STAGE = 0, 1, 2, 3
# for both: looks that were taken; random numbers that were drawn
LOOKS, DRAWN, STATE_INTS = 6, 7, 8

DONE, TIRED, FULL = 0, 1, 2
"""The trees meet, or nothing shorter is found; it has looked often enough for now; there is no room for more nodes."""
