"""Restarts of the chain kernels: attempts from a seed, from the seed table and from random starts, lane by lane.

The seed table holds configurations spread over the chain's limits, with the poses of the tip, for starts near a target.
The first and the last revolute joint are left out of the comparison, since they follow from the target: every entry and
every target is rotated about the first axis to azimuth 0, and is described by the last axis (a point on it, and its
direction) alone. The first joint is then the difference of the azimuths, and the last joint the best rotation about its
axis. So a small table covers the workspace.

Each lane works on a target until it is done, and takes the next. The result depends only on the target, its q0 and the
key: not on the lane, nor on other targets, nor on their order.
"""

from __future__ import annotations

import math

import numpy as np

from .chain_iteration import CHECK_INTERVAL, chain_forward_kinematics, iterate
from .chain_layout import *
from .compiler import inline, subroutine
from .vector import eight_floats, lanes_of, load, spread, store, where_less, widen

FULL_TURN = 2.0 * math.pi
HALTON_SKIPPED = 20
"""Skipped numbers of the Halton sequence: the first ones are correlated in large bases."""
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)
"""Bases of the Halton sequence, a base per dimension; further dimensions use hashed numbers."""
AZIMUTH = 6
"""Offset of cosine and sine of the azimuth in the features."""
LAST_X_AXIS = 8
"""Offset of the last joint's x axis in the features."""


@inline
def write_features(model, R, start, f, first):
    """Write the features of a tip pose into f from `first` on.

    R holds the rotation, row by row, and the position of the tip, from `start` on. Features are a point on the last
    axis and that axis, rotated to azimuth 0; cosine and sine of the azimuth; and the last joint's x axis, rotated
    likewise.
    """
    px, py, pz = R[start + 9], R[start + 10], R[start + 11]
    if model[FACTORS_LAST_JOINT] != 0.0:
        o = MODEL_HEAD + JOINT_FLOATS * (int(model[N_NODES]) - 1) + LINK_TRANSLATION
        tx, ty = model[o], model[o + 1]
        px -= R[start] * tx + R[start + 1] * ty
        py -= R[start + 3] * tx + R[start + 4] * ty
        pz -= R[start + 6] * tx + R[start + 7] * ty
    c, s = 1.0, 0.0
    if model[FACTORS_FIRST_JOINT] != 0.0:
        radius = math.sqrt(px * px + py * py) + 1e-12
        c, s = px / radius, py / radius
    f[first], f[first + 1], f[first + 2] = c * px + s * py, c * py - s * px, pz
    ax, ay, az = R[start + 2], R[start + 5], R[start + 8]
    w = model[ROTATION_WEIGHT] if model[FACTORS_LAST_JOINT] != 0.0 or model[IS_PARTIAL] == 0.0 else 0.0
    f[first + 3], f[first + 4], f[first + 5] = w * (c * ax + s * ay), w * (c * ay - s * ax), w * az
    f[first + AZIMUTH], f[first + AZIMUTH + 1] = c, s
    f[first + LAST_X_AXIS] = c * R[start] + s * R[start + 3]
    f[first + LAST_X_AXIS + 1] = c * R[start + 3] - s * R[start]
    f[first + LAST_X_AXIS + 2] = R[start + 6]


@inline
def halton(i, prime):
    """The i-th number of the Halton sequence (radical inverse) in a prime base."""
    value, digit_weight = 0.0, 1.0
    while i > 0:
        digit_weight /= prime
        value += digit_weight * (i % prime)
        i //= prime
    return value


