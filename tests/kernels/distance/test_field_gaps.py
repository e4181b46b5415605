"""Gaps to height fields: against the prisms one by one, half-spaces, and what a solver needs of them in the ground."""

from __future__ import annotations

import numpy as np
import pytest
from shape_table import (
    BOX,
    CAPSULE,
    CYLINDER,
    HALF_SPACE,
    HULL,
    SPHERE,
    Table,
    check_form,
    random_rotation,
)  # fmt: skip

from mechanik.spatial import rotation

KINDS = [SPHERE, CAPSULE, BOX, CYLINDER, HULL]
NAMES = ["sphere", "capsule", "box", "half-space", "cylinder", "hull"]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: NAMES[kind])
SIZE, BOTTOM = (3.0, 2.0), -1.0


def heights_of(rng, rows=5, columns=7):
    return rng.uniform(-0.3, 0.3, (rows, columns))


def add_prisms(table, heights, R, p):
    """Each triangle of a field and what is below it, as a hull of six points."""
    rows, columns = heights.shape
    x, y = np.meshgrid(np.linspace(-0.5, 0.5, columns) * SIZE[0], np.linspace(-0.5, 0.5, rows) * SIZE[1])
    top = np.stack([x, y, heights], axis=-1)
    for r in range(rows - 1):
        for c in range(columns - 1):
            for third in ((r, c + 1), (r + 1, c)):
                triangle = np.array([top[r, c], top[third], top[r + 1, c + 1]])
                down = triangle.copy()
                down[:, 2] = BOTTOM
                yield table.add(HULL, points=[*triangle, *down], R=R, p=p)


def ground_and_shapes(kind, rng, low, high, count):
    """A field somewhere in the world, its prisms, and shapes some way above it."""
    table, heights, R, p = Table(), heights_of(rng), random_rotation(rng), rng.normal(size=3)
    field = table.add_ground(heights, SIZE, BOTTOM, R=R, p=p)
    prisms = list(add_prisms(table, heights, R, p))
    shapes = []
    for _ in range(count):
        shapes.append(table.add_random(kind, rng))
        table.S[shapes[-1]][1:4] *= 0.3 if kind != HULL else 1.0
        table.X[shapes[-1]][9:] = p + R @ [*rng.uniform(-2.0, 2.0, 2), rng.uniform(low, high)]
    return table, field, prisms, shapes


@each_kind
def test_the_distance_to_the_ground_is_that_to_the_nearest_prism(kind):
    """Near, far above, and beside it."""
    rng = np.random.default_rng([1, kind])
    table, field, prisms, shapes = ground_and_shapes(kind, rng, -1.5, 4.0, 60)
    found = table.gaps([(field, shape) for shape in shapes])
    check_form(found)
    apart = 0
    for shape, d in zip(shapes, found[:, 0], strict=True):
        best = table.gaps([(prism, shape) for prism in prisms])[:, 0].min()
        radius = table.S[shape][1] if kind in (SPHERE, CAPSULE) else 0.0
        if best + radius > 1e-9:  # the core is not in the ground
            apart += 1
            assert d == pytest.approx(best, abs=1e-12)
        else:  # ways out through walls between prisms do not count
            assert d <= best + 1e-9
    assert apart > 25


@each_kind
def test_swapping_ground_and_shape_turns_the_normal_round(kind):
    table, field, _, shapes = ground_and_shapes(kind, np.random.default_rng([2, kind]), -0.5, 1.0, 40)
    there, back = table.gaps([(field, shape) for shape in shapes]), table.gaps([(shape, field) for shape in shapes])
    np.testing.assert_array_equal(back[:, 0], there[:, 0])
    np.testing.assert_array_equal(back[:, 1:4], -there[:, 1:4])
    np.testing.assert_array_equal(back[:, 7:], there[:, 4:7])


@each_kind
@pytest.mark.parametrize("slope", [0.0, 0.4])
def test_even_ground_is_a_half_space(kind, slope):
    """Also for what is in it deeper than a cell is wide."""
    rng, table = np.random.default_rng([3, kind]), Table()
    x, _ = np.meshgrid(np.linspace(-20, 20, 201), np.linspace(-20, 20, 201))
    field = table.add_ground(slope * x, (40.0, 40.0), -30.0)
    plane = table.add(HALF_SPACE, R=rotation.about_y(-np.arctan(slope)))
    shapes = [table.add_random(kind, rng) for _ in range(30)]
    found, wanted = (table.gaps([(ground, shape) for shape in shapes]) for ground in (field, plane))
    check_form(found)
    np.testing.assert_allclose(found[:, 0], wanted[:, 0], atol=1e-9)
    np.testing.assert_allclose(found[:, 1:4], wanted[:, 1:4], atol=1e-6)


