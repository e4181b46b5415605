"""Voxels that a link reaches: voxel grid, voxel table, sampling of configurations, and region growing.

Samples mark the first voxels. Then the region grows: inverse kinematics checks the neighbours of marked voxels, each
started from the neighbour's configuration, until no unchecked voxel is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mechanik.errors import LimitsError, StructureError
from mechanik.model import Mechanism
from mechanik.objectives import InBox
from mechanik.solver import Solver
from mechanik.solver.dof_selection import DofNames, as_bounds, dof_indices
from mechanik.solver.solution import STATUS_BY_CODE, Status
from mechanik.solver.start_configurations import halton_configurations, random_configurations
from mechanik.spatial.array import Array, ArrayLike

VoxelIndices = npt.NDArray[np.int64]
"""Voxel indices along x, y and z, (..., 3)."""

UNKNOWN, EMPTY, REJECTED = -1, -2, -3
"""Table entries of a voxel that is not checked yet, of one in which nothing was found, and of one in which nothing was
found from several neighbours.
"""
FARTHEST = 1 << 20
"""Highest voxel index along an axis."""
MAX_VOXELS = 20_000_000
"""Maximum size of a table: 80 MB. A finer map would also take hours."""


@dataclass(frozen=True, slots=True, eq=False)
class VoxelGrid:
    """Division of space into cubic voxels.

    Voxel i covers the half-open interval from `base + i * size` to `base + (i + 1) * size`, so the faces are at integer
    multiples of the size. Along a flat axis there is one layer, centred on the only position that occurs.

    Attributes:
        size: edge length of a voxel, m.
        base: (3,), m, lowest corner of voxel (0, 0, 0).
        flat: (3,) whether nothing moves along the axis.
    """

    size: float
    base: Array
    flat: npt.NDArray[np.bool_]

    def cells(self, places: Array) -> VoxelIndices:
        """Return the indices (..., 3) of the voxels that contain positions (..., 3), m.

        Raises:
            LimitsError: if a position is too far from the origin for this resolution.
        """
        numbers = np.floor((places - self.base) / self.size)
        if numbers.size and np.abs(numbers).max() >= FARTHEST:
            raise LimitsError(
                f"places as far as {np.abs(places).max():.3g} m from the origin have no number at a resolution of "
                f"{self.size:g} m; make it coarser"
            )
        return numbers.astype(np.int64)

    def centres(self, cells: VoxelIndices) -> Array:
        """Return the centres (..., 3) of voxels, m."""
        return self.base + (cells + 0.5) * self.size

    def neighbours(self) -> VoxelIndices:
        """Return the index offsets (n, 3) to the neighbours of a voxel, corners included; n is 26, or 8 in a layer."""
        ways = np.stack(np.meshgrid(*[[0] if flat else [-1, 0, 1] for flat in self.flat], indexing="ij"), axis=-1)
        ways = ways.reshape(-1, 3)
        return ways[ways.any(axis=1)]


def make_voxel_grid(positions: Array, size: float, thickness: float) -> VoxelGrid:
    """Make a grid for positions (n, 3), m; an axis along which they spread by less than `thickness` (m) is flat."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    flat = high - low <= thickness
    return VoxelGrid(size, np.where(flat, (low + high - size) / 2, 0.0), flat)


def first_indices(cells: VoxelIndices) -> npt.NDArray[np.int64]:
    """Return the index of the first occurrence of each distinct voxel in (n, 3)."""
    x, y, z = (cells + FARTHEST).T  # single integers sort ten times as fast as rows
    return np.unique((x << 42) | (y << 21) | z, return_index=True)[1]


