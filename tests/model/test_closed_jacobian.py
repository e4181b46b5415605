"""The Jacobian of mechanisms with closed loops: from input velocities to those of the tool and of all dofs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from special_loops import bennett, parallelogram, quick_return, sarrus, six_sps, slot_crank

import mechanik as mk
from mechanik.errors import DoFError, InvalidArgument, StructureError, UnknownName
from mechanik.model.linearized_constraints import linearize_system
from mechanik.spatial import inverse, make_pose, rotation

STEP = 1e-4

MECHANISMS = [
    (mk.gallery.four_bar, "coupler"),
    (mk.gallery.slider_crank, "rod"),
    (mk.gallery.five_bar, "tool"),
    (mk.gallery.stewart_platform, "platform"),
    (mk.gallery.delta_robot, "platform"),
    (parallelogram, "coupler"),
    (bennett, "second"),
    (sarrus, "plate"),
    (six_sps, "platform"),
    (quick_return, "lever"),
]


def close_loops(mechanism, q, held):
    """q with all loops closed by Newton's method; the angles `freeze_angles` keep their values."""
    for _ in range(20):
        now = linearize_system(mechanism, q)
        if now.max_residual < 1e-15:
            break
        A = now.A.copy()
        A[:, held] = 0.0
        q = mechanism.integrate(q, now.unit * (np.linalg.pinv(A, rcond=1e-9) @ -now.residual))
    assert now.max_residual < 1e-13
    return q


# ---- laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "link"), MECHANISMS)
def test_it_is_the_derivative_of_the_tool_by_the_inputs_with_closed_loops(make, link):
    mechanism = make()
    q, p = mechanism.q, np.array([0.03, -0.05, 0.02])
    jacobian = mechanism.closed_jacobian(link, point=p)
    columns = [mechanism.space.v_names.index(name) for name in jacobian.inputs]
    X = mechanism.pose(link, q)
    for j, column in enumerate(columns):
        ends = []
        # four places, for an error of the fourth order
        for side in (-2, -1, 1, 2):
            v = side * STEP * jacobian.transmission[:, j]
            ends.append(mechanism.pose(link, close_loops(mechanism, mechanism.integrate(q, v), columns)))
            reached = mechanism.difference(q, close_loops(mechanism, mechanism.integrate(q, v), columns))
            assert reached[column] == pytest.approx(side * STEP, abs=1e-14)
        slope = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * STEP)
        linear = slope[:3, :3] @ p + slope[:3, 3]
        spin = slope[:3, :3] @ X[:3, :3].T
        angular = [spin[2, 1], spin[0, 2], spin[1, 0]]
        np.testing.assert_allclose(jacobian.matrix[:, j], [*linear, *angular], atol=1e-7)


@pytest.mark.parametrize(("make", "link"), MECHANISMS)
def test_the_matrix_is_the_tree_jacobian_times_the_transmission(make, link):
    mechanism = make()
    jacobian, system = mechanism.closed_jacobian(link), linearize_system(mechanism, mechanism.q)
    rng = np.random.default_rng(1)
    v = system.unit * (system.basis() @ rng.standard_normal(system.dof))  # any motion that keeps the loops closed
    columns = [mechanism.space.v_names.index(name) for name in jacobian.inputs]
    np.testing.assert_allclose(jacobian.matrix @ v[columns], mechanism.jacobian(link) @ v, atol=1e-10)


@pytest.mark.parametrize(("make", "link"), MECHANISMS)
def test_the_transmission_keeps_the_loops_closed_and_moves_each_input_by_one(make, link):
    mechanism = make()
    jacobian, system = mechanism.closed_jacobian(link), linearize_system(mechanism, mechanism.q)
    np.testing.assert_allclose(system.A @ (jacobian.transmission / system.unit[:, None]), 0, atol=1e-10)
    columns = [mechanism.space.v_names.index(name) for name in jacobian.inputs]
    np.testing.assert_allclose(jacobian.transmission[columns], np.eye(len(columns)), atol=1e-10)
    assert (jacobian.dependent, jacobian.undetermined) == ((), ())


def test_in_a_tree_it_equals_the_jacobian():
    robot = mk.gallery.ur5()
    q = robot.random(np.random.default_rng(2))
    jacobian = robot.closed_jacobian("tool0", q=q, inputs=robot.space.v_names, point=(0.1, 0, 0.2))
    np.testing.assert_allclose(jacobian.matrix, robot.jacobian("tool0", q, (0.1, 0, 0.2)), atol=1e-13)


