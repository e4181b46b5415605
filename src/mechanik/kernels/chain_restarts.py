"""Search of the chain kernels: attempts from a seed, from the seed table and from random starts, in each lane.

The seed table contains configurations spread over the chain's limits, with features of the tip pose, to find starts
near a target. For a whole pose the six features that are compared do not depend on the first and the last joint if
these are free revolute joints: every entry and every target is rotated about the first axis to azimuth 0, and is
described by the last axis alone (a point on the axis and its direction). The other five features, the azimuth and the x
axis of the last joint, give the values of these two joints: for a start, the first joint is the difference of the
azimuths, and the last joint the best rotation about its axis. Therefore a small table covers the whole reachable
region. For other chains and goals, see FACTORS_FIRST_JOINT, FACTORS_LAST_JOINT and IS_RANKED in `chain_layout.py`.

Each lane solves one target after another. The result of a target depends only on the target, its seed q0, the mode and
the key; it does not depend on the lane, on other targets or on their order. The functions take the number of lanes
(`lanes`), the index of the lane (`lane`) and the offset of its search in the workspace (`search`). The numbers of all
lanes for one slot are adjacent: slot s of a lane is `work[s * lanes + lane]`. `j` is the index of a column, and
`column` is the offset of this column in the model.
"""

from __future__ import annotations

import math

import numpy as np

from .chain_iteration import CHECK_INTERVAL, chain_forward_kinematics, iterate
from .chain_layout import *
from .compiler import inline, subroutine
from .vector import broadcast, eight_floats, lanes_of, load, store, where_less, widen

FULL_TURN = 2.0 * math.pi
HALTON_SKIP_COUNT = 20
"""Number of elements at the start of the Halton sequence that are not used: they are correlated in large bases."""
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)
"""Bases of the Halton sequence, one for each dimension; further dimensions use pseudorandom numbers."""
AZIMUTH = 6
"""Index of cosine and sine of the azimuth in the features."""
LAST_X_AXIS = 8
"""Index of the last joint's x axis (three numbers) in the features."""


@inline
def write_features(model, pose, pose_start, features, first_feature):
    """Write the 11 features of a tip pose to `features`, from the index `first_feature` on.

    The features are a point on the last axis and the direction of this axis (weighted), both rotated to azimuth 0;
    cosine and sine of the azimuth; and the x axis of the last joint, rotated to azimuth 0. Without FACTORS_LAST_JOINT
    the point is the tip; without FACTORS_FIRST_JOINT nothing is rotated and the azimuth is 0.

    Args:
        pose, pose_start: an array with the rotation of the last link (without the tool rotation), row by row, and the
            scaled position of the tip, in the frame of the base; and their first index.
        features, first_feature: the array to which the features are written, and their first index.
    """
    px, py, pz = pose[pose_start + 9], pose[pose_start + 10], pose[pose_start + 11]
    if model[FACTORS_LAST_JOINT] != 0.0:
        last_link = MODEL_HEAD + JOINT_FLOATS * (int(model[N_JOINTS]) - 1) + LINK_TRANSLATION
        tx, ty = model[last_link], model[last_link + 1]
        px -= pose[pose_start] * tx + pose[pose_start + 1] * ty
        py -= pose[pose_start + 3] * tx + pose[pose_start + 4] * ty
        pz -= pose[pose_start + 6] * tx + pose[pose_start + 7] * ty
    cosine, sine = 1.0, 0.0
    if model[FACTORS_FIRST_JOINT] != 0.0:
        radius = math.sqrt(px * px + py * py) + 1e-12
        cosine, sine = px / radius, py / radius
    features[first_feature], features[first_feature + 1], features[first_feature + 2] = (
        cosine * px + sine * py,
        cosine * py - sine * px,
        pz,
    )
    ax, ay, az = pose[pose_start + 2], pose[pose_start + 5], pose[pose_start + 8]
    rotation_weight = model[ROTATION_WEIGHT] if model[FACTORS_LAST_JOINT] != 0.0 or model[IS_PARTIAL] == 0.0 else 0.0
    features[first_feature + 3], features[first_feature + 4], features[first_feature + 5] = (
        rotation_weight * (cosine * ax + sine * ay),
        rotation_weight * (cosine * ay - sine * ax),
        rotation_weight * az,
    )
    features[first_feature + AZIMUTH], features[first_feature + AZIMUTH + 1] = cosine, sine
    features[first_feature + LAST_X_AXIS] = cosine * pose[pose_start] + sine * pose[pose_start + 3]
    features[first_feature + LAST_X_AXIS + 1] = cosine * pose[pose_start + 3] - sine * pose[pose_start]
    features[first_feature + LAST_X_AXIS + 2] = pose[pose_start + 6]


