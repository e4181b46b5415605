"""Computation of a reachability map: validation of the arguments, search for voxels, and check of orientations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral

import numpy as np

from mechanik.errors import InvalidArgument, LimitsError, NotARotation, ShapeError, UnknownName
from mechanik.model import Link, Mechanism
from mechanik.objectives import InBox, PositionGoal
from mechanik.reach.orientation_coverage import (
    OrientationQuery,
    check_bounded,
    check_orientations,
    default_orientations,
    joints_in_loops,
    orientation_mobility,
)
from mechanik.reach.reach_map import ReachMap
from mechanik.reach.reachable_voxels import (
    CENTRE_TOLERANCE,
    VOXEL_MARGIN,
    DofLimits,
    ReachedVoxels,
    VoxelGrid,
    VoxelIndices,
    VoxelSolvers,
    VoxelTable,
    as_dof_limits,
    check_voxel_count,
    grow_region,
    make_voxel_grid,
    mark_samples,
    move_to_centres,
    sample_closed_configurations,
    sample_configurations,
)
from mechanik.solver import Solver
from mechanik.solver.options import DofNames, dof_indices
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.tiers import wait_for_kernels
from mechanik.validation import as_number

Progress = Callable[[int, int], None]
"""Function that is called with the number of finished steps and the number of all steps. The search for voxels is one
step, and each orientation is another.
"""
KERNELS = ("forward", "chain_kernel", "lane_kernel", "descent")
"""Kernels in which a map spends most of its time; in plain Python a map would take hours."""
RESTARTS, RESTARTS_IN_LOOPS = 8, 1
"""Restarts for a voxel that is not reached from its neighbour's configuration; fewer if the link is in loops, because
the loops of each start must be closed first.
"""


def reachability(
    mechanism: Mechanism,
    link: str | Link,
    resolution: float = 0.05,
    *,
    orientations: int | ArrayLike = 60,
    region: ArrayLike | None = None,
    samples: int = 100_000,
    limits: Mapping[str, ArrayLike] | None = None,
    lock: DofNames | str | None = None,
    rng: np.random.Generator | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ReachMap:
    """Compute the positions that the origin of a link can reach, and the orientations at each position.

    Space is divided into voxels. Forward kinematics of sampled configurations marks the first voxels; if loops
    influence the link, the solver closes them first. Then inverse kinematics checks every neighbour of a marked voxel,
    until there are no unchecked neighbours. A neighbour is marked if a point in it is reached. Finally each orientation
    is checked in every marked voxel. `ReachMap` has the exact definitions.

    If `orientations` is a number, the rotations of the link while its origin is fixed determine what is checked. Three
    rotations: full orientations. A single rotation, always about the same axis (planar arms, SCARA): rotations about
    this axis. Two rotations that can point the z axis (arms with five dofs): directions of the z axis. Otherwise, for
    example if the position determines the orientation, no orientation is checked, and the share is 1.

    Args:
        mechanism: the mechanism; its configuration does not change.
        link: the link, or its name.
        resolution: edge length of a voxel, m. Voxel faces are at integer multiples of this length; along an axis in
            which the link does not move, there is one layer, centred on the link.
        orientations: approximate number of evenly spaced orientations; 0 for none; or quaternions wxyz (n, 4) in the
            world frame, checked as full orientations.
        region: lowest and highest corner in the world frame, (2, 3), m. All voxels that overlap the region are checked,
            and no others. Axes along which the link does not move are ignored.
        samples: number of configurations that mark the first voxels. Not used if loops influence the link; then the
            number of starts is fixed.
        limits: (lower, upper) by joint or dof name, m or rad, instead of the limits of the mechanism.
        lock: joints or dofs that keep their current values.
        rng: random generator for the samples. Default: the Halton sequence, which is the same in each call.
        threads: number of threads; the default is the number of cores.
        progress: called with the number of finished steps and the number of all steps. The search for voxels is one
            step, and each orientation is another.

    Returns:
        The map.

    Raises:
        InvalidArgument, LimitsError, NotFinite, ShapeError, NotARotation, UnknownName: if an argument is not valid.
        LimitsError: if the link can move without bound, or if the map would have too many voxels.
        StructureError: if no configuration with closed loops is found.

    Example:
        >>> arm = mk.gallery.planar_2r()
        >>> reach = mk.reachability(arm, "tool", 0.25, orientations=0, samples=1000)
        >>> reach.is_flat, round(reach.area, 1)
        (True, 10.0)
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"reachability needs a Mechanism, not {mechanism!r}; load one from a file with mk.load")
    name = mechanism.name_of(link) if isinstance(link, Link) else link
    if name not in mechanism.links:
        raise UnknownName("link", name, mechanism.links)
    voxel_size = as_number(resolution, "resolution")
    if voxel_size <= 0:
        raise LimitsError(f"resolution is the edge length of a voxel in m; it must be above 0, not {voxel_size:g}")
    orientation_query = _as_orientation_query(orientations)
    region_corners = None if region is None else _as_region(region)
    if isinstance(samples, bool) or not isinstance(samples, Integral) or samples < 1:
        raise LimitsError(f"samples must be an integer of 1 or more, not {samples!r}")
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise InvalidArgument(f"rng must be a generator, such as numpy.random.default_rng(0), not {rng!r}")
    if progress is not None and not callable(progress):
        raise InvalidArgument(f"progress must be a function of (done, total), not {progress!r}")
    dof_limits = as_dof_limits(mechanism, limits, lock)
    loop_q_indices = {k for joint in joints_in_loops(mechanism, name) for k in dof_indices(mechanism, joint)[0]}
    check_bounded(mechanism, name, dof_limits.lower, dof_limits.upper, {*dof_limits.locked_q, *loop_q_indices})

    wait_for_kernels(*KERNELS, what="a reachability map")
    if loop_q_indices:
        q = sample_closed_configurations(mechanism, name, dof_limits, rng, threads)
    else:
        q = sample_configurations(mechanism, dof_limits, int(samples), rng)
    X = mechanism.pose(name, q)
    grid = make_voxel_grid(X[:, :3, 3], voxel_size, CENTRE_TOLERANCE)
    table = _make_table(grid, X[:, :3, 3], region_corners)
    voxels = ReachedVoxels(mechanism, name, grid, table, dof_limits.lower, dof_limits.upper)
    query = orientation_query or default_orientations(
        orientation_mobility(mechanism, name, q, dof_limits.locked_v), mechanism.pose(name)[:3, :3], int(orientations)  # type: ignore[arg-type]
    )  # fmt: skip
    step_count = 1 + len(query.wxyz)
    report_progress = progress or _no_progress
    report_progress(0, step_count)
    mark_samples(voxels, q)
    solvers = _make_solvers(
        mechanism, name, grid, dof_limits, RESTARTS_IN_LOOPS if loop_q_indices else RESTARTS, threads
    )
    grow_region(voxels, solvers)
    move_to_centres(voxels, solvers)
    report_progress(1, step_count)
    is_reached = check_orientations(
        voxels, query, dof_limits, bool(loop_q_indices), threads, lambda k: report_progress(1 + k, step_count)
    )
    min_cell, max_cell = (voxels.cells.min(axis=0), voxels.cells.max(axis=0)) if table.bounds is None else table.bounds
    return ReachMap(
        mechanism.name, name, voxel_size, grid.base, _as_triple(min_cell), _as_triple(max_cell - min_cell + 1),
        voxels.cells - min_cell, voxels.q, voxels.positions, query.kind, query.wxyz, is_reached,
    )  # fmt: skip


