"""One solver on one exercise: everything that is measured of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.comparison.branches import Branches
from mechanik.comparison.judge import Verdict, judge
from mechanik.comparison.tasks import Exercise, Sizes, make_solver, nothing_to_do, step_size
from mechanik.comparison.trial import ATTEMPT, BRANCH, CALL, CURVE, REFERENCE, REFUSED, TRACK, Trial
from mechanik.errors import NoClosedForm, Refused
from mechanik.ik import Solver
from mechanik.solvers import Solution
from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
from mechanik.spatial.array import Array
from mechanik.stopwatch import fine_time

IN_TIME = 0.95
"""The share of the time that is left which a solver is told of, so that it comes back before the time is over."""
JUMP = 5.0
"""A step this many times the largest one of the path's own joint values is a jump."""
AT_LEAST = 3
"""Targets that a solver gets however slow it is."""
LOOKED_AT = 12
"""Targets over which the median curve of convergence is taken; of those the solver solves, if it solves any."""
CURVE_SECONDS, CURVE_POINTS = 0.2, 24
"""For all of them together; and how many numbers are kept of a curve."""
IDLE_CALLS = 7
REFERENCE_RESTARTS = 30


@dataclass(frozen=True, slots=True)
class Pace:
    """
    Attributes:
        budget: s, for one target, with as many attempts as fit.
        longest: s, of one attempt; what takes longer has failed.
        patience: s, for a solver on a task of a robot; when it is used up, the targets that are left are not tried.
        seed: of all that is random in solvers.
    """

    budget: float
    longest: float
    patience: float
    seed: int


@dataclass(slots=True)
class Answer:
    """One attempt, not judged yet; `seconds` are processor time. Judging waits until all are timed, so that it disturbs
    nothing."""

    q: Array
    seconds: float
    claimed: bool
    iterations: int = 0
    status: str = ""
    note: str = ""


def run_cell(exercise: Exercise, solver: str, sizes: Sizes, pace: Pace, branches: Branches) -> list[Trial]:
    """All trials of a solver, or a single record that says why there are none."""
    about: dict[str, Any] = {"robot": exercise.robot.name, "task": exercise.task, "solver": solver}
    try:
        prepared = make_solver(exercise, solver)
        runner = Runner(exercise, prepared, pace)
        runner.warm_up()
    except (Refused, NoClosedForm) as error:
        return [Trial(kind=REFUSED, note=f"refuses: {error}", **about)]
    except ImportError as error:  # an optional part that is not installed
        return [Trial(kind=REFUSED, note=f"cannot be loaded: {error}", **about)]
    except Exception as error:
        return [Trial(kind=REFUSED, note=f"fails: {type(error).__name__}: {error}", **about)]
    at, curve = runner.curve()
    trials = [Trial(kind=CURVE, curve_at=at, curve=curve, **about)] if curve else []
    trials.append(Trial(kind=CALL, seconds=runner.idle_call(), **about))
    if exercise.path:
        return trials + list(_track(runner, sizes, about))
    trials += list(_attempts(runner, sizes, about))
    return trials + list(_branches(runner, sizes, branches, about))


def reference(exercise: Exercise, sizes: Sizes, seconds: float) -> list[Trial]:
    """The least distances that a search by the default solver from many starts knows, where targets are out of reach.

    Args:
        seconds: after which no further start is tried.
    """
    about: dict[str, Any] = {"robot": exercise.robot.name, "task": exercise.task, "solver": ""}
    solver, least = make_solver(exercise, "lm"), dict[int, float]()
    begun = time.perf_counter()
    for k in range(1 + REFERENCE_RESTARTS):
        for number, target in enumerate(exercise.targets):
            if time.perf_counter() - begun > seconds:
                break
            start = exercise.further[k - 1] if k else exercise.starts[number]
            distance = _held(judge(exercise, sizes, number, solver.solve(target, np.array(start)).q))
            least[number] = min(least.get(number, np.inf), distance)
    return [Trial(kind=REFERENCE, target=number, distance=far, **about) for number, far in least.items()]


