"""Laws as linear rows at q: how far each is from being kept, and how v changes that."""

from __future__ import annotations

import numpy as np

from mechanik.mechanism.law import Law
from mechanik.mechanism.mechanism import Mechanism
from mechanik.spatial.array import Array


def law_row(mechanism: Mechanism, law: Law, q: Array) -> tuple[float, Array]:
    """How far a law is off at q (nq,), and how fast that changes (nv,); in shares of its scale."""
    factors, constant = law.resolved()
    slots, scale = mechanism.kinematics.slots, law.scale
    total, rates = -constant, np.zeros(mechanism.nv)
    for (joint, dof), some in factors.items():
        value, v = float(q[slots[joint].q[dof]]), slots[joint].v[dof]
        for power, factor in enumerate(some.tolist(), start=1):
            total += factor * value**power
            rates[v] += factor * power * value ** (power - 1)
    return total / scale, rates / scale


def law_jacobian(mechanism: Mechanism, q: Array) -> Array:
    """Of all laws: (laws, nv)."""
    rows = [law_row(mechanism, law, q)[1] for law in mechanism.laws.values()]
    return np.array(rows, dtype=np.float64).reshape(len(rows), mechanism.nv)
