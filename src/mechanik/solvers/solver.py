"""The default solver: damped Gauss-Newton on the manifold, with limits in the step, loops shut and strict levels.

The method is that of Levenberg (1944) and Marquardt (1963) in the space that the closures and all higher levels
leave free, with an active set for the limits; `kernels/descent.py` is the loop and `kernels/bounded_step.py` the step.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from mechanik import kernels
from mechanik.errors import ObjectiveError, ShapeError, WrongKind
from mechanik.kernels.problem import LOCKED
from mechanik.kernels.solver_state import ATTEMPTS_OUT, DONE, ITERATIONS_OUT, SUCCESS
from mechanik.mechanism import Frame, Mechanism
from mechanik.mechanism.door import as_number
from mechanik.objectives import Objective, RestPose, jacobian, residual
from mechanik.objectives.aimed import Aimed
from mechanik.objectives.objective import Definition, as_objectives
from mechanik.objectives.relation import Kind, Relation
from mechanik.program import Part, Settings, compile_program, rewrite, same_shape
from mechanik.solvers.freedoms import Names, as_bounds, as_mask, as_weights
from mechanik.solvers.graph import graph_objectives
from mechanik.solvers.new_targets import Targets, aimed, part_of_the_way
from mechanik.solvers.options import Options, check_names
from mechanik.solvers.running import descent, run, set_options
from mechanik.solvers.shortcut import find_shortcut, put_pose, with_ends
from mechanik.solvers.solution import Solution
from mechanik.solvers.starts import halton_starts, random_starts
from mechanik.spatial.array import Array, ArrayLike

STARTS_AT_A_TIME = 128
NOTHING_MORE = (None, None, None, None)
NO_RELATION = Relation(Kind.POSE, ())
"""Stands for the rows of closures where a part's relations are listed: no function is among them."""


