"""Invalid URDFs: each raises an error that names the line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanik.errors import FileMissing, FormatError, MechanikError
from mechanik.formats.urdf.reader import read_urdf

HEAD = '<robot name="r">\n'
AB = '<link name="a"/><link name="b"/>'


def j(inside: str = "", kind: str = "revolute", name: str = "elbow", ends: tuple[str, str] = ("a", "b")) -> str:
    joint = f'<joint name="{name}" type="{kind}"><parent link="{ends[0]}"/><child link="{ends[1]}"/>'
    return f"{HEAD}{AB}{joint}{inside}</joint></robot>"


def shape(solid: str) -> str:
    return f'{HEAD}<link name="arm"><visual><geometry>{solid}</geometry></visual></link></robot>'


LAUGHS = '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><robot name="&b;"/>'
OUTSIDE = '<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/passwd">]><robot name="&e;"/>'
PARAMETER = '<!DOCTYPE r [<!ENTITY % e SYSTEM "http://x.invalid/e.dtd"> %e;]><robot name="r"/>'


def fixed(name: str, parent: str, child: str) -> str:
    return f'<joint name="{name}" type="fixed"><parent link="{parent}"/><child link="{child}"/></joint>'


def follows(name: str, parent: str, child: str, leader: str) -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="continuous">{ends}<mimic joint="{leader}"/></joint>'


BAD: dict[str, tuple[str, type[MechanikError], str]] = {
    # XML
    "not XML": ("<robot name=r>", FormatError, "line 1, column"),
    "wrong closing tag": ('<robot name="r">\n<link name="a"></robot>', FormatError, "line 2.*link 'a'"),
    "truncated": ('<robot name="r">\n<link name="hand">', FormatError, "truncated"),
    "truncated in an attribute": ('<robot name="r"><link na', FormatError, "line 1"),
    "only a comment": ("<!-- robot -->", FormatError, "no XML element"),
    "two documents": ('<robot name="r"/><robot name="s"/>', FormatError, "junk after"),
    "billion laughs": (LAUGHS, FormatError, "entity 'a'"),
    "external entity": (OUTSIDE, FormatError, "entity 'e'"),
    "external parameter entity": (PARAMETER, FormatError, "entity 'e'"),
    "undefined entity": ('<robot name="&nbsp;"/>', FormatError, "undefined entity"),
    "very deep": ("<robot>" + "<a>" * 100_000, FormatError, "deeper than the limit of 200"),
    "doubled attribute": ('<robot name="a" name="b"/>', FormatError, "duplicate attribute"),
    "control character": ('<robot name="\x01"/>', FormatError, "not well-formed"),
    "half a surrogate": ('<robot name="\ud800"/>', FormatError, "surrogate"),
    # not a URDF
    "xacro element": (f'{HEAD}<xacro:macro name="leg"/></robot>', FormatError, "line 2.*xacro in.xacro > out.urdf"),
    "xacro under another prefix": (
        '<robot xmlns:x="http://www.ros.org/wiki/xacro"><x:if/></robot>',
        FormatError,
        "<x:if>",
    ),
    "xacro expression": (f'{HEAD}<link name="${{prefix}}a"/></robot>', FormatError, "prefix.*xacro in.xacro"),
    "xacro substitution": (shape('<mesh filename="$(find p)/a.stl"/>'), FormatError, "find p"),
    "MJCF": ("<mujoco/>", FormatError, "<mujoco>.*this is an MJCF"),
    "SDF": ("<sdf/>", FormatError, "an SDF model"),
    "another root": ("<html/>", FormatError, "is <html>; a URDF has <robot>"),
    "a robot of joints only": (
        f'{HEAD}<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint></robot>',
        FormatError,
        "'a'; there is no such link",
    ),
    # names
    "a link without a name": (f"{HEAD}<link/></robot>", FormatError, "line 2: <link> has no 'name'"),
    "a link with an empty name": (f'{HEAD}<link name=" "/></robot>', FormatError, "empty 'name'"),
    "a joint without a name": (f"{HEAD}{AB}<joint type='fixed'/></robot>", FormatError, "<joint> has no 'name'"),
    "two links of one name": (
        f'{HEAD}<link name="a"/>\n<link name="a"/></robot>',
        FormatError,
        "line 3.*link in line 2.*'a'",
    ),
    "two joints of one name": (
        j().replace("</robot>", '<joint name="elbow" type="fixed"/></robot>'),
        FormatError,
        "is also called 'elbow'",
    ),
    # structure
    "no type": (j().replace(' type="revolute"', ""), FormatError, "joint 'elbow' has no 'type'"),
    "an unknown type": (j(kind="revolut"), FormatError, "'elbow'.*'revolut'.*did you mean 'revolute'"),
    "no parent": (j().replace('<parent link="a"/>', ""), FormatError, "joint 'elbow' has no <parent>"),
    "no child": (j().replace('<child link="b"/>', ""), FormatError, "joint 'elbow' has no <child>"),
    "a parent without a link": (
        j().replace('<parent link="a"/>', "<parent/>"),
        FormatError,
        "<parent> of joint 'elbow'",
    ),
    "an unknown parent": (
        j(ends=("base", "b")),
        FormatError,
        "<parent> of joint 'elbow'.*'base'; there is no such link",
    ),
    "an unknown child": (j(ends=("a", "bb")), FormatError, "'bb'.*did you mean 'b'"),
    "a link joined to itself": (j(ends=("a", "a")), FormatError, "'elbow' connects the link 'a' to itself"),
    "two roots": (f"{HEAD}{AB}</robot>", FormatError, "2 links are not the child of any joint.*'a', 'b'"),
    "two parents": (
        f'{HEAD}{AB}<link name="c"/>{fixed("p", "a", "c")}{fixed("q", "b", "c")}</robot>',
        FormatError,
        "'q' has the child 'c', which is already the child of joint 'p'",
    ),
    "a loop without a root": (
        f"{HEAD}{AB}{fixed('p', 'a', 'b')}{fixed('q', 'b', 'a')}</robot>",
        FormatError,
        "cycle without a root: 'a' -> 'b' -> 'a'",
    ),
    "a loop beside a root": (
        f'{HEAD}<link name="root"/>{AB}{fixed("p", "a", "b")}{fixed("q", "b", "a")}</robot>',
        FormatError,
        "cycle",
    ),
    # numbers
    "a NaN": (j('<origin xyz="0 nan 0"/>'), FormatError, "<origin> of joint 'elbow'.*'nan' is not a finite number"),
    "an infinity": (j('<origin rpy="0 0 inf"/>'), FormatError, "'inf' is not a finite number"),
    "a number too large for a float": (j('<origin xyz="1e400 0 0"/>'), FormatError, "not a finite number"),
    "a huge distance": (j('<origin xyz="1e200 0 0"/>'), FormatError, "the limit of a position is 1e\\+09 m"),
    "two numbers of three": (j('<origin xyz="1 2"/>'), FormatError, "2 numbers instead of 3"),
    "four numbers of three": (j('<axis xyz="1 0 0 0"/>'), FormatError, "<axis> of joint 'elbow'.*4 numbers"),
    "commas": (j('<origin xyz="1,2,3"/>'), FormatError, "separate them by spaces"),
    "a word": (j('<origin xyz="1 two 3"/>'), FormatError, "'two' is not a number"),
    "an underscore": (j('<origin xyz="1_0 2 3"/>'), FormatError, "'1_0' is not a number"),
    "an empty vector": (j('<origin xyz=""/>'), FormatError, "0 numbers instead of 3"),
    "a zero axis": (j('<axis xyz="0 0 0"/>'), FormatError, "<axis> of joint 'elbow' is '0 0 0'; it must not be zero"),
    "an axis too long to square": (
        j('<axis xyz="1e300 1e300 0"/>'),
        FormatError,
        "must not be zero, nor longer than",
    ),
    "a zero quaternion": (
        j('<origin quat_xyzw="0 0 0 0"/>'),
        FormatError,
        "the norm of a quaternion must be 1e-9 to 1e9",
    ),
    "limits upside down": (
        j('<axis xyz="0 0 1"/><limit lower="2" upper="1"/>'),
        FormatError,
        "'elbow'.*lower limit of 2 rad, above its upper limit of 1 rad",
    ),
    "limits beyond everything": (
        j('<axis xyz="0 0 1"/><limit lower="1e31" upper="1e32"/>'),
        FormatError,
        "beyond 1e\\+30",
    ),
    "a NaN limit": (j('<axis xyz="0 0 1"/><limit lower="nan" upper="1"/>'), FormatError, "<limit> of joint 'elbow'"),
    "a broken effort": (
        j('<axis xyz="0 0 1"/><limit upper="1" effort="much"/>'),
        FormatError,
        "'much' is not a number",
    ),
    "a NaN safety limit": (
        j('<axis xyz="0 0 1"/><safety_controller k_velocity="nan"/>'),
        FormatError,
        "<safety_controller>",
    ),
    # mimic
    "a mimic of itself": (
        j('<axis xyz="0 0 1"/><mimic joint="elbow"/>'),
        FormatError,
        "<mimic> of joint 'elbow'.*elbow -> elbow",
    ),
    "a mimic of nothing": (j("<mimic/>"), FormatError, "<mimic> of joint 'elbow' has no 'joint'"),
    "a NaN ratio": (
        j('<axis xyz="0 0 1"/><mimic joint="k" multiplier="nan"/>').replace(
            "</robot>",
            '<link name="c"/><joint name="k" type="continuous"><parent link="b"/><child link="c"/></joint></robot>',
        ),
        FormatError,
        "multiplier='nan'",
    ),
    "mimics in a circle": (
        f'{HEAD}{AB}<link name="c"/>{follows("p", "a", "b", "q")}{follows("q", "b", "c", "p")}</robot>',
        FormatError,
        "mimic itself: p -> q -> p",
    ),
    # shapes and masses
    "a negative box": (shape('<box size="1 -1 1"/>'), FormatError, "<box> of link 'arm'.*sizes are from 0"),
    "a box of two sides": (shape('<box size="1 1"/>'), FormatError, "2 numbers instead of 3"),
    "a box without a size": (shape("<box/>"), FormatError, "<box> of link 'arm' has no 'size'"),
    "a sphere without a radius": (shape("<sphere/>"), FormatError, "has no 'radius'"),
    "a negative radius": (shape('<sphere radius="-1"/>'), FormatError, "radius='-1'"),
    "a cylinder without a length": (shape('<cylinder radius="1"/>'), FormatError, "has no 'length'"),
    "a huge capsule": (shape('<capsule radius="1" length="1e300"/>'), FormatError, "length='1e300'"),
    "a scale of one number": (shape('<mesh filename="a.stl" scale="0.001"/>'), FormatError, "1 number instead of 3"),
    "a flat scale": (shape('<mesh filename="a.stl" scale="1 0 1"/>'), FormatError, "makes it flat"),
    "a NaN scale": (shape('<mesh filename="a.stl" scale="1 nan 1"/>'), FormatError, "'nan' is not a finite"),
    "a colour of three numbers": (
        f'{HEAD}<material name="red"><color rgba="1 0 0"/></material><link name="a"/></robot>',
        FormatError,
        "<color> of material 'red'.*3 numbers instead of 4",
    ),
    "a negative mass": (
        f'{HEAD}<link name="arm"><inertial><mass value="-1"/></inertial></link></robot>',
        FormatError,
        "<inertial> of link 'arm'.*negative",
    ),
    "a NaN inertia": (
        f'{HEAD}<link name="arm"><inertial><mass value="1"/><inertia ixx="nan"/></inertial></link></robot>',
        FormatError,
        "<inertia> of link 'arm'",
    ),
    # our block
    "an unknown part of our block": (
        f'{HEAD}<link name="a"/><mechanik><loop/></mechanik></robot>',
        FormatError,
        "<loop> is unknown",
    ),
    "a base without a name": (f'{HEAD}<link name="a"/><mechanik><base/></mechanik></robot>', FormatError, "no 'free'"),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_urdf_raises_an_error_that_names_the_line(case: str) -> None:
    text, kind, message = BAD[case]
    with pytest.raises(kind, match=f"(?s){message}"):
        read_urdf(text)


@pytest.mark.parametrize("case", BAD)
def test_error_in_a_urdf_file_names_the_file(case: str, tmp_path: Path) -> None:
    text, kind, _ = BAD[case]
    path = tmp_path / "broken.urdf"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(kind, match=r"broken\.urdf"):
        read_urdf(path)


WHOLE = (Path(__file__).parent.parent / "data" / "klampt" / "tree9.urdf").read_text()
PIECES = st.sampled_from(
    ["", "<", ">", '"', "/", " ", "nan", "1e999", "-", "link", "joint", "&", "<!--", "\0", "é", "0"]
)


@given(st.lists(st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 40), PIECES), min_size=1, max_size=3))
def test_damaged_urdf_is_read_or_raises_a_mechanik_error(damages: list[tuple[int, int, str]]) -> None:
    text = WHOLE
    for start, length, piece in damages:
        text = text[:start] + piece + text[start + length :]
    try:
        mechanism = read_urdf(text if text.lstrip().startswith("<") else "<" + text)
    except MechanikError:
        return
    assert np.isfinite(mechanism.poses(mechanism.neutral())).all()


def test_at_least_60_kinds_of_invalid_urdf_are_tested() -> None:
    assert len(BAD) >= 60


def test_folder_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="is a folder"):
        read_urdf(tmp_path)


def test_error_on_a_missing_urdf_lists_the_files_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "panda.urdf").write_text("<robot/>")
    with pytest.raises(FileMissing, match=r"panada.urdf.*Did you mean 'panda.urdf'"):
        read_urdf(tmp_path / "panada.urdf")


@pytest.mark.parametrize("data", [b"\x7fELF\0\0\1\2", b"\x89PNG\r\n\x1a\n\0\0", bytes(range(256)), b"", b" \n"])
def test_binary_and_empty_files_raise_an_error(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.urdf"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"a\.urdf"):
        read_urdf(path)


def test_wrong_encoding_declaration_raises_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.urdf"
    path.write_bytes('<?xml version="1.0" encoding="utf-8"?><robot name="größe"/>'.encode("latin-1"))
    with pytest.raises(FormatError, match=r"a\.urdf, line 1"):
        read_urdf(path)


def test_unknown_encoding_raises_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.urdf"
    path.write_bytes(b'<?xml version="1.0" encoding="klingon"?><robot name="r"/>')
    with pytest.raises(FormatError, match=r"a.urdf, line 1.*encoding"):
        read_urdf(path)


@pytest.mark.parametrize("source", [None, 7, b"<robot/>", ["<robot/>"]])
def test_source_that_is_neither_path_nor_text_raises_an_error(source: object) -> None:
    with pytest.raises(FormatError, match="a model must be a path or text"):
        read_urdf(source)  # type: ignore[arg-type]


def test_packages_must_be_a_mapping() -> None:
    with pytest.raises(FormatError, match="packages="):
        read_urdf('<robot name="r"><link name="a"/></robot>', packages=["/tmp"])  # type: ignore[arg-type]
