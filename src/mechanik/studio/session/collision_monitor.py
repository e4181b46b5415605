"""Colliders of a session: the cached collider of the solver, and the monitor that shows collisions.

The monitor checks the newest configuration in a thread of its own, so that neither solving nor drawing waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from mechanik.collision import Collider, Contact, Obstacle
from mechanik.collision.collision_meshes import hull_points
from mechanik.errors import FormatError, InvalidOperation, MechanikError
from mechanik.model import ConvexMesh, Mechanism, Mesh, ShapeInstance
from mechanik.model.shapes import is_flat
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ContactsChanged, Event
from mechanik.studio.session.edit_state import CollisionSettings
from mechanik.studio.session.loaded_model import LoadedModel
from mechanik.studio.session.solve_spec import errors_for_users
from mechanik.tiers import is_compiling

MAX_BODIES = 200
"""Maximum number of links and obstacles that are checked; the set-up time of pairs grows with its square."""


def move_collider_obstacles(collider: Collider, obstacles: Iterable[Obstacle]) -> bool:
    """Move the obstacles of a collider to new poses; return False and do nothing if names or shapes differ."""
    wanted = {one.name: one for one in obstacles}
    known = {one.name: one for one in collider.obstacles}
    if wanted.keys() != known.keys() or any(known[name].shape != one.shape for name, one in wanted.items()):
        return False
    for name, one in wanted.items():
        if not np.array_equal(known[name].pose.matrix, one.pose.matrix):
            collider.move(name, one.pose)
    return True


def check_body_count(model: LoadedModel, collisions: CollisionSettings) -> None:
    """Reject a model with too many bodies.

    Raises:
        InvalidOperation: there are more than `MAX_BODIES` links and obstacles.
    """
    bodies = sum(bool(link.collisions) for link in model.mechanism.links.values()) + len(collisions.obstacles)
    if bodies > MAX_BODIES:
        raise InvalidOperation(
            f"there are {bodies} links and obstacles that could bump; at most {MAX_BODIES} are looked after"
        )


def check_no_uploaded_meshes(model: LoadedModel) -> None:
    """Reject avoidance with meshes that a page has uploaded: no solver may look for their files on this machine.

    Raises:
        InvalidOperation: a link has such a mesh.
    """
    if model.may_read_disk:
        return
    for name, link in model.mechanism.links.items():
        if any(isinstance(placed.shape, Mesh) for placed in link.collisions):
            raise InvalidOperation(
                f"link {name!r} bumps with a mesh that came with the page: what it hits is shown, but can be avoided "
                "only from a program, or with boxes and capsules in its place"
            )


class ColliderCache:
    """Makes the collider of the solver, and reuses it as long as only obstacles move."""

    def __init__(self, model: LoadedModel) -> None:
        self._table = model
        self._kept: tuple[CollisionSettings, Collider] | None = None

    def get(self, settings: CollisionSettings) -> Collider | None:
        """Return the collider for these settings; None if nothing is avoided."""
        if settings.mode != "avoid":
            return None
        if (
            self._kept is not None
            and self._kept[0].has_same_pairs(settings)
            and move_collider_obstacles(self._kept[1], settings.obstacles)
        ):
            self._kept = settings, self._kept[1]
        else:
            check_body_count(self._table, settings)
            check_no_uploaded_meshes(self._table)
            with errors_for_users():
                self._kept = settings, settings.make_collider(self._table.mechanism)
        return self._kept[1]


NEW_MODEL_DELAY_SECONDS = 0.1
"""Delay before the first check of a new model, s.

The solver starts first, and a model that is edited as text changes often.
"""
NO_CONTACTS = ContactsChanged(-1, [], [], "")
CHECK_FAILED = "what bumps cannot be looked for here"
COLLISION_KERNEL, COMPILE_POLL_SECONDS = "distance.collision_query", 0.25
"""Kernel module of the check, and interval between two queries whether it is compiled, s.

