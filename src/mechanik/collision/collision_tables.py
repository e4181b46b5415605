"""Tables that the collision kernels read: shapes, bodies, pair lists, and a bounding volume hierarchy (BVH).

The BVH is a tree of axis-aligned boxes over the shapes that do not move, except half-spaces, which are unbounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik.collision.collision_body import CollisionBody, KernelShape
from mechanik.kernels.distance import collision_layout as layout
from mechanik.kernels.distance.collision_layout import (
    BOX_MAX,
    BOX_MIN,
    CHILD,
    HALF_SPACE,
    HULL,
    SHAPE_BODY,
    SHAPE_CENTRE,
    SHAPE_FLOATS,
    SHAPE_KIND,
    SHAPE_NODE,
    SHAPE_POSE,
    SHAPE_RADIUS,
    SHAPE_SIZE,
    TREE_FLOATS,
    TREE_SHAPE,
)
from mechanik.kernels.nodes import PARENT
from mechanik.model.kinematics import Kinematics
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module


def build_bvh(min_corners: Array, max_corners: Array, first_shape_index: int) -> Array:
    """Return a BVH (2n - 1, 8) in the layout of `kernels/distance/collision_layout.py`; (0, 8) without shapes.

    Args:
        min_corners, max_corners: (n, 3), m, smallest and largest corner of the box of each shape.
        first_shape_index: row of the first of these shapes in the table of shapes.
    """
    count = len(min_corners)
    bvh = np.zeros((max(0, 2 * count - 1), TREE_FLOATS))
    if not count:
        return bvh
    centres = (min_corners + max_corners) / 2
    next_row, stack = 1, [(0, np.arange(count))]
    while stack:
        row, shape_indices = stack.pop()
        bvh[row, BOX_MIN : BOX_MIN + 3], bvh[row, BOX_MAX : BOX_MAX + 3] = (
            min_corners[shape_indices].min(axis=0),
            max_corners[shape_indices].max(axis=0),
        )
        if len(shape_indices) == 1:
            bvh[row, TREE_SHAPE] = first_shape_index + shape_indices[0]
            continue
        axis = int(np.ptp(centres[shape_indices], axis=0).argmax())
        sorted_indices = shape_indices[np.argsort(centres[shape_indices, axis], kind="stable")]
        bvh[row, CHILD], bvh[row, TREE_SHAPE] = next_row, -1
        half_count = len(sorted_indices) // 2
        stack += [(next_row, sorted_indices[:half_count]), (next_row + 1, sorted_indices[half_count:])]
        next_row += 2
    return bvh


def refit_bvh(bvh: Array, shape_index: int, min_corner: Array, max_corner: Array) -> None:
    """Write the new box of a shape into its leaf and update all boxes above the leaf; the structure does not change.

    Args:
        shape_index: row of the shape in the table of shapes; a shape without a leaf, such as a half-space, is ignored.
        min_corner, max_corner: (3,), m, smallest and largest corner of its box.
    """
    leaves = np.flatnonzero(bvh[:, TREE_SHAPE] == shape_index)
    if not len(leaves):
        return
    row = int(leaves[0])
    bvh[row, BOX_MIN : BOX_MIN + 3], bvh[row, BOX_MAX : BOX_MAX + 3] = min_corner, max_corner
    parents = np.zeros(len(bvh), np.int64)
    inner_rows = np.flatnonzero(bvh[:, TREE_SHAPE] < 0)
    first_children = bvh[inner_rows, CHILD].astype(np.int64)
    parents[first_children] = parents[first_children + 1] = inner_rows
    while row:
        row = int(parents[row])
        child = int(bvh[row, CHILD])
        bvh[row, BOX_MIN : BOX_MIN + 3] = bvh[child : child + 2, BOX_MIN : BOX_MIN + 3].min(axis=0)
        bvh[row, BOX_MAX : BOX_MAX + 3] = bvh[child : child + 2, BOX_MAX : BOX_MAX + 3].max(axis=0)


Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

kernel = kernel_module("distance.collision_query")
MAX_SEPARATE_PAIRS = 64
"""Largest number of pairs of moving links for which each pair has its own result row. If there are more pairs, those
with the same first link share rows, which contain its nearest partners."""


@dataclass(frozen=True, slots=True, eq=False)
class CollisionTables:
    """Tables that the kernel `query` reads, in the order of its arguments, and the bodies, moving bodies first.

    The layouts of the rows are in `kernels/distance/collision_layout.py`.

    Attributes:
        nodes: (n, 18), nodes that move bodies and their ancestors, in the layout of `kernels/nodes.py`.
        shapes: (s, 24), one row for each shape.
        points: (p, 3), m, points of hulls and height fields.
        bodies: (b, 8), one row for each body.
        bvh: (t, 8), boxes over the shapes that do not move, without half-spaces.
        static_pair_mask: (moving, static), which moving bodies are checked against which bodies that do not move.
        counts: (4,), number of moving bodies, number of moving shapes, index of the first half-space, and nq.
        pair_lists: (g, 5), one row for each list: a moving body, its partners (the bodies that it is checked against),
            and the result rows of the nearest partners.
        partners: indices of moving bodies; each list with moving partners refers to a range of these indices.
        collision_bodies: the bodies, in the order of `bodies`.
    """

    nodes: Array
    shapes: Array
    points: Array
    bodies: Array
    bvh: Array
    static_pair_mask: Bools
    counts: Ints
    pair_lists: Ints
    partners: Ints
    collision_bodies: tuple[CollisionBody, ...]

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """First arguments of the kernel `query`."""
        return (
            self.nodes, self.shapes, self.points, self.bodies, self.bvh, self.static_pair_mask, self.counts,
            self.pair_lists, self.partners,
        )  # fmt: skip

    @property
    def row_count(self) -> int:
        """Number of result rows of all pair lists."""
        return int(self.pair_lists[:, layout.PAIR_ROWS].sum())

    @property
    def moving_count(self) -> int:
        """Number of moving bodies."""
        return int(self.counts[layout.MOVING_BODIES])

    def near_pairs(self, q: Array, max_distance: float, measured_count: Ints | None = None) -> Array:
        """Return every pair of bodies closer than `max_distance` (m) at one q (1, nq): (n, 12), not sorted.

        A row contains the index of the moving body, and then a result in the layout of `collision_layout.py`.

        Args:
            measured_count: (1,), output: number of measured pairs of shapes.
        """
        capacity, measured_count = 64, np.zeros(1, np.int64) if measured_count is None else measured_count
        while True:
            results = np.empty((1, capacity, layout.RESULT_FLOATS + 1))
            count = int(
                kernel.query(
                    *self.arrays, q, layout.QUERY_NEAR_PAIRS, max_distance, np.empty((0, 0)), results, measured_count
                )
            )
            if count <= capacity:
                return results[0, :count]
            capacity = count

    def with_body(self, body: CollisionBody) -> CollisionTables:
        """Return tables in which `body` replaces the static body with its name: the same shapes at a new pose."""
        body_index = next(k for k, other_body in enumerate(self.collision_bodies) if other_body.name == body.name)
        shapes, bvh = self.shapes.copy(), self.bvh.copy()
        rows = np.flatnonzero(shapes[:, SHAPE_BODY] == body_index)
        # in the order of the table: half-spaces last
        shapes_of_body = [entry for entry in body.kernel_shapes if entry[0].kind != HALF_SPACE]
        shapes_of_body += [entry for entry in body.kernel_shapes if entry[0].kind == HALF_SPACE]
        for row, (shape, X_body_shape) in zip(rows, shapes_of_body, strict=True):
            X_world_shape = body.X_node_body @ X_body_shape
            centre = X_world_shape[:3, :3] @ _box_centre(shape.core_points) + X_world_shape[:3, 3]
            _write_pose(shapes[row], X_world_shape, centre)
            refit_bvh(bvh, int(row), *shape.bounding_box(X_world_shape))
        collision_bodies = tuple(
            body if k == body_index else other_body for k, other_body in enumerate(self.collision_bodies)
        )
        return replace(self, shapes=shapes, bvh=bvh, collision_bodies=collision_bodies)


def build_collision_tables(
    kinematics: Kinematics,
    moving_bodies: Sequence[CollisionBody],
    static_bodies: Sequence[CollisionBody],
    static_pair_mask: Bools,
    pairs: Sequence[tuple[int, int]],
) -> CollisionTables:
    """Build the tables for the kernels.

    Args:
        static_pair_mask: (moving, static), which moving bodies are checked against which bodies that do not move.
        pairs: pairs of moving bodies to check against each other, as indices into `moving_bodies`.
    """
    nodes, node_index = _nodes_above(kinematics.nodes, [body.node for body in moving_bodies])
    bodies = [replace(body, node=node_index.get(body.node, -1)) for body in (*moving_bodies, *static_bodies)]
    entries = [
        (body_index, body, *shape_and_pose)
        for body_index, body in enumerate(bodies)
        for shape_and_pose in body.kernel_shapes
    ]
    # half-spaces come last, since the BVH cannot contain unbounded shapes
    entries.sort(key=lambda entry: entry[2].kind == HALF_SPACE)
    shapes, boxes, points, first_point = list[Array](), list[tuple[Array, Array]](), [np.zeros((0, 3))], 0
    for body_index, body, shape, X_body_shape in entries:
        X_node_shape = body.X_node_body @ X_body_shape
        shapes.append(_shape_row(body_index, body.node, shape, X_node_shape, first_point))
        points.append(shape.points)
        first_point += len(shape.points)
        if body_index >= len(moving_bodies) and shape.kind != HALF_SPACE:
            boxes.append(shape.bounding_box(X_node_shape))
    min_corners, max_corners = (np.array([box[k] for box in boxes]).reshape(-1, 3) for k in (0, 1))
    counts = np.zeros(layout.COUNTS, np.int64)
    counts[layout.MOVING_BODIES], counts[layout.MOVING_SHAPES] = (
        len(moving_bodies),
        sum(len(body.kernel_shapes) for body in moving_bodies),
    )
    counts[layout.FIRST_HALF_SPACE], counts[layout.Q_COUNT] = (
        counts[layout.MOVING_SHAPES] + len(boxes),
        kinematics.space.nq,
    )
    pair_lists, partners = _pair_lists(static_pair_mask, pairs)
    return CollisionTables(
        nodes=nodes,
        shapes=np.array(shapes).reshape(-1, SHAPE_FLOATS),
        points=np.vstack(points),
        bodies=_body_rows(bodies, len(moving_bodies)),
        bvh=build_bvh(min_corners, max_corners, int(counts[layout.MOVING_SHAPES])),
        static_pair_mask=np.ascontiguousarray(static_pair_mask),
        counts=counts,
        pair_lists=pair_lists,
        partners=partners,
        collision_bodies=tuple(bodies),
    )


def _pair_lists(static_pair_mask: Bools, pairs: Sequence[tuple[int, int]]) -> tuple[Ints, Ints]:
    """Return the tables of pair lists and of partners.

    First come the lists of each link with the bodies that do not move, then the pairs of links. Each pair of links has
    its own list; if there are more than MAX_SEPARATE_PAIRS pairs, all pairs with the same first link share one list.
    """
    # The partners of a list are given by their first index and their number.
    # The number -1 means the static bodies that `static_pair_mask` selects
    list_rows, partners, row = list[list[int]](), list[int](), 0
    for body, count in enumerate(static_pair_mask.sum(axis=1).tolist()):
        if count:
            list_rows.append([body, 0, -1, row, min(count, layout.MAX_PAIR_ROWS)])
            row += min(count, layout.MAX_PAIR_ROWS)
    partners_by_list: dict[tuple[int, int], list[int]] = {}
    for k, (a, b) in enumerate(pairs):
        partners_by_list.setdefault((a, k if len(pairs) <= MAX_SEPARATE_PAIRS else 0), []).append(b)
    for (a, _), list_partners in partners_by_list.items():
        list_rows.append([a, len(partners), len(list_partners), row, min(len(list_partners), layout.MAX_PAIR_ROWS)])
        partners += list_partners
        row += min(len(list_partners), layout.MAX_PAIR_ROWS)
    return np.array(list_rows, np.int64).reshape(-1, layout.PAIR_INTS), np.array(partners, np.int64)


def _nodes_above(nodes: Array, given_nodes: Iterable[int]) -> tuple[Array, dict[int, int]]:
    """Return the given nodes and all their ancestors, and the new index of each."""
    needed_nodes: set[int] = set()
    for node in given_nodes:
        while node >= 0 and node not in needed_nodes:
            needed_nodes.add(node)
            node = int(nodes[node, PARENT])
    new_index = {node: k for k, node in enumerate(sorted(needed_nodes))}
    needed_rows = nodes[sorted(needed_nodes)].copy()
    needed_rows[:, PARENT] = [new_index.get(int(parent), -1) for parent in needed_rows[:, PARENT]]
    return needed_rows, new_index


def _box_centre(points: Array) -> Array:
    return (points.min(axis=0) + points.max(axis=0)) / 2 if len(points) else np.zeros(3)


def _write_pose(row: Array, X_node_shape: Array, centre: Array) -> None:
    row[SHAPE_POSE : SHAPE_POSE + 9] = X_node_shape[:3, :3].ravel()
    row[SHAPE_POSE + 9 : SHAPE_POSE + 12] = X_node_shape[:3, 3]
    row[SHAPE_CENTRE : SHAPE_CENTRE + 3] = centre


def _shape_row(body_index: int, node: int, shape: KernelShape, X_node_shape: Array, first_point: int) -> Array:
    """Return the table row of a shape; `X_node_shape` (4, 4) is its pose in the frame of its node."""
    row = np.zeros(SHAPE_FLOATS)
    row[SHAPE_KIND], row[SHAPE_NODE], row[SHAPE_BODY] = shape.kind, node, body_index
    row[SHAPE_SIZE : SHAPE_SIZE + 3] = shape.sizes
    if shape.kind >= HULL:
        row[SHAPE_SIZE] = first_point
    centre = _box_centre(shape.core_points)
    _write_pose(row, X_node_shape, X_node_shape[:3, :3] @ centre + X_node_shape[:3, 3])
    row[SHAPE_RADIUS] = shape.bounding_radius(centre)
    return row


def _body_rows(bodies: Sequence[CollisionBody], moving_count: int) -> Array:
    """Return the table of bodies (b, 8); only the rows of moving bodies have a bounding sphere."""
    rows, first_shape = np.zeros((len(bodies), layout.BODY_FLOATS)), 0
    for body_index, (row, body) in enumerate(zip(rows, bodies, strict=True)):
        row[layout.FIRST_SHAPE], row[layout.SHAPE_COUNT], row[layout.BODY_NODE] = (
            first_shape,
            len(body.kernel_shapes),
            body.node,
        )
        first_shape += len(body.kernel_shapes)
        if body_index < moving_count:
            row[layout.BODY_CENTRE : layout.BODY_CENTRE + 3], row[layout.BODY_RADIUS] = _bounding_sphere(body)
    return rows


def _bounding_sphere(body: CollisionBody) -> tuple[Array, float]:
    """Return centre (3,) and radius of a bounding sphere of a body, relative to its node, m."""
    shapes_in_node = [(shape, body.X_node_body @ X_body_shape) for shape, X_body_shape in body.kernel_shapes]
    boxes = [shape.bounding_box(X_node_shape) for shape, X_node_shape in shapes_in_node]
    min_corner, max_corner = np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0)
    centre = (min_corner + max_corner) / 2
    return centre, max(
        shape.bounding_radius(X_node_shape[:3, :3].T @ (centre - X_node_shape[:3, 3]))
        for shape, X_node_shape in shapes_in_node
    )
