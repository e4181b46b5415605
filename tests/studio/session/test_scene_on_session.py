"""A scene in a session: opened, controlled, animated, ended, and sent to a page that connects later."""

from __future__ import annotations

import numpy as np
import pytest
from session_harness import SessionHarness

import mechanik as mk
from mechanik.errors import InvalidOperation, MechanikError, UnknownName
from mechanik.studio.messages import requests
from mechanik.studio.messages.events import (
    ControlInfo,
    Controls,
    CurveInfo,
    Goals,
    History,
    Model,
    Notice,
    Recording,
    Scene,
    Solving,
    StatusText,
)
from mechanik.studio.messages.requests import Value
from mechanik.studio.session import Session
from mechanik.studio.session.undo_history import MAX_STEPS


class Swing:
    """An arm that follows a goal which swings by itself."""

    name, title, about = "swing", "Swing", "It swings."
    shows_collisions = True

    def __init__(self) -> None:
        self.speed, self.time = 1.0, 0.0

    def open(self, session: Session) -> None:
        self.session = session
        session.open(mk.gallery.planar_3r(), title=self.title, goals=())
        self.goal = session.add_goal("point", "tool", name="swinging")
        session.add_objective(mk.JointValues({"joint1": 0.0}, level=3, name="lazy"))
        self.start = session.goals[0].X

    def controls(self) -> list[ControlInfo]:
        return [ControlInfo("speed", "Speed", "slider", self.speed, 0.0, 2.0, 0.1, [], "", "")]

    def set(self, name: str, value: Value) -> None:
        if name != "speed":
            raise UnknownName("control", name, ["speed"])
        self.speed = float(value)
        self.session.set_curves([CurveInfo("way", [0.0] * 6, (1.0, 0.0, 0.0, 1.0), False)])

    def snapshot(self) -> object:
        return self.speed, self.time

    def restore(self, state: tuple[float, float]) -> None:
        self.speed, self.time = state

    @property
    def is_moving(self) -> bool:
        return self.speed > 0.0

    def tick(self, seconds: float) -> None:
        if self.speed > 1.5:
            raise InvalidOperation("it is too fast")
        self.time += seconds * self.speed
        self.session.move_goal(self.goal, self.start[:3, 3] + (0.0, 0.05 * np.sin(self.time), 0.0))
        self.session.set_targets({"lazy": 0.1})

    def readouts(self) -> list[str]:
        return [f"{self.speed:g} a second"]


def opened() -> SessionHarness:
    harness = SessionHarness(scenes={"swing": Swing})
    harness.ask(requests.OpenScene("swing"))
    return harness


def test_scene_is_broadcast_and_moves_by_itself() -> None:
    with opened() as harness:
        scene = harness.last(Scene)
        assert (scene.name, scene.shows_collisions, scene.controls[0].name) == ("swing", True, "speed")
        assert harness.session.is_animated
        q = harness.session.q.copy()
        for _ in range(5):
            harness.tick(0.05)
            harness.rest()
        assert np.abs(harness.session.q - q).max() > 1e-3
        assert harness.frame.goals[0][7] < 1e-5
        assert harness.last(StatusText).readouts == ["1 a second"]
        assert harness.last(History).undo == "", "what moves by itself is no step"


def test_control_and_its_curves_are_broadcast_when_it_is_set() -> None:
    with opened() as harness:
        harness.ask(requests.SetControl("speed", 0.0))
        assert harness.last(Controls).values == {"speed": 0.0}
        assert harness.last(Scene).curves[0].name == "way"
        assert not harness.session.is_animated
        with pytest.raises(MechanikError):
            harness.ask(requests.SetControl("colour", 1.0))


def test_a_scene_that_cannot_go_on_is_ended_with_a_word() -> None:
    with opened() as harness:
        harness.ask(requests.SetControl("speed", 2.0))
        harness.tick(0.05)
        harness.tick(0.05)
        assert harness.last(Scene).name == ""
        assert "too fast" in harness.last(Notice).text
        assert harness.session.goals, "its mechanism stays"


def test_another_mechanism_ends_the_scene() -> None:
    with opened() as harness:
        harness.ask(requests.OpenGallery("four_bar"))
        assert harness.last(Scene).name == ""
        assert harness.last(Scene).curves == []
        with pytest.raises(InvalidOperation, match="no scene"):
            harness.ask(requests.SetControl("speed", 1.0))
        with pytest.raises(UnknownName):
            harness.ask(requests.OpenScene("nobody"))


def test_page_that_connects_later_receives_everything_and_revisions_stay() -> None:
    with opened() as harness:
        harness.rest()
        before = harness.model, harness.goals, len(harness.events), len(harness.frames)
        harness.session.send_everything()
        kinds = {type(event) for event in harness.events[before[2] :]}
        assert {Model, Goals, Solving, Scene, History, Recording} <= kinds
        assert (harness.model.revision, harness.goals.order) == (before[0].revision, before[1].order)
        assert len(harness.frames) == before[3] + 1


def test_a_session_without_a_mechanism_greets_and_refuses() -> None:
    with SessionHarness() as harness:
        harness.session.send_everything()
        harness.tick()
        for request in (
            requests.Undo(),
            requests.AddGoal("point", "tool"),
            requests.GoTo("home"),
            requests.Export("json"),
        ):
            with pytest.raises(InvalidOperation, match="open one first"):
                harness.ask(request)


def test_there_are_at_most_200_steps_back() -> None:
    with SessionHarness("planar_2r") as harness:
        for k in range(MAX_STEPS + 5):
            harness.ask(requests.ShowLinks(["tool"], visible=k % 2 == 1))
        for _ in range(MAX_STEPS):
            harness.ask(requests.Undo())
        with pytest.raises(InvalidOperation, match="nothing to undo"):
            harness.ask(requests.Undo())
        assert harness.session.active.edit_state.hidden_links == {"tool"}, "as it was after the fifth step"


def test_files_that_came_along_are_given_by_number_and_no_others() -> None:
    arm = mk.gallery.planar_2r()
    link = next(iter(arm.links.values()))
    link.visuals = (
        mk.ShapeInstance(mk.Mesh("package://arm/hand.stl")),
        mk.ShapeInstance(mk.Mesh("gone.stl", path="/etc/hostname")),
    )
    with SessionHarness(key="k") as harness:
        harness.session.open(arm, files={"package://arm/hand.stl": b"solid"})
        shapes = harness.model.links[0].visuals
        assert [shape.mesh and shape.mesh.partition("?")[0] for shape in shapes] == ["/mesh/k/0", None]
        assert harness.session.read_mesh(0) == (b"solid", "model/stl")
        with pytest.raises(MechanikError):
            harness.session.read_mesh(1)