def _make_solvers(
    mechanism: Mechanism, link: str, grid: VoxelGrid, dof_limits: DofLimits, restarts: int, threads: int | None
) -> VoxelSolvers:
    half_size = np.full(3, grid.size / 2 - min(VOXEL_MARGIN, grid.size / 100))
    point_goal, box_goal = (
        PositionGoal(link, (0.0, 0.0, 0.0), tolerance=CENTRE_TOLERANCE),
        InBox(link, -half_size, half_size),
    )
    point_solver, single_attempt_solver, box_solver = (
        Solver(mechanism, goal, limits=dof_limits.limits, lock=dof_limits.lock or None, restarts=restart_count)
        for goal, restart_count in ((point_goal, restarts), (point_goal, 0), (box_goal, restarts))
    )
    return VoxelSolvers(point_solver, single_attempt_solver, box_solver, threads)


def _make_table(grid: VoxelGrid, positions: Array, region_corners: Array | None) -> VoxelTable:
    """Return an empty table of the voxels; raise `LimitsError` if the map would have too many voxels."""
    cells = grid.cells(positions)
    min_cell, max_cell = cells.min(axis=0), cells.max(axis=0)
    if region_corners is None:
        check_voxel_count((max_cell - min_cell + 1).tolist())
        return VoxelTable()
    # a corner on a voxel face belongs to the voxel inside the region
    margin = 1e-9 * grid.size
    region_cells = grid.cells(np.stack([region_corners[0] + margin, region_corners[1] - margin]))
    min_cell[~grid.is_flat] = region_cells[0, ~grid.is_flat]
    max_cell[~grid.is_flat] = np.maximum(region_cells[0], region_cells[1])[~grid.is_flat]
    check_voxel_count((max_cell - min_cell + 1).tolist())
    return VoxelTable((min_cell, max_cell))


def _as_region(region: ArrayLike) -> Array:
    try:
        corners = np.array(region, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"region must be two corners (2, 3), m, not {region!r}") from None
    if corners.shape != (2, 3):
        raise ShapeError(f"region must be two corners (2, 3), m, not an array of shape {corners.shape}")
    for number in corners.ravel():
        as_number(number, "a corner of the region")
    if (corners[0] > corners[1]).any():
        raise LimitsError(
            f"region is from {corners[0].tolist()} to {corners[1].tolist()}; give the lowest corner first"
        )
    return corners


def _as_orientation_query(orientations: int | ArrayLike) -> OrientationQuery | None:
    """Validate orientations that are given as quaternions; None if they are given as a number."""
    if isinstance(orientations, Integral) and not isinstance(orientations, bool):
        if int(orientations) < 0:
            raise LimitsError(f"orientations must be 0 or more, not {orientations}")
        return None
    try:
        wxyz = np.array(orientations, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"orientations must be a number or quaternions wxyz (n, 4), not {orientations!r}") from None
    if wxyz.ndim != 2 or wxyz.shape[1] != 4 or not len(wxyz):
        raise ShapeError(
            f"orientations must be a number or quaternions wxyz (n, 4), not an array of shape {wxyz.shape}"
        )
    norms = np.linalg.norm(wxyz, axis=1)
    if not (np.abs(norms - 1.0) < 1e-3).all():
        invalid_index = int(np.flatnonzero(~(np.abs(norms - 1.0) < 1e-3))[0])
        raise NotARotation(
            f"orientation {invalid_index} has the norm {norms[invalid_index]:.4g}; a quaternion must have the norm 1"
        )
    return OrientationQuery("pose", quaternion.normalize(wxyz))


def _as_triple(indices: VoxelIndices) -> tuple[int, int, int]:
    x, y, z = indices.tolist()
    return x, y, z


def _no_progress(done: int, total: int) -> None:
    """Do nothing; the default of `progress`."""
