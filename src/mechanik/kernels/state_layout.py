"""Layout of the solver state and of the report: indices into the tables `state` and `report` of a problem."""

from __future__ import annotations

# result of a kernel call
DONE, NEEDS_PYTHON_FUNCTIONS, PAUSED, BAD_TARGET, BAD_START = 0, 1, 2, 3, 4

# status of a stage and of the solve
CONVERGED, CLOSEST, STALLED, TIMEOUT, NOT_CLOSED, NOT_TRIED, STOPPED, DIVERGED = 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0
"""CONVERGED: within tolerances. CLOSEST: a stationary point with an error above the tolerances, or so near to one that
the cost is within PROGRESS_TOLERANCE of it. STALLED: no progress or slow progress. TIMEOUT: the iterations or the time
are used up. NOT_CLOSED: loops are not closed. NOT_TRIED: the attempt ended before this stage. STOPPED (by the caller)
and DIVERGED (an error that is not finite) are not results of kernels; Python code sets them."""
BATCH_BAD_TARGET, BATCH_PENDING, BATCH_BAD_START = 8, 9, 10
"""Statuses of batch entries only: invalid target, not solved yet, invalid start."""

(IS_RESUMED, ATTEMPT, MAY_ABANDON, STAGE, PHASE, CURRENT_BUFFER, ITERATIONS, EVALUATIONS, ITERATIONS_IN_STAGE,
 RELATIVE_DAMPING, COST, IS_FEASIBLE, PREDICTED_COST, FEASIBLE_COST, CLOSURE_STEPS, LAST_VIOLATION, PERTURBATIONS,
 COST_AT_PERTURBATION, COST_BEFORE_1, COST_BEFORE_2, COST_BEFORE_3, FINAL_STATUS, MAX_GRADIENT, USES_CURVATURE,
 HAS_MOVED, IS_EVALUATED, LAST_DISTANCE, FIRST_UNMET_STAGE, HAS_MOVED_BELOW, STAGE_ROUND, NO_INFEASIBLE_STEPS,
 POSES_ARE_CURRENT, PROBED_COLUMN, INDEPENDENT_COUNT, PROBE_REQUESTS, CURVATURE_IS_POSITIVE, IS_LAST_STEP,
 TENTATIVE_STEPS, LAST_STEP_LENGTH, CURVATURE_IS_NEW, REFERENCE_COST) = range(41)  # fmt: skip
"""Entries of the solver state, which is kept while the solver is paused. The cost is that of the stage.

IS_RESUMED: 1 if the next call continues a search. ATTEMPT: number of ended attempts. STAGE: index of the stage.
MAY_ABANDON: 1 if an attempt with slow progress may be ended early, since further attempts follow.
PHASE: see below. CURRENT_BUFFER: buffer (0 or 1) of the accepted x; the trial has the other buffer.
RELATIVE_DAMPING: damping of a step divided by the cost.
IS_FEASIBLE: 1 if x satisfies the hard constraints. FEASIBLE_COST: cost of the last feasible x.
CLOSURE_STEPS, LAST_VIOLATION: number of consecutive Newton steps on the hard residuals, and the violation before the
last of them.
PERTURBATIONS, COST_AT_PERTURBATION: number of perturbations in the stage, and the cost before the last of them; the
number is -1 once the stage has gone back to the x before the last perturbation.
COST_BEFORE_1, COST_BEFORE_2, COST_BEFORE_3: cost one, two and three accepted steps before.
MAX_GRADIENT: largest absolute reduced gradient of the columns that bounds do not hold.
USES_CURVATURE: 1 if second derivatives are used (`curvature.py`).
HAS_MOVED: 1 if the previous step was accepted and can update the second derivatives.
IS_EVALUATED: 1 if the residuals of the trial are evaluated. POSES_ARE_CURRENT: 1 if the stored poses are those of x.
LAST_DISTANCE: distance of the last ranked start. FIRST_UNMET_STAGE: the first required stage that has ended without
convergence; 0 if there is none.
HAS_MOVED_BELOW: 1 if a stage after the first unmet stage has moved x.
STAGE_ROUND: number of repetitions of the stages from the first unmet stage on.
NO_INFEASIBLE_STEPS: 0 if a step may violate the hard constraints, otherwise 1 or 2. With 2, every earlier level is held
by its sum of squares, even if it is met.
PROBED_COLUMN, INDEPENDENT_COUNT: index of the probed independent column, and number of independent columns.
PROBE_REQUESTS: number of requests for second derivatives at this x, if it is a stationary point.
CURVATURE_IS_POSITIVE: 1 if all second derivatives are known and their matrix is positive definite. CURVATURE_IS_NEW: 1
if they were sampled at this x.
IS_LAST_STEP: 1 if the step is expected to end the stage.
TENTATIVE_STEPS: number of consecutive tentative steps, which leave hard constraints violated (`stages.py`).
LAST_STEP_LENGTH: largest absolute entry of the previous step, in units of a column; infinite if unknown.
REFERENCE_COST: cost that x would have if it satisfied the hard constraints exactly; 0 if unknown."""

# role of the trial: start of a stage, damped step, damped step projected back onto the hard constraints, projection of
# another x onto them, final x of the stage, sample near x for second derivatives
PHASE_START, PHASE_STEP, PHASE_RESTORED, PHASE_CLOSING, PHASE_FINAL, PHASE_PROBING = range(6)

# next action of the solver loop: damped step, Newton step on the hard residuals, end of the stage, evaluation of the
# trial, another computation of the same step, next sample for second derivatives
NEXT_STEP, NEXT_CLOSURE_STEP, NEXT_STAGE, NEXT_EVALUATION, NEXT_RETRY, NEXT_PROBE = range(6)

# report: entries of the solve; from FIRST_STAGE_REPORT on, STAGE_REPORT_FLOATS entries of each stage
STATUS, ITERATIONS_OUT, EVALUATIONS_OUT, ATTEMPTS_OUT, START_WAS_CLAMPED, SUCCESS = range(6)
FIRST_STAGE_REPORT, STAGE_REPORT_FLOATS = 8, 5
STAGE_STATUS, STAGE_COST, STAGE_MAX_GRADIENT, STAGE_ITERATIONS, STAGE_ROWS_ARE_HELD = range(5)
"""Entries of a stage in the report. STAGE_ROWS_ARE_HELD: 1 if later stages hold each residual of the stage at zero; 0
if they hold its sum of squares."""
