"""`mk.Studio`: a program and people move the same mechanism."""

from __future__ import annotations

import threading
import time

import httpx
import numpy as np
import pytest
from wire_client import PATIENCE, WireClient, fetch

import mechanik as mk
from mechanik.errors import StudioError, UnknownName
from mechanik.studio.messages.requests import OpenGallery, SetDofValue, Undo
from mechanik.studio.studio_api import Studio


@pytest.fixture
def studio(page):
    with Studio(mk.gallery.planar_3r(), open_browser=False, page=page) as studio:
        yield studio


def tool(studio) -> np.ndarray:
    return studio.mechanism.pose("tool", studio.q)[:3, 3]


def test_the_arm_follows_a_handle_that_the_program_moves(studio):
    hand = studio.handle("tool", kind="point")
    hand.move((1.0, 0.8, 0.0))
    assert studio.settle(PATIENCE).is_at_rest
    assert np.allclose(tool(studio), (1.0, 0.8, 0.0), atol=1e-5)
    assert np.allclose(hand.pose[:3, 3], (1.0, 0.8, 0.0))


def test_the_mechanism_of_the_program_stays_as_it_is(page):
    arm = mk.gallery.planar_3r()
    before = arm.q.copy()
    with Studio(arm, open_browser=False, page=page) as studio:
        studio.handle("tool", kind="point").move((0.5, 1.0, 0.0))
        studio.settle(PATIENCE)
    assert (arm.q == before).all()


def test_there_are_handles_from_the_start_until_the_program_makes_its_own(studio):
    assert len(studio.session.goals) >= 1
    studio.handle("tool")
    assert [goal.link for goal in studio.session.goals] == ["tool"]
    studio.pin("link2", kind="point")
    assert len(studio.session.goals) == 2


def test_what_people_drag_reaches_the_program(studio):
    hand = studio.handle("tool", kind="point")
    moves, states = [], []
    hand.on_move(lambda pose: moves.append(pose[:2, 3]))
    studio.on_state(lambda state: states.append(state.q))
    with WireClient(studio._server) as client:
        client.wait_for("Goals")
        client.ask("StartGoalDrag", goal=hand.number)
        client.drag(hand.number, [1.1, 0.7, 0.0, 1.0, 0.0, 0.0, 0.0])
        client.ask("EndDrag")
    studio.settle(PATIENCE)
    assert np.allclose(moves[-1], (1.1, 0.7))
    assert np.allclose(states[-1], studio.q)
    assert np.allclose(hand.pose[:3, 3], (1.1, 0.7, 0.0))


def test_what_the_program_moves_reaches_the_pages(studio):
    hand = studio.handle("tool", kind="point")
    with WireClient(studio._server) as client:
        assert client.wait_for("Welcome")["is_shared"]
        hand.move((0.9, 0.9, 0.0))
        client.wait(lambda: client.frame is not None and np.allclose(client.goal_pose()[:3], (0.9, 0.9, 0.0)))
        studio.settle(PATIENCE)
        client.wait(lambda: np.allclose(client.frame.values, studio.q, atol=1e-12))


def test_a_pin_holds_while_a_handle_pulls(studio):
    pin = studio.pin("link2", kind="point")
    held = studio.mechanism.pose("link2", studio.q)[:3, 3]
    studio.handle("tool", kind="point").move((-1.0, 0.5, 0.0))
    studio.settle(PATIENCE)
    assert np.allclose(studio.mechanism.pose("link2", studio.q)[:3, 3], held, atol=1e-5)
    assert np.allclose(pin.pose[:3, 3], held)


def test_a_shown_configuration_stays(studio):
    studio.handle("tool")
    wanted = np.array([0.3, 0.6, -0.4])
    studio.show(wanted)
    studio.settle(PATIENCE)
    assert np.allclose(studio.q, wanted, atol=1e-6)
    solution = mk.solve(mk.gallery.planar_3r(), mk.PositionGoal("tool", (0.8, 0.8, 0.0)))
    studio.show(solution)
    studio.settle(PATIENCE)
    assert np.allclose(studio.q, solution.q, atol=1e-6)


def test_a_handle_that_is_gone_says_so(studio):
    hand = studio.handle("tool")
    hand.remove()
    hand.remove()
    assert not hand.exists
    with pytest.raises(UnknownName):
        hand.move((1.0, 0.0, 0.0))
    with pytest.raises(UnknownName, match="tol"):
        studio.handle("tol")


def test_a_callback_that_raises_is_left_out_and_all_else_goes_on(studio, caplog):
    hand = studio.handle("tool", kind="point")
    calls = []

    def fail(state):
        calls.append(state)
        raise ValueError("no")

    studio.on_state(fail)
    for x in (0.9, 1.0, 1.1):
        hand.move((x, 0.8, 0.0))
        studio.settle(PATIENCE)
    assert len(calls) == 1
    assert "was removed" in caplog.text
    assert np.allclose(tool(studio), (1.1, 0.8, 0.0), atol=1e-5)


