"""Tree planners: RRT-Connect in a kernel, RRT-Connect along loops, and the planners of OMPL.

Along loops, trees grow towards random configurations that need not have closed loops: each step is straight and then
projected onto the loops. Each tree tries to reach what the other has reached (D. Berenson, S. S. Srinivasa, D. Ferguson
and J. J. Kuffner, "Manipulation planning on constraint manifolds", ICRA 2009).

OMPL without loops checks a whole motion in one compiled call. With loops, or spherical joints (unit quaternions), it
uses its projected state space with the projection of `PlanningSpace` (Z. Kingston, M. Moll and L. E. Kavraki,
"Exploring implicit spaces for constrained sampling-based planning", IJRR 38(10-11), 2019).
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from mechanik.errors import MissingExtra, UnknownName
from mechanik.kernels.planning.search_state import (
    CHECK_COUNT,
    MEETING_NODE,
    NODE_COUNT,
    SEARCH_DONE,
    SEARCH_FULL,
    SEARCH_STATE_INTS,
)
from mechanik.motion.plan.planning_space import Indices, PlanningSpace
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

trees = kernel_module("planning.tree_growth")

ROOM = 256
"""Initial capacity of each tree in nodes; it doubles when it is full."""
BUDGET = 1000
"""Number of collision checks in the first kernel call; later calls take about PAUSE."""
PAUSE = 0.03
"""s: approximate duration of a kernel call, which cannot be interrupted."""


def plan_rrt_connect(
    ground: PlanningSpace, start: Array, goals: Array, until: float, rng: np.random.Generator
) -> Array | None:
    """Plan with RRT-Connect in a kernel, in a Euclidean space.

    The same seed gives the same path, however long each kernel call takes.

    Args:
        start: (nq,).
        goals: (K, nq).
        until: deadline by `time.perf_counter`.
        rng: gives the seed.

    Returns:
        Configurations (N, nq) from the start to a goal with free segments between them; None if there was not enough
        time.
    """
    scene = ground.scene()
    if scene is None:
        return np.array([start, goals[0]])
    lower, upper, roots = start.copy(), start.copy(), np.tile(start, (len(goals), 1))
    which = ground.moving
    roots[:, which] = goals[:, which]
    lower[which], upper[which] = (one[which] for one in ground.bounds(np.vstack([start, goals])))
    room = max(ROOM, 2 * len(goals))
    places, parents, reaches = np.empty((2, len(start), room)), np.full((2, room), -1), np.full((2, room), np.inf)
    places[0, :, 0], places[1, :, : len(goals)] = start, roots.T
    state = np.zeros(SEARCH_STATE_INTS, np.int64)
    state[NODE_COUNT : NODE_COUNT + 2] = 1, len(goals)
    seed, budget = int(rng.integers(2**62)), BUDGET
    while True:
        begun = time.perf_counter()
        if begun > until:
            return None
        looked = int(state[CHECK_COUNT])
        answer = trees.grow_trees(
            *scene, lower, upper, ground.unit, ground.step, seed, budget, places, parents, reaches, state
        )
        ground.check_count += int(state[CHECK_COUNT]) - looked
        if answer == SEARCH_DONE:
            break
        if answer == SEARCH_FULL:
            places, parents, reaches = (np.concatenate([one, one], axis=-1) for one in (places, parents, reaches))
        else:
            budget = max(1, int(budget * min(4.0, PAUSE / max(1e-6, time.perf_counter() - begun))))
    there, back = (_to_root(places[side], parents[side], int(state[MEETING_NODE + side])) for side in (0, 1))
    q = np.concatenate([there[::-1], back])
    q[0], q[-1] = start, goals[np.abs(roots - q[-1]).max(axis=1).argmin()]
    return q


def _to_root(places: Array, parents: Indices, node: int) -> Array:
    """Configurations (N, nq) from a node to its root."""
    found = list[int]()
    while node >= 0:
        found.append(node)
        node = int(parents[node])
    return places[:, found].T


REACH = 1.0
"""Planning units: longest growth towards a random configuration. Tuned on two arms that carry a box around a pillar."""
EVERY = 4
"""Every so many configurations along a grown segment become a node."""


class _Tree:
    """A tree of configurations along the loops, with the segment to each node from its parent."""

    def __init__(self, ground: PlanningSpace, roots: Array) -> None:
        self._ground, self._count = ground, len(roots)
        self._places = np.empty((max(256, 2 * len(roots)), roots.shape[1]))
        self._places[: len(roots)] = roots
        self._parents = [-1] * len(roots)
        self._ways = [roots[k : k + 1] for k in range(len(roots))]

    def __len__(self) -> int:
        return self._count

    def place(self, node: int) -> Array:
        """Configuration (nq,) of a node."""
        return self._places[node]

    def grow(self, target: Array, reach: float = np.inf) -> int:
        """Extend the tree from the node nearest to the target as far as it is free; return the last node.

        Args:
            target: (nq,).
            reach: planning units: largest distance.
        """
        ground = self._ground
        away = ground.scaled_difference(self._places[: self._count], target)
        squares = np.einsum("ij,ij->i", away, away)
        node = int(squares.argmin())
        size = float(np.sqrt(squares[node]))
        here = self._places[node]
        if size > reach:
            target = ground.integrate(here, (reach / size) * ground.difference(here, target))
        way = ground.steer(here, target)
        free = ground.are_free(way[1:])
        way = way if free.all() else way[: 1 + int(np.argmin(free))]
        for k in range(0, len(way) - 1, EVERY):
            node = self._add(node, way[k : k + EVERY + 1])
        return node

    def back(self, node: int) -> Array:
        """Configurations (N, nq) from the root to a node."""
        parts = list[Array]()
        while self._parents[node] >= 0:
            parts.append(self._ways[node][1:])
            node = self._parents[node]
        return np.concatenate([self._ways[node], *parts[::-1]])

    def _add(self, parent: int, way: Array) -> int:
        if self._count == len(self._places):
            self._places = np.concatenate([self._places, np.empty_like(self._places)])
        self._places[self._count] = way[-1]
        self._parents.append(parent)
        self._ways.append(way)
        self._count += 1
        return self._count - 1


def plan_constrained_rrt(
    ground: PlanningSpace, start: Array, goals: Array, until: float, rng: np.random.Generator
) -> Array | None:
    """Plan with RRT-Connect along the closed loops.

    Args:
        start: (nq,).
        goals: (K, nq).
        until: deadline by `time.perf_counter`.

    Returns:
        Free configurations (N, nq) from the start to a goal, a step apart; None if there was not enough time.
    """
    lower, upper = ground.bounds(np.vstack([start, goals]))
    ends = _Tree(ground, start[None]), _Tree(ground, goals)
    while time.perf_counter() < until:
        side = int(len(ends[1]) < len(ends[0]))
        mine, other = ends[side], ends[1 - side]
        target = start.copy()
        target[ground.moving] = rng.uniform(lower, upper)[ground.moving]
        for k in ground.mechanism.space.quaternions_q:
            target[k : k + 4] = quaternion.normalize(rng.normal(size=4))
        count = len(mine)
        node = mine.grow(target, REACH)
        if len(mine) == count:
            continue
        met = other.grow(mine.place(node))
        if np.array_equal(other.place(met), mine.place(node)):
            there, back = (mine.back(node), other.back(met)) if side == 0 else (other.back(met), mine.back(node))
            return np.concatenate([there, back[-2::-1]])
    return None


RRT_CONNECT = "rrt_connect"
"""Name of the built-in planner."""
PLANNERS = (
    "RRTConnect", "RRT", "KPIECE1", "BKPIECE1", "LBKPIECE1", "BITstar", "RRTstar", "InformedRRTstar",
)  # fmt: skip
"""Planners of OMPL that call back from a single thread; PRM does not. Those with "star" use all of their time."""
CREEPING = 0.3
"""Ratio to the step of OMPL's state space: shorter projected steps make no progress."""
SPARE = 1e-12
"""rad or m: width that is added to the range of each dof, because OMPL needs a range above 0."""
ON_LOOPS = ("RRTConnect", "RRT")
"""Planners of OMPL that work along loops."""


