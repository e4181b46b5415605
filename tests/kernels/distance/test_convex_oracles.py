"""Distances of cylinders and hulls against coal and MuJoCo; where they differ, support functions refute the peer."""

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
    (first, second)
    for second in (CYLINDER, HULL)
    for first in (SPHERE, CAPSULE, BOX, CYLINDER, HULL)
    if first <= second
]
ARRANGEMENTS = [
    ("free", "free"),
    ("near", "free"),
    ("near", "tiny"),
    ("grid", "grid"),
    ("grid", "same"),
    ("free", "far"),
]
EACH_PAIR = pytest.mark.parametrize("kinds", KINDS, ids=[f"{NAMES[a]}-{NAMES[b]}" for a, b in KINDS])
EACH_ARRANGEMENT = pytest.mark.parametrize(("rotations", "positions"), ARRANGEMENTS)


def sample_pairs(kinds, rotations, positions, zeros=False):
    return random_pairs(np.random.default_rng([1, *kinds]), *kinds, 150, rotations, positions, zeros)


def assert_correct(pairs, peer_results):
    """Depths of the peers are often too large: the translation separates the shapes, but a shorter one does too."""
    differs, is_wrong, peer_is_wrong = differing(pairs, pairs.gaps(), peer_results)
    assert not is_wrong.any()
    assert not (differs & ~peer_is_wrong).any()


@EACH_PAIR
@EACH_ARRANGEMENT
@pytest.mark.parametrize("zeros", [False, True])
def test_distances_equal_coal_or_coal_is_refuted(kinds, rotations, positions, zeros):
    pytest.importorskip("coal", exc_type=ImportError)
    pairs = sample_pairs(kinds, rotations, positions, zeros)
    assert_correct(pairs, CoalGaps().gaps(pairs)[0])


@pytest.mark.mujoco
@EACH_PAIR
@EACH_ARRANGEMENT
def test_distances_equal_mujoco_or_mujoco_is_refuted(kinds, rotations, positions):
    pytest.importorskip("mujoco", exc_type=ImportError)
    peer = MujocoGaps()
    pairs = peer.as_stored(sample_pairs(kinds, rotations, positions))
    assert_correct(pairs, peer.gaps(pairs)[0])


@pytest.mark.mujoco
@EACH_PAIR
def test_distances_of_random_pairs_equal_mujoco_to_1e_9(kinds):
    pytest.importorskip("mujoco", exc_type=ImportError)
    peer = MujocoGaps()
    pairs = peer.as_stored(sample_pairs(kinds, "free", "free"))
    np.testing.assert_allclose(pairs.gaps()[:, 0], peer.gaps(pairs)[0][:, 0], rtol=0.0, atol=1e-9)


@EACH_PAIR
@EACH_ARRANGEMENT
@pytest.mark.parametrize("zeros", [False, True])
def test_distances_equal_the_separation_along_the_normal(kinds, rotations, positions, zeros):
    pairs = sample_pairs(kinds, rotations, positions, zeros)
    results = pairs.gaps()
    scale = 100.0 if positions == "far" else 1.0
    np.testing.assert_allclose(separation(pairs, results[:, 1:4]), results[:, 0], rtol=0.0, atol=1e-11 * scale)
