"""Clearance: its residual is made of distances, it is met where they are large enough, and at level 0 goals yield."""

from __future__ import annotations

import numpy as np
import pytest
from cluttered_arms import ball, panda_among, planar_arm, rail, wall
from hypothesis import given
from hypothesis import strategies as st

import mechanik as mk
from mechanik.collision import Collider
from mechanik.errors import InvalidArgument, NotFinite, StructureError, UnknownName
from mechanik.objectives.clearance import ACTIVATION_DISTANCE, Clearance

PANDA, COLLIDER = panda_among()


@given(st.integers(0, 10_000), st.floats(-0.05, 0.1))
def test_clearance_is_met_exactly_where_the_smallest_distance_is_large_enough(seed, clearance):
    q = PANDA.random(np.random.default_rng(seed))
    objective = Clearance(COLLIDER, clearance)
    distance = COLLIDER.distance(q)
    assert objective.error(PANDA, q).position == max(0.0, clearance - distance)
    violations = objective.residual(PANDA, q)
    assert (violations <= 0.0).all()
    assert np.isclose(-violations.min(), max(0.0, clearance - distance), rtol=0.0, atol=1e-12)


@given(st.integers(0, 10_000))
def test_the_jacobian_is_the_derivative_of_the_distances(seed):
    rng = np.random.default_rng(seed)
    q, direction, h = PANDA.random(rng), rng.normal(size=PANDA.nv), 1e-6
    residual = Clearance(COLLIDER, 0.05).relations(PANDA)[0].function
    distances, J = residual(PANDA, q)
    ahead, behind = (residual(PANDA, PANDA.integrate(q, side * h * direction))[0] for side in (1, -1))
    derivative = (ahead - behind) / (2 * h)
    # a row is the distance of the nearest of several pairs: it has a kink where the nearest pair changes
    smooth = np.abs(ahead - 2 * distances + behind) < 1e-9
    near = (distances < 0.05 + ACTIVATION_DISTANCE - 1e-3) & smooth
    assert smooth.mean() > 0.8
    assert np.allclose((J @ direction)[near], derivative[near], rtol=0.0, atol=1e-4)


@given(st.floats(0.0, 0.3), st.floats(0.9, 1.9), st.floats(-1.9, 0.4))
def test_a_goal_behind_a_wall_is_approached_as_far_as_the_wall_allows(clearance, target, start):
    """A sphere of 0.1 m on a rail, in front of a wall whose face is at 0.9 m."""
    cart = rail()
    goals = [Clearance(wall(), clearance), mk.PositionGoal("cart", (target, 0, 0))]
    solution = mk.Solver(cart, goals, largest_error=0.1).solve(q0=np.array([start]))
    assert not solution.success
    assert abs(solution.q[0] - (0.8 - clearance)) < 1e-6
    assert Collider(cart, wall()).distance(solution.q) >= clearance - 1e-9


@given(st.floats(0.3, 3.0))
def test_clearance_at_the_level_of_goals_is_weighed_against_them(weight):
    """The goal and the wall act as two springs in series."""
    cart = rail()
    goals = [Clearance(wall(), level=1, weight=weight), mk.PositionGoal("cart", (1.0, 0, 0))]
    solver = mk.Solver(cart, goals)
    x = solver.solve(q0=np.zeros(1)).q[0]
    assert np.isclose(1.0 - x, weight**2 * (x - 0.8), rtol=1e-5)


def test_penetrating_bodies_are_separated():
    arm = planar_arm()
    collider = Collider(arm, ["self", ball(0.6, 0.2)])
    q0 = np.array([0.2, 0.1, 0.0, 0.0])
    assert collider.distance(q0) < -0.05
    solution = mk.Solver(arm, Clearance(collider, 0.02)).solve(q0=q0)
    assert solution.success
    assert collider.distance(solution.q) >= 0.02 - 1e-9


def test_avoid_may_be_one_obstacle_a_string_or_a_list():
    arm = planar_arm()
    for avoid in ("self", ball(-0.6, 0.2), ["self", ball(-0.6, 0.2)]):
        assert Clearance(avoid).error(arm, np.full(4, 0.4)).position == 0.0
        assert Clearance(avoid, 10.0).error(arm, np.full(4, 0.4)).position > 8.0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda arm: Clearance(Collider(rail(), wall())).relations(arm), StructureError, "another mechanism"),
        (lambda arm: Clearance("self", np.nan), NotFinite, "clearance"),
        (lambda arm: Clearance("slef").relations(arm), UnknownName, "Did you mean 'self'"),
        (lambda arm: Clearance(Collider(arm), allow=[("bar0", "bar2")]), InvalidArgument, "cannot be combined"),
        (lambda arm: Clearance("self", allow=[("bar0", "br2")]).relations(arm), UnknownName, "Did you mean 'bar2'"),
        (lambda arm: Clearance(3).relations(arm), InvalidArgument, "avoid takes"),
    ],
)
def test_wrong_arguments_of_clearance_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make(planar_arm())
