"""The state in a sentence: what is reached, what is not and why, which joints are at their limits."""

from __future__ import annotations

import math

from mechanik.live import LiveState
from mechanik.solvers.status import Status
from mechanik.studio.session.stage import Stage
from mechanik.studio.session.state_picture import status_of

MOST_LIMITS = 4


def sentence(stage: Stage, bumping: str = "") -> tuple[str, str]:
    """The status as frames name it, and the words for people.

    Args:
        bumping: what bumps into what, in words; empty if nothing does.
    """
    status, text = _of_the_solver(stage)
    if not bumping:
        return status, text
    state = stage.latest
    if state is not None and state.status is Status.IN_COLLISION:
        text = ""  # which would say the same
    bumps = f"In collision: {bumping}. {text}".rstrip()
    return (status, bumps) if status in ("PAUSED", "PROBLEM") else ("IN_COLLISION", bumps)


def _of_the_solver(stage: Stage) -> tuple[str, str]:
    if not stage.running:
        return "PAUSED", "Paused: goals can be moved, and the mechanism stays. One step makes one iteration."
    state = stage.latest
    if state is None:
        return "IDLE", ""
    if state.problem:
        return "PROBLEM", f"This cannot be solved: {state.problem}"
    if not stage.asked.goals:
        return "IDLE", "Nothing is asked of it: right click on a link to give it a goal."
    return status_of(state), _said(state)


def _said(state: LiveState) -> str:
    solution = state.solution
    if solution is None:
        return ""
    if solution.success:
        limits = _at_limits(state)
        return _sentence(solution.message) + (f" At a limit: {limits}." if limits else "")
    return _sentence(solution.message)


def _at_limits(state: LiveState) -> str:
    assert state.solution is not None
    at = list(state.solution.active_limits)
    more = f" and {len(at) - MOST_LIMITS} more" if len(at) > MOST_LIMITS else ""
    return ", ".join(at[:MOST_LIMITS]) + more


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


class Pace:
    """Says yes at most so many times a second."""

    def __init__(self, most: float) -> None:
        self._apart, self._last = 1.0 / most, -math.inf

    def is_due(self, now: float) -> bool:
        """
        Args:
            now: s, of a clock that never goes back.
        """
        if now - self._last < self._apart:
            return False
        self._last = now
        return True
