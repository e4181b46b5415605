"""Mobility by count and by rank."""

from __future__ import annotations

import math

import numpy as np
import pytest
from special_loops import planar_four_bar as four_bar

from mechanik import Builder, mobility
from mechanik.errors import InvalidArgument
from mechanik.model.mobility import closure_jacobian


def test_an_open_tree_has_all_its_dofs():
    builder = Builder()
    builder.free("base", "world", "body")
    builder.spherical("hip", "body", "leg")
    result = mobility(builder.build())
    assert (result.tree_dof, result.dof, result.gruebler, result.redundant_constraints) == (9, 9, 9, 0)


@pytest.mark.parametrize(("kind", "count"), [("pin", -2), ("ball", 0), (["Z", "EX", "EY", "EZ"], 1)])
def test_a_planar_four_bar_has_one_dof_whatever_the_count_gives(kind, count):
    result = mobility(four_bar(kind))
    assert result.dof == 1
    assert result.gruebler == count
    assert result.redundant_constraints == 1 - count


def test_an_open_loop_has_no_mobility():
    mechanism = four_bar()
    mechanism.q = mechanism.q + np.array([0.1, 0, 0])
    assert mobility(mechanism).dof is None


def test_a_parallelogram_at_its_change_point_has_two_dofs():
    assert mobility(four_bar(lengths=(2, 1, 2, 1), crank=0.7)).dof == 1
    mechanism = four_bar(lengths=(2, 1, 2, 1), crank=0.7)
    mechanism.q = np.zeros(3)
    assert mobility(mechanism).dof == 2


def test_mobility_is_computed_at_any_configuration_without_moving_a_joint():
    mechanism = four_bar(lengths=(2, 1, 2, 1), crank=0.7)
    q = mechanism.q
    assert mobility(mechanism, q=np.zeros(3)).dof == 2
    assert mobility(mechanism, q=q + 0.1).dof is None
    np.testing.assert_array_equal(mechanism.q, q)


def test_a_joint_with_equal_limits_is_not_a_dof():
    mechanism = four_bar()
    knee = mechanism.joint("knee")
    knee.set_limits(knee.values, knee.values)
    result = mobility(mechanism)
    assert (result.tree_dof, result.gruebler, result.dof) == (2, -3, 0)


@pytest.mark.parametrize(
    ("kind", "dof"),
    [("weld", 0), ("pin", 1), ("ball", 3), ("slider", 1), ("universal", 2), ("cylindrical", 2), ("planar", 3)],
)
def test_a_body_with_a_closure_keeps_its_free_dofs(kind, dof):
    builder = Builder()
    builder.free("base", "world", "body", value=(0.3, -0.2, 0.5, 0.4, 0.2, -0.7))
    builder.close("hold", "body", "world", kind, at=(0.1, 0.2, 0.3), axis=(1, 1, 0))
    assert mobility(builder.build()).dof == dof


def test_the_jacobian_of_a_closure_is_the_derivative_of_its_gap():
    mechanism = four_bar("weld")
    closure = mechanism.closures["pin"]
    closure.undo()
    joint, link = closure.joint, closure.link
    closure = joint.make_closure(link, np.linalg.inv(link.world_matrix) @ joint.world_matrix)
    J, q = closure_jacobian(mechanism, closure), mechanism.q
    assert J.shape == (6, 3)
    for k in range(3):
        gaps = []
        for side in (1e-6, -1e-6):
            mechanism.q = q + side * np.eye(3)[k]
            gap = closure.gap()
            gaps.append(np.concatenate([gap.position, gap.rotation]))
        np.testing.assert_allclose(J[:, k], (gaps[0] - gaps[1]) / 2e-6, atol=1e-8)


def test_a_spherical_joint_keeps_its_dofs_at_gimbal_lock():
    builder = Builder()
    builder.spherical("j", "base", "l")
    builder.close("c", "base", "l", "ball")
    mechanism = builder.build()
    mechanism.joint("j").set_value("EY", math.pi / 2)
    assert mobility(mechanism).dof == 3


def test_a_loop_of_fixed_joints_has_no_dof():
    builder = Builder()
    builder.fixed("f", "a", "b")
    builder.close("c", "a", "b", "weld")
    result = mobility(builder.build())
    assert (result.dof, result.redundant_constraints) == (0, 6)


def test_only_mechanisms_have_mobility():
    with pytest.raises(InvalidArgument, match="four-bar"):
        mobility("four-bar")
