"""How far loops stand open along a path."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.motion.follow import Path
from mechanik.motion.follow.joint_path import _lean, max_closure_errors
from mechanik.objectives.constraint_relations import closure_relations
from mechanik.objectives.relation import evaluate_relation

NAMES = ("hexapod", "four_bar", "delta_robot", "bennett", "sarrus", "planar_3rrr", "rover", "slider_crank")
LOOPS = {name: mk.gallery.make(name) for name in NAMES}


def one_by_one(mechanism: mk.Mechanism, q: np.ndarray) -> float:
    """By the rows as they are written down for people."""
    relations = [r for closure in mechanism.closures.values() for r in closure_relations(mechanism, closure)]
    return max(float(np.abs(evaluate_relation(mechanism, relation, q)[0]).max()) for relation in relations)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from((1e-9, 1e-3, 1.0)))
@pytest.mark.parametrize("name", NAMES)
def test_loops_that_are_torn_open_stand_open_by_their_rows(name, seed, how_far):
    mechanism = LOOPS[name]
    v = how_far * np.random.default_rng(seed).standard_normal((4, mechanism.nv))
    q = mechanism.integrate(np.tile(mechanism.q, (4, 1)), v)
    wanted = [one_by_one(mechanism, one) for one in q]
    np.testing.assert_allclose(max_closure_errors(mechanism, q), wanted, rtol=0.0, atol=1e-12)
    assert Path(mechanism, q).closure_error() == pytest.approx(max(wanted), abs=1e-12)


@given(st.floats(0.0, np.pi), st.floats(-np.pi, np.pi))
@example(0.0, 0.0)
@example(1e-10, 1.0)
@example(np.pi, 0.0)
def test_an_axis_leans_by_its_angle_to_z(angle, side):
    """Upside down it has no side, and one is chosen."""
    u = np.array([np.sin(angle) * np.cos(side), np.sin(angle) * np.sin(side), np.cos(angle)])
    assert np.linalg.norm(_lean(u)) == pytest.approx(angle, abs=1e-12)


def test_where_there_are_no_loops_none_is_open():
    ur5 = mk.gallery.ur5()
    assert Path(ur5, ur5.space.random(np.random.default_rng(1), 3)).closure_error() == 0.0
