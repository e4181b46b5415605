"""Newton and Raphson's method with a line search, as Klampt's solver has it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanik.solvers.linear_model import LinearModel
from mechanik.solvers.method import Method
from mechanik.solvers.option_checks import above_zero, finite, not_below_zero
from mechanik.solvers.problem import Problem
from mechanik.tiers import kernel_module

steps = kernel_module("methods.least_squares_steps")

ENOUGH = 1e-4
"""The share of what the slope promises that a step has to bring (alpha of Dennis and Schnabel)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Newton(Method):
    """A damped pseudo-inverse step, shortened until the sum of squares falls; it never gets worse.

    As in KrisLibrary's NewtonRoot, on which Klampt stands: singular values are damped as 1 / (s + lambda); joints at a
    limit that would be pushed outwards are taken out; the step is cut by quadratic and then cubic interpolation
    (Dennis and Schnabel 1983, A6.3.1), clamped to the limits as it is tried; it ends when nothing moves any more.

    What differs: Klampt takes joints out by the sign of the gradient, once; here it is by the sign of the step, until
    there is none left, and some are let in again. Klampt goes along vectors whose singular value is zero. Its rows are
    in m and rad, ours in sizes and rad, and so is lambda; its rotation errors are other rows, and one tolerance holds
    for the largest of all rows, while here each goal has its own. tolx is relative to the joint's value there, and
    absolute here. Its starts and restarts are not part of this method.

    Out of reach it is slow: next to a stretched pose steps are long and of little use, and the line search cuts them.

    Attributes:
        damping: lambda, added to singular values; units of the rows. 0.01 is Klampt's. With 0.1 more random targets are
            reached in one attempt (of a UR5 50 % instead of 43), and each takes more iterations (16 instead of 12).
        step_max: the longest step, as a multiple of the number of joints, or of the length of q if that is more.
            10 is Klampt's; longer ones come from singular values far below lambda.
        tolx: rad, or sizes; a step below it ends the search. Klampt has a hundredth of the tolerance, and so it is
            here, of that of loops.
    """

    name: ClassVar[str] = "newton"
    title: ClassVar[str] = "Newton-Raphson with a line search"
    citation: ClassVar[str] = (
        "K. Hauser, Robust contact generation for robot simulation with unstructured meshes, International Symposium on"
        " Robotics Research, 2013 (Klampt); J. E. Dennis and R. B. Schnabel, Numerical methods for unconstrained"
        " optimization and nonlinear equations, Prentice-Hall, 1983"
    )

    damping: float = 0.01
    step_max: float = 10.0
    tolx: float = 1e-12

    def __post_init__(self) -> None:
        not_below_zero(self, "damping")
        finite(self, "damping")
        above_zero(self, "step_max", "tolx")

    def iterate(self, problem: Problem) -> Iterator[None]:
        model = LinearModel(problem)
        slope = 0.0

        def write_step() -> None:
            nonlocal slope
            slope = steps.newton_step(model.e, model.J, self.damping, model.U, model.s, model.V, model.step)

        while True:
            model.renew()
            model.solve(write_step, hold_at_limits=True)
            longest = self.step_max * max(float(np.linalg.norm(problem.x)), problem.n)
            length = float(np.linalg.norm(problem.step))
            if length > longest:
                problem.step *= longest / length
                slope *= longest / length
            if not slope < 0.0 or not self._search_line(problem, slope):
                return
            yield

    def _search_line(self, problem: Problem, slope: float) -> bool:
        """Go along the step as far as the cost falls enough; False if it does not, and nothing has moved."""
        here, before = problem.x.copy(), 0.5 * problem.cost
        smallest = self.tolx / float(np.abs(problem.step).max())
        share, last, last_cost = 1.0, 0.0, 0.0
        while share >= smallest:
            problem.x[:] = here
            problem.advance(share)
            cost = 0.5 * problem.cost
            if cost <= before + ENOUGH * share * slope:
                return True
            guess = _minimum(share, cost - before, last, last_cost - before, slope)
            last, last_cost, share = share, cost, max(min(guess, 0.5 * share), 0.1 * share)
        problem.place_x(here)
        return False


def _minimum(share: float, rise: float, last: float, last_rise: float, slope: float) -> float:
    """Where the parabola through what is known, or the cubic if two shares have been tried, is lowest."""
    if not (math.isfinite(rise) and math.isfinite(last_rise)):
        return 0.5 * share
    excess = rise - slope * share
    if last == 0.0:
        return -slope * share * share / (2.0 * excess)
    one, two = excess / share**2, (last_rise - slope * last) / last**2
    a, b = (one - two) / (share - last), (share * two - last * one) / (share - last)
    if a == 0.0:
        return -slope / (2.0 * b)
    root = b * b - 3.0 * a * slope
    if root < 0.0:
        return 0.5 * share
    return (math.sqrt(root) - b) / (3.0 * a) if b <= 0.0 else -slope / (b + math.sqrt(root))
