"""Serial chains on the chain kernel: statuses are true, seeds keep their branch, and all three kernels agree."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from counted_clock import count_clock_readings
from hypothesis import given, settings
from hypothesis import strategies as st
from solver_internals import chain_search

import mechanik as mk
from mechanik.kernels import chain_layout as at
from mechanik.spatial import make_pose, rotation


def with_prismatic():
    """Six revolute joints and a prismatic one in the middle, about skew axes."""
    rng = np.random.default_rng(5)
    b = mk.Builder("seven")
    for k in range(7):
        place = {"at": rng.uniform(-0.2, 0.2, 3), "axis": rng.normal(size=3)}
        if k == 2:
            b.prismatic(f"j{k}", f"l{k}", f"l{k + 1}", limits=(-0.3, 0.3), **place)
        else:
            b.revolute(f"j{k}", f"l{k}", f"l{k + 1}", limits=(-2.8, 2.8), **place)
    return b.build(), "l7"


ARMS = {
    "panda": lambda: (mk.gallery.panda(), "panda_link8"),
    "ur5": lambda: (mk.gallery.ur5(), "tool0"),
    "puma560": lambda: (mk.gallery.puma560(), None),
    "iiwa14": lambda: (mk.gallery.iiwa14(), None),
    "scara": lambda: (mk.gallery.scara(), None),
    "grippy10": lambda: (mk.gallery.grippy10(), None),
    "rail_arm": lambda: (mk.gallery.rail_arm(), "tool"),
    "askew": with_prismatic,
    "30R": lambda: (mk.gallery.snake(), "tool"),
}


def arm_and_tool(name):
    arm, tool = ARMS[name]()
    return arm, tool or list(arm.links)[-1]


def errors(arm, tool, q, X):
    """Metres and radians between the tool at q (..., nq) and X (..., 4, 4)."""
    at_q = arm.pose(tool, q)
    apart = np.linalg.norm(at_q[..., :3, 3] - X[..., :3, 3], axis=-1)
    turn = rotation.log(np.swapaxes(at_q[..., :3, :3], -1, -2) @ X[..., :3, :3])
    return apart, np.linalg.norm(turn, axis=-1)


def assert_solved(arm, tool, solution, X):
    assert solution.success, solution
    apart, turned = errors(arm, tool, solution.q, X)
    assert apart <= 1e-6
    assert turned <= 1e-6
    assert arm.space.within_limits(solution.q)


@pytest.mark.parametrize("name", ARMS)
def test_every_reachable_pose_is_reached_without_a_seed_and_with_one(name):
    arm, tool = arm_and_tool(name)
    rng = np.random.default_rng(3)
    solver = mk.Solver(arm, mk.PoseGoal(tool, arm.pose(tool)))
    assert chain_search(solver) is not None
    for q, q0 in zip(arm.random(rng, 200), arm.random(rng, 200), strict=True):
        X = arm.pose(tool, q)
        assert_solved(arm, tool, solver.solve(X), X)
        assert_solved(arm, tool, solver.solve(X, q0), X)


@pytest.mark.parametrize("name", ARMS)
def test_the_three_kernels_agree_after_polishing_from_the_same_start(name):
    arm, tool = arm_and_tool(name)
    rng = np.random.default_rng(8)
    fine = {"tolerance": 1e-10, "angle_tolerance": 1e-10}
    solver = mk.Solver(arm, mk.PoseGoal(tool, arm.pose(tool), **fine))
    general = mk.Solver(arm, mk.PoseGoal(tool, arm.pose(tool), **fine), restarts=0)
    q = arm.space.clamp(0.9 * arm.random(rng, 64))
    starts = arm.space.clamp(q + 1e-4 * rng.uniform(-1, 1, q.shape))
    X = arm.pose(tool, q)
    lanes, fine_in_lanes, _ = chain_search(solver).solve_from_starts(X, starts)
    assert fine_in_lanes.all()
    compared = 0
    for k in range(len(q)):
        if np.linalg.svd(arm.jacobian(tool, q[k]), compute_uv=False)[min(6, arm.nv) - 1] < 1e-2:
            continue  # beside a singular pose 1e-10 of a pose is more than 1e-9 of q
        alone, by_all = solver.solve(X[k], starts[k]), general.solve(X[k], starts[k])
        assert alone.success
        assert by_all.success
        np.testing.assert_allclose(alone.q, by_all.q, atol=1e-9)
        np.testing.assert_allclose(lanes[k], by_all.q, atol=1e-9)
        compared += 1
    assert compared > 20


@given(st.integers(0, 2**31), st.sets(st.integers(0, 5), min_size=1))
@settings(max_examples=60)
def test_goals_of_any_directions_are_reached_by_the_error_of_the_objective(seed, rows):
    arm, tool = with_prismatic()
    rng = np.random.default_rng(seed)
    goal = partial(tool, arm.pose(tool), sorted(rows))
    solver = mk.Solver(arm, goal)
    assert chain_search(solver) is not None
    X = arm.pose(tool, arm.random(rng))
    for q0 in (None, arm.random(rng)):
        solution = solver.solve(X, q0)
        assert solution.success
        error = goal.with_target(X).error(arm, solution.q)
        assert error.position <= goal.tolerance
        assert error.rotation <= goal.angle_tolerance
        assert arm.space.within_limits(solution.q)


def partial(tool, X, rows):
    names = ["X", "Y", "Z", "EX", "EY", "EZ"]
    return mk.PoseGoal(tool, X, dof=[names[r] for r in rows])


def test_points_and_orientations_use_the_chain_kernel():
    arm = mk.gallery.panda()
    rng = np.random.default_rng(0)
    point, turn = mk.PositionGoal("panda_link8", (0.3, 0, 0.5)), mk.OrientationGoal("panda_link8", np.eye(3))
    for goal in (point, turn):
        solver = mk.Solver(arm, goal)
        assert chain_search(solver) is not None
        for q in arm.random(rng, 20):
            X = arm.pose("panda_link8", q)
            assert solver.solve(X[:3, 3] if goal is point else X[:3, :3]).success
            assert solver.solve(X[:3, 3] if goal is point else X[:3, :3], arm.random(rng)).success


def test_couplings_locks_and_relative_goals_use_the_chain_kernel():
    b = mk.Builder("lift")
    b.revolute("turn", "base", "post", limits=(-3, 3))
    b.prismatic("inner", "post", "one", at=(0, 0, 0.3), axis="z", limits=(0, 0.4))
    b.prismatic("outer", "one", "two", at=(0, 0, 0.1), axis="z")
    for k, axis in enumerate("yyzyz"):
        b.revolute(f"j{k}", "two" if k == 0 else f"l{k - 1}", f"l{k}", at=(0.2, 0, 0), axis=axis, limits=(-2.5, 2.5))
    arm = b.build()
    arm.joint("outer").mimic(arm.joint("inner"), ratio=1.5, offset=0.02)
    rng = np.random.default_rng(2)
    solver = mk.Solver(arm, mk.PoseGoal("l4", arm.pose("l4")))
    locked = mk.Solver(arm, mk.PoseGoal("l4", arm.pose("l4")), lock="turn")
    relative = mk.Solver(arm, mk.PoseGoal("l4", np.eye(4), relative_to="one"))
    for solver_of in (solver, locked, relative):
        assert chain_search(solver_of) is not None
    for q in arm.random(rng, 30):
        X = arm.pose("l4", q)
        assert_solved(arm, "l4", solver.solve(X), X)
        start = arm.random(rng)
        start[0] = q[0]
        stays = locked.solve(X, start)
        assert_solved(arm, "l4", stays, X)
        assert stays.q[0] == q[0]
        seen = np.linalg.inv(arm.pose("one", q)) @ X
        q_solution = relative.solve(seen, arm.random(rng)).require().q
        np.testing.assert_allclose(
            np.linalg.inv(arm.pose("one", q_solution)) @ arm.pose("l4", q_solution), seen, atol=3e-6
        )


@pytest.mark.parametrize(("name", "share"), [("ur5", 0.97), ("panda", 0.93)])
def test_a_nearby_seed_keeps_its_branch(name, share):
    arm, tool = arm_and_tool(name)
    rng = np.random.default_rng(4)
    solver = mk.Solver(arm, mk.PoseGoal(tool, arm.pose(tool)))
    same_branch = 0
    for q in arm.random(rng, 1000):
        away = rng.normal(size=arm.nq)
        q0 = arm.space.clamp(q + 0.3 * away / np.linalg.norm(away))
        q_solution = solver.solve(arm.pose(tool, q), q0).require().q
        # back to q, a Panda to its self-motion nearby; or to another branch that is nearer to the seed than q is
        back = np.abs(q_solution - q).max() < (1e-3 if name == "ur5" else 0.6)
        same_branch += bool(back or np.linalg.norm(q_solution - q0) < np.linalg.norm(q - q0))
    assert same_branch >= 1000 * share


def test_a_rotation_by_half_a_turn_is_not_taken_for_identity():
    arm = mk.gallery.ur5()
    q = np.array([0.3, -1.1, 1.2, -0.4, 0.9, 0.2])
    X = arm.pose("tool0", q)
    flipped = X @ make_pose(rotation.about_z(np.pi), np.zeros(3))
    solver = mk.Solver(arm, mk.PoseGoal("tool0", X))
    assert_solved(arm, "tool0", solver.solve(flipped, q), flipped)


def test_out_of_reach_ends_at_the_closest_pose_with_the_status_closest():
    arm = mk.gallery.ur5()
    solver = mk.Solver(arm, mk.PositionGoal("tool0", (0, 0, 0.5)))
    solution = solver.solve(np.array([3.0, 1.0, 0.2]))
    assert not solution.success
    assert solution.status is mk.Status.CLOSEST
    assert "out of reach" in solution.message
    # stretched towards the target: no configuration comes closer
    others = arm.pose("tool0", arm.random(np.random.default_rng(0), 100_000))[:, :3, 3]
    nearest = np.linalg.norm(others - [3, 1, 0.2], axis=1).min()
    assert np.linalg.norm(arm.pose("tool0", solution.q)[:3, 3] - [3, 1, 0.2]) <= nearest


def test_the_result_of_a_row_depends_on_that_row_alone():
    arm = mk.gallery.panda()
    rng = np.random.default_rng(6)
    chain = chain_search(mk.Solver(arm, mk.PoseGoal("panda_link8", arm.pose("panda_link8"))))
    X, q0 = arm.pose("panda_link8", arm.random(rng, 300)), arm.random(rng, 300)
    for mode in (at.FROM_TABLE, at.FROM_SEED):
        q, report = solve_rows_of(chain, X, q0, mode)
        order = rng.permutation(300)
        again, report_again = solve_rows_of(chain, X[order], q0[order], mode)
        np.testing.assert_array_equal(again, q[order])
        np.testing.assert_array_equal(report_again, report[order])
        bad = X.copy()
        rows = rng.choice(300, 40, replace=False)
        bad[rows[:10], 0, 3] = np.nan
        bad[rows[10:20], 2, 1] = np.inf
        bad[rows[20:30], :3, :3] *= 1.1
        bad[rows[30:], :3, 3] = 100.0  # out of reach
        spoilt, report_spoilt = solve_rows_of(chain, bad, q0, mode)
        others = np.setdiff1d(np.arange(300), rows)
        np.testing.assert_array_equal(spoilt[others], q[others])
        np.testing.assert_array_equal(report_spoilt[others], report[others])
        assert (report_spoilt[rows[:30], 0] == at.BAD_INPUT).all()
        assert (report_spoilt[rows[30:], 0] == at.NOT_SOLVED).all()


def solve_rows_of(chain, X, q0, mode):
    q, report = np.full((len(X), q0.shape[1]), np.nan), np.full((len(X), at.REPORT_FLOATS), np.nan)
    chain.solve_rows(np.ascontiguousarray(X), np.ascontiguousarray(q0), mode, 0.0, q, report)
    return q, report


def test_seed_table_entries_are_found_at_once_for_any_first_and_last_joint_angle():
    arm = mk.gallery.ur5()
    chain = chain_search(mk.Solver(arm, mk.PoseGoal("tool0", arm.pose("tool0"))))
    tail = chain.table[at.FEATURE_ROWS * 512 :].reshape(512, 6 + at.ENTRY_TAIL)
    rng = np.random.default_rng(1)
    q = tail[:, :6].astype(np.float64)
    q[:, [0, 5]] = rng.uniform(-3, 3, (512, 2))
    _, report = solve_rows_of(chain, arm.pose("tool0", q), np.zeros((512, 6)), at.FROM_TABLE)
    assert (report[:, 0] == at.SOLVED).all()
    # 32 bits of a start: one or two steps from the target
    assert np.mean((report[:, 1] == 1) & (report[:, 2] <= 3)) > 0.99


def test_several_threads_share_a_solver():
    arm = mk.gallery.panda()
    solver = mk.Solver(arm, mk.PoseGoal("panda_link8", arm.pose("panda_link8")))
    rng = np.random.default_rng(9)
    X, q0 = arm.pose("panda_link8", arm.random(rng, 200)), arm.random(rng, 200)
    expected = [solver.solve(*row).q for row in zip(X, q0, strict=True)]
    solutions = {}

    def work(name):
        solutions[name] = [solver.solve(*row).q for row in zip(X, q0, strict=True)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for configurations in solutions.values():
        np.testing.assert_array_equal(configurations, expected)


def test_plain_python_gives_the_same_solutions():
    code = """
