"""What compiled searches ask whether a configuration is free: the tables of a collider, the likeliest clash first."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik.collision import Collider
from mechanik.collision.tables import Tables, kernel
from mechanik.kernels.distance import watch_layout as at
from mechanik.spatial.array import Array

SAMPLES = 64
"""Configurations, from which it is told which guard clashes how often."""


def scene_of(collider: Collider, clearance: float, lower: Array, upper: Array) -> tuple[Any, ...]:
    """`SCENE` of the kernels; configurations are expected between lower and upper (nq,)."""
    tables = collider._fresh().tables
    guards = _ordered(tables, lower.tobytes(), upper.tobytes())
    return (*tables.arrays[:7], guards, tables.partners, at.IS_FREE, clearance)


@lru_cache(maxsize=8)
def _ordered(tables: Tables, lower: bytes, upper: bytes) -> npt.NDArray[np.int64]:
    """The guards (g, 5), those first that clash most often: a look ends at the first clash."""
    low, high = np.frombuffer(lower), np.frombuffer(upper)
    q = low + (high - low) * np.random.default_rng(0).random((SAMPLES, len(low)))
    out, hits = np.empty((SAMPLES, 1)), np.zeros(len(tables.guards))
    for k in range(len(hits)):
        one = tables.guards[k : k + 1]
        kernel.watch(
            *tables.arrays[:7], one, tables.partners, q, at.IS_FREE, 0.0, out, np.empty((0, 0, 0)), np.zeros(1, int)
        )
        hits[k] = np.count_nonzero(out == 0.0)
    return tables.guards[np.argsort(-hits, kind="stable")]
