"""The bounded minimum of a quadratic form satisfies the Karush-Kuhn-Tucker conditions."""

import os
import subprocess
import sys
from pathlib import Path

KKT_CHECK = """
import numpy as np
from mechanik.kernels.tracking.level_qp import factor_cholesky, minimize_within_bounds, solve_cholesky
from mechanik.kernels.tracking.tracking_layout import TrackingTables

tables_by_size = {}
for d in range(8):
    tables_by_size[d] = TrackingTables.allocate(column_count=d, row_count=0, stage_count=0, pair_count=0)
    tables_by_size[d].floats[:] = np.nan

rng = np.random.default_rng(0)
feasible = infeasible = active = 0
for case in range(300):
    d, k = int(rng.integers(1, 8)), int(rng.integers(1, 14))
    A = rng.standard_normal((int(rng.integers(1, 9)), d))
    H, g = A.T @ A + 10.0 ** rng.uniform(-6, 0) * np.eye(d), 3.0 * rng.standard_normal(d)
    C = rng.standard_normal((k, d))
    middle = C @ rng.standard_normal(d) if case % 3 else 2.0 * rng.standard_normal(k)
    half = rng.uniform(0.0, 1.0, k)
    low, high = middle - half, middle + half
    L = np.zeros((d, d))
    assert factor_cholesky(H, L, d)
    y = -g
    solve_cholesky(L, y, d)
    if not minimize_within_bounds(tables_by_size[d], L, y, C, low, high, k, d):
        from scipy.optimize import linprog
        result = linprog(np.zeros(d), A_ub=np.vstack([C, -C]), b_ub=np.concatenate([high, -low]), bounds=(None, None))
        assert result.status == 2, case
        infeasible += 1
        continue
    feasible += 1
    value = C @ y
    assert (value > low - 1e-8).all() and (value < high + 1e-8).all(), case
    gradient = H @ y + g  # has to be a nonnegative combination of the normals of the active bounds
    upper, lower = np.abs(value - high) < 1e-7, np.abs(value - low) < 1e-7
    normals = np.vstack([-C[upper], C[lower]])
    active += len(normals) > 0
    from scipy.optimize import nnls
    rest = nnls(normals.T, gradient)[1] if len(normals) else np.linalg.norm(gradient)
    assert rest < 1e-6 * (1.0 + np.linalg.norm(g)), (case, rest)
assert min(feasible, infeasible, active) > 30, (feasible, infeasible, active)
print("ok")
"""


def test_bounded_minimum_satisfies_the_KKT_conditions_and_infeasibility_is_detected():
    root = Path(__file__).parents[3] / "src"
    environment = {**os.environ, "MECHANIK_KERNELS": "plain", "PYTHONPATH": str(root), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", KKT_CHECK], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "ok", done.stderr[-2000:]
