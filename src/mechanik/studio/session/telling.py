"""What a session tells its pages, and when all of it has to be told."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mechanik.collision import Obstacle
from mechanik.mechanism import HalfSpace, HeightField, PlacedShape
from mechanik.objectives import Terrain
from mechanik.studio.messages import events
from mechanik.studio.messages.checks import Value
from mechanik.studio.messages.events import ObstacleInfo, TerrainInfo
from mechanik.studio.session.collisions import Collisions
from mechanik.studio.session.freedoms import freedom_infos
from mechanik.studio.session.model_info import ball_around, model_info
from mechanik.studio.session.poses import numbers_of
from mechanik.studio.session.scene_like import SceneLike
from mechanik.studio.session.setup import Setup
from mechanik.studio.session.shapes import Meshes

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


class Telling:
    """A part of `Session`."""

    def greet(self) -> None:
        """Tell a page that has just come all that it must know."""
        session = cast("Session", self)
        with session.lock:
            session.tell_scene()
            session.tell(session.recorder.info())
            session.tell(session.history.info())
            if session.stage is not None:
                session.tell_all(resets_view=True, is_new=False)  # of the same order: others may look on
                session.stage.show()
            else:
                session.tell_solving()

    def tell_all(self, resets_view: bool, is_new: bool = True) -> None:
        """The model, its goals, and how it is solved."""
        session = cast("Session", self)
        stage = session.on_stage
        if is_new:
            session.revision += 1
            stage.renumber(session.revision)
        session.radius = ball_around(stage.table.mechanism, stage.table.anatomy.poses(stage.q))[1]
        session.tell(self.model(resets_view))
        session.tell_goals(is_new)
        session.tell_solving()
        self.tell_collisions()
        if not is_new:
            session.tell(session.lookout.info())
        session.tell(session.comparing.info())
        if is_new:
            session.tell(session.history.info())
            session.tell(session.recorder.info())
            stage.show()

    def model(self, resets_view: bool = True) -> events.Model:
        """As pages are told."""
        session = cast("Session", self)
        stage = session.on_stage
        setup = stage.setup
        return model_info(stage.table, stage.q, session.revision, setup.locked, setup.hidden, resets_view)

    def tell_goals(self, is_new: bool = True) -> None:
        """All goals, as they are set up."""
        session = cast("Session", self)
        stage = session.on_stage
        session.order -= not is_new
        stage.reorder(self.announce(stage.setup), shows=is_new)

    def announce(self, setup: Setup) -> int:
        """Tell the goals of a setup, and return the order under which frames have them."""
        session = cast("Session", self)
        session.order += 1
        links = session.on_stage.table.anatomy.links
        session.tell(events.Goals(session.order, [goal.info(links[goal.link]) for goal in setup.goals]))
        return session.order

    def tell_freedoms(self) -> None:
        session = cast("Session", self)
        stage = session.on_stage
        session.tell(
            events.Freedoms(freedom_infos(session.mechanism, stage.table.anatomy.freedoms, stage.setup.locked))
        )

    def tell_solving(self) -> None:
        session = cast("Session", self)
        setup, said = (Setup(), "") if session.stage is None else (session.stage.setup, session.stage.said)
        session.tell(events.Solving(session.running, setup.solver, dict(setup.options), said))

    def tell_collisions(self, before: Collisions | None = None) -> None:
        """What is done about them, and where obstacles stand; only what is new if it is said what was before."""
        session = cast("Session", self)
        stage = session.on_stage
        now = stage.setup.collisions
        if before is None or now.obstacles is not before.obstacles:
            stage.table.meshes.include(one.shape for one in now.obstacles)
            session.tell(self.obstacles())
        if before is None or (now.mode, now.clearance) != (before.mode, before.clearance):
            session.tell(events.Collisions(now.mode, now.clearance))

    def obstacles(self) -> events.Obstacles:
        """As pages are told."""
        stage = cast("Session", self).on_stage
        return events.Obstacles([obstacle_info(one, stage.table.meshes) for one in stage.setup.collisions.obstacles])

    def tell_scene(self) -> None:
        session = cast("Session", self)
        scene, terrain = session.scene, None if session.stage is None else session.stage.setup.terrain
        if scene is None:
            session.tell(events.Scene("", "", "", [], list(session.curves), terrain_info(terrain), False))
            return
        ground = terrain_info(terrain)
        told = events.Scene(
            scene.name, scene.title, scene.about, scene.controls(), list(session.curves), ground, scene.shows_collisions
        )
        session.tell(told)

    @contextmanager
    def scene_is_told(self) -> Generator[None]:
        """After what happens inside pages are told what has become of the scene: only the values of its controls if
        nothing else is new."""
        session = cast("Session", self)
        before = self._scene_without_values()
        yield
        after = self._scene_without_values()
        if any(one is not other for one, other in zip(before[:3], after[:3], strict=True)) or before[3] != after[3]:
            session.tell_scene()
        if session.scene is not None:
            session.tell(events.Controls(values_of(session.scene)))

    def _scene_without_values(self) -> tuple[Any, ...]:
        """The scene, its curves, its ground, and what can be set on its controls."""
        session = cast("Session", self)
        scene, terrain = session.scene, None if session.stage is None else session.stage.setup.terrain
        controls = [] if scene is None else [replace(control, value=0.0) for control in scene.controls()]
        return scene, session.curves, terrain, controls


def values_of(scene: SceneLike) -> dict[str, Value]:
    """Of its controls, by their names."""
    return {control.name: control.value for control in scene.controls()}


def obstacle_info(obstacle: Obstacle, meshes: Meshes) -> ObstacleInfo:
    """As a page is told."""
    drawn = meshes.info(PlacedShape(obstacle.shape, obstacle.pose))
    match obstacle.shape:
        case HalfSpace():
            kind = "half-space"
        case HeightField():
            kind = "height field"
        case _:
            kind = drawn.kind
    return ObstacleInfo(obstacle.name, kind, numbers_of(obstacle.pose.matrix), drawn)


def terrain_info(terrain: Terrain | None) -> TerrainInfo | None:
    """As a page is told."""
    if terrain is None:
        return None
    rows, columns = terrain.heights.shape
    x, y = terrain.origin.tolist()
    return TerrainInfo(columns, rows, terrain.cell, (x, y), terrain.heights.ravel().tolist())
