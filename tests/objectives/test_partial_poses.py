"""Partial poses: the residual is zero where only the free dofs move, and nowhere else."""

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
from mechanik.objectives.pose_constraints import partial_pose_relations
from mechanik.objectives.relation import RelationKind, evaluate_relation
from mechanik.spatial import euler, from_position_wxyz, inverse, make_pose, quaternion

SUBSETS = [tuple(dofs) for size in range(7) for dofs in itertools.combinations(ALL_DOFS, size)]
AXES_AND_GOAL_LINK = st.sampled_from([("goal", False), ("world", False), ("goal", True), ("world", True)])


def two_bodies(rng):
    """Return a link with goals and a link that should reach them, both floating on a carrier that rotates."""
    builder = Builder()
    builder.link("world", at=random_frame(rng))
    builder.spherical("swing", "world", "carrier", at=random_frame(rng))
    for name in ("goal", "hand"):
        builder.free(f"{name} base", "carrier", name, at=random_frame(rng), axis=rng.standard_normal(3))
    return builder.build()


def random_frame(rng):
    pose = random_pose(rng)
    return from_position_wxyz(pose["position"], pose["wxyz"])


def close_goal(mechanism, rng, dof, axes, on_body):
    goal = Goal("wanted", dof=dof, axes=axes, **random_pose(rng))
    if on_body:
        mechanism.link("goal").add_child(goal)
    return goal.make_closure(mechanism.link("hand"), random_frame(rng))


def residual_and_jacobian(mechanism, closure, q):
    evaluations = [evaluate_relation(mechanism, relation, q) for relation in closure_relations(mechanism, closure)]
    residuals, J = zip(*evaluations, strict=True) if evaluations else ([np.zeros(0)], [np.zeros((0, mechanism.nv))])
    return np.concatenate(residuals), np.concatenate(J)


def set_hand_pose(mechanism, closure, rng, errors):
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


@pytest.mark.parametrize("dof", SUBSETS, ids=lambda dof: " ".join(member.name for member in dof) or "none")
@settings(max_examples=6)
@given(seeds, AXES_AND_GOAL_LINK)
def test_residual_is_zero_where_only_free_dofs_move_and_its_rows_are_independent(dof, seed, axes_and_link):
    rng = np.random.default_rng(seed)
    mechanism = two_bodies(rng)
    mechanism.q = mechanism.random(rng)
    closure = close_goal(mechanism, rng, dof, *axes_and_link)
    set_hand_pose(mechanism, closure, rng, np.zeros(6))
    assert closure.gap().is_closed(1e-12)
    residual, J = residual_and_jacobian(mechanism, closure, mechanism.q)
    np.testing.assert_allclose(residual, 0, atol=1e-12)
    assert len(residual) == len(dof)
    singular_values = np.linalg.svd(J, compute_uv=False)
    assert (singular_values > 1e-3).all()


@pytest.mark.parametrize(
    "dof", [dof for dof in SUBSETS if dof], ids=lambda dof: " ".join(member.name for member in dof)
)
@settings(max_examples=6)
@given(seeds, AXES_AND_GOAL_LINK)
def test_residual_is_not_zero_where_a_constrained_dof_has_an_error(dof, seed, axes_and_link):
    rng = np.random.default_rng(seed)
    mechanism = two_bodies(rng)
    mechanism.q = mechanism.random(rng)
    closure = close_goal(mechanism, rng, dof, *axes_and_link)
    errors = np.zeros(6)
    errors[rng.choice(dof)] = rng.choice([-0.3, 0.3, 1.2])
    values = set_hand_pose(mechanism, closure, rng, errors)
    assume(abs(np.cos(values[DoF.EY])) > 0.05)  # at gimbal lock EX and EZ rotate about one axis and replace each other
    assert not closure.gap().is_closed(1e-3)
    assert np.abs(residual_and_jacobian(mechanism, closure, mechanism.q)[0]).max() > 1e-3


@pytest.mark.parametrize("dof", SUBSETS[1:], ids=lambda dof: " ".join(member.name for member in dof))
@settings(max_examples=3)
@given(seeds, AXES_AND_GOAL_LINK)
def test_driving_the_residual_to_zero_reaches_the_goal(dof, seed, axes_and_link):
    rng = np.random.default_rng(seed)
    mechanism = two_bodies(rng)
    q = mechanism.random(rng)
    closure = close_goal(mechanism, rng, dof, *axes_and_link)
    residual, J = residual_and_jacobian(mechanism, closure, q)
    for _ in range(60):
        # damped while the error is large, so that no jump of a rotation vector matters; Newton steps at the end
        squared_norm = float(residual @ residual)
        step = J.T @ np.linalg.solve(J @ J.T + min(squared_norm, 1.0) * 1e-2 * np.eye(len(residual)), residual)
        q = mechanism.integrate(q, -step * min(1.0, 0.5 / np.linalg.norm(step)) if squared_norm > 1e-24 else 0 * step)
        residual, J = residual_and_jacobian(mechanism, closure, q)
    np.testing.assert_allclose(residual, 0, atol=1e-10)
    mechanism.q = q
    assert closure.gap().is_closed(1e-9)


