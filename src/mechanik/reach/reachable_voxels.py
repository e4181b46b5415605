"""Voxels that a link reaches: voxel grid, voxel table, sampling of configurations, and region growing.

Sampled configurations mark the first voxels. Then the region grows: inverse kinematics checks the neighbours of marked
voxels, starting from the configuration of the marked voxel, until no unchecked neighbour is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mechanik.errors import LimitsError, StructureError
from mechanik.model import Mechanism
from mechanik.objectives import InBox
from mechanik.solver import Solver
from mechanik.solver.options import DofNames, as_bounds, dof_indices
from mechanik.solver.solution import STATUS_BY_CODE, Status
from mechanik.solver.start_configurations import halton_configurations, random_configurations
from mechanik.spatial.array import Array, ArrayLike

VoxelIndices = npt.NDArray[np.int64]
"""Voxel indices along x, y and z, (..., 3)."""

UNKNOWN, EMPTY, REJECTED = -1, -2, -3
"""Table entries of unmarked voxels: not checked yet; no configuration found; no configuration found from several
neighbours.
"""
MAX_INDEX = 1 << 20
"""Absolute voxel indices along an axis are below this number."""
MAX_VOXELS = 20_000_000
"""Maximum number of voxels in a table, which then has 80 MB. A larger map would also take hours."""


@dataclass(frozen=True, slots=True, eq=False)
class VoxelGrid:
    """Division of space into cubic voxels.

    Voxel i covers the half-open interval from `base + i * size` to `base + (i + 1) * size`. `make_voxel_grid` sets
    `base` to 0, so that the faces are at integer multiples of the size. Along a flat axis there is one layer instead,
    centred on the position of the link.

    Attributes:
        size: edge length of a voxel, m.
        base: (3,), m, lowest corner of voxel (0, 0, 0).
        is_flat: (3,) whether the position of the link is constant along each axis.
    """

    size: float
    base: Array
    is_flat: npt.NDArray[np.bool_]

    def cells(self, positions: Array) -> VoxelIndices:
        """Return the indices (..., 3) of the voxels that contain positions (..., 3), m.

        Raises:
            LimitsError: if a position is too far from the origin for this resolution.
        """
        indices = np.floor((positions - self.base) / self.size)
        if indices.size and np.abs(indices).max() >= MAX_INDEX:
            raise LimitsError(
                f"positions up to {np.abs(positions).max():.3g} m from the origin are too far for a resolution of "
                f"{self.size:g} m; use a coarser resolution"
            )
        return indices.astype(np.int64)

    def centres(self, cells: VoxelIndices) -> Array:
        """Return the centres (..., 3) of voxels, m."""
        return self.base + (cells + 0.5) * self.size

    def neighbour_offsets(self) -> VoxelIndices:
        """Return the index offsets (n, 3) to the neighbours of a voxel, corners included.

        n is 26, or 8 in a layer, or 2 on a line.
        """
        offsets = np.stack(
            np.meshgrid(*[[0] if is_axis_flat else [-1, 0, 1] for is_axis_flat in self.is_flat], indexing="ij"), axis=-1
        )
        offsets = offsets.reshape(-1, 3)
        return offsets[offsets.any(axis=1)]


def make_voxel_grid(positions: Array, size: float, thickness: float) -> VoxelGrid:
    """Make a grid for positions (n, 3), m; an axis is flat if positions along it differ by at most `thickness`, m."""
    min_position, max_position = positions.min(axis=0), positions.max(axis=0)
    is_flat = max_position - min_position <= thickness
    return VoxelGrid(size, np.where(is_flat, (min_position + max_position - size) / 2, 0.0), is_flat)


def first_indices(cells: VoxelIndices) -> npt.NDArray[np.int64]:
    """Return the index of the first occurrence of each distinct voxel in (n, 3)."""
    x, y, z = (cells + MAX_INDEX).T  # single integers sort ten times as fast as rows
    return np.unique((x << 42) | (y << 21) | z, return_index=True)[1]


class VoxelTable:
    """Table with an integer for each voxel; it is enlarged when entries are written.

    The entry is the index of the voxel in `ReachedVoxels`, or UNKNOWN (initially), EMPTY or REJECTED.

    Args:
        bounds: lowest and highest voxel, (3,) each, if the table has fixed bounds.
    """

    def __init__(self, bounds: tuple[VoxelIndices, VoxelIndices] | None = None) -> None:
        self.bounds = bounds
        self._min_cell = np.zeros(3, dtype=np.int64)
        self._entries = np.full((0, 0, 0), UNKNOWN, dtype=np.int32)
        if bounds is not None:
            self._enlarge(*bounds)

    def __getitem__(self, cells: VoxelIndices) -> npt.NDArray[np.int32]:
        relative_cells = cells - self._min_cell
        is_inside = ((relative_cells >= 0) & (relative_cells < self._entries.shape)).all(axis=-1)
        entries = np.full(cells.shape[:-1], UNKNOWN, dtype=np.int32)
        entries[is_inside] = self._entries[tuple(relative_cells[is_inside].T)]
        return entries

    def __setitem__(self, cells: VoxelIndices, entries: npt.ArrayLike) -> None:
        if len(cells):
            self._enlarge(cells.min(axis=0), cells.max(axis=0))
            self._entries[tuple((cells - self._min_cell).T)] = entries

    def covers(self, cells: VoxelIndices) -> npt.NDArray[np.bool_]:
        """Return whether voxels (..., 3) are inside the bounds; True without bounds."""
        if self.bounds is None:
            return np.ones(cells.shape[:-1], dtype=np.bool_)
        return np.asarray(((cells >= self.bounds[0]) & (cells <= self.bounds[1])).all(axis=-1))

    def cells_with(self, entry: int) -> VoxelIndices:
        """Return the voxels (n, 3) that have this entry."""
        return np.argwhere(self._entries == entry) + self._min_cell

    def _enlarge(self, min_cell: VoxelIndices, max_cell: VoxelIndices) -> None:
        """Enlarge the array so that it contains the voxels from `min_cell` to `max_cell`."""
        shape = np.array(self._entries.shape)
        if self._entries.size:
            if (min_cell >= self._min_cell).all() and (max_cell < self._min_cell + shape).all():
                return
            min_cell, max_cell = np.minimum(min_cell, self._min_cell), np.maximum(max_cell, self._min_cell + shape - 1)
        check_voxel_count((max_cell - min_cell + 1).tolist())
        enlarged_entries = np.full(tuple((max_cell - min_cell + 1).tolist()), UNKNOWN, dtype=np.int32)
        if self._entries.size:
            offset = (self._min_cell - min_cell).tolist()
            inner_slices = tuple(
                slice(start, start + length) for start, length in zip(offset, self._entries.shape, strict=True)
            )
            enlarged_entries[inner_slices] = self._entries
        self._min_cell, self._entries = min_cell, enlarged_entries


def check_voxel_count(shape: list[int]) -> None:
    """Raise an error if a table of this shape has more than `MAX_VOXELS` voxels."""
    x, y, z = shape
    if x * y * z > MAX_VOXELS:
        factor = (x * y * z / MAX_VOXELS) ** (1 / sum(count > 1 for count in shape))
        raise LimitsError(
            f"a map of {x} x {y} x {z} voxels would have {x * y * z:,} voxels; the largest number is {MAX_VOXELS:,}; "
            f"make the resolution at least {math.ceil(10 * factor) / 10:g} times coarser, or give a smaller region"
        )


Mask = npt.NDArray[np.bool_]
CLOSED_STATUSES = {Status.CONVERGED, Status.CLOSEST, Status.STALLED, Status.TIMEOUT}
"""Statuses of solves that end with closed loops, whether or not the target is reached."""


def solve_targets(solver: Solver, targets: Array, q0: Array | None, threads: int | None) -> tuple[Array, Mask, Mask]:
    """Solve for many targets, each from its own start.

    Args:
        targets: (n, ...), in a form that the solver's single goal accepts.
        q0: (n, nq) starts; None: the default starts of the solver.
        threads: number of threads; None for the number of cores.

    Returns:
        q (n, nq), whether each target was reached (n,), and whether the loops are closed at q (n,).
    """
    result = solver.solve_batch(targets, q0, threads=threads)
    is_closed = np.array([status in CLOSED_STATUSES for status in STATUS_BY_CODE])[result.status]
    return np.array(result.q), np.array(result.success), is_closed  # copies, because callers write into them


FACE_OFFSETS = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
"""Index offsets to the six face neighbours."""


def face_neighbours(table: VoxelTable, cells: VoxelIndices) -> npt.NDArray[np.int32]:
    """Return the table entries (k, 6) of the face neighbours of each voxel; negative for neighbours not reached."""
    return table[cells[:, None] + FACE_OFFSETS]


def retry_from_neighbours(
    solver: Solver, targets: Array, q: Array, success: Mask, neighbours: npt.NDArray[np.int32], threads: int | None
) -> None:
    """Retry each failed target from the solution of each solved face neighbour, until no further target is solved.

    Args:
        targets: (k, ...), one for each voxel.
        q, success: (k, nq) and (k,) results so far; updated in place.
        neighbours: (k, 6) indices from `face_neighbours`.
    """
    is_tried = np.zeros(neighbours.shape, dtype=np.bool_)
    has_improved = bool(success.any())
    while has_improved:
        has_improved = False
        for side, rows in enumerate(neighbours.T):
            pending_rows = np.flatnonzero(~success & ~is_tried[:, side] & (rows >= 0) & success[rows])
            if len(pending_rows):
                q[pending_rows], success[pending_rows], _ = solve_targets(
                    solver, targets[pending_rows], q[rows[pending_rows]], threads
                )
                is_tried[pending_rows, side] = True
                has_improved |= bool(success[pending_rows].any())


ASSEMBLY_STARTS = 200
"""Number of starts for closing the loops; so many that all assembly modes are likely to be found."""
UNBOUNDED_HALF_WIDTH = 1e6
"""Half width of a box that contains every position, m; a goal with this box only requires closed loops."""


@dataclass(frozen=True, slots=True, eq=False)
class DofLimits:
    """Limits and locked dofs, by name for the solvers and as arrays.

    Attributes:
        limits: (lower, upper) by joint or dof name as the caller gave them, m or rad.
        lock: names of locked joints and dofs.
        lower, upper: (nq,) limits, m or rad.
        locked_q: indices into q of locked values.
        locked_v: (nv,) 1 for locked dofs, else 0.
    """

    limits: Mapping[str, ArrayLike] | None
    lock: tuple[str, ...]
    lower: Array
    upper: Array
    locked_q: tuple[int, ...]
    locked_v: Array


def as_dof_limits(
    mechanism: Mechanism, limits: Mapping[str, ArrayLike] | None, lock: DofNames | str | None
) -> DofLimits:
    """Validate limits and locked dofs."""
    lower, upper = as_bounds(mechanism, limits)
    items = [lock] if isinstance(lock, str) else list(lock or ())
    names = tuple(item if isinstance(item, str) else mechanism.name_of(item) for item in items)
    locked_q: list[int] = []
    locked_v = np.zeros(mechanism.nv)
    for name in names:
        q, v = dof_indices(mechanism, name)
        locked_q += q
        locked_v[v] = 1.0
    return DofLimits(limits, names, lower, upper, tuple(locked_q), locked_v)


def sample_configurations(
    mechanism: Mechanism, dof_limits: DofLimits, count: int, rng: np.random.Generator | None
) -> Array:
    """Sample configurations (count, nq) inside the limits: by the Halton sequence, or at random with `rng`.

    Locked dofs keep their current values.
    """
    space = replace(mechanism.space, lower=dof_limits.lower, upper=dof_limits.upper)
    q = halton_configurations(space, count) if rng is None else random_configurations(space, count, rng)
    locked_q = list(dof_limits.locked_q)
    q[:, locked_q] = mechanism.q[locked_q]
    return q


def sample_closed_configurations(
    mechanism: Mechanism, link: str, dof_limits: DofLimits, rng: np.random.Generator | None, threads: int | None
) -> Array:
    """Sample configurations (n, nq) with closed loops.

    The solver closes the loops from the current configuration and from `ASSEMBLY_STARTS` starts inside the limits.

    Raises:
        StructureError: if no start leads to closed loops.
    """
    half_width = np.full(3, UNBOUNDED_HALF_WIDTH)
    loop_solver = Solver(
        mechanism, InBox(link, -half_width, half_width), limits=dof_limits.limits, lock=dof_limits.lock or None
    )
    starts = np.vstack([mechanism.q, sample_configurations(mechanism, dof_limits, ASSEMBLY_STARTS, rng)])
    q, success, _ = solve_targets(loop_solver, np.zeros((len(starts), 3)), starts, threads)
    if not success.any():
        raise StructureError(
            f"no configuration of {mechanism.name or 'the mechanism'} with closed loops inside the limits was found "
            f"from {len(starts)} starts; widen the limits"
        )
    return q[success]


CENTRE_TOLERANCE = 1e-6
"""Tolerance of the position goals, m; a centre is reached if the error is smaller."""
VOXEL_MARGIN = 2e-6
"""m. The goal box in a voxel is smaller than the voxel by this margin on each side (at most 1 % of the edge length),
because a solution on a face of the voxel could count for the next voxel.
"""
BLOCK_SIZE = 1 << 16
"""Number of voxels or configurations in a block; limits the memory."""
NEIGHBOUR_STARTS = 4
"""Number of neighbours from which a voxel is tried before it is rejected. More neighbours cost time and miss fewer
voxels. On random arms with four joints and 300 samples: with one start, one of eight arms missed 3 of its 1046 voxels;
with four starts, none of 31 arms missed a voxel.
"""
RowIndices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class VoxelSolvers:
    """Solvers for the position of the link's origin.

    Attributes:
        point_solver: solver for the origin at a point, with restarts.
        single_attempt_solver: the same without restarts. Its only attempt continues as long as it improves, which
            almost stretched arms need.
        box_solver: solver for the origin in the box of a voxel around a point.
        threads: number of threads; None for the number of cores.
    """

    point_solver: Solver
    single_attempt_solver: Solver
    box_solver: Solver
    threads: int | None


class ReachedVoxels:
    """Reached voxels, each with a configuration that reaches it.

    Every configuration marks the voxel that contains the link's origin, so each mark is proven by forward kinematics.
    If several configurations reach a voxel, the one with the origin nearest to the centre is stored.

    Attributes:
        mechanism, link: the mechanism, and the name of the link.
        grid, table: the voxel grid, and the index of each reached voxel.
        cells: (k, 3) voxel indices.
        q: (k, nq) configurations.
        positions: (k, 3), m, positions of the link's origin at `q`.
    """

    def __init__(self, mechanism: Mechanism, link: str, grid: VoxelGrid, table: VoxelTable, lower: Array, upper: Array):
        self.mechanism, self.link, self.grid, self.table = mechanism, link, grid, table
        self._limits = lower, upper
        self.cells: VoxelIndices = np.empty((0, 3), dtype=np.int64)
        self.q, self.positions = np.empty((0, mechanism.nq)), np.empty((0, 3))

    def add_configurations(self, q: Array) -> Array:
        """Mark the voxels of configurations (n, nq), and return the positions (n, 3) of the link's origin, m.

        Configurations outside the limits, and voxels outside the bounds of the table, are not marked.
        """
        positions = np.ascontiguousarray(self.mechanism.pose(self.link, q)[:, :3, 3])
        cells = self.grid.cells(positions)
        lower, upper = self._limits
        is_valid = self.table.covers(cells) & ((q >= lower - 1e-9) & (q <= upper + 1e-9)).all(axis=1)
        # sorted by distance to the centre, because `first_indices` returns the first configuration of each voxel
        order = np.flatnonzero(is_valid)
        order = order[np.argsort(_centre_distances(self.grid, cells[order], positions[order]), kind="stable")]
        best_rows = order[first_indices(cells[order])]
        rows = self.table[cells[best_rows]]
        self._replace_if_nearer(rows, best_rows, q, positions, cells)
        new_rows = best_rows[rows < 0]
        self.table[cells[new_rows]] = np.arange(len(new_rows)) + len(self.cells)
        self.cells = np.concatenate([self.cells, cells[new_rows]])
        self.q = np.concatenate([self.q, q[new_rows]])
        self.positions = np.concatenate([self.positions, positions[new_rows]])
        return positions

    def centre_distances(self) -> Array:
        """Return the distance (k,) of each position from the centre of its voxel, m."""
        return _centre_distances(self.grid, self.cells, self.positions)

    def _replace_if_nearer(
        self, rows: npt.NDArray[np.int32], candidates: RowIndices, q: Array, positions: Array, cells: VoxelIndices
    ) -> None:
        """Replace the stored configuration of a voxel by the candidate if that is nearer to the centre.

        Args:
            rows: table entries of the candidates' voxels; negative for voxels without a stored configuration.
            candidates: indices into `q`, `positions` and `cells`.
        """
        known_rows, matching_candidates = rows[rows >= 0], candidates[rows >= 0]
        old_distances = _centre_distances(self.grid, self.cells[known_rows], self.positions[known_rows])
        is_nearer = (
            _centre_distances(self.grid, cells[matching_candidates], positions[matching_candidates]) < old_distances
        )
        self.q[known_rows[is_nearer]], self.positions[known_rows[is_nearer]] = (
            q[matching_candidates[is_nearer]],
            positions[matching_candidates[is_nearer]],
        )


def mark_samples(voxels: ReachedVoxels, q: Array) -> None:
    """Mark the voxels of configurations (n, nq), in blocks."""
    for block in _blocks(len(q)):
        voxels.add_configurations(q[block])


def grow_region(voxels: ReachedVoxels, solvers: VoxelSolvers) -> None:
    """Check all neighbours of marked voxels until no unchecked neighbour is left.

    If the set of configurations is connected, the reached region is connected too, so growing can find all of it.
    Within bounds the region may have disconnected parts, so every voxel inside the bounds is checked. One start may
    fail where another succeeds, so a voxel is checked again when further neighbours are marked, and finally from
    several neighbours.
    """
    checked_count = 0
    while checked_count < len(voxels.cells) or _check_remaining(voxels, solvers):
        first_row, checked_count = checked_count, len(voxels.cells)
        cells, rows = _unmarked_neighbours(voxels, first_row)
        for block in _blocks(len(cells)):
            _check_voxels(voxels, solvers, cells[block], voxels.q[rows[block]])


def move_to_centres(voxels: ReachedVoxels, solvers: VoxelSolvers) -> None:
    """Replace the configuration of every voxel by one at the centre of the voxel, or by the nearest that is found."""
    _solve_centres(voxels, solvers.point_solver, solvers.threads)
    q, is_reached = voxels.q.copy(), reached_centre_mask(voxels)
    neighbours = face_neighbours(voxels.table, voxels.cells)
    retry_from_neighbours(
        solvers.point_solver, voxels.grid.centres(voxels.cells), q, is_reached, neighbours, solvers.threads
    )
    voxels.add_configurations(q[is_reached])
    _solve_centres(voxels, solvers.single_attempt_solver, solvers.threads)


def _solve_centres(voxels: ReachedVoxels, solver: Solver, threads: int | None) -> None:
    off_centre_rows = np.flatnonzero(~reached_centre_mask(voxels))
    for rows in (off_centre_rows[block] for block in _blocks(len(off_centre_rows))):
        centres = voxels.grid.centres(voxels.cells[rows])
        q, _, is_closed = solve_targets(solver, centres, voxels.q[rows], threads)
        voxels.add_configurations(q[is_closed])


def _check_remaining(voxels: ReachedVoxels, solvers: VoxelSolvers) -> bool:
    """Retry empty voxels from several neighbours; without empty voxels, check a block of unknown voxels in the bounds.

    Return False if there was nothing to check.
    """
    empty_cells = voxels.table.cells_with(EMPTY)
    if not len(empty_cells):
        unknown_cells = (
            voxels.table.cells_with(UNKNOWN)[:BLOCK_SIZE] if voxels.table.bounds is not None else empty_cells
        )
        if len(unknown_cells):
            _check_voxels(voxels, solvers, unknown_cells, None)
        return len(unknown_cells) > 0
    rows = voxels.table[empty_cells[:, None] + voxels.grid.neighbour_offsets()]
    marked_counts = (rows >= 0).sum(axis=1)
    rows = -np.sort(-rows, axis=1)  # marked voxels first; their entries are 0 or above
    for k in range(NEIGHBOUR_STARTS):
        pending_rows = np.flatnonzero((voxels.table[empty_cells] < 0) & (marked_counts > k))
        start_rows = rows[pending_rows, marked_counts[pending_rows] * k // NEIGHBOUR_STARTS]
        for block in _blocks(len(pending_rows)):
            _check_voxels(voxels, solvers, empty_cells[pending_rows[block]], voxels.q[start_rows[block]])
    voxels.table[empty_cells[voxels.table[empty_cells] < 0]] = REJECTED
    return True


def _unmarked_neighbours(voxels: ReachedVoxels, first_row: int) -> tuple[VoxelIndices, RowIndices]:
    """Return the unmarked neighbours (n, 3) of the marked voxels from index `first_row` on.

    Return also, for each neighbour, the index of the marked voxel whose stored position is nearest to its centre, (n,).
    """
    offsets = voxels.grid.neighbour_offsets()
    cells = (voxels.cells[first_row:, None] + offsets).reshape(-1, 3)
    rows = np.repeat(np.arange(first_row, len(voxels.cells)), len(offsets))
    is_unmarked = (voxels.table[cells] < 0) & voxels.table.covers(cells)
    cells, rows = cells[is_unmarked], rows[is_unmarked]
    order = np.argsort(_centre_distances(voxels.grid, cells, voxels.positions[rows]), kind="stable")
    nearest_rows = order[first_indices(cells[order])]
    return cells[nearest_rows], rows[nearest_rows]


def _blocks(count: int) -> list[slice]:
    return [slice(k, k + BLOCK_SIZE) for k in range(0, count, BLOCK_SIZE)]


def _check_voxels(voxels: ReachedVoxels, solvers: VoxelSolvers, cells: VoxelIndices, q0: Array | None) -> None:
    """Check voxels (n, 3) by inverse kinematics; entries of unknown voxels that are not reached become EMPTY.

    A voxel is reached if the position that the solver finds nearest to its centre is inside the voxel. It counts as not
    reached if this position is farther from the centre than a corner. Otherwise the solver searches for a position in
    the box of the voxel.

    Args:
        q0: (n, nq) starts; None: the default starts of the solver.
    """
    centres = voxels.grid.centres(cells)
    q, _, is_closed = solve_targets(solvers.point_solver, centres, q0, solvers.threads)
    voxels.add_configurations(q[is_closed])
    centre_distances = np.linalg.norm(
        np.ascontiguousarray(voxels.mechanism.pose(voxels.link, q)[:, :3, 3]) - centres, axis=1
    )
    corner_distance = voxels.grid.size * np.sqrt((~voxels.grid.is_flat).sum()) / 2
    undecided_rows = np.flatnonzero((voxels.table[cells] < 0) & (centre_distances <= corner_distance))
    if len(undecided_rows):
        q_in_box, is_in_box, _ = solve_targets(
            solvers.box_solver, centres[undecided_rows], q[undecided_rows], solvers.threads
        )
        voxels.add_configurations(q_in_box[is_in_box])
    voxels.table[cells[voxels.table[cells] == UNKNOWN]] = EMPTY


def _centre_distances(grid: VoxelGrid, cells: VoxelIndices, positions: Array) -> Array:
    return np.linalg.norm(positions - grid.centres(cells), axis=-1)


def reached_centre_mask(voxels: ReachedVoxels) -> Mask:
    """Return whether the centre of each voxel is reached, (k,)."""
    return voxels.centre_distances() <= 1.0001 * CENTRE_TOLERANCE
