"""Pairs of bodies to check for collision: arguments `avoid`, `allow` and `forbid`, and allowed collisions.

Pairs of links are left out if they are one rigid body, adjacent, or in collision in every sampled configuration.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik.collision.collision_body import CollisionBody, MeshMode, Obstacle, link_bodies
from mechanik.collision.collision_tables import CollisionTables, build_collision_tables
from mechanik.errors import DuplicateName, InvalidArgument, ShapeError, StructureError, UnknownName
from mechanik.kernels.distance import collision_layout as at
from mechanik.kernels.distance.collision_layout import RESULT_PARTNER
from mechanik.kernels.nodes import PARENT
from mechanik.model.configuration_space import ConfigurationSpace
from mechanik.model.frame import Frame, Link
from mechanik.model.mechanism import Mechanism
from mechanik.model.shapes import Shape, ShapeInstance
from mechanik.spatial import Pose
from mechanik.spatial.array import Array, ArrayLike

SAME_BODY, ADJACENT, ALWAYS, NEVER = "same body", "adjacent", "always", "never"
"""Reasons to leave pairs out: welded to each other; a joint between them; in collision in every sample; in none."""

Pair = tuple[str, str]


def link_nodes(mechanism: Mechanism) -> dict[str, int]:
    """Return for each link the node that moves it; links with the same node are welded, and -1 does not move."""
    ends = mechanism.kinematics.link_nodes
    return {name: int(end[PARENT]) for name, end in zip(mechanism.links, ends, strict=True)}


def adjacent_pairs(mechanism: Mechanism, names: Iterable[str]) -> dict[Pair, str]:
    """Return the pairs of named links that are one rigid body or connected by a joint or closure, with the reason.

    Welded links count as one body. A joint with all six dofs connects nothing: a floating body can fall on the ground.
    """
    carrier = link_nodes(mechanism)
    joined: set[frozenset[int]] = set()
    for joint in mechanism.joints.values():
        child = joint.closure.link if joint.closure is not None else next(iter(joint.children), None)
        if isinstance(child, Link) and isinstance(joint.parent, Frame) and len(joint.dof) < 6:
            ends = (carrier[mechanism.name_of(joint.parent)], carrier[mechanism.name_of(child)])
            joined.add(frozenset(ends))
    found: dict[Pair, str] = {}
    for a, b in combinations(names, 2):
        if carrier[a] == carrier[b]:
            found[a, b] = SAME_BODY
        elif frozenset((carrier[a], carrier[b])) in joined:
            found[a, b] = ADJACENT
    return found


SELF = "self"
Avoid = str | Obstacle | Iterable[str | Obstacle]


@dataclass(frozen=True, slots=True)
class AvoidedObjects:
    """Parsed argument `avoid`.

    Attributes:
        self_collisions: whether links are checked against each other.
        obstacles: all with names.
    """

    self_collisions: bool
    obstacles: tuple[Obstacle, ...]


def parse_avoid(avoid: Avoid, links: Collection[str]) -> AvoidedObjects:
    """Parse the argument `avoid`; obstacles without a name get a number.

    Raises:
        InvalidArgument, UnknownName: an item is neither "self" nor an obstacle.
        DuplicateName: two bodies have the same name.
    """
    given = [avoid] if isinstance(avoid, str | Obstacle) else avoid
    if isinstance(given, Shape | ShapeInstance) or not isinstance(given, Iterable):
        raise InvalidArgument(_expected(given))
    things: list[object] = list(given)
    obstacles: list[Obstacle] = []
    for one in things:
        if isinstance(one, str):
            if one != SELF:
                raise UnknownName("thing to avoid", one, [SELF])
        elif isinstance(one, Obstacle):
            obstacles.append(one)
        else:
            raise InvalidArgument(_expected(one))
    return AvoidedObjects(SELF in things, _with_names(obstacles, links))


def parse_pairs(pairs: Iterable[tuple[str, str]], known: Sequence[str], what: str) -> set[Pair]:
    """Parse pairs of names; each pair is returned in both orders.

    Args:
        known: names of links and obstacles.
        what: name of the argument, for messages.

    Raises:
        InvalidArgument: an item is not a pair.
        UnknownName: a name is unknown.
        StructureError: a name is paired with itself.
    """
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise InvalidArgument(f"{what} takes pairs of names, [('hand', 'cup')], not {pairs!r}")
    found: set[Pair] = set()
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise InvalidArgument(f"{what} takes pairs of names, [('hand', 'cup')]; {pair!r} is no pair")
        for name in pair:
            if name not in known:
                raise UnknownName("link or obstacle", name, known)
        a, b = pair
        if a == b:
            raise StructureError(f"{what}: {a!r} is paired with itself")
        found |= {(a, b), (b, a)}
    return found


def _with_names(obstacles: Sequence[Obstacle], links: Collection[str]) -> tuple[Obstacle, ...]:
    taken = {*links, *(one.name for one in obstacles)}
    seen: set[str] = set()
    found, number = list[Obstacle](), 0
    for one in obstacles:
        if one.name in links:
            raise DuplicateName(f"an obstacle and a link are both called {one.name!r}; rename the obstacle")
        if one.name and one.name in seen:
            raise DuplicateName(f"two obstacles are called {one.name!r}; names must be unique")
        name = one.name
        while not name:
            number += 1
            name = "" if f"obstacle{number}" in taken else f"obstacle{number}"
        seen.add(name)
        found.append(one if one.name else Obstacle(one.shape, one.pose.position, one.pose.wxyz, name=name))
    return tuple(found)


def _expected(given: object) -> str:
    if isinstance(given, Shape | ShapeInstance):
        return f"avoid takes 'self' and obstacles; make the shape one: Obstacle({given!r}, position)"
    if isinstance(given, Pose):
        return (
            f"avoid takes 'self' and obstacles, which have a shape: Obstacle(Box((1, 1, 1)), position), not {given!r}"
        )
    return f"avoid takes 'self' and obstacles, ['self', Obstacle(Box((1, 1, 1)), (1, 0, 0.5))], not {given!r}"


def find_allowed_collisions(
    mechanism: Mechanism,
    *,
    samples: int = 1000,
    never: bool = False,
    configurations: ArrayLike | None = None,
    meshes: MeshMode = "auto",
) -> dict[Pair, str]:
    """Find the pairs of links that need no collision check, each with the reason.

    Assign the result to `mechanism.allowed_collisions` to store it. "same body" and "adjacent" follow from the joints.
    "always" are pairs that are in collision in every sample, which no solver can separate. The samples are spread
    evenly over the limits and are the same at each call. Loops are closed for each sample, which takes time.

    Args:
        mechanism: its links have shapes.
        samples: number of configurations to check.
        never: whether to include pairs that are in collision in no sample, as "never". This saves time but is a guess:
            more samples make it better.
        configurations: (n, nq), checked instead of samples; their loops are not closed.
        meshes: as in `Collider`.

    Returns:
        Reason by pair of link names.

    Raises:
        InvalidArgument, ShapeError: an argument has the wrong type or shape.
        StructureError: no link has a shape.

    Example:
        >>> pairs = mk.find_allowed_collisions(mk.gallery.panda(), samples=50)
        >>> pairs["panda_link1", "panda_link2"]
        'adjacent'
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"only a mechanism has links that can touch, not {mechanism!r}")
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 1:
        raise ShapeError(f"samples is how many configurations are looked at, 1 or more, not {samples!r}")
    if configurations is None:
        q = sample_configurations(mechanism, int(samples))
    else:
        q = np.atleast_2d(mechanism.space.check_q(configurations)).reshape(-1, mechanism.nq)
        if not len(q):
            raise ShapeError("configurations is empty; at least one is needed to see what touches")
    return allowed_collisions_at(mechanism, link_bodies(mechanism, meshes), q, never)


