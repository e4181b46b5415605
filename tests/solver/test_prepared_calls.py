"""Prepared calls: `Solver.explain` says which calls are prepared, and it is true."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest
from whole_body import whole_body

import mechanik as mk
from mechanik.solver import pipeline

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The requests that were resolved; prepared calls resolve none."""
    requests: list[object] = []
    original = pipeline.resolve_request

    def resolve(request: Any, *arguments: Any) -> Any:
        requests.append(request)
        return original(request, *arguments)

    monkeypatch.setattr(pipeline, "resolve_request", resolve)
    return requests


BODY = whole_body()
ARM = mk.gallery.make("ur5")
FOUR_BAR = mk.gallery.four_bar()
CRANK = FOUR_BAR.space.q_names[0]
PLATFORM = mk.gallery.stewart_platform()
SQUARE = [(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)]


def body_goals() -> list[mk.Objective]:
    return [
        mk.PoseGoal("left_foot", BODY.pose("left_foot"), name="foot"),
        mk.PositionGoal("right_hand", BODY.pose("right_hand")[:3, 3], name="hand"),
        mk.OrientationGoal("head", BODY.pose("head")[:3, :3], name="head"),
        mk.JointValues({"left_knee": 0.8}, name="knee"),
        mk.RestPose(BODY.q, name="rest"),
    ]


SOLVERS: dict[str, tuple[mk.Mechanism, list[mk.Objective], dict[str, Any], Any]] = {
    "pose of an arm": (ARM, [mk.PoseGoal("tool0", ARM.pose("tool0"))], {}, ARM.pose("tool0")),
    "point of an arm": (ARM, [mk.PositionGoal("tool0", ARM.pose("tool0")[:3, 3])], {}, ARM.pose("tool0")[:3, 3]),
    "axis of an arm": (ARM, [mk.AxisGoal("tool0", ARM.pose("tool0")[:3, 2])], {}, ARM.pose("tool0")[:3, 2]),
    "single descent of an arm": (
        ARM, [mk.PoseGoal("tool0", ARM.pose("tool0"))], {"restarts": 0}, ARM.pose("tool0").tolist()),
    "crank of a four-bar": (FOUR_BAR, [mk.JointValues({CRANK: 0.1})], {}, {CRANK: float(FOUR_BAR.q[0])}),
    "crank with limits": (
        FOUR_BAR, [mk.JointValues({CRANK: 0.1})], {"limits": {CRANK: (-3.0, 3.0)}}, float(FOUR_BAR.q[0])),
    "platform": (PLATFORM, [mk.PoseGoal("platform", PLATFORM.pose("platform"))], {}, PLATFORM.pose("platform")),
    "several goals of a tree": (
        BODY, body_goals(), {},
        [BODY.pose("left_foot"), BODY.pose("right_hand")[:3, 3], BODY.pose("head")[:3, :3], 0.8, None]),
    "support polygon": (
        BODY, [mk.CentreOfMass(support=SQUARE, name="balance"), mk.PositionGoal("head", BODY.pose("head")[:3, 3])], {},
        [None, BODY.pose("head")[:3, 3]]),
    "function": (ARM, [mk.Custom(lambda mechanism, q: q[0] - ARM.q[0])], {}, None),
    "rest pose of the joints": (ARM, [mk.PositionGoal("tool0", ARM.pose("tool0")[:3, 3])], {"rest": True}, None),
    "method in Python": (
        ARM, [mk.PoseGoal("tool0", ARM.pose("tool0"))], {"solver": "annealing", "max_iterations": 1},
        ARM.pose("tool0")),
    "without self-collision": (ARM, [mk.PoseGoal("tool0", ARM.pose("tool0"))], {"avoid": "self"}, ARM.pose("tool0")),
    "time limit": (ARM, [mk.PoseGoal("tool0", ARM.pose("tool0"))], {"max_seconds": 1.0}, ARM.pose("tool0")),
}  # fmt: skip


def arguments_of(call: str, mechanism: mk.Mechanism, target: Any) -> Arguments:
    """Arguments of the kind of call that an explanation names."""
    q, joint = mechanism.q, mechanism.space.v_names[-1]
    further: dict[str, dict[str, Any]] = {
        "targets and q0": {},
        "options": {"tolerance": 1e-5, "restarts": 0},
        "restarts": {"restarts": 3},
        "max_seconds": {"max_seconds": 1.0},
        "nearest": {"nearest": True},
        "lock": {"lock": [joint.split(".")[0]]},
        "limits": {"limits": {}},
        "rng": {"rng": np.random.default_rng(0)},
        "feasible": {"feasible": lambda q: True},
        "history": {"history": True},
        "callback": {"callback": lambda iterate: None},
    }
    if call == "without q0":
        return (target,), {}
    if call == "target of balance":
        return ([SQUARE, None], q), {}
    return (target, q), further[call]


@pytest.mark.parametrize("name", SOLVERS)
def test_the_explanation_names_exactly_the_calls_that_are_prepared(name, resolved):
    mechanism, goals, options, target = SOLVERS[name]
    solver = mk.Solver(mechanism, goals, **options)
    calls = solver.explain().calls
    assert {call.call for call in calls} >= {"targets and q0", "without q0", "options", "nearest", "max_seconds"}
    for report in calls:
        if report.call in ("nearest",) and (name in ("function", "method in Python") or mechanism is not ARM):
            continue  # all solutions of a tree take long
        positional, named = arguments_of(report.call, mechanism, target)
        resolved.clear()
        solver.solve(*positional, **named)
        is_prepared = not resolved
        assert is_prepared == report.is_prepared, f"{report}"


