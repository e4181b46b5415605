"""Controls of a scene: sliders, switches, choices, buttons; each that is set is a step of undo with all it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mechanik.errors import Refused
from mechanik.studio.messages import requests
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.session.history import Snapshot
from mechanik.studio.session.telling import values_of

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


class SliderHeld(NamedTuple):
    """A slider that a hand has not let go of.

    Attributes:
        before: how all was when it was first moved; the step is from there.
    """

    name: str
    before: Snapshot


def set_control(session: Session, request: requests.SetControl) -> None:
    scene, slider = session.scene, session.slider_held
    if scene is None:
        raise Refused("no scene is open, so there is nothing of that kind to set")
    values = values_of(scene)
    goes_on = slider is not None and slider.name == request.name and session.history.is_last(slider.before)
    session.slider_held = slider if goes_on and request.is_held else None
    if goes_on and not request.is_held and values.get(request.name) == request.value:
        return  # the hand lets go of the slider where it was
    before, since = session.snapshot(), session.held_since
    try:
        with session.scene_is_told(), session.scene_works():
            scene.set(request.name, request.value)
    except BaseException:
        stage = session.on_stage
        if stage.table is not before.table or stage.setup is not before.setup:
            session.restore(before)
        raise
    control = next(one for one in scene.controls() if one.name == request.name)
    stage = session.on_stage
    is_same = stage.table is before.table and stage.setup is before.setup and values == values_of(scene)
    if goes_on or (is_same and control.kind != "button"):
        return
    if since is not None and since is session.held_since:  # part of what the hand does that holds something
        session.held_since = since._replace(counts=True)
        return
    if since is not None:  # the hand held something of a mechanism that is gone
        before = since.before
    session.push(_words(control), before)
    session.slider_held = SliderHeld(request.name, before) if request.is_held else None
    session.tell(session.history.info())


def _words(control: ControlInfo) -> str:
    """Of the step: without units, as a part of a sentence."""
    title = control.title.partition(",")[0]
    title = title[:1].lower() + title[1:]
    return title if control.kind == "button" else f"{'switch' if control.kind == 'switch' else 'set'} {title}"
