"""Solving with obstacles: a solution in collision is never a success, and reports the pair and the depth."""

from __future__ import annotations

import numpy as np
import pytest
from cluttered_arms import ball, four_bar, free_configurations, panda_among, planar_arm, rail, wall
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.collision import Collider
from mechanik.errors import (
    InvalidArgument,
    InvalidOperation,
    LimitsError,
    NotFinite,
    NotSolved,
    ObjectiveError,
    StructureError,
    UnknownName,
)
from mechanik.solver.solution import Status

PANDA, AMONG = panda_among()
HAND = "panda_link8"
SOLVERS = {
    clearance: mk.Solver(PANDA, mk.PoseGoal(HAND, np.eye(4)), avoid=AMONG, clearance=clearance)
    for clearance in (0.0, 0.01, 0.03)
}
SOLVER = SOLVERS[0.0]
ARM = planar_arm()
BALL = Collider(ARM, ["self", ball(0.6, 0.2)])
CARTS = {
    clearance: mk.Solver(rail(), mk.PositionGoal("cart", (0, 0, 0)), avoid=wall(), clearance=clearance, restarts=0)
    for clearance in (0.0, 0.003, 0.3)
}


def is_near(arm, link, q, X):
    return np.abs(arm.pose(link, q) - X).max() < 2e-6


# ---- laws -----------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from(sorted(SOLVERS)))
def test_a_success_is_free_of_collision_and_at_its_target(seed, has_start, clearance):
    rng = np.random.default_rng(seed)
    X, q0 = PANDA.pose(HAND, PANDA.random(rng)), PANDA.random(rng) if has_start else None
    solution = SOLVERS[clearance].solve(X, q0=q0)
    gap = AMONG.distance(solution.q)
    assert solution.success == (gap >= clearance - 1e-9 and is_near(PANDA, HAND, solution.q, X))
    assert solution.success == (solution.status is Status.CONVERGED)
    assert (solution.contacts == ()) == (gap >= clearance - 1e-9)
    assert (solution.q >= PANDA.space.lower).all()
    assert (solution.q <= PANDA.space.upper).all()


def test_targets_of_free_configurations_are_reached_without_collision():
    X = PANDA.pose(HAND, free_configurations(AMONG, 200))
    solutions = [SOLVER.solve(X_target) for X_target in X]
    assert sum(solution.success for solution in solutions) >= 199
    assert all(AMONG.distance(solution.q) >= -1e-9 for solution in solutions if solution.success)


def test_the_same_call_gives_the_same_solution():
    X = PANDA.pose(HAND, free_configurations(AMONG, 20, seed=5))
    first = [SOLVER.solve(X_target).q for X_target in X]
    again = [SOLVER.solve(X_target).q for X_target in reversed(X)][::-1]
    assert np.array_equal(first, again)


@given(st.sampled_from(sorted(CARTS)), st.floats(0.9, 1.9), st.floats(-1.9, 0.4))
def test_without_restarts_the_arm_moves_up_to_the_obstacle(clearance, target, start):
    """A ball of 0.1 m on a rail, before a wall whose face is at 0.9 m; the free space behind it is not reachable."""
    solution = CARTS[clearance].solve((target, 0, 0), q0=np.array([start]))
    assert abs(solution.q[0] - (0.8 - clearance)) < 1e-6
    assert not solution.success
    assert solution.contacts == ()
    assert [contact.b for contact in solution.blocking_contacts] == ["wall"]
    assert "'wall' blocks 'cart'" in solution.message


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_loops_stay_closed_during_collision_avoidance(seed):
    loop = four_bar()
    start = mk.Solver(loop, None).solve().q
    rng = np.random.default_rng(seed)
    obstacle = ball(*(loop.pose("coupler", start) @ [0.9, 0, 0, 1])[:2] + rng.uniform(-0.25, 0.25, 2), radius=0.1)
    collider = Collider(loop, obstacle)
    goal = mk.JointValues({"crank": float(start[0] + rng.uniform(-0.8, 0.8))})
    solution = mk.Solver(loop, goal, avoid=collider, clearance=0.01).solve(q0=start)
    assert all(error.position < 1e-9 for error in solution.closure_errors.values())
    gap = collider.distance(solution.q)
    assert solution.success == (gap >= 0.01 - 1e-9 and not solution.unmet)
    assert (solution.contacts == ()) == (gap >= 0.01 - 1e-9)


# ---- report -----------------------------------------------------------------------------------------


def test_a_target_inside_an_obstacle_names_the_pair_and_the_depth():
    solution = mk.solve(rail(), mk.PositionGoal("cart", (1.0, 0, 0)), avoid=wall())
    assert solution.status is Status.IN_COLLISION
    assert not solution.success
    assert (solution.contacts[0].a, solution.contacts[0].b) == ("cart", "wall")
    assert np.isclose(solution.contacts[0].depth, 0.2, atol=1e-6)
    assert "'cart' is 200 mm inside 'wall'" in solution.message
    assert "IN_COLLISION" in repr(solution)
    with pytest.raises(NotSolved, match="inside 'wall'"):
        solution.require()


