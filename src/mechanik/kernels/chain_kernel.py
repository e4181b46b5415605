"""The chain kernel for one target: inverse kinematics of a serial chain with one pose-like goal; and its seed table."""

from __future__ import annotations

import numpy as np

from .chain_layout import *
from .chain_restarts import fill_table, search_targets
from .compiler import kernel


@kernel("void(f8[::1], f8[::1], f8[::1], f4[::1])", allocates=True)
def build_seed_table(model, workspace, joint_values, table):
    """Write the seed table of a chain; locked joints have the given values.

    Args:
        model: the chain (`chain_layout.py`).
        workspace: a workspace with a single lane.
        joint_values: (columns,), rad or m; only those of locked joints are used.
        table: (`table_size`,), 32-bit floats, written.
    """
    fill_table(model, workspace, joint_values, table)


@kernel("i8(f8[::1], f8[:, ::1], f8[::1], i8, f8, f8[::1])")
def solve_target(work, X, q0, mode, key, q):
    """Solve for one target and write the best configuration to q; the last REPORT_FLOATS of `work` are the report.

    Args:
        work: model, seed table and workspace in a single array, since each array adds 0.05 us to a call from Python.
        X: (4, 4), target pose of the tip, lengths in m (its frame: see `chain_layout.py`).
        q0: (nq,), seed, rad or m; its values of locked joints and of joints outside the chain are copied to q.
        mode: FROM_TABLE, FROM_SEED or SINGLE_ATTEMPT.
        key: number that selects the sequence of random numbers.
        q: (nq,), written.

    Returns:
        attempts * 2^32 + 2 * iterations + (1 if the seed was clamped to the limits); -1 if not solved; -2 for bad
        input.
    """
    nq = int(work[N_Q])
    if X.shape[0] != 4 or X.shape[1] != 4 or len(q0) != nq or len(q) != nq:
        return -2
    table_offset = int(work[MODEL_SIZE])
    workspace_offset = table_offset + int(work[TABLE_SIZE])
    model, workspace, report = work[:table_offset], work[workspace_offset:], work[len(work) - REPORT_FLOATS :]
    table = work[table_offset:workspace_offset].view(np.float32)
    # 0.0 selects a single lane; the workspace is passed twice, see `search_targets`
    search_targets(0.0, model, table, workspace, workspace, X.reshape(16), q0, mode, key, q, report)
    if report[0] != SOLVED:
        return -1 if report[0] == NOT_SOLVED else -2
    return (int(report[1]) << 32) + 2 * int(report[2]) + int(report[5])
