"""Gaps of spheres, capsules, boxes and half-spaces beside coal's and MuJoCo's; where they differ, a proof decides.

A gap d with the normal n is refuted if the shapes are less than d apart along n, by their support functions, or more
than d along another direction.
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
from shape_pairs import NAMES, TURNS, Pairs, differing, random_pairs

KINDS = [
    pair
    for pair in itertools.combinations_with_replacement((SPHERE, CAPSULE, BOX, HALF_SPACE), 2)
    if pair != (HALF_SPACE, HALF_SPACE)
]
EACH_PAIR = pytest.mark.parametrize(("kind", "other"), KINDS, ids=[f"{NAMES[a]}-{NAMES[b]}" for a, b in KINDS])


@pytest.fixture(scope="module")
def coal():
    pytest.importorskip("coal", exc_type=ImportError)
    return CoalGaps()


@pytest.fixture(scope="module")
def mujoco():
    pytest.importorskip("mujoco", exc_type=ImportError)
    return MujocoGaps()


def some_pairs(kind, other, turns="free"):
    """Apart, in each other, touching up to rounding, and with one centre."""
    rng = np.random.default_rng([kind, other])
    pairs = random_pairs(rng, kind, other, 400, turns)
    found = pairs.gaps()
    touching = pairs.moved(slice(pairs.count, None), np.eye(3), -found[:, :1] * found[:, 1:4])
    nested = random_pairs(rng, kind, other, 200, turns, "tiny")
    return joined(pairs, touching, nested)


def joined(*many):
    S = [one.S[: one.count] for one in many] + [one.S[one.count :] for one in many]
    X = [one.X[: one.count] for one in many] + [one.X[one.count :] for one in many]
    return Pairs(np.concatenate(S), many[0].P, np.concatenate(X))


def assert_ours_are_right(pairs, peer, turns):
    ours, (theirs, _) = pairs.gaps(), peer.gaps(pairs)
    off, wrong, theirs_wrong = differing(pairs, ours, theirs)
    assert not wrong.any()
    assert not (off & ~theirs_wrong).any()
    if turns == "free":  # nearly parallel shapes, and those with one centre, are beyond both at times
        assert not (off & (ours[:, 0] > 1e-6)).any()


@EACH_PAIR
@pytest.mark.parametrize("turns", TURNS)
def test_gaps_are_coals_or_coals_are_refuted(coal, kind, other, turns):
    assert_ours_are_right(some_pairs(kind, other, turns), coal, turns)


@pytest.mark.mujoco
@EACH_PAIR
@pytest.mark.parametrize("turns", TURNS)
def test_gaps_are_mujocos_or_mujocos_are_refuted(mujoco, kind, other, turns):
    assert_ours_are_right(some_pairs(kind, other, turns), mujoco, turns)


@EACH_PAIR
def test_random_pairs_in_each_other_or_not_are_coals_to_1e_9(coal, kind, other):
    pairs = random_pairs(np.random.default_rng(9), kind, other, 1000)
    np.testing.assert_allclose(pairs.gaps()[:, 0], coal.gaps(pairs)[0][:, 0], rtol=0.0, atol=1e-9)
