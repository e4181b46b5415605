"""Benchmark runner: run every solver on every task of every robot and record the measurements.

Attempts of a case are timed first and verified afterwards, so that verification does not disturb the timing. Times are
processor times.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from mechanik.comparison.benchmark_cases import (
    TASKS,
    BenchmarkCase,
    CaseSettings,
    make_case,
    make_case_solver,
    max_joint_step,
    start_targets,
)
from mechanik.comparison.benchmark_records import (
    ATTEMPT,
    BRANCH,
    CALL,
    CURVE,
    REFERENCE,
    REFUSED,
    TRACK,
    RecordWriter,
    Trial,
    describe_machine,
    partial_path,
    read_records,
)
from mechanik.comparison.benchmark_robots import ROBOTS, BenchmarkRobot, make_robot, user_robot
from mechanik.comparison.benchmark_verification import CaseVerification, SolutionBranches, verify_solution
from mechanik.comparison.comparison_result import Comparison
from mechanik.errors import InvalidArgument, InvalidOperation, LimitsError, NoClosedForm, StructureError, UnknownName
from mechanik.formats import load
from mechanik.model import Mechanism
from mechanik.processor_clock import thread_clock
from mechanik.solver import METHODS, Solution, Solver
from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt
from mechanik.spatial.array import Array
from mechanik.tiers import KERNEL_MODULES, wait_for_kernels

ComparisonProgress = Callable[[int, int, str], None]
"""Called with the number of finished cases, the number of all cases, and a label of the next case ("" at the end)."""
BAR_WIDTH = 24


class ComparisonProgressBar:
    """Progress bar on one line of a stream (default stderr), with an estimate of the remaining time."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._began = time.monotonic()

    def __call__(self, done: int, total: int, label: str) -> None:
        share = done / total if total else 1.0
        spent = max(0.0, time.monotonic() - self._began)
        left = f"{format_minutes(spent / share - spent)} left" if 0.0 < share < 1.0 else format_minutes(spent)
        filled = round(BAR_WIDTH * share)
        text = f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {done}/{total} {left}  {label}"
        width = max(20, shutil.get_terminal_size().columns - 1)
        self._stream.write(f"\r{text[:width]:<{width}}" + ("\n" if not label else ""))
        self._stream.flush()


def format_minutes(seconds: float) -> str:
    """Format a duration as minutes and seconds, such as `2:05`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def make_progress(progress: bool | ComparisonProgress | None) -> ComparisonProgress:
    """Return the progress callback: a bar for True, a no-op for False, a bar for None if stderr is a terminal."""
    if callable(progress):
        return progress
    shown = sys.stderr is not None and sys.stderr.isatty() if progress is None else progress  # pyright: ignore[reportUnnecessaryComparison]
    return ComparisonProgressBar() if shown else _silent


def _silent(done: int, total: int, label: str) -> None:
    """Show nothing."""


TIME_LIMIT_SHARE = 0.95
"""Share of the remaining time that a solver gets as its time limit, so that it returns before the budget ends."""
JUMP_RATIO = 5.0
"""A joint step larger than this multiple of the largest reference step of the path counts as a jump."""
MIN_TARGETS = 3
"""Minimum number of targets per solver, even if it is slow."""
CURVE_TARGETS = 12
"""Number of targets for the median convergence curve; unsolved ones are dropped if the solver solves any."""
CURVE_SECONDS, CURVE_POINTS = 0.2, 24
"""Time limit for all curves of a case, s; and the maximum number of points of a curve."""
IDLE_CALLS = 7
REFERENCE_RESTARTS = 30


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Time limits and random seed of a case.

    Attributes:
        budget: s of processor time for a target, with as many attempts as fit.
        max_attempt_seconds: s of processor time for an attempt; longer attempts count as failed.
        patience: s of wall time for a solver on a case; after that, the remaining targets are skipped.
        seed: random seed of the solvers.
    """

    budget: float
    max_attempt_seconds: float
    patience: float
    seed: int


@dataclass(slots=True)
class AttemptResult:
    """Result of an attempt, before its verification.

    Attributes:
        q: solution, (nq,).
        seconds: processor time.
        claimed: whether the solver reported success in time.
        iterations, status: of the solution.
        note: error message, if the solver raised an exception.
    """

    q: Array
    seconds: float
    claimed: bool
    iterations: int = 0
    status: str = ""
    note: str = ""