def allowed_collisions_at(
    mechanism: Mechanism, bodies: Sequence[CollisionBody], q: Array, never: bool = False
) -> dict[Pair, str]:
    """Find the pairs of bodies that need no check from configurations q (n, nq); see `find_allowed_collisions`."""
    names = [body.name for body in bodies]
    found = adjacent_pairs(mechanism, names)
    tables = _all_pairs(mechanism, bodies, found)
    touches: Counter[Pair] = Counter()
    for one in q:
        for a, b in tables.near_pairs(np.array(one[None]), 0.0)[:, : RESULT_PARTNER + 2].astype(int).tolist():
            touches[_pair_names(tables, names, a, b)] += 1
    for pair in combinations(names, 2):
        if pair not in found and touches[pair] == len(q):
            found[pair] = ALWAYS
        elif pair not in found and never and not touches[pair]:
            found[pair] = NEVER
    return {pair: found[pair] for pair in combinations(names, 2) if pair in found}


def _all_pairs(mechanism: Mechanism, bodies: Sequence[CollisionBody], left_out: dict[Pair, str]) -> CollisionTables:
    moving, standing = [one for one in bodies if one.node >= 0], [one for one in bodies if one.node < 0]

    def counts(a: CollisionBody, b: CollisionBody) -> bool:
        return (a.name, b.name) not in left_out and (b.name, a.name) not in left_out

    kept_off = np.array([[counts(a, b) for b in standing] for a in moving], np.bool_)
    pairs = [(i, j) for i, j in combinations(range(len(moving)), 2) if counts(moving[i], moving[j])]
    return build_collision_tables(
        mechanism.kinematics, moving, standing, kept_off.reshape(len(moving), len(standing)), pairs
    )


