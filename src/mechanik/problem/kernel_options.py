"""Options of the general kernel, as one table that is written before a search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mechanik.kernels.state_layout import Options
from mechanik.spatial.array import Array

INITIAL_DAMPING = 0.04
"""Levenberg-Marquardt damping at the start of a stage, as a ratio of the cost. Tuned on random targets of a Panda and a
UR5."""
ATTEMPT_ITERATIONS = 40
"""Iterations in a stage after which an attempt ends if further starts remain. Tuned on random targets of a Panda and a
UR5.
"""
PROGRESS_TOLERANCE = 1e-13
"""Default of `progress_tolerance` for overdetermined problems with many dofs. The gradient is then below 1e-6 times the
square root of the cost. With 1e-8, 27 pose goals of a humanoid would take 6 iterations instead of 10, and 24 without
it."""


@dataclass(frozen=True, kw_only=True)
class KernelOptions:
    """Options of a search by the general kernel; lengths are in m, and `length_unit` converts them.

    Attributes:
        length_unit: characteristic length of the mechanism, m.
        max_iterations: largest number of iterations of a stage.
        smallest_gradient: largest reduced gradient of a stationary point, as a ratio of the square root of the cost.
        smallest_step: largest entry of a step below which a stage ends, in units of a column; 0: none.
        damping: fixed damping; 0: adapted.
        max_error, max_angle_error: weighted errors to which residuals are clipped, length units and rad.
        perturbation: size of a perturbation away from a stationary point, in units of a column.
        max_perturbations: largest number of perturbations in a stage.
        uses_eigenvalues: whether linear systems are solved by eigenvalues.
        progress_tolerance: expected decrease of the cost, as a ratio of the cost, at which a stage ends; 0: none; None:
            PROGRESS_TOLERANCE for some problems (`PackedProblem.stops_by_progress`), otherwise none.

    Example:
        >>> from mechanik.problem.kernel_options import KernelOptions
        >>> KernelOptions(length_unit=0.3, max_iterations=20).table.shape
        (14,)
    """

    length_unit: float
    max_iterations: int
    smallest_gradient: float = 1e-8
    smallest_step: float = 0.0
    damping: float = 0.0
    max_error: float = math.inf
    max_angle_error: float = math.inf
    perturbation: float = 0.02
    max_perturbations: int = 1
    uses_eigenvalues: bool = False
    progress_tolerance: float | None = None

    @cached_property
    def table(self) -> Array:
        """The numbers of the record `Options`, read-only."""
        table = np.zeros(Options.size)
        options = Options(table)
        # the kernel tests each residual alone; a loop counts as closed by the norm of three position or rotation
        # residuals
        options.closure_tolerance = max(1e-10 / math.sqrt(3) * min(1.0, 1.0 / self.length_unit), 1e-13)
        options.max_iterations = self.max_iterations
        options.start_damping = INITIAL_DAMPING
        options.gradient_tolerance = self.smallest_gradient
        options.perturbation_size = self.perturbation
        options.max_iterations_if_abandonable = ATTEMPT_ITERATIONS
        options.iterations_per_call = np.inf
        options.fixed_damping = self.damping
        options.step_tolerance = self.smallest_step
        options.max_error = self.max_error
        options.max_angle_error = self.max_angle_error
        options.uses_eigenvalues = self.uses_eigenvalues
        options.max_perturbations = self.max_perturbations
        options.progress_tolerance = self.progress_tolerance or 0.0
        table.flags.writeable = False
        return table
