"""Invalid files and calls: each raises its own exception that names the location. None hangs, crashes or passes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mechanik as mk
from mechanik import errors as e

LINKS = '<link name="base"/><link name="arm"/>'
ENDS = '<parent link="base"/><child link="arm"/>'


def urdf(*elements: str) -> bytes:
    return f'<?xml version="1.0"?><robot name="r">{"".join(elements)}</robot>'.encode()


def joint(inside: str = "", *, kind: str = "revolute", ends: str = ENDS, name: str = "elbow") -> bytes:
    axis = "" if "<axis" in inside else '<axis xyz="0 0 1"/>'
    limit = "" if "<limit" in inside else '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    return urdf(LINKS, f'<joint name="{name}" type="{kind}">{ends}{axis}{limit}{inside}</joint>')


def shape(text: str) -> bytes:
    return urdf(f'<link name="base"><visual><geometry>{text}</geometry></visual></link>')


LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">]><robot name="&d;"/>"""
OUTSIDE = b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>'

FILES: dict[str, tuple[bytes, type[Exception], str]] = {
    # not a mechanism at all
    "an empty file": (b"", e.FormatError, "empty"),
    "white space": (b" \n\t ", e.FormatError, "empty"),
    "binary": (bytes(range(256)) * 8, e.FormatError, "text|XML|recognise|binary"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(64), e.FormatError, "text|XML|recognise|binary"),
    "prose": (b"This is my robot.", e.FormatError, "begins with 'This is my robot"),
    "wrong encoding": (
        '<robot name="r"><link name="\xe9"/></robot>'.encode("latin-1"),
        e.FormatError,
        "UTF-8|encod|XML",
    ),
    "another kind of XML": (b"<html><body/></html>", e.FormatError, "html"),
    "MJCF": (b"<mujoco><worldbody/></mujoco>", e.FormatError, "MJCF|mujoco"),
    # XML
    "truncated XML": (joint()[:-30], e.FormatError, "line 1"),
    "mismatched tags": (b"<robot name='r'><link name='a'></robot>", e.FormatError, "line 1"),
    "billion laughs": (LAUGHS, e.FormatError, "entit"),
    "an external entity": (OUTSIDE, e.FormatError, "entit"),
    "ten thousand levels": (b"<robot>" + b"<a>" * 10_000 + b"</a>" * 10_000 + b"</robot>", e.FormatError, "."),
    "xacro elements": (
        b'<robot name="r" xmlns:xacro="http://x"><xacro:macro name="m"/></robot>',
        e.FormatError,
        "xacro in.xacro > out.urdf",
    ),
    "xacro expressions": (joint('<origin xyz="${x} 0 0"/>'), e.FormatError, "expand the file"),
    # the tree
    "two roots": (urdf(LINKS), e.FormatError, "'base', 'arm'"),
    "a loop of parents": (
        urdf(
            LINKS,
            *(
                f'<joint name="{a}{b}" type="fixed"><parent link="{a}"/><child link="{b}"/></joint>'
                for a, b in (("base", "arm"), ("arm", "base"))
            ),
        ),
        e.FormatError,
        "cycle",
    ),
    "a second parent": (
        urdf(
            LINKS,
            '<link name="c"/>',
            *(f'<joint name="{p}" type="fixed"><parent link="{p}"/><child link="arm"/></joint>' for p in ("base", "c")),
        ),
        e.FormatError,
        "NAME.closures.json beside the file",
    ),
    "a link joined to itself": (joint(ends='<parent link="arm"/><child link="arm"/>'), e.FormatError, "itself"),
    "an unknown link": (
        joint(ends='<parent link="bas"/><child link="arm"/>'),
        e.FormatError,
        "'bas'.*did you mean 'base'",
    ),
    "two links of one name": (urdf(LINKS, '<link name="arm"/>'), e.FormatError, "is also called 'arm'"),
    "two joints of one name": (
        urdf(
            LINKS,
            '<link name="c"/>',
            *(f'<joint name="j" type="fixed"><parent link="base"/><child link="{c}"/></joint>' for c in ("arm", "c")),
        ),
        e.FormatError,
        "is also called 'j'",
    ),
    "a link without a name": (urdf("<link/>"), e.FormatError, "name"),
    "a joint without a child": (joint(ends='<parent link="base"/>'), e.FormatError, "elbow.*<child>"),
    "a joint without a type": (joint().replace(b'type="revolute"', b""), e.FormatError, "type"),
    "an unknown type": (joint(kind="revolut"), e.FormatError, "did you mean 'revolute'"),
    # numbers
    "a NaN": (joint('<origin xyz="0 nan 0"/>'), e.FormatError, "elbow"),
    "an infinity": (joint('<origin rpy="inf 0 0"/>'), e.FormatError, "elbow"),
    "a huge number": (joint('<origin xyz="1e400 0 0"/>'), e.FormatError, "elbow"),
    "two numbers for three": (joint('<origin xyz="0 0"/>'), e.FormatError, "2 numbers"),
    "a word for a number": (joint('<origin xyz="0 zero 0"/>'), e.FormatError, "zero"),
    "a zero axis": (joint('<axis xyz="0 0 0"/>'), e.FormatError, "axis"),
    "limits the wrong way round": (joint('<limit lower="1" upper="-1"/>'), e.FormatError, "elbow|limit"),
    "a negative size": (shape('<box size="1 -1 1"/>'), e.FormatError, "base"),
    "a negative radius": (shape('<sphere radius="-0.1"/>'), e.FormatError, "base"),
    "a mesh scaled to nothing": (shape('<mesh filename="m.stl" scale="0 1 1"/>'), e.FormatError, "scale"),
    "a cylinder without a length": (shape('<cylinder radius="1"/>'), e.FormatError, "length"),
    "a negative mass": (urdf('<link name="a"><inertial><mass value="-1"/></inertial></link>'), e.FormatError, "mass"),
    "a joint that mimics itself": (joint('<mimic joint="elbow"/>'), (e.FormatError, e.CouplingError), "elbow"),
    # JSON
    "truncated JSON": (b'{"mechanik": 1, "links": [', e.FormatError, "line 1"),
    "JSON of another kind": (b'{"name": "robot"}', e.FormatError, "mechanik"),
    "a list for a mechanism": (b"[1, 2, 3]", e.FormatError, "."),
    "a version to come": (b'{"mechanik": 99}', e.FormatError, "99"),
    "an unknown key": (b'{"mechanik": 1, "linkz": []}', e.FormatError, "links"),
    "NaN in JSON": (b'{"mechanik": 1, "arm": {"lengths": [NaN], "axes": "z"}}', e.FormatError, "length"),
    "deep JSON": (b'{"mechanik":' + b"[" * 100_000 + b"]" * 100_000 + b"}", e.FormatError, "."),
    "an arm with an unknown axis": (b'{"mechanik": 1, "arm": {"lengths": [1], "axes": "w"}}', e.FormatError, "w"),
}


