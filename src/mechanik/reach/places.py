"""Which voxels a link reaches: marked by samples first, then grown voxel by voxel until nothing is left open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.ik import Solver
from mechanik.mechanism import Mechanism
from mechanik.reach.cells import CLOSED, EMPTY, UNKNOWN, Cells, Cutting, Table, first_of_each
from mechanik.reach.rows import Mask, solve_rows
from mechanik.reach.spreading import sides, spread
from mechanik.spatial.array import Array

TOLERANCE = 1e-6
"""m, of the goals; a centre that is missed by less is reached."""
WALL = 2e-6
"""m, by how much the box of a voxel is made smaller, so that what is found in it is not found in the next one."""
AT_A_TIME = 1 << 16
SIDES_ASKED = 4
"""From how many sides a voxel is asked before it is given up. Of random arms of four joints, with 300 samples, one
start left out 3 of the 1046 voxels of one arm in eight; four sides left out none on 31 arms."""
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """
    Attributes:
        point: asks for the link's origin at a point.
        patient: asks for the same, once, and does not give up while it comes nearer: for arms that are stretched out.
        box: asks for it in the box of a voxel around a point.
        threads: for both.
    """

    point: Solver
    patient: Solver
    box: Solver
    threads: int | None


class Places:
    """The voxels that are reached, each with a configuration that proves it.

    Whatever configuration is offered marks the voxel that its link is in, so that no mark rests on anything but
    forward kinematics. Of several in one voxel the one nearest to its centre is kept.

    Attributes:
        cells: (k, 3).
        q: (k, nq).
        positions: (k, 3), of the link at q.
    """

    def __init__(self, mechanism: Mechanism, link: str, cutting: Cutting, table: Table, lower: Array, upper: Array):
        self.mechanism, self.link, self.cutting, self.table = mechanism, link, cutting, table
        self._limits = lower, upper
        self.cells: Cells = np.empty((0, 3), dtype=np.int64)
        self.q, self.positions = np.empty((0, mechanism.nq)), np.empty((0, 3))

    def offer(self, q: Array) -> Array:
        """Mark where q (n, nq) leads, if it is inside the limits; returns the link's positions (n, 3)."""
        positions = np.ascontiguousarray(self.mechanism.pose(self.link, q)[:, :3, 3])
        cells = self.cutting.cells(positions)
        lower, upper = self._limits
        taken = self.table.covers(cells) & ((q >= lower - 1e-9) & (q <= upper + 1e-9)).all(axis=1)
        # the nearest to its centre first, which is the one that is kept
        order = np.flatnonzero(taken)
        order = order[np.argsort(_off(self.cutting, cells[order], positions[order]), kind="stable")]
        kept = order[first_of_each(cells[order])]
        rows = self.table[cells[kept]]
        self._better(rows, kept, q, positions, cells)
        new = kept[rows < 0]
        self.table[cells[new]] = np.arange(len(new)) + len(self.cells)
        self.cells = np.concatenate([self.cells, cells[new]])
        self.q = np.concatenate([self.q, q[new]])
        self.positions = np.concatenate([self.positions, positions[new]])
        return positions

    def off_centre(self) -> Array:
        """(k,) how far from its voxel's centre each position is, m."""
        return _off(self.cutting, self.cells, self.positions)

    def _better(self, rows: npt.NDArray[np.int32], kept: Numbers, q: Array, positions: Array, cells: Cells) -> None:
        known, offered = rows[rows >= 0], kept[rows >= 0]
        before = _off(self.cutting, self.cells[known], self.positions[known])
        nearer = _off(self.cutting, cells[offered], positions[offered]) < before
        self.q[known[nearer]], self.positions[known[nearer]] = q[offered[nearer]], positions[offered[nearer]]


def mark_samples(places: Places, q: Array) -> None:
    """Offer configurations (n, nq), some at a time."""
    for some in _pieces(len(q)):
        places.offer(q[some])


def grow(places: Places, asking: Asking) -> None:
    """Ask every voxel beside a marked one, until there is none left to ask.

    What a mechanism reaches hangs together as far as its configurations do, so nothing is left out that way. Where the
    map has bounds of its own, what lies in them need not hang together: there, every voxel is asked. One start may
    miss what another finds, so a voxel is asked again from each that is marked beside it later, and at last from
    several sides.
    """
    done = 0
    while done < len(places.cells) or _ask_the_rest(places, asking):
        first, done = done, len(places.cells)
        cells, rows = _beside(places, first)
        for some in _pieces(len(cells)):
            _ask(places, asking, cells[some], places.q[rows[some]])


