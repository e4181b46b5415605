"""Relations of closures: zero where the loop is closed, with the same free dofs as in the graph."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_mechanisms import random_mechanism, random_pose, random_turn, seeds

from mechanik import Builder, Joint
from mechanik.model.dof import ALL_DOFS, ROTATIONS
from mechanik.model.mobility import closure_jacobian
from mechanik.objectives.constraint_relations import closure_limit_relations, closure_relations
from mechanik.objectives.relation import band_violation, evaluate_relation
from mechanik.spatial import inverse


def stacked_residual(mechanism, relations, q):
    evaluations = [evaluate_relation(mechanism, relation, q) for relation in relations]
    residuals = [band_violation(relation, values) for relation, (values, _) in zip(relations, evaluations, strict=True)]
    return np.concatenate([np.zeros(0), *residuals]), np.concatenate(
        [np.zeros((0, mechanism.nv)), *(J for _, J in evaluations)]
    )


def closed_loop(seed, joints=8):
    """Return a random mechanism with a loop of random dofs that is closed at its configuration."""
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(seed, joints)
    mechanism.q = mechanism.random(rng)
    links = list(mechanism.links.values())
    start, end = (links[k] for k in rng.choice(len(links), 2, replace=False))
    free = tuple(dof for dof in ALL_DOFS if rng.random() < 0.5)
    joint = Joint("loop", dof=free, axes_wxyz=random_turn(rng), **random_pose(rng))
    start.add_child(joint)
    joint.set_values(rng.uniform(-1.5, 1.5, len(free)))
    closure = joint.make_closure(end, inverse(end.world_matrix) @ joint.child_world_matrix)
    return mechanism, closure, rng


@given(seeds)
def test_residual_is_zero_where_a_loop_is_closed(seed):
    mechanism, closure, _ = closed_loop(seed)
    assert closure.gap().is_closed(1e-11)
    residual, _ = stacked_residual(mechanism, closure_relations(mechanism, closure), mechanism.q)
    assert len(residual) == len(closure.constrained_dof)
    np.testing.assert_allclose(residual, 0, atol=1e-11)


@given(seeds, st.sampled_from([1e-4, 1e-2, 1.0]))
def test_residual_is_zero_exactly_where_the_gap_is_zero(seed, step):
    mechanism, closure, rng = closed_loop(seed)
    mechanism.q = mechanism.clamp(mechanism.integrate(mechanism.q, step * rng.standard_normal(mechanism.nv)))
    residual, _ = stacked_residual(mechanism, closure_relations(mechanism, closure), mechanism.q)
    largest = np.abs(residual).max(initial=0.0)
    gap = max(closure.gap().distance, closure.gap().angle)
    assume(not 1e-11 < gap < 1e-8)
    assert (largest < 1e-10) == (gap < 1e-10)


@given(seeds)
def test_closure_jacobian_has_the_row_space_of_the_mobility_analysis(seed):
    mechanism, closure, _ = closed_loop(seed)
    _, J_relations = stacked_residual(mechanism, closure_relations(mechanism, closure), mechanism.q)
    J_mobility = closure_jacobian(mechanism, closure)
    assert J_relations.shape == J_mobility.shape
    if not J_mobility.size:
        return

    def rank(J):
        return int((np.linalg.svd(J, compute_uv=False) > 1e-7).sum())

    assert rank(J_relations) == rank(J_mobility) == rank(np.concatenate([J_relations, J_mobility]))


@pytest.mark.parametrize("kind", ["weld", "pin", "ball", "slider", "universal", "cylindrical", "planar"])
def test_every_kind_of_closure_has_one_independent_row_per_constrained_dof(kind):
    builder = Builder()
    builder.free("base", "world", "body", value=(0.3, -0.2, 0.5, 0.4, 0.2, -0.7))
    closure = builder.close("hold", "body", "world", kind, at=(0.1, 0.2, 0.3), axis=(1, 1, 0))
    mechanism = builder.build()
    residual, J = stacked_residual(mechanism, closure_relations(mechanism, closure), mechanism.q)
    np.testing.assert_allclose(residual, 0, atol=1e-14)
    assert np.linalg.matrix_rank(J) == len(residual) == len(closure.constrained_dof)


# ---- limits -----------------------------------------------------------------------------------


def body_with_closure(dof, lower, upper, value):
    """Return a floating body with a closure onto the world that is closed at `value`."""
    rng = np.random.default_rng(7)
    builder = Builder()
    builder.free("base", "world", "body")
    mechanism = builder.build()
    joint = Joint("hold", dof=dof, axes_wxyz=random_turn(rng), **random_pose(rng))
    mechanism.link("world").add_child(joint)
    joint.set_values(value)
    end = inverse(mechanism.link("body").world_matrix) @ joint.child_world_matrix
    closure = joint.make_closure(mechanism.link("body"), end)
    joint.set_limits(lower, upper)
    return mechanism, closure


@settings(max_examples=40)
@given(
    st.floats(-7, 7),
    st.floats(0, 7),
    st.floats(-math.pi, math.pi),
    st.sampled_from(ALL_DOFS),
)
def test_limit_violation_equals_the_gap_of_the_closing_joint(low, width, value, dof):
    mechanism, closure = body_with_closure((dof,), [low], [low + width], [value])
    closure_gap = closure.gap()
    gap = closure_gap.angle if dof in ROTATIONS else closure_gap.distance
    assume(not 0 < gap < 1e-6)
    residual, _ = stacked_residual(mechanism, closure_limit_relations(mechanism, closure), mechanism.q)
    np.testing.assert_allclose(np.abs(residual).max(initial=0.0), gap, atol=1e-12)


def test_unlimited_translations_and_rotations_over_a_full_revolution_have_no_limit_relation():
    mechanism, closure = body_with_closure(("X", "EZ"), [-math.inf, -4], [math.inf, 4], [0.2, 0.1])
    assert closure_limit_relations(mechanism, closure) == ()
    mechanism, closure = body_with_closure(("X", "EZ"), [-1, -math.inf], [math.inf, 0], [0.2, 0.1])
    (relation,) = closure_limit_relations(mechanism, closure)
    assert (relation.rows, relation.lower.tolist(), relation.upper.tolist()) == ((0,), [-1], [math.inf])


def test_a_goal_frame_has_no_limit_relations():
    builder = Builder()
    builder.free("base", "world", "body")
    goal = builder.goal("there", "body", dof=("X", "Y"))
    assert closure_limit_relations(builder.build(), goal.closure) == ()