def test_other_inputs_describe_the_same_motions():
    mechanism = mk.gallery.five_bar()
    by_cranks = mechanism.closed_jacobian("tool").matrix
    rods = ["left_rod_joint", "right_rod_joint"]
    by_rods = mechanism.closed_jacobian("tool", rods)
    rows = [mechanism.space.v_names.index(name) for name in rods]
    change = mechanism.closed_jacobian("tool").transmission[rows]
    np.testing.assert_allclose(by_rods.matrix @ change, by_cranks, atol=1e-12)


# ---- closed forms -------------------------------------------------------------------------------


@pytest.mark.parametrize("crank", [0.3, 0.6, 2.0, 4.5])
def test_the_ratios_of_a_four_bar(crank):
    mechanism = mk.gallery.four_bar(angle=crank)
    q = mechanism.q
    two, three, four = q[0], q[0] + q[1], q[2]
    ratio = mechanism.closed_jacobian("rocker", "crank_joint").matrix[5, 0]
    assert ratio == pytest.approx(0.5 * math.sin(three - two) / (1.2 * math.sin(three - four)), abs=1e-12)
    ratio = mechanism.closed_jacobian("coupler", "crank_joint").matrix[5, 0]
    assert ratio == pytest.approx(0.5 * math.sin(four - two) / (1.8 * math.sin(three - four)), abs=1e-12)


@pytest.mark.parametrize("crank", [0.4, 1.5, 3.5])
def test_the_piston_of_a_slider_crank(crank):
    mechanism = mk.gallery.slider_crank(0.3, 1.0, 0.0, crank)
    speed = mechanism.closed_jacobian("slider", "crank_joint").matrix[0, 0]
    s, c = math.sin(crank), math.cos(crank)
    assert speed == pytest.approx(-0.3 * s - 0.09 * s * c / math.sqrt(1 - 0.09 * s * s), abs=1e-12)
    back = mechanism.closed_jacobian("crank", "slider_joint").matrix[5, 0]
    assert back == pytest.approx(1 / speed, rel=1e-12)


def test_the_jacobian_of_a_stewart_platform_is_the_inverse_of_its_leg_lines():
    robot = mk.gallery.stewart_platform()
    target = robot.pose("platform") @ make_pose(rotation.exp([0.1, -0.2, 0.15]), (0.02, 0.01, 0.03))
    q = mk.solve(robot, mk.PoseGoal("platform", target)).require().q
    lines = []
    for k in range(1, 7):
        foot, top = (robot.pose(f"{part}{k}", q)[:3, 3] for part in ("leg", "piston"))
        along = (top - foot) / np.linalg.norm(top - foot)
        lines.append([*along, *np.cross(top - robot.pose("platform", q)[:3, 3], along)])
    jacobian = robot.closed_jacobian("platform", q=q)
    np.testing.assert_allclose(np.linalg.inv(np.array(lines)), jacobian.matrix, atol=1e-8)


def test_the_velocity_of_a_delta_robot_follows_from_its_rods():
    """Along each rod, its elbow and the platform go equally fast."""
    robot = mk.gallery.delta_robot()
    target = robot.pose("platform")[:3, 3] + (0.05, -0.03, 0.04)
    q = mk.solve(robot, mk.PositionGoal("platform", target)).require().q
    rods, elbows = [], []
    for k in range(1, 4):
        X = robot.pose(f"rod{k}a", q)
        rods.append(X[:3, 2])
        hinge, turn = robot.pose(f"arm{k}", q), mk.gallery.delta_robot().joint(f"arm{k}_joint").world_matrix[:3, 1]
        elbows.append(X[:3, 2] @ np.cross(turn, X[:3, 3] - hinge[:3, 3]))
    jacobian = robot.closed_jacobian("platform", q=q)
    np.testing.assert_allclose(jacobian.matrix[:3], np.linalg.solve(rods, np.diag(elbows)), atol=1e-8)
    np.testing.assert_allclose(jacobian.matrix[3:], 0, atol=1e-9)


def test_a_sarrus_linkage_moves_straight():
    jacobian = sarrus().closed_jacobian("plate")
    np.testing.assert_allclose(jacobian.matrix[:, 0], [0, 0, 2 * 0.5 * math.sin(0.7), 0, 0, 0], atol=1e-12)


# ---- drives -------------------------------------------------------------------------------------


