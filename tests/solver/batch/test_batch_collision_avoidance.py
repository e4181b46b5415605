"""Batches with obstacles: rows equal single solves, no success is in collision, obstacles are part of the problem."""

from __future__ import annotations

import numpy as np
import pytest
from cluttered_arms import ball, four_bar, free_configurations, panda_among, planar_arm, rail, wall

import mechanik as mk
from mechanik.collision import Collider
from mechanik.errors import BatchMismatch
from mechanik.solver.solution import Status

HAND = "panda_link8"
PANDA, AMONG = panda_among()
TARGETS = PANDA.pose(HAND, free_configurations(AMONG, 300))


def solver(**options):
    return mk.Solver(PANDA, mk.PoseGoal(HAND, TARGETS[0]), avoid=AMONG, **options)


def plain():
    return mk.Solver(PANDA, mk.PoseGoal(HAND, TARGETS[0])).solve_batch(TARGETS, threads=1)


@pytest.mark.parametrize("clearance", [0.0, 0.01])
def test_every_success_is_free_of_collision_and_at_its_target(clearance):
    result = solver(clearance=clearance).solve_batch(TARGETS, threads=1)
    q = result.q[result.success]
    assert (AMONG.distance(q) >= clearance - 1e-9).all()
    assert np.abs(PANDA.pose(HAND, q) - TARGETS[result.success]).max() < 2e-6
    assert result.errors[result.success].max() < 1e-6
    assert ((q >= PANDA.space.lower) & (q <= PANDA.space.upper)).all()


def test_targets_of_free_configurations_are_solved_although_their_first_solutions_are_in_collision():
    assert AMONG.is_free(plain().q).mean() < 0.9
    assert solver().solve_batch(TARGETS, threads=1).success.mean() > 0.99


def test_results_do_not_depend_on_threads_chunks_or_other_rows():
    whole = solver().solve_batch(TARGETS, threads=1)
    for threads, chunk in ((2, 37), (1, 1000)):
        result = solver().solve_batch(TARGETS, threads=threads, chunk=chunk)
        assert np.array_equal(whole.q, result.q)
        assert np.array_equal(whole.status, result.status)
    turned = solver().solve_batch(TARGETS[::-1], threads=1)
    assert np.array_equal(whole.q, turned.q[::-1])


def test_solutions_stay_near_their_starts():
    starts = free_configurations(AMONG, len(TARGETS), seed=3)
    near, far = (solver().solve_batch(TARGETS, q0, threads=1) for q0 in (starts, None))
    both = near.success & far.success
    assert both.mean() > 0.98
    assert AMONG.is_free(near.q[both], -1e-9).all()
    distances = [np.linalg.norm(result.q[both] - starts[both], axis=1).mean() for result in (near, far)]
    assert distances[0] < distances[1]


def test_rows_inside_an_obstacle_are_in_collision_and_counted_in_the_summary():
    cart = rail()
    positions = np.array([[-1.0, 0, 0], [1.0, 0, 0], [0.5, 0, 0], [2.5, 0, 0], [np.nan, 0, 0]])
    result = mk.Solver(cart, mk.PositionGoal("cart", (0, 0, 0)), avoid=wall()).solve_batch(positions, threads=1)
    statuses = [result.status_of(row) for row in range(len(positions))]
    assert statuses == [Status.CONVERGED, Status.IN_COLLISION, Status.CONVERGED, Status.CLOSEST, Status.BAD_TARGET]
    assert result.rows_with(Status.IN_COLLISION).tolist() == [1]
    assert "IN_COLLISION" in result.summary()


def test_loops_and_several_goals_avoid_collisions_in_every_row():
    loop = four_bar()
    start = mk.Solver(loop, None).solve().q
    there = mk.Solver(loop, mk.JointValues({"crank": float(start[0] + 0.5)})).solve(q0=start).require().q
    collider = Collider(loop, ball(*(loop.pose("coupler", there) @ [0.9, 0, 0, 1])[:2], radius=0.05))
    values = np.linspace(-1.0, 1.0, 12)
    crank = mk.Solver(loop, mk.JointValues({"crank": 0.0}), avoid=collider)
    result = crank.solve_batch([{"crank": start[0] + value} for value in values], start, threads=1)
    free = collider.distance(result.q) >= -1e-9
    assert (free | ~result.success).all()
    assert 0 < result.success.sum() < len(values)
    arm = planar_arm()
    both = mk.Solver(arm, [mk.PositionGoal("tip", (1, 0.4, 0)), mk.JointValues({"j3": 0.3})], avoid=ball(0.6, 0.2))
    tips = np.array([[1.0, 0.4, 0], [0.9, -0.4, 0], [0.6, 0.2, 0]])
    result = both.solve_batch([tips, None], np.array([-0.5, 0.6, 0.6, 0.3]), threads=1)
    assert result.success.tolist() == [True, True, False]
    assert (Collider(arm, ball(0.6, 0.2)).distance(result.q[:2]) >= -1e-9).all()


def test_a_batch_resumes_only_with_the_same_obstacles(tmp_path):
    arm = planar_arm()
    collider = Collider(arm, [ball(0.6, 0.2)])
    positions = np.array([[1.0, 0.4, 0], [0.9, -0.4, 0]])
    solver = mk.Solver(arm, mk.PositionGoal("tip", positions[0]), avoid=collider)
    first = solver.solve_batch(positions, threads=1, out=tmp_path / "it")
    assert np.array_equal(solver.solve_batch(positions, threads=1, out=tmp_path / "it").q, first.q)
    more = mk.Solver(arm, mk.PositionGoal("tip", positions[0]), avoid=collider, clearance=0.01)
    with pytest.raises(BatchMismatch, match="options"):
        more.solve_batch(positions, threads=1, out=tmp_path / "it")
    collider.move("ball", mk.Pose((0.6, 0.25, 0)))
    with pytest.raises(BatchMismatch, match="options"):
        solver.solve_batch(positions, threads=1, out=tmp_path / "it")


def test_starts_without_targets_are_rows_that_only_close_loops():
    """This raised an IndexError once: there is no first objective."""
    loop = four_bar()
    starts = mk.Solver(loop, None).solve().q + np.array([[0.0, 0.0, 0.0], [0.05, 0.0, 0.0], [0.0, -0.05, 0.1]])
    for avoid in (None, ball(5.0, 0.0)):
        result = mk.Solver(loop, None, avoid=avoid).solve_batch(None, starts, threads=1)
        assert result.success.all()
