"""A mechanism from bytes that somebody sent: a description, or a zip with its meshes. No file is opened for it."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from mechanik.errors import FormatError, MechanikError, UnknownFormat
from mechanik.formats.load import READERS, recognise
from mechanik.formats.members import Members
from mechanik.formats.source import Source
from mechanik.formats.zip_files import is_zip, unzip
from mechanik.mechanism import Mechanism
from mechanik.mechanism.shapes import Mesh
from mechanik.meshes.beside_mesh import BesideMeshes

SUFFIXES = (".urdf", ".xml", ".mjcf", ".sdf", ".world", ".json")
"""Of what may be the model in a zip."""
MESHES = (".stl", ".obj", ".dae", ".glb", ".gltf", ".ply", ".msh")
_NAMED = re.compile(rb"""<include\s[^<>]*?file\s*=\s*["']([^"'<>]+)["']|<uri>\s*([^<>]+?)\s*</uri>""")
_SHOWN = 5


def load_bytes(name: str, data: bytes) -> tuple[Mechanism, dict[str, bytes]]:
    """The mechanism in a file that is held in memory.

    Args:
        name: what the file is called, for messages and where the model says no name; it is never opened.
        data: a URDF, MJCF, SDF or JSON of our own (a mechanism, a DH table, an arm list), or a zip of
            one with its meshes.
    Returns:
        The mechanism, whose meshes have no `path`, and the files that came along: by the `uri` of a mesh, by the
        `texture` of a material, and what lies beside a mesh by the name that `BesideMeshes` has for it.
    Raises:
        FormatError: it cannot be read, or is refused; the message says why, and what to do.
    """
    shown = _shown(name)
    if is_zip(data):
        files = unzip(data, f"{shown}: ")
        model = _model(files, shown)
    else:
        files, model = {shown: _checked(shown, data)}, shown
    members = Members(files, model)
    source = members.source(model)
    mechanism = READERS[recognise(source)](source)
    return mechanism, _files(mechanism, members)


def _shown(name: str) -> str:
    """The last part of a name that anybody may have made up, in letters that can be printed."""
    last = re.split(r"[/\\]", name)[-1]
    kept = "".join(letter if letter.isprintable() and letter not in ":*?<>|" else "_" for letter in last).strip(" .")
    return kept[:80] or "file"


def _checked(name: str, data: bytes) -> bytes:
    """A description alone, if it can be one."""
    if not data.strip():
        raise FormatError(f"{name} is empty")
    if name.lower().endswith(MESHES):
        raise UnknownFormat(f"{name} is a mesh; drop the URDF, MJCF or SDF that names it, in a zip with its meshes")
    if b"\0" in data[:4096] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnknownFormat(f"{name} is a binary file, not the text of a URDF, MJCF, SDF or JSON mechanism, nor a zip")
    return data


def _model(files: dict[str, bytes], where: str) -> str:
    """The name of the model in a zip: the one that no other includes, and of those the one that is the least deep."""
    included = {
        PurePosixPath((mjcf or uri).decode(errors="replace").replace("\\", "/")).name
        for name, data in files.items()
        if name.lower().endswith(SUFFIXES)
        for mjcf, uri in _NAMED.findall(data[: 2**22])
    }
    found = [name for name, data in files.items() if _is_model(name, data)]
    if not found:
        if any(name.lower().endswith(".xacro") for name in files):
            raise FormatError(
                f"{where}: there is a xacro in it and no URDF; expand it first, with `xacro FILE > x.urdf`"
            )
        raise FormatError(f"{where}: there is no URDF, MJCF, SDF or JSON mechanism in this zip")
    tops = [name for name in found if PurePosixPath(name).name not in included] or found
    depth = min(name.count("/") for name in tops)
    least = sorted(name for name in tops if name.count("/") == depth)
    same = [name for name in least if PurePosixPath(name).stem == PurePosixPath(where).stem]
    if len(same or least) > 1:
        names = ", ".join(least[:_SHOWN]) + (", ..." if len(least) > _SHOWN else "")
        raise FormatError(f"{where}: there are {len(least)} models in this zip, {names}; pack the one that is meant")
    return (same or least)[0]


def _is_model(name: str, data: bytes) -> bool:
    lower = name.lower()
    if not lower.endswith(SUFFIXES) or lower.endswith(".closures.json") or not data.strip():
        return False
    try:
        kind = recognise(Source(data, None, name))
    except MechanikError:
        return False
    if kind == "JSON":
        return b'"mechanik"' in data[: 2**16]
    return b"<mujocoinclude" not in data[: 2**12]


def _files(mechanism: Mechanism, members: Members) -> dict[str, bytes]:
    named: dict[str, None] = {}
    for link in mechanism.links.values():
        for placed in (*link.visuals, *link.collisions):
            if isinstance(placed.shape, Mesh):
                named[placed.shape.uri] = None
            if placed.material is not None and placed.material.texture:
                named[placed.material.texture] = None
    places = {uri: members.find(uri) for uri in named}
    found = {uri: members.files[place] for uri, place in places.items() if place is not None}

    def find(name: str) -> bytes | None:
        place = members.find(name)
        return None if place is None else members.files[place]

    beside = BesideMeshes(find)
    for uri, data in list(found.items()):
        for name in beside.of(uri, data).values():
            if (content := find(name)) is not None:
                found.setdefault(name, content)
    return found
