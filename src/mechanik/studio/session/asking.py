"""How a background solver is told what is asked for."""

from __future__ import annotations

from typing import Any

from mechanik.live import Live
from mechanik.mechanism import Mechanism
from mechanik.solvers.options import NAMES, Options
from mechanik.spatial.array import Array
from mechanik.studio.session.fitting import fitted
from mechanik.studio.session.plan import Plan
from mechanik.studio.session.refusals import said_to_people
from mechanik.studio.session.setup import Setup, write_bounds_and_rests
from mechanik.studio.session.table import Table

USUAL: dict[str, Any] = {name: getattr(Options(), name) for name in NAMES if name != "max_seconds"} | {"restarts": 0}
"""Of the options that every method takes; nothing leaps while it is dragged."""


def begun(mechanism: Mechanism, fit: Plan, q: Array) -> Live:
    """One that stands at q (nq,) and does not run yet.

    Args:
        fit: as its method can take it, see `fitted`.
    """
    with said_to_people():
        return Live(mechanism, fit.goals, fit.solver, q0=q, lock=fit.lock, rest=fit.rest, **fit.avoiding, **fit.options)


def told(live: Live, asked: Plan, before: Plan) -> Plan:
    """Ask it for something else than before, as its method can take it, which is returned. A background solver keeps
    what every method takes: what is not given any more is as usual again."""
    fit = fitted(asked)
    usual = {name: USUAL[name] for name in before.options if name in USUAL and name not in fit.options}
    with said_to_people():
        live.set(
            goals=fit.goals, solver=fit.solver, lock=fit.lock, rest=fit.rest, **fit.avoiding, **usual, **fit.options
        )
    return fit


def edited(live: Live, table: Table, setup: Setup, asked: Plan, before: Plan) -> Plan:
    """As `told`, of a mechanism with the limits and rests of that setup."""
    with live.edit() as mechanism:
        write_bounds_and_rests(mechanism, table.anatomy.freedoms, setup)
        return told(live, asked, before)
