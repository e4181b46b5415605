"""A recording contains obstacles and contacts, so that the page that plays it can show them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from session_harness import SessionHarness

import mechanik as mk
from mechanik.studio.messages.events import ContactsChanged, Download, ObstacleMoved
from mechanik.studio.messages.requests import AddObstacle, EndDrag, Export, OpenGallery, RecordMotion, StartObstacleDrag
from mechanik.studio.session import motion_recorder as exports

PATIENCE = 300.0
"""Seconds for a look; the first of all compiles."""
STRAIGHT = (1.0, 0.0, 0.0, 0.0)
OFF = (0.9, 0.0, 0.5, *STRAIGHT)
"""A pose in front of a Panda that touches nothing."""


def hold(harness: SessionHarness, pose) -> None:
    harness.drag_obstacle_to(0, pose)
    harness.answered()
    assert harness.session.collision_monitor.wait(PATIENCE)


@pytest.fixture
def harness():
    """A Panda that is recorded while a box is dragged into its hand and away again."""
    with SessionHarness("panda", key="abc") as harness:
        hand = harness.session.mechanism.pose("panda_hand_tcp", harness.session.q)[:3, 3]
        harness.ask(AddObstacle("box", OFF))
        harness.rest()
        assert harness.session.collision_monitor.wait(PATIENCE)
        harness.ask(RecordMotion(True))
        harness.ask(StartObstacleDrag("box 1"))
        hold(harness, (*hand, *STRAIGHT))
        hold(harness, OFF)
        harness.ask(EndDrag())
        harness.ask(RecordMotion(False))
        yield harness


def test_recording_starts_with_the_present_obstacles_and_adds_the_events_of_pages(harness):
    events = harness.session.recorder.events()
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


def test_what_comes_after_its_end_is_not_in_it(harness):
    count = len(harness.session.recorder.events())
    harness.session.move_obstacle("box 1", (1.0, 0.0, 0.0))
    assert len(harness.session.recorder.events()) == count
    harness.ask(OpenGallery("ur5"))
    assert harness.session.recorder.events() == []


def test_the_page_that_plays_carries_them_with_the_meshes_of_obstacles(harness, monkeypatch):
    monkeypatch.setattr(exports, "player_script", lambda: "")
    rock = mk.Obstacle(mk.ConvexMesh([(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)]), (2, 0, 0), name="rock")
    harness.session.add_obstacle(rock)
    harness.ask(RecordMotion(True))
    harness.session.move_obstacle("rock", (2.5, 0.0, 0.0))
    harness.ask(RecordMotion(False))
    harness.ask(Export("html"))
    page = harness.session.read_download(harness.last(Download).address.rpartition("/")[2])[0].decode()
    data = json.loads(page.split('id="motion">')[1].split("</script>")[0])
    kinds = [event["is"] for _, event in data["events"]]
    assert kinds == ["Obstacles", "ContactsChanged", "ObstacleMoved"]
    standing = {obstacle["name"]: obstacle for obstacle in data["events"][0][1]["obstacles"]}
    assert standing["rock"]["shape"]["mesh"] in data["files"]
    assert data["events"][2][1]["obstacle"]["pose"][0] == 2.5
    assert data["events"][2][0] <= data["times"][-1] + 1.0
    assert np.all(np.diff([when for when, _ in data["events"]]) >= 0)
