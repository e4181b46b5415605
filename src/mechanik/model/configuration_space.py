"""Configuration vectors q and velocity vectors v: layout, limits, integration and sampling.

The three rotations of a joint are a quaternion if they have no limits; all other dofs are scalars. A scalar dof has
one entry in q and one in v; a quaternion has four entries (wxyz) in q and three in v. Mimic dofs have no entries. A
step v is added to the scalar entries of q; for a quaternion it is a rotation vector in the rotated frame:
quaternion * exp(v).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import index

import numpy as np
import numpy.typing as npt

from mechanik.errors import NotARotation, NotFinite, ShapeError
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_rng

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]


def normalize_quaternions(q: Array, first_indices: Sequence[int] | Indices) -> None:
    """Scale quaternions in q (nq,), which are not zero, to unit norm in place; unit quaternions stay unchanged.

    Args:
        q: configuration, (nq,).
        first_indices: first index of each quaternion.
    """
    for k in first_indices:
        square = float(q[k : k + 4] @ q[k : k + 4])
        if abs(square - 1.0) >= quaternion.UNIT_TOLERANCE:
            q[k : k + 4] /= math.sqrt(square)


@dataclass(frozen=True, slots=True, eq=False)
class ConfigurationSpace:
    """The layout of q and v.

    Attributes:
        q_names, v_names: name of each entry: "elbow" for a single dof; "base.X" for one of several dofs; "base.qw" in q
            and "base.EX" in v for a quaternion.
        scalars_q, scalars_v: indices of the scalar dofs in q and in v.
        quaternions_q, quaternions_v: first index of each quaternion in q (4 entries) and in v (3 entries).
        rotates: (nv,), whether a dof is a rotation.
        lower, upper: (nq,), limits, m or rad; infinite for dofs without limits and for quaternions.
        nq, nv: lengths of q and v.
    """

    q_names: tuple[str, ...]
    v_names: tuple[str, ...]
    scalars_q: Indices
    scalars_v: Indices
    quaternions_q: Indices
    quaternions_v: Indices
    rotates: np.ndarray[tuple[int], np.dtype[np.bool_]]
    lower: Array
    upper: Array
    nq: int = field(init=False)
    nv: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nq", len(self.q_names))
        object.__setattr__(self, "nv", len(self.v_names))

    def neutral(self) -> Array:
        """Return q (nq,) with identity quaternions and all other values at zero or at the limit nearest to zero."""
        return self.clamp(self._zero_configuration())

    def random(self, rng: np.random.Generator, size: int | Sequence[int] = ()) -> Array:
        """Sample configurations (*size, nq) uniformly inside the limits.

        A dof without limits is sampled in +-pi rad or +-1 m, a dof with a single limit within 2 pi rad or 2 m of this
        limit.
        """
        as_rng(rng)
        try:
            shape = tuple(index(length) for length in size) if isinstance(size, Sequence) else (index(size),)
        except TypeError:
            raise ShapeError(f"size must be an integer or a sequence of integers, not {size!r}") from None
        if any(length < 0 for length in shape):
            raise ShapeError(f"size cannot be negative, but is {size!r}")
        default_half_range = np.where(self.rotates[self.scalars_v], math.pi, 1.0)
        lower, upper = self.lower[self.scalars_q], self.upper[self.scalars_q]
        low = np.where(
            np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * default_half_range, -default_half_range)
        )
        high = np.where(
            np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2 * default_half_range, default_half_range)
        )
        q = np.empty((*shape, self.nq))
        q[..., self.scalars_q] = low + (high - low) * rng.random((*shape, len(low)))
        for k in self.quaternions_q:
            q[..., k : k + 4] = quaternion.normalize(rng.standard_normal((*shape, 4)))
        return q

    def integrate(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the configuration that the step v (..., nv) reaches from q (..., nq); limits are ignored."""
        start, step = self.check_q(q), self.check_v(v)
        shape = np.broadcast_shapes(start.shape[:-1], step.shape[:-1])
        end = np.empty((*shape, self.nq))
        end[..., self.scalars_q] = start[..., self.scalars_q] + step[..., self.scalars_v]
        for k, i in zip(self.quaternions_q, self.quaternions_v, strict=True):
            rotated_quaternion = quaternion.multiply(start[..., k : k + 4], quaternion.exp(step[..., i : i + 3]))
            end[..., k : k + 4] = quaternion.normalize(rotated_quaternion)
        return end

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """Return the step v (..., nv) from q0 to q1: integrate(q0, v) = q1, up to the signs of quaternions.

        The step of a quaternion is the shortest rotation. Differences of scalar angles are not reduced by full
        rotations.
        """
        start, end = self.check_q(q0), self.check_q(q1)
        shape = np.broadcast_shapes(start.shape[:-1], end.shape[:-1])
        step = np.empty((*shape, self.nv))
        step[..., self.scalars_v] = end[..., self.scalars_q] - start[..., self.scalars_q]
        for k, i in zip(self.quaternions_q, self.quaternions_v, strict=True):
            inverse_start = quaternion.conjugate(start[..., k : k + 4])
            step[..., i : i + 3] = quaternion.log(quaternion.multiply(inverse_start, end[..., k : k + 4]))
        return step

    def clamp(self, q: ArrayLike) -> Array:
        """Return q (..., nq) with every value inside its limits and every quaternion normalized."""
        clamped_q = np.clip(self.check_q(q), self.lower, self.upper)
        for k in self.quaternions_q:
            clamped_q[..., k : k + 4] = quaternion.normalize(clamped_q[..., k : k + 4])
        return clamped_q

    def within_limits(self, q: ArrayLike, tolerance: float = 0.0) -> np.bool | npt.NDArray[np.bool]:
        """Return a mask (...): whether no value of q (..., nq) exceeds a limit by more than `tolerance` (m or rad)."""
        values = self.check_q(q)
        return ((values >= self.lower - tolerance) & (values <= self.upper + tolerance)).all(axis=-1)

    def check_q(self, q: ArrayLike) -> Array:
        """Validate configurations and return them as an array: (..., nq), finite, no zero quaternion."""
        values = self._check(q, self.nq, "q", self.q_names)
        for k in self.quaternions_q:
            if values.size and not np.all(np.abs(values[..., k : k + 4]).max(axis=-1) > 1e-6):
                raise NotARotation(f"q has a zero quaternion at {self.q_names[k]!r}; the identity is (1, 0, 0, 0)")
        return values

    def check_v(self, v: ArrayLike) -> Array:
        """Validate velocities or steps and return them as an array: (..., nv), finite."""
        return self._check(v, self.nv, "v", self.v_names)

    def _check(self, vector: ArrayLike, size: int, label: str, names: tuple[str, ...]) -> Array:
        try:
            if np.iscomplexobj(vector):
                raise TypeError
            values = np.asarray(vector, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"{label} must be an array of real numbers, not {vector!r}") from None
        if values.ndim < 1 or values.shape[-1] != size:
            raise ShapeError(f"{label} must have {size} numbers along its last axis, but its shape is {values.shape}")
        if not np.isfinite(values).all():
            k = int(np.argwhere(~np.isfinite(values))[0][-1])
            raise NotFinite(f"{label} is not finite at {names[k]!r} (index {k})")
        return values

    def _zero_configuration(self) -> Array:
        q = np.zeros(self.nq)
        q[self.quaternions_q] = 1.0
        return q
