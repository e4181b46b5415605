"""Joint constraints, gears and racks: errors, Jacobians, scales, and their place in the graph."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from derivatives import by_differences
from hypothesis import assume, given, settings
from random_mechanisms import random_mechanism, seeds

import mechanik as mk
from mechanik.errors import (
    CouplingError,
    DoFError,
    InvalidArgument,
    NotFinite,
    ShapeError,
    StructureError,
    UnknownName,
)
from mechanik.model.closed_form_family import match_closed_form
from mechanik.model.linearized_constraints import joint_constraint_residual
from mechanik.objectives.constraint_relations import joint_constraint_relation, joint_constraint_residuals
from mechanik.objectives.relation import evaluate_relation
from mechanik.problem.kinematic_tree import build_kinematic_tree
from mechanik.problem.residual_block import largest_gradient


def pair():
    """Two arms side by side, and a slide."""
    builder = mk.Builder()
    builder.revolute("left", "body", "left arm", at=(0, 1, 0))
    builder.revolute("right", "body", "right arm", at=(0, -1, 0))
    builder.prismatic("slide", "body", "cart")
    return builder


def random_joint_constraint(seed):
    """A mechanism of all kinds of joints, some of these coupled, and a joint constraint of some of its dofs."""
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(seed, 14)
    single = [
        (joint, dof)
        for joint in mechanism.joints.values()
        for dof in joint.dof
        if joint.children and not (dof.is_rotation and sum(joint_dof.is_rotation for joint_dof in joint.dof) == 3)
    ]
    assume(single)
    rng.shuffle(single)
    terms = {joint_and_dof: rng.uniform(-1, 1, rng.integers(1, 6)) for joint_and_dof in single[:5]}
    return mechanism, mk.JointConstraint(terms, float(rng.uniform(-1, 1)), name="cam"), rng


# ---- what it says -------------------------------------------------------------------------------


def test_the_error_is_the_sum_of_the_terms_minus_the_constant():
    mechanism = pair().build()
    left, slide = mechanism.joint("left"), mechanism.joint("slide")
    constraint = mk.JointConstraint({left: [2.0, 0.0, 1.0], slide: -3.0}, 0.25)
    left.set_values(0.5)
    slide.set_values(0.1)
    assert constraint.error() == pytest.approx(2 * 0.5 + 0.5**3 - 3 * 0.1 - 0.25, abs=1e-15)


@settings(max_examples=40)
@given(seeds)
def test_resolving_couplings_keeps_the_error(seed):
    mechanism, constraint, rng = random_joint_constraint(seed)
    relation = joint_constraint_relation(mechanism, constraint)
    for _ in range(3):
        mechanism.q = np.clip(mechanism.random(rng), -2, 2)
        there = float(evaluate_relation(mechanism, relation, mechanism.q)[0][0])
        size = 1 + sum(abs(term.value) for term in constraint.terms)
        # a follower's powers are expanded, which cancels for large offsets
        assert there == pytest.approx(constraint.error(), abs=1e-10 * size)
        assert float(joint_constraint_residuals(mechanism, relation, mechanism.q)) == pytest.approx(
            there, abs=1e-12 * size
        )


@settings(max_examples=40)
@given(seeds)
def test_the_jacobian_is_the_derivative_of_the_error(seed):
    mechanism, constraint, rng = random_joint_constraint(seed)
    mechanism.q = np.clip(mechanism.random(rng), -1.5, 1.5)
    q = mechanism.q  # limits may have moved it
    relation = joint_constraint_relation(mechanism, constraint)
    J = evaluate_relation(mechanism, relation, q)[1]
    differences = by_differences(mechanism, lambda at: evaluate_relation(mechanism, relation, at)[0], q, 1e-3)
    np.testing.assert_allclose(J, differences, atol=1e-8 * (1 + np.abs(J).max()))
    off, rates = joint_constraint_residual(mechanism, constraint, q)
    assert off * constraint.scale == pytest.approx(constraint.error(), abs=1e-10 * (1 + np.abs(J).max()))
    np.testing.assert_allclose(rates * constraint.scale, J[0], atol=1e-12 * (1 + np.abs(J).max()))


CAMS = [0.0, 1.0, 1e6, 1e8, 1e9, 1e10, 1e12]


def cam(factor, limits=None):
    """cam = 30 lift + factor lift^5, beside a four-bar."""
    builder = mk.Builder()
    builder.revolute("cam", "ground", "disc")
    builder.prismatic("lift", "ground", "follower", axis="y", limits=limits)
    builder.joint_constraint("profile", {"cam": 1.0, "lift": [-30.0, 0, 0, 0, -factor]})
    builder.revolute("crank", "ground", "arm", value=0.4)
    builder.revolute("knee", "arm", "coupler", at=(0.3, 0, 0), value=0.9)
    builder.revolute("rocker", "ground", "rocker", at=(0.8, 0.2, 0), value=1.2)
    builder.close("pin", "coupler", "rocker", "pin", at=(0.5, 0, 0))
    return builder.build()


def test_factors_of_high_powers_are_scaled_by_the_range_of_the_joint():
    assert cam(1e9, (0.0, 0.02)).joint_constraint("profile").scale < 161
    assert cam(0.0).joint_constraint("profile").scale == 30
    assert cam(1.0).joint_constraint("profile").scale == 30


@pytest.mark.parametrize("limits", [None, (0.0, 0.02), (-1.0, 1.0)])
@pytest.mark.parametrize("factor", CAMS)
def test_the_factor_of_a_high_power_does_not_hide_other_terms_from_the_structure(factor, limits):
    mechanism = cam(factor, limits)
    mechanism.q = mechanism.assemble().q
    analysis = mk.structure(mechanism)
    assert (analysis.mobility.dof, analysis.generic_dof, analysis.inputs) == (2, 2, ("cam", "crank"))
    lift = mechanism.joint("lift").values[0]
    rate = mechanism.closed_jacobian("follower", ["cam"]).matrix[1, 0]
    assert rate == pytest.approx(1 / (30 + 5 * factor * lift**4), rel=1e-9)


def test_a_small_factor_is_not_ignored_beside_a_large_one_of_another_power():
    mechanism = cam(0.0)
    lift = mechanism.joint("lift")
    constraint = mk.JointConstraint({mechanism.joint("cam"): 1.0, lift: [1e-6, 0, 0, 0, 1e9]})
    assert constraint.resolve_couplings()[0][lift, lift.dof[0]][0] == 1e-6


@settings(max_examples=40)
@given(seeds)
def test_solvers_scale_a_joint_constraint_like_its_own_scale(seed):
    mechanism, constraint, _ = random_joint_constraint(seed)
    assume(constraint.resolve_couplings()[0])
    skeleton = build_kinematic_tree(mechanism)
    assert largest_gradient(joint_constraint_relation(mechanism, constraint), skeleton.limits) == pytest.approx(
        constraint.scale, rel=1e-12
    )


def test_a_joint_constraint_that_repeats_a_coupling_constrains_no_dof():
    mechanism = pair().build()
    left, right = mechanism.joint("left"), mechanism.joint("right")
    right.mimic(left, -0.3, 0.7)
    factors, constant = mk.JointConstraint({right: 1.0, left: 0.3}, 0.7).resolve_couplings()
    assert factors == {}
    assert abs(constant) < 1e-15


# ---- whom it binds ------------------------------------------------------------------------------


def test_joint_constraints_of_a_mechanism_are_in_order_of_creation():
    mechanism = pair().build()
    left, right = mechanism.joint("left"), mechanism.joint("right")
    first, second = mk.JointConstraint({left: 1.0}, name="stop"), mk.JointConstraint({right: 1.0, left: 1.0})
    assert list(mechanism.joint_constraints.items()) == [("stop", first), ("constraint1", second)]
    assert mechanism.joint_constraint("stop") is first
    assert left.joint_constraints == (first, second)
    assert "2 joint constraints" in repr(mechanism)
    with pytest.raises(UnknownName, match="Did you mean 'stop'"):
        mechanism.joint_constraint("stopp")


def test_adding_and_undoing_a_joint_constraint_changes_the_revision():
    mechanism = pair().build()
    before = mechanism.revision
    constraint = mk.JointConstraint({mechanism.joint("left"): 1.0})
    with_constraint = mechanism.revision
    constraint.undo()
    assert len({before, with_constraint, mechanism.revision}) == 3
    assert not mechanism.joint_constraints
    with pytest.raises(CouplingError, match="already undone"):
        constraint.undo()


def test_replacing_the_dofs_of_a_joint_undoes_its_joint_constraints():
    mechanism = pair().build()
    mk.JointConstraint({mechanism.joint("left"): 1.0, mechanism.joint("right"): 1.0})
    mechanism.joint("left").set_dof("X")
    assert not mechanism.joint_constraints
    assert mechanism.joint("right").joint_constraints == ()


def test_a_joint_constraint_connects_trees():
    first_root, second_root = mk.Link("one"), mk.Link("other")
    joints = []
    for root in (first_root, second_root):
        joint, link = mk.Joint(f"{root.name} joint", dof="EZ"), mk.Link(f"{root.name} arm")
        root.add_child(joint)
        joint.add_child(link)
        joints.append(joint)
    mechanism = mk.Mechanism(first_root)
    assert mechanism.roots == (first_root,)
    constraint = mk.JointConstraint({joints[0]: 1.0, joints[1]: 1.0})
    assert mechanism.roots == (first_root, second_root)
    constraint.undo()
    assert mechanism.roots == (first_root,)


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda mechanism: pickle.loads(pickle.dumps(mechanism))], ids=["copy", "pickle"]
)
def test_copies_have_joint_constraints_between_their_own_joints(again):
    builder = pair()
    builder.joint_constraint("cam", {"left": [1.0, 0.5], "slide": -2.0}, 0.3)
    mechanism = builder.build()
    mk.JointConstraint({mechanism.joint("right"): 1.0})
    twin = again(mechanism)
    assert list(twin.joint_constraints) == ["cam", "constraint1"]
    assert all(
        joint is twin.joints[joint.name]
        for constraint in twin.joint_constraints.values()
        for joint in constraint.joints
    )
    mechanism.joint("left").set_values(1.0)
    assert twin.joint_constraint("cam").error() == pytest.approx(-0.3)
    twin.joint("left").set_values(1.0)
    assert twin.joint_constraint("cam").error() == mechanism.joint_constraint("cam").error() == pytest.approx(1.2)


def test_chains_that_share_a_joint_constraint_are_joined():
    builder = mk.Builder()
    for side in ("left", "right"):
        builder.revolute(side, "body", f"{side} arm", at=(0, 1 if side == "left" else -1, 0))
        builder.goal(f"{side} goal", f"{side} arm")
    mechanism = builder.build()
    assert len(mechanism.chains()) == 2
    constraint = mk.JointConstraint({mechanism.joint("left"): 1.0, mechanism.joint("right"): 1.0})
    (chain,) = mechanism.chains()
    assert chain.joint_constraints == (constraint,)
    assert len(chain.closures) == 2
    assert len(chain.joints) == 2


# ---- mobility -----------------------------------------------------------------------------------


def test_a_joint_constraint_removes_a_dof_and_a_redundant_one_does_not():
    mechanism = pair().build()
    left, right, slide = mechanism.joints.values()
    mk.JointConstraint({left: 1.0, right: 1.0})
    mobility = mk.mobility(mechanism)
    assert (
        mobility.tree_dof,
        mobility.constraints,
        mobility.gruebler,
        mobility.dof,
        mobility.redundant_constraints,
    ) == (
        3,
        1,
        2,
        2,
        0,
    )
    mk.JointConstraint({left: 100.0, right: 100.0})
    mobility = mk.mobility(mechanism)
    assert (mobility.gruebler, mobility.dof, mobility.redundant_constraints) == (1, 2, 1)
    mk.JointConstraint({slide: [0.0, 1.0]})  # at zero its slope is none, as at a dead point
    assert mk.mobility(mechanism).dof == 2
    left.set_values(0.1)
    assert mk.mobility(mechanism).dof is None


def test_a_chain_with_a_joint_constraint_has_no_closed_form():
    mechanism = mk.gallery.ur5()
    name, joints = list(mechanism.links)[-1], list(mechanism.joints.values())
    assert match_closed_form(mechanism, name)
    moving = [joint for joint in joints if joint.dof]
    mk.JointConstraint({moving[0]: 1.0, moving[1]: 1.0}, name="belt")
    match = match_closed_form(mechanism, name)
    assert not match
    assert "part of the joint constraint 'belt'" in match.reasons[0]


# ---- the builder --------------------------------------------------------------------------------


def test_gears_rotate_by_their_teeth_and_internal_gears_in_the_same_direction():
    builder = pair()
    coupling = builder.gear("right", "left", teeth=(60, 20), offset=0.1)  # the larger wheel turns less
    assert (coupling.ratio, coupling.offset) == (-20 / 60, 0.1)
    coupling.undo()
    assert builder.gear("right", "left", teeth=(60, 20), internal=True).ratio == 20 / 60


def test_a_rack_moves_by_the_radius_of_its_pinion():
    builder = pair()
    coupling = builder.rack("slide", "left", radius=0.02, offset=0.3)
    builder.build().joint("left").set_values(2.0)
    assert coupling.mimic.value("Z") == pytest.approx(0.02 * 2.0 + 0.3, abs=1e-15)


def test_the_builder_accepts_dofs_by_name():
    builder = mk.Builder()
    builder.planar("base", "world", "body")
    builder.revolute("turn", "body", "head")
    constraint = builder.joint_constraint("cam", {"base.X": [1.0, 2.0], "turn": -1.0}, 0.5)
    mechanism = builder.build()
    assert [(term.joint.name, term.dof.name, term.coefficients) for term in constraint.terms] == [
        ("base", "X", (1.0, 2.0)),
        ("turn", "EZ", (-1.0,)),
    ]
    assert mechanism.joint_constraint("cam") is constraint


@pytest.mark.parametrize(
    ("make_one", "error", "text"),
    [
        (lambda b: b.gear("slide", "left", teeth=(1, 2)), DoFError, "'slide'> must be revolute"),
        (lambda b: b.gear("right", "left", teeth=(0, 2)), ShapeError, "two positive numbers"),
        (lambda b: b.gear("right", "left", teeth=(1, 2, 3)), ShapeError, "must have 2 numbers"),
        (lambda b: b.gear("rigth", "left", teeth=(1, 2)), UnknownName, "Did you mean 'right'"),
        (lambda b: b.rack("right", "left", radius=0.1), DoFError, "'right'> must be prismatic"),
        (lambda b: b.rack("slide", "left", radius=0.0), ShapeError, "is zero; it must be positive"),
        (lambda b: b.joint_constraint("a", {"lift": 1.0}), UnknownName, "Did you mean 'left'"),
        (lambda b: b.joint_constraint("a", {"left.X": 1.0}), DoFError, "<joint 'left'> has no dof X"),
        (lambda b: b.joint_constraint("a", {"left": 1.0, "left.EZ": 1.0}), CouplingError, "twice"),
        (lambda b: b.joint_constraint("a", {}), CouplingError, "has no effect"),
        (lambda b: b.joint_constraint("a", {"left": 0.0, "right": [0.0, 0.0]}), CouplingError, "has no effect"),
        (lambda b: b.joint_constraint("a", {"left": [[1.0]]}), ShapeError, r"array of shape \(1, 1\)"),
        (lambda b: b.joint_constraint("a", {"left": "much"}), ShapeError, "a number or a list of numbers, not 'much'"),
        (
            lambda b: b.joint_constraint("a", {"left": np.inf}),
            NotFinite,
            "a coefficient of <joint 'left'> in <joint constraint 'a'> is inf",
        ),
        (
            lambda b: b.joint_constraint("a", {"left": 1.0}, np.nan),
            NotFinite,
            "constant of <joint constraint 'a'> is nan",
        ),
        (lambda b: b.joint_constraint("a", ["left"]), ShapeError, "must be a mapping such as"),
    ],
)
def test_invalid_gears_racks_and_joint_constraints_are_rejected_without_change(make_one, error, text):
    builder = pair()
    mechanism = builder.build()
    before = mechanism.revision
    with pytest.raises(error, match=text):
        make_one(builder)
    assert mechanism.revision == before
    assert not mechanism.joint_constraints


def test_two_joint_constraints_of_the_same_name_are_rejected():
    builder = pair()
    builder.joint_constraint("cam", {"left": 1.0})
    with pytest.raises(StructureError, match="two joint constraints are called 'cam'"):
        builder.joint_constraint("cam", {"right": 1.0})
    mechanism = builder.build()
    mk.JointConstraint({mechanism.joint("right"): 1.0}, name="cam")
    with pytest.raises(StructureError, match="two joint constraints are called 'cam'"):
        _ = mechanism.joint_constraints


def test_invalid_terms_of_a_joint_constraint_are_rejected_with_advice():
    mechanism = mk.gallery.four_bar()
    closing = next(iter(mechanism.closures.values())).joint
    tree_joint = next(joint for joint in mechanism.joints.values() if joint.dof and not joint.is_closure)
    with pytest.raises(CouplingError, match=r"closes a loop.*close the loop by another joint"):
        mk.JointConstraint({closing: 1.0, tree_joint: 1.0})
    ball = mk.Joint("ball", dof=("EX", "EY", "EZ"))
    with pytest.raises(CouplingError, match="three revolute joints"):
        mk.JointConstraint({(ball, "EX"): 1.0})
    with pytest.raises(DoFError, match="has 3 dofs, not 1"):
        mk.JointConstraint({ball: 1.0})
    with pytest.raises(InvalidArgument, match="must be a joint"):
        mk.JointConstraint({"elbow": 1.0})
    assert not mechanism.joint_constraints


def test_a_joint_with_a_joint_constraint_cannot_close_a_loop():
    joint, link = mk.Joint("pin", dof="EZ"), mk.Link("link")
    constraint = mk.JointConstraint({joint: 1.0}, name="cam")
    with pytest.raises(StructureError, match=r"part of <joint constraint 'cam'>.*undo the constraint first"):
        joint.make_closure(link)
    constraint.undo()
    joint.make_closure(link)


def test_a_joint_constraint_on_a_joint_without_child_is_rejected():
    builder = pair()
    mechanism = builder.build()
    loose = mk.Joint("loose", dof="EZ")
    mechanism.link("body").add_child(loose)
    mk.JointConstraint({loose: 1.0, mechanism.joint("left"): 1.0}, name="cam")
    message = "<joint constraint 'cam'> contains <joint 'loose'>, which has no child link"
    with pytest.raises(StructureError, match=message):
        mk.Solver(mechanism, mk.PositionGoal("left arm", (1, 0, 0)))