def test_a_polygon_is_the_only_target_that_is_not_prepared():
    solver = mk.Solver(*SOLVERS["support polygon"][:2])
    calls = {call.call: call for call in solver.explain().calls}
    assert calls["targets and q0"].is_prepared
    assert "relations of the objective are made again" in calls["target of balance"].reason
    assert not [call for call in calls if call.startswith("target of") and call != "target of balance"]


@pytest.mark.parametrize("form", [np.asarray, lambda X: X.tolist(), mk.Pose.from_matrix])
@pytest.mark.parametrize("name", ["pose of an arm", "platform", "single descent of an arm"])
def test_calls_with_other_forms_of_a_target_or_start_are_prepared(name, form, resolved):
    mechanism, goals, options, target = SOLVERS[name]
    solver = mk.Solver(mechanism, goals, **options)
    X = np.asarray(target)
    solutions = [solver.solve(form(X), mechanism.q), solver.solve(form(X), mechanism.q.tolist())]
    assert not resolved
    assert all(solution.success for solution in solutions)
    assert np.abs(solutions[0].objectives[0].target - X).max() < 1e-12


def test_a_limited_joint_gets_the_equivalent_angle_inside_its_limits(resolved):
    builder = mk.Builder("hinge")
    builder.revolute("hinge", "world", "door", limits=(-4.0, 9.0))
    builder.prismatic("slide", "door", "latch", axis="x", limits=(-1.0, 1.0))
    solver = mk.Solver(builder.build(), [mk.JointValues({"hinge": 0.0, "slide": 0.0})], restarts=0)
    for value in (-7.0, -3.0, 0.5, 6.0, 20.0):
        for start in (-3.9, 0.0, 5.0, 8.9):
            solution = solver.solve({"hinge": value, "slide": 0.5}, np.array([start, 0.0]))
            candidates = value + 2 * np.pi * np.arange(-9, 10)
            allowed = candidates[(candidates >= -4.0) & (candidates <= 9.0)]
            nearest = allowed[np.argmin(np.abs(allowed - start))]
            assert np.abs(solution.q - [nearest, 0.5]).max() < 1e-6
    assert not resolved


def test_prepared_calls_of_many_threads_give_the_solutions_of_one():
    solver = mk.Solver(*SOLVERS["several goals of a tree"][:2])
    rng = np.random.default_rng(3)
    starts = [BODY.integrate(BODY.q, 0.05 * rng.normal(size=BODY.nv)) for _ in range(24)]
    targets = SOLVERS["several goals of a tree"][3]
    expected = [solver.solve(targets, q).q for q in starts]
    wrong: list[int] = []

    def check(first: int) -> None:
        for k in range(first, first + 24):
            if not np.array_equal(solver.solve(targets, starts[k % 24]).q, expected[k % 24]):
                wrong.append(k)

    threads = [threading.Thread(target=check, args=(6 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_solution_keeps_its_target_when_the_caller_changes_the_array():
    for name in ("pose of an arm", "platform", "several goals of a tree"):
        mechanism, goals, options, target = SOLVERS[name]
        solver = mk.Solver(mechanism, goals, **options)
        first = np.array(target if name != "several goals of a tree" else target[0])
        given = first.copy()
        solution = solver.solve(given if name != "several goals of a tree" else [given, *target[1:]], mechanism.q)
        given[:3, 3] += 1.0
        assert np.array_equal(solution.objectives[0].target, first)


def test_a_rest_pose_of_the_joints_is_that_of_the_call():
    arm = mk.gallery.make("ur5")
    solver = mk.Solver(arm, mk.PositionGoal("tool0", arm.pose("tool0")[:3, 3]), rest=True)
    q = arm.q
    assert np.abs(solver.solve(None, q).q - q).max() < 1e-9
    arm.joint("wrist_3_joint").set_rest_pose(1.0)
    assert abs(solver.solve(None, q)["wrist_3_joint"] - 1.0) < 1e-5


@pytest.mark.parametrize("name", ["pose of an arm", "crank of a four-bar", "platform", "several goals of a tree"])
def test_a_prepared_call_runs_through_at_most_four_files_and_eight_functions(name):
    mechanism, goals, options, target = SOLVERS[name]
    solver, q = mk.Solver(mechanism, goals, **options), mechanism.q
    solver.solve(target, q)
    functions: set[tuple[str, str]] = set()

    def record(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        is_kernel = "/kernels/" in code.co_filename  # compiled, although Numba reports a call
        if event == "call" and "/mechanik/" in code.co_filename and not is_kernel:
            functions.add((code.co_filename, code.co_qualname))

    sys.setprofile(record)
    try:
        solver.solve(target, q)
    finally:
        sys.setprofile(None)
    functions = {function for function in functions if __file__ not in function}
    assert len({file for file, _ in functions}) <= 4, functions
    assert len(functions) <= 8, functions
