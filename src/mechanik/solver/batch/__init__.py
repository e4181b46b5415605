"""Batches of many targets: a single serial chain is solved in SIMD lanes, all other problems by solvers in threads.

The input of a batch is arrays of targets and starts, and a backend that solves rows. The output is arrays
(`BatchResult`), in memory or in files. This package imports `search` and the layers below it; `Solver.solve_batch`
passes the backend.
"""

from mechanik.solver.batch.batch_backends import (
    CollisionFreeLaneBackend,
    LaneBackend,
    SequentialBackend,
    supports_lanes,
)
from mechanik.solver.batch.batch_result import BatchResult, Interrupted
from mechanik.solver.batch.batch_rows import BatchBackend
from mechanik.solver.batch.batch_run import BatchRequest, Progress, run_batch

__all__ = [
    "BatchBackend",
    "BatchRequest",
    "BatchResult",
    "CollisionFreeLaneBackend",
    "Interrupted",
    "LaneBackend",
    "Progress",
    "SequentialBackend",
    "run_batch",
    "supports_lanes",
]
