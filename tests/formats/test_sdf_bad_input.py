"""Invalid SDFs: each raises an error that names the line."""

from __future__ import annotations

import pytest

from mechanik.errors import FormatError
from mechanik.formats import check, load


def sdf(inside: str, version: str = "1.9") -> str:
    return f'<sdf version="{version}">\n<model name="m">{inside}</model></sdf>'


LINK = '<link name="a"/>'
AB = '<link name="a"/><link name="b"><pose>0 0 1 0 0 0</pose></link>'


def joint(inside: str = "<axis><xyz>0 0 1</xyz></axis>", kind: str = "revolute", ends=("a", "b"), name="j") -> str:
    return f'<joint name="{name}" type="{kind}"><parent>{ends[0]}</parent><child>{ends[1]}</child>{inside}</joint>'


BAD = {
    "truncated": ("<sdf>\n<model>", FormatError, "line 2.*truncated"),
    "no model": ('<sdf version="1.9"/>', FormatError, "no <model>"),
    "no link": (sdf(""), FormatError, "line 2: model 'm' has no <link>"),
    "a link without a name": (sdf("<link/>"), FormatError, "line 2: .*has no 'name'"),
    "two links of one name": (sdf(LINK + "\n" + LINK), FormatError, "line 3: the link in line 2 is also called 'a'"),
    "two joints of one name": (sdf(AB + joint() + joint()), FormatError, "is also called 'j'"),
    "a reserved name": (sdf('<link name="a::b"/>'), FormatError, "'a::b'.*reserved"),
    "no parent": (
        sdf(AB + '<joint name="j" type="fixed"><child>b</child></joint>'),
        FormatError,
        "joint 'j' has no <par",
    ),
    "an empty child": (sdf(AB + joint(ends=("a", ""))), FormatError, "names no link"),
    "unknown link": (sdf(AB + joint(ends=("a", "bb"))), FormatError, "line 2: joint 'j' names 'bb'.*did you mean 'b'"),
    "no type": (sdf(AB + '<joint name="j"><parent>a</parent><child>b</child></joint>'), FormatError, "no 'type'"),
    "unknown type": (sdf(AB + joint(kind="revolut")), FormatError, "'revolut'.*did you mean 'revolute'"),
    "a gearbox in nothing": (sdf(AB + joint(kind="gearbox")), FormatError, "'j' has no <gearbox_reference_body>"),
    "a gearbox beside its joints": (
        sdf(AB + joint("<gearbox_reference_body>a</gearbox_reference_body>", "gearbox")),
        FormatError,
        "is a gearbox, but no revolute joint connects 'a' and 'a'",
    ),
    "itself": (sdf(AB + joint(ends=("a", "a"))), FormatError, "connects 'a' to itself"),
    "no axis": (sdf(AB + joint("")), FormatError, "has the type 'revolute' and no <axis>"),
    "no second axis": (sdf(AB + joint(kind="universal")), FormatError, "and no <axis2>"),
    "a zero axis": (
        sdf(AB + joint("<axis><xyz>0 0 0</xyz></axis>")),
        FormatError,
        "must not be zero, nor longer than 1e30",
    ),
    "a screw without a pitch": (sdf(AB + joint(kind="screw")), FormatError, "screw_thread_pitch"),
    "inverted limits": (
        sdf(AB + joint("<axis><xyz>0 0 1</xyz><limit><lower>1</lower><upper>0</upper></limit></axis>")),
        FormatError,
        "<limit> of joint 'j' has a lower limit of 1 rad, above",
    ),
    "a pose of five": (
        sdf('<link name="a"><pose>0 0 0 0 0</pose></link>'),
        FormatError,
        "<pose> of link 'a'.*5 numbers",
    ),
    "a word in a pose": (sdf('<link name="a"><pose>0 0 0 0 0 x</pose></link>'), FormatError, "'x' is not a number"),
    "a pose of nan": (sdf('<link name="a"><pose>0 0 0 0 0 nan</pose></link>'), FormatError, "not a finite number"),
    "an unknown frame": (
        sdf('<link name="a"><pose relative_to="bse">0 0 0 0 0 0</pose></link><frame name="base"/>'),
        FormatError,
        "'bse'.*did you mean 'base'",
    ),
    "frames in a circle": (
        sdf('<link name="a"><pose relative_to="b"/></link><link name="b"><pose relative_to="a"/></link>'),
        FormatError,
        "relative to itself: .*-> b|relative to itself: .*-> a",
    ),
    "frames attached to each other, with correct poses": (
        sdf(
            LINK + '<frame name="f" attached_to="g"><pose relative_to="a"/></frame>'
            '<frame name="g" attached_to="f"><pose relative_to="a"/></frame>' + joint(ends=("a", "f"))
        ),
        FormatError,
        "frame 'f' is attached to itself: f -> g -> f; attach one of these frames to a link",
    ),
    "an unknown main link": (
        sdf(LINK).replace('name="m"', 'name="m" canonical_link="c"'),
        FormatError,
        "canonical_link='c'",
    ),
    "a leader that is not there": (
        sdf(AB + joint('<axis><xyz>0 0 1</xyz><mimic joint="k"/></axis>')),
        FormatError,
        "mimics 'k'",
    ),
    "a leader without that axis": (
        sdf(AB + joint('<axis><xyz>0 0 1</xyz><mimic joint="j" axis="axis2"/></axis>')),
        FormatError,
        "the axis2 of joint 'j', which does not have one",
    ),
    "who follows itself": (
        sdf(AB + joint('<axis><xyz>0 0 1</xyz><mimic joint="j"/></axis>')),
        FormatError,
        "its own leader",
    ),
    "two screws in a loop": (
        sdf(AB + joint("<axis/><thread_pitch>1</thread_pitch>", "screw") * 2).replace('"j"', '"k"', 1),
        FormatError,
        "closes a loop in which every joint is a screw",
    ),
    "a box without a size": (
        sdf('<link name="a"><visual name="v"><geometry><box/></geometry></visual></link>'),
        FormatError,
        "<box> of link 'a' has no <size>",
    ),
    "a negative mass": (sdf('<link name="a"><inertial><mass>-1</mass></inertial></link>'), FormatError, "negative"),
    "a model that is not there": (sdf(LINK + "<include><uri>model://no</uri></include>"), FormatError, "'model://no'"),
    "a merged model": (
        sdf(LINK + '<include merge="true"><uri>x</uri></include>'),
        FormatError,
        "merge='true', which is not supported",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_file_raises_an_error_that_names_the_line(name, tmp_path):
    text, error, words = BAD[name]
    with pytest.raises(error, match=words):
        load(text)
    path = tmp_path / "robot.sdf"
    path.write_text(text)
    with pytest.raises(error, match=r"^robot\.sdf, line \d"):
        load(path)
    assert issubclass(error, FormatError)
    assert [finding.severity for finding in check(path)] == ["error"]


def test_model_that_includes_itself_raises_an_error(tmp_path):
    path = tmp_path / "model.sdf"
    path.write_text(sdf(LINK + "<include><uri>model.sdf</uri></include>"))
    with pytest.raises(FormatError, match="deeper than the limit of 20; does a model include itself"):
        load(path)
