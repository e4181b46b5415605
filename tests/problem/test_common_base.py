"""Nodes that carry all frames of a subproblem are left out: a loop on a long arm costs as much as on a fixed base."""

from __future__ import annotations

import numpy as np
import pytest
from solver_internals import packed_problem

import mechanik as mk


def tower(count: int, base: str) -> mk.Mechanism:
    """Four-bars, each on the coupler of the one before; the first is on the world or on a free body."""
    builder = mk.Builder("tower")
    if base == "free":
        builder.free("body_joint", "world", "ground", value=(0.3, -0.2, 0.5, 0.4, 0.1, -0.6))
    ground, position = "ground", np.zeros(3)
    for k in range(count):
        builder.revolute(f"crank{k}", ground, f"crank{k}", at=position, value=1.0)
        builder.revolute(f"knee{k}", f"crank{k}", f"coupler{k}", at=(0.5, 0, 0), value=-0.4)
        builder.revolute(f"rocker{k}", ground, f"rocker{k}", at=position + np.array([2.0, 0.0, 0.0]), value=1.9)
        builder.close(f"pin{k}", f"coupler{k}", f"rocker{k}", "pin", at=(1.8, 0, 0))
        ground, position = f"coupler{k}", np.array([0.2, 0.5, 0.0])
    return builder.build()


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_subproblem_has_only_the_nodes_of_its_loop(base):
    linkage = tower(4, base)
    solver = mk.Solver(linkage, mk.JointValues({f"crank{k}": 1.0 for k in range(4)}))
    assert [subproblem.packed.tables.node_count for subproblem in packed_problem(solver).subproblems] == [3] * 4


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_loop_on_a_moving_base_has_the_solution_of_a_fixed_base(base):
    linkage, single = tower(3, base), tower(1, "fixed")
    solver = mk.Solver(linkage, mk.JointValues({f"crank{k}": 1.0 for k in range(3)}))
    single_solver = mk.Solver(single, mk.JointValues({"crank0": 1.0}))
    values = {"crank0": 1.3, "crank1": 0.7, "crank2": 1.1}
    solution = solver.solve(values, linkage.q)
    assert solution.success
    for k in range(3):
        expected = single_solver.solve(values[f"crank{k}"], single.q)
        for name in ("crank", "knee", "rocker"):
            assert solution[f"{name}{k}"] == pytest.approx(expected[f"{name}0"], abs=1e-9)


def test_goal_in_the_world_has_all_nodes_up_to_the_world():
    linkage = tower(2, "free")
    solver = mk.Solver(linkage, mk.PositionGoal("coupler1", (1.0, 1.0, 0.5)))
    assert packed_problem(solver).subproblems[0].packed.tables.node_count == len(linkage.kinematics.nodes)
    assert solver.solve((1.1, 0.9, 0.4), linkage.q).success
