"""SRDF of a model: allowed collisions, group states, and errors with their line."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import FileMissing, FormatError, UnknownName
from mechanik.formats.srdf import DEFAULT_REASON, parse_srdf, read_srdf
from mechanik.model import Builder, Mechanism


def arm() -> Mechanism:
    robot = Builder("arm")
    robot.revolute("shoulder", "base", "upper", at=(0, 0, 0.1), axis="z", limits=(-2, 2))
    robot.revolute("elbow", "upper", "lower", at=(0.5, 0, 0), axis="y", limits=(-2, 2))
    robot.revolute("wrist", "lower", "hand", at=(0.5, 0, 0), axis="y", limits=(-2, 2))
    return robot.build()


def srdf(*lines: str) -> str:
    return "\n".join(['<robot name="arm">', *lines, "</robot>"])


def test_allowed_collisions_have_their_reasons_in_lower_case() -> None:
    text = srdf(
        '<disable_collisions link1="base" link2="upper" reason="Adjacent"/>',
        '<disable_collisions link1="hand" link2="base"/>',
    )
    assert read_srdf(text, arm()) == {("base", "upper"): "adjacent", ("hand", "base"): DEFAULT_REASON}


def test_srdf_without_pairs_gives_an_empty_list_and_not_none() -> None:
    robot = mk.load(mk.formats.write_urdf(arm()), srdf=srdf())
    assert robot.allowed_collisions == {}
    assert mk.load(mk.formats.write_urdf(arm())).allowed_collisions is None


def test_repeated_and_reversed_pairs_are_merged() -> None:
    text = srdf(
        '<disable_collisions link1="base" link2="upper" reason="Never"/>',
        '<disable_collisions link1="upper" link2="base" reason="Always"/>',
    )
    assert list(read_srdf(text, arm()).values()) == ["always"]


def test_default_of_a_link_can_be_disabled_and_one_pair_enabled() -> None:
    text = srdf('<disable_default_collisions link="hand"/>', '<enable_collisions link1="base" link2="hand"/>')
    assert read_srdf(text, arm()) == {("hand", "upper"): "default", ("hand", "lower"): "default"}


def test_unknown_link_is_reported_with_its_line_and_a_similar_name() -> None:
    text = srdf('<disable_collisions link1="base" link2="upper"/>', '<disable_collisions link1="base" link2="lowerr"/>')
    with pytest.raises(FormatError, match=r"line 3: <disable_collisions> has link2='lowerr'.*'lower'"):
        read_srdf(text, arm())
    assert read_srdf(text, arm(), missing="ignore") == {("base", "upper"): DEFAULT_REASON}
    with pytest.raises(UnknownName, match="ignore"):
        read_srdf(text, arm(), missing="ignor")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (srdf('<disable_collisions link1="base"/>'), FormatError, "line 2: <disable_collisions> has no 'link2'"),
        (srdf('<disable_collisions link1="base" link2=" "/>'), FormatError, "empty 'link2'"),
        ('<robot><disable_collisions link1="base"', FormatError, "line 1"),
        ("<mujoco/>", FormatError, "<mujoco>"),
        (mk.formats.write_urdf(arm()), FormatError, "seems to be a URDF"),
        ('<!DOCTYPE r [<!ENTITY a "b">]><robot>&a;</robot>', FormatError, "entity"),
        (srdf('<group_state name="home"><joint name="elbow" value="nan"/></group_state>'), FormatError, "finite"),
        (srdf('<group_state name="home"><joint name="elbow" value="up"/></group_state>'), FormatError, "'up'"),
        (srdf('<group_state name="home"><joint name="elbow"/></group_state>'), FormatError, "no 'value'"),
        ("no_such_file.srdf", FileMissing, "no_such_file.srdf"),
    ],
)
def test_invalid_srdf_raises_an_error_that_names_the_line(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_srdf(text, arm())


def test_group_states_become_configurations_with_other_joints_unchanged() -> None:
    text = srdf(
        '<group_state name="up" group="arm"><joint name="elbow" value="0.5"/></group_state>',
        '<group_state name="out" group="arm"><joint name="wrist" value="1"/></group_state>',
        '<group_state name="out" group="hand"><joint name="wrist" value="2"/></group_state>',
        '<group_state name="odd"><joint name="floating_base" value="0 0 0"/></group_state>',
    )
    robot = arm()
    robot.q = [0.1, 0.2, 0.3]
    content = parse_srdf(text, robot)
    assert list(content.configurations) == ["up", "arm/out", "hand/out", "odd"]
    np.testing.assert_array_equal(content.configurations["up"], [0.1, 0.5, 0.3])
    np.testing.assert_array_equal(content.configurations["hand/out"], [0.1, 0.2, 2.0])
    assert len(content.warnings) == 1
    assert "no such joint" in content.warnings[0]


def test_load_reads_the_srdf_and_json_keeps_its_content(tmp_path: Path) -> None:
    urdf, beside = tmp_path / "arm.urdf", tmp_path / "arm.srdf"
    urdf.write_text(mk.formats.write_urdf(arm()))
    beside.write_text(
        srdf(
            '<disable_collisions link1="base" link2="upper" reason="Adjacent"/>',
            '<group_state name="up" group="arm"><joint name="elbow" value="0.5"/></group_state>',
        )
    )
    robot = mk.load(urdf, srdf=beside)
    again = mk.load(mk.formats.write_json(robot))
    for mechanism in (robot, again):
        assert mechanism.allowed_collisions == {("base", "upper"): "adjacent"}
        np.testing.assert_array_equal(mechanism.configurations["up"], [0.0, 0.5, 0.0])
    assert any("allowed collisions" in text for text in mk.save(robot, tmp_path / "again.urdf"))


def test_json_distinguishes_an_empty_list_of_pairs_from_none() -> None:
    robot = arm()
    assert mk.load(mk.formats.write_json(robot)).allowed_collisions is None
    robot.allowed_collisions = {}
    assert mk.load(mk.formats.write_json(robot)).allowed_collisions == {}


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ('[{"links": ["base", "uper"]}]', r"allowed_collisions\[0\].links\[1\].*uper"),
        ('[{"links": ["base"]}]', "list of 2"),
        ('[{"links": ["base", "base"]}]', "with itself"),
        ('[{"reason": "adjacent"}]', "'links' is missing"),
        ('{"base": "upper"}', "allowed_collisions: expected a list"),
    ],
)
def test_invalid_pairs_in_json_raise_an_error_that_names_the_json_path(pairs: str, message: str) -> None:
    text = mk.formats.write_json(arm())
    with pytest.raises(mk.errors.FormatError, match=message):
        mk.load(text.rstrip()[:-1] + f', "allowed_collisions": {pairs}}}')


def installed(ending: str) -> list[Path]:
    try:
        listed = files("example-robot-data") or []
    except PackageNotFoundError:
        return []
    return sorted(Path(str(file.locate())).resolve() for file in listed if file.name.endswith(ending))


@pytest.mark.robot_data
def test_published_srdfs_are_read_with_every_pair_of_existing_links() -> None:
    urdfs = {path.stem: path for path in installed(".urdf")}
    both = [(urdfs[path.stem], path) for path in installed(".srdf") if path.stem in urdfs]
    if not both:
        pytest.skip("the package example-robot-data is not installed")
    assert len(both) >= 10
    for urdf, beside in both:
        robot = mk.load(urdf)
        content = read_srdf(beside, robot, missing="ignore")
        nodes = ElementTree.parse(beside).getroot().findall("disable_collisions")
        listed_pairs = {frozenset((node.attrib["link1"], node.attrib["link2"])) for node in nodes}
        assert {frozenset(pair) for pair in content} == {pair for pair in listed_pairs if pair <= set(robot.links)}, (
            beside.name
        )
