"""From a target to an answer: attempts from a seed, from the seed table and from anywhere, in one lane or in eight.

Each lane works on one target until that is done, and takes the next. What becomes of a target depends on the target,
its q0 and the key, and on nothing else: not on the lane, nor on the neighbours, nor on the order.
"""

from __future__ import annotations

import math

import numpy as np

from .chain_iteration import WINDOW, iterate
from .chain_layout import *
from .compiler import helper, part
from .seed_table import TURN, describe, drawn, rank, start_from
from .vector import lanes_of

NOT_A_ROTATION = 1e-6
FAR = 1e5
"""Radians and lengths beyond which a start is not for this kernel."""
NO_COST = 1e30
USUAL_STARTS, NEAR, FOLLOW_UPS, AROUND = 4.0, 1e-4, 3.0, 0.05
"""Of a target that is not reached from some starts, an attempt that ends with a cost below NEAR is followed up from
around where it ended: within AROUND (rad, or share of a joint's range), then 2 and 4 times as much. Tuned on Panda."""
VERY_NEAR = 1e-6
"""A cost below which it is hard to believe that a target is out of reach: it gets twice as much work."""
HOPELESS = 8
"""Attempts at a target that is farther away than the chain is long."""


@helper
def is_pose(X, t):
    """Whether 16 numbers, from t on, are a pose."""
    size = 0.0
    for k in range(3):
        dot, square = 0.0, 0.0
        for r in range(3):
            square += X[t + 4 * r + k] * X[t + 4 * r + k]
            dot += X[t + 4 * r + k] * X[t + 4 * r + (k + 1) % 3]
        size += abs(dot) + abs(square - 1.0) + 0.0 * X[t + 4 * k + 3] + abs(X[t + 12 + k])
    x = X[t + 5] * X[t + 10] - X[t + 6] * X[t + 9]
    y = X[t + 6] * X[t + 8] - X[t + 4] * X[t + 10]
    z = X[t + 4] * X[t + 9] - X[t + 5] * X[t + 8]
    is_mirrored = X[t + 0] * x + X[t + 1] * y + X[t + 2] * z < 0.0
    return not is_mirrored and size + abs(X[t + 15] - 1.0) < NOT_A_ROTATION


@helper
def aim(C, ws, X, i, L, lane, R):
    """Put target i into a lane, seen from the base and without the tool; R, (12,), holds it too."""
    scale, t = C[LENGTH_SCALE], 16 * i
    x, y, z = X[t + 3] - C[BASE_PLACE], X[t + 7] - C[BASE_PLACE + 1], X[t + 11] - C[BASE_PLACE + 2]
    for r in range(3):
        b0, b1, b2 = C[BASE + r], C[BASE + 3 + r], C[BASE + 6 + r]
        u0 = b0 * X[t + 0] + b1 * X[t + 4] + b2 * X[t + 8]
        u1 = b0 * X[t + 1] + b1 * X[t + 5] + b2 * X[t + 9]
        u2 = b0 * X[t + 2] + b1 * X[t + 6] + b2 * X[t + 10]
        for k in range(3):
            R[3 * r + k] = u0 * C[TOOL + 3 * k] + u1 * C[TOOL + 3 * k + 1] + u2 * C[TOOL + 3 * k + 2]
        R[9 + r] = scale * (b0 * x + b1 * y + b2 * z)
        if C[IS_PARTIAL] != 0.0:
            for k in range(3):
                p, g = PLACE_TURN + k, ROTATION_TURN + k
                ws[(PLACE_AXES + 3 * r + k) * L + lane] = u0 * C[p] + u1 * C[p + 3] + u2 * C[p + 6]
                ws[(TURN_AXES + 3 * r + k) * L + lane] = u0 * C[g] + u1 * C[g + 3] + u2 * C[g + 6]
    if C[IS_PARTIAL] != 0.0 and C[OWN_AXES] != 0.0:
        for k in range(9):
            ws[(PLACE_AXES + k) * L + lane] = ws[(TURN_AXES + k) * L + lane] = C[AXES + k]
    for k in range(12):
        ws[(TARGET + k) * L + lane] = R[k]


@helper
def begin_row(C, ws, X, i, q0, L, lane, search, key, R):
    """Target i for a lane; False if it is none, or if its start is not one for this kernel."""
    if not is_pose(X, 16 * i):
        return False
    nq, total = int(C[N_Q]), 0.0
    for k in range(nq):
        total += abs(q0[nq * i + k])
    if not total < FAR:
        return False
    aim(C, ws, X, i, L, lane, R)
    ws[search + ROW], ws[search + ATTEMPT], ws[search + ITERATIONS], ws[search + FOUND] = i, 0.0, 0.0, 0.0
    ws[search + BEST_COST], ws[search + NEAREST], ws[search + BROUGHT] = NO_COST, np.inf, 0.0
    ws[search + STARTS], ws[search + FOLLOWED] = 0.0, 0.0
    ws[search + KEY] = math.floor((abs(R[9]) + 3.0 * abs(R[10]) + 7.0 * abs(R[11]) + abs(R[1])) * 1e9 % 1e15) + key
    return True


