"""Base class of iterative methods, validation of their options, and the driver of an attempt.

A method is a frozen dataclass: its fields are its options, and `iterate` is a generator that makes one iteration before
each yield. `run_method` handles the deadline, callbacks, history and stopping rules of methods that iterate in Python.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanik.errors import InvalidOperation, LimitsError
from mechanik.kernels.state_layout import (
    CLOSEST,
    CONVERGED,
    DIVERGED,
    NOT_CLOSED,
    STALLED,
    STOPPED,
    TIMEOUT,
)
from mechanik.problem import KernelOptions
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.monitor import Monitor
from mechanik.solver.options import Options
from mechanik.spatial.array import Array
from mechanik.validation import as_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(ABC):
    """Base class of iterative inverse kinematics methods.

    A subclass sets the class attributes and implements `iterate`.

    Attributes:
        name: short name; `Solver(..., solver=name)` selects a method of `METHODS`.
        title: name for messages.
        citation: the paper.
        default_iterations: maximum number of iterations if the caller gives none. Where a goal with lengths and angles
            is not reached, a second descent, with residuals in m and rad, has as many.
        supports_soft_objectives: whether the method reduces soft objectives, such as rest poses, as far as the required
            objectives allow.
        supports_loops: whether closures may be part of the residual. Loops are then closed together with the goals.
        supports_levels: whether the method supports priority levels.
        can_diverge: whether steps can increase the error against the intent of the method, so that
            `Options.divergence_threshold` applies.
        is_descent: whether iterations reduce the cost, so that a search that fails can continue in other units.
        is_compiled: whether the general kernel runs the whole search, with the options of `kernel_options`.

    Example:
        >>> class GaussNewton(mk.Method):
        ...     name, title, citation = "gauss_newton", "Gauss-Newton", "C. F. Gauss, 1809"
        ...
        ...     def iterate(self, problem):
        ...         while True:
        ...             problem.step[:] = -np.linalg.lstsq(problem.jacobian, problem.residual)[0]
        ...             problem.advance()
        ...             yield
        >>> arm = mk.arm_2d([1.0, 1.0])
        >>> mk.solve(arm, mk.PositionGoal("tool", (0.5, 1.2, 0.0)), q0=[0.3, 1.5], solver=GaussNewton()).success
        True
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    default_iterations: ClassVar[int] = 200
    supports_soft_objectives: ClassVar[bool] = False
    supports_loops: ClassVar[bool] = True
    supports_levels: ClassVar[bool] = False
    can_diverge: ClassVar[bool] = True
    is_descent: ClassVar[bool] = True
    is_compiled: ClassVar[bool] = False

    @abstractmethod
    def iterate(self, problem: LeastSquaresProblem) -> Iterator[float | None]:
        """Improve the state of the problem, by one iteration before each yield.

        The driver stops the generator at the maximum number of iterations or at the deadline, and once the problem is
        met and, for a method that supports soft objectives, the soft cost no longer decreases. The generator may return
        if there is no more progress. It yields None or, to end the attempt with a status, a status code (a float of
        `kernels/state_layout.py`).

        Args:
            problem: the problem; write `problem.step` and call `problem.advance`.
        """

    def check(self, problem: LeastSquaresProblem) -> None:
        """Raise if the method does not support the problem.

        Raises:
            InvalidOperation: for priority levels, soft objectives or loops that the method does not support.
        """
        if problem.levels > 1 and not self.supports_levels:
            raise self.unsupported_error(
                f"does not support priority levels, and the problem has {problem.levels}", "lm"
            )
        if not self.supports_soft_objectives and len(problem.soft_residual):
            raise self.unsupported_error("does not support soft objectives, such as a rest pose", "lm", "dls")
        if problem.has_soft_above_required:
            raise self.unsupported_error(
                "does not support a soft objective with a higher priority than a required one", "lm"
            )
        if not self.supports_loops and problem.constraint_block_count:
            raise self.unsupported_error("does not support closed loops, joint constraints or swing limits", "lm")

    def run_attempt(
        self, problem: LeastSquaresProblem, q0: Array, options: Options, monitor: Monitor, keeps_best: bool = True
    ) -> Array:
        """Make an attempt from q0 (nq,) and return its configuration (nq,); the report is that of the packed problem.

        Args:
            problem: the problem, with the inputs of the call.
            q0: start configuration.
            options: options of the call.
            monitor: deadline, history and callback.
            keeps_best: whether to return the best configuration of the attempt instead of the last one.
        """
        return run_method(problem, self, q0, options, monitor, keeps_best)

    def kernel_options(self, options: Options, length_unit: float) -> KernelOptions:
        """Return the options of the general kernel for a compiled method.

        Args:
            options: options of the solver.
            length_unit: characteristic length of the mechanism, m.
        """
        raise NotImplementedError(f"{self.title} does not run in the general kernel")

    def with_clipped_errors(self, position: float, rotation: float) -> Method:
        """Return the method that clips errors of goals at `position` (m) and `rotation` (rad), if it can."""
        return self

    def unsupported_error(self, reason: str, *alternatives: str, option: str = "") -> InvalidOperation:
        """Return an error with the reason why the method does not support the problem, and alternative methods.

        Args:
            reason: continues a sentence that starts with the title of the method.
            alternatives: names of the methods.
            option: option of the alternative, such as "gradient='analytic'".
        """
        names = " or ".join(map(repr, alternatives))
        return InvalidOperation(f"{self.title} {reason}; use solver={names}{f' with {option}' if option else ''}")


