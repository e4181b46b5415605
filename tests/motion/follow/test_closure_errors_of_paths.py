"""Loop closure errors of paths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.motion.follow import Path
from mechanik.motion.follow.joint_path import _tilt_xy, max_closure_errors
from mechanik.objectives.constraint_relations import closure_relations
from mechanik.objectives.relation import evaluate_relation

NAMES = ("hexapod", "four_bar", "delta_robot", "bennett", "sarrus", "planar_3rrr", "rover", "slider_crank")
LOOPS = {name: mk.gallery.make(name) for name in NAMES}


def closure_error_by_reference(mechanism: mk.Mechanism, q: np.ndarray) -> float:
    """Largest closure error by the reference residual."""
    relations = [r for closure in mechanism.closures.values() for r in closure_relations(mechanism, closure)]
    return max(float(np.abs(evaluate_relation(mechanism, relation, q)[0]).max()) for relation in relations)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from((1e-9, 1e-3, 1.0)))
@pytest.mark.parametrize("name", NAMES)
def test_closure_errors_agree_with_the_reference_residual(name, seed, size):
    mechanism = LOOPS[name]
    v = size * np.random.default_rng(seed).standard_normal((4, mechanism.nv))
    q = mechanism.integrate(np.tile(mechanism.q, (4, 1)), v)
    expected = [closure_error_by_reference(mechanism, row) for row in q]
    np.testing.assert_allclose(max_closure_errors(mechanism, q), expected, rtol=0.0, atol=1e-12)
    assert Path(mechanism, q).closure_error() == pytest.approx(max(expected), abs=1e-12)


@given(st.floats(0.0, np.pi), st.floats(-np.pi, np.pi))
@example(0.0, 0.0)
@example(1e-10, 1.0)
@example(np.pi, 0.0)
def test_tilt_of_an_axis_is_its_angle_to_z(angle, side):
    """At an angle of pi the direction of the tilt is arbitrary."""
    u = np.array([np.sin(angle) * np.cos(side), np.sin(angle) * np.sin(side), np.cos(angle)])
    assert np.linalg.norm(_tilt_xy(u)) == pytest.approx(angle, abs=1e-12)


def test_closure_error_is_zero_without_loops():
    ur5 = mk.gallery.ur5()
    assert Path(ur5, ur5.space.random(np.random.default_rng(1), 3)).closure_error() == 0.0
