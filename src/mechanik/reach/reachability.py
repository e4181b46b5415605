"""The door: a mechanism and a link in, a map of its reach out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral

import numpy as np

from mechanik.errors import LimitsError, NotARotation, ShapeError, UnknownName, WrongKind
from mechanik.ik import Solver
from mechanik.mechanism import Link, Mechanism
from mechanik.mechanism.door import as_number
from mechanik.objectives import InBox, Point
from mechanik.reach.cells import Cells, Cutting, Table, check_count, cut
from mechanik.reach.freedoms import check_ends, joints_in_loops, turning
from mechanik.reach.places import TOLERANCE, WALL, Asking, Places, centre, grow, mark_samples
from mechanik.reach.reach_map import ReachMap
from mechanik.reach.samples import Freedom, as_freedom, open_samples, shut_samples
from mechanik.reach.shares import Question, ask_orientations, usual_question
from mechanik.solvers.freedoms import Names, places
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.tiers import wait_for

Progress = Callable[[int, int], None]
"""Called with how much is done, and how much there is: the places, and each orientation, are one step."""
KERNELS = ("forward", "chain", "lanes", "descent")
"""In which a map spends its time; in plain Python it would take hours."""
RESTARTS, RESTARTS_IN_LOOPS = 8, 1
"""Of a voxel that the neighbour's configuration does not lead into; in loops a start has to be assembled first."""