def test_met_goals_in_unavoidable_collision_have_the_status_in_collision():
    """It returned CLOSEST, out of reach, without an unmet objective."""
    near = mk.PositionGoal("cart", (1.0, 0, 0), tolerance=0.05)
    solution = mk.solve(rail(), near, [1.01], avoid=wall(), limits={"slide": (0.98, 1.02)}, restarts=0)
    assert solution.status is Status.IN_COLLISION
    assert solution.unmet == ()
    assert "all objectives are met, but 'cart' is" in solution.message
    far = mk.solve(rail(), mk.PositionGoal("cart", (1.5, 0, 0)), [1.01], avoid=wall(), limits={"slide": (0.98, 1.02)})
    assert far.status is Status.CLOSEST


def test_of_several_solutions_in_collision_the_least_penetrating_is_returned():
    """The tip may come from any direction; the penetration is smallest when it points straight at the ball."""
    solver = mk.Solver(ARM, mk.PositionGoal("tip", (0.6, 0.3, 0)), avoid=BALL)
    solution = solver.solve()
    assert solution.status is Status.IN_COLLISION
    # the tip is 0.1 m from the middle of a ball of 0.15 m, the bar ends 0.05 m before it and is 0.04 m thick
    assert solution.contacts[0].depth < 0.15 - 0.1 - 0.05 + 0.04 + 1e-3


def test_a_target_out_of_reach_in_collision_reports_both():
    cart = rail()
    solution = mk.solve(cart, mk.PositionGoal("cart", (2.5, 0, 0)), avoid=wall(x=2.0))
    assert solution.status is Status.CLOSEST
    assert not solution.success
    assert "PositionGoal 0 (0.5 m)" in solution.message
    assert "in addition, 'cart' is 200 mm inside 'wall'" in solution.message


def test_a_solution_without_collision_avoidance_has_no_contacts():
    solution = mk.solve(rail(), mk.PositionGoal("cart", (1.0, 0, 0)))
    assert solution.success
    assert solution.contacts == solution.blocking_contacts == ()


# ---- options of a call --------------------------------------------------------------------------------


def test_a_start_in_collision_is_moved_out_of_it():
    q0 = np.array([0.2, 0.1, 0.0, 0.0])
    assert BALL.distance(q0) < -0.05
    for restarts in (None, 0):
        solution = mk.Solver(ARM, mk.PositionGoal("tip", (0.2, 0.9, 0)), avoid=BALL, restarts=restarts).solve(q0=q0)
        assert BALL.distance(solution.q) >= -1e-9
        assert solution.success or restarts == 0  # without restarts the ball may block the arm


def test_several_goals_and_rest_poses_avoid_collisions():
    goals = [mk.PositionGoal("tip", (0.9, 0.45, 0), name="tip"), mk.JointValues({"j0": -0.5}, name="first")]
    solver = mk.Solver(ARM, goals, avoid=BALL, clearance=0.02, rest=np.zeros(4))
    solution = solver.solve({"tip": (0.9, 0.5, 0)}, q0=np.array([-0.5, 0.5, 0.5, 0.5]))
    assert solution.success
    assert len(solution.objectives) == len(solver.objectives) == 3
    assert list(solution.errors) == ["tip", "first", "rest"]
    assert BALL.distance(solution.q) >= 0.02 - 1e-9
    assert all(number < 3 for chain in solution.subproblems for number in chain.objectives)


def test_obstacles_can_be_moved_between_two_calls():
    collider = Collider(ARM, [ball(0.6, 0.2)])
    solver = mk.Solver(ARM, mk.PositionGoal("tip", (1.0, 0.4, 0)), avoid=collider)
    for place in ((0.6, 0.2, 0), (0.4, 0.4, 0), (0.5, -0.1, 0), (1.0, 0.4, 0), (0.6, 0.2, 0)):
        collider.move("ball", mk.Pose(place))
        solution = solver.solve()
        assert solution.success == (place != (1.0, 0.4, 0))
        assert (collider.distance(solution.q) >= -1e-9) == solution.success


def test_a_free_solution_that_is_not_feasible_is_not_returned():
    solver = mk.Solver(ARM, mk.PositionGoal("tip", (1.0, 0.4, 0)), avoid=BALL, restarts=50)
    for sign in (-1.0, 1.0):
        solution = solver.solve(feasible=lambda q, sign=sign: sign * q[1] > 0.0)
        assert solution.success
        assert sign * solution.q[1] > 0.0
        assert BALL.distance(solution.q) >= -1e-9


def test_nearest_and_nearby_solutions_are_free_of_collision():
    solver = mk.Solver(ARM, mk.PositionGoal("tip", (0.9, 0.5, 0)), avoid=BALL)
    q0 = np.array([-0.3, 0.4, 0.8, 0.8])
    nearest = solver.solve(q0=q0, nearest=True)
    nearby = solver.solve_nearby(0.6, q0=q0)
    assert nearest.success
    assert nearby.success
    assert BALL.distance(nearest.q) >= -1e-9
    assert BALL.distance(nearby.q) >= -1e-9
    assert np.abs(nearby.q - q0).max() <= 0.6 + 1e-12