@helper
def begin_descent(C, ws, L, lane):
    """From the trial of a lane, with nothing accepted yet."""
    ws[ITERATION * L + lane], ws[CHECK * L + lane], ws[MU * L + lane] = 0.0, WINDOW, C[FIRST_MU]
    ws[REFERENCE * L + lane], ws[COST * L + lane], ws[IS_OVER * L + lane] = np.inf, NO_COST, 0.0
    ws[METRES * L + lane], ws[RADIANS * L + lane] = NO_COST, NO_COST


@helper
def begin_attempt(C, table, ws, i, q0, L, lane, search, mode, R):
    """The next start as the trial of a lane; R, (12,), is for scribbling."""
    n, first = int(C[N_COLUMNS]), int(C[N_Q]) * i
    columns = MODEL_HEAD + NODE * int(C[N_NODES])
    is_hard = ws[search + STARTS] >= USUAL_STARTS
    follows = is_hard and ws[COST * L + lane] < NEAR and ws[search + FOLLOWED] < FOLLOW_UPS
    ws[search + ATTEMPT] += 1.0
    if follows:
        # beside a singular pose a dead end may be next to the target: not far from it there is often a way
        spread = AROUND * 2.0 ** ws[search + FOLLOWED]
        ws[search + FOLLOWED] += 1.0
        for j in range(n):
            o = columns + COLUMN_FLOATS * j
            x = ws[(LANE_HEAD + COLUMN_SLOTS * j + ACCEPTED) * L + lane]
            if C[o + IS_HELD] == 0.0:
                u = 2.0 * drawn(ws[search + KEY], ws[search + ATTEMPT], j) - 1.0
                x = min(max(x + spread * u * min(1.0, C[o + HIGH] - C[o + LOW]), C[o + LOWER]), C[o + UPPER])
            ws[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * L + lane] = x
        begin_descent(C, ws, L, lane)
        return
    number = int(ws[search + STARTS])
    ws[search + STARTS] += 1.0
    ws[search + FOLLOWED] = 0.0
    if mode == FROM_SEED:
        number -= 1
    if number == 0 and mode != ONCE:  # not before: most seeds lead to the target
        for k in range(12):
            R[k] = ws[(TARGET + k) * L + lane]
        describe(C, R, 0, ws, search + FEATURES)
        if C[HAS_RANKS] != 0.0:
            rank(C, table, ws, search)
    if mode == ONCE or number < 0:
        for j in range(n):
            o = columns + COLUMN_FLOATS * j
            x = q0[first + int(C[o + AT])] / C[o + UNIT]
            if C[o + IS_HELD] == 0.0:
                if x < C[o + LOWER] or x > C[o + UPPER]:
                    ws[search + BROUGHT] = 1.0
                x = min(max(x, C[o + LOWER]), C[o + UPPER])
            ws[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * L + lane] = x
    elif number < BLOCKS:
        entry = number
        if C[HAS_RANKS] != 0.0:
            best = 0
            for k in range(1, BLOCKS):
                if ws[search + RANK + k] < ws[search + RANK + best]:
                    best = k
            ws[search + RANK + best] = np.inf
            entry = int(ws[search + ENTRY + best])
        start_from(C, table, ws, search, entry, q0, first, L, lane)
    else:
        for j in range(n):
            o = columns + COLUMN_FLOATS * j
            x = C[o + LOW] + (C[o + HIGH] - C[o + LOW]) * drawn(ws[search + KEY], ws[search + ATTEMPT], j)
            if C[o + IS_HELD] != 0.0:
                x = q0[first + int(C[o + AT])] / C[o + UNIT]
            ws[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * L + lane] = x
    begin_descent(C, ws, L, lane)


