"""Solving a single time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from mechanik.errors import WrongKind
from mechanik.ik.solver import Solver
from mechanik.mechanism import Mechanism
from mechanik.objectives import Objective
from mechanik.solvers.freedoms import Names
from mechanik.solvers.method import Method
from mechanik.solvers.solution import Solution
from mechanik.solvers.watch import Callback
from mechanik.spatial.array import Array, ArrayLike


def solve(
    mechanism: Mechanism,
    goals: Objective | Iterable[Objective],
    q0: ArrayLike | None = None,
    *,
    solver: str | Method = "lm",
    active: Names | str | None = None,
    lock: Names | str | None = None,
    limits: Mapping[str, ArrayLike] | None = None,
    weights: Mapping[str, float] | None = None,
    rest: ArrayLike | Mapping[str, ArrayLike] | bool | None = None,
    rng: np.random.Generator | None = None,
    feasible: Callable[[Array], bool] | None = None,
    history: bool = False,
    callback: Callback | None = None,
    restarts: int = 100,
    **options: Any,
) -> Solution:
    """Solve once; see `Solver`, which is faster when there is more than one target.

    The mechanism is not moved: `mechanism.apply(solution)` does that. If the way from q0 does not lead to success,
    up to `restarts` further starts are tried.
    """
    if not isinstance(mechanism, Mechanism):
        raise WrongKind(f"solve takes a mechanism, not {mechanism!r}; for frames use Solver(roots)")
    prepared = Solver(
        mechanism,
        goals,
        solver=solver,
        active=active,
        lock=lock,
        limits=limits,
        weights=weights,
        rest=rest,
        restarts=restarts,
        **options,
    )
    return prepared.solve(q0=q0, rng=rng, feasible=feasible, history=history, callback=callback)
