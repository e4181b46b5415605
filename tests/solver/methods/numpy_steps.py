"""Problems and their residuals in plain NumPy, to compare methods with: weights, units, limits, and no kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from random_mechanisms import random_mechanism
from solver_internals import packed_problem

import mechanik as mk
from mechanik.objectives.constraint_relations import closure_limit_relations, closure_relations
from mechanik.objectives.objective import length_row_mask
from mechanik.objectives.relation import band_violation, evaluate_relation, is_band_active

Row = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism with goals that it can reach, and a start.

    Attributes:
        rest: (nq,), the rest pose, or None.
    """

    name: str
    mechanism: mk.Mechanism
    goals: tuple[mk.Objective, ...]
    q0: np.ndarray
    rest: np.ndarray | None = None


def two_hands(limits=(-2.6, 2.6)) -> mk.Mechanism:
    """A trunk of two hinges with two arms of six."""
    builder = mk.Builder("two hands")
    builder.revolute("waist", "base", "trunk", at=(0, 0, 0.3), axis="z", limits=(-2, 2))
    builder.revolute("bend", "trunk", "chest", at=(0, 0, 0.2), axis="y", limits=(-1.5, 1.5))
    for side, y in (("left", 0.2), ("right", -0.2)):
        above = "chest"
        for k, axis in enumerate("yxzyxz"):
            at = (0, y, 0.3) if k == 0 else (0.25 if k in (2, 3) else 0.05, 0, 0)
            name = f"{side}_hand" if k == 5 else f"{side}_{k}"
            builder.revolute(f"{name}_joint", above, name, at=at, axis=axis, limits=limits)
            above = name
    return builder.build()


def gantry() -> mk.Mechanism:
    """Three prismatic joints and a spherical wrist."""
    builder = mk.Builder("gantry")
    builder.prismatic("x", "base", "bridge", axis="x", limits=(-1, 1))
    builder.prismatic("y", "bridge", "cart", axis="y", limits=(-1, 1))
    builder.prismatic("z", "cart", "column", axis="z", limits=(-0.5, 0.5))
    builder.spherical("wrist", "column", "hand")
    builder.fixed("tip_joint", "hand", "tip", at=(0.1, 0.2, 0.3))
    return builder.build()


def cases(seed: int = 0) -> list[Case]:
    """Arms, prismatic joints, spherical joints, trees; points and poses; many of them with active limits."""
    rng = np.random.default_rng(seed)
    problems = [
        _reachable(rng, name, mk.gallery.make(name), links)
        for name, links in (
            ("panda", ["panda_hand_tcp"]),
            ("ur5", ["tool0"]),
            ("scara", None),
            ("zalo5", None),
            ("dh6", None),
            ("grippy10", None),
            ("iiwa14", None),
        )
    ]
    problems += [_reachable(rng, "two hands", two_hands(), ["left_hand", "right_hand"])]
    problems += [_reachable(rng, "tight", two_hands((-0.4, 0.4)), ["left_hand", "right_hand"], kind) for kind in (0, 1)]
    problems += [_reachable(rng, "gantry", gantry(), ["tip"], kind) for kind in (0, 1)]
    number = 0
    while len(problems) < 26:
        number += 1
        mechanism = random_mechanism(1000 * seed + number, int(rng.integers(3, 10)))
        if mechanism.nv < 3:
            continue
        case = _reachable(rng, f"random {number}", mechanism, list(mechanism.links)[-2:])
        try:
            parts = packed_problem(mk.Solver(mechanism, case.goals, solver="dls")).subproblems
        except mk.errors.MechanikError:
            continue
        if len(parts) == 1 and len(parts[0].packed.columns) >= 3:
            problems.append(case)
    return problems


def _reachable(rng, name, mechanism, links=None, kind=None) -> Case:
    there, q0 = mechanism.random(rng, 2)
    space = mechanism.space
    for k in space.scalars_q:  # some joints begin at a limit
        if rng.random() < 0.3 and np.isfinite([space.lower[k], space.upper[k]]).all():
            q0[k] = (space.lower, space.upper)[rng.integers(2)][k]
    goals = []
    for link in links or [list(mechanism.links)[-1]]:
        X, weight = mechanism.pose(link, there), float(rng.choice([1.0, 0.5, 3.0]))
        if (rng.integers(2) if kind is None else kind) == 0:
            goals.append(mk.PositionGoal(link, X[:3, 3], weight=weight))
        else:
            goals.append(mk.PoseGoal(link, X, weight=weight))
    return Case(name, mechanism, tuple(goals), q0, mechanism.random(rng))


