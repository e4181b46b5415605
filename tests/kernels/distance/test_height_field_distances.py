"""Distances to height fields: against their prisms and half-spaces, and what a solver needs in an overlap."""

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


def random_heights(rng, rows=5, columns=7):
    return rng.uniform(-0.3, 0.3, (rows, columns))


def add_prisms(table, heights, R, p):
    """Each triangle of a field with the prism below it, as a hull of six points."""
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


def field_and_shapes(kind, rng, low, high, count):
    """A field at a random pose, its prisms, and shapes at heights between `low` and `high` above it."""
    table, heights, R, p = Table(), random_heights(rng), random_rotation(rng), rng.normal(size=3)
    field = table.add_height_field(heights, SIZE, BOTTOM, R=R, p=p)
    prisms = list(add_prisms(table, heights, R, p))
    shapes = []
    for _ in range(count):
        shapes.append(table.add_random(kind, rng))
        table.S[shapes[-1]].sizes[:] *= 0.3 if kind != HULL else 1.0
        table.X[shapes[-1]][9:] = p + R @ [*rng.uniform(-2.0, 2.0, 2), rng.uniform(low, high)]
    return table, field, prisms, shapes


@each_kind
def test_distance_to_a_height_field_is_that_to_the_nearest_prism(kind):
    """For shapes near the field, far above it, and beside it."""
    rng = np.random.default_rng([1, kind])
    table, field, prisms, shapes = field_and_shapes(kind, rng, -1.5, 4.0, 60)
    results = table.distances([(field, shape) for shape in shapes])
    check_form(results)
    separated_count = 0
    for shape, d in zip(shapes, results[:, 0], strict=True):
        best = table.distances([(prism, shape) for prism in prisms])[:, 0].min()
        radius = table.S[shape].sizes[0] if kind in (SPHERE, CAPSULE) else 0.0
        if best + radius > 1e-9:  # the core is not in the field
            separated_count += 1
            assert d == pytest.approx(best, abs=1e-12)
        else:  # exits through walls between prisms do not count
            assert d <= best + 1e-9
    assert separated_count > 25


@each_kind
def test_swapping_field_and_shape_negates_the_normal(kind):
    table, field, _, shapes = field_and_shapes(kind, np.random.default_rng([2, kind]), -0.5, 1.0, 40)
    results, swapped = (
        table.distances([(field, shape) for shape in shapes]),
        table.distances([(shape, field) for shape in shapes]),
    )
    np.testing.assert_array_equal(swapped[:, 0], results[:, 0])
    np.testing.assert_array_equal(swapped[:, 1:4], -results[:, 1:4])
    np.testing.assert_array_equal(swapped[:, 7:], results[:, 4:7])


@each_kind
@pytest.mark.parametrize("slope", [0.0, 0.4])
def test_plane_height_field_has_the_distances_of_a_half_space(kind, slope):
    """Also for shapes that are deeper in it than a cell is wide."""
    rng, table = np.random.default_rng([3, kind]), Table()
    x, _ = np.meshgrid(np.linspace(-20, 20, 201), np.linspace(-20, 20, 201))
    field = table.add_height_field(slope * x, (40.0, 40.0), -30.0)
    plane = table.add(HALF_SPACE, R=rotation.about_y(-np.arctan(slope)))
    shapes = [table.add_random(kind, rng) for _ in range(30)]
    results, expected = (table.distances([(surface, shape) for shape in shapes]) for surface in (field, plane))
    check_form(results)
    np.testing.assert_allclose(results[:, 0], expected[:, 0], atol=1e-9)
    np.testing.assert_allclose(results[:, 1:4], expected[:, 1:4], atol=1e-6)


