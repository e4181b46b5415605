"""The seed table: configurations spread over a chain's limits, with where they put the end, for starts near a target.

What the first and the last turning joint do is left out of the comparison, since it follows from the target: every
entry and every target is turned about the first axis to azimuth 0, and told by the last axis (a point on it, and its
direction) alone. The first joint is then the difference of the azimuths, and the last the best turn about its axis. So
few entries go a long way.
"""

from __future__ import annotations

import math

import numpy as np

from .chain_iteration import place_chain
from .chain_layout import *
from .compiler import helper, part
from .vector import eight_floats, lanes_of, load, spread, store, where_less, widen

TURN = 2.0 * math.pi
SKIPPED = 20
"""Numbers of Halton's sequence that are left out: the first ones are alike in large bases."""
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)
AZIMUTH = 6
LAST_X = 8


@helper
def describe(C, R, at, f, first):
    """Features of an end into f, from `first` on; R has its rotation, row by row, and its place, from `at` on.

    A point on the last axis and that axis, turned to azimuth 0; cosine and sine of the azimuth; and the last joint's x
    axis, turned likewise.
    """
    px, py, pz = R[at + 9], R[at + 10], R[at + 11]
    if C[TURNS_LAST] != 0.0:
        o = MODEL_HEAD + NODE * (int(C[N_NODES]) - 1) + SHIFT
        tx, ty = C[o], C[o + 1]
        px -= R[at] * tx + R[at + 1] * ty
        py -= R[at + 3] * tx + R[at + 4] * ty
        pz -= R[at + 6] * tx + R[at + 7] * ty
    c, s = 1.0, 0.0
    if C[TURNS_FIRST] != 0.0:
        radius = math.sqrt(px * px + py * py) + 1e-12
        c, s = px / radius, py / radius
    f[first], f[first + 1], f[first + 2] = c * px + s * py, c * py - s * px, pz
    ax, ay, az = R[at + 2], R[at + 5], R[at + 8]
    w = C[TURN_WEIGHT] if C[TURNS_LAST] != 0.0 or C[IS_PARTIAL] == 0.0 else 0.0
    f[first + 3], f[first + 4], f[first + 5] = w * (c * ax + s * ay), w * (c * ay - s * ax), w * az
    f[first + AZIMUTH], f[first + AZIMUTH + 1] = c, s
    f[first + LAST_X] = c * R[at] + s * R[at + 3]
    f[first + LAST_X + 1] = c * R[at + 3] - s * R[at]
    f[first + LAST_X + 2] = R[at + 6]


@helper
def halton(i, prime):
    value, share = 0.0, 1.0
    while i > 0:
        share /= prime
        value += share * (i % prime)
        i //= prime
    return value


