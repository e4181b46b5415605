"""Many threads use one session: no deadlock, and no thread remains."""

from __future__ import annotations

import random
import threading
import time

import pytest
from session_harness import PATIENCE, SessionHarness, threads_of_live

from mechanik.errors import InvalidOperation, MechanikError
from mechanik.studio.messages import requests
from mechanik.studio.messages.message_codec import DRAG_DOF, DRAG_GOAL, DragUpdate, read_state

REQUESTS = (
    lambda rng, goal: requests.StartGoalDrag(goal),
    lambda rng, goal: requests.StartJointDrag(rng.randrange(4)),
    lambda rng, goal: requests.StartLinkDrag("crank", (0.0, 0.0, 0.0)),
    lambda rng, goal: requests.EndDrag(),
    lambda rng, goal: requests.SetRunning(rng.random() < 0.7),
    lambda rng, goal: requests.AddGoal("point", "coupler"),
    lambda rng, goal: requests.RemoveGoal(goal + rng.randrange(5)),
    lambda rng, goal: requests.SetLimits(0, -3.0, 3.0 + rng.random()),
    lambda rng, goal: requests.Undo(),
    lambda rng, goal: requests.Redo(),
    lambda rng, goal: requests.SetSolver(rng.choice(["lm", "dls"]), {}),
    lambda rng, goal: requests.Compare(rng.choice([[], ["dls"]])),
    lambda rng, goal: requests.RecordMotion(rng.random() < 0.5),
    lambda rng, goal: requests.SingleStep(),
    lambda rng, goal: requests.GoTo("home"),
)


def test_threads_that_ask_and_drag_and_close_at_once_never_hang() -> None:
    before = threads_of_live()
    harness = SessionHarness("four_bar")
    session, goal = harness.session, harness.session.goals[0]
    until = time.monotonic() + 2.0
    wrong: list[BaseException] = []

    def guarded(work: object, seed: int) -> None:
        rng = random.Random(seed)
        while time.monotonic() < until:
            try:
                work(rng)  # type: ignore[operator]
            except MechanikError:
                pass
            except BaseException as error:
                wrong.append(error)
                return

    def asks(rng: random.Random) -> None:
        session.handle_request(rng.choice(REQUESTS)(rng, goal.number))

    def drags(rng: random.Random) -> None:
        pose = tuple(coordinate + 0.01 * rng.random() for coordinate in goal.pose[:3]) + goal.pose[3:]
        if rng.random() < 0.5:
            session.drag_to(DragUpdate(DRAG_GOAL, rng.randrange(1000), goal.number, pose))
        else:
            session.drag_to(DragUpdate(DRAG_DOF, rng.randrange(1000), rng.randrange(4), (rng.random(),)))

    def ticks(rng: random.Random) -> None:
        session.tick(time.monotonic())
        session.send_everything()

    moved: list[int] = []

    def watcher(state: object) -> None:
        """What a program does in a callback: it asks for something, which needs the session."""
        if len(moved) < 100:
            moved.append(1)
            session.move_goal(session.goals[0].number, session.goals[0].X)

    session.subscribe(watcher)
    workers = [
        threading.Thread(target=guarded, args=(work, k), daemon=True)
        for k, work in enumerate((asks, asks, drags, ticks))
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE)
        assert not worker.is_alive(), "somebody waits for somebody"
    session.close()
    session.close()
    assert not wrong, wrong
    assert all(read_state(frame) for frame in harness.frames[-50:])
    harness.wait(lambda: threads_of_live() <= before)
    with pytest.raises(InvalidOperation, match="closed"):
        session.handle_request(requests.Undo())


def test_a_session_that_is_closed_in_the_middle_of_a_drag_is_closed() -> None:
    before = threads_of_live()
    harness = SessionHarness("hexapod")
    goal = harness.session.goals[0]
    harness.ask(requests.StartGoalDrag(goal.number))
    for k in range(5):
        harness.drag_goal_to(goal.number, [goal.pose[0] + 0.01 * k, *goal.pose[1:]])
    harness.session.close()
    shown = len(harness.frames)
    harness.wait(lambda: threads_of_live() <= before)
    harness.drag_goal_to(goal.number, goal.pose)
    harness.tick()
    assert len(harness.frames) == shown, "nothing is shown any more"


def test_opening_one_mechanism_after_the_other_leaves_no_thread_behind() -> None:
    before = threads_of_live()
    with SessionHarness("ur5") as harness:
        for name in ("four_bar", "panda", "planar_2r"):
            harness.ask(requests.OpenGallery(name))
            harness.rest()
        harness.wait(lambda: threads_of_live() <= before + 1)
    harness.wait(lambda: threads_of_live() <= before)