import numpy as np, mechanik as mk
arm = mk.gallery.ur5()
solver = mk.Solver(arm, mk.PoseGoal("tool0", arm.pose("tool0")))
X = arm.pose("tool0", np.array([0.3, -1.1, 1.2, -0.4, 0.9, 0.2]))
solution = solver.solve(X)
print(solution.iterations, *solution.q)
"""
    compiled, plain = (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300,
            env={**os.environ, "MECHANIK_KERNELS": tier},
        ).stdout.split()
        for tier in ("jit", "plain")
    )  # fmt: skip
    assert compiled[0] == plain[0]
    np.testing.assert_allclose(np.array(compiled[1:], float), np.array(plain[1:], float), atol=1e-9)


def test_a_new_limit_and_a_longer_link_take_effect():
    arm = mk.gallery.ur5()
    solver = mk.Solver(arm, mk.PoseGoal("tool0", arm.pose("tool0")))
    q = np.array([2.0, -1.1, 1.2, -0.4, 0.9, 0.2])
    X = arm.pose("tool0", q)
    assert solver.solve(X).success
    arm.joint(next(iter(arm.joints))).set_limits(-0.5, 0.5)
    solution = solver.solve(X)
    assert arm.space.within_limits(solution.q)
    assert abs(solution.q[0]) <= 0.5
    elbow = arm.joint("elbow_joint")
    elbow.position = np.add(elbow.position, (0, 0, 0.05))
    again = arm.pose("tool0", np.array([0.3, -1.1, 1.2, -0.4, 0.9, 0.2]))
    assert_solved(arm, "tool0", solver.solve(again), again)


def test_single_attempts_and_other_options_of_a_call_are_supported():
    arm = mk.gallery.ur5()
    rng = np.random.default_rng(0)
    solver = mk.Solver(arm, mk.PoseGoal("tool0", arm.pose("tool0"), name="hand"))
    X = arm.pose("tool0", arm.random(rng))
    for target in (X, X.tolist(), X.astype(np.float32).astype(float), np.asfortranarray(X), mk.Pose.from_matrix(X)):
        assert solver.solve(target).success
    assert solver.solve({"hand": X}).success
    assert solver.solve(X, arm.q.tolist()).success
    assert solver.solve(X, arm.q, rng=rng).success
    assert solver.solve(X, arm.q, restarts=0).attempts == 1
    frozen = X.copy()
    frozen.flags.writeable = False
    assert solver.solve(frozen).success
    with pytest.raises(mk.errors.MechanikError):
        solver.solve(np.full((4, 4), np.nan))
    with pytest.raises(mk.errors.MechanikError):
        solver.solve(X, np.full(6, np.nan))


def test_a_time_limit_and_a_feasible_function_use_the_chain_kernel():
    arm = mk.gallery.panda()
    rng = np.random.default_rng(12)
    solver = mk.Solver(arm, mk.PoseGoal("panda_link8", arm.pose("panda_link8")))
    for q, q0 in zip(arm.random(rng, 50), arm.random(rng, 50), strict=True):
        X = arm.pose("panda_link8", q)
        assert solver.solve(X, q0, max_seconds=0.5).success
        assert solver.solve(X, q0, feasible=lambda q: True).success
    refused = solver.solve(X, q0, feasible=lambda q: False)
    assert not refused.success
    assert "feasible" in refused.message


def test_a_graph_with_goals_of_its_own_moves_its_joints():
    base, shoulder, upper = mk.Link("base"), mk.Joint("shoulder", dof="EZ", values=0.3), mk.Link("upper")
    elbow, hand = mk.Joint("elbow", dof="EZ", position=(1, 0, 0), values=0.2), mk.Link("hand", position=(1, 0, 0))
    for parent, child in ((base, shoulder), (shoulder, upper), (upper, elbow), (elbow, hand)):
        parent.add_child(child)
    assert mk.Solver(base, mk.PositionGoal("hand", (1, 1, 0))).solve().success
    np.testing.assert_allclose(hand.world_position, (1, 1, 0), atol=1e-5)


def test_starts_of_a_wrong_shape_are_rejected_also_with_a_locked_joint():
    arm = mk.gallery.panda()
    X = arm.pose("panda_link8")
    for lock in (None, ["panda_joint3"]):
        solver = mk.Solver(arm, mk.PoseGoal("panda_link8", X), lock=lock)
        for start in (np.zeros(2), np.zeros((1, 8)), np.array(["a"] * 8)):
            with pytest.raises(mk.errors.MechanikError):
                solver.solve(X, start)


def test_the_nearest_solution_is_the_nearest_feasible_one():
    arm = mk.gallery.ur5()
    solver = mk.Solver(arm, mk.PoseGoal("tool0", arm.pose("tool0", arm.q + 0.3)))
    every = solver.solve_all(q0=arm.q)
    wanted = every[3]
    solution = solver.solve(q0=arm.q, nearest=True, feasible=lambda q: bool(np.abs(q - wanted).max() < 1e-6))
    assert solution.success
    np.testing.assert_allclose(solution.q, wanted, atol=1e-6)


def test_a_time_limit_holds_with_a_million_restarts(monkeypatch):
    count_clock_readings(monkeypatch)
    arm = mk.gallery.ur5()
    X = arm.pose("tool0")
    X[:3, 3] = (0.05, 0.0, 0.1)  # inside the arm's own column
    solver = mk.Solver(arm, mk.PoseGoal("tool0", X), restarts=10**6, max_seconds=0.02)
    few, many = solver.solve(X, arm.q), solver.solve(X, arm.q, max_seconds=0.2)
    assert not few.success
    assert 10**6 > many.attempts > few.attempts > 300
    assert 0.01 < few.seconds < 0.04
    assert 0.1 < many.seconds < 0.3