@inline
def halton(index, prime):
    """Return an element of the Halton sequence (radical inverse) in a prime base."""
    value, digit_weight = 0.0, 1.0
    while index > 0:
        digit_weight /= prime
        value += digit_weight * (index % prime)
        index //= prime
    return value


@inline
def splitmix64(x):
    """Return a hash of a 64-bit integer: the output function of the generator splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inline
def random_uniform(key, i, j):
    """Return a pseudorandom number in [0, 1) that depends only on key, i and j."""
    x = np.uint64(key) + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(j) * np.uint64(0xD1B54A32D192ED03)
    return np.float64(splitmix64(splitmix64(x)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@subroutine
def fill_table(model, work, joint_values, table):
    """Write the seed table of a chain; locked joints have their values in `joint_values`, (columns,), rad or m."""
    column_count, entry_count = int(model[N_COLUMNS]), int(model[ENTRIES])
    columns_start = MODEL_HEAD + JOINT_FLOATS * int(model[N_JOINTS])
    pose, features = np.empty(12), np.empty(11)
    first_column, last_column = -1, -1
    if model[FACTORS_FIRST_JOINT] != 0.0:
        first_column = int(model[MODEL_HEAD + JOINT_COLUMN])
    if model[FACTORS_LAST_JOINT] != 0.0:
        last_column = int(model[MODEL_HEAD + JOINT_FLOATS * (int(model[N_JOINTS]) - 1) + JOINT_COLUMN])
    entries_start = FEATURE_ROWS * entry_count
    for entry in range(entry_count):
        dimension = 0
        for j in range(column_count):
            column = columns_start + COLUMN_FLOATS * j
            if j == first_column or j == last_column:
                x = 0.0
            elif model[column + IS_LOCKED] != 0.0:
                x = joint_values[j] / model[column + Q_UNIT]
            else:
                fraction = (
                    halton(entry + HALTON_SKIP_COUNT, PRIMES[dimension])
                    if dimension < len(PRIMES)
                    else random_uniform(1, entry, j)
                )
                dimension += 1
                x = model[column + SAMPLE_MIN] + (model[column + SAMPLE_MAX] - model[column + SAMPLE_MIN]) * fraction
            work[LANE_HEAD + COLUMN_SLOTS * j + TRIAL] = x
            table[entries_start + (column_count + ENTRY_TAIL) * entry + j] = x
        pose[0], pose[3], pose[6], pose[1], pose[4], pose[7], pose[2], pose[5], pose[8], pose[9], pose[10], pose[11] = (
            chain_forward_kinematics(0.0, model, work)
        )
        write_features(model, pose, 0, features, 0)
        group = FEATURE_ROWS * 8 * (entry // 8) + entry % 8
        norm2 = 0.0
        for k in range(6):
            norm2 += features[k] * features[k]
            table[group + 8 * (1 + k)] = features[k]
        table[group] = norm2
        table[group + 8 * 7], table[group + 8 * 8] = features[AZIMUTH], features[AZIMUTH + 1]
        entry_end = entries_start + (column_count + ENTRY_TAIL) * entry + column_count
        table[entry_end], table[entry_end + 1], table[entry_end + 2] = (
            features[LAST_X_AXIS],
            features[LAST_X_AXIS + 1],
            features[LAST_X_AXIS + 2],
        )
        table[entry_end + 3] = math.atan2(features[AZIMUTH + 1], features[AZIMUTH])


@inline
def rank_entries(model, table, work, search):
    """Find the entry nearest to a lane's target in each block of the table; write it and its distance to the search.

    The distance is |f|^2 - 2 f . t for the features f of the entry and t of the target, which is the squared distance
    up to a constant, plus the penalty on the azimuth. t0 to t5 are -2 t.
    """
    features = search + FEATURES
    like = eight_floats(0.0)
    vector_length = lanes_of(like)
    t0, t1, t2 = (
        np.float32(-2.0 * work[features]),
        np.float32(-2.0 * work[features + 1]),
        np.float32(-2.0 * work[features + 2]),
    )
    t3, t4, t5 = (
        np.float32(-2.0 * work[features + 3]),
        np.float32(-2.0 * work[features + 4]),
        np.float32(-2.0 * work[features + 5]),
    )
    penalty = model[AZIMUTH_PENALTY]
    # linear in the cosine of the first joint's angle from the middle of its range, so that no angle has to be wrapped
    cosine, sine = work[features + AZIMUTH], work[features + AZIMUTH + 1]
    penalty_offset, penalty_cosine = (
        np.float32(penalty * model[COS_HALF_RANGE]),
        np.float32(-penalty * (cosine * model[COS_RANGE_MIDDLE] + sine * model[SIN_RANGE_MIDDLE])),
    )
    penalty_sine = np.float32(-penalty * (sine * model[COS_RANGE_MIDDLE] - cosine * model[SIN_RANGE_MIDDLE]))
    zeros = broadcast(like, 0.0)
    for first_block in range(0, TABLE_BLOCKS, vector_length):
        best_distance, nearest_entry, block_entry = broadcast(like, 1e30), zeros, zeros
        for table_entry in range(first_block, int(model[ENTRIES]), TABLE_BLOCKS):
            group = FEATURE_ROWS * 8 * (table_entry // 8) + table_entry % 8
            distance = load(like, table, group) + t0 * load(like, table, group + 8) + t1 * load(like, table, group + 16)
            distance = distance + t2 * load(like, table, group + 24) + t3 * load(like, table, group + 32)
            distance = distance + t4 * load(like, table, group + 40) + t5 * load(like, table, group + 48)
            if penalty > 0.0:
                azimuth_excess = (
                    penalty_offset
                    + penalty_cosine * load(like, table, group + 56)
                    + penalty_sine * load(like, table, group + 64)
                )
                distance = distance + where_less(azimuth_excess, zeros, zeros, azimuth_excess)
            nearest_entry = where_less(distance, best_distance, block_entry, nearest_entry)
            best_distance = where_less(distance, best_distance, distance, best_distance)
            block_entry = block_entry + np.float32(TABLE_BLOCKS)
        store(work, search + BLOCK_DISTANCE + first_block, widen(best_distance))
        store(work, search + BLOCK_ENTRY + first_block, widen(nearest_entry))
    for k in range(TABLE_BLOCKS):
        work[search + BLOCK_ENTRY + k] += k


@inline
def wrap_near(x, lower, upper, reference):
    """Add full turns to x to come as near to `reference` as the limits allow; return a limit if no value is inside."""
    x += FULL_TURN * math.floor((reference - x) / FULL_TURN + 0.5)
    if x < lower:
        x += FULL_TURN * math.ceil((lower - x) / FULL_TURN)
    elif x > upper:
        x -= FULL_TURN * math.ceil((x - upper) / FULL_TURN)
    return min(max(x, lower), upper)


@inline
def start_from_entry(model, table, work, search, entry_index, q0, first_q, lanes, lane):
    """Write an entry of the table as the trial of a lane.

    With FACTORS_FIRST_JOINT and FACTORS_LAST_JOINT the first and the last joint are computed for the target. Full turns
    are added to these joint values so that the values are as near to q0 as the limits allow.

    Args:
        entry_index: index of the entry.
        q0, first_q: the seeds of all targets, flat, rad or m, and the first index of the target's seed.
    """
    column_count = int(model[N_COLUMNS])
    columns_start = MODEL_HEAD + JOINT_FLOATS * int(model[N_JOINTS])
    entry_start = FEATURE_ROWS * int(model[ENTRIES]) + (column_count + ENTRY_TAIL) * entry_index
    features = search + FEATURES
    for j in range(column_count):
        column = columns_start + COLUMN_FLOATS * j
        x = (
            q0[first_q + int(model[column + Q_INDEX])] / model[column + Q_UNIT]
            if model[column + IS_LOCKED] != 0.0
            else np.float64(table[entry_start + j])
        )
        work[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * lanes + lane] = x
    if model[FACTORS_FIRST_JOINT] != 0.0:
        j = int(model[MODEL_HEAD + JOINT_COLUMN])
        column = columns_start + COLUMN_FLOATS * j
        x = math.atan2(work[features + AZIMUTH + 1], work[features + AZIMUTH]) - np.float64(
            table[entry_start + column_count + 3]
        )
        x = wrap_near(x, model[column + X_MIN], model[column + X_MAX], q0[first_q + int(model[column + Q_INDEX])])
        work[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * lanes + lane] = x
    if model[FACTORS_LAST_JOINT] != 0.0:
        # the rotation about the last axis that minimises the angle between the tip frame and the target; x, y and z are
        # the axes of the entry, t, u and a those of the target
        group = FEATURE_ROWS * 8 * (entry_index // 8) + entry_index % 8
        xx, xy, xz = (
            np.float64(table[entry_start + column_count]),
            np.float64(table[entry_start + column_count + 1]),
            np.float64(table[entry_start + column_count + 2]),
        )
        inverse_weight = 1.0 / model[ROTATION_WEIGHT]
        zx, zy, zz = (
            inverse_weight * table[group + 32],
            inverse_weight * table[group + 40],
            inverse_weight * table[group + 48],
        )
        yx, yy, yz = zy * xz - zz * xy, zz * xx - zx * xz, zx * xy - zy * xx
        tx, ty, tz = work[features + LAST_X_AXIS], work[features + LAST_X_AXIS + 1], work[features + LAST_X_AXIS + 2]
        ax, ay, az = (
            inverse_weight * work[features + 3],
            inverse_weight * work[features + 4],
            inverse_weight * work[features + 5],
        )
        ux, uy, uz = ay * tz - az * ty, az * tx - ax * tz, ax * ty - ay * tx
        sine = yx * tx + yy * ty + yz * tz - (xx * ux + xy * uy + xz * uz)
        cosine = xx * tx + xy * ty + xz * tz + yx * ux + yy * uy + yz * uz
        j = int(model[MODEL_HEAD + JOINT_FLOATS * (int(model[N_JOINTS]) - 1) + JOINT_COLUMN])
        column = columns_start + COLUMN_FLOATS * j
        x = wrap_near(
            math.atan2(sine, cosine),
            model[column + X_MIN],
            model[column + X_MAX],
            q0[first_q + int(model[column + Q_INDEX])],
        )
        work[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * lanes + lane] = x


RIGID_TRANSFORM_TOLERANCE = 1e-6
"""Bound of the sum of the deviations of a target from a rigid transform: those of the squared lengths of the columns of
its rotation from 1, of their scalar products from 0, and of its last row from (0, 0, 0, 1)."""
MAX_SEED_NORM = 1e5
"""Sum of the absolute values of q0 (rad and m) above which the seed is invalid."""
NO_COST = 1e30
"""Cost or squared error before the first evaluation; also an iteration number that is never reached."""
MIN_STARTS_BEFORE_FOLLOW_UP, FOLLOW_UP_COST, MAX_FOLLOW_UPS, FOLLOW_UP_RADIUS = 4.0, 1e-4, 3.0, 0.05
"""After MIN_STARTS_BEFORE_FOLLOW_UP starts without a solution, an attempt that ends with a cost below FOLLOW_UP_COST is
followed by up to MAX_FOLLOW_UPS attempts, as long as each of them ends below this cost. Each starts around the end of
the previous attempt: within FOLLOW_UP_RADIUS (rad or length units of the mechanism; times the range if the range is
below 1), then within 2 and 4 times this radius. Tuned on a Panda."""
NEAR_SOLUTION_COST = 1e-6
"""Cost at or below which a target is probably within reach: its iteration budget is doubled."""
OUT_OF_REACH_ATTEMPTS = 8
"""Largest number of attempts for a target whose distance from the base is above REACH. Fewer attempts save time, more
attempts find a closer pose."""


@inline
def is_pose(X, first_index):
    """Whether the 16 numbers of X from the index `first_index` on are a rigid transform."""
    deviation = 0.0
    for k in range(3):
        dot, norm2 = 0.0, 0.0
        for r in range(3):
            norm2 += X[first_index + 4 * r + k] * X[first_index + 4 * r + k]
            dot += X[first_index + 4 * r + k] * X[first_index + 4 * r + (k + 1) % 3]
        # 0 times an infinite position is NaN, which is not below the tolerance
        deviation += abs(dot) + abs(norm2 - 1.0) + 0.0 * X[first_index + 4 * k + 3] + abs(X[first_index + 12 + k])
    minor_x = X[first_index + 5] * X[first_index + 10] - X[first_index + 6] * X[first_index + 9]
    minor_y = X[first_index + 6] * X[first_index + 8] - X[first_index + 4] * X[first_index + 10]
    minor_z = X[first_index + 4] * X[first_index + 9] - X[first_index + 5] * X[first_index + 8]
    is_mirrored = X[first_index + 0] * minor_x + X[first_index + 1] * minor_y + X[first_index + 2] * minor_z < 0.0
    return not is_mirrored and deviation + abs(X[first_index + 15] - 1.0) < RIGID_TRANSFORM_TOLERANCE


@inline
def write_lane_target(model, work, X, target_index, lanes, lane, target_pose):
    """Write a target to a lane and to `target_pose` (12,): rotation of the last link, scaled position of the tip.

    Both are in the frame of the base; the tool rotation is removed. X contains all targets, 16 numbers each. For a
    partial goal the axes of the residuals are written too.
    (b0, b1, b2) is a row of the inverse rotation of the base, and (u0, u1, u2) the same row of the target's rotation in
    the frame of the base.
    """
    scale, first_index = model[LENGTH_SCALE], 16 * target_index
    x, y, z = (
        X[first_index + 3] - model[BASE_POSITION],
        X[first_index + 7] - model[BASE_POSITION + 1],
        X[first_index + 11] - model[BASE_POSITION + 2],
    )
    for r in range(3):
        b0, b1, b2 = model[BASE_ROTATION + r], model[BASE_ROTATION + 3 + r], model[BASE_ROTATION + 6 + r]
        u0 = b0 * X[first_index + 0] + b1 * X[first_index + 4] + b2 * X[first_index + 8]
        u1 = b0 * X[first_index + 1] + b1 * X[first_index + 5] + b2 * X[first_index + 9]
        u2 = b0 * X[first_index + 2] + b1 * X[first_index + 6] + b2 * X[first_index + 10]
        for k in range(3):
            target_pose[3 * r + k] = (
                u0 * model[TOOL_ROTATION + 3 * k]
                + u1 * model[TOOL_ROTATION + 3 * k + 1]
                + u2 * model[TOOL_ROTATION + 3 * k + 2]
            )
        target_pose[9 + r] = scale * (b0 * x + b1 * y + b2 * z)
        if model[IS_PARTIAL] != 0.0:
            for k in range(3):
                position_axis, rotation_axis = POSITION_FRAME + k, ROTATION_FRAME + k
                work[(POSITION_AXES + 3 * r + k) * lanes + lane] = (
                    u0 * model[position_axis] + u1 * model[position_axis + 3] + u2 * model[position_axis + 6]
                )
                work[(ROTATION_AXES + 3 * r + k) * lanes + lane] = (
                    u0 * model[rotation_axis] + u1 * model[rotation_axis + 3] + u2 * model[rotation_axis + 6]
                )
    if model[IS_PARTIAL] != 0.0 and model[HAS_ROW_AXES] != 0.0:
        for k in range(9):
            work[(POSITION_AXES + k) * lanes + lane] = work[(ROTATION_AXES + k) * lanes + lane] = model[ROW_AXES + k]
    for k in range(12):
        work[(TARGET_ROTATION + k) * lanes + lane] = target_pose[k]


@inline
def begin_target(model, work, X, target_index, q0, lanes, lane, search, key, target_pose):
    """Begin a target in a lane; return False if it is not a rigid transform or its seed is invalid."""
    if not is_pose(X, 16 * target_index):
        return False
    nq, q0_norm = int(model[N_Q]), 0.0
    for k in range(nq):
        q0_norm += abs(q0[nq * target_index + k])
    if not q0_norm < MAX_SEED_NORM:
        return False
    write_lane_target(model, work, X, target_index, lanes, lane, target_pose)
    work[search + TARGET_INDEX], work[search + ATTEMPT], work[search + ITERATIONS], work[search + SOLUTION_COUNT] = (
        target_index,
        0.0,
        0.0,
        0.0,
    )
    work[search + BEST_COST], work[search + NEAREST_DISTANCE], work[search + START_WAS_CLAMPED] = NO_COST, np.inf, 0.0
    work[search + START_COUNT], work[search + FOLLOW_UP_COUNT] = 0.0, 0.0
    work[search + RANDOM_KEY] = (
        math.floor(
            (abs(target_pose[9]) + 3.0 * abs(target_pose[10]) + 7.0 * abs(target_pose[11]) + abs(target_pose[1]))
            * 1e9
            % 1e15
        )
        + key
    )
    return True


@inline
def reset_lane(model, work, lanes, lane):
    """Reset the iteration state of a lane for an attempt that starts at its trial."""
    work[ITERATION * lanes + lane], work[NEXT_CHECK * lanes + lane], work[DAMPING_RATIO * lanes + lane] = (
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
def begin_attempt(model, table, work, target_index, q0, lanes, lane, search, mode, target_pose):
    """Begin the next attempt of a lane: write its start as the trial. `target_pose` (12,) is scratch memory."""
    column_count, first_q = int(model[N_COLUMNS]), int(model[N_Q]) * target_index
    columns_start = MODEL_HEAD + JOINT_FLOATS * int(model[N_JOINTS])
    has_tried_many_starts = work[search + START_COUNT] >= MIN_STARTS_BEFORE_FOLLOW_UP
    is_follow_up = (
        has_tried_many_starts
        and work[COST * lanes + lane] < FOLLOW_UP_COST
        and work[search + FOLLOW_UP_COUNT] < MAX_FOLLOW_UPS
    )
    work[search + ATTEMPT] += 1.0
    if is_follow_up:
        # near a singular pose an attempt may stall close to the target; starts around its end often succeed
        radius = FOLLOW_UP_RADIUS * 2.0 ** work[search + FOLLOW_UP_COUNT]
        work[search + FOLLOW_UP_COUNT] += 1.0
        for j in range(column_count):
            column = columns_start + COLUMN_FLOATS * j
            x = work[(LANE_HEAD + COLUMN_SLOTS * j + ACCEPTED) * lanes + lane]
            if model[column + IS_LOCKED] == 0.0:
                random_offset = 2.0 * random_uniform(work[search + RANDOM_KEY], work[search + ATTEMPT], j) - 1.0
                x = min(
                    max(
                        x + radius * random_offset * min(1.0, model[column + SAMPLE_MAX] - model[column + SAMPLE_MIN]),
                        model[column + X_MIN],
                    ),
                    model[column + X_MAX],
                )
            work[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * lanes + lane] = x
        reset_lane(model, work, lanes, lane)
        return
    start_index = int(work[search + START_COUNT])
    work[search + START_COUNT] += 1.0
    work[search + FOLLOW_UP_COUNT] = 0.0
    if mode == FROM_SEED:
        start_index -= 1
    # the table is not ranked earlier, since most targets are reached from the seed
    if start_index == 0 and mode != SINGLE_ATTEMPT:
        for k in range(12):
            target_pose[k] = work[(TARGET_ROTATION + k) * lanes + lane]
        write_features(model, target_pose, 0, work, search + FEATURES)
        if model[IS_RANKED] != 0.0:
            rank_entries(model, table, work, search)
    if mode == SINGLE_ATTEMPT or start_index < 0:
        for j in range(column_count):
            column = columns_start + COLUMN_FLOATS * j
            x = q0[first_q + int(model[column + Q_INDEX])] / model[column + Q_UNIT]
            if model[column + IS_LOCKED] == 0.0:
                if x < model[column + X_MIN] or x > model[column + X_MAX]:
                    work[search + START_WAS_CLAMPED] = 1.0
                x = min(max(x, model[column + X_MIN]), model[column + X_MAX])
            work[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * lanes + lane] = x
    elif start_index < TABLE_BLOCKS:
        entry_index = start_index
        if model[IS_RANKED] != 0.0:
            best_block = 0
            for k in range(1, TABLE_BLOCKS):
                if work[search + BLOCK_DISTANCE + k] < work[search + BLOCK_DISTANCE + best_block]:
                    best_block = k
            work[search + BLOCK_DISTANCE + best_block] = np.inf
            entry_index = int(work[search + BLOCK_ENTRY + best_block])
        start_from_entry(model, table, work, search, entry_index, q0, first_q, lanes, lane)
    else:
        for j in range(column_count):
            column = columns_start + COLUMN_FLOATS * j
            x = model[column + SAMPLE_MIN] + (model[column + SAMPLE_MAX] - model[column + SAMPLE_MIN]) * random_uniform(
                work[search + RANDOM_KEY], work[search + ATTEMPT], j
            )
            if model[column + IS_LOCKED] != 0.0:
                x = q0[first_q + int(model[column + Q_INDEX])] / model[column + Q_UNIT]
            work[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * lanes + lane] = x
    reset_lane(model, work, lanes, lane)


@inline
def end_attempt(model, work, target_index, q0, lanes, lane, search, mode):
    """End the attempt of a lane and store it if it is the best so far; return True if no further attempt follows."""
    column_count, first_q = int(model[N_COLUMNS]), int(model[N_Q]) * target_index
    columns_start = MODEL_HEAD + JOINT_FLOATS * int(model[N_JOINTS])
    position_error2, rotation_error2, cost = (
        work[POSITION_ERROR * lanes + lane],
        work[ROTATION_ERROR * lanes + lane],
        work[COST * lanes + lane],
    )
    is_solved = position_error2 < model[POSITION_TOLERANCE2] and rotation_error2 < model[ROTATION_TOLERANCE2]
    work[search + ITERATIONS] += work[ITERATION * lanes + lane] - 1.0  # the first evaluation is that of the start
    attempt = work[search + ATTEMPT]
    is_best, distance = False, 0.0
    if is_solved:
        if mode != SINGLE_ATTEMPT:
            # add full turns to come nearest to the seed, unless the attempt started at the seed
            adds_full_turns = mode == FROM_TABLE or work[search + START_COUNT] > 1.0
            for j in range(column_count):
                column = columns_start + COLUMN_FLOATS * j
                slot = (LANE_HEAD + COLUMN_SLOTS * j + ACCEPTED) * lanes + lane
                x, seed = work[slot], q0[first_q + int(model[column + Q_INDEX])] / model[column + Q_UNIT]
                if adds_full_turns and model[column + IS_CONTINUOUS] != 0.0:
                    nearest_turn = x + FULL_TURN * math.floor((seed - x) / FULL_TURN + 0.5)
                    if model[column + X_MIN] <= nearest_turn <= model[column + X_MAX]:
                        x = work[slot] = nearest_turn
                distance += (x - seed) * (x - seed) * model[column + Q_UNIT] * model[column + Q_UNIT]
        is_best = distance < work[search + NEAREST_DISTANCE]
        work[search + SOLUTION_COUNT] += 1.0
        if is_best:
            work[search + NEAREST_DISTANCE] = distance
    elif work[search + SOLUTION_COUNT] == 0.0:
        is_best = cost < work[search + BEST_COST]
    if is_best:
        work[search + BEST_COST], work[search + BEST_POSITION_ERROR], work[search + BEST_ROTATION_ERROR] = (
            cost,
            position_error2,
            rotation_error2,
        )
        for j in range(column_count):
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
        model[ITERATION_BUDGET] if work[search + BEST_COST] > NEAR_SOLUTION_COST else 2.0 * model[ITERATION_BUDGET]
    )
    return attempt >= model[MAX_ATTEMPTS] or work[search + ITERATIONS] >= iteration_budget


@inline
def end_target(model, work, search, q0, q, report):
    """Write the best configuration and the report of a lane's target."""
    target_index, nq = int(work[search + TARGET_INDEX]), int(model[N_Q])
    first_q, first_report = nq * target_index, REPORT_FLOATS * target_index
    columns_start = MODEL_HEAD + JOINT_FLOATS * int(model[N_JOINTS])
    for k in range(first_q, first_q + nq):
        q[k] = q0[k]
    if work[search + BEST_COST] < NO_COST:
        for j in range(int(model[N_COLUMNS])):
            column = columns_start + COLUMN_FLOATS * j
            if model[column + IS_LOCKED] == 0.0:
                x = work[search + SEARCH_HEAD + j] * model[column + Q_UNIT]
                q[first_q + int(model[column + Q_INDEX])] = min(max(x, model[column + Q_MIN]), model[column + Q_MAX])
    report[first_report] = SOLVED if work[search + SOLUTION_COUNT] > 0.0 else NOT_SOLVED
    report[first_report + 1], report[first_report + 2], report[first_report + 5] = (
        work[search + ATTEMPT],
        work[search + ITERATIONS],
        work[search + START_WAS_CLAMPED],
    )
    report[first_report + 3] = math.sqrt(work[search + BEST_POSITION_ERROR]) / model[LENGTH_SCALE]
    report[first_report + 4] = math.sqrt(work[search + BEST_ROTATION_ERROR]) / (
        model[ROTATION_WEIGHT] if model[ROTATION_WEIGHT] != 0.0 else 1.0
    )


