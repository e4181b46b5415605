"""A background solver follows goals: the newest wins, nothing queues, and states say what they answer."""

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
SOON = 120.0
"""Seconds after which a test gives up waiting; none takes nearly as long, but for the first, which compiles."""


@pytest.fixture(scope="module")
def arm() -> mk.Mechanism:
    return mk.gallery.make("panda")


@pytest.fixture(scope="module")
def leg() -> mk.Mechanism:
    return mk.gallery.make("jansen_leg")


def places(arm: mk.Mechanism, count: int) -> np.ndarray:
    """Points that the hand can reach, (count, 3)."""
    return arm.pose(HAND, arm.random(np.random.default_rng(3), count))[:, :3, 3]


def test_every_reachable_target_is_reached_and_the_mechanism_stays_where_it_is(arm: mk.Mechanism):
    before = arm.q
    with LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.0, 0.5)), restarts=20) as live:
        for place in places(arm, 20):
            state = live.solve(place).result(SOON)
            assert state.is_at_rest
            assert np.linalg.norm(arm.pose(HAND, state.q)[:3, 3] - place) < 1e-6
            assert state.error <= 1e-6
    assert np.array_equal(arm.q, before)


def test_ten_thousand_targets_while_a_solve_runs_lead_to_at_most_two_more(arm: mk.Mechanism):
    inside, go_on, seen = threading.Event(), threading.Event(), list[LiveState]()

    def hold(state: LiveState) -> None:
        seen.append(state)
        inside.set()
        go_on.wait(SOON)

    with LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.0, 0.5)), on_state=hold) as live:
        assert inside.wait(SOON)
        before = len(seen)
        for k in range(10_000):
            live.set_targets((0.4, 0.0, 0.5 + 1e-5 * k), tag=k)
        go_on.set()
        last = live.solve().result(SOON)
        assert last.tag == 9_999
        assert len(seen) - before <= 2
        assert arm.pose(HAND, last.q)[2, 3] == pytest.approx(0.5 + 1e-5 * 9_999, abs=1e-6)


def test_a_slow_solver_answers_less_often_and_in_order(arm: mk.Mechanism):
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
        state = live.solve().result(SOON)
    assert state.tag == 199
    assert [one.tag for one in states] == sorted(one.tag for one in states)
    assert len({one.tag for one in states}) < 200


def test_states_are_numbered_without_a_gap_and_cannot_be_written_into(arm: mk.Mechanism):
    seen: list[LiveState] = []
    with LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.0, 0.5)), on_state=seen.append) as live:
        assert live.state.sequence == 0 or seen
        for place in places(arm, 5):
            live.solve(place).result(SOON)
    assert [state.sequence for state in seen] == list(range(1, len(seen) + 1))
    with pytest.raises(ValueError):
        seen[0].q[0] = 1.0
    with pytest.raises(AttributeError):
        seen[0].tag = 1  # type: ignore[misc]


def test_goals_that_are_not_named_stay_where_they_were_last_aimed_at():
    body = mk.gallery.make("humanoid")
    hands = ("left_hand", "right_hand")
    at = {hand: body.pose(hand)[:3, 3] for hand in hands}
    goals = [mk.PositionGoal(hand, at[hand], name=hand) for hand in hands]
    with LiveSolver(body, goals) as live:
        for hand in hands:
            live.set_targets({hand: at[hand] + (0.0, 0.0, 0.05)})
        q = live.solve().result(SOON).q
    for hand in hands:
        assert body.pose(hand, q)[:3, 3] == pytest.approx(at[hand] + (0.0, 0.0, 0.05), abs=1e-6)


def test_a_target_array_may_be_written_into_after_it_was_given(arm: mk.Mechanism):
    place = np.array([0.4, 0.1, 0.5])
    live = LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.0, 0.5)))
    future = live.solve(place)
    place[:] = 9.0
    live.start()
    assert arm.pose(HAND, future.result(SOON).q)[:3, 3] == pytest.approx((0.4, 0.1, 0.5), abs=1e-6)
    live.dispose()


def test_wrong_targets_are_refused_where_they_are_given_and_change_nothing(arm: mk.Mechanism):
    with LiveSolver(arm, [mk.PositionGoal(HAND, (0.4, 0.1, 0.5), name="hand")]) as live:
        at_rest = live.solve().result(SOON)
        with pytest.raises(UnknownName, match="hend"):
            live.set_targets({"hend": (0.4, 0.0, 0.5)})
        with pytest.raises(ValueError):
            live.set_targets({"hand": (0.4, np.nan, 0.5)})
        with pytest.raises(ShapeError):
            live.move(np.zeros(3))
        assert live.solve().result(SOON) is at_rest


def test_a_future_is_cancelled_by_newer_targets_and_by_dispose(arm: mk.Mechanism):
    live = LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.1, 0.5)))
    first, second = live.solve((0.4, 0.0, 0.5)), live.solve((0.4, 0.0, 0.6))
    assert first.cancelled()
    assert not second.done()
    third = live.solve()
    assert not second.done()  # it asks for the same goals
    live.start()
    assert second.result(SOON) is third.result(SOON)
    live.stop()
    fourth = live.solve((0.3, 0.0, 0.6))
    live.dispose()
    with pytest.raises(CancelledError):
        fourth.result(SOON)


def test_a_future_that_its_owner_cancels_does_no_harm(arm: mk.Mechanism):
    live = LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.1, 0.5)))
    assert live.solve().cancel()
    with live:
        assert live.solve((0.4, 0.0, 0.6)).result(SOON).status is mk.Status.CONVERGED


