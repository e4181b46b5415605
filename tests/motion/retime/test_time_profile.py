"""The pace along a profile: what its limits say, and how it passes in time."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.motion.follow import Path
from mechanik.motion.retime.jerk_limited import PaceConstraints, optimize_pace, pace_constraints
from mechanik.motion.retime.joint_spline import fit_joint_spline
from mechanik.motion.retime.time_profile import CubicProfile, fit_spline_profile, reparameterize
from mechanik.spatial.array import Array

SEEDS = st.integers(0, 2**32 - 1)


@functools.cache
def profile() -> CubicProfile:
    return fit_spline_profile(3.0 * np.linspace(0.0, 1.0, 31), lambda t: 2.0 * (t / 3.0) ** 2 * (3.0 - 2.0 * t / 3.0))


@functools.cache
def limits() -> PaceConstraints:
    arm = mk.gallery.planar_2r()
    curve = fit_joint_spline(Path(arm, [[0.0, 0.0], [0.6, 0.9], [1.2, 0.3]]), 5e-3)
    whole = fit_spline_profile(profile().t, lambda t: 0.5 * curve.length * profile().at(t)[0])
    return pace_constraints(curve, whole, np.full(2, 2.0), np.full(2, 5.0), np.full(2, 30.0))


def paces(seed: int, count: int) -> Array:
    return np.random.default_rng(seed).uniform(0.3, 2.0, count)


@settings(max_examples=20)
@given(SEEDS)
def test_gaps_lie_above_their_tangents_and_change_along_them(seed: int) -> None:
    here, there = paces(seed, 32), paces(seed + 1, 32)
    change = limits().change(there - here, limits().at_places(here)[0])
    gaps = limits().gaps(here)
    assert (limits().gaps(there) >= gaps + change - 1e-9 * np.abs(gaps + change)).all()
    h = 1e-6
    near = (limits().gaps(here + h * (there - here)) - limits().gaps(here - h * (there - here))) / (2 * h)
    assert np.allclose(near, change, atol=1e-6 * np.abs(change).max())


@settings(max_examples=20)
@given(SEEDS)
def test_a_pull_is_the_transpose_of_a_change(seed: int) -> None:
    b, step = paces(seed, 32), paces(seed + 1, 32)
    y = limits().at_places(b)[0]
    change = limits().change(step, y)
    by = np.random.default_rng(seed).uniform(0.0, 1.0, len(change))
    assert limits().pull(by, y) @ step == pytest.approx(by @ change, rel=1e-9, abs=1e-9 * np.abs(change).sum())


@settings(max_examples=20)
@given(SEEDS)
def test_squares_are_those_of_changes(seed: int) -> None:
    b, step = paces(seed, 32), paces(seed + 1, 32)
    y = limits().at_places(b)[0]
    change = limits().change(step, y)
    by = np.random.default_rng(seed).uniform(0.0, 1.0, len(change))
    of_pieces, diagonal = limits().gap_hessian(by, y)
    three = np.stack([step[:-2], step[1:-1], step[2:]], axis=1)
    found = np.einsum("ki,kij,kj", three, of_pieces, three) + diagonal @ step**2
    assert found == pytest.approx(by @ change**2, rel=1e-9)


def test_the_steady_pace_meets_a_limit_and_breaks_none() -> None:
    gaps = limits().gaps(np.full(32, limits().steady_pace()))
    assert gaps.min() == pytest.approx(0.0, abs=1e-9)


def test_the_fastest_pace_is_within_limits_and_takes_as_long_as_the_closed_form_says() -> None:
    arm = mk.gallery.planar_2r()
    curve = fit_joint_spline(Path(arm, [[0.0, 0.0], [2.0, 1.0]]), 5e-3)
    line = fit_spline_profile(np.linspace(0.0, 3.0, 201), lambda t: 0.5 * curve.length * profile().at(t)[0])
    allowed = pace_constraints(curve, line, np.full(2, 1.0), np.full(2, 2.0), np.full(2, 10.0))
    b = optimize_pace(allowed, 1e-5)
    assert allowed.gaps(b).min() > 0.0
    # ramps of jerk, of acceleration, and a stretch at full velocity; nearer than one of the 200 pieces
    closed = 2.0 / 1.0 + 1.0 / 2.0 + 2.0 / 10.0
    assert closed <= reparameterize(line, line.t, allowed.pieces(b)).duration <= closed * (1.0 + 1.0 / 200.0)


@settings(max_examples=20)
@given(SEEDS)
def test_how_long_a_pace_takes_is_its_integral(seed: int) -> None:
    pieces = limits().pieces(paces(seed, 32))
    course = reparameterize(profile(), profile().t, pieces)
    y, rise, bend = pieces.T
    places, weights = np.polynomial.legendre.leggauss(40)
    for k in range(0, 30, 7):
        half = 0.5 * (profile().t[k + 1] - profile().t[k])
        x = half * (1.0 + places)
        exact = half * weights @ (y[k] + x * (rise[k] + 0.5 * x * bend[k])) ** -0.5
        assert course.t[k + 1] - course.t[k] == pytest.approx(exact, rel=1e-9)


@settings(max_examples=20)
@given(SEEDS, st.floats(0.5, 2.0))
def test_a_warped_profile_has_the_derivatives_that_it_says(seed: int, slow: float) -> None:
    course = reparameterize(profile(), profile().t, limits().pieces(paces(seed, 32)))
    course = type(course)(course.base, course.u, course.pace, course.t, slow)
    h = 1e-5
    t = np.random.default_rng(seed).uniform(0.01, course.duration - 0.01, 50)
    t = t[np.abs(t[:, None] - course.breaks).min(axis=1) > 2 * h]
    before, now, after = (course.at(t + one) for one in (-h, 0.0, h))
    for order in range(3):
        assert np.allclose((after[order] - before[order]) / (2 * h), now[order + 1], atol=1e-4), order
    assert course.at(np.array([0.0, course.duration]))[0] == pytest.approx([0.0, 2.0], abs=1e-9)


@pytest.mark.parametrize("lowest", [1e-3, 1e-6, 1e-9])
def test_a_pace_that_nearly_stops_within_a_piece_takes_its_time(lowest: float) -> None:
    # y = lowest + x^2 from -1 to 1, which takes the inverse hyperbolic sine; Newton's steps once ran away here
    course = reparameterize(
        CubicProfile(np.array([0.0, 2.0]), np.array([[0.0, 1.0, 0.0, 0.0]])),
        np.array([0.0, 2.0]),
        np.array([[lowest + 1.0, -2.0, 2.0]]),
    )
    assert course.duration == pytest.approx(2.0 * np.arcsinh(lowest**-0.5), rel=1e-6)
    assert course.at(np.array([0.5, 1.0]) * course.duration)[0] == pytest.approx([1.0, 2.0], abs=1e-4)


def test_a_pace_of_one_changes_nothing() -> None:
    course = reparameterize(profile(), profile().t, np.tile([1.0, 0.0, 0.0], (30, 1)))
    t = np.linspace(0.0, 3.0, 200)
    assert np.allclose(course.at(t)[:3], profile().at(t)[:3], atol=1e-9)


@settings(max_examples=20)
@given(st.lists(st.floats(0.01, 1.0), min_size=8, max_size=40))
def test_a_spline_profile_rises_and_begins_and_ends_with_nothing_but_jerk(widths: list[float]) -> None:
    times = np.append(0.0, np.cumsum(widths))
    found = fit_spline_profile(times, lambda t: t / times[-1])
    s, v, a, j = found.at(np.linspace(0.0, times[-1], 500))
    assert (np.diff(s) >= -1e-12).all()
    assert np.abs([s[0], v[0], a[0], s[-1] - 1.0, v[-1]]).max() < 1e-9
    assert abs(a[-1]) < 1e-6 * np.abs(a).max()
    assert j[0] > 0.0


def test_a_third_power_begins_as_one() -> None:
    times = np.linspace(0.0, 1.0, 41)
    found = fit_spline_profile(times, lambda t: t**3)
    assert np.allclose(found.state[:10, 3], 6.0, rtol=0.02)
