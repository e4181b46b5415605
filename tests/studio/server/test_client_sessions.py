"""Each connection has its own session, or all share one; what a client does is answered in order."""

from __future__ import annotations

import json
import threading
import time

import numpy as np
from wire_client import PATIENCE, WireClient, connect_to, ended, fetch

import mechanik as mk
from mechanik.studio.server.server import serve
from mechanik.studio.server.session_host import SessionHost
from mechanik.studio.session.session import Session

GOOD = b"""<robot name="two"><link name="base"/><link name="arm"/>
<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""


def planar(x: float, y: float) -> list[float]:
    return [x, y, 0.0, 1.0, 0.0, 0.0, 0.0]


def test_a_page_is_welcomed_with_all_it_must_know(client):
    client.wait(lambda: client.frame is not None)
    kinds = [event["is"] for event in client.events]
    assert kinds[0] == "Welcome"
    assert {"Model", "Goals", "Solving", "Scene", "History", "Recording"} <= set(kinds)
    welcome = client.events[0]
    assert {method["name"] for method in welcome["methods"]} == set(mk.METHODS)
    assert {entry["name"] for entry in welcome["entries"] if entry["kind"] == "gallery"} == set(mk.gallery.names())
    assert not welcome["is_shared"]


def test_a_drag_is_answered_with_its_tag_and_the_tool_comes_to_the_goal(client):
    goal = client.goal()
    assert client.ask("StartGoalDrag", goal=goal["number"])["is"] == "RequestDone"
    client.drag(goal["number"], planar(1.0, 0.9))
    frame = client.wait(lambda: client.frame.header.is_at_rest and client.frame.header.tag == 1 and client.frame)
    assert np.allclose(frame.goals[0, :7], planar(1.0, 0.9))
    assert np.allclose(frame.links[client.goal()["link"], :2], (1.0, 0.9), atol=1e-5)
    assert client.ask("EndDrag")["is"] == "RequestDone"


def test_the_last_hand_of_a_drag_is_not_overtaken_by_the_release(client):
    goal = client.goal()["number"]
    for k in range(20):
        assert client.ask("StartGoalDrag", goal=goal)["is"] == "RequestDone"
        for n in range(10):
            client.send_hand(goal, planar(1.0 + 0.01 * n, 0.5 + 0.02 * k))
        assert client.ask("EndDrag")["is"] == "RequestDone"
        pose = client.wait_for("Goals")["goals"][0]["pose"]
        assert np.allclose(pose[:2], (1.09, 0.5 + 0.02 * k)), "where the last hand held it"


def test_clients_do_not_move_each_others_mechanisms(server):
    with WireClient(server) as client, WireClient(server) as other_client:
        goal = client.goal()["number"]
        other_client.wait(lambda: other_client.frame is not None)
        before = other_client.frame.values.copy()
        client.ask("StartGoalDrag", goal=goal)
        client.drag(goal, planar(0.7, 1.1))
        client.ask("OpenGallery", name="four_bar")
        client.wait_for("Model", name="four_bar")
        other_client.ask("EndDrag")
        assert (other_client.frame.values == before).all()
        assert other_client.last("Model")["name"] == "planar_3r"
        assert client.events[0]["session"] != other_client.events[0]["session"]


def test_refusals_name_the_request_and_the_reason(client):
    refusal = client.ask("OpenGallery", name="pnda")
    assert refusal["is"] == "RequestRefused"
    assert "Did you mean 'panda'" in refusal["message"]
    refusal = client.ask("SetDofValue", dof=0, value=1e300)
    assert (refusal["is"], refusal["id"]) == ("RequestRefused", 2)


def test_internal_error_is_logged_in_one_line_and_the_session_continues(client, server, monkeypatch, caplog):
    host = server.pool.find(client.welcome["session"])
    monkeypatch.setattr(host.session, "handle_request", lambda request: [][1])
    refusal = client.ask("Undo")
    assert "internal error" in refusal["message"]
    assert "list index" not in refusal["message"]
    assert "IndexError: list index out of range" in caplog.text
    assert "Traceback" not in caplog.text
    monkeypatch.undo()
    assert client.ask("EndDrag")["is"] == "RequestDone"


def test_a_file_is_opened_in_the_session_that_sent_it(client, web, server):
    with WireClient(server) as other_client:
        key = client.welcome["session"]
        answer = web.post(f"/upload/{key}", params={"name": "two.urdf"}, content=GOOD)
        assert (answer.status_code, answer.text) == (200, "opened")
        assert client.wait_for("Model", name="two")["title"] == "two.urdf"
        assert other_client.wait_for("Model")["name"] == "planar_3r"


def test_a_file_that_is_wrong_changes_nothing(client, web):
    key = client.welcome["session"]
    client.wait(lambda: client.frame is not None)
    answer = web.post(f"/upload/{key}", params={"name": "two.urdf"}, content=GOOD.replace(b"</robot>", b""))
    assert answer.status_code == 422
    assert client.ask("EndDrag")["is"] == "RequestDone"
    assert client.last("Model")["name"] == "planar_3r"


def test_what_was_exported_can_be_fetched_under_a_safe_name_by_who_has_the_key(client, web):
    assert client.ask("Export", kind="mechanism")["is"] == "RequestDone"
    download = client.wait_for("Download")
    answer = web.get(download["address"])
    assert answer.status_code == 200
    assert json.loads(answer.content)
    assert 'attachment; filename="' in answer.headers["content-disposition"]
    assert fetch(str(answer.url)).status_code == 403


def test_all_pages_of_a_shared_studio_see_the_same(page):
    server = serve(mk.gallery.planar_3r(), port=0, page=page, is_shared=True)
    try:
        with WireClient(server) as client:
            goal = client.goal()["number"]
            client.ask("StartGoalDrag", goal=goal)
            client.drag(goal, planar(0.9, 0.9))
            models = len([event for event in client.events if event["is"] == "Model"])
            with WireClient(server) as other_client:
                other_client.wait(
                    lambda: other_client.frame is not None and np.allclose(other_client.goal_pose(), planar(0.9, 0.9))
                )
                assert other_client.events[0]["is_shared"]
                client.drag(goal, planar(1.0, 0.8))
                other_client.wait(lambda: np.allclose(other_client.goal_pose(), planar(1.0, 0.8)))
                assert (
                    other_client.frame.header.order
                    == other_client.last("Goals")["order"]
                    == client.last("Goals")["order"]
                )
            assert len([event for event in client.events if event["is"] == "Model"]) == models, "not greeted again"
            assert client.ask("EndDrag")["is"] == "RequestDone"
    finally:
        server.close()


def test_sessions_end_with_their_connections(server):
    def ours() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name.startswith("mechanik")}

    assert ended(server), "the rooms of those who were here before"
    before, seen = ours(), set[threading.Thread]()
    for _ in range(3):
        with WireClient(server) as client:
            client.wait(lambda client=client: client.frame is not None)
            seen |= ours() - before
    assert len(seen) >= 3
    assert ended(server)
    until = time.monotonic() + PATIENCE
    while ours() - before and time.monotonic() < until:
        time.sleep(0.02)
    assert not ours() - before


def test_drag_of_a_page_ends_when_the_page_leaves(page):
    server = serve(mk.gallery.planar_3r(), port=0, page=page, is_shared=True)
    try:
        with WireClient(server) as client:
            goal = client.goal()["number"]
            with WireClient(server) as other_client:
                other_client.wait_for("Model")
                other_client.ask("StartGoalDrag", goal=goal)
                other_client.drag(goal, planar(0.9, 0.9))
                assert server.pool.shared_host.session.active.drag is not None
            client.wait(lambda: server.pool.shared_host.session.active.drag is None)
            assert client.ask("Undo")["is"] == "RequestDone", "the drag is a step of undo like any other"
    finally:
        server.close()


def test_page_gets_the_reason_why_a_mechanism_cannot_be_opened(page):
    server = serve(("gallery", "nothing of that name"), port=0, page=page)
    try:
        for _ in range(2):
            with connect_to(server) as connection:
                words = json.loads(connection.recv(PATIENCE))
                assert words["is"] == "RequestRefused"
                assert "nothing of that name" in words["message"]
        assert len(server.pool) == 0
    finally:
        server.close()


def test_future_of_a_closed_host_is_cancelled():
    started, ends = threading.Event(), threading.Event()

    def busy(session):
        started.set()
        ends.wait(PATIENCE)

    host = SessionHost("key", lambda tell, show: Session(tell, show))
    first = host.submit_call(busy)
    started.wait(PATIENCE)
    second = host.submit_call(lambda session: 1)
    host.close(0.0)
    assert second.cancelled()
    assert host.submit_call(lambda session: 1).cancelled()
    ends.set()
    assert first.result(PATIENCE) is None
    host.close()


def test_failing_tick_is_logged_once_and_the_session_continues(caplog):
    ticks = []

    class Failing(Session):
        is_animated = True

        def tick(self, now):
            ticks.append(now)
            raise ZeroDivisionError("no")

    host = SessionHost("key", lambda tell, show: Failing(tell, show))
    until = time.monotonic() + PATIENCE
    while len(ticks) < 5 and time.monotonic() < until:
        time.sleep(0.01)
    assert host.submit_call(lambda session: 7).result(PATIENCE) == 7
    host.close()
    assert caplog.text.count("ZeroDivisionError") == 1
