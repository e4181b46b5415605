"""Try an installed wheel with prebuilt kernels: import, one solve, a closed loop, a batch, on every level.

Run as a script by the Python that it is installed for, with nothing but Mechanik and what it depends on.
"""

from __future__ import annotations

import os
import sys

for name in ("numba", "llvmlite"):
    sys.modules[name] = None  # type: ignore[assignment]  # as if they were not installed
os.environ["MECHANIK_KERNELS"] = "prebuilt"

import numpy as np  # noqa: E402

import mechanik as mk  # noqa: E402
from mechanik import _kernels  # noqa: E402  # pyright: ignore


def try_level(level: str) -> None:
    os.environ["MECHANIK_KERNELS_LEVEL"] = level
    mk.use_kernels("prebuilt")
    assert {state.tier for state in mk.tiers.kernel_states()} == {mk.tiers.Tier.PREBUILT}

    arm = mk.gallery.panda()
    target = arm.pose("panda_link8", arm.q + 0.1)
    solver = mk.Solver(arm, mk.PoseGoal("panda_link8", target))
    solution = solver.solve(target, arm.q)
    assert solution.success
    np.testing.assert_allclose(arm.pose("panda_link8", solution.q), target, atol=1e-5)

    four_bar = mk.gallery.four_bar()
    assert np.isfinite(four_bar.q).all()

    rng = np.random.default_rng(0)
    targets = np.array([arm.pose("panda_link8", arm.q + 0.2 * rng.standard_normal(arm.nq)) for _ in range(200)])
    batch = solver.solve_batch(targets)
    assert batch.success.mean() > 0.95, batch.success.mean()
    sys.stdout.write(f"{level}: {batch.success.mean():.3f} of a batch solved\n")


for available in _kernels.levels:
    try_level(available)
sys.stdout.write(f"numpy {np.__version__}, {sys.version.split()[0]}: best level {_kernels.level}\n")
