"""Poses wanted in some directions: their rows vanish where the free directions alone lead there, and nowhere else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from derivatives import by_differences
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_mechanisms import random_pose, random_turn, seeds

from mechanik import Builder, DoF, Goal, Link, Mechanism
from mechanik.errors import DoFError
from mechanik.model.dof import ALL_DOFS
from mechanik.objectives.constraint_relations import closure_relations
from mechanik.objectives.pose_rules import partial_pose_relations
from mechanik.objectives.relation import RelationKind, evaluate_relation
from mechanik.spatial import euler, from_position_wxyz, inverse, make_pose, quaternion

SUBSETS = [tuple(some) for size in range(7) for some in itertools.combinations(ALL_DOFS, size)]
WHERE = st.sampled_from([("goal", False), ("world", False), ("goal", True), ("world", True)])


def two_bodies(rng):
    """A body that carries goals, and one that should come to them, both afloat on a carrier that turns."""
    builder = Builder()
    builder.link("world", at=random_frame(rng))
    builder.spherical("swing", "world", "carrier", at=random_frame(rng))
    for name in ("goal", "hand"):
        builder.free(f"{name} base", "carrier", name, at=random_frame(rng), axis=rng.standard_normal(3))
    return builder.build()


def random_frame(rng):
    pose = random_pose(rng)
    return from_position_wxyz(pose["position"], pose["wxyz"])


def goal_on(mechanism, rng, dof, axes, on_body):
    goal = Goal("wanted", dof=dof, axes=axes, **random_pose(rng))
    if on_body:
        mechanism.link("goal").add_child(goal)
    return goal.make_closure(mechanism.link("hand"), random_frame(rng))


def rows_of(mechanism, closure, q):
    found = [evaluate_relation(mechanism, relation, q) for relation in closure_relations(mechanism, closure)]
    rows, J = zip(*found, strict=True) if found else ([np.zeros(0)], [np.zeros((0, mechanism.nv))])
    return np.concatenate(rows), np.concatenate(J)


def place_hand(mechanism, closure, rng, errors):
    """Put the hand where the free dofs, at random values, and the constrained ones, at `errors`, lead; return both."""
    values = np.where(np.isin(np.arange(6), closure.free_dof), rng.uniform(-2, 2, 6), errors)
    R = euler.matrix_from_euler(values[[5, 4, 3]], order="zyx", axes="moving")
    X_world_goal = closure.joint.world_matrix
    if closure.joint.axes == "world":
        X_world_end = make_pose(R @ X_world_goal[:3, :3], X_world_goal[:3, 3] + values[:3])
    else:
        X_world_end = X_world_goal @ make_pose(R, values[:3])
    joint = mechanism.joint("hand base")
    A = make_pose(quaternion.to_matrix(joint.axes_wxyz), np.zeros(3))
    motion = inverse(joint.world_matrix @ A) @ X_world_end @ inverse(closure.at.matrix) @ A
    zyx = euler.euler_from_matrix(motion[:3, :3], order="zyx", axes="moving")
    joint.set_values(*motion[:3, 3], *zyx[::-1])
    return values


@pytest.mark.parametrize("dof", SUBSETS, ids=lambda dof: " ".join(one.name for one in dof) or "none")
@settings(max_examples=6)
@given(seeds, WHERE)
def test_rows_vanish_where_the_free_directions_alone_lead_and_take_away_as_many_freedoms(dof, seed, where):
    rng = np.random.default_rng(seed)
    mechanism = two_bodies(rng)
    mechanism.q = mechanism.random(rng)
    closure = goal_on(mechanism, rng, dof, *where)
    place_hand(mechanism, closure, rng, np.zeros(6))
    assert closure.gap().is_closed(1e-12)
    rows, J = rows_of(mechanism, closure, mechanism.q)
    np.testing.assert_allclose(rows, 0, atol=1e-12)
    assert len(rows) == len(dof)
    sizes = np.linalg.svd(J, compute_uv=False)
    assert (sizes > 1e-3).all()


@pytest.mark.parametrize("dof", [dof for dof in SUBSETS if dof], ids=lambda dof: " ".join(one.name for one in dof))
@settings(max_examples=6)
@given(seeds, WHERE)
def test_rows_do_not_vanish_where_one_wanted_direction_is_off(dof, seed, where):
    rng = np.random.default_rng(seed)
    mechanism = two_bodies(rng)
    mechanism.q = mechanism.random(rng)
    closure = goal_on(mechanism, rng, dof, *where)
    errors = np.zeros(6)
    errors[rng.choice(dof)] = rng.choice([-0.3, 0.3, 1.2])
    values = place_hand(mechanism, closure, rng, errors)
    assume(abs(np.cos(values[DoF.EY])) > 0.05)  # at gimbal lock EX and EZ rotate about one axis and replace each other
    assert not closure.gap().is_closed(1e-3)
    assert np.abs(rows_of(mechanism, closure, mechanism.q)[0]).max() > 1e-3


@pytest.mark.parametrize("dof", SUBSETS[1:], ids=lambda dof: " ".join(one.name for one in dof))
@settings(max_examples=3)
@given(seeds, WHERE)
def test_following_the_rows_to_zero_comes_to_the_goal(dof, seed, where):
    rng = np.random.default_rng(seed)
    mechanism = two_bodies(rng)
    q = mechanism.random(rng)
    closure = goal_on(mechanism, rng, dof, *where)
    rows, J = rows_of(mechanism, closure, q)
    for _ in range(60):
        # damped while far off, so that no jump of a rotation vector matters; Newton's steps at the end
        size = float(rows @ rows)
        step = J.T @ np.linalg.solve(J @ J.T + min(size, 1.0) * 1e-2 * np.eye(len(rows)), rows)
        q = mechanism.integrate(q, -step * min(1.0, 0.5 / np.linalg.norm(step)) if size > 1e-24 else 0 * step)
        rows, J = rows_of(mechanism, closure, q)
    np.testing.assert_allclose(rows, 0, atol=1e-10)
    mechanism.q = q
    assert closure.gap().is_closed(1e-9)


@settings(max_examples=60)
@given(st.sampled_from(SUBSETS), seeds, WHERE)
def test_the_jacobian_of_a_partial_pose_is_the_derivative_of_its_rows(dof, seed, where):
    rng = np.random.default_rng(seed)
    mechanism = two_bodies(rng)
    mechanism.q = mechanism.random(rng)
    closure = goal_on(mechanism, rng, dof, *where)
    place_hand(mechanism, closure, rng, rng.uniform(-0.5, 0.5, 6))
    differences = by_differences(mechanism, lambda q: rows_of(mechanism, closure, q)[0], mechanism.q, step=1e-4)
    np.testing.assert_allclose(rows_of(mechanism, closure, mechanism.q)[1], differences, atol=1e-8)


# ---- the shape of the rows --------------------------------------------------------------------


def kinds(dof, **options):
    ends = {"a": "goal", "X_a": np.eye(4), "b": "hand", "X_b": np.eye(4)} | options
    return [(relation.kind, relation.rows) for relation in partial_pose_relations(dof, **ends)]


def test_a_whole_pose_is_one_relation_and_nothing_is_none():
    assert kinds(ALL_DOFS) == [(RelationKind.POSE, (0, 1, 2, 3, 4, 5))]
    assert kinds(()) == []
    assert kinds("Y") == [(RelationKind.POSE, (1,))]


def test_positions_go_with_the_axis_in_one_relation():
    assert kinds(("X", "Y", "Z", "EX", "EY")) == [(RelationKind.AXIS, (0, 1, 2, 3, 4))]
    # turned so that x, the free axis, is z, the directions y and z are rows 0 and 1
    assert kinds(("Y", "EY", "EZ")) == [(RelationKind.AXIS, (0, 3, 4))]
    assert kinds(("Z", "EX")) == [(RelationKind.POSE, (2,)), (RelationKind.COSINE, (0,))]


def test_axes_of_the_world_are_named_only_where_the_choice_is_partial_and_the_goal_moves():
    ends = {"a": "goal", "X_a": np.eye(4), "b": "hand", "X_b": np.eye(4), "axes": "world"}
    assert [relation.world_axes for relation in partial_pose_relations(ALL_DOFS, **ends)] == [None]
    mixed = partial_pose_relations(("X", "Y", "Z", "EX", "EY"), **ends)
    assert [(relation.rows, relation.world_axes is None) for relation in mixed] == [((0, 1, 2), True), ((3, 4), False)]
    joined = partial_pose_relations(("X", "EX"), **ends)
    assert [(relation.kind, len(relation.rows)) for relation in joined] == [(RelationKind.AXIS, 2)]
    still = partial_pose_relations(("X", "EX"), **(ends | {"a": None}))
    assert [relation.world_axes for relation in still] == [None, None]


def test_the_weight_reaches_every_row_and_arrays_are_closed():
    rng = np.random.default_rng(0)
    ends = {"a": None, "X_a": random_frame(rng), "b": "hand", "X_b": random_frame(rng)}
    for relation in partial_pose_relations(("X", "EX"), **ends, axes="world", weight=3.0):
        assert relation.weight == 3.0
        assert not relation.X_a.flags.writeable
        assert not relation.X_b.flags.writeable
    assert ends["X_a"].flags.writeable
    for relation in partial_pose_relations(("X", "EX"), **ends):
        assert not relation.X_a.flags.writeable
    assert ends["X_a"].flags.writeable


def test_directions_and_axes_that_do_not_exist_are_refused():
    ends = {"a": None, "X_a": np.eye(4), "b": "hand", "X_b": np.eye(4)}
    with pytest.raises(DoFError, match="order"):
        partial_pose_relations((DoF.EX, DoF.X), **ends)
    with pytest.raises(DoFError, match="'goal' or 'world'"):
        partial_pose_relations((DoF.EX,), **ends, axes="hand")


def test_a_goal_below_a_plain_frame_stands_where_that_stands():
    rng = np.random.default_rng(3)
    from mechanik import Frame

    frame, goal, link = Frame("stand", **random_pose(rng)), Goal("goal", dof=("X", "EZ")), Link("hand")
    frame.add_child(goal)
    closure = goal.make_closure(link, random_frame(rng))
    link.world_matrix = make_pose(quaternion.to_matrix(random_turn(rng)), np.zeros(3))
    mechanism = Mechanism([link])
    rows, _ = rows_of(mechanism, closure, np.zeros(0))
    E = inverse(goal.world_matrix) @ link.world_matrix @ closure.at.matrix
    np.testing.assert_allclose(rows, [E[0, 3], E[1, 0]], atol=1e-12)
