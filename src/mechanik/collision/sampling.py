"""Pairs of links that touch in every configuration, or in none, found by looking at many."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from mechanik.collision.body import Body, Meshes, link_bodies
from mechanik.collision.pairs import ALWAYS, NEVER, Pair, joined_pairs
from mechanik.collision.tables import Tables, build_tables
from mechanik.errors import ShapeError, WrongKind
from mechanik.kernels.distance.watch_layout import PARTNER
from mechanik.mechanism.configuration import ConfigurationSpace
from mechanik.mechanism.mechanism import Mechanism
from mechanik.spatial.array import Array, ArrayLike


def find_unchecked(
    mechanism: Mechanism,
    *,
    samples: int = 1000,
    never: bool = False,
    configurations: ArrayLike | None = None,
    meshes: Meshes = "auto",
) -> dict[Pair, str]:
    """Pairs of links that need no look, each with the reason; assign it to `mechanism.unchecked` to keep it.

    "same body" and "adjacent" follow from the joints; "always" are pairs that touch in every sample, which no solver
    could part; the samples are spread evenly over the limits, and the same each time. Loops are shut for each, which
    takes its time.

    Args:
        samples: how many configurations are looked at.
        never: whether to leave out pairs that touch in no sample as well. It saves time and is a guess: the more
            samples, the better.
        configurations: (n, nq), looked at instead of samples; their loops are taken as they are.
        meshes: as in `Collider`.
    """
    if not isinstance(mechanism, Mechanism):
        raise WrongKind(f"only a mechanism has links that can touch, not {mechanism!r}")
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 1:
        raise ShapeError(f"samples is how many configurations are looked at, 1 or more, not {samples!r}")
    if configurations is None:
        q = spread(mechanism, int(samples))
    else:
        q = np.atleast_2d(mechanism.space.check_q(configurations)).reshape(-1, mechanism.nq)
        if not len(q):
            raise ShapeError("configurations is empty; at least one is needed to see what touches")
    return unchecked_at(mechanism, link_bodies(mechanism, meshes), q, never)


def unchecked_at(mechanism: Mechanism, bodies: Sequence[Body], q: Array, never: bool = False) -> dict[Pair, str]:
    """As `find_unchecked`, of some bodies at q (n, nq)."""
    names = [body.name for body in bodies]
    found = joined_pairs(mechanism, names)
    tables = _all_pairs(mechanism, bodies, found)
    touches: Counter[Pair] = Counter()
    for one in q:
        for a, b in tables.near_pairs(np.array(one[None]), 0.0)[:, : PARTNER + 2].astype(int).tolist():
            touches[_named(tables, names, a, b)] += 1
    for pair in combinations(names, 2):
        if pair not in found and touches[pair] == len(q):
            found[pair] = ALWAYS
        elif pair not in found and never and not touches[pair]:
            found[pair] = NEVER
    return {pair: found[pair] for pair in combinations(names, 2) if pair in found}


def _all_pairs(mechanism: Mechanism, bodies: Sequence[Body], left_out: dict[Pair, str]) -> Tables:
    moving, standing = [one for one in bodies if one.node >= 0], [one for one in bodies if one.node < 0]

    def counts(a: Body, b: Body) -> bool:
        return (a.name, b.name) not in left_out and (b.name, a.name) not in left_out

    kept_off = np.array([[counts(a, b) for b in standing] for a in moving], np.bool_)
    pairs = [(i, j) for i, j in combinations(range(len(moving)), 2) if counts(moving[i], moving[j])]
    return build_tables(mechanism.kinematics, moving, standing, kept_off.reshape(len(moving), len(standing)), pairs)


def _named(tables: Tables, names: Sequence[str], a: int, b: int) -> Pair:
    one, other = tables.members[a].name, tables.members[b].name
    return (one, other) if names.index(one) < names.index(other) else (other, one)


def spread(mechanism: Mechanism, count: int) -> Array:
    """Configurations (n, nq) spread evenly over the limits, and all that have names; loops shut and laws kept.

    Those that cannot be shut are left out; if none is left, where the mechanism stands has to do.
    """
    named = [np.array(q) for q in mechanism.configurations.values()]
    q = np.array([*named, *even_samples(mechanism.space, max(1, count - len(named)))]).reshape(-1, mechanism.nq)
    if mechanism.closures or mechanism.laws:
        shut = [mechanism.assemble(q0=one) for one in q]
        q = np.array([one.q for one in shut if one.success]).reshape(-1, mechanism.nq)
    return q if len(q) else mechanism.q[None]


def even_samples(space: ConfigurationSpace, count: int) -> Array:
    """(count, nq) inside the limits; freedoms without limits range as in `ConfigurationSpace.random`.

    The k-th sample has the fractions of k sqrt(p), with one prime p for each number (Richtmyer's sequence). Halton's
    would need thousands of samples before it fills the limits of a humanoid.
    """
    numbers = len(space.scalars_q) + 3 * len(space.balls_q)
    u = np.mod(np.arange(1, count + 1)[:, None] * np.sqrt(_primes(numbers)), 1.0)
    reach = np.where(space.rotates[space.scalars_v], math.pi, 1.0)
    lower, upper = space.lower[space.scalars_q], space.upper[space.scalars_q]
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * reach, -reach))
    high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2 * reach, reach))
    q = np.empty((count, space.nq))
    q[:, space.scalars_q] = low + (high - low) * u[:, : len(low)]
    for ball, k in enumerate(space.balls_q):
        a, b, c = u[:, len(low) + 3 * ball : len(low) + 3 * ball + 3].T  # Shoemake's even turns
        near, far = np.sqrt(1 - a), np.sqrt(a)
        b, c = 2 * math.pi * b, 2 * math.pi * c
        q[:, k : k + 4] = np.column_stack([near * np.sin(b), near * np.cos(b), far * np.sin(c), far * np.cos(c)])
    return q


def _primes(count: int) -> Array:
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found if prime * prime <= candidate):
            found.append(candidate)
        candidate += 1
    return np.array(found, dtype=np.float64)
