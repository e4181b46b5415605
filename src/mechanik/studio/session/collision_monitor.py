"""Colliders of a session: the cached collider of the solver, and the monitor that shows collisions.

The monitor checks the newest configuration in a thread of its own, so that neither solving nor drawing waits for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from mechanik.collision import Collider, Contact, Obstacle
from mechanik.collision.collision_meshes import hull_points
from mechanik.errors import FormatError, InvalidOperation, MechanikError
from mechanik.model import ConvexMesh, Mechanism, Mesh, ShapeInstance
from mechanik.model.shapes import is_flat
from mechanik.objectives.clearance import CLEARANCE_TOLERANCE
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ContactsChanged, Event
from mechanik.studio.session.edit_state import CollisionSettings
from mechanik.studio.session.loaded_model import LoadedModel
from mechanik.studio.session.solve_spec import errors_for_users
from mechanik.tiers import is_compiling
from mechanik.validation import format_count

log = logging.getLogger("mechanik.studio")
MAX_BODIES = 200
"""Maximum number of bodies (obstacles, and links with shapes); the time to set up their pairs grows with its square."""


def move_collider_obstacles(collider: Collider, obstacles: Iterable[Obstacle]) -> bool:
    """Move the obstacles of a collider to new poses; return False and do nothing if names or shapes differ."""
    new_obstacles = {obstacle.name: obstacle for obstacle in obstacles}
    present_obstacles = {obstacle.name: obstacle for obstacle in collider.obstacles}
    if new_obstacles.keys() != present_obstacles.keys() or any(
        present_obstacles[name].shape != obstacle.shape for name, obstacle in new_obstacles.items()
    ):
        return False
    for name, obstacle in new_obstacles.items():
        if not np.array_equal(present_obstacles[name].pose.matrix, obstacle.pose.matrix):
            collider.move(name, obstacle.pose)
    return True


def check_body_count(model: LoadedModel, collision_settings: CollisionSettings) -> None:
    """Reject a model with too many bodies.

    Raises:
        InvalidOperation: there are more than `MAX_BODIES` bodies: obstacles, and links with collision shapes.
    """
    link_count = sum(bool(link.collisions) for link in model.mechanism.links.values())
    body_count = link_count + len(collision_settings.obstacles)
    if body_count > MAX_BODIES:
        raise InvalidOperation(
            f"there are {body_count} links and obstacles with collision shapes, but at most {MAX_BODIES} can be "
            "checked; remove obstacles or collision shapes"
        )


def check_no_uploaded_meshes(model: LoadedModel) -> None:
    """Reject avoidance with uploaded meshes, since the solver would read mesh files from the disk of this machine.

    Raises:
        InvalidOperation: the model may not read files of this machine, and a link has a mesh as collision shape.
    """
    if model.may_read_disk:
        return
    for name, link in model.mechanism.links.items():
        if any(isinstance(instance.shape, Mesh) for instance in link.collisions):
            raise InvalidOperation(
                f"link {name!r} has an uploaded mesh as collision shape: its collisions are shown, but can be avoided "
                "only from a Python program; replace the mesh with boxes and capsules to avoid them here"
            )


class ColliderCache:
    """Makes the collider of the solver, and reuses it as long as only obstacles move and the same pairs are checked."""

    def __init__(self, model: LoadedModel) -> None:
        self._model = model
        self._cached_collider: tuple[CollisionSettings, Collider] | None = None

    def get(self, settings: CollisionSettings) -> Collider | None:
        """Return the collider for these settings; None if nothing is avoided.

        Raises:
            MechanikError: the collider cannot be made; the message says why.
        """
        if settings.mode != "avoid":
            return None
        if (
            self._cached_collider is not None
            and self._cached_collider[0].has_same_pairs(settings)
            and move_collider_obstacles(self._cached_collider[1], settings.obstacles)
        ):
            self._cached_collider = settings, self._cached_collider[1]
        else:
            check_body_count(self._model, settings)
            check_no_uploaded_meshes(self._model)
            with errors_for_users():
                self._cached_collider = settings, settings.make_collider(self._model.mechanism)
        return self._cached_collider[1]


NEW_MODEL_DELAY_SECONDS = 0.1
"""Delay before the first check of a new model, s.

