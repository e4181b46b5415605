"""Inverse kinematics of serial chains by compiled kernels: one target, or many in lanes, with a seed table for both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from mechanik.kernels.chain_layout import FROM_SEED, FROM_TABLE, SINGLE_ATTEMPT
from mechanik.kernels.vector import LANES
from mechanik.problem.chain_tables import (
    ChainReports,
    error_weights,
    new_seed_table,
    new_workspace,
    report_of,
    set_attempt_count,
    set_iteration_budget,
)
from mechanik.problem.serial_chain import SerialChain
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

chain_kernel = kernel_module("chain_kernel")
lane_kernel = kernel_module("lane_kernel")

ITERATION_BUDGET, ITERATION_OVERHEAD = 20_000, 3
"""No further attempt begins after ITERATION_BUDGET / (joints + ITERATION_OVERHEAD) iterations for a target, which take
more than half a millisecond. If an attempt came near the target, twice as many iterations are allowed. With a larger
budget more solutions are found, and targets out of reach take longer.
"""


@dataclass(frozen=True, slots=True, eq=False)
class ChainResult:
    """Result of the chain kernel for one target.

    Attributes:
        code: return code of the kernel; negative if not solved.
        q: (nq,) the solution, or the closest configuration that was found.
        attempts: number of attempts.
        iterations: number of iterations of all attempts.
        cost: sum of squared weighted residuals at `q`, as in the general kernel.
        seconds: time of the call until the result was read, s; 0 if not measured.
    """

    code: int
    q: Array
    attempts: int
    iterations: int
    cost: float
    seconds: float = 0.0

    @property
    def is_solved(self) -> bool:
        """Whether the target is reached."""
        return self.code >= 0


LONG_CHAIN_JOINTS = 30
"""Number of joints; a longer chain gets half of the iteration budget, since its final descents to the closest pose take
as long as the attempts."""
RESTARTS_PER_CLOCK_CHECK = 250
"""Number of restarts between two checks of the clock; this many restarts take about a millisecond."""


class ChainSearch:
    """Search for solutions of a serial chain, with a seed table for given values of locked joints; thread-safe.

    Attributes:
        chain: the chain in canonical form.
        columns: (n,) indices of the chain's joints into q.
        lower, upper: (n,) limits of these joints, rad or m.
        model, table: kernel tables of the chain and of the seeds.
        has_fixed_joints: whether joints of the chain are locked.
        workspace_pool: unused workspaces of `allocate_workspace`; pop and append are atomic, so threads need no lock.
    """

    def __init__(self, chain: SerialChain, q: Array, restarts: int | None = None) -> None:
        """Build the seed table.

        Args:
            q: (nq,) values of locked joints.
            restarts: maximum number of restarts after the first start; None for the default iteration budget.
        """
        self.chain, self.columns, self.lower, self.upper = chain, chain.columns, chain.lower, chain.upper
        self._restarts = restarts
        self.model = chain.model.copy()
        self._write_budget(self.model, restarts)
        self.has_fixed_joints = bool(chain.locked_columns.any())
        self.workspace_pool: list[Array] = []
        self._lane_pool: list[Array] = []
        self._build_table(q)

    def _write_budget(self, model: Array, restarts: int | None) -> None:
        """Write the maximum numbers of attempts and iterations.

        If `restarts` is given, all restarts are made, also for targets that are out of reach.
        """
        if restarts is None:
            budget_factor = 1.0 if self.chain.n <= LONG_CHAIN_JOINTS else 0.5
            set_iteration_budget(model, budget_factor * ITERATION_BUDGET / (self.chain.n + ITERATION_OVERHEAD))
        else:
            set_attempt_count(model, restarts + 1)

    def _build_table(self, q: Array) -> None:
        table = new_seed_table(self.model)
        joint_values = np.ascontiguousarray(q[self.columns])
        chain_kernel.build_seed_table(self.model, new_workspace(self.chain.n), joint_values, table)
        self.table, self._fixed_values = table, joint_values[self.chain.locked_columns]
        self.workspace_pool = []

    def has_fixed_values_of(self, q: Array) -> bool:
        """Return whether the seed table is made for the values of the locked joints at `q` (nq,)."""
        return np.array_equal(q[self.columns][self.chain.locked_columns], self._fixed_values)

    def with_fixed_values_of(self, q: Array) -> ChainSearch:
        """Return a search whose seed table is made for the values of the locked joints at `q` (nq,)."""
        return ChainSearch(self.chain, q, self._restarts)

    def search(
        self, X: Array, q0: Array, has_seed: bool, key: float = 0.0, restarts: int | None = None
    ) -> ChainResult | None:
        """Search for one target X (4, 4); None if `q0` or X is invalid.

        Args:
            X: (4, 4) target pose in the chain's target frame, lengths in m.
            q0: (nq,) the seed; without a seed, the values of locked joints and of joints outside the chain.
            has_seed: whether `q0` is a seed.
            key: key of the random numbers.
            restarts: maximum number of restarts; None for the value of the constructor.
        """
        if self.has_fixed_joints and not self.has_fixed_values_of(q0):
            return self.with_fixed_values_of(q0).search(X, q0, has_seed, key, restarts)
        work, q = self.allocate_workspace(), np.empty(len(q0))
        mode = FROM_SEED if has_seed else FROM_TABLE
        X = np.array(X, dtype=np.float64, order="C")
        if restarts is not None:
            self._write_budget(work, restarts)
        code = chain_kernel.solve_target(work, X, q0, mode, key, q)
        return self.read_result(work, code, q)

    def search_until(
        self, deadline: float, X: Array, q0: Array, has_seed: bool, key: float, restarts: int
    ) -> ChainResult | None:
        """Search as `search` does; the deadline (`time.perf_counter`) is checked after each block of restarts."""
        best_result, attempts, iterations = None, 0, 0
        while True:
            result = self.search(X, q0, has_seed, key, min(restarts - attempts, RESTARTS_PER_CLOCK_CHECK))
            if result is None:
                return None
            attempts, iterations = attempts + result.attempts, iterations + result.iterations
            if best_result is None or result.is_solved or result.cost < best_result.cost:
                best_result = result
            if result.is_solved or attempts > restarts or perf_counter() >= deadline:
                code = (
                    best_result.code
                    if not best_result.is_solved
                    else (attempts << 32) + 2 * iterations + (best_result.code & 1)
                )
                return replace(best_result, code=code, attempts=attempts, iterations=iterations)
            key += 1.0

    def read_result(self, work: Array, code: int, q: Array, seconds: float = 0.0) -> ChainResult | None:
        """Read the result of the last search from its workspace; None if the kernel reported bad input."""
        if code == -2:
            return None
        report = report_of(work)
        cost = float(self.cost(report.position_error, report.rotation_error))
        return ChainResult(code, q, report.attempts, report.iterations, cost, seconds)

    def cost(self, position_error: Any, rotation_error: Any) -> Any:
        """Return the sum of squared weighted residuals for a position error (m) and a rotation error (rad)."""
        length_weight, angle_weight = error_weights(self.model)
        position_cost = (self.chain.weight * length_weight * position_error) ** 2
        return position_cost + (self.chain.weight * angle_weight * rotation_error) ** 2

    def allocate_workspace(self) -> Array:
        """Allocate model, table and workspace as one array; the caller may append it to `workspace_pool` after use."""
        return np.concatenate([self.model, self.table.view(np.float64), new_workspace(self.chain.n)])

    def solve_rows(self, X: Array, q0: Array, mode: int, key: float, q: Array, report: Array) -> None:
        """Solve many targets in lanes; each result depends on its row and the key only.

        Args:
            X: (M, 4, 4) targets.
            q0: (M, nq) seeds, or the values of locked joints and of joints outside the chain.
            mode: FROM_TABLE, FROM_SEED or SINGLE_ATTEMPT of `kernels/chain_layout.py`.
            key: key of the random numbers.
            q: (M, nq) output: configurations.
            report: (M, 6) output, the numbers of `ChainReports`.
        """
        try:
            work = self._lane_pool.pop()
        except IndexError:
            work = new_workspace(self.chain.n, LANES)
        lane_kernel.solve_targets(
            self.model, self.table, work, X.reshape(-1), q0.reshape(-1), mode, key, q.reshape(-1), report.reshape(-1)
        )
        self._lane_pool.append(work)

    def solve_from_starts(self, X: Array, starts: Array) -> tuple[Array, Any, Any]:
        """Make one attempt from each start (K, nq), for one target (4, 4) or one target each (K, 4, 4).

        Returns:
            q (K, nq), whether it is a solution (K,), iterations (K,).
        """
        starts = np.ascontiguousarray(starts, dtype=np.float64)
        targets = np.array(np.broadcast_to(X, (len(starts), 4, 4)), dtype=np.float64, order="C")
        q, reports = np.empty_like(starts), ChainReports.allocate(len(starts))
        self.solve_rows(targets, starts, SINGLE_ATTEMPT, 0.0, q, reports.numbers)
        return q, reports.is_solved, reports.iterations
