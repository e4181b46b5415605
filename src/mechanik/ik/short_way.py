"""The short ways from a new target to a kernel, for solvers that are called in fast loops."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from mechanik.ik.chain_way import chain_way
from mechanik.kernels.problem import AT_DATA, BLOCK_FLOATS, FRAME_A, TARGET
from mechanik.kernels.solver_state import ATTEMPTS_OUT, DONE, ITERATIONS_OUT, SUCCESS
from mechanik.objectives import PoseGoal
from mechanik.objectives.relation import Relation
from mechanik.program import rewrite
from mechanik.program.canonical_form import Weights
from mechanik.program.chain import find_chain
from mechanik.search.chain_search import CLEARLY, LONG, ChainSearch, Tried
from mechanik.solvers.choice import choose
from mechanik.solvers.iterate import attempt
from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
from mechanik.solvers.method import Method
from mechanik.solvers.new_targets import Targets
from mechanik.solvers.options import Options
from mechanik.solvers.prepared import Prepared
from mechanik.solvers.problem import Problem
from mechanik.solvers.running import NO_TARGET, descent
from mechanik.solvers.seed_starts import easily_shut
from mechanik.solvers.several import STAYS, SeveralTargets, find_several
from mechanik.solvers.shortcut import find_shortcut, is_pose, put_pose, with_ends
from mechanik.solvers.solution import Solution, goal_cost
from mechanik.solvers.starts import halton_starts
from mechanik.solvers.watch import Watch
from mechanik.spatial.array import Array

SHORTEST = 2e-3
"""Seconds: the chain kernel does not look at the clock, and takes up to one millisecond."""
NO_STARTS = np.zeros((0, 0))
HARDLY_A_TURN = 1e-6
"""Of the square of a ball's four numbers, as in the kernel: what is less has to be looked at closely."""


