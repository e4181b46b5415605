"""What stands in the world and may be bumped into, as programs, scenes and people put it there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mechanik.collision import Obstacle
from mechanik.collision.avoiding import Avoid
from mechanik.mechanism.door import as_number
from mechanik.spatial import Pose
from mechanik.studio.messages.events import ObstacleMoved
from mechanik.studio.messages.requests import CollisionMode
from mechanik.studio.session.collisions import check_watchable
from mechanik.studio.session.poses import Place, as_matrix, matrix_of
from mechanik.studio.session.telling import obstacle_info

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


class Obstacles:
    """A part of `Session`."""

    def keep_off(
        self,
        avoid: Avoid | None = None,
        *,
        mode: CollisionMode | None = None,
        clearance: float | None = None,
        allow: Iterable[tuple[str, str]] | None = None,
        forbid: Iterable[tuple[str, str]] | None = None,
    ) -> None:
        """What must not bump: "self" and obstacles, which are drawn; and what is done about it. None: as it was.

        Args:
            clearance: m.
            allow, forbid: see `Collider`.
        """
        session = cast("Session", self)
        with session.lock:
            setup = session.on_stage.setup
            now = setup.collisions if avoid is None else setup.collisions.among(session.mechanism, avoid)
            given: dict[str, Any] = {
                "mode": mode,
                "clearance": None if clearance is None else as_number(clearance, "clearance"),
                "allow": None if allow is None else tuple(allow),
                "forbid": None if forbid is None else tuple(forbid),
            }
            changes = {name: value for name, value in given.items() if value is not None}
            session.change(replace(setup, collisions=replace(now, **changes)))

    def add_obstacle(self, *obstacles: Obstacle) -> None:
        """Besides those that stand there already; each has a name that nothing else has."""
        session = cast("Session", self)
        with session.lock:
            setup, table = session.on_stage.setup, session.on_stage.table
            now = setup.collisions
            more = now.among(table.mechanism, [*now.avoid, *obstacles])
            check_watchable(table, more)
            session.change(replace(setup, collisions=more))

    def remove_obstacle(self, *names: str) -> None:
        session = cast("Session", self)
        with session.lock:
            setup = session.on_stage.setup
            session.change(replace(setup, collisions=setup.collisions.without(*names)))

    def move_obstacle(self, name: str, pose: Place) -> None:
        """Put an obstacle elsewhere; a bare point (3,) keeps its turn."""
        session = cast("Session", self)
        with session.lock:
            stage = session.on_stage
            before = stage.setup.collisions.obstacle(name)
            X = as_matrix(pose, before.pose.matrix[:3, :3], "pose of an obstacle")
            moved = before.moved_to(Pose.from_matrix(X))
            # before the solver hears of it: the state that answers must not come first
            session.tell(ObstacleMoved(obstacle_info(moved, stage.table.meshes)))
            stage.rearrange(replace(stage.setup, collisions=stage.setup.collisions.with_obstacle(moved)))
            session.comparing.ask(stage.asked)
            session.ghosts.drop()

    def hold_obstacle(self, numbers: tuple[float, ...]) -> None:
        """The hand has its obstacle at that pose (position, wxyz). If it is gone meanwhile, the hand moves nothing."""
        session = cast("Session", self)
        stage = session.on_stage
        assert stage.held is not None
        if any(one.name == stage.held.name for one in stage.setup.collisions.obstacles):
            self.move_obstacle(stage.held.name, matrix_of(numbers))