def test_a_step_avoids_collisions():
    cart = rail()
    solver = mk.Solver(cart, mk.PositionGoal("cart", (1.0, 0, 0)), avoid=wall())
    q = np.zeros(1)
    for _ in range(20):
        q = solver.step(q0=q).q
        assert q[0] <= 0.8 + 1e-9
    assert abs(q[0] - 0.8) < 1e-6


def test_with_avoidance_as_a_cost_clearance_is_soft_and_collision_is_not():
    cart = rail()
    near = mk.Solver(cart, mk.PositionGoal("cart", (0.75, 0, 0)), avoid=wall(), clearance=0.2, avoid_as="cost")
    solution = near.solve(q0=np.zeros(1))
    assert solution.success  # 0.05 m from the wall, and 0.2 m would have been nicer
    inside = mk.Solver(cart, mk.PositionGoal("cart", (0.9, 0, 0)), avoid=wall(), avoid_as="cost")
    solution = inside.solve(q0=np.zeros(1), restarts=0)
    assert not solution.success
    assert 0.8 < solution.q[0] < 0.9
    assert solution.contacts


@pytest.mark.parametrize("method", ["dls", "newton", "lbfgsb", "auto"])
def test_other_methods_avoid_collisions(method):
    solver = mk.Solver(ARM, mk.PositionGoal("tip", (0.9, 0.5, 0)), avoid=BALL, solver=method)
    solution = solver.solve(q0=np.array([-0.4, 0.4, 0.8, 0.6]))
    assert solution.success
    assert BALL.distance(solution.q) >= -1e-9


@pytest.mark.parametrize("method", ["ccd", "fabrik"])
def test_methods_without_collision_avoidance_reject_obstacles_when_the_solver_is_made(method):
    with pytest.raises(InvalidOperation, match="lm"):
        mk.Solver(ARM, mk.PositionGoal("tip", (0.9, 0.5, 0)), avoid=BALL, solver=method)


# ---- all solutions ------------------------------------------------------------------------------------


def test_all_solutions_are_free_of_collision_and_the_rejected_ones_are_counted():
    solver = mk.Solver(PANDA, mk.PoseGoal(HAND, np.eye(4)), avoid=AMONG)
    plain = mk.Solver(PANDA, mk.PoseGoal(HAND, np.eye(4)))
    poses_with_collisions = 0
    for q in free_configurations(AMONG, 3, seed=2):
        X = PANDA.pose(HAND, q)
        solutions, every = solver.solve_all(X, q0=q), plain.solve_all(X, q0=q)
        assert len(solutions)
        assert AMONG.is_free(solutions.q, -1e-9).all()
        assert (solutions.errors < 1e-6).all()
        assert solutions.distance[0] < 1e-6  # the one that it was made from is the nearest
        assert "removed because of collisions" in solutions.explanation
        poses_with_collisions += not AMONG.is_free(every.q).all()
        for j in range(1, len(solutions)):
            path = solutions.path(0, j)
            assert path is None or AMONG.is_free(path, -1e-9).all()
    assert poses_with_collisions


# ---- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"clearance": 0.1}, InvalidArgument, "need avoid"),
        ({"allow": [("bar0", "bar2")]}, InvalidArgument, "need avoid"),
        ({"avoid": ["slef"]}, UnknownName, "Did you mean 'self'"),
        ({"avoid": BALL, "clearance": np.nan}, NotFinite, "clearance"),
        ({"avoid": BALL, "avoid_as": "hard"}, ObjectiveError, "'limit' or 'cost'"),
        ({"avoid": BALL, "avoid_as": "cost", "clearance": -0.1}, LimitsError, "0 m or more"),
        ({"avoid": Collider(rail(), wall())}, StructureError, "another mechanism"),
        ({"avoid": BALL, "allow": [("bar0", "ball")]}, InvalidArgument, "cannot be combined"),
        ({"avoid": ["self"], "forbid": [("bar0", "bal")]}, UnknownName, "bal"),
        ({"avoid": 5}, InvalidArgument, "avoid takes"),
    ],
)
def test_invalid_avoidance_arguments_are_rejected(given, error, says):
    with pytest.raises(error, match=says):
        mk.Solver(ARM, mk.PositionGoal("tip", (1.0, 0.4, 0)), **given)


def test_frames_without_a_mechanism_cannot_avoid_collisions():
    with pytest.raises(StructureError, match="avoid needs a mechanism"):
        mk.Solver(mk.Link("alone"), avoid=["self"])


def test_invalid_numbers_are_rejected_as_without_collision_avoidance():
    solver = mk.Solver(ARM, mk.PositionGoal("tip", (1.0, 0.4, 0)), avoid=BALL)
    with pytest.raises(NotFinite):
        solver.solve((np.nan, 0, 0))
    with pytest.raises(NotFinite):
        solver.solve(q0=np.full(4, np.nan))
    with pytest.raises(UnknownName, match="restarts"):
        solver.solve(restrts=3)
