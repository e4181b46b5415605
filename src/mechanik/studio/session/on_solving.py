"""Solving: the method and its options, run, pause and step; other solutions; several methods side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from mechanik.errors import LimitsError, Refused
from mechanik.solvers.methods import find_method, make_method, option_names
from mechanik.solvers.options import NAMES, Options, check_names
from mechanik.studio.messages import requests
from mechanik.studio.messages.checks import Value

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session

LARGEST_WHOLE, MOST_ITERATIONS, MOST_RESTARTS = 1_000, 10_000, 100
"""Of options that are whole numbers. Time is looked at after each iteration, and one of a large population is long."""
MOST = {"max_iterations": MOST_ITERATIONS, "restarts": MOST_RESTARTS}


def checked_options(solver: str, options: Mapping[str, Value | None]) -> dict[str, Value | None]:
    """Options that the method takes, of the right kind; those that are None are left to it."""
    kind = find_method(solver)
    check_names(options, option_names(kind))
    given = {name: value for name, value in options.items() if value is not None}
    if "max_seconds" in given:
        raise Refused("each tick has a time of its own here, so max_seconds cannot be set")
    for name, value in given.items():
        if isinstance(value, float) and value.is_integer() and _is_whole(kind, name):
            given[name] = value = int(value)
        most = MOST.get(name, LARGEST_WHOLE)
        if isinstance(value, int) and not isinstance(value, bool) and value > most:
            raise LimitsError(f"{name} is at most {most} here, not {value}")
    try:
        _, common = make_method(solver, dict(given))
        Options(**common)  # type: ignore[arg-type]
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise Refused(f"{solver} cannot take these options: {error}") from None
    return dict(given)


def _is_whole(kind: type, name: str) -> bool:
    """Whether an option is a whole number, as its annotation says; JSON does not tell 3.0 from 3."""
    hints: dict[str, str] = {}
    for one in (Options, *reversed(kind.__mro__)):
        hints |= {key: str(hint) for key, hint in getattr(one, "__annotations__", {}).items()}
    hint = hints.get(name, "")
    return name in ("restarts", "max_iterations") or (name not in NAMES and "int" in hint and "float" not in hint)


def set_solver(session: Session, request: requests.SetSolver) -> None:
    stage = session.on_stage
    options = checked_options(request.solver, request.options)
    if (request.solver, options) == (stage.setup.solver, stage.setup.options):
        return
    words = "change solver" if request.solver != stage.setup.solver else "change options"
    with session.step(words):
        session.change(replace(stage.setup, solver=request.solver, options=options))


def set_running(session: Session, request: requests.SetRunning) -> None:
    session.set_running(request.running)


def one_step(session: Session, request: requests.OneStep) -> None:
    stage = session.on_stage
    if stage.running:
        raise Refused("it solves all the time; pause it first")
    stage.step()


def set_collisions(session: Session, request: requests.SetCollisions) -> None:
    setup = session.on_stage.setup
    before = setup.collisions
    if (request.mode, request.clearance) == (before.mode, before.clearance):
        return
    words = "set collisions" if request.mode != before.mode else "set clearance"
    with session.step(words):
        collisions = replace(before, mode=request.mode, clearance=request.clearance)
        session.change(replace(setup, collisions=collisions))


def show_ghosts(session: Session, request: requests.ShowGhosts) -> None:
    stage = session.on_stage
    if request.most == 0:
        session.ghosts.drop()
        session.tell(session.ghosts.none())  # at once, though the next tick may say it again
        return
    session.ghosts.begin(stage.table, stage.asked, stage.q, request.most)


def compare(session: Session, request: requests.Compare) -> None:
    for name in request.solvers:
        find_method(name)
    stage = session.on_stage
    session.comparing.begin(stage, list(dict.fromkeys(request.solvers)))
    session.tell(session.comparing.info())
