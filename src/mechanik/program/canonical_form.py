"""The canonical form of a serial chain, and the flat model of it that the chain kernels read.

T = base . prod_j [ Rz(offset_j + q_j) Tz(slide_j q_j) Trans(t_j) Rx(alpha_j) ] . tool

Any chain of turning and sliding joints has this form. Each axis is z already; what is fixed between two of them is a
shift and a rotation Rz(a) Rx(alpha) Rz(b), of which the outer turns go into the offsets of the joints on either side.
Base and tool are taken off the target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechanik.kernels import chain_layout as at
from mechanik.spatial import rotation
from mechanik.spatial.array import Array

ENTRIES = 512
"""Of the seed table: twice as many save 7 % of the iterations and cost as much in looking."""
FIRST_MU, MAX_ITERATIONS, MAX_ATTEMPTS = 0.04, 40, 501
CHOICES = 2
INSIDE = 1 - 1e-6
"""Of a tolerance: what the chain kernel has to reach, so that rounding elsewhere does not matter."""
OUT_OF_RANGE = 4.0
"""How much an azimuth that the first joint cannot turn to counts. Tuned on a Panda."""
WHOLE, PLACE, ROTATION = (0, 1, 2, 3, 4, 5), (0, 1, 2), (3, 4, 5)


@dataclass(frozen=True, slots=True)
class Motion:
    """A joint's motion about or along z: by ratio * q + offset, where q is a number of the configuration."""

    turns: bool
    q: int
    ratio: float
    offset: float


@dataclass(frozen=True, slots=True)
class Weights:
    """Tolerances (m, rad), the unit of length (m), and how much lengths, angles and the goal itself count."""

    tolerance: float
    angle_tolerance: float
    size: float
    position: float = 1.0
    rotation: float = 1.0
    goal: float = 1.0


