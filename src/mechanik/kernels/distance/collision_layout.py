"""Layout of the distance and collision tables: shapes, points, bodies, pairs, and a bounding volume hierarchy (BVH).

The distance between two shapes A and B is negative if they overlap; its magnitude is then the length of the shortest
translation that separates them (for height fields: the shortest that `shape_distance.py` tries). A distance result is
(d, n, a, b), ten numbers: the distance d (m), the unit normal n from A to B, and a point on the surface of each shape,
with b - a = d n, separated or overlapping. A translation of B by s >= 0 along n increases the distance by s.

Bodies are links and obstacles. Moving bodies come first, and so do their shapes; the shapes of a moving body are
contiguous. A node is a frame of the kinematic tree (`nodes.py`), and bodies are fixed to nodes. A pair list consists of
a moving body and its partners, the bodies that it is checked against: moving bodies, or the static bodies that the
table `is_checked` selects.

`SceneTables` declares the tables of a mechanism and its obstacles. The points of hulls and height fields are a separate
array (p, 3), m.
"""

from __future__ import annotations

from ..nodes import Node
from ..tables import (
    Record,
    Size,
    Tables,
    float_records,
    int_records,
    integer,
    ints,
    number,
    numbers,
    opener,
    records_opener,
)

# kinds of shapes; pairs of kinds up to HALF_SPACE have closed forms
SPHERE, CAPSULE, BOX, HALF_SPACE, CYLINDER, HULL, HEIGHT_FIELD = range(7)

ALL_STATIC = -1
"""Value of `PairList.partner_count`: the partners are the checked static bodies."""
MAX_PAIR_ROWS = 3
"""Largest number of result rows of a pair list: a link in a corner is near two or three walls."""

# modes of `query`: whether no pair is too near; the smallest distance; the distances of the result rows of all pair
# lists, with gradients; all near pairs
QUERY_IS_FREE, QUERY_SMALLEST, QUERY_ALL_PAIRS, QUERY_NEAR_PAIRS = range(4)
"""QUERY_NEAR_PAIRS writes a `DistanceResult` for each pair."""


class Shape(Record):
    """A shape.

    Attributes:
        kind: SPHERE to HEIGHT_FIELD.
        sizes: three sizes, lengths in m. Sphere: radius. Capsule and cylinder, along z: radius, half the straight
            length. Box: half the lengths of its edges. Half-space, solid below z = 0: none. Hull: its first row in
            `points`, and the number of its rows. Height field: its first row in `points`, the number of cells along x,
            and along y. The rows of a field in `points` are the (x, y, z) of its grid corners, row by row along x, with
            z the height, and then a row (bottom, 0, 0): the field is solid from its surface down to the height
            `bottom`.
        X_node_shape: the pose in the frame of its node: R row by row, then p in m.
        centre, radius: bounding sphere in the frame of its node, m; infinite for a half-space.
        node: its node; -1 for the world.
        body: its body.
    """

    kind = integer()
    sizes = numbers(3)
    X_node_shape = numbers(12)
    centre = numbers(3)
    radius = number()
    node = integer()
    body = integer()


class Body(Record):
    """A link or an obstacle; `first_shape` and the bounding sphere are valid for moving bodies only.

    Attributes:
        first_shape, shape_count: its first shape and the number of its shapes.
        node: its node; -1 for the world.
        centre, radius: bounding sphere in the frame of its node, m.
    """

    first_shape = integer()
    shape_count = integer()
    node = integer()
    centre = numbers(3)
    radius = number()


class PairList(Record):
    """A moving body and its partners.

    Attributes:
        body: the moving body.
        first_partner, partner_count: first index in `partners` and number of partners; ALL_STATIC for the checked
            static bodies.
        first_row, row_count: first result row, and number of result rows, which is the number of nearest partners to
            report.
    """

    body = integer()
    first_partner = integer()
    partner_count = integer()
    first_row = integer()
    row_count = integer()


class TreeBox(Record):
    """A box of the bounding volume hierarchy (BVH), parallel to the axes of the world.

    Attributes:
        low, high: smallest and largest x, y, z, m.
        first_child: the first of two contiguous children.
        shape: its shape; -1 for a box with children.
    """

    low = numbers(3)
    high = numbers(3)
    first_child = integer()
    shape = integer()


class DistanceResult(Record):
    """Distance of a moving body and a partner, in the world frame, m.

    Attributes:
        body, partner: the moving body and its partner.
        distance: signed distance.
        normal: unit normal from the body to the partner.
        point_a, point_b: points on the surfaces of the body and of the partner.
    """

    body = integer()
    partner = integer()
    distance = number()
    normal = numbers(3)
    point_a = numbers(3)
    point_b = numbers(3)


class SceneTables(Tables):
    """Tables of a mechanism and its obstacles; queries do not change them.

    `moving_shape_count` is the number of shapes of moving bodies. Half-spaces come last among the shapes, from
    `first_half_space` on; they are unbounded and therefore not in the tree. Box 0 is the root of the tree.
    """

    node_count = Size()
    shape_count = Size()
    moving_shape_count = Size()
    first_half_space = Size()
    moving_body_count = Size()
    static_body_count = Size()
    box_count = Size()
    pair_list_count = Size()
    partner_count = Size()
    nq = Size()

    pair_lists = int_records(PairList, pair_list_count)
    partners = ints(partner_count)  # moving bodies; each pair list has a range of these entries
    is_checked = ints(moving_body_count, static_body_count)  # whether the pair is checked

    nodes = float_records(Node, node_count)
    shapes = float_records(Shape, shape_count)
    bodies = float_records(Body, moving_body_count + static_body_count)
    tree = float_records(TreeBox, box_count)


open_scene = opener(SceneTables)
"""Return the tables of a scene from their two arrays."""
open_shapes = records_opener(Shape)
open_results = records_opener(DistanceResult)
