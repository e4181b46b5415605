"""Points and spheres on a terrain: the offset surface, goals, and files of goals."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import seeds

import mechanik as mk
from mechanik.errors import FormatError, InvalidArgument, NotFinite, ObjectiveError, ShapeError
from mechanik.objectives import load_objectives, save_objectives
from mechanik.objectives.objective_file import objective_from_dict, objective_to_dict

RADIUS = 0.25


def terrain_from_function(height, cell=0.2, half_width=2.0):
    """Return a terrain about the origin from a function of x and y."""
    coordinates = np.arange(-half_width, half_width + cell / 2, cell)
    return mk.Terrain(height(*np.meshgrid(coordinates, coordinates)), cell, (-half_width, -half_width))


def hills(x, y):
    return 0.25 * np.sin(1.3 * x + 0.4) * np.cos(1.1 * y) + 0.1 * np.sin(2.3 * y + x)


def random_terrain_and_rng(seed):
    rng = np.random.default_rng(seed)
    cell = float(rng.uniform(0.1, 1))
    return mk.Terrain(rng.uniform(-0.5, 0.5, rng.integers(2, 5, 2)) * cell, cell, rng.uniform(-1, 1, 2)), rng


def grid_points(terrain):
    (ny, nx), (x, y) = terrain.heights.shape, terrain.origin
    return np.meshgrid(x + terrain.cell * np.arange(nx), y + terrain.cell * np.arange(ny))


def sphere_samples(radius, count, rng):
    """Return x and y of random points below a sphere, relative to its centre, and the depth of its surface there."""
    length, angle = radius * np.sqrt(rng.uniform(0, 1, count)), rng.uniform(0, 2 * math.pi, count)
    return length * np.cos(angle), length * np.sin(angle), np.sqrt(radius**2 - length**2)


# ---- offset surface -----------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(st.builds(random_terrain_and_rng, seeds), st.floats(0.1, 2), st.integers(1, 4))
def test_a_sphere_on_a_grid_point_of_the_offset_surface_touches_the_terrain_and_does_not_penetrate(
    terrain_and_rng, size, subdivisions
):
    terrain, rng = terrain_and_rng
    radius = size * terrain.cell
    offset = terrain.offset_by(radius, subdivisions)
    x, y = (coordinate.ravel() for coordinate in grid_points(offset))
    chosen = rng.integers(x.size, size=60)
    x, y, z = x[chosen, None], y[chosen, None], offset.heights.ravel()[chosen, None]
    a, b, cap = sphere_samples(radius, 4000, rng)
    above = z - cap - terrain.height(x + a, y + b)  # of the lower half of the sphere, at many points
    assert above.min() > -1e-3 * terrain.cell  # of two contacts of nearly the same height the lower one may be chosen
    assert np.median(above.min(axis=1)) >= 0.0
    assert above.min(axis=1).max() < 0.03 * radius  # one of 4,000 points is near the contact


@pytest.mark.parametrize("slope", [(0.0, 0.0), (0.7, 0.0), (-0.3, 0.4), (0.0, -3.0)])
def test_over_a_plane_the_offset_surface_has_the_radius_as_distance(slope):
    terrain = terrain_from_function(lambda x, y: slope[0] * x + slope[1] * y)
    offset = terrain.offset_by(RADIUS)
    x, y = np.random.default_rng(0).uniform(-1, 1, (2, 50))
    vertical_distance = RADIUS * math.hypot(*slope, 1.0)
    np.testing.assert_allclose(offset.height(x, y), terrain.height(x, y) + vertical_distance, rtol=0, atol=1e-12)


def test_over_smooth_terrain_the_offset_surface_is_accurate_between_grid_points():
    # measured: 6e-5 m for cells of 0.2 m and a radius of curvature of 4 m, since second derivatives of cubics jump
    terrain, rng = terrain_from_function(hills), np.random.default_rng(1)
    offset = terrain.offset_by(RADIUS)
    x, y = rng.uniform(-1.5, 1.5, (2, 300))
    contact = np.stack([x, y], axis=-1)
    for _ in range(
        200
    ):  # fixed-point iteration for the contact, whose normal leads to the centre; the terrain is not steep
        _, dh_dx, dh_dy = terrain.height_and_gradient(contact[:, 0], contact[:, 1])
        contact = (
            np.stack([x, y], axis=-1)
            + RADIUS * np.stack([dh_dx, dh_dy], axis=-1) / np.hypot(1, np.hypot(dh_dx, dh_dy))[:, None]
        )
    shift = contact - np.stack([x, y], axis=-1)
    centre = terrain.height(contact[:, 0], contact[:, 1]) + np.sqrt(RADIUS**2 - (shift**2).sum(axis=1))
    assert np.abs(offset.height(x, y) - centre).max() < 1e-4


def test_a_sphere_too_large_for_a_pit_rests_on_its_rim():
    pit = terrain_from_function(lambda x, y: np.where(np.hypot(x, y) < 0.3, -1.0, 0.0), cell=0.1)
    offset = pit.offset_by(2.0, subdivisions=1)
    assert offset.height(0.0, 0.0) > 1.9
    small = pit.offset_by(0.05)
    assert small.height(0.0, 0.0) == pytest.approx(-0.95, abs=1e-6)


def test_the_offset_surface_continues_beyond_the_edge_like_the_terrain():
    terrain = terrain_from_function(lambda x, y: 0 * x + 0.3 * y)
    offset = terrain.offset_by(0.5)
    # along x the terrain is constant
    np.testing.assert_allclose(offset.height([5.0, 50.0], [0.4, 0.4]), offset.height(0.0, 0.4), atol=1e-12)
    np.testing.assert_allclose(offset.height(0.0, [9.0, 90.0]), 0.6 + 0.5, atol=1e-12)


def test_radius_zero_returns_the_terrain_and_equal_radii_share_one_offset_surface():
    terrain = terrain_from_function(hills)
    assert terrain.offset_by(0.0) is terrain
    assert terrain.offset_by(0.1) is terrain.offset_by(0.1)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda t: t.offset_by(-1.0), ObjectiveError, "must not be negative"),
        (lambda t: t.offset_by(math.nan), NotFinite, "radius of a sphere"),
        (lambda t: t.offset_by(1.0, 0), ObjectiveError, "subdivisions must be an integer"),
        (lambda t: t.offset_by(1.0, 1.5), ObjectiveError, "subdivisions must be an integer"),
        (lambda t: mk.OnTerrain("foot", t, radius=-1), ObjectiveError, "must not be negative"),
        (lambda t: mk.OnTerrain("foot", t, at=(1, 2)), ShapeError, "point of OnTerrain"),
        (lambda t: mk.OnTerrain("foot", t.heights), InvalidArgument, "terrain of OnTerrain must be a Terrain"),
        (lambda t: mk.OnTerrain("foot", t, relative_to="foot"), ObjectiveError, "relative to itself"),
        (lambda t: mk.OnTerrain("foot", t).with_target((0, 0, 1)), ObjectiveError, "no target"),
    ],
)
def test_wrong_arguments_of_terrain_goals_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(terrain_from_function(hills))


# ---- goals --------------------------------------------------------------------------------------


def test_a_leg_is_solved_onto_the_terrain_and_the_residual_is_its_height():
    builder = mk.Builder()
    builder.prismatic("x", "world", "cart", axis="x", limits=(-1, 1))
    builder.prismatic("z", "cart", "leg", at=(0, 0.3, 1.0), axis="z", limits=(-3, 3))
    leg, terrain = builder.build(), terrain_from_function(hills)
    for radius in (0.0, 0.2):
        goal = mk.OnTerrain("leg", terrain, (0.1, 0, -0.5), radius, name="foot")
        q = np.array([0.4, 0.2])
        height = 1.0 + 0.2 - 0.5 - terrain.offset_by(radius).height(0.5, 0.3)
        np.testing.assert_allclose(goal.residual(leg, q), [height], atol=1e-14)
        assert goal.error(leg, q).position == pytest.approx(abs(height))
        solution = mk.solve(leg, [goal, mk.JointValues({"x": -0.3})])
        assert solution.success, solution
        p = leg.pose("leg", solution.q)[:3, 3] + (0.1, 0, -0.5)
        assert p[2] == pytest.approx(float(terrain.offset_by(radius).height(p[0], p[1])), abs=1e-6)


def test_a_terrain_may_be_fixed_to_a_link():
    builder = mk.Builder()
    builder.prismatic("lift", "world", "table", axis="z")
    builder.prismatic("probe", "world", "tip", axis="z")
    mechanism = builder.build()
    goal = mk.OnTerrain("tip", terrain_from_function(lambda x, y: 0 * x + 0.1), relative_to="table")
    q = mechanism.configuration({"lift": 0.7, "probe": 1.0})
    np.testing.assert_allclose(goal.residual(mechanism, q), [1.0 - 0.7 - 0.1], atol=1e-14)


# ---- saving -------------------------------------------------------------------------------------


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_a_terrain_goal_survives_a_round_trip_exactly(seed):
    terrain, rng = random_terrain_and_rng(seed)
    goal = mk.OnTerrain("foot", terrain, rng.normal(size=3), float(rng.random()), relative_to="table", weight=2.5)
    data = objective_to_dict(goal)
    loaded = objective_from_dict(json.loads(json.dumps(data)))
    assert isinstance(loaded, mk.OnTerrain)
    assert objective_to_dict(loaded) == data


def test_a_file_stores_a_shared_terrain_once(tmp_path):
    hilly, flat = terrain_from_function(hills), terrain_from_function(lambda x, y: 0 * x)
    goals = [
        mk.OnTerrain("left", hilly, radius=0.1),
        mk.OnTerrain("right", hilly, name="right"),
        mk.PositionGoal("hand", (1, 2, 3)),
        mk.OnTerrain("tail", flat),
    ]
    save_objectives(goals, tmp_path / "goals.json")
    assert len(json.loads((tmp_path / "goals.json").read_text())["terrains"]) == 2
    loaded = load_objectives(tmp_path / "goals.json")
    assert [objective_to_dict(goal) for goal in loaded] == [objective_to_dict(goal) for goal in goals]
    assert loaded[0].terrain is loaded[1].terrain


GOOD = objective_to_dict(mk.OnTerrain("foot", mk.Terrain(np.zeros((2, 2)), 1.0)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"terrain": 0}, "there is no terrain with index 0; the file has 0 terrains"),
        ({"terrain": None}, r"objective\.terrain: expected an object"),
        ({"terrain": {"cell": 1.0}}, "'heights' is missing"),
        ({"terrain": {"heights": [[0, 0]], "cell": 1.0}}, r"at least \(2, 2\)"),
        ({"terrain": {"heights": [[0, 0], [0, 0]], "cell": 1.0, "orign": [0, 0]}}, "Did you mean 'origin'"),
        ({"radius": -1.0}, "must not be negative"),
        ({"position": [0, 0, 0]}, "no key is called 'position'"),
    ],
)
def test_wrong_data_of_a_terrain_goal_are_refused_with_their_position(change, message):
    with pytest.raises(FormatError, match=message):
        objective_from_dict({**GOOD, **change})
