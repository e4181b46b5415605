"""Recognition of arms with a closed form from the geometry of their axes, and the explanation of the result."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from random_arms import FAMILIES, apart, arm_of, direction
from random_mechanisms import seeds

from mechanik import Builder, gallery
from mechanik.errors import NoClosedForm, UnknownName
from mechanik.model import screw_axes as lines
from mechanik.model.closed_form_family import AXIS_TOLERANCE, ClosedFormFamily, match_closed_form
from mechanik.model.screw_axes import screw_axes
from mechanik.spatial import rotation
from mechanik.spatial.vector_math import length

GALLERY = {
    "planar_2r": ClosedFormFamily.PLANAR_2R,
    "planar_3r": ClosedFormFamily.PLANAR_3R,
    "dh6": ClosedFormFamily.SPHERICAL_WRIST,
    "puma560": ClosedFormFamily.SPHERICAL_WRIST,
    "ur5": ClosedFormFamily.THREE_PARALLEL,
    "ur10": ClosedFormFamily.THREE_PARALLEL,
    "iiwa14": ClosedFormFamily.SRS,
    "scara": None,
    "zalo5": None,
    "grippy10": None,
}


@pytest.mark.parametrize("name", GALLERY)
def test_the_arms_of_the_gallery_have_their_known_families(name):
    arm = gallery.make(name)
    end = next(reversed(arm.links))
    assert match_closed_form(arm, end).family == GALLERY[name]


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=10)
@given(seed=seeds)
def test_recognized_arms_have_the_stated_geometry_and_their_screws_give_the_pose(name, seed):
    rng = np.random.default_rng(seed)
    arm = arm_of(rng, FAMILIES[name][1](rng))
    match = match_closed_form(arm, "tool")
    assert match.family == FAMILIES[name][0]
    assert match.deviation < 1e-12
    axes = match.axes
    assert axes is not None
    q = rng.uniform(-np.pi, np.pi, axes.n)
    X = np.eye(4)
    for h, p, angle in zip(axes.directions, axes.points, q, strict=True):
        R = rotation.from_axis_angle(h, angle)
        X = X @ np.block([[R, (p - R @ p)[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
    np.testing.assert_allclose(X @ axes.home, arm.pose("tool", q), atol=1e-12)
    np.testing.assert_allclose(axes.poses(q[None])[0], arm.pose("tool", q), atol=1e-12)
    np.testing.assert_allclose(axes.jacobians(q[None])[0], arm.jacobian("tool", q), atol=1e-12)


def shifted(rng, lines_of, which, by):
    """The axis `which`, moved at right angles to itself."""
    h, p = lines_of
    p = p.copy()
    across = np.cross(h[which], apart(rng, h[which]))
    p[which] += by * across / np.linalg.norm(across)
    return h, p


def tilted(rng, lines_of, which, by):
    h, p = lines_of
    h = h.copy()
    across = np.cross(h[which], apart(rng, h[which]))
    h[which] = rotation.from_axis_angle(across, by) @ h[which]
    return h, p


LOST = {
    "planar 2R": (tilted, 0),
    "planar 3R": (tilted, 1),
    **{name: (shifted, 4) for name, (family, _) in FAMILIES.items() if family == "spherical wrist"},
    **{name: (shifted, 1) for name, (family, _) in FAMILIES.items() if family in ("spherical shoulder", "S-R-S")},
    **{name: (tilted, 2) for name, (family, _) in FAMILIES.items() if family == "three parallel axes"},
}
"""How each family is lost: by which axis, moved or tilted."""


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=10)
@given(seed=seeds)
def test_an_arm_that_deviates_by_a_thousandth_is_not_recognized(name, seed):
    rng = np.random.default_rng(seed)
    how, which = LOST[name]
    lines_of = how(rng, FAMILIES[name][1](rng), which, 1e-3)
    match = match_closed_form(arm_of(rng, lines_of), "tool")
    assert not match, match.reasons
    assert match.reasons


@pytest.mark.parametrize("name", FAMILIES)
def test_an_arm_that_deviates_by_rounding_is_recognized(name):
    rng = np.random.default_rng(3)
    how, which = LOST[name]
    match = match_closed_form(arm_of(rng, how(rng, FAMILIES[name][1](rng), which, 5e-6)), "tool")
    assert match.family == FAMILIES[name][0]
    assert 1e-8 < match.deviation < AXIS_TOLERANCE


def test_a_joint_with_equal_limits_is_not_an_axis():
    arm = gallery.iiwa14()
    arm.joint("iiwa_joint_3").set_limits(0.4, 0.4)
    match = match_closed_form(arm, "iiwa_link_ee")
    assert match.family == ClosedFormFamily.SPHERICAL_WRIST
    assert match.axes is not None
    assert match.axes.names == tuple(f"iiwa_joint_{k}" for k in (1, 2, 4, 5, 6, 7))
    q = arm.random(np.random.default_rng(0))
    np.testing.assert_allclose(
        match.axes.poses(q[None, match.axes.columns])[0], arm.pose("iiwa_link_ee", q), atol=1e-12
    )


def test_prismatic_spherical_and_mimic_joints_have_no_closed_form():
    sliding = gallery.panda()
    with pytest.raises(NoClosedForm, match="'panda_finger_joint1' is prismatic"):
        screw_axes(sliding.kinematics, "panda_leftfinger")
    builder = Builder()
    builder.spherical("hip", "pelvis", "thigh")
    with pytest.raises(NoClosedForm, match="is spherical"):
        screw_axes(builder.build().kinematics, "thigh")
    builder = Builder()
    for k in range(3):
        builder.revolute(f"j{k}", f"l{k}", f"l{k + 1}", at=(0.1, 0, 0))
    builder.couple("j2", "j1", ratio=0.5)
    with pytest.raises(NoClosedForm, match="'j1' is coupled"):
        screw_axes(builder.build().kinematics, "l3")


def test_arms_without_full_rank_have_no_family():
    """Axis 3 through the wrist; a shoulder and a wrist that are both points; two axes on each other."""
    arm = Builder()
    for k, (at, axis) in enumerate(
        [((0, 0, 0), "z"), ((0, 0, 0), "y"), ((0.5, 0, 0), "x"), ((0.5, 0, 0), "z"), ((0, 0, 0), "y"), ((0, 0, 0), "x")]
    ):
        arm.revolute(f"j{k}", f"l{k}", f"l{k + 1}", at=at, axis=axis)
    match = match_closed_form(arm.build(), "l6")
    assert not match
    assert any("the link cannot move in all six dofs" in why for why in match.reasons)
    flat = Builder()
    flat.revolute("a", "l0", "l1")
    flat.revolute("b", "l1", "l2")
    flat.fixed("c", "l2", "l3", at=(1, 0, 0))
    assert "coincide" in match_closed_form(flat.build(), "l3").reasons[0]


def test_a_chain_in_a_loop_has_no_closed_form_of_its_own():
    match = match_closed_form(gallery.make("five_bar"), "tool")
    assert not match
    assert "is part of the loop that 'closing_joint' closes" in match.reasons[0]


# ---- in words -------------------------------------------------------------------------------------------------------


def test_the_explanation_names_intersecting_axes_with_point_and_error():
    text = gallery.puma560().explain()
    assert "Chain to tool: waist, shoulder, elbow, forearm_roll, wrist_bend, flange." in text
    assert "Axes 4, 5 and 6 intersect in the point (0.4521, -0.15, 0.4318) (to " in text
    assert "So it has a closed form: spherical wrist." in text
    assert "puma560 has 8 links and 6 dofs, and no closed loops." in text
    assert "Axes 2, 3 and 4 are parallel (to 0 rad)." in gallery.ur5().explain("tool0")


def test_the_explanation_names_the_deviation_and_the_solver_used_instead():
    text = gallery.panda().explain("panda_hand_tcp")
    assert "Axes 6 and 7 do not intersect (distance 0.088 m): the wrist is not spherical." in text
    assert "the general solver is used" in text
    assert (
        "The chain has 5 independent revolute joints; closed forms are implemented for 2, 3, 6 and 7."
        in gallery.zalo5().explain()
    )


def test_the_explanation_contains_loops_and_mobility():
    bar = gallery.make("four_bar")
    text = bar.explain()
    assert "closing_joint closes a loop: 5 scalar constraints." in text
    assert (
        "mobility in this configuration is 1 dof. Grübler's count gives -2, but 3 of the constraints are redundant: Z"
        in text
    )
    bar.q = bar.q + 0.1
    assert "A loop is not closed in this configuration" in bar.explain()
    text = gallery.make("stewart_platform").explain("platform")
    assert "close 6 loops: 18 scalar constraints" in text
    assert "is 6 dofs, equal to Grübler's count" in text


def test_the_part_of_a_chain_that_has_a_closed_form_is_found():
    text = gallery.humanoid().explain("left_hand")
    assert "The part from base 'chest' (left_shoulder.EZ to left_wrist.EX) has a closed form." in text
    assert text.endswith("So it has a closed form: S-R-S.")


def test_every_mechanism_of_the_gallery_can_be_explained():
    for name in gallery.names():
        mechanism = gallery.make(name)
        text = mechanism.explain()
        assert text.count("Chain to ") >= 1
        assert text.startswith(mechanism.name)
    assert "it cannot move" in gallery.ur5().explain("base_link")


def test_an_unknown_link_is_named():
    with pytest.raises(UnknownName, match="tool0"):
        gallery.ur5().explain("tol0")


# ---- lines in space -------------------------------------------------------------------------------------------------


@given(seed=seeds)
def test_the_common_normal_is_perpendicular_to_both_lines(seed):
    rng = np.random.default_rng(seed)
    a, p, q = direction(rng), rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3)
    b = apart(rng, a)
    first_point, second_point = lines.nearest_points_of_lines(p, a, q, b)
    np.testing.assert_allclose(np.cross(first_point - p, a), 0, atol=1e-12)
    np.testing.assert_allclose(np.cross(second_point - q, b), 0, atol=1e-12)
    np.testing.assert_allclose([(second_point - first_point) @ a, (second_point - first_point) @ b], 0, atol=1e-12)
    assert abs(lines.line_distance(p, a, q, b) - abs(np.cross(a, b) @ (q - p)) / length(np.cross(a, b))) < 1e-12
    assert abs(lines.line_distance(p, a, q, a) - length(np.cross(a, q - p))) < 1e-12


@given(seed=seeds)
def test_lines_through_a_point_intersect_there(seed):
    rng = np.random.default_rng(seed)
    point = rng.uniform(-5, 5, 3)
    h = np.array([direction(rng) for _ in range(3)])
    h[1] = apart(rng, h[0])
    meeting, miss = lines.closest_point_to_lines(point + h * rng.uniform(-2, 2, (3, 1)), h)
    np.testing.assert_allclose(meeting, point, atol=1e-12)
    assert miss < 1e-12


@pytest.mark.parametrize("names", [("shoulder", "elbow"), ("arm.shoulder", "arm.elbow")])
def test_a_joint_constraint_excludes_a_closed_form_also_if_joint_names_contain_dots(names):
    builder = Builder("coupled arm")
    builder.revolute(names[0], "base", "upper")
    builder.revolute(names[1], "upper", "lower", at=(1, 0, 0))
    builder.fixed("wrist", "lower", "tool", at=(1, 0, 0))
    builder.joint_constraint("ratio", {names[0]: 1.0, names[1]: -2.5})
    text = builder.build().explain("tool")
    assert f"oint '{names[0]}' is part of the joint constraint 'ratio'" in text
    assert "So it has a closed form" not in text
