"""A path that was planned, with what it cost."""

from __future__ import annotations

from dataclasses import dataclass

from mechanik.mechanism import Mechanism
from mechanik.paths import Path
from mechanik.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class PlannedPath(Path):
    """
    Attributes:
        planner: by what it was found: "straight", if nothing stands between, "trees", or a planner of OMPL.
        goal: number of the goal where it ends, nearest first.
        seconds: from the call to the answer.
        gap: the smallest that was measured along it, m; infinite if nothing is avoided.
        is_certain: whether nothing can come nearer than the clearance anywhere between the places that were looked at:
            no point can have gone as far as the gaps there are wide. If not, these places are 0.01 rad or 5 mm apart.
    """

    planner: str
    goal: int
    seconds: float
    gap: float
    is_certain: bool

    def __init__(
        self, mechanism: Mechanism, q: Array, s: Array, planner: str, goal: int, seconds: float, gap: float,
        certain: bool,
    ) -> None:  # fmt: skip
        Path.__init__(self, mechanism, q, s)
        for name, value in (
            ("planner", planner), ("goal", goal), ("seconds", seconds), ("gap", gap), ("is_certain", certain),
        ):  # fmt: skip
            object.__setattr__(self, name, value)
