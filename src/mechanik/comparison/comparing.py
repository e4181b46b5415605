"""Every solver on every robot and task, one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mechanik.comparison.branches import Branches
from mechanik.comparison.cell import Pace, reference, run_cell
from mechanik.comparison.machine import describe_machine
from mechanik.comparison.progress import Progress, as_progress
from mechanik.comparison.records import Recorder, part_of, read_records
from mechanik.comparison.results import Comparison
from mechanik.comparison.robots import ROBOTS, Robot, make_robot, own_robot
from mechanik.comparison.tasks import TASKS, Sizes, set_task
from mechanik.comparison.trial import REFERENCE, Trial
from mechanik.errors import LimitsError, StructureError, UnknownName, WrongKind
from mechanik.formats import load
from mechanik.mechanism import Mechanism
from mechanik.solvers import METHODS
from mechanik.tiers import KERNEL_MODULES, wait_for

Source = Mechanism | str | Path


@dataclass(frozen=True, slots=True)
class Settings:
    """What was asked, besides robots, tasks and solvers; in the first line of the records."""

    targets: int
    budget: float
    longest: float
    patience: float
    tolerance: float
    angle_tolerance: float
    branch_targets: int
    branch_starts: int
    seed: int


KERNELS = tuple(name for name in KERNEL_MODULES if not name.startswith(("planning.", "tracking.", "distance.")))
"""Those of all methods: what is timed must be compiled."""
FULL = {"targets": 100, "patience": 2.0, "branch_targets": 2, "branch_starts": 24}
QUICK = {"targets": 8, "patience": 0.25, "branch_targets": 1, "branch_starts": 8}


def compare(
    mechanisms: Source | Iterable[Source] | None = None,
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
    progress: bool | Progress | None = None,
    command: str = "",
) -> Comparison:
    """Compare solvers: the same targets, starts, tolerances and seeds for all of them.

    Success is checked by forward kinematics, not by the solver: the ends are there, the joints within their limits,
    the loops shut, and the solver says so. Ctrl-C ends it early, and keeps what is done.

    Args:
        mechanisms: your own, or files of them, in place of the robots that are built in (or besides, if you name some).
        solvers: names of methods; all of `METHODS` if not given.
        robots: names of the classes that are built in: 3r_planar, 5r_seed, 6r_wrist, 6r_general, 7r, 10r_seed, 30r,
            100r, prismatic, two_hands, closed_loop.
        tasks: point, direction (a point and a direction there), pose, tight_limits, near_singular, out_of_reach, path.
        link: of your mechanisms, the link to be placed, or several; else the one that looks like the end of an arm.
        targets: of each task.
        budget: s for one target, with as many attempts as fit. One attempt alone may take 5 budgets, or 0.1 s.
        tolerance, angle_tolerance: m and rad; what counts as there, also for loops.
        patience: s for one solver on one task of one robot. One that is slower gets fewer targets, and the table says
            how many; the first 3 it gets in any case.
        seed: of targets, starts, and all that is random in solvers.
        quick: fewer targets and less patience, for a look.
        csv: a file for the records, written as they come; beside it, until all is there.
        resume: go on with what an interrupted run left in (or beside) `csv`.
        progress: True: a bar on stderr; a function of (done, all, which); None: a bar if stderr is a terminal.
        command: how it was called, for the report.
    """
    usual = QUICK if quick else FULL
    settings = Settings(
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
    asked = _names("task", tasks, TASKS)
    about = {"settings": asdict(settings), "machine": describe_machine(), "command": command}
    about["titles"] = {robot.name: robot.title for robot in chosen}
    kept = _kept(csv, settings, names) if resume else []
    wait_for(*KERNELS, what="a comparison")
    recorder = None if csv is None else Recorder(csv, about)
    trials, finished = list(kept), False
    try:
        if recorder is not None:
            recorder.write(kept)
        for group in _groups(chosen, asked, names, settings, as_progress(progress), kept):
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
    robots: Sequence[Robot],
    tasks: Sequence[str],
    solvers: Sequence[str],
    settings: Settings,
    progress: Progress,
    kept: Sequence[Trial],
) -> Iterable[list[Trial]]:
    """Records as they come: of each cell, and before them those that all solvers of a task are measured by."""
    sizes = Sizes(
        settings.targets, settings.branch_targets, settings.branch_starts, settings.tolerance, settings.angle_tolerance
    )
    pace = Pace(settings.budget, settings.longest, settings.patience, settings.seed)
    there = {(one.robot, one.task) for one in kept}
    done, total = 0, len(robots) * len(tasks) * len(solvers)
    for robot in robots:
        for task in tasks:
            if (robot.name, task) in there:
                done += len(solvers)
                continue
            progress(done, total, f"{robot.title}, {task}: targets")
            exercise = set_task(robot, task, settings.seed, sizes)
            branches = Branches(exercise, sizes.branch_targets)
            if not exercise.is_reachable:
                yield reference(exercise, sizes, 2 * settings.patience)
            for solver in solvers:
                progress(done, total, f"{robot.title}, {task}, {solver}")
                yield run_cell(exercise, solver, sizes, pace, branches)
                done += 1
    progress(done, total, "")


def _kept(csv: str | Path | None, settings: Settings, solvers: Sequence[str]) -> list[Trial]:
    """What an earlier run has finished: tasks that all solvers had done, since they are measured by each other."""
    if csv is None:
        raise WrongKind("to go on with an interrupted comparison, name the file of its records: csv=...")
    path = Path(csv)
    part = part_of(path)
    if not part.exists() and not path.exists():
        return []
    trials, about = read_records(part, is_part=True) if part.exists() else read_records(path)
    if about.get("settings") != asdict(settings):
        raise StructureError(
            f"{csv} holds a comparison with other settings, {about.get('settings')}; finish it with these, or "
            "leave resume out to begin anew"
        )
    last = trials[-1].cell if trials and part.exists() else None  # may have been cut off
    done: dict[tuple[str, str], set[str]] = {}
    for one in trials:
        if one.kind != REFERENCE and one.cell != last:
            done.setdefault((one.robot, one.task), set()).add(one.solver)
    whole = {key for key, some in done.items() if set(solvers) <= some}
    return [one for one in trials if (one.robot, one.task) in whole and (one.solver in (*solvers, ""))]


def _robots(
    mechanisms: Source | Iterable[Source] | None, robots: str | Iterable[str] | None, link: str | Iterable[str]
) -> list[Robot]:
    links = [link] if isinstance(link, str) else list(link)
    given = [mechanisms] if isinstance(mechanisms, Source) else list(mechanisms or ())
    built_in = _names("robot to compare on", robots, ROBOTS) if robots is not None or not given else []
    chosen = [make_robot(name) for name in built_in]
    for one in given:
        if not isinstance(one, Source):
            raise WrongKind(f"a mechanism to compare on, or a file of one, is needed; not {one!r}")
        mechanism = one if isinstance(one, Mechanism) else load(one)
        chosen.append(own_robot(mechanism, links, [robot.name for robot in chosen]))
    return chosen


def _names(kind: str, given: str | Iterable[str] | None, known: Iterable[str]) -> list[str]:
    wanted = list(known) if given is None else [given] if isinstance(given, str) else list(dict.fromkeys(given))
    for name in wanted:
        if name not in known:
            raise UnknownName(kind, name, known)
    return wanted


def _whole(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise LimitsError(f"{name} must be a whole number of 1 or more, not {value!r}")
    return value


def _positive(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise LimitsError(f"{name} must be a number above 0, not {value!r}")
    return float(value)