class NumpyProblem:
    """The residual of a case as the solver weights it.

    Attributes:
        scale: (nv,) rad or m that one unit of a column is.
        effectors: for each goal the rows that are lengths, and those that are angles: slices, and whether lengths.
    """

    def __init__(self, solver: mk.Solver, goals: Sequence[mk.Objective]) -> None:
        self.mechanism, self.size = solver.mechanism, packed_problem(solver).length_unit
        self.space = self.mechanism.space
        self.scale = np.where(self.space.rotates, 1.0, self.size)
        mechanism = self.mechanism
        self.relations = [
            relation
            for relations_of in (closure_relations, closure_limit_relations)
            for closure in mechanism.closures.values()
            for relation in relations_of(mechanism, closure)
        ]
        self.relations += [relation for goal in goals for relation in goal.relations(mechanism)]
        row_count = sum(len(relation.rows) for relation in self.relations)
        units = packed_problem(solver).subproblems[0].rows.units[:row_count]
        self.effectors: list[tuple[slice, bool, float]] = []
        first = 0
        for relation in self.relations:
            metres = length_row_mask(mechanism, relation, len(relation.rows))
            middle, end = first + int(metres.sum()), first + len(metres)
            for start, stop, is_length in ((first, middle, True), (middle, end, False)):
                if stop > start:
                    self.effectors.append((slice(start, stop), is_length, relation.weight / units[start]))
            first = end
        weights = [np.full(len(relation.rows), relation.weight) for relation in self.relations]
        self.weights = np.concatenate(weights) / units

    def residual_and_jacobian(self, q: np.ndarray) -> Row:
        residuals, jacobians = [np.zeros(0)], [np.zeros((0, self.mechanism.nv))]
        for relation in self.relations:
            value, J = evaluate_relation(self.mechanism, relation, q)
            residuals.append(band_violation(relation, value))
            jacobians.append(np.where(is_band_active(relation, value)[:, None], J, 0.0) * self.scale)
        return self.weights * np.concatenate(residuals), self.weights[:, None] * np.concatenate(jacobians)

    def clamped(self, e: np.ndarray, D_max: float, D_max_angle: float) -> np.ndarray:
        """ClampMag of Buss: no effector's error is longer than D_max (m), or D_max_angle (rad)."""
        e = e.copy()
        for rows, is_length, weight in self.effectors:
            most, size = weight * (D_max if is_length else D_max_angle), np.linalg.norm(e[rows])
            if size > most:
                e[rows] *= most / size
        return e

    def move(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        return self.mechanism.clamp(self.mechanism.integrate(q, self.scale * step))

    def at_limits(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(nv,), (nv,): which dofs are at their lower limit, and which at their upper one."""
        low, high = np.zeros(self.mechanism.nv, dtype=bool), np.zeros(self.mechanism.nv, dtype=bool)
        low[self.space.scalars_v] = (q <= self.space.lower)[self.space.scalars_q]
        high[self.space.scalars_v] = (q >= self.space.upper)[self.space.scalars_q]
        return low, high

    def step_within_limits(
        self, q: np.ndarray, e: np.ndarray, J: np.ndarray, solve: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """The step of `solve(J)` with dofs at limits removed while the step pushes them outwards.

        When it pushes none, those that were taken out and whose slope in the linear model leads inside are let back
        in, each of them once.
        """
        low, high = self.at_limits(q)
        removed, returned = np.zeros(len(low), dtype=bool), np.zeros(len(low), dtype=bool)
        while True:
            step = solve(np.where(removed, 0.0, J))
            pushes = ~removed & ((low & (step < 0)) | (high & (step > 0)))
            if pushes.any():
                removed |= pushes
                continue
            slope = J.T @ (e + np.where(removed, 0.0, J) @ step)
            least = 1e-12 * np.linalg.norm(e) * np.linalg.norm(J, axis=0)
            back = removed & ~returned & ((low & (slope < -least)) | (high & (slope > least)))
            if not back.any():
                return step
            removed, returned = removed & ~back, returned | back


def iterates(solver: mk.Solver, q0: np.ndarray, count: int = 10, **options) -> list[np.ndarray]:
    """q0 and what follows it, as long as there is something left to do."""
    seen = [solver.mechanism.clamp(q0)]
    solver.solve(None, q0, max_iterations=count, callback=lambda at: seen.append(at.q), **options)
    return seen


def compare_steps(
    case: Case,
    method: str,
    step: Callable[[NumpyProblem, np.ndarray], np.ndarray],
    rounding: Callable[[NumpyProblem, np.ndarray], float] = lambda plain, q: 0.0,
    **options,
) -> int:
    """Each iterate is where `step` leads from the one before, to 1e-9; returns how many were compared.

    Args:
        rounding: by how much it may be more, where the method's own arithmetic cannot do better.
    """
    solver = mk.Solver(case.mechanism, case.goals, solver=method, **options)
    plain = NumpyProblem(solver, case.goals)
    seen = iterates(solver, case.q0)
    for number, (before, after) in enumerate(pairwise(seen)):
        expected = plain.move(before, step(plain, before))
        apart = plain.mechanism.space.difference(expected, after)
        assert np.abs(apart).max() < 1e-9 + rounding(plain, before), f"{case.name}, iteration {number}: {apart}"
    return len(seen) - 1
