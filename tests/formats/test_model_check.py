"""Model check: each fault is reported, and a valid mechanism has no findings."""

from __future__ import annotations

import dataclasses
import pickle
import re

import pytest

import mechanik.model as mk
from mechanik.errors import StructureError
from mechanik.formats import Finding, check, write_json
from mechanik.formats.model_check import format_amount


def arm():
    builder = mk.Builder("arm")
    builder.revolute("shoulder", "base", "upper", limits=(-2, 2))
    builder.revolute("elbow", "upper", "fore", at=(1, 0, 0), limits=(-1, 1))
    return builder


def codes(model, severity=None):
    return [finding.code for finding in check(model) if severity in (None, finding.severity)]


def with_joint(**options):
    builder = mk.Builder("one")
    builder.joint("j", "a", "b", **options)
    return builder.build()


def with_shape(*shapes, inertial=None):
    builder = arm()
    builder.link("upper", visuals=[mk.ShapeInstance(shape) for shape in shapes], inertial=inertial)
    return builder.build()


def test_valid_mechanism_has_no_findings():
    assert check(arm().build()) == []


def test_check_does_not_change_the_mechanism():
    mechanism = with_shape(mk.Mesh("gone.stl"))
    before = mechanism.revision, write_json(mechanism)
    check(mechanism)
    assert (mechanism.revision, write_json(mechanism)) == before


def test_findings_are_immutable():
    finding = Finding("note", "still", "mechanism", "has no joint that moves")
    with pytest.raises(dataclasses.FrozenInstanceError):
        finding.code = "other"  # type: ignore[misc]


def test_missing_limits_are_a_note_for_revolute_and_a_warning_for_prismatic_joints():
    assert codes(with_joint(dof="EZ"), "note") == ["no-limits"]
    assert codes(with_joint(dof="Z"), "warning") == ["no-limits"]
    assert codes(with_joint(dof=["X", "EZ"]), "warning") == ["no-limits"]


def test_spherical_joints_and_floating_bases_need_no_limits():
    assert codes(with_joint(dof=["EX", "EY", "EZ"])) == []
    assert codes(with_joint(dof=["X", "Y", "Z", "EX", "EY", "EZ"])) == []


LIMITS = [
    ((0.5, 1), "note", "zero-excluded", "cannot be 0, because its limits are 0.5 to 1 rad"),
    ((0.5, 0.5), "note", "locked", "cannot move: both limits are 0.5 rad"),
    ((-180, 180), "warning", "degrees", "has limits of -180 to 180 rad; they seem to be in degrees"),
]


@pytest.mark.parametrize(("limits", "severity", "code", "message"), LIMITS)
def test_suspicious_limits_are_reported(limits, severity, code, message):
    assert check(with_joint(dof="EZ", limits=limits)) == [Finding(severity, code, "joint 'j'", message)]


def test_limits_too_large_for_degrees_count_as_no_limits():
    assert codes(with_joint(dof="EZ", limits=(-1e4, 1e4)), "note") == ["no-limits"]
    assert codes(with_joint(dof="Z", limits=(-1e16, 1e16)), "warning") == ["no-limits"]
    assert codes(with_joint(dof="EZ", limits=(-1, 1e4))) == []


def test_findings_on_joints_with_several_dofs_name_the_dof():
    findings = check(with_joint(dof=["X", "EZ"], limits=([-1, 0.5], [1, 1])))
    assert [f"{finding.where} {finding.message}" for finding in findings] == [
        "EZ of joint 'j' cannot be 0, because its limits are 0.5 to 1 rad"
    ]


def test_mimic_joint_outside_its_limits_is_an_error():
    builder = arm()
    builder.couple("elbow", "shoulder", 1.0, 5.0)
    (wrong, outside) = check(builder.build())
    assert (wrong.severity, wrong.code, wrong.where) == ("error", "coupling-limits", "joint 'elbow'")
    assert "to be within -6 to -4 rad, but the limits of 'shoulder' are -2 to 2 rad" in wrong.message
    assert (outside.code, outside.severity) == ("value-outside", "warning")


