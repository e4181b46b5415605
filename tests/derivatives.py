"""Finite differences along steps of the configuration manifold."""

from __future__ import annotations

import numpy as np


def by_differences(mechanism, function, q, step=1e-5):
    """(m, nv), how function(q) -> (m,) changes with v; central and of fourth order, so good to some 1e-10."""
    columns = []
    for unit in np.eye(mechanism.nv):
        near, far = (
            function(mechanism.integrate(q, k * step * unit)) - function(mechanism.integrate(q, -k * step * unit))
            for k in (1, 2)
        )
        columns.append((8.0 * near - far) / (12.0 * step))
    return np.array(columns).reshape(mechanism.nv, len(function(q))).T