@each_kind
def test_what_is_in_the_ground_comes_out_along_its_normals(kind):
    """Some shifts in a row, each as long as the depth: what a solver does."""
    rng = np.random.default_rng([4, kind])
    table, field, _, shapes = ground_and_shapes(kind, rng, -0.4, 0.1, 40)
    pairs, started = [(field, shape) for shape in shapes], None
    for _ in range(30):
        found = table.gaps(pairs)
        check_form(found)
        started = found[:, 0] if started is None else started
        for shape, (d, *n) in zip(shapes, found[:, :4], strict=True):
            table.X[shape][9:] += max(1e-6 - d, 0.0) * np.array(n)
    assert (started < -0.1).sum() > 8
    assert (table.gaps(pairs)[:, 0] > -1e-9).all()


@each_kind
def test_the_derivative_of_a_gap_to_the_ground_is_its_normal(kind):
    rng = np.random.default_rng([5, kind])
    table, field, _, shapes = ground_and_shapes(kind, rng, -0.3, 0.8, 60)
    pairs = [(field, shape) for shape in shapes]
    found, X, e, compared = table.gaps(pairs), np.array(table.X), 1e-6, 0
    for k in range(6):
        away, side = np.eye(3)[k % 3], []
        for s in (e, -e):
            Y = X.copy()
            if k < 3:
                Y[shapes, 9:] += s * away
            else:
                Y[shapes, :9] = (rotation.exp(s * away) @ X[shapes, :9].reshape(-1, 3, 3)).reshape(-1, 9)
            side.append(table.gaps(pairs, Y)[:, 0])
        n, lever = found[:, 1:4], found[:, 7:] - X[shapes, 9:]
        slope = n[:, k] if k < 3 else np.cross(lever, n)[:, k - 3]
        smooth = np.abs(side[0] + side[1] - 2 * found[:, 0]) < 1e-10
        np.testing.assert_allclose(slope[smooth], (side[0] - side[1])[smooth] / (2 * e), atol=1e-4)
        compared += smooth.sum()
    assert compared > 0.7 * 6 * len(pairs)


def test_the_diagonal_goes_from_low_to_high():
    """As in MuJoCo: with one corner raised, at high x and low y, the middle of the cell stays low."""
    table = Table()
    field = table.add_ground([[0.0, 1.0], [0.0, 0.0]], (2.0, 2.0), -1.0)
    places = [(-0.3, 0.3), (0.0, 0.0), (0.3, -0.3)]
    above, below = ([table.add(SPHERE, 0.0, p=(x, y, z)) for x, y in places] for z in (0.01, -0.01))
    d = table.gaps([(field, k) for k in (*above, *below)])[:, 0]
    np.testing.assert_array_equal(np.sign(d), [1, 1, -1, -1, -1, -1])


def test_two_grounds_and_a_half_space_have_a_gap():
    table, rng = Table(), np.random.default_rng(6)
    low = table.add_ground(np.zeros((3, 3)), (1.0, 1.0), -0.1)
    high = table.add_ground(rng.uniform(0.0, 0.2, (3, 4)), (1.0, 1.0), -0.1, p=(0.1, 0.2, 0.5))
    plane = table.add(HALF_SPACE, p=(0, 0, -0.3))
    ceiling = table.add(HALF_SPACE, R=rotation.about_x(np.pi), p=(0, 0, 0.7))
    pairs = [(low, high), (high, low), (low, plane), (plane, low), (high, ceiling)]
    found = table.gaps(pairs)
    check_form(found)
    top = np.concatenate(table.P)[int(table.S[high][1]) :][:12, 2].max()
    np.testing.assert_allclose(found[:, 0], [0.4, 0.4, 0.2, 0.2, 0.2 - top], atol=1e-12)


def test_a_step_is_left_sideways_where_that_is_the_shorter_way():
    """A cliff of 1 m: a box that pokes 1 cm into its face need not be lifted over the top."""
    table = Table()
    heights = np.zeros((3, 401))
    heights[:, 201:] = 1.0
    field = table.add_ground(heights, (4.0, 4.0), -1.0)
    box = table.add(BOX, 0.1, 0.1, 0.1, p=(-0.092, 0.0, 0.3))
    (found,) = table.gaps([(field, box)])
    assert -0.02 < found[0] < 0
    assert found[1] < -0.9
