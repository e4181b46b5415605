"""Many places of one problem at once: drawn at random, bred from each other, sorted by cost."""

from __future__ import annotations

import math

import numpy as np

from mechanik.mechanism.configuration import Indices
from mechanik.solvers.problem import Problem
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array

INERTIA = 0.5
"""How much of the way that a parent came by a child goes on with, at most."""


class Population:
    """The first of them is where the problem stands; the others are drawn.

    Attributes:
        x: (N, numbers of x) where each stands.
        cost: (N,).
        span: (n,) the range of each column; where there are no limits, a whole turn, or as many sizes of the mechanism.
        way: (N, n) the step by which each came from its first parent, and some of what that one came by.
    """

    def __init__(self, problem: Problem, count: int) -> None:
        self.problem = problem
        # where the kernel says that x is a plain number; the columns of balls are turned instead
        self._plain = np.flatnonzero(problem.bounded)
        self._number = problem.column_x[self._plain]
        balls = problem.part.packed.at["balls"].reshape(-1, 2)
        self._balls: list[tuple[int, int]] = [(int(k), int(v)) for k, v in balls]
        span = problem.upper - problem.lower
        self.span = np.where(np.isfinite(span), span, 2.0 * math.pi)
        self.x, self.cost = np.tile(problem.x, (count, 1)), np.full(count, problem.cost)
        self.way = np.zeros((count, problem.n))
        self._home = problem.x.copy()
        self.scatter(1)

    def stand_at(self, i: int) -> None:
        """Put the problem where one of them stands."""
        self.problem.place_x(self.x[i])

    def put(self, i: int) -> None:
        """One of them is now where the problem stands."""
        problem = self.problem
        self.x[i], self.cost[i] = problem.x, problem.cost if problem.cost < math.inf else np.inf

    def sort(self) -> None:
        order = np.argsort(self.cost, kind="stable")
        self.x, self.cost, self.way = self.x[order], self.cost[order], self.way[order]

    def scatter(self, first: int) -> None:
        """Draw all from number `first` on anew: even within the limits, or within half a turn where there are none."""
        problem, rng = self.problem, self.problem.rng
        count = len(self.x) - first
        problem.x[:] = self._home
        lower, upper, span = problem.lower, problem.upper, self.span
        low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - span, -0.5 * span))
        high = np.where(np.isfinite(upper), upper, low + span)
        steps = low + (high - low) * rng.random((count, problem.n))
        for _, v in self._balls:
            steps[:, v : v + 3] = quaternion.log(quaternion.normalize(rng.standard_normal((count, 4))))
        self._move(range(first, len(self.x)), np.broadcast_to(self._home, (count, len(self._home))), steps)
        self.way[first:] = 0.0

    def breed(self, elites: int) -> None:
        """Replace all but the first few by children; sorted before, not after."""
        rng, N, n = self.problem.rng, len(self.x), self.problem.n
        count = N - elites
        extinction = self._extinction()
        share = np.arange(N, 0, -1) / (N * (N + 1) / 2)  # the better, the more children
        parents = np.searchsorted(np.cumsum(share), rng.random((3, count))).clip(max=N - 1)
        first, second, third = parents[0], parents[1], parents.min(axis=0)
        towards = self._difference(first, second) * rng.random((count, n))
        gone_on = self.way[first] * (INERTIA * rng.random((count, 1)))
        adopted = self._difference(first, third) * (0.5 * rng.random((count, 1)))
        danger = 0.5 * (extinction[first] + extinction[second])[:, None]
        mutates = rng.random((count, n)) < (danger * (n - 1) + 1) / n
        mutation = np.where(mutates, danger * self.span * (rng.random((count, n)) - 0.5), 0.0)
        steps = towards + gone_on + adopted + mutation
        self._move(range(elites, N), self.x[first], steps)
        self.way[elites:] = steps
        self.way[:elites] = 0.0

    def _extinction(self) -> Array:
        """(N,) 0 for the best to 1 for the worst, by cost and by rank, as Starke has it; sorted by cost."""
        error = np.sqrt(np.minimum(self.cost, 1e300))
        rank = np.arange(len(error)) / (len(error) - 1)
        return (error + error[0] * (rank - 1.0)) / max(float(error[-1]), 1e-300)

    def _difference(self, a: Indices, b: Indices) -> Array:
        """(m, n) the steps that lead from some to others."""
        here, there = self.x[a], self.x[b]
        steps = np.zeros((len(here), self.problem.n))
        steps[:, self._plain] = (there[:, self._number] - here[:, self._number]) / self.problem.scale[self._plain]
        for k, v in self._balls:
            turn = quaternion.multiply(quaternion.conjugate(here[:, k : k + 4]), there[:, k : k + 4])
            steps[:, v : v + 3] = quaternion.log(turn)
        return steps

    def _move(self, which: range, start: Array, steps: Array) -> None:
        """Put some of them where a step leads from a start, brought inside the limits."""
        problem = self.problem
        locked = ~problem.free
        if locked.any():
            steps[:, locked] = 0.0
        start = start.copy()  # those that breed may be among those that are replaced
        for i, x, step in zip(which, start, steps, strict=True):
            problem.x[:], problem.step[:] = x, step
            problem.advance()
            self.put(i)
