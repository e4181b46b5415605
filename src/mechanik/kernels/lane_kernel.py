"""The lane kernel: inverse kinematics of a serial chain for many targets, eight at a time."""

from __future__ import annotations

from .chain_restarts import search_targets
from .compiler import kernel
from .vector import eight_doubles


@kernel("void(f8[::1], f4[::1], f8[::1], f8[::1], f8[::1], i8, f8, f8[::1], f8[::1])")
def solve_targets(model, table, work, X, q0, mode, key, q, report):
    """Solve for M targets X (M x 16) from q0 (M x nq) into q (M x nq) and report (M x REPORT_FLOATS), all flat.

    `mode` and `key` are as in `chain_kernel.solve_target`; `work` is a workspace with eight lanes.
    """
    search_targets(eight_doubles(0.0), model, table, work, work, X, q0, mode, key, q, report)
