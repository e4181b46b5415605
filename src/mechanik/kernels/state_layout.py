"""Options, state and report of the general solver, as records of the tables `options`, `state` and `report`."""

from __future__ import annotations

from .tables import Record, flag, integer, number

# result of a kernel call
DONE, NEEDS_PYTHON_FUNCTIONS, PAUSED, BAD_TARGET, BAD_START = 0, 1, 2, 3, 4

# status of a stage and of the solve
CONVERGED, CLOSEST, STALLED, TIMEOUT, NOT_CLOSED, NOT_TRIED, STOPPED, DIVERGED = 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0
"""CONVERGED: within tolerances. CLOSEST: a stationary point with an error above the tolerances, or so near to one that
the cost is within `progress_tolerance` of it. STALLED: no progress or slow progress. TIMEOUT: the iterations or the
time are used up. NOT_CLOSED: loops are not closed. NOT_TRIED: the attempt ended before this stage. STOPPED (by the
caller) and DIVERGED (a growing error) are not results of kernels; Python code sets them."""
BATCH_BAD_TARGET, BATCH_PENDING, BATCH_BAD_START = 8, 9, 10
"""Statuses of batch entries only: invalid target, not solved yet, invalid start."""

PHASE_START, PHASE_STEP, PHASE_RESTORED, PHASE_CLOSING, PHASE_FINAL, PHASE_PROBING = range(6)
"""What the trial is.
PHASE_START: x at the start of a stage, after a perturbation, or restored to repeat the stage. It always becomes x; if
    it is infeasible, PHASE_CLOSING follows.
PHASE_STEP: x plus the step. PHASE_RESTORED: the same, corrected by Newton steps on the hard residuals.
PHASE_CLOSING: an infeasible x of PHASE_START, or one that meets its tolerances, after Newton steps.
PHASE_FINAL: an earlier x that is restored; it becomes x and the stage ends.
PHASE_PROBING: x plus a small step, to estimate second derivatives; it never becomes x."""

NEXT_STEP, NEXT_CLOSURE_STEP, NEXT_STAGE, NEXT_EVALUATION, NEXT_RETRY, NEXT_PROBE = range(6)
"""The next action of the search.
NEXT_STEP: a damped step from x. NEXT_CLOSURE_STEP: a Newton step on the hard residuals from the trial.
NEXT_STAGE: the stage has ended. NEXT_EVALUATION: evaluate the trial, which is written already.
NEXT_RETRY: compute the damped step again, with new second derivatives. NEXT_PROBE: a small step along the next column.
"""

INFEASIBLE_STEPS_ALLOWED, FEASIBLE_STEPS_ONLY, LEVELS_HELD_BY_SUM = range(3)
"""Values of `SearchState.feasibility_mode`: a step may violate the hard constraints a little; it may not; it may not,
and every earlier level is held by its sum of squares, even if it is met."""


class Options(Record):
    """Options of the solver.

    Attributes:
        closure_tolerance: largest absolute hard residual that counts as zero (rad, or length units of the mechanism).
        max_iterations: largest number of iterations of a stage.
        start_damping: first damping of a stage, as a ratio of the cost.
        gradient_tolerance: largest reduced gradient of a stationary point, as a ratio of the square root of the cost.
        perturbation_size: size of a perturbation, in units of a column; 0: a stage ends at every stationary point.
        max_iterations_if_abandonable: as `max_iterations`, if the attempt may be abandoned.
        iterations_per_call: number of iterations since the last call after which the kernel pauses. If residuals are
            Python functions, each evaluation ends a call, so the kernel pauses only if this number is 1.
        fixed_damping: first damping of each step, independent of the cost; only rejected trials increase it. 0: the
            damping is adapted.
        step_tolerance: largest entry of a step, in units of a column, below which a stage ends; 0 if there is none.
        max_error, max_angle_error: lengths to which the position part and the rotation part of a block's residual are
            clipped (`Block.row_mask`), weighted; infinite if they are not clipped.
        uses_eigenvalues: whether linear systems are solved by eigenvalues.
        max_perturbations: largest number of perturbations in a stage. Stage 0, which closes loops, may use larger
            values.
        progress_tolerance: expected decrease of the cost, as a ratio of the cost, at which a stage ends; 0: none.
    """

    closure_tolerance = number()
    max_iterations = number()
    start_damping = number()
    gradient_tolerance = number()
    perturbation_size = number()
    max_iterations_if_abandonable = number()
    iterations_per_call = number()
    fixed_damping = number()
    step_tolerance = number()
    max_error = number()
    max_angle_error = number()
    uses_eigenvalues = flag()
    max_perturbations = number()
    progress_tolerance = number()


