"""Properties of every mechanism of the gallery, and known values of each."""

import inspect

import numpy as np
import pytest

from mechanik import gallery
from mechanik.errors import FormatError, StructureError, UnknownName
from mechanik.model import Joint, mobility

MOBILITY = {
    "zalo5": 5,
    "dh6": 6,
    "grippy10": 10,
    "planar_2r": 2,
    "planar_3r": 3,
    "scara": 4,
    "panda": 8,
    "ur5": 6,
    "ur10": 6,
    "iiwa14": 7,
    "puma560": 6,
    "rail_arm": 7,
    "snake": 30,
    "four_bar": 1,
    "slider_crank": 1,
    "five_bar": 2,
    "pantograph": 2,
    "peaucellier": 1,
    "jansen_leg": 1,
    "klann_leg": 1,
    "watt_six_bar": 1,
    "stephenson_six_bar": 1,
    "bennett": 1,
    "sarrus": 1,
    "scissor_lift": 1,
    "planar_3rrr": 3,
    "stewart_platform": 6,
    "delta_robot": 3,
    "humanoid": 37,
    "hexapod": 6,
    "excavator": 4,
    "gripper": 3,
    "rover": 15,
    "walker": 42,
    "biped": 18,
    "two_arms": 8,
}
WITH_COLLISION_CAPSULES = ("panda", "ur5", "ur10")
"""Around the meshes of their makers; the others bump with what they look like."""
every = pytest.mark.parametrize("name", MOBILITY)


def test_names_lists_every_mechanism_and_make_builds_each():
    assert gallery.names() == list(MOBILITY)
    makers = {n for n, f in inspect.getmembers(gallery, inspect.isfunction) if not n.startswith("_")}
    assert makers == {*MOBILITY, "names", "make", "four_bar_kind"} == set(gallery.__all__)
    for name in gallery.names():
        assert gallery.make(name).name == name


def test_an_unknown_name_suggests_the_nearest_name():
    with pytest.raises(UnknownName, match=r"'pamda'.*Did you mean 'panda'"):
        gallery.make("pamda")


@every
def test_each_call_builds_a_new_mechanism(name):
    first, second = gallery.make(name), gallery.make(name)
    assert not set(first.links.values()) & set(second.links.values())
    first.q = first.random(np.random.default_rng(0))
    np.testing.assert_array_equal(second.q, second.configurations["home"])


@every
def test_home_is_within_the_limits_with_all_loops_closed(name):
    mechanism = gallery.make(name)
    np.testing.assert_array_equal(mechanism.q, mechanism.configurations["home"])
    assert mechanism.space.within_limits(mechanism.q)
    for closure in mechanism.closures.values():
        assert closure.gap().is_closed(1e-9), closure


@every
def test_the_mobility_is_the_known_one(name):
    mechanism = gallery.make(name)
    assert mobility(mechanism).dof == MOBILITY[name]
    if not mechanism.closures:
        assert mechanism.nv == MOBILITY[name]


@every
def test_the_kernel_and_the_graph_agree_at_random_configurations(name):
    mechanism = gallery.make(name)
    for q in mechanism.random(np.random.default_rng(7), 5):
        X = mechanism.poses(q)
        assert np.isfinite(X).all()
        mechanism.q = q
        graph = [link.world_matrix for link in mechanism.links.values()]
        np.testing.assert_allclose(X, graph, rtol=0, atol=1e-12)


@every
def test_moving_links_have_shapes_near_their_joints(name):
    mechanism = gallery.make(name)
    size = np.ptp([joint.world_position for joint in mechanism.joints.values()], axis=0).max()
    for link in mechanism.links.values():
        if isinstance(link.parent, Joint) and not link.parent.dof:
            continue
        if link.name == "world":
            continue
        assert link.visuals, link
        assert link.collisions, link
        if name not in WITH_COLLISION_CAPSULES:
            assert link.collisions == link.visuals
        for placed in link.visuals:
            assert placed.material is not None
            assert placed.material.rgba is not None
            assert np.linalg.norm(placed.pose.position) <= size


@every
def test_revolute_joints_of_arms_have_limits(name):
    mechanism = gallery.make(name)
    if not mechanism.closures:
        floating = [joint for joint, moves in mechanism.joints.items() if len(moves.dof) == 6]
        limited = [k for k, dof_name in enumerate(mechanism.space.q_names) if dof_name.split(".")[0] not in floating]
        assert len(limited) >= mechanism.nq - 7
        assert np.isfinite(mechanism.space.lower[limited]).all()
        assert np.isfinite(mechanism.space.upper[limited]).all()


def test_the_four_bar_is_assembled_elbow_up_at_the_crank_angle_of_the_benchmark():
    four_bar = gallery.four_bar()
    assert four_bar.values()["crank_joint"] == 0.6
    elbow = four_bar.joint("closing_joint").world_position
    knee = 0.5 * np.array([np.cos(0.6), np.sin(0.6), 0])
    assert np.linalg.norm(elbow - knee) == pytest.approx(1.8, abs=1e-12)
    assert np.linalg.norm(elbow - [2, 0, 0]) == pytest.approx(1.2, abs=1e-12)
    assert elbow[1] > 0