The delay lets the solver start first, and skips models that are replaced soon, for example while a user edits the text
of a model.
"""
NO_CONTACTS = ContactsChanged(-1, [], [], "")
CHECK_FAILED = "collisions are not checked because of an internal error; see the reason in the log of the server"
COLLISION_KERNEL, COMPILE_POLL_SECONDS = "distance.collision_query", 0.25
"""Kernel module of the check, and interval (s) between two checks whether the module is compiled.

In plain Python the first check of a hexapod takes 7 s of processor time, which would halve the number of solves per
second during a drag.
"""
KERNELS_COMPILING = "collisions are shown as soon as the collision kernels are compiled"


@dataclass(frozen=True, slots=True, eq=False)
class CollisionSnapshot:
    """A configuration to check.

    Attributes:
        model: the mechanism.
        collision_settings: which collisions are checked.
        q: configuration, (nq,).
        revision: revision of the `Model` event that pages show.
    """

    model: LoadedModel
    collision_settings: CollisionSettings
    q: Array
    revision: int


class CollisionMonitor:
    """Checks the newest configuration of a session for collisions, in a thread, and broadcasts the result.

    The thread starts with the first snapshot that can have collisions, and ends with `close`. If several snapshots
    arrive during a check, only the newest is checked next.
    """

    def __init__(self, send_event: Callable[[Event], None]) -> None:
        self._send_event = send_event
        self._condition = threading.Condition()
        self._next_snapshot: CollisionSnapshot | None = None
        self._thread: threading.Thread | None = None
        self._is_busy = self._is_closed = False
        self._last_event, self._text = NO_CONTACTS, ""
        self._is_compilation_done = False
        self._cached_collider: tuple[LoadedModel, CollisionSettings, Collider | str] | None = None

    def submit(self, snapshot: CollisionSnapshot) -> None:
        """Submit a configuration, from any thread; never waits for a check."""
        needs_no_check = not _can_collide(snapshot)
        with self._condition:
            if self._is_closed or (needs_no_check and self._thread is None):
                return
            self._next_snapshot = snapshot
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mechanik collision monitor", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def info(self) -> ContactsChanged:
        """Return the newest result, also if it was not sent because nothing has changed."""
        return self._last_event

    @property
    def text(self) -> str:
        """Description of the deepest collision of the newest check, and the number of others; empty: no collision."""
        return self._text

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for the check of the newest snapshot; return False if it is not finished then."""
        with self._condition:
            return self._condition.wait_for(
                lambda: self._is_closed or not (self._is_busy or self._next_snapshot), seconds
            )

    def close(self) -> None:
        """End the thread after the present check."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()

    # ---- monitor thread ---------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._condition:
                self._is_busy = False
                self._condition.notify_all()
                while self._next_snapshot is None and not self._is_closed:
                    self._condition.wait()
                snapshot, self._next_snapshot = self._next_snapshot, None
                if self._is_closed or snapshot is None:
                    return
                self._is_busy = True
                if self._cached_collider is None or self._cached_collider[0] is not snapshot.model:
                    self._condition.wait_for(lambda: self._is_closed, NEW_MODEL_DELAY_SECONDS)
                    snapshot, self._next_snapshot = self._next_snapshot or snapshot, None
            while _can_collide(snapshot) and not self._is_kernel_ready():
                self._broadcast(ContactsChanged(snapshot.revision, [], [], KERNELS_COMPILING), "")
                with self._condition:
                    self._condition.wait_for(lambda: self._is_closed, COMPILE_POLL_SECONDS)
                    if self._is_closed:
                        return
                    snapshot, self._next_snapshot = self._next_snapshot or snapshot, None
            self._check(snapshot)

    def _is_kernel_ready(self) -> bool:
        """Return whether the collision kernel is compiled or will not be compiled.

        After the first True, the state of the compilation is not read again.
        """
        self._is_compilation_done = self._is_compilation_done or not is_compiling(COLLISION_KERNEL)
        return self._is_compilation_done

    def _check(self, snapshot: CollisionSnapshot) -> None:
        contacts, reason = (), ""
        if _can_collide(snapshot):
            try:
                contacts, reason = self._find_contacts(snapshot)
            except MechanikError as error:
                reason = str(error)
            except Exception as error:
                reason = CHECK_FAILED
                if self._last_event.reason != reason:  # log an error that repeats at each check only once
                    log.error("the collision check failed: %s: %s", type(error).__name__, error)
        link_indices = snapshot.model.index.link_indices
        names = {name for contact in contacts for name in (contact.a, contact.b)}
        event = ContactsChanged(
            snapshot.revision,
            sorted(link_indices[name] for name in names if name in link_indices),
            sorted(names - link_indices.keys()),
            reason,
        )
        self._broadcast(event, contacts_text(contacts))

    def _broadcast(self, event: ContactsChanged, text: str) -> None:
        """Broadcast the result if it has changed."""
        self._text = text
        last_event = self._last_event
        if last_event.revision != event.revision:
            last_event = structs.replace(NO_CONTACTS, revision=event.revision)
        if event != last_event:
            self._send_event(event)
        self._last_event = event

    def _find_contacts(self, snapshot: CollisionSnapshot) -> tuple[tuple[Contact, ...], str]:
        cached_collider = self._cached_collider
        is_reusable = (
            cached_collider is not None
            and cached_collider[0] is snapshot.model
            and _update_cached_collider(cached_collider, snapshot.collision_settings)
        )
        collider_or_message = (
            cached_collider[2] if cached_collider is not None and is_reusable else _make_collider(snapshot)
        )
        self._cached_collider = snapshot.model, snapshot.collision_settings, collider_or_message
        if isinstance(collider_or_message, str):
            return (), collider_or_message
        q = np.array(snapshot.q)  # `is_free` is fastest with an array that is not read-only
        # bodies that avoidance holds in contact are some rounding errors apart, or inside one another
        if collider_or_message.is_free(q, -CLEARANCE_TOLERANCE):
            return (), ""
        return collider_or_message.contacts(q, -CLEARANCE_TOLERANCE), ""


def _can_collide(snapshot: CollisionSnapshot) -> bool:
    return snapshot.collision_settings.mode != "off" and snapshot.model.has_collision_shapes


def contacts_text(contacts: tuple[Contact, ...]) -> str:
    """Return a description of the first (deepest) contact, with the number of further colliding pairs."""
    if not contacts:
        return ""
    other_count = len(contacts) - 1
    return f"{contacts[0]}" + (f", and {format_count(other_count, 'more colliding pair')}" if other_count else "")


def _update_cached_collider(
    cached_collider: tuple[LoadedModel, CollisionSettings, Collider | str], settings: CollisionSettings
) -> bool:
    """Return whether the cached collider or error message applies to these settings; move obstacles if necessary."""
    _, cached_settings, collider_or_message = cached_collider
    if isinstance(collider_or_message, str) or cached_settings.obstacles is settings.obstacles:
        return cached_settings.obstacles is settings.obstacles and cached_settings.has_same_pairs(settings)
    return cached_settings.has_same_pairs(settings) and move_collider_obstacles(collider_or_message, settings.obstacles)


def _make_collider(snapshot: CollisionSnapshot) -> Collider | str:
    """Return the collider, or the error message if it cannot be made."""
    try:
        check_body_count(snapshot.model, snapshot.collision_settings)
        return snapshot.collision_settings.make_collider(_copy_mechanism(snapshot.model))
    except MechanikError as error:
        return str(error)


def _copy_mechanism(model: LoadedModel) -> Mechanism:
    """Return a copy of the mechanism, since the original may be edited.

    In an uploaded model hulls replace the meshes, so that no file of this machine is read.
    """
    mechanism = model.mechanism.copy()
    if model.may_read_disk:
        return mechanism
    for name, link in mechanism.links.items():
        link.collisions = tuple(_without_mesh_file(instance, name, model) for instance in link.collisions)
    return mechanism


def _without_mesh_file(instance: ShapeInstance, link: str, model: LoadedModel) -> ShapeInstance:
    """Return the shape with an uploaded mesh replaced by its convex hull.

    Raises:
        FormatError: the mesh was not uploaded, or has no volume.
    """
    if not isinstance(instance.shape, Mesh):
        return instance
    points = model.meshes.mesh_points(instance.shape)
    if points is None or is_flat(points):
        raise FormatError(
            f"link {link!r}: its collision mesh was not uploaded or has no volume; upload a mesh file with a volume"
        )
    return replace(instance, shape=ConvexMesh(hull_points(points)))
