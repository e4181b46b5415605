"""Benchmark runner: run every solver on every task of every robot and record the measurements.

The attempts on the targets of a case are timed before any of them is verified, so that verification does not disturb
the timing. Only the attempts that search for branches are each verified before the next attempt. Recorded times are
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
    TRACK,
    UNSUPPORTED,
    BenchmarkRecord,
    RecordWriter,
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
from mechanik.spatial.array import Array
from mechanik.tiers import KERNEL_MODULES, wait_for_kernels

ComparisonProgress = Callable[[int, int, str], None]
"""Function of the number of finished runs, the number of all runs, and a label of the next run ("" at the end).

A run is a solver on a task of a robot."""
BAR_WIDTH = 24
"""Width of the progress bar in characters."""


class ComparisonProgressBar:
    """Progress bar on one line of a stream (default stderr), with an estimate of the remaining time."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._start_time = time.monotonic()

    def __call__(self, finished_count: int, run_count: int, label: str) -> None:
        share = finished_count / run_count if run_count else 1.0
        seconds = max(0.0, time.monotonic() - self._start_time)
        time_text = (
            f"{format_minutes(seconds / share - seconds)} left" if 0.0 < share < 1.0 else format_minutes(seconds)
        )
        filled_width = round(BAR_WIDTH * share)
        bar = f"[{'#' * filled_width}{'.' * (BAR_WIDTH - filled_width)}]"
        text = f"{bar} {finished_count}/{run_count} {time_text}  {label}"
        width = max(20, shutil.get_terminal_size().columns - 1)
        self._stream.write(f"\r{text[:width]:<{width}}" + ("\n" if not label else ""))
        self._stream.flush()


def format_minutes(seconds: float) -> str:
    """Format a duration as minutes and seconds, such as `2:05`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def make_progress(progress: bool | ComparisonProgress | None) -> ComparisonProgress:
    """Return the progress function: a bar for True, no output for False, a bar for None if stderr is a terminal.

    A function is returned unchanged.
    """
    if callable(progress):
        return progress
    is_shown = sys.stderr is not None and sys.stderr.isatty() if progress is None else progress  # pyright: ignore[reportUnnecessaryComparison]
    return ComparisonProgressBar() if is_shown else _show_nothing


def _show_nothing(finished_count: int, run_count: int, label: str) -> None:
    """Show no progress."""


TIME_LIMIT_SHARE = 0.95
"""Time limit of an attempt, as a fraction of the remaining budget; below 1, so that the solver returns before the
budget ends."""
JUMP_RATIO = 5.0
"""A joint step larger than this multiple of the largest reference step of the path counts as a jump."""
MIN_TARGET_COUNT = 3
"""Number of targets that every solver tries, even if this takes longer than `patience`."""
CURVE_TARGET_COUNT = 12
"""Largest number of targets for the median convergence curve. Unsolved targets are ignored, unless no target is solved.
"""
CURVE_SECONDS, MAX_CURVE_POINT_COUNT = 0.2, 24
"""Wall time after which no further target is solved for the curve, s; and the largest number of points of a curve."""
IDLE_CALL_COUNT = 7
"""Number of calls whose target is already met; the median of their times is recorded."""
REFERENCE_RESTART_COUNT = 30
"""Number of further starts in the search for the smallest distance to a target out of reach."""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Time limits and random seed of a case.

    Attributes:
        budget: s of processor time for all attempts on a target.
        max_attempt_seconds: s of processor time for an attempt; longer attempts count as failed.
        patience: s of wall time for a solver on a case; after this time the remaining targets are skipped, except the
            first MIN_TARGET_COUNT.
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
        q: solution, (nq,); the start if the solver raised an exception.
        seconds: processor time, s.
        reported_success: whether the solver reported success within `max_attempt_seconds`.
        iterations, status: iterations and status of the solution.
        note: error message if the solver raised an exception.
    """

    q: Array
    seconds: float
    reported_success: bool
    iterations: int = 0
    status: str = ""
    note: str = ""


