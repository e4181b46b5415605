"""Tree planners: RRT-Connect in a kernel for Euclidean spaces, and in Python for loops, spherical joints, cone limits.

Two trees grow, one from the start and one from the goals. With loops, a tree grows towards random configurations whose
loops need not be closed: each step is straight and is then projected onto the closed loops. After each extension, the
other tree grows towards the new node (D. Berenson, S. S. Srinivasa, D. Ferguson and J. J. Kuffner, "Manipulation
planning on constraint manifolds", ICRA 2009).
"""

from __future__ import annotations

import time

import numpy as np

from mechanik.errors import UnknownName
from mechanik.kernels.planning.search_state import SEARCH_DONE, SEARCH_FULL, GrowthState
from mechanik.motion.plan.planning_space import Indices, PlanningSpace
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

tree_growth = kernel_module("planning.tree_growth")

INITIAL_CAPACITY = 256
"""Initial capacity of each tree in nodes; it is doubled when the tree is full."""
FIRST_CHECK_BUDGET = 1000
"""Number of collision checks in the first kernel call; later calls take about KERNEL_SECONDS."""
KERNEL_SECONDS = 0.03
"""s: approximate duration of a kernel call, which cannot be interrupted."""


def plan_rrt_connect(
    space: PlanningSpace, start: Array, goals: Array, deadline: float, rng: np.random.Generator
) -> Array | None:
    """Plan with RRT-Connect in a kernel, in a Euclidean space.

    The same state of `rng` gives the same path, however long each kernel call takes.

    Args:
        start: (nq,).
        goals: (K, nq).
        deadline: time of `time.perf_counter` at which the search ends.
        rng: generator of the seed of the kernel.

    Returns:
        Configurations (N, nq) from the start to a goal with free segments between them; None if no path was found
        before the deadline.
    """
    scene = space.scene()
    if scene is None:
        return np.array([start, goals[0]])
    lower, upper, roots = start.copy(), start.copy(), np.tile(start, (len(goals), 1))
    moving_indices = space.moving_indices
    roots[:, moving_indices] = goals[:, moving_indices]
    lower[moving_indices], upper[moving_indices] = (
        bound[moving_indices] for bound in space.bounds(np.vstack([start, goals]))
    )
    capacity = max(INITIAL_CAPACITY, 2 * len(goals))
    nodes = np.empty((2, len(start), capacity))
    parents, max_extensions = np.full((2, capacity), -1), np.full((2, capacity), np.inf)
    nodes[0, :, 0], nodes[1, :, : len(goals)] = start, roots.T
    state = GrowthState.allocate(np.int64)
    state.node_count[:] = 1, len(goals)
    seed, budget = int(rng.integers(2**62)), FIRST_CHECK_BUDGET
    while True:
        call_start = time.perf_counter()
        if call_start > deadline:
            return None
        checks_before = state.check_count
        status = tree_growth.grow_trees(
            *scene, lower, upper, space.unit, space.step, seed, budget, nodes, parents, max_extensions, state.numbers
        )
        space.check_count += state.check_count - checks_before
        if status == SEARCH_DONE:
            break
        if status == SEARCH_FULL:
            nodes, parents, max_extensions = (
                np.concatenate([array, array], axis=-1) for array in (nodes, parents, max_extensions)
            )
        else:
            budget = max(1, int(budget * min(4.0, KERNEL_SECONDS / max(1e-6, time.perf_counter() - call_start))))
    q_forward, q_backward = (
        _path_to_root(nodes[side], parents[side], int(state.meeting_node[side])) for side in (0, 1)
    )
    q = np.concatenate([q_forward[::-1], q_backward])
    q[0], q[-1] = start, goals[np.abs(roots - q[-1]).max(axis=1).argmin()]
    return q


def _path_to_root(nodes: Array, parents: Indices, node: int) -> Array:
    """Configurations (N, nq) from a node to the root of its tree."""
    indices = list[int]()
    while node >= 0:
        indices.append(node)
        node = int(parents[node])
    return nodes[:, indices].T


MAX_EXTENSION = 1.0
"""Planning units: longest extension towards a random configuration. Tuned on two arms that carry a box around a
pillar."""
NODE_INTERVAL = 4
"""Number of configurations along an extension from one node to the next."""


