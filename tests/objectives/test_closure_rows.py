"""Closures as rows: zero where the loop is shut, with the same reading of what is free as the graph has."""

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


def stacked(mechanism, relations, q):
    found = [evaluate_relation(mechanism, relation, q) for relation in relations]
    rows = [band_violation(relation, row) for relation, (row, _) in zip(relations, found, strict=True)]
    return np.concatenate([np.zeros(0), *rows]), np.concatenate([np.zeros((0, mechanism.nv)), *(J for _, J in found)])


def shut_closure(seed, joints=8):
    """A random mechanism with a loop of random freedoms, shut where the mechanism stands."""
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
def test_rows_are_zero_where_a_loop_is_shut(seed):
    mechanism, closure, _ = shut_closure(seed)
    assert closure.gap().is_closed(1e-11)
    rows, _ = stacked(mechanism, closure_relations(mechanism, closure), mechanism.q)
    assert len(rows) == len(closure.constrained_dof)
    np.testing.assert_allclose(rows, 0, atol=1e-11)


@given(seeds, st.sampled_from([1e-4, 1e-2, 1.0]))
def test_rows_are_zero_exactly_where_the_gap_is(seed, away):
    mechanism, closure, rng = shut_closure(seed)
    mechanism.q = mechanism.clamp(mechanism.integrate(mechanism.q, away * rng.standard_normal(mechanism.nv)))
    rows, _ = stacked(mechanism, closure_relations(mechanism, closure), mechanism.q)
    open_by = np.abs(rows).max(initial=0.0)
    gap = max(closure.gap().distance, closure.gap().angle)
    assume(not 1e-11 < gap < 1e-8)
    assert (open_by < 1e-10) == (gap < 1e-10)


@given(seeds)
def test_the_rows_of_a_shut_loop_take_away_what_mobility_counts(seed):
    mechanism, closure, _ = shut_closure(seed)
    _, ours = stacked(mechanism, closure_relations(mechanism, closure), mechanism.q)
    theirs = closure_jacobian(mechanism, closure)
    assert ours.shape == theirs.shape
    if not theirs.size:
        return

    def rank(J):
        return int((np.linalg.svd(J, compute_uv=False) > 1e-7).sum())

    assert rank(ours) == rank(theirs) == rank(np.concatenate([ours, theirs]))


@pytest.mark.parametrize("kind", ["weld", "pin", "ball", "slider", "universal", "cylindrical", "planar"])
def test_a_closure_by_name_has_as_many_rows_as_it_takes_away(kind):
    builder = Builder()
    builder.free("base", "world", "body", value=(0.3, -0.2, 0.5, 0.4, 0.2, -0.7))
    closure = builder.close("hold", "body", "world", kind, at=(0.1, 0.2, 0.3), axis=(1, 1, 0))
    mechanism = builder.build()
    rows, J = stacked(mechanism, closure_relations(mechanism, closure), mechanism.q)
    np.testing.assert_allclose(rows, 0, atol=1e-14)
    assert np.linalg.matrix_rank(J) == len(rows) == len(closure.constrained_dof)


# ---- limits -----------------------------------------------------------------------------------


def held(dof, lower, upper, value):
    """A body afloat, held by a closure onto the world that is shut at `value`."""
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
def test_a_limit_is_kept_exactly_where_the_joint_has_no_gap(low, width, value, dof):
    mechanism, closure = held((dof,), [low], [low + width], [value])
    shut = closure.gap()
    gap = shut.angle if dof in ROTATIONS else shut.distance
    assume(not 0 < gap < 1e-6)
    rows, _ = stacked(mechanism, closure_limit_relations(mechanism, closure), mechanism.q)
    np.testing.assert_allclose(np.abs(rows).max(initial=0.0), gap, atol=1e-12)


def test_shifts_without_limits_and_turns_of_a_whole_turn_have_no_rows():
    mechanism, closure = held(("X", "EZ"), [-math.inf, -4], [math.inf, 4], [0.2, 0.1])
    assert closure_limit_relations(mechanism, closure) == ()
    mechanism, closure = held(("X", "EZ"), [-1, -math.inf], [math.inf, 0], [0.2, 0.1])
    (only,) = closure_limit_relations(mechanism, closure)
    assert (only.rows, only.lower.tolist(), only.upper.tolist()) == ((0,), [-1], [math.inf])


def test_a_goal_has_no_limits():
    builder = Builder()
    builder.free("base", "world", "body")
    goal = builder.goal("there", "body", dof=("X", "Y"))
    assert closure_limit_relations(builder.build(), goal.closure) == ()
