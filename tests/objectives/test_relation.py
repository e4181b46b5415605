"""Residual of every kind of relation against its definition, and its Jacobian against finite differences."""

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
from mechanik.objectives.relation import (
    Relation,
    RelationKind,
    band_violation,
    evaluate_relation,
    evaluate_relations,
    is_band_active,
)
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


def relative_pose(mechanism, relation, q):
    """Return position and rotation of B relative to A, as the docstring of `Relation` defines them."""
    A, B = world_frames(mechanism, relation, q)
    C = relation.world_axes
    if C is None:
        E = np.linalg.inv(A) @ B
        return E[:3, 3], E[:3, :3]
    return C.T @ (B[:3, 3] - A[:3, 3]), C.T @ B[:3, :3] @ A[:3, :3].T @ C


def spherical_joint_mechanism(wxyz=(1, 0, 0, 0)):
    builder = Builder()
    builder.spherical("ball", "world", "body")
    mechanism = builder.build()
    mechanism.joint("ball").rotation_wxyz = wxyz
    return mechanism


# ---- residuals --------------------------------------------------------------------------------


@given(mechanisms, seeds, st.booleans())
def test_pose_residual_is_along_the_axes_of_a_or_of_the_world(mechanism, seed, world_axes):
    rng = np.random.default_rng(seed)
    relation, q = random_relation(rng, mechanism, RelationKind.POSE, world_axes=world_axes), mechanism.random(rng)
    residual, _ = evaluate_relation(mechanism, relation, q)
    p, R = relative_pose(mechanism, relation, q)
    np.testing.assert_allclose(residual[:3], p, atol=1e-12)
    np.testing.assert_allclose(rotation.exp(residual[3:]), R, atol=1e-12)
    assert np.linalg.norm(residual[3:]) <= math.pi + 1e-12


@given(mechanisms, seeds, st.booleans())
def test_axis_residual_has_the_angle_as_length_and_the_direction_of_tilt(mechanism, seed, world_axes):
    rng = np.random.default_rng(seed)
    relation, q = random_relation(rng, mechanism, RelationKind.AXIS, world_axes=world_axes), mechanism.random(rng)
    residual, _ = evaluate_relation(mechanism, relation, q)
    p, R = relative_pose(mechanism, relation, q)
    np.testing.assert_allclose(residual[:3], p, atol=1e-12)
    angle = np.linalg.norm(residual[3:])
    assert math.isclose(math.cos(angle), R[2, 2], abs_tol=1e-12)
    np.testing.assert_allclose(residual[3:] * math.sin(angle), angle * R[:2, 2], atol=1e-12)
    cosine = Relation(
        RelationKind.COSINE, (0,), *(relation.a, relation.b, relation.X_a, relation.X_b, relation.world_axes)
    )
    assert math.isclose(evaluate_relation(mechanism, cosine, q)[0][0], R[2, 2], abs_tol=1e-12)


@given(mechanisms, seeds)
def test_look_at_residual_is_the_angle_to_the_origin_of_b_and_distance_its_length(mechanism, seed):
    rng = np.random.default_rng(seed)
    look_at, q = random_relation(rng, mechanism, RelationKind.LOOK_AT), mechanism.random(rng)
    p, _ = relative_pose(mechanism, look_at, q)
    length = np.linalg.norm(p)
    assume(length > 1e-3)
    residual, _ = evaluate_relation(mechanism, look_at, q)
    assert math.isclose(np.linalg.norm(residual), math.acos(np.clip(p[2] / length, -1, 1)), abs_tol=1e-7)
    assert np.linalg.norm(np.cross([*residual, 0], [*p[:2], 0])) < 1e-12 * max(length, 1)
    distance = Relation(RelationKind.DISTANCE, (0,), look_at.a, look_at.b, look_at.X_a, look_at.X_b)
    np.testing.assert_allclose(evaluate_relation(mechanism, distance, q)[0], length, rtol=1e-12)


@given(mechanisms, seeds)
def test_selected_rows_are_returned_in_order(mechanism, seed):
    rng = np.random.default_rng(seed)
    whole, q = random_relation(rng, mechanism, RelationKind.POSE), mechanism.random(rng)
    partial = Relation(RelationKind.POSE, (0, 2, 4), whole.a, whole.b, whole.X_a, whole.X_b)
    for selected, full in zip(
        evaluate_relation(mechanism, partial, q), evaluate_relation(mechanism, whole, q), strict=True
    ):
        np.testing.assert_array_equal(selected, full[[0, 2, 4]])