@helper
def end_attempt(C, ws, i, q0, L, lane, search, mode):
    """Keep what the attempt of a lane came to, if it is worth it; True if its target is done."""
    n, first = int(C[N_COLUMNS]), int(C[N_Q]) * i
    columns = MODEL_HEAD + NODE * int(C[N_NODES])
    metres, radians, cost = ws[METRES * L + lane], ws[RADIANS * L + lane], ws[COST * L + lane]
    solved = metres < C[METRES2] and radians < C[RADIANS2]
    ws[search + ITERATIONS] += ws[ITERATION * L + lane] - 1.0  # the first look is at the start
    attempt = ws[search + ATTEMPT]
    keeps, way = False, 0.0
    if solved:
        if mode != ONCE:
            # as many full turns as bring it nearest to the seed, or to the middle; straight from a seed it is near
            rewinds = mode == FROM_TABLE or ws[search + STARTS] > 1.0
            for j in range(n):
                o = columns + COLUMN_FLOATS * j
                k = (LANE_HEAD + COLUMN_SLOTS * j + ACCEPTED) * L + lane
                x, near = ws[k], q0[first + int(C[o + AT])] / C[o + UNIT]
                if rewinds and C[o + WINDS] != 0.0:
                    other = x + TURN * math.floor((near - x) / TURN + 0.5)
                    if C[o + LOWER] <= other <= C[o + UPPER]:
                        x = ws[k] = other
                way += (x - near) * (x - near) * C[o + UNIT] * C[o + UNIT]
        keeps = way < ws[search + NEAREST]
        ws[search + FOUND] += 1.0
        if keeps:
            ws[search + NEAREST] = way
    elif ws[search + FOUND] == 0.0:
        keeps = cost < ws[search + BEST_COST]
    if keeps:
        ws[search + BEST_COST], ws[search + BEST_METRES], ws[search + BEST_RADIANS] = cost, metres, radians
        for j in range(n):
            ws[search + SEARCH_HEAD + j] = ws[(LANE_HEAD + COLUMN_SLOTS * j + ACCEPTED) * L + lane]
    if mode == ONCE:
        return True
    if ws[search + FOUND] > 0.0:
        return mode == FROM_TABLE or ws[search + STARTS] == 1.0 or ws[search + STARTS] > C[CHOICES]
    x, y, z = ws[TARGET_PLACE * L + lane], ws[(TARGET_PLACE + 1) * L + lane], ws[(TARGET_PLACE + 2) * L + lane]
    if attempt >= HOPELESS and x * x + y * y + z * z > C[REACH] * C[REACH]:
        return True
    work = C[WORK] if ws[search + BEST_COST] > VERY_NEAR else 2.0 * C[WORK]
    return attempt >= C[MAX_ATTEMPTS] or ws[search + ITERATIONS] >= work


@helper
def end_row(C, ws, search, q0, q, report):
    """Write down what became of a lane's target."""
    i, nq = int(ws[search + ROW]), int(C[N_Q])
    first, r = nq * i, REPORT * i
    columns = MODEL_HEAD + NODE * int(C[N_NODES])
    for k in range(first, first + nq):
        q[k] = q0[k]
    if ws[search + BEST_COST] < NO_COST:
        for j in range(int(C[N_COLUMNS])):
            o = columns + COLUMN_FLOATS * j
            if C[o + IS_HELD] == 0.0:
                x = ws[search + SEARCH_HEAD + j] * C[o + UNIT]
                q[first + int(C[o + AT])] = min(max(x, C[o + LEAST]), C[o + MOST])
    report[r] = SOLVED if ws[search + FOUND] > 0.0 else NOT_SOLVED
    report[r + 1], report[r + 2], report[r + 5] = ws[search + ATTEMPT], ws[search + ITERATIONS], ws[search + BROUGHT]
    report[r + 3] = math.sqrt(ws[search + BEST_METRES]) / C[LENGTH_SCALE]
    report[r + 4] = math.sqrt(ws[search + BEST_RADIANS]) / (C[TURN_WEIGHT] if C[TURN_WEIGHT] != 0.0 else 1.0)


@helper
def pass_over(C, i, q0, q, report):
    """Write down that a row is none."""
    nq = int(C[N_Q])
    for k in range(nq * i, nq * i + nq):
        q[k] = q0[k]
    for k in range(REPORT):
        report[REPORT * i + k] = 0.0
    report[REPORT * i] = BAD_ROW


@part
def search_rows(like, C, table, ws, wr, X, q0, mode, key, q, report):
    """All targets X (M x 16) from q0 (M x nq) into q (M x nq) and report (M x REPORT), all of them flat."""
    L, n = lanes_of(like), int(C[N_COLUMNS])
    searches = (LANE_HEAD + COLUMN_SLOTS * n) * L
    length = SEARCH_HEAD + n
    R = ws[searches + length * L : searches + length * L + 12]
    upcoming, busy = 0, 0
    for lane in range(L):
        ws[searches + length * lane + ROW] = -1.0
        ws[IS_OVER * L + lane] = 1.0
        for j in range(n):
            ws[(LANE_HEAD + COLUMN_SLOTS * j + TRIAL) * L + lane] = 0.0
        busy += 1
    while busy > 0:
        for lane in range(L):
            if ws[IS_OVER * L + lane] == 0.0:
                continue
            search = searches + length * lane
            i = int(ws[search + ROW])
            if i == -2:  # nothing left for this lane: it idles
                ws[MU * L + lane], ws[CHECK * L + lane], ws[ITERATION * L + lane] = 1e-9, NO_COST, 0.0
                ws[IS_OVER * L + lane] = 0.0
                continue
            if i >= 0 and end_attempt(C, ws, i, q0, L, lane, search, mode):
                end_row(C, ws, search, q0, q, report)
                i = -1
            while i < 0 and upcoming < X.shape[0] // 16:
                if begin_row(C, ws, X, upcoming, q0, L, lane, search, key, R):
                    i = upcoming
                else:
                    pass_over(C, upcoming, q0, q, report)
                upcoming += 1
            if i < 0:
                ws[search + ROW] = -2.0
                busy -= 1
            else:
                begin_attempt(C, table, ws, i, q0, L, lane, search, mode, R)
        if busy > 0:
            iterate(like, C, ws, wr)
