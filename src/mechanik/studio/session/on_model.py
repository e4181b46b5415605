"""The mechanism: opened, edited as text, shown or hidden in parts; scenes that are opened; undo and redo."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mechanik.studio.messages import requests
from mechanik.studio.session.editing import edited

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


def open_gallery(session: Session, request: requests.OpenGallery) -> None:
    session.open_gallery(request.name)


def open_scene(session: Session, request: requests.OpenScene) -> None:
    session.open_scene(request.name)


def edit_model(session: Session, request: requests.EditModel) -> None:
    edited(session, request.kind, request.text)


def show_links(session: Session, request: requests.ShowLinks) -> None:
    for name in request.links:
        session.mechanism.link(name)
    setup = session.on_stage.setup
    hidden = setup.hidden - {*request.links} if request.visible else setup.hidden | {*request.links}
    if hidden == setup.hidden:
        return
    with session.step("show links" if request.visible else "hide links"):
        session.change(replace(setup, hidden=frozenset(hidden)))


def undo(session: Session, request: requests.Undo) -> None:
    session.restore(session.history.back(session.snapshot()))
    session.tell(session.history.info())


def redo(session: Session, request: requests.Redo) -> None:
    session.restore(session.history.forth(session.snapshot()))
    session.tell(session.history.info())
