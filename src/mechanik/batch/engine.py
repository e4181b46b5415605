"""What solves some rows of a batch, as far as the rest of it has to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mechanik.batch.targets import Wanted
from mechanik.kernels.solver_state import PENDING_ROW
from mechanik.spatial.array import Array

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Places for what comes of M rows.

    Attributes:
        q: (M, nq).
        code: (M,), as `BY_CODE` numbers statuses.
        errors: (M, objectives, 2), m and rad.
        iterations: (M,).
    """

    q: Array
    code: Codes
    errors: Array
    iterations: Codes

    @staticmethod
    def unsolved(q: Array, objectives: int) -> Answers:
        """For rows that stand at q (M, nq) and that nobody has looked at."""
        rows = len(q)
        code, iterations = np.full(rows, PENDING_ROW, dtype=np.int64), np.zeros(rows, dtype=np.int64)
        return Answers(q, code, np.full((rows, objectives, 2), np.nan), iterations)

    def take(self, rows: Mask) -> Answers:
        """A copy of some rows."""
        return Answers(self.q[rows], self.code[rows], self.errors[rows], self.iterations[rows])

    def put(self, rows: Mask, found: Answers) -> None:
        """Write the copy back."""
        self.q[rows], self.code[rows] = found.q, found.code
        self.errors[rows], self.iterations[rows] = found.errors, found.iterations


class Engine(Protocol):
    """Solves rows, each by itself: what comes of a row depends on its target, its start and the seed alone.

    Attributes:
        chunk: how many rows take it some milliseconds.
        checks_poses: whether it finds out by itself which targets (M, 4, 4) are no poses.
        kernels: the modules of kernels in which it spends its time.
    """

    @property
    def chunk(self) -> int: ...

    @property
    def checks_poses(self) -> bool: ...

    @property
    def kernels(self) -> tuple[str, ...]: ...

    def solve_rows(self, wanted: Wanted, q0: Array | None, seed: int | None, into: Answers) -> None:
        """Called by several threads at once, each with other rows.

        Args:
            q0: (M, nq) where to start; None: what is usual.
            seed: for all that is random; None: nothing is.
            into: `code` and `q` of every row are to be written; `q` holds what a row that cannot be solved keeps.
        """
        ...