@inline
def splitmix64(x):
    """Mix a 64-bit integer: the output function of splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inline
def random_uniform(key, i, j):
    """A number in [0, 1) that is a pure function of key, i and j."""
    x = np.uint64(key) + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(j) * np.uint64(0xD1B54A32D192ED03)
    return np.float64(splitmix64(splitmix64(x)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@subroutine
def fill_table(model, work, q, table):
    """Write the seed table of a chain; locked joints are as in q, (columns,)."""
    n, entries = int(model[N_COLUMNS]), int(model[ENTRIES])
    columns = MODEL_HEAD + JOINT_FLOATS * int(model[N_NODES])
    R, f = np.empty(12), np.empty(11)
    first_column, last_column = -1, -1
    if model[FACTORS_FIRST_JOINT] != 0.0:
        first_column = int(model[MODEL_HEAD + JOINT_COLUMN])
    if model[FACTORS_LAST_JOINT] != 0.0:
        last_column = int(model[MODEL_HEAD + JOINT_FLOATS * (int(model[N_NODES]) - 1) + JOINT_COLUMN])
    tail = FEATURE_ROWS * entries
    for i in range(entries):
        dimension = 0
        for j in range(n):
            o = columns + COLUMN_FLOATS * j
            if j == first_column or j == last_column:
                x = 0.0
            elif model[o + IS_LOCKED] != 0.0:
                x = q[j] / model[o + Q_UNIT]
            else:
                u = (
                    halton(i + HALTON_SKIPPED, PRIMES[dimension])
                    if dimension < len(PRIMES)
                    else random_uniform(1, i, j)
                )
                dimension += 1
                x = model[o + SAMPLE_MIN] + (model[o + SAMPLE_MAX] - model[o + SAMPLE_MIN]) * u
            work[LANE_HEAD + COLUMN_SLOTS * j + TRIAL] = x
            table[tail + (n + ENTRY_TAIL) * i + j] = x
        R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8], R[9], R[10], R[11] = chain_forward_kinematics(
            0.0, model, work
        )
        write_features(model, R, 0, f, 0)
        group = FEATURE_ROWS * 8 * (i // 8) + i % 8
        square = 0.0
        for k in range(6):
            square += f[k] * f[k]
            table[group + 8 * (1 + k)] = f[k]
        table[group] = square
        table[group + 8 * 7], table[group + 8 * 8] = f[AZIMUTH], f[AZIMUTH + 1]
        end = tail + (n + ENTRY_TAIL) * i + n
        table[end], table[end + 1], table[end + 2] = f[LAST_X_AXIS], f[LAST_X_AXIS + 1], f[LAST_X_AXIS + 2]
        table[end + 3] = math.atan2(f[AZIMUTH + 1], f[AZIMUTH])


@inline
def rank_entries(model, table, work, search):
    """Write the nearest entry of each block to a lane's target, and its distance, into the lane's search."""
    features = search + FEATURES
    scalar_type = eight_floats(0.0)
    lanes = lanes_of(scalar_type)
    f0, f1, f2 = (
        np.float32(-2.0 * work[features]),
        np.float32(-2.0 * work[features + 1]),
        np.float32(-2.0 * work[features + 2]),
    )
    f3, f4, f5 = (
        np.float32(-2.0 * work[features + 3]),
        np.float32(-2.0 * work[features + 4]),
        np.float32(-2.0 * work[features + 5]),
    )
    penalty = model[AZIMUTH_PENALTY]
    # linear in the cosine of the azimuth's difference from the middle, so that no angle has to be wrapped
    c, s = work[features + AZIMUTH], work[features + AZIMUTH + 1]
    k0, kc = (
        np.float32(penalty * model[COS_HALF_RANGE]),
        np.float32(-penalty * (c * model[COS_RANGE_MIDDLE] + s * model[SIN_RANGE_MIDDLE])),
    )
    ks = np.float32(-penalty * (s * model[COS_RANGE_MIDDLE] - c * model[SIN_RANGE_MIDDLE]))
    zeros = spread(scalar_type, 0.0)
    for h in range(0, TABLE_BLOCKS, lanes):
        best, nearest, entry = spread(scalar_type, 1e30), zeros, zeros
        for i in range(h, int(model[ENTRIES]), TABLE_BLOCKS):
            b = FEATURE_ROWS * 8 * (i // 8) + i % 8
            d = (
                load(scalar_type, table, b)
                + f0 * load(scalar_type, table, b + 8)
                + f1 * load(scalar_type, table, b + 16)
            )
            d = d + f2 * load(scalar_type, table, b + 24) + f3 * load(scalar_type, table, b + 32)
            d = d + f4 * load(scalar_type, table, b + 40) + f5 * load(scalar_type, table, b + 48)
            if penalty > 0.0:
                w = k0 + kc * load(scalar_type, table, b + 56) + ks * load(scalar_type, table, b + 64)
                d = d + where_less(w, zeros, zeros, w)
            nearest = where_less(d, best, entry, nearest)
            best = where_less(d, best, d, best)
            entry = entry + np.float32(TABLE_BLOCKS)
        store(work, search + BLOCK_DISTANCE + h, widen(best))
        store(work, search + BLOCK_ENTRY + h, widen(nearest))
    for k in range(TABLE_BLOCKS):
        work[search + BLOCK_ENTRY + k] += k


@inline
def wrap_near(x, lower, upper, reference):
    """Add full turns to x so that it is nearest to `reference` inside its limits; a limit if no such value exists."""
    x += FULL_TURN * math.floor((reference - x) / FULL_TURN + 0.5)
    if x < lower:
        x += FULL_TURN * math.ceil((lower - x) / FULL_TURN)
    elif x > upper:
        x -= FULL_TURN * math.ceil((x - upper) / FULL_TURN)
    return min(max(x, lower), upper)


@inline
def start_from_entry(model, table, work, search, i, q0, first, lanes, lane):
    """Write entry i as the trial of a lane, with first and last joint set for the target, as near to q0 as possible.

    Args:
        q0, first: the start of all targets, flat, and the offset of this target's numbers.
        lanes, lane: number of lanes, and the lane.
    """
    n = int(model[N_COLUMNS])
    columns = MODEL_HEAD + JOINT_FLOATS * int(model[N_NODES])
    entry = FEATURE_ROWS * int(model[ENTRIES]) + (n + ENTRY_TAIL) * i
    features = search + FEATURES
    for j in range(n):
        o = columns + COLUMN_FLOATS * j
        x = (
            q0[first + int(model[o + Q_INDEX])] / model[o + Q_UNIT]
            if model[o + IS_LOCKED] != 0.0
            else np.float64(table[entry + j])
        )
        work[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * lanes + lane] = x
    if model[FACTORS_FIRST_JOINT] != 0.0:
        j = int(model[MODEL_HEAD + JOINT_COLUMN])
        o = columns + COLUMN_FLOATS * j
        x = math.atan2(work[features + AZIMUTH + 1], work[features + AZIMUTH]) - np.float64(table[entry + n + 3])
        x = wrap_near(x, model[o + X_MIN], model[o + X_MAX], q0[first + int(model[o + Q_INDEX])])
        work[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * lanes + lane] = x
    if model[FACTORS_LAST_JOINT] != 0.0:
        # the rotation about the last axis that brings both frames nearest to each other
        group = FEATURE_ROWS * 8 * (i // 8) + i % 8
        xx, xy, xz = np.float64(table[entry + n]), np.float64(table[entry + n + 1]), np.float64(table[entry + n + 2])
        w = 1.0 / model[ROTATION_WEIGHT]
        zx, zy, zz = w * table[group + 32], w * table[group + 40], w * table[group + 48]
        yx, yy, yz = zy * xz - zz * xy, zz * xx - zx * xz, zx * xy - zy * xx
        tx, ty, tz = work[features + LAST_X_AXIS], work[features + LAST_X_AXIS + 1], work[features + LAST_X_AXIS + 2]
        ax, ay, az = w * work[features + 3], w * work[features + 4], w * work[features + 5]
        ux, uy, uz = ay * tz - az * ty, az * tx - ax * tz, ax * ty - ay * tx
        sine = yx * tx + yy * ty + yz * tz - (xx * ux + xy * uy + xz * uz)
        cosine = xx * tx + xy * ty + xz * tz + yx * ux + yy * uy + yz * uz
        j = int(model[MODEL_HEAD + JOINT_FLOATS * (int(model[N_NODES]) - 1) + JOINT_COLUMN])
        o = columns + COLUMN_FLOATS * j
        x = wrap_near(math.atan2(sine, cosine), model[o + X_MIN], model[o + X_MAX], q0[first + int(model[o + Q_INDEX])])
        work[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * lanes + lane] = x


ROTATION_TOLERANCE = 1e-6
"""Largest total deviation of a target's rotation columns from unit length and right angles."""
MAX_START_VALUE = 1e5
"""Sum of absolute values of q0 (rad and m) above which the kernel rejects a start."""
NO_COST = 1e30
"""Cost before the first evaluation."""
EASY_STARTS, FOLLOW_UP_COST, MAX_FOLLOW_UPS, FOLLOW_UP_RADIUS = 4.0, 1e-4, 3.0, 0.05
"""After EASY_STARTS starts without a solution, an attempt that ends with a cost below FOLLOW_UP_COST is followed up: up
to MAX_FOLLOW_UPS starts around its end, within FOLLOW_UP_RADIUS (rad, or ratio of a joint's range), then 2 and 4 times
as far. Tuned on a Panda."""
EXTRA_WORK_COST = 1e-6
"""Cost below which a target is probably not out of reach: it gets twice the budget of iterations."""
OUT_OF_REACH_ATTEMPTS = 8
"""Attempts at a target that is farther away than the chain is long."""


