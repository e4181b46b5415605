"""Trees of OMPL: through all configurations inside the limits, or along those where loops are shut.

Without loops, whether a motion is free is asked once for a whole motion, in one compiled call. With loops (and balls,
whose four numbers are one unit long) its projected space walks along them, and shuts them with the retraction of
`Ground`: Z. Kingston, M. Moll and L. E. Kavraki, "Exploring implicit spaces for constrained sampling-based planning",
IJRR 38(10-11), 2019.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from mechanik.errors import MissingExtra, UnknownName
from mechanik.planning.ground import Ground, Indices
from mechanik.spatial.array import Array

OURS = "trees"
PLANNERS = (
    "RRTConnect", "RRT", "KPIECE1", "BKPIECE1", "LBKPIECE1", "BITstar", "RRTstar", "InformedRRTstar",
)  # fmt: skip
"""Those that ask from one thread alone; PRM does not. Those with a star go on for as long as they may."""
CREEPING = 0.3
"""Of a whole step along loops: what is shorter leads nowhere."""
SPARE = 1e-12
"""Rad, m: a freedom has a range, even if its limits leave none."""
ON_LOOPS = ("RRTConnect", "RRT")


def check_planner(ground: Ground, planner: str) -> None:
    """Refuse a name that none of those which can plan on this ground carries."""
    known = ("auto", OURS, *(PLANNERS if ground.is_flat else ON_LOOPS))
    if planner not in known:
        raise UnknownName("planner for this mechanism", planner, known)


def find_by_trees(
    ground: Ground, start: Array, goals: Array, planner: str, until: float, rng: np.random.Generator
) -> Array | None:
    """Configurations (N, nq) from the start to one of the goals, with free ways between them; None: not in this time.

    Args:
        until: by `time.perf_counter`.
        rng: seeds OMPL's generators, which are global: where several threads plan at once, they share them.
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
        space, info = (_flat if ground.is_flat else _curved)(base, ground, ambient, start, moving)
        problem = base.ProblemDefinition(info)
        problem.addStartState(_state(space, start[moving], ground.is_flat))
        ends = base.GoalStates(info)
        for goal in goals:
            ends.addState(_state(space, goal[moving], ground.is_flat))
        problem.setGoal(ends)
        tree = getattr(geometric, planner)(info)
        tree.setProblemDefinition(problem)
        tree.setup()
        tree.solve(base.PlannerTerminationCondition(lambda: time.perf_counter() > until))
        if not problem.hasExactSolution():
            return None
        path = problem.getSolutionPath()
        if not ground.is_flat:
            path.interpolate()
        numbers = range(len(moving))
        found = np.tile(start, (path.getStateCount(), 1))
        for k in range(len(found)):
            state = path.getState(k)
            found[k, moving] = [state[i] for i in numbers]
    return _meeting(ground, found, start, goals)


def _flat(base: Any, ground: Ground, ambient: Any, start: Array, moving: Indices) -> tuple[Any, Any]:
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
            return ground.is_free_motion(full(a), full(b))

    info = base.SpaceInformation(ambient)
    info.setStateValidityChecker(is_free)
    info.setMotionValidator(Motions(info))
    info.setup()
    return ambient, info


def _curved(base: Any, ground: Ground, ambient: Any, start: Array, moving: Indices) -> tuple[Any, Any]:
    numbers, rows = range(len(moving)), max(1, _rank(ground, start))
    balls, delta = ground.mechanism.space.balls_q, 2.0 * ground.step

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
            off = [float(np.abs(ground.loops.rows(q)[0]).max())] if ground.has_loops else []
            off += [abs(float(np.linalg.norm(q[k : k + 4])) - 1.0) for k in balls]
            out[:] = 0.0
            out[0] = max(off, default=0.0)

        def project(self, x: Array) -> bool:
            q = ground.shut(full(x))
            if q is None:
                return False
            # a walk that comes no farther: loops lead across where it wants to go. It would go on in ever smaller steps
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


def _rank(ground: Ground, q: Array) -> int:
    """How many numbers of q follow from the others."""
    J = ground.loops.rows(q)[1] * ground.free if ground.has_loops else np.zeros((0, 0))
    return (int(np.linalg.matrix_rank(J, tol=1e-6)) if J.size else 0) + len(ground.mechanism.space.balls_q)


def _meeting(ground: Ground, found: Array, start: Array, goals: Array) -> Array:
    """The same with its ends to the bit, and quaternions normalised."""
    for k in ground.mechanism.space.balls_q:
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
