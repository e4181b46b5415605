"""Distances of spheres, capsules, boxes and half-spaces: laws, proofs by support functions, and closed forms."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanik.kernels.distance.collision_layout import BOX, CAPSULE, HALF_SPACE, SPHERE, Shape

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
EACH_PAIR = pytest.mark.parametrize(("kind", "other_kind"), KINDS, ids=[f"{NAMES[a]}-{NAMES[b]}" for a, b in KINDS])
QUATERNIONS = {
    "none": (1.0, 0.0, 0.0, 0.0),
    "quarter about x": (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0),
    "eighth about x": (math.cos(math.pi / 8), math.sin(math.pi / 8), 0.0, 0.0),
}


def pair(kind, size, other_kind, other_size, position, rotation="none"):
    """A shape at the origin of the world and a second shape at `position`."""
    S = Shape.allocate_rows(2)
    for shape, shape_kind, sizes in zip(S, (kind, other_kind), (size, other_size), strict=True):
        shape.kind, shape.sizes[: len(sizes)] = shape_kind, sizes
    P = np.zeros((1, 3))
    add_balls(S, P)
    R = of_quaternions(np.array([QUATERNIONS["none"], QUATERNIONS[rotation]])).reshape(2, 9)
    return Pairs(S, P, np.concatenate([R, np.array([(0.0, 0.0, 0.0), position])], axis=1))


def distance_of(*arguments, **options):
    result = pair(*arguments, **options).gaps()[0]
    return result[0], result[1:4], result[4:7], result[7:]


def assert_proven(pairs, results):
    """The distance equals the separation along the normal, and its points are on the surfaces."""
    count, size = pairs.count, pairs.size
    d, normal, a, b = results[:, 0], results[:, 1:4], results[:, 4:7], results[:, 7:]
    assert np.isfinite(results).all()
    assert np.abs(np.linalg.norm(normal, axis=1) - 1.0).max() < 1e-14
    assert (np.abs(b - a - d[:, None] * normal).max(axis=1) <= 1e-14 * size).all()
    assert (np.abs(separation(pairs, normal) - d) <= 2e-13 * size).all()
    # where faces are parallel, a rounding of the distance by 1e-14 moves the points by its root along the face
    assert (np.abs(off_surface(pairs, slice(0, count), a)) <= 1e-10 * size).all()
    assert (np.abs(off_surface(pairs, slice(count, 2 * count), b)) <= 1e-10 * size).all()


@EACH_PAIR
@pytest.mark.parametrize("zeros", [False, True], ids=["solid", "flat"])
@pytest.mark.parametrize("rotations", TURNS)
def test_distance_is_proven_by_its_normal_and_its_points(kind, other_kind, zeros, rotations):
    rng = np.random.default_rng([kind, other_kind, zeros])
    for positions in PLACES:
        pairs = random_pairs(rng, kind, other_kind, 3000, rotations, positions, zeros)
        assert_proven(pairs, pairs.gaps())


@EACH_PAIR
def test_swapping_the_shapes_negates_the_normal_and_swaps_the_points(kind, other_kind):
    pairs = random_pairs(np.random.default_rng(1), kind, other_kind, 3000)
    results, swapped = pairs.gaps(), pairs.gaps(swapped=True)
    np.testing.assert_allclose(swapped[:, 0], results[:, 0], atol=1e-14)
    np.testing.assert_allclose(swapped[:, 1:4], -results[:, 1:4], atol=1e-8)
    np.testing.assert_allclose(swapped[:, 4:7], results[:, 7:], atol=1e-8)


@EACH_PAIR
def test_rigid_motion_of_both_shapes_moves_normal_and_points_along(kind, other_kind):
    rng = np.random.default_rng(2)
    pairs = random_pairs(rng, kind, other_kind, 3000)
    R, p = free_turns(rng, 1)[0], rng.normal(size=3)
    results, moved = pairs.gaps(), pairs.moved(slice(None), R, p).gaps()
    np.testing.assert_allclose(moved[:, 0], results[:, 0], atol=1e-14)
    np.testing.assert_allclose(moved[:, 1:4], results[:, 1:4] @ R.T, atol=1e-8)
    np.testing.assert_allclose(moved[:, 4:7], results[:, 4:7] @ R.T + p, atol=1e-8)


@EACH_PAIR
def test_translating_the_second_shape_along_the_normal_increases_the_distance_by_its_length(kind, other_kind):
    pairs = random_pairs(np.random.default_rng(3), kind, other_kind, 3000)
    results, n = pairs.gaps(), pairs.count
    for s in (1e-3, 0.1, 2.0):
        translated = pairs.moved(slice(n, None), np.eye(3), s * results[:, 1:4]).gaps()
        # in an overlap another face may be nearer after the translation: the gain is never less than s
        assert (translated[:, 0] >= results[:, 0] + s - 1e-13).all()
        is_separated = results[:, 0] >= 0.0
        np.testing.assert_allclose(translated[is_separated, 0], results[is_separated, 0] + s, atol=1e-13)


@EACH_PAIR
def test_shapes_touch_after_a_translation_by_their_distance(kind, other_kind):
    pairs = random_pairs(np.random.default_rng(4), kind, other_kind, 3000)
    results = pairs.gaps()
    touching = pairs.moved(slice(pairs.count, None), np.eye(3), -results[:, :1] * results[:, 1:4])
    assert np.abs(touching.gaps()[:, 0]).max() < 2e-14
    assert_proven(touching, touching.gaps())


@EACH_PAIR
def test_rate_of_the_distance_is_the_relative_velocity_of_the_points_along_the_normal(kind, other_kind):
    rng = np.random.default_rng(5)
    pairs = random_pairs(rng, kind, other_kind, 1000)
    results, n = pairs.gaps(), pairs.count
    d, normal, a, b = results[:, 0], results[:, 1:4], results[:, 4:7], results[:, 7:]
    for rows, point, sign in ((slice(0, n), a, -1.0), (slice(n, None), b, 1.0)):
        v, w = rng.normal(size=(2, n, 3))
        slope = sign * np.einsum("ni,ni->n", normal, v + np.cross(w, point))

        def distance_after(step, rows=rows, v=v, w=w):
            q = np.concatenate([np.ones((n, 1)), 0.5 * step * w], axis=1)
            return pairs.moved(rows, of_quaternions(q), step * v).gaps()[:, 0]

        h = 1e-5
        forward, backward = (distance_after(h) - d) / h, (d - distance_after(-h)) / h
        is_smooth = np.abs(forward - backward) < 1e-2  # else the nearest face, edge or corner changes in between
        assert is_smooth.mean() > 0.99
        assert np.abs(0.5 * (forward + backward) - slope)[is_smooth].max() < 1e-4
        fine, coarse = (
            (distance_after(h) - distance_after(-h)) / (2.0 * h),
            (distance_after(2.0 * h) - distance_after(-2.0 * h)) / (4.0 * h),
        )
        assert np.median(np.abs((4.0 * fine - coarse) / 3.0 - slope)[is_smooth]) < 1e-9


@pytest.mark.parametrize("kind", [SPHERE, CAPSULE, BOX], ids=NAMES.get)
def test_no_direction_leads_out_of_a_box_sooner_than_the_normal(kind):
    """Against the faces of the convex hull of all differences of corners, minus the radii."""
    hull = pytest.importorskip("scipy.spatial").ConvexHull
    pairs = random_pairs(np.random.default_rng(6), kind, BOX, 300)
    X = pairs.X.copy()
    X[pairs.count :, 9:] = 0.6 * X[pairs.count :, 9:] + 0.4 * X[: pairs.count, 9:]
    pairs, n = Pairs(pairs.S, pairs.P, X), pairs.count
    results, inside = pairs.gaps(), 0
    for k in range(n):
        (first, r), (second, s) = core(pairs, k), core(pairs, n + k)
        faces = hull((second[:, None] - first).reshape(-1, 3)).equations
        core_gap = (results[k, 0] + r + s) if (faces[:, 3] < 0.0).all() else None
        if core_gap is not None:
            inside += 1
            assert core_gap == pytest.approx(faces[:, 3].max(), abs=1e-13)
    assert inside > 50


def core(pairs, row):
    """The corners of a point, a segment or a box, and the radius about them."""
    shape, X = pairs.S[row], pairs.X[row]
    x, y, z = shape.sizes
    half, r = {SPHERE: ((0, 0, 0), x), CAPSULE: ((0, 0, y), x), BOX: ((x, y, z), 0.0)}[shape.kind]
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
def test_any_sizes_at_any_pose_give_a_proven_distance(kinds, sizes, positions, quaternions):
    S = Shape.allocate_rows(2)
    S.column(Shape.kind)[:], S.column(Shape.sizes)[:] = kinds, np.reshape(sizes, (2, 3))
    q = np.reshape(quaternions, (2, 4))
    q[np.linalg.norm(q, axis=1) < 1e-3] = QUATERNIONS["none"]
    P = np.zeros((1, 3))
    add_balls(S, P)
    pairs = Pairs(S, P, np.concatenate([of_quaternions(q).reshape(2, 9), np.reshape(positions, (2, 3))], axis=1))
    assert_proven(pairs, pairs.gaps())


def test_concentric_spheres_are_as_deep_as_the_sum_of_their_radii():
    d, n, a, b = distance_of(SPHERE, [0.3], SPHERE, [0.2], (0, 0, 0))
    assert d == -0.5
    np.testing.assert_array_equal(n, [0, 0, 1])
    np.testing.assert_array_equal(b - a, [0, 0, -0.5])


def test_crossing_capsules_separate_perpendicular_to_both_axes():
    d, n, _, _ = distance_of(CAPSULE, [0.1, 1.0], CAPSULE, [0.2, 1.0], (0, 0, 0), rotation="quarter about x")
    assert d == pytest.approx(-0.3, abs=1e-15)
    np.testing.assert_allclose(np.abs(n), [1, 0, 0], atol=1e-15)


def test_contact_points_of_parallel_capsules_are_in_the_middle_of_their_overlap():
    d, n, a, b = distance_of(CAPSULE, [0.1, 1.0], CAPSULE, [0.1, 1.0], (0.5, 0, 1.5))
    assert d == pytest.approx(0.3)
    np.testing.assert_allclose(n, [1, 0, 0], atol=1e-15)
    np.testing.assert_allclose([a, b], [(0.1, 0, 0.75), (0.4, 0, 0.75)], atol=1e-15)


@pytest.mark.parametrize(
    ("height", "d"), [(1.5, 0.4), (1.1, 0.0), (1.0, -0.1)], ids=["above", "touching", "overlapping"]
)
def test_contact_points_of_a_box_over_a_table_are_in_the_middle_of_the_overlap(height, d):
    distance, n, a, b = distance_of(BOX, [1.0, 1.0, 1.0], BOX, [0.2, 0.2, 0.1], (0.9, 0, height))
    assert distance == pytest.approx(d, abs=1e-15)
    np.testing.assert_array_equal(n, [0, 0, 1])
    np.testing.assert_allclose(a, [0.85, 0, 1.0], atol=1e-13)
    np.testing.assert_allclose(b, [0.85, 0, height - 0.1], atol=1e-13)


def test_contact_points_of_a_capsule_over_the_edge_of_a_box_are_in_the_middle_of_the_overlap():
    d, n, a, _ = distance_of(BOX, [1.0, 1.0, 1.0], CAPSULE, [0.1, 1.0], (0, -1.0, 1.3), rotation="quarter about x")
    assert d == pytest.approx(0.2)
    np.testing.assert_allclose(n, [0, 0, 1], atol=1e-15)
    np.testing.assert_allclose(a, [0, -0.5, 1.0], atol=1e-13)


def test_capsule_with_its_axis_outside_a_box_may_overlap_it():
    d, n, _, _ = distance_of(BOX, [1.0, 1.0, 1.0], CAPSULE, [0.3, 0.5], (1.2, 0, 0))
    assert d == pytest.approx(-0.1)
    np.testing.assert_array_equal(n, [1, 0, 0])


def test_normal_of_a_sphere_in_a_box_is_that_of_the_nearest_face():
    d, n, a, b = distance_of(BOX, [1.0, 2.0, 3.0], SPHERE, [0.5], (0.0, 1.5, 0.0))
    assert d == -1.0
    np.testing.assert_array_equal(n, [0, 1, 0])
    np.testing.assert_array_equal([a, b], [(0, 2, 0), (0, 1, 0)])


def test_distance_of_a_box_edge_over_a_face_is_the_height_of_the_edge():
    d, n, _, b = distance_of(BOX, [1.0, 1.0, 1.0], BOX, [0.5, 0.5, 0.5], (0, 0, 2.0), rotation="eighth about x")
    assert d == pytest.approx(1.0 - math.sqrt(0.5), abs=1e-15)
    np.testing.assert_array_equal(n, [0, 0, 1])
    np.testing.assert_allclose(b, [0, 0, 2.0 - math.sqrt(0.5)], atol=1e-14)


def test_boxes_with_crossing_edges_separate_along_the_third_axis():
    pairs = pair(BOX, [0.5, 0.5, 3.0], BOX, [0.5, 3.0, 0.5], (1.0, 0, 0))
    rotation_z = of_quaternions(np.array([[math.cos(math.pi / 8), 0, 0, math.sin(math.pi / 8)]]))[0]
    rotation_y = of_quaternions(np.array([[math.cos(math.pi / 8), 0, math.sin(math.pi / 8), 0]]))[0]
    X = pairs.X.copy()
    X[0, :9], X[1, :9], X[1, 9:] = rotation_z.ravel(), rotation_y.ravel(), (2.0, 0.0, 0.0)
    d, nx = Pairs(pairs.S, pairs.P, X).gaps()[0, :2]
    assert d == pytest.approx(2.0 - 2.0 * math.sqrt(0.5), abs=1e-14)
    assert nx == pytest.approx(1.0)


def test_only_half_spaces_that_face_each_other_have_a_finite_distance():
    facing = pair(HALF_SPACE, [], HALF_SPACE, [], (0.0, 0.0, 2.0))
    X = facing.X.copy()
    X[1, :9] = (1, 0, 0, 0, -1, 0, 0, 0, -1)
    assert Pairs(facing.S, facing.P, X).gaps()[0, 0] == 2.0
    assert facing.gaps()[0, 0] < -1e6
