"""Edge cases: all joints locked, nothing to move, mirrored targets, nested calls, edits between calls.

Each method gives a correct solution, a helpful error, or a true status, and does not affect the next call.
"""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from counted_clock import count_clock_readings

import mechanik as mk
from mechanik.errors import (
    InvalidArgument,
    InvalidOperation,
    LimitsError,
    MechanikError,
    NotARotation,
    NotFinite,
    ShapeError,
    UnknownName,
)
from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt
from mechanik.solver.methods.method_registry import find_method

TOOL, ELBOW = "tool0", 2
NAMES = [*sorted(mk.METHODS), "auto"]
ARM = mk.gallery.ur5()
Q = np.array([0.4, -1.1, 1.2, -0.5, 0.9, 0.3])
X = ARM.pose(TOOL, Q)
GOAL = mk.PoseGoal(TOOL, X)
NEAR = Q + 0.2
FAR = X.copy()
FAR[:3, 3] = (3.0, 0.0, 0.0)


def make_solver(name: str, goals=GOAL, mechanism: mk.Mechanism = ARM, **options) -> mk.Solver:
    """Skips problems that the method rejects as unsupported."""
    try:
        return mk.Solver(mechanism, goals, solver=name, **options)
    except InvalidOperation as rejection:
        pytest.skip(str(rejection))


def holds(solution: mk.Solution) -> None:
    """Success, status and limits are as an independent check of q finds them."""
    mechanism, q = solution.mechanism, solution.q
    met = all(
        error.position <= objective.tolerance and error.rotation <= objective.angle_tolerance
        for objective in solution.objectives
        for error in [objective.error(mechanism, q)]
    )
    assert np.isfinite(q).all()
    assert solution.success == met
    assert (solution.status is mk.Status.CONVERGED) == solution.success
    assert bool(mechanism.space.within_limits(q))
    assert repr(solution)


