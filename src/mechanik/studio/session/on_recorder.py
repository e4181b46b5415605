"""The recorder: record, play, look at a moment, and files of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechanik.errors import Refused
from mechanik.studio.messages import requests
from mechanik.studio.session.exports import make_file

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


def record_motion(session: Session, request: requests.RecordMotion) -> None:
    recorder, stage = session.recorder, session.on_stage
    if request.on:
        recorder.begin(stage.table, stage.q, (session.obstacles(), session.lookout.info()))
    else:
        recorder.end(stage.q)
    session.tell(recorder.info())


def play(session: Session, request: requests.Play) -> None:
    recorder, stage = session.recorder, session.on_stage
    if not request.on:
        if recorder.is_playing:
            stop_playing(session)
        return
    if recorder.is_recording:
        recorder.end(stage.q)
    recorder.play(request.speed, request.looped)
    stage.mute(True)
    session.clockwork.begin_playing()
    session.tell(recorder.info())


def stop_playing(session: Session) -> None:
    """The mechanism stands where it was shown last, and goals that are not pinned with it."""
    recorder, stage = session.recorder, session.on_stage
    recorder.is_playing = False
    session.come_along(recorder.at(recorder.time))
    stage.mute(False)
    session.tell(recorder.info())


def seek(session: Session, request: requests.Seek) -> None:
    recorder, stage = session.recorder, session.on_stage
    if recorder.is_recording:
        raise Refused("it records; end the recording first")
    q = recorder.at(request.time)
    if recorder.is_playing:
        stage.show_riding(q, session.riders())
    else:
        session.come_along(q)
    session.tell(recorder.info())


def export(session: Session, request: requests.Export) -> None:
    stage = session.on_stage
    file = make_file(request.kind, stage.table, stage.q, session.recorder, session.model())
    session.tell(session.downloads.add(file))
