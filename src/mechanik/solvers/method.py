"""What a method is: options with the names of its paper, and a loop that a student can read next to it.

A method is a frozen dataclass. Its fields are its options; `iterate` is the method itself, a generator that moves the
problem by one iteration between two yields. Everything else (the clock, callbacks, history, restarts, the check of the
answer) is done for all methods alike by `iterate.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mechanik.errors import Refused

if TYPE_CHECKING:
    from mechanik.solvers.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(ABC):
    """
    Attributes:
        name: by which `Solver(..., solver=name)` finds it.
        title: for people.
        citation: the paper, as one would cite it.
        usual_iterations: after which it gives up, if the caller does not say.
        takes_wishes: whether it follows rest poses and other wishes below what is required.
        takes_loops: whether closures can be among its rows. Loops are then shut as goals are met, not before.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    usual_iterations: ClassVar[int] = 200
    takes_wishes: ClassVar[bool] = False
    takes_loops: ClassVar[bool] = True

    @abstractmethod
    def iterate(self, problem: Problem) -> Iterator[float | None]:
        """Move the problem, one iteration between two yields, from where it stands.

        Whoever drives it stops it once the problem is met. It may return when it knows that it is stuck, or yield a
        status (`kernels/solver_state.py` numbers them) if it knows that all is over, and how.
        """

    def check(self, problem: Problem) -> None:
        """Raise `Refused` if the problem asks for what the method cannot do."""
        if problem.levels > 1:
            raise self.refusal(f"knows no levels, and there are {problem.levels}", "lm")
        if not self.takes_wishes and len(problem.wish_rows):
            raise self.refusal("knows no wishes, such as a rest pose, below what is required", "lm' or 'dls")
        if problem.wishes_first:
            raise self.refusal("cannot put a wish above what is required", "lm")
        if not self.takes_loops and problem.closures:
            raise self.refusal("cannot shut loops", "lm")

    def refusal(self, what: str, instead: str) -> Refused:
        """An error that says what cannot be done, and which method can."""
        return Refused(f"{self.title} {what}; solver='{instead}' does")
