"""Stochastic methods: annealing with a descent after each jump, and memetic evolution with descents of the elites."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np

from mechanik.errors import InvalidArgument, LimitsError, UnknownName
from mechanik.model.configuration_space import Indices
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.method import Method
from mechanik.solver.methods.method_registry import METHODS, find_method, is_default_method
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array
from mechanik.validation import as_number

PROGRESS_WINDOW = 5
"""Number of iterations over which progress is measured, because single iterations of methods with momentum may increase
the cost.
"""
PROGRESS_RATIO = 0.995
"""A descent ends if the ratio of the best cost after a window to that before the window is above this; at this rate the
descent would take thousands of iterations.
"""


def local_method(local: str | Method) -> Method:
    """Return the local method, given its name or an instance.

    Raises:
        InvalidArgument: if `local` is neither a name nor a method.
        UnknownName: if there is no method of this name; "auto" is no local method.
    """
    if not isinstance(local, str | Method):
        raise InvalidArgument(f"local must be the name of a method, such as 'lm', or a Method, not {local!r}")
    if isinstance(local, str) and local not in METHODS:
        raise UnknownName("local method", local, METHODS)
    return local if isinstance(local, Method) else find_method(local)()


def descend_with(problem: LeastSquaresProblem, method: Method, iterations: int, is_patient: bool = False) -> None:
    """Descend with a method until the problem is met or there is little progress, and end at the best state.

    Args:
        iterations: maximum number of iterations; the deadline of the problem may end the descent earlier.
        is_patient: whether to continue if there is little progress.
    """
    if is_default_method(method):
        problem.descend(iterations)  # the whole loop is compiled
        return
    best_x, best_cost = problem.x.copy(), problem.cost
    window_cost = problem.cost
    generator = method.iterate(problem)
    for iteration in range(1, iterations + 1):
        if problem.is_met or next(generator, generator) is generator or not problem.cost < math.inf:
            break
        if problem.deadline < math.inf and time.perf_counter() >= problem.deadline:
            break
        if problem.cost < best_cost:
            best_x[:], best_cost = problem.x, problem.cost
        if iteration % PROGRESS_WINDOW == 0:
            if not is_patient and best_cost > PROGRESS_RATIO * window_cost:
                break
            window_cost = best_cost
    if not problem.is_met and not problem.cost <= best_cost:
        problem.set_state(best_x)


def descent_iterations(iterations: int | None, method: Method, divisor: int) -> int:
    """Return the given number of iterations, or the default of the method divided by `divisor`."""
    return max(1, method.default_iterations // divisor) if iterations is None else iterations


def check_count(value: object, name: str, minimum: int = 1) -> None:
    """Raise `LimitsError` if a value is not an integer of `minimum` or more."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise LimitsError(f"{name} must be an integer of {minimum} or more, not {value!r}")


def check_ratio(value: object, name: str) -> None:
    """Raise `LimitsError` if a value is not a number above 0 and below 1."""
    if isinstance(value, str | bool) or not 0.0 < as_number(value, name) < 1.0:
        raise LimitsError(f"{name} must be above 0 and below 1, not {value!r}")


