"""Times on machines whose clock is coarse, or runs backwards when a thread changes its core."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

import mechanik as mk
from mechanik.processor_clock import seconds_per_call, seconds_since
from mechanik.solver.batch.batch_run import BatchProgressLine
from mechanik.spatial import make_pose, rotation

POSE = make_pose(rotation.about_x(np.pi), (0.45, 0.25, 0.30))


@pytest.fixture
def backward_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wall clock that is 6 ms earlier at each look."""
    readings = itertools.count()
    for name in ("perf_counter", "monotonic"):
        monkeypatch.setattr(time, name, lambda: 1000.0 - 6e-3 * next(readings))
    monkeypatch.setattr("mechanik.solver.avoidance.perf_counter", time.perf_counter)


@pytest.mark.usefixtures("backward_clock")
def test_elapsed_time_is_never_negative() -> None:
    assert seconds_since(time.perf_counter()) == 0.0


@pytest.mark.usefixtures("backward_clock")
@pytest.mark.parametrize(
    "options",
    [{}, {"restarts": 0}, {"nearest": True}, {"history": True}, {"max_seconds": 1.0}, {"solver": "dls"}],
    ids=str,
)
@pytest.mark.parametrize("avoid", [None, "self"])
@pytest.mark.parametrize("x", [0.45, 2.0])
def test_the_time_of_a_solution_is_never_negative(options: dict, avoid: str | None, x: float) -> None:
    arm = mk.gallery.panda()
    method = {name: options[name] for name in options if name == "solver"}
    solver = mk.Solver(arm, mk.PoseGoal("panda_hand_tcp", POSE), avoid=avoid, **method)
    more = {name: options[name] for name in options if name != "solver"}
    target = POSE.copy()
    target[0, 3] = x
    for q0 in (None, arm.q):
        solution = solver.solve(target, q0, **more)
        assert solution.seconds >= 0.0
        assert all(chain.seconds >= 0.0 for chain in solution.subproblems)


@pytest.mark.usefixtures("backward_clock")
def test_the_time_of_several_goals_and_loops_is_never_negative() -> None:
    hexapod = mk.gallery.stewart_platform()
    X = hexapod.pose("platform", hexapod.q)
    solver = mk.Solver(hexapod, [mk.PoseGoal("platform", X), mk.PositionGoal("platform", X[:3, 3])])
    assert solver.solve([X, X[:3, 3]], hexapod.q).seconds >= 0.0
    assert mk.solve(hexapod, mk.PoseGoal("platform", X)).seconds >= 0.0


@pytest.mark.usefixtures("backward_clock")
def test_the_times_of_batches_and_plans_are_never_negative() -> None:
    arm = mk.gallery.panda()
    solver = mk.Solver(arm, mk.PoseGoal("panda_hand_tcp", POSE))
    assert solver.solve_batch(np.repeat(POSE[None], 4, axis=0)).seconds >= 0.0
    ur5 = mk.gallery.ur5()
    assert mk.plan(ur5, ur5.q, ur5.q + 0.1).seconds >= 0.0


@pytest.mark.usefixtures("backward_clock")
def test_the_time_of_a_live_solver_step_is_never_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechanik.motion.live.background_solver.perf_counter", time.perf_counter)
    live = mk.LiveSolver(mk.gallery.panda(), mk.PoseGoal("panda_hand_tcp", POSE))
    assert live.step().seconds >= 0.0


def test_the_line_of_a_batch_gives_no_rate_before_the_clock_has_moved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 12.0)
    line = BatchProgressLine()
    line(0, 100)
    line(100, 100)
    assert capsys.readouterr().err == "100 of 100 rows, 100 %\n"


@pytest.mark.parametrize("tick", [1e-9, 1e-3, 0.016])
def test_a_call_is_repeated_until_its_time_is_known(monkeypatch: pytest.MonkeyPatch, tick: float) -> None:
    """The demo printed 0 us where the clock is coarse."""
    spent = 0.0

    def call() -> None:
        nonlocal spent
        spent += 1e-5

    monkeypatch.setattr(time, "process_time", lambda: spent // tick * tick)
    assert seconds_per_call(call) == pytest.approx(1e-5, rel=0.35)
    assert spent < 0.2


def test_a_call_that_takes_no_time_is_not_repeated_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "process_time", lambda: 5.0)
    calls = itertools.count()
    assert seconds_per_call(lambda: next(calls), max_calls=1000) == 0.0
    assert next(calls) == 1000
