"""Where a tracker stands after a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from mechanik.collision.clash import Clash
from mechanik.kernels.tracking.layout import BY_ACCELERATION, BY_POSITION, BY_VELOCITY
from mechanik.spatial.array import Array

WORDS = {BY_ACCELERATION: "acceleration", BY_VELOCITY: "velocity", BY_POSITION: "position"}


class TrackerStatus(Enum):
    """What became of a step; the value is a sentence for people."""

    MOVED = "within all limits"
    BRAKED = "no velocity was within all limits with loops shut and nothing touching; accelerations gave way"
    STOPPED = "nothing but standing still at once was left"
    TOO_NEAR = "within all limits, but something was nearer than the clearance as the step began; it is left again"

    def __repr__(self) -> str:
        return self.name


BY_CODE = (TrackerStatus.MOVED, TrackerStatus.BRAKED, TrackerStatus.STOPPED, TrackerStatus.TOO_NEAR)
WAS_TOO_NEAR = BY_CODE.index(TrackerStatus.TOO_NEAR)


@dataclass(frozen=True, slots=True, eq=False)
class TrackerState:
    """
    Attributes:
        q: (nq,), read-only.
        v: (nv,) the velocity by which q was reached in the last step, per second; read-only.
        time: s, since the start or the last reset.
        status: whether all limits were kept.
        clashes: what is nearer than the clearance, the nearest first, if something was as the step began.
    """

    q: Array
    v: Array
    time: float
    status: TrackerStatus
    clashes: tuple[Clash, ...]
    _names: tuple[str, ...] = field(repr=False)
    _held: np.ndarray[tuple[int], np.dtype[np.int64]] = field(repr=False)

    @property
    def limits(self) -> Mapping[str, str]:
        """Freedoms that are held back, by name, with what holds them: "acceleration", "velocity" or "position"."""
        return {name: WORDS[abs(code)] for name, code in zip(self._names, self._held.tolist(), strict=True) if code}
