"""A background solver with things in its way: no state bumps, it comes along as far as it can, and gives way."""

from __future__ import annotations

import numpy as np
from cluttered_arms import ball, planar_arm, rail, wall

import mechanik as mk
from mechanik.collision import Collider
from mechanik.motion.live import LiveSolver

SOON = 120.0


def test_no_state_bumps_while_a_goal_is_dragged_through_an_obstacle():
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
            live.solve(first + share * (np.array([0.75, 0.75, 0.0]) - first)).result(SOON)
    assert len(seen) >= 40
    q = np.array([state.q for state in seen])
    assert (collider.distance(q) >= 0.01 - 1e-9).all()
    assert np.abs(np.diff(q, axis=0)).max() < 1.0  # nothing leaps
    assert any(state.solution is not None and state.solution.blocking_contacts for state in seen)


def test_a_goal_behind_a_wall_is_waited_for_at_the_wall():
    with LiveSolver(rail(), mk.PositionGoal("cart", (0, 0, 0)), avoid=wall()) as live:
        for target in (0.5, 0.95, 1.0, 1.4, 1.9):
            state = live.solve((target, 0, 0)).result(SOON)
            assert abs(state.q[0] - min(target, 0.8)) < 1e-6
        assert not state.solution.success
        assert abs(live.solve((0.3, 0, 0)).result(SOON).q[0] - 0.3) < 1e-6


def test_it_gives_way_to_an_obstacle_that_moves():
    cart = rail()
    collider = Collider(cart, wall())
    with LiveSolver(cart, mk.PositionGoal("cart", (0.7, 0, 0)), avoid=collider, clearance=0.01) as live:
        assert live.solve().result(SOON).solution.success
        for x in np.arange(0.9, 0.29, -0.05):
            collider.move("wall", mk.Pose((x, 0, 0)))
            live.set_targets()
            state = live.solve().result(SOON)
            assert abs(state.q[0] - (x - 0.1 - 0.1 - 0.01)) < 1e-6
        collider.move("wall", mk.Pose((1.5, 0, 0)))
        live.set_targets()
        assert abs(live.solve().result(SOON).q[0] - 0.7) < 1e-6


def test_avoiding_can_be_begun_and_ended_while_it_runs():
    with LiveSolver(rail(), mk.PositionGoal("cart", (1.0, 0, 0))) as live:
        assert live.solve().result(SOON).solution.success
        live.set(avoid=wall(), clearance=0.1)
        live.move([0.0])  # last: moved before, it may be behind the wall again when that is set
        assert abs(live.solve().result(SOON).q[0] - 0.7) < 1e-6
        live.set(solver="lm", clearance=0.05)
        assert abs(live.solve().result(SOON).q[0] - 0.75) < 1e-6
        live.set(avoid=None)
        assert abs(live.solve().result(SOON).q[0] - 1.0) < 1e-6
