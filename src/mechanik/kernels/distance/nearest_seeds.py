"""Nearest neighbours of targets in a seed table, by Euclidean distance of feature vectors."""

from __future__ import annotations

import numpy as np

from ..compiler import kernel


@kernel("void(f8[:, ::1], f8[:, ::1], f8[::1], i8[:, ::1])")
def nearest_seeds(table, wanted, far, out):
    """Write the indices of the nearest entries of table (features, E) for wanted (M, features) into out (M, count).

    The nearest comes first; of equal distances, the first entry. The values of a feature are contiguous over the
    entries, so that the sums are vectorized.

    Args:
        far: (E + count,) work array.
    """
    features, entries = table.shape
    count = out.shape[1]
    best = far[entries:]
    for m in range(wanted.shape[0]):
        for e in range(entries):
            far[e] = 0.0
        for f in range(features):
            x = wanted[m, f]
            for e in range(entries):
                step = table[f, e] - x
                far[e] += step * step
        filled = 0
        last = np.inf
        for e in range(entries):
            if far[e] >= last and filled == count:
                continue
            k = filled if filled < count else count - 1
            while k > 0 and best[k - 1] > far[e]:
                best[k], out[m, k] = best[k - 1], out[m, k - 1]
                k -= 1
            best[k], out[m, k] = far[e], e
            filled = min(filled + 1, count)
            last = best[filled - 1]