def test_what_a_solve_raises_is_a_state_and_the_futures_exception_and_the_thread_goes_on(arm: mk.Mechanism):
    fails = True

    def moody(mechanism: mk.Mechanism, q: np.ndarray) -> np.ndarray:
        if fails:
            raise RuntimeError("not today")
        return mechanism.pose(HAND, q)[:3, 3] - (0.4, 0.1, 0.5)

    live = LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.1, 0.5)))
    fails = False
    live.set(goals=mk.Custom(moody, residual_size=3, name="moody"))
    fails = True
    with live:
        with pytest.raises(Exception, match="not today"):
            live.solve().result(SOON)
        assert "not today" in live.problem
        assert live.state.is_at_rest
        assert live.running
        fails = False
        assert live.solve().result(SOON).status is mk.Status.CONVERGED
        assert live.problem == ""


def test_out_of_reach_it_comes_to_rest_as_close_as_it_comes(arm: mk.Mechanism):
    with LiveSolver(arm, mk.PositionGoal(HAND, (9.0, 0.0, 0.5))) as live:
        state = live.solve().result(SOON)
        assert state.status is mk.Status.CLOSEST
        direct = mk.solve(arm, mk.PositionGoal(HAND, (9.0, 0.0, 0.5)))
        assert state.error == pytest.approx(max(direct.errors["PositionGoal 0"].position, 0.0), rel=1e-3)
        assert live.solve().result(SOON) is state  # nothing was done meanwhile


def test_a_tick_that_is_cut_short_is_gone_on_with_and_each_is_a_state(arm: mk.Mechanism):
    seen: list[LiveState] = []
    place = places(arm, 1)[0]
    method = {"solver": "jacobian_transpose", "max_iterations": 5}  # cut short by its iterations, alike on all machines
    with LiveSolver(arm, mk.PositionGoal(HAND, place), **method, on_state=seen.append) as live:
        last = live.solve().result(SOON)
    assert last.status is mk.Status.CONVERGED
    assert len(seen) > 1
    off = [float(np.linalg.norm(arm.pose(HAND, state.q)[:3, 3] - place)) for state in seen]
    assert off == sorted(off, reverse=True)
    assert [state.is_at_rest for state in seen] == [False] * (len(seen) - 1) + [True]


def test_a_budget_too_short_for_one_iteration_is_stretched_until_it_moves(arm: mk.Mechanism):
    place = places(arm, 1)[0]
    with LiveSolver(arm, mk.PositionGoal(HAND, place), solver="jacobian_transpose", budget=1e-4) as live:
        assert live.solve().result(SOON).status is mk.Status.CONVERGED


def test_loops_are_shut_in_every_state_while_goals_are_thrown_about(leg: mk.Mechanism):
    foot = max(leg.links, key=lambda name: -leg.pose(name)[2, 3])
    seen: list[LiveState] = []
    rng = np.random.default_rng(5)
    with LiveSolver(leg, mk.PositionGoal(foot, leg.pose(foot)[:3, 3]), on_state=seen.append) as live:
        for _ in range(40):
            live.solve(rng.normal(size=3)).result(SOON)
    assert len(seen) >= 40
    gaps = [max(e.position for e in state.solution.closure_errors.values()) for state in seen if state.solution]
    assert max(gaps) < 1e-6


def test_without_goals_a_mechanism_without_loops_stands_where_it_is_put(arm: mk.Mechanism):
    with LiveSolver(arm, ()) as live:
        for q in arm.random(np.random.default_rng(1), 3):
            live.move(q)
            assert np.array_equal(live.solve().result(SOON).q, q)


def test_without_goals_loops_are_shut_near_where_the_mechanism_is_put():
    four_bar = mk.gallery.make("four_bar")
    with LiveSolver(four_bar, ()) as live:
        put = four_bar.q + 0.05
        live.move(put)
        state = live.solve().result(SOON)
        assert state.solution is not None
        assert max(e.position for e in state.solution.closure_errors.values()) < 1e-9
        shut = mk.Solver(four_bar, mk.RestPose(put, angle_mode="exact")).solve(None, put)
        assert state.q == pytest.approx(shut.q, abs=1e-7)


def test_it_goes_on_from_where_it_was_moved_to(arm: mk.Mechanism):
    """Of the many ways to stand at a point, the one near to where it was put."""
    live = LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.1, 0.5)))
    q = arm.clamp(arm.random(np.random.default_rng(8)))
    live.move(q)
    live.set_targets(arm.pose(HAND, q)[:3, 3])
    with live:
        state = live.solve().result(SOON)
        assert state.q == pytest.approx(q, abs=1e-6)


def test_a_goal_of_the_graph_is_followed_when_it_is_told_to_look_again():
    arm = mk.gallery.make("planar_3r")
    tip = list(arm.links.values())[-1]
    goal = mk.Goal("wish", dof=("X", "Y"))
    goal.position = arm.pose(tip)[:3, 3]
    goal.make_closure(tip)
    reaching = mk.Mechanism([*arm.roots, goal])
    with LiveSolver(reaching) as live:
        live.solve().result(SOON)
        there = np.array([0.3, 0.4, 0.0])
        goal.position = there
        live.set_targets()
        q = live.solve().result(SOON).q
        assert reaching.pose(tip, q)[:2, 3] == pytest.approx(there[:2], abs=1e-6)


def test_max_seconds_is_refused_since_a_tick_has_a_budget(arm: mk.Mechanism):
    with pytest.raises(InvalidOperation, match="budget"):
        LiveSolver(arm, mk.PositionGoal(HAND, (0.4, 0.1, 0.5)), max_seconds=1.0)
