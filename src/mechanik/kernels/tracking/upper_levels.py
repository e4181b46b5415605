"""What the lower levels of a tracker leave to the upper levels, so that these keep their residuals at every step.

A level is solved within the acceleration limits, with priority over the levels below. But its rows are curved: if the
columns move at the velocities v, the rates of the rows change by v' H v, and the level needs accelerations of the
columns to keep its residual. Velocities that lower levels have built up can need more than the limits permit. Two rules
prevent this.

- Reserve. After each step, the part of the residual's change that is not linear in the step (`row_curvature`) is known.
  Twice this part is what the rows need in the next step, and the change of the column velocities with the smallest norm
  that provides it, as a ratio to the acceleration limits, is the share that the level uses. As this share grows, the
  bounds of the lower levels are narrowed around the velocities of the level, which brake as fast as possible. So the
  velocities stay where a share of the limits suffices. Where a joint approaches its position limit, all columns of the
  level have to slow down together, as in loops (`bound_rates`).
- Correction. The desired rates of a level cancel the curvature within the step. It is predicted by that of the previous
  step. If the residual after the step deviates from the plan by more than a share of its tolerance, the step is solved
  again with the curvature found. If this does not converge, since small changes of an upper level make the lower levels
  jump, the bounds of the lower levels are narrowed from pass to pass.

Both apply to the columns that a level shares with levels above it, and to all levels but the last.
"""

from __future__ import annotations

from ..compiler import inline, subroutine
from ..problem_layout import *
from ..problem_views import count_position_rows
from ..residuals import evaluate_residuals
from ..tables import matrix_at

LOWEST_LEVEL_START, LOWEST_LEVEL_END = 0.25, 0.5
"""Share of the acceleration limits in use by upper levels at which the bounds of the lowest level start to be narrowed,
and at which nothing is left to it. Chosen, not tuned: the other half of the acceleration is for braking. With these
values the first level of 230 random trees drifted in one; other values were not compared."""
MIDDLE_LEVEL_START, MIDDLE_LEVEL_END = 0.35, 0.6
"""The same for the levels between the first and the lowest one: the lowest level gives way first."""
DEVIATION_SHARE = 0.3
"""Largest deviation of a residual from the plan, as a share of its tolerance, without another pass."""
MAX_ROW_CURVATURE = 100.0
"""Largest curvature of an unweighted residual, in units of residual over columns squared, that is cancelled. Larger
values are jumps, such as those of rotations by half a turn."""


@subroutine
def mark_shared_columns(problem, tracking, x):
    """Write the first level that depends on each column, and the bounds of the column's rate for the levels below.

    `first_level` is the stage of the first level, 0 if only the lowest level or none depends on the column.

    Args:
        x: the variables, (x,).
    """
    n, options, first_level = tracking.column_count, tracking.options, tracking.first_level
    blocks, block_columns = problem.blocks, problem.block_columns
    for v in range(n):
        first_level[v] = 1 if tracking.is_coupled[v] != 0 else 0
    for stage in range(1, problem.stage_count - 1):
        stage_blocks = problem.stages[stage]
        for b in range(stage_blocks.hard_end, stage_blocks.soft_end):
            block = blocks[b]
            for u in range(block.column_count if block.row_count > 0 else 0):
                v = block_columns[block.first_column + u]
                if v < n and first_level[v] == 0:
                    first_level[v] = stage
    approach_rate = min(1.0 / options.time_step, options.limit_approach_rate)
    for v in range(n):
        low_rate, high_rate, x_index = tracking.rate_min[v], tracking.rate_max[v], problem.column_x[v]
        if first_level[v] > 0 and x_index >= 0:
            value, columns_per_value = x[x_index], 1.0 / problem.scale[v]
            distance_above = columns_per_value * (tracking.value_max[v] - value)
            distance_below = columns_per_value * (value - tracking.value_min[v])
            low_rate = max(low_rate, -max(distance_below, 0.0) * approach_rate)
            high_rate = min(high_rate, max(distance_above, 0.0) * approach_rate)
        tracking.shared_rate_min[v], tracking.shared_rate_max[v] = low_rate, high_rate


