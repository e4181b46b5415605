"""Limits of velocity, acceleration and jerk along a path, as one number for each freedom."""

from __future__ import annotations

import numpy as np

from mechanik.errors import LimitsError
from mechanik.mechanism import Mechanism
from mechanik.spatial.array import Array
from mechanik.tracking.rates import Rates
from mechanik.tracking.rates import as_rates as as_given

__all__ = ["Rates", "as_rates"]


def as_rates(mechanism: Mechanism, given: Rates | None, what: str, moves: Array) -> Array:
    """(nv,) above zero, finite wherever something moves.

    Args:
        given: as for a tracker. What is not named, or all if it is None, is taken from what the mechanism's file says,
            if it speaks of `what`.
        what: "velocity", "acceleration" or "jerk".
        moves: (nv,) nonzero for the freedoms that need one.
    """
    names = mechanism.space.v_names
    rates = as_given(mechanism, given, what, from_file=True)
    missing = [names[k] for k in np.flatnonzero(np.isinf(rates) & (moves != 0.0))]
    if missing:
        listed = ", ".join(repr(one) for one in missing[:4]) + (", ..." if len(missing) > 4 else "")
        verb = "moves" if len(missing) == 1 else "move"
        raise LimitsError(
            f"no limit of {what} is known for {listed}, which {verb} along the path: give {what}= as a number or by "
            "joint"
        )
    return rates