class VoxelTable:
    """An integer for each voxel, initially UNKNOWN, in an array that grows on writing.

    Args:
        bounds: lowest and highest voxel, (3,) each, if the table has fixed bounds.
    """

    def __init__(self, bounds: tuple[VoxelIndices, VoxelIndices] | None = None) -> None:
        self.bounds = bounds
        self._low = np.zeros(3, dtype=np.int64)
        self._numbers = np.full((0, 0, 0), UNKNOWN, dtype=np.int32)
        if bounds is not None:
            self._reach(*bounds)

    def __getitem__(self, cells: VoxelIndices) -> npt.NDArray[np.int32]:
        at = cells - self._low
        inside = ((at >= 0) & (at < self._numbers.shape)).all(axis=-1)
        found = np.full(cells.shape[:-1], UNKNOWN, dtype=np.int32)
        found[inside] = self._numbers[tuple(at[inside].T)]
        return found

    def __setitem__(self, cells: VoxelIndices, numbers: npt.ArrayLike) -> None:
        if len(cells):
            self._reach(cells.min(axis=0), cells.max(axis=0))
            self._numbers[tuple((cells - self._low).T)] = numbers

    def covers(self, cells: VoxelIndices) -> npt.NDArray[np.bool_]:
        """Return whether voxels (..., 3) are inside the bounds."""
        if self.bounds is None:
            return np.ones(cells.shape[:-1], dtype=np.bool_)
        return np.asarray(((cells >= self.bounds[0]) & (cells <= self.bounds[1])).all(axis=-1))

    def where(self, number: int) -> VoxelIndices:
        """Return the voxels (n, 3) that have this entry."""
        return np.argwhere(self._numbers == number) + self._low

    def _reach(self, low: VoxelIndices, high: VoxelIndices) -> None:
        """Enlarge the array so that it contains the voxels from `low` to `high`."""
        shape = np.array(self._numbers.shape)
        if self._numbers.size:
            if (low >= self._low).all() and (high < self._low + shape).all():
                return
            low, high = np.minimum(low, self._low), np.maximum(high, self._low + shape - 1)
        check_voxel_count((high - low + 1).tolist())
        grown = np.full(tuple((high - low + 1).tolist()), UNKNOWN, dtype=np.int32)
        if self._numbers.size:
            first = (self._low - low).tolist()
            inner = tuple(slice(one, one + wide) for one, wide in zip(first, self._numbers.shape, strict=True))
            grown[inner] = self._numbers
        self._low, self._numbers = low, grown


def check_voxel_count(shape: list[int]) -> None:
    """Raise an error if a table of this shape has more than `MAX_VOXELS` voxels."""
    x, y, z = shape
    if x * y * z > MAX_VOXELS:
        coarser = (x * y * z / MAX_VOXELS) ** (1 / sum(one > 1 for one in shape))
        raise LimitsError(
            f"a map of {x} x {y} x {z} voxels would have {x * y * z:,} of them, and at most {MAX_VOXELS:,} are taken; "
            f"make the resolution at least {coarser:.2g} times as coarse, or name a smaller region"
        )


Mask = npt.NDArray[np.bool_]
SHUT = {Status.CONVERGED, Status.CLOSEST, Status.STALLED, Status.TIMEOUT}
"""Statuses with closed loops, whether or not the target was reached."""


def solve_targets(solver: Solver, targets: Array, q0: Array | None, threads: int | None) -> tuple[Array, Mask, Mask]:
    """Solve for many targets, each from its own start.

    Args:
        targets: (n, ...), in the form that the solver's only goal takes.
        q0: (n, nq) starts; None lets the solver choose.

    Returns:
        q (n, nq), whether each target was reached (n,), and whether the loops are closed at q (n,).
    """
    result = solver.solve_batch(targets, q0, threads=threads)
    shut = np.array([one in SHUT for one in STATUS_BY_CODE])[result.status]
    return np.array(result.q), np.array(result.success), shut  # copies, because callers write into them


SIDES = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
"""Index offsets to the six face neighbours."""


def face_neighbours(table: VoxelTable, cells: VoxelIndices) -> npt.NDArray[np.int32]:
    """Return the table entries (k, 6) of the face neighbours of each voxel; negative for those not reached."""
    return table[cells[:, None] + SIDES]