def test_the_joint_that_closes_a_loop_may_be_an_input():
    mechanism = mk.gallery.four_bar()
    q = mechanism.q
    jacobian = mechanism.closed_jacobian("crank", "closing_joint")
    angles = []
    for side in (1e-6, -1e-6):
        crank_column = mechanism.closed_jacobian("crank", "crank_joint").transmission[:, 0]
        mechanism.q = close_loops(mechanism, q + side * crank_column, [0])
        angles.append(mechanism.joint("closing_joint").values[0])
    assert 1 / jacobian.matrix[5, 0] == pytest.approx((angles[0] - angles[1]) / 2e-6, abs=1e-7)


def test_a_mimic_joint_may_be_an_input_instead_of_its_leader():
    mechanism = mk.gallery.five_bar()
    mechanism.joint("right_crank_joint").mimic(mechanism.joint("left_crank_joint"), -1.0, math.pi)
    by_leader = mechanism.closed_jacobian("tool", "left_crank_joint").matrix
    np.testing.assert_allclose(mechanism.closed_jacobian("tool", "right_crank_joint").matrix, -by_leader, atol=1e-12)
    np.testing.assert_allclose(by_leader[0], 0, atol=1e-12)  # cranks that mirror each other move it up and down


def test_the_transmission_of_a_cam_is_its_slope():
    mechanism = mk.gallery.five_bar()
    left, right = (mechanism.joint(f"{side}_crank_joint") for side in ("left", "right"))
    angle = right.values[0]
    mk.JointConstraint({left: 1.0, right: [1.0, 0.2]}, left.values[0] + angle + 0.2 * angle**2)
    ratio = mechanism.closed_jacobian("right_crank", "left_crank_joint").matrix[5, 0]
    assert ratio == pytest.approx(-1 / (1 + 0.4 * angle), abs=1e-12)


def test_at_a_dead_point_the_dependent_input_is_named():
    mechanism = mk.gallery.slider_crank(angle=0.0)
    jacobian = mechanism.closed_jacobian("crank", "slider_joint")
    assert jacobian.dependent == ("slider_joint",)
    assert jacobian.undetermined == ("crank_joint", "rod_joint")
    assert jacobian.condition == math.inf
    np.testing.assert_array_equal(jacobian.matrix, 0)  # nothing that the slider may do moves the crank
    assert "slider_joint" in repr(jacobian)
    assert mechanism.closed_jacobian("slider", "crank_joint").dependent == ()


def test_a_dead_point_is_detected_if_the_slider_closes_the_loop():
    jacobian = slot_crank().closed_jacobian("rod")
    assert (jacobian.inputs, jacobian.dependent, jacobian.undetermined) == (("crank",), ("crank",), ("elbow",))


def test_of_too_many_inputs_the_last_depend_on_the_first():
    mechanism = mk.gallery.five_bar()
    jacobian = mechanism.closed_jacobian("tool", ["left_crank_joint", "right_crank_joint", "left_rod_joint"])
    assert jacobian.dependent == ("left_rod_joint",)


def test_with_too_few_inputs_the_undetermined_dofs_are_named():
    mechanism = mk.gallery.five_bar()
    jacobian = mechanism.closed_jacobian("tool", "left_crank_joint")
    assert set(jacobian.undetermined) == {"left_rod_joint", "right_crank_joint", "right_rod_joint"}


def test_a_spinning_leg_is_not_undetermined():
    drives = [f"slide{k}" for k in range(6)]
    assert six_sps().closed_jacobian("platform", drives).undetermined == ()


def test_the_spin_of_a_leg_can_be_an_input():
    """Also where the tool does not feel it, and other legs are left to spin."""
    robot = six_sps()
    names = [*(f"slide{k}" for k in range(6)), "foot2.EZ"]
    jacobian = robot.closed_jacobian("platform", names)
    assert (jacobian.dependent, jacobian.undetermined) == ((), ())
    spin = robot.space.v_names.index("foot2.EZ")
    np.testing.assert_allclose(jacobian.transmission[spin], np.eye(7)[6], atol=1e-9)
    np.testing.assert_allclose(jacobian.matrix[:, 6], 0, atol=1e-9)


def test_the_spin_of_the_tool_itself_is_an_input():
    robot = six_sps()
    jacobian = robot.closed_jacobian("leg2")
    assert set(jacobian.inputs) - {f"slide{k}" for k in range(6)} == {"foot2.EZ"}
    assert (jacobian.dependent, jacobian.undetermined) == ((), ())
    X = robot.link("leg2").world_matrix
    np.testing.assert_allclose(jacobian.matrix[3:, jacobian.inputs.index("foot2.EZ")], X[:3, 2], atol=1e-12)


