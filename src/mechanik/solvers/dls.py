"""Damped least squares with a fixed damping."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanik.solvers.linear_model import LinearModel
from mechanik.solvers.method import Method
from mechanik.solvers.option_checks import above_zero, finite, not_below_zero, up_to_one, yes_or_no
from mechanik.solvers.problem import Problem
from mechanik.tiers import kernel_module

steps = kernel_module("methods.least_squares_steps")

RANK_TOLERANCE = 1e-9
"""Of the null space. What it takes for null is followed although it moves the goals, by this much at most."""


class NormalEquations:
    """Damped steps of a linear model by Cholesky's method, and by singular values where that fails."""

    def __init__(self, model: LinearModel) -> None:
        k = len(model.s)
        self._model, self._A, self._y = model, np.empty((k, k)), np.empty(k)

    def write_step(self, damping2: float) -> None:
        """
        Args:
            damping2: what is added to the diagonal, lambda squared.
        """
        model = self._model
        if not steps.damped_step(model.e, model.J, damping2, self._A, self._y, model.step):
            model.spectral_step(math.sqrt(damping2))


@dataclass(frozen=True, slots=True, kw_only=True)
class DampedLeastSquares(Method):
    """step = -J' (J J' + lambda^2 1)^-1 e, and in the null space of J towards what is wished for.

    Attributes:
        damping: lambda, in units of the rows: weighted, lengths in sizes of the mechanism, angles in rad. The paper
            leaves it to the user. Near a solution an error along u_i shrinks by lambda^2 / (s_i^2 + lambda^2) a step.
        svd: solve each step by singular values instead of the normal equations; slower, and the same within rounding.
        D_max, D_max_angle: m and rad; goals that are farther off pull only this hard (the paper's ClampMag). Infinite
            by default.
        gamma_max: rad, or sizes; a step that moves a joint farther is shortened as a whole. 45 degrees is what the
            paper's author has in his program.
        hold_at_limits: a joint at its limit that the step pushes outwards is taken out, and the step solved again.
            It is let go again where the linear model leads inside. If False, the step is only clamped to the limits.
        gain: which share of the way to a rest pose, or another wish, one step goes in the null space, 0 to 1.
    """

    name: ClassVar[str] = "dls"
    title: ClassVar[str] = "damped least squares"
    citation: ClassVar[str] = (
        "S. R. Buss, Introduction to inverse kinematics with Jacobian transpose, pseudoinverse and damped least squares"
        " methods, University of California, San Diego, 2009"
    )
    takes_wishes: ClassVar[bool] = True

    damping: float = 0.05
    """Of 0.05, 0.1 and 0.15 the best with this gamma_max, on 700 random targets each of a Panda, a UR5, a planar 3R and
    a tree with two hands."""
    svd: bool = False
    D_max: float = math.inf
    D_max_angle: float = math.inf
    gamma_max: float = math.pi / 4
    hold_at_limits: bool = True
    gain: float = 0.5

    def __post_init__(self) -> None:
        above_zero(self, "damping", "D_max", "D_max_angle", "gamma_max")
        finite(self, "damping")
        not_below_zero(self, "gain")
        up_to_one(self, "gain")
        yes_or_no(self, "svd", "hold_at_limits")

    def iterate(self, problem: Problem) -> Iterator[None]:
        model = LinearModel(problem, self.D_max, self.D_max_angle)
        normal, wishes = NormalEquations(model), model.has_wishes and self.gain > 0.0

        def write_step() -> None:
            if self.svd or wishes:
                model.spectral_step(self.damping)
            else:
                normal.write_step(self.damping * self.damping)
            if wishes:
                model.add_wishes(self.gain, self.damping, RANK_TOLERANCE)

        while True:
            model.renew()
            model.solve(write_step, self.hold_at_limits)
            model.shorten(self.gamma_max)
            problem.advance()
            yield
