"""Requests of pages are bounded in time and memory."""

from __future__ import annotations

import threading

import pytest
from session_harness import PATIENCE, SessionHarness

from mechanik.errors import FormatError, InvalidOperation, LimitsError
from mechanik.gallery import four_bar, planar_3r
from mechanik.studio.messages import requests
from mechanik.studio.messages.events import Model
from mechanik.studio.session import (
    background_solvers as ghosts,
)
from mechanik.studio.session import (
    joint_requests,
)
from mechanik.studio.session import (
    loaded_model as sizes,
)
from mechanik.studio.session import (
    motion_recorder as exports,
)
from mechanik.studio.session import (
    motion_recorder as recorder,
)
from mechanik.studio.session import (
    undo_history as history,
)
from mechanik.studio.session.default_goals import default_goals
from mechanik.studio.session.loaded_model import LoadedModel, describe
from mechanik.studio.session.motion_recorder import DownloadStore, ExportedFile, MotionRecorder


def chain(links: int, kind: str) -> str:
    """A URDF of a chain."""
    joints = "".join(
        f'<link name="l{k + 1}"/><joint name="j{k}" type="{kind}"><parent link="l{k}"/><child link="l{k + 1}"/>'
        '<origin xyz="0 0 0.1"/><axis xyz="0 1 0"/></joint>'
        for k in range(links - 1)
    )
    return f'<robot name="chain"><link name="l0"/>{joints}</robot>'


def tied(bodies: int) -> str:
    """An MJCF of free bodies, each tied to the one before: as many loops as bodies, but one."""
    free = "".join(
        f'<body name="b{k}" pos="{0.1 * k} 0 0"><freejoint/><geom size="0.02"/></body>' for k in range(bodies)
    )
    ties = "".join(f'<connect body1="b{k}" body2="b{k - 1}" anchor="0 0 0"/>' for k in range(1, bodies))
    return f"<mujoco><worldbody>{free}</worldbody><equality>{ties}</equality></mujoco>"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (chain(sizes.MAX_UPLOAD_LINKS + 1, "fixed"), "links"),
        (chain(sizes.MAX_UPLOAD_DOFS // 6 + 2, "floating"), "degrees of freedom"),
    ],
)
def test_a_text_of_too_large_a_mechanism_is_refused_and_changes_nothing(text, what) -> None:
    with SessionHarness("planar_3r") as harness:
        before = harness.session.state.solver_session
        with pytest.raises(FormatError, match=what):
            harness.ask(requests.EditModel("urdf", text))
        assert harness.session.state.solver_session is before


def test_loops_are_counted(monkeypatch) -> None:
    monkeypatch.setattr(sizes, "MAX_UPLOAD_LOOPS", 0)
    with pytest.raises(FormatError, match="1 loops"):
        sizes.check_upload_size(four_bar())


