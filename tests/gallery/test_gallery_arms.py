"""The arms of the gallery compared with URDFs and tables of other sources, and with the golden data of the seeds."""

import json
import math
import site
import sys
from pathlib import Path

import numpy as np
import pytest
from gallery_urdf import TinyUrdf

from mechanik import gallery

DATA = Path(__file__).parents[1] / "data"
GOLDEN = json.loads((DATA / "seed_arms/seed_fk_golden.json").read_text())


def frame(theta, d, a, alpha):
    """One row of a classic DH table, multiplied out by hand."""
    c, s, ca, sa = math.cos(theta), math.sin(theta), math.cos(alpha), math.sin(alpha)
    return np.array([[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]])


def classic(q, d, a, alpha):
    X = np.eye(4)
    for row in zip(q, d, a, alpha, strict=True):
        X = X @ frame(*row)
    return X


def configurations(mechanism, size=20):
    return mechanism.random(np.random.default_rng(11), size)


def compare(mechanism, urdf, tolerance, renamed=None):
    """Every link that both have, at random configurations; renamed says which link of ours is which of theirs."""
    shared = None
    for q in configurations(mechanism):
        theirs = urdf.poses({n: v for n, v in mechanism.values(q).items() if np.ndim(v) == 0})
        renamed = renamed or {link: link for link in mechanism.links}
        shared = [(ours, their_name) for ours, their_name in renamed.items() if their_name in theirs]
        for ours, their_name in shared:
            np.testing.assert_allclose(
                mechanism.pose(ours, q), theirs[their_name], rtol=0, atol=tolerance, err_msg=ours
            )
    return len(shared)