@each_kind
def test_repeated_translation_along_the_normal_leads_out_of_the_field(kind):
    """Each translation is as long as the depth, as in a solver."""
    rng = np.random.default_rng([4, kind])
    table, field, _, shapes = field_and_shapes(kind, rng, -0.4, 0.1, 40)
    pairs, first_distances = [(field, shape) for shape in shapes], None
    for _ in range(30):
        results = table.distances(pairs)
        check_form(results)
        first_distances = results[:, 0] if first_distances is None else first_distances
        for shape, (d, *n) in zip(shapes, results[:, :4], strict=True):
            table.X[shape][9:] += max(1e-6 - d, 0.0) * np.array(n)
    assert (first_distances < -0.1).sum() > 8
    assert (table.distances(pairs)[:, 0] > -1e-9).all()


@each_kind
def test_derivative_of_the_distance_to_a_height_field_is_its_normal(kind):
    rng = np.random.default_rng([5, kind])
    table, field, _, shapes = field_and_shapes(kind, rng, -0.3, 0.8, 60)
    pairs = [(field, shape) for shape in shapes]
    results, X, e, compared = table.distances(pairs), np.array(table.X), 1e-6, 0
    for k in range(6):
        axis, distances = np.eye(3)[k % 3], []
        for s in (e, -e):
            Y = X.copy()
            if k < 3:
                Y[shapes, 9:] += s * axis
            else:
                Y[shapes, :9] = (rotation.exp(s * axis) @ X[shapes, :9].reshape(-1, 3, 3)).reshape(-1, 9)
            distances.append(table.distances(pairs, Y)[:, 0])
        n, lever = results[:, 1:4], results[:, 7:] - X[shapes, 9:]
        slope = n[:, k] if k < 3 else np.cross(lever, n)[:, k - 3]
        is_smooth = np.abs(distances[0] + distances[1] - 2 * results[:, 0]) < 1e-10
        np.testing.assert_allclose(slope[is_smooth], (distances[0] - distances[1])[is_smooth] / (2 * e), atol=1e-4)
        compared += is_smooth.sum()
    assert compared > 0.7 * 6 * len(pairs)


def test_cells_are_split_from_low_x_low_y_to_high_x_high_y():
    """As in MuJoCo: with one corner raised, at high x and low y, the middle of the cell stays low."""
    table = Table()
    field = table.add_height_field([[0.0, 1.0], [0.0, 0.0]], (2.0, 2.0), -1.0)
    positions = [(-0.3, 0.3), (0.0, 0.0), (0.3, -0.3)]
    above, below = ([table.add(SPHERE, 0.0, p=(x, y, z)) for x, y in positions] for z in (0.01, -0.01))
    d = table.distances([(field, k) for k in (*above, *below)])[:, 0]
    np.testing.assert_array_equal(np.sign(d), [1, 1, -1, -1, -1, -1])


def test_height_fields_and_half_spaces_have_distances_to_each_other():
    table, rng = Table(), np.random.default_rng(6)
    low = table.add_height_field(np.zeros((3, 3)), (1.0, 1.0), -0.1)
    high = table.add_height_field(rng.uniform(0.0, 0.2, (3, 4)), (1.0, 1.0), -0.1, p=(0.1, 0.2, 0.5))
    plane = table.add(HALF_SPACE, p=(0, 0, -0.3))
    ceiling = table.add(HALF_SPACE, R=rotation.about_x(np.pi), p=(0, 0, 0.7))
    pairs = [(low, high), (high, low), (low, plane), (plane, low), (high, ceiling)]
    results = table.distances(pairs)
    check_form(results)
    top = np.concatenate(table.P)[int(table.S[high].sizes[0]) :][:12, 2].max()
    np.testing.assert_allclose(results[:, 0], [0.4, 0.4, 0.2, 0.2, 0.2 - top], atol=1e-12)


def test_shape_in_a_cliff_leaves_sideways_where_that_is_shorter():
    """A cliff of 1 m: a box that is 1 cm in its face need not be lifted over the top."""
    table = Table()
    heights = np.zeros((3, 401))
    heights[:, 201:] = 1.0
    field = table.add_height_field(heights, (4.0, 4.0), -1.0)
    box = table.add(BOX, 0.1, 0.1, 0.1, p=(-0.092, 0.0, 0.3))
    (result,) = table.distances([(field, box)])
    assert -0.02 < result[0] < 0
    assert result[1] < -0.9