@inline
def is_pose(X, t):
    """Whether the 16 numbers from t on are a rigid transform."""
    deviation = 0.0
    for k in range(3):
        dot, square = 0.0, 0.0
        for r in range(3):
            square += X[t + 4 * r + k] * X[t + 4 * r + k]
            dot += X[t + 4 * r + k] * X[t + 4 * r + (k + 1) % 3]
        deviation += abs(dot) + abs(square - 1.0) + 0.0 * X[t + 4 * k + 3] + abs(X[t + 12 + k])
    x = X[t + 5] * X[t + 10] - X[t + 6] * X[t + 9]
    y = X[t + 6] * X[t + 8] - X[t + 4] * X[t + 10]
    z = X[t + 4] * X[t + 9] - X[t + 5] * X[t + 8]
    is_mirrored = X[t + 0] * x + X[t + 1] * y + X[t + 2] * z < 0.0
    return not is_mirrored and deviation + abs(X[t + 15] - 1.0) < ROTATION_TOLERANCE


@inline
def write_lane_target(model, work, X, i, lanes, lane, R):
    """Write target i into a lane, in the frame of the base and without the tool; also into R, (12,)."""
    scale, t = model[LENGTH_SCALE], 16 * i
    x, y, z = X[t + 3] - model[BASE_POSITION], X[t + 7] - model[BASE_POSITION + 1], X[t + 11] - model[BASE_POSITION + 2]
    for r in range(3):
        b0, b1, b2 = model[BASE_ROTATION + r], model[BASE_ROTATION + 3 + r], model[BASE_ROTATION + 6 + r]
        u0 = b0 * X[t + 0] + b1 * X[t + 4] + b2 * X[t + 8]
        u1 = b0 * X[t + 1] + b1 * X[t + 5] + b2 * X[t + 9]
        u2 = b0 * X[t + 2] + b1 * X[t + 6] + b2 * X[t + 10]
        for k in range(3):
            R[3 * r + k] = (
                u0 * model[TOOL_ROTATION + 3 * k]
                + u1 * model[TOOL_ROTATION + 3 * k + 1]
                + u2 * model[TOOL_ROTATION + 3 * k + 2]
            )
        R[9 + r] = scale * (b0 * x + b1 * y + b2 * z)
        if model[IS_PARTIAL] != 0.0:
            for k in range(3):
                p, g = POSITION_FRAME + k, ROTATION_FRAME + k
                work[(POSITION_AXES + 3 * r + k) * lanes + lane] = u0 * model[p] + u1 * model[p + 3] + u2 * model[p + 6]
                work[(ROTATION_AXES + 3 * r + k) * lanes + lane] = u0 * model[g] + u1 * model[g + 3] + u2 * model[g + 6]
    if model[IS_PARTIAL] != 0.0 and model[HAS_OWN_AXES] != 0.0:
        for k in range(9):
            work[(POSITION_AXES + k) * lanes + lane] = work[(ROTATION_AXES + k) * lanes + lane] = model[ROW_AXES + k]
    for k in range(12):
        work[(TARGET_ROTATION + k) * lanes + lane] = R[k]


