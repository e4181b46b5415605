"""Roots of connected trees, and independent chains that are solved together."""

from __future__ import annotations

import pytest

from mechanik import Builder, Goal, Joint, Link, Mechanism, find_roots, independent_chains, save_rest_pose
from mechanik.errors import InvalidArgument


def arm(name: str, joints: int, dof="EZ") -> tuple[Link, Link]:
    """A serial arm: its base and its tip."""
    base = tip = Link(f"{name}0")
    for i in range(joints):
        joint, link = Joint(f"{name}_j{i}", dof=dof, position=(1, 0, 0)), Link(f"{name}{i + 1}")
        tip.add_child(joint)
        joint.add_child(link)
        tip = link
    return base, tip


def want(link: Link, name: str) -> Goal:
    goal = Goal(name)
    goal.make_closure(link)
    return goal


def names(chain) -> tuple[list[str], list[str]]:
    return [closure.name for closure in chain.closures], [joint.name for joint in chain.joints]


def test_roots_are_found_from_any_frame_and_through_closures_in_both_directions():
    base, tip = arm("a", 3)
    second_base, end = arm("b", 2)
    goal = want(tip, "goal")
    closing = Joint("closing")
    end.add_child(closing)
    closing.make_closure(tip)
    everything = {base, second_base, goal}
    for start in (base, tip, second_base, closing, goal):
        assert set(find_roots(start)) == everything
    assert find_roots([tip, base])[0] is base
    assert set(Mechanism(goal).roots) == everything


def test_find_roots_rejects_other_objects():
    with pytest.raises(InvalidArgument, match="'arm'"):
        find_roots(["arm"])


def test_a_coupling_connects_two_trees():
    a, tip_a = arm("a", 1)
    b, tip_b = arm("b", 1)
    tip_b.parent.mimic(tip_a.parent, ratio=2)
    mechanism = Mechanism(b)
    assert set(mechanism.roots) == {a, b}
    assert mechanism.nv == 1


def test_saving_the_rest_pose_reaches_all_joints():
    base, tip = arm("a", 2)
    goal = want(tip, "goal")
    tip.parent.set_values(0.5)
    save_rest_pose(goal)
    assert tip.parent.rest_pose == (0.5,)
    assert base.children[0].rest_pose == (0.0,)


def test_arms_that_share_no_joint_are_separate_chains():
    base, tip = arm("a", 2)
    second_base, end = arm("b", 2)
    want(tip, "ga")
    want(end, "gb")
    chains = Mechanism([base, second_base]).chains()
    assert [names(chain) for chain in chains] == [(["ga"], ["a_j0", "a_j1"]), (["gb"], ["b_j0", "b_j1"])]


def two_arms_on(dof) -> Mechanism:
    """Two arms on one torso, which hangs on a joint with the given freedoms; a goal for each hand."""
    base, torso = arm("torso", 1, dof)
    for side in ("left", "right"):
        shoulder, tip = arm(side, 2)
        mount = Joint(f"{side}_mount")
        torso.add_child(mount)
        mount.add_child(shoulder)
        want(tip, side)
    return Mechanism(base)


def test_a_moving_torso_joins_the_chains_of_the_arms_and_a_fixed_one_does_not():
    moving = two_arms_on("EZ").chains()
    assert len(moving) == 1
    assert set(names(moving[0])[0]) == {"left", "right"}
    assert "torso_j0" in names(moving[0])[1]
    assert len(two_arms_on(()).chains()) == 2


def test_chains_that_a_third_closure_connects_are_joined():
    """a-b and c-d look apart until b-c is seen."""
    bases = {name: arm(name, 1) for name in "abcd"}
    root = Link("root")
    for name, (base, _) in bases.items():
        mount = Joint(f"mount_{name}")
        root.add_child(mount)
        mount.add_child(base)
    for first, second in ("ab", "cd", "bc"):
        closing = Joint(f"{first}{second}")
        bases[first][1].add_child(closing)
        closing.make_closure(bases[second][1])
    (chain,) = Mechanism(root).chains()
    assert len(chain.closures) == 3
    assert {joint.name for joint in chain.joints} == {"a_j0", "b_j0", "c_j0", "d_j0"}


def test_a_joint_above_both_ends_of_a_loop_is_not_in_its_chain():
    base, torso = arm("torso", 1)
    left, right = Link("left"), Link("right")
    for link in (left, right):
        joint = Joint(f"to_{link.name}", dof="EZ")
        torso.add_child(joint)
        joint.add_child(link)
    closing = Joint("closing")
    left.add_child(closing)
    closing.make_closure(right)
    (chain,) = Mechanism(base).chains()
    assert names(chain)[1] == ["to_left", "to_right"]


def test_a_mimic_joint_adds_its_leader_to_the_chain_also_if_the_leader_is_above_both_ends():
    base, torso = arm("torso", 1)
    left, right = Link("left"), Link("right")
    for link in (left, right):
        joint = Joint(f"to_{link.name}", dof="EZ")
        torso.add_child(joint)
        joint.add_child(link)
    left.parent.mimic(torso.parent)
    closing = Joint("closing")
    left.add_child(closing)
    closing.make_closure(right)
    (chain,) = Mechanism(base).chains()
    assert names(chain)[1] == ["torso_j0", "to_right"]


def test_a_goal_on_a_moving_link_joins_both_arms():
    builder = Builder()
    builder.revolute("l", "root", "left")
    builder.revolute("r", "root", "right")
    builder.goal("meet", "left", on="right")
    (chain,) = builder.build().chains()
    assert names(chain) == (["meet"], ["l", "r"])


def test_a_partial_goal_in_world_axes_depends_on_joints_above_both_ends():
    builder = Builder()
    builder.revolute("body_joint", "base", "body", axis="x")
    builder.revolute("arm_joint", "body", "arm")
    builder.goal("g", "arm", on="body", at=(0, 1, 0), dof=["Z"], axes="world")
    (chain,) = builder.build().chains()
    assert names(chain)[1] == ["body_joint", "arm_joint"]


def test_chains_closures_and_joints_keep_the_given_order():
    base, tip_a = arm("a", 2)
    second_base, tip_b = arm("b", 2)
    closing = Joint("c3")
    tip_b.add_child(closing)
    want(tip_a, "g1")
    want(tip_b, "g2")
    closing.make_closure(tip_a)
    mechanism = Mechanism([base, second_base])
    closures = [mechanism.goal("g1").closure, mechanism.goal("g2").closure, closing.closure]
    (chain,) = independent_chains(closures)
    assert names(chain) == (["g1", "g2", "c3"], ["a_j0", "a_j1", "b_j0", "b_j1"])
