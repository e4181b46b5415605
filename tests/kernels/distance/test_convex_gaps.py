"""Gaps of cylinders and hulls: laws, proofs by support functions, closed forms, and what is flat, tiny or touching."""

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

from mechanik.spatial import rotation

PARTNERS = [SPHERE, CAPSULE, BOX, CYLINDER, HULL]
PAIRS = [(kind, other) for kind in (CYLINDER, HULL) for other in PARTNERS]
NAMES = ["sphere", "capsule", "box", "half-space", "cylinder", "hull"]
each_pair = pytest.mark.parametrize("kinds", PAIRS, ids=lambda kinds: f"{NAMES[kinds[0]]}-{NAMES[kinds[1]]}")


def some_gaps(kinds, spread, count=150, seed=0):
    table, pairs = random_pairs(kinds, np.random.default_rng([seed, *kinds]), count, spread)
    return table, pairs, table.gaps(pairs)


def shifted(table, pairs, shifts):
    """The gaps after the second shape of each pair was moved by its row of `shifts` (k, 3)."""
    X = np.array(table.X)
    X[[j for _, j in pairs], 9:] += shifts
    return table.gaps(pairs, X)


@each_pair
@pytest.mark.parametrize("spread", [WIDE, NARROW])
def test_a_gap_is_proven_from_both_sides(kinds, spread):
    """The points are that far apart, and along the normal no points of the two are nearer."""
    table, pairs, found = some_gaps(kinds, spread)
    check_form(found)
    for (i, j), (d, *rest) in zip(pairs, found, strict=True):
        n, a, b = np.reshape(rest, (3, 3))
        assert table.needed_shift(i, j, n) == pytest.approx(-d, abs=1e-11)
        if d > 0:
            assert is_in(table, i, a)
            assert is_in(table, j, b)


def is_in(table, i, point):
    """Whether no direction has the point beyond the shape: those of a grid, and those in which hulls are tight."""
    N = np.random.default_rng(3).normal(size=(400, 3))
    return bool((units(N) @ point <= table.reach(i, units(N)) + 1e-11).all())


@each_pair
def test_no_shift_is_shorter_than_the_depth(kinds):
    """Random directions, and the best few of them made better step by step."""
    table, pairs, found = some_gaps(kinds, NARROW, count=25)
    rng = np.random.default_rng(5)
    start = units(rng.normal(size=(3000, 3)))
    deep = 0
    for (i, j), d in zip(pairs, found[:, 0], strict=True):
        if d < 0:
            deep += 1
            shifts = table.needed_shift(i, j, start)
            assert shifts.min() >= -d - 1e-11
            for k in np.argsort(shifts)[:3]:
                assert improved(lambda N, i=i, j=j: table.needed_shift(i, j, N), start[k], rng) >= -d - 1e-11
    assert deep > 12


def improved(shift, n, rng):
    best, width = shift(n), 0.1
    while width > 1e-7:
        N = units(n + width * rng.normal(size=(30, 3)))
        shifts = shift(N)
        k = np.argmin(shifts)
        if shifts[k] < best:
            n, best = N[k], shifts[k]
        else:
            width *= 0.5
    return best


@each_pair
@pytest.mark.parametrize("spread", [WIDE, NARROW])
def test_swapping_the_shapes_turns_the_normal_round(kinds, spread):
    table, pairs, found = some_gaps(kinds, spread)
    back = table.gaps([(j, i) for i, j in pairs])
    np.testing.assert_allclose(back[:, 0], found[:, 0], atol=1e-11)
    far = (
        found[:, 0] > 0.01
    )  # in each other, two ways out may be equally short; the normal of round shapes is half as good
    np.testing.assert_allclose(back[far, 1:4], -found[far, 1:4], atol=1e-6)


@each_pair
@pytest.mark.parametrize("spread", [WIDE, NARROW])
def test_a_gap_does_not_change_when_both_are_moved(kinds, spread):
    table, pairs, found = some_gaps(kinds, spread)
    rng = np.random.default_rng(1)
    R, p = random_rotation(rng), rng.normal(size=3)
    X = [np.concatenate([(R @ x[:9].reshape(3, 3)).ravel(), R @ x[9:] + p]) for x in table.X]
    np.testing.assert_allclose(table.gaps(pairs, X)[:, 0], found[:, 0], atol=1e-11)


@each_pair
@pytest.mark.parametrize("spread", [WIDE, NARROW])
def test_a_shift_along_the_normal_makes_the_gap_larger_by_as_much(kinds, spread):
    """Also when the shift begins inside and ends outside."""
    table, pairs, found = some_gaps(kinds, spread)
    d, n = found[:, 0], found[:, 1:4]
    out = np.maximum(-d, 0.0) + np.random.default_rng(2).uniform(1e-9, 0.3, len(d))
    np.testing.assert_allclose(shifted(table, pairs, out[:, None] * n)[:, 0], d + out, atol=1e-11)