def check_planner(ground: PlanningSpace, planner: str) -> None:
    """Reject a planner name that is not available for this space.

    Raises:
        UnknownName: with the available names.
    """
    known = ("auto", RRT_CONNECT, *(PLANNERS if ground.is_euclidean else ON_LOOPS))
    if planner not in known:
        raise UnknownName("planner for this mechanism", planner, known)


def plan_with_ompl(
    ground: PlanningSpace, start: Array, goals: Array, planner: str, until: float, rng: np.random.Generator
) -> Array | None:
    """Plan with a planner of OMPL.

    Args:
        start: (nq,).
        goals: (K, nq).
        planner: name of a class in `ompl.geometric`.
        until: deadline by `time.perf_counter`.
        rng: seeds the generators of OMPL, which are global: threads that plan at the same time share them.

    Returns:
        Configurations (N, nq) from the start to a goal with free segments between them; None if there was not enough
        time.

    Raises:
        MissingExtra: OMPL is not installed.
    """
    base, geometric, util = _ompl()
    moving = ground.moving
    with _quietly(util):
        util.RNG.setSeed(int(rng.integers(1, 2**31)))
        lower, upper = ground.bounds(np.vstack([start, goals]))
        ambient = base.RealVectorStateSpace(len(moving))
        bounds = base.RealVectorBounds(len(moving))
        for k, (low, high) in enumerate(zip(lower[moving].tolist(), upper[moving].tolist(), strict=True)):
            bounds.setLow(k, low)
            bounds.setHigh(k, high + SPARE)
        ambient.setBounds(bounds)
        space, info = (_flat if ground.is_euclidean else _curved)(base, ground, ambient, start, moving)
        problem = base.ProblemDefinition(info)
        problem.addStartState(_state(space, start[moving], ground.is_euclidean))
        ends = base.GoalStates(info)
        for goal in goals:
            ends.addState(_state(space, goal[moving], ground.is_euclidean))
        problem.setGoal(ends)
        tree = getattr(geometric, planner)(info)
        tree.setProblemDefinition(problem)
        tree.setup()
        tree.solve(base.PlannerTerminationCondition(lambda: time.perf_counter() > until))
        if not problem.hasExactSolution():
            return None
        path = problem.getSolutionPath()
        if not ground.is_euclidean:
            path.interpolate()
        numbers = range(len(moving))
        found = np.tile(start, (path.getStateCount(), 1))
        for k in range(len(found)):
            state = path.getState(k)
            found[k, moving] = [state[i] for i in numbers]
    return _meeting(ground, found, start, goals)