class Solver:
    """Solves for a mechanism's configuration: prepared once, called often.

    With a mechanism, it never moves it: `solve` returns a `Solution`, and `mechanism.apply(solution)` moves it.
    With the roots of a graph (frames), the joints hold their new values after `solve`.

    Args:
        mechanism: or the roots of a graph of frames.
        goals: objectives. None: what the graph itself asks for: its goals, the targets and the rest poses of its
            joints.
        active: joints (`elbow`) or freedoms (`base.X`) that may move; None: all that can help.
        lock: joints or freedoms that may not move.
        limits: by joint or freedom, (lower, upper) in place of the mechanism's.
        weights: by the name of an objective, a factor on its weight; by joint or freedom, how reluctantly it moves.
        rest: where to go as far as nothing else is asked: q, or values by name, or True: the joints' own rest poses.
        options: see `Options`; each may be given to a single call as well.
    """

    def __init__(
        self,
        mechanism: Mechanism | Frame | Iterable[Frame],
        goals: Objective | Iterable[Objective] | None = None,
        *,
        active: Names | str | None = None,
        lock: Names | str | None = None,
        limits: Mapping[str, ArrayLike] | None = None,
        weights: Mapping[str, float] | None = None,
        rest: ArrayLike | Mapping[str, ArrayLike] | bool | None = None,
        **options: Any,
    ) -> None:
        check_names(options)
        self.options = Options(**options)
        if isinstance(mechanism, str):
            raise WrongKind(f"a solver takes a mechanism, not the name {mechanism!r}; mk.load reads a file into one")
        if weights is not None and not isinstance(weights, Mapping):
            raise WrongKind(f"weights are given by name, as in {{'elbow': 2}}, not as {weights!r}")
        self._moves_joints = not isinstance(mechanism, Mechanism)
        self.mechanism = mechanism if isinstance(mechanism, Mechanism) else Mechanism(mechanism)
        self._given = None if goals is None else as_objectives(goals)
        if self._given == ():
            raise ObjectiveError(
                "nothing is asked for: the list of goals is empty. To do no more than shut loops, leave the goals out"
            )
        self._active, self._lock, self._limits, self._weights, self._rest = (
            active,
            lock,
            limits,
            dict(weights or {}),
            rest,
        )
        self._one_at_a_time = threading.Lock()
        self._objectives: tuple[Objective, ...] = ()
        kernels.load("descent")  # now, so that the first solve is as fast as any
        self._compile(self._wanted())

    def __repr__(self) -> str:
        return (
            f"<solver of {self.mechanism!r}: {len(self._objectives)} objectives in {len(self._program.parts)} chains>"
        )

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What is asked for, as the solver was made or as the graph stands."""
        return self._objectives

    # ---- solving ----------------------------------------------------------------------------

    def solve(
        self,
        targets: Targets | None = None,
        q0: ArrayLike | None = None,
        *,
        lock: Names | str | None = None,
        limits: Mapping[str, ArrayLike] | None = None,
        rng: np.random.Generator | None = None,
        feasible: Callable[[Array], bool] | None = None,
        history: bool = False,
        **options: Any,
    ) -> Solution:
        """
        Args:
            targets: new targets for this call: one for the only objective, or by objective's name, or as many as
                there are objectives, None where one stays. Whatever the objective's `at` takes.
            q0: where to start, (nq,); the mechanism's present configuration if not given.
            lock, limits: for this call, besides those of the solver.
            rng: for random restarts; without it restarts follow Halton's sequence, the same each time.
            feasible: called with a solution's q; if it says no, the search goes on from the next start.
            history: whether to keep the error after each iteration.
            options: any of `Options`, for this call.
        """
        if (
            self._shortcut is not None
            and Frame.edits == self._edits
            and type(q0) is np.ndarray
            and q0.shape == self._shape
            and not (options or history)
            and (lock, limits, rng, feasible) == NOTHING_MORE
        ):
            begun = time.perf_counter()
            q = np.empty(self._shape)
            with self._one_at_a_time:
                target = self._shortcut(targets, q0)
                if target is not None:
                    try:
                        starts = self._starts if self._kept_starts is None else self._kept_starts
                        code = descent.search(self._ints, self._floats, target, q0, starts, q)
                    except TypeError:  # not a contiguous array of float64
                        code = None
                    if code == DONE:
                        self._is_aimed = True
                        asked = targets if isinstance(targets, float) else targets.copy()
                        return Solution(self, asked, q, (self._out.copy(),), time.perf_counter() - begun)
        check_names(options)
        with self._one_at_a_time:
            return self._solve(targets, q0, lock, limits, rng, feasible, history, options)

    def solve_nearby(
        self, max_deviation: float, targets: Targets | None = None, q0: ArrayLike | None = None, **options: Any
    ) -> Solution:
        """As `solve`, with no freedom farther than `max_deviation` (m and rad) from q0; restarts stay as near."""
        reach = as_number(max_deviation, "max_deviation")
        if reach < 0:
            raise ShapeError(f"max_deviation cannot be below 0, but is {reach:g}")
        check_names(options)
        with self._one_at_a_time:
            return self._solve(targets, q0, None, None, None, None, False, options, nearby=reach)

    def step(self, targets: Targets | None = None, q0: ArrayLike | None = None, **options: Any) -> Solution:
        """One iteration from q0, for animation and teaching; never worse than q0."""
        check_names(options)
        once = {**options, "max_iterations": 1, "kick": 0.0, "restarts": 0}
        with self._one_at_a_time:
            return self._solve(targets, q0, None, None, None, None, False, once)

    # ---- reading ----------------------------------------------------------------------------

    def residual(self, q: ArrayLike | None = None, definition: Definition = "mechanik") -> Array:
        """Of all objectives, one below the other, (m,), in m and rad, without weights."""
        self._refresh()
        return residual(self._objectives, self.mechanism, self.mechanism.q if q is None else q, definition)

    def jacobian(self, q: ArrayLike | None = None, definition: Definition = "mechanik") -> Array:
        """Of `residual` by a step v, (m, nv)."""
        self._refresh()
        return jacobian(self._objectives, self.mechanism, self.mechanism.q if q is None else q, definition)

    # ---- inside -----------------------------------------------------------------------------

    def _wanted(self) -> tuple[Objective, ...]:
        given, options = self._given, self.options
        found = graph_objectives(self.mechanism, options.tolerance, options.angle_tolerance) if given is None else given
        if self._rest is None or self._rest is False:
            return found
        return (*found, RestPose(None if self._rest is True else self._rest, name="rest"))

    def _relations(self, objectives: Sequence[Objective], q: Array | None) -> list[tuple[Relation, ...]]:
        """The rows of all objectives; angles that may be any of several are taken as they look from q."""
        mechanism, bounds = self.mechanism, self._bounds
        return [
            one.nearest(mechanism, q, *bounds) if isinstance(one, Aimed) and q is not None else one.relations(mechanism)
            for one in objectives
        ]

    def _compile(self, objectives: tuple[Objective, ...], relations: list[tuple[Relation, ...]] | None = None) -> None:
        mechanism = self.mechanism
        self._revision, self._edits = mechanism.revision, Frame.edits
        self._bounds = as_bounds(mechanism, self._limits)
        active = as_mask(mechanism, self._active, True)
        if self._lock is not None:
            active &= ~as_mask(mechanism, self._lock, False)
        self._objectives = objectives
        self._rows = self._relations(objectives, None) if relations is None else relations
        factors, ease = as_weights(mechanism, objectives, self._weights)
        settings = Settings(
            active.tolist(), factors, ease.tolist(), self.options.position_weight, self.options.rotation_weight
        )
        self._program = compile_program(mechanism, objectives, self._rows, settings)
        self._moving = np.zeros(mechanism.nv, dtype=np.bool_)
        for part in self._program.parts:
            self._moving |= part.moving
        self._blocks = [
            [
                self._rows[owner][i] if owner >= 0 else NO_RELATION
                for owner, i in zip(part.owners, part.numbers, strict=True)
            ]
            for part in self._program.parts
        ]
        self._is_aimed = False
        self._tables: dict[int, Array] = {}
        self._set_up()
        self._shape = (mechanism.nq,)
        self._shortcut = None
        if not self._moves_joints and self.options.max_seconds == np.inf:
            self._shortcut = find_shortcut(self._program, objectives, self._rows, *self._bounds)
        if self._shortcut is not None:
            packed = self._program.parts[0].packed
            self._ints, self._floats, self._out = packed.ints, packed.floats, packed.at["out"]
            self._kept_starts: Array | None = None

    def _set_up(self) -> None:
        """Bounds and options as the solver was made."""
        program, options = self._program, self.options
        for part in program.parts:
            set_options(part, options, program.size)
            self._bound(part, *self._bounds)
            part.packed.at["ban"][:] = 0
            part.packed.at["x"][self.mechanism.nq : self.mechanism.nq + len(program.extra)] = program.extra

    def _refresh(self) -> None:
        """Compile again if the mechanism, or what the graph asks for, has changed."""
        objectives = self._objectives
        if Frame.edits != self._edits or self._given is None:
            objectives = self._wanted() if self._given is None else self._objectives
            if self.mechanism.revision != self._revision or len(objectives) != len(self._objectives):
                self._compile(objectives)
            self._edits = Frame.edits
        self._objectives = objectives

    def _solve(
        self,
        targets: Targets | None,
        q0: ArrayLike | None,
        lock: Names | str | None,
        limits: Mapping[str, ArrayLike] | None,
        rng: np.random.Generator | None,
        feasible: Callable[[Array], bool] | None,
        history: bool,
        changes: dict[str, Any],
        nearby: float | None = None,
    ) -> Solution:
        begun = time.perf_counter()
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise WrongKind(f"rng must be a generator, such as numpy.random.default_rng(0), not {rng!r}")
        if feasible is not None and not callable(feasible):
            raise WrongKind(f"feasible must be a function of q, not {feasible!r}")
        options = Options(**{**asdict(self.options), **changes})
        if (options.position_weight, options.rotation_weight) != (
            self.options.position_weight,
            self.options.rotation_weight,
        ):
            raise ObjectiveError("position_weight and rotation_weight belong to the solver; make another one")
        self._refresh()
        mechanism = self.mechanism
        q = np.array(mechanism.q if q0 is None else mechanism._one(q0))
        for k in mechanism.space.balls_q:
            q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
        objectives = aimed(self._objectives, targets)
        self._rewrite(objectives, q, options.rest_factor)
        lower, upper = self._bounds if limits is None else as_bounds(mechanism, {**(self._limits or {}), **limits})
        if nearby is not None:
            inside = np.clip(q, lower, upper)
            lower, upper = np.maximum(lower, inside - nearby), np.minimum(upper, inside + nearby)
        locked = np.zeros(mechanism.nv, dtype=np.bool_) if lock is None else as_mask(mechanism, lock, False)
        deadline = begun + options.max_seconds
        record: list[float] | None = [] if history else None
        outs: list[Array] = []
        spent: list[float] = []
        refused = False
        try:
            for part, relations in zip(self._program.parts, self._blocks, strict=True):
                spent.append(time.perf_counter())
                set_options(part, options, self._program.size)
                self._bound(part, lower, upper)
                part.packed.at["ban"][:] = np.where(part.moves(locked), LOCKED, 0)
                if feasible is None:
                    q = self._search(part, relations, q, options, rng, (lower, upper), deadline, record)
                    outs.append(part.packed.at["out"].copy())
                    continue
                tried: list[tuple[bool, Array, Array]] = []
                starts = self._starts_for(0, options.restarts, rng, lower, upper)
                for start in [q, *starts]:
                    found = run(mechanism, part, relations, start, np.zeros((0, len(q))), deadline, record)
                    out = part.packed.at["out"].copy()
                    fine = bool(feasible(found.copy())) if out[SUCCESS] == 1.0 else False
                    tried.append((fine, found, out))
                    if fine or time.perf_counter() >= deadline:
                        break
                fine, found, out = min(tried, key=lambda one: (not one[0], one[2][SUCCESS] != 1.0))
                refused |= not fine and out[SUCCESS] == 1.0
                q = found
                outs.append(out)
        finally:
            self._is_aimed = True
            self._set_up()
        if self._moves_joints:
            mechanism.q = q
            self._edits = Frame.edits if mechanism.revision == self._revision else -1
        each = tuple(np.diff([*spent, time.perf_counter()]).tolist())
        return Solution(
            self, objectives, q, tuple(outs), time.perf_counter() - begun, (lower, upper),
            None if record is None else np.array(record), refused, each,
        )  # fmt: skip

    def _rewrite(self, objectives: Sequence[Objective], q: Array, rest_factor: float) -> None:
        """Put what is asked for now into the program; compile again only if its shape has changed."""
        relations = self._relations(objectives, q)
        if rest_factor < 1.0:
            relations = [
                part_of_the_way(self.mechanism, rows, q, rest_factor) if isinstance(one, RestPose) else rows
                for one, rows in zip(objectives, relations, strict=True)
            ]
        same = all(
            len(old) == len(new) and all(same_shape(a, b) for a, b in zip(old, new, strict=True))
            for old, new in zip(self._rows, relations, strict=True)
        )
        if not same:
            given = self._objectives
            self._compile(tuple(objectives), relations)
            self._objectives = given
            return
        for number, (old, new) in enumerate(zip(self._rows, relations, strict=True)):
            if self._is_aimed or any(a is not b for a, b in zip(old, new, strict=True)):
                rewrite(self._program, number, new)
        self._rows = relations
        self._blocks = [
            [
                relations[owner][i] if owner >= 0 else NO_RELATION
                for owner, i in zip(part.owners, part.numbers, strict=True)
            ]
            for part in self._program.parts
        ]

    def _bound(self, part: Part, lower: Array, upper: Array) -> None:
        """Limits of q into the columns of a part."""
        at = part.packed.at
        x, nq = at["column_x"], self.mechanism.nq
        mine = (x >= 0) & (x < nq)
        at["lower"][mine], at["upper"][mine] = lower[x[mine]], upper[x[mine]]

    @property
    def _starts(self) -> Array:
        """Where the short way starts again; made at its first use, since the poses there need a kernel of their own."""
        if self._kept_starts is None:
            starts = self._table(self.options.restarts)
            ranked = self._shortcut is put_pose and len(starts) > 0
            self._kept_starts = with_ends(self.mechanism, starts, self._rows[0][0]) if ranked else starts
        return self._kept_starts

    def _table(self, count: int) -> Array:
        if count not in self._tables:
            space = replace(self.mechanism.space, lower=self._bounds[0], upper=self._bounds[1])
            self._tables[count] = np.ascontiguousarray(halton_starts(space, count))
        return self._tables[count]

    def _search(
        self,
        part: Part,
        relations: Sequence[Relation],
        q: Array,
        options: Options,
        rng: np.random.Generator | None,
        bounds: tuple[Array, Array],
        deadline: float,
        record: list[float] | None,
    ) -> Array:
        """From q and then from further starts, some at a time: to draw all of them may take longer than is allowed."""
        attempts = iterations = first = 0
        out = part.packed.at["out"]
        while True:
            starts = self._starts_for(first, min(options.restarts - first, STARTS_AT_A_TIME), rng, *bounds)
            set_options(part, options, self._program.size)
            q = run(self.mechanism, part, relations, q, starts, deadline, record)
            attempts, iterations = attempts + out[ATTEMPTS_OUT] - (first > 0), iterations + out[ITERATIONS_OUT]
            out[ATTEMPTS_OUT], out[ITERATIONS_OUT] = attempts, iterations
            first += len(starts)
            if out[SUCCESS] == 1.0 or first >= options.restarts or time.perf_counter() >= deadline:
                return q

    def _starts_for(self, first: int, count: int, rng: np.random.Generator | None, lower: Array, upper: Array) -> Array:
        """Where to start again; the kernel takes from each only what may move."""
        if count <= 0:
            return np.zeros((0, self.mechanism.nq))
        space = replace(self.mechanism.space, lower=lower, upper=upper)
        starts = halton_starts(space, count, first) if rng is None else random_starts(space, count, rng)
        return np.ascontiguousarray(starts)
