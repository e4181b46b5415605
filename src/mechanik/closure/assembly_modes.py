"""Search for all assembly modes of a mechanism whose driven joints have given values.

The search descends from many starts. A mode that few starts lead to may also be found from other modes: the search
releases one driven joint and follows the resulting closed curve, also through dead points. Each point of the curve at
which the released joint has its given value again is a mode.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from mechanik.closure.assemble_loops import as_start_state
from mechanik.closure.bifurcation import start_continuation
from mechanik.closure.continuation import ContinuationProblem
from mechanik.closure.driven_joints import DrivenJoints, InputValues, as_inputs, shortest_closing_angles
from mechanik.closure.loop_system import LoopSystem
from mechanik.closure.spinning_legs import SpinningLegs, find_spinning_legs
from mechanik.errors import LimitsError, StructureError
from mechanik.model import Mechanism
from mechanik.objectives import JointValues, RestPose
from mechanik.solver import Solver
from mechanik.solver.request import SolveRequest
from mechanik.solver.search.all_solutions import collect_solutions
from mechanik.solver.search.constraint_system import Mask
from mechanik.solver.search.search_context import SearchContext
from mechanik.solver.search.solution_set import KNOWN_SOLUTION_DISTANCE, Indices, SolutionPool
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number, as_rng, format_count
from mechanik.value_object import ValueObject

STARTS_PER_BLOCK = 64
"""Number of starts in the first block; later blocks have up to four times as many."""
ATTEMPTS_WITHOUT_NEW_MODE = 120
"""The search from starts ends if at least this number of converged attempts since the last new mode found no other
mode, and if these are at least half of all converged attempts. A larger number costs time and makes it less likely that
a mode is missed: for Dietmaier's platform, which has 40 modes, 1 attempt in 4 converges, and the rarest mode needs 3000
starts.
"""
MIN_HITS = 2
"""A mode that was found less often is rare."""
CURVES_WITHOUT_NEW_MODE = 2
"""Number of successive curves without a new mode after which the search along curves ends, if no mode is rare."""
MAX_MODES_WITHOUT_CURVES = 2
"""No curves are followed if there are at most this many modes and none of them is rare."""
MAX_MULTI_DOF_MODES = 64
"""The search from starts ends if it has found more than this number of configurations with two or more free dofs."""
MAX_CURVE_STEPS = 2000
"""Maximum number of steps along a curve."""


class ModeSearch:
    """Search for assembly modes, from starts and along curves, with counters of its progress.

    Attributes:
        context: generator of starts, functions that descend from them, and the constraints.
        loops: the loop equations.
        values: values of the driven joints by name, m or rad.
        deadline: time of `time.perf_counter` after which the search stops, s.
        legs: the legs that may rotate about their own line; configurations that differ in these rotations alone are one
            mode.
        pool: the distinct modes; with legs, a configuration near `q0` for each mode.
        hit_counts: how often each isolated mode (without free dofs) was found, from starts and along curves.
        attempt_count: number of attempts, one for each start.
        converged_count: number of attempts that converged to closed loops.
        curve_count: number of curves that were followed.
    """

    def __init__(
        self,
        context: SearchContext,
        loops: LoopSystem,
        values: Mapping[str, Array],
        deadline: float,
        legs: SpinningLegs,
    ) -> None:
        self.context, self.loops, self.values, self.deadline, self.legs = context, loops, values, deadline, legs
        self.pool = SolutionPool(context.constraints)
        self._closing_angles = shortest_closing_angles(loops.mechanism, values)
        self.hit_counts: list[int] = []
        self.attempt_count = self.converged_count = self.curve_count = 0

    @property
    def rare_count(self) -> int:
        """Number of modes that were found only once."""
        return sum(hits < MIN_HITS for hits in self.hit_counts)

    @property
    def redundancy(self) -> int:
        """Largest number of free dofs of a mode, without free rotations of legs."""
        return max(self.pool.redundancy - self.legs.spin_count, 0)

    def search_from_starts(self, max_attempts: int, rng: np.random.Generator) -> None:
        """Descend from up to `max_attempts` starts, in blocks, until new modes are unlikely."""
        converged_count_at_last_mode = 0
        while self.attempt_count < max_attempts and self._has_time():
            count = min(
                max(STARTS_PER_BLOCK, min(self.attempt_count, 4 * STARTS_PER_BLOCK)), max_attempts - self.attempt_count
            )
            starts = self.context.starts(self.attempt_count, count, rng)
            if self.attempt_count == 0:
                starts[0] = self.context.q0
            end_points = self.context.descend(starts)
            self.attempt_count += count
            self.converged_count += len(end_points)
            if self.add(end_points):
                converged_count_at_last_mode = self.converged_count
            if (
                self.converged_count - converged_count_at_last_mode
                >= max(ATTEMPTS_WITHOUT_NEW_MODE, converged_count_at_last_mode)
                or len(self.pool.multi_dof_solutions) > MAX_MULTI_DOF_MODES
            ):
                break

    def follow_curves(self) -> None:
        """Follow curves, from the rarest modes first, until no mode is rare and new modes are unlikely.

        The search also ends if a curve was followed from each mode for each driven joint.
        """
        names, followed_curves = list(self.values), set[tuple[int, str]]()
        curves_without_new_mode = 0
        while self._has_time() and (
            self.rare_count
            or (len(self.hit_counts) > MAX_MODES_WITHOUT_CURVES and curves_without_new_mode < CURVES_WITHOUT_NEW_MODE)
        ):
            candidates = [
                (hits, k)
                for k, hits in enumerate(self.hit_counts)
                if any((k, name) not in followed_curves for name in names)
            ]
            if not candidates:
                break
            k = min(candidates)[1]
            name = next(name for name in (*names[k % len(names) :], *names) if (k, name) not in followed_curves)
            followed_curves.add((k, name))
            self.curve_count += 1
            curves_without_new_mode = (
                0
                if self.add(self._modes_on_curve(self.pool.isolated_solutions.q[k], name))
                else curves_without_new_mode + 1
            )

    def add(self, end_points: Array) -> int:
        """Add end points of descents, or modes on a curve, (K, nq) to the pool; return the number of new modes."""
        constraints, pool = self.context.constraints, self.pool
        end_points = self._count_known_modes(end_points)
        if not len(end_points):
            return 0
        polished_q, is_valid = constraints.polish(end_points, self.context.q0)
        polished_q = polished_q[is_valid]
        if not self.legs:
            new_count = pool.add(polished_q)
        else:
            is_isolated = constraints.redundancy(polished_q) <= self.legs.spin_count
            new_count = pool.add(polished_q[~is_isolated])
            new_q = polished_q[is_isolated][self._first_of_each_mode(polished_q[is_isolated])]
            pool.isolated_solutions.q = np.concatenate([pool.isolated_solutions.q, new_q])
            new_count += len(new_q)
        self.hit_counts += [0] * (len(pool.isolated_solutions.q) - len(self.hit_counts))
        for k, mode in enumerate(pool.isolated_solutions.q):
            self.hit_counts[k] += int(self.is_same_mode(polished_q, mode).sum())
        return new_count

    def is_same_mode(self, q: Array, mode: Array) -> Mask:
        """Return whether configurations (K, nq) are the same mode as `mode` (nq,), as a mask (K,)."""
        if not self.legs:
            return self.pool.isolated_solutions.is_same(q, mode)
        return self._distances(q, mode[None])[:, 0] < KNOWN_SOLUTION_DISTANCE

    def restore_legs(self) -> None:
        """Move the legs of each mode nearer to `q0`, by a descent that starts with the legs as in `q0`."""
        if self.legs and len(self.hit_counts):
            columns = self.legs.columns
            starts = np.array(self.pool.isolated_solutions.q)
            starts[:, columns] = self.context.q0[columns]
            self._keep_nearer_legs(self.context.descend(starts))

    def _count_known_modes(self, end_points: Array) -> Array:
        """Count the end points (K, nq) that are at a known mode, and return the others."""
        modes = self.pool.isolated_solutions.q
        if not len(modes) or not len(end_points):
            return end_points
        distances = self._distances(end_points, modes)
        nearest_indices = distances.argmin(axis=1)
        is_known = distances[np.arange(len(end_points)), nearest_indices] < KNOWN_SOLUTION_DISTANCE
        for k in nearest_indices[is_known].tolist():
            self.hit_counts[k] += 1
        if self.legs:
            self._keep_nearer_legs(end_points[is_known])
        return end_points[~is_known]

    def _keep_nearer_legs(self, end_points: Array) -> None:
        """Let the end points (K, nq) that are nearer to `q0` replace the configuration of their mode."""
        constraints, q0, modes = self.context.constraints, self.context.q0, self.pool.isolated_solutions.q
        mode_indices = self._distances(end_points, modes).argmin(axis=1)
        is_nearer = constraints.distance(q0, constraints.unwrap(end_points, q0)[0]) < (
            constraints.distance(q0, modes[mode_indices]) - KNOWN_SOLUTION_DISTANCE
        )
        polished_q, is_valid = constraints.polish(end_points[is_nearer], q0)
        for q, k in zip(polished_q[is_valid], mode_indices[is_nearer][is_valid].tolist(), strict=True):
            if self.is_same_mode(q[None], modes[k])[0] and constraints.distance(q0, q) < constraints.distance(
                q0, modes[k]
            ):
                modes[k] = q

    def _distances(self, q: Array, modes: Array) -> Array:
        """Return the largest difference (K, M) of configurations (K, nq) and modes (M, nq), or of their poses."""
        if not self.legs:
            return np.abs(self.context.constraints.wrapped_difference(q[:, None], modes[None])).max(axis=2)
        length_unit = self.context.constraints.length_unit
        keys, mode_keys = self.legs.pose_key(q, length_unit), self.legs.pose_key(modes, length_unit)
        return np.abs(keys[:, None] - mode_keys[None]).max(axis=2, initial=0.0)

    def _first_of_each_mode(self, q: Array) -> list[int]:
        """Return the indices of the configurations (K, nq) that are another mode than all earlier ones."""
        is_same = self._distances(q, q) < KNOWN_SOLUTION_DISTANCE
        return [k for k in range(len(q)) if not is_same[k, :k].any()]

    def _modes_on_curve(self, q: Array, name: str) -> Array:
        """Return the modes (K, nq) on the curve through `q` along which the driven joint `name` is free."""
        # the path parameter s is zero where the joint has its given value; the goal at the end of the path is arbitrary
        curve_values = {**self.values, name: self.values[name] + 1.0}
        problem = ContinuationProblem(
            self.loops,
            DrivenJoints(self.loops, curve_values, q, ignore_limits=True, closing_angles=self._closing_angles),
        )
        modes: list[Array] = []
        for sign in (1.0, -1.0):
            continuation = start_continuation(problem, q)
            if continuation.stop_reason == "conflict" or continuation.redundancy:
                break
            continuation.tangents[0], continuation.ignore_limits, continuation.stop_reason = (
                sign * continuation.tangent,
                True,
                "",
            )
            curve_points = continuation.trace_closed_curve(MAX_CURVE_STEPS, period=problem.inputs.period)
            modes += [point.q for point in curve_points]
            if not continuation.stop_reason:
                break
        return np.where(self.context.is_fixed, self.context.q0, np.array(modes).reshape(-1, len(q)))

    def _has_time(self) -> bool:
        return time.perf_counter() < self.deadline


MAX_ATTEMPTS = 4000
"""Default of the maximum number of attempts."""
SELF_MOTION_SAMPLES = 8
"""Number of configurations returned for each self-motion, if the driven joints leave dofs free."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AssemblyModes(ValueObject):
    """Distinct configurations with closed loops, driven joints at their values and all joints inside their limits.

    Configurations that differ by full rotations are the same mode. So are configurations that differ only in the
    rotation of legs about their own line: of a rod or linear actuator between two spherical joints, which rotates
    freely, or between a universal and a spherical joint, which can be turned over. There is no proof that all modes
    were found.

    Attributes:
        q: (k, nq) configurations, nearest to `q0` first; for each mode the one found whose legs are nearest to `q0`.
        distance: (k,) distance from `q0`: the Euclidean norm of the joint differences, rad and m.
        hit_counts: (k,) how often each mode was found, from starts and along curves between modes; 1 for samples of a
            self-motion.
        redundancy: largest number of dofs that the driven joints leave free at a mode, without free rotations of legs.
            0: all modes are isolated points; else `q` has samples of each self-motion.
        explanation: how the modes were found, or why there is none.
        attempts: number of descents, each from another start.
        chance_of_more: estimated probability that the next converged attempt leads to a new mode (I. J. Good 1953): the
            number of modes that were found once, at least 3, divided by the number of converged attempts, at least 3.
            0 if input values are outside the joint limits.
        legs: names of the links of the legs, whose rotation does not distinguish modes.

    Example:
        >>> modes = mk.gallery.four_bar().assembly_modes({"crank_joint": 1.2})
        >>> len(modes), modes.q.round(2).tolist()
        (2, [[1.2, -0.79, 1.71], [1.2, -2.11, 4.07]])
    """

    q: Array
    distance: Array
    hit_counts: Indices
    redundancy: int
    explanation: str
    attempts: int
    chance_of_more: float
    legs: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.q)

    def __iter__(self) -> Iterator[Array]:
        return iter(self.q)

    def __getitem__(self, k: int) -> Array:
        return self.q[k]

    def __repr__(self) -> str:
        if not len(self):
            return f"<no assembly mode: {self.explanation}>"
        samples = f", samples of self-motions with {format_count(self.redundancy, 'dof')}" if self.redundancy else ""
        return f"<{format_count(len(self), 'assembly mode')}{samples}: {self.explanation}>"


