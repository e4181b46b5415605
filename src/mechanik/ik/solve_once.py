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
from mechanik.solvers.keeping_off import Avoid, AvoidAs
from mechanik.solvers.method import Method
from mechanik.solvers.solution import Solution
from mechanik.solvers.watch import Callback
from mechanik.spatial.array import Array, ArrayLike

RESTARTS = 100


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
    avoid: Avoid | None = None,
    clearance: float = 0.0,
    allow: Iterable[tuple[str, str]] = (),
    forbid: Iterable[tuple[str, str]] = (),
    avoid_as: AvoidAs = "limit",
    rng: np.random.Generator | None = None,
    feasible: Callable[[Array], bool] | None = None,
    history: bool = False,
    callback: Callback | None = None,
    restarts: int | None = None,
    **options: Any,
) -> Solution:
    """Solve once; see `Solver`, which is faster when there is more than one target.

    The mechanism is not moved: `mechanism.apply(solution)` does that. If the way from q0, or from where the mechanism
    stands, does not lead to success, up to `restarts` further starts are tried; None: 100, or what is usual for a
    chain.
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
        avoid=avoid,
        clearance=clearance,
        allow=allow,
        forbid=forbid,
        avoid_as=avoid_as,
        restarts=restarts,
        **options,
    )
    # a chain knows how often to start again; who looks on, or has a say, is not for its kernel
    is_plain = prepared._chain is not None and feasible is None and callback is None and not history
    more: dict[str, Any] = {"restarts": RESTARTS} if restarts is None and not is_plain else {}
    start = mechanism.q if q0 is None else q0
    return prepared.solve(q0=start, rng=rng, feasible=feasible, history=history, callback=callback, **more)
