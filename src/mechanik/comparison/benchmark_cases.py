"""Benchmark cases: goals, targets and start configurations for each task on a robot, the same for every solver.

Targets are the poses of the tip links at sampled configurations, so a solution exists. Only the targets of the task
"out_of_reach" are moved away from these poses. Samples are within the joint limits and have closed loops. Nearly
singular samples are found by a random search that reduces the smallest singular value of the tip link Jacobian.
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
"""Largest perturbation of a dof before the loops are closed again: rad for a rotation; for a translation, as a fraction
of a third of the reach."""
PERTURBATIONS_PER_SAMPLE = 40
"""Largest number of perturbations per requested sample, for mechanisms with loops."""


def sample_configurations(
    robot: BenchmarkRobot, rng: np.random.Generator, count: int, spread: float = PERTURBATION_SIZE
) -> Array:
    """Sample configurations (count, nq) within the limits, with all loops closed.

    Without loops the samples are uniform. With loops, each sample is a random perturbation of the current configuration
    of the mechanism, whose loops are closed again.

    Args:
        spread: largest perturbation of a dof, in the units of `PERTURBATION_SIZE`; only used with loops.

    Raises:
        NotSolved: the loops cannot be closed near the current configuration, or in too few samples.
    """
    mechanism = robot.mechanism
    if not mechanism.closures:
        return mechanism.random(rng, count)
    close_loops = LoopCloser(robot)
    home, space = close_loops.home, mechanism.space
    max_perturbation = spread * np.where(space.rotates, 1.0, robot_reach(robot) / 3)
    configurations: list[Array] = []
    for _ in range(PERTURBATIONS_PER_SAMPLE * count):
        q = close_loops(space.clamp(space.integrate(home, max_perturbation * rng.uniform(-1.0, 1.0, space.nv))))
        if q is not None:
            configurations.append(q)
            if len(configurations) == count:
                return np.array(configurations)
    sample_count = PERTURBATIONS_PER_SAMPLE * count
    raise NotSolved(
        f"{robot.title}: the loops of only {len(configurations)} of {sample_count} random configurations can be closed"
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
        """Return a configuration near q with closed loops; None if the solver finds none within the limits."""
        if self._solver is None:
            return q
        solution = self._solver.solve(q0=q)
        return solution.q if solution.success else None


def robot_reach(robot: BenchmarkRobot) -> float:
    """Return the reach of the robot, m: the largest reach of its tip links.

    The reach of a tip link is the sum of all lengths and of the largest displacements of translations along the chain,
    or the current distance from the world origin if that is larger. Translations without limits are not counted. If all
    translations have limits and there are no loops, the reach is an upper bound on the distance from the base.
    """
    return max(_tip_link_reach(robot, tip_link) for tip_link in robot.tip_links)


def _tip_link_reach(robot: BenchmarkRobot, tip_link: str) -> float:
    """Return the reach of one tip link as in `robot_reach`, m; 1 if the reach is zero."""
    link = robot.mechanism.link(tip_link)
    current_distance = float(np.linalg.norm(link.world_position))
    chain_length, frame = 0.0, link
    while frame is not None:
        chain_length += float(np.linalg.norm(frame.position))
        if isinstance(frame, Joint):
            displacements = [max(map(abs, frame.limits(dof))) for dof in frame.dof if not dof.is_rotation]
            chain_length += sum(displacement for displacement in displacements if math.isfinite(displacement))
        frame = frame.parent
    reach = max(chain_length, current_distance)
    return reach if reach > 1e-9 else 1.0


SINGULAR_THRESHOLD = 1e-3
"""A configuration counts as singular if the smallest singular value is below this; lengths are relative to the reach.
The median over random configurations of a built-in robot is 0.02 to 0.4."""
REPLACEMENT_THRESHOLD = 5e-3
"""A nearly neutral configuration may replace a sample whose smallest singular value is above this. In the neutral
configuration every joint is at zero, or at the limit nearest to zero."""
NEUTRAL_DISTANCE_RATIO = 0.01
"""Distance of a nearly neutral configuration from the neutral configuration, as a fraction of the distance of a random
configuration."""
SEARCH_ROUND_COUNT, LOOP_SEARCH_ROUND_COUNT, PERTURBATIONS_PER_ROUND = 40, 8, 8
"""Number of search rounds without and with loops, and number of perturbations per round.