def check_positive(method: Method, *names: str) -> None:
    """Raise `LimitsError` if an option is not above 0; infinity is allowed and means no limit."""
    for name in names:
        if not _option_value(method, name) > 0.0:
            raise LimitsError(f"{name} must be above 0, not {getattr(method, name)!r}")


def check_non_negative(method: Method, *names: str) -> None:
    """Raise `LimitsError` if an option is below 0; infinity is allowed."""
    for name in names:
        if not _option_value(method, name) >= 0.0:
            raise LimitsError(f"{name} cannot be below 0, but is {getattr(method, name)!r}")


def check_finite(method: Method, *names: str) -> None:
    """Raise `LimitsError` if an option is not finite."""
    for name in names:
        if not math.isfinite(_option_value(method, name)):
            raise LimitsError(f"{name} must be finite, not {getattr(method, name)!r}")


def check_at_most_one(method: Method, *names: str) -> None:
    """Raise `LimitsError` if an option is above 1."""
    for name in names:
        if not _option_value(method, name) <= 1.0:
            raise LimitsError(f"{name} must be from 0 to 1, not {getattr(method, name)!r}")


def _option_value(method: Method, name: str) -> float:
    value = getattr(method, name)
    if isinstance(value, str | bool):
        raise LimitsError(f"{name} must be a number, not {value!r}")
    return as_number(value, name, allow_infinite=True)


SOFT_PATIENCE_ITERATIONS, SOFT_PROGRESS_RATIO = 3, 0.999
"""Once the required objectives are met, an attempt ends after SOFT_PATIENCE_ITERATIONS successive iterations that do
not reduce the soft cost below SOFT_PROGRESS_RATIO times its best value. More patience improves soft objectives and
costs iterations.
"""


def run_method(
    problem: LeastSquaresProblem, method: Method, q0: Array, options: Options, monitor: Monitor, keeps_best: bool = True
) -> Array:
    """Iterate from `q0` (nq,) until the problem is met or a stopping rule applies, and return q (nq,).

    The report is that of the packed problem.

    Args:
        keeps_best: whether to return the best configuration of the attempt instead of the last one. If the method
            yields a status, the last one is returned.
    """
    max_iterations = method.default_iterations if options.max_iterations is None else options.max_iterations
    nq = problem.mechanism.nq
    uses_soft_objectives = method.supports_soft_objectives and len(problem.soft_residual) > 0
    problem.deadline = monitor.deadline
    problem.set_configuration(q0)
    was_clamped = not np.array_equal(problem.x[:nq], q0)
    best_x, best_merit = problem.x.copy(), _merit(problem)
    divergence_cost = options.divergence_threshold**2 * problem.cost if method.can_diverge else math.inf
    iterations, idle_iterations, status = 0, 0, CONVERGED
    generator = method.iterate(problem)  # `next` returns the generator itself at the end of the iterations
    while not problem.is_met or (uses_soft_objectives and idle_iterations < SOFT_PATIENCE_ITERATIONS):
        if iterations >= max_iterations or monitor.is_over():
            status = STOPPED if monitor.is_stopped else TIMEOUT
            break
        status_or_generator = next(generator, generator)
        if status_or_generator is generator:
            status = STALLED
            break
        iterations += 1
        monitor.record(problem.x[:nq], problem.cost)
        if not problem.cost < math.inf or (problem.cost > divergence_cost and best_merit[0] and not problem.is_met):
            status = DIVERGED
            break
        merit = _merit(problem)
        if uses_soft_objectives:
            idle_iterations = (
                0 if merit[0] < best_merit[0] or merit[1] < SOFT_PROGRESS_RATIO * best_merit[1] else idle_iterations + 1
            )
        if merit < best_merit:
            best_x[:], best_merit = problem.x, merit
        if isinstance(status_or_generator, float):
            _write_report(problem, status_or_generator, iterations, was_clamped)
            return problem.q
        if options.smallest_step > 0.0 and np.abs(problem.step).max(initial=0.0) < options.smallest_step:
            status = STALLED
            break
    if keeps_best and not _merit(problem) <= best_merit:
        problem.set_state(best_x)
    status = CONVERGED if problem.is_met else _final_status(problem, status, options)
    _write_report(problem, status, iterations, was_clamped)
    return problem.q


def _merit(problem: LeastSquaresProblem) -> tuple[bool, float]:
    """Return a sort key: states that meet the problem first, by soft cost; then all other states, by required cost."""
    return (False, problem.soft_cost) if problem.is_met else (True, problem.cost)


def _final_status(problem: LeastSquaresProblem, status: float, options: Options) -> float:
    """Return the final status of an attempt that does not meet the problem.

    It is DIVERGED if the attempt diverged, NOT_CLOSED if a loop is not closed, CLOSEST at a stationary point, and
    otherwise `status`.
    """
    if status != DIVERGED and not problem.are_loops_closed():
        return NOT_CLOSED
    if status in (STALLED, TIMEOUT):
        max_gradient = np.abs(problem.reduced_gradient()).max(initial=0.0)
        if max_gradient <= options.smallest_gradient * math.sqrt(problem.cost):
            return CLOSEST
    return status


def _write_report(problem: LeastSquaresProblem, status: float, iterations: int, was_clamped: bool) -> None:
    report = problem.subproblem.packed.report
    report.set_result(status, iterations, was_clamped=was_clamped)
    for stage in problem.subproblem.required_stages:
        report.set_stage(stage, status, problem.cost)