def reachability(
    mechanism: Mechanism,
    link: str | Link,
    resolution: float = 0.05,
    *,
    orientations: int | ArrayLike = 60,
    region: ArrayLike | None = None,
    samples: int = 100_000,
    limits: Mapping[str, ArrayLike] | None = None,
    lock: Names | str | None = None,
    rng: np.random.Generator | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ReachMap:
    """Map where the origin of a link can be, and in which orientations.

    Space is cut into voxels. Forward kinematics of many configurations marks the first ones; where there are loops,
    these configurations are solved for. Then every voxel beside a marked one is asked by inverse kinematics, until none
    is left to ask: it is marked if its centre is reached, or any place in it. At last every marked voxel is asked for
    each orientation. What the marks mean exactly is said in `ReachMap`.

    An arm that can take any orientation is asked for whole orientations, one that turns about a single axis (planar
    arms, SCARA) for turns about it, one of five freedoms for directions of the link's z. Where the orientation follows
    from the place, nothing is asked, and the share is 1.

    Args:
        resolution: the side of a voxel, m; its walls stand at whole multiples of it.
        orientations: about how many, evenly spread; 0 for none; or your own, as quaternions wxyz (n, 4), asked as
            whole orientations.
        region: the lowest and the highest corner, (2, 3), m; nothing outside is looked at, and all inside is.
        samples: how many configurations mark the first voxels.
        limits: by joint or freedom, (lower, upper) in place of the mechanism's.
        lock: joints or freedoms that stay as they are now.
        rng: for the samples; without it they follow Halton's sequence, the same each time.
        threads: to solve in; as many as there are cores if not given.
        progress: called with (done, total), now and then.
    """
    if not isinstance(mechanism, Mechanism):
        raise WrongKind(f"reachability takes a mechanism, not {mechanism!r}; mk.load reads a file into one")
    name = mechanism.name_of(link) if isinstance(link, Link) else link
    if name not in mechanism.links:
        raise UnknownName("link", name, mechanism.links)
    size = as_number(resolution, "resolution")
    if size <= 0:
        raise LimitsError(f"resolution is the side of a voxel in metres, and must be above 0, not {size:g}")
    own = _own_orientations(orientations)
    box = None if region is None else _box(region)
    if isinstance(samples, bool) or not isinstance(samples, Integral) or samples < 1:
        raise LimitsError(f"samples must be a whole number of 1 or more, not {samples!r}")
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise WrongKind(f"rng must be a generator, such as numpy.random.default_rng(0), not {rng!r}")
    if progress is not None and not callable(progress):
        raise WrongKind(f"progress is a function of how much is done and how much there is, not {progress!r}")
    freedom = as_freedom(mechanism, limits, lock)
    in_loops = {k for joint in joints_in_loops(mechanism, name) for k in places(mechanism, joint)[0]}
    check_ends(mechanism, name, freedom.lower, freedom.upper, {*freedom.locked_q, *in_loops})

    wait_for(*KERNELS, what="a reachability map")
    if in_loops:
        q = shut_samples(mechanism, name, freedom, rng, threads)
    else:
        q = open_samples(mechanism, freedom, int(samples), rng)
    X = mechanism.pose(name, q)
    cutting = cut(X[:, :3, 3], size, TOLERANCE)
    table = _table(cutting, X[:, :3, 3], box)
    found = Places(mechanism, name, cutting, table, freedom.lower, freedom.upper)
    question = own or usual_question(
        turning(mechanism, name, q, freedom.locked_v), mechanism.pose(name)[:3, :3], int(orientations)  # type: ignore[arg-type]
    )  # fmt: skip
    steps = 1 + len(question.wxyz)
    told = progress or _silent
    told(0, steps)
    mark_samples(found, q)
    asking = _asking(mechanism, name, cutting, freedom, RESTARTS_IN_LOOPS if in_loops else RESTARTS, threads)
    grow(found, asking)
    centre(found, asking)
    told(1, steps)
    reached = ask_orientations(found, question, freedom, bool(in_loops), threads, lambda k: told(1 + k, steps))
    low, high = (found.cells.min(axis=0), found.cells.max(axis=0)) if table.within is None else table.within
    return ReachMap(
        mechanism.name, name, size, cutting.base, _three(low), _three(high - low + 1),
        found.cells - low, found.q, found.positions, question.asked, question.wxyz, reached,
    )  # fmt: skip


def _asking(
    mechanism: Mechanism, link: str, cutting: Cutting, freedom: Freedom, restarts: int, threads: int | None
) -> Asking:
    half = np.full(3, cutting.size / 2 - min(WALL, cutting.size / 100))
    point, box = Point(link, (0.0, 0.0, 0.0), tolerance=TOLERANCE), InBox(link, -half, half)
    quick, patient, inside = (
        Solver(mechanism, goal, limits=freedom.limits, lock=freedom.lock or None, restarts=tries)
        for goal, tries in ((point, restarts), (point, 0), (box, restarts))
    )
    return Asking(quick, patient, inside, threads)


def _table(cutting: Cutting, positions: Array, box: Array | None) -> Table:
    """The voxels there may be; too many are refused before anything is done."""
    cells = cutting.cells(positions)
    low, high = cells.min(axis=0), cells.max(axis=0)
    if box is None:
        check_count((high - low + 1).tolist())
        return Table()
    # a corner that stands on a wall, as written, belongs to the voxels inside
    edge = 1e-9 * cutting.size
    inside = cutting.cells(np.stack([box[0] + edge, box[1] - edge]))
    low[~cutting.flat] = inside[0, ~cutting.flat]
    high[~cutting.flat] = np.maximum(inside[0], inside[1])[~cutting.flat]
    check_count((high - low + 1).tolist())
    return Table((low, high))


def _box(region: ArrayLike) -> Array:
    try:
        box = np.array(region, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"region is two corners, (2, 3), m, not {region!r}") from None
    if box.shape != (2, 3):
        raise ShapeError(f"region is two corners, (2, 3), m, not an array of shape {box.shape}")
    for number in box.ravel():
        as_number(number, "a corner of the region")
    if (box[0] > box[1]).any():
        raise LimitsError(f"region goes from {box[0].tolist()} to {box[1].tolist()}; the lowest corner comes first")
    return box


def _own_orientations(given: int | ArrayLike) -> Question | None:
    """The question, if it was given in full; None for a number."""
    if isinstance(given, Integral) and not isinstance(given, bool):
        if int(given) < 0:
            raise LimitsError(f"orientations cannot be fewer than 0, but {given} were asked for")
        return None
    try:
        wxyz = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"orientations are a number, or quaternions wxyz (n, 4), not {given!r}") from None
    if wxyz.ndim != 2 or wxyz.shape[1] != 4 or not len(wxyz):
        raise ShapeError(f"orientations are a number, or quaternions wxyz (n, 4), not of shape {wxyz.shape}")
    length = np.linalg.norm(wxyz, axis=1)
    if not (np.abs(length - 1.0) < 1e-3).all():
        bad = int(np.flatnonzero(~(np.abs(length - 1.0) < 1e-3))[0])
        raise NotARotation(f"orientation {bad} has length {length[bad]:.4g}, and a quaternion must have length 1")
    return Question("pose", quaternion.normalize(wxyz))


def _three(numbers: Cells) -> tuple[int, int, int]:
    x, y, z = numbers.tolist()
    return x, y, z


def _silent(done: int, total: int) -> None:
    """Nobody looks on."""
