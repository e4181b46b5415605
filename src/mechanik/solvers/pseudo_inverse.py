"""The pseudo-inverse of the Jacobian, with nothing to tame it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from mechanik.solvers.linear_model import LinearModel
from mechanik.solvers.method import Method
from mechanik.solvers.option_checks import above_zero, not_below_zero, up_to_one, yes_or_no
from mechanik.solvers.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class PseudoInverse(Method):
    """step = -J^+ e: the smallest step that would meet the goals if they were linear.

    Near a singular pose it is large in directions that help little, so the mechanism jumps; far from a goal it
    overshoots. Whitney moves in small increments along a path, where neither shows, and gamma_max brings that back.
    With 45 degrees, 56 % of 700 random targets of a UR5 are reached in one attempt instead of 26, of a Panda 47 instead
    of 33.

    Attributes:
        rank_tolerance: singular values below this share of the largest count as zero.
        gamma_max: rad, or sizes; a step that moves a joint farther is shortened as a whole. Infinite by default.
        hold_at_limits: a joint at its limit that the step pushes outwards is taken out, and the step solved again.
        gain: which share of the way to a rest pose, or another wish, one step goes in the null space, 0 to 1.
    """

    name: ClassVar[str] = "pseudo_inverse"
    title: ClassVar[str] = "the pseudo-inverse"
    citation: ClassVar[str] = (
        "D. E. Whitney, Resolved motion rate control of manipulators and human prostheses, IEEE Transactions on"
        " Man-Machine Systems 10(2), 1969"
    )
    takes_wishes: ClassVar[bool] = True

    rank_tolerance: float = 1e-6
    gamma_max: float = math.inf
    hold_at_limits: bool = True
    gain: float = 0.5

    def __post_init__(self) -> None:
        above_zero(self, "gamma_max")
        not_below_zero(self, "rank_tolerance", "gain")
        up_to_one(self, "gain")
        yes_or_no(self, "hold_at_limits")

    def iterate(self, problem: Problem) -> Iterator[None]:
        model = LinearModel(problem)

        def write_step() -> None:
            model.spectral_step(0.0, self.rank_tolerance)
            if model.has_wishes and self.gain > 0.0:
                model.add_wishes(self.gain, 0.0, self.rank_tolerance)

        while True:
            model.renew()
            model.solve(write_step, self.hold_at_limits)
            model.shorten(self.gamma_max)
            problem.advance()
            yield