class Runner:
    """Calls a solver as a user would, with a clock in hand."""

    def __init__(self, exercise: Exercise, solver: Solver, pace: Pace) -> None:
        self.exercise, self.solver, self.pace = exercise, solver, pace
        # the default method runs compiled from start to end: a clock inside would slow it down more than it saves
        self.is_compiled = isinstance(solver.method, LevenbergMarquardt)
        self.began = time.perf_counter()

    def warm_up(self) -> None:
        """Compile what is not compiled yet, before the clock runs; what is refused is refused here."""
        for _ in range(2):
            self.attempt(0, self.exercise.starts[0], raises=True)
        self.began = time.perf_counter()

    def is_over(self, share: float = 1.0) -> bool:
        return time.perf_counter() - self.began > share * self.pace.patience

    def attempt(self, number: int, start: Array, left: float = np.inf, raises: bool = False) -> Answer:
        """One attempt from a start, within the seconds that are left."""
        options = self._options(number, min(left, self.pace.longest))
        q0, target = np.array(start), self.exercise.targets[number]
        begun = fine_time()
        try:
            solution: Solution = self.solver.solve(target, q0, **options)
        except Exception as error:
            if raises:
                raise
            spent = max(0.0, fine_time() - begun)
            return Answer(q0, spent, False, status="ERROR", note=f"{type(error).__name__}: {error}")
        spent = max(0.0, fine_time() - begun)
        claimed = solution.success and spent <= self.pace.longest
        return Answer(solution.q, spent, claimed, solution.iterations, solution.status.name)

    def curve(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Some numbers of iterations, and the median error after them, over targets that were reached, if any were.

        It is the least error so far of each; what has ended keeps its last.
        """
        exercise, histories, solved = self.exercise, list[Array](), list[bool]()
        begun = time.perf_counter()
        for number in range(min(LOOKED_AT, len(exercise.targets))):
            if time.perf_counter() - begun > CURVE_SECONDS:
                break
            options = self._options(number, self.pace.longest)
            try:
                solution = self.solver.solve(
                    exercise.targets[number], np.array(exercise.starts[number]), history=True, **options
                )
            except Exception:  # the attempts tell
                continue
            if solution.history is not None and len(solution.history):
                histories.append(np.asarray(solution.history, dtype=np.float64))
                solved.append(solution.success)
        if not histories:
            return (), ()
        if any(solved):
            histories = [one for one, yes in zip(histories, solved, strict=True) if yes]
        longest = max(map(len, histories))
        filled = np.array([np.concatenate([one, np.full(longest - len(one), one[-1])]) for one in histories])
        filled = np.minimum.accumulate(np.where(np.isfinite(filled), filled, np.inf), axis=1)
        at = np.unique(np.round(np.geomspace(1, longest, CURVE_POINTS)).astype(int))
        error = np.median(filled, axis=0)[at - 1]
        return tuple(map(float, at)), tuple(map(float, error))

    def idle_call(self) -> float:
        """Seconds of a call that finds nothing to do: what Python takes around the iterations, median of some."""
        target, q0, spent = nothing_to_do(self.exercise), np.array(self.exercise.starts[0]), list[float]()
        for _ in range(IDLE_CALLS):
            options = self._options(0, self.pace.longest)
            begun = fine_time()
            try:
                self.solver.solve(target, q0, **options)
            except Exception:  # the attempts tell
                return np.nan
            spent.append(max(0.0, fine_time() - begun))
        return float(np.median(spent))

    def _options(self, number: int, seconds: float) -> dict[str, Any]:
        if self.is_compiled:
            return {}
        return {"max_seconds": max(seconds, 0.0), "rng": np.random.default_rng([self.pace.seed, number])}


def _attempts(runner: Runner, sizes: Sizes, about: dict[str, Any]) -> Iterator[Trial]:
    exercise, budget = runner.exercise, runner.pace.budget
    runs: list[list[Answer]] = []
    hasty: dict[int, Answer] = {}  # out of reach nothing is ever done, so a slow solver is stopped to see how far it is
    for number in range(len(exercise.targets)):
        if number >= AT_LEAST and runner.is_over():
            break
        answers = [runner.attempt(number, exercise.starts[number])]
        spent = answers[0].seconds
        while not answers[-1].claimed and spent < budget and not runner.is_over(2.0):
            start = exercise.further[(len(answers) - 1) % len(exercise.further)]
            answers.append(runner.attempt(number, start, IN_TIME * (budget - spent)))
            spent += answers[-1].seconds
        if not exercise.is_reachable and answers[0].seconds > budget:
            hasty[number] = runner.attempt(number, exercise.starts[number], IN_TIME * budget)
        runs.append(answers)
    for number, answers in enumerate(runs):
        first = answers[0]
        spent = sum(one.seconds for one in answers)
        verdict = judge(exercise, sizes, number, first.q)
        inside = np.cumsum([one.seconds for one in answers]) <= budget
        if exercise.is_reachable:
            last = verdict if len(answers) == 1 else judge(exercise, sizes, number, answers[-1].q)
            nearest, arrived = last.distance, answers[-1].claimed and last.success and bool(inside[-1])
        else:  # no answer is the last one, so all have to be looked at
            kept = [answer for answer, fits in zip(answers, inside, strict=True) if fits]
            if number in hasty and hasty[number].seconds <= budget:
                kept.append(hasty[number])
            distances = [_held(judge(exercise, sizes, number, one.q)) for one in kept]
            nearest, arrived = min(distances, default=np.inf), False
        yield Trial(
            kind=ATTEMPT,
            target=number,
            start=0,
            in_budget=arrived,
            budget_seconds=spent,
            attempts=len(answers),
            budget_distance=nearest,
            **_facts(first, verdict),
            **about,
        )


def _track(runner: Runner, sizes: Sizes, about: dict[str, Any]) -> Iterator[Trial]:
    exercise, pace = runner.exercise, runner.pace
    answers: list[Answer] = []
    befores: list[Array] = []
    q = exercise.starts[0]
    for number, path in enumerate(exercise.path):
        if number >= AT_LEAST and runner.is_over():
            break
        if number == 0 or path != exercise.path[number - 1]:
            q = exercise.starts[number]
        befores.append(q)
        answers.append(runner.attempt(number, q))
        if np.isfinite(answers[-1].q).all():
            q = answers[-1].q
    for number, (answer, before) in enumerate(zip(answers, befores, strict=True)):
        verdict = judge(exercise, sizes, number, answer.q)
        finite = bool(np.isfinite(answer.q).all())
        step = float(step_size(exercise.robot, before, answer.q)) if finite else np.inf
        yield Trial(
            kind=TRACK,
            target=number,
            in_budget=answer.claimed and verdict.success and answer.seconds <= pace.budget,
            budget_seconds=answer.seconds,
            attempts=1,
            budget_distance=verdict.distance,
            step=step,
            jumped=step > JUMP * exercise.usual_step[exercise.path[number]],
            **_facts(answer, verdict),
            **about,
        )


def _branches(runner: Runner, sizes: Sizes, branches: Branches, about: dict[str, Any]) -> Iterator[Trial]:
    """Answers from many starts, where there are finitely many of them."""
    exercise = runner.exercise
    for number in branches.targets:
        for k, start in enumerate(exercise.further[: sizes.branch_starts]):
            if runner.is_over(1.5):
                return
            answer = runner.attempt(number, start)
            verdict = judge(exercise, sizes, number, answer.q)
            success = answer.claimed and verdict.success
            branch = branches.number(number, answer.q) if success else -1
            yield Trial(kind=BRANCH, target=number, start=k + 1, branch=branch, **_facts(answer, verdict), **about)


def _facts(answer: Answer, verdict: Verdict) -> dict[str, Any]:
    return {
        "claimed": answer.claimed,
        "verified": answer.claimed and verdict.success,
        "seconds": answer.seconds,
        "iterations": answer.iterations,
        "status": answer.status,
        "position": verdict.position,
        "rotation": verdict.rotation,
        "distance": _held(verdict),
        "gap": verdict.gap,
        "violation": verdict.violation,
        "note": answer.note,
    }


def _held(verdict: Verdict) -> float:
    return verdict.distance if verdict.holds else np.inf
