"""What a tracker tells its kernel besides the problem: one row of numbers for each column, and a few for all."""

from __future__ import annotations

# rows of the table of columns: all in units of the column, per second where they are rates
(VELOCITY, ACCELERATION, RATE, CURVE, LOW, HIGH, LOW_HARD, HIGH_HARD, LOWER, UPPER, START, BOUND) = range(12)
"""Largest velocity and acceleration (infinite if there is none); the velocity now; what the velocity of a dependent
column has besides that of the straight step, as the last step had it; the bounds of the next velocity, first with and
then without those of acceleration; the limits of the value; the velocity before the step; 1 if loops or
laws bind it to other columns."""
TABLE_ROWS = 12

# options
DT, NEARING, DAMPING, SINGULAR, FOLLOWS, SHUT, TOO_NEAR = range(7)
"""The time step (s); the largest share of the way to a limit that a velocity may take in a second, where columns depend
on each other (1/s); the damping at a singularity and how near to one it begins, in units of rows over columns; whether
targets that move are followed with their velocity; how far hard rows may be from zero; whether something is too near,
so that limits are kept in the first place and gaps opened in the second."""
OPTIONS = 7

# what a step comes to
MOVED, BRAKED, STOPPED = range(3)
"""All is well; loops, or limits beyond those of single columns, left no velocity within all limits, and those of
acceleration gave way; the same, and nothing but standing still was left."""

# what a column's velocity is held by; negative at the lower side
FREE, BY_ACCELERATION, BY_VELOCITY, BY_POSITION = range(4)

WANTED, LEAST = 2, 3
"""Of further rows, behind the bounds of their rates: the rate that is wanted, and what it shall not be below even where
that cannot be had."""

EXACT = 1.0 - 1e-9
"""Of limits: what is used of them, so that rounding does not exceed them."""
NEARLY = 1.0 - 1e-6
"""The same where loops bind columns: what follows is known after the step has been taken."""

# room to work in: matrices, vectors, and vectors of integers; each is made once, and as large as any of its kind
(W_M, W_K, W_B, W_FREE, W_ALL, W_A, W_H, W_L, W_C, W_J, W_R, W_G, W_GL, W_ROWS, W_EDGE) = range(15)
(V_RATES, V_STRAIGHT, V_BENT, V_OFF, V_CHANGE, V_E, V_PAST, V_RATE, V_LOW, V_HIGH, V_Y, V_GOAL, V_AHEAD, V_U, V_RATIO,
 V_TURNED, V_WAY, V_LINE, V_SIZES, V_OPENED) = range(20)  # fmt: skip
(U_ROW, U_COLUMN, U_TAKEN, U_PLACES, U_HELD, U_LIMITED, U_LACKS) = range(7)
MATRICES, VECTORS, INTEGERS = 15, 20, 7