@each_pair
def test_gaps_of_nothing_and_near_it_are_exact(kinds):
    """Of cores too, spheres and capsules being thin here: the place where the walk and the polytope meet."""
    table, pairs, _ = some_gaps(kinds, WIDE, count=60)
    for k in itertools.chain(*pairs):
        if table.S[k][0] in (SPHERE, CAPSULE):
            table.S[k][1] = 0.0
    found = table.gaps(pairs)
    pairs = [pair for pair, d in zip(pairs, found[:, 0], strict=True) if d > 0.01]
    assert len(pairs) > 20
    exact = {*kinds} <= {SPHERE, BOX, CAPSULE, HULL} or {*kinds} == {CYLINDER, SPHERE}
    close = 1e-12 if exact else 5e-10  # round shapes: a shift along a normal that is good to 1e-7 goes a little aside
    for gap in [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 0.0]:  # little by little
        found = table.gaps(pairs)
        for (_, j), (d, *n) in zip(pairs, found[:, :4], strict=True):
            table.X[j][9:] += (gap - d) * np.array(n)
        near = table.gaps(pairs)
        check_form(near)
        np.testing.assert_allclose(near[:, 0], gap, rtol=0.0, atol=1e-12 if gap > 1e-5 else close)
        if gap > 0:  # and as far beyond: no more than that along the normal, less if there is a shorter way out
            inside = shifted(table, pairs, -2 * gap * near[:, 1:4])
            check_form(inside)
            assert (inside[:, 0] >= -gap - close).all()


@each_pair
@pytest.mark.parametrize("spread", [WIDE, NARROW])
def test_the_derivative_of_a_gap_is_its_normal_at_the_point(kinds, spread):
    """Shifts and turns of the second shape against central differences, where the gap has no kink."""
    table, pairs, found = some_gaps(kinds, spread, count=60)
    X, moving = np.array(table.X), [j for _, j in pairs]
    d, n, b, p = found[:, 0], found[:, 1:4], found[:, 7:], X[moving, 9:]
    e, compared = 1e-6, 0
    for k in range(6):
        away = np.eye(3)[k % 3]
        side = []
        for s in (e, -e):
            Y = X.copy()
            if k < 3:
                Y[moving, 9:] += s * away
            else:
                Y[moving, :9] = (rotation.exp(s * away) @ X[moving, :9].reshape(-1, 3, 3)).reshape(-1, 9)
            side.append(table.gaps(pairs, Y)[:, 0])
        slope = n[:, k] if k < 3 else np.cross(b - p, n)[:, k - 3]
        smooth = np.abs(side[0] + side[1] - 2 * d) < 1e-10
        np.testing.assert_allclose(slope[smooth], (side[0] - side[1])[smooth] / (2 * e), atol=2e-5)
        compared += smooth.sum()
    assert compared > 0.7 * 6 * len(pairs)


@pytest.mark.parametrize("other", [SPHERE, CAPSULE, BOX])
@pytest.mark.parametrize("spread", [WIDE, NARROW])
def test_the_hull_of_eight_corners_is_a_box(other, spread):
    rng, table, pairs = np.random.default_rng(7), Table(), []
    for _ in range(300):
        box, shape = table.add_random(BOX, rng, spread), table.add_random(other, rng, spread)
        corners = np.array(list(itertools.product((-1, 1), repeat=3))) * table.S[box][1:4]
        hull = table.add(HULL, points=corners, R=table.X[box][:9], p=table.X[box][9:])
        pairs += [(box, shape), (hull, shape)]
    found = table.gaps(pairs)
    np.testing.assert_allclose(found[1::2, 0], found[::2, 0], atol=1e-12)


def test_thin_cylinders_and_small_hulls_are_segments_and_points():
    rng, table, pairs = np.random.default_rng(8), Table(), []
    for _ in range(100):
        R, p, h = random_rotation(rng), rng.uniform(-1, 1, 3), rng.uniform(0, 0.5)
        segment = table.add(CAPSULE, 0.0, h, R=R, p=p)
        same = [table.add(CYLINDER, 0.0, h, R=R, p=p), table.add(HULL, points=[(0, 0, -h), (0, 0, h)], R=R, p=p)]
        point = table.add(SPHERE, 0.0, p=p)
        dots = [table.add(CYLINDER, 0.0, 0.0, R=R, p=p), table.add(HULL, points=[(0, 0, 0)], R=R, p=p)]
        for other in (SPHERE, CAPSULE, BOX):
            shape = table.add_random(other, rng)
            pairs += [(k, shape) for k in (segment, *same)] + [(k, shape) for k in (point, *dots)]
    d = table.gaps(pairs)[:, 0].reshape(-1, 3)
    np.testing.assert_allclose(d[:, 1:], d[:, :1] * [1, 1], atol=1e-12)


