"""Run, pause, step; other methods and options; other solutions; several methods side by side; words."""

from __future__ import annotations

import numpy as np
import pytest
from session_desk import Desk

import mechanik as mk
from mechanik.errors import InvalidOperation, MechanikError, UnknownName
from mechanik.studio.messages.events import Alternatives, ComparisonChanged, Solving, StatusText
from mechanik.studio.messages.message_codec import STATUSES, read_state
from mechanik.studio.messages.requests import (
    AddGoal,
    ChangeGoal,
    Compare,
    EndDrag,
    GoalKind,
    MoveGoal,
    OpenGallery,
    RemoveGoal,
    SetLocked,
    SetRunning,
    SetSolver,
    ShowAlternatives,
    SingleStep,
    StartGoalDrag,
    Undo,
)


def shifted(pose: tuple[float, ...], *shift: float) -> tuple[float, ...]:
    return (*(coordinate + offset for coordinate, offset in zip(pose[:3], shift, strict=True)), *pose[3:])


def test_while_it_is_paused_goals_move_and_the_mechanism_does_not() -> None:
    with Desk("ur5") as desk:
        goal, q = desk.session.goals[0], desk.session.q.copy()
        desk.ask(SetRunning(False))
        assert not desk.last(Solving).running
        desk.ask(StartGoalDrag(goal.number))
        desk.drag_goal_to(goal.number, shifted(goal.pose, 0.02, 0.0, 0.02))
        frame = desk.frame
        assert frame.header.tag == desk.tag, "the hand is answered all the same"
        assert STATUSES[int(frame.header.status)] == "PAUSED"
        assert frame.goals[0][7] == pytest.approx(0.02 * 2**0.5)
        assert np.array_equal(desk.session.q, q)
        desk.ask(EndDrag())
        off = [float(frame.goals[0][7])]
        for _ in range(6):
            desk.ask(SingleStep())
            off.append(float(desk.frame.goals[0][7]))
        assert off[1] < off[0], "one step is one step nearer"
        assert off[-1] < 1e-5
        desk.ask(SetRunning(True))
        assert desk.rest().goals[0][7:].max() < 1e-5


def test_one_step_is_for_a_pause() -> None:
    with Desk("ur5") as desk, pytest.raises(InvalidOperation, match="pause"):
        desk.ask(SingleStep())


def test_goal_out_of_reach_is_approached_with_closed_loops_and_the_status_says_so() -> None:
    with Desk("five_bar") as desk:
        goal = desk.session.goals[0]
        frame = desk.drag(goal.number, (10.0, 0.0, 0.0), steps=2)
        assert frame.closures.max() < 1e-8
        assert STATUSES[int(frame.header.status)] == "CLOSEST"
        desk.tick()
        status = desk.last(StatusText)
        assert status.status == "CLOSEST"
        assert "not reached" in status.text.lower()
        assert goal.name in status.text


def test_status_text_is_sent_on_change_and_at_most_ten_times_a_second() -> None:
    with Desk("ur5") as desk:
        desk.tick()
        count = len(desk.all(StatusText))
        for _ in range(20):
            desk.tick(0.02)
        assert len(desk.all(StatusText)) == count, "nothing new"
        goal = desk.session.goals[0]
        desk.ask(StartGoalDrag(goal.number))
        for k in range(50):
            desk.drag_goal_to(goal.number, shifted(goal.pose, 0.05 * k, 0.0, 0.0))
            desk.tick(0.01)
        assert len(desk.all(StatusText)) - count <= 6