def _pair_names(tables: CollisionTables, names: Sequence[str], a: int, b: int) -> Pair:
    one, other = tables.collision_bodies[a].name, tables.collision_bodies[b].name
    return (one, other) if names.index(one) < names.index(other) else (other, one)


def sample_configurations(mechanism: Mechanism, count: int) -> Array:
    """Return configurations (n, nq) spread evenly over the limits, and all named ones, with loops closed.

    Configurations that cannot be closed are left out. If none is left, the present configuration is returned.
    """
    named = [np.array(q) for q in mechanism.configurations.values()]
    q = np.array([*named, *richtmyer_samples(mechanism.space, max(1, count - len(named)))]).reshape(-1, mechanism.nq)
    if mechanism.closures or mechanism.joint_constraints:
        shut = [mechanism.assemble(q0=one) for one in q]
        q = np.array([one.q for one in shut if one.success]).reshape(-1, mechanism.nq)
    return q if len(q) else mechanism.q[None]


def richtmyer_samples(space: ConfigurationSpace, count: int) -> Array:
    """Return low-discrepancy samples (count, nq) inside the limits.

    Dofs without limits have the range of `ConfigurationSpace.random`. The k-th sample has the fractional parts of k
    sqrt(p), with one prime p for each dimension (Richtmyer's sequence). Halton's sequence needs thousands of samples
    before it fills the limits of a humanoid.
    """
    numbers = len(space.scalars_q) + 3 * len(space.quaternions_q)
    u = np.mod(np.arange(1, count + 1)[:, None] * np.sqrt(_primes(numbers)), 1.0)
    reach = np.where(space.rotates[space.scalars_v], math.pi, 1.0)
    lower, upper = space.lower[space.scalars_q], space.upper[space.scalars_q]
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * reach, -reach))
    high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2 * reach, reach))
    q = np.empty((count, space.nq))
    q[:, space.scalars_q] = low + (high - low) * u[:, : len(low)]
    for ball, k in enumerate(space.quaternions_q):
        a, b, c = u[:, len(low) + 3 * ball : len(low) + 3 * ball + 3].T  # Shoemake's uniform rotations
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


ALWAYS_SAMPLES = 100
"""Number of configurations that are checked before pairs that always collide are left out."""
ALWAYS_SAMPLES_WITH_LOOPS = 10
"""The same for mechanisms with loops, of which a solver needs some milliseconds to close each."""


@dataclass(frozen=True, eq=False)
class CollisionPairs:
    """Pairs to check, with the tables for the kernels.

    Attributes:
        tables: for the kernels.
        bodies: names of links, then of obstacles.
        allowed_collisions: pairs of links that are not checked, with the reason.
    """

    tables: CollisionTables
    bodies: tuple[str, ...]
    allowed_collisions: dict[Pair, str]

    @cached_property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """Arguments of the query kernel."""
        return self.tables.arrays

    @cached_property
    def pair_count(self) -> int:
        """Number of checked pairs."""
        return int(self.tables.static_pair_mask.sum()) + len(self.tables.partners)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """All checked pairs, by name."""
        tables, names = self.tables, [one.name for one in self.tables.collision_bodies]
        found = [(names[a], names[tables.moving + b]) for a, b in np.argwhere(tables.static_pair_mask).tolist()]
        for guard in tables.pair_groups:
            a, first, count = guard[[at.PAIR_BODY, at.FIRST_PARTNER, at.PARTNER_COUNT]].tolist()
            found += [(names[a], names[b]) for b in tables.partners[first : first + max(0, count)].tolist()]
        return tuple(found)

    @cached_property
    def distance_names(self) -> tuple[str, ...]:
        """Label of each distance row."""
        tables, names, found = self.tables, [one.name for one in self.tables.collision_bodies], list[str]()
        for a, first, count, _, rows in tables.pair_groups.tolist():
            if count == 1:
                found.append(f"{names[a]} - {names[tables.partners[first]]}")
            else:
                found += [f"{names[a]} - {'world' if count < 0 else 'links'} {k + 1}" for k in range(rows)]
        return tuple(found)

    def with_body(self, body: CollisionBody) -> CollisionPairs:
        """Return the pairs with an obstacle at another pose."""
        return replace(self, tables=self.tables.with_body(body))