# ---- the seeds' arms ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", GOLDEN["zalo"])
def test_zalo5_matches_the_golden_data_at_a_hundredth_of_the_size_and_upright(case):
    arm = gallery.zalo5()
    X_base_tip = np.linalg.inv(arm.pose("base")) @ arm.pose("effector", np.array(case["q_rad"], dtype=float))
    np.testing.assert_allclose(100 * X_base_tip[:3, 3], case["tip_yup"], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(X_base_tip[:3, :3], case["R_yup"], rtol=0, atol=1e-12)
    x, y, z = case["tip_yup"]
    tip = arm.pose("effector", np.array(case["q_rad"], dtype=float))[:3, 3]
    np.testing.assert_allclose(100 * tip, [x, -z, y], rtol=1e-12, atol=1e-12)


def test_zalo5_equals_its_urdf():
    arm, urdf = gallery.zalo5(), TinyUrdf(DATA / "seed_arms/zalo5.urdf")
    assert compare(arm, urdf, 1e-12) == 8
    assert list(urdf.limits()) == list(arm.space.q_names)
    np.testing.assert_allclose(np.array([*urdf.limits().values()]).T, [arm.space.lower, arm.space.upper], atol=1e-8)


@pytest.mark.parametrize("case", GOLDEN["dh_modified_order_d_a_alpha_theta"]["cases"])
def test_dh6_matches_the_golden_data_at_a_tenth_of_the_size(case):
    arm = gallery.dh6()
    q = np.radians(case["theta_deg"])
    for k, X in enumerate(case["T_all"]):
        ours = arm.pose(f"link{k + 1}", q)
        np.testing.assert_allclose(10 * ours[:3, 3], np.array(X)[:3, 3], rtol=0, atol=1e-12)
        np.testing.assert_allclose(ours[:3, :3], np.array(X)[:3, :3], rtol=0, atol=1e-12)


def test_dh6_equals_its_urdf_and_starts_in_the_pose_of_its_table():
    arm, urdf = gallery.dh6(), TinyUrdf(DATA / "seed_arms/dh6.urdf")
    assert compare(arm, urdf, 1e-12, {"link0": "world", "link2": "link1", "link3": "link2", "tool": "tip"}) == 4
    np.testing.assert_allclose(np.degrees(arm.q), [0, 125, -35, 0, 90, 0], atol=1e-12)
    np.testing.assert_allclose(np.array([*urdf.limits().values()]).T, [arm.space.lower, arm.space.upper], atol=1e-8)


@pytest.mark.parametrize("case", GOLDEN["grippy10"]["cases"])
def test_grippy10_matches_the_golden_data_at_a_tenth_of_the_size(case):
    X = gallery.grippy10().pose("tool", case["q"])
    np.testing.assert_allclose(10 * X[:3, 3], np.array(case["T"])[:3, 3], rtol=0, atol=1e-12)
    np.testing.assert_allclose(X[:3, :3], np.array(case["T"])[:3, :3], rtol=0, atol=1e-12)


def test_grippy10_equals_its_urdf():
    arm, urdf = gallery.grippy10(), TinyUrdf(DATA / "seed_arms/grippy10.urdf")
    assert compare(arm, urdf, 1e-12) == 11
    assert list(urdf.limits()) == list(arm.space.q_names)
    np.testing.assert_allclose(np.array([*urdf.limits().values()]).T, [arm.space.lower, arm.space.upper], atol=1e-8)


# ---- robots ---------------------------------------------------------------------------------------------------------


def test_the_panda_equals_its_urdf():
    arm, urdf = gallery.panda(), TinyUrdf(DATA / "peers/panda.urdf")
    assert compare(arm, urdf, 1e-12) == 9
    for name, limits in urdf.limits().items():
        assert arm.joint(name).limits("EZ") == limits


@pytest.mark.parametrize("hand", [True, False])
def test_the_panda_equals_the_modified_dh_table_of_franka(hand):
    from mechanik.formats.arm_tables import from_dh

    table = [
        [0, 0.333, 0],
        [0, 0, -90],
        [0, 0.316, 90],
        [0.0825, 0, 90],
        [-0.0825, 0.384, -90],
        [0, 0, 90],
        [0.088, 0, 90],
    ]
    rows = [[*row, 0] for row in table]
    twin = from_dh(rows, convention="modified", columns="a d alpha theta", degrees=True, tool=(0, 0, 0.107))
    arm = gallery.panda(hand=hand)
    for q in configurations(arm):
        np.testing.assert_allclose(arm.pose("panda_link8", q), twin.pose("tool", q[:7]), rtol=0, atol=1e-12)


def test_the_ur5_equals_its_urdf():
    # that file writes pi with 11 digits
    arm, urdf = gallery.ur5(), TinyUrdf(DATA / "peers/ur5.urdf")
    assert compare(arm, urdf, 1e-10) == 8
    np.testing.assert_allclose(np.array([*urdf.limits().values()]).T, [arm.space.lower, arm.space.upper], atol=1e-10)


@pytest.mark.parametrize(
    ("make", "d1", "a2", "a3", "d4", "d5", "d6"),
    [
        (gallery.ur5, 0.089159, -0.425, -0.39225, 0.10915, 0.09465, 0.0823),
        (gallery.ur10, 0.1273, -0.612, -0.5723, 0.163941, 0.1157, 0.0922),
    ],
)
def test_the_universal_robots_equal_the_dh_tables_of_the_maker(make, d1, a2, a3, d4, d5, d6):
    arm = make()
    half_turn = np.diag([-1.0, -1.0, 1.0, 1.0])  # the maker's base frame looks the other way
    quarter = math.pi / 2
    for q in configurations(arm):
        X = half_turn @ classic(q, [d1, 0, 0, d4, d5, d6], [0, a2, a3, 0, 0, 0], [quarter, 0, 0, quarter, -quarter, 0])
        np.testing.assert_allclose(arm.pose("tool0", q), X, rtol=0, atol=1e-12)


def test_the_iiwa14_equals_the_dh_table_of_its_data_sheet():
    arm = gallery.iiwa14()
    quarter = math.pi / 2
    alpha = [-quarter, quarter, quarter, -quarter, -quarter, quarter, 0]
    for q in configurations(arm):
        X = classic(q, [0.36, 0, 0.42, 0, 0.4, 0, 0.126], [0] * 7, alpha)
        np.testing.assert_allclose(arm.pose("iiwa_link_ee", q), X, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.degrees(arm.space.upper), [170, 120, 170, 120, 170, 120, 175])


def test_the_puma560_equals_the_product_of_its_dh_table():
    arm = gallery.puma560()
    quarter = math.pi / 2
    for q in configurations(arm):
        d, a = [0, 0, 0.15005, 0.4318, 0, 0], [0, 0.4318, 0.0203, 0, 0, 0]
        X = classic(q, d, a, [quarter, 0, -quarter, quarter, -quarter, 0])
        np.testing.assert_allclose(arm.pose("tool", q), X, rtol=0, atol=1e-12)


def test_the_puma560_stretched_up_is_as_high_as_its_links_are_long():
    tip = gallery.puma560().pose("tool", np.array([0, math.pi / 2, -math.pi / 2, 0, 0, 0]))[:3, 3]
    np.testing.assert_allclose(tip, [0.0203, -0.15005, 0.8636], rtol=0, atol=1e-12)


def test_the_scara_keeps_its_tool_upright():
    arm = gallery.scara()
    for q in configurations(arm):
        X = arm.pose("tool", q)
        np.testing.assert_allclose(X[:3, 2], [0, 0, -1], atol=1e-15)
        x = 0.325 * math.cos(q[0]) + 0.275 * math.cos(q[0] + q[1])
        y = 0.325 * math.sin(q[0]) + 0.275 * math.sin(q[0] + q[1])
        np.testing.assert_allclose(X[:3, 3], [x, y, 0.387 - q[2]], rtol=0, atol=1e-12)


# ---- robot data of others -------------------------------------------------------------------------------------------


def robot_data():
    """The folder of the package example-robot-data, which brings no Python module of its own."""
    for folder in {*site.getsitepackages(), *sys.path}:
        robots_folder = Path(folder) / "cmeel.prefix/share/example-robot-data/robots"
        if robots_folder.is_dir():
            return robots_folder
    pytest.skip("example-robot-data is not installed")


@pytest.mark.robot_data
@pytest.mark.parametrize("make", [gallery.ur5, gallery.ur10])
def test_the_universal_robots_equal_the_urdfs_of_example_robot_data(make):
    arm = make()
    urdf = TinyUrdf(robot_data() / f"ur_description/urdf/{arm.name}_robot.urdf")
    assert compare(arm, urdf, 1e-10) == 8
    np.testing.assert_allclose(np.array([*urdf.limits().values()]).T, [arm.space.lower, arm.space.upper], atol=1e-10)


@pytest.mark.robot_data
def test_the_panda_with_its_hand_equals_the_urdf_of_example_robot_data():
    arm = gallery.panda()
    urdf = TinyUrdf(robot_data() / "panda_description/urdf/panda.urdf")
    assert compare(arm, urdf, 1e-12) == len(arm.links) == 13
