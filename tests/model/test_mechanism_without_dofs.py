"""Mechanisms without dofs: a single link, or a loop of fixed joints."""

from __future__ import annotations

import numpy as np
import pytest

import mechanik as mk
from mechanik.cli import main
from mechanik.errors import DoFError, StructureError


def one_link():
    builder = mk.Builder("stone")
    builder.link("tool")
    return builder.build()


def stiff_loop():
    builder = mk.Builder("frame")
    builder.fixed("left", "ground", "post", at=(1, 0, 0))
    builder.fixed("right", "ground", "tool", at=(0, 1, 0))
    builder.close("weld", "post", "tool", "weld")
    return builder.build()


BOTH = pytest.mark.parametrize("make", [one_link, stiff_loop])


@BOTH
def test_its_structure_has_no_inputs(make):
    # arrays without a column could not be put into shape
    mechanism = make()
    structure = mk.structure(mechanism)
    assert (structure.inputs, structure.passive_dofs, structure.immobile_dofs, structure.idle_motions) == (
        (),
        (),
        (),
        (),
    )
    assert (structure.mobility.dof, structure.generic_dof) == (0, 0)
    assert len(structure.redundant_rows) == 6 * len(mechanism.closures)
    assert f"{mechanism.name} has {len(mechanism.links)} link" in mechanism.explain()


@BOTH
def test_no_input_moves_its_tool(make):
    jacobian = make().closed_jacobian("tool")
    assert jacobian.matrix.shape == (6, 0)
    assert jacobian.transmission.shape == (0, 0)
    assert jacobian.singular_directions.twists.shape == (6, 6)
    assert "no input" in repr(jacobian)


def test_a_fixed_joint_cannot_be_an_input():
    with pytest.raises(DoFError, match="fixed"):
        stiff_loop().closed_jacobian("tool", "left")


@BOTH
def test_a_goal_is_reached_only_at_the_fixed_pose(make):
    mechanism = make()
    here = mechanism.pose("tool")
    away = here.copy()
    away[0, 3] += 0.5
    solver = mk.Solver(mechanism, mk.PoseGoal("tool", here))
    assert solver.solve(restarts=3).success
    missed = solver.solve(away, restarts=3)
    assert missed.status is mk.Status.CLOSEST
    assert missed.errors["PoseGoal 0"].position == pytest.approx(0.5)
    assert (dict(missed.active_limits), missed.conflicts, bool(missed.singularity)) == ({}, (), False)
    assert solver.solve_batch(np.array([here, away])).success.tolist() == [True, False]


def test_an_open_loop_of_fixed_joints_is_rejected():
    builder = mk.Builder()
    builder.fixed("left", "ground", "post", at=(1, 0, 0))
    builder.fixed("right", "ground", "tool", at=(0, 1, 0))
    builder.close("weld", "post", "tool", "weld", onto=(0, 0, 0))
    mechanism = builder.build()
    with pytest.raises(StructureError, match=r"loop 'weld' has a gap of 1\.41 m"):
        mk.structure(mechanism)
    assert mk.Solver(mechanism).solve().status is mk.Status.NOT_CLOSED


@BOTH
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_info_shows_it(make, more, tmp_path):
    mk.save(make(), tmp_path / "still.json")
    assert main(["info", str(tmp_path / "still.json"), *more]) == 0