@pytest.mark.parametrize("method", mk.METHODS)
def test_every_method_follows_or_says_in_words_why_it_does_not(method: str) -> None:
    with Desk("ur5") as desk:
        before = desk.session.active.edit_state
        refusal = None
        try:
            desk.ask(SetSolver(method, {}))
        except MechanikError as error:
            refusal = str(error)
        if refusal is not None:
            assert refusal
            assert desk.session.active.edit_state is before
            return
        assert desk.last(Solving).solver == method
        goal = desk.session.goals[0]
        desk.ask(MoveGoal(goal.number, shifted(goal.pose, 0.01, 0.01, -0.01)))  # type: ignore[arg-type]
        desk.wait(lambda: desk.frame.goals[0][7] < 0.5 * 0.01 * 3**0.5 or bool(desk.session.live.problem))
        desk.ask(Undo())
        if method != before.solver:
            desk.ask(Undo())
        assert desk.session.active.edit_state is before


def test_options_are_those_of_the_method_and_what_is_not_given_is_usual() -> None:
    with Desk("ur5") as desk:
        desk.ask(SetSolver("lm", {"tolerance": 1e-3, "max_iterations": 5.0}))
        assert desk.session.live._background.settings.options["max_iterations"] == 5
        desk.ask(SetSolver("lm", {}))
        assert desk.session.live._background.settings.options["max_iterations"] is None
        assert desk.session.live._background.settings.options["tolerance"] == 1e-6
        for solver, options in (
            ("nobody", {}),
            ("lm", {"nothing": 1.0}),
            ("lm", {"lock": "elbow"}),
            ("lm", {"goals": "x"}),
            ("lm", {"tolerance": "small"}),
            ("lm", {"tolerance": -1.0}),
            ("lm", {"restarts": 1e6}),
            ("lm", {"max_iterations": 1e6}),
            ("lm", {"max_iterations": 2.5}),
            ("lm", {"max_seconds": 1e5}),
            ("lm", {"weights": "all"}),
            ("adam", {"rate": "fast"}),
        ):
            with pytest.raises(MechanikError):
                desk.ask(SetSolver(solver, options))
        assert desk.last(Solving).options == {}


def test_a_goal_that_the_method_cannot_take_is_refused() -> None:
    with Desk("ur5") as desk:
        desk.ask(SetSolver("closed_form", {}))
        goals = desk.session.goals
        with pytest.raises(MechanikError):
            desk.ask(AddGoal("on_plane", "wrist_1_link" if "wrist_1_link" in desk.session.mechanism.links else "tool0"))
        assert desk.session.goals == goals


def test_alternatives_are_other_solutions_of_the_same_goal() -> None:
    with Desk("ur5") as desk:
        desk.ask(ShowAlternatives(16))
        desk.wait(lambda: desk.tick() is None and bool(desk.all(Alternatives)))
        event = desk.last(Alternatives)
        tool = list(desk.session.mechanism.links).index("tool0")
        assert 1 <= len(event.poses) <= 16
        for poses in event.poses:
            rows = np.array(poses).reshape(-1, 7)
            assert np.allclose(rows[tool, :3], desk.session.goals[0].pose[:3], atol=1e-5)
            assert np.abs(rows - desk.frame.links).max() > 1e-3
        desk.ask(ShowAlternatives(0))
        assert desk.last(Alternatives).poses == []


def test_alternatives_of_loops_are_other_assembly_modes() -> None:
    with Desk("four_bar") as desk:
        desk.ask(ShowAlternatives(4))
        desk.wait(lambda: desk.tick() is None and bool(desk.all(Alternatives)))
        assert len(desk.last(Alternatives).poses) == 1, "a four-bar has two ways, and stands in one"


def test_alternatives_of_goals_that_have_moved_are_dropped() -> None:
    with Desk("ur5") as desk:
        desk.ask(ShowAlternatives(16))
        goal = desk.session.goals[0]
        desk.ask(MoveGoal(goal.number, shifted(goal.pose, 0.01, 0.0, 0.0)))  # type: ignore[arg-type]
        desk.wait(lambda: not desk.session.alternatives._is_busy)
        desk.tick()
        assert [event.poses for event in desk.all(Alternatives)] == [[]], (
            "who waits for them is told that there are none"
        )


