"""Poses and Jacobians of any tree: kernels against the graph, and against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from random_mechanisms import mechanisms, random_mechanism, seeds

from mechanik import Builder, Mechanism
from mechanik.errors import NotARotation, NotFinite, ShapeError, UnknownName
from mechanik.model import numpy_kinematics as reference
from mechanik.spatial import apply, rotation

STEP = 1e-6


def last(mechanism: Mechanism) -> str:
    return list(mechanism.links)[-1]


@settings(max_examples=60, deadline=None)
@given(mechanisms, seeds)
def test_the_kernel_computes_the_poses_of_the_graph(mechanism, seed):
    q = mechanism.random(np.random.default_rng(seed))
    mechanism.q = q
    X = mechanism.poses(q)
    for i, (name, link) in enumerate(mechanism.links.items()):
        np.testing.assert_allclose(X[i], link.world_matrix, atol=1e-12)
        np.testing.assert_array_equal(X[i], mechanism.pose(name, q))


@settings(max_examples=60, deadline=None)
@given(mechanisms, seeds)
def test_the_jacobian_is_the_derivative_of_the_pose(mechanism, seed):
    rng = np.random.default_rng(seed)
    q, point, link = mechanism.random(rng), rng.uniform(-1, 1, 3), last(mechanism)
    J = mechanism.jacobian(link, q, point)
    differences = np.zeros_like(J)
    for k in range(mechanism.nv):
        v = np.zeros(mechanism.nv)
        v[k] = STEP
        ahead, behind = (mechanism.pose(link, mechanism.integrate(q, side * v)) for side in (1, -1))
        differences[:3, k] = (apply(ahead, point) - apply(behind, point)) / (2 * STEP)
        differences[3:, k] = rotation.log(ahead[:3, :3] @ behind[:3, :3].T) / (2 * STEP)
    np.testing.assert_allclose(J, differences, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(mechanisms, seeds)
def test_the_jacobian_of_the_kernel_is_that_of_the_graph(mechanism, seed):
    rng = np.random.default_rng(seed)
    mechanism.q = mechanism.random(rng)
    point = rng.uniform(-1, 1, 3)
    for name, link in mechanism.links.items():
        expected = reference.reference_jacobian(mechanism, link, apply(link.world_matrix, point))
        np.testing.assert_allclose(mechanism.jacobian(name, point=point), expected, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(mechanisms, seeds)
def test_a_batch_equals_single_calls(mechanism, seed):
    q = mechanism.random(np.random.default_rng(seed), (2, 3))
    link = last(mechanism)
    X, all_X, J = mechanism.pose(link, q), mechanism.poses(q), mechanism.jacobian(link, q)
    assert X.shape == (2, 3, 4, 4)
    assert all_X.shape == (2, 3, len(mechanism.links), 4, 4)
    assert J.shape == (2, 3, 6, mechanism.nv)
    for i in np.ndindex(2, 3):
        np.testing.assert_array_equal(X[i], mechanism.pose(link, q[i]))
        np.testing.assert_array_equal(all_X[i], mechanism.poses(q[i]))
        np.testing.assert_allclose(J[i], mechanism.jacobian(link, q[i]), atol=1e-14)


def test_an_empty_batch_has_no_poses():
    mechanism = random_mechanism(5, 8)
    assert mechanism.pose(last(mechanism), np.zeros((0, mechanism.nq))).shape == (0, 4, 4)
    assert mechanism.jacobian(last(mechanism), np.zeros((0, mechanism.nq))).shape == (0, 6, mechanism.nv)


def test_chosen_links_are_in_the_given_order():
    mechanism = random_mechanism(7, 10)
    q = mechanism.random(np.random.default_rng(0))
    X = mechanism.poses(q, ["link7", "link2"])
    np.testing.assert_array_equal(X[0], mechanism.pose("link7", q))
    np.testing.assert_array_equal(X[1], mechanism.pose("link2", q))


def test_a_mechanism_that_cannot_move_has_poses():
    builder = Builder()
    builder.fixed("f", "a", "b", at=(1, 2, 3))
    mechanism = builder.build()
    assert (mechanism.nq, mechanism.nv) == (0, 0)
    np.testing.assert_array_equal(mechanism.pose("b", [])[:3, 3], (1, 2, 3))
    assert mechanism.jacobian("b").shape == (6, 0)


def test_the_poses_of_a_planar_arm_follow_from_trigonometry():
    builder = Builder()
    builder.revolute("shoulder", "ground", "upper")
    builder.revolute("elbow", "upper", "lower", at=(2, 0, 0))
    builder.fixed("grip", "lower", "tool", at=(1, 0, 0))
    arm = builder.build()
    a, b = 0.4, -1.1
    X = arm.pose("tool", np.array([a, b]))
    np.testing.assert_allclose(X[:2, 3], [2 * np.cos(a) + np.cos(a + b), 2 * np.sin(a) + np.sin(a + b)], atol=1e-15)
    J = arm.jacobian("tool", np.array([a, b]))
    np.testing.assert_allclose(J[:2, 1], [-np.sin(a + b), np.cos(a + b)], atol=1e-15)
    np.testing.assert_array_equal(J[5], [1, 1])


def test_five_hundred_joints_in_a_row():
    builder = Builder()
    for i in range(500):
        builder.revolute(f"j{i}", f"l{i}", f"l{i + 1}", at=(0.01, 0, 0), axis="z" if i % 2 else "y")
    snake = builder.build()
    q = snake.random(np.random.default_rng(0))
    snake.q = q
    np.testing.assert_allclose(snake.pose("l500", q), snake.link("l500").world_matrix, atol=1e-12)


def test_many_full_turns_keep_accuracy():
    builder = Builder()
    builder.revolute("j", "a", "b", axis=(1, 2, 2))
    mechanism = builder.build()
    for turns in (1, 1000, 100_000):
        q = 0.7 + 2 * np.pi * turns
        mechanism.q = [q]
        np.testing.assert_allclose(mechanism.pose("b", [q]), mechanism.link("b").world_matrix, atol=3e-16 * (1 + q))


def test_the_result_can_be_written_to_an_array_of_the_caller():
    mechanism = random_mechanism(11, 6)
    link, out = last(mechanism), np.full((4, 4), np.nan)
    for q in (mechanism.neutral(), list(mechanism.neutral())):
        assert mechanism.pose(link, q, out) is out
        np.testing.assert_array_equal(out, mechanism.pose(link, q))
    for wrong in (np.zeros((3, 3)), np.zeros((4, 5)), np.zeros((1, 4, 4))):
        with pytest.raises(ShapeError, match="out"):
            mechanism.pose(link, mechanism.neutral(), wrong)
    with pytest.raises(ShapeError, match="out"):
        mechanism.pose(link, np.zeros((3, mechanism.nq)) + mechanism.neutral(), out)


def two_joints() -> Mechanism:
    builder = Builder()
    builder.revolute("shoulder", "base", "arm")
    builder.spherical("wrist", "arm", "hand", at=(1, 0, 0))
    return builder.build()


@pytest.mark.parametrize(
    ("q", "error", "words"),
    [
        ([0, 0, 0], ShapeError, "5 numbers"),
        (np.zeros(4), ShapeError, r"\(4,\)"),
        (np.zeros((2, 6)), ShapeError, r"\(2, 6\)"),
        (0.0, ShapeError, "5 numbers"),
        (["a"] * 5, ShapeError, "numbers"),
        ([np.nan, 1, 0, 0, 0], NotFinite, "shoulder"),
        (np.array([[0, 1, 0, 0, 0], [0, 1, np.inf, 0, 0]]), NotFinite, "wrist.qx"),
        ([0, 0, 0, 0, 0], NotARotation, "wrist.qw"),
    ],
)
def test_an_invalid_q_is_rejected_with_the_entry(q, error, words):
    mechanism = two_joints()
    for call in (lambda: mechanism.pose("hand", q), lambda: mechanism.poses(q), lambda: mechanism.jacobian("hand", q)):
        with pytest.raises(error, match=words):
            call()


def test_an_unknown_link_suggests_the_nearest_name():
    mechanism, q = two_joints(), np.array([0.0, 1, 0, 0, 0])
    for call in (
        lambda: mechanism.pose("hnd", q),
        lambda: mechanism.poses(q, ["hnd"]),
        lambda: mechanism.jacobian("hnd", q),
        lambda: mechanism.link("hnd"),
    ):
        with pytest.raises(UnknownName, match="Did you mean 'hand'"):
            call()
    with pytest.raises(ShapeError, match="point"):
        mechanism.jacobian("hand", q, point=(1, 2))


# ---- what once went wrong ------------------------------------------------------------------


def test_a_read_only_q_is_accepted():
    mechanism = two_joints()
    q = np.array([0.5, 1, 0, 0, 0])
    X, J = mechanism.pose("hand", q), mechanism.jacobian("hand", q)
    q.flags.writeable = False
    np.testing.assert_array_equal(mechanism.pose("hand", q), X)
    np.testing.assert_array_equal(mechanism.jacobian("hand", q), J)
    np.testing.assert_array_equal(mechanism.pose("hand", np.broadcast_to(q, (3, 5)))[1], X)
    np.testing.assert_array_equal(mechanism.poses(q)[-1], X)


@pytest.mark.parametrize("kind", [np.float32, np.int64, ">f8"])
def test_other_number_types_are_accepted_except_complex(kind):
    mechanism = two_joints()
    q = np.array([1, 1, 0, 0, 0])
    np.testing.assert_array_equal(mechanism.pose("hand", q.astype(kind)), mechanism.pose("hand", q.astype(float)))
    for call in (mechanism.poses, mechanism.clamp, lambda q: mechanism.pose("hand", q)):
        with pytest.raises(ShapeError, match="real"):
            call(q.astype(complex))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_number_that_is_not_finite_is_rejected_also_without_effect_on_the_pose(bad):
    mechanism = two_joints()
    q = np.array([0.0, 1, 0, 0, bad])
    out = np.eye(4)
    for call in (
        lambda: mechanism.pose("base", q, out),
        lambda: mechanism.pose("arm", np.stack([q, q])),
        lambda: mechanism.poses(q, ["base"]),
        lambda: mechanism.jacobian("arm", q),
    ):
        with pytest.raises(NotFinite, match="wrist"):
            call()
    np.testing.assert_array_equal(out, np.eye(4))


@pytest.mark.parametrize("out", [np.zeros((4, 4), np.float32), [[0] * 4] * 4, np.broadcast_to(0.0, (4, 4))])
def test_an_unsuitable_out_array_is_rejected(out):
    with pytest.raises(ShapeError, match="out"):
        two_joints().pose("hand", np.array([0.0, 1, 0, 0, 0]), out)