In plain Python the first check of a hexapod takes 7 s of processor time, which would halve the rate of a drag.
"""
KERNELS_COMPILING = "collisions are shown when their kernels are compiled"


@dataclass(frozen=True, slots=True, eq=False)
class CollisionSnapshot:
    """A configuration to check.

    Attributes:
        model: the mechanism.
        collisions: the settings.
        q: (nq,).
        revision: revision of the `Model` event that pages have.
    """

    model: LoadedModel
    collisions: CollisionSettings
    q: Array
    revision: int


class CollisionMonitor:
    """Checks the newest configuration of a session for collisions, in a thread, and broadcasts the result.

    The thread starts with the first snapshot that can have collisions, and ends with `close`. Snapshots that arrive
    during a check are skipped up to the newest.
    """

    def __init__(self, send_event: Callable[[Event], None]) -> None:
        self._tell = send_event
        self._news = threading.Condition()
        self._next: CollisionSnapshot | None = None
        self._thread: threading.Thread | None = None
        self._is_busy = self._is_closed = False
        self._told, self._words = NO_CONTACTS, ""
        self._watch: tuple[LoadedModel, CollisionSettings, Collider | str] | None = None

    def submit(self, snapshot: CollisionSnapshot) -> None:
        """Submit a configuration, from any thread; never waits for a check."""
        is_idle = not _can_bump(snapshot)
        with self._news:
            if self._is_closed or (is_idle and self._thread is None):
                return
            self._next = snapshot
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="mechanik lookout", daemon=True)
                self._thread.start()
            self._news.notify_all()

    def info(self) -> ContactsChanged:
        """Return the event that was sent last."""
        return self._told

    @property
    def text(self) -> str:
        """Description of the deepest collision of the newest check; empty: none."""
        return self._words

    def wait(self, seconds: float) -> bool:
        """Wait until the newest snapshot is checked, at most `seconds`; return whether it is."""
        with self._news:
            return self._news.wait_for(lambda: self._is_closed or not (self._is_busy or self._next), seconds)

    def close(self) -> None:
        with self._news:
            self._is_closed = True
            self._news.notify_all()

    # ---- monitor thread ---------------------------------------------------------------------

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
                if self._watch is None or self._watch[0] is not sight.model:
                    self._news.wait_for(lambda: self._is_closed, NEW_MODEL_DELAY_SECONDS)
                    sight, self._next = self._next or sight, None
            while _can_bump(sight) and is_compiling(COLLISION_KERNEL):
                self._say(ContactsChanged(sight.revision, [], [], KERNELS_COMPILING), "")
                with self._news:
                    self._news.wait_for(lambda: self._is_closed, COMPILE_POLL_SECONDS)
                    if self._is_closed:
                        return
                    sight, self._next = self._next or sight, None
            self._look_at(sight)

    def _look_at(self, sight: CollisionSnapshot) -> None:
        clashes, why = (), ""
        if _can_bump(sight):
            try:
                clashes, why = self._seen(sight)
            except MechanikError as error:
                why = str(error)
            except Exception:
                why = CHECK_FAILED
        links = sight.model.index.link_numbers
        names = {name for clash in clashes for name in (clash.a, clash.b)}
        told = ContactsChanged(
            sight.revision, sorted(links[name] for name in names if name in links), sorted(names - links.keys()), why
        )
        self._say(told, contacts_text(clashes))

    def _say(self, told: ContactsChanged, words: str) -> None:
        """Broadcast the result if it has changed."""
        self._words = words
        if told != (
            self._told if self._told.revision == told.revision else replace(NO_CONTACTS, revision=told.revision)
        ):
            self._tell(told)
        self._told = told

    def _seen(self, sight: CollisionSnapshot) -> tuple[tuple[Contact, ...], str]:
        watch = self._watch
        goes_on = watch is not None and watch[0] is sight.model and _watches(watch, sight.collisions)
        collider = watch[2] if watch is not None and goes_on else _made(sight)
        self._watch = sight.model, sight.collisions, collider
        if isinstance(collider, str):
            return (), collider
        return (() if collider.is_free(sight.q) else collider.contacts(sight.q)), ""


def _can_bump(sight: CollisionSnapshot) -> bool:
    return sight.collisions.mode != "off" and sight.model.has_collision_shapes


def contacts_text(contacts: tuple[Contact, ...]) -> str:
    """Return a description of the deepest contact and the number of the others."""
    if not contacts:
        return ""
    more = len(contacts) - 1
    return f"{contacts[0]}" + (f", and {more} other pair{'s' if more > 1 else ''} bump" if more else "")


def _watches(watch: tuple[LoadedModel, CollisionSettings, Collider | str], wanted: CollisionSettings) -> bool:
    """Return whether a collider fits the wanted settings, after moving its obstacles if necessary."""
    _, known, collider = watch
    if isinstance(collider, str) or known.obstacles is wanted.obstacles:
        return known.obstacles is wanted.obstacles and known.has_same_pairs(wanted)
    return known.has_same_pairs(wanted) and move_collider_obstacles(collider, wanted.obstacles)


def _made(sight: CollisionSnapshot) -> Collider | str:
    """Return the collider, or the reason why there is none."""
    try:
        check_body_count(sight.model, sight.collisions)
        return sight.collisions.make_collider(_copied(sight.model))
    except MechanikError as error:
        return str(error)


def _copied(table: LoadedModel) -> Mechanism:
    """Return a copy of the mechanism, since the original may be edited.

    In an uploaded model hulls replace the meshes, so that no file of this machine is read.
    """
    mechanism = table.mechanism.copy()
    if table.may_read_disk:
        return mechanism
    for name, link in mechanism.links.items():
        link.collisions = tuple(_without_file(placed, name, table) for placed in link.collisions)
    return mechanism


def _without_file(placed: ShapeInstance, link: str, table: LoadedModel) -> ShapeInstance:
    """Return the shape with an uploaded mesh replaced by its convex hull."""
    if not isinstance(placed.shape, Mesh):
        return placed
    points = table.meshes.mesh_points(placed.shape)
    if points is None or is_flat(points):
        raise FormatError(f"link {link!r}: the mesh that it bumps with did not come along, or holds no volume")
    return replace(placed, shape=ConvexMesh(hull_points(points)))
