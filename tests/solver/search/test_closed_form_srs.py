"""The elbow angle of S-R-S arms: its definition, and that it is the only redundant dof."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from random_arms import random_arm
from random_mechanisms import seeds

from mechanik import gallery
from mechanik.solver.search.closed_form import closed_form

LINK = "iiwa_link_ee"
SHOULDER, ELBOW, WRIST = (0.0, 0.0, 0.36), (0.0, 0.0, 0.78), (0.0, 0.0, 1.18)
"""Of the iiwa at zero, m."""


def iiwa():
    arm = gallery.iiwa14()
    return arm, closed_form(arm, LINK)


def points(arm, q):
    """Shoulder, elbow and wrist at q, (..., 3) each, from links that carry them."""
    carried = []
    for link, at_zero in (("iiwa_link_1", SHOULDER), ("iiwa_link_3", ELBOW), ("iiwa_link_5", WRIST)):
        p_link = np.linalg.inv(arm.pose(link, np.zeros(7))) @ [*at_zero, 1]
        carried.append((arm.pose(link, q) @ p_link)[..., :3])
    return carried


def test_the_elbow_angle_is_measured_from_upright_about_the_line_from_shoulder_to_wrist():
    arm, form = iiwa()
    for q in arm.random(np.random.default_rng(0), 100):
        shoulder, elbow, wrist = points(arm, q)
        along = (wrist - shoulder) / np.linalg.norm(wrist - shoulder)
        out, up = (v - along * (along @ v) for v in (elbow - shoulder, np.array([0.0, 0.0, 1.0])))
        angle = np.arctan2(along @ np.cross(up, out), up @ out)
        assert abs(np.exp(1j * form.elbow_angle(q)) - np.exp(1j * angle)) < 1e-9


@pytest.mark.parametrize("angle", [0.0, 1.0, -2.5, np.pi])
def test_all_eight_branches_have_the_requested_elbow_angle(angle):
    arm, form = iiwa()
    for q in arm.random(np.random.default_rng(1), 20):
        branches = form.branches(arm.pose(LINK, q), q, elbow=angle, within_limits=False)
        assert len(branches) == 8
        np.testing.assert_allclose(np.exp(1j * form.elbow_angle(branches)), np.exp(1j * angle), atol=1e-8)
        elbows = points(arm, branches)[1]
        np.testing.assert_allclose(elbows, np.tile(elbows[0], (8, 1)), atol=1e-9)


@settings(max_examples=30)
@given(seed=seeds)
def test_an_elbow_rotated_about_the_line_is_reached_by_its_angle_in_any_s_r_s_arm(seed):
    arm = random_arm(seed, "S-R-S")
    form = closed_form(arm, "tool")
    rng = np.random.default_rng(seed)
    q, angle = rng.uniform(-np.pi, np.pi, (20, 7)), rng.uniform(-np.pi, np.pi, 20)
    angles, exists = form.solve_all(arm.pose("tool", q), elbow=angle)
    wanted = np.broadcast_to(angle[:, None], exists.shape)[exists]
    np.testing.assert_allclose(np.exp(1j * form.elbow_angle(angles[exists])), np.exp(1j * wanted), atol=1e-6)


def test_elbow_angles_broadcast_against_targets():
    arm, form = iiwa()
    X = arm.pose(LINK, arm.random(np.random.default_rng(2), 4))
    assert form.solve_all(X, elbow=np.zeros(4))[0].shape == (4, 8, 7)
    assert form.solve_all(X[0], elbow=np.zeros(6))[0].shape == (6, 8, 7)
    assert form.solve_all(X[:, None], elbow=np.zeros(6))[0].shape == (4, 6, 8, 7)
    assert form.elbow_angle(np.zeros((2, 3, 7))).shape == (2, 3)


def test_without_an_angle_the_elbow_angle_of_q0_is_retained():
    arm, form = iiwa()
    rng = np.random.default_rng(3)
    for q, q0 in zip(arm.random(rng, 20), arm.random(rng, 20), strict=True):
        branches = form.branches(arm.pose(LINK, q), q0, within_limits=False)
        np.testing.assert_allclose(
            np.exp(1j * form.elbow_angle(branches)), np.exp(1j * form.elbow_angle(q0)), atol=1e-7
        )


def test_a_straight_arm_keeps_its_swivel():
    """Straight up with a rotated hand: shoulder, elbow and wrist are all singular."""
    arm, form = iiwa()
    for q in ([0.4, 0, 0.3, 0, 0.2, 0, 0.1], [0.4, 0.5, 0.3, 0, 0.2, 0.7, 0.1], [0.4, 0, 0.3, -1.0, 0.2, 0, 0.1]):
        np.testing.assert_allclose(form.branches(arm.pose(LINK, np.array(q)), q)[0], q, atol=1e-6)


def test_the_nearest_configuration_is_nearer_than_any_of_a_fine_scan_of_elbow_angles():
    arm, form = iiwa()
    rng = np.random.default_rng(4)
    for q, q0 in zip(arm.random(rng, 8), arm.random(rng, 8), strict=True):
        X = arm.pose(LINK, q)
        best = form.nearest(X, q0)
        assert best is not None  # since q itself is inside the limits
        assert arm.space.within_limits(best)
        assert np.abs(arm.pose(LINK, best) - X).max() < 1e-9
        fan, exists = form.solve_all(X, elbow=np.linspace(-np.pi, np.pi, 5000), near=q0)
        inside = fan[exists][arm.space.within_limits(fan[exists])]  # no limit is beyond half a turn
        assert np.linalg.norm(best - q0) <= np.linalg.norm(inside - q0, axis=-1).min() + 1e-6
