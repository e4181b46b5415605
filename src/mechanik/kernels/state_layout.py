"""Layout of the solver state and of the report: indices into the tables `state` and `report` of a problem."""

from __future__ import annotations

# result of a kernel call
DONE, NEEDS_PYTHON_FUNCTIONS, PAUSED, BAD_TARGET, BAD_START = 0, 1, 2, 3, 4

# status of a stage and of the solve
CONVERGED, CLOSEST, STALLED, TIMEOUT, NOT_CLOSED, NOT_TRIED, STOPPED, DIVERGED = 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0
"""`STOPPED` (by the caller) and `DIVERGED` come from methods whose loop is in Python."""
BATCH_BAD_TARGET, BATCH_PENDING, BATCH_BAD_START = 8, 9, 10
"""Statuses of batch entries only: invalid target, not solved yet, invalid start."""

# solver state, which persists while the solver is paused
(IS_RESUMED, ATTEMPT, MAY_ABANDON, STAGE, PHASE, CURRENT_BUFFER, ITERATIONS, EVALUATIONS, ITERATIONS_IN_STAGE, MU, COST,
 IS_FEASIBLE, PREDICTED_COST, FEASIBLE_COST,
 CLOSURE_STEPS, LAST_VIOLATION, PERTURBATIONS, COST_AT_PERTURBATION, COST_BEFORE_1, COST_BEFORE_2, COST_BEFORE_3,
 FINAL_STATUS, MAX_GRADIENT, USES_CURVATURE, HAS_MOVED,
 IS_EVALUATED, LAST_DISTANCE, FIRST_UNMET_STAGE, HAS_MOVED_BELOW, STAGE_ROUND, NO_INFEASIBLE_STEPS, POSES_ARE_CURRENT,
 PROBED_COLUMN, INDEPENDENT_COUNT, PROBE_REQUESTS, CURVATURE_IS_KNOWN, IS_POLISHING, TENTATIVE_STEPS, LAST_STEP_LENGTH,
 CURVATURE_IS_NEW, REFERENCE_COST) = range(41)  # fmt: skip

# role of the trial: start of a stage, damped step, damped step projected back onto the hard constraints, closing of
# violated loops, final state of the stage, sample near x for second derivatives
PHASE_START, PHASE_TRIAL, PHASE_RESTORED, PHASE_CLOSING, PHASE_FINAL, PHASE_PROBING = range(6)

# next action of the solver loop
NEXT_STEP, NEXT_CLOSURE_STEP, NEXT_STAGE, NEXT_EVALUATION, NEXT_RETRY, NEXT_PROBE = range(6)

# report: entries of the solve, then STAGE_REPORT_FLOATS entries of each stage
STATUS, ITERATIONS_OUT, EVALUATIONS_OUT, ATTEMPTS_OUT, START_WAS_CLAMPED, SUCCESS = range(6)
FIRST_STAGE_REPORT, STAGE_REPORT_FLOATS = 8, 5
STAGE_STATUS, STAGE_COST, STAGE_MAX_GRADIENT, STAGE_ITERATIONS, STAGE_IS_HELD = range(5)