class _Tree:
    """A tree of valid configurations, and the segment from the parent to each node. A node is an index."""

    def __init__(self, space: PlanningSpace, roots: Array) -> None:
        self._space, self._count = space, len(roots)
        self._nodes = np.empty((max(256, 2 * len(roots)), roots.shape[1]))
        self._nodes[: len(roots)] = roots
        self._parents = [-1] * len(roots)
        self._segments = [roots[k : k + 1] for k in range(len(roots))]

    def __len__(self) -> int:
        return self._count

    def node_configuration(self, node: int) -> Array:
        """Configuration (nq,) of a node."""
        return self._nodes[node]

    def grow(self, target: Array, max_distance: float = np.inf) -> int:
        """Extend the tree from the node nearest to the target, as far as loops, limits and obstacles allow.

        Return the last new node, or the nearest node if there is no new node.

        Args:
            target: (nq,).
            max_distance: longest extension, planning units.
        """
        space = self._space
        differences = space.scaled_difference(self._nodes[: self._count], target)
        squared_distances = np.einsum("ij,ij->i", differences, differences)
        node = int(squared_distances.argmin())
        distance = float(np.sqrt(squared_distances[node]))
        q_near = self._nodes[node]
        if distance > max_distance:
            target = space.integrate(q_near, (max_distance / distance) * space.difference(q_near, target))
        segment = space.steer(q_near, target)
        is_free = space.are_free(segment[1:])
        segment = segment if is_free.all() else segment[: 1 + int(np.argmin(is_free))]
        for k in range(0, len(segment) - 1, NODE_INTERVAL):
            node = self._add(node, segment[k : k + NODE_INTERVAL + 1])
        return node

    def path_from_root(self, node: int) -> Array:
        """Configurations (N, nq) from the root to a node."""
        segments = list[Array]()
        while self._parents[node] >= 0:
            segments.append(self._segments[node][1:])
            node = self._parents[node]
        return np.concatenate([self._segments[node], *segments[::-1]])

    def _add(self, parent: int, segment: Array) -> int:
        """Add a node at the end of the segment (N, nq) from its parent, and return the node."""
        if self._count == len(self._nodes):
            self._nodes = np.concatenate([self._nodes, np.empty_like(self._nodes)])
        self._nodes[self._count] = segment[-1]
        self._parents.append(parent)
        self._segments.append(segment)
        self._count += 1
        return self._count - 1


def plan_constrained_rrt(
    space: PlanningSpace, start: Array, goals: Array, deadline: float, rng: np.random.Generator
) -> Array | None:
    """Plan with RRT-Connect in a space that is not Euclidean, such as with closed loops.

    Args:
        start: (nq,).
        goals: (K, nq).
        deadline: time of `time.perf_counter` at which the search ends.
        rng: generator of the random configurations.

    Returns:
        Free configurations (N, nq) from the start to a goal, about `space.step` apart; None if no path was found before
        the deadline.
    """
    lower, upper = space.bounds(np.vstack([start, goals]))
    trees = _Tree(space, start[None]), _Tree(space, goals)
    while time.perf_counter() < deadline:
        side = int(len(trees[1]) < len(trees[0]))
        tree, other_tree = trees[side], trees[1 - side]
        target = start.copy()
        target[space.moving_indices] = rng.uniform(lower, upper)[space.moving_indices]
        for k in space.moving_quaternions:
            target[k : k + 4] = quaternion.normalize(rng.normal(size=4))
        node_count = len(tree)
        node = tree.grow(target, MAX_EXTENSION)
        if len(tree) == node_count:
            continue
        other_node = other_tree.grow(tree.node_configuration(node))
        if np.array_equal(other_tree.node_configuration(other_node), tree.node_configuration(node)):
            halves = tree.path_from_root(node), other_tree.path_from_root(other_node)
            q_forward, q_backward = halves if side == 0 else halves[::-1]
            return np.concatenate([q_forward, q_backward[-2::-1]])
    return None


RRT_CONNECT = "rrt_connect"
"""Name of the built-in planner."""
PLANNER_NAMES = ("auto", RRT_CONNECT)


def check_planner(planner: str) -> None:
    """Reject an unknown planner name.

    Raises:
        UnknownName: `planner` is not a known name; the message lists the available names.
    """
    if planner not in PLANNER_NAMES:
        raise UnknownName("planner", planner, PLANNER_NAMES)
