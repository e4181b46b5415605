"""Terrain as a height field: it interpolates all heights, has no kinks, and is flat beyond its edge."""

from __future__ import annotations

import numpy as np
import pytest
from derivatives import by_differences
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import mechanisms, random_pose, seeds

from mechanik.errors import NotFinite, ObjectiveError, ShapeError
from mechanik.objectives.relation import Relation, RelationKind, evaluate_relation
from mechanik.objectives.terrain import Terrain
from mechanik.spatial import from_position_wxyz


def random_terrain(seed):
    rng = np.random.default_rng(seed)
    return Terrain(rng.uniform(-1, 1, rng.integers(2, 7, 2)), float(rng.uniform(0.2, 1)), rng.uniform(-1, 1, 2))


terrains = st.builds(random_terrain, seeds)


def grid_points(terrain):
    (ny, nx), (x, y) = terrain.heights.shape, terrain.origin
    return np.meshgrid(x + terrain.cell * np.arange(nx), y + terrain.cell * np.arange(ny))


@settings(max_examples=40)
@given(terrains)
def test_the_surface_interpolates_every_height(terrain):
    np.testing.assert_allclose(terrain.height(*grid_points(terrain)), terrain.heights, rtol=0, atol=1e-12)


@settings(max_examples=40)
@given(terrains, seeds)
def test_height_and_gradient_are_continuous_at_cell_edges(terrain, seed):
    rng = np.random.default_rng(seed)
    x = terrain.origin[0] + terrain.cell * np.arange(-3, terrain.heights.shape[1] + 3)
    y = terrain.origin[1] + terrain.cell * rng.uniform(-3, terrain.heights.shape[0] + 3, x.shape)
    before, after = (terrain.height_and_gradient(x + side, y) for side in (-1e-11, 1e-11))
    for values_before, values_after in zip(before, after, strict=True):
        np.testing.assert_allclose(values_before, values_after, rtol=0, atol=1e-8)


@settings(max_examples=40)
@given(terrains, seeds)
def test_the_gradient_is_the_derivative_of_the_height(terrain, seed):
    x, y = np.random.default_rng(seed).uniform(-3, 6, (2, 50))
    h = 1e-6
    _, dh_dx, dh_dy = terrain.height_and_gradient(x, y)
    tolerance = (
        h * 15 / terrain.cell**2 + 1e-9
    )  # bound of the second derivative for heights between -1 and 1; it jumps at cell edges
    np.testing.assert_allclose(
        (terrain.height(x + h, y) - terrain.height(x - h, y)) / (2 * h), dh_dx, rtol=0, atol=tolerance
    )
    np.testing.assert_allclose(
        (terrain.height(x, y + h) - terrain.height(x, y - h)) / (2 * h), dh_dy, rtol=0, atol=tolerance
    )


@settings(max_examples=40)
@given(seeds)
def test_quadratic_surfaces_are_reproduced_exactly_away_from_the_edge(seed):
    rng = np.random.default_rng(seed)
    a, b, c, d, e, f = rng.uniform(-1, 1, 6)

    def bowl(x, y):
        return a + b * x + c * y + d * x * x + e * x * y + f * y * y

    terrain = Terrain(bowl(*np.meshgrid(0.5 * np.arange(9), 0.5 * np.arange(8))), 0.5)
    x, y = rng.uniform(0.5, 3.0, (2, 40))
    height, dh_dx, dh_dy = terrain.height_and_gradient(x, y)
    np.testing.assert_allclose(height, bowl(x, y), atol=1e-12)
    np.testing.assert_allclose(dh_dx, b + 2 * d * x + e * y, atol=1e-12)
    np.testing.assert_allclose(dh_dy, c + e * x + 2 * f * y, atol=1e-12)


@settings(max_examples=40)
@given(terrains)
def test_the_terrain_is_flat_from_one_cell_beyond_the_edge(terrain):
    ny, nx = terrain.heights.shape
    x_corner, y_corner = terrain.origin
    for cells_beyond in (1.0, 1.7, 40.0, 1e12):
        height, dh_dx, dh_dy = terrain.height_and_gradient(
            x_corner - cells_beyond * terrain.cell, y_corner - cells_beyond * terrain.cell
        )
        np.testing.assert_allclose([height, dh_dx, dh_dy], [terrain.heights[0, 0], 0, 0], atol=1e-12)
        end = terrain.origin + terrain.cell * (np.array([nx, ny]) - 1 + cells_beyond)
        height, dh_dx, dh_dy = terrain.height_and_gradient(*end)
        np.testing.assert_allclose([height, dh_dx, dh_dy], [terrain.heights[-1, -1], 0, 0], atol=1e-9)


