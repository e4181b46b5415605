"""Elements of an SDF and the mechanism that is built from them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import FormatError, InvalidArgument
from mechanik.formats import load, read_sdf, read_urdf, write_json
from mechanik.model import DoF
from mechanik.spatial import euler

FOLDER = Path(__file__).parent.parent / "data" / "sdf"
HAND = load(FOLDER / "hand.sdf")


def sdf(inside: str, version: str = "1.9") -> str:
    return f'<sdf version="{version}">\n<model name="m">{inside}</model></sdf>'


LINK = '<link name="a"/>'
AB = '<link name="a"/><link name="b"><pose>0 0 1 0 0 0</pose></link>'


def joint(inside: str = "<axis><xyz>0 0 1</xyz></axis>", kind: str = "revolute", ends=("a", "b"), name="j") -> str:
    return f'<joint name="{name}" type="{kind}"><parent>{ends[0]}</parent><child>{ends[1]}</child>{inside}</joint>'


# ---- loops ------------------------------------------------------------------------------------


def test_link_with_two_parents_closes_a_loop_that_stays_closed_when_driven():
    """The rocker of a four-bar, as Gazebo has it; its angle against the law of cosines."""
    bar = load(FOLDER / "four_bar.sdf")
    assert list(bar.joints) == ["drive", "elbow", "foot", "top"]
    assert bar.closures["top"].free_dof == (DoF.EZ,)
    length = np.linalg.norm(bar.pose("rocker")[:3, 3] + bar.pose("rocker")[:3, 0] * 1.2 - bar.pose("coupler")[:3, 3])
    for step in np.linspace(0.0, 2.0, 9):
        solution = mk.Solver(bar, mk.JointValues({"drive": float(step)}, angle_mode="exact")).solve()
        assert solution.success
        bar.apply(solution)
        assert bar.closures["top"].gap().distance < 1e-9
        crank = 0.6 + bar.joint("drive").values[0]
        diagonal = np.array([2.0, 0.0]) - 0.5 * np.array([math.cos(crank), math.sin(crank)])
        d = float(np.linalg.norm(diagonal))
        inner = math.acos((1.2**2 + d**2 - length**2) / (2 * 1.2 * d))
        rocker = math.atan2(-diagonal[1], -diagonal[0]) - inner
        rocker_angle = math.radians(100) + bar.joint("foot").values[0]
        assert math.remainder(rocker_angle - rocker, 2 * math.pi) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "axes", "free"),
    [
        ("revolute", "<axis><xyz>1 0 0</xyz></axis>", 1),
        ("prismatic", "<axis><xyz>1 2 0</xyz></axis>", 1),
        ("ball", "", 3),
        ("fixed", "", 0),
        ("universal", "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>", 2),
    ],
)
def test_closure_has_the_free_dofs_of_its_joint_type(kind, axes, free):
    read = load(sdf(AB + joint() + joint(axes, kind, name="k")))
    assert len(read.closures["k"].free_dof) == free
    assert read.closures["k"].gap().is_closed(1e-12)


def test_first_link_of_a_ring_is_the_root():
    read = load(sdf(AB + joint() + joint(ends=("b", "a"), name="back")))
    assert read.roots[0].name == "a"
    assert list(read.closures) == ["back"]


def test_second_parent_of_a_link_becomes_its_child():
    read = load(sdf(AB + '<link name="c"/>' + joint() + joint(ends=("c", "b"), name="k")))
    assert [root.name for root in read.roots] == ["a"]
    assert read.joint("k").parent is read.link("b")


def test_limits_of_a_closure_are_read():
    limited = joint("<axis><xyz>0 0 1</xyz><limit><lower>-1</lower><upper>2</upper></limit></axis>", name="k")
    assert load(sdf(AB + joint() + limited)).joint("k").limits("EZ") == (-1.0, 2.0)


# ---- joints -----------------------------------------------------------------------------------


def test_limits_of_1e16_and_inf_are_no_limits():
    bar = load(FOLDER / "four_bar.sdf")
    assert bar.joint("drive").limits("EZ") == (-math.inf, math.inf)
    assert bar.joint("foot").limits("EZ") == (-3.0, 3.0)
    assert HAND.joint("slide").limits("Y") == (-0.02, math.inf)


def test_screw_pitch_is_read_in_its_old_and_new_definition():
    axis = "<axis><xyz>0 0 1</xyz></axis>"
    new = load(sdf(AB + joint(axis + "<screw_thread_pitch>0.02</screw_thread_pitch>", "screw")))
    old = load(sdf(AB + joint(axis + f"<thread_pitch>{-2 * math.pi / 0.02!r}</thread_pitch>", "screw")))
    for read in (new, old):
        assert read.nq == 1
        read.joint("j").set_value("EZ", 2 * math.pi)
        np.testing.assert_allclose(read.pose("b")[:3, 3], (0, 0, 1.02), atol=1e-12)


def test_axes_of_a_universal_joint_are_ey_and_ex_with_their_limits():
    cross = HAND.joint("wrist::cross")
    assert cross.dof == (DoF.EX, DoF.EY)
    assert cross.limits("EY") == (-1.0, 0.5)
    assert cross.limits("EX") == (-0.3, 0.3)


@pytest.mark.parametrize(
    ("version", "inside", "expected"),
    [
        ("1.7", "<xyz>1 0 0</xyz>", (0, 1, 0)),
        ("1.7", '<xyz expressed_in="__model__">1 0 0</xyz>', (1, 0, 0)),
        ("1.7", '<xyz expressed_in="a">0 0 1</xyz>', (0, -1, 0)),
        ("1.6", "<xyz>1 0 0</xyz><use_parent_model_frame>true</use_parent_model_frame>", (1, 0, 0)),
        ("1.6", "<xyz>1 0 0</xyz><use_parent_model_frame>0</use_parent_model_frame>", (0, 1, 0)),
        ("1.4", "<xyz>1 0 0</xyz>", (1, 0, 0)),
        ("1.10", "<xyz>1 0 0</xyz>", (0, 1, 0)),
    ],
)
def test_frame_of_an_axis_depends_on_expressed_in_and_the_version(version, inside, expected):
    link, quarter = '<link name="{}"><pose>0 0 0 {} 0 {}</pose></link>', math.pi / 2
    links = link.format("a", quarter, 0) + link.format("b", 0, quarter)
    read = load(sdf(links + joint(f"<axis>{inside}</axis>"), version))
    j = read.joint("j")
    np.testing.assert_allclose(j.world_matrix[:3, :3] @ j.axis, expected, atol=1e-12)


def test_mimic_joint_counts_from_the_reference_of_its_leader():
    (coupling,) = HAND.joint("mirror").couplings
    assert (coupling.leader.name, coupling.ratio) == ("slide", 0.5)
    assert coupling.offset == pytest.approx(0.001 - 0.5 * 0.002)


@pytest.mark.parametrize(("sign", "backwards"), [(1, False), (-1, False), (1, True)])
def test_gearbox_ratio_is_relative_to_the_reference_body(sign, backwards):
    ends = ("c", "a") if backwards else ("a", "c")
    gear = "<gearbox_reference_body>a</gearbox_reference_body><gearbox_ratio>0.25</gearbox_ratio>"
    axes = "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2>"
    read = load(sdf(
        AB + '<link name="c"/>' + joint() + joint(f"<axis><xyz>0 0 {sign}</xyz></axis>", ends=ends, name="k")
        + joint(gear + axes, "gearbox", ends=("b", "c"), name="g")
    ))  # fmt: skip
    assert list(read.joints) == ["j", "k"]
    assert read.nq == 1
    turned = read.pose("c", [0.4])[:3, :3] @ read.pose("a", [0.4])[:3, :3].T
    at_rest = read.pose("c", [0.0])[:3, :3] @ read.pose("a", [0.0])[:3, :3].T
    angle = math.atan2(*(turned @ at_rest.T)[[1, 0], [0, 0]])
    leader = next(iter(read.values()))
    driver = 0.4 if leader == "j" else read.values(np.array([0.4]))["j"]
    assert angle == pytest.approx(-0.25 * driver)


def test_sdf_and_urdf_of_an_arm_give_the_same_mechanism():
    urdf = """<robot name="arm"><link name="a"/><link name="b"/><link name="c"/>
      <joint name="p" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0 0 1" rpy="0.1 0.2 0.3"/>
        <axis xyz="0 1 0"/><limit lower="-1" upper="2" effort="3" velocity="4"/></joint>
      <joint name="q" type="prismatic"><parent link="b"/><child link="c"/><origin xyz="1 0 0"/>
        <axis xyz="1 1 0"/><limit lower="0" upper="1" effort="3" velocity="4"/></joint></robot>"""
    from_sdf = load(sdf(
        '<link name="a"/><link name="b"><pose relative_to="p"/></link><link name="c"><pose relative_to="q"/></link>'
        '<joint name="p" type="revolute"><pose relative_to="a">0 0 1 0.1 0.2 0.3</pose><parent>a</parent>'
        "<child>b</child>"
        "<axis><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>2</upper><effort>3</effort><velocity>4</velocity></limit>"
        '</axis></joint><joint name="q" type="prismatic"><pose relative_to="b">1 0 0 0 0 0</pose><parent>b</parent>'
        "<child>c</child><axis><xyz>1 1 0</xyz><limit><lower>0</lower><upper>1</upper><effort>3</effort>"
        "<velocity>4</velocity></limit></axis></joint>"
    ))  # fmt: skip
    from_urdf = read_urdf(urdf)
    for q in from_urdf.random(np.random.default_rng(0), 5):
        np.testing.assert_allclose(from_sdf.poses(q), from_urdf.poses(q), atol=1e-15)
    np.testing.assert_array_equal(from_sdf.space.lower, from_urdf.space.lower)
    assert from_sdf.extras == from_urdf.extras


def test_universal_joint_with_skew_axes_becomes_two_joints():
    read = load(sdf(AB + joint("<axis><xyz>1 0 0</xyz></axis><axis2><xyz>1 1 0</xyz></axis2>", "revolute2")))
    assert list(read.values()) == ["j", "j_axis2"]


# ---- frames and models ------------------------------------------------------------------------


def test_nested_and_included_models_have_full_names_and_poses():
    assert list(HAND.links) == [
        "world", "mount", "wrist::fork", "wrist::cup", "palm", "left::root", "left::tip", "right::root", "right::tip",
    ]  # fmt: skip
    R = euler.matrix_from_euler(np.array([0, 0, math.pi / 2]), order="xyz", axes="fixed")
    np.testing.assert_allclose(HAND.pose("mount")[:3, 3], (0, 0, 1), atol=1e-15)
    np.testing.assert_allclose(HAND.pose("wrist::fork")[:3, 3], (0, 0, 1.11), atol=1e-15)
    np.testing.assert_allclose(HAND.pose("wrist::fork")[:3, :3], R, atol=1e-15)
    cup = np.array([[0.28, -0.96, 0], [0.96, 0.28, 0], [0, 0, 1]])
    np.testing.assert_allclose(HAND.pose("palm")[:3, :3], R @ cup, atol=1e-12)
    left = R @ cup @ [0, 0.03, 0.02] + (0, 0, 1.17)
    np.testing.assert_allclose(HAND.pose("left::root")[:3, 3], left, atol=1e-12)
    np.testing.assert_allclose(HAND.pose("left::tip")[:3, 3], left + np.array([0, 0, 0.04]), atol=1e-12)
    assert HAND.link("world").parent is None
    assert HAND.joint("slide").child is HAND.link("left::root")  # the main link of the model that is named


def test_models_of_a_world_have_separate_names():
    pair = '<model name="{}"><link name="a"/></model>'
    read = load(f'<sdf version="1.9"><world name="w">{pair.format("p")}{pair.format("q")}</world></sdf>')
    assert list(read.links) == ["p::a", "q::a"]
    assert len(read.roots) == 2
    assert read.name == "w"


def test_unattached_model_has_a_floating_base_on_request():
    text = sdf("<pose>1 2 3 0 0 0</pose>" + AB + joint())
    free = load(text, base="free")
    assert list(free.joints) == ["floating_base", "j"]
    np.testing.assert_allclose(free.pose("a")[:3, 3], (1, 2, 3))
    assert load(text).nq == 1
    assert load(text.replace("<pose>1 2", "<static>true</static><pose>1 2"), base="free").nq == 1
    assert load(FOLDER / "hand.sdf", base="free").nq == HAND.nq
    with pytest.raises(FormatError, match="base must be"):
        read_sdf(text, base="afloat")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="options are base, packages"):
        load(text, trim=True)


def test_link_with_the_name_world_is_the_world():
    read = load(sdf(LINK + '<link name="world"/>' + joint("", "fixed", ("world", "a"))))
    assert read.joint("j").parent is read.link("world")
    assert any("'world'" in text for text in read.warnings)


def test_joints_drawn_outside_their_limits_are_reported():
    read = load(sdf(AB + joint("<axis><xyz>0 0 1</xyz><limit><lower>1</lower><upper>2</upper></limit></axis>")))
    assert read.q.tolist() == [1.0]
    assert any("outside their limits" in text and "j" in text for text in read.warnings)


# ---- bodies -----------------------------------------------------------------------------------


def test_shapes_inertias_and_colours_are_read():
    ground = load(FOLDER / "four_bar.sdf").link("ground")
    (bar,) = ground.visuals
    assert bar.shape == mk.Cylinder(0.05, 2.0)
    assert bar.material == mk.Material("", (0.2, 0.4, 0.6, 1.0))
    np.testing.assert_allclose(bar.pose.position, (1, 0, 0))
    assert ground.inertial.mass == 2.0
    assert ground.inertial.inertia == (0.1, 0, 0, 0.1, 0, 0.1)
    assert HAND.link("left::root").collisions[0].shape == mk.Box((0.02, 0.02, 0.02))
    # placed in the frame of a joint
    np.testing.assert_allclose(HAND.link("left::tip").visuals[0].pose.position, (0, 0, -0.015), atol=1e-15)


def test_meshes_are_resolved_by_uri_and_missing_ones_reported(tmp_path):
    mesh = '<visual name="v"><geometry><mesh><uri>{}</uri><scale>1 2 3</scale></mesh></geometry></visual>'
    (tmp_path / "arm" / "meshes").mkdir(parents=True)
    (tmp_path / "arm" / "meshes" / "a.stl").write_bytes(b"solid")
    path = tmp_path / "arm" / "model.sdf"
    path.write_text(sdf(f'<link name="a">{mesh.format("model://arm/meshes/a.stl")}{mesh.format("gone.stl")}</link>'))
    read = load(path)
    here, gone = (placed.shape for placed in read.link("a").visuals)
    assert Path(here.path).samefile(tmp_path / "arm" / "meshes" / "a.stl")
    assert (here.scale, gone.path) == ((1.0, 2.0, 3.0), None)
    assert any("gone.stl" in text and "model.sdf, line 2" in text for text in read.warnings)


def test_unknown_sdf_elements_are_a_warning_with_the_nearest_name():
    read = load(sdf('<link name="a"><visul/><my:own/></link>'))
    (text,) = read.warnings
    assert "line 2" in text
    assert "did you mean 'visual'?" in text


def test_json_round_trip_keeps_what_was_read():
    for read in (HAND, load(FOLDER / "four_bar.sdf")):
        again = load(write_json(read))
        q = read.random(np.random.default_rng(0))
        np.testing.assert_array_equal(again.poses(q), read.poses(q))
        assert list(again.closures) == list(read.closures)


@pytest.mark.parametrize("outer_link", ["", '<link name="palm"><pose>5 0 0 0 0 0</pose></link>'])
def test_the_pose_of_a_model_nested_twice_refers_to_frames_of_the_model_around_it(outer_link):
    """Once the frame was searched in the outermost model."""
    outer_joint = '<joint name="o" type="fixed"><parent>base</parent><child>palm</child></joint>' if outer_link else ""
    mechanism = read_sdf(
        f"""<sdf version="1.9"><model name="arm"><link name="base"/>{outer_link}{outer_joint}
        <model name="gripper"><link name="palm"><pose>0 0 1 0 0 0</pose></link>
          <model name="finger"><pose relative_to="palm">0 0 2 0 0 0</pose><link name="tip"/></model>
          <joint name="j" type="fixed"><parent>palm</parent><child>finger::tip</child></joint>
        </model>
        <joint name="k" type="fixed"><parent>base</parent><child>gripper::palm</child></joint>
        </model></sdf>"""
    )
    np.testing.assert_allclose(mechanism.pose("gripper::finger::tip")[:3, 3], (0, 0, 3), atol=1e-12)
