"""A copy of a mechanism is like it, and goes its own ways."""

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
    "copy()": lambda one: one.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
}


@pytest.mark.parametrize("again", COPIES.values(), ids=COPIES)
def test_whatever_happens_to_a_copy_the_original_stays_as_it_was(again):
    # copy.copy once shared the arrays of values: moving the copy moved the original
    original = mechanism()
    before = describe(original)
    other = again(original)
    assert describe(other) == before
    other.q = np.concatenate([other.q[:3] + 0.1, [0.6, 0.8, 0.0, 0.0]])
    crank = other.joint("crank")
    crank.set_limits(0, 1)
    crank.set_targets(0.2)
    other.joint("elbow").set_rest_pose(0.7)
    other.joint("knob").set_cone(0.5)
    other.link("bar").position = (1, 2, 3)
    other.extras["limits"]["crank"]["effort"] = 5.0
    other.extras["more"] = {}
    other.warnings.append("odder")
    other.configurations["home"] = other.q
    other.joint_constraint("brake").undo()
    other.closure("pin").undo()
    assert describe(original) == before
    assert original.warnings == ["odd"]


def test_the_copy_of_a_copy_moves_alone():
    one = mechanism()
    two = one.copy()
    three = two.copy()
    three.q = np.concatenate([three.q[:3] - 0.2, three.q[3:]])
    np.testing.assert_array_equal(one.q, two.q)
    assert not np.allclose(two.q, three.q)