def _flat(base: Any, ground: PlanningSpace, ambient: Any, start: Array, moving: Indices) -> tuple[Any, Any]:
    """OMPL state space and space information for a Euclidean planning space."""
    numbers = range(len(moving))

    everything = len(moving) == len(start)

    def full(state: Any) -> Array:
        x = [state[i] for i in numbers]
        if everything:
            return np.array(x)
        q = start.copy()
        q[moving] = x
        return q

    def is_free(state: Any) -> bool:
        return bool(ground.are_free(full(state)[None])[0])

    class Motions(base.MotionValidator):
        def checkMotion(self, a: Any, b: Any) -> bool:
            return ground.is_segment_free(full(a), full(b))

    info = base.SpaceInformation(ambient)
    info.setStateValidityChecker(is_free)
    info.setMotionValidator(Motions(info))
    info.setup()
    return ambient, info


def _curved(base: Any, ground: PlanningSpace, ambient: Any, start: Array, moving: Indices) -> tuple[Any, Any]:
    """OMPL state space and space information along loops and unit quaternions."""
    numbers, rows = range(len(moving)), max(1, _rank(ground, start))
    balls, delta = ground.mechanism.space.quaternions_q, 2.0 * ground.step

    def full(x: Any) -> Array:
        q = start.copy()
        q[moving] = x
        return q

    class Shut(base.Constraint):
        last = start

        def __init__(self) -> None:
            base.Constraint.__init__(self, len(moving), min(rows, len(moving) - 1), 1e-6)

        def function(self, x: Array, out: Array) -> None:
            q = full(x)
            off = [float(np.abs(ground.loops.residual(q)[0]).max())] if ground.has_loops else []
            off += [abs(float(np.linalg.norm(q[k : k + 4])) - 1.0) for k in balls]
            out[:] = 0.0
            out[0] = max(off, default=0.0)

        def project(self, x: Array) -> bool:
            q = ground.project(full(x))
            if q is None:
                return False
            # the loops run across the direction of the walk: it would go on in ever smaller steps
            gone, self.last = float(np.linalg.norm((q - self.last)[moving])), q
            if 0.0 < gone < CREEPING * delta:
                return False
            x[:] = q[moving]
            return True

    def is_free(state: Any) -> bool:
        q = full([state[i] for i in numbers])
        return ground.is_inside(q) and bool(ground.are_free(q[None])[0])

    space = base.ProjectedStateSpace(ambient, Shut())
    info = base.ConstrainedSpaceInformation(space)
    info.setStateValidityChecker(is_free)
    space.setDelta(delta)
    info.setup()
    return space, info


def _state(space: Any, x: Array, is_flat: bool) -> Any:
    state = space.allocState()
    if is_flat:
        for k, one in enumerate(x.tolist()):
            state[k] = one
    else:
        state.copy(x.tolist())
    return state


def _rank(ground: PlanningSpace, q: Array) -> int:
    """Number of entries of q that depend on the others."""
    J = ground.loops.residual(q)[1] * ground.free if ground.has_loops else np.zeros((0, 0))
    return (int(np.linalg.matrix_rank(J, tol=1e-6)) if J.size else 0) + len(ground.mechanism.space.quaternions_q)


def _meeting(ground: PlanningSpace, found: Array, start: Array, goals: Array) -> Array:
    """The found path with exact start and goal, and normalized quaternions."""
    for k in ground.mechanism.space.quaternions_q:
        found[:, k : k + 4] /= np.linalg.norm(found[:, k : k + 4], axis=1, keepdims=True)
    found[0], found[-1] = start, goals[np.abs(goals - found[-1]).max(axis=1).argmin()]
    return found


@contextmanager
def _quietly(util: Any) -> Generator[None]:
    level = util.getLogLevel()
    util.setLogLevel(util.LOG_NONE)
    try:
        yield
    finally:
        util.setLogLevel(level)


def _ompl() -> tuple[Any, Any, Any]:
    try:
        base, geometric, util = (import_module(f"ompl.{name}") for name in ("base", "geometric", "util"))
    except ImportError:
        raise MissingExtra("planning around obstacles", "plan") from None
    return base, geometric, util
