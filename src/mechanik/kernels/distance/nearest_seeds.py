"""Nearest neighbours of targets in a seed table, by Euclidean distance of feature vectors."""

from __future__ import annotations

import numpy as np

from ..compiler import kernel


@kernel("void(f8[:, ::1], f8[:, ::1], f8[::1], i8[:, ::1])")
def nearest_seeds(table, targets, distances, out):
    """Write the indices of the nearest entries of table (features, E) for wanted (M, features) into out (M, count).

    The nearest comes first; of equal distances, the first entry. The values of a feature are contiguous over the
    entries, so that the sums are vectorized.

    Args:
        distances: (E + count,) work array.
    """
    features, entries = table.shape
    count = out.shape[1]
    best = distances[entries:]
    for m in range(targets.shape[0]):
        for e in range(entries):
            distances[e] = 0.0
        for f in range(features):
            x = targets[m, f]
            for e in range(entries):
                step = table[f, e] - x
                distances[e] += step * step
        found_count = 0
        last = np.inf
        for e in range(entries):
            if distances[e] >= last and found_count == count:
                continue
            k = found_count if found_count < count else count - 1
            while k > 0 and best[k - 1] > distances[e]:
                best[k], out[m, k] = best[k - 1], out[m, k - 1]
                k -= 1
            best[k], out[m, k] = distances[e], e
            found_count = min(found_count + 1, count)
            last = best[found_count - 1]
