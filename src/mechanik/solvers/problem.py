"""What a method sees of a problem: where it stands, its rows and their Jacobian, and how to move on.

A problem is one part of a program: objectives and closures that share freedoms. The numbers live in the program's flat
arrays; all that a method writes is `step`, and `advance` does the rest. Rows are weighted, and lengths among them are
in sizes of the mechanism; a unit of a column is one rad, or one size. So all rows and all columns are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mechanik.kernels.problem import BLOCK_INTS, HARD, LOCKED, ROWS, SOFT, STAGE_INTS
from mechanik.kernels.solver_state import CURRENT, STATUS
from mechanik.mechanism import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.relation import Relation
from mechanik.program import Part, Program
from mechanik.solvers.running import call_functions, run, set_options
from mechanik.solvers.watch import Watch
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

if TYPE_CHECKING:
    from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt

looking = kernel_module("look")
MOVE, EVALUATE, GATHER = 1, 2, 4
MINE, ELSEWHERE = 1, 0
"""Buffers: the method's own x, and a place that it only looks at."""


class Problem:
    """
    Attributes:
        mechanism, objectives: what is asked of what. The objectives are those of the whole solver.
        program, part: the flat arrays; `part.packed.at` has every table by name.
        relations: for each block of the part.
        rows: (m,) what should be zero, at x. The required ones: closures first, then goals.
        jacobian: (m, n), by the columns that may move.
        wish_rows, wish_jacobian: the same of what is only wished for, such as a rest pose.
        cost: sum of squares of `rows`.
        met: whether every required objective is within its tolerance, and every loop shut.
        step: (n,) to be written before `advance`.
        lower, upper: (n,) how far the step may go in each column from here. Balls have no bounds.
        q_lower, q_upper: (nq,) limits of this solve.
        deadline: by `time.perf_counter`; what takes many steps within one iteration looks at it.
        kept: what a method has worked out about the mechanism and wants to find again at the next call.
    """

    def __init__(self, mechanism: Mechanism, program: Program, part: Part) -> None:
        self.mechanism, self.program, self.part = mechanism, program, part
        self.relations: Sequence[Relation] = ()
        self.objectives: tuple[Objective, ...] = ()
        self._rng: np.random.Generator | None = None
        self.q_lower, self.q_upper = mechanism.space.lower, mechanism.space.upper
        packed = part.packed
        self._ints, self._floats, at = packed.ints, packed.floats, packed.at
        stages = at["stages"].reshape(-1, STAGE_INTS)
        required = [k for k, wish in enumerate(part.wishes) if not wish]
        self.levels = sum(stages[k, SOFT] > stages[k, HARD] and part.levels[k] >= 0 for k in required)
        self._required, self._end = int(max((stages[k, SOFT] for k in required), default=0)), packed.sizes["blocks"]
        self.wishes_first = any(wish for wish in part.wishes[: required[-1]])
        """Whether a wish stands above something that is required."""
        self.closures = int(stages[0, SOFT])
        """How many of the blocks are closures; they come first."""
        blocks = at["blocks"].reshape(-1, BLOCK_INTS)
        heights = blocks[:, ROWS].tolist()
        m, n = sum(heights[: self._required]), int((packed.columns >= 0).sum())
        self.n = n
        self._E, self._J = np.zeros(sum(heights)), np.zeros((sum(heights), n))
        self.rows, self.jacobian = self._E[:m], self._J[:m]
        self.wish_rows, self.wish_jacobian = self._E[m:], self._J[m:]
        self.x: Array = at["trial"]
        self.step: Array = at["step"][:n]
        self._all_of_step: Array = at["step"]
        self.column_x: np.ndarray[Any, Any] = at["column_x"][:n]
        self.scale: Array = at["scale"][:n]
        self.bounded = self.column_x >= 0
        self.cost, self.met, self.deadline = np.inf, False, np.inf
        self.kept: dict[str, object] = {}
        self._has_functions = packed.sizes["functions"] > 0

    def ask(
        self,
        objectives: tuple[Objective, ...],
        relations: Sequence[Relation],
        bounds: tuple[Array, Array],
        rng: np.random.Generator | None,
    ) -> None:
        """What one call asks for; the tables of the part have it already."""
        self.objectives, self.relations = objectives, relations
        self.q_lower, self.q_upper = bounds
        self._rng = rng

    @property
    def rng(self) -> np.random.Generator:
        """For methods that draw; the caller's, or one that always draws the same."""
        if self._rng is None:
            self._rng = np.random.default_rng(0)
        return self._rng

    @property
    def q(self) -> Array:
        """(nq,) a copy of where the method stands."""
        return self.x[: self.mechanism.nq].copy()

    @property
    def free(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """(n,) which columns are not locked."""
        return self.part.packed.at["ban"][: self.n] != LOCKED

    @property
    def lower(self) -> Array:
        return self._room("lower", -np.inf)

    @property
    def upper(self) -> Array:
        return self._room("upper", np.inf)

    @property
    def wish_cost(self) -> float:
        """Sum of squares of what is only wished for."""
        return float(self.wish_rows @ self.wish_rows)

    @property
    def gradient(self) -> Array:
        """(n,) of half the cost: the rows times their Jacobian."""
        return self.rows @ self.jacobian

    def reduced_gradient(self) -> Array:
        """(n,) the gradient, zero where a step against it would leave the limits."""
        g = self.gradient
        stuck = ((g > 0) & (self.lower > -1e-12)) | ((g < 0) & (self.upper < 1e-12))
        return np.where(stuck, 0.0, g)

    # ---- moving -----------------------------------------------------------------------------

    def place(self, q: Array) -> None:
        """Stand at q (nq,), brought inside the limits; locked freedoms included."""
        at = self.part.packed.at
        nq = self.mechanism.nq
        self.x[:nq] = q
        self.x[nq:] = at["x"][nq:]
        at["ban"][at["ban"] != LOCKED] = 0
        self._all_of_step[:] = 0.0
        at["state"][CURRENT] = 0.0
        self._look(MOVE, 0.0, MINE)
        self.look()

    def place_x(self, x: Array) -> None:
        """Stand where `x.copy()` was taken."""
        self.x[:] = x
        self.look()

    def advance(self, share: float = 1.0) -> None:
        """Go that share of the step, as far as the limits allow, and look again."""
        if self._has_functions:
            self._look(MOVE, share, MINE)
            self.look()
        else:
            self.cost, met = self._look(MOVE | EVALUATE | GATHER, share, MINE)
            self.met = met == 1.0

    def look(self) -> None:
        """Rows and Jacobian at x."""
        if self._has_functions:
            self._look(EVALUATE, 0.0, MINE)
            call_functions(self.mechanism, self.part, self.relations, self.mechanism.nq)
            self.cost, met = self._look(GATHER, 0.0, MINE)
        else:
            self.cost, met = self._look(EVALUATE | GATHER, 0.0, MINE)
        self.met = met == 1.0

    def cost_after(self, share: float = 1.0) -> float:
        """The cost that there would be after that share of the step; nothing moves."""
        if not self._has_functions:
            return self._look(MOVE | EVALUATE | GATHER, share, ELSEWHERE)[0]
        here, rows, jacobian, before = self.x.copy(), self._E.copy(), self._J.copy(), (self.cost, self.met)
        self.advance(share)
        cost = self.cost
        self.x[:], self._E[:], self._J[:], (self.cost, self.met) = here, rows, jacobian, before
        return cost

    def descend(self, max_iterations: int = 100, method: LevenbergMarquardt | None = None) -> float:
        """Let the default solver go down from here; it never makes things worse. Returns how it ended."""
        from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
        from mechanik.solvers.options import Options

        q = self.q
        set_options(self.part, Options(), method or LevenbergMarquardt(), self.program.size, max_iterations)
        q = run(self.mechanism, self.part, self.relations, q, np.zeros((0, len(q))), Watch(self.deadline))
        status = float(self.part.packed.at["out"][STATUS])
        self.place(q)
        return status

    def within_closures(self) -> bool:
        """Whether every loop is shut."""
        return self.closures == 0 or self._look(GATHER, 0.0, MINE, required=self.closures)[1] == 1.0

    def _look(self, doing: int, share: float, buffer: int, required: int | None = None) -> tuple[float, float]:
        return looking.look(
            self._ints, self._floats, doing, share, buffer, self._required if required is None else required,
            self._end, self._E, self._J,
        )  # fmt: skip

    def _room(self, which: str, none: float) -> Array:
        bound = self.part.packed.at[which][: self.n]
        here = self.x[np.where(self.bounded, self.column_x, 0)]
        return np.where(self.bounded, (bound - here) / self.scale, none)
