"""Joint-space paths: configurations between waypoints, and sizes of the steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.errors import InvalidArgument, NotFinite, ShapeError
from mechanik.motion.follow import Path

UR5 = mk.gallery.ur5()
STEWART = mk.gallery.stewart_platform()


def lifted_platform(height: float) -> np.ndarray:
    """Configuration with the platform `height` (m) higher and closed loops."""
    X = STEWART.pose("platform").copy()
    X[2, 3] += height
    return mk.Solver(STEWART, mk.PoseGoal("platform", X)).solve(q0=STEWART.q).require().q


TWO_HEIGHTS = Path(STEWART, [lifted_platform(0.0), lifted_platform(0.05)])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_path_passes_exactly_through_its_waypoints(seed, count):
    rng = np.random.default_rng(seed)
    q, s = UR5.space.random(rng, count), np.cumsum(rng.uniform(0.1, 2.0, count))
    np.testing.assert_array_equal(Path(UR5, q, s).at(s), q)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.5))
def test_densified_path_is_the_same_path_in_short_steps(seed, step):
    path = Path(UR5, UR5.space.random(np.random.default_rng(seed), 3))
    finer = path.densify(step)
    assert finer.largest_step <= step * (1 + 1e-12)
    np.testing.assert_allclose(finer.length, path.length, rtol=1e-12)
    np.testing.assert_allclose(finer.q, path.at(finer.s), atol=1e-12)


def test_path_is_straight_between_waypoints_and_constant_beyond_its_ends():
    a, b = UR5.space.random(np.random.default_rng(1), 2)
    path = Path(UR5, [a, b], [2.0, 4.0])
    np.testing.assert_allclose(path.at([2.5, 3.0]), [0.75 * a + 0.25 * b, 0.5 * (a + b)])
    np.testing.assert_array_equal(path.at([-1.0, 9.0]), [a, b])


def test_steps_are_the_largest_change_of_a_dof():
    q = np.zeros((3, 6))
    q[1] = 0.1, -0.3, 0.0, 0.0, 0.0, 0.0
    q[2] = 0.1, -0.3, 0.0, 0.4, 0.0, 0.0
    path = Path(UR5, q)
    np.testing.assert_allclose(path.steps, [0.3, 0.4])
    assert (path.largest_step, path.median_step) == pytest.approx((0.4, 0.35))
    assert path.length == pytest.approx(np.sqrt(0.1) + 0.4)


def test_loops_are_closed_between_waypoints_where_the_straight_segment_violates_them():
    a, b = TWO_HEIGHTS.q
    straight = STEWART.integrate(a, 0.5 * STEWART.space.difference(a, b))
    assert Path(STEWART, [straight]).closure_error() > 1e-5
    assert Path(STEWART, [TWO_HEIGHTS.at(0.5)]).closure_error() < 1e-9
    assert TWO_HEIGHTS.densify(0.01).closure_error() < 1e-9


def test_path_does_not_move_its_mechanism_and_is_read_only():
    before = STEWART.q.copy()
    TWO_HEIGHTS.at(0.3)
    np.testing.assert_array_equal(STEWART.q, before)
    with pytest.raises(ValueError, match="read-only"):
        TWO_HEIGHTS.q[0, 0] = 1.0


@pytest.mark.parametrize(
    ("q", "s", "error"),
    [
        ([], None, ShapeError),
        (np.zeros(6), None, ShapeError),
        (np.zeros((2, 5)), None, ShapeError),
        (np.full((2, 6), np.nan), None, NotFinite),
        (np.zeros((2, 6)), [0.0], ShapeError),
        (np.zeros((2, 6)), [1.0, 1.0], ShapeError),
        (np.zeros((2, 6)), [0.0, np.inf], NotFinite),
        (np.zeros((2, 6)), "no", ShapeError),
    ],
)
def test_invalid_waypoints_and_parameters_raise(q, s, error):
    with pytest.raises(error):
        Path(UR5, q, s)


def test_invalid_arguments_of_path_methods_raise():
    path = Path(UR5, np.zeros((2, 6)))
    with pytest.raises(NotFinite):
        path.at(np.nan)
    with pytest.raises(ShapeError, match="above 0"):
        path.densify(0.0)
    with pytest.raises(InvalidArgument):
        Path("ur5", np.zeros((2, 6)))
