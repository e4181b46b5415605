"""Elements of an MJCF model and the mechanism that is built from them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import ShapeError, UnknownName
from mechanik.formats import check, from_qpos, load, to_qpos

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.mujoco

FOLDER = Path(__file__).parent.parent / "data" / "mjcf"
ZOO = load(FOLDER / "zoo.xml")


def model(inside: str, rest: str = "") -> str:
    return f'<mujoco model="m"><compiler angle="radian"/><worldbody>{inside}</worldbody>{rest}</mujoco>'


def body(name: str, joint: str = "", inside: str = "") -> str:
    return f'<body name="{name}">{joint}<geom size="0.1"/>{inside}</body>'


TWO = body("a", '<joint name="j"/>') + body("b", '<joint name="k"/>')


# ---- names and order --------------------------------------------------------------------------


def test_bodies_become_links_of_the_same_name_and_the_world_is_first():
    assert next(iter(ZOO.links)) == "world"
    for name in ("target", "raft", "cart", "wrist", "pole", "boom"):
        assert name in ZOO.links
    assert ZOO.name == "zoo"
    assert load(model(TWO).replace(' model="m"', "")).name == ""


def test_joints_are_in_the_order_of_mujoco():
    assert [n for n in ZOO.values()] == [  # noqa: C416
        "raft_free", "x", "swing", "lean", "twist", "wrist_hinge", "wrist_ball", "pole", "boom_turn", "boom_out",
    ]  # fmt: skip


def test_unnamed_elements_get_the_name_of_their_body_or_a_number():
    read = load(model(body("", "<joint/><joint/>") + body("body1_hinge", '<joint name="body1_hinge"/>')))
    assert list(read.values()) == ["body1_hinge2", "body1_hinge3", "body1_hinge"]
    assert "body1" in read.links
    assert any(name.startswith("body") for name in ZOO.links)


def test_two_joints_of_a_body_are_separated_by_a_link():
    assert ZOO.joint("swing").parent.name == "cart/x"
    assert ZOO.joint("lean").child is ZOO.link("cart")


def test_sites_become_fixed_links_unless_disabled():
    assert ZOO.link("grip").parent.dof == ()
    assert ZOO.link("grip").parent.parent is ZOO.link("wrist")
    assert "wrist_site" in ZOO.links  # since a body is called so
    assert "grip" not in load(FOLDER / "zoo.xml", sites=False).links


# ---- joints -----------------------------------------------------------------------------------


def test_ranges_become_limits_in_radians():
    assert ZOO.joint("swing").limits("EZ") == pytest.approx((-math.pi / 2, math.pi / 2))
    assert ZOO.joint("x").limits("X") == (-1.0, 1.0)
    assert ZOO.joint("lean").limits("EZ") == (-math.inf, math.inf)
    off = model(body("a", '<joint name="j" range="-1 1" limited="false"/>'))
    assert load(off).joint("j").limits("EZ") == (-math.inf, math.inf)


def test_body_is_unmoved_at_the_reference_value_of_its_joint():
    assert ZOO.values()["x"] == 0.3
    assert ZOO.values()["swing"] == pytest.approx(math.radians(25))
    read = load(model(body("a", '<joint name="j" axis="0 1 0" pos="1 2 3" ref="0.7"/>')))
    np.testing.assert_allclose(read.pose("a"), np.eye(4), atol=1e-15)
    assert read.q.tolist() == [0.7]


def test_range_of_a_ball_joint_becomes_a_swing_limit_with_a_warning():
    assert any("ball joint 'wrist_ball'" in text and "1.0472 rad" in text for text in ZOO.warnings)
    assert not any("'pole'" in text for text in ZOO.warnings)
    assert ZOO.joint("wrist_ball").has_quaternion
    assert ZOO.joint("wrist_ball").cone.axes == "xyz"
    assert ZOO.joint("wrist_ball").cone.angle == pytest.approx(np.pi / 3, abs=1e-12)


def test_free_joint_has_position_and_quaternion():
    assert ZOO.space.q_names[:7] == tuple(f"raft_free.{part}" for part in ("X", "Y", "Z", "qw", "qx", "qy", "qz"))
    np.testing.assert_allclose(ZOO.pose("raft")[:3, 3], (1, 2, 3))


def test_key_frames_become_configurations_with_unit_quaternions():
    assert list(ZOO.configurations) == ["set", "key1"]
    q = ZOO.configurations["key1"]
    np.testing.assert_array_equal(q[3:7], (1, 0, 0, 0))
    np.testing.assert_array_equal(ZOO.configurations["set"][:7], (0.5, 1, 2, 0, 1, 0, 0))


def test_initial_configuration_is_qpos0_or_the_key_frame_with_closed_loops():
    assert load(FOLDER / "hexapod.xml").q[:3].tolist() == [0, 0, 0.3]
    bar = load(FOLDER / "weld_four_bar.xml")
    np.testing.assert_array_equal(bar.q, bar.configurations["home"])


# ---- equalities -------------------------------------------------------------------------------


def test_connected_sites_close_a_loop_between_their_bodies():
    closure = ZOO.closures["hooked"]
    assert (closure.joint.parent.name, closure.link.name) == ("pole", "boom")
    assert closure.gap().distance < 1e-15
    np.testing.assert_allclose(closure.joint_values(), 0.0, atol=1e-12)  # not turned where MuJoCo starts


def test_weld_to_a_mocap_body_becomes_a_goal():
    goal = ZOO.goals["follow"]
    assert goal.parent is ZOO.link("target")
    assert goal.child is ZOO.link("wrist")
    assert ZOO.extras["mocap"] == ["target"]
    assert goal.closure.gap().distance < 1e-12  # the weld holds what stands where MuJoCo starts
    turned = load(model(body("a", '<joint name="j"/>') + '<body name="t" mocap="true" pos="1 0 0"/>',
                        '<equality><connect body1="a" body2="t" anchor="1 0 0"/></equality>'))  # fmt: skip
    assert [len(goal.goal_dof) for goal in turned.goals.values()] == [3]
    assert not turned.closures


def test_weld_without_torque_becomes_a_spherical_joint():
    read = load(model(TWO, '<equality><weld body1="a" body2="b" torquescale="0"/></equality>'))
    assert len(read.closures["weld_a_b"].free_dof) == 3


def test_welded_sites_have_equal_poses_after_a_solve():
    text = model(
        body("a", '<joint name="j"/>', '<site name="s" pos="0.1 0.2 0.3" euler="1 0 0"/>')
        + body("b", "<freejoint/>", '<site name="t" pos="0 0 1" euler="0 1 0"/>'),
        '<equality><weld site1="s" site2="t"/></equality>',
    )
    read, raw = load(text), mujoco.MjModel.from_xml_string(text)
    solution = mk.Solver(read, mk.JointValues({"j": 0.4})).solve()
    read.apply(solution)
    np.testing.assert_allclose(read.pose("s"), read.pose("t"), atol=1e-9)
    data = mujoco.MjData(raw)
    data.qpos[:] = to_qpos(read)
    mujoco.mj_forward(raw, data)
    assert np.abs(data.efc_pos[:6]).max() < 1e-9


def equal(attributes: str) -> mk.Mechanism:
    return load(model(TWO, f"<equality><joint name='e' {attributes}/></equality>"))


def test_linear_joint_equality_becomes_a_coupling_and_removes_a_dof():
    read = equal('joint1="j" joint2="k" polycoef="0.1 -2 0 0 0"')
    (coupling,) = read.joint("j").couplings
    assert (coupling.ratio, coupling.offset, coupling.leader.name) == (-2.0, 0.1, "k")
    assert read.nq == 1
    assert to_qpos(read, [0.5]).tolist() == [pytest.approx(-0.9), 0.5]
    assert from_qpos(read, [7.0, 0.5]).tolist() == [0.5]


def test_polynomial_joint_equality_becomes_a_joint_constraint():
    read = equal('joint1="j" joint2="k" polycoef="0.1 -2 0 0.5 0"')
    constraint = read.joint_constraints["e"]
    assert read.nq == 2
    read.q = from_qpos(read, [0.1 - 2 * 0.3 + 0.5 * 0.3**3, 0.3])
    assert constraint.error() == pytest.approx(0.0, abs=1e-15)
    read.q = from_qpos(read, [1.0, 0.0])
    assert constraint.error() == pytest.approx(0.9)


def test_equality_of_a_single_joint_fixes_its_value():
    read = equal('joint1="j" polycoef="0.4 0 0 0 0"')
    assert read.joint("j").limits("EZ") == (0.4, 0.4)
    assert equal('joint1="j" joint2="k" polycoef="0.4 0 0 0 0"').joint("j").limits("EZ") == (0.4, 0.4)


def test_cyclic_couplings_become_a_joint_constraint():
    pair = '<joint joint1="j" joint2="k" polycoef="0 2 0 0 0"/><joint name="back" joint1="k" joint2="j"/>'
    read = load(model(TWO, f"<equality>{pair}</equality>"))
    assert list(read.joint_constraints) == ["back"]
    assert read.nq == 1


def test_inactive_or_unsupported_equalities_are_ignored_with_a_warning():
    assert set(ZOO.closures) == {"hooked"}
    for word in ("'idle' is not active", "'taut' has a spatial tendon", "'rigid' connects 'target' and 'world'"):
        assert any(word in text for text in ZOO.warnings), word
    assert not ZOO.joint_constraints


def test_tendons_over_several_joints_are_supported_in_linear_equalities_only():
    tendons = """<tendon><fixed name="s"><joint joint="j" coef="1"/></fixed>
      <fixed name="t"><joint joint="j" coef="1"/><joint joint="k" coef="2"/></fixed></tendon>"""
    rows = '<equality><tendon name="e" tendon1="s" tendon2="t" polycoef="0 {} 0 0"/></equality>'
    linear = load(model(TWO, tendons + rows.format("0.5 0")))
    assert {term.joint.name: term.coefficients for term in linear.joint_constraints["e"].terms} == {
        "j": (0.5,),
        "k": (-1.0,),
    }
    square = load(model(TWO, tendons + rows.format("0 0.5")))
    assert not square.joint_constraints
    assert any("nonlinear polynomial" in text for text in square.warnings)


# ---- bodies -----------------------------------------------------------------------------------


def test_geoms_are_visual_in_groups_0_to_2_and_collision_shapes_if_they_can_touch():
    leg = load(FOLDER / "biped_leg.xml")
    assert (len(leg.link("thigh").visuals), len(leg.link("thigh").collisions)) == (1, 0)
    assert (len(leg.link("foot").visuals), len(leg.link("foot").collisions)) == (0, 1)
    assert (len(leg.link("pelvis").visuals), len(leg.link("pelvis").collisions)) == (1, 1)


def test_half_sizes_become_full_sizes_and_fromto_becomes_a_pose():
    leg = load(FOLDER / "biped_leg.xml")
    assert leg.link("pelvis").visuals[0].shape == mk.Box((0.16, 0.24, 0.1))
    capsule = leg.link("foot").collisions[0]
    assert (capsule.shape.radius, capsule.shape.length) == pytest.approx((0.02, 0.16))
    np.testing.assert_allclose(capsule.pose.position, (0.03, 0, -0.03), atol=1e-15)
    np.testing.assert_allclose(np.abs(capsule.pose.matrix[:3, 2]), (1, 0, 0), atol=1e-15)


def test_mesh_pose_is_that_of_its_file_and_not_of_its_centre_of_mass():
    (placed,) = load(FOLDER / "gripper.xml").link("base").visuals
    assert isinstance(placed.shape, mk.Mesh)
    assert placed.shape.uri == "meshes/wedge.stl"
    assert Path(placed.shape.path).samefile(FOLDER / "meshes" / "wedge.stl")
    assert placed.shape.scale == (0.1, 0.1, 0.1)
    np.testing.assert_allclose(placed.pose.position, (0, 0, 0.01), atol=1e-9)
    np.testing.assert_allclose(placed.pose.wxyz, (0.8, 0, 0.6, 0), atol=1e-9)
    assert placed.material == mk.Material("metal", pytest.approx((0.6, 0.6, 0.65, 1.0)))


def test_inertias_are_those_of_the_compiled_model():
    read, raw = ZOO, mujoco.MjModel.from_xml_path(str(FOLDER / "zoo.xml"))
    for number in range(1, raw.nbody):
        name = mujoco.mj_id2name(raw, mujoco.mjtObj.mjOBJ_BODY, number)
        if name:
            inertial = read.link(name).inertial
            assert (0.0 if inertial is None else inertial.mass) == raw.body_mass[number]


def test_unsupported_geoms_are_reported_once():
    inline = '<mesh name="{}" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>'
    read = load(
        f"<mujoco><asset>{inline.format('a')}{inline.format('b')}</asset><worldbody><body><freejoint/>"
        '<geom type="mesh" mesh="a"/><geom type="mesh" mesh="b"/></body></worldbody></mujoco>'
    )
    (warning,) = read.warnings
    assert warning.endswith("are ignored: 2 of type mesh without a file")


def test_missing_meshes_of_an_mjcf_are_a_warning(tmp_path):
    text = (FOLDER / "gripper.xml").read_text()
    (tmp_path / "alone.xml").write_text(
        text.replace("<material", '<texture type="2d" name="t" file="a.png"/><material')
    )
    read, whole = load(tmp_path / "alone.xml"), load(FOLDER / "gripper.xml")
    q = whole.random(np.random.default_rng(0))
    np.testing.assert_array_equal(read.poses(q), whole.poses(q))
    (mesh,) = read.link("base").visuals
    assert (mesh.shape.uri, mesh.shape.path) == ("meshes/wedge.stl", None)
    np.testing.assert_allclose(mesh.pose.matrix, whole.link("base").visuals[0].pose.matrix, atol=1e-9)
    assert any("wedge.stl" in text and "a.png" in text for text in read.warnings)
    assert any("mass" in text and "base" in text for text in read.warnings)
    assert read.link("base").inertial is None  # it would be the stand-in's
    assert read.link("right_pad").inertial == whole.link("right_pad").inertial


# ---- actuators and checks -------------------------------------------------------------------


def test_actuators_become_extras_with_their_joints():
    gripper, leg = load(FOLDER / "gripper.xml"), load(FOLDER / "biped_leg.xml")
    assert gripper.extras["actuators"] == {"motor": {"tendon": "both"}}
    assert gripper.extras["driven"] == ["right_driver", "left_driver"]
    assert gripper.extras["tendons"] == {"both": {"right_driver": 0.5, "left_driver": 0.5}}
    assert leg.extras["driven"] == ["hip_roll", "hip_yaw", "hip_pitch", "knee", "foot_crank"]
    assert ZOO.extras["actuators"]["actuator1"] == {"site": "grip"}


def test_qpos_of_wrong_size_or_mechanism_raises_an_error():
    with pytest.raises(ShapeError, match="qpos must have 22 numbers"):
        from_qpos(ZOO, np.zeros(21))
    with pytest.raises(UnknownName, match="qpos"):
        to_qpos(mk.gallery.make("panda"))


def test_check_of_a_valid_model_reports_no_error():
    for path in sorted(FOLDER.glob("*.xml")):
        if "mujocoinclude" not in path.read_text():
            assert not [finding for finding in check(path) if finding.severity == "error"], path.name
