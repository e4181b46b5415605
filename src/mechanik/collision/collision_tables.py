"""Tables that the collision kernels read: shapes, bodies, pair lists, and a bounding volume hierarchy (BVH).

The BVH is a tree of axis-aligned boxes over the shapes that do not move, except half-spaces, which are unbounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mechanik.collision.collision_body import CollisionBody, KernelShape
from mechanik.kernels.distance.collision_layout import (
    ALL_STATIC,
    HALF_SPACE,
    HULL,
    MAX_PAIR_ROWS,
    QUERY_NEAR_PAIRS,
    DistanceResult,
    PairList,
    SceneTables,
    Shape,
    TreeBox,
)
from mechanik.kernels.nodes import Node
from mechanik.kernels.tables import RecordArray
from mechanik.model.kinematics import Kinematics
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module


def fill_bvh(tree: RecordArray[TreeBox], min_corners: Array, max_corners: Array, first_shape: int) -> None:
    """Write a BVH over n > 0 shapes into a table of 2n - 1 boxes.

    Args:
        min_corners, max_corners: (n, 3), m, smallest and largest corner of the box of each shape.
        first_shape: index of the first of these shapes in the table of shapes.
    """
    centres = (min_corners + max_corners) / 2
    next_box, stack = 1, [(0, np.arange(len(centres)))]
    while stack:
        index, shape_indices = stack.pop()
        box = tree[index]
        box.low[:] = min_corners[shape_indices].min(axis=0)
        box.high[:] = max_corners[shape_indices].max(axis=0)
        if len(shape_indices) == 1:
            box.shape = first_shape + int(shape_indices[0])
            continue
        axis = int(np.ptp(centres[shape_indices], axis=0).argmax())
        sorted_indices = shape_indices[np.argsort(centres[shape_indices, axis], kind="stable")]
        box.first_child, box.shape = next_box, -1
        half_count = len(sorted_indices) // 2
        stack += [(next_box, sorted_indices[:half_count]), (next_box + 1, sorted_indices[half_count:])]
        next_box += 2


def refit_bvh(tree: RecordArray[TreeBox], shape_index: int, min_corner: Array, max_corner: Array) -> None:
    """Write the new box of a shape into its leaf and update all boxes above the leaf; the structure does not change.

    Args:
        shape_index: index of the shape; a shape without a leaf, such as a half-space, is ignored.
        min_corner, max_corner: (3,), m, smallest and largest corner of its box.
    """
    shapes = tree.column(TreeBox.shape)
    leaves = np.flatnonzero(shapes == shape_index)
    if not len(leaves):
        return
    index = int(leaves[0])
    tree[index].low[:], tree[index].high[:] = min_corner, max_corner
    parents = np.zeros(len(tree), np.int64)
    inner_boxes = np.flatnonzero(shapes < 0)
    first_children = tree.column(TreeBox.first_child)[inner_boxes].astype(np.int64)
    parents[first_children] = parents[first_children + 1] = inner_boxes
    while index:
        index = int(parents[index])
        box = tree[index]
        first_child, second_child = tree[box.first_child], tree[box.first_child + 1]
        box.low[:] = np.minimum(first_child.low, second_child.low)
        box.high[:] = np.maximum(first_child.high, second_child.high)


Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

kernel = kernel_module("distance.collision_query")
MAX_SEPARATE_PAIRS = 64
"""Largest number of pairs of moving links for which each pair has its own result row. If there are more pairs, those
with the same first link share rows, which contain its nearest partners."""


@dataclass(frozen=True, slots=True, eq=False)
class CollisionTables:
    """Tables that the kernel `query` reads, and the bodies, moving bodies first.

    Attributes:
        scene: nodes that move bodies and their ancestors, shapes, bodies, BVH and pair lists.
        points: (p, 3), m, points of hulls and height fields.
        collision_bodies: the bodies, in the order of `scene.bodies`.
    """

    scene: SceneTables
    points: Array
    collision_bodies: tuple[CollisionBody, ...]

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """First arguments of the kernel `query`."""
        return self.scene.ints, self.scene.floats, self.points

    @property
    def moving_count(self) -> int:
        """Number of moving bodies."""
        return self.scene.moving_body_count

    @property
    def static_pairs(self) -> list[tuple[int, int]]:
        """The checked pairs of a moving body and a static body, by index."""
        return [(a, self.moving_count + b) for a, b in np.argwhere(self.scene.is_checked).tolist()]

    def partners(self, pair_list: PairList) -> list[int]:
        """Return the moving bodies that are the partners of a pair list; none for a list of static bodies."""
        if pair_list.partner_count == ALL_STATIC:
            return []
        first = pair_list.first_partner
        return self.scene.partners[first : first + pair_list.partner_count].tolist()

    def near_pairs(
        self, q: Array, max_distance: float, measured_count: Ints | None = None
    ) -> RecordArray[DistanceResult]:
        """Return every pair of bodies closer than `max_distance` (m) at one q (1, nq), not sorted.

        Args:
            measured_count: (1,), output: number of measured pairs of shapes.
        """
        capacity, measured_count = 64, np.zeros(1, np.int64) if measured_count is None else measured_count
        while True:
            results = np.empty((1, capacity, DistanceResult.size))
            count = int(
                kernel.query(
                    *self.arrays, q, QUERY_NEAR_PAIRS, max_distance, np.empty((0, 0)), results,
                    measured_count,
                )
            )  # fmt: skip
            if count <= capacity:
                return RecordArray(DistanceResult, results[0, :count].reshape(-1))
            capacity = count

    def with_body(self, body: CollisionBody) -> CollisionTables:
        """Return tables in which `body` replaces the static body with its name: the same shapes at a new pose."""
        body_index = next(k for k, other_body in enumerate(self.collision_bodies) if other_body.name == body.name)
        scene = SceneTables(self.scene.ints, self.scene.floats.copy())
        indices = np.flatnonzero(scene.shapes.column(Shape.body) == body_index).tolist()
        # in the order of the table: half-spaces last
        shapes_of_body = [entry for entry in body.kernel_shapes if entry[0].kind != HALF_SPACE]
        shapes_of_body += [entry for entry in body.kernel_shapes if entry[0].kind == HALF_SPACE]
        for index, (shape, X_body_shape) in zip(indices, shapes_of_body, strict=True):
            X_world_shape = body.X_node_body @ X_body_shape
            centre = X_world_shape[:3, :3] @ _box_centre(shape.core_points) + X_world_shape[:3, 3]
            _write_pose(scene.shapes[index], X_world_shape, centre)
            refit_bvh(scene.tree, index, *shape.bounding_box(X_world_shape))
        collision_bodies = tuple(
            body if k == body_index else other_body for k, other_body in enumerate(self.collision_bodies)
        )
        return replace(self, scene=scene, collision_bodies=collision_bodies)

    def with_pair_lists(self, indices: Sequence[int]) -> CollisionTables:
        """Return the same tables with only the pair lists of the given indices, in this order."""
        scene = SceneTables(self.scene.ints.copy(), self.scene.floats)
        rows = self.scene.pair_lists.rows[list(indices)]
        scene.pair_lists.rows[: len(rows)] = rows
        scene.pair_list_count = len(rows)
        return replace(self, scene=SceneTables(scene.ints, scene.floats))  # views of `scene` have the previous length

    def with_one_row_per_list(self) -> CollisionTables:
        """Return the same tables with one result row for each pair list: the distance of its nearest pair."""
        scene = SceneTables(self.scene.ints.copy(), self.scene.floats)
        for row, pair_list in enumerate(scene.pair_lists):
            pair_list.first_row, pair_list.row_count = row, 1
        return replace(self, scene=scene)


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
    moving_shape_count = sum(len(body.kernel_shapes) for body in moving_bodies)
    first_half_space = sum(entry[2].kind != HALF_SPACE for entry in entries)
    pair_lists = _pair_lists(static_pair_mask, pairs)
    scene = SceneTables.allocate(
        node_count=len(nodes),
        shape_count=len(entries),
        moving_shape_count=moving_shape_count,
        first_half_space=first_half_space,
        moving_body_count=len(moving_bodies),
        static_body_count=len(static_bodies),
        box_count=max(0, 2 * (first_half_space - moving_shape_count) - 1),
        pair_list_count=len(pair_lists),
        partner_count=sum(entry.partner_count for entry in pair_lists if entry.moving_partners is not None),
        nq=kinematics.space.nq,
    )
    scene.nodes.rows[:] = nodes
    scene.is_checked[...] = static_pair_mask
    boxes, points, first_point = list[tuple[Array, Array]](), [np.zeros((0, 3))], 0
    for row, (body_index, body, shape, X_body_shape) in zip(scene.shapes, entries, strict=True):
        X_node_shape = body.X_node_body @ X_body_shape
        _write_shape(row, body_index, body.node, shape, X_node_shape, first_point)
        points.append(shape.points)
        first_point += len(shape.points)
        if body_index >= len(moving_bodies) and shape.kind != HALF_SPACE:
            boxes.append(shape.bounding_box(X_node_shape))
    if boxes:
        min_corners, max_corners = (np.array([box[k] for box in boxes]) for k in (0, 1))
        fill_bvh(scene.tree, min_corners, max_corners, moving_shape_count)
    _write_bodies(scene, bodies)
    _write_pair_lists(scene, pair_lists)
    return CollisionTables(scene, np.vstack(points), tuple(bodies))


class _Partners(NamedTuple):
    """A moving body, the number of its partners, and the partners if they move; None for all checked static bodies."""

    body: int
    partner_count: int
    moving_partners: list[int] | None


def _pair_lists(static_pair_mask: Bools, pairs: Sequence[tuple[int, int]]) -> list[_Partners]:
    """Return the pair lists.

    First come the lists of each link with the bodies that do not move, then the pairs of links. Each pair of links has
    its own list; if there are more than MAX_SEPARATE_PAIRS pairs, all pairs with the same first link share one list.
    """
    counts = static_pair_mask.sum(axis=1).tolist()
    pair_lists = [_Partners(body, count, None) for body, count in enumerate(counts) if count]
    partners_by_list: dict[tuple[int, int], list[int]] = {}
    for k, (a, b) in enumerate(pairs):
        partners_by_list.setdefault((a, k if len(pairs) <= MAX_SEPARATE_PAIRS else 0), []).append(b)
    return pair_lists + [_Partners(a, len(partners), partners) for (a, _), partners in partners_by_list.items()]


def _write_pair_lists(scene: SceneTables, pair_lists: Sequence[_Partners]) -> None:
    first_partner, first_row = 0, 0
    for record, (body, count, moving_partners) in zip(scene.pair_lists, pair_lists, strict=True):
        record.body, record.partner_count = body, ALL_STATIC
        if moving_partners is not None:
            record.first_partner, record.partner_count = first_partner, count
            scene.partners[first_partner : first_partner + count] = moving_partners
            first_partner += count
        record.first_row, record.row_count = first_row, min(count, MAX_PAIR_ROWS)
        first_row += record.row_count


def _nodes_above(nodes: Array, given_nodes: Iterable[int]) -> tuple[Array, dict[int, int]]:
    """Return the given nodes and all their ancestors, and the new index of each."""
    all_nodes, needed_nodes = RecordArray(Node, nodes.reshape(-1)), set[int]()
    for node in given_nodes:
        while node >= 0 and node not in needed_nodes:
            needed_nodes.add(node)
            node = all_nodes[node].parent
    new_index = {node: k for k, node in enumerate(sorted(needed_nodes))}
    rows = nodes[sorted(needed_nodes)]
    for node in RecordArray(Node, rows.reshape(-1)):
        node.parent = new_index.get(node.parent, -1)
    return rows, new_index


def _box_centre(points: Array) -> Array:
    return (points.min(axis=0) + points.max(axis=0)) / 2 if len(points) else np.zeros(3)


def _write_pose(row: Shape, X_node_shape: Array, centre: Array) -> None:
    row.X_node_shape[:9], row.X_node_shape[9:] = X_node_shape[:3, :3].ravel(), X_node_shape[:3, 3]
    row.centre[:] = centre


def _write_shape(
    row: Shape, body_index: int, node: int, shape: KernelShape, X_node_shape: Array, first_point: int
) -> None:
    """Write the record of a shape; `X_node_shape` (4, 4) is its pose in the frame of its node."""
    row.kind, row.node, row.body = shape.kind, node, body_index
    row.sizes[:] = shape.sizes
    if shape.kind >= HULL:
        row.sizes[0] = first_point
    centre = _box_centre(shape.core_points)
    _write_pose(row, X_node_shape, X_node_shape[:3, :3] @ centre + X_node_shape[:3, 3])
    row.radius = shape.bounding_radius(centre)


def _write_bodies(scene: SceneTables, bodies: Sequence[CollisionBody]) -> None:
    """Write the records of all bodies; only those of moving bodies have a bounding sphere."""
    first_shape = 0
    for body_index, (row, body) in enumerate(zip(scene.bodies, bodies, strict=True)):
        row.first_shape, row.shape_count, row.node = first_shape, len(body.kernel_shapes), body.node
        first_shape += len(body.kernel_shapes)
        if body_index < scene.moving_body_count:
            row.centre[:], row.radius = _bounding_sphere(body)


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