class SearchState(Record):
    """State of a search, which is kept while the solver is paused. The cost is that of the stage.

    Attributes:
        is_resumed: whether the next call continues a search.
        attempt: number of ended attempts.
        may_abandon: whether an attempt with slow progress may be ended early, since further attempts follow.
        stage: index of the stage.
        phase: see PHASE_START.
        current_buffer: buffer (0 or 1) of the accepted x; the trial has the other buffer.
        iterations, evaluations: numbers of iterations and of evaluations in all attempts.
        iterations_in_stage: number of iterations in the stage.
        relative_damping: damping of a step divided by the cost.
        is_feasible: whether x satisfies the hard constraints.
        predicted_cost: cost after the step, as the model predicts it.
        feasible_cost: cost of the x in `last_feasible`; of the start of the stage, if no x was feasible.
        closure_steps, last_violation: number of consecutive Newton steps on the hard residuals, and the violation
            before the last of them.
        perturbations, cost_at_perturbation: number of perturbations in the stage, and the cost before the last of them;
            the number is -1 once the stage has gone back to the x before the last perturbation.
        cost_before_1, cost_before_2, cost_before_3: cost one, two and three accepted steps before.
        final_status: status with which the stage ends.
        max_gradient: largest absolute reduced gradient of the columns that bounds do not hold.
        uses_curvature: whether second derivatives are used (`curvature.py`).
        has_moved: whether the previous step was accepted and can update the second derivatives.
        is_evaluated: whether the residuals of the trial are evaluated.
        last_distance: distance of the last ranked start.
        first_unmet_stage: the first required stage that has ended without convergence; 0 if there is none.
        has_moved_below: whether a stage after the first unmet stage has moved x.
        stage_round: number of repetitions of the stages from the first unmet stage on.
        feasibility_mode: see INFEASIBLE_STEPS_ALLOWED.
        poses_are_current: whether the stored poses are those of x.
        probe_index, independent_count: independent index of the column that is probed, and number of independent
            columns.
        probe_requests: number of requests for second derivatives at this x, if it is a stationary point.
        curvature_is_positive: whether all second derivatives are known and their matrix is positive definite.
        is_last_step: whether the step is expected to end the stage.
        tentative_steps: number of consecutive tentative steps, which leave hard constraints violated (`stages.py`).
        last_step_length: largest absolute entry, in units of a column, of the last step whose second derivatives were
            all known and positive definite; infinite if there is none.
        curvature_is_new: whether the second derivatives were sampled at this x.
        reference_cost: cost that x would have if it satisfied the hard constraints exactly; 0 if unknown.
    """

    is_resumed = flag()
    attempt = integer()
    may_abandon = flag()
    stage = integer()
    phase = integer()
    current_buffer = integer()
    iterations = integer()
    evaluations = integer()
    iterations_in_stage = integer()
    relative_damping = number()
    cost = number()
    is_feasible = flag()
    predicted_cost = number()
    feasible_cost = number()
    closure_steps = integer()
    last_violation = number()
    perturbations = integer()
    cost_at_perturbation = number()
    cost_before_1 = number()
    cost_before_2 = number()
    cost_before_3 = number()
    final_status = number()
    max_gradient = number()
    uses_curvature = flag()
    has_moved = flag()
    is_evaluated = flag()
    last_distance = number()
    first_unmet_stage = integer()
    has_moved_below = flag()
    stage_round = integer()
    feasibility_mode = integer()
    poses_are_current = flag()
    probe_index = integer()
    independent_count = integer()
    probe_requests = integer()
    curvature_is_positive = flag()
    is_last_step = flag()
    tentative_steps = integer()
    last_step_length = number()
    curvature_is_new = flag()
    reference_cost = number()


class SearchReport(Record):
    """Result of a search: its status, the numbers of iterations, evaluations and attempts, and two flags."""

    status = number()
    iterations = integer()
    evaluations = integer()
    attempts = integer()
    start_was_clamped = flag()
    success = flag()


class StageReport(Record):
    """Result of a stage. `rows_are_held`: whether later stages hold each residual of the stage at zero; otherwise they
    hold its sum of squares."""

    status = number()
    cost = number()
    max_gradient = number()
    iterations = integer()
    rows_are_held = flag()
