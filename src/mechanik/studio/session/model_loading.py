"""Opening of mechanisms and scenes in a session, and replacement of the model by an edited text.

A text is a DH table, an arm list (link lengths and joint axes), Mechanik JSON or URDF. Joint values and locks are
transferred by name, objectives if they fit the new mechanism, and goals too if the text is of the same kind as before.
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
from mechanik.studio.session.broadcast import Broadcaster, SharedParts, SolverSessionInstaller
from mechanik.studio.session.default_goals import DefaultGoal, default_goals
from mechanik.studio.session.dragging import Dragging, UndoSteps
from mechanik.studio.session.edit_state import (
    CollisionSettings,
    EditState,
    InteractiveGoal,
    read_limits,
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

LINK_RADIUS_SHARE = 0.035
"""Largest radius of the first link of an arm, as a share of the sum of the link lengths."""
DEFAULT_TITLES = {
    "dh": "Arm from a DH table",
    "arm_2d": "Arm in the plane",
    "arm_3d": "Arm in space",
    "json": "",
    "urdf": "",
}
FIRST_CHARACTERS = {"json": "{", "urdf": "<", "dh": "{", "arm_2d": "{", "arm_3d": "{"}
"""First character of each kind of text, so that no text is taken for a file name."""


def read_text(kind: EditKind, text: str) -> Mechanism:
    """Return the mechanism that a text describes, without access to files of this machine.

    Raises:
        FormatError: the text cannot be parsed, or the mechanism is too large; see `check_upload_size`.
    """
    if not text.lstrip().startswith(FIRST_CHARACTERS[kind]):
        expected_form = (
            "a JSON object, which begins with '{'" if FIRST_CHARACTERS[kind] == "{" else "XML, which begins with '<'"
        )
        raise FormatError(f"this text must be {expected_form}")
    mechanism, _ = load_bytes("text.urdf" if kind == "urdf" else "text.json", text.encode())
    check_upload_size(mechanism)
    return mechanism if kind in ("json", "urdf") else add_bodies(mechanism)


def add_bodies(arm: Mechanism) -> Mechanism:
    """Add visual and collision shapes to an arm without shapes, from a DH table or an arm list, and return the arm."""
    lengths = [float(np.linalg.norm(joint.position)) for joint in arm.joints.values()]
    radius = min(LINK_RADIUS_SHARE * sum(lengths), 0.5 * max(lengths, default=0.0))
    return add_default_shapes(arm, radius, 0.6 * radius, BLUE, DARK)


def default_title(kind: EditKind, mechanism: Mechanism) -> str:
    """Return a title for a mechanism that has no name or is named after its kind; empty: its name is the title."""
    return DEFAULT_TITLES[kind] if mechanism.name in ("", kind) else ""


def transfer_configuration(previous_model: LoadedModel, q: Array, mechanism: Mechanism) -> Array:
    """Return the configuration (nq,) of the new mechanism, clamped to its limits.

    Coordinates whose names the previous mechanism has too keep their values; others have the values of the new
    mechanism.

    Args:
        previous_model: the previous model.
        q: its configuration, (nq,).
        mechanism: the new mechanism.
    """
    values = dict(zip(previous_model.mechanism.space.q_names, q.tolist(), strict=True))
    q_new = mechanism.q
    for k, name in enumerate(mechanism.space.q_names):
        q_new[k] = values.get(name, q_new[k])
    return mechanism.clamp(q_new)


def _fits(objective: Objective, mechanism: Mechanism) -> bool:
    """Return whether a mechanism has what an objective needs, such as its link."""
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
        is_scene_code_running: whether code of a scene runs; a mechanism that it opens belongs to the scene.
    """

    def __init__(
        self,
        key: str,
        shared: SharedParts,
        *,
        broadcaster: Broadcaster,
        installer: SolverSessionInstaller,
        editor: SessionEditor,
        undo: UndoSteps,
        dragging: Dragging,
    ) -> None:
        self._key = key
        self._state, self._history, self._output = shared.state, shared.history, shared.output
        self._broadcaster, self._installer, self._editor = broadcaster, installer, editor
        self._undo, self._dragging = undo, dragging
        self._last_open_id = 0
        self.is_scene_code_running = False

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
        if self.is_scene_code_running:
            self._load_model(model, q_start, initial_goals, resets_view)
            return
        with self._opening(title or copy.name or "a mechanism"):
            self._load_model(model, q_start, initial_goals, resets_view)
            self.close_scene()  # after the load, which has removed the terrain of the scene

    def open_gallery(self, name: str) -> None:
        """Open a mechanism of the gallery, in its configuration "home" if it has one."""
        mechanism = gallery.make(name)
        self.open(mechanism, title=name.replace("_", " "), q=mechanism.configurations.get("home"))

    @contextmanager
    def opening_scene(self, scene: SceneProtocol) -> Generator[None]:
        """Make a scene the open scene; the caller opens its mechanism inside the context."""
        with self._opening(scene.title):
            self.close_scene()
            self._state.scene = scene
            with self.scene_code_running():
                yield
            self._broadcaster.broadcast_scene()

    @contextmanager
    def scene_code_running(self) -> Generator[None]:
        """Mark mechanisms that are opened inside the context as parts of the scene, so that they do not close it."""
        was_running, self.is_scene_code_running = self.is_scene_code_running, True
        try:
            yield
        finally:
            self.is_scene_code_running = was_running

    def close_scene(self) -> None:
        """Close the scene and remove all curves; the mechanism stays open."""
        if self._state.scene is None and not self._state.curves:
            return
        self._state.scene, self._state.curves = None, []
        self._broadcaster.broadcast_scene()

    @contextmanager
    def _opening(self, title: str) -> Generator[None]:
        """Make the opening inside the context an undo step, if a mechanism was open before.

        If the context raises, the previous mechanism and scene are restored; if no mechanism was open, only the scene
        is closed.
        """
        self._dragging.end_drag()
        has_mechanism = self._state.solver_session is not None
        snapshot_before: SessionSnapshot | None = self._undo.snapshot() if has_mechanism else None
        try:
            yield
        except BaseException:
            if snapshot_before is not None:
                self._undo.restore(snapshot_before)
            else:
                self.close_scene()
            raise
        self._last_open_id += 1
        self._state.open_id = self._last_open_id
        if snapshot_before is not None:
            self._undo.push(f"open {title}", snapshot_before)
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
        previous_solver_session, dofs = self._state.solver_session, model.index.dofs
        edit_state = EditState(
            limits=read_limits(model.mechanism, dofs), rest_values=read_rest_values(model.mechanism, dofs)
        )
        if is_planar_linkage(model.mechanism, q):
            edit_state = replace(edit_state, collision_settings=CollisionSettings(mode="off"))
        edit_state = replace(edit_state, goals=self._make_goals(initial_goals, edit_state, model, q))
        solver_session = self._installer.make(
            model, edit_state, q, running=previous_solver_session is None or previous_solver_session.running
        )
        self._installer.install(solver_session, resets_view)
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
        """Replace the model by the model that a text describes.

        If the solver rejects the present settings for the new model, the method is "lm" without options, objectives are
        dropped, and collisions are no longer avoided.

        Raises:
            FormatError: the text cannot be parsed, or the mechanism is too large; nothing is changed.
            MechanikError: the solver rejects the new model with these settings too; nothing is changed.
        """
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
        snapshot_before, q = self._undo.snapshot(), transfer_configuration(previous_model, active.q, mechanism)
        edit_state = self._transfer_edit_state(active.edit_state, previous_model, model, q, keeps_goals=is_same_kind)
        try:
            solver_session = self._installer.make(model, edit_state, q, active.running)
        except MechanikError:
            collision_settings = edit_state.collision_settings
            if collision_settings.mode == "avoid":
                collision_settings = replace(collision_settings, mode="show")
            edit_state = replace(
                edit_state, solver="lm", options={}, objectives={}, collision_settings=collision_settings
            )
            solver_session = self._installer.make(model, edit_state, q, active.running)
        self._history.push("edit model", snapshot_before, model)
        self._installer.install(solver_session, resets_view=not is_same_kind)
        solver_session.resume()

    def _transfer_edit_state(
        self, edit_state: EditState, previous_model: LoadedModel, model: LoadedModel, q: Array, keeps_goals: bool
    ) -> EditState:
        """Return the edit state for the new mechanism.

        Goals stay on links of the same name, or move to the first tip link. Goals and objectives that do not fit the
        mechanism are dropped. If there were goals and none remains, default goals are made, none of them pinned.

        Args:
            keeps_goals: whether to keep goals, because the text is a new version of the same model; if not, default
                goals replace them.
        """
        mechanism, dofs = model.mechanism, model.index.dofs
        locked_names = {dof.name for k, dof in enumerate(previous_model.index.dofs) if k in edit_state.locked_dofs}
        new_edit_state = replace(
            edit_state,
            goals=(),
            locked_dofs=frozenset(k for k, dof in enumerate(dofs) if dof.name in locked_names and dof.leader_index < 0),
            limits=read_limits(mechanism, dofs),
            rest_values=read_rest_values(mechanism, dofs),
            objectives={
                name: objective for name, objective in edit_state.objectives.items() if _fits(objective, mechanism)
            },
            hidden_links=edit_state.hidden_links & {*model.index.link_names},
        )
        default_goal_list = default_goals(mechanism)
        tip_links = [goal.link for goal in default_goal_list] or list(model.index.link_names[-1:])
        goals: tuple[InteractiveGoal, ...] = ()
        if keeps_goals:
            moved_goals = (
                goal if goal.link in model.index.link_indices else replace(goal, link=tip_links[0])
                for goal in edit_state.goals
            )
            goals = tuple(goal for goal in moved_goals if _fits(make_objective(goal, edit_state.terrain), mechanism))
        if edit_state.goals and not goals:
            unpinned_goals = [replace(goal, pinned=False) for goal in default_goal_list]
            goals = self._make_goals(unpinned_goals, new_edit_state, model, q)
        return replace(new_edit_state, goals=goals)
