"""The chain kernel: one target at a time, for a serial chain with one pose-like goal."""

from __future__ import annotations

import numpy as np

from .chain_layout import *
from .chain_search import search_rows
from .compiler import kernel
from .seed_table import fill_table


@kernel("void(f8[::1], f8[::1], f8[::1], f4[::1])")
def build_table(model, ws, q, table):
    """The seed table of a chain; joints that are held stand as in q, (columns,)."""
    fill_table(model, ws, q, table)


@kernel("i8(f8[::1], f8[:, ::1], f8[::1], i8, f8, f8[::1])")
def solve_one(work, X, q0, mode, key, q):
    """One target X (4, 4) from q0 (nq,) into q; how it went is in the last REPORT numbers of the workspace.

    Args:
        work: model, seed table and workspace in one, since every array costs a call from Python 0.05 us.
    Returns:
        Attempts * 2^32 + 2 * iterations + whether the start was outside its limits; or -1: not solved, -2: no target.
    """
    nq = int(work[N_Q])
    if X.shape[0] != 4 or X.shape[1] != 4 or len(q0) != nq or len(q) != nq:
        return -2
    table_at = int(work[MODEL_SIZE])
    work_at = table_at + int(work[TABLE_SIZE])
    model, ws, report = work[:table_at], work[work_at:], work[len(work) - REPORT :]
    table = work[table_at:work_at].view(np.float32)
    search_rows(0.0, model, table, ws, ws, X.reshape(16), q0, mode, key, q, report)
    if report[0] != SOLVED:
        return -1 if report[0] == NOT_SOLVED else -2
    return (int(report[1]) << 32) + 2 * int(report[2]) + int(report[5])
