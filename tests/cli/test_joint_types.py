"""Names of joint types, and formulas of mimic joints."""

from __future__ import annotations

import pytest

import mechanik.model as mk
from mechanik.cli.info_command import coupling_formula, joint_type_name, q_indices

TYPES = [
    ((), None, "fixed"),
    (["EX"], (-1, 1), "revolute"),
    (["EX"], None, "continuous"),
    (["Y"], None, "prismatic"),
    (["EX", "EY", "EZ"], None, "spherical"),
    (["EX", "EY", "EZ"], ([-1, -1, -1], [1, 1, 1]), "EX EY EZ"),
    (["X", "Y", "Z", "EX", "EY", "EZ"], None, "floating"),
    (["X", "Y", "EZ"], None, "planar"),
    (["X", "Y", "EX"], None, "X Y EX"),
    (["EX", "EY"], None, "universal"),
    (["Z", "EZ"], None, "cylindrical"),
    (["X", "EZ"], None, "X EZ"),
]


@pytest.mark.parametrize(("dof", "limits", "name"), TYPES, ids=[name for *_, name in TYPES])
def test_joint_type_name_follows_from_the_dofs(dof, limits, name):
    builder = mk.Builder()
    builder.joint("j", "a", "b", dof, limits=limits)
    assert joint_type_name(builder.build().joint("j")) == name


def test_index_ranges_of_all_joints_cover_q_exactly_once():
    builder = mk.Builder()
    builder.planar("cart", "world", "cart")
    builder.spherical("neck", "cart", "head")
    builder.fixed("glue", "head", "hat")
    builder.revolute("jaw", "head", "chin")
    mechanism = builder.build()
    joint_ranges = [q_indices(mechanism, joint) for joint in mechanism.joints.values()]
    assert [k for ranges in joint_ranges for indices in ranges.values() for k in indices] == list(range(mechanism.nq))
    assert joint_ranges[1] == {mk.DoF.EX: range(3, 7)}
    assert joint_ranges[2] == {}


def test_mimic_joint_formula_is_printed():
    builder = mk.Builder()
    builder.planar("cart", "world", "cart")
    for name in ("a", "b", "c"):
        builder.revolute(name, "cart", f"link_{name}")
    builder.couple("b", "a", -2.0, -0.5)
    builder.couple("c", "cart", leader_dof="EZ")
    mechanism = builder.build()
    formulas = {name: coupling_formula(mechanism, mechanism.joint(name), mk.DoF.EZ) for name in ("a", "b", "c")}
    assert formulas == {"a": "", "b": "= -2 * a - 0.5", "c": "= cart.EZ"}
