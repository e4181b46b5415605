"""Levenberg-Marquardt on the configuration manifold, with joint limits, loop closure and strict priority levels.

Loops are closed first. Then a step is accepted if it decreases the cost and the loops stay closed. Perturbations and
other tentative steps may increase the cost at first; they are undone if the steps after them do not reduce it. The
iteration is compiled: its loop is in `kernels/descent.py`, and its step in `kernels/bounded_step.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import ClassVar

import numpy as np

from mechanik.errors import LimitsError
from mechanik.problem import KernelOptions
from mechanik.solver.kernel_driver import run_kernel
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.method import Method
from mechanik.solver.monitor import Monitor
from mechanik.solver.options import Options
from mechanik.spatial.array import Array
from mechanik.validation import as_number, check_flags


@dataclass(frozen=True, slots=True, kw_only=True)
class LevenbergMarquardt(Method):
    """Damped Gauss-Newton steps with limits, loop closure and strict priority levels; the default method.

    Attributes:
        damping: weight of the squared step length, in squared units of the weighted residual. None: adapted to the
            quality of the linear model, as Levenberg and Marquardt do. A number: fixed; increased only if a step would
            increase the cost.
        largest_error, largest_angle_error: m and rad; larger errors of goals are clipped to this. Infinite by default.
        perturbation: rad or characteristic lengths; size of a step away from a stationary configuration, such as a
            straight arm. 0: no such step.
        max_perturbations: maximum number of perturbations before a level ends. Large perturbations act like restarts:
            the solution may be on another branch.
        progress_tolerance: a level ends, with status CLOSEST, if the decrease of its cost that is still to be expected
            is at most this ratio of the cost; `ftol` in MINPACK. The expected decrease is extrapolated from the last
            step and the prediction for the next one. 0: never. None: 1e-13 if the objectives of a level have more
            rows than there are dofs, and there are more than 16 dofs, otherwise 0.
        svd: compute each step from the eigenvalues of J'J (squared singular values of J) instead of Cholesky's method;
            slower, same result within rounding.
    """

    name: ClassVar[str] = "lm"
    title: ClassVar[str] = "Levenberg-Marquardt"
    citation: ClassVar[str] = (
        "K. Levenberg, A method for the solution of certain non-linear problems in least squares, Quart. Appl. Math. 2"
        " (1944); D. W. Marquardt, An algorithm for least-squares estimation of nonlinear parameters, SIAM J. Appl."
        " Math. 11 (1963)"
    )
    default_iterations: ClassVar[int] = 100
    supports_soft_objectives: ClassVar[bool] = True
    supports_levels: ClassVar[bool] = True
    can_diverge: ClassVar[bool] = False
    is_compiled: ClassVar[bool] = True

    damping: float | None = None
    largest_error: float = math.inf
    largest_angle_error: float = math.inf
    perturbation: float = 0.02
    max_perturbations: int = 1
    progress_tolerance: float | None = None
    svd: bool = False

    def __post_init__(self) -> None:
        if (
            isinstance(self.max_perturbations, bool)
            or not isinstance(self.max_perturbations, Integral)
            or self.max_perturbations < 0
        ):
            raise LimitsError(f"max_perturbations must be an integer of 0 or more, not {self.max_perturbations!r}")
        for name in ("damping", "largest_error", "largest_angle_error", "perturbation", "progress_tolerance"):
            if isinstance(getattr(self, name), str):
                raise LimitsError(f"{name} must be a number, not the text {getattr(self, name)!r}")
        for name in ("largest_error", "largest_angle_error"):
            if not as_number(getattr(self, name), name, allow_infinite=True) > 0:
                raise LimitsError(f"{name} must be above 0, not {getattr(self, name)!r}")
        if not as_number(self.perturbation, "perturbation", allow_infinite=True) >= 0:
            raise LimitsError(f"perturbation cannot be below 0, but is {self.perturbation!r}")
        if self.progress_tolerance is not None and not as_number(self.progress_tolerance, "progress_tolerance") >= 0:
            raise LimitsError(f"progress_tolerance cannot be below 0, but is {self.progress_tolerance!r}")
        if self.damping is not None and not as_number(self.damping, "damping") > 0:
            raise LimitsError(f"damping must be above 0, or None for adaptive damping, not {self.damping!r}")
        check_flags(self, "svd")

    def check(self, problem: LeastSquaresProblem) -> None:
        """Accept every problem."""

    def run_attempt(
        self, problem: LeastSquaresProblem, q0: Array, options: Options, monitor: Monitor, keeps_best: bool = True
    ) -> Array:
        problem.subproblem.packed.set_options(self.kernel_options(options, problem.problem.length_unit))
        return run_kernel(problem.mechanism, problem.subproblem, problem.relations, q0, np.zeros((0, len(q0))), monitor)

    def kernel_options(self, options: Options, length_unit: float) -> KernelOptions:
        return KernelOptions(
            length_unit=length_unit,
            max_iterations=self.default_iterations if options.max_iterations is None else options.max_iterations,
            smallest_gradient=options.smallest_gradient,
            smallest_step=options.smallest_step,
            damping=self.damping or 0.0,
            max_error=self.largest_error / length_unit * options.position_weight,
            max_angle_error=self.largest_angle_error * options.rotation_weight,
            perturbation=self.perturbation,
            max_perturbations=self.max_perturbations,
            uses_eigenvalues=self.svd,
            progress_tolerance=self.progress_tolerance,
        )

    def with_clipped_errors(self, position: float, rotation: float) -> LevenbergMarquardt:
        return replace(
            self,
            largest_error=min(position, self.largest_error),
            largest_angle_error=min(rotation, self.largest_angle_error),
        )

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        """Run one compiled iteration before each yield, for use as the local method of another method.

        `Solver` does not call this: it runs the whole loop compiled, which is faster.
        """
        while True:
            last_cost = problem.cost
            problem.descend(max_iterations=1, method=self)
            yield
            if not problem.cost < last_cost:
                return
