"""An answer depends on how the solver was made and on the arguments of the call, and on nothing else."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from random_problems import make_family

import mechanik as mk
from mechanik.errors import InvalidOperation, LimitsError
from mechanik.solver import compiled_problem


def two_arms():
    """Two arms of two joints on a common base, and a free joint that no goal needs."""
    builder = mk.Builder("two arms")
    for side, y in (("left", 0.5), ("right", -0.5)):
        builder.revolute(f"{side}_shoulder", "base", f"{side}_upper", at=(0, y, 0), axis="z", limits=(-3, 3))
        builder.revolute(f"{side}_elbow", f"{side}_upper", f"{side}_fore", at=(1, 0, 0), axis="z", limits=(-3, 3))
        builder.fixed(f"{side}_tip", f"{side}_fore", f"{side}_hand", at=(0.8, 0, 0))
    return builder.build()


def same(solution, expected):
    np.testing.assert_array_equal(solution.q, expected.q)
    for name in ("status", "iterations", "attempts"):
        assert getattr(solution, name) == getattr(expected, name)


# ---- earlier calls ----------------------------------------------------------------------------------


METHODS_WITH_RESTARTS = [name for name in mk.METHODS if name not in ("fabrik", "closed_form", "chan", "annealing")]


@pytest.mark.parametrize("method", METHODS_WITH_RESTARTS)
def test_joints_that_no_goal_needs_stay_where_the_call_puts_them(method):
    """The starts of restarts were cached with the values of the first call."""
    robot, rng = two_arms(), np.random.default_rng(0)
    goal = mk.PositionGoal("left_hand", (0, 0, 0))
    used = mk.Solver(robot, goal, solver=method, restarts=3)
    right = [robot.space.q_names.index(name) for name in ("right_shoulder", "right_elbow")]
    for _ in range(6):
        q0 = robot.random(rng)
        target = robot.pose("left_hand", robot.random(rng))[:3, 3]
        calls: list[int] = []

        def second(q, calls=calls):
            calls.append(1)
            return len(calls) > 1

        solution = used.solve(target, q0, feasible=second)
        np.testing.assert_array_equal(solution.q[right], q0[right])
        calls.clear()
        same(solution, mk.Solver(robot, goal, solver=method, restarts=3).solve(target, q0, feasible=second))


def test_joints_locked_in_a_call_stay_where_the_call_puts_them():
    robot, rng = mk.gallery.panda(), np.random.default_rng(1)
    link = "panda_hand_tcp"
    used = mk.Solver(robot, mk.PositionGoal(link, (0, 0, 0)), solver="dls", restarts=4)
    for k in range(8):
        q0, target = robot.random(rng), robot.pose(link, robot.random(rng))[:3, 3]
        locked = f"panda_joint{1 + k % 4}"
        accepted = [False, True, False, True]
        solution = used.solve(target, q0, lock=locked, feasible=lambda q, accepted=accepted: accepted.pop(0))
        assert solution[locked] == q0[robot.space.q_names.index(locked)]
        fresh = mk.Solver(robot, mk.PositionGoal(link, (0, 0, 0)), solver="dls", restarts=4)
        same(solution, fresh.solve(target, q0, lock=locked, feasible=lambda q, accepted=accepted: accepted.pop(0)))


def test_a_call_without_a_start_does_not_depend_on_edits_of_other_mechanisms():
    """After an edit anywhere, the next call was not a prepared one; its angles could differ by full rotations."""
    arm, rng = mk.gallery.ur5(), np.random.default_rng(8)
    solver = mk.Solver(arm, mk.PoseGoal("tool0", np.eye(4)))
    for _ in range(30):
        target = arm.pose("tool0", arm.random(rng))
        expected = solver.solve(target)
        two_arms()  # builds another mechanism
        same(solver.solve(target), expected)


# ---- limits and locks -------------------------------------------------------------------------------


def leader_and_follower(ratio=-2.0, offset=0.0):
    builder = mk.Builder("geared")
    builder.revolute("leader", "base", "upper", axis="z", limits=(-1.5, 1.5))
    builder.revolute("follower", "base", "wheel", at=(0.3, 0, 0), axis="z", limits=(-4, 4))
    builder.couple("follower", "leader", ratio=ratio, offset=offset)
    builder.fixed("tip", "upper", "hand", at=(1, 0, 0))
    return builder.build()


@pytest.mark.parametrize("ratio", [-2.0, 0.5])
@pytest.mark.parametrize("offset", [0.0, 0.3])
@pytest.mark.parametrize("of_call", [False, True])
def test_limits_of_a_mimic_joint_are_limits_of_its_own_value(ratio, offset, of_call):
    """They were limits of its leader, without ratio and offset."""
    robot, rng = leader_and_follower(ratio, offset), np.random.default_rng(2)
    limits = {"follower": (0.1, 0.8)}
    goal = mk.PositionGoal("hand", (0, 0, 0))
    solver = mk.Solver(robot, goal) if of_call else mk.Solver(robot, goal, limits=limits)
    successes = 0
    for _ in range(40):
        leader = rng.uniform(-1.5, 1.5)
        target = np.array([np.cos(leader), np.sin(leader), 0.0])
        solution = solver.solve(target, robot.random(rng), **({"limits": limits} if of_call else {}))
        assert 0.1 - 1e-9 <= ratio * solution["leader"] + offset <= 0.8 + 1e-9
        assert solution["follower"] == pytest.approx(ratio * solution["leader"] + offset)
        assert -1.5 <= solution["leader"] <= 1.5
        assert solution.success == bool(0.1 <= ratio * leader + offset <= 0.8)
        successes += solution.success
    assert successes > 2


def test_limits_of_a_mimic_joint_that_leave_no_value_are_rejected():
    robot = leader_and_follower()
    with pytest.raises(LimitsError, match="leave no value"):
        mk.Solver(robot, mk.PositionGoal("hand", (1, 0, 0)), limits={"follower": (3.5, 3.8), "leader": (0.0, 1.5)})


@pytest.mark.parametrize("method", ["lm", "dls", "ccd", "newton"])
def test_a_joint_locked_in_a_call_stays_outside_its_limits_as_with_the_solver(method):
    """A lock of the call moved it to its limit."""
    arm = mk.arm_2d([1.0, 0.8, 0.5], limits=(-1.0, 1.0))
    q0 = np.array([0.2, 1.3, 0.1])
    goal = mk.PositionGoal("tool", (1.6, 1.0, 0.0))
    by_solver = mk.Solver(arm, goal, lock="joint2", solver=method).solve(q0=q0)
    by_call = mk.Solver(arm, goal, solver=method).solve(q0=q0, lock="joint2")
    assert by_solver["joint2"] == by_call["joint2"] == 1.3


# ---- success means that everything is met -----------------------------------------------------------


def nothing_is_unmet(mechanism, objectives, q):
    """Whether every required objective is within its tolerance at q, by an independent evaluation."""
    for objective in objectives:
        if not objective.required:
            continue
        error = objective.error(mechanism, q)
        if error.position > objective.tolerance or error.rotation > objective.angle_tolerance:
            return False
    return mechanism.space.within_limits(q, 1e-12)


@pytest.mark.parametrize("iterations", [1, 2, 3, 4, 5])
def test_a_solve_cut_short_succeeds_exactly_if_everything_is_met(iterations):
    """A solve with two levels reported a failure although both were met."""
    arm, rng = mk.gallery.panda(), np.random.default_rng(iterations)
    link = "panda_hand_tcp"
    for _ in range(100):
        q = arm.random(rng)
        X = arm.pose(link, q)
        q0 = arm.clamp(q + rng.normal(scale=10.0 ** rng.uniform(-6, -1), size=arm.nq))
        goals = [
            mk.PositionGoal(link, X[:3, 3], level=0),
            mk.OrientationGoal(link, X[:3, :3], level=1),
        ]
        solution = mk.Solver(arm, goals, restarts=0).solve(q0=q0, max_iterations=iterations)
        assert solution.success == nothing_is_unmet(arm, goals, solution.q)


def test_a_cone_within_its_tolerance_is_a_success():
    """One error of 1e-7 at a tolerance of 1e-6 was a failure."""
    arm, rng = mk.gallery.ur5(), np.random.default_rng(5)
    for _ in range(60):
        q = arm.random(rng)
        X = arm.pose("tool0", q)
        goals = [
            mk.PositionGoal("tool0", X[:3, 3]),
            mk.InCone("tool0", (0.0, 0.0, 1.0), X[:3, :3] @ [0.0, 0.1, 1.0], rng.uniform(0.05, 0.4)),
        ]
        solution = mk.Solver(arm, goals, restarts=0).solve(q0=arm.random(rng), max_iterations=int(rng.integers(1, 30)))
        assert solution.success == nothing_is_unmet(arm, goals, solution.q)


def test_a_mechanism_with_closed_loops_is_not_reported_open():
    robot, rng = mk.gallery.delta_robot(), np.random.default_rng(6)
    solver = mk.Solver(robot, mk.PositionGoal("platform", (0, 0, -0.6)), restarts=0)
    for _ in range(60):
        target = np.array([0.0, 0.0, -0.6]) + rng.uniform(-0.4, 0.4, 3)
        solution = solver.solve(target, robot.random(rng), max_iterations=int(rng.integers(1, 20)))
        gaps = [robot.closure_gap(name, solution.q) for name in robot.closures]
        is_closed = all(max(np.linalg.norm(g.position), np.linalg.norm(g.rotation)) <= 1e-9 for g in gaps)
        assert (solution.status is mk.Status.NOT_CLOSED) <= (not is_closed)


@pytest.mark.parametrize("option", [{"smallest_step": 1e-4}, {"smallest_step": 1e-5}, {"max_iterations": 4}])
def test_a_search_that_ends_with_closed_loops_is_not_reported_open(option):
    """The kernel closes loops to 1e-10; ended between that and 1e-9, it said that a loop is open."""
    rng, ends_between = np.random.default_rng(7), 0
    for make, link in ((mk.gallery.delta_robot, "platform"), (mk.gallery.stewart_platform, "platform")):
        robot = make()
        home = robot.q
        solver = mk.Solver(robot, mk.PositionGoal(link, robot.pose(link)[:3, 3]), restarts=0)
        for _ in range(60):
            q0 = robot.integrate(home, rng.normal(scale=10.0 ** rng.uniform(-6, -1), size=robot.nv))
            solution = solver.solve(robot.pose(link)[:3, 3] + rng.uniform(-0.1, 0.1, 3), q0, **option)
            gaps = [robot.closure_gap(name, solution.q) for name in robot.closures]
            largest = max(max(gap.distance, gap.angle) for gap in gaps)
            ends_between += 1e-10 < largest < 1e-9
            assert (solution.status is mk.Status.NOT_CLOSED) <= (largest > 0.999e-9)
    assert ends_between or "max_iterations" in option


def test_feasible_decides_on_the_whole_configuration():
    """With two independent arms it was asked while the second arm was still at its start, and rejected the answer."""
    robot, rng = two_arms(), np.random.default_rng(8)
    elbow = robot.space.q_names.index("right_elbow")
    goals = [mk.PositionGoal(f"{side}_hand", (1, 1, 0), name=side) for side in ("left", "right")]
    successes = 0
    for method in ("lm", "dls", "ccd"):
        solver = mk.Solver(robot, goals, solver=method, restarts=2)
        for _ in range(10):
            q = robot.random(rng)
            targets = [robot.pose(f"{side}_hand", q)[:3, 3] for side in ("left", "right")]
            q0 = robot.random(rng)
            q0[elbow] = -abs(q0[elbow])
            solution = solver.solve(targets, q0, feasible=lambda q: q[elbow] > 0)
            is_met = nothing_is_unmet(robot, solution.objectives, solution.q)
            assert solution.success == (is_met and solution.q[elbow] > 0)
            successes += solution.success
    assert successes > 10


def test_feasible_judges_answers_that_hold_by_their_configuration_alone():
    """Where a search ended with loops between 1e-10 and 1e-9, an answer that it rejects was a success."""
    robot = mk.gallery.pantograph()
    goal = mk.InBox("pen", (-1, -1, -1), (1, 1, 1), robot.pose("pen"))
    solver = mk.Solver(robot, goal, lock=["side_joint", "bridge_joint"])
    q0 = robot.q
    q0[2] += 2e-10
    accepted, rejected = (solver.solve(q0=q0, feasible=lambda q, answer=answer: answer) for answer in (True, False))
    np.testing.assert_array_equal(accepted.q, q0)
    assert accepted.success
    assert not rejected.success
    assert "rejects" in rejected.message


# ---- reading an answer ------------------------------------------------------------------------------


def test_reading_a_closing_joint_from_several_threads_moves_nothing():
    """It moved the mechanism meanwhile, so that other threads read wrong values."""
    robot = mk.gallery.four_bar()
    name = next(iter(robot.closures))
    solver = mk.Solver(robot, mk.JointValues({"crank_joint": 1.0}))
    solutions = [solver.solve({"crank_joint": angle}, robot.q) for angle in np.linspace(0.2, 2.8, 24)]
    expected = [np.asarray(solution[name]) for solution in solutions]
    before = robot.q.copy()

    def read(k):
        return [np.array_equal(np.asarray(solutions[i][name]), expected[i]) for i in (k, 23 - k) * 20]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(read, range(24)))
    assert all(all(result) for result in results)
    np.testing.assert_array_equal(robot.q, before)


# ---- edits during a solve ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["lm", "dls"])
@pytest.mark.parametrize("edit", ["add a joint", "change a length"])
def test_an_edit_inside_a_callback_is_reported(method, edit):
    """It ended in a ShapeError, or in success with a loop 2.2 m open."""
    arm = mk.arm_2d([1.0, 0.8, 0.5], limits=(-2, 2))
    solver = mk.Solver(arm, mk.PositionGoal("tool", (0.4, 1.2, 0.0)), solver=method)

    def callback(_):
        if "extra" in arm.joints:
            return
        if edit == "add a joint":
            arm.link("tool").add_child(mk.Joint("extra", dof="EZ"))
        else:
            arm.joint("joint2").set_limits(-3.0, 3.0)

    with pytest.raises(InvalidOperation, match="edited"):
        solver.solve(q0=[0.1, 0.4, 0.3], callback=callback)
    assert solver.solve(q0=[0.1, 0.4, 0.3]).success


# ---- copies -----------------------------------------------------------------------------------------


SOLVERS = {
    "arm": lambda: mk.Solver(mk.arm_2d([1.0, 0.8, 0.5]), mk.PositionGoal("tool", (0.4, 1.2, 0.0))),
    "panda": lambda: mk.Solver(mk.gallery.panda(), mk.PoseGoal("panda_hand_tcp", np.eye(4)), lock="panda_joint3"),
    "four-bar": lambda: mk.Solver(mk.gallery.four_bar(), mk.JointValues({"crank_joint": 1.0}), solver="dls"),
    "two arms": lambda: mk.Solver(
        two_arms(),
        [mk.PositionGoal("left_hand", (1, 1, 0)), mk.AxisGoal("right_hand", (1, 0, 0), (1, 0, 0))],
        rest=True,
    ),
    "obstacles": lambda: mk.Solver(
        mk.gallery.panda(), mk.PositionGoal("panda_hand_tcp", (0.4, 0.3, 0.4)), avoid="self"
    ),
}


def solve_elsewhere(solver, q0):
    return solver.solve(q0=q0)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_and_its_solutions_survive_pickling(name):
    solver = SOLVERS[name]()
    q0 = solver.mechanism.random(np.random.default_rng(0))
    expected = solver.solve(q0=q0)
    restored = pickle.loads(pickle.dumps(solver))
    assert restored == solver
    assert hash(restored) == hash(solver)
    same(restored.solve(q0=q0), expected)
    copy = pickle.loads(pickle.dumps(expected))
    assert copy == expected
    same(copy, expected)
    assert str(copy) == str(expected)
    assert copy.errors == expected.errors
    assert copy.active_limits == expected.active_limits


def test_a_solution_can_be_read_after_the_mechanism_was_edited():
    arm = mk.arm_2d([1.0, 0.8, 0.5], limits=(-2, 2))
    reached = mk.Solver(arm, mk.PositionGoal("tool", (0.4, 1.2, 0.0))).solve(q0=[0.1, 0.4, 0.3])
    missed = mk.Solver(arm, mk.PositionGoal("tool", (0.4, 9.2, 0.0))).solve(q0=[0.1, 0.4, 0.3])
    before = [(str(s), dict(s.errors), dict(s.active_limits), s.values, s.condition) for s in (reached, missed)]
    arm.joint("joint2").set_limits(-0.1, 0.1)
    arm.link("tool").add_child(mk.Joint("extra", dof="EZ"))
    after = [(str(s), dict(s.errors), dict(s.active_limits), s.values, s.condition) for s in (reached, missed)]
    assert after == before


def test_a_process_pool_returns_solutions():
    solver = SOLVERS["arm"]()
    starts = solver.mechanism.random(np.random.default_rng(0), 4)
    with ProcessPoolExecutor(2) as pool:
        solutions = list(pool.map(solve_elsewhere, [solver] * 4, starts))
    for solution, q0 in zip(solutions, starts, strict=True):
        same(solution, solver.solve(q0=q0))


def test_solvers_are_equal_if_they_are_made_alike():
    for make in SOLVERS.values():
        assert make() == make()
    first = SOLVERS["arm"]()
    assert first != mk.Solver(first.mechanism, mk.PositionGoal("tool", (0.4, 1.2, 0.0)), tolerance=1e-3)
    assert first != mk.Solver(first.mechanism, mk.PositionGoal("tool", (0.4, 1.3, 0.0)))


# ---- several threads --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["lm", "dls", "ccd"])
def test_threads_share_a_solver_without_waiting_for_each_other(method):
    robot = two_arms()
    solver = mk.Solver(robot, mk.PositionGoal("left_hand", (0.5, 1.0, 0.0)), solver=method, restarts=2)
    barrier = threading.Barrier(2, timeout=60)
    met = threading.Event()

    def callback(_):
        if not met.is_set():
            barrier.wait()  # returns only if both solves run at the same time
            met.set()

    with ThreadPoolExecutor(2) as pool:
        solutions = list(
            pool.map(lambda q0: solver.solve(q0=q0, callback=callback), robot.random(np.random.default_rng(3), 2))
        )
    assert all(np.isfinite(solution.q).all() for solution in solutions)


def test_a_solution_can_be_read_while_its_mechanism_is_edited():
    """Reading conflicts while another thread added a joint ended in an error about the shape of an array."""
    arm, must_edit = mk.arm_2d([1.0, 0.8]), []

    def editing(mechanism, q):
        if must_edit:
            must_edit.pop()
            joint, link = mk.Joint("wrist", dof="EZ"), mk.Link("hand")
            joint.add_child(link)
            arm.link("tool").add_child(joint)
        return np.zeros(1)

    goals = [mk.Custom(editing), mk.PositionGoal("tool", (3.0, 0.0, 0.0), name="reach")]
    solution = mk.Solver(arm, goals).solve(q0=np.array([0.1, 0.2]))
    expected, message = dict(solution.errors), solution.message
    must_edit.append(True)
    assert dict(solution.errors) == expected
    assert arm.nq == 3
    assert solution.message == message


def test_an_edit_by_another_thread_while_the_solver_is_compiled_is_reported(monkeypatch):
    """It ended in an error about the shapes of arrays."""
    arm = mk.arm_2d([1.0, 0.8])
    solver = mk.Solver(arm, mk.PositionGoal("tool", (1.2, 0.3, 0.0)))
    arm.joint("joint2").set_limits([-2.0], [2.0])
    edits = []

    def edit_and_compile(*arguments, **options):
        if not edits:
            edits.append(True)
            joint, link = mk.Joint("wrist", dof="EZ"), mk.Link("hand")
            joint.add_child(link)
            arm.link("tool").add_child(joint)
            raise ValueError("operands could not be broadcast together")
        return compile_problem(*arguments, **options)

    compile_problem = compiled_problem.compile_problem
    monkeypatch.setattr(compiled_problem, "compile_problem", edit_and_compile)
    with pytest.raises(InvalidOperation, match="edited while it was solved"):
        solver.solve(np.array([1.0, 0.5, 0.0]), np.array([0.1, 0.2]))
    assert solver.solve(np.array([1.0, 0.5, 0.0]), np.array([0.1, 0.2, 0.0])).success


def test_three_levels_cut_short_succeed_only_if_all_are_met():
    """The last steps of the first level moved the third off its target, and the kernel reported a success."""
    family, rng = make_family("levels", 1100017), np.random.default_rng(0)
    mechanism = family.solver.mechanism
    for k in range(300):
        q0 = mechanism.random(rng)
        goal_q = mechanism.clamp(mechanism.integrate(q0, rng.normal(size=mechanism.nv) * 10.0 ** rng.uniform(-4, -1)))
        targets = [goal.target(goal_q) for goal in family.goals]
        solution = family.solver.solve(targets, q0, max_iterations=1 + k % 3)
        assert not solution.success or not solution.unmet