def run_case(
    case: BenchmarkCase, solver: str, settings: CaseSettings, time_limits: TimeLimits, branches: SolutionBranches
) -> list[Trial]:
    """Run a solver on a case; returns its records, or a single record with the reason why it cannot run."""
    about: dict[str, Any] = {"robot": case.robot.name, "task": case.task, "solver": solver}
    try:
        prepared = make_case_solver(case, solver)
        runner = CaseRunner(case, prepared, time_limits)
        runner.warm_up()
    except (InvalidOperation, NoClosedForm) as error:
        return [Trial(kind=REFUSED, note=f"refuses: {error}", **about)]
    except ImportError as error:  # an optional dependency is not installed
        return [Trial(kind=REFUSED, note=f"cannot be loaded: {error}", **about)]
    except Exception as error:
        return [Trial(kind=REFUSED, note=f"fails: {type(error).__name__}: {error}", **about)]
    at, curve = runner.convergence_curve()
    trials = [Trial(kind=CURVE, curve_at=at, curve=curve, **about)] if curve else []
    trials.append(Trial(kind=CALL, seconds=runner.time_idle_call(), **about))
    if case.path_index:
        return trials + list(_track(runner, settings, about))
    trials += list(_attempts(runner, settings, about))
    return trials + list(_branches(runner, settings, branches, about))


def reference_distances(case: BenchmarkCase, settings: CaseSettings, seconds: float) -> list[Trial]:
    """Return records with the least distances to targets out of reach, found by the default solver from many starts.

    Args:
        seconds: wall time after which no further start is tried.
    """
    about: dict[str, Any] = {"robot": case.robot.name, "task": case.task, "solver": ""}
    solver, least = make_case_solver(case, "lm"), dict[int, float]()
    begun = time.perf_counter()
    for k in range(1 + REFERENCE_RESTARTS):
        for number, target in enumerate(case.targets):
            if time.perf_counter() - begun > seconds:
                break
            start = case.restarts[k - 1] if k else case.starts[number]
            distance = _held(verify_solution(case, settings, number, solver.solve(target, np.array(start)).q))
            least[number] = min(least.get(number, np.inf), distance)
    return [Trial(kind=REFERENCE, target=number, distance=distance, **about) for number, distance in least.items()]


