"""Whether a straight motion is free: looked at from coarse to fine, so that a bad one is found soon.

What looks is `watch` of the room `distance`. It is given as a function, together with what it takes before q: so these
kernels are compiled without it, and are never older than it.
"""

from __future__ import annotations

from ..compiler import helper, part

WATCH = ("distance.watch:watch",)
"""The kernel that answers whether configurations are free, bound as the first argument of those that plan."""
TABLES = "f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1[:,::1], i8[::1], i8[:,::1], i8[::1]"
"""Its first nine arguments."""
SCENE = f"{TABLES}, i8, f8"
"""Those, the number of its question whether all is free, and the clearance (m)."""


@helper
def put(x, i, place):
    """A place (nq,) into row i; written out, since a row assigned as a whole takes long to compile."""
    for k in range(place.shape[0]):
        x[i, k] = place[k]


@helper
def is_free(watch, scene, q, room):
    """Whether the one configuration q (1, nq) is free; the looks are counted.

    Args:
        scene: what follows `watch` in `SCENE`.
        room: to work in: (1, 1), (0, 0, 0), and two counts (1,): pairs, and looks.
    """
    out, more, pairs, looks = room
    looks[0] += 1
    nodes, S, P, bodies, tree, kept_off, counts, guards, partners, mode, clearance = scene
    watch(nodes, S, P, bodies, tree, kept_off, counts, guards, partners, q, mode, clearance, out, more, pairs)
    return out[0, 0] == 1.0


@part
def is_free_motion(watch, scene, a, b, unit, step, q, room):
    """Whether all of the straight way from a to b (nq,) is free, b as well: looks no more than `step` (units) apart.

    Args:
        unit: (nq,) what counts as 1.
        q: (1, nq), room for a configuration.
    """
    put(q, 0, b)
    if not is_free(watch, scene, q, room):
        return False
    farthest = 0.0
    for k in range(a.shape[0]):
        farthest = max(farthest, abs(b[k] - a[k]) / unit[k])
    count = int(farthest / step) + 1
    stride = 1
    while 2 * stride < count:
        stride *= 2
    while stride > 0:
        # the odd multiples: each number below `count` comes once
        for i in range(stride, count, 2 * stride):
            share = i / count
            for k in range(a.shape[0]):
                q[0, k] = a[k] + share * (b[k] - a[k])
            if not is_free(watch, scene, q, room):
                return False
        stride //= 2
    return True
