"""Broken MJCF models: each is refused with its own kind of error and a message that names the place."""

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
    "a part": ("<mujocoinclude/>", FormatError, "load the file that includes this one"),
    "a mesh of no known kind": (
        '<mujoco><asset><mesh file="a.xyz"/></asset></mujoco>',
        FormatError,
        "a.xyz|nothing",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_the_place(name, tmp_path):
    text, error, words = BAD[name]
    with pytest.raises(error, match=words):
        load(text)
    path = tmp_path / "robot.xml"
    path.write_text(text)
    with pytest.raises(error, match=r"^robot\.xml"):
        load(path)
    assert issubclass(error, FormatError)
    assert [found.severity for found in check(path)] == ["error"]


def test_a_broken_key_frame_is_refused():
    with pytest.raises(FormatError, match="key"):
        load(model(TWO, '<keyframe><key qpos="1 2 3"/></keyframe>'))


def test_without_mujoco_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtra, match=r"reading MJCF needs .*mechanik\[mjcf\]"):
        read_mjcf(model(TWO))


def test_what_mujoco_warns_of_is_a_warning_and_no_file_is_left_behind(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    old = model(TWO).replace("<compiler", '<compiler settotalmass="3"')
    assert all("MuJoCo warns" in text for text in load(old).warnings)
    assert not list(tmp_path.iterdir())
