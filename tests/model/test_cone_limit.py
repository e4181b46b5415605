"""Cone limits of joints in the graph."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import DoFError, InvalidArgument, LimitsError, NotFinite
from mechanik.model.joint import Cone
from mechanik.objectives.constraint_relations import swing_angles
from mechanik.spatial import quaternion


def leg():
    builder = mk.Builder("leg")
    builder.spherical("hip", "body", "thigh", at=(0, 0, 1), axis=(1, 2, 3))
    builder.revolute("knee", "thigh", "shank", at=(0, 0, -1))
    return builder.build()


def test_a_cone_limit_is_set_read_and_removed():
    hip = leg().joint("hip")
    assert hip.cone is None
    hip.set_cone(0.5)
    assert hip.cone == Cone(0.5, "z")
    hip.set_cone(0.7, "zx")
    assert hip.cone == Cone(0.7, "xz")
    hip.set_cone(None)
    assert hip.cone is None
    hip.set_cone(0.5)
    hip.set_dof(("EX", "EY"))
    assert hip.cone is None


def test_each_change_of_a_cone_changes_the_revision_but_not_q():
    mechanism = leg()
    revisions = [mechanism.revision]
    for angle in (0.5, 0.6, None):
        mechanism.joint("hip").set_cone(angle)
        revisions.append(mechanism.revision)
    assert len(set(revisions)) == 4
    assert mechanism.nq == 5
    assert mechanism.joint("hip").has_quaternion


def test_cone_limits_do_not_count_for_mobility():
    mechanism = leg()
    mechanism.joint("hip").set_cone(0.5, "xyz")
    assert mk.mobility(mechanism).dof == 4


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda mechanism: pickle.loads(pickle.dumps(mechanism))], ids=["copy", "pickle"]
)
def test_copies_keep_cone_limits(again):
    mechanism = leg()
    mechanism.joint("hip").set_cone(0.5, "xz")
    assert again(mechanism).joint("hip").cone == Cone(0.5, "xz")


@pytest.mark.parametrize("seed", range(5))
def test_the_tilt_is_the_angle_between_the_axis_and_its_direction_at_zero(seed):
    rng = np.random.default_rng(seed)
    mechanism = leg()
    hip = mechanism.joint("hip")
    hip.set_cone(1.0)
    z = quaternion.rotate(hip.axes_wxyz, np.array([0.0, 0.0, 1.0]))
    before = mechanism.pose("thigh")[:3, :3] @ z
    q = mechanism.random(rng)
    after = mechanism.pose("thigh", q)[:3, :3] @ z
    assert swing_angles(mechanism, q)["hip"] == pytest.approx(math.acos(before @ after), abs=1e-7)


@pytest.mark.parametrize(
    ("joint", "arguments", "error", "text"),
    [
        ("hip", (0.0,), LimitsError, "between 0 and pi"),
        ("hip", (math.pi,), LimitsError, "between 0 and pi"),
        ("hip", (math.nan,), NotFinite, "angle of a cone"),
        ("hip", (0.5, ""), InvalidArgument, "letters among x, y and z"),
        ("hip", (0.5, "zw"), InvalidArgument, "letters among x, y and z"),
        ("knee", (0.5,), DoFError, "use set_limits"),
    ],
)
def test_invalid_cones_are_rejected_without_change(joint, arguments, error, text):
    mechanism = leg()
    mechanism.joint("hip").set_cone(0.3)
    before = mechanism.revision
    with pytest.raises(error, match=text):
        mechanism.joint(joint).set_cone(*arguments)
    assert mechanism.revision == before
    assert mechanism.joint("hip").cone == Cone(0.3)
