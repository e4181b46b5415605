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

SAME = 1e-4
"""rad or m: closer configurations are the same node, without redundancy."""
CLOSE = 0.1
"""rad or m: smallest distance of two sampled nodes, with redundancy."""
MOST = 32
"""Largest number of nodes at a station for batched problems."""
FEW = 8
"""Largest number of nodes at a station for other problems, which take longer."""
LINKS = 4
"""Number of nodes of the next station that each branch is linked to, with redundancy."""
FAR = 1.5
"""rad or m: largest distance from the end of a branch to a node that it is linked to."""
UNEVEN = 6.0
"""Ratio of the largest to the mean step above which a blend counts as a jump, if the largest step exceeds SHORT."""
SHORT = 0.02
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
        return MOST if self.problem.is_batched else FEW

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
    pieces = len(stations) - 1
    made = Roadmap(problem, stations, [list(first), *([] for _ in range(pieces))], [[] for _ in range(pieces)])
    made.start_count = len(first) if is_fixed and len(first) else None
    made.forward = [{} for _ in stations]
    made.backward = [{} for _ in stations]
    for i in range(pieces):
        _forward(made, i, seeds)
    for i in range(pieces, 0, -1):
        _backward(made, i)
    return made


def _forward(made: Roadmap, i: int, seeds: SeedFunction | None) -> None:
    course, here = made.problem, made.nodes[i]
    tracks = trace_branches(course, np.array(here), made.edge_parameters(i)) if here else []
    whole: list[tuple[int, Array]] = []
    for k, track in enumerate(tracks):
        if track.code == FEASIBLE:
            whole.append((k, track.q))
        else:
            made.forward[i][k] = track
    are_enough = len(whole) >= made.max_nodes and not (course.has_all_solutions or course.redundancy)
    if seeds is not None and not are_enough:
        made.nodes[i + 1] = list(seeds(float(course.s[made.stations[i + 1]])))
    _arrive(made, i, whole)


def _arrive(made: Roadmap, i: int, whole: list[tuple[int, Array]]) -> None:
    """Add edges from the nodes of station i to those of the next, and the nodes where a branch arrives at none."""
    course, there = made.problem, made.nodes[i + 1]
    whole.sort(key=lambda one: float(np.abs(np.diff(one[1], axis=0)).max(initial=0.0)))
    for k, q in whole:
        b = nearest_node(course, there, q[-1])
        if b is None or b[1] > (CLOSE if course.redundancy else SAME):
            if len(there) < made.max_nodes or not course.redundancy:
                made.edges[i].append(RoadmapEdge(k, len(there), q))
                there.append(q[-1])
        elif not course.redundancy:
            made.edges[i].append(RoadmapEdge(k, b[0], q))
    if course.redundancy and there:
        for k, q in whole:
            apart = np.abs(course.wrapped_difference(q[-1], np.array(there))).max(axis=1)
            for b in map(int, np.argsort(apart, kind="stable")[:LINKS]):
                if 1e-9 < apart[b] < FAR and (link := _blend(made, i, q, there[b])) is not None:
                    made.edges[i].append(RoadmapEdge(k, b, link))


def _blend(made: Roadmap, i: int, q: Array, b: Array) -> Array | None:
    """Smooth curve from the start of the branch q (m, nq) to the node b (nq,); None if it jumps or collides."""
    course = made.problem
    share = np.linspace(0.0, 1.0, len(q))
    share = share**2 * (3.0 - 2.0 * share)
    starts = course.space.integrate(q, share[:, None] * course.wrapped_difference(q[-1], b))
    found, codes = course.project(made.edge_parameters(i), starts)
    if (codes != FEASIBLE).any() or not are_segments_free(course, found[:-1], found[1:]).all():
        return None
    steps = np.abs(course.space.difference(found[:-1], found[1:])).max(axis=1)
    even = steps.max() <= max(UNEVEN * steps.mean(), SHORT) and steps.max() <= MAX_TRACE_STEP
    return found if even and np.abs(course.wrapped_difference(found[-1], b)).max() < SAME else None


