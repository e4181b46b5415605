"""What a hand holds: from when it takes something until it lets go is one step of undo."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

from mechanik.errors import Refused
from mechanik.studio.messages.frames import HAND_FREEDOM, HAND_GOAL, HAND_OBSTACLE, PULL, Hand
from mechanik.studio.session.history import Snapshot
from mechanik.studio.session.plan import Held
from mechanik.studio.session.setup import Setup

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


KINDS = {HAND_GOAL: "goal", HAND_FREEDOM: "freedom", HAND_OBSTACLE: "obstacle"}
NUMBERS = {kind: number for number, kind in KINDS.items()}


class HeldSince(NamedTuple):
    """
    Attributes:
        words: of the step that it will be.
        before: how all was when the hand took it.
        counts: whether it is a step even if the hand itself has moved nothing.
    """

    words: str
    before: Snapshot
    counts: bool = False


class Holding:
    """A part of `Session`."""

    def hand(self, hand: Hand) -> None:
        """Where a hand holds what it has taken; the state that answers carries its tag."""
        session = cast("Session", self)
        with session.lock:
            if session.is_closed:
                return
            stage, held = session.on_stage, session.on_stage.held
            kind = KINDS[hand.kind]
            is_late = held is None and session.last_held == (hand.kind, hand.number)
            is_gone = session.was_put_back or all(goal.number != hand.number for goal in stage.setup.goals)
            if is_late and (kind != "goal" or is_gone):
                return  # it was on its way when the hand let go, and there is nothing left to move
            if not is_late and (held is None or (held.kind, held.number) != (kind, hand.number)):
                raise Refused(f"{kind} {hand.number} is not in the hand; take it first")
            stage.tag = max(stage.tag, hand.tag)
            if kind == "freedom":
                stage.drive(hand.numbers)
            elif kind == "obstacle":
                session.hold_obstacle(hand.numbers)
            else:
                goal = stage.setup.goal(hand.number)
                session.shift_goals({goal.number: goal.moved_by_hand(hand.numbers)})
                for watcher in tuple(session.goal_watchers):
                    watcher(hand.number, stage.setup.goal(hand.number).X)

    def take(self, held: Held, words: str, setup: Setup | None = None) -> None:
        """A hand takes something; all until it lets go is one step of undo."""
        session = cast("Session", self)
        session.let_go()
        before = session.snapshot()
        session.on_stage.apply(session.on_stage.setup if setup is None else setup, held)
        session.held_since = HeldSince(words, before)

    def let_go(self, puts_back: bool = False) -> None:
        """The hand lets go of whatever it holds; what rode along stays where it has come to, or goes back with it."""
        session = cast("Session", self)
        stage = session.stage
        if stage is None or stage.held is None:
            return
        held, since = stage.held, session.held_since
        session.held_since = None
        if puts_back and since is not None:
            with stage.still(wakes=False):
                stage.apply(stage.setup)
            session.restore(since.before)
        elif held.kind == "obstacle" or (held.kind == "goal" and held.number != PULL):
            stage.apply(stage.setup)
        else:
            stage.settle()
            goals = tuple(goal for goal in stage.picture.arrived(stage.q) if not goal.is_pull)
            stage.apply(replace(stage.setup, goals=goals))
            session.comparing.ask(stage.asked)
            session.ghosts.drop()
        session.was_put_back = puts_back
        session.last_held = NUMBERS[held.kind], held.number
        if since is not None and not puts_back and (since.counts or since.before.differs(session.snapshot())):
            session.push(since.words, since.before)
        session.tell_goals()
        session.tell(session.history.info())
