"""Opening of mechanisms and scenes in a session, and replacement of the model by an edited text.

A text is a DH table, an arm list, Mechanik JSON or URDF. Joint values, goals and locks are transferred by name.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from mechanik import gallery
from mechanik.errors import FormatError, MechanikError
from mechanik.formats.load_bytes import load_bytes
from mechanik.gallery.construction import BLUE, DARK, add_default_shapes
from mechanik.model import Mechanism
from mechanik.objectives import Objective
from mechanik.spatial.array import Array, ArrayLike
from mechanik.studio.messages.requests import EditKind
from mechanik.studio.session.broadcast import Broadcaster, ModelSlot, SharedParts
from mechanik.studio.session.default_goals import DefaultGoal, default_goals
from mechanik.studio.session.dragging import Dragging, UndoSteps
from mechanik.studio.session.edit_state import (
    CollisionSettings,
    EditState,
    InteractiveGoal,
    read_bounds,
    read_rest_values,
)
from mechanik.studio.session.loaded_model import (
    LoadedModel,
    ModelSource,
    bounding_sphere,
    check_upload_size,
    is_planar_linkage,
)
from mechanik.studio.session.session_editor import GoalTemplate, SessionEditor
from mechanik.studio.session.solve_spec import make_objective
from mechanik.studio.session.undo_history import SceneProtocol, SessionSnapshot

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
        needed = (
            "a JSON object, which begins with '{'" if FIRST_CHARACTER[kind] == "{" else "XML, which begins with '<'"
        )
        raise FormatError(f"this text must be {needed}")
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


def transfer_configuration(old_model: LoadedModel, q: Array, mechanism: Mechanism) -> Array:
    """Return q of the new mechanism, with values by coordinate name and the values of the text for new names."""
    values = dict(zip(old_model.mechanism.space.q_names, q.tolist(), strict=True))
    transferred = mechanism.q
    for k, name in enumerate(mechanism.space.q_names):
        transferred[k] = values.get(name, transferred[k])
    return mechanism.clamp(transferred)


def _fits(objective: Objective, mechanism: Mechanism) -> bool:
    try:
        objective.relations(mechanism)
    except MechanikError:
        return False
    return True


class ModelLoader:
    """Opens mechanisms and scenes in a session; call with the session's lock held.

    Args:
        key: key under which the server finds meshes and files of the session.

    Attributes:
        is_scene_active: whether what is opened belongs to the running scene.
    """

    def __init__(
        self,
        key: str,
        shared: SharedParts,
        *,
        broadcaster: Broadcaster,
        slot: ModelSlot,
        editor: SessionEditor,
        undo: UndoSteps,
        dragging: Dragging,
    ) -> None:
        self._key = key
        self._state, self._history, self._output = shared.state, shared.history, shared.output
        self._broadcaster, self._slot, self._editor = broadcaster, slot, editor
        self._undo, self._dragging = undo, dragging
        self._last_open_id = 0
        self.is_scene_active = False

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
        """Open a copy of a mechanism; see `Session.open`."""
        copy = mechanism.copy()
        model = LoadedModel(copy, title, files, source, may_read_disk=files is None, mesh_address=f"/mesh/{self._key}/")
        q_start = copy.q if q is None else copy.clamp(q)
        initial_goals = default_goals(copy) if goals is None else goals
        if self.is_scene_active:
            self._load_model(model, q_start, initial_goals, resets_view)
            return
        with self._opening(title or copy.name or "a mechanism"):
            self._load_model(model, q_start, initial_goals, resets_view)
            self.close_scene()  # after the load, which has removed its terrain too

    def open_gallery(self, name: str) -> None:
        """Open a mechanism of the gallery, in its configuration "home" if it has one."""
        mechanism = gallery.make(name)
        self.open(mechanism, title=name.replace("_", " "), q=mechanism.configurations.get("home"))

    @contextmanager
    def opening_scene(self, scene: SceneProtocol) -> Generator[None]:
        """Make a scene the running one; the caller opens it inside the context."""
        with self._opening(scene.title):
            self.close_scene()
            self._state.scene = scene
            with self.scene_active():
                yield
            self._broadcaster.broadcast_scene()

    @contextmanager
    def scene_active(self) -> Generator[None]:
        """Mark what is opened inside the context as part of the scene, so that it does not end the scene."""
        before, self.is_scene_active = self.is_scene_active, True
        try:
            yield
        finally:
            self.is_scene_active = before

    def close_scene(self) -> None:
        """End the scene; its mechanism stays until another one is opened."""
        if self._state.scene is None and not self._state.curves:
            return
        self._state.scene, self._state.curves = None, []
        self._broadcaster.broadcast_scene()

    @contextmanager
    def _opening(self, title: str) -> Generator[None]:
        """Make the opening inside the context an undo step, if a mechanism was open before.

        If the context raises, the state before it is restored.
        """
        self._dragging.end_drag()
        before: SessionSnapshot | None = None if self._state.solver_session is None else self._undo.snapshot()
        try:
            yield
        except BaseException:
            if before is not None:
                self._undo.restore(before)
            else:
                self.close_scene()
            raise
        self._last_open_id += 1
        self._state.open_id = self._last_open_id
        if before is not None:
            self._undo.push(f"open {title}", before)
        self._output.broadcast(self._history.info())

    def _load_model(
        self, model: LoadedModel, q: Array, initial_goals: Sequence[DefaultGoal], resets_view: bool = True
    ) -> None:
        """Replace the model and its solver.

        Args:
            model: the new model.
            q: configuration, (nq,).
            initial_goals: goals to add.
            resets_view: whether the camera moves so that everything is visible.
        """
        before, dofs = self._state.solver_session, model.index.dofs
        edit_state = EditState(
            bounds=read_bounds(model.mechanism, dofs), rest_values=read_rest_values(model.mechanism, dofs)
        )
        if is_planar_linkage(model.mechanism, q):
            edit_state = replace(edit_state, collisions=CollisionSettings(mode="off"))
        edit_state = replace(edit_state, goals=self._make_goals(initial_goals, edit_state, model, q))
        solver_session = self._slot.make(model, edit_state, q, running=before is None or before.running)
        self._slot.install(solver_session, resets_view)
        solver_session.resume()

    def _make_goals(
        self, goals: Iterable[DefaultGoal], edit_state: EditState, model: LoadedModel, q: Array
    ) -> tuple[InteractiveGoal, ...]:
        X = model.index.link_poses(q)
        radius = bounding_sphere(model.mechanism, X)[1]
        templates = [GoalTemplate(goal.kind, goal.link, at=goal.at, pinned=goal.pinned) for goal in goals]
        return tuple(self._editor.make_goal(template, edit_state, model, X, radius) for template in templates)

    # ---- edited text ------------------------------------------------------------------------

    def replace_model_from_text(self, kind: EditKind, text: str) -> None:
        """Replace the model by the one that a text describes; a text that cannot be parsed changes nothing."""
        mechanism = read_text(kind, text)
        active = self._state.solver_session
        if active is None:
            self.open(mechanism, title=default_title(kind, mechanism), files={}, source=(kind, text))
            return
        previous_model = active.model
        is_same_kind = kind == previous_model.source[0]
        title = previous_model.title if is_same_kind else default_title(kind, mechanism)
        mechanism.name = mechanism.name or (previous_model.mechanism.name if is_same_kind else DEFAULT_TITLES[kind])
        model = LoadedModel(
            mechanism,
            title,
            previous_model.files,
            (kind, text),
            may_read_disk=False,
            mesh_address=previous_model.mesh_address,
        )
        before, q = self._undo.snapshot(), transfer_configuration(previous_model, active.q, mechanism)
        edit_state = self._transfer_edit_state(active.edit_state, previous_model, model, q, keeps_goals=is_same_kind)
        try:
            solver_session = self._slot.make(model, edit_state, q, active.running)
        except MechanikError:
            collisions = edit_state.collisions
            if collisions.mode == "avoid":
                collisions = replace(collisions, mode="show")
            edit_state = replace(edit_state, solver="lm", options={}, objectives={}, collisions=collisions)
            solver_session = self._slot.make(model, edit_state, q, active.running)
        self._history.push("edit model", before, model)
        self._slot.install(solver_session, resets_view=not is_same_kind)
        solver_session.resume()

    def _transfer_edit_state(
        self, edit_state: EditState, old_model: LoadedModel, model: LoadedModel, q: Array, keeps_goals: bool
    ) -> EditState:
        """Return the edit state for the new mechanism.

        Goals stay on links of the same name or move to the tip; goals and objectives that do not fit are dropped.

        Args:
            keeps_goals: whether the text is a new version of the same model; if not, the goals are the default goals.
        """
        mechanism, dofs = model.mechanism, model.index.dofs
        locked_names = {dof.name for k, dof in enumerate(old_model.index.dofs) if k in edit_state.locked}
        transferred = replace(
            edit_state,
            goals=(),
            locked=frozenset(k for k, dof in enumerate(dofs) if dof.name in locked_names and dof.leader < 0),
            bounds=read_bounds(mechanism, dofs),
            rest_values=read_rest_values(mechanism, dofs),
            objectives={
                name: objective for name, objective in edit_state.objectives.items() if _fits(objective, mechanism)
            },
            hidden=edit_state.hidden & {*model.index.link_names},
        )
        defaults = default_goals(mechanism)
        tips = [goal.link for goal in defaults] or list(model.index.link_names[-1:])
        goals: tuple[InteractiveGoal, ...] = ()
        if keeps_goals:
            on_links = (
                goal if goal.link in model.index.link_numbers else replace(goal, link=tips[0])
                for goal in edit_state.goals
            )
            goals = tuple(goal for goal in on_links if _fits(make_objective(goal, edit_state.terrain), mechanism))
        if edit_state.goals and not goals:
            unpinned = [replace(goal, pinned=False) for goal in defaults]
            goals = self._make_goals(unpinned, transferred, model, q)
        return replace(transferred, goals=goals)
