"""The mechanism, its background solver and its frames: what moves, and how it is shown."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from mechanik.errors import MechanikError
from mechanik.live import LiveState
from mechanik.mechanism.door import read_only
from mechanik.spatial.array import Array
from mechanik.studio.session.asking import begun, edited, told
from mechanik.studio.session.collisions import Keeper
from mechanik.studio.session.fitting import fitted
from mechanik.studio.session.lookout import Sight
from mechanik.studio.session.plan import Held, Plan, aimed, asks_the_same, changes_the_plan, held_at, plan
from mechanik.studio.session.setup import Setup, are_alike, grounds, has_same_bounds
from mechanik.studio.session.state_picture import Moment, StatePicture
from mechanik.studio.session.table import Table
from mechanik.studio.session.ways_out import WaysOut

TICKETS = 32
"""Bits of our own in the tags of the background solver."""
SETTLE = 0.25
"""Seconds that a hand which lets go is waited for at most."""


class Stage:
    """A table, how it is set up, and a `Live` that follows.

    All methods are for one thread at a time; states come from the solver's thread, which takes no lock but `_showing`.

    Attributes:
        running: whether it solves; if not, goals move and the mechanism does not.
        held: what a hand has taken.
        latest: the newest state of the solver.
        tag: of the newest hand; the states that answer it carry it on.
        said: what its method takes otherwise than it is meant, in words; see `fitted`.
    """

    setup: Setup

    def __init__(
        self, table: Table, setup: Setup, q: Array, revision: int, ways_out: WaysOut, running: bool = True, tag: int = 0
    ) -> None:
        self.table, self.setup, self.running, self.tag = table, setup, running, tag
        self.held: Held | None = None
        self.latest: LiveState | None = None
        self._ticket, self._stillness = 0, 0
        self._show, self._heard, self._look, self._announce = ways_out
        self._showing = threading.RLock()
        self._sequence = count(1)
        self._placed: Array | None = read_only(np.array(q))
        self._is_closed = self._is_muted = False
        self._keeper = Keeper(table)
        self._asked = plan(setup, table.anatomy.freedoms, None, self._keeper.of(setup.collisions))
        self._shifted: dict[str, Any] = {}  # targets that are newer than those of `_asked`
        self._fit = fitted(self._asked)
        self.said = self._fit.said
        self.live = begun(table.mechanism, self._fit, q)
        self.picture = StatePicture(revision, 0, table.anatomy, setup.goals, {}, grounds(setup))
        self.live.subscribe(self._arrived)
        self._aim(None)  # so that its first states carry the tag

    # ---- where it stands --------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """(nq,), read-only."""
        placed = self._placed
        return self.live.state.q if placed is None else placed

    @property
    def asked(self) -> Plan:
        """What is asked for now; of a method that knows no levels what comes nearest is asked, see `fitted`."""
        if self._shifted:
            self._asked, self._shifted = aimed(self._asked, self._shifted), {}
        return self._asked

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing moves until something is asked for."""
        state = self.latest
        if not self.live.running:
            return True
        return self._placed is None and state is not None and state.is_at_rest and state.tag == self._live_tag

    @property
    def is_followed(self) -> bool:
        """Whether it stands where the newest state has it: nothing is paused, and nobody has placed it since."""
        return self.running and self._placed is None and self.latest is not None

    def place(self, q: Array, wakes: bool = True, state: LiveState | None = None) -> None:
        """Stand at q (nq,) from now on. Without `wakes` it stays there to the bit until something else is asked.

        Args:
            state: in which the solver had it there, if it did; all who hear of states hear of that one again.
        """
        self.live.stop()
        self.live.move(q)
        self._aim(None)
        self._placed = read_only(np.array(q, dtype=np.float64))
        if wakes:
            self.show()
            self.wake()
        else:
            state = LiveState(self._placed, is_at_rest=True) if state is None else state
            self.latest = state = replace(state, sequence=self.live.state.sequence, tag=self._live_tag)
            self.show()
            self._heard(state)

    @contextmanager
    def still(self, wakes: bool = True) -> Generator[None]:
        """Nothing is solved inside, so that several things can be changed at once; afterwards, if it `wakes`."""
        was_running = self.live.running
        self.live.stop()
        self._stillness += 1
        try:
            yield
        except BaseException:
            wakes = was_running
            raise
        finally:
            self._stillness -= 1
            if wakes:
                self.wake()

    def wake(self) -> None:
        """Solve, unless it is paused."""
        may = self.running and not self._is_muted and not self._is_closed and not self._stillness
        if may and not self.live.running:
            self.live.start()

    def set_running(self, running: bool) -> None:
        self.running = running
        if running:
            self.wake()
        else:
            self.live.stop()
        self.show()

    def mute(self, muted: bool) -> None:
        """Solve nothing for a while, whatever is asked: something is played."""
        self._is_muted = muted
        if muted:
            self.live.stop()
        else:
            self.wake()

    def settle(self) -> None:
        """Wait a little until the solver has done what it can for the newest hand."""
        if self.live.running:
            with suppress(Exception):
                self.live.solve().result(SETTLE)

    def step(self) -> None:
        """One iteration."""
        self.live.step()

    def close(self) -> None:
        self._is_closed = True
        self.live.dispose()

    # ---- what is asked of it ----------------------------------------------------------------

    def apply(self, setup: Setup, held: Held | None = None) -> None:
        """Another setup, or another thing in the hand; what cannot be followed is refused, and then all stays."""
        before, asked = self.setup, plan(setup, self.table.anatomy.freedoms, held, self._keeper.of(setup.collisions))
        if not changes_the_plan(held, self.held) and asks_the_same(setup, before) and has_same_bounds(setup, before):
            self.setup, self.held, self._asked, self._shifted = setup, held, asked, {}
            return
        try:
            if has_same_bounds(setup, before):
                self._ask(asked)
            else:
                self._edit(setup, asked)
        except MechanikError:
            self._keeper.of(before.collisions)  # obstacles stand where they stood
            raise
        order = None if are_alike(setup.goals, before.goals) else self._announce(setup)
        self.setup, self.held, self._asked, self._shifted = setup, held, asked, {}
        if asked.solver == setup.solver:  # and not the one that follows a hand
            self.said = self._fit.said
        self._repaint(order)
        self._aim(None)
        inside = self.table.mechanism.clamp(self.q) if setup.bounds != before.bounds else self.q
        if not np.array_equal(inside, self.q):
            self.place(inside, wakes=False)
        self._go_on()

    def retarget(self, setup: Setup, targets: Mapping[str, Any]) -> None:
        """As `apply`, where nothing is new but targets of objectives, which are given by name."""
        before, self.setup = self.setup, setup
        self._repaint()  # before the solver hears of it: the state that answers shows the goals that it answers
        new = {one.name: targets[one.name] for one in self._fit.goals if one.name in targets}
        try:
            if new:
                self._aim(self._fit.targets(new))
        except MechanikError:  # it is no target
            self.setup = before
            self._repaint()
            raise
        self._shifted |= targets
        self._go_on(shows=not new)

    def drive(self, numbers: tuple[float, ...]) -> None:
        """The hand has its freedom there; see `Held`."""
        assert self.held is not None
        self.held = replace(self.held, numbers=numbers)
        self._asked, target = held_at(self.asked, self.table.anatomy.freedoms, self.held)
        self._fit = self._asked
        self._aim(self._fit.targets(target))
        self._go_on()

    def rearrange(self, setup: Setup) -> None:
        """As `apply`, where nothing is new but where obstacles stand: the solver looks again, as it is."""
        collider = self._keeper.of(setup.collisions)
        self._asked = replace(self.asked, collisions=setup.collisions, collider=collider)
        self._fit = replace(self._fit, collisions=setup.collisions, collider=collider)
        self.setup = setup
        self._aim(None)
        self._go_on()

    def reorder(self, order: int, shows: bool = False) -> None:
        """From now on frames belong to the `Goals` of that order; one comes at once if it `shows` and is at rest."""
        with self._showing:  # or a state that arrives in between would be the last, and have the old order
            self.picture = replace(self.picture, order=order)
            if shows and self.is_at_rest:
                self.show()

    def renumber(self, revision: int) -> None:
        """From now on frames belong to the `Model` of that revision."""
        self.picture = replace(self.picture, revision=revision)

    # ---- frames -----------------------------------------------------------------------------

    def show(self, q: Array | None = None) -> None:
        """A frame of it as it stands, or as it would stand at q."""
        with self._showing:
            if not self._is_closed:
                self._draw(self.picture, self.q if q is None else q, Moment.still(self.latest, self.tag, self.running))

    def show_riding(self, q: Array, riding: Mapping[int, Array]) -> None:
        """A frame of how it would stand at q, with goals that come along; see `Held.riding`."""
        with self._showing:
            self._draw(replace(self.picture, riding=riding), q, Moment("IDLE", self.tag, is_at_rest=False))

    def _arrived(self, state: LiveState) -> None:
        """In the solver's thread."""
        with self._showing:
            if self._is_closed or len(state.q) != self.picture.anatomy.nq:
                return
            status = None if self._asked.goals or state.problem else "IDLE"
            self._draw(self.picture, state.q, Moment.of(state, state.tag >> TICKETS, status=status))
            self.latest, self._placed = state, None
        self._heard(state)

    def _draw(self, picture: StatePicture, q: Array, moment: Moment) -> None:
        self._show(picture.pack(q, next(self._sequence), moment))
        self._look(Sight(self.table, self.setup.collisions, q, picture.revision))

    def _repaint(self, order: int | None = None) -> None:
        riding: Mapping[int, Array] = {} if self.held is None else self.held.riding
        self.picture = self.picture.of_setup(self.setup, riding, self.table.anatomy, order)

    # ---- inside -----------------------------------------------------------------------------

    def _go_on(self, shows: bool = False) -> None:
        """Solve; a frame comes of that, but while it is paused, or if it `shows` that nothing is new to the solver."""
        self.wake()
        if shows or not self.live.running:
            self.show()

    def _aim(self, targets: Any) -> None:
        self._ticket = (self._ticket + 1) % (1 << TICKETS)
        self.live.aim(targets, self._live_tag)

    @property
    def _live_tag(self) -> int:
        """Of the newest thing that was asked for: the tag of the newest hand, and a number of our own behind it, by
        which a state is known to answer what came without a hand."""
        return self.tag << TICKETS | self._ticket

    def _ask(self, asked: Plan) -> None:
        self._fit = told(self.live, asked, self._fit)

    def _edit(self, setup: Setup, asked: Plan) -> None:
        """Other limits or rests: the mechanism itself changes, or, if that is refused, does not."""
        try:
            self._fit = edited(self.live, self.table, setup, asked, self._fit)
        except MechanikError:
            self._fit = edited(self.live, self.table, self.setup, self.asked, self._fit)
            raise
        self.table.refresh()
