"""How far along a curve one is at each time: cubics in time, one behind the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.mechanism.door import read_only
from mechanik.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """
    Attributes:
        t: (K + 1,) when each piece begins, s; the last is when the last one ends.
        state: (K, 4) s, its velocity, acceleration and jerk where each piece begins; along a piece the jerk stays.
        window: s: everything is averaged over that long, which bounds the jerk; 0: as it is.
        slow: by what factor all takes longer.
    """

    t: Array
    state: Array
    window: float = 0.0
    slow: float = 1.0

    @property
    def duration(self) -> float:
        return self.slow * (float(self.t[-1]) + self.window)

    @property
    def breaks(self) -> Array:
        """All times at which the jerk may jump, s."""
        if not self.window:
            return self.slow * self.t
        return self.slow * np.unique(np.concatenate([self.t, self.t + self.window]))

    def at(self, t: Array) -> Array:
        """(4, M): s, its velocity, acceleration and jerk at times t (M,)."""
        own = np.asarray(t, dtype=np.float64) / self.slow
        if self.window:
            late, early = self._whole(own), self._whole(own - self.window)
            found = (late[:4] - early[:4]) / self.window
        else:
            found = self._whole(own)[1:]
        return found / self.slow ** np.arange(4.0)[:, None]

    def _whole(self, t: Array) -> Array:
        """(5, M): the integral of s, s, and so on, before any averaging; outside s stands still."""
        end = float(self.t[-1])
        inside = np.clip(t, 0.0, end)
        k = np.clip(np.searchsorted(self.t, inside, side="right") - 1, 0, len(self.state) - 1)
        x = inside - self.t[k]
        s, v, a, j = self.state[k].T
        sums = self._sums()
        found = np.stack([
            sums[k] + x * (s + x * (v / 2 + x * (a / 6 + x * j / 24))),
            s + x * (v + x * (a / 2 + x * j / 6)),
            v + x * (a + x * j / 2),
            a + x * j,
            j,
        ])  # fmt: skip
        beyond = np.maximum(t - end, 0.0)
        found[0] += beyond * found[1]
        found[2:, (t < 0.0) | (t > end)] = 0.0
        return found

    def _sums(self) -> Array:
        h = np.diff(self.t)
        s, v, a, j = self.state.T
        return read_only(np.append(0.0, np.cumsum(h * (s + h * (v / 2 + h * (a / 6 + h * j / 24))))))