# ---- nothing that may move --------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("frozen", [{"lock": ARM.space.q_names}, {"active": []}, {"lock": ["elbow_joint"]}])
def test_joints_locked_when_a_solver_is_made_stay(name, frozen):
    """The closed form, alone and behind "auto", moved joints that were locked when the solver was made."""
    ik = make_solver(name, restarts=1, max_iterations=20, **frozen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # evolution divided by the number of columns
        solution = ik.solve(X, NEAR)
    holds(solution)
    stays = [ELBOW] if frozen == {"lock": ["elbow_joint"]} else range(ARM.nq)
    np.testing.assert_array_equal(solution.q[stays], NEAR[stays])


@pytest.mark.parametrize("name", NAMES)
def test_a_mechanism_that_cannot_move_is_evaluated_at_its_pose(name):
    root, joint, link = mk.Link("root"), mk.Joint("weld", dof=()), mk.Link("plate")
    root.add_child(joint)
    joint.add_child(link)
    mechanism = mk.Mechanism(root)
    for x in (0.0, 1.0):
        ik = make_solver(name, mk.PositionGoal("plate", (x, 0, 0)), mechanism, restarts=1)
        solution = ik.solve()
        holds(solution)
        assert solution.success == (x == 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_limits_that_leave_one_value_hold(name):
    arm = mk.gallery.ur5()
    arm.joints["elbow_joint"].set_limits(Q[ELBOW], Q[ELBOW])
    arm.joints["wrist_3_joint"].set_limits(-np.inf, np.inf)
    solution = make_solver(name, mechanism=arm).solve(X, NEAR)
    holds(solution)
    assert solution.q[ELBOW] == Q[ELBOW]


# ---- input validation -------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_mirrored_target_is_rejected(name):
    """On the fast path it was accepted, and some methods reported success."""
    mirrored = X.copy()
    mirrored[:3, 0] *= -1.0
    ik = make_solver(name)
    with pytest.raises(NotARotation):
        ik.solve(mirrored, NEAR)
    holds(ik.solve(X, NEAR))


@pytest.mark.parametrize("name", NAMES)
def test_an_invalid_start_is_rejected(name):
    ik = make_solver(name)
    for wrong in (NEAR + 0j, np.array(list("abcdef")), NEAR * np.nan, NEAR[:3], np.array([NEAR, NEAR])):
        with pytest.raises((ShapeError, NotFinite)):
            ik.solve(X, wrong)


@pytest.mark.parametrize("name", NAMES)
def test_a_start_can_be_any_array_of_numbers(name):
    ik = make_solver(name)
    frozen = NEAR.copy()
    frozen.flags.writeable = False
    expected = ik.solve(X, NEAR).q
    for start in (frozen, np.repeat(NEAR, 2)[::2], NEAR.tolist(), NEAR.astype(object)):
        np.testing.assert_array_equal(ik.solve(X, start).q, expected)
    for start in (NEAR.astype(np.float32), np.zeros(6, dtype=np.int64)):
        holds(ik.solve(X, start))


@pytest.mark.parametrize("name", ["lm", "dls", "ccd", "fabrik"])
@pytest.mark.parametrize("size", [0.0, 1e-9])
def test_a_zero_quaternion_is_rejected(name, size):
    """On the fast path the solution was a NaN."""
    body = mk.gallery.humanoid()
    position = body.pose("left_hand")[:3, 3] + 0.05
    ik, q0 = make_solver(name, mk.PositionGoal("left_hand", position), body), body.q.copy()
    k = int(body.space.quaternions_q[0])
    q0[k : k + 4] *= size
    with pytest.raises(NotARotation, match="zero quaternion"):
        ik.solve(position, q0)


def test_joints_to_lock_can_be_given_as_an_array():
    solution = mk.Solver(ARM, GOAL).solve(X, NEAR, lock=np.array(["elbow_joint", "wrist_1_joint"]))
    np.testing.assert_array_equal(solution.q[2:4], NEAR[2:4])


# ---- options ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(mk.METHODS))
def test_methods_can_be_copied_and_pickled(name):
    method = find_method(name)()
    assert method == copy.copy(method) == copy.deepcopy(method) == pickle.loads(pickle.dumps(method))
    options = mk.Options(max_iterations=3)
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("name", "options", "error", "says"),
    [
        ("evolution", {"local": "auto"}, UnknownName, "local method"),
        ("closed_form", {"elbow": "up"}, ShapeError, "elbow"),
        ("closed_form", {"elbow": np.nan}, NotFinite, "elbow"),
        ("momentum", {"nesterov": "no"}, InvalidArgument, "nesterov"),
        ("lm", {"svd": "no"}, InvalidArgument, "svd"),
        ("dls", {"damping": np.inf}, LimitsError, "finite"),
        ("dls", {"gain": 5.0}, LimitsError, "from 0 to 1"),
        ("newton", {"damping": np.inf}, LimitsError, "finite"),
        ("chan", {"damping": np.inf}, LimitsError, "finite"),
        ("sugihara", {"w_n_bar": np.inf}, LimitsError, "finite"),
    ],
)
def test_an_invalid_option_is_rejected_when_the_solver_is_made(name, options, error, says):
    with pytest.raises(error, match=says) as refused:
        mk.Solver(ARM, GOAL, solver=name, **options)
    assert isinstance(refused.value, MechanikError)


def test_integers_can_be_numpy_integers():
    solution = mk.Solver(ARM, GOAL, max_iterations=np.int64(3), restarts=np.int32(1)).solve(FAR, NEAR)
    assert solution.attempts == 2


def test_the_local_method_of_a_global_method_keeps_its_options():
    """A default solver with other options went downhill as if it had none."""
    ends = [
        make_solver("annealing", local=LevenbergMarquardt(damping=damping), descent=1).step(X, NEAR).q
        for damping in (None, 0.9)
    ]
    assert np.abs(ends[0] - ends[1]).max() > 1e-6


@pytest.mark.parametrize("name", ["annealing", "evolution"])
@pytest.mark.parametrize("local", ["lm", "gradient_descent"])
def test_global_methods_check_the_time_limit_within_an_iteration(name, local, monkeypatch):
    """Their descents did not, which took long where residuals are written in Python."""
    evaluations: list[int] = []

    def valley(mechanism, q):
        """Narrow and bent, so that it takes many steps."""
        evaluations.append(1)
        return [30 * (q[1] - q[0] ** 2), 1 - q[0], 0.1]

    def slope(mechanism, q):
        return np.array([[-60 * q[0], 30.0], [-1.0, 0.0], [0.0, 0.0]]) @ np.eye(2, ARM.nv)

    ik = make_solver(name, mk.Custom(valley, slope), local=local, descent=10)
    count_clock_readings(monkeypatch)
    ik.solve(q0=np.full(6, -1.5), max_seconds=0.004)
    hurried = len(evaluations)
    evaluations.clear()
    ik.step(q0=np.full(6, -1.5))
    assert hurried < len(evaluations), "it gave up before the end of the first iteration"


# ---- one call and the next --------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("interruption", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupted_call_does_not_affect_the_next(name, interruption):
    def stop(iterate: mk.Iterate) -> None:
        raise interruption

    ik = make_solver(name)
    expected = ik.solve(None, NEAR).q
    lock = [] if name == "closed_form" else ["wrist_3_joint"]
    with pytest.raises(interruption):
        ik.solve(FAR, NEAR, callback=stop, lock=lock, limits={"elbow_joint": (-0.1, 0.1)}, max_iterations=5, restarts=2)
    np.testing.assert_array_equal(ik.solve(None, NEAR).q, expected)


@pytest.mark.parametrize("name", NAMES)
def test_bands_are_solved_equally_by_every_call(name):
    """Slacks left from the first call changed the last digits of the second solution."""
    q, q0 = ARM.random(np.random.default_rng(0), 2)
    position, axis = ARM.pose(TOOL, q)[:3, 3], ARM.pose(TOOL, q)[:3, 2]
    goals = [mk.InCone(TOOL, (0, 0, 1), axis, 0.2), mk.InBox(TOOL, position - 0.02, position + 0.02)]
    ik = make_solver(name, goals, max_iterations=100)
    np.testing.assert_array_equal(ik.solve(None, q0).q, ik.solve(None, q0).q)


@pytest.mark.parametrize("name", NAMES)
def test_a_solver_follows_its_mechanism(name):
    arm = mk.gallery.ur5()
    ik = make_solver(name, mechanism=arm)
    elbow = arm.joints["elbow_joint"]
    ik.solve(X, NEAR)
    elbow.set_limits(Q[ELBOW] + 0.05, Q[ELBOW] + 0.5)
    holds(ik.solve(X, NEAR))
    elbow.set_limits(-3.0, 3.0)
    joint, tip = mk.Joint("tip_joint", dof="EZ"), mk.Link("tip")
    arm.links[TOOL].add_child(joint)
    joint.add_child(tip)
    with pytest.raises(ShapeError, match="7 numbers"):
        ik.solve(X, NEAR)
    holds(ik.solve(X, np.append(NEAR, 0.1)))
    arm.links[TOOL].remove_child(joint)
    np.testing.assert_array_equal(ik.solve(X, NEAR).q, make_solver(name, mechanism=arm).solve(X, NEAR).q)


@pytest.mark.parametrize("name", NAMES)
def test_concurrent_calls_give_the_answers_of_single_calls(name):
    ik = make_solver(name)
    targets = [ARM.pose(TOOL, Q + 0.02 * k) for k in range(8)]
    expected = [ik.solve(target, NEAR).q for target in targets]
    solutions: dict[int, np.ndarray] = {}

    def work(first: int) -> None:
        for k in range(first, len(targets), 4):
            solutions[k] = ik.solve(targets[k], NEAR, history=k % 2 == 1).q

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for k, q in enumerate(expected):
        np.testing.assert_allclose(solutions[k], q, atol=1e-12)


@pytest.mark.parametrize("name", ["lm", "dls"])
def test_a_callback_may_call_the_solver(name):
    """It waited for itself forever; later it raised an error."""
    ik = make_solver(name)
    expected = ik.solve(X, NEAR)
    for inner in (lambda q: ik.step(X, q), lambda q: ik.solve(X, q), lambda q: ik.solve_nearby(0.1)):
        solution = ik.solve(X, NEAR, callback=lambda iterate, inner=inner: bool(inner(iterate.q)) and False)
        holds(solution)
        np.testing.assert_allclose(solution.q, expected.q, atol=1e-9)


# ---- report of a solution ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lm", "dls"])
def test_active_limits_are_those_of_the_solver(name):
    """On the fast path they were the mechanism's."""
    low, high = NEAR[ELBOW] - 0.05, NEAR[ELBOW] + 0.05
    ik = make_solver(name, limits={"elbow_joint": (low, high)})
    solution = ik.solve(X, NEAR)
    assert solution.q[ELBOW] in (low, high)
    assert solution.active_limits == ik.solve(X, NEAR, history=True).active_limits
    assert "elbow_joint" in solution.active_limits


@pytest.mark.parametrize("name", ["lm", "adam"])
def test_a_spherical_joint_is_never_reported_at_a_limit(name):
    body = mk.gallery.humanoid()
    ik = make_solver(name, mk.PositionGoal("left_hand", body.pose("left_hand")[:3, 3] + 0.1), body)
    assert not [k for k in ik.solve_nearby(0.01).active_limits if k.startswith("base.q")]


def test_auto_calls_the_closed_form_once():
    """Whether there is a branch does not depend on the start; it was called from each of a hundred starts."""
    ik = make_solver("auto", restarts=20)
    solution = ik.solve(FAR, NEAR, history=True)
    assert not solution.success
    assert solution.history is not None
    assert len(solution.history) <= solution.iterations + 1


# ---- what a method is given -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictsCost(mk.Method):
    """Half a gradient step, after a prediction of its cost."""

    name: ClassVar[str] = "predicts cost"
    title: ClassVar[str] = "a prediction of the cost"
    citation: ClassVar[str] = "none"

    def iterate(self, problem):
        while True:
            problem.step[:] = -0.1 * problem.gradient
            before = [problem.x.copy(), problem.step.copy(), problem.residual.copy(), problem.jacobian.copy()]
            expected, cost = problem.cost_after(0.5), problem.cost
            for old, new in zip(before, [problem.x, problem.step, problem.residual, problem.jacobian], strict=True):
                np.testing.assert_array_equal(old, new)
            assert cost == problem.cost
            problem.advance(0.5)
            assert problem.cost == pytest.approx(expected, rel=1e-12)
            yield


@pytest.mark.parametrize(
    "goals",
    [GOAL, mk.InBox(TOOL, X[:3, 3] - 0.02, X[:3, 3] + 0.02), [GOAL, mk.Custom(lambda mechanism, q: [q[0] - q[1]])]],
    ids=["pose", "bands", "function"],
)
def test_cost_after_moves_nothing_and_equals_the_cost_of_the_next_step(goals):
    solution = mk.Solver(ARM, goals, solver=PredictsCost()).solve(None, Q + 0.5, max_iterations=5)
    assert solution.iterations == 5


@pytest.mark.parametrize("name", ["lm", "dls", "ccd"])
def test_an_immovable_joint_stays_outside_its_limits_and_is_named(name):
    """Its value stayed without a message."""
    panda = mk.gallery.panda()
    q0 = panda.q
    q0[7] = 9.0  # a finger
    there = panda.pose("panda_hand_tcp", panda.q)[:3, 3] + 0.02
    solution = mk.Solver(panda, mk.PositionGoal("panda_hand_tcp", there), solver=name).solve(there.copy(), q0)
    assert solution.success
    assert solution.q[7] == 9.0
    assert solution.outside_limits == ("panda_finger_joint1",)
    assert "moved by no objective: panda_finger_joint1" in solution.message