DESCENT_DIVISOR = 5
"""The default number of iterations of the local method is divided by this for a descent after a jump. A descent from a
new best state is not shortened, since a slow method would otherwise never reach the tolerance.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annealing(Method):
    """Simulated annealing: random jumps of all joints within their limits, each followed by a descent.

    The first iteration is a descent without a jump. The temperature determines the size of a jump and which states are
    accepted: an increase d of the error is accepted with probability exp(-d / temperature). The error is the root of
    the cost: weighted, in rad and characteristic lengths. A new best state gets a longer descent, and the
    solver returns the best state.

    Attributes:
        local: local method, by name or as an object.
        temperature: rad or characteristic lengths; initial temperature, which is the largest motion of a joint in the
            first jump.
        cooling: factor on the temperature after each jump.
        jumps: number of jumps after which the temperature is reset.
        descent: maximum number of iterations of the local method after each jump; five times as many at the start and
            after a new best state. None: a fifth of the default of the local method.
    """

    name: ClassVar[str] = "annealing"
    title: ClassVar[str] = "simulated annealing"
    citation: ClassVar[str] = (
        "S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, Optimization by simulated annealing, Science 220 (1983)"
    )
    default_iterations: ClassVar[int] = 200
    can_diverge: ClassVar[bool] = False
    is_descent: ClassVar[bool] = False

    local: str | Method = "lm"
    temperature: float = 2.0 * math.pi
    cooling: float = 0.85
    jumps: int = 20
    descent: int | None = None

    def __post_init__(self) -> None:
        if local_method(self.local).name == self.name:
            raise LimitsError("local must be another method than annealing, such as 'lm' or 'ccd'")
        if isinstance(self.temperature, str | bool) or not as_number(self.temperature, "temperature") > 0:
            raise LimitsError(f"temperature must be a number above 0, not {self.temperature!r}")
        check_ratio(self.cooling, "cooling")
        check_count(self.jumps, "jumps")
        if self.descent is not None:
            check_count(self.descent, "descent")

    def check(self, problem: LeastSquaresProblem) -> None:
        super(Annealing, self).check(problem)
        local_method(self.local).check(problem)

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        local, rng = local_method(self.local), problem.rng
        descent = descent_iterations(self.descent, local, DESCENT_DIVISOR)
        descend_with(problem, local, DESCENT_DIVISOR * descent, is_patient=True)
        accepted_x, error = problem.x.copy(), math.sqrt(problem.cost)
        best_error = error
        # `run_method` ends an attempt after a small step: report the size of a jump, not the last step of the descent
        problem.step[:] = self.temperature
        yield
        while True:
            temperature = self.temperature
            for _ in range(self.jumps):
                problem.step[:] = jump = random_step(problem, temperature)
                problem.advance()
                descend_with(problem, local, descent)
                if not problem.is_met and problem.cost < best_error * best_error:
                    descend_with(problem, local, DESCENT_DIVISOR * descent, is_patient=True)
                new_error = math.sqrt(problem.cost)
                # drawn even if it is not needed: each jump uses the same number of random numbers
                accepts_increase = rng.random() < math.exp(min(0.0, (error - new_error) / temperature))
                if problem.is_met or new_error < best_error or accepts_increase:
                    accepted_x[:], error = problem.x, new_error
                    best_error = min(best_error, new_error)
                else:
                    problem.set_state(accepted_x)
                temperature *= self.cooling
                problem.step[:] = jump  # for `run_method`, as above
                yield


def random_step(problem: LeastSquaresProblem, size: float) -> Array:
    """Return a uniform random step (n,) of up to `size` in each column, within the limits.

    Units are rad or characteristic lengths. Locked columns stay at 0. The three columns of a spherical joint are a
    rotation vector.
    """
    lower_step, upper_step = np.maximum(problem.lower, -size), np.minimum(problem.upper, size)
    return np.where(problem.free_columns, lower_step + (upper_step - lower_step) * problem.rng.random(problem.n), 0.0)


INERTIA = 0.5
"""Largest share of the first parent's step that is added to the step of a child."""


