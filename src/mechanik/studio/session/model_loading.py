"""Opening of mechanisms and scenes in a session, and replacement of the model by an edited text.

A text is a DH table, an arm list, Mechanik JSON or URDF. Joint values, goals and locks are transferred by name.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from mechanik import gallery
from mechanik.errors import FormatError, MechanikError, UnknownName
from mechanik.formats.load_bytes import load_bytes
from mechanik.gallery.construction import BLUE, DARK, add_default_shapes
from mechanik.model import Mechanism
from mechanik.spatial.array import Array, ArrayLike
from mechanik.studio.messages.requests import EditKind
from mechanik.studio.session.collision_monitor import CollisionSettings
from mechanik.studio.session.default_goals import DefaultGoal, default_goals
from mechanik.studio.session.edit_state import EditState, read_bounds, read_rest_values
from mechanik.studio.session.interactive_goals import InteractiveGoal, make_objective
from mechanik.studio.session.loaded_model import (
    LoadedModel,
    ModelSource,
    bounding_sphere,
    check_upload_size,
    is_planar_linkage,
)

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


class ModelLoading:
    """Opening of mechanisms and scenes; a part of `Session`."""

    def open(
        self,
        mechanism: Mechanism,
        *,
        title: str = "",
        files: Mapping[str, bytes] | None = None,
        source: ModelSource = ("", ""),
        goals: Sequence[DefaultGoal] | None = None,
        q: ArrayLike | None = None,
        resets_view: bool = True,
    ) -> None:
        """Open a copy of a mechanism; undo restores the previous one.

        Args:
            mechanism: the mechanism.
            title: title for users; default: its name.
            files: mesh files, by the path or uri in the meshes. If given, no file of this machine is read; None: files
                that a file reader has found are read.
            source: kind and text from which `EditModel` would make it.
            goals: initial goals; None: `default_goals`.
            q: configuration, (nq,), clamped to the limits; None: the present one of the mechanism.
            resets_view: whether the camera moves so that everything is visible.
        """
        session = cast("Session", self)
        with session.lock:
            own = mechanism.copy()
            table = LoadedModel(
                own, title, files, source, may_read_disk=files is None, mesh_address=f"/mesh/{session.key}/"
            )
            place = own.q if q is None else own.clamp(q)
            handles = default_goals(own) if goals is None else goals
            if session.is_scene_active:
                self.load_model(table, place, handles, resets_view)
                return
            with self.replacing_model(title or own.name or "a mechanism"):
                self.load_model(table, place, handles, resets_view)
                self.close_scene()  # after the load, which has removed its terrain too

    def open_gallery(self, name: str) -> None:
        """Open a mechanism of the gallery, in its configuration "home" if it has one."""
        mechanism = gallery.make(name)
        home = mechanism.configurations.get("home")
        self.open(mechanism, title=name.replace("_", " "), q=home)

    def open_scene(self, name: str) -> None:
        """Open a scene.

        Raises:
            UnknownName: there is no such scene.
        """
        session = cast("Session", self)
        if name not in session.scenes:
            raise UnknownName("scene", name, session.scenes)
        scene = session.scenes[name]()
        with self.replacing_model(scene.title):
            self.close_scene()
            session.state.scene = scene
            with self.scene_active():
                scene.open(session)
            session.broadcaster.broadcast_scene()

    @contextmanager
    def replacing_model(self, title: str) -> Generator[None]:
        """Make the opening inside the context an undo step, if a mechanism was open before.

        If the context raises, the state before it is restored.
        """
        session = cast("Session", self)
        session.end_drag()
        before = None if session.state.solver_session is None else session.snapshot()
        try:
            yield
        except BaseException:
            if before is not None:
                session.restore(before)
            else:
                self.close_scene()
            raise
        session.state.open_id = session.next_open_id = session.next_open_id + 1
        if before is not None:
            session.push_step(f"open {title}", before)
        session.output.broadcast(session.history.info())

    @contextmanager
    def scene_active(self) -> Generator[None]:
        """Mark what is opened inside the context as part of the scene, so that it does not end the scene."""
        session = cast("Session", self)
        before, session.is_scene_active = session.is_scene_active, True
        try:
            yield
        finally:
            session.is_scene_active = before

    def close_scene(self) -> None:
        """End the scene; its mechanism stays until another one is opened."""
        session = cast("Session", self)
        if session.state.scene is None and not session.state.curves:
            return
        session.state.scene, session.state.curves = None, []
        session.broadcaster.broadcast_scene()

    def load_model(
        self, model: LoadedModel, q: Array, initial_goals: Sequence[DefaultGoal], resets_view: bool = True
    ) -> None:
        """Replace the model and its solver.

        Args:
            model: the new model.
            q: configuration, (nq,).
            initial_goals: goals to add.
            resets_view: whether the camera moves so that everything is visible.
        """
        session = cast("Session", self)
        before, freedoms = session.state.solver_session, model.index.dofs
        fresh = EditState(
            bounds=read_bounds(model.mechanism, freedoms), rest_values=read_rest_values(model.mechanism, freedoms)
        )
        if is_planar_linkage(model.mechanism, q):
            fresh = replace(fresh, collisions=CollisionSettings(mode="off"))
        X = model.index.link_poses(q)
        session.state.model_radius = bounding_sphere(model.mechanism, X)[1]
        made = tuple(
            session.make_goal(fresh, model, X, h.kind, h.link, at=h.at, pinned=h.pinned) for h in initial_goals
        )
        stage = session.slot.make(model, replace(fresh, goals=made), q, running=before is None or before.running)
        session.slot.install(stage, resets_view)
        stage.resume()


BONE_THICKNESS_SHARE = 0.035
"""Radius of the shapes of an arm, as a share of its length."""
DEFAULT_TITLES = {
    "dh": "Arm from a DH table",
    "arm_2d": "Arm in the plane",
    "arm_3d": "Arm in space",
    "json": "",
    "urdf": "",
}
FIRST_CHARACTER = {"json": "{", "urdf": "<", "dh": "{", "arm_2d": "{", "arm_3d": "{"}
"""First character of each kind of text, so that no text is taken for a file name."""


def read_text(kind: EditKind, text: str) -> Mechanism:
    """Return the mechanism that a text describes, without access to files of this machine.

    Raises:
        FormatError: the text cannot be parsed, or the mechanism is too large.
    """
    if not text.lstrip().startswith(FIRST_CHARACTER[kind]):
        wanted = (
            "a JSON object, which begins with '{'" if FIRST_CHARACTER[kind] == "{" else "XML, which begins with '<'"
        )
        raise FormatError(f"this text has to be {wanted}")
    mechanism, _ = load_bytes("text.urdf" if kind == "urdf" else "text.json", text.encode())
    check_upload_size(mechanism)
    return mechanism if kind in ("json", "urdf") else add_bodies(mechanism)


def add_bodies(arm: Mechanism) -> Mechanism:
    """Add visual and collision shapes from joint to joint to an arm of a table or list, which has none."""
    lengths = [float(np.linalg.norm(joint.position)) for joint in arm.joints.values()]
    radius = min(BONE_THICKNESS_SHARE * sum(lengths), 0.5 * max(lengths, default=0.0))
    return add_default_shapes(arm, radius, 0.6 * radius, BLUE, DARK)


def default_title(kind: EditKind, mechanism: Mechanism) -> str:
    """Return a title for a mechanism without a name of its own; "": use its name."""
    return DEFAULT_TITLES[kind] if mechanism.name in ("", kind) else ""


def replace_model_from_text(session: Session, kind: EditKind, text: str) -> None:
    """Replace the model by the one that a text describes; a text that cannot be parsed changes nothing."""
    mechanism = read_text(kind, text)
    stage = session.state.solver_session
    if stage is None:
        session.open(mechanism, title=default_title(kind, mechanism), files={}, source=(kind, text))
        return
    old = stage.model
    is_like_before = kind == old.source[0]
    title = old.title if is_like_before else default_title(kind, mechanism)
    mechanism.name = mechanism.name or (old.mechanism.name if is_like_before else DEFAULT_TITLES[kind])
    table = LoadedModel(mechanism, title, old.files, (kind, text), may_read_disk=False, mesh_address=old.mesh_address)
    before, q = session.snapshot(), transfer_configuration(old, stage.q, mechanism)
    setup = transfer_edit_state(session, stage.edit_state, old, table, q, keeps_goals=is_like_before)
    try:
        other = session.slot.make(table, setup, q, stage.running)
    except MechanikError:
        showing = replace(setup.collisions, mode="show") if setup.collisions.mode == "avoid" else setup.collisions
        other = session.slot.make(
            table, replace(setup, solver="lm", options={}, objectives={}, collisions=showing), q, stage.running
        )
    session.history.push("edit model", before, table)
    session.slot.install(other, resets_view=not is_like_before)
    other.resume()


def transfer_configuration(old_model: LoadedModel, q: Array, mechanism: Mechanism) -> Array:
    """Return q of the new mechanism, with values by coordinate name and the values of the text for new names."""
    values = dict(zip(old_model.mechanism.space.q_names, q.tolist(), strict=True))
    found = mechanism.q
    for k, name in enumerate(mechanism.space.q_names):
        found[k] = values.get(name, found[k])
    return mechanism.clamp(found)


def transfer_edit_state(
    session: Session, edit_state: EditState, old_model: LoadedModel, model: LoadedModel, q: Array, keeps_goals: bool
) -> EditState:
    """Return the edit state for the new mechanism.

    Goals stay on links of the same name or move to the tip; goals and objectives that do not fit are dropped.

    Args:
        keeps_goals: whether the text is a new version of the same model; if not, the goals are the default goals.
    """
    freedoms = model.index.dofs
    names = {one.name for k, one in enumerate(old_model.index.dofs) if k in edit_state.locked}
    fresh = replace(
        edit_state,
        goals=(),
        locked=frozenset(k for k, one in enumerate(freedoms) if one.name in names and one.leader < 0),
        bounds=read_bounds(model.mechanism, freedoms),
        rest_values=read_rest_values(model.mechanism, freedoms),
        objectives={name: one for name, one in edit_state.objectives.items() if _fits(one.relations, model.mechanism)},
        hidden=edit_state.hidden & {*model.index.link_names},
    )
    tips = [handle.link for handle in default_goals(model.mechanism)] or list(model.index.link_names[-1:])
    X = model.index.link_poses(q)
    kept: list[InteractiveGoal] = []
    for goal in edit_state.goals if keeps_goals else ():
        other = goal if goal.link in model.index.link_numbers else replace(goal, link=tips[0])
        if _fits(make_objective(other, edit_state.terrain).relations, model.mechanism):
            kept.append(other)
    if edit_state.goals and not kept:
        kept = [
            session.make_goal(fresh, model, X, one.kind, one.link, at=one.at) for one in default_goals(model.mechanism)
        ]
    return replace(fresh, goals=tuple(kept))


def _fits(relations: object, mechanism: Mechanism) -> bool:
    try:
        relations(mechanism)  # type: ignore[operator]
    except MechanikError:
        return False
    return True
