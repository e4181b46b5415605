"""Copies of a mechanism are equal and independent."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import mechanik as mk
from mechanik.formats import describe


def mechanism():
    builder = mk.Builder("four-bar with all that can be held")
    builder.revolute("crank", "ground", "bar", value=0.6)
    builder.revolute("elbow", "bar", "coupler", at=(0.5, 0, 0), value=-0.4)
    builder.revolute("foot", "ground", "rocker", at=(2, 0, 0), value=1.2)
    builder.spherical("knob", "rocker", "handle", at=(0, 1, 0))
    builder.close("pin", "coupler", "rocker", "pin", at=(1.8, 0, 0))
    builder.joint_constraint("brake", {"crank": 1.0, "elbow": [0.5, 0.1]}, 0.3)
    builder.goal("wish", "handle", at=(1, 1, 0))
    made = builder.build()
    made.joint("crank").set_limits(-1, 4)
    made.joint("crank").set_targets(0.9)
    made.joint("elbow").set_rest_pose(0.1)
    made.extras["limits"] = {"crank": {"effort": 3.0}}
    made.configurations["home"] = made.q
    made.warnings.append("odd")
    return made


COPIES = {
    "copy()": lambda mechanism: mechanism.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda mechanism: pickle.loads(pickle.dumps(mechanism)),
}


@pytest.mark.parametrize("again", COPIES.values(), ids=COPIES)
def test_changes_of_a_copy_do_not_change_the_original(again):
    # copy.copy once shared the arrays of values: moving the copy moved the original
    original = mechanism()
    before = describe(original)
    duplicate = again(original)
    assert describe(duplicate) == before
    duplicate.q = np.concatenate([duplicate.q[:3] + 0.1, [0.6, 0.8, 0.0, 0.0]])
    crank = duplicate.joint("crank")
    crank.set_limits(0, 1)
    crank.set_targets(0.2)
    duplicate.joint("elbow").set_rest_pose(0.7)
    duplicate.joint("knob").set_cone(0.5)
    duplicate.link("bar").position = (1, 2, 3)
    duplicate.extras["limits"]["crank"]["effort"] = 5.0
    duplicate.extras["more"] = {}
    duplicate.warnings.append("odder")
    duplicate.configurations["home"] = duplicate.q
    duplicate.joint_constraint("brake").undo()
    duplicate.closure("pin").undo()
    assert describe(original) == before
    assert original.warnings == ["odd"]


def test_the_copy_of_a_copy_is_independent():
    original = mechanism()
    duplicate = original.copy()
    three = duplicate.copy()
    three.q = np.concatenate([three.q[:3] - 0.2, three.q[3:]])
    np.testing.assert_array_equal(original.q, duplicate.q)
    assert not np.allclose(duplicate.q, three.q)
