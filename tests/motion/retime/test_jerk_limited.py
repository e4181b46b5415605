"""Retiming within a jerk: no limit is broken at any moment, and hardly any time is wasted."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from least_time_bound import least_time

import mechanik as mk
from mechanik.motion.follow import Path
from mechanik.motion.retime import Trajectory, retime
from mechanik.motion.retime.jerk_limited import jerk_limited_profile, optimize_pace, pace_constraints
from mechanik.motion.retime.joint_spline import fit_joint_spline
from mechanik.motion.retime.time_profile import breakpoints
from mechanik.spatial.array import Array

pytest.importorskip("ruckig")

SEEDS = st.integers(0, 2**32 - 1)
NEARLY = 0.02
"""A share: what the grid in time costs one answer more than another. On smooth curves it was 0.05 % at most; at
corners, which the pieces of the pace have to resolve, up to 1.4 %, in 14 paths."""


@functools.cache
def panda() -> mk.Mechanism:
    return mk.gallery.panda(hand=False)


def cornered(seed: int, knots: int = 3) -> Path:
    return Path(panda(), panda().space.random(np.random.default_rng(seed), knots))


def smooth(seed: int) -> Path:
    rng, t = np.random.default_rng(seed), np.linspace(0.0, 1.0, 20)[:, None]
    return Path(panda(), panda().q + 0.5 * np.sin(t * rng.uniform(1.0, 4.0, 7) + rng.uniform(0.0, 3.0, 7)))


def moments(trajectory: Trajectory, count: int = 5000) -> Array:
    """At random, and on both sides of all jumps."""
    t = np.random.default_rng(1).uniform(0.0, trajectory.duration, count)
    beside = trajectory.profile.breaks[:, None] + 1e-9 * trajectory.duration * np.array([-1.0, 1.0])
    return np.sort(np.concatenate([t, beside.ravel().clip(0.0, trajectory.duration)]))


def broken(found: Trajectory, velocity: Array | float, acceleration: Array | float, jerk: Array | float) -> float:
    t = moments(found)
    _, v, a = found.state(t)
    rates = (v, velocity), (a, acceleration), (found.jerk(t), jerk)
    return max(float((np.abs(rate) / limit).max()) for rate, limit in rates)


@settings(max_examples=6)
@given(SEEDS, st.integers(3, 5), st.floats(0.2, 5.0), st.floats(0.5, 20.0), st.floats(-1.0, 5.0), st.floats(-3.5, -1.0))
def test_no_limit_is_broken_at_any_moment(
    seed: int, knots: int, fast: float, gain: float, power: float, near: float
) -> None:
    found = retime(cornered(seed, knots), fast, gain, 10.0**power, deviation=10.0**near)
    assert broken(found, fast, gain, 10.0**power) <= 1.0 + 1e-6


@settings(max_examples=3)
@given(SEEDS)
def test_limits_of_each_joint_hold_for_themselves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    limits = rng.uniform(0.1, 3.0, 7), rng.uniform(0.5, 10.0, 7), 10.0 ** rng.uniform(0.0, 3.0, 7)
    assert broken(retime(smooth(seed), *limits), *limits) <= 1.0 + 1e-6


@settings(max_examples=3)
@given(SEEDS, st.floats(0.5, 3.0), st.floats(0.0, 3.0))
def test_the_curve_is_kept_and_both_ends_stand_without_acceleration(seed: int, fast: float, power: float) -> None:
    path = smooth(seed)
    found = retime(path, fast, 5.0, 10.0**power)
    assert np.allclose(found.q[[0, -1]], path.q[[0, -1]], atol=1e-9)
    assert np.abs(found.v[[0, -1]]).max() < 1e-6
    assert np.abs(found.a[[0, -1]]).max() < 1e-4
    s = found.profile.at(moments(found))[0]
    assert (np.diff(s) >= -1e-12).all()
    assert s[0] >= 0.0
    assert s[-1] <= found.curve.length * (1.0 + 1e-12)


@settings(max_examples=3)
@given(SEEDS)
def test_acceleration_and_jerk_are_the_derivatives_of_velocity(seed: int) -> None:
    found = retime(smooth(seed), 1.0, 4.0, 40.0)
    h = 1e-5
    t = moments(found, 300).clip(2 * h, found.duration - 2 * h)
    t = t[np.abs(t[:, None] - breakpoints(found.curve, found.profile)).min(axis=1) > 2 * h]
    assert len(t) > 200
    (_, v0, a0), (_, _, a), (_, v1, a1) = (found.state(t + one) for one in (-h, 0.0, h))
    assert np.abs((v1 - v0) / (2 * h) - a).max() < 1e-5
    assert np.abs((a1 - a0) / (2 * h) - found.jerk(t)).max() < 1e-3


@settings(max_examples=4)
@given(SEEDS, st.floats(0.5, 3.0), st.floats(1.0, 10.0), st.floats(0.5, 3.0))
def test_a_straight_way_takes_as_long_as_by_the_closed_form(seed: int, fast: float, gain: float, power: float) -> None:
    path = cornered(seed, 2)
    exact = retime(path, fast, gain, 10.0**power).duration  # by ruckig
    found = jerk_limited_profile(fit_joint_spline(path, 5e-3), *(np.full(7, one) for one in (fast, gain, 10.0**power)))
    assert exact * (1.0 - 1e-9) <= found.duration <= exact * 1.005


@pytest.mark.parametrize("path", [smooth(2), cornered(5)])
def test_a_jerk_that_does_not_bind_takes_as_long_as_none(path: Path) -> None:
    # the profile without a jerk limit is on a grid as well, and 1.4 % above the least in one of 14 paths
    free = retime(path, 2.0, 5.0).duration
    assert retime(path, 2.0, 5.0, 1e7).duration == pytest.approx(free, rel=NEARLY)


@pytest.mark.parametrize(("path", "jerk"), [(smooth(1), 10.0), (smooth(1), 50.0), (cornered(2), 30.0)])
def test_it_takes_at_most_a_tenth_longer_than_a_bound_from_below(path: Path, jerk: float) -> None:
    limits = np.full(7, 2.0), np.full(7, 5.0), np.full(7, jerk)
    curve = fit_joint_spline(path, 5e-3)
    found = jerk_limited_profile(curve, *limits)
    allowed = pace_constraints(curve, found.base, *limits)
    bound = least_time(allowed, optimize_pace(allowed, 1e-3))
    assert bound <= found.duration <= 1.1 * bound


@settings(max_examples=3)
@given(SEEDS, st.sampled_from([(1.3, 1.0, 1.0), (1.0, 1.3, 1.0), (1.0, 1.0, 1.3)]), st.floats(0.5, 3.0))
def test_a_limit_that_grows_does_not_make_it_slower(seed: int, grown: tuple[float, float, float], power: float) -> None:
    limits = np.array([2.0, 5.0, 10.0**power])
    path = smooth(seed)
    assert retime(path, *(limits * grown)).duration <= retime(path, *limits).duration * (1.0 + NEARLY)


@settings(max_examples=3)
@given(SEEDS, st.floats(0.2, 5.0), st.floats(0.5, 3.0))
def test_limits_that_grow_with_time_itself_only_change_the_clock(seed: int, faster: float, power: float) -> None:
    path, jerk = smooth(seed), 10.0**power
    once, again = retime(path, 2.0, 5.0, jerk), retime(path, 2.0 * faster, 5.0 * faster**2, jerk * faster**3)
    assert again.duration * faster == pytest.approx(once.duration, rel=NEARLY)


@settings(max_examples=2)
@given(SEEDS, st.floats(0.5, 3.0))
def test_the_way_back_takes_as_long(seed: int, power: float) -> None:
    path = smooth(seed)
    there, back = (retime(Path(panda(), q), 2.0, 5.0, 10.0**power) for q in (path.q, path.q[::-1]))
    assert back.duration == pytest.approx(there.duration, rel=NEARLY)


def test_loops_stay_shut_and_balls_keep_their_limits() -> None:
    mechanism = mk.gallery.five_bar()
    drive = {"left_crank_joint": np.linspace(0.0, 0.6, 13), "right_crank_joint": np.linspace(0.0, -0.3, 13)}
    starts = {name: mechanism.q[mechanism.space.q_names.index(name)] for name in drive}
    q = mechanism.assembly_path({name: starts[name] + values for name, values in drive.items()}).q
    found = retime(Path(mechanism, q), 1.0, 5.0, 30.0)
    assert Path(mechanism, found.q).closure_error() < 1e-9
    rates = found.v, found.a, found.jerk(found.times)
    assert (
        max(float(np.abs(rate).max()) / most for rate, most in zip(rates, (1.0, 5.0, 30.0), strict=True)) <= 1.0 + 1e-6
    )
    human = mk.gallery.humanoid()
    path = Path(human, human.space.random(np.random.default_rng(3), 3))
    assert broken(retime(path, 1.0, 3.0, 20.0), 1.0, 3.0, 20.0) <= 1.0 + 1e-6


def test_it_is_the_same_every_time() -> None:
    once, again = (retime(smooth(4), 2.0, 5.0, 30.0) for _ in range(2))
    assert once.duration == again.duration
    assert np.array_equal(once.q, again.q)


def test_some_limit_is_nearly_met_nearly_everywhere() -> None:
    found = retime(smooth(7), 2.0, 5.0, 30.0)
    t = moments(found)
    _, v, a = found.state(t)
    rates = (v, 2.0), (a, 5.0), (found.jerk(t), 30.0)
    share = np.max([np.abs(rate).max(axis=1) / limit for rate, limit in rates], axis=0)
    assert (share > 0.9).mean() > 0.95
