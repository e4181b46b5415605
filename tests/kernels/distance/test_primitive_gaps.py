"""Gaps between spheres, capsules, boxes and half-spaces: laws, proofs without any other library, and hand examples."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanik.kernels.distance.collision_layout import BOX, CAPSULE, HALF_SPACE, SHAPE_KIND, SHAPE_SIZE, SPHERE

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from shape_pairs import (
    NAMES,
    PLACES,
    TURNS,
    Pairs,
    add_balls,
    free_turns,
    of_quaternions,
    off_surface,
    random_pairs,
    separation,
)

KINDS = [
    pair
    for pair in itertools.combinations_with_replacement((SPHERE, CAPSULE, BOX, HALF_SPACE), 2)
    if pair != (HALF_SPACE, HALF_SPACE)
]
EACH_PAIR = pytest.mark.parametrize(("kind", "other"), KINDS, ids=[f"{NAMES[a]}-{NAMES[b]}" for a, b in KINDS])
QUATERNIONS = {
    "none": (1.0, 0.0, 0.0, 0.0),
    "quarter about x": (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0),
    "eighth about x": (math.cos(math.pi / 8), math.sin(math.pi / 8), 0.0, 0.0),
}


def pair(kind, size, other, other_size, position, turn="none"):
    """A shape at the world's origin and another one at `position`."""
    S = np.zeros((2, 24))
    S[:, SHAPE_KIND] = kind, other
    for row, sizes in zip(S, (size, other_size), strict=True):
        row[SHAPE_SIZE : SHAPE_SIZE + len(sizes)] = sizes
    P = np.zeros((1, 3))
    add_balls(S, P)
    R = of_quaternions(np.array([QUATERNIONS["none"], QUATERNIONS[turn]])).reshape(2, 9)
    return Pairs(S, P, np.concatenate([R, np.array([(0.0, 0.0, 0.0), position])], axis=1))


def gap(*arguments, **options):
    found = pair(*arguments, **options).gaps()[0]
    return found[0], found[1:4], found[4:7], found[7:]


def assert_proven(pairs, found):
    """The gap is as large as the separation along the normal, and its points are on the surfaces."""
    n, size = pairs.count, pairs.size
    d, normal, a, b = found[:, 0], found[:, 1:4], found[:, 4:7], found[:, 7:]
    assert np.isfinite(found).all()
    assert np.abs(np.linalg.norm(normal, axis=1) - 1.0).max() < 1e-14
    assert (np.abs(b - a - d[:, None] * normal).max(axis=1) <= 1e-14 * size).all()
    assert (np.abs(separation(pairs, normal) - d) <= 2e-13 * size).all()
    # points: where sides are even, rounding of the gap by 1e-14 moves them by the root of that along the side
    assert (np.abs(off_surface(pairs, slice(0, n), a)) <= 1e-10 * size).all()
    assert (np.abs(off_surface(pairs, slice(n, 2 * n), b)) <= 1e-10 * size).all()


@EACH_PAIR
@pytest.mark.parametrize("zeros", [False, True], ids=["solid", "flat"])
@pytest.mark.parametrize("turns", TURNS)
def test_a_gap_is_proven_by_its_normal_and_its_points(kind, other, zeros, turns):
    rng = np.random.default_rng([kind, other, zeros])
    for places in PLACES:
        pairs = random_pairs(rng, kind, other, 3000, turns, places, zeros)
        assert_proven(pairs, pairs.gaps())


@EACH_PAIR
def test_seen_from_the_other_shape_normal_and_points_are_swapped(kind, other):
    pairs = random_pairs(np.random.default_rng(1), kind, other, 3000)
    found, back = pairs.gaps(), pairs.gaps(swapped=True)
    np.testing.assert_allclose(back[:, 0], found[:, 0], atol=1e-14)
    np.testing.assert_allclose(back[:, 1:4], -found[:, 1:4], atol=1e-8)
    np.testing.assert_allclose(back[:, 4:7], found[:, 7:], atol=1e-8)


