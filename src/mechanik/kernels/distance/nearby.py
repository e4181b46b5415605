"""What is nearest to a moving body: first by balls and boxes, and only what may be near enough is measured."""

from __future__ import annotations

from ..compiler import part
from .bounds import above, are_apart, outside
from .gap import gap
from .placing import IS_PLACED, MIDDLE, place_shapes, pose_at
from .shape_layout import BALL, BODY, POSE, RADIUS
from .watch_layout import (
    BODY_RADIUS,
    CHILD,
    FIRST_SHAPE,
    FOUND_FLOATS,
    GAP,
    PARTNER,
    SHAPES,
    TREE_SHAPE,
)


@part
def keep(found, count, most, partner, result):
    """Put a result among those that were found, nearest first, one of each partner; returns how many there are."""
    at = count
    for k in range(count):
        if found[k, PARTNER] == partner:
            at = k
    if at < count:
        if found[at, GAP] <= result[0]:
            return count
    elif count == most:
        at = count - 1
    else:
        count += 1
    while at > 0 and found[at - 1, GAP] > result[0]:
        for k in range(FOUND_FLOATS):
            found[at, k] = found[at - 1, k]
        at -= 1
    found[at, PARTNER] = partner
    for k in range(10):
        found[at, GAP + k] = result[k]
    return count


@part
def measure_pair(S, P, bodies, b, c, limit, stop, first_shape, W, found, count, most):
    """Each shape of a moving body against each of another: what is nearer than `limit` is kept; returns how many are.

    The last row of `found` counts the pairs of shapes that are measured.

    Args:
        stop: whether one is enough.
        first_shape: where shapes begin in W.
        count, most: how many rows of `found` are taken, and how many it may hold.
    """
    for body in (b, c):
        if W[first_shape + int(bodies[body, FIRST_SHAPE]), IS_PLACED] == 0.0:
            place_shapes(S, bodies, body, first_shape, W)
    for j in range(int(bodies[c, FIRST_SHAPE]), int(bodies[c, FIRST_SHAPE] + bodies[c, SHAPES])):
        for i in range(int(bodies[b, FIRST_SHAPE]), int(bodies[b, FIRST_SHAPE] + bodies[b, SHAPES])):
            reach = limit + S[i, RADIUS] + S[j, RADIUS]
            if are_apart(W, first_shape + i, MIDDLE, W, first_shape + j, MIDDLE, reach):
                continue
            found[found.shape[0] - 1, 0] += 1.0
            result = gap(S, i, pose_at(W, first_shape + i, 0), j, pose_at(W, first_shape + j, 0), P)
            if result[0] < limit:
                count = keep(found, count, most, float(c), result)
                if stop:
                    return count
                if count == most:
                    limit = min(limit, found[most - 1, GAP])
    return count


@part
def measure_standing(S, P, bodies, b, j, tree, row, limit, stop, first_shape, W, found, count, most):
    """As `measure_pair`, each shape of a moving body against shape j, which stands still.

    Args:
        row: of the tree, where shape j is; -1 for a half-space.
    """
    if W[first_shape + int(bodies[b, FIRST_SHAPE]), IS_PLACED] == 0.0:
        place_shapes(S, bodies, b, first_shape, W)
    for i in range(int(bodies[b, FIRST_SHAPE]), int(bodies[b, FIRST_SHAPE] + bodies[b, SHAPES])):
        at = first_shape + i
        if are_apart(W, at, MIDDLE, S, j, BALL, limit + S[i, RADIUS] + S[j, RADIUS]):
            continue
        if row >= 0 and outside(tree, row, W, at, MIDDLE) - S[i, RADIUS] >= limit:
            continue
        found[found.shape[0] - 1, 0] += 1.0
        result = gap(S, i, pose_at(W, at, 0), j, pose_at(S, j, POSE), P)
        if result[0] < limit:
            count = keep(found, count, most, S[j, BODY], result)
            if stop:
                return count
            if count == most:
                limit = min(limit, found[most - 1, GAP])
    return count


@part
def nearest_standing(
    S, P, bodies, b, tree, kept_off, first_wide, limit, stop, first_shape, middle, W, found, most, waiting
):
    """The nearest of what stands still into found, each nearer than `limit`; returns how many.

    Args:
        kept_off: (moving, standing) bodies, whether the one is kept off the other.
        first_wide: the first half-space; all shapes behind it are some.
        middle: the row of W for body b.
        waiting: (n, 2), room for branches of the tree: the row, and how near it can be.
    """
    count, radius, moving = 0, bodies[b, BODY_RADIUS], kept_off.shape[0]
    for j in range(first_wide, S.shape[0]):
        if kept_off[b, int(S[j, BODY]) - moving] and above(S, j, W, middle, MIDDLE) - radius < limit:
            count = measure_standing(S, P, bodies, b, j, tree, -1, limit, stop, first_shape, W, found, count, most)
            if stop and count > 0:
                return count
            if count == most:
                limit = min(limit, found[most - 1, GAP])
    depth = 0
    if tree.shape[0] > 0:
        waiting[0, 0], waiting[0, 1] = 0.0, outside(tree, 0, W, middle, MIDDLE) - radius
        depth = 1
    while depth > 0:
        depth -= 1
        if waiting[depth, 1] >= limit:
            continue
        row = int(waiting[depth, 0])
        j = int(tree[row, TREE_SHAPE])
        if j < 0:
            near = int(tree[row, CHILD])
            far = near + 1
            at_near = outside(tree, near, W, middle, MIDDLE) - radius
            at_far = outside(tree, far, W, middle, MIDDLE) - radius
            if at_far < at_near:
                near, far = far, near
                at_near, at_far = at_far, at_near
            if at_far < limit:
                waiting[depth, 0], waiting[depth, 1] = far, at_far
                depth += 1
            if at_near < limit:
                waiting[depth, 0], waiting[depth, 1] = near, at_near
                depth += 1
        elif kept_off[b, int(S[j, BODY]) - moving]:
            count = measure_standing(S, P, bodies, b, j, tree, row, limit, stop, first_shape, W, found, count, most)
            if stop and count > 0:
                return count
            if count == most:
                limit = min(limit, found[most - 1, GAP])
    return count
