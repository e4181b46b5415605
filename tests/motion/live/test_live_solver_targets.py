"""Targets of a live solver: the newest wins, nothing is queued, and states carry the tag of their targets."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import InvalidOperation, ShapeError, UnknownName
from mechanik.motion.live import LiveSolver, LiveState

HAND = "panda_link8"
TIMEOUT = 120.0
"""s: longest wait of a test; only the first, which compiles, takes nearly as long."""


@pytest.fixture(scope="module")
def arm() -> mk.Mechanism:
    return mk.gallery.make("panda")


@pytest.fixture(scope="module")
def leg() -> mk.Mechanism:
    return mk.gallery.make("jansen_leg")


def reachable_points(arm: mk.Mechanism, count: int) -> np.ndarray:
    """Points (count, 3) that the tool can reach."""
    return arm.pose(HAND, arm.random(np.random.default_rng(3), count))[:, :3, 3]


def test_reachable_targets_are_reached_and_the_mechanism_does_not_move(arm: mk.Mechanism):
    before = arm.q
    with LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.0, 0.5)), restarts=20) as live:
        for place in reachable_points(arm, 20):
            state = live.solve(place).result(TIMEOUT)
            assert state.is_at_rest
            assert np.linalg.norm(arm.pose(HAND, state.q)[:3, 3] - place) < 1e-6
            assert state.error <= 1e-6
    assert np.array_equal(arm.q, before)


def test_ten_thousand_targets_during_a_solve_cause_at_most_two_more_solves(arm: mk.Mechanism):
    inside, go_on, seen = threading.Event(), threading.Event(), list[LiveState]()

    def blocking_callback(state: LiveState) -> None:
        seen.append(state)
        inside.set()
        go_on.wait(TIMEOUT)

    with LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.0, 0.5)), on_state=blocking_callback) as live:
        assert inside.wait(TIMEOUT)
        before = len(seen)
        for k in range(10_000):
            live.set_targets((0.4, 0.0, 0.5 + 1e-5 * k), tag=k)
        go_on.set()
        last = live.solve().result(TIMEOUT)
        assert last.tag == 9_999
        assert len(seen) - before <= 2
        assert arm.pose(HAND, last.q)[2, 3] == pytest.approx(0.5 + 1e-5 * 9_999, abs=1e-6)


def test_slow_solver_skips_targets_and_publishes_states_in_order(arm: mk.Mechanism):
    solves: list[float] = []

    def slow(mechanism: mk.Mechanism, q: np.ndarray) -> np.ndarray:
        solves.append(time.perf_counter())
        time.sleep(0.002)
        return mechanism.pose(HAND, q)[:3, 3] - (0.4, 0.1, 0.5)

    goals = [mk.Custom(slow, residual_size=3, name="slow"), mk.PositionGoal(HAND, (0.4, 0.1, 0.5), name="hand")]
    states: list[LiveState] = []
    with LiveSolver(arm, goals, budget=0.004, on_state=states.append) as live:
        for k in range(200):
            live.set_targets({"hand": (0.4, 0.1, 0.5 + 1e-4 * k)}, tag=k)
        state = live.solve().result(TIMEOUT)
    assert state.tag == 199
    assert [state.tag for state in states] == sorted(state.tag for state in states)
    assert len({state.tag for state in states}) < 200


def test_states_are_numbered_consecutively_and_read_only(arm: mk.Mechanism):
    seen: list[LiveState] = []
    with LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.0, 0.5)), on_state=seen.append) as live:
        assert live.state.sequence == 0 or seen
        for place in reachable_points(arm, 5):
            live.solve(place).result(TIMEOUT)
    assert [state.sequence for state in seen] == list(range(1, len(seen) + 1))
    with pytest.raises(ValueError):
        seen[0].q[0] = 1.0
    with pytest.raises(AttributeError):
        seen[0].tag = 1  # type: ignore[misc]


def test_goals_without_a_new_target_retain_their_last_one():
    body = mk.gallery.make("humanoid")
    hands = ("left_hand", "right_hand")
    at = {hand: body.pose(hand)[:3, 3] for hand in hands}
    goals = [mk.PositionGoal(hand, at[hand], name=hand) for hand in hands]
    with LiveSolver(body, goals) as live:
        for hand in hands:
            live.set_targets({hand: at[hand] + (0.0, 0.0, 0.05)})
        q = live.solve().result(TIMEOUT).q
    for hand in hands:
        assert body.pose(hand, q)[:3, 3] == pytest.approx(at[hand] + (0.0, 0.0, 0.05), abs=1e-6)


def test_target_array_may_be_modified_after_the_call(arm: mk.Mechanism):
    place = np.array([0.4, 0.1, 0.5])
    live = LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.0, 0.5)))
    future = live.solve(place)
    place[:] = 9.0
    live.start()
    assert arm.pose(HAND, future.result(TIMEOUT).q)[:3, 3] == pytest.approx((0.4, 0.1, 0.5), abs=1e-6)
    live.dispose()


def test_unchecked_targets_give_the_state_of_checked_ones():
    mechanism = mk.gallery.planar_3r()
    goals = [
        mk.PositionGoal("tool", (1.0, 0.5, 0.0), name="tool"),
        mk.AxisGoal("tool", (1, 0, 0), (1, 0, 0), name="axis"),
    ]
    target = np.array([1.2, 0.8, 0.0])
    states: list[LiveState] = []
    for is_checked in (True, False):
        with mk.LiveSolver(mechanism, goals, q0=[0.3, 0.5, 0.4]) as live:
            if is_checked:
                live.set_targets({"tool": target}, tag=7)
            else:
                values = target.copy()
                live.set_targets_unchecked({0: values}, tag=7)
                values[:] = 9.0  # the target is copied
            states.append(live.solve().result(TIMEOUT))
    assert states[0].tag == states[1].tag == 7
    np.testing.assert_allclose(mechanism.pose("tool", states[0].q)[:3, 3], target, atol=1e-6)
    np.testing.assert_allclose(states[1].q, states[0].q, atol=1e-6)


def test_invalid_targets_raise_and_change_nothing(arm: mk.Mechanism):
    with LiveSolver(arm, [mk.PositionGoal(HAND, (0.4, 0.1, 0.5), name="hand")]) as live:
        at_rest = live.solve().result(TIMEOUT)
        with pytest.raises(UnknownName, match="hend"):
            live.set_targets({"hend": (0.4, 0.0, 0.5)})
        with pytest.raises(ValueError):
            live.set_targets({"hand": (0.4, np.nan, 0.5)})
        with pytest.raises(ShapeError):
            live.move(np.zeros(3))
        assert live.solve().result(TIMEOUT) is at_rest


def test_future_is_cancelled_by_newer_targets_and_by_dispose(arm: mk.Mechanism):
    live = LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.1, 0.5)))
    first, second = live.solve((0.4, 0.0, 0.5)), live.solve((0.4, 0.0, 0.6))
    assert first.cancelled()
    assert not second.done()
    third = live.solve()
    assert not second.done()  # it waits for the same goals
    live.start()
    assert second.result(TIMEOUT) is third.result(TIMEOUT)
    live.stop()
    fourth = live.solve((0.3, 0.0, 0.6))
    live.dispose()
    with pytest.raises(CancelledError):
        fourth.result(TIMEOUT)


def test_future_may_be_cancelled_by_its_owner(arm: mk.Mechanism):
    live = LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.1, 0.5)))
    assert live.solve().cancel()
    with live:
        assert live.solve((0.4, 0.0, 0.6)).result(TIMEOUT).status is mk.Status.CONVERGED


def test_exception_in_a_solve_is_in_the_state_and_the_future_and_the_thread_continues(arm: mk.Mechanism):
    fails = True

    def failing_residual(mechanism: mk.Mechanism, q: np.ndarray) -> np.ndarray:
        if fails:
            raise RuntimeError("not today")
        return mechanism.pose(HAND, q)[:3, 3] - (0.4, 0.1, 0.5)

    live = LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.1, 0.5)))
    fails = False
    live.set(goals=mk.Custom(failing_residual, residual_size=3, name="failing_residual"))
    fails = True
    with live:
        with pytest.raises(Exception, match="not today"):
            live.solve().result(TIMEOUT)
        assert "not today" in live.error_message
        assert live.state.is_at_rest
        assert live.running
        fails = False
        assert live.solve().result(TIMEOUT).status is mk.Status.CONVERGED
        assert live.error_message == ""


def test_solver_comes_to_rest_near_a_target_out_of_reach(arm: mk.Mechanism):
    with LiveSolver(arm, mk.PositionGoal(HAND, (9.0, 0.0, 0.5))) as live:
        state = live.solve().result(TIMEOUT)
        assert state.status is mk.Status.CLOSEST
        direct = mk.solve(arm, mk.PositionGoal(HAND, (9.0, 0.0, 0.5)))
        assert state.error == pytest.approx(max(direct.errors["PositionGoal 0"].position, 0.0), rel=1e-3)
        assert live.solve().result(TIMEOUT) is state  # nothing was done meanwhile


def test_interrupted_tick_is_continued_and_each_tick_publishes_a_state(arm: mk.Mechanism):
    seen: list[LiveState] = []
    place = reachable_points(arm, 1)[0]
    method = {
        "solver": "jacobian_transpose",
        "max_iterations": 5,
    }  # interrupted by its iteration limit, the same on all machines
    with LiveSolver(arm, mk.PositionGoal(HAND, place), **method, on_state=seen.append) as live:
        last = live.solve().result(TIMEOUT)
    assert last.status is mk.Status.CONVERGED
    assert len(seen) > 1
    off = [float(np.linalg.norm(arm.pose(HAND, state.q)[:3, 3] - place)) for state in seen]
    assert off == sorted(off, reverse=True)
    assert [state.is_at_rest for state in seen] == [False] * (len(seen) - 1) + [True]


def test_budget_too_short_for_one_iteration_is_extended(arm: mk.Mechanism):
    place = reachable_points(arm, 1)[0]
    with LiveSolver(arm, mk.PositionGoal(HAND, place), solver="jacobian_transpose", budget=1e-4) as live:
        assert live.solve().result(TIMEOUT).status is mk.Status.CONVERGED


def test_loops_are_closed_in_every_state_with_jumping_targets(leg: mk.Mechanism):
    foot = max(leg.links, key=lambda name: -leg.pose(name)[2, 3])
    seen: list[LiveState] = []
    rng = np.random.default_rng(5)
    with LiveSolver(leg, mk.PositionGoal(foot, leg.pose(foot)[:3, 3]), on_state=seen.append) as live:
        for _ in range(40):
            live.solve(rng.normal(size=3)).result(TIMEOUT)
    assert len(seen) >= 40
    gaps = [max(e.position for e in state.solution.closure_errors.values()) for state in seen if state.solution]
    assert max(gaps) < 1e-6


def test_without_goals_a_mechanism_without_loops_stays_where_it_is_moved(arm: mk.Mechanism):
    with LiveSolver(arm, ()) as live:
        for q in arm.random(np.random.default_rng(1), 3):
            live.move(q)
            assert np.array_equal(live.solve().result(TIMEOUT).q, q)


def test_without_goals_loops_are_closed_near_the_moved_configuration():
    four_bar = mk.gallery.make("four_bar")
    with LiveSolver(four_bar, ()) as live:
        put = four_bar.q + 0.05
        live.move(put)
        state = live.solve().result(TIMEOUT)
        assert state.solution is not None
        assert max(e.position for e in state.solution.closure_errors.values()) < 1e-9
        closed = mk.Solver(four_bar, mk.RestPose(put, angle_mode="exact")).solve(None, put)
        assert state.q == pytest.approx(closed.q, abs=1e-7)


def test_solver_continues_from_the_moved_configuration(arm: mk.Mechanism):
    """The solution is the one near the moved configuration."""
    live = LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.1, 0.5)))
    q = arm.clamp(arm.random(np.random.default_rng(8)))
    live.move(q)
    live.set_targets(arm.pose(HAND, q)[:3, 3])
    with live:
        state = live.solve().result(TIMEOUT)
        assert state.q == pytest.approx(q, abs=1e-6)


def test_moved_graph_goal_is_solved_after_set_targets():
    arm = mk.gallery.make("planar_3r")
    tip = list(arm.links.values())[-1]
    goal = mk.Goal("wish", dof=("X", "Y"))
    goal.position = arm.pose(tip)[:3, 3]
    goal.make_closure(tip)
    reaching = mk.Mechanism([*arm.roots, goal])
    with LiveSolver(reaching) as live:
        live.solve().result(TIMEOUT)
        there = np.array([0.3, 0.4, 0.0])
        goal.position = there
        live.set_targets()
        q = live.solve().result(TIMEOUT).q
        assert reaching.pose(tip, q)[:2, 3] == pytest.approx(there[:2], abs=1e-6)


def test_max_seconds_raises_because_ticks_have_a_budget(arm: mk.Mechanism):
    with pytest.raises(InvalidOperation, match="budget"):
        LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.1, 0.5)), max_seconds=1.0)
