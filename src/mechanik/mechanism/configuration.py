"""Configurations: q, where a mechanism is, and v, where it can go from there.

q has one number for each turning or sliding freedom and four (wxyz) for a ball; v has one and three.
A step v moves scalars by adding, and a ball by turning it about its own axes: q_ball * exp(v).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import index

import numpy as np
import numpy.typing as npt

from mechanik.errors import NotARotation, NotFinite, ShapeError, WrongKind
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class ConfigurationSpace:
    """The shape of q and v.

    Attributes:
        q_names, v_names: a name for each number: "elbow", or "base.X", "base.w" where a joint has several.
        scalars_q, scalars_v: where the single freedoms stand in q and in v.
        balls_q, balls_v: where each ball's four and three numbers begin.
        rotates: (nv,) whether a freedom turns.
        lower, upper: (nq,) limits; infinite where there are none, and for balls.
    """

    q_names: tuple[str, ...]
    v_names: tuple[str, ...]
    scalars_q: Indices
    scalars_v: Indices
    balls_q: Indices
    balls_v: Indices
    rotates: np.ndarray[tuple[int], np.dtype[np.bool_]]
    lower: Array
    upper: Array

    @property
    def nq(self) -> int:
        return len(self.q_names)

    @property
    def nv(self) -> int:
        return len(self.v_names)

    def neutral(self) -> Array:
        """Every value zero, or as near to zero as its limits allow; every ball unturned."""
        return self.clamp(self._unturned())

    def random(self, rng: np.random.Generator, size: int | Sequence[int] = ()) -> Array:
        """Uniform inside the limits.

        A freedom without limits ranges half a turn, or one metre, either way; with one limit, twice that from it.
        """
        if not isinstance(rng, np.random.Generator):
            raise WrongKind(f"rng must be a generator, such as numpy.random.default_rng(0), not {rng!r}")
        try:
            shape = tuple(index(one) for one in size) if isinstance(size, Sequence) else (index(size),)
        except TypeError:
            raise ShapeError(f"size must be a whole number or several, not {size!r}") from None
        if any(one < 0 for one in shape):
            raise ShapeError(f"size cannot be negative, but is {size!r}")
        reach = np.where(self.rotates[self.scalars_v], math.pi, 1.0)
        lower, upper = self.lower[self.scalars_q], self.upper[self.scalars_q]
        low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * reach, -reach))
        high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2 * reach, reach))
        q = np.empty((*shape, self.nq))
        q[..., self.scalars_q] = low + (high - low) * rng.random((*shape, len(low)))
        for k in self.balls_q:
            q[..., k : k + 4] = quaternion.normalize(rng.standard_normal((*shape, 4)))
        return q

    def integrate(self, q: ArrayLike, v: ArrayLike) -> Array:
        """The configuration reached from q (..., nq) by the step v (..., nv). Limits are not looked at."""
        start, step = self.check_q(q), self.check_v(v)
        shape = np.broadcast_shapes(start.shape[:-1], step.shape[:-1])
        end = np.empty((*shape, self.nq))
        end[..., self.scalars_q] = start[..., self.scalars_q] + step[..., self.scalars_v]
        for k, i in zip(self.balls_q, self.balls_v, strict=True):
            turned = quaternion.multiply(start[..., k : k + 4], quaternion.exp(step[..., i : i + 3]))
            end[..., k : k + 4] = quaternion.normalize(turned)
        return end

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """The step v (..., nv) with integrate(q0, v) = q1; for balls the shortest. Full turns of scalars count."""
        start, end = self.check_q(q0), self.check_q(q1)
        shape = np.broadcast_shapes(start.shape[:-1], end.shape[:-1])
        step = np.empty((*shape, self.nv))
        step[..., self.scalars_v] = end[..., self.scalars_q] - start[..., self.scalars_q]
        for k, i in zip(self.balls_q, self.balls_v, strict=True):
            back = quaternion.conjugate(start[..., k : k + 4])
            step[..., i : i + 3] = quaternion.log(quaternion.multiply(back, end[..., k : k + 4]))
        return step

    def clamp(self, q: ArrayLike) -> Array:
        """q with every value inside its limits and every ball a unit quaternion."""
        inside = np.clip(self.check_q(q), self.lower, self.upper)
        for k in self.balls_q:
            inside[..., k : k + 4] = quaternion.normalize(inside[..., k : k + 4])
        return inside

    def within_limits(self, q: ArrayLike, tolerance: float = 0.0) -> np.bool | npt.NDArray[np.bool]:
        """(...) whether every value lies inside its limits."""
        values = self.check_q(q)
        return ((values >= self.lower - tolerance) & (values <= self.upper + tolerance)).all(axis=-1)

    def check_q(self, q: ArrayLike) -> Array:
        """The door for configurations: (..., nq), finite, no ball without a direction."""
        values = self._check(q, self.nq, "q", self.q_names)
        for k in self.balls_q:
            if values.size and not np.all(np.abs(values[..., k : k + 4]).max(axis=-1) > 1e-6):
                raise NotARotation(f"q holds a zero quaternion at {self.q_names[k]!r}; no turn at all is (1, 0, 0, 0)")
        return values

    def check_v(self, v: ArrayLike) -> Array:
        return self._check(v, self.nv, "v", self.v_names)

    def _check(self, given: ArrayLike, size: int, what: str, names: tuple[str, ...]) -> Array:
        try:
            if np.iscomplexobj(given):
                raise TypeError
            values = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"{what} must be an array of real numbers, not {given!r}") from None
        if values.ndim < 1 or values.shape[-1] != size:
            raise ShapeError(f"{what} must have {size} numbers along its last axis, but its shape is {values.shape}")
        if not np.isfinite(values).all():
            bad = int(np.argwhere(~np.isfinite(values))[0][-1])
            raise NotFinite(f"{what} is not finite at {names[bad]!r} (number {bad})")
        return values

    def _unturned(self) -> Array:
        q = np.zeros(self.nq)
        q[self.balls_q] = 1.0
        return q
