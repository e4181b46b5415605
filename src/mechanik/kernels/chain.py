"""The chain kernel: one target at a time, for a serial chain with one pose-like goal."""

from __future__ import annotations

from mechanik.kernels.chain_layout import *
from mechanik.kernels.chain_search import search_rows
from mechanik.kernels.compiler import kernel
from mechanik.kernels.seed_table import fill_table


@kernel("void(f8[::1], f8[::1], f8[::1], f4[::1])")
def build_table(model, ws, q, table):
    """The seed table of a chain; joints that are held stand as in q, (columns,)."""
    fill_table(model, ws, q, table)


@kernel("i8(f8[::1], f4[::1], f8[::1], f8[:, ::1], f8[::1], i8, f8, f8[::1])")
def solve_one(model, table, ws, X, q0, mode, key, q):
    """One target X (4, 4) from q0 into q; how it went is in the last REPORT numbers of the workspace.

    Returns:
        Attempts * 2^32 + 2 * iterations + whether the start was outside its limits; or -1: not solved, -2: no target.
    """
    report = ws[len(ws) - REPORT :]
    search_rows(
        0.0, model, table, ws, ws, X.reshape(1, 4, 4), q0.reshape(1, len(q0)), mode, key, q.reshape(1, len(q)),
        report.reshape(1, REPORT),
    )  # fmt: skip
    if report[0] != SOLVED:
        return -1 if report[0] == NOT_SOLVED else -2
    return (int(report[1]) << 32) + 2 * int(report[2]) + int(report[5])
