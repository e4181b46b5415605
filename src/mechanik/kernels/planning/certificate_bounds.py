"""How far a body can have gone while all freedoms go straight on, each at its own rate.

Let d be the sum over all freedoms above a body of |rate| x lever, and t that of |rate| of those that turn. No point of
the body is faster than d. Levers of a joint grow only by what joints below it do, thus no faster than d; so d grows no
faster than t d, and after s a point has gone d (e^(ts) - 1) / t at most, which is less than

    d s / (1 - ts/2)        for ts < 2.

Now a point is no faster than v: the velocity of the middle of the body's ball, and its angular velocity times the
radius, in which freedoms that go against each other cancel. No acceleration is larger than 2 t d: each of two factors
of the velocity, the axis and the lever, turns with what is above it. So it has gone less than

    v s + t d s^2 / (1 - ts/3)        for ts < 3,

and whichever says less counts. Freedoms that move both of two bodies alike do not change their gap.
"""

from __future__ import annotations

import math

from ..compiler import part
from ..layout import FIRST_Q, KIND, PARENT, PRISMATIC, RATIO, REVOLUTE, SLIDE
from ..poses import WORLD, moved, read_pose
from .certificate_layout import ABOVE, MIDDLE, NODE, RADIUS, ROW, A, B

VELOCITY, REACH, TURN, BOUND_FLOATS = 0, 1, 2, 3
"""Of a row: v, d and t for the way from 0 to 1."""


@part
def place_nodes(nodes, q, W):
    """The poses (n, 12) of all nodes."""
    for i in range(nodes.shape[0]):
        parent = int(nodes[i, PARENT])
        X = moved(read_pose(W[parent]) if parent >= 0 else WORLD, nodes[i], q, False)
        for k in range(12):
            W[i, k] = X[k]


@part
def motion(nodes, balls, b, above, rates, W):
    """v, d and t of a body, as seen from a node above it (-1: the world)."""
    node, radius = int(balls[b, NODE]), balls[b, RADIUS]
    x, y, z = balls[b, MIDDLE], balls[b, MIDDLE + 1], balls[b, MIDDLE + 2]
    mx = W[node, 9] + W[node, 0] * x + W[node, 1] * y + W[node, 2] * z
    my = W[node, 10] + W[node, 3] * x + W[node, 4] * y + W[node, 5] * z
    mz = W[node, 11] + W[node, 6] * x + W[node, 7] * y + W[node, 8] * z
    vx, vy, vz, wx, wy, wz, reach, turn = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    while node != above:
        kind, k = int(nodes[node, KIND]), int(nodes[node, FIRST_Q])
        if kind == REVOLUTE:
            rate = nodes[node, RATIO] * rates[k]
            ax, ay, az = rate * W[node, 2], rate * W[node, 5], rate * W[node, 8]
            x, y, z = mx - W[node, 9], my - W[node, 10], mz - W[node, 11]
            ux, uy, uz = ay * z - az * y, az * x - ax * z, ax * y - ay * x
            vx, vy, vz = vx + ux, vy + uy, vz + uz
            wx, wy, wz = wx + ax, wy + ay, wz + az
            reach += math.sqrt(ux * ux + uy * uy + uz * uz) + abs(rate) * radius
            turn += abs(rate)
        elif kind == PRISMATIC:
            rate = nodes[node, RATIO] * rates[k]
            vx, vy, vz = vx + rate * W[node, 2], vy + rate * W[node, 5], vz + rate * W[node, 8]
            reach += abs(rate)
        elif kind == SLIDE:
            x, y, z = rates[k], rates[k + 1], rates[k + 2]
            vx += W[node, 0] * x + W[node, 1] * y + W[node, 2] * z
            vy += W[node, 3] * x + W[node, 4] * y + W[node, 5] * z
            vz += W[node, 6] * x + W[node, 7] * y + W[node, 8] * z
            reach += math.sqrt(x * x + y * y + z * z)
        node = int(nodes[node, PARENT])
    speed = math.sqrt(vx * vx + vy * vy + vz * vz) + radius * math.sqrt(wx * wx + wy * wy + wz * wz)
    return speed, reach, turn


@part
def bound_rows(nodes, balls, couples, rates, W, out):
    """How fast the gap of each row can fall: v, d and t of its bodies together, (m, 3)."""
    for row in range(out.shape[0]):
        out[row, VELOCITY], out[row, REACH], out[row, TURN] = 0.0, 0.0, 0.0
    for k in range(couples.shape[0]):
        row = couples[k, ROW]
        v, d, t = motion(nodes, balls, couples[k, A], couples[k, ABOVE], rates, W)
        if couples[k, B] >= 0:
            v2, d2, t2 = motion(nodes, balls, couples[k, B], couples[k, ABOVE], rates, W)
            v, d, t = v + v2, d + d2, max(t, t2)
        out[row, VELOCITY] = max(out[row, VELOCITY], v)
        out[row, REACH] = max(out[row, REACH], d)
        out[row, TURN] = max(out[row, TURN], t)


@part
def gone(v, d, t, s):
    """How far it can have gone after s; infinite where nothing is known."""
    x, far = t * s, math.inf
    if x < 2.0:
        far = d * s / (1.0 - 0.5 * x)
    if x < 3.0:
        far = min(far, v * s + d * t * s * s / (1.0 - x / 3.0))
    return far


@part
def free_for(v, d, t, room):
    """An s for which no more than `room` can be gone."""
    if room <= 0.0:
        return 0.0
    s = room / (d + 0.5 * t * room) if d > 0.0 else math.inf
    # with ts < 1 the second is at most v s + 1.5 t d s^2
    below = v + math.sqrt(v * v + 6.0 * t * d * room)
    if below > 0.0:
        curved = 2.0 * room / below
        if t * curved < 1.0:
            s = max(s, curved)
    return s
