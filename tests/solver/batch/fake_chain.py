"""A test double of the chain search: its results are sums of its input, row by row."""

from __future__ import annotations

import time

import numpy as np

from mechanik.kernels.chain_layout import BAD_INPUT, SOLVED
from mechanik.spatial import is_pose


class FakeChain:
    """q is the position and the key over and over, plus where the row started.

    Args:
        pause: s, for each chunk.
    """

    def __init__(self, pause: float = 0.0) -> None:
        self.pause, self.rows = pause, 0

    def solve_rows(self, X, q0, mode, key, q, report) -> None:
        for array in (X, q0, q, report):
            assert array.dtype == np.float64
            assert array.flags.c_contiguous
            assert array.flags.writeable
        time.sleep(self.pause)
        numbers = np.concatenate([X[:, :3, 3], np.full((len(X), 1), key % 1000)], axis=1)
        good = is_pose(X, 1e-6)
        report[:] = 0.0
        report[:, 0] = np.where(good, SOLVED, BAD_INPUT)
        report[:, 2:5] = np.where(good[:, None], X[:, 0, :3], 0.0)
        q[:] = np.where(good[:, None], np.tile(numbers, (1, 3))[:, : q.shape[1]] + q0, q0)
        self.rows += len(X)
