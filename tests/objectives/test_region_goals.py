"""Goals for line of sight, distances, boxes, bands and cones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from objective_mechanisms import arm

from mechanik import Pose
from mechanik.errors import (
    LimitsError,
    NotARotation,
    NotFinite,
    ObjectiveError,
    ShapeError,
    UnknownName,
)
from mechanik.objectives.region_goals import Distance, InBand, InBox, InCone, LookAt
from mechanik.spatial import quaternion

# ---- line of sight, distances -----------------------------------------------------------------


def test_look_at_residual_is_the_angle_to_the_target():
    mechanism = arm()
    goal = LookAt("hand", (2, 1, 0), axis=(5, 0, 0))
    np.testing.assert_allclose(np.linalg.norm(goal.residual(mechanism, [0.0, 0.0])), math.pi / 2)
    assert goal.with_target((3, 0, 0)).error(mechanism, [0.0, 0.0]).rotation < 1e-12
    offset_eye = LookAt("hand", (3, 1, 0), axis=(1, 0, 0), at=(0, 1, 0))
    assert offset_eye.error(mechanism, [0.0, 0.0]).rotation < 1e-12
    assert not LookAt("hand", (2, 0, 0)).residual(mechanism, [0.0, 0.0]).any()
    backwards = LookAt("hand", (0, 0, 0), axis=(-1, 0, 0), relative_to="base")
    assert backwards.error(mechanism, [0.7, 0.0]).rotation < 1e-12
    with pytest.raises(NotARotation, match="zero"):
        LookAt("hand", (0, 0, 0), axis=(0, 0, 0))
    with pytest.raises(ObjectiveError, match="relative to itself"):
        LookAt("hand", (0, 0, 0), relative_to="hand")


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_a_distance_is_equal_at_least_or_at_most(shoulder, elbow):
    mechanism, q = arm(), [shoulder, elbow]
    reach = 2 * abs(math.cos(elbow / 2))  # from the shoulder to the hand, by the law of cosines
    np.testing.assert_allclose(Distance("hand", "base", equal=1.5).residual(mechanism, q), [reach - 1.5], atol=1e-7)
    np.testing.assert_allclose(Distance("hand", at_least=1.5).residual(mechanism, q), [min(reach - 1.5, 0)], atol=1e-7)
    np.testing.assert_allclose(Distance("hand", at_most=0.5).residual(mechanism, q), [max(reach - 0.5, 0)], atol=1e-7)
    both = Distance("hand", at_least=0.5, at_most=1.5)
    np.testing.assert_allclose(both.residual(mechanism, q), [reach - np.clip(reach, 0.5, 1.5)], atol=1e-7)


def test_distance_zero_has_three_rows():
    objective = Distance("hand", equal=0.0, other_at=(2, 0, 0))
    assert objective.residual(arm(), [0.0, 0.0]).tolist() == [0, 0, 0]
    assert len(objective.with_target(0.5).residual(arm(), [0.0, 0.0])) == 1


def test_wrong_distances_are_refused():
    with pytest.raises(ObjectiveError, match="negative"):
        Distance("hand", equal=-1)
    with pytest.raises(ObjectiveError, match="either equal="):
        Distance("hand")
    with pytest.raises(ObjectiveError, match="either equal="):
        Distance("hand", equal=1, at_most=2)
    with pytest.raises(LimitsError, match="at_least of Distance is 2 m"):
        Distance("hand", at_least=2, at_most=1)
    with pytest.raises(ObjectiveError, match="distance is constant"):
        Distance("hand", "hand", equal=1)
    with pytest.raises(ObjectiveError, match="two bounds"):
        Distance("hand", at_least=1, at_most=2).with_target(3)
    with pytest.raises(NotFinite):
        Distance("hand", equal=math.nan)
    with pytest.raises(UnknownName):
        Distance("hand", "bas", equal=1).relations(arm())


# ---- boxes, bands, cones ----------------------------------------------------------------------


def test_in_box_residual_is_the_violation_of_the_bounds():
    mechanism = arm()
    box = InBox("hand", (-1, -1, -math.inf), (1, 0.5, math.inf))
    assert box.residual(mechanism, [0.0, 0.0]).tolist() == [1, 0]
    np.testing.assert_allclose(box.residual(mechanism, [math.pi / 2, 0]), [0, 1.5], atol=1e-12)
    assert box.with_target((2, 0, 0)).residual(mechanism, [0.0, 0.0]).tolist() == [0, 0]
    rotated = Pose(wxyz=quaternion.exp([0, 0, math.pi / 2]))
    np.testing.assert_allclose(box.with_target(rotated).residual(mechanism, [0.0, 0.0]), [0, -1], atol=1e-12)
    carried = InBox("hand", (0, 0, 0), (1, 1, 1), relative_to="upper")
    np.testing.assert_allclose(carried.residual(mechanism, [1.0, 0.0]), [1, 0, 0], atol=1e-12)


def test_empty_boxes_and_bands_are_refused():
    with pytest.raises(LimitsError, match=r"box .* is empty"):
        InBox("hand", (0, 0, 0), (1, -1, 1))
    with pytest.raises(ObjectiveError, match="no finite bound"):
        InBox("hand", [-math.inf] * 3, [math.inf] * 3)
    with pytest.raises(NotFinite):
        InBox("hand", (0, 0, math.nan), (1, 1, 1))
    with pytest.raises(ShapeError):
        InBox("hand", (0, 0), (1, 1, 1))
    with pytest.raises(LimitsError, match=r"band .* is empty"):
        InBand("hand", "z", 1, 0)
    with pytest.raises(ObjectiveError, match="lower or upper"):
        InBand("hand", "z")
    with pytest.raises(UnknownName, match="coordinate"):
        InBand("hand", "height", 0)
    with pytest.raises(ObjectiveError, match="itself"):
        InBand("hand", "z", 0, relative_to="hand")


def test_in_band_residual_is_the_violation_of_one_coordinate():
    mechanism = arm()
    assert InBand("hand", "x", upper=1.5).residual(mechanism, [0.0, 0.0]).tolist() == [0.5]
    assert InBand("hand", "x", lower=1.5).residual(mechanism, [0.0, 0.0]).tolist() == [0]
    np.testing.assert_allclose(InBand("hand", "rz", -0.1, 0.1).residual(mechanism, [0.2, 0.3]), [0.4])
    assert InBand("hand", "rz", -0.1, 0.1).error(mechanism, [0.2, 0.3]).position == 0
    assert InBand("hand", "x", upper=1.5, at=(0.5, 0, 0)).with_target((1, 0, 0)).residual(
        mechanism, [0.0, 0.0]
    ).tolist() == [0]


@given(st.floats(-3, 3), st.floats(0.1, 3))
def test_in_cone_residual_is_zero_within_the_angle(shoulder, angle):
    cone = InCone("hand", (2, 0, 0), (0, 3, 0), angle)
    violation = min(math.cos(math.pi / 2 - shoulder) - math.cos(angle), 0)
    np.testing.assert_allclose(cone.residual(arm(), [shoulder, 0.0]), [violation], atol=1e-12)
    assert not cone.with_target((math.cos(shoulder), math.sin(shoulder), 0)).residual(arm(), [shoulder, 0.0]).any()


@pytest.mark.parametrize("angle", [0, -1, math.pi, 4])
def test_cone_angles_out_of_range_are_refused(angle):
    with pytest.raises(LimitsError, match="between"):
        InCone("hand", (1, 0, 0), (1, 0, 0), angle)
