"""Limits of velocity, acceleration and jerk, as people give them, as one number for each freedom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from mechanik.errors import LimitsError, ShapeError
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import as_number, as_vector
from mechanik.solvers.freedoms import places
from mechanik.spatial.array import Array, ArrayLike

Rates = float | ArrayLike | Mapping[str, float]


def as_rates(mechanism: Mechanism, given: Rates | None, what: str, moves: Array) -> Array:
    """(nv,) above zero, finite wherever something moves.

    Args:
        given: one number for all freedoms, nv numbers, or numbers by joint or freedom. What is not named, or all if it
            is None, is taken from what the mechanism's file says, if it speaks of `what`.
        what: "velocity", "acceleration" or "jerk".
        moves: (nv,) nonzero for the freedoms that need one.
    """
    space = mechanism.space
    rates = np.full(mechanism.nv, np.inf)
    if given is None or isinstance(given, Mapping):
        for name, rate in {**_from_file(mechanism, what), **(given or {})}.items():
            number = as_number(rate, f"{what} of {name!r}")
            _check(number, f"{what} of {name!r}")
            rates[places(mechanism, name)[1]] = number
    elif np.ndim(cast("Any", given)) == 0:
        number = as_number(given, what)
        _check(number, what)
        rates[:] = number
    else:
        if np.shape(cast("Any", given)) != (mechanism.nv,):
            raise ShapeError(
                f"{what} is one number, {mechanism.nv} numbers (one for each of v), or numbers by joint, as in "
                f"{{{space.v_names[0] if mechanism.nv else 'joint'!r}: 1.0}}; "
                f"not of shape {np.shape(cast('Any', given))}"
            )
        rates[:] = as_vector(given, mechanism.nv, what)
        for name, number in zip(space.v_names, rates, strict=True):
            _check(float(number), f"{what} of {name!r}")
    missing = [space.v_names[k] for k in np.flatnonzero(np.isinf(rates) & (moves != 0.0))]
    if missing:
        names = ", ".join(repr(one) for one in missing[:4]) + (", ..." if len(missing) > 4 else "")
        raise LimitsError(
            f"no limit of {what} is known for {names}, which moves along the path: give {what}= as a number or by joint"
        )
    return rates


def _check(number: float, what: str) -> None:
    if not number > 0.0:
        raise LimitsError(f"{what} must be above 0, not {number:g}")


def _from_file(mechanism: Mechanism, what: str) -> dict[str, float]:
    """What a URDF or SDF said, by joint; zero there means that nobody knew."""
    limits = mechanism.extras.get("limits", {})
    found: dict[str, float] = {}
    if isinstance(limits, Mapping):
        for name, said in cast("Mapping[str, Any]", limits).items():
            rate = cast("Mapping[str, Any]", said).get(what) if isinstance(said, Mapping) else None
            if name in mechanism.joints and isinstance(rate, int | float) and 0.0 < rate < np.inf:
                found[name] = float(rate)
    return found