@helper
def mixed(x):
    """A whole number of 64 bits, stirred: splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@helper
def drawn(key, i, j):
    """A number in [0, 1) that depends on three others and on nothing else."""
    x = np.uint64(key) + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(j) * np.uint64(0xD1B54A32D192ED03)
    return np.float64(mixed(mixed(x)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@part
def fill_table(C, ws, q, table):
    """The table of a chain; held joints are as in q, (columns,)."""
    n, entries = int(C[N_COLUMNS]), int(C[ENTRIES])
    columns = MODEL_HEAD + NODE * int(C[N_NODES])
    R, f = np.empty(12), np.empty(11)
    first_column, last_column = -1, -1
    if C[TURNS_FIRST] != 0.0:
        first_column = int(C[MODEL_HEAD + COLUMN])
    if C[TURNS_LAST] != 0.0:
        last_column = int(C[MODEL_HEAD + NODE * (int(C[N_NODES]) - 1) + COLUMN])
    tail = FEATURE_ROWS * entries
    for i in range(entries):
        dimension = 0
        for j in range(n):
            o = columns + COLUMN_FLOATS * j
            if j == first_column or j == last_column:
                x = 0.0
            elif C[o + IS_HELD] != 0.0:
                x = q[j] / C[o + UNIT]
            else:
                u = halton(i + SKIPPED, PRIMES[dimension]) if dimension < len(PRIMES) else drawn(1, i, j)
                dimension += 1
                x = C[o + LOW] + (C[o + HIGH] - C[o + LOW]) * u
            ws[LANE_HEAD + COLUMN_SLOTS * j + TRIAL] = x
            table[tail + (n + ENTRY_TAIL) * i + j] = x
        R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8], R[9], R[10], R[11] = place_chain(0.0, C, ws)
        describe(C, R, 0, f, 0)
        group = FEATURE_ROWS * 8 * (i // 8) + i % 8
        square = 0.0
        for k in range(6):
            square += f[k] * f[k]
            table[group + 8 * (1 + k)] = f[k]
        table[group] = square
        table[group + 8 * 7], table[group + 8 * 8] = f[AZIMUTH], f[AZIMUTH + 1]
        end = tail + (n + ENTRY_TAIL) * i + n
        table[end], table[end + 1], table[end + 2] = f[LAST_X], f[LAST_X + 1], f[LAST_X + 2]
        table[end + 3] = math.atan2(f[AZIMUTH + 1], f[AZIMUTH])


@helper
def rank(C, table, ws, search):
    """For the target whose features are in a lane's search: the nearest entry of each block, and how far it is."""
    at = search + FEATURES
    like = eight_floats(0.0)
    L = lanes_of(like)
    f0, f1, f2 = np.float32(-2.0 * ws[at]), np.float32(-2.0 * ws[at + 1]), np.float32(-2.0 * ws[at + 2])
    f3, f4, f5 = np.float32(-2.0 * ws[at + 3]), np.float32(-2.0 * ws[at + 4]), np.float32(-2.0 * ws[at + 5])
    height = C[PENALTY]
    # linear in the cosine of what an azimuth is off the middle, so that no angle has to be wrapped
    c, s = ws[at + AZIMUTH], ws[at + AZIMUTH + 1]
    k0, kc = np.float32(height * C[COS_HALF]), np.float32(-height * (c * C[COS_MIDDLE] + s * C[SIN_MIDDLE]))
    ks = np.float32(-height * (s * C[COS_MIDDLE] - c * C[SIN_MIDDLE]))
    zero = spread(like, 0.0)
    for h in range(0, BLOCKS, L):
        best, found, number = spread(like, 1e30), zero, zero
        for i in range(h, int(C[ENTRIES]), BLOCKS):
            b = FEATURE_ROWS * 8 * (i // 8) + i % 8
            d = load(like, table, b) + f0 * load(like, table, b + 8) + f1 * load(like, table, b + 16)
            d = d + f2 * load(like, table, b + 24) + f3 * load(like, table, b + 32)
            d = d + f4 * load(like, table, b + 40) + f5 * load(like, table, b + 48)
            if height > 0.0:
                w = k0 + kc * load(like, table, b + 56) + ks * load(like, table, b + 64)
                d = d + where_less(w, zero, zero, w)
            found = where_less(d, best, number, found)
            best = where_less(d, best, d, best)
            number = number + np.float32(BLOCKS)
        store(ws, search + RANK + h, widen(best))
        store(ws, search + ENTRY + h, widen(found))
    for k in range(BLOCKS):
        ws[search + ENTRY + k] += k


@helper
def wound(x, lower, upper, near):
    """x plus as many full turns as bring it nearest to `near` inside its limits; at a limit if there is no such."""
    x += TURN * math.floor((near - x) / TURN + 0.5)
    if x < lower:
        x += TURN * math.ceil((lower - x) / TURN)
    elif x > upper:
        x -= TURN * math.ceil((x - upper) / TURN)
    return min(max(x, lower), upper)


@helper
def start_from(C, table, ws, search, i, q0, first, L, lane):
    """Entry i as the trial of a lane, its first and last joint turned for the target, as near to q0 as they can be.

    Args:
        q0, first: its numbers begin there.
    """
    n = int(C[N_COLUMNS])
    columns = MODEL_HEAD + NODE * int(C[N_NODES])
    entry = FEATURE_ROWS * int(C[ENTRIES]) + (n + ENTRY_TAIL) * i
    at = search + FEATURES
    for j in range(n):
        o = columns + COLUMN_FLOATS * j
        x = q0[first + int(C[o + AT])] / C[o + UNIT] if C[o + IS_HELD] != 0.0 else np.float64(table[entry + j])
        ws[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * L + lane] = x
    if C[TURNS_FIRST] != 0.0:
        j = int(C[MODEL_HEAD + COLUMN])
        o = columns + COLUMN_FLOATS * j
        x = math.atan2(ws[at + AZIMUTH + 1], ws[at + AZIMUTH]) - np.float64(table[entry + n + 3])
        x = wound(x, C[o + LOWER], C[o + UPPER], q0[first + int(C[o + AT])])
        ws[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * L + lane] = x
    if C[TURNS_LAST] != 0.0:
        # the turn about the last axis that brings both frames nearest to each other
        group = FEATURE_ROWS * 8 * (i // 8) + i % 8
        xx, xy, xz = np.float64(table[entry + n]), np.float64(table[entry + n + 1]), np.float64(table[entry + n + 2])
        w = 1.0 / C[TURN_WEIGHT]
        zx, zy, zz = w * table[group + 32], w * table[group + 40], w * table[group + 48]
        yx, yy, yz = zy * xz - zz * xy, zz * xx - zx * xz, zx * xy - zy * xx
        tx, ty, tz = ws[at + LAST_X], ws[at + LAST_X + 1], ws[at + LAST_X + 2]
        ax, ay, az = w * ws[at + 3], w * ws[at + 4], w * ws[at + 5]
        ux, uy, uz = ay * tz - az * ty, az * tx - ax * tz, ax * ty - ay * tx
        sine = yx * tx + yy * ty + yz * tz - (xx * ux + xy * uy + xz * uz)
        cosine = xx * tx + xy * ty + xz * tz + yx * ux + yy * uy + yz * uz
        j = int(C[MODEL_HEAD + NODE * (int(C[N_NODES]) - 1) + COLUMN])
        o = columns + COLUMN_FLOATS * j
        x = wound(math.atan2(sine, cosine), C[o + LOWER], C[o + UPPER], q0[first + int(C[o + AT])])
        ws[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * L + lane] = x
