"""Every method runs in every scene, or reports the reason without code."""

import re
import time

import numpy as np
import pytest
from scene_player import PATIENCE, ScenePlayer

from mechanik.errors import InvalidOperation
from mechanik.solver import METHODS
from mechanik.studio.messages.events import ComparisonChanged, Solving
from mechanik.studio.messages.requests import Compare, SetSolver
from mechanik.studio.scenes import SCENES

PINNED = ("hexapod", "humanoid", "walker", "rover", "jansen", "excavator", "look_at", "gripper")
"""Scenes with several levels."""
STEPPING = ("dls", "sdls", "pseudo_inverse", "newton", "chan", "sugihara", "lbfgsb", "annealing", "evolution")
"""Methods that refuse nothing there."""


def assert_needs_no_code(text):
    without_names = re.sub(r"'[^']*'", "it", text)
    assert len(text.split()) > 4, text
    assert not re.search(r"[<>\[\]{}=_]|\w\(|solver", without_names), text


def nudge(player, by):
    """Move what a person would, and let the scene ask for something new."""
    session = player.session
    for goal in session.goals:
        if goal.enabled and not goal.pinned:
            session.move_goal(goal.number, goal.X[:3, 3] + by * session.state.model_radius)
            break
    session.tick(player.now)


def follow(player):
    """Until the solver has answered what was asked last, if only with one state."""
    active = player.session.active
    until = time.monotonic() + PATIENCE
    while (state := active.latest_state) is None or state.tag != active._live_tag:
        assert time.monotonic() < until, "no state came"
        time.sleep(1e-4)
    return state


@pytest.mark.parametrize("name", SCENES)
def test_every_method_runs_or_says_why_not_without_code(name):
    with ScenePlayer(name) as player:
        player.rest()
        active = player.session.active
        for k, method in enumerate(METHODS):
            before = active.edit_state.solver
            try:
                player.session.handle_request(SetSolver(method, {}))
            except InvalidOperation as refusal:
                assert_needs_no_code(str(refusal))
                assert active.edit_state.solver == before
                continue
            nudge(player, 0.01 * np.array([1.0, 0.5, 0.3]) * (-1) ** k)
            state = follow(player)
            assert state.error_message == ""
            assert np.isfinite(state.q).all()
            solution = state.solution
            if solution is not None and solution.success:
                assert all(max(error.position, error.rotation) <= 1e-6 for error in solution.closure_errors.values())
                for objective in solution.objectives:
                    error = objective.error(player.mechanism, state.q)
                    assert not objective.required or (error.position <= 1e-6 and error.rotation <= 1e-6), (
                        method,
                        objective,
                    )


@pytest.mark.parametrize("name", PINNED)
def test_where_something_is_pinned_methods_without_levels_follow_and_say_how(name):
    with ScenePlayer(name) as player:
        player.rest()
        for method in STEPPING:
            player.session.handle_request(SetSolver(method, {}))
            solving = next(event for event in reversed(player.events) if isinstance(event, Solving))
            assert solving.solver == method
            assert "30 times the weight" in solving.message
        player.session.handle_request(SetSolver("lm", {}))
        assert next(event for event in reversed(player.events) if isinstance(event, Solving)).message == ""


def test_pins_move_by_at_most_a_thirtieth_of_the_error_of_a_goal_out_of_reach():
    """The sum of squares at its least is no larger than where the pins are kept and the goal alone is missed."""
    with ScenePlayer("humanoid") as player:
        player.rest()
        session = player.session
        hand = next(goal for goal in session.goals if not goal.pinned and goal.kind == "point")
        session.move_goal(hand.number, hand.X[:3, 3] + np.array([3.0, 0.0, 0.0]))
        player.rest()
        errors = lacking(player, [goal.name for goal in session.goals])
        assert errors[hand.name] > 1.0
        session.handle_request(SetSolver("dls", {}))
        player.rest()
        lacks = lacking(player, [goal.name for goal in session.goals if goal.pinned])
        assert 0.0 < max(lacks.values()) < np.linalg.norm(list(errors.values())) / 30.0


def lacking(player, names):
    """m, by the names of goals."""
    goals = player.session.active.solve_spec.goals
    return {goal.name: goal.error(player.mechanism, player.q).position for goal in goals if goal.name in names}


def test_a_comparison_runs_beside_pins_and_says_how_in_its_rows():
    with ScenePlayer("humanoid") as player:
        player.rest()
        player.session.handle_request(Compare(["lm", "dls", "lbfgsb", "ccd"]))
        comparison = next(event for event in reversed(player.events) if isinstance(event, ComparisonChanged))
        rows = {row.solver: row for row in comparison.rows}
        assert [name for name, row in rows.items() if row.refusal] == ["ccd"]
        assert_needs_no_code(rows["ccd"].refusal)
        assert rows["lm"].message == ""
        assert "pins have 30 times the weight" in rows["dls"].message
        assert "pins have 30 times the weight" in rows["lbfgsb"].message