def test_mimic_joint_that_narrows_the_range_of_its_leader_is_a_note():
    builder = arm()
    builder.couple("elbow", "shoulder", 1.0)
    assert codes(builder.build(), "note") == ["coupling-narrows"]
    builder = arm()
    builder.couple("elbow", "shoulder", 0.5)
    assert codes(builder.build()) == []


def test_coupling_ratio_of_zero_is_reported():
    builder = arm()
    builder.couple("elbow", "shoulder", 0.0)
    assert codes(builder.build()) == ["ratio-zero"]


def four_bar(crank):
    builder = mk.Builder("four-bar")
    for name, parent, child, at in (
        ("a", "ground", "crank", 0),
        ("b", "crank", "rod", 1),
        ("c", "ground", "rocker", 2),
    ):
        builder.revolute(name, parent, child, at=(at, 0, 0), limits=(-7, 7))
    builder.close("pin", "rod", "rocker", "pin", at=(2, 0, 0), onto=(1, 0, 0))
    mechanism = builder.build()
    mechanism.set_q([crank, 0, 0])
    return mechanism


def test_violated_closure_is_an_error_and_a_closed_one_is_not():
    assert codes(four_bar(0.0)) == []
    (finding,) = check(four_bar(0.5))
    assert (finding.severity, finding.code, finding.where) == ("error", "open-loop", "closure 'pin'")
    assert "m and 0 rad" in finding.message


def test_gap_of_rounding_size_is_printed_as_zero():
    mechanism = four_bar(0.0)
    mechanism.link("rocker").position = (0.1, 0, 0)
    mechanism.set_q([0, 1e-17, 0])
    (finding,) = check(mechanism)
    assert finding.message == "has a gap of 0.1 m and 0 rad at the present q"
    assert (format_amount(1e-17), format_amount(-3e-7), format_amount(0.25)) == ("0", "-3e-07", "0.25")


def test_violated_joint_constraint_is_an_error_and_a_redundant_one_a_note():
    builder = arm()
    constraint = builder.joint_constraint("cam", {"shoulder": 1.0, "elbow": [1.0, 0.5]}, 0.3)
    mechanism = builder.build()
    (finding,) = check(mechanism)
    assert (finding.severity, finding.code, finding.where) == ("error", "violated-constraint", "joint constraint 'cam'")
    assert "an error of -0.3" in finding.message
    mechanism.joint("shoulder").set_values(0.3)
    assert check(mechanism) == []
    constraint.undo()
    builder.couple("elbow", "shoulder", 0.5)
    builder.joint_constraint("same", {"elbow": 2.0, "shoulder": -1.0})
    assert codes(mechanism) == ["redundant-constraint"]


def test_joint_outside_its_swing_limit_is_an_error():
    builder = mk.Builder("ball")
    builder.spherical("neck", "body", "head")
    mechanism = builder.build()
    mechanism.joint("neck").set_cone(0.5)
    assert check(mechanism) == []
    mechanism.joint("neck").set_values(0.8, 0, 0)
    (finding,) = check(mechanism)
    assert (finding.severity, finding.code) == ("error", "outside-cone")
    assert "swings by 0.8 rad" in finding.message


def test_unreachable_links_are_reported():
    second, joint = mk.Link("island"), mk.Joint("bridge", dof="EZ", lower=-1, upper=1)
    second.add_child(joint)
    joint.add_child(mk.Link("far"))
    first = arm().build()
    (finding,) = check(mk.Mechanism([*first.roots, second], name="two"))
    assert (finding.code, finding.where) == ("unreachable", "link 'island'")
    assert "links: island, far" in finding.message


def test_links_connected_by_a_closure_are_reachable():
    first, second = arm().build(), mk.Link("island")
    closing = mk.Joint("pin", dof=["X", "Y", "Z", "EX", "EY", "EZ"])
    second.add_child(closing)
    closing.make_closure(first.link("fore"))
    assert codes(mk.Mechanism(first.roots, name="two")) == []


def test_joints_without_child_and_goals_without_effect_are_reported():
    mechanism = arm().build()
    mechanism.link("fore").add_child(mk.Joint("stub", dof="EZ", lower=-1, upper=1))
    mechanism.link("fore").add_child(mk.Goal("idle"))
    assert codes(mechanism) == ["no-child", "idle-goal"]


