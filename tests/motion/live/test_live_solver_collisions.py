"""Live solver with obstacles: no state is in collision, and it moves as far as it can."""

from __future__ import annotations

import numpy as np
from cluttered_arms import ball, planar_arm, rail, wall

import mechanik as mk
from mechanik.collision import Collider
from mechanik.motion.live import LiveSolver

TIMEOUT = 120.0


def test_no_state_is_in_collision_while_a_goal_is_dragged_through_an_obstacle():
    arm = planar_arm()
    collider = Collider(arm, ["self", ball(0.9, 0.3)])
    start = np.array([-0.3, 0.2, 0.3, -0.6])
    assert collider.is_free(start)
    first = arm.pose("tip", start)[:3, 3]
    seen = []
    with LiveSolver(
        arm, mk.PositionGoal("tip", first), q0=start, avoid=collider, clearance=0.01, on_state=seen.append
    ) as live:
        for share in np.linspace(0.0, 1.0, 40):
            live.solve(first + share * (np.array([0.75, 0.75, 0.0]) - first)).result(TIMEOUT)
    assert len(seen) >= 40
    q = np.array([state.q for state in seen])
    assert (collider.distance(q) >= 0.01 - 1e-9).all()
    assert np.abs(np.diff(q, axis=0)).max() < 1.0  # no jumps
    assert any(state.solution is not None and state.solution.blocking_contacts for state in seen)


def test_solver_stops_at_the_wall_if_the_goal_is_behind_it():
    with LiveSolver(rail(), mk.PositionGoal("cart", (0, 0, 0)), avoid=wall()) as live:
        for target in (0.5, 0.95, 1.0, 1.4, 1.9):
            state = live.solve((target, 0, 0)).result(TIMEOUT)
            assert abs(state.q[0] - min(target, 0.8)) < 1e-6
        assert not state.solution.success
        assert abs(live.solve((0.3, 0, 0)).result(TIMEOUT).q[0] - 0.3) < 1e-6


def test_solver_moves_away_from_a_moving_obstacle():
    cart = rail()
    collider = Collider(cart, wall())
    with LiveSolver(cart, mk.PositionGoal("cart", (0.7, 0, 0)), avoid=collider, clearance=0.01) as live:
        assert live.solve().result(TIMEOUT).solution.success
        for x in np.arange(0.9, 0.29, -0.05):
            collider.move("wall", mk.Pose((x, 0, 0)))
            live.set_targets()
            state = live.solve().result(TIMEOUT)
            assert abs(state.q[0] - (x - 0.1 - 0.1 - 0.01)) < 1e-6
        collider.move("wall", mk.Pose((1.5, 0, 0)))
        live.set_targets()
        assert abs(live.solve().result(TIMEOUT).q[0] - 0.7) < 1e-6


def test_collision_avoidance_can_be_switched_while_running():
    with LiveSolver(rail(), mk.PositionGoal("cart", (1.0, 0, 0))) as live:
        assert live.solve().result(TIMEOUT).solution.success
        live.set(avoid=wall(), clearance=0.1)
        live.move([0.0])  # last: an earlier move could be behind the wall again
        assert abs(live.solve().result(TIMEOUT).q[0] - 0.7) < 1e-6
        live.set(solver="lm", clearance=0.05)
        assert abs(live.solve().result(TIMEOUT).q[0] - 0.75) < 1e-6
        live.set(avoid=None)
        assert abs(live.solve().result(TIMEOUT).q[0] - 1.0) < 1e-6
