"""Interface of a library in the loop benchmarks. Each has a file of its own, `drive_NAME.py`, with a class `Driver`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from case import Case

TOLERANCE, CLOSURE_TOLERANCE = 1e-5, 1e-9
"""m and rad: of goals, and of loops where a library has separate tolerances."""


class Driver:
    """One case in one library, driven as well as its interface allows.

    Targets take the library's form before the clock starts, and solutions become arrays after it has stopped.

    Attributes:
        variant: how it is driven, where there are several methods.
        work: a folder for files of its own.
    """

    def __init__(self, case: Case, variant: str, work: Path) -> None:
        self.case, self.variant, self.work = case, variant, work
        self.open()

    def open(self) -> None:
        """Makes the model and the solver."""
        raise NotImplementedError

    def target(self, target: Any) -> Any:
        return target

    def begin(self) -> None:
        """Goes back to the start of the path."""
        raise NotImplementedError

    def tick(self, target: Any) -> Any:
        """Solve from the current configuration to the target; returns a solution that the next tick does not change."""
        raise NotImplementedError

    def values(self, solution: Any) -> np.ndarray:
        """(n,) as in `Case.start`."""
        return np.asarray(solution, dtype=float)
