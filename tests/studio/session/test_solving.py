"""Run, pause and single step; methods and options; alternative solutions; comparison of methods; status texts."""

from __future__ import annotations

import numpy as np
import pytest
from session_harness import SessionHarness

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
    with SessionHarness("ur5") as harness:
        goal, q = harness.session.goals[0], harness.session.q.copy()
        harness.ask(SetRunning(False))
        assert not harness.last(Solving).running
        harness.ask(StartGoalDrag(goal.number))
        harness.drag_goal_to(goal.number, shifted(goal.pose, 0.02, 0.0, 0.02))
        frame = harness.frame
        assert frame.header.tag == harness.tag, "the hand is answered all the same"
        assert STATUSES[int(frame.header.status)] == "PAUSED"
        assert frame.goals[0][7] == pytest.approx(0.02 * 2**0.5)
        assert np.array_equal(harness.session.q, q)
        harness.ask(EndDrag())
        off = [float(frame.goals[0][7])]
        for _ in range(6):
            harness.ask(SingleStep())
            off.append(float(harness.frame.goals[0][7]))
        assert off[1] < off[0], "one step is one step nearer"
        assert off[-1] < 1e-5
        harness.ask(SetRunning(True))
        assert harness.rest().goals[0][7:].max() < 1e-5


def test_one_step_is_for_a_pause() -> None:
    with SessionHarness("ur5") as harness, pytest.raises(InvalidOperation, match="pause"):
        harness.ask(SingleStep())


def test_goal_out_of_reach_is_approached_with_closed_loops_and_the_status_says_so() -> None:
    with SessionHarness("five_bar") as harness:
        goal = harness.session.goals[0]
        frame = harness.drag(goal.number, (10.0, 0.0, 0.0), steps=2)
        assert frame.closures.max() < 1e-8
        assert STATUSES[int(frame.header.status)] == "CLOSEST"
        harness.tick()
        status = harness.last(StatusText)
        assert status.status == "CLOSEST"
        assert "out of reach" in status.text.lower()
        assert goal.name in status.text


def test_status_text_is_sent_on_change_and_at_most_ten_times_a_second() -> None:
    with SessionHarness("ur5") as harness:
        harness.tick()
        count = len(harness.all(StatusText))
        for _ in range(20):
            harness.tick(0.02)
        assert len(harness.all(StatusText)) == count, "nothing new"
        goal = harness.session.goals[0]
        harness.ask(StartGoalDrag(goal.number))
        for k in range(50):
            harness.drag_goal_to(goal.number, shifted(goal.pose, 0.05 * k, 0.0, 0.0))
            harness.tick(0.01)
        assert len(harness.all(StatusText)) - count <= 6


@pytest.mark.parametrize("method", mk.METHODS)
def test_every_method_follows_or_says_in_words_why_it_does_not(method: str) -> None:
    with SessionHarness("ur5") as harness:
        before = harness.session.active.edit_state
        refusal = None
        try:
            harness.ask(SetSolver(method, {}))
        except MechanikError as error:
            refusal = str(error)
        if refusal is not None:
            assert refusal
            assert harness.session.active.edit_state is before
            return
        assert harness.last(Solving).solver == method
        goal = harness.session.goals[0]
        harness.ask(MoveGoal(goal.number, shifted(goal.pose, 0.01, 0.01, -0.01)))  # type: ignore[arg-type]
        harness.wait(
            lambda: harness.frame.goals[0][7] < 0.5 * 0.01 * 3**0.5 or bool(harness.session.live.error_message)
        )
        harness.ask(Undo())
        if method != before.solver:
            harness.ask(Undo())
        assert harness.session.active.edit_state is before


def test_options_are_those_of_the_method_and_what_is_not_given_is_usual() -> None:
    with SessionHarness("ur5") as harness:
        harness.ask(SetSolver("lm", {"tolerance": 1e-3, "max_iterations": 5.0}))
        assert harness.session.live._background.settings.options["max_iterations"] == 5
        harness.ask(SetSolver("lm", {}))
        assert harness.session.live._background.settings.options["max_iterations"] is None
        assert harness.session.live._background.settings.options["tolerance"] == 1e-6
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
                harness.ask(SetSolver(solver, options))
        assert harness.last(Solving).options == {}


def test_a_goal_that_the_method_cannot_take_is_refused() -> None:
    with SessionHarness("ur5") as harness:
        harness.ask(SetSolver("closed_form", {}))
        goals = harness.session.goals
        with pytest.raises(MechanikError):
            harness.ask(
                AddGoal("on_plane", "wrist_1_link" if "wrist_1_link" in harness.session.mechanism.links else "tool0")
            )
        assert harness.session.goals == goals


def test_alternatives_are_other_solutions_of_the_same_goal() -> None:
    with SessionHarness("ur5") as harness:
        harness.ask(ShowAlternatives(16))
        harness.wait(lambda: harness.tick() is None and bool(harness.all(Alternatives)))
        event = harness.last(Alternatives)
        tool = list(harness.session.mechanism.links).index("tool0")
        assert 1 <= len(event.poses) <= 16
        for poses in event.poses:
            rows = np.array(poses).reshape(-1, 7)
            assert np.allclose(rows[tool, :3], harness.session.goals[0].pose[:3], atol=1e-5)
            assert np.abs(rows - harness.frame.links).max() > 1e-3
        harness.ask(ShowAlternatives(0))
        assert harness.last(Alternatives).poses == []


