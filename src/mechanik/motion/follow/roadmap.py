"""Roadmap of solution branches along s, and the search for the best route through it.

Nodes are configurations at a few waypoints, the stations. Edges are branches traced by continuation from station to
station, forward and backward, so that a branch which crosses another one is known on both sides of the crossing. Where
the mechanism is redundant, nodes are samples, and edges blend from a traced branch to a sample nearby.

The best route has the smallest largest step, then the smallest cost of length and closeness to joint limits. It is
found by dynamic programming over nodes and windings: a joint with more than a full rotation has several values for the
same pose, and a value must be chosen that stays within the limits along the whole path.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mechanik.motion.follow.branch_tracing import MAX_TRACE_STEP, TracedBranch, trace_branches
from mechanik.motion.follow.follow_problem import FEASIBLE, FULL_ROTATION, FollowProblem, Indices, are_segments_free
from mechanik.spatial.array import Array

SAME_NODE = 1e-4
"""rad or m: closer configurations are the same node, without redundancy."""
MIN_NODE_DISTANCE = 0.1
"""rad or m: smallest distance of two sampled nodes, with redundancy."""
MAX_NODES_BATCHED = 32
"""Largest number of nodes at a station for batched problems."""
MAX_NODES = 8
"""Largest number of nodes at a station for other problems, which take longer."""
LINKS_PER_BRANCH = 4
"""Number of nodes of the next station that each branch is linked to, with redundancy."""
MAX_LINK_DISTANCE = 1.5
"""rad or m: largest distance from the end of a branch to a node that it is linked to."""
JUMP_RATIO = 6.0
"""Ratio of the largest to the mean step above which a blend counts as a jump, if the largest step exceeds SHORT."""
SHORT_STEP = 0.02
"""rad or m: blends with smaller steps are never jumps."""

SeedFunction = Callable[[float], Array]
"""Maps s to configurations (n, nq) that meet the goals at s."""


@dataclass(frozen=True, slots=True, eq=False)
class RoadmapEdge:
    """A continuous curve from node `a` of a station to node `b` of the next, up to full rotations.

    Attributes:
        a, b: indices of the nodes.
        q: (m, nq) configurations at all waypoints from station to station; angles are continuous.
    """

    a: int
    b: int
    q: Array


@dataclass(slots=True, eq=False)
class Roadmap:
    """Configurations at the stations, and the curves between them.

    Attributes:
        problem: the path-following problem.
        stations: (M,) indices of waypoints, with the first and the last.
        nodes: configurations (nq,) of each station.
        edges: curves between each station and the next.
        start_count: number of nodes of the first station that a path may start with; None: all.
        forward, backward: for each station, branches traced from its nodes (by index) that end before the next, or the
            previous, station.
    """

    problem: FollowProblem
    stations: list[int]
    nodes: list[list[Array]]
    edges: list[list[RoadmapEdge]]
    start_count: int | None = None
    forward: list[dict[int, TracedBranch]] = field(default_factory=list[dict[int, TracedBranch]])
    backward: list[dict[int, TracedBranch]] = field(default_factory=list[dict[int, TracedBranch]])

    @property
    def max_nodes(self) -> int:
        """Largest number of nodes at a station."""
        return MAX_NODES_BATCHED if self.problem.is_batched else MAX_NODES

    def edge_parameters(self, i: int) -> Array:
        """Parameters s of the waypoints from station i to the next, both included."""
        return self.problem.s[self.stations[i] : self.stations[i + 1] + 1]


def build_roadmap(
    problem: FollowProblem,
    stations: list[int],
    first: Array,
    seeds: SeedFunction | None = None,
    *,
    is_fixed: bool = False,
) -> Roadmap:
    """Build a roadmap: trace branches forward from station to station, then backward from unreached nodes.

    Args:
        problem: the path-following problem.
        stations: indices of waypoints.
        first: (n, nq) configurations that meet the goals at the first station; may be empty.
        seeds: function that finds such configurations at the other stations; it is not called where enough branches
            arrive.
        is_fixed: whether a path must start with one of `first`, if there are any.
    """
    segment_count = len(stations) - 1
    roadmap = Roadmap(
        problem, stations, [list(first), *([] for _ in range(segment_count))], [[] for _ in range(segment_count)]
    )
    roadmap.start_count = len(first) if is_fixed and len(first) else None
    roadmap.forward = [{} for _ in stations]
    roadmap.backward = [{} for _ in stations]
    for i in range(segment_count):
        _trace_forward(roadmap, i, seeds)
    for i in range(segment_count, 0, -1):
        _trace_backward(roadmap, i)
    return roadmap


def _trace_forward(roadmap: Roadmap, i: int, seeds: SeedFunction | None) -> None:
    problem, nodes = roadmap.problem, roadmap.nodes[i]
    branches = trace_branches(problem, np.array(nodes), roadmap.edge_parameters(i)) if nodes else []
    complete: list[tuple[int, Array]] = []
    for k, branch in enumerate(branches):
        if branch.code == FEASIBLE:
            complete.append((k, branch.q))
        else:
            roadmap.forward[i][k] = branch
    are_enough = len(complete) >= roadmap.max_nodes and not (problem.has_all_solutions or problem.redundancy)
    if seeds is not None and not are_enough:
        roadmap.nodes[i + 1] = list(seeds(float(problem.s[roadmap.stations[i + 1]])))
    _add_edges(roadmap, i, complete)


def _add_edges(roadmap: Roadmap, i: int, complete: list[tuple[int, Array]]) -> None:
    """Add edges from the nodes of station i to those of the next, and the nodes where a branch arrives at none."""
    problem, next_nodes = roadmap.problem, roadmap.nodes[i + 1]
    complete.sort(key=lambda item: float(np.abs(np.diff(item[1], axis=0)).max(initial=0.0)))
    for k, q in complete:
        b = nearest_node(problem, next_nodes, q[-1])
        if b is None or b[1] > (MIN_NODE_DISTANCE if problem.redundancy else SAME_NODE):
            if len(next_nodes) < roadmap.max_nodes or not problem.redundancy:
                roadmap.edges[i].append(RoadmapEdge(k, len(next_nodes), q))
                next_nodes.append(q[-1])
        elif not problem.redundancy:
            roadmap.edges[i].append(RoadmapEdge(k, b[0], q))
    if problem.redundancy and next_nodes:
        for k, q in complete:
            distances = np.abs(problem.wrapped_difference(q[-1], np.array(next_nodes))).max(axis=1)
            for b in map(int, np.argsort(distances, kind="stable")[:LINKS_PER_BRANCH]):
                if (
                    1e-9 < distances[b] < MAX_LINK_DISTANCE
                    and (blend := _blend_to_node(roadmap, i, q, next_nodes[b])) is not None
                ):
                    roadmap.edges[i].append(RoadmapEdge(k, b, blend))


def _blend_to_node(roadmap: Roadmap, i: int, q: Array, b: Array) -> Array | None:
    """Smooth curve from the start of the branch q (m, nq) to the node b (nq,); None if it jumps or collides."""
    problem = roadmap.problem
    share = np.linspace(0.0, 1.0, len(q))
    share = share**2 * (3.0 - 2.0 * share)
    guesses = problem.space.integrate(q, share[:, None] * problem.wrapped_difference(q[-1], b))
    q_blend, codes = problem.project(roadmap.edge_parameters(i), guesses)
    if (codes != FEASIBLE).any() or not are_segments_free(problem, q_blend[:-1], q_blend[1:]).all():
        return None
    steps = np.abs(problem.space.difference(q_blend[:-1], q_blend[1:])).max(axis=1)
    is_even = steps.max() <= max(JUMP_RATIO * steps.mean(), SHORT_STEP) and steps.max() <= MAX_TRACE_STEP
    return q_blend if is_even and np.abs(problem.wrapped_difference(q_blend[-1], b)).max() < SAME_NODE else None


def _trace_backward(roadmap: Roadmap, i: int) -> None:
    """Trace branches from the nodes of station i that no edge reaches back to the station before."""
    problem = roadmap.problem
    reached_nodes = {edge.b for edge in roadmap.edges[i - 1]}
    unreached = [k for k in range(len(roadmap.nodes[i])) if k not in reached_nodes]
    if not unreached:
        return
    previous_nodes = roadmap.nodes[i - 1]
    branches = trace_branches(
        problem, np.array([roadmap.nodes[i][k] for k in unreached]), roadmap.edge_parameters(i - 1)[::-1]
    )
    for k, branch in zip(unreached, branches, strict=True):
        if branch.code != FEASIBLE:
            roadmap.backward[i][k] = branch
            continue
        q = np.ascontiguousarray(branch.q[::-1])
        a = nearest_node(problem, previous_nodes, q[0])
        if a is not None and a[1] <= SAME_NODE:
            roadmap.edges[i - 1].append(RoadmapEdge(a[0], k, q))
        elif len(previous_nodes) < 2 * roadmap.max_nodes or not problem.redundancy:
            roadmap.edges[i - 1].append(RoadmapEdge(len(previous_nodes), k, q))
            previous_nodes.append(q[0])


def nearest_node(problem: FollowProblem, nodes: list[Array], q: Array) -> tuple[int, float] | None:
    """Index of the node nearest to q (nq,) and its largest dof difference, modulo full rotations; None if no nodes."""
    if not nodes:
        return None
    distances = np.abs(problem.wrapped_difference(q, np.array(nodes))).max(axis=1)
    k = int(np.argmin(distances))
    return k, float(distances[k])


MAX_STEP_RATIO = 1.25
"""Ratio to the smallest possible largest step: routes up to this are compared by cost."""
LIMIT_COST = 2.0
"""rad and m, squared: cost of a route that is at a limit all along; the cost of length is the squared length of an even
route."""
MAX_WINDINGS = 512
"""Largest number of combinations of full rotations that are tried for a start node."""
LIMIT_TOLERANCE = 1e-9
"""rad: tolerance of joint limits."""
Windings = tuple[int, ...]
"""Number of full rotations of each multi-turn joint."""


@dataclass(frozen=True, slots=True, eq=False)
class RouteStep:
    """The last step of the best route to a node with given windings.

    Attributes:
        largest_step: largest step of the route to the node, rad or m.
        cost: cost of the route to the node.
        before: node and windings at the station before; None at the first station.
        edge: the edge from there; None at the first station.
    """

    largest_step: float
    cost: float
    before: tuple[int, Windings] | None
    edge: RoadmapEdge | None


RouteTable = list[dict[tuple[int, Windings], RouteStep]]
"""For each station, the best route to each reachable pair of node and windings."""


@dataclass(frozen=True, slots=True, eq=False)
class EdgeCost:
    """An edge with its cost and the range of its multi-turn joints.

    Attributes:
        edge: the edge.
        largest_step: rad or m.
        cost: of length and closeness to limits.
        winding_change: full rotations from the start node to the end node.
        low, high: smallest and largest values of the multi-turn joints, rad, relative to the start node without
            windings.
    """

    edge: RoadmapEdge
    largest_step: float
    cost: float
    winding_change: Windings
    low: Array
    high: Array


def best_routes(roadmap: Roadmap, near: Array) -> RouteTable:
    """Find the best route from the first station to each node of each station.

    Args:
        near: (nq,) windings nearest to this configuration are preferred among equal ones.
    """
    problem = roadmap.problem
    multi_turn = np.flatnonzero(problem.multi_turn)
    costs = [
        [_edge_cost(problem, roadmap, i, edge, multi_turn) for edge in edges] for i, edges in enumerate(roadmap.edges)
    ]
    starts = _start_states(problem, roadmap.nodes[0][: roadmap.start_count], multi_turn, near)
    routes = _propagate_routes(roadmap, costs, starts, multi_turn, np.inf)
    if routes[-1]:
        smallest = min(step.largest_step for step in routes[-1].values())
        routes = _propagate_routes(roadmap, costs, starts, multi_turn, MAX_STEP_RATIO * smallest)
    return routes


def waypoints_to(roadmap: Roadmap, routes: RouteTable, i: int, state: tuple[int, Windings]) -> Array:
    """Waypoints (m, nq) of the best route from the first waypoint to a node of station i."""
    multi_turn = np.flatnonzero(roadmap.problem.multi_turn)
    pieces: list[Array] = []
    while True:
        step = routes[i][state]
        if step.before is None or step.edge is None:
            break
        q = step.edge.q.copy()
        q[:, multi_turn] += FULL_ROTATION * np.array(step.before[1]) - _winding_shift(
            roadmap, i - 1, step.edge, multi_turn
        )
        pieces.append(q if not pieces else q[:-1])
        i, state = i - 1, step.before
    if not pieces:
        q = roadmap.nodes[0][state[0]].copy()
        q[multi_turn] += FULL_ROTATION * np.array(state[1])
        return q[None]
    joined = np.concatenate(pieces[::-1])
    # joints without limits are also continuous along the path
    k = np.flatnonzero(roadmap.problem.full_rotation_joints & ~roadmap.problem.multi_turn)
    joined[:, k] = np.unwrap(joined[:, k], axis=0)
    return joined


def _propagate_routes(
    roadmap: Roadmap,
    costs: list[list[EdgeCost]],
    starts: dict[tuple[int, Windings], RouteStep],
    multi_turn: Indices,
    max_step: float,
) -> RouteTable:
    """Dynamic programming over all stations; edges with a step above `max_step` are not used."""
    problem = roadmap.problem
    routes: RouteTable = [starts]
    lower, upper = problem.lower[multi_turn] - LIMIT_TOLERANCE, problem.upper[multi_turn] + LIMIT_TOLERANCE
    for station_costs in costs:
        station_routes: dict[tuple[int, Windings], RouteStep] = {}
        by_node: dict[int, list[EdgeCost]] = {}
        for edge_cost in station_costs:
            by_node.setdefault(edge_cost.edge.a, []).append(edge_cost)
        for (node, windings), step in routes[-1].items():
            shift = FULL_ROTATION * np.array(windings)
            for edge_cost in by_node.get(node, ()):
                if (
                    (edge_cost.low + shift < lower).any()
                    or (edge_cost.high + shift > upper).any()
                    or edge_cost.largest_step > max_step
                ):
                    continue
                state = edge_cost.edge.b, tuple(a + b for a, b in zip(windings, edge_cost.winding_change, strict=True))
                largest, cost = max(step.largest_step, edge_cost.largest_step), step.cost + edge_cost.cost
                best_step = station_routes.get(state)
                rank = (cost, largest) if np.isfinite(max_step) else (largest, cost)
                if best_step is None or rank < (
                    (best_step.cost, best_step.largest_step)
                    if np.isfinite(max_step)
                    else (best_step.largest_step, best_step.cost)
                ):
                    station_routes[state] = RouteStep(largest, cost, (node, windings), edge_cost.edge)
        routes.append(station_routes)
    return routes


def _winding_shift(roadmap: Roadmap, i: int, edge: RoadmapEdge, multi_turn: Indices) -> Array:
    """Full rotations (rad) by which the multi-turn joints at the start of an edge differ from its start node."""
    rotations: Array = np.rint((edge.q[0, multi_turn] - roadmap.nodes[i][edge.a][multi_turn]) / FULL_ROTATION)
    return FULL_ROTATION * rotations


def _edge_cost(problem: FollowProblem, roadmap: Roadmap, i: int, edge: RoadmapEdge, multi_turn: Indices) -> EdgeCost:
    steps = problem.space.difference(edge.q[:-1], edge.q[1:])
    largest = float(np.abs(steps).max(initial=0.0))
    values = edge.q[:, multi_turn] - _winding_shift(roadmap, i, edge, multi_turn)
    rotations: Array = np.rint((values[-1] - roadmap.nodes[i + 1][edge.b][multi_turn]) / FULL_ROTATION)
    segment_count = len(problem.s) - 1
    cost = (
        segment_count * float((steps * steps).sum())
        + LIMIT_COST * _limit_closeness(problem, edge.q) * len(steps) / segment_count
    )
    return EdgeCost(edge, largest, cost, tuple(rotations.astype(int).tolist()), values.min(axis=0), values.max(axis=0))


def _limit_closeness(problem: FollowProblem, q: Array) -> float:
    """Mean closeness of q (m, nq) to joint limits: 0 in the middle of the range, 1 at a limit."""
    is_bounded = np.isfinite(problem.lower) & np.isfinite(problem.upper) & (problem.upper > problem.lower)
    k = np.flatnonzero(is_bounded & ~problem.multi_turn)
    if not len(k):
        return 0.0
    lower, upper = problem.lower[k], problem.upper[k]
    middle, half = 0.5 * (upper + lower), 0.5 * (upper - lower)
    return float((np.abs((q[:, k] - middle) / half) ** 8).max(axis=1).mean())


def _start_states(
    problem: FollowProblem, nodes: list[Array], multi_turn: Indices, near: Array
) -> dict[tuple[int, Windings], RouteStep]:
    """Nodes of the first station with all windings that the limits allow."""
    states: dict[tuple[int, Windings], RouteStep] = {}
    for node, q in enumerate(nodes):
        lowest = (
            np.ceil((problem.lower[multi_turn] - q[multi_turn] - LIMIT_TOLERANCE) / FULL_ROTATION).astype(int).tolist()
        )
        highest = (
            np.floor((problem.upper[multi_turn] - q[multi_turn] + LIMIT_TOLERANCE) / FULL_ROTATION).astype(int).tolist()
        )
        ranges = [range(a, b + 1) for a, b in zip(lowest, highest, strict=True)]
        combinations = list(itertools.islice(itertools.product(*ranges), MAX_WINDINGS))
        for windings in combinations:
            distance = q[multi_turn] + FULL_ROTATION * np.array(windings) - near[multi_turn]
            # so small that it decides only between routes that differ by full rotations
            states[node, windings] = RouteStep(0.0, 1e-6 * float((distance * distance).sum()), None, None)
    return states
