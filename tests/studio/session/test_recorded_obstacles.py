"""A recording holds where obstacles stood and what bumped, so that the page that plays it shows them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from session_desk import Desk

import mechanik as mk
from mechanik.studio.messages.events import ContactsChanged, Download, ObstacleMoved
from mechanik.studio.messages.requests import AddObstacle, EndDrag, Export, OpenGallery, RecordMotion, StartObstacleDrag
from mechanik.studio.session import motion_recorder as exports

PATIENCE = 300.0
"""Seconds for a look; the first of all compiles."""
STRAIGHT = (1.0, 0.0, 0.0, 0.0)
OFF = (0.9, 0.0, 0.5, *STRAIGHT)
"""A pose in front of a Panda that touches nothing."""


def hold(desk: Desk, pose) -> None:
    desk.drag_obstacle_to(0, pose)
    desk.answered()
    assert desk.session.collision_monitor.wait(PATIENCE)


@pytest.fixture
def desk():
    """A Panda that is recorded while a box is dragged into its hand and away again."""
    with Desk("panda", key="abc") as desk:
        hand = desk.session.mechanism.pose("panda_hand_tcp", desk.session.q)[:3, 3]
        desk.ask(AddObstacle("box", OFF))
        desk.rest()
        assert desk.session.collision_monitor.wait(PATIENCE)
        desk.ask(RecordMotion(True))
        desk.ask(StartObstacleDrag("box 1"))
        hold(desk, (*hand, *STRAIGHT))
        hold(desk, OFF)
        desk.ask(EndDrag())
        desk.ask(RecordMotion(False))
        yield desk


def test_recording_starts_with_the_present_obstacles_and_adds_the_events_of_pages(desk):
    events = desk.session.recorder.events()
    times = [when for when, _ in events]
    assert times == sorted(times)
    assert times[:2] == [0.0, 0.0]
    first, bumping, *rest = (event for _, event in events)
    assert [obstacle.pose for obstacle in first.obstacles] == [OFF]
    assert bumping.obstacles == []
    moved = [event.obstacle.pose[0] for event in rest if isinstance(event, ObstacleMoved)]
    assert len(moved) == 2
    assert moved[1] == OFF[0]
    hit = [event.obstacles for event in rest if isinstance(event, ContactsChanged)]
    assert hit == [["box 1"], []]


def test_what_comes_after_its_end_is_not_in_it(desk):
    count = len(desk.session.recorder.events())
    desk.session.move_obstacle("box 1", (1.0, 0.0, 0.0))
    assert len(desk.session.recorder.events()) == count
    desk.ask(OpenGallery("ur5"))
    assert desk.session.recorder.events() == []


def test_the_page_that_plays_carries_them_with_the_meshes_of_obstacles(desk, monkeypatch):
    monkeypatch.setattr(exports, "player_script", lambda: "")
    rock = mk.Obstacle(mk.ConvexMesh([(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)]), (2, 0, 0), name="rock")
    desk.session.add_obstacle(rock)
    desk.ask(RecordMotion(True))
    desk.session.move_obstacle("rock", (2.5, 0.0, 0.0))
    desk.ask(RecordMotion(False))
    desk.ask(Export("html"))
    page = desk.session.read_download(desk.last(Download).address.rpartition("/")[2])[0].decode()
    data = json.loads(page.split('id="motion">')[1].split("</script>")[0])
    kinds = [event["is"] for _, event in data["events"]]
    assert kinds == ["Obstacles", "ContactsChanged", "ObstacleMoved"]
    standing = {obstacle["name"]: obstacle for obstacle in data["events"][0][1]["obstacles"]}
    assert standing["rock"]["shape"]["mesh"] in data["files"]
    assert data["events"][2][1]["obstacle"]["pose"][0] == 2.5
    assert data["events"][2][0] <= data["times"][-1] + 1.0
    assert np.all(np.diff([when for when, _ in data["events"]]) >= 0)