def retry_from_neighbours(
    solver: Solver, targets: Array, q: Array, success: Mask, beside: npt.NDArray[np.int32], threads: int | None
) -> None:
    """Retry each failed target from the solution of each solved face neighbour, until there is no gain.

    Args:
        targets: (k, ...), one for each voxel.
        q, success: (k, nq) and (k,) results so far; updated in place.
        beside: (k, 6) indices from `face_neighbours`.
    """
    asked = np.zeros(beside.shape, dtype=np.bool_)
    gained = bool(success.any())
    while gained:
        gained = False
        for side, rows in enumerate(beside.T):
            left = np.flatnonzero(~success & ~asked[:, side] & (rows >= 0) & success[rows])
            if len(left):
                q[left], success[left], _ = solve_targets(solver, targets[left], q[rows[left]], threads)
                asked[left, side] = True
                gained |= bool(success[left].any())


ASSEMBLIES = 200
"""Starts for closing the loops; so many that every assembly mode is found."""
ANYWHERE = 1e6
"""m; half width of a box that contains every position, as a goal that only requires closed loops."""


@dataclass(frozen=True, slots=True, eq=False)
class DofLimits:
    """Limits and locked dofs, by name for the solvers and as arrays.

    Attributes:
        limits: (lower, upper) by joint or dof name as given, m or rad.
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
    given = [lock] if isinstance(lock, str) else list(lock or ())
    names = tuple(one if isinstance(one, str) else mechanism.name_of(one) for one in given)
    held_q: list[int] = []
    held_v = np.zeros(mechanism.nv)
    for name in names:
        q, v = dof_indices(mechanism, name)
        held_q += q
        held_v[v] = 1.0
    return DofLimits(limits, names, lower, upper, tuple(held_q), held_v)


def sample_configurations(
    mechanism: Mechanism, dof_limits: DofLimits, count: int, rng: np.random.Generator | None
) -> Array:
    """Sample configurations (count, nq) inside the limits: by the Halton sequence, or at random with `rng`."""
    space = replace(mechanism.space, lower=dof_limits.lower, upper=dof_limits.upper)
    q = halton_configurations(space, count) if rng is None else random_configurations(space, count, rng)
    held = list(dof_limits.locked_q)
    q[:, held] = mechanism.q[held]
    return q


def sample_closed_configurations(
    mechanism: Mechanism, link: str, dof_limits: DofLimits, rng: np.random.Generator | None, threads: int | None
) -> Array:
    """Sample configurations (n, nq) with closed loops.

    The solver closes the loops from the present configuration and from starts inside the limits.

    Raises:
        StructureError: if no start leads to closed loops.
    """
    corner = np.full(3, ANYWHERE)
    assemble = Solver(mechanism, InBox(link, -corner, corner), limits=dof_limits.limits, lock=dof_limits.lock or None)
    starts = np.vstack([mechanism.q, sample_configurations(mechanism, dof_limits, ASSEMBLIES, rng)])
    q, success, _ = solve_targets(assemble, np.zeros((len(starts), 3)), starts, threads)
    if not success.any():
        raise StructureError(
            f"no configuration of {mechanism.name or 'the mechanism'} was found with its loops shut inside the limits, "
            f"so there is no reach; {ASSEMBLIES} starts were tried"
        )
    return q[success]


CENTRE_TOLERANCE = 1e-6
"""m; tolerance of the position goals. A centre is reached if the error is smaller."""
VOXEL_MARGIN = 2e-6
"""m; the box of a voxel shrinks by this, so that a solution on its face is not counted for the next voxel."""
AT_A_TIME = 1 << 16
"""Voxels or configurations per block; bounds the memory."""
SIDES_ASKED = 4
"""Neighbours from which a voxel is tried before it is rejected. Trades time for completeness: of random arms with four
joints and 300 samples, one start missed 3 of the 1046 voxels of one arm in eight; four missed none on 31 arms.
"""
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class VoxelSolvers:
    """Solvers for the position of the link's origin.

    Attributes:
        point: origin at a point, with restarts.
        patient: the same with a single attempt, which goes on while it improves; for stretched arms.
        box: origin in the box of a voxel around a point.
        threads: number of threads; None for the number of cores.
    """

    point: Solver
    patient: Solver
    box: Solver
    threads: int | None


class ReachedVoxels:
    """The reached voxels, each with a configuration as proof.

    Every configuration marks the voxel that contains the link's origin, so each mark is proven by forward kinematics.
    Of several configurations in a voxel the one nearest to its centre is stored.

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
        """Mark the voxels of configurations (n, nq) inside the limits; return the positions (n, 3) of the link, m."""
        positions = np.ascontiguousarray(self.mechanism.pose(self.link, q)[:, :3, 3])
        cells = self.grid.cells(positions)
        lower, upper = self._limits
        taken = self.table.covers(cells) & ((q >= lower - 1e-9) & (q <= upper + 1e-9)).all(axis=1)
        # sorted by distance to the centre, because `first_indices` keeps the first one
        order = np.flatnonzero(taken)
        order = order[np.argsort(_off(self.grid, cells[order], positions[order]), kind="stable")]
        kept = order[first_indices(cells[order])]
        rows = self.table[cells[kept]]
        self._better(rows, kept, q, positions, cells)
        new = kept[rows < 0]
        self.table[cells[new]] = np.arange(len(new)) + len(self.cells)
        self.cells = np.concatenate([self.cells, cells[new]])
        self.q = np.concatenate([self.q, q[new]])
        self.positions = np.concatenate([self.positions, positions[new]])
        return positions

    def centre_distances(self) -> Array:
        """Return the distance (k,) of each position from the centre of its voxel, m."""
        return _off(self.grid, self.cells, self.positions)

    def _better(
        self, rows: npt.NDArray[np.int32], kept: Numbers, q: Array, positions: Array, cells: VoxelIndices
    ) -> None:
        known, offered = rows[rows >= 0], kept[rows >= 0]
        before = _off(self.grid, self.cells[known], self.positions[known])
        nearer = _off(self.grid, cells[offered], positions[offered]) < before
        self.q[known[nearer]], self.positions[known[nearer]] = q[offered[nearer]], positions[offered[nearer]]