def test_centre_of_mass_residual_is_the_weighted_mean():
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
def test_joint_values_are_differences_and_spherical_joints_rotations_from_the_target(mechanism, seed):
    rng = np.random.default_rng(seed)
    space, q = mechanism.space, mechanism.random(rng)
    for k, v in zip(space.scalars_q, space.scalars_v, strict=True):
        residual, J = evaluate_relation(
            mechanism, Relation(RelationKind.JOINT_VALUE, (0,), dof_name=space.q_names[k], target=np.array([0.3])), q
        )
        assert residual == [q[k] - 0.3]
        np.testing.assert_array_equal(J, np.eye(mechanism.nv)[[v]])
    for name, joint in mechanism.joints.items():
        slot = mechanism.kinematics.joint_indices[joint]
        if slot.quaternion_q is not None:
            target = quaternion.normalize(rng.standard_normal(4))
            residual, _ = evaluate_relation(
                mechanism, Relation(RelationKind.SPHERICAL_JOINT, (0, 1, 2), dof_name=name, target=target), q
            )
            reached = quaternion.multiply(target, quaternion.exp(residual))
            assert quaternion.angle_between(reached, q[slot.quaternion_q : slot.quaternion_q + 4]) < 1e-12


def test_a_function_is_called_with_the_mechanism_and_q():
    mechanism = spherical_joint_mechanism()
    relation = Relation(
        RelationKind.FUNCTION, (1,), function=lambda m, q: (q[:2], np.arange(2 * m.nv).reshape(2, m.nv))
    )
    residual, J = evaluate_relation(mechanism, relation, [0.6, 0.8, 0, 0])
    assert residual == [0.8]
    assert J.tolist() == [[3, 4, 5]]


# ---- Jacobians --------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.sampled_from(list(BETWEEN_FRAMES)), seeds, st.integers(1, 8), st.booleans())
def test_the_jacobian_of_relations_between_two_frames_is_their_derivative(kind, seed, joints, world_axes):
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(seed, joints)
    relation = random_relation(rng, mechanism, kind, world_axes=world_axes and kind in IN_WORLD_AXES)
    q = mechanism.random(rng)
    residual, J = evaluate_relation(mechanism, relation, q)
    p, R = relative_pose(mechanism, relation, q)
    assume(quaternion.from_matrix(R)[0] > 0.05)  # a rotation vector jumps at half a revolution
    assume(R[2, 2] > -0.99)
    assume(np.linalg.norm(p) > 0.05)
    assume(p[2] > -0.99 * np.linalg.norm(p))
    assert J.shape == (len(residual), mechanism.nv)
    differences = by_differences(
        mechanism, lambda other_q: evaluate_relation(mechanism, relation, other_q)[0], q, step=1e-4
    )
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
    differences = by_differences(
        mechanism, lambda other_q: evaluate_relation(mechanism, relation, other_q)[0], q, step=1e-4
    )
    np.testing.assert_allclose(evaluate_relation(mechanism, relation, q)[1], differences, atol=1e-8)


@settings(max_examples=20)
@given(seeds)
def test_the_jacobian_of_a_spherical_joint_is_its_derivative(seed):
    rng = np.random.default_rng(seed)
    mechanism = spherical_joint_mechanism()
    target, q = (quaternion.normalize(rng.standard_normal(4)) for _ in range(2))
    assume(abs(target @ q) > 0.01)
    relation = Relation(RelationKind.SPHERICAL_JOINT, (0, 1, 2), dof_name="ball", target=target)
    differences = by_differences(mechanism, lambda other_q: evaluate_relation(mechanism, relation, other_q)[0], q)
    np.testing.assert_allclose(evaluate_relation(mechanism, relation, q)[1], differences, atol=1e-7)


@given(mechanisms, seeds, st.sampled_from(list(BETWEEN_FRAMES)))
def test_joints_above_both_links_have_exactly_zero_columns(mechanism, seed, kind):
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


def test_with_world_axes_joints_above_both_links_count():
    builder = Builder()
    builder.revolute("carrier", "world", "carried")
    builder.revolute("elbow", "carried", "arm", at=(1, 0, 0), axis="x")
    mechanism = builder.build()
    ends = ("carried", "arm", np.eye(4), translation([0, 1, 0]))
    q = np.array([0.3, 0.4])
    assert evaluate_relation(mechanism, Relation(RelationKind.POSE, (0, 1, 2), *ends), q)[1][:, 0].tolist() == [0, 0, 0]
    relation = Relation(RelationKind.POSE, tuple(range(6)), *ends, world_axes=np.eye(3))
    residual, J = evaluate_relation(mechanism, relation, q)
    np.testing.assert_allclose(J[:, 0], [-residual[1], residual[0], 0, -residual[4], residual[3], 0], atol=1e-15)


