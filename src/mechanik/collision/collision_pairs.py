"""Pairs of bodies to check for collision: arguments `avoid`, `allow` and `forbid`, and allowed collisions.

If a mechanism does not store its allowed collisions, pairs of links are not checked if they are one rigid body,
adjacent, or in collision in every sampled configuration. `sample_configurations` makes the samples.
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
from mechanik.errors import InvalidArgument, ShapeError, StructureError, UnknownName
from mechanik.kernels.distance.collision_layout import ALL_STATIC
from mechanik.kernels.nodes import open_nodes
from mechanik.model.configuration_space import ConfigurationSpace
from mechanik.model.frame import Frame, Link
from mechanik.model.mechanism import Mechanism
from mechanik.model.shapes import Shape, ShapeInstance
from mechanik.spatial import Pose
from mechanik.spatial.array import Array, ArrayLike

SAME_BODY, ADJACENT, ALWAYS, NEVER = "same body", "adjacent", "always", "never"
"""Reasons not to check a pair: the links are welded together; they are connected by a joint; they are in collision in
every sample; they are in collision in no sample."""

Pair = tuple[str, str]


def link_nodes(mechanism: Mechanism) -> dict[str, int]:
    """Return for each link the index of the node that moves it, -1 for links that do not move.

    Links with the same node are welded together.
    """
    nodes = open_nodes(mechanism.kinematics.link_nodes)
    return {name: node.parent for name, node in zip(mechanism.links, nodes, strict=True)}


def adjacent_pairs(mechanism: Mechanism, names: Iterable[str]) -> dict[Pair, str]:
    """Return the pairs of named links that are one rigid body or connected by a joint or closure, with the reason.

    Welded links count as one body. A joint with all six dofs does not count as a connection, since a floating body can
    collide with the ground.
    """
    node_of_link = link_nodes(mechanism)
    connected_nodes: set[frozenset[int]] = set()
    for joint in mechanism.joints.values():
        child = joint.closure.link if joint.closure is not None else next(iter(joint.children), None)
        if isinstance(child, Link) and isinstance(joint.parent, Frame) and len(joint.dof) < 6:
            nodes = (node_of_link[mechanism.name_of(joint.parent)], node_of_link[mechanism.name_of(child)])
            connected_nodes.add(frozenset(nodes))
    reasons: dict[Pair, str] = {}
    for a, b in combinations(names, 2):
        if node_of_link[a] == node_of_link[b]:
            reasons[a, b] = SAME_BODY
        elif frozenset((node_of_link[a], node_of_link[b])) in connected_nodes:
            reasons[a, b] = ADJACENT
    return reasons


SELF = "self"
Avoid = str | Obstacle | Iterable[str | Obstacle]


@dataclass(frozen=True, slots=True)
class AvoidedObjects:
    """Parsed argument `avoid`.

    Attributes:
        self_collisions: whether links are checked against each other.
        obstacles: the obstacles, each with a name.
    """

    self_collisions: bool
    obstacles: tuple[Obstacle, ...]


def parse_avoid(avoid: Avoid, links: Collection[str]) -> AvoidedObjects:
    """Parse the argument `avoid`; obstacles without a name get the names obstacle1, obstacle2, ...

    Raises:
        InvalidArgument, UnknownName: an item is neither "self" nor an obstacle.
        StructureError: two bodies have the same name.
    """
    items = [avoid] if isinstance(avoid, str | Obstacle) else avoid
    if isinstance(items, Shape | ShapeInstance) or not isinstance(items, Iterable):
        raise InvalidArgument(_expected_text(items))
    item_list: list[object] = list(items)
    obstacles: list[Obstacle] = []
    for item in item_list:
        if isinstance(item, str):
            if item != SELF:
                raise UnknownName("item of avoid", item, [SELF])
        elif isinstance(item, Obstacle):
            obstacles.append(item)
        else:
            raise InvalidArgument(_expected_text(item))
    return AvoidedObjects(SELF in item_list, _name_obstacles(obstacles, links))


def parse_pairs(pairs: Iterable[tuple[str, str]], known_names: Sequence[str], label: str) -> set[Pair]:
    """Parse pairs of names; each pair is returned in both orders.

    Args:
        known_names: names of links and obstacles.
        label: name of the argument, for messages.

    Raises:
        InvalidArgument: an item is not a pair.
        UnknownName: a name is unknown.
        StructureError: a name is paired with itself.
    """
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise InvalidArgument(f"{label} must be pairs of names, such as [('hand', 'cup')], not {pairs!r}")
    ordered_pairs: set[Pair] = set()
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise InvalidArgument(f"{label} must be pairs of names, such as [('hand', 'cup')]; {pair!r} is not a pair")
        for name in pair:
            if name not in known_names:
                raise UnknownName("link or obstacle", name, known_names)
        a, b = pair
        if a == b:
            raise StructureError(f"{label}: {a!r} is paired with itself")
        ordered_pairs |= {(a, b), (b, a)}
    return ordered_pairs


def _name_obstacles(obstacles: Sequence[Obstacle], links: Collection[str]) -> tuple[Obstacle, ...]:
    used_names = {*links, *(obstacle.name for obstacle in obstacles)}
    seen_names: set[str] = set()
    named_obstacles, obstacle_number = list[Obstacle](), 0
    for obstacle in obstacles:
        if obstacle.name in links:
            raise StructureError(f"an obstacle and a link are both called {obstacle.name!r}; rename the obstacle")
        if obstacle.name and obstacle.name in seen_names:
            raise StructureError(f"two obstacles are called {obstacle.name!r}; names must be unique")
        name = obstacle.name
        while not name:
            obstacle_number += 1
            name = "" if f"obstacle{obstacle_number}" in used_names else f"obstacle{obstacle_number}"
        seen_names.add(name)
        named_obstacles.append(
            obstacle
            if obstacle.name
            else Obstacle(obstacle.shape, obstacle.pose.position, obstacle.pose.wxyz, name=name)
        )
    return tuple(named_obstacles)


def _expected_text(item: object) -> str:
    if isinstance(item, Shape | ShapeInstance):
        return f"avoid takes 'self' and obstacles, not shapes; write Obstacle({item!r}, position)"
    if isinstance(item, Pose):
        return (
            f"avoid takes 'self' and obstacles with a shape, such as Obstacle(Box((1, 1, 1)), position), not {item!r}"
        )
    return f"avoid takes 'self' and obstacles, such as ['self', Obstacle(Box((1, 1, 1)), (1, 0, 0.5))], not {item!r}"


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
    "always" are pairs that are in collision in every sample, and so most likely in every configuration. The samples are
    the named configurations and others that are spread evenly over the limits, the same at each call. Loops are closed
    for each sample, which takes time; samples whose loops cannot be closed are dropped.

    Args:
        mechanism: a mechanism whose links have shapes.
        samples: number of configurations to check; the named configurations and at least one other are always checked.
        never: whether to include pairs that are in collision in no sample, as "never". This makes later checks faster,
            but such a pair may still collide elsewhere; with more samples this is less likely.
        configurations: (n, nq), checked instead of samples, as they are: loops are not closed first.
        meshes: as in `Collider`.

    Returns:
        Reason by pair of link names.

    Raises:
        InvalidArgument, ShapeError: an argument has the wrong type or shape, or a collision shape has no volume.
        StructureError: no link has a shape.
        FormatError: a mesh cannot be read.
        MissingExtra: the extra `collision` is not installed, and `meshes` is "exact" or a mesh file has a type that
            only this extra can read.

    Example:
        >>> pairs = mk.find_allowed_collisions(mk.gallery.panda(), samples=50)
        >>> pairs["panda_link1", "panda_link2"]
        'adjacent'
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"find_allowed_collisions needs a Mechanism, not {mechanism!r}")
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 1:
        raise ShapeError(f"samples must be an integer of 1 or more, not {samples!r}")
    if configurations is None:
        q = sample_configurations(mechanism, int(samples))
    else:
        q = np.atleast_2d(mechanism.space.check_q(configurations)).reshape(-1, mechanism.nq)
        if not len(q):
            raise ShapeError("configurations is empty; give at least one")
    return allowed_collisions_at(mechanism, link_bodies(mechanism, meshes), q, never)


def allowed_collisions_at(
    mechanism: Mechanism, bodies: Sequence[CollisionBody], q: Array, never: bool = False
) -> dict[Pair, str]:
    """Return the pairs that need no check, according to configurations q (n, nq); see `find_allowed_collisions`."""
    names = [body.name for body in bodies]
    reasons = adjacent_pairs(mechanism, names)
    tables = _tables_of_all_pairs(mechanism, bodies, reasons)
    collision_counts: Counter[Pair] = Counter()
    for configuration in q:
        for result in tables.near_pairs(np.array(configuration[None]), 0.0):
            collision_counts[_pair_names(tables, names, result.body, result.partner)] += 1
    for pair in combinations(names, 2):
        if pair not in reasons and collision_counts[pair] == len(q):
            reasons[pair] = ALWAYS
        elif pair not in reasons and never and not collision_counts[pair]:
            reasons[pair] = NEVER
    return {pair: reasons[pair] for pair in combinations(names, 2) if pair in reasons}


def _tables_of_all_pairs(
    mechanism: Mechanism, bodies: Sequence[CollisionBody], skipped_pairs: dict[Pair, str]
) -> CollisionTables:
    moving_bodies, static_bodies = (
        [body for body in bodies if body.node >= 0],
        [body for body in bodies if body.node < 0],
    )

    def is_checked(a: CollisionBody, b: CollisionBody) -> bool:
        return (a.name, b.name) not in skipped_pairs and (b.name, a.name) not in skipped_pairs

    static_pair_mask = np.array([[is_checked(a, b) for b in static_bodies] for a in moving_bodies], np.bool_)
    pairs = [
        (i, j) for i, j in combinations(range(len(moving_bodies)), 2) if is_checked(moving_bodies[i], moving_bodies[j])
    ]
    return build_collision_tables(
        mechanism.kinematics,
        moving_bodies,
        static_bodies,
        static_pair_mask.reshape(len(moving_bodies), len(static_bodies)),
        pairs,
    )


def _pair_names(tables: CollisionTables, names: Sequence[str], a: int, b: int) -> Pair:
    name_a, name_b = tables.collision_bodies[a].name, tables.collision_bodies[b].name
    return (name_a, name_b) if names.index(name_a) < names.index(name_b) else (name_b, name_a)


def sample_configurations(mechanism: Mechanism, count: int) -> Array:
    """Return the named configurations and others spread evenly over the limits, (n, nq), with loops closed.

    Configurations whose loops cannot be closed are dropped. If none remains, the current configuration is returned.

    Args:
        count: number of samples; at least one sample is not a named configuration.
    """
    named_q = [np.array(q) for q in mechanism.configurations.values()]
    q = np.array([*named_q, *richtmyer_samples(mechanism.space, max(1, count - len(named_q)))]).reshape(
        -1, mechanism.nq
    )
    if mechanism.closures or mechanism.joint_constraints:
        assemblies = [mechanism.assemble(q0=start) for start in q]
        q = np.array([assembly.q for assembly in assemblies if assembly.success]).reshape(-1, mechanism.nq)
    return q if len(q) else mechanism.q[None]


def richtmyer_samples(space: ConfigurationSpace, count: int) -> Array:
    """Return low-discrepancy samples (count, nq) inside the limits.

    Dofs without limits have the range of `ConfigurationSpace.random`. The k-th sample has the fractional parts of k
    sqrt(p), with one prime p for each dimension (Richtmyer's sequence). Halton's sequence would need thousands of
    samples to cover the limits of a humanoid evenly.
    """
    dimension = len(space.scalars_q) + 3 * len(space.quaternions_q)
    u = np.mod(np.arange(1, count + 1)[:, None] * np.sqrt(_primes(dimension)), 1.0)
    half_range = np.where(space.rotates[space.scalars_v], math.pi, 1.0)
    lower, upper = space.lower[space.scalars_q], space.upper[space.scalars_q]
    sample_lower = np.where(
        np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * half_range, -half_range)
    )
    sample_upper = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2 * half_range, half_range))
    q = np.empty((count, space.nq))
    q[:, space.scalars_q] = sample_lower + (sample_upper - sample_lower) * u[:, : len(sample_lower)]
    for index, k in enumerate(space.quaternions_q):
        a, b, c = u[
            :, len(sample_lower) + 3 * index : len(sample_lower) + 3 * index + 3
        ].T  # Shoemake's uniform rotations
        radius_a, radius_b = np.sqrt(1 - a), np.sqrt(a)
        b, c = 2 * math.pi * b, 2 * math.pi * c
        q[:, k : k + 4] = np.column_stack(
            [radius_a * np.sin(b), radius_a * np.cos(b), radius_b * np.sin(c), radius_b * np.cos(c)]
        )
    return q


def _primes(count: int) -> Array:
    primes: list[int] = []
    candidate = 2
    while len(primes) < count:
        if all(candidate % prime for prime in primes if prime * prime <= candidate):
            primes.append(candidate)
        candidate += 1
    return np.array(primes, dtype=np.float64)


DEFAULT_SAMPLES = 100
"""Number of configurations that are checked to find pairs that always collide."""
DEFAULT_SAMPLES_WITH_LOOPS = 10
"""The same for mechanisms with loops or joint constraints, where each sample takes some milliseconds to close."""


@dataclass(frozen=True, eq=False)
class CollisionPairs:
    """Pairs to check, with the tables for the kernels.

    Attributes:
        tables: tables for the kernels.
        bodies: names of the links with shapes, then of the obstacles.
        allowed_collisions: pairs of links that are skipped by default, each with the reason.
    """

    tables: CollisionTables
    bodies: tuple[str, ...]
    allowed_collisions: dict[Pair, str]

    @cached_property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The tables, as the first arguments of the kernel `query`."""
        return self.tables.arrays

    @cached_property
    def pair_count(self) -> int:
        """Number of checked pairs."""
        return int(self.tables.scene.is_checked.sum()) + self.tables.scene.partner_count

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """All checked pairs, by name."""
        tables, names = self.tables, [body.name for body in self.tables.collision_bodies]
        pairs = [(names[a], names[b]) for a, b in tables.static_pairs]
        for pair_list in tables.scene.pair_lists:
            pairs += [(names[pair_list.body], names[b]) for b in tables.partners(pair_list)]
        return tuple(pairs)

    @cached_property
    def distance_names(self) -> tuple[str, ...]:
        """Label of each distance row."""
        tables, names, labels = self.tables, [body.name for body in self.tables.collision_bodies], list[str]()
        for pair_list in tables.scene.pair_lists:
            name, partners = names[pair_list.body], tables.partners(pair_list)
            if len(partners) == 1:
                labels.append(f"{name} - {names[partners[0]]}")
            else:
                kind = "world" if pair_list.partner_count == ALL_STATIC else "links"
                labels += [f"{name} - {kind} {k + 1}" for k in range(pair_list.row_count)]
        return tuple(labels)

    def with_body(self, body: CollisionBody) -> CollisionPairs:
        """Return the same pairs, with the obstacle of the same name replaced by `body`: its shapes at a new pose."""
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
        raise StructureError(f"the pair {a!r} and {b!r} is in allow and in forbid; remove it from one of them")
    skipped_pairs = _allowed_collisions(mechanism, links) if self_collisions else {}
    moving_bodies = [body for body in links if body.node >= 0]
    static_bodies = [*(body for body in links if body.node < 0), *obstacles]
    _check_forbidden_pairs(forbid, {body.name for body in moving_bodies}, {body.name for body in static_bodies})
    obstacle_names = {body.name for body in obstacles}

    def is_checked(a: str, b: str) -> bool:
        if (a, b) in forbid:
            return True
        if (a, b) in allow or (a, b) in skipped_pairs or (b, a) in skipped_pairs:
            return False
        return self_collisions or a in obstacle_names or b in obstacle_names

    static_pair_mask = np.ones((len(moving_bodies), len(static_bodies)), np.bool_)
    names_with_rules = {name for pair in (*skipped_pairs, *allow, *forbid) for name in pair}
    for k, b in enumerate(static_bodies):
        # there may be ten thousand obstacles: those without a rule are checked against all links, without further tests
        if b.name in names_with_rules or b.name not in obstacle_names:
            static_pair_mask[:, k] = [is_checked(a.name, b.name) for a in moving_bodies]
    pairs = [
        (i, j)
        for i, j in combinations(range(len(moving_bodies)), 2)
        if is_checked(moving_bodies[i].name, moving_bodies[j].name)
    ]
    tables = build_collision_tables(mechanism.kinematics, moving_bodies, static_bodies, static_pair_mask, pairs)
    names = (*(body.name for body in links), *(body.name for body in obstacles))
    return CollisionPairs(tables, names, skipped_pairs)


def _allowed_collisions(mechanism: Mechanism, links: Sequence[CollisionBody]) -> dict[Pair, str]:
    """Return the stored allowed collisions and welded pairs; without stored ones, the pairs that sampling finds."""
    stored_pairs = mechanism.allowed_collisions
    if stored_pairs is None:
        return _sampled_allowed_collisions(mechanism, links)
    welded_pairs = {
        pair: reason
        for pair, reason in adjacent_pairs(mechanism, [body.name for body in links]).items()
        if reason == SAME_BODY
    }
    return {**welded_pairs, **stored_pairs}


def _sampled_allowed_collisions(mechanism: Mechanism, links: Sequence[CollisionBody]) -> dict[Pair, str]:
    """Return the allowed collisions found by sampling, which is slow; cached until joints or shapes change."""
    shapes_key = tuple(
        (body.name, shape.kind, shape.sizes, *(array.tobytes() for array in (shape.points, shape.core_points, X)))
        for body in links
        for shape, X in body.kernel_shapes
    )
    cache_entry = mechanism._cache.get("sampled_allowed_collisions")
    if not (isinstance(cache_entry, _SampledPairs) and cache_entry.shapes_key == shapes_key):
        samples = DEFAULT_SAMPLES_WITH_LOOPS if mechanism.closures or mechanism.joint_constraints else DEFAULT_SAMPLES
        cache_entry = _SampledPairs(
            shapes_key, allowed_collisions_at(mechanism, links, sample_configurations(mechanism, samples))
        )
        mechanism._cache["sampled_allowed_collisions"] = cache_entry
    return cache_entry.pairs


@dataclass(frozen=True, slots=True)
class _SampledPairs:
    """Allowed collisions found by sampling, and the key of the shapes for which they are valid."""

    shapes_key: tuple[tuple[object, ...], ...]
    pairs: dict[Pair, str]


def _check_forbidden_pairs(forbid: set[Pair], moving_names: set[str], static_names: set[str]) -> None:
    """Raise `StructureError` for a forbidden pair that has a link without shapes, or of which neither body moves."""
    for a, b in sorted(forbid):
        for name in (a, b):
            if name not in moving_names | static_names:
                raise StructureError(f"forbid: link {name!r} has no collision shape; give it collisions")
        if a in static_names and b in static_names:
            raise StructureError(f"forbid: neither {a!r} nor {b!r} moves, so the pair cannot be checked; remove it")
