"""The door for starts: none, one for all rows, or one for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.batch.columns import Numbers, Rows, as_numbers, read
from mechanik.batch.mapped import release
from mechanik.batch.target_forms import Mask
from mechanik.errors import ShapeError
from mechanik.mechanism.configuration import ConfigurationSpace
from mechanik.spatial.array import Array, ArrayLike

NO_TURN = 1e-6
"""As in `ConfigurationSpace.check_q`: a ball whose four numbers are all smaller has no direction."""


@dataclass(frozen=True, slots=True, eq=False)
class Starts:
    """
    Attributes:
        given: (nq,) or (N, nq); None if nothing is.
        home: (nq,) what a row without a sound start keeps.
    """

    given: Numbers | None
    home: Array
    space: ConfigurationSpace

    @property
    def count(self) -> int | None:
        """How many there are, if there is one for each row."""
        return None if self.given is None or self.given.ndim == 1 else len(self.given)

    def take(self, rows: Rows) -> tuple[Array | None, Mask]:
        """(M, nq) or None, and which of them one can start from."""
        good = np.ones(len(rows), dtype=np.bool_)
        if self.given is None:
            return None, good
        if self.given.ndim == 1:
            return np.tile(np.asarray(self.given, dtype=np.float64), (len(rows), 1)), good
        q0 = read(self.given, rows)
        good = np.asarray(np.isfinite(q0).all(axis=1))
        for k in self.space.balls_q:
            good &= np.abs(q0[:, k : k + 4]).max(axis=1) > NO_TURN
        return q0, good

    def release(self) -> None:
        """Let go of what was read from files."""
        release(self.given)


def as_starts(space: ConfigurationSpace, q0: ArrayLike | None, home: Array) -> Starts:
    """
    Args:
        q0: (nq,) for all rows, (N, nq), or None.
        home: (nq,) the present configuration.
    """
    if q0 is None:
        return Starts(None, home, space)
    given = as_numbers(q0, "q0")
    if given.ndim > 2 or given.shape[-1] != space.nq:
        raise ShapeError(f"q0 is ({space.nq},), or (N, {space.nq}) with one for each row, not {given.shape}")
    return Starts(space.check_q(given) if given.ndim == 1 else given, home, space)