def chain_model(
    fixed: list[Array],
    motions: list[Motion],
    columns: list[int],
    held: np.ndarray[tuple[int], np.dtype[np.bool_]],
    limits: tuple[Array, Array],
    nq: int,
    wanted: tuple[int, ...],
    weights: Weights,
) -> Array:
    """All that the kernels are told of a chain, flat."""
    m, n = len(motions), len(columns)
    scale = weights.position / weights.size
    model = np.zeros(at.MODEL_HEAD + at.NODE * m + at.COLUMN_FLOATS * n)
    nodes = model[at.MODEL_HEAD : at.MODEL_HEAD + at.NODE * m].reshape(m, at.NODE)
    table = model[at.MODEL_HEAD + at.NODE * m :].reshape(n, at.COLUMN_FLOATS)
    units = _units(motions, columns, weights.size)
    _fill_nodes(nodes, fixed, motions, columns, units, scale)
    _fill_columns(table, motions, columns, units, held, limits)
    rows = set(wanted)
    has_place, has_turn = bool(rows & set(PLACE)), bool(rows & set(ROTATION))
    is_partial = wanted not in (WHOLE, PLACE, ROTATION)
    model[at.N_NODES], model[at.N_COLUMNS], model[at.N_Q], model[at.LENGTH_SCALE] = m, n, nq, scale
    model[at.PLACE_WEIGHT], model[at.TURN_WEIGHT] = has_place, weights.rotation * has_turn
    model[at.IS_PARTIAL] = is_partial
    model[at.METRES2] = (weights.tolerance * scale * INSIDE) ** 2 if has_place else np.inf
    model[at.RADIANS2] = (weights.angle_tolerance * weights.rotation * INSIDE) ** 2 if has_turn else np.inf
    model[at.FIRST_MU], model[at.MAX_ITERATIONS], model[at.MAX_ATTEMPTS] = FIRST_MU, MAX_ITERATIONS, MAX_ATTEMPTS
    model[at.WORK], model[at.CHOICES], model[at.ENTRIES] = np.inf, CHOICES, ENTRIES
    knows_place = set(PLACE) <= rows
    model[at.HAS_RANKS] = knows_place
    model[at.REACH] = _reach(nodes, table) + scale * weights.tolerance if knows_place else np.inf
    alone = [sum(other.q == motion.q for other in motions) == 1 and motion.ratio == 1.0 for motion in motions]
    turns = [
        motion.turns and one and not held[columns.index(motion.q)] for motion, one in zip(motions, alone, strict=True)
    ]
    model[at.TURNS_FIRST] = turns[0] and knows_place and n > 1
    model[at.TURNS_LAST] = turns[-1] and wanted == WHOLE and n > 1
    _bound_first(model, *(float(limit[int(nodes[0, at.COLUMN])]) for limit in limits))
    model[at.MODEL_SIZE], model[at.TABLE_SIZE] = len(model), -(-at.table_size(n, ENTRIES) // 2)
    model[at.ROW_WEIGHTS : at.ROW_WEIGHTS + 6] = np.isin(np.arange(6), wanted)
    return model


def _bound_first(model: Array, lower: float, upper: float) -> None:
    """The first joint's range: entries of the table whose azimuth it cannot turn to the target's count as far."""
    if upper - lower < 2 * math.pi and model[at.TURNS_FIRST]:
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
        model[at.COS_MIDDLE], model[at.SIN_MIDDLE], model[at.COS_HALF] = (
            math.cos(middle),
            math.sin(middle),
            math.cos(half),
        )
        model[at.PENALTY] = OUT_OF_RANGE * (math.pi - half) ** 2 / (1.0 + math.cos(half))


def _units(motions: list[Motion], columns: list[int], size: float) -> list[float]:
    """Of each column: a joint that slides has its unit of length, so that it moves as readily as one that turns."""
    return [1.0 if any(motion.turns for motion in motions if motion.q == k) else size for k in columns]


def _fill_nodes(
    nodes: Array, fixed: list[Array], motions: list[Motion], columns: list[int], units: list[float], scale: float
) -> None:
    offset = np.zeros(len(motions) + 1)
    seen = set[int]()
    for j, motion in enumerate(motions):
        row, X = nodes[j], fixed[j + 1]
        if j + 1 < len(motions):
            a, alpha, b = _turns(X[:3, :3])
        else:
            a, alpha, b = 0.0, 0.0, 0.0  # the tool's rotation is taken off the target
        offset[j] += a
        offset[j + 1] += b
        row[at.COS_ALPHA], row[at.SIN_ALPHA] = math.cos(alpha), math.sin(alpha)
        row[at.SHIFT : at.SHIFT + 3] = scale * (rotation.turn_z(-a) @ X[:3, 3])
        column = columns.index(motion.q)
        row[at.RATIO], row[at.COLUMN] = motion.ratio * units[column], column
        row[at.IS_NEW] = motion.q not in seen
        seen.add(motion.q)
        if motion.turns:
            offset[j] += motion.offset
        else:
            row[at.SLIDES] = scale
            row[at.SHIFT + 2] += scale * motion.offset
    nodes[:, at.OFFSET] = (offset[:-1] + np.pi) % (2 * np.pi) - np.pi
    nodes[:, at.COS_OFFSET], nodes[:, at.SIN_OFFSET] = np.cos(offset[:-1]), np.sin(offset[:-1])


def _fill_columns(
    table: Array,
    motions: list[Motion],
    columns: list[int],
    units: list[float],
    held: np.ndarray[tuple[int], np.dtype[np.bool_]],
    limits: tuple[Array, Array],
) -> None:
    for j, k in enumerate(columns):
        mine = [motion for motion in motions if motion.q == k]
        lower, upper = limits[0][j], limits[1][j]
        reach = math.pi if any(motion.turns for motion in mine) else 1.0
        low = lower if np.isfinite(lower) else upper - 2 * reach if np.isfinite(upper) else -reach
        high = upper if np.isfinite(upper) else lower + 2 * reach if np.isfinite(lower) else reach
        table[j, [at.LOW, at.HIGH, at.AT, at.IS_HELD, at.UNIT]] = low / units[j], high / units[j], k, held[j], units[j]
        table[j, [at.LEAST, at.MOST]] = lower, upper
        # a joint that is held has no room on either side
        table[j, [at.LOWER, at.UPPER]] = (np.inf, -np.inf) if held[j] else (lower / units[j], upper / units[j])
        table[j, at.WINDS] = all(motion.turns and abs(motion.ratio) == 1.0 for motion in mine)


def _turns(R: Array) -> tuple[float, float, float]:
    """(a, alpha, b) of R = Rz(a) Rx(alpha) Rz(b), exact to rounding also where the axes are nearly parallel."""
    s = math.hypot(R[0, 2], R[1, 2])
    a = math.atan2(R[0, 2], -R[1, 2]) if s > 0.0 else 0.0
    alpha = math.atan2(s, R[2, 2])
    left = rotation.turn_x(-alpha) @ rotation.turn_z(-a) @ R
    return a, alpha, math.atan2(left[1, 0], left[0, 0])


def _reach(nodes: Array, table: Array) -> float:
    """How far the end can be from the first joint, in units of the kernel."""
    total = 0.0
    for row in nodes:
        along, column = abs(row[at.SHIFT + 2]), table[int(row[at.COLUMN])]
        if row[at.SLIDES] != 0.0:
            if column[at.IS_HELD] != 0.0:
                return math.inf
            along += abs(row[at.SLIDES] * row[at.RATIO]) * max(abs(column[at.LOWER]), abs(column[at.UPPER]))
        total += math.hypot(row[at.SHIFT], row[at.SHIFT + 1], along)
    return total
