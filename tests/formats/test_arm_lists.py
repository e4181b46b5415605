"""Arm lists against products of matrices and golden data, and invalid lists."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanik.errors import FormatError
from mechanik.formats.arm_tables import arm_2d, arm_3d

GOLDEN = json.loads((Path(__file__).parents[1] / "data/seed_arms/seed_fk_golden.json").read_text())["grippy10"]

segments_2d = st.lists(st.tuples(st.floats(0, 3), st.floats(-7, 7)), min_size=1, max_size=12)
segments_3d = st.lists(st.tuples(st.floats(0, 3), st.sampled_from("xyz"), st.floats(-7, 7)), min_size=1, max_size=12)


def matrix_2d(angle, r):
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, r * c], [s, c, r * s], [0, 0, 1]])


def matrix_3d(angle, axis, length):
    c, s = math.cos(angle), math.sin(angle)
    R = {
        "x": [[1, 0, 0], [0, c, -s], [0, s, c]],
        "y": [[c, 0, s], [0, 1, 0], [-s, 0, c]],
        "z": [[c, -s, 0], [s, c, 0], [0, 0, 1]],
    }[axis]
    shift, turn = np.eye(4), np.eye(4)
    shift[2, 3] = length
    turn[:3, :3] = R
    return shift @ turn


@settings(deadline=None)  # the first example compiles
@given(segments_2d)
def test_planar_arm_is_the_product_of_the_original_matrices(segments):
    arm = arm_2d([r for r, _ in segments])
    X = arm.pose("tool", [angle for _, angle in segments])
    M = np.eye(3)
    for r, angle in segments:
        M = M @ matrix_2d(angle, r)
    flat = X[np.ix_([0, 1, 3], [0, 1, 3])]
    np.testing.assert_allclose(flat, M, rtol=0, atol=1e-12)
    np.testing.assert_allclose(X[2], [0, 0, 1, 0], rtol=0, atol=1e-15)


@settings(deadline=None)  # the first example compiles
@given(segments_3d)
def test_arm_3d_is_the_product_of_translations_along_z_and_rotations(segments):
    arm = arm_3d([length for length, _, _ in segments], [axis for _, axis, _ in segments])
    poses = arm.poses([angle for _, _, angle in segments])
    M = np.eye(4)
    np.testing.assert_array_equal(poses[0], M)
    for k, (length, axis, angle) in enumerate(segments):
        M = M @ matrix_3d(angle, axis, length)
        np.testing.assert_allclose(poses[k + 1], M, rtol=0, atol=1e-12)
    np.testing.assert_allclose(poses[-1], M, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", GOLDEN["cases"])
def test_ten_joint_arm_has_the_poses_of_the_golden_data(case):
    arm = arm_3d(GOLDEN["lengths"], GOLDEN["axes"])
    np.testing.assert_allclose(arm.pose("tool", case["q"]), case["T"], rtol=0, atol=1e-12)


def test_arms_of_500_joints_match_the_matrix_product():
    rng = np.random.default_rng(0)
    q = rng.uniform(-0.1, 0.1, 500)
    flat = arm_2d(np.full(500, 0.01), limits=(-1, 1))
    turned = np.cumsum(q)
    tip = 0.01 * np.array([np.cos(turned).sum(), np.sin(turned).sum(), 0])
    np.testing.assert_allclose(flat.pose("tool", q)[:3, 3], tip, rtol=0, atol=1e-12)
    axes = "zyx" * 167
    arm = arm_3d(np.full(500, 0.01), axes[:500])
    M = np.eye(4)
    for angle, axis in zip(q, axes, strict=False):
        M = M @ matrix_3d(angle, axis, 0.01)
    np.testing.assert_allclose(arm.pose("tool", q), M, rtol=0, atol=1e-12)
    arm.q = q
    np.testing.assert_allclose(arm.link("tool").world_matrix, M, rtol=0, atol=1e-12)


def test_links_and_joints_are_numbered_from_the_base():
    arm = arm_3d([1, 1], "zy", name="crane")
    assert arm.name == "crane"
    assert list(arm.links) == ["link0", "link1", "link2", "tool"]
    assert list(arm.joints) == ["joint1", "joint2", "tool_joint"]
    assert arm.space.q_names == ("joint1", "joint2")


def test_limits_are_given_for_all_joints_or_for_each():
    assert arm_2d([1, 1, 1], limits=(-1, 2)).space.lower.tolist() == [-1, -1, -1]
    assert arm_2d([1, 1], limits=[(-1, 2), None]).space.upper.tolist() == [2, math.inf]
    assert arm_3d([1, 1], "xy", limits=[(-1, 2), (0.5, 1)]).q.tolist() == [0, 0.5]
    assert arm_2d([1, 1], limits=np.array([-1.0, 2.0])).space.upper.tolist() == [2, 2]


BAD = {
    "empty": (lambda: arm_2d([]), "empty"),
    "empty in space": (lambda: arm_3d([], ""), "empty"),
    "not a list": (lambda: arm_2d(3.0), "list of numbers"),
    "words": (lambda: arm_2d(["long"]), "list of numbers"),
    "a word of digits": (lambda: arm_2d("123"), "list of numbers"),
    "none": (lambda: arm_2d([1, None]), "list of numbers"),
    "negative": (lambda: arm_2d([1, -2]), "length 2 is -2"),
    "nan": (lambda: arm_3d([1, math.nan], "zz"), "length 2 is nan"),
    "infinite": (lambda: arm_2d([math.inf]), "length 1 is inf"),
    "nested": (lambda: arm_2d([[1, 2], [3, 4]]), "list of numbers"),
    "fewer axes": (lambda: arm_3d([1, 1, 1], "zy"), "the same number of entries, not 3 and 2"),
    "more axes": (lambda: arm_3d([1], "zy"), "the same number of entries, not 1 and 2"),
    "unknown letter": (lambda: arm_3d([1, 1], "zw"), "axis 2 is 'w'"),
    "upper case": (lambda: arm_3d([1], "Z"), "axis 1 is 'Z'"),
    "axes a number": (lambda: arm_3d([1], 5), "letters x, y or z"),
    "limits inverted": (lambda: arm_2d([1, 1], limits=[None, (2, 1)]), "limits of joint 2: the lower limit, 2"),
    "limits inverted for all": (lambda: arm_2d([1, 1], limits=(2, 1)), "limits of joint 1: the lower limit, 2"),
    "limits nan": (lambda: arm_2d([1], limits=[(math.nan, 1)]), "joint 1.*NaN"),
    "limits too few": (lambda: arm_2d([1, 1, 1], limits=[(0, 1)]), "number of entries is 1.*3 joints"),
    "limits no pair": (lambda: arm_2d([1], limits=[(0, 1, 2)]), "joint 1 must be"),
    "limits a number": (lambda: arm_2d([1], limits=2.0), "limits must be"),
    "limits words": (lambda: arm_2d([1], limits=[("a", "b")]), "limits of joint 1 must be"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_invalid_list_raises_an_error_that_names_the_entry(call, message):
    with pytest.raises(FormatError, match=message):
        call()