class Quick(Prepared):
    """A prepared solver that knows its short ways: the chain kernel, the general kernel, a method's own loop."""

    def __init__(self, *given: Any) -> None:
        self._one_at_a_time = threading.Lock()  # all ways but the chain kernel's use the same tables
        super().__init__(*given)

    def _compiled(self) -> None:
        """The short way to the kernel, if there is one; what the method cannot do is refused here."""
        self._shape = (self.mechanism.nq,)
        self._tables: dict[int, Array] = {}
        self._takes_lanes: bool | None = None
        self._batch_kept: dict[str, str] = {}
        self._shortcut = None
        self._second: Method | None = None
        self._problems = [Problem(self.mechanism, self._program, part) for part in self._program.parts]
        for problem, relations in zip(self._problems, self._blocks, strict=True):
            problem.ask(self._objectives, relations, self._bounds, None)
        if self._is_auto:
            self._second, self.why = choose(self._problems)
        elif not isinstance(self.method, LevenbergMarquardt):
            for problem in self._problems:
                self.method.check(problem)
        quick = isinstance(self.method, LevenbergMarquardt) or self.options.further_starts == 0
        if quick and not self._moves_joints and self.options.max_seconds == np.inf:
            self._shortcut = find_shortcut(self._program, self._objectives, self._rows, *self._bounds)
        self._look_behind_q()
        self._several: SeveralTargets | None = None
        self._own_rows: list[tuple[Relation, ...]] = self._rows
        if self._shortcut is None and self._may_take_several():
            self._several = find_several(self.mechanism, self._program, self._objectives, self._rows, self._bounds)
        self._chain = self._find_chain()
        has_time = self.options.max_seconds == math.inf
        self._by_chain = None if self._chain is None or not has_time else chain_way(self, self._chain, self._rows[0])
        if self._shortcut is not None:
            packed = self._program.parts[0].packed
            self._ints, self._floats, self._out = packed.ints, packed.floats, packed.at["out"]
            self._kept_starts: Array | None = None
            self._is_compiled = isinstance(self.method, LevenbergMarquardt)
            self._frame_a = int(packed.ints[AT_DATA]) + BLOCK_FLOATS * int(packed.ints[TARGET]) + FRAME_A

    def _find_chain(self) -> ChainSearch | None:
        """The chain kernel's view of what is asked, if it is one pose-like goal of a serial chain and nothing else."""
        self._home: Array | None = None
        program, options, method = self._program, self.options, self.method
        usual = Options(
            restarts=options.restarts, position_weight=options.position_weight, rotation_weight=options.rotation_weight,
            tolerance=options.tolerance, angle_tolerance=options.angle_tolerance, max_seconds=options.max_seconds,
        )  # fmt: skip
        plain = options == usual and method == LevenbergMarquardt() and options.restarts != 0
        plain = plain and options.max_seconds >= SHORTEST
        if not plain or self._moves_joints or self._given is None or len(program.parts) != 1:
            return None
        if self.mechanism.closures or self.mechanism.laws or program.cones:
            return None
        if len(self._objectives) != 1 or not self._objectives[0].required:
            return None
        if not all(ease == 1.0 for ease in self._settings.ease):
            return None
        goal = self._objectives[0]
        weights = Weights(
            goal.tolerance, goal.angle_tolerance, program.size, options.position_weight, options.rotation_weight,
            self._settings.objective_weights.get(0, 1.0),
        )  # fmt: skip
        is_pose = type(goal) is PoseGoal
        given = goal.target if is_pose else None
        chain = find_chain(program.skeleton, self._rows[0], self._settings.active, self._bounds, weights, given)
        if chain is None:
            return None
        # where the chain is all that there is, nobody has to ask where the mechanism stands
        if len(chain.columns) == self.mechanism.nq and not chain.held.any():
            low, high = (np.where(np.isfinite(one), one, 0.0) for one in self._bounds)
            self._home = np.clip(0.5 * (low + high), *self._bounds)
        return ChainSearch(chain, self.mechanism.q, options.restarts)

    def _short_end(self, target: Targets, tried: Tried, q0: Any) -> Solution | None:
        """From where the chain kernel gave up on to the closest pose; None if there is no short way to it.

        With a seed, the closest pose that the seed leads to, unless another is clearly closer: nothing shall jump.
        """
        if self._shortcut is None or self._second is not None or self.options.restarts is not None:
            return None
        begun = perf_counter()
        best: tuple[Array, Array] | None = None
        with self._one_at_a_time:
            for start in self._to_go_on_from(tried, q0):
                if best is not None and (best[1][SUCCESS] == 1.0 or not tried.cost < CLEARLY * goal_cost(best[1])):
                    break
                found = self._short_way(target, start, None, {}, begun)
                if found is None:
                    return None
                out = self._out.copy()
                if best is None or out[SUCCESS] == 1.0 or goal_cost(out) < CLEARLY * goal_cost(best[1]):
                    best = found, out
            self._is_aimed = True
        assert best is not None
        q, out = best
        out[ATTEMPTS_OUT], out[ITERATIONS_OUT] = tried.attempts, out[ITERATIONS_OUT] + tried.iterations
        return Solution(self, target.copy(), q, (out,), tried.seconds + perf_counter() - begun, self._bounds)

    def _to_go_on_from(self, tried: Tried, q0: Any) -> tuple[Array, ...]:
        """First the seed, so that nothing jumps; for a long chain, for which few attempts were made, its middle."""
        if q0 is None and self._home is not None and len(self._home) > LONG:
            q0 = self._home
        return (tried.q,) if q0 is None else (q0, tried.q)

    def _short_way(
        self, targets: Targets, q0: Array, rng: np.random.Generator | None, options: dict[str, Any], begun: float
    ) -> Array | None:
        """Straight to the kernel, or to the method's loop; None if something has to be looked at closely first."""
        assert self._shortcut is not None
        target = self._shortcut(targets, q0)
        if target is None or not self._may_start(q0):
            return None
        if not self._is_compiled:
            return self._short_attempt(target, q0, rng, options, begun)
        if options or rng is not None:
            return None
        q = np.empty(self._shape)
        starts = self._starts if self._kept_starts is None else self._kept_starts
        try:
            code = descent.search(self._ints, self._floats, target, q0, starts, q)
        except TypeError:  # not a contiguous array of float64
            return None
        is_last_word = self._second is None and len(starts) == self.options.further_starts
        self._straighten(q)
        return q if code == DONE and (is_last_word or self._out[SUCCESS] == 1.0) else None

    def _look_behind_q(self) -> None:
        """What the kernel keeps behind q, and the balls that it does not look at."""
        nq, space = self.mechanism.nq, self.mechanism.space
        self._behind = [
            (part.packed.at["x"][nq:], part.packed.at["x"][nq:].copy())
            for part in self._program.parts
            if len(part.packed.at["x"]) > nq
        ]
        self._idle_balls = [
            k for k, v in zip(space.balls_q.tolist(), space.balls_v.tolist(), strict=True) if not self._moving[v]
        ]

    def _may_start(self, q0: Array) -> bool:
        """Make the kernel forget the call before; False if a ball that it does not look at is hardly a turn."""
        for now, first in self._behind:
            now[:] = first
        return all(q0[k : k + 4] @ q0[k : k + 4] > HARDLY_A_TURN for k in self._idle_balls)

    def _straighten(self, q: Array) -> None:
        """Balls that nothing moves are unit quaternions all the same."""
        for k in self._idle_balls:
            q[k : k + 4] /= np.linalg.norm(q[k : k + 4])

    def _may_take_several(self) -> bool:
        """Whether nothing but the targets changes from call to call, and they are those of the solver's own goals."""
        plain = isinstance(self.method, LevenbergMarquardt) and not self._is_auto and not self._moves_joints
        given = self._given is not None and len(self._given) == len(self._objectives)
        mine = given and all(one is other for one, other in zip(self._given or (), self._objectives, strict=True))
        return plain and mine and self.options.max_seconds == math.inf and self.options.rest_factor == 1.0

    def _short_way_of_several(self, targets: Targets, q0: Array, begun: float) -> Solution | None:
        """Straight to the kernel with new targets for all goals that take one, part by part."""
        several = self._several
        assert several is not None
        numbers = several.numbers(targets)
        if numbers is None or not self._may_start(q0):
            return None
        try:
            if not several.put(numbers, q0):
                return None
        except TypeError:  # not an array of float64 that kernels take
            return None
        if self._rows is not self._own_rows:  # a longer way may have left other targets where none are given now
            for number, kind in enumerate(several.kinds):
                if kind == STAYS:
                    rewrite(self._program, number, self._own_rows[number])
            self._rows = self._own_rows
            self._blocks = self._relations_of_blocks()
        outs: list[Array] = []
        q = q0
        for part in self._program.parts:
            packed, found = part.packed, np.empty(self._shape)
            try:
                code = descent.search(packed.ints, packed.floats, NO_TARGET, q, NO_STARTS, found)
            except TypeError:  # not a contiguous array of float64
                return None
            out = packed.at["out"]
            if code != DONE or (out[SUCCESS] != 1.0 and self.options.further_starts):
                return None
            outs.append(out.copy())
            q = found
        self._is_aimed = True
        self._straighten(q)
        asked = partial(several.objectives, self._objectives, numbers)
        return Solution(self, asked, q, tuple(outs), perf_counter() - begun, self._bounds)

    def _short_attempt(
        self, target: Array, q0: Array, rng: np.random.Generator | None, options: dict[str, Any], begun: float
    ) -> Array | None:
        """One attempt of a method, whose target is checked and put in here."""
        deadline = math.inf
        if options:
            seconds = options.get("max_seconds") if len(options) == 1 else None
            if type(seconds) is not float or not seconds >= 0.0:
                return None
            deadline = begun + seconds
        if q0.dtype != np.float64 or target.dtype != np.float64 or not math.isfinite(float(q0.sum())):
            return None
        if any(not q0[k : k + 4] @ q0[k : k + 4] > HARDLY_A_TURN for k in self.mechanism.space.balls_q):
            return None
        if not (rng is None or isinstance(rng, np.random.Generator)):
            return None
        if len(target) == 4:
            if not is_pose(target):
                return None
            at = self._floats[self._frame_a :]
            at[:9], at[9:12] = target[:3, :3].ravel(), target[:3, 3]
        problem = self._problems[0]
        problem.ask(self._objectives, problem.relations, self._bounds, rng)
        return attempt(problem, self.method, q0, self.options, Watch(deadline))

    @property
    def _starts(self) -> Array:
        """Where the short way starts again; made at its first use, since the poses there need a kernel of their own."""
        if self._kept_starts is None:
            starts = self._table(self.options.further_starts)
            if self._problems[0].closures:  # of which some shut easily; if these do not help, the long way is taken
                starts = easily_shut(self._problems[0], self._bounds, len(starts))
            ranked = self._shortcut is put_pose and len(starts) > 0
            self._kept_starts = with_ends(self.mechanism, starts, self._rows[0][0]) if ranked else starts
        return self._kept_starts

    def _table(self, count: int) -> Array:
        if count not in self._tables:
            space = replace(self.mechanism.space, lower=self._bounds[0], upper=self._bounds[1])
            self._tables[count] = np.ascontiguousarray(halton_starts(space, count))
        return self._tables[count]
