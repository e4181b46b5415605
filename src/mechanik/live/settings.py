"""What a background solver is made from, so that it can be made again with something else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mechanik.errors import Refused
from mechanik.ik import Solver
from mechanik.mechanism import Mechanism
from mechanik.objectives import Objective, RestPose
from mechanik.objectives.objective import as_objectives
from mechanik.solvers.freedoms import Names
from mechanik.solvers.method import Method
from mechanik.solvers.options import NAMES
from mechanik.spatial.array import ArrayLike

Goals = Objective | Iterable[Objective]
Rest = ArrayLike | Mapping[str, ArrayLike] | bool
AVOIDING = ("avoid", "clearance", "allow", "forbid", "avoid_as")
OF_ALL = (*NAMES, "active", "weights", *AVOIDING)
"""What is kept when the method is changed: what every solver takes."""


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """See `Solver` for what they mean.

    Attributes:
        goals: None: what the graph asks for. Empty: nothing but that loops stay shut and laws are kept.
    """

    goals: tuple[Objective, ...] | None
    solver: str | Method = "lm"
    lock: tuple[Any, ...] = ()
    limits: Mapping[str, ArrayLike] | None = None
    rest: Rest | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def changed(
        self,
        goals: Goals | None,
        solver: str | Method | None,
        lock: Names | str | None,
        limits: Mapping[str, ArrayLike] | None,
        rest: Rest | None,
        options: Mapping[str, Any],
    ) -> Settings:
        """The same with what is given; None leaves a thing as it is. Another method keeps what all methods take."""
        if "max_seconds" in options:
            raise Refused("a background solver has a time for each tick: give it as budget, not as max_seconds")
        kept = self.options if solver is None else {name: self.options[name] for name in self.options if name in OF_ALL}
        if "avoid" in options and options["avoid"] is None:  # nothing any more
            kept = {name: kept[name] for name in kept if name not in AVOIDING}
        return replace(
            self,
            goals=self.goals if goals is None else as_objectives(goals),
            solver=self.solver if solver is None else solver,
            lock=self.lock if lock is None else as_names(lock),
            limits=self.limits if limits is None else limits,
            rest=self.rest if rest is None else rest,
            options={**kept, **options},
        )

    def build(self, mechanism: Mechanism) -> Solver | None:
        """A solver for the mechanism as it is now; None if nothing is to be solved."""
        goals: Goals | None = self.goals
        if goals == ():
            if not (mechanism.closures or mechanism.laws):
                return None
            goals = RestPose(np.array(mechanism.q), turns="exact", name="where it was put")
        # something that is dragged shall come along, and not leap to another branch
        options: dict[str, Any] = {"restarts": 0, **self.options}
        return Solver(
            mechanism, goals, solver=self.solver, lock=self.lock, limits=self.limits, rest=self.rest, **options
        )


def as_names(lock: Names | str) -> tuple[Any, ...]:
    """One name, or several, as a tuple."""
    return (lock,) if isinstance(lock, str) or not isinstance(lock, Iterable) else tuple(lock)
