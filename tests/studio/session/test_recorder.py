"""A motion is recorded, played, shown at a given time, and exported to files that can be read back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from session_harness import SessionHarness

import mechanik as mk
from mechanik.errors import InvalidOperation, MechanikError
from mechanik.motion import record
from mechanik.studio.messages.events import ContactsChanged, Download, Notice, Recording
from mechanik.studio.messages.requests import Export, Play, RecordMotion, Seek
from mechanik.studio.session import motion_recorder as exports
from mechanik.studio.session import motion_recorder as recorder_file
from mechanik.studio.session.loaded_model import LoadedModel
from mechanik.studio.session.model_index import ModelIndex
from mechanik.studio.session.motion_recorder import FILE_TYPES, MotionRecorder


def recorded(harness: SessionHarness) -> None:
    harness.ask(RecordMotion(True))
    for shift in ((0.02, 0.0, 0.0), (0.0, 0.02, 0.0), (0.0, 0.0, -0.02)):
        harness.drag(harness.session.goals[0].number, shift)
    harness.ask(RecordMotion(False))


def fetched(harness: SessionHarness, kind: str) -> tuple[bytes, str, str]:
    harness.ask(Export(kind))  # type: ignore[arg-type]
    download = harness.last(Download)
    return harness.session.read_download(download.address.rpartition("/")[2])


def test_what_was_recorded_is_written_and_read_back() -> None:
    with SessionHarness("delta_robot", key="abc") as harness:
        recorded(harness)
        assert harness.last(Recording).state == "ready"
        times, q = harness.session.recorder.motion()
        assert len(times) > 3
        assert np.array_equal(q[-1], harness.session.q)
        data, media, name = fetched(harness, "json")
        assert (media, name) == ("application/json", "delta_robot.motion.json")
        for again in (record.from_json(data), record.from_npz(fetched(harness, "npz")[0])):
            assert np.allclose(again.times, times)
            assert np.allclose(again.q, q, atol=1e-12)
        assert harness.last(Download).address.startswith("/download/abc/")
        assert b"time" in fetched(harness, "csv")[0]
        assert fetched(harness, "glb")[0][:4] == b"glTF"
        assert fetched(harness, "bvh")[0].startswith(b"HIERARCHY")


def test_the_mechanism_is_written_as_it_stands() -> None:
    with SessionHarness("four_bar") as harness:
        harness.drag(harness.session.goals[0].number, (0.02, 0.0, 0.02))
        for kind in ("mechanism", "urdf"):
            data, _, _ = fetched(harness, kind)
            again = mk.load(data.decode())
            assert np.allclose(again.poses()[:, :3, 3], harness.frame.links[:, :3], atol=1e-9)


def test_exported_files_are_stored_for_a_while_and_an_empty_recording_is_rejected() -> None:
    with SessionHarness("ur5") as harness:
        for kind in FILE_TYPES:
            if kind not in ("mechanism", "urdf"):
                with pytest.raises(InvalidOperation, match="record"):
                    harness.ask(Export(kind))
        harness.ask(Export("mechanism"))
        first = harness.last(Download).address.rpartition("/")[2]
        for _ in range(8):
            harness.ask(Export("mechanism"))
        with pytest.raises(MechanikError):
            harness.session.read_download(first)
        with pytest.raises(MechanikError):
            harness.session.read_download("../../etc/passwd")


def test_a_page_that_plays_by_itself_holds_model_and_motion(monkeypatch: pytest.MonkeyPatch) -> None:
    with SessionHarness("planar_3r") as harness:
        recorded(harness)
        monkeypatch.setattr(exports, "player_script", lambda: "play()")
        page = fetched(harness, "html")[0].decode()
        text = page.partition('id="motion">')[2].partition("</script>")[0]
        data = json.loads(text)
        assert [link["name"] for link in data["model"]["links"]] == list(harness.session.mechanism.links)
        assert len(data["poses"]) == len(data["times"])


def test_playing_shows_what_was_recorded_and_solves_nothing() -> None:
    with SessionHarness("ur5") as harness:
        start = harness.session.q.copy()
        recorded(harness)
        end = harness.session.q.copy()
        harness.ask(Seek(0.0))
        assert np.allclose(harness.session.q, start, atol=1e-9)
        assert harness.rest().goals[0][7:].max() < 1e-6, "the goal came along"
        harness.ask(Play(True))
        assert harness.session.is_animated
        assert not harness.session.live.running
        harness.wait(lambda: harness.tick(0.05) is None and harness.last(Recording).state != "playing")
        assert not harness.session.is_animated
        assert np.allclose(harness.session.q, end, atol=1e-6)
        assert harness.rest().goals[0][7:].max() < 1e-5
        harness.drag(harness.session.goals[0].number, (0.0, 0.01, 0.0))
        assert harness.frame.goals[0][7:].max() < 1e-5, "it follows again"


def test_playback_stops_at_another_request() -> None:
    with SessionHarness("ur5") as harness:
        recorded(harness)
        harness.ask(Play(True, looped=True))
        harness.tick(0.01)
        harness.drag(harness.session.goals[0].number, (0.0, 0.01, 0.0))
        assert not harness.session.recorder.is_playing


def test_a_recording_ends_by_itself_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_file, "MAX_STATES", 5)
    with SessionHarness("ur5") as harness:
        harness.ask(RecordMotion(True))
        for _ in range(8):  # of the hands of a drag the newest wins, so that each gives one state at least
            harness.drag(harness.session.goals[0].number, (0.005, 0.0, 0.0), steps=3)
        harness.wait(lambda: not harness.session.recorder.is_recording)
        harness.tick()
        assert harness.last(Recording).frames == 5
        assert any("stopped" in notice.text for notice in harness.all(Notice))


def test_playback_interpolates_between_states_and_rests_during_a_pause() -> None:
    arm = mk.gallery.planar_2r()
    model = LoadedModel(arm)
    assert isinstance(model.index, ModelIndex)
    clock = iter((0.0, 0.05, 1.0, 1.05))
    recorder = MotionRecorder(lambda: next(clock))
    a, b, c = np.zeros(2), np.ones(2), 2 * np.ones(2)
    recorder.start(model, a)
    recorder.add(b)
    recorder.add(c)
    assert np.allclose(recorder.seek(0.025), 0.5)
    assert np.array_equal(recorder.seek(0.5), b)
    assert np.array_equal(recorder.seek(99.0), c)


def test_a_clock_that_runs_backwards_leaves_times_in_order() -> None:
    """The cores of a machine may disagree about the time: events were recorded before the beginning."""
    readings = iter((10.0, 9.994, 10.048, 10.042, 10.09))
    recorder, nothing = MotionRecorder(lambda: next(readings)), ContactsChanged(0, [], [], "")
    recorder.start(LoadedModel(mk.gallery.planar_2r()), np.zeros(2))
    recorder.add_event(nothing)
    recorder.add(np.ones(2))
    recorder.add_event(nothing)
    recorder.add(2 * np.ones(2))
    assert [when for when, _ in recorder.events()] == pytest.approx([0.0, 0.048])
    times, q = recorder.motion()
    assert times == pytest.approx([0.0, 0.048, 0.09])
    assert q[:, 0].tolist() == [0.0, 1.0, 2.0]


def test_a_clock_that_runs_back_and_forth_does_not_play_faster() -> None:
    """Each step forward counted, and no step back."""
    with SessionHarness("planar_2r") as harness:
        recorder = harness.session.recorder
        recorder.start(harness.session.active.model, harness.session.q)
        recorder._clock = lambda: recorder._start_time + 9.0
        recorder.stop(harness.session.q + 0.1)
        harness.ask(Play(True))
        for now in (100.0, 100.05, 100.044, 100.05, 100.044, 100.05, 100.1):
            harness.session.tick(now)
        assert recorder.time == pytest.approx(0.1)
