"""Seeds from a table: ordered by cost, reproducible, and better than an unordered sequence."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import random_mechanism, random_pose, seeds
from solver_internals import bounds, least_squares_problems
from whole_body import whole_body

import mechanik as mk
from mechanik.objectives import Custom
from mechanik.objectives.relation import Relation, RelationKind, band_violation, evaluate_relation
from mechanik.solver import restarts as attempts
from mechanik.solver.monitor import Monitor
from mechanik.solver.options import Options
from mechanik.solver.restarts import STARTS_BEFORE_CLOSING, restart_sequence
from mechanik.solver.start_configurations import (
    RELATIVE_POSE_KINDS,
    SEED_TABLE_SIZE,
    close_loops_of_starts,
    halton_configurations,
    movable_configuration_mask,
    random_configurations,
    seed_table_cache,
    squared_joint_residuals,
    squared_residuals,
)
from mechanik.spatial import inverse, rotation

HANDS = ("left_hand", "right_hand")
ROWS = {
    RelationKind.POSE: 6,
    RelationKind.AXIS: 5,
    RelationKind.COSINE: 1,
    RelationKind.LOOK_AT: 2,
    RelationKind.DISTANCE: 1,
}


@dataclass
class FakeRequest:
    """The part of a request that restarts need."""

    bounds: tuple[np.ndarray, np.ndarray]
    locked_dofs: np.ndarray
    options: Options
    rng: np.random.Generator | None = None
    monitor: Monitor = field(default_factory=Monitor)


def make_request(solver, restarts, **options):
    return FakeRequest(bounds(solver), np.zeros(solver.mechanism.nv, dtype=bool), Options(restarts=restarts), **options)


def two_hands(mechanism=None, **options):
    """A solver for the positions of two hands of a body with 26 dofs."""
    mechanism = mechanism or whole_body()
    return mk.Solver(mechanism, [mk.PositionGoal(hand, (0, 0, 0), name=hand) for hand in HANDS], **options)


def aim(solver, targets, q=None):
    """The solver's problem with these targets in it."""
    return least_squares_problems(solver, targets, q)[0]


def hands_at(mechanism, q):
    return [mechanism.pose(hand, q)[:3, 3] for hand in HANDS]


# ---- costs of seeds -----------------------------------------------------------------------------


def random_relation(rng, mechanism):
    """A relation of any kind that depends on the pose of B in A, with any components, with or without bands."""
    kind = RELATIVE_POSE_KINDS[rng.integers(len(RELATIVE_POSE_KINDS))]
    rows = tuple(sorted(rng.choice(ROWS[kind], rng.integers(1, ROWS[kind] + 1), replace=False).tolist()))
    links = list(mechanism.links)
    b, a = links[rng.integers(len(links))], [None, *links][rng.integers(len(links) + 1)]
    in_world = a is None and kind in (RelationKind.POSE, RelationKind.AXIS, RelationKind.COSINE) and rng.random() < 0.5
    C = rotation.exp(rng.standard_normal(3)) if in_world else None
    lower, upper = (np.sort(rng.uniform(-1, 1, (2, len(rows))), axis=0)) if rng.random() < 0.5 else (None, None)
    X_a, X_b = (mk.Pose(**random_pose(rng)).matrix for _ in range(2))
    return Relation(kind, rows, a, b, X_a, X_b, world_axes=C, lower=lower, upper=upper)


@given(seeds)
@settings(max_examples=150, deadline=None)
def test_batched_costs_equal_those_of_single_configurations(seed):
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(seed, 6)
    relation, starts = random_relation(rng, mechanism), mechanism.random(rng, 3)
    weights = rng.uniform(0.5, 2, len(relation.rows))
    is_whole = relation.kind is RelationKind.POSE and relation.rows[-3:] == (3, 4, 5) and relation.lower is None
    if is_whole:
        weights[-3:] = weights[-1]
    X_a = np.eye(4) if relation.a is None else mechanism.pose(relation.a, starts)
    squares = squared_residuals(relation, weights, inverse(X_a) @ mechanism.pose(relation.b, starts))
    for square, q in zip(squares, starts, strict=True):
        short = weights * band_violation(relation, evaluate_relation(mechanism, relation, q)[0])
        if is_whole:  # counts by its chord
            angle = np.linalg.norm(short[-3:]) / weights[-1]
            short = np.append(short[:-3], weights[-1] * 2 * math.sin(angle / 2))
        assert square == pytest.approx(short @ short, rel=1e-9, abs=1e-9)