@pytest.mark.parametrize("kind", [CYLINDER, HULL])
def test_a_half_space_is_as_far_as_the_lowest_point(kind):
    rng, table, pairs = np.random.default_rng(9), Table(), []
    for _ in range(100):
        plane = table.add(HALF_SPACE, R=random_rotation(rng), p=rng.normal(size=3))
        pairs += [(table.add_random(kind, rng), plane)]
    found, back = table.gaps(pairs), table.gaps([(j, i) for i, j in pairs])
    check_form(found)
    check_form(back)
    for (i, j), one, other in zip(pairs, found, back, strict=True):
        up = table.X[j][:9].reshape(3, 3)[:, 2]
        assert one[0] == pytest.approx(-table.reach(i, -up) - up @ table.X[j][9:], abs=1e-12)
        np.testing.assert_allclose(one[1:4], -up)
        assert other[0] == one[0]


corners = st.lists(st.tuples(*[st.integers(-2, 2)] * 3), min_size=1, max_size=6)


@settings(max_examples=300)
@given(corners, corners, st.tuples(*[st.integers(-3, 3)] * 3))
def test_hulls_on_a_lattice_are_exact(first, second, shift):
    """Flat ones, twice the same corner, touching, one in the other: all depths are known from all planes there are."""
    table = Table()
    i, j = table.add(HULL, points=first), table.add(HULL, points=second, p=shift)
    (found,) = table.gaps([(i, j)])
    check_form(found[None])
    d, n = found[0], found[1:4]
    assert table.needed_shift(i, j, n) == pytest.approx(-d, abs=1e-12)
    differences = np.unique((np.array(first)[:, None] - (np.array(second) + shift)[None]).reshape(-1, 3), axis=0)
    if d < 1e-9:
        assert -d == pytest.approx(shortest_shift(differences), abs=1e-11)


def shortest_shift(differences):
    """The depth of the origin in the hull of some points: every plane through three of them, both sides."""
    threes = np.array(list(itertools.combinations(range(len(differences)), 3)), dtype=int).reshape(-1, 3)
    p, q, r = differences[threes].transpose(1, 0, 2)
    N = np.cross(q - p, r - p).astype(float)
    N = N[np.linalg.norm(N, axis=1) > 0.5]
    if len(N) == 0:
        return 0.0
    N = units(np.concatenate([N, -N]))
    return max((N @ differences.T).max(axis=1).min(), 0.0)


def test_shapes_of_the_same_pose_are_as_deep_as_they_are_thin():
    table = Table()
    coin = [table.add(CYLINDER, 0.5, 0.1) for _ in range(2)]
    rod = [table.add(CYLINDER, 0.1, 0.5) for _ in range(2)]
    cube = [table.add(HULL, points=np.array(list(itertools.product((-1, 1), repeat=3))) * 0.5) for _ in range(2)]
    found = table.gaps([coin, rod, cube, (coin[0], rod[0]), (rod[0], cube[0])])
    check_form(found)
    np.testing.assert_allclose(found[:, 0], [-0.2, -0.2, -1.0, -0.6, -0.6], atol=1e-9)


def test_shapes_without_any_size_touch_where_they_meet():
    table = Table()
    nothing = [
        table.add(SPHERE, 0.0), table.add(CAPSULE, 0.0, 0.0), table.add(BOX, 0.0, 0.0, 0.0),
        table.add(CYLINDER, 0.0, 0.0), table.add(HULL, points=[(0, 0, 0)]), table.add(HULL, points=[(0, 0, 0)] * 5),
    ]  # fmt: skip
    found = table.gaps(list(itertools.product(nothing[3:], nothing)))
    check_form(found)
    np.testing.assert_allclose(found[:, 0], 0.0, atol=1e-15)


def test_flat_shapes_in_one_plane_touch_across_it():
    """A disc, a triangle and a rectangle that overlap in a plane need no shift at all to be apart."""
    R = random_rotation(np.random.default_rng(4))
    table = Table()
    flat = [
        table.add(CYLINDER, 0.5, 0.0, R=R),
        table.add(HULL, points=[(0, 0, 0), (1, 0, 0), (0, 1, 0)], R=R),
        table.add(BOX, 0.5, 0.3, 0.0, R=R),
    ]
    found = table.gaps([(flat[0], flat[1]), (flat[1], flat[2]), (flat[0], flat[2])])
    check_form(found)
    np.testing.assert_allclose(found[:, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(np.abs(found[:, 1:4] @ R[:, 2]), 1.0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_small_and_large_shapes_are_as_exact_for_their_size(scale):
    rng = np.random.default_rng(11)
    table, pairs = random_pairs((CYLINDER, HULL), rng, 100)
    before = table.gaps(pairs)
    big = Table()
    big.S, big.P = [s.copy() for s in table.S], [p * scale for p in table.P]
    big.X = [np.concatenate([x[:9], x[9:] * scale]) for x in table.X]
    for i, _ in pairs:
        big.S[i][1:4] *= scale
    np.testing.assert_allclose(big.gaps(pairs)[:, 0] / scale, before[:, 0], atol=1e-11)
