"""A task: an objective, and how fast its error is taken off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mechanik.errors import ObjectiveError, WrongKind
from mechanik.mechanism.door import as_number
from mechanik.objectives import Objective


@dataclass(frozen=True, slots=True)
class Task:
    """
    Attributes:
        objective: with its level, weight and target.
        gain: 1/s; an error that limits do not hold back shrinks by this rate. None: as the tracker has it.
    """

    objective: Objective
    gain: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.objective, Objective):
            raise WrongKind(f"a task is made of an objective, such as a PoseGoal, not of {self.objective!r}")
        if self.gain is not None:
            object.__setattr__(self, "gain", as_gain(self.gain, f"gain of {self.objective._called}"))


def as_gain(gain: float, what: str) -> float:
    number = as_number(gain, what)
    if number <= 0.0:
        raise ObjectiveError(f"{what} must be above zero, not {number:g}; it is in 1/s")
    return number


def as_tasks(tasks: Objective | Task | Iterable[Objective | Task]) -> tuple[Task, ...]:
    """One or several objectives or tasks, as tasks."""
    several = (tasks,) if isinstance(tasks, Objective | Task) else tasks
    if isinstance(several, str) or not isinstance(several, Iterable):
        raise WrongKind(f"a tracker takes tasks or objectives, such as a PoseGoal, not {tasks!r}")
    found = tuple(one if isinstance(one, Task) else Task(one) for one in several)
    if not found:
        raise ObjectiveError("nothing is asked for: the list of tasks is empty")
    return found