def test_alternatives_of_loops_are_other_assembly_modes() -> None:
    with SessionHarness("four_bar") as harness:
        harness.ask(ShowAlternatives(4))
        harness.wait(lambda: harness.tick() is None and bool(harness.all(Alternatives)))
        assert len(harness.last(Alternatives).poses) == 1, "a four-bar has two ways, and stands in one"


def test_alternatives_of_goals_that_have_moved_are_dropped() -> None:
    with SessionHarness("ur5") as harness:
        harness.ask(ShowAlternatives(16))
        goal = harness.session.goals[0]
        harness.ask(MoveGoal(goal.number, shifted(goal.pose, 0.01, 0.0, 0.0)))  # type: ignore[arg-type]
        harness.wait(lambda: not harness.session.alternatives._is_busy)
        harness.tick()
        assert [event.poses for event in harness.all(Alternatives)] == [[]], (
            "who waits for them is told that there are none"
        )


def test_drawn_alternatives_go_when_the_goal_moves() -> None:
    with SessionHarness("ur5") as harness:
        harness.ask(ShowAlternatives(4))
        harness.wait(lambda: harness.tick() is None and bool(harness.all(Alternatives)))
        assert harness.last(Alternatives).poses
        goal = harness.session.goals[0]
        for k in range(3):
            harness.ask(MoveGoal(goal.number, shifted(goal.pose, 0.01 * k, 0.0, 0.01)))  # type: ignore[arg-type]
            harness.tick()
        assert [bool(event.poses) for event in harness.all(Alternatives)] == [True, False], "and it is said once"


def test_drawn_alternatives_go_when_the_goal_moves_twice_between_two_ticks() -> None:
    """The second move dropped the empty result of the first one, and pages kept the old solutions."""
    with SessionHarness("ur5") as harness:
        harness.ask(ShowAlternatives(4))
        harness.wait(lambda: harness.tick() is None and bool(harness.all(Alternatives)))
        goal = harness.session.goals[0]
        for k in range(2):
            harness.ask(MoveGoal(goal.number, shifted(goal.pose, 0.01 * k, 0.0, 0.01)))  # type: ignore[arg-type]
        harness.tick()
        assert [bool(event.poses) for event in harness.all(Alternatives)] == [True, False]


def test_compared_methods_follow_the_same_goal_each_on_its_layer() -> None:
    with SessionHarness("ur5") as harness:
        harness.ask(Compare(["dls", "ccd", "closed_form"]))
        rows = harness.last(ComparisonChanged).rows
        assert [row.layer for row in rows] == [1, 2, 3]
        goal = harness.session.goals[0]
        harness.drag(goal.number, (0.02, 0.0, 0.01))
        able = [row.layer for row in rows if not row.refusal]
        assert able
        for layer in able:
            harness.wait(lambda layer=layer: newest(harness, layer) < 1e-3)
        for _ in range(3):
            harness.tick(0.3)
        rows = harness.last(ComparisonChanged).rows
        assert all(row.microseconds > 0.0 for row in rows if not row.refusal)
        assert all(row.refusal for row in rows if row.layer not in able)
        harness.ask(RemoveGoal(goal.number))
        harness.ask(Compare([]))
        assert harness.last(ComparisonChanged).rows == []
        with pytest.raises(UnknownName):
            harness.ask(Compare(["nobody"]))


def newest(harness: SessionHarness, layer: int) -> float:
    """How far the first goal is from being reached on a layer."""
    states = [state for state in map(read_state, harness.frames[-200:]) if state.header.layer == layer]
    return float(states[-1].goals[0][7:].max()) if states else np.inf


def test_errors_are_reported_in_the_units_of_the_goal_kind() -> None:
    """A pull that fell short was once off by so many metres and 0 rad."""
    with SessionHarness("panda") as harness:
        goal = harness.session.goals[0]
        cases: list[tuple[GoalKind, str, str]] = [("point", " m", "rad"), ("orientation", " rad", " m")]
        for kind, unit, other_unit in cases:
            harness.ask(ChangeGoal(goal.number, kind=kind))
            harness.session.move_goal(goal.number, mk.spatial.make_pose(np.diag([-1.0, -1.0, 1.0]), (9.0, 0.0, 0.0)))
            for dof in range(7):
                harness.ask(SetLocked(dof, True))
            harness.rest()
            harness.tick(1.0)
            off = harness.last(StatusText).text.rpartition(f"{goal.name} (")[2].partition(")")[0]
            assert off.endswith(unit), harness.last(StatusText).text
            assert other_unit not in off.replace(unit, "")


def test_a_comparison_ends_for_everybody_when_another_mechanism_is_opened() -> None:
    """Its tiles stayed, and were empty."""
    with SessionHarness("planar_3r") as harness:
        harness.ask(Compare(["lm", "dls"]))
        assert len(harness.last(ComparisonChanged).rows) == 2
        harness.ask(OpenGallery("panda"))
        assert harness.last(ComparisonChanged).rows == []
