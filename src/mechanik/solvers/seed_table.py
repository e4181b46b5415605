"""A table of starts: configurations spread over the limits, each with where it puts the frames that goals look at.

So starts can be tried best first: those where goals are nearest to being met, and loops to being shut. It costs a few
additions a start, while an attempt from a bad one costs about ten iterations. Chains have a table of their own
(`kernels/seed_table.py`); this one is for all else that the general kernel solves. What it gains: docs/seed_tables.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechanik.kernels.layout import BALL, FIRST_Q, FIXED, KIND, ROW, SLIDE
from mechanik.kernels.problem import BLOCK_INTS, FIRST_ROW, N_STAGES
from mechanik.kernels.solver_state import SUCCESS
from mechanik.mechanism import Mechanism
from mechanik.mechanism.configuration import ConfigurationSpace
from mechanik.objectives.closures import closure_relations
from mechanik.objectives.laws import law_relation, law_sums
from mechanik.objectives.relation import Kind, Relation
from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
from mechanik.solvers.options import Options
from mechanik.solvers.problem import Problem
from mechanik.solvers.row_squares import KNOWN, seen_squares, value_squares
from mechanik.solvers.running import run, set_options
from mechanik.solvers.starts import from_unit, halton_points
from mechanik.solvers.watch import Watch
from mechanik.spatial import inverse
from mechanik.spatial.array import Array

ENTRIES = 256
"""Tuned on two arms and a humanoid: a quarter as many cost up to a seventh more iterations, and four times as many save
as much again, but take longer to look through than that is worth."""

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
Ends = dict[tuple[str | None, str | None], Array]
"""For two links, where the second stands as seen from the first at each start, (entries, 4, 4)."""


class SeedTable:
    """Starts for one problem, for some limits and for one place of what does not move.

    Attributes:
        starts: (entries, nq) in Halton's order, what does not move as it was when the table was made.
        gaps: (entries,) sum of squares by which loops are open there; 0 without loops.
    """

    def __init__(self, problem: Problem, space: ConfigurationSpace, unit: Array, mine: Mask, q: Array) -> None:
        """
        Args:
            space: with the limits of the call.
            unit: (entries, numbers) Halton's points.
            mine: (nq,) which numbers of q may move.
            q: (nq,) where the others stand.
        """
        self.starts = np.where(mine, from_unit(space, unit), q)
        self._ends: Ends = {}
        self._shut, self._is_shut = np.zeros((0, len(q))), np.zeros(0, dtype=np.bool_)
        self._shut_ends: Ends = {}
        self.gaps = np.zeros(len(unit))
        mechanism, program = problem.mechanism, problem.program
        self.has_loops = problem.closures > 0
        for number in sorted({-1 - owner for owner in problem.part.owners if owner < 0}):
            if number >= len(program.closures) + len(program.laws):
                continue  # a cone, which is easily entered
            if number >= len(program.closures):
                law = list(program.laws.values())[number - len(program.closures)]
                self.gaps += (law_sums(mechanism, law_relation(mechanism, law), self.starts) / law.scale) ** 2
                continue
            for relation in closure_relations(mechanism, program.closures[number]):
                if relation.kind in KNOWN and not _is_carried(relation):
                    weights = np.where(relation.in_metres, 1.0 / program.size, 1.0)
                    self.gaps += seen_squares(relation, weights, self._seen(mechanism, relation, self.starts, {}))

    def best_first(self, problem: Problem) -> Array:
        """All starts, (entries, nq), those first where what is asked for now is nearest."""
        squares = self._squares(problem, self.starts, self._ends)
        if squares is None and not self.has_loops:
            return self.starts
        return self.starts[np.argsort(self.gaps if squares is None else squares + self.gaps, kind="stable")]

    def shut_best_first(self, problem: Problem, count: int, options: Options, watch: Watch) -> Array:
        """The first `count` of Halton's starts with all loops shut, those first where what is asked for is nearest.

        Without those that cannot be shut, and without those that are left when the time is up.
        """
        done = len(self._is_shut)
        if done < min(count, len(self.starts)):
            shut, is_shut = shut_all(problem, self.starts[done:count], options, watch)
            if len(is_shut) < len(self.starts[done:count]):
                return shut  # and nothing is kept, since another call may have more time
            self._shut, self._is_shut = np.concatenate([self._shut, shut]), np.append(self._is_shut, is_shut)
            self._shut_ends = {}
        squares = self._squares(problem, self._shut, self._shut_ends)
        mine = int(self._is_shut[:count].sum())  # a call with more restarts may have shut more
        return self._shut[:mine] if squares is None else self._shut[np.argsort(squares[:mine], kind="stable")]

    def least_open(self, count: int) -> Array:
        """The starts (count, nq) whose loops are the least open, or the first ones without loops."""
        return self.starts[np.argsort(self.gaps, kind="stable")[:count]]

    def _squares(self, problem: Problem, starts: Array, ends: Ends) -> Array | None:
        """(entries,) the weighted sum of squares of the goals' rows; None if no kind of row among them is known."""
        at, total = problem.part.packed.at, None
        first = at["blocks"].reshape(-1, BLOCK_INTS)[:, FIRST_ROW]
        for b, (owner, relation) in enumerate(zip(problem.part.owners, problem.relations, strict=True)):
            if owner < 0 or not problem.objectives[owner].required or not relation.rows:
                continue
            weights = at["weight"][first[b] : first[b] + len(relation.rows)]
            if relation.kind is Kind.VALUE:
                k = problem.program.skeleton.x_of[relation.freedom]
                if k >= problem.mechanism.nq:
                    continue
                squares = value_squares(relation, weights, starts[:, k])
            elif relation.kind in KNOWN and not _is_carried(relation):
                squares = seen_squares(relation, weights, self._seen(problem.mechanism, relation, starts, ends))
            else:
                continue
            total = squares if total is None else total + squares
        return total

    def _seen(self, mechanism: Mechanism, relation: Relation, starts: Array, ends: Ends) -> Array:
        links = relation.a, relation.b
        if links not in ends:
            X_a, X_b = (np.eye(4) if link is None else mechanism.pose(link, starts) for link in links)
            seen = X_b if relation.a is None else inverse(X_a) @ X_b
            ends[links] = np.broadcast_to(seen, (len(starts), 4, 4))
        return ends[links]