def test_drawn_alternatives_go_when_the_goal_moves() -> None:
    with Desk("ur5") as desk:
        desk.ask(ShowAlternatives(4))
        desk.wait(lambda: desk.tick() is None and bool(desk.all(Alternatives)))
        assert desk.last(Alternatives).poses
        goal = desk.session.goals[0]
        for k in range(3):
            desk.ask(MoveGoal(goal.number, shifted(goal.pose, 0.01 * k, 0.0, 0.01)))  # type: ignore[arg-type]
            desk.tick()
        assert [bool(event.poses) for event in desk.all(Alternatives)] == [True, False], "and it is said once"


def test_drawn_alternatives_go_when_the_goal_moves_twice_between_two_ticks() -> None:
    """The second move dropped the empty result of the first one, and pages kept the old solutions."""
    with Desk("ur5") as desk:
        desk.ask(ShowAlternatives(4))
        desk.wait(lambda: desk.tick() is None and bool(desk.all(Alternatives)))
        goal = desk.session.goals[0]
        for k in range(2):
            desk.ask(MoveGoal(goal.number, shifted(goal.pose, 0.01 * k, 0.0, 0.01)))  # type: ignore[arg-type]
        desk.tick()
        assert [bool(event.poses) for event in desk.all(Alternatives)] == [True, False]


def test_compared_methods_follow_the_same_goal_each_on_its_layer() -> None:
    with Desk("ur5") as desk:
        desk.ask(Compare(["dls", "ccd", "closed_form"]))
        rows = desk.last(ComparisonChanged).rows
        assert [row.layer for row in rows] == [1, 2, 3]
        goal = desk.session.goals[0]
        desk.drag(goal.number, (0.02, 0.0, 0.01))
        able = [row.layer for row in rows if not row.refusal]
        assert able
        for layer in able:
            desk.wait(lambda layer=layer: newest(desk, layer) < 1e-3)
        for _ in range(3):
            desk.tick(0.3)
        rows = desk.last(ComparisonChanged).rows
        assert all(row.microseconds > 0.0 for row in rows if not row.refusal)
        assert all(row.refusal for row in rows if row.layer not in able)
        desk.ask(RemoveGoal(goal.number))
        desk.ask(Compare([]))
        assert desk.last(ComparisonChanged).rows == []
        with pytest.raises(UnknownName):
            desk.ask(Compare(["nobody"]))


def newest(desk: Desk, layer: int) -> float:
    """How far the first goal is from being reached on a layer."""
    states = [state for state in map(read_state, desk.frames[-200:]) if state.header.layer == layer]
    return float(states[-1].goals[0][7:].max()) if states else np.inf


def test_errors_are_reported_in_the_units_of_the_goal_kind() -> None:
    """A pull that fell short was once off by so many metres and 0 rad."""
    with Desk("panda") as desk:
        goal = desk.session.goals[0]
        cases: list[tuple[GoalKind, str, str]] = [("point", " m", "rad"), ("orientation", " rad", " m")]
        for kind, unit, other_unit in cases:
            desk.ask(ChangeGoal(goal.number, kind=kind))
            desk.session.move_goal(goal.number, mk.spatial.make_pose(np.diag([-1.0, -1.0, 1.0]), (9.0, 0.0, 0.0)))
            for dof in range(7):
                desk.ask(SetLocked(dof, True))
            desk.rest()
            desk.tick(1.0)
            off = desk.last(StatusText).text.partition(f"{goal.name} (")[2].partition(")")[0]
            assert off.endswith(unit), desk.last(StatusText).text
            assert other_unit not in off.replace(unit, "")


def test_a_comparison_ends_for_everybody_when_another_mechanism_is_opened() -> None:
    """Its tiles stayed, and were empty."""
    with Desk("planar_3r") as desk:
        desk.ask(Compare(["lm", "dls"]))
        assert len(desk.last(ComparisonChanged).rows) == 2
        desk.ask(OpenGallery("panda"))
        assert desk.last(ComparisonChanged).rows == []
