"""Configurations one behind the other, without a jump."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mechanik.errors import NotFinite, ShapeError, WrongKind
from mechanik.ik import Solver
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import as_number, counted, read_only
from mechanik.paths.loop_gaps import loop_gaps
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from mechanik.collision import Collider

FINE = 0.02
"""rad or m: no freedom moves farther between two configurations at which a path is looked at for collisions."""


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Path:
    """Knots, and the straight way between them; where there are loops or laws, that way with the loops shut.

    Attributes:
        mechanism: whose configurations these are; it is not moved.
        q: (N, nq), N of 1 or more; read-only.
        s: (N,) where each knot is: seconds, or any other number that grows along the path; read-only.
    """

    mechanism: Mechanism
    q: Array
    s: Array
    _kept: dict[str, Solver] = field(default_factory=dict[str, Solver])

    def __init__(self, mechanism: Mechanism, q: ArrayLike, s: ArrayLike | None = None) -> None:
        """
        Args:
            s: evenly from 0 to 1 if not given.
        """
        if not isinstance(mechanism, Mechanism):
            raise WrongKind(f"a path is one of a mechanism, not of {mechanism!r}")
        values = np.array(mechanism.space.check_q(q))
        if values.ndim != 2 or not len(values):
            raise ShapeError(f"q of a path is (N, {mechanism.nq}) with N of 1 or more, not of shape {values.shape}")
        for k in mechanism.space.balls_q:
            values[:, k : k + 4] = quaternion.normalize(values[:, k : k + 4])
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "q", read_only(values))
        object.__setattr__(self, "s", read_only(as_parameters(s, len(values))))
        object.__setattr__(self, "_kept", {})

    def __len__(self) -> int:
        return len(self.q)

    def __repr__(self) -> str:
        where = f"s from {self.s[0]:g} to {self.s[-1]:g}"
        way = f"{self.length:.3g} rad and m long, largest step {self.largest_step:.3g}"
        return f"<path of {self.mechanism.name or 'a mechanism'}: {counted(len(self), 'knot')}, {where}, {way}>"

    # ---- configurations ---------------------------------------------------------------------

    def at(self, s: ArrayLike) -> Array:
        """Configurations (..., nq) at s (...), straight between knots, with loops shut; beyond the ends these hold.

        Raises:
            NotSolved: where loops cannot be shut near the straight way: the knots are too far apart.
        """
        wanted = np.asarray(s, dtype=np.float64)
        if not np.isfinite(wanted).all():
            raise NotFinite(f"s has an entry that is not finite: {s!r}")
        last = len(self.s) - 1
        k = np.clip(np.searchsorted(self.s, wanted, side="right") - 1, 0, max(last - 1, 0))
        after = np.minimum(k + 1, last)
        span = np.where(after > k, self.s[after] - self.s[k], 1.0)
        share = np.clip((wanted - self.s[k]) / span, 0.0, 1.0)
        space = self.mechanism.space
        found = space.integrate(self.q[k], share[..., None] * space.difference(self.q[k], self.q[after]))
        # a knot to the bit: adding a whole difference may round
        found = np.where(
            (share == 0.0)[..., None], self.q[k], np.where((share == 1.0)[..., None], self.q[after], found)
        )
        return self._shut(found, (share > 0.0) & (share < 1.0))

    def finer(self, step: float = FINE) -> Path:
        """The same path with knots between its own, so that no freedom moves farther than `step` (rad, m) at once."""
        largest = as_number(step, "step")
        if not largest > 0.0:
            raise ShapeError(f"step must be above 0, not {largest:g}")
        parts = np.maximum(np.ceil(self.steps / largest), 1.0).astype(np.int64)
        k = np.repeat(np.arange(len(parts)), parts)
        number = np.arange(len(k)) - np.repeat(np.cumsum(parts) - parts, parts)
        s = np.append(self.s[k] + number / parts[k] * np.diff(self.s)[k], self.s[-1])
        return Path(self.mechanism, self.at(s), s)

    # ---- numbers ----------------------------------------------------------------------------

    @property
    def steps(self) -> Array:
        """(N - 1,) the largest change of a freedom from each knot to the next, rad or m."""
        return np.abs(self._ways()).max(axis=1, initial=0.0)

    @property
    def largest_step(self) -> float:
        return float(self.steps.max(initial=0.0))

    @property
    def median_step(self) -> float:
        return float(np.median(self.steps)) if len(self) > 1 else 0.0

    @property
    def length(self) -> float:
        """The sum over all steps of the root of the summed squares of all changes, rad and m."""
        return float(np.linalg.norm(self._ways(), axis=1).sum())

    def closure_error(self) -> float:
        """The farthest that a loop stands open at a knot, m or rad; 0 where there are no loops."""
        return float(loop_gaps(self.mechanism, self.q).max())

    def is_free(self, collider: Collider, clearance: float = 0.0, step: float = FINE) -> bool:
        """Whether nothing comes nearer than `clearance` (m), at the knots and at every `step` (rad, m) between."""
        return bool(np.all(collider.is_free(self.finer(step).q, clearance)))

    # ---- inside -----------------------------------------------------------------------------

    def _ways(self) -> Array:
        """(N - 1, nv)."""
        return self.mechanism.space.difference(self.q[:-1], self.q[1:])

    def _shut(self, q: Array, between: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Array:
        if not (self.mechanism.closures or self.mechanism.laws) or not between.any():
            return q
        if "shut" not in self._kept:
            self._kept["shut"] = Solver(self.mechanism)
        solver = self._kept["shut"]
        q[between] = [solver.solve(q0=one).require().q for one in q[between]]
        return q


def as_parameters(s: ArrayLike | None, count: int) -> Array:
    """The door for s: (count,), finite, each above the one before; evenly from 0 to 1 if not given."""
    if s is None:
        return np.linspace(0.0, 1.0, count) if count > 1 else np.zeros(1)
    try:
        values = np.array(s, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"s of a path must be numbers, not {s!r}") from None
    if values.shape != (count,):
        raise ShapeError(f"s of a path is ({count},), one for each configuration, not of shape {values.shape}")
    if not np.isfinite(values).all():
        raise NotFinite("s of a path must be finite")
    if not (np.diff(values) > 0.0).all():
        k = int(np.flatnonzero(np.diff(values) <= 0.0)[0])
        raise ShapeError(f"s of knot {k + 1}, {values[k + 1]:g}, is not above that of the knot before it")
    return values
