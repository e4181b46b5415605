"""Other answers of a chain, for targets whose first answer bumps: from starts that are free, those near them first."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mechanik.kernels import chain_layout as at
from mechanik.mechanism import Mechanism
from mechanik.search.chain_search import ChainSearch
from mechanik.solvers.keeping_off import KeepingOff, Mask
from mechanik.solvers.starts import halton_starts
from mechanik.spatial import inverse
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

nearest = kernel_module("distance.nearest_starts")
Numbers = npt.NDArray[np.int64]

ENTRIES, MOST_LOOKED_AT = 4096, 8
"""Free configurations in the table; and how many times as many are looked at to find them, at most."""
ROUNDS = (4, 12, 48, 192)
"""Starts from the table that are tried for a target, round by round, until one leads to a free answer. Tuned on a Panda
among 50 obstacles so close that one configuration in twelve is free: what is left after them is one target in 500."""
AT_A_TIME = 512
"""Targets, so that what is tried for them needs no more than some MB."""
METRES, RADIANS = 3, 4
"""Places in a row's report."""


@dataclass(frozen=True, slots=True, eq=False)
class Others:
    """Other answers to M targets.

    Attributes:
        q: (M, nq).
        any: (M,) whether there is an answer at all.
        free: (M,) whether it is free; if not, it is the least deep of some.
        errors: (M, 2) how far off it is, m and rad.
        iterations: (M,) of all descents.
    """

    q: Array
    any: Mask
    free: Mask
    errors: Array
    iterations: Numbers

    @staticmethod
    def none(q: Array) -> Others:
        M = len(q)
        no = np.zeros(M, dtype=np.bool_)
        return Others(q.copy(), no, no.copy(), np.full((M, 2), np.nan), np.zeros(M, dtype=np.int64))

    def part(self, rows: slice) -> Others:
        """Some of them, as views."""
        return Others(self.q[rows], self.any[rows], self.free[rows], self.errors[rows], self.iterations[rows])