def mark_samples(voxels: ReachedVoxels, q: Array) -> None:
    """Mark the voxels of configurations (n, nq), in blocks."""
    for some in _pieces(len(q)):
        voxels.add_configurations(q[some])


def grow_region(voxels: ReachedVoxels, solvers: VoxelSolvers) -> None:
    """Check every neighbour of a marked voxel until none is left.

    The reached region is connected as far as the configurations are, so growing finds all of it. A map with bounds may
    contain disconnected parts, so there every voxel is checked. A single start may fail where another succeeds, so a
    voxel is checked again from each neighbour that is marked later, and finally from several neighbours.
    """
    done = 0
    while done < len(voxels.cells) or _ask_the_rest(voxels, solvers):
        first, done = done, len(voxels.cells)
        cells, rows = _beside(voxels, first)
        for some in _pieces(len(cells)):
            _ask(voxels, solvers, cells[some], voxels.q[rows[some]])


def move_to_centres(voxels: ReachedVoxels, solvers: VoxelSolvers) -> None:
    """Move the configuration of every voxel to its centre if the centre can be reached, or nearer to it."""
    _draw_in(voxels, solvers.point, solvers.threads)
    q, reached = voxels.q.copy(), reached_centres(voxels)
    beside = face_neighbours(voxels.table, voxels.cells)
    retry_from_neighbours(solvers.point, voxels.grid.centres(voxels.cells), q, reached, beside, solvers.threads)
    voxels.add_configurations(q[reached])
    _draw_in(voxels, solvers.patient, solvers.threads)


