"""Start, stop, dispose and garbage collection of a live solver leave no thread behind."""

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
TIMEOUT = 120.0
"""s: longest wait of a test; only the first, which compiles, takes nearly as long."""


@pytest.fixture(scope="module")
def arm() -> mk.Mechanism:
    return mk.gallery.make("panda")


def make_live_solver(arm: mk.Mechanism, **settings: object) -> LiveSolver:
    return LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.1, 0.5), name="hand"), **settings)  # type: ignore[arg-type]


def wait_until(condition) -> None:
    """Wait until the condition holds; fail after the timeout."""
    end = time.perf_counter() + TIMEOUT
    while not condition():
        assert time.perf_counter() < end
        time.sleep(1e-3)


@pytest.fixture(autouse=True)
def _check_no_thread_is_left():
    before = set(threading.enumerate())
    yield
    gc.collect()
    wait_until(lambda: not set(threading.enumerate()) - before)


def test_running_reports_whether_the_thread_runs(arm: mk.Mechanism):
    live = make_live_solver(arm)
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


def test_repeated_start_uses_one_thread(arm: mk.Mechanism):
    before = set(threading.enumerate())
    live = make_live_solver(arm)
    for _ in range(5):
        live.start()
    assert len(set(threading.enumerate()) - before) == 1
    live.dispose()
    assert not set(threading.enumerate()) - before


def test_nothing_is_solved_between_stop_and_start(arm: mk.Mechanism):
    with make_live_solver(arm) as live:
        live.solve().result(TIMEOUT)
        live.stop()
        stopped = live.state
        live.set_targets({"hand": (0.4, 0.0, 0.6)})
        time.sleep(0.05)
        assert live.state is stopped
        live.start()
        state = live.solve().result(TIMEOUT)
        assert arm.pose(HAND, state.q)[:3, 3] == pytest.approx((0.4, 0.0, 0.6), abs=1e-6)


def test_stop_waits_for_the_running_callback(arm: mk.Mechanism):
    inside, left = threading.Event(), threading.Event()

    def slow_callback(_: LiveState) -> None:
        inside.set()
        time.sleep(0.05)
        left.set()

    live = make_live_solver(arm, on_state=slow_callback)
    live.start()
    assert inside.wait(TIMEOUT)
    live.stop()
    assert left.is_set()
    live.dispose()


def test_callback_may_stop_start_set_targets_and_dispose(arm: mk.Mechanism):
    seen: list[LiveState] = []

    def stops(state: LiveState) -> None:
        seen.append(state)
        live.stop()

    live = make_live_solver(arm, on_state=stops)
    live.start()
    wait_until(lambda: not live.running and len(seen) == 1)
    live.set_targets({"hand": (0.4, 0.0, 0.6)})
    live.start()
    wait_until(lambda: not live.running and len(seen) == 2)
    live.dispose()

    def set_new_target(state: LiveState) -> None:
        if state.tag < 5:
            follower.set_targets({"hand": (0.4, 0.0, 0.5 + 0.01 * state.tag)}, tag=state.tag + 1)
        else:
            follower.dispose()

    follower = make_live_solver(arm, on_state=set_new_target)
    follower.start()
    wait_until(lambda: not follower.running)
    assert follower.state.tag == 5


def test_disposed_solver_raises_on_every_request(arm: mk.Mechanism):
    live = make_live_solver(arm)
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


def test_garbage_collected_solver_ends_its_thread(arm: mk.Mechanism):
    before = set(threading.enumerate())
    live = make_live_solver(arm)
    live.start()
    live.solve().result(TIMEOUT)
    gone = weakref.ref(live)
    del live
    gc.collect()
    assert gone() is None
    wait_until(lambda: not set(threading.enumerate()) - before)


def test_callback_that_raises_is_removed_and_others_continue(arm: mk.Mechanism):
    heard: list[int] = []

    def fails(_: LiveState) -> None:
        raise SystemExit("of all things")

    with make_live_solver(arm) as live:
        live.stop()
        for _ in range(20):
            live.subscribe(fails)
        live.subscribe(lambda state: heard.append(state.sequence))
        live.start()
        for height in (0.5, 0.55, 0.6):
            live.solve({"hand": (0.4, 0.0, height)}).result(TIMEOUT)
        live.stop()
        assert heard == list(range(heard[0], heard[0] + len(heard)))
        assert len(heard) >= 3
        assert 0 < len(live.callback_errors) <= 16
        assert all(str(error) == "of all things" for error in live.callback_errors)