@inline
def remaining_share(used_share, start, end):
    """Return the share of their bounds that lower levels may use: from 1 at `start` to 0 at `end`."""
    return min(max((end - used_share) / (end - start), 0.0), 1.0)


@subroutine
def narrow_bounds(tracking, share, stage):
    """Narrow the bounds of the columns that a level shares with the levels above; a change of 0 stays feasible.

    `lower` and `upper` bound the changes of the columns from `next_rate`, the velocities of the levels above.

    Args:
        share: share of the bounds that remains.
        stage: the stage of the level.
    """
    lower, upper, base = tracking.lower, tracking.upper, tracking.next_rate
    for v in range(tracking.column_count):
        if 0 < tracking.first_level[v] < stage:
            lower[v] = share * min(0.0, max(lower[v], tracking.shared_rate_min[v] - base[v]))
            upper[v] = share * max(0.0, min(upper[v], tracking.shared_rate_max[v] - base[v]))


@subroutine
def used_acceleration_share(tracking, stage):
    """Return the largest share of a column's acceleration limit that the levels up to `stage` use in this step.

    They use it to follow the curvature of their rows and of the loops (`rate_change`), and to stay within the bounds of
    the shared columns.
    """
    rate_changes, largest_share = tracking.rate_change, 0.0
    for v in range(tracking.column_count):
        if 0 < tracking.first_level[v] <= stage:
            next_rate = tracking.rate[v] + rate_changes[v]
            excess = max(next_rate - tracking.shared_rate_max[v], tracking.shared_rate_min[v] - next_rate, 0.0)
            max_rate_change = tracking.max_acceleration[v] * tracking.options.time_step
            largest_share = max(largest_share, (abs(rate_changes[v]) + excess) / max_rate_change)
    return largest_share


@subroutine
def find_row_curvatures(problem, tracking, out):
    """Write the curvature of the rows of the upper levels during a step into `row_curvature`.

    Args:
        out: the variables after the step, (x,); their residuals are written to buffer 0.

    Returns:
        The first stage whose residuals deviate from the plan by more than DEVIATION_SHARE; 0 if there is none.
    """
    blocks, block_columns, n = problem.blocks, problem.block_columns, tracking.column_count
    rates, planned_rates, row_curvature = tracking.next_rate, tracking.planned_rate, tracking.row_curvature
    residual, next_residual, jacobian = problem.residual[1], problem.residual[0], problem.jacobian[1]
    dt, step_square, deviating_stage = tracking.options.time_step, 0.0, 0
    square_share = DEVIATION_SHARE * DEVIATION_SHARE
    for v in range(n):
        step_square += dt * dt * rates[v] * rates[v]
    last_stage = problem.stage_count - 2
    evaluate_residuals(problem, out, problem.runtime_zero, problem.stages[last_stage].soft_end)
    for stage in range(1, last_stage + 1):
        stage_blocks = problem.stages[stage]
        for b in range(stage_blocks.hard_end, stage_blocks.soft_end):
            block, block_data = blocks[b], problem.block_data[b]
            if block.kind == PYTHON_FUNCTION:
                continue
            width, first_row, first_column = block.column_count, block.first_row, block.first_column
            position_row_count = count_position_rows(block.row_mask)
            J = matrix_at(jacobian, block.first_jacobian, block.row_count, width)
            position_square, rotation_square = 0.0, 0.0
            for r in range(block.row_count):
                next_error, linear_error = next_residual[first_row + r], residual[first_row + r]
                planned_error = linear_error + row_curvature[first_row + r]
                for u in range(width):
                    v = block_columns[first_column + u]
                    if v < n:
                        entry = dt * J[r, u]
                        linear_error += entry * rates[v]
                        planned_error += entry * planned_rates[v]
                curvature, deviation = next_error - linear_error, next_error - planned_error
                if not abs(curvature) <= MAX_ROW_CURVATURE * step_square * problem.weight[first_row + r] + 1e-12:
                    curvature = 0.0
                row_curvature[first_row + r] = curvature
                if r < position_row_count:
                    position_square += deviation * deviation
                else:
                    rotation_square += deviation * deviation
            if deviating_stage == 0 and (
                position_square > square_share * block_data.position_tolerance2
                or rotation_square > square_share * block_data.rotation_tolerance2
            ):
                deviating_stage = stage
    return deviating_stage
