"""MJCF to MuJoCo's compiled model: includes, defaults, frames and angles are all resolved by MuJoCo itself."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Generator, Sequence
from typing import Any

from mechanik.errors import FormatError, MissingExtra, MjcfError
from mechanik.formats.mjcf_in_memory import Enclosed, enclose, left_out_text
from mechanik.formats.mjcf_missing import compile_without_files
from mechanik.formats.source import Source
from mechanik.formats.urdf_tree import listed
from mechanik.formats.xml_text import parse_xml
from mechanik.mechanism.door import counted
from mechanik.spatial import from_position_wxyz
from mechanik.spatial.array import Array

FREE, BALL, SLIDE, HINGE = range(4)
"""MuJoCo's kinds of joints, by its numbers."""
KINDS = ("free", "ball", "slide", "hinge")

HINTS = {
    "mass and inertia of moving bodies": "; give that body a <geom> or an <inertial>, which MuJoCo needs to move it",
    "'mujocoinclude'": "; it is a part for others to include, so load the file that includes it",
    "Error opening file": "; MuJoCo looks for it beside the model, and in the folder that <compiler> names",
}
"""What to do about some of MuJoCo's messages, for people who have not met them."""

_ONE_AT_A_TIME = threading.Lock()


class Model:
    """MuJoCo's compiled model, a name for everything in it, and the warnings so far.

    Attributes:
        raw: the `mujoco.MjModel`.
        bodies, joints: names by number; what the file leaves unnamed is called by its number, or after its body.
        weightless: numbers of the bodies whose mass is not known, since their meshes are missing.
        enclosed: what MuJoCo got in place of a model that is held in memory.
        joint_names: all that are taken, those of joints which are made beside the file's own among them.
    """

    def __init__(self, mujoco: Any, raw: Any, where: str) -> None:
        self.mujoco, self.raw, self.where = mujoco, raw, where
        self.warnings: list[str] = []
        self.weightless: frozenset[int] = frozenset()
        self.enclosed: Enclosed | None = None
        own = [self.name_of("body", b) for b in range(raw.nbody)]
        taken = set(own)
        self.bodies = [name or fresh(f"body{b}", taken) for b, name in enumerate(own)]
        own = [self.name_of("joint", j) for j in range(raw.njnt)]
        self.joint_names = set(own)
        self.joints = [
            name or fresh(f"{self.bodies[body]}_{KINDS[kind]}", self.joint_names)
            for name, body, kind in zip(own, raw.jnt_bodyid.tolist(), raw.jnt_type.tolist(), strict=True)
        ]

    @property
    def name(self) -> str:
        """What the file calls the model; nothing where that is MuJoCo's own default."""
        name = bytes(self.raw.names).split(b"\0")[0].decode(errors="replace")
        return "" if name == "MuJoCo Model" else name

    def name_of(self, kind: str, number: int) -> str:
        """The name in the file of a body, joint, site, ...; empty without one."""
        return self.mujoco.mj_id2name(self.raw, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), number) or ""

    def warn(self, what: str) -> None:
        self.warnings.append(f"{self.where}{what}")

    def place(self, kind: str, number: int) -> Array:
        """The pose (4, 4) that the model gives a "body", "geom" or "site": in its parent, or on its body."""
        position, wxyz = getattr(self.raw, f"{kind}_pos")[number], getattr(self.raw, f"{kind}_quat")[number]
        return from_position_wxyz(position, wxyz)

    def file_of(self, kind: str, number: int) -> str:
        """The path that stands for a "mesh" or a "tex", as MuJoCo opened it; empty if it came from no file."""
        address = int(getattr(self.raw, f"{kind}_pathadr")[number])
        if address < 0:
            return ""
        return bytes(self.raw.paths)[address:].split(b"\0")[0].decode(errors="replace")


def open_model(opened: Source) -> Model:
    """Compile a file, or text.

    Raises:
        MissingExtra: MuJoCo is not installed.
        XmlError: it is not even XML.
        MjcfError: MuJoCo refuses it; the message is MuJoCo's, with the place.
    """
    try:
        import mujoco
    except ImportError:
        raise MissingExtra("reading MJCF", "mjcf") from None
    module: Any = mujoco

    enclosed = None if opened.around is None else enclose(opened, opened.around)

    def compile_model(files: dict[str, bytes]) -> Any:
        if enclosed is not None:
            return module.MjModel.from_xml_string("\n".join(enclosed.text), files)
        if opened.path is not None:
            return module.MjModel.from_xml_path(str(opened.path), files)
        return module.MjModel.from_xml_string(opened.text().lstrip("\ufeff"), files)

    try:
        with _listening(module) as said:
            raw, missing, weightless = compile_without_files(compile_model, list(enclosed.meshes) if enclosed else ())
    except (ValueError, TypeError, OSError, RuntimeError, module.FatalError, module.UnexpectedError) as error:
        if isinstance(error, FormatError):
            raise
        parse_xml(opened)  # if it is no XML, this says so, and where
        if enclosed is not None:
            raise MjcfError(_explained(str(error), enclosed.lines)) from None
        raise MjcfError(f"{opened.where}{_explained(str(error))}") from None
    if raw.nbody < 2:
        raise MjcfError(f"{opened.where}the MJCF has no <body> in its <worldbody>, so there is nothing in it")
    model = Model(module, raw, opened.where)
    for text in dict.fromkeys(said):
        model.warn(f"MuJoCo says: {' '.join(text.split())}")
    if enclosed is not None:
        model.enclosed, missing = enclosed, enclosed.missing
        if enclosed.left_out:
            model.warn(left_out_text(enclosed.left_out))
    if missing:
        model.warn(
            f"{counted(len(missing), 'file')} could not be opened, and nothing is drawn for them: {listed(missing)}"
        )
    if weightless:
        names = [model.bodies[body] for body in weightless]
        why = "without their meshes" if enclosed is None else "without the meshes, which MuJoCo is not shown"
        model.warn(f"{why}, the mass of these bodies is not known: {listed(names)}")
    model.weightless = frozenset(weightless)
    return model


@contextlib.contextmanager
def _listening(mujoco: Any) -> Generator[list[str]]:
    """What MuJoCo warns of, which it would otherwise write into a file in the present folder."""
    said: list[str] = []
    with _ONE_AT_A_TIME:
        before = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(said.append)
        try:
            yield said
        finally:
            mujoco.set_mju_user_warning(before)


def fresh(name: str, taken: set[str]) -> str:
    """A name that is not taken, and now is: the one that is wanted, or that with a number."""
    new, number = name, 1
    while new in taken:
        number += 1
        new = f"{name}{number}"
    taken.add(new)
    return new


def _explained(said: str, lines: Sequence[str] = ()) -> str:
    """MuJoCo's message in one line, the line in the file first; `lines` says where each line comes from."""
    text = " ".join(said.split())
    line = re.search(r"(?:, line |Line number=)(\d+)", text)
    text = re.sub(r"^(XML Error: |Error: |XML parse error \d+: )+", "", text)
    text = re.sub(r" Element name '', id \d+(, line \d+)?", "", text)
    text = re.sub(r" Element (?:name )?('[^']*')(?:, id \d+)?(?:, line \d+)?", r" (element \1)", text)
    hint = next((hint for mark, hint in HINTS.items() if mark in said), "")
    place = f"line {line[1]}: " if line and line[1] != "0" else ""
    if place and lines:
        number = int(line[1]) if line else 0
        place = f"{lines[number - 1]}: " if number <= len(lines) and lines[number - 1] else ""
    return f"{place}MuJoCo cannot read it: {text}{hint}"
