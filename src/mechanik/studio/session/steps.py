"""How far a step of undo reaches, and how all is as it was."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import numpy as np

from mechanik.studio.session.history import Snapshot

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


class Steps:
    """A part of `Session`."""

    @contextmanager
    def step(self, words: str) -> Generator[None]:
        """What happens inside is one step of undo; none if it raises."""
        session = cast("Session", self)
        before = session.snapshot()
        yield
        session.push(words, before)
        session.tell(session.history.info())

    def push(self, words: str, before: Snapshot) -> None:
        """A step from there to how all is now."""
        session = cast("Session", self)
        session.history.push(words, before, session.on_stage.table)

    def snapshot(self) -> Snapshot:
        session = cast("Session", self)
        stage, scene = session.on_stage, session.scene
        kept = None if scene is None else scene.keep()
        q, state = stage.q, stage.latest
        is_there = state is not None and np.array_equal(state.q, q)
        return Snapshot(
            stage.table, stage.setup, q, stage.is_at_rest, state if is_there else None, session.opened, scene, kept,
            session.curves,
        )  # fmt: skip

    def restore(self, kept: Snapshot) -> None:
        """Stand there again, to the bit."""
        session = cast("Session", self)
        stage = session.on_stage
        is_another = kept.table is not stage.table
        other = session.staged(kept.table, kept.setup, kept.q, stage.running) if is_another else stage
        with session.scene_is_told():
            session.scene, session.curves = kept.scene, kept.curves
            if kept.scene is not None:
                kept.scene.bring_back(kept.kept)
            if is_another:
                session.stage = other
                stage.close()
                session.forget_motions()
                session.tell_all(resets_view=kept.opened != session.opened)
            else:
                with stage.still(wakes=False):
                    session.change(kept.setup)
            session.opened = kept.opened
            other.place(kept.q, wakes=not kept.is_at_rest, state=kept.state)
            session.comparing.move(kept.q)