@inline
def reject_target(model, target_index, q0, q, report):
    """Report that a target or its seed is invalid, and copy q0 to q."""
    nq = int(model[N_Q])
    for k in range(nq * target_index, nq * target_index + nq):
        q[k] = q0[k]
    for k in range(REPORT_FLOATS):
        report[REPORT_FLOATS * target_index + k] = 0.0
    report[REPORT_FLOATS * target_index] = BAD_INPUT


@subroutine
def search_targets(like, model, table, work, work_alias, X, q0, mode, key, q, report):
    """Solve for M targets X (M x 16) from q0 (M x nq) into q (M x nq) and report (M x REPORT_FLOATS), all flat.

    Targets are poses of the tip, row by row, m (their frame: see `chain_layout.py`); q0 and q are in rad and m.

    Args:
        like: a float, or a vector of eight lanes (`vector.py`).
        model, table: the chain and its seed table (`chain_layout.py`).
        work, work_alias: the same workspace twice, as for `iterate`.
        mode: FROM_TABLE, FROM_SEED or SINGLE_ATTEMPT.
        key: number that selects the sequence of random numbers.
    """
    lanes, column_count = lanes_of(like), int(model[N_COLUMNS])
    searches_start = (LANE_HEAD + COLUMN_SLOTS * column_count) * lanes
    search_length = SEARCH_HEAD + column_count
    target_pose = work[searches_start + search_length * lanes : searches_start + search_length * lanes + 12]
    next_target, active_lane_count = 0, 0
    for lane in range(lanes):
        work[searches_start + search_length * lane + TARGET_INDEX] = -1.0
        work[IS_FINISHED * lanes + lane] = 1.0
        for j in range(column_count):
            work[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * lanes + lane] = 0.0
        active_lane_count += 1
    while active_lane_count > 0:
        for lane in range(lanes):
            if work[IS_FINISHED * lanes + lane] == 0.0:
                continue
            search = searches_start + search_length * lane
            target_index = int(work[search + TARGET_INDEX])
            if target_index == -2:  # there is no further target: the iterations of this lane have no effect
                work[DAMPING_RATIO * lanes + lane], work[NEXT_CHECK * lanes + lane], work[ITERATION * lanes + lane] = (
                    1e-9,
                    NO_COST,
                    0.0,
                )
                work[IS_FINISHED * lanes + lane] = 0.0
                continue
            if target_index >= 0 and end_attempt(model, work, target_index, q0, lanes, lane, search, mode):
                end_target(model, work, search, q0, q, report)
                target_index = -1
            while target_index < 0 and next_target < X.shape[0] // 16:
                if begin_target(model, work, X, next_target, q0, lanes, lane, search, key, target_pose):
                    target_index = next_target
                else:
                    reject_target(model, next_target, q0, q, report)
                next_target += 1
            if target_index < 0:
                work[search + TARGET_INDEX] = -2.0
                active_lane_count -= 1
            else:
                begin_attempt(model, table, work, target_index, q0, lanes, lane, search, mode, target_pose)
        if active_lane_count > 0:
            iterate(like, model, work, work_alias)
