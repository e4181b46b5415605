"""Adam: each joint goes at a pace of its own, set by how large its slope has been of late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from mechanik.errors import LimitsError
from mechanik.mechanism.door import as_number
from mechanik.solvers.method import Method
from mechanik.solvers.problem import Problem
from mechanik.solvers.slope import Slope
from mechanik.tiers import kernel_module

steps = kernel_module("methods.gradient_steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adam(Method):
    """
    Attributes:
        alpha: rad, or sizes of the mechanism; about how far a joint goes in a step at first. The paper's 0.001 is for
            networks; 0.1 was tuned on random targets of five arms.
        beta1, beta2: which share of the averages of the slope and of its square is kept; the paper's numbers.
        epsilon: slopes that are not much larger count less; the paper's number.
    """

    name: ClassVar[str] = "adam"
    title: ClassVar[str] = "Adam"
    citation: ClassVar[str] = "D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR (2015)"
    usual_iterations: ClassVar[int] = 2000

    alpha: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        for name in ("alpha", "epsilon"):
            value = getattr(self, name)
            if isinstance(value, str) or not as_number(value, name) > 0:
                raise LimitsError(f"{name} must be above 0, not {value!r}")
        for name in ("beta1", "beta2"):
            value = getattr(self, name)
            if isinstance(value, str) or not 0 <= as_number(value, name) < 1:
                raise LimitsError(f"{name} is a share from 0 to below 1, not {value!r}")

    def iterate(self, problem: Problem) -> Iterator[None]:
        slope, m, v = Slope(problem), np.zeros(problem.n), np.zeros(problem.n)
        for t in count(1):
            slope.look()
            largest = steps.adam_step(
                slope.gradient, slope.low, slope.high, self.alpha, self.beta1, self.beta2, self.epsilon, float(t), m, v,
                problem.step,
            )  # fmt: skip
            if largest == 0.0:
                return
            problem.advance()
            yield
