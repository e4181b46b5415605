"""Whether a tracker can start somewhere: inside limits, loops shut, and able to stop."""

from __future__ import annotations

import math

import numpy as np

from mechanik.errors import LimitsError, StructureError
from mechanik.mechanism import Mechanism
from mechanik.objectives.closures import closure_relations
from mechanik.objectives.evaluate import evaluate
from mechanik.objectives.laws import law_relations
from mechanik.spatial.array import Array

INSIDE = 1e-9
"""How far a value may lie outside its limits, as results of solvers do; it is brought inside."""


def stopping_distance(v: float, acceleration: float, dt: float) -> float:
    """How far something that moves at v goes on if it slows down in each of the next steps as much as it can."""
    if not math.isfinite(acceleration):
        return 0.0
    n = math.ceil(v / (acceleration * dt)) - 1
    return dt * (n * v - acceleration * dt * n * (n + 1) / 2) if n > 0 else 0.0


def check_start(
    mechanism: Mechanism, q: Array, v: Array, bounds: tuple[Array, Array], rates: tuple[Array, Array], dt: float
) -> None:
    """Refuse a start from which limits cannot be kept; values that are outside by rounding are brought inside.

    Args:
        q, v: (nq,), (nv,) where it starts, and how fast.
        bounds: (nq,) limits.
        rates: (nv,) largest velocities and accelerations.
    """
    space = mechanism.space
    for k, name in enumerate(space.q_names):
        low, high = float(bounds[0][k]), float(bounds[1][k])
        if not low - INSIDE <= q[k] <= high + INSIDE:
            raise LimitsError(
                f"{name!r} starts at {q[k]:.6g}, outside its limits {low:.6g} and {high:.6g}; start inside, or give "
                "other limits"
            )
    q[:] = np.clip(q, bounds[0], bounds[1])
    for k, name in enumerate(space.v_names):
        if abs(v[k]) > rates[0][k]:
            raise LimitsError(f"{name!r} starts at {v[k]:.6g} per second and may do {rates[0][k]:.6g} at most")
    for k, i in zip(space.scalars_q.tolist(), space.scalars_v.tolist(), strict=True):
        way = stopping_distance(abs(float(v[i])), float(rates[1][i]), dt)
        room = float(bounds[1][k] - q[k] if v[i] > 0 else q[k] - bounds[0][k])
        if v[i] != 0.0 and way > room:
            raise LimitsError(
                f"{space.q_names[k]!r} starts at {v[i]:.6g} per second, needs {way:.4g} to stop, and is {room:.4g} "
                "from its limit"
            )


def check_shut(mechanism: Mechanism, q: Array, tolerance: float) -> None:
    """Refuse a start at which a loop stands open, or a law is not kept."""
    for name, closure in mechanism.closures.items():
        for relation in closure_relations(mechanism, closure):
            off = float(np.abs(evaluate(mechanism, relation, q)[0]).max(initial=0.0))
            if off > tolerance:
                raise StructureError(
                    f"the loop that {name!r} closes stands open by {off:.3g} (m or rad) at the start; shut it first, "
                    "as with mk.solve(mechanism)"
                )
    for name, relation in law_relations(mechanism).items():
        off = float(np.abs(evaluate(mechanism, relation, q)[0]).max(initial=0.0))
        if off > tolerance:
            raise StructureError(f"the law {name!r} is off by {off:.3g} at the start; solve for it first")
