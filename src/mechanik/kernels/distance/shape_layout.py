"""How shapes that can bump are laid out for the kernels: a table S (n, 24), and points P (m, 3) for some kinds.

A gap is how far two shapes are apart, below zero how deep they are in each other: the shortest shift that parts them.
It comes with the normal n, a unit vector from A to B, and a point on each surface: b - a = gap * n, in each other or
not. Shifting B along n by s makes the gap larger by s.
"""

from __future__ import annotations

# kinds of shapes; those up to HALF_SPACE have closed forms
SPHERE, CAPSULE, BOX, HALF_SPACE, CYLINDER, HULL, FIELD = range(7)

# a row of S: the kind; three sizes; the shape seen from its node (R row by row, p); a ball about it, seen likewise;
# the node (-1: the world) and the body, a link or an obstacle, to which it belongs
KIND, SIZE, POSE, BALL, RADIUS, NODE, BODY = 0, 1, 4, 16, 19, 20, 21
SHAPE_FLOATS = 24
"""Sizes of a sphere: radius; of a capsule and a cylinder, along z: radius, half the straight part; of a box: half its
edges; of a half-space, which is solid below z = 0: none, and its ball is infinite; of a hull: its first row in P and
how many; of a height field: its first row in P, cells along x and along y. Rows of P that belong to a field: (x, y, z)
of its corners, row by row along x, z the height; and one row more, (bottom, 0, 0): it is solid down to there."""
