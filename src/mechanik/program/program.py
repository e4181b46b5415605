"""A mechanism and what is wanted of it, compiled: independent parts, each a problem for the general kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanik.mechanism import Closure, Joint, Law, Mechanism
from mechanik.mechanism.dof import ROTATIONS
from mechanik.objectives import Objective
from mechanik.objectives.closures import closure_cone, closure_limits, closure_relations
from mechanik.objectives.cones import cone_relations
from mechanik.objectives.laws import law_relations
from mechanik.objectives.relation import Kind, Relation
from mechanik.program.draft import Block, Draft
from mechanik.program.pack import SHUT, Packed, pack
from mechanik.program.read_off import ReadOff, find_read_off, with_frames
from mechanik.program.skeleton import Skeleton, build_skeleton
from mechanik.spatial.array import Array

ROUNDING = 1e-13
"""How well a loop can be shut for rounding, as a share of the mechanism's size."""
SIZE_OF_REACH = 1 / 3
"""What counts as a unit of length, as a share of the reach. Tuned on random targets of a Panda and a UR5."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Objectives, closures and laws that share freedoms, directly or through each other.

    Attributes:
        packed: the problem, for the kernel.
        owners: for each block the objective's number in the program; closures are -1 - their number, and laws are
            counted on behind them, and cones of joints behind those.
        numbers: for each block which of its owner's relations it is.
        levels: for each stage the level of its objectives; -1 for closures, laws and cones.
        wishes: for each stage whether success does not depend on it.
        moving: (nv,) which freedoms it may move.
        read_off: where balls begin in v that have no columns, since a weld turns them.
    """

    packed: Packed
    owners: tuple[int, ...]
    numbers: tuple[int, ...]
    levels: tuple[int, ...]
    wishes: tuple[bool, ...]
    moving: np.ndarray[tuple[int], np.dtype[np.bool_]]
    read_off: tuple[int, ...] = ()

    def moves(self, freedoms: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """For each column of the problem whether it moves one of some freedoms, (nv,) of the mechanism."""
        columns = self.packed.columns
        known = (columns >= 0) & (columns < len(freedoms))
        return known & np.append(freedoms, False)[np.where(known, columns, -1)]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """
    Attributes:
        objectives, closures, laws: what it was made of, in order; laws by name.
        cones: joints in the tree whose tilt is limited.
        parts: solved apart.
        size: unit of length, m.
        extra: (numbers of x behind q,) what closing joints with nodes of their own start from.
    """

    objectives: tuple[Objective, ...]
    closures: tuple[Closure, ...]
    parts: tuple[Part, ...]
    skeleton: Skeleton
    size: float
    extra: Array
    laws: Mapping[str, Law]
    cones: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """How rows and columns are weighed.

    Attributes:
        active: (nv,) which freedoms may move.
        objective_weights: by the number of the objective.
        ease: (nv,) how readily each freedom moves; 1 is usual, 0.1 is reluctant.
        position_weight, rotation_weight: multiply all rows of their kind.
        reads_off: whether balls that a weld turns are turned in the end, and are no columns; for the default solver.
    """

    active: Sequence[bool]
    objective_weights: Mapping[int, float]
    ease: Sequence[float]
    position_weight: float = 1.0
    rotation_weight: float = 1.0
    reads_off: bool = False


def compile_program(
    mechanism: Mechanism, objectives: Sequence[Objective], relations: Sequence[Sequence[Relation]], settings: Settings
) -> Program:
    """
    Args:
        relations: those of each objective; given, since angles may mean the nearest of several.
    """
    closures = tuple(mechanism.closures.values())
    with_nodes = [closure for closure in closures if _needs_nodes(closure)]
    skeleton = build_skeleton(mechanism, with_nodes)
    reach = skeleton.reach
    size = reach * SIZE_OF_REACH if reach > 1e-9 else 1.0
    blocks: list[tuple[int, bool, int, int, Block]] = []  # level, wish, owner, number
    for number, closure in enumerate(closures):
        for i, relation in enumerate(_closure_rows(mechanism, closure, closure in with_nodes)):
            blocks.append((-1, False, -1 - number, i, Block(relation, max(SHUT, ROUNDING * size), SHUT)))
    for number, relation in enumerate(law_relations(mechanism).values(), start=len(closures)):
        blocks.append((-1, False, -1 - number, 0, Block(relation, SHUT, SHUT)))
    cones = cone_relations(mechanism)
    for number, some in enumerate(cones.values(), start=len(closures) + len(mechanism.laws)):
        for i, relation in enumerate(some):
            blocks.append((-1, False, -1 - number, i, Block(relation, SHUT, SHUT)))
    for number, (objective, rows) in enumerate(zip(objectives, relations, strict=True)):
        factor = settings.objective_weights.get(number, 1.0)
        for i, relation in enumerate(rows):
            block = Block(relation, objective.tolerance, objective.angle_tolerance, factor)
            blocks.append((objective.level, not objective.required, number, i, block))
    active = [*settings.active, *[True] * (len(skeleton.rotates) - skeleton.nv)]
    ease = [*settings.ease, *[1.0] * (len(skeleton.rotates) - skeleton.nv)]
    weights = settings.position_weight, settings.rotation_weight
    balls: dict[int, ReadOff] = {}
    if settings.reads_off:
        rows = [one[4].relation for one in blocks]
        welds = {k: rows[k] for k, one in enumerate(blocks) if one[2] < 0}
        balls = find_read_off(skeleton, welds, rows, [a and e == 1.0 for a, e in zip(active, ease, strict=True)])
        skeleton = with_frames(skeleton, balls)
        for k, ball in balls.items():
            blocks[k] = (*blocks[k][:4], replace(blocks[k][4], relation=ball.relation))
    # loops are shut, and laws kept, in metres and radians, whatever goals weigh
    drafts = [Draft(skeleton, one[4], active, size, weights if one[2] >= 0 else (1.0, 1.0)) for one in blocks]
    parts: list[Part] = []
    for group in _groups(drafts):
        stages = sorted({blocks[k][:2] for k in group} | {(-1, False)})
        chosen = sorted(group, key=lambda k: (*blocks[k][:2], k))
        for k in chosen:
            drafts[k].stage = stages.index(blocks[k][:2])
        mine = [balls[k] for k in chosen if k in balls]
        packed = pack(skeleton, [drafts[k] for k in chosen], [wish for _, wish in stages], size, ease, mine)
        moving = np.zeros(skeleton.nv, dtype=np.bool_)
        moving[[v for v in packed.columns if 0 <= v < skeleton.nv]] = True
        for ball in mine:
            moving[ball.v : ball.v + 3] = True
        parts.append(
            Part(
                packed=packed,
                owners=tuple(blocks[k][2] for k in chosen),
                numbers=tuple(blocks[k][3] for k in chosen),
                levels=tuple(level for level, _ in stages),
                wishes=tuple(wish for _, wish in stages),
                moving=moving,
                read_off=tuple(ball.v for ball in mine),
            )
        )
    numbers = np.array([value for closure in with_nodes for value in _values_in_order(closure)], dtype=np.float64)
    laws = mechanism.laws
    return Program(tuple(objectives), closures, tuple(parts), skeleton, size, numbers, laws, tuple(cones))


def _needs_nodes(closure: Closure) -> bool:
    """Whether the joint has limits on one of several turns, which no row can express."""
    joint = closure.joint
    if not isinstance(joint, Joint):
        return False
    turns = [dof for dof in joint.dof if dof in ROTATIONS]
    return len(turns) > 1 and bool(np.isfinite([joint.limits(dof) for dof in turns]).any())


def _closure_rows(mechanism: Mechanism, closure: Closure, has_nodes: bool) -> tuple[Relation, ...]:
    if not has_nodes:
        return (*closure_relations(mechanism, closure), *closure_limits(mechanism, closure))
    end = f"closing {mechanism.name_of(closure.joint)}"
    weld = Relation(Kind.POSE, tuple(range(6)), end, mechanism.name_of(closure.link), X_b=closure.at.matrix)
    return (weld, *closure_cone(mechanism, closure))


def _values_in_order(closure: Closure) -> list[float]:
    """As the skeleton lays them out: shifts, then turns from the last to the first."""
    joint = closure.joint
    assert isinstance(joint, Joint)
    shifts = [dof for dof in joint.dof if not dof.is_rotation]
    turns = [dof for dof in joint.dof if dof.is_rotation]
    return [joint.value(dof) for dof in (*shifts, *reversed(turns))]


def _groups(drafts: Sequence[Draft]) -> list[list[int]]:
    """Numbers of drafts that share columns, in groups; each group and the groups in order."""
    groups: list[tuple[set[int], set[int]]] = []
    for k, draft in enumerate(drafts):
        mine, columns = {k}, set(draft.columns)
        apart: list[tuple[set[int], set[int]]] = []
        for group in groups:
            if group[1] & columns:
                mine, columns = mine | group[0], columns | group[1]
            else:
                apart.append(group)
        groups = [*apart, (mine, columns)]
    return sorted((sorted(mine) for mine, _ in groups), key=lambda mine: mine[0])
