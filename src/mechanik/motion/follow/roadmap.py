"""Roadmap of solution branches along the path parameter s, and the search for the best route through it.

Nodes are configurations at a few waypoints, the stations. Edges are branches traced by continuation from station to
station: forward from all nodes, then backward from the nodes that no edge reaches. Where two branches cross, two
forward traces may continue on the same branch; the backward trace adds the other. For a redundant mechanism, nodes are
samples, and edges blend from a traced branch to a nearby sample.

The largest step of a route is the largest change of a dof between two waypoints. Routes whose largest step is at most
MAX_STEP_RATIO times the smallest possible one are compared by their cost, which is the sum of a cost of length and a
cost of closeness to joint limits. The best route is computed by dynamic programming over nodes and windings (numbers of
full rotations): a multi-turn joint, with a range of a full rotation or more, has several values for the same pose, and
the search selects a value that stays within the limits along the whole path.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mechanik.motion.follow.branch_tracing import MAX_TRACE_STEP, TracedBranch, trace_branches
from mechanik.motion.follow.follow_problem import FEASIBLE, FULL_ROTATION, FollowProblem, Indices, are_segments_free
from mechanik.spatial.array import Array

SAME_NODE_DISTANCE = 1e-4
"""rad or m: configurations closer than this are the same node."""
MIN_NODE_DISTANCE = 0.1
"""rad or m: if the mechanism is redundant, the end of a forward trace becomes a node only if it is farther than this
from the other nodes of the station."""
ENOUGH_NODES_BATCHED = 32
"""Number of nodes at a station that is enough for batched problems (`FollowProblem.is_batched`); see
`Roadmap.enough_nodes`."""
ENOUGH_NODES = 8
"""The same for problems that are not batched: it is smaller because each projection takes longer."""
BLENDS_PER_BRANCH = 4
"""Largest number of nodes of the next station to which each branch is blended, if the mechanism is redundant."""
MAX_BLEND_DISTANCE = 1.5
"""rad or m: largest distance from the end of a branch to a node to which it is blended."""
JUMP_RATIO = 6.0
"""Ratio of the largest to the mean step above which a blend counts as a jump, if its largest step exceeds
SHORT_STEP."""
SHORT_STEP = 0.02
"""rad or m: a blend with smaller steps does not count as a jump."""

NodeFunction = Callable[[float], Array]
"""Function that maps s to configurations (n, nq) that meet the goals at s."""


@dataclass(frozen=True, slots=True, eq=False)
class RoadmapEdge:
    """A continuous curve from a node of a station to a node of the next station, modulo full rotations.

    Attributes:
        start_node, end_node: indices of the nodes within their stations.
        q: (m, nq) configurations at all waypoints from station to station, both included; angles are continuous.
    """

    start_node: int
    end_node: int
    q: Array


@dataclass(slots=True, eq=False)
class Roadmap:
    """Configurations at the stations, and the curves between them.

    Attributes:
        problem: the path-following problem.
        stations: (M,) indices of waypoints; the first and the last waypoint are included.
        nodes: configurations (nq,) of each station.
        edges: curves between each station and the next.
        start_count: a path may start only at the first `start_count` nodes of the first station; None: at any node.
        forward_branches: for each station, by node index, the branches that were traced from its nodes and end before
            the next station.
        backward_branches: for each station, by node index, the branches that were traced backward from its nodes and
            end before the previous station.
    """

    problem: FollowProblem
    stations: list[int]
    nodes: list[list[Array]]
    edges: list[list[RoadmapEdge]]
    start_count: int | None = None
    forward_branches: list[dict[int, TracedBranch]] = field(default_factory=list[dict[int, TracedBranch]])
    backward_branches: list[dict[int, TracedBranch]] = field(default_factory=list[dict[int, TracedBranch]])

    @property
    def enough_nodes(self) -> int:
        """Number of nodes at a station that is enough.

        If the mechanism is redundant, forward traces add nodes up to this number, and backward traces up to twice this
        number. If it is not redundant, all ends of traces become nodes, and no further nodes are searched at a station
        that this number of branches reach (see `build_roadmap`).
        """
        return ENOUGH_NODES_BATCHED if self.problem.is_batched else ENOUGH_NODES

    def edge_parameters(self, i: int) -> Array:
        """Parameters s of the waypoints from station i to the next, both included."""
        return self.problem.s[self.stations[i] : self.stations[i + 1] + 1]


def build_roadmap(
    problem: FollowProblem,
    stations: list[int],
    first_nodes: Array,
    find_nodes: NodeFunction | None = None,
    *,
    is_start_fixed: bool = False,
) -> Roadmap:
    """Build a roadmap: trace branches forward from station to station, then backward from unreached nodes.

    Args:
        problem: the path-following problem.
        stations: indices of waypoints.
        first_nodes: (n, nq) configurations that meet the goals at the first station; may be empty.
        find_nodes: function that finds configurations that meet the goals at the other stations. It is not called for a
            station that enough branches reach, unless the mechanism is redundant or the solver finds all solutions.
        is_start_fixed: whether a path must start at one of `first_nodes`, if there are any.
    """
    segment_count = len(stations) - 1
    roadmap = Roadmap(
        problem, stations, [list(first_nodes), *([] for _ in range(segment_count))], [[] for _ in range(segment_count)]
    )
    roadmap.start_count = len(first_nodes) if is_start_fixed and len(first_nodes) else None
    roadmap.forward_branches = [{} for _ in stations]
    roadmap.backward_branches = [{} for _ in stations]
    for i in range(segment_count):
        _trace_forward(roadmap, i, find_nodes)
    for i in range(segment_count, 0, -1):
        _trace_backward(roadmap, i)
    return roadmap


def _trace_forward(roadmap: Roadmap, i: int, find_nodes: NodeFunction | None) -> None:
    """Trace branches from all nodes of station i to the next station, and add the nodes there and the edges to them."""
    problem, nodes = roadmap.problem, roadmap.nodes[i]
    branches = trace_branches(problem, np.array(nodes), roadmap.edge_parameters(i)) if nodes else []
    complete_branches: list[tuple[int, Array]] = []
    for k, branch in enumerate(branches):
        if branch.code == FEASIBLE:
            complete_branches.append((k, branch.q))
        else:
            roadmap.forward_branches[i][k] = branch
    has_enough_branches = len(complete_branches) >= roadmap.enough_nodes and not (
        problem.can_find_all_branches or problem.redundancy
    )
    if find_nodes is not None and not has_enough_branches:
        roadmap.nodes[i + 1] = list(find_nodes(float(problem.s[roadmap.stations[i + 1]])))
    _add_edges(roadmap, i, complete_branches)


def _add_edges(roadmap: Roadmap, i: int, complete_branches: list[tuple[int, Array]]) -> None:
    """Add edges from station i to the next, and a new node where a branch does not end at an existing node.

    If the mechanism is redundant, the number of nodes is limited, and branches are also blended to the nearest nodes.

    Args:
        complete_branches: for each branch that reaches the next station, the index of its start node and the
            configurations (m, nq).
    """
    problem, next_nodes = roadmap.problem, roadmap.nodes[i + 1]
    complete_branches.sort(key=lambda item: float(np.abs(np.diff(item[1], axis=0)).max(initial=0.0)))
    for k, q in complete_branches:
        nearest = nearest_node(problem, next_nodes, q[-1])
        if nearest is None or nearest[1] > (MIN_NODE_DISTANCE if problem.redundancy else SAME_NODE_DISTANCE):
            if len(next_nodes) < roadmap.enough_nodes or not problem.redundancy:
                roadmap.edges[i].append(RoadmapEdge(k, len(next_nodes), q))
                next_nodes.append(q[-1])
        elif not problem.redundancy:
            roadmap.edges[i].append(RoadmapEdge(k, nearest[0], q))
    if problem.redundancy and next_nodes:
        for k, q in complete_branches:
            distances = np.abs(problem.wrapped_difference(q[-1], np.array(next_nodes))).max(axis=1)
            for b in map(int, np.argsort(distances, kind="stable")[:BLENDS_PER_BRANCH]):
                if (
                    # a branch already has an edge to the node that was made from its end, at distance 0
                    1e-9 < distances[b] < MAX_BLEND_DISTANCE
                    and (blend := _blend_to_node(roadmap, i, q, next_nodes[b])) is not None
                ):
                    roadmap.edges[i].append(RoadmapEdge(k, b, blend))


def _blend_to_node(roadmap: Roadmap, i: int, q: Array, q_node: Array) -> Array | None:
    """Smooth curve (m, nq) from the start of the branch q (m, nq) to a node.

    None if the curve does not meet the goals, violates the clearance, jumps or does not end at the node.

    Args:
        q_node: (nq,) configuration of the node, at station i + 1.
    """
    problem = roadmap.problem
    share = np.linspace(0.0, 1.0, len(q))
    share = share**2 * (3.0 - 2.0 * share)
    q_guesses = problem.space.integrate(q, share[:, None] * problem.wrapped_difference(q[-1], q_node))
    q_blend, codes = problem.project(roadmap.edge_parameters(i), q_guesses)
    if (codes != FEASIBLE).any() or not are_segments_free(problem, q_blend[:-1], q_blend[1:]).all():
        return None
    steps = np.abs(problem.space.difference(q_blend[:-1], q_blend[1:])).max(axis=1)
    is_even = steps.max() <= max(JUMP_RATIO * steps.mean(), SHORT_STEP) and steps.max() <= MAX_TRACE_STEP
    return (
        q_blend
        if is_even and np.abs(problem.wrapped_difference(q_blend[-1], q_node)).max() < SAME_NODE_DISTANCE
        else None
    )


def _trace_backward(roadmap: Roadmap, i: int) -> None:
    """Trace branches backward to the previous station, from all nodes of station i at which no edge ends."""
    problem = roadmap.problem
    reached_nodes = {edge.end_node for edge in roadmap.edges[i - 1]}
    unreached_nodes = [k for k in range(len(roadmap.nodes[i])) if k not in reached_nodes]
    if not unreached_nodes:
        return
    previous_nodes = roadmap.nodes[i - 1]
    branches = trace_branches(
        problem, np.array([roadmap.nodes[i][k] for k in unreached_nodes]), roadmap.edge_parameters(i - 1)[::-1]
    )
    for k, branch in zip(unreached_nodes, branches, strict=True):
        if branch.code != FEASIBLE:
            roadmap.backward_branches[i][k] = branch
            continue
        q = np.ascontiguousarray(branch.q[::-1])
        nearest = nearest_node(problem, previous_nodes, q[0])
        if nearest is not None and nearest[1] <= SAME_NODE_DISTANCE:
            roadmap.edges[i - 1].append(RoadmapEdge(nearest[0], k, q))
        elif len(previous_nodes) < 2 * roadmap.enough_nodes or not problem.redundancy:
            roadmap.edges[i - 1].append(RoadmapEdge(len(previous_nodes), k, q))
            previous_nodes.append(q[0])


def nearest_node(problem: FollowProblem, nodes: list[Array], q: Array) -> tuple[int, float] | None:
    """Index of the node nearest to q (nq,), and its distance from q; None if there are no nodes.

    The distance is the largest difference of a dof, rad or m, modulo full rotations.
    """
    if not nodes:
        return None
    distances = np.abs(problem.wrapped_difference(q, np.array(nodes))).max(axis=1)
    k = int(np.argmin(distances))
    return k, float(distances[k])


MAX_STEP_RATIO = 1.25
"""Routes whose largest step is at most this ratio times the smallest possible one are compared by cost."""
LIMIT_COST = 2.0
"""rad² or m²: cost of a route that is at a limit along the whole path. It is added to the cost of length, which is the
squared length of the route if all steps are equal."""
MAX_WINDINGS = 512
"""Largest number of combinations of full rotations that are considered for a start node."""
LIMIT_TOLERANCE = 1e-9
"""rad: tolerance of joint limits."""
Windings = tuple[int, ...]
"""Number of full rotations of each multi-turn joint, to be added to its value in a node."""


@dataclass(frozen=True, slots=True, eq=False)
class BestRoute:
    """The best route to a state (a node with given windings), stored as its last edge and the state before this edge.

    Attributes:
        largest_step: largest step of the route to the node, rad or m.
        cost: cost of the route to the node.
        previous_state: the state at the previous station; None at the first station.
        edge: the edge from the previous node; None at the first station.
    """

    largest_step: float
    cost: float
    previous_state: tuple[int, Windings] | None
    edge: RoadmapEdge | None


RouteTable = list[dict[tuple[int, Windings], BestRoute]]
"""For each station, the best route to each reachable pair of node and windings."""


@dataclass(frozen=True, slots=True, eq=False)
class EdgeCost:
    """An edge with its cost and the range of its multi-turn joints.

    Attributes:
        edge: the edge.
        largest_step: rad or m.
        cost: cost of length and closeness to limits, rad² or m².
        winding_change: windings at the end node if the windings at the start node are zero.
        min_values, max_values: smallest and largest values of the multi-turn joints along the edge, rad, if the
            windings at the start node are zero.
    """

    edge: RoadmapEdge
    largest_step: float
    cost: float
    winding_change: Windings
    min_values: Array
    max_values: Array


def best_routes(roadmap: Roadmap, q_near: Array) -> RouteTable:
    """Find the best route from the first station to each node and windings of each station.

    Args:
        q_near: (nq,) among routes that differ only by windings, the route that starts nearest to this configuration
            is preferred.
    """
    problem = roadmap.problem
    multi_turn_indices = np.flatnonzero(problem.is_multi_turn)
    edge_costs = [
        [_edge_cost(problem, roadmap, i, edge, multi_turn_indices) for edge in edges]
        for i, edges in enumerate(roadmap.edges)
    ]
    starts = _start_states(problem, roadmap.nodes[0][: roadmap.start_count], multi_turn_indices, q_near)
    routes = _propagate_routes(roadmap, edge_costs, starts, multi_turn_indices, np.inf)
    if routes[-1]:
        min_largest_step = min(route.largest_step for route in routes[-1].values())
        routes = _propagate_routes(roadmap, edge_costs, starts, multi_turn_indices, MAX_STEP_RATIO * min_largest_step)
    return routes


def waypoints_to(roadmap: Roadmap, routes: RouteTable, i: int, state: tuple[int, Windings]) -> Array:
    """Waypoints (m, nq) of the best route from the first waypoint to station i.

    Args:
        state: node and windings at station i.
    """
    multi_turn_indices = np.flatnonzero(roadmap.problem.is_multi_turn)
    pieces: list[Array] = []
    while True:
        route = routes[i][state]
        if route.previous_state is None or route.edge is None:
            break
        q = route.edge.q.copy()
        q[:, multi_turn_indices] += FULL_ROTATION * np.array(route.previous_state[1]) - _winding_shift(
            roadmap, i - 1, route.edge, multi_turn_indices
        )
        pieces.append(q if not pieces else q[:-1])
        i, state = i - 1, route.previous_state
    if not pieces:
        q = roadmap.nodes[0][state[0]].copy()
        q[multi_turn_indices] += FULL_ROTATION * np.array(state[1])
        return q[None]
    waypoints = np.concatenate(pieces[::-1])
    # joints without limits have no windings; unwrapping makes them continuous along the path
    columns = np.flatnonzero(roadmap.problem.can_rotate_fully & ~roadmap.problem.is_multi_turn)
    waypoints[:, columns] = np.unwrap(waypoints[:, columns], axis=0)
    return waypoints


def _propagate_routes(
    roadmap: Roadmap,
    costs: list[list[EdgeCost]],
    starts: dict[tuple[int, Windings], BestRoute],
    multi_turn_indices: Indices,
    max_step: float,
) -> RouteTable:
    """Find the best route to each node and windings of each station by dynamic programming.

    Args:
        max_step: rad or m; edges with a larger step are not used. If infinite, routes are compared by their largest
            step first, else by their cost first.
    """
    problem = roadmap.problem
    routes: RouteTable = [starts]
    lower, upper = (
        problem.lower[multi_turn_indices] - LIMIT_TOLERANCE,
        problem.upper[multi_turn_indices] + LIMIT_TOLERANCE,
    )
    for station_costs in costs:
        station_routes: dict[tuple[int, Windings], BestRoute] = {}
        edges_by_start: dict[int, list[EdgeCost]] = {}
        for edge_cost in station_costs:
            edges_by_start.setdefault(edge_cost.edge.start_node, []).append(edge_cost)
        for (node, windings), route in routes[-1].items():
            shift = FULL_ROTATION * np.array(windings)
            for edge_cost in edges_by_start.get(node, ()):
                if (
                    (edge_cost.min_values + shift < lower).any()
                    or (edge_cost.max_values + shift > upper).any()
                    or edge_cost.largest_step > max_step
                ):
                    continue
                state = (
                    edge_cost.edge.end_node,
                    tuple(a + b for a, b in zip(windings, edge_cost.winding_change, strict=True)),
                )
                largest_step, cost = max(route.largest_step, edge_cost.largest_step), route.cost + edge_cost.cost
                best_route = station_routes.get(state)
                rank = (cost, largest_step) if np.isfinite(max_step) else (largest_step, cost)
                if best_route is None or rank < (
                    (best_route.cost, best_route.largest_step)
                    if np.isfinite(max_step)
                    else (best_route.largest_step, best_route.cost)
                ):
                    station_routes[state] = BestRoute(largest_step, cost, (node, windings), edge_cost.edge)
        routes.append(station_routes)
    return routes


def _winding_shift(roadmap: Roadmap, i: int, edge: RoadmapEdge, multi_turn_indices: Indices) -> Array:
    """Multi-turn joints at the start of an edge minus those of its start node, rounded to full rotations, rad."""
    rotations: Array = np.rint(
        (edge.q[0, multi_turn_indices] - roadmap.nodes[i][edge.start_node][multi_turn_indices]) / FULL_ROTATION
    )
    return FULL_ROTATION * rotations


def _edge_cost(
    problem: FollowProblem, roadmap: Roadmap, i: int, edge: RoadmapEdge, multi_turn_indices: Indices
) -> EdgeCost:
    """Cost of an edge from station i to the next, and the range of its multi-turn joints."""
    steps = problem.space.difference(edge.q[:-1], edge.q[1:])
    largest_step = float(np.abs(steps).max(initial=0.0))
    values = edge.q[:, multi_turn_indices] - _winding_shift(roadmap, i, edge, multi_turn_indices)
    rotations: Array = np.rint((values[-1] - roadmap.nodes[i + 1][edge.end_node][multi_turn_indices]) / FULL_ROTATION)
    segment_count = len(problem.s) - 1
    cost = (
        segment_count * float((steps * steps).sum())
        + LIMIT_COST * _limit_closeness(problem, edge.q) * len(steps) / segment_count
    )
    return EdgeCost(
        edge, largest_step, cost, tuple(rotations.astype(int).tolist()), values.min(axis=0), values.max(axis=0)
    )


def _limit_closeness(problem: FollowProblem, q: Array) -> float:
    """Mean closeness of q (m, nq) to joint limits: 0 in the middle of the range, 1 at a limit.

    The closeness of a configuration is that of the joint nearest to its limit. Multi-turn joints and joints without
    limits are ignored.
    """
    is_bounded = np.isfinite(problem.lower) & np.isfinite(problem.upper) & (problem.upper > problem.lower)
    columns = np.flatnonzero(is_bounded & ~problem.is_multi_turn)
    if not len(columns):
        return 0.0
    lower, upper = problem.lower[columns], problem.upper[columns]
    mid_range, half_range = 0.5 * (upper + lower), 0.5 * (upper - lower)
    return float((np.abs((q[:, columns] - mid_range) / half_range) ** 8).max(axis=1).mean())


def _start_states(
    problem: FollowProblem, nodes: list[Array], multi_turn_indices: Indices, q_near: Array
) -> dict[tuple[int, Windings], BestRoute]:
    """Routes of zero length: the nodes of the first station with the windings that the limits allow.

    Args:
        q_near: (nq,) preferred configuration; starts far from it have a slightly higher cost.
    """
    states: dict[tuple[int, Windings], BestRoute] = {}
    for node, q in enumerate(nodes):
        min_windings = (
            np.ceil((problem.lower[multi_turn_indices] - q[multi_turn_indices] - LIMIT_TOLERANCE) / FULL_ROTATION)
            .astype(int)
            .tolist()
        )
        max_windings = (
            np.floor((problem.upper[multi_turn_indices] - q[multi_turn_indices] + LIMIT_TOLERANCE) / FULL_ROTATION)
            .astype(int)
            .tolist()
        )
        ranges = [range(a, b + 1) for a, b in zip(min_windings, max_windings, strict=True)]
        combinations = list(itertools.islice(itertools.product(*ranges), MAX_WINDINGS))
        for windings in combinations:
            distance = q[multi_turn_indices] + FULL_ROTATION * np.array(windings) - q_near[multi_turn_indices]
            # the weight is so small that this cost decides only between routes that differ by full rotations
            states[node, windings] = BestRoute(0.0, 1e-6 * float((distance * distance).sum()), None, None)
    return states
