"""How the step of a stage is best taken: over its columns, or over its rows where columns are many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mechanik.program.draft import Draft

WIDE, FEWEST = 2, 12
"""A stage is wide if it has this many times as many columns as rows, and so many at least: from there on the step costs
less so. Measured on arms of 7 to 30 joints."""


@dataclass(frozen=True, slots=True)
class StageShape:
    """Of a stage.

    Attributes:
        hard: how many rows are hard.
        rows: how many rows a wide step would keep: those that know several columns, and one for each dependent column.
        is_wide, is_narrow: whether it takes the wide step or the other one; neither, if nothing is asked of it.
        chain: the block of a wide stage that is a chain of which all second derivatives are known; -1 if there is none.
    """

    hard: int
    rows: int
    is_wide: bool
    is_narrow: bool
    chain: int


def stage_shape(
    stage: int, drafts: Sequence[Draft], members: Sequence[Sequence[int]], place: Sequence[int]
) -> StageShape:
    columns = len(place)
    hard = sum(draft.height for draft in drafts if draft.stage < stage)
    soft = [b for b, draft in enumerate(drafts) if draft.stage == stage]
    several = [b for b in soft if (drafts[b].height, len(members[b])) != (1, 1)]
    rows = sum(drafts[b].height for b in several) + min(hard, columns)
    is_wide = bool(soft) and columns >= max(WIDE * rows, FEWEST)
    if is_wide and hard == 0:  # legs that share but a body leave most of the matrix empty
        is_wide = rows * rows * columns < _work_over_columns(several, drafts, members, place)
    chain = several[0] if is_wide and hard == 0 and len(several) == 1 and drafts[several[0]].is_chain else -1
    return StageShape(hard, rows, is_wide, bool(soft) and not is_wide, chain)


def _work_over_columns(
    blocks: Sequence[int], drafts: Sequence[Draft], members: Sequence[Sequence[int]], place: Sequence[int]
) -> int:
    """About how many products it takes to add up the matrix of some blocks and to solve with it, times two."""
    first = list(range(len(place)))  # of each row of the matrix, in the order of elimination
    for b in blocks:
        nearest = min((place[k] for k in members[b]), default=0)
        for k in members[b]:
            first[place[k]] = min(first[place[k]], nearest)
    sums = sum(drafts[b].height * len(members[b]) ** 2 for b in blocks)
    return sums + sum((row - start) ** 2 for row, start in enumerate(first))