@EACH_PAIR
def test_a_rigid_motion_of_both_moves_normal_and_points_along(kind, other):
    rng = np.random.default_rng(2)
    pairs = random_pairs(rng, kind, other, 3000)
    R, p = free_turns(rng, 1)[0], rng.normal(size=3)
    found, moved = pairs.gaps(), pairs.moved(slice(None), R, p).gaps()
    np.testing.assert_allclose(moved[:, 0], found[:, 0], atol=1e-14)
    np.testing.assert_allclose(moved[:, 1:4], found[:, 1:4] @ R.T, atol=1e-8)
    np.testing.assert_allclose(moved[:, 4:7], found[:, 4:7] @ R.T + p, atol=1e-8)


@EACH_PAIR
def test_shifting_the_second_shape_along_the_normal_opens_the_gap_by_as_much(kind, other):
    pairs = random_pairs(np.random.default_rng(3), kind, other, 3000)
    found, n = pairs.gaps(), pairs.count
    for s in (1e-3, 0.1, 2.0):
        apart = pairs.moved(slice(n, None), np.eye(3), s * found[:, 1:4]).gaps()
        # in each other, another side may be the nearer one after the shift: never less than s is gained
        assert (apart[:, 0] >= found[:, 0] + s - 1e-13).all()
        out = found[:, 0] >= 0.0
        np.testing.assert_allclose(apart[out, 0], found[out, 0] + s, atol=1e-13)


@EACH_PAIR
def test_shapes_touch_once_they_are_shifted_by_their_gap(kind, other):
    pairs = random_pairs(np.random.default_rng(4), kind, other, 3000)
    found = pairs.gaps()
    touching = pairs.moved(slice(pairs.count, None), np.eye(3), -found[:, :1] * found[:, 1:4])
    assert np.abs(touching.gaps()[:, 0]).max() < 2e-14
    assert_proven(touching, touching.gaps())


@EACH_PAIR
def test_a_gap_changes_with_the_velocities_of_its_points_along_the_normal(kind, other):
    rng = np.random.default_rng(5)
    pairs = random_pairs(rng, kind, other, 1000)
    found, n = pairs.gaps(), pairs.count
    d, normal, a, b = found[:, 0], found[:, 1:4], found[:, 4:7], found[:, 7:]
    for rows, point, sign in ((slice(0, n), a, -1.0), (slice(n, None), b, 1.0)):
        v, w = rng.normal(size=(2, n, 3))
        slope = sign * np.einsum("ni,ni->n", normal, v + np.cross(w, point))

        def after(step, rows=rows, v=v, w=w):
            q = np.concatenate([np.ones((n, 1)), 0.5 * step * w], axis=1)
            return pairs.moved(rows, of_quaternions(q), step * v).gaps()[:, 0]

        h = 1e-5
        forward, backward = (after(h) - d) / h, (d - after(-h)) / h
        smooth = np.abs(forward - backward) < 1e-2  # else another side, edge or corner takes over in between
        assert smooth.mean() > 0.99
        assert np.abs(0.5 * (forward + backward) - slope)[smooth].max() < 1e-4
        near, far = (after(h) - after(-h)) / (2.0 * h), (after(2.0 * h) - after(-2.0 * h)) / (4.0 * h)
        assert np.median(np.abs((4.0 * near - far) / 3.0 - slope)[smooth]) < 1e-9