def _draw_in(places: ReachedVoxels, solver: Solver, threads: int | None) -> None:
    off = np.flatnonzero(~reached_centres(places))
    for rows in (off[some] for some in _pieces(len(off))):
        centres = places.grid.centres(places.cells[rows])
        q, _, shut = solve_targets(solver, centres, places.q[rows], threads)
        places.add_configurations(q[shut])


def _ask_the_rest(places: ReachedVoxels, asking: VoxelSolvers) -> bool:
    """Retry empty voxels from several neighbours, then the unknown ones; return whether there were any."""
    empty = places.table.where(EMPTY)
    if not len(empty):
        unknown = places.table.where(UNKNOWN)[:AT_A_TIME] if places.table.bounds is not None else empty
        if len(unknown):
            _ask(places, asking, unknown, None)
        return len(unknown) > 0
    rows = places.table[empty[:, None] + places.grid.neighbours()]
    marked = (rows >= 0).sum(axis=1)
    rows = -np.sort(-rows, axis=1)  # indices of marked voxels first
    for side in range(SIDES_ASKED):
        left = np.flatnonzero((places.table[empty] < 0) & (marked > side))
        chosen = rows[left, marked[left] * side // SIDES_ASKED]
        for some in _pieces(len(left)):
            _ask(places, asking, empty[left[some]], places.q[chosen[some]])
    places.table[empty[places.table[empty] < 0]] = REJECTED
    return True


def _beside(places: ReachedVoxels, first: int) -> tuple[VoxelIndices, Numbers]:
    """Return the unmarked neighbours of the voxels from `first` on, and for each the marked voxel to start from."""
    ways = places.grid.neighbours()
    cells = (places.cells[first:, None] + ways).reshape(-1, 3)
    rows = np.repeat(np.arange(first, len(places.cells)), len(ways))
    not_marked = (places.table[cells] < 0) & places.table.covers(cells)
    cells, rows = cells[not_marked], rows[not_marked]
    order = np.argsort(_off(places.grid, cells, places.positions[rows]), kind="stable")
    kept = order[first_indices(cells[order])]
    return cells[kept], rows[kept]


def _pieces(count: int) -> list[slice]:
    return [slice(k, k + AT_A_TIME) for k in range(0, count, AT_A_TIME)]


def _ask(places: ReachedVoxels, asking: VoxelSolvers, cells: VoxelIndices, q0: Array | None) -> None:
    """Check voxels (n, 3) by inverse kinematics; mark those that are not reached as empty.

    The nearest position to the centre decides: inside the voxel, it is reached; farther away than a corner, it is not.
    In between, the solver searches for a position in the box.
    """
    centres = places.grid.centres(cells)
    q, _, shut = solve_targets(asking.point, centres, q0, asking.threads)
    places.add_configurations(q[shut])
    off = np.linalg.norm(np.ascontiguousarray(places.mechanism.pose(places.link, q)[:, :3, 3]) - centres, axis=1)
    corner = places.grid.size * np.sqrt((~places.grid.flat).sum()) / 2
    unclear = np.flatnonzero((places.table[cells] < 0) & (off <= corner))
    if len(unclear):
        found, inside, _ = solve_targets(asking.box, centres[unclear], q[unclear], asking.threads)
        places.add_configurations(found[inside])
    places.table[cells[places.table[cells] == UNKNOWN]] = EMPTY


def _off(cutting: VoxelGrid, cells: VoxelIndices, positions: Array) -> Array:
    return np.linalg.norm(positions - cutting.centres(cells), axis=-1)


def reached_centres(voxels: ReachedVoxels) -> Mask:
    """Return whether the centre of each voxel is reached, (k,)."""
    return voxels.centre_distances() <= 1.0001 * CENTRE_TOLERANCE