@inline
def begin_target(model, work, X, i, q0, lanes, lane, search, key, R):
    """Begin target i in a lane; False if it is not a rigid transform or its start is out of range."""
    if not is_pose(X, 16 * i):
        return False
    nq, total = int(model[N_Q]), 0.0
    for k in range(nq):
        total += abs(q0[nq * i + k])
    if not total < MAX_START_VALUE:
        return False
    write_lane_target(model, work, X, i, lanes, lane, R)
    work[search + TARGET_INDEX], work[search + ATTEMPT], work[search + ITERATIONS], work[search + SOLUTION_COUNT] = (
        i,
        0.0,
        0.0,
        0.0,
    )
    work[search + BEST_COST], work[search + NEAREST_DISTANCE], work[search + START_WAS_CLAMPED] = NO_COST, np.inf, 0.0
    work[search + START_COUNT], work[search + FOLLOW_UP_COUNT] = 0.0, 0.0
    work[search + RANDOM_KEY] = (
        math.floor((abs(R[9]) + 3.0 * abs(R[10]) + 7.0 * abs(R[11]) + abs(R[1])) * 1e9 % 1e15) + key
    )
    return True


@inline
def begin_lane(model, work, lanes, lane):
    """Begin an attempt at the trial of a lane, with nothing accepted yet."""
    work[ITERATION * lanes + lane], work[NEXT_CHECK * lanes + lane], work[MU * lanes + lane] = (
        0.0,
        CHECK_INTERVAL,
        model[START_DAMPING],
    )
    work[REFERENCE_COST * lanes + lane], work[COST * lanes + lane], work[IS_FINISHED * lanes + lane] = (
        np.inf,
        NO_COST,
        0.0,
    )
    work[POSITION_ERROR * lanes + lane], work[ROTATION_ERROR * lanes + lane] = NO_COST, NO_COST


