"""What carries all frames of a part need not be known to it: a loop on a long arm costs what it costs on the ground."""

from __future__ import annotations

import numpy as np
import pytest

import mechanik as mk


def tower(count: int, base: str) -> mk.Mechanism:
    """Four-bars that stand on each other's couplers, and the first on a body that can move."""
    b = mk.Builder("tower")
    if base == "free":
        b.free("body_joint", "world", "ground", value=(0.3, -0.2, 0.5, 0.4, 0.1, -0.6))
    ground, at = "ground", np.zeros(3)
    for k in range(count):
        b.revolute(f"crank{k}", ground, f"crank{k}", at=at, value=1.0)
        b.revolute(f"knee{k}", f"crank{k}", f"coupler{k}", at=(0.5, 0, 0), value=-0.4)
        b.revolute(f"rocker{k}", ground, f"rocker{k}", at=at + np.array([2.0, 0.0, 0.0]), value=1.9)
        b.close(f"pin{k}", f"coupler{k}", f"rocker{k}", "pin", at=(1.8, 0, 0))
        ground, at = f"coupler{k}", np.array([0.2, 0.5, 0.0])
    return b.build()


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_a_part_knows_the_nodes_of_its_loop_and_no_others(base):
    linkage = tower(4, base)
    solver = mk.Solver(linkage, mk.JointValues({f"crank{k}": 1.0 for k in range(4)}))
    assert [part.packed.sizes["nodes"] for part in solver._problem.subproblems] == [3] * 4


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_each_loop_turns_as_it_would_on_the_ground(base):
    linkage, alone = tower(3, base), tower(1, "fixed")
    solver = mk.Solver(linkage, mk.JointValues({f"crank{k}": 1.0 for k in range(3)}))
    one = mk.Solver(alone, mk.JointValues({"crank0": 1.0}))
    values = {"crank0": 1.3, "crank1": 0.7, "crank2": 1.1}
    found = solver.solve(values, linkage.q)
    assert found.success
    for k in range(3):
        same = one.solve(values[f"crank{k}"], alone.q)
        for name in ("crank", "knee", "rocker"):
            assert found[f"{name}{k}"] == pytest.approx(same[f"{name}0"], abs=1e-9)


def test_a_goal_in_the_world_knows_all_that_carries_it():
    linkage = tower(2, "free")
    solver = mk.Solver(linkage, mk.PositionGoal("coupler1", (1.0, 1.0, 0.5)))
    assert solver._problem.subproblems[0].packed.sizes["nodes"] == len(linkage.kinematics.nodes)
    assert solver.solve((1.1, 0.9, 0.4), linkage.q).success
