"""Motion recorder of a session, export of recordings and mechanisms to files, and the store of exported files."""

from __future__ import annotations

import re
import secrets
import threading
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np

from mechanik.errors import InvalidOperation, UnknownName
from mechanik.formats import write_json, write_urdf
from mechanik.motion import record
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ContactsChanged, Download, Event, Model, ObstacleMoved, Obstacles, Recording
from mechanik.studio.messages.message_codec import event_to_dict
from mechanik.studio.messages.requests import FileKind
from mechanik.studio.session.loaded_model import LoadedModel

MAX_SECONDS, MAX_STATES, MAX_NUMBERS = 600.0, 60_000, 5_000_000
"""Maximum duration (s), number of states and number of stored coordinates (states times nq) of a recording.

A recording that reaches one of these limits is stopped.
"""
MAX_INTERPOLATED_SECONDS = 0.1
"""Longest interval between two states that is interpolated, s.

No states arrive while the mechanism is at rest, so in a longer interval it is shown in the first of the two states.
"""


class MotionRecorder:
    """Records and plays one motion of one mechanism; states arrive from the thread of the solver.

    Args:
        clock: function that returns the time, s; tests pass their own.

    Attributes:
        model: the recorded mechanism, or None.
        is_recording, is_playing: state of the recorder.
        is_full: whether the recording was stopped because it reached its maximum size; the caller resets the flag after
            a warning.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._start_time = self._latest_seconds = 0.0
        self._times: list[float] = []
        self._q: list[Array] = []
        self._events: list[tuple[float, Event]] = []
        self.model: LoadedModel | None = None
        self.is_recording = self.is_full = False
        self.is_playing = self._is_looped = False
        self._speed = 1.0
        self.time = 0.0
        """Playback time, s."""

    # ---- recording --------------------------------------------------------------------------

    def start(self, model: LoadedModel, q: Array, initial_events: Iterable[Event] = ()) -> None:
        """Start a new recording.

        Args:
            model: the mechanism.
            q: first configuration, (nq,).
            initial_events: events with the obstacles and collisions that pages show at the start.
        """
        with self._lock:
            self.model, self._start_time, self._latest_seconds = model, self._clock(), 0.0
            self._times, self._q = [0.0], [np.array(q)]
            self._events = [(0.0, event) for event in initial_events]
            self.is_recording, self.is_full, self.is_playing, self.time = True, False, False, 0.0

    def add(self, q: Array) -> None:
        """Record the configuration q (nq,), if the recorder runs."""
        with self._lock:
            seconds = self._elapsed_seconds()
            if not self.is_recording or self.model is None or len(q) != self.model.index.nq:
                return
            if seconds > MAX_SECONDS or len(self._times) >= min(MAX_STATES, MAX_NUMBERS // max(1, len(q))):
                self.is_recording, self.is_full = False, True
                return
            if seconds <= self._times[-1]:
                self._q[-1] = np.array(q)  # no time has passed on the clock: keep the newer state
                return
            self._times.append(seconds)
            self._q.append(np.array(q))

    def add_event(self, event: Event) -> None:
        """Record an event about obstacles or collisions, if the recorder runs; callable from any thread."""
        if not self.is_recording or not isinstance(event, Obstacles | ObstacleMoved | ContactsChanged):
            return
        with self._lock:
            if self.is_recording and len(self._events) < MAX_STATES:
                self._events.append((self._elapsed_seconds(), event))

    def _elapsed_seconds(self) -> float:
        """Return the time since the start, s; it never decreases, even if the clock does."""
        self._latest_seconds = max(self._latest_seconds, self._clock() - self._start_time)
        return self._latest_seconds

    def stop(self, q: Array) -> None:
        """Record a last configuration q (nq,), so that a rest at the end is recorded too, and stop."""
        self.add(q)
        self.is_recording = False

    def clear(self) -> None:
        """Delete the recording."""
        with self._lock:
            self._times, self._q, self._events, self.model = [], [], [], None
            self.is_recording = self.is_playing = self.is_full = False
            self.time = 0.0

    def motion(self) -> tuple[Array, Array]:
        """Return times (n,), s, and configurations (n, nq).

        Raises:
            InvalidOperation: nothing is recorded.
        """
        with self._lock:
            if not self._times:
                raise InvalidOperation("nothing is recorded; record a motion first")
            return np.array(self._times), np.array(self._q)

    def events(self) -> list[tuple[float, Event]]:
        """Return the recorded events about obstacles and collisions, with their times in s."""
        with self._lock:
            return list(self._events)

    # ---- playing ----------------------------------------------------------------------------

    def play(self, speed: float, looped: bool) -> None:
        """Start playback at the present playback time, or from the beginning if this is the end of the recording.

        Args:
            speed: seconds of the recording per second of real time.
            looped: whether to start again at the end.

        Raises:
            InvalidOperation: fewer than two states are recorded.
        """
        if len(self._times) < 2:
            raise InvalidOperation("there is no motion to play; record one first")
        if self.time >= self.duration:
            self.time = 0.0
        self.is_recording, self.is_playing = False, True
        self._speed, self._is_looped = speed, looped

    def tick(self, seconds: float) -> Array:
        """Advance playback by `seconds` of real time, and return the configuration to show, (nq,)."""
        self.time += seconds * self._speed
        if self.time >= self.duration:
            self.time = self.time % self.duration if self._is_looped and self.duration > 0.0 else self.duration
            self.is_playing = self._is_looped
        return self.seek(self.time)

    def seek(self, seconds: float) -> Array:
        """Set the playback time (s), and return the configuration (nq,) at this time.

        The configuration is interpolated between two states, except during a rest (`MAX_INTERPOLATED_SECONDS`).

        Raises:
            InvalidOperation: nothing is recorded.
        """
        if not self._times or self.model is None:
            raise InvalidOperation("nothing is recorded; record a motion first")
        self.time = min(max(seconds, 0.0), self.duration)
        k = bisect_right(self._times, self.time) - 1
        if k + 1 >= len(self._times):
            return self._q[-1]
        if self._times[k + 1] - self._times[k] > MAX_INTERPOLATED_SECONDS:
            return self._q[k]
        space = self.model.mechanism.space
        share = (self.time - self._times[k]) / (self._times[k + 1] - self._times[k])
        return space.integrate(self._q[k], share * space.difference(self._q[k], self._q[k + 1]))

    @property
    def duration(self) -> float:
        """Duration of the recording, s."""
        return self._times[-1] if self._times else 0.0

    def info(self) -> Recording:
        """Return the state of the recorder as pages receive it."""
        state = (
            "recording" if self.is_recording else "playing" if self.is_playing else "ready" if self._times else "empty"
        )
        return Recording(state, len(self._times), self.duration, self.time)


TimedEvents = Sequence[tuple[float, Event]]
"""Pairs of time (s) and event."""
MAX_FILES, MAX_FILE_BYTES = 8, 64_000_000
"""Maximum number and total size (bytes) of stored exported files; the oldest are dropped, but never the newest."""
MAX_MESH_BYTES = 64_000_000
"""Maximum size of all meshes in an exported HTML page, bytes."""
POSE_FORMATS, MAX_POSES = ("html", "glb", "bvh"), 1_000_000
"""Formats for which the number of poses (links times states) is limited, and the limit."""
FILE_TYPES: dict[FileKind, tuple[str, str]] = {
    "json": ("application/json", ".motion.json"),
    "csv": ("text/csv", ".csv"),
    "npz": ("application/octet-stream", ".npz"),
    "bvh": ("text/plain", ".bvh"),
    "glb": ("model/gltf-binary", ".glb"),
    "html": ("text/html", ".html"),
    "mechanism": ("application/json", ".json"),
    "urdf": ("application/xml", ".urdf"),
}
"""Media type and file name suffix of each kind of file."""


@dataclass(frozen=True, slots=True)
class ExportedFile:
    data: bytes
    media_type: str
    name: str


def export_file(
    kind: FileKind, loaded_model: LoadedModel, q: Array, recorder: MotionRecorder, model_event: Model
) -> ExportedFile:
    """Return a file of the recording or of the mechanism.

    Args:
        kind: format.
        loaded_model: the mechanism.
        q: configuration for files of the mechanism itself, (nq,).
        recorder: the recording.
        model_event: description of the model, for an HTML page.

    Raises:
        InvalidOperation: nothing is recorded, or the recording is too long for the format; for an HTML page also: the
            meshes are too large, or the page of the studio is not built.
        MechanikError: the format cannot represent the mechanism.
    """
    media_type, suffix = FILE_TYPES[kind]
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", loaded_model.mechanism.name)[:60].strip("_") or "mechanism"
    if kind in ("mechanism", "urdf"):
        mechanism = loaded_model.mechanism.copy()
        mechanism.q = q
        return ExportedFile(
            (write_json if kind == "mechanism" else write_urdf)(mechanism).encode(), media_type, name + suffix
        )
    times, configurations = recorder.motion()
    if kind in POSE_FORMATS and len(times) * len(loaded_model.index.link_names) > MAX_POSES:
        raise InvalidOperation(
            f"this recording has {len(times)} states, too many for a .{kind} file; record a shorter motion, or "
            "choose csv, json or npz"
        )
    motion = record.Motion(loaded_model.mechanism, times, configurations, loaded_model.mechanism.name)
    data = _file_bytes(kind, motion, loaded_model, model_event, recorder.events())
    return ExportedFile(data, media_type, name + suffix)


def _file_bytes(
    kind: FileKind, motion: record.Motion, loaded_model: LoadedModel, model_event: Model, events: TimedEvents
) -> bytes:
    match kind:
        case "json":
            return record.to_json(motion)
        case "csv":
            return record.to_csv(motion)
        case "npz":
            return record.to_npz(motion)
        case "bvh":
            return record.to_bvh(motion)
        case "glb":
            return record.to_gltf(motion, loaded_model.meshes.read_file)
        case _:
            script, meshes = player_script(), loaded_model.meshes.all_files()
            timed_events = [(seconds, event_to_dict(event)) for seconds, event in events]
            if sum(map(len, meshes.values())) > MAX_MESH_BYTES:
                raise InvalidOperation(
                    f"the meshes have more than {MAX_MESH_BYTES // 1_000_000} MB, too much for an HTML page; "
                    "choose glb or json"
                )
            return record.to_html(motion, script, event_to_dict(model_event), meshes, timed_events)


def player_script() -> str:
    """Return the script of an HTML page that plays a motion without a server.

    Raises:
        InvalidOperation: the page of the studio is not built.
    """
    script = resources.files("mechanik.studio").joinpath("page/player.js")
    if not script.is_file():
        raise InvalidOperation("the page of the studio is not built, so no HTML file can be exported; run `make page`")
    return script.read_text(encoding="utf-8")


class DownloadStore:
    """The last exported files, under keys that cannot be guessed.

    Args:
        session_key: key of the session.
    """

    def __init__(self, session_key: str) -> None:
        self._session_key = session_key
        self._files: OrderedDict[str, ExportedFile] = OrderedDict()

    def add(self, file: ExportedFile) -> Download:
        """Store a file, and return the event with its address."""
        key = secrets.token_urlsafe(12)
        self._files[key] = file
        while len(self._files) > 1 and (len(self._files) > MAX_FILES or self._total_bytes > MAX_FILE_BYTES):
            self._files.popitem(last=False)
        return Download(f"/download/{self._session_key}/{key}", file.name)

    @property
    def _total_bytes(self) -> int:
        return sum(len(file.data) for file in self._files.values())

    def read(self, key: str) -> tuple[bytes, str, str]:
        """Return bytes, media type and name of a file.

        Raises:
            UnknownName: there is no such key, or newer files have replaced the file.
        """
        file = self._files.get(key)
        if file is None:
            raise UnknownName("file", key, ())
        return file.data, file.media_type, file.name
