"""Layout of the tables of the distance and collision kernels: shapes, points, bodies, pairs and the bounding box tree.

The distance between two shapes A and B is negative if they overlap; its magnitude is then the length of the shortest
translation that separates them (for height fields: the shortest that `shape_distance.py` tries). A distance result is
(d, n, a, b), ten numbers: the distance d (m), the unit normal n from A to B, and a point on the surface of each shape,
with b - a = d n, separated or overlapping. A translation of B by s >= 0 along n increases the distance by s.

Bodies are links and obstacles. Moving bodies come first, and so do their shapes; the shapes of a moving body are
contiguous. A node is a frame of the kinematic tree (`nodes.py`), and bodies are fixed to nodes. A pair list consists of
a moving body and its partners, the bodies that it is checked against: moving bodies, or the static bodies that the
argument `is_checked` of the query selects.
"""

from __future__ import annotations

# kinds of shapes; pairs of kinds up to HALF_SPACE have closed forms
SPHERE, CAPSULE, BOX, HALF_SPACE, CYLINDER, HULL, HEIGHT_FIELD = range(7)

# a row of `shapes` (n, 24): the kind; three sizes; the pose in the node's frame (R row by row, p); centre (in the
# node's frame) and radius of the bounding sphere; the node (-1: world); the body
SHAPE_KIND, SHAPE_SIZE, SHAPE_POSE, SHAPE_CENTRE, SHAPE_RADIUS, SHAPE_NODE, SHAPE_BODY = 0, 1, 4, 16, 19, 20, 21
SHAPE_FLOATS = 24
"""The three sizes of each kind, lengths in m. Sphere: radius. Capsule and cylinder, along z: radius, half the straight
length. Box: half the lengths of its edges. Half-space, solid below z = 0: none; its bounding sphere is infinite. Hull:
its first row in `points`, and the number of its rows. Height field: its first row in `points`, the number of cells
along x, and along y. The rows of a field in `points` are the (x, y, z) of its grid corners, row by row along x, with
z the height, and then a row (bottom, 0, 0): the field is solid from its surface down to the height `bottom`."""


# a row of `bodies` (b, 8): the body's first shape and the number of its shapes; its node (-1: world); centre (in the
# node's frame) and radius of its bounding sphere. The first shape and the sphere are valid for moving bodies only
FIRST_SHAPE, SHAPE_COUNT, BODY_NODE, BODY_CENTRE, BODY_RADIUS, BODY_FLOATS = 0, 1, 2, 3, 6, 8

# a row of `pair_lists` (g, 5): the body; the first index in `partners`, and the number of partners (-1: the
# checked static bodies); the first result row, and the number of result rows, which is the number of nearest partners
# to report
PAIR_BODY, FIRST_PARTNER, PARTNER_COUNT, FIRST_PAIR_ROW, PAIR_ROWS, PAIR_INTS = 0, 1, 2, 3, 4, 5

MAX_PAIR_ROWS = 3
"""Largest number of result rows of a pair list: a link in a corner is near two or three walls."""

# a row of `tree` (t, 8): smallest and largest x, y, z of a box (world, m); the first of two contiguous children; the
# shape (-1 for inner rows). Row 0 is the root.
BOX_MIN, BOX_MAX, CHILD, TREE_SHAPE, TREE_FLOATS = 0, 3, 6, 7, 8

# `counts` (4,): number of moving bodies; number of moving shapes; index of the first half-space (half-spaces are
# unbounded and therefore not in the tree); length of q
MOVING_BODIES, MOVING_SHAPES, FIRST_HALF_SPACE, Q_COUNT, COUNTS = 0, 1, 2, 3, 4

# a result row (world frame, m): the partner body; the distance; the unit normal, from the body of the list to the
# partner; a point on each surface
RESULT_PARTNER, RESULT_DISTANCE, RESULT_NORMAL, RESULT_POINT_A, RESULT_POINT_B, RESULT_FLOATS = 0, 1, 2, 5, 8, 11

# modes of `query`: whether no pair is too near; the smallest distance; the distances of the result rows of all pair
# lists, with gradients; all near pairs
QUERY_IS_FREE, QUERY_SMALLEST, QUERY_ALL_PAIRS, QUERY_NEAR_PAIRS = 0, 1, 2, 3
"""QUERY_NEAR_PAIRS writes a row for each pair: the body of the list, then a result row."""