# ---- where the formulas divide by zero --------------------------------------------------------


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-160, 1e-9, 1e-4, math.pi - 1e-4, math.pi - 1e-9, math.pi])
@pytest.mark.parametrize("seed", range(3))
def test_rotation_vectors_are_exact_near_zero_and_near_half_a_revolution(angle, seed):
    axis = np.random.default_rng(seed).standard_normal(3)
    axis *= np.sign(axis[0]) / np.linalg.norm(axis)
    mechanism = spherical_joint_mechanism()
    q = quaternion.exp(angle * axis)
    pose = Relation(RelationKind.POSE, (3, 4, 5), None, "body")
    spherical_joint = Relation(RelationKind.SPHERICAL_JOINT, (0, 1, 2), dof_name="ball", target=quaternion.identity())
    for relation in (pose, spherical_joint):
        residual, J = evaluate_relation(mechanism, relation, q)
        np.testing.assert_allclose(residual, angle * axis, rtol=1e-14, atol=1e-15 if angle > 1 else 0)
        # exp(residual + J v) = exp(residual) exp(v): no difference across the jump at half a revolution is needed
        np.testing.assert_allclose(rotation.right_jacobian(residual) @ J, np.eye(3), atol=1e-13)


@pytest.mark.parametrize("angle", [1e-300, 1e-160, 1e-9, 1e-4, 1.0, math.pi - 1e-4, math.pi - 1e-8])
@pytest.mark.parametrize("heading", [0.0, 1.0, -2.5])
def test_tilt_is_exact_at_any_angle(angle, heading):
    mechanism = spherical_joint_mechanism()
    tilt_direction = np.array([math.cos(heading), math.sin(heading)])
    q = quaternion.exp(angle * np.array([-tilt_direction[1], tilt_direction[0], 0]))
    residual, J = evaluate_relation(mechanism, Relation(RelationKind.AXIS, (3, 4), None, "body"), q)
    np.testing.assert_allclose(residual, angle * tilt_direction, rtol=1e-6 if angle > 3 else 1e-13)
    # a rotation about the axis of the tilt changes the tilt by the angle of rotation
    np.testing.assert_allclose(
        J @ [-tilt_direction[1], tilt_direction[0], 0], tilt_direction, atol=1e-5 if angle > 3 else 1e-12
    )
    np.testing.assert_allclose(
        tilt_direction @ J @ np.array([*tilt_direction, 0]), 0, atol=1e-5 if angle > 3 else 1e-12
    )
    assert not J[:, 2].any() or angle > 1e-10  # a rotation about the axis itself does not move it


def test_an_aligned_axis_has_zero_residual_and_a_regular_jacobian():
    residual, J = evaluate_relation(
        spherical_joint_mechanism(), Relation(RelationKind.AXIS, (3, 4), None, "body"), [1, 0, 0, 0]
    )
    assert residual.tolist() == [0, 0]
    assert J.tolist() == [[0, 1, 0], [-1, 0, 0]]


def test_opposite_axes_have_a_tilt_of_pi_along_x():
    mechanism = spherical_joint_mechanism()
    for q in ([0, 1, 0, 0], [0, 0, 1, 0], [0, 0.6, 0.8, 0]):
        residual, J = evaluate_relation(mechanism, Relation(RelationKind.AXIS, (3, 4), None, "body"), q)
        assert residual.tolist() == [math.pi, 0]
        assert np.isfinite(J).all()
        # the angle decreases by the angle of rotation
        assert math.isclose(np.linalg.norm(J[0]), 1.0)
        assert not J[1].any()


def test_a_target_at_the_eye_has_zero_residual_and_zero_jacobian():
    residual, J = evaluate_relation(
        spherical_joint_mechanism(), Relation(RelationKind.LOOK_AT, (0, 1), "body", None), [0.6, 0.8, 0, 0]
    )
    assert residual.tolist() == [0, 0]
    assert not J.any()


def test_coincident_points_have_a_fixed_gradient():
    builder = Builder()
    builder.free("base", "world", "body")
    residual, J = evaluate_relation(
        builder.build(), Relation(RelationKind.DISTANCE, (0,), None, "body"), [0, 0, 0, 1, 0, 0, 0]
    )
    assert residual == [0]
    assert J.tolist() == [[1, 0, 0, 0, 0, 0]]


@example(0.0)
@example(1.0)
@given(st.floats(-1, 1))
def test_a_cosine_has_zero_derivative_where_axes_agree_or_oppose(tilt):
    q = quaternion.exp([math.pi * tilt, 0, 0])
    residual, J = evaluate_relation(spherical_joint_mechanism(), Relation(RelationKind.COSINE, (0,), None, "body"), q)
    assert math.isclose(residual[0], math.cos(math.pi * tilt), abs_tol=1e-12)
    np.testing.assert_allclose(J, [[-math.sin(math.pi * tilt), 0, 0]], atol=1e-12)


