"""Compiles an MJCF with MuJoCo, which resolves includes, defaults, frames and angles; missing files are allowed.

MuJoCo rejects a model whose meshes or textures are missing, although they do not affect its motion. So placeholders
replace the missing files. MuJoCo can compute the mass of a body from its meshes, and then a placeholder gives a wrong
mass. To detect this, the model is compiled with placeholders of two sizes, and masses that differ are dropped.

An uploaded model (a source with a file resolver) is not trusted; a file on disk and a text of the caller are trusted.
For an uploaded model, MuJoCo would search the disk for files that the model names, run plugins, and allocate textures,
grids and bodies of any size. So MuJoCo gets a sanitized text: includes are inserted, only elements that define the
motion, the actuators and the appearance remain, and placeholders replace all mesh files. The origin of each line is
stored for messages.
"""

from __future__ import annotations

import contextlib
import re
import struct
import threading
import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath, PurePosixPath
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from mechanik.errors import FormatError, MissingExtra
from mechanik.formats.source import FileResolver, Source
from mechanik.formats.urdf.reader import list_names
from mechanik.formats.xml_node import XmlNode, parse_xml
from mechanik.spatial import from_position_wxyz
from mechanik.spatial.array import Array
from mechanik.validation import format_count

MAX_MISSING_FILES = 1000
"""Maximum number of files that placeholders replace; each costs a compilation, because MuJoCo reports only the first
missing file."""

CompileFunction = Callable[[dict[str, bytes]], Any]
"""Compiles the model with the given file contents, by file name, and returns the `mujoco.MjModel`."""
_MISSING_FILE = re.compile(r"Error opening file '([^']+)'")


def compile_with_placeholders(
    compile_model: CompileFunction, placeholder_files: Sequence[str] = ()
) -> tuple[Any, list[str], list[int]]:
    """Compile a model with a placeholder for each STL, OBJ and PNG file that cannot be opened.

    Args:
        compile_model: called with the placeholders, by file name.
        placeholder_files: names of files that get a placeholder without an attempt to open them.

    Returns:
        The model, the names of all files with a placeholder (including `placeholder_files`), and the indices of the
        bodies whose mass is unknown.

    Raises:
        ValueError: MuJoCo rejects the model for another reason, such as a missing file of another type.
    """
    missing_files = list(placeholder_files)
    while True:
        try:
            model = compile_model(_placeholders(missing_files, 0.01))
            break
        except ValueError as error:
            match = _MISSING_FILE.search(str(error))
            is_new_asset = match is not None and match[1] not in missing_files and "'include'" not in str(error)
            if (
                match is None
                or not is_new_asset
                or len(missing_files) >= MAX_MISSING_FILES
                or not _placeholders([match[1]], 1.0)
            ):
                if missing_files:  # the placeholder may be the cause, for example if a texture needs a certain size
                    raise ValueError(f"{error} ({missing_files[-1]!r} could not be opened)") from None
                raise
            missing_files.append(match[1])
    if not missing_files:
        return model, [], []
    larger_model = compile_model(_placeholders(missing_files, 0.02))
    has_known_mass = np.isclose(model.body_mass, larger_model.body_mass, rtol=1e-9) & np.isclose(
        model.body_inertia, larger_model.body_inertia, rtol=1e-9, atol=0.0
    ).all(axis=1)
    return model, missing_files, np.flatnonzero(~has_known_mass).tolist()


def _placeholders(names: list[str], size: float) -> dict[str, bytes]:
    """Return a tetrahedron of `size` (m) for each STL and OBJ, four grey pixels for each PNG, nothing for others."""
    contents: dict[str, bytes] = {}
    for name in names:
        suffix = PurePath(name).suffix.lower()
        if suffix == ".stl":
            contents[name] = _stl_tetrahedron(size)
        elif suffix == ".obj":
            contents[name] = _obj_tetrahedron(size)
        elif suffix == ".png":
            contents[name] = _grey_png()
    return contents


TETRAHEDRON_VERTICES = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float64)
TETRAHEDRON_FACES = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))


def _stl_tetrahedron(size: float) -> bytes:
    facets = [
        struct.pack("<12fH", 0, 0, 0, *(size * TETRAHEDRON_VERTICES[list(face)]).ravel(), 0)
        for face in TETRAHEDRON_FACES
    ]
    return bytes(80) + struct.pack("<I", len(facets)) + b"".join(facets)


def _obj_tetrahedron(size: float) -> bytes:
    lines = [f"v {x} {y} {z}" for x, y, z in (size * TETRAHEDRON_VERTICES).tolist()]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in TETRAHEDRON_FACES]
    return "\n".join([*lines, ""]).encode()


