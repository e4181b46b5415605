"""New targets for a call, for objectives that a solver was made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mechanik.errors import ShapeError, UnknownName
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import read_only
from mechanik.objectives import JointValues, Objective, RestPose
from mechanik.objectives.evaluate import evaluate
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial.array import Array

Targets = Any
"""Whatever the objective's `at` takes; or several of those, by the objectives' names or in their order."""


def aimed(given: tuple[Objective, ...], targets: Targets) -> tuple[Objective, ...]:
    """The objectives, with new targets; None where one stays."""
    if targets is None:
        return given
    takes_names = len(given) == 1 and isinstance(given[0], JointValues | RestPose)
    if isinstance(targets, Mapping) and not takes_names:
        names = {one.name: k for k, one in enumerate(given) if one.name}
        changed = list(given)
        by_name: dict[str, Any] = dict(targets)  # type: ignore[arg-type]
        for name, target in by_name.items():
            if name not in names:
                raise UnknownName("objective", name, names)
            changed[names[name]] = given[names[name]].at(target)
        return tuple(changed)
    if len(given) == 1:
        only: Any = targets  # type: ignore[assignment]
        return (given[0].at(only),)
    if not isinstance(targets, list | tuple | np.ndarray) or len(targets) != len(given):  # type: ignore[arg-type]
        raise ShapeError(f"there are {len(given)} objectives: give as many targets, or a mapping from their names")
    several: Sequence[Any] = targets  # type: ignore[assignment]
    return tuple(one if target is None else one.at(target) for one, target in zip(given, several, strict=True))


def part_of_the_way(mechanism: Mechanism, rows: tuple[Relation, ...], q: Array, share: float) -> tuple[Relation, ...]:
    """A rest pose that lies on the way from q: that share of what is left to go."""
    names = mechanism.space.q_names
    found: list[Relation] = []
    for row in rows:
        if row.kind is Kind.VALUE:
            found.append(replace(row, target=(1 - share) * q[[names.index(row.freedom)]] + share * row.target))
        else:  # balls and closing joints: the rows shall be what is left of them
            left = read_only((1 - share) * evaluate(mechanism, row, q)[0])
            found.append(replace(row, lower=left, upper=left))
    return tuple(found)