def assembly_modes(
    mechanism: Mechanism,
    inputs: InputValues | None = None,
    q0: ArrayLike | None = None,
    *,
    limit: int | None = None,
    max_attempts: int | None = None,
    max_seconds: float | None = None,
    rng: np.random.Generator | None = None,
) -> AssemblyModes:
    """Find all assembly modes; see `Mechanism.assembly_modes`."""
    for name, value in (("limit", limit), ("max_attempts", max_attempts)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or value < 1):
            raise LimitsError(f"{name} must be an integer of 1 or more, not {value!r}")
    deadline = np.inf
    if max_seconds is not None:
        seconds = as_number(max_seconds, "max_seconds")
        if seconds <= 0:
            raise LimitsError(f"max_seconds must be above 0 s, not {seconds:g} s")
        deadline = time.perf_counter() + seconds
    if not mechanism.closures and not mechanism.joint_constraints:
        raise StructureError("the mechanism has no loop and no joint constraint; set the joint values directly")
    values = as_inputs(mechanism, inputs)
    start_rng = np.random.default_rng(0) if rng is None else as_rng(rng)
    start_q = as_start_state(mechanism, q0).q
    loops = LoopSystem(mechanism)
    driven_joints = DrivenJoints(loops, values, start_q)
    if driven_joints.clamped_names:
        explanation = (
            f"input values are outside the limits of {', '.join(driven_joints.clamped_names)}; "
            "change the inputs or the limits"
        )
        return _make_modes(
            mechanism, np.zeros((0, mechanism.nq)), start_q, np.zeros(0, dtype=np.int64), 0, explanation, 0, 0.0
        )
    start_q = driven_joints.with_values(start_q, driven_joints.path_length)
    driven_names = [mechanism.space.v_names[v] for v in driven_joints.driven_dofs()]
    objective = JointValues(values, angle_mode="exact") if values else RestPose(start_q)
    solver = Solver(mechanism, objective, lock=driven_names or None)
    with solver.pipeline.search_context(SolveRequest(q0=start_q)) as context:
        legs = find_spinning_legs(mechanism, values)
        search = ModeSearch(context, loops, values, deadline, legs)
        search.search_from_starts(max_attempts or MAX_ATTEMPTS, start_rng)
        # curves are followed along a single free dof: not where a leg can also rotate
        is_isolated = not search.redundancy and not legs.spin_count
        if values and is_isolated and (limit is None or len(search.hit_counts) < limit):
            search.follow_curves()
        search.restore_legs()
        q, components, _ = collect_solutions(search.pool, start_q, SELF_MOTION_SAMPLES)
        hits = np.array([_hit_count(search, mode) for mode in q], dtype=np.int64)
        order = np.argsort(context.constraints.distance(start_q, q), kind="stable")[:limit]
    chance = max(search.rare_count, 3) / max(search.converged_count, 3)
    explanation = _explanation(search, len(q), len(set(components.tolist())))
    return _make_modes(
        mechanism,
        q[order],
        start_q,
        hits[order],
        search.redundancy,
        explanation,
        search.attempt_count,
        chance,
        legs.links,
    )