# ---- bands ------------------------------------------------------------------------------------


def test_inside_a_band_the_violation_is_zero():
    relation = Relation(
        RelationKind.POSE, (0, 1, 2), lower=np.array([-1.0, 0.0, 2.0]), upper=np.array([1.0, 0.0, np.inf])
    )
    residual = np.array([[0.5, 0.5, 5.0], [-3.0, 0.0, 1.5]])
    assert band_violation(relation, residual).tolist() == [[0, 0.5, 0], [-2, 0, -0.5]]
    assert is_band_active(relation, residual).tolist() == [[False, True, False], [True, True, True]]


def test_without_a_band_values_are_unchanged_and_a_band_may_have_one_bound():
    residual = np.array([0.5, -0.5])
    assert band_violation(Relation(RelationKind.POSE, (0, 1)), residual).tolist() == [0.5, -0.5]
    assert is_band_active(Relation(RelationKind.POSE, (0, 1)), residual).all()
    assert band_violation(Relation(RelationKind.POSE, (0, 1), lower=np.zeros(2)), residual).tolist() == [0, -0.5]
    assert band_violation(Relation(RelationKind.POSE, (0, 1), upper=np.zeros(2)), residual).tolist() == [0.5, 0]


# ---- invalid relations ------------------------------------------------------------------------


def test_relations_that_do_not_fit_the_mechanism_are_refused():
    mechanism = spherical_joint_mechanism()
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


def test_a_spherical_joint_relation_refuses_other_joints():
    builder = Builder()
    builder.revolute("elbow", "world", "arm")
    with pytest.raises(DoFError, match="not spherical"):
        evaluate_relation(
            builder.build(),
            Relation(RelationKind.SPHERICAL_JOINT, (0, 1, 2), dof_name="elbow", target=np.eye(4)[0]),
            [0.0],
        )


def test_a_relation_between_world_frames_has_a_zero_jacobian():
    mechanism = spherical_joint_mechanism()
    A, B = make_pose(rotation.exp([0.1, 0.2, 0.3]), np.ones(3)), make_pose(rotation.exp([0.3, 0, 0]), np.zeros(3))
    residual, J = evaluate_relation(
        mechanism, Relation(RelationKind.POSE, tuple(range(6)), None, None, A, B), mechanism.neutral()
    )
    np.testing.assert_allclose(make_pose(rotation.exp(residual[3:]), residual[:3]), np.linalg.inv(A) @ B, atol=1e-15)
    assert not J.any()


@pytest.mark.parametrize("kind", list(BETWEEN_FRAMES))
@given(mechanisms, seeds)
@settings(max_examples=20)
def test_relations_at_many_configurations_are_those_at_each(kind, mechanism, seed):
    rng = np.random.default_rng(seed)
    relation = random_relation(rng, mechanism, kind, world_axes=kind in IN_WORLD_AXES and bool(rng.random() < 0.3))
    q = mechanism.random(rng, 3)
    values, J = evaluate_relations(mechanism, relation, q)
    for k, configuration in enumerate(q):
        values_of_one, J_of_one = evaluate_relation(mechanism, relation, configuration)
        np.testing.assert_allclose(values[k], values_of_one, atol=1e-12)
        np.testing.assert_allclose(J[k], J_of_one, atol=1e-12)
    assert evaluate_relations(mechanism, relation, q[:0])[1].shape == (0, BETWEEN_FRAMES[kind], mechanism.nv)


@given(mechanisms, seeds, st.booleans())
@settings(max_examples=20)
def test_centres_of_mass_at_many_configurations_are_those_at_each(mechanism, seed, in_world):
    rng = np.random.default_rng(seed)
    masses = tuple((link, float(rng.uniform(0.1, 3)), rng.uniform(-1, 1, 3)) for link in mechanism.links)
    a = None if in_world else list(mechanism.links)[-1]
    relation = Relation(RelationKind.CENTRE_OF_MASS, (2, 0), a, None, random_frame(rng), masses=masses)
    q = mechanism.random(rng, 4)
    values, J = evaluate_relations(mechanism, relation, q)
    for k, configuration in enumerate(q):
        values_of_one, J_of_one = evaluate_relation(mechanism, relation, configuration)
        np.testing.assert_allclose(values[k], values_of_one, atol=1e-12)
        np.testing.assert_allclose(J[k], J_of_one, atol=1e-12)
    assert evaluate_relations(mechanism, relation, q[:0])[1].shape == (0, 2, mechanism.nv)