@settings(max_examples=60)
@given(st.sampled_from(SUBSETS), seeds, AXES_AND_GOAL_LINK)
def test_the_jacobian_of_a_partial_pose_is_its_derivative(dof, seed, axes_and_link):
    rng = np.random.default_rng(seed)
    mechanism = two_bodies(rng)
    mechanism.q = mechanism.random(rng)
    closure = close_goal(mechanism, rng, dof, *axes_and_link)
    set_hand_pose(mechanism, closure, rng, rng.uniform(-0.5, 0.5, 6))
    differences = by_differences(
        mechanism, lambda q: residual_and_jacobian(mechanism, closure, q)[0], mechanism.q, step=1e-4
    )
    np.testing.assert_allclose(residual_and_jacobian(mechanism, closure, mechanism.q)[1], differences, atol=1e-8)


# ---- kinds of relations -----------------------------------------------------------------------


def relation_kinds(dof, **options):
    ends = {"a": "goal", "X_a": np.eye(4), "b": "hand", "X_b": np.eye(4)} | options
    return [(relation.kind, relation.rows) for relation in partial_pose_relations(dof, **ends)]


def test_a_full_pose_is_one_relation_and_no_dof_gives_none():
    assert relation_kinds(ALL_DOFS) == [(RelationKind.POSE, (0, 1, 2, 3, 4, 5))]
    assert relation_kinds(()) == []
    assert relation_kinds("Y") == [(RelationKind.POSE, (1,))]


def test_positions_share_one_relation_with_an_axis():
    assert relation_kinds(("X", "Y", "Z", "EX", "EY")) == [(RelationKind.AXIS, (0, 1, 2, 3, 4))]
    # axes are permuted so that x, the free axis, becomes z; then y and z are rows 0 and 1
    assert relation_kinds(("Y", "EY", "EZ")) == [(RelationKind.AXIS, (0, 3, 4))]
    assert relation_kinds(("Z", "EX")) == [(RelationKind.POSE, (2,)), (RelationKind.COSINE, (0,))]


def test_world_axes_are_used_only_for_partial_dofs_of_a_moving_goal():
    ends = {"a": "goal", "X_a": np.eye(4), "b": "hand", "X_b": np.eye(4), "axes": "world"}
    assert [relation.world_axes for relation in partial_pose_relations(ALL_DOFS, **ends)] == [None]
    mixed = partial_pose_relations(("X", "Y", "Z", "EX", "EY"), **ends)
    assert [(relation.rows, relation.world_axes is None) for relation in mixed] == [((0, 1, 2), True), ((3, 4), False)]
    joined = partial_pose_relations(("X", "EX"), **ends)
    assert [(relation.kind, len(relation.rows)) for relation in joined] == [(RelationKind.AXIS, 2)]
    fixed = partial_pose_relations(("X", "EX"), **(ends | {"a": None}))
    assert [relation.world_axes for relation in fixed] == [None, None]


def test_every_relation_has_the_weight_and_read_only_arrays():
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


def test_unordered_dofs_and_unknown_axes_are_refused():
    ends = {"a": None, "X_a": np.eye(4), "b": "hand", "X_b": np.eye(4)}
    with pytest.raises(DoFError, match="order"):
        partial_pose_relations((DoF.EX, DoF.X), **ends)
    with pytest.raises(DoFError, match="'goal' or 'world'"):
        partial_pose_relations((DoF.EX,), **ends, axes="hand")


def test_a_goal_below_a_plain_frame_moves_with_the_frame():
    rng = np.random.default_rng(3)
    from mechanik import Frame

    frame, goal, link = Frame("stand", **random_pose(rng)), Goal("goal", dof=("X", "EZ")), Link("hand")
    frame.add_child(goal)
    closure = goal.make_closure(link, random_frame(rng))
    link.world_matrix = make_pose(quaternion.to_matrix(random_turn(rng)), np.zeros(3))
    mechanism = Mechanism([link])
    residual, _ = residual_and_jacobian(mechanism, closure, np.zeros(0))
    E = inverse(goal.world_matrix) @ link.world_matrix @ closure.at.matrix
    np.testing.assert_allclose(residual, [E[0, 3], E[1, 0]], atol=1e-12)
