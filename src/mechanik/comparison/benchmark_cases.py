"""Benchmark cases: for each task on a robot the goals, targets and start configurations, the same for every solver.

Targets are the poses of the tip links at sampled configurations, so a solution exists. Samples are inside the joint
limits with all loops closed. Nearly singular samples come from a random search that reduces the smallest singular value
of the tip link Jacobian.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from mechanik.comparison.benchmark_robots import BenchmarkRobot
from mechanik.errors import NotSolved, UnknownName
from mechanik.model import Joint
from mechanik.objectives import AxisGoal, Objective, PoseGoal, PositionGoal
from mechanik.objectives.constraint_relations import closure_relations
from mechanik.objectives.relation import evaluate_relation
from mechanik.solver import Solver
from mechanik.spatial.array import Array

PERTURBATION_SIZE = 0.3
"""rad, or thirds of the reach: largest perturbation of a dof from home before the loops are closed again."""
TRIES_PER_SAMPLE = 40
"""Perturbations per requested sample before sampling of a mechanism with loops fails."""


def sample_configurations(
    robot: BenchmarkRobot, rng: np.random.Generator, count: int, spread: float = PERTURBATION_SIZE
) -> Array:
    """Sample configurations (count, nq) inside the limits, with all loops closed.

    Without loops the samples are uniform. With loops, each is a random perturbation of the home configuration whose
    loops are closed again.

    Args:
        spread: largest perturbation of a dof, rad or thirds of the reach; only used with loops.

    Raises:
        NotSolved: the loops of too few samples could be closed.
    """
    mechanism = robot.mechanism
    if not mechanism.closures:
        return mechanism.random(rng, count)
    close_loops = LoopCloser(robot)
    home, space = close_loops.home, mechanism.space
    unit = spread * np.where(space.rotates, 1.0, robot_reach(robot) / 3)
    configurations: list[Array] = []
    for _ in range(TRIES_PER_SAMPLE * count):
        q = close_loops(space.clamp(space.integrate(home, unit * rng.uniform(-1.0, 1.0, space.nv))))
        if q is not None:
            configurations.append(q)
            if len(configurations) == count:
                return np.array(configurations)
    raise NotSolved(
        f"{robot.title}: of {TRIES_PER_SAMPLE * count} samples, "
        f"only {len(configurations)} have loops that can be closed"
    )


class LoopCloser:
    """Callable that closes the loops of a mechanism; without loops it returns q unchanged.

    Attributes:
        home: the current configuration of the mechanism with its loops closed, (nq,).
    """

    def __init__(self, robot: BenchmarkRobot) -> None:
        self._solver = Solver(robot.mechanism, None) if robot.mechanism.closures else None
        self.home = robot.mechanism.q
        if self._solver is not None:
            self.home = self._solver.solve(q0=self.home).require().q

    def __call__(self, q: Array) -> Array | None:
        """Return a configuration near q with closed loops; None if the solver finds none inside the limits."""
        if self._solver is None:
            return q
        solution = self._solver.solve(q0=q)
        return solution.q if solution.success else None


def robot_reach(robot: BenchmarkRobot) -> float:
    """Return a bound on the distance of the tip links from the base, m.

    It is the sum of all lengths and prismatic strokes along the chain, or the present distance from the world origin
    if that is larger.
    """
    return max(_length(robot, end) for end in robot.tip_links)


def _length(robot: BenchmarkRobot, end: str) -> float:
    link = robot.mechanism.link(end)
    stands = float(np.linalg.norm(link.world_position))
    total, frame = 0.0, link
    while frame is not None:
        total += float(np.linalg.norm(frame.position))
        if isinstance(frame, Joint):
            strokes = [max(map(abs, frame.limits(dof))) for dof in frame.dof if not dof.is_rotation]
            total += sum(stroke for stroke in strokes if math.isfinite(stroke))
        frame = frame.parent
    longest = max(total, stands)
    return longest if longest > 1e-9 else 1.0


SINGULAR_VALUE = 1e-3
"""Smallest singular value below which a configuration counts as singular; lengths in reaches. Typical: 0.05 to 0.5."""
NOT_SINGULAR_VALUE, STRAIGHT_ARM_BEND = 5e-3, 0.01
"""Smallest singular value above which a nearly straight arm may replace a sample, and the bend of that arm.

