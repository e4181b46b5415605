"""Points and balls that stand on ground: where a ball touches, and what is saved of a goal."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import seeds

import mechanik as mk
from mechanik.errors import InvalidArgument, JsonError, NotFinite, ObjectiveError, ShapeError
from mechanik.objectives import load_objectives, save_objectives
from mechanik.objectives.objective_file import objective_from_dict, objective_to_dict

RADIUS = 0.25


def ground(height, cell=0.2, far=2.0):
    """A terrain about the origin, from a function of x and y."""
    along = np.arange(-far, far + cell / 2, cell)
    return mk.Terrain(height(*np.meshgrid(along, along)), cell, (-far, -far))


def bumps(x, y):
    return 0.25 * np.sin(1.3 * x + 0.4) * np.cos(1.1 * y) + 0.1 * np.sin(2.3 * y + x)


def random_ground(seed):
    rng = np.random.default_rng(seed)
    cell = float(rng.uniform(0.1, 1))
    return mk.Terrain(rng.uniform(-0.5, 0.5, rng.integers(2, 5, 2)) * cell, cell, rng.uniform(-1, 1, 2)), rng


def corners(terrain):
    (ny, nx), (x, y) = terrain.heights.shape, terrain.origin
    return np.meshgrid(x + terrain.cell * np.arange(nx), y + terrain.cell * np.arange(ny))


def shifts(radius, count, rng):
    """Places (count, 2) under a ball, and how far above its centre's height it is there; evenly, and at its rim."""
    length, angle = radius * np.sqrt(rng.uniform(0, 1, count)), rng.uniform(0, 2 * math.pi, count)
    return length * np.cos(angle), length * np.sin(angle), np.sqrt(radius**2 - length**2)


# ---- the surface on which a ball rolls ----------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(st.builds(random_ground, seeds), st.floats(0.1, 2), st.integers(1, 4))
def test_a_ball_whose_centre_is_at_a_corner_of_the_raised_surface_touches_and_is_nowhere_below_ground(
    drawn, size, finer
):
    terrain, rng = drawn
    radius = size * terrain.cell
    raised = terrain.offset_by(radius, finer)
    x, y = (one.ravel() for one in corners(raised))
    chosen = rng.integers(x.size, size=60)
    x, y, z = x[chosen, None], y[chosen, None], raised.heights.ravel()[chosen, None]
    a, b, cap = shifts(radius, 4000, rng)
    above = z - cap - terrain.height(x + a, y + b)  # of the ball's lower half, at many places
    assert above.min() > -1e-3 * terrain.cell  # two places that are nearly as high may be taken for each other
    assert np.median(above.min(axis=1)) >= 0.0
    assert above.min(axis=1).max() < 0.03 * radius  # of 4,000 places one is near to where it touches


@pytest.mark.parametrize("slope", [(0.0, 0.0), (0.7, 0.0), (-0.3, 0.4), (0.0, -3.0)])
def test_over_a_slope_the_centre_is_as_far_from_the_ground_as_the_radius(slope):
    terrain = ground(lambda x, y: slope[0] * x + slope[1] * y)
    raised = terrain.offset_by(RADIUS)
    x, y = np.random.default_rng(0).uniform(-1, 1, (2, 50))
    upright = RADIUS * math.hypot(*slope, 1.0)
    np.testing.assert_allclose(raised.height(x, y), terrain.height(x, y) + upright, rtol=0, atol=1e-12)


def test_over_smooth_ground_the_raised_surface_is_off_between_corners_by_less_than_a_ten_thousandth_of_a_cell():
    # measured: 6e-5 m for cells of 0.2 m that bend as much as a ball of 4 m; the cubics' own jumps of bend
    terrain, rng = ground(bumps), np.random.default_rng(1)
    raised = terrain.offset_by(RADIUS)
    x, y = rng.uniform(-1.5, 1.5, (2, 300))
    touched = np.stack([x, y], axis=-1)
    for _ in range(200):  # where the ball touches: there the ground's slope leads to its centre; it is no steep ground
        _, by_x, by_y = terrain.height_and_gradient(touched[:, 0], touched[:, 1])
        touched = (
            np.stack([x, y], axis=-1)
            + RADIUS * np.stack([by_x, by_y], axis=-1) / np.hypot(1, np.hypot(by_x, by_y))[:, None]
        )
    shift = touched - np.stack([x, y], axis=-1)
    centre = terrain.height(touched[:, 0], touched[:, 1]) + np.sqrt(RADIUS**2 - (shift**2).sum(axis=1))
    assert np.abs(raised.height(x, y) - centre).max() < 1e-4


def test_a_ball_too_large_for_a_pit_lies_on_its_rim():
    pit = ground(lambda x, y: np.where(np.hypot(x, y) < 0.3, -1.0, 0.0), cell=0.1)
    raised = pit.offset_by(2.0, subdivisions=1)
    assert raised.height(0.0, 0.0) > 1.9
    small = pit.offset_by(0.05)
    assert small.height(0.0, 0.0) == pytest.approx(-0.95, abs=1e-6)


