"""Least-squares problem on which iterative methods operate: state, residual, Jacobian, limits, and steps.

The problem belongs to a subproblem of a solve: objectives and closures that share dofs. Its data is in the flat arrays
of the subproblem. A method writes `step` and calls `advance`. A unit of a column is 1 rad or 1 characteristic length of
the mechanism (`Problem.length_unit`), times the mobility weight of the dof (1 divided by the weight that the user
gives). Residuals are weighted. Lengths are divided by the characteristic length, which makes all residuals comparable;
but goals that can hardly all be met, and soft objectives, have residuals in m and rad where a level adds lengths to
angles.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from mechanik.model import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.relation import Relation
from mechanik.problem import PackedProblem, Problem, Subproblem
from mechanik.solver.kernel_driver import evaluate_python_residuals, run_kernel
from mechanik.solver.monitor import Monitor
from mechanik.solver.options import Options
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

if TYPE_CHECKING:
    from mechanik.solver.methods.method import Method

evaluation_kernel = kernel_module("dense_evaluation")
MOVE, EVALUATE, DENSIFY = 1, 2, 4
"""Bits of `actions` of the kernel `evaluate_dense`: move x, evaluate the residual and Jacobian, write dense arrays.
They are not imported from there, because the Python sources of the kernel would make the import of mechanik slower."""
STATE_BUFFER, SCRATCH_BUFFER = 1, 0
"""Kernel buffers: one for the state of the method, and one for evaluations that do not change the state."""


class LeastSquaresProblem:
    """Residual, Jacobian and limits of a subproblem at the present state of a method.

    Attributes:
        mechanism: the mechanism.
        objectives: all objectives of the solver.
        problem: the compiled problem of the solver.
        subproblem: the part of the problem that this object evaluates.
        relations: relation of each block of the subproblem.
        levels: number of priority levels with required objectives.
        n: number of columns; each column is a dof that the residuals depend on. Dofs that are locked for a call have
            columns of zeros.
        x: state of the method: q (nq,), then internal entries, such as slack variables of bands.
        residual: required residual at x, (m,): closures first, then goals.
        jacobian: Jacobian of `residual`, (m, n).
        soft_residual, soft_jacobian: the same for soft objectives, such as a rest pose.
        cost: sum of squares of `residual`.
        is_met: whether every required objective is within its tolerance, and every loop is closed.
        step: step that `advance` applies, (n,).
        column_x: index in x of each column, (n,); negative for the columns of spherical joints.
        scale: change of x for a unit of each column, (n,): 1 rad or the characteristic length in m, times the mobility
            weight of the dof.
        row_units: unit of each row of `residual`, (m,): a row times its unit is in m or rad, with the weights of the
            user.
        column_units: unit of each column, (n,): 1 rad or the characteristic length in m, without mobility weights.
        scalar_columns: mask of the columns of scalar dofs, (n,); False for spherical joints.
        q_lower, q_upper: limits of this solve, (nq,).
        deadline: time of `time.perf_counter`, s; methods with long iterations check the deadline.
        cache: data that later calls with this workspace reuse, such as seed tables and closed forms. An entry depends
            on the compiled problem and on its key, not on the call that stored it.

    Example:
        >>> class Inspect(mk.Method):
        ...     name, title, citation = "inspect", "inspection", "2024"
        ...
        ...     def iterate(self, problem):
        ...         print(problem.residual.shape, problem.jacobian.shape)
        ...         yield from ()
        >>> solver = mk.Solver(mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (0.5, 1.2, 0.0)), solver=Inspect())
        >>> solution = solver.solve(q0=[0.1, 0.2])
        (3,) (3, 2)
    """

    def __init__(self, mechanism: Mechanism, problem: Problem, subproblem: Subproblem) -> None:
        self.mechanism, self.problem, self.subproblem = mechanism, problem, subproblem
        self.relations: Sequence[Relation] = ()
        self.objectives: tuple[Objective, ...] = ()
        self._rng: np.random.Generator | None = None
        self.q_lower, self.q_upper = mechanism.space.lower, mechanism.space.upper
        packed = subproblem.packed
        self._ints, self._floats = packed.ints, packed.floats
        required_stages = subproblem.required_stages
        # the blocks that a stage minimises, whether or not they are required
        stage_blocks = [packed.stage_blocks(k) for k in range(len(subproblem.is_optional))]
        self.levels = sum(len(stage_blocks[k]) > 0 and subproblem.levels[k] >= 0 for k in required_stages)
        self._block_count = len(packed.block_records())
        self._required_blocks = max((stage_blocks[k].stop for k in required_stages), default=0)
        self.has_soft_above_required = any(is_optional for is_optional in subproblem.is_optional[: required_stages[-1]])
        """Whether a soft objective has a higher priority than a required one."""
        self.constraint_block_count = stage_blocks[0].stop
        """Number of blocks of closures, joint constraints and swing limits; they come first."""
        row_counts = [len(packed.row_range(block)) for block in range(self._block_count)]
        m, n = sum(row_counts[: self._required_blocks]), int((packed.columns >= 0).sum())
        self.n = n
        self._all_residuals, self._all_jacobians = np.zeros(sum(row_counts)), np.zeros((sum(row_counts), n))
        self.residual, self.jacobian = self._all_residuals[:m], self._all_jacobians[:m]
        self.soft_residual, self.soft_jacobian = self._all_residuals[m:], self._all_jacobians[m:]
        self.x: Array = packed.trial
        self.step: Array = packed.step[:n]
        self._full_step: Array = packed.step
        self.column_x: np.ndarray[Any, Any] = packed.column_x_indices[:n]
        self.scale: Array = packed.column_scales[:n]
        self.row_units: Array = subproblem.rows.units[:m]
        is_rotation = problem.tree.rotates[packed.columns[packed.columns >= 0]]
        self.column_units: Array = np.where(is_rotation, 1.0, problem.length_unit)
        self._lower_bounds, self._upper_bounds = (bounds[:n] for bounds in packed.column_bounds)
        self.scalar_columns = self.column_x >= 0
        self.cost, self.is_met, self.deadline = np.inf, False, np.inf
        self.cache: dict[Any, Any] = {}
        self._has_python_functions = packed.has_functions

    def set_request(
        self,
        objectives: tuple[Objective, ...],
        relations: Sequence[Relation],
        bounds: tuple[Array, Array],
        rng: np.random.Generator | None,
    ) -> None:
        """Set the objectives, limits and random generator of a call, whose targets and limits the tables contain."""
        self.objectives, self.relations = objectives, relations
        self.q_lower, self.q_upper = bounds
        self._rng = rng

    @property
    def packed(self) -> PackedProblem:
        """Packed tables of the subproblem."""
        return self.subproblem.packed

    @property
    def rng(self) -> np.random.Generator:
        """Random generator of the call; if the call has none, a generator with a fixed seed."""
        if self._rng is None:
            self._rng = np.random.default_rng(0)
        return self._rng

    @property
    def q(self) -> Array:
        """Copy of the present configuration, (nq,)."""
        return self.x[: self.mechanism.nq].copy()

    @property
    def free_columns(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Mask of the columns that are not locked, (n,)."""
        return ~self.subproblem.packed.is_locked[: self.n]

    @property
    def lower(self) -> Array:
        """Largest negative step of each column within the limits, (n,); 0 or below."""
        return self._distance_to_bound(self._lower_bounds, -np.inf)

    @property
    def upper(self) -> Array:
        """Largest positive step of each column within the limits, (n,); 0 or above."""
        return self._distance_to_bound(self._upper_bounds, np.inf)

    @property
    def soft_cost(self) -> float:
        """Sum of squares of the soft residual."""
        return float(self.soft_residual @ self.soft_residual)

    @property
    def gradient(self) -> Array:
        """Gradient of half the cost, (n,)."""
        return self.residual @ self.jacobian

    def reduced_gradient(self) -> Array:
        """Return the gradient (n,), zero where a step against it would leave the limits."""
        g = self.gradient
        is_blocked = ((g > 0) & (self.lower > -1e-12)) | ((g < 0) & (self.upper < 1e-12))
        return np.where(is_blocked, 0.0, g)

    @contextmanager
    def si_rows(self) -> Generator[None]:
        """Let all objectives have residuals in m and rad, as in the cost that users define by weights.

        The rows of closures stay as they are, and so do those of levels that have only lengths or only angles.
        """
        rows = self.subproblem.rows if self.subproblem.si_rows is None else self.subproblem.si_rows
        units = self.row_units
        self.packed.write_row_scaling(rows)
        self.row_units = rows.units[: len(units)]
        try:
            yield
        finally:
            self.packed.write_row_scaling(self.subproblem.rows)
            self.row_units = units

    # ---- changes of state --------------------------------------------------------------------

    def set_configuration(self, q: Array) -> None:
        """Set the state to q (nq,); values beyond the limits are clamped, except those of locked dofs."""
        packed, nq = self.subproblem.packed, self.mechanism.nq
        self.x[:nq] = q
        self.x[nq:] = packed.extra_state
        packed.release_bounds()
        self._full_step[:] = 0.0
        packed.use_first_buffer()
        self._run_evaluation(MOVE, 0.0, STATE_BUFFER)
        self.evaluate()

    def set_state(self, x: Array) -> None:
        """Set the state to `x`, an earlier copy of the attribute `x`, and evaluate."""
        self.x[:] = x
        self.evaluate()

    def advance(self, share: float = 1.0) -> None:
        """Apply `share` of the step, clamped to the limits, and evaluate."""
        if self._has_python_functions:
            self._run_evaluation(MOVE, share, STATE_BUFFER)
            self.evaluate()
        else:
            self.cost, met_flag = self._run_evaluation(MOVE | EVALUATE | DENSIFY, share, STATE_BUFFER)
            self.is_met = met_flag == 1.0

    def evaluate(self) -> None:
        """Evaluate residual, Jacobian and cost at x, and whether the problem is met."""
        if self._has_python_functions:
            self._run_evaluation(EVALUATE, 0.0, STATE_BUFFER)
            evaluate_python_residuals(self.mechanism, self.subproblem.packed, self.relations)
            self.cost, met_flag = self._run_evaluation(DENSIFY, 0.0, STATE_BUFFER)
        else:
            self.cost, met_flag = self._run_evaluation(EVALUATE | DENSIFY, 0.0, STATE_BUFFER)
        self.is_met = met_flag == 1.0

    def cost_after(self, share: float = 1.0) -> float:
        """Return the cost that `advance(share)` would give, without a change of state."""
        if not self._has_python_functions:
            return self._run_evaluation(MOVE | EVALUATE | DENSIFY, share, SCRATCH_BUFFER)[0]
        x, residual, jacobian, cost_and_flag = (
            self.x.copy(),
            self._all_residuals.copy(),
            self._all_jacobians.copy(),
            (self.cost, self.is_met),
        )
        self.advance(share)
        cost = self.cost
        self.x[:], self._all_residuals[:], self._all_jacobians[:], (self.cost, self.is_met) = (
            x,
            residual,
            jacobian,
            cost_and_flag,
        )
        return cost

    def descend(self, max_iterations: int = 100, method: Method | None = None) -> float:
        """Descend with Levenberg-Marquardt from the present state; return a status of `kernels/state_layout.py`."""
        from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt

        packed, q = self.subproblem.packed, self.q
        local_method = LevenbergMarquardt() if method is None else method
        packed.set_options(
            local_method.kernel_options(Options(max_iterations=max_iterations), self.problem.length_unit)
        )
        q = run_kernel(
            self.mechanism, self.subproblem, self.relations, q, np.zeros((0, len(q))), Monitor(self.deadline)
        )
        status = float(packed.report.status)
        self.set_configuration(q)
        return status

    def are_loops_closed(self) -> bool:
        """Return whether every loop is closed, and joint constraints and swing limits hold."""
        return (
            self.constraint_block_count == 0
            or self._run_evaluation(DENSIFY, 0.0, STATE_BUFFER, required_blocks=self.constraint_block_count)[1] == 1.0
        )

    def _run_evaluation(
        self, actions: int, share: float, buffer: int, required_blocks: int | None = None
    ) -> tuple[float, float]:
        return evaluation_kernel.evaluate_dense(
            self._ints, self._floats, actions, share, buffer,
            self._required_blocks if required_blocks is None else required_blocks,
            self._block_count, self._all_residuals, self._all_jacobians,
        )  # fmt: skip

    def _distance_to_bound(self, bound: Array, unbounded: float) -> Array:
        values = self.x[np.where(self.scalar_columns, self.column_x, 0)]
        return np.where(self.scalar_columns, (bound - values) / self.scale, unbounded)