class Population:
    """Population of states of a problem; initially the present state, followed by random states.

    Attributes:
        x: state of each individual, (N, len(problem.x)).
        cost: cost of each individual, (N,).
        span: range of each column, (n,); 2 pi without limits, in rad or characteristic lengths.
        momentum: step by which each individual was created from its first parent, (N, n).
    """

    def __init__(self, problem: LeastSquaresProblem, count: int) -> None:
        self.problem = problem
        # the other columns are those of spherical joints, whose quaternions are rotated
        self._scalar_columns = np.flatnonzero(problem.scalar_columns)
        self._scalar_x = problem.column_x[self._scalar_columns]
        self._quaternions = problem.subproblem.packed.spherical_columns
        span = problem.upper - problem.lower
        self.span = np.where(np.isfinite(span), span, 2.0 * math.pi)
        self.x, self.cost = np.tile(problem.x, (count, 1)), np.full(count, problem.cost)
        self.momentum = np.zeros((count, problem.n))
        self._start_x = problem.x.copy()
        self.scatter(1)

    def load(self, i: int) -> None:
        """Set the problem to the state of individual `i`."""
        self.problem.set_state(self.x[i])

    def store(self, i: int) -> None:
        """Store the state of the problem as individual `i`."""
        problem = self.problem
        self.x[i], self.cost[i] = problem.x, problem.cost if problem.cost < math.inf else np.inf

    def sort(self) -> None:
        """Sort the individuals by cost."""
        order = np.argsort(self.cost, kind="stable")
        self.x, self.cost, self.momentum = self.x[order], self.cost[order], self.momentum[order]

    def scatter(self, first_index: int) -> None:
        """Replace all individuals from `first_index` on by random states, uniform within the limits or over `span`."""
        problem, rng = self.problem, self.problem.rng
        count = len(self.x) - first_index
        problem.x[:] = self._start_x
        lower, upper, span = problem.lower, problem.upper, self.span
        lower_step = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - span, -0.5 * span))
        upper_step = np.where(np.isfinite(upper), upper, lower_step + span)
        steps = lower_step + (upper_step - lower_step) * rng.random((count, problem.n))
        for _, column in self._quaternions:
            rotation_vectors = quaternion.log(quaternion.normalize(rng.standard_normal((count, 4))))
            steps[:, column : column + 3] = rotation_vectors / problem.scale[column : column + 3]
        self._move(range(first_index, len(self.x)), np.broadcast_to(self._start_x, (count, len(self._start_x))), steps)
        self.momentum[first_index:] = 0.0

    def breed(self, elite_count: int) -> None:
        """Replace all but the first `elite_count` individuals by children; the population must be sorted."""
        rng, N, n = self.problem.rng, len(self.x), self.problem.n
        count = N - elite_count
        extinction = self._extinction()
        probabilities = np.arange(N, 0, -1) / (N * (N + 1) / 2)  # better individuals have more children
        parents = np.searchsorted(np.cumsum(probabilities), rng.random((3, count))).clip(max=N - 1)
        first_parents, second_parents, best_parents = parents[0], parents[1], parents.min(axis=0)
        crossover = self._difference(first_parents, second_parents) * rng.random((count, n))
        inertia = self.momentum[first_parents] * (INERTIA * rng.random((count, 1)))
        adoption = self._difference(first_parents, best_parents) * (0.5 * rng.random((count, 1)))
        mutation_strength = 0.5 * (extinction[first_parents] + extinction[second_parents])[:, None]
        is_mutated = rng.random((count, n)) < (mutation_strength * (n - 1) + 1) / n
        mutation = np.where(is_mutated, mutation_strength * self.span * (rng.random((count, n)) - 0.5), 0.0)
        steps = crossover + inertia + adoption + mutation
        self._move(range(elite_count, N), self.x[first_parents], steps)
        self.momentum[elite_count:] = steps
        self.momentum[:elite_count] = 0.0

    def _extinction(self) -> Array:
        """Return the extinction factor of Starke, (N,): 0 for the best to 1 for the worst, by cost and rank.

        The population must be sorted by cost.
        """
        error = np.sqrt(np.minimum(self.cost, 1e300))
        rank = np.arange(len(error)) / (len(error) - 1)
        return (error + error[0] * (rank - 1.0)) / max(float(error[-1]), 1e-300)

    def _difference(self, a: Indices, b: Indices) -> Array:
        """Return the steps from individuals `a` to individuals `b`, (m, n)."""
        x_a, x_b = self.x[a], self.x[b]
        steps = np.zeros((len(x_a), self.problem.n))
        steps[:, self._scalar_columns] = (x_b[:, self._scalar_x] - x_a[:, self._scalar_x]) / self.problem.scale[
            self._scalar_columns
        ]
        for k, column in self._quaternions:
            rotation = quaternion.multiply(quaternion.conjugate(x_a[:, k : k + 4]), x_b[:, k : k + 4])
            steps[:, column : column + 3] = quaternion.log(rotation) / self.problem.scale[column : column + 3]
        return steps

    def _move(self, indices: range, starts: Array, steps: Array) -> None:
        """Set each individual of `indices` to its start plus its step, clamped to the limits."""
        problem = self.problem
        is_locked = ~problem.free_columns
        if is_locked.any():
            steps[:, is_locked] = 0.0
        starts = starts.copy()  # parents may be among the replaced individuals
        for i, x, step in zip(indices, starts, steps, strict=True):
            problem.x[:], problem.step[:] = x, step
            problem.advance()
            self.store(i)


