"""Nearest neighbours of targets in a seed table, by Euclidean distance of feature vectors."""

from __future__ import annotations

import numpy as np

from ..compiler import kernel


@kernel("void(f8[:, ::1], f8[:, ::1], f8[::1], i8[:, ::1])")
def nearest_seeds(table, targets, distances, out):
    """Find the entries of a seed table that are nearest to each target.

    The values of a feature are contiguous over the entries, so that the sums are vectorized.

    Args:
        table: (features, E) feature vectors of the entries.
        targets: (M, features) feature vectors of the targets.
        distances: (E + count,) work array.
        out: (M, count) written: indices of the nearest entries, nearest first; of equal distances, the lower index
            first.
    """
    feature_count, entry_count = table.shape
    count = out.shape[1]
    nearest_distances = distances[entry_count:]
    for target in range(targets.shape[0]):
        for entry in range(entry_count):
            distances[entry] = 0.0
        for feature in range(feature_count):
            value = targets[target, feature]
            for entry in range(entry_count):
                difference = table[feature, entry] - value
                distances[entry] += difference * difference
        found_count = 0
        largest_distance = np.inf
        for entry in range(entry_count):
            if distances[entry] >= largest_distance and found_count == count:
                continue
            k = found_count if found_count < count else count - 1
            while k > 0 and nearest_distances[k - 1] > distances[entry]:
                nearest_distances[k], out[target, k] = nearest_distances[k - 1], out[target, k - 1]
                k -= 1
            nearest_distances[k], out[target, k] = distances[entry], entry
            found_count = min(found_count + 1, count)
            largest_distance = nearest_distances[found_count - 1]