def test_the_cost_of_a_joint_value_equals_that_of_its_residual():
    arm = mk.gallery.ur5()
    relation = Relation(RelationKind.JOINT_VALUE, (0,), dof_name=arm.space.q_names[2], target=np.array([0.3]))
    starts = arm.random(np.random.default_rng(0), 5)
    expected = [4.0 * evaluate_relation(arm, relation, q)[0][0] ** 2 for q in starts]
    np.testing.assert_allclose(squared_joint_residuals(relation, np.array([2.0]), starts[:, 2]), expected, rtol=1e-12)


def points_on_a_platform():
    robot = mk.gallery.stewart_platform()
    return mk.Solver(robot, mk.PositionGoal("platform", (0.02, 0.01, 0.32)))


@pytest.mark.parametrize("make", [two_hands, points_on_a_platform], ids=["two hands", "platform"])
def test_seeds_are_ordered_by_the_cost_of_the_problem(make):
    solver = make()
    problem, q = least_squares_problems(solver)[0], solver.mechanism.q
    starts = seed_table_cache(problem).table(
        bounds(solver), movable_configuration_mask(problem, np.zeros(len(problem.subproblem.moving_dofs), bool)), q
    )
    costs = []
    for start in starts.starts_by_cost(problem):
        problem.set_configuration(start)
        costs.append(problem.cost)
    assert (np.diff(costs) >= -1e-9 * costs[-1]).all()
    assert costs[0] < 0.2 * np.median(costs)


# ---- choice of seeds ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "restarts", [0, 1, STARTS_BEFORE_CLOSING, STARTS_BEFORE_CLOSING + 1, 100, SEED_TABLE_SIZE + 1, 700]
)
@pytest.mark.parametrize("make", [two_hands, points_on_a_platform], ids=["two hands", "platform"])
def test_there_are_as_many_seeds_as_requested_and_no_duplicates(make, restarts):
    solver = make()
    blocks = list(
        restart_sequence(make_request(solver, restarts), least_squares_problems(solver)[0], solver.mechanism.q)
    )
    starts = np.concatenate(blocks)
    assert len(blocks) > 0
    assert starts.shape == (restarts, solver.mechanism.nq)
    assert len(np.unique(starts.round(12), axis=0)) == restarts


def test_a_table_contains_the_halton_seeds_in_another_order():
    solver = two_hands()
    mine = movable_configuration_mask(least_squares_problems(solver)[0], np.zeros(solver.mechanism.nv, dtype=bool))
    starts = np.concatenate(
        list(
            restart_sequence(
                make_request(solver, SEED_TABLE_SIZE), least_squares_problems(solver)[0], solver.mechanism.q
            )
        )
    )
    drawn = np.where(mine, halton_configurations(solver.mechanism.space, SEED_TABLE_SIZE), solver.mechanism.q)
    np.testing.assert_array_equal(starts[np.lexsort(starts.T)], drawn[np.lexsort(drawn.T)])


@given(number=st.integers(0, SEED_TABLE_SIZE - 1))
@settings(max_examples=25, deadline=None)
def test_a_seed_that_is_a_solution_comes_first(number):
    solver = two_hands()
    mine = movable_configuration_mask(least_squares_problems(solver)[0], np.zeros(solver.mechanism.nv, dtype=bool))
    q = np.where(mine, halton_configurations(solver.mechanism.space, SEED_TABLE_SIZE)[number], solver.mechanism.q)
    problem = aim(solver, hands_at(solver.mechanism, q))
    np.testing.assert_array_equal(next(restart_sequence(make_request(solver, 3), problem, solver.mechanism.q))[0], q)


def test_locked_joints_are_ranked_at_their_values_at_the_call():
    mechanism = whole_body()
    held = [name for name in mechanism.space.q_names if name.startswith("float.")]
    solver = two_hands(mechanism, lock="float")
    mine = movable_configuration_mask(least_squares_problems(solver)[0], np.zeros(mechanism.nv, dtype=bool))
    assert not mine[[mechanism.space.q_names.index(name) for name in held]].any()
    for k, seed in enumerate((1, 2, 1)):
        q0 = mechanism.random(np.random.default_rng(seed))
        q = np.where(mine, halton_configurations(mechanism.space, SEED_TABLE_SIZE)[40 + k], q0)
        problem = aim(solver, hands_at(mechanism, q), q0)
        np.testing.assert_array_equal(next(restart_sequence(make_request(solver, 3), problem, q0))[0], q)