@inline
def begin_attempt(model, table, work, i, q0, lanes, lane, search, mode, R):
    """Write the next start as the trial of a lane; R, (12,), is scratch memory."""
    n, first = int(model[N_COLUMNS]), int(model[N_Q]) * i
    columns = MODEL_HEAD + JOINT_FLOATS * int(model[N_NODES])
    is_hard = work[search + START_COUNT] >= EASY_STARTS
    is_follow_up = (
        is_hard and work[COST * lanes + lane] < FOLLOW_UP_COST and work[search + FOLLOW_UP_COUNT] < MAX_FOLLOW_UPS
    )
    work[search + ATTEMPT] += 1.0
    if is_follow_up:
        # near a singular pose an attempt may stall close to the target; starts around it often succeed
        radius = FOLLOW_UP_RADIUS * 2.0 ** work[search + FOLLOW_UP_COUNT]
        work[search + FOLLOW_UP_COUNT] += 1.0
        for j in range(n):
            o = columns + COLUMN_FLOATS * j
            x = work[(LANE_HEAD + COLUMN_SLOTS * j + ACCEPTED) * lanes + lane]
            if model[o + IS_LOCKED] == 0.0:
                u = 2.0 * random_uniform(work[search + RANDOM_KEY], work[search + ATTEMPT], j) - 1.0
                x = min(
                    max(x + radius * u * min(1.0, model[o + SAMPLE_MAX] - model[o + SAMPLE_MIN]), model[o + X_MIN]),
                    model[o + X_MAX],
                )
            work[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * lanes + lane] = x
        begin_lane(model, work, lanes, lane)
        return
    start = int(work[search + START_COUNT])
    work[search + START_COUNT] += 1.0
    work[search + FOLLOW_UP_COUNT] = 0.0
    if mode == FROM_SEED:
        start -= 1
    if start == 0 and mode != SINGLE_ATTEMPT:  # only now: most seeds reach the target without the table
        for k in range(12):
            R[k] = work[(TARGET_ROTATION + k) * lanes + lane]
        write_features(model, R, 0, work, search + FEATURES)
        if model[IS_RANKED] != 0.0:
            rank_entries(model, table, work, search)
    if mode == SINGLE_ATTEMPT or start < 0:
        for j in range(n):
            o = columns + COLUMN_FLOATS * j
            x = q0[first + int(model[o + Q_INDEX])] / model[o + Q_UNIT]
            if model[o + IS_LOCKED] == 0.0:
                if x < model[o + X_MIN] or x > model[o + X_MAX]:
                    work[search + START_WAS_CLAMPED] = 1.0
                x = min(max(x, model[o + X_MIN]), model[o + X_MAX])
            work[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * lanes + lane] = x
    elif start < TABLE_BLOCKS:
        entry = start
        if model[IS_RANKED] != 0.0:
            best = 0
            for k in range(1, TABLE_BLOCKS):
                if work[search + BLOCK_DISTANCE + k] < work[search + BLOCK_DISTANCE + best]:
                    best = k
            work[search + BLOCK_DISTANCE + best] = np.inf
            entry = int(work[search + BLOCK_ENTRY + best])
        start_from_entry(model, table, work, search, entry, q0, first, lanes, lane)
    else:
        for j in range(n):
            o = columns + COLUMN_FLOATS * j
            x = model[o + SAMPLE_MIN] + (model[o + SAMPLE_MAX] - model[o + SAMPLE_MIN]) * random_uniform(
                work[search + RANDOM_KEY], work[search + ATTEMPT], j
            )
            if model[o + IS_LOCKED] != 0.0:
                x = q0[first + int(model[o + Q_INDEX])] / model[o + Q_UNIT]
            work[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * lanes + lane] = x
    begin_lane(model, work, lanes, lane)