def test_missing_names_are_reported():
    mechanism = arm().build()
    mechanism.name = ""
    mechanism.link("fore").name = ""
    assert [(finding.severity, finding.where) for finding in check(mechanism)] == [
        ("warning", "link 'link1'"),
        ("note", "mechanism"),
    ]


def test_two_links_with_the_same_name_are_an_error():
    mechanism = arm().build()
    mechanism.link("fore").name = "upper"
    (finding,) = check(mechanism)
    assert (finding.severity, finding.code) == ("error", "duplicate-name")


def test_mechanism_without_dofs_is_a_note():
    assert codes(with_joint(dof=())) == ["no-motion"]


def test_missing_meshes_are_reported_once_for_each_link(tmp_path):
    there = tmp_path / "a.stl"
    there.write_text("solid")
    assert codes(with_shape(mk.Mesh("a.stl", path=str(there)))) == []
    assert codes(with_shape(mk.Mesh("a.stl"))) == ["mesh-missing"]  # seen and bumped with
    there.unlink()
    assert codes(with_shape(mk.Mesh("a.stl", path=str(there)))) == ["mesh-missing"]


MESH_SENTENCES = [
    (mk.Mesh("a.stl"), "has the mesh file 'a.stl', which was not found on disk"),
    (mk.Mesh("a.stl", path="/gone/a.stl"), "has the mesh file 'a.stl', which is no longer at /gone/a.stl"),
    (mk.Mesh("a.stl", (1e3, 1, 1), __file__), "has the mesh 'a.stl' with the scale 1000 1 1; is the unit right?"),
    (
        mk.Mesh("a.stl", (float("inf"), 1, 1), __file__),
        "has the mesh 'a.stl' with the scale inf 1 1, which is not finite",
    ),
]


@pytest.mark.parametrize(("mesh", "sentence"), MESH_SENTENCES, ids=str)
def test_message_about_a_mesh_continues_the_sentence_that_begins_with_its_link(mesh, sentence):
    """The messages began a second sentence: "link 'upper' the mesh file ... does not exist"."""
    (finding,) = check(with_shape(mesh))
    assert (finding.where, finding.message) == ("link 'upper'", sentence)


def test_mirrored_meshes_are_reported_once():
    builder = arm()
    mirrored = [mk.ShapeInstance(mk.Mesh(__file__, (1, -1, 1), __file__))]
    builder.link("upper", visuals=mirrored)
    builder.link("fore", visuals=mirrored)
    (finding,) = check(builder.build())
    assert (finding.severity, finding.code, finding.where) == ("note", "mesh-mirrored", "mechanism")
    assert finding.message == "has 2 meshes that are mirrored by a negative scale (links: upper, fore)"


SHAPES = [
    (mk.Box((1, 0, 1)), ["flat-shape"]),
    (mk.Sphere(0), ["flat-shape"]),
    (mk.Cylinder(1, 0), ["flat-shape"]),
    (mk.Capsule(0, 1), ["flat-shape"]),
    (mk.Capsule(1, 0), []),
    (mk.Mesh(__file__, (1000, 1000, 1000), __file__), ["mesh-scale"]),
    (mk.Mesh(__file__, (1e-6, 1e-6, 1e-6), __file__), ["mesh-scale"]),
    (mk.Mesh(__file__, (0.001, 0.001, 0.001), __file__), []),
    (mk.Mesh(__file__, (1, -1, 1), __file__), ["mesh-mirrored"]),
    (mk.Mesh(__file__, (-1, -1, 1), __file__), []),
    (mk.Mesh(__file__, (0, 1, 1), __file__), ["flat-shape"]),
    (mk.Mesh(__file__, (float("nan"), 1, 1), __file__), ["mesh-scale"]),
]


@pytest.mark.parametrize(("shape", "expected_codes"), SHAPES, ids=str)
def test_flat_shapes_and_implausible_mesh_scales_are_reported(shape, expected_codes):
    assert codes(with_shape(shape)) == expected_codes


INERTIALS = [
    (mk.Inertial(0.0), ["zero-mass"]),
    (mk.Inertial(1.0), ["no-mass"]),  # of the forearm
    (mk.Inertial(1.0, inertia=(1, 0, 0, 1, 0, 1)), ["no-mass"]),
    (mk.Inertial(1.0, inertia=(1, 0, 0, 1, 0, 3)), ["inertia", "no-mass"]),
    (mk.Inertial(1.0, inertia=(1, 5, 0, 1, 0, 1)), ["inertia", "no-mass"]),
]