@pytest.mark.parametrize("angle", np.linspace(-3, 3, 13))
def test_a_four_bar_with_a_full_crank_can_be_assembled_at_every_angle(angle):
    four_bar = gallery.four_bar(angle=float(angle))
    assert four_bar.closures["closing_joint"].gap().is_closed(1e-12)


def test_the_slider_position_is_that_of_the_engine_formula():
    slider = gallery.slider_crank(crank=0.4, rod=0.9, offset=0.1, angle=1.1)
    rise = 0.4 * np.sin(1.1) - 0.1
    expected = 0.4 * np.cos(1.1) + np.sqrt(0.81 - rise**2)
    np.testing.assert_allclose(slider.pose("slider")[:3, 3], [expected, 0.1, 0], rtol=0, atol=1e-12)
    assert slider.closures["closing_joint"].gap().is_closed(1e-12)


def test_the_tool_of_the_five_bar_is_a_rod_length_from_both_knees():
    five_bar = gallery.five_bar(left=2.2, right=0.7)
    tip = five_bar.pose("tool")[:3, 3]
    for side in ("left", "right"):
        assert np.linalg.norm(tip - five_bar.pose(f"{side}_rod")[:3, 3]) == pytest.approx(0.8, abs=1e-12)
    assert five_bar.closures["closing_joint"].gap().is_closed(1e-12)


def test_the_stewart_platform_has_the_geometry_of_the_benchmark():
    robot = gallery.stewart_platform()
    np.testing.assert_allclose(robot.pose("platform")[:3, 3], [0, 0, 0.3], atol=1e-15)
    for k, (base, top) in enumerate([(-15, -45), (15, 45), (105, 75), (135, 165), (225, 195), (255, 285)]):
        start, end = robot.pose(f"leg{k + 1}")[:3, 3], robot.pose(f"piston{k + 1}")[:3, 3]
        a, b = np.radians(base), np.radians(top)
        np.testing.assert_allclose(start, [0.2 * np.cos(a), 0.2 * np.sin(a), 0], atol=1e-12)
        np.testing.assert_allclose(end, [0.12 * np.cos(b), 0.12 * np.sin(b), 0.3], atol=1e-12)
        assert robot.values()[f"leg{k + 1}_slide"] == pytest.approx(np.linalg.norm(end - start), abs=1e-12)


def test_the_stewart_platform_has_six_dofs_however_its_spherical_joints_are_modelled():
    closures, joints = gallery.stewart_platform(), gallery.stewart_platform(ends="joint")
    assert (closures.nv, joints.nv) == (24, 42)
    assert mobility(joints).dof == mobility(closures).dof == 6
    assert all(closure.gap().is_closed(1e-12) for closure in joints.closures.values())


def test_the_platform_of_the_delta_robot_translates_and_does_not_rotate():
    from mechanik.model.mobility import closure_jacobian

    robot = gallery.delta_robot()
    rows = np.concatenate([closure_jacobian(robot, closure) for closure in robot.closures.values()])
    motions = np.linalg.svd(rows)[2][np.linalg.matrix_rank(rows) :]
    J = robot.jacobian("platform")
    assert np.linalg.matrix_rank(J[:3] @ motions.T, tol=1e-6) == 3
    np.testing.assert_allclose(J[3:] @ motions.T, 0, atol=1e-12)


def test_the_fingers_of_the_panda_move_together():
    robot = gallery.panda()
    q = robot.configuration({"panda_finger_joint1": 0.03})
    tcp, left, right = robot.poses(q, ["panda_hand_tcp", "panda_leftfinger", "panda_rightfinger"])
    np.testing.assert_allclose((left[:3, 3] + right[:3, 3]) / 2, tcp[:3, 3] - 0.045 * tcp[:3, 2], atol=1e-12)
    assert np.linalg.norm(left[:3, 3] - right[:3, 3]) == pytest.approx(0.06)
    assert gallery.panda(hand=False).nq == 7


def test_the_humanoid_stands_on_its_soles_and_faces_forward():
    body = gallery.humanoid(height=2.0, mass=100.0)
    for side, sign in (("left", 1), ("right", -1)):
        X_world_foot = body.pose(f"{side}_foot")
        np.testing.assert_allclose(X_world_foot[:3, :3], np.eye(3), atol=1e-12)
        sole = min(placed.pose.position[2] - placed.shape.size[2] / 2 for placed in body.link(f"{side}_foot").visuals)
        assert X_world_foot[2, 3] + sole == pytest.approx(0, abs=1e-12)
        assert sign * X_world_foot[1, 3] > 0.05
    np.testing.assert_allclose(body.pose("eyes")[:3, 0], (1, 0, 0), atol=1e-12)
    assert 1.75 < body.pose("eyes")[2, 3] < 1.9
    assert sum(link.inertial.mass for link in body.links.values() if link.inertial) == pytest.approx(100)
    assert body.nv == 37