@inline
def end_attempt(model, work, i, q0, lanes, lane, search, mode):
    """Store the attempt of a lane if it is the best so far; True if its target is done."""
    n, first = int(model[N_COLUMNS]), int(model[N_Q]) * i
    columns = MODEL_HEAD + JOINT_FLOATS * int(model[N_NODES])
    position_error, rotation_error, cost = (
        work[POSITION_ERROR * lanes + lane],
        work[ROTATION_ERROR * lanes + lane],
        work[COST * lanes + lane],
    )
    is_solved = position_error < model[POSITION_TOLERANCE2] and rotation_error < model[ROTATION_TOLERANCE2]
    work[search + ITERATIONS] += work[ITERATION * lanes + lane] - 1.0  # the first evaluation is at the start
    attempt = work[search + ATTEMPT]
    is_best, distance = False, 0.0
    if is_solved:
        if mode != SINGLE_ATTEMPT:
            # add full turns towards the seed; an attempt that started at the seed is near it already
            unwraps = mode == FROM_TABLE or work[search + START_COUNT] > 1.0
            for j in range(n):
                o = columns + COLUMN_FLOATS * j
                k = (LANE_HEAD + COLUMN_SLOTS * j + ACCEPTED) * lanes + lane
                x, seed = work[k], q0[first + int(model[o + Q_INDEX])] / model[o + Q_UNIT]
                if unwraps and model[o + IS_CONTINUOUS] != 0.0:
                    nearest = x + FULL_TURN * math.floor((seed - x) / FULL_TURN + 0.5)
                    if model[o + X_MIN] <= nearest <= model[o + X_MAX]:
                        x = work[k] = nearest
                distance += (x - seed) * (x - seed) * model[o + Q_UNIT] * model[o + Q_UNIT]
        is_best = distance < work[search + NEAREST_DISTANCE]
        work[search + SOLUTION_COUNT] += 1.0
        if is_best:
            work[search + NEAREST_DISTANCE] = distance
    elif work[search + SOLUTION_COUNT] == 0.0:
        is_best = cost < work[search + BEST_COST]
    if is_best:
        work[search + BEST_COST], work[search + BEST_POSITION_ERROR], work[search + BEST_ROTATION_ERROR] = (
            cost,
            position_error,
            rotation_error,
        )
        for j in range(n):
            work[search + SEARCH_HEAD + j] = work[(LANE_HEAD + COLUMN_SLOTS * j + ACCEPTED) * lanes + lane]
    if mode == SINGLE_ATTEMPT:
        return True
    if work[search + SOLUTION_COUNT] > 0.0:
        return (
            mode == FROM_TABLE or work[search + START_COUNT] == 1.0 or work[search + START_COUNT] > model[SEED_CHOICES]
        )
    x, y, z = (
        work[TARGET_POSITION * lanes + lane],
        work[(TARGET_POSITION + 1) * lanes + lane],
        work[(TARGET_POSITION + 2) * lanes + lane],
    )
    if attempt >= OUT_OF_REACH_ATTEMPTS and x * x + y * y + z * z > model[REACH] * model[REACH]:
        return True
    iteration_budget = (
        model[ITERATION_BUDGET] if work[search + BEST_COST] > EXTRA_WORK_COST else 2.0 * model[ITERATION_BUDGET]
    )
    return attempt >= model[MAX_ATTEMPTS] or work[search + ITERATIONS] >= iteration_budget


