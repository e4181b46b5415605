"""Another mechanism or scene that is opened is a step of undo, and what is kept for that is bounded."""

from __future__ import annotations

import numpy as np
import pytest
from session_desk import Desk, threads_of_live

import mechanik as mk
from mechanik.errors import InvalidOperation
from mechanik.studio.messages.events import History, Scene
from mechanik.studio.messages.requests import (
    EditModel,
    OpenGallery,
    OpenScene,
    Redo,
    SetControl,
    SetLimits,
    StartLinkDrag,
    Undo,
)
from mechanik.studio.scenes import SCENES
from mechanik.studio.session import Session
from mechanik.studio.session import undo_history as history


def stands(desk: Desk) -> tuple[object, ...]:
    session = desk.session
    goals = [(goal.number, goal.pose) for goal in session.goals]
    return session.active.model, session.q.tobytes(), goals, session.active.edit_state.bounds, session.scene


def test_what_was_opened_is_taken_back_and_opened_again_to_the_bit() -> None:
    with Desk("panda") as desk:
        assert desk.last(History).undo == "", "there was nothing before the first one"
        desk.drag(desk.session.goals[0].number, (0.05, 0.1, 0.0))
        desk.ask(SetLimits(0, -1.0, 1.0))
        desk.rest()
        panda = stands(desk)
        desk.ask(OpenGallery("four_bar"))
        desk.rest()
        assert desk.last(History).undo == "open four bar"
        four_bar = stands(desk)
        desk.ask(Undo())
        assert stands(desk) == panda
        assert desk.model.resets_view
        assert desk.model.title == "panda"
        joint = desk.session.mechanism.joints[desk.session.active.model.index.dofs[0].joint]
        assert joint.limits(joint.dof[0]) == (-1.0, 1.0)
        desk.ask(Redo())
        assert stands(desk) == four_bar
        for _ in range(3):
            desk.ask(Undo())
        assert desk.last(History).undo == ""
        for _ in range(3):
            desk.ask(Redo())
        assert stands(desk) == four_bar


def test_of_what_was_edited_the_view_stays_and_of_what_was_opened_all_is_seen() -> None:
    with Desk("planar_3r") as desk:
        text = mk.formats.write_json(mk.arm_2d([0.5, 0.4], name="arm"))
        desk.session.open(mk.load(text), source=("json", text))
        desk.ask(EditModel("json", mk.formats.write_json(mk.arm_2d([0.5, 0.4, 0.3], name="arm"))))
        desk.ask(OpenGallery("four_bar"))
        for request in (Undo(), Redo(), Undo()):
            desk.ask(request)
            assert desk.model.resets_view, "from the arm to the four-bar or back"
        for request in (Undo(), Redo(), Undo()):
            desk.ask(request)
            assert not desk.model.resets_view, "from the arm to the longer arm or back"
        desk.ask(Undo())
        assert desk.model.resets_view


def test_a_scene_that_was_opened_is_taken_back_and_comes_again_as_it_was_left() -> None:
    with Desk("planar_3r", scenes=SCENES) as desk:
        arm = stands(desk)
        desk.ask(OpenScene("hexapod"))
        desk.ask(SetControl("tilt_x", 5.0))
        desk.rest()
        hexapod = stands(desk)
        desk.ask(OpenScene("four_bar"))
        desk.ask(Undo())
        assert stands(desk) == hexapod
        assert desk.last(Scene).name == "hexapod"
        assert {control.name: control.value for control in desk.last(Scene).controls}["tilt_x"] == 5.0
        desk.ask(Undo())
        desk.ask(Undo())
        assert stands(desk) == arm
        assert (desk.last(Scene).name, desk.last(Scene).controls) == ("", [])
        with pytest.raises(InvalidOperation, match="no scene"):
            desk.ask(SetControl("tilt_x", 1.0))
        for _ in range(3):
            desk.ask(Redo())
        assert desk.last(Scene).name == "four_bar"
        assert desk.last(Scene).curves


class Broken:
    """A scene that puts something on the table and then fails."""

    name, title, about, shows_collisions, is_moving = "broken", "Broken", "", False, False

    def open(self, session: Session) -> None:
        session.open(mk.gallery.planar_2r())
        raise InvalidOperation("no")

    def controls(self) -> list[object]:
        return []

    def keep(self) -> object:
        return None

    def bring_back(self, state: object) -> None: ...


def test_a_scene_that_cannot_be_opened_changes_nothing() -> None:
    with Desk("panda", scenes={"broken": Broken}) as desk:  # type: ignore[dict-item]
        before = stands(desk)
        with pytest.raises(InvalidOperation, match="no"):
            desk.ask(OpenScene("broken"))
        assert stands(desk) == before
        assert desk.model.title == "panda"
        assert desk.last(History).undo == ""


def test_a_program_that_opens_something_while_a_link_is_link_draged_leaves_no_pull_behind() -> None:
    with Desk("panda") as desk:
        desk.ask(StartLinkDrag("panda_hand", (0.0, 0.0, 0.0)))
        desk.session.open(mk.gallery.planar_2r())
        desk.ask(Undo())
        assert not any(goal.is_link_drag for goal in desk.session.goals)


def test_files_are_stored_for_undo_up_to_a_size_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_STORED_BYTES", 100)
    with Desk("planar_2r") as desk:
        for size in (70, 20, 60, 500):
            desk.session.open(mk.gallery.planar_2r(), files={"a.stl": bytes(size)})
        assert desk.session.file_bytes == 500 + 60 + 20, (
            "with 70 it would be more than 100 besides those that stand here"
        )
        for left in (1, 0):
            desk.ask(Undo())
            assert len(desk.session.history) == left
            assert desk.session.file_bytes == 580
        desk.session.open(mk.gallery.planar_2r())
        assert desk.session.file_bytes == 20


def test_a_large_file_of_what_stands_here_takes_no_step_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_STORED_BYTES", 100)
    with Desk() as desk:
        desk.session.open(mk.gallery.planar_2r(), files={"a.stl": bytes(500)})
        for x in (0.1, 0.2, 0.3):
            desk.drag(desk.session.goals[0].number, (0.0, x, 0.0))
        assert len(desk.session.history) == 3


def test_many_that_are_opened_and_taken_back_leave_one_thread() -> None:
    with Desk("planar_2r") as desk:
        before = threads_of_live()
        for name in ("planar_3r", "four_bar", "scara"):
            desk.ask(OpenGallery(name))
        for request in (Undo, Undo, Redo, Undo, Undo, Redo):
            desk.ask(request())
            assert threads_of_live() <= before
        assert np.isfinite(desk.session.q).all()