class SeedTables:
    """The table of a problem, made when it is first needed, and made anew when limits or held joints are others."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._kept: tuple[bytes, SeedTable] | None = None
        self._unit = halton_points(problem.mechanism.space, ENTRIES)
        self._matters = _matters(problem)

    def table(self, bounds: tuple[Array, Array], mine: Mask, q: Array) -> SeedTable:
        """The table for limits (nq,) each, with all but `mine` (nq,) held where they are in q."""
        held = q[self._matters & ~mine]
        key = b"".join(one.tobytes() for one in (*bounds, mine, held))
        if self._kept is None or key != self._kept[0]:
            space = replace(self._problem.mechanism.space, lower=bounds[0], upper=bounds[1])
            self._kept = key, SeedTable(self._problem, space, self._unit, mine, q)
        return self._kept[1]


def tables_of(problem: Problem) -> SeedTables:
    """Those that a problem keeps; a mechanism that has changed comes with new problems."""
    kept = problem.kept.get("seed tables")
    if not isinstance(kept, SeedTables):
        kept = problem.kept["seed tables"] = SeedTables(problem)
    return kept


def shut_all(problem: Problem, starts: Array, options: Options, watch: Watch) -> tuple[Array, Mask]:
    """Starts (n, nq) whose loops can be shut from there, shut, and which of those given they are; goals do not count.

    The second is shorter than n if the time is up before. Leaves nothing behind but the kernel's options.
    """
    mechanism, packed, nq = problem.mechanism, problem.part.packed, starts.shape[1]
    beyond_q, stages = packed.at["x"][nq:].copy(), int(packed.ints[N_STAGES])
    none, found, is_shut = np.zeros((0, nq)), list[Array](), list[bool]()
    set_options(problem.part, options, LevenbergMarquardt(), problem.program.size)
    try:
        packed.ints[N_STAGES] = 1  # the closures, and no level of goals
        for start in starts:
            packed.at["x"][nq:] = beyond_q
            q = run(mechanism, problem.part, problem.relations, start, none, Watch(watch.deadline))
            if watch.is_over():
                break
            is_shut.append(bool(packed.at["out"][SUCCESS] == 1.0))
            if is_shut[-1]:
                found.append(q)
    finally:
        packed.ints[N_STAGES] = stages
        packed.at["x"][nq:] = beyond_q
    return np.array(found).reshape(len(found), nq), np.array(is_shut, dtype=np.bool_)


def moving_numbers(problem: Problem, locked: Mask) -> Mask:
    """(nq,) which numbers of q a problem may move, where some freedoms (nv,) are locked."""
    space, moves = problem.mechanism.space, problem.part.moving & ~locked
    mine = np.zeros(space.nq, dtype=np.bool_)
    mine[space.scalars_q] = moves[space.scalars_v]
    for k, v in zip(space.balls_q, space.balls_v, strict=True):
        mine[k : k + 4] = moves[v]
    return mine


def _matters(problem: Problem) -> Mask:
    """(nq,) which numbers of q a problem looks at."""
    matters = np.zeros(problem.mechanism.nq, dtype=np.bool_)
    for node in problem.part.packed.at["nodes"].reshape(-1, ROW):
        if node[KIND] != FIXED:
            k, size = int(node[FIRST_Q]), {SLIDE: 3, BALL: 4}.get(int(node[KIND]), 1)
            matters[k : k + size] = True
    return matters


def _is_carried(relation: Relation) -> bool:
    """Whether its rows lie along axes of the world while A moves: those would need more than where B is seen from A."""
    return relation.world_axes is not None and relation.a is not None
