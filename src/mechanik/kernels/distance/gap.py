"""The gap between any two shapes of a table: closed forms where there are any, else as convex shapes."""

from __future__ import annotations

from ..compiler import part
from .box_box import box_box
from .boxes import box_point, box_segment
from .convex import convex_gap
from .half_spaces import (
    box_half_space,
    half_space_half_space,
    point_half_space,
    segment_half_space,
)
from .rounding import flipped, widened
from .segments import point_point, point_segment, segment_segment
from .shape_layout import BOX, CAPSULE, HALF_SPACE, KIND, SIZE, SPHERE


@part
def gap(S, i, A, j, B, P):
    """The gap between the shapes of rows i and j, whose poses in the world are A and B (12 numbers, as in `poses.py`).

    Returns:
        d, nx, ny, nz, ax, ay, az, bx, by, bz: see `shape_layout.py`.
    """
    kind, other = S[i, KIND], S[j, KIND]
    if kind > HALF_SPACE or other > HALF_SPACE:
        return convex_gap(S, i, A, j, B, P)
    # written out, not called, and one call deep: all that is called is compiled again with each caller
    swapped = kind > other
    if swapped:
        i, A, j, B = j, B, i, A
        kind, other = other, kind
    x, y, z = S[j, SIZE], S[j, SIZE + 1], S[j, SIZE + 2]
    if kind == SPHERE:
        r = S[i, SIZE]
        if other == SPHERE:
            found = widened(point_point(A, B), r, x)
        elif other == CAPSULE:
            found = widened(point_segment(A, B, y), r, x)
        elif other == BOX:
            found = widened(flipped(box_point(B, x, y, z, A)), r, 0.0)
        else:
            found = widened(point_half_space(A, B), r, 0.0)
    elif kind == CAPSULE:
        r, length = S[i, SIZE], S[i, SIZE + 1]
        if other == CAPSULE:
            found = widened(segment_segment(A, length, B, y), r, x)
        elif other == BOX:
            found = widened(flipped(box_segment(B, x, y, z, A, length)), r, 0.0)
        else:
            found = widened(segment_half_space(A, length, B), r, 0.0)
    elif kind == BOX:
        half = (S[i, SIZE], S[i, SIZE + 1], S[i, SIZE + 2])
        found = box_box(A, half, B, (x, y, z)) if other == BOX else box_half_space(A, half, B)
    else:
        found = half_space_half_space(A, B)
    return flipped(found) if swapped else found