def _hit_count(search: ModeSearch, q: Array) -> int:
    modes = search.pool.isolated_solutions.q
    return next(
        (hits for hits, mode in zip(search.hit_counts, modes, strict=True) if search.is_same_mode(q[None], mode)[0]), 1
    )


def _explanation(search: ModeSearch, count: int, component_count: int) -> str:
    if not count:
        return (
            f"no descent from {format_count(search.attempt_count, 'start')} closed the loops with these inputs inside "
            "the limits; try other inputs or more starts"
        )
    text = f"from {format_count(search.attempt_count, 'start')}, of which {search.converged_count} led to closed loops"
    if search.curve_count:
        text += f", and along {format_count(search.curve_count, 'curve')} through these modes"
    if search.legs:
        text += "; configurations that differ in the rotation of legs alone are one mode"
    if search.redundancy:
        return f"{text}; {format_count(component_count, 'connected self-motion')}"
    return f"{text}; {format_count(search.rare_count, 'mode')} found only once" if search.rare_count else text


def _make_modes(
    mechanism: Mechanism,
    q: Array,
    q0: Array,
    hits: Indices,
    redundancy: int,
    explanation: str,
    attempts: int,
    chance: float,
    legs: tuple[str, ...] = (),
) -> AssemblyModes:
    distances = np.linalg.norm(mechanism.difference(q0, q), axis=-1) if len(q) else np.zeros(0)
    return AssemblyModes(q, distances, hits, redundancy, explanation, attempts, chance, legs)
