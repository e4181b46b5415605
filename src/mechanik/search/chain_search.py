"""Serial chains at full speed: the chain kernel for one target, the lane kernel for many, and the seed table for both."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechanik import kernels
from mechanik.kernels import chain_layout as at
from mechanik.program.chain import Chain
from mechanik.spatial.array import Array

one_at_a_time = kernels.Lazy("chain", "solve_one", "build_table")
in_lanes = kernels.Lazy("lanes", "solve_rows")

WORK = 20_000
"""How many times a joint may be looked at before a target is given up: about a millisecond."""


class ChainSearch:
    """A chain with its seed table, ready to search; any thread may, also several at once.

    Attributes:
        chain: the chain, in canonical form.
        columns, lower, upper: (n,) its places in q, and their limits.
        model, table: for the kernels.
    """

    def __init__(self, chain: Chain, q: Array, restarts: int | None = None) -> None:
        """
        Args:
            q: (nq,) where joints that are held stand.
            restarts: how many starts are tried after the first; None: as many as about a millisecond allows.
        """
        self.chain, self.columns, self.lower, self.upper = chain, chain.columns, chain.lower, chain.upper
        self.model = chain.model.copy()
        if restarts is None:
            self.model[at.WORK] = WORK / chain.n
        else:
            self.model[at.MAX_ATTEMPTS] = restarts + 1
        self.once = self.model.copy()
        self._pool: list[tuple[Array, Array]] = []
        self._lane_pool: list[Array] = []
        self._build(q)

    def _build(self, q: Array) -> None:
        table = np.zeros(at.table_size(self.chain.n, int(self.model[at.ENTRIES])), dtype=np.float32)
        held_at = np.ascontiguousarray(q[self.columns])
        work = self.borrow()
        one_at_a_time.build_table(self.model, work[0], held_at, table)
        self.give_back(work)
        self.table, self._held_at = table, held_at[self.chain.held]

    def meet(self, q: Array) -> None:
        """Make the table anew if joints that are held stand elsewhere than when it was made."""
        if self._held_at.size and not np.array_equal(q[self.columns][self.chain.held], self._held_at):
            self._build(q)

    def borrow(self) -> tuple[Array, Array]:
        """A workspace, and a target to write into; to be given back."""
        try:
            return self._pool.pop()
        except IndexError:
            return np.zeros(at.workspace_size(self.chain.n, 1)), np.eye(4)

    def give_back(self, work: tuple[Array, Array]) -> None:
        self._pool.append(work)

    def solve_rows(self, X: Array, q0: Array, mode: int, key: float, q: Array, report: Array) -> None:
        """Many targets in lanes. What becomes of a row depends on that row and the key alone.

        Args:
            X: (M, 4, 4).
            q0: (M, nq) seeds, or where the joints outside the chain stand.
            mode: FROM_TABLE, FROM_SEED or ONCE, of `kernels/chain_layout.py`.
            q: (M, nq), out.
            report: (M, REPORT), out: SOLVED, NOT_SOLVED or BAD_ROW; attempts, iterations, errors (m, rad), brought inside.
        """
        try:
            work = self._lane_pool.pop()
        except IndexError:
            work = np.zeros(at.workspace_size(self.chain.n, 8))
        in_lanes.solve_rows(self.model, self.table, work, X, q0, mode, key, q, report)
        self._lane_pool.append(work)

    def descend(self, X: Array, starts: Array) -> tuple[Array, Any, Any]:
        """One attempt from each of some starts (K, nq), at one target (4, 4) or at one each (K, 4, 4).

        Returns:
            q (K, nq), whether it is a solution (K,), iterations (K,).
        """
        starts = np.ascontiguousarray(starts, dtype=np.float64)
        targets = np.ascontiguousarray(np.broadcast_to(X, (len(starts), 4, 4)), dtype=np.float64)
        q, report = np.empty_like(starts), np.empty((len(starts), at.REPORT))
        self.solve_rows(targets, starts, at.ONCE, 0.0, q, report)
        return q, report[:, 0] == at.SOLVED, report[:, 2].astype(np.int64)
