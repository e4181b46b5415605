"""Every method can be tried in every scene, or says why not in words that need no code."""

import re
import time

import numpy as np
import pytest
from playing import PATIENCE, Played

from mechanik.errors import InvalidOperation
from mechanik.solver import METHODS
from mechanik.studio.messages.events import ComparisonChanged, Solving
from mechanik.studio.messages.requests import Compare, SetSolver
from mechanik.studio.scenes import SCENES

PINNED = ("hexapod", "humanoid", "walker", "rover", "jansen", "excavator", "look_at", "gripper")
"""Scenes with several levels."""
STEPPING = ("dls", "sdls", "pseudo_inverse", "newton", "chan", "sugihara", "lbfgsb", "annealing", "evolution")
"""Methods that refuse nothing there."""


def assert_needs_no_code(words):
    without_names = re.sub(r"'[^']*'", "it", words)
    assert len(words.split()) > 4, words
    assert not re.search(r"[<>\[\]{}=_]|\w\(|solver", without_names), words


def nudge(played, by):
    """Move what a person would, and let the scene ask for something new."""
    session = played.session
    for goal in session.goals:
        if goal.enabled and not goal.pinned:
            session.move_goal(goal.number, goal.X[:3, 3] + by * session.state.model_radius)
            break
    session.tick(played.now)


def follow(played):
    """Until the solver has answered what was asked last, if only with one state."""
    stage = played.session.active
    until = time.monotonic() + PATIENCE
    while (state := stage.latest_state) is None or state.tag != stage._live_tag:
        assert time.monotonic() < until, "no state came"
        time.sleep(1e-4)
    return state


@pytest.mark.parametrize("name", SCENES)
def test_every_method_runs_or_says_why_not_without_code(name):
    with Played(name) as played:
        played.rest()
        stage = played.session.active
        for k, method in enumerate(METHODS):
            before = stage.edit_state.solver
            try:
                played.session.handle_request(SetSolver(method, {}))
            except InvalidOperation as refusal:
                assert_needs_no_code(str(refusal))
                assert stage.edit_state.solver == before
                continue
            nudge(played, 0.01 * np.array([1.0, 0.5, 0.3]) * (-1) ** k)
            state = follow(played)
            assert state.problem == ""
            assert np.isfinite(state.q).all()
            solution = state.solution
            if solution is not None and solution.success:
                assert all(max(error.position, error.rotation) <= 1e-6 for error in solution.closure_errors.values())
                for one in solution.objectives:
                    error = one.error(played.mechanism, state.q)
                    assert not one.required or (error.position <= 1e-6 and error.rotation <= 1e-6), (method, one)


@pytest.mark.parametrize("name", PINNED)
def test_where_something_is_pinned_methods_without_levels_follow_and_say_how(name):
    with Played(name) as played:
        played.rest()
        for method in STEPPING:
            played.session.handle_request(SetSolver(method, {}))
            told = next(one for one in reversed(played.told) if isinstance(one, Solving))
            assert told.solver == method
            assert "30 times as much" in told.message
        played.session.handle_request(SetSolver("lm", {}))
        assert next(one for one in reversed(played.told) if isinstance(one, Solving)).message == ""


def test_pins_give_way_by_at_most_a_thirtieth_of_what_a_goal_out_of_reach_lacks():
    """The sum of squares at its least is no larger than where the pins are kept and the goal alone is missed."""
    with Played("humanoid") as played:
        played.rest()
        session = played.session
        hand = next(goal for goal in session.goals if not goal.pinned and goal.kind == "point")
        session.move_goal(hand.number, hand.X[:3, 3] + np.array([3.0, 0.0, 0.0]))
        played.rest()
        kept = lacking(played, [one.name for one in session.goals])
        assert kept[hand.name] > 1.0
        session.handle_request(SetSolver("dls", {}))
        played.rest()
        lacks = lacking(played, [one.name for one in session.goals if one.pinned])
        assert 0.0 < max(lacks.values()) < np.linalg.norm(list(kept.values())) / 30.0


def lacking(played, names):
    """m, by the names of goals."""
    goals = played.session.active.solve_spec.goals
    return {one.name: one.error(played.mechanism, played.q).position for one in goals if one.name in names}


def test_a_comparison_runs_beside_pins_and_says_how_in_its_rows():
    with Played("humanoid") as played:
        played.rest()
        played.session.handle_request(Compare(["lm", "dls", "lbfgsb", "ccd"]))
        told = next(one for one in reversed(played.told) if isinstance(one, ComparisonChanged))
        rows = {row.solver: row for row in told.rows}
        assert [name for name, row in rows.items() if row.refusal] == ["ccd"]
        assert_needs_no_code(rows["ccd"].refusal)
        assert rows["lm"].message == ""
        assert "pins count 30 times as much" in rows["dls"].message
        assert "pins count 30 times as much" in rows["lbfgsb"].message