@pytest.mark.parametrize("kind", [SPHERE, CAPSULE, BOX], ids=NAMES.get)
def test_no_other_direction_is_a_shorter_way_out_of_a_box(kind):
    """Against the faces of the convex hull of all differences of corners, less the radii."""
    hull = pytest.importorskip("scipy.spatial").ConvexHull
    pairs = random_pairs(np.random.default_rng(6), kind, BOX, 300)
    X = pairs.X.copy()
    X[pairs.count :, 9:] = 0.6 * X[pairs.count :, 9:] + 0.4 * X[: pairs.count, 9:]
    pairs, n = Pairs(pairs.S, pairs.P, X), pairs.count
    found, inside = pairs.gaps(), 0
    for k in range(n):
        (first, r), (second, s) = core(pairs, k), core(pairs, n + k)
        faces = hull((second[:, None] - first).reshape(-1, 3)).equations
        core_gap = (found[k, 0] + r + s) if (faces[:, 3] < 0.0).all() else None
        if core_gap is not None:
            inside += 1
            assert core_gap == pytest.approx(faces[:, 3].max(), abs=1e-13)
    assert inside > 50


def core(pairs, row):
    """The corners of a point, a segment or a box, and the radius about them."""
    S, X = pairs.S[row], pairs.X[row]
    x, y, z = S[SHAPE_SIZE : SHAPE_SIZE + 3]
    half, r = {SPHERE: ((0, 0, 0), x), CAPSULE: ((0, 0, y), x), BOX: ((x, y, z), 0.0)}[S[SHAPE_KIND]]
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3))) * half
    return np.unique(corners @ X[:9].reshape(3, 3).T + X[9:], axis=0), r


SIZES = st.one_of(st.just(0.0), st.floats(1e-6, 1e3))
COORDINATES = st.one_of(st.sampled_from([0.0, -1.0, 1.0, 0.5]), st.floats(-1e3, 1e3))


@given(
    st.sampled_from(KINDS),
    st.lists(SIZES, min_size=6, max_size=6),
    st.lists(COORDINATES, min_size=6, max_size=6),
    st.lists(COORDINATES, min_size=8, max_size=8),
)
def test_any_sizes_at_any_place_give_a_proven_gap(kinds, sizes, positions, turns):
    S = np.zeros((2, 24))
    S[:, SHAPE_KIND], S[:, SHAPE_SIZE : SHAPE_SIZE + 3] = kinds, np.reshape(sizes, (2, 3))
    q = np.reshape(turns, (2, 4))
    q[np.linalg.norm(q, axis=1) < 1e-3] = QUATERNIONS["none"]
    P = np.zeros((1, 3))
    add_balls(S, P)
    pairs = Pairs(S, P, np.concatenate([of_quaternions(q).reshape(2, 9), np.reshape(positions, (2, 3))], axis=1))
    assert_proven(pairs, pairs.gaps())


def test_spheres_with_one_centre_are_as_deep_as_both_radii():
    d, n, a, b = gap(SPHERE, [0.3], SPHERE, [0.2], (0, 0, 0))
    assert d == -0.5
    np.testing.assert_array_equal(n, [0, 0, 1])
    np.testing.assert_array_equal(b - a, [0, 0, -0.5])


def test_capsules_that_cross_part_at_right_angles_to_both():
    d, n, _, _ = gap(CAPSULE, [0.1, 1.0], CAPSULE, [0.2, 1.0], (0, 0, 0), turn="quarter about x")
    assert d == pytest.approx(-0.3, abs=1e-15)
    np.testing.assert_allclose(np.abs(n), [1, 0, 0], atol=1e-15)


def test_parallel_capsules_meet_in_the_middle_of_where_they_lie_side_by_side():
    d, n, a, b = gap(CAPSULE, [0.1, 1.0], CAPSULE, [0.1, 1.0], (0.5, 0, 1.5))
    assert d == pytest.approx(0.3)
    np.testing.assert_allclose(n, [1, 0, 0], atol=1e-15)
    np.testing.assert_allclose([a, b], [(0.1, 0, 0.75), (0.4, 0, 0.75)], atol=1e-15)


