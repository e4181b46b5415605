"""Retiming: limits hold at all times, the trajectory stays on the path, and the duration is nearly optimal."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.errors import InvalidArgument, LimitsError, NotFinite, ShapeError, UnknownName
from mechanik.motion.follow import Path
from mechanik.motion.retime import Trajectory, retime
from mechanik.motion.retime.joint_spline import fit_joint_spline
from mechanik.motion.retime.time_optimal import grid_along, profile_from_speeds, time_optimal_profile
from mechanik.spatial.array import Array

pytest.importorskip("ruckig")

SEEDS = st.integers(0, 2**32 - 1)


@functools.cache
def panda() -> mk.Mechanism:
    return mk.gallery.panda()


def random_path(seed: int, count: int, mechanism: mk.Mechanism | None = None) -> Path:
    mechanism = mechanism or panda()
    return Path(mechanism, mechanism.space.random(np.random.default_rng(seed), count))


def largest_ratio(rates: Array, limits: Array | float) -> float:
    return float((np.abs(rates) / limits).max())


def sample_times(trajectory: Trajectory, count: int = 3000) -> Array:
    return np.sort(np.random.default_rng(1).uniform(0.0, trajectory.duration, count))


@settings(max_examples=5)
@given(SEEDS, st.integers(2, 6), st.floats(0.2, 5.0), st.floats(0.5, 20.0))
def test_velocity_and_acceleration_limits_hold_at_all_times(
    seed: int, count: int, max_velocity: float, max_acceleration: float
) -> None:
    trajectory = retime(random_path(seed, count), max_velocity, max_acceleration)
    _, v, a = trajectory.state(sample_times(trajectory))
    assert largest_ratio(v, max_velocity) <= 1.0 + 1e-6
    assert largest_ratio(a, max_acceleration) <= 1.0 + 1e-6


@settings(max_examples=4)
@given(SEEDS)
def test_limits_hold_for_each_joint(seed: int) -> None:
    rng = np.random.default_rng(seed)
    max_velocity, max_acceleration = rng.uniform(0.1, 3.0, panda().nv), rng.uniform(0.5, 10.0, panda().nv)
    trajectory = retime(random_path(seed, 3), max_velocity, max_acceleration)
    _, v, a = trajectory.state(sample_times(trajectory))
    assert largest_ratio(v, max_velocity) <= 1.0 + 1e-6
    assert largest_ratio(a, max_acceleration) <= 1.0 + 1e-6


@settings(max_examples=4)
@given(SEEDS, st.floats(0.2, 5.0), st.floats(0.5, 20.0))
def test_straight_segment_has_the_closed_form_duration(seed: int, max_velocity: float, max_acceleration: float) -> None:
    path = random_path(seed, 2)
    distance = np.abs(path.mechanism.difference(*path.q)).max()
    ramp = max_velocity / max_acceleration
    closed = (
        distance / max_velocity + ramp if distance > max_velocity * ramp else 2.0 * np.sqrt(distance / max_acceleration)
    )
    assert retime(path, max_velocity, max_acceleration).duration == pytest.approx(closed, rel=1e-9)


def test_straight_segment_with_jerk_limit_has_the_closed_form_duration() -> None:
    mechanism = mk.gallery.planar_2r()
    # long enough for all seven phases: ramps of jerk and acceleration, and a phase at full velocity
    trajectory = retime(Path(mechanism, [[0.0, 0.0], [2.0, 1.0]]), 1.0, 2.0, 10.0)
    assert trajectory.duration == pytest.approx(2.0 / 1.0 + 1.0 / 2.0 + 2.0 / 10.0, abs=1e-9)


def test_some_limit_is_active_almost_everywhere_on_a_smooth_path() -> None:
    mechanism, t = mk.gallery.planar_3r(), np.linspace(0.0, 1.0, 60)
    q = np.stack([np.sin(3.0 * t), 1.5 * t**2, np.cos(4.0 * t)], axis=1)
    trajectory = retime(Path(mechanism, q), 1.0, 3.0)
    _, v, a = trajectory.state(sample_times(trajectory))
    share = np.maximum(np.abs(v).max(axis=1), np.abs(a).max(axis=1) / 3.0)
    assert (share > 0.98).mean() > 0.97


@settings(max_examples=4)
@given(SEEDS, st.integers(2, 5), st.booleans())
def test_velocity_and_acceleration_are_the_derivatives_of_q(seed: int, count: int, with_jerk: bool) -> None:
    trajectory = retime(random_path(seed, count), 1.0, 4.0, 50.0 if with_jerk else None)
    h = 1e-5
    t = sample_times(trajectory, 200).clip(2 * h, trajectory.duration - 2 * h)
    is_near_break = np.abs(t[:, None] - trajectory.profile.breaks).min(axis=1) < 2 * h
    t = t[~is_near_break]
    (q0, v0, _), (_, v, a), (q1, v1, _) = (trajectory.state(t + offset) for offset in (-h, 0.0, h))
    assert np.abs((q1 - q0) / (2 * h) - v).max() < 1e-4
    assert np.abs((v1 - v0) / (2 * h) - a).max() < 1e-2


def test_angular_velocity_is_the_derivative_of_a_spherical_joint() -> None:
    mechanism = mk.gallery.humanoid()
    trajectory = retime(random_path(3, 4, mechanism), 1.0, 3.0)
    h, t = 1e-5, sample_times(trajectory, 100).clip(1e-3, trajectory.duration - 1e-3)
    t = t[np.abs(t[:, None] - trajectory.profile.breaks).min(axis=1) > 2 * h]
    (q0, _, _), (_, v, _), (q1, _, _) = (trajectory.state(t + offset) for offset in (-h, 0.0, h))
    assert np.abs(mechanism.difference(q0, q1) / (2 * h) - v).max() < 1e-4
    _, v, a = trajectory.state(sample_times(trajectory))
    assert largest_ratio(v, 1.0) <= 1.0 + 1e-6
    assert largest_ratio(a, 3.0) <= 1.0 + 1e-6


@settings(max_examples=4)
@given(SEEDS, st.integers(2, 5), st.sampled_from([1e-3, 5e-3, 0.05]))
def test_trajectory_stays_within_the_deviation_and_is_at_rest_at_its_ends(
    seed: int, count: int, tolerance: float
) -> None:
    path = random_path(seed, count)
    trajectory = retime(path, 1.0, 4.0, deviation=tolerance)
    q, _, _ = trajectory.state(sample_times(trajectory, 500))
    segments = path.q[1:] - path.q[:-1]
    share = np.einsum("nkj,kj->nk", q[:, None] - path.q[:-1], segments) / (segments**2).sum(axis=1)
    deviation = q[:, None] - path.q[:-1] - share.clip(0.0, 1.0)[..., None] * segments
    assert np.abs(deviation).max(axis=2).min(axis=1).max() <= tolerance + 1e-9
    assert trajectory.deviation <= tolerance
    assert np.allclose(trajectory.q[[0, -1]], path.q[[0, -1]], atol=1e-12)
    assert np.abs(trajectory.v[[0, -1]]).max() < 1e-6


def test_spline_passes_through_every_waypoint() -> None:
    path = random_path(5, 6)
    curve = fit_joint_spline(path, 5e-3)
    q = curve.at(curve.s)[0]
    for waypoint in path.q:
        assert np.abs(q - waypoint).max(axis=1).min() < 1e-12


@pytest.mark.parametrize("mechanism", [mk.gallery.panda, mk.gallery.humanoid], ids=["panda", "humanoid"])
@pytest.mark.parametrize("seed", range(4))
def test_profile_on_a_grid_takes_as_long_as_that_of_toppra(seed: int, mechanism: Callable[[], mk.Mechanism]) -> None:
    pytest.importorskip("toppra")
    from toppra_profile import toppra_speeds

    curve = fit_joint_spline(random_path(seed, 4, mechanism()), 5e-3)
    s = grid_along(curve, 300)
    rng = np.random.default_rng(seed)
    velocity, acceleration = rng.uniform(0.5, 2.0, curve.mechanism.nv), rng.uniform(1.0, 5.0, curve.mechanism.nv)
    expected = profile_from_speeds(s, toppra_speeds(curve, velocity, acceleration, s))
    profile = time_optimal_profile(curve, velocity, acceleration, s)
    # toppra exceeds limits by up to 1e-7, which shortens the time at sharp corners, where the speed is nearly 0
    assert profile.duration == pytest.approx(expected.duration, rel=2e-4)


def test_half_velocity_and_quarter_acceleration_double_the_duration() -> None:
    path = random_path(8, 4)
    once, twice = retime(path, 2.0, 4.0), retime(path, 1.0, 1.0)
    assert twice.duration == pytest.approx(2.0 * once.duration, rel=1e-3)


def test_loops_are_closed_along_a_trajectory() -> None:
    mechanism = mk.gallery.five_bar()
    inputs = {"left_crank_joint": np.linspace(0.0, 0.6, 13), "right_crank_joint": np.linspace(0.0, -0.3, 13)}
    home = mechanism.q
    starts = {name: home[mechanism.space.q_names.index(name)] for name in inputs}
    q = mechanism.assembly_path({name: starts[name] + values for name, values in inputs.items()}).q
    trajectory = retime(Path(mechanism, q), 1.0, 5.0)
    closed = Path(mechanism, trajectory.at(sample_times(trajectory, 60)))
    assert closed.closure_error() < 1e-9
    assert largest_ratio(trajectory.v, 1.0) <= 1.0 + 1e-6


def test_velocity_limits_of_the_file_are_the_default() -> None:
    mechanism = mk.gallery.planar_2r()
    names = list(mechanism.space.v_names)
    path = Path(mechanism, [[0.0, 0.0], [2.0, 1.0]])
    with pytest.raises(LimitsError, match=r"no velocity limit is known for .*velocity="):
        retime(path, acceleration=4.0)
    mechanism.extras["limits"] = {names[0]: {"velocity": 0.5, "effort": 3.0}, names[1]: {"velocity": 9.0}}
    trajectory = retime(path, acceleration=4.0)
    assert np.abs(trajectory.v[:, 0]).max() == pytest.approx(0.5, rel=1e-3)
    faster = retime(path, {names[0]: 1.0}, 4.0)
    assert np.abs(faster.v[:, 0]).max() == pytest.approx(1.0, rel=1e-3)


def test_samples_are_at_the_requested_times() -> None:
    trajectory = retime(random_path(2, 3), 1.0, 4.0, samples=50)
    assert len(trajectory) == 50
    assert not trajectory.q.flags.writeable
    fine = trajectory.resample(0.001)
    assert np.allclose(np.diff(fine.times)[:-1], 0.001)
    assert fine.times[-1] == trajectory.duration
    assert np.allclose(trajectory.at(fine.times), fine.q)
    assert np.array_equal(trajectory.at([-1.0, trajectory.duration + 1.0]), trajectory.at([0.0, trajectory.duration]))
    assert np.array_equal(trajectory.to_path().s, trajectory.times)


def test_invalid_arguments_of_retime_raise() -> None:
    path, home = random_path(1, 3), panda().q
    for invalid in (0.0, -1.0, {"panda_joint1": 0.0}, np.zeros(8)):
        with pytest.raises(LimitsError, match="must be above 0"):
            retime(path, invalid, 1.0)
    with pytest.raises(NotFinite):
        retime(path, float("nan"), 1.0)
    with pytest.raises(NotFinite):
        retime(path, 1.0, [np.nan] * 8)
    with pytest.raises(ShapeError, match="8 numbers"):
        retime(path, [1.0, 2.0], 1.0)
    with pytest.raises(UnknownName, match="Did you mean"):
        retime(path, {"panda_jont1": 1.0}, 1.0)
    with pytest.raises(LimitsError, match="acceleration"):
        retime(path, 1.0)
    with pytest.raises(ShapeError, match="one waypoint"):
        retime(Path(panda(), [home]), 1.0, 1.0)
    with pytest.raises(ShapeError, match="same configuration"):
        retime(Path(panda(), [home, home, home]), 1.0, 1.0)
    with pytest.raises(ShapeError, match="deviation"):
        retime(path, 1.0, 1.0, deviation=0.0)
    with pytest.raises(ShapeError, match="samples"):
        retime(path, 1.0, 1.0, samples=1)
    with pytest.raises(InvalidArgument, match="path"):
        retime(path.q, 1.0, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="dt"):
        retime(path, 1.0, 1.0).resample(0.0)


def test_repeated_waypoints_do_not_change_the_duration() -> None:
    path = random_path(4, 3)
    doubled = Path(panda(), path.q[[0, 0, 1, 1, 1, 2]])
    assert retime(doubled, 1.0, 4.0).duration == pytest.approx(retime(path, 1.0, 4.0).duration, rel=1e-9)