def test_limits_and_locks_of_a_call_hold_for_its_seeds():
    solver = two_hands()
    mechanism, problem = solver.mechanism, least_squares_problems(solver)[0]
    lower, upper = (bound.copy() for bound in bounds(solver))
    k = mechanism.space.q_names.index("left_elbow")
    lower[k], upper[k] = -0.3, -0.1
    locked = np.zeros(mechanism.nv, dtype=bool)
    locked[mechanism.space.v_names.index("right_elbow")] = True
    call = replace(make_request(solver, 2 * SEED_TABLE_SIZE), bounds=(lower, upper), locked_dofs=locked)
    starts = np.concatenate(list(restart_sequence(call, problem, mechanism.q)))
    assert (np.abs(starts[:, k] + 0.2) <= 0.1 + 1e-12).all()
    right = mechanism.space.q_names.index("right_elbow")
    assert (starts[:, right] == mechanism.q[right]).all()


def test_a_changed_mechanism_gets_a_new_table():
    mechanism = whole_body()
    solver = two_hands(mechanism, restarts=5)
    solver.solve(hands_at(mechanism, mechanism.q))
    mechanism.joint("left_elbow").position = (0.0, 0.0, -0.5)
    mine = movable_configuration_mask(least_squares_problems(solver)[0], np.zeros(mechanism.nv, dtype=bool))
    q = np.where(mine, halton_configurations(mechanism.space, SEED_TABLE_SIZE)[77], mechanism.q)
    problem = aim(solver, hands_at(mechanism, q))
    np.testing.assert_array_equal(next(restart_sequence(make_request(solver, 1), problem, mechanism.q))[0], q)


def test_with_a_generator_seeds_are_random_and_unordered():
    solver = two_hands()
    mine = movable_configuration_mask(least_squares_problems(solver)[0], np.zeros(solver.mechanism.nv, dtype=bool))
    call = make_request(solver, 200, rng=np.random.default_rng(3))
    starts = np.concatenate(list(restart_sequence(call, least_squares_problems(solver)[0], solver.mechanism.q)))
    rng = np.random.default_rng(3)
    drawn = np.concatenate([random_configurations(solver.mechanism.space, count, rng) for count in (128, 72)])
    np.testing.assert_array_equal(starts, np.where(mine, drawn, solver.mechanism.q))


# ---- loops --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["four_bar", "stewart_platform", "delta_robot"])
def test_closed_seeds_are_closed_and_within_limits(name):
    robot = mk.gallery.make(name)
    link = "rocker" if name == "four_bar" else "platform"
    solver = mk.Solver(robot, mk.PositionGoal(link, (0.1, 0.2, 0.3)))
    problem = least_squares_problems(solver)[0]
    closed, is_closed = close_loops_of_starts(problem, halton_configurations(robot.space, 20), Monitor())
    assert len(closed) == is_closed.sum() >= 15
    assert len(is_closed) == 20
    assert robot.space.within_limits(closed, 1e-12).all()
    for q in closed:
        problem.set_configuration(q)
        assert problem.are_loops_closed()


def test_closing_loops_of_seeds_leaves_the_problem_unchanged():
    robot = mk.gallery.delta_robot()
    q0 = robot.random(np.random.default_rng(2))
    fresh, used = (mk.Solver(robot, mk.PositionGoal("platform", (0.1, 0.0, -0.6))) for _ in range(2))
    close_loops_of_starts(least_squares_problems(used)[0], halton_configurations(robot.space, 4), Monitor())
    expected, got = (solver.solve(np.array([0.1, 0.0, -0.6]), q0, restarts=3) for solver in (fresh, used))
    np.testing.assert_array_equal(got.q, expected.q)
    assert (got.status, got.iterations) == (expected.status, expected.iterations)


def test_seeds_that_are_not_closed_at_the_time_limit_are_not_cached():
    solver = points_on_a_platform()
    problem = least_squares_problems(solver)[0]
    mine = movable_configuration_mask(problem, np.zeros(solver.mechanism.nv, dtype=bool))
    table = seed_table_cache(problem).table(bounds(solver), mine, solver.mechanism.q)
    assert len(table.closed_starts_by_cost(problem, 30, Monitor(time.perf_counter() - 1.0))) == 0
    assert len(table.closed_starts_by_cost(problem, 30, Monitor())) == 30


def test_the_number_of_seeds_closed_before_does_not_change_the_table():
    fresh, used = (least_squares_problems(points_on_a_platform())[0] for _ in range(2))
    mine = movable_configuration_mask(fresh, np.zeros(fresh.mechanism.nv, dtype=bool))
    new, old = (
        seed_table_cache(problem).table((problem.q_lower, problem.q_upper), mine, problem.mechanism.q)
        for problem in (fresh, used)
    )
    for count in (5, 40, 20):
        old.closed_starts_by_cost(used, count, Monitor())
    expected = new.closed_starts_by_cost(fresh, 20, Monitor())
    np.testing.assert_array_equal(old.closed_starts_by_cost(used, 20, Monitor()), expected)


