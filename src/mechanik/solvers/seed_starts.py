"""Where a search starts again, in turn: from a seed table best first, then by Halton's sequence; or at random."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from mechanik.solvers.options import Options
from mechanik.solvers.problem import Problem
from mechanik.solvers.seed_table import ENTRIES, Mask, moving_numbers, tables_of
from mechanik.solvers.starts import halton_starts, random_starts
from mechanik.solvers.watch import Watch
from mechanik.spatial.array import Array

STARTS_AT_A_TIME = 128
BEFORE_SHUTTING = 8
"""How many open starts are tried before as many are shut as restarts are left. That costs what the attempts would cost,
once; it is of use to hard targets alone, and most are found before."""


class Asked(Protocol):
    """What is needed of a call."""

    @property
    def options(self) -> Options: ...
    @property
    def bounds(self) -> tuple[Array, Array]: ...
    @property
    def locked(self) -> Mask: ...
    @property
    def rng(self) -> np.random.Generator | None: ...
    @property
    def watch(self) -> Watch: ...


def starts_in_turn(call: Asked, problem: Problem, q: Array) -> Iterator[Array]:
    """Blocks (n, nq) of as many starts as are asked for in all, each made when it is needed; at least one block.

    What the problem does not move is as in q.
    """
    left = call.options.further_starts
    if left == 0:
        yield np.zeros((0, len(q)))
    blocks = _seeds(call, problem, q) if call.rng is None else _draws(call, problem, q, call.rng)
    while left > 0:
        starts = np.ascontiguousarray(next(blocks)[:left])
        left -= len(starts)
        yield starts


def easily_shut(problem: Problem, bounds: tuple[Array, Array], most: int) -> Array:
    """Some starts (n, nq) of a problem with loops, those that are the least open, for whoever cannot ask again."""
    nq = problem.mechanism.nq
    table = tables_of(problem).table(bounds, np.ones(nq, dtype=np.bool_), np.zeros(nq))
    return np.ascontiguousarray(table.least_open(min(most, BEFORE_SHUTTING)))


def _seeds(call: Asked, problem: Problem, q: Array) -> Iterator[Array]:
    mine = moving_numbers(problem, call.locked)
    table = tables_of(problem).table(call.bounds, mine, q)
    starts = table.best_first(problem)
    if table.has_loops and problem.part.packed.sizes["functions"] == 0:
        yield starts[:BEFORE_SHUTTING]
        left = call.options.further_starts - BEFORE_SHUTTING
        starts = table.shut_best_first(problem, left, call.options, call.watch)
    for first in range(0, len(starts), STARTS_AT_A_TIME):
        yield starts[first : first + STARTS_AT_A_TIME]
    space = replace(problem.mechanism.space, lower=call.bounds[0], upper=call.bounds[1])
    first = ENTRIES
    while True:
        yield np.where(mine, halton_starts(space, STARTS_AT_A_TIME, first), q)
        first += STARTS_AT_A_TIME


def _draws(call: Asked, problem: Problem, q: Array, rng: np.random.Generator) -> Iterator[Array]:
    mine = moving_numbers(problem, call.locked)
    space = replace(problem.mechanism.space, lower=call.bounds[0], upper=call.bounds[1])
    left = call.options.further_starts
    while True:
        yield np.where(mine, random_starts(space, min(left, STARTS_AT_A_TIME), rng), q)
        left -= STARTS_AT_A_TIME