@pytest.mark.parametrize("name", FILES)
def test_an_invalid_file_is_rejected_with_the_location(name, tmp_path: Path):
    content, error, words = FILES[name]
    path = tmp_path / "robot.urdf"
    path.write_bytes(content)
    with pytest.raises(error, match=words) as caught:
        mk.load(path)
    assert isinstance(caught.value, e.MechanikError)
    assert 10 < len(str(caught.value)) < 600
    findings = mk.check(path)
    assert any(finding.severity == "error" for finding in findings)


def arm() -> mk.Mechanism:
    builder = mk.Builder("arm")
    builder.revolute("elbow", "base", "lower", limits=(-1, 1))
    builder.spherical("wrist", "lower", "hand")
    return builder.build()


Q = [0.0, 1, 0, 0, 0]
CALLS = {
    "a file that is not there": (lambda: mk.load("no/such/robot.urdf"), e.FileMissing, "robot.urdf"),
    "a home of nobody": (lambda: mk.load("~nobody-at-all/robot.urdf"), e.FileMissing, "robot.urdf"),
    "a folder": (lambda: mk.load(Path(__file__).parent), e.FormatError, "folder|directory"),
    "a number as a file": (lambda: mk.load(5), e.MechanikError, "5|int"),
    "an option that no reader has": (
        lambda: mk.load("<robot name='r'><link name='a'/></robot>", bass="free"),
        e.MechanikError,
        "bass",
    ),
    "a suffix that nobody writes": (lambda: mk.save(arm(), "arm.docx"), e.FormatError, "docx"),
    "a folder to write into that is not there": (
        lambda: mk.save(arm(), "no/such/folder/arm.json"),
        (e.MechanikError, OSError),
        "folder",
    ),
    "an unknown link": (lambda: arm().pose("hend", Q), e.UnknownName, "hand"),
    "an unknown joint": (lambda: arm().joint("elbo"), e.UnknownName, "elbow"),
    "an unknown goal": (lambda: arm().goal("g"), e.UnknownName, "g"),
    "a q too short": (lambda: arm().pose("hand", [0, 1]), e.ShapeError, "5 numbers"),
    "a q with NaN": (lambda: arm().poses([np.nan, 1, 0, 0, 0]), e.NotFinite, "elbow"),
    "a q of words": (lambda: arm().jacobian("hand", ["a"] * 5), e.ShapeError, "numbers"),
    "a zero quaternion in q": (lambda: arm().pose("hand", [0] * 5), e.NotARotation, "wrist"),
    "a v too long": (lambda: arm().integrate(Q, [0] * 5), e.ShapeError, "4 numbers"),
    "a value for nobody": (lambda: arm().configuration({"elbw": 1}), e.UnknownName, "elbow"),
    "two values for one freedom": (lambda: arm().configuration({"elbow": [1, 2]}), e.ShapeError, "elbow"),
    "a second parent": (lambda: mk.Link("x").add_child(arm().joint("wrist")), e.StructureError, "wrist"),
    "a child of itself": (lambda: (f := mk.Link("x")).add_child(f), e.StructureError, "x"),
    "a link on a link": (lambda: mk.Link("x").add_child(mk.Link("y")), e.InvalidArgument, "joints"),
    "letting go of a stranger": (lambda: mk.Link("x").remove_child(mk.Joint("y")), e.StructureError, "y"),
    "freedoms out of order": (lambda: mk.Joint("j", dof=["EX", "X"]), e.DoFError, "order"),
    "a freedom twice": (lambda: mk.Joint("j", dof=["X", "X"]), e.DoFError, "repeated"),
    "a freedom that does not exist": (lambda: mk.Joint("j", dof=["W"]), e.DoFError, "W"),
    "limits upside down": (lambda: arm().joint("elbow").set_limits(1, -1), e.LimitsError, "elbow"),
    "too many values": (lambda: arm().joint("elbow").set_values(1, 2), e.ShapeError, "elbow"),
    "a value that is no number": (lambda: arm().joint("elbow").set_value("EZ", "x"), e.ShapeError, "elbow"),
    "a target at infinity": (lambda: arm().joint("elbow").set_targets(np.inf), e.NotFinite, "elbow"),
    "a joint that follows itself": (lambda: (j := arm().joint("elbow")).mimic(j), e.CouplingError, "its own leader"),
    "a closure onto nothing": (lambda: mk.Joint("j").make_closure("hand"), e.InvalidArgument, "link"),
    "a kind of closure that does not exist": (
        lambda: (b := mk.Builder(), b.fixed("f", "x", "y"), b.close("c", "x", "y", "glue")),
        e.UnknownName,
        "glue",
    ),
    "a kind of closure that is a number": (
        lambda: (b := mk.Builder(), b.fixed("f", "x", "y"), b.close("c", "x", "y", 3)),
        e.InvalidArgument,
        "pin, ball.*not 3",
    ),
    "a closure without a name": (
        lambda: (b := mk.Builder(), b.fixed("f", "x", "y"), b.close("", "x", "y", "pin")),
        e.StructureError,
        "give each a name",
    ),
    "a joint without a name": (lambda: mk.Builder().revolute("", "x", "y"), e.StructureError, "give each a name"),
    "a builder with nothing": (lambda: mk.Builder().build(), e.StructureError, "empty"),
    "two joints of one name": (
        lambda: (b := mk.Builder(), b.fixed("f", "x", "y"), b.fixed("f", "x", "z")),
        e.StructureError,
        "f",
    ),
    "a pose that is none": (lambda: setattr(mk.Link("x"), "matrix", np.ones((4, 4))), e.NotARotation, "x"),
    "a quaternion of zeros": (lambda: mk.Link("x", wxyz=(0, 0, 0, 0)), e.NotARotation, "x"),
    "DH without a convention": (
        lambda: mk.from_dh([[0, 0, 0, 0]], columns="d a alpha theta", degrees=False),
        TypeError,
        "convention",
    ),
    "DH of a wrong convention": (
        lambda: mk.from_dh([[0, 0, 0, 0]], columns="d a alpha theta", degrees=False, convention="new"),
        e.FormatError,
        "classic",
    ),
    "DH of three columns": (
        lambda: mk.from_dh([[0, 0, 0]], columns="d a alpha", degrees=False, convention="classic"),
        e.FormatError,
        "theta",
    ),
    "DH with a hole": (
        lambda: mk.from_dh([[0, 0, 0, np.nan]], columns="d a alpha theta", degrees=False, convention="classic"),
        e.FormatError,
        "row 1",
    ),
    "an arm without links": (lambda: mk.arm_2d([]), e.FormatError, "empty"),
    "an arm with too few axes": (lambda: mk.arm_3d([1, 1], "z"), e.FormatError, "axes"),
    "a mechanism that the gallery has not": (lambda: mk.gallery.make("pandaa"), e.UnknownName, "panda"),
    "a mechanism of strings": (lambda: mk.Mechanism("robot"), e.InvalidArgument, "r"),
    "an unknown link to keep": (lambda: mk.trim(arm(), keep=["hnd"]), e.UnknownName, "hand"),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_invalid_call_is_rejected_with_the_name(name):
    call, error, words = CALLS[name]
    with pytest.raises(error, match=words) as caught:
        call()
    assert 5 < len(str(caught.value)) < 600


def test_the_table_is_long_enough():
    assert len(FILES) >= 45
    assert len(FILES) + len(CALLS) >= 85
