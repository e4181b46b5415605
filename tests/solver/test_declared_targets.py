"""Declared targets: what an objective says about its target holds for single solves, batches and several goals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import mechanik as mk
from mechanik import errors
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.spatial import translation

ARM = mk.arm_2d([0.5, 0.4, 0.3])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PlanarReach(mk.Objective):
    """An objective of a user: a plain `with_target` that takes two numbers, and no declaration."""

    x: float = 0.6
    y: float = 0.2

    def relations(self, mechanism: mk.Mechanism) -> tuple[Relation, ...]:
        X_a = translation((self.x, self.y, 0.0))
        return (Relation(RelationKind.POSE, (0, 1), None, "tool", X_a),)

    def with_target(self, target: object) -> PlanarReach:
        x, y = target  # type: ignore[misc]
        return replace(self, x=float(x), y=float(y))


POINTS = np.array([[0.6, 0.2], [0.5, 0.5], [-0.3, 0.6], [3.0, 0.0]])


def test_an_objective_with_a_plain_with_target_works_in_batches_as_in_single_solves():
    solver = mk.Solver(ARM, PlanarReach())
    q0 = np.array([0.3, 0.4, 0.2])
    batch = solver.solve_batch(POINTS, q0)
    singles = [solver.solve(point, q0) for point in POINTS]
    assert batch.success.tolist() == [True, True, True, False]
    assert all(np.array_equal(batch.q[i], solution.q) for i, solution in enumerate(singles))


def test_rows_of_an_objective_with_a_plain_with_target_may_have_any_form():
    solver = mk.Solver(ARM, PlanarReach())
    q0 = np.array([0.3, 0.4, 0.2])
    assert np.array_equal(solver.solve_batch(POINTS.tolist(), q0).q, solver.solve_batch(POINTS, q0).q)


def test_an_objective_without_a_target_refuses_targets_of_a_batch():
    solver = mk.Solver(ARM, mk.Custom(lambda mechanism, q: q[0] - 0.1, name="custom"))
    with pytest.raises(errors.ShapeError, match="targets of Custom 'custom'"):
        solver.solve_batch(np.zeros((3, 2)), ARM.q)
