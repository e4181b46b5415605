"""Opening a mechanism or scene is an undo step, and the memory for these steps is bounded."""

from __future__ import annotations

import numpy as np
import pytest
from session_harness import SessionHarness, threads_of_live

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


def stands(harness: SessionHarness) -> tuple[object, ...]:
    session = harness.session
    goals = [(goal.number, goal.pose) for goal in session.goals]
    return session.active.model, session.q.tobytes(), goals, session.active.edit_state.limits, session.scene


def test_what_was_opened_is_taken_back_and_opened_again_to_the_bit() -> None:
    with SessionHarness("panda") as harness:
        assert harness.last(History).undo == "", "there was nothing before the first one"
        harness.drag(harness.session.goals[0].number, (0.05, 0.1, 0.0))
        harness.ask(SetLimits(0, -1.0, 1.0))
        harness.rest()
        panda = stands(harness)
        harness.ask(OpenGallery("four_bar"))
        harness.rest()
        assert harness.last(History).undo == "open four bar"
        four_bar = stands(harness)
        harness.ask(Undo())
        assert stands(harness) == panda
        assert harness.model.resets_view
        assert harness.model.title == "panda"
        joint = harness.session.mechanism.joints[harness.session.active.model.index.dofs[0].joint]
        assert joint.limits(joint.dof[0]) == (-1.0, 1.0)
        harness.ask(Redo())
        assert stands(harness) == four_bar
        for _ in range(3):
            harness.ask(Undo())
        assert harness.last(History).undo == ""
        for _ in range(3):
            harness.ask(Redo())
        assert stands(harness) == four_bar


def test_of_what_was_edited_the_view_stays_and_of_what_was_opened_all_is_seen() -> None:
    with SessionHarness("planar_3r") as harness:
        text = mk.formats.write_json(mk.arm_2d([0.5, 0.4], name="arm"))
        harness.session.open(mk.load(text), source=("json", text))
        harness.ask(EditModel("json", mk.formats.write_json(mk.arm_2d([0.5, 0.4, 0.3], name="arm"))))
        harness.ask(OpenGallery("four_bar"))
        for request in (Undo(), Redo(), Undo()):
            harness.ask(request)
            assert harness.model.resets_view, "from the arm to the four-bar or back"
        for request in (Undo(), Redo(), Undo()):
            harness.ask(request)
            assert not harness.model.resets_view, "from the arm to the longer arm or back"
        harness.ask(Undo())
        assert harness.model.resets_view


def test_a_scene_that_was_opened_is_taken_back_and_comes_again_as_it_was_left() -> None:
    with SessionHarness("planar_3r", scenes=SCENES) as harness:
        arm = stands(harness)
        harness.ask(OpenScene("hexapod"))
        harness.ask(SetControl("tilt_x", 5.0))
        harness.rest()
        hexapod = stands(harness)
        harness.ask(OpenScene("four_bar"))
        harness.ask(Undo())
        assert stands(harness) == hexapod
        assert harness.last(Scene).name == "hexapod"
        assert {control.name: control.value for control in harness.last(Scene).controls}["tilt_x"] == 5.0
        harness.ask(Undo())
        harness.ask(Undo())
        assert stands(harness) == arm
        assert (harness.last(Scene).name, harness.last(Scene).controls) == ("", [])
        with pytest.raises(InvalidOperation, match="no scene"):
            harness.ask(SetControl("tilt_x", 1.0))
        for _ in range(3):
            harness.ask(Redo())
        assert harness.last(Scene).name == "four_bar"
        assert harness.last(Scene).curves


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
    with SessionHarness("panda", scenes={"broken": Broken}) as harness:  # type: ignore[dict-item]
        before = stands(harness)
        with pytest.raises(InvalidOperation, match="no"):
            harness.ask(OpenScene("broken"))
        assert stands(harness) == before
        assert harness.model.title == "panda"
        assert harness.last(History).undo == ""


def test_a_program_that_opens_something_while_a_link_is_link_draged_leaves_no_pull_behind() -> None:
    with SessionHarness("panda") as harness:
        harness.ask(StartLinkDrag("panda_hand", (0.0, 0.0, 0.0)))
        harness.session.open(mk.gallery.planar_2r())
        harness.ask(Undo())
        assert not any(goal.is_link_drag for goal in harness.session.goals)


def test_files_are_stored_for_undo_up_to_a_size_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_STORED_BYTES", 100)
    with SessionHarness("planar_2r") as harness:
        for size in (70, 20, 60, 500):
            harness.session.open(mk.gallery.planar_2r(), files={"a.stl": bytes(size)})
        assert harness.session.file_bytes == 500 + 60 + 20, (
            "with 70 it would be more than 100 besides those that stand here"
        )
        for left in (1, 0):
            harness.ask(Undo())
            assert len(harness.session.history) == left
            assert harness.session.file_bytes == 580
        harness.session.open(mk.gallery.planar_2r())
        assert harness.session.file_bytes == 20


def test_a_large_file_of_what_stands_here_takes_no_step_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_STORED_BYTES", 100)
    with SessionHarness() as harness:
        harness.session.open(mk.gallery.planar_2r(), files={"a.stl": bytes(500)})
        for x in (0.1, 0.2, 0.3):
            harness.drag(harness.session.goals[0].number, (0.0, x, 0.0))
        assert len(harness.session.history) == 3


def test_many_that_are_opened_and_taken_back_leave_one_thread() -> None:
    with SessionHarness("planar_2r") as harness:
        before = threads_of_live()
        for name in ("planar_3r", "four_bar", "scara"):
            harness.ask(OpenGallery(name))
        for request in (Undo, Undo, Redo, Undo, Undo, Redo):
            harness.ask(request())
            assert threads_of_live() <= before
        assert np.isfinite(harness.session.q).all()