With loops every perturbation needs a solve. Fewer rounds save time, but the samples are less singular."""
MAX_SEARCH_STEP, MIN_SEARCH_STEP = 0.3, 0.003
"""Standard deviation of the perturbations in the first and in the last round; rad, or fraction of the reach."""


def sample_near_singular(robot: BenchmarkRobot, rng: np.random.Generator, count: int) -> Array:
    """Sample nearly singular configurations (count, nq) by a short random search.

    If no configuration within the limits is singular, as for a Stewart platform, the samples are the configurations
    with the smallest singular values that the search found.
    """
    space, close_loops = robot.mechanism.space, LoopCloser(robot)
    has_loops = bool(robot.mechanism.closures)
    pool = sample_configurations(robot, rng, count if has_loops else 8 * count)
    rank = int(np.median(np.sum(_singular_values(robot, pool[:16]) > 1e-6, axis=1)))
    min_values = _smallest_singular_values(robot, pool, rank)
    candidate_indices = np.argsort(min_values)[: 2 * count]
    candidate_indices = rng.permutation(candidate_indices)[:count]
    q, min_values = pool[candidate_indices], min_values[candidate_indices]
    unit = np.where(space.rotates, 1.0, robot_reach(robot))
    round_count = LOOP_SEARCH_ROUND_COUNT if has_loops else SEARCH_ROUND_COUNT
    for step in np.geomspace(MAX_SEARCH_STEP, MIN_SEARCH_STEP, round_count):
        unfinished_indices = np.flatnonzero(min_values > SINGULAR_THRESHOLD)
        if not len(unfinished_indices):
            break
        perturbations = step * unit * rng.standard_normal((PERTURBATIONS_PER_ROUND, len(unfinished_indices), space.nv))
        for perturbed_q in space.clamp(space.integrate(q[unfinished_indices], perturbations)):
            closed_q = [close_loops(q_sample) for q_sample in perturbed_q] if has_loops else list(perturbed_q)
            closed_indices = [k for k, q_sample in enumerate(closed_q) if q_sample is not None]
            if not closed_indices:
                continue
            candidate_q = np.array([closed_q[k] for k in closed_indices])
            candidate_values = _smallest_singular_values(robot, candidate_q, rank)
            rows = unfinished_indices[closed_indices]
            is_better = candidate_values < min_values[rows]
            q[rows[is_better]], min_values[rows[is_better]] = candidate_q[is_better], candidate_values[is_better]
    return q if has_loops else _replace_by_nearly_neutral(robot, rng, q, min_values, rank)


def _replace_by_nearly_neutral(
    robot: BenchmarkRobot, rng: np.random.Generator, q: Array, min_values: Array, rank: int
) -> Array:
    """Replace samples that are not singular by nearly neutral configurations if these have smaller singular values.

    An arm with many joints is often straight, and so singular, in its neutral configuration. A random search rarely
    finds such configurations.

    Args:
        q: samples, (n, nq).
        min_values: smallest singular values of the samples, (n,).
        rank: as for `_smallest_singular_values`.
    """
    space = robot.mechanism.space
    nearly_neutral_q = space.integrate(
        space.neutral(),
        NEUTRAL_DISTANCE_RATIO * space.difference(space.neutral(), sample_configurations(robot, rng, len(q))),
    )
    nearly_neutral_q = space.clamp(nearly_neutral_q)
    new_values = _smallest_singular_values(robot, nearly_neutral_q, rank)
    is_better = (min_values > REPLACEMENT_THRESHOLD) & (new_values < min_values)
    return np.where(is_better[:, None], nearly_neutral_q, q)


def _smallest_singular_values(robot: BenchmarkRobot, q: Array, rank: int) -> Array:
    """Return the singular value with index rank - 1 of each configuration, (n,).

    Args:
        q: configurations, (n, nq).
        rank: number of singular values that are not zero in a typical configuration.
    """
    return _singular_values(robot, q)[:, rank - 1]


def _singular_values(robot: BenchmarkRobot, q: Array) -> Array:
    """Return the singular values (n, k) of the tip link Jacobian, restricted to the null space of the closure Jacobian.

    Lengths are relative to the reach.
    """
    mechanism, reach = robot.mechanism, robot_reach(robot)
    J = np.concatenate([mechanism.jacobian(tip_link, q) for tip_link in robot.tip_links], axis=1)
    row_scale = np.tile(np.repeat([1.0 / reach, 1.0], 3), len(robot.tip_links))
    column_scale = np.where(mechanism.space.rotates, 1.0, reach)
    J = row_scale[:, None] * J * column_scale
    if not mechanism.closures:
        return np.asarray(np.linalg.svd(J, compute_uv=False), dtype=np.float64)
    singular_values = np.zeros((len(q), min(J.shape[1:])))
    for k, q_sample in enumerate(q):
        null_space = _null_space(closure_jacobian(robot, q_sample) * column_scale)
        values = np.linalg.svd(J[k] @ null_space, compute_uv=False)
        singular_values[k, : len(values)] = values
    return singular_values


def closure_jacobian(robot: BenchmarkRobot, q: Array) -> Array:
    """Return the stacked Jacobian of all loop closures at q, (m, nv)."""
    mechanism = robot.mechanism
    jacobians = [
        evaluate_relation(mechanism, relation, q)[1]
        for closure in mechanism.closures.values()
        for relation in closure_relations(mechanism, closure)
    ]
    return np.concatenate([np.zeros((0, mechanism.nv)), *jacobians])


def _null_space(J: Array) -> Array:
    """Return an orthonormal basis (n, k) of the null space of J (m, n)."""
    _, singular_values, V_transposed = np.linalg.svd(J)
    rank = int(np.sum(singular_values > 1e-9 * singular_values[0])) if len(singular_values) else 0
    return V_transposed[rank:].T


RESTART_COUNT = 64
"""Number of restart configurations of a case; if a solver needs more restarts, they are used again."""
TIGHT_LIMIT_SHARE = 0.3
"""Width of the tight limits of a joint, as a share of its range. With loops, the samples are perturbed by this share of
PERTURBATION_SIZE, and the tight limits enclose the samples."""
MAX_PATH_POINT_COUNT = 25
"""Largest number of points of a path; with few targets paths are shorter, so that two or more targets give two or more
paths."""
PATH_STEP_SHARE = 0.01
"""Step between points of a path, as a share of the joint-space segment to a second random configuration."""
OUT_OF_REACH_DISTANCES = (1.1, 1.6)
"""Range of the first distance from the base that is tested for a target out of reach, as a multiple of the reach."""
MAX_DISTANCE_TEST_COUNT = 12
"""Largest number of distances that are tested for a target out of reach of a mechanism with loops; each is 1.5 times
the previous distance. Without loops the first distance is used."""


@dataclass(frozen=True, slots=True, eq=False)
class CaseSettings:
    """Size and tolerances of a benchmark case.

    Attributes:
        target_count: number of targets; for paths, the largest total number of points.
        branch_target_count, branch_start_count: largest number of targets that are searched for branches, and number of
            starts for each of them.
        tolerance, angle_tolerance: m and rad; a target is reached if its errors are not larger.
    """

    target_count: int
    branch_target_count: int
    branch_start_count: int
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
            configurations that determine the directions of the targets.
        target_poses: (n, tip links, 4, 4), world frame; some tasks use only a part of the pose.
        direction: (3,), axis in the frame of the tip link whose direction must be the same as in the target pose;
            None if the task has no direction.
        uses_rotation: whether the full rotation of the target poses is part of the task.
        starts: (n, nq), start configuration of each target; in a case with paths, the configuration one step before the
            first target of the path.
        restarts: (RESTART_COUNT, nq), further starts, the same for all targets.
        lower, upper: (nq,), joint limits; rad or m.
        limits: the same limits by name, for the argument of `Solver`; None: the limits of the robot.
        path_index: for each target, the index of its path; empty for tasks without paths.
        reference_step: for each path, the largest joint step between consecutive reference configurations, including
            the step from the start; rad, or fraction of the reach.
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


def point_case(robot: BenchmarkRobot, rng: np.random.Generator, settings: CaseSettings) -> BenchmarkCase:
    """Make a case with target positions; any orientation is allowed."""
    return _case_at_configurations(
        robot, "point", rng, settings, sample_configurations(robot, rng, settings.target_count), uses_rotation=False
    )


def direction_case(robot: BenchmarkRobot, rng: np.random.Generator, settings: CaseSettings) -> BenchmarkCase:
    """Make a case with target positions and a direction for an axis of each tip link."""
    configurations = sample_configurations(robot, rng, settings.target_count)
    axis = _direction_axis(robot, configurations)
    return _case_at_configurations(
        robot, "direction", rng, settings, configurations, uses_rotation=False, direction=axis
    )


def pose_case(robot: BenchmarkRobot, rng: np.random.Generator, settings: CaseSettings) -> BenchmarkCase:
    """Make a case with target poses."""
    return _case_at_configurations(
        robot, "pose", rng, settings, sample_configurations(robot, rng, settings.target_count)
    )


def tight_limits_case(robot: BenchmarkRobot, rng: np.random.Generator, settings: CaseSettings) -> BenchmarkCase:
    """Make a case with target poses that are reachable with tight limits, see `TIGHT_LIMIT_SHARE`."""
    space, count = robot.mechanism.space, settings.target_count
    lower, upper = space.lower.copy(), space.upper.copy()
    if robot.mechanism.closures:
        samples = sample_configurations(
            robot, rng, 2 * count + RESTART_COUNT, spread=TIGHT_LIMIT_SHARE * PERTURBATION_SIZE
        )
        is_bounded = np.isfinite(lower) & np.isfinite(upper)
        lower[is_bounded], upper[is_bounded] = samples.min(axis=0)[is_bounded], samples.max(axis=0)[is_bounded]
    else:
        default_limit = np.where(space.rotates[space.scalars_v], math.pi, 1.0)
        scalars = space.scalars_q
        low = np.where(np.isfinite(lower[scalars]), lower[scalars], -default_limit)
        high = np.where(np.isfinite(upper[scalars]), upper[scalars], default_limit)
        width = TIGHT_LIMIT_SHARE * (high - low)
        lower[scalars] = low + rng.random(len(scalars)) * (high - low - width)
        upper[scalars] = lower[scalars] + width
        samples = replace(space, lower=lower, upper=upper).random(rng, 2 * count + RESTART_COUNT)
    names = [
        space.q_names[index] for index in space.scalars_q if np.isfinite(lower[index]) and np.isfinite(upper[index])
    ]
    limits = {name: (lower[space.q_names.index(name)], upper[space.q_names.index(name)]) for name in names}
    case = _case_at_configurations(robot, "tight_limits", rng, settings, samples[:count])
    return replace(
        case,
        starts=samples[count : 2 * count],
        restarts=samples[2 * count :],
        lower=lower,
        upper=upper,
        limits={name: (float(low), float(high)) for name, (low, high) in limits.items()},
    )


def near_singular_case(robot: BenchmarkRobot, rng: np.random.Generator, settings: CaseSettings) -> BenchmarkCase:
    """Make a case with target poses whose reference configurations are nearly singular."""
    return _case_at_configurations(
        robot, "near_singular", rng, settings, sample_near_singular(robot, rng, settings.target_count)
    )


def out_of_reach_case(robot: BenchmarkRobot, rng: np.random.Generator, settings: CaseSettings) -> BenchmarkCase:
    """Make a case with target positions out of reach, which measures how close a solver comes to the targets."""
    case = _case_at_configurations(
        robot,
        "out_of_reach",
        rng,
        settings,
        sample_configurations(robot, rng, settings.target_count),
        uses_rotation=False,
    )
    base = np.array([robot.mechanism.link(tip_link).root.world_position for tip_link in robot.tip_links])
    directions = case.target_poses[:, :, :3, 3] - base
    directions /= np.maximum(np.linalg.norm(directions, axis=-1, keepdims=True), 1e-9)
    distances = robot_reach(robot) * rng.uniform(*OUT_OF_REACH_DISTANCES, (len(directions), 1, 1))
    solver, target_poses = make_case_solver(case, "lm"), case.target_poses.copy()
    for index, start in enumerate(case.starts):
        for _ in range(MAX_DISTANCE_TEST_COUNT):
            target_poses[index, :, :3, 3] = base + distances[index] * directions[index]
            target = _solver_targets(target_poses[index : index + 1], None, False)[0]
            # with loops `robot_reach` may be no bound, so a few solves check that the target is out of reach
            starts = (start, *case.restarts[:3]) if robot.mechanism.closures else ()
            if not any(solver.solve(target, np.array(q)).success for q in starts):
                break
            distances[index] *= 1.5
    return replace(
        case, target_poses=target_poses, targets=_solver_targets(target_poses, None, False), is_reachable=False
    )


def path_case(robot: BenchmarkRobot, rng: np.random.Generator, settings: CaseSettings) -> BenchmarkCase:
    """Make a case with target poses along paths; each solve starts at the solution of the previous target."""
    mechanism, close_loops = robot.mechanism, LoopCloser(robot)
    point_count = min(MAX_PATH_POINT_COUNT, max(1, settings.target_count // 2))
    ends = sample_configurations(robot, rng, 2 * max(1, settings.target_count // point_count))
    configurations: list[Array] = []
    starts: list[Array] = []
    path_index: list[int] = []
    reference_steps: list[float] = []
    for start_q, end_q in zip(ends[::2], ends[1::2], strict=True):
        q, step = [start_q], mechanism.difference(start_q, end_q) * PATH_STEP_SHARE
        for _ in range(point_count):
            q_next = close_loops(mechanism.clamp(mechanism.integrate(q[-1], step)))
            if q_next is None:
                break
            q.append(q_next)
        if len(q) > 1:
            path_q = q[1:]
            configurations += path_q
            starts += [start_q] * len(path_q)
            path_index += [len(reference_steps)] * len(path_q)
            reference_steps.append(max(float(max_joint_step(robot, a, b)) for a, b in pairwise(q)))
    case = _case_at_configurations(robot, "path", rng, settings, np.array(configurations))
    return replace(case, starts=np.array(starts), path_index=tuple(path_index), reference_step=tuple(reference_steps))


TASKS: dict[str, Callable[[BenchmarkRobot, np.random.Generator, CaseSettings], BenchmarkCase]] = {
    "point": point_case,
    "direction": direction_case,
    "pose": pose_case,
    "tight_limits": tight_limits_case,
    "near_singular": near_singular_case,
    "out_of_reach": out_of_reach_case,
    "path": path_case,
}
"""Benchmark tasks: functions that make the case of a robot, by their names in `compare`."""


def make_case(robot: BenchmarkRobot, task: str, seed: int, settings: CaseSettings) -> BenchmarkCase:
    """Make the case of a task on a robot; the case depends only on the arguments, so it is the same for every solver.

    Raises:
        UnknownName: `task` is not in `TASKS`.
    """
    if task not in TASKS:
        raise UnknownName("task", task, TASKS)
    rng = np.random.default_rng([seed, *f"{robot.name}/{task}".encode()])
    return TASKS[task](robot, rng, settings)


def max_joint_step(robot: BenchmarkRobot, q0: Array, q1: Array) -> Array:
    """Return the largest step (...) of a dof between configurations (..., nq); rad, or fraction of the reach."""
    unit = np.where(robot.mechanism.space.rotates, 1.0, robot_reach(robot))
    return np.abs(robot.mechanism.difference(q0, q1) / unit).max(axis=-1)


def start_targets(case: BenchmarkCase) -> Any:
    """Return targets that the first start of a case already meets, for `Solver.solve`."""
    robot = case.robot
    target_poses = robot.mechanism.poses(case.starts[:1], robot.tip_links)
    return _solver_targets(target_poses, case.direction, case.uses_rotation)[0]


def make_case_solver(case: BenchmarkCase, solver: str) -> Solver:
    """Make a solver for a case; `solver` is the name of its method."""
    # no restarts in the solver: the runner measures each attempt separately and chooses the next start
    return Solver(case.robot.mechanism, case.goals, solver=solver, limits=case.limits, restarts=0)


def _case_at_configurations(
    robot: BenchmarkRobot,
    task: str,
    rng: np.random.Generator,
    settings: CaseSettings,
    configurations: Array,
    uses_rotation: bool = True,
    direction: Array | None = None,
) -> BenchmarkCase:
    """Make a case whose targets are the tip link poses at given configurations, with sampled starts.

    Args:
        configurations: (n, nq).
        uses_rotation: whether the full rotation is part of the task.
        direction: (3,), axis in the frame of the tip link for an `AxisGoal`; None: no `AxisGoal`.
    """
    target_poses = robot.mechanism.poses(configurations, robot.tip_links)
    count = len(configurations)
    starts = sample_configurations(robot, rng, count + RESTART_COUNT)
    tolerances: Any = {"tolerance": settings.tolerance, "angle_tolerance": settings.angle_tolerance}
    goals: list[Objective] = []
    for tip_link, X in zip(robot.tip_links, target_poses[0], strict=True):
        if uses_rotation:
            goals.append(PoseGoal(tip_link, X, **tolerances))
            continue
        goals.append(PositionGoal(tip_link, X[:3, 3], **tolerances))
        if direction is not None:
            goals.append(AxisGoal(tip_link, X[:3, :3] @ direction, direction, **tolerances))
    space = robot.mechanism.space
    return BenchmarkCase(
        robot, task, tuple(goals), _solver_targets(target_poses, direction, uses_rotation), configurations,
        target_poses, direction, uses_rotation, starts[:count], starts[count:], space.lower, space.upper,
    )  # fmt: skip


def _solver_targets(target_poses: Array, direction: Array | None, uses_rotation: bool) -> list[Any]:
    """Return the `targets` of `Solver.solve` for each target: an array, or a list of arrays for several goals."""
    targets: list[Any] = []
    for poses in target_poses:
        goal_targets: list[Array] = []
        for X in poses:
            goal_targets.append(np.array(X) if uses_rotation else np.array(X[:3, 3]))
            if direction is not None:
                goal_targets.append(X[:3, :3] @ direction)
        targets.append(goal_targets[0] if len(goal_targets) == 1 else goal_targets)
    return targets


def _direction_axis(robot: BenchmarkRobot, configurations: Array) -> Array:
    """Return the axis of the tip links for the task "direction", in their frames, (3,).

    It is the z axis, or the x axis if each z axis has the same direction in all configurations. In a planar robot, for
    example, z is always perpendicular to the plane.
    """
    directions = robot.mechanism.poses(configurations, robot.tip_links)[..., :3, 2]
    return np.eye(3)[2] if np.ptp(directions, axis=0).max() > 1e-6 else np.eye(3)[0]
