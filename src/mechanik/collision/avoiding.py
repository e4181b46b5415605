"""Reading what a mechanism is to be kept off: `avoid`, `allow` and `forbid`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from mechanik.collision.obstacle import Obstacle
from mechanik.collision.pairs import Pair
from mechanik.errors import DuplicateName, StructureError, UnknownName, WrongKind
from mechanik.mechanism.shapes import PlacedShape, Shape
from mechanik.spatial import Pose

SELF = "self"
Avoid = str | Obstacle | Iterable[str | Obstacle]


@dataclass(frozen=True, slots=True)
class Avoided:
    """Whether links are kept off each other, and the obstacles, all with names."""

    itself: bool
    obstacles: tuple[Obstacle, ...]


def read_avoid(avoid: Avoid, links: Collection[str]) -> Avoided:
    """What is to be avoided, as it was given; unnamed obstacles get numbers."""
    given = [avoid] if isinstance(avoid, str | Obstacle) else avoid
    if isinstance(given, Shape | PlacedShape) or not isinstance(given, Iterable):
        raise WrongKind(_expected(given))
    things: list[object] = list(given)
    obstacles: list[Obstacle] = []
    for one in things:
        if isinstance(one, str):
            if one != SELF:
                raise UnknownName("thing to avoid", one, [SELF])
        elif isinstance(one, Obstacle):
            obstacles.append(one)
        else:
            raise WrongKind(_expected(one))
    return Avoided(SELF in things, _named(obstacles, links))


def read_pairs(pairs: Iterable[tuple[str, str]], known: Sequence[str], what: str) -> set[Pair]:
    """Pairs of names, each either way round."""
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise WrongKind(f"{what} takes pairs of names, [('hand', 'cup')], not {pairs!r}")
    found: set[Pair] = set()
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise WrongKind(f"{what} takes pairs of names, [('hand', 'cup')]; {pair!r} is no pair")
        for name in pair:
            if name not in known:
                raise UnknownName("link or obstacle", name, known)
        a, b = pair
        if a == b:
            raise StructureError(f"{what}: {a!r} is paired with itself")
        found |= {(a, b), (b, a)}
    return found


def _named(obstacles: Sequence[Obstacle], links: Collection[str]) -> tuple[Obstacle, ...]:
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
    if isinstance(given, Shape | PlacedShape):
        return f"avoid takes 'self' and obstacles; make the shape one: Obstacle({given!r}, position)"
    if isinstance(given, Pose):
        return (
            f"avoid takes 'self' and obstacles, which have a shape: Obstacle(Box((1, 1, 1)), position), not {given!r}"
        )
    return f"avoid takes 'self' and obstacles, ['self', Obstacle(Box((1, 1, 1)), (1, 0, 0.5))], not {given!r}"
