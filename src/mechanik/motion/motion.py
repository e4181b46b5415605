"""A mechanism over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.errors import NotFinite, ShapeError, WrongKind
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import read_only
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike

EVEN = 1e-6
"""Of the mean time between frames: times that are off by less count as evenly spaced."""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Motion:
    """Configurations and when they were there; at least one.

    Attributes:
        mechanism: a copy, as it was.
        times: (N,), s, each after the one before; read-only.
        q: (N, nq); read-only.
        name: for people and file names.
    """

    mechanism: Mechanism
    times: Array
    q: Array
    name: str

    def __init__(self, mechanism: Mechanism, times: ArrayLike, q: ArrayLike, name: str = "") -> None:
        if not isinstance(mechanism, Mechanism):
            raise WrongKind(f"a motion is one of a mechanism, not of {mechanism!r}")
        try:
            moments = np.array(times, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"times of a motion must be numbers, not {times!r}") from None
        if moments.ndim != 1 or not len(moments):
            raise ShapeError(f"times of a motion are (N,) with N of 1 or more, not of shape {moments.shape}")
        if not np.isfinite(moments).all():
            raise NotFinite("times of a motion must be finite")
        if not (np.diff(moments) > 0.0).all():
            k = int(np.flatnonzero(np.diff(moments) <= 0.0)[0])
            raise ShapeError(f"time {k + 1} of a motion, {moments[k + 1]:g} s, is not after the one before it")
        values = np.array(mechanism.space.check_q(q))
        if values.shape != (len(moments), mechanism.nq):
            raise ShapeError(f"q of a motion must be {(len(moments), mechanism.nq)}, not of shape {values.shape}")
        for k in mechanism.space.balls_q:
            values[:, k : k + 4] = quaternion.normalize(values[:, k : k + 4])
        object.__setattr__(self, "mechanism", mechanism.copy())
        object.__setattr__(self, "times", read_only(moments))
        object.__setattr__(self, "q", read_only(values))
        object.__setattr__(self, "name", str(name) or mechanism.name or "motion")

    def __repr__(self) -> str:
        return f"<motion {self.name!r}: {len(self.times)} frames in {self.duration:g} s of {self.mechanism!r}>"

    @property
    def duration(self) -> float:
        """From the first frame to the last, s."""
        return float(self.times[-1] - self.times[0])

    def poses(self) -> Array:
        """X_world_link of all links at all times, (N, L, 4, 4)."""
        return self.mechanism.poses(self.q)

    def at(self, times: ArrayLike) -> Array:
        """Configurations (..., nq) at other times, on the straight way between frames; ends are held.

        Loops may open a little on the way, since it is straight for each joint.
        """
        wanted = np.asarray(times, dtype=np.float64)
        k = np.clip(np.searchsorted(self.times, wanted, side="right") - 1, 0, max(len(self.times) - 2, 0))
        after = np.minimum(k + 1, len(self.times) - 1)
        span = np.where(after > k, self.times[after] - self.times[k], 1.0)
        share = np.clip((wanted - self.times[k]) / span, 0.0, 1.0)
        space = self.mechanism.space
        return space.integrate(self.q[k], share[..., None] * space.difference(self.q[k], self.q[after]))

    def evenly(self) -> Motion:
        """The same number of frames, evenly spaced; this one if it is so."""
        count = len(self.times)
        even: Array = np.linspace(float(self.times[0]), float(self.times[-1]), count)
        if count < 3 or np.abs(even - self.times).max() <= EVEN * self.duration / (count - 1):
            return self
        return Motion(self.mechanism, even, self.at(even), self.name)


def continuous(wxyz: Array) -> Array:
    """Quaternions (N, ..., 4) that are the same turns, each on the side of the one before."""
    if len(wxyz) < 2:
        return wxyz
    flips = (wxyz[1:] * wxyz[:-1]).sum(axis=-1, keepdims=True) < 0.0
    signs = np.where(flips, -1.0, 1.0).cumprod(axis=0)
    return np.concatenate([wxyz[:1], wxyz[1:] * signs])
