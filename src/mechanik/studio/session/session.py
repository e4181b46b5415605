"""A session: it carries out what a page asks for, and tells what has become of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mechanik import gallery
from mechanik.errors import Refused, UnknownName
from mechanik.live import Live, LiveState
from mechanik.mechanism import Mechanism
from mechanik.spatial.array import Array, ArrayLike
from mechanik.studio.messages import events
from mechanik.studio.messages.events import CurveInfo, Event
from mechanik.studio.messages.requests import Request
from mechanik.studio.session import handlers
from mechanik.studio.session.clockwork import Clockwork
from mechanik.studio.session.comparing import Comparing
from mechanik.studio.session.exports import Downloads
from mechanik.studio.session.first_goals import Handle, first_goals
from mechanik.studio.session.ghosts import GhostSearch
from mechanik.studio.session.goal import Goal
from mechanik.studio.session.goal_kinds import target_of
from mechanik.studio.session.history import History, Snapshot
from mechanik.studio.session.holding import Holding
from mechanik.studio.session.model_info import ball_around
from mechanik.studio.session.programs import Programs
from mechanik.studio.session.recorder import Recorder
from mechanik.studio.session.scene_like import SceneLike
from mechanik.studio.session.setup import Setup, read_bounds, read_rests
from mechanik.studio.session.stage import Stage, WaysOut
from mechanik.studio.session.table import Source, Table
from mechanik.studio.session.telling import Telling
from mechanik.studio.session.watchers import Watchers

GoalWatcher = Callable[[int, Array], None]


class Session(Programs, Holding, Telling):
    """One mechanism on the table, touched by pages (`ask`, `hand`) and by programs and scenes (`Programs`).

    Everything but states comes from one thread at a time, or takes `lock`. States come from the solver's thread, which
    never takes that lock.

    Args:
        tell, show: take events and packed state frames; may be called from any thread, and must not wait for anyone.
        scenes: the demonstrations that there are, by name.
        key: under which the server finds meshes and files of this session.
    """

    def __init__(
        self,
        tell: Callable[[Event], None],
        show: Callable[[bytes], None],
        *,
        scenes: Mapping[str, Callable[[], SceneLike]] | None = None,
        key: str = "",
    ) -> None:
        self.lock = threading.RLock()
        self.tell, self.show_frame, self.key = tell, show, key
        self.scenes: Mapping[str, Callable[[], SceneLike]] = {} if scenes is None else scenes
        self.stage: Stage | None = None
        self.scene: SceneLike | None = None
        self.curves: list[CurveInfo] = []
        self.history, self.recorder = History(), Recorder()
        self.downloads = Downloads(key)
        self.ghosts, self.comparing = GhostSearch(), Comparing(show)
        self.clockwork = Clockwork(self)
        self.goal_watchers: list[GoalWatcher] = []
        self.watchers = Watchers()
        self.held_since: tuple[str, Snapshot] | None = None
        self.last_held: tuple[int, int] | None = None
        self.next_number = 1
        self.revision = self.order = 0
        self.radius = 1.0
        self.is_closed = self.is_scene_at_work = self.was_put_back = False

    # ---- what stands here -------------------------------------------------------------------

    @property
    def on_stage(self) -> Stage:
        """The stage; refused while nothing was opened."""
        if self.stage is None:
            raise Refused("there is no mechanism yet; open one first")
        return self.stage

    @property
    def mechanism(self) -> Mechanism:
        return self.on_stage.table.mechanism

    @property
    def goals(self) -> tuple[Goal, ...]:
        return self.on_stage.setup.goals

    @property
    def live(self) -> Live:
        return self.on_stage.live

    @property
    def q(self) -> Array:
        """Where the mechanism stands, (nq,), read-only."""
        return self.on_stage.q

    @property
    def running(self) -> bool:
        return self.stage is None or self.stage.running

    @property
    def is_animated(self) -> bool:
        """Whether `tick` should come at the rate of the screen."""
        return self.recorder.is_playing or (self.scene is not None and self.scene.is_moving)

    # ---- opening ----------------------------------------------------------------------------

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
        """Put a copy of a mechanism on the table, where it stands or at q, and forget what was there.

        Args:
            files: of its meshes, by the path or uri that those carry. If they are given, no file of this machine is
                read; if not, those that a reader has found.
            source: the kind and the text by which `EditModel` would make it.
            goals: handles to begin with; None: those that fit the mechanism, see `first_goals`.
            resets_view: whether cameras go to where all of it is seen.
        """
        with self.lock:
            own = mechanism.copy()
            self.put(
                Table(own, title, files, source, may_read=files is None, address=f"/mesh/{self.key}/"),
                own.q if q is None else own.clamp(q),
                first_goals(own) if goals is None else goals,
                resets_view=resets_view,
            )
            if not self.is_scene_at_work:
                self.end_scene()  # now that its ground is gone as well

    def open_gallery(self, name: str) -> None:
        mechanism = gallery.make(name)
        home = mechanism.configurations.get("home")
        self.open(mechanism, title=name.replace("_", " "), q=home)

    def open_scene(self, name: str) -> None:
        if name not in self.scenes:
            raise UnknownName("scene", name, self.scenes)
        scene = self.scenes[name]()
        self.end_scene()
        self.scene = scene
        try:
            with self.scene_works():
                scene.open(self)
        except BaseException:
            self.end_scene()
            raise
        self.history.clear()
        self.tell(self.history.info())
        self.tell_scene()

    @contextmanager
    def scene_works(self) -> Generator[None]:
        """What is opened inside belongs to the scene, and does not end it."""
        before, self.is_scene_at_work = self.is_scene_at_work, True
        try:
            yield
        finally:
            self.is_scene_at_work = before

    def end_scene(self) -> None:
        """Leave the demonstration; its mechanism stays until another is opened."""
        if self.scene is None and not self.curves:
            return
        self.scene, self.curves = None, []
        self.tell_scene()

    def put(
        self,
        table: Table,
        q: Array,
        handles: Sequence[Handle],
        setup: Setup | None = None,
        resets_view: bool = True,
    ) -> None:
        """Another mechanism on the table; the solver is as before if it can take it."""
        freedoms = table.anatomy.freedoms
        before = self.stage
        fresh = Setup(bounds=read_bounds(table.mechanism, freedoms), rests=read_rests(table.mechanism, freedoms))
        if setup is None:
            X = table.anatomy.poses(q)
            self.radius = ball_around(table.mechanism, X)[1]
            made = tuple(self.new_goal(fresh, table, X, h.kind, h.link, at=h.at, pinned=h.pinned) for h in handles)
            setup = replace(fresh, goals=made)
        running = before is None or before.running
        stage = self.staged(table, setup, q, running)
        if before is not None:
            before.close()
        self.stage = stage
        self.held_since = self.last_held = None
        self.history.clear()
        self.recorder.forget()
        self.comparing.end()
        self.ghosts.drop()
        self.tell_all(resets_view=resets_view)
        stage.wake()

    def staged(self, table: Table, setup: Setup, q: Array, running: bool) -> Stage:
        tag = 0 if self.stage is None else self.stage.tag
        return Stage(table, setup, q, self.revision, WaysOut(self.show_frame, self.heard, self.announce), running, tag)

    # ---- what pages ask ---------------------------------------------------------------------

    def ask(self, request: Request) -> None:
        """Carry it out, or raise a `MechanikError` and change nothing."""
        with self.lock:
            if self.is_closed:
                raise Refused("this session is closed")
            handlers.carry_out(self, request)

    # ---- changing ---------------------------------------------------------------------------

    def change(self, setup: Setup) -> None:
        """Bring everything in line with another setup, and tell what is different."""
        stage = self.on_stage
        before, order = stage.setup, self.order
        stage.apply(setup, stage.held)
        if setup.goals is not before.goals and order == self.order:
            self.tell_goals()
        if (setup.bounds, setup.rests, setup.locked) != (before.bounds, before.rests, before.locked):
            self.tell_freedoms()
        if setup.hidden != before.hidden:
            self.tell(events.Shown([name not in setup.hidden for name in self.mechanism.links]))
        if setup.solver != before.solver or setup.options is not before.options:
            self.tell_solving()
        if setup.terrain is not before.terrain:
            self.tell_scene()
        self.comparing.ask(stage.asked)
        self.ghosts.drop()

    def shift_goals(self, goals: Mapping[int, Goal]) -> None:
        """Goals with other frames, and nothing else that is new."""
        stage = self.on_stage
        targets: dict[str, Any] = {}
        setup, is_new = stage.setup, False
        for number, goal in goals.items():
            before = setup.goal(number)
            setup = setup.with_goal(goal)
            target = target_of(goal, before)
            targets[goal.name] = target
            is_new |= target is None and goal.enabled and goal.kind != "on_terrain"
        if is_new:
            stage.apply(setup, stage.held)
        else:
            stage.retarget(setup, {name: target for name, target in targets.items() if target is not None})
        self.comparing.aim(stage.asked, targets)
        self.ghosts.drop()

    # ---- time, files, the end ---------------------------------------------------------------

    def tick(self, now: float) -> None:
        """
        Args:
            now: s, of a clock that never goes back.
        """
        with self.lock:
            if not self.is_closed and self.stage is not None:
                self.clockwork.tick(now)

    def mesh(self, number: int) -> tuple[bytes, str]:
        """The bytes of a mesh, and their media type."""
        return self.on_stage.table.meshes.read(number)

    def download(self, key: str) -> tuple[bytes, str, str]:
        """The bytes of a file that was made, its media type and its name."""
        return self.downloads.read(key)

    def close(self) -> None:
        """Stop all threads; what comes after is refused."""
        with self.lock:
            self.is_closed = True
            self.comparing.end()
            self.ghosts.close()
            self.watchers.close()
            if self.stage is not None:
                self.stage.close()

    def heard(self, state: LiveState) -> None:
        """In the solver's thread."""
        self.recorder.add(state.q)
        self.watchers.put(state)
