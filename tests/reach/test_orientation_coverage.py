"""Orientations: evenly spaced sets, the default choice for an arm, and the share that is reached."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mechanik as mk
from mechanik.reach import reachability
from mechanik.reach.orientation_coverage import even_directions, even_orientations
from mechanik.spatial import quaternion, rotation

UPPER, FORE, HAND = 0.5, 0.3, 0.12


def wrist_arm() -> mk.Mechanism:
    """Return an arm with a shoulder of two joints at the origin, an elbow, and a spherical wrist, all without limits.

    The wrist centre can be anywhere between |UPPER - FORE| and UPPER + FORE from the origin, and the hand can have any
    orientation there.
    """
    arm = mk.Builder("wrist arm")
    arm.revolute("yaw", "base", "a", axis="z")
    arm.revolute("pitch", "a", "b", axis="y")
    arm.revolute("elbow", "b", "c", axis="y", at=(UPPER, 0.0, 0.0))
    arm.revolute("roll", "c", "d", axis="x", at=(FORE, 0.0, 0.0))
    arm.revolute("bend", "d", "e", axis="y")
    arm.revolute("spin", "e", "f", axis="x")
    arm.fixed("hand", "f", "tool", at=(HAND, 0.0, 0.0))
    return arm.build()


@pytest.mark.parametrize("count", [1, 10, 60, 200])
def test_directions_are_spread_evenly_over_the_sphere(count):
    directions = even_directions(count)
    assert np.allclose(np.linalg.norm(directions, axis=1), 1)
    samples = np.random.default_rng(0).standard_normal((20_000, 3))
    shares = np.bincount((samples @ directions.T).argmax(axis=1), minlength=count) / len(samples)
    assert np.abs(shares * count - 1).max() < 0.35


@pytest.mark.parametrize("count", [24, 60, 200])
def test_orientations_are_spread_evenly_over_all_rotations(count):
    wxyz = even_orientations(count)
    assert abs(len(wxyz) - count) <= 0.15 * count
    samples = quaternion.normalize(np.random.default_rng(0).standard_normal((40_000, 4)))
    shares = np.bincount(np.abs(samples @ wxyz.T).argmax(axis=1), minlength=len(wxyz)) / len(samples)
    assert shares.max() < 2.5 / len(wxyz)
    assert shares.min() > 0.3 / len(wxyz)


def test_orientations_of_an_arm_with_a_spherical_wrist_have_their_closed_form():
    reach = reachability(wrist_arm(), "tool", 0.2, orientations=24, samples=2000)
    assert reach.orientation_kind == "pose"
    tool_x = quaternion.to_matrix(reach.wxyz)[:, :, 0]
    wrist = np.linalg.norm(reach.positions[:, None] - HAND * tool_x, axis=2)
    inner, outer = UPPER - FORE, UPPER + FORE
    expected = (wrist > inner) & (wrist < outer)
    clear = (np.abs(wrist - inner) > 1e-5) & (np.abs(wrist - outer) > 1e-5)
    wrong = (reach.reached != expected) & clear
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size}"
    distances = np.linalg.norm(reach.positions, axis=1)
    is_interior = (distances > inner + HAND) & (distances < outer - HAND)
    assert is_interior.sum() > 20
    assert (reach.shares[is_interior] == 1.0).all()
    assert (reach.shares[distances > outer + 0.5 * HAND] < 0.5).all()


def test_the_share_is_the_mean_over_directions():
    reach = reachability(wrist_arm(), "tool", 0.3, orientations=24, samples=2000)
    directions, shares = reach.by_direction()
    assert shares.shape == (len(reach), len(directions))
    assert len(directions) * round(len(reach.wxyz) / len(directions)) == len(reach.wxyz)
    assert np.allclose(shares.mean(axis=1), reach.shares)
    assert np.allclose(directions, even_directions(len(directions)))


def test_a_scara_is_checked_for_rotations_about_its_axis_and_reaches_all():
    reach = reachability(mk.gallery.scara(), "tool", 0.1, orientations=8)
    assert (reach.orientation_kind, len(reach.wxyz)) == ("pose", 8)
    z = quaternion.to_matrix(reach.wxyz)[:, :, 2]
    assert np.allclose(z, [0, 0, -1])
    assert (reach.shares == 1).all()


def test_orientations_of_a_planar_arm_are_limited_by_its_last_link():
    arm = mk.gallery.planar_3r((1.0, 0.8, 0.3))
    reach = reachability(arm, "tool", 0.2, orientations=16)
    x = quaternion.to_matrix(reach.wxyz)[:, :, 0]
    wrist = np.linalg.norm(reach.positions[:, None] - 0.3 * x, axis=2)
    # with the elbow on either side, limits of half a revolution restrict no position of the wrist
    clear = (np.abs(wrist - 0.2) > 1e-5) & (np.abs(wrist - 1.8) > 1e-5)
    assert ((reach.reached <= ((wrist > 0.2) & (wrist < 1.8))) | ~clear).all()
    assert (reach.shares[np.linalg.norm(reach.positions, axis=1) > 1.8 + 0.2] < 0.5).all()


def test_five_joints_are_checked_for_directions_and_two_for_nothing():
    five_joint_map = reachability(mk.gallery.zalo5(), "effector", 0.4, orientations=6)
    assert (five_joint_map.orientation_kind, len(five_joint_map.wxyz)) == ("direction", 6)
    assert 0 < five_joint_map.shares.mean() < 1
    arm = mk.gallery.zalo5()
    for k, z in enumerate(quaternion.to_matrix(five_joint_map.wxyz)[:, :, 2]):
        row = int(np.flatnonzero(five_joint_map.reached[:, k])[0])
        goals = [mk.PositionGoal("effector", five_joint_map.positions[row]), mk.AxisGoal("effector", z)]
        assert mk.solve(arm, goals, five_joint_map.q[row]).success
    two_joint_map = reachability(mk.gallery.planar_2r(), "tool", 0.3)
    assert (two_joint_map.orientation_kind, len(two_joint_map.wxyz)) == ("nothing", 0)
    assert (two_joint_map.shares == 1).all()


def test_given_orientations_are_checked_unchanged():
    half = math.sqrt(0.5)
    reach = reachability(wrist_arm(), "tool", 0.4, orientations=[[1, 0, 0, 0], [half, 0, half, 0]], samples=500)
    assert np.allclose(reach.wxyz, [[1, 0, 0, 0], [half, 0, half, 0]])
    # x of the hand points forward: the wrist centre is HAND behind it
    wrist = np.linalg.norm(reach.positions - [HAND, 0, 0], axis=1)
    assert (reach.reached[:, 0] == ((wrist > UPPER - FORE - 1e-6) & (wrist < UPPER + FORE + 1e-6))).all()


def test_orientations_of_a_stewart_platform_have_their_closed_form():
    wxyz = quaternion.exp([[0, 0, 0], [0.15, 0, 0], [0, 0, 0.4], [math.pi / 2, 0, 0]])
    region = [[-0.2, 0.0, 0.1], [0.2, 0.2, 0.6]]
    reach = reachability(mk.gallery.stewart_platform(), "platform", 0.1, orientations=wxyz, region=region)
    k = np.arange(6)
    low, high = (np.deg2rad(120 * (k // 2) + np.where(k % 2, 1, -1) * degrees) for degrees in (15, 45))
    feet = 0.20 * np.stack([np.cos(low), np.sin(low), 0 * low], axis=1)
    tops = 0.12 * np.stack([np.cos(high), np.sin(high), 0 * high], axis=1)
    home = rotation.between([0.0, 0.0, 1.0], tops - feet + np.array([0.0, 0.0, 0.3]))
    # (voxels, orientations, legs, 3): vectors of the legs; directions are in the frame of the universal joint Ry Rx
    legs = reach.positions[:, None, None] + tops @ quaternion.to_matrix(wxyz).transpose(0, 2, 1) - feet
    length = np.linalg.norm(legs, axis=-1)
    x, y, z = np.moveaxis(np.einsum("kji,vokj->voki", home, legs / length[..., None]), -1, 0)
    margins = [length - 0.2, 0.5 - length, 1.2 - np.abs(np.arcsin(y)), 1.2 - np.abs(np.arctan2(x, z))]
    margin = np.min(margins, axis=(0, -1))
    wrong = (reach.reached != (margin > 0)) & (np.abs(margin) > 1e-5)
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size}: {reach.positions[wrong.any(axis=1)]}"
    assert 0.1 < reach.reached.mean() < 0.9, "both outcomes must occur"
