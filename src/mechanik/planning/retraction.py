"""Back to where loops are shut, by steps that are as short as can be; and along them, towards somewhere else.

Compiled, where all numbers of a step belong to freedoms; else by Newton's method here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.assembly.loops import Loops, Part
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

kernel = kernel_module("planning.retraction")

Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

SHUT = 1e-10
"""Rows (rad, sizes): loops that stand open by less are shut."""
STEPS = 25
LONGEST = 0.5
"""Rad, sizes: of one step."""
ROUNDING = 1e-12
STRAY = 2.0
"""A step along loops may become that many times longer by shutting them; else it has gone elsewhere."""
CREEPING = 0.02
"""Of a step: what comes less near leads nowhere."""


@dataclass(frozen=True, slots=True, eq=False)
class _Loop:
    """What the kernels take of loops that share freedoms, after `look`."""

    ints: Indices
    floats: Array
    rows: Indices
    free: Array
    numbers: Indices

    @property
    def arrays(self) -> tuple[Indices, Array, Indices, Array, Indices]:
        return self.ints, self.floats, self.rows, self.free, self.numbers


class Retraction:
    """
    Args:
        free: (nv,) which freedoms may move.

    Attributes:
        can_walk: whether `walk` can be asked: all loops share freedoms, and there are no balls.
    """

    def __init__(self, loops: Loops, free: Flags) -> None:
        self._loops, self._free = loops, free
        self._compiled: list[_Loop] | None = None
        if loops.parts is not None and not any(part.problem.part.packed.sizes["functions"] for part in loops.parts):
            self._compiled = [_loop(loops, part, free) for part in loops.parts if len(part.rows)]
        self.can_walk = len(self._compiled or ()) == 1 and not (loops.bands or len(loops.mechanism.space.balls_q))

    def __call__(self, q: Array) -> Array | None:
        """A configuration (nq,) near q at which all loops are shut, wherever limits are; None if there is none near."""
        if self._compiled is None:
            return self._by_rows(q)
        there, done = self.all_of(q[None])
        return there[0] if done[0] else None

    def all_of(self, q: Array) -> tuple[Array, Flags]:
        """The same for q (N, nq): (N, nq), and (N,) where there is such a place."""
        if self._compiled is None:
            found = [self._by_rows(one) for one in q]
            there = np.array([old if new is None else new for new, old in zip(found, q, strict=True)]).reshape(q.shape)
            return there, np.array([one is not None for one in found], dtype=np.bool_)
        there = np.array(q, dtype=np.float64)
        done = np.asarray(np.isfinite(there).all(axis=1), dtype=np.bool_)
        for loop in self._compiled:
            kernel.retract(*loop.arrays, there, done)
        return there, done

    def walk(self, a: Array, b: Array, limits: tuple[Array, Array], unit: Array, step: float, most: int
    ) -> Array:  # fmt: skip
        """Configurations (N, nq) from a towards b (nq,), along the loops: as far as these, limits and `most` let it.

        Args:
            unit: (nq,) what counts as 1.
            step: units: how far they are apart at most, before loops are shut.
        """
        assert self._compiled is not None
        out = np.empty((most, len(a)))
        ends = np.array(a), np.array(b), np.array(limits[0]), np.array(limits[1])
        return out[: kernel.walk(*self._compiled[0].arrays, *ends, unit, step, STRAY, CREEPING, out)]

    def _by_rows(self, q: Array) -> Array | None:
        for _ in range(STEPS):
            e, J = self._loops.rows(q)
            if float(np.abs(e).max()) < SHUT:
                return q
            B = _inverse(J * self._free)
            if B is None:
                return None
            u = B @ e
            q = self._loops.step(q, -u * min(1.0, LONGEST / max(float(np.sqrt(u @ u)), 1e-300)))
        return None


def _inverse(J: Array) -> Array | None:
    """(n, m) that takes rows to the shortest steps, of J (m, n)."""
    squares = J @ J.T
    squares.flat[:: len(J) + 1] += ROUNDING  # rows may say the same twice
    try:
        return J.T @ np.linalg.inv(squares)
    except np.linalg.LinAlgError:
        return None


def _loop(loops: Loops, part: Part, free: Flags) -> _Loop:
    packed = part.problem.part.packed
    return _Loop(packed.ints, packed.floats, part.rows, free[part.v].astype(np.float64), _numbers(loops, part))


def _numbers(loops: Loops, part: Part) -> npt.NDArray[np.int64]:
    """Where in q the freedoms of a part are."""
    space, mine = loops.mechanism.space, set(part.v.tolist())
    found = [c for v, c in enumerate(loops.columns.tolist()) if c >= 0 and v in mine]
    for first, v in zip(space.balls_q.tolist(), space.balls_v.tolist(), strict=True):
        found += range(first, first + 4) if v in mine else ()
    return np.array(found, dtype=np.int64)
