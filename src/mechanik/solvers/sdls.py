"""Selectively damped least squares: each singular vector is damped by how far it would throw the effectors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanik.solvers.linear_model import LinearModel
from mechanik.solvers.method import Method
from mechanik.solvers.option_checks import above_zero, yes_or_no
from mechanik.solvers.problem import Problem
from mechanik.tiers import kernel_module

steps = kernel_module("methods.least_squares_steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectivelyDamped(Method):
    """The pseudo-inverse step, singular vector by singular vector, none longer than its gamma_i.

    For singular vectors u_i, v_i: gamma_i = min(1, N_i / M_i) gamma_max, where N_i is how far u_i moves the effectors
    and M_i how far v_i / s_i would if joints could not cancel each other. Each goal is two effectors: its lengths and
    its angles, in the units of the rows; the authors have positions only. Vectors are cut at gamma_i; the authors'
    program scales them by gamma_i / (gamma_i + length) instead.

    Attributes:
        gamma_max: rad, or sizes; the farthest that one joint goes in one step. 45 degrees is what the authors
            have in their program.
        D_max, D_max_angle: m and rad; goals that are farther off pull only this hard (the paper's ClampMag). Infinite
            by default.
        hold_at_limits: a joint at its limit that the step pushes outwards is taken out, and the step solved again.
    """

    name: ClassVar[str] = "sdls"
    title: ClassVar[str] = "selectively damped least squares"
    citation: ClassVar[str] = (
        "S. R. Buss and J.-S. Kim, Selectively damped least squares for inverse kinematics, Journal of Graphics Tools"
        " 10(3), 2005"
    )

    gamma_max: float = math.pi / 4
    D_max: float = math.inf
    D_max_angle: float = math.inf
    hold_at_limits: bool = True

    def __post_init__(self) -> None:
        above_zero(self, "gamma_max", "D_max", "D_max_angle")
        yes_or_no(self, "hold_at_limits")

    def iterate(self, problem: Problem) -> Iterator[None]:
        model = LinearModel(problem, self.D_max, self.D_max_angle)
        rho = np.empty(problem.n)

        def write_step() -> None:
            steps.selective_step(
                model.e, model.J, model.effectors, self.gamma_max, model.U, model.s, model.V, rho, model.step
            )

        while True:
            model.renew()
            model.solve(write_step, self.hold_at_limits)
            model.shorten(self.gamma_max)
            problem.advance()
            yield
