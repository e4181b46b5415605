"""An objective written in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import index
from typing import Any, Unpack

import numpy as np

from mechanik.errors import LimitsError, ObjectiveError, WrongKind
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import as_number, read_only
from mechanik.objectives.objective import Objective, Wish
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial.array import Array, ArrayLike

Function = Callable[[Mechanism, Array], ArrayLike]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Custom(Objective):
    """A function of the configuration shall be zero, or shall lie in a band.

    Its rows are read as angles are: `angle_tolerance` is how far off they may be.

    Args:
        function: (mechanism, q) -> residual (m,), or a number; smooth, and always of the same length.
        jacobian: (mechanism, q) -> (m, nv), its derivative by a step v of `mechanism.integrate`; None: differences,
            for which the function is called 2 nv times.
        rows: m; None: found out by a call at the mechanism's present configuration.
        lower, upper: a band, as a number for all rows or (m,); None and None: zero.
        step: how far the differences reach, m and rad.
    """

    function: Function
    derivative: Function | None
    rows: int | None
    lower: Array | None
    upper: Array | None
    step: float

    def __init__(
        self,
        function: Function,
        jacobian: Function | None = None,
        rows: int | None = None,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        step: float = 1e-5,
        **wish: Unpack[Wish],
    ) -> None:
        Objective.__init__(self, **wish)
        if not callable(function) or not (jacobian is None or callable(jacobian)):
            raise WrongKind(f"{self._called} takes functions of (mechanism, q), not {function!r} and {jacobian!r}")
        size = None if rows is None else _as_size(rows, self._called)
        reach = as_number(step, f"step of {self._called}")
        if reach <= 0.0:
            raise ObjectiveError(f"step of {self._called} must be above zero, not {reach:g}")
        fields = {
            "function": function,
            "derivative": jacobian,
            "rows": size,
            "lower": self._bound(lower, "lower"),
            "upper": self._bound(upper, "upper"),
            "step": reach,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"<{self._called}: {getattr(self.function, '__qualname__', self.function)}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        size = len(self._value(mechanism, mechanism.q, None)) if self.rows is None else self.rows
        lower, upper = self._band(size)
        rows = tuple(range(size))
        return (
            Relation(Kind.FUNCTION, rows, function=_Rows(self, size), lower=lower, upper=upper, weight=self.weight),
        )

    def _value(self, mechanism: Mechanism, q: Array, size: int | None) -> Array:
        """What the function returns at q: checked, (m,)."""
        value = np.atleast_1d(self._call(self.function, "function", mechanism, q))
        if value.ndim != 1 or (size is not None and len(value) != size):
            wanted = "(m,)" if size is None else f"({size},)"
            raise ObjectiveError(f"{self._called}: its function returned the shape {value.shape}, not {wanted}")
        return value

    def _slope(self, mechanism: Mechanism, q: Array, size: int) -> Array:
        """The derivative at q, (m, nv)."""
        if self.derivative is not None:
            J = self._call(self.derivative, "jacobian", mechanism, q)
            if J.shape != (size, mechanism.nv):
                shape = f"({size}, {mechanism.nv})"
                raise ObjectiveError(f"{self._called}: its jacobian returned the shape {J.shape}, not {shape}")
            return J
        J = np.empty((size, mechanism.nv))
        for k, unit in enumerate(np.eye(mechanism.nv)):
            ahead, behind = (
                self._value(mechanism, mechanism.integrate(q, side * self.step * unit), size) for side in (1.0, -1.0)
            )
            J[:, k] = (ahead - behind) / (2.0 * self.step)
        return J

    def _call(self, function: Function, what: str, mechanism: Mechanism, q: Array) -> Array:
        try:
            value: Any = function(mechanism, q.copy())  # what a function does to its argument is its own affair
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ObjectiveError(f"{self._called}: its {what} failed at q = {q.tolist()}: {reason}") from error
        try:
            array = np.array(value, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ObjectiveError(f"{self._called}: its {what} returned {value!r}, which are no numbers") from error
        if not np.isfinite(array).all():
            raise ObjectiveError(f"{self._called}: its {what} returned {array.tolist()} at q = {q.tolist()}")
        return array

    def _bound(self, bound: ArrayLike | None, what: str) -> Array | None:
        if bound is None:
            return None
        try:
            numbers = np.array(bound, dtype=np.float64)
        except (TypeError, ValueError):
            raise ObjectiveError(f"{what} of {self._called} is a number or (m,), not {bound!r}") from None
        if numbers.ndim > 1 or np.isnan(numbers).any():
            raise ObjectiveError(f"{what} of {self._called} is a number or (m,), and not {numbers.tolist()}")
        return read_only(numbers)

    def _band(self, size: int) -> tuple[Array | None, Array | None]:
        if self.lower is None and self.upper is None:
            return None, None
        try:
            lower, upper = (
                read_only(np.broadcast_to(open_ if bound is None else bound, (size,)).copy())
                for bound, open_ in ((self.lower, -np.inf), (self.upper, np.inf))
            )
        except ValueError:
            raise ObjectiveError(f"the band of {self._called} has another size than its {size} rows") from None
        if (lower > upper).any():
            raise LimitsError(f"{self._called}: nothing lies between {lower.tolist()} and {upper.tolist()}")
        return lower, upper


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """What a relation calls: residual and Jacobian together. A class, so that it can be sent to other processes."""

    objective: Custom
    size: int

    def __call__(self, mechanism: Mechanism, q: Array) -> tuple[Array, Array]:
        residual = self.objective._value(mechanism, q, self.size)
        return residual, self.objective._slope(mechanism, q, self.size)


def _as_size(rows: object, called: str) -> int:
    try:
        size = index(rows)  # type: ignore[arg-type]
    except TypeError:
        raise ObjectiveError(f"rows of {called} is a whole number, not {rows!r}") from None
    if size < 1:
        raise ObjectiveError(f"rows of {called} is {size}; an objective has at least one")
    return size
