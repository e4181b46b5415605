"""Nearest seeds of targets in a seed table, by the Euclidean distance of feature vectors."""

from __future__ import annotations

import numpy as np

from ..compiler import kernel


@kernel("void(f8[:, ::1], f8[:, ::1], f8[::1], i8[:, ::1])")
def nearest_seeds(table, targets, squared_distances, out):
    """Find the entries of a seed table that are nearest to each target.

    The values of a feature are contiguous over the entries, so that the sums are vectorized.

    Args:
        table: (features, E) feature vectors of the entries.
        targets: (M, features) feature vectors of the targets.
        squared_distances: (E + count,) work array.
        out: (M, count), count <= E, written: indices of the nearest entries, nearest first; of equal distances, the
            lower index first.
    """
    feature_count, entry_count = table.shape
    count = out.shape[1]
    nearest_squares = squared_distances[entry_count:]
    for target in range(targets.shape[0]):
        for entry in range(entry_count):
            squared_distances[entry] = 0.0
        for feature in range(feature_count):
            value = targets[target, feature]
            for entry in range(entry_count):
                difference = table[feature, entry] - value
                squared_distances[entry] += difference * difference
        found_count = 0
        largest_square = np.inf
        for entry in range(entry_count):
            if squared_distances[entry] >= largest_square and found_count == count:
                continue
            k = found_count if found_count < count else count - 1
            while k > 0 and nearest_squares[k - 1] > squared_distances[entry]:
                nearest_squares[k], out[target, k] = nearest_squares[k - 1], out[target, k - 1]
                k -= 1
            nearest_squares[k], out[target, k] = squared_distances[entry], entry
            found_count = min(found_count + 1, count)
            largest_square = nearest_squares[found_count - 1]