# ---- condition and singular directions ----------------------------------------------------------


def test_the_condition_does_not_depend_on_the_unit_of_length():
    small, large = (
        mk.gallery.stewart_platform(0.2 * s, 0.12 * s, 0.3 * s, (0.2 * s, 0.5 * s)).closed_jacobian("platform")
        for s in (1.0, 1000.0)
    )
    assert small.condition == pytest.approx(large.condition, rel=1e-9)
    assert 1 < small.condition < 100


def test_a_planar_tool_cannot_leave_its_plane():
    jacobian = mk.gallery.five_bar().closed_jacobian("tool")
    twists = jacobian.singular_directions.twists
    assert twists.shape == (4, 6)
    in_sizes = jacobian.matrix / np.array([jacobian.characteristic_length] * 3 + [1.0] * 3)[:, None]
    np.testing.assert_allclose(twists @ in_sizes, 0, atol=1e-12)
    out_of_plane = np.eye(6)[[2, 3, 4]]
    np.testing.assert_allclose(out_of_plane @ twists.T @ twists, out_of_plane, atol=1e-9)
    assert jacobian.singular_directions.inputs.shape == (0, 2)


def test_a_stretched_crank_does_not_move_the_tool():
    """A five-bar with one arm straight: the tool does not feel what that crank and the other do together."""
    mechanism = mk.gallery.five_bar()
    left = math.radians(60)
    elbow = np.array([-0.3, 0]) + 0.5 * np.array([math.cos(left), math.sin(left)])
    tip = np.array([-0.3, 0]) + 1.3 * np.array([math.cos(left), math.sin(left)])
    reach = tip - (0.3, 0)
    apart = np.linalg.norm(reach)
    inner = math.acos((0.5**2 + apart**2 - 0.8**2) / (2 * 0.5 * apart))
    right = math.atan2(reach[1], reach[0]) - inner
    knee = np.array([0.3, 0]) + 0.5 * np.array([math.cos(right), math.sin(right)])
    rod = math.atan2(*(tip - knee)[::-1])
    assert np.linalg.norm(tip - elbow) == pytest.approx(0.8)
    q = mechanism.configuration(
        {"left_crank_joint": left, "left_rod_joint": 0.0, "right_crank_joint": right, "right_rod_joint": rod - right}
    )
    jacobian = mechanism.closed_jacobian("tool", q=q)
    point = jacobian.matrix[:3]
    assert np.linalg.matrix_rank(point, tol=1e-9) == 1
    np.testing.assert_allclose((tip - (-0.3, 0)) @ point[:2], 0, atol=1e-9)  # not along the straight arm


# ---- refusals -----------------------------------------------------------------------------------


def test_an_open_loop_is_rejected():
    mechanism = mk.gallery.four_bar()
    with pytest.raises(StructureError, match=r"'closing_joint' has a gap of .*assemble"):
        mechanism.closed_jacobian("rocker", q=mechanism.q + 0.1)


def test_names_are_checked():
    mechanism = mk.gallery.stewart_platform()
    with pytest.raises(UnknownName, match="platform"):
        mechanism.closed_jacobian("platfrom")
    with pytest.raises(UnknownName, match="leg1_slide"):
        mechanism.closed_jacobian("platform", "leg1_slid")
    with pytest.raises(StructureError, match="is repeated in the inputs"):
        mechanism.closed_jacobian("platform", ["leg1_slide", "leg1_slide"])
    with pytest.raises(StructureError, match="`inputs` is empty"):
        mechanism.closed_jacobian("platform", [])
    with pytest.raises(DoFError, match="several rotations"):
        mechanism.closed_jacobian("platform", "leg1_ball")
    with pytest.raises(DoFError, match="fixed"):
        mk.gallery.five_bar().closed_jacobian("tool", "tool_joint")
    for nameless in (3, [3], [mechanism.joint("leg1_slide")]):
        with pytest.raises(InvalidArgument, match=r"must be names|must be the name"):
            mechanism.closed_jacobian("platform", nameless)


def test_the_mechanism_does_not_move():
    mechanism = six_sps()
    q, X = mechanism.q, mechanism.link("platform").world_matrix
    mechanism.closed_jacobian("platform")
    np.testing.assert_array_equal(mechanism.q, q)
    np.testing.assert_allclose(inverse(X) @ mechanism.link("platform").world_matrix, np.eye(4), atol=1e-15)
