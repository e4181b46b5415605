"""Writing new targets into a compiled problem."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechanik.kernels import problem
from mechanik.objectives.relation import Kind, Relation
from mechanik.program.pack import flat_pose
from mechanik.program.program import Part, Program


def same_shape(old: Relation, new: Relation) -> bool:
    """Whether only frames, targets or functions differ, so that nothing has to be compiled again."""
    return (
        old.kind is new.kind
        and old.rows == new.rows
        and (old.a, old.b, old.freedom) == (new.a, new.b, new.freedom)
        and (old.world_axes is None) == (new.world_axes is None)
        and (old.lower is None) == (new.lower is None)
        and (old.upper is None) == (new.upper is None)
        and old.weight == new.weight
        and old.terrain is new.terrain
        and len(old.polynomials) == len(new.polynomials)
        and all(
            a[0] == b[0] and np.array_equal(a[1], b[1]) for a, b in zip(old.polynomials, new.polynomials, strict=True)
        )
        and len(old.masses) == len(new.masses)
        and all(a[:2] == b[:2] and np.array_equal(a[2], b[2]) for a, b in zip(old.masses, new.masses, strict=True))
    )


def rewrite(program: Program, owner: int, relations: Sequence[Relation]) -> None:
    """Put other relations of the same shape in the place of an objective's."""
    for part in program.parts:
        for b, (one, number) in enumerate(zip(part.owners, part.numbers, strict=True)):
            if one == owner:
                _write(program, part, b, relations[number])


def _write(program: Program, part: Part, b: int, relation: Relation) -> None:
    at = part.packed.at
    data = at["data"][b * problem.BLOCK_FLOATS : (b + 1) * problem.BLOCK_FLOATS]
    if relation.kind in (Kind.VALUE, Kind.TURN, Kind.LAW):
        data[: len(relation.target)] = relation.target
    elif relation.kind is not Kind.FUNCTION:
        data[problem.FRAME_A : problem.FRAME_B] = flat_pose(program.skeleton.frames[relation.a][1] @ relation.X_a)
        data[problem.FRAME_B : problem.AXES_C] = flat_pose(program.skeleton.frames[relation.b][1] @ relation.X_b)
    if relation.world_axes is not None:
        data[problem.AXES_C : problem.METRES2] = relation.world_axes.ravel()
    block = at["blocks"][b * problem.BLOCK_INTS : (b + 1) * problem.BLOCK_INTS]
    if block[problem.HAS_BANDS]:
        first, slack = int(block[problem.FIRST_ROW]), at["slack"].reshape(-1, 2)
        members = at["block_columns"][block[problem.FIRST_COLUMN] :]
        for r in range(len(relation.rows)):
            column = members[slack[first + r, 1]]
            at["lower"][column] = -np.inf if relation.lower is None else relation.lower[r]
            at["upper"][column] = np.inf if relation.upper is None else relation.upper[r]
