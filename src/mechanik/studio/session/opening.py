"""Mechanisms and scenes that are put on the table."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from mechanik import gallery
from mechanik.errors import UnknownName
from mechanik.mechanism import Mechanism
from mechanik.spatial.array import Array, ArrayLike
from mechanik.studio.session.collisions import Collisions
from mechanik.studio.session.first_goals import Handle, first_goals
from mechanik.studio.session.model_info import ball_around, is_flat_linkage
from mechanik.studio.session.setup import Setup, read_bounds, read_rests
from mechanik.studio.session.stage import Stage
from mechanik.studio.session.table import Source, Table
from mechanik.studio.session.ways_out import WaysOut

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


class Opening:
    """A part of `Session`."""

    def open(
        self,
        mechanism: Mechanism,
        *,
        title: str = "",
        files: Mapping[str, bytes] | None = None,
        source: Source = ("", ""),
        goals: Sequence[Handle] | None = None,
        q: ArrayLike | None = None,
        resets_view: bool = True,
    ) -> None:
        """Put a copy of a mechanism on the table, where it stands or at q. Undo brings back what was there.

        Args:
            files: of its meshes, by the path or uri that those carry. If they are given, no file of this machine is
                read; if not, those that a reader has found.
            source: the kind and the text by which `EditModel` would make it.
            goals: handles to begin with; None: those that fit the mechanism, see `first_goals`.
            resets_view: whether cameras go to where all of it is seen.
        """
        session = cast("Session", self)
        with session.lock:
            own = mechanism.copy()
            table = Table(own, title, files, source, may_read=files is None, address=f"/mesh/{session.key}/")
            place = own.q if q is None else own.clamp(q)
            handles = first_goals(own) if goals is None else goals
            if session.is_scene_at_work:
                self.put(table, place, handles, resets_view)
                return
            with self.another(title or own.name or "a mechanism"):
                self.put(table, place, handles, resets_view)
                self.end_scene()  # now that its ground is gone as well

    def open_gallery(self, name: str) -> None:
        mechanism = gallery.make(name)
        home = mechanism.configurations.get("home")
        self.open(mechanism, title=name.replace("_", " "), q=home)

    def open_scene(self, name: str) -> None:
        session = cast("Session", self)
        if name not in session.scenes:
            raise UnknownName("scene", name, session.scenes)
        scene = session.scenes[name]()
        with self.another(scene.title):
            self.end_scene()
            session.scene = scene
            with self.scene_works():
                scene.open(session)
            session.tell_scene()

    @contextmanager
    def another(self, title: str) -> Generator[None]:
        """Something of that title is put on the table inside, which is a step of undo if something was there before;
        if that raises, all is as before."""
        session = cast("Session", self)
        session.let_go()
        before = None if session.stage is None else session.snapshot()
        try:
            yield
        except BaseException:
            if before is not None:
                session.restore(before)
            else:
                self.end_scene()
            raise
        session.opened = session.next_opened = session.next_opened + 1
        if before is not None:
            session.push(f"open {title}", before)
        session.tell(session.history.info())

    @contextmanager
    def scene_works(self) -> Generator[None]:
        """What is opened inside belongs to the scene, and does not end it."""
        session = cast("Session", self)
        before, session.is_scene_at_work = session.is_scene_at_work, True
        try:
            yield
        finally:
            session.is_scene_at_work = before

    def end_scene(self) -> None:
        """Leave the demonstration; its mechanism stays until another is opened."""
        session = cast("Session", self)
        if session.scene is None and not session.curves:
            return
        session.scene, session.curves = None, []
        session.tell_scene()

    def put(self, table: Table, q: Array, handles: Sequence[Handle], resets_view: bool = True) -> None:
        """Another mechanism on the table."""
        session = cast("Session", self)
        before, freedoms = session.stage, table.anatomy.freedoms
        fresh = Setup(bounds=read_bounds(table.mechanism, freedoms), rests=read_rests(table.mechanism, freedoms))
        if is_flat_linkage(table.mechanism, q):
            fresh = replace(fresh, collisions=Collisions(mode="off"))
        X = table.anatomy.poses(q)
        session.radius = ball_around(table.mechanism, X)[1]
        made = tuple(session.new_goal(fresh, table, X, h.kind, h.link, at=h.at, pinned=h.pinned) for h in handles)
        stage = self.staged(table, replace(fresh, goals=made), q, running=before is None or before.running)
        if before is not None:
            before.close()
        session.stage = stage
        self.forget_motions()
        session.tell_all(resets_view=resets_view)
        stage.wake()

    def staged(self, table: Table, setup: Setup, q: Array, running: bool) -> Stage:
        """To be put in the place of the stage, by whoever asks for it."""
        session = cast("Session", self)
        tag = 0 if session.stage is None else session.stage.tag
        ways_out = WaysOut(
            session.show_frame, partial(session.heard, session.stages + 1), session.lookout.look, session.announce
        )
        stage = Stage(table, setup, q, session.revision, ways_out, running, tag)
        session.stages += 1
        return stage

    def forget_motions(self) -> None:
        """What a hand holds, was recorded, compared or looked for was of another mechanism."""
        session = cast("Session", self)
        session.held_since = session.last_held = None
        session.recorder.forget()
        session.comparing.end()
        session.ghosts.drop()
