"""Problems for methods that support no priority levels or no soft objectives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_harness import SessionHarness

import mechanik as mk
from mechanik.errors import InvalidOperation
from mechanik.solver import METHODS
from mechanik.studio.messages.events import Solving
from mechanik.studio.messages.requests import (
    AddGoal,
    AddObstacle,
    EndDrag,
    RemoveGoal,
    SetDofValue,
    SetRest,
    SetSolver,
    StartObstacleDrag,
    Undo,
)
from mechanik.studio.session.solve_spec import (
    MAX_WEIGHT_RATIO,
    SolveSpec,
    adapt_to_method,
    errors_for_users,
    rewrite_for_users,
)

PANDA = mk.gallery.make("panda")


def plan_of(levels: list[int], solver: str = "dls", weight: float = 1.0) -> SolveSpec:
    goals = [
        mk.PositionGoal("panda_hand", (0, 0, 0), level=k, weight=weight, name=f"{i}") for i, k in enumerate(levels)
    ]
    return SolveSpec(tuple(goals), solver, (), False, {})


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.floats(0.1, 10.0))
def test_a_goal_of_a_level_above_counts_more_and_all_stay_within_bounds(levels: list[int], weight: float) -> None:
    spec = plan_of(levels, weight=weight)
    fit = adapt_to_method(spec)
    counts = {goal.level: adapted.weight / weight for goal, adapted in zip(spec.goals, fit.goals, strict=True)}
    assert len({goal.level for goal in fit.goals}) == 1
    assert [counts[level] for level in sorted(counts)] == sorted(set(counts.values()), reverse=True)
    assert counts[max(counts)] == 1.0
    assert counts[min(counts)] <= MAX_WEIGHT_RATIO * (1 + 1e-12)
    assert bool(fit.adaptation_text) == (len(counts) > 1)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.sampled_from([*METHODS]))
def test_nothing_but_levels_and_weights_is_different_for_a_method_without_levels(levels: list[int], name: str) -> None:
    spec = plan_of(levels)
    for goal, adapted in zip(spec.goals, adapt_to_method(spec, name).goals, strict=True):
        assert (goal.name, goal.tolerance, goal.angle_tolerance) == (
            adapted.name,
            adapted.tolerance,
            adapted.angle_tolerance,
        )
        for place in ((0.3, 0.1, 0.5), (1.0, 2.0, 3.0)):
            here, there = (objective.with_target(place).residual(PANDA, PANDA.q) for objective in (goal, adapted))
            np.testing.assert_array_equal(here, there)
        if name == "lm":
            assert goal is adapted


def test_rest_value_is_ignored_with_a_message_by_a_method_without_soft_objectives() -> None:
    with SessionHarness("panda") as harness:
        harness.ask(SetRest(0, 0.3))
        harness.ask(SetSolver("dls", {}))
        assert harness.last(Solving).message == ""
        harness.ask(SetSolver("sdls", {}))
        assert "soft objectives: they are ignored" in harness.last(Solving).message
        harness.rest()
        harness.ask(Undo())
        harness.ask(Undo())
        harness.ask(Undo())
        assert harness.last(Solving).message == ""


@pytest.mark.parametrize("method", ["jacobian_transpose", "sdls", "adam"])
def test_loops_stay_closed_without_any_goal_with_every_method(method: str) -> None:
    with SessionHarness("four_bar") as harness:
        harness.ask(SetSolver(method, {}))
        for goal in harness.session.goals:
            harness.ask(RemoveGoal(goal.number))
        value = float(harness.rest().values[0])
        harness.ask(SetDofValue(0, value + 0.3))
        assert harness.rest().closures.max() < 1e-8
        assert harness.frame.values[0] == pytest.approx(value + 0.3, abs=1e-8)


def test_a_goal_that_the_method_cannot_follow_is_refused_in_words_and_nothing_is_changed() -> None:
    with SessionHarness("panda") as harness:
        harness.ask(SetSolver("fabrik", {}))
        before, q = harness.session.goals, np.array(harness.rest().values)
        with pytest.raises(
            InvalidOperation, match=r"FABRIK supports only positions .*; choose Levenberg-Marquardt, which can"
        ):
            harness.ask(AddGoal("look_at", "panda_link4"))
        assert harness.session.goals is before
        np.testing.assert_array_equal(harness.rest().values, q)


def test_refusals_name_goals_and_methods_as_people_know_them() -> None:
    by_differences = "x by differences does not support bands; use solver='gradient_descent' with gradient='analytic'"
    assert (
        rewrite_for_users(by_differences)
        == "x by differences does not support bands; set its option gradient to analytic"
    )
    assert rewrite_for_users("y cannot do <Point 'tool' of link 'hand': [0. 0. 1.]>; use solver='lm'") == (
        "y cannot do the goal 'tool'; choose Levenberg-Marquardt, which can"
    )
    assert (
        rewrite_for_users("knows none; use solver='lm' or 'dls'") == "knows none; choose Levenberg-Marquardt, which can"
    )
    with pytest.raises(InvalidOperation, match=r"^it is late$"), errors_for_users():
        raise InvalidOperation("it is late")


@pytest.mark.parametrize("name", ["box 1", "box 2"])
def test_an_edit_during_the_drag_of_an_obstacle_does_not_change_the_method(name: str) -> None:
    """Once the first obstacle, whose index is the number of the goal of a link drag, was taken for a dragged link."""
    with SessionHarness("dh6") as harness:
        harness.ask(SetSolver("ccd", {}))
        for _ in range(2):
            harness.ask(AddObstacle(kind="box"))
        harness.ask(StartObstacleDrag(obstacle=name))
        harness.session.add_goal("point", "tool")
        assert harness.session.active.solve_spec.solver == "ccd"
        harness.ask(EndDrag())
        assert harness.session.active.solve_spec.solver == "ccd"
