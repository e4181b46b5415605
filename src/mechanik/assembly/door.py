"""What is asked of an assembly, checked where it enters."""

from __future__ import annotations

from collections.abc import Mapping

from mechanik.errors import ShapeError, WrongKind
from mechanik.mechanism import Joint, Mechanism
from mechanik.objectives.aims import as_values
from mechanik.spatial.array import Array, ArrayLike

Given = Mapping[str | Joint, ArrayLike] | Mapping[str, ArrayLike]
"""Values by the names of joints, or by the joints themselves."""


def as_drive(mechanism: Mechanism, drive: Given | None) -> dict[str, Array]:
    """By name, the values (n,) that drives should have."""
    if drive is None:
        return {}
    return as_values(named(mechanism, drive) if isinstance(drive, Mapping) else drive, "drive")


def named(mechanism: Mechanism, given: Given) -> dict[str, ArrayLike]:
    """What is given by joint, by the names of the joints; where no number is given at all, that is said."""
    found: dict[str, ArrayLike] = {}
    for key, value in given.items():
        name = mechanism.name_of(key) if isinstance(key, Joint) else str(key)
        if value is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise ShapeError(f"drive at {name!r}: None is given where a number is missing; leave it out, or say which")
        if name in found:
            raise ShapeError(f"drive at {name!r} is given twice: by its name, and as the joint itself")
        found[name] = value
    return found


def as_weights(weights: Mapping[str, float] | None) -> Mapping[str, float]:
    if weights is not None and not isinstance(weights, Mapping):
        raise WrongKind(f"weights are given by name, as in {{'elbow': 2}}, not as {weights!r}")
    return weights or {}