def test_of_a_large_mechanism_with_loops_nothing_is_worked_out_that_takes_minutes(monkeypatch) -> None:
    """Singular values of 1500 freedoms took two minutes, for one sentence."""
    pytest.importorskip("mujoco")
    for place in ("loaded_model.Mechanism.explain", "default_goals.mobility", "background_solvers.structure"):
        monkeypatch.setattr(f"mechanik.studio.session.{place}", lambda *_: pytest.fail("worked out"))
    with SessionHarness() as harness:
        harness.ask(requests.EditModel("urdf", tied(sizes.MAX_ANALYSED_DOFS // 6 + 1)))
        assert "too many" in harness.last(Model).about[0]
        harness.ask(requests.ShowAlternatives(4))
        harness.session.alternatives.join()
        alternatives = harness.session.alternatives.poll()
        assert alternatives is not None
        assert "supports at most" in alternatives.text


def test_what_is_small_is_explained_as_a_program_would() -> None:
    for mechanism in (four_bar(), planar_3r()):
        assert describe(mechanism)[0] == mechanism.explain().split("\n\n")[0].replace("\n", " ")
        assert default_goals(mechanism)


def test_replaced_mechanisms_are_stored_up_to_a_size_and_the_last_one_always(monkeypatch) -> None:
    """Each step of undo that made another mechanism kept it whole, two hundred of them."""
    monkeypatch.setattr(history, "MAX_STORED_LINKS", 11)
    with SessionHarness("planar_3r") as harness:
        for links in (3, 4, 5, 6, 7):
            harness.ask(requests.EditModel("urdf", chain(links, "continuous")))
        step_counts = []
        while len(harness.session.history):
            harness.ask(requests.Undo())
            step_counts.append(len(harness.session.mechanism.links))
        assert step_counts == [6, 5, 4], "besides 6, 5 and 4 are at most 11 links, and with 3 they are not"
        for links in (5, 6, 7):
            harness.ask(requests.Redo())
            assert len(harness.session.mechanism.links) == links


def test_steps_of_a_single_mechanism_are_stored_whatever_its_size(monkeypatch) -> None:
    monkeypatch.setattr(history, "MAX_STORED_LINKS", 0)
    with SessionHarness("planar_3r") as harness:
        for k in range(5):
            harness.ask(requests.SetLocked(0, k % 2 == 0))
        assert len(harness.session.history) == 5


def test_files_that_wait_are_bounded_together_and_the_newest_is_never_dropped(monkeypatch) -> None:
    monkeypatch.setattr(exports, "MAX_FILE_BYTES", 100)
    downloads = DownloadStore("key")
    keys = [
        downloads.add(ExportedFile(bytes(size), "text/csv", "a.csv")).address.split("/")[-1]
        for size in (60, 30, 40, 500)
    ]
    assert len(downloads.read(keys[3])[0]) == 500
    for key in keys[:3]:
        with pytest.raises(Exception, match="no file"):
            downloads.read(key)


def test_a_recording_of_many_numbers_ends_by_itself(monkeypatch) -> None:
    monkeypatch.setattr(recorder, "MAX_NUMBERS", 30)
    clock = iter(range(1000))
    mechanism = planar_3r()
    tape = MotionRecorder(clock=lambda: float(next(clock)))
    tape.start(LoadedModel(mechanism), mechanism.q)
    for _ in range(50):
        tape.add(mechanism.q)
    assert tape.motion()[1].size == 30
    assert tape.is_full
    assert not tape.is_recording


def test_options_that_make_one_iteration_long_are_bounded() -> None:
    with SessionHarness("planar_3r") as harness:
        with pytest.raises(LimitsError, match="population"):
            harness.ask(requests.SetSolver("evolution", {"population": 10_000.0}))
        harness.ask(requests.SetSolver("lm", {"max_iterations": 10_000.0}))


def test_joint_move_that_takes_too_long_is_rejected_and_nothing_moves(monkeypatch) -> None:
    monkeypatch.setattr(joint_requests, "MAX_MOVE_SECONDS", -1.0)
    with SessionHarness("four_bar") as harness:
        before = harness.session.q
        with pytest.raises(InvalidOperation, match="smaller steps"):
            harness.ask(requests.SetDofValue(0, 3.0))
        assert (harness.session.q == before).all()


def test_running_search_can_be_joined_after_close(monkeypatch) -> None:
    begun, may_end = threading.Event(), threading.Event()
    monkeypatch.setattr(ghosts, "_find_alternatives", lambda _: begun.set() or may_end.wait(PATIENCE))
    harness = SessionHarness("planar_3r")
    harness.ask(requests.ShowAlternatives(4))
    assert begun.wait(PATIENCE)
    harness.session.close()
    waiting = threading.Thread(target=harness.session.alternatives.join)
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    may_end.set()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()


@pytest.mark.parametrize("opening", [requests.OpenGallery("scara"), requests.EditModel("urdf", chain(4, "continuous"))])
def test_states_of_a_mechanism_that_was_opened_after_a_drag_carry_the_tag_of_the_hand(opening) -> None:
    """They carried none, so that a page waited for an answer that had come."""
    with SessionHarness("planar_3r") as harness:
        harness.drag(harness.goals.goals[0].number, (0.0, 0.01, 0.0))
        harness.ask(opening)
        assert harness.rest().header.tag == harness.tag > 0
