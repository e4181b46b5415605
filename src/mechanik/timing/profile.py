"""How far along a curve one is at each time: cubics in time, one behind the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mechanik.spatial.array import Array


class Course(Protocol):
    """How far along a curve one is at each time."""

    @property
    def duration(self) -> float:
        """s."""
        ...

    @property
    def breaks(self) -> Array:
        """All times at which the jerk may jump, s; the first is 0, the last the end."""
        ...

    def at(self, t: Array) -> Array:
        """(4, M): s, its velocity, acceleration and jerk at times t (M,)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """
    Attributes:
        t: (K + 1,) when each piece begins, s; the last is when the last one ends.
        state: (K, 4) s, its velocity, acceleration and jerk where each piece begins; along a piece the jerk stays.
        slow: by what factor all takes longer.
    """

    t: Array
    state: Array
    slow: float = 1.0

    @property
    def duration(self) -> float:
        return self.slow * float(self.t[-1])

    @property
    def breaks(self) -> Array:
        return self.slow * self.t

    def at(self, t: Array) -> Array:
        """(4, M): s, its velocity, acceleration and jerk at times t (M,); outside it stands."""
        own = np.asarray(t, dtype=np.float64) / self.slow
        end = float(self.t[-1])
        inside = np.clip(own, 0.0, end)
        k = np.clip(np.searchsorted(self.t, inside, side="right") - 1, 0, len(self.state) - 1)
        x = inside - self.t[k]
        s, v, a, j = self.state[k].T
        found = np.stack([
            s + x * (v + x * (a / 2 + x * j / 6)),
            v + x * (a + x * j / 2),
            a + x * j,
            j,
        ])  # fmt: skip
        found[1:, (own < 0.0) | (own > end)] = 0.0
        return found / self.slow ** np.arange(4.0)[:, None]
