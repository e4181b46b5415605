"""The rows of every kind of relation against their definition, and their Jacobians against differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from derivatives import by_differences
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from random_mechanisms import mechanisms, random_mechanism, random_pose, random_turn, seeds

from mechanik import Builder
from mechanik.errors import DoFError, NotFinite, ShapeError, StructureError, UnknownName
from mechanik.objectives.relation import Relation, RelationKind, band_violation, evaluate_relation, is_band_active
from mechanik.spatial import from_position_wxyz, make_pose, quaternion, rotation, translation

BETWEEN_FRAMES = {
    RelationKind.POSE: 6,
    RelationKind.AXIS: 5,
    RelationKind.COSINE: 1,
    RelationKind.LOOK_AT: 2,
    RelationKind.DISTANCE: 1,
}
IN_WORLD_AXES = (RelationKind.POSE, RelationKind.AXIS, RelationKind.COSINE)


def random_frame(rng):
    pose = random_pose(rng)
    return from_position_wxyz(pose["position"], pose["wxyz"])


def random_relation(rng, mechanism, kind, *, world_axes=False):
    links = [None, *mechanism.links]
    a, b = (links[rng.integers(len(links))] for _ in range(2))
    C = quaternion.to_matrix(random_turn(rng)) if world_axes else None
    size = BETWEEN_FRAMES[kind]
    return Relation(kind, tuple(range(size)), a, b, random_frame(rng), random_frame(rng), world_axes=C)


def world_frames(mechanism, relation, q):
    ends = (relation.a, relation.X_a), (relation.b, relation.X_b)
    return [X if link is None else mechanism.pose(link, q) @ X for link, X in ends]


def seen(mechanism, relation, q):
    """Position and rotation of B from A, as the docstring of Relation says."""
    A, B = world_frames(mechanism, relation, q)
    C = relation.world_axes
    if C is None:
        E = np.linalg.inv(A) @ B
        return E[:3, 3], E[:3, :3]
    return C.T @ (B[:3, 3] - A[:3, 3]), C.T @ B[:3, :3] @ A[:3, :3].T @ C


def on_ball(turn=(1, 0, 0, 0)):
    builder = Builder()
    builder.spherical("ball", "world", "body")
    mechanism = builder.build()
    mechanism.joint("ball").rotation_wxyz = turn
    return mechanism


# ---- the rows ---------------------------------------------------------------------------------


@given(mechanisms, seeds, st.booleans())
def test_a_pose_is_seen_along_the_axes_of_a_or_of_the_world(mechanism, seed, world_axes):
    rng = np.random.default_rng(seed)
    relation, q = random_relation(rng, mechanism, RelationKind.POSE, world_axes=world_axes), mechanism.random(rng)
    rows, _ = evaluate_relation(mechanism, relation, q)
    p, R = seen(mechanism, relation, q)
    np.testing.assert_allclose(rows[:3], p, atol=1e-12)
    np.testing.assert_allclose(rotation.exp(rows[3:]), R, atol=1e-12)
    assert np.linalg.norm(rows[3:]) <= math.pi + 1e-12


@given(mechanisms, seeds, st.booleans())
def test_a_leaning_axis_has_its_angle_as_length_and_its_direction(mechanism, seed, world_axes):
    rng = np.random.default_rng(seed)
    relation, q = random_relation(rng, mechanism, RelationKind.AXIS, world_axes=world_axes), mechanism.random(rng)
    rows, _ = evaluate_relation(mechanism, relation, q)
    p, R = seen(mechanism, relation, q)
    np.testing.assert_allclose(rows[:3], p, atol=1e-12)
    angle = np.linalg.norm(rows[3:])
    assert math.isclose(math.cos(angle), R[2, 2], abs_tol=1e-12)
    np.testing.assert_allclose(rows[3:] * math.sin(angle), angle * R[:2, 2], atol=1e-12)
    cosine = Relation(
        RelationKind.COSINE, (0,), *(relation.a, relation.b, relation.X_a, relation.X_b, relation.world_axes)
    )
    assert math.isclose(evaluate_relation(mechanism, cosine, q)[0][0], R[2, 2], abs_tol=1e-12)


@given(mechanisms, seeds)
def test_looking_is_an_axis_towards_an_origin_and_distance_is_its_length(mechanism, seed):
    rng = np.random.default_rng(seed)
    look, q = random_relation(rng, mechanism, RelationKind.LOOK_AT), mechanism.random(rng)
    p, _ = seen(mechanism, look, q)
    away = np.linalg.norm(p)
    assume(away > 1e-3)
    rows, _ = evaluate_relation(mechanism, look, q)
    assert math.isclose(np.linalg.norm(rows), math.acos(np.clip(p[2] / away, -1, 1)), abs_tol=1e-7)
    assert np.linalg.norm(np.cross([*rows, 0], [*p[:2], 0])) < 1e-12 * max(away, 1)
    distance = Relation(RelationKind.DISTANCE, (0,), look.a, look.b, look.X_a, look.X_b)
    np.testing.assert_allclose(evaluate_relation(mechanism, distance, q)[0], away, rtol=1e-12)


@given(mechanisms, seeds)
def test_rows_are_those_asked_for_in_their_order(mechanism, seed):
    rng = np.random.default_rng(seed)
    whole, q = random_relation(rng, mechanism, RelationKind.POSE), mechanism.random(rng)
    some = Relation(RelationKind.POSE, (0, 2, 4), whole.a, whole.b, whole.X_a, whole.X_b)
    for part, full in zip(evaluate_relation(mechanism, some, q), evaluate_relation(mechanism, whole, q), strict=True):
        np.testing.assert_array_equal(part, full[[0, 2, 4]])


def test_a_centre_of_mass_is_the_weighted_mean():
    rng = np.random.default_rng(4)
    mechanism = random_mechanism(5, 8)
    q = mechanism.random(rng)
    masses = tuple((link, float(rng.uniform(0.1, 3)), rng.uniform(-1, 1, 3)) for link in list(mechanism.links)[2:6])
    relation = Relation(RelationKind.CENTRE_OF_MASS, (0, 1, 2), "link7", None, random_frame(rng), masses=masses)
    A, _ = world_frames(mechanism, relation, q)
    total = sum(mass for _, mass, _ in masses)
    centre = sum(mass * (mechanism.pose(link, q) @ [*p, 1]) for link, mass, p in masses) / total
    np.testing.assert_allclose(
        evaluate_relation(mechanism, relation, q)[0], (np.linalg.inv(A) @ centre)[:3], atol=1e-12
    )


@given(mechanisms, seeds)
def test_values_are_differences_and_turns_are_what_leads_from_the_target(mechanism, seed):
    rng = np.random.default_rng(seed)
    space, q = mechanism.space, mechanism.random(rng)
    for k, v in zip(space.scalars_q, space.scalars_v, strict=True):
        rows, J = evaluate_relation(
            mechanism, Relation(RelationKind.JOINT_VALUE, (0,), dof_name=space.q_names[k], target=np.array([0.3])), q
        )
        assert rows == [q[k] - 0.3]
        np.testing.assert_array_equal(J, np.eye(mechanism.nv)[[v]])
    for name, joint in mechanism.joints.items():
        slot = mechanism.kinematics.joint_indices[joint]
        if slot.quaternion_q is not None:
            target = quaternion.normalize(rng.standard_normal(4))
            rows, _ = evaluate_relation(
                mechanism, Relation(RelationKind.SPHERICAL_JOINT, (0, 1, 2), dof_name=name, target=target), q
            )
            reached = quaternion.multiply(target, quaternion.exp(rows))
            assert quaternion.angle_between(reached, q[slot.quaternion_q : slot.quaternion_q + 4]) < 1e-12


def test_a_function_is_called_with_the_mechanism_and_q():
    mechanism = on_ball()
    relation = Relation(
        RelationKind.FUNCTION, (1,), function=lambda m, q: (q[:2], np.arange(2 * m.nv).reshape(2, m.nv))
    )
    rows, J = evaluate_relation(mechanism, relation, [0.6, 0.8, 0, 0])
    assert rows == [0.8]
    assert J.tolist() == [[3, 4, 5]]


# ---- their Jacobians --------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.sampled_from(list(BETWEEN_FRAMES)), seeds, st.integers(1, 8), st.booleans())
def test_the_jacobian_of_rows_between_two_frames_is_their_derivative(kind, seed, joints, world_axes):
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(seed, joints)
    relation = random_relation(rng, mechanism, kind, world_axes=world_axes and kind in IN_WORLD_AXES)
    q = mechanism.random(rng)
    rows, J = evaluate_relation(mechanism, relation, q)
    p, R = seen(mechanism, relation, q)
    assume(quaternion.from_matrix(R)[0] > 0.05)  # a rotation vector jumps at half a turn
    assume(R[2, 2] > -0.99)
    assume(np.linalg.norm(p) > 0.05)
    assume(p[2] > -0.99 * np.linalg.norm(p))
    assert J.shape == (len(rows), mechanism.nv)
    differences = by_differences(mechanism, lambda at: evaluate_relation(mechanism, relation, at)[0], q, step=1e-4)
    np.testing.assert_allclose(J, differences, atol=1e-6, rtol=1e-6)


@settings(max_examples=20)
@given(seeds, st.integers(1, 8), st.booleans())
def test_the_jacobian_of_a_centre_of_mass_is_its_derivative(seed, joints, in_world):
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(seed, joints)
    q = mechanism.random(rng)
    masses = tuple((link, float(rng.uniform(0, 3)), rng.uniform(-1, 1, 3)) for link in mechanism.links)
    a = None if in_world else list(mechanism.links)[-1]
    relation = Relation(RelationKind.CENTRE_OF_MASS, (0, 1, 2), a, None, random_frame(rng), masses=masses)
    differences = by_differences(mechanism, lambda at: evaluate_relation(mechanism, relation, at)[0], q, step=1e-4)
    np.testing.assert_allclose(evaluate_relation(mechanism, relation, q)[1], differences, atol=1e-8)


@settings(max_examples=20)
@given(seeds)
def test_the_jacobian_of_a_turn_is_its_derivative(seed):
    rng = np.random.default_rng(seed)
    mechanism = on_ball()
    target, q = (quaternion.normalize(rng.standard_normal(4)) for _ in range(2))
    assume(abs(target @ q) > 0.01)
    relation = Relation(RelationKind.SPHERICAL_JOINT, (0, 1, 2), dof_name="ball", target=target)
    differences = by_differences(mechanism, lambda at: evaluate_relation(mechanism, relation, at)[0], q)
    np.testing.assert_allclose(evaluate_relation(mechanism, relation, q)[1], differences, atol=1e-7)


@given(mechanisms, seeds, st.sampled_from(list(BETWEEN_FRAMES)))
def test_what_stands_above_both_ends_is_exactly_absent(mechanism, seed, kind):
    rng = np.random.default_rng(seed)
    relation, q = random_relation(rng, mechanism, kind), mechanism.random(rng)
    _, J = evaluate_relation(mechanism, relation, q)
    moving = {"a": set(), "b": set()}
    for end, link in (("a", relation.a), ("b", relation.b)):
        frame = None if link is None else mechanism.link(link)
        while frame is not None:
            moving[end].add(frame)
            frame = frame.parent
    slots = mechanism.kinematics.joint_indices
    between = [joint for joint in moving["a"] ^ moving["b"] if joint in slots]
    columns = set()
    for joint in between:
        slot = slots[joint]
        columns |= {*slot.v.values()}
        columns |= set() if slot.quaternion_v is None else {slot.quaternion_v + k for k in range(3)}
        for coupling in joint.couplings:
            leader, dof, _, _ = coupling.resolve()
            columns.add(slots[leader].v[dof])
    absent = [k for k in range(mechanism.nv) if k not in columns]
    assert not J[:, absent].any()


def test_along_axes_of_the_world_what_carries_both_ends_does_count():
    builder = Builder()
    builder.revolute("carrier", "world", "carried")
    builder.revolute("elbow", "carried", "arm", at=(1, 0, 0), axis="x")
    mechanism = builder.build()
    ends = ("carried", "arm", np.eye(4), translation([0, 1, 0]))
    q = np.array([0.3, 0.4])
    assert evaluate_relation(mechanism, Relation(RelationKind.POSE, (0, 1, 2), *ends), q)[1][:, 0].tolist() == [0, 0, 0]
    fixed = Relation(RelationKind.POSE, tuple(range(6)), *ends, world_axes=np.eye(3))
    rows, J = evaluate_relation(mechanism, fixed, q)
    np.testing.assert_allclose(J[:, 0], [-rows[1], rows[0], 0, -rows[4], rows[3], 0], atol=1e-15)


# ---- where the formulas divide by zero --------------------------------------------------------


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-160, 1e-9, 1e-4, math.pi - 1e-4, math.pi - 1e-9, math.pi])
@pytest.mark.parametrize("seed", range(3))
def test_rotation_vectors_are_exact_near_none_and_near_half_a_turn(angle, seed):
    axis = np.random.default_rng(seed).standard_normal(3)
    axis *= np.sign(axis[0]) / np.linalg.norm(axis)
    mechanism = on_ball()
    q = quaternion.exp(angle * axis)
    pose = Relation(RelationKind.POSE, (3, 4, 5), None, "body")
    turn = Relation(RelationKind.SPHERICAL_JOINT, (0, 1, 2), dof_name="ball", target=quaternion.identity())
    for relation in (pose, turn):
        rows, J = evaluate_relation(mechanism, relation, q)
        np.testing.assert_allclose(rows, angle * axis, rtol=1e-14, atol=1e-15 if angle > 1 else 0)
        # exp(rows + J v) = exp(rows) exp(v), which needs no difference across the jump at half a turn
        np.testing.assert_allclose(rotation.right_jacobian(rows) @ J, np.eye(3), atol=1e-13)


@pytest.mark.parametrize("angle", [1e-300, 1e-160, 1e-9, 1e-4, 1.0, math.pi - 1e-4, math.pi - 1e-8])
@pytest.mark.parametrize("heading", [0.0, 1.0, -2.5])
def test_a_lean_is_exact_at_any_angle(angle, heading):
    mechanism = on_ball()
    way = np.array([math.cos(heading), math.sin(heading)])
    q = quaternion.exp(angle * np.array([-way[1], way[0], 0]))
    rows, J = evaluate_relation(mechanism, Relation(RelationKind.AXIS, (3, 4), None, "body"), q)
    np.testing.assert_allclose(rows, angle * way, rtol=1e-6 if angle > 3 else 1e-13)
    # about the axis of the lean its length changes by the angle turned
    np.testing.assert_allclose(J @ [-way[1], way[0], 0], way, atol=1e-5 if angle > 3 else 1e-12)
    np.testing.assert_allclose(way @ J @ np.array([*way, 0]), 0, atol=1e-5 if angle > 3 else 1e-12)
    assert not J[:, 2].any() or angle > 1e-10  # spinning about itself moves no axis


def test_an_axis_in_its_place_leans_by_nothing():
    rows, J = evaluate_relation(on_ball(), Relation(RelationKind.AXIS, (3, 4), None, "body"), [1, 0, 0, 0])
    assert rows.tolist() == [0, 0]
    assert J.tolist() == [[0, 1, 0], [-1, 0, 0]]


def test_opposite_axes_lean_by_half_a_turn_over_x():
    mechanism = on_ball()
    for q in ([0, 1, 0, 0], [0, 0, 1, 0], [0, 0.6, 0.8, 0]):
        rows, J = evaluate_relation(mechanism, Relation(RelationKind.AXIS, (3, 4), None, "body"), q)
        assert rows.tolist() == [math.pi, 0]
        assert np.isfinite(J).all()
        # against that way the angle falls as fast as one turns
        assert math.isclose(np.linalg.norm(J[0]), 1.0)
        assert not J[1].any()


def test_what_is_in_the_eye_is_seen_and_pulls_nowhere():
    rows, J = evaluate_relation(on_ball(), Relation(RelationKind.LOOK_AT, (0, 1), "body", None), [0.6, 0.8, 0, 0])
    assert rows.tolist() == [0, 0]
    assert not J.any()


def test_points_that_meet_can_be_driven_apart():
    builder = Builder()
    builder.free("base", "world", "body")
    rows, J = evaluate_relation(
        builder.build(), Relation(RelationKind.DISTANCE, (0,), None, "body"), [0, 0, 0, 1, 0, 0, 0]
    )
    assert rows == [0]
    assert J.tolist() == [[1, 0, 0, 0, 0, 0]]


@example(0.0)
@example(1.0)
@given(st.floats(-1, 1))
def test_a_cosine_has_no_slope_where_axes_agree_or_oppose(tilt):
    q = quaternion.exp([math.pi * tilt, 0, 0])
    rows, J = evaluate_relation(on_ball(), Relation(RelationKind.COSINE, (0,), None, "body"), q)
    assert math.isclose(rows[0], math.cos(math.pi * tilt), abs_tol=1e-12)
    np.testing.assert_allclose(J, [[-math.sin(math.pi * tilt), 0, 0]], atol=1e-12)


# ---- bands ------------------------------------------------------------------------------------


def test_inside_a_band_nothing_is_left():
    relation = Relation(
        RelationKind.POSE, (0, 1, 2), lower=np.array([-1.0, 0.0, 2.0]), upper=np.array([1.0, 0.0, np.inf])
    )
    rows = np.array([[0.5, 0.5, 5.0], [-3.0, 0.0, 1.5]])
    assert band_violation(relation, rows).tolist() == [[0, 0.5, 0], [-2, 0, -0.5]]
    assert is_band_active(relation, rows).tolist() == [[False, True, False], [True, True, True]]


def test_without_a_band_rows_stay_as_they_are_and_one_side_may_be_open():
    rows = np.array([0.5, -0.5])
    assert band_violation(Relation(RelationKind.POSE, (0, 1)), rows).tolist() == [0.5, -0.5]
    assert is_band_active(Relation(RelationKind.POSE, (0, 1)), rows).all()
    assert band_violation(Relation(RelationKind.POSE, (0, 1), lower=np.zeros(2)), rows).tolist() == [0, -0.5]
    assert band_violation(Relation(RelationKind.POSE, (0, 1), upper=np.zeros(2)), rows).tolist() == [0.5, 0]


# ---- what is refused --------------------------------------------------------------------------


def test_what_does_not_fit_the_mechanism_is_refused_by_name():
    mechanism = on_ball()
    q = mechanism.neutral()
    with pytest.raises(UnknownName, match="body"):
        evaluate_relation(mechanism, Relation(RelationKind.POSE, (0,), None, "bodi"), q)
    with pytest.raises(UnknownName, match="elbow"):
        evaluate_relation(mechanism, Relation(RelationKind.JOINT_VALUE, (0,), dof_name="elbow"), q)
    with pytest.raises(DoFError, match="quaternion"):
        evaluate_relation(mechanism, Relation(RelationKind.JOINT_VALUE, (0,), dof_name="ball.qw"), q)
    with pytest.raises(UnknownName, match="hip"):
        evaluate_relation(
            mechanism,
            Relation(RelationKind.SPHERICAL_JOINT, (0, 1, 2), dof_name="hip", target=quaternion.identity()),
            q,
        )
    with pytest.raises(ShapeError, match="5 rows"):
        evaluate_relation(mechanism, Relation(RelationKind.AXIS, (3, 4, 5), None, "body"), q)
    with pytest.raises(StructureError, match="mass above zero"):
        evaluate_relation(mechanism, Relation(RelationKind.CENTRE_OF_MASS, (0, 1, 2)), q)
    with pytest.raises(StructureError, match="function"):
        evaluate_relation(mechanism, Relation(RelationKind.FUNCTION, (0,)), q)
    with pytest.raises(ShapeError, match="one configuration"):
        evaluate_relation(mechanism, Relation(RelationKind.POSE, (0,), None, "body"), np.zeros((2, 4)) + 1)
    with pytest.raises(NotFinite):
        evaluate_relation(mechanism, Relation(RelationKind.POSE, (0,), None, "body"), [np.nan, 0, 0, 1])


def test_only_a_ball_is_wanted_as_a_turn():
    builder = Builder()
    builder.revolute("elbow", "world", "arm")
    with pytest.raises(DoFError, match="not spherical"):
        evaluate_relation(
            builder.build(),
            Relation(RelationKind.SPHERICAL_JOINT, (0, 1, 2), dof_name="elbow", target=np.eye(4)[0]),
            [0.0],
        )


def test_frames_in_the_world_have_rows_that_nothing_moves():
    mechanism = on_ball()
    A, B = make_pose(rotation.exp([0.1, 0.2, 0.3]), np.ones(3)), make_pose(rotation.exp([0.3, 0, 0]), np.zeros(3))
    rows, J = evaluate_relation(
        mechanism, Relation(RelationKind.POSE, tuple(range(6)), None, None, A, B), mechanism.neutral()
    )
    np.testing.assert_allclose(make_pose(rotation.exp(rows[3:]), rows[:3]), np.linalg.inv(A) @ B, atol=1e-15)
    assert not J.any()
