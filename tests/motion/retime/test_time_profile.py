"""The squared rate along a base profile: its constraints, its optimum, and the resulting time profile."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.motion.follow import Path
from mechanik.motion.retime.jerk_limited import SquaredRateConstraints, optimize_squared_rate, squared_rate_constraints
from mechanik.motion.retime.joint_spline import fit_joint_spline
from mechanik.motion.retime.time_profile import CubicProfile, fit_spline_profile, reparameterize
from mechanik.spatial.array import Array

SEEDS = st.integers(0, 2**32 - 1)


@functools.cache
def profile() -> CubicProfile:
    return fit_spline_profile(3.0 * np.linspace(0.0, 1.0, 31), lambda t: 2.0 * (t / 3.0) ** 2 * (3.0 - 2.0 * t / 3.0))


@functools.cache
def limits() -> SquaredRateConstraints:
    arm = mk.gallery.planar_2r()
    curve = fit_joint_spline(Path(arm, [[0.0, 0.0], [0.6, 0.9], [1.2, 0.3]]), 5e-3)
    base = fit_spline_profile(profile().t, lambda t: 0.5 * curve.length * profile().at(t)[0])
    return squared_rate_constraints(curve, base, np.full(2, 2.0), np.full(2, 5.0), np.full(2, 30.0))


def random_coefficients(seed: int, count: int) -> Array:
    return np.random.default_rng(seed).uniform(0.3, 2.0, count)


@settings(max_examples=20)
@given(SEEDS)
def test_slacks_are_convex_and_slack_change_is_their_derivative(seed: int) -> None:
    b_a, b_b = random_coefficients(seed, 32), random_coefficients(seed + 1, 32)
    change = limits().slack_change(b_b - b_a, limits().at_samples(b_a)[0])
    slacks = limits().slacks(b_a)
    assert (limits().slacks(b_b) >= slacks + change - 1e-9 * np.abs(slacks + change)).all()
    h = 1e-6
    numeric = (limits().slacks(b_a + h * (b_b - b_a)) - limits().slacks(b_a - h * (b_b - b_a))) / (2 * h)
    assert np.allclose(numeric, change, atol=1e-6 * np.abs(change).max())


@settings(max_examples=20)
@given(SEEDS)
def test_weighted_gradient_is_the_transpose_of_slack_change(seed: int) -> None:
    b, step = random_coefficients(seed, 32), random_coefficients(seed + 1, 32)
    y = limits().at_samples(b)[0]
    change = limits().slack_change(step, y)
    slack_weights = np.random.default_rng(seed).uniform(0.0, 1.0, len(change))
    assert limits().weighted_gradient(slack_weights, y) @ step == pytest.approx(
        slack_weights @ change, rel=1e-9, abs=1e-9 * np.abs(change).sum()
    )


@settings(max_examples=20)
@given(SEEDS)
def test_slack_hessian_agrees_with_squared_slack_changes(seed: int) -> None:
    b, step = random_coefficients(seed, 32), random_coefficients(seed + 1, 32)
    y = limits().at_samples(b)[0]
    change = limits().slack_change(step, y)
    slack_weights = np.random.default_rng(seed).uniform(0.0, 1.0, len(change))
    by_piece, diagonal = limits().slack_hessian(slack_weights, y)
    triples = np.stack([step[:-2], step[1:-1], step[2:]], axis=1)
    fitted = np.einsum("ki,kij,kj", triples, by_piece, triples) + diagonal @ step**2
    assert fitted == pytest.approx(slack_weights @ change**2, rel=1e-9)


def test_steady_squared_rate_meets_a_limit_and_violates_none() -> None:
    slacks = limits().slacks(np.full(32, limits().steady_squared_rate()))
    assert slacks.min() == pytest.approx(0.0, abs=1e-9)


def test_optimal_squared_rate_is_feasible_and_has_the_closed_form_duration() -> None:
    arm = mk.gallery.planar_2r()
    curve = fit_joint_spline(Path(arm, [[0.0, 0.0], [2.0, 1.0]]), 5e-3)
    line = fit_spline_profile(np.linspace(0.0, 3.0, 201), lambda t: 0.5 * curve.length * profile().at(t)[0])
    constraints = squared_rate_constraints(curve, line, np.full(2, 1.0), np.full(2, 2.0), np.full(2, 10.0))
    b = optimize_squared_rate(constraints, 1e-5)
    assert constraints.slacks(b).min() > 0.0
    # ramps of jerk and acceleration and a phase at full velocity; accurate to one of the 200 pieces
    closed = 2.0 / 1.0 + 1.0 / 2.0 + 2.0 / 10.0
    assert closed <= reparameterize(line, line.t, constraints.pieces(b)).duration <= closed * (1.0 + 1.0 / 200.0)


@settings(max_examples=20)
@given(SEEDS)
def test_duration_of_a_profile_is_its_integral(seed: int) -> None:
    pieces = limits().pieces(random_coefficients(seed, 32))
    reparameterized = reparameterize(profile(), profile().t, pieces)
    y, dy, ddy = pieces.T
    points, weights = np.polynomial.legendre.leggauss(40)
    for k in range(0, 30, 7):
        half = 0.5 * (profile().t[k + 1] - profile().t[k])
        x = half * (1.0 + points)
        exact = half * weights @ (y[k] + x * (dy[k] + 0.5 * x * ddy[k])) ** -0.5
        assert reparameterized.t[k + 1] - reparameterized.t[k] == pytest.approx(exact, rel=1e-9)


@settings(max_examples=20)
@given(SEEDS, st.floats(0.5, 2.0))
def test_derivatives_of_a_reparameterized_profile_agree_with_differences(seed: int, stretch: float) -> None:
    reparameterized = reparameterize(profile(), profile().t, limits().pieces(random_coefficients(seed, 32)))
    reparameterized = type(reparameterized)(
        reparameterized.base, reparameterized.u, reparameterized.squared_rate, reparameterized.t, stretch
    )
    h = 1e-5
    t = np.random.default_rng(seed).uniform(0.01, reparameterized.duration - 0.01, 50)
    t = t[np.abs(t[:, None] - reparameterized.breaks).min(axis=1) > 2 * h]
    before, now, after = (reparameterized.at(t + offset) for offset in (-h, 0.0, h))
    for order in range(3):
        assert np.allclose((after[order] - before[order]) / (2 * h), now[order + 1], atol=1e-4), order
    assert reparameterized.at(np.array([0.0, reparameterized.duration]))[0] == pytest.approx([0.0, 2.0], abs=1e-9)


@pytest.mark.parametrize("lowest", [1e-3, 1e-6, 1e-9])
def test_rate_that_nearly_stops_has_the_exact_duration(lowest: float) -> None:
    # y = lowest + x^2 from -1 to 1, whose duration is an inverse hyperbolic sine; Newton steps once diverged here
    reparameterized = reparameterize(
        CubicProfile(np.array([0.0, 2.0]), np.array([[0.0, 1.0, 0.0, 0.0]])),
        np.array([0.0, 2.0]),
        np.array([[lowest + 1.0, -2.0, 2.0]]),
    )
    assert reparameterized.duration == pytest.approx(2.0 * np.arcsinh(lowest**-0.5), rel=1e-6)
    assert reparameterized.at(np.array([0.5, 1.0]) * reparameterized.duration)[0] == pytest.approx([1.0, 2.0], abs=1e-4)


def test_rate_of_one_does_not_change_the_profile() -> None:
    reparameterized = reparameterize(profile(), profile().t, np.tile([1.0, 0.0, 0.0], (30, 1)))
    t = np.linspace(0.0, 3.0, 200)
    assert np.allclose(reparameterized.at(t)[:3], profile().at(t)[:3], atol=1e-9)


@settings(max_examples=20)
@given(st.lists(st.floats(0.01, 1.0), min_size=8, max_size=40))
def test_spline_profile_is_monotonic_and_starts_and_ends_at_rest(widths: list[float]) -> None:
    times = np.append(0.0, np.cumsum(widths))
    fitted = fit_spline_profile(times, lambda t: t / times[-1])
    s, v, a, j = fitted.at(np.linspace(0.0, times[-1], 500))
    assert (np.diff(s) >= -1e-12).all()
    assert np.abs([s[0], v[0], a[0], s[-1] - 1.0, v[-1]]).max() < 1e-9
    assert abs(a[-1]) < 1e-6 * np.abs(a).max()
    assert j[0] > 0.0


def test_spline_profile_of_a_cubic_starts_with_its_jerk() -> None:
    times = np.linspace(0.0, 1.0, 41)
    fitted = fit_spline_profile(times, lambda t: t**3)
    assert np.allclose(fitted.state[:10, 3], 6.0, rtol=0.02)
