"""Collision checks of straight joint-space motions, and the records of the motion certificate.

A motion is sampled from coarse to fine, so that a collision is found early. The collision query, `query` of
`distance/collision_query.py`, is passed as a function together with `scene`: its tables, the mode and the clearance. So
the planning kernels are compiled without the query and never contain an outdated version of it.
"""

from __future__ import annotations

from ..compiler import inline, subroutine
from ..tables import Record, flag, integer, number, numbers, record_opener, records_opener


class BoundingSphere(Record):
    """Bounding sphere of a body: its node, centre (in the frame of the node) and radius, m."""

    node = integer()
    centre = numbers(3)
    radius = number()


class BodyPair(Record):
    """A pair of bodies, integers. If a distance row has several pairs, its distance is the smallest.

    Attributes:
        distance_row: index of the distances that the query measures.
        body_a, body_b: the bodies; body_b is -1 if it is static.
        common_node: the lowest common ancestor node; -1 for the world.
    """

    distance_row = integer()
    body_a = integer()
    body_b = integer()
    common_node = integer()


class CertificateState(Record):
    """State between two calls of `certify_path` (`motion_certificate.py`).

    Attributes:
        segment, finished_share: the current segment, and its finished share.
        smallest_distance: smallest measured distance, m.
        check_count: number of samples.
        is_certain: whether the whole path so far is proven.
        last_stride: half the length of the last proven interval, from `min_interval` to pi units (each element of q is
            divided by its scale, `unit`).
    """

    segment = integer()
    finished_share = number()
    smallest_distance = number()
    check_count = integer()
    is_certain = flag()
    last_stride = number()


open_spheres = records_opener(BoundingSphere)
open_body_pairs = records_opener(BodyPair)
open_certificate = record_opener(CertificateState)

NOT_FINITE, IN_COLLISION, IS_FREE, BUDGET_SPENT, TOO_MANY_WAYPOINTS = -1, 0, 1, 2, 3
"""Return values of the kernels `certify_path` (all but TOO_MANY_WAYPOINTS) and `spline_is_free` (IN_COLLISION, IS_FREE
or TOO_MANY_WAYPOINTS)."""


QUERY = ("distance.collision_query:query",)
"""The collision query, bound as the first argument of the planning kernels."""
QUERY_TABLES = "i8[::1], f8[::1], f8[:,::1]"
"""Types of the first three arguments of the query: integers and floats of the scene, and points."""
QUERY_SCENE = f"{QUERY_TABLES}, i8, f8"
"""Types of the arguments `scene` of the query: QUERY_TABLES, the mode QUERY_IS_FREE and the clearance (m)."""


@inline
def write_row(x, i, q):
    """Copy a configuration (nq,) into row i of x. A loop compiles faster than the assignment of a whole row."""
    for k in range(q.shape[0]):
        x[i, k] = q[k]


@inline
def is_free_configuration(query, scene, q, work):
    """Return whether the configuration q (1, nq) keeps the clearance; the check is counted.

    Args:
        scene: the arguments of `query` that QUERY_SCENE lists.
        work: work arrays (1, 1) and (0, 0, 0), and two counters (1,): measured pairs, and checks.
    """
    out, gradients, pair_count, check_count = work
    check_count[0] += 1
    scene_ints, scene_floats, points, mode, clearance = scene
    query(scene_ints, scene_floats, points, q, mode, clearance, out, gradients, pair_count)
    return out[0, 0] == 1.0


@subroutine
def is_free_motion(query, scene, a, b, unit, step, q, work):
    """Return whether the straight motion from a to b (nq,) keeps the clearance at samples at most `step` apart.

    The end b is checked, the start a is not.

    Args:
        query, scene, work: as in `is_free_configuration`.
        unit: (nq,) scale of each element of q.
        step: largest distance between samples, in scaled units.
        q: (1, nq) work array for a configuration.
    """
    write_row(q, 0, b)
    if not is_free_configuration(query, scene, q, work):
        return False
    largest_motion = 0.0
    for k in range(a.shape[0]):
        largest_motion = max(largest_motion, abs(b[k] - a[k]) / unit[k])
    piece_count = int(largest_motion / step) + 1
    stride = 1
    while 2 * stride < piece_count:
        stride *= 2
    while stride > 0:
        # only odd multiples of the stride, so that each sample is checked once
        for i in range(stride, piece_count, 2 * stride):
            share = i / piece_count
            for k in range(a.shape[0]):
                q[0, k] = a[k] + share * (b[k] - a[k])
            if not is_free_configuration(query, scene, q, work):
                return False
        stride //= 2
    return True