def test_settling_waits_for_callbacks_also_after_people_have_opened_another_mechanism(studio):
    """States were counted from the first of each mechanism, so that those of the next seemed to be known already."""
    hand = studio.handle("tool", kind="point")
    for k in range(30):
        hand.move((1.0 + 0.02 * (k % 2), 0.8, 0.0))
        studio.settle(PATIENCE)
    known = []

    def take_notice(state):
        time.sleep(0.1)
        known.append(state.q)

    studio.on_state(take_notice)
    studio.session.handle_request(OpenGallery("planar_2r"))
    state = studio.settle(PATIENCE)
    assert len(state.q) == 2
    np.testing.assert_array_equal(known[-1], state.q)
    studio.session.handle_request(Undo())
    hand.move((0.9, 0.9, 0.0))
    state = studio.settle(PATIENCE)
    assert len(state.q) == 3
    np.testing.assert_array_equal(known[-1], state.q)


def test_what_an_undo_has_put_back_is_settled_where_it_stands(studio):
    """All the seconds were waited for, and the state was the one before the undo."""
    studio.settle(PATIENCE)
    before = studio.q
    studio.session.handle_request(SetDofValue(0, 0.3))
    studio.settle(PATIENCE)
    studio.session.handle_request(Undo())
    studio.session.live.solve = lambda: pytest.fail("there is nothing to wait for")
    state = studio.settle(PATIENCE)
    np.testing.assert_array_equal(state.q, before)
    assert state.is_at_rest


def test_removed_callbacks_are_not_called(studio):
    hand = studio.handle("tool", kind="point")
    moves = []
    end = hand.on_move(moves.append)
    hand.move((1.0, 0.8, 0.0))
    studio.settle(PATIENCE)
    count = len(moves)
    assert count >= 1
    end()
    hand.move((1.0, 0.9, 0.0))
    studio.settle(PATIENCE)
    assert len(moves) == count


def test_a_loop_runs_until_its_function_says_false_or_the_studio_is_closed(studio):
    times = []

    def until_five(studio_, seconds):
        assert studio_ is studio
        times.append(seconds)
        return len(times) < 5

    studio.loop(until_five, rate=200)
    assert len(times) == 5
    assert times == sorted(times)
    threading.Timer(0.2, studio.close).start()
    studio.loop(lambda studio_, seconds: None, rate=100)
    assert not studio.is_open


def test_a_closed_studio_says_so_and_leaves_no_thread_behind(page):
    before = set(threading.enumerate())
    studio = Studio(mk.gallery.planar_3r(), open_browser=False, page=page)
    link = studio.link
    assert fetch(link).status_code == 303
    studio.close()
    studio.close()
    with pytest.raises(httpx.TransportError):
        fetch(link)
    with pytest.raises(StudioError, match="open a new one"):
        studio.handle("tool")
    until = time.monotonic() + PATIENCE
    while (left := set(threading.enumerate()) - before) and time.monotonic() < until:
        time.sleep(0.02)
    assert not left
    assert "closed" in repr(studio)


def test_a_notebook_shows_the_page_in_a_frame(studio):
    shown = studio._repr_html_()
    assert "<iframe" in shown
    assert studio._server.access.token in shown
    policy = fetch(studio.link).headers["content-security-policy"]
    assert "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*" in policy
    studio.close()
    assert "closed" in studio._repr_html_()


def test_the_browser_is_opened_with_an_address_that_lets_it_in_and_does_not_hold_the_key(page, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with Studio(mk.gallery.planar_3r(), page=page) as studio:
        (address,) = opened
        assert studio._server.access.token not in address
        assert fetch(address).status_code == 303


# ---- what is in the way -----------------------------------------------------------------------

POST = mk.Obstacle(mk.Cylinder(0.1, 1.0), (1.0, 0.8, 0.0), name="post")


def test_mechanism_avoids_obstacles_of_the_program(page):
    with Studio(mk.gallery.planar_3r(), avoid=["self", POST], clearance=0.02, open_browser=False, page=page) as studio:
        hand = studio.handle("tool", kind="point")
        watch = mk.Collider(studio.mechanism, ["self", POST])
        hand.move((1.0, 0.8, 0.0))  # inside of it
        state = studio.settle(PATIENCE)
        assert not state.solution.success
        assert watch.distance(studio.q) > 0.02 - 1e-6
        studio.move_obstacle("post", (-1.0, -0.8, 0.0))
        studio.settle(PATIENCE)
        assert np.allclose(tool(studio), (1.0, 0.8, 0.0), atol=1e-5)
        studio.move_obstacle("post", (1.0, 0.8, 0.0))
        studio.avoid(None)
        studio.settle(PATIENCE)
        assert studio.session.active.edit_state.collision_settings.obstacles == ()
        assert np.allclose(tool(studio), (1.0, 0.8, 0.0), atol=1e-5)


def test_a_studio_that_cannot_avoid_what_it_is_given_does_not_open(page):
    before = threading.active_count()
    with pytest.raises(UnknownName, match="self"):
        Studio(mk.gallery.planar_3r(), avoid=["slef"], open_browser=False, page=page)
    end = time.monotonic() + PATIENCE
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() <= before