@pytest.mark.parametrize(("height", "d"), [(1.5, 0.4), (1.1, 0.0), (1.0, -0.1)], ids=["above", "on", "in"])
def test_a_box_over_a_table_meets_it_in_the_middle_of_what_is_over_it(height, d):
    found, n, a, b = gap(BOX, [1.0, 1.0, 1.0], BOX, [0.2, 0.2, 0.1], (0.9, 0, height))
    assert found == pytest.approx(d, abs=1e-15)
    np.testing.assert_array_equal(n, [0, 0, 1])
    np.testing.assert_allclose(a, [0.85, 0, 1.0], atol=1e-13)
    np.testing.assert_allclose(b, [0.85, 0, height - 0.1], atol=1e-13)


def test_a_capsule_that_lies_over_the_rim_of_a_box_meets_it_in_the_middle_of_what_is_over_it():
    d, n, a, _ = gap(BOX, [1.0, 1.0, 1.0], CAPSULE, [0.1, 1.0], (0, -1.0, 1.3), turn="quarter about x")
    assert d == pytest.approx(0.2)
    np.testing.assert_allclose(n, [0, 0, 1], atol=1e-15)
    np.testing.assert_allclose(a, [0, -0.5, 1.0], atol=1e-13)


def test_a_capsule_whose_axis_is_outside_a_box_may_still_reach_into_it():
    d, n, _, _ = gap(BOX, [1.0, 1.0, 1.0], CAPSULE, [0.3, 0.5], (1.2, 0, 0))
    assert d == pytest.approx(-0.1)
    np.testing.assert_array_equal(n, [1, 0, 0])


def test_a_sphere_in_a_box_leaves_through_the_nearest_face():
    d, n, a, b = gap(BOX, [1.0, 2.0, 3.0], SPHERE, [0.5], (0.0, 1.5, 0.0))
    assert d == -1.0
    np.testing.assert_array_equal(n, [0, 1, 0])
    np.testing.assert_array_equal([a, b], [(0, 2, 0), (0, 1, 0)])


def test_boxes_that_meet_in_an_edge_and_a_face_are_as_far_apart_as_the_edge_is_high():
    d, n, _, b = gap(BOX, [1.0, 1.0, 1.0], BOX, [0.5, 0.5, 0.5], (0, 0, 2.0), turn="eighth about x")
    assert d == pytest.approx(1.0 - math.sqrt(0.5), abs=1e-15)
    np.testing.assert_array_equal(n, [0, 0, 1])
    np.testing.assert_allclose(b, [0, 0, 2.0 - math.sqrt(0.5)], atol=1e-14)


def test_boxes_that_cross_edge_over_edge_part_along_the_third_axis():
    pairs = pair(BOX, [0.5, 0.5, 3.0], BOX, [0.5, 3.0, 0.5], (1.0, 0, 0))
    turn = of_quaternions(np.array([[math.cos(math.pi / 8), 0, 0, math.sin(math.pi / 8)]]))[0]
    tilt = of_quaternions(np.array([[math.cos(math.pi / 8), 0, math.sin(math.pi / 8), 0]]))[0]
    X = pairs.X.copy()
    X[0, :9], X[1, :9], X[1, 9:] = turn.ravel(), tilt.ravel(), (2.0, 0.0, 0.0)
    d, nx = Pairs(pairs.S, pairs.P, X).gaps()[0, :2]
    assert d == pytest.approx(2.0 - 2.0 * math.sqrt(0.5), abs=1e-14)
    assert nx == pytest.approx(1.0)


def test_half_spaces_that_face_each_other_have_a_distance_and_others_do_not():
    facing = pair(HALF_SPACE, [], HALF_SPACE, [], (0.0, 0.0, 2.0))
    X = facing.X.copy()
    X[1, :9] = (1, 0, 0, 0, -1, 0, 0, 0, -1)
    assert Pairs(facing.S, facing.P, X).gaps()[0, 0] == 2.0
    assert facing.gaps()[0, 0] < -1e6
