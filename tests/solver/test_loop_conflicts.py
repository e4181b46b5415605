"""What a solution reports about goals in conflict through a loop, and about limits of the loop-closing joint."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mechanik as mk


def four_bar():
    mechanism = mk.gallery.four_bar()
    mechanism.apply(mechanism.assemble())
    return mechanism


def slider_crank(**limits):
    """The slider closes the loop: it translates along the ground's x and rotates."""
    builder = mk.Builder("slider-crank")
    builder.revolute("crank", "ground", "bar", value=0.9)
    builder.revolute("elbow", "bar", "rod", at=(0.5, 0, 0), value=0.9 - math.asin(0.5 * math.sin(0.9) / 1.5) - 1.8)
    closure = builder.close("slide", "ground", "rod", ["X", "EZ"], onto=(1.5, 0, 0))
    mechanism = builder.build()
    mechanism.apply(mk.Solver(mechanism).solve().require())
    closure.joint.set_limits(*limits.values())
    return mechanism


# ---- conflicts ----------------------------------------------------------------------------------


def test_goals_in_conflict_through_a_loop_are_named():
    # they are goals of different joints, so that only the loop makes them conflict
    crank, rocker = (
        mk.JointValues({"crank_joint": 1.0}, name="crank"),
        mk.JointValues({"rocker_joint": 0.3}, name="rocker"),
    )
    solution = mk.Solver(four_bar(), [crank, rocker]).solve()
    assert set(solution.unmet) == {"crank", "rocker"}
    assert [set(pair) for pair in solution.conflicts] == [{"crank", "rocker"}]
    assert "conflicts with" in solution.message


def test_goals_in_conflict_through_a_joint_constraint_are_named():
    builder = mk.Builder()
    for side in ("left", "right"):
        builder.revolute(side, "base", f"{side}_arm")
    builder.joint_constraint("mirror", {"left": 1.0, "right": 1.0})
    goals = [mk.JointValues({side: 1.0}, name=side) for side in ("left", "right")]
    assert [set(pair) for pair in mk.Solver(builder.build(), goals).solve().conflicts] == [{"left", "right"}]


def test_a_goal_that_only_the_loop_prevents_is_in_conflict_with_no_other_goal():
    mechanism = four_bar()
    met = mk.JointValues({"crank_joint": float(mechanism.q[0])}, name="met", level=1)
    aside = mk.PositionGoal("coupler", (0, 0, 5.0), name="out of its plane", level=2)
    solution = mk.Solver(mechanism, [met, aside]).solve()
    assert solution.unmet == ("out of its plane",)
    assert solution.conflicts == ()


# ---- limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("crank", "side"), [(2.5, "upper"), (0.3, "lower")])
def test_an_active_limit_of_the_loop_closing_joint_is_named(crank, side):
    mechanism = four_bar()
    solver = mk.Solver(mechanism, mk.JointValues({"crank_joint": crank}, angle_mode="exact"))
    here, there = float(mechanism.joint("closing_joint").values[0]), float(np.asarray(solver.solve()["closing_joint"]))
    middle = 0.5 * (here + there)
    assert (there > here) == (side == "upper")
    low, high = (here - 3, middle) if side == "upper" else (middle, here + 3)
    mechanism.joint("closing_joint").set_limits(low, high)
    solution = solver.solve()
    assert solution["closing_joint"] == pytest.approx(middle, abs=1e-9)
    assert dict(solution.active_limits) == {"closing_joint": side}
    assert "at a limit: closing_joint" in solution.message


def test_of_a_loop_closing_joint_with_several_dofs_the_dof_at_its_limit_is_named():
    mechanism = slider_crank(lower=(0.0, -9.0), upper=(1.85, 9.0))
    solution = mk.Solver(mechanism, mk.JointValues({"crank": 0.0})).solve()
    assert dict(solution.active_limits) == {"slide.X": "upper"}
    assert np.asarray(solution["slide"])[0] == pytest.approx(1.85, abs=1e-9)


def test_a_closing_joint_inside_its_limits_is_not_named():
    mechanism = slider_crank(lower=(0.0, -9.0), upper=(1.85, 9.0))
    assert not mk.Solver(mechanism, mk.JointValues({"crank": 0.8})).solve().require().active_limits