def _backward(made: Roadmap, i: int) -> None:
    """Trace branches from the nodes of station i that no edge reaches back to the station before."""
    course = made.problem
    known = {curve.b for curve in made.edges[i - 1]}
    lost = [k for k in range(len(made.nodes[i])) if k not in known]
    if not lost:
        return
    there = made.nodes[i - 1]
    tracks = trace_branches(course, np.array([made.nodes[i][k] for k in lost]), made.edge_parameters(i - 1)[::-1])
    for k, track in zip(lost, tracks, strict=True):
        if track.code != FEASIBLE:
            made.backward[i][k] = track
            continue
        q = np.ascontiguousarray(track.q[::-1])
        a = nearest_node(course, there, q[0])
        if a is not None and a[1] <= SAME:
            made.edges[i - 1].append(RoadmapEdge(a[0], k, q))
        elif len(there) < 2 * made.max_nodes or not course.redundancy:
            made.edges[i - 1].append(RoadmapEdge(len(there), k, q))
            there.append(q[0])


def nearest_node(course: FollowProblem, nodes: list[Array], q: Array) -> tuple[int, float] | None:
    """Index of the node nearest to q (nq,) and its largest dof difference, modulo full rotations; None if no nodes."""
    if not nodes:
        return None
    apart = np.abs(course.wrapped_difference(q, np.array(nodes))).max(axis=1)
    k = int(np.argmin(apart))
    return k, float(apart[k])


SLACK = 1.25
"""Ratio to the smallest possible largest step: routes up to this are compared by cost."""
NEAR_LIMIT = 2.0
"""rad and m, squared: cost of a route that is at a limit all along; the cost of length is the squared length of an even
route."""
MOST_WINDINGS = 512
"""Largest number of combinations of full rotations that are tried for a start node."""
EDGE = 1e-9
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
    course = roadmap.problem
    wide = np.flatnonzero(course.multi_turn)
    measured = [[_measure(course, roadmap, i, curve, wide) for curve in some] for i, some in enumerate(roadmap.edges)]
    first = _starts(course, roadmap.nodes[0][: roadmap.start_count], wide, near)
    reached = _sweep(roadmap, measured, first, wide, np.inf)
    if reached[-1]:
        best = min(step.largest_step for step in reached[-1].values())
        reached = _sweep(roadmap, measured, first, wide, SLACK * best)
    return reached


def waypoints_to(roadmap: Roadmap, reached: RouteTable, i: int, state: tuple[int, Windings]) -> Array:
    """Waypoints (m, nq) of the best route from the first waypoint to a node of station i."""
    wide = np.flatnonzero(roadmap.problem.multi_turn)
    parts: list[Array] = []
    while True:
        step = reached[i][state]
        if step.before is None or step.edge is None:
            break
        q = step.edge.q.copy()
        q[:, wide] += FULL_ROTATION * np.array(step.before[1]) - _shift(roadmap, i - 1, step.edge, wide)
        parts.append(q if not parts else q[:-1])
        i, state = i - 1, step.before
    if not parts:
        q = roadmap.nodes[0][state[0]].copy()
        q[wide] += FULL_ROTATION * np.array(state[1])
        return q[None]
    joined = np.concatenate(parts[::-1])
    # joints without limits are also continuous along the path
    k = np.flatnonzero(roadmap.problem.full_rotation_joints & ~roadmap.problem.multi_turn)
    joined[:, k] = np.unwrap(joined[:, k], axis=0)
    return joined


