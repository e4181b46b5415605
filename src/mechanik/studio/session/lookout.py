"""Who looks what bumps into what: in a thread of its own, at the newest place, so that nothing waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from mechanik.collision import Clash, Collider
from mechanik.collision.meshes import hull_points
from mechanik.errors import MechanikError, MeshError
from mechanik.mechanism import ConvexMesh, Mechanism, Mesh, PlacedShape
from mechanik.mechanism.shapes import is_flat
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import Clashes, Event
from mechanik.studio.session.collisions import Collisions, check_watchable, moved
from mechanik.studio.session.table import Table
from mechanik.tiers import is_compiling

PAUSE = 0.1
"""s before another mechanism is looked at: its solver begins first, and one that is typed may be another by then."""
NOTHING = Clashes(-1, [], [], "")
STRANGE = "what bumps cannot be looked for here"
KERNELS, COMPILE_PAUSE = "distance.watch", 0.25
"""What looks, and seconds between two questions whether it is compiled. In plain Python the first look at a hexapod
takes 7 s of processor time, which would halve the rate at which a hand is followed."""
NOT_YET = "collisions are shown when their kernels are compiled"


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """What there is to be looked at.

    Attributes:
        q: (nq,).
        revision: of the `Model` that pages have of it.
    """

    table: Table
    collisions: Collisions
    q: Array
    revision: int


class Lookout:
    """One for a session. Its thread begins with the first thing that could bump, and ends with `close`.

    Where the newest sight is newer than what the thread has looked at, those in between are left out.
    """

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self._tell = tell
        self._news = threading.Condition()
        self._next: Sight | None = None
        self._thread: threading.Thread | None = None
        self._is_busy = self._is_closed = False
        self._told, self._words = NOTHING, ""
        self._watch: tuple[Table, Collisions, Collider | str] | None = None

    def look(self, sight: Sight) -> None:
        """From any thread; never waits for a look."""
        is_idle = not _can_bump(sight)
        with self._news:
            if self._is_closed or (is_idle and self._thread is None):
                return
            self._next = sight
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="mechanik lookout", daemon=True)
                self._thread.start()
            self._news.notify_all()

    def info(self) -> Clashes:
        """What pages were told last."""
        return self._told

    @property
    def words(self) -> str:
        """The deepest clash of the newest look, for people; empty if there is none."""
        return self._words

    def wait(self, seconds: float) -> bool:
        """Until the newest sight was looked at, or so long; whether it was."""
        with self._news:
            return self._news.wait_for(lambda: self._is_closed or not (self._is_busy or self._next), seconds)

    def close(self) -> None:
        with self._news:
            self._is_closed = True
            self._news.notify_all()

    # ---- in its thread ----------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._news:
                self._is_busy = False
                self._news.notify_all()
                while self._next is None and not self._is_closed:
                    self._news.wait()
                sight, self._next = self._next, None
                if self._is_closed or sight is None:
                    return
                self._is_busy = True
                if self._watch is None or self._watch[0] is not sight.table:
                    self._news.wait_for(lambda: self._is_closed, PAUSE)
                    sight, self._next = self._next or sight, None
            while _can_bump(sight) and is_compiling(KERNELS):
                self._say(Clashes(sight.revision, [], [], NOT_YET), "")
                with self._news:
                    self._news.wait_for(lambda: self._is_closed, COMPILE_PAUSE)
                    if self._is_closed:
                        return
                    sight, self._next = self._next or sight, None
            self._look_at(sight)

    def _look_at(self, sight: Sight) -> None:
        clashes, why = (), ""
        if _can_bump(sight):
            try:
                clashes, why = self._seen(sight)
            except MechanikError as error:
                why = str(error)
            except Exception:
                why = STRANGE
        links = sight.table.anatomy.links
        names = {name for clash in clashes for name in (clash.a, clash.b)}
        told = Clashes(
            sight.revision, sorted(links[name] for name in names if name in links), sorted(names - links.keys()), why
        )
        self._say(told, in_words(clashes))

    def _say(self, told: Clashes, words: str) -> None:
        """Tell pages, if it is news."""
        self._words = words
        if told != (self._told if self._told.revision == told.revision else replace(NOTHING, revision=told.revision)):
            self._tell(told)
        self._told = told

    def _seen(self, sight: Sight) -> tuple[tuple[Clash, ...], str]:
        watch = self._watch
        goes_on = watch is not None and watch[0] is sight.table and _watches(watch, sight.collisions)
        collider = watch[2] if watch is not None and goes_on else _made(sight)
        self._watch = sight.table, sight.collisions, collider
        if isinstance(collider, str):
            return (), collider
        return (() if collider.is_free(sight.q) else collider.clashes(sight.q)), ""


def _can_bump(sight: Sight) -> bool:
    return sight.collisions.mode != "off" and sight.table.bumps


def in_words(clashes: tuple[Clash, ...]) -> str:
    """Of the deepest, and how many there are besides."""
    if not clashes:
        return ""
    more = len(clashes) - 1
    return f"{clashes[0]}" + (f", and {more} other pair{'s' if more > 1 else ''} bump" if more else "")


def _watches(watch: tuple[Table, Collisions, Collider | str], wanted: Collisions) -> bool:
    """Whether this collider tells what is wanted, with its obstacles moved if need be."""
    _, known, collider = watch
    if isinstance(collider, str) or known.obstacles is wanted.obstacles:
        return known.obstacles is wanted.obstacles and known.is_like(wanted)
    return known.is_like(wanted) and moved(collider, wanted.obstacles)


def _made(sight: Sight) -> Collider | str:
    """The collider, or why there is none."""
    try:
        check_watchable(sight.table, sight.collisions)
        return sight.collisions.collider(_copied(sight.table))
    except MechanikError as error:
        return str(error)


def _copied(table: Table) -> Mechanism:
    """The one on the table may be edited meanwhile; no file of this machine is read for one that came from a page."""
    mechanism = table.mechanism.copy()
    if table.may_read:
        return mechanism
    for name, link in mechanism.links.items():
        link.collisions = tuple(_without_file(placed, name, table) for placed in link.collisions)
    return mechanism


def _without_file(placed: PlacedShape, link: str, table: Table) -> PlacedShape:
    """The hull of a mesh that came along, in its place."""
    if not isinstance(placed.shape, Mesh):
        return placed
    points = table.meshes.points(placed.shape)
    if points is None or is_flat(points):
        raise MeshError(f"link {link!r}: the mesh that it bumps with did not come along, or holds no volume")
    return replace(placed, shape=ConvexMesh(hull_points(points)))