def test_unsubscribed_callbacks_are_not_called(arm: mk.Mechanism):
    heard: list[LiveState] = []
    with make_live_solver(arm) as live:
        unsubscribe = live.subscribe(heard.append)
        live.solve({"hand": (0.4, 0.0, 0.55)}).result(TIMEOUT)
        live.stop()
        unsubscribe()
        unsubscribe()
        count = len(heard)
        live.start()
        live.solve({"hand": (0.4, 0.0, 0.6)}).result(TIMEOUT)
        assert len(heard) == count


def test_thread_sleeps_at_rest(arm: mk.Mechanism, monkeypatch: pytest.MonkeyPatch):
    with make_live_solver(arm) as live:
        state = live.solve().result(TIMEOUT)
        wait_until(lambda: live._background._condition._waiters)  # the thread sleeps
        checks: list[bool] = []
        has_work = live._background._has_work
        monkeypatch.setattr(live._background, "_has_work", lambda: checks.append(True) or has_work())
        time.sleep(0.1)
        assert not checks
        assert live.state is state
        live.set_targets({"hand": (0.4, 0.0, 0.6)})
        wait_until(lambda: checks and live.state is not state)


def test_step_makes_one_iteration_also_while_stopped(arm: mk.Mechanism):
    live = make_live_solver(arm)
    states = [live.step() for _ in range(12)]
    assert [state.sequence for state in states] == list(range(1, 13))
    assert all(state.iterations <= 1 for state in states)
    assert live.state is states[-1]
    assert states[-1].error < 1e-6 < states[0].error
    live.dispose()


def test_steps_reach_the_goal_of_a_mechanism_with_closed_loops():
    """A single iteration opens the loop and is followed by a projection."""
    linkage = mk.gallery.five_bar()
    position = linkage.pose("tool")[:3, 3] + np.array([0.01, 0.02, 0.0])
    live = LiveSolver(linkage, mk.PositionGoal("tool", position))
    states = [live.step() for _ in range(8)]
    assert states[-1].error < 1e-6
    for state in states:
        assert state.solution is not None
        assert state.solution.closure_errors["closing_joint"].position < 1e-9
    live.dispose()


def test_step_inside_a_callback_or_an_edit_raises(arm: mk.Mechanism):
    live = make_live_solver(arm)
    live.subscribe(lambda _: live.step())
    live.step()
    assert isinstance(live.callback_errors[0], InvalidOperation)
    with live.edit(), pytest.raises(InvalidOperation, match="edit"):
        live.step()
    live.dispose()


def test_many_threads_may_set_targets_concurrently(arm: mk.Mechanism):
    places = arm.pose(HAND, arm.random(np.random.default_rng(3), 40))[:, :3, 3]
    seen: list[LiveState] = []
    with make_live_solver(arm, on_state=seen.append) as live:

        def set_many_targets(part: np.ndarray) -> None:
            for k, position in enumerate(part):
                live.set_targets({"hand": position})
                if k % 5 == 0:
                    live.set(smallest_step=1e-12 * (k + 1))
                    live.move(arm.q)
                if k % 7 == 0:
                    with live.edit():
                        pass
                    live.step()

        threads = [threading.Thread(target=set_many_targets, args=(part,)) for part in np.split(places, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
            assert not thread.is_alive()
        assert live.solve().result(TIMEOUT).is_at_rest
        assert [state.sequence for state in seen] == list(range(1, len(seen) + 1))


def test_interpreter_exits_while_a_solver_runs():
    script = """
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
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_invalid_constructor_arguments_raise(arm: mk.Mechanism):
    with pytest.raises(InvalidArgument):
        LiveSolver("panda")  # type: ignore[arg-type]
    with pytest.raises(LimitsError, match="budget"):
        make_live_solver(arm, budget=0.0)
    with pytest.raises(InvalidArgument, match="callback"):
        make_live_solver(arm, on_state=3)


def test_solver_stays_disposed_if_a_callback_starts_it_again(arm):
    live = make_live_solver(arm)

    def start_again(_: LiveState) -> None:
        run = live._background.current_run
        assert run is not None
        wait_until(lambda: run.must_end)
        live.start()

    live.subscribe(start_again)
    before = set(threading.enumerate())
    live.start()
    live.dispose()
    assert not live.running
    wait_until(lambda: not set(threading.enumerate()) - before)
