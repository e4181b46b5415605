"""q and v: axioms of steps and differences, limits, random configurations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from random_mechanisms import mechanisms, seeds

from mechanik import Builder, Joint, Link, Mechanism
from mechanik.errors import NotFinite, ShapeError


@settings(max_examples=50)
@given(mechanisms, seeds)
def test_the_difference_is_the_step_to_the_other_configuration(mechanism, seed):
    rng = np.random.default_rng(seed)
    q0, q1 = mechanism.random(rng, (2, 3))
    v = mechanism.difference(q0, q1)
    reached = mechanism.integrate(q0, v)
    np.testing.assert_allclose(mechanism.difference(reached, q1), 0, atol=1e-12)
    np.testing.assert_allclose(mechanism.poses(reached), mechanism.poses(q1), atol=1e-11)


@settings(max_examples=50)
@given(mechanisms, seeds)
def test_a_step_back_undoes_a_step(mechanism, seed):
    rng = np.random.default_rng(seed)
    q, v = mechanism.random(rng), 0.5 * rng.standard_normal(mechanism.nv)
    there = mechanism.integrate(q, v)
    np.testing.assert_allclose(mechanism.difference(q, there), v, atol=1e-12)
    np.testing.assert_allclose(mechanism.difference(there, q), -v, atol=1e-12)
    np.testing.assert_array_equal(mechanism.integrate(q, np.zeros(mechanism.nv))[mechanism.space.scalars_q],
                                  q[mechanism.space.scalars_q])  # fmt: skip


@settings(max_examples=50)
@given(mechanisms, seeds)
def test_random_and_neutral_configurations_are_inside_the_limits(mechanism, seed):
    q = mechanism.random(np.random.default_rng(seed), 50)
    assert mechanism.space.within_limits(q).all()
    assert mechanism.space.within_limits(mechanism.neutral()).all()
    np.testing.assert_allclose(mechanism.clamp(q), q, atol=1e-15)
    mechanism.q = q[0]
    np.testing.assert_allclose(mechanism.q, q[0], atol=1e-15)


def test_the_same_rng_gives_the_same_configurations():
    builder = Builder()
    builder.spherical("b", "x", "y")
    builder.prismatic("p", "y", "z", limits=(0, 3))
    mechanism = builder.build()
    first, second = (mechanism.random(np.random.default_rng(4), 5) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.shape == (5, 5)


def test_values_with_a_single_limit_are_sampled_from_that_limit():
    base = Link("base")
    for name, lower, upper in (("low", 10.0, np.inf), ("high", -np.inf, -10.0), ("none", -np.inf, np.inf)):
        joint = Joint(name, dof="EZ", lower=lower, upper=upper)
        base.add_child(joint)
        joint.add_child(Link(f"after_{name}"))
    mechanism = Mechanism(base)
    q = mechanism.random(np.random.default_rng(0), 1000)
    assert ((q[:, 0] >= 10) & (q[:, 0] <= 10 + 2 * np.pi)).all()
    assert ((q[:, 1] <= -10) & (q[:, 1] >= -10 - 2 * np.pi)).all()
    assert np.ptp(q[:, 2]) > 6
    assert mechanism.neutral().tolist() == [10, -10, 0]


def test_clamping_brings_values_inside_and_quaternions_to_unit_length():
    builder = Builder()
    builder.revolute("r", "x", "y", limits=(-1, 1))
    builder.spherical("b", "y", "z")
    mechanism = builder.build()
    np.testing.assert_allclose(
        mechanism.clamp([[5, 2, 0, 0, 0], [-5, 0, 0, 3, 4]]), [[1, 1, 0, 0, 0], [-1, 0, 0, 0.6, 0.8]]
    )
    assert not mechanism.space.within_limits([2, 1, 0, 0, 0])


def test_a_step_of_a_spherical_joint_rotates_about_its_own_axes():
    builder = Builder()
    builder.spherical("b", "x", "y")
    mechanism = builder.build()
    q = mechanism.integrate(mechanism.integrate(mechanism.neutral(), [0, 0, np.pi / 2]), [np.pi / 2, 0, 0])
    # first x goes to y, then the body turns about that: its z ends along the world's x
    np.testing.assert_allclose(mechanism.pose("y", q)[:3, 2], (1, 0, 0), atol=1e-15)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda m: m.integrate([0, 1, 0, 0, 0], [0] * 5), ShapeError),
        (lambda m: m.integrate([0] * 4, [0] * 4), ShapeError),
        (lambda m: m.difference([0, 1, 0, 0, 0], 3), ShapeError),
        (lambda m: m.clamp([0, 1, 0, 0, np.nan]), NotFinite),
        (lambda m: m.integrate([0, 1, 0, 0, 0], [0, 0, 0, np.inf]), NotFinite),
        (lambda m: m.set_q("abcde"), ShapeError),
        (lambda m: m.clamp(None), (ShapeError, NotFinite)),
    ],
)
def test_invalid_vectors_are_rejected(call, error):
    builder = Builder()
    builder.revolute("r", "x", "y")
    builder.spherical("b", "y", "z")
    with pytest.raises(error):
        call(builder.build())