def build_collision_pairs(
    mechanism: Mechanism,
    links: Sequence[CollisionBody],
    obstacles: Sequence[CollisionBody],
    self_collisions: bool,
    allow: set[Pair],
    forbid: set[Pair],
) -> CollisionPairs:
    """Choose the pairs to check and build the tables for the kernels.

    Args:
        self_collisions: whether links are checked against each other.
        allow, forbid: pairs of names, in both orders.

    Raises:
        StructureError: a pair is both allowed and forbidden, or a forbidden pair cannot be checked.
    """
    for a, b in sorted(allow & forbid):
        raise StructureError(f"{a!r} and {b!r} are allowed to touch and forbidden to; leave one out")
    left_out = _left_out(mechanism, links) if self_collisions else {}
    moving = [one for one in links if one.node >= 0]
    standing = [*(one for one in links if one.node < 0), *obstacles]
    _refuse_idle(forbid, {one.name for one in moving}, {one.name for one in standing})
    walls = {one.name for one in obstacles}

    def counts(a: str, b: str) -> bool:
        if (a, b) in forbid:
            return True
        if (a, b) in allow or (a, b) in left_out or (b, a) in left_out:
            return False
        return self_collisions or a in walls or b in walls

    kept_off = np.ones((len(moving), len(standing)), np.bool_)
    special = {name for pair in (*left_out, *allow, *forbid) for name in pair}
    for k, b in enumerate(standing):  # skips the slow test for most obstacles, of which there may be ten thousand
        if b.name in special or b.name not in walls:
            kept_off[:, k] = [counts(a.name, b.name) for a in moving]
    pairs = [(i, j) for i, j in combinations(range(len(moving)), 2) if counts(moving[i].name, moving[j].name)]
    tables = build_collision_tables(mechanism.kinematics, moving, standing, kept_off, pairs)
    names = (*(one.name for one in links), *(one.name for one in obstacles))
    return CollisionPairs(tables, names, left_out)


def _left_out(mechanism: Mechanism, links: Sequence[CollisionBody]) -> dict[Pair, str]:
    """Return the mechanism's allowed collisions and the welded pairs; if it has none, those found by sampling."""
    known = mechanism.allowed_collisions
    if known is None:
        return _seen(mechanism, links)
    welded = {
        pair: why for pair, why in adjacent_pairs(mechanism, [one.name for one in links]).items() if why == SAME_BODY
    }
    return {**welded, **known}


def _seen(mechanism: Mechanism, links: Sequence[CollisionBody]) -> dict[Pair, str]:
    """Return the allowed collisions found by sampling; cached while joints and shapes stay, since it is slow."""
    shapes = tuple(link.collisions for link in mechanism.links.values())
    kept = mechanism._cache.get("unchecked")
    if not (isinstance(kept, _SampledPairs) and kept.shapes == shapes):
        looks = ALWAYS_SAMPLES_WITH_LOOPS if mechanism.closures or mechanism.joint_constraints else ALWAYS_SAMPLES
        kept = _SampledPairs(shapes, allowed_collisions_at(mechanism, links, sample_configurations(mechanism, looks)))
        mechanism._cache["unchecked"] = kept
    return kept.pairs


@dataclass(frozen=True, slots=True)
class _SampledPairs:
    shapes: tuple[tuple[ShapeInstance, ...], ...]
    pairs: dict[Pair, str]


def _refuse_idle(forbid: set[Pair], moving: set[str], standing: set[str]) -> None:
    """Raise for forbidden pairs that have no shape or cannot move."""
    for a, b in sorted(forbid):
        for name in (a, b):
            if name not in moving | standing:
                raise StructureError(f"forbid: link {name!r} has no shape to bump with; give it collisions")
        if a in standing and b in standing:
            raise StructureError(f"forbid: neither {a!r} nor {b!r} moves, so that nothing can keep them apart")
