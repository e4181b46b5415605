"""Gaps of cylinders and hulls beside coal's and MuJoCo's; where they differ, support functions refute the others."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from mechanik.kernels.distance.collision_layout import BOX, CAPSULE, CYLINDER, HULL, SPHERE

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from distance_peers import CoalGaps, MujocoGaps
from shape_pairs import NAMES, differing, random_pairs, separation

KINDS = [
    (other, kind) for kind in (CYLINDER, HULL) for other in (SPHERE, CAPSULE, BOX, CYLINDER, HULL) if other <= kind
]
HOW = [("free", "free"), ("near", "free"), ("near", "tiny"), ("grid", "grid"), ("grid", "same"), ("free", "far")]
EACH_PAIR = pytest.mark.parametrize("kinds", KINDS, ids=[f"{NAMES[a]}-{NAMES[b]}" for a, b in KINDS])
EACH_WAY = pytest.mark.parametrize(("turns", "places"), HOW)


def some_pairs(kinds, turns, places, zeros=False):
    return random_pairs(np.random.default_rng([1, *kinds]), *kinds, 150, turns, places, zeros)


def assert_ours_are_right(pairs, theirs):
    """Depths of the others are often larger than need be: such a shift parts the shapes, but a shorter one does too."""
    off, wrong, theirs_wrong = differing(pairs, pairs.gaps(), theirs)
    assert not wrong.any()
    assert not (off & ~theirs_wrong).any()


@EACH_PAIR
@EACH_WAY
@pytest.mark.parametrize("zeros", [False, True])
def test_gaps_are_coals_or_coals_are_refuted(kinds, turns, places, zeros):
    pytest.importorskip("coal", exc_type=ImportError)
    pairs = some_pairs(kinds, turns, places, zeros)
    assert_ours_are_right(pairs, CoalGaps().gaps(pairs)[0])


@pytest.mark.mujoco
@EACH_PAIR
@EACH_WAY
def test_gaps_are_mujocos_or_mujocos_are_refuted(kinds, turns, places):
    pytest.importorskip("mujoco", exc_type=ImportError)
    peer = MujocoGaps()
    pairs = peer.as_kept(some_pairs(kinds, turns, places))
    assert_ours_are_right(pairs, peer.gaps(pairs)[0])


@pytest.mark.mujoco
@EACH_PAIR
def test_gaps_of_random_pairs_are_mujocos_to_1e_9(kinds):
    pytest.importorskip("mujoco", exc_type=ImportError)
    peer = MujocoGaps()
    pairs = peer.as_kept(some_pairs(kinds, "free", "free"))
    np.testing.assert_allclose(pairs.gaps()[:, 0], peer.gaps(pairs)[0][:, 0], rtol=0.0, atol=1e-9)


@EACH_PAIR
@EACH_WAY
@pytest.mark.parametrize("zeros", [False, True])
def test_gaps_are_what_the_normal_says(kinds, turns, places, zeros):
    pairs = some_pairs(kinds, turns, places, zeros)
    found = pairs.gaps()
    scale = 100.0 if places == "far" else 1.0
    np.testing.assert_allclose(separation(pairs, found[:, 1:4]), found[:, 0], rtol=0.0, atol=1e-11 * scale)