@inline
def end_target(model, work, search, q0, q, report):
    """Write the solution and the report of a lane's target."""
    i, nq = int(work[search + TARGET_INDEX]), int(model[N_Q])
    first, r = nq * i, REPORT_FLOATS * i
    columns = MODEL_HEAD + JOINT_FLOATS * int(model[N_NODES])
    for k in range(first, first + nq):
        q[k] = q0[k]
    if work[search + BEST_COST] < NO_COST:
        for j in range(int(model[N_COLUMNS])):
            o = columns + COLUMN_FLOATS * j
            if model[o + IS_LOCKED] == 0.0:
                x = work[search + SEARCH_HEAD + j] * model[o + Q_UNIT]
                q[first + int(model[o + Q_INDEX])] = min(max(x, model[o + Q_MIN]), model[o + Q_MAX])
    report[r] = SOLVED if work[search + SOLUTION_COUNT] > 0.0 else NOT_SOLVED
    report[r + 1], report[r + 2], report[r + 5] = (
        work[search + ATTEMPT],
        work[search + ITERATIONS],
        work[search + START_WAS_CLAMPED],
    )
    report[r + 3] = math.sqrt(work[search + BEST_POSITION_ERROR]) / model[LENGTH_SCALE]
    report[r + 4] = math.sqrt(work[search + BEST_ROTATION_ERROR]) / (
        model[ROTATION_WEIGHT] if model[ROTATION_WEIGHT] != 0.0 else 1.0
    )


@inline
def reject_target(model, i, q0, q, report):
    """Report that target i is bad input; its q is q0."""
    nq = int(model[N_Q])
    for k in range(nq * i, nq * i + nq):
        q[k] = q0[k]
    for k in range(REPORT_FLOATS):
        report[REPORT_FLOATS * i + k] = 0.0
    report[REPORT_FLOATS * i] = BAD_INPUT


@subroutine
def search_targets(scalar_type, model, table, work, work_alias, X, q0, mode, key, q, report):
    """Solve for M targets X (M x 16) from q0 (M x nq) into q (M x nq) and report (M x REPORT_FLOATS), all flat.

    Args:
        scalar_type: a float, or a vector of eight lanes (`vector.py`).
        model, table: the chain and its seed table (`chain_layout.py`).
        work, work_alias: the same workspace twice, as for `iterate`.
        mode: FROM_TABLE, FROM_SEED or SINGLE_ATTEMPT.
        key: key of the random numbers.
    """
    lanes, n = lanes_of(scalar_type), int(model[N_COLUMNS])
    searches = (LANE_HEAD + COLUMN_SLOTS * n) * lanes
    length = SEARCH_HEAD + n
    R = work[searches + length * lanes : searches + length * lanes + 12]
    next_target, busy_lanes = 0, 0
    for lane in range(lanes):
        work[searches + length * lane + TARGET_INDEX] = -1.0
        work[IS_FINISHED * lanes + lane] = 1.0
        for j in range(n):
            work[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * lanes + lane] = 0.0
        busy_lanes += 1
    while busy_lanes > 0:
        for lane in range(lanes):
            if work[IS_FINISHED * lanes + lane] == 0.0:
                continue
            search = searches + length * lane
            i = int(work[search + TARGET_INDEX])
            if i == -2:  # no target left for this lane: it idles
                work[MU * lanes + lane], work[NEXT_CHECK * lanes + lane], work[ITERATION * lanes + lane] = (
                    1e-9,
                    NO_COST,
                    0.0,
                )
                work[IS_FINISHED * lanes + lane] = 0.0
                continue
            if i >= 0 and end_attempt(model, work, i, q0, lanes, lane, search, mode):
                end_target(model, work, search, q0, q, report)
                i = -1
            while i < 0 and next_target < X.shape[0] // 16:
                if begin_target(model, work, X, next_target, q0, lanes, lane, search, key, R):
                    i = next_target
                else:
                    reject_target(model, next_target, q0, q, report)
                next_target += 1
            if i < 0:
                work[search + TARGET_INDEX] = -2.0
                busy_lanes -= 1
            else:
                begin_attempt(model, table, work, i, q0, lanes, lane, search, mode, R)
        if busy_lanes > 0:
            iterate(scalar_type, model, work, work_alias)
