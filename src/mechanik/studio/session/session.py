"""A session: it carries out what a page asks for, and tells what has become of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mechanik.errors import Refused
from mechanik.live import Live, LiveState
from mechanik.mechanism import Mechanism
from mechanik.spatial.array import Array
from mechanik.studio.messages import events
from mechanik.studio.messages.events import CurveInfo, Event
from mechanik.studio.messages.requests import Request
from mechanik.studio.session import handlers
from mechanik.studio.session.clockwork import Clockwork
from mechanik.studio.session.comparing import Comparing
from mechanik.studio.session.exports import Downloads
from mechanik.studio.session.ghosts import GhostSearch
from mechanik.studio.session.goal import Goal
from mechanik.studio.session.goal_kinds import target_of
from mechanik.studio.session.history import History
from mechanik.studio.session.holding import HeldSince, Holding
from mechanik.studio.session.lookout import Lookout
from mechanik.studio.session.obstacles import Obstacles
from mechanik.studio.session.on_scene import SliderHeld
from mechanik.studio.session.opening import Opening
from mechanik.studio.session.programs import Programs
from mechanik.studio.session.recorder import Recorder
from mechanik.studio.session.scene_like import SceneLike
from mechanik.studio.session.setup import Setup
from mechanik.studio.session.stage import Stage
from mechanik.studio.session.steps import Steps
from mechanik.studio.session.telling import Telling
from mechanik.studio.session.watchers import Watchers

GoalWatcher = Callable[[int, Array], None]


class Session(Opening, Programs, Obstacles, Holding, Steps, Telling):
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
        self._tell, self.show_frame, self.key = tell, show, key
        self.scenes: Mapping[str, Callable[[], SceneLike]] = {} if scenes is None else scenes
        self.stage: Stage | None = None
        self.scene: SceneLike | None = None
        self.curves: Sequence[CurveInfo] = []
        self.history, self.recorder = History(), Recorder()
        self.downloads = Downloads(key)
        self.ghosts, self.comparing = GhostSearch(), Comparing(show)
        self.lookout = Lookout(self.tell)
        self.clockwork = Clockwork(self)
        self.goal_watchers: list[GoalWatcher] = []
        self.watchers = Watchers()
        self.held_since: HeldSince | None = None
        self.slider_held: SliderHeld | None = None
        self.last_held: tuple[int, int] | None = None
        self.next_number = 1
        self.revision = self.order = self.stages = self.opened = self.next_opened = 0
        self.radius = 1.0
        self.is_closed = self.is_scene_at_work = self.was_put_back = False

    def tell(self, event: Event) -> None:
        """Tell all pages, from any thread; what a recording holds of it is recorded."""
        self.recorder.note(event)
        self._tell(event)

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

    @property
    def file_bytes(self) -> int:
        """Of the files that came along with what stands here, and with what undo and redo would bring back."""
        return 0 if self.stage is None else self.history.file_bytes(self.stage.table)

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
        before, order, said = stage.setup, self.order, stage.said
        stage.apply(setup, stage.held)
        if setup.goals is not before.goals and order == self.order:
            self.tell_goals()
        if (setup.bounds, setup.rests, setup.locked) != (before.bounds, before.rests, before.locked):
            self.tell_freedoms()
        if setup.hidden != before.hidden:
            self.tell(events.Shown([name not in setup.hidden for name in self.mechanism.links]))
        if setup.solver != before.solver or setup.options is not before.options or stage.said != said:
            self.tell_solving()
        if setup.terrain is not before.terrain:
            self.tell_scene()
        if setup.collisions is not before.collisions:
            self.tell_collisions(before.collisions)
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
        self.comparing.aim(stage, targets)
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
            self.lookout.close()
            if self.stage is not None:
                self.stage.close()

    def heard(self, stage: int, state: LiveState) -> None:
        """In the solver's thread. stage: its number, as `stages` counts them."""
        self.recorder.add(state.q)
        self.watchers.put((stage, state.sequence), state)