def test_the_humanoid_is_symmetric():
    body, mirror = gallery.humanoid(), np.diag([1.0, -1.0, 1.0])
    values = {"shoulder": (0.3, 0.5, -0.7), "elbow": (-0.9,), "wrist": (0.1, 0.2, -0.3), "hip": (0.2, 0.3, -0.5),
              "knee": (0.8,), "ankle": (0.1, -0.2)}  # fmt: skip
    for name, left in values.items():
        pitch = "EZ" if name in ("shoulder", "hip") else "EY"
        body.joint(f"left_{name}").set_values(left)
        joint = body.joint(f"right_{name}")
        right = [value if dof.name == pitch else -value for dof, value in zip(joint.dof, left, strict=True)]
        assert not joint.set_values(right)
    for link in ("hand", "foot"):
        L, R = body.pose(f"left_{link}"), body.pose(f"right_{link}")
        np.testing.assert_allclose(R[:3, 3], mirror @ L[:3, 3], atol=1e-12)
        np.testing.assert_allclose(R[:3, :3], mirror @ L[:3, :3] @ mirror, atol=1e-12)


def test_the_joints_of_the_humanoid_bend_like_those_of_a_person():
    body = gallery.humanoid()
    straight = body.neutral()
    at = {name: body.pose(name, straight)[:3, 3] for name in ("left_hand", "left_foot", "left_shank", "left_forearm")}

    def moved(link, **values):
        q = body.configuration({name.replace("__", "."): value for name, value in values.items()}, straight)
        return body.pose(link, q)[:3, 3] - at[link]

    assert moved("left_hand", left_elbow=-1.0)[0] > 0.1  # forward
    assert moved("left_foot", left_knee=1.0)[0] < -0.1  # backward
    assert moved("left_shank", left_hip__EZ=-1.0)[0] > 0.1  # forward
    assert moved("left_shank", left_hip__EY=0.5)[1] > 0.1  # outward
    assert moved("left_forearm", left_shoulder__EY=1.0)[1] > 0.1  # outward
    assert moved("left_forearm", left_shoulder__EZ=-1.0)[0] > 0.1  # forward


BAD = {
    "a four-bar that cannot close": (lambda: gallery.four_bar(coupler=0.1), "four_bar cannot be assembled"),
    "a length below zero": (lambda: gallery.four_bar(crank=-1.0), "four_bar: crank must .*not -1"),
    "a length of nan": (lambda: gallery.five_bar(rod=float("nan")), "five_bar: rod must .*not nan"),
    "a length in words": (lambda: gallery.five_bar(rod="long"), "five_bar: rod must .*not 'long'"),
    "an angle of nan": (lambda: gallery.four_bar(angle=float("nan")), "four_bar: angle must .*not nan"),
    "a rod too short": (lambda: gallery.slider_crank(rod=0.1, offset=1.0), "slider_crank cannot be assembled"),
    "cranks too far apart": (lambda: gallery.five_bar(ground=5.0), "five_bar cannot be assembled"),
    "legs too short": (lambda: gallery.stewart_platform(height=2.0), "leg 1 is .* m long, outside 0.2 to 0.5 m"),
    "a stroke of one number": (lambda: gallery.stewart_platform(stroke=0.3), "stroke must .*not 0.3"),
    "unknown ends": (lambda: gallery.stewart_platform(ends="magnet"), "'closure' or 'joint'"),
    "forearms too short": (lambda: gallery.delta_robot(forearm=0.2), "delta_robot cannot be assembled"),
    "a body without height": (lambda: gallery.humanoid(height=0.0), "humanoid: height must .*not 0"),
    "a body without mass": (lambda: gallery.humanoid(mass=-1.0), "humanoid: mass must .*not -1"),
    "rods in one line": (lambda: gallery.delta_robot(width=0.0), "delta_robot: width must .*not 0"),
    "unknown legs": (lambda: gallery.stewart_platform(legs="rps"), "'ups' or 'sps'"),
    "struts that vanish": (lambda: gallery.hexapod(travel=0.08), "hexapod: travel is 0.08"),
    "a boom without length": (lambda: gallery.excavator(boom=0.0), "excavator: boom must .*not 0"),
    "a gripper that is never open": (lambda: gallery.gripper(opening=0.0), "gripper: opening must .*not 0"),
    "wheels that overlap": (lambda: gallery.rover(wheel=0.6), "rover: wheels of radius 0.6 m do not fit"),
    "legs that do not reach the ground": (lambda: gallery.walker(thigh=3.0), "walker cannot stand"),
    "cranks as long as the shank": (lambda: gallery.biped(crank=0.3), "biped: cranks of 0.3 m do not fit"),
    "a box of no size": (lambda: gallery.two_arms(box=-0.1), "two_arms: box must .*not -0.1"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_impossible_dimensions_are_rejected_by_name(call, message):
    with pytest.raises(StructureError, match=message):
        call()


def test_a_planar_arm_with_the_wrong_number_of_links_is_rejected():
    with pytest.raises(FormatError, match=r"planar_2r has 2 links.*not 3"):
        gallery.planar_2r((1.0, 1.0, 1.0))


def test_the_gallery_is_imported_without_the_compiler():
    import subprocess
    import sys

    code = "import sys, mechanik.gallery; mechanik.gallery.panda(); sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
