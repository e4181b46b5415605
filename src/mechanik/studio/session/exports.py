"""Files for people to take along: a recorded motion, or the mechanism as it stands."""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from mechanik import motion
from mechanik.errors import Refused, UnknownName
from mechanik.formats import write_json, write_urdf
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import Download, Event, Model
from mechanik.studio.messages.requests import FileKind
from mechanik.studio.messages.write import as_message, plain
from mechanik.studio.session.recorder import Recorder
from mechanik.studio.session.table import Table

Events = Sequence[tuple[float, Event]]
"""When, s, and what pages were told then."""
KEPT, KEPT_BYTES = 8, 64_000_000
"""Files that wait to be fetched, and how large they are together; older ones are dropped, the newest never."""
LARGEST_MESHES = 64_000_000
"""Bytes of all meshes in a page that plays by itself."""
LARGE, LARGEST = ("html", "glb", "bvh"), 1_000_000
"""Files that hold the pose of each link at each time, and how many poses they hold at most."""
MEDIA: dict[FileKind, tuple[str, str]] = {
    "json": ("application/json", ".motion.json"),
    "csv": ("text/csv", ".csv"),
    "npz": ("application/octet-stream", ".npz"),
    "bvh": ("text/plain", ".bvh"),
    "glb": ("model/gltf-binary", ".glb"),
    "html": ("text/html", ".html"),
    "mechanism": ("application/json", ".json"),
    "urdf": ("application/xml", ".urdf"),
}


@dataclass(frozen=True, slots=True)
class MadeFile:
    data: bytes
    media: str
    name: str


def make_file(kind: FileKind, table: Table, q: Array, recorder: Recorder, model: Model) -> MadeFile:
    """
    Args:
        q: (nq,), where the mechanism stands, for files of the mechanism itself.
        model: as pages were told, for the page that plays by itself.
    """
    media, ending = MEDIA[kind]
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", table.mechanism.name)[:60].strip("_") or "mechanism"
    if kind in ("mechanism", "urdf"):
        standing = table.mechanism.copy()
        standing.q = q
        return MadeFile((write_json if kind == "mechanism" else write_urdf)(standing).encode(), media, name + ending)
    times, states = recorder.motion()
    if kind in LARGE and len(times) * len(table.anatomy.names) > LARGEST:
        raise Refused(f"this recording is too long for a .{kind} file; record a shorter one, or take csv, json or npz")
    recorded = motion.Motion(table.mechanism, times, states, table.mechanism.name)
    return MadeFile(_written(kind, recorded, table, model, recorder.events()), media, name + ending)


def _written(kind: FileKind, recorded: motion.Motion, table: Table, model: Model, events: Events) -> bytes:
    match kind:
        case "json":
            return motion.to_json(recorded)
        case "csv":
            return motion.to_csv(recorded)
        case "npz":
            return motion.to_npz(recorded)
        case "bvh":
            return motion.to_bvh(recorded)
        case "glb":
            return motion.to_gltf(recorded, table.meshes.find)
        case _:
            script, meshes = player_script(), table.meshes.all()
            told = [(when, as_message(event)) for when, event in events]
            if sum(map(len, meshes.values())) > LARGEST_MESHES:
                raise Refused("the meshes are too large for a page that plays by itself; take glb or json")
            return motion.to_html(recorded, script, plain(model), meshes, told)


def player_script() -> str:
    """The script of a page that plays a motion without a server."""
    script = resources.files("mechanik.studio").joinpath("page/player.js")
    if not script.is_file():
        raise Refused("the page was not built, so there is no player to put into a file: run `make page`")
    return script.read_text(encoding="utf-8")


class Downloads:
    """The last few files that were made, each under a key that nobody can guess.

    Args:
        key: of the session.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._files: OrderedDict[str, MadeFile] = OrderedDict()

    def add(self, file: MadeFile) -> Download:
        key = secrets.token_urlsafe(12)
        self._files[key] = file
        while len(self._files) > 1 and (len(self._files) > KEPT or self._size > KEPT_BYTES):
            self._files.popitem(last=False)
        return Download(f"/download/{self._key}/{key}", file.name)

    @property
    def _size(self) -> int:
        return sum(len(file.data) for file in self._files.values())

    def read(self, key: str) -> tuple[bytes, str, str]:
        """Bytes, media type, name."""
        file = self._files.get(key)
        if file is None:
            raise UnknownName("file", key, ())
        return file.data, file.media, file.name
