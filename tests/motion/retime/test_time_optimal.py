"""Retiming: limits hold at every moment, the path is kept to, and it could not be much faster."""

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


def random_path(seed: int, knots: int, mechanism: mk.Mechanism | None = None) -> Path:
    mechanism = mechanism or panda()
    return Path(mechanism, mechanism.space.random(np.random.default_rng(seed), knots))


def worst(rates: Array, limits: Array | float) -> float:
    return float((np.abs(rates) / limits).max())


def moments(trajectory: Trajectory, count: int = 3000) -> Array:
    return np.sort(np.random.default_rng(1).uniform(0.0, trajectory.duration, count))


@settings(max_examples=5)
@given(SEEDS, st.integers(2, 6), st.floats(0.2, 5.0), st.floats(0.5, 20.0))
def test_velocity_and_acceleration_hold_at_every_moment(seed: int, knots: int, fast: float, gain: float) -> None:
    found = retime(random_path(seed, knots), fast, gain)
    _, v, a = found.state(moments(found))
    assert worst(v, fast) <= 1.0 + 1e-6
    assert worst(a, gain) <= 1.0 + 1e-6


@settings(max_examples=4)
@given(SEEDS)
def test_limits_of_each_joint_hold_for_themselves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fast, gain = rng.uniform(0.1, 3.0, panda().nv), rng.uniform(0.5, 10.0, panda().nv)
    found = retime(random_path(seed, 3), fast, gain)
    _, v, a = found.state(moments(found))
    assert worst(v, fast) <= 1.0 + 1e-6
    assert worst(a, gain) <= 1.0 + 1e-6


@settings(max_examples=4)
@given(SEEDS, st.floats(0.2, 5.0), st.floats(0.5, 20.0))
def test_a_straight_way_takes_as_long_as_the_closed_form_says(seed: int, fast: float, gain: float) -> None:
    path = random_path(seed, 2)
    far = np.abs(path.mechanism.difference(*path.q)).max()
    ramp = fast / gain
    closed = far / fast + ramp if far > fast * ramp else 2.0 * np.sqrt(far / gain)
    assert retime(path, fast, gain).duration == pytest.approx(closed, rel=1e-9)


def test_a_straight_way_with_jerk_takes_as_long_as_the_closed_form_says() -> None:
    mechanism = mk.gallery.planar_2r()
    # far enough for seven pieces: ramps of jerk, of acceleration, and a stretch at full velocity
    found = retime(Path(mechanism, [[0.0, 0.0], [2.0, 1.0]]), 1.0, 2.0, 10.0)
    assert found.duration == pytest.approx(2.0 / 1.0 + 1.0 / 2.0 + 2.0 / 10.0, abs=1e-9)


def test_on_a_smooth_path_some_limit_is_met_nearly_everywhere() -> None:
    mechanism, t = mk.gallery.planar_3r(), np.linspace(0.0, 1.0, 60)
    q = np.stack([np.sin(3.0 * t), 1.5 * t**2, np.cos(4.0 * t)], axis=1)
    found = retime(Path(mechanism, q), 1.0, 3.0)
    _, v, a = found.state(moments(found))
    share = np.maximum(np.abs(v).max(axis=1), np.abs(a).max(axis=1) / 3.0)
    assert (share > 0.98).mean() > 0.97


@settings(max_examples=4)
@given(SEEDS, st.integers(2, 5), st.booleans())
def test_velocity_and_acceleration_are_the_derivatives_of_q(seed: int, knots: int, with_jerk: bool) -> None:
    found = retime(random_path(seed, knots), 1.0, 4.0, 50.0 if with_jerk else None)
    h = 1e-5
    t = moments(found, 200).clip(2 * h, found.duration - 2 * h)
    jumps = np.abs(t[:, None] - found.profile.breaks).min(axis=1) < 2 * h
    t = t[~jumps]
    (q0, v0, _), (_, v, a), (q1, v1, _) = (found.state(t + one) for one in (-h, 0.0, h))
    assert np.abs((q1 - q0) / (2 * h) - v).max() < 1e-4
    assert np.abs((v1 - v0) / (2 * h) - a).max() < 1e-2


def test_balls_turn_as_their_velocities_say() -> None:
    mechanism = mk.gallery.humanoid()
    found = retime(random_path(3, 4, mechanism), 1.0, 3.0)
    h, t = 1e-5, moments(found, 100).clip(1e-3, found.duration - 1e-3)
    t = t[np.abs(t[:, None] - found.profile.breaks).min(axis=1) > 2 * h]
    (q0, _, _), (_, v, _), (q1, _, _) = (found.state(t + one) for one in (-h, 0.0, h))
    assert np.abs(mechanism.difference(q0, q1) / (2 * h) - v).max() < 1e-4
    _, v, a = found.state(moments(found))
    assert worst(v, 1.0) <= 1.0 + 1e-6
    assert worst(a, 3.0) <= 1.0 + 1e-6


