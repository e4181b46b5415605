"""Serial chains at full speed: the chain kernel for one target, the lane kernel for many, a seed table for both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from mechanik.kernels import chain_layout as at
from mechanik.program.chain import Chain
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

one_at_a_time = kernel_module("chain")
in_lanes = kernel_module("lanes")

WORK, BESIDES = 20_000, 3
"""Iterations, times the joints and some more, after which a target is given up: more than half a millisecond."""


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """What the chain kernel came to.

    Attributes:
        code: as the kernel returned it; -1 if not solved.
        q: (nq,) the solution, or the closest that was met on the way.
        cost: there: the sum of squares of the rows, as the general kernel has it.
        seconds: taken so far.
    """

    code: int
    q: Array
    attempts: int
    iterations: int
    cost: float
    seconds: float = 0.0

    @property
    def is_solved(self) -> bool:
        return self.code >= 0


LONG = 30
"""Joints; of a longer chain the descents to the closest pose take as long as the attempts before them."""
SLICE = 250
"""Restarts between two looks at the clock: about a millisecond."""
CLEARLY = 0.99
"""Of the cost of the closest pose that a seed leads to: another that is not below it is not worth a jump."""


class ChainSearch:
    """A chain with its seed table, ready to search; any thread may, also several at once.

    Attributes:
        chain: the chain, in canonical form.
        columns, lower, upper: (n,) its places in q, and their limits.
        model, table: for the kernels.
        pool: workspaces that nobody uses; taken and put back in one step, so that threads need no lock.
    """

    def __init__(self, chain: Chain, q: Array, restarts: int | None = None) -> None:
        """
        Args:
            q: (nq,) where joints that are held stand.
            restarts: how many starts are tried after the first; None: as many as a millisecond allows.
        """
        self.chain, self.columns, self.lower, self.upper = chain, chain.columns, chain.lower, chain.upper
        self.model = chain.model.copy()
        self._limit(self.model, restarts)
        self.has_held = bool(chain.held.any())
        self.pool: list[Array] = []
        self._lane_pool: list[Array] = []
        self._build(q)

    def _limit(self, model: Array, restarts: int | None) -> None:
        """How many attempts are made, and how many iterations in all; who asks for many gets them, hopeless or not."""
        if restarts is None:
            share = 1.0 if self.chain.n <= LONG else 0.5
            model[at.WORK] = share * WORK / (self.chain.n + BESIDES)
        else:
            model[at.MAX_ATTEMPTS], model[at.WORK], model[at.REACH] = restarts + 1, np.inf, np.inf

    def _build(self, q: Array) -> None:
        table = np.zeros(2 * int(self.model[at.TABLE_SIZE]), dtype=np.float32)
        held_at = np.ascontiguousarray(q[self.columns])
        one_at_a_time.build_table(self.model, np.zeros(at.workspace_size(self.chain.n, 1)), held_at, table)
        self.table, self._held_at = table, held_at[self.chain.held]
        self.pool = []

    def meet(self, q: Array) -> None:
        """Make the table anew if joints that are held stand elsewhere than when it was made."""
        if not np.array_equal(q[self.columns][self.chain.held], self._held_at):
            self._build(q)

    def search(
        self, X: Array, q0: Array, has_seed: bool, key: float = 0.0, restarts: int | None = None
    ) -> Tried | None:
        """One target (4, 4). None if q0 is too far away for the kernel.

        Args:
            q0: (nq,) the seed; without one, where the joints outside the chain stand.
            key: for all that is random.
            restarts: how many, if not as usual.
        """
        if self.has_held:
            self.meet(q0)
        work, q = self.new_work(), np.empty(len(q0))
        mode = at.FROM_SEED if has_seed else at.FROM_TABLE
        X = np.array(X, dtype=np.float64, order="C")
        if restarts is not None:
            self._limit(work, restarts)
        code = one_at_a_time.solve_one(work, X, q0, mode, key, q)
        return self.tried(work, code, q)

    def search_until(
        self, deadline: float, X: Array, q0: Array, has_seed: bool, key: float, restarts: int
    ) -> Tried | None:
        """As `search`, with a look at the clock (as `time.perf_counter` has it) after each slice of restarts."""
        best, made, spent = None, 0, 0
        while True:
            tried = self.search(X, q0, has_seed, key, min(restarts - made, SLICE))
            if tried is None:
                return None
            made, spent = made + tried.attempts, spent + tried.iterations
            if best is None or tried.is_solved or tried.cost < best.cost:
                best = tried
            if tried.is_solved or made > restarts or perf_counter() >= deadline:
                code = best.code if not best.is_solved else (made << 32) + 2 * spent + (best.code & 1)
                return replace(best, code=code, attempts=made, iterations=spent)
            key += 1.0

    def tried(self, work: Array, code: int, q: Array, seconds: float = 0.0) -> Tried | None:
        """What a workspace says of the search that has just ended in it; None if it was none."""
        if code == -2:
            return None
        _, attempts, iterations, metres, radians, _ = work[-at.REPORT :].tolist()
        return Tried(code, q, int(attempts), int(iterations), self.cost(metres, radians), seconds)

    def cost(self, metres: Any, radians: Any) -> Any:
        """The sum of squares of the weighted rows that are so far off."""
        lengths, angles = self.chain.weight * self.model[[at.LENGTH_SCALE, at.TURN_WEIGHT]]
        return (lengths * metres) ** 2 + (angles * radians) ** 2

    def new_work(self) -> Array:
        """Model, table and workspace in one. When it is done with it goes into the pool."""
        return np.concatenate([self.model, self.table.view(np.float64), np.zeros(at.workspace_size(self.chain.n, 1))])

    def solve_rows(self, X: Array, q0: Array, mode: int, key: float, q: Array, report: Array) -> None:
        """Many targets in lanes. What becomes of a row depends on that row and the key alone.

        Args:
            X: (M, 4, 4).
            q0: (M, nq) seeds, or where the joints outside the chain stand.
            mode: FROM_TABLE, FROM_SEED or ONCE, of `kernels/chain_layout.py`.
            q: (M, nq), out.
            report: (M, REPORT), out: SOLVED, NOT_SOLVED or BAD_ROW; attempts, iterations, errors (m, rad), brought
                inside.
        """
        try:
            work = self._lane_pool.pop()
        except IndexError:
            work = np.zeros(at.workspace_size(self.chain.n, 8))
        in_lanes.solve_rows(
            self.model, self.table, work, X.reshape(-1), q0.reshape(-1), mode, key, q.reshape(-1), report.reshape(-1)
        )
        self._lane_pool.append(work)

    def descend(self, X: Array, starts: Array) -> tuple[Array, Any, Any]:
        """One attempt from each of some starts (K, nq), at one target (4, 4) or at one each (K, 4, 4).

        Returns:
            q (K, nq), whether it is a solution (K,), iterations (K,).
        """
        starts = np.ascontiguousarray(starts, dtype=np.float64)
        targets = np.array(np.broadcast_to(X, (len(starts), 4, 4)), dtype=np.float64, order="C")
        q, report = np.empty_like(starts), np.empty((len(starts), at.REPORT))
        self.solve_rows(targets, starts, at.ONCE, 0.0, q, report)
        return q, report[:, 0] == at.SOLVED, report[:, 2].astype(np.int64)
