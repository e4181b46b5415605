"""How a mechanism and what stands around it are laid out for `watch.py`: besides shapes, bodies, guards and a tree.

Bodies are links and obstacles. Those that move come first, and so do their shapes; a body's shapes follow each other.
A guard is a moving body and what it is kept off: all that stands still, found through the tree, or some moving bodies.
"""

from __future__ import annotations

# a row of `bodies` (b, 8): its first shape and how many; its node (-1: the world); a ball about all of it, seen from it
FIRST_SHAPE, SHAPES, BODY_NODE, BODY_BALL, BODY_RADIUS, BODY_FLOATS = 0, 1, 2, 3, 6, 8

# a row of `guards` (g, 5): the body; where its partners begin in `partners` and how many (-1: all that stands still);
# where its rows begin and how many: it speaks for so many partners, the nearest
GUARDED, FIRST_PARTNER, PARTNERS, FIRST_ROW, ROWS, GUARD_INTS = 0, 1, 2, 3, 4, 5

MOST_ROWS = 3
"""For how many partners a guard speaks at most: a link in a corner has two or three walls to mind at once."""

# a row of `tree` (t, 8): the least and the largest x, y, z; the first of two children, which are neighbours; the shape
# (-1 where it has children). Row 0 is the root.
LOW, HIGH, CHILD, TREE_SHAPE, TREE_FLOATS = 0, 3, 6, 7, 8

# `counts` (4,): moving bodies; moving shapes; the first half-space, which no tree can hold; numbers of q
MOVING_BODIES, MOVING_SHAPES, FIRST_WIDE, LENGTH_OF_Q, COUNTS = 0, 1, 2, 3, 4

# a row of what is found: the partner; the gap; the normal away from the guarded body; a point on each
PARTNER, GAP, NORMAL, POINT_A, POINT_B, FOUND_FLOATS = 0, 1, 2, 5, 8, 11

# what `watch` is asked: whether all is free; the smallest gap; the rows of all guards; every pair that is near
IS_FREE, SMALLEST, ALL_ROWS, NEAR_PAIRS = 0, 1, 2, 3
"""Of near pairs: a row each, the guarded body and then what is found."""