class CaseRunner:
    """Timed calls of a solver on the targets of a case, through the public `Solver.solve`.

    Attributes:
        case, solver, time_limits: arguments of the constructor.
        is_compiled: whether the solver is the default method, which runs without a time limit.
        start_time: wall clock at the end of `warm_up`, s.
    """

    def __init__(self, case: BenchmarkCase, solver: Solver, time_limits: TimeLimits) -> None:
        self.case, self.solver, self.time_limits = case, solver, time_limits
        # the default method runs in compiled code from start to end: a time limit would slow it down more than it saves
        self.is_compiled = isinstance(solver.method, LevenbergMarquardt)
        self.start_time = time.perf_counter()

    def warm_up(self) -> None:
        """Load all kernels before the timing starts; raises the exception of a solver that cannot run the case."""
        for _ in range(2):
            self.attempt(0, self.case.starts[0], raises=True)
        self.start_time = time.perf_counter()

    def is_out_of_time(self, share: float = 1.0) -> bool:
        return time.perf_counter() - self.start_time > share * self.time_limits.patience

    def attempt(self, number: int, start: Array, left: float = np.inf, raises: bool = False) -> AttemptResult:
        """Solve for a target from a start.

        Args:
            number: index of the target.
            start: (nq,).
            left: time limit, s.
            raises: whether to raise exceptions of the solver; else they are recorded as failed attempts.
        """
        options = self._options(number, min(left, self.time_limits.max_attempt_seconds))
        q0, target = np.array(start), self.case.targets[number]
        begun = thread_clock()
        try:
            solution: Solution = self.solver.solve(target, q0, **options)
        except Exception as error:
            if raises:
                raise
            spent = max(0.0, thread_clock() - begun)
            return AttemptResult(q0, spent, False, status="ERROR", note=f"{type(error).__name__}: {error}")
        spent = max(0.0, thread_clock() - begun)
        claimed = solution.success and spent <= self.time_limits.max_attempt_seconds
        return AttemptResult(solution.q, spent, claimed, solution.iterations, solution.status.name)

    def convergence_curve(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return iteration numbers, and the median error after them, over the solved targets (or all, if none is).

        The error of a target is the least so far; a finished solve keeps its last error.
        """
        exercise, histories, solved = self.case, list[Array](), list[bool]()
        begun = time.perf_counter()
        for number in range(min(CURVE_TARGETS, len(exercise.targets))):
            if time.perf_counter() - begun > CURVE_SECONDS:
                break
            options = self._options(number, self.time_limits.max_attempt_seconds)
            try:
                solution = self.solver.solve(
                    exercise.targets[number], np.array(exercise.starts[number]), history=True, **options
                )
            except Exception:  # recorded by the attempts
                continue
            if solution.history is not None and len(solution.history):
                histories.append(np.asarray(solution.history, dtype=np.float64))
                solved.append(solution.success)
        if not histories:
            return (), ()
        if any(solved):
            histories = [history for history, yes in zip(histories, solved, strict=True) if yes]
        longest = max(map(len, histories))
        filled = np.array(
            [np.concatenate([history, np.full(longest - len(history), history[-1])]) for history in histories]
        )
        filled = np.minimum.accumulate(np.where(np.isfinite(filled), filled, np.inf), axis=1)
        at = np.unique(np.round(np.geomspace(1, longest, CURVE_POINTS)).astype(int))
        error = np.median(filled, axis=0)[at - 1]
        return tuple(map(float, at)), tuple(map(float, error))

    def time_idle_call(self) -> float:
        """Return the time of a call whose target is already met, s: the Python overhead around the iterations.

        It is the median of `IDLE_CALLS` calls; NaN if the solver raises an exception.
        """
        target, q0, spent = start_targets(self.case), np.array(self.case.starts[0]), list[float]()
        for _ in range(IDLE_CALLS):
            options = self._options(0, self.time_limits.max_attempt_seconds)
            begun = thread_clock()
            try:
                self.solver.solve(target, q0, **options)
            except Exception:  # recorded by the attempts
                return np.nan
            spent.append(max(0.0, thread_clock() - begun))
        return float(np.median(spent))

    def _options(self, number: int, seconds: float) -> dict[str, Any]:
        if self.is_compiled:
            return {}
        return {"max_seconds": max(seconds, 0.0), "rng": np.random.default_rng([self.time_limits.seed, number])}


def _attempts(runner: CaseRunner, sizes: CaseSettings, about: dict[str, Any]) -> Iterator[Trial]:
    exercise, budget = runner.case, runner.time_limits.budget
    runs: list[list[AttemptResult]] = []
    hasty: dict[
        int, AttemptResult
    ] = {}  # for targets out of reach: further attempts of slow solvers, stopped at the end of the budget
    for number in range(len(exercise.targets)):
        if number >= MIN_TARGETS and runner.is_out_of_time():
            break
        answers = [runner.attempt(number, exercise.starts[number])]
        spent = answers[0].seconds
        while not answers[-1].claimed and spent < budget and not runner.is_out_of_time(2.0):
            start = exercise.restarts[(len(answers) - 1) % len(exercise.restarts)]
            answers.append(runner.attempt(number, start, TIME_LIMIT_SHARE * (budget - spent)))
            spent += answers[-1].seconds
        if not exercise.is_reachable and answers[0].seconds > budget:
            hasty[number] = runner.attempt(number, exercise.starts[number], TIME_LIMIT_SHARE * budget)
        runs.append(answers)
    for number, answers in enumerate(runs):
        first = answers[0]
        spent = sum(attempt.seconds for attempt in answers)
        verdict = verify_solution(exercise, sizes, number, first.q)
        inside = np.cumsum([attempt.seconds for attempt in answers]) <= budget
        if exercise.is_reachable:
            last = verdict if len(answers) == 1 else verify_solution(exercise, sizes, number, answers[-1].q)
            nearest, arrived = last.distance, answers[-1].claimed and last.success and bool(inside[-1])
        else:  # no attempt succeeds, so the closest of all attempts counts
            in_budget = [answer for answer, fits in zip(answers, inside, strict=True) if fits]
            if number in hasty and hasty[number].seconds <= budget:
                in_budget.append(hasty[number])
            distances = [_held(verify_solution(exercise, sizes, number, attempt.q)) for attempt in in_budget]
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


def _track(runner: CaseRunner, sizes: CaseSettings, about: dict[str, Any]) -> Iterator[Trial]:
    exercise, pace = runner.case, runner.time_limits
    answers: list[AttemptResult] = []
    befores: list[Array] = []
    q = exercise.starts[0]
    for number, path in enumerate(exercise.path_index):
        if number >= MIN_TARGETS and runner.is_out_of_time():
            break
        if number == 0 or path != exercise.path_index[number - 1]:
            q = exercise.starts[number]
        befores.append(q)
        answers.append(runner.attempt(number, q))
        if np.isfinite(answers[-1].q).all():
            q = answers[-1].q
    for number, (answer, before) in enumerate(zip(answers, befores, strict=True)):
        verdict = verify_solution(exercise, sizes, number, answer.q)
        finite = bool(np.isfinite(answer.q).all())
        step = float(max_joint_step(exercise.robot, before, answer.q)) if finite else np.inf
        yield Trial(
            kind=TRACK,
            target=number,
            in_budget=answer.claimed and verdict.success and answer.seconds <= pace.budget,
            budget_seconds=answer.seconds,
            attempts=1,
            budget_distance=verdict.distance,
            step=step,
            jumped=step > JUMP_RATIO * exercise.reference_step[exercise.path_index[number]],
            **_facts(answer, verdict),
            **about,
        )


def _branches(
    runner: CaseRunner, sizes: CaseSettings, branches: SolutionBranches, about: dict[str, Any]
) -> Iterator[Trial]:
    """Yield records of solutions from many starts, for targets with finitely many solutions."""
    exercise = runner.case
    for number in branches.targets:
        for k, start in enumerate(exercise.restarts[: sizes.branch_starts]):
            if runner.is_out_of_time(1.5):
                return
            answer = runner.attempt(number, start)
            verdict = verify_solution(exercise, sizes, number, answer.q)
            success = answer.claimed and verdict.success
            branch = branches.branch_index(number, answer.q) if success else -1
            yield Trial(kind=BRANCH, target=number, start=k + 1, branch=branch, **_facts(answer, verdict), **about)


def _facts(answer: AttemptResult, verdict: CaseVerification) -> dict[str, Any]:
    return {
        "claimed": answer.claimed,
        "verified": answer.claimed and verdict.success,
        "seconds": answer.seconds,
        "iterations": answer.iterations,
        "status": answer.status,
        "position": verdict.position,
        "rotation": verdict.rotation,
        "distance": _held(verdict),
        "gap": verdict.closure_error,
        "violation": verdict.limit_violation,
        "note": answer.note,
    }


def _held(verdict: CaseVerification) -> float:
    return verdict.distance if verdict.constraints_met else np.inf


MechanismOrFile = Mechanism | str | Path


@dataclass(frozen=True, slots=True)
class ComparisonSettings:
    """Settings of a comparison, written to the header of the records.

    Attributes:
        targets: number of targets of each task.
        budget: s of processor time for a target.
        longest: s of processor time for an attempt.
        patience: s of wall time for a solver on a task of a robot.
        tolerance, angle_tolerance: m and rad.
        branch_targets, branch_starts: number of targets that are searched for branches, and of starts for each.
        seed: random seed.
    """

    targets: int
    budget: float
    longest: float
    patience: float
    tolerance: float
    angle_tolerance: float
    branch_targets: int
    branch_starts: int
    seed: int


TIMED_KERNELS = tuple(name for name in KERNEL_MODULES if not name.startswith(("planning.", "tracking.", "distance.")))
"""Kernel modules of all solver methods; they must be compiled before the timing."""
FULL_PRESET = {"targets": 100, "patience": 2.0, "branch_targets": 2, "branch_starts": 24}
QUICK_PRESET = {"targets": 8, "patience": 0.25, "branch_targets": 1, "branch_starts": 8}


def compare(
    mechanisms: MechanismOrFile | Iterable[MechanismOrFile] | None = None,
    *,
    solvers: str | Iterable[str] | None = None,
    robots: str | Iterable[str] | None = None,
    tasks: str | Iterable[str] | None = None,
    link: str | Iterable[str] = (),
    targets: int | None = None,
    budget: float = 0.02,
    tolerance: float = 1e-4,
    angle_tolerance: float = 1e-3,
    patience: float | None = None,
    seed: int = 0,
    quick: bool = False,
    csv: str | Path | None = None,
    resume: bool = False,
    progress: bool | ComparisonProgress | None = None,
    command: str = "",
) -> Comparison:
    """Compare solvers on the same targets, starts, tolerances and seeds.

    A success is verified independently by forward kinematics: the solver reports success, the tip links are at their
    targets, the joints are within their limits, and the loops are closed. Ctrl-C ends the comparison early and returns
    the results so far.

    Args:
        mechanisms: your own mechanisms, or their files, instead of the built-in robots. The built-in robots that
            `robots` names are added.
        solvers: names of methods. None: all of `METHODS`.
        robots: names of built-in robots: 3r_planar, 5r_seed, 6r_wrist, 6r_general, 7r, 10r_seed, 30r, 100r, prismatic,
            two_hands, closed_loop. None: all, or none with `mechanisms`.
        tasks: point, direction (position and direction), pose, tight_limits, near_singular, out_of_reach, path. None:
            all.
        link: name or names of the links of your mechanisms that shall reach targets. Default: the tip link.
        targets: number of targets of each task. None: 100, or 8 with `quick`.
        budget: s of processor time for a target, with as many attempts as fit. The first attempt may take 5 budgets,
            or 0.1 s if that is more.
        tolerance, angle_tolerance: m and rad; errors up to these count as reached, also for loops.
        patience: s for a solver on a task of a robot. A slower solver gets fewer targets, but at least 3; the table
            shows how many. None: 2, or 0.25 with `quick`.
        seed: random seed of targets, starts and solvers.
        quick: use fewer targets and less patience.
        csv: file for the records. They are written to a partial file beside it until the comparison is complete.
        resume: whether to continue an interrupted comparison from the records in `csv` or its partial file.
        progress: True: a bar on stderr; False: none; None: a bar if stderr is a terminal; or a function that takes
            (number of finished cases, number of cases, label).
        command: command line of the call, for the report.

    Returns:
        The comparison; `is_complete` is False if it was interrupted.

    Raises:
        UnknownName: a solver, robot, task or link does not exist.
        LimitsError: a number is not positive.
        InvalidArgument: `mechanisms` holds other objects, or `resume` is given without `csv`.
        StructureError: the records in `csv` have other settings, or a mechanism has no dofs.
        CannotSave: the records cannot be written.

    Example:
        >>> result = mk.compare(robots="3r_planar", solvers="lm", tasks="point", targets=3, quick=True, progress=False)
        >>> row = result.row("lm", "3r_planar", "point")
        >>> row.trials, row.false_claims
        (3, 0)
    """
    usual = QUICK_PRESET if quick else FULL_PRESET
    settings = ComparisonSettings(
        targets=int(usual["targets"]) if targets is None else _whole("targets", targets),
        budget=_positive("budget", budget),
        longest=max(0.1, 5 * budget),
        patience=float(usual["patience"]) if patience is None else _positive("patience", patience),
        tolerance=_positive("tolerance", tolerance),
        angle_tolerance=_positive("angle_tolerance", angle_tolerance),
        branch_targets=int(usual["branch_targets"]),
        branch_starts=int(usual["branch_starts"]),
        seed=seed,
    )
    chosen = _robots(mechanisms, robots, link)
    names = _names("solver", solvers, METHODS)
    task_names = _names("task", tasks, TASKS)
    about = {"settings": asdict(settings), "machine": describe_machine(), "command": command}
    about["titles"] = {robot.name: robot.title for robot in chosen}
    earlier_trials = _trials_to_resume(csv, settings, names) if resume else []
    wait_for_kernels(*TIMED_KERNELS, what="a comparison")
    recorder = None if csv is None else RecordWriter(csv, about)
    trials, finished = list(earlier_trials), False
    try:
        if recorder is not None:
            recorder.write(earlier_trials)
        for group in _groups(chosen, task_names, names, settings, make_progress(progress), earlier_trials):
            trials += group
            if recorder is not None:
                recorder.write(group)
        finished = True
        if recorder is not None:
            recorder.finish()
    except KeyboardInterrupt:
        pass
    finally:
        if recorder is not None:
            recorder.close()
    return Comparison(trials, about, is_complete=finished)


def _groups(
    robots: Sequence[BenchmarkRobot],
    tasks: Sequence[str],
    solvers: Sequence[str],
    settings: ComparisonSettings,
    progress: ComparisonProgress,
    earlier_trials: Sequence[Trial],
) -> Iterable[list[Trial]]:
    """Yield the records of each case and solver; before them the reference records of a task out of reach."""
    sizes = CaseSettings(
        settings.targets, settings.branch_targets, settings.branch_starts, settings.tolerance, settings.angle_tolerance
    )
    pace = TimeLimits(settings.budget, settings.longest, settings.patience, settings.seed)
    finished_groups = {(trial.robot, trial.task) for trial in earlier_trials}
    done, total = 0, len(robots) * len(tasks) * len(solvers)
    for robot in robots:
        for task in tasks:
            if (robot.name, task) in finished_groups:
                done += len(solvers)
                continue
            progress(done, total, f"{robot.title}, {task}: targets")
            exercise = make_case(robot, task, settings.seed, sizes)
            branches = SolutionBranches(exercise, sizes.branch_targets)
            if not exercise.is_reachable:
                yield reference_distances(exercise, sizes, 2 * settings.patience)
            for solver in solvers:
                progress(done, total, f"{robot.title}, {task}, {solver}")
                yield run_case(exercise, solver, sizes, pace, branches)
                done += 1
    progress(done, total, "")


def _trials_to_resume(csv: str | Path | None, settings: ComparisonSettings, solvers: Sequence[str]) -> list[Trial]:
    """Read the records of an earlier run, for the tasks that all solvers finished.

    Unfinished tasks are dropped, since branches and least distances depend on all solvers of a task.
    """
    if csv is None:
        raise InvalidArgument("to go on with an interrupted comparison, name the file of its records: csv=...")
    path = Path(csv)
    part = partial_path(path)
    if not part.exists() and not path.exists():
        return []
    trials, about = read_records(part, is_part=True) if part.exists() else read_records(path)
    if about.get("settings") != asdict(settings):
        raise StructureError(
            f"{csv} holds a comparison with other settings, {about.get('settings')}; finish it with these, or "
            "leave resume out to begin anew"
        )
    last = trials[-1].case_key if trials and part.exists() else None  # its records may be incomplete
    done: dict[tuple[str, str], set[str]] = {}
    for trial in trials:
        if trial.kind != REFERENCE and trial.case_key != last:
            done.setdefault((trial.robot, trial.task), set()).add(trial.solver)
    whole = {key for key, solver_names in done.items() if set(solvers) <= solver_names}
    return [trial for trial in trials if (trial.robot, trial.task) in whole and (trial.solver in (*solvers, ""))]


def _robots(
    mechanisms: MechanismOrFile | Iterable[MechanismOrFile] | None,
    robots: str | Iterable[str] | None,
    link: str | Iterable[str],
) -> list[BenchmarkRobot]:
    links = [link] if isinstance(link, str) else list(link)
    given = [mechanisms] if isinstance(mechanisms, MechanismOrFile) else list(mechanisms or ())
    built_in = _names("robot to compare on", robots, ROBOTS) if robots is not None or not given else []
    chosen = [make_robot(name) for name in built_in]
    for item in given:
        if not isinstance(item, MechanismOrFile):
            raise InvalidArgument(f"a mechanism to compare on, or a file of one, is needed; not {item!r}")
        mechanism = item if isinstance(item, Mechanism) else load(item)
        chosen.append(user_robot(mechanism, links, [robot.name for robot in chosen]))
    return chosen


def _names(kind: str, given: str | Iterable[str] | None, known: Iterable[str]) -> list[str]:
    names = list(known) if given is None else [given] if isinstance(given, str) else list(dict.fromkeys(given))
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known)
    return names


def _whole(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise LimitsError(f"{name} must be a whole number of 1 or more, not {value!r}")
    return value


def _positive(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise LimitsError(f"{name} must be a number above 0, not {value!r}")
    return float(value)