@pytest.mark.parametrize(("inertial", "expected_codes"), INERTIALS, ids=str)
def test_impossible_inertias_are_reported(inertial, expected_codes):
    assert codes(with_shape(inertial=inertial)) == expected_codes


def test_positions_in_millimetres_are_reported():
    assert codes(with_joint(dof="EZ", limits=(-1, 1), at=(0, 0, 350))) == ["large-offset"]


URDF = """<robot name="r"><link name="a"><visual><geometry><mesh filename="gone.stl"/></geometry></visual></link>
<link name="b"/><joint name="j" type="{type}"><parent link="a"/><child link="{child}"/><axis xyz="{axis}"/>
<limit lower="{lower}" upper="1" effort="1" velocity="1"/></joint></robot>"""


def urdf(type="revolute", child="b", axis="0 0 1", lower="-1"):
    return URDF.format(type=type, child=child, axis=axis, lower=lower)


def test_warnings_of_the_reader_are_reported_once_with_their_line():
    (finding,) = check(urdf())
    assert finding.severity == "warning"
    assert "gone.stl" in finding.message
    assert "line 1" in finding.where


@pytest.mark.parametrize(
    "text",
    [urdf(axis="0 0 0"), urdf(lower="2"), urdf(child="c"), urdf(child="a"), urdf() + "<", "<mujoco/>", "{"],
    ids=["zero axis", "inverted limits", "unknown link", "loop", "truncated", "not read yet", "broken JSON"],
)
def test_unreadable_file_is_an_error_with_the_message_of_the_reader(text):
    finding = check(text)[0]
    assert finding.severity == "error"
    assert len(finding.message) > 10


def test_all_errors_of_a_urdf_are_reported_at_once_each_with_its_line():
    text = """<robot name="r">
<link name="base"/>
<link name="arm"><inertial><mass value="-1"/></inertial></link>
<link name="arm"/>
<link name="far"><visual><geometry><box size="1 1"/></geometry></visual></link>
<link name="left"/> <link name="right"/>
<joint name="a" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 0"/></joint>
<joint name="b" type="prismatic"><parent link="arm"/><child link="frr"/><limit lower="1" upper="0"/></joint>
<joint name="b" type="revolut"><parent link="far"/><child link="arm"/><origin xyz="0 nan 0"/></joint>
<joint name="c" type="fixed"><parent link="left"/><child link="right"/></joint>
<joint name="d" type="fixed"><parent link="right"/><child link="left"/></joint>
</robot>"""
    faults = {
        (finding.code, int(re.search(r"line (\d+)", finding.where)[1]))
        for finding in check(text)
        if finding.severity == "error"
    }
    assert faults == {
        ("inertial", 3),
        ("duplicate-name", 4),
        ("visual", 5),
        ("unreachable", 5),
        ("cycle", 6),
        ("zero-axis", 7),
        ("unknown-link", 8),
        ("inverted-limits", 8),
        ("duplicate-name", 9),
        ("joint-type", 9),
        ("second-parent", 9),
        ("number", 9),
    }
    assert ("warning", "no-limits") in {(finding.severity, finding.code) for finding in check(text)}
    assert [finding.severity for finding in check(text)] == sorted(finding.severity for finding in check(text))


TYPES = "revolute, continuous, prismatic, fixed, floating, planar"
JOINT_FAULTS = [
    ('type="qqq"><parent link="a"/><child link="b"/>', f"has the unknown type 'qqq'; use {TYPES}"),
    ('type="revolut"><parent link="a"/><child link="b"/>', "has the unknown type 'revolut'; did you mean 'revolute'?"),
    ('><parent link="a"/><child link="b"/>', f"has no type; use {TYPES}"),
    ('type=" "><parent link="a"/><child link="b"/>', f"has no type; use {TYPES}"),
    ('type="fixed"><child link="b"/>', "has no <parent>"),
    ('type="fixed"><parent/><child link="b"/>', "has a <parent> without a link"),
    ('type="fixed"><parent link="a"/><child link=" "/>', "has a <child> without a link"),
]


