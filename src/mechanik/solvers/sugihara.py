"""Damped least squares whose damping is the error, and a little more: robust where goals cannot be met."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from mechanik.solvers.dls import NormalEquations
from mechanik.solvers.linear_model import LinearModel
from mechanik.solvers.method import Method
from mechanik.solvers.option_checks import above_zero, finite, yes_or_no
from mechanik.solvers.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Sugihara(Method):
    """step = -(J'J + W_n)^-1 J'e with W_n = (E + w_n_bar) 1 and E = e'e / 2.

    Attributes:
        w_n_bar: the damping that is left when the error is gone, in units of the rows squared: weighted, lengths in
            sizes of the mechanism, angles in rad. From 1e-4 to 1e-2 about as many random targets are
            reached; less takes fewer iterations.
        hold_at_limits: a joint at its limit that the step pushes outwards is taken out, and the step solved again.
    """

    name: ClassVar[str] = "sugihara"
    title: ClassVar[str] = "robust error damped least squares"
    citation: ClassVar[str] = (
        "T. Sugihara, Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method, IEEE Transactions"
        " on Robotics 27(5), 2011"
    )

    w_n_bar: float = 1e-3
    hold_at_limits: bool = True

    def __post_init__(self) -> None:
        above_zero(self, "w_n_bar")
        finite(self, "w_n_bar")
        yes_or_no(self, "hold_at_limits")

    def iterate(self, problem: Problem) -> Iterator[None]:
        model = LinearModel(problem)
        normal = NormalEquations(model)
        while True:
            W_n = 0.5 * problem.cost + self.w_n_bar
            model.renew()
            model.solve(lambda W_n=W_n: normal.write_step(W_n), self.hold_at_limits)
            problem.advance()
            yield