def run_case(
    case: BenchmarkCase, solver: str, settings: CaseSettings, time_limits: TimeLimits, branches: SolutionBranches
) -> list[BenchmarkRecord]:
    """Run a solver on a case and return the records, or a single record with the reason why the solver cannot run.

    Args:
        solver: name of the method.
        branches: the known branches of the case; new branches are added.
    """
    case_names: dict[str, Any] = {"robot": case.robot.name, "task": case.task, "solver": solver}
    try:
        case_solver = make_case_solver(case, solver)
        runner = CaseRunner(case, case_solver, time_limits)
        runner.warm_up()
    except (InvalidOperation, NoClosedForm) as error:
        return [BenchmarkRecord(kind=UNSUPPORTED, note=f"does not support this task: {error}", **case_names)]
    except ImportError as error:  # an optional dependency is not installed
        return [BenchmarkRecord(kind=UNSUPPORTED, note=f"cannot be loaded: {error}", **case_names)]
    except Exception as error:
        return [BenchmarkRecord(kind=UNSUPPORTED, note=f"fails: {type(error).__name__}: {error}", **case_names)]
    iterations, errors = runner.convergence_curve()
    records = (
        [BenchmarkRecord(kind=CURVE, curve_iterations=iterations, curve_errors=errors, **case_names)] if errors else []
    )
    records.append(BenchmarkRecord(kind=CALL, seconds=runner.time_idle_call(), **case_names))
    if case.path_index:
        return records + list(_track_records(runner, settings, case_names))
    records += list(_attempt_records(runner, settings, case_names))
    return records + list(_branch_records(runner, settings, branches, case_names))


def reference_distances(case: BenchmarkCase, settings: CaseSettings, seconds: float) -> list[BenchmarkRecord]:
    """Return records with the smallest distances to targets out of reach, which the default solver finds by restarts.

    Args:
        seconds: wall time after which no further start is tried, s.
    """
    case_names: dict[str, Any] = {"robot": case.robot.name, "task": case.task, "solver": ""}
    solver, least_distances = make_case_solver(case, "lm"), dict[int, float]()
    start_time = time.perf_counter()
    for k in range(1 + REFERENCE_RESTART_COUNT):
        for index, target in enumerate(case.targets):
            if time.perf_counter() - start_time > seconds:
                break
            start = case.restarts[k - 1] if k else case.starts[index]
            distance = _valid_distance(verify_solution(case, settings, index, solver.solve(target, np.array(start)).q))
            least_distances[index] = min(least_distances.get(index, np.inf), distance)
    return [
        BenchmarkRecord(kind=REFERENCE, target=index, distance=distance, **case_names)
        for index, distance in least_distances.items()
    ]


