"""Choice of the backend of a batch: lanes for a serial chain with a single pose-like goal, else one solve per row."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechanik.objectives.pose_goals import LinkGoal
from mechanik.solver.avoidance import CollisionAvoidance
from mechanik.solver.backends.backend import Partial
from mechanik.solver.batch.batch_backends import (
    CollisionFreeLaneBackend,
    LaneBackend,
    SequentialBackend,
    supports_lanes,
)
from mechanik.solver.batch.batch_rows import BatchBackend
from mechanik.solver.pipeline import Pipeline
from mechanik.solver.request import SolveRequest
from mechanik.solver.solution import Solution
from mechanik.spatial.array import Array, ArrayLike


def choose_batch_backend(
    pipeline: Pipeline, avoidance: CollisionAvoidance | None, q0: ArrayLike | None
) -> BatchBackend:
    """Choose the backend of a batch.

    Args:
        pipeline: the pipeline of the solver.
        avoidance: its collision avoidance, or None.
        q0: start configuration (nq,) for all rows, (N, nq), or None.
    """
    backends = pipeline.backends()
    compiled, chain = backends.compiled, backends.chain
    mechanism, objectives = compiled.mechanism, compiled.objectives

    def solve_row(targets: Any, q0: Array | None, rng: np.random.Generator | None, partial: Partial | None) -> Solution:
        if rng is None and partial is None and not pipeline.definition.moves_joints:
            return pipeline.solve_call(targets, q0, {})
        return pipeline.solve(SolveRequest(targets=targets, q0=q0, rng=rng), partial, writes_joints=False)

    def solve_free_row(
        targets: Any, q0: Array | None, rng: np.random.Generator | None, partial: Partial | None
    ) -> Solution:
        assert avoidance is not None
        return avoidance.solve(SolveRequest(targets=targets, q0=q0, rng=rng))

    def solve_constrained_row(
        targets: Any, q0: Array | None, rng: np.random.Generator | None, partial: Partial | None
    ) -> Solution:
        assert avoidance is not None
        assert q0 is not None
        return avoidance.solve_constrained(targets, q0, rng)

    sequential = SequentialBackend(mechanism, objectives, solve_row if avoidance is None else solve_free_row)
    goal = next(iter(objectives), None)  # no goal if only loops are to be closed
    if chain is None or not isinstance(goal, LinkGoal) or not supports_lanes(mechanism, goal):
        return sequential
    default_q = chain.default_start()
    if chain.search.has_fixed_joints:  # the seed table depends on their values
        if q0 is not None and np.ndim(q0) == 2:
            return sequential
        default_q = default_q if q0 is None else mechanism._single_q(q0)
    elif avoidance is not None and q0 is not None and chain.mid_configuration is None:
        # where the joints outside the chain are decides which configurations are free
        if np.ndim(q0) == 2:
            return sequential
        default_q = mechanism._single_q(q0)
    search, default_q = chain.search_at(default_q), np.array(default_q)
    lanes = LaneBackend(search, SequentialBackend(mechanism, objectives, solve_row), goal, default_q)
    if avoidance is None:
        return lanes
    constrained = SequentialBackend(mechanism, objectives, solve_constrained_row)
    free_search = avoidance.free_search(default_q, search)
    return CollisionFreeLaneBackend(lanes, avoidance.constraint, free_search, constrained)