def _sweep(
    made: Roadmap,
    measured: list[list[EdgeCost]],
    first: dict[tuple[int, Windings], RouteStep],
    wide: Indices,
    most: float,
) -> RouteTable:
    """Dynamic programming over all stations; edges with a step above `most` are not used."""
    course = made.problem
    reached: RouteTable = [first]
    lower, upper = course.lower[wide] - EDGE, course.upper[wide] + EDGE
    for some in measured:
        here: dict[tuple[int, Windings], RouteStep] = {}
        by_node: dict[int, list[EdgeCost]] = {}
        for one in some:
            by_node.setdefault(one.edge.a, []).append(one)
        for (node, windings), step in reached[-1].items():
            shift = FULL_ROTATION * np.array(windings)
            for one in by_node.get(node, ()):
                if (one.low + shift < lower).any() or (one.high + shift > upper).any() or one.largest_step > most:
                    continue
                state = one.edge.b, tuple(a + b for a, b in zip(windings, one.winding_change, strict=True))
                larger, cost = max(step.largest_step, one.largest_step), step.cost + one.cost
                known = here.get(state)
                rank = (cost, larger) if np.isfinite(most) else (larger, cost)
                if known is None or rank < (
                    (known.cost, known.largest_step) if np.isfinite(most) else (known.largest_step, known.cost)
                ):
                    here[state] = RouteStep(larger, cost, (node, windings), one.edge)
        reached.append(here)
    return reached


def _shift(made: Roadmap, i: int, curve: RoadmapEdge, wide: Indices) -> Array:
    """Full rotations (rad) by which the multi-turn joints at the start of an edge differ from its start node."""
    turns: Array = np.rint((curve.q[0, wide] - made.nodes[i][curve.a][wide]) / FULL_ROTATION)
    return FULL_ROTATION * turns


def _measure(course: FollowProblem, made: Roadmap, i: int, curve: RoadmapEdge, wide: Indices) -> EdgeCost:
    steps = course.space.difference(curve.q[:-1], curve.q[1:])
    largest = float(np.abs(steps).max(initial=0.0))
    values = curve.q[:, wide] - _shift(made, i, curve, wide)
    turned: Array = np.rint((values[-1] - made.nodes[i + 1][curve.b][wide]) / FULL_ROTATION)
    whole = len(course.s) - 1
    cost = whole * float((steps * steps).sum()) + NEAR_LIMIT * _nearness(course, curve.q) * len(steps) / whole
    return EdgeCost(curve, largest, cost, tuple(turned.astype(int).tolist()), values.min(axis=0), values.max(axis=0))


def _nearness(course: FollowProblem, q: Array) -> float:
    """Mean closeness of q (m, nq) to joint limits: 0 in the middle of the range, 1 at a limit."""
    bounded = np.isfinite(course.lower) & np.isfinite(course.upper) & (course.upper > course.lower)
    k = np.flatnonzero(bounded & ~course.multi_turn)
    if not len(k):
        return 0.0
    lower, upper = course.lower[k], course.upper[k]
    middle, half = 0.5 * (upper + lower), 0.5 * (upper - lower)
    return float((np.abs((q[:, k] - middle) / half) ** 8).max(axis=1).mean())


def _starts(
    course: FollowProblem, nodes: list[Array], wide: Indices, near: Array
) -> dict[tuple[int, Windings], RouteStep]:
    """Nodes of the first station with all windings that the limits allow."""
    found: dict[tuple[int, Windings], RouteStep] = {}
    for number, q in enumerate(nodes):
        fewest = np.ceil((course.lower[wide] - q[wide] - EDGE) / FULL_ROTATION).astype(int).tolist()
        most = np.floor((course.upper[wide] - q[wide] + EDGE) / FULL_ROTATION).astype(int).tolist()
        ranges = [range(a, b + 1) for a, b in zip(fewest, most, strict=True)]
        every = list(itertools.islice(itertools.product(*ranges), MOST_WINDINGS))
        for windings in every:
            away = q[wide] + FULL_ROTATION * np.array(windings) - near[wide]
            # so small that it decides only between routes that differ by full rotations
            found[number, windings] = RouteStep(0.0, 1e-6 * float((away * away).sum()), None, None)
    return found
