"""Dimensions that a mechanism of the gallery cannot have are rejected with their range."""

from __future__ import annotations

import math

import pytest

import mechanik as mk
from mechanik.errors import StructureError

INVALID_CALLS = [
    ("scissor_lift", {"angle": 0.01}, "between 0.05"),
    ("scissor_lift", {"angle": 1.56}, "1.52"),
    ("delta_robot", {"angle": 2.0}, "between -0.9 and 1.6 rad"),
    ("delta_robot", {"angle": math.inf}, "angle"),
    ("snake", {"joints": 0}, "at least 1"),
    ("snake", {"joints": 2.5}, "integer"),
    ("stewart_platform", {"stroke": (0.5, 0.2)}, "shortest, longest"),
]


@pytest.mark.parametrize(("name", "dimensions", "message"), INVALID_CALLS)
def test_dimensions_that_no_closed_pose_has_are_rejected(name, dimensions, message):
    """Once an angle outside the joint limits was clamped, and the loops were open by up to 0.37 m."""
    with pytest.raises(StructureError, match=message):
        getattr(mk.gallery, name)(**dimensions)


@pytest.mark.parametrize(
    ("name", "angle"), [("scissor_lift", 0.05), ("scissor_lift", 1.52), ("delta_robot", -0.9), ("delta_robot", 1.2)]
)
def test_mechanisms_at_the_ends_of_their_range_are_closed(name, angle):
    mechanism = getattr(mk.gallery, name)(angle=angle)
    assert max(closure.gap().distance for closure in mechanism.closures.values()) < 1e-9
