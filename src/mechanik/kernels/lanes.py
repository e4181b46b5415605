"""The lane kernel: the chain kernel over eight targets at a time."""

from __future__ import annotations

from .chain_search import search_rows
from .compiler import kernel
from .vector import eight_doubles


@kernel("void(f8[::1], f4[::1], f8[::1], f8[::1], f8[::1], i8, f8, f8[::1], f8[::1])")
def solve_rows(model, table, ws, X, q0, mode, key, q, report):
    """Many targets X (M x 16) from q0 (M x nq) into q (M x nq) and report (M x REPORT), all of them flat."""
    search_rows(eight_doubles(0.0), model, table, ws, ws, X, q0, mode, key, q, report)
