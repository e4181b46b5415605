"""Distances of spheres, capsules, boxes and half-spaces against coal and MuJoCo; where they differ, a proof decides.

By the support functions, a distance d with normal n is refuted if the separation along n is less than d, or if it is
more than d along another direction.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from mechanik.kernels.distance.collision_layout import BOX, CAPSULE, HALF_SPACE, SPHERE

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from distance_peers import CoalGaps, MujocoGaps
from shape_pairs import NAMES, TURNS, Pairs, as_shapes, differing, random_pairs

KINDS = [
    pair
    for pair in itertools.combinations_with_replacement((SPHERE, CAPSULE, BOX, HALF_SPACE), 2)
    if pair != (HALF_SPACE, HALF_SPACE)
]
EACH_PAIR = pytest.mark.parametrize(("kind", "other_kind"), KINDS, ids=[f"{NAMES[a]}-{NAMES[b]}" for a, b in KINDS])


@pytest.fixture(scope="module")
def coal():
    pytest.importorskip("coal", exc_type=ImportError)
    return CoalGaps()


@pytest.fixture(scope="module")
def mujoco():
    pytest.importorskip("mujoco", exc_type=ImportError)
    return MujocoGaps()


def sample_pairs(kind, other_kind, rotations="free"):
    """Pairs that are separated, overlapping, touching up to rounding, and nearly concentric."""
    rng = np.random.default_rng([kind, other_kind])
    pairs = random_pairs(rng, kind, other_kind, 400, rotations)
    results = pairs.gaps()
    touching = pairs.moved(slice(pairs.count, None), np.eye(3), -results[:, :1] * results[:, 1:4])
    nested = random_pairs(rng, kind, other_kind, 200, rotations, "tiny")
    return joined(pairs, touching, nested)


def joined(*parts):
    S = [part.S.rows[: part.count] for part in parts] + [part.S.rows[part.count :] for part in parts]
    X = [part.X[: part.count] for part in parts] + [part.X[part.count :] for part in parts]
    return Pairs(as_shapes(np.concatenate(S)), parts[0].P, np.concatenate(X))


def assert_correct(pairs, peer, rotations):
    results, (peer_results, _) = pairs.gaps(), peer.gaps(pairs)
    differs, is_wrong, peer_is_wrong = differing(pairs, results, peer_results)
    assert not is_wrong.any()
    assert not (differs & ~peer_is_wrong).any()
    if rotations == "free":  # for nearly parallel or concentric shapes both may fail
        assert not (differs & (results[:, 0] > 1e-6)).any()


@EACH_PAIR
@pytest.mark.parametrize("rotations", TURNS)
def test_distances_equal_coal_or_coal_is_refuted(coal, kind, other_kind, rotations):
    assert_correct(sample_pairs(kind, other_kind, rotations), coal, rotations)


@pytest.mark.mujoco
@EACH_PAIR
@pytest.mark.parametrize("rotations", TURNS)
def test_distances_equal_mujoco_or_mujoco_is_refuted(mujoco, kind, other_kind, rotations):
    assert_correct(sample_pairs(kind, other_kind, rotations), mujoco, rotations)


@EACH_PAIR
def test_distances_of_random_pairs_equal_coal_to_1e_9(coal, kind, other_kind):
    pairs = random_pairs(np.random.default_rng(9), kind, other_kind, 1000)
    np.testing.assert_allclose(pairs.gaps()[:, 0], coal.gaps(pairs)[0][:, 0], rtol=0.0, atol=1e-9)
