"""Start, stop, dispose, forget: a background solver leaves nothing behind."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import InvalidArgument, InvalidOperation, LimitsError
from mechanik.motion.live import LiveSolver, LiveState

HAND = "panda_link8"
SOON = 120.0
"""Seconds after which a test gives up waiting; none takes nearly as long, but for the first, which compiles."""


@pytest.fixture(scope="module")
def arm() -> mk.Mechanism:
    return mk.gallery.make("panda")


def made(arm: mk.Mechanism, **settings: object) -> LiveSolver:
    return LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.1, 0.5), name="hand"), **settings)  # type: ignore[arg-type]


def until(holds) -> None:
    """Wait until it holds; fail if it does not soon."""
    end = time.perf_counter() + SOON
    while not holds():
        assert time.perf_counter() < end
        time.sleep(1e-3)


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    before = set(threading.enumerate())
    yield
    gc.collect()
    until(lambda: not set(threading.enumerate()) - before)


def test_running_says_what_is_so_at_every_moment(arm: mk.Mechanism):
    live = made(arm)
    assert not live.running
    for _ in range(3):
        live.start()
        assert live.running
        live.start()  # again, which changes nothing
        live.stop()
        assert not live.running
        live.stop()
        assert not live.running
    live.dispose()
    assert not live.running


def test_one_thread_however_often_it_is_started(arm: mk.Mechanism):
    before = set(threading.enumerate())
    live = made(arm)
    for _ in range(5):
        live.start()
    assert len(set(threading.enumerate()) - before) == 1
    live.dispose()
    assert not set(threading.enumerate()) - before


def test_after_stop_nothing_is_solved_until_it_is_started_again(arm: mk.Mechanism):
    with made(arm) as live:
        live.solve().result(SOON)
        live.stop()
        stopped = live.state
        live.set_targets({"hand": (0.4, 0.0, 0.6)})
        time.sleep(0.05)
        assert live.state is stopped
        live.start()
        state = live.solve().result(SOON)
        assert arm.pose(HAND, state.q)[:3, 3] == pytest.approx((0.4, 0.0, 0.6), abs=1e-6)


def test_stop_waits_for_the_callback_that_is_under_way(arm: mk.Mechanism):
    inside, left = threading.Event(), threading.Event()

    def slowly(_: LiveState) -> None:
        inside.set()
        time.sleep(0.05)
        left.set()

    live = made(arm, on_state=slowly)
    live.start()
    assert inside.wait(SOON)
    live.stop()
    assert left.is_set()
    live.dispose()


def test_a_callback_may_stop_start_aim_and_dispose(arm: mk.Mechanism):
    seen: list[LiveState] = []

    def stops(state: LiveState) -> None:
        seen.append(state)
        live.stop()

    live = made(arm, on_state=stops)
    live.start()
    until(lambda: not live.running and len(seen) == 1)
    live.set_targets({"hand": (0.4, 0.0, 0.6)})
    live.start()
    until(lambda: not live.running and len(seen) == 2)
    live.dispose()

    def aims(state: LiveState) -> None:
        if state.tag < 5:
            follower.set_targets({"hand": (0.4, 0.0, 0.5 + 0.01 * state.tag)}, tag=state.tag + 1)
        else:
            follower.dispose()

    follower = made(arm, on_state=aims)
    follower.start()
    until(lambda: not follower.running)
    assert follower.state.tag == 5


def test_a_disposed_one_refuses_all_work(arm: mk.Mechanism):
    live = made(arm)
    live.dispose()
    live.dispose()
    live.stop()
    for call in (
        live.start,
        live.set_targets,
        live.solve,
        live.step,
        lambda: live.move(arm.q),
        lambda: live.set(lock="x"),
    ):
        with pytest.raises(InvalidOperation, match="disposed"):
            call()
    assert "disposed" in repr(live)


def test_a_forgotten_one_ends_its_thread(arm: mk.Mechanism):
    before = set(threading.enumerate())
    live = made(arm)
    live.start()
    live.solve().result(SOON)
    gone = weakref.ref(live)
    del live
    gc.collect()
    assert gone() is None
    until(lambda: not set(threading.enumerate()) - before)


def test_a_callback_that_raises_is_dropped_and_the_others_hear_on(arm: mk.Mechanism):
    heard: list[int] = []

    def fails(_: LiveState) -> None:
        raise SystemExit("of all things")

    with made(arm) as live:
        live.stop()
        for _ in range(20):
            live.subscribe(fails)
        live.subscribe(lambda state: heard.append(state.sequence))
        live.start()
        for height in (0.5, 0.55, 0.6):
            live.solve({"hand": (0.4, 0.0, height)}).result(SOON)
        live.stop()
        assert heard == list(range(heard[0], heard[0] + len(heard)))
        assert len(heard) >= 3
        assert 0 < len(live.errors) <= 16
        assert all(str(error) == "of all things" for error in live.errors)


def test_unsubscribed_callbacks_are_called_no_more(arm: mk.Mechanism):
    heard: list[LiveState] = []
    with made(arm) as live:
        unsubscribe = live.subscribe(heard.append)
        live.solve({"hand": (0.4, 0.0, 0.55)}).result(SOON)
        live.stop()
        unsubscribe()
        unsubscribe()
        count = len(heard)
        live.start()
        live.solve({"hand": (0.4, 0.0, 0.6)}).result(SOON)
        assert len(heard) == count


def test_at_rest_it_sleeps(arm: mk.Mechanism, monkeypatch: pytest.MonkeyPatch):
    with made(arm) as live:
        state = live.solve().result(SOON)
        until(lambda: live._engine._news._waiters)  # the thread has lain down
        looks: list[bool] = []
        has_work = live._engine._has_work
        monkeypatch.setattr(live._engine, "_has_work", lambda: looks.append(True) or has_work())
        time.sleep(0.1)
        assert not looks
        assert live.state is state
        live.set_targets({"hand": (0.4, 0.0, 0.6)})
        until(lambda: looks and live.state is not state)


def test_step_is_one_iteration_also_while_stopped(arm: mk.Mechanism):
    live = made(arm)
    states = [live.step() for _ in range(12)]
    assert [state.sequence for state in states] == list(range(1, 13))
    assert all(state.iterations <= 1 for state in states)
    assert live.state is states[-1]
    assert states[-1].error < 1e-6 < states[0].error
    live.dispose()


def test_steps_lead_to_the_goal_of_a_mechanism_with_a_loop_and_keep_it_shut():
    """One iteration by itself opens the loop, and is taken back."""
    linkage = mk.gallery.five_bar()
    place = linkage.pose("tool")[:3, 3] + np.array([0.01, 0.02, 0.0])
    live = LiveSolver(linkage, mk.PositionGoal("tool", place))
    states = [live.step() for _ in range(8)]
    assert states[-1].error < 1e-6
    for state in states:
        assert state.solution is not None
        assert state.solution.closure_errors["closing_joint"].position < 1e-9
    live.dispose()


def test_a_step_inside_a_callback_or_an_edit_is_refused(arm: mk.Mechanism):
    live = made(arm)
    live.subscribe(lambda _: live.step())
    live.step()
    assert isinstance(live.errors[0], InvalidOperation)
    with live.edit(), pytest.raises(InvalidOperation, match="edit"):
        live.step()
    live.dispose()


def test_many_threads_may_ask_at_once(arm: mk.Mechanism):
    places = arm.pose(HAND, arm.random(np.random.default_rng(3), 40))[:, :3, 3]
    seen: list[LiveState] = []
    with made(arm, on_state=seen.append) as live:

        def hurry(some: np.ndarray) -> None:
            for k, place in enumerate(some):
                live.set_targets({"hand": place})
                if k % 5 == 0:
                    live.set(smallest_step=1e-12 * (k + 1))
                    live.move(arm.q)
                if k % 7 == 0:
                    with live.edit():
                        pass
                    live.step()

        threads = [threading.Thread(target=hurry, args=(some,)) for some in np.split(places, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SOON)
            assert not thread.is_alive()
        assert live.solve().result(SOON).is_at_rest
        assert [state.sequence for state in seen] == list(range(1, len(seen) + 1))


def test_a_program_ends_with_one_still_running():
    program = """
        import mechanik as mk
        from mechanik.motion.live import LiveSolver
        arm = mk.gallery.make("planar_3r")
        tip = list(arm.links)[-1]
        live = LiveSolver(arm, mk.PositionGoal(tip, (0.5, 0.5, 0)), solver="jacobian_transpose", budget=1e-3)
        live.subscribe(lambda state: live.set_targets((0.5, 0.5 + 1e-3 * (state.sequence % 7), 0)))
        live.start()
        live.solve()
        print("end")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_what_it_cannot_be_made_from_is_refused_at_once(arm: mk.Mechanism):
    with pytest.raises(InvalidArgument):
        LiveSolver("panda")  # type: ignore[arg-type]
    with pytest.raises(LimitsError, match="budget"):
        made(arm, budget=0.0)
    with pytest.raises(InvalidArgument, match="callback"):
        made(arm, on_state=3)


def test_one_that_a_callback_starts_again_while_it_is_disposed_of_stays_disposed_of(arm):
    live = made(arm)

    def start_again(_: LiveState) -> None:
        run = live._engine.current
        assert run is not None
        until(lambda: run.is_over)
        live.start()

    live.subscribe(start_again)
    before = set(threading.enumerate())
    live.start()
    live.dispose()
    assert not live.running
    until(lambda: not set(threading.enumerate()) - before)