@settings(max_examples=40)
@given(terrains, seeds)
def test_normals_are_perpendicular_to_the_tangents(terrain, seed):
    x, y = np.random.default_rng(seed).uniform(-3, 6, (2, 7, 3))
    normal, (_, dh_dx, dh_dy) = terrain.normal(x, y), terrain.height_and_gradient(x, y)
    ones = np.ones_like(dh_dx)
    assert normal.shape == (7, 3, 3)
    np.testing.assert_allclose((normal * np.stack([ones, 0 * ones, dh_dx], axis=-1)).sum(-1), 0, atol=1e-12)
    np.testing.assert_allclose((normal * np.stack([0 * ones, ones, dh_dy], axis=-1)).sum(-1), 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=-1), 1, atol=1e-12)


@settings(max_examples=30)
@given(mechanisms, seeds)
def test_the_jacobian_of_a_height_relation_is_its_derivative(mechanism, seed):
    rng = np.random.default_rng(seed)
    links = [None, *mechanism.links]
    a, b = (links[rng.integers(len(links))] for _ in range(2))
    frames = [from_position_wxyz(*random_pose(rng).values()) for _ in range(2)]
    # so large that the point is well inside, where the third derivatives have no jumps
    x, y = np.meshgrid(np.arange(-100, 101), np.arange(-100, 101))
    terrain = Terrain(0.01 * x * y + 0.02 * x * x - 0.1 * y, 1.0, (-100, -100))
    relation = Relation(RelationKind.HEIGHT, (0,), a, b, *frames, terrain=terrain)
    q = mechanism.random(rng)
    _, J = evaluate_relation(mechanism, relation, q)
    differences = by_differences(mechanism, lambda at: evaluate_relation(mechanism, relation, at)[0], q, 1e-4)
    np.testing.assert_allclose(J, differences, rtol=1e-6, atol=1e-6 * (1 + np.abs(J).max(initial=1.0)))


@pytest.mark.parametrize(
    ("heights", "cell", "origin", "error", "text"),
    [
        ([1.0, 2.0], 1.0, (0, 0), ShapeError, r"not \(2,\)"),
        ([[1.0], [2.0]], 1.0, (0, 0), ShapeError, r"at least \(2, 2\)"),
        ([["high", 1], [2, 3]], 1.0, (0, 0), ShapeError, "numbers"),
        ([["1", "2"], ["3", "4"]], 1.0, (0, 0), ShapeError, "numbers"),
        (np.full((2, 2), 1 + 1j), 1.0, (0, 0), ShapeError, "numbers"),
        ([[1.0, np.nan], [2, 3]], 1.0, (0, 0), ObjectiveError, r"heights\[0, 1\] .* is nan"),
        (np.zeros((2, 2)), 0.0, (0, 0), ObjectiveError, "cell of a terrain is 0 m"),
        (np.zeros((2, 2)), np.inf, (0, 0), NotFinite, "cell"),
        (np.zeros((2, 2)), 1.0, (0, 0, 0), ShapeError, "origin of a terrain must have 2 numbers"),
    ],
)
def test_wrong_terrains_are_refused_with_the_reason(heights, cell, origin, error, text):
    with pytest.raises(error, match=text):
        Terrain(heights, cell, origin)


@pytest.mark.parametrize(
    ("x", "y", "error", "text"),
    [
        ("here", 0.0, ShapeError, "numbers in m, not 'here'"),
        (0.0, "1", ShapeError, "numbers in m, not '1'"),
        (1j, 0.0, ShapeError, "numbers in m"),
        (np.nan, 0.0, NotFinite, "x of a point on a terrain is nan"),
        (None, 0.0, NotFinite, "x of a point on a terrain is nan"),
        ([0.0, 1.0], [0.0, np.inf], NotFinite, "y of a point on a terrain is inf"),
        ([0.0, 1.0], [0.0, 1.0, 2.0], ShapeError, r"\(2,\) and \(3,\)"),
    ],
)
@pytest.mark.parametrize("method", [Terrain.height, Terrain.normal])
def test_wrong_coordinates_are_refused_with_the_reason(method, x, y, error, text):
    with pytest.raises(error, match=text):
        method(Terrain(np.zeros((3, 3)), 1.0), x, y)
