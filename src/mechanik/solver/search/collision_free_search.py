"""Search for collision-free solutions of a chain, for targets whose first solution collides.

A table contains collision-free configurations, if any are found. Descents start from the entries whose end pose is
nearest to the target.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mechanik.kernels.chain_layout import SINGLE_ATTEMPT
from mechanik.model import Mechanism
from mechanik.problem.chain_tables import ChainReports, residual_weights
from mechanik.solver.collision_constraint import CollisionConstraint, Mask
from mechanik.solver.search.chain_search import ChainSearch
from mechanik.solver.start_configurations import halton_configurations
from mechanik.spatial import inverse
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

nearest_seeds_kernel = kernel_module("distance.nearest_seeds")
RowIndices = npt.NDArray[np.int64]

FREE_TABLE_SIZE, MAX_SAMPLES_PER_ENTRY = 4096, 8
"""Maximum number of configurations in the table, and ratio of the maximum number of samples to this number."""
STARTS_PER_ROUND = (4, 12, 48, 192)
"""Number of starts from the table per target in each round; the rounds end when a solution is collision-free. Tuned on
a Panda among 50 obstacles so dense that 1 configuration in 12 is free: 1 target in 500 stays unsolved. More starts find
more solutions and take longer.
"""
TARGETS_PER_BLOCK = 512
"""Number of targets per block, which limits the memory to a few MB."""


@dataclass(frozen=True, slots=True, eq=False)
class CandidateSolutions:
    """Candidate solutions of M targets.

    Attributes:
        q: (M, nq) configurations.
        exists: (M,) whether there is a collision-free solution, or any solution in the last round.
        is_free: (M,) whether the solution is collision-free. If it is not but `exists`, `q` is the solution of the last
            round with the smallest penetration.
        errors: (M, 2) position error (m) and rotation error (rad).
        iterations: (M,) number of iterations of all descents.
    """

    q: Array
    exists: Mask
    is_free: Mask
    errors: Array
    iterations: npt.NDArray[np.int64]

    @staticmethod
    def empty(q: Array) -> CandidateSolutions:
        """Return candidates at configurations `q` (M, nq), none of which is a solution."""
        M = len(q)
        mask = np.zeros(M, dtype=np.bool_)
        return CandidateSolutions(q.copy(), mask, mask.copy(), np.full((M, 2), np.nan), np.zeros(M, dtype=np.int64))

    def view(self, rows: slice) -> CandidateSolutions:
        """Return the candidates of the targets `rows` as views into the arrays."""
        return CandidateSolutions(
            self.q[rows], self.exists[rows], self.is_free[rows], self.errors[rows], self.iterations[rows]
        )


class CollisionFreeSearch:
    """Search from a table of collision-free configurations: descents start where the end pose is nearest to the target.

    The result for a target does not depend on other targets of the same call.
    """

    def __init__(
        self, mechanism: Mechanism, chain_search: ChainSearch, constraint: CollisionConstraint, fixed_q: Array
    ) -> None:
        """Prepare the search; the table is built at the first use.

        Args:
            fixed_q: (nq,) values of the joints outside the chain and of its locked joints.
        """
        self._mechanism, self._chain_search, self._constraint = mechanism, chain_search, constraint
        self._is_movable = np.zeros(mechanism.nq, dtype=np.bool_)
        self._is_movable[chain_search.columns[~chain_search.chain.locked_columns]] = True
        self._fixed_q = fixed_q
        self._version, self._build_lock = -1, threading.Lock()

    def find_free(
        self, X: Array, base: Array, near: Array | None = None, max_starts: int = sum(STARTS_PER_ROUND)
    ) -> CandidateSolutions:
        """Find collision-free solutions for many targets.

        Args:
            X: (M, 4, 4) targets of the chain.
            base: (M, nq) values of all joints that the chain does not move.
            near: (M, nq) reference: if a round gives several collision-free solutions, the one nearest to it is
                returned; None for the first one.
            max_starts: maximum number of starts per target.
        """
        self._refresh_table()
        candidates = CandidateSolutions.empty(base)
        for k in range(0, len(X), TARGETS_PER_BLOCK):
            rows = slice(k, k + TARGETS_PER_BLOCK)
            self._search_block(
                X[rows], base[rows], None if near is None else near[rows], max_starts, candidates.view(rows)
            )
        return candidates

    def starts_near(self, X: Array, base: Array, count: int) -> Array:
        """Return up to `count` entries of the table (n, nq), sorted by the distance of their end pose to X (4, 4).

        They are collision-free if `base` has the values of `fixed_q`, unless no sample of the table was collision-free.

        Args:
            base: (nq,) values of all joints that the chain does not move.
        """
        self._refresh_table()
        return np.where(self._is_movable, self._q[self._nearest_entries(X[None], count)[0]], base)

    # ---- private ----------------------------------------------------------------------------

    def _search_block(
        self, X: Array, base: Array, near: Array | None, max_starts: int, candidates: CandidateSolutions
    ) -> None:
        start_count, remaining_rows, max_starts = 0, np.arange(len(X)), min(max_starts, len(self._q))
        for count in STARTS_PER_ROUND:
            entries = self._nearest_entries(X[remaining_rows], min(start_count + count, max_starts))[:, start_count:]
            k = entries.shape[1]
            start_count += k
            if not entries.size:
                break
            starts = np.where(self._is_movable, self._q[entries], base[remaining_rows, None]).reshape(
                len(remaining_rows) * k, -1
            )
            q, reports = np.empty_like(starts), ChainReports.allocate(len(starts))
            self._chain_search.solve_rows(
                np.repeat(X[remaining_rows], k, axis=0), starts, SINGLE_ATTEMPT, 0.0, q, reports.numbers
            )
            is_solved, errors = reports.is_solved, reports.errors
            is_free = is_solved.copy()
            is_free[is_solved] = self._constraint.are_free(q[is_solved])
            candidates.iterations[remaining_rows] += reports.iterations.reshape(-1, k).sum(axis=1)
            if near is None:  # the first solution has the best rank
                rank = np.tile(np.arange(k, dtype=np.float64), len(remaining_rows))
            else:
                rank = ((q - near[remaining_rows].repeat(k, axis=0)) ** 2).sum(axis=1)
            has_free = self._store_best(candidates, remaining_rows, q, errors, np.where(is_free, rank, np.inf))
            candidates.is_free[remaining_rows[has_free]] = True
            remaining_rows = remaining_rows[~has_free]
            is_last_round = start_count == max_starts or count == STARTS_PER_ROUND[-1]
            if len(remaining_rows) and is_last_round:  # store the solutions with the smallest penetration
                is_remaining = ~has_free.repeat(k)  # descents to targets without a free solution
                is_colliding = is_solved & is_remaining
                depth = np.full(len(q), np.inf)
                depth[is_colliding] = -self._constraint.distances(q[is_colliding])
                self._store_best(candidates, remaining_rows, q[is_remaining], errors[is_remaining], depth[is_remaining])

    @staticmethod
    def _store_best(candidates: CandidateSolutions, rows: RowIndices, q: Array, errors: Array, rank: Array) -> Mask:
        """Store for each row the solution of the lowest rank; return the mask of rows with a finite rank."""
        k = len(q) // len(rows)
        best_indices = np.argmin(rank.reshape(-1, k), axis=1) + k * np.arange(len(rows))
        has_solution = np.asarray(rank[best_indices] < np.inf)
        best_indices, rows = best_indices[has_solution], rows[has_solution]
        candidates.q[rows], candidates.errors[rows], candidates.exists[rows] = (
            q[best_indices],
            errors[best_indices],
            True,
        )
        return has_solution

    def _refresh_table(self) -> None:
        """Build the table at the first use, and again if obstacles have moved."""
        with self._build_lock:
            version = self._constraint.collider.obstacle_version
            if version != self._version:
                self._build_table()
                self._version = version

    def _build_table(self) -> None:
        space = self._mechanism.space
        lower, upper = space.lower.copy(), space.upper.copy()
        chain = self._chain_search.chain
        lower[chain.columns], upper[chain.columns] = chain.lower, chain.upper
        space = replace(space, lower=lower, upper=upper)
        free_blocks: list[Array] = []
        for block in range(MAX_SAMPLES_PER_ENTRY):
            q = np.where(
                self._is_movable, halton_configurations(space, FREE_TABLE_SIZE, block * FREE_TABLE_SIZE), self._fixed_q
            )
            free_blocks.append(q[self._constraint.are_free(q)])
            if sum(map(len, free_blocks)) >= FREE_TABLE_SIZE:
                break
        q = np.concatenate(free_blocks)[:FREE_TABLE_SIZE]
        if not len(q):  # no sample is collision-free: use the first samples
            q = np.where(self._is_movable, halton_configurations(space, FREE_TABLE_SIZE), self._fixed_q)
        self._q, self._features = q, np.ascontiguousarray(self._features_of(self._end_poses(q)).T)

    def _end_poses(self, q: Array) -> Array:
        """Return the targets (K, 4, 4) that configurations (K, nq) reach."""
        chain, mechanism = self._chain_search.chain, self._mechanism
        relation = chain.relations[0]
        X = mechanism.pose(relation.b or "", q) @ relation.X_b @ chain.target_rotations[0].T
        return X if relation.a is None else inverse(mechanism.pose(relation.a, q)) @ X

    def _features_of(self, X: Array) -> Array:
        """Return features (K, 12) of poses; their Euclidean distances approximate norms of weighted residuals."""
        length_weight, angle_weight = residual_weights(self._chain_search.model)
        positions, rotations = X[:, :3, 3] * length_weight, X[:, :3, :3].reshape(-1, 9) * (angle_weight / np.sqrt(2.0))
        return np.concatenate([positions, rotations], axis=1)

    def _nearest_entries(self, X: Array, count: int) -> RowIndices:
        """Return the table entries (M, count) nearest to targets X (M, 4, 4), the nearest first."""
        entries = np.empty((len(X), min(count, len(self._q))), dtype=np.int64)
        nearest_seeds_kernel.nearest_seeds(
            self._features, self._features_of(X), np.empty(len(self._q) + entries.shape[1]), entries
        )
        return entries
