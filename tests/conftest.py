"""Hypothesis: no deadlines, since machines are noisy; the same examples each time where nobody looks on.

Kernels: compiled by Numba unless the environment says otherwise, so that each test runs the same code each time.
"""

from __future__ import annotations

import os

os.environ.setdefault("MECHANIK_KERNELS", "jit")

from hypothesis import settings

settings.register_profile("mechanik", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("mechanik")
