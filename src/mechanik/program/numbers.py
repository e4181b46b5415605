"""The numbers of laws and of height fields, as `kernels/problem.py` lays them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mechanik.kernels import problem
from mechanik.mechanism.slopes import slopes
from mechanik.objectives.relation import Relation
from mechanik.objectives.terrain import Terrain

NO_FACTOR = 1e-12
"""The least that counts as a factor of a law."""


def count_numbers(relations: Iterable[Relation]) -> int:
    """How many numbers all of them take; a terrain that several share is there once."""
    some = list(relations)
    laws = sum(problem.FACTORS + len(factors) for one in some for _, factors in one.polynomials)
    fields = {id(one.terrain): one.terrain for one in some}.values()
    return laws + sum(problem.HEIGHTS + field.heights.size for field in fields if field is not None)


def law_numbers(relation: Relation, x: Sequence[int], columns: Sequence[int]) -> list[float]:
    """
    Args:
        x, columns: for each freedom its place in x, and its column within the block; -1 if it may not move.
    """
    found: list[float] = []
    for (_, factors), k, column in zip(relation.polynomials, x, columns, strict=True):
        found += [k, column, len(factors), *factors.tolist()]
    return found


def field_numbers(terrain: Terrain) -> list[float]:
    ny, nx = terrain.heights.shape
    return [nx, ny, terrain.cell, *terrain.origin.tolist(), *terrain.heights.ravel().tolist()]


def largest_slope(
    relation: Relation,
    limits: Callable[[str], tuple[float, float]],
    unit: Callable[[str], float] = lambda freedom: 1.0,
) -> float:
    """Of a law: how much a unit of the freedom that counts most changes the row, about; as `Law.scale`."""
    some = relation.polynomials
    steep = slopes([(factors, limits(freedom)) for freedom, factors in some], float(relation.target[0]))
    return max([NO_FACTOR, *(unit(freedom) * one for (freedom, _), one in zip(some, steep, strict=True))])
