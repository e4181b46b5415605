"""Closures, gears, racks and joint constraints give the same residual from the builder, the graph and files."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import FormatError
from mechanik.formats.json import describe, read_json, write_json
from mechanik.formats.urdf.reader import read_urdf
from mechanik.formats.urdf.writer import urdf_losses, write_urdf
from mechanik.model.builder import CLOSURE_FREE_DOF
from mechanik.objectives.constraint_relations import closure_relations, joint_constraint_relations, swing_angles
from mechanik.objectives.relation import evaluate_relation
from mechanik.spatial import Pose
from mechanik.validation import as_axes_wxyz

AT, ONTO = Pose((0.3, -0.2, 0.1), (0.8, 0.0, 0.6, 0.0)), Pose((-0.1, 0.4, 0.2), (0.6, 0.8, 0.0, 0.0))
AXIS = (1.0, 2.0, -2.0)
TAKEN = {
    "weld": 6, "pin": 5, "ball": 3, "slider": 5, "universal": 4, "cylindrical": 4, "planar": 3, "point_on_line": 2,
    "point_on_plane": 1,
}  # fmt: skip


def two_branches():
    """A left branch that ends in link `a`, a right one in `b`; revolute and prismatic joints with skew axes."""
    builder = mk.Builder("branches")
    builder.revolute("left", "ground", "upper", at=(0, 1, 0), axis=(1, 1, 0))
    builder.revolute("elbow", "upper", "a", at=(0.5, 0, 0.1), axis="y")
    builder.prismatic("slide", "ground", "cart", at=(0, -1, 0), axis=(0, 1, 1))
    builder.revolute("right", "cart", "b", at=(0.2, 0, 0.3), axis=(1, 0, 2))
    return builder


def by_the_builder(kind, **options):
    builder = two_branches()
    builder.close("loop", "a", "b", kind, at=AT, onto=ONTO, axis=AXIS)
    return builder.build()


def in_the_graph(kind):
    mechanism = two_branches().build()
    joint = mk.Joint(
        "loop", dof=CLOSURE_FREE_DOF[kind], position=AT.position, wxyz=AT.wxyz, axes_wxyz=as_axes_wxyz(AXIS, "loop")
    )
    mechanism.link("a").add_child(joint)
    joint.make_closure(mechanism.link("b"), ONTO)
    return mechanism


def from_our_json(kind):
    data = describe(two_branches().build())
    place = {
        "position": AT.position.tolist(),
        "wxyz": AT.wxyz.tolist(),
        "axes_wxyz": as_axes_wxyz(AXIS, "loop").tolist(),
    }
    free = [dof.name for dof in CLOSURE_FREE_DOF[kind]]
    data["joints"].append({"name": "loop", "parent": "a", "dof": free, **place})
    end = {"position": ONTO.position.tolist(), "wxyz": ONTO.wxyz.tolist()}
    data["closures"].append({"joint": "loop", "link": "b", "at": end})
    return read_json(data)


def from_sidecar_file(kind, tmp_path):
    (tmp_path / "branches.urdf").write_text(write_urdf(two_branches().build()))
    ends = {
        key: {"position": pose.position.tolist(), "wxyz": pose.wxyz.tolist()}
        for key, pose in (("at", AT), ("onto", ONTO))
    }
    closure = {"name": "loop", "kind": kind, "link": "a", "onto_link": "b", "axis": AXIS, **ends}
    (tmp_path / "branches.closures.json").write_text(json.dumps({"closures": [closure]}))
    return read_urdf(tmp_path / "branches.urdf")


def from_urdf_block(kind):
    def numbers(values):
        return " ".join(map(repr, map(float, values)))

    at, onto = (f'xyz="{numbers(pose.position)}" wxyz="{numbers(pose.wxyz)}"' for pose in (AT, ONTO))
    ends = f'link="a" onto_link="b" axis="{numbers(AXIS)}"'
    block = f'<mechanik><closure name="loop" kind="{kind}" {ends}><at {at}/><onto {onto}/></closure></mechanik>'
    return read_urdf(write_urdf(two_branches().build()).replace("</robot>", f"{block}</robot>"))


def residual_and_jacobian(mechanism, q):
    relations = closure_relations(mechanism, mechanism.closure("loop"))
    evaluations = [evaluate_relation(mechanism, relation, q) for relation in relations]
    return np.concatenate([residual for residual, _ in evaluations]), np.concatenate([J for _, J in evaluations])


@pytest.mark.parametrize("kind", CLOSURE_FREE_DOF)
def test_closure_has_the_same_residual_from_every_source(kind, tmp_path):
    first = by_the_builder(kind)
    others = {
        "graph": in_the_graph(kind),
        "JSON": from_our_json(kind),
        "JSON again": read_json(write_json(first)),
        "file beside": from_sidecar_file(kind, tmp_path),
        "block": from_urdf_block(kind),
        "URDF again": read_urdf(write_urdf(first)),
    }
    rng = np.random.default_rng(0)
    assert first.closure("loop").free_dof == CLOSURE_FREE_DOF[kind]
    for _ in range(5):
        q = first.random(rng)
        value, J = residual_and_jacobian(first, q)
        assert len(value) == TAKEN[kind]
        for where, mechanism in others.items():
            assert mechanism.space.q_names == first.space.q_names, where
            again, J_again = residual_and_jacobian(mechanism, q)
            np.testing.assert_allclose(again, value, rtol=0, atol=1e-12, err_msg=where)
            np.testing.assert_allclose(J_again, J, rtol=0, atol=1e-12, err_msg=where)


def test_residual_of_a_point_is_its_distance_from_the_line_or_plane():
    builder = mk.Builder()
    builder.free("base", "ground", "a")
    builder.fixed("rail", "ground", "b")
    builder.close("loop", "b", "a", "point_on_line", at=(1, 0, 0), onto=(0, 0, 0), axis="x")
    line = builder.build()
    q = line.configuration({"base": (7.0, 0.3, -0.4, 0.5, 0.2, 1.0)})
    assert np.linalg.norm(residual_and_jacobian(line, q)[0]) == pytest.approx(0.5, abs=1e-14)
    builder = mk.Builder()
    builder.free("base", "ground", "a")
    builder.fixed("rail", "ground", "b")
    builder.close("loop", "b", "a", "point_on_plane", at=(1, 0, 0), onto=(0, 0, 0), axis="y")
    plane = builder.build()
    np.testing.assert_allclose(np.abs(residual_and_jacobian(plane, q)[0]), [0.3], atol=1e-14)
    solution = mk.solve(plane, mk.PositionGoal("a", (5.0, 2.0, 1.0)))
    np.testing.assert_allclose(plane.pose("a", solution.q)[:3, 3], (5, 0, 1), atol=1e-6)


# ---- gears, racks and joint constraints ----------------------------------------------------------------------

TERM = '<term joint="left" factors="1"/>'
TERMS = {"left": [1.0, 0.3, -0.2], "slide": -2.0}
BESIDE = {
    "gears": [{"mimic": "right", "leader": "elbow", "teeth": [60, 20], "offset": 0.1}],
    "joint_constraints": [{"name": "cam", "terms": TERMS, "constant": 0.25}],
}
BLOCK = (
    '<mechanik><gear mimic="right" leader="elbow" teeth="60 20" inside="false" offset="0.1"/>'
    '<joint_constraint name="cam" constant="0.25"><term joint="left" factors="1 0.3 -0.2"/>'
    '<term joint="slide" dof="Z" factors="-2"/></joint_constraint></mechanik>'
)


def bound_by_the_builder():
    builder = two_branches()
    builder.gear("right", "elbow", teeth=(60, 20), offset=0.1)
    builder.joint_constraint("cam", TERMS, 0.25)
    return builder.build()


def bound_in_the_graph():
    mechanism = two_branches().build()
    joint = mechanism.joint
    joint("right").mimic(joint("elbow"), -1 / 3, 0.1)
    mk.JointConstraint({joint("left"): [1.0, 0.3, -0.2], (joint("slide"), "Z"): -2.0}, 0.25, name="cam")
    return mechanism


def test_gears_and_joint_constraints_have_the_same_residual_from_every_source(tmp_path):
    first, text = bound_by_the_builder(), write_urdf(two_branches().build())
    (tmp_path / "branches.urdf").write_text(text)
    (tmp_path / "branches.closures.json").write_text(json.dumps(BESIDE))
    others = {
        "graph": bound_in_the_graph(),
        "JSON again": read_json(write_json(first)),
        "file beside": read_urdf(tmp_path / "branches.urdf"),
        "block": read_urdf(text.replace("</robot>", f"{BLOCK}</robot>")),
        "URDF again": read_urdf(write_urdf(first)),
    }
    rng = np.random.default_rng(1)
    assert first.nq == 3
    for _ in range(5):
        q = first.random(rng)
        value, J = evaluate_relation(first, joint_constraint_relations(first)["cam"], q)
        for where, mechanism in others.items():
            assert mechanism.space.q_names == first.space.q_names, where
            again, J_again = evaluate_relation(mechanism, joint_constraint_relations(mechanism)["cam"], q)
            np.testing.assert_allclose(again, value, rtol=0, atol=1e-12, err_msg=where)
            np.testing.assert_allclose(J_again, J, rtol=0, atol=1e-12, err_msg=where)
            np.testing.assert_allclose(mechanism.pose("b", q), first.pose("b", q), rtol=0, atol=1e-12, err_msg=where)


def test_rack_has_the_same_motion_from_every_source():
    builder = two_branches()
    builder.rack("slide", "elbow", radius=0.02, offset=0.3)
    first, text = builder.build(), write_urdf(two_branches().build())
    block = '<mechanik><rack rack="slide" pinion="elbow" radius="0.02" offset="0.3"/></mechanik>'
    beside = {"racks": [{"rack": "slide", "pinion": "elbow", "radius": 0.02, "offset": 0.3}]}
    q = first.random(np.random.default_rng(2))
    for mechanism in (
        read_json(write_json(first)),
        read_urdf(write_urdf(first)),
        read_urdf(text, closures=beside),
        read_urdf(text.replace("</robot>", f"{block}</robot>")),
    ):
        np.testing.assert_allclose(mechanism.pose("b", q), first.pose("b", q), rtol=0, atol=1e-12)


def test_joint_constraint_on_one_of_several_dofs_survives_a_urdf():
    builder = mk.Builder("base")
    builder.planar("base", "ground", "body")
    builder.joint("arm", "body", "hand", ("X", "EY"), at=(0, 0, 1))
    builder.joint_constraint("cam", {"base.X": [1.0, 2.0], "arm.EY": -1.0}, 0.5)
    first = builder.build()
    again = read_urdf(write_urdf(first))
    assert write_urdf(again) == write_urdf(first)
    q = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    by_name = dict(zip(first.space.q_names, q, strict=True))
    there = np.array([by_name[name] for name in again.space.q_names])
    expected, residual = (
        evaluate_relation(m, joint_constraint_relations(m)["cam"], at)[0] for m, at in ((first, q), (again, there))
    )
    np.testing.assert_allclose(residual, expected, rtol=0, atol=1e-14)
    assert not any("joint constraint" in text for text in urdf_losses(first))


def test_swing_limits_of_closures_survive_a_urdf_and_those_of_tree_joints_are_reported_as_lost():
    builder = two_branches()
    closure = builder.close("loop", "a", "b", "ball", at=AT, onto=ONTO)
    builder.spherical("neck", "a", "head")
    closure.joint.set_cone(0.7, "xz")
    first = builder.build()
    again = read_urdf(write_urdf(first))
    assert again.joint("loop").cone == closure.joint.cone
    q = first.random(np.random.default_rng(0))
    first.joint("neck").set_cone(0.4)
    assert swing_angles(read_json(write_json(first)), q) == pytest.approx(swing_angles(first, q), abs=1e-12)
    assert any("swing limits (cones) of joints: neck" in text for text in urdf_losses(first))
    closure_data = {"name": "loop", "kind": "ball", "link": "a", "onto_link": "b", "cone": 0.7, "cone_axes": "xz"}
    text = write_urdf(two_branches().build())
    assert read_urdf(text, closures=[closure_data]).joint("loop").cone == closure.joint.cone


@pytest.mark.parametrize(
    ("beside", "says"),
    [
        ({"gears": [{"mimic": "right", "leader": "elbow"}]}, "gear 1: teeth is missing"),
        ({"gears": [{"mimic": "rihgt", "leader": "elbow", "teeth": [1, 2]}]}, "gear 1: .*Did you mean 'right'"),
        ({"gears": [{"mimic": "slide", "leader": "elbow", "teeth": [1, 2]}]}, "must be revolute"),
        ({"gears": [{"mimic": "right", "leader": "elbow", "teeth": [1, 2], "inside": 1}]}, "true or false"),
        ({"gears": ["right"]}, "gear 1 is 'right'; it must be an object with keys"),
        ({"gears": {}}, "gears must be a list, not dict"),
        ({"racks": [{"rack": "slide", "pinion": "elbow", "radius": 0.0}]}, "rack 1: .*is zero"),
        (
            {"joint_constraints": [{"name": "cam", "terms": {"lefft": 1}}]},
            "joint constraint 'cam': .*Did you mean 'left'",
        ),
        ({"joint_constraints": [{"name": "cam", "terms": {"left": 1}, "cnstant": 1}]}, "Did you mean 'constant'"),
        ({"joint_constraints": [{"name": "cam", "terms": {"left": 1}}] * 2}, "two joint constraints are called 'cam'"),
        ({"gear": []}, r"the keys closures, joint_constraints, gears, racks, not \['gear'\]"),
    ],
)
def test_error_in_a_sidecar_file_names_the_entry(beside, says):
    with pytest.raises(FormatError, match=says):
        read_urdf(write_urdf(two_branches().build()), closures=beside)


@pytest.mark.parametrize(
    ("block", "says"),
    [
        (
            '<joint_constraint name="cam"><turm joint="left"/></joint_constraint>',
            "line .*: <turm>.* is unknown in a joint constraint",
        ),
        ('<joint_constraint name="cam"><term joint="left" factors="1 x"/></joint_constraint>', "they must be numbers"),
        ('<joint_constraint name="cam"><term factors="1"/></joint_constraint>', "joint"),
        (f'<joint_constraint name="cam">{2 * TERM}</joint_constraint>', "a second time"),
        ('<joint_constraint name="cam"></joint_constraint>', "has no effect"),
        ('<gear mimic="right" leader="elbow" teeth="1"/>', "teeth"),
        ('<gear mimic="right" leader="elbow" teeth="1 2" inside="yes"/>', "true or false, not 'yes'"),
        ("<cam/>", "which may contain <base>, <closure>, <values>, <gear>, <rack>, <joint_constraint>"),
    ],
)
def test_error_in_a_urdf_block_names_the_line(block, says):
    text = write_urdf(two_branches().build()).replace("</robot>", f"<mechanik>{block}</mechanik></robot>")
    with pytest.raises(FormatError, match=says):
        read_urdf(text)