def test_loops_of_seeds_are_not_closed_for_a_target_that_is_reached_early(monkeypatch):
    def never(*_):
        raise AssertionError("loops of a table were shut")

    monkeypatch.setattr("mechanik.solver.start_configurations.close_loops_of_starts", never)
    robot = mk.gallery.stewart_platform()
    solver, rng = mk.Solver(robot, mk.PositionGoal("platform", (0, 0, 0)), restarts=100), np.random.default_rng(0)
    for _ in range(20):
        target = np.array([0.0, 0.0, 0.3]) + rng.uniform(-0.05, 0.05, 3)
        assert solver.solve(target, robot.random(rng)).success


# ---- effect on solves ---------------------------------------------------------------------------


def far_targets(robot, count):
    """Points that a delta robot reaches, anywhere, and random starts."""
    rng = np.random.default_rng(5)
    problem = least_squares_problems(mk.Solver(robot, mk.PositionGoal("platform", (0, 0, 0))))[0]
    closed, _ = close_loops_of_starts(problem, robot.random(rng, 2 * count), Monitor())
    return closed[:count, :3], robot.random(rng, count)


def test_a_solution_does_not_depend_on_earlier_calls():
    robot = mk.gallery.delta_robot()
    targets, starts = far_targets(robot, 12)
    used = mk.Solver(robot, mk.PositionGoal("platform", (0, 0, 0)), restarts=40)
    first = [used.solve(p, q0) for p, q0 in zip(targets, starts, strict=True)]
    assert max(solution.attempts for solution in first) > STARTS_BEFORE_CLOSING  # so that loops were closed
    for k in (11, 0, 5):
        again = used.solve(targets[k], starts[k])
        fresh = mk.Solver(robot, mk.PositionGoal("platform", (0, 0, 0)), restarts=40).solve(targets[k], starts[k])
        for later in (again, fresh):
            np.testing.assert_array_equal(later.q, first[k].q)
            assert (later.attempts, later.iterations) == (first[k].attempts, first[k].iterations)


def misses_and_iterations(solver, targets, starts):
    solutions = [solver.solve(target, q0, restarts=100) for target, q0 in zip(targets, starts, strict=True)]
    return sum(not solution.success for solution in solutions), sum(solution.iterations for solution in solutions)


def without_a_table(call, problem, q):
    yield halton_configurations(problem.mechanism.space, 100)


def test_a_tree_with_several_poses_is_solved_with_fewer_iterations_than_in_halton_s_order(monkeypatch):
    robot = mk.gallery.humanoid()
    links, rng = ("left_hand", "right_hand", "left_foot", "right_foot"), np.random.default_rng(5)
    solver = mk.Solver(robot, [mk.PoseGoal(link, np.eye(4), name=link) for link in links])
    targets = [[robot.pose(link, q) for link in links] for q in robot.random(rng, 40)]
    starts = robot.random(rng, 40)
    missed, iterations = misses_and_iterations(solver, targets, starts)
    monkeypatch.setattr(attempts, "restart_sequence", without_a_table)
    missed_without, iterations_without = misses_and_iterations(solver, targets, starts)
    assert missed <= missed_without
    assert iterations < iterations_without


def test_a_delta_robot_misses_less_and_with_fewer_iterations_than_in_halton_s_order(monkeypatch):
    robot = mk.gallery.delta_robot()
    targets, starts = far_targets(robot, 60)
    solver = mk.Solver(robot, mk.PositionGoal("platform", (0, 0, 0)))
    missed, iterations = misses_and_iterations(solver, targets, starts)
    monkeypatch.setattr(attempts, "restart_sequence", without_a_table)
    missed_without, iterations_without = misses_and_iterations(solver, targets, starts)
    assert missed < missed_without
    assert iterations < iterations_without


def test_residuals_written_in_python_are_solved_with_restarts():
    robot = mk.gallery.four_bar()
    crank = Custom(lambda mechanism, q: np.array([0.5 * (q[0] - 1.0)]), residual_size=1)
    solution = mk.solve(robot, crank, robot.q + np.array([2.0, 1.0, -1.0]), restarts=20)
    assert solution.success
    assert solution.q[0] == pytest.approx(1.0, abs=1e-5)


def test_without_a_known_kind_of_residual_seeds_come_in_halton_s_order():
    mechanism = whole_body()
    solver = mk.Solver(mechanism, mk.CentreOfMass((0.1, 0.0, 0.8)))
    mine = movable_configuration_mask(least_squares_problems(solver)[0], np.zeros(mechanism.nv, dtype=bool))
    starts = next(restart_sequence(make_request(solver, 50), least_squares_problems(solver)[0], mechanism.q))
    np.testing.assert_array_equal(
        starts, np.where(mine, halton_configurations(mechanism.space, SEED_TABLE_SIZE)[:50], mechanism.q)
    )
