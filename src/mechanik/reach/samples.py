"""Configurations spread over all that a mechanism can take, with its loops shut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mechanik.errors import StructureError
from mechanik.ik import Solver
from mechanik.mechanism import Mechanism
from mechanik.objectives import InBox
from mechanik.reach.rows import solve_rows
from mechanik.solvers.freedoms import Names, as_bounds, places
from mechanik.solvers.starts import halton_starts, random_starts
from mechanik.spatial.array import Array, ArrayLike

ASSEMBLIES = 200
"""How many starts are brought together where there are loops: enough to meet every way to assemble them."""
ANYWHERE = 1e6
"""m, half the width of a box that nothing leaves: to ask for no more than that loops are shut."""


@dataclass(frozen=True, slots=True, eq=False)
class Freedom:
    """What may move and how far, as the solvers take it and as arrays.

    Attributes:
        limits, lock: by name, as they were given.
        lower, upper: (nq,).
        locked_q: numbers of q that do not move.
        locked_v: (nv,) 1 for the freedoms that do not.
    """

    limits: Mapping[str, ArrayLike] | None
    lock: tuple[str, ...]
    lower: Array
    upper: Array
    locked_q: tuple[int, ...]
    locked_v: Array


def as_freedom(mechanism: Mechanism, limits: Mapping[str, ArrayLike] | None, lock: Names | str | None) -> Freedom:
    """The door for limits and locks."""
    lower, upper = as_bounds(mechanism, limits)
    given = [lock] if isinstance(lock, str) else list(lock or ())
    names = tuple(one if isinstance(one, str) else mechanism.name_of(one) for one in given)
    held_q: list[int] = []
    held_v = np.zeros(mechanism.nv)
    for name in names:
        q, v = places(mechanism, name)
        held_q += q
        held_v[v] = 1.0
    return Freedom(limits, names, lower, upper, tuple(held_q), held_v)


def open_samples(mechanism: Mechanism, freedom: Freedom, count: int, rng: np.random.Generator | None) -> Array:
    """(count, nq), evenly inside the limits: Halton's sequence, or at random if there is an `rng`."""
    space = replace(mechanism.space, lower=freedom.lower, upper=freedom.upper)
    q = halton_starts(space, count) if rng is None else random_starts(space, count, rng)
    held = list(freedom.locked_q)
    q[:, held] = mechanism.q[held]
    return q


def shut_samples(
    mechanism: Mechanism, link: str, freedom: Freedom, rng: np.random.Generator | None, threads: int | None
) -> Array:
    """(n, nq) with every loop shut, found from the present configuration and from starts all over the limits."""
    corner = np.full(3, ANYWHERE)
    assemble = Solver(mechanism, InBox(link, -corner, corner), limits=freedom.limits, lock=freedom.lock or None)
    starts = np.vstack([mechanism.q, open_samples(mechanism, freedom, ASSEMBLIES, rng)])
    q, success, _ = solve_rows(assemble, np.zeros((len(starts), 3)), starts, threads)
    if not success.any():
        raise StructureError(
            f"no configuration of {mechanism.name or 'the mechanism'} was found with its loops shut inside the limits, "
            f"so there is no reach; {ASSEMBLIES} starts were tried"
        )
    return q[success]
