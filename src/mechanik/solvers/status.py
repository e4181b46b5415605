"""How a solve ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """What became of a solve, of one of its chains, or of a row of a batch; the value is a sentence for people."""

    CONVERGED = "everything asked for is within its tolerance"
    CLOSEST = "out of reach; this is as close as it comes from where it started"
    STALLED = "no step helped any more before it was clear that nothing closer can be reached"
    TIMEOUT = "the iterations or the seconds were used up on the way"
    OPEN = "its loops could not be shut, or its laws not kept"
    STOPPED = "the caller stopped it on the way"
    DIVERGED = "the error is not a finite number"
    BAD_TARGET = "the target of this row is not finite, or nothing that can be a target"
    PENDING = "not solved yet"
    BAD_START = "the start of this row is not finite, or holds a ball without a direction"
    IN_COLLISION = "everything asked for is within its tolerance, but something bumps into something"

    def __repr__(self) -> str:
        return self.name


BY_CODE = (
    Status.CONVERGED, Status.CLOSEST, Status.STALLED, Status.TIMEOUT, Status.OPEN, Status.TIMEOUT, Status.STOPPED,
    Status.DIVERGED, Status.BAD_TARGET, Status.PENDING, Status.BAD_START, Status.IN_COLLISION,
)  # fmt: skip
"""As the kernel numbers them; the second TIMEOUT is a stage that was not tried for want of time. The last four are not
the kernel's: three are those of rows of a batch, and what bumps is found out afterwards."""
IN_COLLISION_ROW = BY_CODE.index(Status.IN_COLLISION)


@dataclass(frozen=True, slots=True)
class ChainReport:
    """How one of several chains that share nothing fared.

    Attributes:
        objectives: their numbers among the solver's objectives.
        closures: names.
        joints: names of the freedoms that it may move.
        status: of this chain alone.
        residual: root of the sum of squares of its first level that is not met; 0 if all are. Weighted, lengths in
            sizes of the mechanism.
        iterations: steps tried.
        seconds: taken by this chain.
        laws: names.
    """

    objectives: tuple[int, ...]
    closures: tuple[str, ...]
    joints: tuple[str, ...]
    status: Status
    residual: float
    iterations: int
    seconds: float
    laws: tuple[str, ...] = ()