@settings(max_examples=4)
@given(SEEDS, st.integers(2, 5), st.sampled_from([1e-3, 5e-3, 0.05]))
def test_the_trajectory_stays_by_the_straight_ways_and_stands_at_both_ends(seed: int, knots: int, near: float) -> None:
    path = random_path(seed, knots)
    found = retime(path, 1.0, 4.0, deviation=near)
    q, _, _ = found.state(moments(found, 500))
    ways = path.q[1:] - path.q[:-1]
    share = np.einsum("nkj,kj->nk", q[:, None] - path.q[:-1], ways) / (ways**2).sum(axis=1)
    off = q[:, None] - path.q[:-1] - share.clip(0.0, 1.0)[..., None] * ways
    assert np.abs(off).max(axis=2).min(axis=1).max() <= near + 1e-9
    assert found.deviation <= near
    assert np.allclose(found.q[[0, -1]], path.q[[0, -1]], atol=1e-12)
    assert np.abs(found.v[[0, -1]]).max() < 1e-6


def test_every_knot_is_passed() -> None:
    path = random_path(5, 6)
    curve = fit_joint_spline(path, 5e-3)
    q = curve.at(curve.s)[0]
    for knot in path.q:
        assert np.abs(q - knot).max(axis=1).min() < 1e-12


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


def test_half_the_velocity_and_a_quarter_of_the_acceleration_take_twice_as_long() -> None:
    path = random_path(8, 4)
    once, twice = retime(path, 2.0, 4.0), retime(path, 1.0, 1.0)
    assert twice.duration == pytest.approx(2.0 * once.duration, rel=1e-3)


def test_loops_stay_shut_along_a_trajectory() -> None:
    mechanism = mk.gallery.five_bar()
    drive = {"left_crank_joint": np.linspace(0.0, 0.6, 13), "right_crank_joint": np.linspace(0.0, -0.3, 13)}
    home = mechanism.q
    starts = {name: home[mechanism.space.q_names.index(name)] for name in drive}
    q = mechanism.assembly_path({name: starts[name] + values for name, values in drive.items()}).q
    found = retime(Path(mechanism, q), 1.0, 5.0)
    closed = Path(mechanism, found.at(moments(found, 60)))
    assert closed.closure_error() < 1e-9
    assert worst(found.v, 1.0) <= 1.0 + 1e-6


def test_velocities_come_from_the_file_where_none_are_given() -> None:
    mechanism = mk.gallery.planar_2r()
    names = list(mechanism.space.v_names)
    path = Path(mechanism, [[0.0, 0.0], [2.0, 1.0]])
    with pytest.raises(LimitsError, match=r"no limit of velocity is known for .*velocity="):
        retime(path, acceleration=4.0)
    mechanism.extras["limits"] = {names[0]: {"velocity": 0.5, "effort": 3.0}, names[1]: {"velocity": 9.0}}
    found = retime(path, acceleration=4.0)
    assert np.abs(found.v[:, 0]).max() == pytest.approx(0.5, rel=1e-3)
    faster = retime(path, {names[0]: 1.0}, 4.0)
    assert np.abs(faster.v[:, 0]).max() == pytest.approx(1.0, rel=1e-3)


def test_samples_are_where_they_were_asked_for() -> None:
    found = retime(random_path(2, 3), 1.0, 4.0, samples=50)
    assert len(found) == 50
    assert not found.q.flags.writeable
    fine = found.resample(0.001)
    assert np.allclose(np.diff(fine.times)[:-1], 0.001)
    assert fine.times[-1] == found.duration
    assert np.allclose(found.at(fine.times), fine.q)
    assert np.array_equal(found.at([-1.0, found.duration + 1.0]), found.at([0.0, found.duration]))
    assert np.array_equal(found.to_path().s, found.times)


def test_what_cannot_be_timed_is_refused() -> None:
    path, home = random_path(1, 3), panda().q
    for wrong in (0.0, -1.0, {"panda_joint1": 0.0}, np.zeros(8)):
        with pytest.raises(LimitsError, match="must be above 0"):
            retime(path, wrong, 1.0)
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
    with pytest.raises(ShapeError, match="one knot"):
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


def test_knots_where_nothing_moves_do_not_matter() -> None:
    path = random_path(4, 3)
    doubled = Path(panda(), path.q[[0, 0, 1, 1, 1, 2]])
    assert retime(doubled, 1.0, 4.0).duration == pytest.approx(retime(path, 1.0, 4.0).duration, rel=1e-9)
