"""Distances of cylinders and hulls: laws, proofs by support functions, closed forms, and degenerate shapes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shape_table import (
    BOX,
    CAPSULE,
    CYLINDER,
    HALF_SPACE,
    HULL,
    NARROW,
    SPHERE,
    WIDE,
    Table,
    check_form,
    random_pairs,
    random_rotation,
    units,
)  # fmt: skip

from mechanik.kernels.distance.collision_layout import Shape
from mechanik.spatial import rotation

PARTNERS = [SPHERE, CAPSULE, BOX, CYLINDER, HULL]
PAIRS = [(kind, partner) for kind in (CYLINDER, HULL) for partner in PARTNERS]
NAMES = ["sphere", "capsule", "box", "half-space", "cylinder", "hull"]
each_pair = pytest.mark.parametrize("kinds", PAIRS, ids=lambda kinds: f"{NAMES[kinds[0]]}-{NAMES[kinds[1]]}")


def random_distances(kinds, spread, count=150, seed=0):
    table, pairs = random_pairs(kinds, np.random.default_rng([seed, *kinds]), count, spread)
    return table, pairs, table.distances(pairs)


def distances_after_translation(table, pairs, shifts):
    """The results after the second shape of each pair is translated by its row of `shifts` (k, 3)."""
    X = np.array(table.X)
    X[[j for _, j in pairs], 9:] += shifts
    return table.distances(pairs, X)


@each_pair
@pytest.mark.parametrize("spread", [WIDE, NARROW])
def test_distance_equals_the_separation_along_the_normal(kinds, spread):
    """The points have this distance, and along the normal no points of the two shapes are nearer."""
    table, pairs, results = random_distances(kinds, spread)
    check_form(results)
    for (i, j), (d, *rest) in zip(pairs, results, strict=True):
        n, a, b = np.reshape(rest, (3, 3))
        assert table.separating_translation(i, j, n) == pytest.approx(-d, abs=1e-11)
        if d > 0:
            assert is_inside(table, i, a)
            assert is_inside(table, j, b)


def is_inside(table, i, point):
    """Whether the point is beyond the shape in none of 400 random directions."""
    N = np.random.default_rng(3).normal(size=(400, 3))
    return bool((units(N) @ point <= table.reach(i, units(N)) + 1e-11).all())


@each_pair
def test_no_translation_shorter_than_the_depth_separates_the_shapes(kinds):
    """Samples of random directions, and a local search from the best three."""
    table, pairs, results = random_distances(kinds, NARROW, count=25)
    rng = np.random.default_rng(5)
    start = units(rng.normal(size=(3000, 3)))
    overlapping = 0
    for (i, j), d in zip(pairs, results[:, 0], strict=True):
        if d < 0:
            overlapping += 1
            separations = table.separating_translation(i, j, start)
            assert separations.min() >= -d - 1e-11
            for k in np.argsort(separations)[:3]:
                assert (
                    local_minimum(lambda N, i=i, j=j: table.separating_translation(i, j, N), start[k], rng)
                    >= -d - 1e-11
                )
    assert overlapping > 12


def local_minimum(separation, n, rng):
    best, width = separation(n), 0.1
    while width > 1e-7:
        N = units(n + width * rng.normal(size=(30, 3)))
        separations = separation(N)
        k = np.argmin(separations)
        if separations[k] < best:
            n, best = N[k], separations[k]
        else:
            width *= 0.5
    return best


@each_pair
@pytest.mark.parametrize("spread", [WIDE, NARROW])
def test_swapping_the_shapes_negates_the_normal(kinds, spread):
    table, pairs, results = random_distances(kinds, spread)
    swapped = table.distances([(j, i) for i, j in pairs])
    np.testing.assert_allclose(swapped[:, 0], results[:, 0], atol=1e-11)
    is_separated = (
        results[:, 0] > 0.01
    )  # in each other, two ways out may be equally short; the normal of round shapes is half as good
    np.testing.assert_allclose(swapped[is_separated, 1:4], -results[is_separated, 1:4], atol=1e-6)


@each_pair
@pytest.mark.parametrize("spread", [WIDE, NARROW])
def test_rigid_motion_of_both_shapes_keeps_the_distance(kinds, spread):
    table, pairs, results = random_distances(kinds, spread)
    rng = np.random.default_rng(1)
    R, p = random_rotation(rng), rng.normal(size=3)
    X = [np.concatenate([(R @ x[:9].reshape(3, 3)).ravel(), R @ x[9:] + p]) for x in table.X]
    np.testing.assert_allclose(table.distances(pairs, X)[:, 0], results[:, 0], atol=1e-11)


@each_pair
@pytest.mark.parametrize("spread", [WIDE, NARROW])
def test_translation_along_the_normal_increases_the_distance_by_its_length(kinds, spread):
    """Also for a translation that begins in an overlap and ends outside."""
    table, pairs, results = random_distances(kinds, spread)
    d, n = results[:, 0], results[:, 1:4]
    translations = np.maximum(-d, 0.0) + np.random.default_rng(2).uniform(1e-9, 0.3, len(d))
    np.testing.assert_allclose(
        distances_after_translation(table, pairs, translations[:, None] * n)[:, 0], d + translations, atol=1e-11
    )


@each_pair
def test_distances_near_zero_are_exact(kinds):
    """Spheres and capsules have radius zero here, so that the cores touch: GJK and the polytope meet there."""
    table, pairs, _ = random_distances(kinds, WIDE, count=60)
    for k in itertools.chain(*pairs):
        if table.S[k].kind in (SPHERE, CAPSULE):
            table.S[k].sizes[0] = 0.0
    results = table.distances(pairs)
    pairs = [pair for pair, d in zip(pairs, results[:, 0], strict=True) if d > 0.01]
    assert len(pairs) > 20
    is_exact = {*kinds} <= {SPHERE, BOX, CAPSULE, HULL} or {*kinds} == {CYLINDER, SPHERE}
    tolerance = 1e-12 if is_exact else 5e-10  # round shapes: the normal is accurate to 1e-7
    for distance in [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 0.0]:  # step by step
        results = table.distances(pairs)
        for (_, j), (d, *n) in zip(pairs, results[:, :4], strict=True):
            table.X[j][9:] += (distance - d) * np.array(n)
        near_results = table.distances(pairs)
        check_form(near_results)
        np.testing.assert_allclose(near_results[:, 0], distance, rtol=0.0, atol=1e-12 if distance > 1e-5 else tolerance)
        if distance > 0:  # the same overlap: at most this depth, less if there is a shorter exit
            overlapping = distances_after_translation(table, pairs, -2 * distance * near_results[:, 1:4])
            check_form(overlapping)
            assert (overlapping[:, 0] >= -distance - tolerance).all()


@each_pair
@pytest.mark.parametrize("spread", [WIDE, NARROW])
def test_derivative_of_the_distance_is_the_normal_at_the_contact_point(kinds, spread):
    """Translations and rotations of the second shape against central differences, where the distance is smooth."""
    table, pairs, results = random_distances(kinds, spread, count=60)
    X, moving = np.array(table.X), [j for _, j in pairs]
    d, n, b, p = results[:, 0], results[:, 1:4], results[:, 7:], X[moving, 9:]
    e, compared = 1e-6, 0
    for k in range(6):
        axis = np.eye(3)[k % 3]
        distances = []
        for s in (e, -e):
            Y = X.copy()
            if k < 3:
                Y[moving, 9:] += s * axis
            else:
                Y[moving, :9] = (rotation.exp(s * axis) @ X[moving, :9].reshape(-1, 3, 3)).reshape(-1, 9)
            distances.append(table.distances(pairs, Y)[:, 0])
        slope = n[:, k] if k < 3 else np.cross(b - p, n)[:, k - 3]
        is_smooth = np.abs(distances[0] + distances[1] - 2 * d) < 1e-10
        np.testing.assert_allclose(slope[is_smooth], (distances[0] - distances[1])[is_smooth] / (2 * e), atol=2e-5)
        compared += is_smooth.sum()
    assert compared > 0.7 * 6 * len(pairs)


@pytest.mark.parametrize("other_kind", [SPHERE, CAPSULE, BOX])
@pytest.mark.parametrize("spread", [WIDE, NARROW])
def test_hull_of_eight_corners_has_the_distances_of_a_box(other_kind, spread):
    rng, table, pairs = np.random.default_rng(7), Table(), []
    for _ in range(300):
        box, shape = table.add_random(BOX, rng, spread), table.add_random(other_kind, rng, spread)
        corners = np.array(list(itertools.product((-1, 1), repeat=3))) * table.S[box].sizes
        hull = table.add(HULL, points=corners, R=table.X[box][:9], p=table.X[box][9:])
        pairs += [(box, shape), (hull, shape)]
    results = table.distances(pairs)
    np.testing.assert_allclose(results[1::2, 0], results[::2, 0], atol=1e-12)


def test_degenerate_cylinders_and_hulls_have_the_distances_of_segments_and_points():
    rng, table, pairs = np.random.default_rng(8), Table(), []
    for _ in range(100):
        R, p, h = random_rotation(rng), rng.uniform(-1, 1, 3), rng.uniform(0, 0.5)
        segment = table.add(CAPSULE, 0.0, h, R=R, p=p)
        equal_segments = [
            table.add(CYLINDER, 0.0, h, R=R, p=p),
            table.add(HULL, points=[(0, 0, -h), (0, 0, h)], R=R, p=p),
        ]
        point = table.add(SPHERE, 0.0, p=p)
        equal_points = [table.add(CYLINDER, 0.0, 0.0, R=R, p=p), table.add(HULL, points=[(0, 0, 0)], R=R, p=p)]
        for other_kind in (SPHERE, CAPSULE, BOX):
            shape = table.add_random(other_kind, rng)
            pairs += [(k, shape) for k in (segment, *equal_segments)] + [(k, shape) for k in (point, *equal_points)]
    d = table.distances(pairs)[:, 0].reshape(-1, 3)
    np.testing.assert_allclose(d[:, 1:], d[:, :1] * [1, 1], atol=1e-12)


@pytest.mark.parametrize("kind", [CYLINDER, HULL])
def test_distance_to_a_half_space_is_the_height_of_the_lowest_point(kind):
    rng, table, pairs = np.random.default_rng(9), Table(), []
    for _ in range(100):
        plane = table.add(HALF_SPACE, R=random_rotation(rng), p=rng.normal(size=3))
        pairs += [(table.add_random(kind, rng), plane)]
    results, swapped = table.distances(pairs), table.distances([(j, i) for i, j in pairs])
    check_form(results)
    check_form(swapped)
    for (i, j), result, swapped_result in zip(pairs, results, swapped, strict=True):
        up = table.X[j][:9].reshape(3, 3)[:, 2]
        assert result[0] == pytest.approx(-table.reach(i, -up) - up @ table.X[j][9:], abs=1e-12)
        np.testing.assert_allclose(result[1:4], -up)
        assert swapped_result[0] == result[0]


corners = st.lists(st.tuples(*[st.integers(-2, 2)] * 3), min_size=1, max_size=6)


@settings(max_examples=300)
@given(corners, corners, st.tuples(*[st.integers(-3, 3)] * 3))
def test_depths_of_lattice_hulls_equal_the_enumeration_of_all_planes(first, second, shift):
    """Includes flat hulls, repeated corners, contact and containment; the depth follows from all planes."""
    table = Table()
    i, j = table.add(HULL, points=first), table.add(HULL, points=second, p=shift)
    (result,) = table.distances([(i, j)])
    check_form(result[None])
    d, n = result[0], result[1:4]
    assert table.separating_translation(i, j, n) == pytest.approx(-d, abs=1e-12)
    differences = np.unique((np.array(first)[:, None] - (np.array(second) + shift)[None]).reshape(-1, 3), axis=0)
    if d < 1e-9:
        assert -d == pytest.approx(hull_depth(differences), abs=1e-11)


def hull_depth(differences):
    """The depth of the origin in the hull of points: over both sides of every plane through three of them."""
    threes = np.array(list(itertools.combinations(range(len(differences)), 3)), dtype=int).reshape(-1, 3)
    p, q, r = differences[threes].transpose(1, 0, 2)
    N = np.cross(q - p, r - p).astype(float)
    N = N[np.linalg.norm(N, axis=1) > 0.5]
    if len(N) == 0:
        return 0.0
    N = units(np.concatenate([N, -N]))
    return max((N @ differences.T).max(axis=1).min(), 0.0)


def test_coincident_shapes_are_as_deep_as_their_smallest_width():
    table = Table()
    coin = [table.add(CYLINDER, 0.5, 0.1) for _ in range(2)]
    rod = [table.add(CYLINDER, 0.1, 0.5) for _ in range(2)]
    cube = [table.add(HULL, points=np.array(list(itertools.product((-1, 1), repeat=3))) * 0.5) for _ in range(2)]
    results = table.distances([coin, rod, cube, (coin[0], rod[0]), (rod[0], cube[0])])
    check_form(results)
    np.testing.assert_allclose(results[:, 0], [-0.2, -0.2, -1.0, -0.6, -0.6], atol=1e-9)


def test_coincident_points_have_distance_zero():
    table = Table()
    points = [
        table.add(SPHERE, 0.0), table.add(CAPSULE, 0.0, 0.0), table.add(BOX, 0.0, 0.0, 0.0),
        table.add(CYLINDER, 0.0, 0.0), table.add(HULL, points=[(0, 0, 0)]), table.add(HULL, points=[(0, 0, 0)] * 5),
    ]  # fmt: skip
    results = table.distances(list(itertools.product(points[3:], points)))
    check_form(results)
    np.testing.assert_allclose(results[:, 0], 0.0, atol=1e-15)


def test_overlapping_flat_shapes_in_one_plane_have_depth_zero():
    """A disc, a triangle and a rectangle that overlap in a plane separate without any translation."""
    R = random_rotation(np.random.default_rng(4))
    table = Table()
    flat = [
        table.add(CYLINDER, 0.5, 0.0, R=R),
        table.add(HULL, points=[(0, 0, 0), (1, 0, 0), (0, 1, 0)], R=R),
        table.add(BOX, 0.5, 0.3, 0.0, R=R),
    ]
    results = table.distances([(flat[0], flat[1]), (flat[1], flat[2]), (flat[0], flat[2])])
    check_form(results)
    np.testing.assert_allclose(results[:, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(np.abs(results[:, 1:4] @ R[:, 2]), 1.0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_relative_accuracy_does_not_depend_on_the_scale(scale):
    rng = np.random.default_rng(11)
    table, pairs = random_pairs((CYLINDER, HULL), rng, 100)
    expected = table.distances(pairs)
    scaled = Table()
    scaled.S, scaled.P = [Shape(shape.numbers.copy()) for shape in table.S], [p * scale for p in table.P]
    scaled.X = [np.concatenate([x[:9], x[9:] * scale]) for x in table.X]
    for i, _ in pairs:
        scaled.S[i].sizes[:] *= scale
    np.testing.assert_allclose(scaled.distances(pairs)[:, 0] / scale, expected[:, 0], atol=1e-11)