BEST_DESCENT_FACTOR = 10
"""Ratio of the descent iterations of the best individual to those of another elite, so that the best can converge."""
IMPROVEMENT_RATIO = 0.99
"""A generation makes progress if the ratio of its best cost to the best cost at the last progress is below this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolution(Method):
    """Memetic evolution: an iteration is a generation, and its result is the best state so far.

    The first iteration is a descent from the start. If it does not meet the goals, a population is created from its
    result and random states. The elites of a generation descend and survive; children replace all other individuals.
    Two parents are drawn by rank, and each value of the child is drawn between their values. A share of the
    step of the first parent and a step towards the best of three drawn individuals (adoption) are added. Values mutate
    more often and farther if the parents are close to extinction, that is, if their cost is high within the population.
    If the best individual no longer improves, random states replace all individuals; only the best state so far is
    stored. All steps are on the configuration manifold: quaternions are rotated.

    If there are loops, the local method closes them. The best state so far is the state of lowest cost among those with
    closed loops, or among all if there are none; the population is sorted by cost alone.

    Attributes:
        population: number of individuals.
        elites: number of individuals that descend and survive.
        local: local method, by name or as an object.
        descent: iterations of the local method for an elite in a generation; ten times as many for the best. None: 4 %
            of the default of the local method.
        patience: generations without progress after which the population is replaced.
    """

    name: ClassVar[str] = "evolution"
    title: ClassVar[str] = "memetic evolution"
    citation: ClassVar[str] = (
        "S. Starke, N. Hendrich, J. Zhang, A memetic evolutionary algorithm for real-time articulated kinematic motion,"
        " IEEE CEC 2017; P. Ruppel, N. Hendrich, S. Starke, J. Zhang, Cost functions to specify full-body motion and"
        " multi-goal manipulation tasks, ICRA 2018"
    )
    default_iterations: ClassVar[int] = 100
    can_diverge: ClassVar[bool] = False
    is_descent: ClassVar[bool] = False

    population: int = 16
    elites: int = 3
    local: str | Method = "lm"
    descent: int | None = None
    patience: int = 2

    def __post_init__(self) -> None:
        if local_method(self.local).name == self.name:
            raise LimitsError("local must be another method than evolution, such as 'lm' or 'lbfgsb'")
        check_count(self.population, "population", 3)
        for name in ("elites", "patience") if self.descent is None else ("elites", "descent", "patience"):
            check_count(getattr(self, name), name)
        if self.elites >= self.population:
            raise LimitsError(f"elites must be fewer than the population, {self.population}, not {self.elites}")

    def check(self, problem: LeastSquaresProblem) -> None:
        super(Evolution, self).check(problem)
        local_method(self.local).check(problem)

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        local = local_method(self.local)
        descent = descent_iterations(self.descent, local, 25)
        descend_with(problem, local, BEST_DESCENT_FACTOR * descent)
        best_merit, best_x = _merit(problem), problem.x.copy()
        # `run_method` ends an attempt after a small step: report a range of motion, not the last step of the descent
        problem.step[:] = math.pi
        yield
        if problem.n == 0:  # no columns to sample
            return
        population = Population(problem, self.population)
        while True:
            idle_generations, last_cost = 0, math.inf
            population.sort()
            while idle_generations < self.patience:
                for i in range(self.elites):
                    population.load(i)
                    descend_with(problem, local, descent * (BEST_DESCENT_FACTOR if i == 0 else 1))
                    population.store(i)
                    if (new_merit := _merit(problem)) < best_merit:
                        best_merit, best_x = new_merit, problem.x.copy()
                    if problem.is_met:
                        break
                if not problem.is_met:
                    problem.set_state(best_x)
                problem.step[:] = population.span  # for `run_method`, as above
                yield
                population.sort()
                idle_generations, last_cost = (
                    (0, population.cost[0])
                    if population.cost[0] < IMPROVEMENT_RATIO * last_cost
                    else (idle_generations + 1, last_cost)
                )
                population.breed(self.elites)
                population.sort()
            population.scatter(0)


def _merit(problem: LeastSquaresProblem) -> tuple[bool, float]:
    """Return the sort key of the present state: closed loops first, then by cost."""
    cost = problem.cost
    return not problem.are_loops_closed(), cost if np.isfinite(cost) else math.inf
