"""The graph may be edited at any time; names, q and poses are updated on the next use."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from random_mechanisms import random_joint, random_mechanism, random_pose, seeds

from mechanik import Builder, Goal, Joint, Link, Mechanism, arm_2d, gallery, trim
from mechanik.errors import CouplingError, DoFError, MechanikError, ShapeError, StructureError, UnknownName
from mechanik.model import mechanism as mechanism_module


def arm() -> Mechanism:
    builder = Builder("arm")
    builder.revolute("shoulder", "base", "upper", limits=(-2, 2))
    builder.revolute("elbow", "upper", "lower", at=(1, 0, 0))
    builder.fixed("grip", "lower", "tool", at=(1, 0, 0))
    return builder.build()


def test_an_edit_while_the_parts_are_listed_is_noticed(monkeypatch):
    """A joint that another thread added at that moment was missing until the next edit."""
    mechanism, new_joint = arm(), Joint("new")
    base, name_all = mechanism.link("base"), mechanism_module._name_all

    def name_and_edit(frames):
        names = name_all(frames)
        if new_joint.parent is None:
            base.add_child(new_joint)
        return names

    monkeypatch.setattr(mechanism_module, "_name_all", name_and_edit)
    base.name = "ground"
    assert "ground" in mechanism.links
    assert "new" in mechanism.joints


def test_every_kind_of_edit_changes_the_revision():
    mechanism = arm()
    elbow, tool = mechanism.joint("elbow"), mechanism.link("tool")
    goal = Goal("g")
    edits = [
        lambda: setattr(elbow, "position", (2, 0, 0)),
        lambda: setattr(elbow, "wxyz", (0, 1, 0, 0)),
        lambda: setattr(elbow, "axis", (0, 1, 0)),
        lambda: elbow.set_limits(-1, 1),
        lambda: elbow.set_dof(["X", "EZ"]),
        lambda: goal.make_closure(tool),
        lambda: goal.set_goal_dof(["X"]),
        lambda: setattr(goal, "axes", "world"),
        lambda: goal.closure.undo(),
        lambda: elbow.mimic(mechanism.joint("shoulder"), dof="EZ"),
        lambda: elbow.couplings[0].undo(),
        lambda: tool.add_child(Joint("new", dof="X")),
        lambda: tool.remove_child(mechanism.joint("new")),
        lambda: setattr(tool, "name", "hand"),
    ]
    for edit in edits:
        before = mechanism.revision
        edit()
        assert mechanism.revision != before


def test_moving_joints_and_goals_does_not_change_the_revision():
    mechanism = arm()
    goal = Goal("g")
    goal.make_closure(mechanism.link("tool"))
    before = mechanism.revision
    mechanism.q = [0.1, 0.2]
    mechanism.joint("elbow").set_values(0.3)
    mechanism.joint("elbow").set_targets(0.3)
    goal.position = (1, 2, 3)
    assert mechanism.revision == before


@settings(max_examples=40)
@given(seeds)
def test_after_any_edits_the_poses_are_those_of_the_graph(seed):
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(seed, 6)  # coupled branches stay in it when they are taken off
    mechanism.pose("link0", mechanism.neutral())
    for step in range(12):
        links, joints = list(mechanism.links.values()), [*mechanism.joints.values(), Joint()]
        link, joint = links[rng.integers(len(links))], joints[rng.integers(len(joints))]
        match rng.integers(5):
            case 0:
                new = random_joint(rng, f"new{step}")
                link.add_child(new)
                new.add_child(Link(f"newlink{step}", **random_pose(rng)))
            case 1 if link.parent is not None and link.parent.parent is not None and len(joints) > 4:
                link.parent.parent.remove_child(link.parent)
            case 2:
                joint.set_dof(random_joint(rng, "").dof)
            case 3:
                joint.position = rng.uniform(-1, 1, 3)
            case _:
                link.matrix = Link(**random_pose(rng)).matrix
        mechanism.q = mechanism.random(rng)
        X = mechanism.poses()
        assert len(X) == len(mechanism.links)
        for i, part in enumerate(mechanism.links.values()):
            np.testing.assert_allclose(X[i], part.world_matrix, atol=1e-12)
        fresh = Mechanism(mechanism.roots)
        np.testing.assert_array_equal(fresh.q, mechanism.q)
        np.testing.assert_array_equal(fresh.poses(), X)


def test_the_root_is_updated_if_it_gets_a_parent():
    mechanism = arm()
    mechanism.pose("tool", np.zeros(2))
    joint, base = Joint("lift", dof="Z", values=0.5), Link("floor")
    base.add_child(joint)
    joint.add_child(mechanism.link("base"))
    assert mechanism.roots == (base,)
    assert mechanism.nq == 3
    assert mechanism.pose("tool")[2, 3] == 0.5
    base.position = (0, 0, 1)
    assert mechanism.pose("tool")[2, 3] == 1.5


# ---- names and values ----------------------------------------------------------------------


def test_duplicate_names_are_rejected_on_the_next_use():
    base = Link("base")
    for _ in range(2):
        joint = Joint("same")
        base.add_child(joint)
    with pytest.raises(StructureError, match="same"):
        Mechanism(base)


def test_a_link_and_a_joint_may_share_a_name_and_the_unnamed_are_numbered():
    base, joint, link = Link("link1"), Joint("link1", dof="X"), Link()
    base.add_child(joint)
    joint.add_child(link)
    mechanism = Mechanism(base)
    assert list(mechanism.links) == ["link1", "link2"]
    assert mechanism.name_of(link) == "link2"
    with pytest.raises(StructureError, match="stranger"):
        mechanism.name_of(Link("stranger"))


def test_the_order_of_joints_in_q_is_the_order_of_their_creation():
    base = Link("base")
    late, early = Link("l1"), Link("l2")
    first, second = Joint("first", dof="X"), Joint("second", dof=["Y", "EX", "EY", "EZ"])
    for joint, link in ((second, late), (first, early)):
        base.add_child(joint)
        joint.add_child(link)
    space = Mechanism(base).space
    assert space.q_names == ("first", "second.Y", "second.qw", "second.qx", "second.qy", "second.qz")
    assert space.v_names == ("first", "second.Y", "second.EX", "second.EY", "second.EZ")


def test_values_by_name_and_q_agree():
    base = Link("base")
    joints = [Joint("one", dof="X"), Joint("two", dof=["X", "EY"]), Joint("ball", dof=["EX", "EY", "EZ"])]
    for joint in joints:
        base.add_child(joint)
        joint.add_child(Link(f"after_{joint.name}"))
    mechanism = Mechanism(base)
    values = {"one": 0.5, "two": [0.1, 0.2], "ball": (0.3, -0.2, 0.1)}
    q = mechanism.configuration(values)
    assert mechanism.q.tolist() == mechanism.neutral().tolist()
    mechanism.q = q
    for name, expected in values.items():
        np.testing.assert_allclose(mechanism.values()[name], expected, atol=1e-14)
        np.testing.assert_allclose(mechanism.values(q)[name], expected, atol=1e-14)
    assert mechanism.configuration({"two.EY": 0.9})[2] == 0.9
    for wrong, error in (
        ({"onne": 1}, UnknownName),
        ({"one": [1, 2]}, ShapeError),
        ({"two": 1}, ShapeError),
        ({"two.EY": "x"}, ShapeError),
    ):
        with pytest.raises(error):
            mechanism.configuration(wrong)
    with pytest.raises(ShapeError, match="a single configuration"):
        mechanism.q = np.stack([q, q])


def test_a_mimic_joint_may_be_named_if_its_value_agrees():
    mechanism = arm()
    mechanism.joint("elbow").mimic(mechanism.joint("shoulder"), ratio=2, offset=0.1)
    assert mechanism.nq == 1
    assert mechanism.configuration({"shoulder": 0.2, "elbow": 0.5}).tolist() == [0.2]
    assert mechanism.values(np.array([0.2])) == {"shoulder": 0.2, "elbow": 0.5}
    with pytest.raises(CouplingError, match="sets its value to"):
        mechanism.configuration({"shoulder": 0.2, "elbow": 0.7})


def test_setting_q_clamps_and_reports_it():
    mechanism = arm()
    assert mechanism.set_q([5, 0.5]) is True
    assert mechanism.q.tolist() == [2, 0.5]
    assert mechanism.set_q([1, 0.5]) is False


# ---- trimming ------------------------------------------------------------------------------


def test_trimming_removes_branches_without_moving_joints():
    mechanism = arm()
    lower = mechanism.link("lower")
    for name in ("camera", "bracket"):
        joint, link = Joint(f"{name}_mount"), Link(name)
        lower.add_child(joint)
        joint.add_child(link)
        lower = link
    wanted = Joint("wanted_mount"), Link("wanted")
    mechanism.link("upper").add_child(wanted[0])
    wanted[0].add_child(wanted[1])
    Goal("g").make_closure(wanted[1])
    assert set(trim(mechanism, keep=["tool"])) == {"camera", "bracket"}
    assert list(mechanism.links) == ["base", "upper", "lower", "tool", "wanted"]
    assert trim(mechanism) == ["tool"]
    with pytest.raises(UnknownName):
        trim(mechanism, keep=["tol"])


# ---- copies --------------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_is_equal_and_independent(copied):
    mechanism = gallery.four_bar()
    mechanism.joint("coupler_joint").set_rest_pose(0.5)
    duplicate = copied(mechanism)
    np.testing.assert_array_equal(duplicate.q, mechanism.q)
    assert duplicate.space.q_names == mechanism.space.q_names
    assert duplicate.joint("coupler_joint").rest_pose == (0.5,)
    np.testing.assert_array_equal(duplicate.configurations["home"], mechanism.configurations["home"])
    duplicate.q = np.zeros(3)
    duplicate.link("crank").name = "other"
    assert mechanism.q.any()
    assert "crank" in mechanism.links


def test_a_copy_of_a_long_arm_does_not_exhaust_the_stack():
    arm = arm_2d([0.1] * 400)
    duplicate = pickle.loads(pickle.dumps(arm))
    q = arm.random(np.random.default_rng(0))
    np.testing.assert_array_equal(duplicate.pose("tool", q), arm.pose("tool", q))
    assert copy.deepcopy(arm).nq == 400


def test_joints_added_to_a_copy_are_last_in_q():
    duplicate = pickle.loads(pickle.dumps(arm()))
    joint = Joint("new", dof="X")
    duplicate.link("tool").add_child(joint)
    joint.add_child(Link("end"))
    assert duplicate.space.q_names == ("shoulder", "elbow", "new")
    with pytest.raises(ValueError, match="read-only"):
        duplicate.link("tool").position[0] = 1


# ---- what once went wrong ------------------------------------------------------------------


def test_a_goal_whose_closure_is_undone_disappears():
    mechanism = arm()
    first = Goal("g")
    first.make_closure(mechanism.link("tool"))
    assert list(mechanism.goals) == ["g"]
    first.closure.undo()
    assert list(mechanism.goals) == []
    Goal("g").make_closure(mechanism.link("tool"))
    assert mechanism.goal("g") is not first


def test_the_parts_of_a_mechanism_do_not_depend_on_when_they_are_read():
    mechanism = arm()
    base, floor, lift = mechanism.link("base"), Link("floor"), Joint("lift", dof="Z")
    floor.add_child(lift)
    lift.add_child(base)
    assert mechanism.nq == 3
    lift.remove_child(base)
    assert list(mechanism.links) == ["base", "upper", "lower", "tool"]


def test_a_joint_without_child_has_no_entry_in_q():
    mechanism = gallery.four_bar()
    mechanism.closure("closing_joint").undo()
    assert mechanism.nq == 3
    mechanism.joint("closing_joint").add_child(Link("end"))
    assert mechanism.nq == 4


def test_named_configurations_stay_valid_after_edits():
    mechanism = arm()
    mechanism.configurations["up"] = [0.5, 0.25]
    joint = Joint("wrist", dof="EZ", lower=1, upper=2)
    mechanism.link("tool").add_child(joint)
    joint.add_child(Link("end"))
    assert mechanism.configurations["up"].tolist() == [0.5, 0.25, 1.0]
    mechanism.joint("shoulder").clear_dof()
    assert mechanism.configurations["up"].tolist() == [0.25, 1.0]
    with pytest.raises(ShapeError, match="2 numbers"):
        mechanism.configurations["short"] = [1]
    assert list(mechanism.configurations) == ["up"]
    del mechanism.configurations["up"]
    assert len(mechanism.configurations) == 0


def test_values_by_name_need_a_single_configuration():
    mechanism = arm()
    for call in (lambda q: mechanism.values(q), lambda q: mechanism.configuration({"elbow": 1}, q)):
        with pytest.raises(ShapeError, match="a single configuration"):
            call(np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="must be a mapping"):
        mechanism.configuration([1, 2])


def test_angles_of_a_spherical_joint_can_be_set_by_name():
    builder = Builder()
    builder.free("base", "world", "body")
    mechanism = builder.build()
    q = mechanism.configuration({"base.EX": 0.3, "base.Z": 2.0})
    q = mechanism.configuration({"base.EZ": -0.4}, q)
    np.testing.assert_allclose(mechanism.values(q)["base"], [0, 0, 2, 0.3, 0, -0.4], atol=1e-15)
    for wrong in ("base.z", "base.qw", "base.W"):
        with pytest.raises(UnknownName, match="dof of joint 'base'"):
            mechanism.configuration({wrong: 1.0})


def test_a_fixed_joint_has_no_value():
    with pytest.raises(DoFError, match="fixed"):
        arm().configuration({"grip": 1.0})


def test_a_mimic_dof_of_a_joint_of_several_dofs_may_be_named():
    builder = Builder()
    builder.prismatic("lead", "a", "b")
    builder.joint("two", "b", "c", ["X", "EY"])
    builder.couple("two", "lead", 2.0, dof="X")
    mechanism = builder.build()
    assert mechanism.configuration({"lead": 0.1, "two.X": 0.2}).tolist() == [0.1, 0.0]
    with pytest.raises(CouplingError, match="sets its value to"):
        mechanism.configuration({"lead": 0.1, "two.X": 0.3})


def test_dofs_with_equal_names_are_rejected():
    builder = Builder()
    builder.joint("a", "x", "y", ["X", "Y"])
    builder.prismatic("a.X", "y", "z")
    with pytest.raises(StructureError, match=r"a\.X"):
        _ = builder.build().nq


def test_q_that_is_read_is_a_copy():
    mechanism = arm()
    mechanism.q[0] = 1.0
    assert mechanism.q.tolist() == [0, 0]


def test_links_are_accepted_instead_of_names():
    mechanism = arm()
    tool = mechanism.link("tool")
    np.testing.assert_array_equal(mechanism.pose(tool), mechanism.pose("tool"))
    np.testing.assert_array_equal(mechanism.poses(links=tool)[0], mechanism.pose("tool"))
    np.testing.assert_array_equal(mechanism.poses(links="tool")[0], mechanism.pose("tool"))
    np.testing.assert_array_equal(mechanism.jacobian(tool), mechanism.jacobian("tool"))


def test_reprs_describe_the_objects():
    mechanism = gallery.four_bar()
    assert repr(mechanism) == "<mechanism 'four_bar': 4 links, 3 joints, 1 closure; nq 3, nv 3>"
    assert repr(mechanism.joint("crank_joint")) == "<joint 'crank_joint' EZ=0.6: 'ground' -> 'crank'>"
    # the values of a closing joint follow from the others; once the repr showed old ones
    assert repr(mechanism.joint("closing_joint")) == "<joint 'closing_joint' EZ: closes a loop onto <link 'rocker'>>"
    assert "'coupler' onto 'rocker', free dofs: EZ" in repr(mechanism.closure("closing_joint"))
    assert repr(Builder("b")) == "<builder of 'b': 0 links, 0 joints so far>"


@pytest.mark.parametrize(
    ("parent", "child", "options"),
    [
        ("upper", "base", {}),
        ("upper", 3, {}),
        ("lower", "hand", {"limits": (1, -1)}),
        ("upper", "hand", {"value": [1, 2]}),
        ("nowhere", "hand", {}),
        ("upper", "upper", {}),
        ("upper", "lower", {}),
    ],
)
def test_a_joint_that_a_builder_rejects_leaves_the_builder_unchanged(parent, child, options):
    """Once the joint stayed in the mechanism, without a child link."""
    builder = Builder("arm")
    builder.revolute("shoulder", "base", "upper")
    builder.revolute("elbow", "upper", "lower")
    with pytest.raises(MechanikError):
        builder.revolute("wrist", parent, child, **options)
    builder.revolute("wrist", "lower", "hand")
    mechanism = builder.build()
    assert list(mechanism.joints) == ["shoulder", "elbow", "wrist"]
    assert list(mechanism.links) == ["base", "upper", "lower", "hand"]


def test_a_goal_that_a_builder_rejects_leaves_the_builder_unchanged():
    builder = Builder("arm")
    builder.revolute("shoulder", "base", "upper")
    with pytest.raises(StructureError, match="choose another link"):
        builder.goal("hold", "upper", on="upper")
    assert not builder.build().goals


def test_a_builder_counts_goals_apart_from_joints():
    builder = Builder("arm")
    builder.revolute("shoulder", "base", "upper")
    assert repr(builder) == "<builder of 'arm': 2 links, 1 joint so far>"
    builder.goal("hold", "upper")
    assert repr(builder) == "<builder of 'arm': 2 links, 1 joint, 1 goal so far>"