class CaseRunner:
    """Timed calls of a solver on the targets of a case, through the public `Solver.solve`.

    Attributes:
        case, solver, time_limits: as given to the constructor.
        is_default_method: whether the method of the solver is the default method, which runs without a time limit.
        start_time: time of `time.perf_counter` at the end of `warm_up`, s.
    """

    def __init__(self, case: BenchmarkCase, solver: Solver, time_limits: TimeLimits) -> None:
        self.case, self.solver, self.time_limits = case, solver, time_limits
        # the default method is completely compiled; a time limit would cost more time than it saves
        self.is_default_method = solver.method.is_compiled
        self.start_time = time.perf_counter()

    def warm_up(self) -> None:
        """Load all kernels before the timing starts; raises the exception of a solver that cannot run the case."""
        for _ in range(2):
            self.attempt(0, self.case.starts[0], raises_errors=True)
        self.start_time = time.perf_counter()

    def is_out_of_time(self, share: float = 1.0) -> bool:
        """Return whether the wall time since `warm_up` exceeds `share` times the patience."""
        return time.perf_counter() - self.start_time > share * self.time_limits.patience

    def attempt(
        self, index: int, start: Array, max_seconds: float = np.inf, raises_errors: bool = False
    ) -> AttemptResult:
        """Solve for a target from a start.

        Args:
            index: index of the target.
            start: (nq,).
            max_seconds: time limit, s; the limit `max_attempt_seconds` applies as well. The default method ignores both
                and may take longer.
            raises_errors: whether to raise exceptions of the solver; otherwise the result is a failed attempt.
        """
        options = self._options(index, min(max_seconds, self.time_limits.max_attempt_seconds))
        q0, target = np.array(start), self.case.targets[index]
        call_start = thread_clock()
        try:
            solution: Solution = self.solver.solve(target, q0, **options)
        except Exception as error:
            if raises_errors:
                raise
            seconds = max(0.0, thread_clock() - call_start)
            return AttemptResult(q0, seconds, False, status="ERROR", note=f"{type(error).__name__}: {error}")
        seconds = max(0.0, thread_clock() - call_start)
        reported_success = solution.success and seconds <= self.time_limits.max_attempt_seconds
        return AttemptResult(solution.q, seconds, reported_success, solution.iterations, solution.status.name)

    def convergence_curve(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return numbers of iterations, and the median errors after these iterations over the solved targets.

        If no target is solved, the median is over all targets. The error of a target is the smallest error so far, in
        the units of `Solution.history`; it is constant after the end of a solve.
        """
        case, histories, are_solved = self.case, list[Array](), list[bool]()
        start_time = time.perf_counter()
        for index in range(min(CURVE_TARGET_COUNT, len(case.targets))):
            if time.perf_counter() - start_time > CURVE_SECONDS:
                break
            options = self._options(index, self.time_limits.max_attempt_seconds)
            try:
                solution = self.solver.solve(case.targets[index], np.array(case.starts[index]), history=True, **options)
            except Exception:  # recorded by the attempts
                continue
            if solution.history is not None and len(solution.history):
                histories.append(np.asarray(solution.history, dtype=np.float64))
                are_solved.append(solution.success)
        if not histories:
            return (), ()
        if any(are_solved):
            histories = [history for history, is_solved in zip(histories, are_solved, strict=True) if is_solved]
        max_length = max(map(len, histories))
        errors = np.array(
            [np.concatenate([history, np.full(max_length - len(history), history[-1])]) for history in histories]
        )
        errors = np.minimum.accumulate(np.where(np.isfinite(errors), errors, np.inf), axis=1)
        iterations = np.unique(np.round(np.geomspace(1, max_length, MAX_CURVE_POINT_COUNT)).astype(int))
        median_errors = np.median(errors, axis=0)[iterations - 1]
        return tuple(map(float, iterations)), tuple(map(float, median_errors))

    def time_idle_call(self) -> float:
        """Return the processor time of an idle call, whose target is already met; s.

        This is the overhead around the iterations: the median of IDLE_CALL_COUNT calls, or NaN if the solver raises an
        exception.
        """
        target, q0, durations = start_targets(self.case), np.array(self.case.starts[0]), list[float]()
        for _ in range(IDLE_CALL_COUNT):
            options = self._options(0, self.time_limits.max_attempt_seconds)
            call_start = thread_clock()
            try:
                self.solver.solve(target, q0, **options)
            except Exception:  # recorded by the attempts
                return np.nan
            durations.append(max(0.0, thread_clock() - call_start))
        return float(np.median(durations))

    def _options(self, index: int, seconds: float) -> dict[str, Any]:
        """Return the options of `Solver.solve` for a target: time limit and random generator.

        The default method gets no options.
        """
        if self.is_default_method:
            return {}
        return {"max_seconds": max(seconds, 0.0), "rng": np.random.default_rng([self.time_limits.seed, index])}


def _attempt_records(
    runner: CaseRunner, settings: CaseSettings, case_names: dict[str, Any]
) -> Iterator[BenchmarkRecord]:
    """Yield the records of all targets of a case without paths.

    Args:
        case_names: names of robot, task and solver, by field of a record.
    """
    case, budget = runner.case, runner.time_limits.budget
    results_by_target: list[list[AttemptResult]] = []
    # out of reach: if the first attempt takes longer than the budget, it is repeated with a time limit below the budget
    repeated_results: dict[int, AttemptResult] = {}
    for index in range(len(case.targets)):
        if index >= MIN_TARGET_COUNT and runner.is_out_of_time():
            break
        results = [runner.attempt(index, case.starts[index])]
        seconds = results[0].seconds
        while not results[-1].reported_success and seconds < budget and not runner.is_out_of_time(2.0):
            start = case.restarts[(len(results) - 1) % len(case.restarts)]
            results.append(runner.attempt(index, start, TIME_LIMIT_SHARE * (budget - seconds)))
            seconds += results[-1].seconds
        if not case.is_reachable and results[0].seconds > budget:
            repeated_results[index] = runner.attempt(index, case.starts[index], TIME_LIMIT_SHARE * budget)
        results_by_target.append(results)
    for index, results in enumerate(results_by_target):
        first_result = results[0]
        seconds = sum(result.seconds for result in results)
        verification = verify_solution(case, settings, index, first_result.q)
        is_in_budget = np.cumsum([result.seconds for result in results]) <= budget
        if case.is_reachable:
            last_verification = (
                verification if len(results) == 1 else verify_solution(case, settings, index, results[-1].q)
            )
            budget_distance, is_reached = (
                last_verification.distance,
                results[-1].reported_success and last_verification.success and bool(is_in_budget[-1]),
            )
        else:  # no attempt succeeds; the smallest distance counts
            results_in_budget = [result for result, is_inside in zip(results, is_in_budget, strict=True) if is_inside]
            if index in repeated_results and repeated_results[index].seconds <= budget:
                results_in_budget.append(repeated_results[index])
            distances = [
                _valid_distance(verify_solution(case, settings, index, result.q)) for result in results_in_budget
            ]
            budget_distance, is_reached = min(distances, default=np.inf), False
        yield BenchmarkRecord(
            kind=ATTEMPT,
            target=index,
            start=0,
            in_budget=is_reached,
            budget_seconds=seconds,
            attempts=len(results),
            budget_distance=budget_distance,
            **_record_fields(first_result, verification),
            **case_names,
        )


def _track_records(runner: CaseRunner, settings: CaseSettings, case_names: dict[str, Any]) -> Iterator[BenchmarkRecord]:
    """Yield the records of all points of a case with paths; `case_names` is as for `_attempt_records`."""
    case, time_limits = runner.case, runner.time_limits
    results: list[AttemptResult] = []
    starts: list[Array] = []
    q = case.starts[0]
    for index, path_index in enumerate(case.path_index):
        if index >= MIN_TARGET_COUNT and runner.is_out_of_time():
            break
        if index == 0 or path_index != case.path_index[index - 1]:
            q = case.starts[index]
        starts.append(q)
        results.append(runner.attempt(index, q))
        if np.isfinite(results[-1].q).all():
            q = results[-1].q
    for index, (result, start) in enumerate(zip(results, starts, strict=True)):
        verification = verify_solution(case, settings, index, result.q)
        is_finite = bool(np.isfinite(result.q).all())
        step = float(max_joint_step(case.robot, start, result.q)) if is_finite else np.inf
        yield BenchmarkRecord(
            kind=TRACK,
            target=index,
            in_budget=result.reported_success and verification.success and result.seconds <= time_limits.budget,
            budget_seconds=result.seconds,
            attempts=1,
            budget_distance=verification.distance,
            step=step,
            is_jump=step > JUMP_RATIO * case.reference_step[case.path_index[index]],
            **_record_fields(result, verification),
            **case_names,
        )


def _branch_records(
    runner: CaseRunner, settings: CaseSettings, branches: SolutionBranches, case_names: dict[str, Any]
) -> Iterator[BenchmarkRecord]:
    """Yield the records of attempts from many starts, for the targets of `branches`."""
    case = runner.case
    for index in branches.targets:
        for k, start in enumerate(case.restarts[: settings.branch_start_count]):
            if runner.is_out_of_time(1.5):
                return
            result = runner.attempt(index, start)
            verification = verify_solution(case, settings, index, result.q)
            is_verified = result.reported_success and verification.success
            branch = branches.branch_index(index, result.q) if is_verified else -1
            yield BenchmarkRecord(
                kind=BRANCH,
                target=index,
                start=k + 1,
                branch=branch,
                **_record_fields(result, verification),
                **case_names,
            )


def _record_fields(result: AttemptResult, verification: CaseVerification) -> dict[str, Any]:
    """Return the fields of a record that come from an attempt and its verification."""
    return {
        "reported_success": result.reported_success,
        "verified": result.reported_success and verification.success,
        "seconds": result.seconds,
        "iterations": result.iterations,
        "status": result.status,
        "position_error": verification.position_error,
        "rotation_error": verification.rotation_error,
        "distance": _valid_distance(verification),
        "closure_error": verification.closure_error,
        "limit_violation": verification.limit_violation,
        "note": result.note,
    }


def _valid_distance(verification: CaseVerification) -> float:
    """Return the distance to the target, m; infinite if limits, loop closures or joint constraints are violated."""
    return verification.distance if verification.are_constraints_met else np.inf


MechanismOrFile = Mechanism | str | Path


@dataclass(frozen=True, slots=True)
class ComparisonSettings:
    """Settings of a comparison, written to the header of the records.

    Attributes:
        targets: number of targets of each task.
        budget, longest, patience: `budget`, `max_attempt_seconds` and `patience` of `TimeLimits`.
        tolerance, angle_tolerance: m and rad.
        branch_targets, branch_starts: largest number of targets that are searched for branches, and number of starts
            for each of them.
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
"""Default settings of `compare` without and with `quick`."""


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
        mechanisms: mechanisms or their files, which are used instead of the built-in robots. The built-in robots that
            `robots` names are added.
        solvers: names of methods. None: all of `METHODS`.
        robots: names of built-in robots: 3r_planar, 5r_seed, 6r_wrist, 6r_general, 7r, 10r_seed, 30r, 100r, prismatic,
            two_hands, closed_loop. None: all, or none with `mechanisms`.
        tasks: point, direction (position and direction), pose, tight_limits, near_singular, out_of_reach, path. None:
            all.
        link: name or names of the links of `mechanisms` that must reach targets. Default: the tip link.
        targets: number of targets of each task. None: 100, or 8 with `quick`.
        budget: s of processor time for all attempts on a target. The first attempt may take 5 times the budget, or
            0.1 s if that is longer.
        tolerance, angle_tolerance: m and rad; a target is reached, and a loop is closed, if its errors are not larger.
        patience: s of wall time for a solver on a task of a robot. A slower solver solves fewer targets, but at least
            3; the table shows the number. None: 2, or 0.25 with `quick`.
        seed: random seed of targets, starts and solvers.
        quick: whether to use fewer targets and a shorter `patience` by default, and fewer starts in the search for
            branches.
        csv: file for the records. Until the comparison is complete, the records are in a partial file in the same
            folder.
        resume: whether to continue an interrupted comparison from the records in `csv` or its partial file.
        progress: True: a bar on stderr; False: no bar; None: a bar if stderr is a terminal; or a function with the
            arguments (number of finished runs, number of all runs, label of the next run). A run is a solver on a task
            of a robot.
        command: command line of the call, for the report.

    Returns:
        The comparison; `is_complete` is False if Ctrl-C ended it early.

    Raises:
        UnknownName: a solver, robot, task or link does not exist.
        LimitsError: `targets` is not an integer of 1 or more, or a time or a tolerance is not finite and above 0.
        InvalidArgument: `mechanisms` contains other objects, or `resume` is given without `csv`.
        StructureError: the records in `csv` have other settings, or a mechanism has no dofs.
        NotSolved: the loops of a mechanism cannot be closed.
        FileMissing: a file of `mechanisms` or `csv` cannot be read.
        FormatError: a file of `mechanisms` is invalid, or the records in `csv` are damaged or from another version of
            Mechanik.
        CannotSave: the records cannot be written.

    Example:
        >>> result = mk.compare(robots="3r_planar", solvers="lm", tasks="point", targets=3, quick=True, progress=False)
        >>> row = result.row("lm", "3r_planar", "point")
        >>> row.trials, row.false_claims
        (3, 0)
    """
    preset = QUICK_PRESET if quick else FULL_PRESET
    settings = ComparisonSettings(
        targets=int(preset["targets"]) if targets is None else _as_count("targets", targets),
        budget=_as_positive("budget", budget),
        longest=max(0.1, 5 * budget),
        patience=float(preset["patience"]) if patience is None else _as_positive("patience", patience),
        tolerance=_as_positive("tolerance", tolerance),
        angle_tolerance=_as_positive("angle_tolerance", angle_tolerance),
        branch_targets=int(preset["branch_targets"]),
        branch_starts=int(preset["branch_starts"]),
        seed=seed,
    )
    selected_robots = _select_robots(mechanisms, robots, link)
    solver_names = _select_names("solver", solvers, METHODS)
    task_names = _select_names("task", tasks, TASKS)
    about = {"settings": asdict(settings), "machine": describe_machine(), "command": command}
    about["titles"] = {robot.name: robot.title for robot in selected_robots}
    earlier_records = _records_to_resume(csv, settings, solver_names) if resume else []
    wait_for_kernels(*TIMED_KERNELS, what="a comparison")
    record_writer = None if csv is None else RecordWriter(csv, about)
    records, is_finished = list(earlier_records), False
    try:
        if record_writer is not None:
            record_writer.write(earlier_records)
        for case_records in _run_cases(
            selected_robots, task_names, solver_names, settings, make_progress(progress), earlier_records
        ):
            records += case_records
            if record_writer is not None:
                record_writer.write(case_records)
        is_finished = True
        if record_writer is not None:
            record_writer.finish()
    except KeyboardInterrupt:
        pass
    finally:
        if record_writer is not None:
            record_writer.close()
    return Comparison(records, about, is_complete=is_finished)


def _run_cases(
    robots: Sequence[BenchmarkRobot],
    tasks: Sequence[str],
    solvers: Sequence[str],
    settings: ComparisonSettings,
    progress: ComparisonProgress,
    earlier_records: Sequence[BenchmarkRecord],
) -> Iterable[list[BenchmarkRecord]]:
    """Run all solvers on all cases that `earlier_records` does not contain, and yield the records of each run.

    For targets out of reach, the reference records come before those of the solvers.
    """
    case_settings = CaseSettings(
        settings.targets, settings.branch_targets, settings.branch_starts, settings.tolerance, settings.angle_tolerance
    )
    time_limits = TimeLimits(settings.budget, settings.longest, settings.patience, settings.seed)
    finished_cases = {(record.robot, record.task) for record in earlier_records}
    finished_count, run_count = 0, len(robots) * len(tasks) * len(solvers)
    for robot in robots:
        for task in tasks:
            if (robot.name, task) in finished_cases:
                finished_count += len(solvers)
                continue
            progress(finished_count, run_count, f"{robot.title}, {task}: targets")
            case = make_case(robot, task, settings.seed, case_settings)
            branches = SolutionBranches(case, case_settings.branch_target_count)
            if not case.is_reachable:
                yield reference_distances(case, case_settings, 2 * settings.patience)
            for solver in solvers:
                progress(finished_count, run_count, f"{robot.title}, {task}, {solver}")
                yield run_case(case, solver, case_settings, time_limits, branches)
                finished_count += 1
    progress(finished_count, run_count, "")


def _records_to_resume(
    csv: str | Path | None, settings: ComparisonSettings, solvers: Sequence[str]
) -> list[BenchmarkRecord]:
    """Read the records of an earlier comparison, for the tasks that all solvers finished.

    Unfinished tasks are ignored, because branches and smallest distances depend on all solvers of a task.

    Raises:
        InvalidArgument: `csv` is None.
        StructureError: the earlier comparison has other settings.
    """
    if csv is None:
        raise InvalidArgument("resume=True needs the file of the records of the interrupted comparison: csv=...")
    path = Path(csv)
    partial_file = partial_path(path)
    if not partial_file.exists() and not path.exists():
        return []
    records, about = read_records(partial_file, is_partial=True) if partial_file.exists() else read_records(path)
    if about.get("settings") != asdict(settings):
        raise StructureError(
            f"{csv} contains a comparison with other settings, {about.get('settings')}; use these settings to finish "
            "it, or omit resume to start again"
        )
    # the records of the last run in a partial file may be incomplete
    last_key = records[-1].run_key if records and partial_file.exists() else None
    finished_solvers: dict[tuple[str, str], set[str]] = {}
    for record in records:
        if record.kind != REFERENCE and record.run_key != last_key:
            finished_solvers.setdefault((record.robot, record.task), set()).add(record.solver)
    finished_cases = {key for key, solver_names in finished_solvers.items() if set(solvers) <= solver_names}
    return [
        record
        for record in records
        if (record.robot, record.task) in finished_cases and (record.solver in (*solvers, ""))
    ]


def _select_robots(
    mechanisms: MechanismOrFile | Iterable[MechanismOrFile] | None,
    robots: str | Iterable[str] | None,
    link: str | Iterable[str],
) -> list[BenchmarkRobot]:
    """Make the benchmark robots that the arguments of `compare` select."""
    links = [link] if isinstance(link, str) else list(link)
    user_mechanisms = [mechanisms] if isinstance(mechanisms, MechanismOrFile) else list(mechanisms or ())
    built_in_names = (
        _select_names("robot to compare on", robots, ROBOTS) if robots is not None or not user_mechanisms else []
    )
    selected_robots = [make_robot(name) for name in built_in_names]
    for user_mechanism in user_mechanisms:
        if not isinstance(user_mechanism, MechanismOrFile):
            raise InvalidArgument(f"mechanisms must contain mechanisms or model files, not {user_mechanism!r}")
        mechanism = user_mechanism if isinstance(user_mechanism, Mechanism) else load(user_mechanism)
        selected_robots.append(user_robot(mechanism, links, [robot.name for robot in selected_robots]))
    return selected_robots


def _select_names(kind: str, requested_names: str | Iterable[str] | None, known_names: Iterable[str]) -> list[str]:
    """Return the requested names, or all known names for None; raises `UnknownName` for an unknown name."""
    names = (
        list(known_names)
        if requested_names is None
        else [requested_names]
        if isinstance(requested_names, str)
        else list(dict.fromkeys(requested_names))
    )
    for name in names:
        if name not in known_names:
            raise UnknownName(kind, name, known_names)
    return names


def _as_count(name: str, value: int) -> int:
    """Return `value` if it is an integer of 1 or more; else raise `LimitsError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise LimitsError(f"{name} must be an integer of 1 or more, not {value!r}")
    return value


def _as_positive(name: str, value: float) -> float:
    """Return `value` as a float if it is finite and above 0; else raise `LimitsError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise LimitsError(f"{name} must be a number above 0, not {value!r}")
    return float(value)