def centre(places: Places, asking: Asking) -> None:
    """Bring the configuration of every voxel to its centre, if that can be reached, or nearer to it."""
    _draw_in(places, asking.point, asking.threads)
    q, reached = places.q.copy(), reached_centres(places)
    beside = sides(places.table, places.cells)
    spread(asking.point, places.cutting.centres(places.cells), q, reached, beside, asking.threads)
    places.offer(q[reached])
    _draw_in(places, asking.patient, asking.threads)


def _draw_in(places: Places, solver: Solver, threads: int | None) -> None:
    off = np.flatnonzero(~reached_centres(places))
    for rows in (off[some] for some in _pieces(len(off))):
        centres = places.cutting.centres(places.cells[rows])
        q, _, shut = solve_rows(solver, centres, places.q[rows], threads)
        places.offer(q[shut])


def _ask_the_rest(places: Places, asking: Asking) -> bool:
    """Ask the voxels in which nothing was found from several sides; returns whether there was anything to ask."""
    empty = places.table.where(EMPTY)
    if not len(empty):
        unknown = places.table.where(UNKNOWN)[:AT_A_TIME] if places.table.within is not None else empty
        if len(unknown):
            _ask(places, asking, unknown, None)
        return len(unknown) > 0
    rows = places.table[empty[:, None] + places.cutting.neighbours()]
    marked = (rows >= 0).sum(axis=1)
    rows = -np.sort(-rows, axis=1)  # the marked ones first
    for side in range(SIDES_ASKED):
        left = np.flatnonzero((places.table[empty] < 0) & (marked > side))
        chosen = rows[left, marked[left] * side // SIDES_ASKED]
        for some in _pieces(len(left)):
            _ask(places, asking, empty[left[some]], places.q[chosen[some]])
    places.table[empty[places.table[empty] < 0]] = CLOSED
    return True


def _beside(places: Places, first: int) -> tuple[Cells, Numbers]:
    """The voxels beside those from number `first` on that are not marked, and for each the marked one to start from."""
    ways = places.cutting.neighbours()
    cells = (places.cells[first:, None] + ways).reshape(-1, 3)
    rows = np.repeat(np.arange(first, len(places.cells)), len(ways))
    not_marked = (places.table[cells] < 0) & places.table.covers(cells)
    cells, rows = cells[not_marked], rows[not_marked]
    order = np.argsort(_off(places.cutting, cells, places.positions[rows]), kind="stable")
    kept = order[first_of_each(cells[order])]
    return cells[kept], rows[kept]


def _pieces(count: int) -> list[slice]:
    return [slice(k, k + AT_A_TIME) for k in range(0, count, AT_A_TIME)]


def _ask(places: Places, asking: Asking, cells: Cells, q0: Array | None) -> None:
    """Find out whether voxels (n, 3) are reached; those that are not are marked as empty.

    The closest that the link comes to the centre tells: in the voxel, it is reached; farther than a corner, it is not.
    Between the two the box itself is asked for.
    """
    centres = places.cutting.centres(cells)
    q, _, shut = solve_rows(asking.point, centres, q0, asking.threads)
    places.offer(q[shut])
    off = np.linalg.norm(np.ascontiguousarray(places.mechanism.pose(places.link, q)[:, :3, 3]) - centres, axis=1)
    corner = places.cutting.size * np.sqrt((~places.cutting.flat).sum()) / 2
    unclear = np.flatnonzero((places.table[cells] < 0) & (off <= corner))
    if len(unclear):
        found, inside, _ = solve_rows(asking.box, centres[unclear], q[unclear], asking.threads)
        places.offer(found[inside])
    places.table[cells[places.table[cells] == UNKNOWN]] = EMPTY


def _off(cutting: Cutting, cells: Cells, positions: Array) -> Array:
    return np.linalg.norm(positions - cutting.centres(cells), axis=-1)


def reached_centres(places: Places) -> Mask:
    """(k,) whether the centre itself is reached."""
    return places.off_centre() <= 1.0001 * TOLERANCE
