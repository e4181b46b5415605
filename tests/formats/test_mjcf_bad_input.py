"""Invalid MJCF models: each raises an error that names the line."""

from __future__ import annotations

import sys

import pytest

from mechanik.errors import FormatError, MissingExtra
from mechanik.formats import check, load, read_mjcf

pytest.importorskip("mujoco")
pytestmark = pytest.mark.mujoco


def model(inside: str, rest: str = "") -> str:
    return f'<mujoco model="m"><compiler angle="radian"/><worldbody>{inside}</worldbody>{rest}</mujoco>'


def body(name: str, joint: str = "") -> str:
    return f'<body name="{name}">{joint}<geom size="0.1"/></body>'


TWO = body("a", '<joint name="j"/>') + body("b", '<joint name="k"/>')

BAD = {
    "truncated": ("<mujoco>\n<worldbody>", FormatError, "line 2.*truncated"),
    "not closed": ("<mujoco>\n<worldbody></mujoco>", FormatError, "line 2"),
    "a comment only": ("<!-- mujoco -->", FormatError, "no XML element"),
    "nothing in it": ("<mujoco/>", FormatError, "no <body>"),
    "unknown element": ("<mujoco>\n<worldbdy/></mujoco>", FormatError, "line 2: .*'worldbdy'"),
    "unknown attribute": (model('\n<body nam="a"/>'), FormatError, "line 2: .*nam"),
    "unknown kind of joint": (model('<body>\n<joint type="hing"/></body>'), FormatError, "line 2: .*'hing'"),
    "unknown class": (model('\n<body childclass="x"/>'), FormatError, "line 2: .*childclass"),
    "unknown body": (model(TWO, '\n<equality><connect body1="c" anchor="0 0 0"/></equality>'), FormatError, "2: .*'c'"),
    "two of one name": (model(TWO + "\n" + TWO), FormatError, "name 'a'"),
    "too few numbers": (model('<body pos="1 2"/>'), FormatError, "line 1: .*pos"),
    "no number": (model('<body pos="1 2 x"/>'), FormatError, "line 1: .*pos"),
    "inverted range": (model(body("a", '<joint range="1 -1" limited="true"/>')), FormatError, "line 1: .*range"),
    "no mass": (model('<body name="a"><joint/></body>'), FormatError, "give that body a <geom>"),
    "an include that is not there": ('<mujoco><include file="no.xml"/></mujoco>', FormatError, "no.xml.*beside"),
    "a part": ("<mujocoinclude/>", FormatError, "load the file that includes this file"),
    "a mesh of no known kind": (
        '<mujoco><asset><mesh file="a.xyz"/></asset></mujoco>',
        FormatError,
        "a.xyz|nothing",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_file_raises_an_error_that_names_the_line(name, tmp_path):
    text, error, words = BAD[name]
    with pytest.raises(error, match=words):
        load(text)
    path = tmp_path / "robot.xml"
    path.write_text(text)
    with pytest.raises(error, match=r"^robot\.xml"):
        load(path)
    assert issubclass(error, FormatError)
    assert [finding.severity for finding in check(path)] == ["error"]


def test_invalid_key_frame_raises_an_error():
    with pytest.raises(FormatError, match="key"):
        load(model(TWO, '<keyframe><key qpos="1 2 3"/></keyframe>'))


def test_without_mujoco_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtra, match=r"reading MJCF needs .*mechanik\[mjcf\]"):
        read_mjcf(model(TWO))


def test_warnings_of_mujoco_are_passed_on_without_a_log_file(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    old = model(TWO).replace("<compiler", '<compiler settotalmass="3"')
    assert all("MuJoCo warns" in text for text in load(old).warnings)
    assert not list(tmp_path.iterdir())