The bend is a share of a random configuration. The straight arm is used only if it is more singular."""
SEARCH_ROUNDS, LOOP_SEARCH_ROUNDS, PERTURBATIONS_PER_ROUND = 40, 8, 8
"""Rounds of the search without and with loops, and samples per round.

With loops every sample needs a solve, so fewer rounds trade singularity for time."""


def sample_near_singular(robot: BenchmarkRobot, rng: np.random.Generator, count: int) -> Array:
    """Sample nearly singular configurations (count, nq) by a short random search.

    If no configuration within the limits is singular, as for a Stewart platform, they are the least dexterous ones
    found.
    """
    space, close_loops = robot.mechanism.space, LoopCloser(robot)
    loops = bool(robot.mechanism.closures)
    pool = sample_configurations(robot, rng, count if loops else 8 * count)
    rank = int(np.median(np.sum(_values(robot, pool[:16]) > 1e-6, axis=1)))
    size = _dexterity(robot, pool, rank)
    best = np.argsort(size)[: 2 * count]
    best = rng.permutation(best)[:count]
    q, size = pool[best], size[best]
    unit = np.where(space.rotates, 1.0, robot_reach(robot))
    for step in np.geomspace(0.3, 0.003, LOOP_SEARCH_ROUNDS if loops else SEARCH_ROUNDS):
        going = np.flatnonzero(size > SINGULAR_VALUE)
        if not len(going):
            break
        shakes = step * unit * rng.standard_normal((PERTURBATIONS_PER_ROUND, len(going), space.nv))
        for tried in space.clamp(space.integrate(q[going], shakes)):
            closed = [close_loops(configuration) for configuration in tried] if loops else list(tried)
            closable = [k for k, configuration in enumerate(closed) if configuration is not None]
            if not closable:
                continue
            for_real = np.array([closed[k] for k in closable])
            new_size = _dexterity(robot, for_real, rank)
            here = going[closable]
            better = new_size < size[here]
            q[here[better]], size[here[better]] = for_real[better], new_size[better]
    return q if loops else _straightened(robot, rng, q, size, rank)


def _straightened(robot: BenchmarkRobot, rng: np.random.Generator, q: Array, size: Array, rank: int) -> Array:
    """Replace samples by nearly straight arms where those are more singular.

    Long arms are singular when they are almost straight, which a random search does not find.
    """
    space = robot.mechanism.space
    bent = space.integrate(
        space.neutral(),
        STRAIGHT_ARM_BEND * space.difference(space.neutral(), sample_configurations(robot, rng, len(q))),
    )
    bent = space.clamp(bent)
    better = (size > NOT_SINGULAR_VALUE) & (_dexterity(robot, bent, rank) < size)
    return np.where(better[:, None], bent, q)


def _dexterity(robot: BenchmarkRobot, q: Array, rank: int) -> Array:
    """Return the smallest singular value that is nonzero in a typical configuration, (n,)."""
    return _values(robot, q)[:, rank - 1]


def _values(robot: BenchmarkRobot, q: Array) -> Array:
    """Return the singular values (n, k) of the tip link Jacobian in the null space of the loops; lengths in reaches."""
    mechanism, reach = robot.mechanism, robot_reach(robot)
    J = np.concatenate([mechanism.jacobian(end, q) for end in robot.tip_links], axis=1)
    rows = np.tile(np.repeat([1.0 / reach, 1.0], 3), len(robot.tip_links))
    columns = np.where(mechanism.space.rotates, 1.0, reach)
    J = rows[:, None] * J * columns
    if not mechanism.closures:
        return np.asarray(np.linalg.svd(J, compute_uv=False), dtype=np.float64)
    singular_values = np.zeros((len(q), min(J.shape[1:])))
    for k, configuration in enumerate(q):
        free = _null_space(closure_jacobian(robot, configuration) * columns)
        values = np.linalg.svd(J[k] @ free, compute_uv=False)
        singular_values[k, : len(values)] = values
    return singular_values


def closure_jacobian(robot: BenchmarkRobot, q: Array) -> Array:
    """Return the stacked Jacobian of all loop closures at q, (m, nv)."""
    mechanism = robot.mechanism
    rows = [
        evaluate_relation(mechanism, relation, q)[1]
        for closure in mechanism.closures.values()
        for relation in closure_relations(mechanism, closure)
    ]
    return np.concatenate([np.zeros((0, mechanism.nv)), *rows])


def _null_space(J: Array) -> Array:
    _, values, V = np.linalg.svd(J)
    rank = int(np.sum(values > 1e-9 * values[0])) if len(values) else 0
    return V[rank:].T


RESTART_COUNT = 64
"""Number of restart configurations of a case; a solver that needs more goes through them again."""
TIGHT_LIMIT_SHARE = 0.3
"""Width of the tight limits of a joint, as a share of its range."""
MAX_PATH_POINTS = 25
"""Maximum number of points of a path; with fewer targets, paths are shorter, so that there are at least two."""
PATH_STEP_SHARE = 0.01
"""Step between points of a path, as a share of the joint-space segment to a second random configuration."""
UNREACHABLE_DISTANCE = (1.1, 1.6)
"""Range of the distance of targets out of reach from the base, in reaches."""
MAX_DISTANCE_INCREASES = 12
"""How often the distance of a target that turns out to be reachable is multiplied by 1.5."""


@dataclass(frozen=True, slots=True, eq=False)
class CaseSettings:
    """Size and tolerances of a benchmark case.

    Attributes:
        targets: number of targets of each task; for paths, the total number of points.
        branch_targets, branch_starts: number of targets that are searched for branches, and of starts for each.
        tolerance, angle_tolerance: m and rad; errors up to these count as reached.
    """

    targets: int
    branch_targets: int
    branch_starts: int
    tolerance: float
    angle_tolerance: float


@dataclass(frozen=True, slots=True, eq=False)
class BenchmarkCase:
    """A task on a robot: goals, targets and starts.

    Attributes:
        robot: the robot.
        task: name of the task, a key of `TASKS`.
        goals: objectives of the solver.
        targets: for each of the n targets, the `targets` argument of `Solver.solve`.
        reference_q: (n, nq), configurations in which the tip links are at the targets. For targets out of reach, the
            configurations from which their directions were taken.
        target_poses: (n, tip links, 4, 4), world frame; some tasks use only a part of the pose.
        direction: (3,), axis in the frame of the tip link that shall have the direction it has in the target pose;
            None if the task has no direction.
        uses_rotation: whether the full rotation of the target poses counts.
        starts: (n, nq), start configuration of each target.
        restarts: (RESTART_COUNT, nq), further starts, the same for all targets.
        lower, upper: (nq,), joint limits; rad or m.
        limits: the same by name, as `Solver` takes them; None: the limits of the robot.
        path_index: for each target, the index of its path; the start of a target is the first configuration of its
            path. Empty for tasks without paths.
        reference_step: for each path, the largest joint step between its reference configurations; rad or reaches.
        is_reachable: whether the targets have a solution.
    """

    robot: BenchmarkRobot
    task: str
    goals: tuple[Objective, ...]
    targets: list[Any]
    reference_q: Array
    target_poses: Array
    direction: Array | None
    uses_rotation: bool
    starts: Array
    restarts: Array
    lower: Array
    upper: Array
    limits: Mapping[str, tuple[float, float]] | None = None
    path_index: tuple[int, ...] = ()
    reference_step: tuple[float, ...] = ()
    is_reachable: bool = True


def position_case(robot: BenchmarkRobot, rng: np.random.Generator, sizes: CaseSettings) -> BenchmarkCase:
    """Make a case with target positions; any orientation counts."""
    return _placed(robot, "point", rng, sizes, sample_configurations(robot, rng, sizes.targets), turns=False)


def direction_case(robot: BenchmarkRobot, rng: np.random.Generator, sizes: CaseSettings) -> BenchmarkCase:
    """Make a case with target positions and a direction for an axis of each tip link."""
    configurations = sample_configurations(robot, rng, sizes.targets)
    along = _telling_axis(robot, configurations)
    return _placed(robot, "direction", rng, sizes, configurations, turns=False, along=along)


def pose_case(robot: BenchmarkRobot, rng: np.random.Generator, sizes: CaseSettings) -> BenchmarkCase:
    """Make a case with target poses."""
    return _placed(robot, "pose", rng, sizes, sample_configurations(robot, rng, sizes.targets))


def tight_limits_case(robot: BenchmarkRobot, rng: np.random.Generator, sizes: CaseSettings) -> BenchmarkCase:
    """Make a case with target poses that are reachable with tight limits, see `TIGHT_LIMIT_SHARE`."""
    space, count = robot.mechanism.space, sizes.targets
    lower, upper = space.lower.copy(), space.upper.copy()
    if robot.mechanism.closures:
        inside = sample_configurations(
            robot, rng, 2 * count + RESTART_COUNT, spread=TIGHT_LIMIT_SHARE * PERTURBATION_SIZE
        )
        bounded = np.isfinite(lower) & np.isfinite(upper)
        lower[bounded], upper[bounded] = inside.min(axis=0)[bounded], inside.max(axis=0)[bounded]
    else:
        full = np.where(space.rotates[space.scalars_v], math.pi, 1.0)
        k = space.scalars_q
        low = np.where(np.isfinite(lower[k]), lower[k], -full)
        high = np.where(np.isfinite(upper[k]), upper[k], full)
        width = TIGHT_LIMIT_SHARE * (high - low)
        lower[k] = low + rng.random(len(k)) * (high - low - width)
        upper[k] = lower[k] + width
        inside = replace(space, lower=lower, upper=upper).random(rng, 2 * count + RESTART_COUNT)
    names = [space.q_names[k] for k in space.scalars_q if np.isfinite(lower[k]) and np.isfinite(upper[k])]
    limits = {name: (lower[space.q_names.index(name)], upper[space.q_names.index(name)]) for name in names}
    case = _placed(robot, "tight_limits", rng, sizes, inside[:count])
    return replace(
        case,
        starts=inside[count : 2 * count],
        restarts=inside[2 * count :],
        lower=lower,
        upper=upper,
        limits={name: (float(low), float(high)) for name, (low, high) in limits.items()},
    )


def near_singular_case(robot: BenchmarkRobot, rng: np.random.Generator, sizes: CaseSettings) -> BenchmarkCase:
    """Make a case with target poses whose reference configurations are nearly singular."""
    return _placed(robot, "near_singular", rng, sizes, sample_near_singular(robot, rng, sizes.targets))


def unreachable_case(robot: BenchmarkRobot, rng: np.random.Generator, sizes: CaseSettings) -> BenchmarkCase:
    """Make a case with positions out of reach, which measures how close a solver comes."""
    case = _placed(robot, "out_of_reach", rng, sizes, sample_configurations(robot, rng, sizes.targets), turns=False)
    base = np.array([robot.mechanism.link(end).root.world_position for end in robot.tip_links])
    directions = case.target_poses[:, :, :3, 3] - base
    directions /= np.maximum(np.linalg.norm(directions, axis=-1, keepdims=True), 1e-9)
    distances = robot_reach(robot) * rng.uniform(*UNREACHABLE_DISTANCE, (len(directions), 1, 1))
    solver, target_poses = make_case_solver(case, "lm"), case.target_poses.copy()
    for number, start in enumerate(case.starts):
        for _ in range(MAX_DISTANCE_INCREASES):
            target_poses[number, :, :3, 3] = base + distances[number] * directions[number]
            target = _targets(target_poses[number : number + 1], None, False)[0]
            # the reach of a mechanism with loops has no simple bound, so a few solves check the target
            starts = (start, *case.restarts[:3]) if robot.mechanism.closures else ()
            if not any(solver.solve(target, np.array(q)).success for q in starts):
                break
            distances[number] *= 1.5
    return replace(case, target_poses=target_poses, targets=_targets(target_poses, None, False), is_reachable=False)


def path_case(robot: BenchmarkRobot, rng: np.random.Generator, sizes: CaseSettings) -> BenchmarkCase:
    """Make a case with poses along paths; each is solved from the solution before."""
    mechanism, close_loops = robot.mechanism, LoopCloser(robot)
    points = min(MAX_PATH_POINTS, max(1, sizes.targets // 2))
    ends = sample_configurations(robot, rng, 2 * max(1, sizes.targets // points))
    configurations: list[Array] = []
    starts: list[Array] = []
    numbers: list[int] = []
    usual: list[float] = []
    for start, end in zip(ends[::2], ends[1::2], strict=True):
        q, step = [start], mechanism.difference(start, end) * PATH_STEP_SHARE
        for _ in range(points):
            follows = close_loops(mechanism.clamp(mechanism.integrate(q[-1], step)))
            if follows is None:
                break
            q.append(follows)
        if len(q) > 1:
            followed = q[1:]
            configurations += followed
            starts += [start] * len(followed)
            numbers += [len(usual)] * len(followed)
            usual.append(max(float(max_joint_step(robot, a, b)) for a, b in pairwise(q)))
    case = _placed(robot, "path", rng, sizes, np.array(configurations))
    return replace(case, starts=np.array(starts), path_index=tuple(numbers), reference_step=tuple(usual))


TASKS: dict[str, Callable[[BenchmarkRobot, np.random.Generator, CaseSettings], BenchmarkCase]] = {
    "point": position_case,
    "direction": direction_case,
    "pose": pose_case,
    "tight_limits": tight_limits_case,
    "near_singular": near_singular_case,
    "out_of_reach": unreachable_case,
    "path": path_case,
}
"""Benchmark tasks: functions that make the case of a robot, by the names that `compare` takes."""


def make_case(robot: BenchmarkRobot, task: str, seed: int, sizes: CaseSettings) -> BenchmarkCase:
    """Make the case of a task on a robot; it depends only on the arguments, so every solver gets the same case.

    Raises:
        UnknownName: `task` is not in `TASKS`.
    """
    if task not in TASKS:
        raise UnknownName("task", task, TASKS)
    rng = np.random.default_rng([seed, *f"{robot.name}/{task}".encode()])
    return TASKS[task](robot, rng, sizes)


def max_joint_step(robot: BenchmarkRobot, q0: Array, q1: Array) -> Array:
    """Return the largest step of any dof between configurations (..., nq); (...), rad or reaches."""
    unit = np.where(robot.mechanism.space.rotates, 1.0, robot_reach(robot))
    return np.abs(robot.mechanism.difference(q0, q1) / unit).max(axis=-1)


def start_targets(case: BenchmarkCase) -> Any:
    """Return targets that the first start of a case already meets, for `Solver.solve`."""
    robot = case.robot
    target_poses = robot.mechanism.poses(case.starts[:1], robot.tip_links)
    return _targets(target_poses, case.direction, case.uses_rotation)[0]


def make_case_solver(case: BenchmarkCase, solver: str) -> Solver:
    """Make the solver of a case by the name of its method."""
    # no restarts inside: each attempt is measured by itself, and the runner chooses the next start
    return Solver(case.robot.mechanism, case.goals, solver=solver, limits=case.limits, restarts=0)


def _placed(
    robot: BenchmarkRobot,
    task: str,
    rng: np.random.Generator,
    sizes: CaseSettings,
    configurations: Array,
    turns: bool = True,
    along: Array | None = None,
) -> BenchmarkCase:
    """Make a case with the tip link poses at given configurations as targets, and with sampled starts.

    Args:
        configurations: (n, nq).
        turns: whether the full rotation counts.
        along: (3,), axis of the tip link for direction goals; None: no direction goals.
    """
    target_poses = robot.mechanism.poses(configurations, robot.tip_links)
    count = len(configurations)
    starts = sample_configurations(robot, rng, count + RESTART_COUNT)
    tolerances: Any = {"tolerance": sizes.tolerance, "angle_tolerance": sizes.angle_tolerance}
    goals: list[Objective] = []
    for end, X in zip(robot.tip_links, target_poses[0], strict=True):
        if turns:
            goals.append(PoseGoal(end, X, **tolerances))
            continue
        goals.append(PositionGoal(end, X[:3, 3], **tolerances))
        if along is not None:
            goals.append(AxisGoal(end, X[:3, :3] @ along, along, **tolerances))
    space = robot.mechanism.space
    return BenchmarkCase(
        robot, task, tuple(goals), _targets(target_poses, along, turns), configurations, target_poses, along, turns,
        starts[:count], starts[count:], space.lower, space.upper,
    )  # fmt: skip


def _targets(target_poses: Array, along: Array | None, turns: bool) -> list[Any]:
    """Return targets in the form of `Solver.solve`: a single target by itself, several as a list."""
    targets: list[Any] = []
    for poses in target_poses:
        each: list[Array] = []
        for X in poses:
            each.append(np.array(X) if turns else np.array(X[:3, 3]))
            if along is not None:
                each.append(X[:3, :3] @ along)
        targets.append(each[0] if len(each) == 1 else each)
    return targets


def _telling_axis(robot: BenchmarkRobot, configurations: Array) -> Array:
    """Return the z axis of the tip link, or x if z has the same direction in all configurations (planar robots)."""
    directions = robot.mechanism.poses(configurations, robot.tip_links)[..., :3, 2]
    return np.eye(3)[2] if np.ptp(directions, axis=0).max() > 1e-6 else np.eye(3)[0]