def test_a_ball_feels_the_ground_beyond_the_edge_as_the_ground_goes_on():
    terrain = ground(lambda x, y: 0 * x + 0.3 * y)
    raised = terrain.offset_by(0.5)
    # along x it goes on as it is, for ever
    np.testing.assert_allclose(raised.height([5.0, 50.0], [0.4, 0.4]), raised.height(0.0, 0.4), atol=1e-12)
    np.testing.assert_allclose(raised.height(0.0, [9.0, 90.0]), 0.6 + 0.5, atol=1e-12)


def test_no_radius_leaves_the_ground_as_it_is_and_the_same_ball_gives_the_same_surface():
    terrain = ground(bumps)
    assert terrain.offset_by(0.0) is terrain
    assert terrain.offset_by(0.1) is terrain.offset_by(0.1)


@pytest.mark.parametrize(
    ("ask", "error", "text"),
    [
        (lambda t: t.offset_by(-1.0), ObjectiveError, "must not be negative"),
        (lambda t: t.offset_by(math.nan), NotFinite, "radius of a sphere"),
        (lambda t: t.offset_by(1.0, 0), ObjectiveError, "subdivisions must be a whole number"),
        (lambda t: t.offset_by(1.0, 1.5), ObjectiveError, "subdivisions must be a whole number"),
        (lambda t: mk.OnTerrain("foot", t, radius=-1), ObjectiveError, "must not be negative"),
        (lambda t: mk.OnTerrain("foot", t, at=(1, 2)), ShapeError, "at of OnTerrain"),
        (lambda t: mk.OnTerrain("foot", t.heights), InvalidArgument, "terrain of OnTerrain must be a Terrain"),
        (lambda t: mk.OnTerrain("foot", t, relative_to="foot"), ObjectiveError, "relative to itself"),
        (lambda t: mk.OnTerrain("foot", t).with_target((0, 0, 1)), ObjectiveError, "no target"),
    ],
)
def test_what_cannot_stand_on_ground_is_refused(ask, error, text):
    with pytest.raises(error, match=text):
        ask(ground(bumps))


# ---- goals --------------------------------------------------------------------------------------


def test_a_leg_is_set_down_on_the_ground_and_lies_as_far_above_it_as_its_residual_says():
    builder = mk.Builder()
    builder.prismatic("x", "world", "cart", axis="x", limits=(-1, 1))
    builder.prismatic("z", "cart", "leg", at=(0, 0.3, 1.0), axis="z", limits=(-3, 3))
    leg, terrain = builder.build(), ground(bumps)
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


def test_ground_can_be_carried_by_a_link():
    builder = mk.Builder()
    builder.prismatic("lift", "world", "table", axis="z")
    builder.prismatic("probe", "world", "tip", axis="z")
    mechanism = builder.build()
    goal = mk.OnTerrain("tip", ground(lambda x, y: 0 * x + 0.1), relative_to="table")
    q = mechanism.configuration({"lift": 0.7, "probe": 1.0})
    np.testing.assert_allclose(goal.residual(mechanism, q), [1.0 - 0.7 - 0.1], atol=1e-14)


# ---- saving -------------------------------------------------------------------------------------


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_data_come_back_as_the_same_goal_to_the_bit(seed):
    terrain, rng = random_ground(seed)
    goal = mk.OnTerrain("foot", terrain, rng.normal(size=3), float(rng.random()), relative_to="table", weight=2.5)
    data = objective_to_dict(goal)
    again = objective_from_dict(json.loads(json.dumps(data)))
    assert isinstance(again, mk.OnTerrain)
    assert objective_to_dict(again) == data


def test_a_file_holds_ground_that_several_share_once(tmp_path):
    one, other = ground(bumps), ground(lambda x, y: 0 * x)
    goals = [
        mk.OnTerrain("left", one, radius=0.1),
        mk.OnTerrain("right", one, name="right"),
        mk.PositionGoal("hand", (1, 2, 3)),
        mk.OnTerrain("tail", other),
    ]
    save_objectives(goals, tmp_path / "goals.json")
    assert len(json.loads((tmp_path / "goals.json").read_text())["terrains"]) == 2
    again = load_objectives(tmp_path / "goals.json")
    assert [objective_to_dict(one) for one in again] == [objective_to_dict(one) for one in goals]
    assert again[0].terrain is again[1].terrain


GOOD = objective_to_dict(mk.OnTerrain("foot", mk.Terrain(np.zeros((2, 2)), 1.0)))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"terrain": 0}, "there is no terrain 0; the file has 0 terrains"),
        ({"terrain": None}, r"objective\.terrain: expected an object"),
        ({"terrain": {"cell": 1.0}}, "'heights' is missing"),
        ({"terrain": {"heights": [[0, 0]], "cell": 1.0}}, r"at least \(2, 2\)"),
        ({"terrain": {"heights": [[0, 0], [0, 0]], "cell": 1.0, "orign": [0, 0]}}, "Did you mean 'origin'"),
        ({"radius": -1.0}, "must not be negative"),
        ({"position": [0, 0, 0]}, "no key is called 'position'"),
    ],
)
def test_data_that_do_not_fit_are_named_with_their_place(change, says):
    with pytest.raises(JsonError, match=says):
        objective_from_dict({**GOOD, **change})
