"""Options of methods, checked when a method is made: numbers that are numbers, within what makes sense."""

from __future__ import annotations

import math

from mechanik.errors import LimitsError, WrongKind
from mechanik.mechanism.door import as_number
from mechanik.solvers.method import Method


def above_zero(method: Method, *names: str) -> None:
    """Infinity is fine: it stands for no limit."""
    for name in names:
        if not _number(method, name) > 0.0:
            raise LimitsError(f"{name} must be above 0, not {getattr(method, name)!r}")


def not_below_zero(method: Method, *names: str) -> None:
    for name in names:
        if not _number(method, name) >= 0.0:
            raise LimitsError(f"{name} cannot be below 0, but is {getattr(method, name)!r}")


def finite(method: Method, *names: str) -> None:
    for name in names:
        if not math.isfinite(_number(method, name)):
            raise LimitsError(f"{name} must be finite, not {getattr(method, name)!r}")


def up_to_one(method: Method, *names: str) -> None:
    for name in names:
        if not _number(method, name) <= 1.0:
            raise LimitsError(f"{name} is a share from 0 to 1, not {getattr(method, name)!r}")


def yes_or_no(method: Method, *names: str) -> None:
    for name in names:
        if not isinstance(getattr(method, name), bool):
            raise WrongKind(f"{name} is True or False, not {getattr(method, name)!r}")


def _number(method: Method, name: str) -> float:
    value = getattr(method, name)
    if isinstance(value, str | bool):
        raise LimitsError(f"{name} must be a number, not {value!r}")
    return as_number(value, name, infinite=True)