class FreeSearch:
    """A table of free configurations, and descents from those whose end is nearest to a target.

    What comes of a target depends on that target and on where things stand, and not on the others.
    """

    def __init__(self, mechanism: Mechanism, chain: ChainSearch, keeping: KeepingOff, home: Array) -> None:
        """
        Args:
            home: (nq,) where joints that are no part of the chain stand, and those of it that are held.
        """
        self._mechanism, self._chain, self._keeping = mechanism, chain, keeping
        self._mine = np.zeros(mechanism.nq, dtype=np.bool_)
        self._mine[chain.columns[~chain.chain.held]] = True
        self._home = home
        self._version, self._making = -1, threading.Lock()

    def look(self, X: Array, base: Array, near: Array | None = None, most: int = sum(ROUNDS)) -> Others:
        """
        Args:
            X: (M, 4, 4) targets of the chain.
            base: (M, nq) where all joints stand that the chain does not move.
            near: (M, nq) if of several free answers of a round the nearest to it is wanted.
            most: starts for each target.
        """
        self._refresh()
        found = Others.none(base)
        for k in range(0, len(X), AT_A_TIME):
            rows = slice(k, k + AT_A_TIME)
            self._some(X[rows], base[rows], None if near is None else near[rows], most, found.part(rows))
        return found

    def starts_near(self, X: Array, base: Array, count: int) -> Array:
        """(count, nq) free configurations whose end is nearest to one target X (4, 4), the nearest first."""
        self._refresh()
        return np.where(self._mine, self._q[self._ranked(X[None], count)[0]], base)

    # ---- inside -----------------------------------------------------------------------------

    def _some(self, X: Array, base: Array, near: Array | None, most: int, found: Others) -> None:
        first, left, most = 0, np.arange(len(X)), min(most, len(self._q))
        for count in ROUNDS:
            entries = self._ranked(X[left], min(first + count, most))[:, first:]
            k = entries.shape[1]
            first += k
            if not entries.size:
                break
            starts = np.where(self._mine, self._q[entries], base[left, None]).reshape(len(left) * k, -1)
            q, report = np.empty_like(starts), np.empty((len(starts), at.REPORT))
            self._chain.solve_rows(np.repeat(X[left], k, axis=0), starts, at.ONCE, 0.0, q, report)
            solved = report[:, 0] == at.SOLVED
            free = solved.copy()
            free[solved] = self._keeping.are_free(q[solved])
            found.iterations[left] += report[:, 2].astype(np.int64).reshape(-1, k).sum(axis=1)
            if near is None:  # the first that is free
                rank = np.tile(np.arange(k, dtype=np.float64), len(left))
            else:
                rank = ((q - near[left].repeat(k, axis=0)) ** 2).sum(axis=1)
            good = self._keep(found, left, q, report, np.where(free, rank, np.inf))
            found.free[left[good]] = True
            left = left[~good]
            if len(left) and (first == most or count == ROUNDS[-1]):  # the least deep of those that were tried last
                bad = solved & ~good.repeat(k)
                depth = np.full(len(q), np.inf)
                depth[bad] = -self._keeping.gaps(q[bad])
                rows = ~good.repeat(k)
                self._keep(found, left, q[rows], report[rows], depth[rows])

    @staticmethod
    def _keep(found: Others, rows: Numbers, q: Array, report: Array, rank: Array) -> Mask:
        """Of the answers of each row the one with the lowest rank, unless that is infinite; whether it is not."""
        k = len(q) // len(rows)
        chosen = np.argmin(rank.reshape(-1, k), axis=1) + k * np.arange(len(rows))
        good = np.asarray(rank[chosen] < np.inf)
        chosen, rows = chosen[good], rows[good]
        found.q[rows], found.errors[rows], found.any[rows] = q[chosen], report[chosen][:, [METRES, RADIANS]], True
        return good

    def _refresh(self) -> None:
        """The table, made again where obstacles stand elsewhere."""
        with self._making:
            version = self._keeping.collider.version
            if version != self._version:
                self._make()
                self._version = version

    def _make(self) -> None:
        space = self._mechanism.space
        lower, upper = space.lower.copy(), space.upper.copy()
        lower[self._chain.columns], upper[self._chain.columns] = self._chain.lower, self._chain.upper
        space = replace(space, lower=lower, upper=upper)
        found: list[Array] = []
        for block in range(MOST_LOOKED_AT):
            q = np.where(self._mine, halton_starts(space, ENTRIES, block * ENTRIES), self._home)
            found.append(q[self._keeping.are_free(q)])
            if sum(map(len, found)) >= ENTRIES:
                break
        q = np.concatenate(found)[:ENTRIES]
        if not len(q):  # where nothing is free any start is as good as another
            q = np.where(self._mine, halton_starts(space, ENTRIES), self._home)
        self._q, self._features = q, np.ascontiguousarray(self._described(self._ends(q)).T)

    def _ends(self, q: Array) -> Array:
        """(K, 4, 4) the targets that are met at q (K, nq)."""
        relation, mechanism = self._chain.chain.relations[0], self._mechanism
        X = mechanism.pose(relation.b or "", q) @ relation.X_b @ self._chain.chain.turns[0].T
        return X if relation.a is None else inverse(mechanism.pose(relation.a, q)) @ X

    def _described(self, X: Array) -> Array:
        """(K, 12) numbers whose distances are about those of the rows."""
        model = self._chain.model
        places = X[:, :3, 3] * (model[at.LENGTH_SCALE] * (model[at.PLACE_WEIGHT] != 0.0))
        turns = X[:, :3, :3].reshape(-1, 9) * (model[at.TURN_WEIGHT] / np.sqrt(2.0))
        return np.concatenate([places, turns], axis=1)

    def _ranked(self, X: Array, count: int) -> Numbers:
        """(M, count) the entries that are nearest to targets X (M, 4, 4), the nearest first."""
        found = np.empty((len(X), min(count, len(self._q))), dtype=np.int64)
        nearest.nearest_starts(self._features, self._described(X), np.empty(len(self._q) + found.shape[1]), found)
        return found
