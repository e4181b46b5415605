"""Every method: a used solver answers as a fresh one, and joints that may not move keep their values bit by bit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk

MAX_ITERATIONS = {"annealing": 2, "evolution": 2}
"""Iterations of methods whose iterations are long; 25 for all others."""


def robot():
    """A left arm with a geared joint and a tool, a right arm, a spherical neck and a slide, which no goal needs."""
    builder = mk.Builder("robot")
    for side, y in (("left", 0.5), ("right", -0.5)):
        builder.revolute(f"{side}_shoulder", "base", f"{side}_upper", at=(0, y, 0), axis="z", limits=(-2, 2))
        builder.revolute(f"{side}_elbow", f"{side}_upper", f"{side}_fore", at=(1, 0, 0), axis="z", limits=(-2, 2))
        builder.revolute(f"{side}_wrist", f"{side}_fore", f"{side}_hand", at=(0.8, 0, 0), axis="z", limits=(-2, 2))
        builder.fixed(f"{side}_tip", f"{side}_hand", f"{side}_tool", at=(0.3, 0, 0))
    builder.revolute("left_gear", "left_fore", "left_wheel", axis="z")
    builder.couple("left_gear", "left_elbow", ratio=-0.5, offset=0.2)
    builder.spherical("neck", "base", "head")
    builder.prismatic("lift", "base", "cart", axis="z", limits=(-1, 1))
    return builder.build()


def arm_on_a_cart():
    """A UR5, which has a closed form, with a spherical joint that no goal needs."""
    arm = mk.gallery.ur5()
    camera = mk.Joint("camera", dof=("EX", "EY", "EZ"))
    arm.link("wrist_1_link").add_child(camera)
    camera.add_child(mk.Link("camera_body"))
    return mk.Mechanism(arm.roots)


ROBOT, ARM = robot(), arm_on_a_cart()


def setting(method):
    """The mechanism for a method, the link of its goal, and the joints that the goal may move."""
    if method == "closed_form":
        return ARM, "tool0", [name for name in ARM.joints if ARM.joint(name).dof and name != "camera"]
    return ROBOT, "left_tool", ["left_shoulder", "left_elbow", "left_wrist"]


def make_solver(method, **options):
    mechanism, link, _ = setting(method)
    goal = mk.PoseGoal(link, np.eye(4)) if method == "closed_form" else mk.PositionGoal(link, (0, 0, 0))
    iterations = MAX_ITERATIONS.get(method, 25)
    return mk.Solver(mechanism, goal, solver=method, max_iterations=iterations, **options)


def q_indices(mechanism, joint):
    names = mechanism.space.q_names
    return [k for k, name in enumerate(names) if name == joint or name.startswith(f"{joint}.")]


calls = st.fixed_dictionaries({
    "seed": st.integers(0, 10**6),
    "restarts": st.integers(0, 4),
    "rejected": st.integers(0, 2),
    "lock": st.none() | st.sampled_from(["left_shoulder", "left_elbow", "left_wrist"]),
    "limits": st.none() | st.sampled_from(["left_wrist", "left_gear"]),
    "has_rng": st.booleans(),
    "is_outside": st.booleans(),
})  # fmt: skip
"""A call: random target and start, number of solutions that `feasible` rejects, and what the call locks and limits."""


def run(solver, method, call):
    """Make a call; return the solution and its start."""
    mechanism, link, _ = setting(method)
    rng = np.random.default_rng(call["seed"])
    q0, q = mechanism.random(rng, 2)
    target = mechanism.pose(link, q) if method == "closed_form" else mechanism.pose(link, q)[:3, 3]
    locked = call["lock"] if method != "closed_form" else None
    if call["is_outside"] and locked is not None:
        q0[q_indices(mechanism, locked)] = 2.5
    answers = [False] * call["rejected"]
    arguments = {"restarts": call["restarts"]}
    if locked is not None:
        arguments["lock"] = locked
    if call["limits"] is not None and method != "closed_form":
        arguments["limits"] = {call["limits"]: (-0.4, 0.5)}
    if call["has_rng"]:
        arguments["rng"] = np.random.default_rng(call["seed"])
    if answers:
        arguments["feasible"] = lambda q: answers.pop(0) if answers else True
    return solver.solve(target, q0, **arguments), q0


def same(solution, expected):
    np.testing.assert_array_equal(solution.q, expected.q)
    for name in ("status", "iterations", "attempts", "message"):
        assert getattr(solution, name) == getattr(expected, name)


@pytest.mark.parametrize("method", mk.METHODS)
@settings(max_examples=15)
@given(history=st.lists(calls, min_size=1, max_size=5))
def test_a_used_solver_answers_as_a_fresh_one_and_moves_only_what_it_may(method, history):
    """After restarts, 14 of 17 methods returned joints that no goal needs, and locked ones, as in earlier calls.

    Quaternions of such joints were normalized again, which could change their last bit.
    """
    mechanism, _, moving = setting(method)
    used = make_solver(method)
    for call in history:
        solution, q0 = run(used, method, call)
        expected, _ = run(make_solver(method), method, call)
        same(solution, expected)
        may_move = [joint for joint in moving if joint != call["lock"] or method == "closed_form"]
        fixed = np.ones(mechanism.nq, dtype=bool)
        fixed[[k for joint in may_move for k in q_indices(mechanism, joint)]] = False
        np.testing.assert_array_equal(solution.q[fixed], q0[fixed])


@pytest.mark.parametrize("method", [name for name in mk.METHODS if name != "closed_form"])
@settings(max_examples=15)
@given(call=calls, lower=st.floats(-0.6, 0.3), width=st.floats(0.05, 1.0), of_call=st.booleans())
def test_limits_of_a_mimic_joint_hold_with_every_method(method, call, lower, width, of_call):
    """They were limits of the leader, without ratio and offset."""
    limits = {"left_gear": (lower, lower + width)}
    rng = np.random.default_rng(call["seed"])
    q0, q = ROBOT.random(rng, 2)
    target = ROBOT.pose("left_tool", q)[:3, 3]
    solver = make_solver(method) if of_call else make_solver(method, limits=limits)
    solution = solver.solve(target, q0, restarts=call["restarts"], **({"limits": limits} if of_call else {}))
    assert lower - 1e-9 <= solution["left_gear"] <= lower + width + 1e-9
    assert solution["left_gear"] == pytest.approx(0.2 - 0.5 * solution["left_elbow"], abs=1e-12)


@pytest.mark.parametrize("method", mk.METHODS)
def test_threads_that_share_a_solver_get_the_answers_of_fresh_solvers(method):
    rng = np.random.default_rng(7)
    batch = [
        {"seed": int(seed), "restarts": int(seed) % 3, "rejected": int(seed) % 2, "lock": lock, "limits": None,
         "has_rng": bool(seed % 2), "is_outside": False}
        for seed, lock in zip(rng.integers(0, 1000, 6), [None, "left_elbow", None] * 2, strict=True)
    ]  # fmt: skip
    used = make_solver(method)
    with ThreadPoolExecutor(4) as pool:
        solutions = list(pool.map(lambda call: run(used, method, call)[0], batch))
    for call, solution in zip(batch, solutions, strict=True):
        same(solution, run(make_solver(method), method, call)[0])


@pytest.mark.parametrize("method", [name for name in mk.METHODS if name != "closed_form"])
def test_a_locked_joint_stays_at_its_start_with_every_method(method):
    """A lock of the solver and a lock of the call are the same; the value may be outside the limits."""
    rng = np.random.default_rng(11)
    for _ in range(3):
        q0, q = ROBOT.random(rng, 2)
        q0[q_indices(ROBOT, "left_elbow")] = rng.choice([-2.7, 0.3, 2.7])
        target = ROBOT.pose("left_tool", q)[:3, 3]
        by_call = make_solver(method).solve(target, q0, lock="left_elbow", restarts=2)
        by_solver = make_solver(method, lock="left_elbow").solve(target, q0, restarts=2)
        assert by_call["left_elbow"] == by_solver["left_elbow"] == q0[q_indices(ROBOT, "left_elbow")][0]
