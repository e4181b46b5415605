"""What is followed: at every s something is asked of a mechanism, and it is brought to where that holds."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mechanik.batch import takes_lanes
from mechanik.batch.goal_poses import goal_poses
from mechanik.errors import MechanikError, NotARotation, NotFinite, ShapeError
from mechanik.ik import Solver
from mechanik.mechanism import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.placement import Placement
from mechanik.paths.targets import Wanted, placed
from mechanik.search.question import asked
from mechanik.solvers.freedoms import as_bounds
from mechanik.solvers.solution import Solution
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from mechanik.collision import Collider

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int64]
FINE, UNMET, CLASH = 0, 1, 2
"""What became of a configuration: all holds; something is not met; something is too near."""
TURN = 2.0 * np.pi
AT_LIMIT = 1e-9
FINER = 1e-3
"""Of what objectives tolerate: to this a path is polished."""
HAIR = 1e-3
"""rad or m: polishing moves nothing farther."""
ROOM = 1e-3
"""m: so much farther off is slid along things, since between two knots the way is straight."""
KEPT = 64
"""Solvers for single s that are kept, where objectives are made anew for each s."""


class Course:
    """A mechanism, what is asked of it along s, its limits, and what it must keep off.

    Joints that may turn fully are not limited here, since the same place is reached with other windings; the roadmap
    looks for windings that fit.

    Attributes:
        wanted: the goals.
        lower, upper: (nq,) the limits that count in the end.
        wide: (nq,) joints whose limits leave a full turn or more, and nothing counts their turns.
        spare: how many freedoms the goals leave, where the path begins.
        has_all: whether all branches at an s are found in no time, as by a formula.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        wanted: Wanted,
        *,
        limits: Mapping[str, ArrayLike] | None,
        collider: Collider | None,
        clearance: float,
        settings: dict[str, Any],
    ) -> None:
        self.mechanism, self.wanted, self.space = mechanism, wanted, mechanism.space
        self.lower, self.upper = as_bounds(mechanism, limits)
        self._collider, self._clearance = collider, clearance
        self._settings = settings
        self._limits = dict(limits or {})
        self._others: dict[float, Solver] = {}
        self._polisher: Solver | None = None
        self._slider: Solver | None = None
        plain = Solver(mechanism, wanted.objectives, limits=self._limits or None, **settings)
        self.wide, self.matters, self.unit = self._look(plain)
        names = [name for name, is_wide in zip(self.space.q_names, self.wide, strict=True) if is_wide]
        self._limits |= dict.fromkeys(names, (-np.inf, np.inf))
        self.solver = Solver(mechanism, wanted.objectives, limits=self._limits, **settings) if names else plain
        goal = wanted.objectives[0]
        quick = self.solver._chain is not None and wanted.has_targets and isinstance(goal, Placement)
        self._goal = goal if quick and isinstance(goal, Placement) and takes_lanes(mechanism, goal) else None

    @property
    def is_quick(self) -> bool:
        """Whether many configurations are settled at once, a few microseconds each."""
        return self._goal is not None

    @property
    def s(self) -> Array:
        return self.wanted.s

    def _look(self, solver: Solver) -> tuple[Mask, Mask, float]:
        target = self.wanted.target(float(self.s[0])) if self.wanted.has_targets else None
        with asked(solver, target, self.mechanism.q) as question:
            c = question.conditions
            turning = c.columns[c.is_angle]
            places = self.space.random(np.random.default_rng(0), 4)
            J = c.rows(places)[1]
            rank = max((int(np.linalg.matrix_rank(one, tol=1e-6)) for one in J), default=0) if J.shape[1] else 0
            self.spare = c.n - rank
            self.moving = c.moving
            size = c.size
            self.has_all = question.form is not None or c._pose is not None
        self._angles = np.zeros(self.space.nq, dtype=np.bool_)
        self._angles[turning] = True
        wide = np.zeros(self.space.nq, dtype=np.bool_)
        room = self.upper - self.lower
        wide[turning] = np.isfinite(room[turning]) & (room[turning] >= TURN)
        self.turning = np.zeros(self.space.nq, dtype=np.bool_)
        self.turning[turning] = ~np.isfinite(room[turning]) | (room[turning] >= TURN)
        matters = np.zeros(self.space.nv, dtype=np.bool_)
        matters[self.moving] = True
        return wide, matters, size

    # ---- bringing to where all holds --------------------------------------------------------

    def settle(self, s: Array, q: Array) -> tuple[Array, Codes]:
        """Each of q (K, nq) to where what is asked at its s (K,) holds, by one descent from there.

        Returns:
            (K, nq), and (K,) FINE, UNMET or CLASH.
        """
        found, met = self._settle(s, q)
        codes = np.where(met, FINE, UNMET)
        if met.any():
            codes[np.flatnonzero(met)[~self.are_free(found[met])]] = CLASH
        return found, codes

    def are_free(self, q: Array) -> Mask:
        """(K,) whether nothing is too near at each of q (K, nq)."""
        if self._collider is None:
            return np.ones(len(q), dtype=np.bool_)
        return np.asarray(self._collider.is_free(self.inside(q), self._clearance))

    def _settle(self, s: Array, q: Array, solver: Solver | None = None) -> tuple[Array, Mask]:
        chain = (self.solver if solver is None else solver)._chain
        if self._goal is not None and chain is not None:
            targets = self.wanted.targets(s)
            if not np.isfinite(targets).all():
                at = s[~np.isfinite(targets).reshape(len(s), -1).all(axis=1)][0]
                raise NotFinite(f"the target at s = {at:g} has an entry that is not finite")
            X = goal_poses(self._goal, targets, len(s))
            if chain.has_held:
                chain.meet(q[0])
            found, met, _ = chain.descend(X, q)
            return found, np.asarray(met, dtype=np.bool_)
        found, met = np.empty_like(q), np.zeros(len(q), dtype=np.bool_)
        asked_for: dict[float, tuple[Solver, Any]] = {}
        for k, (at, start) in enumerate(zip(s.tolist(), q, strict=True)):
            if at not in asked_for:
                asked_for[at] = self._asked_at(at, solver)
            solution = self._solution(at, start, *asked_for[at])
            found[k], met[k] = solution.q, solution.success
        return found, met

    def _asked_at(self, s: float, solver: Solver | None) -> tuple[Solver, Any]:
        if solver is None or not self.wanted.has_targets:
            return self.solver_at(s)
        return solver, self.wanted.target(s)

    def _solution(self, s: float, q: Array, solver: Solver, target: Any) -> Solution:
        try:
            return solver.solve(target, q0=q) if solver._chain is None else solver.solve(target, q0=q, restarts=0)
        except (NotFinite, NotARotation, ShapeError) as error:
            raise placed(error, f"the target at s = {s:g}") from error

    def solver_at(self, s: float) -> tuple[Solver, Any]:
        """A solver for what is asked at s, and the targets for it."""
        if self.wanted.has_targets:
            return self.solver, self.wanted.target(s)
        if s not in self._others:
            if len(self._others) >= KEPT:
                self._others.clear()
            goals = self.wanted.target(s)
            try:
                self._others[s] = Solver(self.mechanism, goals, limits=self._limits or None, **self._settings)
            except MechanikError as error:
                error.add_note(f"These are the goals at s = {s:g}.")
                raise
        return self._others[s], None

    def slide(self, s: Array, q: Array) -> tuple[Array, Mask]:
        """As `settle`, along what is in the way, where the goals leave a freedom to do so; q (K, nq) are free.

        Returns:
            (K, nq), and (K,) whether all holds there and nothing is too near.
        """
        found, met = q.copy(), np.zeros(len(q), dtype=np.bool_)
        if not self.can_slide:
            return found, met
        if self._slider is None:
            self._slider = Solver(
                self.mechanism, self.wanted.objectives, limits=self._limits or None, avoid=self._collider,
                clearance=self._clearance + ROOM, **self._settings,
            )  # fmt: skip
        for k, (at, start) in enumerate(zip(s.tolist(), q, strict=True)):
            solution = self._slider.solve(self.wanted.target(at), q0=start, restarts=0)
            found[k], met[k] = solution.q, solution.success
        met[met] = self.are_free(found[met])
        return found, met

    @property
    def can_slide(self) -> bool:
        """Whether what comes too near may go aside at once. Those that are quick go another way from the start."""
        return self._collider is not None and bool(self.spare) and not self.is_quick and self.wanted.has_targets

    def ignoring(self, s: Array, q: Array) -> Array:
        """As `settle`, whatever is too near."""
        return self._settle(s, q)[0]

    def polish(self, q: Array) -> Array:
        """The knots (N, nq) to the last digits, where that is a hair's breadth away: else steps would be rough."""
        if self._polisher is None:
            goals = [_finer(one) for one in self.wanted.objectives]
            self._polisher = Solver(self.mechanism, goals, limits=self._limits or None, **self._settings)
        found, met = self._settle(self.s, q, self._polisher)
        fine = met & (np.abs(self.space.difference(q, found)).max(axis=1, initial=0.0) < HAIR) & self.are_free(found)
        return np.where(fine[:, None], found, q)

    # ---- places -----------------------------------------------------------------------------

    def apart(self, a: Array, b: Array) -> Array:
        """The step v (..., nv) from a to b, full turns of joints that may turn fully aside."""
        v = self.space.difference(a, b)
        v[..., ~self.matters] = 0.0
        turns = self.turning[self.space.scalars_q]
        column = self.space.scalars_v[turns]
        v[..., column] -= TURN * np.round(v[..., column] / TURN)
        return v

    def inside(self, q: Array) -> Array:
        """q with wide joints by full turns inside their limits, for those who look at single configurations."""
        k = np.flatnonzero(self.wide)
        turned = q.copy()
        turned[:, k] = q[:, k] - TURN * np.ceil((q[:, k] - self.upper[k]) / TURN - 1e-12)
        return turned

    @property
    def has_collider(self) -> bool:
        return self._collider is not None

    def clashes(self, q: Array) -> tuple[Any, ...]:
        """What is too near at q (nq,), the deepest first."""
        if self._collider is None:
            return ()
        return tuple(self._collider.clashes(self.inside(q[None])[0], self._clearance))

    def at_limits(self, q: Array) -> list[str]:
        """Names of freedoms that stand at a limit at q (nq,)."""
        at = (q <= self.lower + AT_LIMIT) | (q >= self.upper - AT_LIMIT)
        at &= ~self.wide & (self.lower < self.upper) & self._counts()
        return [self.space.q_names[k] for k in np.flatnonzero(at).tolist()]

    def beyond_limits(self, q: Array) -> list[str]:
        """Names of freedoms that stand beyond a limit at q (nq,), whatever full turns they are taken by."""
        value, k = q.copy(), np.flatnonzero(self._angles & np.isfinite(self.lower) & np.isfinite(self.upper))
        value[k] -= TURN * np.round((q[k] - 0.5 * (self.lower[k] + self.upper[k])) / TURN)
        out = ((value < self.lower - AT_LIMIT) | (value > self.upper + AT_LIMIT)) & self._counts()
        return [self.space.q_names[k] for k in np.flatnonzero(out & ~self.wide).tolist()]

    def free_of_limits(self) -> Course:
        """The same with no limits at all, and nothing to keep off."""
        single = [self.space.q_names[k] for k in self.space.scalars_q.tolist()]
        none = dict.fromkeys(single, (-np.inf, np.inf))
        return Course(self.mechanism, self.wanted, limits=none, collider=None, clearance=0.0, settings=self._settings)

    def _counts(self) -> Mask:
        """(nq,) what changes anything that is asked for."""
        counts = np.zeros(self.space.nq, dtype=np.bool_)
        counts[self.space.scalars_q] = self.matters[self.space.scalars_v]
        return counts


def _finer(objective: Objective) -> Objective:
    """The same wish, asked for more closely."""
    finer = copy(objective)
    object.__setattr__(finer, "tolerance", FINER * objective.tolerance)
    object.__setattr__(finer, "angle_tolerance", FINER * objective.angle_tolerance)
    return finer
