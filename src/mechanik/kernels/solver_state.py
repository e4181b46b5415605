"""What the solver keeps between its steps, and what it reports: names for places in the tables `state` and `out`."""

from __future__ import annotations

# what a call comes back with
DONE, NEEDS_FUNCTIONS, PAUSED, BAD_TARGET, BAD_START = 0, 1, 2, 3, 4

# statuses of a stage and of the whole
CONVERGED, CLOSEST, STALLED, TIMEOUT, OPEN, NOT_TRIED, STOPPED, DIVERGED = 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0
"""The last two come from methods whose loop is written in Python, and from whoever looks on."""
BAD_TARGET_ROW, PENDING_ROW, BAD_START_ROW = 8, 9, 10
"""Statuses that only rows of a batch have: not solved for what was given, or not yet."""

# state, which lives on when the solver pauses
(RESUMED, ATTEMPT, ABANDONS, STAGE, PHASE, CURRENT, ITERATIONS, EVALUATIONS, IN_STAGE, MU, COST, IS_SHUT,
PREDICTED, SHUT_COST,
 NEWTONS, LAST_OPEN, KICKED, COST_AT_KICK, BEFORE_1, BEFORE_2, BEFORE_3, FINAL, STEEPEST, CURVED, MOVED,
 EVALUATED, LAST_DISTANCE, UNMET, MOVED_BELOW, ROUND, STRICT, PLACED,
 PROBE, MOTIONS, ASKED, KNOWN, FINE, UNSURE, LAST_LENGTH, FRESH, FAIR) = range(41)  # fmt: skip

# what the trial is: the start of a stage, a damped step, that step shut again, an open state being shut, a state
# to end with, a state near x at which slopes are looked at
FIRST, TRIAL, RESTORED, CLOSING, LAST, PROBING = range(6)

# what comes next
STEP, NEWTON, STAGE_OVER, LOOK_AGAIN, STEP_AGAIN, PROBE_FIRST = range(6)

# out: of the whole, then four numbers of each stage
STATUS, ITERATIONS_OUT, EVALUATIONS_OUT, ATTEMPTS_OUT, BROUGHT_IN, SUCCESS = range(6)
STAGES_OUT, STAGE_NUMBERS = 8, 5
STAGE_STATUS, STAGE_COST, STAGE_STEEPEST, STAGE_ITERATIONS, HELD_BY_ROWS = range(5)