@pytest.mark.parametrize(("joint", "message"), JOINT_FAULTS)
def test_joint_without_valid_type_or_links_is_reported_with_the_reason(joint, message):
    """The messages were "is of type ''" and "has the parent ''; there is no such link"."""
    text = f'<robot name="r"><link name="a"/><link name="b"/><joint name="j" {joint}</joint></robot>'
    assert ("line 1: joint 'j'", message) in [(finding.where, finding.message) for finding in check(text)]


def test_errors_inside_an_element_are_whole_sentences_with_their_line():
    """The message repeated the link of `where`: "link 'a' <box> of link 'a' has size=..."."""
    text = """<robot name="r"><link name="a">
<visual><geometry>
<box size="1 1"/></geometry></visual></link></robot>"""
    (finding,) = check(text)
    assert (finding.where, finding.message) == ("line 3", "<box> of link 'a' has size='1 1': 2 numbers instead of 3")


def test_missing_file_is_one_error(tmp_path):
    (finding,) = check(tmp_path / "gone.urdf")
    assert (finding.severity, finding.code) == ("error", "file-missing")
    assert "gone.urdf" in finding.where


UNREADABLE = {
    "unknown-format": ("a.txt", b"solid of a mesh"),
    "unknown-format of a root element": ("a.xml", b"<html></html>"),
    "unknown-format of a binary file": ("a.urdf", b"<robot>\0</robot>"),
    "unreadable XML": ("a.urdf", b"<robot name='r'><link name='a'></robot>"),
    "unreadable JSON": ("a.json", b'{"mechanik": 1, "links": 3}'),
    "unreadable MJCF": ("a.xml", b"<mujoco><worldbody><body><geom/></worldbody></mujoco>"),
    "unreadable SDF": ("a.sdf", b"<sdf version='1.9'><model/></sdf>"),
    "unreadable empty file": ("a.urdf", b""),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_code_of_an_unreadable_file_tells_an_unknown_format_from_a_broken_file(case, tmp_path):
    """After a merge of exception classes, every such file was "unknown-format"."""
    name, data = UNREADABLE[case]
    (tmp_path / name).write_bytes(data)
    (finding,) = check(tmp_path / name)
    assert (finding.severity, finding.code) == ("error", case.split()[0])


def test_structure_errors_carry_the_code_of_their_kind():
    """After a merge of exception classes, every such error was a "duplicate-name"."""
    parent, child = mk.Frame("a"), mk.Frame("b")
    parent.add_child(child)
    with pytest.raises(StructureError) as second_parent:
        mk.Frame("c").add_child(child)
    with pytest.raises(StructureError) as cycle:
        child.add_child(parent)
    with pytest.raises(StructureError) as duplicate:
        mk.Mechanism([mk.Link("a"), mk.Link("a")])
    with pytest.raises(StructureError) as empty:
        mk.Builder().build()
    errors = [second_parent.value, cycle.value, duplicate.value, empty.value]
    codes = ["second-parent", "cycle", "duplicate-name", "unreadable"]
    assert [error.code for error in errors] == codes
    assert [pickle.loads(pickle.dumps(error)).code for error in errors] == codes


def test_a_colon_inside_a_warning_of_a_reader_does_not_end_its_location():
    """Once "spatial tendons are ignored" was reported as the place where "T" is wrong."""
    sites = '<body name="b"><joint name="j"/><geom size="0.1"/><site name="s"/></body><site name="w"/>'
    tendon = '<tendon><spatial name="T"><site site="s"/><site site="w"/></spatial></tendon>'
    findings = check(f"<mujoco><worldbody>{sites}</worldbody>{tendon}</mujoco>")
    assert [finding.message for finding in findings if finding.code == "reader"] == ["spatial tendons are ignored: T"]
    assert {finding.where for finding in findings if finding.code == "reader"} == {""}


def test_a_warning_of_a_reader_is_reported_where_its_file_and_line_are():
    (finding, _) = check('<robot name="r">\n<link name="a"><visual/></link></robot>')
    assert (finding.where, finding.message) == ("line 2", "<visual> of link 'a' has no geometry; it is ignored")