def _grey_png() -> bytes:
    def chunk(chunk_type: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + chunk_type + data + struct.pack(">I", zlib.crc32(chunk_type + data))

    header = struct.pack(">2I5B", 2, 2, 8, 2, 0, 0, 0)  # the smallest size that a height field accepts
    pixels = zlib.compress(2 * (b"\0" + 6 * b"\x80"))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


MAX_MJCF_ELEMENTS = 10_000
"""Maximum number of elements after replication; the largest models have a few thousand."""
MAX_REPLICATES = 1_000
"""Largest count of a <replicate>."""

_BODIES = ("worldbody", "body", "frame", "replicate", "joint", "freejoint", "geom", "site", "inertial")
_CONSTRAINTS = ("equality", "connect", "weld", "tendon", "fixed", "spatial", "pulley")
_ACTUATORS = ("general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "adhesion")
_OTHER_ELEMENTS = (
    "mujoco",
    "compiler",
    "option",
    "default",
    "asset",
    "material",
    "mesh",
    "actuator",
    "keyframe",
    "key",
)
ALLOWED_ELEMENTS = frozenset((*_BODIES, *_CONSTRAINTS, *_ACTUATORS, *_OTHER_ELEMENTS))
"""Elements that are passed on to MuJoCo."""
FORBIDDEN_ELEMENTS = {
    "composite": "generates bodies",
    "flexcomp": "generates a flexible body",
    "attach": "copies bodies from another model",
    "plugin": "runs code from outside the model",
}
"""Elements that cannot be omitted without changing the model, with the reason why they are not allowed."""
_SCENE = ("visual", "statistic", "light", "camera", "texture", "layer")
_SIMULATION = ("size", "flag", "contact", "exclude", "pair", "sensor", "custom", "extension")
IRRELEVANT_ELEMENTS = frozenset((*_SCENE, *_SIMULATION))
"""Elements that are omitted without a warning, because they do not affect a mechanism."""
FOLDER_ATTRIBUTES = ("meshdir", "texturedir", "assetdir")
"""Attributes of <compiler> that name folders."""
MAX_BUILTIN_PARAMETER = 64
"""Largest absolute value of a parameter of a built-in mesh; some parameters are numbers of divisions."""


@dataclass(slots=True)
class SanitizedMjcf:
    """The sanitized text for MuJoCo.

    Attributes:
        line_origins: origin of each line for messages, such as "arm.xml, line 12"; empty for an end tag.
        lines: the lines of the text.
        mesh_uris: the uri of the mesh that each placeholder replaces, by the name of the placeholder.
        missing_uris: uris of the mesh files that were not uploaded.
        omitted_tags: tags of the elements that were omitted with a warning, as keys.
    """

    line_origins: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    mesh_uris: dict[str, str] = field(default_factory=dict[str, str])
    missing_uris: list[str] = field(default_factory=list[str])
    omitted_tags: dict[str, None] = field(default_factory=dict[str, None])


def sanitize_mjcf(mjcf_source: Source, resolver: FileResolver) -> SanitizedMjcf:
    """Return the sanitized text of an uploaded model.

    Raises:
        FormatError: the text is not XML, has an element that is not allowed, includes a file that does not exist, or
            is too large.
    """
    root = parse_xml(mjcf_source, FormatError)
    _insert_includes(root, resolver, {mjcf_source.member})
    _check_size(root)
    return _SanitizingWriter(root, resolver).write()


def _insert_includes(root: XmlNode, resolver: FileResolver, included_files: set[str]) -> None:
    """Insert the content of included files; each file may be included once, as in MuJoCo."""
    node_stack = [root]
    while node_stack:
        node = node_stack.pop()
        children, remaining_nodes = list[XmlNode](), node.children[::-1]
        while remaining_nodes:
            child = remaining_nodes.pop()
            child.parent = node
            if child.tag == "include":
                remaining_nodes += _open_included(child, resolver, included_files).children[::-1]
            else:
                children.append(child)
        node.children = children
        node_stack += children


def _open_included(node: XmlNode, resolver: FileResolver, included_files: set[str]) -> XmlNode:
    uri = node.require("file")
    source = resolver.open(uri)
    if source is None:
        raise node.make_error(f"names the file {uri!r}, which does not exist{resolver.search_hint(uri)}")
    if source.member in included_files:
        raise node.make_error(f"includes {uri!r} a second time")
    included_files.add(source.member)
    root = parse_xml(source, FormatError)
    if root.tag not in ("mujoco", "mujocoinclude"):
        raise node.make_error(
            f"includes {uri!r}, whose root element is <{root.tag}>; it must be <mujoco> or <mujocoinclude>"
        )
    return root


def _check_size(root: XmlNode) -> None:
    """Count the elements after replication, from the leaves to the root, and raise an error above the limit."""
    element_counts: dict[int, int] = {}
    for node in reversed(list(root.walk())):
        element_count = 1 + sum(element_counts[id(child)] for child in node.children)
        if node.tag == "replicate":
            count = node.number("count")
            if count is None or not 0 < count <= MAX_REPLICATES:
                raise node.make_error(
                    f"has count={node.attributes.get('count')!r}; it must be from 1 to {MAX_REPLICATES}"
                )
            element_count *= int(count)
        if element_count > MAX_MJCF_ELEMENTS:
            raise node.make_error(f"expands to more than {MAX_MJCF_ELEMENTS} elements, the limit for uploads")
        element_counts[id(node)] = element_count


class _SanitizingWriter:
    """Writes the allowed elements of a document, line by line."""

    def __init__(self, root: XmlNode, resolver: FileResolver) -> None:
        self.root, self.resolver = root, resolver
        self.result = SanitizedMjcf()
        compilers = [node for node in root.walk() if node.tag == "compiler"]
        options = {key: value for node in compilers for key, value in node.attributes.items()}
        self.mesh_folder = options.get("meshdir", options.get("assetdir", "")).strip()
        self.strips_paths = options.get("strippath", "false").strip() == "true"

    def write(self) -> SanitizedMjcf:
        stack: list[XmlNode | str] = [self.root]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                self.result.lines.append(node)
                self.result.line_origins.append("")
                continue
            children = [child for child in node.children if self._is_allowed(child)]
            attributes = "".join(f" {key}={_quote(value)}" for key, value in self._safe_attributes(node).items())
            self.result.lines.append(f"<{node.tag}{attributes}{'>' if children else '/>'}")
            self.result.line_origins.append(node.location)
            if children:
                stack += [f"</{node.tag}>", *reversed(children)]
        return self.result

    def _is_allowed(self, node: XmlNode) -> bool:
        """Return whether an element is written; record the tag of an element that is omitted with a warning."""
        if node.tag in FORBIDDEN_ELEMENTS:
            raise node.make_error(f"{FORBIDDEN_ELEMENTS[node.tag]}, which is not allowed in an uploaded model")
        if node.tag in ALLOWED_ELEMENTS:
            return not (node.tag == "geom" and self._is_height_field(node))
        if node.tag not in IRRELEVANT_ELEMENTS:
            self.result.omitted_tags.setdefault(node.tag)
        return False

    def _is_height_field(self, node: XmlNode) -> bool:
        """Return whether a geom is a height field, which is omitted; record its tag for the warning."""
        if "hfield" in node.attributes or node.attributes.get("type", "").strip() == "hfield":
            self.result.omitted_tags.setdefault("hfield")
            return True
        return False

    def _safe_attributes(self, node: XmlNode) -> dict[str, str]:
        attributes = {
            key: value for key, value in node.attributes.items() if ":" not in key and not key.startswith("file")
        }
        if node.tag == "compiler":
            attributes = {key: value for key, value in attributes.items() if key not in FOLDER_ATTRIBUTES}
        elif node.tag == "material":
            attributes = {key: value for key, value in attributes.items() if key != "texture"}
        elif node.tag == "mesh" and "file" in node.attributes:
            attributes = self._mesh_attributes(node, attributes)
        elif node.tag == "mesh" and "builtin" in node.attributes:
            _check_builtin_mesh(node)
        return attributes

    def _mesh_attributes(self, node: XmlNode, attributes: dict[str, str]) -> dict[str, str]:
        """Return the attributes of a mesh with a placeholder file; an unnamed mesh has the name of its file."""
        file = node.require("file").strip().replace("\\", "/")
        uri = PurePosixPath(file).name if self.strips_paths else file
        if self.mesh_folder and not uri.startswith("/"):
            uri = f"{self.mesh_folder.rstrip('/')}/{uri}"
        name = f"placeholder-{len(self.result.mesh_uris)}.stl"
        self.result.mesh_uris[name] = uri
        if not self.resolver.locate(uri)[0]:
            self.result.missing_uris.append(uri)
        attributes = {key: value for key, value in attributes.items() if key != "content_type"}
        return {"name": PurePosixPath(file).stem, **attributes, "file": name}


def _check_builtin_mesh(node: XmlNode) -> None:
    words = node.attributes.get("params", "").split()
    numbers = node.numbers("params", len(words)) or ()
    if any(abs(number) > MAX_BUILTIN_PARAMETER for number in numbers):
        raise node.make_error(f"has params={node.attributes['params']!r}; the limit is {MAX_BUILTIN_PARAMETER}")


def _quote(value: str) -> str:
    return quoteattr(value, {"\n": " ", "\r": " ", "\t": " "})


def omission_warning(tags: Iterable[str]) -> str:
    return f"these elements are ignored in an uploaded model: {list_names([f'<{tag}>' for tag in tags])}"


FREE, BALL, SLIDE, HINGE = range(4)
"""MuJoCo's joint types (`mjtJoint`)."""
JOINT_TYPE_NAMES = ("free", "ball", "slide", "hinge")
"""Names of the joint types."""

ERROR_HINTS = {
    "mass and inertia of moving bodies": "; give that body a <geom> or an <inertial>",
    "'mujocoinclude'": "; load the file that includes this file",
    "Error opening file": "; MuJoCo searches beside the model and in the folder that <compiler> names",
}
"""Advice for some of MuJoCo's error messages, by a part of the message."""

_WARNING_HANDLER_LOCK = threading.Lock()


class MjcfModel:
    """The model that MuJoCo compiled, with a name for every body and joint, and the warnings so far.

    Attributes:
        mujoco: the module.
        mj_model: the `mujoco.MjModel`.
        message_prefix: prefix of messages: the file name and a colon, or nothing.
        warnings: the warnings so far.
        body_names, joint_names: names by index; unnamed bodies are named by their index, unnamed joints after their
            body.
        bodies_without_mass: indices of the bodies whose mass is unknown, because MuJoCo had placeholders for their
            meshes.
        sanitized_mjcf: the text that MuJoCo compiled for an uploaded model; otherwise None.
        used_joint_names: all joint names in use, including the joints that the reader adds.
    """

    def __init__(self, mujoco: Any, mj_model: Any, message_prefix: str) -> None:
        self.mujoco, self.mj_model, self.message_prefix = mujoco, mj_model, message_prefix
        self.warnings: list[str] = []
        self.bodies_without_mass: frozenset[int] = frozenset()
        self.sanitized_mjcf: SanitizedMjcf | None = None
        body_names = [self.name_of("body", body) for body in range(mj_model.nbody)]
        used_body_names = set(body_names)
        self.body_names = [name or unused_name(f"body{body}", used_body_names) for body, name in enumerate(body_names)]
        joint_names = [self.name_of("joint", joint) for joint in range(mj_model.njnt)]
        self.used_joint_names = set(joint_names)
        self.joint_names = [
            name or unused_name(f"{self.body_names[body]}_{JOINT_TYPE_NAMES[joint_type]}", self.used_joint_names)
            for name, body, joint_type in zip(
                joint_names, mj_model.jnt_bodyid.tolist(), mj_model.jnt_type.tolist(), strict=True
            )
        ]

    @property
    def name(self) -> str:
        """Name of the model in the file; empty if it is MuJoCo's default."""
        name = bytes(self.mj_model.names).split(b"\0")[0].decode(errors="replace")
        return "" if name == "MuJoCo Model" else name

    def name_of(self, kind: str, index: int) -> str:
        """Return the name of a body, joint, site, ... in the file; empty if it has none."""
        return self.mujoco.mj_id2name(self.mj_model, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), index) or ""

    def warn(self, message: str) -> None:
        self.warnings.append(f"{self.message_prefix}{message}")

    def pose_of(self, kind: str, index: int) -> Array:
        """Return the pose (4, 4) of a "body" in its parent, or of a "geom" or "site" in its body."""
        position, wxyz = getattr(self.mj_model, f"{kind}_pos")[index], getattr(self.mj_model, f"{kind}_quat")[index]
        return from_position_wxyz(position, wxyz)

    def mesh_file(self, mesh: int) -> str:
        """Return the path of a mesh that MuJoCo stores; empty if the mesh was not read from a file."""
        address = int(self.mj_model.mesh_pathadr[mesh])
        if address < 0:
            return ""
        return bytes(self.mj_model.paths)[address:].split(b"\0")[0].decode(errors="replace")


def compile_mjcf(mjcf_source: Source) -> MjcfModel:
    """Compile an MJCF file or text with MuJoCo.

    Raises:
        MissingExtra: MuJoCo is not installed.
        FormatError: the text is not XML, has no body, or is an upload with content that is not allowed; or MuJoCo
            rejects it.
    """
    try:
        import mujoco
    except ImportError:
        raise MissingExtra("reading MJCF", "mjcf") from None
    module: Any = mujoco

    sanitized_mjcf = None if mjcf_source.resolver is None else sanitize_mjcf(mjcf_source, mjcf_source.resolver)

    def compile_model(files: dict[str, bytes]) -> Any:
        if sanitized_mjcf is not None:
            return module.MjModel.from_xml_string("\n".join(sanitized_mjcf.lines), files)
        if mjcf_source.path is not None:
            return module.MjModel.from_xml_path(str(mjcf_source.path), files)
        return module.MjModel.from_xml_string(mjcf_source.text().lstrip("\ufeff"), files)

    try:
        with _collect_warnings(module) as messages:
            mj_model, missing_files, bodies_without_mass = compile_with_placeholders(
                compile_model, list(sanitized_mjcf.mesh_uris) if sanitized_mjcf else ()
            )
    except (ValueError, TypeError, OSError, RuntimeError, module.FatalError, module.UnexpectedError) as error:
        if isinstance(error, FormatError):
            raise
        parse_xml(mjcf_source)  # raises a better error if the text is not XML
        if sanitized_mjcf is not None:
            raise FormatError(_explain(str(error), sanitized_mjcf.line_origins)) from None
        raise FormatError(f"{mjcf_source.message_prefix}{_explain(str(error))}") from None
    if mj_model.nbody < 2:
        raise FormatError(f"{mjcf_source.message_prefix}the MJCF has no <body> in its <worldbody>")
    model = MjcfModel(module, mj_model, mjcf_source.message_prefix)
    for message in dict.fromkeys(messages):
        model.warn(f"MuJoCo warns: {' '.join(message.split())}")
    if sanitized_mjcf is not None:
        model.sanitized_mjcf, missing_files = sanitized_mjcf, sanitized_mjcf.missing_uris
        if sanitized_mjcf.omitted_tags:
            model.warn(omission_warning(sanitized_mjcf.omitted_tags))
    if missing_files:
        model.warn(
            f"{format_count(len(missing_files), 'mesh or texture file')} could not be opened: "
            f"{list_names(missing_files)}"
        )
    if bodies_without_mass:
        names = [model.body_names[body] for body in bodies_without_mass]
        reason = "their meshes are missing" if sanitized_mjcf is None else "uploaded meshes are not passed to MuJoCo"
        model.warn(f"the mass of these bodies is unknown, because {reason}: {list_names(names)}")
    model.bodies_without_mass = frozenset(bodies_without_mass)
    return model


@contextlib.contextmanager
def _collect_warnings(mujoco: Any) -> Generator[list[str]]:
    """Collect MuJoCo's warnings; by default MuJoCo writes them to a log file in the working directory."""
    messages: list[str] = []
    with _WARNING_HANDLER_LOCK:
        previous_handler = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(messages.append)
        try:
            yield messages
        finally:
            mujoco.set_mju_user_warning(previous_handler)


def unused_name(name: str, used_names: set[str]) -> str:
    """Return a name that is not in `used_names`, if necessary with a number, and add it to `used_names`."""
    candidate, number = name, 1
    while candidate in used_names:
        number += 1
        candidate = f"{name}{number}"
    used_names.add(candidate)
    return candidate


def _explain(message: str, line_origins: Sequence[str] = ()) -> str:
    """Return MuJoCo's message as one line, which begins with the location if MuJoCo states it.

    Args:
        message: the message of MuJoCo.
        line_origins: origin of each line of a sanitized text; otherwise empty.
    """
    text = " ".join(message.split())
    line_match = re.search(r"(?:, line |Line number=)(\d+)", text)
    text = re.sub(r"^(XML Error: |Error: |XML parse error \d+: )+", "", text)
    text = re.sub(r" Element name '', id \d+(, line \d+)?", "", text)
    text = re.sub(r" Element (?:name )?('[^']*')(?:, id \d+)?(?:, line \d+)?", r" (element \1)", text)
    hint = next((hint for part, hint in ERROR_HINTS.items() if part in message), "")
    location = f"line {line_match[1]}: " if line_match and line_match[1] != "0" else ""
    if location and line_origins:
        line_number = int(line_match[1]) if line_match else 0
        origin = line_origins[line_number - 1] if line_number <= len(line_origins) else ""
        location = f"{origin}: " if origin else ""
    return f"{location}MuJoCo rejects the model: {text}{hint}"
